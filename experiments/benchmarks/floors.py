"""What the random words and the data movement of a contest cost by themselves.

A trial that draws all of its examples and sorts them cannot be faster. Many of dpjax's are, because they draw order statistics, or counts.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dpjax.core import bits, random
from dpjax.core.pytree import frozen, static


@frozen
class Sorting:
    """Parameters of `sorting`."""

    n: int = static()
    limbs: int = static()


def sorting(key: jax.Array, floor: Sorting) -> jax.Array:
    """n words drawn and one sort of n keys of that width."""
    words = jax.random.bits(key, (floor.n,), jnp.uint32)
    columns = [words ^ np.uint32(0x9E3779B9 * limb & 0xFFFFFFFF) for limb in range(floor.limbs)]
    ordered = lax.sort(tuple(columns), num_keys=floor.limbs)
    return (functools.reduce(jnp.add, [column[floor.n // 2] for column in ordered]) & np.uint32(1)).astype(jnp.int32)


@frozen
class System:
    """A linear system [A | Y] over GF(2): d unknowns, rows, k right-hand sides."""

    d: int = static()
    rows: int = static()
    k: int = static()

    @property
    def words(self) -> int:
        """The number of words in a row."""
        return bits.words_for(self.d) + bits.words_for(self.k)


def elimination(key: jax.Array, system: System) -> jax.Array:
    """The bits that elimination moves, once for 8 pivots as with an ideal cache: a matrix drawn, then d/8 times read, changed, written."""
    matrix = random.bits(key, system.rows * system.words).reshape(system.words, system.rows)
    matrix = lax.fori_loop(0, system.d // 8, lambda i, m: m ^ m[0][None] ^ i.astype(jnp.uint32), matrix)
    return (jnp.max(matrix) & np.uint32(1)).astype(jnp.int32)


@frozen
class Words:
    """Parameters of `words` and `permutation`."""

    count: int = static()


def words(key: jax.Array, floor: Words) -> jax.Array:
    """`count` random words drawn and added up."""
    size = min(floor.count, 1 << 17)

    def add(block: jax.Array, total: jax.Array) -> jax.Array:
        return total + jnp.sum(random.bits(jax.random.fold_in(key, block), size), dtype=jnp.uint32)

    return (lax.fori_loop(0, -(-floor.count // size), add, jnp.uint32(0)) & np.uint32(1)).astype(jnp.int32)


def permutation(key: jax.Array, floor: Words) -> jax.Array:
    """One secret order of the columns of a Boneh-Shaw book."""
    return (jax.random.permutation(key, floor.count)[0] & 1).astype(jnp.int32)


Floor = tuple[Any, Any]  # (run, params)
