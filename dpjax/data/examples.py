"""Labelled points of several coordinates as padded arrays with a traced count."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.pytree import frozen
from dpjax.data.sample import bucket, countable, labels_of, padded_count, row_count, valid_rows
from dpjax.domains import wide


@frozen
class Examples:
    """Labelled points of X_d^D, the first `n_valid` rows; build it by `Examples.create`.

    It may be empty: under add/remove the number of examples is private too.

    Attributes:
      x: uint32 of shape (rows, axes, limbs).
      y: labels 0 or 1, int32 of shape (rows,).
      n_valid: how many rows count; rows from n_valid on are ignored, whatever they hold.
    """

    x: UInt32[Array, "rows axes limbs"]
    y: Int[Array, "rows"]
    n_valid: Int[Array, ""]

    @classmethod
    def create(cls, x: Any, y: Any, n_valid: Any = None) -> "Examples":
        """Checks and binds; n_valid defaults to every row.

        Raises:
          TypeError: x is not a uint32 array, y holds no numbers. ValueError: shapes that do not fit, no rows, a label other than 0 and 1,
          n_valid outside 0, ..., rows. Values under tracing pass unchecked.

        >>> examples = Examples.create(wide.from_ints([1, 2, 3, 4], 8).reshape(2, 2, 1), [0, 1])
        >>> examples.rows, examples.axes
        (2, 2)
        """
        x = points_on_axes(x)
        return cls(x=x, y=labels_of(y, x.shape[0]), n_valid=row_count(n_valid, x.shape[0], at_least=0))

    @property
    def rows(self) -> int:
        """The capacity."""
        return self.x.shape[0]

    @property
    def axes(self) -> int:
        """The dimension D."""
        return self.x.shape[1]

    @property
    def valid(self) -> Bool[Array, "rows"]:
        """Which rows count."""
        return valid_rows(self.rows, self.n_valid)

    @property
    def positive(self) -> Bool[Array, "rows"]:
        """Which rows are examples with label 1."""
        return self.valid & (self.y == 1)

    def in_domain(self, bits: Any, *, positive_only: bool = True) -> Bool[Array, ""]:
        """Whether the number of valid rows is possible, they are labelled 0 and 1, and those of label 1 are in X_bits^D.

        Possible are 0, ..., `rows`, but no more than floats can count. Where a learner uses the points of negative examples, too
        (`positive_only` is False), these must also be in X_bits^D.
        """
        counted = (self.n_valid >= 0) & (self.n_valid <= self.rows)
        labelled = jnp.all(~self.valid | (self.y == 0) | (self.y == 1))
        there = self.positive if positive_only else self.valid
        inside = jnp.all(~there[:, None] | (wide.bit_length(self.x) <= bits))
        return counted & labelled & countable(self) & inside

    def padded(self, at_least: int = 1) -> "Examples":
        """The same examples, padded to their bucket or the bucket of `at_least`, whichever is larger."""
        extra = max(bucket(self.rows), bucket(at_least)) - self.rows
        x, y = jnp.pad(self.x, ((0, extra), (0, 0), (0, 0))), jnp.pad(self.y, (0, extra))
        return Examples(x=x, y=y, n_valid=padded_count(self.n_valid, self.rows))


def points_on_axes(x: Any) -> UInt32[Array, "rows axes limbs"]:
    """x on the device, if it is an array of points of several axes.

    Raises:
      TypeError: x is not a uint32 array. ValueError: another number of axes, or an axis of length 0.
    """
    if getattr(x, "dtype", None) != np.uint32:
        raise TypeError(f"x must be a uint32 array, got {getattr(x, 'dtype', type(x).__name__)}")
    if x.ndim != 3 or 0 in x.shape:
        raise ValueError(f"x must have shape (rows, axes, limbs), none of them 0, got {x.shape}")
    return jnp.asarray(x)
