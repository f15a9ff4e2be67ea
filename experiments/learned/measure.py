"""The numbers of both pictures."""

import functools
from collections.abc import Iterator

import jax
import numpy as np

from dpjax.bounds import noise as bound
from dpjax.relaxations import learned_audit, learned_noise
from dpjax.trials.progress import Progress
from dpjax.verify import audit_samples
from dpjax.verify.audit import runs
from dpjax.verify.broken_vectors import VectorSpecimen, broken_vectors, sound_vectors
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

LEARNED, OPTIMUM, LAPLACE = "learned", "optimum (linear programme)", "discrete Laplace"
AUDITS = ("learned event", "events of single coordinates")
FARTHEST = 200  # reach of what is learned


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "law, DELTA" (by x), "ratio, DELTA" and "delta, DELTA" (by epsilon), then one panel an audit (by runs)."""
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
    return [*rows, *_audits(settings, context)]


# -------------------------------------------------------------------------------------------------------- (a) noise


def reach_of(epsilons: list[float], delta: float, sensitivity: int) -> int:
    """One for all these epsilons, so that one program learns for all."""
    width = learned_noise.cut_off(min(epsilons), delta, sensitivity, FARTHEST)
    return 4 * sensitivity if delta == 0 else (FARTHEST if width is None else width) + 2 * sensitivity


def _noise(epsilon: float, delta: float, epsilons: list[float], settings: Settings, context: Context) -> dict:
    """Laws of |x| = 0, 1, ... by name, their losses, and the delta certified of the learned one."""
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
    # A billionth more of both: ratios of exactly e^epsilon round to either side.
    more = 1 + 1e-9
    return learned_noise.mechanism(
        weights, epsilon=epsilon * more, delta=delta * more, rate=epsilon, sensitivity=sensitivity
    )


# ------------------------------------------------------------------------------------------------------- (b) audits


def _audits(settings: Settings, context: Context) -> Iterator[Row]:
    """Lower bounds on epsilon; a panel is (kind of audit, broken or sound)."""
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
    """(by a learned event, by events of single coordinates, which share the level) for every number of runs: the first ones of all."""
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
