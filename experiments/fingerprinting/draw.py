"""Draws the three pictures from the table of results alone."""

import pathlib
from typing import Any

from dpjax.fingerprinting.pirates import STRATEGIES
from dpjax.plotting import style
from experiments import captions, records
from experiments.fingerprinting.attacks import LEARNERS, PADDED, PUBLIC, UNIFORM
from experiments.fingerprinting.measure import CODES
from experiments.records import Row
from experiments.settings import Settings

CODE_COLOURS = dict(zip(CODES, style.COLOURS[1:], strict=False))
COLOURS = {
    PUBLIC: style.COLOURS[0],
    "direct sum, basic": style.COLOURS[1],
    "direct sum, optimal": style.COLOURS[2],
    "PointLearner": style.COLOURS[3],
    "histogram": style.COLOURS[5],
    "GenericLearner": style.COLOURS[4],
    "ParityLearner": style.COLOURS[3],
    UNIFORM: style.COLOURS[6],
}
FORMS = {
    "thresholds": "thresholds\n(MULTI, Theorem 43)",
    "points": "points, agnostic\n(MULTI, Theorem 47)",
    "parities": "parities, agnostic\n(MULTI, Proposition 51)",
}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes fingerprinting_length, fingerprinting_attack and fingerprinting_padded as PNG and SVG."""
    with style.house():
        _draw_length(rows, settings, out / "fingerprinting_length")
        _draw_attack(rows, settings, out / "fingerprinting_attack")
        _draw_padded(rows, settings, out / "fingerprinting_padded")


def _innocent(parts: dict[str, list[Row]], level: float) -> str:
    """How often an innocent user is accused, at most: the worst of the given curves, in words because they hardly leave 0."""
    every = [row for part in parts.values() for row in part]
    worst = f"{max(row.value for row in every):.2g}"
    return f"innocents accused: {worst}, at most {max(row.high for row in every):.2g} ({captions.percent(level)})"


def _draw_length(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(a) rates against the share of the proved length."""
    fig, axes = style.figure(figsize=(7.4, 3.6))
    lengths = {name: part[0].value for name, part in records.series(rows, "length").items()}
    for code, part in records.series(rows, "traced").items():
        label = f"{code}: proved length {lengths[code]:,.0f}"
        style.interval(axes, *records.columns(part), color=CODE_COLOURS[code], marker="o", label=label)
    axes.axhline(
        1 - settings["xi"], linestyle="--", color="grey", linewidth=1, label="proved at the proved length: 1 − ξ"
    )
    style.doubling(axes)
    axes.set(xlabel="length of the code / proved length", ylabel="P[some pirate is accused]", ylim=(-0.03, 1.03))
    style.title(
        fig,
        f"Fingerprinting codes of {settings['users']} users, ξ = {captions.number(settings['xi'])}, half of them pirates, the worst "
        f"of {len(STRATEGIES)} strategies",
        f"{_innocent(records.series(rows, 'falsely accused'), settings['level'])} at any length; {settings['trials']:,} trials a point",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _draw_attack(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(b) one column for each form: traced, inaccurate and refused, and the lower bound that the attack proves on epsilon."""
    at = settings["attack"]
    fig, axes = style.figure(3, 3, figsize=(9.8, 8.6), sharex=True, sharey="row")
    for column, form in zip(axes.T, LEARNERS, strict=True):
        (size,) = records.series(rows, f"{form}: k")["k"]
        innocent = _innocent(records.series(rows, f"{form}: falsely_accused"), settings["level"])
        column[0].set_title(f"{FORMS[form]}\n{size.x:.0f} users, k = {size.value:,.0f}\n{innocent}", fontsize=8)
        for event, panel in (("traced", 0), ("inaccurate", 1)):
            _rates(column[panel], records.series(rows, f"{form}: {event}"))
        _rates(column[1], _some(records.series(rows, f"{form}: bottom")), linestyle=":")
        shown = records.series(rows, f"{form}: epsilon")
        for number, (name, part) in enumerate(shown.items()):
            look = style.nested(number, len(shown))
            column[2].plot(*records.curve(part), color=COLOURS[name], linewidth=look["linewidth"])
        ends = [row.x for row in shown[PUBLIC]]
        column[2].plot(ends, ends, "--", color="grey", linewidth=1)
        column[2].annotate("its own ε", (10.0, 10.0), xytext=(-4, 2), textcoords="offset points", **_NOTE, ha="right")
        column[2].set(xscale="log", xlabel="ε of the k-learner")
        column[2].legend(*column[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.22))
    for panel in (0, 1):
        axes[panel, 0].set_ylim(-0.04, 1.04)
    axes[2, 0].set_yscale("symlog", linthresh=1.0)
    axes[2, 0].set_ylim(-0.1, 30.0)
    level = captions.percent(settings["level"])
    for panel, label in enumerate(
        ("P[some user is traced]", "P[not accurate]\n(dotted: refuses)", f"ε proved by the\nattack ({level})")
    ):
        axes[panel, 0].set_ylabel(label)
    fig.align_ylabels()
    style.title(
        fig,
        "The fingerprinting attack on learners of k concepts: what is accurate on these rows gives users away",
        f"ξ = {captions.number(at['xi'])}, δ = {captions.number(at['delta'])}, {at['trials']:,} trials a point",
    )
    style.save(fig, path)


def _draw_padded(rows: list[Row], settings: Settings, path: pathlib.Path) -> None:
    """(c) one column for each class: traced, refused, and inaccurate in both senses, against the rows of the padded database."""
    at = settings["padded"]
    fig, axes = style.figure(3, 2, figsize=(8.8, 8.0), sharex="col", sharey="row")
    (allowed,) = records.series(rows, "padded: allowed")["privacy"]
    for column, form in zip(axes.T, PADDED, strict=True):
        column[0].set_title(FORMS[form].splitlines()[0], fontsize=9)
        for event, panel in (("traced", 0), ("inaccurate", 1), ("too inaccurate", 2)):
            _rates(column[panel], records.series(rows, f"padded {form}: {event}"))
        _rates(column[1], _some(records.series(rows, f"padded {form}: bottom")), linestyle=":")
        for name, (own,) in records.series(rows, f"padded {form}: own n").items():
            for panel in column:
                panel.axvline(own.x, color=COLOURS[name], linestyle="--", linewidth=1)
        column[0].axhline(allowed.value, linestyle="--", color="grey", linewidth=1)
        column[2].set(xscale="log", xlabel="rows of the padded database")
        column[2].legend(*column[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.25))
    most = f"most that ε = {at['epsilon']:g} allows"
    axes[0, 0].annotate(most, (at["users"], allowed.value), xytext=(0, 3), textcoords="offset points", **_NOTE)
    labels = (
        "P[some user is traced]",
        f"P[error above {at['alpha']:g}]\n(dotted: refuses)",
        "P[error above what\nthe attack needs]",
    )
    for panel, label in enumerate(labels):
        axes[panel, 0].set(ylabel=label, ylim=(-0.04, 1.04))
    fig.align_ylabels()
    style.title(
        fig,
        f"{at['users']} users of k = {allowed.x:,.0f} concepts among junk rows, {captions.privacy(at)}, {at['trials']:,} trials a point",
        "vertical, dashed: each learner's own n, from which on it keeps its promise (ParityLearner: on all strings)",
    )
    style.save(fig, path)


_NOTE: dict[str, Any] = {"fontsize": 7, "color": "grey"}


def _some(parts: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The learners for which the event occurs at all."""
    return {name: part for name, part in parts.items() if any(row.value > 0 for row in part)}


def _rates(axes: Any, parts: dict[str, list[Row]], **kwargs: Any) -> None:
    """Draws one line for each learner."""
    for number, (name, part) in enumerate(parts.items()):
        look = {"color": COLOURS[name], "marker": "o", **style.nested(number, len(parts)), **kwargs}
        label = f"{name} composition" if name.startswith("direct sum") else name
        style.interval(axes, *records.columns(part), label=label, **look)
