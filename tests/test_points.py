"""Points: equal rows grouped, exact errors, three learners against naive references, three sanitizers, refusals."""

import dataclasses
import functools
import itertools
import math
from collections import Counter
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Points, Sample, Status, Weighted, bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts import points as concept
from dpjax.data import algorithm
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import events, groups, wide
from dpjax.learners import pac, points
from dpjax.learners.points import base
from dpjax.multi import points as many_points
from dpjax.sanitizers import points as sanitizer
from dpjax.verify.plain.exponential import point_law
from dpjax.verify.plain.learn_points import learn_points_law

FALSE_ALARM = 2e-5
SLOW = pytest.mark.slow


ROWS = 31  # one number for most tests, so that they share programs


def sample_of(examples: Any, bits: int, rows: int = ROWS) -> Sample:
    """Padded on the host, without programs."""
    filled = [*examples, *[(0, 0)] * (rows - len(examples))]
    x = wide.from_ints([x for x, _ in filled], bits)
    return Sample(x=x, y=np.array([y for _, y in filled]), n_valid=len(examples))


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs_of(algorithm_: Any, key: jax.Array, data: Any) -> Any:
    return algorithm_(key, data)


MIXED = [(3, 1)] * 5 + [(3, 0)] * 2 + [(1, 1)] * 3 + [(6, 0)] * 4 + [(0, 0), (0, 1)]
ZEROS = [(2, 0), (5, 0), (5, 0)]


# -------------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("words", [1, builders.thorough(3), 40])
def test_groups_are_the_distinct_rows_and_nested_ones_agree(words: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**32, (6, words), dtype=np.uint32)
    rows[:3, :-1] = rows[0, :-1]  # told apart by the last word only
    x, valid = rows[rng.integers(0, 6, 50)], rng.random(50) < 0.7
    y = rng.integers(0, 2, (50, 2), dtype=np.uint32)

    @jax.jit
    def nested(x: Any, y: Any, valid: Any) -> Any:
        fine = groups.group(jnp.concatenate([x, y], axis=1), valid)
        order = groups.lexicographic(x, valid)
        promised = groups.group(x[order], valid[order], ordered=True)
        return groups.group(x, valid), fine, groups.coarser(fine, words), promised, order

    found, fine, coarse, promised, order = jax.device_get(nested(x, y, valid))
    for name in ("rows", "counts", "size"):
        np.testing.assert_array_equal(getattr(promised, name), getattr(found, name))
    np.testing.assert_array_equal(promised.member, found.member[order])
    distinct, counts = np.unique(x[valid], axis=0, return_counts=True)
    size = int(found.size)
    assert size == len(distinct)
    np.testing.assert_array_equal(found.rows[:size], distinct)
    np.testing.assert_array_equal(found.counts, np.pad(counts, (0, 50 - size)))
    np.testing.assert_array_equal(found.rows[found.member[valid]], x[valid])
    assert (found.member[~valid] == 50).all()
    np.testing.assert_array_equal(coarse.rows, found.rows)
    np.testing.assert_array_equal(coarse.counts, found.counts)
    m = int(fine.size)
    np.testing.assert_array_equal(fine.rows[:m], np.unique(np.concatenate([x, y], 1)[valid], axis=0))
    np.testing.assert_array_equal(coarse.rows[coarse.member[:m]], fine.rows[:m, :words])
    assert (coarse.member[m:] == 50).all()


@pytest.mark.thorough
@pytest.mark.parametrize("words", [1, 20])
def test_few_groups_are_the_same_groups_and_many_fall_back(words: int) -> None:
    """One batch: no rows, one distinct row, as many distinct rows as there are slots, one more, and nothing but distinct rows."""
    rng, n = np.random.default_rng(1), 200
    rows = np.sort(rng.integers(0, 2**32, (n, words), dtype=np.uint32), axis=0)
    rows[:, : words - 1] = rows[0, : words - 1]
    kinds = [1, 1, groups.FEW_GROUPS, groups.FEW_GROUPS + 1, n]
    drawn = [rng.permutation(np.concatenate([np.arange(m), rng.integers(0, m, n - m)])) for m in kinds]
    x, valid = rows[np.stack(drawn)], np.ones((5, n), bool)
    valid[0], values = False, rng.integers(0, 2, (5, n))

    def summary(found: groups.Groups, values: Any) -> Any:
        room = ((0, n - found.counts.shape[0]), (0, 0))
        rows = jnp.pad(found.rows, room, constant_values=np.uint32(2**32 - 1))
        at = jnp.where(found.valid, jnp.arange(found.counts.shape[0], dtype=jnp.int32), n)
        counts, sums = (jnp.zeros(n, jnp.int32).at[at].set(a, mode="drop") for a in (found.counts, found.sums(values)))
        return rows, counts, found.size, sums

    @jax.jit
    @jax.vmap
    def both(x: Any, valid: Any, y: Any) -> Any:
        ours = groups.drawn(jax.random.key(0), x, valid, lambda _, found: summary(found, y))
        return ours, summary(groups.group(x, valid), y), groups.few(x, valid)[1]

    ours, theirs, complete = both(x, valid, values.astype(np.int32))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert complete.tolist() == [True, True, True, False, False]


def test_as_few_rows_as_there_may_be_groups_are_all_told_apart() -> None:
    """For so few rows there is no other way of grouping."""
    x = wide.from_ints([9, 3, 2**40, 5], 64)
    found, complete = jax.jit(groups.few)(x, jnp.ones(4, bool))
    assert complete and wide.to_ints(found.rows) == [3, 5, 9, 2**40] and found.counts.tolist() == [1] * 4


# ------------------------------------------------------------------------------------------------------------ concepts


def test_where_all_is_background_no_word_names_a_heavy_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share 1 is 2^32 in units of 2^-32, which is no word."""
    monkeypatch.setattr("dpjax.core.random.bits", lambda key, count: jnp.full(count, 2**32 - 1, jnp.uint32))
    law = concept.uniform(bits=8, target=3)
    drawn = jax.jit(lambda key: law.draw(key, 3, jnp.int32(3)).x)(jax.random.key(0))
    assert law.spread and wide.to_ints(drawn) == [255] * 3


def test_a_target_that_is_heavy_is_named_once() -> None:
    for target, named in ((40, [True, True, False]), (7, [True, True, True]), (None, [True, True, False])):
        law = concept.point_masses(bits=6, points=[3, 40], masses=[1.0, 3.0], target=target)
        assert law.within(0.5).where.tolist() == named


def test_errors_are_exact_for_points_and_buckets() -> None:
    """Against the sum over the whole domain."""
    law = concept.point_masses(bits=6, points=[3, 40], masses=[1.0, 3.0], target=40, background=0.25)
    mass = np.full(64, 0.25 / 64)
    mass[[3, 40]] += 0.75 * np.array([0.25, 0.75])
    domain, target = wide.from_ints(range(64), 6), np.arange(64) == 40
    hashed = points.hashed(bits=6, epsilon=1.0, buckets=4, allow_inaccurate=True)
    hashes = jax.jit(jax.vmap(hashed.hash))(jax.random.split(jax.random.key(0), 4))
    numbers = np.tile(np.array([0, 3, 9], np.uint32), 4)
    buckets = points.Bucket(
        hash=jax.tree.map(lambda leaf: np.repeat(leaf, 3, axis=0), jax.device_get(hashes)),
        bucket=numbers[:, None],
        zero=numbers == 3,
    )

    @jax.jit
    def measured(law: Any, hypotheses: Any) -> Any:
        """Errors one by one, errors of k against k targets (here the same one), labels of the whole domain."""
        several = dataclasses.replace(law, targets=concept.point([40] * hypotheses.zero.shape[0], bits=6))
        labels = jax.vmap(lambda hypothesis: hypothesis.predict(domain))(hypotheses)
        return jax.vmap(law.error)(hypotheses), several.errors(hypotheses), labels

    for hypotheses in (concept.point([40, 3, None], bits=6), buckets):
        errors, together, labels = jax.device_get(measured(law, hypotheses))
        expected = (mass * (labels != target)).sum(axis=1)
        np.testing.assert_allclose(errors, expected, atol=1e-6)
        np.testing.assert_allclose(together, expected, atol=1e-6)


def test_k_targets_label_columns_and_errors_are_each_ones_own() -> None:
    targets = [2**100, None, 5, 2**100]
    law = concept.point_masses(bits=128, points=[5, 2**100], masses=[0.25, 0.75], target=targets)
    sample = jax.jit(lambda key: law.sample(key, 63, 40))(jax.random.key(0))
    assert isinstance(sample, MultiSample)
    values = np.array(wide.to_ints(sample.x), object)
    expected = np.stack([values == t if t is not None else values == -1 for t in targets], 1)
    np.testing.assert_array_equal(sample.labels[:40], expected[:40])
    wrong = concept.point([5, 5, None, 2**100], bits=128)
    np.testing.assert_allclose(jax.jit(law.errors)(wrong), [1.0, 0.25, 0.25, 0.0])
    assert np.mean(values[:40] == 5) < 0.6
    # Uniform: half of 2 points; its sample is one of points of the domain.
    flat = concept.uniform(bits=40, target=None)
    drawn = wide.to_ints(jax.jit(lambda key: flat.sample(key, 64, 64).x)(jax.random.key(1)))
    assert len(set(drawn)) == 64 and max(drawn) < 2**40 and max(drawn) > 2**38


# ------------------------------------------------------------------------------------------- learners: laws, references


@pytest.mark.slow  # on one sample: conformance
@pytest.mark.parametrize("examples", [MIXED, ZEROS, [(x, 1) for x in range(8)]])
def test_laws_equal_the_references(examples: Any) -> None:
    sample = sample_of(examples, 3)
    epsilon, delta = 1.5, 0.1
    constants = {
        "printed": (1 / epsilon, math.log(1 / delta) / epsilon),
        "proved": (2 / epsilon, 2 + 2 / epsilon * math.log(1 / (2 * delta))),
    }
    for calibration, bottom in (("printed", "zero"), ("proved", "random")):
        scale, threshold = constants[calibration]
        law = learn_points_law(examples, 8, scale=scale, threshold=threshold, bottom=bottom)
        learner = points.learn_points(bits=3, epsilon=epsilon, delta=delta, calibration=calibration, bottom=bottom)
        np.testing.assert_allclose(learner.pmf(sample), [*law, 0.0], atol=1e-6)  # bottom never
    np.testing.assert_allclose(
        points.exponential(bits=3, epsilon=epsilon).pmf(sample), [*point_law(examples, 8, epsilon), 0.0], atol=1e-6
    )
    # A hash: the same mechanism on hashed points, all-zero included.
    buckets = [(int(b), y) for b, (_, y) in zip(np.asarray(HASHED.hash(sample.x))[:, 0], examples, strict=False)]
    np.testing.assert_allclose(HASHED.pmf(sample), [*point_law(buckets, 8, epsilon, zero=True), 0.0], atol=1e-6)


def learners() -> list[Any]:
    hashed = points.hashed(bits=3, epsilon=1.5, buckets=3, allow_inaccurate=True)
    return [
        points.learn_points(bits=3, epsilon=1.5, delta=0.1),
        points.learn_points(bits=3, epsilon=1.5, delta=0.1, bottom="zero"),
        points.exponential(bits=3, epsilon=0.5),
        hashed.given(hashed.hash(jax.random.key(1))),
    ]


RANDOM, ZERO, EXPONENTIAL, HASHED = learners()


@pytest.mark.slow
def test_the_sampler_of_a_hash_follows_its_law() -> None:
    sample, runs = sample_of(MIXED, 3), 20_000
    outcomes = jax.device_get(runs_of(HASHED, jax.random.split(jax.random.key(7), runs), sample))
    position, zero = outcomes.hypothesis.bucket[:, -1], outcomes.hypothesis.zero
    seen = np.bincount(np.where(zero, 8, position), minlength=10)
    assert seen[9] == 0 and (outcomes.status == Status.OK).all()
    for learner, right in ((HASHED, True), (dataclasses.replace(HASHED, epsilon=np.float32(2.0)), False)):
        law = np.asarray(learner.pmf(sample), float)[:9]
        assert (stats.chisquare(seen[:9], runs * law / law.sum()).pvalue > FALSE_ALARM) == right


@pytest.mark.thorough
def test_one_program_serves_every_epsilon() -> None:
    sample = sample_of(MIXED, 3)
    points.exponential(bits=3, epsilon=0.5)(jax.random.key(0), sample)
    before = algorithm._run._cache_size()
    for epsilon in (0.1, 1.0, 3):
        points.exponential(bits=3, epsilon=epsilon)(jax.random.key(0), sample)
    assert algorithm._run._cache_size() == before


@pytest.mark.thorough
def test_the_unseen_point_is_uniform_among_the_unseen() -> None:
    sample = sample_of([(x, 0) for x in (0, 1, 4, 7, 8, 15, 15)], 4)
    learner = points.exponential(bits=4, epsilon=1.0)
    draw = jax.jit(lambda keys, sample: jax.vmap(base.unseen_point, (0, None))(keys, learner.prepare(sample)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 10_000), sample))[:, 0]
    counts = np.bincount(drawn, minlength=16)
    assert set(np.flatnonzero(counts)) == set(range(16)) - {0, 1, 4, 7, 8, 15}
    assert stats.chisquare(counts[counts > 0]).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_wide_domains_are_exact() -> None:
    """4096 bits: the law with ln(2^d - #seen) as measure, and a seen point beats 2^4096 others past d ln 2 examples."""
    target = 2**4095 + 12345
    learner = points.exponential(bits=4096, epsilon=2.0)
    for n, likely in ((2830, 0.0), (2840, 0.762), (2850, 1.0)):  # 4096 ln 2 = 2839.1
        sample = sample_of([(target, 1)] * n, 4096, 4095)
        odds = math.exp(4096 * math.log(2) - n)
        success = float(learner.success_probability(sample, error=0.0))
        np.testing.assert_allclose(success, 1 / (1 + odds), atol=1e-3)
        np.testing.assert_allclose(success, likely, atol=0.06)


def small_learners() -> dict[str, Any]:
    return {"random": RANDOM, "zero": ZERO, "exponential": EXPONENTIAL, "hashed": HASHED}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hashed", *map(builders.slow, ("random", "zero", "exponential"))])
def test_probabilities_of_events_are_sums_of_the_pmf(name: str) -> None:
    """Intervals, sets with and without the other points, single outputs; named points seen, unseen, outside and not there."""
    learner, sample = small_learners()[name], sample_of(MIXED, 3)
    law = np.asarray(learner.pmf(sample), np.float64)[:9]
    for low, high in ((0, 8), (2, 7), (3, 4), (5, 5), (6, 2), (7, 2**32), (8, 9)):
        inside = law[:8][low:high].sum()
        np.testing.assert_allclose(learner.probability(sample, (low, high)), [inside, 1 - inside], atol=2e-6)
    listed, good = wide.from_ints([3, 5, 1, 9, 2], 4), np.array([True, True, False, True, True])
    there, kind = np.array([True, True, True, True, False]), points.BucketSet if name == "hashed" else events.PointSet
    for others, zero in itertools.product((False, True), repeat=2):
        members = np.array([others] * 8 + [zero])
        members[[3, 5, 1]] = True, True, False
        event = kind(points=listed, where=there, good=good, others=np.bool_(others), zero=np.bool_(zero))
        found = learner.probability(sample, event)
        np.testing.assert_allclose(found, [law[members].sum(), law[~members].sum()], atol=2e-6)
    if name == "hashed":  # those of the others are in the conformance suite
        for index in (3, 5, 8):
            found = np.exp(learner.log_prob(sample, learner.output(jnp.uint32(index))))
            np.testing.assert_allclose(found, law[index], atol=1e-6)


@pytest.mark.parametrize("target", [40, 7, None, [40, 7, None]])
def test_concepts_within_alpha_are_those_of_small_error(target: Any) -> None:
    law = concept.point_masses(bits=6, points=[40, 3], masses=[3.0, 1.0], target=target, background=0.25)
    several = isinstance(target, list)
    targets, alphas = concept.point(target if several else [target], bits=6), np.array([0.0, 0.2, 0.25, 0.6, 1.0])
    errors, sets = jax.device_get(errors_and_sets(law, targets, alphas.astype(np.float32)))
    for (i, alpha), j in itertools.product(enumerate(alphas), range(len(errors))):
        good = jax.tree.map(lambda leaf: leaf[i, j] if several else leaf[i], sets)  # noqa: B023
        members = np.full(65, bool(good.others))
        members[good.points[good.where, -1]] = good.good[good.where]
        members[64] = bool(good.zero)
        np.testing.assert_array_equal(members, errors[j] <= alpha)


@jax.jit
def errors_and_sets(law: Any, targets: Any, alphas: Any) -> Any:
    """(the errors of all concepts for each target, the sets of those within each alpha)."""
    everything = concept.point([*range(64), None], bits=6)
    errors = jax.vmap(lambda target: jax.vmap(lambda h: law._error(h, target))(everything))(targets)
    return errors, jax.vmap(law.within)(alphas)


@pytest.mark.slow  # `test_trials`
def test_laws_of_a_pac_experiment_are_the_frequencies_of_its_trials() -> None:
    law = concept.point_masses(bits=16, points=[3, 900], masses=[1.0, 2.0], target=900, background=0.2)
    experiment = pac.Experiment(
        learner=points.learn_points(bits=16, epsilon=0.5, delta=0.05), distribution=law, n=35, alpha=0.3, capacity=63
    )
    keys = jax.random.split(jax.random.key(0), 2000)
    run = jax.jit(
        jax.vmap(lambda key: (pac.trial(jax.random.clone(key), experiment)["failed"], pac.failure(key, experiment)))
    )
    failed, laws = (np.asarray(part, np.float64) for part in run(keys))
    assert 0.1 < laws.mean() < 0.9
    spread = math.sqrt((laws * (1 - laws)).sum())
    assert abs(failed.sum() - laws.sum()) < stats.norm.isf(FALSE_ALARM / 2) * spread


@pytest.mark.thorough
@pytest.mark.parametrize("name", [builders.slow("random"), "hashed"])
def test_laws_have_gradients_however_many_points_were_seen(name: str, x64: None) -> None:
    """Fifty distinct points: more than the few that samplers find one by one."""
    sample = sample_of([(i % 50, int(i % 50 == 7)) for i in range(70)] + [(7, 1)] * 8, 8, 127)
    hashed = points.hashed(bits=8, epsilon=1.0)
    given = hashed.given(jax.jit(hashed.hash)(jax.random.key(0)))
    make = {
        "random": lambda e: points.learn_points(bits=8, epsilon=e, delta=0.1),
        "hashed": lambda e: dataclasses.replace(given, epsilon=e),
    }[name]

    def failure(epsilon: Any) -> Any:
        return make(epsilon).failure_probability(sample, error=0.05)

    @jax.jit
    def slopes(epsilon: Any) -> Any:
        value, push = jax.linearize(failure, epsilon)  # traced once: its transpose is what reverse mode evaluates
        (reverse,) = jax.linear_transpose(push, epsilon)(jnp.ones_like(value))
        return value, reverse, push(jnp.ones_like(epsilon))

    (_, *found), above, below = (slopes(0.7 + step) for step in (0.0, 1e-5, -1e-5))
    slope = (above[0] - below[0]) / 2e-5
    assert abs(slope) > 1e-3
    np.testing.assert_allclose(found, [slope, slope], rtol=1e-5)


# ------------------------------------------------------------------------------------------------- learners: promises


SIZED = {
    "learn_points": lambda: points.learn_points(bits=32, epsilon=1.0, delta=1e-5),
    "learn_points_printed": lambda: points.learn_points(bits=32, epsilon=1.0, delta=1e-5, calibration="printed"),
    "exponential": lambda: points.exponential(bits=32, epsilon=1.0),
    "hashed": lambda: points.hashed(bits=32, epsilon=1.0, alpha=0.2, beta=0.2),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    ["learn_points", *map(builders.slow, ("hashed", "learn_points_printed", "exponential"))],
)
def test_the_stated_sample_size_suffices(name: str) -> None:
    """A target just above alpha, which all-zero and nearly every bucket get wrong; failures within beta (one-sided, 2e-5)."""
    alpha, beta, runs = 0.2, 0.2, 300
    learner = SIZED[name]()
    n = learner.sample_size(alpha=alpha, beta=beta)
    heavy, share = [77 + 31 * i for i in range(8)], (1 - 1.02 * alpha) / 7
    law = concept.point_masses(bits=32, points=heavy, masses=[1.02 * alpha] + [share] * 7, target=heavy[0])

    @jax.jit
    def failed(n: Any, law: Any) -> Any:
        experiment = pac.Experiment(learner=learner, distribution=law, n=n, alpha=alpha, capacity=1023)
        keys = jax.random.split(jax.random.key(3), runs)
        return jnp.sum(jax.vmap(lambda key: pac.trial(key, experiment)["failed"])(keys))

    def chance(n: int, law: Any) -> float:
        """P[at least as many failures as seen] if they had probability beta."""
        return stats.binom.sf(int(failed(jnp.int32(n), law)) - 1, runs, beta)

    assert chance(n, law) > FALSE_ALARM
    if name == "hashed":  # all-zero targets too
        assert chance(n, dataclasses.replace(law, targets=concept.zero(bits=32))) > FALSE_ALARM
    else:  # negative control: a tenth of it is not enough
        assert chance(n // 10, law) < FALSE_ALARM


def test_lemma_3_2_overlooks_the_target_s_own_mass() -> None:
    """D(target) = alpha: every other point errs on more, though none has D(i) > alpha as the proof says a bad one must."""
    law = concept.point_masses(bits=8, points=[9], masses=[1.0], target=9, background=0.9)
    alpha = 0.1 + 0.9 / 256
    error = jax.jit(law.error)
    errors = np.array([float(error(concept.point(i, bits=8))) for i in (0, 8, 255)])
    assert (errors > alpha + 1e-4).all() and alpha > 0.9 / 256


# ---------------------------------------------------------------------------------------------------------- sanitizers


DATA = [3] * 700 + [2**50] * 290 + [1, 2, 4, 5, 6, 8, 9, 10, 11, 12]


def test_release_is_algorithm_2() -> None:
    """Given the noise that was drawn, the naive algorithm gives the same answers; unreleased points leave no trace."""
    n, alpha = len(DATA), 0.5
    mechanism = sanitizer.release(bits=64, n=n, epsilon=1.0, delta=1e-6, alpha=alpha)
    data = Points.create(wide.from_ints(DATA, 64))
    counts = np.array([count for _, count in sorted(Counter(DATA).items())], np.int32)
    asked = [*sorted(set(DATA)), 7, 2**64 - 1]
    points_asked = wide.from_ints(asked, 64)

    @jax.jit
    def both(key: Any) -> Any:
        released = mechanism(key, data).hypothesis
        noisy = mechanism.noisy(jax.random.clone(key), jnp.asarray(counts))[0]
        return released, released.answer(points_asked), noisy

    for seed in range(2):
        released, answers, noisy = jax.device_get(both(jax.random.key(seed)))
        noise, expected = noisy - counts, {}
        for i, (x, count) in enumerate(sorted(Counter(DATA).items())):
            if count / n > alpha / 4 and count / n + noise[i] / n > alpha / 2:
                expected[x] = count / n + noise[i] / n
        np.testing.assert_allclose(answers, [expected.get(x, 0.0) for x in asked], atol=1e-5)
        used = released.where
        assert wide.to_ints(released.points[: used.sum()]) == sorted(expected)
        assert (released.points[~used] == 2**32 - 1).all() and (released.answers[~used] == 0).all()


def test_a_count_of_no_more_than_the_low_threshold_is_never_released() -> None:
    """80 examples at alpha = 1/2: alpha n/4 = 10, and 10 itself is not above it."""
    mechanism = sanitizer.release(bits=4, n=80, epsilon=1.0, delta=1e-6, alpha=0.5, allow_unproved=True)
    assert float(mechanism.low) == 0.5 * 80 / 4
    released, _ = jax.jit(mechanism.log_released)(jnp.array([9, 10, 11], jnp.int32))
    assert released[0] == released[1] == -math.inf < released[2]


@pytest.mark.thorough
def test_rounds_of_san_points_choose_by_coins_of_their_own() -> None:
    """Three points alike, two rounds: the pairs are equally likely; by the same coins twice one pair would never be chosen."""
    mechanism = sanitizer.san_points(bits=4, n=60, epsilon=4.0, delta=1e-6, alpha=0.9, allow_unproved=True)
    mechanism = dataclasses.replace(mechanism, rounds=2, epsilon=np.float64(20.0))
    data = Points.create(wide.from_ints([i % 3 for i in range(60)], 4))
    draws = jax.jit(jax.vmap(lambda key: mechanism(key, data).hypothesis))(jax.random.split(jax.random.key(0), 600))
    sets = np.sum(np.where(draws.where, 1 << np.minimum(draws.points[..., 0], 3), 0), axis=1)
    law = np.exp(jax.jit(mechanism.log_released)(jnp.full(3, 20, jnp.int32)))
    assert law[3] == law[5] == law[6] > 0.2
    counts = np.bincount(sets, minlength=8)[[3, 5, 6]]
    assert stats.chisquare(counts).pvalue > 2e-5
    # Each is as likely as its law says, and each count has the noise of a round.
    assert stats.binomtest(int(counts.sum()), 600, float(law[[3, 5, 6]].sum())).pvalue > 2e-5
    noise = (np.asarray(draws.answers) * 60 - 20)[np.asarray(draws.where)]
    assert stats.kstest(noise, stats.laplace(scale=1 / float(mechanism.round_epsilon())).cdf).pvalue > 2e-5


@pytest.mark.slow
def test_sanitizers_are_accurate_at_their_sample_sizes() -> None:
    """40 releases each; every frequency within alpha (beta = 1e-3, so one failure in 40 would have probability 0.04)."""
    given, alpha = {"epsilon": 1.0, "delta": 1e-6}, 0.25
    law = concept.point_masses(
        bits=32, points=list(range(9)), masses=[30.0, 12.0] + [4.0] * 7, target=None, background=0.3
    )
    asked = wide.from_ints(range(12), 32)

    @jax.jit
    def worst(mechanism: Any, n: Any) -> Any:
        def one(key: Any) -> Any:
            key_data, key_noise = jax.random.split(key)
            sample = law.sample(key_data, 1023, n)
            there = jnp.arange(1023) < n
            truth = jnp.sum(wide.equal(sample.x[:, None], asked[None]) & there[:, None], axis=0) / n
            return jnp.max(jnp.abs(mechanism(key_noise, sample).hypothesis.answer(asked) - truth))

        return jax.vmap(one)(jax.random.split(jax.random.key(2), 40))

    release = bounds.point_release(**given, alpha=alpha, beta=1e-3)
    histogram = bounds.point_histogram(1.0, bounds.histogram_margin(**given), alpha, 1e-3)
    assert histogram < release / 2
    for n, mechanism in (
        (release, sanitizer.release(bits=32, n=release, alpha=alpha, **given)),
        (histogram, sanitizer.histogram(bits=32, n=histogram, **given)),
    ):
        assert (np.asarray(worst(mechanism, jnp.int32(n))) <= alpha).all()
        assert mechanism.guarantee().covers(1.0, 1e-6)
    few = sanitizer.histogram(bits=32, n=30, **given)  # negative control: nothing of 30 is released
    assert (np.asarray(worst(few, jnp.int32(30))) > alpha).any()


@pytest.mark.thorough
def test_san_points_finds_heavy_points_and_sums_sets() -> None:
    given = {"epsilon": 4.0, "delta": 1e-6}
    n = bounds.san_points(**given, alpha=0.8 / 2, beta=0.01)
    mechanism = sanitizer.k_points(k=2, bits=64, n=n, alpha=0.8, **given)
    assert mechanism.rounds == 5 and mechanism.guarantee().covers(4.0, 1e-6)
    counts = {2**63: n // 2, 17: n // 3}
    data = [x for x, c in counts.items() for _ in range(c)]
    data += [5000 + i % 1000 for i in range(n - len(data))]
    heavy = wide.from_ints([17, 2**63, 5000], 64)

    @jax.jit
    def answered(key: Any, data: Any) -> Any:
        released = mechanism(key, data).hypothesis
        return released.answer(heavy), released.total(heavy[:2]), jnp.sum(released.where)

    answers, total, named = answered(jax.random.key(0), Points.create(wide.from_ints(data, 64)))
    np.testing.assert_allclose(answers, [1 / 3, 1 / 2, 0.0], atol=0.01)
    np.testing.assert_allclose(total, 5 / 6, atol=0.02)
    assert named == 2 and answers[2] == 0.0  # then ⊥: nothing else is near alpha n / 4


def test_sanitizers_refuse_a_small_n_and_say_why() -> None:
    given = {"bits": 32, "n": 100, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1}
    with pytest.raises(ValueError, match=r"n must be at least 1146 .*got 100"):
        sanitizer.release(**given)
    with pytest.raises(ValueError, match=r"n must be at least \d+ .*Lemma 4.4.*got 100"):
        sanitizer.san_points(**given)
    for create in (sanitizer.release, sanitizer.san_points):
        assert create(**given, allow_unproved=True).guarantee() == Guarantee.none(REPLACE_ONE)
    assert sanitizer.histogram(bits=32, n=1, epsilon=1.0, delta=1e-6).guarantee().delta == 1e-6
    least = bounds.point_release_private(epsilon=1.0, delta=1e-6, alpha=0.1)
    assert math.exp(-least * 0.1 / 8 + 0.5) <= 1e-6 < math.exp(-(least - 1) * 0.1 / 8 + 0.5)
    with pytest.raises(ValueError, match=r"epsilon must be <= 2 ln\(5/delta\)"):
        sanitizer.san_points(bits=32, n=10**9, epsilon=40.0, delta=1e-6, alpha=0.5)


@pytest.mark.parametrize("name", [builders.slow("release"), "histogram", builders.slow("san_points")])
def test_how_often_all_answers_are_accurate_is_known_exactly(name: str) -> None:
    data, error = [3] * 20 + [9] * 12 + [40] * 7 + [41], 0.15
    given = {"bits": 6, "n": len(data), "delta": 0.1}
    mechanism: Any = {
        "release": lambda: sanitizer.release(**given, epsilon=0.5, alpha=0.4, allow_unproved=True),
        "histogram": lambda: sanitizer.histogram(**given, epsilon=0.5),
        "san_points": lambda: sanitizer.san_points(**given, epsilon=4.0, alpha=0.5, allow_unproved=True),
    }[name]()
    held, asked = Points.create(wide.from_ints(data, 6)), wide.from_ints(range(64), 6)
    truth = jnp.asarray(np.bincount(data, minlength=64) / len(data), float)
    run = jax.jit(jax.vmap(lambda key: jnp.max(jnp.abs(mechanism(key, held).hypothesis.answer(asked) - truth))))
    right = int((np.asarray(run(jax.random.split(jax.random.key(0), 4000))) <= error).sum())
    success, failure = (f(held, error=error) for f in (mechanism.success_probability, mechanism.failure_probability))
    assert 0.05 < success < 0.95
    np.testing.assert_allclose(success + failure, 1, rtol=1e-5)
    assert stats.binomtest(right, 4000, float(success)).pvalue > FALSE_ALARM
    assert stats.binomtest(right, 4000, float(success) * 0.7).pvalue < FALSE_ALARM
    with pytest.raises(TypeError, match="no pmf"):
        mechanism.pmf(held)


def test_a_rare_accurate_answer_keeps_its_digits() -> None:
    """One point of 36 examples, whose noisy count must pass 68.7; computed as 1 minus the rest it would be a multiple of 6e-8."""
    mechanism = sanitizer.histogram(bits=6, n=36, epsilon=1.0, delta=1e-15)
    success = mechanism.success_probability(Points.create(wide.from_ints([3] * 36, 6)), error=0.99)
    noise = stats.laplace(scale=2.0)
    expected = noise.sf(float(mechanism.high) - 36) - noise.sf(0.99 * 36)
    assert 1e-9 < expected < 1e-7
    np.testing.assert_allclose(success, expected, rtol=1e-4)


def test_data_of_another_size_than_was_said_are_refused() -> None:
    mechanism = sanitizer.histogram(bits=6, n=100, epsilon=1.0, delta=0.1)
    data = Points.create(wide.from_ints([1, 2, 3, 3], 6))
    with pytest.raises(ValueError, match=r"n = 100, as the sanitizer was told, got 4"):
        mechanism(jax.random.key(0), data)
    outcome = jax.jit(lambda data: mechanism(jax.random.key(0), data))(data)
    assert int(outcome.status) == Status.OUTSIDE_DOMAIN and not outcome.hypothesis.answers.any()


def test_guarantees_follow_from_the_numbers_in_use() -> None:
    release = sanitizer.release(bits=8, n=2000, epsilon=1.0, delta=1e-6, alpha=0.1)
    assert release.guarantee() == Guarantee(1.0, 1e-6, REPLACE_ONE)
    assert dataclasses.replace(release, n=np.float64(1000)).guarantee() == Guarantee.none(REPLACE_ONE)
    histogram = sanitizer.histogram(bits=8, n=2000, epsilon=1.0, delta=1e-6)
    doubled = dataclasses.replace(histogram, epsilon=np.float64(2.0))
    assert doubled.guarantee().epsilon == 2.0 and doubled.high < histogram.high


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_parameter_that_nobody_could_check_shows_in_the_status(name: str) -> None:
    learner, sample = points.learn_points(bits=3, epsilon=1.0, delta=0.1), sample_of(MIXED, 3)
    mechanism = sanitizer.histogram(bits=3, n=len(MIXED), epsilon=1.0, delta=0.1)
    for algorithm_ in (learner, mechanism):
        for bad in (math.nan, -1.0, 0.0):
            outcome = dataclasses.replace(algorithm_, **{name: np.float64(bad)})(jax.random.key(0), sample)
            assert int(outcome.status) == Status.BAD_PARAMETER
            assert not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(outcome.hypothesis))


def test_the_repaired_lemma_is_one_formula() -> None:
    learner = points.learn_points(bits=64, epsilon=1.0, delta=1e-6)
    size = bounds.learn_points(64, 0.1, 0.1, 1.0, 1e-6, calibration="proved")
    assert learner.sample_size(alpha=0.1, beta=0.1) == math.ceil(size) == 1314
    zero = points.learn_points(bits=2, epsilon=1.0, delta=1e-6, bottom="zero").sample_size(alpha=0.1, beta=0.1)
    assert zero == math.ceil(bounds.learn_points(2, 0.1, 0.1, 1.0, 1e-6, calibration="proved", bottom="zero"))
    assert zero < 1314 / 1.9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: points.learn_points(bits=0, epsilon=1.0, delta=0.1), "bits must be from 1"),
        (lambda: points.learn_points(bits=3, epsilon=-1.0, delta=0.1), "epsilon must be > 0"),
        (lambda: points.learn_points(bits=3, epsilon=1.0, delta=0.7), "delta must be <= 0.5"),
        (lambda: points.learn_points(bits=3, epsilon=1.0, delta=0.1, bottom="no"), "bottom must be one of"),
        (
            lambda: points.learn_points(bits=3, epsilon=1.0, delta=0.1).sample_size(alpha=0.1, beta=0.1),
            "bits must be >=",
        ),
        (lambda: points.hashed(bits=3, epsilon=1.0, buckets=32), "buckets must be from 1 to 31"),
        (
            lambda: points.hashed(bits=9, epsilon=1.0, buckets=3, allow_inaccurate=True).sample_size(
                alpha=0.1, beta=0.1
            ),
            "2\\^buckets must be",
        ),
        (lambda: points.exponential(bits=3, epsilon=1.0)(jax.random.key(0), sample_of(MIXED, 40)), "must have 1 limbs"),
        (lambda: points.exponential(bits=2, epsilon=1.0)(jax.random.key(0), sample_of(MIXED, 3)), r"0, ..., 2\^2 - 1"),
        (lambda: concept.point(8, bits=3), "position must be from 0 to 7"),
        (lambda: concept.point([], bits=3), "at least one concept"),
        (lambda: concept.uniform(bits=3, target=9), "target must be from 0 to 7"),
        (lambda: concept.zero(bits=3, k=2**70), "k must be from 1"),
        (lambda: concept.point_masses(bits=3, points=[1], masses=[1.0], target=[]), "target must name at least one"),
    ],
)
def test_bad_input_is_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_hypothesis_or_no_event_is_refused() -> None:
    x, hypothesis = wide.from_ints([1, 2], 3), concept.point(1, bits=3)
    sample = sample_of(MIXED, 3)
    for call in (
        lambda: RANDOM.predict(x, hypothesis),
        lambda: RANDOM.predict(hypothesis, np.ones((2, 1))),
        lambda: HASHED.predict(hypothesis, x),
        lambda: RANDOM.log_prob(sample, 3),
        lambda: RANDOM.probability(sample, 3),
        lambda: points.hashed(bits=3, epsilon=1.0).pmf(sample),
        lambda: points.hashed(bits=3, epsilon=1.0).success_probability(sample, error=0.1),
        lambda: points.hashed(bits=3, epsilon=1.0).log_prob(sample, hypothesis),
    ):
        with pytest.raises(TypeError, match=r"must be|given its hash"):
            call()
    labels = RANDOM.predict(hypothesis, x)
    assert labels.tolist() == [True, False]


@pytest.mark.thorough
def test_numbers_of_buckets_are_no_points() -> None:
    """A law given a hash refuses the points of `within`, which it took for buckets, and still knows single outputs."""
    sample, law = sample_of(MIXED, 3), concept.uniform(bits=3, target=3)
    with pytest.raises(TypeError, match=r"event must be of numbers of buckets, .*, got a set of points"):
        HASHED.probability(sample, law.within(0.1))
    outputs = [HASHED.output(jnp.uint32(i)) for i in (3, 8)]
    found = [float(HASHED.log_prob(sample, output)) for output in outputs]
    np.testing.assert_allclose(np.exp(found), HASHED.pmf(sample)[jnp.array([3, 8])], rtol=1e-5)


def test_a_point_outside_the_domain_shows_in_the_status() -> None:
    learner, sample = points.exponential(bits=2, epsilon=1.0), sample_of(MIXED, 3)
    assert int(jax.jit(lambda s: learner(jax.random.key(0), s).status)(sample)) == Status.OUTSIDE_DOMAIN
    mechanism = sanitizer.histogram(bits=2, n=16, epsilon=1.0, delta=0.1)
    status = jax.jit(lambda s: mechanism(jax.random.key(0), s).status)(Points.of(sample))
    assert int(status) == Status.OUTSIDE_DOMAIN


def test_sanitizers_refuse_a_chance_that_is_none_and_have_no_law_of_one_output() -> None:
    release = sanitizer.san_points(bits=3, n=4, epsilon=1.0, delta=1e-6, alpha=0.5, allow_unproved=True)
    with pytest.raises(ValueError, match="alpha must be a number, not NaN"):
        release.sample_size(alpha=math.nan, beta=0.1)
    with pytest.raises(TypeError, match="SanPoints has no probability of a single output, got 'x'"):
        release.log_prob(Points.create(wide.from_ints([1, 2, 3, 4], 3)), "x")


def test_released_answers_have_a_density_beside_millions_too():
    """Counts of 2^23 that noise lifts just above the threshold: their sums are rounded to it, or below."""
    low = 2.0**23
    made = sanitizer.histogram(bits=8, n=2**24 - 5, epsilon=4.0, delta=0.012, low=low)
    counts = np.full(2000, int(low) + 3, np.int32)
    log_density = jax.jit(lambda made, counts, answers: made.log_density(counts, answers))

    @jax.jit
    def drawn(key):
        values, keep = made.noisy(key, counts)
        return values / made.n.astype(np.float32), keep

    answers, keep = jax.device_get(drawn(jax.random.key(0)))
    density = np.asarray(log_density(made, counts, answers))
    assert np.sum(keep) > 100 and np.all(density[keep] > -np.inf)
    few = sanitizer.histogram(bits=8, n=100, epsilon=4.0, delta=0.1)
    density = log_density(few, np.full(2000, 50, np.int32), np.full(2000, 0.53, np.float32))
    assert float(density[0]) == pytest.approx(stats.laplace(scale=0.5).logpdf(3.0) + math.log(100), rel=1e-3)


def test_shapes_of_a_release_do_not_tell_how_many_different_points_there_are():
    """With one row replaced, the release once had slots for three points, and for four."""
    made = sanitizer.histogram(bits=8, n=15, epsilon=1.0, delta=1e-3)
    data = (Weighted.create(wide.from_ints([*range(len(w))], 8), w) for w in ([5, 5, 5], [5, 5, 4, 1]))
    shapes = [jax.tree.map(jnp.shape, made(jax.random.key(0), each).hypothesis) for each in data]
    assert shapes[0] == shapes[1]
    one_point = Weighted.create(wide.from_ints([7], 8), [15]).padded(3)  # as many rows as above: the same program
    many = jax.device_get(made(jax.random.key(0), one_point).hypothesis)
    assert wide.to_ints(many.points[many.where]) == [7] and abs(float(many.answers[0]) - 1) < 1


@pytest.mark.parametrize(("epsilon", "delta", "low"), [(4.0, 1.2e-6, 2.0**23), (50.0, 1e-12, 2.0**22)])
def test_the_margin_of_a_histogram_is_not_rounded_beside_millions(epsilon, delta, low):
    """P[released] of a count of low + 1 is delta; it was 2.6 and 6.9 times that."""
    made = sanitizer.histogram(bits=8, n=2**24 - 5, epsilon=epsilon, delta=delta, low=low)
    log_p, _ = jax.jit(lambda made, counts: made.log_released(counts))(made, jnp.int32([low, low + 1]))
    assert log_p[0] == -np.inf
    np.testing.assert_allclose(np.exp(log_p[1]), delta, rtol=1e-4)
    assert sanitizer.histogram(bits=4, n=2000, epsilon=epsilon, delta=delta).most_points == 16


# ------------------------------------------------------------------------------------------------------- what is released


@pytest.mark.parametrize(
    "name", ["learn_points", *map(builders.thorough, ("hashed", "histogram", "point_learner", "sparse"))]
)
def test_all_zero_shows_no_point_of_the_data(name: str) -> None:
    """A position that means nothing is released with the concept: it must not be a point of the data. No slot is empty."""
    given, labels = {"bits": 8, "epsilon": 0.1}, [1, 0, 1]
    learner = {
        "learn_points": lambda: points.learn_points(**given, delta=1e-6, bottom="zero"),
        "hashed": lambda: points.hashed(**given, alpha=0.9, beta=0.9),
        "histogram": lambda: many_points.histogram_learner(**given, k=1, delta=1e-6),
        "point_learner": lambda: many_points.point_learner(**given, k=1, delta=1e-6, alpha=0.1, beta=0.1),
        "sparse": lambda: many_points.sparse_histogram_learner(**given, k=1),
    }[name]()
    single = name in ("learn_points", "hashed")
    xs = wide.from_ints([10, 77, 201], 8)
    data = Sample(x=xs, y=np.array(labels), n_valid=3) if single else MultiSample.create(xs, np.array(labels)[:, None])
    hypothesis = runs_of(learner, jax.random.split(jax.random.key(0), 64), data).hypothesis
    place = hypothesis.bucket if name == "hashed" else hypothesis.position
    zero = np.asarray(hypothesis.zero)
    assert zero.any() and not np.asarray(place)[zero].any()


@pytest.mark.thorough
def test_a_background_of_nearly_everything_leaves_what_it_leaves():
    law = concept.point_masses(bits=64, points=[3, 2**40], masses=[1.0, 3.0], target=2**40, background=1 - 1e-8)
    exact = (2**32 - int(law.background)) * 0.75 / 2**32
    assert abs(float(law.error(concept.zero(bits=64))) / exact - 1) < 1e-6
