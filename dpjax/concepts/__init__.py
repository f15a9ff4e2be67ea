"""Concept classes: labels, distributions of examples, exact errors; a module each."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
