"""Draws the picture from the table of results alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import captions
from experiments.records import Row
from experiments.settings import Settings
from experiments.table.cells import CELLS
from experiments.table.measure import misses

NO_BOUND = -0.1  # where the bar of a cell without a lower bound begins
TITLES = {"k": "exponent of k (concepts)", "log|X|": "exponent of log|X| (bits of the domain)"}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes tables_exponents as PNG and SVG."""
    of_panel: dict[str, list[Row]] = {}
    for row in rows:
        of_panel.setdefault(row.panel, []).append(row)
    names = [cell.name for cell in CELLS if any(row.series == cell.name for row in of_panel.get("exponent of k", []))]
    places = {name: -place for place, name in enumerate(names)}
    notes: dict[str, int] = {}
    with style.house():
        fig, both = style.figure(1, 2, figsize=(10.8, 1.4 + 0.36 * max(len(names), 3)), sharey=True)
        for of, axes in zip(TITLES, both, strict=True):
            _panel(axes, of, of_panel, places, notes)
        both[0].set_yticks(list(places.values()), map(_words, names), fontsize=8)
        both[0].set_ylim(min(places.values(), default=0) - 0.6, 0.6)
        handles, labels = both[0].get_legend_handles_labels()
        notes_of = [f"{_mark(number)} {why}" for why, number in notes.items()]
        blanks = [both[0].plot([], [], " ")[0] for _ in notes_of]
        fig.legend([*handles, *blanks], [*labels, *notes_of], loc="outside lower center", fontsize=8)
        style.title(
            fig,
            "Simultaneous private learning (MULTI §1.3): theorems and measured exponents",
            f"{captions.privacy(settings)}, α = {settings['alpha']:g}, β = {settings['beta']:g}; agnostic rows: "
            f"{settings['flip']:g} of the labels flipped; left d = {settings['fixed']['bits']}, right k = {settings['fixed']['k']}",
        )
        style.save(fig, out / "tables_exponents")


def _panel(axes: Any, of: str, rows: dict[str, list[Row]], places: dict[str, int], notes: dict[str, int]) -> None:
    """Draws bars for the theorems, points for what is measured, and the number of a note where the two do not meet."""
    measured = [row for row in rows.get(f"exponent of {of}", []) if row.series in places]
    least = {row.series: row.value for row in rows.get(f"lower of {of}", [])}
    for number, row in enumerate(rows.get(f"upper of {of}", [])):
        low, y = least.get(row.series, NO_BOUND), places[row.series]
        label = None if number else "the theorems: from the lower bound, if there is one, to the upper bound"
        axes.plot([low, row.value], [y, y], color="#999999", linewidth=9, solid_capstyle="butt", alpha=0.5, label=label)
        ends = [row.value] if low == NO_BOUND else [low, row.value]
        axes.plot(ends, [y] * len(ends), "|", color="#666666", markersize=13, markeredgewidth=2)
    axes.errorbar(
        [row.value for row in measured],
        [places[row.series] for row in measured],
        xerr=[[row.value - row.low for row in measured], [row.high - row.value for row in measured]],
        fmt="o",
        capsize=2,
        color=style.COLOURS[2],
        label="measured, with its interval",
    )
    by_name = {cell.name: cell for cell in CELLS}
    for row in measured:
        why = misses(by_name[row.series], of, row)
        if why:
            number = notes.setdefault(why, len(notes) + 1)
            axes.annotate(
                _mark(number), (row.high, places[row.series]), (4, 1), textcoords="offset points", fontsize=11
            )
    axes.set(xlabel=TITLES[of])


def _words(name: str) -> str:
    """A cell's name with the paper's short names of the classes in full."""
    for short, word in (("POINT", "points"), ("THRESH", "thresholds"), ("PAR", "parities")):
        name = name.replace(f", {short},", f", {word},")
    return name


def _mark(number: int) -> str:
    """The superscript that marks a note."""
    return "¹²³⁴⁵⁶⁷⁸⁹"[number - 1]
