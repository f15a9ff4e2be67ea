"""One PAC experiment with k concepts: draw a k-labelled sample, learn, compare every hypothesis with its target.

`trial` and `failure` take (key, experiment), so `dpjax.trials` can run either; both draw the same sample from the same key.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax.data.outcome import Status
from dpjax.learners.pac import Experiment, draw

__all__ = ["Experiment", "any_fails", "draw", "failure", "trial"]


def trial(key: Array, experiment: Experiment) -> dict[str, Bool[Array, ""]]:
    """One run: whether it failed (some error > alpha, or nothing released: MULTI Definition 4), and whether that was bottom."""
    key_coins, sample = draw(key, experiment)
    outcome = experiment.learner(key_coins, sample)
    released = outcome.status == Status.OK
    good = jnp.all(experiment.distribution.errors(outcome.hypothesis) <= experiment.alpha)
    return {"failed": ~(released & good), "bottom": outcome.status == Status.BOTTOM}


def failure(key: Array, experiment: Experiment) -> Float[Array, ""]:
    """P[failure | sample, and the learner's coins as far as it has no law for them], for the sample that `trial` draws from this key.

    Averaged over keys it is the failure probability. For learners with `population_failure(key, sample, distribution, alpha)`.
    """
    key_coins, sample = draw(key, experiment)
    return experiment.learner.population_failure(key_coins, sample, experiment.distribution, experiment.alpha)


def any_fails(failures: Float[Array, "k"]) -> Float[Array, ""]:
    """1 - prod (1 - f_j), without cancellation: the probability that one of k independent events happens."""
    return -jnp.expm1(jnp.sum(jnp.log1p(-jnp.minimum(failures, 1.0))))
