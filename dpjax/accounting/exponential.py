"""Budgets for exponential mechanisms that keep an (epsilon, delta) or zCDP total, as large as basic or concentrated composition allows.

**Bounded range.** A mechanism with P[z] proportional to exp(lambda u(z)) has the loss l(z) = ln P[z]/Q[z] = lambda (u(z) - u'(z)) + a
constant: all losses of two neighbours lie in an interval of length r = lambda range(u - u'), which contains 0 (Durfee, Rogers 2019; Dong,
Durfee, Rogers 2020). So it is (r, 0)-private; if no more than that were known, losses could lie anywhere in [-r, r], which is twice as
long.

**Concentration** (Cesar, Rogers 2021): such a pair is r^2/8-zCDP. Proof: K(s) = ln E_Q[e^(s l)] has K(0) = K(1) = 0, and K''(s) is the
variance of l under a tilted law, which is at most r^2/4 because l lies in an interval of length r. So K(s) - (r^2/8) s (s - 1) is concave
and 0 at s = 0 and 1, hence at most 0 beyond: D_s(P || Q) = K(s)/(s - 1) <= s r^2/8 for all s > 1. Under adaptive composition the values
of rho add up (Bun, Steinke 2016, Lemma 2.3).

**From a range to (epsilon, delta)** (Dong, Durfee, Rogers 2020). If all losses lie in [t - r, t], the worst pair of laws has two outcomes,
the ends, as the mean of e^-l is 1. Its delta is (1 - e^(t - r))(1 - e^(epsilon - t))/(1 - e^-r), which is greatest at t = (r + epsilon)/2:
(1 - u)^2/(1 - e^-epsilon u^2), where u = e^-((r - epsilon)/2). Runs of which none depends on what others release have such an interval
together, as long as all of theirs. (Where a run depends on others, so does t, and nothing of the kind follows.)

**From rho to (epsilon, delta)** (Canonne, Kamath, Steinke 2020, Proposition 12). delta = E_P[(1 - e^(epsilon - l))_+], and with a = alpha -
1 > 0, 1 - e^(-x) <= e^(a x) (a/(a+1))^(a+1)/a for all x > 0, with equality at e^(-x) = a/(a+1). So rho-zCDP gives, for every a > 0,

    delta <= exp(a ((a + 1) rho - epsilon)) (a/(a+1))^(a+1) / a,

whose right side is delta at rho(a) = (epsilon + (ln(delta a) + (a + 1) ln(1 + 1/a))/a) / (a + 1). This holds for every a, so also for the
greatest rho(a) over a list of them.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpjax.accounting.rounding import at_least
from dpjax.core import arguments

# The a that are tried, relative to the best one for Bun and Steinke's rho + 2 sqrt(rho ln(1/delta)): adjacent ones differ by 4.4 %.
_ORDERS = np.geomspace(1 / 8, 8, 97)
# And smaller ones, in absolute terms, the best where delta is not far below epsilon: adjacent ones differ by 10.7 %.
_LESSER = np.geomspace(1 / 8, 2.0**44, 321)
# What is given up for rounding: even in float32 the sum in rho(a) loses less than half of it.
_SAFE = 1.0 - 4e-6


@arguments.in_plain_numbers
def largest_rho(epsilon: Any, delta: Any, *, xp: Any = np) -> Any:
    """Nearly the largest rho for which every rho-zCDP mechanism is known to be (epsilon, delta)-private: see the module; 0 if delta is 0.

    Args:
      epsilon: > 0; a number or a traced scalar.
      delta: in [0, 1); a number or a traced scalar. Any excess over 1/2 is not used.
      xp: `numpy` or `jax.numpy`.

    Formal guarantees: a mechanism with D_alpha <= rho alpha for all alpha > 1 in both directions is (epsilon, delta)-private, under the
    same relation.

    Raises:
      TypeError, ValueError: a known epsilon or delta out of range, or arrays with axes.

    >>> round(float(largest_rho(1.0, 1e-6)), 5), float(largest_rho(1.0, 0.0))
    (0.02435, 0.0)
    """
    if shapes := [np.shape(each) for each in (epsilon, delta) if np.ndim(each)]:
        raise ValueError(f"epsilon and delta must be scalars (jax.vmap takes arrays), got shape {shapes[0]}")
    for end in arguments.extremes(epsilon):
        arguments.positive(epsilon=end)
    for end in arguments.extremes(delta):
        arguments.number("delta", end, at_least=0.0, below=1.0)
    used = xp.minimum(xp.where(delta > 0, delta, 0.5), 0.5)
    log_delta = xp.log(used)
    root = xp.sqrt(-log_delta)
    best = root * (xp.sqrt(epsilon - log_delta) + root)
    # The derivative of a quotient is divided by epsilon^2, which float32 may take for 0.
    best = best / epsilon if xp is np else best * xp.exp(-xp.log(epsilon))
    a = xp.minimum(best * xp.asarray(_ORDERS, float), 1e30)
    a = xp.concatenate([xp.minimum(xp.asarray(_LESSER, float), a[0]), a])
    # Where delta a is near 1, a sum of two logarithms would lose its digits.
    near = used * a > 1e-3
    log_product = xp.where(near, xp.log(xp.where(near, used * a, 1.0)), log_delta + xp.log(a))
    rho = (epsilon + (log_product + (a + 1) * xp.log1p(1 / a)) / a) / (a + 1)
    return xp.where(delta > 0, xp.maximum(xp.max(rho), 0.0) * _SAFE, 0.0)


@arguments.in_plain_numbers
def largest_range(epsilon: Any, delta: Any, *, xp: Any = np) -> Any:
    """The largest r for which losses in an interval of length r imply (epsilon, delta)-privacy, rounded down; epsilon if delta is 0.

    Args:
      epsilon: > 0; a number or a traced scalar.
      delta: in [0, 1); a number or a traced scalar.
      xp: `numpy` or `jax.numpy`.

    Raises:
      TypeError, ValueError: a known epsilon or delta out of range.

    >>> round(float(largest_range(1.0, 0.1)), 3), float(largest_range(1.0, 0.0))
    (1.671, 1.0)
    """
    for end in arguments.extremes(epsilon):
        arguments.positive(epsilon=end)
    for end in arguments.extremes(delta):
        arguments.number("delta", end, at_least=0.0, below=1.0)
    used = xp.where(delta > 0, delta, 0.5)  # the root of 0 has no derivative
    root = xp.sqrt(used * (used * xp.exp(-epsilon) - xp.expm1(-epsilon)))
    more = (2 * xp.log1p(root) - 2 * xp.log1p(-used)) * (1.0 - 2.0**-40)
    # The sum is rounded, too: where `more` is a unit in its last place, delta would be several times what is allowed.
    longer = (epsilon + more) * (1.0 - float(np.finfo(more.dtype).eps))
    return xp.where((delta > 0) & (longer > epsilon), longer, epsilon)


@arguments.in_plain_numbers
def exponential_rate(
    epsilon: Any, delta: Any, *, ranges: Any, squares: Any, independent: bool = False, xp: Any = np
) -> Any:
    """The largest lambda for which exponential mechanisms together are (epsilon, delta)-private, from sums of ranges or of their squares.

        max{r / ranges, sqrt(8 rho / squares)},   rho = `largest_rho`, r = epsilon, or `largest_range` of independent runs.

    Args:
      epsilon, delta: as for `largest_rho`.
      ranges: the largest sum of the ranges of u - u', over all neighbours; > 0.
      squares: the largest sum of their squares; > 0.
      independent: whether no run depends on what others release.
      xp: `numpy` or `jax.numpy`.

    Formal guarantees: (epsilon, delta) for all runs together, also adaptive ones unless `independent`, if `ranges` and `squares` bound the
    sums along every course that the runs can take; under the relation of the neighbours.

    Raises:
      TypeError, ValueError: a known argument out of range.

    >>> round(float(exponential_rate(1.0, 1e-6, ranges=100, squares=100)), 4)
    0.0441
    """
    rho = largest_rho(epsilon, delta, xp=xp)
    for name, sums in (("ranges", ranges), ("squares", squares)):
        for end in arguments.extremes(sums):
            arguments.positive(**{name: end})
    root = xp.sqrt(xp.where(rho > 0, rho, 1.0) * 8 / squares)  # the root of 0 has no derivative
    longest = largest_range(epsilon, delta, xp=xp) if independent else epsilon
    return xp.maximum(longest / ranges, xp.where(rho > 0, root, 0.0))


def exponential_total(rate: float, *, ranges: float, squares: float, delta: float) -> float:
    """The least epsilon, rounded up, at which independent exponential mechanisms with this rate are (epsilon, delta)-private together.

    Args:
      rate: lambda, > 0.
      ranges, squares, delta: as for `exponential_rate`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> 0.999 < exponential_total(0.0441, ranges=100, squares=100, delta=1e-6) < 1.001
    True
    """
    for name, value in (("rate", rate), ("ranges", ranges), ("squares", squares)):
        arguments.number(name, value, above=0.0, below=math.inf)
    arguments.number("delta", delta, at_least=0.0, below=1.0)
    low, high = 0.0, at_least(Fraction(ranges) * Fraction(rate))
    if high == math.inf:
        raise ValueError(f"ranges must be such that rate times it is a float, got {ranges!r} and a rate of {rate!r}")
    for _ in range(60):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        found = exponential_rate(middle, delta, ranges=ranges, squares=squares, independent=True)
        enough = found * (1 - 2.0**-51) >= rate  # the quotients are rounded
        low, high = (low, middle) if enough else (middle, high)
    return high


def currency(epsilon: Any, delta: Any, rho: Any) -> None:
    """ValueError unless a total is given as epsilon, with or without delta, or as rho."""
    if (epsilon is None) == (rho is None):
        raise ValueError(f"give exactly one of epsilon and rho, got epsilon={epsilon!r}, rho={rho!r}")
    if rho is not None and (arguments.is_traced(delta) or delta != 0.0):
        raise ValueError(f"delta must not be given with rho, got {delta!r}")
