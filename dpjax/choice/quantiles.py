"""Quantiles at any fractions: all ranks within alpha n of f n, but with probability beta, whatever the data.

- `permute_and_flip`: for one fraction some point of the domain has a rank error of 0, and at most 2^d - 1 others more than t: each of
  these is accepted with e^(-lambda t) times its probability at most. The first one is released unless one of them comes before it and is
  accepted, so that P[error > t] <= 1 - int_0^1 (1 - u e^(-lambda t))^(2^d - 1) du <= 1 - (1 - e^-s)/s, s = 2^d e^(-lambda t). The q runs
  have their own coins, so each may fail with 1 - (1 - beta)^(1/q). From t on half a rank is left for f n, which is rounded to a rank where
  the error is measured: n = (t + 1/2)/alpha.
- `direct`: m - 1 ranks for the solver and 1/2 for rounding, m half the points that the best solver needs with its share.
- `recursive` (all multiples of 2^-L): its `rank_error`, and one rank more a level for each further point that equal points and equal
  tie-breaks may share: of n points (2^20 at least) c + 1 share 32 random bits with probability at most C(n, c + 1) 2^(-32 c), which is
  charged to beta.
- `inverse_sensitivity`: its own `sample_size`, which counts all tuples; that of `joint` is always larger.
- `approximate`: its own `sample_size`, for n points at most.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from dpjax.accounting import exponential_rate
from dpjax.choice import interior_points
from dpjax.choice.base import LARGEST, Candidate, Offer, Question, UnavailableError, optimal_each, share_of
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.approximate import MOST_BITS
from dpjax.optimizers.quantiles.rank_exponential import range_sums
from dpjax.optimizers.quantiles.recursive import FOR_TIES, MOST_LEVELS, log_shared, rank_error

TIES = 32  # bits that break them
MOST_RUNS = 2**12
MANY = 2**20  # points, for which ties are reckoned with at least


def permute_and_flip_ranks(bits: int, fractions: np.ndarray, epsilon: float, beta: float) -> float:
    """t of the module: with probability 1 - beta no rank error exceeds it."""
    ranges, _ = range_sums(fractions, np)
    each = -math.expm1(math.log1p(-beta) / len(fractions))
    return max(0.0, (bits * math.log(2.0) - _log_others(each)) * ranges / epsilon)


def _log_others(beta: float) -> float:
    """ln of the s at which 1 - (1 - e^-s)/s is beta: it lies between 2 beta and 2 beta/(1 - beta), as s/(2 + s) <= that <= s/2.

    >>> s = math.exp(_log_others(0.3))
    >>> round(1 - (1 - math.exp(-s)) / s, 9)
    0.3
    """

    def excess(log_s: float) -> float:
        s = math.exp(log_s)
        series = s / 2 * (1 - s / 3 * (1 - s / 4 * (1 - s / 5)))  # where digits would cancel
        return math.log(series if s < 0.01 else 1 + math.expm1(-s) / s) - math.log(beta)

    low = math.log(2 * beta)
    return float(optimize.brentq(excess, low - 1e-6, low - math.log1p(-beta) + 1e-6, xtol=1e-12))


def permute_and_flip(question: Question) -> Offer:
    """By its worst case."""
    epsilon, _ = question.step()
    ranks = permute_and_flip_ranks(question.bits, np.asarray(question.fractions), epsilon, question.beta)
    given: dict[str, Any] = {"bits": question.bits, "fractions": question.fractions, "epsilon": epsilon}
    return Offer(
        _points(ranks + 0.5, question.alpha), lambda n: quantiles.permute_and_flip(**given), "permute_and_flip"
    )


def direct_plan(
    question: Question, runs: int, *, roughly: bool = False
) -> tuple[interior_points.Solver, int, dict[str, Any]]:
    """(the solver of a run, m, how runs are composed): basic composition, or the optimal one if delta makes that cheaper.

    Roughly: by theorems alone, and without TreeLog's plan.
    """
    plans = []
    beta = question.beta / runs
    each = share_of(question.epsilon, question.delta, 2 * runs)
    own = each.delta * 2 / (1 + math.exp(min(each.epsilon, 700.0)))
    steps = 1 if roughly else None
    solver, points = interior_points.best(question.bits, each.epsilon, own, beta, steps=steps)
    composed: dict[str, Any] = {"accountant": "basic"}
    plans.append((points, solver, composed))
    if question.delta > 0:
        epsilon = optimal_each(question.epsilon, question.delta, runs, 0.0).epsilon / 2 * (1 - 2.0**-40)
        solver, points = interior_points.best(question.bits, epsilon, 0.0, beta, steps=steps)
        plans.append((points, solver, {"accountant": "optimal", "delta": question.delta}))
    points, solver, composed = min(plans, key=lambda plan: plan[0])
    return solver, -(-points // 2), composed


def direct(question: Question) -> Offer:
    """By the best solver; a replacement costs a slice what a point more costs it."""
    fractions = question.fractions
    solver, m, composed = direct_plan(question, len(fractions))

    def make(n: int) -> Any:
        return quantiles.direct(solver=solver.made(), fractions=fractions, m=m, allow_unproved=True, **composed)

    return Offer(_points(m - 0.5, question.alpha), make, f"direct, {solver.name}")


def recursive(question: Question) -> Offer:
    """By the best solver, for all multiples of 2^-L alone."""
    levels = len(question.fractions).bit_length()
    dyadic = tuple(i / 2**levels for i in range(1, 2**levels))
    if levels > MOST_LEVELS or question.fractions != dyadic:
        raise UnavailableError("for all multiples of 1/2, 1/4, 1/8, ... only")
    make, ranks, name = recursive_plan(question, levels, lambda ranks: _points(ranks, question.alpha))
    return Offer(_points(ranks, question.alpha), lambda n: make(), name)


def recursive_plan(
    question: Question, levels: int, points: Callable[[float], int], *, steps: float | None = None
) -> tuple[Callable[[], Any], float, str]:
    """(what builds it, its rank error, its name); `points` says how many points a rank error asks for."""
    if question.bits + TIES > wide.MAX_BITS:
        raise UnavailableError(f"needs {TIES} bits more to break ties, of {wide.MAX_BITS}")
    epsilon, delta = question.step()
    each = share_of(epsilon, delta, 2 * levels)
    own = each.delta * 2 / (1 + math.exp(min(each.epsilon, 700.0)))
    beta = question.beta * (1 - FOR_TIES) / (2**levels - 1)
    solver, needed = interior_points.best(question.bits + TIES, each.epsilon, own, beta, steps=steps)
    m = -(-needed // 2)
    for shared in range(2, 64):
        ranks = rank_error(levels, m, shared)
        n = max(points(ranks), question.n or 0, MANY)
        if log_shared(n, shared, TIES) <= math.log(question.beta * FOR_TIES):
            break
    else:
        raise UnavailableError(f"{TIES} bits do not break the ties of {n} points")
    given: dict[str, Any] = {"bits": question.bits, "depth": levels, "m": m, "allow_unproved": True}
    return lambda: quantiles.recursive(solver=solver.made(), **given), ranks, f"recursive, {solver.name}"


def _points(ranks: float, alpha: float) -> int:
    """ceil(ranks / alpha)."""
    return min(max(1, math.ceil(ranks / alpha * (1 + 1e-12))), LARGEST)


def inverse_sensitivity(question: Question) -> Offer:
    """By its own worst case."""
    epsilon, _ = question.step()
    algorithm = quantiles.inverse_sensitivity(bits=question.bits, fractions=question.fractions, epsilon=epsilon)
    n = algorithm.sample_size(alpha=question.alpha, beta=question.beta)
    return Offer(n, lambda n: algorithm, "inverse_sensitivity")


def inverse_sensitivity_floor(question: Question) -> float:
    """m d ln 2 ranks at the rate of epsilon/2, times the largest of f and 1 - f, are the larger part of it."""
    epsilon, _ = question.step()
    farthest = max(max(f, 1 - f) for f in question.fractions)
    return 2 * len(question.fractions) * question.bits * math.log(2.0) * farthest / (epsilon * question.alpha)


def approximate(question: Question) -> Offer:
    """By its own worst case; its levels compose where there is a delta."""
    epsilon, delta = question.step()
    if question.bits > MOST_BITS:
        raise UnavailableError(f"takes at most {MOST_BITS} bits")
    algorithm = quantiles.approximate(bits=question.bits, fractions=question.fractions, epsilon=epsilon, delta=delta)
    n = algorithm.sample_size(alpha=question.alpha, beta=question.beta)
    return Offer(min(n, LARGEST), lambda n: algorithm, "approximate")


def approximate_floor(question: Question) -> float:
    """The first answer pays d ln 2 at a rate of epsilon / L at most, or at what L levels may spend together with a delta."""
    epsilon, delta = question.step()
    levels = len(question.fractions).bit_length()
    rate = exponential_rate(epsilon, delta, ranges=levels, squares=levels)
    return question.bits * math.log(2.0) / (float(rate) * question.alpha)


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("permute_and_flip", permute_and_flip),
    Candidate("direct", direct),
    Candidate("recursive", recursive),
    Candidate("inverse_sensitivity", inverse_sensitivity, inverse_sensitivity_floor),
    Candidate("approximate", approximate, approximate_floor),
)
