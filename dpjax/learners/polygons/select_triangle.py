"""SelectTriangle (GEO §5) on tiny grids, exactly: the exponential mechanism over the list of all labellings.

GEO's Step 5 weighs every triple of regions of the dual plane, of which there are (n^2)^3. But a triangle matters only through its labels,
and a grid of side 4 has 2,733 labellings (`dpjax.concepts.plane.triangles`): the weight of each is its share of the measure of all triples
of halfplanes, times exp(r q). Released are three fixed halfplanes of the labelling drawn, which reveal no more than the labelling does.

The plain twin is `dpjax.verify.plain.triangles`.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from dpjax.concepts.plane import regions, triangles
from dpjax.concepts.plane.distributions import all_points
from dpjax.concepts.plane.regions import Region
from dpjax.core.pytree import frozen
from dpjax.learners.halfplanes.refinement import Line
from dpjax.learners.halfplanes.select import LISTED, Placed, PlaneSelection, lines_of
from dpjax.mechanisms import exponential


class TriangleSelection(PlaneSelection):
    """What selections of triangles share."""

    def log_size(self) -> float:
        """Three times that of one halfplane."""
        return 3 * self.grid.log_size


@frozen
class SelectTriangle(TriangleSelection):
    """One triangle, drawn exactly, for grids of 2 bits at most."""

    loops: ClassVar[bool] = False

    def draw(
        self, key: Array, view: Placed, negative: Any, positive: Any, *, score: Any, rate: Any, dual: bool
    ) -> Int[Array, ""]:
        deleted = self.all_deleted(view, dual=dual)
        zeros, ones = (self.count(view, deleted & side[None]) for side in (negative, positive))
        weights = exponential.log_weights(
            score(zeros, ones), epsilon=rate, log_measure=self.log_measure(), monotone=True
        )
        return exponential.draw(key, weights).index

    def deleted(self, view: Placed, choice: Int[Array, ""], *, dual: bool) -> Bool[Array, "places"]:
        kept = jnp.asarray(self.table().labels)[choice, self.places(view)]
        return view.everywhere(kept if dual else ~kept)

    def released(self, chosen: Int[Array, "rounds"], *, dual: bool) -> Region:
        """The union of the triangles in the dual, else the intersection of all their sides."""
        sides = jnp.asarray(self.table().sides)[chosen]
        return self.region(self.listed_lines(sides if dual else sides.reshape(1, -1)))

    # The list ---------------------------------------------------------------------------------------------------------

    def choice(self, index: Int[Array, "rounds"]) -> Int[Array, "rounds"]:
        return index

    def indices(self, output: Region) -> Int[Array, "rounds"]:
        """The places of the triangles in the list: unions and intersections alike hold three sides for each triangle."""
        return self.labelling(lines_of(output, -1, 3))

    def labelling(self, lines: Line) -> Int[Array, "triangles"]:
        """The place of each triangle in the list."""
        every = jnp.asarray(self.table().labels)
        same = jnp.all(self.labels(lines)[:, None] == every[None], axis=2)
        return jnp.argmax(same, axis=1).astype(jnp.int32)

    def labels(self, lines: Line) -> Bool[Array, "triangles points"]:
        """The labels that each triangle gives to all points of the grid."""
        x = all_points(self.bits)
        return jax.vmap(lambda sides: regions.label(self.region(jax.tree.map(lambda leaf: leaf[None], sides)), x))(
            lines
        )

    def table(self) -> triangles.Table:
        if self.bits > LISTED:
            raise ValueError(f"bits must be at most {LISTED} for a list of all triangles, got {self.bits}")
        return triangles.table(self.bits, self.measure)
