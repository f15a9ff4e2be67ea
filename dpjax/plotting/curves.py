"""Curves of least sample sizes and of failure probabilities, as `dpjax.least_n` and `dpjax.failures` find them."""

from collections.abc import Sequence
from typing import Any

from matplotlib import pyplot

from dpjax.core.show import as_chosen
from dpjax.plotting import style


def least_n(curve: Any, ax: Any = None) -> Any:
    """Draws a `dpjax.trials.sweep.Curve` with its intervals, and returns the axes.

    Shows n against the first setting that varies, both on logarithmic axes where they span a factor of 8, with one line for each series
    and each value of the other settings. Words appear in the order in which they were given. Where no n was found, there is no point; an
    arrowhead marks an interval without an upper end.

    Args:
      curve: what `dpjax.least_n` returned.
      ax: matplotlib axes; default new ones.
    """
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    x, *others = _varied(curve, curve.over) or curve.over[:1]
    rows = curve.to_rows()
    places = list(dict.fromkeys(row[x] for row in rows))
    words = not all(isinstance(place, int | float) for place in places)
    at = {place: as_chosen(place) if words else place for place in places}
    if words:  # in the order given; axes that already have words keep them, each in its place
        ax.xaxis.update_units(list(at.values()))
    order = {place: number for number, place in enumerate(places if words else sorted(places))}
    for number, (label, line) in enumerate(_lines(curve, others).items()):
        found = sorted((row for row in line if row["n"] is not None), key=lambda row: order[row[x]])
        n = [row["n"] for row in found]
        below = [row["n"] - row["low"] for row in found]
        above = [(row["high"] or row["n"]) - row["n"] for row in found]
        given = [at[row[x]] for row in found]
        bars = ax.errorbar(given, n, yerr=[below, above], marker="o", capsize=2, label=label, **_stroke(number))
        style.no_end(ax, [(at[row[x]], row["n"]) for row in found if row["high"] is None], bars[0].get_color())
    if _wide([row["n"] for row in rows]):
        ax.set_yscale("log")
    if not words and _wide([row[x] for row in rows]):
        ax.set_xscale("log", base=2)
    ax.set_xlabel(x)
    ax.set_ylabel(f"least n: P[error > {curve.alpha:g}, or nothing released] ≤ {curve.beta:g}")
    ax.legend()
    return ax


def failures(table: Any, ax: Any = None) -> Any:
    """Draws a `dpjax.trials.failures.Failures` with its intervals, and returns the axes.

    Shows the failure probability against n, with one line for each series, setting and alpha; both axes are logarithmic where they span a
    factor of 8. On a logarithmic axis, ends of intervals that are 0 or below lie at the lower edge.

    Args:
      table: what `dpjax.failures` returned.
      ax: matplotlib axes; default new ones.
    """
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    for number, (label, rows) in enumerate(_lines(table, _varied(table, (*table.over, "alpha"))).items()):
        rows = sorted(rows, key=lambda row: row["n"])
        value = [row["failure"] for row in rows]
        ends = [[row["failure"] - row["low"] for row in rows], [row["high"] - row["failure"] for row in rows]]
        ax.errorbar([row["n"] for row in rows], value, yerr=ends, marker="o", capsize=2, label=label, **_stroke(number))
    if _wide([row["n"] for row in table.rows]):
        ax.set_xscale("log", base=2)
    if _wide([row["failure"] for row in table.rows if row["failure"] > 0]):
        ax.set_yscale("log", nonpositive="clip")
    alphas = {row["alpha"] for row in table.rows}
    ax.set_xlabel("n")
    ax.set_ylabel(f"P[error > {f'{min(alphas):g}' if len(alphas) == 1 else 'α'}, or nothing released]")
    ax.legend()
    return ax


def _stroke(number: int) -> dict[str, str]:
    """A new line style each time matplotlib's colour cycle begins anew; matplotlib's own before that."""
    again = number // len(pyplot.rcParams["axes.prop_cycle"])
    return {"linestyle": ("-", "--", ":", "-.")[again % 4]} if again else {}


def _varied(table: Any, names: Sequence[str]) -> list[str]:
    """Those names for which the rows have more than one value."""
    return [name for name in names if len({row[name] for row in table.rows}) > 1]


def _lines(table: Any, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each line, by its label: the series, and the values of these settings."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_rows():
        label = ", ".join([row["series"], *(f"{name} = {as_chosen(row[name])}" for name in names)])
        lines.setdefault(label, []).append(row)
    return lines


def _wide(values: Sequence[Any]) -> bool:
    """Whether positive numbers span a factor of 8."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return bool(numbers) and min(numbers) > 0 and max(numbers) >= 8 * min(numbers)
