"""How often every point occurs, to within alpha n: sanitizers for POINT_d, over X_d = {0, ..., 2^d - 1}, n public.

| factory | algorithm | private (REPLACE_ONE) | n for error alpha with probability 1 - beta |
|---|---|---|---|
| `release` | MULTI Algorithm 2 | (epsilon, delta) if exp(-epsilon n alpha/8 + epsilon/2) <= delta | `bounds.point_release` |
| `histogram` | the same with the best thresholds | (epsilon, delta) for every n | `bounds.point_histogram` |
| `sparse_histogram` | noisy counts of the whole domain | (epsilon, 0) for every n | `bounds.sparse_histogram` |
| `san_points` | SanPoints (BNS Figure 9) | (epsilon, delta) if n >= `bounds.san_points_private` | `bounds.san_points` |
| `k_points` | sets of k points (BNS Figure 10) | SanPoints at alpha/k | the same at alpha/k |

    >>> import jax
    >>> from dpjax import Points, Weighted
    >>> from dpjax.domains import wide
    >>> from dpjax.sanitizers import points
    >>> data = Points.create(wide.from_ints([7] * 700 + [2**50] * 295 + [1, 2, 3, 4, 5], 64))
    >>> mechanism = points.histogram(bits=64, n=1000, epsilon=1.0, delta=1e-6)
    >>> released = mechanism(jax.random.key(0), data).hypothesis
    >>> [round(float(a), 1) for a in released.answer(wide.from_ints([7, 2**50, 1], 64))]
    [0.7, 0.3, 0.0]

A release has two forms: `Frequencies` answer every point, and are improper; `Frequencies.database` turns them into a `dpjax.Weighted`
multiset of few rows (`rows`, MULTI Proposition 30). Data are `Points`, a `Sample`, or a `Weighted` multiset of counts.

    >>> database = released.database(bits=64, error=0.3, answers=0.1)  # 10 rows, a few of them at points that nobody named
    >>> int(database.total), bool(database.point_error(Weighted.of(data)) < 0.3)
    (10, True)

The n given to a factory must be that of the data. Below the n that privacy needs, a factory raises ValueError, unless
`allow_unproved=True`: then `guarantee()` is `Guarantee.none`.
"""

from dpjax.sanitizers.points.base import Frequencies
from dpjax.sanitizers.points.histogram import StabilityHistogram, histogram
from dpjax.sanitizers.points.k_points import k_points
from dpjax.sanitizers.points.noisy_counts import NoisyCounts
from dpjax.sanitizers.points.release import PointRelease, release
from dpjax.sanitizers.points.san_points import SanPoints, san_points
from dpjax.sanitizers.points.sparse_histogram import MOST_ARRIVALS, SparseHistogram, sparse_histogram

__all__ = [
    "MOST_ARRIVALS",
    "Frequencies",
    "NoisyCounts",
    "PointRelease",
    "SanPoints",
    "SparseHistogram",
    "StabilityHistogram",
    "histogram",
    "k_points",
    "release",
    "san_points",
    "sparse_histogram",
]
