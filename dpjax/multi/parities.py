"""Learners of k parities at once from uniform points (MULTI §4.2.1). A hypothesis is k vectors of {0,1}^d, uint32 (k, limbs).

| factory | algorithm | privacy (REPLACE_ONE) | examples |
|---|---|---|---|
| `elimination` | Gaussian elimination on the whole sample | none | d + log2(1/beta) |
| `parity_learner` | ParityLearner (Algorithm 4) | (epsilon, delta) | (d / epsilon) ln(1/(beta delta)), for every k |

The pure learner is `dpjax.multi.direct_sum` of `dpjax.learners.parities.exponential` (Example 1): k d / epsilon, which Theorem 55
(`dpjax.bounds.pure_parities`) says is needed.

**ParityLearner.** Cut the n examples, in their order, into m = floor(n / s) subsamples of s. Eliminate each, for all k label columns at
once: it votes for the vector (v_1, ..., v_k) it determines, or for ⊥ if its points have rank below d or any column is inconsistent (noisy
labels). A_dist on the counts of votes releases the leading vector if gap + Lap(2/eps) >= 2 + (2/eps) ln(1/(2 delta)).

*Privacy.* Neighbours: one example with all its labels is replaced by any other; n is public. One vote changes, so at most one vector's
count falls by one and at most one other's rises by one: counts have sensitivity 1 and their gap 2, and A_dist with the proved constants
is (epsilon, delta)-private. Every vector is a candidate, so the runner-up of a lone vector has count 0. ⊥ never is one; if all votes are
⊥ the answer is ⊥ surely, which is within delta of its neighbours: a vector with a single vote is released with probability at most
P[Lap(2/eps) >= threshold - 1] < delta.

*Utility.* If labels are those of k parities, every subsample of full rank votes for the truth, and no other vector gets a vote. So the gap
is the number N of subsamples of full rank, N ~ Bin(m, p), p = prod_(i<d) (1 - 2^-(s-i)) for uniform points, and

    P[failure] = P[N = 0] + sum_(N>=1) P[N] P[Lap(2/eps) < threshold - N]

exactly, over points and coins: k does not occur in it. `sample_size` inverts this. *In closed form* (`theorem_sample_size`, s = d + 3, so
that p >= 7/8 as in the paper's proof): N >= 3m/4 but for beta/2 if m >= ln(2/beta) / KL(1/4 || 1/8) (Chernoff), and then A_dist fails
with probability at most beta/2 if 3m/4 >= 2 + (2/eps) ln(1/(2 delta beta)).

That is O((d / epsilon) log(1/(beta delta))) as the proof of Theorem 39 says; its statement, O(d log(1/beta) + (1/epsilon)
log(1/(beta delta))), is not what this algorithm achieves: m s >= threshold * d. (A_dist on the examples themselves, which scores every
vector by the number it labels right, would achieve it, in time 2^d.)

    >>> import jax
    >>> from dpjax.concepts import parities as concept
    >>> from dpjax.multi import parities
    >>> law = concept.uniform(bits=64, targets=concept.random_targets(jax.random.key(0), bits=64, k=100))
    >>> learner = parities.parity_learner(bits=64, k=100, epsilon=1.0, delta=1e-6, beta=0.01)
    >>> n = learner.sample_size(alpha=0.0, beta=0.01)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(2), n, n))
    >>> n, int(outcome.status), float(law.errors(outcome.hypothesis).max())
    (2590, 0, 0.0)
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32
from scipy import stats

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.bounds import stability_gap
from dpjax.concepts import parities as concept
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import gf2, wide
from dpjax.mechanisms import stability
from dpjax.mechanisms.stability import Stability

CALIBRATIONS = ("printed", "proved")
# How many rows beyond d a subsample may have: with 40 it has full rank but for 2^-40, and more never pays.
_SPARE_ROWS = 40
MAX_PMF_BITS = 12


class Leading(NamedTuple):
    """The only vector that can be released given a sample: the law of one run, as far as the sample decides it.

    Attributes:
      hypothesis: k parities; arbitrary if log_p is -inf.
      log_p, log_q: ln P[it is released], ln P[⊥].
      info: counts on the way.
    """

    hypothesis: UInt32[Array, "k limbs"]
    log_p: Float[Array, ""]
    log_q: Float[Array, ""]
    info: dict[str, Array]


class _Learner:
    """What the two learners share: entry points that check and pad."""

    bits: int
    k: int

    def __call__(self, key: Array, sample: MultiSample) -> Outcome:
        """One run on a sample.

        Args:
          key: PRNG key.
          sample: k-labelled examples, x of shape (rows, limbs of `bits` bits).

        Returns:
          An `Outcome`: `hypothesis` the k parities, uint32 (k, limbs), zeros unless released; `status` a `Status` code; `info` a dict of
          counts (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit (as far as it is not traced).
        """
        return _run(self, key, self.fit(sample))

    def _leading(self, sample: MultiSample) -> "Leading":
        """The only vector that can be released, and how likely it is."""
        raise NotImplementedError

    def predict(self, hypothesis: UInt32[Array, "k limbs"], x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """The labels that k parities give to points."""
        return concept.predict(hypothesis, x)

    def uniform_failure(self, n: int) -> float:
        """P[some of k parities is not identified] with n uniform examples."""
        raise NotImplementedError

    def population_failure(self, key: Array, sample: MultiSample, distribution: Any, alpha: Any) -> Float[Array, ""]:
        """P[some population error > alpha, or bottom | sample] over the coins, exactly, for `pac.failure`; the key plays no part."""
        leading = self._leading(self.fit(sample))
        good = jnp.all(distribution.errors(leading.hypothesis) <= jnp.asarray(alpha, float))
        return jnp.where(good, jnp.exp(leading.log_q), 1.0)

    def fit(self, sample: MultiSample) -> MultiSample:
        """The sample, checked and padded to its bucket.

        Raises:
          TypeError: no MultiSample. ValueError: another k, other limbs, or a point outside {0,1}^d.
        """
        return fitted(sample, MultiSample, bits=self.bits, limbs=(wide.limbs_for(self.bits),), k=self.k)


@jax.jit
def _run(learner: _Learner, key: Array, sample: MultiSample) -> Outcome:
    leading = learner._leading(sample)
    released = random.bernoulli(key, leading.log_p, leading.log_q)
    status = jnp.where(released, Status.OK, Status.BOTTOM)
    fits = wide.all_below(sample.x, sample.valid, learner.bits)
    return Outcome.of(leading.hypothesis, jnp.where(fits, status, Status.OUTSIDE_DOMAIN), leading.info)


def _parities(unknowns: UInt32[Array, "d words"], k: int) -> UInt32[Array, "k limbs"]:
    """Solutions of d unknowns and k right-hand sides as k wide numbers."""
    return gf2.transpose(unknowns, k)[:, ::-1]


def _check_alpha_beta(alpha: float, beta: float) -> None:
    """Errors are 0 or 1/2, so every alpha in [0, 1/2) asks for the same."""
    arguments.real("alpha", alpha, at_least=0.0, below=0.5)
    arguments.fraction("beta", beta)


# ---------------------------------------------------------------------------------------------------- ParityLearner


class Votes(NamedTuple):
    """The subsamples' votes, as stage of the sampler and of the law.

    Attributes:
      counts: at the first subsample that votes for a vector, how many do; 0 at all others.
      vectors: what each subsample votes for: row c of a vector holds bit c of its k parities, packed.
    """

    counts: Int[Array, "m"]
    vectors: UInt32[Array, "m d words"]

    def leader(self) -> tuple[Int[Array, ""], Float[Array, ""]]:
        """(place of the leading vector, gap to the next); a vector that nobody votes for has count 0."""
        best, gap = stability.leader(jnp.append(self.counts, 0))
        return best.index, gap


@frozen
class ParityLearner(_Learner):
    """ParityLearner (MULTI Algorithm 4); build it by `parity_learner`.

    Attributes:
      epsilon, delta: privacy of A_dist, which is that of the learner.
      bits: d. k: number of concepts. size: s, examples a subsample. calibration: constants of A_dist (all static).
    """

    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    bits: int = static()
    k: int = static()
    size: int = static()
    calibration: str = static()

    def success_probability(self, sample: MultiSample, *, error: Any) -> Float[Array, ""]:
        """P[every one of the k empirical errors <= error] over the coins, exactly; bottom is a failure.

        Given the sample the learner answers one vector, the leader, or ⊥. Differentiable in epsilon and delta.
        """
        return self._law(sample, error)[0]

    def failure_probability(self, sample: MultiSample, *, error: Any) -> Float[Array, ""]:
        """P[some empirical error > error, or bottom], right however small."""
        return self._law(sample, error)[1]

    def _law(self, sample: MultiSample, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        return _law_of_errors(self, self.fit(sample), jnp.asarray(error, float))

    def pmf(self, sample: MultiSample) -> Float[Array, "outcomes"]:
        """P[(v_1, ..., v_k)] in the order of v_1 + v_2 2^d + ..., then P[bottom]: for the exact verifier, k d <= 12.

        Raises:
          ValueError: more outcomes than that.
        """
        arguments.integer("k * bits", self.k * self.bits, at_least=1, at_most=MAX_PMF_BITS)
        return _pmf(self, self.fit(sample))

    def guarantee(self) -> Guarantee:
        """That of A_dist: (epsilon, delta) for "proved"; "printed" keeps (2 epsilon, exp(2 epsilon) delta / 2)."""
        return self._mechanism().guarantee()

    def claimed_guarantee(self) -> Guarantee:
        """What the paper claims, (epsilon, delta); false for "printed"."""
        return self._mechanism().claimed_guarantee()

    def uniform_failure(self, n: int) -> float:
        """P[some of k parities is not identified] with n uniform examples, exactly, over examples and coins; for any k and any targets."""
        n = arguments.integer("n", n, at_least=1)
        return _failure(n // self.size, self.size, self.bits, *self._noise())

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n from which on `uniform_failure` <= beta; a multiple of s, the same for every k and every alpha < 1/2."""
        _check_alpha_beta(alpha, beta)
        return self.size * _least_votes(beta, self.size, self.bits, *self._noise())

    def _mechanism(self) -> Stability:
        return stability.mechanism(epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)

    def _noise(self) -> tuple[float, float]:
        return _noise(float(self.epsilon), float(self.delta), self.calibration)

    def _votes(self, sample: MultiSample) -> Votes:
        """Stage 1: every subsample's vote."""
        places = max(1, sample.rows // self.size)
        missing = max(0, places * self.size - sample.rows)
        x, y = (jnp.pad(part, ((0, missing), (0, 0))) for part in (sample.x[:, ::-1], sample.y))

        def vote(t: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            vectors, usable = state
            a, b = (lax.dynamic_slice_in_dim(part, t * self.size, self.size) for part in (x, y))
            solved = gf2.solve(a, b, columns=self.bits)
            determined = (solved.rank == self.bits) & solved.consistent
            return vectors.at[t].set(solved.unknowns), usable.at[t].set(determined)

        # One after the other: a subsample stays in cache, and those past n cost nothing.
        start = (jnp.zeros((places, self.bits, y.shape[1]), jnp.uint32), jnp.zeros((places,), bool))
        vectors, usable = lax.fori_loop(0, sample.n_valid // self.size, vote, start)
        return Votes(counts=_count_equal(vectors, usable), vectors=vectors)

    def _leading(self, sample: MultiSample) -> Leading:
        """Stage 2: A_dist on the counts."""
        votes = self._votes(sample)
        best, gap = votes.leader()
        log_p, log_q = stability.log_keep(gap, epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)
        seen = votes.counts[best] > 0
        return Leading(
            hypothesis=_parities(votes.vectors[best], self.k),
            log_p=jnp.where(seen, log_p, -jnp.inf),
            log_q=jnp.where(seen, log_q, 0.0),
            info={
                "subsamples": sample.n_valid // self.size,
                "votes": jnp.sum(votes.counts),
                "leading": votes.counts[best],
            },
        )


def _count_equal(vectors: UInt32[Array, "m d words"], usable: Bool[Array, "m"]) -> Int[Array, "m"]:
    """How many usable vectors equal each one that is the first of its kind, 0 elsewhere; as many passes as there are kinds."""

    def count(state: tuple[Array, Array]) -> tuple[Array, Array]:
        left, counts = state
        first = jnp.argmax(left)
        same = left & jnp.all(vectors == vectors[first][None], axis=(1, 2))
        return left & ~same, counts.at[first].set(jnp.sum(same, dtype=jnp.int32))

    start = (usable, jnp.zeros(usable.shape, jnp.int32))
    return lax.while_loop(lambda state: jnp.any(state[0]), count, start)[1]


@jax.jit
def _law_of_errors(learner: ParityLearner, sample: MultiSample, error: Array) -> Float[Array, "2"]:
    leading = learner._leading(sample)
    wrong = packed.unpack(gf2.product(sample.x, leading.hypothesis) ^ sample.y, learner.k) & sample.valid[:, None]
    errors = jnp.sum(wrong, axis=0, dtype=jnp.int32).astype(float) / sample.n_valid.astype(float)
    law = jnp.exp(jnp.stack([leading.log_p, leading.log_q]))
    return jnp.where(jnp.all(errors <= error), law, jnp.asarray([0.0, 1.0]))


@jax.jit
def _pmf(learner: ParityLearner, sample: MultiSample) -> Float[Array, "outcomes"]:
    leading = learner._leading(sample)
    shifts = learner.bits * jnp.arange(learner.k, dtype=jnp.int32)
    place = jnp.sum(leading.hypothesis[:, 0].astype(jnp.int32) << shifts)
    vectors = 1 << (learner.k * learner.bits)
    return jnp.zeros((vectors + 1,)).at[place].set(jnp.exp(leading.log_p)).at[vectors].set(jnp.exp(leading.log_q))


# ------------------------------------------------------------------------------------- how many examples: host float64


def _noise(epsilon: float, delta: float, calibration: str) -> tuple[float, float]:
    """(scale, threshold) of A_dist on the host."""
    if calibration == "printed":
        return 1 / epsilon, -math.log(delta) / epsilon
    return 2 / epsilon, 2 - 2 / epsilon * math.log(2 * delta)


def _failure(m: int, size: int, bits: int, scale: float, threshold: float) -> float:
    """P[the truth is not released] from m subsamples of uniform points; see the module."""
    votes = np.arange(m + 1)
    weights = stats.binom.pmf(votes, m, 1 - gf2.rank_deficiency(size, bits))
    kept_not = stats.laplace.cdf((threshold - votes) / scale)
    kept_not[0] = 1.0
    return min(1.0, math.fsum(weights * kept_not))


def _least_votes(beta: float, size: int, bits: int, scale: float, threshold: float) -> int:
    """Least m with `_failure` <= beta; it falls in m, since the number of votes rises stochastically."""
    failure = functools.partial(_failure, size=size, bits=bits, scale=scale, threshold=threshold)
    high = 1
    while failure(high) > beta:
        high *= 2
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(middle) <= beta else (middle, high)
    return high


def best_size(*, bits: int, epsilon: float, delta: float, beta: float, calibration: str = "proved") -> int:
    """The s from d to d + 40 for which the fewest examples suffice: more rows a subsample, or more subsamples.

    >>> best_size(bits=256, epsilon=1.0, delta=1e-6, beta=0.1)
    263
    """
    noise = _noise(float(epsilon), float(delta), calibration)
    return min(
        range(bits, bits + _SPARE_ROWS + 1), key=lambda size: size * _least_votes(float(beta), size, bits, *noise)
    )


def theorem_sample_size(*, bits: int, epsilon: float, delta: float, beta: float) -> int:
    """Examples that suffice by Theorem 39's proof with its constants worked out, for s = bits + 3; see the module.

    (d + 3) max{ ln(2/beta) / KL(1/4 || 1/8), (4/3) (2 + (2/eps) (ln(1/(2 delta)) + max(0, ln(1/beta)))) }, each rounded up.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> theorem_sample_size(bits=256, epsilon=1.0, delta=1e-6, beta=0.1)
    13468
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MAX_BITS)
    beta = float(arguments.fraction("beta", beta))
    divergence = 0.25 * math.log(2.0) + 0.75 * math.log(0.75 / 0.875)
    seen = math.log(2 / beta) / divergence
    gap = stability_gap(beta / 2, float(epsilon), float(delta), calibration="proved")
    return (bits + 3) * math.ceil(max(seen, 4 / 3 * gap))


def parity_learner(
    *,
    bits: int,
    k: int,
    epsilon: Any,
    delta: Any,
    beta: float = 0.1,
    size: int | None = None,
    calibration: str = "proved",
) -> ParityLearner:
    """ParityLearner (MULTI Algorithm 4, Theorem 39).

    Args:
      bits: d, from 1 to 1024.
      k: number of concepts, >= 1.
      epsilon: privacy, > 0.
      delta: privacy, in (0, 1), at most 1/2 for "proved".
      beta: failure probability at which `size` is to be best; no part of the privacy.
      size: s, examples a subsample, >= bits; default the best for epsilon, delta and beta.
      calibration: constants of A_dist; "printed" is the paper's, which does not keep its claim.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE ("proved"), for arbitrary points and labels; n is public. Not promised:
    protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range; no size while epsilon or delta is traced.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MAX_BITS)
    k = arguments.integer("k", k, at_least=1)
    arguments.choice("calibration", calibration, CALIBRATIONS)
    bound = stability.mechanism(epsilon=epsilon, delta=delta, calibration=calibration)
    if size is None:
        if arguments.is_traced(epsilon) or arguments.is_traced(delta):
            raise ValueError("size must be given when epsilon or delta is traced: it is a shape")
        beta = float(arguments.fraction("beta", beta))
        size = best_size(bits=bits, epsilon=epsilon, delta=delta, beta=beta, calibration=calibration)
    size = arguments.integer("size", size, at_least=bits)
    return ParityLearner(epsilon=bound.epsilon, delta=bound.delta, bits=bits, k=k, size=size, calibration=calibration)


# --------------------------------------------------------------------------------------------- non-private baseline


@frozen
class Elimination(_Learner):
    """Non-private baseline: the k parities consistent with all examples; ⊥ if there are none, or more than one."""

    bits: int = static()
    k: int = static()

    def _leading(self, sample: MultiSample) -> Leading:
        solved = gf2.solve(sample.x[:, ::-1], sample.y, columns=self.bits, n_valid=sample.n_valid)
        determined = (solved.rank == self.bits) & solved.consistent
        return Leading(
            hypothesis=_parities(solved.unknowns, self.k),
            log_p=jnp.where(determined, 0.0, -jnp.inf),
            log_q=jnp.where(determined, -jnp.inf, 0.0),
            info={"rank": solved.rank, "consistent": solved.consistent},
        )

    def guarantee(self) -> Guarantee:
        """None to speak of: epsilon is infinite."""
        return Guarantee(math.inf, 1.0, REPLACE_ONE)

    def uniform_failure(self, n: int) -> float:
        """P[n uniform points do not span]: exactly what can go wrong."""
        return gf2.rank_deficiency(arguments.integer("n", n, at_least=1), self.bits)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n with `uniform_failure` <= beta, at most d + ceil(log2(1/beta)); the same for every k and every alpha < 1/2."""
        _check_alpha_beta(alpha, beta)
        return next(n for n in range(self.bits, self.bits + 1100) if self.uniform_failure(n) <= beta)


def elimination(*, bits: int, k: int) -> Elimination:
    """The non-private baseline for k parities of d = bits, 1 <= bits <= 1024.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=concept.MAX_BITS)
    return Elimination(bits=bits, k=arguments.integer("k", k, at_least=1))
