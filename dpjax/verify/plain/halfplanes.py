"""A naive exact reference for SelectHalfplane (GEO §4): all pieces of the dual plane, by fractions."""

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

Point = tuple[int, int]
Labels = tuple[bool, ...]


def charts(bits: int, measure: str) -> list[tuple[Callable[[Point], Point], int, int, int]]:
    """(coordinates (u, v), greatest |slope|, least and greatest height) of each family of halfplanes v >= a u + b."""
    side = 1 << bits
    flips = [lambda p: p, lambda p: (p[0], side - 1 - p[1])]
    if measure == "box":
        most = 2 * side**2
        return [(flips[0], most, -most, most), (flips[1], most, side - 1 - most, side - 1 + most)]
    flips += [lambda p: (p[1], p[0]), lambda p: (p[1], side - 1 - p[0])]
    return [(flip, 1, -side, 2 * side) for flip in flips]


def halfplane_measures(points: Sequence[Point], bits: int, measure: str) -> dict[Labels, Fraction]:
    """For each way to label the points, the area of the halfplanes that label them that way.

    >>> areas = halfplane_measures([(0, 0), (1, 1)], 1, "axes")
    >>> sum(areas.values()), areas[True, False]
    (Fraction(48, 1), Fraction(4, 1))
    """
    found: dict[Labels, Fraction] = {}
    for flip, reach, low, high in charts(bits, measure):
        placed = [flip(point) for point in points]
        ends = {Fraction(-reach), Fraction(reach)}
        for u, v in placed:
            ends |= {Fraction(v - end, u) for end in (low, high) if u}
            ends |= {Fraction(v - other_v, u - other_u) for other_u, other_v in placed if u != other_u}
        slopes = sorted(end for end in ends if -reach <= end <= reach)
        for first, second in itertools.pairwise(slopes):
            middle = (first + second) / 2
            heights = [min(max(v - middle * u, Fraction(low)), Fraction(high)) for u, v in placed]
            levels = sorted({Fraction(low), Fraction(high), *heights})
            for bottom, top in itertools.pairwise(levels):
                labels = tuple(height >= top for height in heights)
                found[labels] = found.get(labels, Fraction(0)) + (second - first) * (top - bottom)
    return found


def select_halfplane_law(
    points: Sequence[Point], bits: int, measure: str, score: Callable[[Labels], float], rate: float
) -> dict[Labels, float]:
    """For each way to label the points, P[the halfplane labels them that way], proportional to area * exp(rate score(labels)).

    >>> law = select_halfplane_law([(0, 0), (1, 1)], 1, "axes", lambda labels: -labels[0], math.log(2))
    >>> round(sum(law.values()), 9)
    1.0
    """
    areas = halfplane_measures(points, bits, measure)
    most = max(score(labels) for labels in areas)
    weights = {labels: float(area) * math.exp(rate * (score(labels) - most)) for labels, area in areas.items()}
    total = math.fsum(weights.values())
    return {labels: weight / total for labels, weight in weights.items()}
