"""Reorder-Slice-Compute as masks: against plain lists, against its exact law, and in its two uses, TreeLog and rectangles."""

import math
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.accounting import slicing as accountant
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import wide
from dpjax.mechanisms.geometric import geometric
from dpjax.optimizers import slicing
from dpjax.optimizers.slicing import Delayed, Slicing, Step, cut, descending
from dpjax.verify import slicing_proof as proof

FALSE_ALARM = 2e-5


def key(seed=0):
    return jax.random.key(seed)


# ------------------------------------------------------------------------------------------------ against plain lists


def naive_cut(remaining, size, keys):
    """The first `size` remaining rows, sorted by tuples of Python numbers, then by row."""
    rows = [i for i, present in enumerate(remaining) if present]
    ordered = sorted(rows, key=lambda i: (*(k[i] for k in keys), i))
    taken = set(ordered[:size])
    return [i in taken for i in range(len(remaining))]


def cases():
    """Random datasets with many ties: (remaining, keys as arrays, keys as lists of Python numbers)."""
    rng = np.random.default_rng(5)
    rows = 13
    remaining = rng.random(rows) < 0.7
    small = rng.integers(0, 3, rows).astype(np.int32)
    signed = rng.choice([-(2**31), -1, 0, 2**31 - 1], rows).astype(np.int32)
    numbers = [int(rng.integers(0, 3)) * 2**64 + int(rng.integers(0, 2)) for _ in range(rows)]
    limbs = wide.from_ints(numbers, 70)
    yield remaining, (), []
    yield remaining, (jnp.asarray(small),), [small.tolist()]
    yield remaining, (limbs,), [numbers]
    yield remaining, (descending(limbs),), [[-x for x in numbers]]
    yield remaining, (jnp.asarray(small), limbs), [small.tolist(), numbers]
    yield remaining, (descending(jnp.asarray(small)), jnp.asarray(signed)), [(-small).tolist(), signed.tolist()]
    yield remaining, (descending(jnp.asarray(signed)),), [[-x for x in signed.tolist()]]
    yield remaining & False, (jnp.asarray(small),), [small.tolist()]


@pytest.mark.parametrize("case", [*range(4), *map(builders.thorough, range(4, 8))])
def test_cut_takes_the_first(case):
    remaining, keys, lists = list(cases())[case]
    run = jax.jit(lambda size: cut(key(), jnp.asarray(remaining), size, order=keys, slice_epsilon=None))
    for size in range(15):
        taken, rest = (np.asarray(mask) for mask in run(size))
        assert taken.tolist() == naive_cut(remaining, size, lists)
        assert np.array_equal(taken | rest, remaining) and not np.any(taken & rest)


@pytest.mark.thorough
def test_cut_under_x64(x64):
    remaining, keys, lists = list(cases())[4]
    run = jax.jit(lambda k, rate: cut(k, jnp.asarray(remaining), 3, order=keys, slice_epsilon=rate)[0])
    assert run(key(), math.inf).tolist() == naive_cut(remaining, 3, lists)
    assert np.asarray(run(key(), 0.1)).sum() > 3


# ---------------------------------------------------------------------------------------------------- slice sizes


def test_slice_sizes_are_geometric():
    """P[size > m + j] = exp(-(j+1) epsilon); a false alarm has probability below 2e-5. Negative control: 1.3 epsilon."""
    trials, epsilon, least = 40_000, 0.3, 2
    everyone = jnp.ones(64, bool)
    size = lambda k: cut(k, everyone, least, slice_epsilon=epsilon)[0].sum(dtype=jnp.int32)  # noqa: E731
    drawn = np.asarray(jax.jit(lambda k: jax.vmap(size)(jax.random.split(k, trials)))(key(1)))
    assert drawn.min() == least

    def fits(rate, steps=10):
        log = math.log(2 * steps / FALSE_ALARM)
        tails = [math.exp(-(j + 1) * rate) for j in range(steps)]
        seen = [np.mean(drawn > least + j) for j in range(steps)]
        radius = [math.sqrt(2 * p * (1 - p) * log / trials) + 2 * log / (3 * trials) for p in tails]
        return all(abs(a - b) <= r for a, b, r in zip(seen, tails, radius, strict=True))

    assert fits(epsilon) and not fits(1.3 * epsilon)


@jax.jit
def two_cuts(remaining, order, sizes):
    """Both ends, taken by one cut after the other, then by `take_ends`."""
    backwards = (*(descending(part) for part in order), descending(jnp.arange(remaining.shape[0], dtype=jnp.int32)))
    low, rest = slicing.take(remaining, sizes[0], order)
    high, rest = slicing.take(rest, sizes[1], backwards)
    return (jnp.stack([low, high]), rest), slicing.take_ends(remaining, sizes, order)


@pytest.mark.slow
def test_both_ends_are_two_cuts_in_opposite_orders():
    """With ties, and sizes that exhaust the rows; ties are broken by row, in reverse for the second cut."""
    for remaining, order, _ in list(cases())[1::3]:
        for sizes in [(0, 0), (2, 3), (4, 9), (20, 1), (0, 20)]:
            (taken, left), found = two_cuts(jnp.asarray(remaining), order, jnp.asarray(sizes, jnp.int32))
            assert (taken == found[0]).all() and (left == found[1]).all()


def test_consecutive_slices_are_cuts_in_one_order():
    sizes = [2, 0, 3, 7, 1]
    remaining, order, _ = list(cases())[1]
    rest, ends, one_cut, consecutive = remaining, [], jax.jit(slicing.take), jax.jit(slicing.consecutive)
    for size in sizes:
        _, rest = one_cut(rest, np.int32(size), order)
        ends.append(int(remaining.sum() - np.asarray(rest).sum()))
    assert consecutive(np.array(sizes, np.int32), np.int32(remaining.sum())).tolist() == ends
    huge = np.full(5, 2**31 - 1, np.int32)
    assert consecutive(huge, np.int32(5)).tolist() == [5] * 5


def test_no_noise_is_none_or_infinity():
    """On the host this saves a whole program; traced, infinity is a rate like any other."""
    everyone = jnp.ones(9, bool)
    plain = np.asarray(cut(key(), everyone, 4, slice_epsilon=None)[0])
    assert plain.sum() == 4
    assert np.array_equal(plain, cut(key(), everyone, 4, slice_epsilon=math.inf)[0])
    traced = jax.jit(lambda rate: cut(key(), everyone, 4, slice_epsilon=rate)[0])
    assert np.array_equal(plain, traced(math.inf))
    assert np.asarray(traced(0.1)).sum() > 4


def test_one_program_serves_all_budgets_and_sizes():
    traces = []

    @jax.jit
    def run(k, remaining, size, epsilon):
        traces.append(None)
        first = Slicing.create(remaining, slice_epsilon=epsilon).cut(k, size)
        count, done = first.compute(k, lambda _, mask: mask.sum(dtype=jnp.int32), epsilon=epsilon)
        return count, done.remaining, done.spent

    for epsilon in np.linspace(0.05, 2.0, 20):
        count, rest, spent = run(key(3), jnp.ones(31, bool), int(10 * epsilon), float(epsilon))
        assert int(count) + np.asarray(rest).sum() == 31 and int(count) >= int(10 * epsilon)
        assert float(spent.computes[0][0][0]) == np.float32(epsilon)
    assert len(traces) == 1


# ----------------------------------------------------------------------------------------------- the law of Algorithm 1

DATA = (0, 1, 1, 2, 3, 3)
RATIO = Fraction(3, 4)


def program_told(told):
    """In plain Python: a slice by parity and value, then one from above or below depending on what was found, then a delayed look."""
    size_of = lambda taken: [(len(taken), Fraction(1))]  # noqa: E731
    if len(told) == 0:
        return proof.Step(1, lambda data: tuple(sorted(data, key=lambda x: (-(x % 2), x))), size_of)
    if len(told) == 1:
        return proof.Step(told[0] % 2, lambda data: data[::-1] if told[0] > 2 else data, None)
    total = lambda taken: [(sum(taken), Fraction(1))]  # noqa: E731
    return proof.Delayed(1, total) if len(told) == 2 else None


def masked_run(k, rows, slice_epsilon):
    """The same with masks."""
    x = jnp.asarray(rows)
    size_of = lambda _, mask: mask.sum(dtype=jnp.int32)  # noqa: E731
    total = lambda _, mask: jnp.where(mask, x, 0).sum(dtype=jnp.int32)  # noqa: E731
    steps = [
        lambda told: Step(1, lambda rest: (-(x % 2), x), size_of, epsilon=1.0),
        lambda told: Step(told[0] % 2, lambda rest: (jnp.where(told[0] > 2, -x, x),)),
    ]
    delayed = [lambda told: Delayed(1, total, epsilon=1.0)]
    present = jnp.arange(len(rows)) < len(DATA)
    told, run = slicing.reorder_slice_compute(k, present, steps, delayed=delayed, slice_epsilon=slice_epsilon)
    return told[0], told[2], jnp.where(run.remaining, x, 0).sum(dtype=jnp.int32)


@pytest.mark.thorough
def test_runs_have_the_exact_law_of_algorithm_1():
    """Every outcome's frequency within its radius; a false alarm has probability below 2e-5. Negative control: 1.3 epsilon."""
    trials = 16_000
    exact = {}
    for (told, rest), weight in proof.true_law(DATA, program_told, ratio=RATIO).items():
        outcome = (told[0], told[2], sum(rest))
        exact[outcome] = exact.get(outcome, 0.0) + float(weight)
    sample = jax.jit(jax.vmap(lambda k, rate: masked_run(k, DATA, rate), in_axes=(0, None)))

    def fits(rate):
        outcomes, counts = np.unique(
            np.stack(sample(jax.random.split(key(2), trials), rate)), axis=1, return_counts=True
        )
        seen = {tuple(map(int, o)): c / trials for o, c in zip(outcomes.T, counts, strict=True)}
        log = math.log(2 * len(exact) / FALSE_ALARM)
        radius = {o: math.sqrt(2 * p * (1 - p) * log / trials) + 2 * log / (3 * trials) for o, p in exact.items()}
        return seen.keys() <= exact.keys() and all(abs(seen.get(o, 0.0) - p) <= radius[o] for o, p in exact.items())

    epsilon = -math.log(RATIO)
    assert len(exact) > 10
    assert fits(epsilon) and not fits(1.3 * epsilon)


@pytest.mark.slow
def test_padding_and_compilation_change_nothing():
    """Same keys, alone or in a batch, with rubbish in padded rows."""
    keys = lambda: jax.random.split(key(4), 20)  # noqa: E731
    padded = (*DATA, -7, 99, 3, 0, 1)
    batch = jax.jit(jax.vmap(lambda k: masked_run(k, padded, 0.3)))(keys())
    plain = jax.jit(jax.vmap(lambda k: masked_run(k, DATA, 0.3)))(keys())
    assert all(np.array_equal(a, b) for a, b in zip(batch, plain, strict=True))
    alone = jax.jit(lambda k: masked_run(k, padded, 0.3))(keys()[7])
    assert [int(value) for value in alone] == [int(values[7]) for values in plain]


def test_row_order_does_not_matter_when_keys_are_whole_records():
    rng = np.random.default_rng(6)
    points = rng.integers(0, 4, (20, 2)).astype(np.uint32)
    slices, everyone = set(), jnp.ones(20, bool)
    run = jax.jit(lambda points: cut(key(8), everyone, 6, order=(points[:, 1], points[:, 0]), slice_epsilon=0.4))
    for _ in range(5):
        points = rng.permutation(points)
        taken, _ = run(points)
        slices.add(tuple(sorted(map(tuple, points[np.asarray(taken)].tolist()))))
    assert len(slices) == 1


# ------------------------------------------------------------------------------------------------------ the two uses


@pytest.mark.thorough
def test_rectangles_take_both_ends_of_every_axis():
    """CLNSS §1.3.4 in two dimensions, on positive examples only; sizes are public here, so that all can be checked."""
    rng = np.random.default_rng(9)
    points, positive = rng.permutation(200).reshape(100, 2).astype(np.int32), rng.random(100) < 0.8

    @jax.jit
    def four_slices(k, x, positive):
        run = Slicing.create(positive, slice_epsilon=None)
        for axis in range(2):
            for order in ((x[:, axis], x), (descending(x[:, axis]), x)):
                k, key_cut, key_count = jax.random.split(k, 3)
                run = run.cut(key_cut, 5, order=order)
                count = lambda k, mask: geometric(k, mask.sum(dtype=jnp.int32), epsilon=0.25)  # noqa: E731
                _, run = run.compute(key_count, count, epsilon=0.25)
        return run

    run = four_slices(key(), points, positive)
    rest = {i for i in range(100) if positive[i]}
    for place, (axis, sign) in enumerate([(0, 1), (0, -1), (1, 1), (1, -1)]):
        wanted = sorted(rest, key=lambda i: sign * points[i, axis])[:5]
        assert sorted(np.flatnonzero(run.slices[place])) == sorted(wanted)
        rest -= set(wanted)
    assert set(np.flatnonzero(run.remaining)) == rest
    assert run.spent.worst() == Guarantee(0.25, 0.0, ADD_OR_REMOVE_ONE)
    assert len(run.spent.computes) == 4


def test_tree_log_takes_left_and_deep_slices_of_wide_points():
    """A level of TreeLog: the smallest by value without a sort (rows are sorted), then the deepest by path level."""
    numbers = sorted([5, 2**69 + 1, 2**69 + 9, 2**69 + 2**33, 2**68, 2**20, 7, 2**69 + 3])
    points, everyone = wide.from_ints(numbers, 70), jnp.ones(8, bool)
    levels = jnp.asarray([(70 - (x ^ (2**69 + 1)).bit_length()) for x in numbers], jnp.int32)

    @jax.jit
    def two_slices(k, points, levels):
        key_left, key_deep, key_late = jax.random.split(k, 3)
        run = Slicing.create(everyone, slice_epsilon=None).cut(key_left, 2)
        run = run.cut(key_deep, 3, order=(descending(levels), points))
        return run.compute(key_late, lambda _, mask: mask.sum(dtype=jnp.int32), index=0, epsilon=0.5)

    late, run = two_slices(key(), points, levels)
    assert [numbers[i] for i in np.flatnonzero(run.slices[0])] == [5, 7]
    assert [numbers[i] for i in np.flatnonzero(run.slices[1])] == [2**69 + 1, 2**69 + 3, 2**69 + 9]
    assert late == 2 and run.spent.computes == (((0.5, 0.0),), ())


# -------------------------------------------------------------------------------------------------------- the budget


def spent_run():
    """Two slices; two computations on the first, one of them late."""
    look = lambda _, mask: mask.any()  # noqa: E731
    keys = jax.random.split(key(), 5)
    run = Slicing.create(jnp.ones(9, bool), slice_epsilon=0.05).cut(keys[0], 2)
    _, run = run.compute(keys[1], look, epsilon=0.0625)
    run = run.cut(keys[2], 2)
    _, run = run.compute(keys[3], look, epsilon=0.03125, delta=1e-9)
    return run.compute(keys[4], look, index=0, epsilon=0.015625)[1]


def test_spending_is_entered_slice_by_slice():
    spent = spent_run().spent
    assert spent.computes == (((0.0625, 0.0), (0.015625, 0.0)), ((0.03125, 1e-9),))
    assert [part.epsilon for part in spent.per_slice()] == [0.078125, 0.03125]
    assert spent.worst() == Guarantee(0.078125, 1e-9, ADD_OR_REMOVE_ONE)
    expected = accountant.Run(0.05, Guarantee(0.078125, 1e-9, ADD_OR_REMOVE_ONE), slices=2)
    assert spent.run() == expected
    assert 0.0 < spent.run().delta(1.0) < 1.0
    assert slicing.Spent(slice_epsilon=0.1).worst() == Guarantee(0.0, 0.0, ADD_OR_REMOVE_ONE)


def test_spending_survives_a_pytree_round_trip():
    run = spent_run()
    leaves, tree = jax.tree.flatten(run)
    again = jax.tree.unflatten(tree, leaves)
    assert again.spent == run.spent
    assert all(np.array_equal(a, b) for a, b in zip(again.slices, run.slices, strict=True))


# ------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_is_refused():
    everyone = jnp.ones(4, bool)
    with pytest.raises(ValueError, match=r"size must be .*, got -1"):
        cut(key(), everyone, -1, slice_epsilon=None)
    for size in (1.5, True, np.ones(2, np.int32)):
        with pytest.raises(TypeError, match="size must be an int"):
            cut(key(), everyone, size, slice_epsilon=None)
    with pytest.raises(
        TypeError, match=r"size must be an integer, got float32|parameter 'size'"
    ):  # beartype comes first
        jax.jit(lambda size: cut(key(), everyone, size, slice_epsilon=None))(1.5)
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="slice_epsilon must be"):
            cut(key(), everyone, 1, slice_epsilon=epsilon)
        with pytest.raises(ValueError, match="slice_epsilon must be"):
            Slicing.create(everyone, slice_epsilon=epsilon)
    with pytest.raises(ValueError, match=r"order\[1\] must have shape \(4,\) or \(4, limbs\), got \(4, 1, 1\)"):
        cut(key(), everyone, 1, order=(jnp.arange(4), jnp.zeros((4, 1, 1), int)), slice_epsilon=None)
    with pytest.raises(ValueError, match=r"order\[0\] must have shape \(4,\) or \(4, limbs\), got \(5,\)"):
        cut(key(), everyone, 1, order=(np.arange(5),), slice_epsilon=None)
    with pytest.raises(TypeError, match=r"order\[0\] must hold integers, got float32|parameter 'order'"):
        cut(key(), everyone, 1, order=(jnp.zeros(4),), slice_epsilon=None)
    with pytest.raises(ValueError, match=r"order\[0\] must hold integers that int32 holds, or be split into limbs"):
        cut(key(), everyone, 1, order=(np.array([2**40, 1, 2**33, 2]),), slice_epsilon=None)
    with pytest.raises(TypeError, match=r"remaining must be a mask|parameter 'remaining'"):
        cut(key(), jnp.ones(4, jnp.int32), 1, slice_epsilon=None)
    run = Slicing.create(everyone, slice_epsilon=None)
    with pytest.raises(ValueError, match="index must be one of the 0 slices cut so far, got -1"):
        run.compute(key(), lambda *_: None, epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon must be > 0"):
        run.cut(key(), 1).compute(key(), lambda *_: None, epsilon=0.0)
    with pytest.raises(ValueError, match=r"delta must be < 1.0, got 1.0"):
        run.cut(key(), 1).compute(key(), lambda *_: None, epsilon=1.0, delta=1.0)
    with pytest.raises(ValueError, match="slice_epsilon must be a number for the slicing accountants, got None"):
        run.spent.run()


def test_traced_sizes_beyond_int32_take_all_records():
    remaining = jnp.ones(5, bool)
    sizes = jax.jit(lambda size: jnp.sum(cut(jax.random.key(0), remaining, size, slice_epsilon=None)[0]))
    assert [int(sizes(np.uint32(size))) for size in (3, 2**31, 2**32 - 1)] == [3, 5, 5]


def test_a_run_that_cuts_nothing_costs_nothing():
    spent = Slicing.create(jnp.ones(5, bool), slice_epsilon=0.5).spent
    assert spent.run().best(delta=1e-6).guarantee.epsilon == 0.0
