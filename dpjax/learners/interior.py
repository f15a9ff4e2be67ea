"""Thresholds from an interior point, and an interior point from thresholds (CLNSS, footnote 5; Bun et al. 2015), with what each costs.

**Thresholds.** c_j(x) = 1 iff x < j. An example stands for the extreme threshold that is right about it: a one at x for x + 1
(right: j >= x + 1), a zero at x for x (right: j <= x). Let D be the m largest numbers of the ones and the m smallest of the
zeros; missing ones count as 0 and missing zeros as 2^d, about which every j in 0, ..., 2^d is right, so that D always has 2m
numbers in {0, ..., 2^d}. An interior point of D, found by a solver on d + 1 bits and cut to 2^d, is the hypothesis.

*Loss.* In a realizable sample the ones' numbers are <= t <= the zeros', t the target. Let min D <= j <= max D. Ones on which
j errs are > j >= min D, the m-th largest of the ones, zeros < j <= max D, the m-th smallest of the zeros: at most m - 1 of
either; and for j <= t it errs on ones only, for j >= t on zeros only. So the empirical error is at most (m - 1) / n: what
the reduction loses, and the solver's failure is all that can go wrong. (With points themselves instead of these numbers ties
would break this: all examples could sit at two points.) Nothing is promised about samples that no threshold labels, except
privacy.

*Population error.* Let l be the greatest threshold such that [l, t) has mass above alpha. Every j <= l errs on all ones in
[l, t), of which then at most m - 1 were drawn; likewise above t. So P[error > alpha] <= 2 P[Bin(n, alpha) <= m - 1] + P[the
solver fails].

*Privacy, whatever the labels.* One example more, say a one: the m largest of the ones stay or take it in and lose their
least; the zeros' part stays. So neighbours under add/remove have D's that are equal or differ by one replacement, distance
2: (2e, (1 + exp(e)) d) for an (e, d)-private solver. Replacing an example by one with the same label is still one
replacement (of the m largest of A + p and of A + q at most one differs); with the other label it is one in each part:
distance 4, which is `guarantee().under(REPLACE_ONE)`.

**Interior points.** Given points x_1 <= ... <= x_n in d bits and a learner on d + 1 bits, let k = floor(n/2). The first
min(m, k) become ones at 2x, the last min(m, n - k) zeros at 2x + 1, and ones at 0, zeros at 2^(d+1) - 1 fill both up to m.
That sample is realizable, ties or not (2 x_k < 2 x_(k+1) + 1). If the threshold j errs on fewer than min(m, k) examples, it
is right about one real one, so j > 2 x_1, and about one real zero, so j <= 2 x_n + 1: floor(j/2) is in [x_1, x_n]. Empirical
error below 1/2 on 2m examples is all it takes.

*Privacy.* The sample always has 2m examples. One point more: with n >= 2m it enters the m least, the m greatest, or neither,
and pushes one out: one replacement. With n < 2m the middle may move across it: k stays and the point falls among the first
k, so x_k becomes a zero in place of a filler; or k grows and it falls behind them, so x_(k+1) becomes a one in place of a
filler: two replacements. Hence (2e, (1 + exp(e)) d) for a learner that is (e, d)-private under replace-one.

    >>> import jax
    >>> from dpjax import Sample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import interior
    >>> from dpjax.optimizers import interior_point
    >>> sample = Sample(x=wide.from_ints([10, 20, 2**20, 2**21] * 100, 24), y=[1, 1, 0, 0] * 100)
    >>> learner = interior.threshold_learner(solver=interior_point.exponential(bits=25, epsilon=0.5), m=100)
    >>> 10 < wide.to_ints(learner(jax.random.key(0), sample).hypothesis)[0] <= 2**21
    True
    >>> learner.guarantee().epsilon, round(float(learner.failure_probability(sample, error=99 / 400)), 5)
    (1.0, 0.0)
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments, bisection
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample, bucket
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.optimizers.quantiles import Stretch, half_slice

MOST_POINTS = 2**30  # of the multiset D


# ------------------------------------------------------------------------------------- thresholds from interior points


@frozen
class InteriorThreshold(ThresholdLearner):
    """The proper learner by points around the decision boundary; build it by `threshold_learner`.

    Attributes:
      solver: of `dpjax.optimizers.interior_point`, on one bit more than the examples.
      m: how many numbers of each label it gets.
      capacity: rows of the multiset (static).
    """

    solver: Any
    m: Int[Array, ""]
    capacity: int = static()

    @property
    def bits(self) -> Any:  # type: ignore[override]
        """d: the examples are in {0, ..., 2^d - 1}."""
        return self.solver.bits - 1

    @property
    def limbs(self) -> int:  # type: ignore[override]
        """Limbs of a threshold."""
        return self.solver.limbs

    def around(self, pieces: Pieces) -> Points:
        """D, from the quality function: it steps up at the number x + 1 of a one, and down right after the number x of a zero."""
        starts, steps = pieces.starts[1:], pieces.values[1:] - pieces.values[:-1]
        one = wide.from_uint32(jnp.uint32(1), pieces.limbs)
        numbers = wide.select(steps < 0, wide.subtract(starts, one[None]), starts)
        if pieces.shape != "peak":  # all ones first, then all zeros, each in order
            numbers = numbers[jnp.argsort(jnp.where(steps == 0, 2, jnp.where(steps > 0, 0, 1)), stable=True)]
        zeros, ones = pieces.values[0].astype(jnp.int32), pieces.values[-1].astype(jnp.int32)
        run = Stretch(x=numbers, first=jnp.int32(0), stop=ones + zeros, low=jnp.zeros_like(one), high=pieces.last)
        m = jnp.asarray(self.m, jnp.int32)
        found = run.window(ones - m, 2 * m, self.capacity)
        return Points(x=found.x, n_valid=found.n_valid, ordered=pieces.shape == "peak")

    def draw(self, key: Array, pieces: Pieces) -> Any:
        outcome = self.solver(key, self.around(pieces))
        return wide.minimum(outcome.hypothesis, pieces.last), outcome.status == Status.OK, outcome.info

    def _law_between(self, pieces: Pieces, low: Array, high: Array) -> Float[Array, "2"]:
        everything = Interval.everything(self.limbs + 1)
        start, end = (wide.resize(each, self.limbs + 1) for each in (low, high))
        end = wide.select(wide.less(pieces.last, high), everything.high, end)  # an answer above 2^d is cut to it
        end = wide.select(wide.less(low, high), end, start)
        return self.solver.probability(self.around(pieces), Interval(low=start, high=end))

    def law(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        if goal.marked is None:
            return self._law_between(pieces, goal.within.low, goal.within.high)
        low, high = (
            wide.maximum(pieces.starts, goal.within.low[None]),
            wide.minimum(pieces.ends(), goal.within.high[None]),
        )
        if pieces.shape == "peak":  # the good pieces are next to each other
            first, last = jnp.argmax(goal.marked), goal.marked.shape[0] - 1 - jnp.argmax(goal.marked[::-1])
            stop = wide.select(jnp.any(goal.marked), high[last], jnp.zeros_like(low[0]))
            return self._law_between(pieces, low[first], stop)
        each = jax.vmap(lambda a, b: self._law_between(pieces, a, b))(low, high)[:, 0]
        outside = self._law_between(pieces, goal.within.low, goal.within.high)[1]
        good = jnp.sum(jnp.where(goal.marked, each, 0.0))
        return jnp.stack([good, jnp.sum(jnp.where(goal.marked, 0.0, each)) + outside])

    def guarantee(self) -> Guarantee:
        """The solver's at distance 2, under ADD_OR_REMOVE_ONE; for any labels."""
        return self.solver.guarantee().group(2)

    def empirical_error(self, n: int) -> float:
        """(m - 1) / n: on a realizable sample of n examples the error exceeds it only if the solver fails."""
        return (int(self.m) - 1) / arguments.integer("n", n, at_least=1)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n with 2 P[Bin(n, alpha) <= m - 1] <= beta/2; the solver fails with probability at most beta/2.

        At most (k + L + sqrt(L^2 + 2 k L)) / alpha with k = m - 1, L = ln(4/beta), by Chernoff's bound exp(-(a - k)^2 / (2a)), a = alpha n.

        Raises:
          ValueError: 2m numbers are too few for the solver to fail with probability at most beta/2.
        """
        from scipy.special import betainc

        alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
        m, needed = int(self.m), half_slice(self.solver, beta=beta / 2)
        if m < needed:
            raise ValueError(f"m must be >= {needed} for the solver to fail with probability <= {beta / 2:g}, got {m}")
        log = math.log(4 / beta)
        enough = m + math.ceil((m - 1 + log + math.sqrt(log**2 + 2 * (m - 1) * log)) / alpha)
        return bisection.least_int(lambda n: 2 * betainc(n - m + 1, m, 1 - alpha) <= beta / 2, m, enough)


def threshold_learner(*, solver: Any, m: int) -> InteriorThreshold:
    """A proper threshold learner from an interior point solver; see the module for its loss and its privacy.

    Args:
      solver: of `dpjax.optimizers.interior_point`, on bits + 1 >= 2 bits for examples in {0, ..., 2^bits - 1}.
      m: how many numbers of each label the solver gets; `half_slice(solver, beta=...)` is enough for it to succeed.

    Formal guarantees: `solver.guarantee().group(2)` under ADD_OR_REMOVE_ONE, for any sample. Not promised: floating-point side channels;
    a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    if not isinstance(solver, InteriorPoint):
        raise TypeError(f"solver must be of dpjax.optimizers.interior_point, got {type(solver).__name__}")
    arguments.integer("solver.bits", int(solver.bits), at_least=2)
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2)
    half: Any = np.int32(m)
    return InteriorThreshold(solver=solver, m=half, capacity=bucket(2 * m))


# ------------------------------------------------------------------------------------- interior points from thresholds


@frozen
class LearnedInterior(InteriorPoint):
    """An interior point from a threshold learner; build it by `solver`.

    Attributes:
      learner: of `dpjax.learners.thresholds` or `threshold_learner`, on one bit more than the points.
      m: half the examples the learner gets.
      limbs: of a point (static).
      capacity: rows of the sample (static).
    """

    learner: Any
    m: Int[Array, ""]
    limbs: int = static()
    capacity: int = static()

    @property
    def bits(self) -> Any:  # type: ignore[override]
        """The points are in {0, ..., 2^bits - 1}."""
        return self.learner.bits - 1

    def labelled(self, points: Points) -> Sample:
        """The realizable sample of 2m examples; points are sorted."""
        limbs, m = self.learner.limbs, jnp.asarray(self.m, jnp.int32)
        one, end = wide.from_uint32(jnp.uint32(1), limbs), self._end()
        row, n = jnp.arange(self.capacity, dtype=jnp.int32), points.n_valid
        is_one, ones = row < m, jnp.minimum(m, n // 2)
        zeros = jnp.minimum(m, n - n // 2)
        place = jnp.where(is_one, row - (m - ones), row - m + n - zeros)
        x = wide.resize(points.x[jnp.clip(place, 0, points.rows - 1)], limbs)
        doubled = wide.add(x, x)
        low = wide.select(place >= 0, doubled, jnp.zeros_like(x))
        high = wide.select(place < n, wide.add(doubled, one[None]), wide.subtract(end, one)[None])
        return Sample.promised(wide.select(is_one, low, high), is_one.astype(jnp.int32), 2 * m)

    def _end(self) -> UInt32[Array, "limbs"]:
        """2^(bits + 1), the learner's greatest threshold."""
        return wide.power_of_two(jnp.asarray(self.learner.bits, jnp.int32), self.learner.limbs)

    def draw(self, key: Array, points: Points) -> Any:
        outcome = self.learner(key, self.labelled(points))
        last = wide.subtract(self._end(), wide.from_uint32(jnp.uint32(1), self.learner.limbs))
        half = wide.shift_right(wide.minimum(outcome.hypothesis, last), jnp.int32(1))
        return wide.resize(half, self.limbs), outcome.status == Status.OK, outcome.info

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        limbs = self.learner.limbs
        low, stop = (wide.resize(wide.add(end, end), limbs) for end in (interval.low, interval.high))
        # The answer is in low, ..., high - 1 for the thresholds 2 low, ..., 2 high - 1; the last of all is cut to the top.
        after = wide.add(self._end(), wide.from_uint32(jnp.uint32(1), limbs))
        stop = wide.select(wide.less(low, stop) & wide.equal(stop, self._end()), after, stop)
        return self.learner.probability(self.labelled(points), (low, stop))

    def guarantee(self) -> Guarantee:
        """The learner's under REPLACE_ONE, at two replacements, as a guarantee under ADD_OR_REMOVE_ONE."""
        twice = self.learner.guarantee().under(REPLACE_ONE).group(2)
        return Guarantee(twice.epsilon, twice.delta, ADD_OR_REMOVE_ONE)

    def points_needed(self, beta: float) -> int:
        """2m: with so many points or more it fails with probability at most beta.

        By the learner's own sample size for error 1/4. That is a statement about population error; for every learner here it is
        proved through the empirical error on any realizable sample, which is what is needed: at most m/2 <= m - 1 wrong (0 if m = 1).

        Raises:
          ValueError: the learner asks for more than 2m examples.
        """
        needed = self.learner.sample_size(alpha=0.25, beta=beta)
        if 2 * int(self.m) < needed:
            raise ValueError(f"m must be >= {-(-needed // 2)} for the learner to reach error 1/4, got {self.m}")
        return 2 * int(self.m)


def solver(*, learner: Any, m: int) -> LearnedInterior:
    """An interior point solver from a threshold learner; see the module.

    Args:
      learner: of `dpjax.learners.thresholds` or `threshold_learner`, on bits + 1 >= 2 bits for points in {0, ..., 2^bits - 1}.
      m: half the examples the learner gets.

    Formal guarantees: `learner.guarantee().under(REPLACE_ONE).group(2)` under ADD_OR_REMOVE_ONE; between datasets of 2m points or more
    even without `group(2)`. Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.domains import wide
    >>> from dpjax.learners import interior, thresholds
    >>> solver = interior.solver(learner=thresholds.exponential(bits=25, epsilon=0.5), m=200)
    >>> points = Points.create(wide.from_ints([5] * 300 + [2**23] * 300, 24))
    >>> f"{float(solver.failure_probability(points)):.0e}", solver.guarantee().epsilon
    ('2e-22', 1.0)
    """
    if not isinstance(learner, ThresholdLearner):
        raise TypeError(f"learner must be a threshold learner, got {type(learner).__name__}")
    bits = arguments.integer("learner.bits", int(learner.bits), at_least=2) - 1
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2)
    half: Any = np.int32(m)
    return LearnedInterior(learner=learner, m=half, limbs=wide.limbs_for(bits), capacity=bucket(2 * m))
