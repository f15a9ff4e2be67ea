"""A budget left open, shares of it, and the rounding of what is spent for release."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.relaxations.accountant import checked, counts_of

# A budget is lowered by the first of these that the host accountant confirms: 2^-50 is rounding in float64, 2^-16 would be a mistake.
_LOWERED = (0.0, *(2.0**-k for k in range(50, 15, -2)))
_LEAST_SHARE = 1e-4  # softmaxes are kept this far from 0: every mechanism needs some, and thresholds stay countable


def shares(logits: Float[Array, "parts"], total: Any, times: Sequence[int]) -> Float[Array, "parts"]:
    """What a mechanism of each of several groups may spend, so that all of them together spend the total: total * softmax / times.

    Args:
      logits: one for each group; any real numbers.
      total: >= 0.
      times: how many mechanisms each group has.

    Raises:
      TypeError, ValueError: a known total that is negative or not a number, times that are not counts, a different number of logits, or
        known ones that are not real numbers.

    >>> [round(share, 6) for share in shares(jnp.zeros(2), 1.0, times=(1, 5)).tolist()]
    [0.5, 0.1]
    """
    total = arguments.real("total", total, at_least=0.0, below=math.inf)
    logits = checked("logits", logits, lambda one: arguments.number("logits", one, above=-math.inf, below=math.inf))
    times = counts_of(times)
    if logits.shape != (len(times),):
        raise ValueError(f"logits must have one entry for each of {len(times)} groups, got shape {logits.shape}")
    parts = jax.nn.softmax(logits)
    parts = (parts + _LEAST_SHARE) / (1 + len(times) * _LEAST_SHARE)
    return jnp.asarray(total, float) * parts / jnp.asarray(times, logits.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Budgeted:
    """An algorithm with its budget left open: every point is the algorithm with a budget that keeps the total.

    Attributes:
      start: the point of the algorithm's own budget; what that left unspent is distributed, and shares below 1e-4 are raised.
      total: the guarantee that is kept.
      spend: point -> what is spent, a pytree of floats, none of which may be larger for the same privacy; can be traced.
      build: (what is spent, point) -> the algorithm; on the host its sizes are integers, traced it may be a mixture of roundings.
      relax: for algorithms with integers among their numbers, point -> (weights, the algorithms with each rounding, stacked); or None.
    """

    start: Any
    total: Guarantee
    spend: Callable[[Any], Any]
    build: Callable[[Any, Any], Any]
    relax: Callable[[Any], tuple[Float[Array, "roundings"], Any]] | None = None

    def __call__(self, point: Any) -> Any:
        """The algorithm at a point, traced or not: nothing is rounded, and nothing but the point is to be trusted; see `rounded`."""
        return self.build(self.spend(point), point)

    def failure(self, point: Any, failure: Callable[[Any], Array]) -> Array:
        """`failure` of the algorithm at a point; with integer parameters, its mean over rounding each at random to a neighbour.

        The mean over roundings is the law of the algorithm that rounds by a coin, and it is multilinear between the integers. Its
        derivative is a difference of laws, so no law is evaluated at numbers that are not integers.
        """
        if self.relax is None:
            return failure(self(point))
        weights, algorithms = self.relax(point)
        each = jax.lax.map(failure, algorithms)
        return jnp.sum(weights * each)

    def rounded(self, point: Any) -> Any:
        """The algorithm at a point, for release: `guarantee()` of it, computed on the host from its numbers, covers the total.

        Raises:
          TypeError: a traced point, or one of another structure.
          ValueError: numbers that are not finite, or so far out that float64 cannot hold the budget; or no rounding of what is spent keeps
            the total (the parametrisation is wrong).
        """
        if str(jax.tree.structure(point)) != str(jax.tree.structure(self.start)):
            raise TypeError(f"point must be like {self.start!r}, got {point!r}")
        for leaf in jax.tree.leaves(point):
            if arguments.is_traced(leaf):
                raise TypeError(f"point must hold known numbers, as the host rounds them, got {leaf!r}")
            if not np.all(np.isfinite(arguments.array("point", leaf))):
                raise ValueError(f"point must hold finite numbers, got {leaf!r}")
        with jax.enable_x64():
            point = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, np.float64)), point)
            spent = jax.tree.map(np.asarray, self.spend(point))
        point = jax.tree.map(np.asarray, point)
        for lowered in _LOWERED:
            try:
                algorithm = self.build(jax.tree.map(functools.partial(_down, lowered=lowered), spent), point)
            except OverflowError as error:
                raise ValueError(f"point must be so near 0 that float64 holds its budget, got {point}") from error
            if algorithm.guarantee().covers(self.total.epsilon, self.total.delta):
                return algorithm
        raise ValueError(f"spend must keep {self.total} at every point, got {algorithm.guarantee()} at {point}")


def _down(value: np.ndarray, lowered: float) -> np.ndarray:
    """The value lowered by a relative amount, then down to a float32, so that compiled programs use the numbers that the host adds up."""
    target = np.asarray(value, np.float64) * (1 - lowered)
    with np.errstate(over="ignore", under="ignore"):
        single = target.astype(np.float32)
    below = np.where(single > target, np.nextafter(single, np.float32(-np.inf)), single).astype(np.float64)
    return np.where(below >= np.finfo(np.float32).tiny, below, target)


def logits(parts: Any) -> np.ndarray:
    """The logits of which `shares` makes these parts, up to their sum; parts too small for it get the least logits."""
    given = np.asarray(parts, np.float64)
    softmax = given / given.sum() * (1 + len(given) * _LEAST_SHARE) - _LEAST_SHARE
    logs = np.log(np.maximum(softmax, _LEAST_SHARE**2))
    return logs - logs.mean()


def logit(p: float) -> np.float64:
    return np.float64(math.log(p) - math.log1p(-p))


def odds(x: Any) -> Any:
    """1 / (1 + e^-x), on the host in float64."""
    if isinstance(x, np.ndarray | np.generic | float):
        with np.errstate(over="ignore"):  # far below 0 it is 0
            return np.float64(1 / (1 + np.exp(-np.float64(x))))
    return jax.nn.sigmoid(x)
