"""Quantiles at any fractions by the exponential mechanism on the rank error, one run for each (Smith 2011).

For a fraction f of n points let e(z) = max{#{x < z} - f n, f n - #{x <= z}}: the number of ranks by which z misses f n or, below 0, the
depth at which f n lies among the points equal to z. Points of the whole domain are drawn with P[z] proportional to exp(-lambda e(z)).

**Privacy** (ADD_OR_REMOVE_ONE). Insert a point p. The log of a probability moves by at most lambda times the range of the moves of e, as
the log of the sum of all weights moves by some mean of them. Below p both counts stay and f n rises by f: the first difference moves by -f,
the second by f. Above p both counts rise by 1, so that the moves are 1 - f and -(1 - f). At p itself only the second count rises: -f and
-(1 - f). Let m be the greatest point whose second difference is at least as large as the first; the same holds for all points below m, as
the first minus the second grows with z. (If there is none, every p counts as above it.) e moves at least as much as its larger difference,
and at most as much as the one that moves more. So if p <= m, e moves by f below p, and by -(1 - f) to 1 - f from p on; if p > m, by -f to f
up to p, and by 1 - f above it. With w = max{f, 1 - f} the range is at most w + 1 - f if p <= m, else w + f. Runs for f_1 < ... < f_q have
m_1 <= ... <= m_q, so that exactly the first j of them, for some j, have p > m. Their ranges add up to
w_1 + ... + w_q + f_1 + ... + f_j + (1 - f_(j+1)) + ... + (1 - f_q), which is convex in j, and greatest at an end:

    lambda = epsilon / (sum w_i + max{sum f_i, sum (1 - f_i)})

makes all runs together (epsilon, 0)-private: epsilon for a median, epsilon/3.5 for quartiles (run by run it would be epsilon/4).

**Totals.** The losses of a run lie in an interval whose length is lambda times its range, so the run is (lambda range)^2/8-zCDP
(`accounting.exponential`). From run to run, (w + f)^2 - (w + 1 - f)^2 = (2 w + 1)(2 f - 1) rises with f, so the sum of the squares is
convex in j, too, and greatest at an end: with S = max{sum (w_i + f_i)^2, sum (w_i + 1 - f_i)^2} all runs together are lambda^2 S / 8-zCDP.
A total of rho gives lambda = sqrt(8 rho / S). A total (epsilon, delta) gives the greater of two: that of the largest rho from which it
follows; and the lambda above with r in place of epsilon, the length of an interval of losses from which it follows (r is 1.67 for (1, 0.1);
no run depends on the others). For q evenly spaced fractions lambda is 4 epsilon/(5 q) or so, and sqrt(24 rho / (5 q)) by rho.

**Ties.** Cut off at 0, e would be the rank error, and no more private: the part below 0 is free, and separates a value that many points
share from the nearer one beside it twice as well. On 1,248 concentrations of carbon dioxide in tenths the mean rank error of a median is
0.42 at epsilon = 0.61, where it was 1.05 with e cut off.

**Utility.** Some point of the domain has e <= 0: any z with #{x < z} <= f n <= #{x <= z}. So e > t has probability at
most 2^d e^(-lambda t) in a run, and all q errors are at most (d ln 2 + ln(q / beta))/lambda, except with probability beta.

**Scales.** With `base="scales"` a point z also has a public weight of its own, the mixture of `scales`: the axis is cut where that weight
changes. Privacy is as before. Each z weighs at least 2^-(d + 1), and all of them at most 1, so that d ln 2 becomes (d + 1) ln 2.

**Many points.** A run needs only those at ranks within D of f n, if all points before them are taken to lie before the domain, and all
behind them to lie behind it: outputs between the first and the last of them keep their counts, but for values at which counts reach beyond.
All other outputs keep an error of D or more, and a value that is shared by more points keeps a depth of D or more, where it has one: with
(d ln 2 + 53 ln 2 + ln q)/lambda for D and q runs, what changes weighs less than 2^-53 of the rest in all, before and after.

The plain twin is `dpjax.verify.plain.quantiles.rank_exponential_laws`.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, exponential_rate
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.optimizers.quantiles import near, scales
from dpjax.optimizers.quantiles.base import ranks, total
from dpjax.optimizers.quantiles.independent import IndependentQuantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions


@frozen
class RankExponential(IndependentQuantiles):
    """Quantiles at any fractions by the exponential mechanism on the rank error; build it by `rank_exponential`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the total epsilon.
      delta: the total delta, 0 for pure privacy.
      origin: the origin of scales.
      limbs: limbs of a point (static).
      wider: limbs of a position up to 2^d + 1 (static).
      base: "uniform" or "scales" (static).
      size: how many points around each quantile a run processes; 0 for all points (static). See `focused`.
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    origin: UInt32[Array, "wider"]
    limbs: int = static()
    wider: int = static()
    base: str = static()
    size: int = static(default=0)

    def slope(self, xp: Any = jnp) -> Any:
        """lambda, by `jax.numpy`, or by `numpy` on the host."""
        ranges, squares = self._sums(xp)
        epsilon, delta = xp.asarray(self.epsilon, float), xp.asarray(self.delta, float)
        return exponential_rate(epsilon, delta, ranges=ranges, squares=squares, independent=True, xp=xp)

    def _sums(self, xp: Any) -> tuple[Any, Any]:
        return range_sums(xp.asarray(self.fractions).astype(float) * 2.0**-32, xp)

    def focused(self, rows: int) -> Any:
        """The same for data of `rows` rows, with runs that process only the points near each quantile, if that at least halves them.

        The outputs that this affects have a probability of 2^-52 or less, see the module. Each power of two of points is compiled
        separately.

        Raises:
          TypeError: a traced epsilon or delta.
        """
        self.guarantee()  # which names a traced total
        count = self.fractions.shape[0]
        size = 2 * (self._nats() + near.NEGLIGIBLE + math.log(count)) / float(self.slope(np))
        return dataclasses.replace(self, size=near.block(size + 1, count, rows))

    def draw(self, key: Array, points: Points) -> Any:
        def run(key: Array, fraction: Array) -> Array:
            return self._point(key, self._seen(points, fraction)).position

        runs = jax.vmap(run)(jax.random.split(key, self.fractions.shape[0]), jnp.asarray(self.fractions))
        return wide.sort(wide.resize(runs, self.limbs))[0], jnp.bool_(True), {}

    def _seen(self, points: Points, fraction: UInt32[Array, ""]) -> Pieces:
        """What a run processes: the pieces of all points, or of those near the quantile."""
        if not 0 < self.size * self.fractions.shape[0] < points.rows:
            return self.pieces(points, fraction)
        # One point less than a power of two, so that pieces are as many as one; `block` leaves room for that.
        kept, left_out = near.near(points, fraction[None], self.size - 1)
        return self._pieces(kept, fraction, points.n_valid, left_out[1])

    def pieces(self, points: Points, fraction: UInt32[Array, ""]) -> Pieces:
        """-e for one fraction of sorted points: piece 0 up to the first point, then for each point itself and what follows it.

        Of equal points all but the last have two empty pieces. By scales, pieces also begin where the weight of a point changes.
        """
        return self._pieces(points, fraction, points.n_valid, jnp.int32(0))

    def _pieces(
        self, points: Points, fraction: UInt32[Array, ""], n: Int[Array, ""], left_out: Int[Array, ""]
    ) -> Pieces:
        """The same for some of n points, before which so many are left out."""
        beyond, one = wide.power_of_two(self.bits, self.wider), wide.one(self.wider)
        end = wide.add(beyond, one)
        x, there, before, up_to = self._rows(points, end)
        following = wide.concatenate(x[1:], end[None])
        after = wide.minimum(wide.add(x, one[None]), following)
        starts = jnp.stack([x, wide.select(there, after, end[None])], axis=1).reshape(-1, self.wider)
        new = jnp.concatenate([jnp.ones(1, bool), ~wide.equal(x[1:], x[:-1])])
        below = lax.cummax(jnp.where(new, before, 0))
        counts = jnp.stack([jnp.stack([below, up_to]), jnp.stack([up_to, up_to])], axis=2).reshape(2, -1)
        none = jnp.zeros((2, 1), jnp.int32)
        zero, last = jnp.zeros((1, self.wider), jnp.uint32), end[None]
        return Pieces(
            starts=wide.concatenate(wide.concatenate(zero, starts), last),
            values=-_rank_error(jnp.concatenate([none, counts, none + points.n_valid], axis=1) + left_out, fraction, n),
            last=wide.subtract(beyond, one),
            end=end,
            exponent=jnp.asarray(self.bits, jnp.int32),
        )

    def _rows(self, points: Points, end: UInt32[Array, "limbs"]) -> tuple[Array, Bool[Array, "rows"], Array, Array]:
        """(where the axis is cut, in order; whether it is there; how many points lie before this row, and up to it)."""
        x = wide.select(points.valid, wide.resize(points.x, self.wider), end[None])
        place = jnp.arange(points.rows, dtype=jnp.int32)
        if self.base == "uniform":
            return x, points.valid, place, place + 1
        cuts = scales.cuts(self.bits, self.origin)
        rows = bucket(points.rows + cuts.shape[0])  # as many pieces as a power of two
        none = jnp.broadcast_to(end, (rows - points.rows - cuts.shape[0], self.wider))
        inside = wide.less(cuts, wide.power_of_two(self.bits, self.wider)[None])
        x = wide.concatenate(x, wide.select(inside, cuts, end[None]), none)
        x, counted = wide.sort(x, jnp.arange(rows, dtype=jnp.int32) < points.n_valid)
        up_to = jnp.cumsum(counted, dtype=jnp.int32)
        return x, wide.less(x, end[None]), up_to - counted.astype(jnp.int32), up_to

    def _point(self, key: Array, pieces: Pieces) -> piecewise.Point:
        return piecewise.draw_everywhere(key, pieces, self._log_density(pieces))

    def _log_density(self, pieces: Pieces) -> Float[Array, "pieces"]:
        logs = piecewise.log_density(pieces, 2 * self.slope())
        if self.base == "uniform":
            return logs
        return logs + scales.log_mixed(pieces.starts, self.bits, self.origin)

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        def one(fraction: Array, interval: Interval) -> Array:
            pieces = self.pieces(points, fraction)
            return piecewise.law_everywhere(pieces, self._log_density(pieces), Goal(marked=None, within=interval))

        return jax.vmap(one)(jnp.asarray(self.fractions), intervals.of_domain(self.bits, self.wider))

    def pmfs(self, points: Points, size: int) -> Float[Array, "quantiles outcomes"]:
        place = wide.from_uint32(jnp.arange(size, dtype=jnp.uint32), self.wider)

        def one(fraction: Array) -> Array:
            pieces = self.pieces(points, fraction)
            return jnp.append(jax.nn.softmax(self._log_density(pieces)[jax.vmap(pieces.locate)(place)]), 0.0)

        return jax.vmap(one)(jnp.asarray(self.fractions))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE: all quantiles together."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)

    def zcdp(self) -> float:
        """rho for which all quantiles together are rho-zCDP under ADD_OR_REMOVE_ONE: lambda^2 S / 8, rounded up."""
        return float(self.slope(np) ** 2 * self._sums(np)[1] / 8) * (1 + 2.0**-44)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: (`error` + 1) / alpha.

        One rank is added as ranks are integers, and f n is rounded to one.

        Raises:
          ValueError: alpha or beta outside (0, 1).
        """
        alpha = arguments.known_fraction("alpha", alpha)
        return whole((self.error(beta=beta) + 1) / alpha)  # ranks are integers, and f n is rounded to one

    def error(self, *, beta: float) -> float:
        """A bound on the ranks by which answers miss f n, whatever the points are, except with probability beta: see the module."""
        beta = arguments.known_fraction("beta", beta)
        return error_bound(self._nats(), self.fractions.shape[0], float(self.slope(np)), beta)

    def _nats(self) -> float:
        """An upper bound on ln of 1/beta times the probability of an error above ln(1/beta)/lambda."""
        return (int(self.bits) + (self.base == "scales")) * scales.LN2


def error_bound(nats: float, count: int, rate: float, beta: float) -> float:
    """A bound on the ranks by which `count` answers miss f n, except with probability beta, if one answer misses it by more than t
    with probability at most exp(nats - rate t)."""
    return (nats + math.log(count) - math.log(beta)) / rate


def range_sums(f: Any, xp: Any) -> tuple[Any, Any]:
    """(The greatest sum of the ranges of all runs, the greatest sum of the squares of ranges), for runs at fractions f."""
    w = xp.maximum(f, 1 - f)
    ranges = xp.sum(w) + xp.maximum(xp.sum(f), xp.sum(1 - f))
    return ranges, xp.maximum(xp.sum((w + f) ** 2), xp.sum((w + 1 - f) ** 2))


def _rank_error(
    counts: Int[Array, "2 pieces"], fraction: UInt32[Array, ""], n: Int[Array, ""]
) -> Float[Array, "pieces"]:
    """e, from #{x < z} and #{x <= z}: f n is kept as its integer part and the rest, so that small errors lose no digits."""
    whole, digits = ranks(fraction, n)
    rest = digits.astype(float) * 2.0**-32
    below, up_to = (counts - whole.astype(jnp.int32)).astype(float)
    return jnp.maximum(below - rest, rest - up_to)


def rank_exponential(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any = None,
    delta: Any = 0.0,
    rho: Any = None,
    base: str = "uniform",
    origin: int = 0,
) -> RankExponential:
    """Quantiles at `fractions` of the points by the exponential mechanism on the rank error; see the module.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE for all quantiles together, or rho-zCDP; see `RankExponential.zcdp`. Not
    promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite; may be traced.
      delta: total, in [0, 1); may be traced.
      rho: the total of zero-concentrated privacy, in place of epsilon and delta, > 0, finite; may be traced. The guarantee then states the
        pure epsilon that it takes.
      base: what outputs weigh before any data are seen: "uniform", or "scales", half of which is by scales, for values of unknown scale.
      origin: the public point around which scales lie, 0 to 2^bits.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both epsilon and rho, or neither; a delta with rho.

    >>> quartiles = rank_exponential(bits=24, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 5000), 24))
    >>> wide.to_ints(quartiles(jax.random.key(0), points).hypothesis)
    [1992, 2996, 4013]
    >>> float(quartiles.failure_probability(points, error=0.02)) < 1e-7, quartiles.sample_size(alpha=0.02, beta=0.1)
    (True, 3557)
    >>> percentiles = {"bits": 24, "fractions": [i / 100 for i in range(1, 100)]}
    >>> [round(float(rank_exponential(**percentiles, epsilon=1.0, delta=delta).slope()), 4) for delta in (0.0, 1e-6)]
    [0.0081, 0.0344]
    """
    each: Any = np.asarray(rounded_fractions(fractions), np.uint32)
    ranges, squares = range_sums(each * 2.0**-32, np)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    domain: Any = {"bits": np.int32(bits), "limbs": wide.limbs_for(bits), **scales.base_measure(base, origin, bits)}
    budget = total(epsilon, delta, rho, per_root=float(ranges / squares**0.5))
    return RankExponential(**domain, fractions=each, **budget)
