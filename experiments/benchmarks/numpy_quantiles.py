"""Quantiles in tuned NumPy, on n points floor(2^U), U uniform on [0, d - 1): a trial succeeds if no answer is more than RANKS ranks off.

Like for like with `dpjax.optimizers.quantiles.rank_exponential` at epsilon = 1 for m evenly spaced fractions: for each the exponential
mechanism on the rank error of the whole domain (below 0 the depth among equal points). Where it lands among the points is all that the
error asks for: of positions only the lengths of gaps are made, and those of all trials are weighed together.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks import numpy_interior
from experiments.benchmarks.numpy_driver import Program, fitting, within
from experiments.benchmarks.numpy_trials import EPSILON

RANKS = 20

Array = NDArray[Any]


def fractions(m: int) -> list[float]:
    """1/(m + 1), ..., m/(m + 1)."""
    return [i / (m + 1) for i in range(1, m + 1)]


def slope(m: int) -> float:
    """lambda of `rank_exponential`: epsilon over the ranges of all runs."""
    f = np.array(fractions(m))
    return float(EPSILON / (np.maximum(f, 1 - f).sum() + max(f.sum(), (1 - f).sum())))


def rank_exponential(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """All m answers of each trial; fractions whose multiple of n is no whole number have their nearest rank."""
    x = numpy_interior.points(rng, rows, d, n)
    below, up_to, lengths = _pieces(x, d)
    rate, good = np.float32(slope(m)), np.ones(rows, bool)
    for fraction in fractions(m):
        wanted = np.float32(fraction * n)
        error = np.maximum(below - wanted, wanted - up_to)
        sums = np.cumsum(lengths * np.exp(-rate * (error - error.min(axis=1, keepdims=True))), axis=1)
        drawn = rng.random((rows, 1)) * sums[:, -1:]
        index = np.minimum(np.count_nonzero(sums <= drawn, axis=1), sums.shape[1] - 1)[:, None]
        rank = math.floor(fraction * n + 0.5)
        low, high = (np.take_along_axis(np.broadcast_to(each, sums.shape), index, 1) for each in (below, up_to))
        good &= (np.maximum(low - rank, rank - high) <= RANKS)[:, 0]
    return int(np.count_nonzero(good))


def _pieces(x: Array, d: int) -> tuple[Array, Array, Array]:
    """#{< z}, #{<= z} and the length of each piece: the gap before the first point, then each point and the gap behind it.

    Of equal points the last stands for all, the others have no length.
    """
    rows, n = x.shape
    place = np.arange(n, dtype=np.int32)
    new = np.ones((rows, n), bool)
    new[:, 1:] = x[:, 1:] != x[:, :-1]
    first = np.maximum.accumulate(np.where(new, place, 0), axis=1)
    last = np.ones((rows, n), bool)
    last[:, :-1] = new[:, 1:]
    ends = np.concatenate([x[:, 1:], np.full((rows, 1), 1 << d, x.dtype)], axis=1)
    below, lengths = np.zeros((rows, 2 * n + 1), np.float32), np.empty((rows, 2 * n + 1))
    up_to = np.zeros(2 * n + 1, np.float32)
    below[:, 1::2], below[:, 2::2] = first, place + 1
    up_to[1::2] = up_to[2::2] = place + 1
    lengths[:, 0], lengths[:, 1::2] = x[:, 0], last
    lengths[:, 2::2] = (ends - x).astype(float) - last
    return below, up_to, lengths


def _check(d: int, m: int, n: int) -> None:
    within(d=(d, 6, 63), m=(m, 1, math.inf), n=(n, 2, math.inf))
    if n % 2:
        raise ValueError(f"n must be even, got {n}")


PROGRAMS = {"quantiles": Program(rank_exponential, lambda d, m, n: fitting(24 * n, at_least=4), _check)}
