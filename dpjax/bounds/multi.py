"""Sample sizes for learning k concepts at once (MULTI): numbers of examples, as floats."""

import math
from collections.abc import Callable

from dpjax.bounds.learning import square
from dpjax.core import arguments, bisection

_LARGEST_EXPONENT = 709.78  # exp of anything larger is infinite


def empirical_to_pac(
    vc: int, alpha: float, beta: float, *, concepts: int = 1, agnostic: bool = False, calibration: str = "proved"
) -> float:
    """Examples on which an (alpha, b)-accurate empirical k-learner is a (2 alpha, b + beta)-accurate PAC one (MULTI Theorem 12).

    Not agnostic: (32/a)(VC ln(32/a) + ln(8/beta)), VC that of H xor C. Agnostic, printed: (64/a^2)(VC ln(6/a) + ln(8k/beta)), VC that of H.
    The proof of the agnostic half uses that empirical errors are correct to alpha, which gives 3 alpha: the learner's excess, a deviation
    for the hypothesis and one for the best concept. "proved" takes a deviation of 0.9 alpha for all hypotheses, except with probability
    beta/2, and 0.1 alpha for the k best concepts. These do not depend on the sample: by Hoeffding's bound 50 ln(2k/beta)/alpha^2 examples
    are enough for them, and the number returned is always larger.

    Args:
        vc: VC dimension, >= 1.
        alpha, beta: error, and failure probability of generalization, in (0, 1).
        concepts: k; plays no part unless agnostic.
        agnostic: whether labels are arbitrary.
        calibration: "printed" or "proved"; they differ in the agnostic case.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(empirical_to_pac(1, 0.05, 0.1))
        6940
    """
    arguments.counts(vc=vc, concepts=concepts)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.calibration(calibration)
    if not arguments.flag("agnostic", agnostic):
        return 32.0 / alpha * (vc * math.log(32.0 / alpha) + math.log(8.0 / beta))
    deviation, share = (alpha, beta) if calibration == "printed" else (0.9 * alpha, beta / 2.0)
    return 64.0 / square(alpha=deviation) * (vc * math.log(6.0 / deviation) + math.log(8.0 * concepts / share))


def generic_learner(
    sanitizer: float,
    vc: int,
    concepts: int,
    alpha: float,
    beta: float,
    each_epsilon: float,
    *,
    constant: float = 1.0,
    log_hypotheses: float | None = None,
) -> float:
    """Examples for GenericLearner: max{ m, (64/a'^2)(VC ln(6/a') + ln(20k/b)), (10/(a e'))(B + ln(5k/b)) }, a' = a/5 (MULTI Lemma 36).

    E2 follows from Theorem 9 at alpha/5 with failure 2 beta/(5k) per label, and E3 from the exponential mechanism over |H| <= 2^B concepts,
    where B, the size of the sanitized database, is constant * VC ln(1/a) / a^2 (the paper's O).

    Args:
        sanitizer: m, the number of examples that the sanitizer requires.
        vc: VC dimension of the class, >= 1.
        concepts: k.
        alpha, beta: error and failure probability, in (0, 1).
        each_epsilon: epsilon' of one label.
        constant: the constant in B, which the paper leaves out.
        log_hypotheses: ln|H| where it is known, instead of B ln 2. (By Sauer's lemma it is at most VC ln(e R/VC) on R points.)

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> generic_learner(1e3, 1, 100, 0.1, 0.1, 0.01) > generic_learner(1e3, 1, 10, 0.1, 0.1, 0.01)
        True
    """
    arguments.counts(vc=vc, concepts=concepts)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(sanitizer=sanitizer, each_epsilon=each_epsilon, constant=constant)
    part = alpha / 5.0
    seen = 64.0 / square(alpha=part) * (vc * math.log(6.0 / part) + math.log(20.0 * concepts / beta))
    size = constant * vc * math.log(1.0 / alpha) / alpha**2 * math.log(2.0)
    if log_hypotheses is not None:
        arguments.positive(log_hypotheses=log_hypotheses)
        size = log_hypotheses
    chosen = 10.0 / (alpha * each_epsilon) * (size + math.log(5.0 * concepts / beta))
    return max(sanitizer, seen, chosen)


def parity_learner(bits: int, beta: float, epsilon: float, delta: float, *, constant: float = 1.0) -> float:
    """Examples for ParityLearner under the uniform distribution: constant (d/eps) ln(1/(beta delta)) (MULTI Theorem 39, Algorithm 4).

    The size does not depend on k. The theorem's statement, d ln(1/b) + ln(1/(b d)) / eps, is smaller than what its proof and Algorithm 4
    require: m = O(ln(1/(b d)) / eps) subsamples of O(d) examples each.

    Example:
        >>> round(parity_learner(256, 0.1, 1.0, 1e-6))
        4126
    """
    arguments.counts(bits=bits)
    arguments.fractions(beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon, constant=constant)
    return constant * bits / epsilon * -(math.log(beta) + math.log(delta))


def point_learner(alpha: float, beta: float, epsilon: float, delta: float, *, constant: float = 1.0) -> float:
    """Examples for PointLearner: constant / (alpha eps) ln(1/(alpha beta delta)) (MULTI Theorem 40), whatever k and the domain are.

    Example:
        >>> round(point_learner(0.1, 0.1, 1.0, 1e-6))
        184
    """
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon, constant=constant)
    return constant / (alpha * epsilon) * -(math.log(alpha) + math.log(beta) + math.log(delta))


def pure_packing(concepts: int, epsilon: float) -> float:
    """Examples every epsilon-private k-learner needs, of any class with two concepts, at beta = 1/2: ln(2^k - 1) / eps (MULTI Theorem 52).

    Example:
        >>> round(pure_packing(100, 1.0), 1)
        69.3
    """
    arguments.counts(concepts=concepts)
    arguments.positive(epsilon=epsilon)
    return _log_power_of_two_less_one(concepts) / epsilon


def pure_parities(concepts: int, bits: int, epsilon: float) -> float:
    """Examples every epsilon-private k-learner of parities needs: ln(2^(kd) - 1) / eps (MULTI Theorem 55).

    It is for uniform examples, error below 1/4 and beta = 1/2.

    Example:
        >>> round(pure_parities(10, 8, 1.0), 1)
        55.5
    """
    arguments.counts(concepts=concepts, bits=bits)
    arguments.positive(epsilon=epsilon)
    return _log_power_of_two_less_one(concepts * bits) / epsilon


def fingerprinting_delta(users: int, xi: float, beta: float, epsilon: float) -> float:
    """The delta below which a code of security xi forbids n examples: (1 - xi - beta)/n - exp(eps) xi (MULTI Theorems 43, 47).

    If there is an (n, k)-fingerprinting code of security xi, no (alpha <= 1/3, beta)-accurate (eps, delta)-private empirical k-learner
    with delta below this exists for n examples. If it is negative, nothing follows.

    Example:
        >>> round(fingerprinting_delta(10, 1e-4, 0.1, 1.0), 3)
        0.09
    """
    arguments.counts(users=users)
    arguments.fractions(xi=xi, beta=beta)
    arguments.positive(epsilon=epsilon)
    return (1.0 - xi - beta) / users - (math.exp(epsilon) if epsilon < _LARGEST_EXPONENT else math.inf) * xi


def fingerprinting_thresholds(
    concepts: int, xi: float, *, alpha: float = 1 / 3, domain: int | None = None, calibration: str = "proved"
) -> float:
    """Examples that k thresholds need under approximate privacy, by the Boneh-Shaw code (MULTI Lemma 45, Corollary 46).

    Let n be the largest number of users for which a code compatible with thresholds has at most k columns, of order (k / ln(k/xi))^(1/3),
    and at most |X| - 1, as there must be the users' points and one for padding (Remark 44). No (alpha, beta)-accurate (eps, delta)-private
    EMPIRICAL k-learner exists for fewer examples than returned if delta is below `fingerprinting_delta(n)`; for a PAC learner divide by
    `rows_of_empirical`.

    printed: n/(3 alpha) with k >= 2 n^3 ln(2n/xi), as Remark 44 and Lemma 45 state them. The code of that length, n - 1 types of column
    with B = ceil(2 n^2 ln(2n/xi)) copies, is sound for feasible words only. Theorem 43 traces the word that the learner makes without user
    i, and nothing says that it is feasible: no threshold labels her nonce row in that way, so the learner need not be accurate there. (A
    coalition that writes a one in every column frames user 1 with certainty: `dpjax.fingerprinting.boneh_shaw`.)

    proved: ceil(n/2)/alpha with (n + 1) B <= k and n >= 2. The remark reads the word off all N rows of the padded database; here it is read
    off the users' n rows. On a column that is constant on these, an alpha-accurate hypothesis is wrong on at most alpha N of them, so their
    majority is right if alpha N < ceil(n/2). The code is the one padded with the constant columns. It certainly accuses somebody if the
    word is feasible, and user i with probability at most xi/(2n) for every word made without her. So some user is accused with probability
    at least (1 - beta)/n on all users' database, hence (1 - beta)/n <= exp(eps) xi/(2n) + delta, which contradicts delta <
    `fingerprinting_delta`. More than (n + 1) B concepts are no easier: the others are ignored. Both constants must be thresholds on n
    points, as on a domain of n + 1.

    Args:
        concepts: k.
        xi: security of the code, in (0, 1).
        alpha: error, in (0, 1/2); at most 1/3 for the printed one.
        domain: |X| >= 2; as large as is needed if absent.
        calibration: "proved" or "printed".

    Returns:
        Number of examples; no learner exists for fewer. 0 where no code is so short.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> fingerprinting_thresholds(10**6, 1e-3), fingerprinting_thresholds(10**6, 1e-3, calibration="printed")
        (54.0, 35.0)
        >>> fingerprinting_thresholds(200, 1e-3), fingerprinting_thresholds(200, 1e-3, calibration="printed")
        (0.0, 2.0)
    """
    arguments.counts(concepts=concepts)
    arguments.fractions(xi=xi)
    if arguments.calibration(calibration) == "printed":
        n = _largest(lambda n: 2.0 * n**3 * math.log(2.0 * n / xi) <= concepts)
    else:
        n = _largest(lambda n: (n + 1) * math.ceil(2.0 * n**2 * math.log(2.0 * n / xi)) <= concepts)
    if domain is not None:
        n = min(n, arguments.integer("domain", domain, at_least=2) - 1)
    if calibration == "printed":
        return _printed_padding(n, alpha)
    wrong = -(-n // 2) if n >= 2 else 0  # the least number of wrong answers that flips a bit
    return wrong / arguments.number("alpha", alpha, above=0.0, below=0.5)


def fingerprinting_agnostic(concepts: int, xi: float, *, alpha: float = 1 / 3, calibration: str = "proved") -> float:
    """Examples that k concepts of any class need agnostically, by the Tardos code (Theorem 47, Proposition 49, Corollary 50).

    Let n be the largest number of users with k >= A n^2 ceil(ln(n/xi)), of order sqrt(k / ln(k/xi)); it is 0 below 3 users (4 for the
    printed one), for whom the code is not proved to be complete. All users' examples are at one point, so the domain's size plays no part;
    more than n rows need two concepts that agree somewhere (Remark 48). It is for EMPIRICAL k-learners, and for deltas below
    `fingerprinting_delta(n)`, as `fingerprinting_thresholds` is.

    printed: n/(3 alpha) and Tardos's own A = 100. proved: n/alpha and A = 30, that of his code with symmetric scores
    (`dpjax.fingerprinting.tardos`). A hypothesis has one answer at the users' point. On a column where all users' labels are equal the
    other answer is wrong on all their n of N rows, and some concept on none, so an alpha-accurate hypothesis is right if alpha N < n.

    Args:
        concepts: k.
        xi: security of the code, in (0, 1).
        alpha: error, in (0, 1); at most 1/3 for the printed one.
        calibration: "proved" or "printed".

    Returns:
        Number of examples; no learner exists for fewer. 0 where no code is so short.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(fingerprinting_agnostic(10**6, 1e-3)), fingerprinting_agnostic(10**6, 1e-3, calibration="printed")
        (165, 30.0)
    """
    n = _tardos_users(concepts, xi, calibration)
    if calibration == "printed":
        return _printed_padding(n, alpha)
    return n / arguments.number("alpha", alpha, above=0.0, below=1.0)


def fingerprinting_thresholds_pac(
    concepts: int,
    xi: float,
    epsilon: float,
    *,
    alpha: float = 1 / 3,
    domain: int | None = None,
    calibration: str = "proved",
) -> float:
    """Examples that every PAC k-learner of thresholds needs under approximate privacy: Corollary 46 through MULTI Theorem 28.

    It is `fingerprinting_thresholds` / `rows_of_empirical`, both proved or both printed, and holds for the same deltas. A PAC learner's n*
    should be compared with this and not with the empirical bound.

    Args:
        concepts, xi, alpha, domain, calibration: as for `fingerprinting_thresholds`.
        epsilon: of the learner, > 0; at most 1 for the printed one.

    Example:
        >>> round(fingerprinting_thresholds_pac(10**6, 1e-3, 1.0), 1)
        31.4
        >>> round(fingerprinting_thresholds_pac(10**6, 1e-3, 1.0, calibration="printed"), 1)
        3.9
    """
    empirical = fingerprinting_thresholds(concepts, xi, alpha=alpha, domain=domain, calibration=calibration)
    return empirical / rows_of_empirical(epsilon, calibration=calibration)


def fingerprinting_agnostic_pac(
    concepts: int, xi: float, epsilon: float, *, alpha: float = 1 / 3, calibration: str = "proved"
) -> float:
    """Examples that every agnostic PAC k-learner needs under approximate privacy: Corollary 50 through MULTI Theorem 28.

    It is `fingerprinting_agnostic` / `rows_of_empirical`, both proved or both printed, and holds for the same deltas. The corollary's
    min{|X|, ...} is not needed: two points are enough.

    Args:
        concepts, xi, alpha, calibration: as for `fingerprinting_agnostic`.
        epsilon: of the learner, > 0; at most 1 for the printed one.

    Example:
        >>> round(fingerprinting_agnostic_pac(10**6, 1e-3, 1.0), 1)
        96.0
    """
    empirical = fingerprinting_agnostic(concepts, xi, alpha=alpha, calibration=calibration)
    return empirical / rows_of_empirical(epsilon, calibration=calibration)


def fingerprinting_parities_pac(
    concepts: int, xi: float, bits: int, epsilon: float, *, calibration: str = "proved"
) -> float:
    """Examples that every agnostic PAC k-learner of parities needs on UNIFORM points, under approximate privacy (MULTI Proposition 51).

    It is 2^d / `rows_of_empirical` if a Tardos code for 2^d users has at most k columns, and 0 if not: the users' examples must be all
    points of {0,1}^d, so nothing follows for fewer concepts. It is for deltas below `fingerprinting_delta(2^d)`. (In Corollary 50 all
    examples lie at one point, so it does not bound this task.) It is for errors below 1/4, where alpha < 1/4 < 1/2 - alpha: a threshold of
    1/4 turns hypotheses into a word. (The proposition says 1/6.)

    Args:
        concepts: k.
        xi: security of the code, in (0, 1).
        bits: d.
        epsilon: of the learner, > 0; at most 1 for the printed one.
        calibration: "proved" or "printed" code (as for `fingerprinting_agnostic`) and factor of Theorem 28.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(fingerprinting_parities_pac(10**6, 1e-3, 4, 1.0), 1), fingerprinting_parities_pac(10**6, 1e-3, 16, 1.0)
        (9.3, 0.0)
    """
    arguments.counts(bits=bits)
    users = _tardos_users(concepts, xi, calibration)
    # A logarithm would be rounded: 2^50 - 1 users are fewer than 2^50.
    needed = 2.0**bits if users.bit_length() > bits else 0.0
    return needed / rows_of_empirical(epsilon, calibration=calibration)


def rows_of_empirical(epsilon: float, *, calibration: str = "proved") -> float:
    """m/n: how many rows an empirical k-learner made from a PAC one needs per example of that one, to be as private (MULTI Theorem 28).

    It runs the PAC learner on n of its m rows, drawn with replacement. So the number of rows that every empirical learner needs, divided by
    this, is needed by every PAC learner. (So it is for the fingerprinting bounds, where the rows need not be whole: they are users of mass
    1/m each, and junk.) printed: 9, by Lemma 29, for eps <= 1. proved: (exp(eps) - 1)/eps, for every eps: by that lemma's sharp form
    (`dpjax.accounting.with_replacement`) n draws cost ln M and delta (M - 1)/(exp(eps) - 1), M = (1 + (exp(eps) - 1)/m)^n, and M <= exp(n
    (exp(eps) - 1)/m) = exp(eps) at this m.

    Args:
        epsilon: > 0, finite; at most 1 for the printed one.
        calibration: "proved" or "printed".

    Returns:
        The factor, >= 1; infinite where float64 cannot hold exp(eps).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(rows_of_empirical(1.0), 3), rows_of_empirical(1.0, calibration="printed")
        (1.718, 9.0)
    """
    arguments.positive(epsilon=epsilon)
    if arguments.calibration(calibration) == "proved":
        return math.expm1(epsilon) / epsilon if epsilon < _LARGEST_EXPONENT else math.inf
    if epsilon > 1.0:
        raise ValueError(f"epsilon must be <= 1 (MULTI Theorem 28), got {epsilon}")
    return 9.0


def _tardos_users(concepts: int, xi: float, calibration: str) -> int:
    """The most users of a Tardos code of security xi with at most k columns; 0 if it is not proved to be complete for so few."""
    arguments.counts(concepts=concepts)
    arguments.fractions(xi=xi)
    # A by the score, and the fewest users for whom completeness is proved: see `dpjax.fingerprinting.tardos`. Tardos states xi^(n/4).
    columns, fewest = (100.0, 4) if arguments.calibration(calibration) == "printed" else (30.0, 3)
    n = _largest(lambda n: columns * n**2 * math.ceil(math.log(n / xi)) <= concepts)
    return n if n >= fewest else 0


def _printed_padding(users: int, alpha: float) -> float:
    """n/(3 alpha): all other rows are padding (Remark 44)."""
    return users / (3.0 * arguments.number("alpha", alpha, above=0.0, at_most=1 / 3))


def _log_power_of_two_less_one(exponent: int) -> float:
    """ln(2^exponent - 1)."""
    return exponent * math.log(2.0) + math.log1p(-(2.0**-exponent))


def _largest(fits: Callable[[int], bool]) -> int:
    """The largest n >= 0 that fits, for a test that holds up to some n."""
    return bisection.least_int(lambda n: not fits(n), 1) - 1
