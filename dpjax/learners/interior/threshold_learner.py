"""Thresholds from an interior point solver: points around the decision boundary.

c_j(x) = 1 iff x < j. Each example stands for a number, the extreme threshold that is right about it: a one at x for x + 1
(j is right if j >= x + 1), a zero at x for x (j is right if j <= x). Let D be the m largest numbers of the ones and the m
smallest of the zeros; missing ones count as 0 and missing zeros as 2^d, about which every j in 0, ..., 2^d is right, so that
D always has 2m numbers in {0, ..., 2^d}. An interior point of D, found by a solver on d + 1 bits and cut to 2^d, is the
hypothesis.

*Loss.* In a realizable sample with target t, the ones' numbers are at most t and the zeros' at least t. Let
min D <= j <= max D. Ones on which j errs have numbers > j >= min D, the m-th largest of the ones; zeros on which it errs have
numbers < j <= max D, the m-th smallest of the zeros: at most m - 1 of either. And j errs on ones only if j <= t, on zeros only
if j >= t. So the empirical error is at most (m - 1) / n, which is what the reduction loses, and only the solver can fail.
(With points themselves instead of these numbers, ties would break this: all examples could sit at two points.) Nothing is
promised about samples that no threshold labels, except privacy.

*Population error.* Let l be the greatest threshold such that [l, t) has mass above alpha. Every j <= l errs on all ones in
[l, t), so if it is the output and the solver did not fail, at most m - 1 of them were drawn; likewise above t. So
P[error > alpha] <= 2 P[Bin(n, alpha) <= m - 1] + P[the solver fails].

*Privacy, whatever the labels.* Let one example be added, say a one: the m largest numbers of the ones stay, or take it in and lose their
least; the zeros' part stays. So neighbours under add/remove have multisets D that are equal or differ by one replacement, at distance 2:
(2e, (1 + exp(e)) d) for a solver that is (e, d)-private under add/remove, (e, d) for one that is so under replace-one, as
`flat_tree_score` is. Replacing an example by one with the same label is still one replacement (of the m largest of A + p and of A + q at
most one differs). With the other label it is one replacement in each part: distance 4, which is `guarantee().under(REPLACE_ONE)`.

Its plain twin is `dpjax.verify.plain.interior.threshold_learner_law`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments, bisection
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.optimizers.quantiles.base import MOST_POINTS, Stretch, require


@frozen
class InteriorThreshold(ThresholdLearner):
    """The proper learner by points around the decision boundary; build it by `threshold_learner`.

    Attributes:
      solver: from `dpjax.optimizers.interior_point`, on one bit more than the examples.
      m: how many numbers of each label the solver gets.
      capacity: rows of the multiset D (static).
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

    def sound(self) -> Bool[Array, ""]:
        """Whether D has numbers, and room for them, too."""
        m = jnp.asarray(self.m, jnp.int32)
        return super().sound() & (m >= 1) & (m <= self.capacity // 2)

    def around(self, pieces: Pieces) -> Points:
        """D, read off the quality function, which steps up at the number x + 1 of a one, and down right after the number x of a zero."""
        starts, steps = pieces.starts[1:], pieces.values[1:] - pieces.values[:-1]
        one = wide.one(pieces.limbs)
        numbers = wide.select(steps < 0, wide.subtract(starts, one[None]), starts)
        if not pieces.is_peak:  # all ones first, then all zeros, each in order
            numbers = numbers[jnp.argsort(jnp.where(steps == 0, 2, jnp.where(steps > 0, 0, 1)), stable=True)]
        zeros, ones = pieces.values[0].astype(jnp.int32), pieces.values[-1].astype(jnp.int32)
        run = Stretch(x=numbers, first=jnp.int32(0), stop=ones + zeros, low=jnp.zeros_like(one), high=pieces.last)
        m = jnp.asarray(self.m, jnp.int32)
        found = run.window(ones - m, 2 * m, self.capacity)
        return Points(x=found.x, n_valid=found.n_valid, ordered=pieces.is_peak)

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
        low = wide.maximum(pieces.starts, goal.within.low[None])
        high = wide.minimum(pieces.ends(), goal.within.high[None])
        if pieces.is_peak:  # the good pieces are next to each other
            first, last = jnp.argmax(goal.marked), goal.marked.shape[0] - 1 - jnp.argmax(goal.marked[::-1])
            stop = wide.select(jnp.any(goal.marked), high[last], jnp.zeros_like(low[0]))
            return self._law_between(pieces, low[first], stop)
        each = jax.vmap(lambda a, b: self._law_between(pieces, a, b))(low, high)[:, 0]
        outside = self._law_between(pieces, goal.within.low, goal.within.high)[1]
        good = jnp.sum(jnp.where(goal.marked, each, 0.0))
        return jnp.stack([good, jnp.sum(jnp.where(goal.marked, 0.0, each)) + outside])

    def guarantee(self) -> Guarantee:
        """The solver's guarantee for one replaced point, as one under ADD_OR_REMOVE_ONE; for any labels."""
        replaced = self.solver.guarantee().under(REPLACE_ONE)
        return Guarantee(replaced.epsilon, replaced.delta, ADD_OR_REMOVE_ONE)

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

        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        m = int(self.m)
        require(self.solver, m, beta / 2)
        log = math.log(4 / beta)
        enough = m + math.ceil((m - 1 + log + math.sqrt(log**2 + 2 * (m - 1) * log)) / alpha)
        return bisection.least_int(lambda n: 2 * betainc(n - m + 1, m, 1 - alpha) <= beta / 2, m, enough)


def threshold_learner(*, solver: Any, m: int) -> InteriorThreshold:
    """A proper threshold learner from an interior point solver; see the module for its loss and its privacy.

    Args:
      solver: from `dpjax.optimizers.interior_point`, on bits + 1 >= 2 bits for examples in {0, ..., 2^bits - 1}.
      m: how many numbers of each label the solver gets; `half_slice(solver, beta=...)` is enough for it to succeed.

    Formal guarantees: `solver.guarantee().under(REPLACE_ONE)` as one under ADD_OR_REMOVE_ONE, for any sample. Not promised: protection from
    floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    if not isinstance(solver, InteriorPoint):
        raise TypeError(f"solver must be of dpjax.optimizers.interior_point, got {type(solver).__name__}")
    arguments.integer("solver.bits", int(solver.bits), at_least=2)
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2)
    half: Any = np.int32(m)
    return InteriorThreshold(solver=solver, m=half, capacity=bucket(2 * m))
