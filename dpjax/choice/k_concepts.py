"""k concepts from one sample: all k errors at most alpha except with probability beta.

- points, whatever the distribution and the points: `histogram_learner` and `point_learner` by their theorems, independent of k; without a
  delta `sparse_histogram_learner`, at the price of d + k; direct sums of the learners of one point (`dpjax.choice.points`).
- thresholds, whatever the distribution and the thresholds: direct sums of the learners of one threshold (`dpjax.choice.thresholds`), and
  GenericLearner (MULTI Lemma 36) on a sanitized distribution function, which gets a half, a quarter or a tenth of the budget.
- parities, on uniform points: `parity_learner` by its exact law; direct sums of the exponential mechanism, up to 16 bits. They find the
  concepts themselves, so there is no alpha.

A direct sum gives each learner beta/k and the budget that basic composition leaves it, or another one where that leaves more: composition
by ranges for exponential mechanisms, optimal composition for others (advanced composition for more than `MOST_OPTIMAL` concepts).
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, calibrate, closed_form_epsilon
from dpjax.accounting.bounded import BOUNDED, independent_each
from dpjax.bounds.frequencies import labelled_sparse_histogram_beats
from dpjax.bounds.parities import parity_learner_beats
from dpjax.choice import cdf as distribution_functions
from dpjax.choice import points, thresholds
from dpjax.choice.base import MOST_DELTA, SAFE, Candidate, Offer, Question, UnavailableError, optimal_each
from dpjax.learners import parities as one_parity
from dpjax.multi import direct_sum, generic, parities
from dpjax.multi import points as many_points

OWN, FEW = 0.5, 0.1  # of delta for the learners themselves, where they need some
EXPONENTIAL = ("exponential", "hashed")  # mechanisms to which optimal composition of pure ones leaves less
EITHER = "interior.threshold_learner"  # by a pure solver, or by one with a delta
SANITIZER = (0.5, 0.25, 0.1)  # of the budget, for GenericLearner's distribution function
# The most concepts for which optimal composition is computed; advanced composition has a closed form.
MOST_OPTIMAL = 2**20


def _budgets(question: Question, name: str) -> list[tuple[Guarantee, str]]:
    """What each learner may spend, and by which composition."""
    k, epsilon, delta = question.k, question.epsilon, question.delta
    found = [(Guarantee(epsilon / k * SAFE, delta / k * SAFE, REPLACE_ONE), "basic")]
    if delta > 0 and name in EXPONENTIAL:
        found.append((independent_each(Guarantee(epsilon, delta, REPLACE_ONE), k), BOUNDED))
    elif delta > 0:
        # Where delta is not small, composition may need most of it.
        shares = (OWN, FEW) if delta > 1e-3 * epsilon else (OWN,)
        if name == EITHER:
            shares = (0.0, *shares)
        found += [_composed(epsilon, delta, k, share) for share in shares]
    return found


def _composed(epsilon: float, delta: float, count: int, share: float) -> tuple[Guarantee, str]:
    """What each of so many mechanisms may spend, with this share of delta for their own: by optimal composition, if not of too many."""
    if count <= MOST_OPTIMAL:
        return optimal_each(epsilon, delta, count, share), "optimal"
    total = Guarantee(epsilon, delta, REPLACE_ONE)
    return calibrate(total, count, accountant="advanced", delta_share=share), "advanced"


def _direct(single: Candidate) -> Candidate:
    def offer(question: Question) -> Offer:
        question.public_size()
        offers = []
        for each, composed in _budgets(question, single.name):
            one = dataclasses.replace(
                question, epsilon=each.epsilon, delta=each.delta, beta=question.beta / question.k, n=None
            )
            try:
                offers.append((single.offer(one), composed))
            except ValueError as reason:  # its own theory may refuse numbers, too
                missing = reason
        if not offers:
            raise UnavailableError(str(missing))
        best, composed = min(offers, key=lambda one: one[0].n)

        def make(n: int) -> Any:
            learner = direct_sum.of(best.make(n), k=question.k)
            if composed == "basic":
                return learner
            return dataclasses.replace(
                learner,
                epsilon=np.float64(question.epsilon),
                delta=np.float64(question.delta),
                accountant=composed,
            )

        return Offer(best.n, make, f"direct_sum, {composed}, {best.name}")

    def floor(question: Question) -> float:
        """An n with more epsilon for each learner than any composition leaves it, and all of delta."""
        if question.delta > MOST_DELTA:
            return 0.0
        try:
            each = dataclasses.replace(question, epsilon=_most_each(question), beta=question.beta / question.k, n=None)
            return single.floor(each) if single.floor is not None else float(single.offer(each).n)
        except ValueError:
            return 0.0

    known = single.floor is not None or single.name in EXPONENTIAL  # the offers of the latter are closed forms
    return Candidate(f"direct_sum, {single.name}", offer, floor if known else None)


def _most_each(question: Question) -> float:
    """Somewhat above what each of k mechanisms may spend.

    It is four times what zCDP leaves each, plus five times what gives a distance of delta in all (k fair coins with odds e^+-e have a
    distance of about e sqrt(k / (2 pi))), which matters where delta is not small compared with epsilon.
    """
    k, epsilon, delta = question.k, question.epsilon, question.delta
    if delta == 0.0:
        return epsilon
    near = float(closed_form_epsilon(epsilon, min(delta, 1 - 2.0**-20), k))
    most = epsilon + 5 * delta if k == 1 else min(4 * near + 5 * delta / math.sqrt(k), epsilon + 5 * delta)
    return max(most, 1.01 * independent_each(Guarantee(epsilon, delta, REPLACE_ONE), k).epsilon)


# ---------------------------------------------------------------------------------------------------------------- points


def histogram_learner(question: Question) -> Offer:
    """One stability histogram of the labelled points."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta}
    high = bounds.histogram_margin(**given)
    n = bounds.labelled_histogram(question.alpha, question.beta, question.epsilon, high)
    return Offer(
        n,
        lambda n: many_points.histogram_learner(bits=question.bits, k=question.k, **given),
        "histogram_learner",
    )


def sparse_histogram_learner(question: Question) -> Offer:
    """One histogram of all labelled points; the best share of beta is for the release of points that do not occur."""
    question.public_size()
    size = question.bits + question.k
    thresholds = {
        bounds.sparse_threshold(size, question.epsilon, question.beta / 2**halvings) for halvings in range(1, 11)
    }
    # Nearly all of it.
    thresholds.add(bounds.least_sparse_threshold(size, question.epsilon, question.beta * (1 - 2.0**-10)))
    given = (question.bits, question.k, question.alpha, question.beta, question.epsilon)
    first, *others = sorted(thresholds)
    n, threshold = bounds.labelled_sparse_histogram(*given, threshold=first), first
    for each in others:
        if labelled_sparse_histogram_beats(n, *given, threshold=each):
            n, threshold = bounds.labelled_sparse_histogram(*given, threshold=each), each
    budget: dict[str, Any] = {"epsilon": question.epsilon, "threshold": threshold}
    return Offer(
        n,
        lambda n: many_points.sparse_histogram_learner(bits=question.bits, k=question.k, **budget),
        "sparse_histogram_learner",
    )


def sparse_histogram_floor(question: Question) -> float:
    """The n at which the mean count of a point of mass alpha is the least threshold: before, half of these points are missed."""
    if question.alpha * question.beta >= 0.25:
        return 0.0
    least = bounds.least_sparse_threshold(question.bits + question.k, question.epsilon, question.beta * (1 - 2.0**-10))
    return (least - 1) / question.alpha * (1 - 1e-9)


def point_learner(question: Question) -> Offer:
    """MULTI Algorithm 5."""
    question.public_size()
    question.approximate()
    given: dict[str, Any] = {"epsilon": question.epsilon, "delta": question.delta, "beta": question.beta}
    n = bounds.point_learner_exact(question.alpha, **given)
    return Offer(
        n,
        lambda n: many_points.point_learner(bits=question.bits, k=question.k, alpha=question.alpha, **given),
        "point_learner",
    )


# ------------------------------------------------------------------------------------------------------------ thresholds


def _labels(question: Question, share: float) -> tuple[float, str]:
    """(what each label may spend of this share of the budget, by which composition)."""
    left, k = Guarantee(question.epsilon * share * SAFE, question.delta * share * SAFE, REPLACE_ONE), question.k
    labels = [(left.epsilon / k, "basic")]
    if left.delta > 0:
        labels += [(independent_each(left, k).epsilon, BOUNDED)]
    return max(labels)


def _generic_rows(question: Question, share: float, sanitizer: int, pieces: float) -> int:
    """GenericLearner's n by `bounds.generic_learner`, if labels have this share of the budget."""
    given = (sanitizer, 1, question.k, question.alpha, question.beta, _labels(question, share)[0])
    return math.ceil(bounds.generic_learner(*given, log_hypotheses=math.log(pieces)))


def _sanitizer(question: Question, most: float) -> Offer:
    """The distribution function that takes the fewest rows; UnavailableError if none takes at most `most`."""
    best, reason = None, f"above {most:g}"
    for candidate in distribution_functions.OF_QUANTILES:
        limit = most if best is None else min(most, best.n)
        if candidate.floor is not None and candidate.floor(question) > limit:
            continue
        try:
            offer = candidate.offer(question)
        except ValueError as without:  # its own theory may refuse numbers, too
            reason = str(without)
            continue
        best = offer if best is None or offer.n < best.n else best
    if best is None:
        raise UnavailableError(reason)
    return best


def generic_learner(question: Question) -> Offer:
    """Any quantiles that give the distribution function, at some shares of the budget; labels by the best composition."""
    question.public_size()
    plans: list[tuple[int, Any, str, str]] = []
    reason = ""
    for share in SANITIZER:
        part = dataclasses.replace(  # under REPLACE_ONE, as the whole
            question,
            epsilon=question.epsilon * share * SAFE,
            delta=question.delta * share * SAFE,
            alpha=question.alpha / 5,
            beta=question.beta / 5,
            # Ties must be broken among as many points: labels may need more of them than the sanitizer.
            n=question.n or generic.MOST_ROWS,
        )
        try:
            best = _sanitizer(part, min((plan[0] for plan in plans), default=math.inf))
        except UnavailableError as without:
            reason = str(without)
            continue
        sanitizer = best.make(best.n).release
        n = _generic_rows(question, 1 - share, best.n, len(sanitizer.quantiles.fractions) + 1)
        plans.append((n, sanitizer, _labels(question, 1 - share)[1], best.name))
    if not plans:
        raise UnavailableError(reason)
    n, sanitizer, accountant, name = min(plans, key=lambda plan: plan[0])
    if max(n, question.n or 0) > generic.MOST_ROWS:
        raise UnavailableError(f"takes at most {generic.MOST_ROWS} rows, got {max(n, question.n or 0)}")

    def made(n: int) -> Any:
        return generic.learner(
            sanitizer=sanitizer,
            concepts=generic.thresholds(bits=question.bits),
            k=question.k,
            epsilon=question.epsilon,
            delta=question.delta,
            accountant=accountant,
        )

    return Offer(n, made, f"generic, {name}")


def generic_floor(question: Question) -> float:
    """The n that labels alone need with nearly all of the budget and as few pieces as there may be."""
    return 0.99 * _generic_rows(question, 1.0, 1, 2.5 / question.alpha)


# -------------------------------------------------------------------------------------------------------------- parities


def parity_learner(question: Question) -> Offer:
    """MULTI Algorithm 4."""
    question.public_size()
    question.approximate()
    if question.bits > 1024:
        raise UnavailableError("up to 1024 bits")
    given: dict[str, Any] = {"bits": question.bits, "delta": question.delta}

    def least(epsilon: float) -> tuple[int, float, int]:
        size = bounds.parity_learner_size(**given, epsilon=epsilon, beta=question.beta)
        return bounds.parity_learner_exact(question.beta, size, **given, epsilon=epsilon), epsilon, size

    first, *smaller = question.epsilons()
    best = least(first)
    for each in reversed(smaller):  # one that is far too small is refused after one law
        if parity_learner_beats(best[0], **given, epsilon=each, beta=question.beta):
            best = least(each)
    n, epsilon, size = best
    return Offer(
        n, lambda n: parities.parity_learner(**given, epsilon=epsilon, k=question.k, size=size), "parity_learner"
    )


def _one_parity(question: Question) -> Offer:
    if question.bits > 16:
        raise UnavailableError("lists all parities: up to 16 bits")
    n = bounds.exponential_parities(question.bits, question.beta, question.epsilon)
    return Offer(
        math.ceil(n * (1 + 1e-12)),
        lambda n: one_parity.exponential(bits=question.bits, epsilon=question.epsilon),
        "exponential",
    )


OF_CONCEPT: dict[str, tuple[Candidate, ...]] = {
    "parities": (Candidate("parity_learner", parity_learner), _direct(Candidate("exponential", _one_parity))),
    "points": (
        Candidate("histogram_learner", histogram_learner),
        Candidate("point_learner", point_learner),
        Candidate("sparse_histogram_learner", sparse_histogram_learner, sparse_histogram_floor),
        *map(_direct, points.CANDIDATES),
    ),
    "thresholds": (*map(_direct, thresholds.CANDIDATES), Candidate("generic", generic_learner, generic_floor)),
}
