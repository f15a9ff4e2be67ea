"""Unions of intersections of halfplanes: labels exactly, areas to the precision of floats."""

import math
import numbers
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.plane.lattice import Lattice, above, columns_of, lattice
from dpjax.core import arguments, show
from dpjax.core.pytree import frozen, static
from dpjax.data.examples import Examples
from dpjax.domains import wide


@frozen
class Region:
    """A union of parts, each an intersection of halfplanes; build it by `dpjax.concepts.polygons` or `halfplanes`.

    Attributes:
      chart: the chart of each halfplane; int32 of shape (parts, sides).
      slope, height: those of each halfplane, in steps from the least; uint32 of shape (parts, sides, limbs). See `lattice.lattice`.
      bits: d (static).
      measure: the measure of the lattice (static).
    """

    chart: Int[Array, "parts sides"]
    slope: UInt32[Array, "parts sides limbs"]
    height: UInt32[Array, "parts sides limbs"]
    bits: int = static()
    measure: str = static()

    def __repr__(self) -> str:
        if np.ndim(self.chart) != 2:  # a batch
            return f"Region(chart={show.short(self.chart)}, bits={self.bits})"
        parts, sides = np.shape(self.chart)
        return f"Region(parts={parts}, sides={sides}, bits={self.bits})"

    @property
    def grid(self) -> Lattice:
        """The lattice whose points are the region's halfplanes."""
        return lattice(self.bits, self.measure)

    def predict(self, data: Any) -> Bool[Array, "rows"]:
        """The region's label of every row of `dpjax.data.examples.Examples`."""
        return label(self, arguments.instance("data", data, Examples).x)


def label(region: Region, x: UInt32[Array, "n 2 limbs"]) -> Bool[Array, "n"]:
    """c(x) for each row of x, exactly.

    Raises:
      TypeError: no region, or x not a uint32 array. ValueError: x of another shape, or, unless x is traced, a coordinate outside the grid.
    """
    limbs = wide.limbs_for(arguments.instance("region", region, Region).bits)
    if getattr(x, "dtype", None) != np.uint32:
        raise TypeError(f"x must be a uint32 array, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.shape[1:] != (2, limbs):
        raise ValueError(f"x must have shape (rows, 2, {limbs}), got {x.shape}")
    if not arguments.is_traced(x):
        wide.check_below("x", np.asarray(x).reshape(-1, limbs), region.bits)
    grid, columns = region.grid, columns_of(region.grid, x)

    def cut(left: Array, line: tuple[Array, Array, Array]) -> tuple[Array, None]:
        chart, slope, height = line
        return left & above(grid, chart[None], slope[None], height[None], columns)[0], None

    def joined(found: Array, part: Any) -> tuple[Array, None]:
        return found | lax.scan(cut, jnp.ones(x.shape[0], bool), part)[0], None

    return lax.scan(joined, jnp.zeros(x.shape[0], bool), (region.chart, region.slope, region.height))[0]


def fraction_lines(region: Region) -> list[list[tuple[Fraction, Fraction, Fraction]]]:
    """Each halfplane as (p, q, r), p x + q y <= r, exactly; for pictures and plain references."""
    grid, found = region.grid, []
    for chart, slope, height in zip(
        *(np.asarray(each) for each in (region.chart, region.slope, region.height)), strict=True
    ):
        part = []
        for c, steps, above_low in zip(chart.tolist(), wide.to_ints(slope), wide.to_ints(height), strict=True):
            a = Fraction(steps, 1 << grid.fraction) - (1 << grid.reach)
            b = Fraction(above_low, 1 << grid.fraction) + grid.lows[c]
            p, q, r = (a, Fraction(1), (1 << grid.bits) - 1 - b) if c % 2 else (a, Fraction(-1), -b)
            part.append((q, p, r) if c // 2 else (p, q, r))
        found.append(part)
    return found


# ----------------------------------------------------------------------------------------------------------------- areas


def lines(region: Region) -> Float[Array, "parts sides 3"]:
    """(p, q, r) of p X + q Y <= r, each scaled to max(|p|, |q|) = 1, where point i of an axis is the middle of [i, i + 1]/2^d."""
    grid = region.grid
    chart, side = region.chart, 2.0**grid.bits
    zeros = wide.from_ints([-low << grid.fraction for low in grid.lows], 32 * grid.limbs)[chart]
    middle = wide.from_ints([1 << (grid.reach + grid.fraction)], 32 * grid.limbs)[0]

    def slope_and_height(log_scale: int) -> tuple[Array, Array]:
        a = _signed(region.slope, middle, -grid.fraction - log_scale)
        b = _signed(region.height, zeros, -grid.fraction - grid.bits - log_scale)
        return a, b + (2.0**-log_scale - a) * (0.5 / side)

    # Lines of slope above 1 are divided by it; in between, numbers are scaled so that neither they nor their inverses overflow.
    log_scale = grid.reach // 2
    steep, cut = slope_and_height(log_scale)
    flat, height = slope_and_height(0)
    large = jnp.abs(steep) >= 2.0**-log_scale
    by = jnp.where(large, jnp.abs(steep), 1.0)
    p, q = jnp.where(large, jnp.sign(steep), flat), -jnp.where(large, 2.0**-log_scale / by, 1.0)
    r = -jnp.where(large, cut / by, height)
    reflected = chart % 2 == 1
    q, r = jnp.where(reflected, -q, q), jnp.where(reflected, r - q, r)
    return jnp.where((chart // 2 == 1)[..., None], jnp.stack([q, p, r], -1), jnp.stack([p, q, r], -1))


def _float(number: UInt32[Array, "*n limbs"], exponent: int) -> Float[Array, "*n"]:
    """number * 2^exponent, scaled in two steps: a power that is not a float by itself may belong to a limb that is 0."""
    limbs = number.shape[-1]
    powers = [32 * (limbs - 1 - i) + exponent for i in range(limbs)]
    scaled = [number[..., i].astype(float) * 2.0 ** (e // 2) * 2.0 ** (e - e // 2) for i, e in enumerate(powers)]
    return sum(scaled)  # type: ignore[return-value]


def _signed(number: UInt32[Array, "*n limbs"], zero: UInt32[Array, "..."], exponent: int) -> Float[Array, "*n"]:
    """(number - zero) * 2^exponent, subtracted before it is rounded."""
    at = jnp.broadcast_to(zero, number.shape)
    below = wide.less(number, at)
    size = _float(wide.subtract(wide.maximum(number, at), wide.minimum(number, at)), exponent)
    return jnp.where(below, -size, size)


def check_same_plane(hypothesis: Any, target: Region) -> None:
    """TypeError if the hypothesis is not a region, ValueError if its grid is another one or it is a batch."""
    arguments.instance("hypothesis", hypothesis, Region)
    if hypothesis.bits != target.bits:
        raise ValueError(f"hypothesis must be a region of {target.bits} bits, got {hypothesis.bits}")
    if hypothesis.chart.ndim != 2:
        raise ValueError(
            f"hypothesis must be one region, with halfplanes of shape (parts, sides), got {hypothesis.chart.shape}"
        )


def difference(one: Region, other: Region) -> Float[Array, ""]:
    """The area of the symmetric difference of two regions, the square being 1.

    All crossings of lines cut the square into strips, the lines cut a strip into trapezoids, and the middle of each trapezoid decides for
    all of it. Each of K lines' crossings is rounded: to about K 2^-24 in float32.
    """
    check_same_plane(one, other)
    mine, others = lines(one), lines(other)
    edges = jnp.array([[0.0, 1.0, 1.0], [0.0, -1.0, 0.0]])
    each = jnp.concatenate([mine.reshape(-1, 3), others.reshape(-1, 3), edges])
    first, second = (each[index] for index in np.triu_indices(each.shape[0], 1))
    det = first[:, 0] * second[:, 1] - second[:, 0] * first[:, 1]
    crossing = (first[:, 2] * second[:, 1] - second[:, 2] * first[:, 1]) / jnp.where(det == 0, 1.0, det)
    ends = jnp.sort(jnp.clip(jnp.concatenate([jnp.where(det == 0, 0.0, crossing), jnp.array([0.0, 1.0])]), 0.0, 1.0))
    widths, middles = jnp.diff(ends), (ends[1:] + ends[:-1]) / 2

    def strip(x: Array) -> Array:
        heights = (each[:, 2] - each[:, 0] * x) / jnp.where(each[:, 1] == 0, 1.0, each[:, 1])
        heights = jnp.sort(jnp.clip(jnp.where(each[:, 1] == 0, 0.0, heights), 0.0, 1.0))
        y = (heights[1:] + heights[:-1]) / 2
        differ = _holds(mine, x, y) != _holds(others, x, y)
        return jnp.sum(jnp.where(differ, jnp.diff(heights), 0.0))

    return jnp.sum(widths * lax.map(strip, middles, batch_size=256))


def _holds(region: Float[Array, "parts sides 3"], x: Float[Array, ""], y: Float[Array, "n"]) -> Bool[Array, "n"]:
    """Which points (x, y) the region holds."""
    p, q, r = (region[..., i][..., None] for i in range(3))
    return jnp.any(jnp.all(p * x + q * y[None, None] <= r, axis=1), axis=0)


@jax.jit
def area_between(one: Region, other: Region) -> Float[Array, ""]:
    """`difference`, compiled."""
    return difference(one, other)


# --------------------------------------------------------------------------------------------------------- from fractions


def halfplane(bits: int, p: Fraction, q: Fraction, r: Fraction) -> tuple[int, int, int]:
    """(chart, slope, height) of {p x + q y <= r} in the measure "axes".

    Slope and height are rounded down to the lattice, so that the halfplane grows, by less than 2^(bits + 1 - t) along an axis.
    """
    grid, most = lattice(bits, "axes"), (1 << bits) - 1
    swap = abs(p) > abs(q)
    along, across = (q, p) if swap else (p, q)  # of u and v
    a = along / abs(across)
    b = most - r / across if across > 0 else r / across
    steps = [math.floor((a + 1) * 2**grid.fraction), math.floor((b - grid.lows[0]) * 2**grid.fraction)]
    slope, height = (
        min(max(step, 0), end - 1) for step, end in zip(steps, (1 << grid.log_slopes, 3 << grid.log_block), strict=True)
    )
    return 2 * swap + (across > 0), slope, height


def fraction(name: str, value: Any) -> Fraction:
    """The number as an exact fraction; TypeError for anything that is not a finite number.

    >>> fraction("p", np.int64(3)), fraction("p", 0.5)
    (Fraction(3, 1), Fraction(1, 2))
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, numbers.Rational | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{name} must be a finite number, got {value!r}")
    return Fraction(value)


def region(bits: int, parts: Sequence[Sequence[tuple[Fraction, Fraction, Fraction]]]) -> Region:
    """The union of intersections of halfplanes p x + q y <= r; parts with fewer sides repeat their last one."""
    sides = max(map(len, parts))
    grid, found = lattice(bits, "axes"), []
    for part in parts:
        found += [halfplane(bits, *map(Fraction, line)) for line in part]
        found += found[-1:] * (sides - len(part))
    charts, slopes, heights = zip(*found, strict=True)
    shape = (len(parts), sides)
    return Region(
        chart=jnp.array(charts, jnp.int32).reshape(shape),
        slope=wide.from_ints(slopes, 32 * grid.limbs).reshape(*shape, -1),
        height=wide.from_ints(heights, 32 * grid.limbs).reshape(*shape, -1),
        bits=bits,
        measure="axes",
    )
