"""Learners of points in tuned NumPy, one concept and many, on seven points with masses around alpha.

A general program learns from points and labels of any kind, as dpjax's learners do: equal examples are brought together by a sort of all
samples of a batch, rows in cache. Examples with k packed labels are sorted by a 64-bit mixture of their words, and neighbours are
compared in full. A *specialised* program knows more than a learner may: that labels are realizable, so that only the points of examples
need be examined, and ones are the target's.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpjax import bounds
from dpjax.learners import points as learners
from dpjax.multi import points as multi
from experiments.benchmarks.numpy_driver import Program, choose, fitting, kept, within, words
from experiments.benchmarks.numpy_trials import DELTA, EPSILON

BITS = 64
POINTS = (3, 5, 2**20, 2**40 + 1, 2**50, 2**60, 2**63)
MASSES = (0.3, 0.08, 0.2, 0.15, 0.12, 0.1, 0.05)
TARGET = 3  # the place of a single concept's point among them
ALPHA, BETA = 0.11, 0.1  # no mass is alpha exactly

Array = NDArray[Any]

EXAMPLES = np.array(POINTS, np.uint64)
ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], np.uint64)  # mix well (Steele, Lea, Flood 2014)
FAR = 2**30  # above any count
IS_TARGET = np.arange(len(POINTS)) == TARGET


def targets(k: int) -> list[int]:
    """The places of the points that are the k concepts, spread over all."""
    return [len(POINTS) * (2 * j + 1) // (2 * k) % len(POINTS) for j in range(k)]


def _draw(rng: np.random.Generator, rows: int, n: int) -> Array:
    """The place of each example's point among the points."""
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
    """LearnPoints: the ones alone, sorted; bottom becomes all-zero."""
    kind = _draw(rng, rows, n)
    x, y = EXAMPLES[kind], IS_TARGET[kind]
    size = np.count_nonzero(y, axis=1)
    ones = np.zeros((rows, max(1, int(size.max()))), x.dtype)
    there = np.arange(ones.shape[1]) < size[:, None]
    ones[there] = x[y]
    # The space behind a row's own ones is filled with the first of them, and subtracted from its count.
    first = ones[:, 0].copy()
    ones = np.sort(np.where(there, ones, first[:, None]), axis=1)
    start, count = _runs(ones)
    row, point = start // ones.shape[1], ones.reshape(-1)[start]
    count -= np.where(point == first[row], ones.shape[1] - size[row], 0)
    begin = np.searchsorted(row, np.arange(rows))
    best = np.maximum.reduceat(count, begin)
    leads = count == best[row]
    second = np.maximum.reduceat(np.where(leads, 0, count), begin)
    second = np.where(np.add.reduceat(leads, begin, dtype=np.int64) > 1, best, second)
    leader = np.minimum.reduceat(np.where(leads, point, np.iinfo(point.dtype).max), begin)
    found = (best > 0) & (leader == EXAMPLES[TARGET])
    return int(np.count_nonzero(found & kept(rng, best - second, EPSILON, DELTA)))


def exponential(rng: np.random.Generator, rows: int, n: int) -> int:
    """The exponential mechanism over all points: those not seen err on all ones."""
    kind = _draw(rng, rows, n)
    x, y = EXAMPLES[kind], IS_TARGET[kind]
    order = np.argsort(x, axis=1)
    x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
    start, count = _runs(x)
    row, point = start // n, x.reshape(-1)[start]
    ones = np.add.reduceat(y.reshape(-1), start, dtype=np.int64)
    begin = np.searchsorted(row, np.arange(rows))
    all_ones = np.add.reduceat(ones, begin)
    wrong = all_ones[row] + count - 2 * ones
    least = np.minimum(np.minimum.reduceat(wrong, begin), all_ones)
    weight = np.exp(-EPSILON / 2 * (wrong - least[row]))
    seen = np.diff(begin, append=len(start))
    unseen = (2.0**BITS - seen) * np.exp(-EPSILON / 2 * (all_ones - least))
    target = np.add.reduceat(np.where(point == EXAMPLES[TARGET], weight, 0.0), begin)  # unseen: 2^-64 of the rest
    return int(np.count_nonzero(rng.random(rows) * (np.add.reduceat(weight, begin) + unseen) < target))


def specialised_learn_points(rng: np.random.Generator, rows: int, n: int) -> int:
    """LearnPoints: all ones are the target's, so the gap is their number; bottom becomes all-zero."""
    x = EXAMPLES[_draw(rng, rows, n)]
    ones = np.count_nonzero(x == EXAMPLES[TARGET], axis=1)
    return int(np.count_nonzero((ones > 0) & kept(rng, ones, EPSILON, DELTA)))


def specialised_exponential(rng: np.random.Generator, rows: int, n: int) -> int:
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


class Items(NamedTuple):
    """What may be heavy, trial by trial, points increasing: how often each item and its two most frequent vectors occur.

    Attributes:
        trial, point, times, first, second: one number for each item.
        vector: the most frequent labels, packed.
        begin: where each trial's items begin.
    """

    trial: Array
    point: Array
    times: Array
    first: Array
    second: Array
    vector: Array
    begin: Array


def point_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """PointLearner: A_dist on the best vectors of the heavy points."""
    items, heavy = _noisy(rng, _by_point(*_labelled(rng, rows, k, n)), _counts("point_learner"))
    first, second = np.where(heavy, items.first, FAR), np.where(heavy, items.second, -FAR)
    best = np.minimum.reduceat(first, items.begin)
    place = np.arange(len(first))
    lowest = np.minimum.reduceat(np.where(first == best[items.trial], place, len(first)), items.begin)
    next_best = np.minimum.reduceat(np.where(place == lowest[items.trial], FAR, first), items.begin)
    others = np.where(place == lowest[items.trial], next_best[items.trial], best[items.trial])
    runner_up = np.maximum.reduceat(np.minimum(second, others), items.begin)
    gap = np.where(np.logical_or.reduceat(heavy, items.begin), best - runner_up, FAR)
    return int(np.count_nonzero(_right(items, heavy, k) & kept(rng, gap, EPSILON / 2, DELTA / 2)))


def histogram_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """A stability histogram of the labelled points."""
    items, heavy = _noisy(rng, _labelled_points(*_labelled(rng, rows, k, n)), _counts("histogram_learner"))
    return int(np.count_nonzero(_right(items, heavy, k)))


def sparse_histogram_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """A histogram of all labelled points, with two-sided geometric noise, and with pairs that do not occur in the data."""
    items, threshold, odds = (
        _labelled_points(*_labelled(rng, rows, k, n)),
        sparse_threshold(k),
        -math.expm1(-EPSILON / 2),
    )
    noise = np.subtract(*rng.geometric(odds, (2, len(items.times))))
    heavy = items.times + noise >= threshold
    strangers = rng.poisson(bounds.sparse_arrivals(BITS + k, EPSILON, threshold), rows)
    if strangers.any():
        items, heavy = _with_strangers(rng, items, heavy, np.repeat(np.arange(rows), strangers), k)
    return int(np.count_nonzero(_right(items, heavy, k)))


def sparse_threshold(k: int) -> int:
    """The threshold at which strangers, the pairs that do not occur in the data, have a small part of beta."""
    return int(bounds.sparse_threshold(BITS + k, EPSILON, BETA / 16))


def _with_strangers(rng: np.random.Generator, items: Items, heavy: Array, trial: Array, k: int) -> tuple[Items, Array]:
    """The items and, for each of these trials, a heavy pair that is drawn from all pairs."""
    point = rng.integers(0, 2**64 - 1, len(trial), np.uint64, endpoint=True)
    vector = rng.integers(0, 2**64 - 1, (len(trial), items.vector.shape[1]), np.uint64, endpoint=True)
    vector &= _packed(np.ones((1, k), np.bool_))
    nothing = np.zeros(len(trial), items.times.dtype)
    more = Items(trial, point, nothing, nothing, nothing, vector, items.begin)
    both = [np.concatenate(parts) for parts in zip(items[:-1], more[:-1], strict=True)]
    order = np.lexsort((both[1], both[0]))
    begin = np.searchsorted(both[0][order], np.arange(len(items.begin)))
    ordered = Items._make([*(part[order] for part in both), begin])
    return ordered, np.concatenate([heavy, np.ones(len(trial), np.bool_)])[order]


def _labelled(rng: np.random.Generator, rows: int, k: int, n: int) -> tuple[Array, Array]:
    """Points (rows, n) and packed labels (rows, n, words)."""
    kind = _draw(rng, rows, n)
    return EXAMPLES[kind], _vectors(k)[kind]


def _labelled_points(x: Array, y: Array) -> Items:
    """The distinct labelled points."""
    mixed = x * ODD[0]
    for word in range(y.shape[2]):
        mixed ^= mixed >> np.uint64(29)
        mixed += y[:, :, word]
        mixed *= ODD[1]
    order = np.argsort(mixed, axis=1)
    mixed = np.take_along_axis(mixed, order, axis=1)
    flat = order + x.shape[1] * np.arange(len(x))[:, None]
    x, y = x.reshape(-1)[flat], y.reshape(-1, y.shape[2])[flat]
    same = (x[:, 1:] == x[:, :-1]) & (y[:, 1:] == y[:, :-1]).all(axis=2)
    if not (same == (mixed[:, 1:] == mixed[:, :-1])).all():
        raise ArithmeticError("different examples have the same mixture: choose other factors")
    start, count = _runs(mixed)
    trial, point, vector = start // x.shape[1], x.reshape(-1)[start], y.reshape(-1, y.shape[2])[start]
    ranked = np.lexsort((*vector.T[::-1], -count, point, trial))
    trial, count = trial[ranked], count[ranked]
    begin = np.searchsorted(trial, np.arange(len(x)))
    return Items(trial, point[ranked], count, count, 0 * count, vector[ranked], begin)


def _by_point(x: Array, y: Array) -> Items:
    """The distinct points with their most frequent vectors."""
    fine = _labelled_points(x, y)
    new = np.ones(len(fine.trial), np.bool_)
    new[1:] = (fine.trial[1:] != fine.trial[:-1]) | (fine.point[1:] != fine.point[:-1])
    start = np.flatnonzero(new)
    has_second = np.diff(start, append=len(new)) > 1
    second = np.where(has_second, fine.times[np.minimum(start + 1, len(new) - 1)], 0)
    trial, first = fine.trial[start], fine.times[start]
    begin = np.searchsorted(trial, np.arange(len(x)))
    return Items(trial, fine.point[start], np.add.reduceat(fine.times, start), first, second, fine.vector[start], begin)


def _noisy(rng: np.random.Generator, items: Items, limits: "Counts") -> tuple[Items, Array]:
    """Which items are heavy."""
    noisy = items.times + rng.laplace(0.0, limits.scale, len(items.times))
    return items, (items.times > limits.low) & (noisy > limits.high)


def _right(items: Items, heavy: Array, k: int) -> Array:
    """Whether the k hypotheses (the first heavy point with a 1 in that column, or all-zero) have errors of at most alpha.

    As no two masses add up to so little, a good hypothesis is all-zero and its target rare, or it is the target itself.
    """
    vectors = np.where(heavy[:, None], items.vector, np.uint64(0))
    at = np.minimum(np.searchsorted(EXAMPLES, items.point), len(EXAMPLES) - 1)
    rare = np.bitwise_or.reduce(_vectors(k)[np.array(MASSES) <= ALPHA])  # whom no point of small mass makes wrong
    own = np.where((EXAMPLES[at] == items.point)[:, None], _vectors(k)[at], rare)  # whose target it is
    end = np.append(items.begin[1:], len(heavy))
    taken = np.zeros((len(items.begin), vectors.shape[1]), np.uint64)
    good = np.ones(len(taken), np.bool_)
    for rank in range(int((end - items.begin).max())):
        at = np.minimum(items.begin + rank, end - 1)  # the last one again has nothing new
        good &= ~(vectors[at] & ~taken & ~own[at]).any(axis=1)
        taken |= vectors[at]
    return np.asarray(good & ~(_vectors(k)[np.array(MASSES) > ALPHA] & ~taken[:, None]).any(axis=(1, 2)))


def specialised_point_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """PointLearner: labels are consistent, so the gap is the least count of a heavy point, and infinite if there is none."""
    first, counts, heavy, good = _heavy(rng, rows, k, n, _counts("point_learner"))
    least = np.minimum.reduceat(np.where(heavy, counts, FAR), first)
    return int(np.count_nonzero(good & kept(rng, least, EPSILON / 2, DELTA / 2)))


def specialised_histogram_learner(rng: np.random.Generator, rows: int, k: int, n: int) -> int:
    """A stability histogram of the labelled points, which are as many as the points, as labels are consistent."""
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
    """For samples with k labels: where each one's distinct points begin, how often these occur, whether they are heavy, and whether the
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
    return _packed(np.arange(len(POINTS))[:, None] == np.array(targets(k))[None])


def _packed(labels: Array) -> Array:
    """Rows of labels packed into 64-bit words."""
    return np.packbits(np.pad(labels, ((0, 0), (0, -labels.shape[1] % 64))), axis=1, bitorder="little").view(np.uint64)


def _check(n: int) -> None:
    within(n=(n, 1, math.inf))


def _check_many(k: int, n: int) -> None:
    within(k=(k, 1, math.inf), n=(n, 1, math.inf))


def _many_rows(k: int, n: int) -> int:
    return fitting(n * (16 + 8 * -(-k // 64)))


PROGRAMS = {
    "learn_points": Program(learn_points, lambda n: fitting(8 * n), _check),
    "specialised learn_points": Program(specialised_learn_points, lambda n: fitting(8 * n), _check),
    "points exponential": Program(exponential, lambda n: fitting(8 * n), _check),
    "specialised points exponential": Program(specialised_exponential, lambda n: fitting(8 * n), _check),
    "hashed": Program(hashed, lambda n: fitting(8 * n + 8 * 2 ** _buckets()), _check),
    "point_learner": Program(point_learner, _many_rows, _check_many),
    "specialised point_learner": Program(specialised_point_learner, _many_rows, _check_many),
    "histogram_learner": Program(histogram_learner, _many_rows, _check_many),
    "sparse_histogram_learner": Program(sparse_histogram_learner, _many_rows, _check_many),
    "specialised histogram_learner": Program(specialised_histogram_learner, _many_rows, _check_many),
}
