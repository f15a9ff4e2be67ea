"""A stability histogram: MULTI Algorithm 2 with the best thresholds, private for every n."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import beyond
from dpjax.sanitizers import base
from dpjax.sanitizers.points.noisy_counts import NoisyCounts


@frozen
class StabilityHistogram(NoisyCounts):
    """Algorithm 2 with high - low = 1 + (2/epsilon) ln(1/(2 delta)), the least that is (epsilon, delta)-private; see `noisy_counts`."""

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    low: Float[Array, ""]
    limbs: int = static()

    @property
    def high(self) -> Any:  # type: ignore[override]
        return self.low + self._margin()

    def short(self, counts: Int[Array, "m"]) -> Float[Array, "m"]:
        # Next to a `low` of millions the margin, on which delta depends, would be rounded.
        return jnp.asarray(self._margin(), float) - beyond(counts, self.low)

    def _margin(self) -> Any:
        """high - low."""
        traced = any(map(arguments.is_traced, (self.epsilon, self.delta, self.low)))
        return bounds.histogram_margin(self.epsilon, self.delta, log=jnp.log if traced else math.log)

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.delta, float) <= 0.5) & (jnp.asarray(self.low, float) >= 0)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)


def histogram(*, bits: int, n: Any, epsilon: Any, delta: Any, low: Any = 0.0) -> StabilityHistogram:
    """Algorithm 2 with low = 0 and high = 1 + (2/epsilon) ln(1/(2 delta)): private for every n.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, tight (two counts of 1 that trade places). Not promised: protection from
    floating-point side channels; a cryptographic generator.

    Args:
      bits: d.
      n: number of examples, public (only a unit: answers are shares of it).
      epsilon: > 0. delta: in (0, 1/2].
      low: counts up to here are never released; the same is added to high.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return StabilityHistogram(
        **base.domain(bits, n),
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.real("delta", arguments.delta(delta), at_most=0.5),
        low=arguments.real("low", low, at_least=0.0, below=math.inf),
    )
