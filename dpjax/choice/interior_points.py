"""Solvers of the interior point problem: how many points suffice, whatever they are.

- `exponential`: its exact worst case. Let h = ceil(n/2). If all points are equal, the good keys weigh e^(epsilon n). Else let v be the
  median x_(h), with L points below it and G above it, say L >= G (so L <= n/2): v has depth n - L, and the greatest point below v has depth
  L, if L > 0; by convexity both together weigh at least e^(epsilon h) + e^(epsilon (n - h)). At most 2^d - 2 keys are bad then, and
  2^d - 1 in the other case:

      odds of a failure = max{(2^d - 2) / (e^(epsilon h) + e^(epsilon (n - h))), (2^d - 1) e^(-epsilon n)},

  which two neighbouring keys with h and n - h points, or a single key, attain. (L = G = 0 is the second case, and if L = 0 < G the
  mirror image of the first.)
- `tree_score`: its theorem, which from 16 bits on is at most 2/epsilon points above its exact worst case (`tree_planning`), or that worst
  case itself where its dynamic programme takes no more than some tens of milliseconds.
- `supported_tree`: its theorem, which is exact on all domains of 3 bits or more that were tried (3, 4, 8, ..., 1024).
- `rec_concave`: twice the promise that `bounds.rec_concave_error` requires. `tree_log`: the plan by basic composition with one level, whose
  split follows from Lagrange's conditions, or by optimal composition where delta is not small beside epsilon. (Other accountants and
  depths have not won on any domain that can be written down.)
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.choice.base import EPSILONS, MOST_DELTA, Candidate, Offer, Question, UnavailableError, holdable, usable
from dpjax.core import bisection
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import planning, tree_planning
from dpjax.optimizers.interior_point.supported_tree import least_n

MOST_STEPS = 9e7  # of the tree score's programmes, where n is solved for
FEW_STEPS = 5e5  # where epsilon is solved for, or the solver is a part of something else
NEARLY = 0.999  # RecConcave may lose nearly all depth: any depth above 0 suffices
MUCH = 0.02  # of epsilon: a delta that is not small beside it
_FEWER = 0.75  # the floor's share of what tree_log's split costs by Cauchy's inequality


def exponential_odds(bits: int, epsilon: float, n: int) -> float:
    """ln of the largest odds of a failure of `interior_point.exponential` on n points, exactly; see the module.

    >>> round(exponential_odds(1, 1.0, 3), 3)  # two keys: nothing fails if both have points
    -3.0
    """
    half, log_keys = -(-n // 2), bits * math.log(2.0)
    two = math.log1p(-(2.0 ** (1 - bits))) + log_keys if bits > 1 else -math.inf
    two -= float(np.logaddexp(epsilon * half, epsilon * (n - half)))
    return max(two, log_keys + math.log1p(-(2.0**-bits)) - epsilon * n)


def points_for(name: str, bits: int, epsilon: float, delta: float, beta: float, steps: float | None = None) -> int:
    """The least n of the solver with this name; UnavailableError where it has none."""
    if name == "exponential":
        odds = math.log(beta) - math.log1p(-beta)
        # ln(2^d - 2) is at least d ln 2 - ln 2 for d > 1; the good keys weigh at least e^(epsilon h), and at most twice as much.
        half = (bits * math.log(2.0) - odds) / epsilon
        low = max(1, 2 * math.floor(half - 1.5 / epsilon) - 2) if bits > 1 else 1
        high = max(1, 2 * math.ceil(half) + 1)
        return bisection.least_int(lambda n: exponential_odds(bits, epsilon, n) <= odds, low, high)
    if name == "tree_score":
        return tree_planning.least_n(bits, epsilon, *_plain(bits), beta, steps or FEW_STEPS)
    usable(delta)
    holdable(delta)
    if name == "supported_tree":
        return least_n(bits, epsilon, delta, beta)
    if name == "rec_concave":
        return math.ceil(2 * _promise(bits, epsilon, delta, beta))
    return _tree_log(bits, epsilon, delta, beta).sample_size


@functools.lru_cache(64)
def _plain(bits: int) -> tuple[float, float, float, float]:
    return tree_planning.numbers(tree_planning.plain(bits))


def _promise(bits: int, epsilon: float, delta: float, beta: float) -> float:
    return bounds.rec_concave_error(1 << bits, bounds.levels_run(2**bits - 1, 2), beta, epsilon, delta) / NEARLY


def _tree_log(bits: int, epsilon: float, delta: float, beta: float) -> planning.Plan:
    if not planning.LEAST_EPSILON <= epsilon <= planning.LARGEST_EPSILON:
        raise UnavailableError(f"needs an epsilon from {planning.LEAST_EPSILON:g} on")
    total = Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
    names = ("basic", "optimal") if _may_win(epsilon, delta) else ("basic",)
    return min((planning.quick(bits, total, beta, name) for name in names), key=lambda plan: plan.sample_size)


def made(name: str, bits: int, epsilon: float, delta: float, beta: float) -> Any:
    """The solver itself."""
    if name == "exponential":
        return interior_point.exponential(bits=bits, epsilon=epsilon)
    if name == "tree_score":
        return interior_point.tree_score(bits=bits, epsilon=epsilon)
    if name == "supported_tree":
        return interior_point.supported_tree(bits=bits, epsilon=epsilon, delta=delta)
    if name == "rec_concave":
        promise = _promise(bits, epsilon, delta, beta) * (1 + 1e-9)
        return interior_point.rec_concave(bits=bits, epsilon=epsilon, delta=delta, promise=promise, alpha=NEARLY)
    return interior_point.tree_log_planned(bits=bits, plan=_tree_log(bits, epsilon, delta, beta))


def tree_log_floor(bits: int, epsilon: float, delta: float, beta: float) -> float:
    """About what tree_log needs at least: sum a_i/e_i with sum c_i e_i <= epsilon is at least (sum sqrt(a_i c_i))^2/epsilon."""
    if not 0.0 < delta <= MOST_DELTA:
        return 0.0
    chance, last = math.log(2.0 / beta), planning.last_bits(bits, 1) * math.log(2.0)
    walk = 6.0 * math.log1p(math.tanh(epsilon / 8) / delta)
    parts = (walk, 2.0 * (chance - math.log(2.0 * delta)), 2.0 * chance, 2.0 * (last + chance))
    # More than any composition leaves, as in `k_concepts`.
    spent = epsilon + 5.0 * delta if _may_win(epsilon, delta) else epsilon
    return _FEWER * sum(map(math.sqrt, parts)) ** 2 / spent


def _may_win(epsilon: float, delta: float) -> bool:
    """Whether optimal composition may leave TreeLog's parts more than basic composition does."""
    return delta > max(MUCH * epsilon, planning.LARGE_DELTA)


@dataclasses.dataclass(frozen=True)
class Solver:
    """A solver as plans see it: what it promises, before it is built."""

    name: str
    bits: int
    epsilon: float
    delta: float
    beta: float

    def guarantee(self) -> Guarantee:
        """The guarantee for which it is built."""
        return Guarantee(self.epsilon, 0.0 if self.name in PURE else self.delta, ADD_OR_REMOVE_ONE)

    def made(self) -> Any:
        """The solver itself."""
        return made(self.name, self.bits, self.epsilon, self.delta, self.beta)


PURE = ("exponential", "tree_score")
NAMES = (*PURE, "supported_tree", "rec_concave", "tree_log")


@functools.lru_cache(4096)  # parts of a plan ask the same
def best(
    bits: int, epsilon: float, delta: float, beta: float, *, steps: float | None = None, planned: bool = True
) -> tuple[Solver, int]:
    """(the solver that needs the fewest points, how many).

    With steps = 1 the numbers are rough, by theorems. With that, or with planned = False, TreeLog is not planned: a floor of its plan
    stands for it.
    """
    sizes: dict[str, int] = {}
    for name in NAMES:
        if name == "tree_log":
            floor = tree_log_floor(bits, epsilon, delta, beta)
            if floor > min(sizes.values()):
                continue
            if (steps == 1 or not planned) and floor > 0:
                sizes[name] = math.ceil(floor)
                continue
        try:
            sizes[name] = points_for(name, bits, epsilon, delta, beta, steps)
        except UnavailableError:
            continue
    name = min(sizes, key=sizes.__getitem__)
    return Solver(name, bits, epsilon, delta, beta), sizes[name]


def _candidate(name: str) -> Candidate:
    def offer(question: Question) -> Offer:
        given = (name, question.bits, *question.step(), question.beta)
        # For many epsilons, few steps each; but the largest, on which many tasks fall back, must not be refused what n would be granted.
        steps = MOST_STEPS if question.n is None or question.epsilon == EPSILONS[1] else FEW_STEPS
        return Offer(points_for(*given, steps), lambda n: made(*given), name)

    def floor(question: Question) -> float:
        question.approximate()
        return tree_log_floor(question.bits, *question.step(), question.beta)

    return Candidate(name, offer, floor if name == "tree_log" else None, bounded=name in PURE)


CANDIDATES: tuple[Candidate, ...] = tuple(map(_candidate, NAMES))
