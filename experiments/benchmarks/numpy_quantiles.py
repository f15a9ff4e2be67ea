"""Quantiles in tuned NumPy, on n points floor(2^U), U uniform on [0, d - 1): a trial succeeds if no answer is more than RANKS ranks off.

Like for like with `dpjax.optimizers.quantiles` at epsilon = 1 for m evenly spaced fractions.

- `rank_exponential`: for each fraction the exponential mechanism on the rank error of the whole domain (below 0 the depth among equal
  points). The error depends only on where an answer lands among the points, so only the lengths of gaps are computed, not positions, and
  those of all trials are weighted together.
- `permute_and_flip`: likewise, but by the gap with the earliest arrival.
- `approximate`: one node after another, for all trials at once. Equal points are evenly spread in their cell.
- `tree`: of the hierarchical histogram only the children on the way down are drawn, the same ones for all quantiles that pass there.
- `unbounded`: the points are looked up on the grid, which is faster than a search for each grid point among them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpjax.optimizers.quantiles.approximate import tree as nodes_of
from dpjax.optimizers.quantiles.unbounded import geometric_grid
from experiments.benchmarks import numpy_interior
from experiments.benchmarks.numpy_driver import Program, choose, fitting, within
from experiments.benchmarks.numpy_driver import below as count_below
from experiments.benchmarks.numpy_trials import EPSILON

RANKS = 20
BRANCHING = 16  # of `tree`
BASE = 1.01  # of `unbounded`

Array = NDArray[Any]


def fractions(m: int) -> list[float]:
    """1/(m + 1), ..., m/(m + 1)."""
    return [i / (m + 1) for i in range(1, m + 1)]


def slope(m: int) -> float:
    """lambda of `rank_exponential`: epsilon divided by the ranges of all runs."""
    f = np.array(fractions(m))
    return float(EPSILON / (np.maximum(f, 1 - f).sum() + max(f.sum(), (1 - f).sum())))


def rank_exponential(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """All m answers of each trial; a fraction whose multiple of n is not an integer gets the nearest rank."""
    return _by_ranks(rng, rows, d, m, n, _exponential)


def permute_and_flip(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """All m answers of each trial, by permute-and-flip in place of the exponential mechanism."""
    return _by_ranks(rng, rows, d, m, n, _flips)


def _exponential(rng: np.random.Generator, lengths: Array, weights: Array) -> Array:
    """A piece for each row, with probability proportional to its length times its weight."""
    sums = np.cumsum(lengths * weights, axis=1)
    drawn = rng.random((len(sums), 1)) * sums[:, -1:]
    return np.minimum(np.count_nonzero(sums <= drawn, axis=1), sums.shape[1] - 1)[:, None]


def _flips(rng: np.random.Generator, lengths: Array, weights: Array) -> Array:
    """The earliest piece of each row: the first of N uniforms is at 1 - e^(-E/N), and it arrives at that divided by the weight."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # of empty pieces
        first = -np.expm1(-rng.standard_exponential(lengths.shape, np.float32) / lengths) / weights
    return np.argmin(np.where(lengths > 0, first, np.inf), axis=1)[:, None]


def _by_ranks(rng: np.random.Generator, rows: int, d: int, m: int, n: int, pick: Any) -> int:
    x = numpy_interior.points(rng, rows, d, n)
    below, up_to, lengths = _pieces(x, d)
    rate, good = np.float32(slope(m)), np.ones(rows, bool)
    for fraction in fractions(m):
        wanted = np.float32(fraction * n)
        error = np.maximum(below - wanted, wanted - up_to)
        index = pick(rng, lengths, np.exp(-rate * (error - error.min(axis=1, keepdims=True))))
        rank = math.floor(fraction * n + 0.5)
        low, high = (np.take_along_axis(np.broadcast_to(each, error.shape), index, 1) for each in (below, up_to))
        good &= (np.maximum(low - rank, rank - high) <= RANKS)[:, 0]
    return int(np.count_nonzero(good))


def _pieces(x: Array, d: int) -> tuple[Array, Array, Array]:
    """#{< z}, #{<= z} and the length of each piece: the gap before the first point, then each point and the gap behind it.

    Of equal points the last stands for all, and the others have length 0.
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


def approximate(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """The middle quantile, then the middle ones of both sides: each by the exponential mechanism between its neighbours."""
    x = numpy_interior.points(rng, rows, d, n)
    starts = np.concatenate([np.zeros((rows, 1)), _spread(x), np.full((rows, 1), 2.0**d)], axis=1)
    rank, answers = np.arange(n + 1), np.zeros((m + 2, rows, 1))
    answers[m + 1] = 2.0**d
    nodes = nodes_of([round(fraction * 2**32) for fraction in fractions(m)])
    for place, left, right, share in zip(nodes.place, nodes.left, nodes.right, nodes.share * 2.0**-32, strict=True):
        low, high = answers[left], answers[right]
        ends = np.clip(starts, low, high)
        below, up_to = (np.count_nonzero(starts[:, 1:-1] < end, axis=1)[:, None] for end in (low, high))
        rate = EPSILON / (2 * m.bit_length() * max(share, 1 - share))
        error = np.abs(rank - (below + share * (up_to - below)))
        index = choose(rng, np.diff(ends, axis=1) * np.exp(-rate * error))[:, None]
        first, last = (np.take_along_axis(ends, at, 1) for at in (index, index + 1))
        answers[place] = first + rng.random((rows, 1)) * (last - first)
    return _good(x, np.floor(answers[1:-1, :, 0]).astype(x.dtype))


def _spread(x: Array) -> Array:
    """Points, with k equal ones at a spread evenly: a + 1/2k, a + 3/2k, ..."""
    rows, n = x.shape
    place, new = np.arange(n), np.ones((rows, n + 1), bool)
    new[:, 1:-1] = x[:, 1:] != x[:, :-1]
    first = np.maximum.accumulate(np.where(new[:, :-1], place, 0), axis=1)
    stop = np.minimum.accumulate(np.where(new[:, 1:], place + 1, n)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(x + (place - first + 0.5) / (stop - first))


def tree(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """The way down a hierarchical histogram, with children's counts by least squares."""
    x = numpy_interior.points(rng, rows, d, n)
    starts = np.concatenate([x, np.full((rows, 1), np.iinfo(x.dtype).max)], axis=1)
    width = BRANCHING.bit_length() - 1
    levels = -(-d // width)
    odds = -math.expm1(-EPSILON / levels)
    prefix, before = np.zeros((m, rows), x.dtype), np.zeros((m, rows), int)
    total, rank, variance = np.zeros((m, rows)), np.zeros((m, rows)), math.inf
    for level in range(levels):
        children = 1 << d - width * (levels - 1) if level == 0 else BRANCHING
        shift = width * (levels - 1 - level)
        child = (prefix << width if level else prefix) + np.arange(1, children + 1, dtype=x.dtype)[:, None, None]
        edges = np.concatenate([before[None], count_below(starts, child << shift)])
        noise = rng.geometric(odds, (children, m, rows)) - rng.geometric(odds, (children, m, rows))
        for later in range(1, m):
            for earlier in range(later):
                same = prefix[later] == prefix[earlier]
                noise[:, later, same] = noise[:, earlier, same]
        counts = np.diff(edges, axis=0) + noise.astype(float)
        if level == 0:
            total = counts.sum(axis=0)
            rank = np.array(fractions(m))[:, None] * np.maximum(total, 0.0)
        else:
            counts += (total - counts.sum(axis=0)) / (BRANCHING + variance)
        variance = 1.0 if level == 0 else 1 - 1 / (BRANCHING + variance)
        running = np.cumsum(counts, axis=0)
        index = np.minimum(np.count_nonzero(np.maximum.accumulate(running, axis=0) <= rank, axis=0), children - 1)[None]
        rank -= np.where(index > 0, np.take_along_axis(running, np.maximum(index - 1, 0), 0), 0.0)[0]
        total, before = np.take_along_axis(counts, index, 0)[0], np.take_along_axis(edges, index, 0)[0]
        prefix = np.take_along_axis(child, index, 0)[0] - 1
    return _good(x, prefix)


def unbounded(rng: np.random.Generator, rows: int, d: int, m: int, n: int) -> int:
    """AboveThreshold along a geometric grid, from the nearer end."""
    x = numpy_interior.points(rng, rows, d, n)
    grid = np.array(geometric_grid(bits=d, origin=0, base=BASE), x.dtype)
    row = np.arange(rows)[:, None] * (len(grid) + 1)
    up_to, below = (
        np.cumsum(_tallied(row + np.searchsorted(grid, x, side=side), rows, len(grid)), axis=1)
        for side in ("left", "right")
    )
    each = np.array(fractions(m))
    down = each > 0.5
    own = np.where(down, 1 - each, each)
    rate = EPSILON / max(np.maximum(own, 1 - own).sum(), (own + 0.5).sum())
    answers = np.empty((m, rows), x.dtype)
    for i in range(m):
        asked = (each[i] * n - below)[:, ::-1] if down[i] else up_to - each[i] * n
        above = asked + rng.laplace(0.0, 2 / rate, asked.shape) >= rng.laplace(0.0, 1 / rate, (rows, 1))
        above[:, -1] = True
        index = np.argmax(above, axis=1)
        answers[i] = grid[len(grid) - 1 - index if down[i] else index]
    return _good(x, np.sort(answers, axis=0))


def _tallied(places: Array, rows: int, grid: int) -> Array:
    """How many points of each row are at each place of the grid; those behind it are left out."""
    return np.bincount(places.ravel(), minlength=rows * (grid + 1)).reshape(rows, grid + 1)[:, :grid]


def _good(x: Array, answers: Array) -> int:
    """In how many trials no answer is too far off; answers have shape (m, rows)."""
    (m, rows), n = answers.shape, x.shape[1]
    starts = np.concatenate([x, np.full((rows, 1), np.iinfo(x.dtype).max)], axis=1)
    wanted = np.array([math.floor(fraction * n + 0.5) for fraction in fractions(m)])[:, None]
    low, high = count_below(starts, answers), count_below(starts, answers + 1)
    return int(np.count_nonzero((np.maximum(low - wanted, wanted - high) <= RANKS).all(axis=0)))


def check(d: int, m: int, n: int) -> None:
    within(d=(d, 6, 63), m=(m, 1, math.inf), n=(n, 2, math.inf))
    if n % 2:
        raise ValueError(f"n must be even, got {n}")


PROGRAMS = {
    "quantiles": Program(rank_exponential, lambda d, m, n: fitting(24 * n, at_least=4), check),
    "quantiles approximate": Program(approximate, lambda d, m, n: fitting(32 * n, at_least=4), check),
    "quantiles permute_and_flip": Program(permute_and_flip, lambda d, m, n: fitting(24 * n, at_least=4), check),
    "quantiles tree": Program(tree, lambda d, m, n: fitting(24 * n, at_least=16), check),
    "quantiles unbounded": Program(unbounded, lambda d, m, n: fitting(24 * n, at_least=4), check),
}
