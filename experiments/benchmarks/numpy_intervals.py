"""The two searches for a length (BNS §3.2) in tuned NumPy, on the samples of `numpy_general`.

A trial draws n labelled examples in order and runs `dpjax.learners.thresholds.intervals` on them: comparisons of W(2^j) + Lap(1/e) with a
bar, A_dist on the best block of either partition, the exponential mechanism on five ends. Like dpjax, it uses that all ones come first:
W(L) is the number of v for which L exceeds the distance between the v-th last one and the v-th zero, which one binary search over v finds,
and only the block of the last one holds both labels. What makes it fast: all trials of a batch search in step, a comparison is one coin
with odds from a table, and `length_search` tries powers of two from the top down, which has the same law (see
`dpjax.learners.thresholds.length_search`). What privacy dictates (the shares of epsilon and delta) is taken from the learner.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.learners import thresholds
from experiments.benchmarks.numpy_driver import LARGEST_BATCH, Program, below, choose, kept, within
from experiments.benchmarks.numpy_general import drawn
from experiments.benchmarks.numpy_trials import ALPHA, DELTA, EPSILON

ENDS = 5  # number of ends of the quarters of a block

Array = NDArray[Any]


@functools.lru_cache(maxsize=8)
def learner(name: str, d: int) -> Any:
    """dpjax's learner for the cell."""
    return getattr(thresholds, name)(bits=d, epsilon=EPSILON, delta=DELTA, alpha=2 * ALPHA)


class Searches:
    """A batch of ordered samples in which all ones come first; searches of all trials in step.

    Attributes:
        piece: the batch that makes the samples, and judges answers.
        starts: the pieces of thresholds of each trial, as in `numpy_general.Batch`.
        ones: how many examples are labelled 1.
        large: P[v + Lap(1/e) >= alpha n/4] for v = 0, ..., n.
    """

    def __init__(self, rng: np.random.Generator, rows: int, d: int, n: int, epsilon: float) -> None:
        self.piece, self.starts, self.ones = drawn(rng, rows, d, n)
        self.rng, self.rows, self.d, self.n = rng, rows, d, n
        self.row = np.arange(rows)
        self.last = self.row * self.starts.shape[1] + self.ones  # where the piece behind the last one begins
        self.most = np.minimum(self.ones, n - self.ones)
        missing = (2 * ALPHA / 4 * n - np.arange(n + 1)) * epsilon
        tail = np.exp(-np.abs(missing)) / 2
        self.large = np.where(missing > 0, tail, 1 - tail)

    def power(self, exponent: Array) -> Array:
        """2^exponent."""
        one: Any = self.piece.dtype(1)
        return np.asarray(one << exponent.astype(self.piece.dtype))

    def is_large(self, exponent: Array) -> Array:
        """Whether W(2^exponent) passes for large, by a fresh coin for each trial."""
        flat, length, found = self.starts.reshape(-1), self.power(exponent), np.zeros(self.rows, np.int64)
        step = 1 << (self.n // 2).bit_length()
        while step := step >> 1:
            v = np.minimum(found + (step - 1), np.maximum(self.most - 1, 0))
            fits = flat[self.last + 1 + v] - flat[self.last - v] < length
            found += step * (fits & (found + step <= self.most))
        return np.asarray(self.rng.random(self.rows) < self.large[found])

    def good(self, exponent: Array, budget: dict[str, Any]) -> int:
        """How many trials succeed if their searches ended with these exponents."""
        log_size = np.minimum(exponent + 1, self.d)
        size, end = self.power(log_size), self.piece.dtype(1 << self.d)
        begin = np.stack([np.zeros_like(size), self.power(exponent)])
        point = self.starts.reshape(-1)[self.last] - 1  # the last one
        shift = log_size.astype(size.dtype)
        start = np.where(point >= begin, begin + ((point - begin) >> shift << shift), begin)
        first, stop = self._before(np.stack([start, np.minimum(start + size, end)]))
        balance = np.maximum(np.minimum(self.ones - first, stop - self.ones), 0)
        balance *= (self.ones > 0) & (point >= begin)
        start = np.where(balance > 0, start, begin)
        gap = np.where(exponent + 1 >= self.d, np.inf, balance)
        is_kept = kept(self.rng, gap, budget["stability_epsilon"], budget["stability_delta"]) & (begin < end)
        start = np.where(is_kept[0], start[0], start[1])
        quarter = self.power(np.maximum(log_size - 2, 0))
        ends = np.minimum(start + np.arange(ENDS, dtype=start.dtype)[:, None] * quarter, end)
        correct = -np.abs(self._before(ends) - self.ones).T.astype(float)  # minus that of the best threshold
        chosen = choose(self.rng, np.exp(budget["choice_epsilon"] / 2 * (correct - correct.max(axis=1, keepdims=True))))
        return int(np.count_nonzero(self.piece.good(ends[chosen, self.row]) & is_kept.any(axis=0)))

    def _before(self, positions: Array) -> Array:
        """How many examples lie below each position; positions of shape (..., rows)."""
        return below(self.starts, positions + self.piece.dtype(1)) - 1


def length_search(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The least power of two that passes for large, from the top down; see the module."""
    budget = learner("length_search", d).budget()
    searches = Searches(rng, rows, d, n, budget["comparison_epsilon"])
    exponent, going = np.full(rows, d), np.ones(rows, np.bool_)
    for lower in range(d)[::-1]:
        going &= searches.is_large(np.full(rows, lower))
        exponent[going] = lower
    return searches.good(exponent, budget)


def power_search(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """Binary search among the powers of two."""
    budget = learner("power_search", d).budget()
    searches = Searches(rng, rows, d, n, budget["comparison_epsilon"])
    low, high = np.zeros(rows, np.int64), np.full(rows, d)
    for _ in range(d.bit_length()):
        middle, is_open = (low + high) // 2, low < high
        left = searches.is_large(middle)
        low, high = np.where(is_open & ~left, middle + 1, low), np.where(is_open & left, middle, high)
    return searches.good(low, budget)


def _check(d: int, n: int) -> None:
    within(d=(d, 6, 63), n=(n, 1, 2**24))


PROGRAMS = {
    "length_search": Program(length_search, lambda d, n: LARGEST_BATCH, _check),
    "power_search": Program(power_search, lambda d, n: LARGEST_BATCH, _check),
}
