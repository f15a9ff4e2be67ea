"""A naive reference for the interior point mechanism by the tree score: the tree as a list of intervals, every score by counting."""

import itertools
import math
from collections.abc import Iterator, Sequence

from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.supported import supported_law


def tree(bits: int) -> dict[int, tuple[range, int]]:
    """key -> (its subtree's interval, its level) of the search tree over {0, ..., 2^bits - 1}.

    The key of an interval is its element divisible by the greatest power of two, 0 only where 0 is alone; the level is the number of
    trailing zeros plus one, and 0 for the key 0.

    >>> tree(2)
    {2: (range(0, 4), 2), 1: (range(0, 2), 1), 0: (range(0, 1), 0), 3: (range(3, 4), 1)}
    """
    nodes = {}

    def grow(interval: range) -> None:
        if len(interval):
            key = max(interval, key=lambda y: y & -y)
            nodes[key] = interval, (key & -key).bit_length()
            grow(range(interval.start, key))
            grow(range(key + 1, interval.stop))

    grow(range(2**bits))
    return nodes


def tree_scores(points: Sequence[int], bits: int, sizes: Sequence[float], ranks: Sequence[float]) -> list[float]:
    """min(#<=y - ranks[z], #>=y - ranks[z], #in its subtree - sizes[z]) for y = 0, ..., 2^bits - 1 of level z.

    >>> tree_scores([1, 1, 3], 2, [2, 2, 2], [0, 0, 0])
    [-2, 0, 1, -1]
    """
    scores = []
    for y, (interval, level) in sorted(tree(bits).items()):
        up_to, from_it = sum(x <= y for x in points), sum(x >= y for x in points)
        inside = sum(x in interval for x in points)
        scores.append(min(up_to - ranks[level], from_it - ranks[level], inside - sizes[level]))
    return scores


def offsets_of(
    bits: int, epsilon: float, a: float, alpha: float, p: float, tau: float
) -> tuple[list[float], list[float]]:
    """(sizes, ranks) of the levels 0, ..., bits: (a - alpha z) / epsilon and (p ln(1 + z) + tau z) / epsilon.

    >>> offsets_of(1, 2.0, 4.0, 1.0, 0.0, 2.0)
    ([2.0, 1.5], [0.0, 1.0])
    """
    levels = range(bits + 1)
    return [(a - alpha * z) / epsilon for z in levels], [(p * math.log1p(z) + tau * z) / epsilon for z in levels]


def tree_score_law(
    points: Sequence[int], bits: int, epsilon: float, a: float, alpha: float = 0.0, p: float = 0.0, tau: float = 0.0
) -> list[float]:
    """P[y] for y = 0, ..., 2^bits - 1, proportional to exp(epsilon score).

    >>> [round(x, 3) for x in tree_score_law([1, 1], 1, math.log(2), 0.0)]  # scores 0 and 2
    [0.2, 0.8]
    """
    return exponential_law(tree_scores(points, bits, *offsets_of(bits, epsilon, a, alpha, p, tau)), epsilon)


def supported_tree_law(points: Sequence[int], bits: int, epsilon: float, delta: float) -> list[float]:
    """P[y] for y = 0, ..., 2^bits - 1, then P[bottom], for the exponential mechanism over the keys that the data support.

    >>> [round(x, 3) for x in supported_tree_law([1, 1, 1], 1, 1.0, 0.1)]
    [0.0, 0.613, 0.387]
    """
    scores = tree_scores(points, bits, [0.0] * (bits + 1), [0.0] * (bits + 1))
    return supported_law(scores, epsilon, delta, 2 * bits - 1)


def flat_tree_score_law(
    points: Sequence[int],
    bits: int,
    epsilon: float,
    offsets: tuple[float, float, float, float],
    curve: tuple[float, float, float, float],
    n: int,
) -> list[float]:
    """P[y] proportional to exp(psi(epsilon score)) on the middle n points; offsets (a, alpha, p, tau), curve (share, rest, knee, width).

    >>> flat = flat_tree_score_law([0, 1, 1, 1], 1, math.log(4), (0.0, 0.0, 0.0, 0.0), (0.5, 1.0, 0.0, 1.0), 2)
    >>> [round(x, 3) for x in flat]  # the points 1 and 1, a straight line: scores 0 and 2, halved
    [0.2, 0.8]
    """
    share, rest, knee, width = curve
    ordered = sorted(points)
    fewer = max(n - len(ordered), 0)
    start = (len(ordered) - n) // 2 if not fewer else 0
    front = (fewer + 1) // 2
    middle = [*[0] * front, *ordered[start : start + n], *[2**bits - 1] * (fewer - front)]
    scores = [epsilon * u for u in tree_scores(middle, bits, *offsets_of(bits, epsilon, *offsets))]
    curved = [share * (v - (1 - rest) * width * math.log1p(math.exp((v - knee) / width))) for v in scores]
    return exponential_law(curved, 1.0)


def failure(law: Sequence[float], points: Sequence[int]) -> float:
    """P[no interior point].

    >>> failure([0.5, 0.25, 0.25], [1, 2])
    0.5
    """
    return math.fsum(p for y, p in enumerate(law) if not (points and min(points) <= y <= max(points)))


def multisets(n: int, bits: int) -> Iterator[tuple[int, ...]]:
    """All multisets of n points.

    >>> list(multisets(2, 1))
    [(0, 0), (0, 1), (1, 1)]
    """
    return itertools.combinations_with_replacement(range(2**bits), n)
