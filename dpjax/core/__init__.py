"""What all other packages build on: keys and draws, log-space sums, bits, staging, pytrees, checks of arguments."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
