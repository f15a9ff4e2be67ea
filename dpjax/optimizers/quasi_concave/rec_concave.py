"""RecConcave (BNS §3.3, Figure 5) for any quasi-concave quality; the algorithm is in `dpjax.optimizers.rec_concave`."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains.events import Goal
from dpjax.optimizers import rec_concave as recursive
from dpjax.optimizers.quasi_concave import base
from dpjax.optimizers.quasi_concave.base import QuasiConcave
from dpjax.optimizers.rec_concave import Problem


@frozen
class QuasiConcaveRecConcave(QuasiConcave):
    """RecConcave with `proved` A_dist: N levels, each mechanism with epsilon/(3N - 2), A_dist with delta/(2(N - 1)); see `rec_concave`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    levels: int = static()
    relation: str = static()

    def budget(self, xp: Any = jnp) -> recursive.Budget:
        """What each of N exponential mechanisms and 2(N - 1) A_dists may spend."""
        epsilon, delta = xp.asarray(self.epsilon, float), xp.asarray(self.delta, float)
        parts = 3 * self.levels - 2
        return recursive.Budget(
            epsilon=epsilon / parts, delta=delta / max(2 * (self.levels - 1), 1), calibration="proved"
        )

    def draw(self, key: Array, problem: Problem) -> Any:
        run = recursive.sample(key, problem, self.budget(), self.levels)
        return run.point.position, run.ok, run

    def law(self, problem: Problem, goal: Goal) -> Float[Array, "2"]:
        return recursive.law(problem, self.budget(), self.levels, goal)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) by basic composition; delta is 0 if a single level runs."""
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        return Guarantee(epsilon, delta if self.levels > 1 else 0.0, self.relation)

    def error(self, beta: float) -> float:
        """The additive error of RecConcave, from its own stages (the paper's Lemma 3.14 has larger constants).

        Let D be alpha p at some level, and each of the 2N - 1 events below fail with probability beta' = beta/(2N - 1). For the answer k
        of the recursion, L(k) >= p - 5/8 D and L(k+1) <= p - 3/8 D, if D/8, the recursion's own additive error, is enough for it. In
        one of the partitions the best point lies 2^(k+1) points away from the ends of its block, or these are ends of the range: as
        fewer than 2^(k+1) points have Q > L(k+1), and they are neighbours, its gap is >= 3/8 D, enough for A_dist if that is
        >= 2 + (2/e)(ln(1/(2 delta)) + ln(1/(2 beta'))). Of the at most 16 2^k points released, 2^k then have Q >= p - 5/8 D, so the
        exponential mechanism fails with probability at most 16 exp(-3 e D/16). At the last level (2/e) ln(size/beta') is enough.
        """
        beta = float(arguments.fraction("beta", beta)) / (2 * self.levels - 1)
        budget = self.budget(np)
        size = (1 << int(self.bits)) + 1
        for _ in range(self.levels - 1):
            size = (size - 2).bit_length() + 1  # {0, ..., T} to {0, ..., ceil(log2 T)}
        last = 8 ** (self.levels - 1) * 2 / float(budget.epsilon) * base.log_ratio(size, beta)
        if self.levels == 1:
            return last
        stable = 2 - 2 / float(budget.epsilon) * math.log(4 * float(budget.delta) * beta)
        choice = 16 / (3 * float(budget.epsilon)) * math.log(16 / beta)
        return max(last, 8 ** (self.levels - 2) * max(8 / 3 * stable, choice))


def rec_concave(
    *, bits: int, epsilon: Any, delta: Any, depth: int, relation: str = REPLACE_ONE
) -> QuasiConcaveRecConcave:
    """RecConcave over {0, ..., T}; see `QuasiConcaveRecConcave`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2]; 0 is allowed where a single level runs.
      depth: bound >= 1 on the number of levels; more than 3 never run.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, delta). Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    fields = base.domain(bits, relation)
    levels = recursive.levels_run(1 << bits, arguments.integer("depth", depth, at_least=1))
    return QuasiConcaveRecConcave(
        **fields, epsilon=arguments.epsilon(epsilon), delta=base.half(delta, positive=levels > 1), levels=levels
    )
