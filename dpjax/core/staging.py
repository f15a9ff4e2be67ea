"""Keeping XLA from computing an intermediate array over and over."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

T = TypeVar("T")


def once(always: Bool[Array, ""], function: Callable[..., T], *operands: Any) -> T:
    """function(*operands), computed once and stored, however often it is used.

    XLA's CPU fusion copies cheap arithmetic into every consumer. With limbs that depend on each other the copies multiply from stage to
    stage (18-fold for an addition of three limbs), and an optimization barrier is removed before fusion. The outputs of a conditional are
    stored, so the function becomes a branch of one whose condition always holds.

    Args:
      always: true, but for reasons that the compiler cannot know (a traced parameter is in its range). Batched by `vmap` it becomes a
        select: the same result, without the gain.
      function: pure.
      operands: its arguments.

    >>> once(jnp.arange(3)[1] == 1, lambda x: x + 1, jnp.ones(2)).tolist()
    [2.0, 2.0]
    """
    shapes = jax.eval_shape(function, *operands)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return lax.cond(always, function, lambda *_: zeros, *operands)
