"""All labellings of a tiny grid by the intersection of three halfplanes, with their shares of the measure (GEO §5, Step 5).

Dictionaries find which triples of halfplanes label the grid alike: first for pairs, then for pairs with a third halfplane. A grid of side 4
has 174 halfplanes, 1,620 intersections of two and 2,733 of three.
"""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dpjax.concepts.plane import arrangement


class Table(NamedTuple):
    """All labellings by triangles.

    Attributes:
      labels: of shape (labellings, points), points as `distributions.all_points`.
      share: the share of each labelling in the measure of all triples of halfplanes.
      sides: three halfplanes for each labelling, as places in `arrangement.table`.
    """

    labels: Bool[np.ndarray, "labellings points"]
    share: Float[np.ndarray, "labellings"]
    sides: Int[np.ndarray, "labellings 3"]


class _Found(NamedTuple):
    share: float
    largest: float
    sides: tuple[int, ...]


@functools.lru_cache(maxsize=8)
def table(bits: int, measure: str) -> Table:
    """Every labelling of the grid by three halfplanes, its share of the measure, in float64, and the sides with the largest share.

    >>> [len(table(bits, "axes").share) for bits in (1, 2)], round(float(table(1, "box").share.sum()), 12)
    ([16, 2733], 1.0)
    """
    halfplanes = arrangement.table(bits, measure)
    words = halfplanes.labels @ (1 << np.arange(4**bits))
    one = {
        word: _Found(share, share, (place,))
        for place, (word, share) in enumerate(zip(words.tolist(), halfplanes.share.tolist(), strict=True))
    }
    three = _both(_both(one, one), one)
    keys = np.array(sorted(three))
    share = np.array([three[key].share for key in keys.tolist()])
    sides = np.array([three[key].sides for key in keys.tolist()], np.int32)
    return Table((keys[:, None] >> np.arange(4**bits) & 1).astype(bool), share / share.sum(), sides)


def _both(first: dict[int, _Found], second: dict[int, _Found]) -> dict[int, _Found]:
    """The intersections of one from `first` with one from `second`."""
    found: dict[int, _Found] = {}
    nothing = _Found(0.0, 0.0, ())
    for one, mine in first.items():
        for two, other in second.items():
            before = found.get(one & two, nothing)
            product = mine.largest * other.largest
            largest, sides = max((before.largest, before.sides), (product, mine.sides + other.sides))
            found[one & two] = _Found(before.share + mine.share * other.share, largest, sides)
    return found
