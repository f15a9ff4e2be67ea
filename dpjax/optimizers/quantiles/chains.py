"""Chains of ranks: sums over all sorted tuples of outputs, weighed by what lies between neighbouring ones.

The real axis [0, 2^d) is cut into stretches, each with a rank, how many points lie below it. A sorted tuple y_1 <= ... <= y_m weighs

    exp(-kappa (|r_1 - t_1| + |r_2 - r_1 - t_2| + ... + |n - r_m - t_(m+1)|)),    r_j the rank of y_j,

and k outputs of one stretch of length M have a volume of M^k / k!, as they are sorted. Forward: the weight of all beginnings y_1 <= ...
<= y_j whose last output lies in a given stretch. The kernel exp(-kappa |g - t|) rises up to t and falls from there, so what comes from
further away than t is a first-order recursion, and what comes from nearer is a window: the end of one block of its length, and the
beginning of the next. All are sums of positive terms, kept as logarithms, and take O(n) steps for an output (and m more for stretches
with several outputs)."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import logspace
from dpjax.core.pytree import frozen, static


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
    """The axis in order: ln M of each stretch (-inf: there is none) and its rank, which starts at 0 and rises by 0 or 1.

    `last[r]` is the last stretch of rank r, for all r = 0, ..., n; past n it is anything.
    `merged` promises that stretch r is all of rank r.
    """

    log_length: Float[Array, "stretches"]
    rank: Int[Array, "stretches"]
    last: Int[Array, "ranks"]
    n: Int[Array, ""]
    merged: bool = static(default=False)


def _add_up(logs: Float[Array, "*k n"], decay: Float[Array, "*k n"]) -> Float[Array, "*k n"]:
    """y_i = ln(exp(y_(i-1) - decay_i) + exp(logs_i)) along the last axis.

    First within rows of about sqrt(n) entries, all rows at a time, then from row to row: few steps, and each number meets few roundings.
    """
    n = logs.shape[-1]
    width = 1 << ((n - 1).bit_length() + 1) // 2
    pad = [(0, 0)] * (logs.ndim - 1) + [(0, -n % width)]
    shape = (*logs.shape[:-1], -1, width)
    rows = jnp.pad(logs, pad, constant_values=-jnp.inf).reshape(shape)
    decays = jnp.cumsum(jnp.pad(decay, pad).reshape(shape), axis=-1)

    def along(carry: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
        log, step = here
        carry = logspace.logaddexp(carry - step, log)
        return carry, carry

    steps = jnp.moveaxis(jnp.pad(decay, pad).reshape(shape), -1, 0)
    nothing = jnp.full(rows.shape[:-1], -jnp.inf)
    inside = jnp.moveaxis(lax.scan(along, nothing, (jnp.moveaxis(rows, -1, 0), steps))[1], 0, -1)
    totals = (jnp.moveaxis(inside[..., -1], -1, 0), jnp.moveaxis(decays[..., -1], -1, 0))
    ends = jnp.moveaxis(lax.scan(along, nothing[..., 0], totals)[1], 0, -1)
    before = jnp.concatenate([jnp.full((*ends.shape[:-1], 1), -jnp.inf), ends[..., :-1]], axis=-1)
    return logspace.logaddexp(inside, before[..., None] - decays).reshape(*logs.shape[:-1], -1)[..., :n]


def arrivals(
    chain: Stretches,
    before: Float[Array, "stretches"],
    targets: Targets,
    index: Int[Array, ""],
    kappa: Float[Array, ""],
) -> Float[Array, "stretches"]:
    """ln of the weight that comes from all earlier stretches, each with its own weight `before`, over a gap with target t_index."""
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
        rise = jnp.concatenate([jnp.ones(1, bool), chain.rank[1:] > chain.rank[:-1]])
        within = _add_up(before, jnp.where(rise, jnp.inf, 0.0))
        total = within[chain.last]
        earlier = jnp.concatenate([jnp.full(1, -jnp.inf), jnp.where(rise[1:], -jnp.inf, within[:-1])])
        same = earlier - kappa * (whole.astype(float) + rest)
    total = jnp.where(place <= chain.n, total, -jnp.inf)
    faded, ends, starts = _add_up(
        jnp.stack([total, total[::-1], total - kappa * inside.astype(float)]),
        jnp.stack(
            [
                jnp.broadcast_to(kappa, (ranks,)),
                jnp.where(inside == size - 1, jnp.inf, kappa)[::-1],
                jnp.where(inside == 0, jnp.inf, 0.0),
            ]
        ),
    )
    beyond = _at(faded, place - far) - kappa * ((far - whole).astype(float) - rest)
    # The window r - size, ..., r - 1: the end of one block of its size, and the beginning of the next one.
    first = place - size
    end_part = _at(ends[::-1], first) - kappa * ((whole - size).astype(float) + rest)
    start = (place - 1) - (place - 1) % size
    start_part = _at(starts, place - 1) - kappa * ((whole - place + start).astype(float) + rest)
    start_part = jnp.where(first % size == 0, -jnp.inf, start_part)  # the window is one block
    nearer = jnp.where(window > 0, logspace.logaddexp(end_part, start_part), -jnp.inf)
    across = logspace.logaddexp(beyond, nearer)
    if chain.merged:
        return across
    return logspace.logaddexp(across[jnp.minimum(chain.rank, ranks - 1)], same)


def _at(logs: Float[Array, "n"], index: Int[Array, "k"]) -> Float[Array, "k"]:
    """-inf at negative places."""
    return jnp.where(index >= 0, logs[jnp.maximum(index, 0)], -jnp.inf)


@frozen
class Beginnings:
    """Of one more output: ln of the weight of what arrives in each stretch, and of all beginnings that end there with it."""

    arrived: Float[Array, "*outputs stretches"]
    ended: Float[Array, "*outputs stretches"]


def forward(chain: Stretches, targets: Targets, kappa: Float[Array, ""]) -> tuple[Float[Array, ""], Beginnings]:
    """ln of the weight of all tuples, and the beginnings for every output."""
    outputs = targets.whole.shape[0] - 1

    def step(carry: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Beginnings]:
        crowds, ended = carry
        arrived = _arrive(chain, ended, targets, index, kappa)
        crowds = _crowd(crowds, arrived, index, targets, kappa) + chain.log_length[None]
        ended = logspace.logsumexp(crowds.T)
        return (crowds, ended), Beginnings(arrived=arrived, ended=ended)

    nothing = jnp.full(chain.rank.shape, -jnp.inf)
    start = (jnp.full((outputs, chain.rank.shape[0]), -jnp.inf), nothing)
    (_, ended), kept = lax.scan(step, start, jnp.arange(outputs, dtype=jnp.int32))
    return logspace.logsumexp(ended + ending(chain, targets, kappa)), kept


def ending(chain: Stretches, targets: Targets, kappa: Float[Array, ""]) -> Float[Array, "stretches"]:
    """ln of the weight of the last gap, from each stretch to the end."""
    return -kappa * targets.distance(jnp.int32(targets.whole.shape[0] - 1), chain.n - chain.rank)


def _arrive(chain: Stretches, ended: Array, targets: Targets, index: Array, kappa: Array) -> Float[Array, "stretches"]:
    first = -kappa * targets.distance(index, chain.rank)
    return jnp.where(index == 0, first, arrivals(chain, ended, targets, index, kappa))


def _crowd(crowds: Array, arrived: Array, index: Array, targets: Targets, kappa: Array) -> Float[Array, "k stretches"]:
    """Row k - 1: the newest output is the k-th of its stretch; its own length is still to come."""
    number = jnp.arange(2, crowds.shape[0] + 1, dtype=jnp.int32).astype(float)
    stay = kappa * targets.distance(index, jnp.int32(0))
    return jnp.concatenate([arrived[None], crowds[:-1] - jnp.log(number)[:, None] - stay])


def split(
    chain: Stretches, targets: Targets, kappa: Float[Array, ""], inside: Bool[Array, "outputs stretches"]
) -> Float[Array, "2"]:
    """(ln of the weight of tuples whose every output is in a stretch marked for it, ln of the weight of all others)."""
    outputs = targets.whole.shape[0] - 1

    def step(carry: tuple[Array, Array], here: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        crowds, ended = carry
        index, marked = here
        arrived = jax.vmap(lambda each: _arrive(chain, each, targets, index, kappa))(ended)
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
    return logspace.logsumexp(ended + ending(chain, targets, kappa)[None])


def draw(
    key: Any, chain: Stretches, targets: Targets, kappa: Float[Array, ""], kept: Beginnings
) -> Int[Array, "outputs"]:
    """The stretches of one tuple, from the last output to the first."""
    outputs = targets.whole.shape[0] - 1
    factorial = jnp.cumsum(jnp.log(jnp.arange(1, outputs + 1, dtype=jnp.int32).astype(float)))
    stay = kappa * (targets.whole[:outputs].astype(float) + targets.rest[:outputs])
    place = jnp.arange(chain.rank.shape[0], dtype=jnp.int32)
    crowd = jnp.arange(outputs, dtype=jnp.int32)

    def step(state: tuple[Array, Array], index: Array) -> tuple[tuple[Array, Array], Array]:
        """`ahead` more outputs lie where the next one does; else it is drawn anew."""
        stretch, ahead = state
        key_stretch, key_crowd = jax.random.split(jax.random.fold_in(key, index))
        gap = chain.rank[stretch] - chain.rank
        following = -kappa * targets.distance(index + 1, gap)
        following = jnp.where(index == outputs - 1, ending(chain, targets, kappa), following)
        earlier = (place < stretch) | (index == outputs - 1)
        logs = jnp.where(earlier, kept.ended[index] + following, -jnp.inf)
        anew = logspace.draw(key_stretch, logspace.sum_tree(padded(logs)))
        stretch = jnp.where(ahead > 0, stretch, anew)
        # How many outputs in all are there, k + 1: those of index - k + 1, ..., index stayed.
        first = index - crowd
        stayed = jnp.cumsum(jnp.concatenate([jnp.zeros(1), stay[jnp.maximum(index - crowd, 0)]]))[:-1]
        lengths = (crowd + 1).astype(float) * chain.log_length[stretch] - factorial
        weights = kept.arrived[jnp.maximum(first, 0), stretch] + lengths - stayed
        together = logspace.draw(key_crowd, logspace.sum_tree(padded(jnp.where(first >= 0, weights, -jnp.inf))))
        ahead = jnp.where(ahead > 0, ahead - 1, together)
        return (stretch, ahead), stretch

    order = jnp.arange(outputs - 1, -1, -1, dtype=jnp.int32)
    _, found = lax.scan(step, (jnp.int32(0), jnp.int32(0)), order)
    return found[::-1]


def padded(logs: Float[Array, "n"]) -> Float[Array, "more"]:
    """Up to a power of two, by weights of nothing."""
    size = logs.shape[0]
    return jnp.concatenate([logs, jnp.full((1 << max(size - 1, 0).bit_length()) - size, -jnp.inf)])
