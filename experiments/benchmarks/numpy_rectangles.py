"""Rectangles by slices in tuned NumPy: dpjax's plan, the same examples, the same slices, the exponential mechanism on each.

A trial's arrays fit a cache, so trials are made one by one. What makes it fast: only positive examples are kept; a slice is cut by a
partial sort, not by a sort of all that remain; a draw among the pieces between a slice's points is one cumulative sum. Equal coordinates
at a cut are all set aside (on 2^d coordinates, d >= 24, there are hardly any).
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.concepts import rectangles as concept
from dpjax.learners import rectangles
from experiments.benchmarks.numpy_driver import Program, fitting, within, words
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

BETA, MASS, ACCOUNTANT = 0.1, 0.5, "slicing"

Array = NDArray[Any]


@functools.lru_cache(maxsize=8)
def plan(axes: int, d: int) -> rectangles.Plan:
    """How dpjax spends the budget."""
    return rectangles.plan(
        axes=axes, bits=d, epsilon=EPSILON, delta=DELTA, beta=BETA, accountant=ACCOUNTANT, solver="exponential"
    )


def run(rng: np.random.Generator, rows: int, axes: int, d: int, n: int) -> int:
    """Runs the whole learner `rows` times."""
    faces = concept.centred(axes=axes, bits=d, mass=MASS)
    target = np.array([faces[0], faces[1]], np.int64).T
    return sum(_trial(rng, plan(axes, d), target, n) for _ in range(rows))


def _trial(rng: np.random.Generator, chosen: rectangles.Plan, target: Array, n: int) -> bool:
    """One run: whether the error is at most alpha."""
    x = words(rng, chosen.axes, n) >> np.uint32(32 - chosen.bits)
    inside = np.ones(n, np.bool_)
    for column, (low, high) in zip(x, target.tolist(), strict=True):
        inside &= column - np.uint32(low) <= np.uint32(high - low)
    x = x[:, inside]
    sizes = chosen.size + _geometric(rng, chosen.slice_epsilon, 2 * chosen.axes)
    learned = np.empty((chosen.axes, 2), np.int64)
    for axis in range(chosen.axes):
        count = x.shape[1]
        low = min(int(sizes[2 * axis]), count)
        high = min(int(sizes[2 * axis + 1]), count - low)
        column = x[axis]
        cuts = [place for place in (low, count - high) if 0 < place < count]
        ordered = np.partition(column, cuts) if cuts else column
        learned[axis] = (
            _interior(rng, ordered[:low][: chosen.capacity], chosen),
            _interior(rng, ordered[count - high :][-chosen.capacity :], chosen),
        )
        stays = np.ones(count, np.bool_)
        if low:
            stays &= column > ordered[:low].max()
        if high:
            stays &= column < ordered[count - high :].min()
        x = x[:, stays]
    noise = _geometric(rng, chosen.compute.epsilon, 2)
    enough = x.shape[1] + noise[0] - noise[1] >= chosen.threshold
    return bool(_error(learned, target, chosen.bits, enough) <= ALPHA)


def _geometric(rng: np.random.Generator, rate: float | None, size: int) -> Array:
    """Integers k >= 0 with P[k] proportional to exp(-rate k); zeros if there is no rate."""
    return rng.geometric(-math.expm1(-rate), size) - 1 if rate else np.zeros(size, np.int64)


def _interior(rng: np.random.Generator, points: Array, chosen: rectangles.Plan) -> int:
    """The exponential mechanism on the depth: i from the i-th point on, n - i behind it."""
    n = len(points)
    starts = np.zeros(n + 2, np.int64)
    starts[1:-1] = np.sort(points)
    starts[n // 2 + 1 : -1] += 1
    starts[-1] = 1 << chosen.bits
    piece = np.arange(n + 1)
    depth = np.minimum(piece, n - piece) - n // 2
    sums = np.cumsum(np.diff(starts) * np.exp(chosen.compute.epsilon * depth))
    i = min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), n)
    return int(starts[i] + math.floor(rng.random() * (starts[i + 1] - starts[i])))


def _error(learned: Array, target: Array, bits: int, enough: bool) -> float:
    """P[h] + P[t] - 2 P[h and t]; the all-zero hypothesis unless enough examples remained."""

    def mass(box: Array) -> float:
        return float(np.prod(np.maximum(box[:, 1] - box[:, 0] + 1, 0) / 2.0**bits))

    if not enough:
        return mass(target)
    both = np.stack([np.maximum(learned[:, 0], target[:, 0]), np.minimum(learned[:, 1], target[:, 1])], axis=1)
    return mass(learned) + mass(target) - 2 * mass(both)


def _check(axes: int, d: int, n: int) -> None:
    within(axes=(axes, 1, 64), d=(d, 24, 32), n=(n, 1, math.inf))


PROGRAMS = {"rectangles": Program(run, lambda axes, d, n: fitting(4 * axes * n), _check)}
