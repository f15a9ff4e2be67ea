"""The noisy count of `joint` and `inverse_sensitivity`: a little of epsilon says about how many points there are.

It is n + Z, Z two-sided geometric noise of a rate a, and what is made of it is rounded to steps: so a law sums over some dozens of cases.
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
APART = 0.4  # from one to the next the chance of noise beyond falls by e^-0.4, or they are a step apart


def reach(kind: Any) -> float:
    """Further than so many times 1 / a from n the count is with a probability of a rounding unit of that dtype."""
    return -math.log(jnp.finfo(kind).eps)


def chances(
    n: Int[Array, ""], rate: Float[Array, ""], edges: Float[Array, "k"]
) -> tuple[Float[Array, "k-1"], Float[Array, ""]]:
    """(P[the count is from one edge on and below the next], P[it is between no two]). Edges are whole, increasing."""
    at = jnp.clip(edges, -(2.0**30), 2.0**30).astype(jnp.int32)
    noise = geometric_mechanism(epsilon=rate)
    each, _ = noise.split(jnp.broadcast_to(n, at[1:].shape), Between(low=at[:-1], high=at[1:]))
    _, beyond = noise.split(n, Between(low=at[0], high=at[-1]))
    return each, beyond


@dataclasses.dataclass(frozen=True)
class Tail:
    """How far astray the noise of a count leads, where noise of up to `last` steps does no harm.

    Attributes:
      rate: of the noise.
      step: in points.
      last: see above.
      sides: 2 if noise in both directions does, 1 if only what is above n does.
    """

    rate: float
    step: float
    last: int
    sides: int

    def log_beyond(self, steps: Any) -> Any:
        """ln P[the noise is more than so many steps]."""
        least = np.floor(self.step * steps) + 1
        return math.log(self.sides) - self.rate * least - math.log1p(math.exp(-self.rate))

    def log_mean(self, reach: int, kappa: float, aside: float) -> float:
        """ln of a bound on the mean of exp(kappa D) over noise of more than `last` steps and up to `reach`, if r steps further than `last`
        it leads astray by D = r - 1 + aside steps at most; -inf if there is none.

        Of noise beyond k steps the probability is at most sides exp(-rate step k) / (1 + exp(-rate)): a geometric sum.
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
        """The least of error(R, what is left of beta), if of noise of more than R steps nothing is said."""
        counts = (math.log(self.sides) - math.log(beta) - math.log1p(math.exp(-self.rate))) / self.rate
        first, apart = max(self.last, math.floor(counts / self.step)), max(round(APART / (self.rate * self.step)), 1)
        tried = [first + i * apart for i in range(REACHES)]
        left = {reach: beta - math.exp(self.log_beyond(reach)) for reach in tried}
        return min(error(reach, rest) for reach, rest in left.items() if rest > 0)
