"""The trials of `numpy_trials` once more, by the algorithm that `dpjax` runs: like for like, and tuned.

`numpy_trials` exploits one distribution down to its last symmetry. Here the learner is handed a labelled sample and may use only that it
is realizable: the number Q of correctly labelled examples rises up to one piece and falls from there on. (`dpjax` does not use that.)
A trial draws all n examples in order (the partial sums of exponential spacings over their sum: Renyi), makes Q a piecewise constant
function of the threshold with n + 1 pieces, and learns from the pieces: L(j), q(j), k, the best block of both partitions, A_dist twice
and the exponential mechanism on the released pieces, all as in `dpjax.optimizers.rec_concave` at depth 2 with the printed constants.

What makes it fast: batches of trials whose arrays stay in cache; buffers allocated once; float32 where digits do not matter; sums of
integers instead of floats where each waits for the one before; 32-bit positions for d <= 31; a run of thresholds with at most e errors
is the e-th piece left of the peak to the e-th right of it, which is copied in one piece; binary searches of all trials in step.

Rounding: spacings are cut to about 2^-20 of their mean, distances from the target and weights to 24 binary digits. For d = 64 the
thresholds 2^64 - 1 and 2^64 are left out (their positions would need 65 bits): that is 2^-63 of the range.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.benchmarks.numpy_trials import (
    EPSILON,
    INNER_ALPHA,
    LARGE_BLOCK,
    SHARE,
    STABILITY_THRESHOLD,
    Cell,
    _count,
    _exponentials,
    _words,
)

BATCH_BYTES = 1 << 20  # positions of a batch
LARGEST_BATCH = 1 << 10
LANES = 128  # a draw among many weights adds them up in so many lanes, draws a lane, then one of the lane

Array = NDArray[Any]


class Batch:
    """Labelled samples of a batch and Q, number of correct labels, on {0, ..., 2^d}; buffers are used again and again.

    starts[i, p] is where piece p of trial i begins; after the n + 1 pieces come empty ones. correct[i, p] is Q there.
    """

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
        n = self.n
        limit = min(n + 1 + math.sqrt(140 * (n + 1)) + 70, 23 * (n + 1))  # passed with probability below exp(-70)
        spacings = _exponentials(_words(rng, self.rows, n + 1))
        spacings *= np.float32((2**31 - 2**8) / limit)
        self.units[...] = spacings
        sums = np.cumsum(self.units, axis=1, dtype=np.int32, out=self.units)
        total = sums[:, -1:]
        # From the middle of the circle: U ln 2, negative on the left.
        position = np.subtract(sums[:, :-1], total >> 1, out=sums[:, :-1])
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
        inner = self.starts[:, 1 : n + 1]
        inner.view(self.signed)[...] = offset  # cut towards the target
        np.add(inner, self.target, out=inner)  # x
        np.less(inner, self.target, out=self.labels)
        np.add(inner, self.dtype(1), out=inner)
        self._walk()

    def _walk(self) -> None:
        """Q starts at the number of zeros, moves up right after a one and down right after a zero."""
        ones = _count(self.labels)
        self.steps[:, 0] = self.n - ones
        moves = self.steps[:, 1:]
        moves[...] = self.labels
        moves <<= 1
        moves -= 1
        np.cumsum(self.steps, axis=1, dtype=np.int32, out=self.correct)
        self.peak = self.correct.argmax(axis=1)
        self.best = self.correct[self.row, self.peak]

    def value(self, piece: Array) -> Array:
        """Q on one piece of each trial (several rows of them, if need be)."""
        return self.correct[self.row, piece]

    def below(self, positions: Array) -> Array:
        """How many pieces begin below each position; positions of shape (queries, rows)."""
        found = np.broadcast_to(self.base, positions.shape)
        starts, past = self.starts.reshape(-1), self.base + self.width  # a row ends with at least one `end`
        step = 1 << (self.n + 1).bit_length()
        while step := step >> 1:
            found = found + step * (starts[np.minimum(found + (step - 1), past)] < positions)
        return np.asarray(found - self.base)

    def point(self, rng: np.random.Generator, epsilon: float, within: tuple[Array, Array] | None = None) -> Array:
        """The exponential mechanism on {low, ..., high - 1} = within (default: everything)."""
        starts = self.starts
        if within:
            low, high = within
            starts = np.maximum(starts, low[:, None], out=self.clipped)
            np.minimum(starts, high[:, None], out=starts)
        np.subtract(starts[:, 1:], starts[:, :-1], out=self.lengths)
        both = self.peak.min() > 0 and self.peak.max() < self.n
        self.weights[...] = self.lengths.view(self.signed) if both else self.lengths  # the sign bit costs time
        self.scores[...] = self.correct
        self.scores -= self.best[:, None].astype(np.float32)
        self.scores *= np.float32(epsilon / 2)
        np.exp(self.scores, out=self.scores)
        self.weights[:, : self.n + 1] *= self.scores
        lanes = self.weights.reshape(self.rows, -1, LANES)
        lane = _choose(rng, lanes.sum(axis=1))
        piece = lane + LANES * _choose(rng, lanes[self.row, :, lane])
        inside = rng.random(self.rows) * self.lengths[self.row, piece]
        return np.asarray(starts[self.row, piece] + inside.astype(self.dtype))

    def good(self, threshold: Array) -> Array:
        """Whether the population error, log2(rank) / (2 octaves), is at most alpha: ranks up to w are T + 1 - w to T + w."""
        w = self.dtype(self.cell.width)
        return np.asarray(threshold - (self.target + self.dtype(1) - w) < self.dtype(2) * w)


def _choose(rng: np.random.Generator, weights: Array) -> Array:
    """An index of each row with probability proportional to its weight, by inverse CDF."""
    sums = np.cumsum(weights, axis=1)
    below = rng.random(len(weights), np.float32) * sums[:, -1]
    return np.minimum(np.count_nonzero(sums <= below[:, None], axis=1), weights.shape[1] - 1)


def exponential(rng: np.random.Generator, batch: Batch) -> int:
    """The exponential mechanism over all thresholds."""
    batch.draw(rng)
    return int(np.count_nonzero(batch.good(batch.point(rng, EPSILON))))


def rec_concave(rng: np.random.Generator, batch: Batch) -> int:
    """RecConcave (Beimel, Nissim and Stemmer, Figure 5)."""
    batch.draw(rng)
    length = _length(rng, batch, _best_windows(batch))
    low, high, kept = _blocks(rng, batch, length)
    return int(np.count_nonzero(batch.good(batch.point(rng, SHARE, (low, high))) & kept))


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
    stop >>= batch.dtype(1)  # makes room for a sign; runs have 2 points or more, as the peak lies between two examples
    digits = stop.view(batch.signed).astype(np.float32).view(np.int32)
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


def _length(rng: np.random.Generator, batch: Batch, windows: Array) -> Array:
    """The recursion's answer k: the exponential mechanism on q(j) = min(L(j) - (1 - alpha) n, n - L(j + 1)), j = 0, ..., d."""
    n = np.float32(batch.n)
    following = np.empty_like(windows)
    following[:, :-1] = windows[:, 1:]
    following[:, -1] = np.minimum(0, windows[:, -1])
    quality = np.minimum(windows - np.float32((1 - INNER_ALPHA) * batch.n), n - following)
    quality -= quality.max(axis=1, keepdims=True)
    quality *= np.float32(SHARE / 2)
    return _choose(rng, np.exp(quality, out=quality))


def _blocks(rng: np.random.Generator, batch: Batch, length: Array) -> tuple[Array, Array, Array]:
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
    kept = exists & (gap + rng.laplace(0.0, 1 / SHARE, gap.shape) >= STABILITY_THRESHOLD)
    low = np.where(kept, low, batch.end).min(axis=0)
    high = np.where(kept, high, 0).max(axis=0).astype(dtype)
    return low, np.maximum(low, high), np.asarray(kept.any(axis=0))


def success_counts(learner: str, d: int, n: int, trials: int, seed: int | np.random.SeedSequence) -> int:
    """Number of successes among `trials` independent trials.

    Args:
      learner: one of `LEARNERS`.
      d: bits of the domain, 6 to 64.
      n: examples, >= 1.
      trials: >= 0.
      seed: results depend on nothing else; >= 0.

    Raises:
      ValueError: an argument out of range.

    >>> success_counts("rec_concave", 31, 4000, 1000, 0)
    1000
    """
    if learner not in LEARNERS:
        raise ValueError(f"learner must be one of {sorted(LEARNERS)}, got {learner!r}")
    if not 6 <= d <= 64:
        raise ValueError(f"d must be from 6 to 64, got {d}")
    if n < 1:
        raise ValueError(f"n must be >= 1, got {n}")
    if trials < 0:
        raise ValueError(f"trials must be >= 0, got {trials}")
    np.empty(LARGE_BLOCK, np.uint8)  # freed at once; see there
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    rng = np.random.Generator(np.random.SFC64(seeds))
    cell, run = Cell(d, n), LEARNERS[learner]
    rows = max(1, min(LARGEST_BATCH, BATCH_BYTES // ((4 if d <= 31 else 8) * n)))
    full, rest = divmod(trials, rows)
    successes = run(rng, Batch(cell, rest)) if rest else 0
    batch = Batch(cell, rows)
    return successes + sum(run(rng, batch) for _ in range(full))


LEARNERS: dict[str, Callable[[np.random.Generator, Batch], int]] = {
    "exponential": exponential,
    "rec_concave": rec_concave,
}
