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

    proved: any e, n, m >= 2, with M = (1 + (exp(e) - 1) / m)^n,

        e~ = ln M,    d~ = d (M - 1) / (exp(e) - 1).

    Proof. Let S, S' differ in one row. Draw the first j rows from S' and the others from S: from j to j + 1 the law of a single draw
    changes. Fix all other draws, let q = 1/m, and let P_1, P'_1, P_0 be the probabilities of an event if that draw is the row of S, that of
    S', or one of the rows that both have. The samples differ in one row, so P_1 <= exp(e) min(P_0, P'_1) + d, and with
    P' = (1 - q) P_0 + q P'_1 >= min(P_0, P'_1) for j + 1,

        P = (1 - q) P_0 + q P_1 <= P' + q (exp(e) - 1) min(P_0, P'_1) + q d <= (1 + q (exp(e) - 1)) P' + q d

    for j. So every step costs ln(1 + q (exp(e) - 1)) and q d, and n of them, by group privacy, what is stated. It is sharp: let an event
    have probability c exp(e t), t being how many draws are the row of S, with c so small that the complement is private, too. Then
    P = M P'. To first order e~ is (n/m) (exp(e) - 1), at most 1.72 e n/m for e <= 1: less than a third of the printed one.

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
    grow = math.expm1(inner)
    epsilon = drawn * math.log1p(grow / rows)
    if guarantee.delta == 0.0:
        return Guarantee(epsilon * _UP, 0.0, REPLACE_ONE)
    if epsilon > 700.0:
        return Guarantee(epsilon * _UP, 1.0, REPLACE_ONE)
    delta = guarantee.delta * (math.expm1(epsilon) / grow if grow else drawn / rows)
    return Guarantee(epsilon * _UP, min(1.0, delta * _UP + math.ulp(0.0)), REPLACE_ONE)
