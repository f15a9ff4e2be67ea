"""Measures the numbers of the pictures: means over random splits of the images, with intervals for the mean."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

from dpjax.trials.progress import Progress
from experiments.embedded import clipping, data, stump
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

FIXED, PRIVATE = "fixed norm", "private quantile"


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "stump", "gain" (by epsilon), "clipping, NAME", "tuned", "rates" (by the norm or fraction), "norms" (by step)."""
    held = data.splits(settings["splits"], context.seed)
    keys = jax.random.split(jax.random.key(context.seed), settings["splits"])
    cells = (
        len(_ways(settings["stump"])) + len(settings["clipping"]["norms"]) + len(settings["clipping"]["fractions"]) + 2
    )
    with Progress(cells, "embedded", unit="cells") as progress:
        return [*_stumps(settings, held, keys, context, progress), *_clipped(settings, held, keys, context, progress)]


def _row(panel: str, series: str, x: float, values: Any, settings: Settings) -> Row:
    """The mean over splits and Student's interval."""
    values = np.asarray(values, float)
    mean, count = values.mean(), len(values)
    quantile = scipy.stats.t.ppf((1 + settings["level"]) / 2, count - 1)
    far = quantile * values.std(ddof=1) / math.sqrt(count)
    return Row(panel, series, x, mean, mean - far, mean + far)


# --------------------------------------------------------------------------------------------------------------- stumps


def _ways(chosen: Settings) -> list[str]:
    """All ways, or those whose numbers in `stump.WAYS` are given; regression, with which the others are compared, must be the first."""
    return [stump.WAYS[number] for number in chosen.get("ways", range(len(stump.WAYS)))]


def _stumps(settings: Settings, held: data.Split, keys: Any, context: Context, progress: Progress) -> list[Row]:
    """Errors, and by how much the error of each way is below that of regression on the same split (panel "gain")."""
    chosen = settings["stump"]
    epsilons = jnp.asarray(chosen["epsilons"])
    begin = functools.cache(lambda: jax.jit(jax.vmap(functools.partial(stump.start, chosen)))(keys, held.public))

    # One program evaluates the features of all ways.
    error = functools.partial(stump.exact_error, chosen)
    errors = jax.jit(jax.vmap(jax.vmap(error, (0, 0, None, None)), (0, None, 0, 0)))

    def compute(way: str) -> Any:
        def train(key: Any, epsilon: Any, public: data.Part, params: Any) -> Any:
            return stump.trained(chosen, way, jax.random.fold_in(key, 1), epsilon, public, params)

        several = jax.jit(jax.vmap(jax.vmap(train, (None, 0, None, None)), (0, None, 0, 0)))
        params = several(keys, epsilons, held.public, begin())
        return np.asarray(errors(params, epsilons, held.private, held.test), float).T.tolist()

    rows, found = [], {}
    for way in _ways(chosen):
        found[way] = np.asarray(context.store.get_or_compute({"stump": way}, functools.partial(compute, way)))
        for epsilon, missed, compared in zip(chosen["epsilons"], found[way], found[stump.REGRESSION], strict=True):
            rows.append(_row("stump", way, epsilon, missed, settings))
            rows += [_row("gain", way, epsilon, compared - missed, settings)] if way != stump.REGRESSION else []
        progress.done(1)
    return rows


# ------------------------------------------------------------------------------------------------------------- clipping


def _clipped(settings: Settings, held: data.Split, keys: Any, context: Context, progress: Progress) -> list[Row]:
    """Errors of both ways against their parameter, untuned and tuned, and the private norms step by step."""
    chosen = settings["clipping"]
    rows = []
    for name, parameter in ((FIXED, "norms"), (PRIVATE, "fractions")):
        plan = _plan(chosen, name)
        untuned = _runs(chosen, plan)
        key = "norm" if name == FIXED else "fraction"
        for value in chosen[parameter]:

            def compute(value: float = value, untuned: Any = untuned, key: str = key) -> Any:
                return [np.asarray(each, float).tolist() for each in untuned({key: value}, keys, held)]

            errors, norms = context.store.get_or_compute({"clipping": name, "at": value}, compute)
            rows.append(_row(f"clipping, {name}", name, value, errors, settings))
            if name == PRIVATE:
                rows += [exact("norms", f"f = {value:g}", step + 1, norm) for step, norm in enumerate(norms)]
            progress.done(1)

        def tune(plan: Any = plan, untuned: Any = untuned, key: str = key) -> Any:
            begun = plan | {"rate": chosen["rate"], key: 1.0 if key == "norm" else 0.5}
            tuned = jax.jit(jax.vmap(lambda one, public: clipping.tuned(chosen, one, public, begun)))(keys, held.public)
            moved = {what: tuned[what] for what in ("rate", key)}
            errors, _ = _runs(chosen, plan, tuned=True)(moved, keys, held)
            return [np.asarray(each, float).tolist() for each in (errors, moved[key], moved["rate"])]

        errors, values, rates = context.store.get_or_compute({"tuned": name}, tune)
        rows.append(_row("tuned", name, float(np.mean(values)), errors, settings))
        rows.append(exact("rates", name, float(np.mean(values)), float(np.mean(rates))))
        progress.done(1)
    return rows


def _plan(chosen: Settings, name: str) -> dict[str, Any]:
    """The part of a plan that does not vary: the noise, and the budget of a private norm."""
    budget = clipping.budget(chosen, private_norm=name == PRIVATE)
    if name == FIXED:
        return {"noise": budget.noise}
    return {"noise": budget.noise, "epsilon": budget.quantile, "temperature": 0.0}


def _runs(chosen: Settings, plan: dict[str, Any], tuned: bool = False) -> Any:
    """The function (moved parameters, keys, splits) -> (error of each split, mean norm of each step), over several runs of each split."""

    def one(moved: Any, key: Any, split: data.Split) -> Any:
        weights, norms = clipping.descend(chosen, key, split.private, {"rate": chosen["rate"], **plan, **moved})
        return clipping.quality(weights, split.test)[1], norms

    def several(moved: Any, key: Any, split: data.Split) -> Any:
        keys = jax.random.split(jax.random.fold_in(key, 2), chosen["runs"])
        errors, norms = jax.vmap(lambda key: one(moved, key, split))(keys)
        return jnp.mean(errors), jnp.mean(norms, axis=0)

    every = jax.jit(jax.vmap(several, in_axes=(0 if tuned else None, 0, 0)))

    def run(moved: Any, keys: Any, held: data.Split) -> Any:
        errors, norms = every(jax.tree.map(jnp.asarray, moved), keys, held)
        return errors, jnp.mean(norms, axis=0)

    return run
