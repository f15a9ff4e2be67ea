"""`dpjax.quantiles`: values of a column, the error that is stated, what is chosen, and what is refused."""

import re

import builders
import jax
import numpy as np
import pytest

import dpjax
from dpjax import Points
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.domains import wide
from dpjax.optimizers.quantiles.answer import chosen, of_choice

INCOMES = np.arange(60.0)


def asked(**given):
    """An answer, by default from the algorithm that compiles fastest of those with a law."""
    column = dpjax.encode(INCOMES, unit=1, low=0, high=255)
    arguments = {"data": column, "fractions": [0.25, 0.75], "epsilon": 4.0, "key": jax.random.key(0)}
    return dpjax.quantiles(**arguments | {"algorithm": "rank_exponential"} | given)


@pytest.mark.parametrize("algorithm", ["rank_exponential", builders.thorough(None)])
def test_answers_are_values_with_an_error_that_holds(algorithm):
    answer = asked(algorithm=algorithm)
    assert answer.values.dtype == INCOMES.dtype and np.all(np.diff(answer.values) >= 0)
    assert answer.guarantee.epsilon == 4.0 and answer.guarantee.delta == 0.0
    ranks = np.array([15, 45])
    below, up_to = ((INCOMES[:, None] < answer.values).sum(axis=0), (INCOMES[:, None] <= answer.values).sum(axis=0))
    assert np.all((below - answer.rank_error <= ranks) & (ranks <= up_to + answer.rank_error))
    assert "all within" in repr(answer) and len(repr(answer)) < 500


@pytest.mark.slow
def test_the_exact_interval_has_its_level():
    answer = asked()
    exact = answer.exactly(dpjax.encode(INCOMES, unit=1, low=0, high=255))
    assert exact.probability >= 0.95 and 0 < exact.rank_error <= answer.rank_error
    runs = [asked(key=key).values for key in jax.random.split(jax.random.key(1), 400)]
    inside = np.mean([np.all((low <= exact.high) & (low >= exact.low)) for low in runs])
    assert abs(inside - exact.probability) < 5 * (0.05 * 0.95 / 400) ** 0.5


def test_the_choice_depends_on_public_facts():
    assert chosen(fractions=[0.5]) == chosen(fractions=[0.5], delta=1e-6) == "permute_and_flip"
    assert chosen(fractions=[0.5], rho=0.1) == chosen(fractions=[0.5], epsilon=0.1, delta=0.01) == "rank_exponential"
    assert chosen(fractions=[0.5], epsilon=2.0, delta=0.1) == "rank_exponential"  # by the range of all losses
    assert chosen(fractions=[0.5], epsilon=1.0, delta=1e-3) == "permute_and_flip"
    assert chosen(fractions=[0.2, 0.5]) == "inverse_sensitivity"
    many = [i / 200 for i in range(1, 200)]
    assert (
        chosen(fractions=many[:47])
        == chosen(fractions=many[:47], delta=1e-6)
        == chosen(fractions=many[:9], rho=0.1)
        == "inverse_sensitivity"
    )
    assert chosen(fractions=many[:127]) == chosen(fractions=many[:48], delta=1e-6) == "joint"
    assert chosen(fractions=many[:128]) == chosen(fractions=many, delta=1e-6) == "approximate"
    assert chosen(fractions=many, bits=4096) == "joint"  # more than approximate takes
    assert chosen(fractions=many[:99], rho=0.1) == "approximate"


@pytest.mark.thorough
def test_integers_of_64_bits_are_not_rounded():
    data = dpjax.Points.create(wide.from_ints([5] * 20 + [2**64 - 1] * 20, 64), 40)
    answer = dpjax.quantiles(data, [0.75], epsilon=50.0, key=jax.random.key(0), bits=64, algorithm="rank_exponential")
    assert answer.values.tolist() == [2**64 - 1]


@pytest.mark.thorough
def test_totals_are_stated_in_the_currency_asked():
    """The total is large enough for errors to be small; another test uses the same `algorithm`, so that its programs serve here as well."""
    mixed = asked(algorithm="approximate", epsilon=40.0, delta=1e-6)
    assert mixed.guarantee == Guarantee(40.0, 1e-6, ADD_OR_REMOVE_ONE)
    alone = asked(algorithm="approximate", epsilon=None, rho=100.0)
    assert 99.9 < alone.rho <= 100.0 and alone.guarantee.is_pure and f"{alone.rho:.4g}-zCDP" in repr(alone)
    assert np.all(np.abs(alone.values - [15, 45]) <= 5)


@pytest.mark.thorough
def test_a_pure_algorithm_keeps_more_than_it_is_asked_for():
    pure = asked(algorithm=None, delta=1e-6)
    assert pure.guarantee == Guarantee(4.0, 0.0, ADD_OR_REMOVE_ONE) and pure.rho < pure.guarantee.zcdp()


def test_an_algorithm_without_a_law_of_ranks_says_so():
    answer = asked(algorithm="approximate", epsilon=40.0)
    assert np.all(np.abs(answer.values - [15, 45]) <= 3) and answer.rank_error < 15
    with pytest.raises(TypeError, match="algorithm must have a law"):
        answer.exactly(dpjax.encode(INCOMES, unit=1, low=0, high=255))


@pytest.mark.thorough
def test_scales_lie_around_the_value_zero():
    """A median of 40 values around 50 in 2^31 codes, 10^9 of which are below zero: without an origin it is lost."""
    values = np.random.default_rng(0).normal(50, 10, 40)
    column = dpjax.encode(values, unit=0.001, low=-1e6, high=1e6)

    def near(origin):
        keys = jax.random.split(jax.random.key(0), 40)
        made = of_choice(None, bits=column.bits, fractions=[0.5], epsilon=0.7, origin=origin)
        answers = jax.jit(jax.vmap(lambda key: made(key, column.points).hypothesis))(keys)
        return np.mean(np.abs(np.asarray(answers)[:, 0, 0] * 0.001 - 1e6 - 50) < 100)

    assert column.encoding.origin == 10**9
    assert near(column.encoding.origin) > 0.9 and near(0) < 0.5
    answer = dpjax.quantiles(column, [0.5], epsilon=0.7, key=jax.random.key(1))
    assert np.asarray(answer.algorithm.origin).tolist() == [10**9]


@pytest.mark.thorough
def test_an_answer_does_not_tell_how_many_rows_there_are():
    """A run on 64 rows processes only some of them; the answer once showed the algorithm focused in this way."""
    column = dpjax.encode(np.full(64, 2, np.uint8), low=0, high=3)
    answer = dpjax.quantiles(column, [0.5], epsilon=50.0, key=jax.random.key(0), algorithm="joint")
    assert answer.algorithm.focused(64).size > 0 == answer.algorithm.size


def test_public_data_of_another_domain_are_refused():
    answer = asked()
    with pytest.raises(ValueError, match="bits of the answer's domain, got 2"):
        answer.exactly(dpjax.encode(INCOMES % 4, unit=1, low=0, high=3))


def test_public_data_of_another_encoding_are_refused():
    """As many bits, but other bounds or another unit; the width of an integer type does not matter."""
    answer = asked()
    for given in ({"low": -1, "high": 254}, {"low": 0, "high": 254}, {"low": 0, "high": 510, "unit": 2}):
        with pytest.raises(ValueError, match="data must be encoded as the answer's column"):
            answer.exactly(dpjax.encode(INCOMES, **{"unit": 1} | given))
    encoding = answer.encoding
    assert encoding.agrees(dpjax.encode(INCOMES.astype(np.int16), unit=1, low=0, high=255).encoding)
    assert asked(data=Points.create(wide.from_ints(range(60), 8)), bits=8).encoding is None


def test_points_give_integers():
    points = Points.create(wide.from_ints(range(60), 8))
    assert asked(data=points, bits=8).values.dtype.kind == "i"


def test_what_is_printed_is_never_better_than_what_is_promised():
    answer = asked(beta=1e-7)
    shown = float(re.search(r"([0-9.]+)-zCDP", repr(answer))[1])
    assert answer.rho <= shown <= 1.001 * answer.rho
    assert "with probability 1 - 1e-07;" in repr(answer)


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"data": [1, 2]}, TypeError, "data must be a Column of dpjax.encode"),
        ({"bits": 8}, ValueError, "bits must not be given"),
        ({"beta": 0.0}, ValueError, "beta must be"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be"),
        ({"epsilon": None}, ValueError, "exactly one of epsilon and rho"),
        ({"rho": 0.1}, ValueError, "exactly one of epsilon and rho"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"delta": "much"}, TypeError, "delta must be"),
        ({"delta": 0.1, "epsilon": None, "rho": 0.1}, ValueError, "delta must not"),
        ({"epsilon": None, "rho": -0.1}, ValueError, "rho must be"),
        ({"algorithm": "best"}, ValueError, "algorithm must be"),
        ({"algorithm": ""}, ValueError, "algorithm must be"),
        ({"fractions": [0.5, 0.2]}, ValueError, "fractions must increase"),
    ],
)
def test_bad_arguments_are_refused(given, error, match):
    with pytest.raises(error, match=match):
        asked(**given)


def test_points_outside_the_domain_are_refused():
    with pytest.raises(ValueError, match="must hold points in"):
        asked(data=Points.create(wide.from_ints([300], 9)), bits=8)
