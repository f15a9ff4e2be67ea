"""Optimal composition of exponential mechanisms none of which depends on what the others release (Dong, Durfee, Rogers 2020).

All losses of an exponential mechanism on two neighbours lie in an interval [t - r, t] that contains 0 (`accounting.exponential`). How
private are k of them together, if each has an interval of its own?

**One mechanism.** Under Q, e^l has the mean 1 and lies in [e^(t - r), e^t]. Of all such laws the one on the two ends is the largest in
convex order, so its pair dominates all others (Blackwell), and products of dominating pairs dominate products. On the ends, under P and Q,

    a = P[l = t - r] = (e^t - 1) / (e^r - 1),    b = Q[l = t - r] = (1 - e^-t) / (1 - e^-r).

**All t are equal in the worst case.** Let two of the mechanisms have t_1 and t_2 with the sum s. Whatever t_1 is, their losses add up to s,
s - r or s - 2 r. As e^-l has the mean 1 under P, three such numbers leave one degree of freedom: the larger P[s] = (1 - a_1)(1 - a_2), the
worse the pair. And ln(1 - a) = ln(1 - e^(t - r)) - ln(1 - e^-r) is concave in t, so t_1 = t_2 is worst. Now take, among the (t_1, ..., t_k)
of largest delta, those with the least sum of squares. If two differed, their mean in place of both would have no less delta, but a smaller
sum of squares.

**Which t.** If i of k losses are t - r, they add up to k t - i r. The sum of the positive terms of delta is the largest of all
delta_j(t) = P[i <= j] - e^epsilon Q[i <= j], where i is binomial, with a or b. The derivative of P[i <= j] by a is
-k C(k - 1, j) a^j (1 - a)^(k - 1 - j), and b = a e^(r - t), 1 - b = (1 - a) e^-t. So the derivative of delta_j by t has the sign of
e^(epsilon + (j + 1) r - (k + 1) t) - 1: delta_j is greatest at t = (epsilon + (j + 1) r)/(k + 1), or not positive if that is above r. So

    delta(epsilon) = max over j of delta_j(min{r, (epsilon + (j + 1) r)/(k + 1)}),

which independent mechanisms attain. (A mechanism that is chosen by what others released may do more harm: then see `exponential_epsilon`.)
For many mechanisms not all j are tried: if t is in [t' - w, t'], all losses are in [t' - w - r, t'], as if the range were r + w.
"""

import functools
import math
from typing import Any

import numpy as np

from dpjax.accounting.exponential import exponential_rate, exponential_total
from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, bisection

BOUNDED = "bounded"  # the name of this accountant

_CELLS = 256  # more mechanisms are tried at so many t alone, which leaves each of them at most 1/256 less
_NEAR = 4  # how many t on either side of the worst one are looked at together
_MOST = 2**32  # of mechanisms: beyond, positions are no longer distinguished by floats
_LARGEST = 600.0  # nats: beyond, e^epsilon times a tail may be no float


def bounded_delta(count: int, each: float, epsilon: float) -> float:
    """delta(epsilon) of `count` exponential mechanisms with ranges of `each` or less, none depending on the others; rounded up.

    It is the least possible for up to 256 mechanisms. For more it is at most that of ranges 1/256 longer.

    Args:
      count: k, from 1 to 2^32.
      each: r, > 0, finite.
      epsilon: the total, from 0 to 600.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> round(bounded_delta(1, 1.67077, 1.0), 5), round(bounded_delta(5, 0.79299, 1.0), 5)
    (0.1, 0.1)
    """
    count = arguments.count("count", count, at_most=_MOST)
    each = arguments.number("each", each, above=0.0, below=math.inf)
    epsilon = arguments.number("epsilon", epsilon, at_least=0.0, at_most=_LARGEST)
    return min(max(float(np.max(_deltas(count, each, epsilon, _all(count)))), 0.0), 1.0)


def composes_by_range(algorithm: Any) -> bool:
    """Whether all losses of an algorithm lie in an interval of length epsilon: it says so itself, and has no delta."""
    return bool(getattr(algorithm, "bounded_range", False)) and algorithm.guarantee().delta == 0.0


def refuse_delta(name: str, each: Any) -> None:
    """Refuses all but a guarantee (r, 0): a delta of each would have to be added to the total."""
    arguments.instance(name, each, Guarantee)
    if each.delta > 0.0:
        raise ValueError(f"{name} must have a delta of 0, as exponential mechanisms have, got {each}")


def independent_each(total: Guarantee, count: int) -> Guarantee:
    """The largest epsilon, rounded down, of each of `count` exponential mechanisms that keep a total, none depending on the others.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> round(independent_each(Guarantee(1.0, 1e-6, "REPLACE_ONE"), 100).epsilon, 4)
    0.0475
    """
    arguments.instance("total", total, Guarantee)
    return Guarantee(_each(arguments.count("count", count), total.epsilon, total.delta), 0.0, total.relation)


def independent_total(each: Guarantee, count: int, delta: float) -> Guarantee:
    """What `count` exponential mechanisms keep together at a total delta, if none depends on the others; rounded up.

    Raises:
      TypeError, ValueError: an argument out of range; an `each` that is not pure, as exponential mechanisms are.

    >>> independent_total(Guarantee(0.047, 0.0, "REPLACE_ONE"), 100, 1e-6).covers(1.0, 1e-6)
    True
    """
    refuse_delta("each", each)
    count, delta = arguments.count("count", count), arguments.number("delta", delta, at_least=0.0, below=1.0)
    most = exponential_total(each.epsilon, ranges=count, squares=count, delta=delta)

    def keeps(epsilon: float) -> bool:
        return bounded_delta(count, each.epsilon, epsilon) <= delta

    high = min(most, _LARGEST)
    if _summed(count, high, delta) and (high == most or keeps(high)):
        most = bisection.least_float(keeps, 0.0, high, precision=2.0**-40)
    return Guarantee(most, delta, each.relation)


@functools.lru_cache(maxsize=4096)
def _each(count: int, epsilon: float, delta: float) -> float:
    """The largest range of each, rounded down.

    It is where one of the worst t known so far, and their neighbours, has all of delta, once no other t is worse there.
    """
    least = float(exponential_rate(epsilon, delta, ranges=count, squares=count, independent=True)) * (1 - 2.0**-40)
    if not _summed(count, epsilon, delta):
        return least
    r, every, near = least, _all(count), np.arange(0)
    while (worst := int(np.argmax(_deltas(count, r, epsilon, every)))) not in near:
        near = np.union1d(near, every[max(worst - _NEAR, 0) : worst + _NEAR + 1])
        r = _reached(count, epsilon, delta, near, least)
    for margin in 2.0 ** np.arange(-36, 0):
        # Twice as much is allowed for rounding here, so that `independent_total` finds no more than this epsilon.
        if np.max(_deltas(count, r * (1 - margin), epsilon, every, allowed=2.0)) <= delta:
            return max(r * (1 - margin), least)
    return least


def _reached(count: int, epsilon: float, delta: float, tried: np.ndarray, least: float) -> float:
    """The range, `least` or more, at which one of the t that are tried has all of delta."""
    from scipy import optimize  # slow to import

    def above(r: float) -> float:
        return float(np.max(_deltas(count, r, epsilon, tried))) / delta - 1

    low = high = least
    while above(high) <= 0:
        low, high = high, 1.25 * high
    return least if high == least else float(optimize.brentq(above, low, high, rtol=2.0**-40))


def _summed(count: int, epsilon: float, delta: float) -> bool:
    """Whether tails are computed; otherwise there is `exponential_rate` alone."""
    return delta > 0.0 and count <= _MOST and epsilon <= _LARGEST


def _all(count: int) -> np.ndarray:
    return np.arange(min(count, _CELLS))


def _deltas(count: int, r: float, epsilon: float, tried: np.ndarray, *, allowed: float = 1.0) -> np.ndarray:
    """For each j that is tried the greatest delta_j; or for each cell of t that is tried a bound of its delta."""
    from scipy import special  # slow to import

    if count <= _CELLS:
        j = tried
        t = np.minimum((epsilon + (j + 1) * r) / (count + 1), r)
    else:
        t = (tried + 1) * (r / _CELLS)
        r *= 1 + 1 / _CELLS
        j = np.clip(np.ceil((count * t - epsilon) / r) - 1, 0, count - 1)
    fewer = np.expm1(t - r) / np.expm1(-r)  # 1 - a
    p, q = (special.betainc(count - j, j + 1.0, chance) for chance in (fewer, fewer * np.exp(-t)))
    # Tails of up to 10^8 mechanisms were wrong by half a percent of this, at most.
    rounding = allowed * 2.0**-40 * (1 + math.sqrt(count))
    return (1 + rounding) * p - (1 - rounding) * np.exp(epsilon) * q
