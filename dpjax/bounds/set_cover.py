"""Sample sizes for SetCoverLearner (GEO Claim 3.1, Theorem 3.6) with proved constants; neighbours have one example more or fewer."""

import math

from dpjax.core import arguments


def set_cover_shift(rounds: int, beta: float, noise_epsilon: float) -> int:
    """s such that, except with probability beta, none of R noises floor(Lap(R/e_w)) is above s or below -s - 1.

    Example:
        >>> set_cover_shift(40, 0.1, 0.5)
        480
    """
    arguments.counts(rounds=rounds)
    arguments.fractions(beta=beta)
    arguments.positive(noise_epsilon=noise_epsilon)
    return math.ceil(rounds / noise_epsilon * math.log(rounds / beta))


def set_cover_errors(n: float, log_size: float, k: int, rounds: int, beta: float, rate: float, shift: int) -> float:
    """The most errors on n examples of the class with probability 1 - beta if no noise exceeds the shift: n e^(-R/k) + 2s + 1 + (k + R) l.

    l = ln(|H| R/beta)/r: except with probability beta, the exponential mechanism loses no more than that in any round. See
    `dpjax.learners.set_cover`; a shift of 0 stands for rounds without noise.

    Args:
        n: number of examples.
        log_size: ln |H|; for a continuous H, ln(measure of all / least measure of hypotheses that agree on the domain).
        k: number of hypotheses in the target.
        rounds: R.
        beta: failure probability.
        rate: r; infinite for a learner that always takes the best hypothesis.
        shift: s.

    Example:
        >>> round(set_cover_errors(1e6, math.log(2000), 5, 20, 0.1, 0.05, 480))
        25726
    """
    arguments.counts(k=k, rounds=rounds)
    arguments.fractions(beta=beta)
    arguments.positive(n=n, log_size=log_size)
    arguments.number("rate", rate, above=0.0)
    arguments.integer("shift", shift, at_least=0)
    lost = (log_size + math.log(rounds / beta)) / rate
    return n * math.exp(-rounds / k) + (2 * shift + 1 if shift else 0) + (k + rounds) * lost


def set_cover(log_size: float, k: int, rounds: int, alpha: float, beta: float, rate: float, shift: int) -> float:
    """Examples after which the population error is at most alpha except with probability beta; infinite where R rounds are too few.

    The error on the sample is at most alpha/2 except with probability beta/2 (`set_cover_errors`, with beta/4 for the choices; the shift is
    for the other beta/4). Each of |H|^R conjunctions with population error above alpha has at most half of that on the sample with
    probability exp(-n alpha/8) at most.

    Args:
        log_size: ln |H|; for a continuous H, ln(measure of all / least measure of hypotheses that agree on the domain).
        k, rounds: the target's number of hypotheses, and the learner's number of rounds.
        alpha, beta: error and failure probability, in (0, 1).
        rate, shift: r and s.

    Example:
        >>> round(set_cover(math.log(2000), 5, 20, 0.1, 0.1, 0.05, 480))
        255765
    """
    arguments.fractions(alpha=alpha, beta=beta)
    constant = set_cover_errors(1.0, log_size, k, rounds, beta / 4, rate, shift) - math.exp(-rounds / k)
    left = alpha / 2 - math.exp(-rounds / k)
    general = 8.0 / alpha * (rounds * log_size + math.log(2.0 / beta))
    return max(constant / left, general) if left > 0 else math.inf


def convex_polygons(side: int, k: int, alpha: float, beta: float, epsilon: float, delta: float) -> float:
    """Examples for convex k-gons over {0, ..., d}^2 with GEO's own constants (Theorem 4.8 states none; these are those of its parts).

    Claim 3.1 at alpha/2 leaves max{alpha n/4, 4 Delta} + 4 k l ln(4/alpha) errors, which Theorem 2.5 requires to be alpha n/2 at most.
    Delta = (2k/epsilon) ln(4/alpha) ln((4k/beta) ln(4/alpha)), at beta/2; l = (8/e) ln(2d/b) by Lemma 4.7, with e = epsilon/(2 ln(e/delta))
    (Claim 3.4) and b = beta/(8 k ln(4/alpha)) (Theorem 3.2 at alpha/2 and beta/2 requires no less). Theorem 2.5 itself, with the VC
    dimension of an intersection of R halfplanes, requires less than that.

    Args:
        side: d.
        k: sides of the polygon.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon, delta: privacy as printed; at most 1 and below 1/e, as in Claim 3.4.

    Example:
        >>> f"{convex_polygons(2**10, 3, 0.1, 0.1, 1.0, 1e-6):.3g}"
        '6.05e+06'
    """
    arguments.counts(side=side, k=k)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.number("epsilon", epsilon, above=0.0, at_most=1.0)
    arguments.number("delta", delta, above=0.0, below=1 / math.e)
    logs = math.log(4 / alpha)
    noise = 2 * k / epsilon * logs * math.log(4 * k / beta * logs)
    lost = 8 / (epsilon / (2 * math.log(math.e / delta))) * math.log(2 * side * 8 * k * logs / beta)
    each = 4 * k * lost * logs
    return max(4 / alpha * each, 2 / alpha * (4 * noise + each))
