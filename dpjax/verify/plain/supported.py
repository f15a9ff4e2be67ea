"""A naive exact reference for the exponential mechanism over what the data support."""

import math
from collections.abc import Sequence


def supported_law(scores: Sequence[float], epsilon: float, delta: float, growth: int) -> list[float]:
    """P[i], then P[bottom]: candidates are the scores of 1 and more, with weights e^(epsilon score).

    >>> [round(p, 3) for p in supported_law([0, 3, 3], 1.0, 0.1, 1)]
    [0.0, 0.382, 0.382, 0.236]
    """
    weights = [math.exp(epsilon * score) if score >= 1 else 0.0 for score in scores]
    whole, used = sum(weights), min(delta, 1 / 8, epsilon / 4)
    rho = epsilon / (epsilon + 4 * used)
    edge = rho / (1 + rho) * growth * math.exp(epsilon) / used
    bottom = 1 - rho / (1 + rho) * whole / edge if whole <= edge else (edge / whole) ** rho / (1 + rho)
    return [*((1 - bottom) * weight / whole if whole else 0.0 for weight in weights), bottom]
