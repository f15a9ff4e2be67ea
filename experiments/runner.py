"""Runs an experiment into a directory: records as they come, then the CSV, the JSON and the pictures."""

import contextlib
import dataclasses
import importlib
import importlib.util
import json
import pathlib
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import Any

import jax

from dpjax.core import arguments
from dpjax.trials import devices, engine, resumable, shared
from experiments import compilation, records, settings
from experiments.refusals import Refused, refusing

USUAL = "EXPERIMENT"  # the usual name of a module's experiment
EXPERIMENTS = (
    "benchmarks",
    "cdf",
    "conjunctions",
    "embedded",
    "fingerprinting",
    "history",
    "interior_point",
    "kearns",
    "labels",
    "learned",
    "map",
    "multi_parities",
    "multi_points",
    "multi_thresholds",
    "optimum",
    "papers",
    "points",
    "polygons",
    "quantile_contest",
    "quantiles",
    "quasi_concave",
    "rectangles",
    "relaxed",
    "sanitizers",
    "slicing",
    "table",
    "thresholds",
    "tuning",
    "worst_data",
)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """An experiment, which a module defines as EXPERIMENT.

    Attributes:
        summary: the experiment in one line.
        presets: settings by preset; plain data, part of the run's identity.
        measure: settings, context -> rows of the table.
        draw: rows, settings, directory -> None; writes the pictures.
        timed: whether rows are timings of this machine, so that several processes cannot share the work.
        words: the allowed values of settings that are words, by key; other settings' words are not checked before the measurement.
        cells: keys of the settings that list cells, or groups of them, any few of which can be measured alone (`experiments.checking`).
    """

    summary: str
    presets: Mapping[str, settings.Settings]
    measure: Callable[[settings.Settings, "Context"], list[records.Row]]
    draw: Callable[[list[records.Row], settings.Settings, pathlib.Path], None]
    timed: bool = False
    words: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    cells: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Context:
    """What a running experiment is given: where results are kept, the seed, and the key from which all of its keys are derived."""

    store: shared.Keeper
    root: jax.Array
    seed: int = 0

    def count(self, run: engine.Run, params: Any, **at: Any) -> Any:
        """`resumable.count` in this run."""
        return resumable.count(run, params, store=self.store, root=self.root, **at)

    def evaluate(self, run: engine.Run, params: Any, **at: Any) -> Any:
        """`resumable.evaluate` in this run."""
        return resumable.evaluate(run, params, store=self.store, root=self.root, **at)


# ------------------------------------------------------------------------------------------------------- which one


def load(name: str) -> Experiment:
    """The experiment of that name, or one of your own: "module:ATTRIBUTE", "file.py" or "file.py:ATTRIBUTE".

    Raises:
        Refused: there is no such experiment.
    """
    place, _, attribute = name.partition(":")
    if name in EXPERIMENTS:
        place = f"experiments.{name}"
    elif place == name and not place.endswith(".py"):
        rule = f"one of {', '.join(map(repr, EXPERIMENTS))}, or your own as MODULE:NAME or FILE.py"
        raise Refused(f"experiment must be {rule}, got {name!r}{arguments.meant(name, EXPERIMENTS)}")
    attribute = attribute or USUAL
    found = getattr(_from_file(place) if place.endswith(".py") else _from_module(place), attribute, None)
    if not isinstance(found, Experiment):
        raise Refused(f"{place} must define {attribute} as an experiments.runner.Experiment, got {found!r}")
    return found


def title(name: str) -> str:
    """The name of an experiment's files; each of several experiments in one place has its own.

    >>> title("thresholds"), title("mine.py"), title("mine.py:FAST"), title("package.mine:EXPERIMENT")
    ('thresholds', 'mine', 'mine_FAST', 'mine')
    """
    place, _, attribute = name.partition(":")
    stem = pathlib.Path(place).stem if place.endswith(".py") else place.rpartition(".")[2]
    return stem if attribute in ("", USUAL) else f"{stem}_{attribute}"


def _from_file(place: str) -> Any:
    path = pathlib.Path(place)
    if not path.is_file():
        raise Refused(f"experiment must be a file that exists, got {place!r}")
    name = f"own_experiment_{path.stem}"  # no module from elsewhere has this name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _from_module(place: str) -> Any:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise  # the module is there, but something that it imports is not
        raise Refused(f"experiment must be a module that can be imported from here, got {place!r}") from None


# --------------------------------------------------------------------------------------------------------- running


def check(
    name: str, preset: str, *, changes: Sequence[str] = (), distributed: bool = False
) -> tuple[Experiment, settings.Settings]:
    """The experiment and its settings; whatever can be refused is refused here, before anything else is done.

    Args:
        name: see `load`.
        preset: the name of the settings.
        changes: changes to these settings, as "key=value".
        distributed: whether several processes are to share the work.

    Raises:
        Refused: unknown name, preset or setting; an experiment that measures one machine, in a distributed run.
    """
    experiment = load(name)
    with refusing():
        arguments.choice("preset", preset, tuple(experiment.presets))
        chosen = settings.changed(experiment.presets[preset], changes, words=experiment.words)
    if distributed and experiment.timed:
        raise Refused(f"{name} times this machine: run it without --distributed")
    return experiment, chosen


def run(
    name: str, *, preset: str, out: pathlib.Path, seed: int, resume: bool, changes: Sequence[str] = ()
) -> compilation.Report:
    """Runs an experiment; a killed run continues with resume=True and ends with the same CSV, byte for byte.

    In a distributed run every process calls this; the first one writes.

    Raises:
        Refused: what `check` refuses; a directory that is not empty (without resume) or holds another run.
    """
    experiment, chosen = check(name, preset, changes=changes, distributed=jax.process_count() > 1)
    of_module = name not in EXPERIMENTS and not name.partition(":")[0].endswith(".py")
    what = {"experiment": name if of_module else title(name), "preset": preset, "seed": seed}
    identity = {**what, "settings": chosen, "versions": engine.versions(), **engine.width()}
    began = time.monotonic()
    with contextlib.ExitStack() as opened:
        with refusing():
            root = engine.root_key(seed)
            store = opened.enter_context(shared.open_shared(out, identity, resume=resume))
        compiled = opened.enter_context(compilation.watched())
        rows = experiment.measure(chosen, Context(store, root, seed))
        report = compiled.report(time.monotonic() - began)
        if devices.lead():
            table, description = _files(name, out)
            records.write(rows, table)
            _describe(description, identity, report, len(rows))
            experiment.draw(rows, chosen, out)
    return report


def plot(name: str, *, out: pathlib.Path) -> None:
    """Draws an experiment's pictures again from its CSV, and from the settings in the JSON beside it.

    Raises:
        Refused: unknown name; no such files, or not as a run wrote them.
    """
    experiment = load(name)
    described, rows = drawn(name, out)
    experiment.draw(rows, described["settings"], out)


def drawn(name: str, out: pathlib.Path) -> tuple[dict[str, Any], list[records.Row]]:
    """What a run wrote: its description and its rows.

    Raises:
        Refused: no such files, or not as a run wrote them.
    """
    table, description = _files(name, out)
    for path in (table, description):
        if not path.is_file():
            raise Refused(f"out must hold {path.name}, as written by a run of {name!r}; got {str(out)!r}")
    with refusing():
        rows = records.read(table)
    described = _described(description)
    if len(rows) != described["rows"]:
        raise Refused(f"{table} must have the {described['rows']} rows of its run, got {len(rows)}")
    return described, rows


def _described(path: pathlib.Path) -> dict[str, Any]:
    """A run's description of itself, read from its JSON."""
    try:
        described = json.loads(path.read_text())
        return {name: described[name] for name in ("settings", "preset", "seed", "rows")}
    except (ValueError, KeyError, TypeError):
        raise Refused(f"{path} must be as written by a run: with its settings and the number of its rows") from None


def _files(name: str, out: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """The paths of the CSV and the JSON."""
    return out / f"{title(name)}.csv", out / f"{title(name)}.json"


def _describe(path: pathlib.Path, identity: Mapping[str, Any], report: compilation.Report, rows: int) -> None:
    """Writes parameters, seed, versions, device and times (of this call: a resumed run counts its last part)."""
    others = {"python": platform.python_version(), "matplotlib": metadata.version("matplotlib")}
    device = jax.devices()[0]
    description = {
        **identity,
        "versions": {**identity["versions"], **others},
        "rows": rows,
        "device": {
            "platform": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
            "processes": jax.process_count(),
        },
        **dataclasses.asdict(report),
    }
    path.write_text(json.dumps(description, indent=2) + "\n")
