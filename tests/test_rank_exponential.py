"""Quantiles by the exponential mechanism on the rank error: private for all neighbours, the naive law, the error that is stated."""

import dataclasses
import functools
import itertools
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Points, accounting
from dpjax.domains import wide
from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles import scales
from dpjax.optimizers.quantiles.rank_exponential import range_sums
from dpjax.verify.plain.quantiles import rank_exponential_laws


def points_of(values, bits, rows=None):
    points = Points.create(wide.from_ints([*values, *[0] * (not values)], bits), len(values))
    return points if rows is None else points.padded(rows)


@functools.cache
def law():
    """(mechanism, points) -> the law of each run on a domain of 8: one program."""
    return jax.jit(lambda made, points: made.pmfs(made.prepare(points), 8)[:, :-1])


def logs_of(made, values):
    return np.log(np.asarray(law()(made, points_of(values, 3, 31)), np.float64))


@pytest.mark.parametrize("fractions", [[0.1], [0.9], [0.25, 0.5, 0.75], [0.05, 0.1, 0.7]])
def test_ranges_of_runs_are_summed_for_the_worst_new_point(fractions):
    """The first j runs have range w + f, the others w + 1 - f, w = max(f, 1 - f): the largest sum over j, and that of squares."""
    widest = [max(f, 1 - f) for f in fractions]
    moved = [
        [w + f if i < j else w + 1 - f for i, (w, f) in enumerate(zip(widest, fractions, strict=True))]
        for j in range(len(fractions) + 1)
    ]
    expected = max(map(sum, moved)), max(sum(each**2 for each in row) for row in moved)
    assert range_sums(np.array(fractions), np) == pytest.approx(expected, rel=1e-12)


BY_SCALES = {"base": "scales", "origin": 3}


@pytest.mark.parametrize(
    ("fractions", "measure"),
    [
        builders.slow([0.5], {}),
        ([0.25, 0.75], {}),
        builders.thorough([0.1, 0.3, 0.4], {}),
        builders.thorough([0.1, 0.3, 0.4], BY_SCALES),
    ],
)
def test_no_neighbouring_points_refute_the_guarantee(fractions, measure, x64):
    """All multisets of up to three points of 8, and clusters of up to 31; the runs are independent, so their worst losses add up."""
    made = quantiles.rank_exponential(bits=3, fractions=fractions, epsilon=1.0, **measure)
    small = [list(values) for n in range(4) for values in itertools.combinations_with_replacement(range(8), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 7), (2, 3), (6, 7), (0, 1)) for i in (0, 5, 15) for j in (0, 4, 15)]
    worst = 0.0
    for values in small + clusters:
        here = logs_of(made, values)
        for p in range(8):
            loss = logs_of(made, sorted([*values, p])) - here
            worst = max(worst, loss.max(axis=1).sum(), -loss.min(axis=1).sum())
    assert 0.8 < worst <= 1 + 1e-9, worst  # so four fifths of epsilon are refuted


@pytest.mark.thorough
@pytest.mark.parametrize("measure", [{}, {"base": "scales", "origin": 1}])
def test_all_quartiles_are_private_together_by_the_verifier(measure, x64):
    made = quantiles.rank_exponential(bits=2, fractions=[0.25, 0.5, 0.75], epsilon=1.0, **measure)
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-12
    assert not dpjax.check(made, n=3, domain=4, epsilon=0.25).delta <= 1e-12  # negative control


@pytest.mark.parametrize("origin", [0, 3, builders.thorough(8)])
def test_laws_by_scales_are_the_naive_ones(origin, x64):
    for values in ([], [2, 2, 2, 5], [1, 4, 6, 7, 7]):
        made = quantiles.rank_exponential(bits=3, fractions=[0.3, 0.8], epsilon=2.0, base="scales", origin=origin)
        given = {"size": 8, "epsilon": 2.0, "base": "scales"}
        naive = rank_exponential_laws(values, [0.3, 0.8], **given, origin=origin)
        np.testing.assert_allclose(np.exp(logs_of(made, values)), naive, rtol=1e-9)
        other = rank_exponential_laws(values, [0.3, 0.8], **given, origin=(origin + 4) % 8)  # negative control
        assert np.abs(np.array(naive) - other).max() > 1e-3


@pytest.mark.thorough
def test_runs_by_scales_follow_the_law_on_a_wide_domain():
    """4,000 runs on 2^64 points around an origin in their midst; five standard deviations."""
    origin = 2**63
    made = quantiles.rank_exponential(bits=64, fractions=[0.5], epsilon=0.05, base="scales", origin=origin)
    points = points_of([origin - 1000, origin + 3, origin + 3, origin + 50_000], 64, 7)
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis))(jax.random.split(jax.random.key(0), 4000))
    limbs = np.asarray(answers)[:, 0].astype(object)
    t = (limbs[:, 0] * 2**32 + limbs[:, 1]) - origin
    for low, high in ((-(2**63), -(2**40)), (-(2**20), 0), (0, 2**12), (2**16, 2**62)):
        exact = float(each(made, points, _rows([(origin + low, origin + high)], 64))[0, 0])
        assert 0.005 < exact < 0.995
        assert abs(np.mean((t >= low) & (t < high)) - exact) < 5 * (exact * (1 - exact) / 4000) ** 0.5
    uniform = quantiles.rank_exponential(bits=64, fractions=[0.5], epsilon=0.05)
    other = float(each(uniform, points, _rows([(origin + low, origin + high)], 64))[0, 0])
    assert abs(exact - other) > 5 * (exact * (1 - exact) / 4000) ** 0.5  # negative control


@pytest.mark.parametrize("bits", [builders.thorough(31), builders.thorough(32), builders.thorough(63), 64])
def test_the_axis_is_cut_wherever_a_weight_by_scales_changes(bits):
    """Otherwise a point that is inserted would change the measure: a piece has one weight."""
    cuts = jax.jit(scales.cuts)
    for origin in (0, 1, 2 ** (bits - 1) - 1, 2**bits - 1, 2**bits):
        at = wide.from_ints([origin], bits + 1)[0]
        cut = set(wide.to_ints(cuts(np.int32(bits), at)))
        changes = {origin + side * (2**k - 1) for side in (1, -1) for k in range(1, bits + 1)}
        assert {z for z in changes if 0 < z < 2**bits} <= cut, (bits, origin)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("origin", "values", "p", "outcome"),
    [
        (0, [1, *[1000] * 80], 2**31 - 2, (2**31 - 1, 2**31)),
        (2**31, [2**30 - 1] * 80, 100, (101, 2**30 - 2)),
    ],
)
def test_a_new_point_does_not_move_the_measure_by_scales(origin, values, p, outcome, x64):
    """With a cut missing at the outermost scale, as was once the case, the loss is 1.03."""
    made = quantiles.rank_exponential(bits=31, fractions=[0.5], epsilon=1.0, base="scales", origin=origin)
    laws = [each(made, points_of(sorted(x), 31, 127), _rows([outcome], 31))[0] for x in (values, [*values, p])]
    assert 0.2 < float(np.abs(np.log(laws[1]) - np.log(laws[0])).max()) <= 1 + 1e-9


def stick(here, there, epsilon):
    """The larger delta of the two directions between products of independent runs, at epsilon."""
    one, other = (functools.reduce(np.multiply.outer, laws).reshape(-1) for laws in (here, there))
    return max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in ((one, other), (other, one)))


def test_totals_hold_for_the_joint_law_of_all_runs():
    """All multisets of up to three of 4 points, 7 quantiles: 16,384 outcomes, whose law is a product."""
    small = [list(values) for n in range(4) for values in itertools.combinations_with_replacement(range(4), n)]
    points = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(points_of(values, 2, 7) for values in small))
    of = jax.jit(jax.vmap(lambda made, points: made.pmfs(made.prepare(points), 4)[:, :-1], in_axes=(None, 0)))
    fractions = [i / 8 for i in range(1, 8)]

    def worst(made, epsilon):
        laws = {tuple(values): law for values, law in zip(small, np.asarray(of(made, points), float), strict=True)}
        pairs = [(v, tuple(sorted([*v, p]))) for v in laws if len(v) < 3 for p in range(4)]
        return max(stick(laws[v], laws[w], epsilon) for v, w in pairs)

    made = quantiles.rank_exponential(bits=2, fractions=fractions, epsilon=1.0, delta=0.01)
    pure = quantiles.rank_exponential(bits=2, fractions=fractions, epsilon=1.0)
    assert (
        float(made.slope(np) / pure.slope(np)) > 2.3
        and made.guarantee().delta == 0.01
        and made.guarantee().epsilon == 1.0
    )
    assert 1e-5 < worst(made, 1.0) <= 0.01  # so that (1, 0) is refuted, which the pure one keeps
    assert worst(pure, 1.0) <= 1e-6
    twice = quantiles.rank_exponential(bits=2, fractions=fractions, rho=4 * made.zcdp())
    assert float(twice.slope(np)) == pytest.approx(2 * float(made.slope(np)), rel=1e-6)
    assert worst(twice, 1.0) > 0.01  # negative control


@pytest.mark.parametrize(("fraction", "epsilon", "delta"), [(0.5, 0.5, 0.2), (0.3, 1.0, 0.1)])
def test_a_large_delta_pays_for_losses_of_one_range_and_is_reached(fraction, epsilon, delta):
    """By the naive laws of all multisets of up to four of 5 points."""
    made = quantiles.rank_exponential(bits=3, fractions=[fraction], epsilon=epsilon, delta=delta)
    ranges, squares = range_sums(np.asarray([fraction]), np)
    rate = float(made.slope(np))
    assert rate == pytest.approx(accounting.largest_range(epsilon, delta) / ranges, rel=1e-9)
    assert rate > 1.05 * accounting.exponential_rate(epsilon, delta, ranges=ranges, squares=squares)

    def law(values, rate):
        return np.array(rank_exponential_laws(values, [fraction], size=5, epsilon=rate * ranges))

    def worst(rate):
        pairs = [
            (v, tuple(sorted((*v, p))))
            for n in range(4)
            for v in itertools.combinations_with_replacement(range(5), n)
            for p in range(5)
        ]
        return max(stick(law(v, rate), law(w, rate), epsilon) for v, w in pairs)

    assert delta / 2 < worst(rate) <= delta
    assert worst(1.4 * rate) > delta  # negative control


@pytest.mark.slow
def test_rho_is_kept_and_the_pure_epsilon_it_takes_is_stated(x64):
    given = {"bits": 2, "fractions": [0.25, 0.5, 0.75]}
    made = quantiles.rank_exponential(**given, rho=0.1)
    assert made.zcdp() == pytest.approx(0.1, rel=1e-9) and made.zcdp() <= 0.1
    assert made.zcdp() < made.guarantee().zcdp() and made.guarantee().is_pure
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert 0.02 < report.zcdp() <= 0.1
    again = quantiles.rank_exponential(**given, epsilon=made.guarantee().epsilon)
    assert float(again.slope(np)) == float(made.slope(np))


def test_the_least_beta_has_an_error():
    made = quantiles.rank_exponential(bits=8, fractions=[0.2, 0.5], epsilon=1.0)
    assert made.error(beta=1e-300) < made.error(beta=1e-320) < 2000
    assert quantiles.tree(bits=8, fractions=[0.2, 0.5], epsilon=1.0).sample_size(alpha=0.1, beta=1e-320) < 10**6


def test_the_widest_domains_take_ints_for_events():
    made = quantiles.rank_exponential(bits=4096, fractions=[0.5], epsilon=1.0)
    checked = made.check_event(([0], [2**4096]))
    assert wide.to_ints(checked.low) == [0] and wide.to_ints(checked.high) == [2**4096]


@pytest.mark.slow
def test_laws_on_a_wide_domain_are_the_naive_ones(x64):
    rng = np.random.default_rng(0)
    for n in (0, 1, 9, 31):
        values = sorted(rng.integers(0, 64, n).tolist())
        made = quantiles.rank_exponential(bits=6, fractions=[0.2, 0.5, 0.99], epsilon=2.0)
        naive = np.array(rank_exponential_laws(values, [0.2, 0.5, 0.99], size=64, epsilon=2.0))
        shifted = points_of([value << 90 for value in values], 96, 31)  # each point of 6 bits stands for 2^90
        large = quantiles.rank_exponential(bits=96, fractions=[0.2, 0.5, 0.99], epsilon=2.0)
        interval = [(20, 40)] * 3
        exact = naive[:, 20:40].sum(axis=1)
        found = each(made, points_of(values, 6, 31), _rows(interval, 6))
        np.testing.assert_allclose(found[:, 0], exact, rtol=1e-9)
        # On the wide domain a point is one of 2^90 in its cell, so that cells weigh as the gaps of the small domain but for 2^-90.
        cells = each(large, shifted, _rows([(20 << 90, 40 << 90)] * 3, 96))
        gaps = _gap_law(values, [0.2, 0.5, 0.99], 64, 2.0)
        np.testing.assert_allclose(cells[:, 0], gaps[:, 20:40].sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("base", ["uniform", builders.slow("scales")])
@pytest.mark.parametrize("make", [quantiles.rank_exponential, builders.thorough(quantiles.permute_and_flip)])
def test_points_far_from_the_quantiles_tell_nothing(make, base, x64):
    """Laws of all points and of those near the quantiles alone, on 256 values: many points share some of them, also around a quantile."""
    made = make(bits=8, fractions=[0.0, 0.3, 0.5, 0.9], epsilon=30.0, base=base)
    focused = made.focused(8191)
    assert 0 < 8 * focused.size <= 8191 and made.focused(8 * focused.size - 1).size == 0
    far = dataclasses.replace(made, size=focused.size // 16)  # negative control

    @jax.jit
    def laws(points):
        def one(mechanism, fraction):
            pieces = mechanism._seen(points, fraction)
            values = wide.from_uint32(jnp.arange(256, dtype=jnp.uint32), mechanism.wider)
            return jax.nn.softmax(mechanism._log_density(pieces)[jax.vmap(pieces.locate)(values)])

        return [jax.vmap(functools.partial(one, m))(jnp.asarray(made.fractions)) for m in (made, focused, far)]

    rng, differs = np.random.default_rng(0), 0.0
    for n in (8000, 3000, 100):
        for values in (
            rng.integers(0, 256, n),
            rng.integers(100, 110, n),
            np.repeat([3, 77, 200], [n // 4, n // 2, n - n // 4 - n // 2]),
        ):
            points = made.prepare(made.fit(points_of(values.tolist(), 8, 8191)))
            whole, part, short = laws(points)
            np.testing.assert_allclose(part, whole, rtol=0, atol=1e-15)
            differs = max(differs, float(jnp.max(jnp.abs(short - whole))))
    assert differs > 1e-6
    with pytest.raises(TypeError, match="epsilon must be a known number"):
        jax.jit(lambda epsilon: dataclasses.replace(made, epsilon=epsilon).focused(8191).epsilon)(1.0)


@pytest.mark.parametrize("epsilon", [0.5, builders.thorough(5.0), builders.thorough(50.0)])
@pytest.mark.parametrize("make", [quantiles.rank_exponential, builders.thorough(quantiles.permute_and_flip)])
def test_runs_draw_from_points_near_the_quantiles_with_either_base(make, epsilon):
    """By the uniform base there were two pieces more than a power of two, which no draw took."""
    points = points_of(range(4095), 16)
    for base in ("uniform", "scales"):
        focused = make(bits=16, fractions=[0.5], epsilon=epsilon, base=base).focused(4095)
        found = wide.to_ints(focused(jax.random.key(0), points).hypothesis)[0]
        assert focused.size > 0 and abs(found - 2047) <= focused.error(beta=1e-6) + 1


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [builders.thorough(1), builders.thorough(60), 64])
@pytest.mark.parametrize("make", [builders.thorough(quantiles.rank_exponential), quantiles.permute_and_flip])
def test_intervals_may_end_beyond_the_domain(make, bits):
    """Truncated, 2^64 was once 0: the whole domain had probability 0, and what lies beyond it that of points near 0."""
    made, points = make(bits=bits, fractions=[0.5], epsilon=1.0), points_of([0, 1, 1], bits, 3)
    end = lambda value: wide.resize(wide.from_ints([value], 96), wide.limbs_for(bits) + 1)  # noqa: E731
    most = 2 ** (32 * wide.limbs_for(bits))
    for low, high, inside in ((0, 2**bits, 1.0), (0, most, 1.0), (0, most + 7, 1.0), (most, most + 7, 0.0)):
        law = made.probability(points, (end(low), end(high)))
        np.testing.assert_allclose(law, [inside, 1 - inside], atol=1e-6)


@jax.jit
def each(made, points, rows):
    return made.each(made.prepare(points), made.check_event(rows))


def _rows(intervals, bits):
    low, high = (wide.from_ints(list(ends), bits + 1) for ends in zip(*intervals, strict=True))
    limbs = wide.limbs_for(bits) + 1
    return wide.resize(low, limbs), wide.resize(high, limbs)


def _gap_law(values, fractions, size, epsilon):
    """The law by cells (i, i + 1), in which z is above the points at i."""
    slope = epsilon / (sum(max(f, 1 - f) for f in fractions) + max(sum(fractions), sum(1 - f for f in fractions)))
    laws = []
    for f in fractions:
        wanted = f * len(values)
        weights = np.exp([-slope * abs(sum(x <= z for x in values) - wanted) for z in range(size)])
        laws.append(weights / weights.sum())
    return np.array(laws)


@pytest.mark.slow
def test_ranks_of_large_samples_are_exact():
    """f n is no float32: the integer part and the rest are kept apart."""
    n, fraction = 2**20 - 1, 0.3
    made = quantiles.rank_exponential(bits=21, fractions=[fraction], epsilon=1.0)
    points = Points.create(wide.from_uint32(jnp.arange(n, dtype=jnp.uint32), 1), ordered=True)
    pieces = made.pieces(made.prepare(points), jnp.asarray(made.fractions)[0])
    wanted = Fraction(round(fraction * 2**32), 2**32) * n
    for z in (314_570, 314_572, 314_573, 314_580):
        error = max(Fraction(z) - wanted, wanted - (z + 1))
        assert abs(float(pieces.values[2 * z + 1]) + float(error)) < 1e-4


@pytest.mark.parametrize(("base", "share"), [("uniform", 1.0), ("scales", 0.5)])
def test_the_error_stated_is_for_the_least_weight_of_a_point(base, share):
    """A point has at least `share` 2^-bits of the measure; an error e weighs exp(-lambda e), and both runs fail with beta in all."""
    made = quantiles.rank_exponential(bits=4, fractions=[0.25, 0.75], epsilon=1.0, base=base)
    error = made.error(beta=0.1)
    assert 2 / (share * 2.0**-4) * np.exp(-float(made.slope(np)) * error) == pytest.approx(0.1)


@pytest.mark.slow
def test_the_error_stated_is_kept_on_hard_data():
    made = quantiles.rank_exponential(bits=16, fractions=[0.25, 0.75], epsilon=1.0)
    n = made.sample_size(alpha=0.1, beta=0.1)
    for values in (
        [0] * n,
        [7] * (n // 2) + [8] * (n - n // 2),
        list(range(n)),
        [0] * (n // 2) + [65535] * (n - n // 2),
    ):
        assert made.failure_probability(points_of(values, 16, 1023), error=0.1) <= 0.1
    tight = [30_000 + i for i in range(n // 8)]
    assert made.failure_probability(points_of(tight, 16, 1023), error=0.1) > 0.1  # negative control


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"bits": 0}, ValueError, "bits must be"),
        ({"bits": 5.0}, TypeError, "bits must be"),
        ({"fractions": []}, ValueError, "fractions must increase strictly"),
        ({"fractions": [0.5, 0.5]}, ValueError, "fractions must increase strictly"),
        ({"fractions": [-0.5]}, ValueError, "fractions must be"),
        ({"fractions": 0.5}, TypeError, "fractions must be a list"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": "1"}, TypeError, "epsilon must be"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"rho": 0.1}, ValueError, "exactly one of epsilon and rho"),
        ({"epsilon": None}, ValueError, "exactly one of epsilon and rho"),
        ({"epsilon": None, "rho": 0.1, "delta": 1e-6}, ValueError, "delta must not"),
        ({"epsilon": None, "rho": 0.0}, ValueError, "rho must be"),
        ({"base": "normal"}, ValueError, "base must be"),
        ({"origin": 257}, ValueError, "origin must be"),
        ({"origin": 0.5}, TypeError, "origin must be"),
    ],
)
def test_bad_arguments_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        quantiles.rank_exponential(**({"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given))


def test_an_event_is_a_pair_of_ends_with_a_row_for_each_quantile():
    """JAX was once made to map over two numbers as if they were arrays."""
    mechanism = quantiles.rank_exponential(bits=4, fractions=[0.25, 0.75], epsilon=1.0)
    found = mechanism.check_event([range(2), np.array([3, 16])])
    assert wide.to_ints(found.low) == [0, 1] and wide.to_ints(found.high) == [3, 16]
    for event in (range(2), (0, 2), [range(2), range(3)], None, "ab", ({0, 1}, {2, 3})):
        with pytest.raises(ValueError, match=r"event must be \(low, high\) with a row for each of the 2 quantiles"):
            mechanism.check_event(event)
