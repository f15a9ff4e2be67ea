"""The measured exponents of k, and what the theorems say."""

import dataclasses
import math
from collections.abc import Callable, Iterator

from dpjax.multi import tables
from experiments import exponents, multi_parities, multi_points, multi_thresholds, records
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

CLASSES = {"points": multi_points, "thresholds": multi_thresholds, "parities": multi_parities}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of the paper's tables and the learner that is measured for it.

    Attributes:
        entry: the cell.
        of, series: whose "least n" it is fitted to.
        hypotheses: |H| where each concept is chosen by an exponential mechanism that must succeed but for beta/k: then n* is fitted to
            k^exponent ln(|H| k / beta), the logarithm that the tables hide; 0 where n* has no such factor.
    """

    entry: tables.Entry
    of: str
    series: str
    hypotheses: int

    @property
    def name(self) -> str:
        """For a row of the picture."""
        hypotheses = "" if self.entry.hypotheses == "both" else f", {self.entry.hypotheses}"
        setting = "" if self.entry.privacy == tables.PURE else f", {self.entry.setting}"
        return f"{self.entry.privacy}, {self.entry.concepts}{setting}{hypotheses}: {self.series}"

    def factor(self, beta: float) -> Callable[[float], float]:
        """The logarithm beside the power of k."""
        return lambda k: math.log(self.hypotheses * k / beta) if self.hypotheses else 1.0


def _cell(of: str, series: str, choices: int, **wanted: str) -> Cell:
    (entry,) = tables.find(**wanted)
    return Cell(entry=entry, of=of, series=series, hypotheses=choices)


_PURE = {"privacy": tables.PURE, "setting": tables.PAC}
_PAC = {"privacy": tables.APPROXIMATE, "setting": tables.PAC}
_AGNOSTIC = {"privacy": tables.APPROXIMATE, "setting": tables.AGNOSTIC}
CELLS = (
    _cell("points", "pure direct sum", 2**11, **_PURE, concepts="POINT", hypotheses="improper"),
    _cell("points", "pure, proper", 2**64, **_PURE, concepts="POINT", hypotheses="proper"),
    _cell("thresholds", "pure direct sum", 2**16, **_PURE, concepts="THRESH"),
    _cell("parities", "direct sum, pure", 2**16, **_PURE, concepts="PAR"),
    _cell("points", "PointLearner", 0, **_PAC, concepts="POINT"),
    _cell("thresholds", "direct sum, optimal", 2**16, **_PAC, concepts="THRESH"),
    _cell("parities", "ParityLearner", 0, **_PAC, concepts="PAR"),
    _cell("points", "generic", 8, **_AGNOSTIC, concepts="POINT"),
    _cell("thresholds", "generic", 8, **_AGNOSTIC, concepts="THRESH"),
    _cell("parities", "direct sum, optimal", 2**16, **_AGNOSTIC, concepts="PAR"),
)


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panel "exponent" (x: its place in CELLS), "upper" and "lower"; and the n* they come from, by class."""
    rows = []
    for name, module in CLASSES.items():
        measured = module.EXPERIMENT.measure(settings[name], context)
        rows += [dataclasses.replace(row, panel=f"{name}: {row.panel}") for row in measured if row.panel == "least n"]
    return [*rows, *fitted(rows, settings)]


def fitted(rows: list[Row], settings: Settings) -> Iterator[Row]:
    """The exponents of the n* measured, beside the theorems'."""
    for place, cell in enumerate(CELLS):
        part = records.series(rows, f"{cell.of}: least n").get(cell.series, [])
        exponent = exponents.fit(part, factor=cell.factor(settings[cell.of]["beta"]))
        if exponent is None:
            continue
        yield Row("exponent", cell.name, place, exponent.value, exponent.low, exponent.high)
        yield exact("upper", cell.name, place, float(cell.entry.upper_exponent))
        if cell.entry.lower:
            yield exact("lower", cell.name, place, float(cell.entry.lower_exponent))
