"""The three pictures, from the table alone."""

import pathlib
from typing import Any

from dpjax.plotting import style
from experiments import records
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
    "thresholds": "thresholds\n(Theorem 43)",
    "points": "points, agnostic\n(Theorem 47)",
    "parities": "parities, agnostic\n(Proposition 51)",
}
# Lines that lie on each other stay visible: the later ones are thinner.
WIDTHS = (3.0, 2.2, 1.5, 0.9)


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes fingerprinting_length, fingerprinting_attack and fingerprinting_padded as PNG and SVG."""
    with style.house():
        _draw_length(rows, out / "fingerprinting_length")
        _draw_attack(rows, out / "fingerprinting_attack")
        _draw_padded(rows, out / "fingerprinting_padded")


def _draw_length(rows: list[Row], path: pathlib.Path) -> None:
    """(a) rates against the share of the proved length."""
    fig, axes = style.figure(1, 2, figsize=(8.4, 3.6), sharex=True)
    lengths = {name: part[0].value for name, part in records.series(rows, "length").items()}
    (claim,) = records.series(rows, "claim")["xi"]
    for panel, name in zip(axes, ("traced", "falsely accused"), strict=True):
        for code, part in records.series(rows, name).items():
            label = f"{code}: proved k = {lengths[code]:,.0f}"
            style.interval(panel, *records.columns(part), color=CODE_COLOURS[code], marker="o", label=label)
        panel.set(xlabel="length / proved length", xscale="log")
        panel.set_xscale("log", base=2)
    axes[0].set(ylabel="probability", ylim=(-0.03, 1.03), title="some pirate is accused\n(least of six strategies)")
    axes[0].axhline(1 - claim.value, linestyle="--", color="grey", linewidth=1)
    axes[1].axhline(claim.value, linestyle="--", color="grey", linewidth=1, label="claimed ξ")
    top = 1.6 * claim.value
    axes[1].set(ylim=(-0.03 * top, top), title="somebody innocent is accused\n(most of six strategies)")
    axes[1].legend(loc="upper left")
    fig.suptitle(
        f"Fingerprinting codes of {claim.x:.0f} users against every other one; sound at every length", fontsize=9
    )
    style.save(fig, path)


def _draw_attack(rows: list[Row], path: pathlib.Path) -> None:
    """(b) a column a form: traced, falsely accused, inaccurate and refused, and what the attack proves of epsilon."""
    fig, axes = style.figure(4, 3, figsize=(9.6, 9.6), sharex=True, sharey="row")
    (claim,) = records.series(rows, "attack: claim")["xi"]
    for column, form in zip(axes.T, LEARNERS, strict=True):
        (size,) = records.series(rows, f"{form}: k")["k"]
        column[0].set_title(f"{FORMS[form]}\n{size.x:.0f} users, k = {size.value:,.0f}", fontsize=9)
        for event, panel in (("traced", 0), ("falsely_accused", 1), ("inaccurate", 2)):
            _rates(column[panel], records.series(rows, f"{form}: {event}"))
        _rates(column[2], _some(records.series(rows, f"{form}: bottom")), linestyle=":")
        for name, part in records.series(rows, f"{form}: epsilon").items():
            column[3].plot(*records.curve(part), color=COLOURS[name])
        ends = [row.x for row in records.series(rows, f"{form}: epsilon")[PUBLIC]]
        column[3].plot(ends, ends, "--", color="grey", linewidth=1)
        column[3].annotate("ε spent", (10.0, 10.0), xytext=(-4, 2), textcoords="offset points", **_NOTE, ha="right")
        column[1].axhline(claim.value, linestyle="--", color="grey", linewidth=1)
        column[3].set(xscale="log", xlabel="ε of the k-learner")
        column[3].legend(*column[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.28))
    axes[1, 0].annotate("claimed ξ", (ends[0], claim.value), xytext=(2, 2), textcoords="offset points", fontsize=7)
    for panel in (0, 2):
        axes[panel, 0].set_ylim(-0.04, 1.04)
    axes[1, 0].set_ylim(-0.1 * claim.value, 5 * claim.value)
    axes[3, 0].set_yscale("symlog", linthresh=1.0)
    axes[3, 0].set_ylim(-0.1, 30.0)
    for panel, label in enumerate(
        ("some user is traced", "somebody innocent is accused", "not accurate\n(dotted: answer is ⊥)", "ε shown (95%)")
    ):
        axes[panel, 0].set_ylabel(label)
    fig.suptitle("The fingerprinting attack: whoever is accurate on these rows is traced", fontsize=10)
    style.save(fig, path)


def _draw_padded(rows: list[Row], path: pathlib.Path) -> None:
    """(c) a column a class: traced, refused, and inaccurate in both senses, against the rows of the padded database."""
    fig, axes = style.figure(3, 2, figsize=(8.4, 7.4), sharex="col", sharey="row")
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
        column[2].legend(*column[0].get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, -0.2))
    axes[0, 0].annotate(
        "most that ε = 1 allows", (4.0, allowed.value), xytext=(0, 3), textcoords="offset points", **_NOTE
    )
    for panel, label in enumerate(
        ("some user is traced", "error above 0.1\n(dotted: answer is ⊥)", "error above what\nthe form asks for")
    ):
        axes[panel, 0].set(ylabel=label, ylim=(-0.04, 1.04))
    fig.suptitle(
        f"Four users of k = {allowed.x:,.0f} concepts among junk rows, ε = 1, δ = $10^{{-6}}$\n"
        "vertical: the learner's own n. There it keeps its promise, and gives nobody away",
        fontsize=9,
    )
    style.save(fig, path)


_NOTE: dict[str, Any] = {"fontsize": 7, "color": "grey"}


def _some(parts: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The learners to which it happens at all."""
    return {name: part for name, part in parts.items() if any(row.value > 0 for row in part)}


def _rates(axes: Any, parts: dict[str, list[Row]], **kwargs: Any) -> None:
    """One line a learner."""
    for (name, part), width in zip(parts.items(), WIDTHS, strict=False):
        label = f"{name} composition" if name.startswith("direct sum") else name
        style.interval(
            axes, *records.columns(part), color=COLOURS[name], linewidth=width, marker=".", label=label, **kwargs
        )
