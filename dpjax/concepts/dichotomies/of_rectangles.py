"""Axis-aligned rectangles: points are labelled in as many ways as there are boxes that fit their points tightly, and the empty one.

Every set of points that a rectangle cuts out is cut out by the least box around it, whose 2D faces each hold a point of the set. So the
dichotomies are the empty set, and the boxes between coordinates of points that lose a point whenever a face moves inwards. All pairs of
coordinates on all axes are listed, and the examples in all boxes are counted by prefix sums: time and memory are those for the boxes, not
for boxes times points.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.concepts import rectangles as concept
from dpjax.concepts.dichotomies.base import Choices
from dpjax.concepts.rectangles import Rectangle
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains import wide

MAX_BOXES = 1 << 22
MAX_CELLS = 1 << 24  # of the table that boxes are summed from


@frozen
class RectangleClass:
    """c(x) = 1 iff low_i <= x_i <= high_i on every axis of X_bits^axes; build it by `rectangles`."""

    bits: Int[Any, ""]
    axes: int = static()
    limbs: int = static()
    most: int = static()

    @property
    def vc(self) -> int:
        """2D."""
        return 2 * self.axes

    def choices(self, points: UInt32[Array, "slots words"], named: Bool[Array, "slots"]) -> Choices:
        """The tight boxes of the named points, then the empty one; points are rows of `axes` coordinates side by side."""
        x = points.reshape(points.shape[0], self.axes, self.limbs)
        order = jnp.argsort(~named, stable=True)[: self.most]
        order = jnp.pad(order, (0, self.most - order.shape[0]))
        there = jnp.arange(self.most, dtype=jnp.int32) < jnp.sum(named, dtype=jnp.int32)
        faces, cells = jax.vmap(_located, in_axes=(1, None, 1), out_axes=(0, 1))(x[order], there, x)
        low, high = self._pairs()

        def counts(weights: Array, axis: int | None = None, side: int = 0) -> Array:
            """Sums over all boxes or, if an axis is given, over the boxes with one face moved inwards."""
            sums = jnp.zeros((2 * self.most + 1,) * self.axes, jnp.int32).at[tuple(cells.T)].add(weights)
            for i in range(self.axes):
                first = 2 * low + 1 + (i == axis and side == 0)
                last = 2 * high + 2 - (i == axis and side == 1)
                prefix = jnp.cumsum(sums, axis=i, dtype=sums.dtype)
                prefix = jnp.pad(prefix, [(1, 0) if j == i else (0, 0) for j in range(self.axes)])
                sums = jnp.take(prefix, last, axis=i) - jnp.take(prefix, first, axis=i)
            return sums.reshape(-1)

        mine = named.astype(jnp.int32)
        inside = counts(mine)
        tight = inside > 0
        for axis in range(self.axes):
            for side in range(2):
                tight &= counts(mine, axis, side) < inside

        def right(ones: Array, zeros: Array) -> Array:
            none = jnp.sum(zeros, dtype=jnp.int32)
            return jnp.append(none + counts(ones - zeros), none)

        fits = jnp.sum(named, dtype=jnp.int32) <= self.most
        boxes = self._boxes(faces, low, high)
        return Choices(concepts=boxes, where=jnp.append(tight, True), right=right, fits=fits)

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All low <= high among `most` ranks."""
        low, high = np.triu_indices(self.most)
        return low.astype(np.int32), high.astype(np.int32)

    def _boxes(self, faces: UInt32[Array, "axes most limbs"], low: np.ndarray, high: np.ndarray) -> Rectangle:
        """All boxes in the order of the sums, and the empty one."""
        number = jnp.arange(low.size**self.axes, dtype=jnp.int32)
        index = [number // low.size ** (self.axes - 1 - i) % low.size for i in range(self.axes)]
        empty = concept.nothing(self.axes, self.limbs)

        def ends(of: np.ndarray, none: Array) -> Array:
            each = jnp.stack([faces[i][jnp.asarray(of)[index[i]]] for i in range(self.axes)], axis=1)
            return jnp.concatenate([each, none[None]])

        return Rectangle(low=ends(low, empty.low), high=ends(high, empty.high))

    def refuse(self, name: str, x: Any) -> None:
        """ValueError if there are more distinct points than are listed."""
        distinct = len(np.unique(np.asarray(x), axis=0))
        if distinct > self.most:
            raise ValueError(
                f"{name} must have at most {self.most} distinct points, all boxes of which are listed, got {distinct}"
            )


def _located(
    faces: UInt32[Array, "most limbs"], there: Bool[Array, "most"], x: UInt32[Array, "slots limbs"]
) -> tuple[UInt32[Array, "most limbs"], Int[Array, "slots"]]:
    """(the coordinates of named points in order, the cell of every point) on one axis.

    A point's cell is 2 #(named below it) + 1 if a named point has its coordinate, else one less: cells increase with the coordinate, and
    the points from the a-th to the b-th named coordinate are those in the cells 2a + 1, ..., 2b + 1 (where the a-th and b-th are the first
    of equal ones; the cells of the others hold no point, so that no box with such a face is tight).
    """
    below = wide.less(faces[None], x[:, None]) & there[None]
    same = jnp.any(wide.equal(faces[None], x[:, None]) & there[None], axis=1)
    cell = 2 * jnp.sum(below, axis=1, dtype=jnp.int32) + same.astype(jnp.int32)
    ordered = wide.sort(jnp.where(there[:, None], faces, np.uint32(0xFFFFFFFF)))[0]
    return ordered, cell


def rectangles(*, bits: int, axes: int, most: int | None = None) -> RectangleClass:
    """The class of axis-aligned rectangles over X_bits^axes.

    Args:
      bits: d, 1 to 4096.
      axes: D, at most 15.
      most: the most distinct points, all of whose boxes are listed: (most (most + 1) / 2)^axes <= 2^22 and (2 most + 1)^axes <= 2^24. By
        default the largest possible number, at most 63.

    Raises:
      TypeError, ValueError: an argument out of range, or too many boxes or cells.

    >>> rectangles(bits=16, axes=1).most, rectangles(bits=16, axes=2).most, rectangles(bits=16, axes=3).most
    (63, 63, 17)
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    axes = arguments.integer("axes", axes, at_least=1, at_most=15)
    if most is None:
        most = max(m for m in range(1, 64) if _boxes(m, axes) <= MAX_BOXES and _cells(m, axes) <= MAX_CELLS)
    most = arguments.size("most", most)
    if _boxes(most, axes) > MAX_BOXES or _cells(most, axes) > MAX_CELLS:
        raise ValueError(
            f"most must leave at most {MAX_BOXES} boxes and {MAX_CELLS} cells to list on {axes} axes, got {most}, "
            f"which has {_boxes(most, axes)} and {_cells(most, axes)}"
        )
    return RectangleClass(bits=np.int32(bits), axes=axes, limbs=wide.limbs_for(bits), most=most)


def _boxes(most: int, axes: int) -> int:
    """How many pairs of coordinates there are on all axes."""
    return math.comb(most + 1, 2) ** axes


def _cells(most: int, axes: int) -> int:
    """How many cells the coordinates make, on all axes."""
    return (2 * most + 1) ** axes
