"""Selection with a learned noise: its law, its privacy over all neighbours, how near it is to the optimum, and RecConcave with it."""

import dataclasses
import itertools
import math
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Sample
from dpjax.bounds import selection
from dpjax.domains import wide
from dpjax.learners import thresholds
from dpjax.mechanisms import report_noisy_max
from dpjax.optimizers.quasi_concave import Split
from dpjax.relaxations import budgets, learned_selection
from dpjax.verify import exact

HIGHEST = 4  # of the scores 0, ..., 4 of three candidates
REACH = 6


def permute_and_flip(epsilon, reach=REACH):
    return learned_selection.mechanism(np.arange(1, reach + 1) * epsilon / 2 * (1 - 1e-6), epsilon=epsilon)


def steps_of_two(epsilon, reach=REACH):
    return learned_selection.mechanism(np.ceil(np.arange(1, reach + 1) / 2) * epsilon * (1 - 1e-6), epsilon=epsilon)


def vectors(highest, k=3):
    return np.array(list(itertools.product(range(highest + 1), repeat=k)), np.int32)


def multisets(highest, k=3):
    return np.array(list(itertools.combinations_with_replacement(range(highest + 1), k)), np.int32)


def regrets(scores):
    """How far each candidate falls short of the best, divided by the largest possible shortfall."""
    return (scores.max(axis=1, keepdims=True) - scores) / HIGHEST


@pytest.fixture(scope="module")
def learned():
    """Noise learned for the mean regret over all multisets of three scores from 0, ..., 4, at epsilon = 1."""
    scores = multisets(HIGHEST)
    return learned_selection.learn(scores, regrets(scores), epsilon=1.0, reach=REACH, steps=100)


def plain_law(chooser, scores, last=400):
    """P of every candidate, summed over all values of the noises, with ties shared; for two or three candidates."""
    f = np.concatenate([[0.0], chooser.fall])
    while len(f) <= last + 1:
        f = np.append(f, f[-chooser.shift] + chooser.rate)
    atoms = -np.diff(np.exp(-f[: last + 1]))
    atoms[-1] += 1.0 - atoms.sum()
    noisy = [np.arange(last).reshape([-1 if i == j else 1 for j in range(len(scores))]) for i in range(len(scores))]
    totals = np.stack(np.broadcast_arrays(*[z + q for z, q in zip(noisy, scores, strict=True)]))
    joint = np.ones(())
    for i in range(len(scores)):
        joint = joint * atoms.reshape([-1 if i == j else 1 for j in range(len(scores))])
    wins = totals == totals.max(axis=0)
    return (joint * wins / wins.sum(axis=0)).reshape(len(scores), -1).sum(axis=1)


@pytest.mark.parametrize("scores", [builders.thorough([0, 3]), builders.thorough([2, -1, 1])])
def test_the_law_is_that_of_the_noisiest_score(learned, scores):
    np.testing.assert_allclose(learned.pmf(scores)[:-1], plain_law(learned, scores, 90), rtol=1e-4)


def test_levels_that_are_not_looked_at_hold_nothing(x64):
    """Of two candidates the one that is two behind wins with probability e^-f(2) / 2, if f rises by the same amount in any two steps."""
    rate = 1 - 2.0**-20
    chooser = learned_selection.mechanism([rate, rate], epsilon=1.0)
    assert float(chooser.pmf(np.array([0, 2], np.int32))[0]) == pytest.approx(math.exp(-rate) / 2, rel=1e-12)


def test_scores_of_64_bits_have_the_same_law(x64):
    laws = [steps_of_two(1.0).pmf(jnp.array([0, 2], kind)) for kind in (jnp.int32, jnp.int64)]
    np.testing.assert_array_equal(*laws)


@pytest.mark.parametrize("wrong", [math.inf, math.nan])
def test_noise_without_numbers_is_not_sound(wrong):
    chooser = steps_of_two(1.0)
    fall = chooser.fall.copy()
    fall[-1] = wrong
    assert chooser.sound() and not dataclasses.replace(chooser, fall=fall).sound()


def test_permute_and_flip_is_one_of_them():
    """The same law as `mechanisms.report_noisy_max`, at five scores."""
    scores, epsilon = np.array([3, -2, 0, 7, 6], np.int32), 0.7
    want = report_noisy_max.mechanism(epsilon=epsilon).pmf(scores)
    np.testing.assert_allclose(permute_and_flip(epsilon).pmf(scores), want, rtol=1e-4)


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 1 / 3, 3.7])
@pytest.mark.parametrize("shift", [1, 2])
def test_what_is_too_steep_by_roundings_only_is_taken(epsilon, shift):
    """Permute-and-flip itself was once refused; what is accepted is private in exact arithmetic."""
    for each in (np.arange(1, 65) * epsilon / shift, np.ceil(np.arange(1, 65) / shift) * epsilon):
        made = learned_selection.mechanism(each, epsilon=epsilon, shift=shift)
        first = [*[Fraction(0)] * shift, *map(Fraction, np.asarray(made.fall).tolist())]
        exact = max(late - early for early, late in zip(first, first[shift:], strict=False))
        assert exact <= made.guarantee().epsilon <= epsilon
        np.testing.assert_allclose(made.fall, each, rtol=1e-12)
    with pytest.raises(ValueError, match="fall must be"):
        learned_selection.mechanism(np.arange(1, 65) * epsilon / shift * (1 + 1e-13), epsilon=epsilon, shift=shift)


def neighbouring(scores):
    """Ordered pairs of different rows whose entries differ by at most 1 each."""
    near = np.abs(scores[:, None] - scores[None]).max(axis=2) <= 1
    return np.argwhere(near & ~np.eye(len(scores), dtype=bool)).astype(np.int32)


def test_private_over_all_neighbours_and_no_steeper(learned):
    """Exactly, on all scores 0, ..., 4 of three candidates; 1.2 times the slope is refuted, and its own guarantee says so."""
    scores = vectors(HIGHEST)
    pairs = neighbouring(scores)
    steep = dataclasses.replace(learned, fall=1.2 * learned.fall, rate=1.2 * learned.rate)
    two = {"scores": np.tile(scores, (2, 1))}  # one program for both
    for name in ("fall", "rate"):
        two[name] = np.repeat([getattr(learned, name), getattr(steep, name)], len(scores), axis=0)

    def law(given):
        one = dataclasses.replace(learned, fall=given["fall"], rate=given["rate"])
        return one.log_law(one.fit(given["scores"]))

    tables = np.split(exact.probabilities(law, two), 2)
    found = [exact.worst_of_table(table, scores, pairs, 1.0).delta for table in tables]
    assert learned.guarantee().covers(1.0, 0.0) and not steep.guarantee().covers(1.0, 0.0)
    assert found[0] <= 1e-6 and found[1] > 1e-3
    with pytest.raises(ValueError, match="fall must be"):
        learned_selection.mechanism(steep.fall, epsilon=1.0)


def test_the_claim_is_tight(x64):
    """The probability of the loser of two that are l apart falls by a factor of e^epsilon when l grows by the shift, two or one."""
    for shift, chooser in ((2, steps_of_two(1.0)), (1, learned_selection.mechanism([1 - 1e-6], epsilon=1.0, shift=1))):
        losing = [float(chooser.pmf(np.array([0, lag], np.int32))[0]) for lag in range(1, 8)]
        ratios = np.log(losing[:-shift]) - np.log(losing[shift:])
        assert ratios == pytest.approx(1.0, abs=1e-5)


@jax.jit(static_argnums=2)
def falls_and_slope(point, epsilon, shift):
    """The fall at a point, a little less steep than allowed, and the gradient of its last level."""
    fall = learned_selection.falls(point, epsilon=epsilon * (1 - 1e-7), shift=shift)
    return fall, jax.grad(lambda point: learned_selection.falls(point, epsilon=epsilon, shift=shift)[-1])(point)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 20.0])
def test_every_point_is_private_and_has_a_gradient(x64, epsilon, shift):
    fall, slope = map(np.asarray, falls_and_slope(np.random.default_rng(0).normal(size=12, scale=5.0), epsilon, shift))
    assert learned_selection.mechanism(fall, epsilon=epsilon, shift=shift).guarantee().covers(epsilon, 0.0)
    assert np.all(np.isfinite(slope)) and np.any(slope != 0)


# -------------------------------------------------------------------------------------------------------- how good it is


def mean_cost(chooser, scores, costs):
    laws = jax.vmap(lambda row: chooser.log_law(chooser.fit(row)))(jnp.asarray(scores))
    return float(np.mean(np.sum(np.exp(np.asarray(laws))[:, :-1] * costs, axis=1)))


@pytest.mark.thorough
def test_nearly_the_best_selection_there_is(learned):
    """Over all multisets of three scores 0, ..., 4: within 3 % of the optimum, which permute-and-flip misses by more than 6 %."""
    scores = multisets(HIGHEST)
    costs = regrets(scores)
    best, found = selection.least_cost(scores, costs, epsilon=1.0), mean_cost(learned, scores, costs)
    assert best * (1 - 1e-6) <= found <= 1.03 * best
    assert mean_cost(permute_and_flip(1.0), scores, costs) > 1.06 * best
    assert found <= mean_cost(steps_of_two(1.0), scores, costs) * (1 + 5e-3)
    assert selection.least_cost(scores, costs, epsilon=1.0, room=4) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_of_two_candidates_none_is_better(lag):
    """p_0 = 1/2, p_1 = 1/(1 + e^epsilon), p_l = e^-epsilon p_(l-2): the least probability with which a private loser can win."""
    epsilon = 1.3
    least = [0.5, 1 / (1 + math.exp(epsilon)), 0.5 * math.exp(-epsilon), math.exp(-epsilon) / (1 + math.exp(epsilon))]
    assert float(steps_of_two(epsilon).pmf([0, lag])[0]) == pytest.approx(least[lag], rel=1e-4)


# ----------------------------------------------------------------------------------------------------------- RecConcave


BITS = 6
LEARNER = thresholds.rec_concave(bits=BITS, epsilon=4.0, delta=0.2, alpha=0.9, depth=2, split=Split.equal(4.0, 0.2, 2))
SAMPLE = Sample(x=wide.from_ints(range(10, 50), BITS), y=[1] * 20 + [0] * 20)


def swapped(chooser):
    return dataclasses.replace(LEARNER, split=dataclasses.replace(LEARNER.split, last=chooser))


@pytest.mark.slow
def test_rec_concave_with_a_swapped_choice():
    """The failure is the sum over lengths of P[length] P[failure | length], and the budget is kept."""
    chooser = steps_of_two(1.0)
    learner = swapped(chooser)
    given = jax.jit(lambda sample: learned_selection.lengths(LEARNER, sample, error=0.1))(SAMPLE)
    assert given.where.sum() == BITS + 1  # 2^0, ..., 2^BITS
    law = np.exp(np.asarray(chooser.log_pmf(given.scores, given.where)))
    failure = float(learner.failure_probability(SAMPLE, error=0.1))
    assert failure == pytest.approx(float(law @ np.asarray(given.failures)), rel=1e-4)
    assert learner.guarantee().covers(4.0, 0.2)
    steep = dataclasses.replace(chooser, fall=1.2 * chooser.fall)
    assert swapped(steep).guarantee().epsilon == pytest.approx(4.2)


@pytest.mark.slow
def test_runs_with_a_swapped_choice_follow_the_law():
    """False-alarm rate 2e-5; control: the law of a choice with a tenth of the epsilon."""
    learner = swapped(steps_of_two(1.0))
    want, weaker = (float(swapped(steps_of_two(each)).failure_probability(SAMPLE, error=0.1)) for each in (1.0, 0.1))
    runs = 20_000
    outcomes = jax.jit(jax.vmap(lambda key: learner(key, SAMPLE)))(jax.random.split(jax.random.key(0), runs))
    wrong = wide.to_ints(outcomes.hypothesis)
    missed = [ok != 0 or abs(z - 30) > 4 for ok, z in zip(np.asarray(outcomes.status), wrong, strict=True)]
    spread = 4.3 * math.sqrt(want * (1 - want) / runs)
    assert abs(np.mean(missed) - want) < spread < abs(np.mean(missed) - weaker)


def test_refusals():
    good = {"epsilon": 1.0}
    for scores, costs, wrong, name in (
        ([0, 1], [0, 1], {}, "scores"),
        ([[0.5, 1.0]], [[0, 1]], {}, "scores"),
        ([[0, 1]], [[0, 2]], {}, "costs"),
        ([[0, 1]], [[0, 1]], {"where": [[False, False]]}, "where"),
        ([[0, 1]], [[0, 1]], {"epsilon": 21.0}, "epsilon"),
        ([[0, 1]], [[0, 1]], {"shift": 3}, "shift"),
        ([[0, 1]], [[0, 1]], {"reach": 1}, "reach"),
    ):
        with pytest.raises(ValueError, match=name):
            learned_selection.learn(scores, costs, **{**good, **wrong})
    for fall in ([0.5], [[0.5, 1.0]], [-0.1, 0.2], [0.5, 0.4], [0.5, math.nan]):
        with pytest.raises(ValueError, match="fall"):
            learned_selection.mechanism(fall, epsilon=1.0)
    for scores, costs, wrong, name in (
        ([[0, 1]], [[0, 1]], {}, "scores"),
        ([[0, 1, 2]], [[0, 1]], {}, "costs"),
        ([[0, 1, 2]], [[0, 1, -1]], {}, "costs"),
        ([[0, 1, 2]], [[0, 1, 1]], {"epsilon": 0.0}, "epsilon"),
    ):
        with pytest.raises(ValueError, match=name):
            selection.least_cost(scores, costs, **{**good, **wrong})
    with pytest.raises(TypeError, match="scores must be integers"):
        steps_of_two(1.0).pmf(np.array([0.5, 1.0], np.float32))
    given = {"bits": BITS, "epsilon": 4.0, "delta": 0.2, "alpha": 0.9}
    equal = Split.equal(4.0, 0.2, 2)
    with pytest.raises(ValueError, match="split must keep"):
        thresholds.rec_concave(**given, depth=2, split=dataclasses.replace(equal, last=steps_of_two(1.1)))
    with pytest.raises(TypeError, match=r"split\.last"):
        thresholds.rec_concave(**given, depth=2, split=dataclasses.replace(equal, last=1.0))
    with pytest.raises(ValueError, match=r"split\.last"):
        single = dataclasses.replace(Split.equal(4.0, 0.2, 1), last=steps_of_two(1.0))
        thresholds.rec_concave(**given, depth=1, split=single)
    with pytest.raises(ValueError, match=r"split\.last"):
        swapped(steps_of_two(1.0)).sample_size(alpha=0.9, beta=0.1)
    with pytest.raises(ValueError, match=r"split\.last"):
        budgets.of(swapped(steps_of_two(1.0)))
    for bits, depth in ((BITS, 1), (64, 3)):
        learner = thresholds.rec_concave(**{**given, "bits": bits}, depth=depth)
        with pytest.raises(ValueError, match="two levels"):
            learned_selection.lengths(learner, SAMPLE, error=0.1)


def test_scores_beyond_int32_are_refused():
    for score in (2**40, -(2**31)):
        with pytest.raises(ValueError, match="scores must be from -1073741824 to 1073741823"):
            learned_selection.learn([[0, score]], [[1, 0]], epsilon=1.0, reach=4, steps=2)


@pytest.mark.thorough
def test_steps_of_two_have_derivatives(x64: None) -> None:
    """Where f is flat a level has no mass, but would have some if f rose there: the derivative accounts for it."""
    chooser = learned_selection.mechanism([0.99, 0.99], epsilon=1.0)

    def law(fall: jax.Array) -> jax.Array:
        return dataclasses.replace(chooser, fall=fall).pmf(jnp.array([0, 1]))

    @jax.jit
    def slopes(at: jax.Array, up: jax.Array) -> tuple[jax.Array, ...]:
        return law(at), law(up), jax.jacrev(law)(at), jax.hessian(lambda fall: law(fall)[0])(at)

    here, above, slope, curvature = map(np.asarray, slopes(np.array([0.99, 0.99]), np.array([0.99, 0.99 + 1e-7])))
    np.testing.assert_allclose(slope[:, 1], (above - here) / 1e-7, rtol=1e-4, atol=1e-6)
    assert np.isfinite(curvature).all()


@pytest.mark.thorough
@pytest.mark.parametrize("fall", [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
def test_noise_that_starts_flat_has_derivatives(fall: list[float], x64: None) -> None:
    """There the others' chance of staying behind is 0, and rises with f: no derivative may be lost with its logarithm."""
    mask, step = jnp.ones(3, bool), 1e-7

    @jax.jit
    def law(fall: jax.Array, scores: jax.Array) -> jax.Array:
        return jnp.exp(learned_selection.NoisyMax(fall=fall, rate=1.0, shift=2, levels=60).log_pmf(scores, mask))

    forward, reverse = jax.jit(jax.jacfwd(law)), jax.jit(jax.jacrev(law))
    for scores in ([0, 1, 3], [2, 2, 2]):
        at, given = jnp.array(fall), jnp.array(scores, jnp.int32)
        rise = np.stack([(law(at + step * each, given) - law(at, given)) / step for each in jnp.eye(3)], axis=1)
        np.testing.assert_allclose(forward(at, given), rise, atol=1e-5)
        np.testing.assert_allclose(reverse(at, given), rise, atol=1e-5)


@pytest.mark.parametrize("epsilon", [1.0, 0.3, 4.0])
def test_steps_of_two_may_end_in_the_middle_of_a_step(epsilon: float) -> None:
    fall = [epsilon * math.ceil(z / 2) for z in (1, 2, 3)]
    assert learned_selection.mechanism(fall, epsilon=epsilon).guarantee().covers(epsilon, 0.0)
    with pytest.raises(ValueError, match=r"private noise, got epsilon = "):
        learned_selection.mechanism([0.0, 1.5 * epsilon], epsilon=epsilon)  # too steep, though it rises


def test_an_error_that_is_none_is_refused() -> None:
    learner = thresholds.rec_concave(bits=BITS, epsilon=4.0, delta=0.2, alpha=0.9, depth=2)
    for error in (math.nan, -0.1):
        with pytest.raises(ValueError, match="error"):
            learned_selection.lengths(learner, SAMPLE, error=error)
