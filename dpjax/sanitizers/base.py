"""Base of sanitizers of a multiset: they use how often each distinct point occurs, and n is public."""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from dpjax.core import arguments
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.data.sample import refuse_uncountable
from dpjax.data.weighted import Weighted
from dpjax.domains import groups, wide


class OfCounts(Algorithm):
    """An algorithm on n `Points`, on a `Sample`, whose labels it ignores, or on a `Weighted` multiset, whose counts add up to n.

    Attributes:
      bits: d.
      n: the public number of points, which must be that of the data. Counts are converted to floats, so it is at most 2^24, or 2^53 under
        `jax.enable_x64(True)`.
    """

    kind: ClassVar[type] = Points
    bits: Any
    n: Any
    limbs: int

    def fit(self, data: Any) -> Points | Weighted:
        data = data if isinstance(data, Weighted) else Points.of(data)
        if isinstance(data, Weighted) and data.weights.dtype.kind not in "iu":
            raise TypeError(f"points must have whole weights, which count rows, got {data.weights.dtype}")
        points = fitted(data, type(data), bits=self.bits, limbs=(self.limbs,), name="points")
        size = _size(points)
        if not any(map(arguments.is_traced, (size, self.n))):
            if int(size) != int(self.n):
                raise ValueError(f"points must be n = {int(self.n)}, as the sanitizer was told, got {int(size)}")
            refuse_uncountable("n", self.n)
        return points

    def fits(self, points: Points | Weighted) -> Bool[Array, ""]:
        n = _size(points)
        most = min(arguments.most_counted(), int(jnp.iinfo(n.dtype).max))
        counted = (n.astype(float) == jnp.asarray(self.n, float)) & (n <= most)
        return points.in_domain(self.bits) & counted

    def prepare(self, points: Points | Weighted) -> Any:
        if isinstance(points, Points):
            return groups.group(points.x, points.valid, ordered=points.ordered)
        member = jnp.arange(points.rows, dtype=jnp.int32)
        return groups.Groups(rows=points.x, counts=points.weights, size=points.n_valid, found=member)

    def listed(self) -> int:
        raise TypeError(f"{type(self).__name__} has no pmf: its answers are real numbers")


def _size(points: Points | Weighted) -> Any:
    """How many points there are."""
    return points.n_valid if isinstance(points, Points) else points.total


def domain(bits: int, n: Any, *, at_most: int = wide.MAX_BITS) -> dict[str, Any]:
    """The fields that every sanitizer has."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=at_most)
    n = jnp.asarray(n, float) if arguments.is_traced(n) else np.float64(arguments.count("n", n))
    return {"bits": np.int32(bits), "n": n, "limbs": wide.limbs_for(bits)}


def refuse_small(n: Any, needed: Any, what: str, allow_unproved: bool, **given: Any) -> None:
    """ValueError if n < needed(**given), which privacy needs, unless `allow_unproved`; traced numbers pass."""
    if arguments.flag("allow_unproved", allow_unproved) or any(map(arguments.is_traced, (n, *given.values()))):
        return
    least = needed(**{name: float(value) for name, value in given.items()})
    if n < least:
        raise ValueError(
            f"n must be at least {least} for ({given['epsilon']}, {given['delta']})-privacy at alpha = {given['alpha']} ({what}),"
            f" got {n:.0f}; allow_unproved=True simulates without a guarantee"
        )
