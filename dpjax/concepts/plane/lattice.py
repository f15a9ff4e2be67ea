"""Halfplanes as lattice points of the dual plane (GEO §4), with an exact test of the side on which a point lies.

The points are those of {0, ..., 2^d - 1}^2. A halfplane is {v >= a u + b}, where (u, v) are the coordinates of a *chart*:

| measure | charts | slopes a | heights b |
|---|---|---|---|
| "axes" | (x, y), (x, y'), (y, x), (y, x') | [-1, 1) | [-D, 2 D) |
| "box" (GEO) | (x, y), (x, y') | [-2 D^2, 2 D^2) | [-2 D^2, 2 D^2), in the second chart D - 1 more |

with D = 2^d and z' = D - 1 - z. In the second chart of the box v >= a u + b is y <= -a x + (D - 1 - b), so both charts together are
GEO's square of (a, b) for z = 1 and for z = -1. Every halfplane agrees on all points with one from either row (GEO Observation 4.2; a line
of slope above 1 in (x, y) has a slope below 1 in (y, x)). GEO draws lines uniformly from its squares, of area 32 D^4; "axes" has area 24 D.

**Areas.** Every piece between lines of the dual plane, those of points (u, v) and the edges of the chart, has area at least 1/(2 D^3): its
corners have rational coordinates (p/q, r/q) with a common denominator q <= D - 1 (two points' lines cross at slope (v1 - v2)/(u1 - u2);
at the edges, heights are whole and slopes are whole or over u). A triangle of three corners has area |det (p, r, q)|/(2 q1 q2 q3), and
the determinant is an integer. GEO's Claim 4.6 says 1/(4 (D - 1)^4), by an argument that does not hold (an area is not the square of a
side).

**Lattice.** Slopes and heights are multiples of 2^-t, so that sides are decided by integers: nothing is rounded. Privacy is that of the
exponential mechanism over these finitely many halfplanes. t is large enough that a piece as above holds as many lattice points as its
area says, up to a share of 2^(2d+1-t) <= 2^-10 (from its perimeter over its area), which is 2^-28 at d = 64.
"""

import functools
import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.domains import wide

MEASURES = ("axes", "box")
MOST_BITS = 64
_SPARE = 11  # the least value of t - 2 d
Columns = list[Array]  # the words of a number, the least significant first, each an array over (lines, points)


class Lattice(NamedTuple):
    """The numbers that describe the lattice.

    Attributes:
      bits: d.
      measure: "axes" or "box".
      limbs: of slopes and heights, which are counted from the least one, in steps of 2^-t.
      fraction: t.
      reach: slopes lie in [-2^reach, 2^reach).
      lows: the least height of each chart.
      blocks: how many blocks of 2^log_block steps the heights have.
      log_block: log2 of the number of steps of a block.
    """

    bits: int
    measure: str
    limbs: int
    fraction: int
    reach: int
    lows: tuple[int, ...]
    blocks: int
    log_block: int

    @property
    def log_slopes(self) -> int:
        """log2 of the number of slopes."""
        return self.reach + 1 + self.fraction

    @property
    def charts(self) -> int:
        """The number of charts."""
        return len(self.lows)

    @property
    def spans_all(self) -> bool:
        """Whether all points are above the lines of least height and below those of greatest height.

        Also, slopes then move a line by less than the heights span.
        """
        return self.measure == "axes"

    @property
    def log_size(self) -> float:
        """ln of the area of all charts over the least area of a piece."""
        d, log2 = self.bits, math.log(2)
        area = (7 * d + 6) * log2 if self.measure == "box" else math.log(48) + 4 * d * log2
        return area  # 32 D^4 * 2 D^3, or 24 D * 2 D^3


@functools.lru_cache(maxsize=256)
def lattice(bits: int, measure: str) -> Lattice:
    """The lattice for points of {0, ..., 2^bits - 1}^2.

    >>> lattice(6, "axes").limbs, lattice(6, "axes").fraction, lattice(64, "box").limbs
    (1, 23, 11)
    """
    side = 1 << bits
    box = measure == "box"
    reach = 2 * bits + 1 if box else 0
    # The numbers compared to decide a side are below 2^(t + the first term).
    needed = (3 * bits + 3 if box else bits + 3) + 2 * bits + _SPARE
    limbs = wide.limbs_for(needed)
    fraction = 32 * limbs - (needed - 2 * bits - _SPARE)
    if box:
        lows: tuple[int, ...] = (-2 * side**2, side - 1 - 2 * side**2)
        return Lattice(bits, measure, limbs, fraction, reach, lows, 1, 2 * bits + 2 + fraction)
    return Lattice(bits, measure, limbs, fraction, reach, (-side,) * 4, 3, bits + fraction)


def above(
    grid: Lattice,
    chart: Int[Array, "lines"],
    slope: UInt32[Array, "lines limbs"],
    height: UInt32[Array, "lines limbs"],
    columns: UInt32[Array, "2 words n"],
) -> Bool[Array, "lines n"]:
    """Whether v >= a u + b, for each line and point (`columns_of` a sample).

    With slope and height counted from the least, a = slope 2^-t - 2^reach and b = height 2^-t + low, this is

        2^t (v + 2^reach u - low) >= slope u + height,

    and nothing in it is negative.
    """
    u, v = _coordinates(grid, chart, columns)
    constants = np.array([[_word(-low << grid.fraction, i) for i in range(grid.limbs)] for low in grid.lows], np.uint32)
    constant = jnp.asarray(constants)[chart]
    left = _plus(
        _plus(_shifted(v, grid.fraction, grid.limbs), _shifted(u, grid.fraction + grid.reach, grid.limbs)),
        [constant[:, i, None] for i in range(grid.limbs)],
    )
    right = _times([each[:, None] for each in wide.columns(slope)[::-1]], u, grid.limbs)
    right = _plus(right, [each[:, None] for each in wide.columns(height)[::-1]])
    at_least = left[0] >= right[0]
    for a, b in zip(left[1:], right[1:], strict=True):
        at_least = (a > b) | ((a == b) & at_least)
    return at_least


def _word(number: int, place: int) -> int:
    return number >> 32 * place & 0xFFFFFFFF


def columns_of(grid: Lattice, x: UInt32[Array, "n 2 limbs"]) -> UInt32[Array, "2 words n"]:
    """The words of both coordinates, the least significant first, as rows: vector instructions run along the points."""
    return jnp.moveaxis(wide.resize(x, wide.limbs_for(grid.bits))[..., ::-1], 0, -1)


def _coordinates(
    grid: Lattice, chart: Int[Array, "lines"], columns: UInt32[Array, "2 words n"]
) -> tuple[Columns, Columns]:
    """(u, v) in each line's chart; z' = 2^d - 1 - z is z with all its bits flipped."""
    swap, reflect = (chart // 2 == 1)[:, None], (chart % 2 == 1)[:, None]
    u, v = [], []
    for place in range(columns.shape[1]):
        x, y = columns[0, place][None], columns[1, place][None]
        mask = np.uint32(_word((1 << grid.bits) - 1, place))
        u.append(jnp.where(swap, y, x))
        v.append(jnp.where(swap, x, y) ^ jnp.where(reflect, mask, np.uint32(0)))
    return u, v


def product(a: UInt32[Array, "*n limbs"], b: UInt32[Array, "*n words"]) -> UInt32[Array, "*n limbs"]:
    """a * b of wide integers, modulo 2^(32 limbs).

    >>> wide.to_ints(product(wide.from_ints([2**40 + 1], 96), wide.from_ints([3 * 2**32 + 5], 64)))
    [14167099454119378681861]
    """
    columns = _times(wide.columns(a)[::-1], wide.columns(b)[::-1], a.shape[-1])
    return jnp.stack(columns[::-1], axis=-1)


# Schoolbook arithmetic on columns of words, modulo 2^(32 limbs): one fused pass over the points, where `wide` would assemble the words
# of every intermediate number in memory.


def _shifted(number: Columns, by: int, limbs: int) -> Columns:
    """number * 2^by."""
    whole, bits = divmod(by, 32)
    zero = jnp.zeros_like(number[0])
    padded = [zero] * whole + number + [zero] * limbs
    if bits == 0:
        return padded[:limbs]
    up, down = np.uint32(bits), np.uint32(32 - bits)
    return [(padded[i] << up) | (padded[i - 1] >> down if i else zero) for i in range(limbs)]


def _plus(a: Columns, b: Columns) -> Columns:
    """a + b."""
    total, carry = [], None
    for one, other in zip(a, b, strict=True):
        part = one + other
        over = part < one
        if carry is not None:
            part, over = part + carry.astype(jnp.uint32), over | ((part == np.uint32(0xFFFFFFFF)) & carry)
        total.append(part)
        carry = over
    return total


def _times(a: Columns, b: Columns, limbs: int) -> Columns:
    """a * b: a row of partial products for each word of b, shifted by its place."""
    shape = jnp.broadcast_shapes(a[0].shape, b[0].shape)
    zero = jnp.zeros(shape, jnp.uint32)
    total = None
    for place, word in enumerate(b[:limbs]):
        kept = limbs - place
        low = [zero] * place + [each * word for each in a[:kept]]
        high = [zero] * (place + 1) + [wide.high_product(each, word) for each in a[: kept - 1]]
        row = _plus(low, high[:limbs])
        total = row if total is None else _plus(total, row)
    return total  # type: ignore[return-value]
