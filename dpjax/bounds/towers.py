"""Lower bounds with log* under approximate privacy: the interior point problem, thresholds, quasi-concave optimisation; exact ints.

CLNSS quotes Omega(log*|X|) of Bun, Nissim, Stemmer, Vadhan (2015) for proper threshold learners and of Alon, Livni, Malliaris, Moran (2019)
for improper ones, and proves Omega~(2^log* T) for quasi-concave optimisation (Theorem 1.3) in its full version only; none of them is given
a constant there. What follows has all constants, and is short enough to be given in full. The improper bound is not in dpjax: its proof
uses Ramsey's theorem, with constants that say nothing on domains that can be written down.

**One step.** Let f_n(s) be the least worst failure with n points on {1, ..., s} of an (epsilon, delta)-private solver of the interior
point problem (replace-one). From a solver for n + 1 points on b^s values make one for n points on s values: draw a string y of s digits
below b; keep it as one point, and for each x_i make a string that agrees with y in its first x_i digits and continues at random; take the
interior point z that the solver gives, and answer with the length of the prefix that it shares with y. All points share the first min x_i
digits, so z does, too. It shares max x_i + 1 digits only by guessing a digit of y that no other point shows, which has probability at most
e^epsilon/b + delta by privacy of the point y. A row x_i makes one row, so the new solver is as private. Hence

    f_n(s) <= f_(n+1)(b^s) + e^epsilon/b + delta,

and c copies of one of two values cannot be told from c copies of the other with failure below f_c(2) >= t_c: change them one by one, and
let p_i be the probability of the second value when i have changed, so that p_(i+1) <= e^eps p_i + delta and
1 - p_i <= e^eps (1 - p_(i+1)) + delta. If c is even, p_(c/2) or 1 - p_(c/2) is 1/2 or more; if c is odd, one of p_((c-1)/2) and
1 - p_((c+1)/2) is (1 - delta)/(1 + e^eps) or more. So with j = floor(c/2)

    t_c = e^(-j eps) (1/2 or (1 - delta)/(1 + e^eps)) - delta (1 - e^(-j eps))/(e^eps - 1),

which is the failure of the best solver on two values.

With S(1) = 2 and S(N) = b^S(N-1), no solver manages with c + N - 1 points on S(N) values if t_c - (N-1)(e^epsilon/b + delta) exceeds its
failure: n >= c + N, where N is log*|X| up to the first level. (One point more is never worse: it may be dropped.)

**The same with doubled points** (CLNSS §1.3.5, amplified privacy: neighbours are multisets of n points whose counts F(x) = #{x_i <= x}
differ by at most 1 at every x). For each x_i make TWO strings, y's first x_i digits followed by the least digits only, and by the
greatest only. Let l be the length of the prefix that z shares with y. If z leaves y downwards, #{strings <= z} = #{x_i <= l}; if upwards,
2n - #{x_i <= l}, or 2n - #{x_i < e} where z is one of the strings; so neighbours stay neighbours, and nothing at all is known of digit
max x_i + 1. Hence
g_n(s) <= g_(2n)(b^s) + 1/b, and g_c(2) >= t_c as before: amplified solvers need more than c 2^(N-1) points. (Again one point more is never
worse: drop the greatest.)

**Quasi-concave optimisation.** Q(y) = min(#{x_i <= y}, #{x_i >= y}) is quasi-concave, changes by at most 1 between amplified neighbours,
reaches n/2, and is positive at interior points only. A solver that is private for all functions of sensitivity 1 that it may be given (as
RecConcave is: it sees the data through Q alone), given the promise r = n/2 (n, if N = 1), finds one unless its additive error is r or more;
a larger promise is no help, since a constant may be added to Q. So the additive error is at least c 2^(N-2): it doubles with every level,
where the interior point problem itself needs one more point.
"""

import functools
import math

from dpjax.core import arguments, bisection


def approximate_interior_point(domain: int, beta: float, epsilon: float, delta: float) -> int:
    """Points every (epsilon, delta)-private solver of the interior point problem needs, with log*|X| (Bun et al. 2015, CLNSS §1.1).

    It is c + N for the best c and N of this module's derivation; replace-one. For proper threshold learners see
    `approximate_proper_thresholds`.

    Args:
        domain: |X| >= 2, of any size.
        beta: failure probability, in (0, 1).
        epsilon: > 0.
        delta: in [0, 1).

    Returns:
        Number of points, >= 1.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> [approximate_interior_point(2**bits, 0.1, 0.1, 1e-6) for bits in (1, 8, 1024)]
        [33, 33, 34]
    """
    arguments.positive(epsilon=epsilon)
    excluded = _excluded(domain, beta, epsilon, delta, math.exp(min(epsilon, 700.0)), delta)
    return max((copies + levels for copies, levels in excluded), default=1)


def approximate_proper_thresholds(
    bits: int, beta: float, epsilon: float, delta: float, *, learner: str = "pac", calibration: str = "proved"
) -> int:
    """Examples every (epsilon, delta)-private PROPER learner of thresholds needs at error below 1/3, with log*|X| (Bun et al. 2015).

    Empirical: a learner with n >= 2 examples and error below 1/3 gives a (2 eps, (1 + e^eps) delta)-private solver of the interior point
    problem with n points: give each point random lower digits (there are K values of them, so that two points coincide with probability at
    most n^2/(2K)), and label the lower half of the points 1 and the others 0. A changed point changes at most two of these examples. A
    threshold with such a small error is right on some example of each label, and lies between them. So n is at least
    `approximate_interior_point` on 2^d/K values with failure beta + n^2/(2K) at that privacy; the best K = 2^i is taken. PAC: that, divided
    by `rows_of_empirical(epsilon)` (MULTI Theorem 28).

    Args:
        bits: d; points are 0, ..., 2^d - 1.
        beta: failure probability, in (0, 1).
        epsilon: > 0, under replace-one.
        delta: in [0, 1).
        learner: "empirical" or "pac".
        calibration: "proved" or "printed" factor of Theorem 28.

    Returns:
        Number of examples, >= 1.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> approximate_proper_thresholds(64, 0.05, 0.1, 1e-6), approximate_proper_thresholds(64, 0.05, 0.1, 1e-6, learner="empirical")
        (22, 24)
    """
    from dpjax.bounds.multi import rows_of_empirical

    arguments.domain_bits(bits)
    arguments.positive(epsilon=epsilon)
    arguments.number("delta", delta, at_least=0.0, below=1.0)
    arguments.fractions(beta=beta)
    doubled = min(1.0 - 2.0**-53, (1.0 + math.exp(min(epsilon, 700.0))) * delta)
    needed = 1
    for most in (8, 64, 512, 4096):  # the n for which coincidences are counted
        for free in range(2 * most.bit_length(), min(bits, 48), 2):
            failure = beta + most**2 / 2.0 ** (free + 1)
            if failure < 0.5:
                found = approximate_interior_point(2 ** (bits - free), failure, 2.0 * epsilon, doubled)
                needed = max(needed, min(most, found))
    if arguments.choice("learner", learner, ("empirical", "pac")) == "empirical":
        return needed
    return math.floor((needed - 1) / rows_of_empirical(epsilon, calibration=calibration)) + 1


def amplified_interior_point(domain: int, beta: float, epsilon: float, delta: float) -> int:
    """Points every solver of the interior point problem with AMPLIFIED (epsilon, delta)-privacy needs, with 2^log*|X| (CLNSS §1.3.5).

    It is c 2^(N-1) + 1 for the best c and N of this module's derivation.

    Args:
        domain: |X| >= 2, of any size.
        beta: failure probability, in (0, 1).
        epsilon: > 0, for multisets whose counts below each point differ by at most 1.
        delta: in [0, 1).

    Returns:
        Number of points, >= 1.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> [amplified_interior_point(2**bits, 0.1, 0.1, 1e-6) for bits in (1, 8, 1024)]
        [33, 45, 65]
    """
    excluded = _excluded(domain, beta, epsilon, delta, 1.0, 0.0)
    return 1 + max((copies * 2 ** (levels - 1) for copies, levels in excluded), default=0)


def quasi_concave_error(size: int, beta: float, epsilon: float, delta: float) -> int:
    """The additive error of every (epsilon, delta)-private quasi-concave optimiser, with 2^log* T (CLNSS Theorem 1.3, constants ours).

    It is c 2^(N-2) (c, if N = 1) for the best c and N of this module's derivation, for solvers that are private for all functions of
    sensitivity 1 that they may be given, with probability 1 - beta, at the promise c 2^(N-2). One of them keeps `rec_concave_error`.

    Args:
        size: T >= 1; the solutions are 0, ..., T.
        beta: failure probability, in (0, 1).
        epsilon, delta: total privacy, > 0 and in [0, 1).

    Returns:
        The additive error, in units of the quality; 0 where nothing follows.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> [quasi_concave_error(2**bits, 0.1, 0.1, 1e-6) for bits in (1, 1024, 4096)]
        [32, 32, 42]
    """
    arguments.counts(size=size, unbounded=True)
    excluded = _excluded(size + 1, beta, epsilon, delta, 1.0, 0.0)
    return max((copies if levels == 1 else copies * 2 ** (levels - 2) for copies, levels in excluded), default=0)


def _excluded(
    domain: int, beta: float, epsilon: float, delta: float, factor: float, missed: float
) -> list[tuple[int, int]]:
    """(c, N) for which S(N) values are too many: t_c - (N - 1) (factor/b + missed) > beta, with the greatest c for each N.

    t_c falls in c, so c is found by bisection: from 2j to 2j + 1 copies 1/2 becomes (1 - delta)/(1 + e^eps), which is less; from 2j + 1 to
    2j + 2, in units of e^(-(j + 1) eps), (1 - delta)/(1 + e^-eps) becomes 1/2 - delta.
    """
    arguments.counts(at_least=2, domain=domain, unbounded=True)
    arguments.fractions(beta=beta)
    arguments.positive(epsilon=epsilon)
    arguments.number("delta", delta, at_least=0.0, below=1.0)

    def allowed(copies: int, levels: int) -> bool:
        """Whether this argument does not exclude that many copies and levels."""
        spare = _two_values(copies, epsilon, delta) - beta
        if spare <= 0.0 or levels == 1:
            return spare <= 0.0
        base = _base(spare, levels - 1, factor, missed)
        return not base or not _fits(domain, base, levels)

    found, levels = [], 1
    while (most := bisection.least_rows(functools.partial(allowed, levels=levels), 1, epsilon=epsilon) - 1) > 0:
        found.append((most, levels))
        levels += 1
    return found


def _two_values(copies: int, epsilon: float, delta: float) -> float:
    """t_c: the least failure of a solver that tells `copies` copies of one value from as many of another."""
    middle = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 700.0))) if copies % 2 else 0.5
    steps = copies // 2 * epsilon
    if steps == 0.0:
        return middle
    return math.exp(-steps) * middle + delta * math.expm1(-steps) / math.expm1(min(epsilon, 700.0))


def _base(spare: float, steps: int, factor: float, delta: float) -> int:
    """The least b >= 2 with steps (factor/b + delta) < spare; 0 if there is none."""
    left = spare / steps - delta
    if left <= 0.0 or factor / left > 2.0**52:
        return 0
    return max(2, math.floor(factor / left) + 1)


def _fits(domain: int, base: int, levels: int) -> bool:
    """Whether S(levels) <= domain, with S(1) = 2 and S(i + 1) = base^S(i)."""
    size = 2
    for _ in range(levels - 1):
        if size > (domain.bit_length() + 1) / math.log2(base):
            return False
        size = base**size
    return size <= domain
