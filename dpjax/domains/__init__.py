"""Wide integers, pieces of wide ranges, tries, selection, linear algebra over GF(2)."""

from dpjax.core import lazy

__getattr__, __dir__ = lazy.modules(__name__)
