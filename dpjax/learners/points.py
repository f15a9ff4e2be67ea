"""Learners of points c_j(x) = 1 iff x = j over X_d = {0, ..., 2^d - 1}.

| factory | algorithm | hypothesis | privacy (REPLACE_ONE) | examples |
|---|---|---|---|---|
| `learn_points` | LearnPoints (BNS §3.1) | a point (or all-zero) | (epsilon, delta) | ln(1/(beta delta)) / (alpha epsilon) |
| `exponential` | exponential mechanism over POINT_d | a point | (epsilon, 0) | (d + ln(1/beta)) / (alpha epsilon) |
| `hashed` | the same over the buckets of a hash | a bucket, or all-zero | (epsilon, 0) | ln(1/(alpha beta)) / (alpha epsilon) |

Neighbours: one example (x, y) is replaced by any other, labels arbitrary; the number of examples is public. A learner sees its sample
as counts: per distinct point the ones and the zeros. Points that were not seen enter as one group, of 2^d - #seen members, so the law
of the hypothesis is exact and costs one sort for any d: a vector (all-zero, all unseen points together, seen point 0, 1, ...).

**LearnPoints.** q(x) counts (x, 1). A replaced example changes at most two counts, by one each, and when it moves from the leader
to another point the gap changes by 2: no calibration of A_dist for gaps of sensitivity 1 is private here ((2,0) against (1,1)), and
"proved" (`dpjax.mechanisms.stability`) is the general one; "printed" is (2 epsilon, exp(2 epsilon) delta / 2). The second best count is
0 when one point only has ones: d >= 1, so there is another point. Without any one all points tie; then the answer is ⊥, surely. That
is private too: a neighbour has one one at most, hence a gap <= 1, and is kept with probability at most delta (for printed constants:
at most what their guarantee says), and the other way 1 - (1 - delta) = delta. ⊥ is replaced by a random point (the paper) or by
all-zero (Remark 3.3): a run always has a hypothesis, and its status is OK; info says "bottom".

The proof of Lemma 3.2 says that after ⊥ a random c_i is bad only if D(i) > alpha. But error(c_i) = D(i) + D(target): with D(target) = alpha
and the rest spread out, every other point is bad. Splitting at D(target) > alpha/2 instead repairs it: at most 2/alpha points have
D(i) > alpha/2, so 2^d >= 2/(alpha beta) is asked for, and the printed m is still enough (Chernoff: at least alpha m / 8 of alpha m / 2
expected ones are seen but for exp(-(9/32) alpha m / 2) <= exp(-alpha m / 8), and alpha m / 8 >= (1/epsilon) ln(4/(beta delta))).

**Exponential mechanism.** q(h) = number of correctly labelled examples, P[h] ∝ exp(epsilon q(h) / 2). For the sample size there is no need
of uniform convergence. Let h* be in the class with error at most gamma alpha on D, and h have error > alpha. For any l <= epsilon/2,
    E[P[h]] <= E[exp(-l (q(h*) - q(h)))] <= exp(-n alpha r),  r = 1 - exp(-l) - gamma (exp(l) - 1),
since one example adds 1 to q(h*) - q(h) with probability a, subtracts 1 with probability b, a - b > (1 - gamma) alpha, b <= gamma alpha,
and the worst case is b = gamma alpha. So n >= (ln|H| + ln(1/beta)) / (alpha r) suffices: gamma = 0 if the target is in the class.

**Hashing.** A random affine map x -> A x + b over GF(2) into X_m is pairwise independent, and drawn without looking at the data: given
it, the learner is the exponential mechanism on X_m, all-zero included. The target's bucket has error D(others in it), 2^-m on average:
above alpha/8 with probability at most 2^-m 8/alpha <= beta/2 for 2^m >= 16/(alpha beta). Seen buckets only are looked at, so the
dependence on beta costs nothing but a logarithm.

    >>> import jax
    >>> from dpjax.concepts import points as concept
    >>> from dpjax.learners import points
    >>> law = concept.point_masses(bits=24, points=[5, 2**20], masses=[0.7, 0.3], target=2**20)
    >>> learner = points.learn_points(bits=24, epsilon=1.0, delta=1e-6)
    >>> n = round(learner.sample_size(alpha=0.1, beta=0.1))
    >>> sample = law.sample(jax.random.key(0), n, n)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> float(law.error(outcome.hypothesis)), round(float(learner.success_probability(sample, error=0.1)), 6)
    (0.0, 1.0)
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts.points import Point
from dpjax.core import arguments, logspace, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.data.sample import Sample
from dpjax.domains import gf2, groups, wide
from dpjax.mechanisms import exponential as em
from dpjax.mechanisms import stability

BOTTOMS = ("random", "zero")
CALIBRATIONS = ("printed", "proved")
_GAMMA = 1 / 8  # what part of alpha the target's bucket may lose to other points
_LN2 = math.log(2.0)

T = TypeVar("T")


# ------------------------------------------------------------------------------------------------------- what is seen


class Seen(NamedTuple):
    """A labelled sample of X_bits, counted.

    Attributes:
      points: the distinct points, increasing, first.
      valid: which of them exist.
      ones, zeros: how often each occurs with either label.
      unseen: how many points of X_bits do not occur, one limb more.
      n: number of examples.
    """

    points: UInt32[Array, "m limbs"]
    valid: Bool[Array, "m"]
    ones: Int[Array, "m"]
    zeros: Int[Array, "m"]
    unseen: UInt32[Array, "more"]
    n: Int[Array, ""]

    def wrong(self) -> Int[Array, "entries"]:
        """How many examples each hypothesis errs on: all-zero, any unseen point, seen points."""
        ones = jnp.sum(self.ones, dtype=jnp.int32)
        return jnp.concatenate([jnp.stack([ones, ones]), ones - self.ones + self.zeros])

    def log_unseen(self) -> Float[Array, ""]:
        """ln of the number of unseen points; -inf if there is none."""
        return wide.log(self.unseen)


def counted(sample: Sample, bits: Int[Array, ""], then: Callable[[Seen], T], among: Bool[Array, "n"]) -> T:
    """then(the valid examples `among` a sample of X_bits, counted), for a function whose result does not depend on the number of slots."""

    def see(found: groups.Groups) -> T:
        ones = found.sums(sample.y)
        limbs = sample.x.shape[1] + 1
        size = wide.from_uint32(found.size.astype(jnp.uint32), limbs)
        unseen = wide.subtract(wide.power_of_two(bits, limbs), size)
        return then(Seen(found.rows, found.valid, ones, found.counts - ones, unseen, sample.n_valid))

    return groups.grouped(sample.x, _valid(sample) & among, see)


def _valid(sample: Sample) -> Bool[Array, "n"]:
    """Which rows count."""
    return jnp.arange(sample.rows, dtype=jnp.int32) < sample.n_valid


def unseen_point(key: Array, seen: Seen) -> UInt32[Array, "limbs"]:
    """Uniform among the points that do not occur: the r-th of them, r uniform.

    Below seen point s_i (from 0) there are s_i - i unseen ones, so the r-th unseen point is r + #{i: s_i - i <= r}.
    """
    m, limbs = seen.points.shape
    rank = wide.uniform(key, seen.unseen)
    index = wide.from_uint32(jnp.arange(m, dtype=jnp.uint32), limbs + 1)
    below = wide.subtract(wide.resize(seen.points, limbs + 1), index)
    passed = jnp.sum(seen.valid & wide.less_equal(below, rank[None]), dtype=jnp.uint32)
    return wide.resize(wide.add(rank, wide.from_uint32(passed, limbs + 1)), limbs)


def _named(key: Array, seen: Seen, index: Int[Array, ""]) -> Point:
    """The hypothesis of an entry of the law."""
    seen_point = seen.points[jnp.maximum(index - 2, 0)]
    position = wide.select(index == 1, unseen_point(key, seen), seen_point)
    return Point(position=position, zero=index == 0)


# ------------------------------------------------------------------------------------------------------ entry points


class _Fitting:
    """What fits a learner's domain."""

    bits: Any
    limbs: int

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows"]:
        """The labels that the hypothesis gives to points."""
        return hypothesis.predict(x)

    def fit(self, sample: Sample) -> Sample:
        """The sample, checked and padded to its bucket."""
        return fitted(sample, Sample, bits=self.bits, limbs=(self.limbs,), any_rows=True)


class PointLearner(_Fitting):
    """What the learners share: checked, padded and compiled entry points around `_draw` and `log_law`."""

    def _draw(self, key: Array, seen: Seen) -> tuple[Any, Any]:
        """One run: (hypothesis, info)."""
        raise NotImplementedError

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        """ln P of the all-zero hypothesis, of all unseen points together (uniform among them), of each seen point."""
        raise NotImplementedError

    def drawn_from(self, sample: Sample) -> Bool[Array, "n"]:
        """Which examples a run may have to look at; laws look at all."""
        return _valid(sample)

    def counted(self, sample: Sample, then: Callable[[Seen], T], among: Bool[Array, "n"]) -> T:
        """then(what is seen of these examples)."""
        return counted(sample, self.bits, then, among)

    def __call__(self, key: Array, sample: Sample) -> Outcome:
        """One run on a sample.

        Args:
          key: PRNG key.
          sample: labelled examples, x of shape (rows, limbs of `bits` bits).

        Returns:
          An `Outcome`; `hypothesis` has `predict(x)`; `info` is what was chosen on the way (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit the domain (as far as it is not traced).
        """
        return _run(self, key, self.fit(sample))

    def success_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error <= error] over the learner's coins, exactly (given the hash, where there is one)."""
        return self._empirical(sample, error)[0]

    def failure_probability(self, sample: Sample, *, error: Any) -> Float[Array, ""]:
        """P[empirical error > error], as a sum of positive terms."""
        return self._empirical(sample, error)[1]

    def pmf(self, sample: Sample) -> Float[Array, "outcomes"]:
        """P[c_j] for j = 0, ..., 2^bits - 1, then P[all-zero]: for the exact verifier on small domains (bits <= 12)."""
        return _pmf(self, self.fit(sample), 1 << arguments.integer("bits", int(self.bits), at_least=1, at_most=12))

    def _empirical(self, sample: Sample, error: Any) -> Float[Array, "2"]:
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        return _empirical_law(self, self.fit(sample), jnp.asarray(error, float))


@jax.jit
def _run(learner: PointLearner, key: Array, sample: Sample) -> Outcome:
    # A clone: the same coins whichever way the sample is counted.
    draw = lambda seen: learner._draw(jax.random.clone(key), seen)  # noqa: E731
    hypothesis, info = learner.counted(sample, draw, learner.drawn_from(sample))
    valid = _valid(sample)
    labelled = jnp.all(~valid | (sample.y == 0) | (sample.y == 1))
    fits = labelled & wide.all_below(sample.x, valid, learner.bits)
    status = jnp.where(fits, Status.OK, Status.OUTSIDE_DOMAIN).astype(jnp.int32)
    return Outcome.of(hypothesis, status, info)


@jax.jit
def _empirical_law(learner: PointLearner, sample: Sample, error: Array) -> Array:
    def split(seen: Seen) -> Array:
        good = seen.wrong().astype(float) / seen.n.astype(float) <= error
        law = learner.log_law(seen)
        return jnp.stack([logspace.logsumexp(jnp.where(part, law, -jnp.inf)) for part in (good, ~good)])

    return jnp.exp(learner.counted(sample, split, _valid(sample)))


@jax.jit(static_argnums=2)
def _pmf(learner: PointLearner, sample: Sample, points: int) -> Array:
    def spread(seen: Seen) -> Array:
        law = jnp.exp(learner.log_law(seen))
        share = jnp.where(wide.is_zero(seen.unseen), 0.0, law[1] * jnp.exp(-jnp.maximum(seen.log_unseen(), 0.0)))
        place = jnp.where(seen.valid, seen.points[:, -1].astype(jnp.int32), points)
        return jnp.append(jnp.full((points,), share).at[place].set(law[2:], mode="drop"), law[0])

    return learner.counted(sample, spread, _valid(sample))


# ------------------------------------------------------------------------------------------------------- LearnPoints


@frozen
class LearnPoints(PointLearner):
    """A_dist on the counts of (x, 1) (BNS §3.1); build it by `learn_points`."""

    bits: Int[Array, ""]
    epsilon: Any
    delta: Any
    limbs: int = static()
    calibration: str = static()
    bottom: str = static()

    def drawn_from(self, sample: Sample) -> Bool[Array, "n"]:
        return sample.y == 1

    def leader(self, seen: Seen) -> tuple[Int[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """(the point with most ones, ln P[kept], ln P[⊥]); the lowest point on ties."""
        best = jnp.max(seen.ones)
        index = jnp.argmax(seen.ones).astype(jnp.int32)
        second = jnp.max(seen.ones.at[index].set(0))  # 0: some point has no one
        log_p, log_q = stability.log_keep(
            best - second, epsilon=self.epsilon, delta=self.delta, calibration=self.calibration
        )
        return index, jnp.where(best > 0, log_p, -jnp.inf), jnp.where(best > 0, log_q, 0.0)

    def _draw(self, key: Array, seen: Seen) -> tuple[Point, Any]:
        key_test, key_point = jax.random.split(key)
        index, log_p, log_q = self.leader(seen)
        kept = random.bernoulli(key_test, log_p, log_q)
        position = seen.points[index]
        if self.bottom == "random":
            position = wide.select(kept, position, wide.random_bits(key_point, self.bits, self.limbs))
        zero = ~kept if self.bottom == "zero" else jnp.bool_(False)
        return Point(position=position, zero=zero), {"bottom": ~kept, "leader": seen.points[index]}

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        index, log_p, log_q = self.leader(seen)
        chosen = jnp.where(jnp.arange(seen.ones.shape[0], dtype=jnp.int32) == index, log_p, -jnp.inf)
        nothing = jnp.float32(-jnp.inf).astype(log_q.dtype)
        if self.bottom == "zero":
            return jnp.concatenate([jnp.stack([log_q, nothing]), chosen])
        each = log_q - self.bits.astype(float) * _LN2
        mixed = logspace.logaddexp(chosen, jnp.full_like(chosen, each))
        rest = jnp.stack([nothing, each + seen.log_unseen()])
        return jnp.concatenate([rest, jnp.where(seen.valid, mixed, -jnp.inf)])

    def guarantee(self) -> Guarantee:
        """That of A_dist for these constants."""
        return self._test().guarantee()

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta), which the paper claims; false for "printed"."""
        return self._test().claimed_guarantee()

    def _test(self) -> stability.Stability:
        return stability.Stability.create(epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """Lemma 3.2 as repaired in the module: at alpha/2 for proved constants and random points, else at alpha.

        Raises:
          ValueError: random points and 2^bits < 2/(alpha beta).
        """
        bits, epsilon, delta = int(self.bits), float(self.epsilon), float(self.delta)
        if self.bottom == "zero":
            least = math.ceil(-math.log2(alpha * beta))  # nothing random, so any domain will do
            return bounds.learn_points(max(bits, least), alpha, beta, epsilon, delta, calibration=self.calibration)
        if bits < 1 - math.log2(alpha * beta):
            raise ValueError(f"bits must be >= log2(2/(alpha beta)) for random points after bottom, got {bits}")
        part = alpha if self.calibration == "printed" else alpha / 2
        return bounds.learn_points(bits, part, beta, epsilon, delta, calibration=self.calibration)


def learn_points(
    *, bits: int, epsilon: Any, delta: Any, calibration: str = "proved", bottom: str = "random"
) -> LearnPoints:
    """LearnPoints (BNS §3.1).

    Formal guarantees: "proved" (epsilon, delta), "printed" (2 epsilon, exp(2 epsilon) delta / 2), under REPLACE_ONE. Not promised:
    floating-point side channels; a cryptographic generator.

    Args:
      bits: d.
      epsilon: > 0. delta: in (0, 1), at most 1/2 if proved.
      calibration: "proved" or "printed" constants of A_dist.
      bottom: what ⊥ becomes: a "random" point (proper) or "zero".

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = _bits(bits)
    arguments.choice("calibration", calibration, CALIBRATIONS)
    test = stability.Stability.create(epsilon=epsilon, delta=delta, calibration=calibration)
    return LearnPoints(
        bits=jnp.int32(bits),
        epsilon=test.epsilon,
        delta=test.delta,
        limbs=wide.limbs_for(bits),
        calibration=calibration,
        bottom=arguments.choice("bottom", bottom, BOTTOMS),
    )


# ---------------------------------------------------------------------------------------------- exponential mechanism


def _log_weights(seen: Seen, epsilon: Any, zero: bool) -> Float[Array, "entries"]:
    """ln of the unnormalised weights exp(epsilon q / 2), unseen points as one group; all-zero only if `zero`."""
    there = jnp.concatenate([jnp.stack([jnp.bool_(zero), ~wide.is_zero(seen.unseen)]), seen.valid])
    # Entries before the seen points only: padding must not move any.
    measure = jnp.zeros(there.shape, float).at[1].set(seen.log_unseen())
    return em.log_weights(-seen.wrong(), epsilon=epsilon, log_measure=measure, where=there)


@frozen
class Exponential(PointLearner):
    """The exponential mechanism over POINT_d, or over the buckets X_d of a hash with all-zero; build it by `exponential`."""

    bits: Int[Array, ""]
    epsilon: Any
    limbs: int = static()
    zero: bool = static(default=False)

    def _draw(self, key: Array, seen: Seen) -> tuple[Point, Any]:
        key_choice, key_point = jax.random.split(key)
        index = em.draw(key_choice, _log_weights(seen, self.epsilon, self.zero)).index
        return _named(key_point, seen, index), {"unseen": index == 1}

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        weights = _log_weights(seen, self.epsilon, self.zero)
        return weights - logspace.logsumexp(weights)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: q has sensitivity 1 (BNS Proposition 2.26 (i))."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """(d ln 2 + ln(1/beta)) / (alpha (1 - exp(-epsilon/2))) for targets in POINT_d; derived in the module."""
        return _exponential_size(int(self.bits) * _LN2, alpha, beta, float(self.epsilon), 0.0)


def exponential(*, bits: int, epsilon: Any) -> Exponential:
    """The exponential mechanism over all 2^d points: the proper pure learner.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE. Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = _bits(bits)
    return Exponential(bits=jnp.int32(bits), epsilon=arguments.epsilon(epsilon), limbs=wide.limbs_for(bits))


def _exponential_size(log_hypotheses: float, alpha: float, beta: float, epsilon: float, gamma: float) -> float:
    """(ln|H| + ln(1/beta)) / (alpha r), r the largest 1 - exp(-l) - gamma (exp(l) - 1) for l <= epsilon/2."""
    alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
    rate = epsilon / 2 if gamma == 0.0 else min(epsilon / 2, -math.log(gamma) / 2)
    gain = -math.expm1(-rate) - gamma * math.expm1(rate)
    return (log_hypotheses - math.log(beta)) / (alpha * gain)


# ------------------------------------------------------------------------------------------------------------ hashing


@frozen
class Hash:
    """x -> A x + b over GF(2), from X_d to X_m, m <= 32.

    Attributes:
      rows: A, packed like points: bit i of the result (from the least) is the parity of x & rows[i].
      shift: b.
    """

    rows: UInt32[Array, "*k m limbs"]
    shift: UInt32[Array, "*k"]

    def __call__(self, x: UInt32[Array, "n limbs"]) -> UInt32[Array, "n 1"]:
        """The buckets of points."""
        return gf2.product(x, self.rows) ^ self.shift[None, None]


@frozen
class Bucket:
    """The hypothesis "x hashes to this bucket", or all-zero; k of them, each with its hash, where `zero` has an axis of k."""

    hash: Hash
    bucket: UInt32[Array, "*k 1"]
    zero: Bool[Array, "*k"]

    def predict(self, x: UInt32[Array, "rows more"]) -> Bool[Array, "rows *k"]:
        """The labels of points: shape (rows,), or (rows, k)."""
        if self.zero.ndim:
            return jax.vmap(lambda one: one.predict(x), out_axes=-1)(self)
        x = wide.resize(x, self.hash.rows.shape[1])
        return wide.equal(self.hash(x), self.bucket[None]) & ~self.zero

    def share(self, bits: Int[Array, ""]) -> Float[Array, "*k"]:
        """The share of X_bits in the bucket: 2^-rank(A) if A x = bucket - b has a solution, else 0."""
        if self.zero.ndim:
            return jax.vmap(lambda one: one.share(bits))(self)
        m, limbs = self.hash.rows.shape
        right = packed.unpack(self.bucket ^ self.hash.shift[None], m)[:, None].astype(jnp.uint32)
        solved = gf2.solve(self.hash.rows, right, columns=32 * limbs)
        return jnp.where(solved.consistent & ~self.zero, jnp.exp2(-solved.rank.astype(float)), 0.0)


@frozen
class Hashed(_Fitting):
    """The improper pure learner: hash, then the exponential mechanism over buckets and all-zero; build it by `hashed`."""

    bits: Int[Array, ""]
    epsilon: Any
    limbs: int = static()
    buckets: int = static()

    def hash(self, key: Array) -> Hash:
        """A random hash; nothing of the data enters."""
        key_rows, key_shift = jax.random.split(key)
        words = jax.random.bits(key_rows, (self.buckets, self.limbs), jnp.uint32)
        one = wide.from_uint32(jnp.uint32(1), self.limbs)
        digits = wide.subtract(wide.power_of_two(self.bits, self.limbs), one)
        shift = wide.random_bits(key_shift, jnp.int32(self.buckets), 1)[0]
        return Hash(rows=words & digits[None], shift=shift)

    def given(self, hash: Hash) -> "Given":
        """The learner with this hash, which has an exact law."""
        return Given(bits=self.bits, epsilon=self.epsilon, hash=hash, limbs=self.limbs, buckets=self.buckets)

    def __call__(self, key: Array, sample: Sample) -> Outcome:
        """One run on a sample; see `PointLearner`. `hypothesis` is a `Bucket`, `info` says whether it was an unseen one."""
        key_hash, key_choice = jax.random.split(key)
        return self.given(self.hash(key_hash))(key_choice, sample)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE: so for every hash."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> float:
        """(ln(2^m + 1) + ln(2/beta)) / (alpha r), gamma = 1/8; derived in the module. Targets may be all-zero.

        Raises:
          ValueError: too few buckets for this alpha and beta: 2^m < 16/(alpha beta).
        """
        needed = _buckets(alpha, beta)
        if self.buckets < needed:
            raise ValueError(f"2^buckets must be >= 16/(alpha beta), buckets >= {needed}, got {self.buckets}")
        hypotheses = math.log(2.0**self.buckets + 1)
        return _exponential_size(hypotheses, alpha, beta / 2, float(self.epsilon), _GAMMA)


@frozen
class Given(PointLearner):
    """`Hashed` with its hash drawn: the exponential mechanism on hashed points."""

    bits: Int[Array, ""]
    epsilon: Any
    hash: Hash
    limbs: int = static()
    buckets: int = static()

    def _on_buckets(self) -> Exponential:
        return Exponential(bits=jnp.int32(self.buckets), epsilon=self.epsilon, limbs=1, zero=True)

    def counted(self, sample: Sample, then: Callable[[Seen], T], among: Bool[Array, "n"]) -> T:
        hashed = Sample.tree_unflatten((False, False), (self.hash(sample.x), sample.y, sample.n_valid))
        return counted(hashed, jnp.int32(self.buckets), then, among)

    def _draw(self, key: Array, seen: Seen) -> tuple[Bucket, Any]:
        chosen, info = self._on_buckets()._draw(key, seen)
        return Bucket(hash=self.hash, bucket=chosen.position, zero=chosen.zero), info

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        return self._on_buckets().log_law(seen)

    def pmf(self, sample: Sample) -> Float[Array, "outcomes"]:
        """P[bucket] for all 2^buckets of them, then P[all-zero] (buckets <= 12)."""
        return _pmf(self, self.fit(sample), 1 << arguments.integer("buckets", self.buckets, at_least=1, at_most=12))

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)


def hashed(*, bits: int, epsilon: Any, alpha: float = 0.1, beta: float = 0.1, buckets: int | None = None) -> Hashed:
    """The improper pure learner (Beimel, Brenner, Kasiviswanathan, Nissim 2014 gave the first): n does not depend on d.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: d.
      epsilon: > 0.
      alpha, beta: error and failure probability that set the number of buckets, the least 2^m >= 16/(alpha beta).
      buckets: m itself, 1 to 31, instead.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = _bits(bits)
    buckets = _buckets(alpha, beta) if buckets is None else buckets
    return Hashed(
        bits=jnp.int32(bits),
        epsilon=arguments.epsilon(epsilon),
        limbs=wide.limbs_for(bits),
        buckets=arguments.integer("buckets", buckets, at_least=1, at_most=31),
    )


def _buckets(alpha: float, beta: float) -> int:
    """The least m with 2^m >= 16/(alpha beta)."""
    return math.ceil(math.log2(2 / (_GAMMA * arguments.fraction("alpha", alpha) * arguments.fraction("beta", beta))))


def _bits(bits: int) -> int:
    return arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
