"""Sets of k points (BNS Figure 10): SanPoints at alpha/k."""

from typing import Any

from dpjax.core import arguments
from dpjax.sanitizers.points.san_points import SanPoints, san_points


def k_points(
    *, k: int, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False
) -> SanPoints:
    """SanPoints at alpha/k, so that `Frequencies.total` of any k distinct points is within alpha.

    Args:
      k: points in a set.
      bits, n, epsilon, delta, alpha, allow_unproved: as for `san_points`.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    alpha = arguments.fraction("alpha", alpha) / arguments.size("k", k)
    return san_points(bits=bits, n=n, epsilon=epsilon, delta=delta, alpha=alpha, allow_unproved=allow_unproved)
