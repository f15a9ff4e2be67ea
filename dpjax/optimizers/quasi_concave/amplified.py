"""Amplified interior points (CLNSS §1.3.5, Theorem 1.2); the algorithm and its proof are in `amplification`.

Its plain twin is `dpjax.verify.plain.amplified`.
"""

from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting import REPLACE_ONE, Guarantee, basic, total_delta
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound
from dpjax.domains.events import Goal
from dpjax.optimizers.quasi_concave import amplification, base
from dpjax.optimizers.quasi_concave.base import QuasiConcave
from dpjax.optimizers.quasi_concave.recursion import Problem

DEEPEST = 4  # more levels than {0, ..., 2^4096} can use
ACCOUNTANTS = ("basic", "optimal")


@frozen
class Amplified(QuasiConcave):
    """The 2^(log* T) optimiser: N levels, and a budget for each mechanism and margin; see `amplification`."""

    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    budget: amplification.Budget
    limbs: int = static()
    levels: int = static()
    accountant: str = static()
    relation: str = static()

    def _leaves(self) -> amplification.Budget:
        """The budget in the default float."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self.budget)

    def sound(self) -> Bool[Array, ""]:
        beta = (2 * self.levels + 2) * self.budget.beta  # the total, which may be rounded to 1
        return super().sound() & sound(self.budget) & (beta > 0) & (beta <= 1)

    def fits(self, data: Problem) -> Bool[Array, ""]:
        # Values of F, up to 2 alpha p, are counts and their halves.
        return super().fits(data) & (2 * data.alpha * data.promise <= arguments.most_counted())

    def draw(self, key: Array, problem: Problem) -> Any:
        run = amplification.sample(key, problem, self._leaves(), self.levels)
        return run.position, run.ok, run

    def law(self, problem: Problem, goal: Goal) -> Float[Array, "2"]:
        shares, within = goal.shares(problem.pieces.count), goal.within

        def judged(position: Array, piece: Array) -> Array:
            share = jnp.where(within.holds(position), shares[piece], 0.0)
            return jnp.stack([share, 1 - share])

        judgement, bottom = amplification.law(problem, self._leaves(), self.levels, judged)
        return judgement.at[1].add(bottom)

    def masses(self, problem: Problem, outputs: int) -> Float[Array, "outcomes"]:
        """All points at once: each run's point is rewarded by the indicator vector of its position."""

        def here(position: Array, piece: Array) -> Array:
            return (jnp.arange(outputs, dtype=jnp.uint32) == position[-1]).astype(float)

        masses, bottom = amplification.law(problem, self._leaves(), self.levels, here)
        return jnp.append(masses, bottom)

    def mechanisms(self) -> dict[Guarantee, int]:
        """What the whole is composed of: N choices of a block, and N + 2 others (promise test, choices of a point, last level)."""
        epsilon, delta = (
            arguments.known(f"budget.{name}", getattr(self.budget, name)) for name in ("epsilon", "delta")
        )
        return _mechanisms(epsilon, delta, self.levels, self.relation)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), if the mechanisms together keep it by the accountant; else what they do keep."""
        epsilon, delta = (arguments.known(name, getattr(self, name)) for name in ("epsilon", "delta"))
        if self.accountant == "optimal":
            found = Guarantee(epsilon, total_delta(self.mechanisms(), epsilon), self.relation)
        else:
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
        total = amplification.required_total((1 << int(self.bits)) + 1, self.budget, self.levels, failure)
        return total / 2 + float(self.budget.slack(np))


def _mechanisms(epsilon: float, delta: float, levels: int, relation: str) -> dict[Guarantee, int]:
    return {Guarantee(2 * epsilon, delta, relation): levels, Guarantee(epsilon, 0.0, relation): levels + 2}


def amplified(
    *,
    bits: int,
    epsilon: Any,
    delta: Any,
    beta: Any = 0.1,
    depth: int | None = None,
    accountant: str = "basic",
    relation: str = REPLACE_ONE,
) -> Amplified:
    """The optimiser with error 2^(log* T) over {0, ..., T}; see `Amplified`.

    Args:
      bits: ceil(log2 T), 1 to 4096.
      epsilon: total, > 0, finite.
      delta: total, in (0, 1/2].
      beta: failure probability in (0, 1) for which the margins are made; `error(beta)` is available for this or more.
      depth: number N of levels, 1 to 4; the one with the least error if absent.
      accountant: "basic": epsilon/(3N + 2) and delta/N each. "optimal": these, or delta/(2N) each and the largest epsilon that fits,
        whichever errs less. For delta <= 1e-6 and N <= 2 these did; for delta = 1e-3, N = 3 and 64 bits the others err 5 % less.
      relation: the neighbouring relation under which Q has sensitivity 1.

    Formal guarantees: (epsilon, delta). Not promised: protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, or a traced one where depth or the optimal composition has to be found.
    """
    fields = base.domain(bits, relation)
    epsilon, delta, beta = arguments.epsilon(epsilon), base.half(delta), arguments.fraction("beta", beta)
    arguments.choice("accountant", accountant, ACCOUNTANTS)
    traced = any(arguments.is_traced(value) for value in (epsilon, delta, beta))
    if traced and (depth is None or accountant == "optimal"):
        rule = "depth must be given, and accountant be 'basic', for a traced epsilon, delta or beta"
        raise TypeError(f"{rule}, got depth={depth!r} and accountant={accountant!r}")

    def build(levels: int) -> Amplified:
        given = {**fields, "epsilon": epsilon, "delta": delta, "levels": levels, "accountant": accountant}
        basic = Amplified(**given, budget=_budget(epsilon, delta, beta, levels, "basic"))
        if accountant == "basic":
            return basic
        # What basic composition allows, the optimal one does, too; for small delta its shares err less.
        optimal = Amplified(**given, budget=_budget(epsilon, delta, beta, levels, "optimal"))
        return min(basic, optimal, key=lambda optimizer: optimizer.error(beta))

    if depth is not None:
        return build(arguments.integer("depth", depth, at_least=1, at_most=DEEPEST))
    return min((build(levels) for levels in range(1, DEEPEST + 1)), key=lambda optimizer: optimizer.error(beta))


def _budget(epsilon: Any, delta: Any, beta: Any, levels: int, accountant: str) -> amplification.Budget:
    """Shares of N levels, so that together they keep (epsilon, delta)."""
    each_epsilon, each_delta = _share(epsilon, 3 * levels + 2), _share(delta, levels)
    if accountant == "optimal":
        each_delta = _share(delta, 2 * levels)
        each_epsilon = _largest_epsilon(epsilon, delta, each_epsilon, each_delta, levels)
    return amplification.Budget(epsilon=each_epsilon, delta=each_delta, beta=beta / (2 * levels + 2))


def _share(total: Any, parts: int) -> Any:
    """total / parts, rounded down on the host."""
    return total / parts if arguments.is_traced(total) else np.float64(at_most(Fraction(float(total)) / parts))


def _largest_epsilon(epsilon: float, delta: float, low: float, each_delta: float, levels: int) -> Any:
    """The largest epsilon of each mechanism, by bisection from the share of basic composition, which always fits."""
    high = float(epsilon)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        fits = total_delta(_mechanisms(middle, float(each_delta), levels, REPLACE_ONE), float(epsilon)) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return np.float64(low)
