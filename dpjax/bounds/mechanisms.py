"""With how many examples the basic mechanisms are accurate, and with how many private (BNS §2.5, §4.1); as floats."""

import math
from typing import Any

import numpy as np

from dpjax.core import arguments

# By how much the gap between the two best scores can change between neighbours; the printed calibration does not say.
_GAP_SENSITIVITY = {"printed": None, "proved": 2.0, "proved_counts": 1.0}


def exponential_mechanism(log_solutions: float, error: float, beta: float, epsilon: float) -> float:
    """Examples after which the exponential mechanism is near the best: (2/(eps D)) (ln|H| + ln(1/beta)).

    For a score of sensitivity 1 it picks a solution of score below max - D m with probability at most
    |H| exp(-eps D m / 2) (BNS, Proposition 2.26 (ii)); that is beta at this m.

    Args:
        log_solutions: ln|H|, >= 0 (a logarithm, so that 2^4096 solutions are no problem).
        error: D, the allowed loss of score as a fraction of the m examples, > 0.
        beta: failure probability, in (0, 1).
        epsilon: privacy parameter of the mechanism, > 0.

    Returns:
        Number m of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(exponential_mechanism(1024 * math.log(2), 0.1, 0.1, 1.0))
        14242
    """
    arguments.number("log_solutions", log_solutions, at_least=0.0, below=math.inf)
    arguments.fractions(beta=beta)
    arguments.positive(error=error, epsilon=epsilon)
    return 2.0 / (epsilon * error) * (log_solutions - math.log(beta))


def stability_noise(epsilon: Any, delta: Any, *, calibration: str = "proved", xp: Any = math) -> tuple[Any, Any]:
    """(scale, threshold) of A_dist, which keeps the best candidate iff gap + Lap(scale) >= threshold (BNS §2.5.3).

    | calibration | scale | threshold | private |
    |---|---|---|---|
    | printed | 1/eps | (1/eps) ln(1/delta) | (2 eps, exp(2 eps) delta / 2), replace-one; the paper claims (eps, delta) |
    | proved | 2/eps | 2 + (2/eps) ln(1/(2 delta)) | (eps, delta) for any score of sensitivity 1, delta <= 1/2 |
    | proved_counts | 1/eps | 1 + (1/eps) ln(1/(2 delta)) | (eps, delta) for counts under add/remove, delta <= 1/2 |

    For the reasons see `dpjax.mechanisms.stability`. The constants are defined only here.

    Args:
        epsilon, delta: privacy parameters, > 0 and in (0, 1); delta at most 1/2 for the proved calibrations.
        calibration: which constants to use.
        xp: `math`, or `jax.numpy` for arrays and traced numbers, which pass unchecked.

    Raises:
        TypeError, ValueError: a number out of range.

    Example:
        >>> stability_noise(1.0, 0.5)
        (2.0, 2.0)
    """
    arguments.choice("calibration", calibration, tuple(_GAP_SENSITIVITY))
    if xp is math:
        arguments.positive(epsilon=epsilon)
        arguments.fractions(delta=delta)
        if calibration != "printed" and delta > 0.5:
            raise ValueError(f"delta must be <= 1/2 for the calibration {calibration!r}, got {delta}")
    shift, log_delta, per_unit = _GAP_SENSITIVITY[calibration], xp.log(delta), 1.0 / epsilon
    if shift is None:
        return per_unit, -log_delta * per_unit
    scale = shift * per_unit
    return scale, shift - scale * (log_delta + math.log(2.0))


def stability_gap(beta: Any, epsilon: Any, delta: Any, *, calibration: str = "proved", xp: Any = math) -> Any:
    """The gap between the two best scores at which A_dist keeps the best one with probability 1 - beta.

    printed: (1/eps) ln(1/(beta delta)) (BNS, Proposition 2.27 (ii)). proved: the same argument for the threshold t and
    scale b of `stability_noise`, Pr[Lap(b) < -x] = exp(-x/b)/2 <= beta, gives t + b max(0, ln(1/(2 beta))).

    Args:
        beta: failure probability, in (0, 1).
        epsilon, delta, calibration, xp: as for `stability_noise`.

    Returns:
        The gap, in units of the score (examples, for a score of sensitivity 1).

    Raises:
        TypeError, ValueError: a number out of range.

    Example:
        >>> round(stability_gap(0.1, 1.0, 1e-6), 2), round(stability_gap(0.1, 1.0, 1e-6, calibration="printed"), 2)
        (31.46, 16.12)
    """
    scale, threshold = stability_noise(epsilon, delta, calibration=calibration, xp=xp)
    if xp is math:
        arguments.fractions(beta=beta)
    if calibration == "printed":
        return threshold - scale * xp.log(beta)
    if xp is math and beta >= 0.5:
        return threshold  # a noise of scale infinity times 0 would be NaN
    larger = max if xp is math else xp.maximum
    return threshold + scale * larger(0.0, -xp.log(2.0 * beta))


def printed_equivalent(epsilon: float, delta: float) -> float:
    """An epsilon'' at which Proposition 2.27 (ii) of BNS holds for the proved A_dist run at (epsilon, delta).

    So every utility theorem that rests on it holds for the proved A_dist with epsilon'' in its
    place. Take epsilon'' = min{epsilon/2, ln(1/delta) / t}, t the proved threshold 2 + (2/epsilon)
    ln(1/(2 delta)): at a gap of (1/epsilon'') (ln(1/delta) + ln(1/beta)) the noise must fall
    under -(1/epsilon'') ln(1/beta), and it does so with probability beta/2 at most since its scale
    2/epsilon is at most 1/epsilon''. This is epsilon/2 when epsilon <= ln 2.

    Args:
        epsilon: privacy parameter of the proved A_dist, > 0.
        delta: in (0, 1/2].

    Returns:
        epsilon''.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> printed_equivalent(0.5, 1e-6)
        0.25
    """
    _, threshold = stability_noise(epsilon, delta)
    return min(epsilon / 2.0, -math.log(delta) / threshold)


def choosing_mechanism(growth: int, alpha: float, beta: float, epsilon: float, delta: float) -> float:
    """Examples for the Choosing Mechanism: (16/(a eps)) ln(16 k / (a b eps delta)), or what privacy needs where that is more.

    At that size it is (eps, delta)-private under replace-one, the size being public (BNS, Lemma 4.4), and
    picks a solution within alpha m of the best with probability 1 - beta if the best has a score of alpha m or more (Lemma 4.5, same
    formula; where no score is that large every solution is within alpha m of the best, and the mechanism may give ⊥).

    Privacy by `choosing_mechanism_privacy` needs more than the formula if 1 + exp(eps/4) > 256 k/(a^2 b^2 eps^2 delta),
    hence only if eps > 6.4. There the printed lemma may be false, and at eps = 16, delta = 0.1, a = b = 0.9, k = 1 it
    is: on three rows a solution of score 1 is picked with probability 0.123, one of score 0 never.

    Args:
        growth: k, how many scores one more record can raise, >= 1.
        alpha: allowed loss as a fraction of the examples, in (0, 1).
        beta: failure probability, in (0, 1).
        epsilon: privacy parameter, > 0.
        delta: privacy parameter, in (0, 1).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range; epsilon beyond 16 k / (a b delta), where the formula
            is no longer positive.

    Example:
        >>> round(choosing_mechanism(1, 0.1, 0.1, 1.0, 1e-6))
        3391
    """
    arguments.counts(growth=growth)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    logarithm = math.log(16.0 * growth) - math.log(alpha * beta * epsilon) - math.log(delta)
    if logarithm <= 0.0:
        raise ValueError(
            f"epsilon must be < 16 growth / (alpha beta delta) for Lemma 4.4 to say anything, got {epsilon}"
        )
    return max(16.0 / (alpha * epsilon) * logarithm, choosing_mechanism_privacy(growth, alpha, epsilon, delta))


def choosing_mechanism_privacy(growth: int, alpha: float, epsilon: float, delta: float) -> float:
    """Examples that already make the Choosing Mechanism private, useful or not: beta plays no part in it.

    (8/(a eps)) ln(k (1 + exp(eps/4))/delta), for every eps: half of what the proof of BNS, Lemma 4.4 uses, which counts
    solutions only where a score of a n/4 makes step 1 likely. Privacy is under replace-one, the size being public; and
    under add/remove for this parameter n, whatever the number of records.

    Proof. Let p be the probability that step 1 passes, w(f) = exp(eps q(f)/4), Z the sum of w over the solutions of
    score >= 1, m the largest score; primes mark the neighbour, where at most k scores are higher by 1 and at most k
    lower. Then p <= exp(eps/4) p', w <= exp(eps/4) w' and Z' <= exp(eps/4) (Z + k).

    - A solution that both support: P(f)/P'(f) = (p/p') (w/w') (Z'/Z) <= exp(3 eps/4) (1 + k/Z). What is above exp(eps)
      is at most the share 1 - 1/(1 + k/Z) < k/Z of P(f), and p k/Z of all of them.
    - The at most k solutions that the neighbour does not support have score 1, together p k exp(eps/4)/Z.
    - p <= exp(-(eps/4) (a n/2 - m)), p <= 1 and Z >= exp(eps m/4), so p/Z <= exp(-eps a n/8) whatever m is.
    - Bottom: the ratio is at most exp(eps/4); where no solution is supported, step 1 passes with probability
      exp(-eps a n/8)/2 at most, and exp(eps/4) times that with a score of 1.

    So delta = k (1 + exp(eps/4)) exp(-eps a n/8) is enough. Some pair of datasets needs 90 % of the size at small
    delta (`tests/test_bounds.py`).

    Args:
        growth: k, how many scores one more record can raise, >= 1.
        alpha: the mechanism's approximation parameter, in (0, 1).
        epsilon: privacy parameter, > 0.
        delta: privacy parameter, in (0, 1).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(choosing_mechanism_privacy(1, 0.1, 1.0, 1e-6))
        1171
    """
    arguments.counts(growth=growth)
    arguments.fractions(alpha=alpha, delta=delta)
    arguments.positive(epsilon=epsilon)
    grown = epsilon / 4.0 + math.log1p(math.exp(-epsilon / 4.0))  # ln(1 + exp(eps/4)), whatever eps is
    return 8.0 / (alpha * epsilon) * (math.log(growth) + grown - math.log(delta))


def supported_test(growth: int, epsilon: float, delta: float, *, monotone: bool = True) -> tuple[float, float]:
    """(rho, ln edge) of the exponential mechanism over what the data support; see `dpjax.mechanisms.supported`.

    Args:
        growth: how many scores one record more can raise from 0; or, if not monotone, how many come into view or leave it.
        epsilon, delta: privacy parameters, > 0 and in (0, 1).
        monotone: whether neighbours' scores differ by 0 or 1 all in one direction; else by 1 at most, each in its own.

    Raises:
        TypeError, ValueError: a number out of range.

    Example:
        >>> [round(x, 3) for x in supported_test(1, 1.0, 1e-6)]
        [1.0, 14.122]
    """
    arguments.counts(growth=growth)
    arguments.positive(epsilon=epsilon)
    arguments.fractions(delta=delta)
    rho, unit, log_rest = supported_parts(float(growth), epsilon, delta, monotone, np)
    return float(rho), float(log_rest + unit)


def supported_parts(growth: Any, epsilon: Any, delta: Any, monotone: bool, xp: Any) -> tuple[Any, Any, Any]:
    """(rho, what a score of 1 adds to ln of a weight, ln edge without that), unchecked: beside a large epsilon no digits would be left."""
    unit = epsilon if monotone else epsilon / 2
    used = xp.minimum(xp.minimum(delta, 0.125), unit / 4)
    rho = epsilon / (unit + 4 * used)
    return rho, unit, xp.log(rho / (1 + rho)) + xp.log(growth) - xp.log(used)


def supported_weight(growth: int, beta: float, epsilon: float, delta: float, *, monotone: bool = True) -> float:
    """The least ln Z with which the exponential mechanism over what the data support releases a candidate with probability 1 - beta.

    Args:
        growth, epsilon, delta, monotone: as for `supported_test`.
        beta: failure probability, in (0, 1).

    Raises:
        TypeError, ValueError: a number out of range.

    Example:
        >>> round(supported_weight(1, 0.1, 1.0, 1e-6), 2)  # 1 + ln(1/(4 beta delta))
        15.73
    """
    arguments.fractions(beta=beta)
    rho, log_edge = supported_test(growth, epsilon, delta, monotone=monotone)
    share = 1 / (1 + rho)  # of bottom at the edge
    if beta > share:
        return log_edge + math.log((1 - beta) / (1 - share))
    return log_edge + math.log(share / beta) / rho
