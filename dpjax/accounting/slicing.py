"""What Reorder-Slice-Compute promises (CLNSS, Section 2): the printed analysis, plain composition, and a numerical accountant.

A run cuts slices off a dataset, one after the other. Slice i is the first m_i + Geom(1 - exp(-s)) elements in an order
of its own. Computes, each (e, d)-private under add/remove, see one slice each, at once or later. Sizes, orders and
computes may depend on everything published before.

**The numerical accountant.** For neighbours D and D' = D + x (b = 0, 1), CLNSS's simulator (Algorithm 2) produces the
transcript and calls the data holder only in rounds where the two slices differ, until one call synchronises the runs.
A call reports (alpha, beta) ~ R^b(Geom(1 - exp(-s))) (`synchronization`) and what is computed on its slice. Then

- with r = exp(-s) and g the least i with t_i = 0, the outcomes (alpha, beta) have only four losses ln(P_1 / P_0):

      beta = 0 (go on)   alpha < g:      +s,  P_0 = (1+r)(1 - r^g) - g (1-r)
      beta = 1 (stop)    alpha < g-1:    +s,  P_0 = (g-1)(1-r) - r (1 - r^(g-1))
                         alpha = g-1:    ln(r^g / (1 - r^g)),  P_0 = (1-r)(1 - r^g)
                         alpha >= g:     -s,  P_0 = r^g

  (for i <= g-2: P_1[(i,1)] / P_0[(i,1)] = (1/r - r^i) / (1 - r^(i+1)) = 1/r; the rest is geometric sums), so the masses
  of equal losses can be added up and nothing is truncated;
- if beta = 1, the slices of D and D' differ by one added element: every compute is a post-processing of randomised response
  RR(e, d) (Kairouz, Oh, Viswanath 2015);
- if beta = 0, they have one element replaced (or, when the data run out, one added): every compute is a post-processing of
  RR(e', d'), where (e', d') = (2e, (1 + exp(e)) d) by group privacy, or is what the compute itself promises under
  replace-one.

Hence for either b the whole transcript is a randomised function, the same for b = 0 and 1, of a sequence of independent calls
(slice outcome, k randomised responses) that ends with the first beta = 1; a run that calls less often reads a prefix. The
loss of that sequence,

      W = sum over j >= 0 of (go on)^{*j} * (stop)        (`*` is convolution of the laws of losses),

bounds the run: delta(E) is at most the hockey-stick divergence of W, in each direction (the larger of b = 1 against 0 and
0 against 1). That covers late computes, mappings that remove the difference (no more calls), a last mechanism on all the
remaining data (a call without its slice outcome: count it as one slice), and any number of slices. With at most T slices
the sum stops after T calls. n adaptive runs on one dataset give W^{*n}; other mechanisms are convolved with it.

Slices need not have equal noise: s is the largest. For s' <= s, Geom(1 - exp(-s')) = Geom(1 - exp(-s)) + X with X >= 0
independent, because (1 - r z) / (1 - r' z) = 1 + (r' - r) z / (1 - r' z) has no negative coefficient; so the slice is one with
noise s and the random size m + X, which the simulator may know. (W itself is not monotone in s, as g is
an integer: at e = 1/8, E = 0.15 it gives 0.20779 for s = 0.5625 and 0.20769 for s = 0.565.)

W's losses are on the lattice j s + (multiples of 2 e'), over which the sum is exact, all terms positive. Only compositions
(n > 1, other mechanisms) go through dp-accounting's privacy-loss distributions; there each loss between two grid points
is split between them so that both probabilities are kept ("connecting the dots"), an upper bound whose error is of
second order in the grid.
"""

import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpjax.accounting import composition, synchronization
from dpjax.accounting.composition import FFT_ERROR
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.accounting.losses import Law, discretised, nothing_promised
from dpjax.accounting.rounding import at_least, at_most
from dpjax.core import arguments, bisection

ACCOUNTANTS = ("printed", "basic", "advanced", "optimal", "numerical")

# The sum over the number of calls stops when the remaining mass, counted as infinite loss, is this small: relative to the
# delta found so far, or absolutely where it goes into a convolution, which has rounding errors of 1e-16 anyway.
_LEFT, _LEFT_ON_GRID = 2.0**-40, 1e-18
# It stops after this many calls at the latest: enough for slice noise up to 3; beyond, delta is overstated.
_CALLS = 2048
# Grid cells in the larger of the two budgets. The splitting error is about (slope of ln delta times the cell)^2 / 8.
_CELLS = 64
# But no more than about this many in the sum of the extras.
_MOST_CELLS = 2**20
# W's lattice grows with the square of the number of computes on a slice: more than these are grouped, and a group counts as one.
_MOST_COMPUTES = 64
# For sums of positive terms, each correct to a few thousand roundings.
_UP = 1.0 + 2.0**-36
# exp(2 epsilon) must stay a float64; a larger epsilon counts as no promise.
LARGEST_EPSILON = 350.0
# Searches end at this relative precision, on the safe side.
_PRECISION = 2.0**-32


class Best(NamedTuple):
    """The smallest of several guarantees and the accountant that proves it."""

    accountant: str
    guarantee: Guarantee


class Split(NamedTuple):
    """A budget divided between the slice noise and the computes, and what it costs."""

    slice_epsilon: float
    compute_epsilon: float
    cost: float


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of Reorder-Slice-Compute, as far as its privacy goes; neighbours add or remove one element.

    Args:
        slice_epsilon: s > 0 (from 2^-1000 on), the rate of the slice noise Geom(1 - exp(-s)) (the largest, if they differ).
        compute: what each compute promises under ADD_OR_REMOVE_ONE (the largest, if they differ).
        slices: the most slices that are cut in each application; None for any number, which plain composition and
            the printed analysis with computes of delta > 0 cannot handle.
        computes: number k of computes on each slice (Corollary 2.2), at once or later.
        applications: number of adaptive runs on the same dataset (Theorem 2.3).
        replacement: what each compute promises under REPLACE_ONE; by default group privacy.
        extra: guarantees of whatever else accesses the dataset or what is left of it, under ADD_OR_REMOVE_ONE; any
            iterable, or a mapping from each guarantee to how often it is used.

    Raises:
        TypeError, ValueError: an argument out of range or under another relation.

    Example:
        >>> run = Run(0.1, Guarantee(0.1, 0.0, ADD_OR_REMOVE_ONE), slices=500)
        >>> f"{run.delta(1.0):.3g}"
        '0.000331'
        >>> run.best(delta=1e-6).accountant
        'numerical'
    """

    slice_epsilon: float
    compute: Guarantee
    slices: int | None = None
    computes: int = 1
    applications: int = 1
    replacement: Guarantee | None = None
    extra: composition.Guarantees = ()

    def __post_init__(self) -> None:
        rate = arguments.number(
            "slice_epsilon", self.slice_epsilon, at_least=synchronization.LEAST_RATE, below=math.inf
        )
        object.__setattr__(self, "slice_epsilon", rate)
        object.__setattr__(self, "extra", _listed(self.extra))
        for name in ("computes", "applications") if self.slices is None else ("computes", "applications", "slices"):
            object.__setattr__(self, name, arguments.integer(name, getattr(self, name), at_least=1))
        for name, part in [("compute", self.compute), *(("extra", part) for part in self.extra)]:
            _check_relation(name, part, ADD_OR_REMOVE_ONE)
        if self.replacement is not None:
            _check_relation("replacement", self.replacement, REPLACE_ONE)

    @functools.cached_property
    def compute_apart(self) -> Guarantee:
        """What a compute promises for two slices with one element replaced or added: (e', d')."""
        near, far = self.compute, self.replacement or self.compute.under_replace_one()
        return Guarantee(max(near.epsilon, far.epsilon), max(near.delta, far.delta), ADD_OR_REMOVE_ONE)

    def delta(self, epsilon: float) -> float:
        """The least delta the numerical accountant finds for the whole run at this total epsilon.

        Args:
            epsilon: total epsilon, finite, >= 0.

        Returns:
            delta in [0, 1], at least the hockey-stick divergence of W: it exceeds that by a relative 1e-10 for one application
            without extras, otherwise by less than a hundredth down to 1e-12; but it is 1 where the delta that the analysis gives
            one compute alone, (1 + e^epsilon) times its own, is 1 or more. For more than 64 computes on a slice, W is that of up
            to 64 groups, each a compute with the sum of its members' budgets: an upper bound, far from tight for many.

        Raises:
            TypeError, ValueError: epsilon negative, infinite or not a number.
        """
        return self._profile()(arguments.number("epsilon", epsilon, at_least=0.0, below=math.inf))

    def guarantee(self, *, delta: float, accountant: str = "numerical") -> Guarantee:
        """The run's guarantee at a total delta, by one of the accountants.

        printed: Lemma 2.6 says (for k = 1, s = e) that a call is (s + 2 k e, 2 k exp(2 e) d)-private, and Lemmas 2.7 and 2.8
        that there are more than w = `printed_calls(d^)` of them with probability at most d^. This gives (w (s + 2 k e),
        d^ + 2 k n T exp(2 e) d) for n applications of T slices (Theorems 2.1, 2.3, Corollary 2.2, which lose the lemma's
        exp(2 e); s < 1), plus the extras. The deltas of the computes do not depend on d^, and w falls as d^ grows: all the
        rest of `delta` is spent on d^.

        basic, advanced, optimal: the same run by plain composition. With given sizes, two slices have one element replaced (or
        are equal, or one has an element more); each of the k n T computes costs `compute_apart`, and slice noise is not
        needed (nor does it hurt). advanced adds the extras by basic composition.

        numerical: the module's W.

        Args:
            delta: total delta in (0, 1).
            accountant: "printed", "basic", "advanced", "optimal" or "numerical".

        Returns:
            The guarantee under ADD_OR_REMOVE_ONE, rounded up, with delta at most the requested one; (inf, 1) when the
            accountant promises nothing here.

        Raises:
            TypeError, ValueError: delta outside (0, 1), unknown accountant.
        """
        delta = _checked_delta(delta)
        arguments.choice("accountant", accountant, ACCOUNTANTS)
        promised: Guarantee = (
            Guarantee.none(ADD_OR_REMOVE_ONE) if self._hopeless() else getattr(self, f"_{accountant}")(delta)
        )
        return promised if promised.covers(LARGEST_EPSILON, delta) else Guarantee.none(ADD_OR_REMOVE_ONE)

    def best(self, *, delta: float) -> Best:
        """The accountant with the smallest epsilon at a total delta, and its guarantee (ties: the simpler accountant)."""
        found = (Best(name, self.guarantee(delta=delta, accountant=name)) for name in ACCOUNTANTS[1:] + ACCOUNTANTS[:1])
        return min(found, key=lambda each: each.guarantee.epsilon)

    def loss_distribution(self) -> Any:
        """The whole run as a `PrivacyLossDistribution` of dp-accounting, ready to be composed further.

        "Remove" is D' = D + x against D, and "add" is the reverse. Losses lie on a grid whose cell is a power of two, at most
        1/64 of the larger of s and e (more if extras dwarf both); an upper bound up to the rounding of FFTs.

        Raises:
            ValueError: something in the run promises nothing.
        """
        if self.computes > _MOST_COMPUTES:
            return self._in_groups().loss_distribution()
        if self._hopeless():
            raise ValueError(f"every guarantee must have epsilon <= {LARGEST_EPSILON} and delta < 1, got {self}")
        finest = sum(part.epsilon for part in self.extra) / _MOST_CELLS
        cell = 2.0 ** math.floor(math.log2(max(self.slice_epsilon / _CELLS, self.compute.epsilon / _CELLS, finest)))
        parts = [(discretised(_atoms(self, 1), _atoms(self, 0), cell), self.applications)]
        for part, count in Counter(self.extra).items():
            response = _response(part, 1)
            parts.append((discretised(response, response, cell), count))
        try:
            return functools.reduce(lambda total, part: total.compose(part), itertools.starmap(_composed, parts))
        except IndexError:  # raised by dp-accounting where hardly any loss is finite and its truncation leaves none
            return nothing_promised(cell)

    def _profile(self) -> Callable[[float], float]:
        """The function from total epsilon to total delta."""
        if self.computes > _MOST_COMPUTES:
            return self._in_groups()._profile()
        if self._hopeless():
            return lambda epsilon: 1.0
        if self.applications == 1 and not self.extra:
            return lambda epsilon: min(1.0, _UP * max(_excess_of_sum(self, bit, epsilon) for bit in (0, 1)))
        losses = self.loss_distribution()
        allowance = (self.applications + Counter(self.extra).total()) * FFT_ERROR
        return lambda epsilon: min(1.0, _UP * max(0.0, float(losses.get_delta_for_epsilon(epsilon))) + allowance)

    def _in_groups(self) -> "Run":
        """A run that promises no more, with fewer computes on a slice: basic composition merges several into one."""
        each = -(-self.computes // _MOST_COMPUTES)
        near, apart = (composition.basic({part: each}) for part in (self.compute, self.compute_apart))
        far = Guarantee(apart.epsilon, apart.delta, REPLACE_ONE)
        return dataclasses.replace(self, compute=near, replacement=far, computes=-(-self.computes // each))

    def _hopeless(self) -> bool:
        """Whether something in the run promises nothing."""
        return any(part.epsilon > LARGEST_EPSILON or part.delta == 1.0 for part in (self.compute_apart, *self.extra))

    def _plain(self) -> Counter[Guarantee]:
        """Everything that has to be composed when the slices are taken one by one."""
        return Counter({self.compute_apart: self._computes()}) + Counter(self.extra)

    def _computes(self) -> int:
        """How many computes there are in all; 0 if their number is not bounded."""
        return (self.slices or 0) * self.computes * self.applications

    def _slack(self, delta: float, each: Fraction) -> float:
        """What is left of a total delta when every compute has taken `each` and the extras have taken theirs."""
        return at_most(Fraction(delta) - self._computes() * each - sum(Fraction(part.delta) for part in self.extra))

    def _printed(self, delta: float) -> Guarantee:
        near = self.compute
        each = Fraction(0)
        if near.delta > 0.0:
            each = 2 * Fraction(math.exp(2.0 * near.epsilon) * _UP) * Fraction(near.delta)
        slack = self._slack(delta, each)
        if self.slice_epsilon >= 1.0 or slack <= 0.0 or (self.slices is None and each):
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        call = Fraction(self.slice_epsilon) + 2 * self.computes * Fraction(near.epsilon)
        others = sum((Fraction(part.epsilon) for part in self.extra), Fraction(0))
        return Guarantee(at_least(printed_calls(slack, self.applications) * call + others), delta, ADD_OR_REMOVE_ONE)

    def _basic(self, delta: float) -> Guarantee:
        return composition.basic(self._plain()) if self.slices else Guarantee.none(ADD_OR_REMOVE_ONE)

    def _advanced(self, delta: float) -> Guarantee:
        each = self.compute_apart
        slack = self._slack(delta, Fraction(each.delta))
        if not self.slices or not 0.0 < each.epsilon <= 1.0 or slack <= 0.0:
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        composed = composition.advanced(each, self._computes(), slack)
        return Guarantee(composition.basic([composed, *self.extra]).epsilon, delta, ADD_OR_REMOVE_ONE)

    def _optimal(self, delta: float) -> Guarantee:
        return composition.optimal(self._plain(), delta=delta) if self.slices else Guarantee.none(ADD_OR_REMOVE_ONE)

    def _numerical(self, delta: float) -> Guarantee:
        epsilon = _least_epsilon(self._profile(), delta)
        return (
            Guarantee.none(ADD_OR_REMOVE_ONE) if math.isinf(epsilon) else Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
        )


def printed_calls(slack: float, applications: int = 1) -> int:
    """w such that more than w calls to the data holder have probability at most d^, by the printed analysis.

    Each call is the last of its application with probability >= 1/6. For one application, (5/6)^w <= d^ (Lemma 2.7). For
    n of them, the proof of Lemma 2.8 bounds P[at least 6 n x calls] by exp(-n (x - 1 - ln x)), x >= 1. (The step after
    that, exp(-calls/2), has lost the factor 1/6: it should read exp(-calls/12).)

    Args:
        slack: d^ in (0, 1).
        applications: n >= 1.

    Returns:
        The number w, rounded up.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> printed_calls(1e-6), printed_calls(1e-6, 20)
        (76, 320)
    """
    slack, count = _checked_delta(slack, "slack"), arguments.count("applications", applications)
    need = -math.log(slack) * _UP
    if count == 1:
        return math.ceil(need / math.log(1.2))

    def exponent(calls: int) -> float:
        return calls / 6 - count - count * math.log(calls / (6 * count))

    return bisection.least_int(lambda calls: exponent(calls) >= need, 6 * count) - 1


def total_delta(
    *,
    slice_epsilon: float,
    compute_epsilon: float,
    total_epsilon: float,
    compute_delta: float = 0.0,
    slices: int | None = None,
    computes: int = 1,
    applications: int = 1,
    extra: composition.Guarantees = (),
) -> float:
    """The total delta of a run at a total epsilon, by the numerical accountant: `Run.delta` in plain numbers.

    Args:
        slice_epsilon, slices, computes, applications, extra: as in `Run`.
        compute_epsilon, compute_delta: what each compute promises under ADD_OR_REMOVE_ONE.
        total_epsilon: finite, >= 0.

    Returns:
        delta in [0, 1], rounded up.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{total_delta(slice_epsilon=0.05, compute_epsilon=0.05, total_epsilon=2.0):.3g}"
        '4.68e-12'
    """
    epsilon = arguments.number("total_epsilon", total_epsilon, at_least=0.0, below=math.inf)
    compute = Guarantee(
        arguments.number("compute_epsilon", compute_epsilon, at_least=0.0),
        arguments.number("compute_delta", compute_delta, at_least=0.0, at_most=1.0),
        ADD_OR_REMOVE_ONE,
    )
    return Run(slice_epsilon, compute, slices, computes, applications, None, extra).delta(epsilon)


def step_epsilon(
    *, total_epsilon: float, total_delta: float, accountant: str = "numerical", compute_delta: float = 0.0, **shape: Any
) -> float:
    """The largest budget, the same for slice noise and compute, with which a run keeps a total guarantee.

    Args:
        total_epsilon: finite, > 0.
        total_delta: in (0, 1).
        accountant: the accountant, as in `Run.guarantee`; all but "numerical" and "printed" need `slices`.
        compute_delta: the delta of each compute.
        **shape: `slices`, `computes`, `applications`, `extra`, as in `Run`.

    Returns:
        The budget, rounded down: exactly this value was checked.

    Raises:
        TypeError, ValueError: an argument out of range, or no budget keeps the total.

    Example:
        >>> for name in ("printed", "numerical"):
        ...     print(f"{step_epsilon(total_epsilon=1.0, total_delta=1e-6, accountant=name):.4f}")
        0.0044
        0.0534
    """

    arguments.number("compute_delta", compute_delta, at_least=0.0, below=1.0)

    def run(epsilon: float) -> Run:
        return Run(epsilon, Guarantee(epsilon, compute_delta, ADD_OR_REMOVE_ONE), **shape)

    return largest(run, _total(total_epsilon, total_delta), accountant=accountant)


def compute_epsilon(
    *,
    slice_epsilon: float,
    total_epsilon: float,
    total_delta: float,
    accountant: str = "numerical",
    compute_delta: float = 0.0,
    **shape: Any,
) -> float:
    """The largest budget for the computes with which a run with this slice noise keeps a total guarantee.

    Args:
        slice_epsilon: the rate of the slice noise.
        total_epsilon, total_delta, accountant, compute_delta, **shape: as in `step_epsilon`.

    Returns:
        The budget, rounded down: exactly this value was checked.

    Raises:
        TypeError, ValueError: an argument out of range, or no budget keeps the total.

    Example:
        >>> round(compute_epsilon(slice_epsilon=0.02, total_epsilon=1.0, total_delta=1e-6), 3)
        0.071
    """

    arguments.number("compute_delta", compute_delta, at_least=0.0, below=1.0)

    def run(epsilon: float) -> Run:
        return Run(slice_epsilon, Guarantee(epsilon, compute_delta, ADD_OR_REMOVE_ONE), **shape)

    return largest(run, _total(total_epsilon, total_delta), accountant=accountant)


def split(
    *,
    total_epsilon: float,
    total_delta: float,
    cost: Callable[[float, float], float],
    accountant: str = "numerical",
    compute_delta: float = 0.0,
    **shape: Any,
) -> Split:
    """The cheapest way to divide a budget between slice noise and computes.

    For each ratio of the two, from 1/64 to 64, the largest budgets that keep the total are found. The cost is
    minimised over the ratio, by a grid and then a bounded search around its best point.

    Args:
        total_epsilon, total_delta, accountant, compute_delta, **shape: as in `step_epsilon`.
        cost: cost(slice_epsilon, compute_epsilon), falling in both, for instance lambda s, e: a/s + b/e.

    Returns:
        The budgets, whose exact values were checked, and their cost. If the cost has valleys narrower than a factor 4 in
        the ratio, there may be a cheaper split.

    Raises:
        TypeError, ValueError: as in `step_epsilon`; a cost that is not a number.

    Example:
        >>> found = split(total_epsilon=1.0, total_delta=1e-6, cost=lambda s, e: 1 / s + 4 / e)
        >>> found.cost < 5 / 0.0534 and found.slice_epsilon < 0.0534 < found.compute_epsilon
        True
    """
    from scipy.optimize import minimize_scalar

    arguments.function("cost", cost)
    total = _total(total_epsilon, total_delta)

    def at(log_ratio: float, precision: float) -> Split:
        slices, rest = min(1.0, 2.0**log_ratio), min(1.0, 2.0**-log_ratio)

        def run(scale: float) -> Run:
            return Run(scale * slices, Guarantee(scale * rest, compute_delta, ADD_OR_REMOVE_ONE), **shape)

        scale = largest(run, total, accountant=accountant, precision=precision)
        each = scale * slices, scale * rest
        return Split(*each, arguments.known(f"cost{each}", cost(*each)))

    def coarse(log_ratio: float) -> float:
        return at(log_ratio, 2.0**-12).cost

    start = min(range(-6, 7, 2), key=coarse)
    around = (max(start - 2, -6), min(start + 2, 6))
    found = minimize_scalar(coarse, bounds=around, method="bounded", options={"xatol": 0.05})
    return at(float(found.x), _PRECISION)


def largest(
    family: Callable[[float], Run], total: Guarantee, *, accountant: str = "numerical", precision: float = _PRECISION
) -> float:
    """The largest x for which the run family(x) keeps a total guarantee; its budgets must grow with x.

    It doubles or halves from the total epsilon, then bisects. It is for calibrations that `step_epsilon` cannot express.

    Args:
        family: maps x > 0 to a `Run`.
        total: the guarantee to keep under ADD_OR_REMOVE_ONE, 0 < epsilon < inf, 0 < delta < 1.
        accountant: the accountant.
        precision: relative precision.

    Returns:
        x, rounded down: family(x) was itself found to keep the total.

    Raises:
        TypeError, ValueError: an argument out of range, or no x down to 2^-40 of the total epsilon keeps the total.

    Example:
        >>> count = Guarantee(0.05, 0.0, ADD_OR_REMOVE_ONE)
        >>> total = Guarantee(1.0, 1e-6, ADD_OR_REMOVE_ONE)
        >>> f"{largest(lambda s: Run(s, count, computes=2), total):.3f}"
        '0.013'
    """
    arguments.function("family", family)
    arguments.choice("accountant", accountant, ACCOUNTANTS)
    _check_relation("total", total, ADD_OR_REMOVE_ONE)
    delta = _checked_delta(total.delta, "total.delta")
    if not 0.0 < total.epsilon < math.inf:
        raise ValueError(f"total.epsilon must be finite and > 0, got {total.epsilon}")

    def fits(x: float) -> bool:
        if accountant == "numerical":
            return family(x).delta(total.epsilon) <= delta
        return family(x).guarantee(delta=delta, accountant=accountant).epsilon <= total.epsilon

    start = min(total.epsilon, LARGEST_EPSILON)  # beyond it exp(-x) soon underflows
    low = next((x for x in start * 0.5 ** np.arange(41) if fits(float(x))), None)
    if low is None:
        raise ValueError(f"no budget down to {start * 0.5**40:.3g} keeps {total} by the accountant {accountant!r}")
    low, high = float(low), 2.0 * float(low)
    while fits(high) and high < LARGEST_EPSILON:
        low, high = high, 2.0 * high
    return bisection.largest_float(fits, low, high, precision=precision)


def _least_epsilon(profile: Callable[[float], float], delta: float) -> float:
    """The least epsilon >= 0 with profile(epsilon) <= delta, rounded up; inf if there is no useful one."""
    low, high = 0.0, 1.0
    if profile(low) <= delta:
        return low
    while profile(high) > delta:
        low, high = high, 2.0 * high
        if low > LARGEST_EPSILON:
            return math.inf
    return bisection.least_float(lambda epsilon: profile(epsilon) <= delta, low, high, precision=_PRECISION)


def _call(slice_epsilon: float, bit: int) -> tuple[float, Law]:
    """One call to the holder, b = bit against the other: P_b[go on] (of loss s, or -s for bit 0), and the law of the outcomes that stop."""
    ratio, width = math.exp(-slice_epsilon), -math.expm1(-slice_epsilon)
    first = synchronization.surely_synchronised(slice_epsilon)
    tail, head = math.exp(-first * slice_epsilon), -math.expm1(-first * slice_epsilon)
    losses = np.array([slice_epsilon, -first * slice_epsilon - math.log(head), -slice_epsilon])
    if first == 1:  # P_1[go on] = t_0 (1-r)/r = 1-r: a difference, divided by r, would lose the digits of a small r
        go_on, low = width, 0.0
    else:
        go_on = ((1.0 + ratio) * head - first * width) / ratio
        low = (width * (first - 1) + ratio * math.expm1(-(first - 1) * slice_epsilon)) / ratio
    if bit == 0:
        return go_on * ratio, (-losses, np.array([low * ratio, width * head, tail]))
    return go_on, (losses, np.array([low, width * tail, tail * ratio]))


def _response(part: Guarantee, count: int) -> Law:
    """`count` randomised responses RR(epsilon, delta): count+1 equally spaced losses, and the infinite one."""
    up = (1.0 - part.delta) / (1.0 + math.exp(-part.epsilon))
    masses = functools.reduce(np.convolve, [np.array([up * math.exp(-part.epsilon), up])] * count)
    losses = part.epsilon * (2.0 * np.arange(count + 1) - count)
    return np.append(losses, math.inf), np.append(masses, -math.expm1(count * math.log1p(-part.delta)))


def _outcomes(run: Run, bit: int) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """W's losses and masses, one item for each number of calls, with the mass that is still to come."""
    go_on, (stop_losses, stop_masses) = _call(run.slice_epsilon, bit)
    near_losses, near_masses = _response(run.compute, run.computes)
    far_losses, far_masses = _response(run.compute_apart, run.computes)
    # A call ends the process if it synchronises, or if a compute betrays b.
    end_losses = np.append(np.add.outer(stop_losses, near_losses), math.inf)
    end_masses = np.append(np.multiply.outer(stop_masses, near_masses), go_on * far_masses[-1])
    kernel, step = go_on * far_masses[:-1], 2.0 * run.compute_apart.epsilon
    lowest = (run.slice_epsilon if bit else -run.slice_epsilon) + far_losses[0]
    losses, masses = np.zeros(1), np.ones(1)
    for calls in itertools.count(1):
        left = float(masses.sum() * kernel.sum())
        yield np.add.outer(losses, end_losses), np.multiply.outer(masses, end_masses), left
        masses = np.convolve(masses, kernel)
        losses = calls * lowest + step * np.arange(len(masses))
        if calls == run.slices:
            yield losses, masses, 0.0
            return


def _excess_of_sum(run: Run, bit: int, epsilon: float) -> float:
    """The hockey-stick divergence of W for b = bit against the other; the mass not summed counts as infinite loss."""
    total, far = 0.0, run.slice_epsilon + run.computes * run.compute_apart.epsilon
    for calls, (losses, masses, left) in enumerate(_outcomes(run, bit), start=1):
        # Sums of losses may be this far below exact ones.
        below = epsilon - 2.0**-50 * (1.0 + epsilon + (calls + 1) * far)
        above = losses > below
        total -= float(np.sum(masses[above] * np.expm1(below - losses[above])))
        if left <= max(_LEFT * total, 1e-300) or calls == _CALLS:
            break
    return total + left


def _atoms(run: Run, bit: int) -> Law:
    """W as one law; the mass not summed counts as infinite loss."""
    losses, masses = [], []
    for calls, (some, their, left) in enumerate(_outcomes(run, bit), start=1):
        losses.append(some.ravel())
        masses.append(their.ravel())
        if left <= _LEFT_ON_GRID or calls == _CALLS:
            break
    return np.append(np.concatenate(losses), math.inf), np.append(np.concatenate(masses), left)


def _composed(losses: Any, count: int) -> Any:
    """A loss distribution composed `count` times; dp-accounting would truncate a single one needlessly."""
    return losses.self_compose(count) if count > 1 else losses


def _listed(extra: Any) -> tuple[Any, ...]:
    """The guarantees of a list, or of a mapping to counts, one by one."""
    if not isinstance(extra, Iterable):
        raise TypeError(f"extra must hold guarantees, got {extra!r}")
    counts = extra if isinstance(extra, Mapping) else Counter(extra)
    for count in counts.values():
        arguments.integer("the counts of extra", count, at_least=1)
    return tuple(Counter(counts).elements())


def _check_relation(name: str, part: Guarantee, relation: str) -> None:
    """Refuses what is not a guarantee under this relation."""
    if not isinstance(part, Guarantee):
        raise TypeError(f"{name} must be a Guarantee, got {part!r}")
    if part.relation != relation:
        raise ValueError(f"{name} must be under {relation}, got {part.relation}")


def _total(epsilon: float, delta: float) -> Guarantee:
    """The total that a run is to keep; errors name its numbers as the callers' arguments are named."""
    return Guarantee(
        arguments.number("total_epsilon", epsilon, above=0.0, below=math.inf),
        _checked_delta(delta, "total_delta"),
        ADD_OR_REMOVE_ONE,
    )


def _checked_delta(value: float, name: str = "delta") -> float:
    """A number strictly between 0 and 1."""
    return arguments.number(name, value, above=0.0, below=1.0)
