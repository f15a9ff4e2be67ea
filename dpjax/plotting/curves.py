"""Curves of least sample sizes, as `dpjax.least_n` finds them."""

from collections.abc import Sequence
from typing import Any

from matplotlib import pyplot


def least_n(curve: Any, ax: Any = None) -> Any:
    """Draws a `dpjax.trials.sweep.Curve` with its intervals, and returns the axes.

    n against the first setting that varies, both on logarithmic axes where they span a factor of 8; a line for each series, and for
    each value of the other settings. Where no n was found, there is no point.

    Args:
      curve: what `dpjax.least_n` returned.
      ax: matplotlib axes; default new ones.
    """
    ax = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    x, *others = curve.over
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in curve.to_rows():
        label = ", ".join([row["series"], *(f"{name} = {row[name]}" for name in others)])
        lines.setdefault(label, []).append(row)
    for label, rows in lines.items():
        found = [row for row in rows if row["n"] is not None]
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


def _wide(values: Sequence[Any]) -> bool:
    """Whether positive numbers span a factor of 8."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return bool(numbers) and min(numbers) > 0 and max(numbers) >= 8 * min(numbers)
