"""How many examples pure learners need, by packing: BNS Lemma 5.7, MULTI Remark 53, and what follows in the same way; exact ints.

All the bounds use one argument, given here with its constants. Let there be P targets with disjoint sets of good answers, and one
experiment w (the same coins for every target) that makes a database S(c, w) for each target c, such that S(c, w) and S(c', w) differ in at
most N(w) entries. Write p_c(w) = Pr[A(S(c, w)) is good for c]. For fixed w, privacy says Pr[A(S(c, w)) is good for c'] >=
exp(-eps N) p_c'(w), and good sets are disjoint, so that 1 >= p_c + exp(-eps N) sum_(c' != c) p_c'. The mean over all c of this is

    mean_c p_c(w) <= 1 / (1 + (P - 1) exp(-eps N(w))),

and the mean over w of the left side is at least 1 - beta for a learner that fails with probability at most beta. So

    1 - beta <= E[ 1 / (1 + (P - 1) exp(-eps N)) ].

Where N ~ Bin(n, p), the right side rises with n: the least n that satisfies this is what every learner needs. The papers bound N by a
constant (8 alpha m, by Chernoff) instead of taking this mean, and beta is 1/2 there; here it is arbitrary. Neighbours: one example is
replaced. The bounds are for PAC learners; an empirical learner is a PAC learner of the uniform distribution on its rows only, and is not
bounded by them.
"""

import math

import numpy as np

from dpjax.core import arguments, bisection

# Sums of logarithms as large as 10^7 are correct to 10^-6: this share, which is more, is taken off what would otherwise be rounded up.
_SLACK = 1e-12
LARGEST_SET = 2**24  # points in a set, for sums over all that two sets may share


def pure_interior_point(domain: int, beta: float, epsilon: float, relation: str = "REPLACE_ONE") -> int:
    """Points every epsilon-private solver of the interior point problem needs: (ln(|X| - 1) + ln((1 - b)/b)) / eps, rounded up.

    On n copies of x only x is an interior point; there are |X| targets, and N = n.

    Under add/remove, if the solver is private on data of any size, the number is ln((1 - b) |X|) / eps: some x has probability at most
    1/|X| on no points at all, and at most exp(eps n) times that on n copies of x.

    Args:
        domain: |X| >= 2.
        beta: failure probability, in (0, 1).
        epsilon: > 0.
        relation: "REPLACE_ONE" or "ADD_OR_REMOVE_ONE".

    Returns:
        Number of points, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pure_interior_point(2**64, 0.1, 1.0), pure_interior_point(2**64, 0.1, 1.0, "ADD_OR_REMOVE_ONE")
        (47, 45)
    """
    arguments.counts(at_least=2, domain=domain, unbounded=True)
    if arguments.choice("relation", relation, ("REPLACE_ONE", "ADD_OR_REMOVE_ONE")) == "ADD_OR_REMOVE_ONE":
        arguments.fractions(beta=beta)
        arguments.positive(epsilon=epsilon)
        return max(math.ceil((math.log1p(-beta) + math.log(domain)) / epsilon * (1.0 - _SLACK)), 0)
    return _needed(math.log(domain - 1), beta, epsilon)


def pure_proper_thresholds(bits: int, alpha: float, beta: float, epsilon: float) -> int:
    """Examples every epsilon-private PROPER PAC learner of thresholds needs, about d ln 2 / (2 alpha eps).

    BNS §3.2 quotes Omega(d) for improper ones too (`pure_lower_bound`, constant unknown). For proper ones, take the target c_j with mass
    p > alpha at each of the points j - 1 and j, and the rest at 0. A threshold with error at most alpha is right at both, so it is c_j; the
    P targets are j = 2, ..., 2^d - 1, and N ~ Bin(n, 2p). As p falls to alpha the mean is continuous. Since
    2p <= 1, alpha must be below 1/2.

    Args:
        bits: d >= 2.
        alpha: error, in (0, 1/2).
        beta: failure probability, in (0, 1).
        epsilon: > 0, under replace-one.

    Returns:
        Number of examples, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pure_proper_thresholds(64, 0.1, 0.1, 1.0)
        265
    """
    arguments.domain_bits(bits, at_least=2)
    arguments.number("alpha", alpha, above=0.0, below=0.5)
    others = 2**bits - 3
    return _needed(math.log(others), beta, epsilon, mass=2.0 * alpha, alpha=alpha)


def pure_points(
    bits: int, concepts: int, alpha: float, beta: float, epsilon: float, *, calibration: str = "proved"
) -> int:
    """Examples every epsilon-private PROPER PAC learner of k-POINT_d needs, of order k d / (alpha eps) (BNS Lemma 5.7, (5.1)).

    The concepts are the sets of exactly k points. Proper is needed: POINT_d has improper pure learners with O(1) examples.

    proved: the target is a set A without the point 0, with mass p/k at each of its points and the rest at 0. A set I of k points is good if
    at most r points of A are missing from it, once (r + 1) p/k > alpha: take p down to k alpha/(r + 1). Two targets with at most
    t = k - 2r - 1 points in common have no good set in common. A greedy choice finds C(2^d - 1, k) / V such targets, where V is the number
    of sets that share more than t points with a given one. Couple the samples of all targets by numbering the points of A: N ~ Bin(m, p).
    Any r < k/2 gives a bound, and the best is near k/4: about k d ln 2 / (8 alpha eps), for k = 1 (d ln 2)/(alpha eps). k may be odd.
    Learning complements of sets is the same problem with flipped labels, so a bound for 2^d - k is one for k (the better one near 2^d).

    printed: N <= 8 alpha m, r = k/5, t = k/2 and V <= C(k, k/2) C(2^d - 1, k/2), for even k:

        m >= ln(((M/(4 e^2 k))^(k/2) - 1)/3) / (8 alpha eps),  M = 2^d - 1,  beta = 1/2,

    where that is more than 5 ln(4)/(3 alpha), and nothing (0) where it is not: the proof's "without loss of generality m >= 5 ln(4)/(3
    alpha)" lets L ignore examples, and so only excludes a larger m. (Its greedy step removes the sets with |A and I| >= k/2; "<=" is a
    misprint.)

    Args:
        bits: d.
        concepts: k < 2^d, 2^24 at most; for the printed one even, with 2^d >= k^1.1.
        alpha: error, in (0, 1); for the printed one below 1/5.
        beta: failure probability, in (0, 1); for the printed one 1/2 at most, and it plays no part.
        epsilon: > 0, under replace-one.
        calibration: "proved" or "printed".

    Returns:
        Number of examples, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pure_points(64, 1, 0.1, 0.1, 1.0), pure_points(64, 8, 0.1, 0.5, 1.0), pure_points(64, 8, 0.1, 0.5, 1.0, calibration="printed")
        (535, 633, 194)
    """
    arguments.domain_bits(bits)
    most = LARGEST_SET if arguments.calibration(calibration) == "proved" else 2**1000
    arguments.integer("concepts", concepts, at_least=1, at_most=min(2**bits - 1, most))
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    if calibration == "printed":
        return _lemma_5_7(bits, concepts, alpha, beta, epsilon)
    alike = {concepts, 2**bits - concepts} if 2**bits - concepts <= LARGEST_SET else {concepts}
    return max(_spread(bits, each, alpha, beta, epsilon) for each in alike)


def _spread(bits: int, concepts: int, alpha: float, beta: float, epsilon: float) -> int:
    """The proved bound of `pure_points`, by sets of `concepts` points."""
    masses = concepts * alpha / np.arange(1, (concepts + 1) // 2 + 1)
    logs = log_spread_sets(2**bits - 1, concepts)[::-2]
    possible = np.flatnonzero(masses < 1.0)
    if not len(possible):
        return 0
    best = possible[np.argmax(logs[possible] / masses[possible])]
    return _needed(_less_one(float(logs[best])), beta, epsilon, mass=float(masses[best]), alpha=alpha)


def pure_packing_padded(concepts: int, alpha: float, beta: float, epsilon: float) -> int:
    """Examples every epsilon-private PAC k-learner needs, of order k / (alpha eps) (MULTI Remark 53).

    It holds for any class with two concepts that differ at a point x and agree at a point y, for proper and improper, agnostic and other
    learners. Put mass p > alpha at x and the rest at y: a hypothesis with error at most alpha is right at x, so the 2^k choices of targets
    have disjoint good answers. Labels at y are equal, so N ~ Bin(n, p), with p down to alpha. At alpha = 1 and beta = 1/2 this would be
    Theorem 52 (`pure_packing`).

    Args:
        concepts: k.
        alpha: error, in (0, 1).
        beta: failure probability, in (0, 1).
        epsilon: > 0, under replace-one.

    Returns:
        Number of examples, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pure_packing_padded(100, 0.1, 0.5, 1.0), pure_packing_padded(100, 0.1, 0.1, 1.0)
        (695, 804)
    """
    arguments.counts(concepts=concepts)
    arguments.fractions(alpha=alpha)
    return _needed(_less_one(concepts * math.log(2.0)), beta, epsilon, mass=alpha, alpha=alpha)


def log_spread_sets(points: int, size: int) -> np.ndarray:
    """For t = 0, ..., size - 1, ln of a number of `size`-subsets of `points` points, any two of which share at most t (rounded down).

    Gilbert and Varshamov's greedy choice: ln C(M, q) - ln sum_(j > t) C(q, j) C(M - q, q - j).

    Raises:
        TypeError, ValueError: size < 1, more than there are points, or more than 2^24.

    Example:
        >>> [round(float(value), 3) for value in log_spread_sets(7, 3)]  # 35 sets of 3; the greedy choice is sure of 2 disjoint ones
        [0.121, 0.99, 3.555]
    """
    arguments.integer("size", size, at_least=1, at_most=LARGEST_SET)
    arguments.integer("points", points, at_least=size)
    shares = _log_binomials(size, size)
    others = _log_binomials(points - size, size)
    near = np.logaddexp.accumulate((shares + others[::-1])[::-1])[::-1]  # sets that share at least j points
    total = _log_binomials(points, size)[size]
    return np.maximum(0.0, total - near[1:] - _SLACK * (1.0 + total))


def _log_binomials(points: int, most: int) -> np.ndarray:
    """ln C(points, j) for j = 0, ..., most; -inf where j > points. `points` may have thousands of bits."""
    j = np.arange(min(points, most))
    factors = math.log(max(points, 1)) + np.log1p(-j / float(min(points, 2**1000))) - np.log1p(j)
    return np.concatenate([[0.0], np.cumsum(factors), np.full(most - len(j), -np.inf)])


def _lemma_5_7(bits: int, concepts: int, alpha: float, beta: float, epsilon: float) -> int:
    """The printed bound of `pure_points`."""
    if concepts % 2:
        raise ValueError(f"concepts must be even for the printed Lemma 5.7, got {concepts}")
    if bits < 1.1 * math.log2(concepts):
        raise ValueError(f"concepts must be at most 2^(bits/1.1) for Lemma 5.7, got {concepts} with {bits} bits")
    arguments.number("alpha", alpha, above=0.0, below=0.2)
    arguments.number("beta", beta, above=0.0, at_most=0.5)
    log_targets = concepts / 2.0 * (math.log(2**bits - 1) - math.log(4.0 * math.e**2 * concepts))
    needed = (_less_one(log_targets) - math.log(3.0)) / (8.0 * alpha * epsilon)
    return math.ceil(needed) if needed > 5.0 * math.log(4.0) / (3.0 * alpha) else 0


def _less_one(log_number: float) -> float:
    """ln(exp(x) - 1); -inf for x <= 0."""
    return log_number + math.log(-math.expm1(-log_number)) if log_number > 0.0 else -math.inf


def _needed(log_others: float, beta: float, epsilon: float, *, mass: float = 1.0, alpha: float = 1.0) -> int:
    """The least n with 1 - beta <= E[1 / (1 + exp(log_others - eps N))], N ~ Bin(n, mass)."""
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    odds = log_others + math.log1p(-beta) - math.log(beta)
    if odds <= 0.0:
        return 0
    if mass == 1.0:
        return math.ceil(odds / epsilon * (1.0 - _SLACK))

    def allowed(n: int) -> bool:
        return _succeeds(n, log_others, mass, epsilon) >= 1.0 - beta

    return bisection.least_rows(allowed, 1, alpha=alpha, epsilon=epsilon)


def _succeeds(n: int, log_others: float, mass: float, epsilon: float) -> float:
    """E[1 / (1 + exp(log_others - eps N))], N ~ Bin(n, mass), rounded up: N is raised to the next of some hundred numbers."""
    from scipy import special, stats  # slow to import

    mean, reach = n * mass, 12.0 * math.sqrt(n * mass * (1.0 - mass)) + 60.0  # beyond, less than 1e-30
    low, high = max(0, math.floor(mean - reach)), min(n, math.ceil(mean + reach))
    if mean > 1e9:  # N is hardly random any more
        return float(special.expit(epsilon * high - log_others)) + 1e-9
    changed = np.unique(np.linspace(low, high, min(801, high - low + 1)).astype(np.int64))
    weights = np.diff(stats.binom.cdf(changed, float(n), mass), prepend=0.0)
    return float((weights * special.expit(epsilon * changed - log_others)).sum()) + 1e-9
