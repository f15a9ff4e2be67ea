"""Sample sizes for sanitizers of thresholds that return a database (BNS §4.3; histograms and trees); neighbours: one row is replaced."""

import functools
import math
from fractions import Fraction

import numpy as np

from dpjax.bounds.mechanisms import choosing_mechanism, choosing_mechanism_privacy
from dpjax.bounds.thresholds import levels_run, log_star, rec_concave_error
from dpjax.core import arguments, bisection

_MORE = 1 + 1e-12  # sizes are rounded up, past what floating point may have lost
_EXACT = 64  # noises, up to which tails of their sums are exact
_LONGEST = 2**19  # the largest law of a sum of noises that is computed
_NATS = 700.0  # beyond it r^k is hardly a float64, and so the incomplete beta function is wrong
_TINY = 1e-300  # tails below it are taken for it
_LOST = 1e-10  # what its rounding and the tails beyond it may have lost
GROWTH = 2  # a row lies in one block of each of SanThresholds' two partitions


# SanThresholds (BNS Figure 11) ------------------------------------------------------------------------------------------


def san_thresholds_calls(alpha: float, *, calibration: str = "proved") -> int:
    """The budget c of calls of SanThresholds.

    printed: floor(77/alpha), for all calls. The figure sets calls := 77/alpha and halts when calls = 0. A budget that is not an integer
    never becomes 0, and then nothing bounds the number of calls, on which Lemma 4.8 rests: c must be rounded.

    proved: floor(128/(5 alpha)), for calls that pass step 3. Where the good events of Claim 4.10 occur, each of these takes 5 alpha n/128
    rows for itself, so there cannot be more.

    Args:
        alpha: error, in (0, 1).
        calibration: "proved" or "printed".

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> san_thresholds_calls(0.1), san_thresholds_calls(0.1, calibration="printed")
        (256, 770)
    """
    arguments.fractions(alpha=alpha)
    most = 77.0 / alpha if arguments.calibration(calibration) == "printed" else 128.0 / (5.0 * alpha)
    return math.floor(most * _MORE)


def san_thresholds_private(alpha: float, epsilon: float, delta: float) -> int:
    """The least n for which every Choosing Mechanism within SanThresholds is proved (epsilon, delta)-private.

    Each runs at alpha/64, and its quality is of 2-bounded growth. Lemma 4.8 requires (1024/(alpha eps)) ln(2048/(alpha beta eps delta)),
    which is Lemma 4.4 to the letter; `choosing_mechanism_privacy` is enough, in which beta plays no part.

    Args:
        alpha: the error of SanThresholds, in (0, 1).
        epsilon, delta: the privacy of ONE of its mechanisms.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{san_thresholds_private(0.1, 0.006, 1e-9):.1e}"
        '1.9e+07'
    """
    arguments.fractions(alpha=alpha)
    return math.ceil(choosing_mechanism_privacy(GROWTH, alpha / 64.0, epsilon, delta) * _MORE)


def san_thresholds(
    bits: int, alpha: float, beta: float, epsilon: float, delta: float, *, calibration: str = "proved"
) -> int:
    """An n for which SanThresholds is private and, with probability 1 - beta, within alpha for all thresholds (BNS Theorem 4.13, explicit).

    printed: the larger of Lemma 4.8 and Lemma 4.12, with b = beta/(3c) for their beta and the logarithm to base 2:

        n >= 8^L (60 c/(alpha eps)) L log(12 L/(b eps delta)),  L = log*(d), c = 77/alpha.

    proved: at most y calls pass step 3, so there are at most 2y + 1 calls (each but the first was made by one that passed) and as many
    intervals [a, b]. Let u = ln(3 (3y + 1)/beta)/eps, which none of the 3y + 1 noises exceeds except with probability beta/3.

    - Noise: u <= alpha n/16, so that a call that passes step 3 has alpha n/16 rows and RecConcave's promise holds (Claim 4.10).
    - RecConcave: its answer is alpha n/128 below the promise at worst, except with probability beta/(3y): `rec_concave_error`.
    - Choosing Mechanism, b = beta/(6y). Some interval holds 7 alpha n/128 rows: the test at alpha n/128 fails with probability
      exp(-(eps/4) 6 alpha n/128)/2, and one of at most 2n intervals with 2 alpha n/128 fewer rows is taken with probability
      2n exp(-(eps/4) 2 alpha n/128). Otherwise 5 alpha n/128 rows are in [a, b].
    - Error: [a, b - 1] is covered by four intervals of length 2^(z-1), which hold at most 9 alpha n/128 rows each, 36 alpha n/128 in all
      (the paper prints 49 alpha n/128, and uses alpha n/2), or it has at most alpha n/8 + u rows by step 3. Counts are off by u + 1/2,
      rounding included, and so is their sum, by which shares are divided: max{36 alpha n/128, alpha n/8 + u} + 2 (2y + 1) (u + 1/2) <=
      alpha n. (Clamping at 0 brings a count nearer to the truth.)
    - `san_thresholds_private`, which decides for small delta and few bits.

    Args:
        bits: d.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: the privacy of ONE mechanism; delta in (0, 1/2].
        calibration: "proved" or "printed".

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{san_thresholds(16, 0.1, 0.1, 0.006, 1e-9):.1e}"
        '2.4e+07'
        >>> f"{san_thresholds(16, 0.1, 0.1, 3.1e-3, 2.6e-10, calibration='printed'):.1e}"
        '1.4e+13'
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    calls = san_thresholds_calls(alpha, calibration=calibration)
    if calibration == "printed":
        share, depth = beta / (3 * calls), max(1, log_star(bits))
        logarithm = math.log2(12.0 * depth) - math.log2(share) - math.log2(epsilon) - math.log2(delta)
        useful = 8.0**depth * 60.0 * calls / (alpha * epsilon) * depth * logarithm
        return math.ceil(max(useful, choosing_mechanism(GROWTH, alpha / 64.0, share, epsilon, delta)))
    noise = math.log(3.0 * (3 * calls + 1) / beta) / epsilon
    recursion = rec_concave_error(bits, levels_run(bits, bits), beta / (3 * calls), epsilon, delta)
    share = beta / (6 * calls)

    def suffices(n: int) -> bool:
        unit = alpha * n / 128.0
        tested = 0.5 * math.exp(-epsilon / 4.0 * 6.0 * unit) <= share
        chosen = math.log(2.0 * n) - epsilon / 4.0 * 2.0 * unit <= math.log(share)
        error = max(36.0 * unit, 16.0 * unit + noise) + 2.0 * (2 * calls + 1) * (noise + 0.5)
        return noise <= 8.0 * unit and recursion <= unit and tested and chosen and error <= alpha * n

    # 2n exp(-eps alpha n/256) falls from 256/(alpha eps) on.
    first = math.ceil(max(san_thresholds_private(alpha, epsilon, delta), 256.0 / (alpha * epsilon)))
    return bisection.least_rows(suffices, first, alpha=alpha, epsilon=epsilon)


# Noisy counts ------------------------------------------------------------------------------------------------------------


def histogram_thresholds(bits: int, alpha: float, beta: float, epsilon: float) -> int:
    """Rows for all thresholds within alpha except with probability beta, from counts of all 2^d points with noise of scale b = 2/epsilon.

    A threshold sums up to N = 2^d - 1 independent noises. They are symmetric, so by Lévy's inequality

        P[max_j |S_j| >= t] <= 4 P[S_N >= t], and for N = 1 it is 2 P[S_1 >= t].

    S_N has an exact law, by Fourier inversion of ((1 - r)^2 / (1 - 2 r cos x + r^2))^N, r = exp(-1/b). Where that is long, or beta tiny,
    exp(s S_j) is a submartingale in j, so by Doob's inequality

        P[max_j |S_j| > t] <= 2 exp(-s t) (1 - s^2 b^2)^(-N)  for every 0 < s < 1/b:

    t is the least for which some s makes that beta. (The moment generating function of two-sided geometric noise is
    1/(1 - (sinh(s/2)/sinh(1/(2b)))^2), at most that of Laplace noise, as sinh is convex.) n is the least for which alpha n is at least t,
    or t - 1 by the first bound. Of order 2^(d/2), where a tree pays d^2.5.

    Args:
        bits: d, at most 1023.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> histogram_thresholds(4, 0.1, 0.1, 1.0), histogram_thresholds(16, 0.1, 0.1, 1.0)
        (210, 14040)
    """
    _check(bits, alpha, beta, epsilon)
    arguments.integer("bits", bits, at_least=1, at_most=1023)  # 2^d is a float
    rows = _rows(2.0 / epsilon * noise_deviation(2**bits - 1, math.log(2.0 / beta)), alpha)
    reached = _walk_reaches(2**bits - 1, epsilon / 2.0, beta)
    return rows if reached is None else min(rows, max(1, math.ceil((reached - 1) / Fraction(alpha))))


@functools.lru_cache(maxsize=256)
def _walk_reaches(noises: int, rate: float, beta: float) -> int | None:
    """The least integer t with P[max_j |S_j| >= t] <= beta by Lévy's inequality; None if the law of S_N is too long, or beta too small."""
    ratio, steepness = math.exp(-rate), -math.expm1(-rate)
    if noises == 1:
        return max(1, math.ceil(math.log(2.0 / (beta * (1.0 + ratio))) / rate * _MORE))  # P[|S_1| >= t] = 2 r^t/(1 + r)
    reach = noise_deviation(noises, math.log(20.0 / _LOST)) / rate + 1.0  # beyond it, a tenth of what may be lost
    if beta < 1e4 * _LOST or reach > _LONGEST / 2:
        return None
    size = 2 << math.ceil(math.log2(reach))
    angles = np.pi * np.arange(size // 2 + 1) / size
    law = np.fft.irfft(np.exp(-noises * np.log1p(ratio * (2.0 * np.sin(angles) / steepness) ** 2)), size)
    tail = np.cumsum(law[1 : size // 2][::-1])[::-1]  # P[S >= 1], P[S >= 2], ...
    within = 4.0 * (tail + _LOST) <= beta
    return 1 + int(np.argmax(within)) if within.any() else None


def tree_thresholds(bits: int, alpha: float, beta: float, epsilon: float) -> int:
    """Rows as for `histogram_thresholds`, from consistent counts of all dyadic intervals but the whole, with noise of scale b = 2d/epsilon.

    A threshold j is the union of popcount(j) dyadic intervals, its complement of popcount(2^d - j): together at most d + 1, so one of the
    two is at most V = floor((d + 1)/2). Least squares have no larger variance than that unbiased estimate (Gauss, Markov): the estimate
    is the truth plus a sum of independent noises with weights whose squares add up to V at most. Hence, for s = b sqrt(V) lambda < 1,
    P[|error| > t] <= 2 exp(-s t/(b sqrt(V)) - ln(1 - s^2)), for each of 2^d - 1 thresholds.

    Args:
        bits: d.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> tree_thresholds(4, 0.1, 0.1, 1.0), tree_thresholds(16, 0.1, 0.1, 1.0)
        (925, 15632)
    """
    _check(bits, alpha, beta, epsilon)
    scale = 2.0 * bits / epsilon * math.sqrt((bits + 1) // 2)
    log_odds = math.log(2.0 / beta) + bits * math.log(2.0) + math.log1p(-(2.0**-bits))
    return _rows(scale * noise_deviation(1, log_odds), alpha)


def _check(bits: int, alpha: float, beta: float, epsilon: float) -> None:
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)


def _rows(deviation: float, alpha: float) -> int:
    """n with alpha n >= t."""
    return math.ceil(deviation / alpha * _MORE)


def noise_deviation(noises: int, log_odds: float) -> float:
    """The least t (in scales of the noise) with exp(-s t) (1 - s^2)^(-N) <= exp(-log_odds) for some s in (0, 1).

    A sum of N independent noises, Laplace or two-sided geometric, with weights in [-1, 1] exceeds it with probability at most
    exp(-log_odds): 1/(1 - s^2) is the moment generating function of Laplace noise, and at the same rate that of geometric noise is smaller.

    t(s) = (log_odds - N ln(1 - s^2))/s has one minimum, where 2 N s^2/(1 - s^2) + N ln(1 - s^2) = log_odds.

    Example:
        >>> round(noise_deviation(1, 10.0), 2), round(noise_deviation(100, 10.0), 2)
        (12.9, 64.76)
    """

    arguments.integer("noises", noises, at_least=1, at_most=2**1023)
    arguments.number("log_odds", log_odds, at_least=0.0, below=math.inf)

    def short(s: float) -> bool:
        return noises * (2.0 * s * s / (1.0 - s * s) + math.log1p(-s * s)) <= log_odds

    s = bisection.largest_float(short, 0.0, 1.0 - 1e-12, precision=1e-9)
    return (log_odds - noises * math.log1p(-s * s)) / s


def noise_tail(noises: int, deviation: float) -> float:
    """A bound on P[a sum of N independent noises, Laplace or two-sided geometric, with weights in [-1, 1] reaches t scales].

    The least exp(-s t) (1 - s^2)^(-N) over s in (0, 1), at t s^2 + 2 N s = t; see `noise_deviation`.

    Example:
        >>> round(noise_tail(1, 12.903047518986224) / math.exp(-10), 6)
        1.0
    """
    arguments.count("noises", noises)
    arguments.number("deviation", deviation, below=math.inf)
    return _noise_tail(noises, deviation) if deviation > 0.0 else 1.0


def _noise_tail(noises: int, deviation: float) -> float:
    s = min(deviation / (noises + math.hypot(noises, deviation)), 1.0 - 2.0**-53)
    return math.exp(-s * deviation - noises * math.log1p(-s * s))


@functools.lru_cache(128)
def _binomials(noises: int) -> tuple[np.ndarray, np.ndarray]:
    """C(N, i), i = 1, ..., N, and C(N - j - 1, i - 1) by (j, i), j = 1, ..., N."""
    from scipy import special

    i = np.arange(1, noises + 1)
    left = noises - i[:, None]
    return special.comb(noises, i), np.where(left > 0, special.comb(np.maximum(left - 1, 0), i - 1), 0.0)


@functools.lru_cache(256)  # the search for a reach asks for many tails at one rate
def _mixture(noises: int, r: float) -> tuple[np.ndarray, np.ndarray]:
    """(j, w_j), j = 1, ..., N, of `geometric_sum_tail`."""
    choices, places = _binomials(noises)
    j = np.arange(1, noises + 1)
    weights = places @ (choices * r ** (2.0 * j))
    weights[-1] = 1.0
    return j, (1 + r) ** (j - 2.0 * noises) * weights


def geometric_sum_tail(noises: int, rate: float, least: int) -> float:
    """P[a sum of N two-sided geometric noises at a rate is at least k], exactly up to 64 noises; else `noise_tail`.

    With r = e^-rate, the generating function ((1 - r)^2/((1 - r z)(1 - r/z)))^N has its pole at 1/r in common with a mixture of negative
    binomial laws, which therefore has the same probabilities of 0 and more: with all w_j > 0, for k >= 1,

        P[S >= k] = sum_(j = 1)^N w_j I_r(k, j),   w_j = (1 + r)^-(2N - j) sum_i C(N, i) C(N - j - 1, i - 1) r^(2i),

    where the sum over i is 1 for j = N, and the incomplete beta function I_r(k, j) is the probability of k or more by the j-th law. For one
    noise the tail is r^k/(1 + r).

    Args:
        noises: N, at least 1.
        rate: > 0.
        least: k; below 1 the bound is 1.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(geometric_sum_tail(1, 0.5, 3), 6), round(geometric_sum_tail(9, 0.1, 100), 6)
        (0.138889, 0.01131)
    """
    noises = arguments.integer("noises", noises, at_least=1)
    arguments.positive(rate=rate)
    return 1.0 if least < 1 else _sum_tail(noises, rate, float(least))


def _sum_tail(noises: int, rate: float, least: float) -> float:
    from scipy import special

    if noises > _EXACT:
        return _noise_tail(noises, rate * least)
    r = math.exp(-rate)
    j, weights = _mixture(noises, r)
    return float(weights @ special.betainc(least, j, r))


@functools.lru_cache(4096)
def geometric_sum_reach(noises: int, rate: float, tail: float) -> int:
    """The least k >= 0 that the sum reaches with probability at most `tail`, by `geometric_sum_tail`.

    For tails that float64 does not serve (below 1e-290; of 64 noises from about 1e-160 on) one that is enough.

    Example:
        >>> geometric_sum_reach(1, 0.5, 0.13), geometric_sum_reach(9, 0.1, 0.01)
        (4, 103)
    """
    noises = arguments.integer("noises", noises, at_least=1)
    arguments.positive(rate=rate, tail=tail)
    if tail >= 1.0:
        return 0
    # Enough: (1 - s^2)^(-N) <= exp(N s^2/(1 - s)), and of this and exp(-s t) the least product over s is exp(-(sqrt(N + t) - sqrt(N))^2).
    log_odds = -math.log(tail)
    high = max(math.ceil((log_odds + 2 * math.sqrt(noises * log_odds)) / rate), 1)
    if tail < 1e-290 or (noises <= _EXACT and rate * high > _NATS):
        return math.ceil(noise_deviation(noises, log_odds) / rate * _MORE)

    def short(least: float) -> float:
        """ln of how many times less likely the sum reaches this; where it is positive, `least` is enough."""
        return -math.log(max(_sum_tail(noises, rate, least), _TINY)) - log_odds

    # The logarithm of the tail is concave, and falls by the rate a step at most: from the right neither that slope nor that of the last
    # two places leads beyond the least k. Where the tail is cut off at _TINY, it says nothing of the slope.
    place, left, slope = float(high), short(high), rate
    while left > 0.0 and place > 1.0 and left / slope > 0.5:
        before, place = place, max(place - left / slope, 1.0)
        left, last = short(place), left
        slope = (last - left) / (before - place) if last < -math.log(_TINY) - log_odds else rate
    near = math.ceil(place)
    while near > 1 and _sum_tail(noises, rate, near - 1) <= tail:
        near -= 1
    while _sum_tail(noises, rate, near) > tail:
        near += 1
    return near
