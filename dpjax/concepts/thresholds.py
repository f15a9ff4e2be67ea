"""Thresholds over X_d = {0, ..., 2^d - 1} (BNS Definition 3.4): c_j(x) = 1 iff x < j, for j = 0, ..., 2^d; VC dimension 1.

Also distributions on X_d as the learners meet them: a target threshold, points sorted as drawn, and the exact population error.
A distribution is a map from one 32-bit uniform fraction v to a point, increasing in v, so that sorted fractions give sorted points
without a sort, and error_D(c_h, c_t) = D[points between h and t] is known exactly.
"""

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, UInt32

from dpjax.concepts.distribution import Distribution, of_hypotheses, of_hypothesis, of_tolerance
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import once
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import Sample
from dpjax.domains import order_statistics, ordered, wide
from dpjax.domains.ordered import Pieces
from dpjax.domains.scaled import Scaled


def label(threshold: UInt32[Array, "limbs"], x: UInt32[Array, "n more"]) -> Int[Array, "n"]:
    """c_j(x) for a threshold j (any number of limbs) and points x.

    >>> from dpjax.domains import wide
    >>> label(wide.from_ints([2**64], 65)[0], wide.from_ints([0, 2**64 - 1], 64)).tolist()
    [1, 1]
    """
    limbs = max(threshold.shape[-1], x.shape[-1])
    return wide.less(wide.resize(x, limbs), wide.resize(threshold, limbs)[None]).astype(jnp.int32)


def packed_labels(thresholds: UInt32[Array, "k limbs"], x: UInt32[Array, "n limbs"]) -> UInt32[Array, "n words"]:
    """The labels that k thresholds give to each point, packed as in `dpjax.core.bits`: each word takes one pass over the points.

    >>> from dpjax.domains import wide
    >>> packed_labels(wide.from_ints([5, 2, 9], 4), wide.from_ints([1, 6], 4)).tolist()
    [[7], [4]]
    """
    words = packed.words_for(thresholds.shape[0])
    each = min(thresholds.shape[0], packed.WORD)
    missing = words * each - thresholds.shape[0]
    lanes = jnp.pad(thresholds, ((0, missing), (0, 0))).reshape(words, each, -1)  # nothing is below a threshold 0

    def word(lanes: UInt32[Array, "each limbs"]) -> UInt32[Array, "n"]:
        terms = [label(lanes[j], x).astype(jnp.uint32) << np.uint32(j) for j in range(each)]
        return functools.reduce(jnp.bitwise_or, terms)

    return jax.vmap(word, out_axes=-1)(lanes)


def quality(sample: Sample, bits: Int[Array, ""], limbs: int) -> Pieces:
    """Q(j) = number of examples that c_j labels correctly, as pieces on {0, ..., 2^bits} (BNS Example 3.8).

    Q starts at the number of zeros and moves right after each example: up after a one, down after a zero. Examples past
    n_valid become empty pieces at the end, so padding changes nothing. `limbs` must hold bits + 1 bits; rows = 2^b - 1.
    """
    valid = sample.valid
    if isinstance(sample.x, Scaled):
        ones = jnp.sum(jnp.where(valid, sample.y, 0), dtype=jnp.int32)
        return ordered.from_peak(sample.x.resized(limbs), ones, sample.n_valid - ones, jnp.asarray(bits, jnp.int32))
    points = wide.select(valid, wide.resize(sample.x, limbs), wide.power_of_two(bits, limbs)[None])
    exponent = jnp.asarray(bits, jnp.int32)
    if sample.realizable:
        ones = jnp.sum(jnp.where(valid, sample.y, 0), dtype=jnp.int32)
        return once(ordered.from_peak, points, ones, sample.n_valid - ones, exponent)
    steps = jnp.where(valid, 2 * sample.y - 1, 0)
    zeros = jnp.sum(jnp.where(valid, 1 - sample.y, 0), dtype=jnp.int32)
    if not sample.ordered:
        points, falls = wide.sort(points, -steps, payload_keys=1)  # equal points: ones first
        steps = -falls
    return once(ordered.from_steps, points, zeros, steps, exponent)


def ones(sample: MultiSample) -> Int[Array, "k"]:
    """How many of the examples each concept labels 1, for a realizable sample: the ones come first, so a search finds their end."""

    def count(j: Array) -> Array:
        def is_zero(row: Array) -> Array:
            word = sample.y[row, j // packed.WORD]
            return (word >> (j % packed.WORD).astype(jnp.uint32)) & np.uint32(1) == 0

        return first_where(is_zero, jnp.zeros_like(j), sample.n_valid, sample.rows)

    return jax.vmap(count)(jnp.arange(sample.k, dtype=jnp.int32))


# --------------------------------------------------------------------------------------------------- distributions


class ThresholdDistribution(Distribution):
    """What every distribution below does: draw a sorted labelled sample, and compute errors exactly.

    Subclasses have `target` (a threshold), `limbs` (of a point, where a threshold may need one more), `quantile(v)` (the point at each
    32-bit fraction), `error(h)` = D[points on which c_h and c_target differ], and `within(alpha)` = (low, high): error(h) <= alpha
    exactly for low <= h < high.
    """

    target: UInt32[Array, "more"]
    limbs: int

    def quantile(self, v: UInt32[Array, "n"]) -> UInt32[Array, "n limbs"]:
        """The point at each fraction v 2^-32; increasing in v."""
        raise NotImplementedError

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Sample:
        """n independent examples labelled by the target, in increasing order, drawn without a sort."""
        return Sample.promised(*self._labelled(order_statistics.sorted_uniforms(key, capacity, n), n), n)

    def in_order_drawn(self, key: Array, capacity: int, n: Int[Array, ""]) -> Sample:
        return Sample.tree_unflatten((False, False), (*self._labelled(random.bits(key, capacity), n), n))

    def _labelled(self, v: UInt32[Array, "n"], n: Int[Array, ""]) -> tuple[UInt32[Array, "n limbs"], Int[Array, "n"]]:
        """The points at these fractions, and their labels."""
        x = once(self.quantile, v)
        return wide.resize(x, self.limbs), self._label(v, x)

    def _label(self, v: UInt32[Array, "n"], x: UInt32[Array, "n more"]) -> Int[Array, "n"]:
        """The labels of the points x at these fractions."""
        return label(self.target, x)


@frozen
class LogUniform(ThresholdDistribution):
    """x = target +- floor(2^U), U uniform on [0, octaves), the sign a fair coin: every scale has the same mass.

    These are the hard distributions for private threshold learners (uniform ones are easy: the answer may be off by 2^d / n).
    A draw has 32 random bits, and 2^U is cut to its 24 leading binary digits; `error` and `within` are those of the uncut law, from
    which the drawn one differs by less than 2^-23 / octaves + 2^-32 in Kolmogorov distance.

    Attributes:
      target: the threshold that labels.
      octaves: how many scales there are.
      limbs: of a point (static).
    """

    target: UInt32[Array, "more"]
    octaves: Int[Array, ""]
    limbs: int = static()

    def quantile(self, v: UInt32[Array, "n"]) -> UInt32[Array, "n limbs"]:
        """target - floor(2^U) for v < 1/2, target + floor(2^U) above; see the class."""
        left = v < np.uint32(1 << 31)
        octaves = jnp.asarray(self.octaves).astype(jnp.uint32)
        whole, digits = once(self._leading, v, octaves)
        offset = once(functools.partial(_scaled, limbs=self.target.shape[-1]), whole, digits)
        # target - o = ~(~target + o): one addition serves both sides.
        flip = lambda x: wide.select(left, wide.along_rows(jnp.invert, x), x)  # noqa: E731
        return flip(wide.add(flip(self.target[None]), offset))

    def _label(self, v: UInt32[Array, "n"], x: UInt32[Array, "n more"]) -> Int[Array, "n"]:
        """No point is the target itself, so the half in which v lies gives the label, and no wide numbers are compared."""
        return (v < np.uint32(1 << 31)).astype(jnp.int32)

    def draw_scaled(self, key: Array, capacity: int, n: Int[Array, ""]) -> Sample:
        """`draw` with points of few digits, as learners with `takes_scaled` accept them: the same sample from the same key."""
        fractions = order_statistics.sorted_uniforms(key, capacity, n)
        x = self.scaled(fractions, n)
        y = (jnp.arange(capacity, dtype=jnp.int32) < x.below).astype(jnp.int32)
        return Sample.promised(x, y, n)  # type: ignore[arg-type]

    def scaled(self, v: UInt32[Array, "n"], n: Int[Array, ""]) -> Scaled:
        """`quantile` of the first n of sorted fractions, as numbers around the target."""
        octaves = jnp.asarray(self.octaves).astype(jnp.uint32)
        whole, digits = once(self._leading, v, octaves)
        left = (v < np.uint32(1 << 31)) & (jnp.arange(v.shape[0], dtype=jnp.int32) < n)
        return Scaled(
            centre=self.target,
            digits=digits >> jnp.clip(23 - whole, 0, 31).astype(jnp.uint32),
            exponent=jnp.maximum(whole - 23, 0),
            below=jnp.sum(left, dtype=jnp.int32),
        )

    @staticmethod
    def _leading(v: UInt32[Array, "n"], octaves: UInt32[Array, ""]) -> tuple[Int[Array, "n"], UInt32[Array, "n"]]:
        """The integer part of U, and the leading digits of 2^U."""
        half = np.uint32(1 << 31)
        distance = jnp.where(v < half, (half - np.uint32(1)) - v, v - half) << np.uint32(1)
        within = (distance * octaves).astype(jnp.float32) * np.float32(2.0**-32)
        return wide.high_product(distance, octaves).astype(jnp.int32), _digits(within)

    @of_hypothesis
    def error(self, hypothesis: UInt32[Array, "limbs"]) -> Float[Array, ""]:
        """log2(1 + target - h) / (2 octaves) on the left, log2(h - target) / (2 octaves) on the right, at most 1/2."""
        right = wide.less(self.target, hypothesis)
        low, high = wide.minimum(hypothesis, self.target), wide.maximum(hypothesis, self.target)
        distance = wide.subtract(high, low)
        log = wide.log(wide.select(right, distance, wide.add(distance, wide.one_like(distance))))
        return jnp.minimum(log / (2 * math.log(2.0) * jnp.asarray(self.octaves, float)), 0.5)

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """Thresholds from target + 1 - w to target + w, w = floor(2^(2 alpha octaves)) (24 digits).

        No threshold errs on more than 1/2: from alpha = 1/2 on the ends of the range are 0 and 2^(32 limbs) - 1.
        """
        exponent = 2 * jnp.asarray(alpha, float) * jnp.asarray(self.octaves, float)
        whole = jnp.floor(exponent)
        fraction = (exponent - whole).astype(jnp.float32)
        width = _power_of_two(whole.astype(jnp.int32), fraction, self.target.shape[-1])
        one, everything = wide.one_like(width), jnp.asarray(alpha, float) >= 0.5
        low, high = wide.add(wide.subtract(self.target, width), one), wide.add(wide.add(self.target, width), one)
        return (
            wide.select(everything, jnp.zeros_like(low), low),
            wide.select(everything, jnp.full_like(high, np.uint32(0xFFFFFFFF)), high),
        )


@frozen
class Uniform(ThresholdDistribution):
    """Uniform on X_d; for d > 32 on its 2^32 multiples of 2^(d-32), for which `error` and `within` are exact.

    Attributes:
      target: the threshold that labels.
      bits: d.
      limbs: of a point (static).
    """

    target: UInt32[Array, "more"]
    bits: Int[Array, ""]
    limbs: int = static()

    def quantile(self, v: UInt32[Array, "n"]) -> UInt32[Array, "n limbs"]:
        """floor(v 2^d / 2^32)."""
        bits = jnp.asarray(self.bits, jnp.int32)
        points = wide.from_uint32(v >> jnp.clip(32 - bits, 0, 31).astype(jnp.uint32), self.target.shape[-1])
        return wide.shift_left(points, jnp.broadcast_to(jnp.maximum(bits - 32, 0), v.shape))

    @of_hypothesis
    def error(self, hypothesis: UInt32[Array, "limbs"]) -> Float[Array, ""]:
        """The share of grid points between hypothesis and target."""
        low, high = wide.minimum(hypothesis, self.target), wide.maximum(hypothesis, self.target)
        bits = jnp.asarray(self.bits, jnp.int32)
        top = wide.power_of_two(jnp.minimum(bits, 32), self.target.shape[-1])  # a hypothesis may lie beyond the domain
        between = wide.subtract(wide.minimum(self._rank(high), top), self._rank(low))
        count = between[-1].astype(float)
        if between.shape[-1] > 1:  # 2^32 itself: the whole grid
            count = count + between[-2].astype(float) * 2.0**32
        return jnp.ldexp(count, -jnp.minimum(bits, 32))  # exact, as exp2 is not

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """All thresholds with at most alpha of the grid between them and the target, within 0, ..., 2^d."""
        bits = jnp.asarray(self.bits, jnp.int32)
        limbs = self.target.shape[-1]
        step, one = jnp.maximum(bits - 32, 0), wide.one_like(self.target)
        rank, top = self._rank(self.target), wide.power_of_two(jnp.minimum(bits, 32), limbs)
        room = jnp.floor(jnp.ldexp(jnp.asarray(alpha, float), jnp.minimum(bits, 32)))
        # 2^32 is not a uint32, and the limbs may have no room for it beside the rank.
        allowed = wide.select(jnp.asarray(alpha, float) >= 1, top, wide.from_uint32(room.astype(jnp.uint32), limbs))
        low = wide.subtract(rank, wide.minimum(allowed, rank))
        high = wide.add(rank, wide.minimum(allowed, wide.subtract(top, rank)))
        # Thresholds of rank r are ((r - 1) 2^step, r 2^step]; rank 0 is the threshold 0 alone.
        first = wide.shift_left(wide.subtract(low, wide.minimum(one, low)), step)
        first = wide.select(wide.is_zero(low), first, wide.add(first, one))
        return first, wide.add(wide.shift_left(high, step), one)

    def _rank(self, threshold: UInt32[Array, "limbs"]) -> UInt32[Array, "limbs"]:
        """Number of grid points below a threshold: ceil(threshold / 2^step)."""
        step = jnp.maximum(jnp.asarray(self.bits, jnp.int32) - 32, 0)
        down = wide.shift_right(threshold, step)
        exact = wide.equal(wide.shift_left(down, step), threshold)
        return wide.select(exact, down, wide.add(down, wide.one_like(down)))


@frozen
class PointMasses(ThresholdDistribution):
    """Finitely many points, with `cumulative[i]` 2^-32 of the mass strictly below points[i] (so masses are multiples of 2^-32).

    Attributes:
      target: the threshold that labels.
      points: the points, increasing.
      cumulative: see above.
      limbs: of a point (static).
    """

    target: UInt32[Array, "more"]
    points: UInt32[Array, "m more"]
    cumulative: UInt32[Array, "m"]
    limbs: int = static()

    def quantile(self, v: UInt32[Array, "n"]) -> UInt32[Array, "n limbs"]:
        """The point whose slice of [0, 1) holds v."""
        return self.points[self.place(v)]

    def place(self, v: UInt32[Array, "n"]) -> Int[Array, "n"]:
        """The index of that point."""
        # If points are few, v is compared with all of them in one pass.
        method = "compare_all" if self.cumulative.shape[0] <= 64 else "scan"
        return jnp.searchsorted(self.cumulative, v, side="right", method=method).astype(jnp.int32) - 1

    @of_hypothesis
    def error(self, hypothesis: UInt32[Array, "limbs"]) -> Float[Array, ""]:
        """Mass of the points between hypothesis and target."""
        low, high = wide.minimum(hypothesis, self.target), wide.maximum(hypothesis, self.target)
        return self._mass(wide.search(self.points, low), wide.search(self.points, high))

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """From right after the last point too far left to the first too far right; if there is none, the end is 0 or 2^(32 limbs) - 1."""
        m = self.points.shape[0]
        centre = wide.search(self.points, self.target)
        rank = jnp.arange(m + 1, dtype=jnp.int32)
        error = jax.vmap(lambda i: self._mass(jnp.minimum(i, centre), jnp.maximum(i, centre)))(rank)
        ranks = jnp.where(error <= alpha, rank, centre)
        low, high = jnp.min(ranks), jnp.max(ranks)
        after = wide.add(self.points[jnp.maximum(low - 1, 0)], wide.one_like(self.target))
        first = wide.select(low > 0, after, jnp.zeros_like(after))
        top = wide.add(self.points[jnp.minimum(high, m - 1)], wide.one_like(self.target))
        return first, wide.select(high < m, top, jnp.full_like(top, np.uint32(0xFFFFFFFF)))

    def _mass(self, start: Array, stop: Array) -> Float[Array, ""]:
        """Mass of points start, ..., stop - 1; the last cumulative, 2^32, is 0 in 32 bits: differences still come out right."""
        bounds = jnp.concatenate([self.cumulative, jnp.zeros((1,), jnp.uint32)])
        units = bounds[stop] - bounds[start]
        whole = (start == 0) & (stop == self.points.shape[0])
        return jnp.where(whole, 1.0, units.astype(float) * 2.0**-32)


@frozen
class Several(Distribution):
    """k thresholds to be learned from one sample (MULTI §2.1); build it by `several`.

    Attributes:
      base: `Uniform` or `PointMasses`, from which points come; its own target plays no part.
      targets: k thresholds.
    """

    base: Any
    targets: UInt32[Array, "k limbs"]

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> MultiSample:
        """n independent examples with k labels each, in increasing order, drawn without a sort."""
        drawn = self.base.draw(key, capacity, n)
        y = packed_labels(self.targets, drawn.x)
        return MultiSample(x=drawn.x, y=y, n_valid=drawn.n_valid, k=self.targets.shape[0], realizable=True)

    def in_order_drawn(self, key: Array, capacity: int, n: Int[Array, ""]) -> MultiSample:
        drawn = self.base.in_order_drawn(key, capacity, n)
        y = packed_labels(self.targets, drawn.x)
        return MultiSample(x=drawn.x, y=y, n_valid=drawn.n_valid, k=self.targets.shape[0])

    @of_hypotheses
    def errors(self, hypotheses: UInt32[Array, "k limbs"]) -> Float[Array, "k"]:
        """The mass between each hypothesis and its target."""
        return jax.vmap(lambda target, h: self._with(target).error(h))(self.targets, hypotheses)

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "k limbs"], UInt32[Array, "k limbs"]]:
        """(low, high): hypothesis j has error <= alpha exactly for low_j <= h_j < high_j."""
        return jax.vmap(lambda target: self._with(target).within(alpha))(self.targets)

    def _with(self, target: UInt32[Array, "limbs"]) -> Any:
        return dataclasses.replace(self.base, target=target)


def several(base: Any, *, bits: int, targets: Sequence[int]) -> Several:
    """`Several` thresholds over the points of one distribution.

    Args:
      base: `uniform(...)` or `point_masses(...)` on X_bits; a `log_uniform` is refused, as it moves with its target.
      targets: k thresholds in 0, ..., 2^bits.

    Raises:
      TypeError: another base. ValueError: a base over other bits, no target, or one outside the domain.

    >>> import jax
    >>> law = several(uniform(bits=16, target=0), bits=16, targets=[100, 50_000])
    >>> law.sample(jax.random.key(0), 7, 5).k, law.errors(law.targets).tolist()
    (2, [0.0, 0.0])
    """
    width = _bits(bits)
    if not isinstance(base, Uniform | PointMasses):
        raise TypeError(f"base must be uniform(...) or point_masses(...), got {type(base).__name__}")
    if not _is_over(base, width):
        raise ValueError(f"base must be over the {width} bits of the targets, got {base!r}")
    if not (targets := arguments.several("targets", targets)):
        raise ValueError("targets must hold at least one threshold, got none")
    checked = [arguments.integer("targets", target, at_least=0, at_most=1 << width) for target in targets]
    # The base's own target plays no part, and must not make two laws of one.
    base = dataclasses.replace(base, target=jnp.zeros_like(base.target))
    return Several(base=base, targets=wide.from_ints(checked, width + 1))


def _is_over(base: Any, bits: int) -> bool:
    """Whether a distribution is on X_bits, as far as is known: of point masses, whether their limbs fit and no point lies beyond."""
    if base.target.shape[-1] != wide.limbs_for(bits + 1):
        return False
    if isinstance(base, PointMasses):
        return arguments.is_traced(base.points) or max(wide.to_ints(base.points)) >> bits == 0
    width = getattr(base, "bits", bits)
    return arguments.is_traced(width) or int(width) == bits


def log_uniform(*, bits: int, target: int | None = None) -> LogUniform:
    """LogUniform on X_bits around `target` (default 2^(bits-1)), with as many octaves as fit on both sides.

    Raises:
      ValueError: a target with less than one octave of room on a side.

    >>> import jax
    >>> d = log_uniform(bits=64)
    >>> sample = d.sample(jax.random.key(0), 7, 5)
    >>> float(d.error(d.target)), int(d.octaves)
    (0.0, 63)
    """
    bits = _bits(bits)
    target = 1 << (bits - 1) if target is None else arguments.integer("target", target, at_least=0, at_most=1 << bits)
    octaves = min(target.bit_length(), ((1 << bits) - target).bit_length()) - 1
    if octaves < 1:
        raise ValueError(
            f"target must leave room for offsets 1 and 2 on both sides in 0, ..., 2^{bits} - 1, got {target}"
        )
    return LogUniform(**_target(bits, target), octaves=jnp.int32(octaves))


def uniform(*, bits: int, target: int) -> Uniform:
    """Uniform on X_bits with any target threshold in 0, ..., 2^bits."""
    bits = _bits(bits)
    return Uniform(**_target(bits, target), bits=jnp.int32(bits))


def point_masses(*, bits: int, points: list[int], masses: list[float], target: int) -> PointMasses:
    """Point masses at distinct points of X_bits; masses > 0, normalised, then rounded to multiples of 2^-32.

    Raises:
      ValueError: points that repeat or leave the domain, masses not finite and > 0, or so small that they round to nothing.

    >>> d = point_masses(bits=8, points=[3, 200], masses=[1.0, 3.0], target=100)
    >>> float(d.error(wide.from_ints([201], 9)[0]))
    0.75
    """
    bits = _bits(bits)
    points, masses = arguments.several("points", points), arguments.several("masses", masses)
    if len(points) != len(masses) or not points:
        raise ValueError(f"masses must have one entry a point, got {len(masses)} for {len(points)} points")
    points = [arguments.integer("points", x, at_least=0, at_most=(1 << bits) - 1) for x in points]
    if len(set(points)) != len(points):
        twice = min(x for x, count in collections.Counter(points).items() if count > 1)
        raise ValueError(f"points must be distinct, got {arguments.brief(twice)} more than once")
    masses = [arguments.known("masses", mass, above=0.0, below=math.inf) for mass in masses]
    pairs = sorted(zip(points, masses, strict=True))
    *up_to, total = itertools.accumulate((Fraction(mass) for _, mass in pairs), initial=Fraction(0))
    sums = [round(each / total * 2**32) for each in up_to]
    if any(a >= b for a, b in zip(sums, [*sums[1:], 2**32], strict=True)):
        share = float(min(map(Fraction, masses)) / total)
        raise ValueError(f"masses must each be at least 2^-32 of the total, got a share of {share:.3g}")
    return PointMasses(
        **_target(bits, target),
        points=wide.resize(wide.from_ints([x for x, _ in pairs], bits), wide.limbs_for(bits + 1)),
        cumulative=jnp.asarray(np.asarray(sums, np.uint32)),
    )


def _bits(bits: int) -> int:
    return arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)


def _target(bits: int, target: int) -> dict[str, Any]:
    """The fields that all distributions have: a threshold in 0, ..., 2^bits, and the limbs of a point."""
    target = arguments.integer("target", target, at_least=0, at_most=1 << bits)
    return {"target": wide.from_ints([target], bits + 1)[0], "limbs": wide.limbs_for(bits)}


def _power_of_two(whole: Int[Array, ""], fraction: Float[Array, ""], limbs: int) -> UInt32[Array, "limbs"]:
    """floor(2^(whole + fraction)) cut to 24 leading binary digits, fraction in [0, 1]."""
    return _scaled(whole, _digits(fraction), limbs)


def _digits(fraction: Float[Array, "*n"]) -> UInt32[Array, "*n"]:
    """floor(2^(23 + fraction)), fraction in [0, 1], rounded down at 1."""
    return jnp.clip((jnp.exp2(fraction) * np.float32(2**23)).astype(jnp.uint32), 2**23, 2**24 - 1)


def _scaled(whole: Int[Array, "*n"], digits: UInt32[Array, "*n"], limbs: int) -> UInt32[Array, "*n limbs"]:
    """2^whole times 24 digits, of which the first is the unit."""
    return wide.scaled(digits, whole - 23, limbs)
