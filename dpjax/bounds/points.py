"""Sample size of the point learner (BNS §3.1). Numbers of examples, as floats."""

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
    calibration: str = "printed",
    bottom: str = "random",
) -> float:
    """Examples for LearnPoints: max{ (8/(a eps)) ln(4/(b delta)), (8/a) ln(2/b) }.

    BNS, Lemma 3.2, explicit in its proof. proved: a target of mass above a' shows at least a' m / 2 times but for
    exp(-a' m / 8), and that count must reach the gap of `stability_gap(b/2)`: max{ (2/a') gap, (8/a') ln(2/b) }. If bottom
    becomes all-zero, a' = a. If it becomes a random point, c_i errs on D(i) and on D(target), which the printed proof
    overlooks: both must be below a' = a/2, and at most 2/a points are heavier, so 2^d >= 2/(a b) is required.

    Args:
        bits: d; points are 0, ..., 2^d - 1. For random points 2^d >= 1/(a b) is required as printed, 2/(a b) if proved.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: privacy of A_dist, > 0 and in (0, 1).
        calibration: "printed" or "proved" constants.
        bottom: what it becomes: a "random" point or "zero".

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range, or too few points.

    Example:
        >>> [round(learn_points(64, 0.1, 0.1, 1.0, 1e-6, calibration=name)) for name in ("printed", "proved")]
        [1400, 1314]
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    arguments.choice("bottom", bottom, ("random", "zero"))
    halves = 2 if calibration == "proved" and bottom == "random" else 1
    needed = math.log2(halves) - math.log2(alpha * beta)
    if bottom == "random" and bits < needed:
        raise ValueError(f"bits must be >= log2({halves}/(alpha beta)) = {needed:.4g}, got {bits}")
    part = alpha / halves
    seen = 8.0 / part * math.log(2.0 / beta)
    if calibration == "printed":
        return max(8.0 / (part * epsilon) * (math.log(4.0 / beta) - math.log(delta)), seen)
    return max(2.0 / part * stability_gap(beta / 2.0, epsilon, delta, calibration="proved"), seen)


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
