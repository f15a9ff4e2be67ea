"""The median, the medians of the points on both sides of it, and so on: all multiples of 2^-L for the price of L runs.

Its plain twin is `dpjax.verify.plain.quantiles.recursive_law`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from dpjax.accounting import Guarantee
from dpjax.accounting.adaptive import ADAPTIVE
from dpjax.core import arguments, bisection, random
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.domains import order_statistics, wide
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import Quantiles, Stretch

MOST_LEVELS = 16
FOR_TIES, LESS_FOR_TIES = 2.0**-6, 2.0**-40  # shares of beta; the second where slices are no larger than the runs need


@frozen
class RecursiveQuantiles(Quantiles):
    """The median, the medians of the points on both sides of it, and so on; build it by `recursive`.

    A node of this binary tree is the points in [left, right), between two answers released before (or the ends of the domain);
    its slice is continued by `left` and `right`, and its answer is clipped to them, so answers come out in order. One inserted point lies
    in one node of a level, and only that node's slice changes, by one replacement: a level costs one run at distance 2.

    Ties would spoil this: when many points equal the median, all of them go right, and the left node's median is not at a quarter of the
    whole. So with b = solver.bits - bits > 0 each point x becomes 2^b x + U, where its own U is uniform on 0, ..., 2^b - 1; the answer is
    divided by 2^b again. This keeps its ranks, and also privacy, since each point's U is its own. Some c + 1 of n points share their b
    random bits with probability at most C(n, c + 1) 2^(-b c).

    Attributes:
      solver: a solver of `dpjax.optimizers.interior_point`.
      bits: bits of the domain of the points.
      m: half the points of a slice.
      delta: the total delta at which "optimal" and "adaptive" compose.
      limbs: limbs of a point (static).
      depth: L (static).
      capacity: rows of a slice (static).
      accountant: "basic", "optimal" or "adaptive" (static).
    """

    solver: Any
    bits: Int[Array, ""]
    m: Int[Array, ""]
    delta: Float[Array, ""]
    limbs: int = static()
    depth: int = static()
    capacity: int = static()
    accountant: str = static()

    @property
    def fractions(self) -> UInt32[np.ndarray, "quantiles"]:
        """F for each fraction F 2^-32: the multiples of 2^-depth."""
        return (np.arange(1, 1 << self.depth, dtype=np.uint32) << np.uint32(32 - self.depth)).astype(np.uint32)

    def draw(self, key: Array, points: Points) -> Any:
        key_ties, key_runs = jax.random.split(key)
        points = self._tie_broken(key_ties, points)
        size = 1 << self.depth
        bottom, top = base.ends(self.solver.bits, self.solver.limbs)

        def halve(answers: Array, node: tuple[Array, Array]) -> tuple[Array, Array]:
            """One node: its place among the answers, and how far its ends are."""
            place, reach = node
            left, right = answers[place - reach], answers[place + reach]
            slice_ = self._slice(points, left, right, place + reach == size)
            outcome = self.solver(jax.random.fold_in(key_runs, place), slice_)
            answer = wide.minimum(wide.maximum(outcome.hypothesis, left), right)
            return answers.at[place].set(answer), outcome.status == Status.OK

        answers = jnp.broadcast_to(bottom, (size + 1, bottom.size)).at[size].set(top)
        places, reaches = _breadth_first(self.depth)
        answers, ok = jax.lax.scan(halve, answers, (places, reaches))
        quotients = wide.shift_right(answers[1:-1], jnp.broadcast_to(self._extra_bits(), (size - 1,)))
        ok = jnp.zeros_like(ok).at[places - 1].set(ok)
        return wide.resize(quotients, self.limbs), jnp.all(ok), {"ok": ok}

    def _slice(self, points: Points, left: Array, right: Array, last: Array) -> Points:
        """The 2m points around the median of those in [left, right), or, for the last node of a level, of all from `left` on."""
        first = jnp.minimum(wide.search(points.x, left), points.n_valid)
        stop = jnp.minimum(wide.search(points.x, right), points.n_valid)
        stop = jnp.where(last, points.n_valid, stop)
        stretch = Stretch(x=points.x, first=first, stop=stop, low=left, high=right)
        m = jnp.asarray(self.m, jnp.int32)
        return stretch.window(first + (stop - first + 1) // 2 - m, 2 * m, self.capacity)

    def _tie_broken(self, key: Array, points: Points) -> Points:
        """2^b x + U, sorted again; rows past the points stay at the greatest number."""
        words = random.bits(key, points.rows)  # for more rows, the first words are the same
        limbs, b = self.solver.limbs, jnp.broadcast_to(self._extra_bits(), (points.rows,))
        x = wide.add(wide.shift_left(wide.resize(points.x, limbs), b), wide.scaled(words, b - 32, limbs))
        x = wide.select(points.valid, x, ~jnp.zeros_like(x))
        # Only equal points can have changed places.
        return Points(x=order_statistics.sort_nearly(x), n_valid=points.n_valid, ordered=True)

    def _extra_bits(self) -> Int[Array, ""]:
        """b, how many bits break ties."""
        return jnp.asarray(self.solver.bits, jnp.int32) - jnp.asarray(self.bits, jnp.int32)

    def guarantee(self) -> Guarantee:
        """`depth` runs at distance 2, under ADD_OR_REMOVE_ONE."""
        each = base.at_distance_two(self.solver)
        return base.composed(self.accountant, self.solver, each, self.depth, float(self.delta))

    def rank_error(self, *, shared: int = 1) -> float:
        """How far from f n the rank of an answer may be if every run finds an interior point and at most `shared` points are equal.

        E_L, where E_l = m + c - 1/2 + (E_(l-1) + E_(l-2)) / 2 for c equal points, and E_0 = E_(-1) = 0: a node of level l lies between an
        answer of level l - 1 and an earlier one, or an end of the domain, whose rank has no error; its middle is off by their mean error,
        the rank to which this is rounded by at most 1/2 more, and its answer by m + c - 1 more. For large l, E_l is (2/3) l (m + c - 1/2).
        """
        return rank_error(self.depth, int(self.m), shared)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: `rank_error` over alpha.

        As many points as alpha n allows may share their random bits; for more to do so a part of beta is set aside, `FOR_TIES` or
        `LESS_FOR_TIES` of it. (By this bound a few numbers just above the result may not be enough.) For a median alone ties cost nothing:
        it is not an end of any node.

        Raises:
          ValueError: 2m is below what the solver needs to fail with probability at most beta / (2^depth - 1) on each slice; or points may
            be equal, and too few bits break their ties.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        runs, m = (1 << self.depth) - 1, int(self.m)
        part = FOR_TIES if base.half_slice(self.solver, beta=beta * (1 - FOR_TIES) / runs) <= m else LESS_FOR_TIES
        base.require(self.solver, m, beta * (1 - part) / runs)
        error, bits = self.rank_error(), int(self._extra_bits())
        least = math.ceil(error / alpha)
        if self.depth == 1:
            return least

        def enough(n: int) -> bool:
            shared = 1 + int((alpha * n - error) / (self.rank_error(shared=2) - error))
            return log_shared(n, shared, bits) <= math.log(beta * part)

        try:
            return bisection.least_int(enough, least)
        except ValueError as reason:
            rule = f"larger, for {bits} bits do not break the ties of equal points"
            raise ValueError(
                f"solver.bits must be {rule}, got {int(self.solver.bits)} with bits = {int(self.bits)}"
            ) from reason


def rank_error(depth: int, m: int, shared: int) -> float:
    """`RecursiveQuantiles.rank_error`."""
    before, error = 0.0, 0.0
    for _ in range(depth):
        before, error = error, m + shared - 0.5 + (before + error) / 2
    return error


def log_shared(n: int, shared: int, bits: int) -> float:
    """ln of C(n, shared + 1) 2^(-bits shared), a bound on P[more than `shared` of n points have equal random bits].

    >>> round(math.exp(log_shared(3, 2, 1)), 6)  # the bits of three points are equal in two of eight cases
    0.25
    """
    if shared >= n:
        return -math.inf
    # The logarithms of such large factorials would cancel: n^(c + 1) is more than n! / (n - c - 1)!.
    log_falling = (shared + 1) * math.log(n) if n > 2**40 else math.lgamma(n + 1) - math.lgamma(n - shared)
    log_choices = log_falling - math.lgamma(shared + 2)
    return log_choices - bits * shared * math.log(2.0)


def _breadth_first(depth: int) -> tuple[Int[Array, "nodes"], Int[Array, "nodes"]]:
    """(place among the answers, distance to the ends) of every node, the median first."""
    reaches = [1 << (depth - 1 - level) for level in range(depth) for _ in range(1 << level)]
    places = [(2 * i + 1) << (depth - 1 - level) for level in range(depth) for i in range(1 << level)]
    return jnp.asarray(places, jnp.int32), jnp.asarray(reaches, jnp.int32)


def recursive(
    *,
    solver: Any,
    bits: int,
    depth: int,
    m: int,
    beta: float = 0.1,
    accountant: str = "basic",
    delta: float | None = None,
    allow_unproved: bool = False,
) -> RecursiveQuantiles:
    """All multiples of 2^-depth, in 2^depth - 1 runs of which only `depth` count for privacy; see `RecursiveQuantiles`.

    Args:
      solver: a solver of `dpjax.optimizers.interior_point`, on `bits` bits or more: up to 32 extra bits break ties.
      bits: the points are in {0, ..., 2^bits - 1}.
      depth: L, 1 (the median) to 16.
      m: half the points of a slice.
      beta: the failure probability of all runs together: 2m points must suffice for the solver at beta / (2^depth - 1).
      accountant: how the levels are composed, "basic" or "optimal"; or "adaptive", for solvers whose losses lie in an interval.
      delta: the total delta, for all but "basic".
      allow_unproved: accept any m. The guarantee holds; no accuracy is proved.

    Formal guarantees: `depth` runs of the solver at distance 2, under ADD_OR_REMOVE_ONE; see `RecursiveQuantiles.guarantee`. Not promised:
    protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, slices too small for the solver.

    >>> import jax
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> eighths = quantiles.recursive(solver=interior_point.exponential(bits=24, epsilon=1.0), bits=8, depth=3, m=40)
    >>> eighths.guarantee().epsilon, eighths.rank_error()
    (6.0, 91.125)
    >>> points = Points.create(wide.from_ints([i // 20 for i in range(4000)], 8))
    >>> [abs(z - 25 * i) <= 5 for i, z in enumerate(wide.to_ints(eighths(jax.random.key(0), points).hypothesis), 1)] == [True] * 7
    True
    """
    depth = arguments.integer("depth", depth, at_least=1, at_most=MOST_LEVELS)
    width = base.half_width(solver, m, runs=(1 << depth) - 1, beta=beta, allow_unproved=allow_unproved)
    bits = arguments.integer("bits", bits, at_least=1, at_most=int(solver.bits))
    if int(solver.bits) - bits > 32:
        raise ValueError(f"bits must be at least solver.bits - 32 = {int(solver.bits) - 32}, got {bits}")
    leaves: Any = {"bits": np.int32(bits), **width, **base.composition(accountant, delta, solver, by_ranges=ADAPTIVE)}
    return RecursiveQuantiles(solver=solver, limbs=wide.limbs_for(bits), depth=depth, **leaves)
