"""Whether a figure still agrees with the code: some of its cells, drawn at random, are measured again and compared with its CSV.

Settings that list cells (sizes, widths, numbers of concepts) are cut down to a few elements each, the experiment runs with what is left,
in memory, and every row that it gives is compared with the row of the same panel, series and x:

| verdict | meaning |
|---|---|
| same | the same value to one part in a thousand, a difference that other versions of the libraries may cause |
| agrees | another value, but the two intervals overlap: which random numbers a cell gets may depend on the cells before it |
| differs | neither |
| missing | the figure has no such row |
| gone | the figure's row is not measured any more; seen only where no list was cut down, since other cells have other rows |

Audits of `learned` may differ on another processor: which event is learned, or chosen among equally good ones, depends on last digits.
"""

import collections
import dataclasses
import json
import math
import pathlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpjax.core import arguments
from dpjax.trials import engine
from dpjax.trials.shared import Memory
from experiments import records, runner, settings
from experiments.refusals import Refused, refusing

RTOL = 1e-3
VERDICTS = ("same", "agrees", "differs", "missing", "gone")
WRONG = VERDICTS[2:]


@dataclasses.dataclass(frozen=True)
class Compared:
    """A row measured again, or not any more.

    Attributes:
        row: as measured now; None if it is not.
        before: the row of the figure at the same panel, series and x, with the nearest value; None if there is none.
        verdict: one of `VERDICTS`.
    """

    row: records.Row | None
    before: records.Row | None
    verdict: str

    def __str__(self) -> str:
        of = self.row or self.before
        place = f"{self.verdict}: {of.panel}, {of.series}, x = {of.x:g}: " if of else ""
        return place + f"{_shown(self.before)} in the figure, {_shown(self.row)} now"


def check(name: str, *, out: pathlib.Path, seed: int, cells: int = 1) -> list[Compared]:
    """Measures some cells of a figure again.

    Args:
        name: the experiment, as for `runner.load`.
        out: the directory of its run.
        seed: decides which cells are drawn.
        cells: how many elements are kept of each list of cells.

    Returns:
        The rows measured again, in the order of the experiment; then those that are gone.

    Raises:
        Refused: an experiment that times this machine; no such figure, or one whose settings have other keys than today's; cells < 1;
            the cells drawn gave no numbers, so that nothing was compared.
    """
    with refusing():
        arguments.integer("cells", cells, at_least=1)
    experiment = runner.load(name)
    if experiment.timed:
        raise Refused(f"{name} times this machine: another run has other numbers")
    described, rows = runner.drawn(name, out)
    chosen, preset = described["settings"], described["preset"]
    if preset not in experiment.presets or _shape(chosen) != _shape(experiment.presets[preset]):
        raise Refused(f"{out} must be drawn anew: its settings are not those that {preset!r} has today")
    fewer = thinned(chosen, experiment.cells, random.Random(seed), cells)
    with refusing():
        root = engine.root_key(described["seed"])
    measured = experiment.measure(fewer, runner.Context(Memory(), root, described["seed"]))
    if not measured:
        rule = "must give numbers for the cells drawn, got none: nothing was compared"
        raise Refused(f"{name} {rule}; draw others (--seed), or more (--cells)")
    found = compared(measured, rows)
    return found if fewer != chosen else [*found, *gone(measured, rows)]


def thinned(chosen: settings.Settings, cells: Sequence[str], draw: random.Random, kept: int = 1) -> dict[str, Any]:
    """The settings with `kept` elements left, in their order, of each list that `cells` names, alone or by its group.

    >>> thinned({"bits": [8, 16, 32], "sizes": {"a": [1, 2], "b": [3, 4]}, "epsilon": 1}, ["bits", "sizes"], random.Random(0))
    {'bits': [16], 'sizes': {'a': [2], 'b': [3]}, 'epsilon': 1}
    """
    result: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(chosen)).items():
        inside = [cell.removeprefix(f"{name}.") for cell in cells if cell.startswith(f"{name}.")]
        if isinstance(value, Mapping) and (inside or name in cells):
            result[name] = thinned(value, list(value) if name in cells else inside, draw, kept)
        elif isinstance(value, list) and name in cells:
            result[name] = [value[i] for i in sorted(draw.sample(range(len(value)), min(kept, len(value))))]
        else:
            result[name] = value
    return result


def compared(rows: Iterable[records.Row], figure: Iterable[records.Row]) -> list[Compared]:
    """Every row with its counterpart in the figure; if there are several at one place, with the nearest."""
    there = collections.defaultdict(list)
    for row in figure:
        there[row.panel, row.series, row.x].append(row)
    found = []
    for row in rows:
        before = min(there[row.panel, row.series, row.x], key=lambda one: abs(one.value - row.value), default=None)
        found.append(Compared(row, before, _verdict(row, before)))
    return found


def gone(rows: Iterable[records.Row], figure: Iterable[records.Row]) -> list[Compared]:
    """The rows of the figure at whose panel, series and x nothing is measured any more."""
    there = {(row.panel, row.series, row.x) for row in rows}
    return [Compared(None, row, "gone") for row in figure if (row.panel, row.series, row.x) not in there]


def summary(found: Sequence[Compared]) -> str:
    """The number of rows with each verdict.

    >>> row = records.exact("least n", "ERM", 8, 18)
    >>> summary(compared([row], [row]))
    '1 numbers measured again: 1 same'
    """
    counts = collections.Counter(each.verdict for each in found)
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{sum(each.row is not None for each in found)} numbers measured again: {parts or 'none'}"


def _verdict(row: records.Row, before: records.Row | None) -> str:
    if before is None:
        return "missing"
    if math.isclose(row.value, before.value, rel_tol=RTOL, abs_tol=1e-9) or row.value == before.value:
        return "same"
    has_interval = row.low < row.high or before.low < before.high
    return "agrees" if has_interval and row.low <= before.high and before.low <= row.high else "differs"


def _shown(row: records.Row | None) -> str:
    if row is None:
        return "nothing"
    return f"{row.value:g}" if row.low == row.high else f"{row.value:g} [{row.low:g}, {row.high:g}]"


def _shape(chosen: Any) -> Any:
    """The keys of settings, in all groups."""
    return {name: _shape(value) for name, value in chosen.items()} if isinstance(chosen, Mapping) else None
