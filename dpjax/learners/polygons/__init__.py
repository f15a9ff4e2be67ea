"""Convex polygons and unions of polygons by SetCoverLearner (GEO §4, §5)."""

from dpjax.learners.polygons.by_halfplanes import convex
from dpjax.learners.polygons.by_triangles import union
from dpjax.learners.polygons.gibbs_triangle import GibbsTriangle, shrink_factors
from dpjax.learners.polygons.select_triangle import SelectTriangle

__all__ = ["GibbsTriangle", "SelectTriangle", "convex", "shrink_factors", "union"]
