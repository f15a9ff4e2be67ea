"""An experiment that is a sweep: how many examples each of several algorithms needs, against a setting, in one picture.

It is defined by its settings, its algorithms with their distribution, and its title alone; `dpjax.least_n` does the measuring.
"""

import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from dpjax.plotting import style
from dpjax.trials.sweep import least_n
from experiments import captions, records
from experiments.records import Row
from experiments.refusals import Refused
from experiments.runner import Context, Experiment
from experiments.settings import Settings

# Settings that `least_n` takes, if given.
NUMBERS = ("alpha", "beta", "level", "start", "maximum", "rtol", "draws", "trials")


def experiment(
    summary: str,
    *,
    presets: Mapping[str, Settings],
    algorithms: Callable[[Settings], Mapping[str, Callable[..., Any]]],
    distribution: Callable[[Settings], Callable[..., Any]],
    title: Callable[[Settings], str],
) -> Experiment:
    """An experiment with one picture, of the least n.

    Args:
        summary: the experiment in one line.
        presets: settings by preset. They hold `alpha`, `beta` and `over`, a group of one setting with its values, and whatever else
            `dpjax.least_n` takes or the functions below need.
        algorithms: a function from the settings to the `algorithms` of `dpjax.least_n`.
        distribution: a function from the settings to the `distribution` of `dpjax.least_n`.
        title: a function from the settings to the title, which says what the picture shows.
    """

    def measure(settings: Settings, context: Context) -> list[Row]:
        x = _axis(settings["over"])
        curve = least_n(
            algorithms(settings),
            distribution=distribution(settings),
            over=settings["over"],
            seed=context.seed,
            store=context.store,
            progress=True,
            **{name: settings[name] for name in NUMBERS if name in settings},
        )
        found = [row for row in curve.to_rows() if row["n"] is not None]
        return [
            Row("least n", row["series"], row[x], row["n"], row["low"] or 1, row["high"] or math.inf) for row in found
        ]

    def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
        (x,) = settings["over"]
        with style.house():
            fig, axes = style.figure(figsize=(6.8, 4.2))
            for name, part in records.series(rows, "least n").items():
                style.interval(axes, *records.columns(part), marker="o", label=name)
            axes.set(yscale="log", xlabel=x, ylabel="examples")
            if min(settings["over"][x]) > 0:
                style.doubling(axes, settings["over"][x])
            style.title(fig, title(settings), f"error at most {settings['alpha']:g} {captions.success(settings)}")
            style.legend_beside(axes)
            style.save(fig, out / "least_n")

    return Experiment(summary, presets, measure, draw)


def _axis(over: Mapping[str, Any]) -> str:
    """The name of the one setting, whose values are the numbers along the x axis."""
    if len(over) != 1 or not all(isinstance(each, int | float) for values in over.values() for each in values):
        raise Refused(f"over must be one setting and its numbers, which make an axis, got {dict(over)!r}")
    return next(iter(over))
