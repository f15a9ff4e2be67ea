"""Evenly spaced quantiles in one pass, by Reorder-Slice-Compute (CLNSS Algorithm 1).

Its plain twin is `dpjax.verify.plain.quantiles.sliced_law`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, optimal
from dpjax.accounting import slicing as accountants
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers import slicing
from dpjax.optimizers.quantiles import base
from dpjax.optimizers.quantiles.base import OnSlices, Quantiles, Stretch

ACCOUNTANTS = ("slicing", "optimal")
TAIL = 64  # the noise of a slice's size is cut off where it has probability exp(-64)


@frozen
class SlicedQuantiles(OnSlices, Quantiles):  # type: ignore[override]
    """Evenly spaced quantiles in one pass from the least point to the greatest; build it by `sliced`.

    First a count n' = n + two-sided geometric noise is released. Then, for i = 1, ..., q, come a gap slice of g_i + Geom points on which
    nothing is computed, and a slice of `size` + Geom points on which the solver runs. Geom is the one-sided geometric noise of
    Reorder-Slice-Compute (CLNSS, Theorem 2.1; the order is always the increasing one). g_i is chosen so that the middle of slice i falls on
    f_i n' on average over the noise, or is 0 if that would be negative: it is a function of n' alone.

    The privacy cost does not depend on q, and a slice that differs by one point costs e instead of 2e. In return the noises of 2q sizes add
    up to a rank error of the order sqrt(2q) / slice_epsilon.

    Attributes:
      solver: a solver of `dpjax.optimizers.interior_point`.
      size: the least number of points of a computed slice.
      slice_epsilon, count_epsilon: rates of the noise of sizes and of n'.
      delta: the total delta at which the guarantee is computed.
      count: number q of quantiles (static).
      capacity: rows of a slice (static).
      accountant: "slicing" or "optimal" (static).
    """

    solver: Any
    size: Int[Array, ""]
    slice_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    count: int = static()
    capacity: int = static()
    accountant: str = static()

    @property
    def fractions(self) -> UInt32[np.ndarray, "q"]:
        """round(2^32 i / (q + 1))."""
        return np.asarray([round(2**32 * i / (self.count + 1)) for i in range(1, self.count + 1)], np.uint32)

    def sound(self) -> Bool[Array, ""]:
        rates = jnp.stack([jnp.asarray(rate, float) for rate in (self.slice_epsilon, self.count_epsilon)])
        return super().sound() & jnp.all((rates >= SMALLEST_RATE) & (rates < jnp.inf))

    def draw(self, key: Array, points: Points) -> Any:
        key_count, key_sizes, key_runs = jax.random.split(key, 3)
        q, n = self.count, points.n_valid
        counted = jnp.maximum(geometric(key_count, n, epsilon=self.count_epsilon), 0)
        # A gap has at most all points, and a computed slice at most the capacity.
        most = jnp.stack([n, jnp.int32(self.capacity)])[None]
        noise = slicing.noise(key_sizes, self.slice_epsilon, most=most, shape=(q, 2))
        least = jnp.stack([self.gaps(counted), jnp.full((q,), self.size, jnp.int32)], axis=1)
        sizes = jnp.minimum(least + noise, most)
        ends = slicing.consecutive(sizes.reshape(2 * q), n).reshape(q, 2)
        runs = jax.vmap(self.solver)(jax.random.split(key_runs, q), self._slices(points, ends))
        return base.in_order(runs)

    def gaps(self, n: Int[Array, ""]) -> Int[Array, "q"]:
        """The gaps g_1, ..., g_q for a released count n."""
        mean = 1 / jnp.expm1(jnp.asarray(self.slice_epsilon, float))
        size, place = jnp.asarray(self.size, jnp.int32), jnp.arange(self.count, dtype=jnp.int32)
        # From the least sizes of all that comes before slice i and of its own gap to its middle. Only this is a float: ends of slices,
        # added up in float32, would be off by hundreds of ranks among ten million points.
        beyond = jnp.asarray(self.size, float) / 2 + (2 * place.astype(float) + 1.5) * mean
        beyond = jnp.ceil(jnp.minimum(beyond, 2.0**31 - 128) - 0.5).astype(jnp.int32)

        def step(spent: Array, here: tuple[Array, Array]) -> tuple[Array, Array]:
            target, beyond = here
            gap = jnp.where(target - spent > beyond, target - spent - beyond, 0)
            end = spent + gap  # at most the target, or what was spent before
            return end + jnp.minimum(size, base.MOST_ROWS - end), gap

        return jax.lax.scan(step, jnp.int32(0), (base.nearest_rank(self.fractions, n), beyond))[1]

    def _slices(self, points: Points, ends: Int[Array, "q 2"]) -> Points:
        """The computed slices, from the end of their gap to their own."""
        nothing = jnp.zeros_like(points.x[0])
        stretch = Stretch(x=points.x, first=jnp.int32(0), stop=points.n_valid, low=nothing, high=nothing)
        return jax.vmap(lambda start, stop: stretch.window(start, stop - start, self.capacity))(ends[:, 0], ends[:, 1])

    def guarantee(self) -> Guarantee:
        """The guarantee of the whole at the total delta, under ADD_OR_REMOVE_ONE.

        slicing: 2q slices, one compute each, and the count as an extra, by the numerical accountant (`accounting.slicing`).
        optimal: for given sizes a slice changes by one replacement at most, so q runs at distance 2 and the count, by optimal
        composition; the noise in the sizes is then not needed.
        """
        delta, each = float(self.delta), self.solver.guarantee()
        count = Guarantee(float(self.count_epsilon), 0.0, ADD_OR_REMOVE_ONE)
        if self.accountant == "optimal":
            parts = {each.group(2): self.count}
            return optimal({**parts, count: 1 + parts.get(count, 0)}, delta=delta)
        run = accountants.Run(float(self.slice_epsilon), each, slices=2 * self.count, extra=(count,))
        return run.guarantee(delta=delta)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta.

        beta is split: beta/3 for the q runs of the solver, beta/3 for the 2q ends of slices (the sum of j sizes' noises is negative
        binomial), beta/3 for the count (P[|noise| > c] = 2 r^(c+1) / (1 + r), r = exp(-count_epsilon)). Rounding adds less than 2: it
        applies to the wanted rank, and to each g_i, for which the next one compensates.

        Raises:
          ValueError: `size` is too small for the solver.
        """
        from scipy import stats

        alpha, share = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta) / 3
        _require(self.solver, int(self.size), share / self.count)
        rate, mean = -np.expm1(-float(self.slice_epsilon)), 1 / np.expm1(float(self.slice_epsilon))
        noise = stats.nbinom(np.arange(1, 2 * self.count + 1), rate)
        centre, tail = np.arange(1, 2 * self.count + 1) * mean, share / (4 * self.count)
        drift = max(np.max(noise.isf(tail) - centre), np.max(centre - noise.ppf(tail)))
        miscount = max(0.0, np.log(2 / share) / float(self.count_epsilon))
        half = (int(self.size) + mean) / 2
        ranks = half + drift + miscount + 2
        # Every gap is >= 0, and the last slice ends before the points do.
        roomy = (self.count + 1) * max(int(self.size) + 2 * mean + 2, ranks) + miscount
        return int(np.ceil(max(ranks / alpha, roomy)))


def _require(solver: Any, size: int, beta: float) -> None:
    """ValueError if slices of `size` points are too small for the solver to fail with probability at most beta."""
    needed = solver.sample_size(beta=beta)
    if size < needed:
        raise ValueError(f"size must be >= {needed} for the solver to fail with probability <= {beta:g}, got {size}")


def sliced(
    *,
    solver: Any,
    count: int,
    size: int,
    slice_epsilon: float,
    count_epsilon: float,
    delta: float,
    beta: float = 0.1,
    accountant: str = "slicing",
    allow_unproved: bool = False,
) -> SlicedQuantiles:
    """`count` evenly spaced quantiles by Reorder-Slice-Compute; see `SlicedQuantiles`.

    Args:
      solver: a solver of `dpjax.optimizers.interior_point`, on the domain of the points.
      count: number q >= 1 of quantiles, at the fractions i / (q + 1).
      size: the least number of points of a computed slice.
      slice_epsilon: rate of the noise in the sizes, at least 2^-20.
      count_epsilon: rate of the noise in the count.
      delta: the total delta, in (0, 1), at which the guarantee is computed.
      beta: the failure probability of everything together: `size` must suffice for the solver at beta / (3 q).
      accountant: "slicing" or "optimal"; see `SlicedQuantiles.guarantee`.
      allow_unproved: accept any size. The guarantee holds; no accuracy is proved.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE by `SlicedQuantiles.guarantee`. Not promised: the size noise beyond 64 /
    slice_epsilon, of probability exp(-64), which is cut off; protection from floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, slices too small for the solver.
    """
    base.check_solver(solver)
    count = arguments.integer("count", count, at_least=1, at_most=2**16)
    size = arguments.integer("size", size, at_least=1, at_most=base.MOST_POINTS)
    share = arguments.known_fraction("beta", beta) / (3 * count)
    if not arguments.flag("allow_unproved", allow_unproved):
        _require(solver, size, share)
    slice_epsilon = arguments.known(
        "slice_epsilon", arguments.real("slice_epsilon", slice_epsilon, at_least=2.0**-20, below=700.0)
    )
    leaves: Any = {
        "size": np.int32(size),
        "slice_epsilon": np.float64(slice_epsilon),
        "count_epsilon": arguments.real("count_epsilon", count_epsilon, at_least=SMALLEST_RATE, below=700.0),
        "delta": arguments.delta(delta),
    }
    return SlicedQuantiles(
        solver=solver,
        count=count,
        capacity=bucket(size + int(np.ceil(TAIL / slice_epsilon))),
        accountant=arguments.choice("accountant", accountant, ACCOUNTANTS),
        **leaves,
    )
