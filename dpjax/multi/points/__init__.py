"""k points learned at once, at a cost that does not grow with k (MULTI §4.2.2), or slowly under pure privacy, over X_d = {0, ..., 2^d - 1}.

| factory | algorithm | privacy (REPLACE_ONE) | examples, PAC (not agnostic) |
|---|---|---|---|
| `point_learner` | PointLearner (Algorithm 5) | (epsilon, delta) | ln(1/(alpha beta delta)) / (alpha epsilon), Theorem 40 |
| `histogram_learner` | a stability histogram of the labelled points | (epsilon, delta) | the same, with a smaller constant |
| `sparse_histogram_learner` | a histogram of all labelled points | (epsilon, 0) | (d + k + ln(1/(alpha beta))) / (alpha epsilon) |

Neighbouring samples differ by the replacement of one example with all its k labels by any other, whatever its labels; the number of
examples is public. k enters the work as packed words that are compared, and n under pure privacy only.

    >>> import jax
    >>> from dpjax.concepts import points as concept
    >>> from dpjax.multi import points
    >>> law = concept.point_masses(bits=24, points=[3, 2**20, 9], masses=[0.4, 0.3, 0.3], target=[3, 2**20, None, 2**20])
    >>> learner = points.point_learner(bits=24, k=4, epsilon=1.0, delta=1e-6, alpha=0.2)
    >>> n = learner.sample_size(alpha=0.2, beta=0.1)
    >>> sample = law.sample(jax.random.key(0), n, n)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> law.errors(outcome.hypothesis).tolist(), round(float(learner.success_probability(sample, error=0.2)), 3)
    ([0.0, 0.0, 0.0, 0.0], 1.0)
"""

from dpjax.multi.points.histogram import HistogramLearner, histogram_learner
from dpjax.multi.points.point_learner import PointLearner, point_learner
from dpjax.multi.points.sparse_histogram import SparseHistogramLearner, sparse_histogram_learner

__all__ = [
    "HistogramLearner",
    "PointLearner",
    "SparseHistogramLearner",
    "histogram_learner",
    "point_learner",
    "sparse_histogram_learner",
]
