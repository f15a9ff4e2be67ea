"""One PAC experiment with k concepts: draw a k-labelled sample, learn, compare every hypothesis with its target.

`trial` and `failure` take (key, experiment), so `dpjax.trials` can run either; both draw the same sample from the same key.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.data.outcome import Status
from dpjax.learners.pac import Experiment, draw

__all__ = ["Experiment", "draw", "failure", "trial"]


def trial(key: Array, experiment: Experiment) -> dict[str, Bool[Array, ""]]:
    """One run: whether it failed (some error > alpha, or nothing released: MULTI Definition 4), and whether that was bottom."""
    key_coins, sample = draw(key, experiment)
    outcome = experiment.learner(key_coins, sample)
    released = outcome.status == Status.OK
    good = jnp.all(experiment.distribution.errors(outcome.hypothesis) <= experiment.alpha)
    return {"failed": ~(released & good), "bottom": outcome.status == Status.BOTTOM}


def failure(key: Array, experiment: Experiment) -> Float[Array, ""]:
    """P[failure | sample], for the sample that `trial` draws from this key: averaged over keys, the failure probability.

    By the law of the learner; or by its `population_failure(key, sample, distribution, alpha)`, if it has a law given some of its coins
    only, for those that `trial` draws.
    """
    key_coins, sample = draw(key, experiment)
    learner, distribution, alpha = experiment.learner, experiment.distribution, experiment.alpha
    if hasattr(learner, "population_failure"):
        return learner.population_failure(key_coins, sample, distribution, alpha)
    return learner.probability(sample, distribution.within(jnp.asarray(alpha, float)))[1]
