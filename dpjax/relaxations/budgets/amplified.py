"""The budget of the 2^(log* T) optimiser: its margins, which cost no privacy."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.core import arguments
from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.relaxations.budgets.base import Budgeted, logit, odds


def amplified(algorithm: Any) -> Budgeted:
    """The failure probability that each margin is made for: it costs no privacy, and everything else is fixed by the total."""
    optimizer = algorithm.optimizer if isinstance(algorithm, ThresholdAmplified) else algorithm
    budget = optimizer.budget
    most = 1 / (2 * optimizer.levels + 2)  # so that all of them together fail with probability 1 at most

    def build(_: Any, point: Any) -> Any:
        # Programs do not take a margin beyond its range: the nearest one within it stands for all such margins.
        margin = odds(point["beta"])
        held = (jnp if arguments.is_traced(margin) else np).clip(margin, arguments.least(), most)
        margins = dataclasses.replace(budget, beta=held)
        moved = dataclasses.replace(optimizer, budget=margins)
        return moved if optimizer is algorithm else dataclasses.replace(algorithm, optimizer=moved)

    return Budgeted({"beta": logit(float(budget.beta))}, algorithm.guarantee(), lambda point: (), build)
