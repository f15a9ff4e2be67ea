"""Quantiles at fewer fractions, each of which serves those near its own, where alpha is not small beside the distances of fractions.

An answer within t ranks of g n is within t + |f - g| n of f n, so the proofs are those of `choice.quantiles` for what is left of alpha.
Fractions less than alpha from 0 or 1 are served by the ends of the domain, which err by f n and 1/2 for rounding.
"""

import bisect
import dataclasses
import functools
import math
from typing import Any

import numpy as np

from dpjax.choice.base import Candidate, Offer, Question, UnavailableError, fewest, floor_of
from dpjax.choice.quantiles import CANDIDATES, rounded, size_for
from dpjax.core import bisection
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.ranked import in_units

# Of the number of answers with which ranks may grow: from the tree's to those of independent runs.
POWERS = (0.0, 0.5, 1.0)
# How much farther than they err slices must be apart: with both, 40 random cells of 30 to 400 fractions lost 3 % at most.
ROOMS = (1.4, 1.7, 2.2)
# The part of what a radius leaves of alpha by which it may be larger, so that answers are farther apart.
LARGER = (0.0, 0.2)
FINER, MOST = 1.08, 6  # numbers of answers that are tried: the ratio of large ones, and that of the most to the fewest
# Their errors are counted from k(n) of their own fraction, or do not count that another's may be half a rank from f n.
FROM_RANKS = ("direct", "recursive", "supported")
SLICES = ("direct", "recursive", "noisy_slices", "supported_slices")  # need room between each other
# The part of alpha up to which the ends of the domain serve: then 10/alpha records are enough for their rounding. Where an answer takes
# fewer, smaller parts, for the last of which 1/alpha are enough.
ENDS = (0.95, 0.9, 0.8, 0.65, 0.5)


@functools.lru_cache(64)  # all candidates ask the same
def served(
    fractions: tuple[float, ...], alpha: float, ends: float, apart: bool = False
) -> list[tuple[tuple[float, ...], float]]:
    """Choices of fewer fractions that serve all, except those up to `ends` from 0 and 1, with the radius that each choice loses of alpha.

    If t ranks for c answers are proportional to c^p, n is to c^p/(alpha - radius): the best c is chosen for each p of `POWERS`. Slices must
    be apart from each other. If they err by t ranks, they require n of t/(alpha - radius), and of room t/gap, to be `gap` n ranks apart:
    for each of the `ROOMS` the choice with the smallest maximum is added, evenly spaced ones among them. With `apart`, all are as far apart
    as their radius allows.

    >>> [(len(centres), round(radius, 3)) for centres, radius in served((0.1, 0.3, 0.32, 0.7), 0.2, 0.15)]
    [(2, 0.01), (3, 0.0)]
    """
    inner = fractions[bisect.bisect_right(fractions, ends) : bisect.bisect_left(fractions, 1 - ends)]
    found: list[tuple[tuple[float, ...], float]] = []
    fewest_groups = count = len(_groups(inner, alpha * (1 - 2.0**-10)))
    while count < min(len(inner), MOST * fewest_groups):
        found.append(covered(inner, count, found[-1][1] if found else alpha))
        count = max(count + 1, int(count * FINER))
    if apart:
        radii = [radius + share * (alpha - radius) for _, radius in found for share in LARGER]
        found = [(_apart(inner, radius), radius) for radius in radii]
    even = [_spread(inner, count) for count in sorted({len(centres) for centres, _ in found})]
    found.append((inner, 0.0))
    best = [min(found, key=lambda one: len(one[0]) ** power / (alpha - one[1])) for power in POWERS]
    gaps = [(one, min(np.diff(one[0]), default=1.0)) for one in found + even if one[1] < alpha * (1 - 2.0**-10)]
    best += [max(gaps, key=lambda each: min(alpha - each[0][1], each[1] / room))[0] for room in ROOMS]
    best = [(_needed(inner, centres), radius) for centres, radius in best]
    return sorted(set(best), key=lambda one: len(one[0]))


def _needed(fractions: tuple[float, ...], centres: tuple[float, ...]) -> tuple[float, ...]:
    """Those of the centres that are the nearest one to some fraction, as `quantiles.shared` computes it: the lower one of two.

    Evenly spaced centres may serve none where a fraction is in the middle between two.

    >>> _needed((0.25, 0.5), (0.25, 0.375, 0.5, 0.75))
    (0.25, 0.5)
    """
    own, wanted = map(in_units, (centres, fractions))
    return tuple(centres[i] for i in np.unique(np.searchsorted(own[:-1] + own[1:], 2 * wanted)))


def covered(fractions: tuple[float, ...], count: int, high: float) -> tuple[tuple[float, ...], float]:
    """(At most `count` fractions of which one is within a radius of each given one, nearly the least such radius, which is at most `high`).

    >>> covered((0.3, 0.4, 0.7), 2, 0.2)[0]
    (0.35, 0.7)
    """
    low = 0.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if len(_groups(fractions, middle)) <= count else (middle, high)
    groups = _groups(fractions, high)
    return tuple(round((a + b) / 2, 15) for a, b in groups), max(b - a for a, b in groups) / 2


def _apart(fractions: tuple[float, ...], radius: float) -> tuple[float, ...]:
    """One fraction for each of the fewest groups, within the radius of all of its group, such that they are as far apart as possible.

    Of all with the largest gap it is the middle between the lowest and the highest. Each serves at least the first of its group: the
    others are further from that than the radius, or it would be in a group with them.
    """
    radius *= 1 + 2.0**-40  # the width of a group may be rounded down
    first, last = np.array(_groups(fractions, radius)).T
    low, high = np.maximum(last - radius, fractions[0] / 2), np.minimum(first + radius, (1 + fractions[-1]) / 2)
    index = np.arange(len(low))

    def lowest(gap: float) -> np.ndarray:
        return np.maximum.accumulate(low - gap * index) + gap * index

    gap = bisection.largest_float(lambda gap: bool(np.all(lowest(gap) <= high)), 0.0, 1.0, precision=1e-6)
    highest = np.minimum.accumulate((high - gap * index)[::-1])[::-1] + gap * index
    return tuple(np.round((lowest(gap) + highest) / 2, 15).tolist())


def _spread(fractions: tuple[float, ...], count: int) -> tuple[tuple[float, ...], float]:
    """(Evenly spaced fractions, those that are the nearest one to some given one; how far a given one is from the nearest).

    >>> _spread((0.1, 0.2, 0.7), 2)
    ((0.25, 0.55), 0.15)
    """
    width = (fractions[-1] - fractions[0]) / count
    places = np.minimum((np.asarray(fractions) - fractions[0]) / width, count - 1).astype(int)
    centres = np.round(fractions[0] + (places + 0.5) * width, 15)
    radius = float(np.max(np.abs(centres - fractions)))
    return tuple(np.unique(centres).tolist()), round(radius, 15)


def _groups(fractions: tuple[float, ...], radius: float) -> list[tuple[float, float]]:
    """The first and the last fraction of each group that is no wider than twice the radius, as few groups as possible."""
    groups, i = [], 0
    while i < len(fractions):
        j = bisect.bisect_right(fractions, fractions[i] + 2 * radius, i + 1)
        groups.append((fractions[i], fractions[j - 1]))
        i = j
    return groups


def _reach(alpha: float, fractions: tuple[float, ...], part: float) -> float:
    """How far the ends of the domain serve, a multiple of 2^-32 below 1/2 that leaves some fraction, or all, to an answer."""
    farthest = max(min(f, 1 - f) for f in fractions)
    return math.floor(min(part * alpha, 0.499, farthest - 2.0**-32) * 2**32) / 2**32


def _sharing(candidate: Candidate) -> Candidate:
    """The candidate at fewer fractions, each of which serves all near its own; alpha is what is left of it."""

    def fewer(question: Question, ends: float) -> list[Question]:
        fractions = rounded(question.fractions)
        several = [
            dataclasses.replace(question, fractions=centres, alpha=question.alpha - radius * (1 + 1e-9) - 2.0**-31)
            for centres, radius in served(fractions, question.alpha, ends, candidate.name in SLICES)
            if len(centres) < len(fractions)
        ]
        if not several:
            raise UnavailableError("alpha is too small for one quantile, or an end, to serve other fractions")
        return several

    def reaching(question: Question, ends: float) -> tuple[Offer, bool]:
        """(the offer with ends that serve so far, whether their rounding takes more records than the answers do)."""
        best, asked = fewest(candidate, fewer(question, ends))
        far = max((end for f in rounded(question.fractions) if (end := min(f, 1 - f)) <= ends), default=None)
        rounding = 0 if far is None else size_for(0.5, question.alpha - far)

        def make(n: int) -> Any:
            return quantiles.shared(best.make(n), fractions=question.fractions, ends=ends)

        alone = {f for f in rounded(question.fractions) if ends < f < 1 - ends} <= {*asked.fractions}
        # Half a rank more where an answer serves another fraction than its own.
        n = best.n + (size_for(0.5, asked.alpha) if best.name.split(",")[0] in FROM_RANKS and not alone else 0)
        return Offer(max(n, rounding), make, f"{best.name}, {len(asked.fractions)} for all"), rounding > n

    def offer(question: Question) -> Offer:
        first, *nearer = ENDS
        best, by_rounding = reaching(question, _reach(question.alpha, question.fractions, first))
        for part in nearer:
            if not by_rounding:
                break
            try:
                found, by_rounding = reaching(question, _reach(question.alpha, question.fractions, part))
            except UnavailableError:  # no fraction is served by an end, or by another's answer
                break
            best = min(best, found, key=lambda one: one.n)
        return best

    def floor(question: Question) -> float:
        ends = _reach(question.alpha, question.fractions, ENDS[0])
        return min(floor_of(candidate.floor, each) for each in fewer(question, ends))  # type: ignore[arg-type]

    return Candidate(f"shared, {candidate.name}", offer, floor if candidate.floor else None)


SHARED: tuple[Candidate, ...] = tuple(map(_sharing, CANDIDATES))
