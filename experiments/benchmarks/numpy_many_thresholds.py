"""k thresholds over uniform points in tuned NumPy: direct sum, distribution functions from private quantiles, GenericLearner.

`direct_sum` and `generic` are handed points and labels, and accept any labels: correctly labelled examples are counted by partial sums of
the labels. What makes it fast: points are drawn in order; four labels are fields of one word, and are added up together; what all labels
share (the logarithms of the pieces' lengths) is computed once; exp(epsilon depth) is one table; all trials draw from their slices in step.

The `specialised` programs use that labels are realizable, and by which thresholds: with c ones, the threshold with i examples before it
labels n - |i - c| correctly, and exp(-epsilon |i - c| / 2) for all i is a piece of one table.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.multi import generic
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from experiments.benchmarks.numpy_driver import LARGEST_BATCH, Program, below, choose, fitting, spacings, within
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

LANES = 128
FIELDS = 4  # labels of a word
EXTRA_BITS = 8  # with which quantiles break ties between points
DISTANCE = 0.15  # of a released distribution function, at most, for success
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
    """A uniform position in a piece that is drawn by weight; piece i is [starts[i], starts[i + 1])."""
    rows, pieces = weights.shape
    padded = np.zeros((rows, -(-pieces // LANES), LANES), weights.dtype)
    padded.reshape(rows, -1)[:, :pieces] = weights
    lane = choose(rng, padded.sum(axis=2))
    at = np.arange(rows)
    piece = np.minimum(LANES * lane + choose(rng, padded[at, lane]), pieces - 1)
    low = starts[at, piece]
    return np.asarray(low + (rng.random(rows) * (starts[at, piece + 1] - low)).astype(np.int64))


# -------------------------------------------------------------------------------------------------------------- labels


def _labels(x: Array, d: int, k: int) -> Array:
    """The labels of k thresholds, 0 or 1 in fields of 16 bits, four to a word: shape (words, rows, n); points are in order."""
    rows, n = x.shape[0], x.shape[1] - 1
    words = np.zeros((-(-k // FIELDS), rows, n + 1), np.uint64)
    ones = below(x, np.broadcast_to(np.array(targets(d, k))[:, None], (k, rows)))
    for j, c in enumerate(ones):
        word, one = words[j // FIELDS], np.uint64(1 << 16 * (j % FIELDS))
        word[:, 0] += one
        word[np.arange(rows), c] -= one
    return np.cumsum(words, axis=2, out=words)[:, :, :n]


def _ones_before(labels: Array) -> Array:
    """How many of the first 0, ..., n examples have each label: shape (words, rows, n + 1, 4)."""
    counts = np.zeros((*labels.shape[:2], labels.shape[2] + 1), np.uint64)
    np.cumsum(labels, axis=2, out=counts[:, :, 1:])
    return counts.view(np.uint16).reshape(*counts.shape, FIELDS)  # the first label in the lowest bits, and first


# ---------------------------------------------------------------------------------------------------------- direct sum


def direct_sum(rng: np.random.Generator, rows: int, d: int, k: int, n: int) -> int:
    """k exponential mechanisms at epsilon / k; all k errors must be at most alpha."""
    x = _points(rng, rows, d, n)
    hypotheses = learned_one_by_one(rng, x, _labels(x, d, k), d, k)
    wanted = np.array(targets(d, k))[:, None]
    return int(np.count_nonzero((np.abs(hypotheses - wanted) <= ALPHA * 2**d).all(axis=0)))


def learned_one_by_one(rng: np.random.Generator, x: Array, labels: Array, d: int, k: int) -> Array:
    """k thresholds, shape (k, rows); i examples lie before piece i of the domain, where Q = 2 #{ones among them} - i + zeros are right."""
    rows, n, rate = x.shape[0], x.shape[1] - 1, EPSILON / k / 2
    starts = np.zeros((rows, n + 2), np.int64)
    np.add(x, 1, out=starts[:, 1:])
    with np.errstate(divide="ignore"):
        shared = np.log(np.diff(starts, axis=1).astype(np.float32))
    shared -= (rate * np.arange(n + 1)).astype(np.float32)
    shared = np.repeat(shared, FIELDS, axis=1)
    ones = _ones_before(labels).reshape(len(labels), rows, -1)
    cut = np.zeros((rows, -(-(n + 1) // LANES), LANES, FIELDS), np.float32)
    scores = cut.reshape(rows, -1)[:, : (n + 1) * FIELDS]
    by_field = np.tile(np.eye(FIELDS, dtype=np.float32), (LANES, 1))
    small = rate * n + math.log(n * 2.0**d) < 87  # then no exponential, and no sum of them, leaves the range of float32
    at, field = np.repeat(np.arange(rows), FIELDS), np.tile(np.arange(FIELDS), rows)
    chosen = np.empty((len(labels), rows, FIELDS), np.int64)
    for word in range(len(labels)):
        np.multiply(ones[word], np.float32(2 * rate), out=scores)
        np.add(scores, shared, out=scores)
        if not small:
            labelled = scores.reshape(rows, n + 1, FIELDS)
            labelled -= labelled.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        sums = (cut.reshape(-1, LANES * FIELDS) @ by_field).reshape(rows, -1, FIELDS)
        lane = choose(rng, sums.transpose(0, 2, 1).reshape(rows * FIELDS, -1))
        piece = np.minimum(LANES * lane + choose(rng, cut[at, lane, :, field]), n)
        low = starts[at, piece]
        position = low + (rng.random(len(at)) * (starts[at, piece + 1] - low)).astype(np.int64)
        chosen[word] = position.reshape(rows, FIELDS)
    return chosen.transpose(0, 2, 1).reshape(-1, rows)[:k]


def specialised_direct_sum(rng: np.random.Generator, rows: int, d: int, k: int, n: int) -> int:
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
    """The epsilon of one slice, if all together are to be epsilon-private; a level costs twice as much as a slice."""
    return EPSILON / (2 * levels)


def sanitizer(d: int, levels: int, m: int, epsilon: float) -> Any:
    """dpjax's release of the same distribution function."""
    solver = interior_point.exponential(bits=d + EXTRA_BITS, epsilon=epsilon)
    return cdf.release(quantiles=quantiles.recursive(solver=solver, bits=d, depth=levels, m=m, allow_unproved=True))


# ------------------------------------------------------------------------------------------------------- GenericLearner


@functools.lru_cache(maxsize=8)
def generic_learner(d: int, k: int, levels: int, m: int) -> Any:
    """dpjax's GenericLearner, from which the budgets are taken."""
    return generic.learner(
        # Under REPLACE_ONE a level costs four times a slice.
        sanitizer=sanitizer(d, levels, m, SANITIZER_SHARE * EPSILON / (4 * levels)),
        concepts=generic.thresholds(bits=d),
        k=k,
        epsilon=EPSILON,
        delta=DELTA,
        accountant="optimal",
    )


def generic_thresholds(rng: np.random.Generator, rows: int, d: int, k: int, levels: int, m: int, n: int) -> int:
    """A threshold behind each released quantile, and 0; for each label the exponential mechanism among the distinct ones."""
    x = _points(rng, rows, d, n)
    ones = _ones_before(_labels(x, d, k))
    choices, before, new = _choices(rng, x, d, levels, m)
    at = np.arange(rows)[:, None]

    def right(j: int) -> Array:
        return 2 * ones[j // FIELDS, at, before, j % FIELDS].astype(np.int64) - before

    return _near_all(rng, d, k, choices, new, right, float(generic_learner(d, k, levels, m).each_epsilon))


def specialised_generic(rng: np.random.Generator, rows: int, d: int, k: int, levels: int, m: int, n: int) -> int:
    """The same, where a threshold is wrong on the examples between it and the target."""
    x = _points(rng, rows, d, n)
    ones = below(x, np.broadcast_to(np.array(targets(d, k))[:, None], (k, rows)))
    choices, before, new = _choices(rng, x, d, levels, m)

    def right(j: int) -> Array:
        return -np.abs(before - ones[j][:, None])

    return _near_all(rng, d, k, choices, new, right, float(generic_learner(d, k, levels, m).each_epsilon))


def _choices(rng: np.random.Generator, x: Array, d: int, levels: int, m: int) -> tuple[Array, Array, Array]:
    """(thresholds, how many points lie before each, which differ from the one before)."""
    released = released_quantiles(rng, x, d, levels, m, SANITIZER_SHARE * EPSILON / (4 * levels))
    choices = np.hstack([np.zeros((len(x), 1), np.int64), released + 1])
    new = np.hstack([np.ones((len(x), 1), np.bool_), choices[:, 1:] != choices[:, :-1]])
    return choices, below(x, choices.T).T, new


def _near_all(
    rng: np.random.Generator, d: int, k: int, choices: Array, new: Array, right: Callable[[int], Array], epsilon: float
) -> int:
    """In how many rows a threshold near its target is drawn for each label, given the numbers of right examples up to a constant."""
    good, at = np.ones(len(choices), np.bool_), np.arange(len(choices))
    for j, target in enumerate(targets(d, k)):
        score = np.where(new, right(j), -np.inf)
        weights = np.exp(epsilon / 2 * (score - score.max(axis=1, keepdims=True)))
        good &= np.abs(choices[at, choose(rng, weights)] - target) <= ALPHA * 2**d
    return int(np.count_nonzero(good))


def _check(d: int, n: int) -> None:
    within(d=(d, 8, 31), n=(n, 2, 2**16 - 1))


def _rows(n: int) -> int:
    return min(LARGEST_BATCH, fitting(8 * n))


PROGRAMS = {
    f"{kind}{name}": Program(run, lambda *sizes: _rows(sizes[-1]), lambda *sizes: _check(sizes[0], sizes[-1]))
    for kind, name, run in (
        ("", "direct_sum", direct_sum),
        ("specialised ", "direct_sum", specialised_direct_sum),
        ("", "distribution function", distribution_function),
        ("", "generic", generic_thresholds),
        ("specialised ", "generic", specialised_generic),
    )
}
