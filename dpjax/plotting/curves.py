"""Curves of least sample sizes and of failure probabilities, as `dpjax.least_n` and `dpjax.failures` find them."""

from collections.abc import Sequence
from typing import Any

from matplotlib import pyplot

from dpjax.core.show import as_chosen


def least_n(curve: Any, ax: Any = None) -> Any:
    """Draws a `dpjax.trials.sweep.Curve` with its intervals, and returns the axes.

    n against the first setting that varies, both on logarithmic axes where they span a factor of 8; a line for each series, and for each
    value of the other settings. Where no n was found, there is no point, and no bar on a side on which the interval has no end.

    Args:
      curve: what `dpjax.least_n` returned.
      ax: matplotlib axes; default new ones.
    """
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    x, *others = _varied(curve, curve.over) or curve.over[:1]
    for label, rows in _lines(curve, others).items():
        found = [row for row in rows if row["n"] is not None]
        if all(isinstance(row[x], int | float) for row in found):
            found.sort(key=lambda row: row[x])
        n = [row["n"] for row in found]
        below = [max(0, row["n"] - row["low"]) for row in found]
        above = [max(0, (row["high"] or row["n"]) - row["n"]) for row in found]
        ax.errorbar([row[x] for row in found], n, yerr=[below, above], marker="o", capsize=2, label=label)
    rows = curve.to_rows()
    if _wide([row["n"] for row in rows]):
        ax.set_yscale("log")
    if _wide([row[x] for row in rows]):
        ax.set_xscale("log", base=2)
    ax.set_xlabel(x)
    ax.set_ylabel(f"least n: P[error > {curve.alpha:g}] ≤ {curve.beta:g}")
    ax.legend()
    return ax


def failures(table: Any, ax: Any = None) -> Any:
    """Draws a `dpjax.trials.failures.Failures` with its intervals, and returns the axes.

    Failure probability against n, a line for each series, setting and alpha; both axes logarithmic where they span a factor of 8. Ends of
    intervals that are 0 or below are at the lower edge then.

    Args:
      table: what `dpjax.failures` returned.
      ax: matplotlib axes; default new ones.
    """
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    for label, rows in _lines(table, _varied(table, (*table.over, "alpha"))).items():
        rows = sorted(rows, key=lambda row: row["n"])
        value = [row["failure"] for row in rows]
        ends = [[row["failure"] - row["low"] for row in rows], [row["high"] - row["failure"] for row in rows]]
        ax.errorbar([row["n"] for row in rows], value, yerr=ends, marker="o", capsize=2, label=label)
    if _wide([row["n"] for row in table.rows]):
        ax.set_xscale("log", base=2)
    if _wide([row["failure"] for row in table.rows if row["failure"] > 0]):
        ax.set_yscale("log", nonpositive="clip")
    alphas = {row["alpha"] for row in table.rows}
    ax.set_xlabel("n")
    ax.set_ylabel(f"P[error > {min(alphas):g}]" if len(alphas) == 1 else "P[error > α]")
    ax.legend()
    return ax


def _varied(table: Any, names: Sequence[str]) -> list[str]:
    """Those of which the rows have more than one value."""
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
