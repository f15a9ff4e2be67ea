"""How an algorithm spends its total (epsilon, delta): parametrisations in which every point keeps it.

A point is a pytree of free real numbers. `Budgeted.spend` turns it into the numbers of a budget whose composition is the total, whatever
the point is: shares are softmaxes, and for optimal composition softmaxes under a scale that solves for the total (`accountant.calibrated`).
`Budgeted(point)` is then the algorithm with that budget: it can be traced, and its law differentiated. However the optimiser moves the
point, it can therefore never spend more.

What is released is made by `rounded`: the same numbers in float64, each rounded down to one that float32 also holds, and all of them
lowered by as little as the existing host accountant needs to confirm the total. The guarantee is then `algorithm.guarantee()`, computed
from the numbers in use.

| algorithm | what a point says | composition |
|---|---|---|
| RecConcave (learner, optimiser, solver) | epsilon of each of 3N - 2 mechanisms, delta of each A_dist; the learner's alpha | basic |
| TreeLog, public slices | epsilon of walk, select, count, base; delta of walk, select; m1, m2 | its own: basic or optimal |
| amplified (learner, optimiser) | epsilon of each of 2N + 2 mechanisms; the failure that its margins are made for | basic |
| PointLearner, proved | epsilon and delta of the counts and of A_dist; the threshold of both | basic |

alpha, m1, m2 and the margins cost no privacy: they are chosen along with the numbers that do. Set cover's plans are integers and grid
points: `set_cover_plans` lists them, and `tune.best` compares them.
"""

from collections.abc import Callable
from typing import Any

import jax

from dpjax.core import arguments
from dpjax.learners.thresholds.amplified import ThresholdAmplified
from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave
from dpjax.multi.points import PointLearner
from dpjax.optimizers.interior_point.rec_concave import DepthRecConcave
from dpjax.optimizers.interior_point.tree_log import TreeLog
from dpjax.optimizers.quasi_concave import Amplified, QuasiConcaveRecConcave
from dpjax.relaxations.budgets.amplified import amplified
from dpjax.relaxations.budgets.base import Budgeted, shares
from dpjax.relaxations.budgets.point_learner import point_learner
from dpjax.relaxations.budgets.rec_concave import rec_concave
from dpjax.relaxations.budgets.set_cover import set_cover_plans
from dpjax.relaxations.budgets.tree_log import tree_log

__all__ = ["Budgeted", "of", "set_cover_plans", "shares"]

OPENED: dict[type, Callable[[Any], Budgeted]] = {
    ThresholdRecConcave: rec_concave,
    QuasiConcaveRecConcave: rec_concave,
    DepthRecConcave: rec_concave,
    ThresholdAmplified: amplified,
    Amplified: amplified,
    PointLearner: point_learner,
    TreeLog: tree_log,
}


def of(algorithm: Any) -> Budgeted:
    """The algorithm with its budget left open; see the table in the module.

    Args:
      algorithm: one that its factory made from known numbers; its total is what every point may spend.

    Raises:
      TypeError: an algorithm without a split, or with traced numbers.
      ValueError: constants that keep no total ("printed"), noisy slices, or an algorithm without a guarantee.

    >>> from dpjax.learners import thresholds
    >>> learner = thresholds.rec_concave(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2, depth=2)
    >>> budgeted = of(learner)
    >>> point = {**budgeted.start, "epsilon": jax.numpy.array([2.0, 0.0, 1.0, 1.0])}
    >>> tuned = budgeted.rounded(point)
    >>> tuned.split.choices.round(3), tuned.guarantee().covers(1.0, 1e-6)
    (array([0.534, 0.072]), True)
    """
    for kind, opened in OPENED.items():
        if isinstance(algorithm, kind):
            if any(arguments.is_traced(leaf) for leaf in jax.tree.leaves(algorithm)):
                raise TypeError(f"algorithm must have known numbers, of which the total is taken, got {algorithm!r}")
            return opened(algorithm)
    names = ", ".join(kind.__name__ for kind in OPENED)
    raise TypeError(f"algorithm must be one with a split ({names}), got {type(algorithm).__name__}")
