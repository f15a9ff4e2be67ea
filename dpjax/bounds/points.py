"""Sample sizes for the point learner (BNS §3.1): numbers of examples, as floats."""

import math

from dpjax.bounds.mechanisms import stability_gap
from dpjax.core import arguments


def learn_points(
    bits: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    *,
    calibration: str = "proved",
    bottom: str = "random",
) -> float:
    """Examples for LearnPoints, which answers with a random point, or all-zero (BNS Remark 3.3), where A_dist keeps nothing.

    printed: max{ (8/(a eps)) ln(4/(b delta)), (8/a) ln(2/b) } (BNS, Lemma 3.2, explicit in its proof). A target of mass a
    or more occurs at least a m/2 times except with probability exp(-a m/8) <= b/2, and A_dist keeps it except with
    probability b/2.

    The proof of Lemma 3.2 says that after bottom a random c_i is bad only if D(i) > a. But error(c_i) = D(i) + D(target):
    with D(target) = a and the rest spread out, every other point is bad. Splitting at D(target) > a/2 repairs the proof: at
    most 2/a points have D(i) > a/2, so 2^d >= 2/(a b) is required. The printed m still suffices: of the a m/2 expected ones at
    least a m/8 are seen except with probability exp(-(9/32) a m/2) <= exp(-a m/8), and a m/8 >= (1/eps) ln(4/(b delta)).

    proved: with g the gap of `stability_gap(b/2)` for the proved A_dist, max{ (2/c) g, (8/c) ln(2/b) }, where c = a/2 for
    random points and c = a for all-zero, whose error is D(target) alone.

    Args:
        bits: d; points are 0, ..., 2^d - 1. For random points 2^d >= 2/(alpha beta) is required.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: privacy of A_dist, > 0 and in (0, 1).
        calibration: "printed" or "proved" constants of A_dist.
        bottom: "random" or "zero", the answer where A_dist keeps nothing.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range, or too few points.

    Example:
        >>> round(learn_points(64, 0.1, 0.1, 1.0, 1e-6)), round(learn_points(64, 0.1, 0.1, 1.0, 1e-6, bottom="zero"))
        (1314, 657)
        >>> round(learn_points(64, 0.1, 0.1, 1.0, 1e-6, calibration="printed"))
        1400
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    is_random = arguments.choice("bottom", bottom, ("random", "zero")) == "random"
    if is_random and bits < 1.0 - math.log2(alpha * beta):
        least = 1.0 - math.log2(alpha * beta)
        raise ValueError(f"bits must be >= log2(2/(alpha beta)) = {least:.4g} for random points, got {bits}")
    if calibration == "printed":
        found = 8.0 / (alpha * epsilon) * (math.log(4.0 / beta) - math.log(delta))
        return max(found, 8.0 / alpha * math.log(2.0 / beta))
    mass = alpha / 2.0 if is_random else alpha
    return max(2.0 / mass * stability_gap(beta / 2.0, epsilon, delta), 8.0 / mass * math.log(2.0 / beta))


def exponential_points(log_hypotheses: float, alpha: float, beta: float, epsilon: float, *, lost: float = 0.0) -> float:
    """Examples for the exponential mechanism where some hypothesis has error at most lost * alpha: (ln|H| + ln(1/b)) / (a r).

    Uniform convergence is not needed. Let h* be in the class with error at most g a on D (g = lost), and h have
    error > a. For any l <= eps/2,

        E[P[h]] <= E[exp(-l (q(h*) - q(h)))] <= exp(-n a r),  r = 1 - exp(-l) - g (exp(l) - 1),

    since one example adds 1 to q(h*) - q(h) with probability p, subtracts 1 with probability s, p - s > (1 - g) a,
    s <= g a, and the worst case is s = g a. The best l is min{eps/2, ln(1/g)/2}.

    Args:
        log_hypotheses: ln|H|, > 0.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: privacy, > 0.
        lost: g, in [0, 1); 0 if the target is in the class.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(exponential_points(24 * math.log(2), 0.1, 0.1, 1.0))
        481
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(log_hypotheses=log_hypotheses, epsilon=epsilon)
    lost = arguments.number("lost", lost, at_least=0.0, below=1.0)
    rate = epsilon / 2 if lost == 0.0 else min(epsilon / 2, -math.log(lost) / 2)
    gain = -math.expm1(-rate)  # r = (1 - exp(-l)) (1 - g exp(l))
    if lost > 0.0:
        gain *= -math.expm1(rate + math.log(lost))
    return (log_hypotheses - math.log(beta)) / (alpha * gain)
