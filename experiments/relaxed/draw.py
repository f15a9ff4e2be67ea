"""Draws the pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "Gumbel-softmax": style.COLOURS[1],
    "perturbed maximiser": style.COLOURS[2],
    "A_dist": style.COLOURS[4],
    "quantile": style.COLOURS[3],
    "score function": "#999999",
    "score function, other draws as baseline": style.COLOURS[5],
    "score function, exact baseline": style.COLOURS[0],
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes relaxed_distance and relaxed_gradients as PNG and SVG."""
    with style.house():
        _draw_distance(rows, settings, out / "relaxed_distance")
        _draw_gradients(rows, settings, out / "relaxed_gradients")


def _draw_distance(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    fig, axes = style.figure(figsize=(6.4, 3.6))
    for name, part in records.series(rows, "distance").items():
        style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o", label=name)
    for name, part in records.series(rows, "bound").items():
        axes.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=0.9)
    axes.plot([], [], "--", color="grey", linewidth=0.9, label="proved to be at most")
    axes.set(xscale="log", yscale="log", xlabel="temperature t", ylabel="mean distance from the exact draw")
    style.legend_beside(axes)
    what = f"{settings['candidates']} candidates, {settings['values']} values"
    style.title(
        fig, f"Soft draws beside exact draws of the same noise, ε = {captions.number(settings['epsilon'])}; {what}"
    )
    style.save(fig, path)


def _draw_gradients(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    fig, panels = style.figure(1, 2, figsize=(10.0, 3.9), sharex=True)
    ends = min(settings["temperatures"]), max(settings["temperatures"])
    for axes, panel in zip(panels, ("bias", "deviation"), strict=True):
        for name, part in records.series(rows, panel).items():
            _draw_estimator(axes, name, part, ends)
        axes.set(xscale="log", xlabel="temperature t")
    panels[0].set(ylabel="length of the bias", title="bias (bars: where it may be)", ylim=(0, None))
    panels[1].set(ylabel="standard deviation", title="standard deviation of one draw", yscale="log")
    style.legend_beside(panels[1])
    what = f"the choice among {settings['candidates']} candidates at ε = {captions.number(settings['epsilon'])}"
    style.title(fig, f"Gradients through {what}, in lengths of the exact gradient; {settings['draws']:,} draws each")
    style.save(fig, path)


def _draw_estimator(axes: Any, name: str, part: list[Row], ends: tuple[float, float]) -> None:
    """Draws a line with bars; an estimator without a temperature gets a horizontal line."""
    through = name.startswith("straight-through")
    look: dict[str, Any] = {"color": COLOUR[name.rpartition("through, ")[2]], "label": name}
    look |= {"linestyle": "--" if through else "-", "marker": "s" if through else "o"}
    if name.startswith("score function"):
        (row,) = part
        part = [Row(row.panel, row.series, x, row.value, row.low, row.high) for x in ends]
        look |= {"marker": "", "linestyle": ":", "linewidth": 2.0}
    axes.plot(*records.curve(part), **look)
    for row in part:
        axes.plot([row.x, row.x], [row.low, row.high], color=look["color"], linewidth=0.7, alpha=0.6)
