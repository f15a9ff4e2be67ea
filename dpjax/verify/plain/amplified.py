"""A naive exact reference for amplified interior points (CLNSS §1.3.5): `optimizers.quasi_concave.amplification` in Python numbers."""

import bisect
import itertools
import math
from collections.abc import Callable, Sequence

from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.laplace import laplace_tail
from dpjax.verify.plain.tree_log import Law


def amplified_law(
    starts: Sequence[int],
    values: Sequence[float],
    last: int,
    *,
    promise: float,
    alpha: float,
    budget: tuple[float, float, float],
    levels: int,
) -> Law:
    """P[x], and P[bottom] under None, for the function on {0, ..., last} that has values[i] from starts[i] on.

    Args:
      promise: p. alpha: Delta / p.
      budget: (epsilon, delta, beta) of one mechanism.
      levels: N.

    >>> law = amplified_law([0, 2, 3], [0.0, 90.0, 0.0], 3, promise=60.0, alpha=1.0, budget=(30.0, 0.1, 0.1), levels=1)
    >>> {x: round(p, 3) for x, p in law.items() if p > 1e-3}
    {2: 1.0}
    """
    epsilon, delta, beta = budget
    margin = -math.log(2 * beta) / epsilon
    top = promise - margin - 1 + math.log(2 * delta) / epsilon
    low = promise - alpha * promise
    r = max(top - low, 0.0)
    clipped = [min(max(value - low, 0.0), r) for value in values]
    left = list(itertools.accumulate(clipped, max))
    right = [*reversed(list(itertools.accumulate(reversed(clipped), max))), 0.0]
    ends = [start - 1 for start in starts[1:]] + [last]

    def value(x: int) -> float:
        if x < 0:
            return 0.0
        if x >= last:
            return 2 * r
        piece = bisect.bisect_right(starts, x) - 1
        return left[piece] + r - right[piece + (x == ends[piece])]

    passes = laplace_tail((promise - margin - max(values)) * epsilon)
    law = level_law([0, *starts, *ends], value, last, 2 * r, 1.0, budget, levels)
    law = {x: passes * chance for x, chance in law.items()}
    return law | {None: law[None] + 1 - passes}


def level_law(
    steps: Sequence[int],
    value: Callable[[int], float],
    last: int,
    n: float,
    c: float,
    budget: tuple[float, ...],
    levels: int,
) -> Law:
    """Level(F, c), literally; F may rise at `steps` only, and the budget is (epsilon, delta, beta) of one mechanism.

    >>> law = level_law([0, 2], lambda x: 60.0 if x >= 2 else 0.0, 2, 60.0, 1.0, (30.0, 0.1, 0.1), 1)
    >>> max(law, key=law.get), round(law[2], 3)
    (2, 1.0)
    """
    epsilon, delta, beta = budget

    def depth(x: int) -> float:
        return min(value(x), n - value(x - 1))

    if levels == 0:
        return dict(enumerate(exponential_law([depth(x) for x in range(last + 1)], epsilon / (2 * c))))
    trim = 2 * c / epsilon * math.log(2 / beta)
    trimmed = max(n - 2 * trim, 0.0)
    rate = epsilon / (4 * c)
    factor = (2 / 3) ** 1.5 * (1 + math.exp(epsilon / 2)) * math.exp(1 + epsilon / 2) / (1 + epsilon / 2)
    bar = math.log(factor * max(trimmed * rate, 1) / delta) / rate
    reserve = bar + 2 * c / epsilon * math.log(1 / (2 * beta))

    def rise(first: int, stop: int) -> float:
        ends = [min(max(value(x - 1) - trim, 0), trimmed) for x in (first, stop)]
        return ends[1] - ends[0]

    height = last.bit_length()
    blocks = [{k: rise(k << s, (k + 1) << s) for k in {x >> s for x in steps}} for s in range(height + 1)]
    following = [max(max(of_size.values()) - reserve, 0.0) for of_size in blocks]
    rest = max(trimmed - reserve, 0.0)

    def inner_value(s: int) -> float:
        return 0.0 if s < 0 else following[s] if s < height else rest

    inner = level_law(range(height + 1), inner_value, height, rest, 2 * c, budget, levels - 1)
    law: Law = {None: inner.get(None, 0.0)}
    for s in range(height + 1):
        chance = inner.get(s, 0.0)
        heavy = {k: w for k, w in blocks[s].items() if w >= 1 / rate}
        some = laplace_tail((bar - max(blocks[s].values())) * epsilon / (2 * c)) if heavy else 0.0
        law[None] += chance * (1 - some)
        for k, of_block in zip(heavy, exponential_law(list(heavy.values()), rate) if heavy else [], strict=True):
            first, size = k << s, 1 << s
            points = [min(x, last) for x in (first, first + max(size // 2 - 1, 0), first + size - 1)]
            for x, of_point in zip(points, exponential_law([depth(x) for x in points], epsilon / (2 * c)), strict=True):
                law[x] = law.get(x, 0.0) + chance * some * of_block * of_point
    return law
