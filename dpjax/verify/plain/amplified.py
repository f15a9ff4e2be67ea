"""A naive exact reference for amplified interior points (CLNSS §1.3.5): `optimizers.quasi_concave.amplification` in Python numbers."""

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.tree_log import Law


def amplified_law(
    starts: Sequence[int],
    values: Sequence[float],
    last: int,
    *,
    promise: float,
    alpha: float,
    budget: Any,
) -> Law:
    """P[x], and P[bottom] under None, for the function on {0, ..., last} that has values[i] from starts[i] on.

    Args:
      promise: p. alpha: Delta / p.
      budget: of each mechanism, under the names of `amplification.Budget`.

    >>> from types import SimpleNamespace
    >>> budget = SimpleNamespace(test=30.0, last=30.0, blocks=[30.0], points=[30.0], delta=0.1, beta=0.1)
    >>> law = amplified_law([0, 2, 3], [0.0, 90.0, 0.0], 3, promise=60.0, alpha=1.0, budget=budget)
    >>> {x: round(p, 3) for x, p in law.items() if p > 1e-3}
    {2: 1.0}
    """
    whole = budget.test + budget.last + sum(budget.blocks) + sum(budget.points)
    middle = promise - max(math.log(budget.test / (budget.test + whole) / budget.beta), 0.0) / whole
    top = middle - 1 - math.log(whole / (whole + budget.test) / (len(budget.blocks) * budget.delta)) / budget.test
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

    passes = chance_to_pass(max(values) - middle, budget.test, whole)
    law = level_law([0, *starts, *ends], value, last, 2 * r, budget)
    law = {x: passes * chance for x, chance in law.items()}
    return law | {None: law[None] + 1 - passes}


def chance_to_pass(x: float, rise: float, fall: float) -> float:
    """P[a test (rise, fall) of x passes]."""
    if x <= 0:
        return fall / (rise + fall) * math.exp(rise * x)
    return 1 - rise / (rise + fall) * math.exp(-fall * x)


def level_law(
    steps: Sequence[int], value: Callable[[int], float], last: int, n: float, budget: Any, index: int = 0
) -> Law:
    """Level(F, 2^index), literally; F may rise at `steps` only.

    >>> from types import SimpleNamespace
    >>> budget = SimpleNamespace(test=30.0, last=30.0, blocks=[30.0], points=[30.0], delta=0.1, beta=0.1)
    >>> law = level_law([0, 2], lambda x: 60.0 if x >= 2 else 0.0, 2, 60.0, budget)
    >>> max(law, key=law.get), round(law[2], 3)
    (2, 1.0)
    """
    c = 2.0**index

    def depth(x: int) -> float:
        return min(value(x), n - value(x - 1))

    if index == len(budget.blocks):
        return dict(enumerate(exponential_law([depth(x) for x in range(last + 1)], budget.last / (2 * c))))
    epsilon, point = budget.blocks[index], budget.points[index]
    trim = 2 * c / point * math.log(2 / budget.beta)
    trimmed = max(n - 2 * trim, 0.0)
    rate, delta = epsilon / (4 * c), min(budget.delta, 0.25, epsilon / 16)
    rho = (sum(budget.blocks[: index + 1]) + sum(budget.points[: index + 1])) / (epsilon / 2 + 4 * delta)
    phi = 2 * math.exp(epsilon / 2) / (1 + epsilon / 2)
    if epsilon < 4:
        phi = min(phi, 1 / (1 - epsilon / 4))
    bar = (1 + math.log(rho / (1 + rho) * phi * max(rate * trimmed, 1) / delta)) / rate
    reserve = bar + max(math.log(1 / ((1 + rho) * budget.beta)), 0) / (rate * rho)

    def rise(first: int, stop: int) -> float:
        ends = [min(max(value(x - 1) - trim, 0), trimmed) for x in (first, stop)]
        return ends[1] - ends[0]

    height = last.bit_length()
    blocks = [{k: rise(k << s, (k + 1) << s) for k in {x >> s for x in steps}} for s in range(height + 1)]
    following = [max(max(of_size.values()) - reserve, 0.0) for of_size in blocks]
    rest = max(trimmed - reserve, 0.0)

    def inner_value(s: int) -> float:
        return 0.0 if s < 0 else following[s] if s < height else rest

    inner = level_law(range(height + 1), inner_value, height, rest, budget, index + 1)
    law: Law = {None: inner.get(None, 0.0)}
    for s in range(height + 1):
        chance = inner.get(s, 0.0)
        heavy = {k: w for k, w in blocks[s].items() if w >= 1 / rate}
        most = max(heavy.values(), default=0.0)
        some = 0.0
        if heavy:
            log_z = rate * most + math.log(sum(math.exp(rate * (w - most)) for w in heavy.values()))
            some = chance_to_pass(log_z - rate * bar, 1.0, rho)
        law[None] += chance * (1 - some)
        for k, of_block in zip(heavy, exponential_law(list(heavy.values()), rate) if heavy else [], strict=True):
            first, size = k << s, 1 << s
            points = [min(x, last) for x in (first, first + max(size // 2 - 1, 0), first + size - 1)]
            for x, of_point in zip(points, exponential_law([depth(x) for x in points], point / (2 * c)), strict=True):
                law[x] = law.get(x, 0.0) + chance * some * of_block * of_point
    return law
