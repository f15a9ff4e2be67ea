"""Axis-aligned rectangles over X_d^D, X_d = {0, ..., 2^d - 1}: c(x) = 1 iff low_i <= x_i <= high_i on every axis; VC dimension 2D.

Also product distributions on X_d^D as the learners meet them: a target rectangle, labelled examples, and the exact population error
of any rectangle. A coordinate is an increasing function of one 32-bit uniform fraction, with values in X_d, so the coordinates inside
the target's side are an interval of fractions: positive examples can be drawn alone, and the least k of many of them without the others.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, UInt32

from dpjax.concepts import thresholds
from dpjax.concepts.distribution import Distribution
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import LARGEST_PMF
from dpjax.data.examples import Examples
from dpjax.domains import wide


@frozen
class Rectangle:
    """All x with low_i <= x_i <= high_i on every axis i; empty, the all-zero concept, if low_i > high_i on one.

    Attributes:
      low, high: uint32 of shape (axes, limbs), as made by `rectangle`.
    """

    low: UInt32[Array, "axes limbs"]
    high: UInt32[Array, "axes limbs"]


def rectangle(*, bits: int, low: Sequence[int], high: Sequence[int]) -> Rectangle:
    """The rectangle with these sides.

    Args:
      bits: d, 1 to 4096.
      low, high: one coordinate in 0, ..., 2^d - 1 per axis.

    Raises:
      TypeError, ValueError: bits or a coordinate out of range, no axes, or not as many lows as highs.

    >>> box = rectangle(bits=64, low=[0, 2**40], high=[2**63, 2**41])
    >>> to_ints(box)
    ([0, 1099511627776], [9223372036854775808, 2199023255552])
    """
    low, high = arguments.several("low", low), arguments.several("high", high)
    if len(low) != len(high) or not low:
        raise ValueError(f"high must have one coordinate an axis, as low does, got {len(high)} for {len(low)} axes")
    return Rectangle(low=wide.from_ints(low, bits, "low"), high=wide.from_ints(high, bits, "high"))


def nothing(axes: int, limbs: int) -> Rectangle:
    """The all-zero concept: low is the greatest number and high 0 on every axis."""
    shape = (arguments.size("axes", axes), arguments.size("limbs", limbs))
    return Rectangle(low=jnp.full(shape, np.uint32(2**32 - 1)), high=jnp.zeros(shape, jnp.uint32))


def listed(bits: Int[ArrayLike, ""], axes: int) -> int:
    """How many rectangles `numbered` has; TypeError or ValueError for traced bits, and for more than can be listed."""
    digits = 2 * axes * arguments.known_integer("bits", bits)
    return (1 << arguments.integer("2 * axes * bits", digits, at_least=1, at_most=LARGEST_PMF)) + 1


def numbered(index: UInt32[Array, ""], bits: Int[ArrayLike, ""], axes: int, limbs: int) -> Rectangle:
    """The rectangle of this number: digits of `bits` bits, low and high face of the first axis, of the second, ...; then all-zero.

    >>> to_ints(numbered(jnp.uint32(0x1234), 4, 2, 1))
    ([1, 3], [2, 4])
    """
    bits = jnp.asarray(bits, jnp.int32)
    places = bits * jnp.arange(2 * axes - 1, -1, -1, dtype=jnp.int32)
    digits = (index >> places.astype(jnp.uint32)) & ((jnp.uint32(1) << bits.astype(jnp.uint32)) - 1)
    faces = wide.from_uint32(digits, limbs)
    last = index >> (places[0] + bits).astype(jnp.uint32) > 0
    zero = nothing(axes, limbs)
    return Rectangle(low=jnp.where(last, zero.low, faces[0::2]), high=jnp.where(last, zero.high, faces[1::2]))


def to_ints(box: Rectangle) -> tuple[list[int], list[int]]:
    """(low, high) as Python ints."""
    return wide.to_ints(box.low), wide.to_ints(box.high)


def label(box: Rectangle, x: UInt32[Array, "n axes limbs"]) -> Int[Array, "n"]:
    """c(x) for each row of x.

    Raises:
      TypeError: a box that is not a rectangle. ValueError: x of another shape.

    >>> box = rectangle(bits=8, low=[0, 10], high=[5, 20])
    >>> label(box, wide.from_ints([5, 20, 5, 21], 8).reshape(2, 2, 1)).tolist()
    [1, 0]
    """
    arguments.instance("box", box, Rectangle)
    if x.shape[1:] != box.low.shape:
        raise ValueError(f"x must have shape (rows, axes, limbs) with the box's {box.low.shape}, got {x.shape}")
    inside = wide.less_equal(box.low[None], x) & wide.less_equal(x, box.high[None])
    return jnp.all(inside, axis=-1).astype(jnp.int32)


# --------------------------------------------------------------------------------------------------- distributions


class Product(Distribution):
    """Independent coordinates; what the distributions below share.

    Attributes:
      target: the rectangle that labels.
      first, width: a coordinate is on the target's side iff its fraction is one of first, ..., first + width - 1 (one of each per axis).
    """

    target: Rectangle
    first: UInt32[Array, "axes"]
    width: UInt32[Array, "axes"]

    def quantile(self, v: UInt32[Array, "axes n"]) -> UInt32[Array, "axes n limbs"]:
        """The coordinate at each fraction v 2^-32 of each axis; increasing in v."""
        raise NotImplementedError

    def below(self, x: UInt32[Array, "axes more"]) -> Float[Array, "axes"]:
        """P[coordinate < x] for one x in 0, ..., 2^d per axis."""
        raise NotImplementedError

    def inside(self, v: UInt32[Array, "axes n"]) -> UInt32[Array, "axes n limbs"]:
        """The coordinate at each fraction v 2^-32 of its law given that the example is positive."""
        return self.quantile(self.first[:, None] + wide.high_product(v, self.width[:, None]))

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Examples:
        """n independent examples labelled by the target."""
        axes = self.first.shape[0]
        # Example by example, so that the first ones are the same for any capacity.
        words = random.bits(key, capacity * axes).reshape(capacity, axes).T
        x = jnp.moveaxis(self.quantile(words), 0, 1)
        return Examples(x=x, y=label(self.target, x), n_valid=n)

    @jax.jit
    def mass(self, box: Rectangle) -> Float[Array, ""]:
        """P[x in the rectangle], the product over its sides."""
        return jnp.prod(self._sides(box))

    def error(self, hypothesis: Rectangle) -> Float[Array, ""]:
        """P[hypothesis and target label x differently] = P[h] + P[t] - 2 P[h and t], accurate to a few roundings of 1.

        Raises:
          TypeError: a hypothesis that is not a rectangle. ValueError: one with another number of axes or limbs.
        """
        arguments.instance("hypothesis", hypothesis, Rectangle)
        if hypothesis.low.shape != self.target.low.shape:
            raise ValueError(
                f"hypothesis must have faces of shape {self.target.low.shape}, as the target's, got {hypothesis.low.shape}"
            )
        return self._error(hypothesis)

    @jax.jit
    def _error(self, hypothesis: Rectangle) -> Float[Array, ""]:
        both = Rectangle(
            low=wide.maximum(hypothesis.low, self.target.low), high=wide.minimum(hypothesis.high, self.target.high)
        )
        return self.mass(hypothesis) + self.mass(self.target) - 2 * self.mass(both)

    def _sides(self, box: Rectangle) -> Float[Array, "axes"]:
        """P[low_i <= x_i <= high_i], 0 where low_i > high_i."""
        limbs = box.low.shape[-1] + 1  # high + 1 may be 2^d
        end = wide.resize(box.high, limbs)
        end = wide.add(end, wide.one_like(end))
        return jnp.maximum(self.below(end) - self.below(wide.resize(box.low, limbs)), 0.0)


@frozen
class UniformProduct(Product):
    """Uniform on X_d^D; for d > 32 each coordinate is uniform on the 2^32 multiples of 2^(d-32)."""

    target: Rectangle
    first: UInt32[Array, "axes"]
    width: UInt32[Array, "axes"]
    bits: Int[Array, ""]

    def _axis(self, limbs: int) -> thresholds.Uniform:
        return thresholds.Uniform(target=jnp.zeros((limbs,), jnp.uint32), bits=self.bits, limbs=limbs)

    def quantile(self, v: UInt32[Array, "axes n"]) -> UInt32[Array, "axes n limbs"]:
        """floor(v 2^d / 2^32)."""
        axis = self._axis(self.target.low.shape[-1])
        return jax.vmap(axis.quantile)(v)

    def below(self, x: UInt32[Array, "axes more"]) -> Float[Array, "axes"]:
        """The share of grid points below x."""
        return jax.vmap(self._axis(x.shape[-1]).error)(x)


@frozen
class LogUniformProduct(Product):
    """Every scale of the distance from a face has the same mass: x_i = face +- floor(2^U), U uniform on [0, octaves).

    Each face of an axis has half of the mass, of which the share `width` 2^-32 lies on the target's side of it: the hard distribution, as
    for thresholds. A fraction is stretched to the half of `thresholds.LogUniform` by float32 arithmetic: drawn masses differ from those of
    `below` by less than 2^-22.
    """

    target: Rectangle
    first: UInt32[Array, "axes"]
    width: UInt32[Array, "axes"]
    octaves: Int[Array, "axes"]

    def quantile(self, v: UInt32[Array, "axes n"]) -> UInt32[Array, "axes n limbs"]:
        """Outside left, inside left, inside right, outside right of the target's side, as v grows."""
        return jax.vmap(self._coordinates)(self.target.low, self.target.high, self.octaves, self.first, v)

    def _coordinates(self, low: Array, high: Array, octaves: Array, outside: Array, v: Array) -> Array:
        """`quantile` on one axis, whose first `outside` fractions and last ones are not on the target's side."""
        half, one = np.uint32(1 << 31), np.uint32(1)
        right = v >= half
        mirrored = jnp.where(right, ~v, v)  # the two halves are mirror images
        inside = mirrored >= outside
        zone = jnp.where(inside, half - outside, outside)
        share = jnp.where(inside, mirrored - outside, mirrored).astype(jnp.float32) / zone.astype(jnp.float32)
        place = jnp.minimum((share * np.float32(2.0**31)).astype(jnp.uint32), half - one)
        place = jnp.where(inside, half + place, place)
        near_low, near_high = _around(low, octaves).quantile(place), _around(high, octaves).quantile(~place)
        return wide.select(right, near_high, near_low)

    def below(self, x: UInt32[Array, "axes more"]) -> Float[Array, "axes"]:
        """The mean of the two faces' own laws."""
        outside = self.first.astype(float) * 2.0**-31
        low, high = (wide.resize(face, x.shape[-1]) for face in (self.target.low, self.target.high))
        return (self._below(low, x, outside) + self._below(high, x, 1 - outside)) / 2

    def _below(self, face: Array, x: Array, left: Array) -> Float[Array, "axes"]:
        """P[coordinate < x] among those around a face, of which the share `left` lies left of it."""
        between = 2 * jax.vmap(lambda c, o, h: _around(c, o).error(h))(face, self.octaves, x)
        return jnp.where(wide.less(face, x), left + (1 - left) * between, left * (1 - between))


def _around(face: UInt32[Array, "limbs"], octaves: Int[Array, ""]) -> thresholds.LogUniform:
    """The law of coordinates around one face."""
    return thresholds.LogUniform(target=face, octaves=octaves, limbs=face.shape[0])


def _target(bits: int, low: Sequence[int], high: Sequence[int]) -> tuple[Rectangle, int, list[int], list[int]]:
    """The rectangle, and the same numbers as Python ints, which may be of any length."""
    target = rectangle(bits=bits, low=low, high=high)
    return target, int(bits), [int(face) for face in low], [int(face) for face in high]


def uniform(*, bits: int, low: Sequence[int], high: Sequence[int]) -> UniformProduct:
    """Uniform on X_bits^D with the target rectangle [low, high].

    Raises:
      TypeError, ValueError: as for `rectangle`; a side without a grid point.

    >>> d = uniform(bits=8, low=[0, 0], high=[127, 255])
    >>> float(d.mass(d.target)), float(d.error(nothing(2, 1)))
    (0.5, 0.5)
    """
    target, bits, low, high = _target(bits, low, high)
    step, unit = 1 << max(bits - 32, 0), 1 << max(32 - bits, 0)
    starts = [-(-side // step) * unit for side in low]
    widths = [min((end // step + 1) * unit - start, 2**32 - 1) for start, end in zip(starts, high, strict=True)]
    if min(widths) <= 0:
        raise ValueError(f"low and high must leave a grid point on every side, got low = {low}, high = {high}")
    return UniformProduct(
        target=target,
        first=jnp.asarray(np.asarray(starts, np.uint32)),
        width=jnp.asarray(np.asarray(widths, np.uint32)),
        bits=jnp.int32(bits),
    )


def log_uniform(*, bits: int, low: Sequence[int], high: Sequence[int], mass: float = 0.5) -> LogUniformProduct:
    """LogUniform around the faces of [low, high], with as many octaves as fit; the target has this mass.

    Args:
      bits: d.
      low, high: the target's faces; at least 4 apart, at least 2 from the ends of the domain.
      mass: in (0, 1), with sides whose shares are multiples of 2^-31.

    Raises:
      TypeError, ValueError: as for `rectangle`; mass out of range, or too small for such a side; no room for an octave.

    >>> d = log_uniform(bits=64, low=[2**62] * 5, high=[3 * 2**62] * 5, mass=0.5)
    >>> round(float(d.mass(d.target)), 6), d.octaves.tolist()
    (0.5, [62, 62, 62, 62, 62])
    """
    target, bits, low, high = _target(bits, low, high)
    share = arguments.known_fraction("mass", mass) ** (1 / len(low))
    octaves = []
    for start, end in zip(low, high, strict=True):
        room = min(start, (1 << bits) - end, (end - start) // 2)
        if room < 2:
            raise ValueError(f"low and high must leave room for offsets 1 and 2 on both sides, got {start} and {end}")
        octaves.append(room.bit_length() - 1)
    outside = max(1, round((1 - share) * 2**31))
    if outside == 2**31:
        raise ValueError(f"mass must leave each of {len(low)} sides at least 2^-32, got {mass}")
    count = len(low)
    return LogUniformProduct(
        target=target,
        first=jnp.full((count,), outside, jnp.uint32),
        width=jnp.full((count,), 2**32 - 2 * outside, jnp.uint32),
        octaves=jnp.asarray(np.asarray(octaves, np.int32)),
    )


def centred(*, axes: int, bits: int, mass: float = 0.5) -> tuple[list[int], list[int]]:
    """Faces of a cube in the middle of X_bits^axes that has nearly this share of the points, for `uniform`.

    >>> centred(axes=2, bits=8, mass=0.25)
    ([64, 64], [191, 191])
    """
    axes, bits = arguments.size("axes", axes), arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    side = arguments.known_fraction("mass", mass) ** (1 / axes)
    margin = math.floor((1 - side) / 2 * 2**53) * (1 << bits) >> 53
    return [margin] * axes, [(1 << bits) - 1 - margin] * axes
