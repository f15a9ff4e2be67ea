"""Convex polygons and unions of them over {0, ..., 2^d - 1}^2 (GEO §4, §5): labels, distributions, exact errors.

A polygon is an intersection of halfplanes, whose slopes and heights are multiples of 2^-t (`dpjax.concepts.plane.lattice`), so that labels
are decided by integers.

    >>> import jax
    >>> from dpjax.concepts import polygons
    >>> target = polygons.convex(bits=6, corners=[(10, 10), (50, 20), (30, 60)])
    >>> law = polygons.uniform(bits=6, target=target)
    >>> law.sample(jax.random.key(0), 127, 100).y[:100].sum().tolist()
    29
    >>> float(law.error(polygons.convex(bits=6, corners=[(10, 10), (50, 20), (30, 59)])))  # of 4,096 points
    0.00830078125
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from jaxtyping import Array, Bool, Float, UInt32

from dpjax.concepts.plane import distributions, regions
from dpjax.concepts.plane.distributions import Masses, Uniform
from dpjax.concepts.plane.lattice import MOST_BITS
from dpjax.concepts.plane.regions import Region
from dpjax.core import arguments

Corner = tuple[Any, Any]


def convex(*, bits: int, corners: Sequence[Corner]) -> Region:
    """The convex polygon with these corners, in order (either way round), its edges included.

    Its sides are moved outwards to the lattice, by less than 2^(d + 1 - t) (`dpjax.concepts.plane.lattice`; 2^-16 at d = 6): if the corners
    are integers, this adds no point of the grid.

    Args:
      bits: d, 1 to 64.
      corners: three or more pairs of numbers (ints, floats, fractions) in [0, 2^d).

    Raises:
      TypeError, ValueError: bits or a corner out of range, fewer than three corners, or corners that turn both ways.
    """
    bits = _bits(bits)
    return regions.region(bits, [_sides(bits, corners)])


def union(*, bits: int, parts: Sequence[Sequence[Corner]]) -> Region:
    """The union of convex polygons, each given by its corners as in `convex`.

    >>> two = union(bits=4, parts=[[(0, 0), (4, 0), (0, 4)], [(15, 15), (9, 15), (15, 9), (15, 10)]])
    >>> two
    Region(parts=2, sides=4, bits=4)
    """
    bits = _bits(bits)
    parts = arguments.several("parts", parts)
    if not parts:
        raise ValueError("parts must hold one polygon or more, got none")
    return regions.region(bits, [_sides(bits, corners) for corners in parts])


def regular(*, bits: int, sides: int, radius: float = 0.42, turn: float = 0.2) -> Region:
    """The regular polygon around the middle of the grid.

    Args:
      bits: d.
      sides: three or more.
      radius: the distance of its corners from the middle, in (0, 0.5), the side of the grid being 1.
      turn: the angle of its first corner, in radians.

    Raises:
      TypeError, ValueError: an argument out of range, or corners that float64 cannot distinguish.

    >>> regular(bits=6, sides=6)
    Region(parts=1, sides=6, bits=6)
    """
    bits = _bits(bits)
    sides = arguments.integer("sides", sides, at_least=3, at_most=2**10)
    radius = arguments.known("radius", radius, above=0.0, below=0.5)
    turn = arguments.known("turn", turn, above=-math.inf, below=math.inf)
    side = (1 << bits) - 1
    corners: list[Corner] = []
    for index in range(sides):
        angle = turn + 2 * math.pi * index / sides
        x, y = (Fraction(side) * Fraction(0.5 + radius * part) for part in (math.cos(angle), math.sin(angle)))
        corners.append((x, y))
    try:
        return convex(bits=bits, corners=corners)
    except ValueError:
        raise ValueError(
            f"radius must be so large, and turn so small, that float64 tells {sides} corners apart, got {radius} and {turn}"
        ) from None


def label(region: Region, x: UInt32[Array, "n 2 limbs"]) -> Bool[Array, "n"]:
    """c(x) for each row of x, exactly."""
    return regions.label(region, x)


def area_between(one: Region, other: Region) -> Float[Array, ""]:
    """The area of the symmetric difference, the square being 1, to the precision of floats.

    >>> square = convex(bits=16, corners=[(0, 0), (0, 2**15), (2**15, 2**15), (2**15, 0)])
    >>> half = convex(bits=16, corners=[(0, 0), (0, 2**15), (2**15, 0)])
    >>> round(float(area_between(square, half)), 4)
    0.125
    """
    arguments.instance("other", other, Region)
    regions.check_same_plane(one, other)
    return regions.area_between(one, other)


def uniform(*, bits: int, target: Region) -> Uniform:
    """All points of the grid with equal probability, labelled by the target.

    Args:
      bits: d, 1 to 64.
      target: a region of the same d.

    Raises:
      TypeError, ValueError: bits out of range, or a target that is no such region.
    """
    return distributions.uniform(bits=bits, target=target)


def masses(*, bits: int, points: Any, target: Region, p: Any = None) -> Masses:
    """Given points with given probabilities, labelled by the target: data of one's own, or the points of a region.

    Args:
      bits: d, 1 to 64.
      points: pairs (x, y) of ints in 0, ..., 2^d - 1.
      target: a region of the same d.
      p: a probability for each point, rounded to multiples of 2^-32; if not given, all are equal.

    Raises:
      TypeError, ValueError: an argument out of range, or probabilities whose sum is not 1.

    >>> target = convex(bits=4, corners=[(0, 0), (8, 0), (0, 8)])
    >>> law = masses(bits=4, points=[(1, 1), (9, 9)], target=target, p=[0.25, 0.75])
    >>> float(law.error(union(bits=4, parts=[[(0, 0), (15, 0), (15, 15), (0, 15)]])))
    0.75
    """
    return distributions.masses(bits=bits, points=points, target=target, p=p)


def _bits(bits: Any) -> int:
    return arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)


def _sides(bits: int, corners: Sequence[Corner]) -> list[tuple[Fraction, Fraction, Fraction]]:
    """p x + q y <= r of each edge."""
    given = arguments.several("corners", corners)
    pairs = [arguments.several("corners", each) for each in given]
    if len(pairs) < 3 or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"corners must be three or more pairs (x, y), got {corners!r}")
    points = [tuple(_coordinate(bits, each) for each in pair) for pair in pairs]
    points = [point for point, before in zip(points, points[-1:] + points[:-1], strict=True) if point != before]
    turns, sides = set(), []
    for (x1, y1), (x2, y2), (x3, y3) in zip(points, points[1:] + points[:1], points[2:] + points[:2], strict=True):
        turn = (x2 - x1) * (y3 - y2) - (y2 - y1) * (x3 - x2)
        turns |= {turn > 0} if turn else set()
        p, q = y2 - y1, x1 - x2  # the outer normal, if corners turn left
        if p or q:
            sides.append((p, q, p * x1 + q * y1))
    if turns == {False}:
        sides = [(-p, -q, -r) for p, q, r in sides]
    # A star or a spike turns one way, too, but has corners outside.
    if len(turns) != 1 or any(p * x + q * y > r for p, q, r in sides for x, y in points):
        raise ValueError(f"corners must turn one way, left or right, once around a convex polygon, got {corners!r}")
    return sides


def _coordinate(bits: int, value: Any) -> Fraction:
    number = regions.fraction("corners", value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"corners must lie in [0, 2^{bits}), got {value!r}")
    return number
