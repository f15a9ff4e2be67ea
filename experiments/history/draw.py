"""Draws the picture from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

GREY = "#808080"
# Marker and colour by series, in the order in which the ideas came.
LOOKS = {
    "exponential mechanism": ("o", style.COLOURS[1]),
    "binary search": ("s", style.COLOURS[3]),
    "search for a length": ("v", style.COLOURS[4]),
    "search for a power": ("^", style.COLOURS[6]),
    "RecConcave, N=2": ("D", style.COLOURS[2]),
    "RecConcave, N=3": ("d", GREY),
    "2^log* optimiser": ("P", style.COLOURS[5]),
    "TreeLog, composition": ("*", style.COLOURS[0]),
    "TreeLog, slicing": ("x", style.COLOURS[0]),
    "supported tree": ("X", style.BROWN),
    "supported thresholds": ("p", style.BROWN),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes history_least_n as PNG and SVG: two panels with the same axes, for what was measured and what the analyses require."""
    measured, asked = (records.series(rows, panel) for panel in ("least n", "asked"))
    with style.house():
        fig, panels = style.figure(1, 2, figsize=(10.6, 4.6), sharey=True, sharex=True)
        for axes, found, line in zip(panels, (measured, asked), ("-", "--"), strict=True):
            for name, (marker, colour) in LOOKS.items():
                if name in found:
                    numbers = records.columns(found[name])
                    look = {"color": colour, "marker": marker, "markersize": 5, "linestyle": line}
                    style.interval(axes, *numbers, label=captions.words(name), **look)
            axes.set(yscale="log", xlabel="d (the domain is {0, ..., $2^d - 1$})")
            style.doubling(axes, {row.x for part in asked.values() for row in part})
            axes.minorticks_off()
        panels[0].set(ylabel="examples", title="measured, by exact laws")
        panels[1].set(title="what the analyses ask for (error on the sample)")
        style.title(
            fig,
            f"Least n that learns a threshold to error {settings['alpha']:g} {captions.success(settings)}",
            f"{captions.privacy(settings)} under replace-one, log-uniform data around $2^d / 3$",
        )
        style.legend_beside(panels[1])
        style.save(fig, out / "history_least_n")
