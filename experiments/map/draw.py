"""Draws the pictures from the table of results alone."""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpjax.plotting import style
from experiments import captions, records
from experiments.map.measure import NOTHING, PLANES, grid
from experiments.records import Row
from experiments.settings import Settings

NAMES = {
    "exponential": "exponential mechanism, interior points",
    "points": "exponential mechanism, points",
    "permute_and_flip": "permute-and-flip, median",
    "threshold": "exponential mechanism, thresholds",
    "supported_tree": "supported tree (all data)",
    "tree_log": "TreeLog (combs)",
    "tree_score": "tree score (all data)",
}
# Keyed by the names that `dpjax.choose` gives, so that an algorithm has one colour in all panels.
COLOUR = {
    "exponential": 1,
    "tree_score": 2,
    "tree_log": 3,
    "supported_tree": 0,
    "interior.threshold_learner": 2,
    "supported": 0,
    "amplified": 5,
    "approximate": 6,
    "direct": 2,
    "permute_and_flip": 3,
    "inverse_sensitivity": 4,
    "noisy_slices": 1,
    "rank_exponential": 8,
    "supported_slices": 9,
    "recursive": 5,
    "tree": 7,
    "histogram_learner": 4,
    "hashed": 2,
    "learn_points": 3,
    "slices, basic": 6,
    "slices, bounded": 4,
    "slices, optimal": 3,
    "slices, slicing": 2,
}
COLOURS = (*style.COLOURS, "#F0E442", style.BROWN, "#999933")
WORDS = {
    "noisy_slices": "slices around noisy ranks",
    "rank_exponential": captions.words("rank exponential"),
    "tree": "hierarchical histogram",
}
AXES = {"d": "d (bits)", "k": "k (concepts)", "n": "n (examples)", "q": "q (quantiles)", "D": "D (axes)"}
WHITE = "#f4f4f4"


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes map_regions and map_looseness as PNG and SVG."""
    with style.house():
        _regions(rows, settings, out)
        _looseness(rows, settings, out)


def _nearest(places: Sequence[float], value: float) -> int:
    """The index of the grid's place nearest to a value; a value written on another machine may differ in its last digit."""
    return min(range(len(places)), key=lambda i: abs(places[i] - value))


def _regions(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    fig, panels = style.figure(2, 3, figsize=(10.6, 8.8))
    for axes, (panel, (x_axis, x_ends, y_axis, y_ends, _)) in zip(panels.flat, PLANES.items(), strict=True):
        found = records.series(rows, panel)
        xs, ys = grid(x_axis, x_ends, settings["columns"]), grid(y_axis, y_ends, settings["rows"])
        names = sorted(found.keys() - {NOTHING}, key=lambda name: -len(found[name]))
        cells = np.full((len(ys), len(xs)), np.nan)
        for number, name in enumerate(names):
            for row in found[name]:
                cells[_nearest(ys, row.value), _nearest(xs, row.x)] = number
        colours = [_lighter(COLOURS[COLOUR.get(name.removeprefix("direct_sum, "), 4)]) for name in names]
        shade: Any = np.ones((*cells.shape, 3)) * _rgb(WHITE)
        for number, colour in enumerate(colours):
            shade[cells == number] = colour
        axes.pcolormesh(_edges(xs), _edges(ys), shade, rasterized=True)
        for part in records.series(rows, f"{panel}, crossing").values():
            axes.plot(*records.curve(part), ".", color="black", markersize=2.5)
        for number, name in enumerate(names):
            axes.plot([], [], "s", color=colours[number], label=WORDS.get(name, captions.words(name)))
        if NOTHING in found:
            axes.plot([], [], "s", color=WHITE, markeredgecolor="grey", label=NOTHING)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=AXES.get(x_axis, x_axis),
            ylabel=AXES.get(y_axis, y_axis),
            title=panel.replace("even", "evenly spaced"),
        )
        axes.set(xlim=(_edges(xs)[0], _edges(xs)[-1]), ylim=(_edges(ys)[0], _edges(ys)[-1]))
        axes.grid(False)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
    style.title(
        fig,
        f"The algorithm that is proved to need the fewest records, or to have the least error, {captions.success(settings)}",
        f"{captions.privacy(settings)}, error {settings['alpha']:g}, where they are not on an axis; dots: where one hands over to another",
    )
    style.save(fig, out / "map_regions")


def _looseness(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    fig, axes = style.figure(figsize=(7.2, 3.8))
    stated, worst = records.series(rows, "stated"), records.series(rows, "worst")
    for number, name in enumerate(stated):
        x = [row.x for row in stated[name]]
        ratio = [one.value / other.value for one, other in zip(stated[name], worst[name], strict=True)]
        size = style.nested(number, len(stated))["markersize"]
        axes.plot(x, ratio, "o-", color=style.COLOURS[number % 7], markersize=size, label=NAMES.get(name, name))
    axes.set(xlabel="d (the domain is {0, ..., $2^d - 1$})", ylabel="stated n / least n on these data")
    style.doubling(axes, {row.x for part in stated.values() for row in part})
    axes.set_ylim(bottom=0.95)
    style.title(
        fig,
        f"The n that is stated, beside what the worst data known need {captions.success(settings)}",
        f"{captions.privacy(settings)}, error {settings['alpha']:g}",
    )
    style.legend_beside(axes, markerscale=0.7)
    style.save(fig, out / "map_looseness")


def _edges(places: list[Any]) -> np.ndarray:
    """The borders of cells around places on a logarithmic axis."""
    logs = np.log(np.asarray(places, float))
    middle = (logs[1:] + logs[:-1]) / 2
    return np.exp(np.concatenate([[2 * logs[0] - middle[0]], middle, [2 * logs[-1] - middle[-1]]]))


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _lighter(colour: str) -> Any:
    return 0.45 * _rgb(colour) + 0.55
