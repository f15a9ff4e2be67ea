"""The real axis [0, 2^d) as sorted points cut it, under a public mixture of base measures for all outputs of `joint` together.

A *measure* says what outputs weigh before they see data. `base` names those of the mixture; which of them is one more output of the
mechanism:

- "uniform": every output weighs anywhere, by its length;
- "scales": half of it that, half of it every output by `scales`;
- "places": most of it these two, `PLACES` of it spread evenly over `LEVELS` levels l: all outputs in one of the 2^l intervals of length
  2^(d-l), of which each weighs the same, by their lengths.

**Places.** Uniform outputs pay for the ratio of the domain to the gaps that hold them, m times for m outputs. Where data fill 2^-l of the
domain, wherever that is, most of this says m times the same: in which of the 2^l intervals they lie. The measure of level l pays for it
once, l ln 2, and m times for the ratio of the interval to the gaps. Levels are l = ceil(k d / LEVELS), k = 1, ..., LEVELS, so that one of
them has intervals at most 2^(d / LEVELS) times as long as they need to be (unless an end of intervals lies among the data); those of the
last level hold one integer.

So a stretch between two points may hold an end of intervals: what lies before it belongs to the interval of the point before, what lies
behind to that of the following point, and intervals between both are empty. Below the first point the axis is cut as if there were a point
before 0, and above the last one as if there were one at 2^d, both without length.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.optimizers.quantiles import scales, ties
from dpjax.optimizers.quantiles.chains import Stretches

LEVELS = 8
PLACES = 0.1  # little: where places help, they save far more nats than ln(1 / PLACES); elsewhere they cost ln(1 / (1 - PLACES))
BASES = (*scales.BASES, "places")
ANYWHERE = 2  # of the measures of "places": those that know no intervals


@frozen
class Parts:
    """What lies before each of some sorted rows, and after all of them, by each measure: a stretch each.

    Attributes:
      log_length: of the four parts of a stretch: the rest of the cell of the row before; the integers between both rows that lie in the
        interval of the row before (both are the tail of that interval, if the next row lies in another); the cell of the row up to it;
        the integers that lie in the interval of the row, if it is another (the head of it, before that cell on the axis: the order of
        the parts is that in which a draw looks at them).
      opens: whether the interval of the row begins within the stretch.
      log_empty: ln of the number of intervals between that of the row before and that of the row.
      rank: how many points lie below.
    """

    log_length: Float[Array, "measures stretches 4"]
    opens: Bool[Array, "measures stretches"]
    log_empty: Float[Array, "measures stretches"]
    rank: Int[Array, "stretches"]


@frozen
class Gap:
    """The integers strictly between two neighbouring rows, start, ..., end - 1 if there are any.

    The interval of the row before ends before `stop`, that of the following row begins at `next_start`; `opens` if they are two.
    """

    start: UInt32[Array, "*s limbs"]
    end: UInt32[Array, "*s limbs"]
    stop: UInt32[Array, "*s limbs"]
    next_start: UInt32[Array, "*s limbs"]
    opens: Bool[Array, "*s"]

    def sides(self) -> tuple[UInt32[Array, "2 *s limbs"], UInt32[Array, "2 *s limbs"]]:
        """(where they start, where they end) of those in the interval of the row before, then in that of the row, if it is another."""
        first_end = wide.select(self.opens, wide.minimum(self.end, self.stop), self.end)
        second_start = wide.select(self.opens, wide.maximum(self.start, self.next_start), self.end)
        return jnp.stack([self.start, second_start]), jnp.stack([first_end, self.end])


@frozen
class Axis:
    """The domain and its measures.

    Attributes:
      bits: d.
      origin: of scales.
      base: one of `BASES` (static).
    """

    bits: Int[Array, ""]
    origin: UInt32[Array, "wider"]
    base: str = static()

    @property
    def wider(self) -> int:
        """Limbs of positions, for up to 2^d + 1."""
        return self.origin.shape[-1]

    @property
    def measures(self) -> int:
        return {"uniform": 1, "scales": ANYWHERE, "places": ANYWHERE + LEVELS}[self.base]

    def levels(self) -> Int[Array, "measures"]:
        """l of each measure: 0 where all of the domain is one interval."""
        index = jnp.maximum(jnp.arange(self.measures, dtype=jnp.int32) - (ANYWHERE - 1), 0)
        return (index * self.d() + LEVELS - 1) // LEVELS

    def log_priors(self) -> Float[Array, "measures"]:
        """ln of the weight of each measure, over the number of its intervals."""
        weights = jnp.where(
            jnp.arange(self.measures, dtype=jnp.int32) < ANYWHERE,
            0.0,
            math.log(ANYWHERE * PLACES / (1 - PLACES) / LEVELS),
        )
        return weights - scales.LN2 * self.levels().astype(float)

    def unit(self) -> UInt32[Array, "limbs"]:
        return wide.from_uint32(jnp.uint32(1), self.wider)

    def end(self) -> UInt32[Array, "limbs"]:
        """2^d."""
        return wide.power_of_two(self.d(), self.wider)

    def log_weight(self, start: UInt32[Array, "n limbs"], stop: UInt32[Array, "n limbs"]) -> Float[Array, "kinds n"]:
        """ln of what start, ..., stop - 1 weigh for one output by the uniform measure, and by scales if there are such."""
        uniform = wide.log(wide.subtract(stop, start)) - self._log_size(jnp.int32(0))
        if self.base == "uniform":
            return uniform[None]
        return jnp.stack([uniform, scales.log_weight(start, stop, self.bits, self.origin)])

    def d(self) -> Int[Array, ""]:
        """d as an array."""
        return jnp.asarray(self.bits, jnp.int32)

    def _log_size(self, level: Int[Array, "*k"]) -> Float[Array, "*k"]:
        """ln of the length of an interval."""
        return scales.LN2 * (self.d() - level).astype(float)

    # ------------------------------------------------------------------------------------------------- stretches

    def gap(self, points: Points, at: Int[Array, ""], level: Int[Array, ""]) -> Gap:
        """Before row `at` of sorted ones, 0 to n."""
        x = wide.resize(points.x, self.wider)
        first, last = at <= 0, at >= points.n_valid
        before, row = x[jnp.maximum(at - 1, 0)], x[jnp.minimum(at, points.rows - 1)]
        size = wide.power_of_two(self.d() - level, self.wider)
        mask, zero = wide.subtract(size, self.unit()), jnp.zeros_like(size)
        greatest = wide.subtract(self.end(), self.unit())
        own = wide.select(first, zero, wide.minimum(before, greatest)) & ~mask
        next_start = wide.select(last, greatest, wide.minimum(row, greatest)) & ~mask
        return Gap(
            start=wide.select(first, zero, wide.add(before, self.unit())),
            end=wide.select(last, self.end(), row),
            stop=wide.add(own, size),
            next_start=next_start,
            opens=~wide.equal(own, next_start),
        )

    def cut(self, points: Points, counted: Bool[Array, "rows"] | None = None) -> Parts:
        """By sorted rows. Between equal ones there is the first part only. Rows that are not `counted` are no points; they only cut."""
        counted = points.valid if counted is None else counted & points.valid
        below = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(counted, dtype=jnp.int32)])
        at, levels = jnp.arange(points.rows + 1, dtype=jnp.int32), self.levels()
        gaps = jax.vmap(lambda level: jax.vmap(lambda each: self.gap(points, each, level))(at))(levels)
        there = (at <= points.n_valid)[None]
        opens = gaps.opens & there
        starts, ends = gaps.sides()
        filled = wide.less(starts, ends) & there[None]
        sides = self._weigh(starts, wide.select(filled, ends, wide.add(starts, scales.one_like(starts))))
        empty = wide.less(gaps.stop, gaps.next_start) & opens
        between = wide.subtract(
            wide.select(empty, gaps.next_start, wide.add(gaps.stop, scales.one_like(gaps.stop))), gaps.stop
        )
        tail, head = jnp.where(filled, sides, -jnp.inf)
        after, here = self._cells(points, counted, below)
        return Parts(
            log_length=jnp.stack([after, tail, here, head], axis=2),
            opens=opens,
            log_empty=jnp.where(empty, wide.log(between) - self._log_size(levels)[:, None], -jnp.inf),
            rank=below,
        )

    def _weigh(
        self, start: UInt32[Array, "2 measures n limbs"], stop: UInt32[Array, "2 measures n limbs"]
    ) -> Float[Array, "2 measures n"]:
        """ln of what start, ..., stop - 1 weigh for one output by each measure, within their interval."""
        logs = wide.log(wide.subtract(stop, start)) - self._log_size(self.levels())[None, :, None]
        if self.base == "uniform":
            return logs
        return logs.at[:, 1].set(scales.log_weight(start[:, 1], stop[:, 1], self.bits, self.origin))

    def _cells(
        self, points: Points, counted: Bool[Array, "rows"], below: Int[Array, "stretches"]
    ) -> tuple[Float[Array, "measures stretches"], Float[Array, "measures stretches"]]:
        """(the first part, the last part) of each stretch: equal points share the cell of their value (`ties`)."""
        rows, valid = points.rows, points.valid
        x = wide.resize(points.x, self.wider)
        place = jnp.arange(rows, dtype=jnp.int32)
        new = jnp.concatenate([jnp.ones(1, bool), ~wide.equal(x[1:], x[:-1])]) | (place == points.n_valid)
        first = lax.cummax(jnp.where(new, place, 0))
        stop = lax.cummin(jnp.where(jnp.append(new[1:], True), place + 1, rows), reverse=True)
        copies = below[stop] - below[first]
        cell = jnp.broadcast_to(-self._log_size(self.levels())[:, None], (self.measures, rows))
        if self.base != "uniform":
            cell = cell.at[1].set(scales.log_weight(x, wide.add(x, scales.one_like(x)), self.bits, self.origin))
        inside = wide.less(x, jnp.broadcast_to(self.end(), x.shape))
        here = jnp.where(
            (new & valid & inside)[None], cell + ties.log_width(jnp.zeros_like(copies), copies)[None], -jnp.inf
        )
        after = jnp.where(counted[None], cell + ties.log_width(below[1:] - below[first], copies)[None], -jnp.inf)
        none = jnp.full((self.measures, 1), -jnp.inf)
        return jnp.concatenate([none, after], axis=1), jnp.concatenate([here, none], axis=1)

    # ------------------------------------------------------------------------------------------------- draws

    def part(
        self, key: Array, points: Points, parts: Float[Array, "4"], at: Int[Array, ""], level: Int[Array, ""]
    ) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """One of the four parts of the stretch before row `at` by weight, from start to stop - 1."""
        part = logspace.draw(key, logspace.sum_tree(parts))
        x = wide.resize(points.x, self.wider)
        before, row = x[jnp.maximum(at - 1, 0)], x[jnp.minimum(at, points.rows - 1)]
        starts, ends = self.gap(points, at, level).sides()
        side = (part == 3).astype(jnp.int32)
        cell = wide.select(part == 0, before, row)
        between = (part == 1) | (part == 3)
        return wide.select(between, starts[side], cell), wide.select(between, ends[side], wide.add(cell, self.unit()))

    def empty(
        self, key: Array, points: Points, at: Int[Array, ""], level: Int[Array, ""]
    ) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """One of the intervals between that of row `at` - 1 and that of row `at`, from start to stop - 1."""
        gap = self.gap(points, at, level)
        size = wide.power_of_two(self.d() - level, self.wider)
        offset = wide.uniform(key, wide.subtract(gap.next_start, gap.stop)) & ~wide.subtract(size, self.unit())
        start = wide.add(gap.stop, offset)
        return start, wide.add(start, size)

    def within(
        self,
        key: Array,
        start: UInt32[Array, "limbs"],
        stop: UInt32[Array, "limbs"],
        measure: Int[Array, ""],
    ) -> UInt32[Array, "limbs"]:
        """One of start, ..., stop - 1, by a measure."""
        inside = wide.add(start, wide.uniform(key, wide.subtract(stop, start)))
        if self.base == "uniform":
            return inside
        return wide.select(measure == 1, scales.draw(key, start, stop, self.origin), inside)


# ---------------------------------------------------------------------------------------------------------- chains


def merged(parts: Parts, points: Points) -> Stretches:
    """Chains of all measures, see `of_measure`: each stretch is all of its rank, but for what ends an interval before it begins another."""
    opens, rank = parts.opens, parts.rank
    tail, rest = (logspace.logsumexp(side) for side in (parts.log_length[..., :2], parts.log_length[..., 2:]))
    return Stretches(
        log_length=jnp.where(opens, rest, logspace.logsumexp(parts.log_length)),
        rank=rank,
        last=jnp.arange(rank.shape[0], dtype=jnp.int32),
        n=points.n_valid,
        opens=opens,
        log_empty=parts.log_empty,
        gap_rank=rank,
        log_tail=jnp.where(opens, tail, -jnp.inf),
        merged=True,
    )


def in_parts(parts: Parts, points: Points) -> Stretches:
    """Chains of all measures, see `of_measure`: each part is a stretch of its own."""
    ranks = jnp.repeat(parts.rank, 4)
    in_order = jnp.array([0, 1, 3, 2], jnp.int32)
    opens = jnp.zeros(parts.log_length.shape, bool).at[..., 2].set(parts.opens)
    asked = jnp.arange(points.rows + 1, dtype=jnp.int32)
    return Stretches(
        log_length=parts.log_length[..., in_order].reshape(opens.shape[0], -1),
        rank=ranks,
        last=jnp.searchsorted(ranks, asked, side="right").astype(jnp.int32) - 1,
        n=points.n_valid,
        opens=opens.reshape(opens.shape[0], -1),
        log_empty=parts.log_empty,
        gap_rank=parts.rank,
        log_tail=jnp.full(parts.log_empty.shape, -jnp.inf),
    )


def of_measure(chains: Stretches, measure: Int[Array, ""]) -> Stretches:
    """The chain of one measure: lengths and intervals are its own, ranks those of all."""
    return dataclasses.replace(
        chains,
        log_length=chains.log_length[measure],
        opens=chains.opens[measure],
        log_empty=chains.log_empty[measure],
        log_tail=chains.log_tail[measure],
    )
