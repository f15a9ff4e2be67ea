"""Learning k parities at once: votes and laws against brute force, exact privacy, exact sample sizes."""

import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import MultiSample, Status, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import parities as concept
from dpjax.core import bits as packed
from dpjax.domains import wide
from dpjax.learners import parities as single
from dpjax.multi import direct_sum, pac, parities
from dpjax.verify import histograms, neighbours, probabilities, records, sequence_neighbours, sequences
from dpjax.verify.exact import sticks
from dpjax.verify.plain.parity_learner import inner, parity_learner_law, vote

FALSE_ALARM = 2e-5


def sample_of(xs: Any, ys: Any, bits: int, n_valid: int | None = None) -> MultiSample:
    return MultiSample.create(wide.from_ints([int(x) for x in xs], bits), np.asarray(ys), n_valid)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs_of(learner: Any, key: jax.Array, sample: MultiSample) -> Any:
    return learner(key, sample)


# ----------------------------------------------------------------------------------------------- laws by brute force


@pytest.mark.parametrize(("bits", "k", "size"), [(1, 1, 1), (3, 2, 4), builders.thorough(2, 5, 3)])
def test_law_is_that_of_the_paper_on_noisy_labels(bits: int, k: int, size: int) -> None:
    rng = np.random.default_rng(bits)
    learner = parities.parity_learner(bits=bits, k=k, epsilon=3.0, delta=0.2, size=size)
    released, samples, laws = 0, [], []
    for _ in range(40):
        xs = rng.integers(0, 1 << bits, 40).tolist()
        vs = rng.integers(0, 1 << bits, (2, k))  # two truths, one after the other
        ys = np.array([[inner(int(v), x) for v in vs[int(i > 27)]] for i, x in enumerate(xs)])
        ys ^= rng.random(ys.shape) < rng.choice([0.0, 0.1])
        laws.append(parity_learner_law([*zip(xs, ys.tolist(), strict=True)], bits, size, 3.0, 0.2))
        samples.append((np.array(xs, np.uint32)[:, None], ys.astype(bool)))
        released += laws[-1][-1] < 0.5
    found = jax.jit(jax.vmap(lambda x, y: learner.pmf(MultiSample.create(x, y))))(
        *map(np.stack, zip(*samples, strict=True))
    )
    np.testing.assert_allclose(found, laws, rtol=1e-5, atol=1e-7)
    assert released > 3


@pytest.mark.slow  # conformance
def test_draws_follow_the_law() -> None:
    learner = parities.parity_learner(bits=3, k=2, epsilon=1.0, delta=0.2, size=4)
    sample = concept.uniform(bits=3, targets=[5, 6]).sample(jax.random.key(3), 31, 31)
    outcome = jax.device_get(runs_of(learner, jax.random.split(jax.random.key(0), 20_000), sample))
    released = outcome.status == Status.OK
    p = float(learner.success_probability(sample, error=0.0))
    assert 0.05 < p < 0.95
    assert stats.binomtest(int(released.sum()), released.size, p).pvalue > FALSE_ALARM
    assert stats.binomtest(int(released.sum()), released.size, p * 1.1).pvalue < FALSE_ALARM
    assert (outcome.hypothesis[released] == [[5], [6]]).all()
    assert (outcome.hypothesis[~released] == 0).all()  # ⊥ tells nothing
    np.testing.assert_allclose(learner.failure_probability(sample, error=0.0), 1 - p, rtol=1e-5)


@pytest.mark.slow  # conformance
def test_probabilities_of_events_are_sums_of_the_pmf() -> None:
    learner = parities.parity_learner(bits=2, k=2, epsilon=1.0, delta=0.2, size=3)
    sample = concept.uniform(bits=2, targets=[1, 2]).sample(jax.random.key(3), 31, 31)
    law = np.asarray(learner.pmf(sample), np.float64)
    joint = law[:16].reshape(4, 4).T  # v_1 runs fastest
    assert 0.05 < joint[1, 2] < 0.95
    for low, high in (([0, 0], [4, 4]), ([1, 2], [2, 3]), ([0, 0], [2, 2]), ([2, 0], [4, 4])):
        inside = joint[low[0] : high[0], low[1] : high[1]].sum()
        np.testing.assert_allclose(learner.probability(sample, (low, high)), [inside, 1 - inside], atol=1e-6)
    np.testing.assert_allclose(np.exp(learner.log_prob(sample, wide.from_ints([1, 2], 2))), joint[1, 2], rtol=1e-5)


def test_an_event_without_a_row_for_each_parity_is_refused() -> None:
    learner = parities.parity_learner(bits=2, k=2, epsilon=1.0, delta=0.2, size=3)
    with pytest.raises(ValueError, match="a row for each of the k = 2"):
        learner.probability(builders.multi_sample_of([1, 2], [[0, 1], [1, 1]], 2, 3), ([1], [2]))


def test_numbers_of_another_width_are_refused() -> None:
    """Cut off, 2^32 + v would be v."""
    sample = builders.multi_sample_of([1, 2], [[0, 1], [1, 1]], 2, 3)
    wider = wide.from_ints([2**32 + 1, 2], 34)
    for learner in (
        parities.parity_learner(bits=2, k=2, epsilon=1.0, delta=0.2, size=3),
        parities.elimination(bits=2, k=2),
    ):
        with pytest.raises(ValueError, match="output must have numbers of 1 limbs, got 2"):
            learner.log_prob(sample, wider)
        with pytest.raises(ValueError, match="hypothesis must have"):
            learner.predict(wider, sample.x)
        with pytest.raises(ValueError, match="x must have"):
            learner.predict(wide.from_ints([1, 2], 2), wider)


def test_rows_that_fill_no_subsample_have_no_vote() -> None:
    """Seven examples are one subsample of four, and an eighth row that does not count makes no second one."""
    learner = parities.parity_learner(bits=2, k=1, epsilon=1.0, delta=0.2, size=4)
    sample = sample_of([1, 2, 3, 1] * 2, [[1], [0], [1], [1]] * 2, 2, n_valid=7)
    assert int(jax.jit(learner.votes)(sample).counts.sum()) == 1


@pytest.mark.slow
def test_a_wrong_label_costs_one_vote() -> None:
    law = concept.uniform(bits=70, targets=concept.random_targets(jax.random.key(0), bits=70, k=40))
    learner = parities.parity_learner(bits=70, k=40, epsilon=1.0, delta=1e-6, size=90)
    n = 90 * 60 + 17
    sample = law.sample(jax.random.key(1), n, n)
    clean = learner(jax.random.key(2), sample)
    labels = np.array(sample.y)
    labels[100, 1] ^= 4
    noisy = dataclasses.replace(sample, y=jnp.asarray(labels))
    found = learner(jax.random.key(2), noisy)
    assert [int(clean.info[name]) for name in ("subsamples", "votes", "leading")] == [60, 60, 60]
    assert [int(found.info[name]) for name in ("subsamples", "votes", "leading")] == [60, 59, 59]
    assert float(law.errors(found.hypothesis).max()) == 0
    assert float(learner.success_probability(noisy, error=0.0)) == 0
    assert float(learner.success_probability(noisy, error=1e-3)) > 0.99


# --------------------------------------------------------------------------------------------------- exact privacy


def log_law(bits: int, k: int, size: int, calibration: str) -> Any:
    """A law in the form that the verifier takes: of a row of x, packed labels and a budget."""

    def law(row: Any) -> Any:
        learner = parities.parity_learner(
            bits=bits, k=k, epsilon=row["epsilon"], delta=row["delta"], size=size, calibration=calibration
        )
        sample = MultiSample(x=row["x"], y=row["y"], n_valid=jnp.int32(row["x"].shape[0]), k=k)
        return jnp.log(jnp.maximum(learner.pmf(sample), 0.0))

    return law


def worst(
    values: np.ndarray, pairs: np.ndarray, bits: int, k: int, size: int, budgets: Any, calibration: str = "proved"
) -> list[Any]:
    """(the learner, the law of every dataset) for each budget; a record value is x 2^k + labels."""
    rows = {
        "x": (values >> k).astype(np.uint32)[:, :, None],
        "y": (values & ((1 << k) - 1)).astype(np.uint32)[:, :, None],
    }
    rows = {name: np.concatenate([leaf] * len(budgets)) for name, leaf in rows.items()}  # one program for all
    rows |= {
        name: np.repeat(b, len(values))
        for name, b in zip(("epsilon", "delta"), zip(*budgets, strict=True), strict=True)
    }
    tables = np.split(probabilities(log_law(bits, k, size, calibration), rows), len(budgets))
    return [
        (
            parities.parity_learner(bits=bits, k=k, epsilon=epsilon, delta=delta, size=size, calibration=calibration),
            Found(table, pairs),
        )
        for (epsilon, delta), table in zip(budgets, tables, strict=True)
    ]


class Found(NamedTuple):
    """The laws of all datasets, and which of these are neighbours."""

    table: np.ndarray
    pairs: np.ndarray

    def delta(self, epsilon: float) -> float:
        return float(sticks(self.table, self.pairs, epsilon).max())

    def refutes(self, guarantee: Guarantee) -> bool:
        return self.delta(min(guarantee.epsilon, 700.0)) > guarantee.delta * (1 + 1e-9) + 1e-12


# All ordered samples with arbitrary labels: (bits, k, size, n).
CASES = ((1, 1, 1, 5), (1, 1, 2, 6), (1, 2, 1, 4), (2, 1, 2, 4))
over_quick_cases = pytest.mark.parametrize(
    ("bits", "k", "size", "n"), [CASES[0], *(builders.thorough(*case) for case in CASES[1:])]
)


@over_quick_cases
def test_no_pair_of_neighbouring_samples_refutes_the_guarantee(bits: int, k: int, size: int, n: int) -> None:
    domain = 1 << (bits + k)
    values, pairs = sequences(domain, n), sequence_neighbours(domain, n)
    for learner, found in worst(values, pairs, bits, k, size, ((0.5, 0.3), (4.0, 0.2))):
        assert not found.refutes(learner.guarantee())
        assert found.delta(float(learner.epsilon)) > 0.05  # not vacuous: vectors do get released


def test_worst_case_is_tight_and_printed_constants_are_refuted() -> None:
    """One example per subsample: all multisets of 9 votes for ⊥ or one of four vectors."""
    counts = histograms(5, [9])
    votes, _ = records(counts)
    values = np.where(votes == 4, 0, votes + 4)  # x = 0 is ⊥; x = 1 with labels 0, ..., 3
    pairs = neighbours(counts, REPLACE_ONE)
    ((learner, found),) = worst(values, pairs, 1, 2, 1, [(1.0, 0.1)])
    assert not found.refutes(learner.guarantee())
    np.testing.assert_allclose(
        found.delta(1.0), 0.1, rtol=1e-6
    )  # a lead of two becomes a tie, and another vector leads
    ((printed, found),) = worst(values, pairs, 1, 2, 1, [(1.0, 0.1)], "printed")
    assert found.refutes(printed.claimed_guarantee())
    assert not found.refutes(printed.guarantee())


# ---------------------------------------------------------------------------------------------------- sample sizes


@pytest.mark.parametrize(
    ("bits", "size", "n"), [(1, 1, 7), *(pytest.param(2, size, 6, marks=pytest.mark.slow) for size in (2, 3))]
)
def test_failure_on_uniform_points_is_the_mean_over_all_samples(bits: int, size: int, n: int) -> None:
    learner = parities.parity_learner(bits=bits, k=2, epsilon=4.0, delta=0.2, size=size)
    law = concept.uniform(bits=bits, targets=[1, (1 << bits) - 1])

    def failure(x: jax.Array) -> jax.Array:
        y = packed.pack(concept.predict(law.targets, x[:, None]))
        sample = MultiSample(x=x[:, None], y=y, n_valid=jnp.int32(n), k=2)
        by_errors = learner.probability(sample, law.within(0.1))[1]
        return jnp.stack([learner.failure_probability(sample, error=0.0), by_errors])

    xs = np.array(list(itertools.product(range(1 << bits), repeat=n)), np.uint32)
    means = np.mean(np.asarray(jax.jit(jax.vmap(failure))(xs), np.float64), axis=0)
    np.testing.assert_allclose(means, learner.uniform_failure(n), rtol=1e-5)


@pytest.mark.slow  # conformance, on one sample
def test_failures_of_trials_are_as_often_as_computed() -> None:
    learner = parities.parity_learner(bits=40, k=3, epsilon=1.0, delta=1e-3, size=42)
    law = concept.uniform(bits=40, targets=[1, 2, 2**39 + 5])
    n = learner.sample_size(alpha=0.0, beta=0.3)
    experiment = pac.Experiment(learner=learner, distribution=law, n=n, alpha=0.0, capacity=1023)
    failed = jax.jit(jax.vmap(lambda key: pac.trial(key, experiment)["failed"]))(
        jax.random.split(jax.random.key(0), 300)
    )
    p = learner.uniform_failure(n)
    assert 0.1 < p <= 0.3
    assert stats.binomtest(int(failed.sum()), 300, p).pvalue > FALSE_ALARM
    assert stats.binomtest(int(failed.sum()), 300, p / 2).pvalue < FALSE_ALARM


@pytest.mark.parametrize("bits", [1, 8, 256])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
def test_sample_sizes_are_least_do_not_know_k_and_stay_below_the_theorem(
    bits: int, epsilon: float, delta: float
) -> None:
    for beta in (0.4, 0.01, 1e-9):
        at = {"bits": bits, "epsilon": epsilon, "delta": delta}
        learner = parities.parity_learner(**at, k=1, beta=beta)
        n = learner.sample_size(alpha=0.25, beta=beta)
        assert learner.uniform_failure(n) <= beta < learner.uniform_failure(n - 1)
        assert n == parities.parity_learner(**at, k=5000, beta=beta).sample_size(alpha=0.0, beta=beta)
        theorem = bounds.parity_learner_theorem(**at, beta=beta)
        by_proof = parities.parity_learner(**at, k=1, size=bits + 3)
        assert n <= by_proof.sample_size(alpha=0.0, beta=beta) <= theorem
        assert by_proof.uniform_failure(theorem) <= beta


def test_least_sizes_of_elimination() -> None:
    for bits, beta in itertools.product((1, 10, 256), (0.5, 1e-3)):
        learner = parities.elimination(bits=bits, k=7)
        n = learner.sample_size(alpha=0.0, beta=beta)
        assert n <= bits + math.ceil(-math.log2(beta))
        assert learner.uniform_failure(n) <= beta and (n == bits or learner.uniform_failure(n - 1) > beta)


def test_pure_lower_bound_is_below_the_direct_sum() -> None:
    for bits, k, epsilon in itertools.product((1, 10), (1, 100), (0.1, 2.0)):
        learner = direct_sum.direct_sum(
            lambda each, bits=bits: single.exponential(bits=bits, epsilon=each.epsilon), k=k, epsilon=epsilon
        )
        assert bounds.pure_parities(k, bits, epsilon) <= learner.sample_size(alpha=0.0, beta=0.5)


# ------------------------------------------------------------------------------------------------------- recovering


@pytest.mark.slow
def test_a_thousand_parities_of_256_bits_are_recovered_at_the_sample_size() -> None:
    learner = parities.parity_learner(bits=256, k=1000, epsilon=1.0, delta=1e-6, beta=1e-3)
    n = learner.sample_size(alpha=0.0, beta=1e-3)
    law = concept.uniform(bits=256, targets=concept.random_targets(jax.random.key(5), bits=256, k=1000))
    for seed in range(3):
        key_sample, key_coins = jax.random.split(jax.random.key(seed))
        outcome = learner(key_coins, law.sample(key_sample, 16383, n))
        assert int(outcome.status) == Status.OK
        assert float(law.errors(outcome.hypothesis).max()) == 0


def test_elimination_is_the_only_fit_among_all_parities() -> None:
    rng, learner = np.random.default_rng(5), parities.elimination(bits=3, k=2)
    seen = set()
    for _ in range(40):
        n, targets = int(rng.integers(1, 8)), rng.integers(0, 8, 2)
        xs = rng.integers(0, 8, n)
        ys = [[inner(int(v), int(x)) ^ int(rng.random() < 0.05) for v in targets] for x in xs]
        found = learner(jax.random.key(0), builders.multi_sample_of(xs, ys, 3, 7))
        expected = vote(list(zip(xs.tolist(), ys, strict=True)), 3)
        assert (tuple(wide.to_ints(found.hypothesis)) if int(found.status) == Status.OK else None) == expected
        seen.add(expected is None)
    assert seen == {True, False}


def test_elimination_recovers_and_refuses() -> None:
    law = concept.uniform(bits=33, targets=np.random.default_rng(0).integers(0, 2**33, 34).tolist())
    learner = parities.elimination(bits=33, k=34)
    sample = law.sample(jax.random.key(1), 60, 50)
    found = learner(jax.random.key(2), sample)
    assert int(found.status) == Status.OK and (np.asarray(found.hypothesis) == np.asarray(law.targets)).all()
    np.testing.assert_array_equal(learner.predict(found.hypothesis, sample.x), sample.labels)
    few = learner(jax.random.key(2), law.sample(jax.random.key(1), 60, 32))
    labels = np.array(sample.y)
    labels[7, 0] ^= 1
    flipped = dataclasses.replace(sample, y=jnp.asarray(labels))
    assert int(few.status) == Status.BOTTOM == int(learner(jax.random.key(2), flipped).status)


@pytest.mark.slow
def test_direct_sum_of_pure_learners_recovers() -> None:
    learner = direct_sum.direct_sum(lambda each: single.exponential(bits=6, epsilon=each.epsilon), k=5, epsilon=5.0)
    law = concept.uniform(bits=6, targets=[0, 1, 17, 40, 63])
    n = learner.sample_size(alpha=0.0, beta=1e-4)
    outcome = learner(jax.random.key(0), law.sample(jax.random.key(1), n, n))
    assert float(law.errors(outcome.hypothesis).max()) == 0
    experiment = pac.Experiment(learner=learner, distribution=law, n=20, alpha=0.0, capacity=63)
    few = float(pac.failure(jax.random.key(2), experiment))
    sample = pac.draw(jax.random.key(2), experiment)[1]
    laws = [np.asarray(learner.learner.pmf(sample.column(j)), np.float64) for j in range(5)]
    expected = 1 - np.prod([p[v] for p, v in zip(laws, (0, 1, 17, 40, 63), strict=True)])
    np.testing.assert_allclose(few, expected, rtol=1e-3)


# ------------------------------------------------------------------------------------------------------ compilation


@pytest.mark.slow  # conformance
def test_one_program_serves_sizes_and_budgets_and_padding_changes_nothing() -> None:
    law = concept.uniform(bits=5, targets=[3, 9, 21])
    learner = parities.parity_learner(bits=5, k=3, epsilon=1.0, delta=0.1, size=7)
    traces = []

    @jax.jit
    def run(learner: Any, key: jax.Array, sample: MultiSample) -> Any:
        traces.append(1)
        return learner(key, sample)

    for n in (40, 50, 63):
        for epsilon in (0.5, 1.0, 2.0):
            at = parities.parity_learner(bits=5, k=3, epsilon=epsilon, delta=0.1, size=7)
            run(at, jax.random.key(0), law.sample(jax.random.key(n), 63, n))
    assert len(traces) == 1
    laws = jax.jit(lambda learner, key, sample: (learner(key, sample), learner.failure_probability(sample, error=0.0)))
    for n in (26, 31):
        short, long = law.sample(jax.random.key(0), 31, n), law.sample(jax.random.key(0), 63, n)
        a, b = laws(learner, jax.random.key(1), short), laws(learner, jax.random.key(1), long)
        jax.tree.map(
            np.testing.assert_array_equal, (a[0].status, a[0].hypothesis, a[1]), (b[0].status, b[0].hypothesis, b[1])
        )


@pytest.mark.slow  # conformance
def test_vmap_equals_a_loop_and_the_law_has_a_gradient() -> None:
    law = concept.uniform(bits=5, targets=[3, 9])
    learner = parities.parity_learner(bits=5, k=2, epsilon=1.0, delta=0.1, size=7)
    ns = np.array([63, 40, 3], np.int32)
    draw = lambda n: law.sample(jax.random.key(7), 63, n)  # noqa: E731
    run = lambda n: learner(jax.random.key(1), draw(n))  # noqa: E731
    single, together = jax.jit(run), jax.device_get(jax.jit(jax.vmap(run))(ns))
    for i, n in enumerate(ns):
        alone = jax.device_get(single(n))
        assert alone.status == together.status[i] and (alone.hypothesis == together.hypothesis[i]).all()
    assert together.status[2] == Status.BOTTOM  # fewer examples than one subsample

    def success(epsilon: Any) -> Any:
        at = parities.parity_learner(bits=5, k=2, epsilon=epsilon, delta=0.1, size=7)
        return at.success_probability(draw(63), error=0.0)

    both = jax.jit(jax.value_and_grad(success))
    (_, slope), (above, _), (below, _) = (both(epsilon) for epsilon in (1.0, 1.01, 0.99))
    np.testing.assert_allclose(slope, (above - below) / 0.02, rtol=1e-2)


# --------------------------------------------------------------------------------------------------------- refusals

GOOD = {"bits": 4, "k": 2, "epsilon": 1.0, "delta": 0.1}


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"bits": 0}, ValueError, "bits must be from 1 to 1024, got 0"),
        ({"bits": 1025}, ValueError, "bits must be from 1 to 1024"),
        ({"k": 0}, ValueError, "k must be >= 1"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be > 0"),
        ({"delta": 0.0}, ValueError, "delta must be > 0"),
        ({"delta": 0.6}, ValueError, "delta must be <= 0.5"),
        ({"beta": 1.0}, ValueError, "beta must be < 1"),
        ({"size": 3}, ValueError, "size must be >= 4, got 3"),
        ({"calibration": "proved_counts"}, ValueError, "calibration must be one of"),
    ],
)
def test_bad_parameters_are_refused(wrong: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parities.parity_learner(**(GOOD | wrong))


def test_bad_samples_are_refused() -> None:
    learner, key = parities.parity_learner(**GOOD), jax.random.key(0)
    with pytest.raises(TypeError, match=r"sample must be a dpjax.MultiSample"):
        learner(key, [1])
    with pytest.raises(ValueError, match="k = 2 concepts, got 1"):
        learner(key, sample_of([1, 2], [[0], [1]], 4))
    with pytest.raises(ValueError, match="1 limbs for points of 4 bits, got 2"):
        learner(key, sample_of([1, 2], [[0, 1], [1, 1]], 40))
    with pytest.raises(ValueError, match=r"sample.x must hold points in 0, \.\.\., 2\^4 - 1, got"):
        learner(key, sample_of([1, 16], [[0, 1], [1, 1]], 5))
    inside = jax.jit(lambda s: learner(jax.random.key(0), s).status)
    assert int(inside(sample_of([1, 16], [[0, 1], [1, 1]], 5))) == Status.OUTSIDE_DOMAIN
    assert int(inside(sample_of([1, 16], [[0, 1], [1, 1]], 5, 1))) == Status.BOTTOM
    with pytest.raises(ValueError, match="k \\* bits must be from 1 to 12"):
        parities.parity_learner(**(GOOD | {"k": 4})).pmf(sample_of([1], [[0, 1, 1, 0]], 4))
    with pytest.raises(ValueError, match="size must be given when epsilon or delta is traced"):
        jax.jit(lambda e: parities.parity_learner(**(GOOD | {"epsilon": e})).epsilon)(1.0)
    with pytest.raises(ValueError, match=r"alpha must be < 0\.5"):
        learner.sample_size(alpha=0.5, beta=0.1)


def test_beta_is_checked_also_where_a_size_is_given():
    with pytest.raises(TypeError, match="beta must be a real number, got 'nonsense'"):
        parities.parity_learner(bits=3, k=2, epsilon=1.0, delta=0.1, beta="nonsense", size=5)
