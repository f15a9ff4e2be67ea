"""How many examples suffice for k concepts of any class at once, agnostically (MULTI §4.1), with explicit constants; floats.

The learners are proper agnostic PAC k-learners; for neighbours, one example is replaced. There are two ways: the exponential mechanism over
the whole class, k times (Corollary 34), or one sanitized database for all labels and the exponential mechanism over the dichotomies of the
class on it (Lemmas 35, 36).

Lemma 36 counts 2^|B| hypotheses on the |B| points of the sanitized database, hence VC ln(1/alpha)/(alpha^3 eps') there and in
Corollaries 37 and 38. By Sauer's lemma there are at most (e |B|/VC)^VC; the term becomes VC ln(1/alpha)/(alpha eps'), which is used here.
"""

import math

from dpjax.bounds.frequencies import point_release
from dpjax.bounds.learning import square
from dpjax.bounds.mechanisms import exponential_mechanism
from dpjax.bounds.multi import generic_learner
from dpjax.bounds.sanitizers import (
    approximating_rows,
    blr,
    multiplicative_weights,
    point_rows,
    private_multiplicative_weights,
    threshold_sanitizer,
)
from dpjax.core import arguments, bisection


def finite_class(log_concepts: float, alpha: float, beta: float, epsilon: float) -> float:
    """Examples for one concept of a finite class: agnostic, proper and purely private (MULTI Theorem 27, Kasiviswanathan et al.).

    Except with probability beta/2, the exponential mechanism over the class is within alpha/2 of the best empirical error (BNS Proposition
    2.26 (ii)), and except with probability beta/2 all empirical errors are correct to alpha/4 (Hoeffding):

        max{ (4/(a eps)) ln(2|C|/b), (8/a^2) ln(4|C|/b) }.

    Args:
        log_concepts: ln|C|, > 0.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon: > 0.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(finite_class(4 * math.log(2), 0.2, 0.1, 0.5))
        1292
    """
    arguments.positive(log_concepts=log_concepts)
    arguments.fractions(alpha=alpha, beta=beta)
    private = exponential_mechanism(log_concepts, alpha / 2, beta / 2, epsilon)
    return max(private, 8 / square(alpha=alpha) * (log_concepts + math.log(4 / beta)))


def each_epsilon(concepts: int, epsilon: float, delta: float = 0.0) -> float:
    """epsilon' of each of k pure mechanisms that together cost epsilon, or (epsilon, delta) (MULTI Theorem 17).

    It is epsilon/k; with delta > 0, the larger of this and the solution e of sqrt(2 k ln(1/delta)) e + 2 k e^2 = epsilon.

    Example:
        >>> each_epsilon(10, 1.0), round(each_epsilon(10**4, 1.0, 1e-6), 5)
        (0.1, 0.00178)
    """
    arguments.counts(concepts=concepts)
    arguments.positive(epsilon=epsilon)
    arguments.number("delta", delta, at_least=0.0, below=1.0)
    if delta == 0.0:
        return epsilon / concepts
    linear = math.sqrt(-2.0 * concepts * math.log(delta))
    return max(epsilon / concepts, 2.0 * epsilon / (linear + math.sqrt(linear**2 + 8.0 * concepts * epsilon)))


def vc_of_differences(vc: int) -> int:
    """The largest VC dimension that {f xor g : f, g in C} can have: it has at most (sum_(i <= VC) C(n, i))^2 dichotomies on n points.

    It is never below the true one, which is 2 for points and for thresholds.

    Example:
        >>> [vc_of_differences(vc) for vc in (1, 2, 10)]
        [5, 13, 82]
    """
    arguments.integer("vc", vc, at_least=1, at_most=2**10)  # with numbers of thousands of digits already

    def too_many(n: int) -> bool:
        return sum(math.comb(n, i) for i in range(vc + 1)) ** 2 < 2**n

    return bisection.least_int(too_many, 2 * vc) - 1


def direct_sum(
    log_concepts: float, concepts: int, alpha: float, beta: float, epsilon: float, delta: float = 0.0
) -> float:
    """Examples for k learners side by side: `finite_class` at epsilon' and beta/k (MULTI Corollary 34, Observation 32).

    Args:
        log_concepts: ln|C|, > 0.
        concepts: k.
        alpha, beta: excess error of every hypothesis, and failure probability of all of them together.
        epsilon, delta: total privacy; pure if delta is 0.

    Example:
        >>> round(direct_sum(64 * math.log(2), 1, 0.1, 0.1, 1.0)), round(direct_sum(64 * math.log(2), 100, 0.1, 0.1, 1.0))
        (38440, 207849)
    """
    each = each_epsilon(concepts, epsilon, delta)
    arguments.fractions(beta=beta)
    return finite_class(log_concepts, alpha, beta / concepts, each)


def generic_pure(
    log_domain: float, vc: int, concepts: int, alpha: float, beta: float, epsilon: float, *, delta: float = 0.0
) -> float:
    """Examples for GenericLearner on a BLR database: VC log|X| + k VC + k log k (MULTI Lemma 35; sqrt(k) for k with delta > 0).

    Half of epsilon sanitizes the points for symmetric differences (`vc_of_differences`), within alpha/5 except with probability beta/5; the
    other half goes to the k labels (`each_epsilon`). On the R rows of that database the class has at most (e R/VC)^VC dichotomies: |H| in
    Lemma 36.

    Args:
        log_domain: ln|X|, > 0.
        vc: VC dimension of the class.
        concepts: k.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon, delta: total privacy; pure if delta is 0.

    Returns:
        Number of examples; inf if it is more than float64 can hold.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{generic_pure(64 * math.log(2), 1, 100, 0.1, 0.1, 1.0):.1e}"
        '1.1e+11'
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)
    differences = vc_of_differences(vc)
    m = blr(log_domain, differences, alpha / 5.0, beta / 5.0, epsilon / 2.0)
    return _generic(m, approximating_rows(differences, alpha / 10.0), vc, concepts, alpha, beta, epsilon, delta)


def generic_weights(
    log_domain: float,
    log_concepts: float,
    vc: int,
    concepts: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
) -> float:
    """Examples for GenericLearner on a database of private multiplicative weights (MULTI Lemma 35, its approximate half).

    They are of order sqrt(log|X|) log|C| + sqrt(k) (VC + log k). Half of (epsilon, delta) sanitizes the points for |C|^2 symmetric
    differences, within alpha/10 except with probability beta/5, in T = 2 ln|X| / (alpha/10)^2 rounds (`private_multiplicative_weights`).
    At the cost of another alpha/10 the database is reduced to R = `approximating_rows` rows, on which the class has at most (e R/VC)^VC
    dichotomies. The other half goes to the k labels (`each_epsilon`).

    Args:
        log_domain, log_concepts: ln|X| and ln|C|, > 0.
        vc: VC dimension of the class.
        concepts: k.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon, delta: total privacy, delta in (0, 1).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example: 2^64 points and as many thresholds; BLR in its place needs far more.
        >>> log = 64 * math.log(2)
        >>> f"{generic_weights(log, log, 1, 1, 0.1, 0.1, 1.0, 1e-6):.1e}", f"{generic_pure(log, 1, 1, 0.1, 0.1, 1.0, delta=1e-6):.1e}"
        ('4.5e+08', '1.1e+11')
    """
    arguments.positive(log_domain=log_domain, log_concepts=log_concepts, epsilon=epsilon)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    within, half = alpha / 10.0, (epsilon / 2.0, delta / 2.0)
    rounds = math.ceil(2.0 * log_domain / square(alpha=within))
    log_candidates = math.log(2.0) + 2.0 * log_concepts
    m = private_multiplicative_weights(
        log_domain, log_candidates, rounds, within, beta / 5.0, each_epsilon(rounds, *half)
    )
    rows = approximating_rows(vc_of_differences(vc), within)
    return _generic(m, rows, vc, concepts, alpha, beta, epsilon, delta / 2.0)


def any_class(
    log_domain: float,
    log_concepts: float,
    vc: int,
    concepts: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float = 0.0,
    *,
    constant: float | None = None,
) -> float:
    """Examples for k concepts of any finite class: the best of the ways of MULTI Theorem 31.

    Pure privacy takes min{k log|C|, (k + log|X|) VC} + k log k: the smaller of `direct_sum` and `generic_pure`, with their constants. With
    delta > 0, both have sqrt(k) for k, and if `constant` is given, GenericLearner on a database of private multiplicative weights, sqrt(k)
    VC + sqrt(log|X|) log|C|, is considered too; no paper here states its constant (`multiplicative_weights`). It is not for pure learners.

    Args:
        log_domain, log_concepts: ln|X| and ln|C|, > 0.
        vc: VC dimension of the class.
        concepts: k.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon, delta: total privacy.
        constant: the constant of private multiplicative weights, > 0, or None.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example: 2^4096 points and as many thresholds.
        >>> f"{any_class(2839.2, 2839.2, 1, 10, 0.1, 0.1, 1.0):.1e}", f"{any_class(2839.2, 2839.2, 1, 10**9, 0.1, 0.1, 1.0):.1e}"
        ('2.3e+06', '8.3e+12')
    """
    ways = [
        direct_sum(log_concepts, concepts, alpha, beta, epsilon, delta),
        generic_pure(log_domain, vc, concepts, alpha, beta, epsilon, delta=delta),
    ]
    if constant is not None:
        arguments.positive(constant=constant)
    if constant is not None and delta > 0.0:
        half = {"epsilon": epsilon / 2.0, "delta": delta / 2.0}
        m = multiplicative_weights(log_domain, 2.0 * log_concepts, alpha / 5.0, beta / 5.0, **half, constant=constant)
        rows = approximating_rows(vc_of_differences(vc), alpha / 5.0)
        ways.append(_generic(m, rows, vc, concepts, alpha, beta, epsilon, delta / 2.0))
    return min(ways)


def generic_points(
    concepts: int, alpha: float, beta: float, epsilon: float, delta: float, label_epsilon: float
) -> float:
    """Examples for k points by GenericLearner: ln(1/(a b d))/(a eps) + ln(k/b)/(a eps') + ln(k/(a b))/a^2 (MULTI Corollary 37).

    The sanitizer is Algorithm 2. A symmetric difference is two points, so the database must be within alpha/5 for every point, which takes
    answers within alpha/20 and R = `point_rows` = 10/alpha rows. On these, points have R + 1 dichotomies (the ln of which replaces the
    paper's 1/alpha^2). The learner is (eps + k eps', delta)-private; the k labels may also be composed as in `each_epsilon`.

    Args:
        concepts: k.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon, delta: of the sanitizer.
        label_epsilon: eps' of one label.

    Returns:
        Number of examples, whatever the domain is.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(generic_points(100, 0.1, 0.1, 0.5, 1e-6, 0.005))
        2497163
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(label_epsilon=label_epsilon)
    m = point_release(epsilon, delta, alpha / 20.0, beta / 5.0)
    rows = point_rows(alpha / 5.0, alpha / 20.0)
    return generic_learner(m, 1, concepts, alpha, beta, label_epsilon, log_hypotheses=math.log(rows + 1))


def generic_thresholds(
    log_star: int,
    concepts: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    label_epsilon: float,
    *,
    constant: float = 1.0,
) -> float:
    """Growth of the examples for k thresholds by GenericLearner, 2^log*|X| + k (MULTI Corollary 38): only the sanitizer's constant is open.

    The sanitizer is `threshold_sanitizer` at alpha/10 (a symmetric difference is an interval, that is two thresholds). Its database
    consists of ceil(5/alpha) quantiles, which adds another alpha/10; on R points thresholds have R + 1 dichotomies.

    Args:
        log_star: log*|X| >= 1.
        concepts: k.
        alpha, beta: excess error and failure probability, in (0, 1).
        epsilon, delta: of the sanitizer.
        label_epsilon: eps' of one label.
        constant: the sanitizer's constant (Proposition 26), which no paper here states.

    Returns:
        Number of examples, up to that constant.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> at = {"epsilon": 0.5, "delta": 1e-6, "label_epsilon": 0.005, "constant": 1e-3}
        >>> [round(generic_thresholds(5, k, 0.1, 0.1, **at)) for k in (1, 10**6)]
        [1760336, 3970818]
    """
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(label_epsilon=label_epsilon)
    m = threshold_sanitizer(log_star, alpha / 10.0, beta / 5.0, epsilon, delta, constant=constant)
    rows = math.ceil(5.0 / alpha)
    return generic_learner(m, 1, concepts, alpha, beta, label_epsilon, log_hypotheses=math.log(rows + 1))


def _generic(
    m: float, rows: int, vc: int, concepts: int, alpha: float, beta: float, epsilon: float, delta: float
) -> float:
    """The examples by Lemma 36, with half of epsilon for the labels; inf if the sanitizer's m is more than float64 can hold."""
    each = each_epsilon(concepts, epsilon / 2.0, delta)
    if math.isinf(m):
        return m
    done = vc * (1.0 + math.log(max(rows, vc) / vc))
    return generic_learner(m, vc, concepts, alpha, beta, each, log_hypotheses=done)
