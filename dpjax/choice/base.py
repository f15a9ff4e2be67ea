"""What all tasks share: the question, offers, and the search for the one number that is absent.

A *candidate* answers a question, in which epsilon and alpha are known, by an *offer*: the least n that is proved to suffice, and the
algorithm for which it suffices. If n is given, and alpha or epsilon is absent, the least value is searched for at which the offer's n does
not exceed the given one.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, closed_form_epsilon, largest_range
from dpjax.accounting.composition import FFT_ERROR, composed_delta
from dpjax.core import arguments

PRECISION = 2.0**-8  # relative precision of an epsilon or alpha that is solved for, rounded up
EPSILONS = (2.0**-20, 32.0)  # the range in which an epsilon is searched for
ALPHAS = (2.0**-30, 1.0 - 2.0**-20)
OFTEN = 0.4  # the beta from which on a smaller epsilon may be better
_TRIES = 60
_BY_PROPORTION = 4  # tries before values are doubled, while none is found that is large enough
_PATIENCE = 3  # steps that may leave more than half of the bracket
_APART = 0.02  # how far apart the logs of two values must be to tell a power
_STEEPEST = 4.0  # the largest power, and 1 over the smallest
SAFE = 1.0 - 2.0**-40  # so that rounding does not exceed a total
MOST_DELTA = 0.5  # the largest delta that theorems allow
MORE = 1.03  # how much larger an epsilon must be to be tried
PARTS = (0.0, 0.03, 0.2, 0.6)  # of delta, for an algorithm whose larger epsilon the rest pays for
LEAST_DELTA = 2.0**-120  # float32 holds it, even divided among some mechanisms
TINY_DELTA = 2.0**-100  # float32 may not hold parts of less
LARGEST = 2**62  # the most records that are considered
MOST_RECORDS = 2**30  # the most records that are offered


class UnavailableError(ValueError):
    """A candidate that has no offer; its message says why."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A question that leaves out exactly one of n (then None), epsilon and alpha (then NaN); without alpha in the task, n or epsilon."""

    bits: int
    n: int | None
    epsilon: float
    alpha: float
    delta: float
    beta: float
    relation: str
    fractions: tuple[float, ...] = ()
    dimensions: int = 0
    k: int = 0
    concept: str = ""

    def at(self, absent: str, value: float) -> "Question":
        """The same question with a value for epsilon or alpha."""
        return (
            dataclasses.replace(self, epsilon=value) if absent == "epsilon" else dataclasses.replace(self, alpha=value)
        )

    def epsilons(self) -> list[float]:
        """The given epsilon; if beta is so large (about 1/2) that noise may help, also the powers of 2 below it."""
        if self.beta <= OFTEN:
            return [self.epsilon]
        powers = range(math.ceil(math.log2(EPSILONS[0])), math.ceil(math.log2(self.epsilon)))
        return [self.epsilon, *(2.0**power for power in powers)]

    def step(self) -> tuple[float, float]:
        """What a mechanism with a guarantee under ADD_OR_REMOVE_ONE may spend: half of epsilon if a replacement counts as two steps."""
        if self.relation == ADD_OR_REMOVE_ONE:
            return self.epsilon, self.delta
        epsilon = self.epsilon / 2 * SAFE
        return epsilon, step_delta(self.delta, epsilon) * SAFE

    def public_size(self) -> None:
        """UnavailableError for an algorithm that is private only if the number of records is public.

        Raises:
          UnavailableError: the relation is ADD_OR_REMOVE_ONE.
        """
        if self.relation != REPLACE_ONE:
            raise UnavailableError(f"private under {REPLACE_ONE} only")

    def approximate(self) -> None:
        """UnavailableError for an algorithm that cannot do without delta.

        Raises:
          UnavailableError: delta is 0, or above 1/2.
        """
        usable(self.delta)


@dataclasses.dataclass(frozen=True)
class Offer:
    """An algorithm and the n that is proved to suffice.

    Attributes:
      n: with this many records an error > alpha (or a failure) has probability at most beta, whatever the data.
      make: builds the algorithm for a given number of records, at least n.
      name: a name more exact than the candidate's.
      bounded: whether the candidate is, see there.
    """

    n: int
    make: Callable[[int], Any]
    name: str
    bounded: bool = False


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One algorithm of a task.

    Attributes:
      name: the name of its factory.
      offer: the offer for a question; UnavailableError where there is none.
      floor: an n, quickly computed, that no offer is far below: candidates that cannot win are then not planned. It may refuse only what
        the offer refuses.
      bounded: whether it is an exponential mechanism, whose loss lies in an interval of length epsilon under the relation.
    """

    name: str
    offer: Callable[[Question], Offer]
    floor: Callable[[Question], float] | None = None
    bounded: bool = False


@dataclasses.dataclass(frozen=True)
class Found:
    """An offer and the value that was solved for."""

    value: float
    offer: Offer
    question: Question


def step_delta(delta: float, epsilon: float) -> float:
    """The delta of each of two (epsilon, .)-steps of which a replacement consists, so that both cost `delta`: delta / (1 + e^epsilon)."""
    return delta / (1 + math.exp(min(epsilon, 700.0)))


def usable(delta: float) -> None:
    """UnavailableError for an algorithm that cannot do without delta.

    Raises:
      UnavailableError: delta is 0, or above 1/2, for which nothing is proved (`best_offer` then tries 1/2 as well).
    """
    if not 0.0 < delta <= MOST_DELTA:
        raise UnavailableError("needs a delta above 0" if delta == 0.0 else f"uses {MOST_DELTA} of delta at most")


def holdable(delta: float) -> None:
    """UnavailableError for a part of another delta that is too small for an algorithm to be built with it."""
    if delta < arguments.least():
        raise UnavailableError(f"needs a delta of {arguments.least():.2g}, got {delta:.2g}")


def pure_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon' of which pure algorithms are (epsilon, delta)-private: ln((e^epsilon + delta)/(1 - delta)), rounded down."""
    return (epsilon + math.log1p(delta * math.exp(-epsilon)) - math.log1p(-delta)) * SAFE


def spent_delta(guarantee: Guarantee, epsilon: float) -> float:
    """The least delta for which a guarantee implies (epsilon, delta)-privacy: d + (1 - d) (e^e' - e^epsilon)/(1 + e^e') for e' > epsilon.

    The pair of laws that is worst for (e', d) (Kairouz, Oh & Viswanath 2015) has this distance at epsilon.
    """
    more = max(guarantee.epsilon - epsilon, 0.0)
    return guarantee.delta + (1 - guarantee.delta) * -math.expm1(-more) / (1 + math.exp(-min(guarantee.epsilon, 700.0)))


def bounded_epsilon(epsilon: float, delta: float) -> float:
    """The epsilon' of which exponential mechanisms are (epsilon, delta)-private, rounded down (`accounting.exponential`)."""
    return float(largest_range(epsilon, delta)) * SAFE


def _budgets(question: Question, bounded: bool) -> list[Question]:
    """The question with all of delta; with 1/2 of it if it is larger; with none if it is tiny; with parts of it.

    The rest of delta then pays for a larger epsilon, if that is 3 % more. A bounded candidate has no use for any of delta but that.
    """
    if bounded and question.delta > 0.0:
        epsilon = min(bounded_epsilon(question.epsilon, question.delta), max(question.epsilon, EPSILONS[1]))
        return [dataclasses.replace(question, epsilon=epsilon, delta=0.0)]
    asked = [question]
    if question.delta > MOST_DELTA:
        asked.append(dataclasses.replace(question, delta=MOST_DELTA))
    elif question.delta > 0.0 and question.step()[1] < TINY_DELTA:
        asked.append(dataclasses.replace(question, delta=0.0))
    if question.delta > 0.0:
        for share in PARTS:
            own = share * question.delta
            epsilon = pure_epsilon(question.epsilon, (question.delta - own) / (1 - own))
            if epsilon > MORE * question.epsilon and epsilon <= EPSILONS[1]:
                asked.append(dataclasses.replace(question, epsilon=epsilon, delta=own))
    return asked


def best_offer(candidate: Candidate, question: Question) -> Offer:
    """The offer that takes the fewest records, of those for `_budgets`."""
    asked = _budgets(question, candidate.bounded)
    if len(asked) == 1:
        return dataclasses.replace(candidate.offer(asked[0]), bounded=candidate.bounded)
    return fewest(candidate, asked)[0]


def fewest(candidate: Candidate, asked: Sequence[Question]) -> tuple[Offer, Question]:
    """The candidate's offer that takes the fewest records for any of these questions, and for which.

    Raises:
      UnavailableError: there is none, for the last reason given; but not for that without a delta, if one was asked for with a delta.
    """
    found: list[tuple[Offer, Question]] = []
    reason = UnavailableError("")
    for each in asked:
        try:
            if found and candidate.floor is not None and candidate.floor(each) > min(offer.n for offer, _ in found):
                continue
            offer = candidate.offer(each)
            if 0.0 < each.step()[1] < TINY_DELTA:
                offer.make(offer.n)  # refuses parts of delta that float32 does not hold
            found.append((offer, each))
        except ValueError as refused:
            if each.delta > 0.0 or asked[0].delta == 0.0:
                reason = UnavailableError(str(refused))
    if not found:
        raise reason
    return min(found, key=lambda one: one[0].n)


def _floor(candidate: Candidate, question: Question) -> float:
    """An n that no offer is far below; 0 also where there is none, so that the offer says why."""
    if candidate.floor is None:
        return 0.0
    least = min(floor_of(candidate.floor, each) for each in _budgets(question, candidate.bounded))
    return least if least < math.inf else 0.0


def floor_of(floor: Callable[[Question], float], question: Question) -> float:
    """What a floor says; infinite where it refuses, as a candidate that needs a delta does without one."""
    try:
        return floor(question)
    except ValueError:  # its own theory may refuse numbers, too
        return math.inf


def ranked(
    candidates: Sequence[Candidate], question: Question, absent: str
) -> tuple[list[Found], dict[str, str | float]]:
    """(the best offers in order, at least two if there are two; the value or the refusal of each candidate by name)."""
    found: list[Found] = []
    others: dict[str, str | float] = {}
    for candidate in candidates:
        limit = found[1].value if len(found) > 1 else math.inf
        try:
            each = _solved(candidate, question, absent, limit)
        except ValueError as reason:  # its own theory may refuse numbers, too
            others.setdefault(candidate.name, str(reason))  # another candidate may have offered it
            continue
        same = [one for one in found if one.offer.name == each.offer.name]  # one candidate may offer what another does
        if same and same[0].value <= each.value:
            continue
        others[each.offer.name] = each.value
        found = sorted([*(one for one in found if one not in same), each], key=lambda one: one.value)
    return found, others


def _solved(candidate: Candidate, question: Question, absent: str, limit: float) -> Found:
    """The least value of what is absent; UnavailableError if it is above the limit, which two other candidates keep."""
    if absent == "n":
        if limit < math.inf and _floor(candidate, question) > limit:
            raise UnavailableError(f"above {limit:g}")
        offer = best_offer(candidate, question)
        if offer.n > MOST_RECORDS:
            raise UnavailableError(f"takes at most {MOST_RECORDS} rows, got {offer.n}")
        return Found(offer.n, offer, question)
    ends, n = EPSILONS if absent == "epsilon" else ALPHAS, question.n or 0
    offers: dict[float, Offer] = {}
    reasons: list[str] = []

    def needed(value: float) -> float:
        if value in offers:
            return offers[value].n
        asked = question.at(absent, value)
        low = _floor(candidate, asked)
        if low > (n if value == limit else 4.0 * n):
            return low
        try:
            offers[value] = best_offer(candidate, asked)
        except ValueError as reason:
            reasons.append(str(reason))
            return math.inf
        return offers[value].n

    if limit < math.inf and needed(limit) > n:
        raise UnavailableError(reasons[-1] if reasons else f"above {limit:.4g}")
    value = least(needed, n, ends[0], min(limit, ends[1]))
    if value is None:
        raise UnavailableError(reasons[-1] if reasons and not offers else f"{question.n} records are too few")
    return Found(value, offers[value], question.at(absent, value))


def least(needed: Callable[[float], float], n: float, low: float, high: float) -> float | None:
    """About the least value in [low, high] with needed(value) <= n, rounded up; None if not even `high` satisfies this.

    It is for a function that falls about as a power of the value, assumed to be 1/value until two values tell. Steps go by that power, and
    by halving (of logarithms) where they would leave the bracket, or would leave more than half of it after a few have done so. Where the
    function hardly falls, such steps lead nowhere: until a value is found that is large enough, values are soon doubled instead.

    >>> value = least(lambda x: 50 / x + 20, 120, 2.0**-20, 32.0)
    >>> 0.5 <= value <= 0.5 * (1 + PRECISION)
    True
    """
    good, bad, value, before = None, low, min(high, 1.0), math.inf
    power, last, patience = 1.0, None, _PATIENCE
    for tried in range(_TRIES):
        need = needed(value)
        if need <= n:
            good = value
        else:
            bad = value
        if good is None and bad >= high:
            return None
        top = high * (1 + PRECISION) if good is None else good
        if good is not None and good <= bad * (1 + PRECISION):
            return good
        if 0 < need < math.inf:
            if last is not None and abs(math.log(value / last[0])) > _APART:
                power = min(max(math.log(last[1] / need) / math.log(value / last[0]), 1 / _STEEPEST), _STEEPEST)
            last = value, need
        value = value * (min(need / max(n, 1), 2.0**200)) ** (1 / power) * (1 + PRECISION / 4)
        if good is not None and value >= good * (1 - PRECISION / 2):
            value = good / (1 + PRECISION * 0.99)
        width = math.log(top / bad)
        patience -= good is not None and width > before / 2
        if not bad < value < top or (patience < 0 and width > before / 2):
            value = math.sqrt(bad * top) if good is not None else min(high, max(4 * bad, low))
        if good is None and tried >= _BY_PROPORTION:
            value = max(value, 2 * bad)
        value, before = min(value, high), width
    return good


def largest_kept(spent: Callable[[float], float], delta: float, start: float) -> float | None:
    """Nearly the largest e with spent(e) <= delta, from a start somewhere near it; None if none was found.

    It takes a few steps by the slope of ln(spent), at first that of a normal tail, to a precision of about 1 in 2,500, which matters if the
    number of records hardly changes with the epsilon that is solved for. The e that is returned was itself found to keep delta.
    """
    best, over, e, slope, last = None, math.inf, start, -2.0 * math.log(delta), None
    for _ in range(16):
        found = max(spent(e), 1e-300)
        if found <= delta:
            best = max(e, best or 0.0)
        else:
            over = min(e, over)
        if last is not None and e != last[0]:
            secant = (math.log(found) - math.log(last[1])) / (math.log(e) - math.log(last[0]))
            slope = min(max(secant, slope / 3), 3 * slope)
        farthest = 0.3 if over < math.inf else 1.0  # the start may be far below
        step = min(max((math.log(delta) - math.log(found)) / slope, -0.3), farthest) - 2.0**-13
        if found <= delta and step <= 2.0**-12:
            break
        last, e = (e, found), e * math.exp(step)
        if best is not None and not best < e < over:  # the slope leads out of the bracket
            if over <= best * (1 + 2.0**-12):
                break
            e = math.sqrt(best * over) if over < math.inf else e
    return best


def largest_each(
    parts: Callable[[float], list[tuple[float, int]]], epsilon: float, delta: float, own: float
) -> float | None:
    """Nearly the largest e for which optimal composition of parts(e) keeps (epsilon, delta), with `own` of delta spent separately."""
    count = sum(number for _, number in parts(1.0))
    kept = 0.995 * (delta - own) - 2 * count * FFT_ERROR  # accountants add their own numerical error
    if kept <= 0:
        return None
    near = float(closed_form_epsilon(epsilon, delta - own, count))
    return largest_kept(lambda e: composed_delta(parts(e), own, epsilon) - own, kept, near)


@functools.lru_cache(4096)
def optimal_each(epsilon: float, delta: float, count: int, share: float) -> Guarantee:
    """What each of `count` mechanisms may spend by optimal composition, `share` of delta being for their own deltas; under REPLACE_ONE."""
    own = share * delta * SAFE
    each = largest_each(lambda e: [(e, count)], epsilon, delta, own) or 0.0
    return Guarantee(max(each, epsilon / count * SAFE), own / count, REPLACE_ONE)


def share_of(epsilon: float, delta: float, count: int) -> Guarantee:
    """Equal parts by basic composition, rounded down, under ADD_OR_REMOVE_ONE."""
    return Guarantee(epsilon / count * SAFE, delta / count * SAFE, ADD_OR_REMOVE_ONE)
