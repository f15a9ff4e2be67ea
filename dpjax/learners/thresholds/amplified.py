"""The 2^(log* d) optimiser on the number of correctly labelled examples (CLNSS Theorem 1.2 in place of RecConcave, BNS §3.4).

Its plain twin is that of the optimiser, `dpjax.verify.plain.amplified`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import whole
from dpjax.domains.events import Goal
from dpjax.domains.ordered import Pieces
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers import quasi_concave
from dpjax.optimizers.quasi_concave.recursion import Problem


@frozen
class ThresholdAmplified(ThresholdLearner):
    """`quasi_concave.amplified` on Q(j) = number of examples c_j labels correctly, promise n, approximation alpha/2.

    Attributes:
      optimizer: the optimiser on {0, ..., 2^d}.
      alpha: approximation parameter.
    """

    optimizer: quasi_concave.Amplified
    alpha: Float[Array, ""]

    @property
    def bits(self) -> Any:  # type: ignore[override]
        """d."""
        return self.optimizer.bits

    @property
    def limbs(self) -> int:  # type: ignore[override]
        """Limbs of a threshold."""
        return self.optimizer.limbs

    def problem(self, pieces: Pieces) -> Problem:
        """The promise problem: all n examples correct, up to a fraction alpha/2."""
        promise = pieces.values[0] + pieces.values[-1]  # zeros + ones
        return Problem(pieces=pieces, promise=promise, alpha=jnp.asarray(self.alpha, float) / 2)

    def draw(self, key: Array, pieces: Pieces) -> Any:
        return self.optimizer.draw(key, self.problem(pieces))

    def law(self, pieces: Pieces, goal: Goal) -> Float[Array, "2"]:
        return self.optimizer.law(self.problem(pieces), goal)

    def guarantee(self) -> Guarantee:
        """The optimiser's guarantee, under REPLACE_ONE: Q has sensitivity 1."""
        return self.optimizer.guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The greater of what the optimiser and Theorem 2.14 need, each at alpha/2 and beta/2.

        Raises:
          TypeError, ValueError: alpha or beta outside (0, 1), or below those the learner was made for.
        """
        own, beta = self.own_alpha(alpha), arguments.known_fraction("beta", beta)
        return whole(max(bounds.agnostic(1, own / 2, beta / 2), self.optimizer.required_promise(beta / 2, own / 2)))


def amplified(
    *, bits: int, epsilon: Any, delta: Any, alpha: Any, beta: Any = 0.1, depth: int | None = None
) -> ThresholdAmplified:
    """The learner by the 2^(log* d) optimiser; see `ThresholdAmplified`.

    Args:
      bits: d, 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2].
      alpha: approximation parameter, in (0, 1).
      beta: failure probability for which the optimiser's margins are chosen (it gets beta/2).
      depth: number of levels, 1 to 4; if absent, the one with the least error.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, for any labels. Not promised: protection from floating-point side channels; a
    cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    beta = arguments.fraction("beta", beta)
    optimizer = quasi_concave.amplified(bits=bits, epsilon=epsilon, delta=delta, beta=beta / 2, depth=depth)
    return ThresholdAmplified(optimizer=optimizer, alpha=arguments.fraction("alpha", alpha))
