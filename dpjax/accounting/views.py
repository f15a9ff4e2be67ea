"""An (epsilon, delta)-guarantee as Rényi, zero-concentrated and f-differential privacy: exact for the worst mechanism.

**The worst mechanism.** Among all pairs (P, Q) of laws with P[R] <= exp(e) Q[R] + d and the same with P and Q exchanged, one
dominates: P = (d, (1-d) p, (1-d) (1-p), 0) with p = exp(e) / (1 + exp(e)), and Q = P reversed (Kairouz, Oh, Viswanath 2015). A pair
dominates if it has the larger hockey-stick divergence H(x) = sup_R P[R] - x Q[R] at every x >= 0. Every f-divergence is an integral of H
with weights f''(x) >= 0, so the dominating pair has the largest of each of them, and of Rényi's, and the lowest trade-off function. The
numbers below are those of this pair, so none of them can be improved for a mechanism of which only (e, d) is known.

**Rényi** (d = 0). With h = (a - 1) e and cosh(b + h) / cosh(b) = cosh(h) + sinh(h) tanh(b) for b = e / 2,

    D_a(P || Q) = 1/(a-1) ln(p^a (1-p)^(1-a) + (1-p)^a p^(1-a)) = 1/(a-1) ln(cosh((a - 1/2) e) / cosh(e/2))
                = 1/(a-1) ln(1 + 2 sinh(h/2)^2 + sinh(h) tanh(e/2)),

all terms positive; its limit at a = 1 is e tanh(e/2), at a = infinity e. It is the formula of Bun and Steinke (2016), Proposition 3.3.
For d > 0 there is an outcome with Q = 0 < P, and D_a is infinite for every a >= 1.

**Zero-concentrated** (d = 0): D_a <= rho a for all a > 1 holds with rho = e tanh(e/2) and with no smaller one; it is below the
e^2 / 2 of Bun and Steinke. Proof: put u = (a - 1/2)^2, so that a (a - 1) = u - 1/4. L(u) = ln cosh(e sqrt(u)) is concave, because its
derivative e^2/2 tanh(x)/x, x = e sqrt(u), falls. So it lies below its tangent at u = 1/4, whose slope is e tanh(e/2):
(a - 1) D_a = L(u) - L(1/4) <= (u - 1/4) e tanh(e/2) = a (a - 1) rho. The limit a -> 1 shows that rho cannot be smaller. (Steinke 2024,
"Tight RDP & zCDP bounds from pure DP", has both results.)

**Trade-off** (Wasserman, Zhou 2010; Dong, Roth, Su 2022): a test of S against S' that errs under S with probability
at most t errs under S' with probability at least

    f(t) = max(0, 1 - d - exp(e) t, exp(-e) (1 - d - t)).

Rényi divergences and rho are rounded up, f is rounded down.
"""

import math
from fractions import Fraction

_UP = 1.0 + 2.0**-44  # a dozen operations on positive terms, each correct to an ulp or two
_TINY = 2.0**-1070  # sixteen times the least positive float: what the same operations may lose to underflow


def renyi_divergence(epsilon: float, delta: float, order: float) -> float:
    """The largest D_order(P || Q) of (epsilon, delta)-private laws, order in [1, infinity], rounded up.

    >>> round(renyi_divergence(1.0, 0.0, 2.0), 4), renyi_divergence(1.0, 1e-9, 2.0)
    (0.7353, inf)
    """
    if epsilon == delta == 0.0:
        return 0.0
    if delta > 0.0 or math.isinf(epsilon):
        return math.inf
    if math.isinf(order):
        return epsilon
    slope = math.tanh(epsilon / 2.0)
    h = (order - 1.0) * epsilon
    if h == 0.0:
        return min(epsilon, epsilon * slope * _UP + _TINY)
    if h < 1.0:
        log_moment = math.log1p(2.0 * math.sinh(h / 2.0) ** 2 + math.sinh(h) * slope)
    else:  # the same without overflow: exp(h) (1 - (1 - exp(-2 h)) (1 - tanh) / 2), where 1 - tanh(b) = 2 / (1 + exp(2 b))
        log_moment = h + math.log1p(math.expm1(-2.0 * h) / (1.0 + math.exp(min(epsilon, 700.0))))
    return min(epsilon, (log_moment + _TINY) / (order - 1.0) * _UP + _TINY)


def concentration(epsilon: float, delta: float) -> float:
    """The least rho for which every (epsilon, delta)-private mechanism is rho-zCDP, rounded up; infinite if delta > 0.

    >>> round(concentration(1.0, 0.0), 4), concentration(1.0, 1e-9)
    (0.4621, inf)
    """
    return renyi_divergence(epsilon, delta, 1.0)


def type_two_error(epsilon: float, delta: float, error: float) -> float:
    """f(error): the least error of any test of neighbours on one side if its error on the other is at most `error`, rounded down.

    >>> type_two_error(0.0, 0.0, 0.25), round(type_two_error(1.0, 0.0, 0.1), 4)
    (0.75, 0.7282)
    """
    left = 1.0 - delta - error
    if left <= 0.0 or math.isinf(epsilon):
        return 0.0
    if epsilon == delta == 0.0:
        return left if Fraction(left) <= 1 - Fraction(error) else math.nextafter(left, 0.0)
    large = epsilon > 700.0 and error > 0.0  # exp(epsilon) may overflow; leaving this branch out can only lower f
    steep = 0.0 if large else 1.0 - delta - math.exp(min(epsilon, 700.0)) * error
    return max(0.0, max(steep, math.exp(-epsilon) * left) - 2.0**-48)
