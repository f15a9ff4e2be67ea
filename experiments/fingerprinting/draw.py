"""The two pictures, from the table alone."""

import pathlib

from dpjax.plotting import style
from experiments import records
from experiments.fingerprinting.measure import CODES, LEARNERS
from experiments.records import Row

CODE_COLOURS = dict(zip(CODES, style.COLOURS[1:], strict=False))
LEARNER_COLOURS = dict(zip(LEARNERS, (style.COLOURS[0], *style.COLOURS[1:]), strict=False))


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes fingerprinting_length and fingerprinting_attack as PNG and SVG."""
    with style.house():
        _draw_length(rows, out / "fingerprinting_length")
        _draw_attack(rows, out / "fingerprinting_attack")


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
    """(b) above: traced and inaccurate; below: what the attack proves of epsilon."""
    fig, (rates, bounds) = style.figure(2, 1, figsize=(6.4, 6.0), sharex=True)
    (size,) = records.series(rows, "attack k")["Boneh-Shaw"]
    inaccurate, shown = records.series(rows, "attack inaccurate"), records.series(rows, "epsilon")
    for name, part in records.series(rows, "attack traced").items():
        colour = LEARNER_COLOURS[name]
        style.interval(
            rates, *records.columns(part), color=colour, marker=None if name == "ERM" else "o", label=f"{name}: traced"
        )
        style.interval(
            rates, *records.columns(inaccurate[name]), color=colour, linestyle="--", label=f"{name}: inaccurate"
        )
        bounds.plot(*records.curve(shown[name]), color=colour, marker="o", label=name)
    spent = [r.x for r in shown[LEARNERS[1]]]
    bounds.plot(spent, spent, ":", color="grey", label="ε spent")
    bounds.set(xscale="log", xlabel="ε of the k-learner", ylabel="ε shown by the attack (95%)")
    bounds.set_yscale("symlog", linthresh=1.0)
    bounds.set_ylim(bottom=-0.05)
    rates.set(ylabel="probability", ylim=(-0.03, 1.03))
    rates.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    bounds.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    fig.suptitle(
        f"The fingerprinting attack on learners of k = {size.value:,.0f} thresholds, {size.x:.0f} users\n"
        "whoever is accurate on these rows is traced (Theorem 43)",
        fontsize=9,
    )
    style.save(fig, path)
