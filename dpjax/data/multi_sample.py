"""Samples in which every example carries the labels of k concepts (MULTI §2.1), as padded arrays with a traced count."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen, static
from dpjax.data.sample import Sample, below, countable, padded_rows, row_count, shown, valid_rows, wide_rows


@frozen
class MultiSample:
    """k-labelled examples (x_i, y_i1, ..., y_ik), the first `n_valid` rows; build it by `MultiSample.create`.

    Attributes:
      x: points, uint32 of shape (rows, limbs) as made by `dpjax.domains.wide.from_ints`.
      y: labels, packed as in `dpjax.core.bits`: uint32 of shape (rows, words), label j is bit j mod 32 of word j // 32.
      n_valid: how many rows count; rows from n_valid on are ignored, whatever they hold.
      k: number of concepts (static).
      realizable: promise that rows are sorted and every column is labelled by a threshold (static), so that learners of
        thresholds need not sort k times; set by distributions that know it, never by `create`.
    """

    x: UInt32[Array, "rows limbs"]
    y: UInt32[Array, "rows words"]
    n_valid: Int[Array, ""]
    k: int = static()
    realizable: bool = static(default=False)

    def __repr__(self) -> str:
        return shown(self, k=self.k)

    @classmethod
    def create(cls, x: Any, y: Any, n_valid: Any = None) -> "MultiSample":
        """Checks, packs and binds; n_valid defaults to every row.

        Args:
          x: uint32 array (rows, limbs).
          y: zeros and ones, shape (rows, k).
          n_valid: 1, ..., rows; may be traced.

        Raises:
          TypeError: x is not uint32 or y does not hold numbers. ValueError: shapes that do not fit, no rows, no labels, a label
          other than 0 and 1, n_valid outside 1, ..., rows. Values under tracing pass unchecked.

        >>> from dpjax.domains import wide
        >>> sample = MultiSample.create(wide.from_ints([7, 2**40], 64), [[1, 0, 1], [0, 0, 1]])
        >>> sample.rows, sample.k, sample.labels.astype(int).tolist()
        (2, 3, [[1, 0, 1], [0, 0, 1]])
        """
        x = wide_rows("x", x)
        y = _labels(y, x.shape[0])
        n_valid = row_count(n_valid, x.shape[0], at_least=1)
        if arguments.is_traced(y) and y.dtype != bool:
            # Packed labels are always 0 or 1, so a count of -1 records that a label was neither.
            wrong = jnp.any((y != 0) & (y != 1), axis=1) & valid_rows(x.shape[0], n_valid)
            n_valid = jnp.where(jnp.any(wrong), jnp.int32(-1), n_valid)
        return cls(x=x, y=bits.pack(jnp.asarray(y.astype(bool))), n_valid=n_valid, k=y.shape[1])

    @property
    def rows(self) -> int:
        """The capacity."""
        return self.x.shape[0]

    @property
    def valid(self) -> Bool[Array, "rows"]:
        """Which rows count."""
        return valid_rows(self.rows, self.n_valid)

    @property
    def ordered(self) -> bool:
        """Whether the valid rows are promised to be sorted."""
        return self.realizable

    def in_domain(self, bits: Any) -> Bool[Array, ""]:
        """Whether there are 1, ..., `rows` valid rows, at most `most_counted` of them, each a point of X_bits."""
        return (self.n_valid >= 1) & (self.n_valid <= self.rows) & countable(self) & below(self, bits)

    @property
    def labels(self) -> Bool[Array, "rows k"]:
        """The labels, unpacked."""
        return bits.unpack(self.y, self.k)

    def column(self, j: Any) -> Sample:
        """The examples with the labels of concept j alone; j may be traced."""
        if not arguments.is_traced(j):
            j = arguments.integer("j", np.asarray(j)[()], at_least=0, at_most=self.k - 1)
        y = bits.column(self.y, jnp.asarray(j, jnp.int32)).astype(jnp.int32)
        return Sample.tree_unflatten((self.realizable, self.realizable), (self.x, y, self.n_valid))

    def padded(self, rows: int | None = None) -> "MultiSample":
        """The same sample padded to `rows` >= its own rows (default: to its bucket)."""
        n_valid, x, y = padded_rows(rows, self.n_valid, self.x, self.y)
        return MultiSample(x=x, y=y, n_valid=n_valid, k=self.k, realizable=self.realizable)


def _labels(y: Any, rows: int) -> Array:
    """y as an array of numbers (rows, k), checked to be zeros and ones unless it is traced."""
    if not isinstance(y, jax.Array):
        y = arguments.array("y", y)
    if not arguments.holds_numbers(y):
        raise TypeError(f"y must hold labels 0 and 1, got {y.dtype}")
    if y.ndim != 2 or y.shape[0] != rows or y.shape[1] == 0:
        raise ValueError(f"y must have one row of k >= 1 labels a point, shape ({rows}, k), got {y.shape}")
    if not arguments.is_traced(y):
        wrong = np.argwhere(~np.isin(np.asarray(y), (0, 1)))
        if wrong.size:
            i, j = wrong[0]
            raise ValueError(f"y must hold labels 0 and 1 only, got y[{i}, {j}] = {np.asarray(y)[i, j]}")
    return y  # type: ignore[no-any-return]
