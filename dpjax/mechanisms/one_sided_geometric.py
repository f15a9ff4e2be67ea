"""One-sided geometric noise for integer counts: P[k] = (1-r) r^k on {0, 1, ...} with r = exp(-epsilon).

It is the slice noise Geom(1 - exp(-epsilon)) of CLNSS §2. Two-sided noise is the difference of two draws.
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, random
from dpjax.core.logspace import log1mexp
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Between, Noise, Number, array, difference

DIGITS = 31
# Below it a draw could exceed int32; from it on, P[G >= 2^31] = exp(-2^31 rate) <= exp(-64) = 2e-28.
SMALLEST_RATE = 2.0**-25


def checked_rate(epsilon: Number, sensitivity: int = 1) -> Number:
    """epsilon, refused when the noise would not fit int32."""
    return arguments.real("epsilon", epsilon, at_least=SMALLEST_RATE * sensitivity, below=math.inf)


def _rate(epsilon: Number) -> Array:
    return jnp.asarray(checked_rate(epsilon), float)


@jax.jit(static_argnames="shape", inline=True)
def _draw(key: Array, rate: Array, shape: tuple[int, ...]) -> Array:
    """Geometric variates, drawn by their binary digits, which are independent: digit j is 1 with odds r^(2^j) to 1.

    Every digit is a coin with exact tails, so no value is skipped however small the rate is; rounding a float
    exponential variate would leave gaps above 2^24.
    """
    places = jnp.broadcast_to(jnp.arange(DIGITS, dtype=jnp.int32), (*shape, DIGITS))
    spread = rate * 2.0 ** places.astype(float)
    log_zero = -jnp.log1p(jnp.exp(-spread))
    digits = random.bernoulli(key, log_zero - spread, log_zero)
    return jnp.sum(digits.astype(jnp.int32) << places, axis=-1, dtype=jnp.int32)


def one_sided_geometric(key: Array, shape: tuple[int, ...] = (), *, epsilon: Number) -> Int[Array, "*shape"]:
    """Noise Geom(1 - exp(-epsilon)) on {0, 1, ...}: P[k] = (1-r) r^k with r = exp(-epsilon).

    Every probability, down to 1e-15 and below, is correct to a relative 1e-4; values above 2^31 - 1, of
    probability at most 2e-28, are reduced modulo 2^31.

    Args:
      key: a PRNG key.
      shape: how many draws.
      epsilon: the rate, at least 2^-25.

    Returns:
      int32 draws.

    Raises:
      ValueError: epsilon below 2^-25, infinite or NaN.

    >>> import jax
    >>> bool(one_sided_geometric(jax.random.key(0), (9,), epsilon=0.5).min() >= 0)
    True
    """
    return _draw(arguments.key(key), _rate(epsilon), shape)


def log_pmf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[draw = noise]; -inf below 0."""
    rate, noise = _rate(epsilon), array("noise", noise, whole=True)
    return jnp.where(noise >= 0, log1mexp(-rate) - rate * noise.astype(float), -jnp.inf)


def log_sf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[draw > noise] = -epsilon (noise + 1), from noise = -1 on."""
    noise = array("noise", noise, whole=True)
    return -_rate(epsilon) * (jnp.maximum(noise, -1).astype(float) + 1.0)


def log_cdf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[draw <= noise]; -inf below 0."""
    noise = array("noise", noise, whole=True)
    return jnp.where(noise >= 0, log1mexp(log_sf(jnp.maximum(noise, 0), epsilon=epsilon)), -jnp.inf)


@frozen
class OneSidedGeometric(Noise):
    """Counts of sensitivity 1 plus one-sided noise; see `mechanism`, which makes it. The plain twin of its law is `scipy.stats.geom`."""

    whole = True

    epsilon: Number
    relation: str = static()

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE)

    def add(self, key: Array, value: Int[Array, "*s"]) -> Int[Array, "*s"]:
        return value + one_sided_geometric(key, value.shape, epsilon=self.epsilon)

    def log_density(self, value: Int[Array, "*s"], output: Int[Array, "*s"]) -> Float[Array, "*s"]:
        return log_pmf(output - value, epsilon=self.epsilon)

    def split(self, value: Int[Array, "*s"], event: Between) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        low, high = (jnp.maximum(difference(end, value), 0.0) for end in (event.low, event.high))
        rate = _rate(self.epsilon)
        inside = jnp.exp(-rate * low) * -jnp.expm1(-rate * (high - low))
        return inside, -jnp.expm1(-rate * low) + jnp.exp(-rate * high)

    def guarantee(self) -> Guarantee:
        """(epsilon, 1 - exp(-epsilon)), which is tight."""
        epsilon = arguments.known("epsilon", self.epsilon)
        leaked = math.nextafter(-math.expm1(-epsilon), 1.0)  # one step up, as it may have rounded down
        return Guarantee(epsilon, leaked, self.relation)


def mechanism(*, epsilon: Number, relation: str = "ADD_OR_REMOVE_ONE") -> OneSidedGeometric:
    """Counts of sensitivity 1 plus one-sided noise, which never lowers them.

    On its own it is only (epsilon, 1 - exp(-epsilon))-private, exactly: the smallest outcome gives the count
    away. It is used as slice noise, and Reorder-Slice-Compute accounts for it there.

    Args:
      epsilon: at least 2^-25, finite.
      relation: the one for which counts have sensitivity 1.

    Raises:
      TypeError, ValueError: epsilon below 2^-25, infinite or NaN; an unknown relation.

    >>> round(mechanism(epsilon=0.5).guarantee().delta, 4)
    0.3935
    """
    return OneSidedGeometric(epsilon=checked_rate(epsilon), relation=arguments.choice("relation", relation, RELATIONS))
