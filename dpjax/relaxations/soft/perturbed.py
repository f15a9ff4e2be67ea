"""The exponential mechanism as a perturbed maximiser (Berthet, Blondel, Teboul, Cuturi, Vert, Bach 2020)."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.core.pytree import frozen
from dpjax.mechanisms import exponential
from dpjax.mechanisms.base import Candidates, Number
from dpjax.relaxations.soft import base
from dpjax.relaxations.soft.base import SoftChooser
from dpjax.relaxations.soft.concrete import noisy_logits

# Nodes of the trapezoidal rule, in standard deviations: the integrand is analytic, and what the rule misses is below 1e-14.
_NODES = np.arange(-36, 37) / 4
_FAR = 40.0  # a lead of more than this many temperatures is certain to win, in float64, too


@frozen
class Perturbed(SoftChooser):
    """Weights E[indicator of argmax(w + G + t Z) | G], Z independent standard normals; see `perturbed`.

    G is the Gumbel noise of the exponential mechanism, and Z smooths its argmax. (Gumbel variables in Z's place give `concrete`.) Berthet
    et al. estimate the expectation by draws of Z; here it is computed, for k candidates by one integral each,

        y_h = int phi(z) prod_{j != h} Phi((l_h - l_j) / t + z) dz,      l = w + G,

    at a cost of k^2. The order of the weights is that of l, so the argmax has the exponential mechanism's law at every temperature. With D
    the lead of the best, 1 - y_max <= (k - 1) P[N(0, 2) > D / t], and as D is stochastically at least a standard exponential (see
    `Concrete`), E[1 - y_max] <= (k - 1) t / sqrt(pi); `deviation` returns the lesser of this and 1 - 1/k.

    Attributes:
      mechanism: the exact one, of `dpjax.mechanisms.exponential`.
      temperature: t >= 0.
    """

    mechanism: exponential.Exponential
    temperature: Number

    def draw(self, key: Array, data: Candidates) -> Float[Array, "k"]:
        logits = noisy_logits(key, self.mechanism, data)
        t = jnp.asarray(self.temperature, logits.dtype)
        soft = smoothed(logits, data.where, base.divisor(t))
        hard = base.first(data.where & (logits == jnp.max(logits)))
        return base.checked(jnp.where(t > 0, soft, hard), self.mechanism.fits(data))

    def deviation(self, scores: Any) -> float:
        """An upper bound on E[TV(output, exact draw with the same noise)], for these candidates."""
        count = int(self.fit(scores).where.sum())
        return min(1 - 1 / count, (count - 1) * float(self.temperature) / math.sqrt(math.pi)) if count > 1 else 0.0


def smoothed(logits: Float[Array, "k"], where: Bool[Array, "k"], temperature: Float[Array, ""]) -> Float[Array, "k"]:
    """P[h = argmax(logits + t Z)] for standard normals Z, t > 0."""
    finite = jnp.where(where, logits, 0.0)
    lead = jnp.clip((finite[:, None] - finite[None, :]) / temperature, -_FAR, _FAR)
    rivals = where[None, :] & ~jnp.eye(logits.shape[0], dtype=bool)
    nodes = jnp.asarray(_NODES, logits.dtype)
    beaten = jnp.where(rivals[..., None], jax.scipy.special.log_ndtr(lead[..., None] + nodes[None, None, :]), 0.0)
    wins = jnp.sum(jnp.exp(jnp.sum(beaten, axis=1) - nodes[None, :] ** 2 / 2), axis=1)
    wins = jnp.where(where, wins, 0.0)
    return wins / jnp.where(jnp.any(where), jnp.sum(wins), 1.0)


def perturbed(*, epsilon: Number, temperature: Number, **exact: Any) -> Perturbed:
    """The exponential mechanism as a perturbed maximiser at a temperature.

    Args:
      epsilon: > 0, finite.
      temperature: t >= 0, finite: the standard deviation of the smoothing, in units of the log-weights epsilon q / (2 Delta).
      exact: sensitivity, monotone and relation, as `dpjax.mechanisms.exponential.mechanism` takes them.

    Formal guarantees: none for t > 0. At t = 0 (epsilon, 0), as the exponential mechanism.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> soft = perturbed(epsilon=8.0, temperature=0.5)
    >>> weights = soft(jax.random.key(0), jnp.array([4.0, 6.0, 3.0]))
    >>> print(round(float(weights.sum()), 5), int(weights.argmax()), soft.guarantee())
    1.0 1 nothing is promised under REPLACE_ONE
    """
    mechanism = exponential.mechanism(epsilon=epsilon, **exact)
    return Perturbed(mechanism=mechanism, temperature=base.temperature(temperature))
