"""Chains of ranks: sums over all sorted tuples of outputs, weighed by what lies between neighbouring ones.

The real axis [0, 2^d) is cut into stretches, each with a rank, how many points lie below it. A sorted tuple y_1 <= ... <= y_m weighs

    exp(-kappa (|r_1 - t_1| + |r_2 - r_1 - t_2| + ... + |n - r_m - t_(m+1)|)),    r_j the rank of y_j,

and k outputs of one stretch of length M have a volume of M^k / k!, as they are sorted. Forward: the weight of all beginnings y_1 <= ...
<= y_j whose last output lies in a given stretch. The kernel exp(-kappa |g - t|) rises up to t and falls from there, so what comes from
further away than t is a first-order recursion, and what comes from nearer is a window: the end of one block of its length, and the
beginning of the next. All are sums of positive terms, kept as logarithms, and take O(n) steps for an output (and m more for stretches
with several outputs).

**Intervals.** The axis may be cut into intervals, in one of which all outputs of a tuple lie. Then sums over earlier stretches begin where
the interval does. A stretch between two points may hold the end of one interval, the beginning of another, and any number of empty
intervals between both, in each of which all outputs have one rank."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import logspace
from dpjax.core.pytree import frozen, static

SHORT = 256  # stretches: a loop along so few takes longer than one expression, which XLA works out across its vectors


@frozen
class Targets:
    """t_1, ..., t_(m+1) >= 0 as whole numbers and rests in [0, 1), so that large ones lose no digit."""

    whole: Int[Array, "gaps"]
    rest: Float[Array, "gaps"]

    def distance(self, index: Int[Array, ""], count: Int[Array, "*s"]) -> Float[Array, "*s"]:
        """|count - t_index|."""
        return jnp.abs((count - self.whole[index]).astype(float) - self.rest[index])


@frozen
class Stretches:
    """The axis in order, all ln of the length that one output sees.

    Attributes:
      log_length: of each stretch (-inf: there is none).
      rank: of each stretch; starts at 0 and rises by 0 or 1.
      last: the last stretch of rank r, for all r = 0, ..., n; past n it is anything.
      n: the number of points.
      opens: whether an interval begins with the stretch.
      log_empty: ln of the number of empty intervals within each gap between points.
      gap_rank: the rank of each gap.
      log_tail: of what lies in each gap before a stretch that opens an interval, if `merged`: the end of the interval before.
      merged: stretch r is all of rank r (static).
    """

    log_length: Float[Array, "stretches"]
    rank: Int[Array, "stretches"]
    last: Int[Array, "ranks"]
    n: Int[Array, ""]
    opens: Bool[Array, "stretches"]
    log_empty: Float[Array, "gaps"]
    gap_rank: Int[Array, "gaps"]
    log_tail: Float[Array, "gaps"]
    merged: bool = static(default=False)


def undivided(log_length: Float[Array, "stretches"], n: Int[Array, ""]) -> Stretches:
    """All of the axis is one interval, and stretch r all of rank r."""
    rank = jnp.arange(log_length.shape[0], dtype=jnp.int32)
    nothing = jnp.full(log_length.shape, -jnp.inf)
    no = jnp.zeros(log_length.shape, bool)
    return Stretches(
        log_length=log_length,
        rank=rank,
        last=rank,
        n=n,
        opens=no,
        log_empty=nothing,
        gap_rank=rank,
        log_tail=nothing,
        merged=True,
    )


def _add_up(logs: Float[Array, "*k n"], decay: Float[Array, "*k n"]) -> Float[Array, "*k n"]:
    """y_i = ln(exp(y_(i-1) - decay_i) + exp(logs_i)) along the last axis.

    First within rows of about sqrt(n) entries, all rows at a time, then from row to row, and what comes from the rows before fades along
    each: few steps, and each number meets few roundings. All of it lies across the rows, where steps are vectors.
    """
    n = logs.shape[-1]
    width = 1 << ((n - 1).bit_length() + 1) // 2
    pad = [(0, 0)] * (logs.ndim - 1) + [(0, -n % width)]

    def across(values: Array, fill: float) -> Float[Array, "width *k rows"]:
        rows = jnp.pad(values, pad, constant_values=fill).reshape(*values.shape[:-1], -1, width)
        return jnp.moveaxis(rows, -1, 0)

    def along(carry: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        log, step = here
        carry = logspace.logaddexp(carry - step, log)
        return carry, carry

    def fading(carry: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        log, step = here
        carry = carry - step
        return carry, logspace.logaddexp(carry, log)

    steps = across(decay, 0.0)
    nothing = jnp.full(steps.shape[1:], -jnp.inf)
    inside = lax.scan(along, nothing, (across(logs, -jnp.inf), steps))[1]
    of_rows = (jnp.moveaxis(inside[-1], -1, 0), jnp.moveaxis(jnp.sum(steps, axis=0), -1, 0))
    ends = jnp.moveaxis(lax.scan(along, nothing[..., 0], of_rows)[1], 0, -1)
    before = jnp.concatenate([nothing[..., :1], ends[..., :-1]], axis=-1)
    if n <= SHORT:
        faded = before[..., None] - jnp.cumsum(jnp.moveaxis(steps, 0, -1), axis=-1)
        found = logspace.logaddexp(jnp.moveaxis(inside, 0, -1), faded)
    else:
        found = jnp.moveaxis(lax.scan(fading, before, (inside, steps))[1], 0, -1)
    return found.reshape(*logs.shape[:-1], -1)[..., :n]


@frozen
class Borders:
    """Where intervals begin.

    Attributes:
      opens: for each rank, whether one does there.
      since: for each rank, that at which the interval began whose end, or inside, is the beginning of this rank.
      fresh: for each stretch, whether its interval began at its rank.
    """

    opens: Bool[Array, "ranks"]
    since: Int[Array, "ranks"]
    fresh: Bool[Array, "stretches"]


def borders(chain: Stretches) -> Borders:
    """Where the intervals of a chain begin."""
    place = jnp.arange(chain.last.shape[0], dtype=jnp.int32)
    if chain.merged:
        opens = fresh = chain.opens
    else:
        begun = jnp.cumsum(chain.opens, dtype=jnp.int32)
        up_to = begun[chain.last]
        earlier = jnp.concatenate([jnp.zeros(1, jnp.int32), up_to[:-1]])
        opens, fresh = up_to > earlier, begun > earlier[jnp.minimum(chain.rank, place.size - 1)]
    since = jnp.concatenate([jnp.zeros(1, jnp.int32), lax.cummax(jnp.where(opens, place, 0))[:-1]])
    return Borders(opens=opens, since=since, fresh=fresh)


def arrivals(
    chain: Stretches,
    cut: Borders,
    before: Float[Array, "stretches"],
    targets: Targets,
    index: Int[Array, ""],
    kappa: Float[Array, ""],
) -> Float[Array, "stretches"]:
    """ln of the weight that comes from all earlier stretches of an interval, each with its own weight `before`, over a gap with target
    t_index; of a stretch of a merged chain that opens an interval, what comes to its tail."""
    ranks = chain.last.shape[0]
    place = jnp.arange(ranks, dtype=jnp.int32)
    whole, rest = targets.whole[index], targets.rest[index]
    # What is at least `far` ranks away comes over gaps of t or more; what is nearer, over gaps below t.
    far = jnp.maximum(whole + (rest > 0).astype(jnp.int32), 1)
    window = far - 1
    size = jnp.maximum(window, 1)
    inside = place % size
    within, total, same = before, before, jnp.full(before.shape, -jnp.inf)
    if not chain.merged:
        anew = jnp.concatenate([jnp.ones(1, bool), chain.rank[1:] > chain.rank[:-1]]) | chain.opens
        within = _add_up(before, jnp.where(anew, jnp.inf, 0.0))
        total = within[chain.last]
        earlier = jnp.concatenate([jnp.full(1, -jnp.inf), jnp.where(anew[1:], -jnp.inf, within[:-1])])
        same = earlier - kappa * (whole.astype(float) + rest)
    total = jnp.where(place <= chain.n, total, -jnp.inf)
    faded, ends, starts = _add_up(
        jnp.stack([total, total[::-1], total - kappa * inside.astype(float)]),
        jnp.stack(
            [
                jnp.where(cut.opens, jnp.inf, kappa),
                jnp.where(inside == size - 1, jnp.inf, kappa)[::-1],
                jnp.where((inside == 0) | cut.opens, jnp.inf, 0.0),
            ]
        ),
    )
    beyond = _at(faded, place - far) - kappa * ((far - whole).astype(float) - rest)
    beyond = jnp.where(place - far >= cut.since, beyond, -jnp.inf)
    # The window r - size, ..., r - 1: the end of one block of its size, and the beginning of the next one. What is before `since` is cut.
    first = place - size
    start = (place - 1) - (place - 1) % size
    one_block = first % size == 0
    least = jnp.maximum(first, cut.since)
    end_part = _at(ends[::-1], least) - kappa * ((whole - (place - least)).astype(float) + rest)
    end_part = jnp.where((first >= 0) & (one_block | (least < start)), end_part, -jnp.inf)
    start_part = _at(starts, place - 1) - kappa * ((whole - place + start).astype(float) + rest)
    start_part = jnp.where(one_block, -jnp.inf, start_part)
    nearer = jnp.where(window > 0, logspace.logaddexp(end_part, start_part), -jnp.inf)
    across = logspace.logaddexp(beyond, nearer)
    if chain.merged:
        return across
    across = jnp.where(cut.fresh, -jnp.inf, across[jnp.minimum(chain.rank, ranks - 1)])
    return logspace.logaddexp(across, same)


def _at(logs: Float[Array, "n"], index: Int[Array, "k"]) -> Float[Array, "k"]:
    """-inf at negative places."""
    return jnp.where(index >= 0, logs[jnp.maximum(index, 0)], -jnp.inf)


@frozen
class Beginnings:
    """Of one more output: ln of the weight of what arrives in each stretch, of all beginnings that end there with it, and of all tuples
    of which it is the first output in the tail before a stretch (or, if it is the first of all, in an empty interval there)."""

    arrived: Float[Array, "*outputs stretches"]
    ended: Float[Array, "*outputs stretches"]
    tails: Float[Array, "*outputs stretches"]


def forward(chain: Stretches, targets: Targets, kappa: Float[Array, ""]) -> tuple[Float[Array, ""], Beginnings]:
    """ln of the weight of all tuples on a merged chain, and the beginnings for every output."""
    outputs, cut = targets.whole.shape[0] - 1, borders(chain)

    def step(carry: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Beginnings]:
        crowds, ended = carry
        arrived = _arrive(chain, cut, ended, targets, index, kappa)
        tails = _crowded(chain, outputs - index, index == 0) + arrived + _staying(chain, targets, kappa, index)
        tails = jnp.where(chain.opens, tails, -jnp.inf)
        arrived = jnp.where(chain.opens & (index > 0), -jnp.inf, arrived)
        crowds = _crowd(crowds, arrived, index, targets, kappa) + chain.log_length[None]
        ended = logspace.logsumexp(crowds.T)
        return (crowds, ended), Beginnings(arrived=arrived, ended=ended, tails=tails)

    nothing = jnp.full(chain.rank.shape, -jnp.inf)
    start = (jnp.full((outputs, chain.rank.shape[0]), -jnp.inf), nothing)
    (_, ended), kept = lax.scan(step, start, jnp.arange(outputs, dtype=jnp.int32))
    log_tails = logspace.logsumexp(kept.tails.reshape(-1))
    return logspace.logaddexp(logspace.logsumexp(ended + ending(chain, targets, kappa)), log_tails), kept


def _crowded(chain: Stretches, count: Int[Array, ""], all_of_them: Bool[Array, ""]) -> Float[Array, "stretches"]:
    """ln of the volume of so many outputs in each tail; with that of an empty interval each, if it is all of them."""
    volume = count.astype(float) * chain.log_tail
    volume = jnp.where(all_of_them, logspace.logaddexp(volume, chain.log_empty), volume)
    return volume - lax.lgamma(count.astype(float) + 1)


def _staying(chain: Stretches, targets: Targets, kappa: Float[Array, ""], index: Int[Array, ""]) -> Float[Array, "s"]:
    """ln of the factor of all gaps after output `index`, if it and all that follow have the rank of each stretch."""
    whole, rest = targets.whole[:-1].astype(float), targets.rest[:-1]
    after = jnp.arange(whole.shape[0], dtype=jnp.int32) > index
    return ending(chain, targets, kappa) - kappa * jnp.sum(jnp.where(after, whole + rest, 0.0))


def ending(chain: Stretches, targets: Targets, kappa: Float[Array, ""]) -> Float[Array, "stretches"]:
    """ln of the weight of the last gap, from each stretch to the end."""
    return -kappa * targets.distance(jnp.int32(targets.whole.shape[0] - 1), chain.n - chain.rank)


def _arrive(
    chain: Stretches, cut: Borders, ended: Array, targets: Targets, index: Array, kappa: Array
) -> Float[Array, "stretches"]:
    first = -kappa * targets.distance(index, chain.rank)
    return jnp.where(index == 0, first, arrivals(chain, cut, ended, targets, index, kappa))


def _crowd(crowds: Array, arrived: Array, index: Array, targets: Targets, kappa: Array) -> Float[Array, "k stretches"]:
    """Row k - 1: the newest output is the k-th of its stretch; its own length is still to come."""
    number = jnp.arange(2, crowds.shape[0] + 1, dtype=jnp.int32).astype(float)
    stay = kappa * targets.distance(index, jnp.int32(0))
    return jnp.concatenate([arrived[None], crowds[:-1] - jnp.log(number)[:, None] - stay])


def split(
    chain: Stretches,
    targets: Targets,
    kappa: Float[Array, ""],
    inside: Bool[Array, "outputs stretches"],
    between: Bool[Array, "outputs gaps"],
) -> Float[Array, "2"]:
    """(ln of the weight of tuples whose every output is in a stretch, or an empty interval of a gap, marked for it, that of all others)."""
    outputs, cut = targets.whole.shape[0] - 1, borders(chain)

    def step(carry: tuple[Array, Array], here: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        crowds, ended = carry
        index, marked = here
        arrived = jax.vmap(lambda each: _arrive(chain, cut, each, targets, index, kappa))(ended)
        arrived = arrived.at[1].set(jnp.where(index == 0, -jnp.inf, arrived[1]))
        crowds = (
            jax.vmap(lambda c, a: _crowd(c, a, index, targets, kappa))(crowds, arrived) + chain.log_length[None, None]
        )
        good = jnp.where(marked[None], crowds[0], -jnp.inf)
        bad = logspace.logaddexp(crowds[1], jnp.where(marked[None], -jnp.inf, crowds[0]))
        crowds = jnp.stack([good, bad])
        return (crowds, logspace.logsumexp(jnp.swapaxes(crowds, 1, 2))), None

    size = chain.rank.shape[0]
    start = (jnp.full((2, outputs, size), -jnp.inf), jnp.full((2, size), -jnp.inf))
    (_, ended), _ = lax.scan(step, start, (jnp.arange(outputs, dtype=jnp.int32), inside))
    ended = jnp.concatenate(
        [ended + ending(chain, targets, kappa)[None], _together(chain, targets, kappa, between)], axis=1
    )
    return logspace.logsumexp(ended)


def _together(
    chain: Stretches, targets: Targets, kappa: Float[Array, ""], marked: Bool[Array, "outputs gaps"]
) -> Float[Array, "2 gaps"]:
    """ln of the weight of tuples in empty intervals, of those marked for all outputs and of all others."""
    last = jnp.int32(targets.whole.shape[0] - 1)
    stays = jnp.sum(targets.whole[1:-1].astype(float) + targets.rest[1:-1])
    distance = targets.distance(jnp.int32(0), chain.gap_rank) + targets.distance(last, chain.n - chain.gap_rank) + stays
    logs = chain.log_empty - kappa * distance - math.lgamma(marked.shape[0] + 1)
    good = jnp.all(marked, axis=0)
    return jnp.stack([jnp.where(good, logs, -jnp.inf), jnp.where(good, -jnp.inf, logs)])


@frozen
class Drawn:
    """Where the outputs of a tuple lie: in a stretch each, in order; the last ones perhaps in its tail, or all in an empty interval."""

    stretch: Int[Array, "outputs"]
    tail: Bool[Array, "outputs"]
    empty: Bool[Array, ""]


def draw(key: Any, chain: Stretches, targets: Targets, kappa: Float[Array, ""], kept: Beginnings) -> Drawn:
    """One tuple of a merged chain, from the last output to the first."""
    outputs, cut = targets.whole.shape[0] - 1, borders(chain)
    factorial = jnp.cumsum(jnp.log(jnp.arange(1, outputs + 1, dtype=jnp.int32).astype(float)))
    stay = kappa * (targets.whole[:outputs].astype(float) + targets.rest[:outputs])
    place = jnp.arange(chain.rank.shape[0], dtype=jnp.int32)
    crowd = jnp.arange(outputs, dtype=jnp.int32)
    last = kept.ended[-1] + ending(chain, targets, kappa)
    tail, tail_stretch, tail_first, empty = _draw_tail(key, chain, logspace.logsumexp(last), kept.tails)

    def step(state: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Array]:
        """`ahead` more outputs lie where the next one does; else it is drawn anew."""
        stretch, ahead = state
        key_stretch, key_crowd = jax.random.split(jax.random.fold_in(key, index))
        gap = chain.rank[stretch] - chain.rank
        following = kept.ended[index] - kappa * targets.distance(index + 1, gap)
        earlier = (place < stretch) & (place >= cut.since[stretch])
        logs = jnp.where(index == outputs - 1, last, jnp.where(earlier, following, -jnp.inf))
        anew = logspace.draw(key_stretch, logspace.sum_tree(logs))
        stretch = jnp.where(ahead > 0, stretch, anew)
        # How many outputs in all are there, k + 1: those of index - k + 1, ..., index stayed.
        first = index - crowd
        stayed = jnp.cumsum(jnp.concatenate([jnp.zeros(1), stay[jnp.maximum(index - crowd, 0)]]))[:-1]
        lengths = (crowd + 1).astype(float) * chain.log_length[stretch] - factorial
        weights = kept.arrived[jnp.maximum(first, 0), stretch] + lengths - stayed
        together = logspace.draw(key_crowd, logspace.sum_tree(jnp.where(first >= 0, weights, -jnp.inf)))
        ahead = jnp.where(ahead > 0, ahead - 1, together)
        return (stretch, ahead), stretch

    order = jnp.arange(outputs - 1, -1, -1, dtype=jnp.int32)
    start = jnp.where(tail, tail_stretch, 0), jnp.where(tail, outputs - tail_first, 0)
    _, found = lax.scan(step, start, order)
    return Drawn(stretch=found[::-1], tail=tail & (crowd >= tail_first), empty=tail & empty)


def _draw_tail(
    key: Any, chain: Stretches, log_others: Float[Array, ""], tails: Float[Array, "outputs stretches"]
) -> tuple[Bool[Array, ""], Int[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """(whether the last outputs are in a tail; of which stretch; the first of them; whether it is an empty interval)."""
    outputs = tails.shape[0]
    keys = jax.random.split(jax.random.fold_in(key, outputs), 4)  # those of `draw` are below
    by_stretch = logspace.logsumexp(tails.T)
    tail = logspace.draw(keys[0], logspace.sum_tree(jnp.stack([log_others, logspace.logsumexp(by_stretch)])))
    stretch = jnp.minimum(logspace.draw(keys[1], logspace.sum_tree(by_stretch)), by_stretch.size - 1)
    first = jnp.minimum(logspace.draw(keys[2], logspace.sum_tree(tails[:, stretch])), outputs - 1)
    volumes = jnp.stack([outputs * chain.log_tail[stretch], chain.log_empty[stretch]])
    empty = logspace.draw(keys[3], logspace.sum_tree(volumes))
    return tail == 1, stretch, first, (first == 0) & (empty == 1)
