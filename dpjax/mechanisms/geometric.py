"""Geometric noise for integer counts, two-sided (the discrete Laplace) and one-sided.

With r = exp(-epsilon/sensitivity), two-sided: P[k] = r^|k| (1-r)/(1+r) on the integers; one-sided:
P[k] = (1-r) r^k on {0, 1, ...}, the slice noise Geom(1 - exp(-epsilon)) of CLNSS §2.
"""

import functools
import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, random
from dpjax.core.logspace import log1mexp
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.laplace import Number

DIGITS = 31
SMALLEST_RATE = (
    2.0**-25
)  # below it a draw could pass int32: P[G >= 2^31] = exp(-2^31 rate) <= exp(-64) = 2e-28 above it


def _rate(epsilon: Number, sensitivity: int) -> Array:
    """-ln r = epsilon / sensitivity, refused when the noise would not fit int32."""
    epsilon = arguments.real("epsilon", epsilon, at_least=SMALLEST_RATE * sensitivity, below=float("inf"))
    return jnp.asarray(epsilon / arguments.integer("sensitivity", sensitivity, at_least=1), float)


@functools.partial(jax.jit, static_argnames="shape", inline=True)
def _one_sided(key: Array, rate: Array, shape: tuple[int, ...]) -> Array:
    """Geometric draws by their binary digits, which are independent: digit j is 1 with odds r^(2^j) to 1.

    Every digit is an exact-tailed coin, so no value is skipped however small the rate is; rounding a float
    exponential would leave gaps above 2^24.
    """
    places = jnp.broadcast_to(jnp.arange(DIGITS, dtype=jnp.int32), (*shape, DIGITS))
    spread = rate * 2.0 ** places.astype(float)
    log_zero = -jnp.log1p(jnp.exp(-spread))
    digits = random.bernoulli(key, log_zero - spread, log_zero)
    return jnp.sum(digits.astype(jnp.int32) << places, axis=-1, dtype=jnp.int32)


def one_sided_geometric(key: Array, shape: tuple[int, ...] = (), *, epsilon: Number) -> Int[Array, "*shape"]:
    """Noise Geom(1 - exp(-epsilon)) on {0, 1, ...}: P[k] = (1-r) r^k with r = exp(-epsilon).

    Every probability down to 1e-15 and below is right to a relative 1e-4; values past 2^31 - 1, of
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
    return _one_sided(key, _rate(epsilon, 1), shape)


def geometric(key: Array, value: Int[ArrayLike, "*s"], *, epsilon: Number, sensitivity: int = 1) -> Int[Array, "*s"]:
    """Integer `value` plus two-sided geometric noise, the difference of two one-sided draws.

    Args:
      key: a PRNG key.
      value: counts, any shape, int32.
      epsilon: the privacy parameter, at least 2^-25 sensitivity.
      sensitivity: the largest L1 change of the whole of `value` between neighbours, an integer.

    Returns:
      The release, int32. A sum past int32 wraps: a function of the exact sum, so privacy is unharmed.

    Formal guarantees: epsilon-DP (pure) for the relation the sensitivity is for. Not promised: the float
    arithmetic of the coins distorts each probability by a relative 1e-4 at most; no cryptographic
    generator.

    Raises:
      ValueError: epsilon too small, infinite or NaN; sensitivity below 1.

    >>> import jax
    >>> geometric(jax.random.key(0), 5, epsilon=1.0).dtype
    dtype('int32')
    """
    key_up, key_down = jax.random.split(key)
    rate, shape = _rate(epsilon, sensitivity), jnp.shape(value)
    return jnp.asarray(value, jnp.int32) + _one_sided(key_up, rate, shape) - _one_sided(key_down, rate, shape)


def _noise(output: ArrayLike, value: ArrayLike) -> Array:
    """output - value, exactly while it fits int32."""
    return jnp.asarray(output, jnp.int32) - jnp.asarray(value, jnp.int32)


def log_pmf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[two-sided release = output]."""
    rate = _rate(epsilon, sensitivity)
    log_peak = log1mexp(-rate) - jnp.log1p(jnp.exp(-rate))
    return log_peak - rate * jnp.abs(_noise(output, value)).astype(float)


def _two_sided_cdf(noise: Array, rate: Array) -> Array:
    """ln P[two-sided noise <= noise]."""
    log_norm = jnp.log1p(jnp.exp(-rate))
    left = -rate * jnp.maximum(-noise, 0).astype(float) - log_norm
    right = log1mexp(-rate * (jnp.maximum(noise, 0).astype(float) + 1.0) - log_norm)
    return jnp.where(noise < 0, left, right)


def log_cdf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[two-sided release <= output], with full relative accuracy in the left tail."""
    return _two_sided_cdf(_noise(output, value), _rate(epsilon, sensitivity))


def log_sf(
    output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"], *, epsilon: Number, sensitivity: int = 1
) -> Float[Array, "*s"]:
    """ln P[two-sided release > output], with full relative accuracy in the right tail."""
    return _two_sided_cdf(-_noise(output, value) - 1, _rate(epsilon, sensitivity))


def one_sided_log_pmf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[one-sided draw = noise]; -inf below 0."""
    rate = _rate(epsilon, 1)
    log_p = log1mexp(-rate) - rate * jnp.asarray(noise, float)
    return jnp.where(jnp.asarray(noise) >= 0, log_p, -jnp.inf)


def one_sided_log_sf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[one-sided draw > noise] = -epsilon (noise + 1), from noise = -1 on."""
    return -_rate(epsilon, 1) * (jnp.maximum(jnp.asarray(noise), -1).astype(float) + 1.0)


def one_sided_log_cdf(noise: Int[ArrayLike, "*s"], *, epsilon: Number) -> Float[Array, "*s"]:
    """ln P[one-sided draw <= noise]; -inf below 0."""
    inside = jnp.asarray(noise) >= 0
    log_p = log1mexp(one_sided_log_sf(jnp.maximum(jnp.asarray(noise), 0), epsilon=epsilon))
    return jnp.where(inside, log_p, -jnp.inf)


@frozen
class Geometric:
    """The two-sided geometric mechanism with its parameters bound; build it by `Geometric.create`.

    >>> Geometric.create(epsilon=0.5).guarantee().delta
    0.0
    """

    epsilon: Number
    sensitivity: int = static()
    relation: str = static()

    @classmethod
    def create(cls, *, epsilon: Number, sensitivity: int = 1, relation: str = "REPLACE_ONE") -> "Geometric":
        """Checks and binds; `relation` is the one for which `sensitivity` holds.

        Raises:
          ValueError: epsilon too small (int32), infinite or NaN; sensitivity below 1; an unknown relation.
        """
        sensitivity = arguments.integer("sensitivity", sensitivity, at_least=1)
        return cls(
            epsilon=arguments.real("epsilon", epsilon, at_least=SMALLEST_RATE * sensitivity, below=float("inf")),
            sensitivity=sensitivity,
            relation=arguments.choice("relation", relation, RELATIONS),
        )

    def __call__(self, key: Array, value: Int[ArrayLike, "*s"]) -> Int[Array, "*s"]:
        """A release of `value`."""
        return geometric(key, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_pmf(self, output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release = output]."""
        return log_pmf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_cdf(self, output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release <= output]."""
        return log_cdf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_sf(self, output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release > output]."""
        return log_sf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under the relation of the sensitivity."""
        return Guarantee(epsilon=float(self.epsilon), delta=0.0, relation=self.relation)


@frozen
class OneSidedGeometric:
    """A sensitivity-1 count plus one-sided noise; build it by `OneSidedGeometric.create`.

    Alone it is only (epsilon, 1 - exp(-epsilon))-DP, exactly: the smallest outcome gives the count away.
    Its use is as slice noise, where Reorder-Slice-Compute accounts for it.

    >>> round(OneSidedGeometric.create(epsilon=0.5).guarantee().delta, 4)
    0.3935
    """

    epsilon: Number
    relation: str = static()

    @classmethod
    def create(cls, *, epsilon: Number, relation: str = "ADD_OR_REMOVE_ONE") -> "OneSidedGeometric":
        """Checks and binds.

        Raises:
          ValueError: epsilon below 2^-25, infinite or NaN; an unknown relation.
        """
        epsilon = arguments.real("epsilon", epsilon, at_least=SMALLEST_RATE, below=float("inf"))
        return cls(epsilon=epsilon, relation=arguments.choice("relation", relation, RELATIONS))

    def __call__(self, key: Array, value: Int[ArrayLike, "*s"]) -> Int[Array, "*s"]:
        """A release of `value`, never below it."""
        return jnp.asarray(value, jnp.int32) + one_sided_geometric(key, jnp.shape(value), epsilon=self.epsilon)

    def log_pmf(self, output: Int[ArrayLike, "*#s"], value: Int[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release = output]."""
        return one_sided_log_pmf(_noise(output, value), epsilon=self.epsilon)

    def guarantee(self) -> Guarantee:
        """(epsilon, 1 - exp(-epsilon)), which is tight."""
        leaked = math.nextafter(-math.expm1(-float(self.epsilon)), 1.0)  # one step up, as it may have rounded down
        return Guarantee(epsilon=float(self.epsilon), delta=leaked, relation=self.relation)
