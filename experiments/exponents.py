"""How n* grows with k: fitted exponents with intervals, and the picture that the multi_* experiments share."""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dpjax.plotting import style
from experiments import records
from experiments.records import Row


@dataclasses.dataclass(frozen=True)
class Exponent:
    """n* ~ k^value over the cells it was fitted to.

    Attributes:
        value: least-squares slope of ln n* on ln k.
        low, high: least and greatest slope possible while every n* stays within its own n-interval.
        first, last: least and greatest k used.
    """

    value: float
    low: float
    high: float
    first: float
    last: float


def fit(part: Sequence[Row], *, factor: Callable[[float], float] = lambda k: 1.0) -> Exponent | None:
    """The exponent a in n* = const k^a factor(k), fitted to the upper half of the cells; None with fewer than two.

    For small k something that does not grow with k may be the larger part of n*, or basic composition may be as good as any other,
    so a theorem's power shows at the upper end. In every series the k from the middle one on are used; both, if there are two.

    Args:
        part: the cells of one series.
        factor: a theorem's factor besides the power, for instance the logarithm of its union bound over k concepts.

    Returns:
        The exponent. The slope is linear in the ln n*, with known weights, so its extremes over all n* in their n-intervals are sums
        of extremes. (Each n-interval comes from the cell's confidence intervals at the experiment's level.)
    """
    finite = [row for row in part if math.isfinite(row.high)]
    sizes = sorted({row.x for row in finite})
    if len(sizes) < 2:
        return None
    first = sizes[len(sizes) // 2] if len(sizes) > 2 else sizes[0]
    cells = [row for row in finite if row.x >= first]
    x = np.log([row.x for row in cells])
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    beside = np.log([factor(row.x) for row in cells])
    # Relative to the first cell, so that the slope of a constant is 0, whatever the rounding. The three sums are added in the same
    # order, so that the value lies between the others.
    value, low, high = (np.log(np.divide(column, cells[0].value)) - beside for column in records.columns(cells)[1:])
    return Exponent(
        value=float((weights * value).sum()),
        low=float(np.where(weights > 0, weights * low, weights * high).sum()),
        high=float(np.where(weights > 0, weights * high, weights * low).sum()),
        first=min(row.x for row in cells),
        last=max(row.x for row in cells),
    )


def text(exponent: Exponent | None) -> str:
    """The exponent for a legend: k^0.50 [0.48, 0.53] for k >= 64."""
    if exponent is None:
        return ""
    return f"$k^{{{exponent.value:.2f}}}$ [{exponent.low:.2f}, {exponent.high:.2f}] for k ≥ {exponent.first:g}"


def bound(name: str) -> str:
    """The name of a lower bound for a legend, with the paper's name before the theorem's number."""
    return f"lower bound, {name.replace('(', '(MULTI ')}"


def draw_least_n(
    rows: list[Row], path: pathlib.Path, *, title: Sequence[str], looks: Mapping[str, tuple[str, str]]
) -> None:
    """n* against k on log axes, with the fitted exponents in the legend and the bounds dashed; `looks`: colour and label by series."""
    fig, axes = style.figure(figsize=(7.8, 4.6))
    for name, part in records.series(rows, "least n").items():
        x, value, low, high = records.columns(part)
        known = [v if end <= 1 else end for v, end in zip(value, low, strict=True)]  # a low of 1 excludes no n*
        fitted = text(fit(part))
        colour, label = looks[name]
        label += f"\n  {fitted}" if fitted else ""
        style.interval(axes, x, value, known, high, color=colour, marker="o", label=label)
    for dashes, (name, part) in zip(("--", "-.", ":"), records.series(rows, "bound").items(), strict=False):
        axes.plot(*records.curve(part), dashes, color="grey", linewidth=1, label=bound(name))
    axes.set(xscale="log", yscale="log", xlabel="k (concepts learned from one sample)", ylabel="examples")
    style.title(fig, *title)
    style.legend_beside(axes, title="with the power of k fitted, and its interval", title_fontsize=8, alignment="left")
    style.save(fig, path)
