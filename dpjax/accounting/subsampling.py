"""Secrecy of the sample: a private algorithm run on rows drawn with replacement (MULTI Lemma 29)."""

import math

from dpjax.accounting.guarantee import REPLACE_ONE, Guarantee
from dpjax.core import arguments

_UP = 1.0 + 2.0**-40  # a dozen correctly rounded operations on numbers below exp(700)
_LEAST_EPSILON = 2.0**-600  # parts of it, one in 2^128, are floats with all digits


def with_replacement(guarantee: Guarantee, *, drawn: int, rows: int, calibration: str = "proved") -> Guarantee:
    """The promise of A run on `drawn` = n rows, each uniform among `rows` = m.

    printed (Lemma 29; the text of the paper has n/m inverted): for e <= 1 and m >= 2 n,
    (6 e n/m, 4 exp(6 e n/m) (n/m) d).

    proved: any e, n, m >= 2, with M = (1 + (exp(e) - 1) / m)^n and M' = (1 - (1 - exp(-e)) / m)^n,

        e~ = ln M,         d~ = d (M - 1) / (exp(e) - 1)                            if M <= exp(e) (few draws: n < m suffices for small e),
        e~ = ln (M / M'),  d~ = d [M - 1 + exp(e~) (1 - M')] / (exp(e) - 1)         otherwise.

    Proof. Let S, S' differ in one row, and let T ~ Bin(n, 1/m) be how often it is drawn, w_t = P[T = t]. Given T = t, redraw the t
    positions that hold it among the other rows: that leaves the law of a sample without it, the same for every t and for S and S';
    write P_0 for the probability of an event there, P_t and P'_t for it given T = t. Any two of these three samples differ in t rows,
    so by group privacy, with d_t = d (exp(t e) - 1) / (exp(e) - 1),

        P_t <= exp(t e) min(P_0, P'_t) + d_t,      P'_t >= exp(-t e) (P_0 - d_t).

    First case: for t >= 1, M <= exp(t e), so P_t - M P'_t <= exp(t e) min(P_0, P'_t) - M P'_t + d_t is largest at P'_t = P_0. Hence

        P - M P' <= w_0 (1 - M) P_0 + sum_{t >= 1} w_t [(exp(t e) - M) P_0 + d_t] = (E[exp(T e)] - M) P_0 + E[d_T] = E[d_T],

    and E[exp(T e)] = M, E[d_T] = d (M - 1) / (exp(e) - 1). Second case: averaging P_t <= exp(t e) P_0 + d_t and the second inequality,

        P <= M P_0 + E[d_T],   P' >= M' P_0 - E[exp(-T e) d_T],   hence   P <= (M / M') (P' + E[exp(-T e) d_T]) + E[d_T],

    with E[exp(-T e) d_T] = d (1 - M') / (exp(e) - 1). To first order the first e~ is (n/m) (exp(e) - 1), at most 1.72 e n/m for
    e <= 1: less than a third of the printed one.

    Args:
        guarantee: (e, d) of A under REPLACE_ONE.
        drawn: n, >= 1.
        rows: m, >= 2.
        calibration: "proved" or "printed".

    Returns:
        The guarantee, under REPLACE_ONE, rounded up.

    Raises:
        TypeError, ValueError: another relation, counts out of range, conditions of the printed lemma that do not hold.

    Example:
        >>> round(with_replacement(Guarantee(1.0, 0.0, REPLACE_ONE), drawn=100, rows=900).epsilon, 3)
        0.191
    """
    arguments.instance("guarantee", guarantee, Guarantee)
    drawn, rows = arguments.count("drawn", drawn), arguments.count("rows", rows)
    arguments.calibration(calibration)
    if guarantee.relation != REPLACE_ONE:
        raise ValueError(f"guarantee must be under REPLACE_ONE: the sample has a fixed size, got {guarantee.relation}")
    if guarantee.is_none:
        return guarantee
    if calibration == "printed":
        if guarantee.epsilon > 1.0 or rows < 2 * drawn:
            raise ValueError(
                "Lemma 29 asks for epsilon <= 1 and rows >= 2 drawn, "
                f"got epsilon={guarantee.epsilon}, rows={rows}, drawn={drawn}"
            )
        epsilon = 6.0 * guarantee.epsilon * drawn / rows
        delta = 4.0 * math.exp(epsilon) * drawn / rows * guarantee.delta
        least = math.ulp(0.0) if guarantee.delta > 0 else 0.0  # products of the smallest floats are 0
        return Guarantee(epsilon * _UP, min(1.0, delta * _UP + least), REPLACE_ONE)
    if rows < 2:
        raise ValueError(f"rows must be >= 2: a single row is drawn always, got {rows}")
    return _proved(guarantee, drawn, rows)


def _proved(guarantee: Guarantee, drawn: int, rows: int) -> Guarantee:
    """The closed form above."""
    if guarantee.epsilon > 700.0:  # exp would overflow; no promise is left then
        return Guarantee.none(REPLACE_ONE)
    # A smaller epsilon implies this one, and its quotients by `rows` would leave the range of floats.
    inner = max(guarantee.epsilon, _LEAST_EPSILON) if guarantee.epsilon else 0.0
    grow, shrink = math.expm1(inner), -math.expm1(-inner)
    log_more, log_less = drawn * math.log1p(grow / rows), drawn * math.log1p(-shrink / rows)
    few = log_more <= inner
    epsilon = log_more if few else log_more - log_less
    if guarantee.delta == 0.0:
        return Guarantee(epsilon * _UP, 0.0, REPLACE_ONE)
    if epsilon > 700.0:
        return Guarantee(epsilon * _UP, 1.0, REPLACE_ONE)
    # E[d_T] / d and E[exp(-T e) d_T] / d; at e = 0 both are E[T].
    more = math.expm1(log_more) / grow if grow else drawn / rows
    less = -math.expm1(log_less) / grow if grow else drawn / rows
    delta = guarantee.delta * (more if few else more + math.exp(epsilon) * less)
    return Guarantee(epsilon * _UP, min(1.0, delta * _UP + math.ulp(0.0)), REPLACE_ONE)
