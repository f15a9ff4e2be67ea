"""A private quantile of real values by the exponential mechanism over the gaps between them (Smith 2011), made soft."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool

from dpjax.core import arguments, sorting
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Number
from dpjax.relaxations.soft import base, intervals
from dpjax.relaxations.soft.intervals import Gaps, SoftInterval


@frozen
class SoftQuantile(SoftInterval):
    """A point z of [low, high] with quality -|#{x < z} - f n|; build it by `quantile`.

    Between neighbours #{x < z} - f n moves by at most Delta = 1 if a value is replaced, and by max(f, 1 - f) if one is added or removed: a
    value below z adds 1 - f, one above takes f. So density ∝ exp(epsilon quality / (2 Delta)) is (epsilon, 0)-private (BNS Proposition
    2.26). The quality is differentiable in f, too.

    Attributes:
      epsilon, fraction: f in [0, 1], temperature, low, high: numbers that may be traced.
      relation: relation of neighbours (static).
    """

    epsilon: Number
    fraction: Number
    temperature: Number
    low: Number
    high: Number
    relation: str = static()

    def fit(self, values: Any, *, where: Any = None) -> tuple[Array, Array]:  # type: ignore[override]
        """(values, which of them count).

        Args:
          values: reals, shape (n,), n >= 0; those outside [low, high] count as its ends.
          where: which of them count; all when absent.
        """
        return intervals.reals("values", values, where)

    def sound(self) -> Bool[Array, ""]:
        fraction = jnp.asarray(self.fraction, float)
        return super().sound() & (fraction >= 0) & (fraction <= 1)

    def gaps(self, data: tuple[Array, Array], *, ties: bool = False) -> Gaps:
        values, mask = data
        ordered = sorting.floats(intervals.between(values, self.low, self.high, mask))
        fraction = jnp.asarray(self.fraction, values.dtype)
        below = jnp.arange(values.shape[0] + 1, dtype=values.dtype)
        # Ranks beyond the number of values that count belong to empty gaps.
        quality = -jnp.abs(below - fraction * jnp.sum(mask, dtype=values.dtype))
        sensitivity = jnp.maximum(fraction, 1 - fraction) if self.relation == "ADD_OR_REMOVE_ONE" else 1.0
        factor = jnp.asarray(self.epsilon, values.dtype) / (2 * sensitivity)
        return intervals.weighed(ordered, quality, low=self.low, high=self.high, factor=factor)


def quantile(
    *, epsilon: Number, fraction: Number, temperature: Number, low: Number, high: Number, relation: str = "REPLACE_ONE"
) -> SoftQuantile:
    """The quantile at a fraction of real values, at a temperature.

    Args:
      epsilon: > 0, finite.
      fraction: f in [0, 1]; 1/2 is the median.
      temperature: t >= 0, finite. Derivatives in the data stay bounded for t <= 1: a gap of length L has a weight ∝ L^(1/t).
      low, high: ends of the range, chosen without looking at the values.
      relation: "REPLACE_ONE", or "ADD_OR_REMOVE_ONE".

    Formal guarantees: none for t > 0. At t = 0 (epsilon, 0) under `relation`.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> median = quantile(epsilon=2.0, fraction=0.5, temperature=0.0, low=0.0, high=10.0)
    >>> values = jnp.linspace(0.0, 3.0, 100)
    >>> 1.2 < float(median(jax.random.key(0), values)) < 1.8, median.guarantee().epsilon
    (True, 2.0)
    >>> soft = quantile(epsilon=2.0, fraction=0.5, temperature=0.5, low=0.0, high=10.0)
    >>> bool(jnp.any(jax.grad(soft, argnums=1)(jax.random.key(0), values) != 0))
    True
    """
    return SoftQuantile(
        epsilon=arguments.epsilon(epsilon),
        fraction=arguments.real("fraction", fraction, at_least=0.0, at_most=1.0),
        temperature=base.temperature(temperature),
        relation=intervals.relation(relation),
        **intervals.domain(low, high),
    )
