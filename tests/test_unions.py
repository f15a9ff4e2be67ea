"""Unions of polygons: triangles from a list, exact and private; from a Gibbs sampler, and its distance from the exact law."""

import itertools
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, set_cover
from dpjax.concepts import polygons as concept
from dpjax.concepts.plane import arrangement, regions, triangles
from dpjax.data.examples import Examples
from dpjax.learners import polygons
from dpjax.learners import set_cover as set_cover_learner
from dpjax.learners.halfplanes.refinement import Line
from dpjax.learners.polygons import GibbsTriangle, SelectTriangle
from dpjax.learners.polygons.gibbs_triangle import ladder
from dpjax.verify import exact
from dpjax.verify.plain.halfplanes import halfplane_measures
from dpjax.verify.plain.set_cover import set_cover_law
from dpjax.verify.plain.triangles import gibbs_laws, triangle_shares

GRID = [(x, y) for x in range(2) for y in range(2)]
L_SHAPE = [[(3, 3), (10, 3), (10, 28), (3, 28)], [(3, 3), (28, 3), (28, 10), (3, 10)]]
TWO_TRIANGLES = [[(2, 2), (22, 3), (4, 20)], [(29, 29), (29, 10), (13, 29)]]


def learner(rate=1.0, noise=0.4, *, k=1, rounds=2, shift=1, accountant="shared_test"):
    """A learner on the grid of side 2."""
    return set_cover_learner.SetCover(
        selection=SelectTriangle(bits=1, measure="axes"),
        rate=np.float64(rate),
        noise_epsilon=np.float64(noise),
        shift=np.float64(shift),
        delta=np.float64(0.01),
        k=k,
        rounds=rounds,
        dual=True,
        accountant=accountant,
    )


def examples(values, sizes):
    """Records 2 (2 x + y) + label, as data."""
    point, label = values // 2, values % 2
    x = np.stack([point // 2, point % 2], axis=-1)[..., None]
    return Examples(x=x.astype(np.uint32), y=label.astype(np.int32), n_valid=sizes)


# ------------------------------------------------------------------------------------------------------------- the list


@pytest.mark.parametrize("measure", ["axes", "box"])
def test_the_list_is_that_of_all_triples_by_fractions(measure):
    table, shares = triangles.table(1, measure), triangle_shares(GRID, 1, measure)
    assert sum(shares.values()) == 1 and len(shares) == len(table.share)
    found = [float(shares[tuple(labels)]) for labels in table.labels.tolist()]
    np.testing.assert_allclose(table.share, found, rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bits, measure", [(1, "box"), pytest.param(2, "axes", marks=pytest.mark.slow), builders.thorough(2, "box")]
)
def test_what_is_released_has_the_labels_that_were_drawn(bits, measure):
    selection = SelectTriangle(bits=bits, measure=measure)
    every = np.arange(selection.hypotheses())
    union = selection.released(jnp.asarray(every, jnp.int32), dual=True)
    table = triangles.table(bits, measure)
    np.testing.assert_array_equal(selection.labels(Line(union.chart, union.slope, union.height)), table.labels)
    some = jnp.asarray(every[:: max(1, len(every) // 5)], jnp.int32)
    np.testing.assert_array_equal(selection.indices(selection.released(some, dual=True)), some)
    np.testing.assert_array_equal(selection.indices(selection.released(some, dual=False)), some)


@pytest.mark.parametrize("accountant, k", [("shared_test", 2), ("composition", 1)])
def test_the_law_is_that_of_the_plain_twin(accountant, k, x64):
    """A union is the negation of an intersection of negations, so that labels and tables are negated."""
    mine = learner(0.8, k=k, accountant=accountant)
    law = jax.jit(mine.pmf)
    table = triangles.table(1, "axes")
    scale = None if accountant == "composition" else mine.rounds / 0.4
    for values in ([1, 1, 1, 1, 1, 4, 6, 7, 7, 7, 3, 3, 5, 2], [0, 0, 2, 3, 5, 5]):
        data = examples(np.array([*values, *[0] * (15 - len(values))]), np.int32(len(values)))
        flipped = [(value // 2, 1 - value % 2) for value in values]
        twin = set_cover_law((~table.labels).tolist(), flipped, k, 2, 0.8, scale, 1, table.share.tolist())
        np.testing.assert_allclose(law(data), [*twin.values(), 0.0], atol=1e-12)


# -------------------------------------------------------------------------------------------------------------- privacy


@pytest.fixture(scope="module")
def datasets():
    """Up to three examples on the grid of side 2, and all neighbours."""
    counts = exact.histograms(8, range(4))
    return examples(*exact.records(counts)), exact.neighbours(counts, ADD_OR_REMOVE_ONE)


@pytest.mark.parametrize("rate, noise, k, rounds", [(1.0, 0.2, 1, 1), (1.0, 0.5, 2, 2)])
def test_the_claim_holds_for_all_neighbours(rate, noise, k, rounds, datasets):
    mine = learner(rate, noise, k=k, rounds=rounds, shift=0)
    table = exact.probabilities(lambda data: mine.log_masses(mine.prepare(data)), datasets[0])
    for epsilon in (noise + rate, noise + 1.3 * rate):
        worst = exact.worst_of_table(table, *datasets, epsilon)
        claimed = set_cover.process_delta(rate, epsilon - noise)
        assert not worst.refutes(Guarantee(epsilon, min(claimed, 1.0), ADD_OR_REMOVE_ONE))


@pytest.mark.parametrize("rounds", [1, 2])
def test_half_the_rate_is_refuted(rounds, datasets):
    """Negative control: rounds at rate 2 that claim the price of rate 1."""
    mine = learner(2.0, np.inf, rounds=rounds, shift=0, accountant="composition")
    table = exact.probabilities(lambda data: mine.log_masses(mine.prepare(data)), datasets[0])
    assert exact.worst_of_table(table, *datasets, 1.0 * rounds).refutes(Guarantee(1.0 * rounds, 0.0, ADD_OR_REMOVE_ONE))
    stated = mine.guarantee()
    assert not exact.worst_of_table(table, *datasets, stated.epsilon).refutes(stated)


# ------------------------------------------------------------------------------------------------------------ the areas


@pytest.mark.thorough
@pytest.mark.parametrize("parts", [TWO_TRIANGLES, L_SHAPE])
def test_areas_of_unions_are_those_of_fine_grids(parts):
    """Coordinates are scaled by 2^7, to a grid of 4,096 points a side, of which every eighth in each direction is counted."""
    other = [[(5, 1), (30, 9), (12, 25)], [(0, 20), (9, 31), (0, 31)]]
    one, two = (
        concept.union(bits=12, parts=[[(Fraction(128 * x), Fraction(128 * y)) for x, y in part] for part in union])
        for union in (parts, other)
    )
    side = np.arange(4096, dtype=np.uint32)[::8]
    x = jnp.stack([each.ravel() for each in np.meshgrid(side, side)], axis=1)[..., None]
    counted = float(jnp.mean(regions.label(one, x) != regions.label(two, x)))
    assert 0.2 < counted < 0.8 and abs(float(concept.area_between(one, two)) - counted) < 0.005
    assert float(concept.area_between(one, one)) == 0.0


# ------------------------------------------------------------------------------------------------------ the Gibbs sampler

SIX = [(0, 0), (0, 1), (1, 0), (3, 3), (2, 1), (1, 2)]
SIX_LABELS = np.array([1, 1, 1, 1, 0, 0])


def six_scores(labels):
    """The scores on ten examples, those with label 1 twice each, where b/k = 4."""
    return np.minimum(2.0 * (labels @ SIX_LABELS) - 4, -1.0 * (labels @ (1 - SIX_LABELS)))


@pytest.mark.slow
def test_draws_have_the_law_of_two_sweeps_and_not_the_exact_one():
    """If a conditional law were wrong, the law after two sweeps would not be that of the reference."""
    selection = GibbsTriangle(bits=2, measure="axes", sweeps=2, chains=1)
    rows = [*SIX, *(p for p, y in zip(SIX, SIX_LABELS, strict=True) if y)]
    data = selection.fit(Examples.create(np.array(rows, np.uint32)[..., None], [*SIX_LABELS.tolist(), 1, 1, 1, 1], 10))
    view, rate = selection.prepare(data), 2.0

    def one(key):
        found = selection.draw(
            key,
            view,
            view.valid & view.y,
            view.valid & ~view.y,
            score=lambda ones, zeros: jnp.minimum(ones.astype(float) - 4, -zeros.astype(float)),
            rate=rate,
            dual=True,
        )
        return found.scores[0, -1], selection.deleted(view, found, dual=True)

    number = 2000
    keys = jax.random.split(jax.random.key(5), number)
    last, inside = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    labels, share = six()
    law, limit = gibbs_laws(labels, share, six_scores, rate * ladder(2))
    words = 1 << np.arange(6)
    triples = (labels[:, None, None] & labels[:, None] & labels) @ words
    expected, wrong = (np.bincount(triples.ravel(), each.ravel(), 64) * number for each in (law, limit))
    inside = np.asarray(inside)[:, :6]
    counts = np.bincount(inside @ words, minlength=64)
    assert p_value(counts, expected) > FALSE_ALARM
    assert p_value(counts, wrong) < FALSE_ALARM  # negative control: two sweeps are too few
    np.testing.assert_allclose(last, six_scores(inside))


def distance(labels, share, scores, rate, sweeps):
    """The total variation distance between one chain and the exact law, for triples of labellings."""
    laws = gibbs_laws(labels, share, scores, rate * ladder(sweeps))
    return 0.5 * float(np.abs(np.subtract(*laws)).sum())


def six():
    """All labellings of the six points by halfplanes, and their shares."""
    areas = halfplane_measures(SIX, 2, "axes")
    share = np.array([float(area) for area in areas.values()])
    return np.array(list(areas)), share / share.sum()


def test_a_chain_comes_near_the_exact_law():
    found = [distance(*six(), six_scores, 2.0, sweeps) for sweeps in (2, 8, 16, 32)]
    assert found[0] > 0.1 > 0.03 > found[1] > found[2] > found[3] and found[2] < 0.01


@pytest.mark.slow
def test_more_sweeps_come_nearer_on_the_whole_grid():
    """The grid has side 4, with 42 examples at 14 points."""
    table = arrangement.table(2, "axes")
    ones, zeros = np.zeros(16), np.zeros(16)
    ones[[0, 1, 4, 10, 11, 14, 15]], zeros[[2, 3, 6, 7, 8, 9, 12]] = 3, 3

    def scores(labels):
        return np.minimum(labels @ ones - 10.5, -(labels @ zeros))

    found = [distance(table.labels, table.share, scores, 1.0, sweeps) for sweeps in (4, 8, 16, 32)]
    assert all(after < before / 2 for before, after in itertools.pairwise(found)) and found[2] < 0.005


def test_chains_that_differ_are_reported():
    rng = np.random.default_rng(0)
    together = rng.normal(size=(3, 4, 200))
    apart = together + 5 * np.arange(4)[:, None]
    assert np.all(np.abs(polygons.shrink_factors(together) - 1) < 0.05) and np.all(polygons.shrink_factors(apart) > 3)


# ------------------------------------------------------------------------------------------------------------- learning


@pytest.mark.slow  # `test_set_cover` checks it for another class
def test_unions_are_learned_at_the_stated_size():
    """Failure 0.1 is promised: then 9 or more of 20 trials fail with probability below 1e-4; here none did."""
    mine = polygons.union(bits=2, sides=6, polygons=2, epsilon=4.0, delta=1e-6, alpha=0.2)
    assert mine.guarantee().covers(4.0, 1e-6)
    law = concept.uniform(
        bits=2, target=concept.union(bits=2, parts=[[(0, 0), (1, 0), (0, 3)], [(3, 0), (3, 3), (2, 3)]])
    )
    n = mine.sample_size(alpha=0.2, beta=0.1)
    rows = 1 << (n - 1).bit_length()

    def failures(n, key):
        def error(key):
            key_data, key_run = jax.random.split(key)
            return law.error(mine(key_run, law.sample(key_data, rows, n)).hypothesis)

        return jnp.sum(jax.lax.map(error, jax.random.split(key, 20)) > 0.2)

    many = jax.jit(failures)
    assert many(jnp.int32(n), jax.random.key(3)) < 9 <= many(jnp.int32(16), jax.random.key(4))  # control: 16 examples


def errors(bits, sweeps, trials):
    """The errors on two triangles and on an L, each learned `trials` times from 8,191 examples; and the smallest share of ones."""
    n, least = 2**13 - 1, 1.0
    mine = polygons.union(bits=bits, sides=6, polygons=2, epsilon=4.0, delta=1e-6, alpha=0.2, sweeps=sweeps, chains=2)
    run = jax.jit(lambda key, data: (lambda outcome: (outcome.hypothesis, outcome.info["scores"]))(mine(key, data)))
    found = []
    for parts in (TWO_TRIANGLES, L_SHAPE):
        parts = [[(Fraction(x * 2**bits, 32), Fraction(y * 2**bits, 32)) for x, y in part] for part in parts]
        law = concept.uniform(bits=bits, target=concept.union(bits=bits, parts=parts))
        for seed in range(trials):
            data = law.sample(jax.random.key(100 + seed), n, n)
            hypothesis, scores = run(jax.random.key(seed), data)
            assert scores.shape == (mine.rounds, 2, sweeps) and mine.guarantee() == Guarantee.none(ADD_OR_REMOVE_ONE)
            found.append(float(law.error(hypothesis)))
            least = min(least, float(np.mean(data.y[:n])))
    return found, least


@pytest.mark.slow
def test_unions_are_learned():
    found, least = errors(bits=4, sweeps=6, trials=2)
    assert least > 0.3 and max(found) < 0.15 and np.mean(found) < 0.1


@pytest.mark.slow
def test_unions_are_learned_on_a_larger_grid():
    found, least = errors(bits=5, sweeps=8, trials=2)
    assert least > 0.3 and max(found) < 0.15 and np.mean(found) < 0.1


def test_laws_of_the_sampler_are_refused():
    mine = polygons.union(bits=3, sides=3, epsilon=1.0, delta=1e-6, alpha=0.2)
    data = Examples.create(np.zeros((3, 2, 1), np.uint32), [1, 0, 1], 3)
    with pytest.raises(ValueError, match="no list"):
        mine.pmf(data)
    with pytest.raises(ValueError, match="draws approximately"):
        mine.sample_size(alpha=0.2, beta=0.1)
    with pytest.raises(ValueError, match="bits must be at most 2"):
        SelectTriangle(bits=3, measure="axes").hypotheses()


def test_a_sampler_that_is_not_exact_promises_nothing():
    """No privacy, whatever it was planned for; the list of a tiny grid keeps its budget."""
    given = {"sides": 4, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.2}
    sampled, listed = (polygons.union(bits=bits, **given) for bits in (8, 1))
    assert sampled.guarantee() == Guarantee.none(ADD_OR_REMOVE_ONE) and listed.guarantee().covers(1.0, 1e-6)


def test_bad_input_is_refused_by_name():
    good = {"bits": 6, "sides": 6, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.2}
    for name, wrong in (
        ("bits", 0),
        ("bits", 65),
        ("sides", 2),
        ("polygons", 0),
        ("polygons", 1.5),
        ("measure", "circle"),
        ("sweeps", 0),
        ("chains", True),
        ("epsilon", -1.0),
        ("delta", 0.0),
        ("alpha", 1.5),
        ("beta", 0.0),
        ("accountant", "both"),
        ("calibration", "best"),
    ):
        with pytest.raises((TypeError, ValueError), match=name):
            polygons.union(**{**good, name: wrong})
    with pytest.raises(ValueError, match="sides"):
        polygons.union(**{**good, "polygons": 3})
    assert [polygons.union(**{**good, **more}).k for more in ({}, {"polygons": 2}, {"calibration": "printed"})] == [
        4,
        2,
        6,
    ]
    mine = polygons.union(**good)
    with pytest.raises(ValueError, match="dual must"):
        mine.selection.draw(jax.random.key(0), None, None, None, score=None, rate=1.0, dual=False)
    with pytest.raises(ValueError, match="scores must"):
        polygons.shrink_factors(np.zeros((3, 1, 8)))
    for data in (None, Examples.create(np.zeros((3, 2, 2), np.uint32), [1, 0, 1], 3)):
        with pytest.raises((TypeError, ValueError), match="examples"):
            mine(jax.random.key(0), data)
