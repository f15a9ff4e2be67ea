"""The command line: what it refuses, what it writes, and that a killed run resumes to the same bytes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from experiments import __main__ as command
from experiments import records, runner

ROOT = pathlib.Path(__file__).parent.parent

# The real experiment on a grid of seconds: one learner, one d, one capacity.
TINY = textwrap.dedent(
    """
    import dataclasses, importlib, sys
    from experiments import __main__ as command, runner, thresholds
    importlib.import_module("experiments.thresholds.measure").LEARNERS = ("ERM",)
    settings = {**thresholds.COMMON, "bits": [8], "draws": {"other": 8}, "rtol": 0.2, "trials": 40,
                "success": {"bits": 8, "sizes": {"ERM": [32, 40]}}, "anatomy": {"bits": 8, "n": 60}}
    tiny = dataclasses.replace(thresholds.EXPERIMENT, presets={"smoke": settings})
    runner.load = lambda name: tiny
    sys.exit(command.main(sys.argv[1:]))
    """
)


def start(out: pathlib.Path, *more: str) -> subprocess.Popen:
    arguments = ["run", "thresholds", "--preset", "smoke", "--out", str(out), *more]
    # The runs of one test compile the same programs: once is enough.
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(out.parent / "cache"),
        "JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-c", TINY, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env={**os.environ, **cache})


def finish(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors


def snapshot(directory: pathlib.Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_a_killed_run_resumes_to_the_same_bytes(tmp_path):
    """kill -9 after a few records; the resumed run's CSV equals an undisturbed one's."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process, kept = start(killed), killed / "records.jsonl"
    deadline = time.monotonic() + 300
    while not (kept.exists() and len(kept.read_bytes().splitlines()) >= 4):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (killed / "thresholds.csv").exists()
    survived = kept.read_bytes().splitlines()[:4]
    finish(start(killed, "--resume"))
    assert kept.read_bytes().splitlines()[:4] == survived  # nothing computed before the kill is lost
    finish(start(whole))
    assert (killed / "thresholds.csv").read_bytes() == (whole / "thresholds.csv").read_bytes()

    # The rest of the promise, on the finished run.
    names = {path.suffix for path in whole.iterdir()}
    assert {".png", ".svg", ".csv", ".json"} <= names
    description = json.loads((whole / "thresholds.json").read_text())
    assert {"settings", "seed", "versions", "device", "wall_seconds"} <= set(description)
    panels = {row.panel for row in records.read(whole / "thresholds.csv")}
    assert {"least n", "theorem", "success by law", "success by trials", "anatomy: Q", "anatomy: L"} <= panels
    before = snapshot(whole)
    refused = start(whole, "--resume", "--seed", "1")
    assert "seed" in refused.communicate()[1] and refused.returncode == 2
    assert snapshot(whole) == before


def test_list_names_every_experiment(capsys):
    assert command.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in runner.EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "thresholds", "--preset", "huge"], ["preset", "'huge'", "smoke"]),
        (["run", "nothing"], ["experiment", "'nothing'", "thresholds"]),
        (["run", "thresholds", "--seed", "-1"], ["seed", "-1", "from 0 to"]),
        (["plot", "thresholds"], ["out", "thresholds.csv"]),
    ],
)
def test_bad_input_is_refused_in_words_and_leaves_no_trace(arguments, words, tmp_path, capsys):
    out = tmp_path / "out"
    assert command.main([*arguments, "--out", str(out)]) == 2
    message = capsys.readouterr().err
    assert all(word in message for word in words), message
    assert not out.exists()


def test_a_directory_with_something_else_is_refused_untouched(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    for more in ([], ["--resume"]):
        before = snapshot(tmp_path)
        assert command.main(["run", "thresholds", "--preset", "smoke", "--out", str(tmp_path), *more]) == 2
        assert str(tmp_path) in capsys.readouterr().err
        assert snapshot(tmp_path) == before


def test_table_round_trip(tmp_path):
    rows = [records.Row("a", "b", 1.0, 0.1, 1e-300, float("inf")), records.exact("a", "c", 2**0.5, -0.0)]
    records.write(rows, tmp_path / "t.csv")
    assert records.read(tmp_path / "t.csv") == rows
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="columns"):
        records.read(tmp_path / "bad.csv")
