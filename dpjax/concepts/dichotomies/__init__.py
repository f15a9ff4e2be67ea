"""Classes of concepts restricted to a few points: one concept for every way in which the class labels them.

A class has `vc`, `bits`, and `choices(points, named)`, which is all that a learner needs in order to pick one of those concepts. `points`
are distinct rows in increasing order. Those that are `named` are to be labelled in every possible way; the others are only counted.
"""

from dpjax.concepts.dichotomies.base import Choices
from dpjax.concepts.dichotomies.of_parities import ParityClass, parities
from dpjax.concepts.dichotomies.of_points import PointClass, points
from dpjax.concepts.dichotomies.of_rectangles import RectangleClass, rectangles
from dpjax.concepts.dichotomies.of_thresholds import ThresholdClass, thresholds

__all__ = [
    "Choices",
    "ParityClass",
    "PointClass",
    "RectangleClass",
    "ThresholdClass",
    "parities",
    "points",
    "rectangles",
    "thresholds",
]
