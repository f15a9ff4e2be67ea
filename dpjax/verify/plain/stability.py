"""A naive exact reference for A_dist (BNS §2.5.3): the best candidate, if it leads by a noisy margin."""

from collections.abc import Sequence

from dpjax.verify.plain.laplace import laplace_tail


def stability_law(scores: Sequence[float], *, scale: float, threshold: float) -> list[float]:
    """P[i], then P[bottom]: the first of the best is kept if its gap to the next + Lap(scale) >= threshold.

    >>> [round(p, 3) for p in stability_law([1, 4, 2], scale=1.0, threshold=2.0)]
    [0.0, 0.5, 0.0, 0.5]
    """
    best, *others = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    # A single candidate leads by an infinite gap.
    kept = laplace_tail((threshold - (scores[best] - scores[others[0]])) / scale) if others else 1.0
    return [*(kept if i == best else 0.0 for i in range(len(scores))), 1 - kept]
