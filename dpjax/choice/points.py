"""Learners of a point: population error at most alpha except with probability beta, whatever the distribution and the point.

The n of `exponential` and `hashed` is by `bounds.exponential_points`. That of `learn_points` (all-zero where A_dist keeps nothing) is by
its exact law: an all-zero answer errs on the target's mass p alone, and only a target that was seen is ever named. So it fails only if
p > alpha and A_dist dropped the target's count, Bin(n, p), which is less likely the larger the count is. On the worst distribution, as p
falls to alpha, the failure probability is

    P[Bin(n, alpha) = 0] + sum_{c > 0} P[Bin(n, alpha) = c] P[A_dist drops a lead of c].

With Laplace noise of scale b and the threshold t, a lead of c is dropped with probability 1 - e^(-(t - c)/b)/2 for c < t, and otherwise
e^(-(c - t)/b)/2. Binomial weights times e^(+-c/b) are those of another binomial law, so the sum is one of a few tails.

A lead below A_dist's threshold is kept by noise alone, so if beta is about 1/2 or more, a smaller epsilon may be better.
"""

import math
from typing import Any

from dpjax import bounds
from dpjax.choice.base import MOST_RECORDS, Candidate, Offer, Question, UnavailableError
from dpjax.core import bisection
from dpjax.learners import points as learners


def exponential(question: Question) -> Offer:
    """The proper pure learner."""
    question.public_size()
    log_points = question.bits * math.log(2.0)
    n = bounds.exponential_points(log_points, question.alpha, question.beta, question.epsilon)
    return Offer(
        math.ceil(n * (1 + 1e-12)),
        lambda n: learners.exponential(bits=question.bits, epsilon=question.epsilon),
        "exponential",
    )


def hashed(question: Question) -> Offer:
    """The improper pure learner, with as many buckets as alpha and beta require."""
    question.public_size()
    given: dict[str, Any] = {"alpha": question.alpha, "beta": question.beta}
    try:
        learner = learners.hashed(bits=question.bits, epsilon=question.epsilon, **given)
    except ValueError as reason:
        raise UnavailableError(str(reason)) from None
    return Offer(learner.sample_size(**given), lambda n: learner, "hashed")


def learn_points_failure(n: int, alpha: float, epsilon: float, delta: float) -> float:
    """The largest failure probability over all distributions and targets; see the module."""
    from scipy.stats import binom

    scale, threshold = bounds.stability_noise(epsilon, delta)
    rate, below = 1 / scale, math.ceil(threshold) - 1
    log_up, log_down = (math.log1p(alpha * math.expm1(sign * rate)) for sign in (1, -1))
    up, down = alpha * math.exp(rate - log_up), alpha * math.exp(-rate - log_down)
    kept = math.exp(n * log_up - threshold * rate + binom.logcdf(below, n, up))
    dropped = math.exp(n * log_down + threshold * rate + binom.logsf(below, n, down))
    none = float(binom.pmf(0, n, alpha)) * math.exp(-threshold * rate)
    return float(binom.cdf(below, n, alpha)) + (dropped + none - kept) / 2 + 1e-14  # above what rounding may lose


def learn_points(question: Question) -> Offer:
    """LearnPoints by its law on the worst distribution."""
    question.public_size()
    question.approximate()
    n, epsilon = MOST_RECORDS + 1, question.epsilon
    for each in question.epsilons():
        found = _least_n(question, each, n)
        if found < n:
            n, epsilon = found, each
    if n > MOST_RECORDS:
        raise UnavailableError(f"takes at most {MOST_RECORDS} rows, got more")
    given: dict[str, Any] = {"bits": question.bits, "epsilon": epsilon, "delta": question.delta, "bottom": "zero"}
    return Offer(n, lambda n: learners.learn_points(**given), "learn_points")


def _least_n(question: Question, epsilon: float, most: int) -> int:
    """The least n at this epsilon if it is below `most`, else `most`, which may not suffice. (One law decides, a bisection takes 30.)"""
    alpha, beta, delta = question.alpha, question.beta, question.delta

    def suffices(n: int) -> bool:
        return learn_points_failure(n, alpha, epsilon, delta) <= beta

    enough = math.ceil(bounds.learn_points(question.bits, alpha, beta, epsilon, delta, bottom="zero"))
    if enough >= most and (most == 1 or not suffices(most - 1)):
        return most
    return bisection.least_int(suffices, 1, min(enough, most - 1))


def learn_points_floor(question: Question) -> float:
    """The n at which the target's expected count is A_dist's threshold, minus 1: it is then dropped in at least a quarter of all runs."""
    question.approximate()
    if question.beta >= 0.25:
        return 0.0
    return bounds.stability_noise(question.epsilon, question.delta)[1] / question.alpha - 1


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("exponential", exponential, bounded=True),
    Candidate("learn_points", learn_points, learn_points_floor),
    Candidate("hashed", hashed, bounded=True),
)
