"""One PAC experiment with k concepts: draw a k-labelled sample, learn, compare every hypothesis with its target.

`trial` and `failure` take (key, experiment), so `dpjax.trials` can run either; both draw the same sample from the same key.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import checks
from dpjax.core.pytree import frozen, static
from dpjax.core.status import Status


@frozen
class Experiment:
    """What is run: everything but the capacity is data, so one program serves every n up to it, and every epsilon.

    Attributes:
      learner: a k-learner; learner(key, sample) -> Outcome with one hypothesis a concept.
      distribution: knows its k targets: `sample(key, capacity, n)` -> MultiSample and `errors(hypotheses)` -> (k,) exact errors.
      n: number of examples, at most `capacity`.
      alpha: largest population error, of every one of the k hypotheses, that counts as success.
      capacity: rows of the padded sample, 2^b - 1 (see `dpjax.core.sample.bucket`).
    """

    learner: Any
    distribution: Any
    n: Int[Array, ""] | int
    alpha: Float[Array, ""] | float
    capacity: int = static()


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


def draw(key: Array, experiment: Experiment) -> tuple[Array, Any]:
    """The key for the learner's coins, and the sample."""
    if not checks.is_traced(experiment.n):
        checks.integer("n", np.asarray(experiment.n)[()], at_least=1, at_most=experiment.capacity)
    key_sample, key_coins = jax.random.split(key)
    return key_coins, experiment.distribution.sample(key_sample, experiment.capacity, experiment.n)
