"""A database from interior points (CLNSS §1.4, after Bun et al. 2015): private quantiles, weighted.

Quantiles z_1 <= ... <= z_q at fractions f_1 < ... < f_q make the step function of `dpjax.sanitizers.cdf`, which is (f_i + f_(i+1))/2 on
[z_i, z_(i+1)). Its database (`StepFunction.database`) has q + 2 rows: a weight f_1/2 at 0, one of (f_(i+1) - f_(i-1))/2 at each z_i, and
(1 - f_q)/2 at 2^d - 1. So every threshold is answered as by the step function, to within (widest gap)/2 + t if ranks are right to within
t n; q equal weights at the quantiles would answer i/q on [z_i, z_(i+1)), and lose a whole gap.
"""

from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Array, Bool

from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm
from dpjax.data.points import Points
from dpjax.data.weighted import Weighted
from dpjax.sanitizers import cdf

MOST_ROWS = 1 << 24  # the most rows that counts are written out to


@frozen
class FromInteriorPoints(Algorithm):
    """The database of a `cdf.release`; build it by `from_interior_points`. The output is a `Weighted` database of total 1."""

    release: cdf.CdfRelease

    kind: ClassVar[type] = Points

    @property
    def bits(self) -> Any:
        """d, of the domain."""
        return self.release.bits

    @property
    def most_points(self) -> int:
        """How many points a released database may have: those of the function, and both ends of the domain."""
        return self.release.most_points + 2

    def fit(self, data: Any) -> Points:
        return self.release.fit(_written_out(data) if isinstance(data, Weighted) else data)

    def fits(self, data: Points) -> Bool[Array, ""]:
        return self.release.fits(data)

    def prepare(self, points: Points) -> Points:
        return self.release.prepare(points)

    def draw(self, key: Array, points: Points) -> Any:
        released, ok, info = self.release.draw(key, points)
        return released.database(self.bits), ok, info

    def guarantee(self) -> Guarantee:
        """That of the quantiles."""
        return self.release.guarantee()

    def guarantee_under(self, relation: str) -> Guarantee:
        """The same under a neighbouring relation."""
        return self.release.guarantee_under(relation)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """That of `cdf.release`."""
        return self.release.sample_size(alpha=alpha, beta=beta)


def _written_out(data: Weighted) -> Points:
    """A multiset with a row for each of its points, on the host."""
    if any(map(arguments.is_traced, jax.tree.leaves(data))):
        raise TypeError(
            "data must be Points where they are traced: the rows of a Weighted multiset cannot be counted then"
        )
    if data.weights.dtype.kind not in "iu":
        raise TypeError(f"data.weights must be integers, which count rows, got {data.weights.dtype}")
    if data.weights.shape != (data.rows,):
        raise ValueError(f"data.weights must have shape ({data.rows},), got {data.weights.shape}")
    data.check_increasing("data")
    valid = arguments.integer("data.n_valid", arguments.plain(data.n_valid), at_least=0, at_most=data.rows)
    x, weights = np.asarray(data.x), np.asarray(data.weights)
    if (weights < 0).any() or weights[valid:].any():
        raise ValueError(f"data.weights must be >= 0, and 0 in rows that do not count, got {weights.tolist()[:5]} ...")
    total = sum(map(int, weights))  # the array's own sum may wrap around
    if total > MOST_ROWS:
        raise ValueError(f"data must hold at most {MOST_ROWS} points to be written out, got {total}")
    if total == 0:
        return Points.create(x[:1], n_valid=0)
    return Points.create(np.repeat(x, weights, axis=0))


def from_interior_points(*, quantiles: Any) -> FromInteriorPoints:
    """A database from any mechanism of `dpjax.optimizers.quantiles`, such as `quantiles.recursive`; see the module.

    Formal guarantees: those of the quantiles (post-processing), most of them under ADD_OR_REMOVE_ONE.

    Args:
      quantiles: a mechanism of `dpjax.optimizers.quantiles`. Its data may be a `Weighted` multiset of up to 2^24 points.

    Raises:
      TypeError: quantiles is not such a mechanism.

    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> data = Weighted.create(wide.from_ints([7, 2**15, 2**15 + 1], 16), [3000, 3000, 2000])
    >>> solver = interior_point.exponential(bits=20, epsilon=0.1)
    >>> sanitizer = from_interior_points(quantiles=quantiles.recursive(solver=solver, bits=16, depth=3, m=350))
    >>> released = sanitizer(jax.random.key(0), data).hypothesis
    >>> float(released.threshold_error(data)) < 1 / 16 + 800 / 8000
    True
    """
    return FromInteriorPoints(release=cdf.release(quantiles=quantiles))
