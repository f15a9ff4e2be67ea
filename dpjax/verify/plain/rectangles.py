"""Naive references for rectangles (CLNSS §1.3.4): both ends of one axis after another, cut off by sorting lists; the law in the plane."""

import functools
import math
from collections.abc import Sequence

import numpy as np

from dpjax.verify.plain.quantiles import cut_law
from dpjax.verify.plain.tree_log import slice_sizes


def slices(points: Sequence[Sequence[float]], labels: Sequence[bool], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Which slice each row is in (-1 for none), and how many positive examples are in none.

    Slice 2 i takes the least rows on axis i of the positive ones that remain, slice 2 i + 1 then the greatest; the order of rows breaks
    ties between equal coordinates.

    >>> slices([[5], [1], [4], [2], [3]], [1, 1, 1, 1, 0], [1, 2])
    ([1, 0, 1, -1, -1], 1)
    """
    where = [-1] * len(points)
    remaining = [row for row, label in enumerate(labels) if label]
    for number, size in enumerate(sizes):
        axis, backwards = divmod(number, 2)
        ordered = sorted(remaining, key=lambda row: (points[row][axis], row), reverse=backwards == 1)
        for row in ordered[:size]:
            where[row] = number
        remaining = [row for row in remaining if where[row] < 0]
    return where, len(remaining)


def plane_law(
    points: Sequence[Sequence[int]], *, size: int, bits: int, rate: float, spent: float, epsilon: float
) -> np.ndarray:
    """P[four faces], then P[all-zero], of positive examples: slices of both ends of each axis, then the test whether any are left.

    Args:
      points: points of the plane, {0, ..., 2^bits - 1}^2; the order of rows breaks ties between equal coordinates.
      size: least number of points of a slice. rate: rate of the noise in the sizes.
      spent: what each solver on the depth spends. epsilon: what the test spends.

    >>> law = plane_law([(0, 1)] * 5, size=1, bits=1, rate=9.0, spent=30.0, epsilon=30.0)
    >>> int(law.argmax()), round(float(law.max()), 3)  # 0 to 0 and 1 to 1
    (3, 1.0)
    """
    side, r = 2**bits, math.exp(-epsilon)
    law, nothing = np.zeros((side,) * 4), 0.0

    def walk(left: tuple[int, ...], faces: list[np.ndarray], p: float) -> None:
        nonlocal nothing
        if len(faces) == 4:
            too_few = r ** len(left) / (1 + r) if left else 1 / (1 + r)  # P[left + noise <= 0]
            law[...] += p * (1 - too_few) * functools.reduce(np.multiply.outer, faces)
            nothing += p * too_few
            return
        axis, high = divmod(len(faces), 2)
        ordered = sorted(left, key=lambda row: (points[row][axis], row), reverse=bool(high))
        for chance, length in slice_sizes(size, len(left), rate):
            cut = tuple(sorted(points[row][axis] for row in ordered[:length]))
            walk(tuple(ordered[length:]), [*faces, cut_law(cut, side, spent)], p * chance)

    walk(tuple(range(len(points))), [], 1.0)
    return np.append(law.reshape(-1), nothing)
