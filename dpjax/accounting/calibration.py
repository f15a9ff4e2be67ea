"""How much each of k mechanisms may spend so that together they keep a total guarantee."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpjax.accounting.composition import TOTAL_PRECISION, advanced, total_delta
from dpjax.accounting.guarantee import Guarantee
from dpjax.accounting.rounding import at_most
from dpjax.core import arguments, bisection

ACCOUNTANTS = ("basic", "advanced", "optimal")

# A budget is searched for to this relative precision, from below.
_PRECISION = 2.0**-32
# `closed_form_epsilon` gives up this much for rounding; float32 arithmetic is wrong by less than half of it.
_SAFE = 1.0 - 1e-6


def calibrate(
    total: Guarantee, count: int, *, accountant: str = "optimal", delta_share: float | None = None
) -> Guarantee:
    """The budget of each of `count` mechanisms whose composition keeps `total`.

    Always d = s D/k. basic: e = E/k. advanced: d' = D - k d, and e solves
    sqrt(2 k ln(1/d')) e + 2 k e^2 = E, cut at 1 (BNS, Theorem 2.5). optimal: the largest e <= E whose
    `total_delta` at E is at most D (Kairouz, Oh, Viswanath 2015).

    Args:
        total: the guarantee (E, D) to keep, 0 < E < inf.
        count: number k of mechanisms, >= 1.
        accountant: "basic", "advanced" or "optimal".
        delta_share: the part s of D spent on the mechanisms' own deltas, in [0, 1]; 0 for pure mechanisms.
            The rest pays for the composition. Default 1 for basic, 1/2 for the others.

    Returns:
        The guarantee each mechanism must have, under total's relation. Composed by the same accountant, it never
        exceeds `total`, rounding included. Advanced may give less than basic for small k, as the printed theorem
        does.

    Raises:
        TypeError, ValueError: arguments out of range; "advanced" without any delta left for d'.

    Example:
        >>> each = calibrate(Guarantee(1.0, 1e-6, "REPLACE_ONE"), 100, delta_share=0.0)
        >>> round(each.epsilon, 3)
        0.024
    """
    arguments.instance("total", total, Guarantee)
    count = arguments.count("count", count)
    arguments.choice("accountant", accountant, ACCOUNTANTS)
    if not 0.0 < total.epsilon < math.inf:
        raise ValueError(f"total.epsilon must be finite and > 0, got {total.epsilon}")
    if delta_share is None:
        delta_share = 1.0 if accountant == "basic" else 0.5
    share = arguments.number("delta_share", delta_share, at_least=0.0, at_most=1.0)
    if accountant == "advanced" and (share == 1.0 or total.delta == 0.0):
        raise ValueError(
            'accountant must be "basic" or "optimal" unless total.delta > 0 and delta_share < 1 leave some delta for the composition '
            f'itself, got "advanced" with {total.delta} and {share}'
        )
    delta = at_most(Fraction(share) * Fraction(total.delta) / count)
    search = {"basic": _basic, "advanced": _advanced, "optimal": _optimal}[accountant]
    return Guarantee(search(total, count, delta), delta, total.relation)


def closed_form_epsilon(epsilon: Any, delta: Any, count: Any, *, xp: Any = np) -> Any:
    """The epsilon of each of k pure mechanisms whose adaptive composition is (epsilon, delta)-private.

        e0 = max{ epsilon / k,  (sqrt(2 L + 2 epsilon) - sqrt(2 L)) / sqrt(k) },   L = ln(1/delta).

    Derivation. e0-DP gives (e0^2 / 2)-zCDP, and k such mechanisms rho = k e0^2 / 2 (Bun, Steinke 2016,
    Proposition 1.4 and Lemma 2.3). rho-zCDP gives (rho + 2 sqrt(rho L), delta)-DP (Proposition 1.3). Since
    rho + 2 sqrt(rho L) = (sqrt(rho) + sqrt(L))^2 - L, it equals epsilon at sqrt(rho) = sqrt(L + epsilon) -
    sqrt(L); substitute rho and multiply by sqrt(2). The other branch is basic composition. The difference of
    roots is written as 2 epsilon over their sum, which avoids cancellation, and a millionth is given up so that
    rounding stays on the safe side in float32 too.

    It needs only roots, a logarithm and a maximum: with `xp=jax.numpy` it can be traced, batched and
    differentiated. `calibrate(..., delta_share=0)` gives somewhat more, on the host. The result holds under the
    mechanisms' neighbouring relation, whichever that is.

    Args:
        epsilon: total epsilon > 0: a number, an array or a traced value.
        delta: total delta in (0, 1), likewise.
        count: number k >= 1 of mechanisms, likewise, of an integer type.
        xp: `numpy` or `jax.numpy`.

    Returns:
        e0, of the arguments' type.

    Raises:
        TypeError, ValueError: a number out of range, also inside an array; traced values pass unchecked.

    Example:
        >>> bool(0.01 < closed_form_epsilon(1.0, 1e-6, 100) < 0.02)
        True
    """
    for end in arguments.extremes(epsilon):
        arguments.positive(epsilon=end)
    for end in arguments.extremes(delta):
        arguments.fractions(delta=end)
        if xp is not np:
            arguments.delta(end)  # a delta that is 1 in float32 would allow more
    for end in arguments.extremes(count):
        arguments.counts(count=end)
    count = xp.asarray(count, float)
    some = xp.asarray(delta) > 0  # a traced delta may be 0: then the first branch is 0, and so is its derivative
    log_term = -2.0 * xp.log(xp.where(some, delta, 0.5))
    # Where twice epsilon is infinite, this is 0 and less than the other branch.
    composed = 2.0 * (epsilon / (xp.sqrt(log_term + 2.0 * epsilon) + xp.sqrt(log_term))) / count**0.5
    return xp.maximum(xp.where(some, composed, 0.0), epsilon / count) * _SAFE


def _basic(total: Guarantee, count: int, delta: float) -> float:
    """E/k, rounded down."""
    return at_most(Fraction(total.epsilon) / count)


def _advanced(total: Guarantee, count: int, delta: float) -> float:
    """The positive root of 2 k e^2 + sqrt(2 k ln(1/d')) e = E, lowered until the theorem itself agrees."""
    slack = at_most(Fraction(total.delta) - count * Fraction(delta))
    linear = math.sqrt(-2.0 * count * math.log(slack))
    epsilon = min(1.0, 2.0 * total.epsilon / (linear + math.sqrt(linear**2 + 8.0 * count * total.epsilon)))

    def composed(epsilon: float) -> float:
        return advanced(Guarantee(epsilon, delta, total.relation), count, slack).epsilon

    while epsilon > 0.0 and composed(epsilon) > total.epsilon:
        # A product of subnormal numbers may not fall.
        epsilon = min(epsilon * (1.0 - 2.0**-50), math.nextafter(epsilon, 0.0))
    return epsilon


def _optimal(total: Guarantee, count: int, delta: float) -> float:
    """Bisection from basic composition, which never spends more than the total, to the whole budget; returns the fitting end."""
    # The total epsilon that is reported for this delta is rounded up: it must not exceed ours.
    most = total.epsilon * (1.0 - 2.0 * TOTAL_PRECISION)

    def fits(epsilon: float) -> bool:
        each = Guarantee(epsilon, delta, total.relation)
        return total_delta({each: count}, most) <= total.delta

    return bisection.largest_float(fits, _basic(total, count, delta), total.epsilon, precision=_PRECISION)
