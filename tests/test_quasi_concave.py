"""The quasi-concave optimisers: laws against a naive reference, samplers against laws, exact privacy step by step and whole, errors."""

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough
from scipy import stats

from dpjax import Status
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, basic
from dpjax.data import algorithm
from dpjax.domains import ordered, wide
from dpjax.mechanisms import exponential
from dpjax.optimizers import quasi_concave
from dpjax.optimizers.quasi_concave import amplification, recursion, split, units
from dpjax.verify import exact
from dpjax.verify.plain.amplified import amplified_law
from dpjax.verify.plain.tree_log import Law

FALSE_ALARM = 2e-5


@dataclasses.dataclass(frozen=True)
class Case:
    """A function on {0, ..., last} and a promise."""

    starts: list[int]
    values: list[float]
    last: int
    promise: float
    alpha: float

    def problem(self) -> recursion.Problem:
        pieces = ordered.from_breakpoints(self.starts, self.values, self.last, beyond=min(0.0, self.values[-1]))
        return quasi_concave.problem(pieces, promise=self.promise, alpha=self.alpha)

    def value(self, x: int) -> float:
        return self.values[bisect.bisect_right(self.starts, x) - 1]

    def reference(self, optimizer: quasi_concave.Amplified) -> Law:
        return amplified_law(
            self.starts,
            self.values,
            self.last,
            promise=self.promise,
            alpha=self.alpha,
            budget=optimizer.budget,
        )

    def success(self, law: Law) -> float:
        return sum(p for x, p in law.items() if x is not None and self.value(x) >= (1 - self.alpha) * self.promise)


def random_case(rng: np.random.Generator, optimizer: quasi_concave.Amplified, last: int) -> Case:
    """Seven pieces of all scales, a hill or no structure at all, and a promise about as large as required."""
    exponents = rng.integers(0, last.bit_length(), 40).tolist()
    scattered = [min(last, (1 << e) + int(rng.integers(0, 1 << min(e, 30)))) for e in exponents]
    starts = [0, *sorted(itertools.islice(dict.fromkeys([*scattered, 1, 2, 3, 4, last]), 6))]
    alpha = float(rng.uniform(0.5, 1))
    promise = optimizer.error(0.95) * float(rng.uniform(0.6, 1.1)) / alpha
    if rng.random() < 0.6:
        values = 1.1 - rng.uniform(0.05, 0.5) * np.abs(np.arange(7) - rng.integers(7)) + rng.uniform(-0.02, 0.02, 7)
    else:
        values = rng.uniform(0, 1.3, 7)
    return Case(starts, (promise * values).tolist(), last, promise, alpha)


def loose(bits: int, depth: int, epsilon: float = 30.0) -> quasi_concave.Amplified:
    """An optimiser with a budget at which small functions get answers, and not always the same ones."""
    return quasi_concave.amplified(bits=bits, epsilon=epsilon, delta=0.4, beta=0.9, depth=depth)


@pytest.mark.slow  # `test_conformance` covers 65 thresholds
@pytest.mark.parametrize(("bits", "depth"), [(6, 2), (4, 1), (6, 3), (11, 1)])
def test_law_agrees_point_by_point_with_the_reference(bits: int, depth: int, x64: None) -> None:
    rng = np.random.default_rng(1)
    undecided = 0
    for epsilon in (4.0, 30.0, 80.0):
        optimizer = loose(bits, depth, epsilon)
        for _ in range(10):
            case = random_case(rng, optimizer, int(rng.integers((1 << bits) // 2 + 1, (1 << bits) + 1)))
            expected = case.reference(optimizer)
            found = np.asarray(optimizer.pmf(case.problem()))
            dense = np.array([expected.get(x, 0.0) for x in [*range((1 << bits) + 1), None]])
            np.testing.assert_allclose(found, dense, rtol=1e-9, atol=1e-13)
            success, failure = (
                optimizer.success_probability(case.problem()),
                optimizer.failure_probability(case.problem()),
            )
            np.testing.assert_allclose(success, case.success(expected), rtol=1e-9, atol=1e-13)
            np.testing.assert_allclose(success + failure, 1, rtol=1e-12)
            undecided += bool(0.01 < dense[-1] < 0.99 and np.sum(dense > 0.01) > 2)
    assert undecided >= 5  # a test that sees one outcome proves little


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bits", "depth"),
    [(70, 2), slow(31, 1), slow(4096, 1)],
)
@pytest.mark.parametrize("double", [True, slow(False)])
def test_law_on_a_wide_range_agrees_with_the_reference(bits: int, depth: int, double: bool) -> None:
    rng = np.random.default_rng(2)
    optimizer = loose(bits, depth)
    with jax.enable_x64(double):
        for last in (1 << bits, (1 << bits) - 1, (1 << (bits - 1)) + 12345):
            case = random_case(rng, optimizer, last)
            expected = case.success(case.reference(optimizer))
            found = optimizer.success_probability(case.problem())
            np.testing.assert_allclose(found, expected, rtol=1e-9 if double else 1e-3, atol=1e-13 if double else 1e-6)


# ----------------------------------------------------------------------------------------------------------- samplers

HILLS = Case([0, 5, 9, 20, 22, 37, 41], [2.0, 40.0, 52.0, 55.0, 57.0, 50.0, 5.0], 50, 45.0, 0.9)


def three(more: float = 1.0) -> dict[str, Any]:
    """The three optimisers on {0, ..., 64}, with a budget (times `more`) that leaves several outcomes."""
    return {
        "exponential": quasi_concave.exponential(bits=6, epsilon=0.3 * more),
        "rec_concave": quasi_concave.rec_concave(bits=6, epsilon=0.5 * more, delta=0.3, depth=2),
        "amplified": quasi_concave.amplified(bits=6, epsilon=2.0 * more, delta=0.4, beta=0.9, depth=1),
    }


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """The chi-square p-value; outcomes expected fewer than 10 times are lumped together."""
    rare = expected < 10
    counts, expected = (np.append(x[~rare], x[rare].sum()) for x in (counts, expected))
    seen = expected > 0
    assert counts[~seen].sum() == 0
    return float(stats.chisquare(counts[seen], expected[seen] * counts.sum() / expected[seen].sum()).pvalue)


def points_drawn(optimizer: Any, problem: recursion.Problem, trials: int) -> np.ndarray:
    """The first limbs of released points, 65 for bottom."""

    @jax.jit
    @jax.vmap
    def run(key: jax.Array) -> Any:
        outcome = optimizer(key, problem)
        return outcome.status, outcome.hypothesis[-1]

    status, points = map(np.asarray, run(jax.random.split(jax.random.key(0), trials)))
    return np.where(status == Status.OK, points, 65)


@pytest.mark.slow  # `test_conformance` covers powers of two
def test_the_amplified_sampler_follows_the_law_and_not_another_where_T_is_no_power_of_two() -> None:
    trials, optimizer, problem = 20_000, three()["amplified"], HILLS.problem()
    counts = np.bincount(points_drawn(optimizer, problem, trials), minlength=66)
    law = np.asarray(optimizer.pmf(problem), np.float64)
    assert np.sum(law > 0.005) >= 4 and law[-1] > 0.01
    assert chi_square(counts, trials * law) > FALSE_ALARM
    other = np.asarray(three(1.3)["amplified"].pmf(problem), np.float64)
    assert chi_square(counts, trials * other) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", [*map(slow, ("exponential", "rec_concave")), "amplified"])
def test_pmf_adds_up_to_the_success_probability(name: str) -> None:
    marked = np.array([HILLS.value(x) >= 42 for x in range(51)] + [False] * 14)
    law = np.asarray(three()[name].pmf(HILLS.problem()))
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-5)
    found = three()[name].success_probability(HILLS.problem(), error=3.0)
    np.testing.assert_allclose(found, law[:-1][marked].sum(), rtol=1e-4)


@pytest.mark.slow  # `test_conformance` has such a range, the 65 thresholds of 6 bits
def test_no_point_beyond_the_range_is_released() -> None:
    """RecConcave extends a range whose length is no power of two to one: what is drawn there is bottom, in runs and in laws."""
    last, optimizer = 40, quasi_concave.rec_concave(bits=6, epsilon=1.0, delta=0.3, depth=2)
    pieces = ordered.from_breakpoints([0, 20, 23], [0.0, 6.0, 0.0], last, beyond=0.0)
    problem = quasi_concave.problem(pieces, promise=6, alpha=1.0)
    law = np.asarray(optimizer.pmf(problem), np.float64)
    assert not law[last + 1 : -1].any() and law[-1] > 0.05
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-5)
    counts = np.bincount(points_drawn(optimizer, problem, 4000), minlength=66)
    assert not counts[last + 1 : -1].any()
    assert chi_square(counts, 4000 * law) > FALSE_ALARM


# ------------------------------------------------------------------------------------------- privacy, step by step


def budget_of(epsilon: Any, delta: Any, beta: Any = 0.25, levels: int = 1) -> amplification.Budget:
    """epsilon for every mechanism."""
    each = epsilon * np.ones(levels, getattr(epsilon, "dtype", float))
    return amplification.Budget(test=epsilon, last=epsilon, blocks=each, points=each, delta=delta, beta=beta)


def block_pairs(top: float, least: float, n: float, c: float) -> list[np.ndarray]:
    """Neighbouring weights (2, blocks) of sum about n: a heavy block, and light ones that enter and leave the candidates."""
    blocks, light = int(n // least), int((n - top) // least)
    pairs = []
    for entering, change in itertools.product(range(0, light + 1, 2), (-2, 0, 2)):
        here, there = np.zeros((2, blocks))
        here[0], there[0] = top, top + change * c
        here[1 + entering : 1 + light] = least
        there[1 : 1 + entering] = least
        here[1 : 1 + entering] = there[1 + entering : 1 + light] = least - min(1e-6, 2 * c)
        pairs.append(np.stack([here, there]))
    return pairs


BLOCKS = 50  # fewer blocks are filled up with weights of 0


def block_choice(row: Any) -> Any:
    """ln of the law of step 3; all its numbers are data."""
    log_block, log_some, log_none = amplification.choose_block(row["weights"], amplification.Level(**row["constants"]))
    return jnp.append(log_some + log_block, log_none)


def worst_block_choices(cases: list[tuple[float, float, float, float, float]]) -> list[tuple[float, float]]:
    """Over many pairs of step 3, with the bar lowered by `lower` units of 4c/epsilon: the candidates' exact delta(epsilon) / delta, and by
    how much the logarithm of bottom's probability changes, divided by E, which is 2 epsilon here."""
    rows = []
    for epsilon, delta, n, level, lower in cases:
        c, budget = 2.0**level, budget_of(np.float64(epsilon), np.float64(delta), levels=level + 1)
        total = n + 2 * float(amplification.level(n, budget, level, xp=np).trim)
        constants = amplification.level(total, budget, level, xp=np)
        ends = (level + 1) * 2 * epsilon  # E: of this level and those above
        constants = dataclasses.replace(constants, bar=constants.bar - lower * constants.least)
        bar, least = float(constants.bar), float(constants.least) * (1 + 1e-9)
        tops = np.linspace(bar - least, min(bar + 3 * least, n - 2 * least), 12)
        pairs = np.array([pair for top in tops for pair in block_pairs(float(top), least, n, c)])
        weights = np.pad(pairs.reshape(-1, pairs.shape[2]), ((0, 0), (0, BLOCKS - pairs.shape[2])))
        given = jax.tree.map(functools.partial(np.full, len(weights)), {"constants": vars(constants), "ends": ends})
        rows.append({"weights": weights, **given})
    laws = exact.probabilities(block_choice, jax.tree.map(lambda *parts: np.concatenate(parts), *rows))
    worst, start = [], 0
    for row, (epsilon, delta, *_) in zip(rows, cases, strict=True):
        both = np.arange(start, start + len(row["weights"])).reshape(-1, 2)
        chosen = exact.sticks(laws[:, :-1], np.concatenate([both, both[:, ::-1]]), epsilon).max() / delta
        none = np.log(laws[both, -1])
        worst.append((chosen, np.abs(none[:, 0] - none[:, 1]).max() / row["ends"][0]))
        start += len(row["weights"])
    return worst


def test_choosing_a_block_keeps_its_promise_and_needs_the_count_of_blocks() -> None:
    budgets = [(1.0, 0.05, 100.0, 0), (0.5, 1e-4, 1600.0, 2), (3.0, 0.02, 40.0, 0)]
    as_if_one_block = [(e, d, n, level, math.log(n * e / (4 * 2**level))) for e, d, n, level in budgets]
    worst = worst_block_choices([*((*budget, 0.0) for budget in budgets), *as_if_one_block])
    kept, crowded = np.array(worst[:3]), np.array(worst[3:])
    assert kept.min() > 0.05 and kept.max() <= 1
    assert crowded[:, 0].min() > 1.5  # negative control


def monotone(points: int, n: int) -> np.ndarray:
    """All rising integer functions on {0, ..., points - 1} that end at n."""
    inner = itertools.combinations_with_replacement(range(n + 1), points - 1)
    return np.array([[*values, n] for values in inner], float)


def unit_moves(functions: np.ndarray) -> np.ndarray:
    """All ordered pairs of different rows with entries at most 1 apart, both directions."""
    place = {tuple(row): i for i, row in enumerate(functions.tolist())}
    pairs = []
    for move in itertools.product((-1.0, 0.0, 1.0), repeat=functions.shape[1]):
        if any(move):
            moved = (functions + np.array(move)).tolist()
            pairs += [(i, place[tuple(row)]) for i, row in enumerate(moved) if tuple(row) in place]
    return np.array(pairs)


MOST_POINTS = 6  # further ones have the value n


def dense(row: Any, depth: int) -> Any:
    """ln of the law of a level."""
    budget = budget_of(row["epsilon"], row["delta"], levels=depth)
    return jnp.log(amplification.dense_law(row["function"], row["last"], row["n"], budget, 0))


def level_laws(functions: np.ndarray, n: int, epsilon: float, delta: float, depth: int) -> np.ndarray:
    """The laws of a level on each of these functions; the program is one for all of a depth."""
    points = functions.shape[1]
    rows = {
        "function": np.pad(functions, ((0, 0), (0, MOST_POINTS - points)), constant_values=n),
        "last": np.full(len(functions), points - 1, np.int32),
        **{
            name: np.full(len(functions), value)
            for name, value in (("n", float(n)), ("epsilon", epsilon), ("delta", delta))
        },
    }
    return exact.probabilities(functools.partial(dense, depth=depth), rows, batch_size=512)


@pytest.mark.parametrize(
    ("points", "n", "epsilon", "delta", "depth"),
    [
        (4, 20, 2.0, 0.2, 1),
        slow(5, 14, 6.0, 0.05, 1),
        thorough(3, 60, 8.0, 0.05, 2),
        slow(6, 14, 6.0, 0.05, 1),
    ],
)
def test_levels_keep_their_promise_over_all_amplified_neighbours(
    points: int, n: int, epsilon: float, delta: float, depth: int
) -> None:
    """Exhaustively: all step functions up to n on `points` points, all pairs at most 1 apart."""
    functions = monotone(points, n)
    pairs = unit_moves(functions)
    assert len(pairs) > 10_000
    laws = level_laws(functions, n, epsilon, delta, depth)
    at_promise, far_below = (exact.sticks(laws, pairs, at).max() for at in ((2 * depth + 1) * epsilon, epsilon / 4))
    assert at_promise <= depth * delta
    assert far_below > depth * delta  # the same law under a claim it does not keep


def test_the_depth_and_the_next_level_are_as_sensitive_as_they_say(x64: None) -> None:
    functions = monotone(5, 9)
    pairs = unit_moves(functions)
    nothing = amplification.Level(sensitivity=1.0, block=4.0, point=1.0, rho=2.0, trim=0.5, bar=1.0, reserve=0.5)

    @jax.jit
    @jax.vmap
    def stages(function: Any) -> tuple[Any, Any]:
        before = jnp.append(0.0, function[:-1])
        rising = jnp.clip(jnp.append(before, 9.0) - nothing.trim, 0, 8.0)
        largest = jnp.stack([jnp.max(amplification._dense_weights(rising, jnp.int32(s))) for s in range(4)])
        return jnp.minimum(function, 9 - before), amplification._level_function(largest, nothing)

    depth, following = (np.asarray(x) for x in stages(functions))
    for values, sensitivity in ((depth, 1), (following, 2)):
        assert np.abs(values[pairs[:, 0]] - values[pairs[:, 1]]).max() == sensitivity
    assert np.all(np.diff(following) >= 0) and np.all(following[:, -1] == 7.5)
    assert np.all(depth.max(axis=1) >= 4.5)
    assert float(amplification.level(9.0, budget_of(np.float64(4.0), np.float64(0.2)), 0, xp=np).reserve) > 0


# --------------------------------------------------------------------------------------------------- privacy, whole


def all_qualities(points: int, top: int) -> np.ndarray:
    """All integer functions with values 0, ..., top: quasi-concave or not."""
    return np.array(list(itertools.product(range(top + 1), repeat=points)), float)


def on_points(points: int) -> tuple[ordered.Pieces, Callable[[Any, Any, Any], recursion.Problem]]:
    template = ordered.from_breakpoints(list(range(points)), [0.0] * points, points - 1, beyond=0.0)

    def problem(values: Any, promise: Any, alpha: Any) -> recursion.Problem:
        padded = jnp.concatenate([values, jnp.zeros((template.count - points,), values.dtype)])
        pieces = dataclasses.replace(template, values=padded)
        return recursion.Problem(pieces=pieces, promise=jnp.asarray(promise), alpha=jnp.asarray(alpha))

    return template, problem


def test_kept_promises_make_amplified_neighbours_and_others_need_not(x64: None) -> None:
    """|F - F'| <= 1 once a maximum reaches R + 1, exhaustively; (2, 3) and (3, 2) with R = 3 are 2 apart."""
    budget = budget_of(np.float64(2.0), np.float64(0.2))
    promise = 3 + float(budget.slack(np))

    def function(values: Any) -> Any:
        _, problem = on_points(values.shape[0])
        return amplification.steps(problem(values, promise, 1.0), budget).values[1 : 2 * values.shape[0]]

    qualities = all_qualities(4, 5)
    functions = np.asarray(jax.jit(jax.vmap(function))(qualities))
    swapped = np.asarray(jax.jit(jax.vmap(function))(np.array([[2.0, 3.0], [3.0, 2.0]])))
    pairs = unit_moves(qualities)
    change = np.abs(functions[pairs[:, 0]] - functions[pairs[:, 1]]).max(axis=1)
    kept = qualities.max(axis=1)[pairs].max(axis=1) >= 4
    assert change[kept].max() == pytest.approx(1)
    assert np.abs(swapped[0] - swapped[1]).max() == pytest.approx(2)
    assert change[~kept].max() == pytest.approx(2)


@pytest.mark.parametrize(
    ("points", "top", "epsilon", "delta", "depth"),
    [thorough(4, 6, 4.0, 0.2, 1), slow(3, 19, 8.0, 0.05, 2), slow(5, 8, 6.0, 0.1, 1)],
)
def test_no_neighbouring_qualities_exceed_the_guarantee(
    points: int, top: int, epsilon: float, delta: float, depth: int
) -> None:
    """Exhaustively: all integer qualities, all pairs at most 1 apart, the promise just where the greatest may or may not pass."""
    bits = (points - 2).bit_length()
    optimizer = quasi_concave.amplified(
        bits=bits, epsilon=(2 * depth + 2) * epsilon, delta=depth * delta, beta=0.99, depth=depth
    )
    qualities = all_qualities(points, top)
    pairs = unit_moves(qualities)
    _, problem = on_points(points)
    promise = top - 1 + float(optimizer.budget.slack(np))

    def law(values: Any) -> Any:
        return jnp.log(optimizer.pmf(problem(values, promise, 1.0)))

    guarantee = optimizer.guarantee()
    laws = exact.probabilities(law, qualities, batch_size=512)
    assert laws[:, -1].min() < 1 - 0.5 * delta  # not always bottom
    assert exact.sticks(laws, pairs, guarantee.epsilon).max() <= guarantee.delta
    assert exact.sticks(laws, pairs, 0.0).max() > 0.4 * delta


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "depth", "epsilon", "delta"), [(4, 1, 15.0, 0.2), (5, 2, 32.0, 0.2)])
def test_climbing_finds_no_pair_beyond_the_guarantee(bits: int, depth: int, epsilon: float, delta: float) -> None:
    """Climbs from random hills in delta at one mechanism's epsilon, where there is something to climb; at the whole, never above delta."""
    points = (1 << bits) + 1
    optimizer = quasi_concave.amplified(bits=bits, epsilon=epsilon, delta=delta, beta=0.99, depth=depth)
    _, problem = on_points(points)
    scale = optimizer.error(0.99)
    rng = np.random.default_rng(3)

    def law(pair: Any) -> Any:
        return jnp.log(jax.vmap(lambda values: optimizer.pmf(problem(values, scale, 1.0)))(pair)).reshape(-1)

    def sticks(pairs: np.ndarray, at: float) -> np.ndarray:
        with jax.enable_x64(True):
            laws = np.exp(np.asarray(climb(jnp.asarray(pairs)))).reshape(len(pairs), 2, -1)
        return np.maximum(laws[:, 0] - math.exp(at) * laws[:, 1], 0).sum(axis=1)

    climb = jax.jit(jax.vmap(law))
    away = np.abs(np.arange(points) - rng.integers(0, points, (200, 1, 1))) / points
    hills = 1.1 - rng.uniform(0, 4, (200, 1, 1)) * away + rng.uniform(-0.1, 0.1, (200, 1, points))
    pairs = scale * hills + rng.uniform(-0.5, 0.5, (200, 2, points))
    part = epsilon / (2 * depth + 2)
    best, whole = sticks(pairs, part), 0.0
    for _ in range(40):
        common = rng.normal(0, scale / 10, (200, 1, points)) * (rng.random((200, 1, points)) < 0.2)
        middle = pairs.mean(axis=1, keepdims=True) + common
        signs = rng.choice([-0.5, 0, 0.5], (200, points)) * (rng.random((200, points)) < 0.3)
        apart = np.clip((pairs[:, 0] - pairs[:, 1]) / 2 + signs, -0.5, 0.5)[:, None]
        trial = np.concatenate([middle + apart, middle - apart], axis=1)
        found = sticks(trial, part)
        pairs = np.where((found > best)[:, None, None], trial, pairs)
        best = np.maximum(best, found)
        whole = max(whole, float(sticks(trial, epsilon).max()))
    assert whole <= delta
    assert best.max() > 0.1 * delta


# ----------------------------------------------------------------------------------------------------------- utility


def families(bits: int, promise: float) -> Iterator[Case]:
    """Quasi-concave qualities with maximum `promise`: one point, a plateau, a staircase, log-shaped around a point."""
    last, middle = 1 << bits, (1 << bits) // 3
    grid = [i * (last // 101) for i in range(101)]
    offsets = [1 << (i * (bits - 2) // 50) for i in range(1, 51)]
    around = sorted({0, middle, *(middle - x for x in offsets), *(middle + x for x in offsets)})
    hills: list[tuple[list[int], Callable[[int], float]]] = [
        (sorted({*grid[:98], middle, middle + 1}), lambda x: promise * (x == middle)),
        (grid, lambda x: promise if grid[33] <= x < grid[60] else 0.2 * promise * (x >= grid[60])),
        (grid, lambda x: promise * (1 - abs(grid.index(x) - 50) / 50)),
        (around, lambda x: promise * (1 - abs(around.index(x) - around.index(middle)) / len(around))),
    ]
    for starts, quality in hills:
        yield Case(starts, [quality(x) for x in starts], last, promise, 0.5)


def makers(bits: int) -> dict[str, Any]:
    budget = {"bits": bits, "epsilon": 1.0, "delta": 1e-6}
    return {
        "exponential": quasi_concave.exponential(bits=bits, epsilon=1.0),
        "rec_concave": quasi_concave.rec_concave(**budget, depth=2),
        "amplified": quasi_concave.amplified(**budget, beta=0.01),
        "amplified-2": quasi_concave.amplified(**budget, beta=0.01, depth=2),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["exponential", slow("rec_concave"), "amplified", slow("amplified-2")])
@pytest.mark.parametrize("bits", [60, slow(300)])
def test_the_required_promise_suffices(name: str, bits: int) -> None:
    optimizer = makers(bits)[name]
    beta = 0.01
    for case in families(bits, optimizer.required_promise(beta, 0.5)):
        assert float(optimizer.failure_probability(case.problem())) <= beta
    little = families(bits, optimizer.required_promise(beta, 0.5) / 12)
    assert max(float(optimizer.failure_probability(case.problem())) for case in little) > beta


# Additive errors proved at epsilon = 1, delta = 1e-6, beta = 0.1: of the exponential mechanism, of RecConcave with 2 and 3 levels
# and of amplified interior points with 1, 2 and 3 levels before the last, which is as many.
ERRORS = {
    8: (15.7, 358.3, 358.3, 316.7, 1104.0, 3104.9),
    16: (26.8, 399.0, 399.0, 325.2, 1111.3, 3104.9),
    64: (93.3, 484.8, 5337.3, 343.1, 1122.6, 3104.9),
    256: (359.5, 572.8, 5473.9, 360.7, 1131.2, 3125.9),
    1024: (1424.2, 661.4, 5653.7, 377.7, 1138.2, 3125.9),
    4096: (5682.9, 750.0, 5803.4, 394.1, 1144.0, 3125.9),
}


@pytest.mark.parametrize("bits", ERRORS)
def test_errors_grow_as_2_to_the_depth_and_not_as_8(bits: int) -> None:
    budget = {"bits": bits, "epsilon": 1.0, "delta": 1e-6}
    optimizers = [
        quasi_concave.exponential(bits=bits, epsilon=1.0),
        *(quasi_concave.rec_concave(**budget, depth=depth) for depth in (2, 3)),
        *(quasi_concave.amplified(**budget, depth=depth) for depth in (1, 2, 3)),
    ]
    errors = [optimizer.error(0.1) for optimizer in optimizers]
    np.testing.assert_allclose(errors, ERRORS[bits], rtol=1e-3)
    best = quasi_concave.amplified(**budget)
    assert best.levels == 1 and best.error(0.1) == errors[3]


# --------------------------------------------------------------------------------------------------------- guarantees


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_shares_add_up_to_the_guarantee(depth: int) -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.1, 0.3), (3.3, 1e-12)):
        optimizer = quasi_concave.amplified(bits=64, epsilon=epsilon, delta=delta, depth=depth)
        whole = basic(optimizer.mechanisms())
        assert whole.epsilon <= epsilon and whole.delta <= delta
        assert whole.epsilon > epsilon * (1 - 1e-12) and whole.delta > delta * (1 - 1e-12)
        assert (optimizer.guarantee().epsilon, optimizer.guarantee().delta) == (epsilon, delta)


@pytest.mark.parametrize(("bits", "delta", "depth"), [(64, 1e-6, 1), (4096, 1e-9, 1), (8, 1e-3, 1), (64, 1e-6, 2)])
def test_no_shares_err_much_less_than_those_chosen(bits: int, delta: float, depth: int) -> None:
    """Equal ones err more, and of many others within the same sum none errs more than 1 % less."""
    made = quasi_concave.amplified(bits=bits, epsilon=1.0, delta=delta, depth=depth)
    chosen = np.concatenate([[made.budget.test, made.budget.last], made.budget.blocks, made.budget.points])

    def error(shares: np.ndarray) -> float:
        test, last, *rest = shares / shares.sum()
        spent = {"test": test, "last": last, "blocks": np.array(rest[:depth]), "points": np.array(rest[depth:])}
        return dataclasses.replace(made, budget=dataclasses.replace(made.budget, **spent)).error(0.1)

    assert error(np.ones(len(chosen))) > 1.04 * error(chosen)
    moves = np.random.default_rng(4).normal(0, 0.1, (300, len(chosen)))
    assert min(error(chosen * np.exp(move)) for move in moves) > 0.99 * error(chosen)


def test_guarantees_of_the_others() -> None:
    assert quasi_concave.exponential(bits=9, epsilon=0.5).guarantee().is_pure
    assert quasi_concave.rec_concave(bits=5, epsilon=0.5, delta=0, depth=9).guarantee().is_pure
    added = quasi_concave.rec_concave(bits=9, epsilon=0.5, delta=1e-6, depth=2, relation=ADD_OR_REMOVE_ONE).guarantee()
    assert (added.epsilon, added.delta, added.relation) == (0.5, 1e-6, ADD_OR_REMOVE_ONE)
    assert quasi_concave.exponential(bits=9, epsilon=0.5).guarantee().relation == REPLACE_ONE


def test_a_guarantee_follows_from_the_budget_in_use() -> None:
    optimizer = quasi_concave.amplified(bits=9, epsilon=1.0, delta=1e-6, depth=1)
    spent = dataclasses.replace(optimizer.budget, test=np.float64(9.0), last=np.float64(2.0))
    changed = dataclasses.replace(optimizer, budget=spent).guarantee()
    assert changed == basic(dataclasses.replace(optimizer, budget=spent).mechanisms()) and changed.epsilon > 11


# -------------------------------------------------------------------------------------------------------- conformance


def same(a: Any, b: Any) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*map(slow, ("exponential", "rec_concave")), "amplified"])
def test_one_program_serves_every_epsilon_and_problem(name: str) -> None:
    optimizer = three()[name]
    before = [entry._cache_size() for entry in (algorithm._run, algorithm._law)]
    for step in range(1, 6):
        changed = dataclasses.replace(optimizer, epsilon=np.float64(0.1 * step))
        other = dataclasses.replace(HILLS, promise=40.0 + step, alpha=0.1 * step).problem()
        changed(jax.random.key(step), other)
        changed.success_probability(other, error=step)
    after = [entry._cache_size() for entry in (algorithm._run, algorithm._law)]
    assert all(new - old <= 1 for new, old in zip(after, before, strict=True))


@pytest.mark.slow
def test_padding_changes_nothing() -> None:
    optimizer = three()["amplified"]
    pieces = HILLS.problem().pieces
    empty = wide.from_ints([65] * 8, 7)
    padded = dataclasses.replace(
        pieces, starts=jnp.concatenate([pieces.starts, empty]), values=jnp.append(pieces.values, jnp.full((8,), 99.0))
    )
    plain, more = (quasi_concave.problem(p, promise=45, alpha=0.9) for p in (pieces, padded))
    for seed in range(20):
        same(optimizer(jax.random.key(seed), plain), optimizer(jax.random.key(seed), more))


@pytest.mark.slow
@pytest.mark.parametrize("name", three())
def test_eager_equals_compiled(name: str) -> None:
    optimizer = three()[name]
    with jax.disable_jit():
        eager = optimizer(jax.random.key(3), HILLS.problem())
    same(eager, optimizer(jax.random.key(3), HILLS.problem()))


@pytest.mark.thorough
def test_an_unkept_promise_is_flagged_and_a_hopeless_one_is_bottom() -> None:
    optimizer = three()["amplified"]
    unkept = dataclasses.replace(HILLS, promise=120.0).problem()
    hopeless = dataclasses.replace(HILLS, alpha=0.01).problem()
    for problem in (unkept, hopeless):
        assert int(optimizer(jax.random.key(0), problem).status) == Status.BOTTOM
        assert float(optimizer.success_probability(problem)) < 1e-4


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda: quasi_concave.amplified(bits=0, epsilon=1.0, delta=0.1),
            ValueError,
            "bits must be from 1 to 4096, got 0",
        ),
        (lambda: quasi_concave.amplified(bits=2.5, epsilon=1.0, delta=0.1), TypeError, "bits must be an int, got 2.5"),
        (lambda: quasi_concave.amplified(bits=9, epsilon=0.0, delta=0.1), ValueError, "epsilon must be > 0"),
        (lambda: quasi_concave.amplified(bits=9, epsilon=1.0, delta=0.6), ValueError, "delta must be <= 0.5, got"),
        (lambda: quasi_concave.amplified(bits=9, epsilon=1.0, delta=0.0), ValueError, "delta must be > 0"),
        (lambda: quasi_concave.amplified(bits=9, epsilon=1.0, delta=0.1, beta=1), ValueError, "beta must be < 1"),
        (
            lambda: quasi_concave.amplified(bits=9, epsilon=1.0, delta=0.1, depth=5),
            ValueError,
            "depth must be from 1 to 4",
        ),
        (
            lambda: quasi_concave.amplified(bits=9, epsilon=1.0, delta=0.1).error(0.05),
            ValueError,
            "beta must be > 0.07",
        ),
        (lambda: quasi_concave.rec_concave(bits=9, epsilon=1.0, delta=0.0, depth=2), ValueError, "delta must be > 0"),
        (
            lambda: quasi_concave.exponential(bits=9, epsilon=1.0, relation="SWAP"),
            ValueError,
            "relation must be one of",
        ),
        (
            lambda: quasi_concave.exponential(bits=13, epsilon=1.0).pmf(Case([0], [1.0], 2**13, 1.0, 0.5).problem()),
            ValueError,
            "bits must be from 1 to 12",
        ),
        (
            lambda: quasi_concave.exponential(bits=7, epsilon=1.0).pmf(HILLS.problem()),
            ValueError,
            "problem.pieces must end at a T",
        ),
        (
            lambda: quasi_concave.exponential(bits=60, epsilon=1.0)(jax.random.key(0), HILLS.problem()),
            ValueError,
            "2 limbs",
        ),
        (
            lambda: quasi_concave.exponential(bits=6, epsilon=1.0)(jax.random.key(0), HILLS),
            TypeError,
            "problem must be a",
        ),
        (
            lambda: quasi_concave.problem(HILLS.problem().pieces, promise=0, alpha=0.5),
            ValueError,
            "promise must be > 0",
        ),
        (lambda: quasi_concave.problem(HILLS.problem().pieces, promise=1, alpha=1.5), ValueError, "alpha must be <= 1"),
        (lambda: quasi_concave.problem(None, promise=1, alpha=0.5), TypeError, "pieces must be ordered.Pieces"),
    ],
)
def test_bad_arguments_are_refused_by_name_value_and_rule(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_traced_budgets_need_a_depth() -> None:
    with pytest.raises(TypeError, match="depth must be given"):
        jax.eval_shape(lambda epsilon: quasi_concave.amplified(bits=6, epsilon=epsilon, delta=0.4, beta=0.9), 2.0)


@pytest.mark.thorough
def test_values_that_floats_do_not_tell_apart_are_refused() -> None:
    """Neighbouring qualities around 2^30 were equal, or 64 apart: a loss of 4 where 1 is promised."""
    law = quasi_concave.exponential(bits=6, epsilon=1.0)
    with pytest.raises(ValueError, match=r"values\[0\] must be <= 16777216"):
        ordered.from_breakpoints([0, 1], [2.0**30, 2.0**30 + 64], 64, beyond=0.0)
    pieces = ordered.from_breakpoints([0, 1], [5.0, 4.0], 64, beyond=0.0)
    with pytest.raises(ValueError, match="promise must be <= 16777216"):
        quasi_concave.problem(pieces, promise=2.0**25, alpha=0.5)
    problem = quasi_concave.problem(pieces, promise=5.0, alpha=0.5)
    for scale, status in ((1.0, Status.OK), (2.0**22, Status.OUTSIDE_DOMAIN)):
        scaled = dataclasses.replace(problem, pieces=dataclasses.replace(pieces, values=pieces.values * scale))
        assert law(jax.random.key(0), scaled).status == status
        assert np.isnan(law.probability(scaled, (0, 1))[0]) == (status != Status.OK)


@pytest.mark.parametrize(("total", "unit"), [(1.5e7, 1.0), (1.5e7 / 16, 1 / 16), (3.0e8, 1.0)])
def test_what_a_program_subtracts_is_a_multiple_of_what_floats_hold_beside_the_total(total: float, unit: float) -> None:
    """It is rounded up, so that no count moves by more than 1 where a difference is rounded; without a delta the reserve is infinite."""
    budget, none = budget_of(0.25, 1e-6), budget_of(0.25, 0.0)
    found, nothing = jax.jit(lambda *budgets: [amplification.level(jnp.float32(total), each, 0) for each in budgets])(
        budget, none
    )
    with np.errstate(divide="ignore"):
        exact = amplification.level(np.float64(total), budget, 0, xp=np)
    for one, other in ((found.trim, exact.trim), (found.reserve, exact.reserve)):
        assert float(one) % unit == 0 and other * (1 - 1e-5) <= float(one) <= other * (1 + 1e-5) + unit
    assert np.isinf(nothing.reserve) and np.isfinite(nothing.trim)


def test_a_level_below_is_twice_as_sensitive() -> None:
    """Q is p on {10, ..., 19}: F rises by r at 10 and at 19, both of which only blocks of 2^5 points or more hold. So 5 is deeper than
    smaller sizes by the reserve, and these are deeper than 6, beyond which nothing rises, by what trim and reserve leave of r."""
    host = budget_of(np.float64(1.0), np.float64(1e-3), np.float64(0.25))
    budget = jax.tree.map(jnp.float32, host)
    problem = Case([0, 10, 20], [0.0, 200.0, 0.0], 40, 200.0, 1.0).problem()

    @jax.jit
    def law(problem: recursion.Problem) -> Any:
        chain = amplification.steps(problem, budget)
        return amplification.choose_size(chain, budget, amplification.level(chain.total, budget, 0))

    small, both, last = np.log(np.asarray(law(problem))[[0, 5, 6]])
    r = 200.0 - float(host.slack(np))
    constants = amplification.level(np.float64(2 * r), host, 0, xp=np)
    left = r - constants.trim - constants.reserve
    assert left > 10 and both - small == pytest.approx(constants.reserve / 4, rel=1e-3)
    assert small - last == pytest.approx(left / 4, rel=1e-3)


def test_what_was_changed_past_all_checks_is_seen() -> None:
    """Numbers of the optimiser and of the problem, one or two at a time."""
    optimizer = quasi_concave.amplified(bits=6, epsilon=1.0, delta=1e-6, depth=1)
    pieces = ordered.from_breakpoints([0, 1], [5.0, 4.0], 64, beyond=0.0)
    problem = quasi_concave.problem(pieces, promise=5.0, alpha=0.5)
    fits, sound = jax.jit(lambda problem: optimizer.fits(problem)), jax.jit(lambda optimizer: optimizer.sound())
    assert sound(optimizer) and fits(problem)
    for name, value in vars(optimizer.budget).items():
        budget = dataclasses.replace(optimizer.budget, **{name: math.nan * value})
        assert not sound(dataclasses.replace(optimizer, budget=budget)), name
    deeper = quasi_concave.amplified(bits=9, epsilon=1.0, delta=1e-6, depth=2)
    # The second level would spend the first one's epsilon again.
    uncounted = dataclasses.replace(deeper.budget, points=deeper.budget.points[:1])
    assert deeper.sound() and not dataclasses.replace(deeper, budget=uncounted).sound()
    for wrong in (
        {"alpha": jnp.float32(1.5)},
        {"alpha": jnp.float32(-0.5)},
        {"promise": jnp.float32(0)},
        {"alpha": jnp.float32(1), "promise": jnp.float32(2.0**23 + 1)},
        {"pieces": dataclasses.replace(pieces, values=pieces.values.at[1].set(jnp.inf))},
        {"pieces": dataclasses.replace(pieces, exponent=jnp.int32(7))},
    ):
        assert not fits(dataclasses.replace(problem, **wrong)), wrong


@pytest.mark.parametrize(("promise", "alpha"), [(1.6e7, 0.45), thorough(1.2e7, 0.45), thorough(8e6, 1.0)])
def test_one_more_moves_every_step_by_one_at_most(promise: float, alpha: float) -> None:
    """So do the trimmed steps; beside fractions, integers of 24 bits once moved by 2, or not at all."""
    budget = budget_of(0.25, 1e-6)

    def steps(more: Any) -> Any:
        start = jnp.float32(math.floor((1 - alpha) * promise + 0.2 * promise))
        values = jnp.stack([jnp.float32(0), start + more, jnp.float32(promise), jnp.float32(promise)])
        pieces = ordered.from_breakpoints([0, 1, 2, 3], [0.0, 1.0, 2.0, 3.0], 5, beyond=0.0)
        pieces = dataclasses.replace(pieces, values=jnp.pad(values, (0, pieces.values.size - 4)))
        problem = recursion.Problem(pieces=pieces, promise=jnp.float32(promise), alpha=jnp.float32(alpha))
        chain = amplification.steps(problem, budget)
        return chain.values, amplification._trimmed(chain, amplification.level(chain.total, budget, 0))

    found = jax.jit(jax.vmap(steps))(jnp.arange(64, dtype=jnp.float32))
    for values in found:
        moved = np.abs(np.diff(np.asarray(values, float), axis=0))
        assert moved.max() == 1.0 and set(np.unique(moved)) <= {0.0, 1.0}
    slope = jax.jit(jax.grad(lambda alpha: units.up(300.3 * alpha, jnp.float32(600.0))))(jnp.float32(0.5))
    assert slope == np.float32(300.3)  # derivatives pass


ROWS = 320  # fewer are filled up with copies


def qualities(windows: np.ndarray, exponent: int, promise: float, alpha: Any, whole: bool = False) -> np.ndarray:
    """q of each row of up to four windows; one program serves all (and another one all whole ones)."""
    rows = np.pad(windows, ((0, 0), (0, 4 - windows.shape[1])), constant_values=-np.inf).astype(np.float32)
    alphas = np.broadcast_to(np.float32(alpha), len(rows))
    full = (np.resize(rows, (ROWS, 4)), np.resize(alphas, ROWS))
    assert len(rows) <= ROWS
    found = _qualities(full[0], np.int32(exponent), np.float32(promise), full[1], whole=whole)
    return np.asarray(found, float)[: len(rows), : windows.shape[1]]


@functools.partial(jax.jit, static_argnames="whole")
def _qualities(windows: Any, exponent: Any, promise: Any, alpha: Any, whole: bool) -> Any:
    quality = functools.partial(recursion.window_quality, whole=whole)
    return jax.vmap(quality, in_axes=(0, None, None, 0, None))(windows, exponent, promise, alpha, 2 * promise)


def test_whole_qualities_are_compared_with_what_is_rounded_against_us() -> None:
    """L = 5, 3, 1 against (1 - alpha) p = 2.25, rounded up, and p = 4.5, rounded down: min(L(j) - 3, 4 - L(j + 1)) with L(3) = 0."""
    (quality,) = qualities(np.array([[5.0, 3.0, 1.0]]), 2, 4.5, 0.5, whole=True)
    np.testing.assert_array_equal(quality, [min(5 - 3, 4 - 3), min(3 - 3, 4 - 1), min(1 - 3, 4 - 0)])


@pytest.mark.parametrize(("promise", "alpha"), [(9320600.0, 0.9), (5074312.0, 0.4716), (3.7e6, 0.77), (1234.5, 0.123)])
def test_lengths_keep_their_sensitivity_beside_fractions(promise: float, alpha: float) -> None:
    """Where L less a fraction passes a power of two, its rounding once made 1.25 of one count more."""
    powers = 2.0 ** np.arange(4, math.floor(math.log2(alpha * promise)))
    tops = np.floor((1 - alpha) * promise + np.add.outer(powers, np.arange(-8, 8))).astype(np.float32)
    windows = np.stack([np.full(tops.size, promise), tops.reshape(-1), np.zeros(tops.size)], axis=1)
    found = qualities(windows, 2, promise, alpha).reshape(*tops.shape, 3)
    moved = np.abs(np.diff(found, axis=1))
    assert moved.max() == 1.0 and set(np.unique(moved)) == {0.0, 1.0}


def test_lengths_keep_their_sensitivity_far_above_the_promise() -> None:
    """Q may be what it likes: beyond twice the promise, where floats are coarse, q does not follow it."""

    def quality(more: Any) -> Any:
        values = jnp.array([0.0, 2.0**23 + 2, 1.0, 0.0]) + more
        pieces = ordered.from_breakpoints([0, 20, 28, 44], [0.0] * 4, 64, beyond=0.0)
        pieces = dataclasses.replace(pieces, values=jnp.pad(values, (0, pieces.values.size - 4)))
        problem = recursion.Problem(pieces=pieces, promise=jnp.float32(1.5), alpha=jnp.float32(0.3))
        return recursion.length_quality(problem)[:7]

    first, second = np.asarray(jax.jit(jax.vmap(quality))(jnp.arange(2.0)), float)
    assert np.abs(second - first).max() == 1.0


@pytest.mark.parametrize("promise", [2.0**23 - 1, 2.0**24])
def test_lengths_keep_their_sensitivity_far_below_the_promise(promise: float) -> None:
    """L - (1 - alpha) p once was beyond what floats count."""
    tops, alphas = np.repeat(np.arange(-(2.0**24) + 1, -(2.0**24) + 9), 2), np.tile([0.25, 0.6], 8)
    found = qualities(np.repeat(tops[:, None], 4, axis=1), 3, promise, alphas)
    assert set(np.unique(np.diff(found[:, 0].reshape(-1, 2), axis=0))) <= {0.0, 1.0}


def test_unkept_promises_pass_the_test_with_probability_delta_at_most() -> None:
    """The margin that makes it so is a fraction, which was rounded next to millions."""
    budget = budget_of(24.889910671255976, 3.824425214388941e-06)
    promise, alpha = jnp.float32(14646856.0), jnp.float32(6.729279928112775e-05)
    shown = math.ceil(14646856.0 - float(budget.slack(np)) + 1) - 1  # the greatest integer below R + 1
    pieces = ordered.from_breakpoints([0, 100], [0.0, float(shown)], 255, beyond=0.0)
    problem = recursion.Problem(pieces=pieces, promise=promise, alpha=alpha)
    log_passed, _ = jax.jit(lambda problem: amplification.promise_test(problem, budget))(problem)
    assert log_passed <= math.log(float(budget.delta)) + 1e-5


@pytest.mark.thorough
def test_lengths_of_every_level_are_compared_in_units_of_the_first_promise(monkeypatch: Any) -> None:
    found, plain = [], recursion.window_quality

    def spied(*given: Any, **how: Any) -> Any:
        found.append(plain(*given, **how))
        return found[-1]

    monkeypatch.setattr(recursion, "window_quality", spied)
    pieces = ordered.from_breakpoints([0, 2**20], [3.0, 2681268.0], 2**40, beyond=0.0)
    problem = recursion.Problem(pieces=pieces, promise=jnp.float32(5074312.3), alpha=jnp.float32(0.4716))
    budget = split.Budget(epsilon=jnp.float32(1.0), delta=jnp.float32(1e-6), calibration="proved")

    @jax.jit
    def seen(problem: recursion.Problem, budget: split.Budget) -> Any:
        recursion.choose_length(problem, budget, 3)
        return found, units.unit(2 * problem.promise)

    qualities, unit = jax.device_get(seen(problem, budget))
    assert len(qualities) == 2
    for quality in qualities:
        held = np.asarray(quality, float)
        assert not np.any(held[np.isfinite(held)] % float(unit))
    assert 2681268.0 - float(qualities[0][0]) >= 0.5284 * 5074312.25  # the unfavourable side


steps_of = jax.jit(lambda problem, budget: amplification.steps(problem, budget).values)


@pytest.mark.parametrize(("promise", "alpha"), [(14176745.0, 0.1277), (5074312.0, 0.01716), (843915.0, 0.0132)])
def test_the_top_of_f_is_no_more_than_the_test_has_shown(promise: float, alpha: float) -> None:
    """It once was more, by a rounding of (1 - alpha) p, and F moved by 1.25 where the best quality moved past it."""
    budget = budget_of(1.0, 1e-6, 0.01)
    shown = math.ceil(promise - float(budget.slack(np)))
    pieces = ordered.from_breakpoints([0, 1, 2], [0.0, 1.0, 0.0], 4, beyond=0.0)

    def values(best: float) -> np.ndarray:
        given = dataclasses.replace(pieces, values=np.asarray(pieces.values) * np.float32(best))
        problem = recursion.Problem(pieces=given, promise=np.float32(promise), alpha=np.float32(alpha))
        return np.asarray(steps_of(problem, budget))

    first, second = (values(shown + more) for more in (0, 1))
    np.testing.assert_array_equal(first, second)


@pytest.mark.thorough
def test_a_traced_delta_of_zero_answers_nothing() -> None:
    pieces = ordered.from_breakpoints([0, 1], [0.0, 300.0], 1000, beyond=-math.inf)
    problem = quasi_concave.problem(pieces, promise=300.0, alpha=0.5)

    def law(delta: Any) -> Any:
        return quasi_concave.amplified(bits=10, epsilon=1.0, delta=delta, depth=1).probability(problem, (0, 1025))

    np.testing.assert_allclose(jax.jit(law)(jnp.float32(0.0)), [0.0, 1.0], atol=1e-5)


def test_a_choice_among_points_worth_nothing_is_none_and_has_a_derivative() -> None:
    """The choice was once NaN, and so was whatever a law multiplied by it."""
    quality, where = np.array([-np.inf, -np.inf, 1.0, 0.0], np.float32), np.array([True, True, False, False])

    @jax.jit
    def law(epsilon: Any, some: Any) -> Any:
        """The law, and its derivative in epsilon."""
        return jax.jvp(lambda e: jnp.exp(recursion._log_softmax(quality, some, e)), (epsilon,), (1.0,))

    for held in law(1.0, where):
        assert held.tolist() == [0.0] * 4
    value, slope = law(2.0, ~where | (np.arange(4) == 0))
    p = 1 / (1 + math.exp(-1.0))
    np.testing.assert_allclose(value, [0.0, 0.0, p, 1 - p], rtol=1e-6)
    np.testing.assert_allclose(slope, [0.0, 0.0, p * (1 - p) / 2, -p * (1 - p) / 2], rtol=1e-6)


@pytest.mark.thorough
def test_what_is_beyond_the_range_may_be_worth_nothing() -> None:
    """With a third level the law was once NaN and no run gave an answer; and with integer scores the longest length was always taken."""

    def law(depth: int, **given: Any) -> Any:
        pieces = ordered.from_breakpoints([0, 2**20, 2**30], [0.0, 20.0, 0.0], 2**39 + 1, beyond=-math.inf)
        optimizer = quasi_concave.rec_concave(bits=40, epsilon=3.0, delta=0.2, depth=depth, **given)
        problem = quasi_concave.problem(pieces, promise=20.0, alpha=0.5)
        return np.asarray(optimizer.probability(problem, (2**20, 2**30)))

    assert np.isfinite(law(3)).all()
    equal = quasi_concave.Split.equal(3.0, 0.2, 2)
    last = dataclasses.replace(equal, last=exponential.mechanism(epsilon=0.75))  # the equal share
    np.testing.assert_allclose(law(2, split=last), law(2, split=equal), rtol=1e-4)


@pytest.mark.parametrize("bits", [np.int64(64), np.int32(32), np.uint8(8)])
def test_bits_may_be_any_integer_of_numpy(bits):
    given = {"epsilon": 1.0, "delta": 1e-6, "depth": 3}
    found, expected = (quasi_concave.rec_concave(bits=d, **given) for d in (bits, int(bits)))
    assert found.levels == expected.levels and found.error(0.1) == expected.error(0.1)
