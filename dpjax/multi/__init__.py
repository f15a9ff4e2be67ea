"""Learners of k concepts at once, and reductions between kinds of learners."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
