"""A naive exact reference for SanThresholds (BNS Figure 11) on domains of at most 32 bits, where RecConcave is one exponential mechanism.

`run` executes the figure with mechanisms given as functions, and records every one that it invokes; `law` enumerates all outcomes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpjax.verify.plain.choosing import choosing_law
from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.laplace import laplace_tail

Step = tuple[str, int, int]  # a mechanism, and the range that it reads


def run(
    last: int,
    budget: float,
    *,
    passes: Callable[[int, int], bool],
    length: Callable[[int, int], int | None],
    choose: Callable[[int, int, int], tuple[int, int] | None],
    every_call: bool = True,
    literal: bool = False,
) -> tuple[list[Step], int]:
    """(the mechanisms that a run on [0, last] invokes, in order; how many calls did not halt on step 1).

    Args:
      last: the greatest element.
      budget: how many calls there may be.
      passes: whether the noisy count of [k, end] passes step 3.
      length: RecConcave's z, or None.
      choose: the interval [a, b] of [k, end] that the Choosing Mechanism takes given z, or None.
      every_call: whether every call costs one of the budget (printed), or only one that passes step 3 (proved).
      literal: whether to halt only when the budget = 0, as the figure says, and not when it is below 1.

    >>> everything = {"passes": lambda k, end: True, "length": lambda k, end: 0, "choose": lambda k, end, z: (k, k)}
    >>> run(99, 7.5, **everything)[1], run(99, 7.5, literal=True, **everything)[1]
    (7, 100)
    """
    steps: list[Step] = []
    calls = 0

    def call(k: int, end: int) -> None:
        nonlocal budget, calls
        empty = budget == 0 if literal else budget < 1
        if every_call and empty:
            return
        calls += 1
        if every_call:
            budget -= 1
        steps.append(("count", k, end))
        if not passes(k, end) or (not every_call and empty):
            return
        if not every_call:
            budget -= 1
        steps.append(("RecConcave", k, end))
        z = length(k, end)
        if z is None:
            return
        steps.append(("Choosing", k, end))
        chosen = choose(k, end, z)
        if chosen is None:
            return
        a, b = chosen
        steps.append(("count of [a, b]", a, b))
        if a > k:
            call(k, a - 1)
        if b < end:
            call(b + 1, end)

    call(0, last)
    return steps, calls


def intervals(k: int, end: int, z: int) -> list[tuple[int, int]]:
    """Steps 9 and 10a: the points, or the intervals A_i and then B_i, the last ones trimmed.

    >>> intervals(3, 8, 1)
    [(3, 6), (7, 8), (5, 8)]
    """
    size, begins = (1, [k]) if z == 0 else (2 << z, [k, k + (1 << z)])
    return [(a, min(a + size - 1, end)) for begin in begins for a in range(begin, end + 1, size)]


def length_law(counts: Sequence[int], k: int, end: int, *, n: int, alpha: float, epsilon: float) -> list[float]:
    """Steps 4 to 8: P[z] for z = 0, ..., log T, by the exponential mechanism at epsilon.

    >>> [round(p, 3) for p in length_law([4, 0, 4, 0], 0, 3, n=8, alpha=0.5, epsilon=2.0)]
    [0.965, 0.018, 0.018]
    """
    exponents = range((end - k).bit_length() + 1)
    most = [max(sum(counts[x : min(x + (1 << j), end + 1)]) for x in range(k, end + 1)) for j in exponents]
    quality = [min(most[j] - alpha * n / 32, 3 * alpha * n / 32 - (most[j - 1] if j > 0 else 0)) for j in exponents]
    return exponential_law(quality, epsilon / 2)


def law(
    counts: Sequence[int],
    *,
    n: int,
    alpha: float,
    epsilon: float,
    recursion_epsilon: float,
    calls: int,
    every_call: bool,
) -> dict[tuple[tuple[int, int, str], ...], float]:
    """P of every skeleton of a run: what is released but for the noise, as (b, the true number of points, how it was counted).

    How: "fresh" by step 11; "low" by step 2, given that it did not pass step 3; "high" given that it passed and bottom followed; "any"
    where no budget was left for the test.

    >>> given = {"n": 8, "alpha": 0.9, "epsilon": 2.0, "recursion_epsilon": 2.0, "calls": 2, "every_call": False}
    >>> round(sum(law([5, 3], **given).values()), 9)
    1.0
    """
    found: dict[Any, float] = defaultdict(float)
    pass_at = alpha * n / 8

    def held(k: int, end: int) -> int:
        return sum(counts[k : end + 1])

    def outcomes(
        k: int, end: int, left: int
    ) -> Iterator[tuple[float, tuple[int, int, str], list[tuple[int, int]], int]]:
        """(probability, what is released, the ranges of the next calls, the budget left) of one call."""
        total = held(k, end)
        left -= every_call
        if not every_call and left == 0:
            yield 1.0, (end, total, "any"), [], left
            return
        passed = laplace_tail((pass_at - total) * epsilon)
        yield 1 - passed, (end, total, "low"), [], left
        left -= not every_call
        bottom = 0.0
        for z, p in enumerate(length_law(counts, k, end, n=n, alpha=alpha, epsilon=recursion_epsilon)):
            among = intervals(k, end, z)
            if total == 0:  # nothing to choose from
                bottom += p
                continue
            *chosen, none = choosing_law([held(a, b) for a, b in among], n, alpha / 64, epsilon)
            bottom += p * none
            for (a, b), q in zip(among, chosen, strict=True):
                ranges = [(a0, b0) for a0, b0 in ((b + 1, end), (k, a - 1)) if a0 <= b0]
                yield passed * p * q, (b, held(a, b), "fresh"), ranges, left
        yield passed * bottom, (end, total, "high"), [], left

    def follow(probability: float, waiting: list[tuple[int, int]], left: int, released: tuple[Any, ...]) -> None:
        if probability == 0.0:
            return
        if not waiting or (every_call and left == 0):
            found[released] += probability
            return
        *others, (k, end) = waiting
        for p, one, ranges, rest in outcomes(k, end, left):
            follow(probability * p, [*others, *ranges], rest, (*released, one))

    follow(1.0, [(0, len(counts) - 1)], calls, ())
    return found
