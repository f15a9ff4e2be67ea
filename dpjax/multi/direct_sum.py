"""Direct sum: k concepts learned one by one from the same sample, each with its share of the budget (MULTI Observation 32).

| composition | what each learner may spend | so n grows like |
|---|---|---|
| "basic" | (epsilon / k, delta / k) | k |
| "advanced" | BNS Theorem 2.5, printed constants | sqrt(k ln(1/delta)) |
| "optimal" | the most that any composition theorem can give (Kairouz, Oh, Viswanath 2015) | sqrt(k ln(1/delta)), a smaller constant |

Neighbours: one example with all its labels is replaced (REPLACE_ONE), so each of the k learners sees neighbouring samples. Given the
sample their coins are independent: the law of all k hypotheses is the product of the single ones. If each fails with probability at most
beta / k, all are good but for beta.

    >>> import jax
    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.learners import thresholds
    >>> from dpjax.multi import direct_sum
    >>> learner = direct_sum.direct_sum(
    ...     lambda each: thresholds.exponential(bits=16, epsilon=each.epsilon),
    ...     k=3, epsilon=1.0, delta=1e-6, composition="optimal", delta_share=0.0)
    >>> law = concept.several(concept.uniform(bits=16, target=0), bits=16, targets=[100, 30_000, 60_000])
    >>> sample = law.sample(jax.random.key(0), 2047, 2000)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> int(outcome.status), bool((law.errors(outcome.hypothesis) < 0.1).all())
    (0, True)
    >>> learner.guarantee().covers(1.0, 1e-6), float(learner.failure_probability(sample, error=0.05)) < 1e-3
    (True, True)
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.accounting import REPLACE_ONE, Guarantee, advanced, basic, calibrate, optimal
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome
from dpjax.multi import pac

COMPOSITIONS = ("basic", "advanced", "optimal")
LANES = 16  # concepts worked on side by side: enough to fill vector units, few enough to stay in cache


@frozen
class DirectSum:
    """k independent runs of one learner; build it by `direct_sum`.

    Attributes:
      learner: for a single concept: `learner(key, Sample)`, `predict`, `guarantee`, `sample_size`; for laws `failure_probability`,
        `probability` or `pmf`.
      epsilon, delta: the total budget, at which `guarantee` composes.
      k: number of concepts (static).
      composition: "basic", "advanced" or "optimal" (static).
    """

    learner: Any
    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    k: int = static()
    composition: str = static()

    def __call__(self, key: Array, sample: MultiSample) -> Outcome:
        """One run.

        Returns:
          An `Outcome`: `hypothesis` the k hypotheses, stacked; `status` OK if all were released, else the gravest code among them;
          `info` each one's own `status` (not private) and `info`.

        Raises:
          TypeError, ValueError: a sample that does not fit.
        """
        return _run(self, key, self.fit(sample))

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """What each hypothesis says of each point."""
        return jax.vmap(self.learner.predict, in_axes=(0, None), out_axes=-1)(hypothesis, x)

    def failure_probability(self, sample: MultiSample, *, error: Any) -> Float[Array, ""]:
        """P[some empirical error > error, or bottom] over the coins, exactly: 1 - prod (1 - f_j), without cancellation."""
        return pac.any_fails(
            _each_failure(self, self.fit(sample), arguments.real("error", error, at_least=0.0, at_most=1.0))
        )

    def success_probability(self, sample: MultiSample, *, error: Any) -> Float[Array, ""]:
        """P[all empirical errors <= error] over the coins, exactly."""
        return 1 - self.failure_probability(sample, error=error)

    def failure_within(
        self, sample: MultiSample, low: UInt32[Array, "k limbs"], high: UInt32[Array, "k limbs"]
    ) -> Float[Array, ""]:
        """P[not (low_j <= h_j < high_j for all j)], exactly, for learners with `probability`.

        With (low, high) = distribution.within(alpha) that is the law of "every population error <= alpha" given the sample.
        """
        return pac.any_fails(_each_outside(self, self.fit(sample), low, high))

    def population_failure(self, key: Array, sample: MultiSample, distribution: Any, alpha: Any) -> Float[Array, ""]:
        """P[some population error > alpha, or bottom | sample] over all coins, exactly, for `pac.failure`; the key plays no part."""
        return self.failure_within(sample, *distribution.within(alpha))

    def pmf(self, sample: MultiSample) -> Float[Array, "outcomes"]:
        """The joint law, outcomes of the last concept running fastest: for the exact verifier on tiny cases."""
        self.fit(sample)
        law = jnp.ones((1,))
        for j in range(self.k):
            law = (law[:, None] * self.learner.pmf(sample.column(j))[None, :]).reshape(-1)
        return law

    def guarantee(self) -> Guarantee:
        """The composition of what the k learners promise, under REPLACE_ONE.

        At the total epsilon for "optimal", with all the delta that the learners leave for "advanced".
        """
        each, epsilon, delta = self.learner.guarantee(), float(self.epsilon), float(self.delta)
        if self.composition == "basic":
            return basic({each: self.k})
        if self.composition == "advanced":
            return advanced(each, self.k, at_most(Fraction(delta) - self.k * Fraction(each.delta)))
        return optimal({each: self.k}, epsilon=epsilon)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """The single learner's theorem at beta / k (union bound)."""
        return self.learner.sample_size(alpha=alpha, beta=beta / self.k)

    def fit(self, sample: MultiSample) -> MultiSample:
        """The sample, checked and padded to its bucket.

        Raises:
          TypeError: no MultiSample. ValueError: another k, or a point outside the domain. (Limbs are checked by the single learner.)
        """
        return fitted(sample, MultiSample, bits=self.learner.bits, k=self.k)


def _each(summed: DirectSum, sample: MultiSample, function: Callable[[Array, Any], Any]) -> Any:
    """function(j, sample of concept j) for every j, LANES at a time.

    k is rounded up to whole batches by working on the first concepts twice, so that one batch is compiled and not two.
    """
    lanes = min(LANES, summed.k)
    indices = jnp.arange(-(-summed.k // lanes) * lanes, dtype=jnp.int32) % summed.k
    results = jax.lax.map(lambda j: function(j, sample.column(j)), indices, batch_size=lanes)
    return jax.tree.map(lambda leaf: leaf[: summed.k], results)


@jax.jit
def _run(summed: DirectSum, key: Array, sample: MultiSample) -> Outcome:
    if sample.realizable and hasattr(summed.learner, "together"):
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(summed.k, dtype=jnp.int32))
        outcomes = summed.learner.together(keys, sample)
    else:
        outcomes = _each(summed, sample, lambda j, column: summed.learner(jax.random.fold_in(key, j), column))
    status = jnp.max(outcomes.status)
    return Outcome(
        hypothesis=outcomes.hypothesis, status=status, info={"status": outcomes.status, "info": outcomes.info}
    )


@jax.jit
def _each_failure(summed: DirectSum, sample: MultiSample, error: Array) -> Float[Array, "k"]:
    return _each(summed, sample, lambda j, column: summed.learner.failure_probability(column, error=error))


@jax.jit
def _each_outside(summed: DirectSum, sample: MultiSample, low: Array, high: Array) -> Float[Array, "k"]:
    return _each(summed, sample, lambda j, column: summed.learner.probability(column, (low[j], high[j]))[1])


def direct_sum(
    make: Callable[[Guarantee], Any],
    *,
    k: int,
    epsilon: float,
    delta: float = 0.0,
    composition: str = "basic",
    delta_share: float | None = None,
) -> DirectSum:
    """Splits (epsilon, delta) among k learners and builds their direct sum.

    Args:
      make: builds the learner of one concept from its budget, for instance
        `lambda each: thresholds.rec_concave(bits=64, epsilon=each.epsilon, delta=each.delta, alpha=0.1, depth=2)`.
      k: number of concepts, >= 1.
      epsilon, delta: the total under REPLACE_ONE; delta = 0 only with "basic".
      composition: "basic", "advanced" or "optimal".
      delta_share: part of delta for the learners' own; 0 for pure learners. Default 1 for basic, 1/2 for the others.

    Formal guarantees: (epsilon, delta), if every learner keeps its budget: `guarantee` composes what they state.

    Raises:
      TypeError, ValueError: arguments out of range; a learner that states less privacy than its budget, or another relation.
    """
    k = arguments.integer("k", k, at_least=1)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta, positive=False)
    arguments.choice("composition", composition, COMPOSITIONS)
    total = Guarantee(float(epsilon), float(delta), REPLACE_ONE)
    each = calibrate(total, k, accountant=composition, delta_share=delta_share)
    learner = make(each)
    stated = learner.guarantee()
    if stated is None:
        raise ValueError("make must build a learner with a guarantee, got one built with allow_unproved=True")
    # Budgets pass through float arithmetic of the learner's own accounting: a part in 10^9 is rounding.
    if stated.relation != REPLACE_ONE or not stated.covers(each.epsilon * (1 + 1e-9), each.delta * (1 + 1e-9)):
        raise ValueError(f"make must build a learner that keeps its budget {each}, got one with {stated}")
    return DirectSum(
        learner=learner, epsilon=np.float64(epsilon), delta=np.float64(delta), k=k, composition=composition
    )
