"""Private learning of one halfplane, and the selection of halfplanes with which polygons are learned (GEO §4)."""

from dpjax.learners.halfplanes.exponential import Exponential, exponential
from dpjax.learners.halfplanes.select import SelectHalfplane, select_halfplane

__all__ = ["Exponential", "SelectHalfplane", "exponential", "select_halfplane"]
