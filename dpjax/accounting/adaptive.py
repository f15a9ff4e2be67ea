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

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dpjax.core import arguments

MOST = 64  # mechanisms, for which a value takes some ten milliseconds
_LONGEST = 1000.0  # nats, for which e^h is a float


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
