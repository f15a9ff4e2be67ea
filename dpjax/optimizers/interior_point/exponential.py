"""The exponential mechanism on the depth. Its plain twin is `dpjax.verify.plain.exponential.depth_law`."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.interior_point import by_depth
from dpjax.optimizers.interior_point.by_depth import ByDepth


@frozen
class DepthExponential(ByDepth):
    """The exponential mechanism on the depth; see `exponential`."""

    takes_scaled: ClassVar[bool] = True
    bounded_range: ClassVar[bool] = True

    epsilon: Any

    def _density(self, pieces: Pieces) -> Float[Array, "pieces"]:
        # The depth is monotone: exp(epsilon q), not exp(epsilon q / 2), is epsilon-private under add/remove. The top piece of the depth of
        # points has the median; that of real counts (`relaxations.real_counts`) has plateaus.
        log_density = piecewise.peak_density if pieces.is_peak else piecewise.log_density
        return log_density(pieces, 2 * jnp.asarray(self.epsilon, float))

    def draw(self, key: Array, points: Points) -> Any:
        pieces = self.pieces(points)
        position = piecewise.draw_everywhere(key, pieces, self._density(pieces)).position
        return wide.resize(position, self.limbs), jnp.bool_(True), {}

    def law_of_depth(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        return piecewise.law_everywhere(pieces, self._density(pieces), goal)

    def log_mass(self, points: Points, interval: Interval) -> Float[Array, ""]:
        pieces = self.pieces(points)
        return piecewise.log_law_everywhere(pieces, self._density(pieces), self.goal(interval))[0]

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def points_needed(self, beta: float) -> int:
        """ceil((2/epsilon) (bits ln 2 + ln(1/beta))): every x outside has q = 0, the median q >= n/2."""
        return math.ceil(
            2 / arguments.known("epsilon", self.epsilon) * (int(self.bits) * math.log(2.0) - math.log(beta))
        )


def exponential(*, bits: int, epsilon: Any) -> DepthExponential:
    """The exponential mechanism on the depth q(x) = min(#<=x, #>=x), P[x] proportional to exp(epsilon q(x)).

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE: adding a point raises q by 0 or 1 everywhere, so numerator and
    normaliser each move by a factor in [1, e^epsilon]. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return DepthExponential(**by_depth.domain(bits), epsilon=arguments.epsilon(epsilon))
