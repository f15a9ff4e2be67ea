"""Accelerators: code that runs only there gives the same results, and the published table is that of the committed run."""

import json
import pathlib
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from dpjax.core import random, staging
from dpjax.domains import gf2
from dpjax.sanitizers.dense import queries
from experiments import __main__ as command
from experiments import records
from experiments.benchmarks import CONTESTS, accelerator, ceilings, operations

ROOT = pathlib.Path(__file__).parents[1]
COMMITTED = ROOT / "figures/accelerator"
NAME = "experiments.benchmarks.accelerator:EXPERIMENT"


@pytest.fixture
def elsewhere(monkeypatch):
    """Makes dpjax believe that it runs on a GPU; programs traced for a CPU are dropped before, and those traced here afterwards."""
    jax.clear_caches()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    yield
    jax.clear_caches()


def conditionals(function, *arguments):
    return str(jax.make_jaxpr(function)(*arguments)).count("cond[")


def stored(n):
    return staging.once(lambda n: 3 * n, n)


def test_an_array_is_stored_by_a_conditional_here():
    assert conditionals(stored, jnp.int32(2)) == 1


@pytest.mark.thorough
def test_and_by_none_elsewhere(elsewhere):
    assert conditionals(stored, jnp.int32(2)) == 0 and int(stored(jnp.int32(2))) == 6


@pytest.mark.thorough
@pytest.mark.parametrize("rank", [9, 20])
def test_systems_have_the_same_solution_elsewhere(rank, elsewhere):
    bits = np.random.default_rng(rank)
    a, y = bits.integers(0, 2**20, (40, 1), np.uint32), bits.integers(0, 2**32, (40, 2), np.uint32)
    a &= np.uint32(2**rank - 1)
    there = gf2.solve(jnp.asarray(a), jnp.asarray(y), columns=20)
    jax.clear_caches()
    with mock.patch.object(jax, "default_backend", return_value="cpu"):
        here = gf2.solve(jnp.asarray(a), jnp.asarray(y), columns=20)
    assert int(here.rank) == rank
    jax.tree.map(np.testing.assert_array_equal, here, there)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [(8,), (8, 30)])
def test_answers_are_the_same_elsewhere(shape, elsewhere):
    counts = np.random.default_rng(0).integers(0, 9, shape, np.int32)
    expected = np.concatenate([np.zeros_like(counts[:1]), np.cumsum(counts, axis=0)])
    np.testing.assert_array_equal(queries.thresholds(bits=3).answers(jnp.asarray(counts)), expected)


# ---------------------------------------------------------------------------------------------------- what is counted


def drawing(key, n):
    """A draw of 100 words, a loop of three draws, and a conditional between a draw of 5 words and one of 7."""
    first, second, third = jax.random.split(key, 3)
    words = random.bits(first, 100)
    total = lax.scan(lambda total, key: (total + jax.random.uniform(key), None), 0.0, jax.random.split(second, 3))[0]
    few, many = (lambda key, size=size: jnp.sum(jax.random.bits(key, (size,))) for size in (5, 7))
    return total + jnp.sum(words).astype(float) + lax.cond(n > 0, few, many, third).astype(float)


def test_draws_are_counted():
    assert ceilings.drawn((drawing, jnp.int32(1))) == 100 + 3 + 7


@pytest.mark.thorough
def test_conditionals_on_data_are_counted_and_those_on_the_platform_are_not():
    def chosen(key, n):
        return lax.platform_dependent(n, cpu=lambda n: n, default=lambda n: lax.sort(n + 1))

    def asked(key, n):
        return lax.cond(n[0] > 1, lambda n: n, lambda n: lax.sort(n + 1), n)

    n = jnp.arange(4, dtype=jnp.uint32)
    outside, _ = operations.sites((chosen, n))
    assert outside["case"] == 0 and outside["sort ui32, 4"] == 1  # only the GPU's branch is counted
    outside, _ = operations.sites((lambda key, n: asked(key, n) + jax.random.bits(key, ()), n))
    assert outside["case"] == 1 and outside["sort ui32, 4"] == 1


# ------------------------------------------------------------------------------------------------- the committed run


@pytest.mark.thorough
def test_the_committed_table_and_pictures_are_those_of_the_rows(tmp_path):
    rows = records.read(COMMITTED / "accelerator.csv")
    settings = json.loads((COMMITTED / "accelerator.json").read_text())["settings"]
    accelerator.EXPERIMENT.draw(rows, settings, tmp_path)
    assert (tmp_path / "accelerator.md").read_text() == (COMMITTED / "accelerator.md").read_text()
    assert {path.name for path in tmp_path.iterdir()} | {"accelerator.csv", "accelerator.json"} == {
        path.name for path in COMMITTED.iterdir()
    }
    assert all(path.stat().st_size < 2**20 for path in COMMITTED.iterdir())


def test_the_page_says_what_was_measured():
    page = (ROOT / "experiments/benchmarks/README.md").read_text()
    contests, _, batches, _ = (COMMITTED / "accelerator.md").read_text().split("\n\n")
    lines = [line.strip("| ").split(" | ") for line in contests.splitlines()[2:]]
    later = [name for name, _ in CONTESTS if name not in {line[0] for line in lines}]  # not yet run on a GPU
    words = " ".join(page.split())  # a name may be broken over two lines
    assert len(lines) + len(later) == len(CONTESTS) and all(f"`{name}`" in words for name in later)
    for *first, ours, theirs in lines:
        assert f"| {' | '.join(first)} | {ours.split(' of ')[0]}, {theirs} of" in page
    assert batches in page


def test_a_table_of_two_cores_that_is_not_there_is_refused(tmp_path, capsys):
    asked = ["run", NAME, "--preset", "smoke", "--out", str(tmp_path / "out"), "--set", "two cores=nowhere.csv"]
    assert command.main(asked) == 2
    assert "two cores must be a table" in capsys.readouterr().err


@pytest.mark.slow
def test_the_smallest_run_counts_the_same_trials_twice(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert command.main(["run", NAME, "--preset", "smoke", "--out", str(tmp_path)]) == 0
    rows = records.read(tmp_path / "accelerator.csv")
    (cell,) = {row.panel for row in rows if row.panel.startswith(accelerator.AGREEMENT)}
    here, there = (row for row in rows if row.panel == cell)
    assert here.series != there.series and here.value == there.value
    (difference,) = [row.value for row in rows if row.series == accelerator.DIFFERENCE]
    assert difference == 0
