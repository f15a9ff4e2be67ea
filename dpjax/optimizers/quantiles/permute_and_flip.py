"""Quantiles at any fractions by permute-and-flip on the rank error, one run for each.

The rank error e and the rate lambda are those of `rank_exponential`, and so is the proof. In each run a point weighs e^(-lambda e) times
its weight in the base measure. The proof bounds the range of the moves of the logs of these weights, and that range makes permute-and-flip
private, too (`mechanisms.permute_and_flip_piecewise`, McKenna and Sheldon 2020). All runs together are (epsilon, 0)-private under
ADD_OR_REMOVE_ONE. The tighter accounting of bounded ranges does not hold for it: for totals of rho, or with a large delta, use
`rank_exponential`.

**Utility.** With the uniform measure it never errs more than `rank_exponential`: no rank error is exceeded more often. By scales this holds
for the weights, of which the measure is a part: it favours points that weigh more, and where no weight stands out it may err more (at
epsilon = 0.02 by 1.88 ranks in place of 1.81, for five copies of 4 and five of 15 among 16 points). It errs half as often where a single
point is right and all others are far behind; where a gap of many points is right, nothing is gained. Integers and values with few digits
are of the first kind: at epsilon = 0.4 a median of 140 delays in minutes misses by 0.81 ranks on average (1.09 by `rank_exponential`, both
by scales and by exact laws; cell 11 of the experiment `quantile_contest` at `--seed 2`).

Some point has e <= 0, and a share 2^-d of the uniform measure: so e > t has probability at most 2^(d - 1) e^(-lambda t) in a run, and all q
errors are at most ((d - 1) ln 2 + ln(q/beta))/lambda, except with probability beta; by scales d ln 2 replaces (d - 1) ln 2.

The plain twin is `dpjax.verify.plain.quantiles.permute_and_flip_laws`.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, Float

from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import permute_and_flip_piecewise as flips
from dpjax.optimizers.quantiles.rank_exponential import RankExponential, rank_exponential
from dpjax.optimizers.quantiles.scales import LN2


@frozen
class PermuteAndFlip(RankExponential):
    """Quantiles at any fractions by permute-and-flip on the rank error; build it by `permute_and_flip`. Its delta is 0."""

    def _point(self, key: Array, pieces: Pieces) -> flips.Point:
        return flips.draw(key, pieces, super()._log_density(pieces))

    def _log_density(self, pieces: Pieces) -> Float[Array, "pieces"]:
        return flips.log_masses(pieces, super()._log_density(pieces))

    def _nats(self) -> float:
        return super()._nats() - LN2

    def zcdp(self) -> float:
        """rho for which all quantiles together are rho-zCDP under ADD_OR_REMOVE_ONE: that of any (epsilon, 0)-private mechanism."""
        return self.guarantee().zcdp()


def permute_and_flip(
    *, bits: int, fractions: Sequence[float], epsilon: Any, base: str = "uniform", origin: int = 0
) -> PermuteAndFlip:
    """Quantiles at `fractions` of the points by permute-and-flip on the rank error; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together. Not promised: protection from floating-point side
    channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, > 0, finite; may be traced.
      base: what outputs weigh before any data are seen: "uniform", or "scales", half of which is by scales, for values of unknown scale.
      origin: the public point around which scales lie, 0 to 2^bits.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers.quantiles import rank_exponential
    >>> ages = Points.create(wide.from_ints([20] * 6 + [21] * 9 + [22] * 5, 7))
    >>> wide.to_ints(permute_and_flip(bits=7, fractions=[0.5], epsilon=1.0)(jax.random.key(0), ages).hypothesis)
    [21]
    >>> [round(float(make(bits=7, fractions=[0.5], epsilon=1.0).failure_probability(ages, error=0.01)), 4)
    ...  for make in (rank_exponential, permute_and_flip)]
    [0.0006, 0.0003]
    """
    epsilon = arguments.epsilon(epsilon)
    other = rank_exponential(bits=bits, fractions=fractions, epsilon=epsilon, base=base, origin=origin)
    return PermuteAndFlip(**vars(other))
