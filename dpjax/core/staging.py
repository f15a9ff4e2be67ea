"""Keeping XLA from computing an intermediate array over and over."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

T = TypeVar("T")
SHORT_ROW = 8  # of limbs: what is cut into columns, so that vector instructions run along the rows


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

    def stored(*operands: Any) -> Any:
        return apart(function(*together(operands)))

    operands = apart(operands)
    shapes = jax.eval_shape(stored, *operands)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return together(lax.cond(always, stored, lambda *_: zeros, *operands))


class _Columns(tuple):
    """The columns of an array with short rows (of limbs): stored one by one."""


jax.tree_util.register_pytree_node(_Columns, lambda parts: (tuple(parts), None), lambda _, parts: _Columns(parts))


def apart(tree: Any) -> Any:
    """Arrays with short rows cut into columns. What a loop reads should be cut before it, and put `together` inside."""

    def cut(leaf: Array) -> Any:
        short = leaf.ndim > 1 and leaf.shape[-1] <= SHORT_ROW
        return _Columns(leaf[..., i] for i in range(leaf.shape[-1])) if short else leaf

    return jax.tree.map(cut, tree)


def together(tree: Any) -> Any:
    """The inverse."""
    is_cut = lambda part: isinstance(part, _Columns)  # noqa: E731
    return jax.tree.map(lambda part: jnp.stack(part, axis=-1) if is_cut(part) else part, tree, is_leaf=is_cut)
