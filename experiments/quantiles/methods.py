"""Every method at one budget: (epsilon, delta) under add/remove for all quantiles together. To add one, add a line to `METHODS`."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

from dpjax.accounting import ADD_OR_REMOVE_ONE
from dpjax.choice.base import Question
from dpjax.choice.quantiles import supported_slices
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quantiles import noisy_ranks
from experiments import releases
from experiments.quantile_trials import Wanted, unbounded

COUNT_SHARE = 0.1  # of epsilon, for the noisy count with which slices around noisy ranks begin
RANK_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6)
SMALLEST_SLICE = 2047  # the least capacity of slices, in rows, so that few programs are compiled
SMALLEST_WINDOW = 255  # likewise, of the windows of supported keys


def _released(method: str) -> Callable[[Wanted], Any]:
    """One of the three methods of `experiments.releases`, for evenly spaced quantiles only, with enough capacity for slices."""

    def make(wanted: Wanted) -> Any:
        settings = {name: getattr(wanted, name) for name in ("epsilon", "delta", "beta", "bits")}
        return _roomy(releases.mechanism(method, wanted.number, settings).quantiles)

    return make


def _roomy(mechanism: Any) -> Any:
    return dataclasses.replace(mechanism, capacity=max(mechanism.capacity, SMALLEST_SLICE))


def _noisy_slices(wanted: Wanted) -> Any:
    """Slices around noisy ranks; the ranks' share of epsilon is the one that minimises the sum of slice and noise."""
    made = [_with_share(wanted, share) for share in RANK_SHARES]
    number = len(wanted.fractions)

    def error(one: Any) -> float:
        return int(one.m) + noisy_ranks.drift(number, float(one.rank_epsilon), wanted.beta / 3)

    return _roomy(min(made, key=error))


def _with_share(wanted: Wanted, share: float) -> Any:
    count, ranks = COUNT_SHARE * wanted.epsilon, share * wanted.epsilon
    rest = wanted.epsilon - count - ranks
    once = 0.0  # ln(1 + 1/(2m + 1)): first 0, then the value for an m that is too small
    for _ in range(2):
        solver = interior_point.exponential(bits=wanted.bits, epsilon=(rest - once) / 2 / 1.000001)
        m = quantiles.half_slice(solver, beta=wanted.beta / 3 / wanted.number)
        once = math.log1p(1 / (2 * m + 1))
    made = quantiles.noisy_slices(
        solver=solver,
        fractions=wanted.fractions,
        m=m,
        rank_epsilon=ranks,
        count_epsilon=count,
        delta=wanted.delta,
        beta=wanted.beta,
    )
    assert made.guarantee().epsilon <= wanted.epsilon, made.guarantee()
    return made


def _supported_slices(wanted: Wanted) -> Any:
    """Choices among supported keys around noisy ranks, with the budget split for errors of half the distance of fractions."""
    half = 0.5 / (wanted.number + 1)
    totals = {name: getattr(wanted, name) for name in ("bits", "epsilon", "delta", "beta", "fractions")}
    offer = supported_slices(Question(n=None, alpha=half, relation=ADD_OR_REMOVE_ONE, **totals))
    made = offer.make(offer.n)
    return dataclasses.replace(made, capacity=max(made.capacity, SMALLEST_WINDOW))


METHODS: dict[str, Callable[[Wanted], Any]] = {
    "rank exponential": lambda wanted: quantiles.rank_exponential(**wanted.given, delta=wanted.delta),
    "joint": lambda wanted: quantiles.joint(**wanted.given),
    "direct": _released("one run a quantile"),
    "recursive": _released("recursive medians"),
    "sliced": _released("Reorder-Slice-Compute"),
    "noisy slices": _noisy_slices,
    "supported keys around noisy ranks": _supported_slices,
    "tree": lambda wanted: quantiles.tree(**wanted.given),
    "unbounded": unbounded,
    "approximate": lambda wanted: quantiles.approximate(**wanted.given, delta=wanted.delta, accountant="adaptive"),
    "inverse sensitivity": lambda wanted: quantiles.inverse_sensitivity(**wanted.given),
}


@functools.cache
def mechanism(method: str, wanted: Wanted) -> Any:
    """A method of `METHODS`, checked to keep the budget to five digits."""
    made = METHODS[method](wanted)
    spent = made.guarantee()
    assert spent.epsilon <= wanted.epsilon * (1 + 1e-5) and spent.delta <= wanted.delta * (1 + 1e-5), (method, spent)
    return made
