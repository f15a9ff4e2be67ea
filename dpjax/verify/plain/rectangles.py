"""A naive reference for the slices of rectangles (CLNSS §1.3.4): both ends of axis after axis, cut off by sorting lists."""

from collections.abc import Sequence


def slices(points: Sequence[Sequence[float]], labels: Sequence[bool], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Which slice each row is in (-1 for none), and how many positive examples are in none.

    Slice 2 i takes the least rows on axis i of the positive ones that remain, slice 2 i + 1 then the greatest; rows in their order tell
    equal coordinates apart.

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
