"""What every distribution of labelled examples has: a checked and compiled `sample`."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Int

from dpjax.core import arguments


class Distribution:
    """A law of labelled examples that knows what labels them; see the concept classes."""

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        """n independent examples in `capacity` rows."""
        raise NotImplementedError

    def sample(self, key: Array, capacity: int, n: Int[ArrayLike, ""]) -> Any:
        """n independent labelled examples.

        Args:
          key: PRNG key.
          capacity: rows of the padded sample; see `dpjax.data.sample.bucket`.
          n: number of examples, 1 to `capacity`; may be traced.

        Returns:
          What the learners of this class take: a `Sample`, a `MultiSample`, `Examples`.

        Raises:
          TypeError: no key, or numbers that are no ints. ValueError: capacity < 1, or n outside 1, ..., capacity. A traced n passes
          unchecked: outcomes of a sample that lacks its rows have the status OUTSIDE_DOMAIN.

        >>> from dpjax.concepts import thresholds
        >>> thresholds.log_uniform(bits=8).sample(jax.random.key(0), 7, 50)
        Traceback (most recent call last):
        ...
        ValueError: n must be from 1 to 7, got 50
        """
        capacity = arguments.integer("capacity", capacity, at_least=1)
        if not arguments.is_traced(n):
            n = arguments.integer("n", np.asarray(n)[()], at_least=1, at_most=capacity)
        return _sample(self, arguments.key(key), capacity, jnp.asarray(n, jnp.int32))


@functools.partial(jax.jit, static_argnums=2)
def _sample(distribution: Distribution, key: Array, capacity: int, n: Array) -> Any:
    return distribution.draw(key, capacity, n)
