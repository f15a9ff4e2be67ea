"""The exponential mechanism on a score that also counts the points below each key of a search tree: it needs half as many points.

*The tree.* X = {0, ..., M - 1}, M = 2^bits, is a balanced binary search tree whose keys are all its points. A key y > 0 with t trailing
zeros has level z = t + 1 and the subtree {y - 2^t + 1, ..., y + 2^t - 1}: that is the perfect tree of 1, ..., M - 1, with root M/2. The
key 0, one too many for a perfect tree, is the left child of the key 1: its level is 0, and it belongs to the subtrees of 1, 2, 4, ..., M/2.

*The score.* With m_y the number of points in the subtree of y, and public offsets A_z, b_z for the levels z = 0, ..., bits,

    u(y, S) = min(#<=y - b_z, #>=y - b_z, m_y - A_z),    P[y] proportional to exp(epsilon u(y, S)).

The offsets are a family of four numbers in nats (`Offsets`): epsilon A_z = a - alpha z, epsilon b_z = p ln(1 + z) + tau z.

*Private.* One more point raises each of the three counts by 0 or 1. So it raises every u by an amount in [0, 1], whatever the offsets are,
as long as they do not depend on the data or on their number; every weight, and their sum, by a factor in [1, e^epsilon]; and it moves every
probability by a factor in [e^-epsilon, e^epsilon]: (epsilon, 0) under ADD_OR_REMOVE_ONE, for data of any size.

*Useful* (how much so: `dpjax.optimizers.interior_point.tree_planning`). Without m_y this is the exponential mechanism on the depth: each of
M keys that are not interior points weighs 1, so that the median must weigh M. Here such a key has #<= or #>= zero, and if it weighs more
than exp(-epsilon A) it has points below it, so it is on the search path of the least or of the greatest point: at most 2 (bits + 1) keys.
Each of the M others weighs at most exp(-epsilon A): with A = ln M / epsilon, together no more than one. So about ln M / epsilon points
suffice, not 2 ln M / epsilon, and no epsilon-private algorithm needs fewer than ln((1 - beta) M) / epsilon
(`dpjax.bounds.pure_interior_point`). At epsilon = 1, beta = 0.1:

| M | 2^3 | 2^16 | 2^32 | 2^64 | 2^256 | 2^1024 | 2^4096 |
|---|---|---|---|---|---|---|---|
| `tree_score` | 7 | 22 | 35 | 58 | 194 | 730 | 2862 |
| with offsets searched by `tree_planning.planned` | 6 | 21 | 33 | 56 | | | |
| `exponential` | 9 | 27 | 49 | 94 | 360 | 1425 | 5683 |
| lower bound | 2 | 11 | 23 | 45 | 178 | 710 | 2840 |

(`exponential` by its theorem; on the worst data, by the same programme without m_y, it needs 7, 25, 48 and 92 for the first four.)

*Law and sampler.* Keys with points below them are on search paths: at most `bits` for each point. Empty subtrees hang beside a path. All
keys of one have the same #<= and #>=, and 2^i of them lie i levels below its root: this gives a closed sum for each number of points before
it and each level. An interval's ends become points that count nothing, so that every empty subtree lies inside or outside as a whole.
Logarithms of M and of e^a are held in the default float: probabilities of float32 are right to a relative 1e-6 at 64 bits and 4e-5 at 1024.

*Literature.* The interior point problem is due to Bun, Nissim, Stemmer and Vadhan (2015, arXiv 1504.07553), who settle pure privacy up to a
constant by the exponential mechanism and packing; private quantiles by trees recurse (Kaplan, Schnapp, Stemmer 2022) or add noise to
counts. A search for a score that counts points in subtrees, or for the constant before ln|X|/epsilon, found nothing.

Its plain twin is `dpjax.verify.plain.tree_score.tree_score_law`.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers.interior_point import base
from dpjax.optimizers.interior_point import tree_planning as planning
from dpjax.optimizers.interior_point.base import InteriorPoint
from dpjax.optimizers.interior_point.tree_planning import Offsets

WORD = 32  # levels that are processed together: those of the keys whose last digit 1 is in the same limb
NEVER = np.int32(2**30)  # behind all points


@frozen
class Items:
    """Sorted points, and up to two more that count nothing.

    Attributes:
      x: items in order, shape (rows, limbs).
      n: the number of items.
      silent: indices of those that count nothing; NEVER if there is none.
      tail: number of trailing zeros, -1 for the item 0.
      apart: digits of the exclusive or with the item before; the first one's is NEVER.
    """

    x: UInt32[Array, "rows limbs"]
    n: Int[Array, ""]
    silent: Int[Array, "2"]
    tail: Int[Array, "rows"]
    apart: Int[Array, "rows"]

    @property
    def rows(self) -> int:
        """The capacity."""
        return self.x.shape[0]

    @property
    def index(self) -> Int[Array, "rows"]:
        """0, 1, ..., rows - 1."""
        return jnp.arange(self.rows, dtype=jnp.int32)

    @property
    def points(self) -> Int[Array, ""]:
        """How many points there are."""
        return self.counted(self.n)

    def counted(self, items: Int[Array, "*s"]) -> Int[Array, "*s"]:
        """How many of the first `items` items are points."""
        first, second = self.silent
        return items - (items > first).astype(jnp.int32) - (items > second).astype(jnp.int32)


def items_of(points: Points, *silent: UInt32[Array, "limbs"]) -> Items:
    """Items of sorted points; the silent ones must be in order, too."""
    x, places = points.x, []
    for i, extra in enumerate(silent):
        place = wide.search(points.x, extra) + i
        index = jnp.arange(x.shape[0] + 1, dtype=jnp.int32)
        moved = x[jnp.minimum(index - (index > place).astype(jnp.int32), x.shape[0] - 1)]
        x = wide.select(index == place, jnp.broadcast_to(extra, moved.shape), moved)
        places.append(place)
    return Items(
        x=x,
        n=points.n_valid + len(silent),
        silent=jnp.stack([*places, *[NEVER] * (2 - len(places))]).astype(jnp.int32),
        tail=jnp.where(wide.is_zero(x), -1, wide.trailing_zeros(x)),
        apart=jnp.append(NEVER, wide.bit_length(x[1:] ^ x[:-1])),
    )


def ends_of(interval: Interval, bits: Any, limbs: int) -> tuple[list[UInt32[Array, "limbs"]], list[Bool[Array, ""]]]:
    """(The ends of an interval as silent items, at 2^bits - 1 where they are greater; whether they are.)"""
    everything, ends = wide.largest(jnp.asarray(bits, jnp.int32), limbs + 1), (interval.low, interval.high)
    cut = [wide.resize(wide.minimum(end, everything), limbs) for end in ends]
    return cut, [wide.less(everything, end) for end in ends]


@frozen
class Subtrees:
    """The subtrees of 32 levels of keys that hold items, by (level, item).

    Attributes:
      height: trailing zeros of the keys.
      last: whether the item is the last one of a subtree.
      before, under, up_to: how many items are in front of the subtree, less than its key, and up to its key.
    """

    height: Int[Array, "32 1"]
    last: Bool[Array, "32 rows"]
    before: Int[Array, "32 rows"]
    under: Int[Array, "32 rows"]
    up_to: Int[Array, "32 rows"]


@frozen
class Block:
    """The keys of 32 levels whose subtrees hold items, and the empty subtrees below them: ln of their weights, by (level, last item).

    Attributes:
      key: that of the key itself; -inf where the item is not the last one of a subtree.
      left, right: those of the subtrees on both sides; -inf unless they are empty of items and have keys.
      before, up_to: how many items are in front of the subtree, and up to its key.
    """

    key: Float[Array, "32 rows"]
    left: Float[Array, "32 rows"]
    right: Float[Array, "32 rows"]
    before: Int[Array, "32 rows"]
    up_to: Int[Array, "32 rows"]

    @property
    def logs(self) -> Float[Array, "3 32 rows"]:
        """All weights."""
        return jnp.stack([self.key, self.left, self.right])


@frozen
class Entry:
    """What a draw chooses: a key (0), the empty subtree on its left (1) or right (2), or the key 0 (3).

    Attributes:
      kind: 0, 1, 2 or 3, as above.
      root: trailing zeros of the key.
      row: an item below it.
      rank: how many points there are in front of the empty subtree.
    """

    kind: Int[Array, ""]
    root: Int[Array, ""]
    row: Int[Array, ""]
    rank: Int[Array, ""]


@frozen
class TreeScore(InteriorPoint):
    """The exponential mechanism on the tree score; build it by `tree_score`."""

    bounded_range: ClassVar[bool] = True

    bits: Any
    limbs: int = static()
    epsilon: Any
    offsets: Offsets

    # Weights ----------------------------------------------------------------------------------------------------

    def _log_weight(self, score: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """ln of the weight of a key of score u, from epsilon u."""
        return score

    def _less(self, points: Int[Array, ""]) -> Int[Array, ""]:
        """What is subtracted from all counts where there are `points` points: about the depth of the median.

        This changes all weights by the same factor. The weights that matter then come from small counts, for which one more point adds
        epsilon; for counts of 250,000 it added 1.6 % more, as that many times epsilon has few digits behind the point.
        """
        return points // 2

    def _log_empty(self, least: Array, height: Array, points: Int[Array, ""]) -> Float[Array, "..."]:
        """ln of the weight of a key with `height` trailing zeros, no points below and `least` on one side, times 2^-(height + 1)."""
        level = (height + 1).astype(float)
        weight = self._log_weight_of(least, jnp.zeros_like(least), level, points)
        return weight - level * math.log(2.0)

    def _log_weight_of(self, least: Array, inside: Array, level: Array, points: Int[Array, ""]) -> Float[Array, "..."]:
        """ln of the weights of keys, from their two counts, with `points` points in all."""
        epsilon, less = jnp.asarray(self.epsilon, float), self._less(points)
        rank, size = (epsilon * (count - less).astype(float) for count in (least, inside))
        return self._log_weight(jnp.minimum(rank - self.offsets.ranks(level), size - self.offsets.sizes(level)))

    def _block(self, items: Items, limb: Int[Array, ""], below: Float[Array, "ranks"]) -> tuple[Block, Array]:
        """The keys with 32 limb, ..., 32 limb + 31 trailing zeros.

        `below[r]` is ln of sum_h 2^-(h+1) w(r, h) over all h < 32 limb, with w(r, h) the weight of a key with h trailing zeros, no points
        below it and r points in front: an empty subtree whose root has h - 1 trailing zeros has 2^h times the sum over all levels below h.
        Returned with the sums for the next limb.
        """
        subtrees, n = self._subtrees(items, limb), items.points
        height, before, stop = subtrees.height, subtrees.before, items.index[None] + 1
        rank = jnp.arange(items.rows + 1, dtype=jnp.int32)[None]
        each = self._log_empty(jnp.minimum(rank, jnp.maximum(n - rank, 0)), height, n)
        sums = _running_sums(jnp.concatenate([below[None], each]))

        size = height.astype(float) * math.log(2.0)
        has_keys = subtrees.last & (height > 0)
        left = size + jnp.take_along_axis(sums[:-1], items.counted(before), axis=1)
        right = size + jnp.take_along_axis(sums[:-1], jnp.broadcast_to(items.counted(stop), before.shape), axis=1)
        block = Block(
            key=self._log_keys(items, subtrees),
            left=jnp.where(has_keys & (subtrees.under == before), left, -jnp.inf),
            right=jnp.where(has_keys & (subtrees.up_to == stop), right, -jnp.inf),
            before=before,
            up_to=subtrees.up_to,
        )
        return block, sums[-1]

    def _subtrees(self, items: Items, limb: Int[Array, ""]) -> Subtrees:
        """The subtrees that hold items, of the keys with 32 limb, ..., 32 limb + 31 trailing zeros."""
        index = items.index[None]
        height = limb * WORD + jnp.arange(WORD, dtype=jnp.int32)[:, None]
        # Items of one subtree are neighbours; the last of them stands for it.
        on = (index < items.n) & (items.tail[None] <= height) & (height < jnp.asarray(self.bits, jnp.int32))
        joined = on[:, 1:] & on[:, :-1] & (items.apart[None, 1:] <= height + 1)
        start = on & ~jnp.pad(joined, ((0, 0), (1, 0)))
        last = on & ~jnp.pad(joined, ((0, 0), (0, 1)))
        word = lax.dynamic_index_in_dim(items.x, self.limbs - 1 - limb, axis=1, keepdims=False)
        is_left = on & ((word[None] >> jnp.arange(WORD, dtype=jnp.uint32)[:, None]) & np.uint32(1) == 0)
        up_to_key = is_left | (on & (items.tail[None] == height))
        marks = [jnp.where(start, index, 0), *(jnp.where(side, index + 1, 0) for side in (is_left, up_to_key))]
        before, under, up_to = lax.cummax(jnp.stack(marks), axis=2)
        return Subtrees(
            height=height, last=last, before=before, under=jnp.maximum(before, under), up_to=jnp.maximum(before, up_to)
        )

    def _log_keys(self, items: Items, subtrees: Subtrees) -> Float[Array, "32 rows"]:
        """ln of the weights of their keys, by (level, last item); -inf where the item is not the last one of a subtree."""
        n, level = items.points, (subtrees.height + 1).astype(float)
        inside = items.counted(items.index[None] + 1) - items.counted(subtrees.before)
        least = jnp.minimum(items.counted(subtrees.up_to), n - items.counted(subtrees.under))
        return jnp.where(subtrees.last, self._log_weight_of(least, inside, level, n), -jnp.inf)

    def _log_zero(self, items: Items) -> tuple[Float[Array, ""], Int[Array, ""]]:
        """ln of the weight of the key 0, and how many items are there."""
        zeros = jnp.sum((items.tail < 0) & (items.index < items.n), dtype=jnp.int32)
        points = items.counted(zeros)
        return self._log_weight_of(points, points, jnp.zeros(()), items.points), zeros

    # Law --------------------------------------------------------------------------------------------------------

    def _log_masses(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        """ln of the weight of the keys in the interval, and of that of all others."""
        ends, beyond = ends_of(interval, self.bits, self.limbs)
        items = items_of(points, *ends)
        low, high = (jnp.where(out, NEVER, place) for out, place in zip(beyond, items.silent, strict=True))

        def of_block(block: Block) -> Array:
            stop = jnp.broadcast_to(jnp.arange(1, items.rows + 1, dtype=jnp.int32)[None], block.before.shape)
            # How many items there are up to the keys here: the interval's low end is one of these items, its high end is not.
            items_up_to = jnp.stack([block.up_to, block.before, stop])
            return split((low < items_up_to) & (high >= items_up_to), block.logs)

        def step(below: Array, limb: Array) -> tuple[Array, Array]:
            block, above = self._block(items, limb, below)
            return above, of_block(block)

        below = jnp.full((items.rows + 1,), -jnp.inf)
        _, blocks = lax.scan(step, below, jnp.arange(self.limbs, dtype=jnp.int32))
        log_zero, zeros = self._log_zero(items)
        zero = split((low < zeros) & (high >= zeros), log_zero)
        return logspace.logsumexp(jnp.concatenate([blocks, zero[None]]).T)

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        masses = self._log_masses(points, interval)
        return jnp.exp(masses - logspace.logsumexp(masses))

    def log_mass(self, points: Points, interval: Interval) -> Float[Array, ""]:
        masses = self._log_masses(points, interval)
        return masses[0] - logspace.logsumexp(masses)

    # Sampler ----------------------------------------------------------------------------------------------------

    def draw(self, key: Array, points: Points) -> Any:
        key_limbs, key_height, key_bits = jax.random.split(key, 3)
        # An item at 0 that counts nothing: then there is one even where there are no points.
        items = items_of(points, jnp.zeros((self.limbs,), jnp.uint32))
        entry = self._entry(key_limbs, items)
        height = jnp.where(entry.kind == 0, entry.root, self._height(key_height, items, entry))
        # The digits above the root's last one; its own, if the key is the root or on its right; random ones; the key's last one.
        above = wide.multiple(items.x[entry.row], entry.root + 1)
        own = jnp.where(entry.kind == 1, np.uint32(0), wide.power_of_two(entry.root, self.limbs))
        free = wide.multiple(wide.random_bits(key_bits, entry.root, self.limbs), height + 1)
        drawn = above | own | jnp.where(entry.kind == 0, np.uint32(0), free) | wide.power_of_two(height, self.limbs)
        return jnp.where(entry.kind == 3, np.uint32(0), drawn), jnp.bool_(True), {}

    def _entry(self, key: Array, items: Items) -> Entry:
        """One of the key 0, the keys with items below them and the empty subtrees, by their weights.

        Limb by limb one of its entries is drawn, and a coin decides whether it replaces the one before.
        """

        def step(state: tuple[Array, Array, Entry], limb: Array) -> tuple[tuple[Array, Array, Entry], None]:
            below, total, chosen = state
            key_entry, key_coin = jax.random.split(jax.random.fold_in(key, limb))
            block, above = self._block(items, limb, below)
            logs = block.logs
            best = jnp.max(logs)
            weights = jnp.exp(logs - logspace.finite(best))
            here = best + jnp.log(jnp.sum(weights))
            together = logspace.logaddexp(total, here)
            most = logspace.finite(together)
            taken = random.bernoulli(key_coin, here - most, total - most)
            # Row after row, so that rows of padding come last and shift nothing.
            by_row = jnp.moveaxis(jnp.pad(weights, ((0, 1), (0, 0), (0, 0))), 2, 0)
            place = logspace.choose(key_entry, by_row.reshape(-1))
            row, kind, bit = place // (4 * WORD), place // WORD % 4, place % WORD
            front = jnp.where(kind == 1, block.before[bit, row], row + 1)
            found = Entry(kind=kind, root=limb * WORD + bit, row=row, rank=items.counted(front))
            chosen = jax.tree.map(lambda new, old: jnp.where(taken, new, old), found, chosen)
            return (above, together, chosen), None

        nothing = jnp.int32(0)
        zero = Entry(kind=jnp.int32(3), root=nothing, row=nothing, rank=nothing)
        below = jnp.full((items.rows + 1,), -jnp.inf)
        limbs = jnp.arange(self.limbs, dtype=jnp.int32)
        (_, _, chosen), _ = lax.scan(step, (below, self._log_zero(items)[0], zero), limbs)
        return chosen

    def _height(self, key: Array, items: Items, entry: Entry) -> Int[Array, ""]:
        """How many trailing zeros a key drawn from an empty subtree has: fewer than its parent."""
        height = jnp.arange(WORD * self.limbs, dtype=jnp.int32)
        logs = self._log_empty(jnp.minimum(entry.rank, items.points - entry.rank), height, items.points)
        logs = jnp.where(height < entry.root, logs, -jnp.inf)
        return logspace.draw(key, logspace.sum_tree(logs))

    # Promises ---------------------------------------------------------------------------------------------------

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (self.offsets.size(jnp.asarray(self.bits, float)) <= planning.LARGEST_OFFSET)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE, whatever the offsets."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def points_needed(self, beta: float) -> int:
        """The least n from which on no data fail with probability above beta.

        It is found by the theorem, and then exactly as far as programmes of 5e8 steps in all allow, with bits n^3 steps each. See
        `tree_planning`.
        """
        return planning.least_n(*self._known(), beta, planning.MOST_STEPS)

    def worst(self, n: int) -> tuple[float, list[int]]:
        """The largest failure probability over all data of n points, exactly, and n points on which it is reached.

        By the programme of `dpjax.optimizers.interior_point.tree_planning`, on the host in float64: about n^3 bits steps, some ten times.

        Args:
          n: at least 1.

        Raises:
          TypeError, ValueError: n is not such an integer.

        >>> failure, points = tree_score(bits=1, epsilon=1.0).worst(2)
        >>> round(failure, 3), points  # the key 0 is the deeper one
        (0.213, [0, 0])
        """
        return planning.worst(*self._known(), arguments.integer("n", n, at_least=1))

    def _known(self) -> tuple[Any, ...]:
        """The numbers in use, on the host."""
        bits = arguments.known_integer("bits", self.bits)
        return bits, arguments.known("epsilon", self.epsilon), *planning.numbers(self.offsets)


def split(inside: Bool[Array, "*s"], logs: Float[Array, "*s"]) -> Float[Array, "2"]:
    """ln of the sum of the weights inside, and of all others."""
    parts = jnp.where(inside, logs, -jnp.inf), jnp.where(inside, -jnp.inf, logs)
    return jnp.stack([logspace.logsumexp(part.reshape(-1)) for part in parts])


def _running_sums(logs: Float[Array, "n ranks"]) -> Float[Array, "n ranks"]:
    """ln of the sums of the first 1, 2, ..., n weights, by doubling."""
    step = 1
    while step < logs.shape[0]:
        before = jnp.pad(logs[:-step], ((step, 0), (0, 0)), constant_values=-jnp.inf)
        logs, step = logspace.logaddexp(logs, before), 2 * step
    return logs


def tree_score(*, bits: int, epsilon: Any, offsets: Offsets | None = None) -> TreeScore:
    """The exponential mechanism on the tree score; see the module.

    A run processes 32 levels of the tree at once, which takes 3 kB for each point: 3 GB for a million points.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE, for any data and any offsets (proved in the module). In float32 the
    rounding of ln P adds up to 6e-6 to a privacy loss on wide domains, 6e-5 of epsilon = 0.1 at 1,024 bits, and more for offsets that are
    larger than planned ones. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: > 0, finite.
      offsets: public ones, up to 8192 nats in size; `tree_planning.plain(bits)` by default. `tree_planning.planned` searches for better
        ones.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.optimizers.interior_point import exponential
    >>> [make(bits=32, epsilon=1.0).sample_size(beta=0.1) for make in (tree_score, exponential)]
    [35, 49]
    """
    fields = base.domain(bits)
    offsets = planning.plain(bits) if offsets is None else arguments.instance("offsets", offsets, Offsets)
    if not any(map(arguments.is_traced, jax.tree.leaves(offsets))):
        arguments.number("offsets", float(offsets.size(int(bits), np)), at_least=0.0, at_most=planning.LARGEST_OFFSET)
    return TreeScore(**fields, epsilon=arguments.epsilon(epsilon), offsets=offsets)
