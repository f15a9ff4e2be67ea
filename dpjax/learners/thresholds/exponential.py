"""The exponential mechanism over all thresholds (Kasiviswanathan et al. 2011; BNS Proposition 2.26).

Its plain twin is `dpjax.verify.plain.exponential.threshold_law`, and on wide domains `dpjax.verify.plain.rec_concave.exponential_success`.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.concepts import thresholds as concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import status, whole
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import base
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import exponential_piecewise as piecewise


@frozen
class ThresholdExponential(ThresholdLearner):
    """Exponential mechanism over all 2^d + 1 thresholds with the number of correctly labelled examples (sensitivity 1).

    Attributes:
      bits: d.
      epsilon: privacy parameter.
      limbs: of a threshold (static).
    """

    takes_scaled: ClassVar[bool] = True
    bounded_range: ClassVar[bool] = True

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()

    def _mechanism(self) -> piecewise.ExponentialPiecewise:
        return piecewise.ExponentialPiecewise(epsilon=self.epsilon)

    def draw(self, key: Array, pieces: Pieces) -> Any:
        return self._mechanism().draw(key, pieces)

    def together(self, keys: Array, sample: MultiSample) -> Outcome:
        """One run for each of the k labels of a realizable sample, each with its own key; the outcomes are stacked.

        The examples' order, the pieces and their sizes are the same for all labels, and are computed once.
        """
        column = self.fit(sample.column(0))
        pieces = self.prepare(column)
        slope = jnp.asarray(self.epsilon, float) / 2
        points = jax.vmap(lambda key, top: piecewise.draw_shared_peak(key, pieces, top, slope))(
            keys, concept.ones(sample)
        )
        code = status(self, column, jnp.bool_(True))
        return jax.vmap(lambda point: Outcome.of(point.position, code, point))(points)

    def law(self, pieces: Pieces, goal: Goal) -> Array:
        return self._mechanism().law(pieces, goal)

    def log_mass(self, pieces: Pieces, goal: Goal) -> Array:
        return self._mechanism().log_mass(pieces, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: BNS Proposition 2.26 (i)."""
        return self._mechanism().guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """BNS Proposition 2.26 (ii) for alpha/2, beta/2, and Theorem 2.14; `dpjax.choose` has a proof that needs fewer."""
        return whole(bounds.exponential_thresholds(int(self.bits), alpha, beta, float(self.epsilon)))


def exponential(*, bits: int, epsilon: Any) -> ThresholdExponential:
    """The exponential mechanism over all thresholds, (epsilon, 0)-private; see `ThresholdExponential`.

    Args:
      bits: d, 1 to 4096.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return ThresholdExponential(**base.domain(bits), epsilon=arguments.epsilon(epsilon))
