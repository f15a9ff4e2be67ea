"""Estimates with stated intervals: rates of counted events, means of exact failure probabilities."""

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from dpjax.core import checks


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value with an interval [low, high] of confidence `level`, from `count` trials or draws."""

    value: float
    low: float
    high: float
    level: float
    count: int


def known(value: float) -> Estimate:
    """A number known exactly, such as a closed form: an interval without width, at level 1, from no trials.

    >>> known(0.25)
    Estimate(value=0.25, low=0.25, high=0.25, level=1.0, count=0)
    """
    number = float(checks.real("value", value))
    return Estimate(number, number, number, 1.0, 0)


def clopper_pearson(events: int, trials: int, *, level: float = 0.95) -> Estimate:
    """Rate of an event with the Clopper-Pearson interval, whose coverage is >= level at every true rate.

    With X ~ Bin(trials, p) and a = 1 - level the ends solve P_low[X >= events] = a/2 and P_high[X <= events]
    = a/2, so each side misses with probability at most a/2 (Clopper and Pearson 1934).

    Args:
        events: how many trials had the event, 0 to trials.
        trials: how many independent trials, at least 1.
        level: confidence, in (0, 1).

    Returns:
        Estimate of the rate.

    Raises:
        TypeError: a count is not an integer.
        ValueError: a count or the level is out of range.

    Example:
        >>> estimate = clopper_pearson(0, 100)
        >>> estimate.low, round(estimate.high, 4)
        (0.0, 0.0362)
    """
    trials, events, tail = _check(events, trials, level)
    low = float(special.betaincinv(events, trials - events + 1, tail)) if events else 0.0
    high = float(special.betainccinv(events + 1, trials - events, tail)) if events < trials else 1.0
    return Estimate(events / trials, low, high, float(level), trials)


def wilson(events: int, trials: int, *, level: float = 0.95) -> Estimate:
    """Rate of an event with Wilson's score interval: shorter than Clopper-Pearson, of approximate coverage.

    All p with |X/m - p| <= z sqrt(p (1-p) / m), z the normal quantile at (1 + level)/2, m trials (Wilson
    1927). For rates near 0 or 1 the true coverage can fall well below level: use Clopper-Pearson where it
    matters.

    Args:
        events: how many trials had the event, 0 to trials.
        trials: how many independent trials, at least 1.
        level: confidence, in (0, 1).

    Returns:
        Estimate of the rate.

    Raises:
        TypeError: a count is not an integer.
        ValueError: a count or the level is out of range.

    Example:
        >>> estimate = wilson(50, 100)
        >>> round(estimate.low, 4), round(estimate.high, 4)
        (0.4038, 0.5962)
    """
    trials, events, tail = _check(events, trials, level)
    rate, z2 = events / trials, float(special.ndtri(tail)) ** 2
    centre = rate + z2 / (2 * trials)
    half = math.sqrt(z2 * (rate * (1 - rate) + z2 / (4 * trials)) / trials)
    low = (centre - half) / (1 + z2 / trials) if events else 0.0
    high = (centre + half) / (1 + z2 / trials) if events < trials else 1.0
    return Estimate(rate, low, high, float(level), trials)


def mean(values: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean of independent draws with Student's t interval: mean +- t_{k-1} s / sqrt(k).

    For exact failure probabilities of a learner, one a data draw, the mean estimates the failure over data
    and coins. **The interval is asymptotic**: exact for normal draws, and right in the limit of many draws of
    any law with a variance. It trusts that the k draws show the law's spread. No distribution-free interval
    could say 1e-6 from 64 draws: a law that fails surely on a fraction p of all data, and never else, shows
    64 zeros with probability (1-p)^64, which is above 5% up to p = 0.0457 (the "rule of three", about 3/k:
    see `hidden_mass`). Where draws of very different size occur, the mean of a few dozen is led by the
    largest of them, and the interval is too short. The ends are not cut: a low end below 0 says that the
    draws disagree by more than their mean.

    Args:
        values: finite numbers, one a draw, at least two.
        level: confidence, in (0, 1).

    Returns:
        Estimate of the mean.

    Raises:
        ValueError: fewer than two values, a value that is not finite, or a level out of range.

    Example:
        >>> estimate = mean([1e-6, 3e-6, 2e-6])
        >>> [float(f"{end:.3g}") for end in (estimate.value, estimate.low, estimate.high)]
        [2e-06, -4.84e-07, 4.48e-06]
    """
    level = checks.fraction("level", level)
    draws = np.asarray(values, np.float64)
    if draws.ndim != 1 or draws.size < 2:
        raise ValueError(f"values must be one row of at least two draws, got shape {draws.shape}")
    if not np.all(np.isfinite(draws)):
        raise ValueError(f"values must be finite, got {draws[~np.isfinite(draws)][0]}")
    # fsum: the mean does not depend on the order in which draws were added.
    value = math.fsum(draws) / draws.size
    variance = math.fsum((draws - value) ** 2) / (draws.size - 1)
    half = float(special.stdtrit(draws.size - 1, (1 + level) / 2)) * math.sqrt(variance / draws.size)
    return Estimate(value, value - half, value + half, float(level), int(draws.size))


def hidden_mass(draws: int, *, level: float = 0.95) -> float:
    """What may hide behind `draws` draws: the largest p with (1-p)^draws >= 1 - level, about 3/draws at 95%.

    No upper confidence bound that holds for every law on [0,1] can lie below this when all draws are 0 (the
    law that is 1 with a probability just under p, else 0, would break it).

    Args:
        draws: independent draws, at least 1.
        level: confidence, in (0, 1).

    Returns:
        The mass p.

    Raises:
        TypeError: `draws` is not an integer.
        ValueError: an argument is out of range.

    Example:
        >>> round(hidden_mass(64), 4)
        0.0457
    """
    draws = checks.integer("draws", draws, at_least=1)
    return -math.expm1(math.log1p(-checks.fraction("level", level)) / draws)


def _check(events: Any, trials: Any, level: Any) -> tuple[int, int, float]:
    """(trials, events, probability of one tail)."""
    trials = checks.integer("trials", trials, at_least=1)
    events = checks.integer("events", events, at_least=0, at_most=trials)
    return trials, events, float(1 - checks.fraction("level", level)) / 2
