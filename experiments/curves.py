"""Helpers of several experiments for curves: where two cross, and an axis on which all scales around a point are visible."""

import itertools
import math

from experiments.records import Row


def crossing(first: list[Row], second: list[Row]) -> tuple[float, float] | None:
    """Where the first curve rises past the second, interpolated on log-log axes between common x; None if it does not."""
    by_x = {row.x: row.value for row in second}
    shared = [(math.log(r.x), math.log(r.value) - math.log(by_x[r.x]), math.log(r.value)) for r in first if r.x in by_x]
    for (x0, gap0, y0), (x1, gap1, y1) in itertools.pairwise(shared):
        if gap0 < 0 <= gap1:
            share = -gap0 / (gap1 - gap0)
            return math.exp(x0 + share * (x1 - x0)), math.exp(y0 + share * (y1 - y0))
    return None


def signed_log2(distance: int) -> float:
    """sign(distance) log2(1 + |distance|): zero at the target, one unit per octave.

    >>> signed_log2(-7), signed_log2(0)
    (-3.0, 0.0)
    """
    return math.copysign(math.log2(1 + abs(distance)), distance) if distance else 0.0
