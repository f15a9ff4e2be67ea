"""All quantiles at once by the exponential mechanism on the sizes of the gaps between them (JointExp: Gillenwater, Joseph, Kulesza 2021).

Sorted outputs z_1 <= ... <= z_m cut n points into gaps of n_1, ..., n_(m+1) points, which should be w_j n, where w_j are the differences of
neighbouring fractions. With targets t_j the tuple weighs exp(-kappa c), c = |n_1 - t_1| + ... + |n_(m+1) - t_(m+1)|.

**Ties** (ours). Points equal to an output may lie on either side of it, in whatever numbers suit best: c is the least cost over all real
ranks r_j = n_1 + ... + n_j, in order, with #{x < z_j} <= r_j <= #{x <= z_j} (`chains` says how it is found). So a value that many points
share is as good as it can be for each rank that lies within it. (The paper separates equal points by noise: then a value has every rank
somewhere in its cell, but the right one only in a small part of it.)

**Depth** (ours; targets w_j n). If each z_j has the rank f_j n, c is -2 d, where d is the least of all f_j n - #{x < z_j} and
#{x <= z_j} - f_j n: values are distinguished from their neighbours by the ranks that they have to spare, too. Two quantiles of 392 incomes
of five values are found at epsilon = 0.3 with a mean largest error of 0.1 ranks, and of 42 if c is 0 instead.

**Privacy** (ADD_OR_REMOVE_ONE), targets w_j n (`candidates=1`). When a point x arrives, let r_j rise by 1 for all z_j > x: these are ranks
for the new points, and one n_i has risen by 1. When x leaves, let r_j fall by 1 for all z_j > x, and for z_j = x to #{x <= z_j} - 1 if it
is above: as these falls rise from 0 to 1 along the outputs, the n_i fall by some d_i >= 0 that add up to 1. So each choice of ranks is
matched by one whose gaps differ by such d_i, all in one direction. The targets change by w_i, and sum |d_i - w_i| is at most 2 (1 - w_i)
for some i: c may move by this much, up or down. The same holds with depths: let the point arrive or leave gradually. Then c is continuous,
as its two cases meet at 0, and 2 d moves at a rate of 2 max{f_j, 1 - f_j} <= 2 (1 - min w). The log of a probability moves by at most kappa
times the range of these moves, so kappa = epsilon / (4 (1 - min w)) makes all outputs together (epsilon, 0)-private: the paper's constant.
It is sharp: gaps i whose n_i is too small while all others are too large gain 2 (1 - w_i), and others lose it.

**Fitted counts** (`candidates` > 1; ours). The factor 2 (1 - w) is the price of targets that move with n. With targets w_j N for a public
N the cost moves by at most 1, so that kappa = epsilon / 2. N need not be close to n with certainty, and it need not be paid for
separately: it is one more output of the same mechanism. First a noisy count n + geometric noise of rate a = `share` * epsilon is released,
rounded to i_0 h with h = max{8 / epsilon, 1}; then (N, z) is drawn from the product of a public grid around it, N = i h, i >= 1, with
i - i_0 = 0, +-1, ..., +-7, +-9, +-11, ..., and the sorted tuples, with weights exp(-kappa c), kappa = (1 - share) epsilon / 2. That is
(a + 2 kappa, 0) = (epsilon, 0)-private. N comes out close to n, as c >= |n - N|. For m evenly spaced quantiles the rate rises by a factor
of 2 (1 - share)(1 - w): 1.42 for m = 3, 1.8 for 19. (Any public targets would do: f_j N is cut to multiples of 2^-16, and j 2^-32 is added,
so that no two have the same fractional part.)

Beside the grid there is one more candidate, targets w_j n with their depths: at the rate kappa / (2 (1 - min w)) its weights, too, move by
at most kappa, so the whole is as private. Where values are shared it wins by its depth. Where none are, its lower rate gives wrong tuples
more weight, by a factor of about 2 (1 - min w) for each output: so it weighs only q = (2 (1 - min w))^-m / 16. Where there are too few
points to say where outputs lie, the factor is far greater: so the candidate is left out unless the noisy count, which is public, pays for
ENOUGH m d ln 2.

**Utility.** For an output with D points too many below it, |n_1 + ... + n_j - f_j N| + |the rest - (1 - f_j) N| >= |D| / max{f_j, 1 - f_j}
for every N, and 2 |D| for N = n. Some tuple, of the points at these ranks, has a cost of |n - N|, and at least 2^-(dm) of the base measure
of all tuples. So with K candidates, D > t for some output has probability at most

    2^(dm) (K exp(-kappa t / max{f, 1 - f}) + q exp(-kappa t / (1 - min w))) E[exp(kappa |n - N|)],

where N is the closest one of the grid. With noise of up to 7 steps n is within h / 2 of it (if h = 1, it is on the grid; below h / 2 points
no rank is off by as much as the bound says anyway), with noise of up to 15 steps, the last ones, within h, and with noise of up to R > 15
steps within (R - 14.5) h. With p_r for the probability of noise beyond r steps the mean is at most exp(kappa h / 2) + p_7 exp(kappa h) +
p_15 exp(1.5 kappa h) + ... + p_(R-1) exp((R - 14.5) kappa h). Beyond R steps, with probability p_R, nothing is promised: R is chosen for
the least error. With targets w_j n alone the bound is 2^(dm) exp(-epsilon t / (2 (1 - min w))). This is for the worst data; the exact law
says what holds for given data.

**Scales.** What outputs weigh before any data are seen is a public choice. With `base="scales"` it is a mixture for all outputs together,
half of it uniform and half of it by `scales`; which of the two applies is one more output of the mechanism. So the probability above
doubles at most, for any m, while a mixture for each output on its own would pay a factor of 2 for each.

**Places.** With `base="places"` a tenth of the mixture is a third part: all outputs in one interval of 2^(d - l) integers, for eight levels
l (`axis`). So outputs pay once for their common place, l ln 2 in place of m l ln 2, and the probability above gets a factor of 2/0.9 in
all. Where the count pays for more than ENOUGH m d ln 2, wrong ranks cost so much more than wrong places that this gains nothing: then a run
leaves it out. The noisy count, which is public, decides.

**zCDP.** The losses of a draw lie in an interval of length epsilon for targets w_j n, and of length 2 kappa = (1 - share) epsilon once the
count is known. So targets w_j n are epsilon^2/8-zCDP; fitted counts, with the count's own a tanh(a/2) <= a^2/2, at most
(4 share^2 + (1 - share)^2) epsilon^2/8 (`accounting.exponential`). All outputs are those of one mechanism, so that a delta would gain next
to nothing.

The law sums over the noisy counts within ln(1/u) / a of n, where u is the rounding unit; those beyond have a probability of at most u, and
count as failures. Its derivative in epsilon is that at a fixed grid: h moves with epsilon, but targets on it by jumps of 2^-16. The plain
twin is `dpjax.verify.plain.quantiles.joint_law`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.quantiles import noisy_count, scales
from dpjax.optimizers.quantiles.axis import ANYWHERE
from dpjax.optimizers.quantiles.base import MOST_ROWS, ranks, total
from dpjax.optimizers.quantiles.chains import Targets
from dpjax.optimizers.quantiles.near import NEGLIGIBLE
from dpjax.optimizers.quantiles.noisy_count import Tail
from dpjax.optimizers.quantiles.together import (
    ENOUGH,
    MIXTURE,
    REST_DIGITS,
    Together,
    among,
    on_axis,
    per_root,
)

STEP = 8.0  # h in units of 1 / epsilon, if that is above 1: a finer grid would gain nothing, and exceed int32
CANDIDATES = 23
NEAR = 7  # steps of h to either side; from there on every other N is tried
OWN = 1 / 16  # the greatest weight of targets w_j n: little where no values are shared
SHARE = 0.05


@frozen
class JointQuantiles(Together):
    """All quantiles at once by the exponential mechanism on the sizes of the gaps; build it by `joint`.

    An event of the law is one interval for each quantile. It occurs if every quantile, in order, is in its own interval.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total epsilon.
      limbs: limbs of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      candidates: how many values of N are tried, an odd number; 1 for targets w_j n (static).
      share: the share of epsilon for the noisy count (static).
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
    candidates: int = static()
    share: float = static()
    base: str = static()
    size: int = static(default=0)

    @property
    def fitted(self) -> bool:
        """Whether N is an output."""
        return self.candidates > 1

    @property
    def counting(self) -> float:
        """`share`, if N is an output."""
        return self.share if self.fitted else 0.0

    def weights(self) -> Float[Array, "gaps"]:
        """w_1, ..., w_(m+1)."""
        return self._gaps().astype(float) * 2.0**-32

    def _gaps(self) -> UInt32[Array, "gaps"]:
        """2^32 w_j, modulo 2^32: so the end 1 is 0."""
        fractions = jnp.asarray(self.fractions)
        none = jnp.zeros(1, jnp.uint32)
        return jnp.concatenate([fractions, none]) - jnp.concatenate([none, fractions])

    def _moves(self) -> Float[Array, ""]:
        """The most by which the cost moves with targets w_j n."""
        return 2 * (1 - jnp.min(self.weights()))

    def _log_own(self) -> Float[Array, ""]:
        """ln q."""
        return math.log(OWN) - self.fractions.shape[0] * jnp.log(self._moves())

    # ------------------------------------------------------------------------------------------------- one run

    def focused(self, rows: int) -> "JointQuantiles":
        """The same for data of `rows` rows, with runs that process only the points near each quantile, if that at least halves them.

        The outputs that this affects have a probability of 2^-52 or less (`near`): the law is still that of all points, and a run takes as
        long for a million points as for a few thousand. How many points are near depends on epsilon: each power of two is compiled
        separately.

        Raises:
          TypeError: a traced epsilon.
        """
        m, epsilon = self.fractions.shape[0], arguments.known("epsilon", self.epsilon)
        with jax.enable_x64(True):
            kappa, moves = float(self.kappa()), float(self._moves())
        places = m * int(self.bits) * scales.LN2
        weights = math.log(MIXTURE[self.base] * (self.candidates + 1) / OWN) + m * math.log(moves)
        size = (places + weights + NEGLIGIBLE) * moves / kappa
        if self.fitted:  # so many that targets w_j n are used, except with negligible probability
            size = max(size, (ENOUGH * places / kappa + NEGLIGIBLE / (self.share * epsilon)) / m)
        return self._sized(size, rows)

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_candidate, key_chain, key_place = jax.random.split(key, 4)
        count = points.n_valid
        if self.fitted:
            count = geometric(key_count, count, epsilon=self._count_rate())
        index = self._rounded(count)
        targets, log_priors = self._targets(index, self._steps(), points.n_valid)
        log_priors = jnp.where(self._used(index), log_priors, -jnp.inf)
        points, left_out = self._near(points)
        targets, rises = among(targets, left_out)
        chosen, tried = jnp.int32(0), log_priors.size
        if tried > 1 or self.axis.measures > 1:
            logs = self._weigh(points, targets, jnp.where(rises, log_priors, -jnp.inf), self._measures(index))
            chosen = logspace.draw(key_candidate, logspace.sum_tree(logs.reshape(-1)))
        measure = jnp.minimum(chosen // tried, self.axis.measures - 1)
        one = jax.tree.map(lambda leaf: leaf[chosen % tried], targets)
        found, _ = self._tuple(key_chain, points, one, measure)
        return self._answers(key_place, points, found, measure), jnp.bool_(True), {}

    def _enough(self, index: Int[Array, "*k"]) -> Bool[Array, "*k"]:
        """Whether the count, noisy and rounded, pays for much more than the places of all outputs one by one."""
        return self.kappa() * self._step() * index.astype(float) > self._enough_nats()

    def _steps(self) -> np.ndarray:
        """Which N are tried, in steps of h from the noisy count."""
        steps = np.arange(self.candidates // 2 + 1, dtype=np.int32)
        steps += np.maximum(steps - NEAR, 0)
        return np.concatenate([-steps[:0:-1], steps])

    def _used(self, index: Int[Array, ""]) -> Bool[Array, "more"]:
        """Which of the targets are used."""
        return jnp.append(jnp.ones(self.candidates, bool), self._enough(index)) if self.fitted else jnp.ones(1, bool)

    def _measures(self, index: Int[Array, "*k"]) -> Int[Array, "*k"]:
        """How many measures are used, given the rounded noisy count."""
        every, few = jnp.int32(self.axis.measures), jnp.int32(min(self.axis.measures, ANYWHERE))
        return jnp.where(self._enough(index) & self.fitted, few, every)

    # ------------------------------------------------------------------------------------------------- parts of one run

    def _targets(
        self, index: Int[Array, ""], steps: np.ndarray, n: Int[Array, ""]
    ) -> tuple[Targets, Float[Array, "more"]]:
        """(w_j N for each N that is `steps` steps from index h, then w_j n; ln of the weight of each). If N is no output, w_j n alone."""
        own = jax.tree.map(lambda leaf: leaf[None], self._own(n))
        if not self.fitted:
            return own, jnp.zeros(1)
        each = index + steps
        public = jax.vmap(self._at)(jnp.maximum(each, 1))
        log_priors = jnp.append(jnp.where(each >= 1, 0.0, -jnp.inf), self._log_own())
        return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), public, own), log_priors

    def _own(self, n: Int[Array, ""]) -> Targets:
        """f_j n."""
        whole, rest = ranks(self.fractions, n)
        none = jnp.zeros(1, jnp.uint32)
        return Targets(
            whole=jnp.concatenate([jnp.zeros(1, jnp.int32), whole.astype(jnp.int32), n[None]]),
            rest=jnp.concatenate([none, rest, none]),
            kappa=self.kappa() / self._moves(),
            depth=jnp.full(self.fractions.shape, 2 * self.kappa() / self._moves()),
        )

    def _at(self, index: Int[Array, ""]) -> Targets:
        """f_j N for N = index h, up to roundings: any public numbers would do. They are at most the points that an array can have."""
        each = jnp.append(jnp.asarray(self.fractions).astype(float) * 2.0**-32, 1.0)
        targets = jnp.minimum(each * (index.astype(float) * self._step()), float(MOST_ROWS))
        floor = jnp.floor(targets)
        digits = ((targets - floor) * 2.0**REST_DIGITS).astype(jnp.uint32) << (32 - REST_DIGITS)
        order = jnp.arange(each.size + 1, dtype=jnp.uint32)
        return Targets(
            whole=jnp.concatenate([jnp.zeros(1, jnp.int32), floor.astype(jnp.int32)]),
            rest=order.at[1:].add(digits),
            kappa=self.kappa(),
            depth=jnp.zeros(self.fractions.shape),
        )

    def _step(self, xp: Any = jnp) -> Any:
        """h, by `jax.numpy`, or by `numpy` on the host."""
        return xp.maximum(STEP / xp.asarray(self.epsilon, float), 1.0)

    def _rounded(self, count: Int[Array, ""]) -> Int[Array, ""]:
        """i_0, from a noisy count."""
        return jnp.maximum(jnp.floor(count.astype(float) / self._step() + 0.5), 0.0).astype(jnp.int32)

    # ------------------------------------------------------------------------------------------------- the law

    def law(self, points: Points, intervals: Interval) -> Float[Array, "2"]:
        split = self._split(points, intervals)

        def weigh(steps: np.ndarray, measures: Int[Array, ""]) -> Float[Array, "measures more 2"]:
            """ln of the weights for each measure that is used, and for the targets of each N that is `steps` steps from n."""
            targets, log_priors = self._targets(self._rounded(points.n_valid), steps, points.n_valid)
            return split(targets, measures) + log_priors[None, :, None]

        if not self.fitted:
            logs = weigh(self._steps(), jnp.int32(self.axis.measures))
            return _shares(logspace.logsumexp(logs.reshape(-1, 2).T))
        return self._mixed(weigh, points.n_valid)

    def _mixed(self, weigh: Callable[..., Array], n: Int[Array, ""]) -> Float[Array, "2"]:
        """The mixture over noisy counts: each N is weighed once, and every noisy count uses a window of them, and w_j n."""
        reach = math.ceil(noisy_count.reach(self.kappa().dtype) / (STEP * self.share))
        windows, far = np.arange(2 * reach + 1, dtype=np.int32), reach + int(self._steps()[-1])
        counts = self._rounded(n) - reach + windows
        measures = self._measures(counts)
        grid = np.arange(-far, far + 1, dtype=np.int32)
        logs = weigh(grid, jnp.max(jnp.where(counts >= 0, measures, 0)))
        looked = windows[:, None] + (far - reach + self._steps())[None]
        looked = jnp.asarray(np.pad(looked, [(0, 0), (0, 1)], constant_values=grid.size))
        used = (jnp.arange(self.axis.measures, dtype=jnp.int32)[None] < measures[:, None])[:, :, None]
        used = used & jax.vmap(self._used)(counts)[:, None]

        def law_of(looked: Array, used: Array) -> Array:
            return _shares(logspace.logsumexp(jnp.where(used[..., None], logs[:, looked], -jnp.inf).reshape(-1, 2).T))

        each = jax.vmap(law_of)(looked, used)
        chances, beyond = self._noisy(counts, n)
        law = jnp.sum(jnp.where(counts >= 0, chances, 0.0)[:, None] * each, axis=0)
        return law.at[1].add(beyond)

    def _noisy(self, counts: Int[Array, "k"], n: Int[Array, ""]) -> tuple[Float[Array, "k"], Float[Array, ""]]:
        """(P[i_0] for consecutive ones, P[none of them])."""

        def edge(index: Array) -> Array:
            return jnp.where(index <= 0, -jnp.inf, jnp.ceil((index.astype(float) - 0.5) * self._step()))

        return noisy_count.chances(n, self._count_rate(), edge(jnp.append(counts, counts[-1] + 1)))

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
        """The mass of each (z_1, ..., z_m), z_m running fastest; only those in order have any."""
        m = self.fractions.size
        size = round(outputs ** (1 / m))
        answers = np.stack(np.unravel_index(np.arange(outputs), (size,) * m), axis=1)
        low = wide.from_uint32(jnp.asarray(answers, jnp.uint32), self.limbs + 1)

        def mass(low: Array) -> Array:
            return self.law(points, jax.vmap(Interval.single)(low))[0]

        possible = np.flatnonzero((np.diff(answers, axis=1) >= 0).all(axis=1))
        return jnp.zeros(outputs + 1).at[possible].set(lax.map(mass, low[possible]))

    # ------------------------------------------------------------------------------------------------- promises

    def error(self, *, beta: float) -> float:
        """A bound on the ranks by which outputs miss f n, whatever the points are, except with probability beta: see the module."""
        beta, kappa, nats = arguments.known_fraction("beta", beta), self._rate(), self._nats()
        with jax.enable_x64(True):
            moves, log_own = float(self._moves()), float(self._log_own())
        if not self.fitted:
            return (nats - math.log(beta)) * moves / (2 * kappa)
        f = np.asarray(self.fractions, float) * 2.0**-32
        rates = kappa * np.array([1 / float(np.max(np.maximum(f, 1 - f))), 2 / moves])

        def error(reach: int, left: float) -> float:
            # Neither of the two sums over tuples may exceed the whole: t lies between what they require alone, and the same with ln 2 more.
            # Both ends are moved a little outwards: one sum may be nearly the whole, and rounding must not put both ends on one side.
            weighs = np.array([math.log(self.candidates), log_own]) + nats + self._log_aside(reach) - math.log(left)
            lower, upper = (1 - 1e-9) * np.max(weighs / rates), (1 + 1e-9) * np.max((weighs + math.log(2)) / rates)
            return float(scipy.optimize.brentq(lambda t: np.logaddexp(*(weighs - rates * t)), lower, upper))

        return self._tail().least_error(beta, error)

    def _tail(self) -> Tail:
        """The noise of the count, which does no harm as far as the grid of N reaches."""
        last, epsilon = int(self._steps()[-1]), float(self.epsilon)
        return Tail(rate=self.share * epsilon, step=float(self._step(np)), last=last, sides=2)

    def _log_aside(self, reach: int) -> float:
        """A bound on ln of the mean of exp(kappa |n - N|), N the closest one tried, over noise of up to `reach` steps; see the module."""
        tail, kappa = self._tail(), self._rate()
        near = kappa * tail.step / 2 if tail.step > 1 else 0.0
        logs = [near, kappa * tail.step + tail.log_beyond(NEAR), tail.log_mean(reach, kappa, 1.5)]
        return float(np.logaddexp.reduce(logs))


def _shares(logs: Float[Array, "2"]) -> Float[Array, "2"]:
    """Weights as shares of their sum; (0, 0) where there are none."""
    return jnp.exp(logs - logspace.finite(logspace.logsumexp(logs)))


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
) -> JointQuantiles:
    """Quantiles at `fractions` of the points, all at once, by the exponential mechanism on the gaps between them; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together, or rho-zCDP; see `JointQuantiles.zcdp`. Not
    promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite, and at least 2^-25 / share unless candidates is 1; may be traced.
      rho: the total of zero-concentrated privacy, in place of epsilon; may be traced. The guarantee then states the pure epsilon that it
        takes.
      candidates: how many values of N are tried, an odd number; 1 takes the number of points itself, at the paper's constant.
      share: the share of epsilon for the noisy count that says where to search for N.
      base: what outputs weigh before any data are seen: "uniform", as in the paper; "scales", half of it by `scales`, for values of unknown
        scale; "places", a tenth of it for values that lie close together, wherever that is.
      origin: the public point around which scales lie, 0 to 2^bits.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both epsilon and rho, or neither.

    >>> deciles = joint(bits=24, fractions=[i / 10 for i in range(1, 10)], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 2000), 24))
    >>> answers = wide.to_ints(deciles(jax.random.key(0), points).hypothesis)
    >>> max(abs(z - 1000 - 100 * i) for i, z in enumerate(answers, 1)) < 30
    True
    """
    domain = on_axis(bits=bits, fractions=fractions, base=base, origin=origin)
    candidates = arguments.integer("candidates", candidates, at_least=1, at_most=2**16)
    if candidates % 2 == 0:
        raise ValueError(f"candidates must be odd, got {candidates}")
    share = arguments.known_fraction("share", share)
    least = SMALLEST_RATE / share if candidates > 1 else 0.0
    budget = total(epsilon, 0.0, rho, per_root=per_root(share if candidates > 1 else 0.0), least=least)
    return JointQuantiles(**domain, epsilon=budget["epsilon"], share=share, candidates=candidates)
