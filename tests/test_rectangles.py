"""Rectangles by slices: the cuts, the law and its privacy on small domains, utility at the promised sample size, the accountants."""

import dataclasses
import functools
import itertools
import math
import types
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.accounting import (
    ADD_OR_REMOVE_ONE,
    Guarantee,
    composition,
    largest_range,
    largest_rho,
    slicing,
)
from dpjax.accounting.bounded import bounded_delta
from dpjax.concepts import rectangles as concept
from dpjax.data import algorithm
from dpjax.data.outcome import Outcome, Status
from dpjax.domains import wide
from dpjax.learners import pac, rectangles
from dpjax.learners.rectangles import planning
from dpjax.optimizers import interior_point
from dpjax.optimizers import slicing as paradigm
from dpjax.verify import exact
from dpjax.verify.plain import rectangles as twin

FALSE_ALARM = 2e-5
BITS, AXES = 16, 2
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1}


def test_distributions_take_numbers_of_numpy():
    """Sides of 64 bits, and `bits` of 8 bits, give what Python's integers give."""
    sides = {"low": [2**60] * 2, "high": [3 * 2**60] * 2}
    arrays = {name: np.array(side) for name, side in sides.items()}
    found, wanted = concept.log_uniform(bits=np.int64(64), **arrays), concept.log_uniform(bits=64, **sides)
    assert found.octaves.tolist() == wanted.octaves.tolist() == [60, 60]
    narrow = concept.uniform(bits=np.uint8(16), low=np.int16([100, 100]), high=np.int16([200, 200]))
    assert narrow.width.tolist() == concept.uniform(bits=16, low=[100] * 2, high=[200] * 2).width.tolist()
    with pytest.raises(ValueError, match="leave a grid point"):
        concept.uniform(bits=np.int8(64), low=[1, 2], high=[5, 6])


@functools.cache
def plan(accountant, *, axes=AXES, bits=BITS, solver="exponential", **changes):
    return rectangles.plan(axes=axes, bits=bits, accountant=accountant, solver=solver, **{**BUDGET, **changes})


def small(*, size, rate, epsilon, threshold, axes, bits, capacity):
    """A learner with these parameters, whatever is proved for them."""
    compute = Guarantee(epsilon, 0.0, ADD_OR_REMOVE_ONE)
    numbers = {"size": size, "slice_epsilon": rate, "compute": compute, "threshold": threshold, "capacity": capacity}
    return rectangles.from_plan(dataclasses.replace(plan("basic", axes=axes, bits=bits), **numbers))


def examples_of(points, labels, n_valid=None, rows=None):
    """Examples with one limb, padded on the host."""
    points, labels = np.asarray(points, np.uint32)[..., None], np.asarray(labels, np.int32)
    extra = 0 if rows is None else rows - len(labels)
    x, y = np.pad(points, ((0, extra), (0, 0), (0, 0))), np.pad(labels, (0, extra))
    return concept.Examples.create(x, y, len(labels) if n_valid is None else n_valid)


label = jax.jit(concept.label)


def random_examples(seed, rows, top=20):
    """Points with many ties, some of them negative."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, top, (rows, AXES)), rng.random(rows) < 0.8


# ------------------------------------------------------------------------------------------------------------ concept


def grid(bits, axes):
    return list(itertools.product(range(1 << bits), repeat=axes))


def test_label_and_error_by_enumeration():
    """Uniform on a domain small enough to count; rectangles that overlap, miss and are empty."""
    target = ([2, 5], [9, 6])
    d = concept.uniform(bits=4, low=target[0], high=target[1])
    points = grid(4, 2)
    x = np.asarray(points, np.uint32)[..., None]
    truth = [target[0][0] <= a <= target[1][0] and target[0][1] <= b <= target[1][1] for a, b in points]
    assert label(d.target, x).tolist() == truth
    error = jax.jit(d.error)
    for low, high in [([2, 5], [9, 6]), ([4, 0], [15, 5]), ([10, 5], [12, 6]), ([9, 9], [3, 3]), ([0, 0], [15, 15])]:
        h = concept.rectangle(bits=4, low=low, high=high)
        wrong = np.mean(np.asarray(label(h, x)) != np.asarray(truth))
        assert float(error(h)) == pytest.approx(wrong, abs=1e-6)
    assert float(error(concept.nothing(2, 1))) == pytest.approx(np.mean(truth), abs=1e-6)


@pytest.mark.parametrize(
    "d",
    [
        pytest.param(
            concept.uniform(bits=40, low=[2**38, 5], high=[2**39, 2**39]), marks=pytest.mark.slow, id="uniform"
        ),
        pytest.param(
            concept.log_uniform(bits=40, low=[2**38, 2**20], high=[3 * 2**38, 2**35], mass=0.3), id="log-uniform"
        ),
    ],
)
def test_the_sampler_follows_the_law(d):
    """Labels and a hypothesis's errors come at the stated rates; what `inside` draws is positive and has the law of positives."""
    draws = 20_000
    half = [(low + high) // 2 for low, high in zip(*concept.to_ints(d.target), strict=True)]
    h = concept.rectangle(bits=40, low=[2**38 + 2**19, 3], high=half)

    @jax.jit
    def measured(d, h, key, v):
        sample, positive = d.sample(key, draws, draws), jnp.moveaxis(d.inside(v), 0, 1)
        both = concept.Rectangle(low=wide.maximum(h.low, d.target.low), high=wide.minimum(h.high, d.target.high))
        found = sample.y, concept.label(h, sample.x), concept.label(d.target, positive), concept.label(h, positive)
        return found, (d.mass(d.target), d.error(h), d.mass(both))

    v = np.random.default_rng(1).integers(0, 2**32, (2, draws), np.uint32)
    (y, predicted, inside, hit), laws = jax.device_get(measured(d, h, jax.random.key(0), v))
    mass, error, share = map(float, laws)
    for events, p in [(int(y.sum()), mass), (int((predicted != y).sum()), error)]:
        assert stats.binomtest(events, draws, p).pvalue > FALSE_ALARM
        assert stats.binomtest(events, draws, p + 0.03).pvalue < FALSE_ALARM
    assert inside.all()
    assert stats.binomtest(int(hit.sum()), draws, share / mass).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_a_longer_sample_begins_with_the_shorter_one():
    for law in (
        concept.uniform(bits=20, low=[10, 10], high=[1000, 2000]),
        concept.log_uniform(bits=40, low=[2**30] * 3, high=[2**31] * 3),
    ):
        short, long = (law.sample(jax.random.key(3), rows, 20) for rows in (31, 63))
        assert jnp.array_equal(short.x[:20], long.x[:20])


def test_extreme_fractions_keep_their_side():
    d = concept.log_uniform(bits=64, low=[2**62], high=[3 * 2**62], mass=0.3)
    z = int(d.first[0])
    edges = np.asarray([[0, z - 1, z, 2**31 - 1, 2**31, 2**32 - 1 - z, 2**32 - z, 2**32 - 1]])
    x = jax.jit(concept.LogUniformProduct.quantile)(d, edges.astype(np.uint32))
    assert jax.jit(concept.label)(d.target, jnp.moveaxis(x, 0, 1)).tolist() == [0, 0, 1, 1, 1, 1, 0, 0]
    values = wide.to_ints(x[0])
    assert values == sorted(values) and values[0] < 2**60 and values[-1] > 3 * 2**62 + 2**60


# --------------------------------------------------------------------------------------------------------------- cuts


def noisy(size=5, rate=0.3, epsilon=0.5, threshold=1):
    """A learner with these numbers; one program serves them all."""
    return small(size=size, rate=rate, epsilon=epsilon, threshold=threshold, axes=AXES, bits=BITS, capacity=63)


@jax.jit
def slices(learner, key, sample):
    """Which slice each row is in."""
    return learner.slices(key, sample)


@functools.partial(jax.jit, static_argnames="high")
def cut_by_the_paradigm(remaining, size, x, *, high):
    """(An end of an axis, what remains) by `optimizers.slicing`."""
    backwards = paradigm.descending(jnp.arange(x.shape[0], dtype=jnp.uint32))
    order = (paradigm.descending(x), backwards) if high else (x,)
    run = paradigm.Slicing.create(remaining, slice_epsilon=None).cut(jax.random.key(0), size, order=order)
    return run.slices[0], run.remaining


def same(one, other):
    return jax.tree.all(jax.tree.map(lambda a, b: np.array_equal(a, b), one, other))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rate", [pytest.param(40.0, marks=pytest.mark.slow, id="public"), pytest.param(0.3, id="noisy")]
)
def test_slices_are_those_of_the_reference_and_of_the_paradigm(rate):
    """Ties, negatives, exhaustion; the same cuts by `optimizers.slicing` with given sizes."""
    noises = []
    for seed, rows in [(0, 60), (1, 60), (2, 12)]:
        points, labels = random_examples(seed, rows)
        sample = examples_of(points, labels, rows=63)
        where = np.asarray(slices(noisy(rate=rate), jax.random.key(seed), sample))[:rows]
        info = noisy(rate=rate)(jax.random.key(seed), sample).info
        sizes = [int(size) for size in info["sizes"]]
        expected, remaining = twin.slices(points.tolist(), labels.tolist(), sizes)
        assert where.tolist() == expected and int(info["remaining"]) == remaining
        noises += [size - 5 for size in sizes if remaining]
        left = np.pad(labels, (0, 63 - rows))
        points = np.asarray(sample.x)
        for number, size in enumerate(sizes):
            axis, high = divmod(number, 2)
            mask, left = cut_by_the_paradigm(left, np.int32(size), points[:, axis], high=bool(high))
            assert np.flatnonzero(mask).tolist() == np.flatnonzero(where == number).tolist()
    assert set(noises) == {0} if rate == 40.0 else len(set(noises)) > 1


@pytest.mark.slow
def test_faces_are_interior_points_and_negatives_change_nothing():
    learner = noisy(size=6, epsilon=20.0)
    points, _ = random_examples(3, 60, top=2**16)
    whole = examples_of(points, np.ones(60, int), rows=63)
    outcome = learner(jax.random.key(5), whole)
    where = np.asarray(slices(learner, jax.random.key(5), whole))[:60]
    faces = np.stack(concept.to_ints(outcome.hypothesis), axis=1).ravel()
    assert int(outcome.status) == Status.OK and bool(outcome.info["enough"])
    for number, face in enumerate(faces):
        slice_ = points[where == number, number // 2]
        assert slice_.min() <= face <= slice_.max()
    labels = np.arange(60) % 6 > 0
    both = [examples_of(points, labels, rows=63), examples_of(points[labels], np.ones(50, int), rows=63)]
    assert same(*[learner(jax.random.key(6), examples) for examples in both])


@pytest.mark.slow
def test_padding_and_vmap_change_nothing():
    """On two axes; the conformance suite has one."""
    points, labels = random_examples(4, 60)
    sample, learner, keys = examples_of(points, labels), noisy(), lambda: jax.random.split(jax.random.key(1), 3)
    alone = jax.device_get([learner(key, sample) for key in keys()])
    many = jax.device_get(jax.vmap(lambda key: learner(key, examples_of(points, labels, rows=127)))(keys()))
    assert all(same(jax.tree.map(lambda leaf, place=i: leaf[place], many), alone[i]) for i in range(3))


@pytest.mark.slow
def test_one_program_serves_all():
    points, labels = random_examples(4, 60)
    noisy()(jax.random.key(0), examples_of(points, labels))
    before = algorithm._run._cache_size()
    for size in range(5, 25):
        other = noisy(size=size, rate=0.1 * size, epsilon=0.05 * size, threshold=size)
        other(jax.random.key(0), examples_of(points, labels, 60 - size, rows=63))
    assert algorithm._run._cache_size() == before


@pytest.mark.slow  # one case of the sampler and the law, at the size that compiles longest
def test_too_few_examples_give_the_all_zero_hypothesis():
    outcome = noisy(size=12, epsilon=5.0, threshold=8)(
        jax.random.key(0), examples_of(np.zeros((3, AXES)), [1, 1, 0], 0, rows=63)
    )
    assert int(outcome.status) == Status.OK and not bool(outcome.info["enough"])
    assert label(outcome.hypothesis, np.zeros((256, AXES, 1), np.uint32)).tolist() == [0] * 256


# ------------------------------------------------------------------------------------------------------------ privacy


def face_law(learner, values, n_valid, noises, log_weights, *, bits):
    """ln P of every pair of faces an axis, then of all-zero: the sum over noises in the sizes."""
    axes = learner.axes
    x = values.astype(jnp.uint32).reshape(-1, axes, 1)
    sample = concept.Examples(x=x, y=jnp.ones((x.shape[0],), jnp.int32), n_valid=n_valid)
    faces = jnp.asarray(grid(bits, 2 * axes), jnp.uint32)[..., None]
    events = jax.vmap(lambda face: learner.check_event((face, face + 1)))(faces)
    nothing = learner.exactly(concept.nothing(axes, 1))
    events = jax.tree.map(lambda each, last: jnp.concatenate([each, last[None]]), events, nothing)

    def given(noise):
        return jax.vmap(lambda event: learner.probability_given(sample, event, noise=noise)[0])(events)

    return jnp.log(jnp.sum(jnp.exp(log_weights)[:, None] * jax.vmap(given)(noises), axis=0))


def noise_table(rate, most, faces):
    """All noises up to `most` in each size (all beyond count as `most`), and ln of their probabilities."""
    one = np.append(-rate * np.arange(most) + math.log(-math.expm1(-rate)), -rate * most)
    table = np.asarray(list(itertools.product(range(most + 1), repeat=faces)))
    return table.astype(np.int32), one[table].sum(axis=1)


def worst(p, pairs, epsilon):
    """The exact delta over all pairs."""
    return np.maximum(p[pairs[:, 0]] - math.exp(epsilon) * p[pairs[:, 1]], 0).sum(axis=1).max()


# D = 1 over four points, at most four of them, so that three more than one are all: (e, rate of the slice noise).
CASES = {"public": (0.7, 40.0), "noisy": (0.4, 0.8), "broken": (1.6, 40.0)}
COUNTS = exact.histograms(4, range(5))


def laws_of(*names, count=1.0):
    """The law of every multiset of positive examples, in the order of their values, in each of these cases: one program.

    The test has this part of a slice's epsilon.
    """
    cases = [CASES[name] for name in names]
    learners = [small(size=1, rate=s, epsilon=e, threshold=1, axes=1, bits=2, capacity=7) for e, s in cases]
    learners = [
        dataclasses.replace(each, count_epsilon=np.float64(count * e))
        for each, (e, _) in zip(learners, cases, strict=True)
    ]
    tables = [noise_table(s, 3, 2) for _, s in cases]
    values, n_valid = exact.records(COUNTS, 4)
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *learners)
    log_weights = np.stack([weights for _, weights in tables])
    case = np.repeat(np.arange(len(cases)), len(COUNTS))

    def law(given):
        row, n, i = given
        learner = jax.tree.map(lambda leaf: leaf[i], stacked)
        return face_law(learner, row, n, jnp.asarray(tables[0][0]), jnp.asarray(log_weights)[i], bits=2)

    datasets = np.tile(values, (len(cases), 1)), np.tile(n_valid, len(cases)), case
    return np.split(exact.probabilities(law, datasets, batch_size=len(COUNTS)), len(cases))


@pytest.mark.thorough
def test_public_sizes_are_private_by_composition_exactly():
    """(2D + 1) e = 3 e hold; half of that does not (negative control)."""
    pairs = exact.neighbours(COUNTS, ADD_OR_REMOVE_ONE)
    (law,), e = laws_of("public"), CASES["public"][0]
    assert worst(law, pairs, 3 * e) < 1e-9 and worst(law, pairs, 1.5 * e) > 1e-3


@pytest.mark.thorough
def test_public_sizes_are_private_by_their_ranges_exactly():
    """With half of a slice's epsilon for the test; with more than twice the budget it is not (negative control)."""
    pairs = exact.neighbours(COUNTS, ADD_OR_REMOVE_ONE)
    law, broken = laws_of("public", "broken", count=0.5)
    for delta in (0.01, 0.1, 0.3):
        epsilon = planning.bounded_total(1, CASES["public"][0], delta)
        assert worst(law, pairs, epsilon) <= delta < worst(broken, pairs, epsilon)
    assert worst(law, pairs, epsilon) > 1e-2


@pytest.mark.thorough
def test_noisy_sizes_are_private_by_the_accountant_exactly():
    """Never above the numerical accountant; public sizes and four times the budget are (negative control)."""
    pairs = exact.neighbours(COUNTS, ADD_OR_REMOVE_ONE)
    e, s = CASES["noisy"]
    run = slicing.Run(s, Guarantee(e, 0.0, ADD_OR_REMOVE_ONE), slices=3)
    epsilons = [0.2, 0.5, 0.8, 1.2]
    promised = np.asarray([run.delta(epsilon) for epsilon in epsilons])
    found, broken = (
        np.asarray([worst(law, pairs, epsilon) for epsilon in epsilons]) for law in laws_of("noisy", "broken")
    )
    assert (found <= promised).all() and found[0] > 1e-2
    assert (broken > promised).any()


@pytest.mark.slow
def test_two_axes_are_private_by_composition_exactly():
    """D = 2 with two points per axis, where what one cut takes decides what the next one sees; public sizes."""
    e, counts = 0.7, exact.histograms(4, range(6))
    learner = small(size=1, rate=None, epsilon=e, threshold=1, axes=2, bits=1, capacity=7)
    values, n_valid = exact.records(counts, 5)
    datasets = np.stack([values // 2, values % 2], axis=-1), n_valid
    none, sure = jnp.zeros((1, 4), jnp.int32), np.zeros(1)
    p = exact.probabilities(
        lambda rows: face_law(learner, *rows, none, jnp.asarray(sure), bits=1), datasets, batch_size=64
    )
    pairs = exact.neighbours(counts, ADD_OR_REMOVE_ONE)
    assert worst(p, pairs, 5 * e) < 1e-9 and worst(p, pairs, 2 * e) > 1e-3


@pytest.mark.slow
def test_the_law_is_that_of_the_runs():
    """Frequencies of the two faces and of all-zero against `probability_given` summed over the noises."""
    e, s = CASES["noisy"]
    learner = small(size=1, rate=s, epsilon=e, threshold=1, axes=1, bits=2, capacity=7)
    place = int(np.flatnonzero((np.asarray([1, 1, 0, 2]) == COUNTS).all(axis=1))[0])
    sample = examples_of([[0], [1], [3], [3]], np.ones(4, int))
    draws = 4000
    runs = jax.vmap(lambda key: learner(key, sample))(jax.random.split(jax.random.key(3), draws))
    low, high = np.asarray(runs.hypothesis.low)[:, 0, 0], np.asarray(runs.hypothesis.high)[:, 0, 0]
    outcome = np.where(np.asarray(runs.info["enough"]), 4 * low + high, 16).astype(int)
    seen, expected = np.bincount(outcome, minlength=17), draws * laws_of("noisy")[0][place]
    assert expected.min() > 5
    assert stats.chisquare(seen, expected * draws / expected.sum()).pvalue > FALSE_ALARM
    assert stats.chisquare(seen, np.roll(expected, 1) * draws / expected.sum()).pvalue < FALSE_ALARM


@pytest.mark.parametrize("accountant", rectangles.ACCOUNTANTS)
@pytest.mark.parametrize("axes", [1, 10])
def test_plans_keep_the_total(accountant, axes):
    """By the accountants themselves, combined here once more."""
    chosen = plan(accountant, axes=axes)
    assert chosen.guarantee.covers(BUDGET["epsilon"], BUDGET["delta"])
    e = chosen.compute.epsilon
    once, twice = Guarantee(e, 0.0, ADD_OR_REMOVE_ONE), Guarantee(2 * e, 0.0, ADD_OR_REMOVE_ONE)
    if accountant == "basic":
        assert Fraction(e) * (2 * axes + 1) <= 1 and chosen.guarantee.delta == 0.0
    elif accountant == "optimal":
        assert composition.total_delta({twice: axes, once: 1}, 1.0) <= BUDGET["delta"]
    elif accountant == "bounded":
        rho = axes * (2 * e) ** 2 / 8 + max(e**2 / 8, chosen.count_epsilon**2 / 2)
        assert (
            rho <= largest_rho(1.0, BUDGET["delta"])
            or (2 * axes + 1) * e <= largest_range(1.0, BUDGET["delta"])
            or bounded_delta(axes + 1, 2 * e, 1.0) <= BUDGET["delta"]
        )
    else:
        run = slicing.Run(chosen.slice_epsilon, once, slices=2 * axes + 1)
        method = "printed" if accountant == "slicing_printed" else "numerical"
        assert run.guarantee(delta=BUDGET["delta"], accountant=method).epsilon <= 1.0
        tail = 2 * axes * math.exp(-chosen.slice_epsilon * (chosen.capacity - chosen.size + 1))
        assert (1 + math.e) * tail <= 2.0**-20 * BUDGET["delta"]
    share = 0.05 / (2 * axes)
    assert chosen.size == interior_point.exponential(bits=BITS, epsilon=e).sample_size(beta=share)


@pytest.mark.thorough
@pytest.mark.parametrize(("axes", "bits", "name"), [(2, 64, "basic"), (8, 16, "bounded"), (32, 16, "slicing")])
def test_the_best_accountant_needs_the_fewest_examples(axes, bits, name):
    """In the first case "bounded" has fewer entries in slices, but a test that needs more examples."""
    given = {"axes": axes, "bits": bits, "epsilon": 1.0, "delta": 1e-6, "beta": 0.1}
    sizes = {
        each: rectangles.rectangles(**given, accountant=each).sample_size(alpha=0.1, beta=0.1)
        for each in rectangles.ACCOUNTANTS
    }
    assert min(sizes, key=sizes.__getitem__) == name == rectangles.rectangles(**given).accountant


@pytest.mark.slow
def test_growth_with_the_dimension():
    """D^2 by basic composition, D^1.5 by optimal, D by slicing, up to the logarithm of 2D / beta in a slice's size."""
    for accountant, power in [("basic", 2.0), ("optimal", 1.5), ("slicing_printed", 1.0), ("slicing", 1.0)]:
        few, many = (plan(accountant, axes=axes, bits=1024).entries for axes in (16, 64))
        assert math.log(many / few, 4) == pytest.approx(power, abs=0.08)
    best = [min(rectangles.ACCOUNTANTS, key=lambda name: plan(name, axes=axes).entries) for axes in (1, 32)]
    assert best == ["basic", "slicing"]


# ------------------------------------------------------------------------------------------------------------ utility


def test_the_mass_of_slices_is_a_beta_whatever_the_dimension():
    """The lemma of the module on continuous data: 1 - prod (b_i - a_i) ~ Beta(K, n - K + 1)."""
    rng, n, sizes = np.random.default_rng(0), 60, [4, 1, 3, 7, 2, 5]
    lost = []
    for _ in range(400):
        points = rng.random((n, 3))
        where, _ = twin.slices(points.tolist(), [1] * n, sizes)
        taken = np.asarray(where)
        sides = [points[taken == 2 * i + 1, i].min() - points[taken == 2 * i, i].max() for i in range(3)]
        lost.append(1 - math.prod(sides))
    total = sum(sizes)
    assert stats.kstest(lost, stats.beta(total, n - total + 1).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(lost, stats.beta(total + 2, n - total - 1).cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("accountant", ["basic", "slicing"])
def test_sample_size_is_the_binomial_tail(accountant):
    chosen = plan(accountant, axes=5)
    learner = rectangles.from_plan(chosen)
    n = learner.sample_size(alpha=0.05, beta=0.1)
    need = chosen.entries + 2 * chosen.threshold - 1
    left = 0.1 - chosen.spent_beta
    assert stats.binom.cdf(need - 1, n, 0.05) <= left < stats.binom.cdf(need - 1, n - 1, 0.05)


@functools.partial(jax.jit, static_argnums=0)
def failures(run, keys, experiment):
    return jnp.sum(jax.lax.map(lambda key: run(key, experiment)["failed"], keys))


def counted(run, learner, distribution, n, trials, capacity=2**31 - 1):
    """How many of `trials` runs fail."""
    experiment = pac.Experiment(learner=learner, distribution=distribution, n=n, alpha=0.1, capacity=capacity)
    return int(failures(run, jax.random.split(jax.random.key(11), trials), experiment))


@pytest.mark.slow
def test_utility_at_the_sample_size():
    """At most beta of 300 runs fail at the promised n, nearly all at a third of it."""
    learner = rectangles.from_plan(plan("slicing"))
    low, high = concept.centred(axes=2, bits=BITS)
    easy = concept.uniform(bits=BITS, low=low, high=high)
    n = learner.sample_size(alpha=0.1, beta=0.1)
    assert counted(rectangles.trial, learner, easy, n, 300) <= stats.binom.isf(FALSE_ALARM, 300, 0.1)
    assert counted(rectangles.trial, learner, easy, n // 3, 300) > 250


@pytest.mark.slow
def test_drawing_slices_alone_has_the_law_of_whole_runs():
    """Failures where about half the runs fail, with and without a table; ties and scales included."""
    learner = small(size=12, rate=0.2, epsilon=2.0, threshold=3, axes=2, bits=BITS, capacity=127)
    hard = concept.log_uniform(bits=BITS, low=[2**14] * 2, high=[3 * 2**14] * 2)
    trials, n = 2000, 330
    whole = counted(pac.trial, learner, hard, n, trials, 511)
    alone, other = (counted(rectangles.trial, learner, hard, size, trials) for size in (n, n + 60))
    assert 0.2 < whole / trials < 0.8
    assert stats.fisher_exact([[whole, trials - whole], [alone, trials - alone]]).pvalue > FALSE_ALARM
    assert stats.fisher_exact([[whole, trials - whole], [other, trials - other]]).pvalue < FALSE_ALARM


@pytest.mark.slow
def test_another_solver_that_spends_delta():
    """TreeLog on each slice: fewer points than the exponential mechanism at 1024 bits, its deltas are paid for, and it learns: failure 0.1
    is promised, so 6 or more of 8 runs fail with probability 2e-5."""
    sliced, chosen = (plan(name, bits=1024, solver="tree_log") for name in ("slicing", "basic"))
    run = slicing.Run(sliced.slice_epsilon, sliced.compute, slices=2 * AXES + 1)
    assert sliced.compute.delta > 0.0 and run.delta(1.0) <= BUDGET["delta"]
    once, twice = chosen.compute, dataclasses.replace(chosen.compute.under_replace_one(), relation=ADD_OR_REMOVE_ONE)
    whole = composition.basic({twice: AXES, once: 1})
    assert once.delta > 0.0 and whole.covers(1.0, BUDGET["delta"]) and whole == chosen.guarantee
    assert chosen.entries < plan("basic", bits=1024).entries / 2
    learner = rectangles.from_plan(chosen, solver="tree_log")
    law = concept.log_uniform(bits=1024, low=[2**1022] * AXES, high=[3 * 2**1022] * AXES)
    assert counted(rectangles.trial, learner, law, learner.sample_size(alpha=0.1, beta=0.1), 8) <= 5


@pytest.mark.parametrize("accountant", ["basic", "slicing"])
def test_every_solver_has_a_name(accountant):
    """At 1024 bits slices are smallest by the supported tree, whose delta is paid for; without a delta by the tree score."""
    plans = {name: plan(accountant, bits=1024, solver=name) for name in rectangles.SOLVERS}
    sizes = {name: found.size for name, found in plans.items()}
    assert sorted(sizes, key=sizes.__getitem__) == ["supported_tree", "tree_log", "tree_score", "exponential"]
    assert 2 * sizes["supported_tree"] < sizes["tree_log"] and plans["tree_score"].compute.delta == 0.0
    learner = rectangles.from_plan(plans["supported_tree"], solver="supported_tree")
    assert plans["supported_tree"].compute.delta > 0.0 and learner.guarantee().covers(1.0, BUDGET["delta"])


# ------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"axes": 0}, ValueError, "axes"),
        ({"bits": 0}, ValueError, "bits"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": 0.0, "accountant": "slicing"}, ValueError, "delta"),
        ({"beta": 1.0}, ValueError, "beta"),
        ({"accountant": "wishful"}, ValueError, "accountant"),
        ({"accountant": "bounded", "solver": "tree_log"}, ValueError, 'accountant must not be "bounded"'),
        ({"solver": "wishful"}, ValueError, "solver"),
        ({"axes": 1.5}, TypeError, "axes"),
        ({"axes": 2**70}, ValueError, "axes must be from 1 to 65536"),
        ({"delta": np.array([0.5, 0.6]), "accountant": "best"}, TypeError, "delta must be a real number"),
        ({"solver": lambda *each: None}, TypeError, r"solver\(epsilon, delta, beta\) must be one of"),
    ],
)
def test_bad_parameters(changes, error, words):
    with pytest.raises(error, match=words):
        rectangles.rectangles(**{"axes": 2, "bits": 16, **BUDGET, **changes})


def test_bad_examples_and_promises():
    learner = small(size=5, rate=0.3, epsilon=0.5, threshold=1, axes=AXES, bits=4, capacity=63)
    x = jnp.zeros((3, AXES, 1), jnp.uint32)
    with pytest.raises(ValueError, match="labels 0 and 1"):
        concept.Examples.create(x, [0, 1, 2])
    with pytest.raises(ValueError, match="y must have the length of x"):
        concept.Examples.create(x, [0, 1])
    with pytest.raises(TypeError, match="uint32"):
        concept.Examples.create(np.zeros((3, 2, 1)), [0, 1, 1])
    with pytest.raises(ValueError, match="n_valid"):
        concept.Examples.create(x, [0, 1, 1], 4)
    with pytest.raises(ValueError, match="shape"):
        learner(jax.random.key(0), concept.Examples.create(x[:, :1], [0, 1, 1]))
    with pytest.raises(TypeError, match="Examples"):
        learner(jax.random.key(0), x)
    outside = examples_of([[3, 16]], [1])
    with pytest.raises(ValueError, match="got 16"):
        learner(jax.random.key(0), outside)
    with pytest.raises(ValueError, match="beta"):
        rectangles.from_plan(plan("basic")).sample_size(alpha=0.1, beta=0.01)
    with pytest.raises(ValueError, match="solver must promise"):
        generous = lambda epsilon, delta, beta: interior_point.exponential(bits=16, epsilon=2 * epsilon)  # noqa: E731
        rectangles.from_plan(plan("basic"), solver=generous)
    with pytest.raises(TypeError, match="plan must be a Plan, got None"):
        rectangles.from_plan(None)
    with pytest.raises(TypeError, match="low must be a list, got None"):
        concept.rectangle(bits=8, low=None, high=[1])
    with pytest.raises(ValueError, match=r"high\[0\] must be in 0, ..., 2\^8 - 1, got 300"):
        concept.rectangle(bits=8, low=[0], high=[300])
    with pytest.raises(ValueError, match="bits must be from 1 to 4096, got -1"):
        concept.centred(axes=2, bits=-1)
    with pytest.raises(ValueError, match="axes must be >= 1"):
        concept.nothing(0, 1)
    with pytest.raises(ValueError, match="grid point"):
        concept.uniform(bits=40, low=[1], high=[2])
    with pytest.raises(ValueError, match="room"):
        concept.log_uniform(bits=8, low=[1], high=[100])


@pytest.mark.thorough
def test_examples_outside_the_domain_that_nobody_could_check_show_in_the_status():
    learner = small(size=5, rate=0.3, epsilon=0.5, threshold=1, axes=AXES, bits=4, capacity=63)
    unchecked = algorithm._run(learner, jax.random.key(0), examples_of([[3, 16]], [1], rows=63))  # as if traced
    assert int(unchecked.status) == Status.OUTSIDE_DOMAIN
    assert concept.to_ints(unchecked.hypothesis) == ([0] * AXES, [0] * AXES)  # nothing shows


@pytest.mark.parametrize("accountant", rectangles.ACCOUNTANTS)
def test_the_guarantee_follows_from_the_numbers_in_use(accountant):
    """It is within the plan's, and no longer holds for a solver or a count that spends more."""
    chosen = plan(accountant)
    learner = rectangles.from_plan(chosen)
    stated = learner.guarantee()
    assert stated.covers(chosen.guarantee.epsilon, chosen.guarantee.delta) and stated.epsilon > 0.9
    greedy = interior_point.exponential(bits=BITS, epsilon=2 * chosen.compute.epsilon)
    for other in ({"solver": greedy}, {"count_epsilon": np.float64(2 * chosen.compute.epsilon)}):
        assert not dataclasses.replace(learner, **other).guarantee().covers(1.0, BUDGET["delta"])
    if chosen.slice_epsilon is not None:
        tight = dataclasses.replace(learner, size=np.int32(chosen.capacity))  # no room for noise
        assert not tight.guarantee().covers(1.0, BUDGET["delta"])


def test_slices_beyond_their_capacity_are_paid_for():
    """Noise passes the room of one with probability exp(-s (spare + 1)); each of 2 D costs 1 + e^epsilon of that."""
    axes, rate, compute = 3, 0.2, Guarantee(0.1, 0.0, ADD_OR_REMOVE_ONE)
    given = "slicing_printed", axes, rate, compute, 1e-3
    tight, roomy = (planning.promised(*given, spare) for spare in (120, 10**4))
    cost = 6 * (1 + math.exp(roomy.epsilon))
    assert tight.epsilon == roomy.epsilon and tight.delta - roomy.delta == pytest.approx(cost * math.exp(-rate * 121))
    most = planning._noises(axes, rate, 0.1, 1.0, 1e-6)[1]
    fewer, enough = (6 * (1 + math.e) * math.exp(-rate * room) for room in (most - 1, most))
    assert enough <= 2.0**-20 * 1e-6 < fewer


def test_sizes_and_counts_have_the_noise_that_is_paid_for():
    """Sizes grow by 4 or more with probability e^(-4 s); a count four below its threshold has geometric noise of e."""
    learner = small(size=2, rate=0.3, epsilon=0.5, threshold=9, axes=1, bits=2, capacity=63)
    keys = jax.random.split(jax.random.key(0), 1000)
    grown = np.asarray(jax.jit(jax.vmap(lambda key: learner.sizes(key, 10**6)))(keys)) - 2
    assert stats.binomtest(int(np.sum(grown >= 4)), grown.size, math.exp(-1.2)).pvalue > 2e-5
    faces = Outcome(hypothesis=jnp.zeros((2, 1), jnp.uint32), status=jnp.zeros(2, jnp.int32), info=None)
    slices = types.SimpleNamespace(remaining=jnp.int32(5), sizes=jnp.full((1, 2), 2, jnp.int32))
    enough = jax.jit(jax.vmap(lambda key: learner.answer(key, faces, slices)[2]["enough"]))(keys)
    assert stats.binomtest(int(enough.sum()), 1000, stats.dlaplace(0.5).sf(3)).pvalue > 2e-5


@pytest.mark.slow  # sampler and law: conformance
def test_the_law_of_public_sizes_on_a_small_domain():
    """pmf, single outputs, events and errors agree with one another."""
    learner = small(size=2, rate=None, epsilon=1.0, threshold=2, axes=1, bits=2, capacity=7)
    sample = examples_of([[0], [1], [2], [2], [3], [0]], [1, 1, 1, 1, 1, 0])
    law = np.asarray(learner.pmf(sample), float)
    assert law.shape == (18,) and law.sum() == pytest.approx(1.0, abs=1e-6) and law[:17].min() > 0
    listed = jax.device_get(jax.jit(jax.vmap(learner.output))(np.arange(17, dtype=np.uint32)))
    outputs = [concept.Rectangle(low=low, high=high) for low, high in zip(listed.low, listed.high, strict=True)]
    assert concept.to_ints(outputs[7]) == ([1], [3]) and same(outputs[16], concept.nothing(1, 1))
    assert float(learner.log_prob(sample, outputs[7])) == pytest.approx(math.log(law[7]), rel=1e-5)
    assert float(learner.log_prob(sample, outputs[16])) == pytest.approx(math.log(law[16]), rel=1e-5)
    within = learner.probability(sample, (wide.from_ints([0, 2], 2), wide.from_ints([2, 4], 3)))
    np.testing.assert_allclose(within, [law[[2, 3, 6, 7]].sum(), 1 - law[[2, 3, 6, 7]].sum()], rtol=1e-5)
    points, labels = np.array([0, 1, 2, 2, 3, 0]), np.array([1, 1, 1, 1, 1, 0])
    errors = [np.mean(((points >= i // 4) & (points <= i % 4)) != labels) for i in range(16)] + [labels.mean()]
    for error in (0.0, 0.2, 0.5):
        good = law[:17][np.asarray(errors) <= error].sum()
        assert float(learner.success_probability(sample, error=error)) == pytest.approx(good, rel=1e-5)
        assert float(learner.failure_probability(sample, error=error)) == pytest.approx(1 - good, rel=1e-5)


def test_events_of_another_shape_or_of_noisy_sizes_are_refused():
    learner = small(size=2, rate=None, epsilon=1.0, threshold=2, axes=1, bits=2, capacity=7)
    with pytest.raises(ValueError, match="a row for each of the 2 faces"):
        learner.probability(examples_of([[0], [1]], [1, 0]), (0, 3))
    with pytest.raises(ValueError, match="ask probability_given"):
        noisy().probability(examples_of([[1, 1]], [1]), (wide.from_ints([0] * 4, 16), wide.from_ints([1] * 4, 16)))


def test_delta_zero_is_pure():
    learner = rectangles.rectangles(axes=3, bits=70, epsilon=1.0, delta=0.0, beta=0.1)
    assert learner.guarantee() == Guarantee(learner.guarantee().epsilon, 0.0, ADD_OR_REMOVE_ONE)
    assert learner.guarantee().epsilon <= 1.0 and learner.limbs == 3


def test_boxes_of_other_axes_are_refused():
    law, narrow = concept.uniform(bits=2, low=[0, 0], high=[1, 1]), concept.rectangle(bits=2, low=[1], high=[2])
    with pytest.raises(ValueError, match="hypothesis must have faces"):
        law.error(narrow)
    with pytest.raises(TypeError, match="hypothesis must be a Rectangle"):
        law.error(3)
    with pytest.raises(ValueError, match="x must have shape"):
        concept.label(narrow, jnp.zeros((3, 2, 1), jnp.uint32))
    with pytest.raises(ValueError, match="mass must leave each of 1 sides"):
        concept.log_uniform(bits=16, low=[1000], high=[3000], mass=1e-12)
    assert concept.log_uniform(bits=16, low=[1000], high=[3000], mass=1 - 1e-12).first.tolist() == [1]  # not none
    # A side that is a whole axis, of which 2^32 is no word.
    whole = concept.uniform(bits=32, low=[0, 2**31], high=[2**32 - 1, 2**32 - 1])
    assert float(whole.mass(whole.target)) == 0.5 and whole.width.tolist() == [2**32 - 1, 2**31]
    # The last octave ends at an end of the domain, or in the middle of the side.
    sides = {"low": [2**12, 2**10, 2**12], "high": [2**15, 2**15, 2**12 + 2**9]}
    assert concept.log_uniform(bits=16, **sides).octaves.tolist() == [12, 10, 8]


@pytest.mark.thorough
def test_data_of_an_outer_function_are_checked_within_its_trace():
    learner = small(size=2, rate=None, epsilon=1.0, threshold=1, axes=1, bits=2, capacity=3)
    examples = examples_of([[0], [1], [2], [3], [3]], [1, 1, 1, 1, 0])
    assert jax.jit(lambda key: learner(key, examples).status)(jax.random.key(0)) == Status.OK
    outside = examples_of([[4]], [1])
    with pytest.raises(ValueError, match=r"examples.x must hold points in 0, ..., 2\^2 - 1, got 4"):
        jax.jit(lambda key: learner(key, outside).status)(jax.random.key(0))


@pytest.mark.thorough
def test_every_hypothesis_is_right_on_no_examples():
    learner = small(size=2, rate=None, epsilon=1.0, threshold=1, axes=1, bits=2, capacity=3)
    nobody = examples_of([[0], [1], [2]], [1, 1, 1], n_valid=0)
    np.testing.assert_allclose(learner.success_probability(nobody, error=0.5), 1 - learner.pmf(nobody)[-1], atol=1e-6)


@pytest.mark.parametrize(
    "noise, error, words",
    [
        ([-3, 0], ValueError, "noise must be from 0"),
        ([1.9, 0.0], TypeError, "noise must hold whole numbers"),
        ([True, False], TypeError, "noise must hold whole numbers"),
        ([0], ValueError, "noise must have a number for each of the 2 slices"),
        ([2**40, 0], ValueError, "noise must be from 0"),
        ("a", TypeError, "noise must be an array of numbers"),
    ],
)
def test_noises_that_no_slice_has_are_refused(noise, error, words):
    learner = small(size=2, rate=0.5, epsilon=1.0, threshold=1, axes=1, bits=2, capacity=3)
    examples = examples_of([[0], [1], [2], [3], [3]], [1, 1, 1, 1, 0])
    with pytest.raises(error, match=words):
        learner.probability_given(examples, learner.anything(), noise=noise)


@pytest.mark.parametrize("accountant", ["best", "basic", "slicing"])
def test_more_than_accountants_speak_of_is_refused(accountant):
    """For 351 nothing was proved, and the learner that was made promised nothing."""
    given = {"axes": 1, "bits": 8, "delta": 1e-6, "beta": 0.1, "accountant": accountant}
    with pytest.raises(ValueError, match=r"epsilon must be <= 350\.0"):
        rectangles.rectangles(**given, epsilon=351.0)
    assert rectangles.rectangles(**given, epsilon=350.0).guarantee().covers(350.0, 1e-6)


def test_what_is_asked_of_slicing_is_kept_to_the_last_digit():
    for axes, delta in ((1, 1e-6), (2, 1e-9), (3, 1e-6)):
        asked = {"epsilon": 0.1, "delta": delta}
        assert (
            rectangles.rectangles(axes=axes, bits=16, beta=0.1, accountant="slicing", **asked)
            .guarantee()
            .covers(**asked)
        )


@pytest.mark.slow
def test_accountants_that_have_no_plan_are_left_out():
    """For TreeLog the delta of each slice by plain composition is too small at epsilon = 32."""
    given = {"axes": 5, "bits": 8, "epsilon": 32.0, "delta": 1e-8, "beta": 0.1, "solver": "tree_log"}
    with pytest.raises(ValueError, match="delta must be"):
        rectangles.plan(**given, accountant="basic")
    assert rectangles.rectangles(**given).accountant == "slicing"


def test_an_epsilon_whose_slices_no_integer_counts_is_refused_by_name():
    for epsilon in (1e-10, 1e-20):
        with pytest.raises(ValueError, match="epsilon must be"):
            rectangles.rectangles(axes=1, bits=2, epsilon=epsilon, delta=0.0, beta=0.5, accountant="basic")
