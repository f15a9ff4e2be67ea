"""Gaussian elimination on the whole sample: the baseline without privacy.

Its plain twin, which tries all parities, is `dpjax.verify.plain.parity_learner.vote`.
"""

import jax.numpy as jnp

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import gf2
from dpjax.multi.parities import base
from dpjax.multi.parities.base import Leading, ManyParitiesLearner


@frozen
class Elimination(ManyParitiesLearner):
    """Non-private baseline: the k parities consistent with all examples; ⊥ if there are none, or more than one."""

    bits: int = static()
    k: int = static()

    def prepare(self, sample: MultiSample) -> Leading:
        solved = gf2.solve(sample.x[:, ::-1], sample.y, columns=self.bits, n_valid=sample.n_valid)
        determined = (solved.rank == self.bits) & solved.consistent
        return Leading(
            hypothesis=base.parities(solved.unknowns, self.k),
            log_p=jnp.where(determined, 0.0, -jnp.inf),
            log_q=jnp.where(determined, -jnp.inf, 0.0),
            info={"rank": solved.rank, "consistent": solved.consistent},
            sample=sample,
        )

    def guarantee(self) -> Guarantee:
        """Nothing is promised."""
        return Guarantee.none(REPLACE_ONE)

    def uniform_failure(self, n: int) -> float:
        """P[n uniform points do not span {0,1}^d], which is exactly what can go wrong."""
        return bounds.rank_deficiency(arguments.integer("n", n, at_least=1), self.bits)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n with `uniform_failure` <= beta; the same for every k and every alpha < 1/2."""
        base.check_alpha(alpha)
        return bounds.elimination_parities(self.bits, beta)


def elimination(*, bits: int, k: int) -> Elimination:
    """The non-private baseline for k parities of d = bits, 1 <= bits <= 1024.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return Elimination(**base.domain(bits, k))
