"""Public numbers, rounded to units in which floats count exactly: sums and differences of such numbers and integers are not rounded.

If they were rounded, one count more might become two, or none, and a score would lose its sensitivity of 1.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

LEAST_EXPONENT = -100  # binary, of the least unit


def unit(most: Float[Array, ""]) -> Float[Array, ""]:
    """A power of two, at most 1, whose multiples up to `most` are floats."""
    exponent = jnp.frexp(lax.stop_gradient(most))[1]
    return jnp.ldexp(
        jnp.ones((), most.dtype), jnp.clip(exponent - (jnp.finfo(most.dtype).nmant + 1), LEAST_EXPONENT, 0)
    )


def up(number: Float[Array, ""], most: Float[Array, ""]) -> Float[Array, ""]:
    """`number`, rounded up to a multiple of `unit(most)`; its derivatives pass."""
    finite, one = jnp.isfinite(number), unit(most)  # at a traced delta of 0 the reserve of `amplification` is infinite
    held = jnp.where(finite, number, 0.0)
    rounded = lax.stop_gradient(one * jnp.ceil(held / one)) + (held - lax.stop_gradient(held))
    return jnp.where(finite, rounded, number)


def down(number: Float[Array, ""], most: Float[Array, ""]) -> Float[Array, ""]:
    """The same, rounded down."""
    return -up(-number, most)
