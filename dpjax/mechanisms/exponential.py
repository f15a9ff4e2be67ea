"""The exponential mechanism over finitely many scores (BNS §2.5.2): P[h] ∝ w_h exp(eps q_h / (2 Delta))."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, Real

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.laplace import Number


class Selection(NamedTuple):
    """A chosen candidate; `index` means nothing where `ok` is False (the outcome is ⊥)."""

    index: Int[Array, ""]  # type: ignore[assignment]  # tuple has a method of this name
    ok: Bool[Array, ""]


def valid(scores: Real[ArrayLike, "k"], where: Bool[ArrayLike, "k"] | None) -> Bool[Array, "k"]:
    """The candidates' mask: all of them when none is given."""
    return jnp.ones(jnp.shape(scores), bool) if where is None else jnp.asarray(where, bool)


def largest(scores: Real[Array, "k"], where: Bool[Array, "k"]) -> Real[Array, ""]:
    """The largest valid score; the lowest number of the type when there is none."""
    integers = jnp.issubdtype(scores.dtype, jnp.integer)
    lowest = jnp.iinfo(scores.dtype).min if integers else -jnp.inf
    return jnp.max(scores, where=where, initial=lowest)


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
    scores, mask = jnp.asarray(scores), valid(scores, where)
    factor = arguments.epsilon(epsilon) / arguments.real("sensitivity", sensitivity, above=0.0, below=math.inf)
    factor = jnp.asarray(factor if monotone else factor / 2, float)
    # Integer scores are subtracted before rounding to float: counts past 2^24 keep their last digits.
    top = jax.lax.stop_gradient(jnp.where(jnp.any(mask), largest(scores, mask), jnp.zeros((), scores.dtype)))
    weights = factor * jnp.where(mask, scores - top, jnp.zeros((), scores.dtype)).astype(float)
    measure = 0.0 if log_measure is None else jnp.where(mask, jnp.asarray(log_measure, float), 0.0)
    return jnp.where(mask, weights + measure, -jnp.inf)


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
    possible = jnp.any(weights > -jnp.inf)
    total = jax.nn.logsumexp(jnp.where(possible, weights, 0.0))
    return jnp.where(possible, weights - total, -jnp.inf)


@functools.partial(jax.jit, inline=True)
def draw(key: Array, weights: Float[Array, "k"]) -> Selection:
    """A candidate with probability ∝ exp(weights); ok is False when all are -inf or one is NaN. Those below 1e-38 are 0."""
    leaves = 1 << max(weights.shape[0] - 1, 0).bit_length()
    top = jnp.max(weights)
    shares = jnp.where(jnp.isneginf(weights), 0.0, jnp.exp(weights - top))
    tree = logspace.plain_tree(jnp.concatenate([shares, jnp.zeros((leaves - weights.shape[0],), weights.dtype)]))
    rarity = random.exponential(key, (max(leaves.bit_length() - 1, 1),))
    return Selection(logspace.descend(rarity, tree, jnp.log), jnp.isfinite(tree[1]) & (tree[1] > 0))


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
        size 3000 is rounded by 1e-4, and so are the weights.
      where: which candidates exist, independent of the data; all when absent.
      monotone: uses epsilon q / Delta, allowed when adding a record never lowers a score (or never raises
        one).

    Returns:
      Selection(index, ok); ok is False when no candidate is valid.

    Formal guarantees: epsilon-DP (pure) for the relation the sensitivity is for; with `monotone`, under
    ADD_OR_REMOVE_ONE only. Probabilities down to 5e-20 are sampled right. Not promised: protection from
    floating-point side channels, or a cryptographic generator.

    Raises:
      ValueError: epsilon or sensitivity not a finite positive number.

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
    return draw(key, weights)


def relation_for(monotone: bool, relation: str | None) -> str:
    """The relation of a sensitivity; monotone scores may claim ADD_OR_REMOVE_ONE only."""
    if relation is None:
        return "ADD_OR_REMOVE_ONE" if monotone else "REPLACE_ONE"
    if monotone and relation != "ADD_OR_REMOVE_ONE":
        raise ValueError(f"relation must be 'ADD_OR_REMOVE_ONE' for monotone scores, got {relation!r}")
    return arguments.choice("relation", relation, RELATIONS)


@frozen
class Exponential:
    """The exponential mechanism with its parameters bound; build it by `Exponential.create`.

    >>> Exponential.create(epsilon=1.0).guarantee().relation
    'REPLACE_ONE'
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
    ) -> "Exponential":
        """Checks and binds; `relation` is the one for which `sensitivity` holds.

        It is REPLACE_ONE when absent, or ADD_OR_REMOVE_ONE for monotone scores, which are valid under it
        only.

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
        self,
        key: Array,
        scores: Real[ArrayLike, "k"],
        *,
        log_measure: Float[ArrayLike, "k"] | None = None,
        where: Bool[ArrayLike, "k"] | None = None,
    ) -> Selection:
        """A choice among the candidates."""
        return draw(key, self._log_weights(scores, log_measure, where))

    def log_pmf(
        self,
        scores: Real[ArrayLike, "k"],
        *,
        log_measure: Float[ArrayLike, "k"] | None = None,
        where: Bool[ArrayLike, "k"] | None = None,
    ) -> Float[Array, "k"]:
        """ln P[h] for every candidate."""
        return log_pmf(
            scores,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            log_measure=log_measure,
            where=where,
            monotone=self.monotone,
        )

    def _log_weights(self, scores: ArrayLike, log_measure: ArrayLike | None, where: ArrayLike | None) -> Array:
        """The unnormalised weights under the bound parameters."""
        return log_weights(
            scores,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            log_measure=log_measure,
            where=where,
            monotone=self.monotone,
        )

    def guarantee(self) -> Guarantee:
        """(epsilon, 0)."""
        return Guarantee(epsilon=float(self.epsilon), delta=0.0, relation=self.relation)
