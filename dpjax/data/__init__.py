"""Samples as padded arrays, outcomes, and the shell of every algorithm."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
