"""The exponential mechanism over finitely many scores (BNS §2.5.2): P[h] ∝ w_h exp(eps q_h / (2 Delta))."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax.core import arguments, logspace, random, staging
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import (
    Candidates,
    Chooser,
    Number,
    Selection,
    lowest,
    measured,
    relation_for,
    released,
    scored,
    sensitivity_of,
    with_bottom,
)


def log_weights(
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
    log_measure: Float[ArrayLike, "k"] | None = None,
    where: Bool[ArrayLike, "k"] | None = None,
    monotone: bool = False,
) -> Float[Array, "k"]:
    """ln of the unnormalised weights, scores taken relative to the best; -inf where masked."""
    scores, mask = scored(scores, where)
    factor = arguments.epsilon(epsilon) / arguments.real("sensitivity", sensitivity, above=0.0, below=math.inf)
    factor = jnp.asarray(factor if arguments.flag("monotone", monotone) else factor / 2, float)
    # Integer scores are subtracted before rounding to float: counts past 2^24 keep their last digits.
    top = jax.lax.stop_gradient(staging.greatest(jnp.where(mask, scores, lowest(scores))))
    weights = factor * jnp.where(mask, scores - top, jnp.zeros((), scores.dtype)).astype(float)
    measure = measured(log_measure, scores)
    if measure is not None:
        # Relative to the heaviest, score and measure each: next to a large number scores would lose their digits, and more than epsilon.
        best = jnp.argmax(jnp.where(mask, weights + measure, -jnp.inf))
        lag = jnp.where(mask, scores - jax.lax.stop_gradient(scores[best]), jnp.zeros((), scores.dtype))
        least = logspace.finite(jax.lax.stop_gradient(measure[best]))
        weights = factor * lag.astype(float) + jnp.where(mask, measure - least, 0.0)
    return jnp.where(mask, weights, -jnp.inf)


def log_pmf(
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
    log_measure: Float[ArrayLike, "k"] | None = None,
    where: Bool[ArrayLike, "k"] | None = None,
    monotone: bool = False,
) -> Float[Array, "k"]:
    """ln P[h] for every candidate; all -inf when none is valid."""
    weights = log_weights(
        scores,
        epsilon=epsilon,
        sensitivity=sensitivity,
        log_measure=log_measure,
        where=where,
        monotone=monotone,
    )
    return normalised(weights)


def normalised(weights: Float[Array, "k"]) -> Float[Array, "k"]:
    """ln of the probabilities proportional to exp(weights); all -inf when all weights are."""
    possible = jnp.any(weights > -jnp.inf)
    total = jax.nn.logsumexp(jnp.where(possible, weights, 0.0))
    return jnp.where(possible, weights - total, -jnp.inf)


@jax.jit(inline=True)
def draw(key: Array, weights: Float[Array, "k"]) -> Selection:
    """A candidate with probability ∝ exp(weights); ok is False when all are -inf or one is NaN.

    Probabilities below 1e-38 of the largest count as 0.
    """
    leaves = 1 << max(weights.shape[0] - 1, 0).bit_length()
    top = staging.greatest(weights)
    shares = jnp.where(jnp.isneginf(weights), 0.0, jnp.exp(weights - top))
    rarity = random.exponential(key, (max(leaves.bit_length() - 1, 1),))
    index = logspace.descend_plain(rarity, jnp.pad(shares, (0, leaves - weights.shape[0])))
    return released(index, jnp.isfinite(top))


def exponential(
    key: Array,
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
    log_measure: Float[ArrayLike, "k"] | None = None,
    where: Bool[ArrayLike, "k"] | None = None,
    monotone: bool = False,
) -> Selection:
    """Chooses h with probability proportional to w_h exp(epsilon q_h / (2 Delta)) (BNS Proposition 2.26).

    Args:
      key: a PRNG key.
      scores: quality of each candidate, integers or floats.
      epsilon: the privacy parameter, > 0.
      sensitivity: Delta, the largest change of any one score between neighbours.
      log_measure: ln w_h, the base measure, which must not depend on the data; 0 when absent. A float32 of
        size 3000 is rounded by 1e-4, which changes a weight by a relative 1e-4.
      where: which candidates exist, independent of the data; all when absent.
      monotone: uses epsilon q / Delta, which is allowed when adding a record never lowers a score (or never
        raises one).

    Returns:
      Selection(index, ok); ok is False when no candidate is valid.

    Formal guarantees: epsilon-DP (pure) under the relation for which the sensitivity holds; with `monotone`,
    under ADD_OR_REMOVE_ONE only. Probabilities down to 5e-20 are sampled correctly. In float32 a rounding of
    ln P adds up to 6e-8 |ln P| to a privacy loss on either side: with epsilon = 0.001 and P = 5e-5, up to 6e-4 of epsilon. Not promised:
    protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: epsilon or sensitivity not a finite positive number.

    >>> import jax, jax.numpy as jnp
    >>> int(exponential(jax.random.key(0), jnp.array([0, 90, 3]), epsilon=1.0).index)
    1
    """
    weights = log_weights(
        scores,
        epsilon=epsilon,
        sensitivity=sensitivity,
        log_measure=log_measure,
        where=where,
        monotone=monotone,
    )
    return draw(arguments.key(key), weights)


@frozen
class Exponential(Chooser):
    """The exponential mechanism among candidates; see `exponential`, and `mechanism`, which makes it.

    Its plain twin is `dpjax.verify.plain.exponential`.
    """

    takes_measure = True

    epsilon: Number
    sensitivity: float = static()
    monotone: bool = static()
    relation: str = static()

    def _log_weights(self, data: Candidates) -> Float[Array, "k"]:
        return log_weights(
            data.scores,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            log_measure=data.log_measure,
            where=data.where,
            monotone=self.monotone,
        )

    def draw(self, key: Array, data: Candidates) -> Any:
        return *draw(key, self._log_weights(data)), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return with_bottom(normalised(self._log_weights(data)))


def mechanism(
    *, epsilon: Number, sensitivity: Number = 1.0, monotone: bool = False, relation: str | None = None
) -> Exponential:
    """The exponential mechanism, epsilon-private.

    Args:
      epsilon: > 0, finite.
      sensitivity: the largest change of any one score between neighbours.
      monotone: weighs by exp(epsilon q / sensitivity), without the 1/2: for scores that another record never lowers (or never raises).
      relation: the one for which `sensitivity` holds. When absent, it is REPLACE_ONE, or ADD_OR_REMOVE_ONE for monotone scores, which
        are valid under that relation only.

    Raises:
      TypeError, ValueError: epsilon or sensitivity not a finite positive number, an unknown relation, or monotone scores under
        REPLACE_ONE.

    >>> choose = mechanism(epsilon=1.0)
    >>> choose.guarantee().relation
    'REPLACE_ONE'
    >>> [round(float(p), 3) for p in choose.pmf([4, 6, 3])]  # the last one is ⊥
    [0.231, 0.629, 0.14, 0.0]
    """
    epsilon = arguments.epsilon(epsilon)
    return Exponential(
        epsilon=epsilon,
        sensitivity=sensitivity_of(sensitivity, epsilon),
        monotone=arguments.flag("monotone", monotone),
        relation=relation_for(monotone, relation),
    )
