"""How TreeLog's parameters follow from (epsilon, delta, beta): the split of the budget that needs the fewest points.

**What is spent** under add/remove, with N levels before the last (`dpjax.optimizers.interior_point.walk` has the proof):

| part | times | public slice sizes (composition) | noisy slice sizes (slicing) |
|---|---|---|---|
| walk | N | (eps_w, delta_w) | (eps_w, delta_w), composed with the slicing |
| A_dist on the deep slice | N | (2 eps_s, e^eps_s delta_s): two slices may differ by a replacement | a compute of (eps_s, delta_s) |
| count on the left slice | N | (eps_c, 0): the count of the m1 smallest below a point moves by at most 1 | a compute of (eps_c, 0) |
| exponential mechanism | 1 | (eps_b, 0) | the compute on all that is left |

**What is needed** for an interior point with probability 1 - beta, where each of the 3N + 1 steps that may fail gets b = beta / (3N + 1)
(with noisy sizes 3N + 2, one share for the sum of the noises):

    m1 = (2/eps_c) ln(1/(2b)),   m2 = max{K, 2c + 1 + (ln(1/(2 delta_s)) + ln(1/(2b))) / eps_s},
    n  = N (m1 + m2) + (2/eps_b) ln(2^h/b) + [the (1-b)-quantile of 2N noises],   2^h the size of the last domain.

m1: the count of the left slice is 0 or at least m1 when it matters, and Laplace noise passes m1/2 with probability b. m2: c is the largest
lighter child that a walk passes with probability > b; so all but c points of the deep slice have the prefix, it leads by m2 - 2c, and
A_dist drops it with probability b. The last line: an element that is not an interior point has depth 0, the median half the points; the
exponential mechanism may use exp(eps q), as the depth is monotone.
"""

import dataclasses
import functools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, basic, slicing
from dpjax.accounting.composition import composed_delta, own_delta, total_delta
from dpjax.core import arguments, bisection
from dpjax.mechanisms import partition_selection
from dpjax.optimizers.interior_point.walk import Parameters

LEAST_EPSILON, LARGEST_EPSILON = 1e-4, 700.0  # thresholds are at most 2^24 points, and exp(epsilon) is a float64
PRECISION = 1e-9  # of the log of the scale that a search finds
_FEW = 64  # places at which products are computed, to see that one is too large
LARGE_DELTA = 2.0**-10  # from here on a search from one start alone may end at twice the best sample size
# ln of the odds of the part of delta that the mechanisms may spend, with which it then starts
SHARES = (-2.5, -1.0, 0.0, 1.0, 2.5)
TYPICAL = (-0.5, -0.73, -0.25, 1.4)  # where searches by optimal composition end, about, if delta is large
TYPICAL_SHARES = (-2.0, -1.0, -0.3, 0.5)  # likewise for the part of delta
FEW_TRIALS = 12  # of a search that takes a few hundredths of a second
ROUNDS = 12  # after which a split by Lagrange's conditions is within 1 in 10^4 of the best
DEEPEST = 4  # 2^4096 points become 2^13, 16, 8, 4 by levels: no further level shrinks anything


@dataclasses.dataclass(frozen=True)
class Budget:
    """The budget of each part; see the table in the module. `slice_epsilon` is None where sizes are public."""

    walk_epsilon: float
    walk_delta: float
    select_epsilon: float
    select_delta: float
    count_epsilon: float
    base_epsilon: float
    slice_epsilon: float | None = None

    def parts(self, depth: int) -> list[tuple[float, float, int]]:
        """(epsilon, delta, how often it is used) of every part, when sizes are public."""
        walk, select = (self.walk_epsilon, self.walk_delta), (2 * self.select_epsilon, self._moved_delta())
        return [(*walk, depth), (*select, depth), (self.count_epsilon, 0.0, depth), (self.base_epsilon, 0.0, 1)]

    def composed(self, depth: int) -> dict[Guarantee, int]:
        """The parts as guarantees."""
        parts: dict[Guarantee, int] = {}
        for epsilon, delta, count in self.parts(depth):
            part = Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
            parts[part] = parts.get(part, 0) + count
        return parts

    def total_delta(self, depth: int, epsilon: float) -> float:
        """delta(epsilon) of the whole by optimal composition, with plain numbers, as a search calls it thousands of times."""
        parts = self.parts(depth)
        own = own_delta([(delta, count) for _, delta, count in parts])
        return composed_delta([(each, count) for each, _, count in parts], own, epsilon)

    def run(self, depth: int) -> slicing.Run:
        """The whole as Reorder-Slice-Compute, when sizes are noisy. The last mechanism counts as a compute."""
        largest = max(self.select_epsilon, self.count_epsilon, self.base_epsilon)
        moved = max(2 * self.select_epsilon, self.count_epsilon, 2 * self.base_epsilon)
        return slicing.Run(
            slice_epsilon=math.inf if self.slice_epsilon is None else self.slice_epsilon,
            compute=Guarantee(largest, self.select_delta, ADD_OR_REMOVE_ONE),
            slices=2 * depth + 1,
            replacement=Guarantee(moved, self._moved_delta(), REPLACE_ONE),
            extra={Guarantee(self.walk_epsilon, self.walk_delta, ADD_OR_REMOVE_ONE): depth},
        )

    def _moved_delta(self) -> float:
        """A_dist's delta when a point of its slice is replaced: counts move by 1 each way (`dpjax.mechanisms.stability`)."""
        return min(1.0, math.exp(min(self.select_epsilon, 700.0)) * self.select_delta * (1 + 1e-12))

    def guarantee(self, accountant: str, total: Guarantee, depth: int) -> Guarantee:
        """What an accountant proves for this budget at the total's epsilon.

        Raises:
          ValueError: this is more than the total.
        """
        found = proved(self, accountant, total, depth)
        if not found.covers(total.epsilon, total.delta):
            raise ValueError(f"the budget must keep {total} by the accountant {accountant!r}, got {found}")
        return found


@functools.lru_cache(maxsize=4096)
def proved(budget: Budget, accountant: str, at: Guarantee, depth: int) -> Guarantee:
    """What an accountant proves for a budget: its delta for the epsilon of `at`, or what it gives by itself ("basic": both numbers;
    "slicing_printed": its epsilon for the delta of `at`)."""
    if accountant == "slicing_printed":
        return budget.run(depth).guarantee(delta=at.delta, accountant="printed")
    if accountant == "slicing":
        return dataclasses.replace(at, delta=budget.run(depth).delta(at.epsilon))
    if accountant == "optimal":
        return dataclasses.replace(at, delta=total_delta(budget.composed(depth), at.epsilon))
    return basic(budget.composed(depth))


def spent(parameters: Parameters) -> Budget | None:
    """The budget that TreeLog spends with these parameters; None where they are outside what is proved.

    The walk's theorem requires 2 t1 >= g - 1 and m2 >= K, A_dist requires delta <= 1/2; the anchors must be those of the walk's own
    numbers.
    """
    budget, t1 = _written(parameters), int(parameters.never_below)
    g = _saturation(budget.walk_epsilon, budget.walk_delta, parameters.at)
    if g is None or t1 < 1 or 2 * t1 < g - 1 or int(parameters.deep) < least_deep(t1, g) or budget.select_delta > 0.5:
        return None
    price = walk_price(budget.walk_epsilon, budget.walk_delta, t1)
    return dataclasses.replace(budget, walk_delta=min(1.0, price))


def _written(parameters: Parameters) -> Budget:
    """The parameters' own numbers, with the delta of the walk's partition selection in place of the walk's."""
    names = ["walk_epsilon", "walk_delta", "select_epsilon", "select_delta", "count_epsilon", "base_epsilon"]
    names += ["slice_epsilon"] if parameters.noisy else []
    return Budget(**{name: arguments.known(name, getattr(parameters, name)) for name in names})


def _saturation(epsilon: float, delta: float, at: partition_selection.Anchors) -> int | None:
    """g, if these are the anchors of partition selection at (epsilon, delta), up to float32."""
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        return None
    right = partition_selection.anchors(epsilon, delta)
    g, digits = int(right.saturation), 1 - float(right.log_delta)
    # ln q(a) has the fewest digits, as q(a) is a difference from 1.
    far = {"turn": 0.0, "saturation": 0.0, "excess": 1e-6 * g, "log_delta": 1e-6 * digits, "log_turn": 1e-5 * digits}
    same = all(abs(float(getattr(at, name)) - float(getattr(right, name))) <= most for name, most in far.items())
    return g if same else None


def least_deep(t1: int, g: int) -> int:
    """K = 2 t2 - 2, t2 = t1 + g - 1: the points of a deep slice that can withstand a broken tie."""
    return 2 * (t1 + g - 1) - 2


@dataclasses.dataclass(frozen=True)
class Plan:
    """A choice of TreeLog's parameters that keeps (epsilon, delta) and finds an interior point of `sample_size` points.

    Attributes:
      budget: the split of the budget.
      depth: levels before the last.
      accountant: the analysis that the budget rests on.
      guarantee: what is proved, under ADD_OR_REMOVE_ONE.
      beta: bound on the probability of failure on `sample_size` points or more.
      stop_delta: the delta of the partition selection that stops the walk; its price is budget.walk_delta.
      t1: the weight of the lighter child from which on the walk may stop.
      m1, m2: the points in the left and the deep slice, before noise.
      base: the points that the last level needs.
      noise: a bound on the sum of all noises in the sizes; 0 if sizes are public.
      sample_size: the points that suffice.
    """

    budget: Budget
    depth: int
    accountant: str
    guarantee: Guarantee
    beta: float
    stop_delta: float
    t1: int
    m1: int
    m2: int
    base: int
    noise: int
    sample_size: int

    @property
    def t2(self) -> int:
        """The weight of the lighter child from which on the walk stops with certainty."""
        return self.t1 + partition_selection.saturation(self.budget.walk_epsilon, self.stop_delta) - 1

    @property
    def K(self) -> int:
        """The least deep slice."""
        return 2 * self.t2 - 2

    def parameters(self) -> Parameters:
        """The same as data for the compiled algorithm."""
        budget = self.budget
        return Parameters(
            walk_epsilon=np.float64(budget.walk_epsilon),
            walk_delta=np.float64(self.stop_delta),
            select_epsilon=np.float64(budget.select_epsilon),
            select_delta=np.float64(budget.select_delta),
            count_epsilon=np.float64(budget.count_epsilon),
            base_epsilon=np.float64(budget.base_epsilon),
            slice_epsilon=np.float64(math.inf if budget.slice_epsilon is None else budget.slice_epsilon),
            left=np.int32(self.m1),
            deep=np.int32(self.m2),
            never_below=np.int32(self.t1),
            at=partition_selection.anchors(budget.walk_epsilon, self.stop_delta),
            depth=self.depth,
            noisy=budget.slice_epsilon is not None,
        )


def last_bits(bits: int, depth: int) -> int:
    """Bits of the domain that `depth` levels leave.

    >>> [last_bits(4096, depth) for depth in range(5)]
    [4096, 13, 4, 3, 2]
    """
    for _ in range(depth):
        bits = bits.bit_length()
    return bits


class Walk(NamedTuple):
    """A walk's thresholds, and the delta of the partition selection that stops it."""

    stop_delta: float
    t1: int
    t2: int


@functools.lru_cache(maxsize=1024)
def cheapest_walk(epsilon: float, delta: float) -> Walk:
    """The walk with the least t2 whose price is (epsilon, delta).

    The walk's theorem (`dpjax.optimizers.interior_point.walk`): with partition selection at (epsilon, d), saturating at g, shifted to start
    at t1, the price is d + e^epsilon max q~(m) p~(floor(m/2)) over 2 t1 <= m < t2 = t1 + g - 1, if 2 t1 >= g - 1. From t1 = g - 1 on
    there is no such m. The price of a smaller t1 is a smaller d.

    >>> walk = cheapest_walk(1.0, 1e-6)
    >>> walk.t1 < partition_selection.saturation(1.0, 1e-6) - 1, walk.stop_delta < 1e-6
    (True, True)
    """
    shares = sorted(np.linspace(0.2, 1.0, 17), key=lambda share: abs(share - 0.65))  # first where the best one often is
    best = walk_of(epsilon, delta, shares[0])
    for share in shares[1:]:
        # The t1 with which this share is better: with the t2 of the best one, or one less where that one's share is larger.
        stop_delta = float(share * delta)
        at = partition_selection.anchors(epsilon, stop_delta)
        g = int(at.saturation)
        t1 = best.t2 - g + (stop_delta < best.stop_delta)
        if t1 < _least_t1(g) or _least_price(epsilon, stop_delta, t1, at) > delta:
            continue
        if walk_price(epsilon, stop_delta, t1) <= delta:
            best = walk_of(epsilon, delta, share)
    return best


def _least_t1(g: int) -> int:
    """The least t1 that the walk's theorem allows."""
    return max(1, math.ceil((g - 1) / 2))


def walk_of(epsilon: float, delta: float, share: float) -> Walk:
    """The least t1 for a given share of delta spent on partition selection itself."""
    stop_delta = float(share * delta)
    g = partition_selection.saturation(epsilon, stop_delta)
    # The price falls as t1 grows: fewer m, and smaller products.
    t1 = bisection.least_int(lambda t1: walk_price(epsilon, stop_delta, t1) <= delta, _least_t1(g), max(1, g - 1))
    return Walk(stop_delta, t1, t1 + g - 1)


@functools.lru_cache(maxsize=64)
def _probabilities(epsilon: float, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """`partition_selection.probabilities`, kept while t1 is searched for."""
    return partition_selection.probabilities(epsilon, delta)


def walk_price(epsilon: float, stop_delta: float, t1: int) -> float:
    """d' of the walk's theorem, rounded up: the delta of a walk stopped by partition selection at (epsilon, stop_delta) from t1 on."""
    kept, dropped = _probabilities(epsilon, stop_delta)
    weights = np.arange(2 * t1, t1 + len(kept) - 2)
    if not weights.size:
        return stop_delta
    products = dropped[weights - t1 + 1] * kept[weights // 2 - t1 + 1]
    return float(stop_delta + math.exp(min(epsilon, 700.0)) * products.max() * (1 + 1e-9))


def _least_price(epsilon: float, stop_delta: float, t1: int, at: partition_selection.Anchors) -> float:
    """A lower bound on `walk_price` from a few m, without a table of all."""
    g = int(at.saturation)
    if t1 >= g - 1:
        return stop_delta
    halves = np.linspace(t1, (t1 + g - 2) // 2, _FEW).astype(int)
    counts = np.concatenate([halves, 2 * halves]) - t1 + 1
    kept, dropped = partition_selection.probabilities(epsilon, stop_delta, counts, at)
    return float(stop_delta + math.exp(min(epsilon, 700.0)) * (kept[:_FEW] * dropped[_FEW:]).max())


@dataclasses.dataclass(frozen=True)
class _Needs:
    """The points that each part except the walk needs, as real numbers; and b (`share`)."""

    left: float
    tests: float
    base: float
    noise: float
    share: float

    def deep(self, epsilon: float, stop_delta: float, t1: int) -> float:
        """m2 for a walk stopped by partition selection at (epsilon, stop_delta) from t1 on, without the bound K."""
        passing = np.concatenate([np.ones(t1 - 1), _probabilities(epsilon, stop_delta)[1]])
        largest = int(np.max(np.flatnonzero(passing > self.share)))  # c
        return 2 * largest + 1 + self.tests


def _needs(budget: Budget, bits: int, depth: int, beta: float) -> _Needs:
    """The formulas of the module."""
    share = beta / (3 * depth + (1 if budget.slice_epsilon is None else 2))
    chance = max(0.0, -math.log(2 * share))
    noise = 0.0
    if budget.slice_epsilon is not None:
        from scipy.stats import nbinom

        noise = float(nbinom.isf(share, 2 * depth, -math.expm1(-budget.slice_epsilon)))
    log_twice = math.log(2) + math.log(max(budget.select_delta, sys.float_info.min))
    return _Needs(
        left=2 / budget.count_epsilon * chance,
        tests=(max(0.0, -log_twice) + chance) / budget.select_epsilon,
        base=2 / budget.base_epsilon * (last_bits(bits, depth) * math.log(2.0) - math.log(share)),
        noise=noise,
        share=share,
    )


def _cost(budget: Budget, bits: int, depth: int, beta: float) -> float:
    """About the number of points needed, with c taken as 3/2 of a smooth g: this is what the search minimises."""
    needs = _needs(budget, bits, depth, beta)
    g = 2 / budget.walk_epsilon * math.log1p(math.tanh(budget.walk_epsilon / 2) / budget.walk_delta)
    return depth * (needs.left + 3 * g + needs.tests) + needs.base + needs.noise


def sample_size(parameters: Parameters, *, bits: int, beta: float) -> int:
    """The number of points for which TreeLog with these parameters finds an interior point except with probability beta.

    Raises:
      ValueError: its slices are too small for that beta.
    """
    budget, depth = _written(parameters), parameters.depth
    needs = _needs(budget, bits, depth, beta)
    left, deep = int(parameters.left), int(parameters.deep)
    wanted = needs.deep(budget.walk_epsilon, budget.walk_delta, int(parameters.never_below))
    if left < needs.left or deep < wanted:
        rule = f"m1 >= {math.ceil(needs.left)} and m2 >= {math.ceil(wanted)}"
        raise ValueError(
            f"beta must be one that the slices are cut for ({rule} for {beta:g}), got m1 = {left}, m2 = {deep}"
        )
    return depth * (left + deep) + max(1, math.ceil(needs.base)) + math.ceil(needs.noise)


def plan(budget: Budget, *, bits: int, depth: int, beta: float, accountant: str, guarantee: Guarantee) -> Plan:
    """The parameters that follow from a budget."""
    needs = _needs(budget, bits, depth, beta)
    walk = cheapest_walk(budget.walk_epsilon, budget.walk_delta)
    deep = math.ceil(needs.deep(budget.walk_epsilon, walk.stop_delta, walk.t1))
    left, deep = max(1, math.ceil(needs.left)), max(2 * walk.t2 - 2, deep)
    base, noise = max(1, math.ceil(needs.base)), math.ceil(needs.noise)
    return Plan(
        budget=budget,
        depth=depth,
        accountant=accountant,
        guarantee=guarantee,
        beta=beta,
        stop_delta=walk.stop_delta,
        t1=walk.t1,
        m1=left,
        m2=deep,
        base=base,
        noise=noise,
        sample_size=depth * (left + deep) + base + noise,
    )


# ------------------------------------------------------------------------------- how a point of the search is a budget
#
# A point holds the logs of ratios of epsilons and the log odds of shares of delta; its budget is the one in these proportions
# that just keeps the total.


def _odds(x: float) -> float:
    """1 / (1 + e^-x), kept as `_ratio` is."""
    return 1 / (1 + _ratio(-x))


def _ratio(x: float) -> float:
    """e^x, kept where no part of the budget vanishes: a search whose cost no longer depends on a part takes it anywhere."""
    return math.exp(min(max(x, -30.0), 30.0))


def _public(point: Any, scale: float, delta: float, depth: int) -> Budget:
    """A budget without size noise: epsilons in the given ratios to that of the last mechanism; all of delta spent on tests."""
    walk, select, count = (scale * _ratio(x) for x in point[:3])
    share, each = _odds(point[3]), delta / depth
    return Budget(walk, share * each, *_test(select, (1 - share) * each), count, scale)


def _test(epsilon: float, moved: float) -> tuple[float, float]:
    """(epsilon, delta) of a test that costs a delta of `moved`: epsilon is small enough to leave a delta that floats hold, if possible."""
    room = math.log(max(moved, sys.float_info.min)) - math.log(2 * arguments.least())
    epsilon = min(epsilon, room) if room > 0 else epsilon
    return epsilon, min(0.5, moved * math.exp(-epsilon))


def _basic(point: Any, total: Guarantee, depth: int) -> Budget:
    walk, select, count = (_ratio(x) for x in point[:3])
    safe = 1 - 1e-9  # rounding must not exceed the total
    return _public(point, safe * total.epsilon / (depth * (walk + 2 * select + count) + 1), safe * total.delta, depth)


def _optimal(point: Any, total: Guarantee, depth: int) -> Budget:
    from scipy.optimize import brentq

    own = dataclasses.replace(total, delta=total.delta * _odds(point[4]))

    @functools.cache  # the root's search asks for both ends again
    def beyond(log_scale: float) -> float:
        """ln of the ratio of the delta that is spent at this scale to the total."""
        spent = _public(point, math.exp(log_scale), own.delta, depth).total_delta(depth, total.epsilon)
        return math.log(spent / total.delta)

    # By basic composition the low end keeps the total; where much of delta is left, more than epsilon may be spent at the high end.
    low, high = math.log(_basic(point, own, depth).base_epsilon), math.log(total.epsilon)
    while beyond(high) <= 0:
        low, high = high, high + 1
    root = brentq(beyond, low, high, xtol=PRECISION)
    return _public(point, math.exp(root - 2 * PRECISION), own.delta, depth)  # below the root: the total is kept


def _noisy(point: Any, scale: float, delta: float, depth: int) -> Budget:
    """A budget with size noise: all computes alike, walks and noise in the given ratios to them."""
    walk, noise = (scale * _ratio(x) for x in point[:2])
    share, each = _odds(point[2]), delta * _odds(point[3]) / depth
    return Budget(walk, share * each, *_test(scale, (1 - share) * each), scale, scale, noise)


def _sliced(point: Any, total: Guarantee, depth: int, method: str) -> Budget:
    def run(scale: float) -> slicing.Run:
        return _noisy(point, scale, total.delta, depth).run(depth)

    return _noisy(point, slicing.largest(run, total, accountant=method, precision=1e-3), total.delta, depth)


@dataclasses.dataclass(frozen=True)
class _Accountant:
    """How the search treats an accountant: where it starts, how many budgets it tries, and the budget of a point."""

    start: tuple[float, ...]
    trials: int
    budget: Callable[[Any, Guarantee, int], Budget]


_ACCOUNTANTS = {
    "basic": _Accountant((-0.5, -1.5, -1.0, 2.0), 400, _basic),
    "optimal": _Accountant((-0.5, -1.5, -1.0, 2.0, 7.0), 100, _optimal),
    "slicing_printed": _Accountant((1.0, 0.0, 1.0, -2.0), 40, functools.partial(_sliced, method="printed")),
    "slicing": _Accountant((1.0, 0.0, 1.0, 0.0), 40, functools.partial(_sliced, method="numerical")),
}


# ---------------------------------------------------------------------------------------------------------- search


def calibrate(
    *, bits: int, epsilon: float, delta: float, beta: float, accountant: str = "best", depth: int | None = None
) -> Plan:
    """The plan with the least sample size that keeps (epsilon, delta) under ADD_OR_REMOVE_ONE.

    The split of the budget is found by the Nelder-Mead method on a smoothed sample size; what is returned is checked against the
    accountant, whatever the search did.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}.
      epsilon, delta: the total; epsilon from 1e-4 to 700.
      beta: bound on the probability of failure.
      accountant: "basic" or "optimal" (composition, public sizes), "slicing_printed" or "slicing" (noisy sizes; Theorem 2.1, or the
        numerical accountant), or "best": the one that needs the fewest points.
      depth: levels before the last, 1 to 64; None for the best up to 4, beyond which no domain shrinks.

    Returns:
      The plan, with everything that was chosen.

    Raises:
      TypeError, ValueError: an argument out of range, or traced: the plan is made on the host.

    >>> chosen = calibrate(bits=64, epsilon=1.0, delta=1e-6, beta=0.1, accountant="basic")
    >>> chosen.depth, chosen.m2 >= chosen.K, chosen.guarantee.covers(1.0, 1e-6)
    (1, True, True)
    """
    bits = arguments.size("bits", bits)
    epsilon = arguments.known("epsilon", arguments.epsilon(epsilon), at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    delta = arguments.known("delta", arguments.delta(delta))
    beta = arguments.known_fraction("beta", beta)
    arguments.choice("accountant", accountant, (*_ACCOUNTANTS, "best"))
    depths = range(1, DEEPEST + 1) if depth is None else [arguments.integer("depth", depth, at_least=1, at_most=64)]
    names = tuple(_ACCOUNTANTS) if accountant == "best" else (accountant,)
    total = Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
    plans = [_search(bits, total, beta, name, levels) for name in names for levels in depths]
    return min(plans, key=lambda plan: plan.sample_size)


@functools.lru_cache(maxsize=4096)  # parts of a plan ask the same
def quick(bits: int, total: Guarantee, beta: float, accountant: str) -> Plan:
    """A plan with one level in a few hundredths of a second at most, nearly as good as that of `calibrate`.

    By "basic" composition it has no search and needs 1 in 10^4 more points, by "optimal" composition after a short one some hundredths.
    """
    return _planned(bits, total, beta, accountant, 1, _lagrange if accountant == "basic" else _short_search)


@functools.lru_cache(maxsize=4096)
def _search(bits: int, total: Guarantee, beta: float, name: str, depth: int) -> Plan:
    """The best split for one accountant and depth."""
    return _planned(bits, total, beta, name, depth, _best_point)


def _planned(bits: int, total: Guarantee, beta: float, name: str, depth: int, point: Callable[..., np.ndarray]) -> Plan:
    best = _ACCOUNTANTS[name].budget(point(bits, total, beta, name, depth), total, depth)
    return plan(best, bits=bits, depth=depth, beta=beta, accountant=name, guarantee=best.guarantee(name, total, depth))


def _log_cost(bits: int, total: Guarantee, beta: float, name: str, depth: int) -> Callable[[np.ndarray], float]:
    """ln of the cost of a point's budget, infinite where too much of delta goes to the tests: then no scale keeps the total."""

    def cost(point: np.ndarray) -> float:
        try:
            return math.log(_cost(_ACCOUNTANTS[name].budget(point, total, depth), bits, depth, beta))
        except ValueError:
            return math.inf

    return cost


def _best_point(bits: int, total: Guarantee, beta: float, name: str, depth: int) -> np.ndarray:
    """Where the search ends. For optimal composition it begins at the best basic point, which it can only improve."""
    cost = _log_cost(bits, total, beta, name, depth)
    accountant = _ACCOUNTANTS[name]
    starts = [np.asarray(accountant.start)]
    if name == "optimal":
        best = _best_point(bits, total, beta, "basic", depth)
        # Nearly all of delta for the parts; where delta is large, that may end far too high: composition may need much of it.
        starts = [np.append(best, odds) for odds in (SHARES if total.delta > LARGE_DELTA else (accountant.start[4],))]
        if total.delta > LARGE_DELTA:
            starts += [np.array([*TYPICAL, odds]) for odds in TYPICAL_SHARES]
    return _nelder_mead(cost, sorted(starts, key=cost)[:2], accountant.trials)


def _short_search(bits: int, total: Guarantee, beta: float, name: str, depth: int) -> np.ndarray:
    """A short search from the best of a few points."""
    cost = _log_cost(bits, total, beta, name, depth)
    starts = [np.array([*TYPICAL, odds]) for odds in TYPICAL_SHARES]
    starts.append(np.append(_lagrange(bits, total, beta, name, depth), SHARES[-1]))
    return _nelder_mead(cost, [min(starts, key=cost)], FEW_TRIALS)


def _nelder_mead(cost: Callable[[np.ndarray], float], starts: list[np.ndarray], trials: int) -> np.ndarray:
    """The best point that is found from any start."""
    from scipy.optimize import minimize

    options = {"maxfev": trials, "xatol": 1e-3, "fatol": 1e-4}
    found = [minimize(cost, start, method="Nelder-Mead", options=options) for start in starts]
    return min(found, key=lambda each: float(each.fun)).x


def _lagrange(bits: int, total: Guarantee, beta: float, name: str, depth: int) -> np.ndarray:
    """Nearly the best point for basic composition, by Lagrange's conditions.

    A part that needs a/e points and costs p e has an e proportional to sqrt(a/p). The a of the walk, -e^2 times the derivative of what it
    needs, and its share of delta, at which the walk's and the test's derivatives agree, depend on the epsilons: a few rounds settle that.
    Where delta is large the walk may have next to no epsilon: then rounds get there slowly, and are made with that.
    """

    def settled(walks: bool) -> np.ndarray:
        point = np.array(_ACCOUNTANTS["basic"].start)
        for _ in range(ROUNDS):
            budget = _basic(point, total, depth)
            needs, walk, select = _needs(budget, bits, depth, beta), budget.walk_epsilon, budget.select_epsilon
            slope = math.tanh(walk / 2)
            steep = slope / (slope + budget.walk_delta)
            # The derivative of ln(1 + tanh(e/2)/d) by ln e.
            own = math.log1p(slope / budget.walk_delta) - walk / math.sinh(min(walk, 700.0)) * steep
            a = np.array([6 * own, (needs.tests - 1) * select, needs.left * budget.count_epsilon])
            base = needs.base * budget.base_epsilon
            ratios = np.log(np.maximum(a, 1e-300) * depth / (np.array([1, 2, 1]) * depth * base)) / 2
            point = np.array([ratios[0] if walks else -30.0, ratios[1], ratios[2], math.log(6 * select / walk * steep)])
        return np.maximum(point, -30.0)

    return min((settled(True), settled(False)), key=_log_cost(bits, total, beta, "basic", depth))
