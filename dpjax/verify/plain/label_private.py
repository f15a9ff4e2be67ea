"""A naive exact reference for label-private and semi-private learners of any class: every dichotomy by trying all concepts."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dpjax.verify.plain.exponential import exponential_law

Says = Callable[[Any, Any], bool]


def label_private_law(
    examples: Iterable[tuple[Any, int]], named: Iterable[Any], concepts: Iterable[Any], says: Says, epsilon: float
) -> dict[Any, float]:
    """P of each concept of H, which holds, of concepts that label the named points alike, the first one.

    Args:
      examples: (x, y) whose labels count. named: the points B. concepts: all of them. says: (concept, x) -> its label.

    >>> law = label_private_law([(3, 1)], [3], range(9), lambda j, x: x < j, 1.386294)  # thresholds 0 and 4
    >>> {j: round(p, 3) for j, p in law.items()}
    {0: 0.333, 4: 0.667}
    """
    points, examples = list(named), list(examples)
    first: dict[tuple[bool, ...], Any] = {}
    for concept in concepts:
        first.setdefault(tuple(says(concept, b) for b in points), concept)
    right = [sum(says(concept, x) == (y == 1) for x, y in examples) for concept in first.values()]
    return dict(zip(first.values(), exponential_law(right, epsilon / 2), strict=True))


def boxes(size: int, axes: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """All rectangles over {0, ..., size - 1}^axes, as (low, high) for each axis, smaller ones first; the first is empty.

    >>> list(boxes(2, 1))
    [((1, 0),), ((0, 0),), ((1, 1),), ((0, 1),)]
    """
    sides = sorted(itertools.combinations_with_replacement(range(size), 2), key=lambda side: side[1] - side[0])
    yield ((size - 1, 0),) * axes
    yield from sorted(itertools.product(sides, repeat=axes), key=lambda box: sum(high - low for low, high in box))


def in_box(box: Sequence[tuple[int, int]], x: Sequence[int]) -> bool:
    """Whether a point is in a rectangle.

    >>> in_box(((0, 1), (2, 2)), (1, 2))
    True
    """
    return all(low <= c <= high for (low, high), c in zip(box, x, strict=True))
