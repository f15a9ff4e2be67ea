"""Random points in order without a sort: order statistics of uniforms, and a sort of rows that are nearly in order."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int, UInt32

from dpjax.core import random, sums
from dpjax.core.staging import apart, once, together
from dpjax.domains import wide

PATIENCE = 8  # turns of a sort by exchanges of neighbours


def sorted_uniforms(key: Array, capacity: int, n: Int[Array, ""]) -> UInt32[Array, "capacity"]:
    """Order statistics of n independent uniforms on [0, 1), as 32-bit fractions, without a sort; zeros from n on.

    Renyi's representation: the partial sums of n+1 independent standard exponentials, divided by the whole sum, are distributed as n sorted
    uniforms. Sums are exact integers (a spacing is rounded to about 2^-20 of the mean one for a few thousand values, and to 1/429 of it for
    ten million; each result to 2^-31), so results depend on nothing but the key and n. A spacing is 0 with probability 2^-20 at least, so
    the first value is 0, and the last one the largest, as often as that. Values that real numbers would separate are equal a little more
    often than those of fractions of 32 bits: some of 2,000 are in 0.1 % of all samples, some of 10,000 in 3 %.
    """
    units = once(functools.partial(_spacings, capacity=capacity), key, n)
    up_to = once(sums.running, units)
    return jnp.where(jnp.arange(capacity, dtype=jnp.int32) < n, _ratio(up_to[:-1], up_to[-1]), np.uint32(0))


def _spacings(key: Array, n: Int[Array, ""], *, capacity: int) -> UInt32[Array, "m"]:
    """n + 1 independent exponentials, as integers whose sum stays below 2^32 (up to a probability of e^-70); zeros behind."""
    words = random.bits(key, capacity + 1)
    # (w + 1/2) 2^-32 lies in (0, 1), so a spacing is at most 22.9; log runs on float32 whatever the default float is.
    spacing = 32 * np.float32(np.log(2.0)) - jnp.log(words.astype(jnp.float32) + np.float32(0.5))
    count = n.astype(jnp.float32) + 1
    # The sum of `count` exponentials passes count + sqrt(140 count) + 70 with probability < e^-70, and never 22.9 count.
    limit = jnp.minimum(count + jnp.sqrt(140 * count) + 70, 23 * count)
    units = (jnp.maximum(spacing, 0) * (np.float32(2**32 - 2**9) / limit)).astype(jnp.uint32)
    return jnp.where(jnp.arange(capacity + 1, dtype=jnp.int32) <= n, units, np.uint32(0))


def _ratio(numerator: UInt32[Array, "n"], denominator: UInt32[Array, ""]) -> UInt32[Array, "n"]:
    """2^32 numerator / denominator for numerator < denominator, rounded down to within 3 units, and monotone.

    This takes one product per element: with D the denominator shifted up to 32 bits and M = floor((2^63 - 1) / D) < 2^32, it
    is N M / 2^31 for the equally shifted numerator N.
    """
    shift = lax.clz(denominator)
    scaled, reciprocal = numerator << shift, _reciprocal(denominator << shift)
    return (wide.high_product(scaled, reciprocal) << np.uint32(1)) | ((scaled * reciprocal) >> np.uint32(31))


def _reciprocal(divisor: UInt32[Array, ""]) -> UInt32[Array, ""]:
    """floor((2^63 - 1) / divisor) for divisor in [2^31, 2^32), by long division: once per sample, so speed does not matter."""

    def next_bit(_: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        remainder, quotient = state
        doubled = (remainder << np.uint32(1)) | np.uint32(1)
        fits = (remainder >= np.uint32(1 << 31)) | (doubled >= divisor)  # the doubling may carry out of 32 bits
        return jnp.where(fits, doubled - divisor, doubled), (quotient << np.uint32(1)) | fits.astype(jnp.uint32)

    # The first 31 of the 63 one bits cannot reach the divisor.
    start = (jnp.uint32((1 << 31) - 1), jnp.uint32(0))
    return lax.fori_loop(0, 32, next_bit, start, unroll=8)[1]


def sort_nearly(x: UInt32[Array, "n limbs"]) -> UInt32[Array, "n limbs"]:
    """wide.sort(x)[0], much faster where every row is a few rows from its place.

    Odd-even transposition: a turn puts the pairs (0, 1), (2, 3), ... in order, then (1, 2), (3, 4), ...; rows up to t from their places
    need about t / 2 turns. If rows are still out of order after PATIENCE turns, they are sorted.

    >>> wide.to_ints(sort_nearly(wide.from_ints([1, 3, 2, 4], 8))), wide.to_ints(sort_nearly(wide.from_ints(range(40, 0, -1), 8)))[:3]
    ([1, 2, 3, 4], [1, 2, 3])
    """
    even = jnp.arange(x.shape[0], dtype=jnp.int32) % 2 == 0

    def exchange(x: Array, left: Array) -> Array:
        before = wide.along_rows(lambda rows: jnp.roll(rows, 1, axis=0), x)
        after = wide.along_rows(lambda rows: jnp.roll(rows, -1, axis=0), x)
        first, last = jnp.arange(x.shape[0]) == 0, jnp.arange(x.shape[0]) == x.shape[0] - 1
        return wide.select(
            left, wide.select(last, x, wide.minimum(x, after)), wide.select(first, x, wide.maximum(x, before))
        )

    def unsorted(x: Array) -> Array:
        return jnp.any(wide.less(x[1:], x[:-1]))

    def turn(state: tuple[Array, Any]) -> tuple[Array, Any]:
        turns, parts = state
        return turns + 1, apart(exchange(exchange(together(parts), even), ~even))

    def impatient(state: tuple[Array, Any]) -> Array:
        return (state[0] < PATIENCE) & unsorted(together(state[1]))

    _, parts = lax.while_loop(impatient, turn, (jnp.int32(0), apart(x)))
    finish = lambda parts: apart(wide.sort(together(parts))[0])  # noqa: E731
    return together(lax.while_loop(lambda parts: unsorted(together(parts)), finish, parts))
