"""Sanitizers of thresholds by noisy counts, and label-private thresholds, in tuned NumPy.

`histogram` and `tree` draw all n points, count them, add two-sided geometric noise, and make a database of it as
`dpjax.sanitizers.thresholds` does. What makes them fast: points of 16 random bits each, one table of counts for all trials of a batch,
one random word for each noise (the sign, and the size by its tail P[|K| >= k] = 2 r^k / (1 + r)), and the levels of the trees of all
trials in step. (Counts drawn as one multinomial, without the points, would take longer.)

`label_private` is handed a labelled sample in order, as `numpy_general` is, and chooses among 0 and what follows each distinct point.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.numpy_driver import Program, choose, fitting, fractions, within, words
from experiments.benchmarks.numpy_general import LANES, Batch, position_bytes
from experiments.benchmarks.numpy_trials import EPSILON, Cell

DISTANCE = 0.05  # of a released database from the data, at most, for success
SENSITIVITY = 2  # of a histogram, when one point is replaced

Array = NDArray[Any]

# ------------------------------------------------------------------------------------------------------- sanitizers


def counted(rng: np.random.Generator, rows: int, d: int, n: int) -> Array:
    """How often each of the 2^d points occurs among n uniform ones."""
    x = rng.bit_generator.random_raw(-(-rows * n // 4)).view(np.uint16)[: rows * n].reshape(rows, n) >> (16 - d)
    places = x + (np.arange(rows, dtype=np.int32) << d)[:, None]
    return np.bincount(places.reshape(-1), minlength=rows << d).reshape(rows, 1 << d)


def _noisy(rng: np.random.Generator, counts: Array, epsilon: float) -> Array:
    """Counts with two-sided geometric noise."""
    rate = epsilon / SENSITIVITY
    drawn = words(rng, *counts.shape)
    size = np.log(fractions(drawn << np.uint32(1)))
    size += np.float32(math.log((1 + math.exp(-rate)) / 2))
    size *= np.float32(-1 / rate)
    np.floor(np.maximum(size, 0, out=size), out=size)
    return np.asarray(counts + np.where(drawn >> np.uint32(31), size, -size))


def _close(estimates: Array, counts: Array, n: int) -> int:
    """How many of the databases made of these estimates are close to the data."""
    released = np.cumsum(estimates[:, :-1], axis=1)
    np.clip(np.maximum.accumulate(released, axis=1, out=released), 0, n, out=released)
    released -= np.cumsum(counts[:, :-1], axis=1)
    return int(np.count_nonzero(np.abs(released, out=released).max(axis=1) <= DISTANCE * n))


def histogram(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """Noisy counts of all points."""
    counts = counted(rng, rows, d, n)
    return _close(_noisy(rng, counts, EPSILON), counts, n)


def tree(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """Noisy counts of all dyadic intervals, made consistent."""
    counts = counted(rng, rows, d, n)
    level = counts
    sums: list[Array] = []
    for height in range(1, d + 1):
        noisy = _noisy(rng, level, EPSILON / d)
        if sums:
            weight = 2.0 ** (height - 1) / (2.0**height - 1)
            noisy *= weight
            noisy += (1 - weight) * _pairs(sums[-1])
        sums.append(noisy)
        level = _pairs(level)
    consistent = np.full((rows, 1), float(n))
    for estimate in sums[::-1]:
        missing = (consistent - _pairs(estimate)) / 2
        consistent = (estimate.reshape(rows, -1, 2) + missing[:, :, None]).reshape(rows, -1)
    return _close(consistent, counts, n)


def _pairs(values: Array) -> Array:
    """Sums of pairs of neighbours."""
    return np.asarray(values[:, ::2] + values[:, 1::2])


# --------------------------------------------------------------------------------------------------- private labels


def label_private(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The exponential mechanism on the thresholds that tell the points apart."""
    batch = _batch(rows, d, n)
    batch.draw(rng)
    return int(np.count_nonzero(batch.good(batch.dichotomy(rng, EPSILON))))


class Dichotomies(Batch):
    """Each piece of thresholds that label the points alike counts once: the first of them stands for it."""

    def dichotomy(self, rng: np.random.Generator, epsilon: float) -> Array:
        """The first threshold of a piece that the exponential mechanism chooses, for each trial."""
        self.scores[...] = self.correct
        self.scores -= self.best[:, None].astype(np.float32)
        self.scores *= np.float32(epsilon / 2)
        np.exp(self.scores, out=self.scores)
        # Before equal points there is nothing to choose.
        begin: Any = self.starts[:, : self.n + 1]
        np.multiply(self.scores, begin < self.starts[:, 1 : self.n + 2], out=self.weights[:, : self.n + 1])
        lanes = self.weights.reshape(self.rows, -1, LANES)
        lane = choose(rng, lanes.sum(axis=1))
        return np.asarray(self.starts[self.row, lane + LANES * choose(rng, lanes[self.row, :, lane])])


@functools.lru_cache(maxsize=4)
def _batch(rows: int, d: int, n: int) -> Dichotomies:
    return Dichotomies(Cell(d, n), rows)


# ------------------------------------------------------------------------------------------------------ all of them


def _rows(d: int, n: int) -> int:
    return fitting(6 * n + (16 << d))


def _check(d: int, n: int) -> None:
    within(d=(d, 2, 16), n=(n, 1, 2**24))


PROGRAMS = {
    "thresholds histogram": Program(histogram, _rows, _check),
    "thresholds tree": Program(tree, _rows, _check),
    "label_private": Program(
        label_private,
        lambda d, n: fitting(position_bytes(d, n)),
        lambda d, n: within(d=(d, 6, 63), n=(n, 1, math.inf)),
    ),
}
