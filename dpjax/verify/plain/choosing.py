"""A naive exact reference for the Choosing Mechanism (BNS Figure 8)."""

from collections.abc import Sequence

from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.laplace import laplace_tail


def choosing_law(scores: Sequence[float], n: float, alpha: float, epsilon: float) -> list[float]:
    """P[i], then P[bottom]: if the best score + Lap(4/epsilon) reaches alpha n / 2, the exponential mechanism chooses among scores >= 1.

    >>> [round(p, 3) for p in choosing_law([0, 6, 6], 12, 1.0, 4.0)]  # the best score is at the threshold
    [0.0, 0.25, 0.25, 0.5]
    """
    passed = laplace_tail((alpha * n / 2 - max(scores)) * epsilon / 4)
    if max(scores) < 1:
        return [*(0.0 for _ in scores), 1.0]
    weights = iter(exponential_law([score for score in scores if score >= 1], epsilon / 4))
    return [*(passed * next(weights) if score >= 1 else 0.0 for score in scores), 1 - passed]
