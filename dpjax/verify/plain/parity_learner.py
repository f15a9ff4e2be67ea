"""A naive exact reference for ParityLearner (MULTI Algorithm 4) with the proved A_dist, in plain Python: all parities are tried.

Points and parities of d bits are integers; examples are (point, its k labels).
"""

import math
from collections import Counter
from collections.abc import Sequence

from dpjax.verify.plain.laplace import laplace_tail

Example = tuple[int, Sequence[int]]


def inner(v: int, x: int) -> int:
    """<v, x> mod 2.

    >>> inner(5, 4), inner(5, 5)
    (1, 0)
    """
    return (v & x).bit_count() % 2


def vote(examples: Sequence[Example], bits: int) -> tuple[int, ...] | None:
    """The only vector of parities that agrees with a subsample, if there is exactly one.

    >>> vote([(1, [1, 0]), (2, [0, 0])], 2), vote([(1, [1, 0])], 2)
    ((1, 0), None)
    """
    xs, columns = [x for x, _ in examples], zip(*(labels for _, labels in examples), strict=True)
    fits = [
        [v for v in range(1 << bits) if all(inner(v, x) == y for x, y in zip(xs, column, strict=True))]
        for column in columns
    ]
    return tuple(vs[0] for vs in fits) if all(len(vs) == 1 for vs in fits) else None


def parity_learner_law(examples: Sequence[Example], bits: int, size: int, epsilon: float, delta: float) -> list[float]:
    """P[(v_1, ..., v_k)] in the order of v_1 + v_2 2^d + ..., then of bottom.

    >>> [round(p, 3) for p in parity_learner_law([(1, [1])] * 3, 1, 1, 2.0, 0.2)]  # three votes for 1
    [0.0, 0.54, 0.46]
    """
    k = len(examples[0][1])
    votes = [vote(examples[i : i + size], bits) for i in range(0, len(examples) - size + 1, size)]
    law = [0.0] * (1 << (bits * k))
    ranked = Counter(each for each in votes if each is not None).most_common(2)  # the first to be seen leads, on ties
    if ranked:
        leader, count = ranked[0]
        gap = count - (ranked[1][1] if len(ranked) > 1 else 0)
        threshold = 2 + 2 / epsilon * math.log(1 / (2 * delta))
        law[sum(v << (bits * j) for j, v in enumerate(leader))] = laplace_tail((threshold - gap) * epsilon / 2)
    return [*law, 1 - sum(law)]
