"""Quasi-concave optimisation, interior points, quantiles, Reorder-Slice-Compute."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
