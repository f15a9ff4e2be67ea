"""Trials: runs any callable many times in one program; estimates with intervals, search, store, resume."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
