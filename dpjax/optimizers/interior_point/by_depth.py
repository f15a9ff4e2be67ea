"""Base of solvers that maximise the depth min(#<=x, #>=x)."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.domains.scaled import Scaled
from dpjax.optimizers.interior_point import base, depth
from dpjax.optimizers.interior_point.base import InteriorPoint


@frozen
class ByDepth(InteriorPoint):
    """A solver that maximises the depth. Positions on its range, up to 2^bits + 1, have `wider` limbs."""

    bits: Any
    limbs: int = static()
    wider: int = static()

    def sound(self) -> Bool[Array, ""]:
        """Whether a position has room, too."""
        return super().sound() & (jnp.asarray(self.bits) < 32 * self.wider)

    def prepare(self, points: Points) -> Points:
        if points.ordered and not isinstance(points.x, Scaled):  # the depth ignores rows that do not count
            return Points(x=wide.resize(points.x, self.limbs), n_valid=points.n_valid, ordered=True)
        return super().prepare(points)

    def pieces(self, points: Points) -> Pieces:
        """The depth; see `dpjax.optimizers.interior_point.depth.pieces`."""
        return depth.pieces(points.x, points.n_valid, self.bits, self.wider)

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        return self.law_of_depth(self.pieces(points), self.goal(interval))

    def law_of_depth(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        """The law given the depth, which is all that these solvers use."""
        raise NotImplementedError

    def goal(self, interval: Interval) -> Goal:
        """The points of an interval that ends at 2^bits or before."""
        low, high = (wide.resize(end, self.wider) for end in (interval.low, interval.high))
        return Goal(marked=None, within=Interval(low=low, high=high))


def domain(bits: Any) -> dict[str, Any]:
    """The fields that both solvers have."""
    return {**base.domain(bits), "wider": wide.limbs_for(int(bits) + 1)}
