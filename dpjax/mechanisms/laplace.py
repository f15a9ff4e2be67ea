"""The Laplace mechanism (BNS Theorem 2.24): noise of density (1/2b) exp(-|x|/b), b = sensitivity/epsilon."""

import math
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static

LN2 = math.log(2.0)
Number = Any  # a real parameter, of Python, NumPy or traced: `core.arguments` refuses the rest by name


def _exponential(high: Array, low: Array) -> Array:
    """-ln U for the uniform U whose binary digits are two words; relative accuracy at both ends of (0, 1)."""
    upper = high >= jnp.uint32(2**31)
    # Above 1/2 the logarithm is well conditioned in 1 - U, whose digits are the complement.
    high, low = jnp.where(upper, ~high, high).astype(float), jnp.where(upper, ~low, low).astype(float)
    nearer = (high + (low + 0.5) * 2.0**-32) * 2.0**-32
    # One logarithm serves both ends: 1 - nearer loses at most half a unit in the last place, which is added again.
    u = jnp.where(upper, 1 - nearer, nearer)
    lost = jnp.where(upper, nearer - (1 - u), 0.0)
    return lost - jnp.log(u)


def _words(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Two words a draw; side by side, so that a longer shape begins with the same draws."""
    words = random.bits(key, 2 * math.prod(shape)).reshape(*shape, 2)
    return words[..., 0], words[..., 1]


def standard_exponential(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Exponential variates of mean 1 with full relative accuracy near 0 and right tails down to 5e-20."""
    return _exponential(*_words(key, shape))


def standard_laplace(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Laplace variates of scale 1: one bit is the sign, 63 the magnitude; tails are right down to 1e-18."""
    high, low = _words(key, shape)
    magnitude = _exponential((high << 1) | (low >> 31), low << 1)
    return jnp.where(high >= jnp.uint32(2**31), -magnitude, magnitude)


def log_tails(x: Float[Array, "*s"]) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[Lap(1) <= x], ln P[Lap(1) > x]), each accurate however small; finite gradients for finite x."""
    small = -jnp.abs(x) - LN2  # the rarer side
    large = jnp.log1p(-jnp.exp(small))
    return jnp.where(x <= 0, small, large), jnp.where(x <= 0, large, small)


def _standardised(output: ArrayLike, value: ArrayLike, epsilon: Number, sensitivity: Number) -> Array:
    """(output - value) in units of the noise's scale."""
    scale = _scale(epsilon, sensitivity)
    return (jnp.asarray(output, float) - jnp.asarray(value, float)) / scale


def _scale(epsilon: Number, sensitivity: Number) -> Array:
    epsilon, sensitivity = arguments.epsilon(epsilon), _sensitivity(sensitivity)
    return jnp.asarray(sensitivity / epsilon, float)


def _sensitivity(value: Number) -> Number:
    return arguments.real("sensitivity", value, above=0.0, below=math.inf)


def log_pdf(
    output: Real[ArrayLike, "*#s"],
    value: Real[ArrayLike, "*#s"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
) -> Float[Array, "*s"]:
    """ln of the density of the release at `output` when the true value is `value`."""
    distance = jnp.abs(_standardised(output, value, epsilon, sensitivity))
    return -distance - LN2 - jnp.log(_scale(epsilon, sensitivity))


def log_cdf(
    output: Real[ArrayLike, "*#s"],
    value: Real[ArrayLike, "*#s"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
) -> Float[Array, "*s"]:
    """ln P[release <= output], with full relative accuracy in the left tail."""
    return log_tails(_standardised(output, value, epsilon, sensitivity))[0]


def log_sf(
    output: Real[ArrayLike, "*#s"],
    value: Real[ArrayLike, "*#s"],
    *,
    epsilon: Number,
    sensitivity: Number = 1.0,
) -> Float[Array, "*s"]:
    """ln P[release > output], with full relative accuracy in the right tail."""
    return log_tails(_standardised(output, value, epsilon, sensitivity))[1]


def laplace(
    key: Array, value: Real[ArrayLike, "*s"], *, epsilon: Number, sensitivity: Number = 1.0
) -> Float[Array, "*s"]:
    """`value` plus independent Laplace noise of scale sensitivity / epsilon in every entry.

    Args:
      key: a PRNG key.
      value: the statistic, any shape.
      epsilon: the privacy parameter, > 0.
      sensitivity: the largest L1 change of the whole of `value` between neighbours.

    Returns:
      The release, same shape, in the default float type.

    Formal guarantees: epsilon-DP (pure) for the relation the sensitivity is for (Theorem 2.24). Not promised:
    protection from floating-point side channels (Mironov 2012), or a cryptographic generator.

    Raises:
      ValueError: epsilon or sensitivity not a finite positive number.

    >>> import jax
    >>> laplace(jax.random.key(0), 5, epsilon=1.0).shape
    ()
    """
    return jnp.asarray(value, float) + _scale(epsilon, sensitivity) * standard_laplace(key, jnp.shape(value))


@frozen
class Laplace:
    """The Laplace mechanism with its parameters bound; build it by `Laplace.create`.

    >>> Laplace.create(epsilon=0.5).guarantee().epsilon
    0.5
    """

    epsilon: Number
    sensitivity: float = static()
    relation: str = static()

    @classmethod
    def create(cls, *, epsilon: Number, sensitivity: Number = 1.0, relation: str = "REPLACE_ONE") -> "Laplace":
        """Checks and binds; `relation` is the one for which `sensitivity` holds.

        Raises:
          ValueError: epsilon or sensitivity not a finite positive number, or an unknown relation.
        """
        return cls(
            epsilon=arguments.epsilon(epsilon),
            sensitivity=float(_sensitivity(sensitivity)),
            relation=arguments.choice("relation", relation, RELATIONS),
        )

    def __call__(self, key: Array, value: Real[ArrayLike, "*s"]) -> Float[Array, "*s"]:
        """A release of `value`."""
        return laplace(key, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_pdf(self, output: Real[ArrayLike, "*#s"], value: Real[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln of the release's density."""
        return log_pdf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_cdf(self, output: Real[ArrayLike, "*#s"], value: Real[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release <= output]."""
        return log_cdf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_sf(self, output: Real[ArrayLike, "*#s"], value: Real[ArrayLike, "*#s"]) -> Float[Array, "*s"]:
        """ln P[release > output]."""
        return log_sf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under the relation of the sensitivity."""
        return Guarantee(epsilon=float(self.epsilon), delta=0.0, relation=self.relation)
