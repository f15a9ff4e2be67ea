"""What every k-learner must do, whatever it learns: one registry, one set of checks."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import MultiSample, Sample
from dpjax.accounting import REPLACE_ONE
from dpjax.data import algorithm
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.learners import parities as one_parity
from dpjax.learners import points as one_point
from dpjax.learners import thresholds as one_threshold
from dpjax.multi import direct_sum, generic, parities, points, reductions, tables
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.sanitizers import points as point_sanitizers

BITS, K = 6, 3
BUDGET = {"epsilon": 50.0, "delta": 1e-3}


def summed(make):
    return direct_sum.direct_sum(make, k=K, **BUDGET)


def generic_thresholds():
    solver = interior_point.exponential(bits=12, epsilon=1.0)
    sanitizer = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=BITS, depth=2, m=8, allow_unproved=True))
    return generic.learner(sanitizer=sanitizer, concepts=generic.thresholds(bits=BITS), k=K, **BUDGET)


def generic_points():
    sanitizer = point_sanitizers.histogram(bits=BITS, n=50, epsilon=5.0, delta=1e-4)
    return generic.learner(sanitizer=sanitizer, concepts=generic.points(bits=BITS), k=K, **BUDGET)


LEARNERS = {
    "direct sum of thresholds": lambda: summed(lambda each: one_threshold.exponential(bits=BITS, epsilon=each.epsilon)),
    "direct sum of points": lambda: summed(
        lambda each: one_point.learn_points(bits=BITS, epsilon=each.epsilon, delta=each.delta)
    ),
    "direct sum of hashes": lambda: summed(lambda each: one_point.hashed(bits=BITS, epsilon=each.epsilon)),
    "direct sum of parities": lambda: summed(lambda each: one_parity.exponential(bits=BITS, epsilon=each.epsilon)),
    "generic thresholds": generic_thresholds,
    "generic points": generic_points,
    "point learner": lambda: points.point_learner(bits=BITS, k=K, alpha=0.2, **BUDGET),
    "histogram": lambda: points.histogram_learner(bits=BITS, k=K, **BUDGET),
    "parity learner": lambda: parities.parity_learner(bits=BITS, k=K, **BUDGET),
    "elimination": lambda: parities.elimination(bits=BITS, k=K),
    "empirical": lambda: reductions.empirical(
        summed(lambda each: one_threshold.exponential(bits=BITS, epsilon=each.epsilon)), n=40, rows=37
    ),
}


def sample_of(rows=50, n_valid=None, bits=BITS, largest=2**BITS):
    """Labels that fit a threshold, a point and a parity, in one column each."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, largest, rows)
    labels = np.stack([values < 40, values == 3, np.bitwise_count(values & 5) % 2 == 1], axis=1)
    return MultiSample.create(wide.from_ints([int(v) for v in values], bits), labels, n_valid)


def mixed(learner):
    """Whether the labels of `sample_of` leave the learner without an answer: no parities fit all of their columns."""
    return isinstance(learner, parities.ParityLearner | parities.Elimination)


ALIKE = (  # much like another one
    "direct sum of thresholds",
    "direct sum of points",
    "direct sum of hashes",
    "generic thresholds",
    "empirical",
)


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in LEARNERS], scope="module"
)
def learner(request):
    return LEARNERS[request.param]()


@pytest.mark.thorough
def test_a_run_predicts_k_labels_a_point(learner):
    sample = sample_of()
    outcome = learner(jax.random.key(0), sample)
    assert outcome.status.dtype == jnp.int32 and int(outcome.status) == (Status.BOTTOM if mixed(learner) else Status.OK)
    labels = jax.eval_shape(learner.predict, outcome.hypothesis, sample.x)
    assert labels.shape == (sample.rows, K) and labels.dtype == bool


@pytest.mark.thorough
def test_padding_and_what_lies_past_the_end_change_nothing(learner):
    """The rows past n_valid hold labels and points that would matter."""
    short, long = sample_of(50), sample_of(60, n_valid=50)
    a, b = (learner(jax.random.key(1), sample) for sample in (short, long))
    assert int(a.status) == int(b.status)
    jax.tree.map(np.testing.assert_array_equal, a.hypothesis, b.hypothesis)


@pytest.mark.slow
def test_batches_of_runs_are_runs(learner):
    sample = sample_of()
    batch = jax.vmap(lambda key: learner(key, sample))(jax.random.split(jax.random.key(2), 3))
    for i in range(3):
        single = learner(jax.random.split(jax.random.key(2), 3)[i], sample)
        for x, y in zip(jax.tree.leaves(batch.hypothesis), jax.tree.leaves(single.hypothesis), strict=True):
            assert (x[i] == y).all()


def test_the_guarantee_is_for_replaced_examples(learner):
    assert learner.guarantee().relation == REPLACE_ONE


def test_samples_that_do_not_fit_are_refused(learner):
    key = jax.random.key(3)
    with pytest.raises(TypeError, match="MultiSample"):
        learner(key, Sample(x=wide.from_ints([1], BITS), y=[1]))
    with pytest.raises(ValueError, match="k = 3"):
        learner(key, MultiSample.create(wide.from_ints([1], BITS), [[1, 0]]))
    with pytest.raises(ValueError, match=r"2\^6 - 1, got 64"):
        learner(key, MultiSample.create(wide.from_ints([64], 7), [[1, 0, 1]]))


def test_traced_points_outside_the_domain_show_in_the_status(learner):
    """By the status code that every run computes, past the checks of concrete values."""
    sample = sample_of().padded()
    x = np.array(sample.x)
    x[7, 0] = 64
    for data, outside in ((sample, False), (dataclasses.replace(sample, x=jnp.asarray(x)), True)):
        code = jax.jit(algorithm.status)(learner, data, jnp.bool_(True))
        assert code == (Status.OUTSIDE_DOMAIN if outside else Status.OK)


# ------------------------------------------------------------------------------------------------------------- tables


def test_the_tables_name_every_cell_once():
    cells = [(e.privacy, e.concepts, e.setting, e.hypotheses) for e in tables.TABLES]
    assert len(cells) == len(set(cells)) == 18
    for entry in tables.TABLES:
        assert entry.lower_exponent <= entry.upper_exponent and entry.upper_source
        assert bool(entry.lower) or entry.concepts == "general"
    with pytest.raises(ValueError, match="not colour"):
        tables.find(colour="red")


def test_a_generic_learner_promises_nothing_for_more_points_than_it_has_room_for():
    """A histogram may name every point: with room for 256, each run once gave bottom at the promised size."""

    def size(sanitizer, concepts):
        made = generic.learner(sanitizer=sanitizer, concepts=concepts, k=1, epsilon=2.0, delta=1e-5)
        return made.sample_size(alpha=0.5, beta=0.1)

    def histogram(low):
        return point_sanitizers.histogram(bits=12, n=60_000, epsilon=1.0, delta=1e-6, low=low)

    def told(n):
        return point_sanitizers.histogram(bits=16, n=n, epsilon=1.0, delta=1e-6)

    wide_points = generic.points(bits=16, most=2**16)
    with pytest.raises(ValueError, match=r"concepts\.most must be at least 4096, .* got 256"):
        size(histogram(0.0), generic.points(bits=12))
    assert histogram(299.0).most_points == 200
    assert size(histogram(299.0), generic.points(bits=12, most=200)) > 0
    with pytest.raises(ValueError, match=r"concepts\.most must be at least 200, .* got 199"):
        size(histogram(299.0), generic.points(bits=12, most=199))

    # Whatever n the histogram is built for, the size accounts for as many points as that many examples may name.
    assert size(told(10), wide_points) == size(told(60_000), wide_points) == size(told(10**6), wide_points)
    with pytest.raises(ValueError, match=r"concepts\.most must be at least 6\d{4}, .* got 256"):
        size(told(10), generic.points(bits=16, most=256))

    solver = interior_point.exponential(bits=32, epsilon=0.05)
    release = cdf.release(quantiles=quantiles.recursive(solver=solver, bits=16, depth=5, m=900))
    assert release.most_points == 31 and size(release, generic.thresholds(bits=16)) > 0

    class Silent:
        bits, sample_size = 12, None

        def guarantee(self):
            return histogram(0.0).guarantee()

        def __call__(self, key, data):
            raise AssertionError

    with pytest.raises(ValueError, match="sanitizer must tell how many points it may name"):
        size(Silent(), generic.points(bits=12))
