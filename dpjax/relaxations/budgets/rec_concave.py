"""The budget of RecConcave: shares of all 3N - 2 mechanisms, by basic composition."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations.budgets.base import Budgeted, logit, logits, odds, shares


def rec_concave(algorithm: Any) -> Budgeted:
    """Shares of all 3N - 2 mechanisms, and the learner's alpha."""
    if getattr(algorithm, "calibration", "proved") != "proved":
        raise ValueError(f"algorithm.calibration must be 'proved', as 'printed' keeps no total, got {algorithm!r}")
    levels, inner = algorithm.levels, 2 * (algorithm.levels - 1)
    total = dataclasses.replace(algorithm, split=None).guarantee()
    epsilon, delta = float(algorithm.epsilon), float(algorithm.delta)
    given = algorithm.split or Split.equal(epsilon, delta, levels)
    if given.last is not None:
        raise ValueError(f"algorithm.split.last must be absent, as what it spends is not a share, got {given.last!r}")
    start: dict[str, Any] = {"epsilon": logits(np.concatenate([given.choices, np.ravel(given.tests)]))}
    if inner:
        start["delta"] = logits(np.ravel(given.deltas))
    if isinstance(algorithm, ThresholdRecConcave):
        start["alpha"] = logit(float(algorithm.alpha))

    def spend(point: Any) -> Split:
        epsilons = shares(point["epsilon"], epsilon, (1,) * (levels + inner))
        deltas = jnp.minimum(shares(point["delta"], delta, (1,) * inner), 0.5) if inner else jnp.zeros((0,))
        pairs = (levels - 1, 2)
        return Split(choices=epsilons[:levels], tests=epsilons[levels:].reshape(pairs), deltas=deltas.reshape(pairs))

    def build(split: Any, point: Any) -> Any:
        free = {"alpha": odds(point["alpha"])} if "alpha" in point else {}
        return dataclasses.replace(algorithm, split=split, **free)

    return Budgeted(start, total, spend, build)
