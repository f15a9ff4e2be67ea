"""A histogram of the whole domain of labelled points: k points under pure privacy, at a cost of d + k, where a direct sum pays k d.

A labelled point (x, v) is one of 2^(d+k), on which `sanitizers.points.sparse_histogram` is epsilon-private under REPLACE_ONE. h_j is the x
of the first released pair with v_j = 1, all-zero if there is none: post-processing.

*Why it learns.* On consistent labels a pair is as frequent as its point. Call a pair that does not occur a stranger. If no stranger is
released and every point of mass above alpha is, all k errors are at most alpha: a point that is not released costs an error of its own
mass. The first condition fails with probability at most the expected number of strangers, the second with probability
P[Bin(n, alpha) + noise < threshold] for each of fewer than 1/alpha points: `bounds.labelled_sparse_histogram`. The threshold is about
(2/epsilon) (d + k) ln 2: the rate of MULTI Lemma 35 for points, in one stage. So n is flat in k until k is about d; then it grows like k,
as it must for every pure learner (MULTI Theorem 52).

*Its law* is exact on domains of up to eight labelled points. On others, runs with strangers count as being in no event. At the usual
threshold there are strangers with probability at most 2^-30, and a probability of success may be too small by that. Single precision would
not show an error of up to 2^-24 either; where more than 2^-24 strangers are expected, the law is NaN. Such a domain has no list of all
outcomes.

The plain twin is `dpjax.verify.plain.point_learner.sparse_histogram_law`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.concepts.points import Point
from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import groups, wide
from dpjax.multi.points.base import Items, ManyPointsLearner, View, labelled_points, named
from dpjax.sanitizers import base
from dpjax.sanitizers.points.sparse_histogram import SparseHistogram, of_domain

FEW = 3  # the most bits of a domain of labelled points that a law enumerates
RARE = 2.0**-30  # the most strangers that are expected at the usual threshold
UNSEEN = 2.0**-24  # an expected number of strangers that a law in single precision would not show


@frozen
class SparseHistogramLearner(ManyPointsLearner):
    """Noisy counts of all labelled points; see the module."""

    bits: Int[Array, ""]
    counts: SparseHistogram
    limbs: int = static()
    k: int = static()
    all_points: bool = static()

    def items(self, fine: groups.Groups) -> Items:
        return labelled_points(fine, self.limbs)

    def draw(self, key: Array, view: View) -> tuple[Point, Bool[Array, ""], Any]:
        items = view.items
        rows = jnp.concatenate([items.points, items.vectors], axis=1)
        labels = packed.pack(jnp.ones((self.k,), bool))
        domain = jnp.concatenate([wide.largest(jnp.asarray(self.bits), self.limbs), labels])
        rows, _, heavy = self.counts.released(key, rows, items.counts, items.counts > 0, domain)
        hypothesis = named(rows[:, : self.limbs], rows[:, self.limbs :], heavy, self.k)
        return hypothesis, jnp.bool_(True), {"heavy": jnp.sum(heavy, dtype=jnp.int32)}

    def log_released(self, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        return self.counts.log_released(counts)

    def prepare(self, sample: MultiSample) -> View:
        view = super().prepare(sample)
        return view._replace(items=self._every(view.items)) if self.all_points else view

    def _every(self, items: Items) -> Items:
        """All labelled points, those that do not occur with a count of 0."""
        codes = jnp.arange(1 << FEW, dtype=jnp.uint32)
        points, vectors = codes >> self.k, codes & np.uint32((1 << self.k) - 1)
        same = (items.points[:, :1] == points[None]) & (items.vectors == vectors[None])
        counts = jnp.sum(jnp.where(same, items.counts[:, None], 0), axis=0, dtype=jnp.int32)
        return Items(points[:, None], vectors[:, None], counts, counts, jnp.zeros_like(counts))

    def log_heavy(self, items: Items) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        if not self.all_points:
            return super().log_heavy(items)
        log_p, log_q = self.log_released(items.counts)
        there = items.points[:, 0] >> jnp.asarray(self.bits).astype(jnp.uint32) == 0
        return jnp.where(there, log_p, -jnp.inf), jnp.where(there, log_q, 0.0)

    def law(self, view: View, good: Bool[Array, "more k"]) -> Float[Array, "2"]:
        law = super().law(view, good)
        if self.all_points:
            return law
        strangers = self.counts.arrivals()
        some = -jnp.expm1(-strangers)
        return jnp.where(strangers <= UNSEEN, law * (1 - some) + jnp.stack([jnp.zeros_like(some), some]), jnp.nan)

    def listed(self) -> int:
        if not self.all_points:
            raise TypeError(
                f"{type(self).__name__} has no pmf where bits + k > {FEW}: its law is that of runs without strangers"
            )
        return super().listed()

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return self.counts.guarantee()

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """`bounds.labelled_sparse_histogram`."""
        given = int(self.bits), self.k, alpha, beta, float(self.counts.epsilon)
        return bounds.labelled_sparse_histogram(*given, threshold=int(self.counts.threshold))


def sparse_histogram_learner(*, bits: int, k: int, epsilon: Any, threshold: Any = None) -> SparseHistogramLearner:
    """A histogram of all labelled points (see the module): Algorithm 5's task under pure privacy.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, labels arbitrary. Not promised: as for `sanitizers.points.sparse_histogram`.

    Args:
      bits: d. k: number of concepts.
      epsilon: at least 2^-24, finite.
      threshold: the least noisy count that is released, an integer >= 1; by default the least at which at most 2^-30 pairs that do not
        occur are expected to pass. `bounds.labelled_sparse_histogram` says what other thresholds are good for; where more than 2^-24 such
        pairs are expected (as `choose` allows) the law is NaN. A traced threshold has room for an expected number of 1/2: at lower
        thresholds the status is BAD_PARAMETER.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> import jax
    >>> from dpjax.concepts import points as concept
    >>> law = concept.point_masses(bits=64, points=[3, 2**50], masses=[0.5, 0.5], target=[3, 2**50, None])
    >>> learner = sparse_histogram_learner(bits=64, k=3, epsilon=1.0)
    >>> n = learner.sample_size(alpha=0.2, beta=0.1)
    >>> outcome = learner(jax.random.key(0), law.sample(jax.random.key(1), n, n))
    >>> n, law.errors(outcome.hypothesis).tolist()
    (785, [0.0, 0.0, 0.0])
    """
    one = base.domain(bits, 1)
    k = arguments.size("k", k)
    # Of a labelled point.
    domain = {**one, "bits": np.int32(one["bits"] + k), "limbs": one["limbs"] + packed.words_for(k)}
    few = int(domain["bits"]) <= FEW
    expected = 2**FEW if few else 1  # if there are few points, there is room for all, whatever epsilon is
    counts = of_domain(domain, epsilon=epsilon, threshold=threshold, spurious=RARE, expected=expected)
    return SparseHistogramLearner(bits=one["bits"], counts=counts, limbs=one["limbs"], k=k, all_points=few)
