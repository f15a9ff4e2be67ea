"""A naive exact reference for LearnPoints (BNS §3.1), from the paper's text, in plain Python: every point of the domain is scored."""

from collections import Counter
from collections.abc import Sequence

from dpjax.verify.plain.laplace import laplace_tail


def learn_points_law(
    examples: Sequence[tuple[int, int]], points: int, *, scale: float, threshold: float, bottom: str
) -> list[float]:
    """P[c_j] for j = 0, ..., points - 1, then of the all-zero hypothesis.

    Args:
      examples: (x, y).
      points: how many points the domain has.
      scale, threshold: of A_dist: the leader is kept if gap + Lap(scale) >= threshold.
      bottom: "random" or "zero", what stands for bottom.

    >>> learn_points_law([(1, 1), (1, 1), (0, 1)], 2, scale=1.0, threshold=1.0, bottom="zero")
    [0.0, 0.5, 0.5]
    >>> learn_points_law([(1, 1), (1, 1), (0, 1)], 2, scale=1.0, threshold=1.0, bottom="random")
    [0.25, 0.75, 0.0]
    """
    ones = Counter(x for x, y in examples if y == 1)
    best, second, *_ = sorted(range(points), key=lambda x: (-ones[x], x))  # ties: the lowest
    keep = laplace_tail((threshold - (ones[best] - ones[second])) / scale) if ones[best] else 0.0
    law = [0.0] * points if bottom == "zero" else [(1 - keep) / points] * points
    law[best] += keep
    return [*law, 1 - keep if bottom == "zero" else 0.0]
