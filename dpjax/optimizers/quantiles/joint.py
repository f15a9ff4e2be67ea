"""All quantiles at once by the exponential mechanism on the sizes of the gaps between them (JointExp: Gillenwater, Joseph, Kulesza 2021).

Sorted outputs y_1 <= ... <= y_m cut n points into gaps of n_1, ..., n_(m+1) points, which should be w_j n, w_j the differences of
neighbouring fractions. With targets t_j the tuple has a density proportional to exp(-kappa (|n_1 - t_1| + ... + |n_(m+1) - t_(m+1)|)).

**Ties.** The domain is spread over the reals [0, 2^d): equal points a are put at places in [a, a + 1) that do not depend on how many
there are (`ties`), outputs are real numbers, and what is released is rounded down. So an output inside [a, a + 1) has any share of those
points below it, as its rank requires, and one more point is one more place and moves no other.

**Privacy** (ADD_OR_REMOVE_ONE), targets w_j n (`candidates=1`). One more point raises one n_i by 1 and every target by w_j, so that the
sum moves by at most (1 - w_i) + the sum of the other w_j = 2 (1 - w_i), up or down. The log of a probability moves by kappa times the
range of these moves at most, so kappa = epsilon / (4 (1 - min w)) makes all outputs together (epsilon, 0)-private: the paper's constant.
It is sharp: gaps i whose n_i is too small while all others are too large gain 2 (1 - w_i), and others lose it.

**Fitted counts** (`candidates` > 1; ours). What costs the factor 2 (1 - w) is that the targets move with n. With targets w_j N for a
public N the sum moves by 1 at most, so that kappa = epsilon / 2. N need not be close to n with certainty, and it need not be paid for by
itself: it is one more output of the same mechanism. First a noisy count n + geometric noise of rate a = `share` * epsilon is released,
rounded to i_0 h with h = 8 / epsilon; then (N, y) is drawn from the product of the public grid N = i h, i >= 0 with |i - i_0| <=
(candidates - 1)/2, and the sorted tuples, with density proportional to exp(-kappa sum |n_j - w_j N|), kappa = (1 - share) epsilon / 2.
That is (a + 2 kappa, 0) = (epsilon, 0)-private. N comes out close to n, as the sum is at least |n - N|. For m quartiles, ..., the rate
rises by 2 (1 - share)(1 - w): 1.42 for m = 3, 1.8 for 19.

**Utility.** For an output with D points too many below it, |n_1 + ... + n_j - f_j N| + |the rest - (1 - f_j) N| >= |D| / max{f_j, 1 -
f_j} for every N. With K candidates, all tuples have a volume of 2^(dm) / m! and those whose ranks are right up to rounding one of
(2n + 2)^-m / m! at least, so that D > t for some output has probability at most K exp(-kappa t / max f + kappa (h / 2 + m))
(2^(d + 1) (n + 1))^m, once n is within the grid. This is the worst of all data; the exact law says what holds for given ones.

**Scales.** Lengths are a public choice of what outputs weigh before they see data. With `base="scales"` it is a mixture for all outputs
together: half of it uniform, half of it by `scales`, which of the two is one more output of the mechanism. So the probability above
doubles at most, for any m, while a mixture for each output on its own would pay a factor of 2 for each.

**Places.** With `base="places"` a tenth of the mixture is a third part: all outputs in one interval of 2^(d - l) integers, for eight levels
l (`axis`). So outputs pay once for their common place, l ln 2 in place of m l ln 2, and the probability above has a factor of 2/0.9 in all.
Where the count pays for more than ENOUGH m d ln 2, wrong ranks cost so much more than wrong places that this brings nothing: a run leaves
it out by what the noisy count says, which is public.

**Shared values.** Where many points share values, gaps say little: within one value places have every rank, but the better part of them a
wrong one, and no place is better than a right one just beside another value. With `shared` there is one more part of the mixture, tuples by
their largest rank error (`largest`), which sees how deep the wanted ranks lie within their values: a tuple of depth t weighs exp(r t), at
the rate r at which one more point moves it by half of what the mixture may lose, as it does all others: r w = kappa with a noisy count,
else epsilon / 2. On other points it errs more than the gaps do, as it lets all outputs err as much as one. So it has a public factor,
SHARED exp(-m^2 / 7) of what the gaps weigh (for one N and one measure) over what it weighs in an example: i_0 h points, EXAMPLE if there
are more or no count is released, evenly spread over 1/33 of the axis, and whole ranks. The square is measured: on 36 cells of real and
simulated columns this part mostly erred more than the gaps; where it did although its weight, but for SHARED and the square, was the
greater one, that was by factors of up to e^16 or so for 11 quantiles and e^5 for 7; where it erred a third as much or less, the factors
were e^7 to e^9 for 2 to 5 quantiles, and e^23 for 9. Its error is above t with probability 2^(d m) exp(-r t) at most (twice that by scales)
for each noisy count. So given a count within reach of n, the error of the whole is at most the greater of this and what is said above.

**zCDP.** The losses of what is drawn lie in an interval of length epsilon for targets w_j n, and of length 2 kappa = (1 - share) epsilon
once the count is known: epsilon^2/8-zCDP, and with the count's own a tanh(a/2) <= a^2/2 at most (4 share^2 + (1 - share)^2) epsilon^2/8
(`accounting.exponential`). All outputs are those of one mechanism, so that a delta would bring next to nothing.

The law sums over the noisy counts within ln(1/u) / a of n, u the rounding unit; what is beyond has a probability of u or less, and is
counted as a failure.
The plain twin is `dpjax.verify.plain.quantiles.joint_law`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.mechanisms.base import Between
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.mechanisms.geometric import mechanism as geometric_mechanism
from dpjax.optimizers.quantiles import chains, largest, scales
from dpjax.optimizers.quantiles.axis import ANYWHERE, BASES, PLACES, Axis, Parts, in_parts, merged, of_measure
from dpjax.optimizers.quantiles.base import MOST_ROWS, nearest_rank, total
from dpjax.optimizers.quantiles.chains import Drawn, Stretches, Targets
from dpjax.optimizers.quantiles.ranked import RankedQuantiles, rounded_fractions

STEP = 8.0  # h in units of 1 / epsilon
CANDIDATES = 31
BATCH = 8  # of candidates weighed at once by a run
ENOUGH = 2.0  # times what the places of all outputs cost one by one: from there on places bring nothing
SHARE = 0.05
# What `largest` weighs in an example, in units of exp(-m^2 / 7) of what the gaps do: that of so many evenly spread points at most (more
# would change nothing), and on both sides as much of the axis as this many times what they fill.
SHARED = 0.05
EXAMPLE = 1024
OUTSIDE = 16


@frozen
class JointQuantiles(RankedQuantiles):
    """All quantiles at once by the exponential mechanism on the sizes of the gaps; build it by `joint`.

    An event of the law is an interval for each quantile: that every one of them, in order, is in its own.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total one.
      limbs: of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      candidates: how many values of N are tried, an odd number; 1 for targets w_j n (static).
      share: of epsilon, for the noisy count (static).
      origin: of scales.
      base: "uniform", "scales" or "places" (static).
      shared: whether tuples are also weighed by their largest rank error (static).
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    origin: UInt32[Array, "wider"]
    limbs: int = static()
    wider: int = static()
    candidates: int = static()
    share: float = static()
    base: str = static()
    shared: bool = static()

    @property
    def fitted(self) -> bool:
        """Whether N is an output."""
        return self.candidates > 1

    def sound(self) -> Bool[Array, ""]:
        """A noisy count must fit int32, or it is no noisy count."""
        fits = (self._count_rate() >= SMALLEST_RATE) | (not self.fitted)
        return super().sound() & fits

    def weights(self) -> Float[Array, "gaps"]:
        """w_1, ..., w_(m+1)."""
        return self._gaps().astype(float) * 2.0**-32

    def _gaps(self) -> UInt32[Array, "gaps"]:
        """2^32 w_j; the last one by 2^32 = 0."""
        fractions = jnp.asarray(self.fractions)
        none = jnp.zeros(1, jnp.uint32)
        return jnp.concatenate([fractions, none]) - jnp.concatenate([none, fractions])

    def kappa(self) -> Float[Array, ""]:
        """The rate at which weights fall with the distance of the gaps from their targets."""
        epsilon = jnp.asarray(self.epsilon, float)
        if self.fitted:
            return (1 - self.share) * epsilon / 2
        return epsilon / (4 * (1 - jnp.min(self.weights())))

    def rate(self) -> Float[Array, ""]:
        """The rate at which weights fall with the largest rank error."""
        half = self.kappa() if self.fitted else jnp.asarray(self.epsilon, float) / 2
        return half / largest.width(jnp.asarray(self.fractions))

    # ------------------------------------------------------------------------------------------------- one run

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_candidate, key_chain, key_place = jax.random.split(key, 4)
        axis, parts = self.axis, self.axis.cut(points)
        index, count, about = jnp.zeros(1, jnp.int32), jnp.int32(MOST_ROWS), jnp.int32(EXAMPLE)
        if self.fitted:
            count = geometric(key_count, points.n_valid, epsilon=self._count_rate())
            about = self._about(self._rounded(count))
            index = self._rounded(count) + jnp.arange(self.candidates, dtype=jnp.int32) - self.candidates // 2
        kappa, measures = self.kappa(), self._measures(self._rounded(count))
        chains_of = merged(parts, points)

        def log_total(pair: tuple[Array, Array]) -> Array:
            """ln of the weight of all tuples for N = index h and a measure; nothing for N < 0."""
            index, measure = pair
            total, _ = chains.forward(of_measure(chains_of, measure), self._targets(index, points), kappa)
            return jnp.where(index >= 0, total + axis.log_priors()[measure], -jnp.inf)

        # Measure by measure, so that those that are not used are at the end.
        pairs = jnp.tile(index, axis.measures), jnp.repeat(jnp.arange(axis.measures, dtype=jnp.int32), index.size)
        alone = pairs[0].size == 1 and not self.shared
        logs = jnp.zeros(1) if alone else _first(log_total, pairs, measures * index.size)
        if self.shared:
            key_place, key_level = jax.random.split(key_place)
            levels = self._levels(points)
            by_block = levels.log_blocks(self.rate())
            logs = jnp.concatenate([logs, logspace.logsumexp(by_block) + self._log_share(about)])
        one = logspace.draw(key_candidate, logspace.sum_tree(logs))
        by_gaps, pair = one < pairs[0].size, jnp.minimum(one, pairs[0].size - 1)
        targets, measure = self._targets(pairs[0][pair], points), pairs[1][pair]
        chain = of_measure(chains_of, measure)
        _, kept = chains.forward(chain, targets, kappa)
        found = chains.draw(key_chain, chain, targets, kappa, kept)
        keys = jax.vmap(jax.random.split)(jax.random.split(key_place, self.fractions.shape[0]))
        key_empty = jax.random.fold_in(key_chain, keys.shape[0] + 1)  # after those of the chain
        start, stop = self._places(key_empty, keys[:, 0], points, parts, measure, found)
        if self.shared:
            measure = jnp.where(by_gaps, measure, one - pairs[0].size)
            kind = jnp.maximum(one - pairs[0].size, 0)
            here = self._ranges(points, levels.draw(key_level, by_block[kind], kind, self.rate()))
            start, stop = wide.select(by_gaps, start, here.start), wide.select(by_gaps, stop, here.stop)
        answers = jax.vmap(lambda key, start, stop: axis.within(key, start, stop, measure))(keys[:, 1], start, stop)
        ordered = wide.sort(answers)[0]  # those in one stretch come in any order
        if self.shared:
            ordered = wide.select(by_gaps, ordered, largest.running_maximum(answers))
        return wide.resize(ordered, self.limbs), jnp.bool_(True), {"by_gaps": by_gaps, "count": count}

    @property
    def axis(self) -> Axis:
        """The domain and what outputs weigh on it."""
        return Axis(bits=self.bits, origin=self.origin, base=self.base)

    def _measures(self, index: Int[Array, "*k"]) -> Int[Array, "*k"]:
        """How many measures are used, given the rounded noisy count: places only where the count does not pay for much more than for the
        places of all outputs one by one."""
        if self.base != "places" or not self.fitted:
            return jnp.full(jnp.shape(index), self.axis.measures, jnp.int32)
        pays = self.kappa() * self._step() * index.astype(float)
        one_by_one = self.fractions.shape[0] * scales.LN2 * self.axis.d().astype(float)
        return jnp.where(pays <= ENOUGH * one_by_one, jnp.int32(self.axis.measures), jnp.int32(ANYWHERE))

    def _targets(self, index: Int[Array, ""], points: Points) -> Targets:
        """Of N = index h, or of n if N is no output."""
        return self._at(jnp.maximum(index, 0)) if self.fitted else self._own(points.n_valid)

    def _places(
        self, key: Array, keys: Array, points: Points, parts: Parts, measure: Int[Array, ""], found: Drawn
    ) -> tuple[UInt32[Array, "outputs limbs"], UInt32[Array, "outputs limbs"]]:
        """For each output integers start, ..., stop - 1 that a measure draws it from."""
        level, axis = self.axis.levels()[measure], self.axis

        def place(key: Array, at: Array, tail: Array) -> Any:
            side = jnp.array([0, 0, 1, 1], jnp.int32)
            ours = jnp.where(tail, side == 0, (side == 1) | ~parts.opens[measure, at])
            weights = jnp.where(ours, parts.log_length[measure, at], -jnp.inf)
            return axis.part(key, points, weights, at, level)

        start, stop = jax.vmap(place)(keys, found.stretch, found.tail)
        empty_start, empty_stop = axis.empty(key, points, found.stretch[0], level)
        return wide.select(found.empty, empty_start, start), wide.select(found.empty, empty_stop, stop)

    # ------------------------------------------------------------------------------------------------- shared values

    def _ranges(self, points: Points, level: Int[Array, ""]) -> largest.Ranges:
        """Where outputs lie whose largest rank error is at most `level`."""
        return largest.ranges(points, largest.ranks(self.fractions, points.n_valid), level, self.axis.end())

    def _levels(self, points: Points) -> largest.Levels:
        """Tuples by their largest rank error, as runs look at them."""
        return largest.Levels(
            ranges=lambda level: self._ranges(points, level),
            log_weight=self.axis.log_weight,
            levels=largest.levels(points.rows),
        )

    def _about(self, index: Int[Array, "*k"]) -> Int[Array, "*k"]:
        """How many points the example has, by a rounded noisy count."""
        return jnp.clip(index.astype(float) * self._step(), 0.0, float(EXAMPLE)).astype(jnp.int32)

    def _log_share(self, n: Int[Array, ""]) -> Float[Array, ""]:
        """ln of the factor of tuples by their largest rank error, which look at an example of n <= EXAMPLE points."""
        rank = jnp.arange(EXAMPLE + 1, dtype=jnp.int32)
        end = (rank == 0) | (rank == n)
        lengths = jnp.where(end, jnp.maximum(OUTSIDE * n, 1).astype(float), (rank < n).astype(float))
        chain = chains.undivided(jnp.log(lengths), n)
        ranks = nearest_rank(self.fractions, n)
        gaps = jnp.concatenate([ranks, n[None]]) - jnp.concatenate([jnp.zeros(1, jnp.int32), ranks])
        by_gaps, _ = chains.forward(chain, Targets(whole=gaps, rest=jnp.zeros(gaps.shape)), self.kappa())
        by_largest = largest.log_total(lengths, ranks, n, self.rate())
        return math.log(SHARED) - self.fractions.shape[0] ** 2 / 7 + by_gaps - by_largest

    # ------------------------------------------------------------------------------------------------- parts of one run

    def _own(self, n: Int[Array, ""]) -> Targets:
        """w_j n."""
        gaps, count = self._gaps(), n.astype(jnp.uint32)
        return Targets(
            whole=wide.high_product(gaps, jnp.broadcast_to(count, gaps.shape)).astype(jnp.int32),
            rest=(gaps * count).astype(float) * 2.0**-32,
        )

    def _at(self, index: Int[Array, ""]) -> Targets:
        """w_j N for N = index h: any public numbers would do, so roundings are harmless."""
        targets = self.weights() * (index.astype(float) * self._step())
        floor = jnp.floor(targets)
        return Targets(whole=floor.astype(jnp.int32), rest=targets - floor)

    def _step(self) -> Float[Array, ""]:
        """h."""
        return STEP / jnp.asarray(self.epsilon, float)

    def _count_rate(self) -> Float[Array, ""]:
        return self.share * jnp.asarray(self.epsilon, float)

    def _rounded(self, count: Int[Array, ""]) -> Int[Array, ""]:
        """i_0, of a noisy count."""
        return jnp.maximum(jnp.floor(count.astype(float) / self._step() + 0.5), 0.0).astype(jnp.int32)

    # ------------------------------------------------------------------------------------------------- the law

    def law(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        chains_of, inside, between = self._cut(points, intervals)
        by_largest = self._split_largest(points, intervals) if self.shared else jnp.full(2, -jnp.inf)

        def split(targets: Targets, measures: Array) -> Array:
            """For each measure, as far as it is used."""

            def one(measure: Array) -> Array:
                logs = chains.split(of_measure(chains_of, measure), targets, self.kappa(), inside, between)
                return logs + self.axis.log_priors()[measure]

            def used(measure: Array) -> Array:
                return lax.cond(measure < measures, one, lambda _: jnp.full(2, -jnp.inf), measure)

            return lax.map(used, jnp.arange(self.axis.measures, dtype=jnp.int32))

        def share(n: Array) -> Array:
            return by_largest + (self._log_share(n) if self.shared else 0.0)

        if not self.fitted:
            logs = logspace.logsumexp(split(self._own(points.n_valid), jnp.int32(self.axis.measures)).T)
            return _shares(logspace.logaddexp(logs, share(jnp.int32(EXAMPLE))))
        return self._mixed(split, share, points.n_valid)

    def _split_largest(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        """ln of what tuples by their largest rank error weigh, inside and outside of the intervals."""
        low, high = self._within(intervals)
        levels = largest.levels(points.rows)
        return largest.split(
            lambda level: self._ranges(points, level), levels, self.rate(), low, high, self.axis.log_weight
        )

    def _within(self, intervals: Interval) -> tuple[UInt32[Array, "quantiles wider"], UInt32[Array, "quantiles wider"]]:
        """The ends of the intervals, at 2^d at most."""
        beyond = wide.power_of_two(self.bits, intervals.low.shape[-1])[None]
        low, high = (
            wide.resize(wide.minimum(end, jnp.broadcast_to(beyond, end.shape)), self.wider)
            for end in (intervals.low, intervals.high)
        )
        return low, high

    def _cut(
        self, points: Points, intervals: Interval
    ) -> tuple[Stretches, Bool[Array, "outputs stretches"], Bool[Array, "outputs gaps"]]:
        """All parts of stretches by each measure, which the ends of the intervals cut, too; which of them lie in each interval, and which
        integers between two rows do."""
        low, high = self._within(intervals)
        cuts = wide.concatenate(low, high)
        counted = jnp.concatenate([points.valid, jnp.zeros(cuts.shape[0], bool)])
        kept = jnp.concatenate([points.valid, jnp.ones(cuts.shape[0], bool)])
        x = wide.concatenate(wide.resize(points.x, self.wider), cuts)
        x, counted = wide.sort(wide.select(kept, x, ~jnp.zeros_like(x)), counted)
        rows = Points(x=x, n_valid=points.n_valid + cuts.shape[0], ordered=True)
        chains_of = in_parts(self.axis.cut(rows, counted), points)
        inside, between = jax.vmap(lambda a, b: self._inside(x, a, b))(low, high)
        return chains_of, inside, between

    def _inside(
        self, x: UInt32[Array, "rows limbs"], low: Array, high: Array
    ) -> tuple[Bool[Array, "stretches"], Bool[Array, "gaps"]]:
        """Which parts lie in [low, high): those at a row if the row does, those between two rows if their first integer does."""

        def within(value: Array) -> Array:
            least, beyond = jnp.broadcast_to(low, value.shape), jnp.broadcast_to(high, value.shape)
            return wide.less_equal(least, value) & wide.less(value, beyond)

        at, after = within(x), within(wide.add(x, jnp.broadcast_to(self.axis.unit(), x.shape)))
        no = jnp.zeros(1, bool)
        between = jnp.concatenate([within(jnp.zeros_like(x[:1])), after])
        parts = (jnp.concatenate([no, at]), between, between, jnp.concatenate([at, no]))
        return jnp.stack(parts, axis=1).reshape(-1), between

    def _mixed(
        self, split: Callable[[Targets, Array], Array], share: Callable[[Array], Array], n: Int[Array, ""]
    ) -> Float[Array, "2"]:
        """The mixture over noisy counts: each N is weighed once, and every noisy count looks at a window of them, and has its share."""
        reach = math.ceil(-math.log(jnp.finfo(self.kappa().dtype).eps) / (STEP * self.share))
        windows = jnp.arange(2 * reach + 1, dtype=jnp.int32)
        counts = self._rounded(n) - reach + windows
        first = counts[0] - self.candidates // 2
        measures = self._measures(counts)
        most = jnp.max(jnp.where(counts >= 0, measures, 0))

        def weigh(index: Array) -> Array:
            logs = split(self._at(jnp.maximum(index, 0)), most)
            return jnp.where(index >= 0, logs, -jnp.inf)

        index = first + jnp.arange(2 * reach + self.candidates, dtype=jnp.int32)
        logs = lax.map(weigh, index, batch_size=16)
        looked = windows[:, None] + jnp.arange(self.candidates, dtype=jnp.int32)[None]
        shares = lax.map(share, self._about(counts), batch_size=16)
        used = jnp.arange(self.axis.measures, dtype=jnp.int32)[None] < measures[:, None]

        def law_of(rows: Array, used: Array, more: Array) -> Array:
            by_gaps = jnp.where(used[None, :, None], logs[rows], -jnp.inf).reshape(-1, 2)
            return _shares(logspace.logaddexp(logspace.logsumexp(by_gaps.T), more))

        each = jax.vmap(law_of)(looked, used, shares)
        chances, beyond = self._noisy(counts, n)
        law = jnp.sum(jnp.where(counts >= 0, chances, 0.0)[:, None] * each, axis=0)
        return law.at[1].add(beyond)

    def _noisy(self, counts: Int[Array, "k"], n: Int[Array, ""]) -> tuple[Float[Array, "k"], Float[Array, ""]]:
        """(P[i_0] for consecutive ones, P[none of them])."""

        def edge(index: Array) -> Array:
            least = jnp.ceil((index.astype(float) - 0.5) * self._step())
            return jnp.where(index <= 0, -(2**30), jnp.clip(least, -(2.0**30), 2.0**30).astype(jnp.int32))

        noise = geometric_mechanism(epsilon=self._count_rate())
        shape = jnp.broadcast_to(n, counts.shape)
        each, _ = noise.split(shape, Between(low=edge(counts), high=edge(counts + 1)))
        _, beyond = noise.split(n, Between(low=edge(counts[0]), high=edge(counts[-1] + 1)))
        return each, beyond

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        """The law of each quantile: all others may be anywhere."""
        own = jnp.eye(self.fractions.shape[0], dtype=bool)
        everything = Interval(low=jnp.zeros_like(intervals.low), high=~jnp.zeros_like(intervals.high))

        def one(own: Array) -> Array:
            low, high = (
                wide.select(own, a, b) for a, b in ((intervals.low, everything.low), (intervals.high, everything.high))
            )
            return self.law(points, Interval(low=low, high=high))

        return lax.map(one, own)

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        """Of (z_1, ..., z_m), z_m running fastest; only those in order have any."""
        m = self.fractions.size
        size = round(outputs ** (1 / m))
        answers = np.stack(np.unravel_index(np.arange(outputs), (size,) * m), axis=1)
        low = wide.from_uint32(jnp.asarray(answers, jnp.uint32), self.limbs + 1)

        def mass(low: Array) -> Array:
            return self.law(points, jax.vmap(Interval.single)(low))[0]

        possible = np.flatnonzero((np.diff(answers, axis=1) >= 0).all(axis=1))
        return jnp.zeros(outputs + 1).at[possible].set(lax.map(mass, low[possible]))

    # ------------------------------------------------------------------------------------------------- promises

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE: all quantiles together, and the noisy count."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def zcdp(self) -> float:
        """rho for which all quantiles together are rho-zCDP under ADD_OR_REMOVE_ONE, rounded up."""
        part = _per_root(self.share, self.candidates)
        return (arguments.known("epsilon", self.epsilon) / part) ** 2 / 8 * (1 + 2.0**-44)

    def error(self, n: int, *, beta: float) -> float:
        """By how many ranks the outputs miss f n at most on n points, whatever they are, but with probability beta: see the module."""
        m, beta = self.fractions.shape[0], arguments.known_fraction("beta", beta)
        with jax.enable_x64(True):
            kappa, rate, epsilon = float(self.kappa()), float(self.rate()), float(self.epsilon)
        f = np.asarray(self.fractions, float) * 2.0**-32
        places = m * int(self.bits) * scales.LN2
        by_gaps, by_error = {"uniform": (1, 1), "scales": (2, 2), "places": (2 / (1 - PLACES), 2)}[
            self.base
        ]  # over what is uniform
        nats = places + math.log(by_gaps) + m * (scales.LN2 + math.log(n + 1.0))
        worst = 1 / np.max(np.maximum(f, 1 - f))
        step, outside = STEP / epsilon, self.outside()
        if outside >= beta:
            return math.inf
        rest = math.log(1 / (beta - outside))
        by_largest = (places + math.log(by_error) + rest) / rate + 0.5 / largest.PARTS if self.shared else 0.0
        if not self.fitted:
            return max((nats + rest + kappa * m) / (2 * kappa), by_largest)
        return max((nats + math.log(self.candidates) + rest + kappa * (step / 2 + m)) / (kappa * worst), by_largest)

    def outside(self) -> float:
        """With what probability the noisy count is so far off that n is not within the grid, and no error can be stated."""
        if not self.fitted:
            return 0.0
        # P[|noise| > x] for half the width x of the grid, noise of rate a = share * epsilon.
        epsilon = float(self.epsilon)
        beyond = math.floor(STEP / epsilon * (self.candidates // 2)) + 1
        return 2 * math.exp(-self.share * epsilon * beyond) / (1 + math.exp(-self.share * epsilon))

    def check_beta(self, beta: float) -> None:
        """ValueError for a beta that the noisy count alone exceeds.

        Raises:
          ValueError: see above.
        """
        if self.outside() >= beta:
            raise ValueError(f"beta must be above what the noisy count fails with, {self.outside():.3g}, got {beta}")

    def released_error(self, count: Any, *, beta: float) -> float:
        """The same without n: from the `count` that a run releases, with probability beta in all, as both look at one noise.

        Without candidates no count is released, and `count` is the most rows that an array can have.
        """
        more = STEP / float(self.epsilon) * (self.candidates // 2) if self.fitted else 0.0
        return self.error(max(int(count), 0) + math.ceil(more), beta=beta)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Points with which all ranks are within alpha n of f n, with probability 1 - beta, by `error`.

        Raises:
          ValueError: alpha or beta outside (0, 1), or a beta that the noisy count alone exceeds.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        self.check_beta(beta)
        n, more = 0, 1
        while more > n:  # error grows with ln n only
            n, more = more, whole((self.error(more, beta=beta) + 1) / alpha)
        return n


def _per_root(share: float, candidates: int) -> float:
    """epsilon over sqrt(8 rho), at which the whole is rho-zCDP."""
    return (4 * share**2 + (1 - share) ** 2) ** -0.5 if candidates > 1 else 1.0


def _first(one: Callable[[Any], Float[Array, ""]], given: Any, count: Int[Array, ""]) -> Float[Array, "n"]:
    """`one` of each of the first `count`, some at a time; -inf for all others."""
    size = jax.tree.leaves(given)[0].shape[0]

    def step(i: Array, found: Array) -> Array:
        number = i * BATCH + jnp.arange(BATCH, dtype=jnp.int32)
        here = jax.vmap(one)(jax.tree.map(lambda leaf: leaf[jnp.minimum(number, size - 1)], given))
        return lax.dynamic_update_slice_in_dim(found, jnp.where(number < count, here, -jnp.inf), i * BATCH, axis=0)

    nothing = jnp.full(size + -size % BATCH, -jnp.inf)
    return lax.fori_loop(0, (count + BATCH - 1) // BATCH, step, nothing)[:size]


def _shares(logs: Float[Array, "2"]) -> Float[Array, "2"]:
    """Weights as shares of their sum; (0, 0) where there are none."""
    total = logspace.logsumexp(logs)
    return jnp.exp(logs - jnp.where(jnp.isneginf(total), 0.0, total))


def joint(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any = None,
    rho: Any = None,
    candidates: int = CANDIDATES,
    share: float = SHARE,
    base: str = "uniform",
    origin: int = 0,
    shared: bool = False,
) -> JointQuantiles:
    """Quantiles at `fractions` of the points, all at once, by the exponential mechanism on the gaps between them; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together, or rho-zCDP; see `JointQuantiles.zcdp`. Not
    promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: each strictly between 0 and 1, increasing; rounded to multiples of 2^-32.
      epsilon: total, > 0, finite, and at least 2^-25 / share unless candidates is 1; may be traced.
      rho: the total of zero-concentrated privacy, in place of epsilon; may be traced. The guarantee then states the pure epsilon that it
        takes.
      candidates: how many values of N are tried, an odd number; 1 takes the number of points itself, at the paper's constant.
      share: of epsilon, for the noisy count that says where to look for N.
      base: what outputs weigh before they see data: "uniform", as in the paper; "scales", half of it by `scales`, for values of
        unknown scale; "places", a tenth of it for values that lie close together, wherever that is.
      origin: the public point around which scales lie, 0 to 2^bits.
      shared: whether tuples are also weighed by their largest rank error, for values that many points share.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both epsilon and rho, or none.

    >>> deciles = joint(bits=24, fractions=[i / 10 for i in range(1, 10)], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 2000), 24))
    >>> answers = wide.to_ints(deciles(jax.random.key(0), points).hypothesis)
    >>> max(abs(z - 1000 - 100 * i) for i, z in enumerate(answers, 1)) < 30
    True
    """
    each: Any = np.asarray(rounded_fractions(fractions), np.uint32)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    candidates = arguments.integer("candidates", candidates, at_least=1, at_most=2**16)
    if candidates % 2 == 0:
        raise ValueError(f"candidates must be odd, got {candidates}")
    domain: Any = {
        "bits": np.int32(bits),
        "limbs": wide.limbs_for(bits),
        **scales.base_measure(base, origin, bits, BASES),
    }
    share = arguments.known_fraction("share", share)
    budget = total(epsilon, 0.0, rho, per_root=_per_root(share, candidates))
    least = SMALLEST_RATE / share if candidates > 1 else 0.0
    return JointQuantiles(
        **domain,
        fractions=each,
        epsilon=arguments.real("epsilon", budget["epsilon"], at_least=least),
        share=share,
        candidates=candidates,
        shared=arguments.flag("shared", shared),
    )
