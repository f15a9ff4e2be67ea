"""What both fingerprinting codes share: books read by blocks of columns, words, and the verdict of a trace (MULTI §5.1).

A code hands user i the row w_i of a secret matrix W of n rows and k columns. A coalition T makes a word w' out of its rows, under
the marking assumption w' in F(W_T): every w'_j occurs in column j of some member. Security xi (Definition 41) says, for every T
and every strategy, with probability over the code's and the strategy's coins,

    completeness   P[w' in F(W_T) and nobody is accused]  <= xi
    soundness      P[somebody outside T is accused]       <= xi.

Everything a trace needs is a sum over columns, so a book is anything that can show its columns block by block: `generate` holds
them packed, `stream` makes them again from the key when asked, column for column the same. Blocks have a fixed size and block b
draws from fold_in(key, b): nothing depends on how many blocks are processed together.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Shaped, UInt32

from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen
from dpjax.core.staging import once

BLOCK = 1024  # columns; a multiple of 32
MOST_COLUMNS = 2**31 - BLOCK  # so that the numbers of columns, up to the end of a block, fit int32
LEAST_XI = 2.0**-960  # for any number of users, xi / users and its inverse are numbers of float64
_AT_ONCE = 8  # blocks traced together, so that a step of the loop is worth its overhead


def security(xi: Any) -> float:
    """xi, checked: in [2^-960, 1)."""
    return arguments.known("xi", xi, above=0.0, at_least=LEAST_XI, below=1.0)


@frozen
class Columns:
    """One block of a book.

    Attributes:
      bits: what the users hold; False past the last column.
      valid: which columns exist.
      hidden: what only the tracer knows of each column.
    """

    bits: Bool[Array, "users block"]
    valid: Bool[Array, "block"]
    hidden: Any


@frozen
class Accusation:
    """The verdict of a trace.

    Attributes:
      accused: by user, scores > thresholds.
      scores: by user; what they mean depends on the code.
      thresholds: by user.

    In a batch of verdicts the users are the last axis, and `user` has the other axes.
    """

    accused: Bool[Array, "... users"]
    scores: Float[Array, "... users"]
    thresholds: Float[Array, "... users"]

    @property
    @jax.jit
    def user(self) -> Int[Array, "..."]:
        """Definition 41's Trace: the accused user whose score is farthest above the threshold, -1 for ⊥."""
        margin = jnp.where(self.accused, self.scores - self.thresholds, -jnp.inf)
        return jnp.where(jnp.any(self.accused, axis=-1), jnp.argmax(margin, axis=-1), -1).astype(jnp.int32)


class Code:
    """What a code defines, and what follows from it; log_term > 0 is the logarithm in its error bounds.

    `secret(key)` draws all that the blocks have in common; `columns(secret, b)` makes block b; `part(columns, word)` is what a block
    adds to the sums that a trace needs, which start from `nothing()`; and `accuse(sums)` judges the sums.
    """

    log_term: Any
    users: int
    length: int
    every_word = True  # whether soundness holds for every word, or for feasible ones only

    def secret(self, key: Array) -> Any:
        raise NotImplementedError

    def columns(self, secret: Any, block: Int[Array, ""]) -> Columns:
        raise NotImplementedError

    def nothing(self) -> Shaped[Array, "sums"]:
        raise NotImplementedError

    def part(self, columns: Columns, word: Bool[Array, "block"]) -> Shaped[Array, "sums"]:
        raise NotImplementedError

    def accuse(self, sums: Any) -> Accusation:
        raise NotImplementedError

    def innocent(self) -> float:
        """Proved bound on P[a given user outside the coalition is accused]."""
        raise NotImplementedError

    def completeness(self) -> float:
        """Proved bound on P[the word is feasible, nobody is accused]; 1 where nothing is proved."""
        raise NotImplementedError

    def soundness(self) -> float:
        """Proved bound on P[somebody innocent is accused]: users times `innocent`."""
        return min(1.0, self.users * self.innocent())

    @property
    def blocks(self) -> int:
        """How many blocks hold the columns."""
        return -(-self.length // BLOCK)

    def valid(self, block: Int[Array, ""]) -> Bool[Array, "block"]:
        """Which columns of a block exist."""
        return block * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32) < self.length

    def generate(self, key: Array) -> Any:
        """A codebook, held packed; `stream` shows the same columns without holding them."""
        raise NotImplementedError

    def stream(self, key: Array) -> "Stream":
        """The book that `generate(key)` holds, with each block made when it is read: memory for one block only."""
        return Stream(code=self, secret=self.secret(arguments.key(key)))

    def trace(self, book: Any, word: Any) -> Accusation:
        """Whom the word accuses; the same as book.trace(word).

        Raises:
          TypeError, ValueError: no book, or that of another code; not a word of the code (as far as they are not traced).
        """
        theirs = arguments.instance("book", book, Book).code
        same = jax.tree.structure(self) == jax.tree.structure(theirs)  # type: ignore[operator]
        if not (same and all(map(_alike, jax.tree.leaves(self), jax.tree.leaves(theirs)))):
            raise ValueError(f"book must be one of {self}, got one of {theirs}")
        return book.trace(word)


class Book:
    """A codebook: anything with a `code` and `columns(b)`."""

    code: Any

    def columns(self, block: Int[Array, ""]) -> Columns:
        """Block b of the columns."""
        raise NotImplementedError

    @property
    def rows(self) -> UInt32[Array, "users words"]:
        """Every user's word, packed as the labels of a `dpjax.MultiSample`: bit j mod 32 of word j // 32."""
        return _rows(self)

    @property
    def bits(self) -> Bool[Array, "users length"]:
        """The matrix W."""
        return _matrix(self)

    def trace(self, word: Any) -> Accusation:
        """Whom a word accuses.

        Args:
          word: zeros and ones, shape (length,).

        Returns:
          An `Accusation`.

        Raises:
          TypeError, ValueError: not a word of the code (as far as it is not traced).
        """
        return _trace(self, _word(word, self.code.length))


@frozen
class Stream(Book):
    """A book that is made as it is read."""

    code: Any
    secret: Any

    def columns(self, block: Int[Array, ""]) -> Columns:
        """Block b of the columns; computed once, as otherwise every use of them would draw the bits anew."""
        return once(self.code.columns, self.secret, block)


@frozen
class Sum:
    """A sum and what rounding lost of it (Kahan): millions of columns cost no digits. Integers lose nothing."""

    total: Shaped[Array, "sums"]
    lost: Shaped[Array, "sums"]

    @classmethod
    def of(cls, start: Shaped[Array, "sums"]) -> "Sum":
        """The sum to which nothing has been added yet."""
        return cls(total=start, lost=jnp.zeros_like(start))

    def plus(self, part: Shaped[Array, "sums"]) -> "Sum":
        """The sum with one more term."""
        corrected = part - self.lost
        total = self.total + corrected
        return Sum(total=total, lost=(total - self.total) - corrected)


def fold(count: int, step: Callable[[Any, Array], Any], start: Any) -> Any:
    """step(... step(start, 0) ..., count - 1)."""
    return lax.fori_loop(0, count, lambda i, so_far: step(so_far, jnp.asarray(i, jnp.int32)), start)


def _alike(one: Any, other: Any) -> bool:
    """Whether two leaves may be one number: one is traced, or they are equal in float32, in which a program may have returned one."""
    return arguments.is_traced(one) or arguments.is_traced(other) or np.array_equal(np.float32(one), np.float32(other))


@jax.jit
def _rows(book: Any) -> Array:
    def make(block: Array) -> Array:
        return bits.pack(book.columns(block).bits)

    words = lax.map(make, jnp.arange(book.code.blocks, dtype=jnp.int32))
    return jnp.swapaxes(words, 0, 1).reshape(book.code.users, -1)[:, : bits.words_for(book.code.length)]


@jax.jit
def _matrix(book: Any) -> Array:
    return bits.unpack(_rows(book), book.code.length)


@jax.jit
def _trace(book: Any, word: Bool[Array, "length"]) -> Accusation:
    code = book.code
    width = min(_AT_ONCE, code.blocks)
    groups = -(-code.blocks // width)
    words = jnp.pad(word, (0, groups * width * BLOCK - code.length)).reshape(groups * width, BLOCK)

    def part(block: Array) -> Array:
        exists = block < code.blocks
        part = code.part(book.columns(jnp.minimum(block, code.blocks - 1)), words[block])
        return jnp.where(exists, part, jnp.zeros_like(part))

    def step(so_far: Sum, group: Array) -> Sum:
        parts = jax.vmap(part)(group * width + jnp.arange(width, dtype=jnp.int32))
        return so_far.plus(jnp.sum(parts, axis=0, dtype=parts.dtype))

    return code.accuse(fold(groups, step, Sum.of(code.nothing())).total)


def _word(word: Any, length: int) -> Bool[Array, "length"]:
    """A word as booleans."""
    word = word if isinstance(word, jax.Array) else np.asarray(word)
    if not arguments.holds_numbers(word):
        raise TypeError(f"word must hold bits 0 and 1, got {word.dtype}")
    if word.shape != (length,):
        raise ValueError(f"word must have one bit a column, shape ({length},), got {word.shape}")
    if not arguments.is_traced(word):
        wrong = np.flatnonzero(~np.isin(np.asarray(word), (0, 1)))
        if wrong.size:
            raise ValueError(f"word must hold bits 0 and 1 only, got word[{wrong[0]}] = {np.asarray(word)[wrong[0]]}")
    return jnp.asarray(word.astype(bool))
