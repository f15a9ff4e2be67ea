"""Exact privacy of the interior point solvers: the hockey-stick divergence over all neighbouring multisets of small domains, and over pairs
that hill-climbing finds in larger ones. All laws are evaluated in float64."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import planning
from dpjax.verify import histograms, neighbours, probabilities, records, worst_pair


def plan(epsilon, delta, *, depth=1, m1=1, slice_epsilon=None, **replaced):
    """All mechanisms have one budget, slices are as small as privacy allows; the claim is basic composition at the largest epsilon."""
    budget = planning.Budget(epsilon, delta, epsilon, delta, epsilon, epsilon, slice_epsilon)
    plain = dataclasses.replace(budget, slice_epsilon=None)
    whole = plain.guarantee("basic", Guarantee(math.inf, 1.0, ADD_OR_REMOVE_ONE), depth)
    made = planning.plan(budget, bits=8, depth=depth, beta=0.5, accountant="basic", guarantee=whole)
    return dataclasses.replace(made, m1=m1, m2=made.K, **replaced)


def law_of(solver):
    """ln P of every outcome, of points given by (values, count)."""

    def law(row):
        values, count = row
        return jnp.log(solver.pmf(Points.create(values[:, None].astype(jnp.uint32), count)))

    return law


def tables_of(solvers, datasets):
    """ln P of every outcome of every dataset, for solvers that differ in their numbers alone: one program."""
    values, counts = datasets
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *solvers)

    def law(row):
        *points, which = row
        one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[which], stacked)
        return law_of(dataclasses.replace(one, bits=solvers[0].bits))(points)

    which, copies = np.repeat(np.arange(len(solvers)), len(counts)), len(solvers)
    everywhere = np.tile(values, (copies, 1)), np.tile(counts, copies), which
    table = probabilities(law, everywhere, batch_size=len(counts))
    return np.split(np.log(np.maximum(table, 1e-300)), copies)


def worst_row_pair(table, pairs, epsilon):
    """`worst_pair` of laws that are already tabulated."""
    return worst_pair(lambda row: row, table, pairs, epsilon, batch_size=len(table))


def everything(domain, largest, capacity):
    """All multisets of at most `largest` points, padded, and the pairs of neighbours."""
    counts = histograms(domain, range(largest + 1))
    return records(counts, capacity), neighbours(counts, ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize(
    ("bits", "largest", "epsilon", "delta", "depth"),
    [
        pytest.param(2, 8, 2.0, 0.05, 1, marks=pytest.mark.thorough),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((2, 14, 2.0, 0.05, 1), (1, 30, 1.0, 0.1, 1), (2, 14, 1.0, 0.2, 2), (3, 7, 2.0, 0.2, 1))
        ),
    ],
)
def test_tree_log_keeps_its_guarantee(bits, largest, epsilon, delta, depth):
    solver = interior_point.tree_log_planned(bits=bits, plan=plan(epsilon, delta, depth=depth))
    datasets, pairs = everything(2**bits, largest, 31)
    guarantee = solver.guarantee()
    size = len(datasets[1])
    batch = next(
        batch for batch in range(512, 0, -1) if size % batch == 0
    )  # no remainder: it would be a second program
    table = np.log(np.maximum(probabilities(law_of(solver), datasets, batch_size=batch), 1e-300))
    worst_of = functools.partial(worst_row_pair, table, pairs)
    assert not worst_of(guarantee.epsilon).refutes(guarantee)
    assert worst_of(epsilon).delta > 0.2 * delta  # the data do reach the tests


@pytest.mark.slow
def test_the_verifier_sees_a_walk_without_tests():
    """A walk that never stops, with a deep slice too small for its ties, passes on data that are anything but adjacent."""
    solver = interior_point.tree_log_planned(bits=2, plan=plan(1.0, 0.05))
    guarantee = solver.guarantee()
    broken = dataclasses.replace(solver.parameters, never_below=np.int32(99), deep=np.int32(5))
    solver = dataclasses.replace(solver, parameters=broken)
    assert solver.guarantee().is_none
    datasets, pairs = everything(4, 13, 15)
    assert worst_pair(law_of(solver), datasets, pairs, guarantee.epsilon).refutes(guarantee)


@pytest.mark.slow
def test_a_guarantee_follows_from_the_parameters_in_use():
    """When a sweep or an optimiser changes the parameters, the guarantee follows, and what the verifier finds is within it."""
    solver = interior_point.tree_log_planned(bits=2, plan=plan(0.3, 0.01))
    parameters = solver.parameters
    large = {name: np.float64(100.0) for name in ("base_epsilon", "select_epsilon", "count_epsilon")}
    changed = dataclasses.replace(solver, parameters=dataclasses.replace(parameters, **large))
    datasets, pairs = everything(4, 4, 7)
    tables = tables_of([solver, changed], datasets)
    before, after = (worst_row_pair(table, pairs, solver.guarantee().epsilon) for table in tables)
    assert not before.refutes(solver.guarantee())
    assert after.refutes(solver.guarantee()) and not after.refutes(changed.guarantee())
    assert changed.guarantee().epsilon > 300
    for stale in (
        {"walk_epsilon": np.float64(0.4)},  # the anchors are those of 0.3
        {"deep": parameters.deep - 1},
        {"never_below": np.int32(1)},
        {"select_delta": np.float64(0.6)},
    ):
        replaced = dataclasses.replace(solver, parameters=dataclasses.replace(parameters, **stale))
        assert replaced.guarantee().is_none, stale
    assert replaced.guarantee().relation == ADD_OR_REMOVE_ONE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exponential", "rec_concave"])
def test_depth_solvers_keep_their_guarantees(name):
    if name == "exponential":
        solver = interior_point.exponential(bits=3, epsilon=1.2)
    else:
        solver = interior_point.rec_concave(bits=6, epsilon=6.0, delta=0.3, promise=2.0)
    datasets, pairs = everything(8, 4, 7)
    values = datasets[0] * (2 ** (int(solver.bits) - 3))
    guarantee = solver.guarantee()
    worst = worst_pair(law_of(solver), (values, datasets[1]), pairs, guarantee.epsilon)
    assert not worst.refutes(guarantee)
    if name == "exponential":
        assert worst_pair(law_of(solver), (values, datasets[1]), pairs, 0.9 * guarantee.epsilon).delta > 1e-3


@pytest.mark.slow
def test_noisy_slices_keep_the_accountants_promise():
    """Slicing's own, numerical accountant: the whole of TreeLog with one level against W composed with one walk."""
    epsilon, delta = 1.5, 0.2
    made = plan(epsilon, delta, slice_epsilon=1.5)
    solver = interior_point.tree_log_planned(bits=1, plan=made)
    datasets, pairs = everything(2, 12, 15)
    run = made.budget.run(1)
    for total in (2.0, 4.0, 6.0):
        assert worst_pair(law_of(solver), datasets, pairs, total, batch_size=16).delta <= run.delta(total)


def climb(solver, bits, capacity, epsilon, steps, seed):
    """The worst neighbouring pair that add/remove/move steps find from random multisets."""
    rng = np.random.default_rng(seed)
    best, state = 0.0, rng.integers(0, 2**bits, 10).tolist()
    for _ in range(steps):
        family = []
        for _ in range(12):
            new = list(state)
            for _ in range(int(rng.integers(0, 4))):
                if new and (len(new) >= capacity - 1 or rng.random() < 0.5):
                    new.pop(int(rng.integers(len(new))))
                if len(new) < capacity - 1:
                    new.append(int(rng.choice(new)) if new and rng.random() < 0.6 else int(rng.integers(2**bits)))
            family.append(new)
        rows = [
            row
            for new in family
            for row in (new, [*new, int(rng.choice(new or [0]))], [*new, int(rng.integers(2**bits))])
        ]
        values = np.array([row + [0] * (capacity - len(row)) for row in rows], np.int32)
        p = probabilities(law_of(solver), (values, np.array([len(row) for row in rows], np.int32)), batch_size=36)
        scores = []
        for i in range(0, len(rows), 3):
            several = [(p[i + a], p[i + b]) for a, b in ((0, 1), (1, 0), (0, 2), (2, 0))]
            scores.append(max(float(np.maximum(x - math.exp(epsilon) * y, 0).sum()) for x, y in several))
        if max(scores) >= best:
            best, state = max(scores), family[int(np.argmax(scores))]
    return best


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "epsilon", "delta", "depth"), [(4, 1.0, 0.1, 1), (5, 2.0, 0.05, 1), (4, 2.0, 0.1, 2)])
def test_no_climber_passes_the_guarantee(bits, epsilon, delta, depth):
    solver = interior_point.tree_log_planned(bits=bits, plan=plan(epsilon, delta, depth=depth))
    guarantee = solver.guarantee()
    for seed in range(3):
        assert climb(solver, bits, 63, guarantee.epsilon, 60, seed) <= guarantee.delta
    assert climb(solver, bits, 63, epsilon, 60, 9) > 0.2 * delta
