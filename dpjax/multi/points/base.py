"""What learners of k points share: heavy items of the sample, which of them each hypothesis names, and the law of that.

An item, which may be heavy or not, is a point with its most frequent vector of labels, or a labelled point. Noisy counts decide
independently which items are heavy; hypothesis h_j is then the point of the first heavy item whose vector has a one at j, or all-zero.
"""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts.points import Point
from dpjax.core import bits as packed
from dpjax.core import random
from dpjax.data.algorithm import LARGEST_PMF, few_points
from dpjax.data.fitting import fitted
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import wide_rows
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate, Interval, PointSet, intervals
from dpjax.multi.base import KLearner
from dpjax.sanitizers.points import NoisyCounts

_FAR = np.int32(2**30)  # above any count


class Items(NamedTuple):
    """The items, in a fixed order of the domain: points with the most frequent vector of each, or labelled points.

    Attributes:
      points: increasing. vectors: k labels each, packed.
      counts: how often the item occurs; 0 for slots that are not used.
      first, second: the counts of the two most frequent vectors at the point.
    """

    points: UInt32[Array, "m limbs"]
    vectors: UInt32[Array, "m words"]
    counts: Int[Array, "m"]
    first: Int[Array, "m"]
    second: Int[Array, "m"]


def distinct(sample: MultiSample) -> groups.Groups:
    """The distinct labelled points."""
    return groups.group(_labelled(sample), sample.valid)


def labelled_points(fine: groups.Groups, limbs: int) -> Items:
    """Labelled points, from the distinct ones with their limbs."""
    nothing = jnp.zeros_like(fine.counts)
    return Items(fine.rows[:, :limbs], fine.rows[:, limbs:], fine.counts, fine.counts, nothing)


def distinct_points(fine: groups.Groups, limbs: int) -> Items:
    """The distinct x, each with its most frequent vector (the least on ties), and how often that vector and the next one occur."""
    coarse = groups.coarser(fine, limbs)
    parent, m = coarse.member, fine.counts.shape[0]
    index, nothing = jnp.arange(m, dtype=jnp.int32), jnp.zeros((m,), jnp.int32)
    first = nothing.at[parent].max(fine.counts, mode="drop")
    wins = fine.counts == first.at[parent].get(mode="fill", fill_value=-1)
    best = jnp.full((m,), m, jnp.int32).at[parent].min(jnp.where(wins, index, m), mode="drop")
    others = best.at[parent].get(mode="fill", fill_value=m) != index
    second = nothing.at[parent].max(jnp.where(others, fine.counts, 0), mode="drop")
    vectors = fine.rows[jnp.minimum(best, m - 1), limbs:]
    return Items(coarse.rows, vectors, coarse.counts, first, second)


def gap(first: Int[Array, "m"], second: Int[Array, "m"], heavy: Bool[Array, "m"]) -> Float[Array, ""]:
    """Q1 - Q2 over the vectors of heavy points (see `point_learner`); +inf when none is heavy: then there is only one candidate."""
    a, b = jnp.where(heavy, first, _FAR), jnp.where(heavy, second, -_FAR)
    lowest = jnp.argmin(a).astype(jnp.int32)
    best = a[lowest]
    is_lowest = jnp.arange(a.shape[0], dtype=jnp.int32) == lowest
    others = jnp.where(is_lowest, jnp.min(jnp.where(is_lowest, _FAR, a)), best)
    return jnp.where(jnp.any(heavy), (best - jnp.max(jnp.minimum(b, others))).astype(float), jnp.inf)


def named(
    points: UInt32[Array, "m limbs"], vectors: UInt32[Array, "m words"], heavy: Bool[Array, "m"], k: int
) -> Point:
    """For every concept the point of the first heavy item whose vector has a 1 there, all-zero if none has."""
    index, m = first(vectors, heavy, k), points.shape[0]
    return Point.shown(points[jnp.minimum(index, m - 1)], index == m)


def first(vectors: UInt32[Array, "m words"], heavy: Bool[Array, "m"], k: int) -> Int[Array, "k"]:
    """For every concept the first heavy item whose vector has a 1 there; the number of items if none has."""
    vectors = jnp.where(heavy[:, None], vectors, np.uint32(0))
    taken = lax.associative_scan(jnp.bitwise_or, vectors)
    new = vectors & ~jnp.concatenate([jnp.zeros_like(taken[:1]), taken[:-1]])
    # Each label is new at one item at most, whose index is assembled bit by bit, for all labels of a word at once.
    m = vectors.shape[0]
    index = jnp.arange(m, dtype=jnp.int32)[:, None]
    digits = [_any(jnp.where((index >> b) & 1 == 1, new, np.uint32(0))) for b in range((m - 1).bit_length())]
    found = sum((packed.unpack(digit, k).astype(jnp.int32) << b for b, digit in enumerate(digits)), jnp.int32(0))
    return jnp.where(packed.unpack(taken[-1], k), found, m)


def _any(words: UInt32[Array, "m words"]) -> UInt32[Array, "words"]:
    """The bits that are set in any row."""
    return lax.reduce(words, np.uint32(0), lax.bitwise_or, (0,))


class View(NamedTuple):
    """What a run and a law use: the items, and the sample in which they were found."""

    items: Items
    sample: MultiSample


class ManyPointsLearner(KLearner):
    """A learner of k points from a `MultiSample`: the output is a `Point` of k concepts.

    Its law is a sum over all sets of heavy items, so it is available only for samples in which at most `MOST` items can be heavy, and
    otherwise NaN. An event consists of one event for each concept: intervals (low, high) with k rows, or a `PointSet` with k rows, as
    `distribution.within(alpha)` gives it.

    Attributes:
      counts: the noisy counts of items.
    """

    MOST: ClassVar[int] = 10

    bits: Any
    counts: Any
    limbs: int
    k: int

    # What a learner defines -----------------------------------------------------------------------------------

    def items(self, fine: groups.Groups) -> Items:
        """The items, made from the distinct labelled points."""
        raise NotImplementedError

    def log_keep(self, items: Items, heavy: Bool[Array, "m"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """(ln P[released], ln P[⊥]) given which items are heavy: by default, always released."""
        return jnp.zeros((), float), jnp.full((), -jnp.inf, float)

    def log_released(self, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[heavy], ln P[not]) of items of these counts."""
        raise NotImplementedError

    # The stages -----------------------------------------------------------------------------------------------

    def fit(self, sample: Any) -> MultiSample:
        return fitted(sample, MultiSample, bits=self.bits, limbs=(self.limbs,), k=self.k, any_rows=True)

    def prepare(self, sample: MultiSample) -> View:
        return View(self.items(distinct(sample)), sample)

    def run(self, key: Array, sample: MultiSample) -> tuple[Point, Bool[Array, ""], Any]:
        """The same draws by `groups.drawn`."""

        def draw(key: Array, fine: groups.Groups) -> Any:
            return self.draw(key, View(self.items(fine), sample))

        return groups.drawn(key, _labelled(sample), sample.valid, draw)

    def log_heavy(self, items: Items) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[heavy], ln P[not]) of every item, independently."""
        log_p, log_q = self.log_released(items.counts)
        there = items.counts > 0
        return jnp.where(there, log_p, -jnp.inf), jnp.where(there, log_q, 0.0)

    def law(self, view: View, good: Bool[Array, "more k"]) -> Float[Array, "2"]:
        """The sum over all sets of heavy items; `good` says whether h_j may be c_x, for the x of every likely item, and last all-zero."""
        items = self._likely(view.items)
        count = items.counts.shape[0]
        at_risk = jnp.sum(self.log_heavy(view.items)[0] > -jnp.inf, dtype=jnp.int32)
        log_p, log_q = self.log_heavy(items)

        def one(code: Array) -> Array:
            heavy = ((code >> jnp.arange(count, dtype=jnp.int32)) & 1).astype(bool)
            chance = jnp.sum(jnp.where(heavy, log_p, log_q))
            kept, bottom = (jnp.exp(chance + part) for part in self.log_keep(items, heavy))
            inside = jnp.all(good[first(items.vectors, heavy, self.k), jnp.arange(self.k, dtype=jnp.int32)])
            return jnp.stack([jnp.where(inside, kept, 0.0), jnp.where(inside, 0.0, kept) + bottom])

        total = jnp.sum(lax.map(one, jnp.arange(1 << count, dtype=jnp.int32), batch_size=64), axis=0)
        return jnp.where(at_risk <= count, total, jnp.nan)

    def _likely(self, items: Items) -> Items:
        """The `MOST` most frequent items, in the order that `first` uses."""
        chosen = jnp.sort(lax.top_k(items.counts, min(self.MOST, items.counts.shape[0]))[1])
        return Items(*(part[chosen] for part in items))

    # Events ---------------------------------------------------------------------------------------------------

    def check_event(self, event: Any) -> Interval | PointSet:
        if isinstance(event, PointSet):
            if event.points.ndim != 3 or event.points.shape[0] != self.k:
                raise ValueError(
                    f"event must be a PointSet with k = {self.k} rows, got one with points of shape {event.points.shape}"
                )
            return event
        return intervals(event, self.k, self.limbs + 1, f"k = {self.k} concepts")

    def event(self, view: View, event: Any) -> Bool[Array, "more k"]:
        items = self._likely(view.items)
        if isinstance(event, Accurate):
            return event.allows(_wrong(view.sample, items), view.sample.n_valid)
        return jax.vmap(lambda one: _holds(one, items.points), out_axes=-1)(event)

    def exactly(self, output: Any) -> PointSet:
        self._check_output(output)
        yes, zero = jnp.ones((self.k, 1), bool), jnp.asarray(output.zero)
        points = output.position[:, None]
        return PointSet(points=points, where=~zero[:, None], good=yes, others=jnp.zeros((self.k,), bool), zero=zero)

    def anything(self) -> PointSet:
        nowhere, yes = jnp.zeros((self.k, 1), bool), jnp.ones((self.k,), bool)
        points = jnp.zeros((self.k, 1, self.limbs), jnp.uint32)
        return PointSet(points=points, where=nowhere, good=nowhere, others=yes, zero=yes)

    def listed(self) -> int:
        """The number of vectors of k hypotheses, listed with the last hypothesis running fastest; each is a point or, last, all-zero."""
        single = few_points(self.bits) + 1
        if single**self.k > 1 << LARGEST_PMF:
            raise ValueError(f"k must leave at most 2^{LARGEST_PMF} outputs for a list, got {single}^{self.k}")
        return single**self.k

    def output(self, index: UInt32[Array, ""]) -> Point:
        points = jnp.uint32(1) << jnp.asarray(self.bits).astype(jnp.uint32)
        digits = []
        for _ in range(self.k):
            index, digit = index // (points + 1), index % (points + 1)
            digits.append(digit)
        each = jnp.stack(digits[::-1])
        return Point.shown(wide.from_uint32(each, self.limbs), each == points)

    # The rest -------------------------------------------------------------------------------------------------

    def predict(self, hypothesis: Any, x: Any) -> Bool[Array, "rows k"]:
        """The k labels of points.

        Raises:
          TypeError, ValueError: a hypothesis that is not a `Point` of k concepts; points that are not wide integers.
        """
        self._check_output(hypothesis)
        return hypothesis.predict(wide_rows("x", x))

    def _check_output(self, output: Any) -> None:
        if not isinstance(output, Point):
            raise TypeError(f"hypothesis must be a Point of k concepts, got {type(output).__name__}")
        if jnp.shape(output.position) != (self.k, self.limbs):
            raise ValueError(
                f"hypothesis must be a Point of k = {self.k} concepts, got positions of shape {output.position.shape}"
            )


class OfItems(ManyPointsLearner):
    """A learner of k points by `NoisyCounts` of the items that occur.

    Attributes:
      counts: the noisy counts of items.
      heavy: the noisy count from which on an item is heavy.
    """

    counts: NoisyCounts
    heavy: Any

    def log_released(self, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        return self.counts.log_released(counts, above=self.heavy)

    def draw(self, key: Array, view: View) -> tuple[Point, Bool[Array, ""], Any]:
        key_heavy, key_test = jax.random.split(key)
        items = view.items
        heavy = self.draw_heavy(key_heavy, items)
        kept = random.bernoulli(key_test, *self.log_keep(items, heavy))
        hypothesis = named(items.points, items.vectors, heavy, self.k)
        return hypothesis, kept, {"heavy": jnp.sum(heavy, dtype=jnp.int32)}

    def draw_heavy(self, key: Array, items: Items) -> Bool[Array, "m"]:
        """Which items are heavy: one run of the noisy counts."""
        noisy, released = self.counts.noisy(key, items.counts)
        return released & (noisy >= jnp.asarray(self.heavy, float)) & (items.counts > 0)


def _holds(event: Interval | PointSet, points: UInt32[Array, "m limbs"]) -> Bool[Array, "more"]:
    """Whether each point, and last all-zero, is in one event; no interval holds all-zero."""
    return jnp.append(event.holds(points), event.zero if isinstance(event, PointSet) else False)


def _labelled(sample: MultiSample) -> UInt32[Array, "rows both"]:
    """Points and labels side by side."""
    return jnp.concatenate([sample.x, sample.y], axis=1)


def _wrong(sample: MultiSample, items: Items) -> Int[Array, "more k"]:
    """How many examples c_x gets wrong for each concept, for every item's x and last for all-zero."""
    labels = sample.labels & sample.valid[:, None]
    ones = jnp.sum(labels, axis=0, dtype=jnp.int32)

    def at(point: Array) -> Array:
        here = wide.equal(sample.x, point[None]) & sample.valid
        right = jnp.sum(labels & here[:, None], axis=0, dtype=jnp.int32)
        return ones + jnp.sum(here, dtype=jnp.int32) - 2 * right

    return jnp.concatenate([lax.map(at, items.points), ones[None]])
