"""The exponential mechanism over all points (McSherry and Talwar 2007; BNS Proposition 2.26).

Its plain twin, point by point, is `dpjax.verify.plain.exponential`.
"""

import math
from typing import Any

from jaxtyping import Array, Float, Int

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains.events import Goal
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.quasi_concave import base
from dpjax.optimizers.quasi_concave.base import QuasiConcave
from dpjax.optimizers.quasi_concave.recursion import Problem


@frozen
class QuasiConcaveExponential(QuasiConcave):
    """The exponential mechanism over all points; it needs no promise and never fails to answer."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    relation: str = static()

    def _mechanism(self) -> piecewise.ExponentialPiecewise:
        return piecewise.ExponentialPiecewise(epsilon=self.epsilon, relation=self.relation)

    def draw(self, key: Array, problem: Problem) -> Any:
        return self._mechanism().draw(key, problem.pieces)

    def law(self, problem: Problem, goal: Goal) -> Float[Array, "2"]:
        return self._mechanism().law(problem.pieces, goal)

    def log_mass(self, problem: Problem, goal: Goal) -> Float[Array, ""]:
        return self._mechanism().log_mass(problem.pieces, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0): BNS Proposition 2.26 (i)."""
        return self._mechanism().guarantee()

    def error(self, beta: float) -> float:
        """(2/epsilon) ln((2^bits + 1)/beta): BNS Proposition 2.26 (ii)."""
        beta = arguments.known_fraction("beta", beta)
        return 2 / float(self.epsilon) * (math.log((1 << int(self.bits)) + 1) - math.log(beta))


def exponential(*, bits: int, epsilon: Any, relation: str = REPLACE_ONE) -> QuasiConcaveExponential:
    """The exponential mechanism over {0, ..., T}.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: > 0, finite.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, 0). Not promised: protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return QuasiConcaveExponential(**base.domain(bits, relation), epsilon=arguments.epsilon(epsilon))
