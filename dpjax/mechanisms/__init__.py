"""Private mechanisms, one per module; all of them are algorithms (`dpjax.data.algorithm`).

| module | mechanism | takes | returns | privacy |
|---|---|---|---|---|
| `laplace` | Laplace noise (BNS Theorem 2.24) | numbers | noisy numbers | (epsilon, 0) |
| `geometric` | two-sided geometric noise | counts | noisy counts | (epsilon, 0) |
| `one_sided_geometric` | noise of slices (CLNSS §2) | counts | counts, never less | (epsilon, 1 - exp(-epsilon)) |
| `exponential` | exponential mechanism (BNS Proposition 2.26) | scores | an index | (epsilon, 0) |
| `exponential_piecewise` | the same over a wide range | pieces | a point | (epsilon, 0) |
| `permute_and_flip_piecewise` | permute-and-flip over a wide range | pieces | a point | (epsilon, 0) |
| `report_noisy_max` | report-noisy-max, permute-and-flip | scores | an index | (epsilon, 0) |
| `above_threshold` | sparse vector technique for one answer | answers in order | an index, or ⊥ | (epsilon, 0) |
| `stability` | A_dist (BNS Proposition 2.27) | scores | an index, or ⊥ | (epsilon, delta) |
| `choosing` | Choosing Mechanism (BNS Figure 8) | scores | an index, or ⊥ | (epsilon, delta) |
| `supported` | exponential mechanism over what the data support | counts | an index, or ⊥ | (epsilon, delta) |
| `partition_selection` | optimal partition selection | counts | which are kept | (epsilon, delta) |

Every module has one factory, `mechanism`, which checks the parameters and makes the mechanism; if some candidates do not exist, scores are
given as `candidates(scores, where=...)`. Other algorithms call a module's pure functions directly, on keys and arrays: the one that samples
has the module's name (`stability.stability(key, scores, epsilon=..., delta=...)`; `draw` in the modules over pieces), and the laws are
called `log_pmf`, `log_keep`, `log_cdf` and so on.

    >>> import jax
    >>> from dpjax.mechanisms import candidates, stability
    >>> choose = stability.mechanism(epsilon=1.0, delta=1e-6)
    >>> outcome = choose(jax.random.key(0), candidates([1, 200, 300], where=[True, True, False]))
    >>> int(outcome.status), int(outcome.hypothesis)
    (0, 1)
    >>> choose.guarantee()
    Guarantee(epsilon=1.0, delta=1e-06, relation='REPLACE_ONE')
"""

from dpjax.core import lazy
from dpjax.mechanisms import (
    above_threshold,
    choosing,
    exponential,
    exponential_piecewise,
    geometric,
    laplace,
    one_sided_geometric,
    partition_selection,
    permute_and_flip_piecewise,
    report_noisy_max,
    stability,
    supported,
)
from dpjax.mechanisms.above_threshold import AboveThreshold
from dpjax.mechanisms.base import Candidates, Selection, candidates
from dpjax.mechanisms.choosing import Choosing
from dpjax.mechanisms.exponential import Exponential
from dpjax.mechanisms.exponential_piecewise import ExponentialPiecewise
from dpjax.mechanisms.geometric import Geometric
from dpjax.mechanisms.laplace import Laplace
from dpjax.mechanisms.one_sided_geometric import OneSidedGeometric
from dpjax.mechanisms.partition_selection import PartitionSelection
from dpjax.mechanisms.permute_and_flip_piecewise import PermuteAndFlipPiecewise
from dpjax.mechanisms.report_noisy_max import ReportNoisyMax
from dpjax.mechanisms.stability import Stability
from dpjax.mechanisms.supported import Supported

__all__ = [
    "AboveThreshold",
    "Candidates",
    "Choosing",
    "Exponential",
    "ExponentialPiecewise",
    "Geometric",
    "Laplace",
    "OneSidedGeometric",
    "PartitionSelection",
    "PermuteAndFlipPiecewise",
    "ReportNoisyMax",
    "Selection",
    "Stability",
    "Supported",
    "above_threshold",
    "candidates",
    "choosing",
    "exponential",
    "exponential_piecewise",
    "geometric",
    "laplace",
    "one_sided_geometric",
    "partition_selection",
    "permute_and_flip_piecewise",
    "report_noisy_max",
    "stability",
    "supported",
]

__getattr__, __dir__ = lazy.modules(__name__)
