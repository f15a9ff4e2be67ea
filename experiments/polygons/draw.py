"""Draws the pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

LOOKS = {
    "a shared test": ("o", style.COLOURS[2]),
    "a shared test, GEO's measure": ("s", style.COLOURS[3]),
    "composition": ("^", style.COLOURS[1]),
    "GEO's constants": ("x", style.COLOURS[4]),
    "convex hull, not private": ("D", "#808080"),
}
INSIDE, OUTSIDE = style.COLOURS[0], style.COLOURS[1]


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes polygons_least_n, polygons_rounds, polygons_many and polygons_outline as PNG and SVG."""
    with style.house():
        _least_n(rows, settings, out)
        _rounds(rows, settings, out)
        _many(rows, settings, out)
        _outline(rows, settings, out)


def _least_n(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    fig, panels = style.figure(1, 2, figsize=(10.4, 4.4), sharey=True)
    words = {"sides": ("k (sides of the polygon)", "bits"), "bits": ("d (a grid of $2^d$ by $2^d$ points)", "sides")}
    for axes, (panel, (label, other)) in zip(panels, words.items(), strict=True):
        measured, asked = records.series(rows, panel), records.series(rows, f"{panel}, asked")
        for name, (marker, colour) in LOOKS.items():
            look = {"color": colour, "marker": marker, "markersize": 4}
            if name in measured:
                style.interval(axes, *records.columns(measured[name]), label=name, **look)
            if name in asked:
                axes.plot(*records.curve(asked[name]), linestyle="--", label=None if name in measured else name, **look)
        style.doubling(axes, settings[f"over {panel}"][panel])
        fixed = settings[f"over {panel}"][other]
        axes.set(yscale="log", xlabel=label, title=f"d = {fixed} bits" if other == "bits" else f"k = {fixed} sides")
    panels[0].set_ylabel("examples")
    # An interval may reach down to 1.
    panels[0].set_ylim(bottom=min(row.value for row in rows if row.panel in words) / 2)
    style.title(
        fig,
        f"Least n to learn a convex polygon to error {settings['alpha']:g} {captions.success(settings)}, {captions.privacy(settings)}",
        "solid: measured by trials; dashed: what the proofs ask for",
    )
    style.legend_beside(panels[1], handles=panels[0].get_legend_handles_labels()[0])
    style.save(fig, out / "polygons_least_n")


def _rounds(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    at = settings["runs"]["rounds"]
    names = [panel for panel in dict.fromkeys(row.panel for row in rows) if panel.startswith("round ")]
    fig, panels = style.figure(1, len(names), figsize=(2.9 * len(names), 3.5), squeeze=False)
    for axes, panel in zip(panels[0], names, strict=True):
        _plane(axes, rows, panel)
        axes.set_title(f"after {panel}" + (" (all)" if panel == names[-1] else ""))
    (error,) = (row.value for row in rows if row.panel == "round, error")
    style.title(
        fig,
        f"SetCoverLearner over halfplanes, a hexagon on $2^{{{at['bits']}}}$ by $2^{{{at['bits']}}}$ points",
        f"{at['n']:,} examples, {captions.privacy(settings)}, error {error:.3f}",
        "dashed: the target; orange: what the halfplanes so far have in common; points: some of the examples left, black inside the target",
    )
    style.save(fig, out / "polygons_rounds")


def _many(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    at = settings["runs"]["many"]
    errors = sorted(row.value for row in rows if row.panel == "many, error")
    fig, axes = style.figure(figsize=(4.8, 5.0))
    for name in dict.fromkeys(row.series for row in rows if row.panel == "many"):
        if name != "target":
            _outlined(axes, rows, "many", name, color=style.COLOURS[2], linewidth=0.7, alpha=0.8)
    _outlined(axes, rows, "many", "target", color="black", linewidth=1.2, linestyle="--")
    _square(axes)
    style.title(
        fig,
        f"{at['runs']} runs on a grid of $2^{{{at['bits']}}}$ by $2^{{{at['bits']}}}$ points, {at['n']:,} examples each",
        f"{captions.privacy(settings)}; errors {errors[0]:.3f} to {errors[-1]:.3f}; dashed: the target, orange: learned",
    )
    style.save(fig, out / "polygons_many")


def _outline(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    at = settings["runs"]["outline"]
    fig, panels = style.figure(1, len(at["sizes"]), figsize=(3.4 * len(at["sizes"]), 3.8), squeeze=False)
    for axes, n in zip(panels[0], at["sizes"], strict=True):
        panel = f"outline {n}"
        _plane(axes, rows, panel)
        (error,) = (row.value for row in rows if row.panel == f"{panel}, error")
        axes.set_title(f"{n:,} reports, error {error:.3f}")
    style.title(
        fig,
        f"Mainland France from reports of places, inside or outside: an intersection of halfplanes, {captions.privacy(settings)}",
        "dashed: the outline, which is no convex polygon; orange: learned; points: the first reports, black inside",
    )
    style.save(fig, out / "polygons_outline")


def _plane(axes: Any, rows: list[Row], panel: str) -> None:
    """Draws the examples, the target and what was learned."""
    found = records.series(rows, panel)
    for name, colour in (("outside", OUTSIDE), ("inside", INSIDE)):
        axes.scatter(*records.curve(found.get(name, [])), s=2, color=colour, linewidths=0)
    _outlined(axes, rows, panel, "target", color="black", linewidth=1.0, linestyle="--")
    _outlined(axes, rows, panel, "learned", color=style.COLOURS[2], linewidth=1.6)
    _square(axes)


def _outlined(axes: Any, rows: list[Row], panel: str, series: str, **look: Any) -> None:
    """Draws a closed line through the corners of a series, in the order of the table."""
    corners = [(row.x, row.value) for row in rows if row.panel == panel and row.series == series]
    axes.plot(*zip(*[*corners, corners[0]], strict=True), **look)


def _square(axes: Any) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
