"""Learners of k parities at once from uniform points (MULTI §4.2.1). A hypothesis is k vectors of {0,1}^d, uint32 (k, limbs).

| factory | algorithm | privacy (REPLACE_ONE) | examples |
|---|---|---|---|
| `elimination` | Gaussian elimination on the whole sample | none | d + log2(1/beta) |
| `parity_learner` | ParityLearner (Algorithm 4) | (epsilon, delta) | (d / epsilon) ln(1/(beta delta)), for every k |

The pure learner is `dpjax.multi.direct_sum` of `dpjax.learners.parities.exponential` (Example 1): k d / epsilon, which Theorem 55
(`dpjax.bounds.pure_parities`) says is needed.

    >>> import jax
    >>> from dpjax.concepts import parities as concept
    >>> from dpjax.multi import parities
    >>> law = concept.uniform(bits=64, targets=concept.random_targets(jax.random.key(0), bits=64, k=100))
    >>> learner = parities.parity_learner(bits=64, k=100, epsilon=1.0, delta=1e-6, beta=0.01)
    >>> n = learner.sample_size(alpha=0.0, beta=0.01)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(2), n, n))
    >>> n, int(outcome.status), float(law.errors(outcome.hypothesis).max())
    (2590, 0, 0.0)
"""

from dpjax.multi.parities.elimination import Elimination, elimination
from dpjax.multi.parities.parity_learner import ParityLearner, parity_learner

__all__ = ["Elimination", "ParityLearner", "elimination", "parity_learner"]
