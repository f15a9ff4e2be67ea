"""Plots: the only subpackage that imports matplotlib."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
