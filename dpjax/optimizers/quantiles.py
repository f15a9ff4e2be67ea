"""Approximate quantiles from any interior point solver (CLNSS §1.4, after Bun, Nissim, Stemmer and Vadhan 2015).

An interior point z of the 2m points around rank k has a rank within m - 1 of k: with x_1 <= ... <= x_n and the slice
x_(k-m+1), ..., x_(k+m), at least k-m+1 points are <= z and at most k+m-1 are < z. Ranks past the ends count as points 0
below and 2^bits - 1 above, so that the slice always has 2m points; they only help, since every z lies between them.

| factory | quantiles | privacy, for a solver that is (e, d)-private under add/remove |
|---|---|---|
| `direct` | any q fractions, a run each on the whole dataset | q runs of (2e, (1 + exp(e)) d) |
| `recursive` | all multiples of 2^-L: the median, then the medians of both sides, ... | L runs of (2e, (1 + exp(e)) d) |

**Why 2e.** The number n of points is private, and the wanted rank is k(n) = floor(f n + 1/2), so k(n+1) - k(n) is 0 or 1. Insert a point
at position p of the sorted dataset and compare the windows, positions [k-m, k+m) from 0. If k stays: nothing changes for p >= k+m;
otherwise the window loses its last point and gains the new one (p inside) or the one that moves up from below (p < k-m). If k moves up:
nothing changes for p <= k-m; otherwise it loses its first point and gains the new one or the one above. So neighbouring datasets give
slices that are equal or differ by one replacement, two steps of add/remove: `Guarantee.group(2)`. No window does better: to
be spared a removal its ends would have to move by one exactly if p lies below them, but they depend on n alone. Replacing a point
of a dataset of public size is also one replacement in the window (remove a, insert b, with k fixed: at most one point leaves and one
enters), so that `direct` promises the same under both relations.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import ordered, wide
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> points = Points.create(wide.from_ints(range(1000, 5000), 24))
    >>> quartiles = quantiles.direct(solver=interior_point.exponential(bits=24, epsilon=1.0), fractions=[0.25, 0.5, 0.75], m=60)
    >>> outcome = quartiles(jax.random.key(0), points)
    >>> [1940 <= a <= 2060 for a in wide.to_ints(outcome.hypothesis[:1])], quartiles.guarantee().epsilon
    ([True], 6.0)
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, basic, optimal
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import once
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import ordered, wide
from dpjax.domains.events import Interval

MOST_POINTS = 2**30  # of a slice, so that its ends are int32 ranks
MOST_LEVELS = 16


@frozen
class Run:
    """Sorted rows first, ..., stop - 1 of an array, continued by endless copies of `low` before them and of `high` after them."""

    x: UInt32[Array, "rows limbs"]
    first: Int[Array, ""]
    stop: Int[Array, ""]
    low: UInt32[Array, "limbs"]
    high: UInt32[Array, "limbs"]

    def window(self, start: Int[Array, ""], size: Int[Array, ""], capacity: int) -> Points:
        """Rows start, ..., start + size - 1 of the continuation, as points with room for `capacity`."""
        row = start + jnp.arange(capacity, dtype=jnp.int32)
        inside = self.x[jnp.clip(row, 0, self.x.shape[0] - 1)]
        x = wide.select(row < self.first, self.low[None], wide.select(row < self.stop, inside, self.high[None]))
        # Stored: else the selection would be fused into every look that a solver takes at its points.
        return Points(x=once(size >= 0, lambda x: x, x), n_valid=size, ordered=True)


def nearest_rank(fraction: UInt32[ArrayLike, "*k"], n: Int[ArrayLike, ""]) -> Int[Array, "*k"]:
    """k(n) = floor(F n / 2^32 + 1/2) in integers, for a fraction F 2^-32: moves by 0 or 1 when n does.

    >>> nearest_rank(np.uint32([2**30, 2**31]), 7).tolist()
    [2, 4]
    """
    fraction, count = jnp.asarray(fraction), jnp.asarray(n, jnp.int32).astype(jnp.uint32)
    whole, rest = wide.high_product(fraction, count), fraction * count
    return (whole + (rest >> np.uint32(31))).astype(jnp.int32)


@jax.jit
def rank_errors(points: Points, answers: UInt32[Array, "k limbs"], ranks: Int[Array, "k"]) -> Int[Array, "k"]:
    """How far each wanted rank is from those of its answer, #{x < z}, ..., #{x <= z}; the points are sorted.

    >>> points = Points.create(wide.from_ints([3, 5, 5, 9], 8), ordered=True)
    >>> rank_errors(points, wide.from_ints([5, 4], 8), jnp.array([2, 3])).tolist()
    [0, 2]
    """
    x = _beyond(points)

    def error(answer: Array, rank: Array) -> Array:
        below, up_to = (jnp.minimum(wide.search(x, answer, side=side), points.n_valid) for side in ("left", "right"))
        return jnp.maximum(jnp.maximum(below - rank, rank - up_to), 0)

    return jax.vmap(error)(answers, ranks)


def _beyond(points: Points) -> UInt32[Array, "rows limbs"]:
    """The sorted points, rows past them at the greatest number."""
    return wide.select(jnp.arange(points.rows, dtype=jnp.int32) < points.n_valid, points.x, ~jnp.zeros_like(points.x))


def _ends(bits: Int[Array, ""], limbs: int) -> UInt32[Array, "2 limbs"]:
    """The first and the last point of the domain, 0 and 2^bits - 1."""
    beyond, one = wide.power_of_two(bits, limbs), wide.from_uint32(jnp.uint32(1), limbs)
    return jnp.stack([jnp.zeros_like(beyond), wide.subtract(beyond, one)])


def _composed(parts: dict[Guarantee, int], delta: float | None) -> Guarantee:
    """Basic composition, or the optimal one at a total delta."""
    return basic(parts) if delta is None else optimal(parts, delta=delta)


def _half_width(m: Any) -> tuple[Any, int]:
    """(m as data, rows of a slice of 2m points)."""
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2)
    return np.int32(m), bucket(2 * m)


# ---------------------------------------------------------------------------------------------- one run a quantile


@frozen
class Direct:
    """Quantiles at any fractions, one run of the solver for each; build it by `direct`.

    Attributes:
      solver: of `dpjax.optimizers.interior_point`.
      fractions: F for each wanted fraction F 2^-32, increasing.
      m: half the points of a slice.
      capacity: rows of a slice (static).
    """

    solver: Any
    fractions: UInt32[Array, "quantiles"]
    m: Int[Array, ""]
    capacity: int = static()

    def __call__(self, key: Array, points: Any) -> Outcome:
        """One release.

        Args:
          key: PRNG key.
          points: `dpjax.Points` (or a `Sample`, whose labels are ignored), in any order.

        Returns:
          An `Outcome`: `hypothesis` are the quantiles in increasing order, uint32 (quantiles, limbs); `status` is `Status.BOTTOM` if
          the solver gave up on one of them (then that one is arbitrary, the order is not restored, and `info` says which).

        Raises:
          TypeError, ValueError: points that do not fit the solver's domain (as far as they are not traced).
        """
        return _run_direct(self, key, self.solver.fit(points))

    def laws(self, points: Any, *, rank_error: ArrayLike) -> Float[Array, "quantiles 2"]:
        """(P[within `rank_error` ranks], P[not, or bottom]) for each quantile, exactly; the runs are independent.

        Args:
          points: as for a call.
          rank_error: t >= 0, an integer; see `rank_errors`. With t = m - 1 it is the law of the solver's own success.
        """
        if not arguments.is_traced(rank_error):
            rank_error = arguments.integer("rank_error", np.asarray(rank_error)[()], at_least=0, at_most=MOST_POINTS)
        return _laws(self, self.solver.fit(points), jnp.asarray(rank_error, jnp.int32))

    def success_probability(self, points: Any, *, rank_error: ArrayLike) -> Float[Array, ""]:
        """P[every quantile is within `rank_error` ranks], exactly."""
        return jnp.prod(self.laws(points, rank_error=rank_error)[:, 0])

    def failure_probability(self, points: Any, *, rank_error: ArrayLike) -> Float[Array, ""]:
        """P[some quantile is not], without cancellation."""
        return -jnp.expm1(jnp.sum(jnp.log1p(-self.laws(points, rank_error=rank_error)[:, 1])))

    def slice_guarantee(self, relation: str = ADD_OR_REMOVE_ONE) -> Guarantee:
        """One quantile: the solver's promise at distance 2, under either relation; see the module."""
        twice = self.solver.guarantee().group(2)
        arguments.choice("relation", relation, (ADD_OR_REMOVE_ONE, REPLACE_ONE))
        return Guarantee(twice.epsilon, twice.delta, relation)

    def guarantee(self, *, relation: str = ADD_OR_REMOVE_ONE, delta: float | None = None) -> Guarantee:
        """All quantiles together: basic composition, or with `delta` the optimal one at this total delta."""
        return _composed({self.slice_guarantee(relation): self.fractions.shape[0]}, delta)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Points with which all ranks are within alpha n of f n, with probability 1 - beta: ceil((m - 1/2) / alpha).

        The rank of an answer is within m - 1 of k(n), which is within 1/2 of f n.

        Raises:
          ValueError: 2m is below what the solver needs to fail with probability at most beta / q on each slice.
        """
        alpha = float(arguments.fraction("alpha", alpha))
        _require(self.solver, int(self.m), float(arguments.fraction("beta", beta)) / self.fractions.shape[0])
        return math.ceil((int(self.m) - 0.5) / alpha)

    def _slices(self, points: Points) -> Points:
        """The slices, stacked; the points are sorted."""
        ends = _ends(self.solver.bits, points.x.shape[1])
        run = Run(x=points.x, first=jnp.int32(0), stop=points.n_valid, low=ends[0], high=ends[1])
        ranks, m = nearest_rank(self.fractions, points.n_valid), jnp.asarray(self.m, jnp.int32)
        return jax.vmap(lambda k: run.window(k - m, 2 * m, self.capacity))(ranks)


def _require(solver: Any, m: int, beta: float) -> None:
    """ValueError if slices of 2m points are too small for the solver."""
    needed = solver.sample_size(beta=beta)
    if 2 * m < needed:
        raise ValueError(f"m must be >= {-(-needed // 2)} for the solver to fail with probability <= {beta:g}, got {m}")


@jax.jit
def _run_direct(quantiles: Direct, key: Array, points: Points) -> Outcome:
    fits, points = points.in_domain(quantiles.solver.bits), points.in_order(quantiles.solver.limbs)
    slices = quantiles._slices(points)
    return fold(jax.vmap(quantiles.solver)(jax.random.split(key, quantiles.fractions.shape[0]), slices), fits)


def fold(runs: Outcome, fits: Bool[Array, ""]) -> Outcome:
    """One outcome of the outcomes of all runs; `fits`: whether the points are of the domain.

    Answers are put in order, which moves no rank error above the largest: at least q - i + 1 of them, those of z_i, ..., z_q, have as many
    points below as z_i must have, so the i-th smallest has, and likewise above.
    """
    ok = runs.status == Status.OK
    ordered = wide.sort(runs.hypothesis)[0]
    return Outcome(
        hypothesis=jnp.where(jnp.all(ok), ordered, runs.hypothesis), status=_status(ok, fits), info={"ok": ok}
    )


def _status(ok: Bool[Array, "k"], fits: Bool[Array, ""]) -> Int[Array, ""]:
    """OK if every run was, and the points are of the domain."""
    status = jnp.where(jnp.all(ok), Status.OK, Status.BOTTOM)
    return jnp.where(fits, status, Status.OUTSIDE_DOMAIN).astype(jnp.int32)


@jax.jit
def _laws(quantiles: Direct, points: Points, rank_error: Array) -> Float[Array, "k 2"]:
    """#{x <= z} >= k - t and #{x < z} <= k + t: z lies between the points at positions k - t - 1 and k + t (from 0)."""
    points = points.in_order(quantiles.solver.limbs)
    ranks, n = nearest_rank(quantiles.fractions, points.n_valid), points.n_valid
    at = jnp.stack([ranks - rank_error - 1, ranks + rank_error])
    ends = points.x[jnp.clip(at, 0, points.rows - 1)]
    bottom, top = _ends(quantiles.solver.bits, points.x.shape[1])
    low = wide.select(at[0] < 0, bottom[None], ends[0])
    high = wide.select(at[1] < n, ends[1], top[None])
    within = jax.vmap(Interval.closed)(low, high)
    return jax.vmap(quantiles.solver.probability)(quantiles._slices(points), within)


def direct(*, solver: Any, fractions: Sequence[float], m: int) -> Direct:
    """Quantiles at `fractions` of the points, each from the 2m points around its rank; `direct(fractions=[0.5])` is the median.

    Args:
      solver: of `dpjax.optimizers.interior_point`, on the domain of the points.
      fractions: each strictly between 0 and 1, increasing; rounded to multiples of 2^-32.
      m: half the points of a slice, and the error in ranks.

    Formal guarantees: q runs of the solver at distance 2, q the number of fractions; see `Direct.guarantee`. Slices may overlap.
    Not promised: floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase.
    """
    values = [float(arguments.fraction("fractions", fraction)) for fraction in fractions]
    rounded = [round(value * 2**32) for value in values]
    if not rounded or any(a >= b for a, b in zip([0, *rounded], [*rounded, 2**32], strict=True)):
        raise ValueError(f"fractions must increase strictly, by 2^-32 at least, and hold one or more; got {values}")
    half, capacity = _half_width(m)
    leaves: Any = {"fractions": np.asarray(rounded, np.uint32), "m": half}
    return Direct(solver=solver, capacity=capacity, **leaves)


# ----------------------------------------------------------------------------------- medians of medians of medians


@frozen
class Recursive:
    """The median, the medians of what lies left and right of it, and so on; build it by `recursive`.

    A node of this binary tree is the points in [left, right), between two answers released before (or the ends of the domain);
    its slice is continued by `left` and `right`, and its answer is cut to them, so answers come out in order. One inserted point
    lies in one node of a level, and only that node's slice changes, by one replacement: a level costs one run at distance 2.

    Ties would spoil it: when many points equal the median, all of them go right, and the left node's median is no quarter of the
    whole. So with b = solver.bits - bits > 0 each point x becomes 2^b x + U, its own U uniform on 0, ..., 2^b - 1; the answer is divided by
    2^b again, which keeps its ranks, and privacy too, since each point's U is its own.
    """

    solver: Any
    bits: Int[Array, ""]
    m: Int[Array, ""]
    limbs: int = static()
    levels: int = static()
    capacity: int = static()

    @property
    def fractions(self) -> UInt32[np.ndarray, "quantiles"]:
        """F for each fraction F 2^-32: the multiples of 2^-levels."""
        return (np.arange(1, 1 << self.levels, dtype=np.uint32) << np.uint32(32 - self.levels)).astype(np.uint32)

    def __call__(self, key: Array, points: Any) -> Outcome:
        """One release; as for `Direct`, but all quantiles are in order whatever the status."""
        return _run_recursive(
            self, key, fitted(Points.of(points), Points, bits=self.bits, limbs=(self.limbs,), name="points")
        )

    def slice_guarantee(self) -> Guarantee:
        """One level: the solver's promise at distance 2, under ADD_OR_REMOVE_ONE."""
        return self.solver.guarantee().group(2)

    def guarantee(self, *, delta: float | None = None) -> Guarantee:
        """All levels together, under ADD_OR_REMOVE_ONE: basic composition, or with `delta` the optimal one at this total delta."""
        return _composed({self.slice_guarantee(): self.levels}, delta)

    def rank_error(self) -> float:
        """How far from f n the rank of an answer may be if every run finds an interior point and no points are equal.

        E_L, where E_l = m + 1/2 + (E_(l-1) + E_(l-2)) / 2 and E_0 = E_(-1) = 0: a node of level l lies between an answer of level
        l - 1 and an earlier one, or an end of the domain, whose rank has no error; its middle is off by their mean error, its
        answer by m more. For large l that is (2/3) l (m + 1/2). Equal points add their number less one on each level.
        """
        before, error = 0.0, 0.0
        for _ in range(self.levels):
            before, error = error, int(self.m) + 0.5 + (before + error) / 2
        return error

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Different points with which all ranks are within alpha n of f n, with probability 1 - beta: ceil(rank_error / alpha).

        Raises:
          ValueError: 2m is below what the solver needs to fail with probability at most beta / (2^levels - 1) on each slice.
        """
        alpha = float(arguments.fraction("alpha", alpha))
        _require(self.solver, int(self.m), float(arguments.fraction("beta", beta)) / ((1 << self.levels) - 1))
        return math.ceil(self.rank_error() / alpha)

    def _extra_bits(self) -> Int[Array, ""]:
        """b, how many bits break ties."""
        return jnp.asarray(self.solver.bits, jnp.int32) - jnp.asarray(self.bits, jnp.int32)

    def _tie_broken(self, key: Array, points: Points) -> Points:
        """2^b x + U, sorted again; rows past the points stay at the greatest number."""
        row = jnp.arange(points.rows, dtype=jnp.int32)
        words = random.bits(key, points.rows)  # more rows begin with the same words
        limbs, b = self.solver.limbs, jnp.broadcast_to(self._extra_bits(), row.shape)
        x = wide.add(wide.shift_left(wide.resize(points.x, limbs), b), wide.scaled(words, b - 32, limbs))
        x = wide.select(row < points.n_valid, x, ~jnp.zeros_like(x))
        # Only equal points can have changed places.
        return Points(x=ordered.sort_nearly(x), n_valid=points.n_valid, ordered=True)


@jax.jit
def _run_recursive(quantiles: Recursive, key: Array, points: Points) -> Outcome:
    fits, points = points.in_domain(quantiles.bits), points.in_order(quantiles.limbs)
    key_ties, key_runs = jax.random.split(key)
    points = quantiles._tie_broken(key_ties, points)
    size, m = 1 << quantiles.levels, jnp.asarray(quantiles.m, jnp.int32)
    bottom, top = _ends(quantiles.solver.bits, quantiles.solver.limbs)

    def halve(answers: Array, node: tuple[Array, Array]) -> tuple[Array, Array]:
        """One node: its place among the answers, and how far its ends are."""
        place, reach = node
        left, right = answers[place - reach], answers[place + reach]
        first = jnp.minimum(wide.search(points.x, left), points.n_valid)
        stop = jnp.minimum(wide.search(points.x, right), points.n_valid)
        stop = jnp.where(place + reach == size, points.n_valid, stop)
        run = Run(x=points.x, first=first, stop=stop, low=left, high=right)
        window = run.window(first + (stop - first + 1) // 2 - m, 2 * m, quantiles.capacity)
        outcome = quantiles.solver(jax.random.fold_in(key_runs, place), window)
        answer = wide.minimum(wide.maximum(outcome.hypothesis, left), right)
        return answers.at[place].set(answer), outcome.status == Status.OK

    answers = jnp.broadcast_to(bottom, (size + 1, bottom.size)).at[size].set(top)
    places, reaches = _breadth_first(quantiles.levels)
    answers, ok = jax.lax.scan(halve, answers, (places, reaches))
    quotients = wide.shift_right(answers[1:-1], jnp.broadcast_to(quantiles._extra_bits(), (size - 1,)))
    ok = jnp.zeros_like(ok).at[places - 1].set(ok)
    return Outcome(hypothesis=wide.resize(quotients, quantiles.limbs), status=_status(ok, fits), info={"ok": ok})


def _breadth_first(levels: int) -> tuple[Int[Array, "nodes"], Int[Array, "nodes"]]:
    """(place among the answers, distance to the ends) of every node, the median first."""
    reaches = [1 << (levels - 1 - level) for level in range(levels) for _ in range(1 << level)]
    places = [(2 * i + 1) << (levels - 1 - level) for level in range(levels) for i in range(1 << level)]
    return jnp.asarray(places, jnp.int32), jnp.asarray(reaches, jnp.int32)


def recursive(*, solver: Any, bits: int, levels: int, m: int) -> Recursive:
    """All multiples of 2^-levels, in 2^levels - 1 runs of which only `levels` count for privacy; see `Recursive`.

    Args:
      solver: of `dpjax.optimizers.interior_point`, on `bits` bits or more: up to 32 extra ones break ties.
      bits: the points are in {0, ..., 2^bits - 1}.
      levels: 1 (the median) to 16.
      m: half the points of a slice.

    Formal guarantees: `levels` runs of the solver at distance 2, under ADD_OR_REMOVE_ONE; see `Recursive.guarantee`. Not promised:
    floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> eighths = quantiles.recursive(solver=interior_point.exponential(bits=24, epsilon=1.0), bits=8, levels=3, m=40)
    >>> eighths.guarantee().epsilon, eighths.rank_error()
    (6.0, 91.125)
    >>> points = Points.create(wide.from_ints([i // 20 for i in range(4000)], 8))
    >>> [abs(z - 25 * i) <= 5 for i, z in enumerate(wide.to_ints(eighths(jax.random.key(0), points).hypothesis), 1)] == [True] * 7
    True
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=int(solver.bits))
    if int(solver.bits) - bits > 32:
        raise ValueError(f"bits must be at least solver.bits - 32 = {int(solver.bits) - 32}, got {bits}")
    levels = arguments.integer("levels", levels, at_least=1, at_most=MOST_LEVELS)
    half, capacity = _half_width(m)
    leaves: Any = {"bits": np.int32(bits), "m": half}
    return Recursive(solver=solver, limbs=wide.limbs_for(bits), levels=levels, capacity=capacity, **leaves)
