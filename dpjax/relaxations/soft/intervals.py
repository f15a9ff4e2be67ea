"""What soft mechanisms on an interval of reals share: the gaps between sorted values, their weights, and one draw.

A quality function that is constant between neighbouring values makes the exponential mechanism on [low, high] a choice of a gap, with
probability ∝ length exp(epsilon quality / (2 Delta)), and a uniform point of it (Smith 2011). The soft draw is a convex combination of one
point in each gap: derivatives reach the data through the gaps' ends and through their lengths. Where values are equal, the law has the
derivatives for one order of them; a soft draw gives gaps between them no derivative, which is wrong at temperatures near 1. The plain twin
is `dpjax.verify.plain.gaps`.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, random
from dpjax.mechanisms.base import array
from dpjax.relaxations.soft import base
from dpjax.relaxations.soft.base import Soft

_MOST_NATS = 60.0  # beyond which a gap without length is not told from others


class Gaps(NamedTuple):
    """The gaps of [low, high] between n sorted values.

    Attributes:
      ends: low, the values in order, high; values that do not count lie at high.
      log_weights: ln of the unnormalised probability of each gap; -inf for empty ones.
      log_density: the same for a gap of length 1.
    """

    ends: Float[Array, "ends"]
    log_weights: Float[Array, "gaps"]
    log_density: Float[Array, "gaps"]


class SoftInterval(Soft):
    """A soft exponential mechanism whose output is a point of [low, high]."""

    epsilon: Any
    low: Any
    high: Any
    relation: str

    def gaps(self, data: Any, *, ties: bool = False) -> Gaps:
        """The gaps of what `fit` returns, and their weights; with `ties` also the densities within gaps without length."""
        raise NotImplementedError

    def draw(self, key: Array, data: Any) -> Float[Array, ""]:
        return draw(key, self.gaps(data), self.temperature)

    def law(self, *data: Any, **given: Any) -> tuple[Float[Array, "ends"], Float[Array, "gaps"]]:
        """(ends, probabilities) of the gaps: the exact mechanism's law, uniform within each gap. It has no temperature.

        Args:
          data, given: see `fit`.
        """
        return _law(self, self.fit(*data, **given))

    def deviation(self, count: int) -> float:
        """An upper bound on E|output - exact draw of the same noise| for `count` values: (high - low) t (1 + ln count), see `Concrete`."""
        count = arguments.integer("count", count, at_least=0)
        share = min(1 - 1 / (count + 1), float(self.temperature) * (1 + math.log(count))) if count else 0.0
        return share * (float(self.high) - float(self.low))

    def promised(self) -> Guarantee:
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, self.relation)


@jax.jit
def _law(mechanism: SoftInterval, data: Any) -> tuple[Array, Array]:
    gaps = mechanism.gaps(data, ties=True)
    # A gap without length has no weight, but its weight has a derivative: a product, not the exponential of a logarithm. Its density may be
    # anything, and is cut off before it overflows.
    lengths, top = jnp.diff(gaps.ends), jax.lax.stop_gradient(jnp.max(gaps.log_weights))
    log_density = gaps.log_density - top
    weights = lengths * jnp.exp(jnp.where(lengths > 0, log_density, jnp.minimum(log_density, _MOST_NATS)))
    return gaps.ends, base.checked(weights / jnp.sum(weights), mechanism.sound())


def between(values: Float[Array, "n"], low: Any, high: Any, where: Bool[Array, "n"]) -> Float[Array, "n"]:
    """The values, with those outside the interval moved to its ends (part of the mechanism), and those that do not count to `high`."""
    low, high = (jnp.asarray(end, values.dtype) for end in (low, high))
    return jnp.where(where, jnp.clip(values, low, high), high)


def weighed(ordered: Float[Array, "n"], quality: Float[Array, "gaps"], *, low: Any, high: Any, factor: Any) -> Gaps:
    """The gaps of sorted values within [low, high], weighed by length exp(factor quality)."""
    low, high = (jnp.asarray(end, ordered.dtype) for end in (low, high))
    ends = jnp.concatenate([low[None], ordered, high[None]])
    lengths = jnp.diff(ends)
    # A NaN is not a length > 0 but must be noticed all the same; invalid ends (possible if traced) leave no gap.
    broken = jnp.isnan(lengths) | ~jnp.any(lengths > 0)
    log_lengths = jnp.where(lengths > 0, jnp.log(jnp.where(lengths > 0, lengths, 1.0)), -jnp.inf)
    density = jnp.asarray(factor, ordered.dtype) * (quality - jnp.max(quality))
    density = jnp.where(jnp.any(broken), jnp.nan, density)
    return Gaps(ends=ends, log_weights=log_lengths + density, log_density=density)


def draw(key: Array, gaps: Gaps, temperature: Any) -> Float[Array, ""]:
    """A convex combination of one point in each gap, with tempered weights; at temperature 0 one point."""
    for_gap, for_point = jax.random.split(key)
    noise = random.gumbel(for_gap, gaps.log_weights.shape).astype(gaps.log_weights.dtype)
    weights = base.tempered(gaps.log_weights + noise, temperature)
    place = jax.random.uniform(for_point, dtype=gaps.ends.dtype)
    points = gaps.ends[:-1] + place * jnp.diff(gaps.ends)
    return base.checked(jnp.sum(weights * points), ~jnp.any(jnp.isnan(gaps.log_weights)))


def reals(name: str, values: Any, where: Any) -> tuple[Float[Array, "n"], Bool[Array, "n"]]:
    """Real numbers, one per row, and which of them count.

    Raises:
      TypeError: not numbers, or a mask that is not boolean. ValueError: another shape, or a known NaN or infinity that counts.
    """
    given = array(name, values).astype(float)
    if given.ndim != 1:
        raise ValueError(f"{name} must have shape (n,), got shape {given.shape}")
    if given.shape[0] > arguments.most_counted():
        raise ValueError(
            f"{name} must have at most {arguments.most_counted()} rows, which floats count, got {given.shape[0]}"
        )
    mask: Any = (
        np.ones(given.shape, bool) if where is None else where if arguments.is_traced(where) else np.asarray(where)
    )
    if mask.dtype != bool:
        raise TypeError(f"where must hold booleans, got {mask.dtype}")
    if mask.shape != given.shape:
        raise ValueError(f"where must have the shape {given.shape} of {name}, got {mask.shape}")
    known = not arguments.is_traced(given) and not arguments.is_traced(mask)
    if known and not np.all(np.isfinite(np.asarray(given)) | ~mask):
        raise ValueError(f"{name} must hold finite numbers, got {values!r}")
    return given, jnp.asarray(mask)


def domain(low: Any, high: Any) -> dict[str, Any]:
    """The fields low and high, where low < high in the default float too; ValueError otherwise."""
    low, high = (
        arguments.real(name, end, above=-math.inf, below=math.inf) for name, end in (("low", low), ("high", high))
    )
    if not (arguments.is_traced(low) or arguments.is_traced(high)):
        kind = jnp.result_type(float).type
        if not 0 < float(kind(high)) - float(kind(low)) <= float(np.finfo(kind).max):
            raise ValueError(
                f"high must be > low, by what {kind.__name__} can hold, got {float(high)} and {float(low)}"
            )
    return {"low": low, "high": high}


def relation(value: Any) -> str:
    """REPLACE_ONE or ADD_OR_REMOVE_ONE."""
    return arguments.choice("relation", value, tuple(name for name in RELATIONS if name != "REPLACE_LABEL"))
