"""Databases that answer every query of any class on a small domain, for points of X_bits (BNS Theorem 2.19; MULTI Theorems 24, 25).

| factory | algorithm | private (REPLACE_ONE) | domain | rows of data needed |
|---|---|---|---|---|
| `blr` | the exponential mechanism over databases | (epsilon, 0) | a few points | `bounds.exponential_mechanism` |
| `multiplicative_weights` | offline, one choice in each round | (epsilon, delta) | 2^16 points | `bounds.private_multiplicative_weights` |

The queries are one of these classes:

| class | its queries | the symmetric differences of |
|---|---|---|
| `thresholds(bits=)` | x < j | |
| `points(bits=)` | x = j | |
| `intervals(bits=)` | i <= x < j | thresholds |
| `pairs(bits=)` | x in a set of at most two points | points, and the all-zero concept |
| `listed(matrix)` | the rows of a matrix of booleans | |

Data are `Points`, a `Sample` (its labels are ignored) or `Weighted` points with integer weights; the number of rows is public. The release
is a `Weighted` database.

    >>> import jax
    >>> from dpjax import Points, Weighted
    >>> from dpjax.domains import wide
    >>> from dpjax.sanitizers import dense
    >>> data = Points.create(wide.from_ints([3] * 900 + [1] * 100, 2))
    >>> sanitizer = dense.blr(queries=dense.thresholds(bits=2), rows=10, epsilon=1.0)
    >>> released = sanitizer(jax.random.key(0), data).hypothesis
    >>> released
    Weighted(x=[1, 3], weights=[1, 9])
    >>> float(released.threshold_error(Weighted.of(data))) < 0.01
    True
"""

from dpjax.sanitizers.dense.base import DenseSanitizer
from dpjax.sanitizers.dense.blr import Blr, blr
from dpjax.sanitizers.dense.multiplicative_weights import MultiplicativeWeights, multiplicative_weights
from dpjax.sanitizers.dense.queries import Queries, intervals, listed, pairs, points, thresholds

__all__ = [
    "Blr",
    "DenseSanitizer",
    "MultiplicativeWeights",
    "Queries",
    "blr",
    "intervals",
    "listed",
    "multiplicative_weights",
    "pairs",
    "points",
    "thresholds",
]
