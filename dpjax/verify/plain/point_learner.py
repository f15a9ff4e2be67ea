"""A naive exact reference for learners of k points (MULTI Algorithm 5, and histograms of labelled points), from the paper's text.

Examples are (point, its k labels); all sets of heavy items are enumerated, and all vectors of labels for them.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpjax.verify.plain import noisy_counts
from dpjax.verify.plain.laplace import laplace_tail

Example = tuple[int, tuple[int, ...]]
Law = dict[tuple[int | None, ...] | None, float]  # by the k points named, None for all-zero; the key None is bottom


def gap(examples: Sequence[Example], heavy: Sequence[int], k: int) -> float:
    """Q1 - Q2, by enumerating every choice of vectors.

    >>> gap([(1, (1,))] * 5 + [(1, (0,))] * 2, [1], 1)
    3
    """
    count = Counter(examples)
    vectors = list(itertools.product((0, 1), repeat=k))
    scores = sorted(
        min(count[x, v] for x, v in zip(heavy, choice, strict=True))
        for choice in itertools.product(vectors, repeat=len(heavy))
    )
    return scores[-1] - scores[-2]


def heavy_sets(names: Sequence[Any], chances: Sequence[float]) -> Iterator[tuple[float, list[Any]]]:
    """(probability, items) of every set of items, each of which is in it with its own probability.

    >>> list(heavy_sets("ab", [0.25, 0.0]))
    [(0.75, []), (0.25, ['a'])]
    """
    for heavy in itertools.product(*[(0, 1) if q > 0.0 else (0,) for q in chances]):
        p = math.prod(q if h else 1 - q for q, h in zip(chances, heavy, strict=True))
        yield p, [name for name, h in zip(names, heavy, strict=True) if h]


def noisy_count_chance(count: int, low: float, high: float, scale: float) -> float:
    """P[released] of a point by Algorithm 2: never for counts up to `low`, otherwise if the count + Lap(scale) >= high.

    >>> noisy_count_chance(3, 3, 5, 1.0), noisy_count_chance(5, 3, 5, 1.0)
    (0.0, 0.5)
    """
    return laplace_tail((high - count) / scale) if count > low else 0.0


def named(chosen: Sequence[Example], k: int) -> tuple[int | None, ...]:
    """For each label the first of these points that has it; None is all-zero.

    >>> named([(3, (0, 1)), (5, (1, 1))], 2)
    (5, 3)
    """
    return tuple(next((x for x, v in chosen if v[j]), None) for j in range(k))


def point_learner_law(
    examples: Sequence[Example], *, low: float, high: float, scale: float, keep: Callable[[float], float]
) -> Law:
    """PointLearner's law.

    Args:
      low, high, scale: parameters of the noisy counts of points; a point is heavy if its noisy count is at least `high`.
      keep: gap -> P[A_dist keeps the best vectors]; without a heavy point there is one candidate, which is surely kept.

    >>> law = point_learner_law([(1, (1,))] * 3, low=1, high=3, scale=1.0, keep=lambda gap: 0.5)
    >>> law[(1,)], law[(None,)], law[None]
    (0.25, 0.5, 0.25)
    """
    count, k = Counter(examples), len(examples[0][1])
    points = sorted({x for x, _ in examples})
    best = {x: max(sorted(pair for pair in count if pair[0] == x), key=lambda pair: count[pair]) for x in points}
    totals = Counter(x for x, _ in examples)
    law: Law = {}
    for p, heavy in heavy_sets(points, [noisy_count_chance(totals[x], low, high, scale) for x in points]):
        kept = p * keep(gap(examples, heavy, k)) if heavy else p
        _add(law, named([best[x] for x in heavy], k), kept)
        _add(law, None, p - kept)
    return law


def histogram_law(examples: Sequence[Example], *, low: float, high: float, scale: float) -> Law:
    """The law of the histogram of labelled points, which is never bottom.

    >>> histogram_law([(1, (1,))] * 3, low=1, high=3, scale=1.0)
    {(None,): 0.5, (1,): 0.5}
    """
    count, k = Counter(examples), len(examples[0][1])
    pairs = sorted(count)
    law: Law = {}
    for p, heavy in heavy_sets(pairs, [noisy_count_chance(count[pair], low, high, scale) for pair in pairs]):
        _add(law, named(heavy, k), p)
    return law


def sparse_histogram_law(examples: Sequence[Example], *, bits: int, threshold: int, scale: float) -> Law:
    """The law of the histogram of all labelled points, including those that do not occur in the data.

    >>> law = sparse_histogram_law([(1, (1,))] * 3, bits=1, threshold=3, scale=1 / math.log(2))
    >>> {named: round(p, 4) for named, p in law.items()}  # (1, 1) is released with probability 2/3, the others with 1/12
    {(None,): 0.3056, (1,): 0.6111, (0,): 0.0833}
    """
    count, k = Counter(examples), len(examples[0][1])
    pairs = [(x, v) for x in range(2**bits) for v in itertools.product((0, 1), repeat=k)]
    passes = [1 - noisy_counts.released(count[pair], threshold, scale, threshold + 1)[0] for pair in pairs]
    law: Law = {}
    for p, heavy in heavy_sets(pairs, passes):
        _add(law, named(heavy, k), p)
    return law


def success(law: Law, examples: Sequence[Example], error: float) -> float:
    """P[every empirical error <= error].

    >>> success({(1,): 0.5, (None,): 0.25, None: 0.25}, [(1, (1,))] * 3, 0.1)
    0.5
    """

    def good(hypotheses: tuple[int | None, ...]) -> bool:
        wrong = [sum((x == point) != v[j] for x, v in examples) for j, point in enumerate(hypotheses)]
        return max(wrong) / len(examples) <= error

    return sum(p for hypotheses, p in law.items() if hypotheses is not None and good(hypotheses))


def _add(law: Law, outcome: tuple[int | None, ...] | None, p: float) -> None:
    law[outcome] = law.get(outcome, 0.0) + p
