"""How the learner of rectangles spends its budget: what each slice may cost, and how large it must be."""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, exponential_rate, exponential_total, slicing
from dpjax.accounting.bounded import BOUNDED, independent_each, independent_total
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.optimizers.quantiles.base import check_solver

ACCOUNTANTS = ("basic", "optimal", "slicing_printed", "slicing", BOUNDED)
# Names of solvers, and what each is made with besides epsilon.
_GIVEN = {"exponential": (), "tree_score": (), "supported_tree": ("delta",), "tree_log": ("delta", "beta")}
SOLVERS = tuple(_GIVEN)
MOST_AXES = 2**16  # the plan composes one mechanism per axis, numerically
# How beta is divided: all solvers together, the test, the noises in the sizes; sampling gets the rest.
_SOLVERS_SHARE, _TEST_SHARE, _NOISE_SHARE = 0.5, 0.125, 0.125
# The part of delta that pays for noises beyond the capacity, and the part that the solvers' own deltas may take if they have any.
_CAPACITY_SHARE, _SOLVERS_DELTA = 2.0**-20, 0.5
_BY_NAME = {"slicing_printed": "printed", "slicing": "numerical"}  # as `accounting.slicing` calls them

Solver = Callable[[float, float, float], InteriorPoint]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a budget is spent, and what follows; see the module.

    Attributes:
      axes, bits: D and d.
      accountant: which analysis the budget rests on.
      guarantee: what is proved, under ADD_OR_REMOVE_ONE.
      beta: bound on the probability of failure, of which solvers, test and noises take `spent_beta`.
      slice_epsilon: rate of the noise in the slices' sizes; None if sizes are public.
      compute: the guarantee of the solver on one slice.
      size: m, the least size of a slice.
      noise: W, which the sum of all noises exceeds with probability at most beta/8.
      threshold: tau, of the test.
      capacity: the most points of a slice that the solver sees.
    """

    axes: int
    bits: int
    accountant: str
    guarantee: Guarantee
    beta: float
    spent_beta: float
    slice_epsilon: float | None
    compute: Guarantee
    size: int
    noise: int
    threshold: int
    capacity: int

    @property
    def count_epsilon(self) -> float:
        """Privacy parameter of the test."""
        return count_epsilon(self.accountant, self.compute)

    @property
    def entries(self) -> int:
        """K = 2D m + W: the most positive examples in slices, if all noises together are at most W."""
        return 2 * self.axes * self.size + self.noise

    @property
    def needed(self) -> int:
        """K + 2 tau - 1: with fewer positive examples the test may fail."""
        return self.entries + 2 * self.threshold - 1

    @property
    def solver_beta(self) -> float:
        """The failure probability permitted to the solver on one slice."""
        return _SOLVERS_SHARE * self.beta / (2 * self.axes)


@dataclasses.dataclass(frozen=True)
class Budget:
    """(slice_epsilon, compute) and what is proved for the run."""

    slice_epsilon: float | None
    compute: Guarantee
    guarantee: Guarantee


def whole_run(axes: int, slice_epsilon: float | None, compute: Guarantee) -> slicing.Run:
    """The whole run for `dpjax.accounting.slicing`; with public sizes at most one slice per axis differs, and one insertion is possible."""
    if slice_epsilon is not None:
        return slicing.Run(slice_epsilon, compute, slices=2 * axes + 1)
    return slicing.Run(1.0, compute, slices=axes, extra=(compute,))


def basic_promise(axes: int, slice_epsilon: float | None, compute: Guarantee) -> Guarantee:
    """What basic composition proves for a run, whatever its delta is."""
    return whole_run(axes, slice_epsilon, compute).guarantee(delta=math.nextafter(1.0, 0.0), accountant="basic")


def _basic(axes: int, total: Guarantee, delta: float, weight: float) -> Budget:
    """epsilon / (2D + 1) for each computation: at most D slices differ by a replacement, one by an insertion."""
    compute = Guarantee(at_most(Fraction(total.epsilon) / (2 * axes + 1)), delta, ADD_OR_REMOVE_ONE)
    return Budget(None, compute, basic_promise(axes, None, compute))


def _optimal(axes: int, total: Guarantee, delta: float, weight: float) -> Budget:
    """The largest epsilon of a slice's computation that optimal composition allows."""

    def run(epsilon: float) -> slicing.Run:
        return whole_run(axes, None, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE))

    epsilon = slicing.largest(run, total, accountant="optimal", precision=2.0**-12)
    return Budget(None, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE), total)


def bounded_sums(axes: int) -> dict[str, int]:
    """The sums of ranges and of their squares at e = 1: D replacements, of range 2, and an insertion of range 1, or a count in [-1/2, 1/2].

    What a slice holds does not depend on what others release, so the runs do not depend on each other (`accounting.exponential`).
    """
    return {"ranges": 2 * axes + 1, "squares": 4 * axes + 1}


def bounded_budget(axes: int, total: Guarantee, delta: float = 0.0, weight: float = 0.0) -> Budget:
    """The largest epsilon of a slice's exponential mechanism, whose losses lie in an interval of that length."""
    if delta > 0.0:
        raise ValueError(f'accountant must not be "{BOUNDED}" for a solver that is no exponential mechanism')
    rate = float(exponential_rate(total.epsilon, total.delta, **bounded_sums(axes), independent=True)) * (1 - 2.0**-40)
    alike = independent_each(total, axes + 1).epsilon / 2  # as if the insertion, too, had the range of a replacement
    return Budget(None, Guarantee(max(rate, alike), 0.0, ADD_OR_REMOVE_ONE), total)


def bounded_total(axes: int, epsilon: float, delta: float) -> float:
    """The least epsilon that a run is shown to keep at this delta, for slices of this epsilon; rounded up."""
    replacement = Guarantee(2 * epsilon, 0.0, ADD_OR_REMOVE_ONE)
    alike = independent_total(replacement, axes + 1, delta).epsilon
    return min(exponential_total(epsilon, **bounded_sums(axes), delta=delta), alike)


def count_epsilon(accountant: str, compute: Guarantee) -> float:
    """What the test may spend: e, or e/2 where ranges count, as its losses lie in an interval that is twice as long."""
    return compute.epsilon / 2 if accountant == BOUNDED else compute.epsilon


def _sliced(accountant: str, axes: int, total: Guarantee, delta: float, weight: float) -> Budget:
    """The split between noise and computes with the fewest entries in slices, 1/s + weight/e each on average."""
    found = slicing.split(
        total_epsilon=total.epsilon * (1 - 2.0**-31),  # the guarantee of what is found is rounded up by 2^-32 at most
        total_delta=total.delta,
        cost=lambda s, e: 1 / s + weight / e,
        accountant=accountant,
        compute_delta=delta,
        slices=2 * axes + 1,
    )
    return Budget(found.slice_epsilon, Guarantee(found.compute_epsilon, delta, ADD_OR_REMOVE_ONE), total)


_BUDGETS: dict[str, Callable[[int, Guarantee, float, float], Budget]] = {
    "basic": _basic,
    "optimal": _optimal,
    BOUNDED: bounded_budget,
    "slicing_printed": functools.partial(_sliced, _BY_NAME["slicing_printed"]),
    "slicing": functools.partial(_sliced, _BY_NAME["slicing"]),
}


def _solvers_delta(accountant: str, axes: int, total: Guarantee) -> float:
    """d of each solver: half of delta for all together where composition adds them up; a sixteenth each with "slicing", which does not."""
    if accountant == "slicing":
        return total.delta / 16
    return _SOLVERS_DELTA * total.delta / (2 * axes * (2 + 2 * math.exp(min(2 * total.epsilon, 700.0))))


def plan(
    *, axes: int, bits: int, epsilon: float, delta: float, beta: float, accountant: str, solver: Solver | str
) -> Plan:
    """The plan of one accountant; arguments as for `rectangles`."""
    axes = arguments.integer("axes", axes, at_least=1, at_most=MOST_AXES)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    arguments.choice("accountant", accountant, ACCOUNTANTS)
    epsilon = arguments.known("epsilon", arguments.epsilon(epsilon), at_most=slicing.LARGEST_EPSILON)
    delta = arguments.known("delta", arguments.delta(delta, positive=accountant != "basic"))
    beta = arguments.known_fraction("beta", beta)
    solver = factory(solver, bits)
    share = _SOLVERS_SHARE * beta / (2 * axes)
    total = kept(epsilon, delta)
    nominal = epsilon / (2 * axes + 1)
    own = _solvers_delta(accountant, axes, total)
    trial = solver(nominal, own, share)
    own = own if trial.guarantee().delta > 0.0 else 0.0
    budget = _BUDGETS[accountant](axes, total, own, nominal * trial.sample_size(beta=share))
    size = solver(budget.compute.epsilon, own, share).sample_size(beta=share)
    return around(axes, bits, epsilon, delta, beta, accountant, budget, size)


def kept(epsilon: float, delta: float) -> Guarantee:
    """What accountants are given: all but the sliver of delta for noises beyond the capacity."""
    return Guarantee(epsilon, delta * (1 - _CAPACITY_SHARE), ADD_OR_REMOVE_ONE)


def around(
    axes: int, bits: int, epsilon: float, delta: float, beta: float, accountant: str, budget: Budget, size: int
) -> Plan:
    """The plan for a budget that the accountant allows, with slices of `size` points."""
    noise, most = _noises(axes, budget.slice_epsilon, beta * _NOISE_SHARE, epsilon, delta)
    count = count_epsilon(accountant, budget.compute)
    threshold = max(1, math.ceil(-math.log((1 + math.exp(-count)) * _TEST_SHARE * beta) / count))
    if max(size + most, noise, threshold) >= 2**31:
        raise ValueError(f"epsilon must be so large that slices of less than 2^31 points will do, got {epsilon}")
    noisy = budget.slice_epsilon is not None
    return Plan(
        axes=axes,
        bits=bits,
        accountant=accountant,
        guarantee=Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE) if accountant != "basic" else budget.guarantee,
        beta=beta,
        spent_beta=beta * (_SOLVERS_SHARE + _TEST_SHARE + (_NOISE_SHARE if noisy else 0.0)),
        slice_epsilon=budget.slice_epsilon,
        compute=budget.compute,
        size=size,
        noise=noise,
        threshold=threshold,
        capacity=bucket(size + most),
    )


def _noises(axes: int, rate: float | None, chance: float, epsilon: float, delta: float) -> tuple[int, int]:
    """(what the sum of 2D noises exceeds with probability at most `chance`, what no noise exceeds except for a sliver of delta)."""
    if rate is None:
        return 0, 0
    from scipy.stats import nbinom

    sliver = math.log(delta * _CAPACITY_SHARE / (2 * axes * (1 + math.exp(min(epsilon, 700.0)))))
    return int(nbinom.isf(chance, 2 * axes, -math.expm1(-rate))), math.ceil(-sliver / rate)


def factory(solver: Solver | str, bits: int) -> Solver:
    """The factory of that name, or the given one, checked."""
    if callable(solver):
        return functools.partial(_own, solver)
    names = _GIVEN[arguments.choice("solver", solver, SOLVERS)]
    make: Any = getattr(interior_point, solver)

    def made(epsilon: float, delta: float, beta: float) -> InteriorPoint:
        given = {"delta": delta, "beta": beta}
        return make(bits=bits, epsilon=epsilon, **{name: given[name] for name in names})

    return made


def _own(solver: Solver, epsilon: float, delta: float, beta: float) -> InteriorPoint:
    """TypeError unless the factory makes a solver."""
    made = solver(epsilon, delta, beta)
    check_solver(made, "solver(epsilon, delta, beta)")
    return made


def promised(
    accountant: str, axes: int, slice_epsilon: float | None, compute: Guarantee, delta: float, spare: int
) -> Guarantee:
    """What a run promises at a total delta, from the numbers in use.

    A noise above `spare` would not fit a slice's capacity; what that costs is added.
    """
    if accountant == "basic":
        return basic_promise(axes, slice_epsilon, compute)
    if accountant == BOUNDED:
        epsilon = bounded_total(axes, compute.epsilon, delta * (1 - _CAPACITY_SHARE))
        return Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)
    run, left = whole_run(axes, slice_epsilon, compute), delta * (1 - _CAPACITY_SHARE)
    found = run.guarantee(delta=left, accountant=_BY_NAME.get(accountant, accountant))
    if slice_epsilon is None or found.is_none:
        return found
    beyond = 2 * axes * math.exp(-slice_epsilon * (spare + 1)) * (1 + math.exp(min(found.epsilon, 700.0)))
    return Guarantee(found.epsilon, min(found.delta + beyond * (1 + 2.0**-40), 1.0), ADD_OR_REMOVE_ONE)
