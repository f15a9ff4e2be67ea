"""A stability histogram of the labelled points: Algorithm 5's task in one stage.

The counts of pairs (x, v) are a histogram over X x {0,1}^k, on which `sanitizers.points.histogram` is (epsilon, delta)-private. The output
is never ⊥. h_j is the x of the first released pair with v_j = 1. On consistent labels a pair is as frequent as its point. One stage with
the whole budget needs fewer examples than two stages with half of it each: 536 instead of 1784 at epsilon = 1, delta = 1e-6,
alpha = beta = 0.1 (`bounds.labelled_histogram`, `bounds.point_learner_exact`).

Its plain twin is `dpjax.verify.plain.point_learner.histogram_law`.
"""

from typing import Any

from jaxtyping import Array, Int

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.domains import groups
from dpjax.multi.points.base import Items, OfItems, labelled_points
from dpjax.sanitizers import points as sanitizer
from dpjax.sanitizers.points import NoisyCounts


@frozen
class HistogramLearner(OfItems):
    """Noisy counts of labelled points; see the module."""

    bits: Int[Array, ""]
    counts: NoisyCounts
    limbs: int = static()
    k: int = static()

    @property
    def heavy(self) -> Any:  # type: ignore[override]
        """The noisy count above which items are released: every released item is heavy."""
        return self.counts.high

    def items(self, fine: groups.Groups) -> Items:
        return labelled_points(fine, self.limbs)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE."""
        return self.counts.guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n of the analysis, the same for every k; see `bounds.labelled_histogram`."""
        return bounds.labelled_histogram(alpha, beta, float(self.counts.epsilon), float(self.counts.high))


def histogram_learner(*, bits: int, k: int, epsilon: Any, delta: Any) -> HistogramLearner:
    """A stability histogram of the labelled points (see the module): Algorithm 5's task in one stage.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, labels arbitrary, tight. Not promised: protection from floating-point side
    channels; a cryptographic generator.

    Args:
      bits: d. k: number of concepts.
      epsilon: > 0. delta: in (0, 1/2].

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    counts = sanitizer.histogram(bits=bits, n=1, epsilon=epsilon, delta=delta)
    return HistogramLearner(bits=counts.bits, counts=counts, limbs=counts.limbs, k=arguments.size("k", k))
