"""Draws the two pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.concepts.combs import FAMILIES
from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes worst_data_failure and worst_data_listed as PNG and SVG."""
    with style.house():
        _draw_failure(rows, settings, out / "worst_data_failure")
        _draw_listed(rows, settings, out / "worst_data_listed")


def _draw_failure(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) failure against n, one panel for each solver."""
    lines: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("combs", f"worst of {len(FAMILIES)} × {settings['draws']} combs", {"color": style.COLOURS[0], "marker": "o"}),
        ("found", "found by search", {"color": style.COLOURS[2], "marker": "s"}),
        ("rounded", "after the ascent alone", {"color": style.COLOURS[1], "linestyle": ":"}),
    )
    names = list(settings["sizes"])
    fig, all_axes = style.figure(1, len(names), figsize=(2.9 * len(names) + 1.6, 3.4), squeeze=False)
    for name, axes in zip(names, all_axes[0], strict=True):
        for number, (panel, label, look) in enumerate(lines):
            look |= style.nested(number, len(lines))
            axes.plot(*records.curve(records.series(rows, panel).get(name, [])), label=label, **look)
        axes.set(yscale="log", xlabel="n (points)", title=captions.words(name))
    all_axes[0][0].set_ylabel("P[no interior point]")
    style.legend_beside(all_axes[0][-1])
    style.title(
        fig,
        f"Failure on data made by hand and on data found, d = {settings['bits']}, {captions.privacy(settings)}",
        "exact laws; what is found bounds the failure on the worst data from below",
    )
    style.save(fig, path)


def _draw_listed(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) the worst failure found against the worst of all datasets."""
    given = settings["listed"]
    fig, axes = style.figure(figsize=(6.4, 3.8))
    shapes = "os^D"
    for number, (name, part) in enumerate(records.series(rows, "listed").items()):
        look: dict[str, Any] = {"marker": shapes[number % len(shapes)], "color": style.COLOURS[1 + number]}
        axes.plot(*records.curve(part), linestyle="none", markerfacecolor="none", markersize=7, label=name, **look)
    ends = [min(row.x for row in rows if row.panel == "listed"), 1.0]
    axes.plot(ends, ends, "-", color="grey", linewidth=0.8, label="found = worst")
    axes.set(xscale="log", yscale="log", xlabel="worst failure of all datasets", ylabel="worst failure found")
    style.legend_beside(axes)
    style.title(
        fig,
        f"Found against enumerated: n = {given['n']} records of {2 ** given['bits']} points",
        f"a mark for each ε of {', '.join(map(captions.number, given['epsilons']))} (TreeLog: five times that)",
    )
    style.save(fig, path)
