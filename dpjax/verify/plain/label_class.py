"""A naive exact reference for one part of Algorithm B (BNS Figure 12): sizes, all orders, and any sanitizer that has a law."""

import collections
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from dpjax.verify.plain.laplace import laplace_tail

Inner = Callable[[tuple[int, ...]], dict[Any, float]]


def size_law(count: int, examples: int, block: int, epsilon: float) -> list[float]:
    """P[0], P[M], P[2 M], ...: count + Lap(1/epsilon), rounded to multiples of M from 0 to the first that is >= the number of examples.

    >>> [round(p, 6) for p in size_law(1, 2, 1, math.log(4))]  # half a unit of noise has probability 1/4 on either side
    [0.25, 0.5, 0.25]
    """
    most = math.ceil(examples / block)
    above = [1.0, *(laplace_tail(epsilon * ((number - 0.5) * block - count)) for number in range(1, most + 1)), 0.0]
    return [here - next_one for here, next_one in itertools.pairwise(above)]


def part_law(
    points: Sequence[int],
    examples: int,
    block: int,
    epsilon: float,
    inner: Inner,
    *,
    shuffle: str = "last",
    pad: bool = True,
) -> dict[tuple[int, Any], float]:
    """P of (M^, what the sanitizer releases) for the points of one label; M^ = 0 comes with None.

    Options that must not be used: to shuffle "before" rows are padded, or "never"; and not to pad.

    >>> law = part_law([1], 1, 1, math.log(4), lambda rows: {rows: 1.0})  # a sanitizer that tells all
    >>> {outcome: round(p, 6) for outcome, p in law.items()}
    {(0, None): 0.25, (1, (1,)): 0.75}
    """
    sizes = size_law(len(points), examples, block, epsilon)
    law: dict[tuple[int, Any], float] = {(0, None): sizes[0]}
    for number, p in enumerate(sizes[1:], 1):
        size = number * block
        padding = (0,) * (size - len(points) if pad else 0)
        if shuffle == "last":
            orders = [order[:size] for order in itertools.permutations((*points, *padding))]
        elif shuffle == "before":
            orders = [(order + padding)[:size] for order in itertools.permutations(points)]
        else:
            orders = [(tuple(points) + padding)[:size]]
        for rows, many in collections.Counter(orders).items():
            for outcome, mass in inner(rows).items():
                law[size, outcome] = law.get((size, outcome), 0.0) + p * mass * many / len(orders)
    return law


def block_law(rows: tuple[int, ...], block: int, inner: Inner) -> dict[Any, float]:
    """P of what a sanitizer releases for every block of rows, in their order (BNS Lemma 5.1).

    >>> block_law((0, 1, 1), 1, lambda rows: {rows: 1.0})
    {((0,), (1,), (1,)): 1.0}
    """
    laws = [inner(rows[start : start + block]) for start in range(0, len(rows), block)]
    return {
        tuple(outcome for outcome, _ in each): math.prod(p for _, p in each)
        for each in itertools.product(*(law.items() for law in laws))
    }
