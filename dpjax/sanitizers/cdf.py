"""All threshold queries at once: the distribution function of a dataset, to within alpha everywhere (CLNSS §1.4, after Bun et al. 2015).

Private quantiles z_1 <= ... <= z_q at the fractions f_1 < ... < f_q make a step function: on [z_i, z_(i+1)) it is (f_i + f_(i+1)) / 2
(f_0 = 0, f_(q+1) = 1). If the rank of every z_i is within t of f_i n, its Kolmogorov distance to the sample, max over x of
|F(x) - #{<= x} / n|, is at most (widest gap between fractions) / 2 + t / n: for z_i <= x < z_(i+1) at least f_i n - t points are
<= z_i, hence <= x, and at most f_(i+1) n + t are < z_(i+1). So q = 1/alpha - 1 quantiles (gaps of alpha, half of which is lost) leave
t = alpha n / 2 to the solver.

| quantiles | runs that count | cost of a run, for an (e, d)-private solver | error in ranks |
|---|---|---|---|
| `quantiles.direct` | q | (2e, (1 + exp(e)) d) | m |
| `quantiles.recursive` | log2(q + 1) | (2e, (1 + exp(e)) d) | m, growing to (2/3) m log2(q + 1) at worst |
| `quantiles.sliced` | any number | e, see `accounting.slicing` | size / 2, plus the drift of the noise in the sizes |

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> from dpjax.sanitizers import cdf
    >>> points = Points.create(wide.from_ints([i * i // 4096 for i in range(8000)], 16))
    >>> solver = interior_point.exponential(bits=24, epsilon=0.1)
    >>> mechanism = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=3, m=350))
    >>> mechanism.guarantee().epsilon <= 0.6000001
    True
    >>> released = mechanism(jax.random.key(0), points).hypothesis
    >>> float(released.distance(points)) < 1 / 16 + 800 / 8000
    True
    >>> released.evaluate(wide.from_ints([0, 2**16 - 1], 16)).tolist()
    [0.0625, 0.9375]
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm
from dpjax.data.points import Points
from dpjax.data.sample import wide_rows
from dpjax.data.weighted import Weighted
from dpjax.domains import wide
from dpjax.optimizers.quantiles import Quantiles

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

    def database(self, bits: Any) -> Weighted:
        """The database of total 1 over X_bits whose share of points <= x is `evaluate(x)`, for every x but the last, where it is 1.

        Its points are 0, those of the function, each with the height of its step, and 2^bits - 1.

        Raises:
          TypeError, ValueError: bits is not a number of bits, or more than the points have.

        >>> f = StepFunction(points=jnp.uint32([[3], [3], [9]]), heights=jnp.array([0.125, 0.375, 0.625, 0.875]))
        >>> f.database(4)
        Weighted(x=[0, 3, 9, 15], weights=[0.125, 0.5, 0.25, 0.125])
        """
        limbs = self.points.shape[1]
        if not arguments.is_traced(bits):
            bits = arguments.integer("bits", arguments.plain(bits), at_least=1, at_most=32 * limbs)
            if not arguments.is_traced(self.points):
                wide.check_below("points", np.asarray(self.points), bits)
        last = wide.largest(jnp.asarray(bits, jnp.int32), limbs)
        x = jnp.concatenate([jnp.zeros((1, limbs), jnp.uint32), self.points, last[None]])
        return Weighted.merged(x, jnp.diff(self.heights, prepend=0.0, append=1.0))

    def evaluate(self, x: UInt32[Array, "n limbs"]) -> Float[Array, "n"]:
        """Its values at points x: the share of the data estimated to be <= x.

        Raises:
          TypeError, ValueError: x is not an array of wide integers, one in each row.
        """
        x = wide_rows("x", x, at_least=0)
        limbs = max(x.shape[-1], self.points.shape[-1])
        points, x = self.resized(limbs).points, wide.resize(x, limbs)
        return self.heights[jax.vmap(lambda one: wide.search(points, one, side="right"))(x)]

    def resized(self, limbs: int) -> "StepFunction":
        """The same with `limbs` limbs, which must hold its points."""
        return StepFunction(points=wide.resize(self.points, limbs), heights=self.heights)

    def distance(self, points: Any) -> Float[Array, ""]:
        """Kolmogorov distance to the empirical distribution of `points`, exactly; NaN for no points.

        Not private: it uses the data.
        """
        return _distance(self, Points.of(points))

    def distance_to(self, below: Callable[[UInt32[Array, "limbs"]], Float[Array, ""]]) -> Float[Array, ""]:
        """Kolmogorov distance to a known distribution D, exactly.

        Both functions increase and this one is constant on [z_i, z_(i+1) - 1], so the largest difference is at one of these ends.

        Args:
          below: maps a threshold j to D[X < j]; gets j with one limb more than the points, and 2^(32 limbs) for the end of the domain.
        """
        limbs = self.points.shape[1] + 1
        one, zero = wide.one(limbs), jnp.zeros((1, limbs), jnp.uint32)
        starts = jnp.concatenate([zero, wide.resize(self.points, limbs)])
        ends = jnp.concatenate([starts[1:], zero.at[0, 0].set(np.uint32(1))])
        first, last = jax.vmap(below)(wide.add(starts, one[None])), jax.vmap(below)(ends)
        error = jnp.maximum(jnp.abs(self.heights - first), jnp.abs(self.heights - last))
        return jnp.max(jnp.where(wide.equal(starts, ends), 0.0, error))


@jax.jit
def _distance(function: StepFunction, points: Points) -> Float[Array, ""]:
    """`distance_to` the empirical distribution."""
    limbs = max(points.x.shape[1], function.points.shape[1])
    points, function = points.in_order(limbs), function.resized(limbs)
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
    given = np.asarray(fractions)
    if given.dtype != np.uint32 or given.ndim != 1:
        raise TypeError(f"fractions must be a list of uint32, in units of 2^-32, got {fractions!r}")
    return int(max(np.diff([0, *(int(f) for f in given), 2**32]))) / 2**32


# ------------------------------------------------------------------------------------------ from private quantiles


@frozen
class CdfRelease(Algorithm):
    """The distribution function through private quantiles, in order; build it by `release`. The output is a `StepFunction`."""

    quantiles: Any

    kind: ClassVar[type] = Points

    @property
    def bits(self) -> Any:
        """d, of the domain."""
        return self.quantiles.bits

    @property
    def most_points(self) -> int:
        """The number of points at which a released function steps."""
        return int(self.quantiles.fractions.size)

    def fit(self, data: Any) -> Points:
        return self.quantiles.fit(data)

    def fits(self, data: Points) -> Bool[Array, ""]:
        return self.quantiles.fits(data)

    def prepare(self, points: Points) -> Points:
        return self.quantiles.prepare(points)

    def draw(self, key: Array, points: Points) -> Any:
        z, released, info = self.quantiles.draw(key, points)
        return StepFunction(points=z, heights=_heights(self.quantiles.fractions)), released, info

    def guarantee(self) -> Guarantee:
        """That of the quantiles: the step function is computed from them alone."""
        return self.quantiles.guarantee()

    def guarantee_under(self, relation: str) -> Guarantee:
        """The same under a neighbouring relation."""
        return self.quantiles.guarantee_under(relation)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which the Kolmogorov distance to them is at most alpha, with probability 1 - beta.

        Raises:
          ValueError: alpha is not above half the widest gap; slices too small for beta.
        """
        left = arguments.known_fraction("alpha", alpha) - widest_gap(self.quantiles.fractions) / 2
        if left <= 0.0:
            raise ValueError(
                f"alpha must be above half the widest gap between fractions, {alpha - left:g}, got {alpha}"
            )
        return self.quantiles.sample_size(alpha=left, beta=beta)


def release(*, quantiles: Any) -> CdfRelease:
    """All threshold queries from any mechanism of `dpjax.optimizers.quantiles`, such as `quantiles.recursive`.

    Formal guarantees: those of the quantiles (post-processing).

    Raises:
      TypeError: quantiles is not such a mechanism.
    """
    if not isinstance(quantiles, Quantiles):
        raise TypeError(f"quantiles must be a mechanism of dpjax.optimizers.quantiles, got {type(quantiles).__name__}")
    return CdfRelease(quantiles=quantiles)
