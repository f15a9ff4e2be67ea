"""The two pictures, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import records
from experiments.interior_point.measure import AMPLIFIED, COMPOSITION, EXPONENTIAL, PRINTED, REC_CONCAVE, SLICING
from experiments.records import Row
from experiments.thresholds.draw import crossing

COLOUR = {
    EXPONENTIAL: style.COLOURS[1],
    REC_CONCAVE: style.COLOURS[2],
    COMPOSITION: style.COLOURS[0],
    SLICING: style.COLOURS[3],
    PRINTED: style.COLOURS[4],
    AMPLIFIED: style.COLOURS[5],
}
FLOOR = 1e-12  # the least failure that is drawn


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes interior_point_least_n and interior_point_failure as PNG and SVG."""
    with style.house():
        _draw_least_n(rows, out / "interior_point_least_n")
        _draw_failure(rows, out / "interior_point_failure")


def _draw_least_n(rows: list[Row], path: pathlib.Path) -> None:
    """(a) n* against d."""
    fig, axes = style.figure(figsize=(7.2, 4.2))
    measured = records.series(rows, "least n")
    for name, part in measured.items():
        x, value, low, high = records.columns(part)
        style.interval(axes, x, value, low, high, color=COLOUR[name], marker="o", label=name)
    for name, part in records.series(rows, "planned").items():
        axes.plot(*records.curve(part), "--", color=COLOUR[name], linewidth=1)
    axes.plot([], [], "--", color="grey", linewidth=1, label="proved to suffice")
    if PRINTED not in measured:
        axes.plot([], [], "--", color=COLOUR[PRINTED], linewidth=1, label=f"{PRINTED} (proved)")
    _mark_crossings(axes, measured)
    axes.set(yscale="log", xlabel="d (the domain is {0, ..., $2^d - 1$})", ylabel="points")
    axes.set_xscale("log", base=2)
    axes.axvspan(4096 * 1.4, axes.get_xlim()[1], color="grey", alpha=0.08, linewidth=0)
    axes.text(4096 * 1.6, 5000, "points never\nwritten down", fontsize=7, color="grey", va="center")
    fig.suptitle(
        "Least n that finds an interior point with probability 0.9 on the worst of six kinds of data\n"
        "ε = 1, δ = $10^{-6}$, add/remove; exact laws, shaded: trials",
        fontsize=9,
    )
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.save(fig, path)


def _mark_crossings(axes: Any, measured: dict[str, list[Row]]) -> None:
    """The d from which the exponential mechanism is beaten, by whom."""
    found = {}
    for name in (COMPOSITION, REC_CONCAVE, SLICING, AMPLIFIED):
        by_x = {row.x: row for row in measured.get(name, [])}
        shared = [row for row in measured.get(EXPONENTIAL, []) if row.x in by_x]
        point = crossing(
            shared, list(by_x.values())
        )  # the exponential mechanism's curve, below at first, rises past the other
        if point is not None:
            found[name] = point
    for name, point in found.items():
        axes.plot(*point, marker="o", markersize=9, markerfacecolor="none", color=COLOUR[name], linestyle="none")
    lines = [f"d ≈ {point[0]:.0f}: {name}" for name, point in sorted(found.items(), key=lambda item: item[1])]
    if lines:
        text = "\n".join(["beats the exponential mechanism from", *lines])
        axes.text(0.98, 0.05, text, transform=axes.transAxes, fontsize=8, ha="right", va="bottom")


def _draw_failure(rows: list[Row], path: pathlib.Path) -> None:
    """(b) failure against n, a panel a solver."""
    names = [name for name in COLOUR if records.series(rows, f"failure: {name}")]
    fig, all_axes = style.figure(1, len(names), figsize=(3.0 * len(names) + 1.2, 3.6), sharey=True, squeeze=False)
    for name, axes in zip(names, all_axes[0], strict=True):
        for number, (kind, part) in enumerate(records.series(rows, f"failure: {name}").items()):
            x, value, low, high = records.columns(part)
            shown = [[max(v, FLOOR) for v in column] for column in (value, low, high)]
            style.interval(axes, x, *shown, color=style.COLOURS[number], marker="o", label=kind)
        axes.set(yscale="log", xlabel="n (points)", title=name, ylim=(FLOOR / 3, 3))
        axes.axhline(0.1, color="grey", linewidth=0.8, linestyle=":")
    all_axes[0][0].set_ylabel("P[no interior point]")
    all_axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), title="data")
    fig.suptitle(
        "How the failure falls with n, by kind of data; dotted: 0.1\n"
        "exact laws, shaded: trials; what is below $10^{-12}$ is drawn there",
        fontsize=9,
    )
    style.save(fig, path)
