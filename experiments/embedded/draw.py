"""Draws the pictures from the table of results alone."""

import itertools
import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

FIXED, PRIVATE = style.COLOURS[1], style.COLOURS[2]


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes embedded_stump and embedded_clipping as PNG and SVG."""
    with style.house():
        _draw_stump(rows, settings, out / "embedded_stump")
        _draw_clipping(rows, settings, out / "embedded_clipping")


def _draw_stump(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    fig, panels = style.figure(1, 2, figsize=(9.4, 3.6), sharex=True)
    colours: dict[str, Any] = dict(zip(records.series(rows, "stump"), style.COLOURS, strict=False))
    for axes, panel in zip(panels, ("stump", "gain"), strict=True):
        for name, part in records.series(rows, panel).items():
            style.interval(axes, *records.columns(part), color=colours[name], marker="o", label=name)
        axes.set(xscale="log", xlabel="ε of the private threshold")
    panels[0].set(ylabel="expected error on the test third", ylim=(0, None))
    panels[1].axhline(0.0, color="grey", linewidth=0.8)
    panels[1].set(ylabel="error saved, compared with regression")
    panels[0].legend()
    what = f"exact laws, means over 9 cuts c and {settings['splits']} splits of the images"
    bands = f"{captions.percent(settings['level'])} intervals"
    style.title(fig, "Is the digit below c? A private threshold on a feature trained in public", f"{what}; {bands}")
    style.save(fig, path)


def _draw_clipping(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    chosen = settings["clipping"]
    fig, panels = style.figure(1, 3, figsize=(11.0, 3.6))
    panels[1].sharey(panels[0])
    tuned = records.series(rows, "tuned")
    for axes, name, colour in zip(panels, ("fixed norm", "private quantile"), (FIXED, PRIVATE), strict=False):
        style.interval(
            axes,
            *records.columns(records.series(rows, f"clipping, {name}")[name]),
            color=colour,
            marker="o",
            label=name,
        )
        style.points(axes, *records.columns(tuned[name]), color="black", label="tuned by gradient, in public", zorder=3)
        axes.legend()
    panels[0].set(xscale="log", xlabel="clipping norm C", ylabel="error on the test third", ylim=(0, None))
    panels[1].set(xlabel="fraction f of the gradients below C")
    colours = itertools.cycle(style.COLOURS)
    for name, part in records.series(rows, "norms").items():
        panels[2].plot(*records.curve(part), color=next(colours), label=name)
    panels[2].set(yscale="log", xlabel="step", ylabel="mean private norm C")
    style.legend_beside(panels[2])
    what = f"{chosen['steps']} steps, {captions.privacy(chosen)} for the private third (add/remove)"
    bands = f"{settings['splits']} splits of the images, {captions.percent(settings['level'])} intervals"
    style.title(fig, f"Is the digit even? Noisy gradient descent with clipped gradients, {what}", bands)
    style.save(fig, path)
