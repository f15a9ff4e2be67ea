"""All quantiles at once, by how many records must come or go to make them right, or wrong (inverse sensitivity: Asi and Duchi 2020).

A sorted tuple z_1 <= ... <= z_m is *right* for n points if #{x < z_j} <= f_j n <= #{x <= z_j} for all j, and n >= N_0, a public number.
With

    s(z) = -(the least number of records, parts of them included, that must come or go until z is right), if it is wrong,
    s(z) = the least number that must come or go until z is wrong, if it is right,

the tuple weighs exp(epsilon s(z) / 2), times a public measure.

**Both distances.** The counts of a tuple are the numbers of points below z_1, at z_1, between z_1 and z_2, and so on. The tuple is right on
a cone of counts, a convex set. To reach it from outside, choose the new number of points, N, and ranks r_j of z_j: then the gaps
n_i = r_i - r_(i-1) must become w_i N, where w_i are the differences of neighbouring fractions; this takes
|n_1 - w_1 N| + ... + |n_(m+1) - w_(m+1) N| records, and no fewer. So the distance is L(z) = min over N of c(z, N), the cost of `joint` with
targets w_j N, for real N >= N_0 (and below 2^31). (Without ties N is the weighted median of all n_i / w_i.) To leave the cone, one of its
inequalities must fail, f_j n - #{x < z_j} >= 0 say. A record that comes or goes moves its left side by f_j or 1 - f_j. So the least number
of records is D(z), the least of min{f_j n - #{x < z_j}, #{x <= z_j} - f_j n} / max{f_j, 1 - f_j} over all j, and of n - N_0. Both are 0 at
the border: s is D where that is positive, and -L elsewhere.

Without N_0, outputs beyond all points become right once all points are removed: L = n, for N = 0. With it, L is up to n + N_0. So where
there are too few points to say where outputs lie, N_0 = 12 / epsilon (or half of what their places cost, m d ln 2 / epsilon, if that is
less) keeps outputs from flying off: five quantiles of 63 waits at epsilon = 0.31 are found with a mean largest error of 12.2 ranks, and of
17.4 without it (256 runs each, by scales). Fewer than N_0 points say nothing anyway. With base "places" N_0 is often far more, see below.

**Privacy** (ADD_OR_REMOVE_ONE). Let a point arrive or leave gradually. Then c(z, N) moves at a rate of at most 1 for each N (as in `joint`:
ranks can be chosen so that one gap grows or shrinks), and so does the least of them, L. So does D, by the above; and s is continuous. So s
moves by at most 1, exp(epsilon s / 2) by a factor between exp(-epsilon / 2) and exp(epsilon / 2), and so does the sum of all weights: the
mechanism is (epsilon, 0)-private. (Of all scores that are 0 at the border and move by 1 at most, none is lower outside or higher inside.)
The losses lie in an interval of length epsilon: epsilon^2/8-zCDP.

Compare `joint`: its N is an output, one of a grid around a noisy count. This weighs a tuple by the sum over all N that suit it, and more N
may suit a wrong tuple than a right one; the count costs a twentieth of epsilon; and depth counts for one candidate alone. Here N is not an
output. The price is that weights are not a product along the tuple, and that there is no law of intervals except on small domains.

**Draws** are exact, by rejection. With kappa = epsilon / 2, any numbers N_k from N_0 on, and c_k half of the wider gap beside N_k, a tuple
is drawn with weight Q(z) = sum over k of exp(kappa (c_k - c(z, N_k))), which `chains` sums up, and kept with probability
2 exp(kappa s(z)) / Q(z). (c is convex in N and moves by |N - N'| at most, so that both neighbours of the best N have terms whose sum is
2 exp(-kappa L) at least.) For N_k = n the one tuple with D > 0 weighs exp(kappa D) times as much. The N_k only affect the speed: they may
depend on the data, and do (`sizes`), as the law of a tuple that is kept does not depend on them. They reach so far that all tuples whose
best N lies beyond weigh less than 2^-53 of the right ones. Draws go on until one is kept, or until there are very many (`TRIES`). For a few
points 1.6 to 2.5 draws were needed on average (20,000 runs each), for nine quantiles of 114 altitudes four (32 runs; `info["tries"]`).

**Utility.** If an output is t ranks off, L >= t / max{f_j, 1 - f_j}, as for `joint`. Points at the ranks f_j n make a right tuple, which
has at least 2^-(dm) of the base measure. So some output is more than t ranks off with probability at most
2^(dm) exp(-epsilon t / (2 max max{f_j, 1 - f_j})), whatever the points are. All accuracy is lost where there are so many outputs beyond all
points, whose L is at most n + N_0, that they outweigh the right ones.

**Base measures** are those of `joint` (`axis`), a mixture for all outputs, so that 2^(dm) above becomes 2 2^(dm) for "scales" and (2/0.9)
2^(dm) for "places". The many intervals of "places" gain nothing where the points pay for much more than the places of all outputs
(`together.ENOUGH` times m d ln 2); so a noisy count takes the share `counting` of epsilon, a hundredth or a twentieth, and decides whether
they are used.

**N_0 by the noisy count.** Where the points do not pay for so much, the same count gives a lower bound on their number, if there are `MANY`
outputs or more. (With fewer outputs, all is lost only where there are so few points that a cheap count cannot tell them from none.) The
count is rounded down to i H, where H is 1 / its rate, rounded up, and N_0 = (i - `MARGIN`) H, if that is more than above. As a function of
what was released before, N_0 is public, and the whole is as private as with any other. Now outputs beyond all points cost up to 2 n: 31
quantiles of 250 log-normal values at epsilon = 1 are off by 21.1 +- 1.3 ranks, where all was lost with N_0 = 12 (242 ranks), and by 22.1 +-
1.5 with `joint`. In one or two runs of 100 the count is so far off that N_0 > n. Then right tuples cost N_0 - n, r H at most for noise of
`MARGIN` + r steps, and wrong ones no less than before. So the probability above gets a factor of 1 + p_3 exp(kappa H) + ... + p_(R-1)
exp((R - 3) kappa H), and p_R is added, for any R, p_r being the probability of noise above r H (`noisy_count.Tail`).

**Bounds on given data.** Since exp(kappa s) is at most Q / 2, and at least each exp(-kappa c(z, N_k)), the probability that an event fails
is at most half of the weight that Q gives to its complement, over the largest of the sums over all tuples. This is `failure_bound`: at most
12 times the true probability where the tests know it, as long as N_0 is below n (20 times, where it is just below). Where N_0 is above n by
x, the bound has a factor of exp(kappa x). Noisy counts with a probability below a rounding unit count as failures. (The derivatives of
laws in epsilon are correct; those of the bound are taken at fixed sizes, though the sizes beside N_0 move with epsilon.)

The plain twin is `dpjax.verify.plain.quantiles.inverse_sensitivity_law`.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, logspace, random, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.quantiles import chains, noisy_count, scales, sizes
from dpjax.optimizers.quantiles.axis import ANYWHERE
from dpjax.optimizers.quantiles.base import ranks, total
from dpjax.optimizers.quantiles.chains import ULP, Targets
from dpjax.optimizers.quantiles.joint import JointQuantiles
from dpjax.optimizers.quantiles.near import NEGLIGIBLE
from dpjax.optimizers.quantiles.noisy_count import Tail
from dpjax.optimizers.quantiles.together import MIXTURE, Together, among, on_axis, per_root

# Shares of epsilon for the noisy count of "places": for fewer than MANY outputs, and from MANY on, where N_0 depends on it, too.
SHARE, SHARE_OF_MANY, MANY = 0.01, 0.05, 24
MARGIN = 3  # steps, each the mean size of the noise, by which N_0 is below the count
LEAST = 6.0  # the greatest N_0, in units of 1 / kappa, where there is no count
MOST_N = 2.0**31 - 2.0**8  # whatever n is: a number that int32 and float32 hold
TRIES = 2**30  # draws, which are all rejected with a probability below 2^-53, for m d up to 10^6 (`sizes`)
SECTIONS, GOLDEN = 64, 0.618034  # golden sections of the range of N, down to 2^-44 of it


@frozen
class Counts:
    """The numbers n and N_0 that the score needs. Their difference is exact even where n is not a float32.

    Attributes:
      n: the number of points.
      least: the integer part of N_0.
      rest: the fractional part of N_0.
    """

    n: Int[Array, ""]
    least: Int[Array, ""]
    rest: Float[Array, ""]

    def beyond(self) -> Float[Array, ""]:
        """n - N_0."""
        return (self.n - self.least).astype(float) - self.rest

    def short(self) -> Float[Array, ""]:
        """N_0 - n, or 0 if that is more."""
        return jnp.maximum(-self.beyond(), 0.0)


@frozen
class Tried:
    """The sizes N for which tuples are drawn; see `sizes`.

    Attributes:
      sizes: kappa (N_k - n), in batches; inf where there is none.
      log_sums: ln of the sum over all tuples of exp(-kappa c(z, N_k)), for each base measure.
      log_parts: kappa c_k, -inf where there is none.
      batches: the number of batches.
    """

    sizes: Float[Array, "sizes"]
    log_sums: Float[Array, "measures sizes"]
    log_parts: Float[Array, "sizes"]
    batches: Int[Array, ""]


@frozen
class InverseSensitivityQuantiles(Together):
    """All quantiles at once by inverse sensitivity; build it by `inverse_sensitivity`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total epsilon.
      limbs: limbs of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      origin: the origin of scales.
      base: "uniform", "scales" or "places" (static).
      size: how many points around each quantile a run processes; 0 for all points (static). See `focused`.
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    origin: UInt32[Array, "wider"]
    limbs: int = static()
    wider: int = static()
    base: str = static()
    size: int = static(default=0)

    @property
    def counting(self) -> float:
        """A hundredth or a twentieth for "places", otherwise 0."""
        return _counting(self.base, self.fractions.shape[0])

    def _f(self) -> Float[Array, "quantiles"]:
        return jnp.asarray(self.fractions).astype(float) * 2.0**-32

    # ------------------------------------------------------------------------------------------------- one run

    def focused(self, rows: int) -> "InverseSensitivityQuantiles":
        """The same for data of `rows` rows, with runs that process only the points near each quantile, if that at least halves them.

        The outputs that this affects have a probability of 2^-52 or less; see `JointQuantiles.focused`. Where there are more points than a
        run processes, there are more than `_enough`, which no N_0 by a count exceeds.

        Raises:
          TypeError: a traced epsilon.
        """
        return self._sized(2 * (self._nats() + NEGLIGIBLE) / self._rate(), rows)

    def run(self, key: Array, data: Points) -> Any:
        """Batched runs go one after another on a CPU, as each has its own number of tries."""
        return staging.one_by_one(type(self).draw)(self, key, self.prepare(data))

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_tries, key_place = jax.random.split(random.for_loops(key), 3)
        good = self.sound() & self.fits(points)  # of invalid data no draw may ever be kept
        counts, measures = self._counted(key_count, points.n_valid)
        points, left_out = self._near(points)
        tried = self._tried(points, left_out, counts, measures, jnp.where(good, sizes.most(self._reach()), 0))
        tree, count = logspace.sum_tree((tried.log_sums + tried.log_parts[None]).reshape(-1)), tried.sizes.size

        def attempt(state: tuple[Array, Any]) -> tuple[Array, Any]:
            tries, _ = state
            key_candidate, key_chain, key_keep = jax.random.split(jax.random.fold_in(key_tries, tries), 3)
            chosen = logspace.draw(key_candidate, tree)
            measure, size = jnp.minimum(chosen // count, self.axis.measures - 1), chosen % count
            targets, _ = self._targets(counts, tried.sizes[size][None], left_out)
            found, pieces = self._tuple(key_chain, points, jax.tree.map(lambda leaf: leaf[0], targets), measure)
            low, high = (jnp.append(ends, points.n_valid) for ends in chains.ends_of(pieces, found))
            log_keep = scales.LN2 + self._log_ratio(low, high, counts, left_out, tried)
            log_keep = jnp.minimum(log_keep, 0.0)  # it is above 0 only by rounding
            return tries + 1, (found, measure, random.bernoulli(key_keep, log_keep, logspace.log1mexp(log_keep)))

        nothing = chains.nowhere(self.fractions.shape[0]), jnp.int32(0), jnp.bool_(False)
        tries, (found, measure, _) = lax.while_loop(
            lambda state: ~state[1][2] & (state[0] < jnp.where(good, TRIES, 1)), attempt, (jnp.int32(0), nothing)
        )
        return self._answers(key_place, points, found, measure), jnp.bool_(True), {"tries": tries}

    def _tried(
        self, points: Points, left_out: Array, counts: Counts, measures: Int[Array, ""], most: Int[Array, ""]
    ) -> "Tried":
        """The N for which tuples are drawn: the first sizes, and as many more as it takes, in at most `most` batches."""
        first = self._first(counts)
        first = jnp.pad(first, (0, -first.size % sizes.BATCH), constant_values=jnp.inf).reshape(-1, sizes.BATCH)

        def weigh(state: tuple[Tried, Array, Array]) -> tuple[Tried, Array, Array]:
            tried, more, _ = state
            at = tried.batches
            more = jnp.where(at < first.shape[0], first[jnp.minimum(at, first.shape[0] - 1)], more)
            targets, used = self._targets(counts, more, left_out)
            logs = self._weigh(points, targets, jnp.where(used, 0.0, -jnp.inf), measures)
            place = at * sizes.BATCH
            each = lax.dynamic_update_slice(tried.sizes, more, (place,))
            log_sums = lax.dynamic_update_slice(tried.log_sums, logs, (jnp.int32(0), place))
            log_parts, good, more = sizes.judged(each, logspace.logsumexp(log_sums.T))
            return Tried(sizes=each, log_sums=log_sums, log_parts=log_parts, batches=at + 1), more, good

        def going(state: tuple[Tried, Array, Array]) -> Array:
            tried, _, good = state
            return (tried.batches < first.shape[0]) | ((tried.batches < most) & ~good)

        count = sizes.most(self._reach()) * sizes.BATCH
        begin = Tried(
            sizes=jnp.full(count, jnp.inf),
            log_sums=jnp.full((self.axis.measures, count), -jnp.inf),
            log_parts=jnp.full(count, -jnp.inf),
            batches=jnp.int32(0),
        )
        return lax.while_loop(going, weigh, (begin, first[0], jnp.bool_(False)))[0]

    def _counted(self, key: Array, n: Int[Array, ""]) -> tuple[Counts, Int[Array, ""]]:
        """(n and N_0, how many base measures are used): by a noisy count, if there is one."""
        if not self.counting:
            return self._plainly(n), jnp.int32(self.axis.measures)
        return self._told(n, geometric(key, n, epsilon=self._count_rate()) // self._step())

    def _step(self) -> Int[Array, ""]:
        """H."""
        return jnp.clip(jnp.ceil(1 / self._count_rate()), 1.0, 2.0**25).astype(jnp.int32)

    def _told(self, n: Int[Array, ""], index: Int[Array, ""]) -> tuple[Counts, Int[Array, ""]]:
        """(n and N_0, how many base measures are used) if the noisy count, rounded down, is `index` H."""
        pays = index * self._step() >= self._enough()
        measures = jnp.where(pays, ANYWHERE, self.axis.measures).astype(jnp.int32)
        counts = self._plainly(n)
        if self.fractions.shape[0] < MANY:
            return counts, measures
        least = (jnp.maximum(index, MARGIN) - MARGIN) * self._step()
        better = ~pays & (least > counts.least)
        least, rest = jnp.where(better, least, counts.least), jnp.where(better, 0.0, counts.rest)
        return Counts(n=n, least=least, rest=rest), measures

    def _plainly(self, n: Int[Array, ""]) -> Counts:
        """n, with the N_0 that is used where there is no count."""
        places = self.fractions.shape[0] * scales.LN2 * self.axis.d().astype(float)
        least = jnp.minimum(jnp.minimum(LEAST, places / 2) / self.kappa(), MOST_N)
        return Counts(n=n, least=least.astype(jnp.int32), rest=least - jnp.floor(least))

    def _enough(self) -> Int[Array, ""]:
        """The number of points that pays for much more than the places of all outputs one by one."""
        return jnp.minimum(self._enough_nats() / self.kappa(), 2.0**30).astype(jnp.int32) + 1

    def _first(self, counts: Counts) -> Float[Array, "first"]:
        """kappa (N_k - n) of the first sizes, from N_0 on, around n or around N_0 if that is more."""
        least, greatest = -self.kappa() * counts.beyond(), self.kappa() * (MOST_N - counts.n.astype(float))
        spread = jnp.asarray(sizes.spread(self._reach()), float) + jnp.maximum(least, 0.0)
        return sizes.within(spread, least, jnp.maximum(greatest, 0.0))

    def _reach(self) -> float:
        """The distance beyond which no size matters: the greatest `_nats` for any d that the limbs hold, as d may be traced."""
        return self.fractions.shape[0] * 32 * self.limbs * scales.LN2 + math.log(MIXTURE[self.base]) + NEGLIGIBLE

    def _targets(
        self, counts: Counts, wanted: Float[Array, "k"], left_out: Int[Array, "ends"]
    ) -> tuple[Targets, Bool[Array, "k"]]:
        """(w_j N_k among near points, with depths for N_k = n; which of them exist)."""
        there = jnp.isfinite(wanted)
        shift = jnp.where(there, wanted, 0.0) / self.kappa()
        targets = jax.vmap(lambda each: self._at(counts.n, each))(shift)
        own = there & (wanted == 0) & (counts.beyond() >= 0)
        targets = dataclasses.replace(targets, depth=jnp.where(own[:, None], self._depth()[None], 0.0))
        targets, rises = among(targets, left_out)
        return targets, there & rises

    def _at(self, n: Int[Array, ""], shift: Float[Array, ""]) -> Targets:
        """f_j (n + shift), cut off after 32 bits behind the point. It is computed in integers, so that targets rise with j."""
        floor = jnp.floor(shift)
        size = jnp.maximum(n + floor.astype(jnp.int32), 0)
        # The fractional part of a shift just below 0 would be rounded to 1.
        part = (jnp.minimum(shift - floor, 1 - 2.0**-24) * 2.0**32).astype(jnp.uint32)
        whole, rest = ranks(self.fractions, size)
        added = rest + wide.high_product(jnp.asarray(self.fractions), part)
        up_to = whole.astype(jnp.int32) + (added < rest).astype(jnp.int32)
        none = jnp.zeros(1, jnp.int32)
        return Targets(
            whole=jnp.concatenate([none, up_to, size[None]]),
            rest=jnp.concatenate([none.astype(jnp.uint32), added, part[None]]),
            kappa=self.kappa(),
            depth=jnp.zeros(self.fractions.shape),
        )

    def _depth(self) -> Float[Array, "quantiles"]:
        """The rates at which weights rise with the ranks that outputs have to spare: kappa D."""
        return self.kappa() / jnp.maximum(self._f(), 1 - self._f())

    # ------------------------------------------------------------------------------------------------- weights

    def _log_ratio(
        self, low: Array, high: Array, counts: Counts, left_out: Int[Array, "ends"], tried: "Tried"
    ) -> Float[Array, ""]:
        """ln(exp(kappa s(z)) / Q(z)) of the tuple with these ranks, #{x < z_j} and #{x <= z_j}; both end with the number of points."""

        def log_term(targets: Targets) -> Float[Array, ""]:
            deep = jnp.maximum(jnp.min(targets.depth * _spare(low, high, targets)), 0.0)
            return deep - self.kappa() * _travelled(_less(low, targets), _less(high, targets))

        def batch(index: Array, log_q: Array) -> Float[Array, ""]:
            more, log_c = (
                lax.dynamic_slice(of, (index * sizes.BATCH,), (sizes.BATCH,)) for of in (tried.sizes, tried.log_parts)
            )
            targets, used = self._targets(counts, more, left_out)
            logs = jnp.where(used, log_c + jax.vmap(log_term)(targets), -jnp.inf)
            return logspace.logaddexp(log_q, logspace.logsumexp(logs))

        log_q = lax.fori_loop(0, tried.batches, batch, jnp.full((), -jnp.inf))
        return self._log_weight(low, high, counts, self._own(counts, left_out)) - log_q

    def _own(self, counts: Counts, left_out: Int[Array, "ends"]) -> Targets:
        """Targets of n itself, or of N_0 if that is more."""
        own = self._at(counts.n, counts.short())
        return dataclasses.replace(own, whole=own.whole - left_out)

    def _log_weight(self, low: Array, high: Array, counts: Counts, own: Targets) -> Float[Array, ""]:
        """kappa s of the tuple with these ranks; the targets are those of n itself, or of N_0 if that is more."""
        spare = jnp.minimum(jnp.min(self._depth() * _spare(low, high, own)), self.kappa() * counts.beyond())
        return jnp.where(spare > 0, spare, -self.kappa() * self._distance(low, high, counts, own))

    def _distance(self, low: Array, high: Array, counts: Counts, own: Targets) -> Float[Array, ""]:
        """L: the least cost over all N, by golden sections, as the cost is convex in N."""
        f = jnp.append(self._f(), 1.0)
        lows, highs = _less(low, own), _less(high, own)
        # Targets are integers and digits, which carry no derivative: how N_0 moves with epsilon is added here.
        moves = counts.short() - lax.stop_gradient(counts.short())

        def cost(more: Array) -> Array:
            """The cost for `more` points more than the targets are for."""
            away = f * (more + moves)
            return _travelled(lows - away, highs - away)

        # The cost moves by at most |N - N'|: the best N is no further from any other N than the cost there.
        far = cost(jnp.zeros(()))
        least = jnp.maximum(-far, jnp.minimum(-counts.beyond(), 0.0))
        most = jnp.maximum(MOST_N - counts.n.astype(float) - counts.short(), 0.0)

        def narrowed(_: Array, inside: tuple[Array, Array]) -> tuple[Array, Array]:
            """One golden section; both ends are relative to the least."""
            left, right = inside
            a, b = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
            lower = cost(least + a) <= cost(least + b)
            return jnp.where(lower, left, a), jnp.where(lower, b, right)

        begin = jnp.zeros(()), jnp.minimum(far, most) - least
        left, right = lax.stop_gradient(lax.fori_loop(0, SECTIONS, narrowed, begin))
        fixed = lax.stop_gradient(least) - moves  # the best N moves with epsilon only where it is the least
        return jnp.minimum(cost(jnp.where(left == 0, least, fixed + left)), cost(fixed + right))

    # ------------------------------------------------------------------------------------------------- what may be said of outputs

    def masses(self, points: Points, outputs: int) -> Float[Array, "outcomes"]:
        """The mass of each (z_1, ..., z_m), z_m running fastest; only those in order have any. Base weights are the law of no points."""
        m = self.fractions.size
        size = round(outputs ** (1 / m))
        answers = np.stack(np.unravel_index(np.arange(outputs), (size,) * m), axis=1)
        n = points.n_valid
        each = wide.from_uint32(jnp.arange(size, dtype=jnp.uint32), self.limbs)
        x = wide.select(points.valid, points.x, ~jnp.zeros_like(points.x))
        below, up_to = (jax.vmap(functools.partial(wide.search, x, side=side))(each) for side in ("left", "right"))

        def before(base: str) -> Float[Array, "tuples"]:
            given = {name: getattr(self, name) for name in ("bits", "fractions", "origin", "limbs", "wider")}
            # Where there are no points, epsilon has no effect; so no derivative in it is taken of the logarithm of 0.
            alike = JointQuantiles(**given, epsilon=jnp.ones(()), candidates=1, share=0.0, base=base)
            nobody = Points(x=jnp.zeros((1, self.limbs), jnp.uint32), n_valid=jnp.int32(0), ordered=True)
            return jnp.log(alike.masses(nobody, outputs)[:-1])

        def law(counts: Counts, log_before: Float[Array, "tuples"]) -> Float[Array, "tuples"]:
            own = self._own(counts, self._all())

            def log_weight(z: Array) -> Array:
                low, high = jnp.append(below[z], n), jnp.append(jnp.minimum(up_to[z], n), n)
                return self._log_weight(low, high, counts, own)

            logs = log_before + lax.map(log_weight, jnp.asarray(answers, jnp.int32))
            return jnp.exp(logs - logspace.logsumexp(logs))

        if not self.counting:
            return jnp.append(law(self._plainly(n), before(self.base)), 0.0)
        chances, beyond, told = self._every_count(n)
        log_before = jnp.stack([before("scales"), before(self.base)])

        def one(told: tuple[Counts, Array]) -> Float[Array, "tuples"]:
            counts, measures = told
            return law(counts, log_before[(measures > ANYWHERE).astype(jnp.int32)])

        return jnp.append(chances @ lax.map(one, told), beyond)

    def _every_count(self, n: Int[Array, ""]) -> tuple[Float[Array, "k"], Float[Array, ""], tuple[Counts, Array]]:
        """(The probabilities of rounded noisy counts, and of none of them; what `_told` returns for each)."""
        step, reach = self._step(), math.ceil(noisy_count.reach(self.kappa().dtype))
        index = n // step + np.arange(-reach, reach + 2, dtype=np.int32)
        chances, beyond = noisy_count.chances(n, self._count_rate(), index.astype(float) * step.astype(float))
        return chances, beyond, jax.vmap(lambda each: self._told(n, each))(index[:-1])

    def failure_bound(self, points: Points, intervals: Interval) -> Float[Array, ""]:
        """An upper bound on P[some quantile is not in its interval]; see the module."""
        plainly = self._plainly(points.n_valid)
        first = self._first(plainly)
        tried, used_sizes = self._targets(plainly, first, self._all())
        log_priors = jnp.where(used_sizes, sizes.half_gaps(first), -jnp.inf)
        logs = self._split(points, intervals)(tried, jnp.int32(self.axis.measures))
        # `chains` does not know where n - N_0 cuts off a depth: then n itself gives no lower bound.
        f = self._f()
        deepest = points.n_valid.astype(float) * jnp.min(jnp.minimum(f, 1 - f) / jnp.maximum(f, 1 - f))
        after = jnp.append(first[1:], jnp.inf)

        def bound(counts: Counts, measures: Array) -> Array:
            """The bound for this N_0; if N_0 > n, that for n times exp(kappa (N_0 - n)), as no score is higher, and none lower by more."""
            least = jnp.minimum(-counts.beyond(), plainly.short())
            above = self.kappa() * jnp.maximum(-counts.beyond() - plainly.short(), 0.0)
            looked = jnp.where(jnp.arange(self.axis.measures)[:, None, None] < measures, logs, -jnp.inf)
            beside = jnp.where(after > self.kappa() * least, log_priors, -jnp.inf)
            bad = logspace.logsumexp((looked[..., 1] + beside[None]).reshape(-1)) - scales.LN2
            each = logspace.logsumexp(jnp.moveaxis(looked, 1, 0).reshape(log_priors.size, -1))
            cut = (first == 0) & (counts.beyond() < deepest)
            at_least = jnp.max(jnp.where(cut | ~used_sizes | (first < self.kappa() * least), -jnp.inf, each))
            neglected = jnp.exp(above - NEGLIGIBLE)  # tuples whose best N is beyond all sizes
            return jnp.minimum(jnp.exp(bad - at_least + above) + neglected, 1.0)

        if not self.counting:
            return bound(plainly, jnp.int32(self.axis.measures))
        chances, beyond, told = self._every_count(points.n_valid)
        return jnp.minimum(chances @ lax.map(lambda each: bound(*each), told) + beyond, 1.0)

    # ------------------------------------------------------------------------------------------------- promises

    def error(self, *, beta: float) -> float:
        """A bound on the ranks by which outputs miss f n, whatever the points are, except with probability beta: see the module."""
        f, kappa = np.asarray(self.fractions, float) * 2.0**-32, self._rate()
        farthest = float(np.max(np.maximum(f, 1 - f)))
        # No rank is off by more than n; if that is less than N_0 without a count, right tuples cost N_0 - n.
        most = min(LEAST, self.fractions.shape[0] * int(self.bits) * scales.LN2 / 2)

        def error(log_mean: float, left: float) -> float:
            nats = self._nats() + log_mean - math.log(left)
            return max(nats * farthest, (nats + most) * farthest / (1 + farthest)) / kappa

        beta = arguments.known_fraction("beta", beta)
        plainly = error(0.0, beta)
        if not self.counting or self.fractions.shape[0] < MANY:
            return plainly
        # No output is off by more than farthest n, and the count decides N_0 only where it is below `_enough`.
        greatest = int(self._enough()) - MARGIN * int(self._step())
        tail = Tail(rate=self.counting * float(self.epsilon), step=float(self._step()), last=MARGIN, sides=1)
        by_noise = tail.least_error(
            beta, lambda reach, left: error(float(np.logaddexp(0.0, tail.log_mean(reach, kappa, 1.0))), left)
        )
        return min(by_noise, max(plainly, farthest * greatest))


def _counting(base: str, outputs: int) -> float:
    """The share of epsilon that the noisy count takes."""
    if base != "places":
        return 0.0
    return SHARE if outputs < MANY else SHARE_OF_MANY


def _less(ranks: Int[Array, "ends"], targets: Targets) -> Float[Array, "ends"]:
    """How far ranks are above their targets."""
    return (ranks - targets.whole[1:]).astype(float) - targets.rest[1:].astype(float) * ULP


def _spare(low: Int[Array, "ends"], high: Int[Array, "ends"], own: Targets) -> Float[Array, "quantiles"]:
    """By how much the ranks of each output exceed its target on either side, negative if they miss it."""
    return jnp.minimum(-_less(low, own), _less(high, own))[:-1]


def _travelled(low: Float[Array, "ends"], high: Float[Array, "ends"]) -> Float[Array, ""]:
    """How far a number must travel from 0 through all of these intervals, in order."""

    def onward(state: tuple[Array, Array], ends: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        at, so_far = state
        there = jnp.clip(at, *ends)
        return (there, so_far + jnp.abs(there - at)), None

    return lax.scan(onward, (jnp.zeros(()), jnp.zeros(())), (low, high))[0][1]


def inverse_sensitivity(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any = None,
    rho: Any = None,
    base: str = "uniform",
    origin: int = 0,
) -> InverseSensitivityQuantiles:
    """Quantiles at `fractions` of the points, all at once, by how many records must come or go to make them right; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together, or rho-zCDP; see
    `InverseSensitivityQuantiles.zcdp`. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite, and for "places" at least 3e-6 (6e-7 for 24 outputs and more); may be traced.
      rho: the total of zero-concentrated privacy, in place of epsilon; may be traced. The guarantee then states the pure epsilon that it
        takes.
      base: what outputs weigh before any data are seen, as for `joint`: "uniform", "scales" or "places".
      origin: the public point around which scales lie, 0 to 2^bits.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both epsilon and rho, or neither.

    >>> deciles = inverse_sensitivity(bits=24, fractions=[i / 10 for i in range(1, 10)], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 2000), 24))
    >>> answers = wide.to_ints(deciles(jax.random.key(0), points).hypothesis)
    >>> max(abs(z - 1000 - 100 * i) for i, z in enumerate(answers, 1)) < 30
    True
    """
    domain = on_axis(bits=bits, fractions=fractions, base=base, origin=origin)
    counting = _counting(base, len(domain["fractions"]))
    least = SMALLEST_RATE / counting if counting else 0.0
    budget = total(epsilon, 0.0, rho, per_root=per_root(counting), least=least)
    return InverseSensitivityQuantiles(**domain, epsilon=budget["epsilon"])
