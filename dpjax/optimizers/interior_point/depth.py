"""The depth of a point in a multiset, min(#points <= x, #points >= x), as a piecewise constant function on a wide range."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, UInt32

from dpjax.core import logspace
from dpjax.domains import scaled, wide
from dpjax.domains.ordered import Pieces
from dpjax.domains.scaled import Scaled, Starts


def at_median(x: UInt32[Array, "rows limbs"], n_valid: Int[Array, ""]) -> Int[Array, ""]:
    """The greatest depth, for sorted points."""
    valid = jnp.arange(x.shape[0], dtype=jnp.int32) < n_valid
    middle = jnp.maximum(n_valid - 1, 0) // 2
    if isinstance(x, Scaled):
        less, equal = scaled.around(x, middle)
        sides = less | equal, ~less
    else:
        median = wide.rows_of(x)(middle)[None]
        sides = wide.less_equal(x, median), wide.less_equal(median, x)
    up_to, from_it = (jnp.sum(valid & side, dtype=jnp.int32) for side in sides)
    return jnp.minimum(up_to, from_it)


def pieces(x: UInt32[Array, "rows limbs"], n_valid: Int[Array, ""], bits: Int[Array, ""], limbs: int) -> Pieces:
    """q(x) = min(#<=x, #>=x) on {0, ..., 2^bits - 1}, for sorted points; rows = 2^b - 1.

    q grows by at most 1 when a point is added, nowhere falls, is >= 1 exactly at interior points and >= n/2 at the median.
    It is a peak. Let h be its value at the median, and c = 2 h - n the number of points, all equal to the median, that are both among the
    first h and among the last h. It goes up by one at each of the first n - h points, and at once from n - h to h at the median if c > 0.
    Right behind the median it falls back to n - h, and then by one right behind each of the last n - h points. So there are at most n + 2
    pieces; equal points beside the median make empty ones. Beyond the domain, at 2^bits, q is 0, as RecConcave requires. Positions get
    `limbs` limbs, enough for 2^bits + 1.
    """
    rows = x.shape[0]
    beyond, one = wide.power_of_two(bits, limbs), wide.one(limbs)
    end = wide.add(beyond, one)
    most = at_median(x, n_valid)
    both = 2 * most - n_valid  # c
    alone = (both > 0).astype(jnp.int32)
    top = most - both + alone  # the piece that holds the median
    # Piece i begins after i steps: n + 2 pieces, and as many more as make whole rows of lanes.
    step = jnp.arange(rows + 1 + min(rows + 1, logspace.LANES), dtype=jnp.int32)
    rising, there = step <= top, (step > 0) & (step <= 2 * top)
    later = both - 2 * alone  # points at the median without a step up or down of their own; -1: one has both
    starts: Any
    if isinstance(x, Scaled):
        point = step - 1 + jnp.where(rising, 0, later)
        chosen = x.resized(limbs).rows(jnp.clip(point[1:], 0, rows - 1))
        below = jnp.sum((point[1:] < x.below) & there[1:], dtype=jnp.int32)
        starts = Starts(points=dataclasses.replace(chosen, below=below), used=2 * top, later=top, end=end)
    else:
        row = wide.select(rising, _row_before(x, step.shape[0], jnp.int32(0)), _row_before(x, step.shape[0], later))
        start = wide.add(wide.resize(row, limbs), wide.from_uint32((~rising).astype(jnp.uint32), limbs))
        starts = wide.select(there, start, wide.select(step == 0, jnp.zeros_like(start), end[None]))
    taken = jnp.minimum(step, 2 * top)
    values = jnp.minimum(taken, 2 * top - taken)
    return Pieces(
        starts=starts,
        values=jnp.where(step == top, most, values).astype(float),
        last=wide.subtract(beyond, one),
        end=end,
        exponent=jnp.asarray(bits, jnp.int32),
        shape="peak",
    )


def _row_before(x: UInt32[Array, "rows limbs"], pieces: int, later: Int[Array, ""]) -> UInt32[Array, "pieces limbs"]:
    """x[i - 1 + later] for piece i, later from -1 to rows - 2: one run of rows, as a list of row numbers would be looked up one by one."""

    def run(x: UInt32[Array, "rows *limbs"]) -> UInt32[Array, "pieces *limbs"]:
        others = [(0, 0, 0)] * (x.ndim - 1)
        padded = lax.pad(x, np.uint32(0), [(2, pieces, 0), *others])
        return lax.dynamic_slice_in_dim(padded, 1 + later, pieces)

    return wide.along_rows(run, x)
