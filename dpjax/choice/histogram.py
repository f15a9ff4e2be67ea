"""Histograms: the count of every point within alpha n except with probability beta, whatever the n records; n is public.

Candidates are, by their theorems, MULTI Algorithm 2 as printed (`release`) and with the best thresholds (`histogram`), and SanPoints.
Without a delta they are noisy counts of all points, of which the large ones are listed (`sparse_histogram`, with the best threshold and
shift), or on small domains all of them (`thresholds.histogram`, `thresholds.tree`), and on tiny ones a choice among all databases (`blr`).
The share of a point is the difference of the shares of two thresholds: a database that has each of these within alpha/2 has that within
alpha. (On a domain of two points it is the share of the only threshold between them, or the rest.) So distribution functions by quantiles
are also candidates.
"""

import dataclasses
import math
from typing import Any

from dpjax import bounds
from dpjax.choice import cdf
from dpjax.choice.base import Candidate, Offer, Question, UnavailableError
from dpjax.core import bisection
from dpjax.sanitizers import dense, points
from dpjax.sanitizers.dense.blr import listed
from dpjax.sanitizers.thresholds.base import MOST_BITS

COUNTS = ("histogram", "tree")  # distribution functions by noisy counts of all points
_FINER = 1.03  # the ratio between successive numbers of rows that are tried for `blr`


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


def sparse_histogram(question: Question) -> Offer:
    """The pure histogram, with the best threshold (except for beta near 1) and shift.

    A shift s = t - 1 is never worse. Then failures are rarest where the noise of 2^d points reaches alpha n + t about as often as that of
    the k < 1/alpha points that may be missed falls short by alpha n - t: at t = (d ln 2 - ln k)/epsilon + 1, or at the least t allowed, if
    at the former too many points that do not occur would be released. As the shift lowers every answer, the algorithm has the least shift
    that suffices at its n.
    """
    question.public_size()
    given: tuple[Any, ...] = question.bits, question.alpha, question.beta, question.epsilon
    low = bounds.least_sparse_threshold(question.bits, question.epsilon, points.MOST_ARRIVALS)
    missed = min(question.bits * math.log(2.0), math.log(max(math.ceil(1 / question.alpha) - 1, 1)))
    even = math.floor((question.bits * math.log(2.0) - missed) / question.epsilon) + 1
    thresholds = {max(low, even + step) for step in (-16, -8, -4, -2, -1, 0, 1, 2, 4)}
    offers = [(bounds.sparse_histogram(*given, threshold=t, shift=t - 1), t) for t in thresholds]
    n, threshold = min(offers, key=lambda offer: (offer[0], -offer[1]))

    def make(n: int) -> Any:
        enough = lambda shift: bounds.sparse_histogram(*given, threshold=threshold, shift=shift) <= n  # noqa: E731
        numbers = {"threshold": threshold, "shift": bisection.least_int(enough, 0, threshold - 1)}
        return points.sparse_histogram(bits=question.bits, n=n, epsilon=question.epsilon, **numbers)

    return Offer(n, make, "sparse_histogram")


def blr(question: Question) -> Offer:
    """BLR by its own statement, for the best number of rows."""
    question.public_size()
    if question.bits > MOST_BITS:
        raise UnavailableError(f"counts every point: up to {MOST_BITS} bits")
    queries, rows, found = dense.points(bits=question.bits), 1, [(math.inf, 0)]
    while (databases := listed(queries.size, rows)) is not None:
        left = question.alpha - queries.rounding(rows)
        if left > 0:
            n = bounds.exponential_mechanism(math.log(databases), left, question.beta, question.epsilon)
            found.append((n, rows))
        rows = max(rows + 1, math.ceil(rows * _FINER))
    n, rows = min(found)
    if n == math.inf:
        raise UnavailableError("of so many bits, or for so small an alpha, databases cannot be listed")
    given: dict[str, Any] = {"queries": queries, "rows": rows, "epsilon": question.epsilon}
    return Offer(math.ceil(n * (1 + 1e-12)), lambda n: dense.blr(**given), f"blr, {rows} rows")


def _of_thresholds(question: Question) -> Question:
    """The question for a distribution function that is accurate enough."""
    return question if question.bits == 1 else dataclasses.replace(question, alpha=question.alpha / 2)


def _through(candidate: Candidate) -> Candidate:
    """A histogram by the database of a distribution function; noisy counts get another name than sanitizers of points have."""
    counts, floor = candidate.name in COUNTS, candidate.floor

    def offer(question: Question) -> Offer:
        found = candidate.offer(_of_thresholds(question))
        return dataclasses.replace(found, name=f"thresholds.{found.name}") if counts else found

    return Candidate(
        f"thresholds.{candidate.name}" if counts else f"cdf, {candidate.name}",
        offer,
        None if floor is None else lambda question: floor(_of_thresholds(question)),
    )


CANDIDATES: tuple[Candidate, ...] = (
    Candidate("histogram", histogram),
    Candidate("release", release),
    Candidate("san_points", san_points),
    Candidate("sparse_histogram", sparse_histogram),
    *(_through(each) for each in cdf.CANDIDATES if each.name in COUNTS),
    Candidate("blr", blr, bounded=True),
    *(_through(each) for each in cdf.CANDIDATES if each.name not in COUNTS),
)
