"""A naive exact reference for report-noisy-max with exponential noise: permute-and-flip, over all orders of the candidates."""

import itertools
import math
from collections.abc import Sequence


def permute_and_flip_law(scores: Sequence[float], epsilon: float) -> list[float]:
    """P[i]: candidates come up in a random order, and the first whose coin of bias exp(epsilon (score - best) / 2) accepts is chosen.

    >>> [round(p, 3) for p in permute_and_flip_law([0, 1], 2 * math.log(2))]
    [0.25, 0.75]
    """
    accept = [math.exp(epsilon * (score - max(scores)) / 2) for score in scores]
    law = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        reached = 1 / math.factorial(len(scores))
        for candidate in order:
            law[candidate] += reached * accept[candidate]
            reached *= 1 - accept[candidate]
    return law
