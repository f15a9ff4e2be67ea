"""RecConcave on general functions: its law against the naive exact reference, its sampler against the law."""

import dataclasses
import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import bounds
from dpjax.domains import events, ordered, wide
from dpjax.optimizers.quasi_concave import recursion as optimizer
from dpjax.verify.plain import rec_concave as reference

FALSE_ALARM = 2e-5
PIECES = 10


@dataclasses.dataclass(frozen=True)
class Case:
    """A function on {0, ..., last} (quasi-concave or not, of any sign), a budget, and what counts as success."""

    starts: list[int]
    values: list[float]
    last: int
    promise: float
    alpha: float
    epsilon: float
    delta: float
    calibration: str
    marked: list[bool]
    low: int
    high: int

    def pieces(self) -> ordered.Pieces:
        return ordered.from_breakpoints(self.starts, self.values, self.last, beyond=min(0.0, self.values[-1]))

    def problem(self) -> optimizer.Problem:
        return optimizer.Problem(
            pieces=self.pieces(),
            promise=np.asarray(self.promise, jnp.result_type(float)),
            alpha=np.asarray(self.alpha, jnp.result_type(float)),
        )

    def budget(self) -> optimizer.Budget:
        return optimizer.Budget(
            epsilon=np.asarray(self.epsilon, jnp.result_type(float)),
            delta=np.asarray(self.delta, jnp.result_type(float)),
            calibration=self.calibration,
        )

    def goal(self) -> events.Goal:
        pieces = self.pieces()
        marked = np.zeros(pieces.count, bool)
        marked[: len(self.marked)] = self.marked
        low, high = np.asarray(wide.from_ints([self.low, self.high], 32 * pieces.limbs))
        return events.Goal(marked=marked, within=events.Interval(low=low, high=high))

    def reference(self, levels: int) -> reference.Law:
        return reference.rec_concave_law(
            self.starts,
            self.values,
            self.last,
            self.promise,
            self.alpha,
            self.epsilon,
            self.delta,
            levels,
            self.calibration,
        )

    def success(self, levels: int) -> float:
        """P[success] by the reference."""
        law = self.reference(levels)
        ends = [start - 1 for start in self.starts[1:]] + [self.last]
        return sum(
            reference.mass(law, max(start, self.low), min(end, self.high - 1))
            for start, end, marked in zip(self.starts, ends, self.marked, strict=True)
            if marked and max(start, self.low) <= min(end, self.high - 1)
        )


def random_case(rng: np.random.Generator, last: int, calibration: str) -> Case:
    """Pieces of all scales; a broad hill in half of the cases, and noise."""
    scales = last ** rng.uniform(0, 1, 4 * PIECES)
    chosen = dict.fromkeys(min(last, int(scale)) for scale in scales)
    starts = [0, *sorted(start for start in list(chosen)[: PIECES - 1] if start > 0)]
    hill = 10 - 3 * np.abs(np.arange(len(starts)) - rng.integers(0, len(starts))) if rng.random() < 0.5 else 4
    values = (hill + rng.integers(-16, 17, len(starts)) / 4).tolist()
    everywhere = rng.random() < 0.3
    marked = [everywhere or value >= max(values) - 3 or bool(rng.random() < 0.2) for value in values]
    low, high = sorted(int(end) for end in (last ** rng.uniform(0, 1, 2)))
    if not everywhere:
        low, high = rng.choice([0, low // 2]), last + 1
    return Case(
        starts=starts,
        values=values,
        last=last,
        promise=float(rng.integers(2, 15)),
        alpha=float(rng.choice([0.2, 0.5, 0.9])),
        epsilon=float(rng.choice([0.25, 1.0, 4.0])),
        delta=float(rng.choice([0.01, 0.1, 0.4])),
        calibration=calibration,
        marked=marked,
        low=int(low),
        high=int(high),
    )


@functools.partial(jax.jit, static_argnums=2)
def laws(problems: optimizer.Problem, budgets: optimizer.Budget, levels: int, goals: events.Goal) -> Any:
    return jax.vmap(lambda problem, budget, goal: optimizer.law(problem, budget, levels, goal))(
        problems, budgets, goals
    )


def stacked(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def compute(cases: list[Case], levels: int) -> np.ndarray:
    problems, budgets, goals = ([getattr(c, name)() for c in cases] for name in ("problem", "budget", "goal"))
    return np.asarray(laws(stacked(problems), stacked(budgets), levels, stacked(goals)), np.float64)


# Most ranges are no power of two, so that there is a continuation on (T, T'].
RANGES = {
    "one-limb": ([50, 64, 1000, 2**31 - 5], 2, "proved"),
    "printed": ([50, 64, 1000, 2**31 - 5], 2, "printed"),
    "three-levels": ([2**33 + 1, 2**40 + 12345, 2**62 - 1, 2**60], 3, "proved"),
    "three-levels-printed": ([2**33 + 1, 2**40 + 12345, 2**62 - 1, 2**60], 3, "printed"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["one-limb", *(pytest.param(name, marks=pytest.mark.slow) for name in RANGES if name != "one-limb")]
)
def test_law_agrees_with_the_reference_to_1e_9(name: str, x64: None) -> None:
    lasts, levels, calibration = RANGES[name]
    rng = np.random.default_rng(1)
    cases = [random_case(rng, last, calibration) for last in lasts for _ in range(16)]
    cases = [case for case in cases if len(case.starts) >= 8]  # all in one shape
    assert len(cases) >= 16
    found, expected = compute(cases, levels), np.array([case.success(levels) for case in cases])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert np.mean((expected > 0.05) & (expected < 0.95)) > 0.5  # a test that only sees 0 and 1 proves nothing


@pytest.mark.slow
def test_law_agrees_with_the_reference_to_1e_4_in_float32() -> None:
    lasts, levels, calibration = RANGES["printed"]
    rng = np.random.default_rng(2)
    cases = [random_case(rng, last, calibration) for last in lasts for _ in range(8)]
    cases = [case for case in cases if len(case.starts) >= 8]
    found, expected = compute(cases, levels), np.array([case.success(levels) for case in cases])
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-5)


# ----------------------------------------------------------------------------------------------------------- sampler

HILLS = Case(
    starts=[0, 5, 9, 20, 22, 37, 41],
    values=[-2.0, 3.0, 9.0, 5.5, 10.0, 1.0, -1.0],
    last=50,
    promise=10.0,
    alpha=0.5,
    epsilon=1.5,
    delta=0.2,
    calibration="proved",
    marked=[True] * 7,
    low=0,
    high=51,
)


def outcome_law(case: Case) -> np.ndarray:
    """P[0], ..., P[64], P[bottom] by the reference: points beyond T = 50 are candidates too."""
    law = case.reference(2)
    return np.array([reference.mass(law, j, j) for j in range(65)] + [law[1]])


def p_value(counts: np.ndarray, expected: np.ndarray) -> float:
    """The chi-square p-value; outcomes expected fewer than 10 times are lumped together."""
    rare = expected < 10
    lump = lambda v: np.append(v[~rare], v[rare].sum())  # noqa: E731
    counts, expected = lump(counts), lump(expected)
    seen = expected > 0
    assert counts[~seen].sum() == 0
    return float(stats.chisquare(counts[seen], expected[seen]).pvalue)


@pytest.mark.slow
def test_sampler_follows_the_law_and_not_another() -> None:
    trials = 40_000
    run = jax.jit(jax.vmap(lambda key, budget: optimizer.sample(key, HILLS.problem(), budget, 2), in_axes=(0, None)))
    runs = run(jax.random.split(jax.random.key(0), trials), jax.device_put(HILLS.budget()))
    outcomes = np.where(runs.ok, np.asarray(runs.point.position)[:, 0], 65)
    counts = np.bincount(outcomes, minlength=66)
    law = outcome_law(HILLS)
    assert 0.02 < law[65] < 0.98 and law[51:65].sum() > 0  # bottom, and points beyond T, are seen
    assert p_value(counts, trials * law) > FALSE_ALARM
    other = dataclasses.replace(HILLS, epsilon=1.3 * HILLS.epsilon)
    assert p_value(counts, trials * outcome_law(other)) < FALSE_ALARM


def test_one_level_is_the_exponential_mechanism() -> None:
    case = dataclasses.replace(HILLS, low=9, high=22)
    weights = np.exp(HILLS.epsilon * np.repeat(HILLS.values, np.diff([*HILLS.starts, 51])) / 2)
    expected = weights[9:22].sum() / weights.sum()
    np.testing.assert_allclose(compute([case], 1)[0], [expected, 1 - expected], rtol=1e-5)


# ------------------------------------------------------------------------------------------------------------ stages


def test_windows_are_the_best_worst_case_by_brute_force() -> None:
    rng, best_windows = np.random.default_rng(3), jax.jit(optimizer.best_windows)
    for last in (33, 50, 64, 100):
        case = random_case(rng, last, "proved")
        pieces = case.pieces()
        dense = np.repeat(case.values, np.diff([*case.starts, last + 1]))
        dense = np.append(dense, np.full((1 << int(pieces.exponent)) - last, min(0.0, case.values[-1])))
        expected = [
            max(dense[i : i + 2**j].min() for i in range(len(dense) - 2**j + 1))
            for j in range(int(pieces.exponent) + 1)
        ]
        found = np.asarray(best_windows(pieces))
        np.testing.assert_array_equal(found[: len(expected)], expected)
        assert np.all(np.isneginf(found[len(expected) :]))


def test_inner_quality_is_quasi_concave_and_of_sensitivity_1_whatever_the_data() -> None:
    """Claim 3.13 and Lemma 3.12's first step, on which the recursion's privacy rests: all neighbours of 20 random functions."""
    starts, last, promise, alpha = [0, 3, 4, 9, 30], 40, 3.0, 0.5
    steps = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=5)))
    base = np.random.default_rng(4).integers(-3, 4, (20, 1, 5)).astype(float)
    values = np.concatenate([base, base + steps], axis=1).reshape(-1, 5)
    template = ordered.from_breakpoints(starts, [0.0] * 5, last, beyond=0.0)

    @jax.jit
    @jax.vmap
    def quality(row: Any) -> Any:
        beyond = jnp.full((template.count - 5,), jnp.minimum(0.0, row[-1]))
        pieces = dataclasses.replace(template, values=jnp.concatenate([row, beyond]))
        windows = optimizer.best_windows(pieces)
        return optimizer.window_quality(
            windows, pieces.exponent, jnp.asarray(promise), jnp.asarray(alpha), 2 * jnp.asarray(promise)
        )

    found = np.asarray(quality(jnp.asarray(values, float)))[:, : int(template.exponent) + 1]
    fallen = np.maximum.accumulate(np.diff(found) < 0, axis=1)
    assert fallen.any() and not np.any(fallen & (np.diff(found) > 0))
    by_base = found.reshape(20, -1, found.shape[1])
    change = np.abs(by_base[:, 1:] - by_base[:, :1])
    assert change.max() == 1  # reached, never passed


@pytest.mark.parametrize(
    ("last", "depth", "levels"),
    [(1, 9, 1), (32, 9, 1), (33, 9, 2), (64, 1, 1), (2**32, 9, 2), (2**33, 9, 3), (2**33, 2, 2), (2**4096, 9, 3)],
)
def test_levels_run_agrees_with_the_reference(last: int, depth: int, levels: int) -> None:
    assert bounds.levels_run(last, depth) == levels == reference.levels_run(last, depth)
