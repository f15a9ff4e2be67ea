"""How many examples suffice where only the labels are private (BNS §6.1), with explicit constants; floats.

The exponential mechanism chooses among hypotheses that are found in one of two ways; neither sample size depends on the domain. If the
labels are those of a target in the class:

* `label_private`: BNS Theorem 6.2, the dichotomies of n points whose labels are ignored. The proof needs three events.
  E1: a hypothesis that agrees with the target on the n points errs on at most a/8 of the distribution except with probability b/4, by
  Theorem 2.13 at (a/8, b/4), so n = (64/a) (VC ln(128/a) + ln(8/b)); the paper has that theorem at a/4. Then it errs on at most a/4 of the
  other r = m - n examples except with probability exp(-r a/24) <= b/4 (Chernoff).
  E2: a hypothesis of error above a errs on at most a/2 of the r examples with probability exp(-r a/8) at most, and there are |H|.
  E3: the exponential mechanism on the r examples loses at most a/4 except with probability |H| exp(-eps a r/8) (Proposition 2.26 (ii)). The
  paper has m for r in E2 and E3, and 2^n for |H|, which by Sauer's lemma is at most sum_(i <= VC) C(n, i).
* `label_private_whole`: the dichotomies of all m points, whose labels all count too. Points are public, so nothing needs to be set aside. H
  contains a hypothesis without an error on the sample. The exponential mechanism loses at most a/2 except with probability
  |H| exp(-eps a m/4) <= b/2. Except with probability 4 Pi(2m) exp(-a m/16) <= b/2, no concept with error at most a/2 on the sample has
  error above a on the distribution (relative deviations, Vapnik; Anthony and Shawe-Taylor 1993, Theorem 2.1, with nu = sqrt(a)/2), where Pi
  is Sauer's bound.

If labels are arbitrary (BNS do not treat this) and the error is to be at most a above that of the best concept c of the class:

* `label_private_agnostic`: a hypothesis that agrees with c on the n points differs from it on at most a/4 of the distribution except with
  probability b/4, by Theorem 2.13 with c as the target: n = (32/a) (VC ln(64/a) + ln(8/b)). H depends on the n points only, so its errors
  on the other r examples are all within a/4 of the true ones except with probability 2|H| exp(-r a^2/8) <= b/2 (Hoeffding), and the
  exponential mechanism loses at most a/4 except with probability b/4. a/4 + a/4 + 2 a/4 = a.
* `label_private_agnostic_whole`: H is as good on the m examples as the class; the exponential mechanism loses at most a/2 except with
  probability b/2. Except with probability b/4, no concept's error is more than sqrt(2 ln Pi(m) / m) + sqrt(ln(4/b) / 2m) above that on the
  sample (Rademacher averages, Massart's lemma: Mohri, Rostamizadeh, Talwalkar, "Foundations of Machine Learning", Corollary 3.9). Except
  with probability b/4, c's sample error is no more than sqrt(ln(4/b) / 2m) above its own (Hoeffding). These deviations add up to a/2 at
  m = (8/a^2) (sqrt(ln Pi(m)) + sqrt(ln(4/b)))^2.

Here setting points aside is cheaper, as a union bound over few hypotheses beats one over the dichotomies of the class on the sample itself.
"""

import math
from collections.abc import Iterable

from dpjax.bounds.learning import realizable, square
from dpjax.bounds.mechanisms import exponential_mechanism
from dpjax.core import arguments, bisection

_MOST_TERMS = 2**20  # of a sum that are added up


def log_dichotomies(points: int, vc: int) -> float:
    """ln of the largest number of ways in which a class of VC dimension `vc` can label `points` points (Sauer's lemma).

    Example:
        >>> [round(math.exp(log_dichotomies(4, vc))) for vc in (1, 2, 4)]
        [5, 11, 16]
    """
    arguments.counts(points=points, vc=vc)
    if vc >= points:
        return points * math.log(2.0)
    from scipy import special  # slow to import

    largest = min(
        vc, points // 2
    )  # where binomial coefficients up to vc are largest; away from there they fall ever faster
    logarithm = -math.log1p(points) - float(special.betaln(points - largest + 1, largest + 1))
    below = _relative_sum(i / (points - i + 1) for i in range(largest, 0, -1))
    above = _relative_sum((points - i) / (i + 1) for i in range(largest, min(vc, points)))
    return logarithm + math.log(1.0 + below + above)


def _relative_sum(ratios: Iterable[float]) -> float:
    """The sum of the terms after a first term of 1, from the decreasing ratios of consecutive terms: to the last digit, or from above.

    Of n terms near the middle about 6 sqrt(n) matter. From `_MOST_TERMS` on, for n beyond 10^10, a geometric series bounds the rest: of a
    logarithm of about n it moves the last digits.
    """
    term, total = 1.0, 0.0
    for number, ratio in enumerate(ratios):
        if number == _MOST_TERMS:
            return total + term * ratio / max(1.0 - ratio, 2.0**-53)
        term *= ratio
        total += term
        if term < 1e-18 * total:
            break
    return total


def _log_hypotheses(points: int, vc: int, log_concepts: float | None) -> float:
    """ln|H|: by Sauer's lemma, or that of all concepts of the class if this is known and smaller."""
    if log_concepts is None:
        return log_dichotomies(points, vc)
    return min(log_dichotomies(points, vc), arguments.number("log_concepts", log_concepts, above=0.0))


def _check_concepts(log_concepts: float | None) -> None:
    """Refuses ln|C| <= 0 by its name, before a search takes the refusal for a sign of too few rows."""
    if log_concepts is not None:
        arguments.number("log_concepts", log_concepts, above=0.0)


def label_private_unlabelled(vc: int, alpha: float, beta: float, *, calibration: str = "proved") -> float:
    """n of BNS Theorem 6.2, the examples whose labels are ignored; see the module.

    Example:
        >>> round(label_private_unlabelled(1, 0.1, 0.1)), round(label_private_unlabelled(1, 0.1, 0.1, calibration="printed"))
        (7383, 3470)
    """
    arguments.choice("calibration", calibration, ("printed", "proved"))
    arguments.fractions(alpha=alpha, beta=beta)
    return realizable(vc, alpha / (4 if calibration == "printed" else 8), beta / 4)


def label_private(
    vc: int,
    alpha: float,
    beta: float,
    epsilon: float,
    *,
    unlabelled: int | None = None,
    log_concepts: float | None = None,
    calibration: str = "proved",
) -> float:
    """m of BNS Theorem 6.2, all examples of the label-private learner; see the module.

    Args:
        vc: VC dimension of the class, >= 1.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.
        unlabelled: n, at least `label_private_unlabelled`, which is the default; for "proved" only.
        log_concepts: ln|C|, where that may be less than Sauer's bound; for "proved" only.
        calibration: "proved", or "printed": (768/(a^2 eps)) (VC ln(64/a) + 2 ln(8/b)).

    Returns:
        Number of examples, n among them.

    Raises:
        TypeError, ValueError: an argument out of range; an n that is too small for E1.

    Example:
        >>> round(label_private(1, 0.1, 0.1, 1.0)), round(label_private(1, 0.1, 0.1, 1.0, calibration="printed"))
        (8392, 1169320)
    """
    least = label_private_unlabelled(vc, alpha, beta, calibration=calibration)
    arguments.positive(epsilon=epsilon)
    if calibration == "printed":
        if unlabelled is not None or log_concepts is not None:
            raise ValueError(
                f'unlabelled and log_concepts must be absent with calibration="printed", got {unlabelled!r}, {log_concepts!r}'
            )
        return 768 / (square(alpha=alpha) * epsilon) * (vc * math.log(64 / alpha) + 2 * math.log(8 / beta))
    n = _set_aside(least, alpha, beta, unlabelled)
    log_hypotheses = _log_hypotheses(n, vc, log_concepts)
    first = 24 / alpha * math.log(4 / beta)
    second = 8 / alpha * (log_hypotheses + math.log(4 / beta))
    third = exponential_mechanism(log_hypotheses, alpha / 4, beta / 4, epsilon)
    return n + max(first, second, third)


def label_private_agnostic(
    vc: int,
    alpha: float,
    beta: float,
    epsilon: float,
    *,
    unlabelled: int | None = None,
    log_concepts: float | None = None,
) -> float:
    """Examples, n of them without labels, after which the error is at most the best of the class + alpha, for any labels; see the module.

    Args:
        vc: VC dimension of the class, >= 1.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon: > 0.
        unlabelled: n, at least the one in the module, which is the default.
        log_concepts: ln|C|, where that may be less than Sauer's bound.

    Raises:
        TypeError, ValueError: an argument out of range; an n that is too small.

    Example:
        >>> round(label_private_agnostic(1, 0.1, 0.1, 1.0)), round(label_private_agnostic(1, 0.1, 0.1, 0.01))
        (12943, 98199)
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    n = _set_aside(realizable(vc, alpha / 4, beta / 4), alpha, beta, unlabelled)
    log_hypotheses = _log_hypotheses(n, vc, log_concepts)
    deviation = 8 / square(alpha=alpha) * (log_hypotheses + math.log(4 / beta))
    return n + max(deviation, exponential_mechanism(log_hypotheses, alpha / 4, beta / 4, epsilon))


def _set_aside(least: float, alpha: float, beta: float, unlabelled: int | None) -> int:
    """n, refused if it is less than the proof requires."""
    n = math.ceil(least) if unlabelled is None else arguments.integer("unlabelled", unlabelled, at_least=1)
    if n < least:
        raise ValueError(f"unlabelled must be >= {math.ceil(least)} for alpha = {alpha} and beta = {beta}, got {n}")
    return n


def label_private_whole(
    vc: int, alpha: float, beta: float, epsilon: float, *, log_concepts: float | None = None
) -> float:
    """Examples for the exponential mechanism on all labels over the dichotomies of all points; see the module.

    Example:
        >>> round(label_private_whole(1, 0.1, 0.1, 1.0)), round(label_private_whole(1, 0.1, 0.1, 0.1))
        (2031, 4570)
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    _check_concepts(log_concepts)

    def enough(m: int) -> bool:
        deviation = 16 / alpha * (_log_hypotheses(2 * m, vc, log_concepts) + math.log(8 / beta))
        chosen = exponential_mechanism(_log_hypotheses(m, vc, log_concepts), alpha / 2, beta / 2, epsilon)
        return m >= max(deviation, chosen)

    # ln Pi(m) is concave: once m is large enough, it remains so
    return float(bisection.least_rows(enough, 1, vc=vc, alpha=alpha, epsilon=epsilon))


def label_private_agnostic_whole(
    vc: int, alpha: float, beta: float, epsilon: float, *, log_concepts: float | None = None
) -> float:
    """Examples after which the error is at most the best of the class + alpha, for any labels, all of which count; see the module.

    Example:
        >>> round(label_private_agnostic_whole(1, 0.1, 0.1, 1.0))
        20582
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    squared = square(alpha=alpha)
    _check_concepts(log_concepts)

    def enough(m: int) -> bool:
        log_hypotheses = _log_hypotheses(m, vc, log_concepts)
        deviation = 8 / squared * (math.sqrt(log_hypotheses) + math.sqrt(math.log(4 / beta))) ** 2
        return m >= max(deviation, exponential_mechanism(log_hypotheses, alpha / 2, beta / 2, epsilon))

    return float(bisection.least_rows(enough, 1, vc=vc, alpha=alpha, epsilon=epsilon))
