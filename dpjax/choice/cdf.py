"""Distribution functions: the share of records up to every x within alpha except with probability beta, whatever the data.

They are found through quantiles at i/(q + 1), whose step function loses 1/(2(q + 1)), and a rank error of t loses another t/n:
n = t/(alpha - 1/(2(q + 1))), where q is the best of a few numbers around 1/alpha, or of larger ones where one more quantile costs little.
Where the number of records is public (REPLACE_ONE), noisy counts of all points (`histogram`, `tree`, up to 16 bits) and SanThresholds
are candidates, too, by their theorems. Every algorithm releases a `dpjax.Weighted` database.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax import bounds
from dpjax.accounting.adaptive import ADAPTIVE
from dpjax.choice import quantiles
from dpjax.choice.base import LARGEST, Candidate, Offer, Question, UnavailableError, floor_of
from dpjax.choice.quantiles import LESS, MOST_RUNS
from dpjax.optimizers import quantiles as optimizers
from dpjax.optimizers.quantiles.approximate import CONCENTRATED, MOST_BITS
from dpjax.sanitizers import thresholds

AROUND = (0.75, 0.9, 1.0, 1.2)  # numbers of pieces that are tried, times 1/alpha
FINELY = (0.75, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2)  # where a floor tells the best
MANY = (1.0, 2.0, 4.0, 8.0)  # where one more costs little
FEW = (0.6, 0.75, 0.9, 1.0)  # where each costs much
LIKELY = 2  # how many of these numbers, the best by their floors, are computed in full
MOST_BITS_DENSE = 16
MOST_LEVELS = 10  # of approximate quantiles, whose nodes are examined one by one


def _database(released: Any) -> Any:
    return thresholds.from_interior_points(quantiles=released)


def _left(alpha: float, pieces: int) -> float:
    """How much of alpha this number of pieces leaves for ranks."""
    return alpha - 0.5 / pieces


def _even(pieces: int) -> np.ndarray:
    return np.arange(1, pieces) / pieces


def _fewest(alpha: float) -> int:
    """Two pieces, if these leave something for ranks; else no further number."""
    return 2 if alpha > 0.25 else math.ceil(1 / alpha)


def _counts(alpha: float, around: tuple[float, ...], *, levels: bool) -> list[int]:
    """Numbers of pieces around 1/alpha that leave something of it for ranks; with `levels` also numbers that fill levels.

    UnavailableError if there are none.
    """
    tried = {math.ceil(share / alpha) for share in around} | {_fewest(alpha)}
    if levels:  # one quantile less than a power of two
        tried |= {1 << (pieces - 1).bit_length() for pieces in (min(tried), max(tried))}
    counts = [pieces for pieces in sorted(tried) if 2 <= pieces <= MOST_RUNS and _left(alpha, pieces) > 0]
    if not counts:
        raise UnavailableError(f"alpha asks for more than {MOST_RUNS} quantiles")
    return counts


def _roughly(question: Question) -> list[tuple[int, int]]:
    """(n of direct quantiles by theorems alone, number of pieces), the least n first."""

    def rough(pieces: int) -> int:
        return quantiles.size_for(quantiles.rough_direct_ranks(question, pieces - 1), _left(question.alpha, pieces))

    return sorted((rough(pieces), pieces) for pieces in _counts(question.alpha, AROUND, levels=False))


def direct_floor(question: Question) -> float:
    """Somewhat less than the n of theorems alone."""
    return LESS * _roughly(question)[0][0]


def direct(question: Question) -> Offer:
    """Evenly spaced quantiles, each from its own slice; TreeLog, of which floors know a bound alone, is planned where it may win."""
    best: tuple[float, int, Any] = (math.inf, 0, None)
    for rough, pieces in _roughly(question):
        if rough >= best[0]:
            break
        plan = quantiles.direct_plan(question, pieces - 1)
        size = quantiles.size_for(quantiles.direct_ranks(plan[1]), _left(question.alpha, pieces))
        best = min(best, (size, pieces, plan), key=lambda one: one[0])
    n, pieces, (solver, m, composed) = best

    def make(n: int) -> Any:
        given: dict[str, Any] = {"fractions": _even(pieces).tolist(), "m": m, "allow_unproved": True}
        return _database(optimizers.direct(solver=solver.made(), **given, **composed))

    return Offer(int(n), make, f"direct, {solver.name}, {pieces - 1} quantiles")


def _first_level(alpha: float) -> int:
    """The least L for which 2^L pieces may leave something of alpha for ranks."""
    return max(1, math.ceil(math.log2(0.5 / alpha) + 1e-12))


def _recursive(question: Question, steps: float | None) -> tuple[int, Callable[[], Any], str]:
    found: list[tuple[int, Callable[[], Any], str]] = []
    first, reason = _first_level(question.alpha), "alpha asks for more than 12 levels"
    for levels in range(first, min(first + 3, 12) + 1):
        left = _left(question.alpha, 2**levels)
        if left <= 0:
            continue
        size = functools.partial(quantiles.size_for, alpha=left)
        try:
            most = min((one[0] for one in found), default=math.inf)
            make, ranks, name = quantiles.recursive_plan(question, levels, size, steps=steps, most=most)
        except UnavailableError as without:  # here, too many points for their ties to be broken
            reason = str(without)
            continue
        found.append((size(ranks), make, f"{name}, {2**levels - 1} quantiles"))
    if not found:
        raise UnavailableError(reason)
    return min(found, key=lambda one: one[0])


def recursive(question: Question) -> Offer:
    """The median, the medians of both halves, and so on, for the best number of levels."""
    n, make, name = _recursive(question, None)
    return Offer(n, lambda n: _database(make()), name)


def recursive_floor(question: Question) -> float:
    """Somewhat less than the n of theorems alone."""
    return LESS * _recursive(question, 1)[0]


@functools.lru_cache(maxsize=64)  # the search for an alpha asks many questions
def _even_quantiles(bits: int, levels: int, epsilon: float, delta: float, accountant: str) -> Any:
    given: dict[str, Any] = {"bits": bits, "fractions": _even(2**levels).tolist(), "epsilon": epsilon, "delta": delta}
    return optimizers.approximate(**given, accountant=accountant)


def _sizes(question: Question, *, floor: bool = False) -> list[tuple[int, Any]]:
    """(n, quantiles) for each number of levels that is tried; a little less than n for a floor."""
    found, first = [], _first_level(question.alpha)
    for levels in range(first, min(first + 2, MOST_LEVELS) + 1):
        left = _left(question.alpha, 2**levels)
        if left > 0:
            made = _even_quantiles(question.bits, levels, *question.step(), CONCENTRATED if floor else ADAPTIVE)
            if floor:
                made = quantiles.with_levels_at_most(made, question.relation)
            found.append((made.sample_size(alpha=left, beta=question.beta), made))
    return found


def approximate(question: Question) -> Offer:
    """The median, the medians of both halves of the points, and so on, for the best number of levels."""
    if question.bits > MOST_BITS:
        raise UnavailableError(f"takes at most {MOST_BITS} bits")
    found = _sizes(question)
    if not found:
        raise UnavailableError(f"alpha asks for more than {MOST_LEVELS} levels")
    n, made = min(found, key=lambda one: one[0])
    return Offer(min(n, LARGEST), lambda n: _database(made), f"approximate, {len(made.fractions)} quantiles")


def approximate_floor(question: Question) -> float:
    """A little less than its n, in a tenth of the time."""
    return min((n for n, _ in _sizes(question, floor=True)), default=0)


def _through(
    name: str,
    offer: Callable[[Question], Offer],
    floor: Callable[[Question], float] | None,
    around: tuple[float, ...],
    *,
    levels: bool = True,
) -> Candidate:
    """Evenly spaced quantiles by a candidate for quantiles, in the best of some numbers; with `levels` also numbers that fill levels."""

    def asked(question: Question) -> dict[int, Question]:
        """The question about quantiles for each number of pieces."""
        return {
            pieces: dataclasses.replace(
                question, alpha=_left(question.alpha, pieces), fractions=tuple(_even(pieces).tolist())
            )
            for pieces in _counts(question.alpha, around, levels=levels)
        }

    def offered(question: Question) -> Offer:
        found: list[tuple[Offer, int]] = []
        reason, several = "", asked(question)
        if floor is not None:
            several = dict(sorted(several.items(), key=lambda each: floor_of(floor, each[1]))[:LIKELY])
        for pieces, of_pieces in several.items():
            try:
                found.append((offer(of_pieces), pieces))
            except ValueError as without:  # for this number of pieces; its own theory may refuse numbers, too
                reason = str(without)
        if not found:
            raise UnavailableError(reason)
        best, pieces = min(found, key=lambda one: one[0].n)
        return Offer(best.n, lambda n: _database(best.make(n)), f"{best.name}, {pieces - 1} quantiles")

    def lowest(question: Question) -> float:
        return min(floor_of(floor, each) for each in asked(question).values())  # type: ignore[arg-type]

    return Candidate(name, offered, None if floor is None else lowest)


def _dense(name: str) -> Callable[[Question], Offer]:
    def offer(question: Question) -> Offer:
        question.public_size()
        if question.bits > MOST_BITS_DENSE:
            raise UnavailableError(f"counts every point: up to {MOST_BITS_DENSE} bits")
        size = {"histogram": bounds.histogram_thresholds, "tree": bounds.tree_thresholds}[name]
        factory = {"histogram": thresholds.histogram, "tree": thresholds.tree}[name]
        given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon}
        n = size(question.bits, question.alpha, question.beta, question.epsilon)
        return Offer(n, lambda n: factory(**given, n=n), name)

    return offer


def san_thresholds(question: Question) -> Offer:
    """SanThresholds by Theorem 4.13, as it is proved here."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"bits": question.bits, "epsilon": question.epsilon, "delta": question.delta}

    def make(n: int, unproved: bool = False) -> Any:
        return thresholds.san_thresholds(**given, n=n, alpha=question.alpha, allow_unproved=unproved)

    try:
        n = make(1, True).sample_size(alpha=question.alpha, beta=question.beta)
    except ValueError as reason:
        raise UnavailableError(str(reason)) from None
    return Offer(n, make, "san_thresholds")


def san_thresholds_floor(question: Question) -> float:
    """The n that one step with all of the budget needs to be private."""
    question.approximate()
    return bounds.san_thresholds_private(question.alpha, question.epsilon, question.delta)


# First come candidates that often win and are quickly computed: others are then left out by their floors.
OF_QUANTILES: tuple[Candidate, ...] = (
    _through("supported_slices", quantiles.supported_slices, quantiles.supported_slices_floor, FINELY),
    _through("noisy_slices", quantiles.noisy_slices, quantiles.noisy_slices_floor, FINELY),
    _through("rank_exponential", quantiles.rank_exponential, None, AROUND),
    _through("quantiles.tree", quantiles.tree, None, MANY),
    _through("permute_and_flip", quantiles.permute_and_flip, None, AROUND, levels=False),
    _through("supported", quantiles.supported, quantiles.supported_floor, AROUND, levels=False),
    Candidate("recursive", recursive, recursive_floor),
    Candidate("direct", direct, direct_floor),
    Candidate("approximate", approximate, approximate_floor),
    _through("inverse_sensitivity", quantiles.inverse_sensitivity, quantiles.inverse_sensitivity_floor, FEW),
)
CANDIDATES: tuple[Candidate, ...] = (
    *OF_QUANTILES[:3],
    Candidate("histogram", _dense("histogram")),
    Candidate("tree", _dense("tree")),
    *OF_QUANTILES[3:],
    Candidate("san_thresholds", san_thresholds, san_thresholds_floor),
)
