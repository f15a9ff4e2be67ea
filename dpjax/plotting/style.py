"""How all pictures of dpjax look, and how they are written: PNG and SVG, the same bytes for the same data."""

import math
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib.pyplot as plt

# Okabe and Ito's palette: distinguishable by colour-blind readers too.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BROWN = "#8c564b"  # where these are not enough

SETTINGS: Any = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    "svg.hashsalt": "dpjax",
    "svg.fonttype": "none",
}


def house() -> Any:
    """A context in which everything is drawn in the house style; matplotlib's settings are as before afterwards."""
    return plt.rc_context(SETTINGS)


def figure(rows: int = 1, columns: int = 1, **kwargs: Any) -> tuple[Any, Any]:
    """A figure and its axes (`plt.subplots` with constrained layout)."""
    return plt.subplots(rows, columns, layout="constrained", **kwargs)


def title(fig: Any, *lines: str) -> None:
    """The lines above a whole figure."""
    fig.suptitle("\n".join(lines), fontsize=9)


def legend_beside(axes: Any, **kwargs: Any) -> None:
    """A legend to the right of the axes, where no curve can run through it."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), **kwargs)


def nested(number: int, count: int) -> dict[str, float]:
    """Width and marker of line `number` of `count` lines that may lie on each other: the later ones are thinner, so that all are seen."""
    later = count - 1 - number
    return {"linewidth": 1.2 + 0.6 * later, "markersize": 3.5 + 1.6 * later}


def doubling(axes: Any, ticks: Iterable[float] | None = None) -> None:
    """A logarithmic x axis on which a step doubles x; `ticks`, if given, are written as plain numbers."""
    axes.set_xscale("log", base=2)
    if ticks is not None:
        places = sorted(ticks)
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.tick_params(axis="x", which="minor", bottom=False)


def save(fig: Any, path: pathlib.Path) -> None:
    """Writes path.png and path.svg, without dates, and closes the figure."""
    fig.savefig(path.with_name(f"{path.name}.png"), metadata={"Software": None})
    fig.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
    plt.close(fig)


def interval(axes: Any, x: Any, value: Any, low: Any, high: Any, **kwargs: Any) -> None:
    """A line of values with a band from low to high, and an arrowhead where high is infinite."""
    (line,) = axes.plot(x, value, **kwargs)
    colour, ends = line.get_color(), _drawn_ends(value, high)
    axes.fill_between(x, low, ends, color=colour, alpha=0.2, linewidth=0)
    if len(x) == 1:  # where a band shows nothing
        axes.vlines(x, low, ends, color=colour, alpha=0.4, linewidth=5)
    no_end(axes, _without_end(x, value, high), colour)


def points(axes: Any, x: Any, value: Any, low: Any, high: Any, **kwargs: Any) -> None:
    """Points with error bars from low to high, and an arrowhead where high is infinite."""
    below = [v - a for v, a in zip(value, low, strict=True)]
    above = [b - v for v, b in zip(value, _drawn_ends(value, high), strict=True)]
    bars = axes.errorbar(x, value, yerr=[below, above], fmt="o", capsize=2, linestyle="none", **kwargs)
    no_end(axes, _without_end(x, value, high), bars[0].get_color())


def no_end(axes: Any, at: Sequence[tuple[Any, Any]], colour: Any) -> None:
    """An arrowhead at each of these points, whose intervals have no upper end."""
    if at:
        axes.plot(*zip(*at, strict=True), "^", color=colour, markersize=9, label="_no end")


def _drawn_ends(value: Any, high: Any) -> list[Any]:
    """The upper ends as drawn: the value itself where the interval has no end, since nothing can be drawn up to infinity."""
    return [v if math.isinf(end) else end for v, end in zip(value, high, strict=True)]


def _without_end(x: Any, value: Any, high: Any) -> list[tuple[Any, Any]]:
    return [(place, v) for place, v, end in zip(x, value, high, strict=True) if math.isinf(end)]
