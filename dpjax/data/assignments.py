"""Labelled assignments to many Boolean variables, packed 32 examples to a word."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import arguments, bits, show
from dpjax.core.pytree import frozen
from dpjax.data.sample import countable, on_device, padded_count

MOST_ROWS = 2**24  # counts are exact in float32


@frozen
class Assignments:
    """Labelled vectors of {0, 1}^d; build it by `Assignments.create`.

    It may be empty: under add/remove the number of examples is private too. Each variable has a column of its own, so that a count over
    all examples is a sum over words of neighbouring columns.

    Attributes:
      x: bit i of x[w, v] is variable v of example 32 w + i; uint32 of shape (words, d).
      y: bit i of y[w] is the label of that example.
      n_valid: how many examples count; others are ignored, whatever they hold.
    """

    x: UInt32[Array, "words d"]
    y: UInt32[Array, "words"]
    n_valid: Int[Array, ""]

    @classmethod
    def create(cls, x: Any, y: Any) -> "Assignments":
        """From a matrix of booleans, or of zeros and ones, with a row for each example.

        Args:
          x: shape (n, d), d >= 1; n may be 0.
          y: n labels 0 or 1.

        Raises:
          TypeError: entries that are neither booleans nor integers. ValueError: shapes that do not fit, numbers other than 0 and 1, more
            than 2^24 rows.

        >>> Assignments.create([[True, False, True], [False, False, True]], [1, 0])
        Assignments(n_valid=2, rows=32, variables=3)
        """
        matrix, labels = _zeros_and_ones("x", x), _zeros_and_ones("y", y)
        if matrix.ndim != 2 or matrix.shape[1] == 0:
            raise ValueError(f"x must have shape (n, d) with d >= 1, got {matrix.shape}")
        if labels.shape != matrix.shape[:1]:
            raise ValueError(f"y must have one label a row of x, shape {matrix.shape[:1]}, got {labels.shape}")
        if len(labels) > MOST_ROWS:
            raise ValueError(f"x must have at most {MOST_ROWS} rows, got {len(labels)}")
        words = _words(len(labels))
        whole = np.zeros((words * bits.WORD, matrix.shape[1] + 1), bool)
        whole[: len(labels)] = np.concatenate([matrix, labels[:, None]], axis=1)
        packed = np.packbits(whole.reshape(words, bits.WORD, -1), axis=1, bitorder="little")
        packed = np.ascontiguousarray(packed.transpose(0, 2, 1)).view("<u4")[..., 0].astype(np.uint32)
        return cls(x=on_device(packed[:, :-1]), y=on_device(packed[:, -1]), n_valid=jnp.int32(len(labels)))

    def __repr__(self) -> str:
        size = f"rows={self.rows}, variables={self.variables}" if np.ndim(self.x) == 2 else f"x={show.short(self.x)}"
        return f"Assignments(n_valid={show.short(self.n_valid)}, {size})"

    @property
    def rows(self) -> int:
        """The capacity."""
        return bits.WORD * self.x.shape[0]

    @property
    def variables(self) -> int:
        """The number of variables, d."""
        return self.x.shape[1]

    @property
    def valid(self) -> UInt32[Array, "words"]:
        """Which examples count, packed."""
        left = jnp.clip(self.n_valid - bits.WORD * jnp.arange(self.x.shape[0], dtype=jnp.int32), 0, bits.WORD)
        ones = (jnp.uint32(1) << jnp.minimum(left, bits.WORD - 1).astype(jnp.uint32)) - jnp.uint32(1)
        return jnp.where(left == bits.WORD, jnp.uint32(0xFFFFFFFF), ones)

    def counted(self) -> Bool[Array, ""]:
        """Whether there are 0, ..., `rows` valid examples, and no more than floats can count."""
        return (self.n_valid >= 0) & (self.n_valid <= self.rows) & countable(self)

    def padded(self, rows: int | None = None) -> "Assignments":
        """The same examples with room for `rows`, at least the present number (default: their bucket, 32 times a power of two)."""
        rows = self.rows if rows is None else arguments.integer("rows", rows, at_least=self.rows, at_most=2**31 - 1)
        more = _words(rows) - self.x.shape[0]
        if more == 0:
            return self
        x, y = jnp.pad(self.x, ((0, more), (0, 0))), jnp.pad(self.y, (0, more))
        return Assignments(x=x, y=y, n_valid=padded_count(self.n_valid, self.rows))


def _words(rows: int) -> int:
    """The least power of two that is enough words for `rows` examples."""
    return 1 << max(bits.words_for(rows) - 1, 0).bit_length()


def _zeros_and_ones(name: str, values: Any) -> np.ndarray:
    """The values as booleans; anything but booleans, zeros and ones is refused."""
    given = arguments.array(name, values)
    if given.dtype == bool:
        return given
    if given.size and given.dtype.kind not in "iu":  # NumPy makes floats of an empty list
        raise TypeError(f"{name} must hold booleans, or zeros and ones, got {given.dtype}")
    if not np.isin(given, (0, 1)).all():
        raise ValueError(f"{name} must hold zeros and ones only, got {given[~np.isin(given, (0, 1))][0]}")
    return given.astype(bool)
