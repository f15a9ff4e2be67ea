"""Threshold learners from interior point solvers, and the converse (CLNSS, footnote 5; Bun et al. 2015), with what each reduction costs.

| factory | from | to | privacy, if the given algorithm is (e, d)-private |
|---|---|---|---|
| `threshold_learner` | an interior point solver | a proper learner of thresholds | (2e, (1 + exp(e)) d) under ADD_OR_REMOVE_ONE |
| `threshold_learner` | the same, private under replace-one | the same | (e, d) under ADD_OR_REMOVE_ONE |
| `solver` | a threshold learner, private under replace-one | an interior point solver | (2e, (1 + exp(e)) d) under ADD_OR_REMOVE_ONE |

    >>> import jax
    >>> from dpjax import Sample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import interior
    >>> from dpjax.optimizers import interior_point
    >>> sample = Sample(x=wide.from_ints([10, 20, 2**20, 2**21] * 100, 24), y=[1, 1, 0, 0] * 100)
    >>> learner = interior.threshold_learner(solver=interior_point.exponential(bits=25, epsilon=0.5), m=100)
    >>> 10 < wide.to_ints(learner(jax.random.key(0), sample).hypothesis)[0] <= 2**21
    True
    >>> learner.guarantee().epsilon, round(float(learner.failure_probability(sample, error=99 / 400)), 5)
    (1.0, 0.0)
"""

from dpjax.learners.interior.solver import LearnedInterior, solver
from dpjax.learners.interior.threshold_learner import InteriorThreshold, threshold_learner
from dpjax.optimizers.quantiles import half_slice

__all__ = ["InteriorThreshold", "LearnedInterior", "half_slice", "solver", "threshold_learner"]
