"""Empirical risk minimisation: the baseline without privacy (BNS Theorem 2.13)."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import base
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import exponential_piecewise as piecewise


@frozen
class ThresholdErm(ThresholdLearner):
    """Non-private baseline: uniform among the thresholds of least empirical error (the exponential mechanism at epsilon = inf).

    Attributes:
      bits: d.
      limbs: of a threshold (static).
    """

    takes_scaled: ClassVar[bool] = True

    bits: Int[Array, ""]
    limbs: int = static()

    def _log_density(self, pieces: Pieces) -> Array:
        best = jnp.max(jnp.where(pieces.nonempty(), pieces.values, -jnp.inf))
        return jnp.where(pieces.values == best, 0.0, -jnp.inf)

    def draw(self, key: Array, pieces: Pieces) -> Any:
        if pieces.is_peak:  # of a realizable sample: the pieces beside the top are worse
            return base.released(piecewise.draw_top(key, pieces))
        return base.released(piecewise.draw_everywhere(key, pieces, self._log_density(pieces)))

    def law(self, pieces: Pieces, goal: Goal) -> Array:
        return piecewise.law_everywhere(pieces, self._log_density(pieces), goal)

    def log_mass(self, pieces: Pieces, goal: Goal) -> Array:
        return piecewise.log_law_everywhere(pieces, self._log_density(pieces), goal)[0]

    def guarantee(self) -> Guarantee:
        """Nothing is promised."""
        return Guarantee.none(REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """BNS Theorem 2.13, VC dimension 1."""
        return whole(bounds.realizable(1, alpha, beta))


def erm(*, bits: int) -> ThresholdErm:
    """Non-private empirical risk minimisation.

    Args:
      bits: d, the domain is {0, ..., 2^d - 1}; 1 to 4096.

    Raises:
      TypeError, ValueError: bits is not an int, or out of range.
    """
    return ThresholdErm(**base.domain(bits))
