"""Halfplanes over {0, ..., 2^d - 1}^2 (GEO §4): labels, distributions, exact errors. A halfplane is a `Region` of one side.

>>> from dpjax.concepts import halfplanes
>>> target = halfplanes.halfplane(bits=6, p=1, q=2, r=90)
>>> law = halfplanes.uniform(bits=6, target=target)
>>> float(law.error(halfplanes.halfplane(bits=6, p=1, q=2, r=91)))  # 32 of 4,096 points
0.0078125
"""

from typing import Any

from dpjax.concepts.plane import regions
from dpjax.concepts.plane.lattice import MOST_BITS
from dpjax.concepts.plane.regions import Region
from dpjax.concepts.polygons import label, masses, uniform
from dpjax.core import arguments

__all__ = ["Region", "halfplane", "label", "masses", "uniform"]


def halfplane(*, bits: int, p: Any, q: Any, r: Any) -> Region:
    """All points with p x + q y <= r, with the line moved outwards to the lattice, by less than 2^(d + 1 - t) along an axis.

    t is `dpjax.concepts.plane.lattice.lattice(bits, "axes").fraction`: 23 at d = 6, 157 at d = 64.

    Args:
      bits: d, 1 to 64.
      p, q, r: ints, floats or fractions; p and q not both 0.

    Raises:
      TypeError, ValueError: bits out of range, p, q or r not a number, or p = q = 0.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)
    line = [regions.fraction(name, value) for name, value in (("p", p), ("q", q), ("r", r))]
    if line[0] == line[1] == 0:
        raise ValueError(f"p and q must not both be 0, got {p!r} and {q!r}")
    return regions.region(bits, [[(line[0], line[1], line[2])]])
