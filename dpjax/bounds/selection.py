"""The best possible private selection among three candidates with integer scores, by linear programming.

Scores move by at most 1 between neighbours, each in any direction. A selection is a law P[h | q] for all vectors q; pure privacy requires
P[h | q] <= e^epsilon P[h | q'] for all neighbours. If costs do not change when candidates are relabelled, nothing is lost by laws that do
not change either (the average over all relabellings is private, and as good): there is one variable for each multiset of scores and each
score of the chosen candidate. Vectors outside the programme's range are left out, so its value is a lower bound for selections that are
private on all vectors, up to the solver's tolerance: HiGHS works in floats, and lets each constraint be missed by 1e-7.
"""

import itertools
import math
from typing import Any

import numpy as np

from dpjax.core import arguments


def least_cost(scores: Any, costs: Any, *, epsilon: float, room: int = 2) -> float:
    """The least mean cost, over vectors of three scores, of an epsilon-private selection; a lower bound up to the solver's tolerance.

    Args:
      scores: integers, shape (problems, 3).
      costs: >= 0, of that shape, depending on the scores alone: relabelled candidates keep their costs.
      epsilon: in (0, 20].
      room: privacy is required on all vectors of scores from `room` below the least score to `room` above the greatest.

    Raises:
      TypeError, ValueError: an argument out of range. RuntimeError: no optimum was found.

    >>> round(least_cost([[0, 0, 2]], [[1, 1, 0]], epsilon=1.0), 3)  # permute-and-flip: 0.323
    0.245
    """
    from scipy import optimize, sparse

    epsilon = arguments.known("epsilon", epsilon, above=0.0, at_most=20.0)
    room = arguments.integer("room", room, at_least=0, at_most=16)
    given, paid = arguments.array("scores", scores), arguments.array("costs", costs).astype(np.float64)
    if given.ndim != 2 or given.shape[1:] != (3,) or len(given) == 0 or given.dtype.kind not in "iu":
        raise ValueError(f"scores must be whole numbers of shape (problems, 3), got {given.dtype} {given.shape}")
    if paid.shape != given.shape or not np.all((paid >= 0) & (paid < math.inf)):
        raise ValueError(f"costs must be finite numbers >= 0 of shape {given.shape}, got {costs!r}")
    names: dict[Any, int] = {}

    def name(row: tuple[int, ...], h: int) -> int:
        return names.setdefault((tuple(sorted(row)), row[h]), len(names))

    span = range(int(given.min()) - room, int(given.max()) + room + 1)
    rows = list(itertools.combinations_with_replacement(span, 3))
    pairs = set()
    for row, move in itertools.product(rows, itertools.product((-1, 0, 1), repeat=3)):
        other = tuple(a + b for a, b in zip(row, move, strict=True))
        if min(other) in span and max(other) in span:
            pairs |= {(name(row, h), name(other, h)) for h in range(3)}
    here, there = np.array([pair for pair in sorted(pairs) if pair[0] != pair[1]], np.int64).reshape(-1, 2).T
    ratios = np.repeat([1.0, -math.exp(epsilon)], len(here))
    places = np.tile(np.arange(len(here)), 2), np.concatenate([here, there])
    private = sparse.csr_array((ratios, places), shape=(len(here), len(names)))
    laws, cost = np.zeros((len(rows), len(names))), np.zeros(len(names))
    for i, row in enumerate(rows):
        for h in range(3):
            laws[i, name(row, h)] += 1.0
    for scored, each in zip(given.tolist(), paid.tolist(), strict=True):
        for h in range(3):
            cost[name(tuple(scored), h)] += each[h] / len(given)
    sums = sparse.csr_array(laws), np.ones(len(rows))
    result = optimize.linprog(cost, private, np.zeros(len(here)), *sums, bounds=(0, 1), method="highs")
    if result.status != 0:
        raise RuntimeError(f"HiGHS found no optimum: {result.message}")
    return float(result.fun)
