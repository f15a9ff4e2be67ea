"""Unlabelled points of an ordered domain as a padded array with a traced count."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.sample import Sample, below, out_of_order, padded_rows, row_count, shown, valid_rows, wide_rows
from dpjax.domains import wide
from dpjax.domains.scaled import Scaled


@frozen
class Points:
    """A multiset of points, the first `n_valid` rows of x; build it by `Points.create`.

    Unlike a `Sample` it may be empty: under add/remove the number of points is as private as the points are.

    Attributes:
      x: uint32 of shape (rows, limbs), as made by `dpjax.domains.wide.from_ints`.
      n_valid: how many rows count; rows from n_valid on are ignored, whatever they hold.
      ordered: promise that the valid rows are sorted (static).
    """

    x: UInt32[Array, "rows limbs"]
    n_valid: Int[Array, ""]
    ordered: bool = static(default=False)

    def __repr__(self) -> str:
        return shown(self)

    @classmethod
    def create(cls, x: Any, n_valid: Any = None, *, ordered: bool = False) -> "Points":
        """Checks and binds; n_valid defaults to every row.

        Raises:
          TypeError: x is not a uint32 array, or ordered is not a bool.
          ValueError: no rows, n_valid outside 0, ..., rows, a promise that does not hold.
          Values under tracing pass unchecked.

        >>> from dpjax.domains import wide
        >>> points = Points.create(wide.from_ints([3, 2**40], 64))
        >>> points.rows, int(points.n_valid)
        (2, 2)
        """
        x = wide_rows("x", x)
        n_valid = row_count(n_valid, x.shape[0], at_least=0)
        points = cls(x=x, n_valid=n_valid, ordered=arguments.flag("ordered", ordered))
        if points.ordered and not any(arguments.is_traced(leaf) for leaf in jax.tree.leaves(points)):
            wrong = out_of_order(np.asarray(x)[: int(n_valid)])
            if wrong is not None:
                raise ValueError(f"ordered must be True only for sorted rows: row {wrong} is below the one before it")
        return points

    @classmethod
    def of(cls, data: Any) -> "Points":
        """`data` itself, or the points of a `Sample` without their labels.

        Raises:
          TypeError: it is neither.
        """
        if isinstance(data, Sample):
            return cls(x=data.x, n_valid=data.n_valid, ordered=data.ordered)
        if not isinstance(data, cls):
            made = (
                "dpjax.encode(values) makes them of a column, Points.create(wide.from_ints(values, bits)) of integers"
            )
            raise TypeError(f"points must be dpjax.Points (or a dpjax.Sample), got {type(data).__name__}; {made}")
        return data

    @property
    def rows(self) -> int:
        """The capacity."""
        return self.x.shape[0]

    @property
    def valid(self) -> Bool[Array, "rows"]:
        """Which rows count."""
        return valid_rows(self.rows, self.n_valid)

    def in_domain(self, bits: Any) -> Bool[Array, ""]:
        """Whether there are 0, ..., `rows` valid rows, each a point of X_bits."""
        return (self.n_valid >= 0) & (self.n_valid <= self.rows) & below(self, bits)

    def in_order(self, limbs: int) -> "Points":
        """The same points in increasing order, with `limbs` limbs; rows that do not count hold the greatest number."""
        if isinstance(self.x, Scaled):  # rows that do not count are never read
            return Points(x=self.x.resized(limbs), n_valid=self.n_valid, ordered=True)  # type: ignore[arg-type]
        x = jnp.where(self.valid[:, None], wide.resize(self.x, limbs), np.uint32(2**32 - 1))
        return Points(x=x if self.ordered else wide.sort(x)[0], n_valid=self.n_valid, ordered=True)

    def padded(self, rows: int | None = None) -> "Points":
        """The same points padded to `rows` >= their own rows (default: to their bucket)."""
        n_valid, x = padded_rows(rows, self.n_valid, self.x)
        return Points(x=x, n_valid=n_valid, ordered=self.ordered)
