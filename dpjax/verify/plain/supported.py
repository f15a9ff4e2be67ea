"""Naive exact references for the exponential mechanism over what the data support, and for the learner of thresholds by it."""

import math
from collections.abc import Sequence


def supported_law(
    scores: Sequence[float], epsilon: float, delta: float, growth: int, *, monotone: bool = True
) -> list[float]:
    """P[i], then P[bottom]: candidates are the scores above 0, weights e^(epsilon score), or e^(epsilon score/2) if not monotone.

    >>> [round(p, 3) for p in supported_law([0, 3, 3], 1.0, 0.1, 1)]
    [0.0, 0.382, 0.382, 0.236]
    >>> [round(p, 3) for p in supported_law([0, 3, 3], 2.0, 0.1, 1, monotone=False)]
    [0.0, 0.445, 0.445, 0.11]
    """
    unit = epsilon if monotone else epsilon / 2
    weights = [math.exp(unit * score) if score > 0 else 0.0 for score in scores]
    whole, used = sum(weights), min(delta, 1 / 8, unit / 4)
    rho = epsilon / (unit + 4 * used)
    edge = rho / (1 + rho) * growth * math.exp(unit) / used
    bottom = 1 - rho / (1 + rho) * whole / edge if whole <= edge else (edge / whole) ** rho / (1 + rho)
    return [*((1 - bottom) * weight / whole if whole else 0.0 for weight in weights), bottom]


def supported_thresholds_law(
    xs: Sequence[int], ys: Sequence[int], bits: int, epsilon: float, delta: float, room: int
) -> list[float]:
    """P[j] for j = 0, ..., 2^bits, then P[bottom], of the learner of thresholds that answers with fewer than `room` errors.

    >>> law = supported_thresholds_law([0, 1, 1], [1, 0, 0], 1, 8.0, 0.1, 3)
    >>> max(range(3), key=law.__getitem__)
    1
    """
    growth = 2 * (room + 1) * (bits + 1)
    return supported_law(threshold_scores(xs, ys, bits, room), epsilon, delta, growth, monotone=False)


def threshold_scores(xs: Sequence[int], ys: Sequence[int], bits: int, room: int) -> list[int]:
    """min(points below the key 2j + 2, room - errors) for j = 0, ..., 2^bits; `room` more points are at both ends.

    >>> threshold_scores([0, 1, 1], [1, 0, 0], 1, 3)
    [2, 3, 1]
    """
    points = [2 * x + 3 for x in xs] + [1, 2 ** (bits + 1) + 3] * room
    scores = []
    for j in range(2**bits + 1):
        key = 2 * j + 2
        reach = key & -key
        below = sum(key - reach < point < key + reach for point in points)
        missed = sum((x < j) != bool(y) for x, y in zip(xs, ys, strict=True))
        scores.append(min(below, room - missed))
    return scores
