"""The baselines of SetCoverLearner over literals: the greedy set cover, and the exponential mechanism over all conjunctions."""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import assignments_of

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.concepts import conjunctions as concept
from dpjax.concepts.conjunctions import Literals
from dpjax.data.assignments import Assignments
from dpjax.learners import conjunctions
from dpjax.learners.conjunctions.exponential import concepts
from dpjax.verify import exact
from dpjax.verify.plain.exponential import conjunction_law
from dpjax.verify.plain.set_cover import greedy_cover

# ------------------------------------------------------------------------------------------------------ the greedy choice


@pytest.mark.parametrize("disjunction", [False, True])
def test_the_greedy_choice_is_that_of_the_plain_twin(disjunction):
    """40 examples of four variables, labelled by three literals, one label sometimes flipped; the dual with literals and labels negated."""
    learner = conjunctions.greedy(bits=4, k=2, alpha=0.5, disjunction=disjunction)
    table = [
        [bool(x >> v & 1) ^ bool(negated) ^ disjunction for x in range(16)] for v in range(4) for negated in (0, 1)
    ]
    rng, run = np.random.default_rng(0), jax.jit(lambda data: learner(jax.random.key(0), data).hypothesis.literals)
    met = set()
    for _ in range(40):
        x, target = rng.integers(0, 16, 40), rng.choice(8, 3, replace=False)
        labels = np.all(np.array(table)[target][:, x], axis=0) ^ disjunction
        labels[0] ^= rng.random() < 0.3
        data = Assignments.create(x[:, None] >> np.arange(4) & 1, labels)
        expected = greedy_cover(table, list(zip(x, labels ^ disjunction, strict=True)), learner.rounds)
        assert tuple(run(data)) == expected
        met.add(expected)
    assert len(met) > 10


@pytest.mark.thorough
def test_the_greedy_choice_needs_fewer_examples_than_a_private_one():
    """Its sample size, below a fifth of the private one, suffices (0.1 is promised, none of 20 trials fails); it promises no privacy."""
    greedy = conjunctions.greedy(bits=60, k=2, alpha=0.2)
    assert greedy.guarantee().is_none and greedy.guarantee().relation == ADD_OR_REMOVE_ONE
    n, private = greedy.sample_size(alpha=0.2, beta=0.1), conjunctions.conjunction
    assert n * 5 < private(bits=60, k=2, epsilon=2.0, delta=1e-6, alpha=0.2).sample_size(alpha=0.2, beta=0.1)
    law = concept.product(bits=60, target=[102, 119], p=0.625)

    @jax.jit
    def errors(keys, n):
        return jax.lax.map(lambda key: law.error(greedy(key, law.sample(key, 2048, n)).hypothesis), keys)

    assert int(jnp.sum(errors(jax.random.split(jax.random.key(0), 20), n) > 0.2)) == 0
    assert int(jnp.sum(errors(jax.random.split(jax.random.key(1), 20), 5) > 0.2)) >= 9  # negative control: 5 examples


# -------------------------------------------------------------------------------- the exponential mechanism over them all


def test_every_conjunction_is_listed_once():
    points = np.array(list(itertools.product((0, 1), repeat=3)))
    for k in (1, 2, 3, 4):
        for disjunction in (False, True):
            learner = conjunctions.exponential(bits=3, k=k, epsilon=1.0, disjunction=disjunction)
            join = np.any if disjunction else np.all
            every = np.asarray(learner._every())
            values = [join(points[:, one // 2] == 1 - one % 2, axis=1) for one in every]
            sets = itertools.chain.from_iterable(itertools.combinations(range(6), size) for size in range(1, k + 1))
            wanted = {tuple(join([points[:, i // 2] == 1 - i % 2 for i in chosen], axis=0)) for chosen in sets}
            assert len(values) == learner.listed() == concepts(3, k) == len(wanted)
            assert {tuple(value) for value in values} == wanted


@pytest.fixture(scope="module")
def table():
    """Laws at epsilon = 1 of all datasets of up to four records over two variables, k = 2."""
    counts = exact.histograms(8, range(5))
    datasets = assignments_of(*exact.records(counts, 4))
    mine = conjunctions.exponential(bits=2, k=2, epsilon=1.0)
    return counts, datasets, exact.probabilities(lambda data: jnp.log(mine.pmf(data)[:-1]), datasets), mine.guarantee()


def test_the_guarantee_holds_for_all_neighbours_and_no_less(table):
    counts, datasets, law, stated = table
    pairs = exact.neighbours(counts, ADD_OR_REMOVE_ONE)
    assert stated == Guarantee(1.0, 0.0, ADD_OR_REMOVE_ONE)
    assert not exact.worst_of_table(law, datasets, pairs, stated.epsilon).refutes(stated)
    less = exact.worst_of_table(law, datasets, pairs, 0.8)  # negative control: weights of epsilon = 1 that claim 0.8
    assert less.refutes(Guarantee(0.8, 0.0, ADD_OR_REMOVE_ONE))


def test_under_replacement_it_is_twice_as_much(table):
    counts, datasets, law, _ = table
    same = np.flatnonzero(counts.sum(axis=1) == 4)
    pairs = exact.neighbours(counts[same], REPLACE_ONE)
    part = jax.tree.map(lambda rows: rows[same], datasets)
    assert exact.worst_of_table(law[same], part, pairs, 1.0).refutes(Guarantee(1.0, 0.0, REPLACE_ONE))
    assert not exact.worst_of_table(law[same], part, pairs, 2.0).refutes(Guarantee(2.0, 0.0, REPLACE_ONE))


@pytest.mark.thorough
def test_laws_of_disjunctions_of_literals_in_any_order_and_of_population_errors(x64):
    rng = np.random.default_rng(2)
    matrix, labels = rng.integers(0, 2, (20, 3)), rng.integers(0, 2, 20)
    learner = conjunctions.exponential(bits=3, k=2, epsilon=0.7, disjunction=True)
    data = Assignments.create(matrix, labels)
    twin = conjunction_law(list(zip(matrix.tolist(), labels, strict=True)), 2, 0.7, disjunction=True)
    pmf = np.asarray(learner.pmf(data))
    np.testing.assert_allclose(pmf, [*twin, 0.0], atol=1e-12)
    at = [tuple(one) for one in np.asarray(learner._every())].index((1, 4))
    for literals, disjunction, expected in (
        ([1, 4], True, math.log(pmf[at])),
        ([4, 1, 4], True, math.log(pmf[at])),
        ([1, 4], False, -math.inf),
        ([1, 3, 4], True, -math.inf),
    ):
        output = Literals(literals=jnp.array(literals, jnp.int32), disjunction=disjunction)
        np.testing.assert_allclose(learner.log_prob(data, output), expected, rtol=1e-6)
    law = concept.product(bits=3, target=[1, 4], p=[0.25, 0.5, 0.75], disjunction=True)
    errors = np.array([law.error(learner.output(jnp.int32(i))) for i in range(learner.listed())])
    assert len(set(np.round(errors, 6))) > 5
    np.testing.assert_allclose(learner.probability(data, law.within(0.2))[0], pmf[:-1][errors <= 0.2].sum(), atol=1e-9)


def test_the_stated_size_suffices_by_the_law():
    learner = conjunctions.exponential(bits=12, k=2, epsilon=1.0)
    law = concept.product(bits=12, target=[3, 20], p=0.5)
    n = learner.sample_size(alpha=0.2, beta=0.1)

    @jax.jit
    def failure(keys, n):
        fails = jax.lax.map(lambda key: learner.probability(law.sample(key, 64, n), law.within(0.2))[1], keys)
        return jnp.mean(fails)

    keys = jax.random.split(jax.random.key(0), 64)
    assert n <= 64 and failure(keys, n) <= 0.1 < failure(keys, 6)  # negative control: 6 examples


# ---------------------------------------------------------------------------------------------------------- bad input


def test_bad_input_is_refused_by_name():
    for make, good in (
        (conjunctions.greedy, {"bits": 9, "k": 2, "alpha": 0.2}),
        (conjunctions.exponential, {"bits": 9, "k": 2, "epsilon": 1.0}),
    ):
        for name, wrong in (("bits", 0), ("k", 0), ("k", 1.5), ("disjunction", 2), ("alpha", 1.0), ("epsilon", -1.0)):
            if name in good or name == "disjunction":
                with pytest.raises((TypeError, ValueError), match=name):
                    make(**{**good, name: wrong})
        mine = make(**good)
        for data in (None, [1, 2], Assignments.create(np.ones((2, 3), int), [0, 1])):
            with pytest.raises((TypeError, ValueError), match="data must"):
                mine(jax.random.key(0), data)
        for name in ("alpha", "beta"):
            with pytest.raises((TypeError, ValueError), match=name):
                mine.sample_size(**{"alpha": 0.2, "beta": 0.1, name: 0.0})
    with pytest.raises(ValueError, match="at most 65536 conjunctions, got 341505 of k = 3 of 64"):
        conjunctions.exponential(bits=64, k=3, epsilon=1.0)
    with pytest.raises(ValueError, match="alpha must be above"):
        conjunctions.greedy(bits=9, k=2, alpha=0.2).sample_size(alpha=0.05, beta=0.1)
    data = Assignments.create(np.ones((2, 9), int), [0, 1])
    for event in (None, (0, 3), np.ones(5, bool)):
        with pytest.raises(TypeError, match="event must have one flag"):
            conjunctions.exponential(bits=9, k=2, epsilon=1.0).probability(data, event)


def test_a_target_is_a_list_and_probabilities_are_as_many_as_variables():
    with pytest.raises(TypeError, match="target must be a list"):
        concept.product(bits=10, target=5)
    with pytest.raises(ValueError, match="p must be one number, or one for each of the 10 variables"):
        concept.product(bits=10, target=[0], p=[0.5] * 3)


def test_no_variable_is_sure_however_near_to_it_its_probability():
    law = concept.product(bits=3, target=[0], p=[1e-12, 1 - 1e-12, 0.5])
    assert law.odds.tolist() == [1, 2**32 - 1, 2**31]


def test_literals_of_no_variable_are_refused():
    data = Assignments.create(np.ones((2, 3), int), [0, 1])
    law = concept.product(bits=3, target=[0])
    for literal in (6, -1):
        wrong = concept.Literals(literals=jnp.array([0, literal], jnp.int32))
        for call in (lambda w=wrong: w.predict(data), lambda w=wrong: law.error(w)):
            with pytest.raises(ValueError, match=f"literals must be from 0 to 5, got {literal}"):
                call()


@pytest.mark.thorough
def test_small_errors_keep_their_digits():
    """With probabilities near 0 and 1, with many literals, and with literals that contradict each other."""

    def error(p, target, hypothesis):
        law = concept.product(bits=np.size(p) if np.ndim(p) else 1000, target=target, p=p)
        return float(law.error(Literals(literals=jnp.array(hypothesis, jnp.int32))))

    assert error([1 - 2**-30] * 2, [0, 2], [0]) == pytest.approx((1 - 2**-30) * 2**-30, rel=1e-6)
    assert error([0.3, 2**-30], [0, 3], [0]) == pytest.approx(0.3 * 2**-30, rel=1e-6)
    ones = list(range(0, 1000, 2))
    assert error(0.999, ones, [*ones, 1000]) == pytest.approx(0.999**500 * 0.001, rel=1e-5)
    assert error([0.5, 0.25], [0, 2], [0, 3]) == 0.5 and error([0.5, 0.25], [0, 1], [2]) == 0.25


def test_no_examples_may_be_given_as_an_empty_list():
    assert int(Assignments.create(np.zeros((0, 5), int), []).n_valid) == 0
    with pytest.raises(TypeError, match="y must hold booleans"):
        Assignments.create(np.zeros((1, 5), int), [0.5])


def test_literals_of_no_variable_have_no_label():
    data = Assignments.create([[1, 0]], [1])
    with pytest.raises(ValueError, match="literals must be from 0 to 3, got 7"):
        concept.label(jnp.array([7], jnp.int32), data.x, disjunction=False)


def test_no_more_examples_count_than_there_are():
    data = Assignments.create(np.ones((3, 2), int), [1, 0, 1])
    counted = jax.jit(lambda n: dataclasses.replace(data, n_valid=n).counted())
    assert [bool(counted(jnp.int32(n))) for n in (-1, 0, 32, 33)] == [False, True, True, False]


def test_assignments_put_together_by_hand_are_checked():
    learner = conjunctions.exponential(bits=2, k=1, epsilon=1.0)
    good = {"x": jnp.zeros((1, 2), jnp.uint32), "y": jnp.zeros(1, jnp.uint32), "n_valid": jnp.int32(5)}
    for changes, words in (
        ({"x": jnp.zeros((1, 2), jnp.int32)}, "data.x must be a uint32 array"),
        ({"x": jnp.zeros(2, jnp.uint32)}, "data.x must have 2 axes"),
        ({"y": jnp.zeros(3, jnp.uint32)}, "data.y must have as many words"),
        ({"n_valid": 1.5}, "data.n_valid must be an int"),
        ({"n_valid": 50}, "data.n_valid must be from 0 to 32, got 50"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            learner(jax.random.key(0), Assignments(**{**good, **changes}))
