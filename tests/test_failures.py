"""`dpjax.failures`: each cell of a grid is the same as alone, laws are those of the algorithm, and trials agree with them."""

import math
import types
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from dpjax import failures
from dpjax.concepts import thresholds as concept
from dpjax.learners import pac, thresholds
from dpjax.plotting import curves
from dpjax.trials import cells
from dpjax.trials.shared import Memory
from dpjax.trials.store import open_store

EPSILONS, N, ALPHAS = [0.5, 1.0, 2.0], [20, 40], [0.1, 0.2]
GIVEN: dict[str, Any] = {"over": {"epsilon": EPSILONS}, "n": N, "alpha": ALPHAS, "draws": 16}


def exponential(epsilon: float) -> Any:
    return thresholds.exponential(bits=8, epsilon=epsilon)


def log_uniform() -> Any:
    return concept.log_uniform(bits=8)


GIVEN["distribution"] = log_uniform


@pytest.fixture(scope="module")
def table() -> Any:
    return failures({"exponential": exponential}, **GIVEN)


@pytest.mark.thorough
def test_a_law_is_the_mean_over_the_draws_of_the_cell(table: Any) -> None:
    """By `pac.failure`, one experiment at a time, on the same keys."""
    cell = cells.Cell("", {}, {}, None, None, effort=None).number  # type: ignore[arg-type]

    @jax.jit
    def mean(epsilon: Any, n: Any, alpha: Any) -> Any:
        root = jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), cell)
        keys = jax.vmap(lambda t: jax.random.fold_in(root, t))(jnp.arange(16, dtype=jnp.uint32))
        experiment = pac.Experiment(
            learner=exponential(epsilon), distribution=log_uniform(), n=n, alpha=alpha, capacity=63
        )
        return jnp.mean(jax.vmap(lambda key: pac.failure(key, experiment))(keys))

    rows = table.to_rows()
    assert [(row["epsilon"], row["n"], row["alpha"]) for row in rows] == [
        (epsilon, n, alpha) for epsilon in EPSILONS for n in N for alpha in ALPHAS
    ]
    for row in rows:
        assert list(row) == ["series", "epsilon", "n", "alpha", "failure", "low", "high", "by"] and row["by"] == "law"
        assert row["low"] <= row["failure"] <= row["high"]
        assert row["failure"] == pytest.approx(float(mean(row["epsilon"], row["n"], row["alpha"])), rel=1e-5)


@pytest.mark.thorough
def test_a_cell_is_the_same_alone(table: Any) -> None:
    """The same to the last digit: the program is the same, whatever else is computed."""
    some = failures({"exponential": exponential}, **{**GIVEN, "over": {"epsilon": [1.0]}, "n": [20, 40], "alpha": 0.2})
    assert some.to_rows() == [row for row in table.to_rows() if row["epsilon"] == 1.0 and row["alpha"] == 0.2]


@pytest.mark.thorough
def test_more_cells_than_look_at_one_sample(table: Any) -> None:
    epsilons = [*EPSILONS, *(3.0 + i for i in range(cells.TOGETHER))]
    many = failures({"exponential": exponential}, **{**GIVEN, "over": {"epsilon": epsilons}}).to_rows()
    assert many[: len(table.rows)] == table.to_rows()
    last = [row["failure"] for row in many if row["n"] == 40 and row["alpha"] == 0.1]
    assert last == sorted(last, reverse=True) and last[0] > 2 * last[-1]


@pytest.mark.slow  # `test_trials` checks trials; laws are checked against `pac.failure` above
def test_trials_agree_with_laws_and_not_with_others() -> None:
    """False alarms: 12 pairs of intervals of level 1 - 1e-6."""
    given = {**GIVEN, "trials": 2**12, "level": 1 - 1e-6}
    trials = failures({"exponential": exponential}, **given, by="trials").to_rows()
    laws = failures({"exponential": exponential}, **{**GIVEN, "draws": 256, "level": 1 - 1e-6}).to_rows()
    for one, other in zip(trials, laws, strict=True):
        assert one["by"] == "trials"
        assert max(one["low"], other["low"]) <= min(one["high"], other["high"])
    epsilon, half = (
        next(row for row in rows if row["epsilon"] == e and row["n"] == 40) for rows, e in ((trials, 2.0), (laws, 1.0))
    )
    assert epsilon["high"] < half["low"]  # negative control: half the epsilon


def test_what_is_stored_is_not_computed_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
    given = {**GIVEN, "store": tmp_path / "store"}
    assert (
        failures({"exponential": exponential}, **{**given, "n": [40]}).rows
        == table.rows[2:4] + table.rows[6:8] + table.rows[10:12]
    )
    lines = (tmp_path / "store/records.jsonl").read_text().splitlines()
    assert failures({"exponential": exponential}, **given).rows == table.rows
    again = (tmp_path / "store/records.jsonl").read_text().splitlines()
    assert again[: len(lines)] == lines and len(lines) == 1 + 6 and len(again) == 1 + 12
    monkeypatch.setattr(cells.engine, "evaluate", None)  # any use would raise
    assert failures({"exponential": exponential}, **given).rows == table.rows


def test_a_table_is_printed_and_drawn(table: Any, capsys: Any) -> None:
    lines = repr(table).splitlines()
    assert lines[1].split() == ["series", "epsilon", "n", "alpha", "failure", "low", "high", "by"]
    assert len(lines) == 2 + len(table.rows)
    axes = table.plot()
    assert axes.get_xlabel() == "n" and len(axes.get_legend().get_texts()) == len(EPSILONS) * len(ALPHAS)
    curves.pyplot.close(axes.figure)
    failures({"exponential": exponential}, **{**GIVEN, "progress": True})
    assert "12/12 cells" in capsys.readouterr().err
    given = {**GIVEN, "over": {"epsilon": [1.0]}, "by": "trials", "trials": 8, "progress": True}
    failures({"exponential": exponential}, **given)
    assert "4/4 cells" in capsys.readouterr().err


@pytest.mark.thorough
def test_what_is_stored_is_of_its_seed() -> None:
    given = {**GIVEN, "over": {"epsilon": [1.0]}, "n": 40, "alpha": 0.2, "store": Memory()}  # the program of the table
    first, other = (failures({"exponential": exponential}, **given, seed=seed).rows[0]["failure"] for seed in (0, 1))
    assert first != other


def test_numbers_of_examples_come_in_any_order() -> None:
    given = {**GIVEN, "over": {"epsilon": [1.0]}, "alpha": 0.2, "draws": 8}
    rising, falling = (failures({"exponential": exponential}, **{**given, "n": n}) for n in ([20, 40], [40, 20]))
    assert falling.to_rows() == rising.to_rows()[::-1]


def test_small_failures_are_drawn_on_a_logarithmic_axis_beside_none_at_all() -> None:
    cell = {"series": "mine", "alpha": 0.1, "low": 0.0, "high": 1.0}
    rows = [{**cell, "n": n, "failure": failure} for n, failure in ((10, 0.9), (20, 1e-6), (40, 0.0))]
    axes = curves.failures(types.SimpleNamespace(rows=rows, over={}, to_rows=lambda: rows))
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "P[error > 0.1, or nothing released]"
    curves.pyplot.close(axes.figure)


def test_results_are_kept_in_a_store_that_is_open_and_empty(tmp_path: Any, table: Any) -> None:
    """An empty store has length 0, but is still a store."""
    with open_store(tmp_path / "kept", {"what": "test"}) as store:
        kept = failures({"exponential": exponential}, **GIVEN, store=store)
        assert len(store) == len(kept.rows) and kept.to_rows() == table.to_rows()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": []}, ValueError, "n must hold at least one"),
        ({"n": 0}, ValueError, "n must be"),
        ({"n": 10**12}, ValueError, "n must be"),
        ({"store": 5}, TypeError, "store must be a directory"),
        ({"n": [20, 2.5]}, TypeError, "n must be"),
        ({"n": "20"}, TypeError, "n must be"),
        ({"alpha": [0.1, math.nan]}, ValueError, "alpha must be"),
        ({"alpha": 2}, ValueError, "alpha must be"),
        ({"over": {"alpha": [0.1]}}, ValueError, "over must not vary 'alpha'"),
        ({"by": "luck"}, ValueError, "by must be"),
        ({"level": 1.0}, ValueError, "level must be"),
        ({"trials": 0}, ValueError, "trials must be"),
        ({"progress": "no"}, TypeError, "progress must be True or False"),
        ({"algorithms": 3}, TypeError, "algorithms must be"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        failures(**{"algorithms": {"exponential": exponential}, **GIVEN, **change})
