"""The logarithm of positive normal numbers, as random words make them, at two thirds of the cost of XLA's."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

_HALF_ROOT = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)
_SERIES = (
    *(7.0376836e-2, -1.1514610e-1, 1.1676998e-1, -1.2420141e-1, 1.4249323e-1),
    *(-1.6668058e-1, 2.0000715e-1, -2.4999994e-1, 3.3333331e-1),
)
_LN2 = (-2.12194440e-4, 0.693359375)  # ln 2 in two parts, of which the second has few digits: its multiples are exact


def positive(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """ln x of positive normal numbers, in float32 to a relative 1.2e-7; without derivatives.

    XLA's logarithm also handles zeros, infinities and numbers below 1e-38. With x = 2^e (1 + f), f between sqrt(1/2) - 1 and sqrt(2) - 1,
    ln x is e ln 2 + f - f^2/2 + f^3 P(f), with the polynomial P of Cephes' logf.
    """
    if x.dtype != jnp.float32:
        return jnp.log(x)
    word = lax.bitcast_convert_type(x, jnp.int32)
    exponent = (word - _HALF_ROOT) >> np.int32(23)
    f = lax.bitcast_convert_type(word - (exponent << np.int32(23)), jnp.float32) - 1
    square, e = f * f, exponent.astype(jnp.float32)
    series = jnp.full_like(f, _SERIES[0])
    for coefficient in _SERIES[1:]:
        series = series * f + coefficient
    return f + (f * square * series + e * _LN2[0] - 0.5 * square) + e * _LN2[1]
