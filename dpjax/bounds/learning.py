"""Sample sizes of non-private learning: VC bounds (BNS §2.2.1). All are numbers of examples, as floats."""

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
    """Examples after which all empirical errors are right to alpha: (50 VC / a^2) ln(1/(a b)).

    For every hypothesis of the class, whatever the target (BNS, Theorem 2.14).

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
    return 50.0 * vc / alpha**2 * -math.log(alpha * beta)
