"""A_dist (BNS Proposition 2.27) with a soft leader and a soft release gate."""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from dpjax.core.pytree import frozen
from dpjax.mechanisms import laplace
from dpjax.mechanisms import stability as exact_stability
from dpjax.mechanisms.base import Candidates, Number, largest
from dpjax.relaxations.soft import base
from dpjax.relaxations.soft.base import SoftChooser


@frozen
class SoftStability(SoftChooser):
    """Weights (g s, 1 - g) of the k candidates and of ⊥: the leader s = softmax(q / (t b)), the gate g; see `stability`.

    A_dist keeps the best candidate iff gap + Lap(b) >= threshold, gap = best - second, with (b, threshold) of `dpjax.mechanisms.stability`.
    Here g = sigmoid((gap + Lap(b) - threshold) / (t b)). At t = 0 both are steps (the leader is the first of the best), which is A_dist.

    As the noise, in units of b, has a density of at most 1/2, E|g - step| <= t ln 2, and the leader's weight is at least
    1 - (k - 1) exp(-gap / (t b)); `deviation` returns the sum of both. Where the two best are equal the leader stays halved
    however small t is, and A_dist releases with probability at most delta.

    Attributes:
      mechanism: the exact one, of `dpjax.mechanisms.stability`.
      temperature: t >= 0, in units of the noise's scale b.
    """

    mechanism: exact_stability.Stability
    temperature: Number

    def draw(self, key: Array, data: Candidates) -> Float[Array, "outcomes"]:
        best, gap = exact_stability.leader(data.scores, data.where)
        scale, threshold = self._noise()
        alone = gap == jnp.inf
        lead = jnp.where(alone, 0.0, gap) / scale + laplace.standard_laplace(key) - threshold / scale
        gate = jnp.where(best.ok, jnp.where(alone, 1.0, base.step(lead, self.temperature)), 0.0)
        # Floats hold the differences of integer scores, but not large scores themselves.
        behind = jnp.where(data.where, data.scores - largest(data.scores, data.where), 0)
        logits = jnp.where(data.where, behind.astype(float) / scale, -jnp.inf)
        weights = jnp.append(gate * base.tempered(logits, self.temperature), 1 - gate)
        return base.checked(weights, self.mechanism.fits(data))

    def deviation(self, scores: Any) -> float:
        """An upper bound on E[TV(output, exact draw with the same noise)], for these scores."""
        data = self.fit(scores)
        gap, t = float(exact_stability.leader(data.scores, data.where)[1]), float(self.temperature)
        if t == 0.0 or math.isinf(gap):
            return 0.0
        count, scale = int(data.where.sum()), float(self._noise()[0])
        return min(1.0, t * math.log(2) + (count - 1) * math.exp(-gap / (t * scale)))

    def _noise(self) -> tuple[Array, Array]:
        return exact_stability.noise(self.mechanism.calibration, self.mechanism.epsilon, self.mechanism.delta)


def stability(*, epsilon: Number, delta: Number, temperature: Number, calibration: str = "proved") -> SoftStability:
    """A_dist at a temperature.

    Args:
      epsilon: > 0, finite.
      delta: in (0, 1), at most 1/2 for the proved calibrations.
      temperature: t >= 0, finite, in units of the noise's scale.
      calibration: one of those of `dpjax.mechanisms.stability`.

    Formal guarantees: none for t > 0. At t = 0 that of `dpjax.mechanisms.stability`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> soft = stability(epsilon=1.0, delta=1e-6, temperature=0.5)
    >>> [round(float(weight), 3) for weight in soft(jax.random.key(0), jnp.array([1.0, 200.0, 3.0]))]  # the last is ⊥
    [0.0, 1.0, 0.0, 0.0]
    """
    mechanism = exact_stability.mechanism(epsilon=epsilon, delta=delta, calibration=calibration)
    return SoftStability(mechanism=mechanism, temperature=base.temperature(temperature))
