"""Sample size of the point learner (BNS §3.1). Numbers of examples, as floats."""

import math

from dpjax.bounds.mechanisms import stability_gap
from dpjax.core import arguments


def learn_points(
    bits: int, alpha: float, beta: float, epsilon: float, delta: float, *, calibration: str = "printed"
) -> float:
    """Examples for LearnPoints: max{ (8/(a eps)) ln(4/(b delta)), (8/a) ln(2/b) }.

    BNS, Lemma 3.2, explicit in its proof. proved: a target of mass above alpha shows at least alpha m / 2
    times but for exp(-alpha m / 8), and that count must reach the gap of `stability_gap(beta/2)`:
    max{ (2/a) gap, (8/a) ln(2/b) }.

    Args:
        bits: d; points are 0, ..., 2^d - 1, and 2^d >= 1/(alpha beta) is asked for (a random point must be
            harmless).
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: privacy of A_dist, > 0 and in (0, 1).
        calibration: "printed" or "proved" constants of A_dist.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range, or too few points.

    Example:
        >>> round(learn_points(64, 0.1, 0.1, 1.0, 1e-6))
        1400
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    if bits < -math.log2(alpha * beta):
        raise ValueError(f"bits must be >= log2(1/(alpha beta)) = {-math.log2(alpha * beta):.4g}, got {bits}")
    seen = 8.0 / alpha * math.log(2.0 / beta)
    if calibration == "printed":
        return max(8.0 / (alpha * epsilon) * (math.log(4.0 / beta) - math.log(delta)), seen)
    return max(2.0 / alpha * stability_gap(beta / 2.0, epsilon, delta, calibration="proved"), seen)


def exponential_points(log_hypotheses: float, alpha: float, beta: float, epsilon: float, *, lost: float = 0.0) -> float:
    """Examples for the exponential mechanism where a hypothesis is right but for lost * alpha: (ln|H| + ln(1/b)) / (a r).

    There is no need of uniform convergence. Let h* be in the class with error at most g a on D (g = lost), and h
    have error > a. For any l <= eps/2,

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
    rate = epsilon / 2 if lost == 0.0 else min(epsilon / 2, -math.log(lost) / 2)
    gain = -math.expm1(-rate) - lost * math.expm1(rate)
    return (log_hypotheses - math.log(beta)) / (alpha * gain)
