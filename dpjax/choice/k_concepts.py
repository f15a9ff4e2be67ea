"""k concepts from one sample: all k errors at most alpha except with probability beta.

- points, whatever the distribution and the points: `histogram_learner` and `point_learner` by their theorems, independent of k; without a
  delta `sparse_histogram_learner`, at the price of d + k; direct sums of the learners of one point (`dpjax.choice.points`).
- thresholds, whatever the distribution and the thresholds: direct sums of the learners of one threshold (`dpjax.choice.thresholds`), and
  GenericLearner (MULTI Lemma 36) on a sanitized distribution function, half of epsilon for each of its parts.
- parities, on uniform points: `parity_learner` by its exact law; direct sums of the exponential mechanism, up to 16 bits. They find the
  concepts themselves, so there is no alpha.

A direct sum gives each learner beta/k and the budget that basic composition leaves it, or optimal composition where that leaves more.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, closed_form_epsilon
from dpjax.bounds.frequencies import labelled_sparse_histogram_beats
from dpjax.bounds.parities import parity_learner_beats
from dpjax.choice import points, quantiles, thresholds
from dpjax.choice.base import MOST_DELTA, Candidate, Offer, Question, UnavailableError, optimal_each
from dpjax.learners import parities as one_parity
from dpjax.multi import direct_sum, generic, parities
from dpjax.multi import points as many_points
from dpjax.sanitizers import cdf

OWN = 0.5  # of delta for the learners themselves, where they need some
PURE = ("exponential", "hashed", "interior.threshold_learner")
MOST_OPTIMAL = 2**20  # the most concepts for which optimal composition is computed
_SAFE = 1.0 - 2.0**-40


def _budgets(question: Question, pure: bool) -> list[tuple[Guarantee, str]]:
    """What each learner may spend, and by which composition."""
    k, epsilon, delta = question.k, question.epsilon, question.delta
    found = [(Guarantee(epsilon / k * _SAFE, delta / k * _SAFE, REPLACE_ONE), "basic")]
    if delta > 0 and k <= MOST_OPTIMAL:
        shares = (0.0,) if pure else (OWN, 0.1) if delta > 1e-3 * epsilon else (OWN,)
        found += [(optimal_each(epsilon, delta, k, share), "optimal") for share in shares]
    return found


def _direct(single: Candidate) -> Candidate:
    def offer(question: Question) -> Offer:
        question.public_size()
        offers = []
        for each, composed in _budgets(question, single.name in PURE):
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
                accountant="optimal",
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

    known = single.floor is not None or single.name in PURE  # the offers of the latter are closed forms
    return Candidate(f"direct_sum, {single.name}", offer, floor if known else None)


def _most_each(question: Question) -> float:
    """Somewhat above what each of k mechanisms may spend.

    It is four times what zCDP leaves each, plus five times what gives a distance of delta in all (k fair coins with odds e^+-e have a
    distance of about e sqrt(k / (2 pi))), which matters where delta is not small compared with epsilon.
    """
    k, epsilon, delta = question.k, question.epsilon, question.delta
    if k == 1 or delta == 0.0:
        return epsilon + 5 * delta
    near = float(closed_form_epsilon(epsilon, min(delta, 1 - 2.0**-20), k))
    return min(4 * near + 5 * delta / math.sqrt(k), epsilon + 5 * delta)


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
    thresholds.add(
        bounds.least_sparse_threshold(size, question.epsilon, question.beta * (1 - 2.0**-10))
    )  # nearly all of it
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


def generic_learner(question: Question) -> Offer:
    """Recursive quantiles at the first three depths that alpha/5 leaves; labels by basic or optimal composition."""
    question.public_size()
    epsilon, delta = question.epsilon / 2 * _SAFE, question.delta / 2 * _SAFE
    alpha, beta, k = question.alpha / 5, question.beta / 5, question.k
    half = dataclasses.replace(question, epsilon=epsilon, delta=delta, beta=beta)  # under REPLACE_ONE, as the whole
    labels = [(epsilon / k, "basic")]
    if question.delta > 0:
        labels += [(optimal_each(epsilon, delta, k, 0.0).epsilon, "optimal")] if k <= MOST_OPTIMAL else []
    each_epsilon, accountant = max(labels)
    first = math.floor(math.log2(0.5 / alpha)) + 1
    plans: list[tuple[int, Any, str]] = []
    reason = "alpha asks for more than 12 levels"
    for depth in range(first, min(first + 3, 13)):
        left, known = alpha - 0.5 / 2**depth, math.log(2**depth)

        def size(ranks: float, left: float = left, known: float = known) -> int:
            given = (math.ceil(ranks / left), 1, k, question.alpha, question.beta, each_epsilon)
            return math.ceil(bounds.generic_learner(*given, log_hypotheses=known))

        try:
            most = min((plan[0] for plan in plans), default=math.inf)
            make, ranks, name = quantiles.recursive_plan(half, depth, size, most=most)
        except UnavailableError as without:  # here, too many points for their ties to be broken
            reason = str(without)
            continue
        plans.append((size(ranks), make, name))
    if not plans:
        raise UnavailableError(reason)
    n, make, name = min(plans, key=lambda plan: plan[0])
    if max(n, question.n or 0) > generic.MOST_ROWS:
        raise UnavailableError(f"takes at most {generic.MOST_ROWS} rows, got {max(n, question.n or 0)}")

    def made(n: int) -> Any:
        return generic.learner(
            sanitizer=cdf.release(quantiles=make()),
            concepts=generic.thresholds(bits=question.bits),
            k=k,
            epsilon=question.epsilon,
            delta=question.delta,
            accountant=accountant,
        )

    return Offer(n, made, f"generic, {name}")


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
    "thresholds": (*map(_direct, thresholds.CANDIDATES), Candidate("generic", generic_learner)),
}
