"""Measures the numbers of the two pictures."""

import jax
import numpy as np

from dpjax.concepts import rectangles as concept
from dpjax.learners import pac, rectangles
from dpjax.trials import estimates, search
from experiments import least_n
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

MAXIMUM = 2**30  # examples
SLICES = ("low, axis 1", "high, axis 1", "low, axis 2", "high, axis 2")


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "formula", "least n", "points", "rectangle", "run"."""
    return [*_formula(settings), *_least_n(settings, context), *_picture(settings, context)]


def learner(accountant: str, axes: int, settings: Settings) -> rectangles.Rectangles:
    """The learner with the exponential mechanism on each slice, at the experiment's privacy."""
    return rectangles.rectangles(
        axes=axes,
        bits=settings["bits"],
        epsilon=settings["epsilon"],
        delta=settings["delta"],
        beta=settings["beta"],
        accountant=accountant,
    )


def distribution(axes: int, settings: Settings) -> concept.UniformProduct:
    """Uniform data, with a cube that has half of the mass as target; there are no ties, so what a slice loses is really lost."""
    low, high = concept.centred(axes=axes, bits=settings["bits"])
    return concept.uniform(bits=settings["bits"], low=low, high=high)


# ------------------------------------------------------------------------------------------------------ (a) n* by D


def _formula(settings: Settings) -> list[Row]:
    """The number of examples that the utility proof requires."""
    return [
        exact("formula", name, axes, _sample_size(learner(name, axes, settings), settings))
        for name in rectangles.ACCOUNTANTS
        for axes in settings["formula"]
    ]


def _sample_size(chosen: rectangles.Rectangles, settings: Settings) -> int:
    return chosen.sample_size(alpha=settings["alpha"], beta=settings["beta"])


def _least_n(settings: Settings, context: Context) -> list[Row]:
    """The least n with a failure rate of at most beta, from trials, with the n-interval that follows from Clopper-Pearson intervals."""
    series = {name: settings["axes"][name] for name in rectangles.ACCOUNTANTS}
    return least_n.curves(series, lambda name, axes, cell, _: _search(name, axes, cell, settings, context))


def _search(name: str, axes: int, cell: int, settings: Settings, context: Context) -> search.LeastN:
    """`search.least_n` for one accountant and one D; it starts at half of the proved n, which suffices if half of each slice is lost."""
    chosen, law, trials = learner(name, axes, settings), distribution(axes, settings), settings["trials"]

    def failure(n: int) -> estimates.Estimate:
        experiment = pac.Experiment(learner=chosen, distribution=law, n=n, alpha=settings["alpha"], capacity=2**31 - 1)
        key = {"panel": "least n", "accountant": name, "axes": axes, "n": n}
        counted = context.count(rectangles.trial, experiment, key=key, cell=cell, trials=trials, chunk=trials)
        return estimates.clopper_pearson(counted["failed"], trials, level=settings["level"])

    start = _sample_size(chosen, settings) // 2
    return search.least_n(
        failure, beta=settings["beta"], start=start, maximum=MAXIMUM, rtol=settings["rtol"], reach=1.5
    )


# --------------------------------------------------------------------------------------------- (b) a learned rectangle


def _picture(settings: Settings, context: Context) -> list[Row]:
    """One run in two dimensions: examples by slice, target and hypothesis in shares of the domain."""
    at = {**settings, **settings["picture"]}
    chosen = learner(at["accountant"], 2, at)
    scale = float(1 << at["bits"])
    shape = {"low": [int(0.2 * scale), int(0.15 * scale)], "high": [int(0.85 * scale), int(0.9 * scale)]}
    law = concept.uniform(bits=at["bits"], **shape)
    n = _sample_size(chosen, at)
    key_sample, key_run = jax.random.split(jax.random.fold_in(context.root, 2**31))
    sample = law.sample(key_sample, n, n)
    outcome = chosen(key_run, sample)
    where, x = np.asarray(chosen.slices(key_run, sample))[:n], np.asarray(sample.x)[:, :, 0] / scale
    names = np.where(where >= 0, np.asarray(SLICES)[where], np.where(np.asarray(sample.y) == 1, "positive", "negative"))
    rows = [exact("points", str(name), *point) for name, point in zip(names, x.tolist(), strict=True)]
    for name, box in (("target", law.target), ("hypothesis", outcome.hypothesis)):
        for axis, (low, high) in enumerate(zip(*concept.to_ints(box), strict=True)):
            rows.append(Row("rectangle", name, axis, (high - low) / scale, low / scale, high / scale))
    rows.append(exact("run", "error", 0, float(law.error(outcome.hypothesis))))
    return [*rows, exact("run", "n", 0, n), exact("run", "m", 0, int(chosen.size))]
