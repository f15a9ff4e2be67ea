"""Sample sizes for non-private learning: VC bounds (BNS §2.2.3). All are numbers of examples, as floats."""

import math

from dpjax.core import arguments


def pac_lower_bound(vc: int, alpha: float, *, constant: float = 1.0) -> float:
    """Examples every learner needs: constant * VC / alpha (BNS, Theorem 2.12, stated as Omega(VC/alpha)).

    Args:
        vc: VC dimension of the class, >= 1.
        alpha: generalization error, in (0, 1).
        constant: the constant the theorem leaves out.

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> pac_lower_bound(1, 0.25)
        4.0
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha)
    arguments.positive(constant=constant)
    return constant * vc / alpha


def realizable(vc: int, alpha: float, beta: float) -> float:
    """Examples after which every consistent hypothesis of the class is good: (8/a) (VC ln(16/a) + ln(2/b)).

    With that many examples, with probability 1 - beta no concept of the class has error 0 on the sample and
    error above alpha on the distribution (BNS, Theorem 2.13).

    Args:
        vc: VC dimension of the class, >= 1.
        alpha: generalization error, in (0, 1).
        beta: failure probability, in (0, 1).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(realizable(1, 0.1, 0.1))
        646
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha, beta=beta)
    return 8.0 / alpha * (vc * math.log(16.0 / alpha) + math.log(2.0 / beta))


def agnostic(vc: int, alpha: float, beta: float) -> float:
    """Examples after which all empirical errors are correct to alpha: (50 VC / a^2) max{ln(1/(a b)), 1/6}.

    This is for every hypothesis of the class, whatever the target (BNS, Theorem 2.14). The 1/6 is not printed. Without it the theorem is
    false for a and b near 1, where it requires a single example: if points are uniform among 4000, that one is labelled 1 by its own point
    concept, of error 1/4000.

    Proof. Some deviation exceeds a with probability at most 4 S exp(-(a n - 1)^2 / (n + 1)), S = (2 e n/VC)^VC (Vapnik and Chervonenkis,
    with Serfling's inequality for two halves of 2n examples). Let L = ln(1/(a b)) >= 1/6 and n = 50 VC L/a^2 >= 8 VC. Then (a n - 1)^2 /
    (n + 1) >= (8/9) (a^2 n - 2 a) >= 44.4 VC L - 1.8. For VC = 1 this probability is at most b if 7 + ln L + 2 ln(1/a) + ln(1/b) <=
    44.4 L - 1.8, which 8.8 + ln L <= 42.4 L implies; a further dimension adds 5.7 + ln L + 2 ln(1/a) - 44.4 L < 0. Where L < 1/6, take a
    smaller b.

    Args:
        vc: VC dimension of the hypothesis class, >= 1.
        alpha: largest deviation between error on the sample and on the distribution, in (0, 1).
        beta: failure probability, in (0, 1).

    Returns:
        Number of examples.

    Raises:
        TypeError, ValueError: an argument out of range.

    Example:
        >>> round(agnostic(1, 0.1, 0.1))
        23026
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha, beta=beta)
    return 50.0 * vc / square(alpha=alpha) * max(-math.log(alpha * beta), 1 / 6)


def square(**value: float) -> float:
    """value^2, for use as a divisor; refused where float64 may take it for 0.

    >>> square(alpha=0.5)
    0.25
    """
    ((name, root),) = value.items()
    return arguments.number(name, root, above=2.0**-500) ** 2
