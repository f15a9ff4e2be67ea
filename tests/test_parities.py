"""Parities: the concept, the distributions, and the pure learner of one parity with its exact law."""

import itertools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Outcome, Sample, Status, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import parities as concept
from dpjax.data import pac
from dpjax.data.sample import bucket
from dpjax.domains import gf2, wide
from dpjax.learners import parities
from dpjax.verify import histograms, neighbours, probabilities, records
from dpjax.verify.exact import sticks
from dpjax.verify.plain.exponential import parity_law
from dpjax.verify.plain.parity_learner import inner

FALSE_ALARM = 2e-5


# ------------------------------------------------------------------------------------------------ concept, distributions


@pytest.mark.parametrize("bits", [1, 31, 32, 33, 100, 1024])
def test_labels_are_inner_products_of_python_ints(bits: int) -> None:
    @jax.jit
    def drawn(key_targets: Any, key_sample: Any) -> Any:
        targets = concept.random_targets(key_targets, bits=bits, k=37)
        law = concept.uniform(bits=bits, targets=targets)
        sample = law.sample(key_sample, 15, 12)
        changed = targets.at[5, -1].set(targets[5, -1] ^ np.uint32(1))
        labels = sample.labels, concept.predict(targets, sample.x), concept.label(targets[3], sample.x)
        return targets, sample.x, labels, law.errors(changed)

    targets, x, labels, errors = jax.device_get(drawn(jax.random.key(bits), jax.random.key(1)))
    xs, vs = wide.to_ints(x), wide.to_ints(targets)
    assert max(xs) < 1 << bits and max(vs) < 1 << bits
    expected = np.array([[inner(v, x) for v in vs] for x in xs])
    for found, right in zip(labels, (expected, expected, expected[:, 3]), strict=True):
        np.testing.assert_array_equal(found, right)
    assert errors.tolist() == [0.5 if j == 5 else 0.0 for j in range(37)]


def test_a_longer_sample_begins_with_the_same_examples_and_a_single_target_sees_the_same_points() -> None:
    law, single = concept.uniform(bits=40, targets=[5, 2**39]), concept.uniform_single(bits=40, target=2**39)
    drawn = (law.sample(jax.random.key(0), 7, 7), law.sample(jax.random.key(0), 15, 7))
    (short, long), alone = jax.device_get(drawn), jax.device_get(single.sample(jax.random.key(0), 7, 7))
    assert (short.x == long.x[:7]).all() and (short.y == long.y[:7]).all() and (alone.x == short.x).all()
    assert alone.y.tolist() == (short.y[:, 0] >> 1 & 1).tolist()
    assert float(single.error(single.target)) == 0 and float(single.error(law.targets[0])) == 0.5


def test_points_are_uniform() -> None:
    x = concept.uniform(bits=3, targets=[1]).sample(jax.random.key(3), 4095, 4095).x
    assert stats.chisquare(np.bincount(np.asarray(x)[:, 0], minlength=8)).pvalue > FALSE_ALARM


def test_walsh_hadamard_and_the_nearest_parity_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    signs = np.array([[(-1) ** inner(v, x) for x in range(16)] for v in range(16)])
    f = rng.integers(-9, 10, 16)
    assert (np.asarray(jax.jit(gf2.walsh_hadamard)(f.astype(np.int32))) == signs @ f).all()
    tables = signs == -1
    for v in range(16):  # Lemma 54: error < 1/4 leaves one nearest parity
        tables[v, rng.choice(16, 3, replace=False)] ^= True
    assert jax.jit(jax.vmap(concept.nearest))(tables).tolist() == list(range(16))


@pytest.mark.parametrize(
    ("create", "error", "message"),
    [
        (lambda: concept.uniform(bits=0, targets=[0]), ValueError, "bits must be from 1 to 1024, got 0"),
        (lambda: concept.uniform(bits=1025, targets=[0]), ValueError, "bits must be from 1 to 1024"),
        (lambda: concept.uniform(bits=4, targets=[16]), ValueError, "targets must be from 0 to 15, got 16"),
        (lambda: concept.uniform(bits=4, targets=[]), ValueError, "targets must hold k >= 1"),
        (lambda: concept.uniform(bits=4, targets=wide.from_ints([16], 5)), ValueError, "targets must hold points in 0"),
        (
            lambda: concept.uniform(bits=40, targets=wide.from_ints([1], 5)),
            ValueError,
            "targets must hold k >= 1 numbers of 2",
        ),
        (lambda: concept.random_targets(jax.random.key(0), bits=4, k=0), ValueError, "k must be >= 1"),
        (lambda: parities.exponential(bits=17, epsilon=1.0), ValueError, "bits must be from 1 to 16, got 17"),
        (lambda: parities.exponential(bits=4, epsilon=0.0), ValueError, "epsilon must be > 0"),
        (
            lambda: parities.exponential(bits=4, epsilon=1.0).sample_size(alpha=0.5, beta=0.1),
            ValueError,
            "alpha must be < 0.5",
        ),
        (lambda: parities.exponential(bits=4, epsilon=1.0).pmf([1]), TypeError, "sample must be a dpjax.Sample"),
        (
            lambda: parities.exponential(bits=4, epsilon=1.0).pmf(Sample(x=wide.from_ints([16], 5), y=[0])),
            ValueError,
            "sample.x must hold points in 0",
        ),
    ],
)
def test_bad_arguments_are_refused(create: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        create()


# ------------------------------------------------------------------------------------------------------- pure learner


@pytest.mark.parametrize("bits", [1, 2, 5])
def test_law_is_the_definition(bits: int) -> None:
    rng = np.random.default_rng(0)
    xs, ys = rng.integers(0, 1 << bits, 20).tolist(), rng.integers(0, 2, 20)
    sample, law = builders.sample_of(xs, ys, bits, 31), concept.uniform_single(bits=bits, target=1)

    @jax.jit
    def found(learner: Any, sample: Sample) -> Any:
        inside = [learner.probability(sample, law.within(alpha)) for alpha in (0.3, 0.5)]
        success, failure = (
            learner.success_probability(sample, error=0.4),
            learner.failure_probability(sample, error=0.4),
        )
        return learner.pmf(sample), inside, success, failure

    pmf, inside, success, failure = jax.device_get(found(parities.exponential(bits=bits, epsilon=0.7), sample))
    expected = np.array([*parity_law(xs, ys.tolist(), bits, 0.7), 0.0])  # bottom never
    np.testing.assert_allclose(pmf, expected, rtol=2e-5)
    errors = [np.mean([inner(v, x) != y for x, y in zip(xs, ys, strict=True)]) for v in range(1 << bits)]
    good = np.array(errors) <= 0.4
    np.testing.assert_allclose(success, expected[:-1][good].sum(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(failure, expected[:-1][~good].sum(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(inside, [[expected[1], 1 - expected[1]], [1, 0]], rtol=1e-5)


def test_population_failure_by_enumeration_is_below_the_closed_form() -> None:
    """All 4^6 samples of two bits: the mean of exact laws, at the n that the closed form gives for its own value of beta."""
    learner, n = parities.exponential(bits=2, epsilon=3.0), 6
    bound = 3 * ((1 + math.exp(-1.5)) / 2) ** n
    xs = np.array(list(itertools.product(range(4), repeat=n)), np.uint32)
    law = concept.uniform_single(bits=2, target=2)

    def failure(x: jax.Array) -> jax.Array:
        sample = Sample.tree_unflatten(
            (False, False), (x[:, None], concept.label(law.target, x[:, None]), jnp.int32(n))
        )
        return learner.probability(sample, law.within(0.2))[1]

    exact = np.mean(jax.jit(jax.vmap(failure))(xs), dtype=float)
    assert 0.3 * bound < exact < bound
    np.testing.assert_allclose(bounds.exponential_parities(2, bound, 3.0), n, rtol=1e-9)
    assert learner.sample_size(alpha=0.2, beta=0.9 * bound) == n + 1


def test_agnostic_sample_size_suffices() -> None:
    learner = parities.exponential(bits=4, epsilon=0.5)
    n = learner.agnostic_sample_size(alpha=0.2, beta=0.1)
    xs = np.random.default_rng(0).integers(0, 16, n)
    ys = np.array([inner(9, int(x)) for x in xs]) ^ (np.random.default_rng(1).random(n) < 0.3)
    sample = builders.sample_of(xs, ys, 4, bucket(n))
    assert float(learner.failure_probability(sample, error=0.3 + 0.15)) < 0.05


def test_a_traced_label_that_is_none_shows_in_the_status() -> None:
    """A label of 2 would count three times: the sensitivity would be more than 1."""
    learner = parities.exponential(bits=3, epsilon=1.0)
    run = jax.jit(lambda y: learner(jax.random.key(0), Sample(x=wide.from_ints([1, 2], 3), y=y)))
    assert int(run(jnp.array([0, 1])).status) == Status.OK
    outcome = run(jnp.array([0, 2]))
    assert int(outcome.status) == Status.OUTSIDE_DOMAIN and not outcome.hypothesis.any()


def test_what_is_no_parity_is_refused() -> None:
    learner, x, v = parities.exponential(bits=3, epsilon=1.0), wide.from_ints([1, 2], 3), wide.from_ints([5], 3)[0]
    assert learner.predict(v, x).tolist() == [True, False]
    wider = wide.from_ints([2**32 + 5], 33)
    for wrong in ((x, v), (v.astype(float), x), (v, x.astype(float)), (5, x), (wider[0], x), (v, wider)):
        with pytest.raises((TypeError, ValueError), match="must"):
            learner.predict(*wrong)


def test_a_trial_fails_from_errors_above_alpha_on() -> None:
    """Any other parity errs on half of the points."""
    wrong = jax.tree_util.Partial(lambda key, sample: jnp.array([5], jnp.uint32))
    law, trial = concept.uniform_single(bits=3, target=1), jax.jit(pac.trial)
    for alpha, failed in ((0.5, False), (0.499, True)):
        experiment = pac.Experiment(learner=wrong, distribution=law, n=3, alpha=alpha, capacity=3)
        assert bool(trial(jax.random.key(0), experiment)["failed"]) == failed
    for alpha in (1.5, -0.1, math.nan):
        with pytest.raises(ValueError, match="alpha must be"):
            pac.Experiment(learner=wrong, distribution=law, n=3, alpha=alpha, capacity=3)


def test_a_trial_of_two_concepts_fails_where_one_of_them_is_missed() -> None:
    """The first is always found, the second if a coin says so; every run has a coin of its own."""

    def half(key: Any, sample: Any) -> Any:
        return jnp.stack([jnp.uint32(1), 4 + jax.random.bits(key) % 2])[:, None]

    law = concept.uniform(bits=3, targets=[1, 4])
    experiment = pac.Experiment(learner=jax.tree_util.Partial(half), distribution=law, n=3, alpha=0.4, capacity=3)

    @jax.jit
    def trials_and_runs(key: Any) -> Any:
        keys = jax.random.split(jax.random.clone(key), 64)
        return jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(keys), pac.runs(key, experiment, 64)

    failed, (sure, nearly) = jax.device_get(trials_and_runs(jax.random.key(0)))
    assert 10 < failed.sum() < 54 and 10 < 64 * sure == 64 * nearly < 54


def test_a_trial_that_releases_nothing_fails_whatever_the_target() -> None:
    """The hypothesis shown then is all zeros, which is the target here."""
    bottom = jax.tree_util.Partial(
        lambda key, sample: Outcome.of(jnp.zeros(1, jnp.uint32), jnp.int32(Status.BOTTOM), {})
    )
    law = concept.uniform_single(bits=3, target=0)
    experiment = pac.Experiment(learner=bottom, distribution=law, n=3, alpha=0.4, capacity=3)
    assert jax.tree.map(bool, pac.trial(jax.random.key(0), experiment)) == {"failed": True, "bottom": True}
    assert pac.runs(jax.random.key(0), experiment, 2).tolist() == [1.0, 1.0]


@pytest.mark.slow
def test_trials_and_tracing() -> None:
    law = concept.uniform_single(bits=10, target=700)
    experiment = pac.Experiment(
        learner=parities.exponential(bits=10, epsilon=1.0), distribution=law, n=80, alpha=0.1, capacity=127
    )
    failed = jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(jax.random.split(jax.random.key(0), 64))
    assert int(failed.sum()) == 0 and float(pac.failure(jax.random.key(0), experiment)) < 1e-3
    sample = law.sample(jax.random.key(1), 15, 15)
    slope = jax.grad(lambda e: parities.exponential(bits=10, epsilon=e).probability(sample, law.within(0.0))[1])
    assert float(slope(1.0)) < 0
    outside = jax.jit(lambda key, s: parities.exponential(bits=3, epsilon=1.0)(key, s).status)
    assert int(outside(jax.random.key(0), Sample(x=wide.from_ints([8], 10), y=[1]))) == Status.OUTSIDE_DOMAIN


def law_of(bits: int) -> Any:
    """A law in the form that the verifier takes."""

    def law(row: Any) -> Any:
        sample = Sample.tree_unflatten((False, False), (row["x"], row["y"], row["n"]))
        return jnp.log(parities.exponential(bits=bits, epsilon=row["epsilon"]).pmf(sample))

    return law


@pytest.mark.parametrize(("bits", "ns"), [(1, [5]), (2, [1, 2, 3, 4]), (3, [2])])
def test_no_pair_of_neighbours_refutes_the_guarantee_and_twice_epsilon_is_refuted(bits: int, ns: list[int]) -> None:
    counts = histograms(2 << bits, ns)
    values, sizes = records(counts)
    pairs = neighbours(counts, REPLACE_ONE)
    cases = [(epsilon, factor) for epsilon in (0.3, 2.0) for factor in (1.0, 2.0)]
    rows = {"x": (values // 2).astype(np.uint32)[:, :, None], "y": values % 2, "n": sizes}
    rows = {name: np.concatenate([leaf] * len(cases)) for name, leaf in rows.items()}  # one program for all
    rows["epsilon"] = np.repeat([epsilon * factor for epsilon, factor in cases], len(counts))
    tables = np.split(probabilities(law_of(bits), rows, batch_size=len(counts)), len(cases))
    for (epsilon, factor), table in zip(cases, tables, strict=True):
        assert table.shape == (len(counts), (1 << bits) + 1)
        assert parities.exponential(bits=bits, epsilon=epsilon).guarantee() == Guarantee(epsilon, 0.0, REPLACE_ONE)
        for n in ns:
            alike = pairs[sizes[pairs[:, 0]] == n]
            assert (sticks(table, alike, epsilon).max() > 1e-12) == (factor == 2.0 and n > 1)
            assert sticks(table, alike, epsilon / 8).max() > 0


def test_targets_may_be_an_array_of_numbers():
    found, wanted = (concept.uniform(bits=6, targets=targets) for targets in (np.array([1, 2]), [1, 2]))
    assert np.array_equal(found.targets, wanted.targets)


@pytest.mark.parametrize(
    "hypotheses", [None, 3, 3.7, np.array([3, 4]), jnp.array([3, 4], jnp.uint32), jnp.array([[3.0], [4.0]])]
)
def test_what_is_no_row_of_parities_is_no_hypothesis(hypotheses: Any) -> None:
    """It was once broadcast: two targets that were found had an error of 1/2."""
    law = concept.uniform(bits=6, targets=[3, 4])
    assert law.errors(jnp.array([[3], [5]], jnp.uint32)).tolist() == [0.0, 0.5]
    with pytest.raises((TypeError, ValueError), match="hypotheses must"):
        law.errors(hypotheses)
    with pytest.raises(ValueError, match="hypotheses must be 2, one for each target, got 3"):
        law.errors(jnp.zeros((3, 1), jnp.uint32))


def test_an_error_that_is_no_number_allows_the_target_alone():
    law = concept.uniform_single(bits=8, target=5)
    assert [wide.to_ints(end[None]) for end in jax.jit(law.within)(jnp.nan)] == [[5], [6]]
