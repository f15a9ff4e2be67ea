"""Thresholds and the distributions on their domain: samples against the law, errors against exact arithmetic."""

import functools
import math
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Points, Sample
from dpjax.concepts import agnostic, conjunctions, parities, points, rectangles, thresholds
from dpjax.data.examples import Examples
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.learners import pac
from dpjax.learners import thresholds as one_threshold
from dpjax.optimizers import interior_point

pytestmark = pytest.mark.usefixtures("no_key_twice")

FALSE_ALARM = 2e-5

errors_of = jax.jit(jax.vmap(lambda law, h: law.error(h), in_axes=(None, 0)))
all_quantiles = jax.jit(lambda laws, v: [law.quantile(v) for law in laws])


def target_of(law):
    return wide.to_ints(law.target)[0]


def errors(law, hypotheses):
    """The errors of up to 12 hypotheses, by one program for any number of them; of one limb, by that for `EVERYTHING`."""
    limbs = law.target.shape[0]
    more = [0] * ((len(EVERYTHING) if limbs == 1 else 12) - len(hypotheses))
    found = errors_of(law, wide.from_ints([*hypotheses, *more], min(32 * limbs, wide.MAX_BITS + 1)))
    return np.asarray(found)[: len(hypotheses)]


def within(law, alpha):
    low, high = law.within(np.float32(alpha))
    return wide.to_ints(low)[0], wide.to_ints(high)[0]


# ------------------------------------------------------------------------------------------------- naive exact errors


def exact_log_uniform(law):
    """log2 of a Python int is right to 1e-16, however large it is."""
    t, octaves = target_of(law), int(law.octaves)
    return lambda h: min(math.log2(1 + t - h if h <= t else h - t) / (2 * octaves), 0.5)


def exact_uniform(law):
    bits, t = int(law.bits), target_of(law)
    step = 1 << max(bits - 32, 0)
    return lambda h: Fraction(abs(-(-h // step) + -t // step), 1 << min(bits, 32))


def exact_point_masses(law):
    t, points = target_of(law), wide.to_ints(law.points)
    masses = np.diff(np.array([*law.cumulative.tolist(), 2**32])).tolist()

    def error(h):
        between = (mass for x, mass in zip(points, masses, strict=True) if min(h, t) <= x < max(h, t))
        return Fraction(sum(between), 2**32)

    return error


EXACT = {
    thresholds.LogUniform: exact_log_uniform,
    thresholds.Uniform: exact_uniform,
    thresholds.PointMasses: exact_point_masses,
}


def exactly(law):
    """h -> error(h)."""
    return EXACT[type(law)](law)


def exact(law, h):
    return exactly(law)(h)


def small_laws(bits):
    size = 1 << bits
    points = [0, 1, size // 3, size // 2, size - 1]
    return [
        thresholds.log_uniform(bits=bits),
        thresholds.log_uniform(bits=bits, target=size // 4 + 1),
        *(thresholds.uniform(bits=bits, target=t) for t in (0, 1, size // 3, size)),
        *(
            thresholds.point_masses(bits=bits, points=points, masses=[1, 2, 0.5, 3, 1.5], target=t)
            for t in (0, size // 2, size // 2 + 1, size)
        ),
    ]


ALPHAS = [0.03125, 0.05, 0.1, 0.125, 0.137, 0.25, 0.3, 0.375, 0.49]


EVERYTHING = wide.from_ints(range(2**12 + 1), 32)


@pytest.mark.parametrize("bits", range(4, 13))
def test_errors_of_all_thresholds_and_all_within_alpha(bits):
    """Up to twelve bits, every threshold is examined."""
    everything = np.arange(2**bits + 1)
    for law in small_laws(bits):
        truth = np.array(
            [float(error) for error in map(exactly(law), everything.tolist())]
        )  # no rounding: multiples of 2^-32
        np.testing.assert_allclose(errors_of(law, EVERYTHING)[: 2**bits + 1], truth, rtol=3e-7)
        for alpha in ALPHAS:
            low, high = within(law, alpha)
            rounded = float(np.float32(alpha))
            agree = ((low <= everything) & (everything < high)) == (truth <= rounded)
            # A logarithm within rounding of alpha may fall on either side; powers of two below are exact.
            if type(law) is thresholds.LogUniform:
                agree |= (truth != rounded) & (np.abs(truth - rounded) < 1e-7)
            assert agree.all(), (law, alpha, everything[~agree])


@pytest.mark.parametrize("bits", [5, 9])
def test_within_at_exact_powers_of_two(bits):
    """Four and eight octaves: 2 alpha octaves is a whole number and error(h) = alpha exactly at both ends."""
    law = thresholds.log_uniform(bits=bits)
    octaves, t = int(law.octaves), target_of(law)
    for whole in range(octaves):
        alpha = whole / (2 * octaves)
        assert within(law, alpha) == (t + 1 - 2**whole, t + 2**whole + 1)
        assert errors(law, [t + 1 - 2**whole, t + 2**whole] * 2).tolist() == pytest.approx([alpha] * 4, rel=2e-7)


@pytest.mark.parametrize("bits", [64, builders.slow(1024)])
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.2501, 0.45])
def test_log_uniform_borders_of_wide_domains(bits, alpha):
    """Within float32's rounding of alpha at both ends: `within` promises leading digits only."""
    law = thresholds.log_uniform(bits=bits)
    low, high = within(law, alpha)
    t, slack = target_of(law), 1e-6
    width = t + 1 - low
    assert high == t + width + 1
    assert abs(exact(law, low) - alpha) <= slack * alpha + math.log2(1 + 1 / width) / (2 * int(law.octaves))
    outside = 1 + math.ceil(width * slack * alpha * 2 * int(law.octaves))
    for inner, outer in ((low, low - outside), (high - 1, high - 1 + outside)):
        assert exact(law, inner) <= alpha * (1 + slack) and exact(law, outer) > alpha * (1 - slack)
    np.testing.assert_allclose(errors(law, [low, high - 1]), [exact(law, low), exact(law, high - 1)], rtol=5e-7)


@pytest.mark.parametrize("bits", [31, 32, builders.thorough(33), 64, builders.slow(1024)])
@pytest.mark.parametrize("alpha", [0.0, 2.0**-32, 0.1, 0.5, 0.75])
def test_uniform_borders_are_exact(bits, alpha):
    for target in (0, 1, (1 << bits) // 3, 1 << bits):
        law = thresholds.uniform(bits=bits, target=target)
        low, high = within(law, alpha)
        rounded = Fraction(float(np.float32(alpha)))
        assert low == 0 or exact(law, low - 1) > rounded
        assert high == (1 << bits) + 1 or exact(law, high) > rounded
        assert exact(law, low) <= rounded and exact(law, high - 1) <= rounded
        inside = [low, high - 1, target, (low + high) // 2]
        np.testing.assert_allclose(errors(law, inside), [float(exact(law, h)) for h in inside], rtol=1.2e-7)


@pytest.mark.parametrize("bits", [builders.thorough(64), 1024])
def test_point_masses_on_wide_domains(bits):
    points = [0, 2 ** (bits - 40), 2 ** (bits - 1), 2 ** (bits - 1) + 1, 2**bits - 1]
    law = thresholds.point_masses(bits=bits, points=points, masses=[1, 2, 3, 4, 6], target=2 ** (bits - 1))
    hypotheses = [*points, *(x + 1 for x in points)]
    np.testing.assert_allclose(errors(law, hypotheses), [float(exact(law, h)) for h in hypotheses], rtol=1e-7)
    assert within(law, 0.15) == (1, 2 ** (bits - 1) + 1)
    assert within(law, 0.2) == (0, 2 ** (bits - 1) + 2)


@pytest.mark.parametrize("bits", [12, 64, builders.slow(1024)])
def test_errors_in_x64(bits, x64):
    law = thresholds.log_uniform(bits=bits)
    t = target_of(law)
    hypotheses = [t, t - 1, t + 1, t + 2, t + 3, t - t // 3, t + t // 7, 0, 2**bits]
    np.testing.assert_allclose(errors(law, hypotheses), [exact(law, h) for h in hypotheses], rtol=2e-15)
    law = thresholds.uniform(bits=bits, target=2**bits // 3)
    hypotheses = [0, 1, 2**bits // 5, 2**bits]
    assert errors(law, hypotheses).tolist() == [float(exact(law, h)) for h in hypotheses]


# -------------------------------------------------------------------------------------------------------------- draws


MANY_ROWS = 2**16 - 1


def p_value(observed, law):
    observed = np.asarray(observed)
    return stats.chisquare(observed, np.asarray(law) / np.sum(law) * observed.sum()).pvalue


@functools.cache
def many_log_uniform_points():
    """A law on 64 bits, and 50,000 points drawn from it."""
    law, n = thresholds.log_uniform(bits=64), 50_000
    return law, wide.to_ints(law.sample(jax.random.key(1), MANY_ROWS, n).x)[:n]


def test_log_uniform_samples_fill_octaves_and_sides_evenly():
    law, points = many_log_uniform_points()
    t, octaves = target_of(law), int(law.octaves)
    cells = [(abs(x - t).bit_length() - 1) + octaves * (x > t) for x in points]
    observed = np.bincount(cells, minlength=2 * octaves)
    assert observed.size == 2 * octaves
    assert p_value(observed, np.ones(2 * octaves)) > FALSE_ALARM
    lopsided = np.repeat([0.53, 0.47], octaves)  # negative control: a biased coin for the side
    assert p_value(observed, lopsided) < FALSE_ALARM


def test_log_uniform_samples_are_log_uniform_within_an_octave():
    law, points = many_log_uniform_points()
    t = target_of(law)
    distances = [abs(x - t) for x in points]
    fractions = [math.log2(d) % 1.0 for d in distances if d > 2**20]
    assert stats.kstest(fractions, stats.uniform.cdf).pvalue > FALSE_ALARM
    linear = [d / 2 ** (d.bit_length() - 1) - 1 for d in distances if d > 2**20]  # negative control: uniform in it
    assert stats.kstest(linear, stats.uniform.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize("bits", [builders.thorough(8), 32, 64])
def test_uniform_samples_are_uniform(bits):
    law, n = thresholds.uniform(bits=bits, target=1 << (bits - 1)), 50_000
    points = wide.to_ints(law.sample(jax.random.key(3), MANY_ROWS, n).x)[:n]
    observed = np.bincount([x >> (bits - 8) for x in points], minlength=256)
    assert p_value(observed, np.ones(256)) > FALSE_ALARM
    assert p_value(observed, np.linspace(0.9, 1.1, 256)) < FALSE_ALARM


def test_point_masses_are_drawn_as_often_as_they_weigh():
    points, masses, n = [7, 2, 200, 90], [1.0, 4.0, 2.0, 3.0], 50_000
    law = thresholds.point_masses(bits=64, points=points, masses=masses, target=50)
    drawn = wide.to_ints(law.sample(jax.random.key(4), MANY_ROWS, n).x)[:n]
    observed = [drawn.count(x) for x in points]
    assert sum(observed) == n
    assert p_value(observed, masses) > FALSE_ALARM
    assert p_value(observed, [1.1, 4.0, 2.0, 3.0]) < FALSE_ALARM


def laws(bits):
    size = 1 << bits
    ends = {"bits": bits, "points": [0, 1, size - 2, size - 1], "masses": [1, 1, 1, 2]}
    return [
        thresholds.log_uniform(bits=bits),
        thresholds.uniform(bits=bits, target=size // 3),
        thresholds.point_masses(**ends, target=size - 1),
    ]


@pytest.mark.parametrize("bits", [builders.thorough(2), 64, *map(builders.slow, (8, 12, 31, 32, 33))])
def test_samples_are_sorted_labelled_and_have_the_limbs_of_the_domain(bits):
    """Thresholds go up to 2^bits and may need one limb more; points do not, so a sample serves every mechanism on X_bits."""
    solver = interior_point.exponential(bits=bits, epsilon=1.0)
    last = thresholds.point_masses(bits=bits, points=[0, 1, 2, 2**bits - 1], masses=[1, 1, 1, 2], target=2**bits)
    for law in (*laws(bits), last):
        sample = law.sample(jax.random.key(5), 63, 40)
        points = wide.to_ints(sample.x)[:40]
        assert points == sorted(points) and max(points) < 2**bits
        assert sample.x.shape == (63, wide.limbs_for(bits))
        assert sample.y.tolist()[:40] == [int(x < target_of(law)) for x in points]
        assert int(sample.n_valid) == 40 and sample.rows == 63 and sample.ordered
        solver.fit(sample)  # refuses other limbs
    if bits == 8:
        assert int(solver(jax.random.key(1), sample).status) == Status.OK


@pytest.mark.parametrize("bits", [builders.thorough(2), 64, *map(builders.slow, (12, 31, 33))])
def test_more_rows_change_no_point(bits):
    """As many rows as other tests have: no programs of its own."""
    for law in laws(bits):
        plain, padded = (wide.to_ints(law.sample(jax.random.key(5), rows, 40).x[:40]) for rows in (63, MANY_ROWS))
        assert padded == plain


EDGES = [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1]
FRACTIONS = sorted({*EDGES, *(int(2**32 * i / 57) for i in range(57))})


def quantiles(bits):
    """Where the three laws put all fractions."""
    return [wide.to_ints(points) for points in all_quantiles(laws(bits), np.array(FRACTIONS, np.uint32))]


@pytest.mark.parametrize("bits", [*range(2, 41), 63, 64, 65, 1024])
def test_quantiles_rise_and_stay_inside(bits):
    for found in quantiles(bits):
        assert found == sorted(found)
        assert min(found) >= 0 and max(found) < 2**bits


@pytest.mark.parametrize("bits", [3, 12, 24, 33, 64, 1024])
def test_log_uniform_quantile_is_the_inverse_of_its_law(bits):
    """|x - target| = floor(2^U) to 24 digits (less what float32 rounds), U = octaves |2 v - 1|."""
    law, t = thresholds.log_uniform(bits=bits), target_of(thresholds.log_uniform(bits=bits))
    for v, x in zip(FRACTIONS, quantiles(bits)[0], strict=True):
        offset = x - t
        assert (offset > 0) == (v >= 2**31)
        distance = 2 * (v - 2**31) if v >= 2**31 else 2 * (2**31 - 1 - v)
        exact_offset = 2 ** Fraction(int(law.octaves) * distance, 2**32)
        assert exact_offset * (1 - 3e-7) - 1 < abs(offset) < exact_offset * (1 + 3e-7)


def test_extreme_quantiles():
    """The outermost draws touch the outermost octaves, the ends of the grid, and the first and last point."""
    law = thresholds.log_uniform(bits=12)
    t, octaves = target_of(law), int(law.octaves)
    log_uniform, uniform, masses = (dict(zip(FRACTIONS, points, strict=True)) for points in quantiles(12))
    assert (t - log_uniform[0], log_uniform[2**32 - 1] - t) == (2**octaves - 1, 2**octaves - 1)
    assert (log_uniform[2**31 - 1], log_uniform[2**31]) == (t - 1, t + 1)
    for law in (uniform, masses):
        assert (law[0], law[2**32 - 1]) == (0, 2**12 - 1)


# ----------------------------------------------------------------------------------------------- labels and qualities


@pytest.mark.parametrize("bits", [3, 32, 64])
def test_label_is_one_below_the_threshold(bits):
    points = [0, 1, 2**bits // 2, 2**bits - 1]
    for j in (0, 1, 2**bits // 2, 2**bits):
        labels = thresholds.label(wide.from_ints([j], bits + 1)[0], wide.from_ints(points, bits))
        assert labels.tolist() == [int(x < j) for x in points]


@pytest.mark.parametrize("ordered", [False, True])
def test_quality_counts_the_correct_labels_of_every_threshold(ordered):
    rng = np.random.default_rng(6)
    points = rng.integers(0, 16, 7)
    labels = rng.integers(0, 2, 7)
    if ordered:
        order = np.lexsort((-labels, points))
        points, labels = points[order], labels[order]

    @jax.jit
    def qualities(sample, thresholds_to_try):
        pieces = thresholds.quality(sample, jnp.int32(4), 1)
        return pieces.values[jax.vmap(pieces.locate)(thresholds_to_try)]

    for n in (1, 4, 7):
        sample = Sample(x=wide.from_ints(points, 4), y=labels, n_valid=n, ordered=ordered)
        examples = list(zip(points, labels, strict=True))[:n]
        expected = [sum(int(x < j) == y for x, y in examples) for j in range(17)]
        assert qualities(sample, wide.from_ints(list(range(17)), 5)).tolist() == expected


def test_in_domain_sees_points_and_labels_but_no_padding():
    in_domain = jax.jit(lambda sample, bits: sample.in_domain(bits))
    x = wide.from_ints([3, 15, 16], 8)

    def check(labels, n):
        leaves = (x, jnp.array(labels, jnp.int32), jnp.int32(n))
        return bool(in_domain(Sample.tree_unflatten((False, False), leaves), jnp.int32(4)))

    assert check([0, 1, 0], 2) and not check([0, 1, 0], 3)
    assert not check([0, 2, 0], 2) and check([0, 1, 2], 2)


def test_rows_that_do_not_count_are_in_every_domain():
    """Also in ordered data, where the last row speaks for all."""
    in_domain = jax.jit(lambda data: data.in_domain(4))
    for n, good in ((0, True), (1, True), (2, False)):
        for ordered in (False, True):
            points = Points(x=wide.from_ints([9, 2**20, 3], 32), n_valid=jnp.int32(n), ordered=ordered)
            assert bool(in_domain(points)) == good
    assert in_domain(Points(x=wide.from_ints([2**20], 32), n_valid=jnp.int32(0), ordered=True))


def test_negative_examples_are_in_the_domain_wherever_their_points_are():
    in_domain = jax.jit(lambda examples: examples.in_domain(4))

    def check(labels, n=3):
        x = wide.from_ints([3, 15, 16, 1, 15, 15], 8).reshape(3, 2, 1)
        return bool(in_domain(Examples(x=x, y=jnp.array(labels, jnp.int32), n_valid=jnp.int32(n))))

    assert check([1, 0, 1]) and not check([1, 1, 1]) and check([1, 1, 1], 1)
    assert not check([1, 0, 2]) and check([1, 0, 2], 2) and not check([1, 0, 1], 4) and not check([1, 0, 1], -1)


# ---------------------------------------------------------------------------------------------------------- factories


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (lambda: thresholds.log_uniform(bits=0), ValueError, "bits must be from 1 to 4096, got 0"),
        (lambda: thresholds.log_uniform(bits=2.0), TypeError, "bits must be an int, got 2.0"),
        (lambda: thresholds.log_uniform(bits=1), ValueError, "target must leave room"),
        (lambda: thresholds.log_uniform(bits=8, target=1), ValueError, "target must leave room .* got 1"),
        (lambda: thresholds.log_uniform(bits=8, target=256), ValueError, "target must leave room .* got 256"),
        (lambda: thresholds.log_uniform(bits=8, target=1000), ValueError, "target must be from 0 to 256, got 1000"),
        (lambda: thresholds.uniform(bits=8, target=257), ValueError, "target must be from 0 to 256, got 257"),
        (lambda: thresholds.uniform(bits=8, target=-1), ValueError, "target must be from 0 to 256, got -1"),
        (lambda: masses([], []), ValueError, "masses must have one entry a point, got 0 for 0"),
        (lambda: masses([1], [1.0, 2.0]), ValueError, "masses must have one entry a point, got 2 for 1"),
        (lambda: masses([1, 1], [1.0, 2.0]), ValueError, "points must be distinct"),
        (lambda: masses([1, 2], [1.0, 0.0]), ValueError, "masses must be > 0.0, got 0.0"),
        (lambda: masses([1, 2], [1.0, math.inf]), ValueError, "masses must be < inf, got inf"),
        (lambda: masses([1, 2], [1.0, math.nan]), ValueError, "masses must be"),
        (lambda: masses([1, 2], [1.0, 1e-12]), ValueError, "masses must each be at least 2\\^-32"),
        (lambda: masses([1, 256], [1.0, 1.0]), ValueError, "points must be from 0 to 255, got 256"),
        (lambda: masses([1, 2.5], [1.0, 1.0]), TypeError, "points must be an int, got 2.5"),
        (lambda: masses(3, [1.0]), TypeError, "points must be a list, got 3"),
        (lambda: over(8, 16), ValueError, "base must be over the 16 bits of the targets, got Uniform"),
        (lambda: over(40, 8), ValueError, "base must be over the 8 bits of the targets, got Uniform"),
        (lambda: masses([3], None), TypeError, "masses must be a list, got None"),
    ],
)
def test_factories_refuse(factory, error, message):
    with pytest.raises(error, match=message):
        factory()


def over(bits, targets):
    return thresholds.several(thresholds.uniform(bits=bits, target=0), bits=targets, targets=[3])


def masses(points, weights):
    return thresholds.point_masses(bits=8, points=points, masses=weights, target=5)


def test_one_trace_serves_every_width_of_as_many_limbs():
    traces = []

    @jax.jit
    def draw_and_judge(law, key, n, alpha):
        traces.append(1)
        return law.sample(key, 7, n), law.error(law.target), law.within(alpha)

    for bits, n in ((40, 3), (50, 5), (60, 7)):
        draw_and_judge.trace(thresholds.log_uniform(bits=bits), jax.random.key(7), n, 0.1)
    assert len(traces) == 1


# ---------------------------------------------------------------------------------------------- what is refused, and edges

DRAWN = {
    "thresholds": lambda: thresholds.log_uniform(bits=8),
    "several thresholds": lambda: thresholds.several(thresholds.uniform(bits=8, target=0), bits=8, targets=[3, 9]),
    "points": lambda: points.uniform(bits=8, target=3),
    "parities": lambda: parities.uniform(bits=8, targets=[3, 9]),
    "one parity": lambda: parities.uniform_single(bits=8, target=3),
    "rectangles": lambda: rectangles.uniform(bits=8, low=[3, 9], high=[70, 80]),
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(
    ("n", "capacity", "kind", "message"),
    [
        (50, 7, ValueError, "n must be at most the capacity, 7, got 50"),
        (0, 7, ValueError, "n must be >= 1, got 0"),
        (-3, 7, ValueError, "n must be >= 1, got -3"),
        (np.int32(8), 7, ValueError, "n must be at most the capacity, 7, got 8"),
        (2.5, 7, TypeError, "n must be an int"),
        (1, 0, ValueError, "capacity must be >= 1"),
        (1, 7.0, TypeError, "capacity must be an int"),
    ],
)
def test_samples_of_a_size_they_cannot_have_are_refused(name, n, capacity, kind, message):
    with pytest.raises(kind, match=message):
        DRAWN[name]().sample(jax.random.key(0), capacity, n)


@pytest.mark.parametrize("name", DRAWN)
def test_a_sample_needs_a_key(name):
    with pytest.raises(TypeError, match="key must be"):
        DRAWN[name]().sample(0, 7, 3)


def test_a_traced_size_shows_in_the_status_of_what_is_learned():
    learner, law = one_threshold.exponential(bits=8, epsilon=1.0), thresholds.log_uniform(bits=8)
    run = jax.jit(lambda n: learner(jax.random.key(1), law.sample(jax.random.key(0), 7, n)).status)
    assert [int(run(n)) for n in (7, 50, 0, -3)] == [Status.OK, *[Status.OUTSIDE_DOMAIN] * 3]


@pytest.mark.parametrize("alpha", [0.5, 0.51, 0.75, 1.0])
@pytest.mark.parametrize("bits", [8, builders.slow(32)])
def test_every_threshold_is_within_half_of_a_log_uniform_law(bits, alpha):
    """Errors are at most 1/2, so the law of success is 1: it used to wrap around and be 0."""
    law = thresholds.log_uniform(bits=bits)
    low, high = within(law, alpha)
    assert low == 0 and high > 2**bits
    sample = Sample(x=wide.from_ints(range(0, 160, 4), bits), y=[1] * 30 + [0] * 10, realizable=True)
    learner = one_threshold.exponential(bits=bits, epsilon=0.1)
    good, bad = learner.probability(sample, law.within(np.float32(alpha)))
    assert float(good) == pytest.approx(1.0, abs=1e-6) and float(bad) < 1e-6


@pytest.mark.parametrize("bits", [31, 32, builders.thorough(33), 64])
def test_every_threshold_is_within_one_of_a_uniform_law(bits):
    """2^32 points of the grid are no uint32, and twice 2^31 no limb."""
    for target in (0, 1 << (bits - 1), 1 << bits):
        assert within(thresholds.uniform(bits=bits, target=target), 1.0) == (0, (1 << bits) + 1)


@pytest.mark.parametrize(
    "law",
    [
        *small_laws(4)[::3],
        thresholds.several(thresholds.uniform(bits=4, target=0), bits=4, targets=[3, 5]),
        parities.uniform_single(bits=4, target=5),
        parities.uniform(bits=4, targets=[5, 6]),
        points.point_masses(bits=4, points=[3, 9], masses=[1.0, 3.0], target=3),
        rectangles.uniform(bits=4, low=[0], high=[3]),
    ],
    ids=repr,
)
def test_no_law_knows_what_is_within_an_error_that_is_none(law):
    """NaN and -1 used to give the target alone, or everything."""
    for wrong, kind in ((math.nan, ValueError), (-0.5, ValueError), ("1", TypeError), (None, TypeError)):
        with pytest.raises(kind, match="alpha must be"):
            law.within(wrong)


@pytest.mark.parametrize("alpha", [float("nan"), -1.0, 2.0])
def test_an_experiment_refuses_an_error_that_is_none(alpha):
    law, learner = thresholds.log_uniform(bits=8), one_threshold.exponential(bits=8, epsilon=1.0)
    with pytest.raises(ValueError, match="alpha must be"):
        pac.Experiment(learner=learner, distribution=law, n=5, alpha=alpha, capacity=7)


@pytest.mark.parametrize(
    "hypothesis", [None, 3, True, np.array([2**32 + 5]), np.array([7.9]), np.zeros((1, 1), np.uint32)]
)
def test_what_is_no_wide_integer_is_no_hypothesis(hypothesis):
    """It used to be cut off, or broadcast."""
    for law in (thresholds.uniform(bits=6, target=5), thresholds.log_uniform(bits=6, target=5)):
        with pytest.raises((TypeError, ValueError), match="hypothesis must"):
            law.error(hypothesis)
    with pytest.raises(TypeError, match="hypothesis must have predict"):
        points.uniform(bits=6, target=5).error(hypothesis)


def test_a_threshold_beyond_the_domain_errs_as_the_last_one_does():
    law = thresholds.uniform(bits=6, target=16)
    assert float(law.error(np.array([70], np.uint32))) == float(law.error(np.array([64], np.uint32))) == 0.75


@pytest.mark.parametrize("capacity", [0, None, np.nan, 2**31])
def test_a_capacity_that_is_no_length_is_refused(capacity):
    with pytest.raises((TypeError, ValueError), match="capacity must be"):
        pac.Experiment(
            learner=one_threshold.erm(bits=4),
            distribution=thresholds.uniform(bits=4, target=3),
            n=1,
            alpha=0.1,
            capacity=capacity,
        )


def test_several_hypotheses_are_not_one():
    """Of a batch of conjunctions all literals became one conjunction, and an error of points passed 1."""
    law = conjunctions.product(bits=4, target=[0, 2])
    with pytest.raises(ValueError, match="hypothesis must be one row of literals"):
        law.error(conjunctions.Literals(literals=jnp.array([[0, 2], [4, 6]]), disjunction=False))
    one, two = (points.point_masses(bits=6, points=[1, 5], masses=[1.0, 1.0], target=target) for target in (5, [5, 6]))
    with pytest.raises(ValueError, match="hypothesis must be one concept"):
        one.error(two.targets)
    for hypotheses in (one.targets, points.uniform(bits=6, target=[5, 6, 7]).targets):
        with pytest.raises(ValueError, match="hypotheses must be 2, one for each target"):
            two.errors(hypotheses)
    cut = np.array([2**32 + 5], np.uint64)
    with pytest.raises(TypeError, match="hypothesis must be a uint32 array"):
        agnostic.noisy(thresholds.uniform(bits=6, target=5), flip=0.1).error(cut)


@pytest.mark.parametrize(
    ("points", "masses", "match"),
    [
        ([5, 1, 5], [1.0, 1.0, 1.0], "points must be distinct, got 5 more than once"),
        ([1, 2], [1.0, 1e-12], "masses must each be at least 2\\^-32 of the total, got a share of 1e-12"),
    ],
)
def test_refusals_of_point_masses_say_what_was_given(points: list[int], masses: list[float], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        thresholds.point_masses(bits=8, points=points, masses=masses, target=0)


def test_several_thresholds_refuse_point_masses_beyond_their_domain() -> None:
    base = thresholds.point_masses(bits=20, points=[3, 2**8], masses=[1.0, 1.0], target=0)
    assert thresholds.several(base, bits=9, targets=[3]).targets.shape == (1, 1)
    with pytest.raises(ValueError, match="base must be over the 8 bits"):
        thresholds.several(base, bits=8, targets=[3])
