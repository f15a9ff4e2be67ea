"""Base of all solvers of the interior point problem: their data, their events, and what success means."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.core import arguments
from dpjax.data.algorithm import Ordered, few_points
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.data.sample import countable
from dpjax.domains import wide
from dpjax.domains.events import Accurate, Interval, number


class InteriorPoint(Ordered):
    """A solver on `Points` of {0, ..., 2^bits - 1}, or on a `Sample`, whose labels it ignores: the output is one such point.

    Runs and laws use the points in sorted order. An interval may end at 2^bits, one more than the greatest point, so its ends have one limb
    more than a point. An answer's error is 0 if it is an interior point and 1 if not, so all tolerated errors below 1 mean the same.

    One compiled program serves every number of points up to its bucket, every epsilon and delta, and every number of bits with the same
    number of limbs: these are all data.
    """

    kind: ClassVar[type] = Points

    def fit(self, data: Any) -> Points:
        # A distribution on X_bits writes its points with limbs for 2^bits, too: one more at 32, 64, ... bits.
        limbs = (self.limbs, self.limbs + 1)
        return fitted(Points.of(data), Points, bits=self.bits, limbs=limbs, counted=True, name="points")

    def fits(self, points: Points) -> Bool[Array, ""]:
        return super().fits(points) & countable(points)

    def prepare(self, points: Points) -> Points:
        return points.in_order(self.limbs)

    def check_event(self, event: Any) -> Interval:
        return Interval.of(event, self.limbs + 1)

    def event(self, points: Points, event: Interval | Accurate) -> Interval:
        if isinstance(event, Accurate):
            event = self._accurate_answers(points, event.error)
        return event.of_domain(self.bits, self.limbs + 1)

    def _accurate_answers(self, points: Points, error: Float[Array, ""]) -> Interval:
        """The interval from the least to the greatest of sorted points, empty if there are none; all answers, if the error may be 1."""
        inside, anything = Interval.closed(points.x[0], points.x[jnp.maximum(points.n_valid - 1, 0)]), self.anything()
        high = wide.select(points.n_valid > 0, inside.high, inside.low)
        return Interval(
            low=wide.select(error < 1, inside.low, anything.low), high=wide.select(error < 1, high, anything.high)
        )

    def exactly(self, output: UInt32[Array, "limbs"]) -> Interval:
        output = number("output", output, self.limbs)
        return Interval.closed(output, output)

    def listed(self) -> int:
        return few_points(self.bits)

    def anything(self) -> Interval:
        return Interval.everything(self.limbs + 1)

    def success_probability(self, data: Any, *, error: Any = 0.0) -> Float[Array, ""]:
        """P[min <= answer <= max] over the solver's coins, exactly; bottom is a failure, and so is any answer where there are no points.

        Args:
          data: `Points`, or a `Sample`.
          error: the tolerated error, in [0, 1]; all values below 1 mean the same.
        """
        return super().success_probability(data, error=error)

    def failure_probability(self, data: Any, *, error: Any = 0.0) -> Float[Array, ""]:
        """P[answer outside, or bottom], as a sum of positive terms: 1e-12 comes out right in float32, too."""
        return super().failure_probability(data, error=error)

    def sample_size(self, *, beta: float, alpha: float = 0.0) -> int:
        """The number of points that suffices, whatever they are, for an interior point with probability 1 - beta.

        Args:
          beta: in (0, 1).
          alpha: the tolerated error, in [0, 1): all values mean the same.

        Raises:
          ValueError: alpha or beta out of range, or more than this solver can promise.
        """
        arguments.real("alpha", alpha, at_least=0.0, below=1.0)
        return self.points_needed(arguments.known_fraction("beta", beta))

    def points_needed(self, beta: float) -> int:
        """`sample_size` for checked arguments."""
        raise NotImplementedError


def domain(bits: Any) -> dict[str, Any]:
    """The fields that every solver has."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return {"bits": np.int32(bits), "limbs": wide.limbs_for(bits)}
