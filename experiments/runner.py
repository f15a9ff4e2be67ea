"""Runs an experiment into a directory: records as they come, then the CSV, the JSON and the pictures."""

import dataclasses
import importlib
import json
import pathlib
import platform
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

import jax

from dpjax.core import arguments
from dpjax.trials import devices, engine, shared
from experiments import compilation, records

EXPERIMENTS = (
    "benchmarks",
    "cdf",
    "fingerprinting",
    "interior_point",
    "multi_parities",
    "multi_points",
    "multi_thresholds",
    "optimum",
    "quasi_concave",
    "rectangles",
    "slicing",
    "table",
    "thresholds",
)
PRESETS = ("smoke", "quick", "full")
# What may move a digit: a run is resumed with the same versions of these only.
COMPUTING = ("dpjax", "jax", "jaxlib", "numpy", "scipy", "dp-accounting")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What a module experiments.<name> defines as EXPERIMENT.

    Attributes:
        summary: one line.
        presets: settings by preset; plain data, part of the run's identity.
        measure: settings, context -> rows of the table.
        draw: rows, directory -> None; writes the pictures.
        timed: whether rows are timings of this machine, so that several processes cannot share the work.
    """

    summary: str
    presets: Mapping[str, Mapping[str, Any]]
    measure: Callable[[Mapping[str, Any], "Context"], list[records.Row]]
    draw: Callable[[list[records.Row], pathlib.Path], None]
    timed: bool = False


@dataclasses.dataclass(frozen=True)
class Context:
    """What a running experiment is given."""

    store: shared.Keeper
    root: jax.Array


def load(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ValueError: there is none.
    """
    arguments.choice("experiment", name, EXPERIMENTS)
    return importlib.import_module(f"experiments.{name}").EXPERIMENT


def check(name: str, preset: str, *, distributed: bool) -> Experiment:
    """The experiment; what can be refused before anything else is done, is.

    Raises:
        ValueError: unknown name or preset; an experiment that measures one machine, in a distributed run.
    """
    experiment = load(name)
    arguments.choice("preset", preset, PRESETS)
    if distributed and experiment.timed:
        raise ValueError(f"{name} times this machine: run it without --distributed")
    return experiment


def run(name: str, *, preset: str, out: pathlib.Path, seed: int, resume: bool) -> compilation.Report:
    """Runs an experiment; a killed run continues with resume=True and ends with the same CSV, byte for byte.

    In a distributed run every process calls this; the first one writes.

    Raises:
        ValueError: unknown name or preset; a directory that is not empty (without resume) or holds another run.
    """
    experiment = check(name, preset, distributed=jax.process_count() > 1)
    settings = experiment.presets[preset]
    root = engine.root_key(seed)
    versions = {package: metadata.version(package) for package in COMPUTING}
    identity = {"experiment": name, "preset": preset, "seed": seed, "settings": dict(settings), "versions": versions}
    began = time.monotonic()
    with shared.open_shared(out, identity, resume=resume) as store, compilation.watched() as compiled:
        rows = experiment.measure(settings, Context(store, root))
        report = compiled.report(time.monotonic() - began)
        if devices.lead():
            records.write(rows, out / f"{name}.csv")
            _describe(out / f"{name}.json", identity, report)
            experiment.draw(rows, out)
    return report


def plot(name: str, *, out: pathlib.Path) -> None:
    """Draws an experiment's pictures again from its CSV.

    Raises:
        ValueError: unknown name, or no such CSV.
    """
    experiment = load(name)
    path = out / f"{name}.csv"
    if not path.is_file():
        raise ValueError(f"out must hold {path.name}, as written by a run of {name!r}; got {str(out)!r}")
    experiment.draw(records.read(path), out)


def _describe(path: pathlib.Path, identity: Mapping[str, Any], report: compilation.Report) -> None:
    """Writes parameters, seed, versions, device and times (of this call: a resumed run counts its last part)."""
    others = {"python": platform.python_version(), "matplotlib": metadata.version("matplotlib")}
    device = jax.devices()[0]
    description = {
        **identity,
        "versions": {**identity["versions"], **others},
        "device": {
            "platform": device.platform,
            "kind": device.device_kind,
            "count": jax.device_count(),
            "processes": jax.process_count(),
        },
        **dataclasses.asdict(report),
    }
    path.write_text(json.dumps(description, indent=2) + "\n")
