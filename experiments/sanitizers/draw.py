"""Draws the two pictures from the table of results alone."""

import pathlib

from dpjax.plotting import style
from experiments import captions, records
from experiments.records import Row
from experiments.settings import Settings

COLOUR = {
    "histogram": style.COLOURS[0],
    "tree": style.COLOURS[2],
    "interior points": style.COLOURS[1],
    "SanThresholds, proved": style.COLOURS[3],
    "SanThresholds, printed": style.COLOURS[4],
    "multiplicative weights": style.COLOURS[5],
    "BLR": style.COLOURS[6],
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes sanitizers_error and sanitizers_least_n as PNG and SVG."""
    with style.house():
        _draw_error(rows, settings, out / "sanitizers_error")
        _draw_least_n(rows, settings, out / "sanitizers_least_n")


def _draw_error(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) the error against n, and against d."""
    fig, (left, right) = style.figure(1, 2, figsize=(10.4, 4.4), sharey=True, width_ratios=(3, 2))
    by_n = records.series(rows, "error by n")
    sampling = by_n.pop("sampling")
    for name, part in by_n.items():
        style.interval(left, *records.columns(part), color=COLOUR[name], marker="o", markersize=3, label=name)
    left.plot(*records.curve(sampling), color="black", linewidth=1, linestyle=":", label="sampling, no privacy")
    # The alpha for which SanThresholds was built, beside the first of its points.
    for name, part in records.series(rows, "design").items():
        errors = {row.x: row.value for row in by_n[name]}
        for alpha in {row.value for row in part}:
            first = min(row.x for row in part if row.value == alpha)
            beside = (-6, -3) if name == "SanThresholds, proved" else (48, -12)
            left.annotate(
                f"α = {alpha:g}",
                (first, errors[first]),
                xytext=beside,
                textcoords="offset points",
                ha="right",
                fontsize=7,
                color=COLOUR[name],
            )
    left.set(xscale="log", yscale="log", xlabel="n (points)", ylabel="largest error of any threshold")
    left.set_title(f"against n, d = {settings['bits']}")
    left.set_ylim(1e-4, 1)
    left.legend(loc="lower left")
    sizes = records.series(rows, "sizes")
    for name, part in records.series(rows, "error by d").items():
        n = sizes[name][0].value
        label = f"{name}, n = {captions.number(n if n < 1e5 else float(f'{n:.2g}'))}"
        style.interval(right, *records.columns(part), color=COLOUR[name], marker="o", markersize=3, label=label)
    style.doubling(right, {row.x for row in rows if row.panel == "error by d"})
    right.set(xlabel="d (bits of the domain)")
    right.set_title("against d")
    right.legend(loc="lower right")
    share, level = captions.percent(1 - settings["beta"]), captions.percent(settings["level"])
    style.title(
        fig,
        f"Databases that answer all thresholds: the largest error that {share} of the runs stay within (band: {level} interval)",
        f"{captions.privacy(settings)}, one point is replaced; points on a logarithmic scale around the middle",
    )
    style.save(fig, path)


def _draw_least_n(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) the least n against d."""
    fig, axes = style.figure(figsize=(8.4, 4.6))
    theorems = records.series(rows, "theorem")
    found = records.series(rows, "least n")
    for name, colour in COLOUR.items():
        if name in found:
            style.interval(axes, *records.columns(found[name]), color=colour, marker="o", markersize=4, label=name)
        axes.plot(*records.curve(theorems.get(name, [])), linestyle="--", color=colour, linewidth=1)
        if name not in found and name in theorems:
            axes.plot([], [], "--", color=colour, label=name)
    axes.plot([], [], "--", color="grey", linewidth=1, label="what the theorem asks for")
    axes.set(yscale="log", xlabel="d (bits of the domain)", ylabel="n (points)")
    style.doubling(axes, {row.x for row in rows if row.panel in ("least n", "theorem")})
    style.legend_beside(axes)
    style.title(
        fig,
        f"How many points a database needs that answers all thresholds within {settings['alpha']:g}, "
        f"{captions.success(settings)}",
        f"{captions.privacy(settings)}, one point is replaced",
    )
    style.save(fig, path)
