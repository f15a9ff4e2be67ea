"""Tuples weighed by their largest rank error: the part of `joint` that finds values which many points share.

For fractions f_j of n points let e_j(z) = max{#{x < z} - k_j, k_j - #{x <= z}}, with k_j = f_j n rounded to a multiple of 1/q, q = PARTS:
below 0 it is the depth at which k_j lies within the points equal to z. A tuple (z_1, ..., z_m), in order or not, has the weight exp(-r
max_j e_j(z_j)) times the base weights of its z_j; what is released is its running maximum, (z_1, max{z_1, z_2}, ...).

**Sensitivity.** When a point comes, q k_j moves by floor(q f_j) or ceil(q f_j), and both counts by 0 or 1, the second if the first. So q
e_j moves by max{ceil(q f_j), ceil(q (1 - f_j))} at most, up or down, and the largest e_j by w = max{ceil(q f_m), ceil(q (1 - f_1))} / q:
the log of a weight by r w.

**Utility.** If all e_j(z_j) <= t, so are those of the running maximum: its j-th part is some z_i with i <= j and z_i >= z_j, so that as
many points lie up to it as up to z_j, and k_i + t <= k_j + t below it. Some z has e_j <= 0 for each j, so that all tuples weigh the product
of m base weights of a point at least.

**Levels.** With x_1 <= ... <= x_n the points, e_j <= t from x_a to x_b, both included, where a = ceil(k_j - t) and b = floor(k_j + t) + 1
(the first point of the domain if a < 1, the last if b > n). So the tuples with max e <= t are a product of m intervals, of weight W_t, and
all weights add up to the sum of W_t (exp(-r t) - exp(-r (t + 1/q))) over the multiples t of 1/q: a run draws t, then each z_j on its own.
For t < 0 an interval is a value that 2 |t| points or more share. No W_t is above 1: what is drawn beyond t adds up to exp(-r t) at most, so
that a run looks at levels from the least one t_0 with tuples on, until that is 2^-64 of what t_0 has.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import bisection, logspace, random
from dpjax.core.pytree import frozen
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.optimizers.quantiles.base import nearest_rank

PARTS = 16  # q
MOST_ROWS = 2**30 // PARTS - 1  # so that sums of multiples of 1/q are int32
BLOCK = 4096  # levels at once, of a run; a power of two
BATCH = 64  # of a law
NEGLIGIBLE = 45.0  # nats: coins look at 64 bits

# ln of how much each base measure gives to start, ..., stop - 1.
LogWeight = Callable[[UInt32[Array, "n limbs"], UInt32[Array, "n limbs"]], Float[Array, "measures n"]]


@frozen
class Ranges:
    """Where each output may lie at some level: start, ..., stop - 1 if there are any."""

    start: UInt32[Array, "*levels outputs limbs"]
    stop: UInt32[Array, "*levels outputs limbs"]
    there: Bool[Array, "*levels outputs"]


def width(fractions: UInt32[Array, "outputs"]) -> Float[Array, ""]:
    """w: how far one more point moves the largest rank error at most."""
    up = np.uint32(2**32 // PARTS)
    either = jnp.maximum(fractions, ~fractions + np.uint32(1))
    return (jnp.max((either - np.uint32(1)) // up) + np.uint32(1)).astype(float) / PARTS


def ranks(fractions: UInt32[Array, "outputs"], n: Int[Array, ""]) -> Int[Array, "outputs"]:
    """q k_1, ..., q k_m."""
    return nearest_rank(fractions, PARTS * n)


def levels(rows: int) -> Int[Array, "levels"]:
    """q t for all levels that n <= rows points can have: from -n/2, n points at one place, to n, where everything is allowed."""
    if rows > MOST_ROWS:
        raise ValueError(f"shared=True takes points of at most {MOST_ROWS} rows, got {rows}")
    return jnp.arange(-PARTS * (rows // 2 + 1), PARTS * rows + 1, dtype=jnp.int32)


def ranges(
    points: Points, ranks: Int[Array, "outputs"], level: Int[Array, ""], beyond: UInt32[Array, "limbs"]
) -> Ranges:
    """Of sorted points, by q k_j and q t; the domain ends before `beyond`."""
    n, limbs = points.n_valid, beyond.shape[-1]
    one = wide.from_uint32(jnp.uint32(1), limbs)
    before, after = -((level - ranks) // PARTS) - 1, (ranks + level) // PARTS  # rows a - 1 and b - 1, from 0
    start = wide.select(before < 0, jnp.zeros_like(beyond)[None], _row(points, before, limbs))
    stop = wide.select(
        after < n, wide.add(_row(points, after, limbs), jnp.broadcast_to(one, start.shape)), beyond[None]
    )
    there = wide.less(start, stop) & (before < n) & (after >= 0)
    return Ranges(start=start, stop=stop, there=there)


def _row(points: Points, at: Int[Array, "k"], limbs: int) -> UInt32[Array, "k limbs"]:
    return wide.resize(points.x[jnp.clip(at, 0, points.rows - 1)], limbs)


def log_steps(levels: Int[Array, "levels"], rate: Float[Array, ""], last: Int[Array, ""]) -> Float[Array, "levels"]:
    """ln(exp(-r t) - exp(-r t')) of evenly spaced q t, t' the next one; ln exp(-r t) for the last of all, as beyond it are no tuples."""
    decay, step = -rate / PARTS * levels.astype(float), (levels[1] - levels[0]).astype(float)
    return decay + jnp.where(levels == last, 0.0, logspace.log1mexp(-rate / PARTS * step))


def weigh(each: Ranges, log_weight: LogWeight) -> Float[Array, "measures *levels outputs"]:
    """ln of the base weight of every range, -inf where there is none."""
    shape, limbs = each.there.shape, each.start.shape[-1]
    start = each.start.reshape(-1, limbs)
    unit = jnp.broadcast_to(wide.from_uint32(jnp.uint32(1), limbs), start.shape)
    there = each.there.reshape(-1)
    logs = log_weight(start, wide.select(there, each.stop.reshape(-1, limbs), wide.add(start, unit)))
    return jnp.where(there[None], logs, -jnp.inf).reshape(-1, *shape)


def log_total(
    lengths: Float[Array, "stretches"], ranks: Int[Array, "outputs"], n: Int[Array, ""], rate: Float[Array, ""]
) -> Float[Array, ""]:
    """ln of the weight of all tuples where n points, no two at one place, cut the axis into stretches of these weights; by whole k_j."""
    level = jnp.arange(lengths.shape[0], dtype=jnp.int32)
    first, last = jnp.maximum(ranks[:, None] - level[None], 0), jnp.minimum(ranks[:, None] + level[None], n)
    up_to = jnp.concatenate([jnp.zeros(1), jnp.cumsum(lengths)])
    tuples = jnp.sum(jnp.log(up_to[last + 1] - up_to[first]), axis=0)
    return logspace.logsumexp(tuples + log_steps(PARTS * level, rate, PARTS * level[-1]))


@dataclasses.dataclass(frozen=True)
class Levels:
    """All levels of a run, in blocks of `BLOCK`.

    Attributes:
      ranges: where each output may lie at some level.
      log_weight: of the base measures.
      levels: q t.
    """

    ranges: Callable[[Int[Array, ""]], Ranges]
    log_weight: LogWeight
    levels: Int[Array, "levels"]

    @property
    def _digits(self) -> int:
        """Of the place of a level within its block."""
        return min(self._depth, BLOCK.bit_length() - 1)

    @property
    def _depth(self) -> int:
        """Of the place of a level."""
        return (self.levels.shape[0] - 1).bit_length()

    def _tuples(self, level: Int[Array, ""]) -> Float[Array, "measures"]:
        """ln W_t."""
        return jnp.sum(weigh(self.ranges(level), self.log_weight), axis=1)

    def _of_block(self, block: Int[Array, ""], rate: Float[Array, ""]) -> Float[Array, "measures block"]:
        """ln of what is drawn from each level of a block; nothing behind the last one."""
        place = (block << self._digits) + jnp.arange(1 << self._digits, dtype=jnp.int32)
        level = self.levels[0] + place
        logs = jax.vmap(self._tuples)(level).T + log_steps(level, rate, self.levels[-1])[None]
        return jnp.where(place < self.levels.shape[0], logs, -jnp.inf)

    def log_blocks(self, rate: Float[Array, ""]) -> Float[Array, "measures blocks"]:
        """ln of what is drawn from each block; -inf for those that never are."""
        count = self.levels.shape[0]
        first = bisection.first_where(
            lambda place: jnp.all(self.ranges(self.levels[0] + place).there), jnp.int32(0), jnp.int32(count), count
        )
        tuples = self._tuples(self.levels[0] + first)
        nats = NEGLIGIBLE - jnp.max(tuples) - logspace.log1mexp(-rate / PARTS)
        last = first.astype(float) + jnp.minimum(PARTS * nats / rate, float(count)) + 1
        last = jnp.minimum(last, count - 1).astype(jnp.int32)

        def step(block: Array, found: Array) -> Array:
            return found.at[:, block].set(logspace.logsumexp(self._of_block(block, rate)))

        nothing = jnp.full((tuples.shape[0], 1 << (self._depth - self._digits)), -jnp.inf)
        return lax.fori_loop(first >> self._digits, (last >> self._digits) + 1, step, nothing)

    def draw(
        self, key: Array, by_block: Float[Array, "blocks"], measure: Int[Array, ""], rate: Float[Array, ""]
    ) -> Int[Array, ""]:
        """q t by one measure: the block, then the level within it, as one draw from all levels would find them."""
        rarity = random.exponential(key, (self._depth + 1,))  # the last one for the choice of a single block
        block = logspace.descend(rarity[self._digits :], logspace.sum_tree(by_block))
        within = logspace.sum_tree(self._of_block(block, rate)[measure])
        return self.levels[0] + (block << self._digits) + logspace.descend(rarity, within)


def running_maximum(z: UInt32[Array, "outputs limbs"]) -> UInt32[Array, "outputs limbs"]:
    """What is released."""
    return lax.associative_scan(wide.maximum, z)


def split(
    at: Callable[[Int[Array, ""]], Ranges],
    levels: Int[Array, "levels"],
    rate: Float[Array, ""],
    low: UInt32[Array, "outputs limbs"],
    high: UInt32[Array, "outputs limbs"],
    log_weight: LogWeight,
) -> Float[Array, "2"]:
    """(ln of the weight of tuples whose running maximum has its j-th part in [low_j, high_j) for all j, ln of that of all others).

    All parts are below their `high` if each z_j is below the least of high_j, ..., high_m, and above their `low` if the first j of them
    have one at or above the greatest of low_1, ..., low_j. So what must be known of z_1, ..., z_j is how many of these m bounds they reach.
    """
    least = running_maximum(low)
    most = lax.associative_scan(wide.minimum, high, reverse=True)
    outputs, limbs = least.shape
    floor = wide.concatenate(jnp.zeros((1, limbs), jnp.uint32), least)  # of cell s = 0, ..., m: s bounds are reached

    def one(level: Array) -> Array:
        here = at(level)
        totals = weigh(here, log_weight)
        ceiling = wide.concatenate(least, here.stop[-1:])
        start = wide.maximum(here.start[:, None], floor[None])
        top = jnp.broadcast_to(wide.minimum(here.stop, most)[:, None], start.shape)
        last = jnp.arange(outputs + 1, dtype=jnp.int32) == outputs
        stop = wide.select(last[None], top, wide.minimum(top, ceiling[None]))
        cells = weigh(Ranges(start=start, stop=stop, there=here.there[:, None] & wide.less(start, stop)), log_weight)
        above = wide.maximum(here.start, most)
        over = weigh(Ranges(start=above, stop=here.stop, there=here.there & wide.less(above, here.stop)), log_weight)
        return jax.vmap(_walk)(totals, cells, over)

    logs = lax.map(one, levels, batch_size=BATCH) + log_steps(levels, rate, levels[-1])[:, None, None]
    return logspace.logsumexp(logs.reshape(-1, 2).T)


def _walk(
    totals: Float[Array, "outputs"], cells: Float[Array, "outputs cells"], over: Float[Array, "outputs"]
) -> Float[Array, "2"]:
    """ln of the weights of good and of bad tuples at one level."""
    place = jnp.arange(cells.shape[1], dtype=jnp.int32)
    nothing = jnp.full(place.shape, -jnp.inf)

    def step(carry: tuple[Array, Array], here: tuple[Array, Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        good, bad = carry
        index, total, cell, beyond = here
        up_to, so_far = (lax.associative_scan(logspace.logaddexp, logs) for logs in (cell, good))
        fewer = jnp.concatenate([jnp.full(1, -jnp.inf), so_far[:-1]])
        reached = logspace.logaddexp(good + up_to, cell + fewer)
        short = place <= index  # output `index`, from 0, must reach index + 1 bounds
        lost = jnp.stack([logspace.logsumexp(good) + beyond, bad + total])
        bad = logspace.logsumexp(jnp.concatenate([lost, jnp.where(short, reached, -jnp.inf)]))
        return (jnp.where(short, -jnp.inf, reached), bad), None

    index = jnp.arange(totals.shape[0], dtype=jnp.int32)
    (good, bad), _ = lax.scan(step, (nothing.at[0].set(0.0), jnp.full((), -jnp.inf)), (index, totals, cells, over))
    return jnp.stack([good[-1], bad])
