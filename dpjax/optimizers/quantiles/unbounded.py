"""Quantiles at any fractions by AboveThreshold along a grid that grows geometrically (Durfee 2023, arXiv 2305.01177).

The grid is public: `origin` and, on both sides of it, the points whose distances grow by a factor `base`, each at least one further away
than the one before. Upwards, for a fraction f, the questions are g(y) = #{x <= y} - f n for y from the lowest grid point on, and the
answer is the first y at which g(y) + Lap(2/a) reaches a threshold Lap(1/a) (the greatest grid point if none does). Only the number of
questions depends on the size of the domain, and it does so logarithmically: the bounds may be absurdly wide. Downwards it is the same for
the points and the grid reversed, with 1 - f in place of f.

**Privacy** (ADD_OR_REMOVE_ONE). Insert a point p: g falls by f below p and rises by 1 - f from p on. Take an answer y.

- y below p: all questions up to y fell by f. A threshold lower by f gives the same answer: a loss of at most f a, and as much in the other
  direction.
- y at p or above. From the data without p to those with it: a threshold higher by 1 - f keeps all questions before y below it, and y, which
  rose by as much, above: (1 - f) a. From the data with p to those without it: a threshold higher by f keeps those before y below it, and y,
  which is lower by 1 - f, stays above it if its noise is higher by 1: f a + a/2.

So a run loses at most max{f, 1 - f} a from the data without p to those with it, and (f + 1/2) a the other way round. Runs for several
fractions lose the sums of these, and

    a = epsilon / max{sum max(f_i, 1 - f_i), sum (f_i + 1/2)}

makes all of them (epsilon, 0)-private, f_i being 1 - f for runs downwards. Run by run with sensitivity max{f, 1 - f}, AboveThreshold's own
theorem requires epsilon = 2 a max{f, 1 - f} each: for quartiles upwards 4 a in all, in place of 3 a.

**Utility.** With K questions and probability 1 - beta all q (K + 1) noises are below (2/a) ln(q (K + 1)/beta) in size, the threshold's
below half of that: then g at the answer is at least -B, and at the question before at most B, B = (3/a) ln(q (K + 1)/beta). An answer has
at least f n - B points up to it, and at most f n + B up to the grid point before. The grid cannot distinguish the points in between, so no
bound on the error holds for all data.

The plain twin is `dpjax.verify.plain.quantiles.unbounded_laws`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.sample import countable, refuse_uncountable
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.mechanisms import above_threshold
from dpjax.optimizers.quantiles.base import ranks
from dpjax.optimizers.quantiles.independent import IndependentQuantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions

LARGEST_GRID = 2**16
DIRECTIONS = ("up", "down", "nearer")


@frozen
class UnboundedQuantiles(IndependentQuantiles):
    """Quantiles at any fractions by AboveThreshold along a geometric grid; build it by `unbounded`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      downward: which of them are searched from above.
      grid: the points that can be answered, increasing.
      epsilon: the total epsilon.
      limbs: limbs of a point (static).
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    downward: Bool[Array, "quantiles"]
    grid: UInt32[Array, "grid limbs"]
    epsilon: Float[Array, ""]
    limbs: int = static()

    def fit(self, data: Any) -> Points:
        """Also refuses more points than floats count: queries would move by more than 1."""
        points = super().fit(data)
        refuse_uncountable("the number of points", points.n_valid)
        return points

    def fits(self, points: Points) -> Bool[Array, ""]:
        return super().fits(points) & countable(points)

    def rate(self) -> Float[Array, ""]:
        """a, the rate of the threshold's noise."""
        f = jnp.asarray(self.fractions).astype(float) * 2.0**-32
        f = jnp.where(self.downward, 1 - f, f)
        return jnp.asarray(self.epsilon, float) / jnp.maximum(jnp.sum(jnp.maximum(f, 1 - f)), jnp.sum(f + 0.5))

    def _noises(self) -> dict[str, Any]:
        """Scales 2/epsilon of the threshold and 4/epsilon of the questions."""
        return {"epsilon": 2 * self.rate()}

    def draw(self, key: Array, points: Points) -> Any:
        questions = self.questions(points)
        keys = jax.random.split(key, self.fractions.shape[0])
        found = jax.vmap(lambda key, asked: above_threshold.above_threshold(key, asked, 0.0, **self._noises()))(
            keys, questions
        )
        last = self.grid.shape[0] - 1
        index = jnp.where(found.ok, found.index, last)
        index = jnp.where(self.downward, last - index, index)
        return jnp.asarray(self.grid)[jnp.sort(index)], jnp.bool_(True), {}

    def questions(self, points: Points) -> Float[Array, "quantiles grid"]:
        """g in the order in which each run asks; f n is kept as an integer and the rest, so that small values lose no digits."""
        n = points.n_valid
        up_to, below = (
            jnp.minimum(jax.vmap(lambda y, side=side: wide.search(points.x, y, side=side))(jnp.asarray(self.grid)), n)
            for side in ("right", "left")
        )

        def one(fraction: Array, down: Array) -> Array:
            whole, digits = ranks(fraction, n)
            floor, rest = whole.astype(jnp.int32), digits.astype(float) * 2.0**-32
            # Downwards #{x >= y} - (1 - f) n = f n - #{x < y}.
            rising = (up_to - floor).astype(float) - rest
            falling = (floor - below).astype(float) + rest
            return jnp.where(down, falling[::-1], rising)

        return jax.vmap(one)(jnp.asarray(self.fractions), jnp.asarray(self.downward))

    def _on_grid(self, points: Points) -> Float[Array, "quantiles grid"]:
        """P[each grid point] for each run."""

        def one(asked: Array, down: Array) -> Array:
            logs = above_threshold.log_pmf(asked, 0.0, **self._noises())
            found = jnp.exp(logs[:-1]).at[-1].add(jnp.exp(logs[-1]))
            return jnp.where(down, found[::-1], found)

        return jax.vmap(one)(self.questions(points), jnp.asarray(self.downward))

    def each(self, points: Points, intervals: Interval) -> Float[Array, "quantiles 2"]:
        def one(law: Array, interval: Interval) -> Array:
            inside = interval.holds(jnp.asarray(self.grid))
            return jnp.stack([jnp.sum(jnp.where(inside, law, 0.0)), jnp.sum(jnp.where(inside, 0.0, law))])

        return jax.vmap(one)(self._on_grid(points), intervals)

    def pmfs(self, points: Points, size: int) -> Float[Array, "quantiles outcomes"]:
        place = jnp.asarray(self.grid)[:, -1].astype(jnp.int32)
        nothing = jnp.zeros((self.fractions.shape[0], size + 1))
        return nothing.at[:, place].add(self._on_grid(points))

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE: all quantiles together."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Unknown: many points may lie between two grid points.

        Raises:
          ValueError: always.
        """
        arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        raise ValueError("alpha: no number of points suffices for all data, as the grid tells no nearer points apart")


def geometric_grid(*, bits: int, origin: int, base: float) -> list[int]:
    """`origin` and points around it in {0, ..., 2^bits - 1}: v -> max(v + 1, floor(base v)) for the distance v; the ends belong to it.

    >>> geometric_grid(bits=6, origin=0, base=2.0), geometric_grid(bits=4, origin=7, base=3.0)
    ([0, 1, 2, 4, 8, 16, 32, 63], [0, 4, 6, 7, 8, 10, 15])

    Raises:
      ValueError: more than 2^16 points.
    """
    top, ratio = (1 << bits) - 1, Fraction(base)
    found, distance = {0, origin, top}, 1
    while distance <= max(origin, top - origin):
        found |= {y for y in (origin - distance, origin + distance) if 0 <= y <= top}
        if len(found) > LARGEST_GRID:
            raise ValueError(f"base must be so large that the grid has at most {LARGEST_GRID} points, got {base:g}")
        distance = max(distance + 1, int(ratio * distance))
    return sorted(found)


def unbounded(
    *,
    bits: int,
    fractions: Sequence[float],
    epsilon: Any,
    base: float = 1.01,
    origin: int = 0,
    direction: str = "nearer",
) -> UnboundedQuantiles:
    """Quantiles at `fractions` of the points by AboveThreshold along a geometric grid; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together. Not promised: any accuracy between two points of the
    grid; protection from floating-point side channels; a cryptographic generator. More than 2^24 points (2^53 with x64) are refused.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite; may be traced.
      base: the factor by which distances from `origin` grow, > 1; the grid must have at most 2^16 points. The time for the exact law grows
        with the square of their number.
      origin: a public point, around which the grid is finest.
      direction: where runs start: "up" from the lowest point (Durfee's), "down" from the greatest, "nearer" upwards for fractions up to 1/2
        and downwards above, which costs less budget, but asks first where extreme fractions have nearly nothing to gain.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase, a grid that is too fine.

    >>> quartiles = unbounded(bits=64, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    >>> points = Points.create(wide.from_ints(range(1000, 5000), 64))
    >>> [abs(z / 1000 - k) < 0.1 for z, k in zip(wide.to_ints(quartiles(jax.random.key(0), points).hypothesis), (2, 3, 4))]
    [True, True, True]
    """
    rounded = rounded_fractions(fractions)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    origin = arguments.integer("origin", origin, at_least=0, at_most=(1 << bits) - 1)
    grid = geometric_grid(bits=bits, origin=origin, base=arguments.known("base", base, above=1.0, at_most=2.0**32))
    arguments.choice("direction", direction, DIRECTIONS)
    downward = [direction == "down" or (direction == "nearer" and each > 2**31) for each in rounded]
    limbs = wide.limbs_for(bits)
    leaves: Any = {
        "bits": np.int32(bits),
        "fractions": np.asarray(rounded, np.uint32),
        "downward": np.asarray(downward, bool),
        "grid": np.array([[y >> 32 * i & (2**32 - 1) for i in reversed(range(limbs))] for y in grid], np.uint32),
    }
    return UnboundedQuantiles(**leaves, epsilon=arguments.epsilon(epsilon), limbs=limbs)
