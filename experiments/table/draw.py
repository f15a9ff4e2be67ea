"""The picture, from the table alone."""

import pathlib

from dpjax.plotting import style
from experiments.records import Row


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes tables_exponents as PNG and SVG."""
    measured, upper, lower = ([row for row in rows if row.panel == panel] for panel in ("exponent", "upper", "lower"))
    with style.house():
        fig, axes = style.figure(figsize=(8.4, 0.6 + 0.36 * max(len(measured), 3)))
        places = {row.series: -place for place, row in enumerate(measured)}
        for part, marker, label in ((lower, 4, "lower bound"), (upper, 5, "upper bound")):
            axes.plot(
                [row.value for row in part],
                [places[row.series] for row in part],
                linestyle="none",
                marker=marker,
                markersize=9,
                color="grey",
                label=f"the theorems' {label}",
            )
        below = [row.value - row.low for row in measured]
        above = [row.high - row.value for row in measured]
        axes.errorbar(
            [row.value for row in measured],
            list(places.values()),
            xerr=[below, above],
            fmt="o",
            capsize=2,
            color=style.COLOURS[2],
            label="measured, with interval",
        )
        axes.set_yticks(list(places.values()), list(places))
        axes.set(xlabel="exponent of k in the least n", xlim=(-0.15, 1.25))
        fig.suptitle("Simultaneous private learning (MULTI §1.3): theorems and measured exponents of k", fontsize=9)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        style.save(fig, out / "tables_exponents")
