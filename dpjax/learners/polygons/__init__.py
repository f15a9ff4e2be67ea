"""Convex polygons and unions of polygons by SetCoverLearner (GEO §4, §5)."""

from dpjax.learners.polygons.by_halfplanes import convex

__all__ = ["convex"]
