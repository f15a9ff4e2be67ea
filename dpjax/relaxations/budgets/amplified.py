"""The budget of the 2^(log* T) optimiser: shares of epsilon, and its margins, which cost no privacy."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.core import arguments
from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.relaxations.budgets.base import Budgeted, logit, logits, odds, shares


def amplified(algorithm: Any) -> Budgeted:
    """Shares of all 2N + 2 mechanisms, and the failure probability that each margin is made for; each level keeps its delta."""
    optimizer = algorithm.optimizer if isinstance(algorithm, ThresholdAmplified) else algorithm
    budget, levels = optimizer.budget, optimizer.levels
    parts = 2 * levels + 2
    epsilon = float(optimizer.epsilon)
    most = 1 / parts  # so that all margins together fail with probability 1 at most

    def spend(point: Any) -> Any:
        return shares(point["epsilon"], epsilon, (1,) * parts)

    def build(epsilons: Any, point: Any) -> Any:
        # Programs do not take a margin beyond its range: the nearest one within it stands for all such margins.
        margin = odds(point["beta"])
        held = (jnp if arguments.is_traced(margin) else np).clip(margin, arguments.least(), most)
        test, last, blocks, points = epsilons[0], epsilons[1], epsilons[2 : 2 + levels], epsilons[2 + levels :]
        spent = dataclasses.replace(budget, test=test, last=last, blocks=blocks, points=points, beta=held)
        moved = dataclasses.replace(optimizer, budget=spent)
        return moved if optimizer is algorithm else dataclasses.replace(algorithm, optimizer=moved)

    given = np.concatenate([[budget.test, budget.last], budget.blocks, budget.points])
    return Budgeted({"epsilon": logits(given), "beta": logit(float(budget.beta))}, algorithm.guarantee(), spend, build)
