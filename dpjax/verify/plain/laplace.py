"""Laplace noise of scale 1: the tail that the other twins use."""

import math


def laplace_tail(x: float) -> float:
    """P[Lap(1) >= x], which is P[Lap(1) <= -x].

    >>> round(laplace_tail(1.0), 6), laplace_tail(0.0), round(laplace_tail(-1.0), 6)
    (0.18394, 0.5, 0.81606)
    """
    return math.exp(-x) / 2 if x > 0 else 1 - math.exp(x) / 2
