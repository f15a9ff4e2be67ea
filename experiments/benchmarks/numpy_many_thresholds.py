"""k thresholds over uniform points in tuned NumPy: direct sum, distribution functions from private quantiles, GenericLearner.

The learners may use that labels are realizable: with c ones, the threshold before which i examples lie has n - |i - c| right. What makes
it fast: points are drawn in order; exp(-epsilon |i - c| / 2) for all i is a piece of one table, and so is exp(epsilon depth); the
slices of all trials are drawn from in step.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.multi import generic
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from experiments.benchmarks.numpy_driver import LARGEST_BATCH, Program, below, choose, fitting, spacings, within
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

LANES = 128
EXTRA_BITS = 8  # with which quantiles break ties
DISTANCE = 0.15  # of a released distribution function, which counts as success
SANITIZER_SHARE = 0.5  # of epsilon, in GenericLearner

Array = NDArray[Any]


def targets(d: int, k: int) -> list[int]:
    """k thresholds, evenly spaced."""
    return [((2 * j + 1) << d) // (2 * k) for j in range(k)]


def _points(rng: np.random.Generator, rows: int, d: int, n: int) -> Array:
    """Uniform points of {0, ..., 2^d - 1} in order, and 2^d behind them."""
    sums = np.cumsum(spacings(rng, rows, n).astype(np.int32), axis=1, dtype=np.int32)
    x = np.full((rows, n + 1), 1 << d, np.int64)
    x[:, :n] = sums[:, :n] * ((1 << d) / sums[:, n:].astype(np.float64))
    np.minimum(x[:, :n], (1 << d) - 1, out=x[:, :n])
    return x


def _inside(rng: np.random.Generator, starts: Array, weights: Array) -> Array:
    """A position in the piece that is drawn by weight, uniform there; piece i is [starts[i], starts[i + 1])."""
    rows, pieces = weights.shape
    padded = np.zeros((rows, -(-pieces // LANES), LANES), weights.dtype)
    padded.reshape(rows, -1)[:, :pieces] = weights
    lane = choose(rng, padded.sum(axis=2))
    at = np.arange(rows)
    piece = np.minimum(LANES * lane + choose(rng, padded[at, lane]), pieces - 1)
    low = starts[at, piece]
    return np.asarray(low + (rng.random(rows) * (starts[at, piece + 1] - low)).astype(np.int64))


# ---------------------------------------------------------------------------------------------------------- direct sum


def direct_sum(rng: np.random.Generator, rows: int, d: int, k: int, n: int) -> int:
    """k exponential mechanisms at epsilon / k; all k errors must be at most alpha."""
    x = _points(rng, rows, d, n)
    starts = np.zeros((rows, n + 2), np.int64)  # of the thresholds with i examples before them
    starts[:, 1:] = x
    starts[:, 1:] += 1
    lengths = np.diff(starts, axis=1).astype(np.float32)
    decay = np.exp(-EPSILON / k / 2 * np.abs(np.arange(-n, n + 1))).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(decay, n + 1)
    wanted = np.array(targets(d, k))
    ones = below(x, np.broadcast_to(wanted[:, None], (k, rows)))
    good = np.ones(rows, np.bool_)
    for target, c in zip(wanted, ones, strict=True):
        good &= np.abs(_inside(rng, starts, lengths * windows[n - c]) - target) <= ALPHA * 2**d
    return int(np.count_nonzero(good))


# ------------------------------------------------------------------------------------------------------------ quantiles


def released_quantiles(rng: np.random.Generator, x: Array, d: int, levels: int, m: int, epsilon: float) -> Array:
    """All multiples of 2^-levels, by medians of medians; the exponential mechanism on the depth of the 2m points around each."""
    rows, n = x.shape[0], x.shape[1] - 1
    broken = (x << EXTRA_BITS) + rng.integers(0, 1 << EXTRA_BITS, x.shape, np.int64)
    broken[:, :n].sort(axis=1)
    broken[:, n] = (1 << (d + EXTRA_BITS)) + 1
    answers = np.zeros(((1 << levels) + 1, rows), np.int64)
    answers[-1] = (1 << (d + EXTRA_BITS)) - 1
    piece = np.arange(2 * m + 1)
    decay = np.exp(epsilon * (np.minimum(piece, 2 * m - piece) - m)).astype(np.float32)
    for level in range(levels):
        reach = 1 << (levels - 1 - level)
        for place in range(reach, 1 << levels, 2 * reach):
            left, right = answers[place - reach], answers[place + reach]
            first = below(broken, left)
            stop = below(broken, right) if place + reach < 1 << levels else np.full(rows, n)
            row = (first + (stop - first + 1) // 2 - m)[:, None] + np.arange(2 * m)
            window = np.take_along_axis(broken, np.clip(row, 0, n - 1), axis=1)
            window = np.where(
                row < first[:, None], left[:, None], np.where(row < stop[:, None], window, right[:, None])
            )
            starts = np.zeros((rows, 2 * m + 2), np.int64)
            starts[:, 1:-1] = window
            starts[:, m + 1 : -1] += 1
            starts[:, -1] = 1 << (d + EXTRA_BITS)
            point = _inside(rng, starts, np.diff(starts, axis=1).astype(np.float32) * decay)
            answers[place] = np.clip(point, left, right)
    return np.asarray((answers[1:-1] >> EXTRA_BITS).T)


def distribution_function(rng: np.random.Generator, rows: int, d: int, levels: int, m: int, n: int) -> int:
    """The distribution function through all multiples of 2^-levels; its Kolmogorov distance to the points must be at most DISTANCE."""
    x = _points(rng, rows, d, n)
    released = released_quantiles(rng, x, d, levels, m, cdf_epsilon(levels))
    zero, top = np.zeros((rows, 1), np.int64), np.full((rows, 1), 1 << d)
    starts, ends = np.hstack([zero, released]), np.hstack([released, top])
    heights = (np.arange(1 << levels) + 0.5) / (1 << levels)
    first, last = (below(x, at.T).T / n for at in (starts + 1, ends))
    error = np.maximum(np.abs(heights - first), np.abs(heights - last))
    return int(np.count_nonzero(np.where(starts == ends, 0.0, error).max(axis=1) <= DISTANCE))


def cdf_epsilon(levels: int) -> float:
    """Of one slice, if all together are to be epsilon-private: a level costs twice as much."""
    return EPSILON / (2 * levels)


def sanitizer(d: int, levels: int, m: int, epsilon: float) -> Any:
    """dpjax's release of the same."""
    solver = interior_point.exponential(bits=d + EXTRA_BITS, epsilon=epsilon)
    return cdf.release(quantiles=quantiles.recursive(solver=solver, bits=d, levels=levels, m=m))


# ------------------------------------------------------------------------------------------------------- GenericLearner


@functools.lru_cache(maxsize=8)
def generic_learner(d: int, k: int, levels: int, m: int) -> Any:
    """dpjax's, which tells the budgets."""
    return generic.learner(
        # Under REPLACE_ONE a level costs four times a slice.
        sanitizer=sanitizer(d, levels, m, SANITIZER_SHARE * EPSILON / (4 * levels)),
        concepts=generic.thresholds(bits=d),
        k=k,
        epsilon=EPSILON,
        delta=DELTA,
        composition="optimal",
    )


def generic_thresholds(rng: np.random.Generator, rows: int, d: int, k: int, levels: int, m: int, n: int) -> int:
    """A threshold behind each released quantile, and 0; for each label the exponential mechanism among the different ones."""
    x = _points(rng, rows, d, n)
    released = released_quantiles(rng, x, d, levels, m, SANITIZER_SHARE * EPSILON / (4 * levels))
    choices = np.hstack([np.zeros((rows, 1), np.int64), released + 1])
    new = np.hstack([np.ones((rows, 1), np.bool_), choices[:, 1:] != choices[:, :-1]])
    before = below(x, choices.T)
    wanted = np.array(targets(d, k))
    ones = below(x, np.broadcast_to(wanted[:, None], (k, rows)))
    rate = float(generic_learner(d, k, levels, m).each_epsilon) / 2
    good, at = np.ones(rows, np.bool_), np.arange(rows)
    for target, c in zip(wanted, ones, strict=True):
        wrong = np.where(new, np.abs(before - c).T, n + 1.0)
        weights = np.where(new, np.exp(rate * (wrong.min(axis=1, keepdims=True) - wrong)), 0.0)
        good &= np.abs(choices[at, choose(rng, weights)] - target) <= ALPHA * 2**d
    return int(np.count_nonzero(good))


def _check(d: int, n: int) -> None:
    within(d=(d, 8, 31), n=(n, 2, math.inf))


def _rows(n: int) -> int:
    return min(LARGEST_BATCH, fitting(8 * n))


PROGRAMS = {
    "direct_sum": Program(direct_sum, lambda d, k, n: _rows(n), lambda d, k, n: _check(d, n)),
    "distribution function": Program(
        distribution_function, lambda d, levels, m, n: _rows(n), lambda d, levels, m, n: _check(d, n)
    ),
    "generic": Program(
        generic_thresholds, lambda d, k, levels, m, n: _rows(n), lambda d, k, levels, m, n: _check(d, n)
    ),
}
