"""A naive reference for Kearns's learner of rectangles (BNS §3.5): the cells of an axis by lists, and the law of a side."""

import bisect
import itertools
import math
from collections.abc import Sequence

Side = tuple[int, int] | None  # None where nothing is found


def cells(cuts: Sequence[int], positive: Sequence[int]) -> list[int]:
    """The numbers of positive examples below z_1, at z_1, between z_1 and z_2, ..., for distinct increasing cuts.

    >>> cells([3, 7], [0, 3, 3, 5, 9])
    [1, 2, 1, 0, 1]
    """
    found = [0] * (2 * len(cuts) + 1)
    for x in positive:
        place = bisect.bisect_left(cuts, x)
        found[2 * place + (place < len(cuts) and cuts[place] == x)] += 1
    return found


def side(cuts: Sequence[int], significant: Sequence[bool]) -> Side:
    """The side between the inner ends of the outermost significant cells.

    >>> side([3, 7], [1, 0, 0, 0, 1]), side([3, 7], [0, 0, 1, 0, 0]), side([3, 7], [0, 1, 0, 0, 0])
    ((3, 7), None, (3, 3))
    """
    where = [cell for cell, flag in enumerate(significant) if flag]
    if not where:
        return None
    ends = []
    for cell, step in ((where[0], 1), (where[-1], -1)):
        place = cell if cell % 2 else cell + step
        if not 0 < place < len(significant):
            return None
        ends.append(cuts[place // 2])
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None


def side_law(cuts: Sequence[int], positive: Sequence[int], *, threshold: int, epsilon: float) -> dict[Side, float]:
    """P[side] over the noise: every set of significant cells, one after the other.

    >>> law = side_law([3, 7], [3] * 9 + [7] * 9, threshold=4, epsilon=2.0)
    >>> max(law, key=law.get), round(sum(law.values()), 9)
    ((3, 7), 1.0)
    """
    r = math.exp(-epsilon)

    def passes(count: int) -> float:
        missing = threshold - count
        return r**missing / (1 + r) if missing > 0 else 1 - r ** (1 - missing) / (1 + r)

    each = [passes(count) for count in cells(cuts, positive)]
    law: dict[Side, float] = {}
    for flags in itertools.product((False, True), repeat=len(each)):
        p = math.prod(q if flag else 1 - q for flag, q in zip(flags, each, strict=True))
        found = side(cuts, flags)
        law[found] = law.get(found, 0.0) + p
    return law
