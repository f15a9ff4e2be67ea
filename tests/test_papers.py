"""The pictures of the papers' figures: what they show, computed again from the definitions, on the committed tables."""

import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import records
from experiments.papers import concave, domino, tree

ROWS = records.read(pathlib.Path(__file__).parents[1] / "figures/papers/papers.csv")


def named(panel):
    return {name: part[0].value for name, part in records.series(ROWS, panel).items()}


def test_the_interval_found_is_good():
    """Remark 3.5 holds, and one of the five hypotheses has few errors."""
    chosen, balance = named("interval: chosen"), [row.value for row in records.series(ROWS, "interval: balance")["W"]]
    at = 0.4 * 6000
    assert balance == sorted(balance) and chosen["status"] == 0
    j = int(chosen["exponent"])
    assert balance[j] >= at / 8 and balance[j - 1] <= 3 * at / 8
    errors = {part[0].x: part[0].value for part in records.series(ROWS, "interval: hypotheses").values()}
    assert len(errors) == 5 and np.all(np.diff(sorted(errors)) == 2 ** (j - 1))
    assert min(errors.values()) <= 3 * at / 8 and chosen["released"] in errors


def test_windows_are_the_best_of_all_windows():
    quality = np.array([row.value for row in records.series(ROWS, "concave: Q")["Q"]])
    lines, chosen = records.series(ROWS, "concave: L"), named("concave: chosen")
    windows = np.array([row.value for row in lines["L"]])
    assert windows.tolist() == [concave.best_window(quality, 2**j)[1] for j in range(len(windows))]
    promise, alpha = chosen["promise"], chosen["alpha"]
    after = np.append(windows[1:], min(0.0, windows[-1]))
    expected = np.minimum(windows - (1 - alpha) * promise, promise - after)
    np.testing.assert_allclose([row.value for row in lines["q"]], expected, rtol=1e-6)


def test_no_threshold_outside_p_is_better_than_the_figure_says():
    quality, chosen = records.series(ROWS, "concave: Q")["Q"], named("concave: chosen")
    bound = (1 - 3 * chosen["alpha"] / 8) * chosen["promise"]
    reach = 2 * 2 ** chosen["k"] - 1
    assert max(row.value for row in quality if abs(row.x - chosen["best"]) > reach) <= bound
    assert max(row.value for row in quality if abs(row.x - chosen["best"]) > reach / 8) > bound  # negative control


def test_the_trie_loses_at_each_node_what_leaves_there():
    path, levels, chosen = (named_rows("tree: path"), named_rows("tree: levels"), named("tree: chosen"))
    weight, leaving = path["weight"], path["leaving"]
    assert np.array_equal(weight[1:], (weight - leaving)[:-1]) and weight[-1] == leaving[-1]
    assert np.array_equal(sum(levels.values()), leaving) and levels["in the deep slice"].sum() == chosen["m2"]
    stops = {row.x: row.value for row in records.series(ROWS, "tree: stop")["p"]}
    assert all((stops.get(depth, 0.0) > 0) == (n >= chosen["t1"]) for depth, n in enumerate(leaving[:-1]))
    assert chosen["least"] <= chosen["answer"] < chosen["greatest"] or chosen["status"] != 0


def named_rows(panel):
    return {name: np.array([row.value for row in part]) for name, part in records.series(ROWS, panel).items()}


def test_levels_are_common_prefixes():
    leaf, bits = 0b1011, 4
    for x in range(2**bits):
        common = next((i for i in range(bits) if (x ^ leaf) >> (bits - 1 - i) & 1), bits)
        assert tree.level_of([x], leaf, bits).tolist() == [common]
        assert tree.level_of([tree._leaving(leaf, common, x, bits)], leaf, bits).tolist() == [common]


@pytest.mark.parametrize("noise, differ", [([0, 2, 0, 1], 2), ([3, 0, 0, 0], 1), ([0, 0, 0, 0], 4)])
def test_runs_fall_into_step_after_the_first_noise(noise, differ):
    example = domino.Dominoes(epsilon=1.0, size=jnp.int32(2), n=40, slices=4)
    noise = jnp.array(noise, jnp.int32)
    ends = [domino.ends(noise, example, first=1), domino.ends(domino.in_step(noise), example, first=2)]
    slices = [
        set(zip([first, *(np.asarray(e)[:-1] + 1)], e.tolist(), strict=True))
        for first, e in zip((1, 2), ends, strict=True)
    ]
    assert len(slices[0] - slices[1]) == differ


def test_so_many_slices_differ():
    """Drawn and exact probabilities of the committed table: 7 comparisons at 1e-6 each, by the normal approximation."""
    lines = records.series(ROWS, "domino: differing")
    assert all(row.value == 1.0 for row in lines["without noise"])
    exact = np.array([row.value for row in lines["with noise, exact"]])
    drawn = np.array([row.value for row in lines["with noise, drawn"]])
    assert np.all(np.abs(drawn - exact) <= 4.9 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-12)
    assert not np.all(np.abs(drawn - exact**1.3) <= 4.9 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-12)
    np.testing.assert_allclose(exact[1], 1 - np.exp(-1.0), rtol=1e-6)
