"""The interior point problem (CLNSS, Definition 2): an element between the least and the greatest point of a dataset.

Trivial without privacy, and equivalent to learning thresholds with it (`dpjax.learners.interior`). The domain is
X = {0, ..., 2^bits - 1}, the dataset a multiset whose size is private too.

| factory | algorithm | privacy (ADD_OR_REMOVE_ONE) | points needed |
|---|---|---|---|
| `exponential` | exponential mechanism on the depth min(#<=x, #>=x) | (epsilon, 0) | (2 / epsilon) (bits ln 2 + ln(1/beta)) |
| `tree_score` | exponential mechanism on a score with subtrees | (epsilon, 0) | about (bits ln 2 + 2 ln(bits)) / epsilon |
| `flat_tree_score` | the same under a concave curve, checked by a programme | (epsilon, 0), REPLACE_ONE | 105 at 64 bits, epsilon = 1 |
| `rec_concave` | RecConcave on the depth (BNS §3.3) | (epsilon, delta) | 8^(log* |X|) |
| `supported_tree` | `tree_score` over keys that the data support | (epsilon, delta) | (3 / epsilon) ln(bits / (6 beta delta)) |
| `tree_log` | TreeLog (Kaplan et al. 2020, CLNSS §1.3.3) | (epsilon, delta) | log* |X|, or (log* |X|)^1.5 by composition |

Call a solver with a key and `dpjax.Points` (a `Sample` will do: labels are ignored). An event is a half-open interval; the laws are exact.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point
    >>> points = Points.create(wide.from_ints([2**20 + 3 * i for i in range(60)], 24))
    >>> solver = interior_point.exponential(bits=24, epsilon=1.0)
    >>> 2**20 <= wide.to_ints(solver(jax.random.key(0), points).hypothesis)[0] <= 2**20 + 177
    True
    >>> round(float(solver.success_probability(points)), 6)
    1.0
"""

from dpjax.optimizers.interior_point.base import InteriorPoint
from dpjax.optimizers.interior_point.exponential import DepthExponential, exponential
from dpjax.optimizers.interior_point.flat_tree_score import FlatTreeScore, flat_tree_score, flat_tree_score_planned
from dpjax.optimizers.interior_point.rec_concave import DepthRecConcave, rec_concave
from dpjax.optimizers.interior_point.supported_tree import SupportedTree, supported_tree
from dpjax.optimizers.interior_point.tree_log import TreeLog, tree_log, tree_log_planned
from dpjax.optimizers.interior_point.tree_score import TreeScore, tree_score

__all__ = [
    "DepthExponential",
    "DepthRecConcave",
    "FlatTreeScore",
    "InteriorPoint",
    "SupportedTree",
    "TreeLog",
    "TreeScore",
    "exponential",
    "flat_tree_score",
    "flat_tree_score_planned",
    "rec_concave",
    "supported_tree",
    "tree_log",
    "tree_log_planned",
    "tree_score",
]
