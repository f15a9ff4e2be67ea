"""Sample sizes for sanitizers of points, and for learning k points from their counts: numbers of examples, as exact ints."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax.bounds.mechanisms import choosing_mechanism_privacy, stability_gap
from dpjax.core import arguments, bisection

MOST_COUNTED = 2**53  # a threshold that floats hold
_MORE = 1 + 1e-12  # sizes are rounded up, past what floating point may have lost
# PointLearner: answers accurate to this share of alpha give a database accurate to alpha/30, as Algorithm 5 requires.
SANITIZED = 1 / 60
HEAVY = 1 / 15  # PointLearner: from this share of alpha on, a point is heavy


# MULTI Algorithm 2, with the printed thresholds and with the best ones ------------------------------------------------


def point_release_private(epsilon: float, delta: float, alpha: float) -> int:
    """The least n with exp(-epsilon n alpha/8 + epsilon/2) <= delta: MULTI Algorithm 2 is then (epsilon, delta)-private.

    Args:
        epsilon: > 0. delta, alpha: in (0, 1).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> point_release_private(1.0, 1e-6, 0.1)
        1146
    """
    arguments.fractions(delta=delta, alpha=alpha)
    arguments.positive(epsilon=epsilon)
    return math.ceil(8 / (alpha * epsilon) * (epsilon / 2 - math.log(delta)) * _MORE)


def point_release(epsilon: float, delta: float, alpha: float, beta: float) -> int:
    """The n of MULTI Proposition 30: private, and every answer within alpha except with probability beta.

    The noise of each of the at most 4/alpha points above alpha/4 must stay below alpha/2: exp(-epsilon n alpha/4) <= alpha beta/4.

    Example:
        >>> point_release(1.0, 1e-6, 0.1, 1e-9)
        1146
    """
    arguments.fractions(beta=beta)
    private = point_release_private(epsilon, delta, alpha)
    accurate = -4 / (alpha * epsilon) * math.log(alpha * beta / 4)
    return max(math.ceil(accurate * _MORE), private)


def histogram_margin(epsilon: Any, delta: Any, *, log: Callable[[Any], Any] = math.log) -> Any:
    """1 + (2/epsilon) ln(1/(2 delta)): by how much a noisy count must exceed the last count that is never released.

    Example:
        >>> histogram_margin(2.0, 0.5)
        1.0
    """
    arguments.epsilon(epsilon), arguments.delta(delta)
    return 1 - 2 / epsilon * log(2 * delta)


def point_histogram(epsilon: float, high: float, alpha: float, beta: float) -> int:
    """An n for which every answer of a stability histogram is within alpha except with probability beta.

    A point is answered wrongly only if (a) its count is above alpha n (at most 1/alpha points) and its noise is below high - alpha n, or
    (b) its noise is above alpha n (at most n points): exp(-(epsilon/2) (alpha n - high)) / (2 alpha) + n exp(-(epsilon/2) alpha n) / 2.

    Args:
        epsilon: > 0.
        high: the count above which noisy counts are released, > 0.
        alpha, beta: in (0, 1).

    Example:
        >>> point_histogram(1.0, histogram_margin(1.0, 1e-6), 0.1, 0.1)
        351
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon, high=high)

    def failure(n: int) -> float:
        low_noise = math.exp(min(0.0, -epsilon / 2 * (alpha * n - high))) / alpha
        return (low_noise + n * math.exp(-epsilon / 2 * alpha * n)) / 2

    # Both terms decrease from 2 / (alpha epsilon) on.
    first = math.ceil(max(high, 2 / epsilon) / alpha)
    return bisection.least_rows(lambda n: failure(n) <= beta, first, alpha=alpha, epsilon=epsilon)


# A histogram of the whole domain, pure ----------------------------------------------------------------------------


def sparse_threshold(bits: Any, epsilon: Any, spurious: Any = 1.0, *, xp: Any = math) -> Any:
    """The least integer t >= 1 such that at most `spurious` of the noisy counts of 2^d zeros are expected to reach it.

    The expected number is 2^d r^t / (1 + r), with r = exp(-epsilon/2).

    Args:
        bits: d.
        epsilon: for the whole histogram under REPLACE_ONE; the noise has epsilon/2.
        spurious: the expected number that is allowed, > 0.
        xp: `math`, or `jax.numpy` for arrays and traced numbers, which pass unchecked.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sparse_threshold(64, 1.0), sparse_threshold(64, 1.0, 10.0)
        (88, 84)
    """
    if xp is math:
        arguments.counts(bits=bits)
        arguments.positive(epsilon=epsilon, spurious=spurious)
    above = bits * math.log(2.0) - xp.log1p(xp.exp(-epsilon / 2)) - xp.log(spurious)
    least = xp.ceil(above / (epsilon / 2))
    return max(least, 1) if xp is math else xp.maximum(least, 1)


def sparse_arrivals(bits: Any, epsilon: Any, least: Any, *, xp: Any = math) -> Any:
    """-2^d ln(1 - p), for the probability p that the noise of a count is at least `least`; at most 2 ln 2 times p 2^d.

    So P[none of 2^d zeros gets there] is exp of minus this. It is infinite where floats cannot hold it.

    Args:
        bits, epsilon, xp: as for `sparse_threshold`.
        least: an integer >= 1.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(sparse_arrivals(64, 1.0, 88), 4), round(sparse_arrivals(2, 1.0, 1), 4)
        (0.8935, 1.8963)
    """
    if xp is math:
        arguments.counts(bits=bits)
        arguments.positive(epsilon=epsilon)
        arguments.number("least", least, at_least=1)
    log_p = -epsilon / 2 * least - xp.log1p(xp.exp(-epsilon / 2))
    if xp is math:
        # Below e^-40, and where exp is 0, -ln(1 - p) is p.
        rate = log_p if log_p < -40 else math.log(-math.log1p(-math.exp(log_p)))
        total = bits * math.log(2.0) + rate
        return math.exp(total) if total < 709 else math.inf
    rate = xp.log(-xp.log1p(-xp.exp(xp.maximum(log_p, -40.0))))
    return xp.exp(bits * math.log(2.0) + xp.where(log_p < -40, log_p, rate))


def least_sparse_threshold(bits: int, epsilon: float, most: float) -> int:
    """The least integer t >= 1 at which `sparse_arrivals` is at most `most`.

    Args:
        bits, epsilon: as for `sparse_threshold`.
        most: > 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> least_sparse_threshold(64, 1.0, 4096.0)
        72
    """
    low = sparse_threshold(bits, epsilon, most)
    if low > MOST_COUNTED:
        raise ValueError(f"epsilon must be so large that a threshold of at most 2^53 will do, got {epsilon!r}")
    return bisection.least_int(lambda t: sparse_arrivals(bits, epsilon, t) <= most, low)


def sparse_histogram(
    bits: int, alpha: float, beta: float, epsilon: float, *, threshold: int | None = None, shift: int = 0
) -> int:
    """An n for which every answer of a sparse histogram is within alpha except with probability beta.

    Let m = floor(alpha n), G the noise, t the threshold and s <= t - 1 the shift: a count is answered by count + G - s, or by 0 if
    count + G < t. An answer exceeds the truth by more than m only if G > m + s. It falls short by more than m only for counts above m, of
    which there are fewer than 1/alpha, and only if G < s - m, or if the count is not released, G < t - count, which is likeliest at a count
    of m + 1. So all 2^d answers are right with probability at least

        (1 - P[G > m + s])^(2^d - k) (1 - P[G > m + s] - P[G < t - m - 1])^k,  k = min(2^d, ceil(1/alpha) - 1)

    and with no more than that on data with k points of m + 1 each, where t <= m + s + 1. (A shift of t - 1 is the best one here: the second
    probability does not depend on it.)

    Args:
        bits: d.
        alpha, beta: in (0, 1).
        epsilon: > 0.
        threshold: the least noisy count that is released; `sparse_threshold` if absent.
        shift: what is subtracted from noisy counts, below `threshold`.

    Raises:
        TypeError, ValueError: an argument out of range, or alpha and epsilon so small that more than 2^64 rows are needed.

    Example:
        >>> sparse_histogram(16, 0.1, 0.1, 1.0), sparse_histogram(64, 0.1, 0.1, 1.0)
        (290, 950)
        >>> sparse_histogram(16, 0.1, 0.1, 1.0, threshold=10, shift=9)
        180
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    least = sparse_threshold(bits, epsilon) if threshold is None else arguments.count("threshold", threshold)
    arguments.integer("shift", shift, at_least=0, at_most=least - 1)
    many = min(2.0 ** min(bits, 1023), math.ceil(1 / alpha * (1 - 2**-52)) - 1)

    def failure(n: int) -> float:
        within = math.floor(alpha * n * _MORE)
        high, low = (float(_noise_below(x, epsilon)) for x in (-within - shift, least - within - 1))
        if high + low >= 1:
            return 1.0
        arrivals = sparse_arrivals(bits, epsilon, within + shift + 1)
        return -math.expm1(-arrivals - many * (math.log1p(-high) - math.log1p(-high - low)))

    return bisection.least_rows(lambda n: failure(n) <= beta, 1, alpha=alpha, epsilon=epsilon)


# SanPoints (BNS Figure 9) -------------------------------------------------------------------------------------------


def san_points_rounds(alpha: float) -> int:
    """The number of rounds, R = ceil(2/alpha).

    Example:
        >>> san_points_rounds(0.5)
        4
    """
    arguments.fractions(alpha=alpha)
    return math.ceil(2 / alpha * (1 - 2**-52))


def san_points_budget(
    epsilon: Any,
    delta: Any,
    rounds: int,
    *,
    sqrt: Callable[[Any], Any] = math.sqrt,
    log: Callable[[Any], Any] = math.log,
    larger: Callable[[Any, Any], Any] = max,
) -> tuple[Any, Any]:
    """(e, d): what each of the R choices, and each of the two counts that differ between neighbours, may spend.

    d = 2 delta/(5R), and e is the larger of two:

    - epsilon/(R + 2), by basic composition of R + 2 mechanisms; larger up to R = 100 or so.
    - epsilon / sqrt(8 (R + 2) ln(5/delta)). By BNS Theorem 2.5 with slack delta/5, R + 2 mechanisms cost sqrt(2 (R + 2) ln(5/delta)) e +
      2 (R + 2) e^2 = epsilon/2 + epsilon^2 / (4 ln(5/delta)) <= epsilon for epsilon <= 2 ln(5/delta), and R d + delta/5 = 3 delta/5. (That
      theorem is stated for e <= 1. Its proof holds for every e: the mean privacy loss of an e-private mechanism is at most
      e (exp(e) - 1) / (exp(e) + 1) <= e^2 / 2, a quarter of what it allows.)

    Example:
        >>> e, d = san_points_budget(1.0, 1e-6, 4)
        >>> float(round(1 / e, 2)), float(d)
        (6.0, 1e-07)
        >>> float(round(1 / san_points_budget(1.0, 1e-6, 200)[0], 1))
        157.9
    """
    epsilon, delta, rounds = arguments.epsilon(epsilon), arguments.delta(delta), arguments.count("rounds", rounds)
    each = larger(epsilon / (rounds + 2), epsilon / sqrt(8 * (rounds + 2) * log(5 / delta)))
    return each, 2 * delta / (5 * rounds)


def san_points_private(epsilon: float, delta: float, alpha: float) -> int:
    """The least n for which every round's Choosing Mechanism is proved private.

    Raises:
        TypeError, ValueError: an argument out of range, or epsilon > 2 ln(5/delta), for which advanced composition does not hold.

    Example:
        >>> san_points_private(1.0, 1e-6, 0.5)
        3232
    """
    e, d = _san_points(epsilon, delta, alpha)
    return math.ceil(choosing_mechanism_privacy(1, alpha / 2, e, d) * _MORE)


def san_points(epsilon: float, delta: float, alpha: float, beta: float) -> int:
    """An n for which SanPoints is private and within alpha except with probability beta (BNS Theorem 4.6, for the mechanisms that run).

    While a point of alpha n rows is left, a round goes wrong if its test fails, which compares that count and noise of scale 4/e with
    alpha n/4: exp(-(e/4) (3/4) alpha n)/2; or if it chooses one of the at most n points with less than alpha n/2 rows:
    n exp(-(e/4) alpha n/2), as Lemma 4.5, whose formula counts delta, too. Otherwise it takes a point of alpha n/2 rows, and after R rounds
    no point of alpha n rows is left. The noise of a round exceeds alpha n with probability exp(-e alpha n). R times the sum of the three is
    at most beta.

    Example:
        >>> san_points(1.0, 1e-6, 0.5, 0.1)
        3232
    """
    arguments.fractions(beta=beta)
    e, _ = _san_points(epsilon, delta, alpha)
    share = beta / san_points_rounds(alpha)

    def suffices(n: int) -> bool:
        unit = e * alpha * n / 4
        return math.exp(-0.75 * unit) / 2 + n * math.exp(-unit / 2) + math.exp(-4 * unit) <= share

    # n exp(-e alpha n/8) falls from 8/(e alpha) on.
    first = max(san_points_private(epsilon, delta, alpha), math.ceil(8 / (e * alpha)))
    return bisection.least_rows(suffices, first, alpha=alpha, epsilon=e)


def _san_points(epsilon: float, delta: float, alpha: float) -> tuple[float, float]:
    """`san_points_budget`, refused where the composition does not give (epsilon, delta)."""
    arguments.fractions(delta=delta)
    arguments.positive(epsilon=epsilon)
    most = 2 * math.log(5 / delta)
    if epsilon > most:
        raise ValueError(
            f"epsilon must be <= 2 ln(5/delta) = {most:.4g} for the composition of SanPoints, got {epsilon}"
        )
    return san_points_budget(epsilon, delta, san_points_rounds(alpha))


# k points at once from noisy counts ---------------------------------------------------------------------------------


def point_learner_least_count(beta: float, epsilon: float, delta: float) -> int:
    """g: the gap at which the proved A_dist at (epsilon/2, delta/2) fails with probability beta/4, rounded up."""
    arguments.fractions(beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    return math.ceil(stability_gap(beta / 4, epsilon / 2, delta / 2))


def point_learner_exact(alpha: float, beta: float, epsilon: float, delta: float, *, calibration: str = "proved") -> int:
    """MULTI Theorem 40 with its constants: n at which PointLearner is private and all k errors are <= alpha except with probability beta.

    It is the same for every k. See `dpjax.multi.points.point_learner` for both calibrations. The printed one is the largest of

    - (960/(alpha epsilon)) (epsilon/4 + ln(2/delta)): Algorithm 2 at alpha/60 is private;
    - (480/(alpha epsilon)) ln(960/(alpha beta)): except with probability beta/4, its answers are within alpha/60, and hence a database made
      from them is within alpha/30 (Proposition 30);
    - (200/(81 alpha)) ln(4/(alpha beta)): except with probability beta/4, each of the at most 1/alpha points of mass >= alpha has a share
      >= alpha/10 (Chernoff exp(-0.81 alpha n / 2) and a union bound, where the paper quotes Theorem 8 without constants);
    - (30/alpha) times the gap at which A_dist fails with probability beta/2.

    Args:
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: privacy, > 0 and in (0, 1).
        calibration: "printed" or "proved" constants of A_dist and Algorithm 2.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> point_learner_exact(0.1, 0.1, 1.0, 1e-6), point_learner_exact(0.1, 0.1, 1.0, 1e-6, calibration="printed")
        (1784, 141684)
    """
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    if calibration == "proved":
        high = point_learner_least_count(beta, epsilon, delta) - 1 + histogram_margin(epsilon / 2, delta / 2)
        return point_learner_above(alpha, beta, epsilon, high)
    counted = point_release(epsilon / 2, delta / 2, alpha * SANITIZED, beta / 4)
    frequent = -200 / (81 * alpha) * math.log(alpha * beta / 4)
    told_apart = 30 / alpha * stability_gap(beta / 2, epsilon / 2, delta / 2, calibration="printed")
    return max(counted, math.ceil(frequent), math.ceil(told_apart))


def point_learner_above(alpha: float, beta: float, epsilon: float, high: float) -> int:
    """The proved size for the threshold `high`: points with noisy counts above it are heavy."""
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon, high=high)
    return _until_seen(alpha, beta, high - 4 / epsilon * math.log(alpha * beta / 2))


def labelled_histogram(alpha: float, beta: float, epsilon: float, high: float) -> int:
    """The least n at which a stability histogram of labelled points learns k points to error alpha with probability 1 - beta, for any k.

    On consistent labels a pair (x, labels) is as frequent as its point. A count r = high + (2/epsilon) ln(1/(alpha beta)) is released
    except with probability alpha beta/2, and n is the least with P[Bin(n, alpha) < r] <= alpha beta/2.

    Example:
        >>> labelled_histogram(0.1, 0.1, 1.0, histogram_margin(1.0, 1e-6))
        536
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon, high=high)
    return _until_seen(alpha, beta, high + 2 / epsilon * max(0.0, -math.log(alpha * beta)))


def labelled_sparse_histogram(bits: int, k: int, alpha: float, beta: float, epsilon: float, *, threshold: int) -> int:
    """An n for which a sparse histogram of labelled points learns k points to error alpha except with probability beta.

    With probability at most `sparse_arrivals`, one of the 2^(bits + k) pairs is released although it does not occur. Otherwise all is well
    if every point of mass above alpha is released; there are fewer than 1/alpha of these. So n is the least with

        P[Bin(n, alpha) + noise < threshold] <= alpha (beta - `sparse_arrivals`).

    Args:
        bits: d. k: number of concepts.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.
        threshold: the least noisy count that is released.

    Raises:
        TypeError, ValueError: an argument out of range, or a threshold so low that `sparse_arrivals` alone is beta or more.

    Example:
        >>> labelled_sparse_histogram(16, 64, 0.1, 0.1, 1.0, threshold=sparse_threshold(80, 1.0, 0.05))
        1451
    """
    arguments.counts(bits=bits, k=k)
    arguments.integer("threshold", threshold, at_least=1, at_most=MOST_COUNTED)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    target = alpha * (beta - sparse_arrivals(bits + k, epsilon, threshold))
    if target <= 0:
        least = least_sparse_threshold(bits + k, epsilon, math.nextafter(beta, 0.0))
        raise ValueError(f"threshold must be at least {least} for beta = {beta}, got {threshold}")
    # While the mean of the counts is below the threshold, half of the counts are, and half of these are missed.
    first = max(1, math.floor((threshold - 1) / alpha * (1 - 1e-12))) if target < 0.25 else 1
    first = min(first, 2**64)  # where `least_rows` gives up
    return bisection.least_rows(
        lambda n: _missed(n, alpha, epsilon, threshold, target) <= target, first, alpha=alpha, epsilon=epsilon
    )


def labelled_sparse_histogram_beats(
    rows: int, bits: int, k: int, alpha: float, beta: float, epsilon: float, *, threshold: int
) -> bool:
    """Whether `labelled_sparse_histogram` is below `rows`, which one law decides.

    >>> given = {"threshold": sparse_threshold(80, 1.0, 0.05)}
    >>> [labelled_sparse_histogram_beats(n, 16, 64, 0.1, 0.1, 1.0, **given) for n in (1451, 1452)]
    [False, True]
    """
    target = alpha * (beta - sparse_arrivals(bits + k, epsilon, threshold))
    return rows > 1 and target > 0 and _missed(rows - 1, alpha, epsilon, threshold, target) <= target


def _noise_below(x: Any, epsilon: float) -> Any:
    """P[G < x] for two-sided geometric noise of epsilon/2 and integer x: P[G > -x], or 1 - P[G >= x]."""
    size = np.exp(-epsilon / 2 * np.where(x <= 0, 1 - x, x) - math.log1p(math.exp(-epsilon / 2)))
    return np.where(x <= 0, size, 1 - size)


def _missed(rows: int, alpha: float, epsilon: float, threshold: int, target: float) -> float:
    """P[Bin(rows, alpha) + two-sided geometric noise of epsilon/2 < threshold], up to a negligible part of `target`."""
    from scipy.stats import binom  # slow to import

    n: float = rows if rows < 2**63 else float(rows)  # SciPy takes no larger integers
    rate, spread = epsilon / 2, math.sqrt(n * alpha * (1 - alpha))
    if rate * spread > (25 if rate < 0.004 else 8):
        reach = math.ceil((40 - math.log(target)) / rate)  # of the noise
        low, high = max(0, threshold - reach), min(rows, threshold + reach)
        counts = np.arange(low, high + 1)
        missed = binom.pmf(counts, n, alpha) @ _noise_below(threshold - counts, epsilon)
        return float(missed + binom.cdf(low - 1, n, alpha))

    norm = math.log1p(math.exp(-rate))

    # Sums of binomial weights times exp(+-rate count) are sums of other binomial laws. (None of their tails underflows here, as the noise
    # is wide compared with the spread of the counts.)
    def tilted(sign: int) -> tuple[float, float]:
        grown = math.log1p(alpha * math.expm1(sign * rate))
        # The rarer of both symbols: what its probability lacks of 1 may be no float.
        rarer = 1 - alpha if sign > 0 else alpha * math.exp(-rate)
        return min(rarer * math.exp(-grown), 1.0), n * grown - sign * rate * threshold - norm

    (others, log_up), (down, log_down) = tilted(1), tilted(-1)
    kept_below = math.exp(log_up + binom.logsf(n - threshold, n, others))
    lost_above = math.exp(log_down - rate + binom.logsf(threshold - 1, n, down))
    return float(binom.cdf(threshold - 1, n, alpha)) - kept_below + lost_above


def _until_seen(alpha: float, beta: float, count: float) -> int:
    """The least n at which P[Bin(n, alpha) < count] <= alpha beta/2."""
    from scipy.stats import binom  # slow to import

    needed = math.ceil(count)

    def seen(n: int) -> bool:
        return binom.cdf(float(needed - 1), float(n), alpha) <= alpha * beta / 2

    return bisection.least_rows(seen, needed, alpha=alpha, count=count)
