"""LearnThresholds: RecConcave on the number of correctly labelled examples (BNS §3.4, Theorem 3.18).

Its plain twin is `dpjax.verify.plain.rec_concave`.
"""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.domains import wide
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds import base
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.quasi_concave import recursion as optimizer
from dpjax.optimizers.quasi_concave.split import Budget, Split, checked

CALIBRATIONS = ("printed", "proved")


@frozen
class ThresholdRecConcave(ThresholdLearner):
    """LearnThresholds (BNS §3.4): RecConcave on Q(j) = number of examples c_j labels correctly, promise n, approximation alpha/2.

    With `printed`, every mechanism gets (epsilon/(3 depth), delta/(3 depth)), and A_dist has the paper's constants. With `proved`, and N
    levels that really run, each of the 3N - 2 mechanisms gets epsilon/(3N - 2), and each of the 2(N - 1) runs of A_dist gets
    delta/(2(N - 1)) and constants that keep it; or each mechanism gets what `split` says.

    Attributes:
      bits: d.
      epsilon, delta: the total budget.
      alpha: approximation parameter.
      limbs: of a threshold (static).
      depth: the bound on the number of levels (static).
      levels: N, how many levels run (static).
      calibration: "proved" or "printed" (static).
      split: what each mechanism may spend; None for equal shares.
    """

    takes_scaled: ClassVar[bool] = True

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    limbs: int = static()
    depth: int = static()
    levels: int = static()
    calibration: str = static()
    split: Split | None = None

    def _shares(self) -> tuple[float, float]:
        """Into how many parts epsilon and delta are cut."""
        if self.calibration == "printed":
            return 3.0 * self.depth, 3.0 * self.depth
        return 3.0 * self.levels - 2, max(2.0 * (self.levels - 1), 1.0)

    def budget(self) -> Budget | Split:
        """What each mechanism may spend."""
        if self.split is not None:
            return self.split.floats()
        for_epsilon, for_delta = self._shares()
        return Budget(
            epsilon=jnp.asarray(self.epsilon, float) / for_epsilon,
            delta=jnp.asarray(self.delta, float) / for_delta,
            calibration=self.calibration,
        )

    def problem(self, pieces: Pieces) -> optimizer.Problem:
        """The promise problem: all n examples correct, up to a fraction alpha/2."""
        promise = pieces.values[0] + pieces.values[-1]  # zeros + ones
        return optimizer.Problem(pieces=pieces, promise=promise, alpha=jnp.asarray(self.alpha, float) / 2)

    def draw(self, key: Array, pieces: Pieces) -> Any:
        run = optimizer.sample(key, self.problem(pieces), self.budget(), self.levels)
        return run.point.position, run.ok, run

    def law(self, pieces: Pieces, goal: Goal) -> Array:
        return optimizer.law(self.problem(pieces), self.budget(), self.levels, goal)

    def guarantee(self) -> Guarantee:
        """What is proved, by basic composition, under REPLACE_ONE; see `dpjax.optimizers.quasi_concave.recursion`.

        For `printed` that is ((5N-4) e, (N-1) exp(2e) d), e and d the shares of one mechanism: within (epsilon, delta) for depth
        up to 2 and epsilon <= 3 ln 6, and more than epsilon from depth 3 on. `claimed_guarantee` is what Theorem 3.15 says.
        """
        if self.split is not None:
            return self.split.total(REPLACE_ONE)
        levels = self.levels
        if self.calibration == "proved":
            return Guarantee(float(self.epsilon), float(self.delta) if levels > 1 else 0.0, REPLACE_ONE)
        for_epsilon, for_delta = self._shares()
        epsilon, delta = float(self.epsilon) / for_epsilon, float(self.delta) / for_delta
        total = (levels - 1) * math.exp(min(2 * epsilon, 700.0)) * delta
        return Guarantee((5 * levels - 4) * epsilon, min(total, 1.0), REPLACE_ONE)

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta): Theorem 3.15's claim for the printed constants."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples for the learner's own alpha, by its constants; see `bounds.learn_thresholds`.

        With a split, the number is that for equal shares of the split's least: a valid but weak bound; `dpjax.least_n` is to be preferred.

        Raises:
          ValueError: an alpha below the learner's own, which no number of examples achieves.
        """
        own = self.own_alpha(alpha)
        budget = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        if self.split is not None:
            budget = self.split.least()
        return whole(
            bounds.learn_thresholds(int(self.bits), self.depth, own, beta, *budget, calibration=self.calibration)
        )


def rec_concave(
    *,
    bits: int,
    epsilon: Any,
    delta: Any,
    alpha: Any,
    depth: int,
    calibration: str = "proved",
    split: Split | None = None,
) -> ThresholdRecConcave:
    """LearnThresholds; see `ThresholdRecConcave`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1); 0 is allowed where no A_dist runs (depth 1, or d <= 5).
      alpha: approximation parameter of LearnThresholds, in (0, 1); RecConcave runs at alpha/2.
      depth: bound N >= 1 on the number of levels; more than 3 never run for d <= 4096.
      calibration: "proved" (the stated guarantee holds) or "printed" (the paper's constants to the letter).
      split: what each mechanism may spend, within (epsilon, delta) by basic composition; equal shares if absent. Only with "proved".

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    depth = arguments.integer("depth", depth, at_least=1)
    levels = bounds.levels_run(1 << bits, depth)
    calibration = arguments.choice("calibration", calibration, CALIBRATIONS)
    if split is not None and calibration == "printed":
        raise ValueError("split must be absent for printed constants, which do not keep what A_dist is given")
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta, positive=levels > 1)
    return ThresholdRecConcave(
        **base.domain(bits),
        epsilon=epsilon,
        delta=delta,
        alpha=arguments.fraction("alpha", alpha),
        depth=depth,
        levels=levels,
        calibration=calibration,
        split=checked(split, epsilon=epsilon, delta=delta, levels=levels),
    )
