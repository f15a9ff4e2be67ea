"""SelectHalfplane (GEO §4) without the arrangement of lines: one exact draw by lazily refined Gumbel maxima.

GEO cuts the dual plane along the lines of all n points into as many as n^2 pieces, and draws a piece with probability proportional to
area * exp(r q). Here no piece is ever built. Give every lattice point an independent Gumbel variable G: the point with the greatest
G + r q is a draw with probability proportional to exp(r q). Now

- the greatest G of a *cell* (a rectangle of slopes and heights) is itself a Gumbel variable, with location ln(number of its points). When
  a cell is halved, a fair coin decides which half keeps the greatest G, and the greatest G of the other half is a Gumbel variable
  truncated there: so a cell can be split on demand (A* sampling: Maddison, Tarlow, Minka 2014);
- as a or b grows, v >= a u + b can only turn from true to false. The examples above a cell's highest line are above all its lines, and
  those not above its lowest line are above none: so the two corners bound the scores of all lines of the cell, from above by U and from
  below by L;
- no line of a cell beats G + r U. The cell that promises the most is split, until the one that promises the most has U = L. All its points
  have the same score, so the winner is one of them, uniformly.

Each split examines every example, for two lines. Where some halfplane is right up to noise, fifty to four hundred splits mostly suffice,
whatever the grid, and their number grows slowly with n. It is larger where no halfplane is much better than the others: with random labels,
5,000 for 500 examples and 14,000 for 2,000 spread over 20 bits, and 45,000 and 345,000 where they lie on one line (epsilon = 1).

**Sheared cells.** The lines that pass among examples in a small part of the domain, u0 <= u <= u0 + w, form a slanted strip of slopes and
heights. It is thin if w is small, and even thousands of rectangles cover it badly. So a cell is a rectangle of slopes and of sheared
heights b + a u0, the heights at u0, the least u, modulo the number of heights: every line is still in one cell, and for u >= u0 the two
corners bound the score. (If more of the examples are near the greatest u, u0 is that, and the other two corners bound the score. A few
examples far off cost little.) A cell may be *wrapped*, with lines from both ends of the heights; then it has two parts, one from the
lowest line of all, above which all points lie, the other up to the highest. With 500 examples in a square of 2^-13 of the side, in the
middle of the domain, a draw takes 130 splits, instead of 200,000 to 370,000 without shearing. GEO's box, whose extreme lines have points on
both sides, is not sheared: there, examples in a small part take as many splits as without shearing (a million for 300 examples in 2^-10 of
the side). Nor does it help where two such squares are far apart: 10,000 splits for 2^-7 of the side, and twice as many for every other
halving.

**Both labels at one point.** U assumes that a line through the point is right on all examples there, so the cells of such lines are split
until their weight is negligible beside the best. With 8 zeros and 7 ones at one point a draw by their errors takes 49 splits at r = 0.5,
340 at 1 and 12,000 at 2 (means of 16 draws), and so on. Therefore `halfplanes.exponential`, whose score is the same without such pairs,
leaves them out first. The score of SetCoverLearner is not the same, but that learner is for data that a concept labels without error.

**Exact** are the sides on which points lie (decided by integers, `dpjax.concepts.plane.lattice`), the counts, and so the set of lines with
a given score. The Gumbel variables and r times differences of scores are rounded to the precision of JAX's floats. If the table of cells is
nearly full, cells are split depth first, which needs no more room than one path of halves: a draw is never abandoned.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.plane.lattice import Lattice, above, product
from dpjax.core import random
from dpjax.domains import wide

CELLS = 256  # kept in addition to one path of halves

Score = Callable[[Array, Array], Array]  # of (deleted negative examples, deleted positive examples)


class Line(NamedTuple):
    """A halfplane: its chart, and its slope and height in steps from the least."""

    chart: Int[Array, "*n"]
    slope: UInt32[Array, "*n limbs"]
    height: UInt32[Array, "*n limbs"]


class Cells(NamedTuple):
    """Rectangles of 2^log_slopes slopes times 2^log_heights heights, sheared.

    Attributes:
      low: the least slope and sheared height.
      log_slopes, log_heights: log2 of the numbers of slopes and of heights.
      gumbel: the greatest G of each cell.
      wrapped: whether there are lines from both ends of the heights; see the module.
      deleted: how many (negative, positive) examples the lowest and the highest line delete (in a wrapped cell, the lowest line of its
        part at the upper end and the highest line of its part at the lower end); shape (cells, 2 corners, 2 labels).
      score: U; -inf where there is no cell, or none that need be split.
    """

    low: Line
    log_slopes: Int[Array, "cells"]
    log_heights: Int[Array, "cells"]
    gumbel: Float[Array, "cells"]
    wrapped: Bool[Array, "cells"]
    deleted: Int[Array, "cells 2 2"]
    score: Float[Array, "cells"]


class Frame(NamedTuple):
    """Where the examples are, on either axis.

    Attributes:
      shear: u0, the most significant word first.
      from_above: whether u0 is the greatest u instead of the least.
      reach: log2, rounded up, of the |u - u0| that 15 of 16 examples do not exceed: how far a line moves among them with its slope.
      length: log2, rounded up, of the greatest u.
    """

    shear: UInt32[Array, "2 words"]
    from_above: Bool[Array, "2"]
    reach: Int[Array, "2"]
    length: Int[Array, "2"]


class Problem(NamedTuple):
    """What does not change while cells are split.

    Attributes:
      grid: the lattice.
      columns: the words of the points' coordinates; see `lattice.columns_of`.
      weights: how many (negative, positive) examples there are at each point.
      score: see `Score`; it is non-decreasing in the first number and non-increasing in the second.
      rate: r, by which scores are multiplied.
      dual: whether a halfplane deletes the examples that it holds, instead of the others.
    """

    grid: Lattice
    columns: UInt32[Array, "2 words n"]
    weights: Int[Array, "2 n"]
    score: Score
    rate: Any
    dual: bool

    def deletes(self, line: Line) -> Int[Array, "lines 2"]:
        """How many (negative, positive) examples each line deletes."""
        gone = above(self.grid, line.chart, line.slope, line.height, self.columns)
        gone = gone if self.dual else ~gone
        return jnp.sum(jnp.where(gone[:, None], self.weights[None], 0), axis=2, dtype=jnp.int32)

    def bounds(self, cells: Cells) -> tuple[Float[Array, "cells"], Float[Array, "cells"]]:
        """(L, U) of the scores, from the corners' counts."""
        low, high = cells.deleted[:, 0], cells.deleted[:, 1]
        every = jnp.sum(self.weights, axis=1, dtype=jnp.int32)
        below, beyond = (every, jnp.zeros_like(every)) if self.dual else (jnp.zeros_like(every), every)
        least, most = self._between(jnp.where(cells.wrapped[:, None], below, low), high)
        other_least, other_most = self._between(low, jnp.where(cells.wrapped[:, None], beyond, high))
        return jnp.minimum(least, other_least), jnp.maximum(most, other_most)

    def _between(self, low: Int[Array, "cells 2"], high: Int[Array, "cells 2"]) -> tuple[Array, Array]:
        """(L, U) of the lines that are above one line and below another: the highest deletes the most examples, in the dual the fewest."""
        least, most = (high, low) if self.dual else (low, high)
        return self.score(least[:, 0], most[:, 1]), self.score(most[:, 0], least[:, 1])

    def frame(self) -> Frame:
        """Where the examples are: u0 is at the end near most of them."""
        there = jnp.any(self.weights > 0, axis=0)
        low, high = (_least(self.columns ^ flip, there) ^ flip for flip in (np.uint32(0), np.uint32(0xFFFFFFFF)))
        low = jnp.where(jnp.any(there), low, high)  # no examples: 0
        length, none = wide.bit_length(high), jnp.zeros(2, bool)
        if not self.grid.spans_all:
            return Frame(jnp.zeros_like(low), none, length, length)
        numbers = jnp.moveaxis(self.columns, 1, 2)[..., ::-1]
        up, down = wide.subtract(numbers, low[:, None]), wide.subtract(high[:, None], numbers)
        reach, other = self._most(wide.bit_length(up), there), self._most(wide.bit_length(down), there)
        from_above = other < reach
        return Frame(jnp.where(from_above[:, None], high, low), from_above, jnp.where(from_above, other, reach), length)

    def _most(self, lengths: Int[Array, "2 n"], there: Bool[Array, "n"]) -> Int[Array, "2"]:
        """The least length that 15 of 16 examples do not exceed: a few far away count for little, and cells are as good without them."""
        most = jnp.arange(self.grid.bits, dtype=jnp.int32)[:, None, None]
        beyond = jnp.sum(jnp.where(there, lengths, -1)[None] > most, axis=2, dtype=jnp.int32)
        return jnp.sum(16 * beyond > jnp.sum(there, dtype=jnp.int32), axis=0, dtype=jnp.int32)


def _least(columns: UInt32[Array, "2 words n"], there: Bool[Array, "n"]) -> UInt32[Array, "2 words"]:
    """The least number on either axis, the most significant word first; all ones if there is none."""
    there, words = jnp.broadcast_to(there, (2, there.shape[0])), []
    for place in range(columns.shape[1] - 1, -1, -1):
        words.append(jnp.min(jnp.where(there, columns[:, place], np.uint32(0xFFFFFFFF)), axis=1))
        there = there & (columns[:, place] == words[-1][:, None])
    return jnp.stack(words, axis=1)


def draw(key: Array, problem: Problem) -> tuple[Line, Int[Array, ""]]:
    """(a line with probability proportional to exp(rate score), how many cells were split)."""
    key_first, key_splits, key_within = jax.random.split(random.for_loops(key), 3)
    frame = problem.frame()
    cells, best = _first(key_first, problem, frame)

    def goes_on(state: tuple[Cells, Cells, Array]) -> Bool[Array, ""]:
        cells, best, _ = state
        return jnp.max(_promise(cells, best, problem)) > _promise(best, best, problem)[0]

    def split(state: tuple[Cells, Cells, Array]) -> tuple[Cells, Cells, Array]:
        cells, best, number = state
        where = _next(cells, best, problem)
        cell = jax.tree.map(lambda leaf: leaf[where], cells)
        halves = _halves(jax.random.fold_in(key_splits, number), cell, problem, frame)
        halves, best = _settled(halves, best, problem)
        return _stored(cells, where, halves, best, problem), best, number + 1

    _, best, splits = lax.while_loop(goes_on, split, (cells, best, jnp.int32(0)))
    return _plain(_within(key_within, jax.tree.map(lambda leaf: leaf[0], best)), problem.grid, frame), splits


def _path(grid: Lattice) -> int:
    """How often a cell can be halved."""
    return grid.log_slopes + grid.log_block


def _first(key: Array, problem: Problem, frame: Frame) -> tuple[Cells, Cells]:
    """(the table of cells, with all lines in blocks of equal size and room for more; the best cell with U = L)."""
    grid = problem.grid
    blocks = [(chart, block << grid.log_block) for chart in range(grid.charts) for block in range(grid.blocks)]
    low = Line(
        chart=jnp.array([chart for chart, _ in blocks], jnp.int32),
        slope=jnp.zeros((len(blocks), grid.limbs), jnp.uint32),
        height=wide.from_ints([height for _, height in blocks], 32 * grid.limbs),
    )
    count = (len(blocks),)
    cells = Cells(
        low=low,
        log_slopes=jnp.full(count, np.int32(grid.log_slopes)),
        log_heights=jnp.full(count, np.int32(grid.log_block)),
        gumbel=random.gumbel(key, count),
        wrapped=jnp.zeros(count, bool),
        deleted=jnp.zeros((*count, 2, 2), jnp.int32),
        score=jnp.zeros(count),
    )
    wrapped, lowest, highest = _corners(cells, problem.grid, frame)
    corners = jnp.stack([problem.deletes(lowest), problem.deletes(highest)], axis=1)
    none = jax.tree.map(lambda leaf: leaf[:1], cells)._replace(score=jnp.full(1, -jnp.inf))
    cells, best = _settled(cells._replace(wrapped=wrapped, deleted=corners), none, problem)
    room = CELLS + _path(grid)
    table = jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape[1:]), leaf.dtype).at[: len(blocks)].set(leaf), cells)
    return table._replace(score=jnp.full(room, -jnp.inf).at[: len(blocks)].set(cells.score)), best


def _corners(cells: Cells, grid: Lattice, frame: Frame) -> tuple[Bool[Array, "cells"], Line, Line]:
    """(whether a cell is wrapped, its lowest line, its highest line); if wrapped, bounds of the lines that `Cells.deleted` names."""
    slope, height = (
        wide.add(low, wide.largest(log, low.shape[-1]))
        for low, log in ((cells.low.slope, cells.log_slopes), (cells.low.height, cells.log_heights))
    )
    chart, start = cells.low.chart, cells.low
    least, most = (_shift(each, chart, frame) for each in (start.slope, slope))
    wrapped = wide.less(start.height, most) & ~wide.less(height, least)
    # As its slope grows, a line rises behind u0 and falls before it: for examples before u0, the lowest line has the greatest slope.
    before = frame.from_above[chart // 2]
    turned, other = before & ~wrapped, before | wrapped
    low = Line(
        chart, wide.select(turned, slope, start.slope), _lowered(start.height, wide.select(other, most, least), grid)
    )
    high = Line(chart, wide.select(turned, start.slope, slope), _lowered(height, wide.select(other, least, most), grid))
    return wrapped, low, high


def _plain(line: Line, grid: Lattice, frame: Frame) -> Line:
    """The line with its own height, given one whose height is sheared."""
    return line._replace(height=_lowered(line.height, _shift(line.slope, line.chart, frame), grid))


def _shift(slope: UInt32[Array, "*n limbs"], chart: Int[Array, "*n"], frame: Frame) -> UInt32[Array, "*n limbs"]:
    """u0 times the slope."""
    return product(slope, frame.shear[chart // 2])


def _lowered(
    height: UInt32[Array, "*n limbs"], by: UInt32[Array, "*n limbs"], grid: Lattice
) -> UInt32[Array, "*n limbs"]:
    """height - by, modulo the number of heights."""
    every = wide.from_ints([grid.blocks << grid.log_block], 32 * grid.limbs)[0]
    rest = wide.subtract(height, by)
    return wide.select(wide.less(height, by), wide.add(rest, every), rest)


def _promise(cells: Cells, best: Cells, problem: Problem) -> Float[Array, "cells"]:
    """G + r (U - s), s being the score of the best cell so far: added to r times millions, a Gumbel variable would lose its digits."""
    score = jnp.where(best.score[0] > -jnp.inf, best.score[0], jnp.max(cells.score))
    return cells.gumbel + jnp.asarray(problem.rate, float) * (cells.score - jnp.where(score > -jnp.inf, score, 0.0))


def _next(cells: Cells, best: Cells, problem: Problem) -> Int[Array, ""]:
    """The cell that promises most; when the table is nearly full, the smallest of those that promise enough."""
    promise = _promise(cells, best, problem)
    still = promise > _promise(best, best, problem)[0]
    crowded = jnp.sum(still, dtype=jnp.int32) >= CELLS
    smallest = jnp.argmin(jnp.where(still, cells.log_slopes + cells.log_heights, 2 * _path(problem.grid)))
    return jnp.where(crowded, smallest, jnp.argmax(promise)).astype(jnp.int32)


def _halves(key: Array, cell: Cells, problem: Problem, frame: Frame) -> Cells:
    """Both halves of a cell: its slopes are halved if they move a line among the examples by more than its heights do, else its heights."""
    axis = cell.low.chart // 2
    reach = jnp.where(cell.wrapped, frame.length[axis], frame.reach[axis])
    by_slope = cell.log_slopes + reach > cell.log_heights
    by_slope = (by_slope & (cell.log_slopes > 0)) | (cell.log_heights == 0)
    log_slopes = cell.log_slopes - by_slope.astype(jnp.int32)
    log_heights = cell.log_heights - (~by_slope).astype(jnp.int32)
    second = Line(
        cell.low.chart,
        jnp.where(
            by_slope, wide.add(cell.low.slope, wide.power_of_two(log_slopes, problem.grid.limbs)), cell.low.slope
        ),
        jnp.where(
            by_slope, cell.low.height, wide.add(cell.low.height, wide.power_of_two(log_heights, problem.grid.limbs))
        ),
    )
    # The greatest G is equally likely to be in either half; that of the other half is below it.
    size = (log_slopes + log_heights - _path(problem.grid)).astype(float) * np.log(2.0)
    below, coin = random.fine_exponential(key, (2,))
    other = jnp.minimum(size - jnp.log(jnp.exp(size - cell.gumbel) + below), cell.gumbel)
    heads = coin < np.log(2.0)  # the median
    # The half with the lowest line comes first.
    swap = by_slope & frame.from_above[axis]
    low = jax.tree.map(lambda one, two: jnp.where(swap, jnp.stack([two, one]), jnp.stack([one, two])), cell.low, second)
    halves = Cells(
        low=low,
        log_slopes=jnp.stack([log_slopes] * 2),
        log_heights=jnp.stack([log_heights] * 2),
        gumbel=jnp.where(heads, jnp.stack([cell.gumbel, other]), jnp.stack([other, cell.gumbel])),
        wrapped=jnp.stack([cell.wrapped] * 2),
        deleted=jnp.stack([cell.deleted] * 2),
        score=jnp.zeros(2),
    )
    wrapped, lowest, highest = _corners(halves, problem.grid, frame)
    pair = lambda first, second: jax.tree.map(lambda a, b: jnp.stack([a[0], b[1]]), first, second)  # noqa: E731
    inner = problem.deletes(pair(highest, lowest))
    # The first half has the lowest line of the cell, the second the highest.
    outer = lax.cond(cell.wrapped, lambda: problem.deletes(pair(lowest, highest)), lambda: cell.deleted)
    deleted = jnp.stack([jnp.stack([outer[0], inner[0]]), jnp.stack([inner[1], outer[1]])])
    return halves._replace(wrapped=wrapped, deleted=deleted)


def _settled(cells: Cells, best: Cells, problem: Problem) -> tuple[Cells, Cells]:
    """(the cells with their scores U, -inf where a cell need not be split; the best cell with U = L)."""
    low, high = problem.bounds(cells)
    done = low == high
    known = jax.tree.map(
        lambda a, b: jnp.concatenate([a, b]), best, cells._replace(score=jnp.where(done, high, -jnp.inf))
    )
    first = jnp.argmax(_promise(known, best, problem))
    best = jax.tree.map(lambda leaf: leaf[first][None], known)
    promise = _promise(cells._replace(score=high), best, problem)
    hopeless = done | (promise <= _promise(best, best, problem)[0])
    return cells._replace(score=jnp.where(hopeless, -jnp.inf, high)), best


def _stored(cells: Cells, where: Int[Array, ""], halves: Cells, best: Cells, problem: Problem) -> Cells:
    """The table with the halves stored: one replaces the cell that was split, the other replaces the cell that promises the least."""
    whole = lambda leaf, half: leaf.at[where].set(half[0])  # noqa: E731
    promise = _promise(jax.tree.map(whole, cells, halves), best, problem)
    other = jnp.argmin(promise).astype(jnp.int32)
    other = jnp.where(halves.score[1] == -jnp.inf, promise.shape[0], other)  # nowhere
    # Of two writes to one place JAX may keep either: a hopeless first half is not written where the second takes its place.
    first = jnp.where(where == other, promise.shape[0], where)
    places = jnp.stack([first, other])
    return jax.tree.map(lambda leaf, new: leaf.at[places].set(new, mode="drop"), cells, halves)


def _within(key: Array, cell: Cells) -> Line:
    """A uniform line of one cell."""
    key_slope, key_height = jax.random.split(key)
    limbs = cell.low.slope.shape[-1]
    return Line(
        cell.low.chart,
        wide.add(cell.low.slope, wide.random_bits(key_slope, cell.log_slopes, limbs)),
        wide.add(cell.low.height, wide.random_bits(key_height, cell.log_heights, limbs)),
    )
