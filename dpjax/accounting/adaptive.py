"""Composition of exponential mechanisms each of which is chosen by what the others released: nearly the least delta, from above.

All losses of an exponential mechanism on two neighbours lie in some interval [t - r, t] that contains 0 (`accounting.exponential`). An
adversary who knows the sum l of all losses so far picks the next t. If k mechanisms are left, what he reaches is V_k(l), where

    V_0(l) = max{0, 1 - e^(epsilon - l)},    V_k(l) = sup over t in [0, r] of p V_(k-1)(l + t) + (1 - p) V_(k-1)(l + t - r),

and p = (1 - e^(t - r))/(1 - e^-r). **Why two losses are enough**: V_0 is convex in y = e^-l. Given l, the mean of e^-loss is 1, so for a V
that is convex in y the law on the two ends is the worst one, of which p is the chance of t (Dong, Durfee, Rogers 2020). And V_k is convex
in y, too, as a supremum of sums of V_(k-1) at multiples of y. All mechanisms together have delta V_k(0), if t may be chosen so; r may be
chosen, too, up to its bound.

**On a grid** of l in steps of h = r/G the values are bounded from above. Let t be between j h and (j + 1) h. Convexity bounds V_(k-1)
between two grid points by the chord in y; the chord has the same weights 1 - u and u at l + t and at l + t - r, as y is multiplied by e^r.
Let F_j be the sum above for t = j h, with p_j, and let B_j = V_(k-1)(l + j h) - V_(k-1)(l + j h - r). With p = p_j - s (p_j - p_(j+1)), the
bound is

    (1 - u) F_j + u F_(j+1) + (p_j - p_(j+1)) (u (1 - s) B_(j+1) - (1 - u) s B_j),    where u (1 - s) = e^h (1 - u) s,

and (1 - u) s is greatest in the middle, 1/(e^(h/2) + 1)^2. What this adds to the larger F falls like h^2.
"""

import functools
import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpjax.accounting.bounded import independent_each, independent_total, refuse_delta
from dpjax.accounting.calibration import calibrate
from dpjax.accounting.composition import basic, few_losses, optimal
from dpjax.accounting.exponential import currency, largest_range, largest_rho
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, bisection

ADAPTIVE = "adaptive"  # the accountant's name
MOST = 64  # mechanisms, for which a value takes some ten milliseconds
_LONGEST = 1000.0  # nats, for which e^h is a float
_LARGEST = 500.0  # nats of a total that are used; what keeps so much keeps more


def adaptive_delta(count: int, each: float, epsilon: float) -> float:
    """A delta(epsilon) of `count` adaptively chosen exponential mechanisms with ranges of `each` or less.

    Where count each exceeds epsilon by less than a step of the grid, it is many times the least delta; for each, that is next to nothing.

    Args:
      count: k, from 1 to 64.
      each: r, from above 0 to 1000.
      epsilon: the total, at least 0 and finite.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> round(adaptive_delta(1, 1.67077, 1.0), 3), round(adaptive_delta(5, 0.79299, 1.0), 3)
    (0.1, 0.102)
    """
    count = arguments.count("count", count, at_most=MOST)
    each = arguments.number("each", each, above=0.0, at_most=_LONGEST)
    epsilon = arguments.number("epsilon", epsilon, at_least=0.0, below=math.inf)
    # G: where steps are small, a bound that is 7 % too high, as for 64, costs 1/400 of r; twice as fine would take five times as long.
    cells = min(max(256 // count, 16), 128)
    step = each / cells
    chance = np.expm1(np.arange(-cells, 1)[:, None] * step) / np.expm1(-each)
    bend = -np.diff(chance, axis=0) / (math.exp(step / 2) + 1) ** 2
    sums = np.arange(-count * cells, count * cells + 1) * step
    value = -np.expm1(np.minimum(epsilon - sums, 0.0))
    for _ in range(count):
        shifted = sliding_window_view(value, len(value) - 2 * cells)
        lower, upper = shifted[: cells + 1], shifted[cells:]
        rise = upper - lower
        reached = lower + chance * rise
        between = bend * np.maximum(math.exp(step) * rise[1:] - rise[:-1], 0.0)
        value = np.max(np.maximum(reached[1:], reached[:-1]) + between, axis=0)
    return min(float(value[0]) * (1 + 2.0**-40), 1.0)


def exponential_epsilon(
    count: int, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None
) -> float:
    """The largest epsilon of each of `count` adaptive exponential mechanisms that together keep (epsilon, delta), or rho-zCDP.

    For (epsilon, delta) it is the best of four: basic composition; optimal composition of pure mechanisms, which does not know that ranges
    are bounded (`calibrate`; computed for a count of up to 2^20 only); r^2/8-zCDP for each; and, for up to 64, what ranges allow, but for
    a few thousandths; for some hundredths at a delta far below 1e-15 or an epsilon in the hundreds. For rho it is sqrt(8 rho / count).

    Args:
      count: the number of mechanisms, >= 1.
      epsilon: the total epsilon, > 0, finite; or else rho is given.
      delta: the total delta, in [0, 1).
      rho: the total rho of zero-concentrated privacy, > 0, finite.

    Returns:
      r: mechanisms with P[z] proportional to exp(lambda u(z)) may have lambda range(u - u') <= r. That is `r q / (2 s)` in the exponent for
      a score q of sensitivity s, and each mechanism by itself promises (r, 0).

    Raises:
      TypeError, ValueError: an argument out of range; both epsilon and rho, or neither; a delta with rho.

    >>> round(exponential_epsilon(10, epsilon=1.0, delta=1e-6), 3), round(exponential_epsilon(100, epsilon=1.0, delta=1e-6), 4)
    (0.153, 0.0441)
    >>> round(exponential_epsilon(100, rho=0.02), 4)
    0.04
    >>> exponential_epsilon(4, epsilon=1.0)
    0.25
    """
    count = arguments.count("count", count)
    currency(epsilon, delta, rho)
    if rho is not None:
        rho = arguments.number("rho", rho, above=0.0, below=math.inf)
        # Root by root: 8 rho may overflow, and rho / count may be so small that digits are lost.
        return math.sqrt(8) * (math.sqrt(rho) / math.sqrt(count)) * (1 - 2.0**-50)
    return _each(
        count,
        arguments.number("epsilon", epsilon, above=0.0, below=math.inf),
        arguments.number("delta", delta, at_least=0.0, below=1.0),
    )


def adaptive_total(each: Guarantee, count: int, delta: float) -> Guarantee:
    """What `count` adaptively chosen exponential mechanisms keep together at a total delta: `exponential_epsilon` backwards, rounded up.

    Args:
      each: (r, 0), if `lambda range(u - u')` is at most r.
      count: the number of mechanisms.
      delta: the total delta, in [0, 1).

    Raises:
      TypeError, ValueError: an argument out of range; an `each` that is not pure, unless it promises nothing.

    >>> adaptive_total(Guarantee(0.153, 0.0, "REPLACE_ONE"), 10, 1e-6).covers(1.0, 1e-6)
    True
    """
    arguments.instance("each", each, Guarantee)
    count, delta = arguments.count("count", count), arguments.number("delta", delta, at_least=0.0, below=1.0)
    if each.is_none:
        return each
    refuse_delta("each", each)
    simple = basic({each: count})
    if delta == 0.0 or simple.epsilon == 0.0 or simple.is_none:
        return simple
    if count == 1:
        return independent_total(each, 1, delta)
    return Guarantee(_total(count, each.epsilon, delta), delta, each.relation)


@functools.lru_cache(maxsize=4096)
def _each(count: int, epsilon: float, delta: float) -> float:
    """`exponential_epsilon` of known numbers."""
    epsilon = min(epsilon, 1e300)  # what keeps so much keeps more, and its multiples are floats
    total = Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)  # of any relation: the numbers are the same
    if count == 1:
        return independent_each(total, 1).epsilon if delta > 0.0 else epsilon
    pure = "optimal" if delta > 0.0 and few_losses([count]) else "basic"
    each = calibrate(total, count, accountant=pure, delta_share=0.0).epsilon
    each = max(each, math.sqrt(8) * (math.sqrt(float(largest_rho(epsilon, delta))) / math.sqrt(count)))
    if delta == 0.0 or count > MOST:
        return each
    # Mechanisms that are (epsilon/count, delta/count)-private each keep the total, too: no bad start where delta is far above epsilon.
    part = Guarantee(epsilon / count, delta / count, ADD_OR_REMOVE_ONE)
    each = max(each, independent_each(part, 1).epsilon * (1 - 2.0**-50))
    used = min(epsilon, _LARGEST)
    longest = float(largest_range(used, delta))
    if each >= longest:
        return each

    def keeps(each: float) -> bool:
        return adaptive_delta(count, each, used) <= delta

    low, high = each, min(1.25 * each, longest)
    while high < longest and keeps(high):
        low, high = high, min(1.25 * high, longest)
    # A millionth less, so that `_total`, which is not quite exact, finds no more than this epsilon.
    return max(each, bisection.largest_float(keeps, low, high, precision=2.0**-11) * (1 - 2.0**-20))


@functools.lru_cache(maxsize=4096)
def _total(count: int, each: float, delta: float) -> float:
    """`adaptive_total` for two mechanisms or more: the least of what the four ways of `_each` give."""
    from scipy import optimize  # slow to import

    parts = {Guarantee(each, 0.0, ADD_OR_REMOVE_ONE): count}
    most = optimal(parts, delta=delta).epsilon if few_losses([count]) else basic(parts).epsilon
    # `largest_rho` gives up far more than 2^-36 of itself for rounding. Root by root: squares may overflow, or be 0.
    root = math.sqrt(count / 8) * each * (1 - 2.0**-37)

    def concentrated(epsilon: float) -> bool:
        return math.sqrt(float(largest_rho(epsilon, delta))) >= root

    # What is still enough at 2^-60 of that is not searched for further: to 0 it would be a thousand steps.
    most = bisection.least_float(concentrated, 2.0**-60 * most, most, precision=2.0**-40)
    if count > MOST:
        return most
    alone = independent_total(Guarantee(each, 0.0, ADD_OR_REMOVE_ONE), 1, delta / count)
    most = min(most, count * alone.epsilon)
    if each > _LONGEST:
        return most

    def excess(epsilon: float) -> float:
        return math.log(max(adaptive_delta(count, each, epsilon), 1e-320)) - math.log(delta)

    high = min(most, _LARGEST)
    if excess(high) >= 0.0:
        return most
    if excess(0.0) <= 0.0:
        return 0.0
    found = float(optimize.brentq(excess, 0.0, high, xtol=2.0**-26 * high, rtol=2.0**-40)) + 2.0**-25 * high
    return min(most, found) if excess(found) <= 0.0 else most
