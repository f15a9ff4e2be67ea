"""Naive exact references for sanitizers of dense domains: all databases, and all sequences of choices."""

import itertools
import math
from collections.abc import Callable, Sequence

from dpjax.verify.plain.exponential import exponential_law

Concept = Callable[[int], int]
Database = tuple[int, ...]


def answer(concept: Concept, rows: Sequence[int]) -> float:
    """Q_c: the share of the rows that the concept holds; 0 if there are no rows.

    >>> answer(lambda x: x < 2, [0, 1, 2, 3])
    0.5
    """
    return sum(concept(x) for x in rows) / max(len(rows), 1)


def largest_error(concepts: Sequence[Concept], rows: Sequence[int], others: Sequence[int]) -> float:
    """max over c of |Q_c(rows) - Q_c(others)|.

    >>> largest_error([lambda x: x == 0, lambda x: x == 1], [0, 0, 1, 1], [1])
    0.5
    """
    return max(abs(answer(concept, rows) - answer(concept, others)) for concept in concepts)


def blr_law(
    concepts: Sequence[Concept], data: Sequence[int], points: int, rows: int, epsilon: float
) -> dict[Database, float]:
    """P of every multiset of `rows` rows, sorted.

    >>> law = blr_law([lambda x: x == 0], [0], 2, 1, 2 * math.log(2))
    >>> {database: round(p, 3) for database, p in law.items()}
    {(0,): 0.667, (1,): 0.333}
    """
    databases = list(itertools.combinations_with_replacement(range(points), rows))
    scores = [-len(data) * largest_error(concepts, data, database) for database in databases]
    return dict(zip(databases, exponential_law(scores, epsilon / 2), strict=True))


def multiplicative_weights_law(
    signed: Sequence[Sequence[int]], data: Sequence[int], points: int, rounds: int, epsilon: float
) -> list[tuple[float, list[float]]]:
    """(P, released law) of every sequence of choices among these signed queries, in lexicographic order; epsilon is that of one round.

    >>> [(round(p, 3), law) for p, law in multiplicative_weights_law([[1, 0], [-1, 0]], [0], 2, 1, 2 * math.log(2))]
    [(0.667, [0.5, 0.5]), (0.333, [0.5, 0.5])]
    """
    step = math.sqrt(8 * math.log(points) / rounds)
    found = []
    for choices in itertools.product(range(len(signed)), repeat=rounds):
        weights, mean, probability = [1.0] * points, [0.0] * points, 1.0
        for choice in choices:
            total = math.fsum(weights)
            p = [weight / total for weight in weights]
            scores = [
                sum(query[x] for x in data) - len(data) * sum(query[x] * p[x] for x in range(points))
                for query in signed
            ]
            probability *= exponential_law(scores, epsilon / 2)[choice]
            mean = [have + more / rounds for have, more in zip(mean, p, strict=True)]
            weights = [weight * math.exp(step * query) for weight, query in zip(weights, signed[choice], strict=True)]
        found.append((probability, mean))
    return found
