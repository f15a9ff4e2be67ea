"""Quantiles at any fractions by one choice each among the keys of a tree that the data support: errors grow like ln(bits), not bits.

For a fraction f of n points let e(y) = max{f n - #{x <= y}, #{x < y} - f n, 0} be the rank error of y, and w = max{f, 1 - f}. The window
of a public m is the points of ranks above f n - m up to the first one of f n + m or more; ranks past the ends of the data count as points,
0 below and 2^bits - 1 above. With m_y the number of points of the window in the subtree of y (the search tree is that of
`interior_point.tree_score`), each run chooses among the keys with

    u(y) = min(m_y, (m - e(y))/w) > 0,    P[y] proportional to e^(epsilon u/2),

or gives bottom, by `dpjax.mechanisms.supported` for scores that move both ways. So an answer always errs by less than m ranks, and the
runs read the 2m points around each rank alone.

**Private**: (epsilon, delta) under ADD_OR_REMOVE_ONE, for data of any size. Insert a point z. f n - #{x <= y} moves by f or f - 1, and
#{x < y} - f n by -f or 1 - f, so that e moves by at most w. The window x_i, ..., x_j loses x_i or gains its predecessor (or z in its
place), or neither, and likewise above; where its ends move inwards, both, z was inserted between them. A subtree is an interval: if it
holds both ends it holds z. So m_y moves by at most 1, and so does u: keys come into view or leave it with u at most 1. They are at most
k = 5 bits - 4. Keys from x_i to x_j are in view if they have a point in their subtree, of the window or not: that point, or one of the two
beside the key, is in the window. So there are three kinds.

- Keys that an end of the window passes over: those of a gap, between one point p and the next one q, with one of the two. The keys
  strictly between are on the search path of p or q. Let these part at a key of level l (a leaf has level 1, the key 0 has level 0). Then
  they are that key, at most l - 2 below it on the way to p (l - 1 if p is the key 0), without p, and l - 2 on the way to q: at most
  2 l - 1 with p or q.
- The same at the other end.
- Keys with no points below them but z. There are none if z is not strictly inside the window: a subtree that holds z and a key of the
  window then holds the end between them. Otherwise they are on the path of z below the key at which the paths of the two points beside z
  part: l - 1 at most, with the level of that key.

The three gaps are disjoint but for their ends, and so their paths part at three keys, of which one may be the root: (2 bits - 1) +
(2 bits - 3) + (bits - 2) is the most for bits > 1, 2 less than k, and for bits = 1 it is 1. (Two gaps may part at the same key only where
it is an end of both: then they have l keys at most.) The greatest number that a search found is 5 bits - 11, for 8 to 12 bits.

**Useful.** Cut points off from both ends of the window, l below and r above, as in `interior_point.supported_tree`. If a cut meets a key of
rank error 0, this key alone has u = m/w. Otherwise the keys of the last cuts have u = (l - a)/w and (r - a')/w, where the window has
a + a' more than 2m points, and the key that spans what is left has u >= 2m + a + a' - l - r. For a given sum w (A + B) + C of these three
scores the sum of the powers is least where C = A + (2/epsilon) ln(1/w) = B + (2/epsilon) ln(1/w):

    ln Z >= ln(1 + 2w) + (epsilon m - 2 w ln w)/(1 + 2w)                                                 (`log_least_weight`)

on any data of any size. (With a cut on one side only, w B + C is fixed, and this holds with w in place of 2w, which is more but for small
m.) So m = ((1 + 2w)/epsilon) (ln Z - ln(1 + 2w)) + (2 w/epsilon) ln w ranks are enough, with the ln Z of
`bounds.supported_weight`, about ln(bits/delta): (2/epsilon) (ln Z - 1.04) for a median. `direct` by the supported tree needs
(3/epsilon) (ln Z - 1.1): a slice around the rank of n points is changed by a whole replacement, where an insertion moves the rank errors
of a median by just half a rank. At epsilon = 1, delta = 1e-6, beta = 0.05, ranks of one fraction:

| bits | 16 | 64 | 256 | 1024 | 4096 |
|---|---|---|---|---|---|
| `supported`, f = 1/2 | 37 | 40 | 42 | 45 | 48 |
| `supported`, f = 1/4 | 46 | 49 | 53 | 56 | 60 |
| `direct` by the supported tree, any f | 58 | 62 | 67 | 71 | 75 |
| `permute_and_flip`, f = 1/2, delta = 0 | 14 | 47 | 180 | 713 | 2842 |

Of a total epsilon each run gets a share in proportion to its 1 + 2w, and of delta and beta an equal one.

The plain twin is `dpjax.verify.plain.quantiles.supported_laws`.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, bisection
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.optimizers.interior_point import base as solvers
from dpjax.optimizers.interior_point.supported_tree import SupportedTree
from dpjax.optimizers.interior_point.tree_keys import Group
from dpjax.optimizers.interior_point.tree_score import Items
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import MOST_POINTS, ranks
from dpjax.optimizers.quantiles.independent import IndependentQuantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions

TINY = 2.0**-100  # a score above 0 that adds nothing to any other


@frozen
class _Ranked(SupportedTree):
    """The tree whose keys are weighed by their rank errors, too, for one window of points.

    Attributes:
      rest: the wanted rank less m and less the number of points in front of the window; from 0 to 1.
      m: more than any rank error of an answer.
      width: w.
    """

    monotone: ClassVar[bool] = False

    rest: Float[Array, ""]
    m: Int[Array, ""]
    width: Float[Array, ""]

    def _score(self, items: Items, group: Group) -> tuple[Int[Array, "rows"], Float[Array, "rows"]]:
        before, stop, under, up_to = (items.counted(x) for x in (group.before, group.stop, group.under, group.up_to))
        inside, (whole, part) = stop - before, self._deep(under, up_to)
        whole, part = jnp.minimum(inside, whole), jnp.where(inside <= whole, 0.0, jnp.maximum(part, TINY))
        # From the first point of the window to the last keys are in view, though a score next to 0 may be rounded to it.
        seen = (inside > 0) & (up_to > 0) & (under < items.points)
        return jnp.where(seen, whole, 0), jnp.where(seen, part, 0.0)

    def _deep(self, under: Int[Array, "rows"], up_to: Int[Array, "rows"]) -> tuple[Array, Array]:
        """(m - e)/w, or 0 if it is negative, as an integer and a part of 1.

        In integers: at the size of m/w = 100,000 floats have so few digits behind the point that one record more would add 1.008 epsilon.
        """
        below, above = self.m - up_to, under - self.m  # above > 0 only where below < 0
        ranks_off = jnp.where(below >= 0, below, jnp.maximum(above - 1, 0))
        more = jnp.where(below >= 0, self.rest, jnp.where(above > 0, 1 - self.rest, 0.0))
        left = jnp.maximum(self.m - ranks_off, 0)
        # left/w = 2 left - share left with share = 2 - 1/w < 1, whose float must not be rounded to 1.
        share = (jnp.minimum(2 - 1 / self.width, 1 - 2.0**-24) * 2.0**32).astype(jnp.uint32)
        taken, digits = wide.high_product(share, left.astype(jnp.uint32)), share * left.astype(jnp.uint32)
        rest = digits.astype(float) * 2.0**-32 + more / self.width
        up = jnp.ceil(rest)
        whole = 2 * left - taken.astype(jnp.int32) - up.astype(jnp.int32)
        return jnp.maximum(whole, 0), jnp.where(whole >= 0, up - rest, 0.0)

    def _growth(self) -> Float[Array, ""]:
        return growth(jnp.asarray(self.bits, float))


@frozen
class Window:
    """One run's points and tree."""

    points: Points
    tree: _Ranked

    def run(self, key: Array) -> Outcome:
        """One choice."""
        return self.tree(key, self.points)


def windows(
    quantiles: Any, points: Points, at: Int[Array, "k"], rest: Float[Array, "k"], budgets: Sequence[Array]
) -> Window:
    """The windows around the ranks at + rest, 0 <= rest < 1, stacked, for quantiles with `m` and `capacity`.

    Args:
      quantiles: an algorithm with these, `bits` and `limbs`.
      points: sorted.
      at, rest: the ranks.
      budgets: w, epsilon and delta of each run.
    """
    stretch, m = base.stretch_of(quantiles, points), jnp.asarray(quantiles.m, jnp.int32)

    def one(at: Array, rest: Array, width: Array, epsilon: Array, delta: Array) -> Window:
        tree = _Ranked(
            bits=quantiles.bits,
            limbs=quantiles.limbs,
            epsilon=epsilon,
            delta=delta,
            rest=rest,
            m=m,
            width=width,
        )
        size = 2 * m + (rest > 0).astype(jnp.int32)
        return Window(points=stretch.window(at - m, size, quantiles.capacity), tree=tree)

    return jax.vmap(one)(at, rest, *budgets)


@frozen
class SupportedQuantiles(IndependentQuantiles):
    """Quantiles at any fractions by the exponential mechanism over the keys that the data support; build it by `supported`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon, delta: totals.
      m: no answer errs by m ranks.
      limbs: limbs of a point (static).
      capacity: rows of a window (static).
    """

    takes_scaled: ClassVar[bool] = True

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    m: Int[Array, ""]
    limbs: int = static()
    capacity: int = static()

    def sound(self) -> Bool[Array, ""]:
        m = jnp.asarray(self.m, jnp.int32)
        return super().sound() & (jnp.asarray(self.delta, float) > 0) & (m >= 1) & (m <= (self.capacity - 1) // 2)

    def budgets(self, xp: Any = jnp) -> tuple[Any, Any, Any]:
        """(w, epsilon and delta of each run), by `jax.numpy`, or by `numpy` on the host."""
        f = xp.asarray(self.fractions).astype(float) * 2.0**-32
        return budgets(f, xp.asarray(self.epsilon, float), xp.asarray(self.delta, float), xp)

    def _windows(self, points: Points) -> Window:
        whole, digits = ranks(self.fractions, points.n_valid)
        return windows(self, points, whole.astype(jnp.int32), digits.astype(float) * 2.0**-32, self.budgets())

    def draw(self, key: Array, points: Points) -> Any:
        keys = jax.random.split(key, self.fractions.shape[0])
        return base.in_order(jax.vmap(lambda key, window: window.run(key))(keys, self._windows(points)))

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        return jax.vmap(lambda window, one: window.tree.probability(window.points, one))(
            self._windows(points), intervals
        )

    def pmfs(self, points: Points, size: int) -> Float[Array, "quantiles outcomes"]:
        return jax.vmap(lambda one: one.tree.masses(one.tree.prepare(one.points), size))(self._windows(points))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE: all quantiles together."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: ceil(m/alpha).

        Raises:
          ValueError: m is below what a run needs to give bottom with probability at most beta / q, whatever the data are.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        m, fractions = int(self.m), np.asarray(self.fractions).astype(float) * 2.0**-32
        needed = least_m(int(self.bits), fractions, float(self.epsilon), float(self.delta), beta)
        if m < needed:
            raise ValueError(f"m must be >= {needed} for bottom to have probability <= {beta:g}, got {m}")
        return math.ceil(m / alpha)


def growth(bits: Any) -> Any:
    """k, how many keys may come into view or leave it."""
    return 5 * bits - 4


def budgets(f: Any, epsilon: Any, delta: Any, xp: Any) -> tuple[Any, Any, Any]:
    """(w, epsilon and delta of each run), for runs at fractions f."""
    w = xp.maximum(f, 1 - f)
    shares = (1 + 2 * w) / xp.sum(1 + 2 * w)
    return w, epsilon * shares, delta / len(f) * xp.ones_like(w)


def log_least_weight(m: int, width: float, epsilon: float) -> float:
    """ln of what all keys in view weigh together at least, on any data; see the module.

    >>> [round(log_least_weight(m, 0.5, 1.0), 3) for m in (1, 2, 40)]
    [1.0, 1.97, 21.04]
    """
    nats = epsilon * m
    cut = [math.log1p(k * width) + (nats - k * width * math.log(width)) / (1 + k * width) for k in (1, 2)]
    return min(nats / (2 * width), *cut)


def least_m(bits: int, fractions: Any, epsilon: float, delta: float, beta: float) -> int:
    """The least m with which all runs answer except with probability beta, on any data, for total epsilon and delta.

    >>> [least_m(bits, np.array([0.5]), 1.0, 1e-6, 0.05) for bits in (64, 1024)]
    [40, 45]
    """
    runs = np.unique(np.stack(budgets(np.asarray(fractions), epsilon, delta, np)), axis=1)
    return max(least_m_of_run(bits, run, beta / len(fractions)) for run in runs.T.tolist())


def least_m_of_run(bits: int, run: Sequence[float], beta: float) -> int:
    """The same for one run: its w, epsilon and delta."""
    width, epsilon, delta = run
    needed = bounds.supported_weight(growth(bits), beta, epsilon, delta, monotone=False) * (1 + 1e-12)
    high = max(math.ceil((1 + 2 * width) * needed / epsilon) + 1, 1)
    return bisection.least_int(lambda m: log_least_weight(m, width, epsilon) >= needed, 1, high)


def supported(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any,
    delta: Any,
    beta: float | None = None,
    m: int | None = None,
) -> SupportedQuantiles:
    """Quantiles at `fractions` of the points, each by one choice among the keys of a tree that the data support; see the module.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE for all quantiles together, for any data; no answer errs by m ranks or more.
    Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite.
      delta: total, in (0, 1).
      beta: m is the least with which all runs together give bottom with probability at most beta, whatever the data are.
      m: in place of beta, any m. The guarantee holds, and so does the bound on errors; bottom may be likely.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase; both beta and m, or neither.

    >>> median = supported(bits=1024, fractions=[0.5], epsilon=1.0, delta=1e-6, beta=0.05)
    >>> int(median.m), median.sample_size(alpha=0.1, beta=0.05), median.guarantee()
    (45, 450, Guarantee(epsilon=1.0, delta=1e-06, relation='ADD_OR_REMOVE_ONE'))
    """
    domain, rounded = solvers.domain(bits), np.asarray(rounded_fractions(fractions), np.uint32)
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    if not arguments.is_traced(delta):  # a part that float32 takes for 0 would leave nothing but bottom
        arguments.known("delta", delta, at_least=len(rounded) * arguments.least())
    if (beta is None) == (m is None):
        raise ValueError(f"either beta or m must be given, got beta={beta!r} and m={m!r}")
    if m is None:
        totals = arguments.known("epsilon", epsilon), arguments.known("delta", delta)
        m = least_m(int(bits), rounded * 2.0**-32, *totals, arguments.known_fraction("beta", beta))
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2 - 1)
    leaves: Any = {"fractions": rounded, "epsilon": epsilon, "delta": delta, "m": np.int32(m)}
    return SupportedQuantiles(**domain, **leaves, capacity=bucket(2 * m + 1))
