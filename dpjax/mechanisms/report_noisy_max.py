"""Report-noisy-max with exponential noise: the index of the largest q_h + Exp of mean 2 Delta/eps.

The same law as permute-and-flip (McKenna and Sheldon 2020; Ding, Kifer, Sayed Saghaian, Steinke, Wang,
Xiao, Zhang 2021): epsilon-DP, and never less accurate in expectation than the exponential mechanism.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Candidates, Chooser, Number, Selection, relation_for, sensitivity_of, with_bottom
from dpjax.mechanisms.exponential import log_weights


def log_pmf(
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
    where: Bool[ArrayLike, "k"] | None = None,
    monotone: bool = False,
) -> Float[Array, "k"]:
    """ln P[h wins] for every candidate; all -inf when none is valid.

    With a_h = exp(-(q_max - q_h) eps / (2 Delta)), P[h] = a_h int_0^1 prod_{j != h} (1 - a_j u) du, u being
    e^-(noise of the best): a polynomial of degree k-1, which ceil(k/2) Gauss-Legendre nodes integrate
    without error. Every term is positive, so tails keep their relative accuracy. Costs k^2/2.
    """
    weights = log_weights(scores, epsilon=epsilon, sensitivity=sensitivity, where=where, monotone=monotone)
    # The best weight is 1 = exp(0) whatever the scores; derivatives with respect to the scores must see that it stays 1.
    best = jnp.max(weights)
    weights = weights - jnp.where(best > -jnp.inf, best, 0.0)
    position, mass = np.polynomial.legendre.leggauss(max(1, (weights.shape[0] + 1) // 2))
    # 1 - a u = (1 - a) + a (1 - u): no cancellation at u near 1, as both parts are kept to full precision.
    rest = jnp.asarray((1 - position) / 2, float)[:, None]
    log_miss = jnp.log(-jnp.expm1(weights)[None, :] + jnp.exp(weights)[None, :] * rest)
    log_all = jnp.sum(log_miss, axis=1, keepdims=True) + jnp.asarray(np.log(mass / 2), float)[:, None]
    return weights + jax.nn.logsumexp(log_all - log_miss, axis=0)


def report_noisy_max(
    key: Array,
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
    where: Bool[ArrayLike, "k"] | None = None,
    monotone: bool = False,
) -> Selection:
    """The candidate whose score plus exponential noise of mean 2 Delta/eps is largest.

    Args:
      key: a PRNG key.
      scores: quality of each candidate, integers or floats.
      epsilon: the privacy parameter, > 0.
      sensitivity: Delta, the largest change of any one score between neighbours.
      where: which candidates exist, independent of the data.
      monotone: uses mean Delta/eps, which is allowed when adding a record never lowers a score (or never
        raises one).

    Returns:
      Selection(index, ok); ok is False when no candidate is valid.

    Formal guarantees: epsilon-DP (pure) under the relation for which the sensitivity holds; with `monotone`,
    under ADD_OR_REMOVE_ONE only. The tails of the noise are correct down to 5e-20. Not promised: protection
    from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: epsilon or sensitivity not a finite positive number.

    >>> import jax, jax.numpy as jnp
    >>> int(report_noisy_max(jax.random.key(0), jnp.array([0, 90, 3]), epsilon=1.0).index)
    1
    """
    weights = log_weights(scores, epsilon=epsilon, sensitivity=sensitivity, where=where, monotone=monotone)
    winner = jnp.argmax(weights + random.fine_exponential(arguments.key(key), weights.shape)).astype(jnp.int32)
    return Selection(winner, jnp.any(weights > -jnp.inf) & ~jnp.any(jnp.isnan(weights)))


@frozen
class ReportNoisyMax(Chooser):
    """Report-noisy-max; see `report_noisy_max`, and `mechanism`, which makes it.

    Its plain twin, permute-and-flip over all orders of the candidates, is `dpjax.verify.plain.report_noisy_max`.
    """

    epsilon: Number
    sensitivity: float = static()
    monotone: bool = static()
    relation: str = static()

    def _given(self, data: Candidates) -> dict[str, Any]:
        return {
            "epsilon": self.epsilon,
            "sensitivity": self.sensitivity,
            "where": data.where,
            "monotone": self.monotone,
        }

    def draw(self, key: Array, data: Candidates) -> Any:
        return *report_noisy_max(key, data.scores, **self._given(data)), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return with_bottom(log_pmf(data.scores, **self._given(data)))


def mechanism(
    *, epsilon: Number, sensitivity: Number = 1.0, monotone: bool = False, relation: str | None = None
) -> ReportNoisyMax:
    """Report-noisy-max, epsilon-private; the arguments are those of `dpjax.mechanisms.exponential.mechanism`.

    Raises:
      TypeError, ValueError: epsilon or sensitivity not a finite positive number, an unknown relation, or monotone scores under
        REPLACE_ONE.

    >>> mechanism(epsilon=1.0, monotone=True).guarantee().relation
    'ADD_OR_REMOVE_ONE'
    """
    epsilon = arguments.epsilon(epsilon)
    return ReportNoisyMax(
        epsilon=epsilon,
        sensitivity=sensitivity_of(sensitivity, epsilon),
        monotone=arguments.flag("monotone", monotone),
        relation=relation_for(monotone, relation),
    )
