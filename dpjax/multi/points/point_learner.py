"""PointLearner (MULTI Algorithm 5): k points at once, PAC.

1. Release noisy counts of the points by Algorithm 2 (`dpjax.sanitizers.points`) with (epsilon/2, delta/2); G, the heavy points, are those
whose noisy count is at least `heavy`. 2. A choice V = (v_x) of one vector v_x of k labels for every x in G has the score
Q(S, V) = min_x #{(x, v_x) in S}, of sensitivity 1; A_dist keeps the best V with (epsilon/2, delta/2), or the answer is ⊥. 3. h_j is the
least x in G with v_x,j = 1, or all-zero if there is none: post-processing of (G, V) ("let x be s.t." in the paper; only agnostic data
leave a choice).

*The gap, exactly.* With a_x, b_x the largest and the second largest count of a vector at x, the best V has Q1 = min_x a_x. Any other V
differs somewhere; the best of them differ at one x only, where they take the runner-up: Q2 = max_x min(b_x, min over y != x of a_y). All
2^k >= 2 vectors are candidates, so b_x = 0 where only one was seen. Two scores each move by at most 1: the gap has sensitivity 2. If G is
empty there is only one V, a constant: it is released, and every h_j is all-zero. A_dist is private for each fixed G, on any data (ties go
to the least vector); G itself is an outcome of step 1, so basic composition applies. With printed constants of A_dist the total is
(3 epsilon/2, delta/2 + exp(epsilon) delta/4).

*printed.* Algorithm 2 at alpha/60 (low = alpha n/240, high = alpha n/120), whose answers make a database accurate to alpha/30; heavy =
alpha n/15, A_dist printed. Private only if exp(-epsilon n alpha/960 + epsilon/4) <= delta/2: n is an argument, and refused if too small.
Theorem 40 with its constants is `bounds.point_learner_exact`.

*proved.* The sanitizer need not be accurate, and n need not be known. Let g be the gap at which A_dist fails with probability beta/4,
rounded up, and take low = g - 1, high = heavy = low + 1 + (4/epsilon) ln(1/delta) (`sanitizers.points.histogram` at (epsilon/2, delta/2)).
Every heavy point surely occurs at least g times; if labels are consistent, so does its one vector and no other, hence the gap is >= g. A
point of count at least r = high + (4/epsilon) ln(2/(alpha beta)) is heavy except with probability alpha beta/4. So all points of
mass > alpha (fewer than 1/alpha) are heavy, and all h_j good, except with probability beta/4 + beta/4 + P[Bin(n, alpha) < r]/alpha, and n
is the least that makes the last term at most beta/2. A point that is not heavy costs an error of its own mass, at most alpha.

Its plain twin is `dpjax.verify.plain.point_learner.point_learner_law`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, basic
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains import groups
from dpjax.mechanisms import stability
from dpjax.multi.points.base import Items, OfItems, distinct_points, gap
from dpjax.sanitizers import points as sanitizer
from dpjax.sanitizers.points import NoisyCounts

CALIBRATIONS = ("printed", "proved")


@frozen
class PointLearner(OfItems):
    """MULTI Algorithm 5; see the module.

    `counts` holds the budget of step 1. A_dist has the budget (epsilon/2, delta/2), or that of `test` if it is given, for a custom split:
    then `guarantee` adds up the budgets of `counts` and `test`, whatever epsilon and delta are.

    Attributes:
      bits: d.
      epsilon, delta: the total budget.
      alpha: error for which the printed thresholds are chosen.
      beta: failure probability for which the proved threshold is chosen.
      heavy: the noisy count from which on a point is heavy.
      counts: the noisy counts of points, step 1.
      limbs: of a point (static).
      k: number of concepts (static).
      calibration: "proved" or "printed" (static).
      test: A_dist of step 2 with a budget of its own, or None.
    """

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    beta: Float[Array, ""]
    heavy: Float[Array, ""]
    counts: NoisyCounts
    limbs: int = static()
    k: int = static()
    calibration: str = static()
    test: stability.Stability | None = None

    def items(self, fine: groups.Groups) -> Items:
        return distinct_points(fine, self.limbs)

    def log_keep(self, items: Items, heavy: Bool[Array, "m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        distance, test = gap(items.first, items.second, heavy), self.choice()
        return stability.log_keep(distance, epsilon=test.epsilon, delta=test.delta, calibration=test.calibration)

    def choice(self) -> stability.Stability:
        """A_dist."""
        if self.test is not None:
            return self.test
        return stability.Stability(epsilon=self.epsilon / 2, delta=self.delta / 2, calibration=self.calibration)

    def sound(self) -> Bool[Array, ""]:
        alpha, beta = (jnp.asarray(part, float) for part in (self.alpha, self.beta))
        good = (alpha > 0) & (alpha <= 1) & (beta > 0) & (beta <= 1)  # float32 may round up to 1
        return super().sound() & good & (jnp.asarray(self.delta, float) > 0)

    def guarantee(self) -> Guarantee:
        """What is proved for the constants in use, by basic composition; no guarantee if n is too small for it."""
        return basic([self.counts.guarantee(), self.choice().guarantee()])

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta), which the paper claims; false for "printed"."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Theorem 40 with its constants, the same for every k; see `bounds.point_learner_exact`.

        Raises:
          ValueError: an alpha below the printed learner's own, or a beta below the proved one's; a custom split, for which nothing is
            proved about n.
        """
        if self.test is not None:
            raise ValueError(
                "test must be absent for a sample size by theorem: with a split of one's own, n follows from the law"
            )
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        smallest, given, own = (
            ("alpha", alpha, self.alpha) if self.calibration == "printed" else ("beta", beta, self.beta)
        )
        if given < own:
            raise ValueError(f"{smallest} must be >= {own}, which this learner was built for, got {given}")
        epsilon, delta = float(self.epsilon), float(self.delta)
        if self.calibration == "proved":
            return bounds.point_learner_above(alpha, beta, epsilon, float(self.counts.high))
        return bounds.point_learner_exact(float(self.alpha), beta, epsilon, delta, calibration="printed")


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

    Formal guarantees: "proved" (epsilon, delta) for every n, "printed" (3 epsilon/2, delta/2 + exp(epsilon) delta/4), under REPLACE_ONE,
    labels arbitrary. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: d. k: number of concepts.
      epsilon: > 0. delta: in (0, 1).
      alpha: error, in (0, 1); it sets the printed thresholds (proved ones do not depend on it).
      beta: failure probability, in (0, 1), which sets the proved threshold `low` (printed ones do not depend on it).
      n: number of examples, public; needed by "printed" only, whose privacy depends on it.
      calibration: "proved" or "printed".
      allow_unproved: whether to simulate "printed" below the n that its privacy needs; `guarantee()` is then none.

    Raises:
      TypeError, ValueError: an argument out of range; for "printed", no n or one that is too small.
    """
    k = arguments.size("k", k)
    arguments.choice("calibration", calibration, CALIBRATIONS)
    arguments.flag("allow_unproved", allow_unproved)
    if n is not None and not arguments.is_traced(n):
        arguments.size("n", n)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    alpha, beta = arguments.fraction("alpha", alpha), arguments.fraction("beta", beta)
    if calibration == "proved":
        low = _least_count(beta, epsilon, delta) - 1
        counts: Any = sanitizer.histogram(bits=bits, n=1, epsilon=epsilon / 2, delta=delta / 2, low=low)
        heavy = counts.high
    else:
        if n is None:
            raise ValueError('n must be given for calibration="printed": its thresholds and its privacy depend on it')
        part = alpha * bounds.SANITIZED
        counts = sanitizer.release(
            bits=bits, n=n, epsilon=epsilon / 2, delta=delta / 2, alpha=part, allow_unproved=allow_unproved
        )
        heavy = counts.n * alpha * bounds.HEAVY
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
    """`bounds.point_learner_least_count`, for traced numbers, too."""
    if any(map(arguments.is_traced, (beta, epsilon, delta))):
        return jnp.ceil(bounds.stability_gap(beta / 4, epsilon / 2, delta / 2, xp=jnp))
    return bounds.point_learner_least_count(float(beta), float(epsilon), float(delta))
