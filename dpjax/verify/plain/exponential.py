"""A naive exact reference for the exponential mechanism, over candidates, depths, points, thresholds, parities and conjunctions."""

import itertools
import math
from collections.abc import Sequence

from dpjax.verify.plain.parity_learner import inner


def exponential_law(scores: Sequence[float], rate: float) -> list[float]:
    """P[i] proportional to exp(rate scores[i]); rate is epsilon / (2 sensitivity), or twice that for scores that all rise or all fall.

    >>> [round(p, 3) for p in exponential_law([0, 1, 1], math.log(2))]
    [0.2, 0.4, 0.4]
    """
    best = max(scores)
    weights = [math.exp(rate * (score - best)) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def depth(points: Sequence[int], z: int) -> int:
    """How many of the points are on either side of z: min(#<=z, #>=z).

    >>> [depth([1, 1, 3], z) for z in range(5)]
    [0, 2, 1, 1, 0]
    """
    return min(sum(x <= z for x in points), sum(x >= z for x in points))


def depth_law(points: Sequence[int], size: int, rate: float) -> list[float]:
    """P[z] for z = 0, ..., size - 1, by the depth; rate is epsilon under add/remove, where all depths move the same way.

    >>> [round(p, 6) for p in depth_law([1], 3, 1.0)]  # weights 1, e, 1
    [0.211942, 0.576117, 0.211942]
    """
    return exponential_law([depth(points, z) for z in range(size)], rate)


def point_law(examples: Sequence[tuple[int, int]], points: int, epsilon: float, *, zero: bool = False) -> list[float]:
    """P[c_j] for j = 0, ..., points - 1, then of the all-zero hypothesis: 0 unless it is one of the candidates (`zero`).

    >>> [round(p, 3) for p in point_law([(1, 1), (0, 0)], 2, 2 * math.log(2))]  # right about 0 and 2 examples
    [0.2, 0.8, 0.0]
    """
    candidates = [*range(points), *[None] * zero]
    law = exponential_law([sum((x == j) == (y == 1) for x, y in examples) for j in candidates], epsilon / 2)
    return law if zero else [*law, 0.0]


def threshold_errors(xs: Sequence[int], ys: Sequence[int], bits: int) -> list[int]:
    """How many examples each of the thresholds 0, ..., 2^bits gets wrong.

    >>> threshold_errors([0, 3], [1, 0], 2)
    [1, 0, 0, 0, 1]
    """
    return [sum((x < j) != (y == 1) for x, y in zip(xs, ys, strict=True)) for j in range(2**bits + 1)]


def threshold_law(xs: Sequence[int], ys: Sequence[int], bits: int, epsilon: float) -> list[float]:
    """P[j] for the thresholds j = 0, ..., 2^bits.

    >>> [round(p, 3) for p in threshold_law([0], [1], 1, 2 * math.log(2))]
    [0.2, 0.4, 0.4]
    """
    return exponential_law([-wrong for wrong in threshold_errors(xs, ys, bits)], epsilon / 2)


def parity_law(xs: Sequence[int], ys: Sequence[int], bits: int, epsilon: float) -> list[float]:
    """P[v] for the parities v = 0, ..., 2^bits - 1.

    >>> [round(p, 3) for p in parity_law([1, 1], [1, 1], 1, 2 * math.log(2))]  # v = 1 is right twice
    [0.2, 0.8]
    """
    right = [sum(inner(v, x) == y for x, y in zip(xs, ys, strict=True)) for v in range(2**bits)]
    return exponential_law(right, epsilon / 2)


def conjunction_law(
    examples: Sequence[tuple[Sequence[int], int]], k: int, epsilon: float, *, disjunction: bool = False
) -> list[float]:
    """P[h] for all sets of 1 to k literals of different variables, in order of size, then of variables, then of signs; then the constant.

    An example is (a 0 or 1 for each variable, label); weights are exp(-epsilon errors). The constant, for k >= 2, is 0, for disjunctions 1.

    >>> [round(p, 3) for p in conjunction_law([((1,), 1)], 1, math.log(3))]  # v0, not v0
    [0.75, 0.25]
    """
    variables, join = len(examples[0][0]), any if disjunction else all
    hypotheses = [
        [(v, 1 - negated) for v, negated in zip(chosen, signs, strict=True)]
        for size in range(1, k + 1)
        for chosen in itertools.combinations(range(variables), size)
        for signs in itertools.product((0, 1), repeat=size)
    ]
    wrong = [sum(join(x[v] == value for v, value in h) != (y == 1) for x, y in examples) for h in hypotheses]
    if k >= 2:
        wrong.append(sum(y != int(disjunction) for _, y in examples))
    return exponential_law([-count for count in wrong], epsilon)
