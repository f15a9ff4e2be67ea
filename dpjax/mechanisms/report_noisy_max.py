"""Report-noisy-max with exponential noise: the index of the largest q_h + Exp of mean 2 Delta/eps.

The same law as permute-and-flip (McKenna and Sheldon 2020; Ding, Kifer, Sayed Saghaian, Steinke, Wang,
Xiao, Zhang 2021): epsilon-DP, and never less accurate in expectation than the exponential mechanism.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments
from dpjax.core.logspace import log1mexp
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.exponential import Selection, log_weights, relation_for, valid
from dpjax.mechanisms.laplace import Number, standard_exponential


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
    position, mass = np.polynomial.legendre.leggauss(max(1, (weights.shape[0] + 1) // 2))
    # 1 - a u = (1 - a) + a (1 - u): no cancellation at u near 1, as both parts are kept to full precision.
    rest = jnp.asarray((1 - position) / 2, float)[:, None]
    log_miss = jnp.log(jnp.exp(log1mexp(weights))[None, :] + jnp.exp(weights)[None, :] * rest)
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
      monotone: uses mean Delta/eps, allowed when adding a record never lowers a score (or never raises one).

    Returns:
      Selection(index, ok); ok is False when no candidate is valid.

    Formal guarantees: epsilon-DP (pure) for the relation the sensitivity is for; with `monotone`, under
    ADD_OR_REMOVE_ONE only. Noise has right tails down to 5e-20. Not promised: protection from
    floating-point side channels, or a cryptographic generator.

    Raises:
      ValueError: epsilon or sensitivity not a finite positive number.

    >>> import jax, jax.numpy as jnp
    >>> int(report_noisy_max(jax.random.key(0), jnp.array([0, 90, 3]), epsilon=1.0).index)
    1
    """
    weights = log_weights(scores, epsilon=epsilon, sensitivity=sensitivity, where=where, monotone=monotone)
    winner = jnp.argmax(weights + standard_exponential(key, weights.shape)).astype(jnp.int32)
    return Selection(winner, jnp.any(valid(scores, where)) & ~jnp.any(jnp.isnan(weights)))


@frozen
class ReportNoisyMax:
    """Report-noisy-max with its parameters bound; build it by `ReportNoisyMax.create`.

    >>> ReportNoisyMax.create(epsilon=1.0, monotone=True).guarantee().relation
    'ADD_OR_REMOVE_ONE'
    """

    epsilon: Number
    sensitivity: float = static()
    monotone: bool = static()
    relation: str = static()

    @classmethod
    def create(
        cls,
        *,
        epsilon: Number,
        sensitivity: Number = 1.0,
        monotone: bool = False,
        relation: str | None = None,
    ) -> "ReportNoisyMax":
        """Checks and binds; `relation` is the one for which `sensitivity` holds, as for `Exponential.create`.

        Raises:
          ValueError: epsilon or sensitivity not a finite positive number, an unknown relation, or monotone
            scores under REPLACE_ONE.
        """
        return cls(
            epsilon=arguments.epsilon(epsilon),
            sensitivity=float(arguments.real("sensitivity", sensitivity, above=0.0, below=math.inf)),
            monotone=bool(monotone),
            relation=relation_for(monotone, relation),
        )

    def __call__(
        self, key: Array, scores: Real[ArrayLike, "k"], *, where: Bool[ArrayLike, "k"] | None = None
    ) -> Selection:
        """The noisy winner."""
        return report_noisy_max(
            key,
            scores,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            where=where,
            monotone=self.monotone,
        )

    def log_pmf(self, scores: Real[ArrayLike, "k"], *, where: Bool[ArrayLike, "k"] | None = None) -> Float[Array, "k"]:
        """ln P[h wins] for every candidate."""
        return log_pmf(
            scores,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            where=where,
            monotone=self.monotone,
        )

    def guarantee(self) -> Guarantee:
        """(epsilon, 0)."""
        return Guarantee(epsilon=float(self.epsilon), delta=0.0, relation=self.relation)
