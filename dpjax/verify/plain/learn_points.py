"""A naive exact reference for LearnPoints (BNS §3.1), from the paper's text, in plain Python: every point of the domain is scored."""

from collections import Counter
from collections.abc import Sequence

from dpjax.verify.plain.stability import stability_law


def learn_points_law(
    examples: Sequence[tuple[int, int]], points: int, *, scale: float, threshold: float, bottom: str
) -> list[float]:
    """P[c_j] for j = 0, ..., points - 1, then of the all-zero hypothesis.

    Args:
      examples: (x, y).
      points: how many points the domain has.
      scale, threshold: parameters of A_dist: the leader is kept if gap + Lap(scale) >= threshold.
      bottom: "random" or "zero": whether a random point or the all-zero hypothesis replaces bottom.

    >>> learn_points_law([(1, 1), (1, 1), (0, 1)], 2, scale=1.0, threshold=1.0, bottom="zero")
    [0.0, 0.5, 0.5]
    >>> learn_points_law([(1, 1), (1, 1), (0, 1)], 2, scale=1.0, threshold=1.0, bottom="random")
    [0.25, 0.75, 0.0]
    """
    ones = Counter(x for x, y in examples if y == 1)
    counts = [ones[x] for x in range(points)]
    *law, none = stability_law(counts, scale=scale, threshold=threshold) if ones else [0.0] * points + [1.0]
    return [*law, none] if bottom == "zero" else [*(p + none / points for p in law), 0.0]
