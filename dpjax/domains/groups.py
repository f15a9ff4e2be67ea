"""Equal rows of an array brought together: one sort, then runs.

Rows are vectors of words, points of any width or points followed by packed labels. A few words are sorted at once, with no gathers;
more of them word by word, least significant first (each pass stable), so the program does not grow with the width.

    >>> from dpjax.domains import wide
    >>> x = wide.from_ints([7, 2**40, 7, 7], 64)
    >>> found = group(x, jnp.array([True, True, True, False]))
    >>> int(found.size), wide.to_ints(found.rows[:2]), found.counts[:2].tolist()
    (2, [7, 1099511627776], [2, 1])
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.pytree import frozen

FEW_WORDS = 4  # the comparison of one sort grows with them, as the passes of the other way do


@frozen
class Groups:
    """The distinct rows among the valid ones, in increasing order.

    Attributes:
      rows: group i's row; all ones from `size` on, so that the whole array increases.
      counts: how many valid rows equal it, 0 from `size` on.
      size: how many groups there are.
      member: the group of every row of the input; its length for an invalid row.
    """

    rows: UInt32[Array, "n words"]
    counts: Int[Array, "n"]
    size: Int[Array, ""]
    member: Int[Array, "n"]

    @property
    def valid(self) -> Bool[Array, "n"]:
        """Which groups exist."""
        return jnp.arange(self.counts.shape[0], dtype=jnp.int32) < self.size

    def sums(self, values: Int[Array, "n"]) -> Int[Array, "n"]:
        """The sum of `values` over each group's rows."""
        return jnp.zeros_like(self.counts).at[self.member].add(values, mode="drop")


def group(rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]) -> Groups:
    """The groups of equal rows."""
    return _runs(*_in_order(rows, valid))


def nested(
    x: UInt32[Array, "n limbs"], y: UInt32[Array, "n words"], valid: Bool[Array, "n"]
) -> tuple[Groups, Groups, Int[Array, "n"]]:
    """(groups of x, groups of (x, y), which of the former each of the latter lies in), from one sort.

    The third is n from the last group of (x, y) on.
    """
    both = jnp.concatenate([x, y], axis=1)
    n, limbs = x.shape
    rows, valid, order = _in_order(both, valid)
    coarse, fine = (_runs(part, valid, order) for part in (rows[:, :limbs], rows))
    parent = jnp.full((n,), n, jnp.int32).at[fine.member].set(coarse.member, mode="drop")
    return coarse, fine, parent


def _in_order(
    rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]
) -> tuple[UInt32[Array, "n words"], Bool[Array, "n"], Int[Array, "n"]]:
    """(rows, valid, their places in the input) in the order of `lexicographic`."""
    n, words = rows.shape
    if words > FEW_WORDS:
        order = lexicographic(rows, valid)
        return rows[order], valid[order], order
    columns = [rows[:, i] for i in range(words)]
    keys = ((~valid).astype(jnp.uint32), *columns, jnp.arange(n, dtype=jnp.int32))  # the place makes it stable
    invalid, *columns, order = lax.sort(keys, num_keys=len(keys), is_stable=False)
    return jnp.stack(columns, axis=1), invalid == 0, order


def lexicographic(rows: UInt32[Array, "n words"], valid: Bool[Array, "n"]) -> Int[Array, "n"]:
    """The stable order that puts valid rows first, increasing."""
    n, words = rows.shape

    def by(keys: Array, order: Array) -> Array:
        return lax.sort((keys[order], order), num_keys=1, is_stable=True)[1]

    order = jnp.arange(n, dtype=jnp.int32)
    order = lax.fori_loop(0, words, lambda i, order: by(rows[:, words - 1 - i], order), order)
    return by((~valid).astype(jnp.int32), order)


def _runs(rows: Array, valid: Array, order: Array) -> Groups:
    """The groups of rows in order, whose places in the input were `order`."""
    n = rows.shape[0]
    new = jnp.concatenate([jnp.ones((1,), bool), jnp.any(rows[1:] != rows[:-1], axis=1)]) & valid
    index = jnp.where(valid, jnp.cumsum(new, dtype=jnp.int32) - 1, n)
    return Groups(
        rows=jnp.full_like(rows, np.uint32(0xFFFFFFFF)).at[index].set(rows, mode="drop"),
        counts=jnp.zeros((n,), jnp.int32).at[index].add(1, mode="drop"),
        size=jnp.sum(new, dtype=jnp.int32),
        member=jnp.zeros((n,), jnp.int32).at[order].set(index),
    )
