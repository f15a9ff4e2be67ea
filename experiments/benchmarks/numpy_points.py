"""Learners of points in tuned NumPy, one concept and many, on seven points with masses around alpha.

The learner is handed the points and their labels and may use that these are realizable: a point's labels are the same wherever it occurs.
What makes it fast: a batch's samples are sorted at once, rows in cache; runs of equal points are found by comparing neighbours; labels are
packed, 64 a word, and only those of heavy points are looked at.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpjax.learners import points as learners
from dpjax.multi import points as multi
from experiments.benchmarks.numpy_driver import Program, choose, fitting, kept, within, words
from experiments.benchmarks.numpy_trials import DELTA, EPSILON

BITS = 64
POINTS = (3, 5, 2**20, 2**40 + 1, 2**50, 2**60, 2**63)
MASSES = (0.3, 0.08, 0.2, 0.15, 0.12, 0.1, 0.05)
TARGET = 3  # which of them a single concept is
ALPHA, BETA = 0.11, 0.1  # no mass is alpha exactly

Array = NDArray[Any]

EXAMPLES = np.array(POINTS, np.uint64)
IS_TARGET = np.arange(len(POINTS)) == TARGET


def targets(k: int) -> list[int]:
    """Which points the k concepts are: spread over all."""
    return [len(POINTS) * (2 * j + 1) // (2 * k) % len(POINTS) for j in range(k)]


def _draw(rng: np.random.Generator, rows: int, n: int) -> Array:
    """Which of the points each example is."""
    drawn = words(rng, rows, n)
    kind = np.zeros(drawn.shape, np.uint8)
    for edge in np.cumsum(MASSES)[:-1]:
        kind += drawn >= np.uint32(edge * 2**32)
    return kind


def _runs(x: Array) -> tuple[Array, Array]:
    """(place of the first, length) of every run of equal points in sorted rows, one row after the other."""
    begins = np.ones(x.shape, np.bool_)
    np.not_equal(x[:, 1:], x[:, :-1], out=begins[:, 1:])
    start = np.flatnonzero(begins)
    return start, np.diff(start, append=x.size)


# ------------------------------------------------------------------------------------------------------- one concept


def learn_points(rng: np.random.Generator, rows: int, n: int) -> int:
    """LearnPoints: all ones are the target's, so the gap is their number; bottom becomes all-zero."""
    x = EXAMPLES[_draw(rng, rows, n)]
    ones = np.count_nonzero(x == EXAMPLES[TARGET], axis=1)
    return int(np.count_nonzero((ones > 0) & kept(rng, ones, EPSILON, DELTA)))


def exponential(rng: np.random.Generator, rows: int, n: int) -> int:
    """The exponential mechanism over all points: those not seen err on all ones, those seen on their own zeros, too."""
    x = np.sort(EXAMPLES[_draw(rng, rows, n)], axis=1)
    start, count = _runs(x)
    row, is_target = start // n, x.reshape(-1)[start] == EXAMPLES[TARGET]
    ones = np.bincount(row[is_target], count[is_target], minlength=rows)
    # Weights over that of the target, which is one of the unseen points if there are no ones.
    weight = np.where(is_target, 1.0, np.exp(-EPSILON / 2 * (ones[row] + count)))
    unseen = (2.0**BITS - np.bincount(row, minlength=rows)) * np.exp(-EPSILON / 2 * ones)
    return int(np.count_nonzero(rng.random(rows) * (np.bincount(row, weight, minlength=rows) + unseen) < 1))


def hashed(rng: np.random.Generator, rows: int, n: int) -> int:
    """A random affine hash to 2^m buckets, then the exponential mechanism over them and all-zero."""
    m = _buckets()
    size = 1 << m
    x = EXAMPLES[_draw(rng, rows, n)]
    planes = rng.integers(0, 2**64 - 1, (m, rows, 1), np.uint64, endpoint=True)
    shift = rng.integers(0, size, (rows, 1), np.uint16)

    def bucket(x: Array) -> Array:
        bits = (np.bitwise_count(x & plane) & np.uint8(1) for plane in planes)
        return (
            functools.reduce(
                np.bitwise_or, (bit.astype(np.uint16) << np.uint16(i) for i, bit in enumerate(bits)), shift * 0
            )
            ^ shift
        )

    place, label = bucket(x) + size * np.arange(rows)[:, None], x == EXAMPLES[TARGET]
    seen, ones_in = (
        np.bincount(part.reshape(-1), minlength=rows * size).reshape(rows, size) for part in (place, place[label])
    )
    ones = ones_in.sum(axis=1, keepdims=True)
    wrong = np.concatenate([ones + seen - 2 * ones_in, ones], axis=1).astype(np.float32)
    wrong -= wrong.min(axis=1, keepdims=True)
    wrong *= np.float32(-EPSILON / 2)
    chosen = choose(rng, np.exp(wrong, out=wrong))
    inside = bucket(np.broadcast_to(EXAMPLES, (rows, len(POINTS)))) == chosen[:, None]  # never, for all-zero
    return int(np.count_nonzero((inside ^ IS_TARGET) @ np.array(MASSES) <= ALPHA))


@functools.lru_cache
def _buckets() -> int:
    return learners.hashed(bits=BITS, epsilon=EPSILON, alpha=0.1, beta=BETA).buckets


# ------------------------------------------------------------------------------------------------------ many concepts


def point_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """PointLearner: labels are consistent, so the gap is the least count of a heavy point, and infinite if there is none."""
    first, counts, heavy, good = _heavy(rng, rows, k, n, _counts("point_learner"))
    least = np.minimum.reduceat(np.where(heavy, counts, 2**30), first)
    return int(np.count_nonzero(good & kept(rng, least, EPSILON / 2, DELTA / 2)))


def histogram_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """A stability histogram of the labelled points: as many as there are points, as labels are consistent."""
    return int(np.count_nonzero(_heavy(rng, rows, k, n, _counts("histogram_learner"))[-1]))


class Counts(NamedTuple):
    """Noisy counts: scale of the noise; counts up to `low` and noisy ones up to `high` are never released."""

    scale: float
    low: float
    high: float


@functools.lru_cache
def _counts(learner: str) -> Counts:
    """dpjax's thresholds, which do not depend on k."""
    given: dict[str, Any] = {"alpha": ALPHA, "beta": BETA} if learner == "point_learner" else {}
    made = getattr(multi, learner)(bits=BITS, k=1, epsilon=EPSILON, delta=DELTA, **given).counts
    return Counts(2 / float(made.epsilon), float(made.low), float(made.high))


def _heavy(rng: np.random.Generator, rows: int, k: int, n: int, limits: Counts) -> tuple[Array, Array, Array, Array]:
    """Of samples with k labels: where each one's distinct points begin, how often these occur, whether they are heavy, and whether the
    k hypotheses (the least heavy point with a 1 in that column, or all-zero) have errors of at most alpha."""
    kind = _draw(rng, rows, n)
    x, y = EXAMPLES[kind], _vectors(k)[kind]
    order = np.argsort(x, axis=1)
    start, counts = _runs(np.take_along_axis(x, order, axis=1))
    row = start // n
    noisy = counts + rng.laplace(0.0, limits.scale, len(counts))
    heavy = (counts > limits.low) & (noisy > limits.high)
    vectors = y[row, order.reshape(-1)[start]]
    vectors[~heavy] = 0
    first = np.searchsorted(row, np.arange(rows))
    named = np.bitwise_or.reduceat(vectors, first, axis=0)  # realizable: only the target itself has a 1
    ones = np.unpackbits(named.view(np.uint8), axis=1, bitorder="little", count=k).astype(np.bool_)
    rare = np.array(MASSES)[targets(k)] <= ALPHA
    return first, counts, heavy, np.asarray((ones | rare[None]).all(axis=1))


@functools.lru_cache
def _vectors(k: int) -> Array:
    """The packed labels of each point."""
    labels = np.zeros((len(POINTS), -(-k // 64) * 64), np.bool_)
    labels[:, :k] = np.arange(len(POINTS))[:, None] == np.array(targets(k))[None]
    return np.packbits(labels, axis=1, bitorder="little").view(np.uint64)


def _check(n: int) -> None:
    within(n=(n, 1, math.inf))


def _check_many(k: int, n: int) -> None:
    within(k=(k, 1, math.inf), n=(n, 1, math.inf))


def _many_rows(k: int, n: int) -> int:
    return fitting(n * (16 + 8 * -(-k // 64)))


PROGRAMS = {
    "learn_points": Program(learn_points, lambda n: fitting(8 * n), _check),
    "points exponential": Program(exponential, lambda n: fitting(8 * n), _check),
    "hashed": Program(hashed, lambda n: fitting(8 * n + 8 * 2 ** _buckets()), _check),
    "point_learner": Program(point_learner, _many_rows, _check_many),
    "histogram_learner": Program(histogram_learner, _many_rows, _check_many),
}
