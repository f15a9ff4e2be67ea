"""Sample sizes for learning parities from uniform points (MULTI §4.2.1): floats, or ints where they are exact."""

import math

import numpy as np

from dpjax.bounds.generic import finite_class
from dpjax.bounds.mechanisms import stability_gap, stability_noise
from dpjax.core import arguments, bisection

# How many rows beyond d a subsample may have: with 40 it has full rank except with probability 2^-40, and more never pays.
_SPARE_ROWS = 40
_LEAST_EPSILON = 2.0**-50  # numbers of subsamples are int64


def exponential_parities(bits: int, beta: float, epsilon: float) -> float:
    """Examples for the exponential mechanism over all parities, for labels of a parity: ln((2^d - 1)/b) / ln(2 / (1 + exp(-eps/2))).

    Points are uniform, so that a wrong parity labels D ~ Bin(n, 1/2) examples wrong, and is chosen with probability at
    most exp(-eps D / 2). So, over sample and coins,

        P[not the right one] <= (2^d - 1) E[exp(-eps D / 2)] = (2^d - 1) ((1 + exp(-eps/2)) / 2)^n,

    which is beta at this n, about 4 (d ln 2 + ln(1/b)) / eps.

    Args:
        bits: d.
        beta: failure probability, in (0, 1).
        epsilon: privacy, > 0.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(exponential_parities(10, 0.01, 1.0))
        53
    """
    arguments.domain_bits(bits)
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    wrong = math.log(2**bits - 1) - math.log(beta)
    rate = -math.log1p(math.expm1(-epsilon / 2) / 2)
    return max(1.0, wrong / rate)


def agnostic_parities(bits: int, alpha: float, beta: float, epsilon: float) -> float:
    """Examples after which the exponential mechanism's error is at most the best + a with probability 1 - b, for any labels and points.

    `finite_class` with all 2^d parities: max{ (4/(a eps)) ln(2^(d+1)/b), (8/a^2) ln(2^(d+2)/b) }.

    Example:
        >>> round(agnostic_parities(4, 0.2, 0.1, 0.5))
        1292
    """
    arguments.counts(bits=bits)
    return finite_class(bits * math.log(2.0), alpha, beta, epsilon)


# ParityLearner (Algorithm 4) on subsamples of `size` examples ------------------------------------------------------


def parity_learner_failure(
    n: int, size: int, bits: int, epsilon: float, delta: float, *, calibration: str = "proved"
) -> float:
    """P[some of k parities is not identified] by ParityLearner with n uniform examples, exactly, over examples and coins, for any k.

    If labels are those of k parities, every subsample of full rank votes for the truth, and no other vector gets a vote.
    So the gap is the number N of subsamples of full rank, N ~ Bin(m, p), m = floor(n / s), p = prod_(i<d) (1 - 2^-(s-i)):

        P[failure] = P[N = 0] + sum_(N>=1) P[N] P[noise < threshold - N].

    Args:
        n: examples, >= 1. size: s, examples per subsample. bits: d.
        epsilon, delta: of A_dist.
        calibration: "printed" or "proved" constants of A_dist.

    Example:
        >>> round(parity_learner_failure(2000, 40, 32, 1.0, 1e-6), 3)
        0.0
    """
    arguments.counts(n=n, size=size, bits=bits)
    return _failure(n // size, size, bits, *stability_noise(epsilon, delta, calibration=calibration))


def parity_learner_exact(
    beta: float, size: int, bits: int, epsilon: float, delta: float, *, calibration: str = "proved"
) -> int:
    """The least n from which on `parity_learner_failure` is at most beta: a multiple of s >= d, the same for every k."""
    arguments.counts(bits=bits)
    arguments.count("size", size, at_least=bits)  # fewer rows never have full rank
    arguments.fractions(beta=beta)
    arguments.number("epsilon", epsilon, at_least=_LEAST_EPSILON)
    return size * _least_votes(beta, size, bits, *stability_noise(epsilon, delta, calibration=calibration))


def parity_learner_size(*, bits: int, epsilon: float, delta: float, beta: float, calibration: str = "proved") -> int:
    """The s from d to d + 40 for which the fewest examples suffice: a trade-off of rows per subsample against the number of subsamples.

    Example:
        >>> parity_learner_size(bits=256, epsilon=1.0, delta=1e-6, beta=0.1)
        263
    """
    arguments.counts(bits=bits)
    arguments.fractions(beta=beta)
    arguments.number("epsilon", epsilon, at_least=_LEAST_EPSILON)
    noise = stability_noise(epsilon, delta, calibration=calibration)
    sizes = range(bits, bits + _SPARE_ROWS + 1)
    first, *others = sorted(sizes, key=lambda size: size * _about_votes(beta, size, bits, *noise))
    best = first * _least_votes(beta, first, bits, *noise), first
    for size in others:
        votes = (best[0] - (size > best[1])) // size  # with more of them it is no better
        if _enough(votes, beta, size, bits, *noise):
            best = size * _least_votes(beta, size, bits, *noise), size
    return best[1]


def parity_learner_beats(n: int, *, bits: int, epsilon: float, delta: float, beta: float) -> bool:
    """Whether fewer than n examples suffice for ParityLearner with some s, as `parity_learner_size` searches for it."""
    noise = stability_noise(epsilon, delta)
    return any(_enough((n - 1) // size, beta, size, bits, *noise) for size in range(bits, bits + _SPARE_ROWS + 1))


def parity_learner_theorem(*, bits: int, epsilon: float, delta: float, beta: float) -> int:
    """Examples that suffice by Theorem 39's proof with explicit constants, for s = bits + 3.

    Then p >= 7/8, as in the paper's proof. N >= 3m/4 except with probability b/2 if m >= ln(2/b) / KL(1/4 || 1/8) (Chernoff),
    and A_dist fails with probability at most b/2 if 3m/4 >= 2 + (2/eps) ln(1/(2 delta b)):

        (d + 3) max{ ln(2/b) / KL(1/4 || 1/8), (4/3) (2 + (2/eps) (ln(1/(2 delta)) + max(0, ln(1/b)))) },

    each rounded up. That is O((d / eps) ln(1/(b delta))) as the proof says; the theorem's statement, O(d ln(1/b) +
    (1/eps) ln(1/(b delta))), is not what this algorithm achieves: m s >= threshold * d. (A_dist on the examples
    themselves, which scores every vector by the number it labels right, would achieve it, in time 2^d.)

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> parity_learner_theorem(bits=256, epsilon=1.0, delta=1e-6, beta=0.1)
        13468
    """
    arguments.counts(bits=bits)
    arguments.fractions(beta=beta)
    divergence = 0.25 * math.log(2.0) + 0.75 * math.log(0.75 / 0.875)
    seen = math.log(2 / beta) / divergence
    gap = stability_gap(beta / 2, epsilon, delta)
    return (bits + 3) * math.ceil(max(seen, 4 / 3 * gap))


def elimination_parities(bits: int, beta: float) -> int:
    """The least n, without privacy, for which n uniform points span {0,1}^d except with probability beta: at most d + ceil(log2(1/beta)).

    Example:
        >>> elimination_parities(10, 1e-3)
        20
    """
    arguments.counts(bits=bits)
    arguments.fractions(beta=beta)
    return next(n for n in range(bits, bits + 1100) if rank_deficiency(n, bits) <= beta)


def rank_deficiency(rows: int, columns: int) -> float:
    """P[a uniform rows x columns matrix has rank below `columns`] = 1 - prod_i (1 - 2^-(rows - i)), i < columns.

    Column i+1 is outside the span of i independent ones with probability 1 - 2^(i - rows). At most 2^(columns - rows); computed
    without cancellation.

    Raises:
      TypeError, ValueError: rows < 0 or columns < 1, or not integers.

    >>> rank_deficiency(1, 1), rank_deficiency(2, 2), rank_deficiency(1, 2)
    (0.5, 0.625, 1.0)
    """
    arguments.integer("rows", rows, at_least=0)
    arguments.integer("columns", columns, at_least=1)
    if rows < columns:
        return 1.0
    nearest = range(rows - columns + 1, min(rows, rows - columns + 1100) + 1)  # beyond, 2^-e underflows
    return -math.expm1(math.fsum(math.log1p(-math.ldexp(1.0, -e)) for e in nearest))


def _failure(m: int, size: int, bits: int, scale: float, threshold: float) -> float:
    """P[the truth is not released] from m subsamples, to the last digit.

    The terms P[N] P[noise < threshold - N], N >= 1, are log-concave: from one N to the next, the logarithm of the ratio of adjacent terms
    falls by at least 1/(m - N + 1). So terms k places from the largest, at N*, are at most exp(-k (k - 1) / (2 (m - N* + 1 + k))) of it,
    which is less than exp(-50) for the k that is taken here. If there are more than 2^20 terms, they are as good as a smooth curve, and
    only every `step`-th is summed.
    """
    from scipy import stats  # slow to import

    lost = rank_deficiency(size, bits)

    def falls(votes: int) -> bool:
        ratio = math.exp(_log_cdf((threshold - votes - 1) / scale) - _log_cdf((threshold - votes) / scale))
        return (m - votes) * (1.0 - lost) * ratio < (votes + 1) * lost

    largest = bisection.least_int(falls, 1, max(m, 1))
    reach = 102 + 10 * math.isqrt(m - min(largest, m) + 1)
    step = 1 + (reach >> 19)
    votes = np.arange(max(1, largest - reach), min(m, largest + reach) + 1, step)
    weights = stats.binom.pmf(m - votes, m, lost)
    return min(1.0, lost**m + step * float(np.sum(weights * stats.laplace.cdf((threshold - votes) / scale))))


def _enough(m: int, beta: float, size: int, bits: int, scale: float, threshold: float) -> bool:
    """Whether `_failure` <= beta; checks first whether m votes, all subsamples being of full rank, would be too few."""
    hopeless = m < 1 or _log_cdf((threshold - m) / scale) > math.log(beta) + 1e-9
    return not hopeless and _failure(m, size, bits, scale, threshold) <= beta


def _log_cdf(x: float) -> float:
    """ln P[Lap(1) < x]."""
    return x - math.log(2.0) if x <= 0.0 else math.log1p(-math.exp(-x) / 2.0)


def _about_votes(beta: float, size: int, bits: int, scale: float, threshold: float) -> int:
    """About `_least_votes`: the m with E exp((threshold - N)/scale) / 2 = beta, as if P[noise < x] were exp(x/scale) / 2 for all x."""
    scale = max(scale, 0.25)  # for less noise the formula is far off, and a vote or two decide
    full = min(1.0 - rank_deficiency(size, bits), 1.0 - 2.0**-53)
    each = -math.log1p(full * math.expm1(-1.0 / scale))
    return max(1, math.ceil((threshold / scale - math.log(2.0 * beta)) / each))


def _least_votes(beta: float, size: int, bits: int, scale: float, threshold: float) -> int:
    """Least m with `_failure` <= beta; it falls in m, since the number of votes rises stochastically. The search begins near it."""

    def enough(m: int) -> bool:
        return _enough(m, beta, size, bits, scale, threshold)

    start = _about_votes(beta, size, bits, scale, threshold)
    if not enough(start):
        return start + bisection.least_int(lambda more: enough(start + more), 1)
    return start + 1 - bisection.least_int(lambda fewer: not enough(start - fewer), 1)
