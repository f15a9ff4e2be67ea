"""A public base measure for outputs whose scale is not known: spread evenly over all powers of two, around a public origin.

On {0, ..., 2^d - 1} the point z >= o, t = z - o above the origin o, has the weight 2^-k / (s (d + 1)), where 2^k <= t + 1 < 2^(k+1), and
z < o likewise with t = o - 1 - z; s is the number of sides, 2, or 1 if the origin is an end of the domain. All points together weigh at
most 1. An exponential mechanism pays for the ratio of the total weight to the weight of the good outputs. With uniform weights this is the
log of the domain over the gap, d ln 2 for values in units; here it is about ln(2 s (d + 1)) for gaps as wide as their distance from the
origin. A measure is a public choice: privacy does not depend on it.

The base "scales" is half this measure and half the uniform one, which costs ln 2 where the uniform one is better. An eighth of this measure
in place of a half lost more where this one is better (a mean error of 19.7 ranks in place of 15.1 for four quantiles of 62 durations of
strikes at epsilon = 0.38) than it gained elsewhere (14.3 in place of 14.7 for 7 of 170 values far from 0 at 0.53).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, logspace, random
from dpjax.domains import wide

LN2 = 0.6931471805599453
BASES = ("uniform", "scales")


def base_measure(base: str, origin: int, bits: int, known: tuple[str, ...] = BASES) -> dict[str, Any]:
    """The attributes in which an algorithm keeps its base measure, one of `known`: `base`, `origin`, and `wider`, limbs for up to 2^d + 1.

    Raises:
      TypeError, ValueError: an unknown base; an origin that is not an integer, or outside 0, ..., 2^bits.
    """
    arguments.choice("base", base, known)
    at = arguments.integer("origin", origin, at_least=0, at_most=2**bits)
    wider = wide.limbs_for(bits + 1)
    # On the host: algorithms are made without compiling anything.
    return {
        "base": base,
        "wider": wider,
        "origin": np.frombuffer(at.to_bytes(4 * wider, "big"), ">u4").astype(np.uint32),
    }


def log_weight(
    start: UInt32[Array, "*n limbs"],
    stop: UInt32[Array, "*n limbs"],
    bits: Int[Array, ""],
    origin: UInt32[Array, "limbs"],
    power: Int[Array, ""] | int = 1,
) -> Float[Array, "*n"]:
    """ln of the weight of {start, ..., stop - 1}, which must not be empty: the sum of some power of each point's weight."""
    near, far, there = _sides(start, stop, origin)
    exponent = jnp.asarray(power, jnp.int32)
    terms, _ = _parts(near, far, exponent)
    both = jnp.where(there[..., None], terms, -jnp.inf)
    return logspace.logsumexp(jnp.concatenate([both[0], both[1]], axis=-1)) - exponent.astype(float) * _log_total(
        bits, origin
    )


def log_density(
    at: UInt32[Array, "*n limbs"], bits: Int[Array, ""], origin: UInt32[Array, "limbs"]
) -> Float[Array, "*n"]:
    """ln of the weight of each point."""
    total, origin = _log_total(bits, origin), jnp.broadcast_to(origin, at.shape)
    above = wide.add(wide.subtract(at, origin), wide.one_like(at))
    size = wide.select(wide.less(at, origin), wide.subtract(origin, at), above)
    return -LN2 * (wide.bit_length(size) - 1).astype(float) - total


def log_mixed(
    at: UInt32[Array, "*n limbs"], bits: Int[Array, ""], origin: UInt32[Array, "limbs"]
) -> Float[Array, "*n"]:
    """ln of the weight of each point by the base "scales", in units of its uniform weight."""
    by_scale = log_density(at, bits, origin) + LN2 * jnp.asarray(bits, jnp.int32).astype(float)
    return logspace.logaddexp(jnp.zeros_like(by_scale), by_scale) - LN2


def cuts(bits: Int[Array, ""], origin: UInt32[Array, "limbs"]) -> UInt32[Array, "cuts limbs"]:
    """Where the weight of a point changes, in no particular order: the first points of all scales; 2^bits where there is none."""
    limbs = origin.shape[-1]
    exponent = jnp.arange(1, 32 * limbs, dtype=jnp.int32)  # both points beside the origin weigh the same
    reach = wide.largest(exponent, limbs)
    end, center = (jnp.broadcast_to(x, reach.shape) for x in (wide.power_of_two(bits, limbs), origin))
    below = wide.select(wide.less_equal(reach, center), wide.subtract(center, reach), end)
    above = wide.select(exponent <= bits, wide.minimum(wide.add(center, reach), end), end)
    return wide.concatenate(below, above)


def draw(
    key: Any,
    start: UInt32[Array, "limbs"],
    stop: UInt32[Array, "limbs"],
    origin: UInt32[Array, "limbs"],
    power: Int[Array, ""] | int = 1,
) -> UInt32[Array, "limbs"]:
    """One of start, ..., stop - 1, drawn by weight, or by some power of it."""
    key_part, key_scale, key_place = jax.random.split(key, 3)
    near, far, there = _sides(start, stop, origin)
    exponent = jnp.asarray(power, jnp.int32)
    terms, scales = _parts(near, far, exponent)
    logs = jnp.where(there[:, None], terms, -jnp.inf).reshape(6)
    chosen = logspace.draw(key_part, logspace.sum_tree(logs))
    side, part = chosen // 3, chosen % 3
    near, far, first, last = near[side], far[side], scales[0][side], scales[1][side]
    limbs, one = start.shape[-1], wide.one_like(start)
    between = _scale_between(key_scale, first + 1, jnp.maximum(last, first + 2), exponent - 1)
    scale = wide.power_of_two(between, limbs)
    # Parts: the first scale from `near` on; the scales between; the last one up to `far`. The scales are those of t + 1.
    low = [near, wide.subtract(scale, one), wide.largest(last, limbs)]
    end_of_first = wide.select(first == last, far, wide.largest(first + 1, limbs))
    high = [end_of_first, wide.subtract(wide.add(scale, scale), one), far]
    chosen_low, chosen_high = (jnp.stack(ends)[part] for ends in (low, high))
    t = wide.add(chosen_low, wide.uniform(key_place, wide.subtract(chosen_high, chosen_low)))
    return wide.select(side == 0, wide.subtract(wide.subtract(origin, one), t), wide.add(origin, t))


def _log_total(bits: Int[Array, ""], origin: UInt32[Array, "limbs"]) -> Float[Array, ""]:
    """ln(s (d + 1))."""
    bits = jnp.asarray(bits, jnp.int32)
    at_end = wide.is_zero(origin) | wide.equal(origin, wide.power_of_two(bits, origin.shape[-1]))
    return jnp.log(jnp.where(at_end, 1.0, 2.0) * (bits.astype(float) + 1))


def _sides(
    start: Array, stop: Array, origin: Array
) -> tuple[UInt32[Array, "2 *n limbs"], UInt32[Array, "2 *n limbs"], Bool[Array, "2 *n"]]:
    """The parts of an interval below and above the origin, by their t from `near` to `far` - 1, and whether each is not empty."""
    origin = jnp.broadcast_to(origin, start.shape)
    near = jnp.stack(
        [wide.subtract(origin, wide.minimum(stop, origin)), wide.subtract(wide.maximum(start, origin), origin)]
    )
    far = jnp.stack(
        [wide.subtract(origin, wide.minimum(start, origin)), wide.subtract(wide.maximum(stop, origin), origin)]
    )
    there = wide.less(near, far)
    return near, wide.select(there, far, wide.add(near, wide.one_like(near))), there


def _scale_between(key: Any, first: Int[Array, ""], stop: Int[Array, ""], fall: Int[Array, ""]) -> Int[Array, ""]:
    """One of first, ..., stop - 1, each 2^-fall times as likely as the one before: uniform, or geometric, which is memoryless."""
    key_even, key_falling = jax.random.split(key)
    even = jax.random.randint(key_even, (), first, stop, jnp.int32)
    steps = jnp.floor(random.exponential(key_falling, ()) / (LN2 * jnp.maximum(fall, 1).astype(float)))
    return jnp.where(fall == 0, even, first + steps.astype(jnp.int32) % (stop - first))


def _parts(near: Array, far: Array, power: Int[Array, ""]) -> tuple[Float[Array, "*n 3"], tuple[Array, Array]]:
    """(ln of the weight of each part of `draw`, where a point weighs some power of 2^-k; the first and the last scale)."""
    limbs, one = near.shape[-1], wide.one_like(near)
    first = wide.bit_length(wide.add(near, one)) - 1
    last = wide.bit_length(far) - 1
    whole = wide.log(wide.subtract(far, near))
    same = first == last
    rest = wide.subtract(wide.power_of_two(first + 1, limbs), wide.add(near, one))
    begun = wide.subtract(wide.add(far, one), wide.power_of_two(last, limbs))
    exponent, fall = power.astype(float), (power - 1).astype(float)
    first_log, last_log = exponent * LN2 * first.astype(float), exponent * LN2 * last.astype(float)
    head = jnp.where(same, whole, wide.log(wide.select(same, one, rest))) - first_log
    # Scale k has 2^k points: 2^(-fall k) in all.
    count = jnp.maximum(last - first - 1, 1).astype(float)
    rate = LN2 * jnp.maximum(fall, 1.0)
    falling = logspace.log1mexp(-rate * count) - logspace.log1mexp(-rate) - rate * (first + 1).astype(float)
    middle = jnp.where(fall == 0, jnp.log(count), falling)
    tail = wide.log(wide.select(same, one, begun)) - last_log
    scales = [head, jnp.where(last - first > 1, middle, -jnp.inf), jnp.where(same, -jnp.inf, tail)]
    return jnp.stack(scales, axis=-1), (first, last)
