"""Two-sided geometric noise, the discrete Laplace, for integer counts (Ghosh, Roughgarden, Sundararajan 2009).

With r = exp(-epsilon/sensitivity): P[k] = r^|k| (1-r)/(1+r) on the integers.

This is the law of the difference of two one-sided variables, each drawn as 31 binary digits. One Laplace variable X of scale 1 suffices,
too: |K| has the tail P[|K| >= k] = 2 r^k / (1+r) = exp(-(k rate - c)) with c = ln(2 / (1+r)), so K = sign(X) floor((|X| + c) / rate) has
the law. In float32 the ends of the pieces of X are correct to a few units in the last place of |X|, so a probability is correct to a
relative error of that divided by the length of its piece, the rate. This is why digits are used where the rate is below COARSE.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting.guarantee import RELATIONS
from dpjax.core import arguments, staging
from dpjax.core.logspace import log1mexp
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import laplace
from dpjax.mechanisms.base import Between, Noise, Number, array, difference
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE, checked_rate, one_sided_geometric

COARSE = 2.0**-5  # from this rate on, the pieces of a Laplace variable are long enough


def _rate(epsilon: Number, sensitivity: int) -> Number:
    """-ln r = epsilon / sensitivity, refused when the noise would not fit int32."""
    sensitivity = arguments.size("sensitivity", sensitivity)
    return checked_rate(epsilon, sensitivity) / sensitivity


def geometric(key: Array, value: Int[ArrayLike, "*s"], *, epsilon: Number, sensitivity: int = 1) -> Int[Array, "*s"]:
    """Integer `value` plus two-sided geometric noise.

    Args:
      key: a PRNG key.
      value: counts, any shape, int32.
      epsilon: the privacy parameter, at least 2^-25 sensitivity.
      sensitivity: the largest L1 change of the whole of `value` between neighbours, an integer.

    Returns:
      The release, int32. A sum outside int32 wraps around: that is a function of the exact sum, so privacy is unharmed.

    Formal guarantees: epsilon-DP (pure) under the relation for which the sensitivity holds. Not promised: exact
    probabilities, as the float arithmetic distorts each one down to 1e-15 by a relative 3e-4 at most, and so a
    privacy loss by 6e-4; noise larger than 46/rate, of probability 2e-20, which is never drawn at rates >= COARSE;
    a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key, or a value that is not an integer. ValueError: epsilon too small, infinite or NaN; sensitivity
        below 1; a value outside int32.

    >>> import jax
    >>> geometric(jax.random.key(0), 5, epsilon=1.0).dtype
    dtype('int32')
    """
    rate, value = jnp.asarray(_rate(epsilon, sensitivity), float), array("value", value, whole=True)
    return value + _noises(arguments.key(key), rate, value.shape)


@jax.jit(static_argnames="shape", inline=True)
def _noises(key: Array, rate: Array, shape: tuple[int, ...]) -> Array:
    """Pieces of a Laplace variable, unless they are short: then the difference of two one-sided draws."""
    key_up, key_down = jax.random.split(key)

    def by_digits(rate: Array) -> Array:
        keys = map(jax.random.clone, (key_up, key_down))  # a loop may not consume the keys that it was given
        up, down = (one_sided_geometric(each, shape, epsilon=rate) for each in keys)
        return up - down

    # Clones, since only one of the two ways is used.
    pieces = _piece(laplace.standard_laplace(jax.random.clone(key), shape), rate)
    return staging.unless(rate >= COARSE, pieces, by_digits, rate)


def _piece(x: Float[Array, "*s"], rate: Array) -> Int[Array, "*s"]:
    """The noise that this Laplace variable makes; see the module."""
    size = jnp.floor((jnp.abs(x) + (math.log(2.0) - jnp.log1p(jnp.exp(-rate)))) / rate)
    return jnp.where(x < 0, -size, size).astype(jnp.int32)


def _noise(output: ArrayLike, value: ArrayLike) -> Array:
    """output - value, exactly while it fits int32."""
    return array("output", output, whole=True) - array("value", value, whole=True)


def log_pmf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[release = output]."""
    rate = jnp.asarray(_rate(epsilon, sensitivity), float)
    log_peak = log1mexp(-rate) - jnp.log1p(jnp.exp(-rate))
    return log_peak - rate * jnp.abs(_noise(output, value).astype(float))  # -2^31 has no size in int32


def _log_cdf(noise: Array, epsilon: Number, sensitivity: int) -> Array:
    """ln P[noise <= this]."""
    rate = jnp.asarray(_rate(epsilon, sensitivity), float)
    log_norm = jnp.log1p(jnp.exp(-rate))
    left = -rate * jnp.maximum(-noise.astype(float), 0.0) - log_norm
    right = log1mexp(-rate * (jnp.maximum(noise, 0).astype(float) + 1.0) - log_norm)
    return jnp.where(noise < 0, left, right)


def log_cdf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[release <= output], with full relative accuracy in the left tail."""
    return _log_cdf(_noise(output, value), epsilon, sensitivity)


def log_sf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[release > output], with full relative accuracy in the right tail."""
    return _log_cdf(-_noise(output, value) - 1, epsilon, sensitivity)


def _stretch(rate: Array, near: Float[Array, "*s"], far: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """(1 - r) (r^near + ... + r^(far - 1)), without cancellation."""
    return jnp.exp(-rate * near) * -jnp.expm1(rate * (near - far))


@frozen
class Geometric(Noise):
    """The two-sided geometric mechanism on counts; see `geometric`, and `mechanism`, which makes it.

    The plain twin of its law is `scipy.stats.dlaplace`.
    """

    whole = True

    epsilon: Number
    sensitivity: int = static()
    relation: str = static()

    def _given(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "sensitivity": self.sensitivity}

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE * self.sensitivity)

    def add(self, key: Array, value: Int[Array, "*s"]) -> Int[Array, "*s"]:
        return geometric(key, value, **self._given())

    def log_density(self, value: Int[Array, "*s"], output: Int[Array, "*s"]) -> Float[Array, "*s"]:
        return log_pmf(output, value, **self._given())

    def split(self, value: Int[Array, "*s"], event: Between) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        low, high = (difference(end, value) for end in (event.low, event.high))
        rate = jnp.asarray(_rate(**self._given()), float)
        # Noise from 0 on, and noise below 0: each as the sizes near, ..., far - 1.
        above = jnp.maximum(low, 0.0), jnp.maximum(high, 0.0)
        below = 1.0 + jnp.maximum(-high, 0.0), 1.0 + jnp.maximum(-low, 0.0)
        inside = (_stretch(rate, *above) + _stretch(rate, *below)) / (1.0 + jnp.exp(-rate))
        under, over = (_log_cdf(noise, **self._given()) for noise in (low - 1, -high))
        return inside, jnp.exp(under) + jnp.exp(over)


def mechanism(*, epsilon: Number, sensitivity: int = 1, relation: str = "REPLACE_ONE") -> Geometric:
    """The two-sided geometric mechanism, epsilon-private.

    Args:
      epsilon: at least 2^-25 sensitivity, finite.
      sensitivity: the largest L1 change of all the counts between neighbours, an integer.
      relation: the one for which `sensitivity` holds.

    Raises:
      TypeError, ValueError: epsilon too small (for int32), infinite or NaN; sensitivity below 1; an unknown relation.

    >>> release = mechanism(epsilon=0.5)
    >>> release.guarantee().delta
    0.0
    >>> round(float(release.success_probability(40, error=4)), 4)
    0.8978
    """
    sensitivity = arguments.size("sensitivity", sensitivity)
    return Geometric(
        epsilon=checked_rate(epsilon, sensitivity),
        sensitivity=sensitivity,
        relation=arguments.choice("relation", relation, RELATIONS),
    )
