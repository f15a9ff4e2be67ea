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
        low, high: what the slope can be while every n* stays within its own n-interval.
        first, last: least and greatest k used.
    """

    value: float
    low: float
    high: float
    first: float
    last: float


def fit(
    part: Sequence[Row], *, first: float = 0.0, factor: Callable[[float], float] = lambda k: 1.0
) -> Exponent | None:
    """The exponent a in n* = const k^a factor(k) over the cells with k >= first; None with fewer than two.

    `factor` is what a theorem has beside the power, for instance the logarithm of its union bound over k concepts.

    The slope is linear in the ln n*, with known weights: its extremes over all n* in their n-intervals are sums of extremes. (Each
    n-interval comes from the cell's confidence intervals at the experiment's level.)
    """
    cells = [row for row in part if row.x >= first and math.isfinite(row.high)]
    if len({row.x for row in cells}) < 2:
        return None
    x = np.log([row.x for row in cells])
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    beside = np.log([factor(row.x) for row in cells])
    value, low, high = (np.log(column) - beside for column in records.columns(cells)[1:])
    return Exponent(
        value=float(weights @ value),
        low=float(np.where(weights > 0, weights * low, weights * high).sum()),
        high=float(np.where(weights > 0, weights * high, weights * low).sum()),
        first=min(row.x for row in cells),
        last=max(row.x for row in cells),
    )


def text(exponent: Exponent | None, first: int) -> str:
    """For a legend: k^0.50 [0.48, 0.53] for k >= first."""
    if exponent is None:
        return ""
    where = f" for k ≥ {first}" if first else ""
    return f"$k^{{{exponent.value:.2f}}}$ [{exponent.low:.2f}, {exponent.high:.2f}]{where}"


# Below so many concepts no composition theorem beats the basic one by much: exponents of optimal composition are fitted from here on.
COMPOSED = 64


def draw_least_n(
    rows: list[Row], path: pathlib.Path, *, title: str, colours: Mapping[str, str], labels: Mapping[str, str]
) -> None:
    """n* against k on log axes, with the fitted exponents in the legend and the bounds dashed."""
    fig, axes = style.figure(figsize=(7.6, 4.6))
    for name, part in records.series(rows, "least n").items():
        columns = records.columns(part)
        first = COMPOSED if name.endswith("optimal") else 0
        fitted = text(fit(part, first=first), first)
        label = labels[name] + (f"\n  {fitted}" if fitted else "")
        style.interval(axes, *columns, color=colours[name], marker="o", label=label)
    # The first bound ends at the top and is named left of its end, the others right of theirs: the second above, the third below.
    places = ((0, 3, "right", "bottom"), (4, 0, "left", "bottom"), (4, 0, "left", "top"))
    for (name, part), (x, y, across, up) in zip(records.series(rows, "bound").items(), places, strict=False):
        axes.plot(*records.curve(part), "--", color="grey", linewidth=1)
        end = (part[-1].x, part[-1].value)
        axes.annotate(name, end, (x, y), textcoords="offset points", fontsize=7, color="grey", ha=across, va=up)
    axes.set(xscale="log", yscale="log", xlabel="k (concepts learned from one sample)", ylabel="examples")
    fig.suptitle(title, fontsize=9)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style.save(fig, path)
