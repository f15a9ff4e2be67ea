"""k points learned at once, at a cost that does not grow with k (MULTI §4.2.2), over X_d = {0, ..., 2^d - 1}.

| factory | algorithm | privacy (REPLACE_ONE) | examples, PAC (not agnostic) |
|---|---|---|---|
| `point_learner` | PointLearner (Algorithm 5) | (epsilon, delta) | ln(1/(alpha beta delta)) / (alpha epsilon), Theorem 40 |
| `histogram_learner` | a stability histogram of the labelled points | (epsilon, delta) | the same, with a smaller constant |

Neighbours: one example with all its k labels is replaced by any other, labels arbitrary; the number of examples is public. k enters
as packed words that are sorted and compared, never into n.

**PointLearner.** 1. Release noisy counts of the points by Algorithm 2 (`dpjax.sanitizers.points`) with (epsilon/2, delta/2); G, the heavy
points, are those whose noisy count is at least `heavy`. 2. A vector v_x of k labels for every x in G, V = (v_x), has the score
Q(S, V) = min_x #{(x, v_x) in S}, of sensitivity 1; A_dist keeps the best V with (epsilon/2, delta/2), or the answer is ⊥. 3. h_j is the
least x in G with v_x,j = 1, or all-zero if there is none: post-processing of (G, V) ("let x be s.t." in the paper; only agnostic data
leave a choice).

*The gap, exactly.* With a_x, b_x the largest and the second count of a vector at x, the best V has Q1 = min_x a_x. Any other V differs
somewhere, and best only at one x, where it takes the runner-up: Q2 = max_x min(b_x, min over y != x of a_y). All 2^k >= 2 vectors are
candidates, so b_x = 0 where only one was seen. Two scores each move by at most 1: the gap has sensitivity 2 (SPEC §4). If G is
empty there is one V, a constant: it is released, and every h_j is all-zero. A_dist is private for each fixed G, on any data (ties go to
the least vector); G itself is an outcome of step 1, so basic composition is what is needed. With printed constants of A_dist the total is
(3 epsilon/2, delta/2 + exp(epsilon) delta/4).

*printed.* Algorithm 2 at alpha/30 (low = alpha n/120, high = alpha n/60), heavy = alpha n/15, A_dist printed. Private only if
exp(-epsilon n alpha/480 + epsilon/4) <= delta/2: n is an argument, and refused if too small. Theorem 40 with its constants, n at least
- (480/(alpha epsilon)) (epsilon/4 + ln(2/delta)): private;
- (240/(alpha epsilon)) ln(480/(alpha beta)): answers within alpha/30 but for beta/4 (Proposition 30);
- (200/(81 alpha)) ln(4/(alpha beta)): each of the at most 1/alpha points of mass >= alpha has a share >= alpha/10, but for beta/4 (Chernoff
  exp(-0.81 alpha n / 2) and a union bound, where the paper quotes Theorem 8 without constants);
- (30/alpha) times the gap at which A_dist fails with probability beta/2.

*proved.* The sanitizer need not be accurate, and n need not be known. Let g be the gap at which A_dist fails with probability beta/4,
rounded up, and take low = g - 1, high = heavy = low + 1 + (4/epsilon) ln(1/delta) (`sanitizers.points.histogram` at (epsilon/2, delta/2)).
Every heavy point occurs g times, surely; if labels are consistent so does its vector and no other, hence the gap is >= g. A point of
count at least r = high + (4/epsilon) ln(2/(alpha beta)) is heavy but for alpha beta/4. So all points of mass > alpha (fewer than
1/alpha) are heavy, and all h_j good, except with probability beta/4 + beta/4 + P[Bin(n, alpha) < r]/alpha, and n is the least that
makes the last term beta/2. A point that is not heavy errs on its own mass, at most alpha.

**Histogram of labelled points.** Heavy pairs (x, v) can be released at once: the counts of pairs are a histogram over X x {0,1}^k, on which
`sanitizers.points.histogram` is (epsilon, delta). Nothing is ever ⊥. h_j is the x of the first released pair with v_j = 1. On consistent
labels a pair is as frequent as its point. With high = 1 + (2/epsilon) ln(1/(2 delta)) a count r = high + (2/epsilon) ln(1/(alpha beta)) is
released but for alpha beta/2, and n is the least with P[Bin(n, alpha) < r] <= alpha beta/2. One stage with the whole budget asks for
less than two with half of it each: 536 examples instead of 1784 at epsilon = 1, delta = 1e-6, alpha = beta = 0.1 (`sample_size` of both).

    >>> import jax
    >>> from dpjax.concepts import points as concept
    >>> from dpjax.multi import points
    >>> law = concept.point_masses(bits=24, points=[3, 2**20, 9], masses=[0.4, 0.3, 0.3], target=[3, 2**20, None, 2**20])
    >>> learner = points.point_learner(bits=24, k=4, epsilon=1.0, delta=1e-6, alpha=0.2)
    >>> n = learner.sample_size(alpha=0.2, beta=0.1)
    >>> sample = law.sample(jax.random.key(0), n, n)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> law.errors(outcome.hypothesis).tolist(), round(float(learner.success_probability(sample, error=0.2)), 3)
    ([0.0, 0.0, 0.0, 0.0], 1.0)
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import REPLACE_ONE, Guarantee, basic
from dpjax.bounds import stability_gap
from dpjax.concepts.points import Point
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import groups, wide
from dpjax.mechanisms import stability
from dpjax.sanitizers import points as sanitizer
from dpjax.sanitizers.points import NoisyCounts

CALIBRATIONS = ("printed", "proved")
_FAR = np.int32(2**30)  # above any count


class Items(NamedTuple):
    """What may be heavy, in a fixed order of the domain: points with the most frequent vector of each, or labelled points.

    Attributes:
      points: increasing. vectors: k labels each, packed.
      counts: how often the item occurs; 0 for slots that are not used.
      first, second: the counts of the two most frequent vectors at the point.
    """

    points: UInt32[Array, "m limbs"]
    vectors: UInt32[Array, "m words"]
    counts: Int[Array, "m"]
    first: Int[Array, "m"]
    second: Int[Array, "m"]


def distinct(sample: MultiSample) -> groups.Groups:
    """The distinct labelled points."""
    return groups.group(_labelled(sample), sample.valid)


def labelled_points(fine: groups.Groups, limbs: int) -> Items:
    """Labelled points, from the distinct ones with their limbs."""
    nothing = jnp.zeros_like(fine.counts)
    return Items(fine.rows[:, :limbs], fine.rows[:, limbs:], fine.counts, fine.counts, nothing)


def distinct_points(fine: groups.Groups, limbs: int) -> Items:
    """The distinct x, each with its most frequent vector (the least on ties) and how often it and the next one occur."""
    coarse = groups.coarser(fine, limbs)
    parent, m = coarse.member, fine.counts.shape[0]
    index, nothing = jnp.arange(m, dtype=jnp.int32), jnp.zeros((m,), jnp.int32)
    first = nothing.at[parent].max(fine.counts, mode="drop")
    wins = fine.counts == first.at[parent].get(mode="fill", fill_value=-1)
    best = jnp.full((m,), m, jnp.int32).at[parent].min(jnp.where(wins, index, m), mode="drop")
    others = best.at[parent].get(mode="fill", fill_value=m) != index
    second = nothing.at[parent].max(jnp.where(others, fine.counts, 0), mode="drop")
    vectors = fine.rows[jnp.minimum(best, m - 1), limbs:]
    return Items(coarse.rows, vectors, coarse.counts, first, second)


def gap(first: Int[Array, "m"], second: Int[Array, "m"], heavy: Bool[Array, "m"]) -> Float[Array, ""]:
    """Q1 - Q2 over the vectors of heavy points (see the module); +inf when none is heavy: then there is one candidate."""
    a, b = jnp.where(heavy, first, _FAR), jnp.where(heavy, second, -_FAR)
    lowest = jnp.argmin(a).astype(jnp.int32)
    best = a[lowest]
    is_lowest = jnp.arange(a.shape[0], dtype=jnp.int32) == lowest
    others = jnp.where(is_lowest, jnp.min(jnp.where(is_lowest, _FAR, a)), best)
    return jnp.where(jnp.any(heavy), (best - jnp.max(jnp.minimum(b, others))).astype(float), jnp.inf)


def name(items: Items, heavy: Bool[Array, "m"], k: int) -> Int[Array, "k"]:
    """For every concept the first heavy item whose vector has a 1 there; the number of items if none has."""
    vectors = jnp.where(heavy[:, None], items.vectors, np.uint32(0))
    taken = lax.associative_scan(jnp.bitwise_or, vectors)
    new = vectors & ~jnp.concatenate([jnp.zeros_like(taken[:1]), taken[:-1]])
    # Each label is new at one item at most, whose index is put together bit by bit, for all labels of a word at once.
    m = vectors.shape[0]
    index = jnp.arange(m, dtype=jnp.int32)[:, None]
    digits = [_any(jnp.where((index >> b) & 1 == 1, new, np.uint32(0))) for b in range((m - 1).bit_length())]
    first = sum((packed.unpack(digit, k).astype(jnp.int32) << b for b, digit in enumerate(digits)), jnp.int32(0))
    return jnp.where(packed.unpack(taken[-1], k), first, m)


def _any(words: UInt32[Array, "m words"]) -> UInt32[Array, "words"]:
    """The bits that are set in any row."""
    return lax.reduce(words, np.uint32(0), lax.bitwise_or, (0,))


# ------------------------------------------------------------------------------------------------------ entry points


class PointsLearner:
    """What the two learners share: checked, padded and compiled entry points around `items`, `is_heavy` and `log_keep`."""

    bits: Any
    counts: NoisyCounts
    heavy: Any
    limbs: int
    k: int

    def items(self, fine: groups.Groups) -> Items:
        """What may be heavy, from the distinct labelled points."""
        raise NotImplementedError

    def log_keep(self, items: Items, heavy: Bool[Array, "m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(ln P[released], ln P[⊥]) given which items are heavy."""
        raise NotImplementedError

    def draw_heavy(self, key: Array, items: Items) -> Bool[Array, "m"]:
        """Which items are heavy: one run of the noisy counts."""
        noisy, released = self.counts.noisy(key, items.counts)
        return released & (noisy >= jnp.asarray(self.heavy, float)) & (items.counts > 0)

    def log_heavy(self, items: Items) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[heavy], ln P[not]) of every item, independently: `draw_heavy`'s law."""
        high = jnp.maximum(jnp.asarray(self.heavy, float), jnp.asarray(self.counts.high, float))
        log_p, log_q = dataclasses.replace(self.counts, high=high).log_released(items.counts)
        there = items.counts > 0
        return jnp.where(there, log_p, -jnp.inf), jnp.where(there, log_q, 0.0)

    def predict(self, hypothesis: Point, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """The k labels of points."""
        return hypothesis.predict(x)

    def __call__(self, key: Array, sample: MultiSample) -> Outcome:
        """One run on a sample.

        Args:
          key: PRNG key.
          sample: k-labelled examples, x of shape (rows, limbs of `bits` bits).

        Returns:
          An `Outcome`; `hypothesis` is a `Point` of k concepts; `info` has the number of heavy items (not private).

        Raises:
          TypeError, ValueError: a sample that does not fit (as far as it is not traced).
        """
        return _run(self, key, self.fit(sample))

    def success_probability(self, sample: MultiSample, *, error: Any, most: int = 10) -> Float[Array, ""]:
        """P[every empirical error <= error] over the learner's coins, exactly; ⊥ is a failure.

        A sum over all sets of heavy items, so only for samples in which at most `most` (1 to 16) items can be heavy; else NaN.
        """
        error = arguments.real("error", error, at_least=0.0, at_most=1.0)
        most = arguments.integer("most", most, at_least=1, at_most=16)
        return _success(self, self.fit(sample), jnp.asarray(error, float), most)

    def fit(self, sample: MultiSample) -> MultiSample:
        """The sample, checked and padded to its bucket."""
        return fitted(sample, MultiSample, bits=self.bits, limbs=(self.limbs,), k=self.k, any_rows=True)


@jax.jit
def _run(learner: PointsLearner, key: Array, sample: MultiSample) -> Outcome:
    def answer(fine: groups.Groups) -> tuple[Point, Array, Array]:
        key_heavy, key_test = jax.random.split(
            jax.random.clone(key)
        )  # the same coins whichever way the rows are grouped
        items = learner.items(fine)
        heavy = learner.draw_heavy(key_heavy, items)
        kept = random.bernoulli(key_test, *learner.log_keep(items, heavy))
        index = name(items, heavy, learner.k)
        m = items.counts.shape[0]
        hypothesis = Point(position=items.points[jnp.minimum(index, m - 1)], zero=index == m)
        return hypothesis, kept, jnp.sum(heavy, dtype=jnp.int32)

    hypothesis, kept, size = groups.grouped(_labelled(sample), sample.valid, answer)
    fits = wide.all_below(sample.x, sample.valid, learner.bits)
    status = jnp.where(fits, jnp.where(kept, Status.OK, Status.BOTTOM), Status.OUTSIDE_DOMAIN).astype(jnp.int32)
    return Outcome.of(hypothesis, status, {"heavy": size})


def _labelled(sample: MultiSample) -> UInt32[Array, "rows both"]:
    """Points and labels side by side."""
    return jnp.concatenate([sample.x, sample.y], axis=1)


@jax.jit(static_argnums=3)
def _success(learner: PointsLearner, sample: MultiSample, error: Array, most: int) -> Array:
    everything = learner.items(distinct(sample))
    most = min(most, everything.counts.shape[0])
    chosen = jnp.sort(lax.top_k(everything.counts, most)[1])  # the order that `name` goes by
    items = Items(*(part[chosen] for part in everything))
    at_risk = jnp.sum(learner.log_heavy(everything)[0] > -jnp.inf, dtype=jnp.int32)
    (log_p, log_q), wrong = learner.log_heavy(items), _wrong(sample, items)

    def success(code: Array) -> Array:
        heavy = ((code >> jnp.arange(most, dtype=jnp.int32)) & 1).astype(bool)
        errors = wrong[name(items, heavy, learner.k), jnp.arange(learner.k, dtype=jnp.int32)]
        # The literal definition, wrong / n <= error, as in learners.thresholds: correctly rounded division.
        good = jnp.all(errors.astype(float) / sample.n_valid.astype(float) <= error)
        chance = jnp.sum(jnp.where(heavy, log_p, log_q)) + learner.log_keep(items, heavy)[0]
        return jnp.where(good, jnp.exp(chance), 0.0)

    total = jnp.sum(lax.map(success, jnp.arange(1 << most, dtype=jnp.int32), batch_size=64))
    return jnp.where(at_risk <= most, total, jnp.nan)


def _wrong(sample: MultiSample, items: Items) -> Int[Array, "more k"]:
    """How many examples c_x gets wrong for each concept, for every item's x and last for all-zero."""
    labels = sample.labels & sample.valid[:, None]
    ones = jnp.sum(labels, axis=0, dtype=jnp.int32)

    def at(point: Array) -> Array:
        here = wide.equal(sample.x, point[None]) & sample.valid
        right = jnp.sum(labels & here[:, None], axis=0, dtype=jnp.int32)
        return ones + jnp.sum(here, dtype=jnp.int32) - 2 * right

    return jnp.concatenate([lax.map(at, items.points), ones[None]])


# ------------------------------------------------------------------------------------------------------- PointLearner


@frozen
class PointLearner(PointsLearner):
    """MULTI Algorithm 5; build it by `point_learner`."""

    bits: Int[Array, ""]
    epsilon: Any
    delta: Any
    alpha: Any
    beta: Any
    heavy: Any
    counts: NoisyCounts
    limbs: int = static()
    k: int = static()
    calibration: str = static()

    def items(self, fine: groups.Groups) -> Items:
        return distinct_points(fine, self.limbs)

    def log_keep(self, items: Items, heavy: Bool[Array, "m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        distance = gap(items.first, items.second, heavy)
        return stability.log_keep(
            distance, epsilon=self.epsilon / 2, delta=self.delta / 2, calibration=self.calibration
        )

    def guarantee(self) -> Guarantee | None:
        """What is proved for the constants in use, by basic composition; None if n is too small for it."""
        counted = self.counts.guarantee()
        if counted is None:
            return None
        if self.calibration == "proved":
            return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)
        return basic([counted, self._test().guarantee()])

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta), which the paper claims; false for "printed"."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)

    def _test(self) -> stability.Stability:
        return stability.mechanism(epsilon=self.epsilon / 2, delta=self.delta / 2, calibration=self.calibration)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Theorem 40 with the constants of the module; the same for every k.

        Raises:
          ValueError: an alpha below the printed learner's own, or a beta below the proved one's.
        """
        smallest, given, own = (
            ("alpha", alpha, self.alpha) if self.calibration == "printed" else ("beta", beta, self.beta)
        )
        if given < own:
            raise ValueError(f"{smallest} must be >= {own}, which this learner was built for, got {given}")
        if self.calibration == "proved":
            return _proved_size(alpha, beta, float(self.epsilon), float(self.counts.high))
        return sample_size(alpha=self.alpha, beta=beta, epsilon=self.epsilon, delta=self.delta, calibration="printed")


def point_learner(
    *,
    bits: int,
    k: int,
    epsilon: Any,
    delta: Any,
    alpha: Any,
    beta: Any = 0.1,
    n: Any = None,
    calibration: str = "proved",
    allow_unproved: bool = False,
) -> PointLearner:
    """PointLearner (MULTI Algorithm 5).

    Formal guarantees: "proved" (epsilon, delta) for every n, "printed" (3 epsilon/2, delta/2 + exp(epsilon) delta/4), under
    REPLACE_ONE, labels arbitrary. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: d. k: number of concepts.
      epsilon: > 0. delta: in (0, 1).
      alpha: error, in (0, 1); it sets the printed thresholds (proved ones do not depend on it).
      beta: failure probability, in (0, 1), which sets the proved threshold `low` (printed ones do not depend on it).
      n: number of examples, public; needed by "printed" only, whose privacy depends on it.
      calibration: "proved" or "printed".
      allow_unproved: simulate "printed" below the n that its privacy needs; `guarantee()` is then None.

    Raises:
      TypeError, ValueError: an argument out of range, no n or one too small for "printed".
    """
    k = arguments.integer("k", k, at_least=1)
    arguments.choice("calibration", calibration, CALIBRATIONS)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    alpha, beta = arguments.fraction("alpha", alpha), arguments.fraction("beta", beta)
    if calibration == "proved":
        low = _least_count(beta, epsilon, delta) - 1
        counts = sanitizer.histogram(bits=bits, n=1, epsilon=epsilon / 2, delta=delta / 2, low=low)
        heavy = counts.high
    else:
        if n is None:
            raise ValueError('n must be given for calibration="printed": its thresholds and its privacy depend on it')
        counts = sanitizer.release(
            bits=bits, n=n, epsilon=epsilon / 2, delta=delta / 2, alpha=alpha / 30, allow_unproved=allow_unproved
        )
        heavy = counts.n * alpha / 15
    return PointLearner(
        bits=counts.bits,
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        beta=beta,
        heavy=heavy,
        counts=counts,
        limbs=counts.limbs,
        k=k,
        calibration=calibration,
    )


def _least_count(beta: Any, epsilon: Any, delta: Any) -> Any:
    """g: the gap at which the proved A_dist at (epsilon/2, delta/2) fails with probability beta/4, rounded up."""
    if any(map(arguments.is_traced, (beta, epsilon, delta))):
        scale, threshold = stability.noise("proved", epsilon / 2, delta / 2)
        return jnp.ceil(threshold + scale * jnp.maximum(0.0, -jnp.log(beta / 2)))
    return math.ceil(stability_gap(float(beta / 4), float(epsilon / 2), float(delta / 2), calibration="proved"))


def sample_size(*, alpha: Any, beta: Any, epsilon: Any, delta: Any, calibration: str = "proved") -> int:
    """Theorem 40 with the constants of the module: n for which PointLearner is private and all k errors are at most alpha but for beta.

    >>> sample_size(alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6)
    1784
    >>> sample_size(alpha=0.1, beta=0.1, epsilon=1.0, delta=1e-6, calibration="printed")
    70842
    """
    arguments.choice("calibration", calibration, CALIBRATIONS)
    alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
    epsilon, delta = float(arguments.epsilon(epsilon)), float(arguments.delta(delta))
    if calibration == "proved":
        high = _least_count(beta, epsilon, delta) - 1 + sanitizer.margin(epsilon / 2, delta / 2)
        return _proved_size(alpha, beta, epsilon, high)
    counted = sanitizer.release_sample_size(epsilon=epsilon / 2, delta=delta / 2, alpha=alpha / 30, beta=beta / 4)
    frequent = -200 / (81 * alpha) * math.log(alpha * beta / 4)
    told_apart = 30 / alpha * stability_gap(beta / 2, epsilon / 2, delta / 2, calibration="printed")
    return max(counted, math.ceil(frequent), math.ceil(told_apart))


def _proved_size(alpha: float, beta: float, epsilon: float, high: float) -> int:
    """The proved n for this threshold."""
    return _until_seen(alpha, beta, high - 4 / epsilon * math.log(alpha * beta / 2))


def _until_seen(alpha: float, beta: float, count: float) -> int:
    """The least n at which P[Bin(n, alpha) < count] <= alpha beta/2."""
    from scipy.stats import binom

    needed = math.ceil(count)
    return sanitizer.least(lambda n: binom.cdf(needed - 1, n, alpha) <= alpha * beta / 2, needed)


# ----------------------------------------------------------------------------------------- histogram of labelled points


@frozen
class HistogramLearner(PointsLearner):
    """Noisy counts of labelled points; build it by `histogram_learner`."""

    bits: Int[Array, ""]
    heavy: Any
    counts: NoisyCounts
    limbs: int = static()
    k: int = static()

    def items(self, fine: groups.Groups) -> Items:
        return labelled_points(fine, self.limbs)

    def log_keep(self, items: Items, heavy: Bool[Array, "m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.zeros((), float), jnp.full((), -jnp.inf, float)

    def guarantee(self) -> Guarantee | None:
        """(epsilon, delta) under REPLACE_ONE."""
        return self.counts.guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n of the module's analysis; the same for every k."""
        alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
        count = float(self.counts.high) + 2 / float(self.counts.epsilon) * max(0.0, -math.log(alpha * beta))
        return _until_seen(alpha, beta, count)


def histogram_learner(*, bits: int, k: int, epsilon: Any, delta: Any) -> HistogramLearner:
    """A stability histogram of the labelled points (see the module): Algorithm 5's task in one stage.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, labels arbitrary, tight. Not promised: floating-point side channels; a
    cryptographic generator.

    Args:
      bits: d. k: number of concepts.
      epsilon: > 0. delta: in (0, 1/2].

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    counts = sanitizer.histogram(bits=bits, n=1, epsilon=epsilon, delta=delta)
    k = arguments.integer("k", k, at_least=1)
    return HistogramLearner(bits=counts.bits, heavy=counts.high, counts=counts, limbs=counts.limbs, k=k)
