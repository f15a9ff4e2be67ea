"""The Laplace mechanism (BNS Theorem 2.24): noise of density (1/2b) exp(-|x|/b), b = sensitivity/epsilon."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Real, UInt32

from dpjax.accounting.guarantee import RELATIONS
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Between, Noise, Number, reals, sensitivity_of

LN2 = math.log(2.0)
FAR = 1e4  # scales of noise: beyond them even float64 has no probability left


def standard_laplace(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Laplace variates of scale 1: one bit gives the sign, 63 the magnitude; the tails are correct down to 1e-18."""
    return random.of_pairs(_signed, key, shape)


def _signed(high: UInt32[Array, "*s"], low: UInt32[Array, "*s"]) -> Float[Array, "*s"]:
    """The variate made from two random words."""
    magnitude = random.log_uniform((high << 1) | (low >> 31), low << 1)
    return jnp.where(high >= jnp.uint32(2**31), -magnitude, magnitude)


def log_tails(x: Float[Array, "*s"]) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[Lap(1) <= x], ln P[Lap(1) > x]), each accurate however small; with correct gradients for finite x, at 0 as well."""
    small = jnp.where(x <= 0, x, -x) - LN2  # the rarer side
    large = jnp.log1p(-jnp.exp(small))
    return jnp.where(x <= 0, small, large), jnp.where(x <= 0, large, small)


def log_passed(x: Float[Array, "*s"], rise: Any, fall: Any) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[x passes], ln P[not]) in a test with asymmetric Laplace noise, each accurate however small.

    x passes with probability fall/(rise + fall) e^(rise x) for x <= 0, and fails with rise/(rise + fall) e^(-fall x) beyond: the slope of
    the first logarithm is between 0 and `rise`, that of the second between -`fall` and 0.
    """
    below = x <= 0
    nearer = jnp.where(below, rise * x, -fall * x) + jnp.log(jnp.where(below, fall, rise) / (rise + fall))
    other = logspace.log1mexp(nearer)
    return jnp.where(below, nearer, other), jnp.where(below, other, nearer)


def _standardised(output: ArrayLike, value: ArrayLike, epsilon: Number, sensitivity: Number) -> Array:
    """(output - value) in units of the noise's scale."""
    return (reals("output", output) - reals("value", value)) / _scale(epsilon, sensitivity)


def _scale(epsilon: Number, sensitivity: Number) -> Array:
    epsilon = arguments.epsilon(epsilon)
    sensitivity = arguments.real("sensitivity", sensitivity, above=0.0, below=math.inf)
    return jnp.asarray(sensitivity / epsilon, float)


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

    Formal guarantees: epsilon-DP (pure) under the relation for which the sensitivity holds (Theorem 2.24). Not
    promised: protection from floating-point side channels (Mironov 2012), or a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key, or value does not hold real numbers. ValueError: epsilon or sensitivity not a finite positive
        number.

    >>> import jax
    >>> laplace(jax.random.key(0), 5, epsilon=1.0).shape
    ()
    """
    value = reals("value", value)
    return value + _scale(epsilon, sensitivity) * standard_laplace(arguments.key(key), value.shape)


def _stretch(near: Float[Array, "*s"], far: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """P[near < Lap(1) <= far] for 0 <= near <= far, without cancellation."""
    # Both may be infinite, where floats do not hold `FAR` scales.
    return jnp.exp(-near) * -jnp.expm1(jnp.where(near < far, near - far, 0.0)) / 2


@frozen
class Laplace(Noise):
    """The Laplace mechanism on numbers; see `laplace`, and `mechanism`, which makes it. Its `log_prob` is the ln of a density.

    The plain twin of its interval law is `scipy.stats.laplace`.
    """

    whole = False

    epsilon: Number
    sensitivity: float = static()
    relation: str = static()

    def fit(self, data: Any) -> Float[Array, "..."]:
        """Numbers as floats; integers too large for floats to hold exactly are refused, or become NaN if they are traced."""
        value, most = super().fit(data), arguments.most_counted()
        if not jnp.issubdtype(value.dtype, jnp.integer):
            return value.astype(float)
        for end in arguments.extremes(value):
            if abs(end) > most:
                rule = f"whole numbers up to {most} in size, which floats hold (`geometric` takes larger ones)"
                raise ValueError(f"value must be {rule}, got {end}")
        limits = jnp.iinfo(value.dtype)
        if limits.max <= most:
            return value.astype(float)
        return jnp.where((value >= max(-most, limits.min)) & (value <= most), value.astype(float), jnp.nan)

    def add(self, key: Array, value: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return laplace(key, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def log_density(self, value: Float[Array, "*s"], output: Float[Array, "*s"]) -> Float[Array, "*s"]:
        return log_pdf(output, value, epsilon=self.epsilon, sensitivity=self.sensitivity)

    def split(self, value: Float[Array, "*s"], event: Between) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        scale = _scale(self.epsilon, self.sensitivity)
        # Ends far out, also infinite ones, are clipped to where no probability is left; otherwise gradients would be inf * 0.
        reach = jax.lax.stop_gradient(FAR * scale)
        low, high = (jnp.clip(end - value, -reach, reach) / scale for end in (event.low, event.high))
        # The parts above and below 0 are each a difference within one tail, which keeps its digits as a product.
        above, below = (
            (jnp.maximum(low, 0.0), jnp.maximum(high, 0.0)),
            (jnp.maximum(-high, 0.0), jnp.maximum(-low, 0.0)),
        )
        inside = _stretch(*above) + _stretch(*below)
        return inside, jnp.exp(log_tails(low)[0]) + jnp.exp(log_tails(high)[1])


def mechanism(*, epsilon: Number, sensitivity: Number = 1.0, relation: str = "REPLACE_ONE") -> Laplace:
    """The Laplace mechanism, epsilon-private.

    Args:
      epsilon: > 0, finite.
      sensitivity: the largest L1 change of all the numbers between neighbours.
      relation: the one for which `sensitivity` holds.

    Raises:
      TypeError, ValueError: epsilon or sensitivity not a finite positive number, or an unknown relation.

    >>> release = mechanism(epsilon=0.5)
    >>> release.guarantee().epsilon
    0.5
    >>> [round(float(p), 4) for p in release.probability(7.0, (5.0, 9.0))]
    [0.6321, 0.3679]
    """
    epsilon = arguments.epsilon(epsilon)
    return Laplace(
        epsilon=epsilon,
        sensitivity=sensitivity_of(sensitivity, epsilon),
        relation=arguments.choice("relation", relation, RELATIONS),
    )
