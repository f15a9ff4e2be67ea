"""Naive references for sanitizers by noisy counts: the consistent tree by its normal equations, the law of the noise."""

import math
from collections.abc import Sequence

import numpy as np


def consistent(released: Sequence[Sequence[float]], n: float) -> np.ndarray:
    """The counts of the leaves, adding up to n, whose sums over dyadic intervals are nearest to `released`, levels 1, ..., d.

    >>> consistent([[5, 3]], 10).round(9).tolist()
    [6.0, 4.0]
    """
    leaves = len(released[-1])
    rows = [np.arange(leaves) * len(level) // leaves == node for level in released for node in range(len(level))]
    design, noisy = np.array(rows, float), np.concatenate([np.asarray(level, float) for level in released])
    # Least squares with a multiplier for the sum, which is n.
    ones = np.ones((leaves, 1))
    system = np.block([[design.T @ design, ones], [ones.T, np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(design.T @ noisy, n))[:leaves]


def law(counts: Sequence[int], released: Sequence[int], scale: float) -> float:
    """P[exactly these noisy counts], each with two-sided geometric noise of this scale.

    >>> round(law([3], [3], 1 / math.log(2)), 6), round(law([3, 0], [4, 0], 1 / math.log(2)), 6)
    (0.333333, 0.055556)
    """
    ratio = math.exp(-1 / scale)
    return math.prod(ratio ** abs(k - c) * (1 - ratio) / (1 + ratio) for k, c in zip(released, counts, strict=True))


def released(count: int, threshold: int, scale: float, most: int) -> dict[int, float]:
    """The law of one answer of a sparse histogram, as a count: 0, or the noisy count from `threshold` on; `most` includes all above.

    >>> {answer: round(p, 6) for answer, p in released(1, 2, 1 / math.log(2), 4).items()}
    {0: 0.666667, 2: 0.166667, 3: 0.083333, 4: 0.083333}
    """
    ratio = math.exp(-1 / scale)
    above = lambda x: ratio**x / (1 + ratio) if x > 0 else 1 - ratio ** (1 - x) / (1 + ratio)  # noqa: E731
    answers = {answer: above(answer - count) - above(answer + 1 - count) for answer in range(threshold, most)}
    return {0: 1 - above(threshold - count), **answers, most: above(most - count)}
