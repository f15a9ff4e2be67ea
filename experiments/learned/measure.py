"""Measures the numbers of the pictures."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.bounds import noise as bound
from dpjax.bounds import selection
from dpjax.learners import thresholds
from dpjax.mechanisms import exponential
from dpjax.mechanisms.base import candidates
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations import learned_audit, learned_noise, learned_selection, tune
from dpjax.trials.progress import Progress
from dpjax.verify import audit_samples
from dpjax.verify.audit import runs
from dpjax.verify.broken_vectors import VectorSpecimen, broken_vectors, sound_vectors
from experiments.hard_samples import around_a_threshold
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

LEARNED, OPTIMUM, LAPLACE = "learned", "optimum (linear programme)", "discrete Laplace"
AUDITS = ("learned event", "events of single coordinates")
FARTHEST = 200  # the largest cut-off of learned noise


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "law, DELTA" (by x), "ratio, DELTA" and "delta, DELTA" (by epsilon), one panel for each audit (by runs), "selection"
    (by epsilon), "noise of the choice" (by z), "RecConcave" (by n)."""
    given = settings["laws"]
    rows = []
    for delta in given["deltas"]:
        found = _noise(given["epsilon"], delta, [given["epsilon"]], settings, context)
        for name in (LEARNED, OPTIMUM, LAPLACE):
            rows += [exact(f"law, {delta:g}", name, x, p) for x, p in enumerate(found[name])]
    for delta in settings["ratios"]["deltas"]:
        epsilons = settings["ratios"]["epsilons"]
        with Progress(len(epsilons), f"noise at delta {delta:g}", unit="laws") as progress:
            for epsilon in epsilons:
                found = _noise(epsilon, delta, epsilons, settings, context)
                for name in (LEARNED, LAPLACE):
                    rows.append(
                        exact(f"ratio, {delta:g}", name, epsilon, found["losses"][name] / found["losses"][OPTIMUM])
                    )
                rows.append(exact(f"delta, {delta:g}", "certified", epsilon, found["delta"]))
                progress.done(1)
    return [*rows, *_audits(settings, context), *_selections(settings, context), *_rec_concave(settings, context)]


# -------------------------------------------------------------------------------------------------------- (a) noise


def reach_of(epsilons: list[float], delta: float, sensitivity: int) -> int:
    """One reach for all these epsilons, so that one compiled program learns for all."""
    width = learned_noise.cut_off(min(epsilons), delta, sensitivity, FARTHEST)
    return 4 * sensitivity if delta == 0 else (FARTHEST if width is None else width) + 2 * sensitivity


def _noise(epsilon: float, delta: float, epsilons: list[float], settings: Settings, context: Context) -> dict:
    """Laws of |x| = 0, 1, ... by name, their losses, and the delta certified for the learned one."""
    sensitivity, loss = settings["sensitivity"], settings["loss"]
    reach = reach_of(epsilons, delta, sensitivity)

    def compute() -> dict:
        given = {"epsilon": epsilon, "delta": delta, "sensitivity": sensitivity, "reach": reach}
        learned = learned_noise.learn(**given, loss=loss, steps=settings["steps"])
        best, law = bound.least_noise(loss, **given)
        laplace = _laplace(epsilon, delta, sensitivity, reach)
        losses = {LEARNED: learned.expected_loss(loss), OPTIMUM: best, LAPLACE: laplace.expected_loss(loss)}
        laws = {LEARNED: learned.pmf_of_sizes(), OPTIMUM: law, LAPLACE: laplace.pmf_of_sizes()}
        return {**laws, "losses": losses, "delta": learned.guarantee().delta}

    return context.store.get_or_compute({"noise": [epsilon, delta, reach], "loss": loss}, compute)


def _laplace(epsilon: float, delta: float, sensitivity: int, reach: int) -> learned_noise.IntegerNoise:
    """P(x) ~ e^(-epsilon |x| / D), cut off as soon as delta allows."""
    x = np.arange(reach + 1)
    width = learned_noise.cut_off(epsilon, delta, sensitivity, reach - sensitivity)
    weights = -epsilon / sensitivity * x
    if width is not None:
        weights = np.where(x <= width, weights, learned_noise.IMPOSSIBLE)
    # Both get a billionth more, because ratios of exactly e^epsilon may round to either side.
    more = 1 + 1e-9
    return learned_noise.mechanism(
        weights, epsilon=epsilon * more, delta=delta * more, rate=epsilon, sensitivity=sensitivity
    )


# ------------------------------------------------------------------------------------------------------- (b) audits


def _audits(settings: Settings, context: Context) -> Iterator[Row]:
    """Lower bounds on epsilon; one panel for each kind of audit and of mechanism (broken or sound)."""
    given, key = settings["audit"], jax.random.fold_in(context.root, 0)
    kinds = {"broken": broken_vectors(given["dimension"]), "sound": sound_vectors(given["dimension"])}
    cells = [(kind, specimen) for kind, specimens in kinds.items() for specimen in specimens]
    with Progress(len(cells), "audits", unit="mechanisms") as progress:
        for number, (kind, specimen) in enumerate(cells):
            found = context.store.get_or_compute(
                {"audit": specimen.name, **given},
                functools.partial(_bounds, jax.random.fold_in(key, number), specimen, settings),
            )
            for name, bounds in zip(AUDITS, found, strict=True):
                for trials, epsilon in zip(given["runs"], bounds, strict=True):
                    yield exact(f"{name}, {kind}", specimen.name, trials, epsilon)
            progress.done(1)


def _bounds(key: jax.Array, specimen: VectorSpecimen, settings: Settings) -> list[list[float]]:
    """[bounds by a learned event, bounds by events of single coordinates, which share the level], for each number of (first) runs."""
    given, level, delta = settings["audit"], settings["level"], specimen.claimed.delta
    key_runs, key_training = jax.random.split(key)
    sides = runs(key_runs, specimen.sample, specimen.pair, trials=max(given["runs"]))
    learned, single = [], []
    for trials in given["runs"]:
        first, second = (side[:trials] for side in sides)
        training = jax.random.fold_in(key_training, trials)
        learned.append(
            learned_audit.audit_outcomes(
                training, first, second, delta=delta, level=level, steps=given["steps"]
            ).epsilon
        )
        share = 1 - (1 - level) / first.shape[1]
        single.append(
            max(
                audit_samples(*column, delta=delta, level=share).epsilon
                for column in zip(first.T, second.T, strict=True)
            )
        )
    return [learned, single]


# ---------------------------------------------------------------------------------------------------- (c) selections

EXPONENTIAL, FLIP = "exponential mechanism", "permute-and-flip"


def _flip(epsilon: float, reach: int) -> learned_selection.NoisyMax:
    """Permute-and-flip, with epsilon reduced by a millionth to allow for rounding."""
    fall = np.arange(1, reach + 1) * epsilon / 2 * (1 - 1e-6)
    return learned_selection.mechanism(fall, epsilon=epsilon)


def _selections(settings: Settings, context: Context) -> Iterator[Row]:
    """Mean regret over all multisets of three scores, divided by the least possible."""
    given = settings["selection"]
    scores = np.array(list(itertools.combinations_with_replacement(range(given["highest"] + 1), 3)), np.int32)
    regrets = (scores.max(axis=1, keepdims=True) - scores) / given["highest"]

    def compute(epsilon: float) -> dict[str, float]:
        learned = learned_selection.learn(scores, regrets, epsilon=epsilon, reach=given["reach"], steps=given["steps"])
        exponentials = exponential.mechanism(epsilon=epsilon)
        found = {EXPONENTIAL: exponentials, FLIP: _flip(epsilon, given["reach"]), LEARNED: learned}
        least = selection.least_cost(scores, regrets, epsilon=epsilon)
        return {name: _mean(chooser, scores, regrets) / least for name, chooser in found.items()}

    with Progress(len(given["epsilons"]), "selections", unit="epsilons") as progress:
        for epsilon in given["epsilons"]:
            at = {"selection": [epsilon, given["highest"], given["reach"], given["steps"]]}
            found = context.store.get_or_compute(at, functools.partial(compute, epsilon))
            yield from (exact("selection", name, epsilon, value) for name, value in found.items())
            progress.done(1)


def _mean(chooser: Any, scores: Any, costs: Any, where: Any = None) -> float:
    """The mean cost of the chooser's choice, in float64."""
    exists = np.ones(scores.shape, bool) if where is None else where
    with jax.enable_x64(True):
        laws = jax.vmap(lambda row, mask: chooser.log_law(candidates(row, where=mask)))(
            jnp.asarray(scores), jnp.asarray(exists)
        )
        return float(np.mean(np.sum(np.exp(np.asarray(laws))[:, :-1] * costs, axis=1)))


def _rec_concave(settings: Settings, context: Context) -> Iterator[Row]:
    """Failure of RecConcave with two levels and equal shares, by what makes its inner choice; trained on some data, measured on others."""
    given = settings["rec_concave"]
    numbers = {name: given[name] for name in ("bits", "epsilon", "delta")}
    equal = Split.equal(given["epsilon"], given["delta"], 2)
    learner = thresholds.rec_concave(**numbers, alpha=2 * given["alpha"], depth=2, split=equal)
    share = float(equal.choices[1])
    training, held_out = (
        [
            around_a_threshold(np.random.default_rng([context.seed, part, i]), given["bits"], max(given["sizes"]))
            for i in range(given["datasets"])
        ]
        for part in (1, 2)
    )
    compiled = jax.jit(jax.vmap(lambda sample: learned_selection.lengths(learner, sample, error=given["alpha"])))

    def lengths(data: list[Any], n: int) -> learned_selection.Lengths:
        return jax.tree.map(np.asarray, compiled(tune.stacked([at(n) for at in data])))

    choosers: dict[str, Any] = {
        EXPONENTIAL: exponential.mechanism(epsilon=share),
        FLIP: _flip(share, given["reach"]),
    }
    with Progress(len(given["trained"]) + len(given["sizes"]), "RecConcave", unit="sizes") as progress:
        for n in given["trained"]:
            seen, name = lengths(training, n), f"learned at n = {n}"
            limits = {"epsilon": share, "reach": given["reach"], "steps": given["steps"]}
            choosers[name] = learned_selection.learn(seen.scores, seen.failures, where=seen.where, **limits)
            for z, fall in enumerate(choosers[name].fall, start=1):
                yield exact("noise of the choice", name, z, fall)
            progress.done(1)
        for n in given["sizes"]:
            seen = lengths(held_out, n)
            for name, chooser in choosers.items():
                yield exact("RecConcave", name, n, _mean(chooser, seen.scores, seen.failures, seen.where))
            progress.done(1)
