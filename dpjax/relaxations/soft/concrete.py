"""The exponential mechanism by Gumbel-softmax, the concrete distribution (Maddison, Mnih, Teh 2017; Jang, Gu, Poole 2017)."""

import math
from typing import Any

from jaxtyping import Array, Float

from dpjax.core import random
from dpjax.core.pytree import frozen
from dpjax.mechanisms import exponential
from dpjax.mechanisms.base import Candidates, Number
from dpjax.relaxations.soft import base
from dpjax.relaxations.soft.base import SoftChooser


@frozen
class Concrete(SoftChooser):
    """Weights softmax((w + G) / t) of the candidates, w_h = epsilon q_h / (2 Delta), G independent Gumbel variables; see `concrete`.

    The greatest weight is that of the candidate with the greatest w + G, which is drawn with probability ∝ exp(w) (Gumbel): **at every
    temperature the argmax has exactly the law of the exponential mechanism**, and at t = 0 the output is its indicator.

    The distance of the output from that indicator, in total variation, is 1 - y_max <= min(1, (k - 1) exp(-D / t)), D being the lead of
    the best over the second. P[D <= d] = sum_h p_h (1 - exp(-d)) (1 - p_h) / (1 - p_h + p_h exp(-d)) <= 1 - exp(-d), so D is stochastically
    at least a standard exponential, and E[1 - y_max] <= t (1 + ln(k - 1)); `deviation` returns the lesser of this and 1 - 1/k.

    Attributes:
      mechanism: the exact one, of `dpjax.mechanisms.exponential`.
      temperature: t >= 0.
    """

    mechanism: exponential.Exponential
    temperature: Number

    def draw(self, key: Array, data: Candidates) -> Float[Array, "k"]:
        logits = noisy_logits(key, self.mechanism, data)
        return base.checked(base.tempered(logits, self.temperature), self.mechanism.fits(data))

    def deviation(self, scores: Any) -> float:
        """An upper bound on E[TV(output, exact draw with the same noise)], for these candidates."""
        count = int(self.fit(scores).where.sum())
        return min(1 - 1 / count, float(self.temperature) * (1 + math.log(count - 1))) if count > 1 else 0.0


def noisy_logits(key: Array, mechanism: exponential.Exponential, data: Candidates) -> Float[Array, "k"]:
    """w + G, whose argmax the exponential mechanism draws; -inf where there is no candidate."""
    weights = exponential.log_weights(
        data.scores,
        epsilon=mechanism.epsilon,
        sensitivity=mechanism.sensitivity,
        log_measure=data.log_measure,
        where=data.where,
        monotone=mechanism.monotone,
    )
    return weights + random.gumbel(key, weights.shape).astype(weights.dtype)


def concrete(*, epsilon: Number, temperature: Number, **exact: Any) -> Concrete:
    """The exponential mechanism by Gumbel-softmax at a temperature.

    Args:
      epsilon: > 0, finite.
      temperature: t >= 0, finite; in units of the scores' log-weights epsilon q / (2 Delta).
      exact: sensitivity, monotone and relation, as `dpjax.mechanisms.exponential.mechanism` takes them.

    Formal guarantees: none for t > 0. At t = 0 (epsilon, 0), as the exponential mechanism.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax, jax.numpy as jnp
    >>> soft = concrete(epsilon=8.0, temperature=0.5)
    >>> weights = soft(jax.random.key(0), jnp.array([4.0, 6.0, 3.0]))
    >>> print(round(float(weights.sum()), 5), int(weights.argmax()), soft.guarantee())
    1.0 1 nothing is promised under REPLACE_ONE
    >>> soft.exact().guarantee().epsilon
    8.0
    """
    mechanism = exponential.mechanism(epsilon=epsilon, **exact)
    return Concrete(mechanism=mechanism, temperature=base.temperature(temperature))
