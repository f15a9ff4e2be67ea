"""Draws the picture from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "pure, proper": style.COLOURS[1],
    "pure, improper (hashed)": style.COLOURS[2],
    "approximate, proper (LearnPoints)": style.COLOURS[3],
    "pure, any": style.COLOURS[0],
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes points_least_n as PNG and SVG."""
    with style.house():
        fig, axes = style.figure(figsize=(7.2, 4.0))
        for name, part in records.series(rows, "least n").items():
            style.interval(axes, *records.columns(part), color=COLOUR[name], marker="o", label=name)
        for name, part in records.series(rows, "bound").items():
            axes.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=1, label=f"lower bound: {name}")
        axes.set(yscale="log", xlabel="d (the domain is {0, ..., $2^d - 1$})", ylabel="examples")
        style.doubling(axes, settings["bounds"])
        axes.minorticks_off()
        style.title(
            fig,
            f"Least n that learns a point to population error {settings['alpha']:g} {captions.success(settings)}",
            f"{captions.privacy(settings)} (δ = 0 for the pure ones), replace-one; the target has mass {settings['mass']:g}",
        )
        style.legend_beside(axes)
        style.save(fig, out / "points_least_n")
