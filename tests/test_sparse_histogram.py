"""The histogram of the whole domain: answers by their plain law, exact privacy with a control, strangers on wide domains, worst data."""

import dataclasses
import itertools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value
from scipy import stats

import dpjax
from dpjax import Points, Status, Weighted, bounds
from dpjax.concepts import points as concept
from dpjax.domains import wide
from dpjax.multi import points as many_points
from dpjax.sanitizers import points
from dpjax.verify.plain import noisy_counts as twin
from dpjax.verify.plain import point_learner as many_twin

FEW = [0] * 3 + [2]  # of four points


def runs(sanitizer: Any, data: Any, count: int) -> Any:
    """What `count` runs release."""
    keys = jax.random.split(jax.random.key(0), count)
    return jax.jit(jax.vmap(lambda key: sanitizer(key, data).hypothesis))(keys)


def answers(released: Any, n: int, bits: int) -> np.ndarray:
    """(runs, 2^bits): every answer as a count."""
    where = np.asarray(released.where)
    run, point = np.nonzero(where)[0], np.asarray(released.points)[where][:, -1].astype(int)
    assert len(set(zip(run.tolist(), point.tolist(), strict=True))) == len(run)  # nobody is named twice
    found = np.zeros((len(where), 2**bits), int)
    found[run, point] = np.rint(n * np.asarray(released.answers)[where])
    return found


def law(counts: list[int], epsilon: float, threshold: int, most: int) -> list[dict[int, float]]:
    return [twin.released(count, threshold, 2 / epsilon, most) for count in counts]


# --------------------------------------------------------------------------------------------------------------- the law


def test_answers_follow_the_plain_law_and_are_independent() -> None:
    """Four points, two of them absent from the data, noisy counts of 4 or more merged; the law at another epsilon is refuted."""
    released = runs(
        points.sparse_histogram(bits=2, n=4, epsilon=1.0, threshold=2, shift=1), builders.points_of(FEW, 2, 7), 60_000
    )
    seen = answers(released, 4, 2)
    noisy = np.minimum(np.where(seen > 0, seen + 1, 0), 4)
    outcomes = list(itertools.product([0, 2, 3, 4], repeat=4))
    place = {outcome: index for index, outcome in enumerate(outcomes)}
    frequencies = np.bincount([place[tuple(row)] for row in noisy.tolist()], minlength=len(outcomes))

    def expected(epsilon: float) -> np.ndarray:
        each = law([3, 0, 1, 0], epsilon, 2, 4)
        return np.array(
            [math.prod(one[value] for one, value in zip(each, outcome, strict=True)) for outcome in outcomes]
        )

    assert p_value(frequencies, 60_000 * expected(1.0)) > FALSE_ALARM
    assert p_value(frequencies, 60_000 * expected(1.05)) < FALSE_ALARM


@pytest.mark.parametrize(("threshold", "shift"), [(1, 0), (2, 1), (4, 0), (4, 2), (9, 8)])
@pytest.mark.parametrize("counts", [[4, 0, 2, 1], [1, 1, 1, 1], [7, 0, 0, 0]])
def test_success_is_that_of_the_plain_law(threshold: int, shift: int, counts: list[int], x64: None) -> None:
    """With some strangers (points that are not in the data), with none, and with three; for every error that there is."""
    n, there = sum(counts), [x for x, count in enumerate(counts) for _ in range(count)]
    sanitizer = points.sparse_histogram(bits=2, n=n, epsilon=0.8, threshold=threshold, shift=shift)
    data = builders.points_of(there, 2, 7)
    for wrong in range(n + 1):
        each = law(counts, 0.8, threshold, n + wrong + shift + 2)
        right = [
            math.fsum(p for value, p in one.items() if abs(max(value - shift, 0) - count) <= wrong)
            for one, count in zip(each, counts, strict=True)
        ]
        np.testing.assert_allclose(sanitizer.success_probability(data, error=wrong / n), math.prod(right), rtol=1e-9)


def loss(counts: list[int], others: list[int], epsilon: float) -> float:
    """The largest ln of a ratio of probabilities, over all outcomes."""
    pairs = zip(law(counts, epsilon, 2, 12), law(others, epsilon, 2, 12), strict=True)
    return sum(max(math.log(one[value] / other[value]) for value in one) for one, other in pairs)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_loss_is_epsilon_over_all_neighbours(epsilon: float) -> None:
    """All datasets of four points of two bits; noise for a sensitivity of 1 loses twice as much."""
    losses, careless = [], []
    for rows in itertools.combinations_with_replacement(range(4), 4):
        counts = [rows.count(x) for x in range(4)]
        for old, new in itertools.permutations(range(4), 2):
            if counts[old]:
                others = [count - (x == old) + (x == new) for x, count in enumerate(counts)]
                losses.append(loss(counts, others, epsilon))
                careless.append(loss(counts, others, 2 * epsilon))
    assert max(losses) == pytest.approx(epsilon, rel=1e-12)
    assert max(careless) == pytest.approx(2 * epsilon, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- strangers


@pytest.mark.thorough
@pytest.mark.parametrize(("bits", "spurious"), [(64, 6.0), builders.thorough(1024, 0.7)])
def test_strangers_of_wide_domains(bits: int, spurious: float) -> None:
    """Their number is binomial, in the limit Poisson; they are uniform, and exceed the threshold geometrically."""
    threshold = bounds.sparse_threshold(bits, 1.0, spurious)
    sanitizer = points.sparse_histogram(bits=bits, n=100, epsilon=1.0, threshold=threshold)
    released = runs(sanitizer, Points.create(wide.from_ints([5] * 100, bits)), 3000)
    ours = (np.asarray(released.points) == np.asarray(wide.from_ints([5], bits))).all(axis=-1)
    where = np.asarray(released.where) & ~ours
    number = np.minimum(where.sum(axis=1), 20)
    mean = bounds.sparse_arrivals(bits, 1.0, threshold)
    expected = stats.poisson.pmf(np.arange(20), mean)
    assert p_value(np.bincount(number, minlength=21), 3000 * np.append(expected, 1 - expected.sum())) > FALSE_ALARM
    excess = np.rint(np.asarray(released.answers)[where] * 100).astype(int) - threshold
    expected = stats.geom.pmf(np.arange(1, 10), 1 - math.exp(-0.5))
    found = np.bincount(np.minimum(excess, 9), minlength=10)
    assert p_value(found, where.sum() * np.append(expected, 1 - expected.sum())) > FALSE_ALARM
    for word in (0, -1):
        lead = np.asarray(released.points)[where][:, word] >> np.uint32(28)
        assert p_value(np.bincount(lead, minlength=16), np.full(16, where.sum() / 16)) > FALSE_ALARM


@pytest.mark.thorough
def test_a_full_domain_has_no_strangers() -> None:
    released = runs(
        points.sparse_histogram(bits=1, n=9, epsilon=8.0, threshold=1),
        builders.points_of([0] * 4 + [1] * 5, 1, 15),
        500,
    )
    seen = answers(released, 9, 1)
    assert abs(seen.mean(axis=0) - [4, 5]).max() < 0.1


# ------------------------------------------------------------------------------------------------------------ worst data


@pytest.mark.parametrize("bits", [2, 8, 40])
@pytest.mark.parametrize(
    ("alpha", "epsilon", "spurious", "soft"), [(0.1, 1.0, 1.0, False), (0.21, 0.5, 50.0, True), (0.34, 3.0, 4.0, True)]
)
def test_the_size_is_that_of_the_worst_data(
    bits: int, alpha: float, epsilon: float, spurious: float, soft: bool, x64: None
) -> None:
    """As many points as there can be that are just missed: enough at n, and no more with the next smaller number of mistakes allowed."""
    threshold = bounds.sparse_threshold(bits, epsilon, spurious)
    numbers = {"threshold": threshold, "shift": threshold - 1 if soft else 0}
    n = bounds.sparse_histogram(bits, alpha, 0.1, epsilon, **numbers)
    within = math.floor(alpha * n * (1 + 1e-12))
    for rows, allowed in ((n, within), (n, within - 1)):
        many = min(2**bits, math.ceil(1 / alpha) - 1, rows // (allowed + 1))
        counts = [allowed + 1] * many
        counts[-1] += rows - sum(counts)
        # The law does not depend on the room for strangers, nor on rows that weigh nothing: one program a width.
        padding = 9 - many
        data = Weighted(
            x=np.pad(wide.from_ints(range(many), bits), ((0, padding), (0, 0)), constant_values=2**32 - 1),
            weights=np.pad(counts, (0, padding)),
            n_valid=np.int32(many),
        )
        sanitizer = points.sparse_histogram(bits=bits, n=rows, epsilon=epsilon, **numbers)
        assert sanitizer.sample_size(alpha=alpha, beta=0.1) == n
        sanitizer = dataclasses.replace(sanitizer, room=1024)
        failure = float(sanitizer.failure_probability(data, error=(allowed + 0.5) / rows))
        assert (failure <= 0.1 + 1e-9) == (allowed == within)


def test_soft_thresholding_takes_nearly_half() -> None:
    """And `choose` finds it: by its own exact law on data that deceive it, enough, and not for one mistake less."""
    found = dpjax.choose("histogram", bits=16, epsilon=1.0, alpha=0.1, beta=0.1)
    assert found.name == "sparse_histogram" and found.guarantee.delta == 0.0
    assert found.n == 180 and bounds.sparse_histogram(16, 0.1, 0.1, 1.0) == 290
    assert found.algorithm.sample_size(alpha=0.1, beta=0.1) == 180
    with pytest.raises(ValueError, match="shift must be"):
        bounds.sparse_histogram(16, 0.1, 0.1, 1.0, threshold=5, shift=5)
    with pytest.raises(ValueError, match="alpha and epsilon must be such that"):
        bounds.sparse_histogram(16, 1e-30, 0.1, 1.0)


# ------------------------------------------------------------------------------------------------------- labelled points


@pytest.mark.thorough
def test_a_learner_with_strangers_follows_the_plain_law() -> None:
    """Two concepts over two points, thresholds low enough for strangers of either point; the law at another epsilon is refuted."""
    pairs = [(0, (0, 1))] * 3 + [(1, (1, 0))] * 2
    sample = builders.multi_sample_of([x for x, _ in pairs], [v for _, v in pairs], 1, 7)
    learner = many_points.sparse_histogram_learner(bits=1, k=2, epsilon=2.0, threshold=2)
    keys = jax.random.split(jax.random.key(1), 20_000)
    named = jax.jit(jax.vmap(lambda key: learner(key, sample).hypothesis))(keys)
    found = np.where(named.zero, 2, named.position[..., 0]) @ [3, 1]

    def expected(epsilon: float) -> np.ndarray:
        law = many_twin.sparse_histogram_law(pairs, bits=1, threshold=2, scale=2 / epsilon)
        return 20_000 * np.array([law.get(outcome, 0.0) for outcome in itertools.product((0, 1, None), repeat=2)])

    frequencies = np.bincount(found, minlength=9)
    assert p_value(frequencies, expected(2.0)) > FALSE_ALARM > p_value(frequencies, expected(2.2))
    law = learner.pmf(sample)[:-1].reshape(3, 3)  # exact, as there are eight labelled points
    np.testing.assert_allclose(law.ravel(), expected(2.0) / 20_000, atol=1e-6)
    zeros, ones = (wide.from_ints([end] * 2, 32) for end in (0, 1))
    np.testing.assert_allclose(learner.probability(sample, (zeros, ones))[0], law[0, 0], rtol=1e-5)  # both are 0


@pytest.mark.thorough
def test_what_a_law_says_of_strangers(x64: None) -> None:
    """All, if labelled points are few; if many, that strangers are in no event, and nothing where strangers are frequent."""
    for threshold in (None, 2):
        learner = many_points.sparse_histogram_learner(bits=1, k=1, epsilon=1.5, threshold=threshold)
        assert dpjax.check(learner, n=3, domain=2, epsilon=1.5).holds
    sample = builders.multi_sample_of([1] * 60, [[1]] * 60, 1, 63)
    learner = many_points.sparse_histogram_learner(bits=1, k=1, epsilon=4.0)
    passes = [
        twin.released(0, int(learner.counts.threshold), 0.5, 99)[0] for _ in range(2)
    ]  # not of either stranger at 0
    assert float(learner.failure_probability(sample, error=0.0)) == pytest.approx(1 - passes[0], rel=1e-6)
    more = builders.multi_sample_of([1] * 60, [[1, 0, 0]] * 60, 1, 63)
    many = many_points.sparse_histogram_learner(bits=1, k=3, epsilon=4.0)
    assert float(many.failure_probability(more, error=0.0)) == pytest.approx(float(many.counts.arrivals()), rel=1e-6)
    with pytest.raises(TypeError, match="no pmf"):
        many.pmf(more)
    low = many_points.sparse_histogram_learner(bits=1, k=3, epsilon=4.0, threshold=9)
    assert math.isnan(low.failure_probability(more, error=0.0)) and low.counts.arrivals() > 2.0**-24


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_learner_loses_epsilon_at_most_over_all_neighbours(epsilon: float) -> None:
    """All datasets of three examples of two points; noise for a sensitivity of 1 is refuted."""
    pairs = [(x, (v,)) for x in (0, 1) for v in (0, 1)]

    def loss(scale: float) -> float:
        laws = {
            rows: many_twin.sparse_histogram_law(rows, bits=1, threshold=2, scale=scale)
            for rows in itertools.combinations_with_replacement(pairs, 3)
        }
        beside = [(a, b) for a, b in itertools.permutations(laws, 2) if _apart(a, b) == 1]
        return max(math.log(laws[a][outcome] / laws[b][outcome]) for a, b in beside for outcome in laws[a])

    assert loss(2 / epsilon) <= epsilon * (1 + 1e-12) < loss(1 / epsilon)


def _apart(a: Any, b: Any) -> int:
    """How many examples must be replaced."""
    rest = list(b)
    for row in a:
        if row in rest:
            rest.remove(row)
    return len(rest)


@pytest.mark.thorough
def test_a_thousand_concepts_are_learned_from_as_many_examples_as_is_said() -> None:
    """On points of hardly more mass than is tolerated all errors are small, as often as promised, and hardly more often."""
    bits, k, alpha, beta, epsilon = 40, 1000, 0.24, 0.2, 2.0
    threshold = bounds.sparse_threshold(bits + k, epsilon, beta / 8)
    learner = many_points.sparse_histogram_learner(bits=bits, k=k, epsilon=epsilon, threshold=threshold)
    n = learner.sample_size(alpha=alpha, beta=beta)
    target = [5, 2**39, 77, 2**20, None] * (k // 5)
    law = concept.point_masses(bits=bits, points=[5, 77, 2**20, 2**39], masses=[0.25] * 4, target=target)

    def failures(rows: int) -> float:
        def trial(key: Any) -> Any:
            key_data, key = jax.random.split(key)
            return jnp.max(law.errors(learner(key, law.sample(key_data, rows, rows)).hypothesis)) > alpha

        return float(np.mean(jax.jit(lambda keys: jax.lax.map(trial, keys))(jax.random.split(jax.random.key(2), 200))))

    assert failures(n) <= beta < failures(int(0.9 * n))


def test_sizes_of_learners() -> None:
    with pytest.raises(ValueError, match="threshold must be at least 32 for beta"):
        bounds.labelled_sparse_histogram(16, 4, 0.1, 0.1, 1.0, threshold=31)
    assert bounds.labelled_sparse_histogram(16, 4, 0.1, 0.1, 1.0, threshold=32) > 0
    with pytest.raises(ValueError, match="k must be"):
        many_points.sparse_histogram_learner(bits=16, k=0, epsilon=1.0)
    given = {"bits": 16, "epsilon": 1.0, "alpha": 0.1, "beta": 0.1, "concept": "points"}
    found = dpjax.choose("k_concepts", k=64, **given)
    assert (found.name, found.n, found.guarantee.delta) == ("sparse_histogram_learner", 1451, 0.0)
    assert found.algorithm.sample_size(alpha=0.1, beta=0.1) == 1451 and found.runner_up.value == 22555
    assert dpjax.choose("k_concepts", k=64, delta=1e-6, **given).name == "histogram_learner"
    few = {"bits": 1, "k": 4, "epsilon": 12.0, "alpha": 0.1, "beta": 0.1}
    assert dpjax.choose("k_concepts", concept="points", **few).n <= 59  # nearly all of beta is strangers'
    assert bounds.labelled_sparse_histogram(**few, threshold=bounds.least_sparse_threshold(5, 12.0, 0.099)) <= 59


# -------------------------------------------------------------------------------------------------------------- numbers


def test_thresholds_name_as_many_strangers_as_is_said() -> None:
    for bits, epsilon, spurious in itertools.product((1, 7, 64, 4096), (0.01, 1.0, 9.0), (0.01, 1.0, 300.0)):
        least = bounds.sparse_threshold(bits, epsilon, spurious)
        norm = math.log1p(math.exp(-epsilon / 2))
        expected = [bits * math.log(2) - epsilon / 2 * t - norm for t in (least, least - 1)]
        assert least == 1 or expected[1] > math.log(spurious) - 1e-6
        # -ln(1 - p) is at most 2 ln 2 p
        assert math.exp(expected[0]) <= bounds.sparse_arrivals(bits, epsilon, least) * (1 + 1e-9) + 1e-300
        assert bounds.sparse_arrivals(bits, epsilon, least) <= 2 * math.log(2) * spurious * (1 + 1e-9)
    assert bounds.sparse_arrivals(4096, 1.0, 1) == math.inf


def test_usual_numbers() -> None:
    """The stated thresholds; the least shift that is enough; room for as many strangers as stated."""
    usual = points.sparse_histogram(bits=64, n=9, epsilon=1.0)
    assert (int(usual.threshold), int(usual.shift)) == (bounds.sparse_threshold(64, 1.0), 0) == (88, 0)
    learner = many_points.sparse_histogram_learner(bits=64, k=3, epsilon=1.0)
    assert int(learner.counts.threshold) == bounds.sparse_threshold(67, 1.0, 2.0**-30)
    chosen = dpjax.choose("histogram", bits=64, n=1000, epsilon=1.0)
    threshold, shift = int(chosen.algorithm.threshold), int(chosen.algorithm.shift)
    given = (64, chosen.alpha, 0.1, 1.0)
    assert threshold == 72 and bounds.sparse_arrivals(64, 1.0, 71) > points.MOST_ARRIVALS
    assert bounds.sparse_histogram(*given, threshold=72, shift=shift) <= 1000
    assert bounds.sparse_histogram(*given, threshold=72, shift=shift - 1) > 1000


@pytest.mark.parametrize(
    ("bits", "epsilon", "alpha", "beta"),
    [(16, 1.0, 0.1, 0.1), (24, 1.0, 0.3, 0.1), (32, 0.3, 0.01, 0.9), (8, 0.1, 0.55, 0.01)],
)
def test_no_threshold_is_better_than_the_chosen_one(bits: int, epsilon: float, alpha: float, beta: float) -> None:
    found = dpjax.choose("histogram", bits=bits, epsilon=epsilon, alpha=alpha, beta=beta)
    usual = bounds.sparse_threshold(bits, epsilon)
    there = [t for t in range(1, usual + 9) if bounds.sparse_arrivals(bits, epsilon, t) <= points.MOST_ARRIVALS]
    assert found.n == min(bounds.sparse_histogram(bits, alpha, beta, epsilon, threshold=t, shift=t - 1) for t in there)


def test_sizes_where_next_to_nothing_may_fail() -> None:
    """As weights are added up, and by other binomial laws."""
    threshold = bounds.sparse_threshold(80, 1.0, 2.0**-101)
    assert bounds.labelled_sparse_histogram(16, 64, 0.1, 2.0**-100, 1.0, threshold=threshold) == 4891
    for bits, epsilon, alpha in ((60, 1.0, 0.1), (60, 0.01, 0.1), (3000, 9.0, 0.3)):
        threshold = bounds.sparse_threshold(bits + 3, epsilon, 0.01)
        n = bounds.labelled_sparse_histogram(bits, 3, alpha, 0.1, epsilon, threshold=threshold)
        target = alpha * (0.1 - bounds.sparse_arrivals(bits + 3, epsilon, threshold))
        for rows, enough in ((n, True), (n - 1, False)):
            counts = np.arange(rows + 1)
            missed = stats.binom.pmf(counts, rows, alpha) @ stats.dlaplace.cdf(threshold - 1 - counts, epsilon / 2)
            assert (missed <= target) == enough


def test_the_least_threshold_is_told_where_one_is_refused() -> None:
    assert points.sparse_histogram(bits=64, n=100, epsilon=1.0, threshold=72).room > 3000
    with pytest.raises(ValueError, match="threshold must be at least 72, for at most 4096 points"):
        points.sparse_histogram(bits=64, n=100, epsilon=1.0, threshold=71)


def test_room_for_arrivals() -> None:
    module = __import__("sys").modules["dpjax.sanitizers.points.sparse_histogram"]
    for arrivals in (0.7, 11.1, 300.0, 4000.0):
        assert stats.poisson.sf(module._room(arrivals), arrivals) <= 2.0**-64
        assert stats.poisson.sf(module._room(arrivals) - 8, arrivals) > 2.0**-80


@pytest.mark.thorough
def test_traced_parameters_run_in_one_program_and_too_many_strangers_are_refused() -> None:
    data = Points.create(wide.from_ints([5] * 60, 64))

    @jax.jit
    @jax.vmap
    def sweep(epsilon: Any, threshold: Any, shift: Any) -> Any:
        made = points.sparse_histogram(bits=64, n=60, epsilon=epsilon, threshold=threshold, shift=shift)
        outcome = made(jax.random.key(0), data)
        return outcome.status, outcome.hypothesis.answer(wide.from_ints([5], 64))[0]

    # The usual thresholds, if epsilon is traced; then there is room for eight strangers.
    usual = jax.jit(jax.vmap(lambda epsilon: points.sparse_histogram(bits=64, n=60, epsilon=epsilon).threshold))
    some = np.float32([2.0, 8.0, 50.0])
    eight = bounds.sparse_threshold(64, 1.0, 8.0)
    thresholds = [*np.asarray(usual(some)), 88, eight, eight - 2, 0, 88, 88, 2**29, 88]
    shifts = [*[0] * 3, 87, 0, 0, 0, 88, -1, 0, 0]
    status, answer = sweep(np.float32([*some, *[1.0] * 7, 1e-9]), np.int32(thresholds), np.int32(shifts))
    assert status.tolist() == [Status.OK] * 5 + [Status.BAD_PARAMETER] * 6 and float(answer[2]) == 1.0


def test_a_derivative_by_epsilon_keeps_the_usual_threshold() -> None:
    """`jax.grad` outside `jax.jit` traces epsilon, but not the usual threshold, which is rounded."""
    data = Points.create(wide.from_ints(FEW, 2))

    def success(epsilon: Any, **given: Any) -> Any:
        return points.sparse_histogram(bits=2, n=4, epsilon=epsilon, **given).success_probability(data, error=0.25)

    usual = bounds.sparse_threshold(2, 1.0)
    slope = jax.grad(success)(1.0)
    assert slope == jax.grad(success)(1.0, threshold=usual) and slope > 0


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": 2.0**-26}, ValueError, "epsilon must be"),
        ({"threshold": 0}, ValueError, "threshold must be"),
        ({"threshold": 2.5}, TypeError, "threshold must be"),
        ({"threshold": 60}, ValueError, "threshold must be at least 72, for at most 4096 points"),
        ({"threshold": 90, "shift": 90}, ValueError, "shift must be"),
        ({"threshold": 90, "shift": -1}, ValueError, "shift must be"),
        ({"bits": 4097}, ValueError, "bits must be"),
        ({"n": 0}, ValueError, "n must be"),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, Any], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        points.sparse_histogram(**{"bits": 64, "n": 100, "epsilon": 1.0, **given})


@pytest.mark.thorough
def test_counts_beyond_32_bits(x64: None) -> None:
    n = 10**13
    data = Weighted.create(wide.from_ints([1, 5, 200], 64), [n // 10, 3 * n // 10, 6 * n // 10])
    sanitizer = points.sparse_histogram(bits=64, n=n, epsilon=1.0)
    released = sanitizer(jax.random.key(0), data).hypothesis
    np.testing.assert_allclose(released.answer(wide.from_ints([1, 5, 200, 7], 64)), [0.1, 0.3, 0.6, 0], atol=1e-8)
    assert float(sanitizer.success_probability(data, error=2e-11)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("alpha", "beta", "epsilon"), [(1e-3, 0.1, 120.0), (1e-4, 0.1, 120.0), (0.01, 0.5, 250.0), (0.999, 1e-9, 100.0)]
)
def test_a_learner_next_to_no_noise_needs_as_many_as_show_every_point(
    alpha: float, beta: float, epsilon: float
) -> None:
    """Noise is 0 but for e^-50: a point is missed where it does not occur."""
    n = bounds.labelled_sparse_histogram(16, 3, alpha, beta, epsilon, threshold=1)
    assert stats.binom.cdf(0, n, alpha) <= alpha * beta < stats.binom.cdf(0, n - 1, alpha)


def test_thresholds_past_all_counts_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="threshold must be from 1 to 9007199254740992"):
        bounds.labelled_sparse_histogram(8, 1, 0.1, 0.1, 1.0, threshold=2**63)
    with pytest.raises(ValueError, match="epsilon must be so large"):
        bounds.least_sparse_threshold(8, 1e-30, 1.0)
