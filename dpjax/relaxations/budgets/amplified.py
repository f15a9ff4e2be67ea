"""The budget of the 2^(log* T) optimiser: its margins, which cost no privacy."""

import dataclasses
from typing import Any

from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.relaxations.budgets.base import Budgeted, logit, odds


def amplified(algorithm: Any) -> Budgeted:
    """The failure that each margin is made for: it costs no privacy, and all else is fixed by the total."""
    optimizer = algorithm.optimizer if isinstance(algorithm, ThresholdAmplified) else algorithm
    budget = optimizer.budget

    def build(_: Any, point: Any) -> Any:
        margins = dataclasses.replace(budget, beta=odds(point["beta"]))
        moved = dataclasses.replace(optimizer, budget=margins)
        return moved if optimizer is algorithm else dataclasses.replace(algorithm, optimizer=moved)

    return Budgeted({"beta": logit(float(budget.beta))}, algorithm.guarantee(), lambda point: (), build)
