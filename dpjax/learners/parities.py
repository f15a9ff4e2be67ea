"""A pure learner of one parity c_v(x) = <v, x> mod 2 over {0,1}^d, d <= 16: the exponential mechanism over all 2^d of them
(Kasiviswanathan et al., "What can we learn privately?"; MULTI Theorem 27).

The score of v is the number of examples that c_v labels right, (n + F(v)) / 2, with F the Walsh-Hadamard transform of
f(x) = #{zeros at x} - #{ones at x}: all 2^d scores in d 2^d additions. Labels are arbitrary. Replacing one example changes a score by at
most 1, so the learner is (epsilon, 0)-private under REPLACE_ONE.

**Utility.** Let labels be those of c and points be uniform. A wrong v labels D ~ Bin(n, 1/2) examples wrong, and is chosen with
probability at most exp(-eps D / 2). So, over sample and coins,

    P[not c] <= (2^d - 1) E[exp(-eps D / 2)] = (2^d - 1) ((1 + exp(-eps/2)) / 2)^n,

which is beta at n = ln((2^d - 1) / beta) / ln(2 / (1 + exp(-eps/2))), about 4 (d ln 2 + ln(1/beta)) / eps: `sample_size`. For arbitrary
labels there is `agnostic_sample_size`. For k parities see `dpjax.multi.direct_sum` (MULTI Example 1).

    >>> import jax
    >>> from dpjax.concepts import parities as concept
    >>> from dpjax.learners import parities
    >>> law = concept.uniform_single(bits=10, target=700)
    >>> learner = parities.exponential(bits=10, epsilon=1.0)
    >>> n = math.ceil(learner.sample_size(alpha=0.1, beta=0.01))
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), n, n))
    >>> n, float(law.error(outcome.hypothesis))
    (53, 0.0)
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import parities as concept
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.data.sample import Sample
from dpjax.domains import gf2, wide
from dpjax.mechanisms import exponential as mechanism

MAX_BITS = 16


@frozen
class Exponential:
    """The exponential mechanism over all parities; build it by `exponential`."""

    epsilon: Float[Any, ""]
    bits: int = static()

    def __call__(self, key: Array, sample: Sample) -> Outcome:
        """One run on a sample.

        Args:
          key: PRNG key.
          sample: labelled examples, x of shape (rows, 1), below 2^bits.

        Returns:
          An `Outcome`: `hypothesis` is v, uint32 (1,); `status` a `Status` code; `info` its score, the number of examples labelled
          right (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit (as far as it is not traced).
        """
        return _run(self, key, self.fit(sample))

    def predict(self, hypothesis: UInt32[Array, "limbs"], x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows"]:
        """The labels that the parity gives to points."""
        return concept.label(hypothesis, x).astype(bool)

    def pmf(self, sample: Sample) -> Float[Array, "parities"]:
        """P[v] for v = 0, ..., 2^bits - 1."""
        return jnp.exp(_log_pmf(self, self.fit(sample)))

    def success_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error <= error] over the coins, exactly. Differentiable in epsilon."""
        return self._law(sample, error)[0]

    def failure_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error > error] as a sum of positive terms: right however small."""
        return self._law(sample, error)[1]

    def probability(self, sample: Sample, event: tuple[Array, Array]) -> Float[Array, "2"]:
        """(P[low <= v < high], P[not]), exactly, each a sum of positive terms.

        With (low, high) = distribution.within(alpha) that is the law of "population error <= alpha" given the sample.
        """
        return _law_within(self, self.fit(sample), *event)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: BNS Proposition 2.26 (i)."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """Examples for uniform points labelled by a parity, any alpha in [0, 1/2); see the module."""
        arguments.real("alpha", alpha, at_least=0.0, below=0.5)
        beta = float(arguments.fraction("beta", beta))
        wrong = math.log(2**self.bits - 1) - math.log(beta)
        rate = math.log(2.0) - math.log1p(math.exp(-float(self.epsilon) / 2))
        return max(1.0, wrong / rate)

    def agnostic_sample_size(self, *, alpha: float, beta: float) -> float:
        """Examples after which error <= best + alpha with probability 1 - beta, any labels, any points.

        The mechanism is within alpha/2 of the best empirical error but for beta/2 (BNS Proposition 2.26 (ii)), and all 2^d empirical
        errors are right to alpha/4 but for beta/2 (Hoeffding): max{ (4/(a eps)) ln(2^(d+1)/b), (8/a^2) ln(2^(d+2)/b) }.
        """
        alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
        log_parities = self.bits * math.log(2.0)
        private = bounds.exponential_mechanism(log_parities, alpha / 2, beta / 2, float(self.epsilon))
        return max(private, 8 / alpha**2 * (log_parities + math.log(4 / beta)))

    def fit(self, sample: Sample) -> Sample:
        """The sample, checked and padded to its bucket.

        Raises:
          TypeError: no Sample. ValueError: more than one limb, or a point that is 2^bits or more.
        """
        return fitted(sample, Sample, bits=self.bits, limbs=(1,))

    def _law(self, sample: Sample, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        return _empirical_law(self, self.fit(sample), jnp.asarray(error, float))


def _scores(learner: Exponential, sample: Sample) -> Int[Array, "parities"]:
    """How many examples each parity labels right."""
    valid = jnp.arange(sample.rows, dtype=jnp.int32) < sample.n_valid
    signs = jnp.where(valid, 1 - 2 * sample.y, 0)
    f = jnp.zeros((1 << learner.bits,), jnp.int32).at[sample.x[:, 0].astype(jnp.int32)].add(signs, mode="drop")
    return (sample.n_valid + gf2.walsh_hadamard(f)) // 2


@jax.jit
def _run(learner: Exponential, key: Array, sample: Sample) -> Outcome:
    scores = _scores(learner, sample)
    chosen = mechanism.exponential(key, scores, epsilon=learner.epsilon)
    valid = jnp.arange(sample.rows, dtype=jnp.int32) < sample.n_valid
    fits = wide.all_below(sample.x, valid, learner.bits)
    status = jnp.where(fits, Status.OK, Status.OUTSIDE_DOMAIN)
    return Outcome.of(chosen.index.astype(jnp.uint32)[None], status, {"right": scores[chosen.index]})


@jax.jit
def _log_pmf(learner: Exponential, sample: Sample) -> Float[Array, "parities"]:
    return mechanism.log_pmf(_scores(learner, sample), epsilon=learner.epsilon)


@jax.jit
def _empirical_law(learner: Exponential, sample: Sample, error: Array) -> Float[Array, "2"]:
    wrong = sample.n_valid - _scores(learner, sample)
    return _split(_log_pmf(learner, sample), wrong.astype(float) / sample.n_valid.astype(float) <= error)


@jax.jit
def _law_within(learner: Exponential, sample: Sample, low: Array, high: Array) -> Float[Array, "2"]:
    v = jnp.arange(1 << learner.bits, dtype=jnp.uint32)
    return _split(_log_pmf(learner, sample), (low[-1] <= v) & (v < high[-1]))


def _split(log_pmf: Float[Array, "parities"], good: Bool[Array, "parities"]) -> Float[Array, "2"]:
    """(P[good], P[not])."""
    p = jnp.exp(log_pmf)
    return jnp.stack([jnp.sum(jnp.where(good, p, 0.0)), jnp.sum(jnp.where(good, 0.0, p))])


def exponential(*, bits: int, epsilon: Any) -> Exponential:
    """The exponential mechanism over all 2^bits parities.

    Args:
      bits: d, from 1 to 16: scores of all parities are held at once.
      epsilon: privacy, > 0.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for arbitrary points and labels; n is public. Not promised: protection from
    floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: bits or epsilon out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    return Exponential(epsilon=arguments.epsilon(epsilon), bits=bits)
