"""Sorts by several keys, and sorts of floats, in the way that is fast on each platform.

A CPU compares all keys at once. The radix sort of a GPU's vendor takes one key and a simple comparison; anything else goes to a sort
several times slower. There the keys are sorted one by one, the least significant first, each pass stable.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Shaped, UInt


def sort(keys: Sequence[Shaped[Array, "n"]], *carried: Shaped[Array, "n"]) -> tuple[Shaped[Array, "n"], ...]:
    """Keys in lexicographic order, the first the most significant, and what is carried along; stable.

    >>> [column.tolist() for column in sort([jnp.array([2, 1, 2]), jnp.array([0, 5, 0])], jnp.arange(3))]
    [[1, 2, 2], [5, 0, 0], [1, 0, 2]]
    """
    if len(keys) == 1:
        return tuple(lax.sort((*keys, *carried), num_keys=1, is_stable=True))
    count = len(keys)

    def at_once(*columns: Array) -> tuple[Array, ...]:
        return tuple(lax.sort(columns, num_keys=count, is_stable=True))

    def by_passes(*columns: Array) -> tuple[Array, ...]:
        return in_passes(columns, count)

    return tuple(lax.platform_dependent(*keys, *carried, cpu=at_once, default=by_passes))


def in_passes(columns: Sequence[Array], count: int) -> tuple[Array, ...]:
    """`sort` of the first `count` columns, one at a time from the last to the first; the others are carried."""
    order = jnp.arange(columns[0].shape[0], dtype=jnp.int32)
    for key in reversed(columns[:count]):
        order = lax.sort((key[order], order), num_keys=1, is_stable=True)[1]
    return tuple(column[order] for column in columns)


@jax.custom_jvp
def floats(x: Float[Array, "n"]) -> Float[Array, "n"]:
    """jnp.sort of floats, by integers in the same order, which XLA compares five times as fast on a CPU; NaNs are at one of the ends.

    >>> floats(jnp.array([2.0, -1.0, jnp.inf, -3.0, 0.5])).tolist()
    [-3.0, -1.0, 0.5, 2.0, inf]
    """
    each, sign = _integers(x)
    keys = lax.sort(each)
    return lax.bitcast_convert_type(jnp.where(keys >= sign, keys ^ sign, ~keys), x.dtype)


def order(x: Float[Array, "n"]) -> Int[Array, "n"]:
    """jnp.argsort of floats, but -0.0 before 0.0, likewise: a GPU's radix sort takes no comparison of floats.

    >>> order(jnp.array([2.0, -1.0, jnp.inf, -3.0])).tolist()
    [3, 1, 0, 2]
    """
    return sort([_integers(x)[0]], jnp.arange(x.shape[0], dtype=jnp.int32))[1]


def _integers(x: Float[Array, "n"]) -> tuple[UInt[Array, "n"], UInt[Array, ""]]:
    """(Integers in the order of the floats, the integer of the least float that is not negative)."""
    word = jnp.uint64 if x.dtype == jnp.float64 else jnp.uint32
    sign = jnp.array(1, word) << (jnp.iinfo(word).bits - 1)
    bits = lax.bitcast_convert_type(x, word)
    return jnp.where(bits >= sign, ~bits, bits | sign), sign


@floats.defjvp
def _floats_jvp(primals: Any, tangents: Any) -> Any:
    return jax.jvp(jnp.sort, primals, tangents)
