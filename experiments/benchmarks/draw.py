"""The benchmark's picture, and its tables in Markdown for the README."""

import pathlib

from dpjax.plotting import style
from experiments import records
from experiments.records import Row

RATES, RUNS, SECONDS = "trials per second, ", "runs per second, ", "seconds to answer, "


def draw(rows: list[Row], out: pathlib.Path) -> None:
    """Writes benchmarks_rates (PNG, SVG) and benchmarks.md."""
    panels = [panel for panel in dict.fromkeys(row.panel for row in rows) if panel.startswith(RATES)]
    with style.house():
        fig, grid = style.figure(1, len(panels), figsize=(3.6 * len(panels), 4.2), squeeze=False)
        for axes, panel in zip(grid[0], panels, strict=True):
            part = [row for row in rows if row.panel == panel][::-1]
            axes.barh(
                [row.series for row in part], [row.value for row in part], color=[_colour(r.series) for r in part]
            )
            axes.set(xscale="log", xlabel="trials per second", title=panel.removeprefix(RATES))
        style.save(fig, out / "benchmarks_rates")
    (out / "benchmarks.md").write_text("\n".join(_tables(rows, panels)) + "\n")


def _colour(series: str) -> str:
    return style.COLOURS[{"dpjax": 2, "NumPy": 1, "specialised": 6, "floor": 0}.get(series.split()[0], 5)]


def _by_start(rows: list[Row], panel: str) -> list[tuple[str, list[Row]]]:
    """The series of a panel: floor, dpjax, NumPy."""
    order = ("floor", "dpjax", "NumPy")
    return sorted(records.series(rows, panel).items(), key=lambda item: order.index(item[0].split()[0]))


def _tables(rows: list[Row], panels: list[str]) -> list[str]:
    """One table of rates and ratios a learner and cell, one of seconds to an answer."""
    lines = [
        "| cell | learner | dpjax, trials/s | floor / dpjax | dpjax / NumPy | dpjax / specialised NumPy |",
        "|---|---|---|---|---|---|",
    ]
    for panel in panels:
        rate = {name: part[0].value for name, part in records.series(rows, panel).items()}
        cell = panel.removeprefix(RATES)
        for name in [series.removeprefix("dpjax ") for series in rate if series.startswith("dpjax ")]:
            ours = rate[f"dpjax {name}"]
            peers = [rate.get(f"{peer} {name}") for peer in ("NumPy", "specialised NumPy")]
            ratios = " | ".join("" if peer is None else f"{ours / peer:.2f}" for peer in peers)
            lines.append(f"| {cell} | {name} | {ours:,.0f} | {rate['floor'] / ours:.2f} | {ratios} |")
        for name in [series for series in rate if series.endswith(" median")]:
            lines.append(f"| {cell} | {name}, one process | {rate[name]:,.0f} | {rate['floor'] / rate[name]:.2f} | | |")
    lines += ["", "| many concepts | dpjax, runs/s | floor / dpjax | dpjax / NumPy |", "|---|---|---|---|"]
    for panel in [panel for panel in dict.fromkeys(row.panel for row in rows) if panel.startswith(RUNS)]:
        (_, floor), (_, ours), (_, numpy) = ((n, p[0].value) for n, p in _by_start(rows, panel))
        lines.append(f"| {panel.removeprefix(RUNS)} | {ours:,.1f} | {floor / ours:.2f} | {ours / numpy:.2f} |")
    lines += ["", "| question | by | n* | seconds |", "|---|---|---|---|"]
    for row in rows:
        if row.panel.startswith(SECONDS):
            lines.append(f"| {row.panel.removeprefix(SECONDS)} | {row.series} | {row.x:.0f} | {row.value:.1f} |")
    return lines
