"""Draws the two pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.quasi_concave.measure import AMPLIFIED, EXPONENTIAL, REC_CONCAVE, SHAPES
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {EXPONENTIAL: style.COLOURS[1], REC_CONCAVE: style.COLOURS[2], AMPLIFIED: style.COLOURS[5]}
LABEL = {AMPLIFIED: captions.words("amplified")}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes quasi_concave_error as PNG and SVG."""
    with style.house():
        fig, (left, right) = style.figure(1, 2, figsize=(9.0, 3.8), width_ratios=[3, 2])
        for name, part in records.series(rows, "measured").items():
            left.plot(*records.curve(part), marker="o", color=COLOUR[name], label=LABEL.get(name, name))
        for name, part in records.series(rows, "proved").items():
            left.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=1)
        left.plot([], [], "--", color="grey", linewidth=1, label="proved")
        left.set(yscale="log", xlabel="log$_2$ T (bits of the domain)", ylabel="additive error")
        style.doubling(left)
        left.set_title(f"error {captions.success(settings)}, worst of {len(SHAPES)} shapes")
        left.legend()
        _draw_levels(rows, right, max(settings["proved"]))
        style.title(fig, f"Quasi-concave optimisation on {{0, ..., T}}, {captions.privacy(settings)}")
        style.save(fig, out / "quasi_concave_error")


def _draw_levels(rows: list[Row], axes: Any, bits: int) -> None:
    """(b) the proved error against the number of recursions, beside the powers by which it is said to grow."""
    for name, base in ((REC_CONCAVE, 8), (AMPLIFIED, 2)):
        part = records.series(rows, "levels").get(name, [])
        if not part:
            continue
        x, value = records.curve(part)
        label = LABEL.get(name, name.partition(",")[0])
        axes.plot(x, value, marker="o", color=COLOUR[name], label=label)
        growth = [value[0] * base ** (n - x[0]) for n in x]
        axes.plot(x, growth, ":", color=COLOUR[name], linewidth=1, label=f"growing as {base}$^N$")
    axes.set(
        yscale="log",
        xlabel="N (recursions)",
        ylabel="additive error (proved)",
        xticks=sorted({r.x for r in rows if r.panel == "levels"}),
    )
    axes.set_title(f"what each recursion costs, log$_2$ T = {bits:,}")
    axes.legend()
