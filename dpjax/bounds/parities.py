"""Sample sizes of learners of parities from uniform points (MULTI §4.2.1): floats, or ints where they are exact."""

import functools
import math

import numpy as np

from dpjax.bounds.generic import finite_class
from dpjax.bounds.mechanisms import stability_gap, stability_noise
from dpjax.core import arguments, bisection

# How many rows beyond d a subsample may have: with 40 it has full rank but for 2^-40, and more never pays.
_SPARE_ROWS = 40


def exponential_parities(bits: int, beta: float, epsilon: float) -> float:
    """Examples for the exponential mechanism over all parities: ln((2^d - 1)/b) / ln(2 / (1 + exp(-eps/2))), labels those of a parity.

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
    rate = math.log(2.0) - math.log1p(math.exp(-epsilon / 2))
    return max(1.0, wrong / rate)


def agnostic_parities(bits: int, alpha: float, beta: float, epsilon: float) -> float:
    """Examples after which its error is at most the best + a with probability 1 - b, any labels, any points.

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
        n: examples, >= 1. size: s, examples a subsample. bits: d.
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
    """The least n from which on `parity_learner_failure` is at most beta: a multiple of s, the same for every k."""
    arguments.counts(size=size, bits=bits)
    arguments.fractions(beta=beta)
    return size * _least_votes(beta, size, bits, *stability_noise(epsilon, delta, calibration=calibration))


def parity_learner_size(*, bits: int, epsilon: float, delta: float, beta: float, calibration: str = "proved") -> int:
    """The s from d to d + 40 for which the fewest examples suffice: more rows a subsample, or more subsamples.

    Example:
        >>> parity_learner_size(bits=256, epsilon=1.0, delta=1e-6, beta=0.1)
        263
    """
    arguments.counts(bits=bits)
    arguments.fractions(beta=beta)
    noise = stability_noise(epsilon, delta, calibration=calibration)
    most = bits + _SPARE_ROWS
    fewest = _least_votes(beta, most, bits, *noise)  # larger subsamples need no more votes
    best = most * fewest, most
    for size in range(bits, most):
        if size * fewest > best[0]:
            break
        best = min(best, (size * _least_votes(beta, size, bits, *noise), size))
    return best[1]


def parity_learner_theorem(*, bits: int, epsilon: float, delta: float, beta: float) -> int:
    """Examples that suffice by Theorem 39's proof with its constants worked out, for s = bits + 3.

    Then p >= 7/8, as in the paper's proof; N >= 3m/4 but for b/2 if m >= ln(2/b) / KL(1/4 || 1/8) (Chernoff), and A_dist
    fails with probability at most b/2 if 3m/4 >= 2 + (2/eps) ln(1/(2 delta b)):

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
    """The least n whose uniform points span {0,1}^d but for beta: without privacy, at most d + ceil(log2(1/beta)).

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
      TypeError, ValueError: rows < 0 or columns < 1, or no integers.

    >>> rank_deficiency(1, 1), rank_deficiency(2, 2), rank_deficiency(1, 2)
    (0.5, 0.625, 1.0)
    """
    arguments.integer("rows", rows, at_least=0)
    arguments.integer("columns", columns, at_least=1)
    if rows < columns:
        return 1.0
    nearest = range(rows - columns + 1, min(rows, rows - columns + 1100) + 1)  # beyond, 2^-e is nothing
    return -math.expm1(math.fsum(math.log1p(-math.ldexp(1.0, -e)) for e in nearest))


def _failure(m: int, size: int, bits: int, scale: float, threshold: float) -> float:
    """P[the truth is not released] from m subsamples."""
    from scipy import stats  # slow to import

    votes = np.arange(m + 1)
    weights = stats.binom.pmf(votes, m, 1 - rank_deficiency(size, bits))
    kept_not = stats.laplace.cdf((threshold - votes) / scale)
    kept_not[0] = 1.0
    return min(1.0, math.fsum(weights * kept_not))


def _least_votes(beta: float, size: int, bits: int, scale: float, threshold: float) -> int:
    """Least m with `_failure` <= beta; it falls in m, since the number of votes rises stochastically."""
    failure = functools.partial(_failure, size=size, bits=bits, scale=scale, threshold=threshold)
    return bisection.least_int(lambda m: failure(m) <= beta, 1)
