"""Functions on an ordered wide range that are constant on pieces, as quality functions of finite samples are."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, sorting
from dpjax.core.pytree import frozen, select, static
from dpjax.core.staging import SHORT_ROW, once
from dpjax.domains import offsets, scaled, wide
from dpjax.domains.offsets import Offset
from dpjax.domains.scaled import Starts
from dpjax.domains.wide import LogParts


@frozen
class Cut:
    """A position in the range of some pieces.

    Attributes:
      position: the point right behind the cut, as a whole number or as an `Offset`, in the same form as all cuts it is compared with.
      below: how many pieces begin below it.
      upto: how many pieces begin at it or below: it lies in piece upto - 1.
      behind: ln of the number of points, divided by 2^bits, from the last start below it up to it.
      ahead: ln of the number of points, divided by 2^bits, from it to the first start above it.
    """

    position: Any
    below: Int[Array, ""]
    upto: Int[Array, ""]
    behind: Float[Array, ""]
    ahead: Float[Array, ""]

    def least(self, other: "Cut") -> "Cut":
        """The lower one of two."""
        return select(other.precedes(self), other, self)

    def greatest(self, other: "Cut") -> "Cut":
        """The higher one of two."""
        return select(self.precedes(other), other, self)

    def precedes(self, other: "Cut") -> Bool[Array, ""]:
        """Whether it is the lower one of two."""
        less = offsets.less if isinstance(self.position, Offset) else wide.less
        return less(self.position, other.position)

    def log_length(self, other: "Cut", bits: Any = 0) -> Float[Array, ""]:
        """ln of the number of points, divided by 2^bits, up to another cut, which is no lower; bits is 0 for `Offset`s."""
        if isinstance(self.position, Offset):
            return offsets.distance(self.position, other.position).log
        return _log_of(wide.log_parts(wide.subtract(other.position, self.position)), self.position.shape[-1], bits)


@frozen
class Pieces:
    """A function on {0, ..., last}: `values[i]` from `starts[i]` up to the next start; empty pieces count for nothing.

    Attributes:
      starts: increasing, the first is 0; shape (pieces, limbs), where the number of pieces is a power of two or, for a peak, a multiple of
        64. Equal starts make empty pieces. `Starts` of a peak are made into whole rows only where a row is needed.
      values: shape (pieces,).
      last: the last point T of the range.
      end: one beyond the last piece, 2^exponent + 1, where 2^exponent is the least power of two >= T. If T is not a power of
        two, the function is continued on (T, 2^exponent], by pieces of its own.
      exponent: see `end`; int32.
      shape: what `longest_runs` may assume (static). "walk": neighbouring values differ by at most 1, and empty pieces never dip below
        both the nearest non-empty ones. "peak": a function that rises by 1 at each step up to its greatest value and then falls by 1 at
        each, up to empty pieces at the end; the last step up and the first one down may be larger, by the same amount. "any": nothing.
    """

    starts: Any
    values: Float[Array, "pieces"]
    last: UInt32[Array, "limbs"]
    end: UInt32[Array, "limbs"]
    exponent: Int[Array, ""]
    shape: str = static(default="any")

    @property
    def count(self) -> int:
        """Number of pieces, empty ones included."""
        return self.starts.shape[0]

    @property
    def limbs(self) -> int:
        """Limbs of a position."""
        return self.starts.shape[1]

    @property
    def is_peak(self) -> bool:
        """Whether it is promised to rise step by step and then to fall, which makes the fast ways available."""
        return self.shape == "peak"

    def ends(self) -> UInt32[Array, "pieces limbs"]:
        """One beyond the last point of each piece."""
        if isinstance(self.starts, Starts):
            return self.at(jnp.arange(1, self.count + 1, dtype=jnp.int32))
        return wide.concatenate(self.starts[1:], self.end[None])

    @jax.jit  # here and below: functions that are called often are traced once per shape
    def at(self, index: Int[Array, "*i"]) -> UInt32[Array, "*i limbs"]:
        """The starts of these pieces, and `end` for the piece behind the last one."""
        if isinstance(self.starts, Starts):
            return self.starts.at(index)
        start = wide.rows_of(self.starts)(jnp.minimum(index, self.count - 1))
        return wide.select(index < self.count, start, jnp.broadcast_to(self.end, start.shape))

    def written_out(self) -> "Pieces":
        """The same, with starts as whole rows."""
        if not isinstance(self.starts, Starts):
            return self
        return dataclasses.replace(self, starts=self.at(jnp.arange(self.count, dtype=jnp.int32)))

    def search(self, position: UInt32[Array, "limbs"], *, side: str = "left") -> Int[Array, ""]:
        """How many starts are < position (side="left") or <= position (side="right")."""
        if isinstance(self.starts, Starts):
            return self.starts.search(position, side=side)
        return wide.search(self.starts, position, side=side)

    def searcher(self) -> Callable[..., Int[Array, ""]]:
        """`search`, for many positions, as in a loop."""
        return self.search if isinstance(self.starts, Starts) else wide.searcher(self.starts)

    @jax.jit
    def cut(self, position: UInt32[Array, "limbs"], bits: Any = 0) -> Cut:
        """The cut before this position, for lengths in units of 2^bits points."""
        # A start is at most p if it is less than p + 1: one loop searches for both.
        after = wide.add(position, wide.one(self.limbs))
        below, upto = jax.vmap(self.search)(jnp.stack([position, after]))
        behind = _log_of(wide.log_parts(wide.subtract(position, self.at(below - 1))), self.limbs, bits)
        ahead = _log_of(wide.log_parts(wide.subtract(self.at(upto), position)), self.limbs, bits)
        return Cut(position=position, below=below, upto=upto, behind=behind, ahead=ahead)

    def log_lengths(self, stop: UInt32[Array, "limbs"] | None = None, bits: Any = 0) -> Float[Array, "pieces"]:
        """ln of the number of points, divided by 2^bits, of each piece, or of those below `stop`, which is one of the last points."""
        return _log_of(self.log_parts(stop), self.limbs, bits)

    def log_parts(self, stop: UInt32[Array, "limbs"] | None = None) -> LogParts:
        """The same, with an exponent for each piece."""
        stop = self.end if stop is None else stop
        if isinstance(self.starts, Starts):
            return self.starts.log_lengths(stop)
        return wide.log_parts(self._lengths(stop))

    def lengths(self, stop: UInt32[Array, "limbs"]) -> Float[Array, "pieces"]:
        """The lengths themselves, if starts are whole rows of at most `wide.FLOAT_LIMBS` limbs."""
        return wide.as_float(self._lengths(stop))

    def _lengths(self, stop: UInt32[Array, "limbs"]) -> UInt32[Array, "pieces limbs"]:
        starts = self.starts if stop is self.end else wide.minimum(self.starts, stop[None])
        return wide.subtract(wide.concatenate(starts[1:], stop[None]), starts)

    def nonempty(self) -> Bool[Array, "pieces"]:
        """Which pieces have a point."""
        if isinstance(self.starts, Starts):
            return ~jnp.isneginf(self.log_lengths())
        return ~wide.equal(self.starts, self.ends())

    def locate(self, position: UInt32[Array, "limbs"]) -> Int[Array, ""]:
        """Index of the piece that holds `position`."""
        return self.search(position, side="right") - 1


def _log_of(parts: LogParts, limbs: int, bits: Any) -> Float[Array, "*n"]:
    """The logarithm in units of 2^bits; up to `wide.FLOAT_LIMBS` limbs, where all exponents are 0, so is bits."""
    return parts.fraction if limbs <= wide.FLOAT_LIMBS else parts.over(bits)


def from_steps(points: UInt32[Array, "n limbs"], first: Array, steps: Array, exponent: Array) -> Pieces:
    """Pieces on {0, ..., 2^exponent} that start at value `first` and change by steps[i] in {-1, 0, 1} right after points[i].

    `points` is increasing, with n = 2^b - 1, and among equal points steps never rise after a fall (so that no empty piece dips
    below its neighbours); a point 2^exponent (padding, step 0) makes an empty piece.
    """
    walk = jnp.concatenate([first[None], first + jnp.cumsum(steps, dtype=jnp.int32)])
    return _unit_pieces(_after(points), walk, exponent, "walk")


def from_peak(points: UInt32[Array, "n limbs"] | scaled.Scaled, rises: Array, falls: Array, exponent: Array) -> Pieces:
    """`from_steps` for `rises` steps up from the value `falls`, then `falls` steps down, then padding: no sum is needed."""
    rows, limbs = points.shape
    step = jnp.minimum(jnp.arange(rows + 1, dtype=jnp.int32), rises + falls)
    if isinstance(points, scaled.Scaled):
        end = wide.add(wide.power_of_two(exponent, limbs), wide.one(limbs))
        starts: Any = Starts(points=points, used=rises + falls, later=None, end=end)
    else:
        starts = _after(points)
    return _unit_pieces(starts, falls + jnp.minimum(step, 2 * rises - step), exponent, "peak")


def _after(points: UInt32[Array, "n limbs"]) -> UInt32[Array, "pieces limbs"]:
    """0, and the position right after each point."""
    limbs = points.shape[1]
    one = wide.one(limbs)
    return wide.concatenate(jnp.zeros((1, limbs), jnp.uint32), wide.add(points, one[None]))


def _unit_pieces(starts: Any, walk: Array, exponent: Array, shape: str) -> Pieces:
    """Pieces on {0, ..., 2^exponent}."""
    limbs = starts.shape[1]
    last = wide.power_of_two(exponent, limbs)
    end = wide.add(last, wide.one(limbs))
    return Pieces(starts=starts, values=walk.astype(float), last=last, end=end, exponent=exponent, shape=shape)


def from_breakpoints(starts: list[int], values: list[float], last: int, *, beyond: float) -> Pieces:
    """Host-side builder: values[i] on {starts[i], ..., starts[i+1] - 1}, up to `last`; `beyond` on (last, 2^exponent].

    Raises:
      TypeError: starts or last are not integers, or values are not numbers.
      ValueError: starts that do not begin at 0 and increase strictly up to at most `last`, a `last` above 2^4096, lengths that differ,
        or values that the default float takes for NaN or infinity (-inf is for `beyond` only) or for 0, or that are so large that it cannot
        hold the number less by 1 (above 2^24; 2^53 under `jax.enable_x64(True)`).
    """
    starts = [
        arguments.integer(f"starts[{i}]", start, at_least=0)
        for i, start in enumerate(arguments.several("starts", starts))
    ]
    values = [_value(f"values[{i}]", value) for i, value in enumerate(arguments.several("values", values))]
    last = arguments.integer("last", last, at_least=0, at_most=1 << wide.MAX_BITS)
    beyond = -math.inf if beyond == -math.inf else _value("beyond", beyond)
    if not starts or starts[0] != 0 or any(a >= b for a, b in itertools.pairwise(starts)):
        raise ValueError(f"starts must begin with 0 and increase strictly, got {starts[:5]}...")
    if len(values) != len(starts):
        raise ValueError(f"values must have one entry a start, got {len(values)} for {len(starts)} starts")
    if last < max(starts[-1], 1):
        raise ValueError(f"last must be >= 1 and not below the last start, got {last}")
    exponent = (last - 1).bit_length()
    end = (1 << exponent) + 1
    capacity = 1 << len(starts).bit_length()
    filled = [*starts, last + 1, *[end] * (capacity - len(starts) - 1)]
    bits = end.bit_length()
    wide_starts = wide.from_ints(filled, bits)
    return Pieces(
        starts=wide_starts,
        values=jax.device_put(np.array([*values, *[beyond] * (capacity - len(values))], jnp.result_type(float))),
        last=wide.from_ints([last], bits)[0],
        end=wide.from_ints([end], bits)[0],
        exponent=jnp.int32(exponent),
    )


def countable(pieces: Pieces) -> Bool[Array, ""]:
    """Whether floats distinguish the values of all pieces that have a point from those that differ by 1; -inf is allowed."""
    told = (jnp.abs(pieces.values) <= arguments.most_counted()) | jnp.isneginf(pieces.values)
    return jnp.all(told | ~pieces.nonempty())


def _value(name: str, value: Any) -> float:
    """A value that floats distinguish from those that differ by 1."""
    most = float(arguments.most_counted())
    return float(arguments.real(name, value, at_least=-most, at_most=most))


@frozen
class Crest:
    """Where a peak is greatest: the last point before its top piece and that piece's first one, and the pieces that hold them."""

    points: UInt32[Array, "2 limbs"]
    pieces: Int[Array, "2"]


def crest(pieces: Pieces) -> Crest | None:
    """The crest of a peak; None for other functions."""
    if not pieces.is_peak:
        return None
    top = pieces.at(top_of_peak(pieces))
    before = wide.select(wide.is_zero(top), top, wide.subtract(top, wide.one(pieces.limbs)))
    points = jnp.stack([before, top])
    return Crest(points=points, pieces=jax.vmap(pieces.locate)(points))


def greatest(pieces: Pieces, found: Crest | None = None) -> Float[Array, ""]:
    """The greatest value on {0, ..., last}; the crest of a peak is computed if it is not given."""
    found = found or crest(pieces)
    if found is None:
        there = pieces.nonempty()
        if pieces.shape == "any":  # others end with the range
            there = there & wide.less_equal(pieces.starts, jnp.broadcast_to(pieces.last, pieces.starts.shape))
        return jnp.max(jnp.where(there, pieces.values, -jnp.inf))
    return jnp.max(pieces.values[found.pieces])


def best_between(
    pieces: Pieces, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]
) -> tuple[Float[Array, ""], UInt32[Array, "limbs"]]:
    """The greatest value on {low, ..., high - 1} and the lowest point that has it; -inf and any point when there is none."""
    return best_of(pieces, crest(pieces), pieces.cut(low), pieces.cut(high))


@jax.jit
def best_of(
    pieces: Pieces, crest: Crest | None, low: Cut, high: Cut
) -> tuple[Float[Array, ""], UInt32[Array, "limbs"]]:
    """`best_between` two cuts, given the crest of these pieces."""
    if crest is not None:
        # The function rises up to the point before the top piece's start and falls from there on. The point of the range that is nearest
        # to either is that point itself, or an end of the range.
        nearest = jnp.where(wide.less(crest.points, high.position[None]), crest.pieces, high.below - 1)
        found = jnp.where(wide.less(crest.points, low.position[None]), low.upto - 1, nearest)
        values = pieces.values[found]
        winner = jnp.where(values[0] >= values[1], found[0], found[1])
    else:
        index = jnp.arange(pieces.count, dtype=jnp.int32)
        offered = pieces.nonempty() & (index >= low.upto - 1) & (index < high.below)
        best = jnp.max(jnp.where(offered, pieces.values, -jnp.inf))
        winner = jnp.min(jnp.where(offered & (pieces.values == best), index, pieces.count - 1))
    value = jnp.where(wide.less(low.position, high.position), pieces.values[winner], -jnp.inf)
    return value, wide.maximum(pieces.at(winner), low.position)


def top_of_peak(pieces: Pieces) -> Int[Array, ""]:
    """Index of the greatest value of a peak."""
    return jnp.sum(pieces.values[1:] > pieces.values[:-1], dtype=jnp.int32)


def digits_around_top(pieces: Pieces) -> Int[Array, "pieces"]:
    """For a peak: binary digits of the lengths of pieces top - e, ..., top + e, e = 0, 1, ..., as far as there are such pieces."""
    if isinstance(pieces.starts, Starts):
        return pieces.starts.digits_around(top_of_peak(pieces))
    after, count = top_of_peak(pieces) + 1, pieces.count
    error = jnp.arange(count, dtype=jnp.int32)

    def ends_of_runs(around: Array) -> tuple[Array, Array]:
        first = wide.along_rows(lambda rows: rows[::-1], around)
        first = wide.select(error < after, first, jnp.zeros_like(first))
        return first, wide.select(error < count - after, around, jnp.broadcast_to(pieces.end, around.shape))

    # In one rotation of the starts, those behind the top come first and those up to it last: no gathers.
    around = once(lambda starts: wide.along_rows(lambda rows: jnp.roll(rows, -after, axis=0), starts), pieces.starts)
    # A subtraction reads many limbs several times, but a few only once.
    first, stop = once(ends_of_runs, around) if pieces.limbs > SHORT_ROW else ends_of_runs(around)
    return wide.bit_length(wide.subtract(stop, first))


def runs(values: Float[Array, "n"]) -> tuple[Int[Array, "n"], Int[Array, "n"]]:
    """For each i the longest run left[i], ..., right[i]-1 around i on which no value is below values[i].

    Binary lifting over a table of minima of 1, 2, 4, ... consecutive values: n log n, no data-dependent loop. n must be a
    power of two, and no value -inf.
    """
    n = values.shape[0]
    minima = [values]  # minima[k][i] = min of values[i : i + 2^k]; where that leaves the array, -inf stops the search
    for k in range(n.bit_length() - 1):
        step = 1 << k
        outside = jnp.full((step,), -jnp.inf, values.dtype)
        minima.append(jnp.minimum(minima[k], jnp.concatenate([minima[k][step:], outside])))
    left = right = jnp.arange(n, dtype=jnp.int32)
    for k in reversed(range(len(minima))):
        stride = jnp.int32(1 << k)
        ahead = minima[k][jnp.minimum(right, n - 1)]
        right = jnp.where((right < n) & (ahead >= values), right + stride, right)
        behind = minima[k][jnp.maximum(left - stride, 0)]
        left = jnp.where((left >= stride) & (behind >= values), left - stride, left)
    return left, right


def longest_runs(pieces: Pieces) -> tuple[Float[Array, "r"], Int[Array, "r"], Int[Array, "r"]]:
    """Runs of pieces (value, first, stop): for every value v, all maximal runs on which the function is >= v are among them.

    Runs may be of empty pieces only; their length then is 0.
    """
    if pieces.shape != "any":
        return _runs_of_walk(pieces)
    nonempty = pieces.nonempty()
    left, right = runs(jnp.where(nonempty, pieces.values, jnp.inf))  # empty pieces break no run
    return jnp.where(nonempty, pieces.values, -jnp.inf), left, right


def _runs_of_walk(pieces: Pieces) -> tuple[Float[Array, "r"], Int[Array, "r"], Int[Array, "r"]]:
    """`longest_runs` for a walk with steps -1, 0, 1: matching brackets, found by one integer sort.

    Step i leads from piece i to piece i+1. Going up to v opens a run of {values >= v} at piece i+1, going down from v closes it
    behind piece i. Sorted by (v, i), the steps of one level alternate, so each closing step finds its opening one right before it;
    a run that is open from the beginning starts at piece 0, one that is never closed ends with the last piece.
    """
    count = pieces.count
    walk = pieces.values.astype(jnp.int32)
    steps = walk[1:] - walk[:-1]
    index = jnp.arange(1, count, dtype=jnp.int32)  # step i, numbered by the piece it leads to
    # Values lie within +-count of the first one, so one word holds level, index and direction up to 2^14 pieces.
    level = jnp.where(steps == 0, 2 * count + 1, jnp.maximum(walk[1:], walk[:-1]) - walk[0] + count)
    rises = (steps > 0).astype(jnp.int32)
    if count <= 1 << 14:
        key = lax.sort((level * count + index) * 2 + rises)
        level, index, rises = key // (2 * count), key // 2 % count, key % 2
    else:
        level, index, rises = sorting.sort([level, index], rises)
    level_before = jnp.concatenate([jnp.full((1,), -1, jnp.int32), level[:-1]])
    level_after = jnp.concatenate([level[1:], jnp.full((1,), -1, jnp.int32)])
    index_before = jnp.concatenate([jnp.zeros((1,), jnp.int32), index[:-1]])
    falls = rises == 0
    first = jnp.where(falls, jnp.where(level_before == level, index_before, 0), index)
    stop = jnp.where(falls, index, count)
    real = (level <= 2 * count) & (falls | (level_after != level))
    value = jnp.where(real, (level - count + walk[0]).astype(pieces.values.dtype), -jnp.inf)
    # The whole range, at its least value: no step need lead down to it.
    least = jnp.min(jnp.where(pieces.nonempty(), pieces.values, jnp.inf))
    return (
        jnp.concatenate([value, least[None]]),
        jnp.concatenate([first, jnp.zeros((1,), jnp.int32)]),
        jnp.concatenate([stop, jnp.full((1,), count, jnp.int32)]),
    )
