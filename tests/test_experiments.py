"""The command line: what it refuses, what it writes, and that a killed run resumes to the same bytes; pictures and their texts."""

import ast
import dataclasses
import errno
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import time
import types

import jax
import numpy as np
import pytest
from builders import slow, thorough

from dpjax import Sample
from dpjax.concepts import agnostic
from dpjax.learners import label_private
from dpjax.multi import tables
from dpjax.plotting import style
from dpjax.trials.store import as_json
from experiments import __main__ as command
from experiments import compilation, exponents, records, runner, settings, sweeps
from experiments.labels.measure import each_epsilon, unanimous
from experiments.records import Row
from experiments.refusals import Refused
from experiments.relaxed.measure import _quality
from experiments.releases import upper_quantile
from experiments.table import cells

ROOT = pathlib.Path(__file__).parent.parent


@pytest.mark.thorough
@pytest.mark.parametrize("draws", [16, thorough(24), thorough(64)])
def test_the_interval_of_a_quantile_holds_it_however_few_values_there_are(draws):
    """Of 16 values the largest is below the 0.9 quantile with probability 0.19."""
    rng = np.random.default_rng(0)
    found = [upper_quantile(np.sort(rng.random(draws)), 0.9, level=0.95) for _ in range(2000)]
    assert np.mean([each.low <= 0.9 <= each.high for each in found]) > 0.93
    assert np.mean([each.low <= 0.85 <= each.high for each in found]) < 0.93 or draws < 64  # negative control


def test_the_band_of_a_deviation_is_of_its_level():
    rng, held = np.random.default_rng(0), 0
    for _ in range(800):
        *_, deviation, spread = _quality(1 + rng.normal(size=(2000, 8)), np.ones(8), 0.95)
        held += abs(deviation - 1) <= deviation * spread
    assert 0.92 < held / 800 < 0.98


# The real experiment on a grid that takes seconds: one learner, one d, one capacity.
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


@pytest.mark.slow  # three runs of a real experiment; `test_distributed` kills and resumes a small one
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


def test_settings_are_printed_as_they_can_be_set(capsys):
    assert command.main(["settings", "slicing", "--preset", "smoke"]) == 0
    assert json.loads(capsys.readouterr().out) == runner.check("slicing", "smoke")[1]


def test_list_names_every_experiment(capsys):
    assert command.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in runner.EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "thresholds", "--preset", "huge"], ["preset", "'huge'", "smoke"]),
        (["run", "nothing"], ["experiment", "'nothing'", "thresholds"]),
        (["run", "tresholds"], ["got 'tresholds'; did you mean 'thresholds'?"]),
        (["run", "thresholds", "--set", "epsilom=2"], ["got 'epsilom=2'; did you mean 'epsilon'?"]),
        (["run", "thresholds", "--seed", "-1"], ["seed", "-1", "from 0 to"]),
        (["check", "thresholds", "--seed", str(2**32)], ["--seed", str(2**32), "from 0 to"]),
        (["run", "thresholds", "--set", "eps=2"], ["'eps=2'", "epsilon", "success.bits"]),
        (["run", "thresholds", "--set", "epsilon"], ["'epsilon'", "KEY=VALUE"]),
        (["run", "thresholds", "--set", "epsilon=-1"], ["epsilon", "> 0", "-1"]),
        (["run", "thresholds", "--set", "success.bits=many"], ["success.bits", "'many'"]),
        (["run", "thresholds", "--set", "calibration=bogus"], ["calibration", "'bogus'", "'proved'"]),
        (["run", "rectangles", "--set", "picture.accountant=bogus"], ["picture.accountant", "'bogus'", "'slicing'"]),
        (["run", "nothing.py"], ["'nothing.py'", "exists"]),
        (["run", "nothing:EXPERIMENT"], ["'nothing'", "module"]),
        (["run", "json:EXPERIMENT"], ["json", "EXPERIMENT"]),
        (["run", "thresholds", "--set", "draws.ERM=-3"], ["draws.ERM", ">= 1", "-3"]),
        (["run", "thresholds", "--set", "bits=[]"], ["bits", "at least one"]),
        (["run", "thresholds", "--preset", "smoke", "--processes", "2"], ["--processes", "--distributed"]),
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


# ---------------------------------------------------------------------------------------------- how a run can end


def line(value):
    """A picture's row."""
    return records.exact("line", "one", 1.0, value)


def small(measure=lambda given, context: [line(given["epsilon"])], draw=lambda *_: None):
    """An experiment that takes a moment."""
    return runner.Experiment("small", {"smoke": {"epsilon": 1.0, "sizes": [1, 2]}}, measure, draw)


def run(monkeypatch, out, experiment, *more):
    """The exit status of running the experiment."""
    monkeypatch.setattr(runner, "load", lambda name: experiment)
    return command.main(["run", "small", "--preset", "smoke", "--out", str(out), *more])


def test_a_run_in_float64_does_not_go_on_with_one_in_float32(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path / "out", small()) == 0
    with jax.enable_x64():
        assert run(monkeypatch, tmp_path / "out", small(), "--resume") == 2
    assert "x64 is '(absent)' there, True here" in capsys.readouterr().err


def failing(error):
    def measure(given, context):
        context.store.get_or_compute({"first": 1}, lambda: 1)
        raise error

    return small(measure)


@pytest.mark.parametrize("error", [ValueError("a fault of the program"), TypeError("another")])
def test_errors_of_the_program_keep_their_traceback(error, monkeypatch, tmp_path):
    with pytest.raises(type(error), match=str(error)):
        run(monkeypatch, tmp_path / "out", failing(error))


@pytest.mark.parametrize(
    ("error", "words", "status"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left", 2),
        (KeyboardInterrupt(), "stopped", command.STOPPED),
    ],
)
def test_a_full_disk_and_ctrl_c_end_in_one_line_and_the_run_is_resumed(
    error, words, status, monkeypatch, tmp_path, capsys
):
    assert run(monkeypatch, tmp_path, failing(error)) == status
    (message,) = capsys.readouterr().err.splitlines()
    assert words in message and "--resume" in message and str(tmp_path) in message
    assert run(monkeypatch, tmp_path, small(), "--resume") == 0


def test_settings_are_changed_recorded_and_drawn(monkeypatch, tmp_path):
    drawn = []
    experiment = small(draw=lambda rows, given, out: drawn.append((rows, given)))
    changes = ["--set", "epsilon=0.5", "--set", "sizes=4,8,16"]
    assert run(monkeypatch, tmp_path, experiment, *changes) == 0
    given = {"epsilon": 0.5, "sizes": [4, 8, 16]}
    assert json.loads((tmp_path / "small.json").read_text())["settings"] == given
    assert command.main(["plot", "small", "--out", str(tmp_path)]) == 0
    assert drawn == [([line(0.5)], given)] * 2
    assert run(monkeypatch, tmp_path, experiment, "--resume") == 2  # without the changes it is another run
    assert run(monkeypatch, tmp_path, experiment, "--resume", *changes) == 0


def test_another_seed_is_another_run(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, tmp_path, small()) == 0
    before = snapshot(tmp_path)
    assert run(monkeypatch, tmp_path, small(), "--resume", "--seed", "1") == 2
    assert "seed" in capsys.readouterr().err and snapshot(tmp_path) == before


@pytest.mark.parametrize("name", runner.EXPERIMENTS)
def test_every_setting_can_be_set_to_what_it_is(name):
    for preset in runner.load(name).presets.values():
        same = [f"{key}={value}" for key, value in leaves(preset)]
        assert settings.changed(preset, same) == json.loads(json.dumps(preset))


class _Reached(Exception):
    """A record is requested."""


class _Looking:
    """A store that has no results and takes none: it refuses keys as a store does, and ends the experiment there."""

    def __contains__(self, key):
        return False

    def get_or_compute(self, key, compute):
        raise _Reached(as_json(key))


FAR = {"benchmarks", "papers"}  # one starts processes, the other measures before it keeps anything
NONE = {"tuning"}  # keeps nothing


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*sorted(set(runner.EXPERIMENTS) - FAR - NONE), *map(slow, sorted(FAR))])
def test_every_experiment_gets_as_far_as_its_first_record(name):
    """Otherwise users would be the first to see one that uses what no longer exists, or whose keys a record refuses."""
    experiment = runner.load(name)
    # All numbers of a sweep use one sample, drawn again for each: this is intended.
    with jax.debug_key_reuse(False), pytest.raises(_Reached):
        experiment.measure(experiment.presets["smoke"], runner.Context(store=_Looking(), root=jax.random.key(0)))


def leaves(given, above=""):
    for name, value in given.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


OWN = """
from experiments import records, runner

def measure(settings, context):
    return [records.exact("line", "one", 1.0, settings["epsilon"])]

def twice(settings, context):
    return [records.exact("line", "one", 1.0, 2 * settings["epsilon"])]

MINE = runner.Experiment("mine", {"smoke": {"epsilon": 1.0}}, measure, lambda rows, settings, out: None)
OTHER = runner.Experiment("other", {"smoke": {"epsilon": 1.0}}, twice, lambda rows, settings, out: None)
EXPERIMENT = MINE
"""


@pytest.mark.parametrize("named", ["own_experiment.py", "own_experiment.py:MINE", "own_experiment:MINE"])
def test_an_experiment_of_ones_own(named, tmp_path, monkeypatch):
    (tmp_path / "own_experiment.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "out"
    assert command.main(["run", named, "--preset", "smoke", "--out", str(out), "--set", "epsilon=2"]) == 0
    assert records.read(out / f"{runner.title(named)}.csv") == [line(2.0)]
    assert command.main(["plot", named, "--out", str(out)]) == 0
    sys.modules.pop("own_experiment", None)


def test_experiments_of_one_file_are_told_apart(tmp_path, capsys):
    """With equal settings one is no continuation of the other, nor are its files the other's."""
    (tmp_path / "own.py").write_text(OWN)
    mine, other = (f"{tmp_path / 'own.py'}:{name}" for name in ("MINE", "OTHER"))
    out, given = str(tmp_path / "out"), ["--preset", "smoke"]
    assert command.main(["run", mine, "--out", out, *given]) == 0
    assert command.main(["run", other, "--out", out, *given, "--resume"]) != 0
    assert command.main(["plot", other, "--out", out]) != 0
    assert "another run" in capsys.readouterr().err
    assert command.main(["run", other, "--out", f"{out}2", *given]) == 0
    assert records.read(tmp_path / "out2/own_OTHER.csv") == [line(2.0)]


@pytest.mark.parametrize("over", [{"kind": ["a", "b"]}, {"bits": [4], "epsilon": [1.0, 2.0]}])
def test_a_sweep_along_no_axis_is_refused_before_it_is_measured(over):
    given = {"presets": {}, "algorithms": None, "distribution": None, "title": None}
    with pytest.raises(Refused, match="over must be one setting and its numbers"):
        sweeps.experiment("", **given).measure({"over": over}, None)


@pytest.mark.parametrize(
    ("number", "changes", "series"),
    [
        (0, ["over.bits=8", "draws=4", "alpha=0.3", "delta=0.01"], {"exponential mechanism", "binary search"}),
        slow(1, ["sizes=40", "trials=20"], {"exponential mechanism"}),
    ],
)
def test_the_experiments_of_the_page_run_and_resume(number, changes, series, tmp_path):
    """A sweep, and an experiment that measures and draws by itself."""
    source = re.findall(r"```python\n(.*?)```", (ROOT / "experiments/README.md").read_text(), re.DOTALL)[number]
    (tmp_path / f"page_{number}.py").write_text(source)
    out = tmp_path / "out"
    given = [word for change in changes for word in ("--set", change)]
    named = ["run", str(tmp_path / f"page_{number}.py"), "--out", str(out), *given]
    assert command.main(named) == 0
    table = out / f"page_{number}.csv"
    assert {row.series for row in records.read(table)} == series and len(list(out.glob("*.svg"))) == 1
    first = table.read_bytes(), (out / "records.jsonl").read_bytes()
    assert command.main([*named, "--resume"]) == 0
    assert (table.read_bytes(), (out / "records.jsonl").read_bytes()) == first


@pytest.mark.parametrize("cut", [3, 60, 200, 2000])
def test_a_truncated_table_is_refused_in_words(cut, tmp_path, capsys):
    for suffix in ("csv", "json"):
        source = ROOT / "figures/slicing/slicing"
        (tmp_path / f"slicing.{suffix}").write_bytes(source.with_suffix(f".{suffix}").read_bytes())
    whole = (tmp_path / "slicing.csv").read_bytes()
    for text in (whole[:cut], b"\n".join(whole.splitlines()[: cut // 40]) + b"\n"):
        (tmp_path / "slicing.csv").write_bytes(text)
        assert command.main(["plot", "slicing", "--out", str(tmp_path)]) == 2
        (message,) = capsys.readouterr().err.splitlines()
        assert "slicing.csv" in message and "must have" in message


def test_what_is_too_small_for_the_cache_is_no_miss():
    report = compilation.Report(9.0, 1.5, programs=28, from_cache=13, small=15)
    assert "0 compiled, 13 read from the cache, 15 too small to be kept" in str(report)


# ------------------------------------------------------------------------------------------- pictures and their texts


@pytest.mark.parametrize(("x", "high"), [([8, 16, 32], [110, math.inf, 440]), ([8], [110])])
def test_a_band_is_seen_wherever_there_is_an_interval(x, high):
    """Also where the interval has no end, and for a single point."""
    fig, axes = style.figure()
    value = [100 * 2**i for i in range(len(x))]
    style.interval(axes, x, value, [0.5 * v for v in value], high)
    seen = [path.vertices for each in axes.collections for path in each.get_paths() if len(path.vertices)]
    assert all(any((v[:, 0] == place).any() and np.ptp(v[:, 1]) > 0 for v in seen) for place in x)
    lines = any(type(each).__name__ == "LineCollection" for each in axes.collections)
    assert lines == (len(x) == 1) and (len(axes.lines) == 2) == (math.inf in high)
    style.points(axes, x, value, value, high)
    assert all(np.isfinite(np.asarray(line.get_ydata(), float)).all() for line in axes.lines)
    style.plt.close(fig)


def test_names_of_pictures_may_have_dots(tmp_path):
    for name in ("eps_0.5", "eps_0.25"):
        style.save(style.figure()[0], tmp_path / name)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_table_that_cannot_be_written_leaves_the_last_one(tmp_path, monkeypatch):
    rows = [records.Row("a", "b", 1.0, 2.0, 1.5, 2.5)]
    records.write(rows, tmp_path / "table.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "table.csv")

    def full(path, text, **kwargs):
        with path.open("w") as file:
            file.write(text[:3])
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "write_text", full)
        with pytest.raises(OSError, match="no space"):
            records.write(rows * 2, tmp_path / "table.csv")
    assert records.read(tmp_path / "table.csv") == rows and len(list(tmp_path.iterdir())) == 2
    records.write(rows * 2, tmp_path / "link.csv")
    assert records.read(tmp_path / "table.csv") == rows * 2


ELSEWHERE = ("epsilon", "slice_epsilon", "compute_epsilon", "repeats")


@pytest.fixture
def pictures(monkeypatch):
    """By name, all texts of the pictures that are drawn; none is written."""
    found = {}

    def save(fig, path):
        found[path.name] = [text.get_text() for text in fig.findobj(lambda artist: hasattr(artist, "get_text"))]
        style.plt.close(fig)

    monkeypatch.setattr(style, "save", save)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(runner.EXPERIMENTS) - {"quantile_contest"}))  # its cells draw their own ε
def test_titles_and_labels_follow_the_settings(name, pictures, tmp_path):
    """The pictures of the same numbers at other settings say the other settings, and nowhere those they were measured at."""
    rows, given = committed(name)
    runner.load(name).draw(rows, altered(given, dict.fromkeys(ELSEWHERE, 0.37)), tmp_path)
    assert set(pictures) == {path.stem for path in (ROOT / "figures" / name).glob("*.png")}
    said = [text for texts in pictures.values() for text in texts]
    assert any("ε = 0.37" in text or "medians of 0.37" in text for text in said)
    assert not any(re.search(r"ε = (1|0\.5|0\.25|1/4)\b", text) for text in said)


def committed(name):
    """The rows and the settings of a committed figure."""
    place = ROOT / "figures" / name / name
    return records.read(place.with_suffix(".csv")), json.loads(place.with_suffix(".json").read_text())["settings"]


def altered(given, values):
    """Settings with other values of these names, in groups too."""
    if isinstance(given, dict):
        return {
            key: over(values[key], value) if key in values else altered(value, values) for key, value in given.items()
        }
    return given


def over(new, old):
    """`new`, or a group of it where there was a group."""
    return dict.fromkeys(old, new) if isinstance(old, dict) else new


@pytest.mark.parametrize("name", runner.EXPERIMENTS)
def test_committed_figures_are_small_and_whole(name):
    place = ROOT / "figures" / name
    assert all(path.stat().st_size < 2**20 for path in place.iterdir())
    suffixes = {path.suffix for path in place.iterdir()}
    assert suffixes >= {".png", ".svg", ".csv", ".json"}
    assert {path.stem for path in place.glob("*.png")} == {path.stem for path in place.glob("*.svg")}


def power(sizes, exponent, beside=0.0):
    """Cells n = 100 k^exponent + beside."""
    return [Row("least n", "", k, *[100 * k**exponent + beside] * 3) for k in sizes]


def test_exponents_are_fitted_to_the_upper_half():
    """What does not grow with k bends the curve at small k: there is no power yet."""
    found = exponents.fit(power([1, 4, 16, 256, 4096], 0.5, beside=30.0))
    assert found.first == 16 and 0.45 < found.value <= 0.5
    assert exponents.fit(power([1, 4], 0.5)).first == 1
    assert exponents.fit(power([1], 0.5)) is None


@pytest.mark.parametrize("constant", [693.0, 1200.0, 61.0, 3.0])
def test_a_flat_series_has_exponent_zero_within_its_interval(constant):
    rows = [Row("least n", "", k, constant, constant, constant) for k in (1, 16, 256)]
    found = exponents.fit(rows)
    assert found.low == found.value == found.high == 0.0
    cells = [dataclasses.replace(row, low=0.97 * constant) for row in rows]
    assert exponents.fit(cells).low <= exponents.fit(cells).value <= exponents.fit(cells).high


def test_generic_learner_of_thresholds_keeps_its_lower_bound():
    """The committed table: the exponent measured is not below the theorem's lower bound (from k = 1 it was)."""
    rows, _ = committed("table")
    of = {panel: {row.series: row for row in rows if row.panel == f"{panel} of k"} for panel in ("exponent", "lower")}
    names = [series for series in of["exponent"] if "THRESH" in series and "approximate" in series]
    assert len(names) == 2
    for name in names:
        assert of["exponent"][name].high >= of["lower"][name].value


def test_every_cell_of_the_tables_is_measured_as_its_definition_asks():
    """All cells but the pure general ones, whose term beyond a direct sum needs a sanitizer; agnostic ones on noisy labels."""
    given = runner.load("table").presets["smoke"]
    entries = [cell.entry for cell in cells.CELLS]
    missing = [entry for entry in tables.TABLES if entry not in entries]
    assert len(set(entries)) == len(entries) and {(e.privacy, e.concepts) for e in missing} == {("pure", "general")}
    for cell in cells.CELLS:
        if cell.make is not None:
            law = cell.distribution(4, 8, given)
            assert isinstance(law, agnostic.Noisy) == (cell.entry.setting == tables.AGNOSTIC)


def test_columns_that_agree_take_what_the_law_says():
    """The closed form of n* at k concepts against the learner's own law, at n and just below."""
    each = each_epsilon("pure", 8, {"epsilon": 1.0}, 1.0)
    n = unanimous(each, 8, 0.1)
    one = label_private.label_private(concepts=label_private.thresholds(bits=64), epsilon=each)
    failures = []
    for count in (n, n - 1):
        sample = Sample(x=np.zeros((255, 2), np.uint32), y=np.ones(255, int), n_valid=count)
        wrong = float(one.failure_probability(sample, error=0.5))
        failures.append(1 - (1 - wrong) ** 8)
    assert failures[0] <= 0.1 < failures[1]


# ------------------------------------------------------------------------------------------------------------ imports


def imports(path, known):
    """The files of `known` (module -> path) that a file imports, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # `from package import module` means the module where there is one, and else the package.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in names]
        else:
            continue
        found |= {known[name] for name in names if name in known}
    return found - {path}


def circle(graph):
    """The files that remain after those whose imports are all gone have been removed, one after the other."""
    left = dict(graph)
    while ready := [file for file, others in left.items() if not others & left.keys()]:
        for file in ready:
            del left[file]
    return sorted(str(file.relative_to(ROOT)) for file in left)


def modules(*packages):
    """Module name -> file."""
    files = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def test_no_file_imports_itself_by_way_of_others():
    known = modules("dpjax", "experiments")
    assert len(known) > 100
    assert circle({path: imports(path, known) for path in known.values()}) == []


def test_a_circle_would_be_seen():
    """Negative control."""
    a, b, c = ROOT / "a", ROOT / "b", ROOT / "c"
    assert circle({a: {b}, b: {c}, c: {b}}) == ["a", "b", "c"] and circle({a: {b}, b: {c}, c: set()}) == []


@pytest.mark.parametrize("name", runner.EXPERIMENTS)
def test_experiments_share_by_way_of_common_files_alone(name):
    """An experiment imports no other one."""
    known = modules("experiments")
    mine = {path for module, path in known.items() if f"{module}.".startswith(f"experiments.{name}.")}
    others = {path.parent for path in set().union(*(imports(path, known) for path in mine)) - mine}
    assert {path.name for path in others} <= {"experiments"}


def test_table_round_trip(tmp_path):
    rows = [records.Row("a", "b", 1.0, 0.1, 1e-300, float("inf")), records.exact("a", "c", 2**0.5, -0.0)]
    records.write(rows, tmp_path / "t.csv")
    assert records.read(tmp_path / "t.csv") == rows
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match="columns"):
        records.read(tmp_path / "bad.csv")


def test_a_line_that_is_not_whole_is_refused_with_its_number(tmp_path):
    path = tmp_path / "t.csv"
    records.write([records.exact("a", "b", 1.0, 2.0)] * 2, path)
    for line in ("a,b,1.0,2.0,3.0", "a,b,1.0,2.0,3.0,x", "a,b,1.0,2.0,3.0,4.0,5.0"):
        path.write_text("\n".join([*path.read_text().splitlines()[:2], line, ""]))
        with pytest.raises(ValueError, match=f"line 3 of .* must have panel, series and four numbers, got '{line}'"):
            records.read(path)


def test_the_rows_of_a_series_are_in_order_of_x():
    rows = [records.exact("a", "b", x, 2 * x) for x in (3.0, 1.0, 2.0)] + [records.exact("c", "b", 0.0, 0.0)]
    assert records.series(rows, "a") == {"b": [records.exact("a", "b", x, 2 * x) for x in (1.0, 2.0, 3.0)]}


def test_true_is_no_number():
    for change in ("n=true", "rates=1,true", "epsilon=false"):
        with pytest.raises(ValueError, match="must be of the type of"):
            settings.changed({"n": 1, "epsilon": 1.0, "rates": [1.0, 2.0]}, [change])
    assert settings.changed({"shown": True}, ["shown=false"]) == {"shown": False}
    assert settings.changed({"n": 1}, ["n=" + "9" * 400]) == {"n": 10**400 - 1}
    for listed in ("erm, rec_concave", '["erm", "rec_concave"]'):
        assert settings.changed({"learners": ["x"]}, [f"learners={listed}"]) == {"learners": ["erm", "rec_concave"]}
    for change in ("shown=1", "rate=NaN", "rate=Infinity", "rate=1e400", "rate=" + "9" * 400):
        with pytest.raises(ValueError, match="must be of the type of"):
            settings.changed({"shown": True, "rate": 1.0}, [change])


@pytest.mark.parametrize("name", ["alpha", "beta", "delta", "level", "rtol", "xi", "bits", "draws", "trials", "users"])
def test_what_no_experiment_takes_is_refused_by_its_name_in_every_group(name):
    wrong = 0 if name in ("bits", "draws", "trials", "users") else 1.5
    before = 1 if wrong == 0 else 0.5
    for given, key in (({name: before}, name), ({"success": {name: before}}, f"success.{name}")):
        with pytest.raises(ValueError, match=f"{key} must be"):
            settings.changed(given, [f"{key}={wrong}"])
    if name in ("bits", "draws"):  # one for each series
        with pytest.raises(ValueError, match=rf"{name}\.ERM must be >= 1, got 0"):
            settings.changed({name: {"ERM": 4}}, [f"{name}.ERM=0"])


def test_a_word_that_an_experiment_does_not_know_is_refused_before_it_is_measured():
    given, known = {"success": {"mode": "fast"}}, {"success.mode": ("fast", "exact")}
    assert settings.changed(given, ["success.mode=exact"], words=known) == {"success": {"mode": "exact"}}
    with pytest.raises(ValueError, match=r"success\.mode must be"):
        settings.changed(given, ["success.mode=slow"], words=known)


def test_a_table_of_more_rows_than_its_run_wrote_is_refused(tmp_path):
    for suffix in ("csv", "json"):
        source = (ROOT / f"figures/slicing/slicing.{suffix}").read_bytes()
        (tmp_path / f"slicing.{suffix}").write_bytes(source)
    table = tmp_path / "slicing.csv"
    rows = records.read(table)
    records.write([*rows, rows[-1]], table)
    with pytest.raises(Refused, match=f"must have the {len(rows)} rows of its run, got {len(rows) + 1}"):
        runner.drawn("slicing", tmp_path)


def test_what_times_one_machine_is_not_distributed():
    assert runner.load("benchmarks").timed
    with pytest.raises(Refused, match="benchmarks times this machine"):
        runner.check("benchmarks", "quick", distributed=True)
    assert runner.check("slicing", "quick", distributed=True)[0] is runner.load("slicing")


def test_a_sweep_draws_from_1_to_infinity_where_nothing_is_known(monkeypatch):
    """No n below was seen to fail, and none above to succeed; a series of which nothing is known has no row."""
    ends = [(8, None, 10), (20, 15, None), (None, 5, None)]
    found = [{"series": "a", "bits": i, "n": n, "low": low, "high": high} for i, (n, low, high) in enumerate(ends)]
    monkeypatch.setattr(sweeps, "least_n", lambda *_, **__: types.SimpleNamespace(to_rows=lambda: found))
    own = sweeps.experiment("", presets={}, algorithms=lambda s: {}, distribution=lambda s: None, title=lambda s: "")
    rows = own.measure({"over": {"bits": [0, 1, 2]}}, types.SimpleNamespace(seed=0, store=None))
    assert rows == [Row("least n", "a", 0, 8, 1, 10), Row("least n", "a", 1, 20, 15, np.inf)]
