"""Databases whose thresholds are those of the data, to within alpha: sanitizers for THRESH_d, c_j(x) = 1 iff x < j.

| factory | algorithm | private | n for error alpha with probability 1 - beta |
|---|---|---|---|
| `san_thresholds` | SanThresholds (BNS Figure 11) | (epsilon, delta), REPLACE_ONE, from an n on | `bounds.san_thresholds` |
| `from_interior_points` | quantiles (CLNSS §1.4) | as the quantiles | `cdf.CdfRelease.sample_size` |
| `histogram` | all 2^d counts, d <= 16 | (epsilon, 0), REPLACE_ONE | `bounds.histogram_thresholds` |
| `tree` | all dyadic counts, d <= 16, consistent | (epsilon, 0), REPLACE_ONE | `bounds.tree_thresholds` |

The release is a `dpjax.Weighted` database: `share_below` answers thresholds, `threshold_error` is the largest error, exactly. Data are
`Points`, a `Sample`, or a `Weighted` multiset of counts, for an n as large as a theorem requires.
"""

from dpjax.sanitizers.thresholds.from_interior_points import FromInteriorPoints, from_interior_points
from dpjax.sanitizers.thresholds.histogram import Histogram, histogram
from dpjax.sanitizers.thresholds.san_thresholds import SanThresholds, san_thresholds
from dpjax.sanitizers.thresholds.tree import Tree, tree

__all__ = [
    "FromInteriorPoints",
    "Histogram",
    "SanThresholds",
    "Tree",
    "from_interior_points",
    "histogram",
    "san_thresholds",
    "tree",
]
