"""Many devices and processes give the same bytes as one device, even after a kill; what goes wrong is reported in words.

Each run is a separate command line, on an experiment whose results depend on the last bits of long sums.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from builders import slow, thorough

from dpjax.trials.store import open_store

ROOT = pathlib.Path(__file__).parent.parent

FICKLE = textwrap.dedent(
    """
    import sys, time
    import jax, jax.numpy as jnp
    from dpjax.trials import resumable
    from experiments import __main__ as command, runner
    from experiments.records import exact

    def fickle(key, scale):
        x = scale * jax.random.normal(key, (50,))
        return jnp.sum(jnp.exp(x)), (1e6 * jnp.sum(x)).astype(jnp.int32) & 7

    def last_bits(key, scale):
        return fickle(key, scale)[1]

    def measure(settings, context):
        rows = []
        for cell in range(4):
            given = {"store": context.store, "root": context.root, "cell": cell}
            counted = resumable.count(last_bits, 1 + cell / 8, key={"count": cell}, trials=5000, chunk=1700, **given)
            rows.append(exact("count", "", cell, counted))
            floats, _ = resumable.evaluate(fickle, 1 + cell / 8, key={"law": cell}, draws=21, chunk=16, **given)
            rows += [exact("law", str(cell), draw, value) for draw, value in enumerate(floats)]
            time.sleep(PAUSE)
        return rows

    experiment = runner.Experiment("", {"smoke": {}, "quick": {"other": 1}}, measure, lambda *_: None)
    runner.load = lambda name: experiment
    sys.exit(command.main(sys.argv[1:]))
    """
)


def start(out, *more, devices=1, pause=0.0, preset="smoke"):
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(out.parent / "cache"),
        "JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}",
    }
    program = FICKLE.replace("PAUSE", str(pause))
    command = [sys.executable, "-c", program, "run", "thresholds", "--preset", preset, "--out", str(out), *more]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **cache}, **streams)


def start_together(out, processes, *more, **options):
    """The same command in each of several processes."""
    meeting = ["--distributed", "--coordinator", f"localhost:{free_port()}", "--processes", str(processes)]
    return [start(out, *meeting, "--process-id", str(i), *more, **options) for i in range(processes)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def finish(*processes, status=0):
    """What each wrote on standard error."""
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert all(process.returncode == status for process in processes), errors
    return errors


def table(out):
    return (out / "thresholds.csv").read_bytes()


@pytest.fixture(scope="module")
def one_device(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "one"
    finish(start(out))
    return out


@pytest.mark.parametrize(("processes", "devices"), [slow(1, 8), thorough(2, 1), slow(4, 2)], ids=str)
def test_the_same_bytes_on_any_number_of_devices_and_processes(processes, devices, one_device):
    out = one_device.parent / f"{processes}-{devices}"
    finish(*(start_together(out, processes, devices=devices) if processes > 1 else [start(out, devices=devices)]))
    assert table(out) == table(one_device)
    used = json.loads((out / "thresholds.json").read_text())["device"]
    assert (used["processes"], used["count"]) == (processes, processes * devices)


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, slow(1)])
def test_a_killed_process_ends_the_run_in_words_and_the_rest_is_resumed(victim, one_device):
    """After kill -9 of one of two processes the other one reports it, and one process with two devices resumes to the same bytes."""
    out = one_device.parent / f"lost-{victim}"
    processes, kept = start_together(out, 2, pause=0.5), out / "records.jsonl"
    deadline = time.monotonic() + 120
    while not (kept.exists() and len(kept.read_bytes().splitlines()) >= 4):
        assert all(process.poll() is None for process in processes) and time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(processes[victim].pid, signal.SIGKILL)
    killed = time.monotonic()
    words = processes[1 - victim].communicate(timeout=120)[1].splitlines()[-1]
    assert "lost another process" in words and "--resume" in words and str(out) in words
    assert processes[1 - victim].returncode != 0 and time.monotonic() - killed < 60
    processes[victim].communicate()
    survived = kept.read_bytes().splitlines()[:4]
    finish(start(out, "--resume", devices=2))
    assert kept.read_bytes().splitlines()[:4] == survived
    assert table(out) == table(one_device)


@pytest.mark.slow  # `test_experiments` checks this for one process
def test_another_seed_is_refused_by_all_and_nothing_is_touched(one_device):
    before = {path: path.read_bytes() for path in one_device.iterdir()}
    for errors in finish(*start_together(one_device, 2, "--resume", "--seed", "1"), status=2):
        assert "another run: " in errors.splitlines()[-1] and "seed" in errors.splitlines()[-1]
    assert {path: path.read_bytes() for path in one_device.iterdir()} == before


@pytest.mark.thorough
def test_a_run_of_another_version_is_refused(one_device, tmp_path):
    header = json.loads((one_device / "records.jsonl").read_text().splitlines()[0])
    identity = header["record"]["identity"]
    open_store(tmp_path / "old", {**identity, "versions": {**identity["versions"], "jax": "0.1.2"}}).close()
    (errors,) = finish(start(tmp_path / "old", "--resume"), status=2)
    assert "versions" in errors and "0.1.2" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cases", "seconds"),
    [
        ({"no coordinator": [(2, 1)], "alone": [(2, 0)]}, 1),
        pytest.param({"counts": [(2, 0), (3, 1)], "too many": [(2, 0), (3, 2)]}, 5, marks=pytest.mark.slow),
    ],
    ids=["too few", "two opinions"],
)
def test_processes_that_do_not_meet_say_so_in_time(cases, seconds, tmp_path):
    """No coordinator; fewer processes than announced; two opinions on their number; one too many. All run at once, as they mostly wait."""
    began, started = time.monotonic(), []
    for case, opinions in cases.items():
        where = ["--distributed", "--coordinator", f"localhost:{free_port()}", "--timeout", str(seconds)]
        for count, i in opinions:
            process = start(tmp_path / case / "out", *where, "--processes", str(count), "--process-id", str(i))
            started.append((case, process))
    for case, process in started:
        words = process.communicate(timeout=120)[1].splitlines()[-1]
        assert process.returncode != 0 and words.startswith("error: ") and "--processes" in words, case
        assert not (tmp_path / case / "out").exists()
    assert time.monotonic() - began < 90


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--coordinator", "host:1"], ["--processes", "--process-id"]),
        (["--coordinator", "host", "--processes", "2", "--process-id", "0"], ["HOST:PORT", "'host'"]),
        (["--coordinator", "host:1", "--processes", "2", "--process-id", "2"], ["--process-id", "2"]),
        (["--coordinator", "host:1", "--processes", "0", "--process-id", "0"], ["--processes", "0"]),
        (["--timeout", "0"], ["--timeout", "0"]),
    ],
)
def test_bad_meetings_are_refused(more, words, tmp_path, capsys, monkeypatch):
    from experiments import __main__ as command

    for variable in ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"):
        monkeypatch.delenv(variable, raising=False)
    assert command.main(["run", "thresholds", "--distributed", "--out", str(tmp_path / "out"), *more]) == 2
    message = capsys.readouterr().err
    assert all(word in message for word in words), message
    assert not (tmp_path / "out").exists()
