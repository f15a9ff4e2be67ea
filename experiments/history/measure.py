"""Measures the numbers of the picture."""

import dataclasses
import functools
import math
from typing import Any

from scipy import stats

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE
from dpjax.concepts import thresholds as concept
from dpjax.data.sample import bucket
from dpjax.learners import interior, pac, thresholds
from dpjax.learners.thresholds.supported import errors
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import planning
from dpjax.optimizers.quantiles import half_slice
from experiments import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

EXPONENTIAL, BINARY = "exponential mechanism", "binary search"
LENGTH, POWER = "search for a length", "search for a power"
REC_CONCAVE, AMPLIFIED = "RecConcave, N=", "2^log* optimiser"
COMPOSITION, SLICING = "TreeLog, composition", "TreeLog, slicing"
SUPPORTED, DIRECTLY = "supported tree", "supported thresholds"
BY_POINTS = (COMPOSITION, SUPPORTED)  # solvers of the interior point problem around the boundary
ACCOUNTANT = {COMPOSITION: "optimal", SLICING: "slicing"}
STEPS = 4  # of add/remove by which a replaced example changes a solver's multiset; see `dpjax.learners.interior`
FIRST_GUESS = {
    EXPONENTIAL: 60,
    BINARY: 800,
    LENGTH: 1000,
    POWER: 1000,
    AMPLIFIED: 3500,
    COMPOSITION: 9000,
    SUPPORTED: 2000,
    DIRECTLY: 800,
}


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "least n" and "asked"."""
    return [*_least_n(settings, context), *_asked(settings), *_planned(settings)]


def learner(name: str, bits: int, settings: Settings) -> Any:
    """The learner of that name at the experiment's privacy; those with their own alpha get twice the experiment's, and halve it."""
    budget: dict[str, Any] = {"bits": bits, "epsilon": settings["epsilon"], "delta": settings["delta"]}
    alpha, calibration = 2 * settings["alpha"], settings["calibration"]
    if name == EXPONENTIAL:
        return thresholds.exponential(bits=bits, epsilon=settings["epsilon"])
    if name == BINARY:
        return thresholds.binary_search(**budget)
    if name == AMPLIFIED:
        return thresholds.amplified(**budget, alpha=alpha, beta=settings["beta"])
    if name == DIRECTLY:
        return thresholds.supported(**budget, alpha=alpha)
    if name in (LENGTH, POWER):
        make = thresholds.length_search if name == LENGTH else thresholds.power_search
        return make(**budget, alpha=alpha, calibration=calibration)
    depth = int(name.removeprefix(REC_CONCAVE))
    return thresholds.rec_concave(**budget, alpha=alpha, depth=depth, calibration=calibration)


# ------------------------------------------------------------------------------------------------------- measured


def _least_n(settings: Settings, context: Context) -> list[Row]:
    make = functools.partial(_experiment, settings=settings)
    guesses = {name: FIRST_GUESS.get(name, 1500 if name.endswith("=2") else 7000) for name in settings["bits"]}
    return least_n.of_learners(settings["bits"], make, guesses=guesses, settings=settings, context=context)


def _experiment(name: str, bits: int, n: int, capacity: int, settings: Settings) -> pac.Experiment:
    by_points = name in BY_POINTS
    made = _around_boundary(name, bits, n, capacity, settings) if by_points else learner(name, bits, settings)
    distribution = concept.log_uniform(bits=bits, target=2**bits // 3)
    return pac.Experiment(learner=made, distribution=distribution, n=n, alpha=settings["alpha"], capacity=capacity)


def _around_boundary(name: str, bits: int, n: int, capacity: int, settings: Settings) -> Any:
    """A solver on as many examples around the boundary as n examples can afford, in one shape for all n of a capacity."""
    made = interior.threshold_learner(solver=_solver(name, bits, settings), m=_affordable(n, settings))
    return dataclasses.replace(made, capacity=bucket(2 * _affordable(capacity, settings)))


def _affordable(n: int, settings: Settings) -> int:
    """The largest m whose loss exceeds alpha with probability at most beta/2: 2 P[Bin(n, alpha) < m] <= beta/2."""
    return max(1, int(stats.binom.ppf(settings["beta"] / 4, n, settings["alpha"])))


def _solver(name: str, bits: int, settings: Settings) -> Any:
    """The solver of the interior point problem, such that the learner keeps the experiment's privacy under REPLACE_ONE."""
    if name == SUPPORTED:
        each, share = _each(settings["epsilon"], settings["delta"])
        return interior_point.supported_tree(bits=bits + 1, epsilon=each, delta=share)
    return interior_point.tree_log_planned(bits=bits + 1, plan=plan(name, bits, settings))


def _each(epsilon: float, delta: float) -> tuple[float, float]:
    """(epsilon, delta) of which STEPS steps together are what is asked for."""
    rounded = 1 - 1e-9  # group privacy is rounded up
    each = epsilon / STEPS * rounded
    return each, delta * rounded / sum(math.exp(step * each) for step in range(STEPS))


def plan(name: str, bits: int, settings: Settings) -> planning.Plan:
    """TreeLog's parameters, such that the learner keeps the experiment's privacy under REPLACE_ONE."""
    found = _plan(ACCOUNTANT[name], bits, *(settings[key] for key in ("epsilon", "delta", "beta")))
    whole = found.guarantee.group(STEPS // 2).under(REPLACE_ONE)
    assert whole.covers(settings["epsilon"], settings["delta"]), whole
    return found


@functools.cache
def _plan(accountant: str, bits: int, epsilon: float, delta: float, beta: float) -> planning.Plan:
    each, share = _each(epsilon, delta)
    return planning.calibrate(bits=bits + 1, epsilon=each, delta=share, beta=beta / 2, accountant=accountant)


# ---------------------------------------------------------------------------------------- as the analyses ask for it


def _asked(settings: Settings) -> list[Row]:
    """Examples with which an analysis promises an error of at most alpha on the sample, with probability 1 - beta."""
    names = [name for name in settings["bits"] if name not in BY_POINTS]
    return [exact("asked", name, bits, asked(name, bits, settings)) for bits in settings["asked"] for name in names]


def asked(name: str, bits: int, settings: Settings) -> float:
    """A theorem's number of examples, not rounded; RecConcave's as it is printed."""
    alpha, beta, epsilon, delta = (settings[key] for key in ("alpha", "beta", "epsilon", "delta"))
    if name == EXPONENTIAL:
        return bounds.exponential_mechanism(bits * math.log(2) + math.log1p(2.0**-bits), alpha, beta, epsilon)
    if name == DIRECTLY:
        return errors(bits, epsilon, delta, beta) / alpha
    if name.startswith(REC_CONCAVE):
        depth = min(int(name.removeprefix(REC_CONCAVE)), bounds.log_star(2**bits))
        return bounds.rec_concave(2**bits, depth, alpha, beta, epsilon, delta, calibration="printed")
    made = learner(name, bits, settings)
    if name == AMPLIFIED:
        return made.optimizer.required_promise(beta, alpha)
    if name == BINARY:
        return bounds.binary_search(bits, alpha, beta, float(made.comparison_epsilon()))
    return bounds.interval_search(int(made.comparisons()), alpha, beta, **made.budget())


def _planned(settings: Settings) -> list[Row]:
    """By interior points: examples around the boundary that are promised to suffice, divided by alpha; TreeLog's by both accountants."""
    rows = []
    names = [*(ACCOUNTANT if COMPOSITION in settings["bits"] else ()), *({SUPPORTED} & settings["bits"].keys())]
    for name in names:
        for bits in settings["planned"]:
            m = half_slice(_solver(name, bits, settings), beta=settings["beta"] / 2)
            rows.append(exact("asked", name, bits, (m - 1) / settings["alpha"]))
    return rows
