"""Releases of distribution functions by three methods, at the best parameters for a budget; quantiles of measured values."""

import functools
import math
from typing import Any

import numpy as np

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, exponential_epsilon, slicing
from dpjax.accounting.bounded import independent_each
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.trials import estimates
from experiments.settings import Settings

METHODS = ("one run a quantile", "recursive medians", "Reorder-Slice-Compute")
TIES = 16  # bits that break ties in the recursion
COUNT_SHARE = 0.1  # share of epsilon for the count with which Reorder-Slice-Compute begins


# ---------------------------------------------------------------------------------------------------------- mechanisms


@functools.cache
def _calibrated(method: str, count: int, key: tuple[tuple[str, float], ...]) -> cdf.CdfRelease:
    build = {METHODS[0]: _direct, METHODS[1]: _recursive, METHODS[2]: _sliced}[method]
    return cdf.release(quantiles=build(count, dict(key)))


def mechanism(method: str, count: int, settings: Settings) -> cdf.CdfRelease:
    """A release of `count` quantiles at the experiment's privacy, with slices as small as the solver's failure beta / 3 allows."""
    return _calibrated(method, count, tuple((name, settings[name]) for name in ("epsilon", "delta", "beta", "bits")))


def _half(solver: Any, count: int, settings: Settings) -> int:
    return quantiles.half_slice(solver, beta=settings["beta"] / 3 / count)


def _direct(count: int, settings: Settings) -> quantiles.DirectQuantiles:
    """One run for each quantile; slices of neighbours have distance 2, and runs are composed over all quantiles."""
    each = independent_each(Guarantee(settings["epsilon"], settings["delta"], ADD_OR_REMOVE_ONE), count)
    solver = interior_point.exponential(bits=settings["bits"], epsilon=each.epsilon / 2)
    fractions = [i / (count + 1) for i in range(1, count + 1)]
    given = {"m": _half(solver, count, settings), "beta": settings["beta"] / 3, "delta": settings["delta"]}
    return quantiles.direct(solver=solver, fractions=fractions, accountant="bounded", **given)


def _recursive(count: int, settings: Settings) -> quantiles.RecursiveQuantiles:
    """Recursive medians; slices of neighbours have distance 2, and runs are composed over the levels."""
    levels = (count + 1).bit_length() - 1
    each = exponential_epsilon(levels, epsilon=settings["epsilon"], delta=settings["delta"])
    solver = interior_point.exponential(bits=settings["bits"] + TIES, epsilon=each / 2)
    given = {"m": _half(solver, count, settings), "beta": settings["beta"] / 3, "delta": settings["delta"]}
    return quantiles.recursive(solver=solver, bits=settings["bits"], depth=levels, accountant="adaptive", **given)


def _sliced(count: int, settings: Settings) -> quantiles.SlicedQuantiles:
    """Reorder-Slice-Compute; slice noise and the solver's runs share what the count leaves, by the split with the least rank error."""
    counting = COUNT_SHARE * settings["epsilon"]
    points = 2 * (settings["bits"] * math.log(2) + math.log(3 * count / settings["beta"]))
    found = slicing.split(
        total_epsilon=settings["epsilon"],
        total_delta=settings["delta"],
        cost=lambda noise, compute: points / compute / 2 + math.sqrt(2 * count) / noise,
        slices=2 * count,
        extra=(Guarantee(counting, 0.0, ADD_OR_REMOVE_ONE),),
    )
    solver = interior_point.exponential(bits=settings["bits"], epsilon=found.compute_epsilon)
    size = 2 * _half(solver, count, settings)
    return quantiles.sliced(
        solver=solver,
        count=count,
        size=size,
        slice_epsilon=found.slice_epsilon,
        count_epsilon=counting,
        delta=settings["delta"],
        beta=settings["beta"],
    )


def upper_quantile(values: np.ndarray, rank: float, *, level: float) -> estimates.Estimate:
    """The quantile at `rank` of sorted values, with an interval by order statistics, unbounded if there are too few values.

    >>> found = upper_quantile(np.arange(100.0), 0.9, level=0.95)
    >>> found.value, found.low, found.high
    (89.0, 83.0, 95.0)
    >>> upper_quantile(np.arange(16.0), 0.9, level=0.95).high
    inf
    """
    from scipy import stats

    below, count = stats.binom(len(values), rank), len(values)
    first, last = int(below.ppf((1 - level) / 2)) - 1, int(below.ppf((1 + level) / 2))
    return estimates.Estimate(
        value=float(values[max(math.ceil(count * rank) - 1, 0)]),
        low=float(values[first]) if first >= 0 else -math.inf,
        high=float(values[last]) if last < count else math.inf,
        level=level,
        count=count,
    )
