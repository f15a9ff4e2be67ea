"""A histogram of all 2^d points under pure privacy, at the cost of those that occur (Cormode, Procopiuc, Srivastava, Tran 2012).

Every count of the domain gets two-sided geometric noise of ratio r = exp(-epsilon/2). Noisy counts of at least a threshold t >= 1 are
released, minus a shift s < t; all other answers are 0. Replacing a point lowers one count by 1 and raises another: the counts have L1
sensitivity 2 under REPLACE_ONE, all noisy counts together are epsilon-private, and the release is a function of them, for every t and s.

**Strangers**, points that do not occur, pass independently of each other, each with probability p = P[noise >= t] = r^t / (1 + r). Their
excess over t is then one-sided geometric. On 2^64 points strangers are drawn without a pass over all points. Let points arrive by a Poisson
process, at the rate -ln(1 - p) for each of the 2^d: a point is hit at least once with probability p, independently of the others. So
Poisson(-2^d ln(1 - p)) arrivals are placed uniformly; repeated ones count once, and those at points that occur are discarded, as these
points have noise of their own. There is room for so many arrivals that more come with probability at most 2^-64, which is as fine as
probabilities are sampled.

**Threshold and shift.** If t is such that one point that does not occur is expected to pass, about (2/(alpha epsilon)) (d ln 2 +
ln(1/(alpha beta))) examples suffice: the count of a point that is missed is at most t plus what noise takes from one of few points; and
t is about what noise gives one of 2^d points. At a lower t, where many pass, and with s = t - 1 (soft thresholding), little more than half
of that suffices: the noise of the 2^d points only adds, and the shift takes half of it away, and as much from points that occur. But at
most MOST_ARRIVALS strangers are drawn, so no more than about (2/(alpha epsilon)) ln(MOST_ARRIVALS) can be saved. `bounds.sparse_histogram`
is for the worst data.

Pure sanitizers of points need an n of the order of d (Beimel, Brenner, Kasiviswanathan, Nissim 2014, quoted in BNS Section 4.2).

The plain twin of the law of an answer is `dpjax.verify.plain.noisy_counts.released`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments, bisection, logspace, random, sums
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound
from dpjax.domains import groups, wide
from dpjax.domains.events import Accurate
from dpjax.mechanisms import geometric
from dpjax.mechanisms.base import LARGEST, Between
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE, checked_rate, one_sided_geometric
from dpjax.sanitizers import base
from dpjax.sanitizers.points.base import Frequencies, PointSanitizer

SENSITIVITY = 2  # L1, of all counts, under REPLACE_ONE
MOST_THRESHOLD = LARGEST // 2  # sums of two are integers
MOST_ARRIVALS = 2**12
EXPECTED = 16
_RARE = 64 * math.log(2.0)  # -ln P[arrivals without room], at least


@frozen
class SparseHistogram(PointSanitizer):
    """Noisy counts of the whole domain, those from `threshold` on; see the module, and build it by `sparse_histogram`."""

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    threshold: Int[Array, ""]
    shift: Int[Array, ""]
    limbs: int = static()
    room: int = static()

    def draw(self, key: Array, found: groups.Groups) -> tuple[Frequencies, Bool[Array, ""], Any]:
        mask = wide.largest(jnp.asarray(self.bits), self.limbs)
        rows, counts, where = self.released(key, found.rows, found.counts, found.valid, mask)
        shares = (counts - jnp.asarray(self.shift, counts.dtype)).astype(float) / jnp.asarray(self.n, float)
        return Frequencies(points=rows, answers=jnp.where(where, shares, 0.0), where=where), jnp.bool_(True), {}

    def released(
        self,
        key: Array,
        rows: UInt32[Array, "slots words"],
        counts: Int[Array, "slots"],
        valid: Bool[Array, "slots"],
        mask: UInt32[Array, "words"],
    ) -> tuple[UInt32[Array, "more words"], Int[Array, "more"], Bool[Array, "more"]]:
        """(rows whose noisy counts reach the threshold, increasing and first; these counts; which slots are used), strangers among them.

        Args:
          key: a PRNG key.
          rows, counts, valid: the rows that occur, increasing, with all ones in unused slots; how often each occurs; which slots are used.
          mask: the bits of a row of the domain, 2^bits in all.
        """
        key_here, key_elsewhere = jax.random.split(key)
        nothing = jnp.zeros(counts.shape, jnp.int32)
        noise = geometric.geometric(key_here, nothing, epsilon=self.epsilon, sensitivity=SENSITIVITY)
        noisy = counts + noise.astype(counts.dtype)
        keep = valid & (noisy >= jnp.asarray(self.threshold, counts.dtype))
        strangers, theirs, arrived = self._arrivals(key_elsewhere, mask)
        before = jax.vmap(lambda row: wide.search(rows, row))(strangers)
        at = jnp.minimum(before, rows.shape[0] - 1)
        again = jnp.concatenate([jnp.zeros((1,), bool), wide.equal(strangers[1:], strangers[:-1])])
        new = arrived & ~again & ~(wide.equal(rows[at], strangers) & valid[at])
        return _merged((rows, noisy, keep), (strangers, theirs.astype(counts.dtype), new), before)

    def _arrivals(
        self, key: Array, mask: UInt32[Array, "words"]
    ) -> tuple[UInt32[Array, "room words"], Int[Array, "room"], Bool[Array, "room"]]:
        """(Rows, increasing; their noisy counts, if they do not occur; which of them have arrived.)"""
        key_times, key_rows, key_counts = jax.random.split(key, 3)
        times, words = jnp.cumsum(random.exponential(key_times, (self.room,))), mask.shape[0]
        rows = random.bits(key_rows, self.room * words).reshape(self.room, words) & mask[None]
        rows, arrived, _ = groups.in_order(rows, times <= self.arrivals())
        excess = one_sided_geometric(key_counts, (self.room,), epsilon=self.epsilon / SENSITIVITY)
        return rows, self.threshold + excess, arrived

    def log_released(self, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[released], ln P[not]) for rows of these counts."""
        given: dict[str, Any] = {"epsilon": self.epsilon, "sensitivity": SENSITIVITY}
        below = jnp.asarray(self.threshold, counts.dtype) - 1
        return geometric.log_sf(below, counts, **given), geometric.log_cdf(below, counts, **given)

    def law(self, found: groups.Groups, event: Accurate) -> Float[Array, "2"]:
        """(P[every answer is within `error` of the truth], P[not]): noises are independent."""
        counts, error = found.counts, jnp.floor(event.limit(self.n))
        most = jnp.minimum(error, MOST_THRESHOLD).astype(counts.dtype)  # no noise is beyond
        # The answer for a point that is not released is 0, which is right unless the point is missed.
        threshold, shift = (jnp.asarray(each, counts.dtype) for each in (self.threshold, self.shift))
        short, missed = threshold - counts, counts.astype(float) > error
        low = jnp.where(missed, jnp.maximum(short, shift - most), -MOST_THRESHOLD)
        high = jnp.maximum(short, shift + most + 1)
        noise = geometric.mechanism(epsilon=self.epsilon, sensitivity=SENSITIVITY)
        here = jnp.stack(noise.split(jnp.zeros_like(counts), Between(low=low, high=high)))
        here = jnp.where(found.valid, here, jnp.array([[1.0], [0.0]]))
        # None of the other points, a share of the domain, may be released with too large an answer.
        others = -jnp.expm1(jnp.minimum(jnp.log(found.size.astype(float)) - self._log_points(), 0.0))
        wrong = others * self.arrivals(jnp.maximum(threshold.astype(float), error + shift.astype(float) + 1))
        elsewhere = jnp.stack([jnp.exp(-wrong), -jnp.expm1(-wrong)])
        return logspace.all_happen(jnp.concatenate([here.T, elsewhere[None]]))

    def sound(self) -> Bool[Array, ""]:
        epsilon, threshold, shift = (jnp.asarray(each) for each in (self.epsilon, self.threshold, self.shift))
        # Up to roundings, where they are traced.
        fits = _rarity(self.arrivals(), self.room, jnp) >= 0.99 * _RARE
        numbers = (epsilon.astype(float) >= SMALLEST_RATE * SENSITIVITY) & (jnp.asarray(self.n, float) >= 1)
        return sound(self) & numbers & (shift >= 0) & (shift < threshold) & (threshold <= MOST_THRESHOLD) & fits

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """`bounds.sparse_histogram`."""
        numbers = {"threshold": int(self.threshold), "shift": int(self.shift)}
        return bounds.sparse_histogram(int(self.bits), alpha, beta, float(self.epsilon), **numbers)

    def _log_points(self) -> Float[Array, ""]:
        """ln 2^d."""
        return math.log(2.0) * jnp.asarray(self.bits, float)

    def arrivals(self, least: Any = None) -> Float[Array, ""]:
        """-2^d ln(1 - P[noise >= least]), for the threshold if `least` is None: the strangers that get there are fewer on average."""
        given = (
            jnp.asarray(each, float) for each in (self.bits, self.epsilon, self.threshold if least is None else least)
        )
        return bounds.sparse_arrivals(*given, xp=jnp)


def _merged(ours: tuple[Array, Array, Array], theirs: tuple[Array, Array, Array], before: Int[Array, "others"]) -> Any:
    """Two lists of (increasing rows, counts, which are kept), merged into one, with the kept rows first.

    Args:
      ours, theirs: the lists, with no row kept in both.
      before: how many of our rows precede each of theirs.
    """
    (rows, _, keep), (others, _, new) = ours, theirs
    kept, slots = sums.running(keep.astype(jnp.int32)), rows.shape[0]
    size = slots + others.shape[0]
    # A row's place is how many are kept before it, in its own list and in the other one.
    ahead = sums.running(jnp.zeros((slots + 1,), jnp.int32).at[before].add(new.astype(jnp.int32)))[:-1]
    place = jnp.where(keep, kept - 1 + ahead, size)
    ahead = jnp.where(before > 0, kept[jnp.maximum(before - 1, 0)], 0)
    their_place = jnp.where(new, sums.running(new.astype(jnp.int32)) - 1 + ahead, size)

    def both(empty: Array, first: Array, second: Array) -> Array:
        return empty.at[place].set(first, mode="drop").at[their_place].set(second, mode="drop")

    empty = jnp.full((size, rows.shape[1]), np.uint32(0xFFFFFFFF)), jnp.zeros((size,), ours[1].dtype)
    merged, counts = map(both, empty, ours[:2], theirs[:2])
    many = jnp.sum(keep, dtype=jnp.int32) + jnp.sum(new, dtype=jnp.int32)
    return merged, counts, jnp.arange(size, dtype=jnp.int32) < many


def _rarity(arrivals: Any, room: Any, xp: Any = math) -> Any:
    """A lower bound on -ln P[more than `room` arrive], a Poisson number of this mean (Chernoff); 0 where the mean is >= room + 1."""
    least = room + 1.0
    ratio = max(least / arrivals, 1.0) if xp is math else xp.maximum(least / arrivals, 1.0)
    return least * (xp.log(ratio) - 1 + 1 / ratio)


def _room(arrivals: float) -> int:
    """The room that is enough, except with probability 2^-64."""
    return bisection.least_int(lambda room: _rarity(arrivals, room) >= _RARE, 1)


def sparse_histogram(*, bits: int, n: Any, epsilon: Any, threshold: Any = None, shift: Any = 0) -> SparseHistogram:
    """Noisy counts of all 2^d points, of which those from `threshold` on are released; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for every n, tight. Not promised: protection from floating-point side channels
    (besides what `dpjax.mechanisms.geometric` says, the probability that a point passes is right to a relative 1e-7 times d, or times its
    own logarithm); a cryptographic generator.

    Args:
      bits: d.
      n: number of examples, public (only a unit: answers are shares of it).
      epsilon: at least 2^-24, finite.
      threshold: the least noisy count that is released, an integer >= 1; by default the least at which one point that does not occur is
        expected to be named (`bounds.sparse_threshold`, which says how it depends on that number). Where epsilon or threshold is traced,
        there is room for an expected number of 8 such points.
      shift: what is subtracted from noisy counts that are released, an integer below `threshold`. At 0 answers are unbiased, except for
        those that are left out; the module says what a shift is good for.

    Raises:
      TypeError, ValueError: an argument out of range; a threshold that thousands of points that do not occur are expected to reach.

    >>> import jax
    >>> from dpjax import Weighted
    >>> from dpjax.domains import wide
    >>> data = Weighted.create(wide.from_ints([3, 2**50, 2**60], 64), [600, 399, 1])
    >>> released = sparse_histogram(bits=64, n=1000, epsilon=1.0)(jax.random.key(0), data).hypothesis
    >>> [round(float(a), 1) for a in released.answer(data.x)]
    [0.6, 0.4, 0.0]
    """
    return of_domain(base.domain(bits, n), epsilon=epsilon, threshold=threshold, shift=shift)


def of_domain(
    domain: dict[str, Any],
    *,
    epsilon: Any,
    threshold: Any,
    shift: Any = 0,
    spurious: float = 1.0,
    expected: int = EXPECTED,
) -> SparseHistogram:
    """The counts of a domain of 2^bits rows.

    Args:
      domain: `base.domain`, for a domain of any size.
      epsilon, threshold, shift: as for `sparse_histogram`.
      spurious: the expected number of strangers that sets the threshold, if that is None.
      expected: whatever epsilon and threshold are, there is room for an average of ln 2 times `expected` arrivals, or of ln 2 times 2^bits
        if that is less; so half as many strangers as `expected` may be expected.

    Returns:
      The counts.

    Raises:
      TypeError, ValueError: as `sparse_histogram`.
    """
    epsilon, bits = checked_rate(arguments.epsilon(epsilon), SENSITIVITY), int(domain["bits"])
    if threshold is None:
        xp = jnp if arguments.is_traced(epsilon) else math
        threshold = bounds.sparse_threshold(bits, epsilon, spurious, xp=xp)
        if not arguments.is_traced(threshold):  # `jax.grad` alone traces epsilon, but not a rounded number made from it
            threshold = int(threshold)
    # The same shapes for most parameters, and those that are traced.
    arrivals = math.log(2.0) * min(2 ** min(bits, 30), expected)
    if not arguments.is_traced(threshold):
        threshold = arguments.count("threshold", threshold, at_most=MOST_THRESHOLD)
        if not arguments.is_traced(epsilon):
            arrivals = max(arrivals, bounds.sparse_arrivals(bits, float(epsilon), threshold))
        if not arguments.is_traced(shift):
            arguments.integer("shift", shift, at_least=0, at_most=threshold - 1)
    if arrivals > MOST_ARRIVALS:
        least = bounds.least_sparse_threshold(bits, float(epsilon), MOST_ARRIVALS)
        rule = f"at least {least}, for at most {MOST_ARRIVALS} points that do not occur"
        raise ValueError(f"threshold must be {rule}, got {threshold}")
    numbers = {"threshold": _whole(threshold), "shift": _whole(shift)}
    return SparseHistogram(**domain, epsilon=epsilon, **numbers, room=_room(arrivals))


def _whole(number: Any) -> Any:
    return jnp.asarray(number).astype(jnp.int32) if arguments.is_traced(number) else np.int32(number)
