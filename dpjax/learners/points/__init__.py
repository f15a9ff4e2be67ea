"""Learners of points c_j(x) = 1 iff x = j over X_d = {0, ..., 2^d - 1}.

| factory | algorithm | hypothesis | privacy (REPLACE_ONE) | examples |
|---|---|---|---|---|
| `learn_points` | LearnPoints (BNS §3.1) | a point (or all-zero) | (epsilon, delta) | ln(1/(beta delta)) / (alpha epsilon) |
| `exponential` | exponential mechanism over POINT_d | a point | (epsilon, 0) | (d + ln(1/beta)) / (alpha epsilon) |
| `hashed` | the same over the buckets of a hash | a bucket, or all-zero | (epsilon, 0) | ln(1/(alpha beta)) / (alpha epsilon) |

Neighbouring samples differ by the replacement of one example (x, y) by any other, whatever its label; the number of examples is public. A
learner sees its sample as counts, so its law is exact and costs one sort for any d; see `dpjax.learners.points.base`.

    >>> import jax
    >>> from dpjax.concepts import points as concept
    >>> from dpjax.learners import points
    >>> law = concept.point_masses(bits=24, points=[5, 2**20], masses=[0.7, 0.3], target=2**20)
    >>> learner = points.learn_points(bits=24, epsilon=1.0, delta=1e-6)
    >>> n = learner.sample_size(alpha=0.1, beta=0.1)
    >>> sample = law.sample(jax.random.key(0), n, n)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> float(law.error(outcome.hypothesis)), round(float(learner.success_probability(sample, error=0.1)), 6)
    (0.0, 1.0)
    >>> [round(float(p), 6) for p in learner.probability(sample, law.within(0.1))]
    [1.0, 0.0]
"""

from dpjax.learners.points.exponential import PointExponential, exponential
from dpjax.learners.points.hashed import Bucket, BucketSet, GivenHash, Hash, HashedPoints, hashed
from dpjax.learners.points.learn_points import LearnPoints, learn_points

__all__ = [
    "Bucket",
    "BucketSet",
    "GivenHash",
    "Hash",
    "HashedPoints",
    "LearnPoints",
    "PointExponential",
    "exponential",
    "hashed",
    "learn_points",
]
