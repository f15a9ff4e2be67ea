"""Approximate quantiles from any interior point solver (CLNSS §1.4, after Bun, Nissim, Stemmer and Vadhan 2015).

An interior point z of the 2m points around rank k has a rank within m - 1 of k: with x_1 <= ... <= x_n and the slice
x_(k-m+1), ..., x_(k+m), at least k-m+1 points are <= z and at most k+m-1 are < z. Ranks past the ends count as points, 0 below and
2^bits - 1 above, and so the slice always has 2m points. These extra points only help, since every z lies between them.

| factory | quantiles | privacy, for a solver that is (e, d)-private under add/remove |
|---|---|---|
| `direct` | any q fractions, one run each on the whole dataset | q runs of (2e, (1 + exp(e)) d) |
| `recursive` | all multiples of 2^-L: the median, then the medians of both sides, ... | L runs of (2e, (1 + exp(e)) d) |
| `sliced` | evenly spaced ones, in one pass by Reorder-Slice-Compute | e for any number of slices, see `accounting.slicing` |
| `approximate` | any q fractions, the middle one first, then both sides; without a solver | a total: (epsilon, delta) or rho |
| `inverse_sensitivity` | any q fractions at once, scored by how many records would make them right; no solver | a total epsilon or rho |
| `joint` | any q fractions at once, scored by the gaps between them, with ties broken in their favour; no solver | a total epsilon or rho |
| `noisy_slices` | any q fractions, from disjoint slices around ranks with correlated noise | 2e plus the noise's, for any q |
| `supported_slices` | any q fractions, each by a choice among supported keys around a rank with correlated noise | see there, for any q |
| `rank_exponential` | any q fractions, each by the exponential mechanism on rank errors; without a solver | total (epsilon, delta) or rho |
| `permute_and_flip` | likewise by permute-and-flip, which is as private, and more accurate where few points are right | a total epsilon |
| `supported` | any q fractions, each by one choice among keys of a tree that the data support; no solver | a total (epsilon, delta) |
| `tree` | any q fractions, all read off one hierarchical histogram; without a solver | a total epsilon, for any q |
| `unbounded` | any q fractions, by AboveThreshold along a geometric grid; without a solver, without bounds | a total epsilon |
| `shared` | any q fractions, by fewer answers of one of the others, each for all fractions near its own | that of the answers |

**Why 2e.** The number n of points is private, and the wanted rank is k(n) = floor(f n + 1/2), so k(n+1) - k(n) is 0 or 1. Insert a point
at position p of the sorted dataset and compare the windows, positions [k-m, k+m) from 0. If k stays: nothing changes for p >= k+m;
otherwise the window loses its last point and gains the new one (p inside) or the one that moves up from below (p < k-m). If k moves up:
nothing changes for p <= k-m; otherwise it loses its first point and gains the new one or the one above. So neighbouring datasets give
slices that are equal or differ by one replacement: two steps of add/remove, `Guarantee.group(2)`, or one step for a solver that promises
e under replace-one, as `flat_tree_score` does: then what says 2e here is e. No window does better: to avoid the
removal, its ends would have to move by one exactly when p lies below them, but they depend on n alone. Replacing a point of a dataset of
public size is also one replacement in the window (remove a, insert b, with k fixed: at most one point leaves and one enters), so that
`direct` promises the same under both relations.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import ordered, wide
    >>> from dpjax.optimizers import interior_point, quantiles
    >>> points = Points.create(wide.from_ints(range(1000, 5000), 24))
    >>> quartiles = quantiles.direct(solver=interior_point.exponential(bits=24, epsilon=1.0), fractions=[0.25, 0.5, 0.75], m=60)
    >>> outcome = quartiles(jax.random.key(0), points)
    >>> [1940 <= a <= 2060 for a in wide.to_ints(outcome.hypothesis[:1])], quartiles.guarantee().epsilon
    ([True], 6.0)
"""

from dpjax.optimizers.quantiles.approximate import ApproximateQuantiles, approximate
from dpjax.optimizers.quantiles.base import Quantiles, Stretch, half_slice, nearest_rank, rank_errors
from dpjax.optimizers.quantiles.direct import DirectQuantiles, direct
from dpjax.optimizers.quantiles.inverse_sensitivity import InverseSensitivityQuantiles, inverse_sensitivity
from dpjax.optimizers.quantiles.joint import JointQuantiles, joint
from dpjax.optimizers.quantiles.noisy_slices import NoisySlices, noisy_slices
from dpjax.optimizers.quantiles.permute_and_flip import PermuteAndFlip, permute_and_flip
from dpjax.optimizers.quantiles.rank_exponential import RankExponential, rank_exponential
from dpjax.optimizers.quantiles.recursive import RecursiveQuantiles, recursive
from dpjax.optimizers.quantiles.shared import SharedQuantiles, shared
from dpjax.optimizers.quantiles.sliced import SlicedQuantiles, sliced
from dpjax.optimizers.quantiles.supported import SupportedQuantiles, supported
from dpjax.optimizers.quantiles.supported_slices import SupportedSlices, supported_slices
from dpjax.optimizers.quantiles.tree import TreeQuantiles, tree
from dpjax.optimizers.quantiles.unbounded import UnboundedQuantiles, unbounded

__all__ = [
    "ApproximateQuantiles",
    "DirectQuantiles",
    "InverseSensitivityQuantiles",
    "JointQuantiles",
    "NoisySlices",
    "PermuteAndFlip",
    "Quantiles",
    "RankExponential",
    "RecursiveQuantiles",
    "SharedQuantiles",
    "SlicedQuantiles",
    "Stretch",
    "SupportedQuantiles",
    "SupportedSlices",
    "TreeQuantiles",
    "UnboundedQuantiles",
    "approximate",
    "direct",
    "half_slice",
    "inverse_sensitivity",
    "joint",
    "nearest_rank",
    "noisy_slices",
    "permute_and_flip",
    "rank_errors",
    "rank_exponential",
    "recursive",
    "shared",
    "sliced",
    "supported",
    "supported_slices",
    "tree",
    "unbounded",
]
