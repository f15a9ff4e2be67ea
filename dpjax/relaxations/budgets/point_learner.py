"""The budget of PointLearner: its counts and A_dist, by basic composition."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.multi.points import PointLearner
from dpjax.relaxations.budgets.base import Budgeted, logits, shares


def point_learner(learner: PointLearner) -> Budgeted:
    """Shares of the noisy counts and of A_dist, and the count up to which nothing is released."""
    if learner.calibration != "proved":
        raise ValueError(
            f"learner.calibration must be 'proved', as 'printed' keeps no total, got {learner.calibration!r}"
        )
    counts: Any = learner.counts
    test = learner.choice()
    total = Guarantee(float(learner.epsilon), float(learner.delta), REPLACE_ONE)
    start = {
        "epsilon": logits([float(counts.epsilon), float(test.epsilon)]),
        "delta": logits([float(counts.delta), float(test.delta)]),
        "low": np.log(np.float64(max(float(counts.low), 0.5))),
    }

    def spend(point: Any) -> dict[str, Any]:
        epsilons = shares(point["epsilon"], total.epsilon, (1, 1))
        deltas = jnp.minimum(shares(point["delta"], total.delta, (1, 1)), 0.5)
        names = ("counts_epsilon", "test_epsilon", "counts_delta", "test_delta")
        return dict(zip(names, (*epsilons, *deltas), strict=True))

    def build(spent: Any, point: Any) -> PointLearner:
        low = np.exp(point["low"]) if isinstance(point["low"], np.ndarray | np.generic) else jnp.exp(point["low"])
        noisy = dataclasses.replace(counts, epsilon=spent["counts_epsilon"], delta=spent["counts_delta"], low=low)
        tested = dataclasses.replace(test, epsilon=spent["test_epsilon"], delta=spent["test_delta"])
        return dataclasses.replace(learner, counts=noisy, heavy=noisy.high, test=tested)

    return Budgeted(start, total, spend, build)
