"""Draws the two pictures from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

# By series: colour and label.
LOOKS = {
    "printed": (style.COLOURS[4], "slicing, printed (CLNSS Theorem 2.1)"),
    "basic": (style.COLOURS[5], "composition, basic"),
    "advanced": (style.COLOURS[6], "composition, advanced"),
    "optimal": (style.COLOURS[1], "composition, optimal"),
    "numerical": (style.COLOURS[0], "slicing, numerical"),
    "audited lower bound": (style.COLOURS[2], "lower bound, by an audit"),
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes slicing_epsilon and slicing_calls as PNG and SVG."""
    with style.house():
        _draw_epsilon(rows, settings, out / "slicing_epsilon")
        _draw_calls(rows, settings, out / "slicing_calls")


def _draw_epsilon(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) total epsilon against the number of slices."""
    fig, axes = style.figure(figsize=(6.8, 4.0))
    found = records.series(rows, "total epsilon")
    for name, (colour, label) in LOOKS.items():
        part = [row for row in found.get(name, []) if row.value > 0]
        kind = {"marker": "^", "linestyle": ":"} if name == "audited lower bound" else {"marker": "o"}
        axes.plot(*records.curve(part), color=colour, label=label, **kind)
    axes.set(yscale="log", xlabel="number of slices", ylabel=f"total ε at δ = {captions.number(settings['delta'])}")
    style.doubling(axes)
    style.title(
        fig,
        "Reorder-Slice-Compute: privacy against the number of slices",
        f"slice noise at ε = {settings['slice_epsilon']:g}, compute at ε = {settings['compute_epsilon']:g}, add/remove",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _draw_calls(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) calls to the data holder."""
    fig, axes = style.figure(figsize=(7.0, 3.6))
    for number, (name, part) in enumerate(records.series(rows, "calls").items()):
        kind = {"marker": "o", "linestyle": "none"} if name.startswith("drawn") else {}
        if name.startswith("printed"):
            kind = {"linestyle": "--"}
        colour = style.COLOURS[4] if name.startswith("printed") else style.COLOURS[1 + name.endswith("1")]
        part = [row for row in part if row.value > 0]
        axes.plot(*records.curve(part), color=colour, label=name, zorder=number, **kind)
    axes.set(yscale="log", xlabel="w (calls to the data holder in one run)", ylabel="P[more than w calls]")
    style.title(
        fig,
        f"Calls to the data holder on the worst case, slice noise at ε = {settings['slice_epsilon']:g}, {settings['calls']:,} runs drawn",
        "b is the holder's secret bit: b = 0 where the smaller dataset is the true one, b = 1 where the larger is",
    )
    style.legend_beside(axes)
    style.save(fig, path)
