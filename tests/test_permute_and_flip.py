"""Quantiles by permute-and-flip: private for all neighbours, the law over all orders, wide domains, never worse than exponential."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow

import dpjax
from dpjax import Points
from dpjax.domains import ordered, wide
from dpjax.mechanisms import permute_and_flip_piecewise, report_noisy_max
from dpjax.optimizers import quantiles
from dpjax.verify.plain.quantiles import permute_and_flip_laws


def points_of(values, bits, rows=31):
    return Points.create(wide.from_ints([*values, *[0] * (not values)], bits), len(values)).padded(rows)


@functools.cache
def law():
    """(mechanism, stacked points) -> the law of each run on a domain of 8, for each of the points: one program for each shape and base."""
    return jax.jit(jax.vmap(lambda made, points: made.pmfs(made.prepare(points), 8)[:, :-1], in_axes=(None, 0)))


log_masses = jax.jit(lambda pieces: permute_and_flip_piecewise.log_masses(pieces, pieces.values))


def laws_of(made, several):
    points = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(points_of(values, 3) for values in several))
    return np.asarray(law()(made, points), np.float64)


@pytest.mark.thorough
@pytest.mark.parametrize(("most", "before", "after"), [(1, (0, 15), (4, 15)), slow(2, (0, 5, 15), (0, 4, 15))])
def test_no_neighbouring_points_refute_the_guarantee(most, before, after, x64):
    """All multisets of up to `most` points of 8, and clusters of up to 31; the runs are independent, so their worst losses add up."""
    made = quantiles.permute_and_flip(bits=3, fractions=[0.3, 0.4], epsilon=1.0, base="scales", origin=3)
    small = [list(values) for n in range(most + 1) for values in itertools.combinations_with_replacement(range(8), n)]
    clusters = [[a] * i + [b] * j for a, b in ((0, 7), (2, 3), (6, 7)) for i in before for j in after]
    pairs = [(tuple(values), tuple(sorted([*values, p]))) for values in small + clusters for p in range(8)]
    every = sorted({values for pair in pairs for values in pair})
    logs = dict(zip(every, np.log(laws_of(made, every)), strict=True))
    losses = [logs[there] - logs[here] for here, there in pairs]
    worst = max(max(loss.max(axis=1).sum(), -loss.min(axis=1).sum()) for loss in losses)
    assert 0.8 < worst <= 1 + 1e-9, worst  # so four fifths of epsilon are refuted


@pytest.mark.thorough
def test_it_is_private_by_the_verifier(x64):
    made = quantiles.permute_and_flip(bits=2, fractions=[0.25, 0.75], epsilon=1.0)
    report = dpjax.check(made, n=3, domain=4, epsilon=1.0)
    assert report.exact and report.delta <= 1e-12
    assert report.delta_at(0.25) > 1e-3  # negative control


@pytest.mark.thorough
def test_it_is_not_zcdp_like_the_exponential_mechanism(x64):
    """If one of two equal weights falls by a factor of e, the divergence is above 2/8; the exponential mechanism is 1/8-zCDP."""
    made, other = (
        make(bits=2, fractions=[0.25, 0.75], epsilon=1.0)
        for make in (quantiles.permute_and_flip, quantiles.rank_exponential)
    )
    assert made.zcdp() == made.guarantee().zcdp() > 2 * other.zcdp()
    one = ordered.from_breakpoints([0, 1], [0.0, -1.0], 1, beyond=-math.inf)
    masses = np.exp(np.asarray(log_masses(one)[:2]))
    masses /= masses.sum()
    divergence = 0.5 * np.log(0.25 / masses.prod())
    assert masses == pytest.approx([1 - math.exp(-1) / 2, math.exp(-1) / 2], rel=1e-9) and divergence > 2 / 8


@pytest.mark.thorough
def test_it_is_private_by_the_verifier_by_scales(x64):
    at_its_limit = quantiles.permute_and_flip(bits=2, fractions=[0.3], epsilon=1.0, base="scales", origin=2)
    assert dpjax.check(at_its_limit, n=3, domain=4, epsilon=1.0).delta == 0.0


@pytest.mark.thorough
@pytest.mark.parametrize("origin", [0, 3, 8])
def test_laws_by_scales_are_those_over_all_orders(origin, x64):
    made = quantiles.permute_and_flip(bits=3, fractions=[0.25, 0.875], epsilon=2.0, base="scales", origin=origin)
    given = {"size": 8, "epsilon": 2.0, "base": "scales"}
    several = [[], [2, 2, 2, 5], [1, 4, 6, 7, 7]]
    naive, other = (
        np.array([permute_and_flip_laws(values, [0.25, 0.875], **given, origin=at) for values in several])
        for at in (origin, (origin + 4) % 8)
    )
    np.testing.assert_allclose(laws_of(made, several), naive, rtol=1e-10)
    assert np.abs(naive - other).max() > 1e-3  # negative control


def test_laws_of_pieces_are_those_of_their_points(x64):
    """Up to 300 points, against the polynomial of `report_noisy_max`, which quadrature integrates without error; and never worse
    than the exponential mechanism: whatever counts as good is at least as likely."""
    rng = np.random.default_rng(0)
    lengths = rng.geometric(0.1, 24)
    exactly = jax.jit(lambda scores: report_noisy_max.log_pmf(scores, epsilon=2.0))
    gained = 0.0
    for rate in (0.05, 0.5, 3.0):
        values = -rate * rng.integers(0, 30, 24).astype(float)
        starts = np.cumsum([0, *lengths[:-1]])
        pieces = ordered.from_breakpoints(starts.tolist(), values.tolist(), int(lengths.sum()) - 1, beyond=-math.inf)
        found = np.exp(np.asarray(log_masses(pieces))[: len(lengths)])
        found /= found @ lengths
        each = np.repeat(values, lengths)
        exact = np.exp(np.asarray(exactly(each)))[starts]
        np.testing.assert_allclose(found, exact, rtol=1e-9)
        exponential = np.exp(values - values.max())
        exponential /= exponential @ lengths
        order = np.argsort(-values)
        ahead = np.cumsum((found - exponential)[order] * lengths[order])
        assert ahead.min() > -1e-9
        gained = max(gained, ahead.max())
    assert gained > 1e-3  # and somewhere more likely


@pytest.mark.thorough
def test_by_scales_it_may_err_more(x64):
    """The module's counter-example: the mechanism favours points that weigh more, which need not err less."""
    points = points_of([4] * 5 + [15] * 5, 4)
    place = np.arange(16)
    errors = np.where((place >= 4) & (place <= 15), 0.0, 5.0)
    means = []
    for make in (quantiles.rank_exponential, quantiles.permute_and_flip):
        made = make(bits=4, fractions=[0.5], epsilon=0.02, base="scales")
        law = jax.jit(lambda points, made=made: made.pmfs(made.prepare(points), 16)[0, :-1])
        means.append(float(law(points) @ errors))
    assert means == pytest.approx([1.814, 1.876], abs=5e-4)


@pytest.mark.thorough
@pytest.mark.parametrize("bits", [slow(64), 96])
def test_runs_follow_the_law_on_a_wide_domain(bits):
    """4,000 runs, among numbers that a float holds and others; five standard deviations."""
    made = quantiles.permute_and_flip(bits=bits, fractions=[0.5], epsilon=2.0, base="scales")
    spread = [3, 3, 4, 4, 4, 5, 8, 2 ** (bits // 2), 2 ** (bits - 1)]
    points = made.prepare(points_of(spread, bits, 15))
    answers = jax.jit(jax.vmap(lambda key: made(key, points).hypothesis[0]))(jax.random.split(jax.random.key(0), 4000))
    drawn = np.array(wide.to_ints(answers), dtype=object)
    each = jax.jit(lambda made, rows: made.each(points, made.check_event(rows)))
    exponential = quantiles.rank_exponential(bits=bits, fractions=[0.5], epsilon=2.0, base="scales")
    limbs, apart = wide.limbs_for(bits) + 1, 0.0
    for low, high in ((4, 5), (5, 9), (9, 2**bits)):
        rows = tuple(wide.resize(wide.from_ints([end], bits + 1), limbs) for end in (low, high))
        exact, other = (float(each(mechanism, rows)[0, 0]) for mechanism in (made, exponential))
        deviation = (exact * (1 - exact) / 4000) ** 0.5
        assert 0.005 < exact < 0.995 and abs(np.mean((drawn >= low) & (drawn < high)) - exact) < 5 * deviation
        apart = max(apart, abs(exact - other) / deviation)
    assert apart > 10  # negative control: these are not runs of the exponential mechanism


@pytest.mark.thorough
def test_points_are_drawn_by_the_law_of_pieces():
    """20,000 draws each, where hardly any point has much weight (thinning takes many turns) and where many do (it takes one). Five standard
    deviations for 25 pieces: by chance once in 70,000."""
    lengths, runs = [1, 3, 50, 1000, 10**6], 20_000
    starts, last = np.cumsum([0, *lengths[:-1]]).tolist(), sum(lengths) - 1

    @jax.jit
    def draws(key, pieces):
        draw = jax.vmap(lambda key: permute_and_flip_piecewise.draw(key, pieces, pieces.values).piece)
        return draw(jax.random.split(key, runs))

    apart, keys = 0.0, jax.random.split(jax.random.key(0), 5)
    several = (
        (0, -40, -40, -40, -40),
        (0, -1, -4, -7, -14),
        (-3, 0, -2, -4, -12),
        (-9, -6, -2, 0, -8),
        (-9, 0, 0, 0, 0),
    )
    for key, values in zip(keys, several, strict=True):
        pieces = ordered.from_breakpoints(starts, [float(value) for value in values], last, beyond=-math.inf)
        found = np.bincount(np.asarray(draws(key, pieces)), minlength=5)[:5] / runs
        exact = np.exp(np.asarray(log_masses(pieces), np.float64)[:5]) * lengths
        exact, other = exact / exact.sum(), np.exp(values) * lengths
        deviation = np.sqrt(exact * (1 - exact) / runs) + 1e-9
        assert np.all(np.abs(found - exact) < 5 * deviation + 1 / runs), (values, found, exact)
        apart = max(apart, np.max(np.abs(other / other.sum() - exact) / (5 * deviation + 1 / runs)))
    assert apart > 2  # negative control: they are not draws of the exponential mechanism


@pytest.mark.thorough
def test_draws_end_by_keys_that_stand_still_under_vmap():
    """rbg gives all lanes the words of the first lane's key: a lane whose loop goes on would see the same words for ever."""
    made = quantiles.permute_and_flip(bits=3, fractions=[0.25, 0.5, 0.75], epsilon=1.0)
    points = made.prepare(points_of([1, 2, 2, 3], 3))
    keys = jax.random.split(jax.random.key(1, impl="rbg"), 64)
    drawn = jax.jit(jax.vmap(lambda key: made.draw(key, points)[0]))(keys)
    assert len({tuple(row) for row in np.asarray(drawn)[..., 0].tolist()}) > 10


@pytest.mark.slow
def test_the_error_stated_is_kept_on_hard_data():
    made = quantiles.permute_and_flip(bits=16, fractions=[0.25, 0.75], epsilon=1.0)
    other = quantiles.rank_exponential(bits=16, fractions=[0.25, 0.75], epsilon=1.0)
    assert other.error(beta=0.1) - made.error(beta=0.1) == pytest.approx(math.log(2) / float(made.slope(np)))
    n = made.sample_size(alpha=0.1, beta=0.1)
    for values in ([0] * n, [7] * (n // 2) + [8] * (n - n // 2), list(range(n))):
        assert made.failure_probability(points_of(values, 16, 1023), error=0.1) <= 0.1
    tight = [30_000 + i for i in range(n // 8)]
    assert made.failure_probability(points_of(tight, 16, 1023), error=0.1) > 0.1  # negative control


@pytest.mark.thorough
def test_a_law_has_the_derivative_of_its_differences(x64):
    """The derivative in epsilon, through the root that Newton's method finds."""
    points = points_of([2, 2, 5, 6], 3)

    def probability(epsilon):
        made = quantiles.permute_and_flip(bits=3, fractions=[0.5], epsilon=epsilon)
        return made.pmfs(made.prepare(points), 8)[0, 2]

    program = jax.jit(jax.value_and_grad(probability))
    (here, slope), (there, _) = program(jnp.asarray(1.0)), program(jnp.asarray(1.001))
    assert float(slope) == pytest.approx(float(there - here) / 0.001, rel=1e-2) and float(slope) > 0.01


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"bits": 0}, ValueError, "bits must be"),
        ({"fractions": [0.5, 0.5]}, ValueError, "fractions must increase strictly"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": "1"}, TypeError, "epsilon must be"),
        ({"epsilon": None}, TypeError, "epsilon must be"),
        ({"base": "normal"}, ValueError, "base must be"),
        ({"origin": 257}, ValueError, "origin must be"),
    ],
)
def test_bad_arguments_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        quantiles.permute_and_flip(**({"bits": 8, "fractions": [0.5], "epsilon": 1.0} | given))


def test_a_total_of_rho_is_left_to_others():
    with pytest.raises(ValueError, match="not of rho"):
        dpjax.quantiles(points_of([1], 8), [0.5], rho=0.1, key=jax.random.key(0), algorithm="permute_and_flip")
