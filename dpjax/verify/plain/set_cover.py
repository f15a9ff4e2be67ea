"""A naive exact reference for SetCoverLearner (GEO §3): rounds of the exponential mechanism that share one noisy test."""

import math
from collections.abc import Sequence

from dpjax.verify.plain.exponential import exponential_law

Example = tuple[int, int]  # (point, label)


def noise_law(scale: float, least: int, most: int) -> dict[int, float]:
    """P[floor(Lap(scale)) = w] for least <= w <= most; what lies beyond is added to the ends.

    >>> law = noise_law(1.0, -1, 0)
    >>> round(law[-1], 6), round(law[0], 6)
    (0.5, 0.5)
    """

    def below(x: float) -> float:  # P[Lap < x]
        return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)

    ends = [0.0, *(below(w) for w in range(least + 1, most + 1)), 1.0]
    return {w: ends[i + 1] - ends[i] for i, w in enumerate(range(least, most + 1))}


def round_law(
    table: Sequence[Sequence[bool]],
    left: Sequence[Example],
    k: int,
    rate: float,
    scale: float | None,
    shift: int,
    measure: Sequence[float] | None = None,
) -> list[float]:
    """P[h] in one round, for the examples that are left; table[h][x] is h(x), and scale None means no noise.

    q(h) = min(#_(h->0)(S0) - ceil(b/k), -#_(h->0)(S1)), b = |S0| + floor(Lap(scale)) - shift; P[h] is proportional to measure(h) exp(rate
    q(h)) given b, all measures being equal if none are given.
    """
    logs = [0.0] * len(table) if measure is None else [math.log(share) / rate for share in measure]
    counts = [[sum(not row[x] for x, y in left if y == label) for label in (0, 1)] for row in table]
    negatives = sum(y == 0 for _, y in left)
    # Beyond these values of b one of the two terms decides for all h, and the law no longer changes.
    least, most = k * min(map(sum, counts)), k * max(map(sum, counts))
    start = negatives - shift
    noises = {0: 1.0} if scale is None else noise_law(scale, least - start - 1, most - start + 1)
    law = [0.0] * len(table)
    for noise, p in noises.items():
        scores = [
            log + min(zeros - math.ceil((start + noise) / k), -ones)
            for log, (zeros, ones) in zip(logs, counts, strict=True)
        ]
        law = [total + p * each for total, each in zip(law, exponential_law(scores, rate), strict=True)]
    return law


def set_cover_law(
    table: Sequence[Sequence[bool]],
    examples: Sequence[Example],
    k: int,
    rounds: int,
    rate: float,
    scale: float | None,
    shift: int,
    measure: Sequence[float] | None = None,
) -> dict[tuple[int, ...], float]:
    """P[h_1, ..., h_rounds]: after each round the examples that h_j labels 0 are deleted."""
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(rounds):
        longer = {}
        for chosen, p in law.items():
            left = [(x, y) for x, y in examples if all(table[h][x] for h in chosen)]
            for h, q in enumerate(round_law(table, left, k, rate, scale, shift, measure)):
                longer[(*chosen, h)] = p * q
        law = longer
    return law


def greedy_cover(table: Sequence[Sequence[bool]], examples: Sequence[Example], rounds: int) -> tuple[int, ...]:
    """h_1, ..., h_rounds of the greedy choice: the fewest positive examples deleted, then the most negative ones, then the first.

    >>> greedy_cover([[False, True], [True, True]], [(0, 0), (1, 1)], 2)
    (0, 0)
    """
    chosen: list[int] = []
    for _ in range(rounds):
        left = [(x, y) for x, y in examples if all(table[h][x] for h in chosen)]
        worth = [tuple(sum(not row[x] for x, y in left if y == label) for label in (0, 1)) for row in table]
        chosen.append(min(range(len(table)), key=lambda h: (worth[h][1], -worth[h][0])))
    return tuple(chosen)
