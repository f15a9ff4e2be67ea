"""Order statistics without a sort: which rows are the first k, and where a few marked rows are.

A sort of n rows moves all of them log n times. To find the first k rows, it is enough to know a number that lies between them and the
others: regula falsi finds one by counting, in a few passes over a column that fuse and run along vector registers.
"""

import functools
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Integer, UInt

from dpjax.core import bits
from dpjax.core.staging import SHORT_ROW, unless

Key = Integer[Array, "rows *s"]
_BLOCK = 32  # rows whose marks fill one word
LINE = 128  # words per line, along which vector instructions run


def first(count: Int[Array, ""], present: Bool[Array, "rows"], order: Sequence[Key]) -> Bool[Array, "rows"]:
    """The first `count` of the rows that are present (all, if there are fewer), ordered by the keys and then by row.

    Args:
      count: k >= 0.
      present: which rows are present.
      order: integers of shape (rows,) or, for wide numbers, (rows, limbs); the most significant first.

    >>> first(jnp.int32(2), jnp.array([True, True, False, True]), [jnp.array([5, 3, 1, 5])]).tolist()
    [True, True, False, False]
    """
    rows = present.shape[0]
    spare = jnp.minimum(count, jnp.sum(present, dtype=jnp.int32))
    state = jnp.zeros_like(present), present, spare
    for key in order:
        if key.ndim == 2 and key.shape[1] > SHORT_ROW:
            state, _ = lax.scan(lambda state, column: (_narrow(state, column), None), state, jnp.moveaxis(key, 1, 0))
        else:
            state = functools.reduce(_narrow, jnp.moveaxis(key.reshape(rows, -1), 1, 0), state)
    before, tied, spare = state
    return before | unless(spare == 0, jnp.zeros_like(tied), _first_rows, tied, spare)


# Which rows are among the first, which are tied so far, how many of the latter are among the first.
State = tuple[Bool[Array, "rows"], Bool[Array, "rows"], Int[Array, ""]]


def _narrow(state: State, column: Integer[Array, "rows"]) -> State:
    """The state after one more column: of the tied rows it puts some before the last of the first rows, and leaves some tied with it."""
    before, tied, spare = state
    word = _unsigned(column)
    padded = jnp.pad(jnp.where(tied, word, _most(word)), (0, -word.shape[0] % LINE), constant_values=_most(word))
    (last,), (up_to,) = borders(padded.reshape(-1, LINE), jnp.sum(tied, dtype=jnp.int32), spare[None])
    all_fit = up_to == spare
    less = tied & ((word < last) | ((word == last) & all_fit)) & (spare > 0)
    equal = tied & (word == last) & ~all_fit & (spare > 0)
    return before | less, equal, jnp.where(all_fit, 0, spare - jnp.sum(less, dtype=jnp.int32))


def borders(
    lines: UInt[Array, "lines 128"], total: Int[Array, ""], counts: Int[Array, "k"]
) -> tuple[UInt[Array, "k"], Int[Array, "k"]]:
    """(A number that at least `count` words do not exceed, how many do not) for each count: exactly `count`, or the least such number.

    There are `total` >= counts words. None exceeds the greatest number of the type, so words that do not count may be set to it. The search
    is by regula falsi, as counts of evenly spread words grow linearly; every fourth probe halves the interval, whatever the words are.
    """

    def probe(state: tuple[Array, ...]) -> tuple[Array, ...]:
        turn, low, below, high, up_to = state  # `below` of the words are less than low, `up_to` are at most high
        span, one = high - low, jnp.ones_like(low)
        part, whole = (counts - below).astype(jnp.float32), (up_to - below).astype(jnp.float32)
        # Into the middle of the gap after the last word that belongs below.
        guess = (part + np.float32(0.5)) / (whole + np.float32(1)) * span.astype(jnp.float32)
        last = jnp.maximum(span, one) - one
        step = jnp.where(turn % 4 == 3, span >> one, jnp.minimum(guess.astype(span.dtype), last))
        middle = low + step  # below `high`, unless that is `low`
        here = jnp.sum(bits.tally(lines[:, None] <= middle[None, :, None]), axis=1, dtype=jnp.int32)
        enough = here >= counts
        low, below = jnp.where(enough, low, middle + one), jnp.where(enough, below, here)
        high, up_to = jnp.where(enough, middle, high), jnp.where(enough, here, up_to)
        return turn + 1, low, below, high, up_to

    def unsettled(state: tuple[Array, ...]) -> Bool[Array, ""]:
        _, low, _, high, up_to = state
        return jnp.any((low < high) & (up_to != counts))

    none = jnp.zeros_like(counts)
    high = jnp.full_like(counts, _most(lines), dtype=lines.dtype)
    start: tuple[Array, ...] = (jnp.int32(0), jnp.zeros_like(high), none, high, jnp.where(counts > 0, total, none))
    _, _, _, high, up_to = lax.while_loop(unsettled, probe, start)
    return high, up_to


def _most(word: Array) -> Array:
    """The greatest number of the word's type."""
    return jnp.asarray(np.iinfo(word.dtype).max, word.dtype)


def _unsigned(column: Integer[Array, "rows"]) -> Array:
    """Unsigned integers in the same order."""
    if jnp.issubdtype(column.dtype, jnp.unsignedinteger):
        return column
    word = lax.bitcast_convert_type(column, jnp.dtype(f"uint{8 * column.dtype.itemsize}"))
    return word ^ jnp.asarray(jnp.iinfo(column.dtype).min, column.dtype).astype(word.dtype)


def _first_rows(tied: Bool[Array, "rows"], count: Int[Array, ""]) -> Bool[Array, "rows"]:
    """The first `count` marked rows."""
    return tied & (jnp.cumsum(tied, dtype=jnp.int32) <= count)


def places(marked: Bool[Array, "rows"], capacity: int) -> Int[Array, "capacity"]:
    """The marked rows, at most `capacity` of them, in order; arbitrary rows follow.

    Marks are packed into words. Which word holds the i-th mark is found in the running sum of the words' counts, and the place within it
    by bisection on its bits.

    >>> places(jnp.array([False, True, False, True]), 2).tolist()
    [1, 3]
    """
    rows = marked.shape[0]
    block = jnp.pad(marked, (0, -rows % _BLOCK)).reshape(-1, _BLOCK)
    words = jnp.sum(block.astype(jnp.uint32) << jnp.arange(_BLOCK, dtype=jnp.uint32)[None], axis=1, dtype=jnp.uint32)
    up_to = jnp.cumsum(lax.population_count(words).astype(jnp.int32))
    rank = jnp.arange(capacity, dtype=jnp.int32)
    holder = jnp.minimum(jnp.searchsorted(up_to, rank, side="right").astype(jnp.int32), words.shape[0] - 1)
    word = words[holder]
    before = up_to[holder] - lax.population_count(word).astype(jnp.int32)
    left = rank - before  # marks in the word before the wanted one
    place = jnp.zeros_like(rank)
    for width in (16, 8, 4, 2, 1):
        lower = lax.population_count(word & np.uint32((1 << width) - 1)).astype(jnp.int32)
        beyond = left >= lower
        left, place = jnp.where(beyond, left - lower, left), jnp.where(beyond, place + width, place)
        word = jnp.where(beyond, word >> np.uint32(width), word)
    return jnp.minimum(holder * _BLOCK + place, rows - 1)
