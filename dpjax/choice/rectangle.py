"""Axis-aligned rectangles in D dimensions: population error at most alpha except with probability beta, for any distribution and rectangle.

One way is by slices (CLNSS §1.3.4), with the best solver of the interior point problem and four accountants: basic and optimal composition
of public slices, that of exponential mechanisms by their ranges, and Reorder-Slice-Compute by the numerical accountant (as printed it has
never won). The split of the last between noise and computes is not searched for, as `accounting.slicing.split` would do. With the noise's
rate r, the computes' epsilon e and A nats for a solver, n is about A/e + B/r; squares add up in composition, so n is least where (r/e)^3
is proportional to 1/A. A is d ln 2 + ln(4D/beta) for a pure solver, and for one with a delta its points times e. By the best of eight
ratios in 45 random cells, r/e = (45/A)^(1/3)/4 loses 4 % at most, 0.6 % on average, with pure solvers. Another way is Kearns's learner on
sanitized axes (BNS §3.5). All use the theorems in their modules.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.choice import interior_points, quantiles
from dpjax.choice.base import SAFE, Candidate, Offer, Question, UnavailableError, largest_each, largest_kept, step_delta
from dpjax.core import bisection
from dpjax.learners import rectangles
from dpjax.learners.rectangles import planning
from dpjax.optimizers.quantiles.recursive import RecursiveQuantiles
from dpjax.sanitizers import cdf

# Where the search for the scale begins: scale/epsilon sqrt(ln(1/delta)) at 64 dimensions and the ratio 1/4, by epsilon and ln(1/delta).
# More dimensions change nothing.
_EPSILONS, _LOGS = (0.05, 0.3, 1.0, 4.0, 8.0), (9.21, 13.8, 23.0)
_SCALES = (
    (0.595, 0.378, 0.235),
    (0.426, 0.309, 0.212),
    (0.348, 0.269, 0.197),
    (0.262, 0.223, 0.173),
    (0.220, 0.194, 0.159),
)
Planned = tuple[rectangles.Plan, interior_points.Solver]


def _slices(plan_for: Callable[[Question], Planned]) -> Callable[[Question], Offer]:
    """The offers of a way of planning; plans do not depend on alpha and are cached while it is searched for."""
    kept = functools.lru_cache(256)(plan_for)

    def offer(question: Question) -> Offer:
        plan, solver = kept(dataclasses.replace(question, alpha=0.0, n=None))
        n = _examples(plan.needed, plan.beta - plan.spent_beta, question.alpha)

        def make(n: int) -> Any:
            return rectangles.from_plan(plan, solver=lambda epsilon, delta, beta: solver.made())

        return Offer(n, make, f"slices, {plan.accountant}, {solver.name}")

    return offer


def _examples(need: int, beta: float, alpha: float) -> int:
    """The least n with P[Bin(n, alpha) < need] <= beta, as in `Rectangles.sample_size`."""
    from scipy.special import betaincc

    return bisection.least_int(lambda n: float(betaincc(need, n - need + 1, alpha)) <= beta, need)


def _planned(accountant: str, question: Question, budget: planning.Budget, own: float) -> Planned:
    """The plan for a budget, with the best solver for it."""
    epsilon, delta = question.step()
    axes, beta = question.dimensions, question.beta
    solver, size = interior_points.best(question.bits, budget.compute.epsilon, own, beta / (4 * axes))
    return planning.around(axes, question.bits, epsilon, delta, beta, accountant, budget, size), solver


def basic(question: Question) -> Planned:
    """Basic composition: epsilon/(2D + 1) for each of 2D slices (D differ by a replacement and one by an insertion) and for the count."""
    epsilon, delta = question.step()
    axes = question.dimensions
    each = epsilon / (2 * axes + 1) * SAFE
    own = step_delta(delta / (2 * axes), 2 * each)
    solver, _ = interior_points.best(question.bits, each, own, question.beta / (4 * axes))
    compute = Guarantee(each, solver.guarantee().delta, ADD_OR_REMOVE_ONE)
    promised = planning.basic_promise(axes, None, compute)
    return _planned("basic", question, planning.Budget(None, compute, promised), own)


def optimal(question: Question) -> Planned:
    """About the largest budgets for computes that optimal composition allows; pure solvers."""
    question.approximate()
    total = planning.kept(*question.step())
    axes = question.dimensions

    found = largest_each(lambda each: [(2 * each, axes), (each, 1)], total.epsilon, total.delta, 0.0) or 0.0
    epsilon = max(found, total.epsilon / (2 * axes + 1) * SAFE)
    budget = planning.Budget(None, Guarantee(epsilon, 0.0, ADD_OR_REMOVE_ONE), total)
    return _planned("optimal", question, budget, 0.0)


def bounded(question: Question) -> Planned:
    """The largest budgets for computes that bounded ranges allow; pure solvers, all of which are exponential mechanisms."""
    question.approximate()
    budget = planning.bounded_budget(question.dimensions, planning.kept(*question.step()))
    return _planned(planning.BOUNDED, question, budget, 0.0)


def slicing(question: Question) -> Planned:
    """Noisy sizes, by the numerical accountant; pure solvers, or one that has some of delta."""
    question.approximate()
    total, failure = planning.kept(*question.step()), question.beta / (4 * question.dimensions)
    nats = question.bits * math.log(2.0) - math.log(failure)
    rate, compute = _scale(question, total, 0.0, nats)
    plan = _planned("slicing", question, planning.Budget(rate, compute, total), 0.0)
    own = total.delta / 16
    rough, points = interior_points.best(question.bits, compute.epsilon, own, failure, planned=False)
    if rough.name in interior_points.PURE:
        return plan
    try:
        rate, compute = _scale(question, total, own, points * compute.epsilon)
    except ValueError:  # no split keeps the total
        return plan
    shared = _planned("slicing", question, planning.Budget(rate, compute, total), own)
    return min(plan, shared, key=lambda planned: planned[0].needed)


def _scale(question: Question, total: Guarantee, own: float, nats: float) -> tuple[float, Guarantee]:
    """(the rate of the noise, a compute's guarantee): about the largest with which the accountant keeps the total.

    Args:
      own: delta of a compute.
      nats: A of the module, about a solver's points times its epsilon.
    """
    axes = question.dimensions
    ratio = 0.25 * (45 / nats) ** (1 / 3)  # see the module

    def parts(scale: float) -> tuple[float, Guarantee]:
        return scale * ratio, Guarantee(scale, own, ADD_OR_REMOVE_ONE)

    def spent(scale: float) -> float:
        return planning.whole_run(axes, *parts(scale)).delta(total.epsilon)

    log = -math.log(total.delta)
    along = [np.interp(log, _LOGS, row) for row in _SCALES]
    near = float(np.interp(math.log(total.epsilon), np.log(_EPSILONS), along))
    scale = largest_kept(spent, total.delta, 0.985 * near * total.epsilon / math.sqrt(log))
    if scale is None:
        raise UnavailableError("no split was found that keeps the total")
    return parts(scale)


def kearns(question: Question) -> Offer:
    """Half for the axes' distribution functions by recursive quantiles, half for the counts, at the best of three depths."""
    axes = question.dimensions
    first = math.floor(math.log2(8 * axes / question.alpha)) + 1
    plans = [_kearns(question, depth) for depth in range(first, min(first + 3, 13))]
    if not plans:
        raise UnavailableError("alpha asks for more than 12 levels")
    n, make, name = min(plans, key=lambda plan: plan[0])
    return Offer(n, make, name)


def _kearns(question: Question, depth: int) -> tuple[int, Callable[[int], Any], str]:
    epsilon, delta = question.step()
    axes, beta, runs = question.dimensions, question.beta, 2**depth - 1
    half = Question(
        bits=question.bits,
        n=question.n,
        epsilon=epsilon / (2 * axes) * SAFE,
        alpha=question.alpha,
        delta=delta / axes * SAFE,
        beta=beta / (4 * axes),
        relation=ADD_OR_REMOVE_ONE,
    )
    left = question.alpha / (16 * axes) - 0.5 / 2**depth
    make, ranks, name = quantiles.recursive_plan(half, depth, lambda ranks: math.ceil(ranks / left))
    each = epsilon / 2 * SAFE
    r, cells = math.exp(-each / axes), axes * (2 * runs + 1)
    threshold = bisection.least_int(lambda tau: 2 * cells * r**tau / (1 + r) <= beta / 4, 1)
    counted = 4 * axes * (2 * runs + 1) * (2 * threshold - 2) / question.alpha
    n = max(ranks / left, counted, bounds.agnostic(2 * axes, question.alpha / 2, beta / 2))

    def made(n: int) -> Any:
        released: RecursiveQuantiles = make()
        given: dict[str, Any] = {"axes": axes, "bits": question.bits, "epsilon": each, "cuts": runs, "beta": beta}
        return rectangles.kearns(**given, sanitizer=cdf.release(quantiles=released))

    return math.ceil(n * (1 + 1e-12)), made, f"kearns, {name}"


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("slices, bounded", _slices(bounded)),
    Candidate("slices, basic", _slices(basic)),
    Candidate("slices, slicing", _slices(slicing)),
    Candidate("slices, optimal", _slices(optimal)),
    Candidate("kearns", kearns),
)
