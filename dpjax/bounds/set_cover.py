"""Sample sizes of SetCoverLearner (GEO Claim 3.1, Theorem 3.6) with constants that are proved. Neighbours: one example more or less."""

import math

from dpjax.core import arguments


def set_cover_shift(rounds: int, beta: float, noise_epsilon: float) -> int:
    """s: none of R noises floor(Lap(R/e_w)) is above s or below -s - 1, but with probability beta.

    Example:
        >>> set_cover_shift(40, 0.1, 0.5)
        480
    """
    arguments.counts(rounds=rounds)
    arguments.fractions(beta=beta)
    arguments.positive(noise_epsilon=noise_epsilon)
    return math.ceil(rounds / noise_epsilon * math.log(rounds / beta))


def set_cover_errors(n: float, log_size: float, k: int, rounds: int, beta: float, rate: float, shift: int) -> float:
    """Errors on n examples of the class, but with probability beta, if no noise exceeds the shift s: n e^(-R/k) + 2s + 1 + (k + R) l.

    l = ln(|H| R/beta)/r: what the exponential mechanism loses in no round but with probability beta. See `dpjax.learners.set_cover`; a
    shift of 0 stands for rounds without noise.

    Args:
        n: examples.
        log_size: ln |H|; of a continuous H, ln(measure of all / least measure of hypotheses that agree on the domain).
        k: hypotheses of the target.
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
    lost = (log_size + math.log(rounds / beta)) / rate
    return n * math.exp(-rounds / k) + (2 * shift + 1 if shift else 0) + (k + rounds) * lost


def set_cover(log_size: float, k: int, rounds: int, alpha: float, beta: float, rate: float, shift: int) -> float:
    """Examples after which population error is at most alpha, but with probability beta; infinite where R rounds are too few.

    Half of alpha on the sample, but for beta/2 (`set_cover_errors`, beta/4 for the choices; the shift is for the other beta/4). One of
    |H|^R conjunctions with population error above alpha has half of that on the sample with probability exp(-n alpha/8) at most.

    Args:
        log_size: ln |H|; of a continuous H, ln(measure of all / least measure of hypotheses that agree on the domain).
        k, rounds: of the target, and of the learner.
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
