"""Experiment `tuning`: plans and splits of a case keep the total that the settings name."""

import importlib
import math

import pytest

from experiments.tuning import EXPERIMENT, listed

measure = importlib.import_module("experiments.tuning.measure")
SETTINGS = EXPERIMENT.presets["quick"]


@pytest.mark.parametrize("name", listed.LISTED)
def test_every_listed_plan_keeps_the_total(name: str) -> None:
    derived, *others = listed.LISTED[name].plans(SETTINGS)
    promised = derived.guarantee()
    assert promised.epsilon > 0.99 * SETTINGS["epsilon"]
    assert len(others) >= 3
    assert all(plan.guarantee().covers(SETTINGS["epsilon"], SETTINGS["delta"]) for plan in (derived, *others[::6]))


def test_rectangles_with_slices_cut_down_promise_no_sample_size() -> None:
    derived, *others = listed.LISTED["rectangles, D=2"].plans(SETTINGS)
    assert derived.sample_size(alpha=0.1, beta=0.1) > 0
    for plan in others:
        assert 1 <= plan.size <= derived.size and 1 <= plan.threshold <= derived.threshold
        with pytest.raises(ValueError, match=r"beta must be"):
            plan.sample_size(alpha=0.1, beta=0.1)


@pytest.mark.parametrize(("name", "runs"), [("median (slice)", 1), ("cdf, 3 quantiles (slice)", 3)])
def test_a_solver_on_slices_spends_the_total_in_all_runs(name: str, runs: int) -> None:
    case = measure.CASES[name]
    solver = case.make(SETTINGS)
    assert sum(case.parts(solver).values()) == pytest.approx(SETTINGS["epsilon"])
    promised = case.guarantee(solver)
    assert promised.covers(SETTINGS["epsilon"], SETTINGS["delta"]) and promised.delta > 0.99 * SETTINGS["delta"]
    assert solver.guarantee().epsilon == pytest.approx(SETTINGS["epsilon"] / (2 * runs))


@pytest.mark.slow
def test_a_listed_plan_is_found_that_takes_fewer_examples() -> None:
    rows = listed.measured(0, "set cover, k=3", {**SETTINGS, "runs": 100, "sizes": 2}, seed=0)
    least = {row.series: row.value for row in rows if row.panel == "least n"}
    assert 16 < least["tuned"] < 0.9 * least["derived"] < math.inf
