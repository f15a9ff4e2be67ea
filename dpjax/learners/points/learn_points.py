"""LearnPoints (BNS §3.1): the most frequent point with label 1, if it leads by enough.

q(x) counts the examples (x, 1). A replaced example changes at most two counts, by one each, and if it moves from the leader to another
point the gap may change by 2: no calibration of A_dist for gaps of sensitivity 1 is private here ((2,0) against (1,1)). "proved"
(`dpjax.mechanisms.stability`) is the general calibration; "printed" gives (2 epsilon, exp(2 epsilon) delta / 2). The second best count is
0 if only one point has ones: since d >= 1, there is another point. If there are no ones, all points tie, and the answer is ⊥ with
certainty. That is private, too: a neighbour has at most one example with label 1, hence a gap <= 1, and its leader is kept with probability
at most delta (for printed constants: at most what their guarantee says); in the other direction, the difference is 1 - (1 - delta) = delta.
⊥ is replaced by a random point (the paper) or by all-zero (Remark 3.3), so a run always has a hypothesis and its status is OK; info says
whether it was "bottom".

A random c_i errs on i and on the target, with error D(i) + D(target), which the proof of Lemma 3.2 overlooks; `bounds.learn_points` has
the repair.

Its plain twin is `dpjax.verify.plain.learn_points`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.concepts.points import Point
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.learners.points import base
from dpjax.learners.points.base import OnePointLearner, Seen
from dpjax.mechanisms import stability

BOTTOMS = ("random", "zero")
CALIBRATIONS = ("printed", "proved")


@frozen
class LearnPoints(OnePointLearner):
    """A_dist on the counts of (x, 1) (BNS §3.1); see the module."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    calibration: str = static()
    bottom: str = static()

    def looked_at(self, sample: Sample) -> Bool[Array, "n"]:
        return sample.y == 1

    def leader(self, seen: Seen) -> tuple[Int[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """(the point with most ones, ln P[kept], ln P[⊥]); the lowest point on ties."""
        best = jnp.max(seen.ones)
        index = jnp.argmax(seen.ones).astype(jnp.int32)
        second = jnp.max(seen.ones.at[index].set(0))  # 0 if no other point has ones
        log_p, log_q = stability.log_keep(
            best - second, epsilon=self.epsilon, delta=self.delta, calibration=self.calibration
        )
        return index, jnp.where(best > 0, log_p, -jnp.inf), jnp.where(best > 0, log_q, 0.0)

    def draw(self, key: Array, seen: Seen) -> tuple[Point, Bool[Array, ""], Any]:
        key_test, key_point = jax.random.split(key)
        index, log_p, log_q = self.leader(seen)
        kept = random.bernoulli(key_test, log_p, log_q)
        position = seen.points[index]
        if self.bottom == "random":
            position = wide.select(kept, position, wide.random_bits(key_point, self.bits, self.limbs))
        zero = ~kept if self.bottom == "zero" else jnp.bool_(False)
        return Point.shown(position, zero), jnp.bool_(True), {"bottom": ~kept, "leader": seen.points[index]}

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        index, log_p, log_q = self.leader(seen)
        chosen = jnp.where(jnp.arange(seen.ones.shape[0], dtype=jnp.int32) == index, log_p, -jnp.inf)
        nothing = jnp.full_like(log_q, -jnp.inf)
        if self.bottom == "zero":
            return jnp.concatenate([jnp.stack([log_q, nothing]), chosen])
        each = log_q - jnp.asarray(self.bits, float) * math.log(2.0)
        mixed = logspace.logaddexp(chosen, jnp.full_like(chosen, each))
        rest = jnp.stack([nothing, each + seen.log_unseen()])
        return jnp.concatenate([rest, jnp.where(seen.valid, mixed, -jnp.inf)])

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & self._test().sound()

    def guarantee(self) -> Guarantee:
        """The guarantee of A_dist for these constants."""
        return self._test().guarantee()

    def claimed_guarantee(self) -> Guarantee:
        """(epsilon, delta), which the paper claims; false for "printed"."""
        return self._test().claimed_guarantee()

    def _test(self) -> stability.Stability:
        return stability.mechanism(epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Lemma 3.2 as repaired; see `bounds.learn_points`.

        Raises:
          ValueError: ⊥ becomes a random point, and 2^bits < 2/(alpha beta).
        """
        bits, epsilon, delta = int(self.bits), float(self.epsilon), float(self.delta)
        size = bounds.learn_points(bits, alpha, beta, epsilon, delta, calibration=self.calibration, bottom=self.bottom)
        return whole(size)


def learn_points(
    *, bits: int, epsilon: Any, delta: Any, calibration: str = "proved", bottom: str = "random"
) -> LearnPoints:
    """LearnPoints (BNS §3.1).

    Formal guarantees: "proved" (epsilon, delta), "printed" (2 epsilon, exp(2 epsilon) delta / 2), under REPLACE_ONE. Not promised:
    protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: d, 1 to 4096.
      epsilon: > 0, finite.
      delta: in (0, 1), at most 1/2 if proved.
      calibration: "proved" or "printed" constants of A_dist.
      bottom: what ⊥ becomes: a "random" point (proper) or "zero".

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    arguments.choice("calibration", calibration, CALIBRATIONS)
    test = stability.mechanism(epsilon=epsilon, delta=delta, calibration=calibration)
    return LearnPoints(
        **base.domain(bits),
        epsilon=test.epsilon,
        delta=test.delta,
        calibration=calibration,
        bottom=arguments.choice("bottom", bottom, BOTTOMS),
    )
