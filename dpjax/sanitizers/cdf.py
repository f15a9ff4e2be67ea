"""All threshold queries at once: the distribution function of a dataset, to within alpha everywhere (CLNSS §1.4, after Bun et al. 2015).

Private quantiles z_1 <= ... <= z_q at the fractions f_1 < ... < f_q make a step function: on [z_i, z_(i+1)) it is (f_i + f_(i+1)) / 2
(f_0 = 0, f_(q+1) = 1). If the rank of every z_i is within t of f_i n, its Kolmogorov distance to the sample, max over x of
|F(x) - #{<= x} / n|, is at most (widest gap between fractions) / 2 + t / n: for z_i <= x < z_(i+1) at least f_i n - t points are
<= z_i, hence <= x, and at most f_(i+1) n + t are < z_(i+1). So q = 1/alpha - 1 quantiles (gaps of alpha, half of which is lost) leave
t = alpha n / 2 to the solver.

| quantiles | runs that count | a run costs, for an (e, d)-private solver | error in ranks |
|---|---|---|---|
| `quantiles.direct` | q | (2e, (1 + exp(e)) d) | m |
| `quantiles.recursive` | log2(q + 1) | (2e, (1 + exp(e)) d) | m, growing to (2/3) m log2(q + 1) at worst |
| `sliced` | any number, by Reorder-Slice-Compute | e, see `accounting.slicing` | size / 2, and how far the noise in the sizes drifts |

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> from dpjax.sanitizers import cdf
    >>> points = Points.create(wide.from_ints([i * i // 4096 for i in range(8000)], 16))
    >>> solver = interior_point.exponential(bits=24, epsilon=0.1)
    >>> mechanism = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, levels=3, m=350))
    >>> mechanism.guarantee().epsilon <= 0.6000001
    True
    >>> released = mechanism(jax.random.key(0), points).hypothesis
    >>> float(released.distance(points)) < 1 / 16 + 800 / 8000
    True
    >>> released.evaluate(wide.from_ints([0, 2**16 - 1], 16)).tolist()
    [0.0625, 0.9375]
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, optimal, slicing
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import wide
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric, one_sided_geometric
from dpjax.optimizers.quantiles import Run, fold, nearest_rank

METHODS = ("slicing", "composition")
TAIL = 64  # the noise of a slice's size is cut off where it has probability exp(-64)


# -------------------------------------------------------------------------------------------------- what is released


@frozen
class StepFunction:
    """A distribution function that is constant between its points.

    Attributes:
      points: z_1 <= ... <= z_q.
      heights: its value below z_1, on [z_1, z_2), ..., from z_q on; increasing, in [0, 1].
    """

    points: UInt32[Array, "q limbs"]
    heights: Float[Array, "pieces"]

    def support(self) -> tuple[UInt32[Array, "q limbs"], Bool[Array, "q"]]:
        """The points of a sanitized database, and which of them count: all, with equal weights for even fractions."""
        return self.points, jnp.ones(self.points.shape[0], bool)

    def evaluate(self, x: UInt32[Array, "n limbs"]) -> Float[Array, "n"]:
        """Its values at points x: the share of the data estimated to be <= x."""
        return self.heights[jax.vmap(lambda one: wide.search(self.points, one, side="right"))(x)]

    def distance(self, points: Any) -> Float[Array, ""]:
        """Kolmogorov distance to the empirical distribution of `points`, exactly; NaN for no points.

        Not private: it looks at the data.
        """
        return _distance(self, Points.of(points))

    def distance_to(self, below: Callable[[UInt32[Array, "limbs"]], Float[Array, ""]]) -> Float[Array, ""]:
        """Kolmogorov distance to a known distribution D, exactly.

        Both functions increase and this one is constant on [z_i, z_(i+1) - 1], so the largest difference is at one of these ends.

        Args:
          below: maps a threshold j to D[X < j]; gets j with one limb more than the points, and 2^(32 limbs) for the end of the domain.
        """
        limbs = self.points.shape[1] + 1
        one, zero = wide.from_uint32(jnp.uint32(1), limbs), jnp.zeros((1, limbs), jnp.uint32)
        starts = jnp.concatenate([zero, wide.resize(self.points, limbs)])
        ends = jnp.concatenate([starts[1:], zero.at[0, 0].set(np.uint32(1))])
        first, last = jax.vmap(below)(wide.add(starts, one[None])), jax.vmap(below)(ends)
        error = jnp.maximum(jnp.abs(self.heights - first), jnp.abs(self.heights - last))
        return jnp.max(jnp.where(wide.equal(starts, ends), 0.0, error))


@jax.jit
def _distance(function: StepFunction, points: Points) -> Float[Array, ""]:
    """`distance_to` the empirical distribution."""
    points = points.in_order(points.x.shape[1])
    n = points.n_valid

    def share_below(threshold: Array) -> Array:
        # Thresholds have one limb more; rows past the data are below 2^(32 limbs) only, where the count is cut off.
        x = wide.resize(points.x, threshold.shape[0])
        return jnp.minimum(wide.search(x, threshold), n).astype(float) / n.astype(float)

    return function.distance_to(share_below)


def _heights(fractions: UInt32[Any, "q"]) -> Float[Array, "pieces"]:
    """Midpoints of 0, f_1, ..., f_q, 1."""
    f = jnp.concatenate([jnp.zeros(1), jnp.asarray(fractions).astype(float) * 2.0**-32, jnp.ones(1)])
    return (f[1:] + f[:-1]) / 2


def widest_gap(fractions: Any) -> float:
    """The largest difference between neighbours among 0, f_1, ..., f_q, 1.

    >>> widest_gap(np.uint32([2**30, 2**31]))
    0.5
    """
    return int(max(np.diff([0, *(int(f) for f in np.asarray(fractions)), 2**32]))) / 2**32


# ------------------------------------------------------------------------------------------ from private quantiles


@frozen
class Release:
    """The distribution function through private quantiles; build it by `release`."""

    quantiles: Any

    def __call__(self, key: Array, points: Any) -> Outcome:
        """One release.

        Returns:
          The outcome of the quantiles (`status`, `info`), its `hypothesis` a `StepFunction`.

        Raises:
          TypeError, ValueError: points that do not fit the domain (as far as they are not traced).
        """
        outcome = self.quantiles(key, points)
        function = StepFunction(points=outcome.hypothesis, heights=_heights(self.quantiles.fractions))
        return Outcome(hypothesis=function, status=outcome.status, info=outcome.info)

    def guarantee(self, **choices: Any) -> Guarantee:
        """That of the quantiles, with its arguments: the step function is computed from them alone."""
        return self.quantiles.guarantee(**choices)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Points with which the Kolmogorov distance to them is at most alpha, with probability 1 - beta.

        Raises:
          ValueError: alpha is not above half the widest gap; slices too small for beta.
        """
        left = float(arguments.fraction("alpha", alpha)) - widest_gap(self.quantiles.fractions) / 2
        if left <= 0.0:
            raise ValueError(
                f"alpha must be above half the widest gap between fractions, {alpha - left:g}, got {alpha}"
            )
        return self.quantiles.sample_size(alpha=left, beta=beta)


def release(*, quantiles: Any) -> Release:
    """All threshold queries from quantiles: `quantiles.direct`, `quantiles.recursive` or `sliced` here.

    Formal guarantees: those of the quantiles (post-processing).

    Raises:
      TypeError: quantiles is none of these.
    """
    if not (callable(quantiles) and hasattr(quantiles, "fractions")):
        raise TypeError(f"quantiles must be a mechanism of dpjax.optimizers.quantiles, got {type(quantiles).__name__}")
    return Release(quantiles=quantiles)


# ---------------------------------------------------------------------------- quantiles by Reorder-Slice-Compute


@frozen
class Sliced:
    """Evenly spaced quantiles of one pass from the least point to the greatest; build it by `sliced`.

    First a count n' = n + two-sided geometric noise is released. Then, i = 1, ..., q: a gap slice of g_i + Geom points on which nothing
    is computed, and a slice of `size` + Geom points on which the solver runs, Geom the one-sided geometric noise of
    Reorder-Slice-Compute (CLNSS, Theorem 2.1; the order is always the increasing one). g_i is what makes the middle of slice i fall
    on f_i n' on average over the noise, or 0 if that is negative: a function of n' alone.

    The price does not depend on q, and a slice that differs by one point costs e instead of 2e; what the noise in 2q sizes adds up to
    is paid in rank error, of the order sqrt(2q) / slice_epsilon.

    Attributes:
      solver: of `dpjax.optimizers.interior_point`.
      size: least points of a computed slice.
      slice_epsilon, count_epsilon: rates of the noise of sizes and of n'.
      count: number q of quantiles (static).
      capacity: rows of a slice (static).
    """

    solver: Any
    size: Int[Array, ""]
    slice_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    count: int = static()
    capacity: int = static()

    @property
    def fractions(self) -> UInt32[np.ndarray, "q"]:
        """round(2^32 i / (q + 1))."""
        return np.asarray([round(2**32 * i / (self.count + 1)) for i in range(1, self.count + 1)], np.uint32)

    def __call__(self, key: Array, points: Any) -> Outcome:
        """One release; arguments and outcome as for `quantiles.Direct`."""
        return _run_sliced(self, key, self.solver.fit(points))

    def plan(self, n: Int[Array, ""]) -> Int[Array, "q"]:
        """The gaps g_1, ..., g_q for a released count n."""
        mean = 1 / jnp.expm1(jnp.asarray(self.slice_epsilon, float))
        half = (jnp.asarray(self.size, float) + mean) / 2

        def step(end: Array, target: Array) -> tuple[Array, Array]:
            gap = jnp.maximum(jnp.floor(target.astype(float) - half - mean - end + 0.5), 0.0)
            return end + gap + mean + 2 * half, gap.astype(jnp.int32)

        return jax.lax.scan(step, jnp.zeros(()), nearest_rank(self.fractions, n))[1]

    def guarantee(self, *, delta: float, method: str = "slicing") -> Guarantee:
        """All of it at a total delta, under ADD_OR_REMOVE_ONE.

        slicing: 2q slices, one compute each, and the count as an extra, by the numerical accountant (`accounting.slicing`).
        composition: for given sizes a slice changes by one replacement at most, so q runs at distance 2 and the count, by optimal
        composition; the noise in the sizes is then not needed.

        Raises:
          ValueError: unknown method, delta outside (0, 1).
        """
        arguments.choice("method", method, METHODS)
        count = Guarantee(float(self.count_epsilon), 0.0, ADD_OR_REMOVE_ONE)
        each = self.solver.guarantee()
        if method == "composition":
            parts = {each.group(2): self.count}
            return optimal({**parts, count: 1 + parts.get(count, 0)}, delta=delta)
        run = slicing.Run(float(self.slice_epsilon), each, slices=2 * self.count, extra=(count,))
        return run.guarantee(delta=delta)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Points with which all ranks are within alpha n of f n, with probability 1 - beta.

        beta/3 for the q runs of the solver, beta/3 for the 2q ends of slices (the sum of j sizes' noises is negative binomial), beta/3 for
        the count (P[|noise| > c] = 2 r^(c+1) / (1 + r), r = exp(-count_epsilon)). Rounding adds less than 2: to the wanted rank, and to
        each g_i, for which the next one makes up.

        Raises:
          ValueError: `size` is too small for the solver.
        """
        from scipy import stats

        alpha, share = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta)) / 3
        needed = self.solver.sample_size(beta=share / self.count)
        if int(self.size) < needed:
            raise ValueError(
                f"size must be >= {needed} for the solver to fail with probability <= {share / self.count:g}"
            )
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


@jax.jit
def _run_sliced(sliced: Sliced, key: Array, points: Points) -> Outcome:
    fits, points = points.in_domain(sliced.solver.bits), points.in_order(sliced.solver.limbs)
    key_count, key_sizes, key_runs = jax.random.split(key, 3)
    q, n = sliced.count, points.n_valid
    counted = jnp.maximum(geometric(key_count, n, epsilon=sliced.count_epsilon), 0)
    noise = one_sided_geometric(key_sizes, (q, 2), epsilon=sliced.slice_epsilon)
    size = jnp.asarray(sliced.size, jnp.int32)
    gaps = jnp.minimum(sliced.plan(counted) + noise[:, 0], n)  # a slice has no more than all points
    lengths = jnp.minimum(size + noise[:, 1], sliced.capacity)
    ends = _running_sum(jnp.stack([gaps, lengths], axis=1).reshape(2 * q), n).reshape(q, 2)
    nothing = jnp.zeros_like(points.x[0])
    run = Run(x=points.x, first=jnp.int32(0), stop=n, low=nothing, high=nothing)
    slices = jax.vmap(lambda start, stop: run.window(start, stop - start, sliced.capacity))(ends[:, 0], ends[:, 1])
    return fold(jax.vmap(sliced.solver)(jax.random.split(key_runs, q), slices), fits)


def _running_sum(sizes: Int[Array, "k"], most: Int[Array, ""]) -> Int[Array, "k"]:
    """Partial sums cut off at `most`, which cannot overflow."""

    def step(total: Array, size: Array) -> tuple[Array, Array]:
        total = total + jnp.minimum(size, most - total)
        return total, total

    return jax.lax.scan(step, jnp.zeros_like(most), sizes)[1]


def sliced(*, solver: Any, count: int, size: int, slice_epsilon: float, count_epsilon: float) -> Sliced:
    """`count` evenly spaced quantiles by Reorder-Slice-Compute; see `Sliced`.

    Args:
      solver: of `dpjax.optimizers.interior_point`, on the domain of the points.
      count: number q >= 1 of quantiles, at the fractions i / (q + 1).
      size: least points of a computed slice.
      slice_epsilon: rate of the noise in the sizes, at least 2^-20.
      count_epsilon: rate of the noise in the count.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE by `Sliced.guarantee`. Not promised: the size noise beyond 64 /
    slice_epsilon, of probability exp(-64), is cut off; floating-point side channels; a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    count = arguments.integer("count", count, at_least=1, at_most=2**16)
    size = arguments.integer("size", size, at_least=1, at_most=2**30)
    slice_epsilon = arguments.real("slice_epsilon", slice_epsilon, at_least=2.0**-20, below=700.0)
    leaves: Any = {
        "size": np.int32(size),
        "slice_epsilon": slice_epsilon,
        "count_epsilon": arguments.real("count_epsilon", count_epsilon, at_least=SMALLEST_RATE, below=700.0),
    }
    return Sliced(solver=solver, count=count, capacity=bucket(size + int(np.ceil(TAIL / slice_epsilon))), **leaves)
