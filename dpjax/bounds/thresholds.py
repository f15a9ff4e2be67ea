"""Sample sizes of threshold learners: RecConcave (BNS §3.3, §3.4), its baselines, and lower bounds.

Logarithms. The paper writes "ln" for the natural logarithm and "log" for base 2, both within Theorem 3.18. So does this module, except for
A_dist, where "log" is read as ln (`mechanisms.stability`). (The paper's proofs use nothing stronger than the natural one for
log(1/(beta delta)): the printed reading is on the safe side.) Iterated logarithms stop once they are at most 1. Results are numbers of
examples, as floats.
"""

import math
from typing import Any

from dpjax.bounds.learning import agnostic, pac_lower_bound
from dpjax.bounds.mechanisms import exponential_mechanism, printed_equivalent, stability_gap
from dpjax.core import arguments

_SMALL_RANGE = 32  # Figure 5, step 1
_DEEPEST = 341  # 8^N is a float


def log_star(number: int) -> int:
    """How often ceil(log2) is applied until the value is at most 1 (BNS §3.3).

    Args:
        number: an integer >= 0 of any size.

    Returns:
        The number of times.

    Raises:
        TypeError, ValueError: not an integer >= 0.

    Example:
        >>> [log_star(n) for n in (1, 2, 3, 16, 17, 2**64, 2**4096)]
        [0, 1, 2, 3, 4, 5, 5]
    """
    arguments.counts(at_least=0, number=number, unbounded=True)
    times = 0
    while number > 1:
        number = (int(number) - 1).bit_length()
        times += 1
    return times


def iterated_log2(number: int, times: int, *, ceil: bool = False) -> float:
    """log2 log2 ... log2(number), `times` times, stopping early once the value is at most 1.

    Args:
        number: an integer >= 1 of any size.
        times: how many times, >= 0.
        ceil: round every step up, as in log^{ceil N} of BNS, Lemma 3.14.

    Returns:
        The iterated logarithm.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> iterated_log2(2**64, 2)
        6.0
        >>> iterated_log2(2**64, 3, ceil=True)
        3.0
    """
    arguments.counts(number=number, unbounded=True)
    arguments.counts(at_least=0, times=times)
    arguments.flag("ceil", ceil)
    value: float = number
    for _ in range(times):
        if value <= 1:
            break
        value = (int(value) - 1).bit_length() if ceil else math.log2(value)
    return arguments.number("number", value)


def rec_concave_lemma(
    size: int,
    depth: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    *,
    calibration: str = "proved",
) -> float:
    """The promise at which RecConcave fails with probability at most 2 beta N (BNS, Lemma 3.14).

        r >= 8^N (4/(alpha eps)) { log(32/(beta delta)) + log^{ceil N}(T) }

    Args:
        size: T; the solutions are 0, ..., T.
        depth: N, bound on the recursive calls, >= 1.
        alpha: the output has quality at least (1 - alpha) r; in (0, 1/2].
        beta: in (0, 1).
        epsilon, delta: privacy parameters of EACH mechanism inside.
        calibration: constants of the A_dist inside; "proved" puts `printed_equivalent(epsilon, delta)` for eps.

    Returns:
        The promise r, in units of the quality (examples, for a count).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(rec_concave_lemma(2**64, 2, 0.1, 0.1, 1.0, 1e-6, calibration="printed"))
        87689
    """
    arguments.counts(size=size, depth=depth, unbounded=True)
    promise = _promise(depth, alpha, beta, epsilon, delta, calibration)
    return promise * (_log2_of(32.0, beta, delta) + iterated_log2(size, depth, ceil=True))


def levels_run(last: int, depth: int) -> int:
    """How many levels of RecConcave really run on {0, ..., last} when at most `depth` may (BNS, Figure 5, step 1).

    Ranges of at most 32 go to the exponential mechanism at once; others shrink to a logarithmic range: 2^4096 becomes 4096, then 12.

    Args:
        last: T >= 1.
        depth: bound on the number of levels, >= 1.

    Returns:
        The number N, from 1 to depth.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> levels_run(2**64, 2), levels_run(2**64, 9), levels_run(2**31, 9), levels_run(32, 9)
        (2, 3, 2, 1)
    """
    arguments.counts(last=last, depth=depth, unbounded=True)
    levels = 1
    while last > _SMALL_RANGE and levels < depth:
        last, levels = (last - 1).bit_length(), levels + 1
    return levels


def rec_concave_error(size: int, levels: int, beta: float, epsilon: float, delta: float) -> float:
    """The least alpha r at which RecConcave with the proved A_dist fails with probability at most beta, from its own stages.

    Each of N exponential mechanisms and 2(N - 1) A_dists gets e = epsilon/(3N - 2), each A_dist d = delta/(2(N - 1)), which
    basic composition adds up to (epsilon, delta).

    Derivation. Q has sensitivity 1 and max Q >= r. Let D be alpha r at some level, and each of the 2N - 1 events below
    fail with probability b = beta/(2N - 1).

    - The recursion maximises q(j) = min(L(j) - (r - D), r - L(j+1)), L(j) the best worst case over windows of 2^j points,
      with promise D/2 and alpha = 1/4: some q(j) is at least D/2. If D/8, the recursion's own additive error, is
      enough for it, its answer k has q(k) >= 3/8 D: L(k) >= r - 5/8 D and L(k+1) <= r - 3/8 D.
    - Blocks have 8 2^k points. In one of the two partitions the best point lies 2^(k+1) points away from the ends of
      its block, or these are ends of the range. Fewer than 2^(k+1) points have Q > L(k+1), and they are consecutive: all
      are in that block, whose gap is at least 3/8 D. A_dist releases it if that is at least `stability_gap(b, e, d)`.
    - Of the at most 16 2^k points released, 2^k have Q >= r - 5/8 D; the exponential mechanism picks one with Q < r - D
      with probability at most 16 exp(-3 e D/16), which is b at D = (16/(3e)) ln(16/b).
    - The last level is the exponential mechanism on all of its range: (2/e) ln(size/b) (BNS, Proposition 2.26 (ii)).

    D falls by a factor of 8 from level to level, so that the last levels decide:

        max{ 8^(N-1) (2/e) ln(|last range|/b),  8^(N-2) max{ (8/3) gap, (16/(3e)) ln(16/b) } }.

    Lemma 3.14 requires more. It has 8^N, and the same logarithms in base 2.

    Args:
        size: T; the solutions are 0, ..., T.
        levels: N, how many levels run (`levels_run`).
        beta: failure probability, in (0, 1).
        epsilon, delta: TOTAL privacy, > 0 and in (0, 1/2]; where N = 1, delta plays no part and may be 0.

    Returns:
        The additive error alpha r, in units of the quality (examples, for a count).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(rec_concave_error(2**64, 2, 0.1, 1.0, 1e-6))
        485
    """
    arguments.counts(size=size, unbounded=True)
    arguments.integer("levels", levels, at_least=1, at_most=_DEEPEST)
    if levels > (most := levels_run(size, levels)):
        raise ValueError(f"levels must be at most {most}, which is how many run on {size} + 1 solutions, got {levels}")
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    delta = arguments.number("delta", delta, at_least=0.0, at_most=0.5)
    each, event, points = epsilon / (3 * levels - 2), beta / (2 * levels - 1), size + 1
    for _ in range(levels - 1):
        points = (points - 2).bit_length() + 1  # {0, ..., T} to {0, ..., ceil(log2 T)}
    base = 8 ** (levels - 1) * 2 / each * (math.log(points) - math.log(event))
    if levels == 1:
        return base
    stable = stability_gap(event, each, delta / (2 * (levels - 1)))
    choice = 16 / (3 * each) * math.log(16 / event)
    return max(base, 8 ** (levels - 2) * max(8 / 3 * stable, choice))


def rec_concave(
    size: int,
    depth: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    *,
    calibration: str = "proved",
) -> float:
    """The promise at which RecConcave fails with probability at most beta.

    printed: r >= 8^N (36 N/(alpha eps)) { log(6 N/(beta delta)) + log log ... log(T) },  N times (BNS, Theorem 3.15,
    inequality (3.1)), where each mechanism inside gets epsilon/(3N), delta/(3N). proved: `rec_concave_error` / alpha, for
    the levels that really run.

    Args:
        size: T; the solutions are 0, ..., T.
        depth: N, bound on the number of levels, >= 1.
        alpha: the output has quality at least (1 - alpha) r; in (0, 1/2], for the proved one in (0, 1).
        beta: failure probability, in (0, 1).
        epsilon, delta: TOTAL privacy.
        calibration: "printed" or "proved" constants of A_dist, and of the analysis.

    Returns:
        The promise r, in units of the quality (examples, for a count).

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{rec_concave(2**64, 2, 0.1, 0.1, 1.0, 1e-6, calibration='printed'):.1e}"
        '1.5e+06'
        >>> round(rec_concave(2**64, 2, 0.1, 0.1, 1.0, 1e-6))
        4848
    """
    arguments.counts(size=size, depth=depth, unbounded=True)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    if calibration == "proved":
        arguments.fractions(alpha=alpha)
        return rec_concave_error(size, levels_run(size, depth), beta, epsilon, delta) / alpha
    arguments.fractions(delta=delta)
    arguments.integer("depth", depth, at_least=1, at_most=_DEEPEST)
    # 36 N / eps is 3 times the 4 / eps of Lemma 3.14 at eps / (3N).
    promise = 3.0 * _promise(depth, alpha, beta, epsilon / (3 * depth), delta / (3 * depth), "printed")
    return promise * (_log2_of(6.0 * depth, beta, delta) + iterated_log2(size, depth))


def rec_concave_full_depth(size: int, alpha: float, beta: float, epsilon: float, delta: float) -> float:
    """The promise for RecConcave at full depth (BNS, Remark 3.16).

        r >= 8^N (36 N/(alpha eps)) log(12 N/(beta delta)),  N = log*(T)

    Args:
        size: T >= 2; the solutions are 0, ..., T.
        alpha, beta, epsilon, delta: as in `rec_concave`.

    Returns:
        The promise r, in units of the quality; at least `rec_concave` at that depth.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{rec_concave_full_depth(2**64, 0.1, 0.1, 1.0, 1e-6):.1e}"
        '1.7e+09'
    """
    arguments.counts(at_least=2, size=size, unbounded=True)
    depth = log_star(size)
    arguments.positive(epsilon=epsilon)
    return 9.0 * depth * _promise(depth, alpha, beta, epsilon, delta, "printed") * _log2_of(12.0 * depth, beta, delta)


def learn_thresholds(
    bits: int,
    depth: int,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    *,
    calibration: str = "proved",
) -> float:
    """Examples for LearnThresholds, which runs RecConcave at alpha/2 on the number of examples labelled correctly.

    Theorem 2.14 and `rec_concave`, each at alpha/2 and beta/2. printed (BNS, Theorem 3.18, explicit at the end of its proof):

        max{ (200/alpha^2) ln(4/(alpha beta)),
             8^N (72 N/(alpha eps)) ( log(12 N/(beta delta)) + log log ... log(2^d) ) },  N times.

    Args:
        bits: d; points are 0, ..., 2^d - 1, thresholds 0, ..., 2^d.
        depth: N >= 1; for the printed one at most log*(2^d).
        alpha: generalization error, in (0, 1). The learner must have been made for it.
        beta: failure probability, in (0, 1).
        epsilon, delta: total privacy, > 0 and in (0, 1).
        calibration: "printed" or "proved" constants of A_dist, and of the analysis.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> f"{learn_thresholds(64, 2, 0.1, 0.1, 1.0, 1e-6, calibration='printed'):.1e}"
        '3.1e+06'
        >>> f"{learn_thresholds(64, 2, 0.1, 0.1, 0.1, 1e-6):.1e}"
        '1.2e+05'
    """
    arguments.domain_bits(bits)
    arguments.counts(depth=depth)
    arguments.fractions(alpha=alpha, beta=beta)
    if arguments.calibration(calibration) == "printed" and depth > log_star(2**bits):
        raise ValueError(f"depth must be <= log*(2^bits) = {log_star(2**bits)}, got {depth}")
    optimisation = rec_concave(2**bits, depth, alpha / 2.0, beta / 2.0, epsilon, delta, calibration=calibration)
    return max(agnostic(1, alpha / 2.0, beta / 2.0), optimisation)


def learn_thresholds_full_depth(
    bits: int, alpha: float, beta: float, epsilon: float, delta: float, *, constant: float = 1.0
) -> float:
    """Growth of the sample of LearnThresholds at full depth (BNS, Remark 3.19).

        O( 8^L L / (alpha min{alpha, eps}) log(L/(alpha beta delta)) ),  L = log*(d)

    The constant is left out there. `learn_thresholds` at depth log*(2^d) is explicit.

    Args:
        bits: d >= 2.
        alpha, beta, epsilon, delta: as in `learn_thresholds`.
        constant: the constant in O.

    Returns:
        Number of examples, up to the constant.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> learn_thresholds_full_depth(64, 0.1, 0.1, 1.0, 1e-6) > 0
        True
    """
    arguments.counts(at_least=2, bits=bits)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon, constant=constant)
    calls = log_star(bits)
    logarithm = _log2_of(float(calls), alpha * beta, delta)
    return constant * 8.0**calls * calls / (alpha * min(alpha, epsilon)) * logarithm


def exponential_thresholds(bits: int, alpha: float, beta: float, epsilon: float) -> float:
    """Examples for the pure learner: the exponential mechanism over all 2^d + 1 thresholds.

        max{ (200/alpha^2) ln(4/(alpha beta)),  (4/(alpha eps)) (ln(2^d + 1) + ln(2/beta)) }

    Derivation. The score (examples labelled correctly) has sensitivity 1 and the target reaches m. By BNS,
    Proposition 2.26 (ii) with error alpha/2 and failure beta/2 the output errs on at most alpha m / 2
    examples; by Theorem 2.14 with alpha/2 and beta/2 (VC dimension 1) its error on the distribution is at
    most alpha. Union bound.

    Args:
        bits: d; thresholds are 0, ..., 2^d.
        alpha: generalization error, in (0, 1).
        beta: failure probability, in (0, 1).
        epsilon: total epsilon (delta is 0), > 0.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(exponential_thresholds(1024, 0.1, 0.1, 0.5))
        119829
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta)
    log_thresholds = bits * math.log(2.0) + math.log1p(2.0**-bits)
    selection = exponential_mechanism(log_thresholds, alpha / 2.0, beta / 2.0, epsilon)
    return max(agnostic(1, alpha / 2.0, beta / 2.0), selection)


def binary_search(bits: int, error: float, beta: float, comparison_epsilon: float) -> float:
    """Examples after which the noisy binary search over the thresholds errs on few of them: (2/(error eps0)) ln((d+1)/(2 beta)).

    The derivation is that of `binary_search_thresholds`.

    Args:
        bits: d; thresholds are 0, ..., 2^d.
        error: as a share of the examples, in (0, 1).
        beta: failure probability, in (0, 1).
        comparison_epsilon: eps0 of one comparison, > 0.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(binary_search(64, 0.1, 0.1, 0.02))
        5784
    """
    arguments.counts(bits=bits)
    arguments.fractions(error=error, beta=beta)
    arguments.positive(comparison_epsilon=comparison_epsilon)
    return 2.0 / (error * comparison_epsilon) * math.log((bits + 1) / (2.0 * beta))


def binary_search_thresholds(bits: int, alpha: float, beta: float, comparison_epsilon: float) -> float:
    """Examples for the noisy binary search over the thresholds 0, ..., 2^d.

        max{ (200/alpha^2) ln(4/(alpha beta)),  (4/(alpha eps0)) ln((d+1)/beta) }

    The search keeps a range [lo, hi], takes mid = floor((lo+hi)/2), D = #{ones at x >= mid} - #{zeros at x
    <= mid}, and goes to [mid+1, hi] if D + Lap(2/eps0) > 0, else to [lo, mid]; d+1 comparisons leave one
    threshold. (Every record moves D by at most 1, a replacement by 2: each comparison is eps0-private under
    replace-one.)

    Derivation. Thresholds j <= mid err on every one at x >= mid, and those j > mid on every zero at x <=
    mid. Let t be the target. If t > mid then D = #[mid, t) and only left is wrong, which takes noise <=
    -#[mid, t); if t <= mid then D = -#[t, mid] and only right is wrong, which takes noise > #[t, mid]. The
    final j is mid (left) or mid + 1 (right) of the last comparison on that side, so if it is on the wrong
    side of t it errs on exactly the counted examples. Hence its errors never exceed the largest noise in
    the one harmful direction, which is at most tau = (2/eps0) ln((d+1)/beta) except with probability
    (d+1) exp(-tau eps0/2)/2 = beta/2. Require tau <= alpha m / 2, and use Theorem 2.14 with alpha/2 and
    beta/2 for the rest. Zeros AT mid must count: if they did not, a heavy point at mid would make the search
    step over it for nothing.

    Args:
        bits: d; thresholds are 0, ..., 2^d.
        alpha: generalization error, in (0, 1).
        beta: failure probability, in (0, 1).
        comparison_epsilon: eps0 of one comparison, > 0 (the total over d+1 comparisons is up to the
            composition).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(binary_search_thresholds(64, 0.1, 0.1, 0.005))
        119829
    """
    arguments.counts(bits=bits)
    arguments.fractions(alpha=alpha, beta=beta)
    search = binary_search(bits, alpha / 2.0, beta / 2.0, comparison_epsilon)
    return max(agnostic(1, alpha / 2.0, beta / 2.0), search)


def interval_search(
    comparisons: int,
    error: float,
    beta: float,
    *,
    comparison_epsilon: float,
    stability_epsilon: float,
    stability_delta: float,
    choice_epsilon: float,
    calibration: str = "proved",
) -> float:
    """Examples after which the searches for the length of an interval err on few of them (BNS §3.2, Remark 3.5: no constants there).

        (4/a) max{ (1/e_c) ln(c/(2b)), gap(b), (2/e_h) ln(4/b) },   3 b + d_s = beta,

    for an error of a on the sample, with c comparisons of e_c each, A_dist of (e_s, d_s) and gap its `stability_gap`, and five hypotheses
    for an exponential mechanism of e_h. With shares of a total epsilon that is O(log d log log d) for c = ceil(log2(d + 1)), and
    O(d log d), or O(d^1/2 log d) with delta, for c = d.

    Derivation. W(L) is the greatest min(zeros, ones) of L consecutive points. The sample is labelled by a threshold, and n is so
    large that each of the following is off by less than a n/4 except with probability b, for all of one kind together.

    - A comparison of W + Lap(1/e_c) with a n/2 goes wrong if W < a n/4 passes as large, or W > 3 a n/4 does not. One of the two is
      impossible, so one of c comparisons goes wrong with probability at most c exp(-e_c a n/4)/2. Otherwise the search ends at a j with
      W(2^j) >= a n/4, or at a single block, and with W(2^(j-1)) <= 3 a n/4.
    - Some block of 2^(j+1) points of A or B has balance W(2^j), and all others of its partition have none: A_dist releases it if
      a n/4 >= gap(b). A block without balance is released with probability at most d_s.
    - One of the ends of the block's quarters errs on at most 3 a n/4 examples, and the exponential mechanism picks one of the four others
      with a n/4 more errors with probability at most 4 exp(-e_h a n/8).

    Args:
        comparisons: c >= 1.
        error: a, errors as a share of the examples, in (0, 1).
        beta: failure probability, in (0, 1).
        comparison_epsilon: e_c, > 0.
        stability_epsilon, stability_delta: e_s and d_s of each A_dist; d_s < beta.
        choice_epsilon: e_h, > 0.
        calibration: constants of A_dist.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> shares = {"stability_epsilon": 0.25, "stability_delta": 5e-7, "choice_epsilon": 0.125}
        >>> round(interval_search(7, 0.1, 0.05, comparison_epsilon=0.375 / 7, **shares))
        5589
    """
    arguments.counts(comparisons=comparisons)
    arguments.fractions(error=error, beta=beta, stability_delta=stability_delta)
    arguments.positive(
        comparison_epsilon=comparison_epsilon, stability_epsilon=stability_epsilon, choice_epsilon=choice_epsilon
    )
    event = (beta - stability_delta) / 3
    if event <= 0:
        raise ValueError(f"stability_delta must be < beta = {beta}, got {stability_delta}")
    search = max(math.log(comparisons / (2 * event)), 0.0) / comparison_epsilon
    stable = stability_gap(event, stability_epsilon, stability_delta, calibration=calibration)
    choice = 2 / choice_epsilon * math.log(4 / event)
    return 4 / error * max(search, stable, choice)


def interval_search_thresholds(comparisons: int, alpha: float, beta: float, **given: Any) -> float:
    """Examples for the searches for the length of an interval to learn a threshold.

    `interval_search` and Theorem 2.14, each with alpha/2 and beta/2.

    Args:
        comparisons: c >= 1.
        alpha: generalization error, in (0, 1).
        beta: failure probability, in (0, 1).
        given: the budgets and the calibration, as for `interval_search`.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> shares = {"stability_epsilon": 0.25, "stability_delta": 5e-7, "choice_epsilon": 0.125}
        >>> round(interval_search_thresholds(7, 0.2, 0.1, comparison_epsilon=0.375 / 7, **shares))
        26492
    """
    arguments.fractions(alpha=alpha, beta=beta)
    search = interval_search(comparisons, alpha / 2, beta / 2, **given)
    return max(agnostic(1, alpha / 2.0, beta / 2.0), search)


def non_private_lower_bound(alpha: float, *, constant: float = 1.0) -> float:
    """Examples every threshold learner needs, private or not: Theorem 2.12 of BNS at VC dimension 1.

    Args:
        alpha: generalization error, in (0, 1).
        constant: the constant the theorem leaves out.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> non_private_lower_bound(0.25)
        4.0
    """
    return pac_lower_bound(1, alpha, constant=constant)


def pure_lower_bound(bits: int, *, constant: float = 1.0) -> float:
    """Examples every purely private threshold learner needs, proper or not: constant * d.

    Omega(d) by Feldman and Xiao, quoted in BNS §3.2.

    Args:
        bits: d; points are 0, ..., 2^d - 1.
        constant: the constant the theorem leaves out (at fixed alpha, beta, epsilon).

    Returns:
        Number of examples, up to the constant.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pure_lower_bound(64)
        64.0
    """
    arguments.counts(bits=bits)
    arguments.positive(constant=constant)
    return constant * bits


def _promise(depth: int, alpha: float, beta: float, epsilon: float, delta: float, calibration: str) -> float:
    """8^N 4/(alpha eps), the factor of Lemma 3.14, with all arguments checked."""
    arguments.integer("depth", depth, at_least=1, at_most=_DEEPEST)
    arguments.fractions(alpha=alpha, beta=beta, delta=delta)
    arguments.positive(epsilon=epsilon)
    arguments.calibration(calibration)
    if alpha > 0.5:
        raise ValueError(f"alpha must be <= 1/2 (BNS, Lemma 3.14), got {alpha}")
    if calibration == "proved":
        epsilon = printed_equivalent(epsilon, delta)
    return 8.0**depth * 4.0 / (alpha * epsilon)


def _log2_of(numerator: float, beta: float, delta: float) -> float:
    """log2(numerator/(beta delta)), where the product may underflow."""
    arguments.fractions(beta=beta, delta=delta)
    return math.log2(numerator) - math.log2(beta) - math.log2(delta)
