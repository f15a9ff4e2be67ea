"""A naive exact reference for optimal partition selection (Desfontaines, Voss, Gipson, Mandayam 2020): its recursion, count by count."""

import functools
import math


@functools.cache
def keep_table(epsilon: float, delta: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(p, 1 - p) for the counts 0, ..., g, the least one that is surely kept; each half of the recursion runs on its small side.

    >>> [round(p, 4) for p in keep_table(1.0, 0.1)[0]]
    [0.0, 0.1, 0.3718, 0.8057, 0.9653, 1.0]
    """
    p, q = [0.0], [1.0]
    while q[-1] > 0:
        first = math.exp(epsilon) * p[-1] + delta
        second = math.exp(-epsilon) * (q[-1] - delta)
        if first <= 1 - second:
            p.append(first)
            q.append(1 - first)
        else:
            q.append(max(second, 0.0))
            p.append(1 - q[-1])
    return tuple(p), tuple(q)


def keep_probability(count: int, epsilon: float, delta: float) -> float:
    """p(count).

    >>> keep_probability(1, 1.0, 0.1), keep_probability(99, 1.0, 0.1)
    (0.1, 1.0)
    """
    return keep_table(epsilon, delta)[0][min(count, saturation(epsilon, delta))]


def saturation(epsilon: float, delta: float) -> int:
    """g: the least count that is surely kept.

    >>> saturation(1.0, 1e-6)
    28
    """
    return len(keep_table(epsilon, delta)[0]) - 1
