"""Interior point solvers in tuned NumPy: a trial succeeds if the answer lies between two of n points floor(2^U), U uniform on [0, d - 1).

Every scale has the same mass and every prefix of zeros leads on: hard data for all of them.

Like for like with `dpjax.optimizers.interior_point` at epsilon = 1, delta = 1e-6 (TreeLog planned for beta = 0.1, RecConcave of two levels
with the promise n/2). What makes it fast, beside what `numpy_general` says:

- The depth min(#<=x, #>=x) moves by one from piece to piece, up to the middle and down again: the same program as for thresholds.
- TreeLog's walk takes one binary search at each level, for all trials in step, within the node it has reached; all that matters of the
  points from then on is how many leave the path at each level.
- A deep slice lies below the path's node of depth l + 1 unless l is as deep as the slice itself, which is rare: only then are prefixes
  of its points compared.

n is even, and the two points in the middle are taken to differ (else the depth is greater there, at a single element). With so many
octaves around them they do, except in less than n/2^(d/2) of the samples.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpjax.optimizers.interior_point import planning
from experiments.benchmarks import numpy_general
from experiments.benchmarks.numpy_driver import LARGEST_BATCH, Program, choose, fitting, kept, within
from experiments.benchmarks.numpy_general import Batch, Constants, position_bytes
from experiments.benchmarks.numpy_trials import DELTA, EPSILON, Cell

BETA = 0.1
MOST_IN_SLICES = 330  # of TreeLog, for d <= 64; some points must be left
SHARE = EPSILON / 4  # RecConcave of two levels gives each mechanism epsilon / 4, and A_dist delta / 2
PROVED = Constants(share=SHARE, alpha=0.5, scale=2 / SHARE, threshold=2 - 2 / SHARE * math.log(DELTA), rate=0.5)

Array = NDArray[Any]


class Depth(Batch):
    """Points of a batch and their depth on {0, ..., 2^d}: i on the piece from the i-th point on, n - i on the one behind it."""

    two_sided = False

    def _offsets(self, rng: np.random.Generator) -> Array:
        position, total = self._sums(rng)
        offset = self.floats
        offset[...] = position
        offset *= ((1 - 2.0**-21) * math.log(2) * self.cell.octaves / total).astype(np.float32)
        return np.asarray(np.exp(offset, out=offset))

    def _pieces(self, x: Array) -> None:
        x[:, self.n // 2 :] += self.dtype(1)
        piece = np.arange(self.n + 1, dtype=np.int32)
        self.correct[...] = np.minimum(piece, self.n - piece)

    def interior(self, point: Array) -> Array:
        """Whether points lie between the least and the greatest."""
        return np.asarray((self.starts[:, 1] <= point) & (point < self.starts[:, self.n]))


@functools.lru_cache(maxsize=4)
def _batch(rows: int, d: int, n: int) -> Depth:
    return Depth(Cell(d, n), rows)


def exponential(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """The exponential mechanism, P[x] proportional to exp(epsilon depth): the depth is monotone."""
    batch = _batch(rows, d, n)
    batch.draw(rng)
    return int(np.count_nonzero(batch.interior(batch.point(rng, 2 * EPSILON))))


def rec_concave(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """RecConcave on the depth."""
    batch = _batch(rows, d, n)
    batch.draw(rng)
    point, found = numpy_general.released(rng, batch, PROVED)
    return int(np.count_nonzero(batch.interior(point) & found))


# --------------------------------------------------------------------------------------------------------- TreeLog


def tree_log(rng: np.random.Generator, rows: int, d: int, n: int) -> int:
    """TreeLog with one level (CLNSS §1.3.3)."""
    plan, keep = _plan(d)
    x = points(rng, rows, d, n)
    path = _walk(x, d, plan.m1)
    stopped = (rng.random(path.lighter.shape) < keep[np.minimum(path.lighter, len(keep) - 1)]).any(axis=1)

    levels = np.concatenate([path.lighter, path.leaf[:, None]], axis=1)  # how many points leave at each level
    from_here = np.cumsum(levels[:, ::-1], axis=1)[:, ::-1]  # at it or deeper
    left = np.minimum(levels, np.maximum(from_here - plan.m2, 0))
    level = np.minimum(_base(rng, left, plan.budget.base_epsilon), d)

    # A_dist on the deep slice: its prefixes of l + 1 bits.
    length = np.minimum(level + 1, d)
    node, gap = path.bits >> _shift(x, d - length), np.full(rows, float(plan.m2))
    cut = d - np.argmax((from_here >= plan.m2)[:, ::-1], axis=1)
    for i in np.flatnonzero(~stopped & (level >= cut)):
        node[i], gap[i] = _heaviest(x[i, plan.m1 :], path.bits[i], levels[i], int(length[i]), plan.m2, d)
    budget = plan.budget
    found = kept(rng, gap, budget.select_epsilon, budget.select_delta, sensitivity=1.0)

    # The left slice tells which end of the node it is.
    least = node << _shift(x, d - length)
    before = np.minimum(_rank(x, least), plan.m1)
    is_least = before + rng.laplace(0.0, 1 / budget.count_epsilon, rows) >= plan.m1 / 2
    answer = np.where(is_least, least, least + ((_shift(x, np.ones(rows)) << _shift(x, d - length)) - x.dtype.type(1)))
    inside = (x[:, 0] <= answer) & (answer <= x[:, -1])
    return int(np.count_nonzero(stopped | (found & inside)))


@functools.lru_cache(maxsize=4)
def _plan(d: int) -> tuple[Any, Array]:
    """dpjax's plan, and p~, the odds that a walk stops where the lighter child has c points: optimal partition selection."""
    plan = planning.calibrate(bits=d, epsilon=EPSILON, delta=DELTA, beta=BETA, accountant="optimal", depth=None)
    epsilon, delta = plan.budget.walk_epsilon, plan.stop_delta
    chance = [0.0] * plan.t1
    while chance[-1] < 1.0:
        p = chance[-1]
        chance.append(min(math.exp(epsilon) * p + delta, 1 - math.exp(-epsilon) * (1 - p - delta), 1.0))
    return plan, np.array(chance)


def points(rng: np.random.Generator, rows: int, d: int, n: int) -> Array:
    """Sorted points, drawn in pieces that stay in cache."""
    piece = _batch(min(rows, fitting(position_bytes(d, n))), d, n)
    x = np.empty((-(-rows // piece.rows), piece.rows, n), piece.dtype)
    for part in x:
        piece.draw(rng)
        part[...] = piece.starts[:, 1 : n + 1]
        part[:, n // 2 :] -= piece.dtype(1)
    return np.asarray(x.reshape(-1, n)[:rows])


class Path(NamedTuple):
    """Where the heavy path of the points behind the left slice goes, and how many points leave it at each level or stay to the end."""

    bits: Array
    lighter: Array
    leaf: Array


def _walk(x: Array, d: int, first: int) -> Path:
    """Step 2: to the heavier child, or left on ties; d steps."""
    rows, n = x.shape
    one = x.dtype.type(1)
    low, high = np.full(rows, first), np.full(rows, n)
    node, lighter = np.zeros(rows, x.dtype), np.zeros((rows, d), np.int64)
    for level in range(d):
        middle = node | (one << x.dtype.type(d - 1 - level))
        split = _rank(x, middle, low, high)
        right = high - split > split - low
        lighter[:, level] = np.minimum(high - split, split - low)
        low, high = np.where(right, split, low), np.where(right, high, split)
        node = np.where(right, middle, node)
    return Path(node, lighter, high - low)


def _rank(x: Array, value: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """How many points of each row are below the row's value, if this number is known to lie in [low, high]."""
    rows, n = x.shape
    flat, base = x.reshape(-1), np.arange(rows) * n
    low = np.zeros(rows, np.int64) if low is None else low
    high = np.full(rows, n) if high is None else high
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        less = flat[np.minimum(base + middle, flat.size - 1)] < value
        low = np.where(open_ & less, middle + 1, low)
        high = np.where(open_ & ~less, middle, high)
    return low


def _shift(x: Array, by: Array) -> Array:
    """A shift as a number of x's type."""
    return np.asarray(by).astype(x.dtype)


def _base(rng: np.random.Generator, levels: Array, epsilon: float) -> Array:
    """The exponential mechanism on the depth of the levels, among numbers of as many bits as the greatest level has."""
    d = levels.shape[1] - 1
    up_to = np.cumsum(levels, axis=1)
    depth = np.zeros((len(levels), 1 << d.bit_length()))
    depth[:, : d + 1] = np.minimum(up_to, up_to[:, -1:] - up_to + levels)
    depth -= depth.max(axis=1, keepdims=True)
    return choose(rng, np.exp(epsilon * depth))


def _heaviest(x: Array, leaf: Any, levels: Array, length: int, size: int, d: int) -> tuple[Any, float]:
    """(the prefix that most of the deep slice has, by how much) for one trial; ties of level by value, of weight to the least prefix."""
    level = np.repeat(d, len(x)) - np.array([int(v).bit_length() for v in x ^ leaf])
    deepest = np.argsort(-level, kind="stable")[:size]
    prefixes, counts = np.unique(x[deepest] >> x.dtype.type(d - length), return_counts=True)
    best = int(np.argmax(counts))
    return prefixes[best], float(counts[best] - max(np.delete(counts, best), default=0))


def _check(d: int, n: int) -> None:
    within(d=(d, 6, 64), n=(n, 2, math.inf))
    if n % 2:
        raise ValueError(f"n must be even, got {n}")


def _check_tree_log(d: int, n: int) -> None:
    _check(d, n)
    within(n=(n, MOST_IN_SLICES, math.inf))


PROGRAMS = {
    "interior exponential": Program(exponential, lambda d, n: fitting(position_bytes(d, n)), _check),
    "interior rec_concave": Program(rec_concave, lambda d, n: fitting(position_bytes(d, n)), _check),
    "tree_log": Program(tree_log, lambda d, n: LARGEST_BATCH, _check_tree_log),
}
