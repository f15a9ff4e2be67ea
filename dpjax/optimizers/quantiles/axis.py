"""The real axis [0, 2^d), cut by sorted points, under a public mixture of base measures for all outputs of `joint` together.

A *measure* says what outputs weigh before any data are seen. `base` names the measures of the mixture; the choice among them is one more
output of the mechanism:

- "uniform": every output may lie anywhere, and weighs by length;
- "scales": half of the mixture is that; in the other half every output weighs by `scales`;
- "places": most of the mixture consists of these two, and a share of `PLACES` is spread evenly over `LEVELS` levels l. At level l all
  outputs lie in one of the 2^l intervals of length 2^(d-l), which all weigh the same; within it outputs weigh by length.

**Places.** Uniform outputs pay for the ratio of the domain to the gaps that hold them, m times for m outputs. Where data fill a share 2^-l
of the domain, most of this price is paid m times for the same information: in which of the 2^l intervals they lie. The measure of level l
pays for that once, with l ln 2, and m times for the ratio of the interval to the gaps. Levels are l = ceil(k d / LEVELS), k = 1, ...,
LEVELS, so that one of them has intervals at most 2^(d / LEVELS) times as long as they need to be (unless an end of intervals lies among the
data); those of the last level hold one integer.

So a gap between two points may contain ends of intervals: its beginning belongs to the interval of the point before, its rest to that of
the following point, and any intervals in between are empty. Below the first point the axis is cut as if there were a point before 0, and
above the last one as if there were one at 2^d.

The weight of a sorted tuple is the product of the weights of its outputs. So all sorted tuples together weigh no more than the tuples in
any order do, which is 1.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.optimizers.quantiles import chains, scales
from dpjax.optimizers.quantiles.chains import Pieces

LEVELS = 8
PLACES = 0.1  # little: where places help, they save far more nats than ln(1 / PLACES); elsewhere they cost ln(1 / (1 - PLACES))
BASES = (*scales.BASES, "places")
ANYWHERE = 2  # how many measures of "places" have no intervals


@frozen
class Gap:
    """The integers strictly between two neighbouring rows, start, ..., end - 1 if there are any.

    The interval of the row before ends before `stop`; that of the following row begins at `next_start`. `opens` says whether these are two.
    """

    start: UInt32[Array, "*s limbs"]
    end: UInt32[Array, "*s limbs"]
    stop: UInt32[Array, "*s limbs"]
    next_start: UInt32[Array, "*s limbs"]
    opens: Bool[Array, "*s"]

    def sides(self) -> tuple[UInt32[Array, "2 *s limbs"], UInt32[Array, "2 *s limbs"]]:
        """(starts, ends) of the integers in the interval of the row before, then of those in that of the row, if it is another."""
        first_end = wide.select(self.opens, wide.minimum(self.end, self.stop), self.end)
        second_start = wide.select(self.opens, wide.maximum(self.start, self.next_start), self.end)
        return jnp.stack([self.start, second_start]), jnp.stack([first_end, self.end])


@frozen
class Axis:
    """The domain and its measures.

    Attributes:
      bits: d.
      origin: the origin of `scales`.
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
        """ln of the weight of each measure divided by the number of its intervals."""
        weights = jnp.where(
            jnp.arange(self.measures, dtype=jnp.int32) < ANYWHERE,
            0.0,
            math.log(ANYWHERE * PLACES / (1 - PLACES) / LEVELS),
        )
        return weights - scales.LN2 * self.levels().astype(float)

    def end(self) -> UInt32[Array, "limbs"]:
        """2^d."""
        return wide.power_of_two(self.d(), self.wider)

    def d(self) -> Int[Array, ""]:
        """d as an array."""
        return jnp.asarray(self.bits, jnp.int32)

    def _log_size(self, measure: Int[Array, ""]) -> Float[Array, ""]:
        """ln of the length of an interval."""
        return scales.LN2 * (self.d() - self.levels()[measure]).astype(float)

    # ------------------------------------------------------------------------------------------------- weights

    def log_powers(
        self, start: UInt32[Array, "*n limbs"], stop: UInt32[Array, "*n limbs"], measure: Int[Array, ""], count: int
    ) -> Float[Array, "count *n"]:
        """ln of the sums of first, second, ... powers of what start, ..., stop - 1 weigh for one output, within an interval; -inf where
        there are none."""
        there = wide.less(start, stop)
        stop = wide.select(there, stop, wide.add(start, wide.one_like(start)))
        power = jnp.arange(1, count + 1, dtype=jnp.int32)
        length, size = wide.log(wide.subtract(stop, start)), self._log_size(measure)
        logs = jax.vmap(lambda i: length - i.astype(float) * size)(power)
        if self.base != "uniform":
            by_scale = jax.vmap(lambda i: scales.log_weight(start, stop, self.bits, self.origin, i))(power)
            logs = jnp.where(measure == 1, by_scale, logs)
        return jnp.where(there[None], logs, -jnp.inf)

    def _log_cells(self, points: Points, measure: Int[Array, ""]) -> Float[Array, "ranks"]:
        """ln of the weight of each point's value."""
        x = wide.resize(points.x, self.wider)
        logs = jnp.broadcast_to(-self._log_size(measure), x.shape[:1])
        if self.base != "uniform":
            logs = jnp.where(measure == 1, scales.log_density(x, self.bits, self.origin), logs)
        inside = wide.less(x, jnp.broadcast_to(self.end(), x.shape))
        return jnp.append(jnp.where(points.valid & inside, logs, -jnp.inf), -jnp.inf)

    # ------------------------------------------------------------------------------------------------- pieces

    def gap(
        self, points: Points, at: Int[Array, ""], level: Int[Array, ""], counted: Bool[Array, "rows"] | None = None
    ) -> Gap:
        """The gap before sorted row `at`, from 0 to n. Rows that are not `counted` are not points: they cut the axis just before them."""
        x = wide.resize(points.x, self.wider)
        first, last = at <= 0, at >= points.n_valid
        at_before = jnp.maximum(at - 1, 0)
        before, row = x[at_before], x[jnp.minimum(at, points.rows - 1)]
        after = wide.add(before, wide.one(self.wider))
        if counted is not None:
            after = wide.select(counted[at_before], after, before)
        size = wide.power_of_two(self.d() - level, self.wider)
        mask, zero = wide.subtract(size, wide.one(self.wider)), jnp.zeros_like(size)
        greatest = wide.subtract(self.end(), wide.one(self.wider))
        own = wide.select(first, zero, wide.minimum(before, greatest)) & ~mask
        next_start = wide.select(last, greatest, wide.minimum(row, greatest)) & ~mask
        return Gap(
            start=wide.select(first, zero, after),
            end=wide.select(last, self.end(), row),
            stop=wide.add(own, size),
            next_start=next_start,
            opens=~wide.equal(own, next_start),
        )

    def pieces(self, points: Points, outputs: int, measure: Int[Array, ""]) -> Pieces:
        """The pieces into which sorted points cut the axis."""
        rank = jnp.arange(points.rows + 1, dtype=jnp.int32)
        return self._pieces(points, points, points.valid, rank, outputs, measure, cut=False)

    def cut_pieces(
        self, points: Points, rows: Points, counted: Bool[Array, "rows"], outputs: int, measure: Int[Array, ""]
    ) -> Pieces:
        """The same, with gaps cut by sorted rows: the points, and others, which are not `counted` and come before points equal to them."""
        rank = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(counted & rows.valid, dtype=jnp.int32)])
        return self._pieces(points, rows, counted, rank, outputs, measure, cut=True)

    def _pieces(
        self,
        points: Points,
        rows: Points,
        counted: Bool[Array, "rows"],
        rank: Int[Array, "gaps"],
        outputs: int,
        measure: Int[Array, ""],
        cut: bool,
    ) -> Pieces:
        at, level = jnp.arange(rows.rows + 1, dtype=jnp.int32), self.levels()[measure]
        gaps = jax.vmap(lambda each: self.gap(rows, each, level, counted if cut else None))(at)
        there = at <= rows.n_valid
        opens = gaps.opens & there
        starts, ends = gaps.sides()
        log_h = [
            jnp.where(there[None], chains.complete(self.log_powers(start, stop, measure, outputs)), -jnp.inf)
            for start, stop in zip(starts[: self.sides], ends[: self.sides], strict=True)
        ]
        if cut:
            pieces = jnp.stack(log_h, axis=2).reshape(outputs + 1, -1)
            begins = jnp.stack([jnp.zeros_like(opens), opens], axis=1)[:, : self.sides].reshape(-1)
            tail = None
        else:
            pieces, begins = jnp.where(opens[None], log_h[-1], log_h[0]), opens
            tail = jnp.where(opens[None], log_h[0], -jnp.inf)[1:] if self.sides > 1 else None
        empty = wide.less(gaps.stop, gaps.next_start) & opens
        between = wide.subtract(
            wide.select(empty, gaps.next_start, wide.add(gaps.stop, wide.one_like(gaps.stop))), gaps.stop
        )
        size = self._log_size(measure)
        whole = chains.complete(-jnp.arange(outputs, dtype=jnp.int32).astype(float) * size)[-1]
        x = wide.resize(points.x, self.wider)
        no = jnp.zeros(1, bool)
        asked = jnp.arange(points.rows + 1, dtype=jnp.int32)
        piece_rank = jnp.repeat(rank, self.sides) if cut else rank
        last = jnp.searchsorted(piece_rank, asked, side="right").astype(jnp.int32) - 1 if cut else asked
        return Pieces(
            log_cell=self._log_cells(points, measure),
            inside=jnp.concatenate([no, wide.equal(x[1:], x[:-1]) & points.valid[1:], no]),
            log_gap=chains.ratios(pieces),
            log_tail=tail,
            rank=piece_rank,
            opens=begins,
            last=last,
            log_empty=jnp.where(empty, wide.log(between) - size, -jnp.inf) + whole,
            gap_rank=rank,
            n=points.n_valid,
            cut=cut,
        )

    @property
    def sides(self) -> int:
        """The number of sides of a gap, in order: what lies in the interval of the row before, then what lies in that of the row."""
        return 2 if self.base == "places" else 1

    # ------------------------------------------------------------------------------------------------- draws

    def stretch(
        self, points: Points, found: chains.Drawn, measure: Int[Array, ""]
    ) -> tuple[UInt32[Array, "outputs limbs"], UInt32[Array, "outputs limbs"]]:
        """For each output the integers start, ..., stop - 1 among which it lies; for outputs in empty intervals, all integers of these."""
        level, x = self.levels()[measure], wide.resize(points.x, self.wider)

        def one(kind: Array, at: Array, tail: Array) -> tuple[Array, Array]:
            gap = self.gap(points, at, level)
            starts, ends = gap.sides()
            side = (gap.opens & ~tail).astype(jnp.int32)
            cell = x[jnp.clip(jnp.where(kind == chains.UPPER, at - 1, at), 0, points.rows - 1)]
            between = kind == chains.BETWEEN
            start = wide.select(found.empty, gap.stop, wide.select(between, starts[side], cell))
            stop = wide.select(between, ends[side], wide.add(cell, wide.one(self.wider)))
            return start, wide.select(found.empty, gap.next_start, stop)

        return jax.vmap(one)(found.kind, found.at, found.tail)

    def interval(
        self, key: Array, start: UInt32[Array, "limbs"], stop: UInt32[Array, "limbs"], measure: Int[Array, ""]
    ) -> tuple[UInt32[Array, "limbs"], UInt32[Array, "limbs"]]:
        """A random one of the intervals that start, ..., stop - 1 consist of."""
        size = wide.power_of_two(self.d() - self.levels()[measure], self.wider)
        offset = wide.uniform(key, wide.subtract(stop, start)) & ~wide.subtract(size, wide.one(self.wider))
        chosen = wide.add(start, offset)
        return chosen, wide.add(chosen, size)

    def within(
        self,
        key: Array,
        start: UInt32[Array, "limbs"],
        stop: UInt32[Array, "limbs"],
        measure: Int[Array, ""],
        power: Int[Array, ""],
    ) -> UInt32[Array, "limbs"]:
        """One of start, ..., stop - 1, drawn by a power of their weights under a measure."""
        inside = wide.add(start, wide.uniform(key, wide.subtract(stop, start)))
        if self.base == "uniform":
            return inside
        return wide.select(measure == 1, scales.draw(key, start, stop, self.origin, power), inside)
