"""The trials of `numpy_trials` once more, by the algorithm that `dpjax` runs: like for like, and tuned.

`numpy_trials` exploits one distribution down to its last symmetry. Here the learner is handed a labelled sample and may use only that it
is realizable: the number Q of correctly labelled examples rises up to one piece and falls from there on. (`dpjax` does not use that.)
A trial draws all n examples in order (the partial sums of exponential spacings over their sum: Renyi), makes Q a piecewise constant
function of the threshold with n + 1 pieces, and learns from the pieces: L(j), q(j), k, the best block of both partitions, A_dist twice
and the exponential mechanism on the released pieces, all as in
`dpjax.optimizers.quasi_concave.recursion` at depth 2 with the printed constants.

What makes it fast: batches of trials whose arrays stay in cache; buffers allocated once; float32 where digits do not matter; sums of
integers instead of floats where each waits for the one before; 32-bit positions for d <= 31; a run of thresholds with at most e errors
is the e-th piece left of the peak to the e-th right of it, which is copied in one piece; binary searches of all trials in step.

Rounding: spacings are cut to about 2^-20 of their mean, distances from the target and weights to 24 binary digits. For d = 64 the
thresholds 2^64 - 1 and 2^64 are left out (their positions would need 65 bits): that is 2^-63 of the range.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.numpy_driver import LARGEST_BATCH, Program, below, choose, fitting, spacings, tally
from experiments.benchmarks.numpy_driver import within as require
from experiments.benchmarks.numpy_trials import (
    EPSILON,
    INNER_ALPHA,
    SHARE,
    STABILITY_THRESHOLD,
    Cell,
)

LANES = 128  # a draw among many weights adds them up in this many lanes, draws a lane, then one of it

Array = NDArray[Any]


class Constants(NamedTuple):
    """Constants of RecConcave: epsilon of each mechanism, alpha, A_dist's test gap + Lap(scale) >= threshold; the promise r is rate n."""

    share: float
    alpha: float
    scale: float
    threshold: float
    rate: float


PRINTED = Constants(share=SHARE, alpha=INNER_ALPHA, scale=1 / SHARE, threshold=STABILITY_THRESHOLD, rate=1.0)


class Batch:
    """Labelled samples of a batch and Q, the number of correct labels, on {0, ..., 2^d}; buffers are reused.

    starts[i, p] is where piece p of trial i begins; after the n + 1 pieces come empty ones. correct[i, p] is Q there.
    """

    two_sided = True  # half of the domain lies on either side of the target

    def __init__(self, cell: Cell, rows: int) -> None:
        self.cell, self.rows, self.n = cell, rows, cell.n
        self.dtype = np.uint32 if cell.d <= 31 else np.uint64
        self.signed = np.int32 if cell.d <= 31 else np.int64
        self.end = self.dtype(min(2**cell.d + 1, 2**64 - 1))
        self.target = self.dtype(2**cell.octaves)
        self.width = -(-(self.n + 1) // LANES) * LANES
        self.slack = self.n + 1  # windows around a peak may leave its row
        self.flat = np.zeros(2 * self.slack + rows * (self.width + 1), self.dtype)
        self.starts = self.flat[self.slack : -self.slack].reshape(rows, self.width + 1)
        self.starts[:, self.n + 1 :] = self.end
        self.row = np.arange(rows)
        self.base = self.row * (self.width + 1)
        self.units = np.empty((rows, self.n + 1), np.int32)
        self.floats = np.empty((rows, self.n), np.float32)
        self.signs = np.empty((rows, self.n), np.uint32)
        self.labels = np.empty((rows, self.n), np.bool_)
        self.steps = np.empty((rows, self.n + 1), np.int32)
        self.correct = np.empty((rows, self.n + 1), np.int32)
        self.clipped = np.empty((rows, self.width + 1), self.dtype)
        self.lengths = np.empty((rows, self.width), self.dtype)
        self.weights = np.zeros((rows, self.width), np.float32)
        self.scores = np.empty((rows, self.n + 1), np.float32)

    def draw(self, rng: np.random.Generator) -> None:
        """New samples, from x to Q."""
        inner = self.starts[:, 1 : self.n + 1]
        inner.view(self.signed)[...] = self._offsets(rng)  # cut towards 0
        self._pieces(inner)
        self.peak = self.correct.argmax(axis=1)
        self.best = self.correct[self.row, self.peak]

    def _sums(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """All partial sums of n + 1 spacings but the last, and the whole sum."""
        self.units[...] = spacings(rng, self.rows, self.n)
        sums = np.cumsum(self.units, axis=1, dtype=np.int32, out=self.units)
        return sums[:, :-1], sums[:, -1:]

    def _offsets(self, rng: np.random.Generator) -> Array:
        """Signed distances from the target, in order."""
        position, total = self._sums(rng)
        # From the middle of the circle: U ln 2, negative on the left.
        position -= total >> 1
        offset = self.floats
        offset[...] = position
        offset *= ((1 - 2.0**-21) * 2 * math.log(2) * self.cell.octaves / total).astype(
            np.float32
        )  # kept below 2^octaves
        bits = offset.view(np.uint32)
        np.bitwise_and(bits, np.uint32(1 << 31), out=self.signs)
        np.abs(offset, out=offset)
        np.exp(offset, out=offset)  # several times faster than exp2
        np.bitwise_or(bits, self.signs, out=bits)
        return offset

    def _pieces(self, x: Array) -> None:
        """From offsets, in place, to the pieces that begin behind the points, and Q there: up after a one, down after a zero."""
        np.add(x, self.target, out=x)
        np.less(x, self.target, out=self.labels)
        np.add(x, self.dtype(1), out=x)
        ones = tally(self.labels)
        self.steps[:, 0] = self.n - ones
        moves = self.steps[:, 1:]
        moves[...] = self.labels
        moves <<= 1
        moves -= 1
        np.cumsum(self.steps, axis=1, dtype=np.int32, out=self.correct)

    def value(self, piece: Array) -> Array:
        """Q on one piece of each trial (several rows of them, if need be)."""
        return self.correct[self.row, piece]

    def below(self, positions: Array) -> Array:
        """How many pieces begin below each position; positions of shape (queries, rows)."""
        return below(self.starts, positions)

    def point(self, rng: np.random.Generator, epsilon: float, within: tuple[Array, Array] | None = None) -> Array:
        """The exponential mechanism on {low, ..., high - 1} = within (default: everything)."""
        starts = self.starts
        if within:
            low, high = within
            starts = np.maximum(starts, low[:, None], out=self.clipped)
            np.minimum(starts, high[:, None], out=starts)
        np.subtract(starts[:, 1:], starts[:, :-1], out=self.lengths)
        short = self.two_sided and self.peak.min() > 0 and self.peak.max() < self.n
        self.weights[...] = self.lengths.view(self.signed) if short else self.lengths  # the sign bit costs time
        self.scores[...] = self.correct
        self.scores -= self.best[:, None].astype(np.float32)
        self.scores *= np.float32(epsilon / 2)
        np.exp(self.scores, out=self.scores)
        self.weights[:, : self.n + 1] *= self.scores
        lanes = self.weights.reshape(self.rows, -1, LANES)
        lane = choose(rng, lanes.sum(axis=1))
        piece = lane + LANES * choose(rng, lanes[self.row, :, lane])
        inside = rng.random(self.rows) * self.lengths[self.row, piece]
        return np.asarray(starts[self.row, piece] + inside.astype(self.dtype))

    def good(self, threshold: Array) -> Array:
        """Whether the population error, log2(rank) / (2 octaves), is at most alpha: ranks up to w are T + 1 - w to T + w."""
        w = self.dtype(self.cell.width)
        return np.asarray(threshold - (self.target + self.dtype(1) - w) < self.dtype(2) * w)


def exponential(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The exponential mechanism over all thresholds."""
    batch = _batch(rows, d, n)
    batch.draw(rng)
    return int(np.count_nonzero(batch.good(batch.point(rng, EPSILON))))


def rec_concave(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """RecConcave (Beimel, Nissim and Stemmer, Figure 5)."""
    batch = _batch(rows, d, n)
    batch.draw(rng)
    point, found = released(rng, batch, PRINTED)
    return int(np.count_nonzero(batch.good(point) & found))


def binary_search(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """Noisy binary search: right at a midpoint if D + Lap(2/epsilon_0) > 0, D = #{ones at x >= mid} - #{zeros at x <= mid}.

    All trials search in step, d + 1 midpoints each.
    """
    piece, starts, ones = drawn(rng, rows, d, n)
    odds = np.exp(-EPSILON / (d + 1) / 2 * np.arange(n + 1)) / 2  # P[Lap(2/epsilon_0) > |D|]
    one: Any = piece.dtype(1)
    after_ones = starts[np.arange(rows), ones]
    low, high = np.zeros(rows, piece.dtype), np.full(rows, piece.end - one)
    middle = np.full(rows, piece.target)  # that of {0, ..., 2^d}, of which 2^64 does not fit
    for _ in range(d + 1):
        searching = low < high
        # Below the last one D counts ones from here on, else zeros up to here: one search either way.
        few = middle < after_ones
        difference = ones - (below(starts, middle + np.where(few, one, one + one)) - 1)
        odd = odds[np.abs(difference)]
        right = rng.random(rows) < np.where(difference > 0, 1 - odd, odd)
        low = np.where(searching & right, middle + one, low)
        high = np.where(searching & ~right, middle, high)
        middle = low + ((high - low) >> one)
    return int(np.count_nonzero(piece.good(low)))


def drawn(rng: np.random.Generator, rows: int, d: int, n: int) -> tuple[Batch, Array, Array]:
    """(a batch that can judge, the pieces and the number of ones of many samples), drawn in pieces that stay in cache."""
    piece = _batch(min(rows, fitting(position_bytes(d, n))), d, n)
    starts = np.empty((-(-rows // piece.rows), *piece.starts.shape), piece.dtype)
    ones = np.empty(starts.shape[:2], np.int64)
    for i in range(len(starts)):
        piece.draw(rng)
        starts[i], ones[i] = piece.starts, n - piece.correct[:, 0]
    return piece, starts.reshape(-1, starts.shape[-1])[:rows], ones.reshape(-1)[:rows]


def released(rng: np.random.Generator, batch: Batch, constants: Constants) -> tuple[Array, Array]:
    """(the point, whether there is one) of RecConcave at depth 2."""
    length = _length(rng, batch, _best_windows(batch), constants)
    low, high, found = _blocks(rng, batch, length, constants)
    return batch.point(rng, constants.share, (low, high)), found


def _best_windows(batch: Batch) -> Array:
    """L(j), j = 0, ..., d: the best Q that a run of 2^j thresholds keeps up; shape (rows, d + 1).

    The run {Q >= best - e} begins with piece peak - e and ends with piece peak + e.
    """
    d, n, peak = batch.cell.d, batch.n, batch.peak
    levels = int(max(peak.max(), n - peak.min())) + 1
    windows = np.lib.stride_tricks.as_strided(
        batch.flat, (batch.flat.size - levels + 1, levels), 2 * batch.flat.strides, writeable=False
    )
    centre = batch.slack + batch.base + peak
    first, stop = windows[centre - levels + 1][:, ::-1], windows[centre + 1]
    error = np.arange(levels)
    few, many = int(peak.min()), int(n - peak.max())
    first[:, few:][error[few:] > peak[:, None]] = 0
    stop[:, many:][error[many:] >= n - peak[:, None]] = batch.end
    stop -= first
    stop >>= batch.dtype(1)  # makes room for a sign
    halves = stop.view(batch.signed).astype(np.float32)
    halves += np.float32(0.5)  # a run of one point counts as half of one
    digits = halves.view(np.int32)
    digits >>= 23
    # Runs grow with e, so the last one of so many digits is where digits change.
    change = np.zeros(digits.shape, np.bool_)
    np.not_equal(digits[:, 1:], digits[:, :-1], out=change[:, :-1])
    row, last = np.divmod(np.flatnonzero(change), levels)
    errors = np.zeros((batch.rows, d + 3), np.float32)
    errors[row, digits[row, last] - 125] = last + 1
    np.maximum.accumulate(errors, axis=1, out=errors)
    reached = batch.best[:, None].astype(np.float32) - errors[:, : d + 1]
    reached[:, d] = np.minimum(batch.correct[:, 0], batch.correct[:, n])  # 2^d of 2^d + 1 thresholds
    return np.asarray(reached)


def _length(rng: np.random.Generator, batch: Batch, windows: Array, constants: Constants) -> Array:
    """The recursion's answer k: the exponential mechanism on q(j) = min(L(j) - (1 - alpha) r, r - L(j + 1)), j = 0, ..., d."""
    promise = constants.rate * batch.n
    following = np.empty_like(windows)
    following[:, :-1] = windows[:, 1:]
    following[:, -1] = np.minimum(0, windows[:, -1])
    quality = np.minimum(windows - np.float32((1 - constants.alpha) * promise), np.float32(promise) - following)
    quality -= quality.max(axis=1, keepdims=True)
    quality *= np.float32(constants.share / 2)
    return choose(rng, np.exp(quality, out=quality))


def _blocks(rng: np.random.Generator, batch: Batch, length: Array, constants: Constants) -> tuple[Array, Array, Array]:
    """(low, high, whether there is one) of what A_dist releases of the partitions into blocks of 8 2^k, from 0 and from 4 2^k on.

    Both best blocks hold the peak, or the begin of the shifted partition if that comes after it: they overlap and make one interval.
    """
    d, dtype = batch.cell.d, batch.dtype
    one: Any = dtype(1)
    largest = min(d, 63)
    shift = np.minimum(length + 3, largest).astype(dtype)
    whole = length + 3 > largest
    exists = np.stack([length >= 0, length + 2 <= d])
    half = np.where(length + 2 <= largest, one << np.minimum(length + 2, largest).astype(dtype), batch.end - one)
    begin: Array = np.stack([np.zeros_like(half), np.where(exists[1], half, 0)]).astype(dtype)
    winner = np.maximum(batch.peak, batch.below(begin + one) - 1)
    top = np.maximum(batch.starts[batch.row, winner], begin)
    low = np.where(whole, begin, begin + ((top - begin) >> shift << shift))
    room = batch.end - low
    high = low + np.where(whole, room, np.minimum(one << shift, room))

    # Q falls off on both sides: the second best block is seen right before this one, or right behind it.
    before, behind = batch.below(np.stack([low, np.minimum(high, batch.end - one) + one])) - 1
    second = np.where(low > begin, batch.value(np.maximum(before, 0)), -np.inf)
    np.maximum(second, batch.value(np.minimum(behind, batch.n)), out=second, where=high < batch.end)
    gap = batch.value(winner) - second
    kept = exists & (gap + rng.laplace(0.0, constants.scale, gap.shape) >= constants.threshold)
    low = np.where(kept, low, batch.end).min(axis=0)
    high = np.where(kept, high, 0).max(axis=0).astype(dtype)
    return low, np.maximum(low, high), np.asarray(kept.any(axis=0))


def position_bytes(d: int, n: int) -> int:
    """The number of bytes of a trial's positions."""
    return (4 if d <= 31 else 8) * n


@functools.lru_cache(maxsize=4)
def _batch(rows: int, d: int, n: int) -> Batch:
    """Buffers for `rows` trials; those of the last few shapes are kept."""
    return Batch(Cell(d, n), rows)


def _check(d: int, n: int) -> None:
    require(d=(d, 6, 64), n=(n, 1, math.inf))


PROGRAMS = {
    "exponential": Program(exponential, lambda d, n: fitting(position_bytes(d, n)), _check),
    "rec_concave": Program(rec_concave, lambda d, n: fitting(position_bytes(d, n)), _check),
    "binary_search": Program(binary_search, lambda d, n: LARGEST_BATCH, _check),
}
