"""Private summaries of data that answer every query of a concept class."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
