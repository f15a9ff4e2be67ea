"""The exponential mechanism on an interval of reals, for a quality that is constant between data: plain, slow, and obviously right."""

import itertools
import math
from collections.abc import Callable, Sequence

Piece = tuple[float, float, float]  # (from, to, probability)


def gap_law(
    values: Sequence[float], quality: Callable[[float], float], low: float, high: float, factor: float
) -> list[Piece]:
    """The law of a point with density ∝ exp(factor quality(z)) on [low, high]: uniform within each gap between the values.

    >>> gap_law([1.0], lambda z: 0.0, 0.0, 4.0, 1.0)
    [(0.0, 1.0, 0.25), (1.0, 4.0, 0.75)]
    """
    cuts = sorted({low, high, *(min(max(value, low), high) for value in values)})
    pieces = list(itertools.pairwise(cuts))
    weights = [(b - a) * math.exp(factor * quality((a + b) / 2)) for a, b in pieces]
    return [(a, b, weight / sum(weights)) for (a, b), weight in zip(pieces, weights, strict=True)]


def rank_quality(values: Sequence[float], fraction: float) -> Callable[[float], float]:
    """-|#{x < z} - f n|, for a z that is none of the values (values outside the range lie on their side of it)."""
    return lambda z: -abs(sum(x < z for x in values) - fraction * len(values))


def label_quality(examples: Sequence[tuple[float, int]]) -> Callable[[float], float]:
    """How many examples the threshold z, 1 iff x < z, labels correctly."""
    return lambda z: sum((x < z) == bool(y) for x, y in examples)
