"""The exponential mechanism over all points: the proper pure learner.

q(h) is the number of correctly labelled examples, and P[h] ∝ exp(epsilon q(h) / 2). The sample size does not rest on uniform convergence;
see `bounds.exponential_points`.

Its plain twin is `dpjax.verify.plain.exponential.point_law`.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts.points import Point
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.domains import wide
from dpjax.learners.points import base
from dpjax.learners.points.base import OnePointLearner, Seen
from dpjax.mechanisms import exponential as mechanism


@frozen
class PointExponential(OnePointLearner):
    """The exponential mechanism over POINT_d, and over the all-zero concept, too, if `zero` is set."""

    bounded_range: ClassVar[bool] = True

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    zero: bool = static(default=False)

    def log_weights(self, seen: Seen) -> Float[Array, "entries"]:
        """ln of the unnormalised weights exp(epsilon q / 2), unseen points as one group."""
        there = jnp.concatenate([jnp.stack([jnp.bool_(self.zero), ~wide.is_zero(seen.unseen)]), seen.valid])
        # Entries before the seen points only: padding must not move any.
        measure = jnp.zeros(there.shape, float).at[1].set(seen.log_unseen())
        return mechanism.log_weights(-seen.wrong(), epsilon=self.epsilon, log_measure=measure, where=there)

    def draw(self, key: Array, seen: Seen) -> tuple[Point, Bool[Array, ""], Any]:
        key_choice, key_point = jax.random.split(key)
        index = mechanism.draw(key_choice, self.log_weights(seen)).index
        seen_point = seen.points[jnp.maximum(index - 2, 0)]
        position = wide.select(index == 1, base.unseen_point(key_point, seen), seen_point)
        return Point.shown(position, index == 0), jnp.bool_(True), {"unseen": index == 1}

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        weights = self.log_weights(seen)
        return weights - logspace.logsumexp(weights)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: q has sensitivity 1 (BNS Proposition 2.26 (i))."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """(d ln 2 + ln(1/beta)) / (alpha (1 - exp(-epsilon/2))) for targets in POINT_d; see `bounds.exponential_points`."""
        return whole(bounds.exponential_points(int(self.bits) * math.log(2.0), alpha, beta, float(self.epsilon)))


def exponential(*, bits: int, epsilon: Any) -> PointExponential:
    """The exponential mechanism over all 2^d points: the proper pure learner.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d, 1 to 4096.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return PointExponential(**base.domain(bits), epsilon=arguments.epsilon(epsilon))
