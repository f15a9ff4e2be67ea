"""Columns become points and come back: order is kept, values are the same, nothing is moved or lost without a word."""

import datetime
import decimal
import itertools
from fractions import Fraction

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import dpjax
from dpjax.data import encoding
from dpjax.domains import wide
from dpjax.optimizers import interior_point

UTC = datetime.UTC


def codes(column):
    return wide.to_ints(column.points.x)[: int(column.points.n_valid)]


def back(column):
    return column.decode(np.asarray(column.points.x)[: int(column.points.n_valid)])


EXACT = [
    np.array([-5, 3, 3, 2**40, -(2**63), 2**63 - 1]),
    np.array([True, False, True]),
    np.array([0, 7, 255], np.uint8),
    np.array([0, 2**64 - 1, 2**63], np.uint64),
    np.array([-128, 127, 0], np.int8),
    np.array([0.1, -2.5, 1e300, 5e-324, -5e-324, np.inf, -np.inf, 0.0]),
    np.array([0.1, -2.5, 1e30, 1e-45, np.inf], np.float32),
    np.array([3, 1, 2], ">i4"),
    np.array([0.5, -1.0], ">f8"),
    np.array([1.5, 9.0, -2.0, 4.0])[::2],
    np.array(["1969-12-31T23:59:59", "2024-02-29T12:00:00"], "M8[s]"),
    np.array([-3, 10**12], "m8[ns]"),
]


@pytest.mark.parametrize("values", EXACT, ids=lambda values: values.dtype.str)
def test_all_values_of_a_type_come_back_in_order(values):
    column = dpjax.encode(values)
    again = back(column)
    assert again.dtype == values.dtype.newbyteorder("=") and np.array_equal(again, values)
    assert column.bits == (1 if values.dtype == bool else 8 * values.dtype.itemsize) and column.clipped == 0
    order = np.argsort(values, kind="stable")
    assert np.array_equal(np.argsort(np.array(codes(column), object), kind="stable"), order)


@hypothesis.given(st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=8))
def test_floats_keep_their_order(words):
    """Floats of any bits, the least and the infinite ones among them."""
    floats = np.array(words, np.uint64).view(np.float64)
    values = floats[~np.isnan(floats)]
    column = dpjax.encode(values)
    rises = [[x < y for x, y in itertools.pairwise(each)] for each in (values, codes(column))]
    assert rises[0] == rises[1]
    assert np.array_equal(back(column), values)


@hypothesis.given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=8))
def test_decimals_are_the_numbers_that_were_written(cents):
    values = [cent / 100 for cent in cents]
    column = dpjax.encode(values, unit=0.01, low=-10_000, high=10_000)
    assert codes(column) == [cent + 10**6 for cent in cents]
    assert back(column).tolist() == values
    assert column.bits == (2 * 10**6).bit_length()


@hypothesis.given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.sampled_from([0.1, 0.25, 0.3, 0.02]))
def test_what_lies_between_two_steps_goes_to_the_nearest(values, unit):
    high = unit * 50 if unit != 0.3 else 15
    steps = codes(dpjax.encode(values, unit=unit, low=0, high=round(high, 6)))
    exact = [Fraction(value) / Fraction(str(unit)) for value in values]
    assert all(
        abs(step - place) <= Fraction(1, 2) + Fraction(1, 10**12) for step, place in zip(steps, exact, strict=True)
    )


def test_integers_in_steps_of_a_fraction_are_the_floats_that_they_are():
    for kind in ("int8", "uint64"):
        given = {"unit": 0.01, "low": 0, "high": 10}
        whole, real = dpjax.encode(np.array([3, 5], kind), **given), dpjax.encode([3.0, 5.0], **given)
        assert codes(whole) == codes(real) == [300, 500] and whole.encoding == real.encoding
    assert codes(dpjax.encode([1, 2], unit=Fraction(1, 3), low=0, high=2)) == [3, 6]
    with pytest.raises(ValueError, match=r"low and high must be less than 2.53 in size for integers in steps of 0.5"):
        dpjax.encode([3, 5], unit=0.5, low=2**60, high=2**60 + 2**10)
    with pytest.raises(ValueError, match=r"low and high must be less than 2.53"):  # 2^53 + 1 would be 2^53
        dpjax.encode(np.array([2**53 + 1]), unit=2.5, low=2, high=2**53)
    with pytest.raises(
        ValueError, match=r"unit must leave fewer than 2.53 steps from low to high, got 1 for 0 to 9007199254740992"
    ):
        dpjax.encode([3.0], unit=1, low=0, high=2**53)
    assert dpjax.encode([3.0], unit=1, low=0, high=2**53 - 1).bits == 53
    for unit, high in (("0.01", 2**47), ("0.5", 2**52)):
        with pytest.raises(ValueError, match=r"low and high must be less than 2.53 units in size"):
            dpjax.encode([decimal.Decimal(1)], unit=decimal.Decimal(unit), low=0, high=high)
    for whole in (2.0, Fraction(2), decimal.Decimal(2), np.array(2)):
        column = dpjax.encode(np.array([2**60 + 2]), unit=whole, low=2**60, high=2**61)
        assert codes(column) == [1] and column.encoding.kind == "integers"
    assert codes(dpjax.encode([3, 5], unit=np.array(0.5), low=0, high=8)) == [6, 10]


def test_halves_go_to_the_even_step():
    assert codes(dpjax.encode([0.5, 1.5, 2.5], unit=1, low=0, high=9)) == [0, 2, 2]
    assert codes(dpjax.encode([5, 15, 25, 26], unit=10, low=0, high=90)) == [0, 2, 2, 3]
    noon = np.array(["2024-01-01T12", "2024-01-02T12", "2024-01-02T13"], "M8[h]")
    day = np.timedelta64(1, "D")
    days = dpjax.encode(noon, unit=day, low="2024-01-01", high="2024-01-05")
    assert codes(days) == [0, 2, 2] and str(days.decode(2)) == "2024-01-03T00"


def test_python_values_are_exact():
    prices = [decimal.Decimal("0.10"), decimal.Decimal("99.99"), Fraction(1, 3)]
    assert codes(dpjax.encode(prices, unit=decimal.Decimal("0.01"), low=0, high=100)) == [10, 9999, 33]
    large = [2**70, -1, 2**63]
    column = dpjax.encode(large, low=-(2**80), high=2**80)
    assert back(column).tolist() == large and column.bits == 82 and column.decode(0) == -(2**80)
    small = dpjax.encode([-1, 2**63], low=-1, high=2**64)  # NumPy would make floats of these
    assert codes(small) == [0, 2**63 + 1]
    unsigned = dpjax.encode([np.uint64(2**63), np.int64(-1)], low=np.int64(-1), high=2**64)
    assert codes(unsigned) == [2**63 + 1, 0]


def test_booleans_have_one_bit():
    """A private quantile of a Boolean column is a Boolean."""
    for given in ({}, {"low": False, "high": True}, {"low": 0, "high": 1}, {"low": np.False_, "high": 1.0, "unit": 1}):
        column = dpjax.encode([True, False], **given)
        assert codes(column) == [1, 0] and column.bits == 1 and back(column).dtype == bool
    assert codes(dpjax.encode(np.array([False, np.True_], object))) == [0, 1]


def test_numbers_of_an_object_column_are_those_of_a_list():
    """They are floats if one of them is, here with no integer rounded; an empty column is one of integers."""
    for values in ([1.5, 2.5], [1, 2.5], [2**70, 0.5], [np.float32(0.5), 2]):
        for each in (values, np.array(values, object)):
            assert np.array_equal(back(dpjax.encode(each)), values) and back(dpjax.encode(each)).dtype == float
    for values in ([], (), np.array([], object)):
        assert dpjax.encode(values).encoding == dpjax.encode(np.array([], np.int64)).encoding


def test_what_lies_outside_is_told_before_it_is_rounded():
    decimals = [decimal.Decimal("-0.4"), decimal.Decimal(5), decimal.Decimal("10.49")]
    for values in (decimals, np.array(decimals, float), np.array(decimals, np.float32)):
        with pytest.raises(ValueError, match="got 2 of 3 rows: 0, 2"):
            dpjax.encode(values, unit=1, low=0, high=10)
        column = dpjax.encode(values, unit=1, low=0, high=10, clip=True)
        assert column.clipped == 2 and codes(column) == [0, 5, 10]
    far = [decimal.Decimal("Infinity"), decimal.Decimal("-Infinity")]
    assert codes(dpjax.encode(far, unit=1, low=0, high=10, clip=True)) == [10, 0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("low", "high", "unit"), [(0.1, 0.3, 0.1), (-0.7, 1e6, 0.1), (0.3, 0.7, 1e-9), (1 / 3, 1 / 3, 1)]
)
def test_a_float_equals_the_bound_that_it_is_nearest_to(low, high, unit, dtype):
    ends = np.array([low, high], dtype)
    column = dpjax.encode(ends, unit=unit, low=low, high=high)
    assert np.array_equal(back(column), ends)
    beyond = np.nextafter(ends, np.array([-1, 2e6], dtype))
    assert dpjax.encode(beyond, unit=unit, low=low, high=high, clip=True).clipped == 2


def test_decimals_far_from_zero_are_exact():
    """Where float64 rounds the bounds, or products of values to half a step, codes are computed one by one."""
    above = np.array([2.0**53 + 2, 2.0**53 + 8])
    assert codes(dpjax.encode(above, unit=1, low=2**53 + 1, high=2**53 + 9)) == [1, 7]
    assert codes(dpjax.encode(above - 2, unit=1, low=2**53 + 1, high=2**53 + 9)) == [0, 5]  # the nearest float to low
    cents = [10**14 + 0.25, 10**14 + 0.5]
    assert codes(dpjax.encode(cents, unit=0.01, low=10**14, high=10**14 + 1)) == [25, 50]
    low, high = 38032804634565.16, 38099469456053.0  # between them the product with 100 may be half a step off
    assert codes(dpjax.encode([38042531976409.27], unit=0.01, low=low, high=high)) == [972734184411]
    assert codes(dpjax.encode([0.0, 3e-320], unit=1e-320, low=0, high=1e-319)) == [0, 3]


def test_dates_and_times():
    dates = [datetime.date(2024, 2, 29), datetime.date(1999, 1, 1)]
    column = dpjax.encode(dates, low=datetime.date(1999, 1, 1), high="2024-12-31")
    assert codes(column) == [9190, 0] and back(column).tolist() == dates
    by_numpy = np.array([np.datetime64(each) for each in dates], object)  # each with a unit of its own
    assert codes(dpjax.encode(by_numpy, low="1999-01-01", high="2024-12-31")) == [9190, 0]
    spans = np.array([np.timedelta64(1, "D"), np.timedelta64(25, "h")], object)
    assert codes(dpjax.encode(spans, low=np.timedelta64(0, "h"), high=np.timedelta64(2, "D"))) == [24, 25]
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moments = [datetime.datetime(2024, 1, 1, 2, tzinfo=zone), datetime.datetime(2024, 1, 1, 0, tzinfo=UTC)]
    one, other = codes(dpjax.encode(moments))
    assert one == other
    times = [datetime.time(0, 0, 1), datetime.time(23, 59, 59)]
    column = dpjax.encode(
        times, unit=datetime.timedelta(seconds=1), low=datetime.time(0), high=datetime.timedelta(days=1)
    )
    assert codes(column) == [1, 86_399] and column.decode(1) == np.timedelta64(1, "s")
    with pytest.raises(TypeError, match=r"values\[0\] must be a number, a date or a time, all of one kind"):
        dpjax.encode([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)])
    with pytest.raises(TypeError, match=r"values\[2\] must have a zone, as others have"):
        dpjax.encode([*moments, datetime.datetime(2024, 1, 1)])
    with pytest.raises(
        ValueError, match=r"values must be a time that UTC has from year 1 to 9999, got .*datetime\(1, 1, 1"
    ):
        dpjax.encode([datetime.datetime(1, 1, 1, tzinfo=zone)])


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[ns]"])
def test_the_least_time_is_a_time(dtype):
    """-2^63 stands for no time: as the least value it would be what outputs are decoded to."""
    column = dpjax.encode(np.array([0, 5], dtype))
    assert column.encoding.low == -(2**63) + 1 and not np.isnat(column.decode(0))


@pytest.mark.parametrize("low", ["now", "Today", np.array(3), jnp.int32(3)])
def test_bounds_of_dates_are_dates_that_are_written_down(low):
    with pytest.raises(TypeError, match="low must be a date or a time"):
        dpjax.encode(np.array(["2020-01-01"], "datetime64[D]"), low=low, high="2030-01-01")


def test_months_are_counted_in_months():
    months = np.array(["2020-01", "2021-02"], "datetime64[M]")
    column = dpjax.encode(months, low="2020-01", high="2022-01", unit=np.timedelta64(1, "M"))
    assert column.encoding.last == 24 and column.decode([13]).tolist() == [months[1].item()]
    spans = np.array([5, 6], "timedelta64[M]")
    ends = {"low": np.timedelta64(0, "M"), "high": np.timedelta64(12, "M")}
    assert dpjax.encode(spans, **ends, unit=np.timedelta64(3, "M")).encoding.last == 4
    with pytest.raises(ValueError, match="unit must be"):
        dpjax.encode(months, low="2020", high="2022", unit=np.timedelta64(1, "m"))  # a minute


def test_pandas_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"whole": [3, 1], "real": [0.5, -1.0], "day": pandas.to_datetime(["2024-01-01", "2020-05-05"])}
    )
    for name in frame:
        assert np.array_equal(back(dpjax.encode(frame[name])), frame[name].to_numpy())
    nullable = pandas.Series([3, 1], dtype="Int64")
    assert back(dpjax.encode(nullable)).tolist() == [3, 1]
    with pytest.raises(ValueError, match="no missing entries, got 1 of 3 rows: 1"):
        dpjax.encode(pandas.Series([3, None, 1], dtype="Int64"))
    local = pandas.to_datetime(["2024-01-01 02:00"]).tz_localize("Europe/Paris")
    for each in (pandas.Series(local), local, local.array):
        assert str(back(dpjax.encode(each))[0]).startswith("2024-01-01T01:00")
    assert back(dpjax.encode(pandas.Series([True, False], dtype="boolean"))).tolist() == [True, False]
    assert dpjax.encode(pandas.Series([], dtype=object), low=0, high=7).bits == 3
    with pytest.raises(TypeError, match="values must be one column, got MultiIndex of 2 levels"):
        dpjax.encode(pandas.MultiIndex.from_tuples([(1, 2)]))


def test_moments_of_pandas_keep_their_nanoseconds():
    pandas = pytest.importorskip("pandas")
    exact = np.array(["2024-01-01T00:00:00.123456789"], "M8[ns]")
    moment = pandas.Timestamp(exact[0])
    local = moment.tz_localize("UTC").tz_convert("Europe/Paris")
    assert dpjax.encode(exact, low=local, high="2025-01-01").encoding.value(0) == exact[0]
    for each in ([moment], [local], pandas.Series([local], dtype=object)):
        assert np.array_equal(back(dpjax.encode(each)), exact)
    step = pandas.Timedelta("100ns")
    assert dpjax.encode(exact, low="2024-01-01", high="2024-01-02", unit=step).encoding.unit == 100
    assert back(dpjax.encode([step])) == np.timedelta64(100, "ns")
    old = pandas.Timestamp("1500-01-01").as_unit("us")
    assert str(back(dpjax.encode([old]))[0]).startswith("1500-01-01")
    with pytest.raises(ValueError, match=r"that datetime64\[ns\] can hold, got 1 of 2 rows: 1"):
        dpjax.encode([moment, old])


def test_clipping_is_said():
    values = [-1.0, 0.5, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"values must lie from 0.0 to 1.0 \(or clip=True\), got 3 of 4 rows: 0, 2, 3"):
        dpjax.encode(values, low=0.0, high=1.0)
    clipped = dpjax.encode(values, low=0.0, high=1.0, clip=True)
    assert clipped.clipped == 3 and back(clipped).tolist() == [0.0, 0.5, 1.0, 1.0]
    assert dpjax.encode([-0.0], low=0.0, high=1.0).clipped == 0
    far = dpjax.encode([1e308, -1e308], unit=0.01, low=0, high=1, clip=True)
    assert far.clipped == 2 and back(far).tolist() == [1.0, 0.0]
    assert dpjax.encode(np.array([-7, 300]), low=0, high=255, clip=True).clipped == 2


def test_the_encoding_does_not_depend_on_the_values():
    one, other = (dpjax.encode(np.array(values), unit=0.5, low=0, high=8) for values in ([0.5, 7.0], [8.0]))
    assert one.encoding == other.encoding


def test_dates_agree_with_dates_alone():
    """A number of days since 1970 is no date, nor are 24 times as many hours."""
    bounds = {"low": "2000-01-01", "high": "2000-01-08"}
    days, hours = (dpjax.encode(np.array(["2000-01-02"], kind), **bounds).encoding for kind in ("M8[D]", "M8[h]"))
    numbers = dpjax.encode([10958], low=10957, high=10964).encoding
    assert (days.low, days.last) == (numbers.low, numbers.last)
    assert days.agrees(days) and not days.agrees(numbers) and not numbers.agrees(days) and not days.agrees(hours)


@pytest.mark.parametrize(
    ("values", "given", "origin"),
    [
        ([-3, 4], {"low": -10, "high": 20}, 10),
        ([-3.0, 4.0], {"unit": 0.5, "low": -10, "high": 20}, 20),
        ([3], {"low": 2, "high": 9}, 0),
        ([-3], {"low": -9, "high": -2}, 8),  # just beyond the last code
        ([1.5], {}, 0),
        (np.array(["2024-02-28"], "M8[D]"), {"low": "1960-01-01", "high": "2099-12-31"}, 0),
        (np.array([5], "m8[s]"), {"low": np.timedelta64(-60, "s"), "high": np.timedelta64(60, "s")}, 60),
    ],
)
def test_the_origin_is_the_code_of_zero(values, given, origin):
    encoding = dpjax.encode(values, **given).encoding
    assert encoding.origin == origin
    if 0 < origin <= encoding.last:
        assert encoding.value(origin) == encoding.value(origin) * 0


def test_an_outcome_is_no_code_but_holds_one():
    column = dpjax.encode([3, 4], low=2, high=9)
    outcome = dpjax.Outcome.of(column.points.x[0], dpjax.Status.OK, {})
    assert column.decode(outcome.hypothesis) == 3
    with pytest.raises(TypeError, match=r"outcome\.hypothesis"):
        column.decode(outcome)


@pytest.mark.parametrize(("code", "error"), [(-1, ValueError), (1.5, TypeError)])
def test_what_is_no_code_is_refused(code, error):
    with pytest.raises(error, match="code must be"):
        dpjax.encode([3], low=2, high=9).encoding.value(code)


def test_a_code_beyond_the_last_stands_for_the_upper_bound():
    """Algorithms release any code of `bits` bits."""
    for low, high, unit in ((0, 9, None), (0, 4, 0.5), (0.0, 4.0, None)):
        column = dpjax.encode([3.0] if unit or isinstance(low, float) else [3], low=low, high=high, unit=unit)
        assert column.encoding.last < 2**column.bits - 1 and column.decode(2**column.bits - 1) == high


def test_columns_come_back_without_a_loop_over_their_rows(monkeypatch):
    """As for `encode`: two million rows take a tenth of a second, in place of four seconds one by one."""
    values = np.round(np.random.default_rng(0).lognormal(10, 1, 1000), 2)
    columns = [dpjax.encode(values, unit=0.01, low=0, high=1_000_000), dpjax.encode(values)]
    columns += [dpjax.encode(values.astype(kind)) for kind in ("int32", "uint64", "M8[s]", "m8[s]")]

    def one_by_one(*args):
        raise AssertionError("rows are read one by one")

    monkeypatch.setattr(wide, "to_ints", one_by_one)
    for column in columns:
        rows = np.asarray(column.points.x)[:1000]
        with monkeypatch.context() as fast:
            fast.setattr(encoding.arguments, "integer", one_by_one)
            found, largest = column.decode(rows), [column.encoding.last, 2**column.bits - 1]
            listed = column.decode(encoding._of_limbs(rows).tolist() + largest)
        assert found.tolist() == [column.encoding.value(int(code)) for code in encoding._of_limbs(rows)]
        assert listed.tolist() == found.tolist() + column.encoding.values([column.encoding.last] * 2).tolist()
    monkeypatch.setattr(encoding, "round", one_by_one, raising=False)  # of quotients of fractions
    large = dpjax.encode([2**70 + 3, 2**70], low=2**70, high=2**70 + 9)
    assert encoding._of_limbs(large.points.x)[:2].tolist() == [3, 0]


def test_decimals_whose_parts_no_float_holds_are_decoded_exactly():
    """A numerator or denominator above 2^53 would be rounded before it is divided."""
    low, unit = Fraction(1, 3), Fraction(1, 3**20)
    column = dpjax.encode([Fraction(1, 2)], unit=unit, low=low, high=low + 3**33 * unit)
    large = [0, 5, 3**33 - 1, 3**33]
    assert column.decode(large).tolist() == [float(low + unit * code) for code in large]


@pytest.mark.slow
def test_outputs_of_algorithms_are_decoded():
    incomes = np.random.default_rng(0).lognormal(10, 1, 2000)
    column = dpjax.encode(incomes, unit=0.01, low=0, high=1_000_000, clip=True)
    learner = interior_point.exponential(bits=column.bits, epsilon=1.0)
    outcome = learner(jax.random.key(0), column.points)
    middle = column.decode(outcome.hypothesis)
    assert incomes.min() <= middle <= incomes.max() and np.shape(middle) == ()
    several = column.decode(np.asarray(column.points.x)[:6].reshape(2, 3, -1))
    assert several.shape == (2, 3)
    assert column.decode(2**column.bits - 1) == 1_000_000  # beyond the upper bound


@pytest.mark.parametrize("held", [np.asarray, jnp.asarray, lambda number: np.array(number, object)])
def test_units_and_bounds_may_be_arrays_without_axes(held):
    """They are read as they are written: a tenth in 32 bits is a tenth, for integers, too."""
    for values in ([1, 2, 3], [1.0, 2.0, 3.0]):
        for unit in (1, 0.5):
            wanted = dpjax.encode(values, unit=unit, low=0, high=5)
            assert dpjax.encode(values, unit=held(unit), low=held(0), high=held(5)).encoding == wanted.encoding
        tenth = dpjax.encode(values, unit=jnp.float32(0.1), low=0, high=5)
        assert tenth.encoding == dpjax.encode(values, unit=0.1, low=0, high=5).encoding
    for unit in (jax.random.key(0), np.array([1])):
        with pytest.raises(TypeError, match="unit must be"):
            dpjax.encode([1, 2], unit=unit, low=0, high=5)
    with pytest.raises(TypeError, match="low must be"):
        dpjax.encode([1.0], unit=1.0, low=np.ma.masked, high=5)


def test_an_empty_column_has_no_valid_row():
    column = dpjax.encode(np.array([], np.int64), low=0, high=7)
    assert int(column.points.n_valid) == 0 and column.bits == 3


DAY = np.array(["2024-01-01"], "M8[D]")
MASKED = np.ma.array([1.0, -999.0, 3.0], mask=[0, 1, 0])
NOT_A_NUMBER = decimal.Decimal("NaN")
SECOND = np.timedelta64(1, "s")
OF_ARRAYS = np.empty(2, object)
OF_ARRAYS[:] = [np.array([1, 2]), 3]
NANOSECOND = np.datetime64("2020-01-01T00:00:00.000000001")

WRONG = [
    (["a"], {}, TypeError, "values must be numbers .*, got text .<U1.: make numbers or dates of it first"),
    ("abc", {}, TypeError, "values must be a column"),
    (3, {}, TypeError, "values must be a column"),
    (np.array(3), {}, TypeError, "values must be a column"),
    ([[1, 2]], {}, ValueError, "values must have one axis"),
    ([1, None], {}, ValueError, "no missing entries, got 1 of 2 rows: 1"),
    (["1,000.5", None], {}, TypeError, "make numbers or dates of text first, got '1,000.5'"),
    ([1.0, float("nan")], {}, ValueError, "no missing entries, got 1 of 2 rows: 1"),
    (MASKED, {}, ValueError, "no missing entries, got 1 of 3 rows: 1"),
    (MASKED.astype(int), {}, ValueError, "no missing entries, got 1 of 3 rows: 1"),
    ([decimal.Decimal(1), decimal.Decimal("sNaN")], {}, ValueError, "no missing entries, got 1 of 2 rows: 1"),
    (np.array(["NaT", "2020"], "M8[Y]"), {}, ValueError, "no missing entries, got 1 of 2 rows: 0"),
    ([1, "x", None], {}, TypeError, "make numbers or dates of text first, got 'x'"),
    ([decimal.Decimal(1), "x"], {}, TypeError, r"values\[1\] must be a number"),
    ([decimal.Decimal(1), 0.5], {}, TypeError, r"values\[0\] must be a float or an integer, as there are floats"),
    ([2**53 + 1, 0.5], {}, ValueError, r"values\[0\] must be a number that float64 can hold, got 9007199254740993"),
    ([2**2000, 0.5], {}, ValueError, r"values\[0\] must be a number that float64 can hold, got an int of 2001 bits"),
    ([1, True, 2], {}, TypeError, r"values\[1\] must be a number, a date or a time, all of one kind, got True"),
    ([np.True_, 2], {}, TypeError, r"values\[0\] must be a number, a date or a time"),
    (OF_ARRAYS, {}, TypeError, r"values\[0\] must be a number, a date or a time, all of one kind, got array"),
    (["1", "2"], {}, TypeError, "make numbers or dates of it first"),
    (np.array(["1", "2"], object), {}, TypeError, "make numbers or dates of text first, got '1'"),
    ({1: 2}, {}, TypeError, "values must be a column of numbers, dates or times, got dict"),
    ({1, 2}, {}, TypeError, "values must be a column of numbers, dates or times, got set"),
    (np.array([SECOND, 1], object), {}, TypeError, r"values\[0\] must be a number, a date or a time"),
    ([[1], [1, 2]], {}, ValueError, "values must have one axis, got rows of different lengths"),
    (np.array([1], np.float16), {}, TypeError, "floats of 32 or 64 bits"),
    ([1 + 2j], {}, TypeError, "values must be numbers"),
    ([1.0], {"unit": 0.1}, ValueError, "unit, low and high must all be given"),
    ([1], {"unit": 2}, ValueError, "low and high must be given with a unit"),
    ([1.0], {"unit": 0.1, "low": 0, "high": 0.25}, ValueError, "high must be a whole number of units above low"),
    ([1.0], {"unit": -0.1, "low": 0, "high": 1}, ValueError, "unit must be > 0"),
    ([1.0], {"unit": 1e-18, "low": 0, "high": 1}, ValueError, "fewer than 2\\^53 steps"),
    ([1.0], {"unit": "cent", "low": 0, "high": 1}, TypeError, "unit must be a real number"),
    ([1.0], {"unit": NOT_A_NUMBER, "low": 0, "high": 1}, ValueError, "unit must be a finite number, got NaN"),
    ([1.0], {"unit": 1, "low": 0, "high": decimal.Decimal("Infinity")}, ValueError, "high must be a finite number"),
    ([1.0], {"unit": 10**399, "low": 0, "high": 0}, ValueError, "unit must be a number that float64 can hold"),
    ([1.0], {"unit": 1e-320, "low": 0, "high": 1}, ValueError, "fewer than 2\\^53 steps"),
    ([1.0], {"unit": np.timedelta64(1, "ns"), "low": 0, "high": 1}, TypeError, "unit must be a number, as the values"),
    (np.float32([1]), {"low": 0, "high": 1e39}, ValueError, r"high must be a number that float32 can hold, got 1e\+39"),
    (
        np.float32([1]),
        {"unit": 1e38, "low": -1e39, "high": 0},
        ValueError,
        "low must be a number that float32 can hold",
    ),
    ([1], {"low": 5, "high": 1}, ValueError, "high must be at least low"),
    ([1.0], {"low": 2.0, "high": 1.0}, ValueError, "high must be at least low, got 1.0 below 2.0"),
    (DAY, {"low": "2025-01-01", "high": "2024-01-01"}, ValueError, "at least low, got 2024-01-01 below 2025-01-01"),
    (DAY, {"low": ["2024-01-01", "2024-01-02"]}, TypeError, "low must be a date or a time"),
    (
        [1],
        {"unit": SECOND, "low": 0, "high": 1},
        TypeError,
        "unit must be a number, as the values are, got np.timedelta64",
    ),
    ([1], {"low": np.timedelta64(1, "ns")}, TypeError, "low must be a number, as the values are"),
    ([True], {"low": 0, "high": 2}, ValueError, "high must be from 0 to 1"),
    ([1], {"low": 0.5, "high": 1}, TypeError, "low must be an int"),
    ([1], {"low": "0", "high": 1}, TypeError, "low must be an int"),
    (np.array([1], np.uint8), {"low": -1}, ValueError, "low must be"),
    ([2**70], {}, ValueError, "^low and high must be given for Python's integers.* got None and None"),
    (
        np.array([1, 2], object),
        {"low": 10**5000},
        ValueError,
        "^low and high must be given .* an int of 16610 bits and None",
    ),
    (
        [1.0],
        {"unit": 0.1, "low": 0, "high": 10**5000},
        ValueError,
        "^high must be .* float64 can hold, got an int of 16610",
    ),
    ([2**70], {"low": 10**5000, "high": 0}, ValueError, "^high must be at least low, got 0 below an int of 16610 bits"),
    ([2**70], {"low": 0, "high": 10**5000, "unit": 3}, ValueError, "^high must be a whole number of units above low"),
    ([2**70], {"low": 0, "high": 2**4096}, ValueError, "^high must be less than 2.4096 units above low"),
    ([2**70], {"unit": 0.5, "low": 0, "high": 2**80}, ValueError, "unit must be a whole number, as the values are"),
    (np.array([1], "M8[D]"), {"low": 5}, TypeError, "low must be a date or a time"),
    (np.array([1], "M8[D]"), {"low": "soon"}, TypeError, "low must be a date or a time"),
    (np.array([1], "M8[D]"), {"low": "2024-01-01T12"}, ValueError, "one of the values that datetime64"),
    (
        DAY.astype("M8[ns]"),
        {"low": "1500-01-01"},
        ValueError,
        r"low must be one of the values that datetime64\[ns\] can",
    ),
    (np.array([1], "m8[s]"), {"unit": 60, "low": 0, "high": 1}, TypeError, "must be a duration"),
    # NumPy wraps these, to a year 1815 and to less than nothing.
    ([NANOSECOND, np.datetime64("9999-01-01")], {}, ValueError, r"datetime64\[ns\] can hold, got 1 of 2 rows: 1"),
    (
        [NANOSECOND, np.datetime64("9999-01-01")],
        {"low": "2000-01-01", "high": "2030-01-01", "clip": True},
        ValueError,
        "got 1 of 2 rows: 1",
    ),
    ([datetime.timedelta(1), datetime.timedelta(150_000_000)], {}, ValueError, r"\[us\] can hold, got 1 of 2 rows: 1"),
    ([np.timedelta64(10**18, "D"), SECOND], {}, ValueError, r"that (timedelta64\[s\]|one unit) can hold"),
    ([np.timedelta64(1, "Y"), np.timedelta64(1, "D")], {}, ValueError, "that one unit can hold: "),
    ([np.datetime64("2020", "as"), np.datetime64("9999")], {}, ValueError, "that one unit can hold: "),
    ([SECOND, 3], {}, TypeError, r"values\[0\] must be a number, a date or a time, all of one kind"),
    ([decimal.Decimal(1)], {"unit": 0.01, "low": 0, "high": 10**17}, ValueError, r"less than 2\^53 units in size"),
    ([1], {"clip": "yes"}, TypeError, "clip must be"),
]


def test_a_table_is_no_column_whatever_it_misses():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"values must have one axis, got shape \(2, 2\)"):
        dpjax.encode(pandas.DataFrame({"a": [1, 2], "b": [3, np.nan]}))


@pytest.mark.parametrize(("values", "given", "error", "match"), WRONG)
def test_bad_columns_are_refused_by_name(values, given, error, match):
    with pytest.raises(error, match=match):
        dpjax.encode(values, **given)


def test_bad_outputs_are_refused_by_name():
    column = dpjax.encode([1, 2], low=0, high=3)
    for wrong, error in ((-1, ValueError), (0.5, TypeError), ([1, None], TypeError), ("one", TypeError)):
        with pytest.raises(error, match="outputs must be"):
            column.decode(wrong)
    for wide_ones in (np.array([1, 2], np.uint32), np.zeros((3, 2), np.uint32)):  # of two limbs, not two codes
        with pytest.raises(ValueError, match=r"outputs must be wide integers of shape \(..., 1\)"):
            column.decode(wide_ones)
    with pytest.raises(TypeError, match="encoding must be"):
        dpjax.decode(1, column)
    assert dpjax.decode(1, column.encoding) == 1 and dpjax.encode is encoding.encode


@pytest.mark.parametrize("low", [b"now", ["now"], b"2020-01-01", ["2020-01-01"], np.array(["now"])])
def test_the_clock_is_no_bound_however_it_is_wrapped(low):
    with pytest.raises(TypeError, match="low must be a date or a time"):
        dpjax.encode(np.array(["2020-05-05"], "M8[s]"), low=low, high="2999-01-01")


def test_durations_have_units():
    with pytest.raises(TypeError, match="low must be a duration"):
        dpjax.encode(np.array([5], "m8[s]"), low="5", high="7")


def test_a_unit_that_is_nearly_whole_is_not_whole():
    for unit in (Fraction(2 * 10**17 + 1, 2), decimal.Decimal("100000000000000000.5")):
        with pytest.raises(ValueError, match="whole number of units"):
            dpjax.encode(np.array([1]), unit=unit, low=0, high=10**17)
    for unit in (decimal.Decimal("sNaN"), Fraction(10**400)):
        with pytest.raises(ValueError, match="unit must be"):
            dpjax.encode(np.array([1]), unit=unit, low=0, high=10)


def test_a_tenth_of_32_bits_is_a_tenth():
    tenth, low, high = np.float32(0.1), np.float32(0), np.float32(0.9)
    for given in ({"unit": tenth, "low": 0, "high": 1}, {"unit": 0.1, "low": low, "high": high}):
        assert dpjax.encode(np.array([0.1, 0.3], "f4"), **given).encoding.unit == Fraction(1, 10)


def test_codes_that_are_none_are_not_decoded():
    """Two codes in an array of 32 bits were read as one wide integer, and whatever was too large as the upper bound."""
    column = dpjax.encode(np.array([525.0, 1999.0]), unit=0.01, low=0, high=10**9)
    assert column.decode(np.array([52500, 199900])).tolist() == [525.0, 1999.0]
    with pytest.raises(ValueError, match="codes of 37 bits"):
        column.decode(np.array([52500, 199900], np.uint32))
    for wrong in (2**37 + 1, [2**37 + 1], np.array([1, 2**37 + 1]), [0, -1], [2**64], [-1, 2**63], -1):
        with pytest.raises(ValueError, match="outputs must be from 0 to"):
            column.decode(wrong)


def test_times_of_arrow_keep_their_nanoseconds():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    times = pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.array([1_234_567_891], arrow.time64("ns"))))
    column = dpjax.encode(times)
    assert column.encoding.dtype == "<m8[ns]" and int(column.decode(column.points.x)[0].astype(int)) == 1_234_567_891


def test_what_is_masked_is_no_data():
    x, mask = np.array([[1], [2]], np.uint32), [[0], [1]]
    with pytest.raises(ValueError, match="x must have no missing"):
        dpjax.Points.create(np.ma.array(x, mask=mask))
    with pytest.raises(ValueError, match="y must have no missing"):
        dpjax.Sample(x=x, y=np.ma.array([0, 1], mask=[0, 1]))


@pytest.mark.parametrize("unit", ["2D", "10s"])
def test_the_ends_of_odd_units_are_named(unit):
    values = np.array([10, 20]).view(f"M8[{unit}]")
    with pytest.raises(ValueError, match="1 of 2 rows: 0"):
        dpjax.encode(values, low=values[0] + np.timedelta64(1, unit.lstrip("0123456789")) * int(unit[:-1]))


def test_times_of_polars_keep_their_nanoseconds():
    pl = pytest.importorskip("polars")
    times = pl.Series([3_600_000_000_001, 3_600_000_000_002]).cast(pl.Time)
    column = dpjax.encode(times, low=datetime.time(0), high=datetime.time(2))
    assert column.decode(column.points.x).view("int64").tolist() == [3_600_000_000_001, 3_600_000_000_002]


@pytest.mark.parametrize("zone, hours", [("Z", 0), ("+02:00", 2), ("-0330", -3.5), ("+05", 5)])
@pytest.mark.filterwarnings("error")
def test_bounds_written_with_a_zone_are_converted_to_utc_without_a_warning(zone, hours):
    values = np.array(["2024-10-02T00:00:00"], "M8[s]")
    column = dpjax.encode(values, low=f"2024-10-01 06:00{zone}", high="2025-01-01", unit=np.timedelta64(1, "s"))
    assert column.encoding.value(0) == np.datetime64("2024-10-01T06:00:00") - np.timedelta64(int(hours * 3600), "s")


@pytest.mark.parametrize("zone", ["+99:99", "-24:00", "+02:60", " +02:00", " Z"])
@pytest.mark.filterwarnings("ignore:no explicit representation")
def test_bounds_written_with_a_zone_that_there_is_not_are_refused(zone):
    values = np.array(["2024-10-02T00:00:00"], "M8[s]")
    with pytest.raises((TypeError, ValueError), match="low must be"):
        dpjax.encode(values, low=f"2024-10-01 06:00{zone}", high="2025-01-01", unit=np.timedelta64(1, "s"))


def test_a_traced_column_is_refused_by_name():
    with pytest.raises(TypeError, match="values must be known"):
        jax.jit(lambda x: dpjax.encode(x).points.x)(np.arange(3))


@pytest.mark.parametrize(
    ("values", "row"),
    [
        ([0.5, np.int64(2**53 + 1)], 1),
        ([np.array(2**53 + 1), 0.5], 0),
        (np.array([np.uint64(2**64 - 1), 1.0], object), 0),
    ],
)
def test_integers_of_numpy_that_floats_round_are_refused(values: object, row: int) -> None:
    with pytest.raises(ValueError, match=rf"values\[{row}\] must be a number that float64 can hold"):
        encoding.encode(values)


def test_arrays_without_axes_count_as_the_scalars_that_they_hold() -> None:
    ends = encoding.encode([np.array(2**64 - 1, np.uint64), np.array(-1)], low=-1, high=2**64)
    assert wide.to_ints(ends.points.x) == [2**64, 0]
    with pytest.raises(TypeError, match=r"values\[0\] must be a number"):
        encoding.encode([np.array(True), 2])
    with pytest.raises(ValueError, match="no missing entries"), pytest.warns(UserWarning):
        encoding.encode([np.ma.array(3, mask=True), 1])


@pytest.mark.parametrize("dtype", ["M8[7D]", "M8[15m]", "m8[5s]"])
def test_ends_of_units_that_numpy_cannot_write_are_bounds(dtype: str) -> None:
    low, high = (np.array(end).view(dtype)[()] for end in (-(2**63) + 1, 2**63 - 1))
    column = encoding.encode(np.array([low, high]), low=low, high=high)
    assert wide.to_ints(column.points.x) == [0, 2**64 - 2]
    with pytest.raises(ValueError, match="high must be at least low"):
        encoding.encode(np.array([low]), low=high, high=low)
    with pytest.raises(TypeError, match="low must be a number, as the values are"):
        encoding.encode([1], low=high)
