"""The noisy count of `joint` and `inverse_sensitivity`: for a small share of epsilon it says about how many points there are.

It is n + Z, where Z is two-sided geometric noise of rate a. It is rounded to steps before it is used, so a law sums over a few dozen cases.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dpjax.mechanisms.base import Between
from dpjax.mechanisms.geometric import mechanism as geometric_mechanism

REACHES = 4  # how many R are tried
APART = 0.4  # from one R to the next the probability of noise beyond it falls by e^-0.4, or they are one step apart


def reach(kind: Any) -> float:
    """The distance from n, in units of 1 / a, that the count exceeds with the probability of a rounding unit of that dtype."""
    return -math.log(jnp.finfo(kind).eps)


def chances(
    n: Int[Array, ""], rate: Float[Array, ""], edges: Float[Array, "k"]
) -> tuple[Float[Array, "k-1"], Float[Array, ""]]:
    """(P[the count is from one edge on and below the next], P[it is between no two]). Edges are increasing integers."""
    at = jnp.clip(edges, -(2.0**30), 2.0**30).astype(jnp.int32)
    noise = geometric_mechanism(epsilon=rate)
    each, _ = noise.split(jnp.broadcast_to(n, at[1:].shape), Between(low=at[:-1], high=at[1:]))
    _, beyond = noise.split(n, Between(low=at[0], high=at[-1]))
    return each, beyond


@dataclasses.dataclass(frozen=True)
class Tail:
    """The harm that the noise of a count does, where noise of up to `last` steps does none.

    Attributes:
      rate: the rate of the noise.
      step: the length of a step, in points.
      last: the greatest noise that does no harm, in steps.
      sides: 2 if noise in both directions does harm, 1 if only noise above n does.
    """

    rate: float
    step: float
    last: int
    sides: int

    def log_beyond(self, steps: Any) -> Any:
        """ln P[the noise is more than `steps` steps]."""
        least = np.floor(self.step * steps) + 1
        return math.log(self.sides) - self.rate * least - math.log1p(math.exp(-self.rate))

    def log_mean(self, reach: int, kappa: float, aside: float) -> float:
        """ln of a bound on the mean of exp(kappa D) over noise of more than `last` steps and up to `reach`, if noise of `last` + r steps
        misleads by at most D = r - 1 + aside steps; -inf if there is none.

        Noise beyond k steps has a probability of at most sides exp(-rate step k) / (1 + exp(-rate)): a geometric sum.
        """
        terms, growth = reach - self.last, (kappa - self.rate) * self.step
        if terms == 0:
            return -math.inf
        first = (
            math.log(self.sides)
            - math.log1p(math.exp(-self.rate))
            + (kappa * aside - self.rate * self.last) * self.step
        )
        ratio = math.expm1(-abs(growth) * terms) / math.expm1(-abs(growth)) if growth else terms
        return first + max(growth, 0.0) * (terms - 1) + math.log(ratio)

    def least_error(self, beta: float, error: Callable[[int, float], float]) -> float:
        """The least of error(R, what is left of beta) over R, where noise of more than R steps counts as a failure."""
        counts = (math.log(self.sides) - math.log(beta) - math.log1p(math.exp(-self.rate))) / self.rate
        first, apart = max(self.last, math.floor(counts / self.step)), max(round(APART / (self.rate * self.step)), 1)
        tried = [first + i * apart for i in range(REACHES)]
        left = {reach: beta - math.exp(self.log_beyond(reach)) for reach in tried}
        return min(error(reach, rest) for reach, rest in left.items() if rest > 0)
