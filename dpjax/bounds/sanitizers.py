"""How many rows sanitizers need, and how many suffice (BNS §2.4, §4.4, §5; MULTI §2.5, §3). Neighbours: one row is replaced.

An (alpha, beta)-sanitizer for C answers every counting query Q_c, c in C, within alpha except with probability beta, on every database of m
rows. It is proper if its answers are those of a database. **Every lower bound here holds for improper sanitizers as well**, with the same
constants: their proofs use only that no answers are within alpha of those of both of two databases on which some query differs by more than
2 alpha. (BNS passes to a proper sanitizer by Remark 2.18, at the price of 2 alpha for alpha. That is not needed.)
"""

import dataclasses
import math

import numpy as np

from dpjax.bounds.learning import agnostic, square
from dpjax.bounds.mechanisms import exponential_mechanism
from dpjax.bounds.packing import LARGEST_SET, log_spread_sets, pure_points
from dpjax.core import arguments, bisection

_SLACK = 1e-12


# What every sanitizer needs ---------------------------------------------------------------------------------------------


def effective_size(concepts: np.ndarray) -> int:
    """X_C: how many points can be chosen so that every two are distinguished by a concept (BNS Definition 4.14).

    Points are distinguished unless their columns are equal: X_C is the number of different columns.

    Args:
        concepts: bool (concepts, |X|), c(x).

    Raises:
        TypeError, ValueError: not a matrix of booleans.

    Example:
        >>> effective_size(np.eye(4, dtype=bool)), effective_size(np.zeros((3, 4), bool))
        (4, 1)
    """
    return len(np.unique(_class(concepts), axis=1).T)


def vc_dimension(concepts: np.ndarray) -> int:
    """The size of the largest set of points that the concepts shatter (BNS Definition 2.11), by exhaustive search.

    Args:
        concepts: bool (concepts, |X|), c(x), at least one concept.

    Raises:
        TypeError, ValueError: not a matrix of booleans.

    Example:
        >>> vc_dimension(np.tri(5, 4, -1, dtype=bool)), vc_dimension(np.eye(4, dtype=bool))
        (1, 1)
    """
    columns = np.unique(_class(concepts), axis=1)
    shattered: list[tuple[int, ...]] = [()]
    size = 0
    while True:
        # A set is shattered only if it is so without its last point.
        larger = [
            (*points, point)
            for points in shattered
            for point in range(points[-1] + 1 if points else 0, columns.shape[1])
        ]
        shattered = [points for points in larger if len(np.unique(columns[:, points], axis=0)) == 2 ** (size + 1)]
        if not shattered:
            return size
        size += 1


def example_class(bits: int, left: int) -> np.ndarray:
    """The class after BNS Theorem 4.16, for which that is the best possible: X_C = 2^d and VC = n, bool (2^n + 2^d - n, 2^d).

    It has 2^n concepts that shatter the points 0, ..., n - 1, and a point concept for each of the other points.

    Args:
        bits: d, at most 12. left: n, from 1 to 12 and below 2^d.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> concepts = example_class(3, 2)
        >>> concepts.shape, effective_size(concepts), vc_dimension(concepts)
        ((10, 8), 8, 2)
    """
    arguments.integer("bits", bits, at_least=1, at_most=12)
    arguments.integer("left", left, at_least=1, at_most=min(12, 2**bits - 1))
    shattering = (np.arange(2**left)[:, None] >> np.arange(left)) & 1
    concepts = np.zeros((2**left + 2**bits - left, 2**bits), bool)
    concepts[: 2**left, :left] = shattering
    concepts[2**left :, left:] = np.eye(2**bits - left)
    return concepts


def sanitizer_packing(size: int, alpha: float, beta: float, epsilon: float, *, calibration: str = "proved") -> int:
    """Rows every epsilon-private sanitizer needs for a class of effective size X_C (BNS Lemma 4.15), proper or improper.

    proved: database i has w = floor(2 alpha m) + 1 copies of x_i and m - w of x_1. Some query differs by w/m > 2 alpha between any two,
    no answers serve both, and at most w rows differ. Hence beta >= (X_C - 1) exp(-eps w) (1 - beta), that is w >= L/eps, with
    L = ln(X_C - 1) + ln((1 - beta)/beta): m >= (ceil(L/eps) - 1)/(2 alpha).

    printed: 3 alpha m copies, m >= L/(3 eps alpha), the Omega of the lemma written out. 3 alpha m must be an integer. Where
    it is less than one row the printed formula is false: with two points, one row, eps = 1 and beta = 0.4 randomised response sanitizes
    exactly, and the formula says m >= 0.135/alpha.

    Args:
        size: X_C >= 2 (`effective_size`), of any size.
        alpha: error, in (0, 1/2).
        beta: failure probability, in (0, 1).
        epsilon: > 0.
        calibration: "proved" or "printed".

    Returns:
        Number of rows, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sanitizer_packing(2**64, 0.1, 0.1, 1.0), sanitizer_packing(2**64, 0.1, 0.1, 1.0, calibration="printed")
        (230, 156)
    """
    arguments.counts(at_least=2, size=size, unbounded=True)
    arguments.number("alpha", alpha, above=0.0, below=0.5)
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    needed = (math.log(size - 1) + math.log1p(-beta) - math.log(beta)) / epsilon * (1.0 - _SLACK)
    if needed <= 0.0:
        return 0
    if calibration == "printed":
        return math.ceil(needed / (3.0 * alpha))
    return max(1, math.ceil((math.ceil(needed) - 1) / (2.0 * alpha) * (1.0 - _SLACK)))


def sanitizer_vc(
    vc: int, alpha: float, beta: float, epsilon: float, delta: float = 0.0, *, calibration: str = "proved"
) -> int:
    """Rows every (epsilon, delta)-private sanitizer needs for a class of VC dimension v (BNS Theorem 2.20), proper or improper.

    proved: let T be v shattered points and D a random m of them. From good answers make a law p on T within alpha of them (D itself is
    one): p is within 2 alpha of D on every subset of T, and u = E[p(T - D)] <= 2 alpha + beta (1 - 2 alpha) = k. Exchange a random x of
    D with a random y of T - D: both databases have the same law, and privacy gives (1 - u)/m <= e^eps u/(v - m) + delta. So no sanitizer
    has (1 - k)/m > e^eps k/(v - m) + delta; at delta = 0, m >= v / (1 + e^eps k/(1 - k)).

    printed (pure, eps <= 1): m <= v/2 only if alpha >= 1/(4 + 16 eps), for every beta bounded away from 1. Taken by itself this is false:
    with v = 2 and m = 1 a coin's answer is exact with probability 1/2. At m = v/2 and small beta the proved bound says alpha >= 1/(2 + 2
    e^eps), which is more than the printed bound says.

    Args:
        vc: v >= 1.
        alpha: error, in (0, 1/2).
        beta: failure probability, in (0, 1); plays no part in the printed one.
        epsilon: > 0; at most 1 for the printed one.
        delta: in [0, 1); 0 for the printed one.
        calibration: "proved" or "printed".

    Returns:
        Number of rows, >= 0.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sanitizer_vc(1000, 1 / 8, 1 / 8, 0.5), sanitizer_vc(1000, 1 / 8, 1 / 8, 0.1, calibration="printed")
        (537, 501)
    """
    arguments.counts(vc=vc)
    arguments.number("alpha", alpha, above=0.0, below=0.5)
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    arguments.number("delta", delta, at_least=0.0, below=1.0)
    if arguments.calibration(calibration) == "printed":
        if epsilon > 1.0 or delta > 0.0:
            raise ValueError(f"epsilon must be <= 1 and delta 0 for the printed Theorem 2.20, got {epsilon}, {delta}")
        return vc // 2 + 1 if alpha < 1.0 / (4.0 + 16.0 * epsilon) else 0
    wrong = 2.0 * alpha + beta * (1.0 - 2.0 * alpha)

    def allowed(m: int) -> bool:
        return m >= vc or (1.0 - wrong) / m <= (math.exp(min(epsilon, 700.0)) * wrong / (vc - m) + delta) * (
            1.0 + _SLACK
        )

    least = bisection.least_int(allowed, 1, vc)
    return least if least > 1 else 0


def sanitizer_pure(size: int, vc: int, alpha: float = 1 / 8, beta: float = 1 / 8, epsilon: float = 1 / 2) -> int:
    """Rows every epsilon-private sanitizer needs, Omega(log X_C + VC(C)) (BNS Theorem 4.16): the larger of Lemma 4.15 and Theorem 2.20.

    The paper's proof ("immediate") does not go through at its (1/8, 1/8, 1/2): Theorem 2.20 excludes alpha < 1/(4 + 16/2) = 1/12 only.
    With the proved form of that theorem it does, with m >= 0.536 VC, so this theorem holds. `example_class` has any X_C = 2^d and VC = n.

    Args:
        size: X_C >= 2. vc: >= 1. alpha, beta, epsilon: as for `sanitizer_packing`.

    Example:
        >>> sanitizer_pure(2**64, 10), sanitizer_pure(2**64, 1000)
        (368, 537)
    """
    return max(sanitizer_packing(size, alpha, beta, epsilon), sanitizer_vc(vc, alpha, beta, epsilon))


def sanitizer_k_points(bits: int, concepts: int, alpha: float, beta: float, epsilon: float) -> int:
    """Rows every epsilon-private sanitizer needs for k-POINT_d or its label class, of order k d/(alpha eps) (BNS Theorems 5.9, 5.10).

    The paper reduces learning to sanitizing, and loses alpha in Theorem 5.9 and all constants (`sanitizer_k_points_by_learning`). Packing
    sanitizers directly loses neither, for every alpha < 1/4 or so and every d. For q <= k take sets A of q points, any two of which share
    at most t, and databases with c copies of each point of A and the other rows at a point outside. The query of A (and of k - q points
    without rows) differs by at least (q - t) c/m; with c = floor(2 alpha m/(q - t)) + 1 that is more than 2 alpha. At most q c rows
    differ. So m is impossible if q c <= m and q c < L/eps, L = ln(P - 1) + ln((1 - beta)/beta), P the number of sets (`log_spread_sets`).
    With q = k and t = k/2 that is k d ln 2/(8 alpha eps). Smaller q exclude the smaller m; q is at most 2^24 here. A sanitizer for
    k-POINT^label serves k-POINT on rows of label 0.

    A sanitizer for k-POINT also serves (2^d - k)-POINT, whose answers are 1 minus those of the complements: with k near 2^d the bound is
    that of 2^d - k, and the order k d does not hold. The packing of single points (`sanitizer_packing`) holds for every k.

    Args:
        bits: d. concepts: k < 2^d.
        alpha: error, in (0, 1/2).
        beta: failure probability, in (0, 1).
        epsilon: > 0.

    Returns:
        Number of rows: fewer are impossible.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sanitizer_k_points(64, 1, 0.1, 0.1, 1.0), sanitizer_k_points(64, 8, 0.1, 0.1, 1.0)
        (230, 520)
    """
    arguments.domain_bits(bits)
    arguments.integer("concepts", concepts, at_least=1, at_most=2**bits - 1)
    arguments.number("alpha", alpha, above=0.0, below=0.5)
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    alike = {concepts, 2**bits - concepts} if 2**bits - concepts <= LARGEST_SET else {concepts}
    by_sets = max(_k_points(bits, each, alpha, beta, epsilon) for each in alike)
    return max(by_sets, sanitizer_packing(2**bits, alpha, beta, epsilon))


def _k_points(bits: int, concepts: int, alpha: float, beta: float, epsilon: float) -> int:
    """The bound by sets of at most `concepts` points."""
    largest = min(concepts, LARGEST_SET)
    sizes = sorted({*range(1, min(concepts, 16) + 1), *(largest >> shift for shift in range(largest.bit_length()))})
    families = [_Family.of(2**bits - 1 - (concepts - size), size, alpha, beta, epsilon) for size in sizes]
    first = 1  # the least m not excluded yet
    while (further := max(family.excluded_below(first) for family in families)) > first:
        first = further
    return first


@dataclasses.dataclass(frozen=True)
class _Family:
    """Sets of `size` points, one family for each t: any two sets share at most t points.

    Attributes:
        size: q.
        differ: (q - t)/(2 alpha): c copies distinguish two sets if there are fewer than c times this many rows.
        copies: the greatest c with q c < L/eps.
    """

    size: int
    differ: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(cls, points: int, size: int, alpha: float, beta: float, epsilon: float) -> "_Family":
        logs = log_spread_sets(points, size)
        with np.errstate(divide="ignore"):
            needed = logs + np.log(-np.expm1(-logs)) + math.log1p(-beta) - math.log(beta)
        copies = np.ceil(np.maximum(needed, 0.0) / epsilon / size * (1.0 - _SLACK)) - 1.0
        return cls(size=size, differ=(size - np.arange(size)) / (2.0 * alpha) * (1.0 - _SLACK), copies=copies)

    def excluded_below(self, first: int) -> int:
        """An m such that this family excludes first, ..., m - 1; it is `first` if the family does not exclude even that."""
        copies = np.floor(first / self.differ) + 1.0
        excluded = (copies <= self.copies) & (self.size * copies <= first)
        # c grows at m = ceil(c differ), and q (c + 1) is at most that if it is below c differ + 1: then this holds for all larger c, too.
        for_ever = copies * (self.differ - self.size) > self.size - 1.0
        ends = np.where(for_ever, self.copies, copies) * self.differ
        return max(first, int(np.max(np.ceil(ends), initial=0.0, where=excluded)))


def sanitizer_k_points_by_learning(
    bits: int, concepts: int, epsilon: float, *, alpha: float | None = None, calibration: str = "proved"
) -> int:
    """Rows by the paper's reductions, with their constants: BNS Theorem 5.9, and Theorem 5.10 if alpha is given; PROPER sanitizers.

    Theorem 5.9, for k-POINT_d, alpha = beta = 1/150: Theorem 5.5 makes a (9/50, 1/15, 6 eps) learner of `sanitizer_to_learner(m)` examples,
    which Lemma 5.7 bounds. As m rows become 3.9e9 m examples and more, the bound is true and says next to nothing.

    Theorem 5.10, for k-POINT_d^label, alpha <= 1/50, beta = 1/50: by Lemma 5.1 with q = ceil(100 50^3 ln 2500) blocks and Lemma 5.3 there
    is a (9/50, 1/25, eps) learner of q m examples, so m >= (Lemma 5.7)/q. Where that is (50 k/alpha^2) ln(50/alpha) or more (the
    theorem's d >= d_0), Lemma 5.3 applies without blocks, and m >= Lemma 5.7 at (3 alpha, 1/25, eps).

    Args:
        bits: d. concepts: k < 2^d.
        epsilon: in (0, 1/8].
        alpha: None, or in (0, 1/50].
        calibration: of Lemma 5.7 (`pure_points`).

    Returns:
        Number of rows.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sanitizer_k_points_by_learning(64, 8, 0.1), sanitizer_k_points_by_learning(4096, 2, 1e-12, alpha=0.02) > 10**15
        (1, True)
    """
    arguments.number("epsilon", epsilon, above=0.0, at_most=1 / 8)
    if alpha is None:
        learned = pure_points(bits, concepts, 9 / 50, 1 / 15, 6.0 * epsilon, calibration=calibration)
        return bisection.least_rows(
            lambda rows: sanitizer_to_learner(rows, 1 / 150, 1 / 150, epsilon) >= learned, 1, epsilon=epsilon
        )
    arguments.number("alpha", alpha, above=0.0, at_most=1 / 50)
    blocks = math.ceil(100 * 50**3 * math.log(2500))
    needed = math.ceil(pure_points(bits, concepts, 9 / 50, 1 / 25, epsilon, calibration=calibration) / blocks)
    if needed >= agnostic(concepts, alpha, 1 / 50):
        needed = max(needed, pure_points(bits, concepts, 3.0 * alpha, 1 / 25, epsilon, calibration=calibration))
    return needed


# What suffices ------------------------------------------------------------------------------------------------------------


def approximating_rows(vc: int, alpha: float, *, calibration: str = "proved") -> int:
    """Rows of a database that is alpha-close to any given one, however large (BNS Theorem 2.21).

    Some sample of that many rows, drawn with replacement, is alpha-close.

    printed: by Theorem 2.14 with beta -> 1: more than (50 VC/alpha^2) ln(1/alpha), the theorem's O written out. proved: the least n with
    4 (2 e n/VC)^VC exp(-alpha^2 n/8) < 1 (Vapnik and Chervonenkis, with Sauer's lemma), so that a sample succeeds with positive
    probability. For points far fewer suffice (`point_rows`), and for thresholds ceil(1/(2 alpha)) quantiles.

    Args:
        vc: >= 1.
        alpha: in (0, 1).
        calibration: "proved" or "printed".

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> approximating_rows(1, 0.1), approximating_rows(1, 0.1, calibration="printed")
        (9818, 11513)
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha)
    squared = square(alpha=alpha)
    if arguments.calibration(calibration) == "printed":
        return math.floor(50.0 * vc / squared * -math.log(alpha)) + 1
    # The logarithm falls from n = 8 VC/alpha^2 on.
    return bisection.least_rows(
        lambda n: math.log(4.0) + vc * math.log(2.0 * math.e * n / vc) < squared * n / 8.0,
        math.ceil(8.0 * vc / squared),
        alpha=alpha,
    )


def point_rows(error: float, answers: float) -> int:
    """Rows of a database that is `error`-close for POINT, made from answers that are within `answers` (MULTI Proposition 30).

    Take any law within `answers` of the answers (the database itself is one), and round its masses to multiples of 1/R so that they add up
    (largest remainders first): less than 1/R is lost. So ceil(1/(error - 2 answers)) rows suffice, whatever the domain is.

    The proof says that O(1/alpha) rows can be found within alpha of answers within alpha. That is false for answers in general: on K points
    with a row each, if all answers are 1/K + alpha, a row is needed at each of the K points. It holds for the answers of Algorithm 2, or
    with a little slack, as here: 2 alpha + 1/R.

    Args:
        error: error of the database, in (0, 1).
        answers: how far the answers are off, >= 0 and below error/2.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> point_rows(0.1, 0.04), point_rows(0.1, 0.0)
        (50, 10)
    """
    arguments.fractions(error=error)
    arguments.number("answers", answers, at_least=0.0, below=error / 2.0)
    return math.ceil(1.0 / (error - 2.0 * answers + 2.0**-51 * error))  # so much rounding may have taken off


def blr(log_domain: float, vc: int, alpha: float, beta: float, epsilon: float) -> float:
    """Rows for a pure PROPER sanitizer of any class: (4/(alpha eps)) (R ln|X| + ln(1/beta)) (BNS Theorem 2.19, MULTI Theorem 24).

    The exponential mechanism over all databases of R = `approximating_rows(vc, alpha/2)` rows, with the score -m max_c |Q_c(S) - Q_c(S')|,
    of sensitivity 1: some database is within alpha/2, and except with probability beta the choice is no more than alpha/2 worse. This is
    the theorem with an explicit constant; the paper says O(ln|X| VC ln(1/alpha)/(alpha^3 eps) + ln(1/beta)/(alpha eps)).

    Args:
        log_domain: ln|X|, > 0.
        vc: >= 1.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.

    Returns:
        Number of rows; inf if it is more than float64 can hold.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{blr(64 * math.log(2), 1, 0.1, 0.1, 1.0):.1e}"
        '7.8e+07'
    """
    arguments.positive(log_domain=log_domain, epsilon=epsilon)
    arguments.fractions(alpha=alpha, beta=beta)
    log_databases = approximating_rows(vc, alpha / 2.0) * log_domain
    return math.inf if math.isinf(log_databases) else exponential_mechanism(log_databases, alpha / 2.0, beta, epsilon)


def multiplicative_weights(
    log_domain: float,
    log_concepts: float,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    *,
    constant: float = 1.0,
) -> float:
    """Growth of an approximately private sanitizer of any class (MULTI Theorem 25); the constant is left out there and here.

        constant (ln|C| + ln(1/beta)) sqrt(ln|X| ln(1/delta)) / (alpha^2 eps)

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> multiplicative_weights(10.0, 10.0, 0.1, 0.1, 1.0, 1e-6) > 0
        True
    """
    arguments.positive(log_domain=log_domain, log_concepts=log_concepts, epsilon=epsilon, constant=constant)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    grown = constant * (log_concepts - math.log(beta)) * math.sqrt(-log_domain * math.log(delta))
    return grown / (square(alpha=alpha) * epsilon)


def private_multiplicative_weights(
    log_domain: float, log_candidates: float, rounds: int, alpha: float, beta: float, round_epsilon: float
) -> float:
    """Rows for T rounds of private multiplicative weights (MULTI Theorem 25), with explicit constants.

        (2 / (e (alpha - sqrt(ln|X| / (2T))))) ln(K T / beta),   K the number of signed queries

    The mean regret of T rounds is sqrt(ln|X|/(2T)). Except with probability beta in all, every choice falls short of the best one by at
    most the rest of alpha (`dpjax.sanitizers.dense.multiplicative_weights` has the proof). With T = 2 ln|X|/alpha^2 and
    e = epsilon / sqrt(2 T ln(1/delta)) that is (8 / (alpha^2 epsilon)) sqrt(ln|X| ln(1/delta)) ln(K T/beta). (Choices whose ranges are
    composed, as there, may have twice this e.)

    Args:
        log_domain: ln|X|, > 0.
        log_candidates: ln K, > 0: ln(2|C|) at most.
        rounds: T > ln|X| / (2 alpha^2).
        alpha, beta: error and failure probability, in (0, 1).
        round_epsilon: e > 0, the epsilon of one choice.

    Returns:
        Number of rows.

    Raises:
        TypeError, ValueError: an argument out of range, or too few rounds.

    Example:
        >>> round(private_multiplicative_weights(16 * math.log(2), 17 * math.log(2), 2219, 0.1, 0.1, 0.005))
        174291
    """
    arguments.positive(log_domain=log_domain, log_candidates=log_candidates, round_epsilon=round_epsilon)
    arguments.counts(rounds=rounds)
    arguments.fractions(alpha=alpha, beta=beta)
    regret = math.sqrt(log_domain / (2.0 * rounds))
    if alpha <= regret:
        raise ValueError(f"alpha must be > {regret}, the regret of {rounds} rounds, got {alpha}")
    return exponential_mechanism(log_candidates + math.log(rounds), alpha - regret, beta, round_epsilon)


def threshold_sanitizer(
    log_star: int, alpha: float, beta: float, epsilon: float, delta: float, *, constant: float = 1.0
) -> float:
    """Growth of a sanitizer of thresholds (MULTI Proposition 26, of Bun et al. 2015); the constant is left out there and here.

        constant / (alpha eps) 2^L L ln(L/(eps delta)) ln(1/beta) ln(1/alpha)^2.5,  L = log*|X|

    Args:
        log_star: L >= 1.

    Raises:
        TypeError, ValueError: an argument out of range, or epsilon so large that the logarithm is not positive.

    Example:
        >>> threshold_sanitizer(5, 0.1, 0.1, 1.0, 1e-6) > 0
        True
    """
    arguments.counts(log_star=log_star)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon, constant=constant)
    logarithm = math.log(log_star) - math.log(epsilon) - math.log(delta)
    if logarithm <= 0.0:
        raise ValueError(f"epsilon must be < log_star/delta for Proposition 26 to say anything, got {epsilon}")
    recursion = 2.0**log_star * log_star * logarithm
    return constant / (alpha * epsilon) * recursion * -math.log(beta) * (-math.log(alpha)) ** 2.5


# From a sanitizer to a learner -------------------------------------------------------------------------------------------


def sanitizer_blocks(beta: float, *, failure: float | None = None, calibration: str = "proved") -> int:
    """q: on how many blocks of m rows a sanitizer for m rows may be run, with error 2 alpha + 2 beta instead of alpha (BNS Lemma 5.1).

    Except with probability beta, at most 2 beta q blocks fail. printed: (18/beta) ln(1/beta), for blocks that fail with probability
    3 beta/2. A database of fixed size costs no probability (no chance is involved in Theorem 2.21), so blocks fail with probability beta.
    proved: Chernoff's bound exp(-q KL(2 beta || beta)) <= beta. Every larger q suffices, too. (With weighted databases alpha is not
    doubled: `dpjax.multi.reductions.block_sanitizer`.)

    Args:
        beta: failure probability of the sanitizer, in (0, 1/2).
        failure: probability of more than 2 beta q failures, in (0, 1); beta where None, as in the lemma.
        calibration: "proved" or "printed".

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> sanitizer_blocks(0.1), sanitizer_blocks(0.1, calibration="printed")
        (52, 415)
    """
    arguments.number("beta", beta, above=0.0, below=0.5)
    failure = beta if failure is None else arguments.number("failure", failure, above=0.0, below=1.0)
    if arguments.calibration(calibration) == "printed":
        return math.ceil(-18.0 / beta * math.log(failure))
    divergence = 2.0 * beta * math.log(2.0) + (1.0 - 2.0 * beta) * (math.log1p(-2.0 * beta) - math.log1p(-beta))
    return math.ceil(-math.log(failure) / divergence)


def label_class(block: int, inner: float, alpha: float, beta: float, epsilon: float) -> float:
    """Examples for Algorithm B (BNS Lemma 5.4) with a sanitizer within `inner` on blocks of M rows, with explicit constants.

        t = (2 + inner) (M + (2/eps) ln(2/beta)) / (alpha - inner)

    Except with probability beta in all, rounding to multiples of M and noise change the size of a part by at most M/2 + ln(2/beta)/eps
    (`dpjax.multi.reductions.label_class` has the proof). The printed lemma has 5 alpha + 4 beta at t of the order of M/alpha^2, in the same
    way for a database of one size (`sanitizer_to_learner`).

    Args:
        block: M, rows for which the sanitizer is within `inner`, as it is for all multiples.
        inner: error of the sanitizer, in (0, alpha).
        alpha: error over C^label, in (0, 1).
        beta: failure probability of the noise; those of the two parts are added to it.
        epsilon: the epsilon of one noisy size.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(label_class(1000, 0.1, 0.2, 0.1, 0.5))
        21252
    """
    arguments.counts(block=block)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.number("inner", inner, above=0.0, below=alpha)
    arguments.positive(epsilon=epsilon)
    return (2.0 + inner) * (block + 2.0 / epsilon * math.log(2.0 / beta)) / (alpha - inner)


def sanitizer_to_learner(rows: int, alpha: float, beta: float, epsilon: float) -> int:
    """t: examples of the proper learner made from an (alpha, beta, epsilon)-sanitizer for m rows (BNS Lemma 5.4, Theorem 5.5).

        t = ceil(6/alpha^2) ceil((18/beta) ln(2/(alpha beta)) (1 + 1/(m eps))) m

    It has error 15 alpha + 12 beta, failure probability 10 beta, and is 6 eps-private as printed; its parts cost 4 eps (two noisy sizes,
    and two sanitized parts). This is as printed, O(m) without attention to constants: Lemma 5.1 needs fewer blocks (`sanitizer_blocks`).

    Args:
        rows: m.
        alpha, beta: of the sanitizer, alpha in (0, 1/8], beta in (0, 1).
        epsilon: of the sanitizer, in (0, 1/8].

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{sanitizer_to_learner(1000, 1 / 150, 1 / 150, 0.1):.1e}"
        '3.9e+12'
    """
    arguments.counts(rows=rows)
    arguments.fractions(beta=beta)
    arguments.number("alpha", alpha, above=0.0, at_most=1 / 8)
    arguments.number("epsilon", epsilon, above=0.0, at_most=1 / 8)
    blocks = math.ceil(18.0 / beta * math.log(2.0 / (alpha * beta)) * (1.0 + 1.0 / (rows * epsilon)))
    return math.ceil(6.0 / square(alpha=alpha)) * blocks * rows


def _class(concepts: np.ndarray) -> np.ndarray:
    """A concept class as a matrix."""
    matrix = np.asarray(concepts)
    if matrix.dtype != bool:
        raise TypeError(f"concepts must be a matrix of booleans, got an array of {matrix.dtype}")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"concepts must have shape (concepts, points), got {matrix.shape}")
    return matrix
