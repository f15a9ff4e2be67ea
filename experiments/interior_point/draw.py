"""Draws the two pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.concepts.combs import FAMILIES
from dpjax.plotting import style
from experiments import captions, records
from experiments.curves import crossing
from experiments.interior_point.measure import (
    AMPLIFIED,
    COMPOSITION,
    EXPONENTIAL,
    NEEDED,
    PRINTED,
    REC_CONCAVE,
    SLICING,
    SUPPORTED,
    TREE,
    WIDEST,
)
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    EXPONENTIAL: style.COLOURS[1],
    TREE: style.COLOURS[6],
    REC_CONCAVE: style.COLOURS[2],
    COMPOSITION: style.COLOURS[0],
    SLICING: style.COLOURS[3],
    PRINTED: style.COLOURS[4],
    AMPLIFIED: style.COLOURS[5],
    SUPPORTED: style.BROWN,
}
FLOOR = 1e-12  # the least failure that is drawn


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes interior_point_least_n and interior_point_failure as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, settings, out / "interior_point_least_n")
        _draw_failure(rows, settings, out / "interior_point_failure")


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) n* against d."""
    fig, axes = style.figure(figsize=(7.2, 4.2))
    measured = records.series(rows, "least n")
    for name, part in measured.items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], marker="o", label=captions.words(name))
    for name, part in records.series(rows, "planned").items():
        if name == NEEDED:
            axes.plot(*records.curve(part), ":", color="grey", linewidth=1, label=name)
            continue
        axes.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=1)
        if name not in measured:
            axes.annotate(
                name, (part[0].x, part[0].value), (0, 14), textcoords="offset points", color=COLOUR[name], fontsize=8
            )
    axes.plot([], [], "--", color="grey", linewidth=1, label="dashed, of each colour: proved to suffice")
    _mark_crossings(axes, measured)
    # Room for the list of crossings below all curves.
    axes.set(yscale="log", ylim=(0.5, None), xlabel="d (the domain is {0, ..., $2^d - 1$})", ylabel="points")
    style.doubling(axes)
    axes.axvspan(WIDEST * 1.4, axes.get_xlim()[1], color="grey", alpha=0.08, linewidth=0)
    axes.text(WIDEST * 1.6, 5000, "points never\nwritten down", fontsize=7, color="grey", va="center")
    style.title(
        fig,
        f"Least n that finds an interior point {captions.success(settings)} on the worst of {len(FAMILIES)} kinds of data",
        f"{captions.privacy(settings)}, add/remove; exact laws, in the shaded part trials",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _mark_crossings(axes: Any, measured: dict[str, list[Row]]) -> None:
    """Marks and lists the d from which each solver that needs a delta beats the exponential mechanism."""
    found = {}
    for name in (COMPOSITION, REC_CONCAVE, SLICING, AMPLIFIED, SUPPORTED):
        point = crossing(measured.get(EXPONENTIAL, []), measured.get(name, []))
        if point is not None:
            found[name] = point
    for name, point in found.items():
        axes.plot(*point, marker="o", markersize=9, markerfacecolor="none", color=COLOUR[name], linestyle="none")
    lines = [
        f"d ≈ {point[0]:.0f}: {captions.words(name)}" for name, point in sorted(found.items(), key=lambda item: item[1])
    ]
    if lines:
        text = "\n".join(["beats the exponential mechanism from", *lines])
        axes.text(0.98, 0.05, text, transform=axes.transAxes, fontsize=8, ha="right", va="bottom")


def _draw_failure(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) failure against n, one panel for each solver."""
    names = [name for name in COLOUR if records.series(rows, f"failure: {name}")]
    fig, all_axes = style.figure(1, len(names), figsize=(3.0 * len(names) + 1.2, 3.6), sharey=True, squeeze=False)
    for name, axes in zip(names, all_axes[0], strict=True):
        kinds = records.series(rows, f"failure: {name}")
        for number, (kind, part) in enumerate(kinds.items()):
            _draw_kind(axes, part, label=kind, color=style.COLOURS[number], **style.nested(number, len(kinds)))
        axes.axhline(settings["beta"], color="grey", linewidth=0.8, linestyle=":")
        axes.set(yscale="log", xlabel="n (points)", title=captions.words(name), ylim=(FLOOR / 3, 3))
    last = all_axes[0][-1]
    last.plot([], [], ":", color="grey", linewidth=0.8, label=f"β = {settings['beta']:g}")
    last.plot([], [], "v", color="grey", label=f"below {captions.number(FLOOR)} from here on")
    style.legend_beside(last, title="data", markerscale=0.6)
    all_axes[0][0].set_ylabel("P[no interior point]")
    style.title(
        fig,
        f"How the failure falls with n at d = {settings['by family']['bits']}, by kind of data, {captions.privacy(settings)}",
        f"means of exact laws, band: up to the upper end of the {captions.percent(settings['level'])} interval",
    )
    style.save(fig, path)


def _draw_kind(axes: Any, part: list[Row], *, color: str, markersize: float, **look: Any) -> None:
    """Draws a line with the upper half of its band (the lower half would reach 0), and a wedge where the line falls below FLOOR."""
    seen = [row for row in part if row.value >= FLOOR]
    x, value, _, high = records.columns(seen)
    style.interval(axes, x, value, value, high, color=color, marker="o", markersize=markersize, **look)
    for row in [row for row in part if row.value < FLOOR][:1]:
        path = [*seen[-1:], Row("", "", row.x, FLOOR, FLOOR, FLOOR)]
        axes.plot(*records.curve(path), ":", color=color, linewidth=0.8)
        axes.plot(row.x, FLOOR, "v", color=color, markersize=markersize)
