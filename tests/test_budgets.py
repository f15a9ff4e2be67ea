"""Budgets that keep their total: the accountant against the host's, its derivatives against differences, every point verified exactly."""

import dataclasses
import functools
import importlib
import itertools
import math
import types
from fractions import Fraction
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_verify_learners import all_samples

import dpjax
from dpjax import MultiSample, Sample
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, composition
from dpjax.concepts.conjunctions import label
from dpjax.core import bits
from dpjax.data.assignments import Assignments
from dpjax.domains import ordered
from dpjax.learners import conjunctions, rectangles, thresholds
from dpjax.mechanisms import partition_selection, report_noisy_max
from dpjax.multi import points
from dpjax.optimizers import interior_point, quasi_concave
from dpjax.optimizers.interior_point import planning, tree_log
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations import accountant, budgets, floats, tune
from dpjax.verify.exact import probabilities, worst_of_table

EPSILON, DELTA = 2.0, 0.2
TIMES = (4, 2, 1)


def host_delta(epsilons: Any, deltas: Any, times: Any, epsilon: float) -> float:
    groups = {Guarantee(e, d, REPLACE_ONE): m for e, d, m in zip(epsilons, deltas, times, strict=True)}
    return composition.total_delta(groups, epsilon)


def by_subsets(epsilons: Any, deltas: Any, times: Any, epsilon: float) -> float:
    """The formula without groups or logarithms: every subset of the mechanisms."""
    each = [e for e, m in zip(epsilons, times, strict=True) for _ in range(m)]
    own = math.prod((1 - d) ** m for d, m in zip(deltas, times, strict=True))
    excess = []
    for signs in itertools.product((1, -1), repeat=len(each)):
        loss = math.fsum(s * e for s, e in zip(signs, each, strict=True))
        chance = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, each, strict=True))
        excess.append(chance * max(0.0, -math.expm1(epsilon - loss)))
    return 1 - own * (1 - math.fsum(excess))


# ------------------------------------------------------------------------------------------------------- accountant

CASES = [
    ((0.1, 0.2, 0.3), (1e-6, 0.0, 1e-7), (4, 2, 1), 0.7),
    builders.slow((0.25,), (0.0,), (50,), 3.0),
    builders.slow((0.5, 1.0), (1e-8, 1e-3), (3, 2), 1.2),
    ((0.5, 1.0), (1e-8, 1e-3), (3, 2), 9.0),  # more than the sum: nothing but the deltas
]


@functools.partial(jax.jit, static_argnames="times")
def both_totals(epsilons: Any, deltas: Any, epsilon: Any, times: Any) -> tuple[Any, Any]:
    """The total delta, and its logarithm."""
    given = (epsilons, deltas, epsilon, times)
    return accountant.total_delta(*given), accountant.log_total_delta(*given)


@pytest.mark.parametrize(("epsilons", "deltas", "times", "epsilon"), CASES)
def test_optimal_composition_is_that_of_the_host(epsilons: Any, deltas: Any, times: Any, epsilon: float) -> None:
    expected = host_delta(epsilons, deltas, times, epsilon)
    with jax.enable_x64():
        found, log = map(float, both_totals(np.array(epsilons), np.array(deltas), epsilon, times))
    assert found == pytest.approx(expected, rel=1e-9) and math.exp(log) == pytest.approx(found, rel=1e-12)
    assert found <= expected * (1 + 1e-12)  # the host adds its rounding


def test_budgets_that_are_no_multiples_of_each_other_are_composed_exactly() -> None:
    """Where the host rounds every budget up to a grid, its delta is the larger one; this one equals the sum over all subsets."""
    epsilons, deltas, times, epsilon = (0.1234, 0.37, math.sqrt(0.2)), (1e-9, 2e-5, 0.0), (5, 3, 2), 1.1
    with jax.enable_x64():
        found, _ = map(float, both_totals(np.array(epsilons), np.array(deltas), epsilon, times))
    assert found == pytest.approx(by_subsets(epsilons, deltas, times, epsilon), rel=1e-12)
    assert found < host_delta(epsilons, deltas, times, epsilon) < found * 1.001


def central(function: Any, arguments: tuple[Any, ...], direction: Any, step: float) -> np.ndarray:
    def moved(sign: float) -> Any:
        return function(*jax.tree.map(lambda a, d: a + sign * step * d, arguments, direction))

    return np.asarray(jax.tree.map(lambda a, b: (a - b) / (2 * step), moved(1.0), moved(-1.0)))


@pytest.mark.thorough
def test_the_logarithm_has_a_derivative_in_deltas_of_pure_mechanisms() -> None:
    """ln(d + (1 - d) D) has the derivative 1/D - 1 at d = 0; the logarithm of d alone has none, and only -1 was left."""
    with jax.enable_x64():
        epsilons, none, times, epsilon = jnp.array([0.5, 1.0]), jnp.zeros(2), (2, 3), 0.2
        value = float(accountant.total_delta(epsilons, none, epsilon, times))
        log = jax.jit(lambda deltas: accountant.log_total_delta(epsilons, deltas, epsilon, times))
        np.testing.assert_allclose(jax.grad(log)(none), np.array(times) * (1 / value - 1), rtol=1e-12)
        assert accountant.log_total_delta([0.5], [0.0], 0.6, (1,)) == -math.inf
    for given in (([1.0], [0.0], 2.0, (1,)), ([0.1], [0.0], 1.0, (4,)), ([0.2, 0.3], [0.0, 0.0], 3.0, (2, 3))):
        assert accountant.log_total_delta(*given) == -math.inf  # in single precision, too


@pytest.mark.thorough
def test_derivatives_are_those_of_differences_forward_and_reverse() -> None:
    with jax.enable_x64():
        ratios, deltas = jnp.array([1.0, 2.0, 0.5]), jnp.array([1e-4, 0.0, 1e-3])
        functions = {
            "total_delta": (lambda r, d, e: accountant.total_delta(0.1 * r, d, e, TIMES), jnp.array(0.7)),
            "calibrated": (lambda r, d, e: accountant.calibrated(r, d, e, 0.01 * e, TIMES), jnp.array(0.9)),
        }
        for name, (function, epsilon) in functions.items():
            given = (ratios, deltas, epsilon)
            direction = (jnp.array([0.3, -0.2, 0.1]), jnp.array([1e-4, 1e-4, -2e-4]), jnp.array(0.5))
            compiled = jax.jit(function)
            differences = central(compiled, given, direction, 1e-5)
            _, forward = jax.jvp(compiled, given, direction)
            slopes = jax.jacrev(compiled, argnums=(0, 1, 2))(*given)
            reverse = sum(jnp.tensordot(slope, d, d.ndim) for slope, d in zip(slopes, direction, strict=True))
            np.testing.assert_allclose(forward, differences, rtol=1e-6, err_msg=name)
            np.testing.assert_allclose(reverse, forward, rtol=1e-12, err_msg=name)


@pytest.mark.thorough
def test_calibrated_budgets_spend_the_total_to_the_last_digit_and_extremes_are_numbers() -> None:
    with jax.enable_x64():
        ratios, shares = jnp.array([1.0, 2.0, 0.5]), jnp.array([0.1, 0.2, 0.01])

        @jax.jit
        def found(epsilon: Any, delta: Any, factor: Any) -> Any:
            """The budgets where the deltas are so many times these shares of the total, what they spend, and their slopes."""

            def each_of(epsilon: Any, delta: Any) -> Any:
                return accountant.calibrated(ratios, factor * shares * delta, epsilon, delta, TIMES)

            each, pull = jax.vjp(each_of, epsilon, delta)
            spent = accountant.total_delta(each, factor * shares * delta, epsilon, TIMES)
            return each, spent, jax.vmap(pull)(jnp.eye(3))

        for epsilon, delta in itertools.product((1e-6, 1.0, 50.0), (1e-300, 1e-6, 0.5)):
            each, spent, slopes = found(epsilon, delta, 1.0)
            basic = epsilon * np.asarray(ratios) / 8.5
            assert np.all(np.asarray(each) >= basic * (1 - 1e-14)), (epsilon, delta)
            assert all(np.all(np.isfinite(part)) for part in slopes), (epsilon, delta)
            if delta > 1e-300:  # there the surplus over basic composition is far below rounding
                assert float(spent) == pytest.approx(delta, rel=1e-8)
        assert np.all(np.isnan(found(1.0, 0.1, 10.0)[0]))  # the deltas are more than that


def test_accountant_refuses_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="one shape"):
        accountant.total_delta([0.1, 0.2], [0.0], 1.0, (1, 1))
    with pytest.raises(ValueError, match="one count for each of 2 groups"):
        accountant.basic([0.1, 0.2], [0.0, 0.0], (1,))
    for call, words in (
        (lambda: accountant.total_delta([math.nan], [0.0], 0.5, (2,)), "epsilons must be a number, not NaN"),
        (lambda: accountant.total_delta([-0.5], [0.0], 0.5, (2,)), "epsilons must be >= 0"),
        (lambda: accountant.total_delta([1.0], [-0.5], 0.5, (2,)), "deltas must be >= 0"),
        (lambda: accountant.total_delta([1.0], [0.0], -0.5, (2,)), "epsilon must be >= 0"),
        (lambda: accountant.log_total_delta([1.0], [0.0], math.nan, (2,)), "epsilon must be a number, not NaN"),
        (lambda: accountant.calibrated([-1.0], [0.0], 1.0, 1e-3, (2,)), "ratios must be > 0"),
        (lambda: accountant.calibrated([1.0], [0.0], 1.0, 1.0, (2,)), "delta must be < 1"),
        (
            lambda: accountant.calibrated([1.0], [0.0], 1.0, 1e-38, (2,)),
            "delta must be at least .* which float32 can hold",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ValueError, match="at most 65536 terms"):
        accountant.total_delta([0.1, 0.2], [0.0, 0.0], 1.0, (300, 300))
    with pytest.raises(ValueError, match="times"):
        accountant.total_delta([0.1], [0.0], 1.0, (0,))


# --------------------------------------------------------------------------------------------- RecConcave, verified


def learner(epsilon: float = EPSILON, delta: float = DELTA, **given: Any) -> Any:
    """Two levels really run: the range is {0, ..., 64}."""
    return thresholds.rec_concave(bits=6, epsilon=epsilon, delta=delta, alpha=0.6, depth=2, **given)


def hills(seed: int, datasets: int, n: int = 60, rows: int = 63) -> list[Sample]:
    """Samples around a random threshold, every tenth label wrong."""
    rng = np.random.default_rng(seed)
    cuts, xs = rng.integers(8, 56, (datasets, 1)), np.sort(rng.integers(0, 64, (datasets, n)))
    ys = (xs < cuts) ^ (rng.random(xs.shape) < 0.1)
    return [builders.sample_of(x, y, 6, rows) for x, y in zip(xs, ys, strict=True)]


@pytest.fixture(scope="module")
def opened() -> budgets.Budgeted:
    return budgets.of(learner())


@pytest.fixture(scope="module")
def tuned(opened: budgets.Budgeted) -> tune.Tuned:
    return tune.tune(opened, hills(0, 8), error=0.2, steps=38, learning_rate=0.1)


@pytest.mark.thorough
def test_tuned_budgets_fail_less_often_on_data_that_were_held_out(tuned: tune.Tuned) -> None:
    assert tuned.losses[-1] < tuned.losses[0] - 0.3
    judged, held_out, default = tune._judged(0.2, None), hills(1, 8), learner()
    equal = dataclasses.replace(default, split=Split.equal(EPSILON, DELTA, 2))
    before, after = (np.mean(tune.failures(one, held_out, judged)) for one in (equal, tuned.algorithm))
    assert after < 0.8 * before


@pytest.mark.slow
def test_every_point_of_the_way_is_private_on_all_small_samples_and_a_fifth_more_is_not(
    opened: budgets.Budgeted, tuned: tune.Tuned
) -> None:
    algorithms = [opened.rounded(tuned.at(step)) for step in range(0, 39, 2)]
    for algorithm in algorithms:
        found = algorithm.guarantee()
        assert found.covers(EPSILON, DELTA) and found.epsilon > EPSILON * (1 - 1e-6)
    assert len(algorithms) == 20 and float(np.ptp([one.split.choices[0] for one in algorithms])) > 0.1
    # 1.2 times epsilon, nearly all of it on the choice of a point: what it may spend is what it does spend.
    more = Split(
        choices=np.array([1.2 * EPSILON * 0.97, 0.04]), tests=np.full((1, 2), 0.05), deltas=np.full((1, 2), 1e-3)
    )
    within = jax.tree.map(lambda leaf: leaf / 1.2, more)
    splits = [algorithm.split for algorithm in algorithms] + [more, within]
    alphas = [float(algorithm.alpha) for algorithm in algorithms] + [0.6, 0.6]

    family = all_samples({1: (3, 7, 31, 63), 2: (7, 31)})
    size, count = len(family.n), len(splits)
    rows: dict[str, Any] = {name: np.concatenate([getattr(family, name)] * count) for name in ("x", "y", "n")}
    rows["split"] = jax.tree.map(lambda *leaves: np.repeat(np.stack(leaves), size, axis=0), *splits)
    rows["alpha"] = np.repeat(alphas, size)

    def law(row: dict[str, Any]) -> Any:
        sample = Sample(x=row["x"][:, None], y=row["y"], n_valid=row["n"])
        one = dataclasses.replace(learner(), split=row["split"], alpha=row["alpha"])
        return jnp.log(jnp.maximum(one.pmf(sample), 0.0))

    tables = np.split(probabilities(law, rows, batch_size=size), count)
    total = Guarantee(EPSILON, DELTA, REPLACE_ONE)

    def worst(table: np.ndarray, epsilon: float) -> Any:
        return worst_of_table(table, np.arange(size), family.pairs, epsilon)

    for table in tables[:20]:
        assert not worst(table, EPSILON).refutes(total)
        assert worst(table, EPSILON / 8).delta > 1e-3  # not vacuous
    assert more.total(REPLACE_ONE).epsilon > 1.15 * EPSILON
    pure = Guarantee(EPSILON, 2e-3, REPLACE_ONE)
    assert worst(tables[20], EPSILON).refutes(pure)
    assert not worst(tables[21], EPSILON).refutes(pure)


@pytest.mark.slow
def test_equal_shares_are_the_default_and_a_split_is_guaranteed_by_its_sums() -> None:
    equal, sample = learner(split=Split.equal(EPSILON, DELTA, 2)), builders.mixed_sample()
    expected = learner().failure_probability(sample, error=0.25)
    assert float(equal.failure_probability(sample, error=0.25)) == pytest.approx(float(expected), rel=1e-5)
    assert equal.sample_size(alpha=0.6, beta=0.1) == learner().sample_size(alpha=0.6, beta=0.1)
    uneven = Split(choices=np.array([1.0, 0.5]), tests=np.array([[0.25, 0.125]]), deltas=np.array([[0.05, 0.01]]))
    made = learner(split=uneven)
    assert (made.guarantee().epsilon, made.guarantee().delta) == (
        1.875,
        composition.at_least(Fraction(0.05) + Fraction(0.01)),
    )
    assert made.sample_size(alpha=0.6, beta=0.1) > equal.sample_size(alpha=0.6, beta=0.1)


@pytest.mark.parametrize("factor", [0.25, 4.0])
def test_what_is_proved_of_a_split_is_proved_of_no_larger_equal_shares(factor: float) -> None:
    """Whether A_dist or the exponential mechanism has the least epsilon: larger shares would promise a smaller error than there is."""
    choices, tests, deltas = np.array([0.4, 0.5]), np.array([[0.4, 0.5]]) * factor, np.array([[0.01, 0.02]])
    equal = Split.equal(*Split(choices=choices, tests=tests, deltas=deltas).least(), 2)
    epsilon = min(choices.min(), tests.min())
    np.testing.assert_allclose([*equal.choices, *equal.tests[0]], [epsilon] * 4, rtol=1e-12)
    np.testing.assert_allclose(equal.deltas, [[0.01, 0.01]], rtol=1e-12)


UNEVEN = Split(
    choices=np.array([1.0, 0.5, 0.25]),
    tests=np.array([[0.125, 0.0625], [0.5, 2.0]]),
    deltas=np.array([[0.1, 0.2], [0.3, 0.4]]),
)


def test_every_mechanism_of_a_split_gets_its_own_share() -> None:
    """The wide range first: the tests of both partitions there, and then what is left for the levels below."""
    tests = [UNEVEN.test(partition) for partition in (0, 1)]
    assert UNEVEN.choose == 1.0
    assert [(float(test.epsilon), float(test.delta)) for test in tests] == [(0.125, 0.1), (0.0625, 0.2)]
    below = UNEVEN.below
    assert [leaf.tolist() for leaf in jax.tree.leaves(below)] == [[0.5, 0.25], [[0.5, 2.0]], [[0.3, 0.4]]]
    assert below.test(1).epsilon == 2.0 and below.below.levels == 1
    total = UNEVEN.total(REPLACE_ONE)
    assert total.epsilon == 4.4375 and total.delta == pytest.approx(1.0)


def test_a_mechanism_of_ones_own_spends_what_it_says_under_replace_one() -> None:
    """In place of the last exponential mechanism; no error is proved for it."""
    own = [
        types.SimpleNamespace(guarantee=lambda g=g: g)
        for g in (Guarantee(2.0, 0.1, REPLACE_ONE), Guarantee(2.0, 0.0, ADD_OR_REMOVE_ONE))
    ]
    same, other = (dataclasses.replace(Split.equal(1.0, 0.1, 2), last=each) for each in own)
    assert same.total(REPLACE_ONE).epsilon == pytest.approx(2.75) and same.total(REPLACE_ONE).delta == pytest.approx(
        0.2
    )
    with pytest.raises(ValueError, match=r"split.last must be private under REPLACE_ONE"):
        other.total(REPLACE_ONE)
    with pytest.raises(ValueError, match=r"split.last must be absent, as no error is proved"):
        same.least()


def test_a_mechanism_of_ones_own_serves_data_under_either_relation() -> None:
    """Under ADD_OR_REMOVE_ONE a split with one was made, and then its guarantee was refused, as were all that state that relation."""
    last = report_noisy_max.mechanism(epsilon=0.25)
    split, given = (
        dataclasses.replace(Split.equal(1.0, 0.1, 2), last=last),
        {"bits": 6, "epsilon": 1.0, "delta": 0.1},
    )
    solver = interior_point.rec_concave(**given, promise=4.0, split=split)
    optimizer = quasi_concave.rec_concave(**given, depth=2, relation=ADD_OR_REMOVE_ONE, split=split)
    assert solver.guarantee() == optimizer.guarantee() == Guarantee(1.0, 0.1, ADD_OR_REMOVE_ONE)
    # Scores of lengths move both ways, which this one does not allow for.
    monotone = dataclasses.replace(split, last=report_noisy_max.mechanism(epsilon=0.25, monotone=True))
    with pytest.raises(ValueError, match=r"split.last must be private under REPLACE_ONE"):
        interior_point.rec_concave(**given, promise=4.0, split=monotone)


@pytest.mark.thorough
def test_no_neighbours_refute_a_mechanism_of_ones_own_under_add_or_remove_one() -> None:
    """All multisets of up to three of six points, and a point more or less."""
    split = dataclasses.replace(Split.equal(4.0, 0.4, 2), last=report_noisy_max.mechanism(epsilon=1.0))
    solver = interior_point.rec_concave(bits=6, epsilon=4.0, delta=0.4, promise=2.0, split=split)
    report = dpjax.check(solver, n=3, domain=6)
    assert report.exact and report.relation == ADD_OR_REMOVE_ONE and report.holds
    assert report.refutes(Guarantee(0.5, 0.02, ADD_OR_REMOVE_ONE))  # negative control


def test_what_is_proved_of_rec_concave_is_that_of_its_split() -> None:
    """Leaving two thirds of a budget unspent makes the error larger; A_dist is proved for no delta above 1/2."""
    given = {"bits": 64, "epsilon": 3.0, "delta": 0.3, "depth": 2}
    whole, third = (quasi_concave.rec_concave(**given, split=split) for split in (None, Split.equal(1.0, 0.1, 2)))
    assert third.error(0.1) == pytest.approx(
        quasi_concave.rec_concave(**given | {"epsilon": 1.0, "delta": 0.1}).error(0.1)
    )
    assert third.error(0.1) > 2.9 * whole.error(0.1) and third.guarantee().covers(1.0, 0.1)
    wrong = dataclasses.replace(third.split, deltas=np.array([[0.01, 0.51]]))
    sound = jax.jit(lambda optimizer: optimizer.sound())
    assert sound(third) and not sound(dataclasses.replace(third, split=wrong))
    with pytest.raises(ValueError, match="split must have epsilons > 0 and deltas in"):
        quasi_concave.rec_concave(
            **given | {"delta": 0.5}, split=dataclasses.replace(wrong, deltas=np.array([[1e-3, 0.51]]))
        )


@pytest.mark.thorough
def test_splits_out_of_range_are_refused_by_name() -> None:
    equal = Split.equal(EPSILON, DELTA, 2)
    with pytest.raises(TypeError, match="split must be a Split"):
        learner(split=0.5)
    with pytest.raises(ValueError, match=r"split must keep \(2.0, 0.2\)"):
        learner(split=Split.equal(1.2 * EPSILON, DELTA, 2))
    with pytest.raises(ValueError, match=r"split.choices must have shape \(2,\)"):
        learner(split=Split.equal(EPSILON, DELTA, 3))
    with pytest.raises(ValueError, match="split must have epsilons > 0"):
        learner(split=dataclasses.replace(equal, choices=np.array([0.0, 1.0])))
    with pytest.raises(ValueError, match="split must be absent for printed"):
        learner(split=equal, calibration="printed")
    unsound = dataclasses.replace(learner(), split=dataclasses.replace(equal, deltas=np.array([[0.1, 0.9]])))
    assert math.isnan(float(unsound.failure_probability(builders.mixed_sample(), error=0.25)))


# ------------------------------------------------------------------------------------------------------- parameters


def openings() -> list[Any]:
    budget = planning.Budget(0.4, 4e-7, 0.14, 2e-7, 0.12, 0.2)
    plan = {"bits": 64, "depth": 1, "beta": 0.1, "guarantee": Guarantee(1.0, 1e-6, ADD_OR_REMOVE_ONE)}
    basic = interior_point.tree_log_planned(bits=64, plan=planning.plan(budget, accountant="basic", **plan))
    return [
        learner(1.0, 1e-6),
        quasi_concave.rec_concave(bits=64, epsilon=1.0, delta=1e-6, depth=3),
        interior_point.rec_concave(bits=64, epsilon=1.0, delta=1e-6, promise=50.0),
        thresholds.amplified(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2),
        basic,
        dataclasses.replace(basic, accountant="optimal"),
        points.point_learner(bits=64, k=2, epsilon=1.0, delta=1e-6, alpha=0.1),
    ]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.4, 3e-7), (0.1, 1e-3)])
def test_the_smooth_saturation_of_a_walk_is_nearly_that_of_its_selection(epsilon: float, delta: float) -> None:
    smooth = importlib.import_module(
        "dpjax.relaxations.budgets.tree_log"
    )._saturation  # the package has a function of this name
    assert 0 < partition_selection.anchors(epsilon, delta).saturation - smooth(epsilon, delta, np) < 1.5


def test_a_walk_starts_from_the_plan_that_it_came_with() -> None:
    """With its budget the sizes are its own, and what a selected element costs is what its delta is multiplied by."""
    solver = openings()[4]
    budgeted, held = budgets.of(solver), planning.spent(solver.parameters)
    assert held is not None
    made = budgeted.build(dataclasses.asdict(held), budgeted.start).parameters
    for name in ("left", "deep", "never_below"):
        assert int(getattr(made, name)) == int(getattr(solver.parameters, name))
    spread = dataclasses.replace(
        solver, parameters=dataclasses.replace(solver.parameters, deep=np.int32(made.deep + 9))
    )
    assert budgets.of(spread).build(dataclasses.asdict(held), budgets.of(spread).start).parameters.deep == made.deep + 9
    spent = jax.jit(budgeted.spend)(budgeted.start)
    each = [
        float(one["select_delta"]) * math.exp(one["select_epsilon"]) / float(one["walk_delta"])
        for one in (spent, dataclasses.asdict(held))
    ]
    assert each[0] == pytest.approx(each[1], rel=1e-3)


@pytest.mark.parametrize("point", [-1e30, -800.0, -100.0, -1.0, 0.0, 800.0, 1e30])
def test_margins_far_out_are_numbers_that_programs_take(point: float) -> None:
    """They were 0 or more than there are, and runs ended with BAD_PARAMETER."""
    for depth in (1, 2):
        budgeted = budgets.of(quasi_concave.amplified(bits=8, epsilon=1.0, delta=1e-3, depth=depth))
        far = {**budgeted.start, "beta": np.float64(point)}
        made = budgeted.rounded(far)
        assert np.float32(made.budget.beta) >= 2.0**-120 and made.sound()
        assert budgeted(jax.tree.map(jnp.float32, far)).sound()


def test_sizes_of_slices_are_rounded_to_real_ones_in_the_mean() -> None:
    """Those of the point, and what its budget asks for."""
    budgeted = budgets.of(openings()[4])
    point = {**budgeted.start, "left": np.log(50.25)}
    weights, rounded = jax.device_get(jax.jit(budgeted.relax)(point))
    parameters = rounded.parameters
    left, deep, t1 = (float(weights @ getattr(parameters, name)) for name in ("left", "deep", "never_below"))
    g = 1 + 2 / 0.4 * math.log1p(math.tanh(0.2) / parameters.walk_delta[0])
    assert weights.sum() == pytest.approx(1.0) and left == pytest.approx(50.25, rel=1e-5)
    assert deep == pytest.approx(2 * (t1 + g - 2) + math.exp(point["deep"]), rel=1e-4)
    assert t1 == pytest.approx(33.7, abs=0.5)  # 35 of the algorithm, which left some of delta


@pytest.mark.parametrize("index", [*range(4), *map(builders.thorough, range(4, 7))])
def test_points_far_away_keep_the_total_after_rounding(index: int) -> None:
    algorithm = openings()[index]
    budgeted, rng = budgets.of(algorithm), np.random.default_rng(index)
    for scale in (0.0, 1.0, 8.0):
        point = {
            name: leaf + (0.0 if name in ("left", "deep", "low") else scale * rng.standard_normal(np.shape(leaf)))
            for name, leaf in budgeted.start.items()
        }
        found = budgeted.rounded(point).guarantee()
        assert found.covers(budgeted.total.epsilon, budgeted.total.delta)
        # TreeLog's whole numbers leave some of delta, but nothing of epsilon is given away.
        assert found.epsilon > budgeted.total.epsilon * (1 - 1e-6)


def test_it_starts_where_the_algorithm_is_also_from_small_shares() -> None:
    """Each time that a budget was opened anew, a share of 1e-4 grew by 1e-4."""
    solver = interior_point.rec_concave(bits=64, epsilon=4.0, delta=1e-6, promise=50.0)
    first = budgets.of(solver)
    small = first.rounded({**first.start, "epsilon": np.array([3.0, -12.0, 3.0, 3.0])})
    again = budgets.of(small)
    for given, found in zip(
        jax.tree.leaves(small.split), jax.tree.leaves(again.rounded(again.start).split), strict=True
    ):
        np.testing.assert_allclose(found, given, rtol=1e-5)


def test_what_cannot_be_opened_or_tuned_is_refused_by_name(opened: budgets.Budgeted) -> None:
    with pytest.raises(TypeError, match="algorithm must be one with a split"):
        budgets.of(thresholds.exponential(bits=6, epsilon=1.0))
    with pytest.raises(ValueError, match="calibration"):
        budgets.of(learner(calibration="printed"))
    printed = points.point_learner(bits=64, k=2, epsilon=1.0, delta=1e-6, alpha=0.1, n=10**6, calibration="printed")
    with pytest.raises(ValueError, match=r"learner\.calibration must be 'proved'"):
        budgets.of(printed)
    noisy = dataclasses.replace(openings()[4], accountant="slicing")
    with pytest.raises(ValueError, match=r"solver\.accountant must be 'basic' or 'optimal'"):
        budgets.of(noisy)
    budgeted = opened
    with pytest.raises(ValueError, match="exactly one of error and failure"):
        tune.tune(budgeted, hills(0, 8))
    with pytest.raises(ValueError, match="key must be given"):
        tune.tune(budgeted, lambda key: None, error=0.25)
    with pytest.raises(ValueError, match=r"data must be a list of datasets, .* got Sample: a single one is \[data\]"):
        tune.tune(budgeted, builders.mixed_sample(), error=0.25)
    with pytest.raises(TypeError, match="budgeted must be a Budgeted"):
        tune.tune(learner(), hills(0, 8), error=0.25)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="optimizer"):
        tune.tune(budgeted, hills(0, 8), error=0.25, optimizer=0.1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="start must be a point like"):
        tune.tune(budgeted, hills(0, 8), error=0.25, start=jax.tree.map(lambda leaf: jnp.zeros(7), budgeted.start))
    with pytest.raises(ValueError, match="learning_rate"):
        tune.tune(budgeted, hills(0, 8), error=0.25, learning_rate=0.0)
    overspent = dataclasses.replace(
        budgeted, spend=lambda point: jax.tree.map(lambda leaf: 1.2 * leaf, budgeted.spend(point))
    )
    with pytest.raises(ValueError, match="spend must keep"):
        overspent.rounded(overspent.start)
    with pytest.raises(TypeError, match="point must hold known numbers"):
        jax.eval_shape(budgeted.rounded, budgeted.start)


PLANNED = {
    "tree_log": lambda e: interior_point.tree_log(bits=8, epsilon=e, delta=1e-6, depth=1),
    "set cover": lambda e: conjunctions.conjunction(bits=4, k=2, epsilon=e, delta=1e-6, alpha=0.2),
    "rectangles": lambda e: rectangles.rectangles(axes=1, bits=4, epsilon=e, delta=1e-6, beta=0.1, accountant="basic"),
}


@pytest.mark.parametrize("name", PLANNED)
def test_factories_that_plan_on_the_host_refuse_a_traced_budget_by_name(name: str) -> None:
    with pytest.raises(TypeError, match=r"epsilon"):
        jax.eval_shape(PLANNED[name], jnp.float32(1.0))


def test_a_way_without_a_slope_is_refused(opened: budgets.Budgeted) -> None:
    def steep(algorithm: Any, data: Any) -> Any:
        return 0.5 + jnp.sqrt(sum(jnp.sum(0.0 * each) for each in jax.tree.leaves(floats.partition(algorithm)[0])))

    with pytest.raises(ValueError, match="failure must have a finite logarithm and gradient along the way, got ln"):
        tune.tune(opened, np.zeros((1, 1)), failure=steep, steps=1, optimizer=optax.zero_nans())


@pytest.mark.parametrize("optimizer", [optax.polyak_sgd(f_min=-5.0), builders.thorough(optax.lbfgs())])
def test_optimizers_may_look_at_the_value_and_along_a_line(opened: budgets.Budgeted, optimizer: Any) -> None:
    def failure(algorithm: Any, data: Any) -> Any:  # its program is small
        return jnp.mean(algorithm.split.choices**2)

    found = tune.tune(opened, np.zeros((1, 1)), failure=failure, steps=2, optimizer=optimizer)
    assert found.losses[1] < found.losses[0] and found.guarantee.covers(opened.total.epsilon, opened.total.delta)


def test_one_dataset_alone_is_refused() -> None:
    with pytest.raises(ValueError, match=r"data must be a list of datasets, .*: a single one is \[data\]"):
        tune.stacked({"n": np.int32(3)})


def test_the_best_point_of_the_way_is_kept(opened: budgets.Budgeted) -> None:
    """An ascent ends worse than it began."""

    def failure(algorithm: Any, data: Any) -> Any:
        epsilons = jax.tree.leaves(floats.partition(algorithm)[0])
        return 0.1 + 1e-3 * sum(jnp.sum(jnp.square(each)) for each in epsilons)

    found = tune.tune(opened, np.zeros((1, 1)), failure=failure, steps=3, optimizer=optax.sgd(-1.0))
    assert found.losses[-1] > found.losses[0] == found.losses.min()
    jax.tree.map(np.testing.assert_array_equal, found.point, found.at(0))


@pytest.mark.slow
def test_data_may_be_drawn_anew_in_every_step_and_any_optimiser_may_descend() -> None:
    def draw(key: Any) -> Sample:
        key_cut, key_x = jax.random.split(key)
        x = jnp.sort(jax.random.randint(key_x, (63,), 0, 64))
        cut = jax.random.randint(key_cut, (), 8, 56)
        return Sample(x=x.astype(jnp.uint32)[:, None], y=(x < cut).astype(jnp.int32), n_valid=jnp.int32(63))

    budgeted = budgets.of(learner(1.0))
    found = tune.tune(budgeted, draw, error=0.25, steps=60, optimizer=optax.sgd(0.5), key=jax.random.key(0), worst=True)
    assert np.mean(found.losses[-10:]) < np.mean(found.losses[:10]) and found.guarantee.covers(1.0, DELTA)


@pytest.mark.slow
def test_fewer_examples_are_needed_with_a_tuned_budget() -> None:
    before, after, found = tune.tuned_least_n(
        budgets.of(learner(4.0)),
        lambda n: hills(3, 8, n, 255),
        beta=0.2,
        error=0.3,
        start=64,
        maximum=255,
        steps=40,
        rounds=2,
    )
    assert before.n is not None and after.n is not None and after.n < before.n
    assert found.guarantee.covers(4.0, DELTA)


def tree_log_data() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(0)
    combs = [[2 ** (16 - k) - 1 for k in sorted(rng.integers(0, 17, 120), reverse=True)] for _ in range(4)]
    budget = planning.Budget(0.8, 4e-4, 0.28, 2e-4, 0.24, 0.4)
    plan = {"bits": 16, "depth": 1, "beta": 0.1, "guarantee": Guarantee(2.0, 1e-3, ADD_OR_REMOVE_ONE)}
    solver = interior_point.tree_log_planned(bits=16, plan=planning.plan(budget, accountant="basic", **plan))
    return solver, [builders.points_of(comb, 16, 127) for comb in combs]


def point_learner_data() -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(0)
    xs = [rng.choice(4, 120, p=[0.5, 0.25, 0.15, 0.1]) for _ in range(4)]
    learner = points.point_learner(bits=8, k=2, epsilon=2.0, delta=1e-3, alpha=0.1, beta=0.5)
    return learner, [builders.multi_sample_of(x, np.stack([x == 1, x == 2], axis=1), 8, 127) for x in xs]


def amplified_data() -> tuple[Any, list[Any]]:
    optimizer = quasi_concave.amplified(bits=8, epsilon=2.0, delta=1e-3, depth=1)
    pieces = [ordered.from_breakpoints([0, at, at + 9], [0.0, 300.0, 40.0], 256, beyond=0.0) for at in (20, 100)]
    return optimizer, [quasi_concave.problem(one, promise=300, alpha=0.5) for one in pieces]


@pytest.mark.slow
@pytest.mark.parametrize("given", [tree_log_data, point_learner_data, amplified_data])
def test_whatever_has_a_split_can_be_tuned(given: Any) -> None:
    algorithm, data = given()
    budgeted = budgets.of(algorithm)
    found = tune.tune(budgeted, data, failure=misses, steps=30, learning_rate=0.1)
    assert found.losses.min() < found.losses[0] - 0.01
    assert found.guarantee.covers(budgeted.total.epsilon, budgeted.total.delta)
    # What is released is as good as what was tuned, rounding included.
    assert np.log(np.mean(tune.failures(found.algorithm, data, misses))) < found.losses[0]


def misses(algorithm: Any, data: Any) -> Any:
    return algorithm.failure_probability(data, **({"error": 0.1} if isinstance(data, MultiSample) else {}))


# ------------------------------------------------------------------------------------------------- plans that are listed


def conjunctions_data(seed, n=1024, bits=12, k=3):
    """Half of the examples are positive: the first k variables are ones."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, bits)) < 0.5
    x[: n // 2, :k] = True
    x = x[rng.permutation(n)]
    return Assignments.create(x, x[:, :k].all(axis=1))


def simulated_failure(runs):
    """(learner, data) -> the share of runs, by fixed keys, that release nothing or have more than a tenth of the examples wrong."""

    def failure(learner, data):
        def wrong(key):
            found = learner(key, data)
            missed = bits.count((label(found.hypothesis.literals, data.x, disjunction=False) ^ data.y) & data.valid)
            return (found.status != 0) | (missed * 10 > data.n_valid)

        return jnp.mean(jax.vmap(wrong)(jax.random.split(jax.random.key(5), runs)).astype(float))

    return failure


@pytest.mark.parametrize("kind", ["shared_test", builders.slow("composition")])
def test_plans_of_set_cover_keep_the_total(kind):
    """Control: a rate a hundredth larger spends more."""
    learner = conjunctions.conjunction(bits=12, k=3, epsilon=1.0, delta=1e-6, alpha=0.1, accountant=kind)
    plans = budgets.set_cover_plans(learner, rounds=[3, 14], shares=[0.1], shifts=[0.3])
    assert all(plan.guarantee().covers(1.0, 1e-6) for plan in plans)
    more = [dataclasses.replace(plan, rate=1.01 * plan.rate).guarantee() for plan in plans]
    assert not any(each.covers(1.0, 1e-6) for each in more)
    with pytest.raises(ValueError, match="rounds"):
        budgets.set_cover_plans(learner, rounds=[0])


def test_plans_refuse_by_name():
    with pytest.raises(TypeError, match="learner"):
        budgets.set_cover_plans(thresholds.exponential(bits=4, epsilon=1.0))
    with pytest.raises(ValueError, match="algorithms"):
        tune.best([], [], error=0.1)
    plans = [thresholds.exponential(bits=4, epsilon=epsilon) for epsilon in (1.0, 2.0)]
    with pytest.raises(ValueError, match=r"failure must be a number for every algorithm, got \[ 1. nan\]"):
        tune.best(plans, np.zeros((3, 1)), failure=lambda plan, data: jnp.where(plan.epsilon > 1, jnp.nan, 1.0))


@pytest.mark.slow
def test_a_listed_plan_fails_less_on_unseen_data():
    """Where the derived plan of 14 rounds fails often, one of 3 rounds does not: chosen on one dataset, judged on another."""
    learner = conjunctions.conjunction(bits=12, k=3, epsilon=1.0, delta=1e-6, alpha=0.1)
    at = [dataclasses.replace(conjunctions_data(seed), n_valid=np.int32(260)) for seed in (0, 1)]
    plans = budgets.set_cover_plans(learner, rounds=[3, 14])
    chosen, found = tune.best(plans, at[:1], failure=simulated_failure(200))
    assert chosen.rounds == 3 and found.min() < 0.15 < 0.25 < found[0]
    before, after = (float(tune.failures(one, at[1:], simulated_failure(200))[0]) for one in (learner, chosen))
    assert after < 0.6 * before


def test_many_mechanisms_are_counted_at_once() -> None:
    """Logarithms of binomial coefficients, which are integers of up to 16,383 bits."""
    inside, choices = accountant._terms((16_383,))
    assert len(inside) == 16_384
    assert choices[[0, 1, 2, -1]].tolist() == [0.0, *(math.log(math.comb(16_383, k)) for k in (1, 2)), 0.0]
    assert choices[8_191] == pytest.approx(math.log(math.comb(16_383, 8_191)), rel=1e-15)


def test_totals_and_counts_that_are_none_are_refused():
    """Six epsilons where one is due once gave a single number, a mixture."""
    with pytest.raises(ValueError, match="epsilon must be a single number"):
        accountant.total_delta([0.1, 0.2], [0.01, 0.01], jnp.arange(6.0), [1, 2])
    with pytest.raises(TypeError, match="times must be a list"):
        accountant.total_delta([0.1], [0.01], 1.0, 3)
    for name, wrong in (("total", -1.0), ("total", True), ("times", [1, 0]), ("times", [1, -2]), ("times", 2)):
        with pytest.raises((TypeError, ValueError), match=f"{name}.* must"):
            budgets.shares(jnp.zeros(2), **{"total": 1.0, "times": [1, 2], name: wrong})
    for none in (None, [None], [0.5, [0.4, 0.2]], {"a": 0.5}):
        with pytest.raises(TypeError, match="epsilons must be an array of numbers"):
            accountant.total_delta(none, [0.0], 0.5, (2,))
        with pytest.raises(TypeError, match="epsilon must be an array of numbers"):
            accountant.total_delta([0.5], [0.0], none, (2,))
        with pytest.raises(TypeError, match="logits must be an array of numbers"):
            budgets.shares(none, 1.0, (2,))
    for wrong in (math.inf, math.nan):  # the shares were NaN
        with pytest.raises(ValueError, match="logits must be"):
            budgets.shares([wrong, 0.0], 1.0, (1, 2))


def test_more_delta_needs_no_more_points():
    """Where delta is large, a search from one starting point ended at 318 points for delta = 0.3, and at 288 for 0.17."""
    n = [
        planning.calibrate(bits=64, epsilon=0.1, delta=delta, beta=0.1, accountant="optimal", depth=1).sample_size
        for delta in (0.17, 0.3)
    ]
    assert n[1] < n[0] < 260


@pytest.mark.parametrize(("epsilon", "delta", "most"), [(0.29, 0.5, 200), (1.0, 0.99, 50)])
def test_a_search_that_no_longer_depends_on_a_part_leaves_it_some_budget(epsilon, delta, most):
    """It used to take the walk's epsilon to 1e-40, which no float32 holds."""
    assert tree_log(bits=4, epsilon=epsilon, delta=delta, beta=0.05, depth=1).sample_size(beta=0.05) < most


def test_a_failure_must_be_one_number() -> None:
    """A whole law, P[event] and P[not], would have the mean 1/2 whatever the budget."""
    learner = thresholds.exponential(bits=6, epsilon=1.0)
    data = [builders.mixed_sample()]
    with pytest.raises(TypeError, match="failure must return one probability, got shape"):
        tune.best([learner], data, failure=lambda algorithm, sample: algorithm.probability(sample, (3, 5)))


@pytest.mark.thorough
def test_the_logarithm_has_derivatives_where_the_total_is_rounded_to_1() -> None:
    """1 - (1 - d)^2 is 1 in float64 at d = 1 - 1e-9; in forward mode the derivatives were NaN."""
    with jax.enable_x64():
        given = jnp.array([50.0]), jnp.array([1 - 1e-9]), jnp.array(120.0)
        log = jax.jit(lambda *given: accountant.log_total_delta(*given, (2,)))
        slopes = [jax.jit(mode(log, (0, 1, 2)))(*given) for mode in (jax.jacfwd, jax.jacrev)]
    for slope in jax.tree.leaves(slopes):
        assert np.all(np.abs(slope) < 1e-6)


def test_what_only_tuning_needs_is_refused_before_the_first_search(opened: budgets.Budgeted) -> None:
    def sampler(n: int) -> Any:
        raise RuntimeError("it was searched")

    with pytest.raises(ValueError, match="rounds must be >= 1"):
        tune.tuned_least_n(opened, sampler, beta=0.1, error=0.25, rounds=0)
    with pytest.raises(TypeError, match="stepz"):
        tune.tuned_least_n(opened, sampler, beta=0.1, error=0.25, stepz=3)
    with pytest.raises(TypeError, match="budgeted must be a Budgeted"):
        tune.tuned_least_n(learner(), sampler, beta=0.1, error=0.25)  # type: ignore[arg-type]


def test_points_that_are_none_are_refused_by_name(opened: budgets.Budgeted) -> None:
    with pytest.raises(TypeError, match="point must be like"):
        opened.rounded({key: leaf for key, leaf in opened.start.items() if key != "epsilon"})
    with pytest.raises(TypeError, match="point must be an array of numbers"):
        opened.rounded({**opened.start, "epsilon": "x"})
    with pytest.raises(ValueError, match="start must hold finite numbers"):
        tune.tune(opened, hills(0, 8), error=0.25, start=jax.tree.map(lambda leaf: leaf * np.nan, opened.start))
