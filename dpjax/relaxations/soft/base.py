"""What soft mechanisms share: a temperature, the tempered choice, and what is promised at which temperature.

**Why nothing is promised at a temperature above zero.** A soft output is an injective, continuous function of scores (or of values) for
every fixed noise: changing one record moves it by an amount that depends on that record, to an output which the neighbour's run may never
produce. Privacy would need the two laws to overlap; nothing is proved here about how far they do. At temperature 0 a soft mechanism is the
exact one, with the guarantee of the exact one.
"""

import dataclasses
import math
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments
from dpjax.data import algorithm
from dpjax.mechanisms.base import Candidates


class Soft:
    """A mechanism made soft; `__call__(key, data)` returns numbers that depend continuously on the data for a fixed key.

    Everything about it is differentiable: in the data, in epsilon, in the temperature. The key decides the noise, and the noise is the same
    at every temperature, so that a run at temperature 0 is the limit of the runs above it.
    """

    temperature: Any

    def fit(self, *data: Any, **given: Any) -> Any:
        """The data, checked as far as they are not traced."""
        raise NotImplementedError

    def draw(self, key: Array, data: Any) -> Float[Array, "..."]:
        """One draw from what `fit` returns."""
        raise NotImplementedError

    def promised(self) -> Guarantee:
        """The guarantee of the exact mechanism."""
        raise NotImplementedError

    def sound(self) -> Bool[Array, ""]:
        """Whether the numbers in use are in their ranges: what a factory cannot see of traced values, and an optimiser may leave."""
        t = jnp.asarray(self.temperature, float)
        return algorithm.sound(self) & (t >= 0) & (t < jnp.inf)

    def __call__(self, key: Array, *data: Any, **given: Any) -> Float[Array, "..."]:
        """One draw.

        Args:
          key: a PRNG key.
          data, given: scores, or values; see `fit`.

        Returns:
          Weights, or a point; see the class. NaN where traced data, or scores, are not finite numbers.

        Raises:
          TypeError, ValueError: not a key; data that do not fit.
        """
        return _run(self, arguments.key(key), self.fit(*data, **given))

    def guarantee(self) -> Guarantee:
        """The guarantee of the exact mechanism at temperature 0; nothing above it.

        Raises:
          TypeError: a temperature, or another parameter, that is traced.
        """
        promised = self.promised()
        cold = arguments.known("temperature", self.temperature) == 0.0
        return promised if cold else Guarantee.none(promised.relation)

    def exact(self) -> Self:
        """The same mechanism at temperature 0: the private one."""
        return dataclasses.replace(self, temperature=temperature(0.0))  # type: ignore[type-var]


@jax.jit
def _run(mechanism: Soft, key: Array, data: Any) -> Array:
    return checked(mechanism.draw(key, data), mechanism.sound())


class SoftChooser(Soft):
    """A soft mechanism whose output is a weight for each candidate.

    Attributes:
      mechanism: the exact one, a `dpjax.mechanisms.base.Chooser`.
    """

    mechanism: Any

    @property
    def epsilon(self) -> Any:
        """The epsilon of the exact mechanism."""
        return self.mechanism.epsilon

    def fit(self, scores: Any) -> Candidates:  # type: ignore[override]
        """Scores: an array, or `dpjax.mechanisms.candidates(scores, where=...)`."""
        return self.mechanism.fit(scores)

    def promised(self) -> Guarantee:
        return self.mechanism.guarantee()


def temperature(value: Any) -> Any:
    """A temperature as a leaf: finite, >= 0; it may be traced."""
    return arguments.real("temperature", value, at_least=0.0, below=math.inf)


def divisor(t: Float[Array, ""]) -> Float[Array, ""]:
    """A temperature to divide by: a harmless number where t = 0; never so small (1e-19 in float32) that derivatives divide by t^2 = 0."""
    return jnp.where(t > 0, jnp.maximum(t, float(jnp.finfo(t.dtype).tiny) ** 0.5), 1.0)


def tempered(logits: Float[Array, "k"], temperature: Float[Array, ""]) -> Float[Array, "k"]:
    """softmax(logits / t); at t = 0 its limit, 1 at the greatest (the first of them). All 0 where every logit is -inf.

    >>> tempered(jnp.array([0.0, 1.0, -jnp.inf]), jnp.array(0.0)).tolist()
    [0.0, 1.0, 0.0]
    """
    t = jnp.asarray(temperature, logits.dtype)
    possible = logits > -jnp.inf
    top = jax.lax.stop_gradient(jnp.max(logits, initial=-jnp.inf))
    # Harmless numbers where a branch is not taken: otherwise gradients would be inf * 0.
    lag = jnp.where(possible, logits - jnp.where(jnp.any(possible), top, 0.0), 0.0)
    weights = jnp.where(possible, jnp.exp(lag / divisor(t)), 0.0)
    soft = weights / jnp.where(jnp.any(possible), jnp.sum(weights), 1.0)
    return jnp.where(t > 0, soft, first(possible & (logits == top)))


def first(among: Bool[Array, "k"]) -> Float[Array, "k"]:
    """1 at the first true entry, 0 elsewhere; all 0 if there is none."""
    return (among & (jnp.cumsum(among, dtype=jnp.int32) == 1)).astype(float)


def step(x: Float[Array, ""], temperature: Float[Array, ""]) -> Float[Array, ""]:
    """sigmoid(x / t); at t = 0 whether x >= 0."""
    t = jnp.asarray(temperature, x.dtype)
    return jnp.where(t > 0, jax.nn.sigmoid(x / divisor(t)), (x >= 0).astype(x.dtype))


def checked(output: Float[Array, "*s"], good: Bool[Array, ""]) -> Float[Array, "*s"]:
    """The output, or NaN where the data are not valid: no number may pass for a draw that is not one."""
    return jnp.where(good, output, jnp.nan)
