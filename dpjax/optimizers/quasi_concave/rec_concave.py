"""RecConcave (BNS §3.3, Figure 5) for any quasi-concave quality; the algorithm is in `dpjax.optimizers.quasi_concave.recursion`.

Its plain twin is `dpjax.verify.plain.rec_concave`.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains.events import Goal
from dpjax.optimizers.quasi_concave import base, recursion
from dpjax.optimizers.quasi_concave.base import QuasiConcave
from dpjax.optimizers.quasi_concave.recursion import Problem
from dpjax.optimizers.quasi_concave.split import Budget, Split, checked


@frozen
class QuasiConcaveRecConcave(QuasiConcave):
    """RecConcave with `proved` A_dist: N levels, each mechanism with epsilon/(3N - 2), A_dist with delta/(2(N - 1)); or each with what
    the split gives it. See `rec_concave`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    levels: int = static()
    relation: str = static()
    split: Split | None = None

    def budget(self) -> Budget | Split:
        """The budget of each of N exponential mechanisms and 2(N - 1) A_dists."""
        if self.split is not None:
            return self.split.floats()
        epsilon, delta = jnp.asarray(self.epsilon, float), jnp.asarray(self.delta, float)
        parts = 3 * self.levels - 2
        return Budget(epsilon=epsilon / parts, delta=delta / max(2 * (self.levels - 1), 1), calibration="proved")

    def draw(self, key: Array, problem: Problem) -> Any:
        run = recursion.sample(key, problem, self.budget(), self.levels)
        return run.point.position, run.ok, run

    def law(self, problem: Problem, goal: Goal) -> Float[Array, "2"]:
        return recursion.law(problem, self.budget(), self.levels, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), or the sums of the split, by basic composition; delta is 0 if a single level runs."""
        if self.split is not None:
            return self.split.total(self.relation)
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        return Guarantee(epsilon, delta if self.levels > 1 else 0.0, self.relation)

    def error(self, beta: float) -> float:
        """`bounds.rec_concave_error`, from the algorithm's own stages (the paper's Lemma 3.14 has larger constants)."""
        known = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        epsilon, delta = known if self.split is None else self.split.least()
        return bounds.rec_concave_error(1 << int(self.bits), self.levels, beta, epsilon, delta)


def rec_concave(
    *, bits: int, epsilon: Any, delta: Any, depth: int, relation: str = REPLACE_ONE, split: Split | None = None
) -> QuasiConcaveRecConcave:
    """RecConcave over {0, ..., T}; see `QuasiConcaveRecConcave`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2]; 0 is allowed where a single level runs.
      depth: bound >= 1 on the number of levels; more than 3 never run.
      relation: the neighbouring relation under which Q has sensitivity 1.
      split: the budget of each mechanism, within (epsilon, delta) by basic composition; equal shares if absent.

    Formal guarantees: (epsilon, delta). Not promised: protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    fields = base.domain(bits, relation)
    # A NumPy integer would overflow in the power of two.
    levels = bounds.levels_run(1 << int(fields["bits"]), arguments.integer("depth", depth, at_least=1))
    epsilon, delta = arguments.epsilon(epsilon), base.half(delta, positive=levels > 1)
    split = checked(split, epsilon=epsilon, delta=delta, levels=levels)
    return QuasiConcaveRecConcave(**fields, epsilon=epsilon, delta=delta, levels=levels, split=split)
