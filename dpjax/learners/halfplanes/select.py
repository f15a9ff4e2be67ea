"""SelectHalfplane (GEO §4) as a selection of SetCoverLearner."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.plane import arrangement
from dpjax.concepts.plane.distributions import all_points
from dpjax.concepts.plane.lattice import MEASURES, MOST_BITS, Lattice, above, columns_of, lattice
from dpjax.concepts.plane.regions import Region
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.examples import Examples
from dpjax.data.fitting import fitted_examples
from dpjax.domains import wide
from dpjax.learners.halfplanes import refinement
from dpjax.learners.halfplanes.refinement import Line, Problem
from dpjax.learners.set_cover.selection import Selection

COUNTED = 7  # the most bits of a grid on whose points examples may be counted
LISTED = 2  # the most bits of a grid whose halfplanes are listed


@frozen
class Placed:
    """Points and the examples at them: place i of a mask is at point i modulo the number of points.

    Attributes:
      columns: the words of the points' coordinates; see `lattice.columns_of`.
      valid: at which places there are examples.
      y: the label of the examples at each place.
      counts: how many examples there are at each place.
      rows: of the data, and so the most examples there can be (static).
    """

    columns: UInt32[Array, "2 words points"]
    valid: Bool[Array, "places"]
    y: Bool[Array, "places"]
    counts: Int[Array, "places"]
    rows: int = static()

    def everywhere(self, kept: Bool[Array, "*n points"]) -> Bool[Array, "*n places"]:
        """The mask of the places at some points."""
        return jnp.tile(kept, self.valid.shape[0] // kept.shape[-1])

    def at_points(self, mask: Bool[Array, "places"]) -> Int[Array, "points"]:
        """How many examples of a mask there are at each point."""
        return jnp.sum(jnp.where(mask, self.counts, 0).reshape(-1, self.columns.shape[-1]), axis=0, dtype=jnp.int32)


@frozen
class PlaneSelection(Selection):
    """What selections in the plane share.

    Attributes:
      bits: d (static).
      measure: on the halfplanes, "axes" or "box"; see `dpjax.concepts.plane.lattice` (static).
    """

    bits: int = static()
    measure: str = static()

    kind: ClassVar[type] = Examples
    loops: ClassVar[bool] = True

    @property
    def grid(self) -> Lattice:
        """The lattice of the halfplanes."""
        return lattice(self.bits, self.measure)

    def fit(self, data: Any) -> Examples:
        return fitted_examples(data, axes=2, limbs=wide.limbs_for(self.bits), bits=self.bits)

    def fits(self, data: Examples) -> Bool[Array, ""]:
        return data.in_domain(self.bits, positive_only=False)

    def prepare(self, data: Examples) -> Placed:
        """The rows as they are; on a small grid its points instead, once for each label, if these are fewer."""
        if self.bits > COUNTED or 2 * 4**self.bits > data.rows:
            columns = columns_of(self.grid, data.x)
            ones = jnp.ones(data.rows, jnp.int32)
            return Placed(columns=columns, valid=data.valid, y=data.y == 1, counts=ones, rows=data.rows)
        side = np.uint32(self.bits)
        points = (data.x[:, 0, -1] << side) | data.x[:, 1, -1]
        index = points.astype(jnp.int32) + jnp.where(data.y == 1, 4**self.bits, 0)
        counts = jnp.zeros(2 * 4**self.bits, jnp.int32).at[index].add(data.valid.astype(jnp.int32), mode="drop")
        labels = jnp.arange(2 * 4**self.bits, dtype=jnp.int32) >= 4**self.bits
        columns = columns_of(self.grid, all_points(self.bits))
        return Placed(columns=columns, valid=counts > 0, y=labels, counts=counts, rows=data.rows)

    def count(self, view: Placed, mask: Bool[Array, "*n places"]) -> Int[Array, "*n"]:
        return jnp.sum(jnp.where(mask, view.counts, 0), axis=-1, dtype=jnp.int32)

    def places(self, view: Placed) -> Int[Array, "points"]:
        """The index of each point of a view in `all_points`, on small grids."""
        return ((view.columns[0, 0] << np.uint32(self.bits)) | view.columns[1, 0]).astype(jnp.int32)

    def region(self, lines: Line, *shape: int) -> Region:
        """The union over the first axis of the intersections over the second, once the lines are brought to this shape."""
        chart, slope, height = lines if not shape else reshaped(lines, *shape)
        return Region(chart=chart, slope=slope, height=height, bits=self.bits, measure=self.measure)

    # Lists, on tiny grids -------------------------------------------------------------------------------------------

    def listed_lines(self, index: Int[Array, "*n"]) -> Line:
        """The halfplanes at these places in the list of all of them."""
        every = arrangement.table(self.bits, self.measure).lines
        size = 32 * self.grid.limbs
        lines = Line(
            jnp.asarray(every[:, 0].astype(np.int32)),
            wide.from_ints(every[:, 1].tolist(), size),
            wide.from_ints(every[:, 2].tolist(), size),
        )
        return Line(*(each[index] for each in lines))

    def table(self) -> Any:
        """The `labels` that each hypothesis gives to the grid, and its `share` of the measure."""
        raise ValueError(f"{type(self).__name__} has no list of its hypotheses")

    def hypotheses(self) -> int:
        """How many ways there are to label the grid."""
        return len(self.table().share)

    def log_measure(self) -> Float[Array, "hypotheses"]:
        return jnp.log(jnp.asarray(self.table().share, float))

    def all_deleted(self, view: Placed, *, dual: bool) -> Bool[Array, "hypotheses places"]:
        kept = jnp.asarray(self.table().labels)[:, self.places(view)]
        return view.everywhere(kept if dual else ~kept)


@frozen
class SelectHalfplane(PlaneSelection):
    """One halfplane, drawn exactly by `refinement`; its law, on tiny grids, by `dpjax.concepts.plane.arrangement`."""

    def log_size(self) -> float:
        return self.grid.log_size

    def draw(
        self, key: Array, view: Placed, negative: Any, positive: Any, *, score: Any, rate: Any, dual: bool
    ) -> Line:
        weights = jnp.stack([view.at_points(negative), view.at_points(positive)])
        return refinement.draw(key, Problem(self.grid, view.columns, weights, score, rate, dual))[0]

    def deleted(self, view: Placed, choice: Line, *, dual: bool) -> Bool[Array, "places"]:
        held = above(self.grid, choice.chart[None], choice.slope[None], choice.height[None], view.columns)
        kept = view.everywhere(held[0])
        return kept if dual else ~kept

    def released(self, chosen: Line, *, dual: bool) -> Region:
        """The intersection of all chosen halfplanes; in the dual their union."""
        return self.region(chosen, *((-1, 1) if dual else (1, -1)))

    # The list, on tiny grids ----------------------------------------------------------------------------------------

    def choice(self, index: Int[Array, "rounds"]) -> Line:
        return self.listed_lines(index)

    def indices(self, output: Region) -> Int[Array, "rounds"]:
        return self.labelling(lines_of(output, -1))

    def labelling(self, lines: Line) -> Int[Array, "lines"]:
        """The place of each halfplane in the list."""
        held = above(self.grid, *lines, columns_of(self.grid, all_points(self.bits)))
        table = jnp.asarray(self.table().labels)
        return jnp.argmax(jnp.all(held[:, None] == table[None], axis=2), axis=1).astype(jnp.int32)

    def table(self) -> arrangement.Table:
        if self.bits > LISTED:
            raise ValueError(f"bits must be at most {LISTED} for a list of all halfplanes, got {self.bits}")
        return arrangement.table(self.bits, self.measure)


def reshaped(lines: Line, *shape: int) -> Line:
    """The same lines in another shape; `shape` is that of their charts."""
    chart, slope, height = lines
    return Line(
        chart.reshape(shape),
        slope.reshape(*shape, slope.shape[-1]),
        height.reshape(*shape, height.shape[-1]),
    )


def lines_of(output: Any, *shape: int) -> Line:
    """The lines of a region, in this shape; TypeError if the output is not a region."""
    arguments.instance("output", output, Region)
    return reshaped(Line(output.chart, output.slope, output.height), *shape)


def select_halfplane(*, bits: int, measure: str) -> SelectHalfplane:
    """The selection of one halfplane of {0, ..., 2^d - 1}^2.

    Args:
      bits: d, 1 to 64.
      measure: on halfplanes, "axes" or "box"; see `dpjax.concepts.plane.lattice`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> select_halfplane(bits=20, measure="axes").loops
    True
    """
    return SelectHalfplane(
        bits=arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS),
        measure=arguments.choice("measure", measure, MEASURES),
    )
