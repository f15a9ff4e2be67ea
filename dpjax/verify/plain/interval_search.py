"""Naive references for the searches for a length (BNS §3.2): every path of the search, every block, in plain Python."""

import math
from collections.abc import Callable, Sequence

from dpjax.verify.plain.laplace import laplace_tail

Examples = Sequence[tuple[int, int]]  # (x, y)


def balance(examples: Examples, low: int, high: int) -> int:
    """min(zeros, ones) among low, ..., high - 1.

    >>> balance([(0, 1), (1, 1), (2, 0), (5, 0)], 0, 3)
    1
    """
    labels = [y for x, y in examples if low <= x < high]
    return min(labels.count(0), labels.count(1))


def paths(last: int, passes: Callable[[int], float], low: int) -> dict[int, float]:
    """P[answer] of a binary search over low, ..., last that goes left at a midpoint with probability passes(midpoint).

    >>> paths(3, lambda middle: 0.25, 1)
    {1: 0.0625, 2: 0.1875, 3: 0.75}
    """
    if low == last:
        return {low: 1.0}
    middle = (low + last) // 2
    left = {answer: passes(middle) * p for answer, p in paths(middle, passes, low).items()}
    right = {answer: (1 - passes(middle)) * p for answer, p in paths(last, passes, middle + 1).items()}
    return {**left, **right}


def law_given(
    examples: Examples, bits: int, exponent: int, keep: Callable[[float], float], choice_epsilon: float
) -> list[float]:
    """P[threshold 0, ..., 2^bits], then P[bottom], after a search with this answer; keep(gap) is A_dist's probability of a release.

    >>> law = law_given([(0, 1), (1, 1), (2, 0), (3, 0)], 2, 1, keep=lambda gap: 1.0, choice_epsilon=100.0)
    >>> [round(p, 3) for p in law]
    [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    """
    end, size = 2**bits, 2 ** min(exponent + 1, bits)
    law, remaining = [0.0] * (end + 2), 1.0
    for begin in (0, 2**exponent):
        starts = range(begin, end, size)
        if not starts:
            continue
        ranked = sorted(starts, key=lambda start: (-balance(examples, start, start + size), start))
        tops = [balance(examples, start, start + size) for start in ranked[:2]]
        kept = keep(tops[0] - tops[1]) if len(tops) == 2 else 1.0
        ends = [min(ranked[0] + i * max(size // 4, 1), end) for i in range(5)]
        weights = [math.exp(choice_epsilon / 2 * sum((x < j) == y for x, y in examples)) for j in ends]
        for j, weight in zip(ends, weights, strict=True):
            law[j] += remaining * kept * weight / sum(weights)
        remaining *= 1 - kept
    law[-1] = remaining
    return law


def _law(
    examples: Examples,
    bits: int,
    answers: dict[int, float],
    keep: Callable[[float], float],
    choice_epsilon: float,
) -> list[float]:
    each = {j: law_given(examples, bits, j, keep, choice_epsilon) for j in answers}
    return [sum(p * each[j][i] for j, p in answers.items()) for i in range(2**bits + 2)]


def _passes(examples: Examples, bits: int, alpha: float, epsilon: float) -> Callable[[int], float]:
    """P[W(length) + Lap(1/epsilon) >= alpha n/4]."""

    def passes(length: int) -> float:
        largest = max(balance(examples, low, low + length) for low in range(2**bits - length + 1))
        return laplace_tail((alpha / 4 * len(examples) - largest) * epsilon)

    return passes


def power_search_law(
    examples: Examples,
    bits: int,
    *,
    alpha: float,
    comparison_epsilon: float,
    keep: Callable[[float], float],
    choice_epsilon: float,
) -> list[float]:
    """P[threshold 0, ..., 2^bits], then P[bottom], by every path of the search for a power.

    >>> given = {"alpha": 0.8, "comparison_epsilon": 9.0, "keep": lambda gap: float(gap >= 2), "choice_epsilon": 9.0}
    >>> law = power_search_law([(0, 1), (1, 1), (2, 0), (3, 0)] * 2, 2, **given)
    >>> law.index(max(law))
    2
    """
    passes = _passes(examples, bits, alpha, comparison_epsilon)
    answers = paths(bits, lambda j: passes(2**j), 0)
    return _law(examples, bits, answers, keep, choice_epsilon)


def length_search_law(
    examples: Examples,
    bits: int,
    *,
    alpha: float,
    comparison_epsilon: float,
    keep: Callable[[float], float],
    choice_epsilon: float,
) -> list[float]:
    """The same by every path of the search for a length, which is then rounded up to a power.

    >>> given = {"alpha": 0.8, "comparison_epsilon": 9.0, "keep": lambda gap: float(gap >= 2), "choice_epsilon": 9.0}
    >>> law = length_search_law([(0, 1), (1, 1), (2, 0), (3, 0)] * 2, 2, **given)
    >>> law.index(max(law))
    2
    """
    answers: dict[int, float] = {}
    for length, p in paths(2**bits, _passes(examples, bits, alpha, comparison_epsilon), 1).items():
        j = (length - 1).bit_length()
        answers[j] = answers.get(j, 0.0) + p
    return _law(examples, bits, answers, keep, choice_epsilon)
