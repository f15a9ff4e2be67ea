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

from dpjax.core import checks
from dpjax.trials import engine
from dpjax.trials.store import Store, open_store
from experiments import records

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


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What a module experiments.<name> defines as EXPERIMENT.

    Attributes:
        summary: one line.
        presets: settings by preset; plain data, part of the run's identity.
        measure: settings, context -> rows of the table.
        draw: rows, directory -> None; writes the pictures.
    """

    summary: str
    presets: Mapping[str, Mapping[str, Any]]
    measure: Callable[[Mapping[str, Any], "Context"], list[records.Row]]
    draw: Callable[[list[records.Row], pathlib.Path], None]


@dataclasses.dataclass(frozen=True)
class Context:
    """What a running experiment is given."""

    store: Store
    root: jax.Array


def load(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ValueError: there is none.
    """
    checks.choice("experiment", name, EXPERIMENTS)
    return importlib.import_module(f"experiments.{name}").EXPERIMENT


def run(name: str, *, preset: str, out: pathlib.Path, seed: int, resume: bool) -> None:
    """Runs an experiment; a killed run continues with resume=True and ends with the same CSV, byte for byte.

    Raises:
        ValueError: unknown name or preset; a directory that is not empty (without resume) or holds another run.
    """
    experiment = load(name)
    settings = experiment.presets[checks.choice("preset", preset, PRESETS)]
    root = engine.root_key(seed)
    identity = {"experiment": name, "preset": preset, "seed": seed, "settings": dict(settings)}
    began = time.monotonic()
    with open_store(out, identity, resume=resume) as store:
        rows = experiment.measure(settings, Context(store, root))
        records.write(rows, out / f"{name}.csv")
        _describe(out / f"{name}.json", identity, time.monotonic() - began)
        experiment.draw(rows, out)


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


def _describe(path: pathlib.Path, identity: Mapping[str, Any], seconds: float) -> None:
    """Writes parameters, seed, versions, device and wall time (of this call: a resumed run counts its last part)."""
    packages = ("dpjax", "jax", "jaxlib", "numpy", "scipy", "matplotlib", "dp-accounting")
    device = jax.devices()[0]
    description = {
        **identity,
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in packages}},
        "device": {"platform": device.platform, "kind": device.device_kind, "count": jax.device_count()},
        "wall_seconds": round(seconds, 1),
    }
    path.write_text(json.dumps(description, indent=2) + "\n")
