"""The store against kills at every byte, real kill -9, other runs, damage and a second writer."""

import copy
import errno
import gc
import json
import math
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpjax.trials import store as store_module
from dpjax.trials.shared import Memory
from dpjax.trials.store import FILE, open_store

IDENTITY = {"experiment": "walk", "preset": "smoke", "parameters": {"epsilon": 0.1, "bits": 8}, "seed": 3}


def walk(store, steps=6):
    """A run in which each result depends on the previous one, as in a search; (its table as CSV, the steps that were computed)."""
    x, rows, computed = 0.1, [], []
    for step in range(steps):

        def compute(x=x, step=step):
            computed.append(step)
            return {"x": math.sin(10 * x) + 1, "counts": [step, 2**70 + step], "note": "naïve\n"}

        result = store.get_or_compute({"step": step, "from": x}, compute)
        x = result["x"]
        rows.append(f"{step},{x!r},{result['counts'][1]}")
    return "\n".join(rows).encode(), computed


def snapshot(directory):
    """Everything a refusal must leave alone."""
    paths = [directory, *sorted(directory.rglob("*"))]
    return [(str(p), p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in paths]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """(bytes of the file, CSV) of a run nobody disturbed."""
    directory = tmp_path_factory.mktemp("undisturbed")
    with open_store(directory, IDENTITY) as store:
        csv, computed = walk(store)
    assert computed == list(range(6))
    return (directory / FILE).read_bytes(), csv


def test_resume_after_a_cut_anywhere(tmp_path, undisturbed):
    content, csv = undisturbed
    header = content.index(b"\n") + 1
    ends = [at + 1 for at, byte in enumerate(content) if byte == ord("\n")]
    # Lines are alike: at every byte of the first and the last one, and at the ends of all.
    for cut in sorted({*ends, *range(header, ends[1]), *range(ends[-2], ends[-1])}):
        (tmp_path / FILE).write_bytes(content[:cut])
        with open_store(tmp_path, IDENTITY, resume=True) as store:
            again, computed = walk(store)
        whole_lines = content[header:cut].count(b"\n")
        assert again == csv and (tmp_path / FILE).read_bytes() == content
        assert computed == list(range(whole_lines, 6))  # at most one result, the one in flight, was lost


def test_a_cut_inside_the_header_is_refused(tmp_path, undisturbed):
    """It cannot come from a kill: the file gets its name when the header is whole."""
    content, _ = undisturbed
    for cut in (0, 1, content.index(b"\n")):
        (tmp_path / FILE).write_bytes(content[:cut])
        before = snapshot(tmp_path)
        with pytest.raises(ValueError, match="first line"):
            open_store(tmp_path, IDENTITY, resume=True)
        assert snapshot(tmp_path) == before


def test_a_kill_before_the_header_has_its_name(tmp_path, undisturbed):
    content, csv = undisturbed
    (tmp_path / store_module._UNBORN).write_bytes(content[:20])
    with open_store(tmp_path, IDENTITY, resume=True) as store:
        assert walk(store)[0] == csv
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("seed", range(8))
def test_damage_is_refused(tmp_path, undisturbed, seed):
    content, _ = undisturbed
    generator = random.Random(seed)
    damaged = bytearray(content)
    damaged[generator.randrange(content.index(b"\n") + 1, len(content) - 1)] ^= 1 << generator.randrange(7)
    (tmp_path / FILE).write_bytes(damaged)
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match="damaged run: line"):
        open_store(tmp_path, IDENTITY, resume=True)
    assert snapshot(tmp_path) == before


def test_a_line_of_any_depth_is_damage(tmp_path, undisturbed):
    (tmp_path / FILE).write_bytes(undisturbed[0] + b"[" * 10**5 + b"]" * 10**5 + b"\n")
    with pytest.raises(ValueError, match="damaged run: line"):
        open_store(tmp_path, IDENTITY, resume=True)


@pytest.mark.parametrize("record", [5, [1, 2], {"value": 1}, {"format": 1, "identity": IDENTITY}])
def test_whole_lines_that_are_no_results_are_refused(tmp_path, undisturbed, record):
    (tmp_path / FILE).write_bytes(undisturbed[0] + store_module._line(record))
    with pytest.raises(ValueError, match="damaged run: line"):
        open_store(tmp_path, IDENTITY, resume=True)


CHILD = """
import sys, time
sys.path.insert(0, sys.argv[1])
import test_store
from dpjax.trials.store import open_store
with open_store(sys.argv[2], test_store.IDENTITY, resume=True) as store:
    compute = store.get_or_compute
    def slow(key, function):
        time.sleep(0.01)
        result = compute(key, function)
        print("step", flush=True)
        return result
    store.get_or_compute = slow
    print("open", flush=True)
    test_store.walk(store, steps=150)
"""


def start_child(directory, lines):
    """A process that has the directory open and has printed `lines` lines."""
    here = str(pathlib.Path(__file__).parent)
    command = [sys.executable, "-c", CHILD, here, str(directory)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    printed = [child.stdout.readline() for _ in range(lines)]
    assert printed == ["open\n"] + ["step\n"] * (lines - 1)
    return child


def test_kill_minus_nine(tmp_path):
    with open_store(tmp_path / "whole", IDENTITY) as store:
        csv, _ = walk(store, steps=150)
    directory, sizes = tmp_path / "killed", [0]
    for lines in (1, 4, 10):
        child = start_child(directory, lines)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert child.returncode == -signal.SIGKILL
        sizes.append((directory / FILE).stat().st_size)
    assert sizes == sorted(sizes) and sizes[3] > sizes[1]
    with open_store(directory, IDENTITY, resume=True) as store:
        assert 9 <= len(store) < 150
        again, computed = walk(store, steps=150)
    assert again == csv and len(computed) <= 141
    assert (directory / FILE).read_bytes() == (tmp_path / "whole" / FILE).read_bytes()


def test_a_second_writer_is_refused(tmp_path):
    child = start_child(tmp_path / "busy", 1)
    try:
        with pytest.raises(BlockingIOError, match="another process"):
            open_store(tmp_path / "busy", IDENTITY, resume=True)
    finally:
        child.kill()
        child.communicate()
    open_store(tmp_path / "busy", IDENTITY, resume=True).close()


def test_refusals_free_the_directory(tmp_path):
    open_store(tmp_path, IDENTITY).close()
    for _ in range(2):
        with pytest.raises(ValueError, match="another run"):
            open_store(tmp_path, {**IDENTITY, "seed": 4}, resume=True)
    open_store(tmp_path, IDENTITY, resume=True).close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 4}, r"seed is 3 there, 4 here$"),
        ({"seed": 3.0}, r"seed is 3 there, 3\.0 here$"),
        ({"parameters": {"epsilon": 0.2, "bits": 8}}, r"parameters\.epsilon is 0\.1 there, 0\.2 here$"),
        ({"extra": 1}, r"extra is '\(absent\)' there, 1 here$"),
        ({"extra": None}, r"extra is '\(absent\)' there, None here$"),
        ({"preset": "full", "seed": 4}, r"preset is 'smoke' there, 'full' here; seed is 3"),
    ],
)
def test_another_run_is_refused_by_its_fields(tmp_path, undisturbed, change, words):
    content, _ = undisturbed
    (tmp_path / FILE).write_bytes(content + b'{"check":"torn')  # nor is a torn line cut off by the wrong run
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=words):
        open_store(tmp_path, {**IDENTITY, **change}, resume=True)
    assert snapshot(tmp_path) == before


def test_another_format_is_refused(tmp_path, monkeypatch):
    open_store(tmp_path, IDENTITY).close()
    monkeypatch.setattr(store_module, "FORMAT", 2)
    with pytest.raises(ValueError, match="format is 1 there, 2 here"):
        open_store(tmp_path, IDENTITY, resume=True)


@pytest.mark.parametrize("name", [FILE, "thesis.tex", "subdirectory/data.csv"])
def test_without_resume_only_an_empty_directory_will_do(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("precious")
    before = snapshot(tmp_path)
    with pytest.raises(ValueError, match=f"must be empty or absent.*{tmp_path.name}"):
        open_store(tmp_path, IDENTITY)
    with pytest.raises(ValueError, match="directory"):
        open_store(tmp_path, IDENTITY, resume=True)
    assert snapshot(tmp_path) == before


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValueError, match="must be a directory"):
        open_store(tmp_path / "file", IDENTITY, resume=True)
    for within in ("file/deeper", "n" * 300):
        with pytest.raises(ValueError, match=r"directory must be one that can be created and read, got .*: .*Errno"):
            open_store(tmp_path / within, IDENTITY)
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_empty_or_absent_directories_just_start(tmp_path, undisturbed, resume, exists):
    directory = tmp_path / "deep" / "er"
    if exists:
        directory.mkdir(parents=True)
    with open_store(directory, IDENTITY, resume=resume) as store:
        assert walk(store)[0] == undisturbed[1]


def test_bad_identity_makes_no_directory(tmp_path):
    for identity in ("walk", {"run": object()}):
        with pytest.raises(TypeError):
            open_store(tmp_path / "new", identity)
    assert not (tmp_path / "new").exists()


@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.floats() | st.integers() | st.text() | st.booleans() | st.none(), max_size=5))
def test_values_come_back_to_the_last_bit(tmp_path_factory, values):
    directory = tmp_path_factory.mktemp("values")
    with open_store(directory, {}) as store:
        first = store.get_or_compute({"k": 1}, lambda: {"values": values})
    with open_store(directory, {}, resume=True) as store:
        again = store.get_or_compute({"k": 1}, pytest.fail)
    for one, two, value in zip(first["values"], again["values"], values, strict=True):
        assert type(one) is type(two) is type(value)
        assert repr(one) == repr(two) == repr(value)


def test_numpy_values_are_plain_from_the_first(tmp_path):
    value = {"a": np.float32(0.1), "b": np.arange(3), "c": (np.int64(2**62), np.True_)}
    with open_store(tmp_path, {"n": np.int64(5)}) as store:
        got = store.get_or_compute({"n": np.int64(7)}, lambda: value)
        assert got == {"a": float(np.float32(0.1)), "b": [0, 1, 2], "c": [2**62, True]}
        assert {"n": 7} in store and {"n": 8} not in store
        got["b"].append(9)  # what a caller does to its copy stays there
        assert store.get_or_compute({"n": 7}, pytest.fail)["b"] == [0, 1, 2]
        assert [key for key, _ in store.records()] == [{"n": 7}]
        with pytest.raises(TypeError, match="JSON"):
            store.get_or_compute({"n": 8}, object)
        for keeper in (store, Memory()):  # 1 was "1"
            with pytest.raises(TypeError, match="key must name what it holds by text, as JSON does, got 1 in"):
                keeper.get_or_compute({"n": [{1: 2}]}, list)
            assert {"n": [{"1": 2}]} not in keeper
    open_store(tmp_path, {"n": 5}, resume=True).close()


def test_the_file_is_json_lines(undisturbed):
    header, *records = [json.loads(line)["record"] for line in undisturbed[0].splitlines()]
    assert header == {"format": 1, "identity": IDENTITY}
    assert [record["key"]["step"] for record in records] == list(range(6))


def test_a_full_disk_tears_nothing(tmp_path, monkeypatch):
    with open_store(tmp_path, IDENTITY) as store:
        walk(store, steps=2)
        before = (tmp_path / FILE).read_bytes()

        def full(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(os, "fsync", full)
            walk(store, steps=3)
        assert (tmp_path / FILE).read_bytes() == before
        csv, computed = walk(store)
    assert computed == [2, 3, 4, 5]
    with open_store(tmp_path, IDENTITY, resume=True) as store:
        assert walk(store) == (csv, [])


def test_a_failing_computation_stores_nothing(tmp_path):
    with open_store(tmp_path, IDENTITY) as store:
        with pytest.raises(ZeroDivisionError):
            store.get_or_compute({"step": 0}, lambda: 1 / 0)
        assert len(store) == 0
        assert store.get_or_compute({"step": 0}, lambda: 5) == 5


def test_a_store_that_nobody_holds_is_free(tmp_path):
    """As in a cell of a notebook that is run again."""
    store = open_store(tmp_path / "s", {})
    with pytest.raises(BlockingIOError, match="not closed"):
        open_store(tmp_path / "s", {}, resume=True)
    del store
    gc.collect()
    open_store(tmp_path / "s", {}, resume=True).close()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_store_is_not_copied(tmp_path, duplicate):
    """A copy that was thrown away let go of the lock and closed the file."""
    with open_store(tmp_path, IDENTITY) as store:
        with pytest.raises(TypeError, match=r"not copied or pickled: close it, and .* open_store"):
            duplicate(store)
        gc.collect()
        assert store.get_or_compute({"step": 0}, lambda: 5) == 5
