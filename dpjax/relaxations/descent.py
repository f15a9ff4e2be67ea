"""Adam at a rate that falls to 0 as a cosine: the best point that it meets."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float


def best_met(objective: Callable[[Any], Array], start: Any, learning_rate: Float[Array, ""], steps: int) -> Any:
    """The point at which the objective was least, of those before each of so many steps; a pytree like the start.

    >>> float(best_met(lambda x: (x - 3.0) ** 2, jnp.array(2.0), jnp.array(0.1), 100).round(2))
    3.0
    """
    optimiser = optax.scale_by_adam()

    def step(carry: Any, number: Array) -> tuple[Any, None]:
        point, state, best, least = carry
        value, slope = jax.value_and_grad(objective)(point)
        better = value < least
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), point, best)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to the power of its count of steps
            move, state = optimiser.update(slope, state)
        rate = learning_rate * 0.5 * (1.0 + jnp.cos(jnp.pi * number))
        point = optax.apply_updates(point, jax.tree.map(lambda each: -rate * each, move))
        return (point, state, best, jnp.minimum(value, least)), None

    first = (start, optimiser.init(start), start, jnp.asarray(jnp.inf, learning_rate.dtype))
    (_, _, best, _), _ = jax.lax.scan(step, first, jnp.arange(steps).astype(learning_rate.dtype) / steps)
    return best
