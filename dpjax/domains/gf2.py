"""Linear algebra over GF(2) on packed bits: products, and Gaussian elimination for all right-hand sides at once.

Vectors are packed as in `dpjax.core.bits` (bit j is bit j mod 32 of word j // 32). Inside, matrices lie word by word, (words, rows), so
that vector instructions run along the rows and the bits of one column are neighbours in memory.

    >>> import jax.numpy as jnp
    >>> from dpjax.core import bits
    >>> a = bits.pack(jnp.array([[1, 1], [0, 1], [1, 0]], bool))
    >>> y = bits.pack(jnp.array([[1, 0], [1, 1], [0, 1]], bool))
    >>> solution = solve(a, y, columns=2)
    >>> int(solution.rank), bool(solution.consistent), bits.unpack(solution.unknowns, 2).astype(int).tolist()
    (2, True, [[0, 1], [1, 1]])
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import bits
from dpjax.core.bits import WORD
from dpjax.core.staging import once

_ONE = np.uint32(1)
# A matrix of _LARGE words (128 KiB) or more is swept once for _TOGETHER pivots. A smaller one stays in a CPU's cache and is swept once for
# each pivot, which is less work; on other devices a batch of matrices never stays in a cache.
_LARGE, _TOGETHER = 1 << 15, 8


class Solution(NamedTuple):
    """What `solve` finds.

    Attributes:
      unknowns: one row for each column of A, one bit for each right-hand side; solves the system if `consistent`. Free unknowns are 0.
      rank: the rank of A.
      consistent: whether every right-hand side has a solution.
      leading: which columns have a pivot: those that are not a sum of earlier columns. On the row space the bits there decide all others.
    """

    unknowns: UInt32[Array, "columns words"]
    rank: Int[Array, ""]
    consistent: Bool[Array, ""]
    leading: Bool[Array, "columns"]


def solve(
    a: UInt32[Array, "rows limbs"],
    y: UInt32[Array, "rows words"],
    *,
    columns: int,
    n_valid: Int[Array, ""] | None = None,
) -> Solution:
    """Solves A v_j = y_j over GF(2) for every column y_j of y, by one Gauss-Jordan elimination of [A | y].

    No rows are swapped: a row that has served as a pivot is marked as used. A pivot adds its row to all others with a one in its column:
    columns x rows x (limbs + words) words are read and written. A matrix too large for the nearest cache is swept once for several pivots,
    which are found beforehand on the columns they need.

    Args:
      a: the rows of A, packed; bits past `columns` are ignored.
      y: the right-hand sides, row by row, packed.
      columns: number of unknowns (static).
      n_valid: how many rows count, default all; may be traced. Others are ignored, whatever they hold.

    Returns:
      A `Solution`. It is the only one iff rank == columns.
    """
    limbs, rows = bits.words_for(columns), a.shape[0]
    matrix = jnp.concatenate([a[:, :limbs] & _ones(columns)[None], y], axis=1).T
    if n_valid is not None:
        matrix = jnp.where((jnp.arange(rows, dtype=jnp.int32) < n_valid)[None], matrix, np.uint32(0))
    width = _TOGETHER if matrix.size >= _LARGE or jax.default_backend() != "cpu" else 1
    sweeps = -(-columns // width)

    def sweep(block: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        matrix, used, pivots = state
        word = lax.dynamic_index_in_dim(matrix, block * width // WORD, keepdims=False)
        steps: list[tuple[Array, Array]] = []
        for c in [block * width + i for i in range(width)]:
            # Stored: otherwise all of it would be computed again for every word of the matrix, which then could not be updated in place.
            pivot, where, row, word, used = once(_pivot, c, matrix, word, used, steps)
            steps.append((where, row))
            pivots = pivots.at[c].set(pivot)
        added = [where[None] & row[:, None] for where, row in steps]
        return functools.reduce(jnp.bitwise_xor, added, matrix), used, pivots

    start = (matrix, jnp.zeros((rows,), bool), jnp.zeros((sweeps * width,), jnp.int32))
    matrix, used, pivots = lax.fori_loop(0, sweeps, sweep, start)
    right = matrix[limbs:]
    # Rows that are not pivots have become zero on the left.
    return Solution(
        unknowns=jnp.take(right, pivots[:columns], axis=1, mode="fill", fill_value=0).T,
        rank=jnp.sum(used, dtype=jnp.int32),
        consistent=~jnp.any((right != 0) & ~used[None]),
        leading=pivots[:columns] < rows,
    )


def _pivot(
    c: Int[Array, ""],
    matrix: UInt32[Array, "words rows"],
    word: UInt32[Array, "rows"],
    used: Bool[Array, "rows"],
    steps: list[tuple[Array, Array]],
) -> tuple[Array, Array, Array, Array, Array]:
    """The pivot of column c, and what it does.

    `steps` are those already decided but not yet applied to the matrix, each (where, row): row is to be added where all bits are set.
    `word` is the word of all rows that holds column c; to it they have been applied.

    Returns:
      (the pivot's place, or `rows` if there is none; where its row is to be added, as words of ones or zeros; its row; word; used).
    """
    rows = word.shape[0]
    ones = ((word >> (c % WORD).astype(jnp.uint32)) & _ONE).astype(bool)
    free = ones & ~used
    place = jnp.argmax(free).astype(jnp.int32)
    found = free[place]
    here = (jnp.arange(rows, dtype=jnp.int32) == place) & found
    row = lax.dynamic_index_in_dim(matrix, place, axis=1, keepdims=False)
    for where, added in steps:
        row = row ^ (where[place] & added)
    where = jnp.where(ones & ~here & found, np.uint32(0xFFFFFFFF), np.uint32(0))
    return jnp.where(found, place, rows), where, row, word ^ (where & row[c // WORD]), used | here


def product(a: UInt32[Array, "n limbs"], b: UInt32[Array, "k limbs"]) -> UInt32[Array, "n words"]:
    """All inner products <a_i, b_j> mod 2, packed over j.

    It goes bit by bit of the answer's words: 32 passes, each over contiguous columns. On a CPU this is sixteen times faster than a matrix
    product of floats, which spends most of its time on unpacking and packing.

    >>> product(jnp.array([[3], [1]], jnp.uint32), jnp.array([[1], [2], [3]], jnp.uint32)).tolist()
    [[3], [5]]
    """
    n, limbs = a.shape
    k = b.shape[0]
    words = bits.words_for(k)
    a = a.T
    lanes = jnp.pad(b, ((0, WORD * words - k), (0, 0))).reshape(words, WORD, limbs).transpose(1, 2, 0)

    def one_bit(place: Array, answer: Array) -> Array:
        b = lanes[place]
        common = functools.reduce(jnp.bitwise_xor, [a[i][None] & b[i][:, None] for i in range(limbs)])
        return answer | ((lax.population_count(common) & _ONE) << place.astype(jnp.uint32))

    return lax.fori_loop(0, WORD, one_bit, jnp.zeros((words, n), jnp.uint32)).T


def transpose(a: UInt32[Array, "rows words"], columns: int) -> UInt32[Array, "columns more"]:
    """The transposed matrix of `columns` bits a row, packed.

    >>> transpose(jnp.array([[1], [3]], jnp.uint32), 2).tolist()
    [[3], [2]]
    """
    return bits.pack(bits.unpack(a, columns).T)


def _ones(columns: int) -> UInt32[Array, "words"]:
    """`columns` ones, packed."""
    return bits.pack(jnp.ones((columns,), bool))


def walsh_hadamard(f: Int[Array, "points"]) -> Int[Array, "points"]:
    """F(v) = sum_x f(x) (-1)^<v,x>, in d passes over the 2^d values.

    >>> walsh_hadamard(jnp.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    points = f.shape[0]
    half = 1
    while half < points:
        pairs = f.reshape(-1, 2, half)
        f = jnp.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(points)
        half *= 2
    return f
