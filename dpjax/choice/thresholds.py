"""Proper learners of thresholds: population error at most alpha except with probability beta, for any distribution and threshold.

All candidates are compared by one statement, which avoids the constants of uniform convergence. **If a proper learner errs on at most k
examples of any realizable sample of n except with probability b, then its population error exceeds alpha with probability at most
b + 2 P[Bin(n, alpha) <= k]**: let l be the greatest threshold with mass above alpha in [l, t), t the target. A hypothesis j < t with
error above alpha is at most l and errs on all examples in [l, t), whose number is Bin(n, p), p > alpha; likewise above t.

| learner | k |
|---|---|
| `exponential` | (2/epsilon) (d ln 2 + ln((1 - b)/b)): at least one threshold errs nowhere, 2^d others weigh e^(-epsilon k/2) |
| `binary_search` | (2/e0) ln((d + 1)/(2 b)), as `bounds.binary_search_thresholds` derives it |
| `length_search`, `power_search` | `bounds.interval_search` |
| `rec_concave` | `bounds.rec_concave_error`, with alpha = 2 k/n |
| `amplified` | the optimiser's `error`, with alpha = 2 k/n |
| `supported` | T - 1, with alpha = 2 T/n |
| `interior` | m - 1, if the best solver of the interior point problem gets 2m points |

The exponential mechanism has a second bound, over data and coins at once: each of at most 2^d thresholds of error above alpha weighs on
average at most (1 - alpha (1 - e^(-epsilon/2)))^n of what the target does (`bounds.exponential_points` has the derivation), so that
2^d (1 - alpha (1 - e^(-epsilon/2)))^n <= beta suffices. The smaller n counts.

b is half of beta; for `exponential`, for `supported`, and for `interior` with a pure solver, it is the best of a few shares.
"""

import math
from collections.abc import Callable
from typing import Any

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, closed_form_epsilon
from dpjax.choice import interior_points
from dpjax.choice.base import LARGEST, SAFE, Candidate, Offer, Question, UnavailableError, holdable
from dpjax.core import bisection
from dpjax.domains import wide
from dpjax.learners import interior
from dpjax.learners import thresholds as learners
from dpjax.learners.thresholds import intervals
from dpjax.learners.thresholds.supported import errors as least_room
from dpjax.optimizers import quasi_concave

_HAIR = 1 + 1e-9
SHARES = (0.5, 0.1, 0.3, 0.7, 0.9)  # of beta for the mechanism; the rest is for the sample
FEW_SHARES = (0.5, 0.2)  # one of them needs at most 4 % more than the best of five


def population(errors: float, alpha: float, beta: float) -> int:
    """The least n with 2 P[Bin(n, alpha) <= errors] <= beta.

    At most (k + L + sqrt(L^2 + 2 k L))/alpha, L = ln(2/beta), by Chernoff's bound.

    >>> population(0, 0.1, 0.1)
    29
    """
    from scipy.special import betainc

    k, log = math.floor(errors), math.log(2 / beta)
    enough = k + 1 + math.ceil((k + log + math.sqrt(log**2 + 2 * k * log)) / alpha)
    if enough > LARGEST:
        return LARGEST
    return bisection.least_int(lambda n: 2 * betainc(n - k, k + 1, 1 - alpha) <= beta, k + 1, enough)


def exponential(question: Question) -> Offer:
    """The exponential mechanism, by the smaller of two bounds."""
    question.public_size()
    bits, alpha, beta, epsilon = question.bits, question.alpha, question.beta, question.epsilon
    log_others = bits * math.log(2.0)
    together = (log_others - math.log(beta)) / -math.log1p(alpha * math.expm1(-epsilon / 2))
    n = math.ceil(together * _HAIR)
    for share in SHARES:
        own = share * beta
        errors = 2 / epsilon * max(0.0, log_others + math.log1p(-own) - math.log(own))
        n = min(n, population(errors * _HAIR, alpha, beta - own))
    return Offer(n, lambda n: learners.exponential(bits=bits, epsilon=epsilon), "exponential")


def binary_search(question: Question) -> Offer:
    """The noisy binary search, with delta if there is one: k comparisons then cost about sqrt(k)."""
    question.public_size()
    given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}
    steps = question.bits + 1
    each = question.epsilon / steps
    if question.delta > 0:
        each = float(closed_form_epsilon(question.epsilon, question.delta, steps))
    errors = bounds.binary_search(question.bits, 0.5, question.beta / 2, each) / 2
    n = population(max(0.0, errors) * 1.00001, question.alpha, question.beta / 2)  # a run has float32 shares
    return Offer(n, lambda n: learners.binary_search(**given), "binary_search")


def _by_alpha(question: Question, name: str, errors: float, make: Callable[[float], Any]) -> Offer:
    """An offer of a learner that is made for alpha = 2 k/n."""
    n = population(errors, question.alpha, question.beta / 2)

    def made(n: int) -> Any:
        return make(2 * errors * _HAIR / n)

    if 2 * errors * _HAIR / n >= 1.0:
        n = math.ceil(2 * errors * _HAIR) + 1
    return Offer(n, made, name)


def search_budget(bits: int, epsilon: float, delta: float, *, by_length: bool) -> tuple[int, dict[str, Any]]:
    """(comparisons, budgets as `bounds.interval_search` takes them) of `length_search` or `power_search`, on the host."""
    comparisons, parts = (bits, 3) if by_length else (bits.bit_length(), 2)
    part = intervals.SEARCH * epsilon
    each = float(closed_form_epsilon(part, delta / parts, comparisons)) if by_length else part / comparisons
    return comparisons, {
        "comparison_epsilon": each,
        "stability_epsilon": intervals.STABLE * epsilon,
        "stability_delta": delta / parts,
        "choice_epsilon": intervals.CHOICE * epsilon,
    }


def _search(factory: Callable[..., Any], name: str) -> Callable[[Question], Offer]:
    def offer(question: Question) -> Offer:
        question.public_size()
        question.approximate()
        given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}
        comparisons, budget = search_budget(**given, by_length=name == "length_search")
        try:
            size = bounds.interval_search(comparisons, 0.5, question.beta / 2, **budget)
        except ValueError as reason:
            raise UnavailableError(str(reason)) from None
        # A run holds its shares in float32.
        return _by_alpha(question, name, size / 2 * 1.00001, lambda alpha: factory(**given, alpha=alpha))

    return offer


def rec_concave(question: Question) -> Offer:
    """RecConcave with the best number of levels."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}
    most = bounds.levels_run(1 << question.bits, 9)
    if most == 1:
        raise UnavailableError("one level is the exponential mechanism")
    budget = question.epsilon, question.delta
    errors, depth = min(
        (bounds.rec_concave_error(1 << question.bits, levels, question.beta / 2, *budget), levels)
        for levels in range(2, most + 1)
    )
    return _by_alpha(
        question, "rec_concave", errors, lambda alpha: learners.rec_concave(**given, alpha=alpha, depth=depth)
    )


def amplified(question: Question) -> Offer:
    """The amplified optimiser with one level, with margins for its share of beta; more levels did not err less anywhere."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta, "depth": 1}
    try:
        errors = quasi_concave.amplified(**given, beta=question.beta / 2).error(question.beta / 2)
    except ValueError as reason:
        raise UnavailableError(str(reason)) from None
    beta = question.beta
    return _by_alpha(question, "amplified", errors, lambda alpha: learners.amplified(**given, alpha=alpha, beta=beta))


def supported(question: Question) -> Offer:
    """The choice among the thresholds that the sample supports: at most T - 1 errors, and T large enough that it is rarely bottom."""
    question.public_size()
    question.approximate()
    if question.bits + 2 > wide.MAX_BITS:
        raise UnavailableError(f"needs two bits more, of {wide.MAX_BITS}")
    holdable(question.delta)

    def least(own: float) -> tuple[int, int]:
        room = least_room(question.bits, question.epsilon, question.delta, own)
        # The learner's own alpha, (2 T + 1)/n, is below 1.
        return max(population(room - 1, question.alpha, question.beta - own), 2 * room + 2), room

    n, room = min(least(share * question.beta) for share in FEW_SHARES)

    def made(n: int) -> Any:
        alpha = 2 * (room + 0.5) / n  # T is rounded down
        given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}
        return learners.supported(**given, alpha=alpha)

    return Offer(n, made, "supported")


def supported_floor(question: Question) -> float:
    """(T - 1)/alpha with all of beta for bottom: half of all samples have at least as many errors."""
    question.approximate()
    if question.bits + 2 > wide.MAX_BITS:
        return 0.0
    room = least_room(question.bits, question.epsilon, question.delta, question.beta)
    return min((room - 1) / question.alpha, LARGEST)


def by_interior_points(question: Question, planned: bool = True) -> Offer:
    """The learner by interior points: distance 2 under ADD_OR_REMOVE_ONE, 4 under REPLACE_ONE; for `planned` see `interior_points.best`."""
    if question.bits + 1 > wide.MAX_BITS:
        raise UnavailableError(f"needs a bit more, of {wide.MAX_BITS}")
    distance = 2 if question.relation == ADD_OR_REMOVE_ONE else 4
    epsilon = question.epsilon / distance * SAFE
    growth = sum(math.exp(min(i * epsilon, 700.0)) for i in range(distance))
    own = question.delta / growth * (1 - 2.0**-30)
    found = []
    for share in SHARES:
        steps = None if share == SHARES[0] else 1  # TreeLog is planned for one share alone
        given = question.bits + 1, epsilon, own, share * question.beta
        solver, points = interior_points.best(*given, steps=steps, planned=planned)
        if steps is None or solver.name in interior_points.PURE:
            m = -(-points // 2)
            found.append((population(m - 1, question.alpha, (1 - share) * question.beta), m, solver))
    n, m, solver = min(found, key=lambda one: one[0])
    return Offer(
        n, lambda n: interior.threshold_learner(solver=solver.made(), m=m), f"interior.threshold_learner, {solver.name}"
    )


def by_interior_points_floor(question: Question) -> float:
    """The n of `by_interior_points` with a floor for TreeLog's plan."""
    return float(by_interior_points(question, planned=False).n)


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("exponential", exponential, bounded=True),
    Candidate("interior.threshold_learner", by_interior_points, by_interior_points_floor),
    Candidate("binary_search", binary_search),
    Candidate("length_search", _search(learners.length_search, "length_search")),
    Candidate("power_search", _search(learners.power_search, "power_search")),
    Candidate("rec_concave", rec_concave),
    Candidate("amplified", amplified),
    Candidate("supported", supported, supported_floor),
)
