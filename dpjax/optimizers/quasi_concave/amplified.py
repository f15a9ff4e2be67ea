"""Amplified interior points (CLNSS §1.3.5, Theorem 1.2); the algorithm and its proof are in `amplification`.

Its plain twin is `dpjax.verify.plain.amplified`.
"""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting import REPLACE_ONE, Guarantee, basic
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains.events import Goal
from dpjax.optimizers.quasi_concave import amplification, base
from dpjax.optimizers.quasi_concave.base import QuasiConcave
from dpjax.optimizers.quasi_concave.recursion import Problem

DEEPEST = 4  # more levels than {0, ..., 2^4096} can use


@frozen
class Amplified(QuasiConcave):
    """The 2^(log* T) optimiser: N levels, and a budget for each mechanism and margin; see `amplification`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    budget: amplification.Budget
    limbs: int = static()
    relation: str = static()

    @property
    def levels(self) -> int:
        """N."""
        return self.budget.levels

    def _leaves(self) -> amplification.Budget:
        """The budget in the default float."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self.budget)

    def fits(self, data: Problem) -> Bool[Array, ""]:
        # Values of F, up to 2 alpha p, are counts and their halves.
        return super().fits(data) & (2 * data.alpha * data.promise <= arguments.most_counted())

    def draw(self, key: Array, problem: Problem) -> Any:
        run = amplification.sample(key, problem, self._leaves())
        return run.position, run.ok, run

    def law(self, problem: Problem, goal: Goal) -> Float[Array, "2"]:
        shares, within = goal.shares(problem.pieces.count), goal.within

        def judged(position: Array, piece: Array) -> Array:
            share = jnp.where(within.holds(position), shares[piece], 0.0)
            return jnp.stack([share, 1 - share])

        judgement, bottom = amplification.law(problem, self._leaves(), judged)
        return judgement.at[1].add(bottom)

    def masses(self, problem: Problem, outputs: int) -> Float[Array, "outcomes"]:
        """All points at once: each run's point is rewarded by the indicator vector of its position."""

        def here(position: Array, piece: Array) -> Array:
            return (jnp.arange(outputs, dtype=jnp.uint32) == position[-1]).astype(float)

        masses, bottom = amplification.law(problem, self._leaves(), here)
        return jnp.append(masses, bottom)

    def mechanisms(self) -> list[Guarantee]:
        """What the whole is composed of: the promise test, the last choice, and each level's choices of a block and of a point."""
        budget = self.budget
        delta = arguments.known("budget.delta", budget.delta)
        pure = [budget.test, budget.last, *budget.points]
        given = [(epsilon, 0.0) for epsilon in pure] + [(epsilon, delta) for epsilon in budget.blocks]
        return [Guarantee(arguments.known("budget", epsilon), delta, self.relation) for epsilon, delta in given]

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), if the mechanisms together keep it; else what they do keep."""
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        found = basic(self.mechanisms())
        return Guarantee(epsilon, delta, self.relation) if found.covers(epsilon, delta) else found

    def error(self, beta: float) -> float:
        """n/2 + p - R of `dpjax.optimizers.quasi_concave.amplification`, for the margins that were chosen when this was built.

        Raises:
          ValueError: beta is not above the failure probability that the margins use up.
        """
        beta, each = arguments.known_fraction("beta", beta), float(self.budget.beta)
        failure = beta - (2 * self.levels + 1) * each
        if failure <= 0:
            raise ValueError(f"beta must be > {beta - failure}, for which margins are made (see amplified), got {beta}")
        total = amplification.required_total((1 << int(self.bits)) + 1, self.budget, failure)
        return total / 2 + float(self.budget.slack(np))


def amplified(
    *,
    bits: int,
    epsilon: Any,
    delta: Any,
    beta: Any = 0.1,
    depth: int | None = None,
    relation: str = REPLACE_ONE,
) -> Amplified:
    """The optimiser with error 2^(log* T) over {0, ..., T}; see `Amplified`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2].
      beta: failure probability in (0, 1) for which the margins are made; `error(beta)` is available for this or more.
      depth: number N of levels, 1 to 4; the one with the least error if absent.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, delta). Not promised: protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, or a traced one where the depth has to be found.
    """
    fields = base.domain(bits, relation)
    epsilon, delta, beta = arguments.epsilon(epsilon), base.half(delta), arguments.fraction("beta", beta)
    if depth is None and any(arguments.is_traced(value) for value in (epsilon, delta, beta)):
        raise TypeError("depth must be given for a traced epsilon, delta or beta, got None")

    def build(levels: int) -> Amplified:
        budget = _budget((1 << int(fields["bits"])) + 1, epsilon, delta, beta, levels)
        return Amplified(**fields, epsilon=epsilon, delta=delta, budget=budget)

    if depth is not None:
        return build(arguments.integer("depth", depth, at_least=1, at_most=DEEPEST))
    return min((build(levels) for levels in range(1, DEEPEST + 1)), key=lambda optimizer: optimizer.error(beta))


def _budget(size: int, epsilon: Any, delta: Any, beta: Any, levels: int) -> amplification.Budget:
    """Shares of N levels, which together keep (epsilon, delta)."""
    each = beta / (2 * levels + 2)
    known = not any(arguments.is_traced(value) for value in (epsilon, delta, beta))
    parts = amplification.shares(size, delta, each, levels, np if known else jnp)
    test, last, *rest = _split(epsilon, parts)
    xp = jnp if arguments.is_traced(test) else np
    return amplification.Budget(
        test=test,
        last=last,
        blocks=xp.stack(rest[:levels]),
        points=xp.stack(rest[levels:]),
        delta=_split(delta, np.ones(levels))[0],
        beta=each,
    )


def _split(total: Any, parts: Any) -> list[Any]:
    """The total in proportion to the parts, rounded down on the host."""
    if arguments.is_traced(total) or arguments.is_traced(parts):
        return list(total * parts / parts.sum())
    shares = [Fraction(float(part)) for part in parts]
    return [np.float64(at_most(Fraction(float(total)) * share / sum(shares))) for share in shares]
