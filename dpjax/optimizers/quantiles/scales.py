"""A public base measure for outputs whose scale is not known: spread evenly over all powers of two.

On {0, ..., 2^d - 1} the point z has the weight 2^-k / (d + 1), where 2^k <= z + 1 < 2^(k+1): all of them weigh 1 at most. What is found by
an exponential mechanism pays for the ratio of the total to the weight of what is good: for uniform weights ln of the domain over the gap,
d ln 2 for values in units, here ln(2 (d + 1)) or so for gaps as wide as their distance from 0. A measure is a public choice: privacy does
not depend on it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from dpjax.core import logspace
from dpjax.domains import wide

LN2 = 0.6931471805599453


def log_weight(
    start: UInt32[Array, "*n limbs"], stop: UInt32[Array, "*n limbs"], bits: Int[Array, ""]
) -> Float[Array, "*n"]:
    """ln of the weight of {start, ..., stop - 1}, which must not be empty."""
    terms, _ = _parts(start, stop)
    return logspace.logsumexp(terms) - jnp.log(jnp.asarray(bits, jnp.int32).astype(float) + 1)


def draw(key: Any, start: UInt32[Array, "limbs"], stop: UInt32[Array, "limbs"]) -> UInt32[Array, "limbs"]:
    """One of start, ..., stop - 1 by weight."""
    key_part, key_scale, key_place = jax.random.split(key, 3)
    terms, (first, last) = _parts(start, stop)
    part = logspace.draw(key_part, logspace.sum_tree(jnp.append(terms, -jnp.inf)))  # of four
    limbs, one = start.shape[-1], _one(start)
    between = jax.random.randint(key_scale, (), first + 1, jnp.maximum(last, first + 2))
    scale = wide.power_of_two(between, limbs)
    # Parts: the first scale from start on; scales between; the last one up to stop. The scales are of z + 1.
    one_scale = first == last
    low = [start, wide.subtract(scale, one), wide.subtract(wide.power_of_two(last, limbs), one)]
    end_of_first = wide.select(one_scale, stop, wide.subtract(wide.power_of_two(first + 1, limbs), one))
    high = [end_of_first, wide.subtract(wide.add(scale, scale), one), stop]
    chosen_low, chosen_high = (jnp.stack(ends)[part] for ends in (low, high))
    return wide.add(chosen_low, wide.uniform(key_place, wide.subtract(chosen_high, chosen_low)))


def _one(like: Array) -> Array:
    return jnp.broadcast_to(wide.from_uint32(jnp.uint32(1), like.shape[-1]), like.shape)


def _parts(start: Array, stop: Array) -> tuple[Float[Array, "*n 3"], tuple[Array, Array]]:
    """ln of d + 1 times the weight of each part of `draw`, and the first and the last scale."""
    limbs, one = start.shape[-1], _one(start)
    first = wide.bit_length(wide.add(start, one)) - 1
    last = wide.bit_length(stop) - 1
    whole = wide.log(wide.subtract(stop, start))
    same = first == last
    rest = wide.subtract(wide.power_of_two(first + 1, limbs), wide.add(start, one))
    begun = wide.subtract(wide.add(stop, one), wide.power_of_two(last, limbs))
    first_log, last_log = LN2 * first.astype(float), LN2 * last.astype(float)
    head = jnp.where(same, whole, wide.log(wide.select(same, one, rest))) - first_log
    middle = jnp.log(jnp.maximum(last - first - 1, 1).astype(float))
    tail = wide.log(wide.select(same, one, begun)) - last_log
    scales = [head, jnp.where(last - first > 1, middle, -jnp.inf), jnp.where(same, -jnp.inf, tail)]
    return jnp.stack(scales, axis=-1), (first, last)
