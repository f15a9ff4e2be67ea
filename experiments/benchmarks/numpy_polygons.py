"""SetCoverLearner on convex polygons over a small grid in tuned NumPy: the branch and bound of dpjax, on counts of the grid's columns.

A trial draws n uniform points of the grid, counts them, and goes through the rounds of `dpjax.learners.set_cover`; a round draws one
halfplane as `dpjax.learners.halfplanes.refinement` does, by splitting the cell of lines whose greatest Gumbel variable promises most. What
makes it fast: a heap for the cells, Python's own random numbers for single coins, and a table of how many examples lie below each point of
a column, so that a line is judged by 2^d columns instead of n examples. The numbers of negative and of positive examples share one
64-bit word. What privacy dictates (rounds, rate, noise, shift) is taken from the learner.
"""

import functools
import heapq
import math
import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpjax.concepts import polygons as concept
from dpjax.concepts.plane.lattice import lattice
from dpjax.learners import polygons
from experiments.benchmarks.numpy_driver import Program, within
from experiments.benchmarks.numpy_trials import DELTA

EPSILON, ALPHA = 4.0, 0.15
HALF_WORD = 32  # bits for the number of positive examples

Array = NDArray[Any]


@functools.lru_cache(maxsize=8)
def learner(d: int, k: int) -> Any:
    """dpjax's learner for the cell."""
    return polygons.convex(bits=d, sides=k, epsilon=EPSILON, delta=DELTA, alpha=ALPHA)


class Cell(NamedTuple):
    """2^log_slopes by 2^log_heights lines, from the least slope and height on; low and high: what its lowest and highest line delete."""

    chart: int
    slope: int
    height: int
    log_slopes: int
    log_heights: int
    low: int
    high: int


class Grid:
    """The lattice of halfplanes of `dpjax.concepts.plane.lattice`, on all columns u at once.

    Attributes:
        side: 2^d.
        lattice: the numbers of the lattice.
    """

    def __init__(self, d: int) -> None:
        self.side, self.lattice = 1 << d, lattice(d, "axes")
        self.u = np.arange(self.side)
        self.shift = -self.u - self.side  # slopes begin at -1, heights at -2^d
        self.column = self.u * (self.side + 1)
        self.lines = np.empty((2, self.side), np.int64)

    def ends(self, *lines: tuple[int, int]) -> Array:
        """How many v of each column lie below one or two lines (slope, height)."""
        found, t = self.lines[: len(lines)], self.lattice.fraction
        for line, (slope, height) in zip(found, lines, strict=True):
            np.multiply(self.u, slope, out=line)
            line += height + (1 << t) - 1
        found >>= t
        found += self.shift
        np.maximum(found, 0, out=found)
        return np.minimum(found, self.side, out=found)

    def tables(self, counts: Array) -> list[Array]:
        """For each chart, how many examples of each column lie below each v."""
        below = np.zeros((self.lattice.charts, self.side, self.side + 1), np.int64)
        for chart, table in enumerate(below):
            np.cumsum(charted(counts, chart), axis=1, out=table[:, 1:])
        return list(below.reshape(self.lattice.charts, -1))

    def deleted(self, table: Array, *lines: tuple[int, int]) -> list[int]:
        """How many examples lie below one or two lines, with negative and positive ones in one word."""
        places = self.ends(*lines)
        places += self.column
        return list(table.take(places).sum(axis=1).tolist())

    def held(self, chart: int, slope: int, height: int) -> Array:
        """Which points of the grid a halfplane contains, in the coordinates of its chart."""
        return np.asarray(self.u >= self.ends((slope, height))[0][:, None])


def charted(values: Array, chart: int) -> Array:
    """A view of values at (x, y) in the coordinates (u, v) of a chart."""
    turned = values.T if chart // 2 else values
    return turned[:, ::-1] if chart % 2 else turned


def select(coins: random.Random, grid: Grid, counts: Array, test: int, rate: float) -> tuple[int, int, int]:
    """A halfplane (chart, slope, height) with probability proportional to exp(rate min(negative ones deleted - test, -positive ones))."""
    tables, number = grid.tables(counts), 0
    heap: list[tuple[float, int, float, bool, Cell]] = []
    path = grid.lattice.log_slopes + grid.lattice.log_block

    def push(gumbel: float, cell: Cell) -> None:
        nonlocal number
        negative, positive = cell.high >> HALF_WORD, cell.low & (1 << HALF_WORD) - 1
        most = min(negative - test, -positive)
        least = min((cell.low >> HALF_WORD) - test, -(cell.high & (1 << HALF_WORD) - 1))
        number += 1
        heapq.heappush(heap, (-gumbel - rate * most, number, gumbel, most == least, cell))

    for chart in range(grid.lattice.charts):
        for block in range(grid.lattice.blocks):
            start, log_slopes, log_heights = (
                block << grid.lattice.log_block,
                grid.lattice.log_slopes,
                grid.lattice.log_block,
            )
            last = ((1 << log_slopes) - 1, start + (1 << log_heights) - 1)
            low, high = grid.deleted(tables[chart], (0, start), last)
            push(-math.log(coins.expovariate(1.0)), Cell(chart, 0, start, log_slopes, log_heights, low, high))
    while True:
        _, _, gumbel, settled, cell = heapq.heappop(heap)
        chart, slope, height, log_slopes, log_heights, low, high = cell
        if settled:
            return chart, slope + coins.getrandbits(log_slopes), height + coins.getrandbits(log_heights)
        # A step of the slope moves the far end of a line by 2^d steps of the height.
        by_slope = (log_slopes + grid.lattice.bits > log_heights and log_slopes > 0) or log_heights == 0
        end_slope, end_height = slope + (1 << log_slopes) - 1, height + (1 << log_heights) - 1
        log_slopes, log_heights = log_slopes - by_slope, log_heights - (not by_slope)
        second = (slope + (1 << log_slopes), height) if by_slope else (slope, height + (1 << log_heights))
        first_end = (second[0] - 1, end_height) if by_slope else (end_slope, second[1] - 1)
        middle_high, middle_low = grid.deleted(tables[chart], first_end, second)
        size = (log_slopes + log_heights - path) * math.log(2)
        other = size - math.log(math.exp(size - gumbel) + coins.expovariate(1.0))
        gumbels = (gumbel, other) if coins.random() < 0.5 else (other, gumbel)
        push(gumbels[0], Cell(chart, slope, height, log_slopes, log_heights, low, middle_high))
        push(gumbels[1], Cell(chart, *second, log_slopes, log_heights, middle_low, high))


def convex_polygon(rng: np.random.Generator, rows: int, d: int, k: int, n: int) -> int:
    """Convex polygons, one trial after the other."""
    return sum(_trial(rng, d, k, n) for _ in range(rows))


def _trial(rng: np.random.Generator, d: int, k: int, n: int) -> bool:
    given, grid, target = learner(d, k), _grid(d), _target(d, k)
    coins = random.Random(int(rng.integers(2**63)))
    drawn = np.bincount(rng.integers(0, 4**d, n, np.uint16), minlength=4**d).reshape(grid.side, grid.side)
    counts = np.where(target, drawn, drawn << HALF_WORD)
    kept = np.ones_like(target)
    rate, width, shift = float(given.rate), given.rounds / float(given.noise_epsilon), float(given.shift)
    for _ in range(given.rounds):
        test = int(counts.sum()) >> HALF_WORD
        test += math.floor(rng.laplace(0.0, width)) - shift
        line = select(coins, grid, counts, -(-test // given.k), rate)
        held = grid.held(*line)
        charted(kept, line[0])[...] &= held
        charted(counts, line[0])[...] *= held
    return bool(np.count_nonzero(kept != target) <= ALPHA * 4**d)


@functools.lru_cache(maxsize=4)
def _grid(d: int) -> Grid:
    return Grid(d)


@functools.lru_cache(maxsize=4)
def _target(d: int, k: int) -> Array:
    """Which points (x, y) the target contains."""
    grid, region = _grid(d), concept.regular(bits=d, sides=k)
    inside = np.ones((grid.side, grid.side), np.bool_)
    lines = (np.asarray(each)[0].tolist() for each in (region.chart, region.slope[..., 0], region.height[..., 0]))
    for chart, slope, height in zip(*lines, strict=True):
        charted(inside, chart)[...] &= grid.held(chart, slope, height)
    return inside


PROGRAMS = {
    "convex polygon": Program(
        convex_polygon,
        lambda d, k, n: 1,
        lambda d, k, n: within(d=(d, 1, 7), k=(k, 3, 2**10), n=(n, 1, 2**24)),
    )
}
