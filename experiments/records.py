"""The numbers of an experiment: rows of one CSV, which holds every number that is plotted and no other."""

import csv
import dataclasses
import io
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

FIELDS = ("panel", "series", "x", "value", "low", "high")


@dataclasses.dataclass(frozen=True)
class Row:
    """One plotted number: y = value at x, with an interval where there is one.

    Attributes:
        panel: the picture.
        series: the line in that picture.
        x, value: coordinates.
        low, high: the interval's ends; equal to value where the number is exact.
    """

    panel: str
    series: str
    x: float
    value: float
    low: float
    high: float


def exact(panel: str, series: str, x: float, value: float) -> Row:
    """A number without an interval."""
    return Row(panel, series, x, value, value, value)


def estimated(panel: str, series: str, x: float, found: Any) -> Row:
    """An estimated number with its interval, from an `Estimate` or anything else that has its `value`, `low` and `high`."""
    return Row(panel, series, x, found.value, found.low, found.high)


def columns(part: Sequence[Row]) -> tuple[list[float], list[float], list[float], list[float]]:
    """(x, value, low, high) of some rows: what `plotting.style.interval` and `points` take."""
    x, value, low, high = ([getattr(row, field) for row in part] for field in ("x", "value", "low", "high"))
    return x, value, low, high


def curve(part: Sequence[Row]) -> tuple[list[float], list[float]]:
    """(x, value) of some rows: what `Axes.plot` takes."""
    return columns(part)[:2]


def write(rows: Iterable[Row], path: pathlib.Path) -> None:
    """Writes all of the CSV or nothing, with floats that read back exactly."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in rows:
        writer.writerow([row.panel, row.series, *(repr(float(v)) for v in (row.x, row.value, row.low, row.high))])
    path = path.resolve()  # what a link points to is replaced, not the link
    unborn = path.with_name(f"{path.name}.new")
    try:
        unborn.write_text(text.getvalue(), newline="")
        os.replace(unborn, path)
    finally:
        unborn.unlink(missing_ok=True)


def read(path: pathlib.Path) -> list[Row]:
    """The rows of a CSV.

    Raises:
        ValueError: a header other than the one this module writes, or an incomplete line.
    """
    with path.open(newline="") as file:
        header, *lines = list(csv.reader(file)) or [[]]
    if tuple(header) != FIELDS:
        raise ValueError(f"{path} must have the columns {', '.join(FIELDS)}, got {', '.join(header) or 'nothing'}")
    return [_row(path, number, line) for number, line in enumerate(lines, 2)]


def _row(path: pathlib.Path, number: int, line: list[str]) -> Row:
    try:
        panel, series, *numbers = line
        return Row(panel, series, *map(float, numbers))
    except (ValueError, TypeError):
        words = "panel, series and four numbers"
        raise ValueError(f"line {number} of {path} must have {words}, got {','.join(line)!r}") from None


def series(rows: Iterable[Row], panel: str) -> dict[str, list[Row]]:
    """The rows of one panel, by series, each in order of x."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.panel == panel:
            found.setdefault(row.series, []).append(row)
    return {name: sorted(part, key=lambda row: row.x) for name, part in found.items()}
