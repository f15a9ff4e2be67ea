"""Estimates with stated intervals: rates of counted events, means of exact failure probabilities."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from dpjax.core import arguments, proportions


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
    number = arguments.known("value", value)
    return Estimate(number, number, number, 1.0, 0)


def clopper_pearson(events: int, trials: int, *, level: float = 0.95) -> Estimate:
    """Rate of an event with the Clopper-Pearson interval (`core.proportions`): its coverage is >= level at every true rate.

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
    events, trials, _ = _check(events, trials, level)
    low, high = proportions.clopper_pearson(events, trials, level=level)
    return Estimate(events / trials, float(low), float(high), float(level), trials)


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
    events, trials, tail = _check(events, trials, level)
    rate, z2 = events / trials, float(special.ndtri(tail)) ** 2
    centre = rate + z2 / (2 * trials)
    half = math.sqrt(z2 * (rate * (1 - rate) + z2 / (4 * trials)) / trials)
    low = (centre - half) / (1 + z2 / trials) if events else 0.0
    high = (centre + half) / (1 + z2 / trials) if events < trials else 1.0
    return Estimate(rate, low, high, float(level), trials)


def mean(values: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean of independent draws with Student's t interval: mean +- t_{k-1} s / sqrt(k).

    For exact failure probabilities of a learner, one per data draw, the mean estimates the failure over data
    and coins. **The interval is asymptotic**: exact for normal draws, and right in the limit of many draws of
    any law with a variance. It trusts that the k draws show the law's spread. No distribution-free interval
    could certify 1e-6 from 64 draws: a law that surely fails on a fraction p of all data, and never otherwise,
    shows 64 zeros with probability (1-p)^64, which is above 5% up to p = 0.0457 (the "rule of three", about
    3/k: see `hidden_mass`). Where draws differ greatly in size, the mean of a few dozen is dominated by the
    largest of them, and the interval is too short. The ends are not cut (see `mean_probability`): a low end
    below 0 says that the draws disagree by more than their mean.

    Args:
        values: finite numbers, one per draw, at least two.
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
    level = arguments.fraction("level", level)
    draws = _numbers(values)
    if draws.ndim != 1 or draws.size < 2:
        raise ValueError(f"values must be one row of at least two draws, got shape {draws.shape}")
    if not np.all(np.isfinite(draws)):
        raise ValueError(f"values must be finite, got {draws[~np.isfinite(draws)][0]}")
    # fsum: the mean does not depend on the order in which draws were added.
    value = math.fsum(draws) / draws.size
    away = draws - value
    # Scaled by a power of two, which rounds nothing: unscaled, the square of 1e-170 would be 0, that of 1e170 infinite.
    unit = math.ldexp(1.0, math.frexp(float(np.max(np.abs(away))))[1] - 1)
    variance = math.fsum((away / unit) ** 2) / (draws.size - 1)
    half = float(special.stdtrit(draws.size - 1, (1 + level) / 2)) * math.sqrt(variance / draws.size) * unit
    return Estimate(value, value - half, value + half, float(level), int(draws.size))


def mean_probability(values: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """`mean` of draws that are probabilities, with the ends of its interval cut to [0, 1], where the truth lies.

    Example:
        >>> mean_probability([1e-6, 3e-6, 2e-6]).low
        0.0
    """
    found = mean(values, level=level)
    # A law may exceed 1 by a rounding: the interval contains the value even then.
    low, high = min(max(found.low, 0.0), found.value), max(min(found.high, 1.0), found.value)
    return dataclasses.replace(found, low=low, high=high)


def rate_sequence(events: int, trials: int, *, level: float = 0.95) -> Estimate:
    """Rate of an event with an interval of a confidence sequence: valid at all numbers of trials at once.

    For S_t events in t trials at rate p, the mixture of likelihood ratios

        M_t(p) = B(S_t + 1/2, t - S_t + 1/2) / (B(1/2, 1/2) p^S_t (1-p)^(t-S_t))

    is a martingale with M_0 = 1, so P[there is a t with M_t(p) >= 1/(1-level)] <= 1 - level (Ville 1939; Robbins 1970).
    The interval is {p: M_t(p) < 1/(1-level)}: with probability >= level it contains the truth at every t, so trials may
    be stopped by looking at it. It is 1.5 to 2.3 times as long as Clopper-Pearson's for 100 to 10^6 trials, which must not be peeked at.

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
        >>> estimate = rate_sequence(50, 100)
        >>> round(estimate.low, 4), round(estimate.high, 4)
        (0.3383, 0.6617)
    """
    events, trials, tail = _check(events, trials, level)
    others = trials - events
    # ln M (1-level) at the observed rate. Of ln B only what remains beyond Stirling's leading terms, which cancel, is computed: as a
    # difference of logarithms of that size it would be wrong by 0.4 at 2^46 trials and by 7 at 2^50.
    peak = _past_stirling(events) + _past_stirling(others) - _past_factorial(trials) + math.log(2 * tail / math.pi)

    def least(events: int, others: int) -> float:
        """ln of the least p in the interval over the observed rate: where ln(M (1-level)), which falls up to that rate, is 0."""

        def excess(y: float) -> float:
            """ln(M (1-level)) at e^y times the observed rate: the peak, and the divergence of the rates times their number."""
            away = others * math.log1p(-math.expm1(y) * events / others) if others else 0.0
            return peak - events * y - away

        return float(optimize.brentq(excess, -700.0, 0.0, xtol=1e-30, maxiter=1000))

    low = events / trials * math.exp(least(events, others)) if events else 0.0
    # Events that do not occur have rate 1 - p; as a difference from 1 a small end would lose its digits.
    high = (events - others * math.expm1(least(others, events))) / trials if others else 1.0
    return Estimate(events / trials, low, high, float(level), trials)


def _past_stirling(z: int) -> float:
    """ln Gamma(z + 1/2) - (z ln z - z), to 10^-13."""
    if z < 100:
        return float(special.gammaln(z + 0.5) - special.xlogy(z, z) + z)
    return 0.5 * math.log(2 * math.pi) - 1 / (24 * z) + 7 / (2880 * z**3)


def _past_factorial(z: int) -> float:
    """ln z! - (z ln z - z), to 10^-13."""
    if z < 100:
        return float(special.gammaln(z + 1.0) - special.xlogy(z, z) + z)
    return 0.5 * math.log(2 * math.pi * z) + 1 / (12 * z) - 1 / (360 * z**3)


def mean_sequence(values: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean of draws in [0, 1] with an interval of a confidence sequence: valid at all numbers of draws at once.

    The empirical Bernstein confidence sequence (Waudby-Smith and Ramdas 2024, Theorem 2), for any law on [0, 1]: with
    a = 1 - level, running means m_t = (1/2 + X_1 + ... + X_t)/(t+1) and variances s_t = (1/4 + sum (X_i - m_i)^2)/(t+1),

        weights   l_t = min(1/2, sqrt(2 ln(2/a) / (s_(t-1) t ln(1+t)))),
        interval  sum l_i X_i / sum l_i  +-  (ln(2/a) + sum (X_i - m_(i-1))^2 (-ln(1-l_i) - l_i)) / sum l_i,

    since exp(sum l_i (X_i - mean) - (X_i - m_(i-1))^2 (-ln(1-l_i) - l_i)) is at most a martingale (Fan, Grama and Liu
    2015), for each sign. The value is the plain mean, which need not lie in the middle of the interval, nor in it at all if the values
    come in a systematic order.

    Args:
        values: numbers in [0, 1], in the order drawn, at least one.
        level: confidence, in (0, 1).

    Returns:
        Estimate of the mean, cut to [0, 1].

    Raises:
        ValueError: no values, one outside [0, 1], or a level out of range.

    Example:
        >>> estimate = mean_sequence([0.0, 0.02] * 200)
        >>> round(estimate.low, 4), round(estimate.high, 4)
        (0.0, 0.0289)
    """
    level = arguments.known_fraction("level", level)
    draws = _numbers(values)
    if draws.ndim != 1 or not draws.size or not np.all((draws >= 0) & (draws <= 1)):
        raise ValueError(f"values must be one row of numbers in [0, 1], got {values!r}")
    count = np.arange(1, draws.size + 1)
    means = (0.5 + np.cumsum(draws)) / (count + 1)
    variances = (0.25 + np.cumsum((draws - means) ** 2)) / (count + 1)
    means, variances = np.append(0.5, means[:-1]), np.append(0.25, variances[:-1])  # the values before the draw
    surprise = math.log(2 / (1 - level))
    weights = np.minimum(0.5, np.sqrt(2 * surprise / (variances * count * np.log1p(count))))
    half = (surprise + np.sum((draws - means) ** 2 * (-np.log1p(-weights) - weights))) / np.sum(weights)
    centre = np.sum(weights * draws) / np.sum(weights)
    low, high = max(0.0, float(centre - half)), min(1.0, float(centre + half))
    return Estimate(math.fsum(draws) / draws.size, low, high, level, int(draws.size))


def largest(several: Sequence[Callable[..., Estimate]], *, level: float = 0.95) -> Estimate:
    """The largest of several quantities, none of which is known to be the largest.

    The largest upper end is above the largest quantity wherever the interval of that one holds it. The largest lower end is above it as
    soon as one of k intervals misses, so lower ends are those of intervals of confidence 1 - (1 - level) / k.

    Args:
        several: for each quantity a function that takes `level` and returns its estimate.
        level: confidence, in (0, 1).

    Returns:
        Estimate of the largest, from as many draws as the fewest of any.

    Raises:
        ValueError: no quantities, or a level out of range.

    Example:
        >>> import functools
        >>> six = [functools.partial(clopper_pearson, events, 100) for events in (3, 5, 4, 5, 2, 5)]
        >>> estimate = largest(six)
        >>> estimate.value, round(estimate.low, 4), round(estimate.high, 4)
        (0.05, 0.0105, 0.1128)
    """
    level = arguments.known_fraction("level", level)
    if not several:
        raise ValueError("several must hold at least one quantity, got none")
    each, strict = ([one(level=at) for one in several] for at in (level, 1 - (1 - level) / len(several)))
    value, high = max(one.value for one in each), max(one.high for one in each)
    return Estimate(value, max(one.low for one in strict), high, level, min(one.count for one in each))


def smallest(several: Sequence[Callable[..., Estimate]], *, level: float = 0.95) -> Estimate:
    """The smallest of several quantities; see `largest`.

    Example:
        >>> import functools
        >>> estimate = smallest([functools.partial(clopper_pearson, events, 100) for events in (97, 95)])
        >>> estimate.value, round(estimate.low, 4), round(estimate.high, 4)
        (0.95, 0.8872, 0.9863)
    """

    def negated(one: Callable[..., Estimate], *, level: float) -> Estimate:
        return _negative(one(level=level))

    return _negative(largest([functools.partial(negated, one) for one in several], level=level))


def _negative(one: Estimate) -> Estimate:
    return dataclasses.replace(one, value=-one.value, low=-one.high, high=-one.low)


def hidden_mass(draws: int, *, level: float = 0.95) -> float:
    """The mass that `draws` draws may all miss: the largest p with (1-p)^draws >= 1 - level, about 3/draws at 95%.

    No upper confidence bound that holds for every law on [0,1] can lie below this when all draws are 0 (the
    law that is 1 with a probability just under p, and otherwise 0, would break it).

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
    draws = arguments.count("draws", draws)
    return -math.expm1(math.log1p(-arguments.fraction("level", level)) / draws)


def _numbers(values: Any) -> np.ndarray:
    """The values as float64."""
    return arguments.array("values", values).astype(np.float64)


def _check(events: Any, trials: Any, level: Any) -> tuple[int, int, float]:
    """(events, trials, probability of one tail), checked."""
    trials = arguments.count("trials", trials, at_most=proportions.MOST_TRIALS)
    events = arguments.integer("events", events, at_least=0, at_most=trials)
    return events, trials, float(1 - arguments.fraction("level", level)) / 2
