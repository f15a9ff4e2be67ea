"""Groups of equal rows of an array: a few distinct rows are found by comparison, many by a sort.

Rows are vectors of words: points of any width, or points followed by packed labels. `group` sorts them: rows of a few words at once, with
no gathers; longer ones word by word, least significant first (each pass stable), so the program does not grow with the width. `drawn` is
the fast way for samplers: it finds distinct rows one by one, by comparing the first row that is in no group yet with all others. That is
one pass over the data for each distinct row and moves nothing. Only data with more than a few distinct rows are sorted.

    >>> from dpjax.domains import wide
    >>> x, valid = wide.from_ints([7, 2**40, 7, 7], 64), jnp.array([True, True, True, False])
    >>> found = group(x, valid)
    >>> int(found.size), wide.to_ints(found.rows[:2]), found.counts[:2].tolist()
    (2, [7, 1099511627776], [2, 1])
    >>> int(drawn(jax.random.key(0), x, valid, lambda key, found: jnp.max(found.counts)))
    2
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import sorting, staging, sums
from dpjax.core.pytree import frozen

FEW_WORDS = 4  # rows of up to this many words are compared in one sort; longer ones are sorted in one pass per word
FEW_GROUPS = 32  # finding so many by comparison costs less than a sort
_OPEN = np.int32(-1)  # in no group yet

T = TypeVar("T")


@frozen
class Groups:
    """The distinct rows among the valid ones, in increasing order.

    Attributes:
      rows: group i's row; all ones from `size` on, so that the whole array increases.
      counts: how many valid rows equal it, 0 from `size` on.
      size: how many groups there are.
      found: the group of every row of the input, numbered in the order in which they were found; the number of slots for an invalid row.
      rank: the place in increasing order of each group found; None if they were found in that order.
    """

    rows: UInt32[Array, "slots words"]
    counts: Int[Array, "slots"]
    size: Int[Array, ""]
    found: Int[Array, "n"]
    rank: Int[Array, "slots"] | None = None

    @property
    def valid(self) -> Bool[Array, "slots"]:
        """Which groups exist."""
        return jnp.arange(self.counts.shape[0], dtype=jnp.int32) < self.size

    @property
    def member(self) -> Array:
        """(n,): the group of every row of the input; the number of slots for an invalid row."""
        return self.found if self.rank is None else jnp.append(self.rank, self.rank.shape[0])[self.found]

    def sums(self, values: Int[Array, "n"]) -> Int[Array, "slots"]:
        """The sum of `values` over each group's rows; places are looked up for groups, not for rows."""
        return _placed(_sums(values, self.found, self.counts.shape[0], self.size), self.rank)


def group(rows: UInt32[Array, "n words"], valid: Bool[Array, "n"], *, ordered: bool = False) -> Groups:
    """The groups of equal rows, with a slot for every row.

    Args:
      rows, valid: the rows, and which of them count.
      ordered: promise that the rows that count come first and increase; then nothing is sorted.
    """
    if ordered:
        order = jnp.arange(rows.shape[0], dtype=jnp.int32)
    else:
        rows, valid, order = in_order(rows, valid)
    return _runs(rows, valid, order, jnp.ones_like(order))


def drawn(key: Array, rows: UInt32[Array, "n words"], valid: Bool[Array, "n"], draw: Callable[[Array, Groups], T]) -> T:
    """draw(key, group(rows, valid)), the fast way, for a draw whose result does not depend on the number of slots.

    The draw is passed as a function, because groups in a few slots and groups in one slot per row have different shapes: it is traced for
    both, and computed for the latter only if a trial of the batch needs so many. Both get a clone of the key, which tells JAX's check of
    keys that the same coins are intended. For laws use `group`: the conditional here is a loop, which has no reverse mode.
    """
    found, complete = few(rows, valid)
    if found.counts.shape[0] == rows.shape[0]:
        return draw(key, found)
    again = lambda rows, valid: draw(jax.random.clone(key), group(rows, valid))  # noqa: E731
    return staging.unless(complete, draw(jax.random.clone(key), found), again, rows, valid)


def few(rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]) -> tuple[Groups, Bool[Array, ""]]:
    """(the groups of equal rows in at most `FEW_GROUPS` slots, whether these are all; if not, the other rows are in none)."""
    n, slots = rows.shape[0], min(rows.shape[0], FEW_GROUPS)
    columns = rows.T
    place = jnp.arange(n, dtype=jnp.int32)

    def next_leader(member: Array) -> Array:
        return staging.least(jnp.where(member == _OPEN, place, n))

    def unfinished(state: tuple[Array, Array, Array, Array]) -> Array:
        size, leader, _, _ = state
        return (size < slots) & (leader < n)

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        size, leader, leaders, member = state
        member = jnp.where((member == _OPEN) & jnp.all(columns == columns[:, leader, None], axis=0), size, member)
        return size + 1, next_leader(member), leaders.at[size].set(leader), member

    member = jnp.where(valid, _OPEN, slots).astype(jnp.int32)
    start = jnp.int32(0), next_leader(member), jnp.zeros((slots,), jnp.int32), member
    size, leader, leaders, member = lax.while_loop(unfinished, step, start)
    rank = _ranks(columns[:, leaders], place[:slots] < size)
    member = jnp.where(member == _OPEN, slots, member)
    distinct = jnp.full((slots, rows.shape[1]), np.uint32(0xFFFFFFFF)).at[rank].set(rows[leaders], mode="drop")
    counts = _placed(_sums(jnp.ones_like(member), member, slots, size), rank)
    return Groups(rows=distinct, counts=counts, size=size, found=member, rank=rank), leader == n


def _ranks(columns: UInt32[Array, "words slots"], there: Bool[Array, "slots"]) -> Int[Array, "slots"]:
    """How many columns are below each one, all being different; the number of slots for columns that are not there."""

    def compare(state: tuple[Array, Array], word: Array) -> tuple[tuple[Array, Array], None]:
        less, equal = state
        return (less | (equal & (word[:, None] < word[None])), equal & (word[:, None] == word[None])), None

    slots = there.shape[0]
    start = jnp.zeros((slots, slots), bool), jnp.ones((slots, slots), bool)
    (less, _), _ = lax.scan(compare, start, columns, unroll=min(columns.shape[0], 8))
    return jnp.where(there, jnp.sum(less & there[:, None], axis=0, dtype=jnp.int32), slots)


def coarser(fine: Groups, words: int) -> Groups:
    """The groups of rows by their first words alone, from groups of whole rows; `member` is the coarse group of every fine one."""
    slots = fine.counts.shape[0]
    return _runs(fine.rows[:, :words], fine.valid, jnp.arange(slots, dtype=jnp.int32), fine.counts)


def _placed(sums: Int[Array, "slots"], rank: Int[Array, "slots"] | None) -> Int[Array, "slots"]:
    """Brings sums of groups, numbered as found, into increasing order; a few of them by comparison, as a scatter goes one by one."""
    if rank is None:
        return sums
    here = rank[:, None] == jnp.arange(rank.shape[0], dtype=jnp.int32)[None]
    return jnp.sum(jnp.where(here, sums[:, None], 0), axis=0, dtype=jnp.int32)


def _sums(values: Int[Array, "n"], member: Int[Array, "n"], slots: int, size: Int[Array, ""]) -> Int[Array, "slots"]:
    """The sum of the values of each of the first `size` groups."""
    if slots > FEW_GROUPS:
        return jnp.zeros((slots,), jnp.int32).at[member].add(values, mode="drop")

    def one(group: Array, sums: Array) -> Array:  # a scatter goes row by row
        return sums.at[group].set(jnp.sum(jnp.where(member == group, values, 0), dtype=jnp.int32))

    return lax.fori_loop(0, size, one, jnp.zeros((slots,), jnp.int32))


def in_order(
    rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]
) -> tuple[UInt32[Array, "n words"], Bool[Array, "n"], Int[Array, "n"]]:
    """(rows, valid, their places in the input) in the order of `lexicographic`: valid ones first, increasing; stable."""
    n, words = rows.shape
    if words > FEW_WORDS:
        order = lexicographic(rows, valid)
        return rows[order], valid[order], order
    columns = [rows[:, i] for i in range(words)]
    invalid, *columns, order = sorting.sort([(~valid).astype(jnp.uint32), *columns], jnp.arange(n, dtype=jnp.int32))
    return jnp.stack(columns, axis=1), invalid == 0, order


def lexicographic(rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]) -> Int[Array, "n"]:
    """The stable order that puts valid rows first, increasing."""
    n, words = rows.shape

    def by(keys: Array, order: Array) -> Array:
        return lax.sort((keys[order], order), num_keys=1, is_stable=True)[1]

    order = jnp.arange(n, dtype=jnp.int32)
    order = lax.fori_loop(0, words, lambda i, order: by(rows[:, words - 1 - i], order), order)
    return by((~valid).astype(jnp.int32), order)


def _runs(rows: Array, valid: Array, order: Array, counts: Array) -> Groups:
    """The groups of sorted rows, valid ones first, where row i counts `counts[i]` times and was row `order[i]` of the input."""
    n = rows.shape[0]
    new = jnp.concatenate([jnp.ones((1,), bool), jnp.any(rows[1:] != rows[:-1], axis=1)]) & valid
    index, size = jnp.where(valid, sums.running(new.astype(jnp.int32)) - 1, n), jnp.sum(new, dtype=jnp.int32)
    return Groups(
        rows=jnp.full_like(rows, np.uint32(0xFFFFFFFF)).at[index].set(rows, mode="drop"),
        counts=_sums(counts, index, n, size),
        size=size,
        found=jnp.zeros((n,), jnp.int32).at[order].set(index),
    )
