"""Draws the pictures of an accelerator, and writes its tables in Markdown."""

import pathlib

from dpjax.plotting import style
from experiments import records
from experiments.benchmarks import ceilings
from experiments.benchmarks.draw import in_words, panels_of, ratio
from experiments.benchmarks.measure import RATES
from experiments.records import Row
from experiments.settings import Settings

NAME = "device"
COST, AGREEMENT = "of a trial, ", "successes, "
BATCHES, LAWS, CEILINGS = "by trials a block, ", "failure by law, ", "ceilings, per second"
DEVICE, FLOOR, CPU, HOST = "dpjax", "words alone", "two cores", "host"
MEAN, DIFFERENCE = "mean failure", "largest difference"
COLOUR = {"exponential": 1, "rec_concave": 2, "tree_log": 0, "point_learner": 3}  # as in the other pictures
MARKS = {FLOOR: ("|", 0), DEVICE: ("o", 2), CPU: ("s", 1)}


def draw(rows: list[Row], settings: Settings, out: pathlib.Path) -> None:
    """Writes accelerator_rates and accelerator_batches (PNG, SVG) and accelerator.md."""
    (name,) = [row.series for row in rows if row.panel == NAME]
    with style.house():
        _rates(rows, name, settings, out / "accelerator_rates")
        _batches(rows, name, settings, out / "accelerator_batches")
    (out / "accelerator.md").write_text("\n".join(_tables(rows)) + "\n")


def _values(rows: list[Row], panel: str) -> dict[str, float]:
    return {row.series: row.value for row in rows if row.panel == panel}


def _rates(rows: list[Row], device: str, settings: Settings, path: pathlib.Path) -> None:
    """Draws one line for each cell."""
    panels = panels_of(rows, RATES)[::-1]
    fig, axes = style.figure(figsize=(8.2, 1.6 + 0.24 * len(panels)))
    label = {DEVICE: device, CPU: "two cores", FLOOR: f"{device}: random words\ndrawn and sorted or moved once"}
    for series, (marker, colour) in MARKS.items():
        part = [(row.value, panels.index(row.panel)) for row in rows if row.panel in panels and row.series == series]
        axes.plot(
            *zip(*part, strict=True),
            marker,
            color=style.COLOURS[colour],
            markersize=8 if marker == "|" else 5,
            label=label[series],
        )
    axes.set_yticks(range(len(panels)), [in_words(panel.removeprefix(RATES)) for panel in panels], fontsize=7)
    axes.set(xscale="log", xlabel="trials per second", ylim=(-0.7, len(panels) - 0.3))
    style.title(
        fig,
        f"Trials per second by learner and size: {device}, and two cores",
        f"medians of {settings['repeats']} measurements",
    )
    fig.legend(loc="outside lower center", ncols=3)
    style.save(fig, path)


def _batches(rows: list[Row], device: str, settings: Settings, path: pathlib.Path) -> None:
    """Draws rates against the number of trials in a block."""
    fig, axes = style.figure(figsize=(6.4, 4.2))
    for panel in panels_of(rows, BATCHES):
        (part,) = records.series(rows, panel).values()
        cell = panel.removeprefix(BATCHES)
        colour = style.COLOURS[COLOUR.get(cell.partition(",")[0], 4)]
        style.interval(axes, *records.columns(part), color=colour, label=in_words(cell), marker="o")
    axes.set(xscale="log", yscale="log", xlabel="trials in a block", ylabel="trials per second")
    axes.set_xscale("log", base=2)
    style.title(
        fig,
        f"Trials per second against the size of a block, {device}",
        f"medians of {settings['repeats']} measurements, bands from the least to the greatest",
    )
    style.legend_beside(axes)
    style.save(fig, path)


def _tables(rows: list[Row]) -> list[str]:
    """One table each of contests, of ceilings, of sizes of blocks, and of laws."""
    return [*_contests(rows), "", *_ceilings(rows), "", *_by_batch(rows), "", *_laws(rows)]


def _contests(rows: list[Row]) -> list[str]:
    """Rates, the share of the ceilings that they reach, and how many of the same trials succeed."""
    most = _values(rows, CEILINGS)
    lines = [
        "| contest | cell | trials a block | trials/s | / two cores | words | bytes | words alone / dpjax | successes | on the host |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for panel in panels_of(rows, RATES):
        cell = panel.removeprefix(RATES)
        name, _, sizes = cell.partition(", ")
        rate, cost, good = (_values(rows, f"{prefix}{cell}") for prefix in (RATES, COST, AGREEMENT))
        batch = next(row.x for row in rows if row.panel == panel and row.series == DEVICE)
        trials = next(row.x for row in rows if row.panel == f"{AGREEMENT}{cell}")
        line = [name, sizes, f"{batch:,.0f}", f"{rate[DEVICE]:,.0f}"]
        line.append(ratio(rate[DEVICE] / rate[CPU]) if CPU in rate else "")
        line += [f"{rate[DEVICE] * cost[each] / most[each]:.2f}" for each in (ceilings.WORDS, ceilings.BYTES)]
        line.append(ratio(rate[FLOOR] / rate[DEVICE]))
        line += [f"{good[DEVICE] * trials:,.0f} of {trials:,.0f}", f"{good[HOST] * trials:,.0f}"]
        lines.append(f"| {' | '.join(line)} |")
    return lines


def _ceilings(rows: list[Row]) -> list[str]:
    found = [f"| {series} | {value:.3g} |" for series, value in _values(rows, CEILINGS).items()]
    return ["| ceiling | per second |", "|---|---|", *found]


def _by_batch(rows: list[Row]) -> list[str]:
    panels = panels_of(rows, BATCHES)
    batches = sorted({row.x for row in rows if row.panel in panels})
    lines = [
        f"| contest | {' | '.join(f'{batch:,.0f} a block' for batch in batches)} |",
        f"|---|{'---|' * len(batches)}",
    ]
    for panel in panels:
        found = {row.x: row.value for row in rows if row.panel == panel}
        lines.append(f"| {panel.removeprefix(BATCHES)} | {' | '.join(f'{found[batch]:,.0f}' for batch in batches)} |")
    return lines


def _laws(rows: list[Row]) -> list[str]:
    lines = [f"| law | {MEAN} | {DIFFERENCE} |", "|---|---|---|"]
    for panel in panels_of(rows, LAWS):
        found = _values(rows, panel)
        lines.append(f"| {panel.removeprefix(LAWS)} | {found[MEAN]:.2g} | {found[DIFFERENCE]:.2g} |")
    return lines
