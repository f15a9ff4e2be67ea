"""What every distribution of labelled examples has: a checked and compiled `sample`, and errors above the best of the class."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int

from dpjax.core import arguments
from dpjax.data.sample import wide_row, wide_rows
from dpjax.domains.events import Near


def of_tolerance(within: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method `within` with its alpha checked: TypeError or ValueError for a known alpha that is not a number >= 0."""

    @functools.wraps(within)
    def checked(self: Any, alpha: Any) -> Any:
        return within(self, jnp.asarray(arguments.real("alpha", alpha, at_least=0.0), float))

    return checked


def of_hypothesis(error: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method `error`, compiled, for one wide integer of the target's shape, checked: another shape would be broadcast, or cut."""
    compiled = jax.jit(error)

    @functools.wraps(error)
    def checked(self: Any, hypothesis: Any) -> Any:
        return compiled(self, wide_row("hypothesis", hypothesis, self.target.shape[-1]))

    return checked


def of_hypotheses(errors: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method `errors`, likewise, for as many wide integers as there are `targets`."""
    compiled = jax.jit(errors)

    @functools.wraps(errors)
    def checked(self: Any, hypotheses: Any) -> Any:
        k, limbs = self.targets.shape
        hypotheses = wide_rows("hypotheses", hypotheses, limbs)
        if len(hypotheses) != k:
            raise ValueError(f"hypotheses must be {k}, one for each target, got {len(hypotheses)}")
        return compiled(self, hypotheses)

    return checked


class Distribution:
    """A law of labelled examples that knows what labels them; see the concept classes.

    A distribution computes `error(hypothesis)`, or `errors(hypotheses)` of k hypotheses, exactly. Where a concept of the class gives the
    labels, as in all distributions except those of `concepts.agnostic`, the best concept errs nowhere and `excess` is the error.
    """

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        """n independent examples in `capacity` rows."""
        raise NotImplementedError

    def in_order_drawn(self, key: Array, capacity: int, n: Int[Array, ""]) -> Any:
        """As `draw`, but row by row, independently, also for distributions whose `draw` gives the examples in increasing order."""
        return self.draw(key, capacity, n)

    def excess(self, hypothesis: Any) -> Float[Array, ""]:
        """The hypothesis's error less that of the best concept of the class (MULTI Definition 5 at k = 1)."""
        return self.error(hypothesis)  # type: ignore[attr-defined]

    def excesses(self, hypotheses: Any) -> Float[Array, "k"]:
        """The same for each of k hypotheses and its own labels."""
        return self.errors(hypotheses)  # type: ignore[attr-defined]

    @of_tolerance
    def within(self, alpha: Float[ArrayLike, ""]) -> Any:
        """The event that the error is at most alpha, in the form that laws take.

        Raises:
          TypeError, ValueError: a known alpha that is not a number, or below 0.
        """
        return Near(distribution=self, alpha=jnp.asarray(alpha, float))

    def within_excess(self, alpha: Float[ArrayLike, ""]) -> Any:
        """The event that `excess` is at most alpha, in the form that laws take."""
        return self.within(alpha)

    def sample(self, key: Array, capacity: int, n: Int[ArrayLike, ""]) -> Any:
        """n independent labelled examples.

        Args:
          key: PRNG key.
          capacity: rows of the padded sample; see `dpjax.data.sample.bucket`.
          n: number of examples, 1 to `capacity`; may be traced.

        Returns:
          What the learners of this class take: a `Sample`, a `MultiSample`, `Examples`.

        Raises:
          TypeError: not a PRNG key, or numbers that are not ints. ValueError: capacity < 1, or n outside 1, ..., capacity. A traced n
          is not checked: outcomes on a sample that lacks rows have the status OUTSIDE_DOMAIN.

        >>> from dpjax.concepts import thresholds
        >>> thresholds.log_uniform(bits=8).sample(jax.random.key(0), 7, 50)
        Traceback (most recent call last):
        ...
        ValueError: n must be at most the capacity, 7, got 50
        """
        capacity = arguments.size("capacity", capacity)
        if not arguments.is_traced(n):
            n = arguments.integer("n", np.asarray(n)[()], at_least=1)
            if n > capacity:
                raise ValueError(f"n must be at most the capacity, {capacity}, got {n}")
        return _sample(self, arguments.key(key), capacity, jnp.asarray(n, jnp.int32))


@jax.jit(static_argnums=2)
def _sample(distribution: Distribution, key: Array, capacity: int, n: Array) -> Any:
    return distribution.draw(key, capacity, n)
