"""Argument checks. Each names the argument, the value and the rule; values under tracing pass unchecked.

A factory calls these on what the user wrote, before anything is compiled. Under `jit`, `vmap` or `grad` the value is a
tracer without a number: it is let through, and what goes wrong then shows in the outcome's status.
"""

import math
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_traced(value: Any) -> bool:
    """Whether `value` has no number yet."""
    return isinstance(value, jax.core.Tracer)


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as int; TypeError unless an integer (bool is not), ValueError outside the bounds."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral | np.integer):
        raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
    value = int(value)
    if value < at_least or (at_most is not None and value > at_most):
        rule = f">= {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ValueError(f"{name} must be {rule}, got {value}")
    return value


def real(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """`value` as a parameter leaf: float64 on the host if it has a number, else the tracer in the default float.

    Host float64 keeps guarantees exact; a compiled program sees one dtype whatever Python type came in, so a sweep
    never retraces. NaN is refused by every bound.
    """
    if is_traced(value):
        return jnp.asarray(value, float)
    if isinstance(value, bool | np.bool_ | str | bytes) or np.ndim(value) != 0:
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}") from None
    rules = [
        (above is None or number > above, f"> {above}"),
        (at_least is None or number >= at_least, f">= {at_least}"),
        (below is None or number < below, f"< {below}"),
        (at_most is None or number <= at_most, f"<= {at_most}"),
        (not math.isnan(number), "a number, not NaN"),
    ]
    for holds, rule in rules:
        if not holds:
            raise ValueError(f"{name} must be {rule}, got {value!r}")
    return np.float64(number)


def epsilon(value: Any, name: str = "epsilon") -> Any:
    """A privacy parameter epsilon: a finite number > 0."""
    return real(name, value, above=0.0, below=math.inf)


def delta(value: Any, name: str = "delta", *, positive: bool = True) -> Any:
    """A privacy parameter delta: in (0, 1), or in [0, 1) where the mechanism can do without."""
    return real(name, value, above=0.0 if positive else None, at_least=0.0, below=1.0)


def fraction(name: str, value: Any) -> Any:
    """A number strictly between 0 and 1."""
    return real(name, value, above=0.0, below=1.0)


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def key(value: Any) -> Any:
    """A single PRNG key, as `jax.random.key` makes it, or of the older form of two words; TypeError if it is none."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    if not (typed or (dtype == np.uint32 and shape == (2,))):
        got = type(value).__name__ if dtype is None else f"an array of {dtype} of shape {shape}"
        raise TypeError(f"key must be a single PRNG key as jax.random.key(0) makes it, got {got}")
    return value
