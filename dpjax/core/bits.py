"""Vectors of bits packed into 32-bit words: bit j is bit j mod 32 of word j // 32. Bits past the last one are 0."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

WORD = 32


def words_for(bits: int) -> int:
    """How many words hold `bits` bits.

    >>> words_for(32), words_for(33)
    (1, 2)
    """
    return -(-bits // WORD)


@jax.jit
def pack(values: Bool[Array, "*n bits"]) -> UInt32[Array, "*n words"]:
    """Booleans packed into words.

    >>> pack(jnp.array([True, False, True])).tolist()
    [5]
    """
    bits = values.shape[-1]
    missing = words_for(bits) * WORD - bits
    padded = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    # Four booleans are four bytes of a word, and one multiplication moves their bits side by side into its upper end.
    bytes_ = padded.astype(jnp.uint8).reshape(*values.shape[:-1], -1, WORD // 4, 4)
    fours = (lax.bitcast_convert_type(bytes_, jnp.uint32) * np.uint32(0x10204080)) >> np.uint32(28)
    # 8 terms in one fused pass: a sum over the last axis takes XLA eight times as long on a CPU.
    terms = [fours[..., i] << np.uint32(4 * i) for i in range(WORD // 4)]
    return functools.reduce(jnp.bitwise_or, terms)


@jax.jit(static_argnums=1)
def unpack(words: UInt32[Array, "*n words"], bits: int) -> Bool[Array, "*n bits"]:
    """The first `bits` bits as booleans.

    >>> unpack(jnp.array([5], jnp.uint32), 3).tolist()
    [True, False, True]
    """
    shifts = np.arange(WORD, dtype=np.uint32).reshape((1,) * words.ndim + (WORD,))
    lanes = (words[..., None] >> jnp.asarray(shifts)) & np.uint32(1)
    return lanes.reshape(*words.shape[:-1], -1)[..., :bits].astype(bool)


def spread(words: UInt32[Array, "*n words"]) -> Bool[Array, "*n bits"]:
    """All bits as booleans in the order that is fastest to read: bit j of word w is entry j * words + w.

    >>> spread(jnp.array([5, 1], jnp.uint32))[:6].tolist()
    [True, True, False, False, True, False]
    """
    shifts = jnp.arange(WORD, dtype=jnp.uint32).reshape((1,) * (words.ndim - 1) + (WORD, 1))
    lanes = ((words[..., None, :] >> shifts) & np.uint32(1)) != 0
    return lanes.reshape(*words.shape[:-1], -1)


def planes(values: UInt32[Array, "32 n"]) -> UInt32[Array, "32 n"]:
    """32 words turned into their 32 binary digits: bit i of planes(values)[j, w] is bit j of values[i, w].

    >>> planes(jnp.zeros((32, 1), jnp.uint32).at[3, 0].set(6))[:4, 0].tolist()
    [0, 8, 8, 0]
    """
    places = jnp.arange(WORD, dtype=jnp.uint32)[:, None]
    terms = [((values[i][None] >> places) & np.uint32(1)) << np.uint32(i) for i in range(WORD)]
    return functools.reduce(jnp.bitwise_or, terms)


@jax.jit
def column(words: UInt32[Array, "*n words"], j: Int[Array, ""]) -> Bool[Array, "*n"]:
    """Bit j of every vector; j may be traced."""
    word = jnp.take(words, j // WORD, axis=-1)
    return ((word >> (j % WORD).astype(jnp.uint32)) & np.uint32(1)).astype(bool)


def bit_length(x: Int[Array, "*n"]) -> Int[Array, "*n"]:
    """Number of binary digits of an int32 >= 0.

    >>> bit_length(jnp.int32(8)).tolist()
    4
    """
    return 32 - lax.clz(x)


@jax.jit
def count(words: UInt32[Array, "*n words"]) -> Int[Array, "*n"]:
    """How many bits are set.

    >>> count(jnp.array([[5, 1]], jnp.uint32)).tolist()
    [3]
    """
    return jnp.sum(lax.population_count(words).astype(jnp.int32), axis=-1, dtype=jnp.int32)


@jax.jit
def count_columns(words: UInt32[Array, "rows d"], mask: UInt32[Array, "rows"]) -> Int[Array, "d"]:
    """How many bits of each column are set where those of the mask are; rows after the last one with a mask cost nothing.

    It takes blocks of 8 rows: on a CPU a reduction over few rows runs along the columns, as fast as memory is read; one over many rows
    runs across them.

    >>> count_columns(jnp.array([[5, 1], [0, 3]], jnp.uint32), jnp.array([4, 7], jnp.uint32)).tolist()
    [1, 2]
    """
    block = min(words.shape[0], 8)

    def add(turn: Array, total: Array) -> Array:
        # The last block may overlap the one before: its rows that were counted are masked.
        start = jnp.minimum(turn * block, words.shape[0] - block)
        fresh = start + jnp.arange(block, dtype=jnp.int32) >= turn * block
        masked = jnp.where(fresh, lax.dynamic_slice_in_dim(mask, start, block), np.uint32(0))
        here = lax.dynamic_slice_in_dim(words, start, block) & masked[:, None]
        return total + jnp.sum(jnp.bitwise_count(here).astype(jnp.int32), axis=0, dtype=jnp.int32)

    used = jnp.max(jnp.where(mask != 0, jnp.arange(1, words.shape[0] + 1, dtype=jnp.int32), 0))
    return lax.fori_loop(0, (used + block - 1) // block, add, jnp.zeros(words.shape[1], jnp.int32))


def tally(flags: Bool[Array, "n *rest"]) -> Int[Array, "*rest"]:
    """How many are true along the first axis, added up in the narrowest integers that hold the count: 3 times as fast as in 32 bits.

    >>> tally(jnp.array([[True, False], [True, True]])).tolist()
    [2, 1]
    """
    narrow = next((kind for kind in (jnp.uint8, jnp.uint16) if flags.shape[0] <= jnp.iinfo(kind).max), jnp.int32)
    return jnp.sum(flags.astype(narrow), axis=0, dtype=narrow).astype(jnp.int32)


def odd(words: UInt32[Array, "*n words"]) -> Bool[Array, "*n"]:
    """Whether an odd number of bits is set."""
    return (count(words) & 1).astype(bool)
