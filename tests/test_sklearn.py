"""Estimators of scikit-learn: its own checks, the right law, what they promise, what they refuse. Needs `dpjax[sklearn]`."""

import collections

import jax
import numpy as np
import pytest
from scipy import stats

from dpjax import Outcome, Points, Sample, Status
from dpjax.accounting import Guarantee
from dpjax.concepts import rectangles as concept
from dpjax.data.examples import Examples
from dpjax.domains import wide
from dpjax.learners import rectangles, thresholds
from dpjax.optimizers.quantiles import answer

pytest.importorskip("sklearn", reason="dpjax[sklearn]")

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dpjax.interop import PrivateQuantiles, PrivateRectangle, PrivateThreshold, columns

BOUNDS = {"low": -10.0, "high": 10.0, "unit": 0.01}


@pytest.mark.thorough
def test_predictions_are_those_of_the_last_fit():
    """A parameter that is set afterwards takes effect at the next fit."""
    x = np.linspace(0, 10, 200)[:, None]
    for learner in (
        PrivateThreshold(epsilon=4.0, low=0, high=10, unit=0.01, random_state=0),
        PrivateRectangle(epsilon=4.0, low=0, high=10, unit=1.0, random_state=0),
    ):
        learner.fit(x, x[:, 0] > 3)
        before = learner.predict(x)
        learner.set_params(low=-10, high=30)
        assert np.array_equal(learner.predict(x), before) and 0 < before.sum() < 200


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "estimator",
    [
        PrivateQuantiles(**BOUNDS, algorithm="rank_exponential"),
        PrivateQuantiles(**BOUNDS, fractions=[0.5]),
        PrivateRectangle(**BOUNDS),
        PrivateThreshold(**BOUNDS),
    ],
)
def test_scikit_learns_own_checks(estimator):
    """All of them: none is expected to fail. The classifiers' tags say that they are binary and may score poorly on few rows."""
    results = check_estimator(estimator, on_skip=None)
    others = {result["check_name"] for result in results if result["status"] != "passed"}
    # From scikit-learn 1.9 on this check is skipped unless SciPy is configured for other arrays.
    assert len(results) > 40 and others <= {"check_array_api_input"}


@pytest.mark.thorough
def test_thresholds_follow_the_law():
    """A chi-square of 200 fits against the exact law on codes; the law for the other labels is refuted (control)."""
    x, y = np.array([[0.0], [1.0], [1.0], [3.0], [9.0]]), np.array(["no", "no", "yes", "yes", "yes"])
    fits = [PrivateThreshold(low=0, high=3, unit=1, random_state=seed).fit(x, y) for seed in range(200)]
    found = collections.Counter(fit.threshold_ for fit in fits)
    counts = np.array([found[value] for value in (0.0, 1.0, 2.0, 3.0, np.inf)])
    assert counts.sum() == 200 and fits[0].guarantee_ == Guarantee(1.0, 0.0, "REPLACE_ONE")

    def p_value(labels):
        sample = Sample(x=wide.from_ints([0, 1, 1, 3, 3], 2), y=labels)
        law = np.asarray(thresholds.exponential(bits=2, epsilon=1.0).pmf(sample))[:-1].astype(float)
        return stats.chisquare(counts, 200 * law / law.sum()).pvalue

    assert p_value([1, 1, 0, 0, 0]) > 2e-5 and p_value([0, 0, 1, 1, 1]) < 2e-5
    for fit in fits[:20]:
        assert fit.predict(x).tolist() == ["yes" if min(value, 3.0) >= fit.threshold_ else "no" for value in x[:, 0]]


def test_thresholds_in_both_directions():
    x = np.random.default_rng(0).uniform(-10, 10, (2000, 3))
    for above in (True, False):
        y = (x[:, 1] > 4) == above
        fit = PrivateThreshold(2.0, column=1, above=above, random_state=0, **BOUNDS).fit(x, y)
        assert abs(fit.threshold_ - 4) < 0.5 and fit.score(x, y) > 0.97
        assert PrivateThreshold(2.0, column=1, above=not above, random_state=0, **BOUNDS).fit(x, y).score(x, y) < 0.8


@pytest.mark.thorough
def test_a_column_of_a_data_frame_is_found_by_its_name():
    pandas = pytest.importorskip("pandas")
    x = np.linspace(0, 10, 201)
    frame, y = pandas.DataFrame({"age": x[::-1], "income": x}), x > 3
    given = {"epsilon": 10.0, "low": 0, "high": 10, "unit": 0.1, "random_state": 0}
    by_name, by_number = (PrivateThreshold(column=column, **given).fit(frame, y) for column in ("income", 1))
    assert by_name.threshold_ == by_number.threshold_ and (by_name.predict(frame) == by_number.predict(frame)).all()
    for data, names in ((frame, r"\['age', 'income'\]"), (frame.to_numpy(), r"\[\]")):
        with pytest.raises(ValueError, match=f"column must be .* name of one of X's columns, {names}, got 'wage'"):
            PrivateThreshold(column="wage", **given).fit(data, y)
    # From 1.9 on scikit-learn raises this itself.
    with pytest.raises(ValueError, match=r"name of one of X's columns|unique column names"):
        PrivateThreshold(column="age", **given).fit(frame.set_axis(["age", "age"], axis=1), y)


def test_estimators_release_what_their_algorithms_do():
    """With the same key on the same codes, which are computed here by hand."""
    x = np.random.default_rng(0).integers(0, 16, (500, 2))
    private = PrivateQuantiles(low=0, high=15, unit=1, fractions=[0.4], random_state=np.random.RandomState(5)).fit(x)
    random, each = np.random.RandomState(5), answer.of_choice(None, bits=4, fractions=[0.4], epsilon=0.5)
    for column in range(2):
        outcome = each(columns.fresh_key(random), Points.create(wide.from_ints(x[:, column].tolist(), 4)))
        assert private.quantiles_[:, column].tolist() == wide.to_ints(outcome.hypothesis)


@pytest.mark.thorough
def test_a_rectangle_is_what_its_learner_finds():
    """Again with the same key on the same codes."""
    x = np.random.default_rng(0).integers(0, 16, (500, 2))
    y = (x[:, 0] > 3) & (x[:, 1] < 12)
    box = PrivateRectangle(20.0, 0.01, low=0, high=15, unit=1, random_state=3).fit(x, y)
    learner = rectangles.rectangles(axes=2, bits=4, epsilon=20.0, delta=0.01, beta=0.1)
    examples = Examples.create(wide.from_ints(x.ravel().tolist(), 4).reshape(500, 2, 1), y.astype(int))
    found = learner(columns.fresh_key(columns.coins(3)), examples).hypothesis
    assert box.low_.tolist() == wide.to_ints(found.low) and box.high_.tolist() == wide.to_ints(found.high)
    assert box.predict(x).tolist() == np.all((box.low_ <= x) & (x <= box.high_), axis=1).tolist()
    assert box.guarantee_ == learner.guarantee() and np.isfinite(box.low_).all()


def test_where_nothing_is_released_the_rectangle_is_empty(monkeypatch):
    class Silent:
        def __call__(self, key, examples):
            return Outcome.of(concept.rectangle(bits=4, low=[0], high=[9]), Status.BOTTOM, {})

        def guarantee(self):
            return Guarantee(1.0, 0.0, "ADD_OR_REMOVE_ONE")

    monkeypatch.setattr(rectangles, "rectangles", lambda **given: Silent())
    x = np.arange(16)[:, None]
    fit = PrivateRectangle(low=0, high=15, unit=1).fit(x, x[:, 0] < 5)
    assert not fit.predict(x).any() and (fit.low_[0], fit.high_[0]) == (np.inf, -np.inf)


@pytest.mark.thorough
def test_each_column_has_coins_of_its_own():
    """Even with one seed: with the same noise in both, the columns together would reveal more about a row than their budgets allow."""
    x = np.random.default_rng(0).integers(0, 1000, (3000, 1)).repeat(2, axis=1)  # the program of the next test
    given = {"fractions": [0.1, 0.5], "algorithm": "rank_exponential", "low": 0, "high": 1000, "unit": 1}
    private = PrivateQuantiles(0.01, random_state=0, **given).fit(x)
    first, second = private.quantiles_.T
    assert np.all(first != second)


@pytest.mark.slow
def test_a_rectangle_is_learned():
    x = np.random.default_rng(0).uniform(-10, 10, (12_000, 2))
    inside = (np.abs(x[:, 0] - 1) < 8) & (x[:, 1] > -7)
    fit = PrivateRectangle(random_state=0, **BOUNDS).fit(x, inside)
    assert fit.score(x, inside) > 0.9 and fit.guarantee_.covers(1.0, 1e-6)
    assert np.all(fit.low_ > -7.01) and fit.high_[0] < 9.01
    few = PrivateRectangle(random_state=0, **BOUNDS).fit(x[:50], inside[:50])
    assert not few.predict(x).any() and few.low_[0] == np.inf and few.high_[0] == -np.inf


def test_quantiles_in_a_pipeline():
    x = np.random.default_rng(0).uniform(0, [10, 1000], (3000, 2))
    private = PrivateQuantiles(
        2.0, fractions=[0.1, 0.5], algorithm="rank_exponential", low=0, high=[10, 1000], unit=[0.01, 1], random_state=0
    )
    bins = make_pipeline(private).fit_transform(x)
    assert np.allclose(private.quantiles_, [[1, 100], [5, 500]], rtol=0.15)
    assert np.allclose(np.bincount(bins[:, 1].astype(int)) / 3000, [0.1, 0.4, 0.5], atol=0.03)
    assert private.guarantee_.covers(2.0, 0.0) and private.guarantee_.epsilon > 1.999


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (PrivateThreshold(), "low and high must be given: they are public"),
        (PrivateThreshold(low=0, high=[1, 2, 3], unit=1), "high must be one number, or one for each of the 1 columns"),
        (PrivateThreshold(low=0, high=1, unit=1, column=2), "column must be from 0 to 1"),
        (PrivateThreshold(low=0, high=1, unit=1, classes=[3, 4]), r"y must hold the classes \[3, 4\] only"),
        (PrivateThreshold(low=0, high=1, unit=1, classes=[3]), "y must hold two classes"),
        (PrivateThreshold(0.0, low=0, high=1, unit=1), "epsilon must be > 0"),
        (
            PrivateThreshold(low=0, high=1, unit=1, classes=[None, 3]),
            "classes must hold classes of one kind, .*got NoneType, int",
        ),
        (PrivateQuantiles(0.0, low=0, high=1, unit=1), "epsilon must be > 0"),
        (
            PrivateQuantiles(low=2**60, high=2**60 + 10, unit=1),
            r"unit must be at least 128.0, .*got 1; shift the column",
        ),
    ],
)
def test_refusals(estimator, words):
    with pytest.raises((TypeError, ValueError), match=words):
        estimator.fit(np.zeros((4, 2)), [0, 1, 0, 1])


def test_without_a_seed_coins_come_from_the_operating_system():
    """NumPy's global state may be seeded by any line of a script, and is inherited by forked workers."""
    keys = []
    for _ in range(2):
        np.random.seed(0)
        keys.append(jax.random.key_data(columns.fresh_key(columns.coins(None))).tolist())
    assert keys[0] != keys[1]


@pytest.mark.parametrize("kind", [PrivateThreshold, PrivateRectangle, PrivateQuantiles])
def test_a_first_fit_that_fails_leaves_an_estimator_unfitted(kind):
    x, y = np.zeros((4, 1)), [0, 1, 0, 1]
    estimator = kind(epsilon=-1.0, low=0, high=7, unit=1)
    with pytest.raises(ValueError, match="epsilon"):
        estimator.fit(x, y)
    with pytest.raises(NotFittedError):
        (estimator.predict if hasattr(estimator, "predict") else estimator.transform)(x)


@pytest.mark.thorough
def test_a_later_fit_that_fails_leaves_the_last_one():
    x = np.arange(4.0)[:, None]  # of two bits, as elsewhere in this file
    learner = PrivateThreshold(20.0, low=0, high=3, unit=1, random_state=0).fit(x, np.where(x[:, 0] > 1, "b", "a"))
    before = learner.predict(x).tolist()
    learner.set_params(epsilon=-1.0, above=False, low=-4)
    with pytest.raises(ValueError, match="epsilon"):
        learner.fit(x, x[:, 0] > 1)
    assert learner.predict(x).tolist() == before


def test_sides_beyond_the_bounds_hold_nothing(monkeypatch):
    """The sides shown are those used for predictions: codes 10 to 15 of 4 bits stand for no value up to 9."""

    class Beyond:
        def __call__(self, key, examples):
            return Outcome.of(concept.rectangle(bits=4, low=[12], high=[14]), Status.OK, {})

        def guarantee(self):
            return Guarantee(1.0, 0.0, "ADD_OR_REMOVE_ONE")

    monkeypatch.setattr(rectangles, "rectangles", lambda **given: Beyond())
    x = np.arange(10.0)[:, None]
    fit = PrivateRectangle(low=0, high=9, unit=1).fit(x, x[:, 0] < 5)
    assert fit.predict(x).sum() == np.sum((fit.low_ <= x) & (x <= fit.high_)) == 0


def test_estimators_take_no_dates():
    """Scikit-learn turns dates into counts of the unit in which they are stored, which were once clipped to the bounds."""
    pandas = pytest.importorskip("pandas")
    x = pandas.DataFrame({"age": [30.0, 40.0], "day": pandas.to_datetime(["2020-01-01", "2021-01-01"])})
    for each in (x, x[["day"]].to_numpy()):
        for estimator in (PrivateQuantiles, PrivateThreshold, PrivateRectangle):
            with pytest.raises(TypeError, match="X must hold numbers, got dates or times"):
                estimator(low=0, high=100, unit=1).fit(each, [0, 1])


@pytest.mark.parametrize(
    "days", [[[np.timedelta64(3, "D")], [np.timedelta64(4, "D")]], np.array([[np.datetime64("2020-01-01")]], object)]
)
def test_dates_in_lists_and_object_arrays_are_no_counts(days):
    with pytest.raises(TypeError, match="X must hold numbers, got dates or times"):
        PrivateQuantiles(low=0, high=1, unit=1).fit(days)


@pytest.mark.thorough
def test_a_fit_that_fails_leaves_the_last_one_as_it_was():
    """This includes what scikit-learn's validation has already set: otherwise predictions would be about other columns."""
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame(np.random.default_rng(0).uniform(0, 100, (300, 2)), columns=["u", "v"])
    model = PrivateThreshold(low=0, high=100, unit=0.01, column=1, random_state=0).fit(data, data.v > 30)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1.0).fit(data[["v", "u"]], data.v > 30)
    assert vars(model) == {**before, "epsilon": -1.0}
    with pytest.raises(ValueError, match="feature names"):
        model.score(data[["v", "u"]], data.v > 30)


def _frames():
    pd = pytest.importorskip("pandas")
    day = np.datetime64("1970-01-05")
    one = pd.Series([day] * 3, dtype=object)
    return [  # scikit-learn would count the days of each
        pd.DataFrame({"a": one, "b": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"a": one, "b": one}),
        pd.DataFrame({"a": pd.Series(pd.to_datetime(["1970-01-05"] * 3)).astype("category")}),
        [np.array([day, day]) for _ in range(3)],
        [[np.array(day)] for _ in range(3)],
    ]


@pytest.mark.parametrize("i", range(5))
def test_no_estimator_counts_dates(i):
    with pytest.raises(TypeError, match="X must hold numbers, got dates or times"):
        PrivateQuantiles(low=0, high=2**40, unit=1).fit(_frames()[i])


def test_estimators_take_no_masked_entries_nor_named_bounds():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="X must have no missing entries"):
        PrivateQuantiles(low=0, high=9, unit=1).fit(np.ma.array([[1.0], [5.0]], mask=[[0], [1]]))
    for wrong in (np.nan, np.inf, None):
        with pytest.raises(
            ValueError, match="X must hold finite numbers, neither NaN nor infinity, got 2 of 4 rows: 1, 3"
        ):
            PrivateQuantiles(low=0, high=9, unit=1).fit([[1.0, 2.0], [5.0, wrong], [3.0, 1.0], [wrong, 2.0]])
    with pytest.raises(TypeError, match="high must be a list in the order"):
        PrivateQuantiles(low=0, high=pd.Series({"b": 9, "a": 5}), unit=1).fit(np.ones((3, 2)))


@pytest.mark.parametrize("classes", [None, ["a", "b"]])
def test_labels_of_several_kinds_are_refused_by_name(classes):
    learner = PrivateThreshold(low=0, high=1, unit=0.01, classes=classes)
    with pytest.raises(TypeError, match=r"^y must hold classes of one kind, .*got int, str"):
        learner.fit(np.linspace(0, 1, 4)[:, None], np.array(["a", "b", "a", 3], object))
