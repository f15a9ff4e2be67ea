"""Everything that one run of RecConcave computes and chooses."""

from typing import Any

import jax

from dpjax.concepts import thresholds as concept
from dpjax.learners import pac
from dpjax.optimizers.quasi_concave import recursion


@jax.jit
def dissect(key: jax.Array, experiment: pac.Experiment) -> dict[str, Any]:
    """The sample; Q, L and q (Steps 3, 4); the run; the recursion's problem."""
    key_coins, sample = pac.draw(key, experiment)
    learner = experiment.learner
    pieces = concept.quality(sample, learner.bits, learner.limbs)
    problem, budget = learner.problem(pieces), learner.budget()
    windows = recursion.best_windows(pieces)
    quality = recursion.length_quality(problem)
    run = recursion.sample(key_coins, problem, budget, learner.levels)
    return {"sample": sample, "pieces": pieces, "problem": problem, "windows": windows, "quality": quality, "run": run}
