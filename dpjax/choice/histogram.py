"""Histograms: how often every point occurs within alpha n, but with probability beta, whatever the n records; n is public.

By their theorems: MULTI Algorithm 2 as printed (`release`) and with the best thresholds (`histogram`), SanPoints.
"""

import math
from typing import Any

from dpjax import bounds
from dpjax.choice.base import Candidate, Offer, Question, UnavailableError
from dpjax.sanitizers import points


def histogram(question: Question) -> Offer:
    """The stability histogram."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}
    high = bounds.histogram_margin(question.epsilon, question.delta)
    n = bounds.point_histogram(question.epsilon, high, question.alpha, question.beta)
    return Offer(n, lambda n: points.histogram(**given, n=n), "histogram")


def release(question: Question) -> Offer:
    """MULTI Algorithm 2 as printed."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta, "alpha": question.alpha}
    n = bounds.point_release(**given, beta=question.beta)
    return Offer(n, lambda n: points.release(bits=question.bits, n=n, **given), "release")


def san_points(question: Question) -> Offer:
    """BNS Figure 9."""
    question.public_size()
    question.approximate()
    most = 2 * math.log(5 / question.delta)
    if question.epsilon > most:
        raise UnavailableError(f"its composition holds up to epsilon = {most:.3g}")
    given: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta, "alpha": question.alpha}
    n = bounds.san_points(**given, beta=question.beta)
    return Offer(n, lambda n: points.san_points(bits=question.bits, n=n, **given), "san_points")


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("histogram", histogram),
    Candidate("release", release),
    Candidate("san_points", san_points),
)
