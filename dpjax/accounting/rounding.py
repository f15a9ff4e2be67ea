"""Rounds exact rationals to floats on the safe side: the reported privacy is never better than the true one."""

import math
import sys
from fractions import Fraction

_MOST = Fraction(sys.float_info.max)


def at_least(exact: Fraction) -> float:
    """The smallest float64 >= exact, which is infinity if no finite one is.

    >>> Fraction(at_least(3 * Fraction(0.1))) >= 3 * Fraction(0.1)
    True
    """
    if abs(exact) > _MOST:
        return math.inf if exact > 0 else -sys.float_info.max
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def at_most(exact: Fraction) -> float:
    """The largest float64 <= exact.

    >>> Fraction(at_most(Fraction(1) / 3)) <= Fraction(1) / 3
    True
    """
    return 0.0 - at_least(-exact)  # and not -0.0
