"""Quantiles at any fractions: all ranks within alpha n of f n except with probability beta, whatever the data.

- `permute_and_flip`: for one fraction, some point of the domain has a rank error of 0, and at most 2^d - 1 others have one above t: each of
  these is accepted with probability at most e^(-lambda t) times that of the good point. The good point is released unless one of them comes
  before it and is accepted, so P[error > t] <= 1 - int_0^1 (1 - u e^(-lambda t))^(2^d - 1) du <= 1 - (1 - e^-s)/s, s = 2^d e^(-lambda t).
  The q runs have their own coins, so each may fail with probability 1 - (1 - beta)^(1/q). Beyond t, half a rank is left for f n, which is
  rounded to a rank where the error is measured: n = (t + 1/2)/alpha.

  *Two good points*, if all fractions are at least alpha from 0 and 1 (else alpha may be taken smaller) and e^(-lambda t) <= 1/2: then
  P[error > t] <= 1 - 2 (1/s - (1 - e^-s)/s^2), which is s/3 for small s. Let z be the first point with #{<= z} >= f n, p = f n - #{< z} and
  q = #{<= z} - f n. z has the error -c, c = min(p, q), and the point before it (if p <= q; else the one behind it) the error c. (Where
  there is none, p = f n >= alpha n >= t, likewise q.) If c > t, z is accepted, and each of the others with probability at most
  e^(-2 lambda t): as above with s/2 in place of s, which is less than is claimed, since sinh(s/2) >= s/2. Else let v = e^(-lambda c) and
  x = e^(-lambda t): z is accepted, its neighbour with probability v^2, and each of at most M = 2^d - 2 bad points with probability v x. The
  first of these comes at u with density M v x (1 - v x u)^(M - 1), so with w = v u

      P[error > t] <= int_0^v (1 - w (v + 1/v) + w^2) M x (1 - x w)^(M - 1) dw:

  domain and integrand grow with v. At v = 1 it is 1 - int_0^1 2 (1 - w)(1 - x w)^M dw, in which (1 - x w)^(2^d - 2) may be replaced by the
  smaller integral with e^(-s w): the former is N/(N - 1) times 2 (1/s - (1 - (1 - x)^N)/s^2), N = 2^d, and what N/(N - 1) adds is more than
  what is lost by (1 - x)^N < e^-s (by Chebyshev's inequality for integrals).
- `direct`: m - 1 ranks for the solver and 1/2 for rounding, where m is half the points that the best solver needs with its share.
- `recursive` (all multiples of 2^-L): its `rank_error`, and one more rank per level for each further point that equal points and equal
  tie-breaks may share: of n points (at least 2^20), some c + 1 share 32 random bits with probability at most C(n, c + 1) 2^(-32 c), which
  is charged to beta.
- `inverse_sensitivity`: its own `sample_size`, which counts all tuples; that of `joint` is always larger.
- `approximate`: its own `sample_size`, for n points at most.
- `rank_exponential`, where there is a delta: its own bound on ranks. (Without one its rate is that of permute-and-flip.) Or, where two
  points are good as above, odds of 2^(d - 1) e^(-lambda t) to 1 in each run, as these two weigh e^(lambda c) + e^(-lambda c) >= 2 together
  (if c > t, z alone weighs e^(lambda t) >= 2). Half a rank is left for f n.
- `supported`, where there is a delta: its m, which no answer reaches, from f n or from the rank to which f n is rounded: f n - m < #{<= z},
  an integer, so #{<= z} >= k(n) - m; likewise above.
- `tree`: its own `sample_size`, with the best number of children.
- `noisy_slices`, where there is a delta: its own statement, with the m of `interior_points`, at the best of three splits of epsilon. Let
  M/e be the m that a solver requires at e, D/r the error of ranks, and C/s that of the count: the sum of these is least under 2e + r + s =
  epsilon if e, r and s are proportional to sqrt(M/2), sqrt(D) and sqrt(C). If there are so many fractions that slices could meet, n is
  determined by their distance: (2M/e + R/r)/(the distance) + C/s, with R/r for the error of a distance. The third split lies between these.
- `supported_slices`, where there is a delta: likewise, with its m in place of M/e, for which all of 2e is spent, and a margin that is as
  large as leaves the n that errors need.
- All of these at fewer fractions, each of which serves those near its own: see `shared_quantiles`.
"""

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import optimize

from dpjax.accounting import Guarantee, exponential_rate
from dpjax.accounting.adaptive import ADAPTIVE
from dpjax.accounting.bounded import BOUNDED, independent_each
from dpjax.choice import interior_points
from dpjax.choice.base import (
    LARGEST,
    LEAST_DELTA,
    SAFE,
    Candidate,
    Offer,
    Question,
    UnavailableError,
    holdable,
    optimal_each,
    share_of,
    step_delta,
)
from dpjax.domains import wide
from dpjax.mechanisms.geometric import SMALLEST_RATE
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.approximate import MOST_BITS
from dpjax.optimizers.quantiles.chained_ranks import STEP, Chains, least_rate
from dpjax.optimizers.quantiles.chained_ranks import costs as chain_costs
from dpjax.optimizers.quantiles.noisy_ranks import MOST as MOST_SLICES
from dpjax.optimizers.quantiles.noisy_ranks import costs, drift, miscount, points_needed
from dpjax.optimizers.quantiles.noisy_slices import least_spacing
from dpjax.optimizers.quantiles.rank_exponential import error_bound as rank_error_bound
from dpjax.optimizers.quantiles.rank_exponential import range_sums
from dpjax.optimizers.quantiles.ranked import in_units
from dpjax.optimizers.quantiles.recursive import FOR_TIES, MOST_LEVELS, log_shared, rank_error
from dpjax.optimizers.quantiles.supported import budgets, least_m, least_m_of_run
from dpjax.optimizers.quantiles.supported_slices import MOST_WIDTH
from dpjax.optimizers.quantiles.supported_slices import points_needed as chain_points
from dpjax.optimizers.quantiles.tree import WIDEST
from dpjax.optimizers.quantiles.tree import error_bound as tree_error

TIES = 32  # bits that break ties
MOST_RUNS = 2**12
MANY = 2**20  # the number of points for which ties are accounted for, at least
OWN = 0.5  # the share of delta for a solver of noisy slices that needs some
# Chains of noise, and what a count costs, of what makes delta that of gaps alone; ranks of the count itself.
WAYS = ((2, 1.0), (2, 0.25), (1, 1.0), (1, 0.25), (0, 1.0))
NEARLY = 1.002  # noise of ranks at its own rate, of that at a small one
LESS = 0.75  # a floor is this share of a roughly computed n
_FEWER = 0.9  # a floor is this share of what is computed for it

_Three = tuple[float, ...]  # of runs, of ranks and of N


def permute_and_flip_ranks(bits: int, fractions: np.ndarray, epsilon: float, beta: float, good: int = 1) -> float:
    """t of the module: with probability 1 - beta no rank error exceeds it, if so many points are good, 1 or 2."""
    ranges, _ = range_sums(fractions, np)
    each = -math.expm1(math.log1p(-beta) / len(fractions))
    nats = bits * math.log(2.0) - _log_others(each, good)
    return max(0.0 if good == 1 else math.log(2.0), nats) * ranges / epsilon


def _log_others(beta: float, good: int) -> float:
    """ln of the s at which 1 - int_0^1 (1 - u)^(g - 1) g e^(-s u) du is beta, for g good points, 1 or 2.

    s lies between (g + 1) beta and (g + 1) beta/(1 - beta).

    >>> s, r = math.exp(_log_others(0.3, 1)), math.exp(_log_others(0.3, 2))
    >>> round(1 - (1 - math.exp(-s)) / s, 9), round(1 - 2 * (1 / r - (1 - math.exp(-r)) / r**2), 9)
    (0.3, 0.3)
    """

    def excess(log_s: float) -> float:
        s = math.exp(log_s)
        if s < 0.01:  # digits would cancel
            found = s / (good + 1) * (1 - s / (good + 2) * (1 - s / (good + 3) * (1 - s / (good + 4))))
        else:
            found = 1 + math.expm1(-s) / s
            found = 1 - 2 * found / s if good == 2 else found
        return math.log(found) - math.log(beta)

    low = math.log((good + 1) * beta)
    return float(optimize.brentq(excess, low - 1e-6, low - math.log1p(-beta) + 1e-6, xtol=1e-12))


def _of_good(question: Question, ranks: Callable[[int], float]) -> int:
    """The n for errors of at most ranks(1), or of ranks(2) where two points are good: that is proved for alpha up to the nearest end."""
    nearest = min(min(f, 1 - f) for f in question.fractions)
    return min(size_for(ranks(1) + 0.5, question.alpha), size_for(ranks(2) + 0.5, min(question.alpha, nearest)))


def permute_and_flip(question: Question) -> Offer:
    """Permute-and-flip, by its worst case."""
    epsilon, _ = question.step()
    fractions = np.asarray(question.fractions)
    n = _of_good(question, lambda good: permute_and_flip_ranks(question.bits, fractions, epsilon, question.beta, good))
    given: dict[str, Any] = {"bits": question.bits, "fractions": question.fractions, "epsilon": epsilon}
    return Offer(n, lambda n: quantiles.permute_and_flip(**given), "permute_and_flip")


def direct_plan(
    question: Question, runs: int, *, roughly: bool = False
) -> tuple[interior_points.Solver, int, dict[str, Any]]:
    """(the solver of a run, m, how runs are composed): basic composition, or optimal composition if delta makes that cheaper.

    With `roughly`, by theorems alone, and without TreeLog's plan.
    """

    def planned(epsilon: float, own: float, **composed: Any) -> tuple[int, interior_points.Solver, dict[str, Any]]:
        given = question.bits, epsilon, own, question.beta / runs
        solver, points = interior_points.best(*given, steps=1 if roughly else None)
        return points, solver, composed

    each = share_of(question.epsilon, question.delta, 2 * runs)
    plans = [planned(each.epsilon, step_delta(2 * each.delta, each.epsilon), accountant="basic")]
    if question.delta > 0:
        run = independent_each(Guarantee(question.epsilon, question.delta, question.relation), runs)
        plans.append(planned(run.epsilon / 2 * SAFE, 0.0, accountant=BOUNDED, delta=question.delta))
        shared = optimal_each(question.epsilon, question.delta, runs, OWN)
        epsilon = shared.epsilon / 2 * SAFE
        with_own = planned(
            epsilon, step_delta(shared.delta, epsilon) * SAFE, accountant="optimal", delta=question.delta
        )
        if with_own[1].name not in interior_points.PURE:
            plans.append(with_own)
    points, solver, composed = min(plans, key=lambda plan: plan[0])
    return solver, -(-points // 2), composed


def direct(question: Question) -> Offer:
    """Direct quantiles, by the best solver; a replacement costs a slice as much as an additional point does."""
    fractions = question.fractions
    solver, m, composed = direct_plan(question, len(fractions))

    def make(n: int) -> Any:
        return quantiles.direct(solver=solver.made(), fractions=fractions, m=m, allow_unproved=True, **composed)

    return Offer(size_for(direct_ranks(m), question.alpha), make, f"direct, {solver.name}")


def direct_ranks(m: int) -> float:
    """The rank error of direct quantiles from slices of 2m points."""
    return m - 0.5


def rough_direct_ranks(question: Question, runs: int) -> float:
    """About the same by theorems alone; exact worst cases may take a point less, which is much of a slice of a few."""
    _, m, _ = direct_plan(question, runs, roughly=True)
    return direct_ranks(max(m - 1, 1))


def direct_floor(question: Question) -> float:
    """Somewhat less than the n by theorems alone."""
    return LESS * size_for(rough_direct_ranks(question, len(question.fractions)), question.alpha)


def recursive(question: Question) -> Offer:
    """Recursive quantiles, by the best solver, for all multiples of 2^-L only."""
    levels = len(question.fractions).bit_length()
    dyadic = tuple(i / 2**levels for i in range(1, 2**levels))
    if levels > MOST_LEVELS or question.fractions != dyadic:
        raise UnavailableError("for all multiples of 1/2, 1/4, 1/8, ... only")
    make, ranks, name = recursive_plan(question, levels, lambda ranks: size_for(ranks, question.alpha))
    return Offer(size_for(ranks, question.alpha), lambda n: make(), name)


def recursive_plan(
    question: Question,
    levels: int,
    points: Callable[[float], int],
    *,
    steps: float | None = None,
    most: float = math.inf,
) -> tuple[Callable[[], Any], float, str]:
    """(what builds it, its rank error, its name); `points` says how many points a rank error requires.

    UnavailableError if these exceed `most` in any case, so that no plan is made for a number of levels that cannot win.
    """
    if question.bits + TIES > wide.MAX_BITS:
        raise UnavailableError(f"needs {TIES} bits more to break ties, of {wide.MAX_BITS}")
    epsilon, delta = question.step()
    each = share_of(epsilon, delta, 2 * levels)
    own = step_delta(2 * each.delta, each.epsilon)
    beta = question.beta * (1 - FOR_TIES) / (2**levels - 1)
    given_solver = question.bits + TIES, each.epsilon, own, beta
    if most < math.inf:
        _, needed = interior_points.best(*given_solver, steps=steps, planned=False)
        if points(rank_error(levels, -(-needed // 2), 2)) > most:
            raise UnavailableError(f"above {most:g}")
    solver, needed = interior_points.best(*given_solver, steps=steps)
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


def rounded(fractions: tuple[float, ...]) -> tuple[float, ...]:
    """The multiples of 2^-32 that are computed with."""
    return tuple((in_units(fractions) / 2**32).tolist())


def size_for(ranks: float, alpha: float) -> int:
    """ceil(ranks / alpha): of so many points these ranks are at most the share alpha; at most `LARGEST`."""
    return min(max(1, math.ceil(ranks / alpha * (1 + 1e-12))), LARGEST)


def inverse_sensitivity(question: Question) -> Offer:
    """Inverse sensitivity, by its own worst case."""
    epsilon, _ = question.step()
    algorithm = quantiles.inverse_sensitivity(bits=question.bits, fractions=question.fractions, epsilon=epsilon)
    n = algorithm.sample_size(alpha=question.alpha, beta=question.beta)
    return Offer(n, lambda n: algorithm, "inverse_sensitivity")


def inverse_sensitivity_floor(question: Question) -> float:
    """The larger part of its n: m d ln 2 ranks at the rate of epsilon/2, times the largest of all f and 1 - f."""
    epsilon, _ = question.step()
    farthest = max(max(f, 1 - f) for f in question.fractions)
    return 2 * len(question.fractions) * question.bits * math.log(2.0) * farthest / (epsilon * question.alpha)


def approximate(question: Question) -> Offer:
    """Approximate quantiles, by their own worst case; the levels compose better where there is a delta."""
    if question.bits > MOST_BITS:
        raise UnavailableError(f"takes at most {MOST_BITS} bits")
    algorithm = quantiles.approximate(**approximate_arguments(question), accountant=ADAPTIVE)
    n = algorithm.sample_size(alpha=question.alpha, beta=question.beta)
    return Offer(min(n, LARGEST), lambda n: algorithm, "approximate")


def approximate_floor(question: Question) -> float:
    """A little less than its n, in a tenth of the time."""
    algorithm = with_levels_at_most(quantiles.approximate(**approximate_arguments(question)), question.relation)
    return algorithm.sample_size(alpha=question.alpha, beta=question.beta)


def approximate_arguments(question: Question) -> dict[str, Any]:
    """The domain, the fractions and the total."""
    epsilon, delta = question.step()
    return {"bits": question.bits, "fractions": question.fractions, "epsilon": epsilon, "delta": delta}


def with_levels_at_most(algorithm: Any, relation: str) -> Any:
    """The same with levels that spend more than adaptive ones may: about as much as if none depended on another."""
    total = Guarantee(float(algorithm.epsilon), float(algorithm.delta), relation)
    level = 1.05 * max(float(algorithm.cost(np)), independent_each(total, algorithm.levels).epsilon)
    return dataclasses.replace(algorithm, level=np.float64(level))


def rank_exponential(question: Question) -> Offer:
    """The exponential mechanism on ranks, by its own worst case."""
    epsilon, delta = question.step()
    if delta < LEAST_DELTA:
        raise UnavailableError("needs a delta above 0, without which permute_and_flip is better")
    ranges, squares = range_sums(np.asarray(question.fractions), np)
    rate = float(exponential_rate(epsilon, delta, ranges=ranges, squares=squares, independent=True))

    def ranks(good: int) -> float:
        if good == 1:
            return rank_error_bound(question.bits * math.log(2.0), len(question.fractions), rate, question.beta)
        each = -math.expm1(math.log1p(-question.beta) / len(question.fractions))
        nats = (question.bits - 1) * math.log(2.0) + math.log1p(-each) - math.log(each)
        return max(math.log(2.0), nats) / rate

    given: dict[str, Any] = {"bits": question.bits, "fractions": question.fractions, "epsilon": epsilon, "delta": delta}
    return Offer(_of_good(question, ranks), lambda n: quantiles.rank_exponential(**given), "rank_exponential")


def supported(question: Question) -> Offer:
    """One choice a fraction among the keys that the data support: no answer errs by m ranks."""
    question.approximate()
    epsilon, delta = question.step()
    holdable(delta / len(question.fractions))
    given: dict[str, Any] = {"bits": question.bits, "epsilon": epsilon, "delta": delta}
    m = least_m(**given, fractions=question.fractions, beta=question.beta)

    def make(n: int) -> Any:
        return quantiles.supported(**given, fractions=question.fractions, m=m)

    return Offer(size_for(m, question.alpha), make, "supported")


def supported_floor(question: Question) -> float:
    """What the first run needs."""
    question.approximate()
    count, given = len(question.fractions), budgets(np.asarray(question.fractions), *question.step(), np)
    return least_m_of_run(question.bits, [float(each[0]) for each in given], question.beta / count) / question.alpha


def tree(question: Question) -> Offer:
    """The tree, by its own worst case: fractions cost next to nothing."""
    epsilon, _ = question.step()
    # If there are fewer levels, each may spend more, but has more children.
    widths = [width for width in range(1, WIDEST + 1) if epsilon >= SMALLEST_RATE * -(-question.bits // width)]
    if not widths:
        raise UnavailableError(f"needs an epsilon of {SMALLEST_RATE} for each level")
    count = len(question.fractions)
    errors = {width: tree_error(question.bits, width, count, epsilon, question.beta) for width in widths}
    width = min(widths, key=errors.__getitem__)
    given: dict[str, Any] = {"bits": question.bits, "fractions": question.fractions, "epsilon": epsilon}
    return Offer(
        size_for(errors[width] + 1, question.alpha), lambda n: quantiles.tree(**given, branching=1 << width), "tree"
    )


@dataclasses.dataclass(frozen=True)
class _Parts:
    """What runs around noisy ranks share.

    Attributes:
      question: the question, with the epsilon and delta of a step.
      own: the part of delta that a run may take.
      narrow: the part of the rest, and of beta, that narrow gaps may take.
    """

    question: Question
    own: float
    narrow: float

    @classmethod
    def of(cls, question: Question, share: float = 0.0) -> Self:
        """UnavailableError without a delta, or for more quantiles than there may be."""
        question.approximate()
        if len(question.fractions) > MOST_SLICES:
            raise UnavailableError(f"takes at most {MOST_SLICES} fractions")
        epsilon, delta = question.step()
        narrow = min((1 - share) * delta * SAFE, question.beta / 4)
        return cls(dataclasses.replace(question, epsilon=epsilon, delta=delta), share * delta, narrow)

    @property
    def count(self) -> int:
        return len(self.question.fractions)

    @property
    def share(self) -> float:
        """The share of beta for each of the runs, the ranks and the count."""
        return (self.question.beta - self.narrow) / 3

    @functools.cached_property
    def gap(self) -> float:
        """The least distance between two fractions, allowing for their rounding; infinite for a single fraction."""
        return float(np.min(np.diff(self.question.fractions), initial=math.inf)) - 2.0**-31


class _Slices(_Parts):
    """Noisy slices as plans see them."""

    def solver(self, epsilon: float, *, roughly: bool = True) -> tuple[interior_points.Solver, int]:
        """(the best solver, m); `roughly` is without TreeLog's plan, which takes milliseconds."""
        # Two slices may differ by a replaced point.
        own = step_delta(self.own, epsilon) * SAFE
        steps = 1 if roughly or own == 0.0 else None
        found, points = interior_points.best(self.question.bits, epsilon, own, self.share / self.count, steps=steps)
        return found, max(1, -(-points // 2))

    def _costs(self, fewer: int = 0) -> list[tuple[Any, float]]:
        """(the roots of what 2e, r and s divide, what their sum is divided by): for errors, and for distances if there are any."""
        epsilon = self.question.epsilon / 4
        slices = epsilon * (self.solver(epsilon)[1] - fewer)
        drifts, room, of_count = costs(self.count, self.share, self.narrow)
        near = np.sqrt([2 * slices, drifts, of_count]), self.question.alpha
        far = np.sqrt([4 * slices, room, of_count * min(self.gap, 1.0)]), self.gap
        return [near, far] if self.count > 1 else [near]

    def floor(self) -> float:
        """About the larger n of the best splits for errors and distances, by Cauchy's inequality: the square of the sum of the roots.

        m is a whole number, and what it is rounded up by is much of a slice of a few.
        """
        return max(roots.sum() ** 2 / (self.question.epsilon * divisor) for roots, divisor in self._costs(fewer=1))

    def splits(self) -> list[tuple[float, float, float]]:
        """(2e, r, s) for each of the three ways."""
        ways = [roots / roots.sum() for roots, _ in self._costs()]
        ways += [np.sqrt(ways[0] * ways[1])] if len(ways) > 1 else []
        return [tuple((self.question.epsilon * SAFE * way / way.sum()).tolist()) for way in ways]

    def needs(self, m: int, ranks: float, count: float) -> float:
        """The number of points that are needed."""
        spacing = least_spacing(m, self.count, ranks, self.narrow)
        return points_needed(m, *self._noise(ranks, count), spacing, self.gap, self.question.alpha)

    def _noise(self, ranks: float, count: float) -> tuple[float, float]:
        """How far ranks are moved, and N."""
        return drift(self.count, ranks, self.share), miscount(self.share, count)

    def offer(self, both: float, ranks: float, count: float) -> Offer:
        """The offer with 2e, r and s; the 2e of the slices also pays for slices that are met twice."""
        least = self.solver(both / 2)[1]
        met_twice = math.log1p(1 / (2 * least + 1))  # less at the larger m that a smaller e requires
        if met_twice >= both / 2:
            raise UnavailableError("an epsilon so large leaves slices of a few points, each of which may be met twice")
        solver, m = self.solver((both - met_twice) / 2, roughly=False)
        m = max(m, least)  # TreeLog's plan may require less than was assumed
        n = self.needs(m, ranks, count)
        given: dict[str, Any] = {"fractions": self.question.fractions, "m": m, "delta": self.narrow}
        given |= {"rank_epsilon": ranks, "count_epsilon": count, "allow_unproved": True}
        name = f"noisy_slices, {solver.name}"
        return Offer(size_for(n, 1.0), lambda n: quantiles.noisy_slices(solver=solver.made(), **given), name)


def noisy_slices(question: Question) -> Offer:
    """Noisy slices, by their own worst case: with a pure solver, or one that shares delta with the gaps, planned for one split only."""
    slices = _Slices.of(question)
    best = min((slices.offer(*split) for split in slices.splits()), key=lambda offer: offer.n)
    slices = _Slices.of(question, OWN)
    if slices.solver(slices.question.epsilon / 4)[0].name in interior_points.PURE:
        return best

    def roughly(split: tuple[float, float, float]) -> float:
        return slices.needs(slices.solver(split[0] / 2)[1], *split[1:])

    split = min(slices.splits(), key=roughly)
    return min(best, slices.offer(*split), key=lambda offer: offer.n) if roughly(split) < best.n else best


@functools.lru_cache(256)  # distribution functions ask each question twice
def noisy_slices_floor(question: Question) -> float:
    """Somewhat less than the n of the best split."""
    return _FEWER * min(_Slices.of(question, share).floor() for share in (0.0, OWN))


class _SupportedSlices(_Parts):
    """The same with one choice among the keys that the data support for each, around ranks of n itself."""

    @functools.cached_property
    def fractions(self) -> tuple[float, ...]:
        """The fractions that are computed with."""
        return rounded(self.question.fractions)

    def least_m(self, epsilon: float) -> int:
        """m for runs at epsilon."""
        run = 0.5, epsilon, self.own * SAFE
        return least_m_of_run(self.question.bits, run, self.share / self.count)

    def ways(self) -> list[tuple[float, float, int, list[_Three]]]:
        """(about the least n of any split, about that of these, chains, splits) for each way.

        UnavailableError if none leaves the noise of ranks a rate at which it can be drawn.
        """
        holdable(self.own * SAFE)
        epsilon, alpha, gap = self.question.epsilon / 2, self.question.alpha, self.gap
        run, found = epsilon * self.least_m(epsilon), []
        near: _Three
        far: _Three
        for number, power in WAYS:
            chains, noise, room = _of_noise(self.fractions, number, self.share, self.narrow, power)
            # What epsilons divide, as by Cauchy's inequality; for distances with a margin of m/4, and its price.
            if chains.released:
                of_count = miscount(self.share, 1.0)
                near, far = (run, noise, of_count), (2.5 * run, room, of_count * gap)
            else:
                counted = power * gap / chains.cost
                near, far = _with_count(run, noise, counted), _with_count(2.5 * run, room, counted)
            between = tuple(map(math.sqrt, map(operator.mul, near, far)))
            least = least_rate(self.count) * STEP * chains.cost
            splits = [self._split(costs, least) for costs in (near, far, between)]
            if all(count >= SMALLEST_RATE for _, _, count in splits):
                # Each of the first two is the best for its own, so no split takes fewer than both.
                of_each = [(_shared(near, split) / alpha, _shared(far, split) / gap) for split in splits]
                found.append((max(of_each[0][0], of_each[1][1]), min(map(max, of_each)), number, splits))
        if not found:
            raise UnavailableError("needs a larger epsilon for the noise of so many ranks")
        return found

    def _split(self, costs: _Three, least: float) -> _Three:
        """The epsilons in proportion to the roots of costs, but for ranks at least the given one."""
        total = self.question.epsilon * SAFE
        roots = [math.sqrt(cost) for cost in costs]
        whole = sum(roots)
        run, ranks, count = (total * root / whole for root in roots)
        if ranks < least:
            ranks = least / SAFE
            left = max(total - ranks, 0.0) / (run + count)
            run, count = run * left, count * left
        return run, ranks, count

    def floor(self) -> float:
        return min(way[0] for way in self.ways())

    def best(self) -> Offer:
        """The best split of the best way, by either estimate."""
        ways = self.ways()
        tried = {min(range(len(ways)), key=lambda i: ways[i][estimate]) for estimate in (0, 1)}
        offers = (self.made(ways[i][2], *split) for i in sorted(tried) for split in ways[i][3])
        return min(offers, key=lambda offer: offer.n)

    def made(self, number: int, run: float, ranks: float, count: float) -> Offer:
        """The offer with so many chains and these epsilons; that of a run also pays for windows in doubt."""
        m, (chains, noise, _) = self.least_m(run), _of_noise(self.fractions, number, self.share, self.narrow, 1.0)
        needs = functools.partial(chain_points, count_epsilon=count, share=self.share, alpha=self.question.alpha)
        moved = noise / ranks * NEARLY
        moved += miscount(self.share, count) if chains.released else 0.0
        # As much margin as the n that errors need leaves room for, up to 16 m; at least m/4, with which distances need the fewest points.
        within = needs(m, moved, 0) - miscount(2 * self.share, count)
        room = self.gap * (within - chains.enough(ranks, count, 2 * m + 2, self.narrow))
        margin = max(int(min(max(room, m / 4), 16 * m, MOST_WIDTH)), 1)
        in_doubt = math.log1p(1 / margin)
        if in_doubt >= run:
            raise UnavailableError("an epsilon so large leaves windows of a few points, each of which may be in doubt")
        m = self.least_m(run - in_doubt)
        n = needs(m, moved, chains.enough(ranks, count, 2 * m + margin + 2, self.narrow))
        given: dict[str, Any] = {"bits": self.question.bits, "fractions": self.question.fractions, "m": m}
        given |= {"epsilon": run - in_doubt, "delta": self.own * SAFE, "gap_delta": self.narrow, "margin": margin}
        given |= {"rank_epsilon": ranks, "count_epsilon": count, "chains": number}
        return Offer(size_for(n, 1.0), lambda n: quantiles.supported_slices(**given), "supported_slices")


@functools.lru_cache(1024)  # the search for an alpha or an epsilon asks for them again and again
def _of_noise(
    fractions: tuple[float, ...], number: int, share: float, delta: float, power: float
) -> tuple[Chains, float, float]:
    """(The chains; what epsilon divides in the noise of a rank, at `share`, and in the room of a gap, at delta); see `chain_costs`."""
    chains = Chains.of(fractions, number)
    noise, room = (cost * chains.cost for cost in chain_costs(chains, share, delta, power))
    return chains, noise, room


def _with_count(run: float, ranks: float, share: float) -> _Three:
    """What the epsilons of runs, of ranks and of N divide, where the root of that of N is a share of the root of that of ranks."""
    return run, ranks / (1 + share), ranks / (1 + share) * share**2


def _shared(costs: _Three, epsilons: _Three) -> float:
    """The sum of what each epsilon divides."""
    return sum(map(operator.truediv, costs, epsilons))


def supported_slices(question: Question) -> Offer:
    """Choices around noisy ranks among the keys that the data support, by their own worst case, at the best of the splits.

    For a single quantile, whose rank needs no noise, it is `supported`: where the number of answers falls as alpha grows (`cdf`, `shared`),
    a refusal of one answer would end the search for an alpha, which begins near 1.
    """
    slices = _SupportedSlices.of(question, OWN)
    return slices.best() if slices.count > 1 else supported(question)


@functools.lru_cache(256)
def supported_slices_floor(question: Question) -> float:
    """Somewhat less than the n of the best split."""
    slices = _SupportedSlices.of(question, OWN)
    return _FEWER * slices.floor() if slices.count > 1 else supported_floor(question)


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("permute_and_flip", permute_and_flip),
    Candidate("supported_slices", supported_slices, supported_slices_floor),
    Candidate("noisy_slices", noisy_slices, noisy_slices_floor),
    Candidate("rank_exponential", rank_exponential),
    Candidate("tree", tree),
    Candidate("supported", supported, supported_floor),
    Candidate("direct", direct, direct_floor),
    Candidate("recursive", recursive),
    Candidate("inverse_sensitivity", inverse_sensitivity, inverse_sensitivity_floor),
    Candidate("approximate", approximate, approximate_floor),
)
