"""A private threshold on real features by the exponential mechanism over the gaps between them, made soft."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from dpjax.core import arguments, sorting
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Number, array
from dpjax.relaxations.soft import base, intervals
from dpjax.relaxations.soft.intervals import Gaps, SoftInterval


@frozen
class SoftThreshold(SoftInterval):
    """A threshold z of [low, high], which labels x with 1 iff x < z; build it by `threshold`.

    The quality of z is the number of examples that it labels correctly, of sensitivity 1 (an example is added, removed or replaced); labels
    between 0 and 1 count fractionally. It is the learner `dpjax.learners.thresholds.exponential` on real features.

    Attributes:
      epsilon, temperature, low, high: numbers that may be traced.
      relation: relation of neighbours (static).
    """

    epsilon: Number
    temperature: Number
    low: Number
    high: Number
    relation: str = static()

    def fit(self, x: Any, y: Any, *, where: Any = None) -> tuple[Array, Array, Array]:  # type: ignore[override]
        """(x, y, which of them count).

        Args:
          x: real features, shape (n,), n >= 0; those outside [low, high] count as its ends.
          y: labels, 0, 1 or between, shape (n,).
          where: which examples count; all when absent.
        """
        x, mask = intervals.reals("x", x, where)
        return x, _labels(y, x), mask

    def gaps(self, data: tuple[Array, Array, Array], *, ties: bool = False) -> Gaps:
        x, y, mask = data
        places = intervals.between(x, self.low, self.high, mask)
        ordered = sorting.floats(places)
        # Looking up where each example went is cheaper than sorting the labels along. Labels of equal features then all go to the first
        # of them, as gaps without length need no labels, unless their densities are asked for.
        fixed = lax.stop_gradient(places)
        at = jnp.argsort(sorting.order(fixed)) if ties else jnp.searchsorted(ordered, fixed)
        one, zero = (jnp.zeros_like(x).at[at].add(jnp.where(mask, label, 0.0)) for label in (y, 1 - y))
        below = jnp.concatenate([jnp.zeros((1,), x.dtype), jnp.cumsum(one)])
        above = jnp.concatenate([jnp.cumsum(zero[::-1])[::-1], jnp.zeros((1,), x.dtype)])
        factor = jnp.asarray(self.epsilon, x.dtype) / 2
        # With traced labels beyond 0 and 1 an example would count for more than 1, and epsilon would be more than is promised.
        labelled = jnp.all(~mask | ((y >= 0) & (y <= 1)))
        return intervals.weighed(
            ordered, jnp.where(labelled, below + above, jnp.nan), low=self.low, high=self.high, factor=factor
        )


def _labels(y: Any, x: Array) -> Array:
    """Labels from 0 to 1, checked to be as many as the features."""
    labels: Any = y if arguments.is_traced(y) or isinstance(y, jax.Array) else np.asarray(y)
    labels = array("y", labels.astype(np.int32) if labels.dtype == bool else labels).astype(float)
    if labels.shape != x.shape:
        raise ValueError(f"y must have the shape {x.shape} of x, got {labels.shape}")
    if not arguments.is_traced(labels) and not np.all((np.asarray(labels) >= 0) & (np.asarray(labels) <= 1)):
        wrong = labels[~((labels >= 0) & (labels <= 1))]
        raise ValueError(f"y must hold labels from 0 to 1, got {float(wrong[0])}")
    return labels


def threshold(
    *, epsilon: Number, temperature: Number, low: Number, high: Number, relation: str = "REPLACE_ONE"
) -> SoftThreshold:
    """A threshold on real features, at a temperature.

    Args:
      epsilon: > 0, finite.
      temperature: t >= 0, finite. Derivatives in the features stay bounded for t <= 1: a gap of length L has a weight ∝ L^(1/t).
      low, high: ends of the range, chosen without looking at the examples.
      relation: "REPLACE_ONE", or "ADD_OR_REMOVE_ONE".

    Formal guarantees: none for t > 0. At t = 0 (epsilon, 0) under `relation`, of the examples (x, y): the map that made the features
    must not have looked at them.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> stump = threshold(epsilon=2.0, temperature=0.0, low=0.0, high=1.0)
    >>> x = jnp.linspace(0.0, 1.0, 100)
    >>> 0.2 < float(stump(jax.random.key(0), x, x < 0.3)) < 0.4
    True
    """
    return SoftThreshold(
        epsilon=arguments.epsilon(epsilon),
        temperature=base.temperature(temperature),
        relation=intervals.relation(relation),
        **intervals.domain(low, high),
    )
