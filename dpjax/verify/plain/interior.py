"""Naive references for the reductions between thresholds and interior points (CLNSS, footnote 5): the data passed on, and the laws."""

from collections.abc import Callable, Sequence

from dpjax.verify.plain.exponential import depth_law


def boundary(xs: Sequence[int], ys: Sequence[int], bits: int, m: int) -> list[int]:
    """The m largest numbers of the ones and the m smallest of the zeros; a one at x has the number x + 1, a zero its x.

    >>> boundary([0, 1, 3], [1, 1, 0], 2, 2)
    [1, 2, 3, 4]
    """
    ones = sorted([0] * m + [x + 1 for x, y in zip(xs, ys, strict=True) if y == 1])
    zeros = sorted([2**bits] * m + [x for x, y in zip(xs, ys, strict=True) if y == 0])
    return ones[-m:] + zeros[:m]


def threshold_learner_law(xs: Sequence[int], ys: Sequence[int], bits: int, m: int, epsilon: float) -> list[float]:
    """P[j], j = 0, ..., 2^bits, of the learner by the exponential mechanism on the depth, with one more bit.

    >>> [round(p, 3) for p in threshold_learner_law([0, 1], [1, 0], 1, 1, 30.0)]  # both numbers are 1
    [0.0, 1.0, 0.0]
    """
    law = depth_law(boundary(xs, ys, bits, m), 2 ** (bits + 1), epsilon)
    return [*law[: 2**bits], sum(law[2**bits :])]


def labelled(points: Sequence[int], bits: int, m: int) -> tuple[list[int], list[int]]:
    """The examples that a learner on bits + 1 bits gets: ones for the first half of the points, zeros for the second, m of each.

    >>> labelled([3, 1, 2], 2, 2)
    ([0, 2, 5, 7], [1, 1, 0, 0])
    """
    ordered, k = sorted(points), len(points) // 2
    ones, zeros = ordered[:k][:m], ordered[k:][max(len(ordered) - k - m, 0) :]
    low = [0] * (m - len(ones)) + [2 * x for x in ones]
    high = [2 * x + 1 for x in zeros] + [2 ** (bits + 1) - 1] * (m - len(zeros))
    return low + high, [1] * m + [0] * m


def solver_law(
    points: Sequence[int],
    bits: int,
    m: int,
    learner_law: Callable[[list[int], list[int]], Sequence[float]],
) -> list[float]:
    """P[z], z = 0, ..., 2^bits - 1, of half the threshold that the learner returns; the last threshold is moved to the top.

    Args:
      learner_law: (xs, ys) -> P[j] for the thresholds j = 0, ..., 2^(bits + 1).

    >>> solver_law([0, 1], 1, 1, lambda xs, ys: [0.1, 0.2, 0.3, 0.3, 0.1])
    [0.30000000000000004, 0.7]
    """
    law = learner_law(*labelled(points, bits, m))
    folded = [law[2 * z] + law[2 * z + 1] for z in range(2**bits)]
    return [*folded[:-1], folded[-1] + law[-1]]
