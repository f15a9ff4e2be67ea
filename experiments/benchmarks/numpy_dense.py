"""The sanitizer of Blum, Ligett and Roth on thresholds in tuned NumPy: one list of all databases, all trials of a batch at once.

A trial draws n uniform points, counts them, scores every database by its largest error as `dpjax.sanitizers.dense.blr` does, and draws
one of them. What makes it fast: errors are differences of distribution functions, in integer multiples of 1/(n R), which fit into 16 bits;
the functions of the databases are listed once, and their values are compared one after another, for all databases at once, in place.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.sanitizers.dense.blr import MOST_DATABASES, databases
from experiments.benchmarks.numpy_driver import Program, choose, fitting, within
from experiments.benchmarks.numpy_general import LANES
from experiments.benchmarks.numpy_sanitizers import counted
from experiments.benchmarks.numpy_trials import EPSILON

DISTANCE = 0.15  # of a released database from the data, at most, for success

Array = NDArray[Any]


@functools.lru_cache(maxsize=4)
def _functions(d: int, size: int, n: int) -> Array:
    """n times the cumulative counts of every database of that size, with a row for each value but the last."""
    return np.ascontiguousarray((np.cumsum(databases(d, size), axis=1).T[:-1] * n).astype(np.int16))


def dense_blr(rng: np.random.Generator, rows: int, d: int, size: int, n: int) -> int:
    """The exponential mechanism over all databases of `size` rows."""
    functions = _functions(d, size, n)
    data = (np.cumsum(counted(rng, rows, d, n), axis=1) * size).astype(np.int16)
    excess, difference = np.zeros((2, rows, functions.shape[1]), np.int16)
    for place, values in enumerate(functions):
        np.subtract(values, data[:, place, None], out=difference)
        np.abs(difference, out=difference)
        np.maximum(excess, difference, out=excess)
    weights = np.zeros((rows, -(-functions.shape[1] // LANES) * LANES), np.float32)
    scores = weights[:, : functions.shape[1]]
    np.subtract(excess.min(axis=1, keepdims=True), excess, out=scores, casting="unsafe")
    scores *= np.float32(EPSILON / (2 * size))
    np.exp(scores, out=scores)
    lanes, row = weights.reshape(rows, -1, LANES), np.arange(rows)
    lane = choose(rng, lanes.sum(axis=1))
    chosen = lane + LANES * choose(rng, lanes[row, :, lane])
    return int(np.count_nonzero(excess[row, chosen] <= DISTANCE * n * size))


def _databases(d: int, size: int) -> int:
    """The number of databases."""
    return math.comb(size + (1 << d) - 1, size)


def _check(d: int, size: int, n: int) -> None:
    within(d=(d, 2, 6), R=(size, 1, math.inf), n=(n, 1, math.inf))
    within(**{"n R": (n * size, 1, 2**15 - 1), "databases": (_databases(d, size), 1, MOST_DATABASES)})


PROGRAMS = {
    "blr": Program(
        dense_blr,
        lambda d, size, n: fitting(8 * _databases(d, size)),
        _check,
    )
}
