"""Draws the benchmark's pictures, and writes its tables in Markdown for the README."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions, records
from experiments.benchmarks import firsts, grids
from experiments.benchmarks.answers import PANEL as SECONDS
from experiments.benchmarks.measure import RATES
from experiments.benchmarks.scaling import BITS, EXAMPLES, EXPONENT
from experiments.benchmarks.scaling import PANEL as SCALING
from experiments.records import Row
from experiments.settings import Settings

MARKS = {"floor": ("|", 0), "dpjax": ("o", 2), "NumPy": ("s", 1), "specialised NumPy": ("D", 6)}
LABEL = {
    "floor": "random words drawn and\nsorted or moved once",
    "NumPy": "NumPy, general",
    "specialised NumPy": "NumPy, specialised",
}
AXIS = {"n": f"n (examples, d = {BITS})", "d": f"d (bits, n = {EXAMPLES:,})", "trials": "number of trials"}
# Names of learners for a reader; the tables have the short names of the code.
LEARNERS = {
    "erm": "ERM (not private)",
    "interior exponential": "interior point, exponential mechanism",
    "interior rec_concave": "interior point, RecConcave",
    "supported_tree": "interior point, supported tree",
    "supported": "supported thresholds",
    "points exponential": "points, exponential mechanism",
    "parities exponential": "parities, exponential mechanism",
    "thresholds histogram": "all thresholds, histogram",
    "thresholds tree": "all thresholds, tree",
    "rec_concave": "RecConcave",
    "binary_search": "binary search",
    "point_learner": "PointLearner",
    "parity_learner": "ParityLearner",
    "generic": "GenericLearner",
    "label_private": "label-private learner",
    "blr": "BLR",
    "length_search": "search for a length",
    "power_search": "search for a power",
    "elimination": "Gaussian elimination",
    "tracing": "tracing pirates",
    "attack": "fingerprinting attack",
    "laplace": "Laplace noise",
}
PEERS = {"OpenDP": ("x", 5), "diffprivlib": ("+", 4), "published": ("v", 3)}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes benchmarks_rates and benchmarks_scaling (PNG, SVG) and benchmarks.md."""
    with style.house():
        _rates(rows, settings, out / "benchmarks_rates")
        _scaling(rows, settings, out / "benchmarks_scaling")
    (out / "benchmarks.md").write_text("\n".join(_tables(rows)) + "\n")


def panels_of(rows: list[Row], prefix: str) -> list[str]:
    """The panels whose names begin with the prefix, in order."""
    return [panel for panel in dict.fromkeys(row.panel for row in rows) if panel.startswith(prefix)]


def in_words(cell: str) -> str:
    """A cell, a learner and its sizes, for a reader."""
    learner, _, sizes = cell.partition(", ")
    first, _, rest = learner.partition(" ")
    words = f"quantiles, {captions.words(rest)}" if first == "quantiles" and rest else captions.words(learner)
    return ", ".join([LEARNERS.get(learner, words), sizes.replace("=", " = ")])


def _row_of_each(rows: list[Row], panel: str) -> dict[str, Row]:
    """The row of each series in a panel that has one each."""
    return {series: part[0] for series, part in records.series(rows, panel).items()}


def _mark(series: str) -> tuple[str, str]:
    """A series' marker and colour; a peer's series begins with the name of the peer."""
    marker, colour = MARKS.get(series) or PEERS[series.split()[0]]
    return marker, style.COLOURS[colour]


def _rates(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws one line for each cell, with everybody's trials per second."""
    panels = panels_of(rows, RATES)[::-1]
    fig, axes = style.figure(figsize=(8.2, 1.6 + 0.24 * len(panels)))
    labelled: set[str] = set()
    for place, panel in enumerate(panels):
        for series, row in _row_of_each(rows, panel).items():
            marker, colour = _mark(series)
            label = LABEL.get(series, series.removesuffix(" median"))
            new = label not in labelled
            labelled.add(label)
            axes.plot([row.low, row.high], [place, place], color=colour, linewidth=1)
            axes.plot(
                row.value,
                place,
                marker,
                color=colour,
                markersize=8 if marker == "|" else 5,
                label=label if new else None,
            )
    axes.set_yticks(range(len(panels)), [in_words(panel.removeprefix(RATES)) for panel in panels], fontsize=7)
    axes.set(xscale="log", xlabel="trials per second", ylim=(-0.7, len(panels) - 0.3))
    style.title(
        fig,
        "Trials per second by learner and size: dpjax and NumPy on two cores, the others on one",
        f"medians of {settings['repeats']} measurements, lines from the least to the greatest",
    )
    fig.legend(loc="outside lower center", ncols=3)
    style.save(fig, path)


def _scaling(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """Draws seconds against n, d and the number of trials, with fitted exponents in the legends."""
    panels = panels_of(rows, SCALING)
    fig, grid = style.figure(1, len(panels), figsize=(4.4 * len(panels), 5.4), squeeze=False)
    for axes, panel in zip(grid[0], panels, strict=True):
        axis = panel.removeprefix(SCALING)
        fitted = {row.series: row for row in rows if row.panel == f"{EXPONENT}{axis}"}
        for series, part in records.series(rows, panel).items():
            who, what = series.split(", ")
            line = {"color": _mark(who)[1], "marker": _mark(who)[0], "linestyle": ":" if "law" in what else "-"}
            what = what.replace("erm", "ERM").replace("a law", "an exact law")
            label = f"{LABEL.get(who, who)}: {what}\n  {_power(fitted.get(series), axis)}"
            style.interval(axes, *records.columns(part), label=label, **line)
        axes.set(xscale="log", yscale="log", xlabel=AXIS.get(axis, axis))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    grid[0][0].set_ylabel("seconds")
    style.title(
        fig,
        "Seconds of a trial or of an exact law against n and d, and of all trials against their number",
        f"medians of {settings['repeats']} measurements, bands from the least to the greatest; exponents fitted to the upper half",
    )
    style.save(fig, path)


def _power(row: Row | None, axis: str) -> str:
    """The power for a legend: ∝ n^1.02 [0.99, 1.05]."""
    if row is None:
        return "measured once"
    letter = axis if len(axis) == 1 else r"\mathrm{" + axis + "}"
    return f"$\\propto {letter}^{{{row.value:.2f}}}$ [{row.low:.2f}, {row.high:.2f}]"


def _seconds(value: float) -> str:
    """Seconds in tenths, or with two digits if they are less than one."""
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _tables(rows: list[Row]) -> list[str]:
    """One table of dpjax's rates and their ratios, one each of seconds to an answer, exponents, seconds to a first answer, and grids."""
    lines = [
        "| learner | cell | trials/s | words alone / dpjax | dpjax / NumPy | / specialised NumPy "
        f"| {' | '.join(f'/ {peer}' for peer in PEERS)} |",
        f"|---|---|---|---|---|---|{'---|' * len(PEERS)}",
    ]
    for panel in panels_of(rows, RATES):
        learner, _, sizes = panel.removeprefix(RATES).partition(", ")
        rate = {series: row.value for series, row in _row_of_each(rows, panel).items()}
        ours = rate.pop("dpjax")
        ratios: list[Any] = [f"{rate['floor'] / ours:.2f}"]
        for who in ("NumPy", "specialised NumPy", *PEERS):
            theirs = next((value for series, value in rate.items() if series.removesuffix(" median") == who), None)
            ratios.append("" if theirs is None else ratio(ours / theirs))
        lines.append(f"| {learner} | {sizes} | {ours:,.{0 if ours >= 100 else 1}f} | {' | '.join(ratios)} |")
    lines += ["", "| question | by | answer | seconds |", "|---|---|---|---|"]
    for row in rows:
        if row.panel.startswith(SECONDS):
            answer = round(row.x, 6) + 0  # of -0 this makes 0
            lines.append(f"| {row.panel.removeprefix(SECONDS)} | {row.series} | {answer:.4g} | {row.value:.1f} |")
    lines += ["", "| cost of | grows with | from | exponent | interval |", "|---|---|---|---|---|"]
    for row in rows:
        if row.panel.startswith(EXPONENT):
            axis = row.panel.removeprefix(EXPONENT)
            lines.append(
                f"| {row.series} | {axis} | {row.x:,.0f} | {row.value:.2f} | {row.low:.2f} to {row.high:.2f} |"
            )
    times = (firsts.COLD, firsts.CACHED, firsts.AGAIN)
    lines += [
        "",
        f"| until a first answer | cell | {' | '.join(f'{each}, s' for each in times)} |",
        "|---|---|---|---|---|",
    ]
    for panel in panels_of(rows, firsts.PANEL):
        what, _, sizes = panel.removeprefix(firsts.PANEL).partition(", ")
        spent = _row_of_each(rows, panel)
        lines.append(f"| {what} | {sizes} | {' | '.join(_seconds(spent[each].value) for each in times)} |")
    lines += ["", f"| cells per second | learner | {grids.TOGETHER} | {grids.ALONE} | ratio |", "|---|---|---|---|---|"]
    for panel in panels_of(rows, grids.PANEL):
        what, _, learner = panel.removeprefix(grids.PANEL).partition(", ")
        both = _row_of_each(rows, panel)
        together, alone = both[grids.TOGETHER].value, both[grids.ALONE].value
        lines.append(f"| {what} | {learner} | {together:.3g} | {alone:.3g} | {ratio(together / alone)} |")
    return lines


def ratio(value: float) -> str:
    """A ratio with two digits, or all digits of its integer part from 10 on."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
