"""An interior point solver from a threshold learner.

Given points x_1 <= ... <= x_n in d bits and a learner on d + 1 bits, let k = floor(n/2). The first
min(m, k) points become ones at 2x, the last min(m, n - k) become zeros at 2x + 1, and both are filled up to m examples by
ones at 0 and zeros at 2^(d+1) - 1. That sample is realizable, ties or not (2 x_k < 2 x_(k+1) + 1). If the threshold j errs on
fewer than min(m, k) examples, it is right about at least one real (not filler) one, so j > 2 x_1, and about at least one real
zero, so j <= 2 x_n + 1: floor(j/2) is in [x_1, x_n]. An empirical error below 1/2 on 2m examples is all it takes.

*Privacy.* The sample always has 2m examples. Let one point be added. If n >= 2m, it enters the m least or the m greatest
points and pushes one of them out, or enters neither: at most one replacement. If n < 2m, the middle may move across a point:
either k stays and the new point falls among the first k, so that x_k becomes a zero in place of a filler; or k grows and the
new point falls behind them, so that x_(k+1) becomes a one in place of a filler: two replacements. Hence
(2e, (1 + exp(e)) d) for a learner that is (e, d)-private under replace-one.

Its plain twin is `dpjax.verify.plain.interior.solver_law`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample, bucket
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.optimizers.quantiles.base import MOST_POINTS


@frozen
class LearnedInterior(InteriorPoint):
    """An interior point from a threshold learner; build it by `solver`.

    Attributes:
      learner: from `dpjax.learners.thresholds` or `threshold_learner`, on one bit more than the points.
      m: half the number of examples that the learner gets.
      limbs: of a point (static).
      capacity: rows of the learner's sample (static).
    """

    learner: Any
    m: Int[Array, ""]
    limbs: int = static()
    capacity: int = static()

    @property
    def bits(self) -> Any:  # type: ignore[override]
        """The points are in {0, ..., 2^bits - 1}."""
        return self.learner.bits - 1

    def sound(self) -> Bool[Array, ""]:
        """Whether the learner's sample has examples, and room for them, too."""
        m = jnp.asarray(self.m, jnp.int32)
        return super().sound() & (m >= 1) & (m <= self.capacity // 2)

    def labelled(self, points: Points) -> Sample:
        """The realizable sample of 2m examples; points are sorted."""
        limbs, m = self.learner.limbs, jnp.asarray(self.m, jnp.int32)
        one, end = wide.one(limbs), self._end()
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
        last = wide.subtract(self._end(), wide.one(self.learner.limbs))
        half = wide.shift_right(wide.minimum(outcome.hypothesis, last), jnp.int32(1))
        return wide.resize(half, self.limbs), outcome.status == Status.OK, outcome.info

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        limbs = self.learner.limbs
        low, stop = (wide.resize(wide.add(end, end), limbs) for end in (interval.low, interval.high))
        # The answer is in low, ..., high - 1 for the thresholds 2 low, ..., 2 high - 1; the greatest of all is cut to the one before.
        after = wide.add(self._end(), wide.one(limbs))
        stop = wide.select(wide.less(low, stop) & wide.equal(stop, self._end()), after, stop)
        return self.learner.probability(self.labelled(points), (low, stop))

    def guarantee(self) -> Guarantee:
        """The learner's guarantee under REPLACE_ONE for two replacements, as one under ADD_OR_REMOVE_ONE."""
        twice = self.learner.guarantee().under(REPLACE_ONE).group(2)
        return Guarantee(twice.epsilon, twice.delta, ADD_OR_REMOVE_ONE)

    def points_needed(self, beta: float) -> int:
        """2m: with at least this many points the solver fails with probability at most beta.

        This rests on the learner's own sample size for error 1/4. That is a statement about population error; for every learner here but
        one it is proved through the empirical error on any realizable sample, which is what is needed: at most m/2 <= m - 1 wrong examples
        (0 if m = 1). The exception is a semi-private learner, whose sample size is for samples from the distribution of its public points,
        which this sample does not come from.

        Raises:
          ValueError: the learner needs more than 2m examples, or is semi-private.
        """
        if getattr(self.learner, "public", None) is not None:
            raise ValueError(
                "learner must promise an error on any realizable sample; a semi-private one promises none on samples of "
                f"another distribution than its public points', got {type(self.learner).__name__}"
            )
        needed = self.learner.sample_size(alpha=0.25, beta=beta)
        if 2 * int(self.m) < needed:
            raise ValueError(f"m must be >= {-(-needed // 2)} for the learner to reach error 1/4, got {self.m}")
        return 2 * int(self.m)


def solver(*, learner: Any, m: int) -> LearnedInterior:
    """An interior point solver from a threshold learner; see the module.

    Args:
      learner: from `dpjax.learners.thresholds` or `threshold_learner`, on bits + 1 >= 2 bits for points in {0, ..., 2^bits - 1}.
      m: half the number of examples that the learner gets.

    Formal guarantees: `learner.guarantee().under(REPLACE_ONE).group(2)` under ADD_OR_REMOVE_ONE; between datasets of 2m points or more even
    without `group(2)`. Not promised: protection from floating-point side channels; a cryptographic generator.

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
