"""MULTI Algorithm 2 as printed: thresholds alpha n / 4 and alpha n / 2 (Proposition 30)."""

from typing import Any

from jaxtyping import Array, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.sanitizers import base
from dpjax.sanitizers.points.noisy_counts import NoisyCounts


@frozen
class PointRelease(NoisyCounts):
    """Algorithm 2: neither counts <= alpha n / 4 nor noisy ones <= alpha n / 2 are ever released; see `noisy_counts`."""

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    limbs: int = static()

    @property
    def low(self) -> Any:  # type: ignore[override]
        return self.alpha * self.n / 4

    @property
    def high(self) -> Any:  # type: ignore[override]
        return self.alpha * self.n / 2

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE (Proposition 30); none if n is too small for that."""
        epsilon, delta, alpha = float(self.epsilon), float(self.delta), float(self.alpha)
        private = self.n >= bounds.point_release_private(epsilon, delta, alpha)
        return Guarantee(epsilon, delta, REPLACE_ONE) if private else Guarantee.none(REPLACE_ONE)


def release(*, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False) -> PointRelease:
    """MULTI Algorithm 2 as printed: neither counts <= alpha n / 4 nor noisy ones <= alpha n / 2 are ever released.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d.
      n: number of examples, public.
      epsilon: > 0. delta: in (0, 1).
      alpha: error, in (0, 1); met with probability 1 - beta for n >= `bounds.point_release`.
      allow_unproved: simulate below the n that privacy needs; `guarantee()` is then none.

    Raises:
      TypeError, ValueError: an argument out of range, or n < `bounds.point_release_private`.
    """
    given = {
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "alpha": arguments.fraction("alpha", alpha),
    }
    where = base.domain(bits, n)
    base.refuse_small(where["n"], bounds.point_release_private, "MULTI Proposition 30", allow_unproved, **given)
    return PointRelease(**where, **given)
