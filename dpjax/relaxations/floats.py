"""The numbers of an algorithm that an optimiser may move: its floating-point leaves."""

from typing import Any

import jax
import jax.numpy as jnp


def partition(tree: Any) -> tuple[Any, Any]:
    """(the floating-point leaves of a pytree, all its other leaves), each with None in place of the rest.

    An algorithm is a pytree whose epsilon, delta and the like are floats; counts, bits and flags are integers and have no derivative.
    `jax.grad` and optax take the first part as it is. A step moves every float, so an algorithm whose guarantee is computed from its
    numbers promises something else afterwards; `dpjax.relaxations.budgets` moves them so that the total stays what it was.

    Args:
      tree: an algorithm, or any pytree.

    Returns:
      Two pytrees of the same structure but for the Nones; `combine` rebuilds the tree.

    >>> import optax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point
    >>> points = Points.create(wide.from_ints([3, 5, 5, 9, 12], 4))
    >>> floats, others = partition(interior_point.exponential(bits=4, epsilon=1.0))
    >>> slope = jax.grad(lambda floats: combine(floats, others).failure_probability(points, error=0.0))(floats)
    >>> moved = optax.apply_updates(floats, jax.tree.map(lambda leaf: -leaf, slope))
    >>> combine(moved, others).guarantee().epsilon > 1.0
    True
    """

    def is_float(leaf: Any) -> bool:
        return bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating))

    floats = jax.tree.map(lambda leaf: jnp.asarray(leaf) if is_float(leaf) else None, tree)
    return floats, jax.tree.map(lambda leaf: None if is_float(leaf) else leaf, tree)


def combine(floats: Any, others: Any) -> Any:
    """The tree that was partitioned, with these floats.

    >>> combine(*partition({"epsilon": 0.5, "bits": 8}))["bits"]
    8
    """
    return jax.tree.map(
        lambda one, other: other if one is None else one, floats, others, is_leaf=lambda leaf: leaf is None
    )
