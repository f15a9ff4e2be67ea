"""Columns of numbers, dates and times, none of them missing, converted to one array, of one of NumPy's own types where possible."""

import datetime
import decimal
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from dpjax.core import arguments

SHOWN = 5  # rows named in a refusal
MISSING = ("NAType", "NaTType", "NoneType", "MaskedConstant")
WHOLE = int | np.integer
ARRAYS = np.ndarray | jax.Array
ZONED = re.compile(r"(.+[T ].*\S)(Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)")  # a date with a time and a zone
MOMENTS = (
    (datetime.datetime, "M8"),
    (datetime.date, "M8"),
    (datetime.timedelta, "m8"),
    (datetime.time, "m8"),
    (np.datetime64, "M8"),
    (np.timedelta64, "m8"),
)


def read(values: Any) -> np.ndarray:
    """The column as an array of one axis without missing values, of one of NumPy's own types if possible."""
    if arguments.is_traced(values):
        raise TypeError(f"values must be known: encode them outside of jit and vmap, got {values}")
    if getattr(values, "nlevels", 1) > 1:
        raise TypeError(f"values must be one column, got {type(values).__name__} of {values.nlevels} levels")
    if getattr(values, "ndim", 1) > 1:
        shape = f"shape {values.shape}" if hasattr(values, "shape") else f"{type(values).__name__} of {values.ndim}"
        raise ValueError(f"values must have one axis, got {shape}; of a table, take one column")
    if hasattr(values, "isna"):  # pandas has its own notions of missing values and of types
        _refuse_missing(np.asarray(values.isna()))
        kind: Any = getattr(values, "dtype", None)
        zoned = getattr(kind, "tz", None) is not None
        if str(kind) == "time64[ns][pyarrow]":  # Python's times would keep its microseconds only
            values = values.astype("int64[pyarrow]").to_numpy().view("m8[ns]")
        else:
            # Times with a zone are converted to UTC.
            values = values.to_numpy(dtype=f"M8[{kind.unit}]" if zoned else getattr(kind, "numpy_dtype", None))
    values = _scalars(_clock_times(values))
    if not arguments.is_row(values):
        raise TypeError(f"values must be a column of numbers, dates or times, got {type(values).__name__}")
    untyped = getattr(values, "dtype", "O") == "O"
    try:
        array = np.asarray(values, None if len(values) or not untyped else np.int64)
    except (OverflowError, TypeError):  # dates or times that no unit can hold
        array = np.asarray(values, object)
    except ValueError as error:
        rule = "have one axis, got rows of different lengths" if untyped else "be a column that NumPy can hold"
        raise ValueError(f"values must {rule}: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"values must have one axis, got shape {array.shape}")
    if array.dtype.kind not in "biufmMO" or (array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)):
        found = f"text ({array.dtype}): make numbers or dates of it first" if array.dtype.kind in "SU" else array.dtype
        raise TypeError(f"values must be numbers (floats of 32 or 64 bits), dates or times, got {found}")
    _refuse_missing(np.ma.getmask(values))
    if isinstance(values, list | tuple) and _loses(array.dtype, values):
        array = np.asarray(values, object)
    if array.dtype == object:
        missing = np.array([_is_missing(each) for each in array], bool)
        if missing.any() and (texts := [each for each in array if isinstance(each, str | bytes)]):
            raise TypeError(
                f"values must be numbers, dates or times: make numbers or dates of text first, got {texts[0]!r}"
            )
        _refuse_missing(missing)
        array = _of_python(array)
    if array.dtype.kind in "fmM":
        _refuse_missing(np.isnan(array) if array.dtype.kind == "f" else np.isnat(array))
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _clock_times(values: Any) -> Any:
    """Times of day of polars or Arrow in nanoseconds, which they would hand over as Python's times, of microseconds; others as they are."""
    if type(values).__module__.startswith("polars.") and str(getattr(values, "dtype", "")) == "Time":
        _refuse_missing(values.is_null().to_numpy())
        return values.to_physical().to_numpy().view("m8[ns]")
    if str(getattr(values, "type", "")) == "time64[ns]":
        _refuse_missing(np.asarray(values.is_null()))
        return np.asarray(values.cast("int64")).view("m8[ns]")
    return values


def _scalars(values: Any) -> Any:
    """A list with NumPy's scalars in place of arrays without axes, of which NumPy would make floats unseen; others as they are."""
    if not isinstance(values, list | tuple) or not any(issubclass(kind, ARRAYS) for kind in set(map(type, values))):
        return values
    # A masked array without axes becomes the constant that stands for a missing value.
    return [np.asanyarray(each)[()] if isinstance(each, ARRAYS) and each.ndim == 0 else each for each in values]


def _loses(dtype: np.dtype, values: Any) -> bool:
    """Whether NumPy may have rounded integers that its floats cannot hold, wrapped dates and times, or counted True as 1."""
    if dtype.kind in "mM":
        return any(getattr(each, "dtype", None) != dtype for each in values)
    if dtype.kind in "iu":
        return any(isinstance(each, bool | np.bool_) for each in values)
    return dtype.kind == "f" and any(isinstance(each, WHOLE) for each in values)


def _is_missing(each: Any) -> Any:
    if isinstance(each, decimal.Decimal):
        return each.is_nan()  # a signalling NaN may not be compared
    unequal = type(each).__name__ in MISSING or each != each
    return isinstance(unequal, bool | np.bool_) and unequal  # an array has one answer for each of its numbers


def _refuse_missing(missing: np.ndarray) -> None:
    if missing.any():
        raise ValueError(f"values must have no missing entries, got {rows(missing)}; drop them first (pandas: dropna)")


def rows(wrong: np.ndarray) -> str:
    """A text for error messages: how many rows are wrong, and the first of them."""
    places = np.flatnonzero(wrong)
    first = ", ".join(map(str, places[:SHOWN].tolist())) + (", ..." if len(places) > SHOWN else "")
    return f"{len(places)} of {len(wrong)} rows: {first}"


def _of_python(array: np.ndarray) -> np.ndarray:
    """Booleans, dates and times of Python or pandas, and floats with or without integers, in NumPy's types; other numbers as they are."""
    if all(isinstance(each, bool | np.bool_) for each in array):
        return array.astype(bool)
    for kind, dtype in MOMENTS:
        mixed = kind is datetime.date and any(isinstance(each, datetime.datetime) for each in array)
        if all(isinstance(each, kind) for each in array) and not mixed:
            if kind is datetime.datetime:
                _refuse_some_zones(array)
            return _of_moments([_plain("values", each) for each in array], dtype)
    floats = any(isinstance(each, float | np.floating) for each in array)
    kinds = WHOLE | float | np.floating if floats else WHOLE | decimal.Decimal | Fraction
    for row, each in enumerate(array):
        if not isinstance(each, kinds) or isinstance(each, bool | np.timedelta64):
            rule = "a number, a date or a time, all of one kind"
            if floats:
                rule = "a float or an integer, as there are floats"
            if isinstance(each, str | bytes):
                rule += ": make numbers or dates of text first"
            raise TypeError(f"values[{row}] must be {rule}, got {each!r}")
        # NumPy compares its integers with floats as floats, which hides what was rounded.
        exact = int(each) if isinstance(each, np.integer) else each
        if floats and not isinstance(each, float) and arguments.number(f"values[{row}]", exact) != exact:
            raise ValueError(f"values[{row}] must be a number that float64 can hold, got {each!r}")
    if floats:
        return array.astype(np.float64)
    return np.array([int(each) if isinstance(each, np.integer) else each for each in array], object)


def _refuse_some_zones(moments: np.ndarray) -> None:
    """Refuses times with a zone mixed with times without one, as these have no common order."""
    zoned = [each.tzinfo is not None for each in moments]
    if any(zoned) and not all(zoned):
        row = zoned.index(False)
        raise TypeError(f"values[{row}] must have a zone, as others have, got {moments[row]!r}")


def _of_moments(moments: list[Any], dtype: str) -> np.ndarray:
    """The moments in the finest of their units (days, microseconds, or pandas' own); ValueError for those that NumPy wraps or refuses."""
    try:
        array = np.array(moments, dtype)
        wrapped = np.array([not _holds(*pair) for pair in zip(array, moments, strict=True)], bool)
    except (OverflowError, TypeError) as error:
        raise ValueError(f"values must be dates or times that one unit can hold: {error}") from error
    if wrapped.any():
        raise ValueError(f"values must be dates or times that {array.dtype} can hold, got {rows(wrapped)}")
    return array


def _holds(found: Any, moment: Any) -> bool:
    """Whether `found` is this moment, and not its remainder modulo 2^64 units."""
    if isinstance(moment, datetime.timedelta):
        return found.astype("m8[us]").item() == moment
    own = np.datetime64(moment) if isinstance(moment, datetime.date) else moment
    return found.astype(own.dtype) == own


def _plain(name: str, moment: Any) -> Any:
    """A date or time as NumPy takes it without loss: in UTC, a time of day as a duration since midnight, pandas' to the nanosecond."""
    if isinstance(moment, datetime.time):
        if moment.tzinfo is not None:
            raise TypeError(f"{name} must have no time with a zone, got {moment!r}")
        return datetime.datetime.combine(datetime.date.min, moment) - datetime.datetime.min
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        try:
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        except OverflowError:
            raise ValueError(f"{name} must be a time that UTC has from year 1 to 9999, got {moment!r}") from None
    return moment.to_numpy() if hasattr(moment, "to_numpy") else moment


def _in_utc(text: str) -> Any:
    """A text with a zone as a moment in UTC, as NumPy takes it, but without NumPy's warning; other texts as they are."""
    zoned = ZONED.fullmatch(text.strip())
    if zoned is None:
        return text
    local, _, sign, hours, minutes = zoned.groups(default="0")
    ahead = int(hours) * 60 + int(minutes)
    return np.datetime64(local) - np.timedelta64(-ahead if sign == "-" else ahead, "m")


def shown(value: Any, write: Callable[[Any], str] = repr) -> str:
    """A bound or a unit, for a message."""
    try:
        return write(value)
    except OverflowError:  # NumPy 2.5 cannot write the ends of units of several seconds, hours or days
        return f"{value.astype(np.int64)} units of {value.dtype}"


def moment(name: str, bound: Any, dtype: np.dtype) -> np.ndarray:
    """A bound or a unit as one date, time or duration of this dtype; TypeError or ValueError if the dtype cannot hold it."""
    plain = _plain(name, bound)
    try:
        written = np.asarray(plain)
        text = written.dtype.kind in "US"
        if written.ndim or written.dtype.kind in "biufcS" or isinstance(plain, int):
            raise TypeError("a number without a unit, bytes, or several")
        if text and (dtype.kind == "m" or str(plain).strip().lower() in ("now", "today")):
            raise TypeError("a number without a unit, or the clock, which tells nothing that is written down")
        found = np.array(_in_utc(str(plain)) if text else plain, dtype.kind + "8").reshape(())  # in a unit of its own
        same = found.astype(dtype)
    except OverflowError:  # raised by newer versions of NumPy; older ones wrap
        same = np.array("NaT", dtype)
    except (TypeError, ValueError) as error:
        rule = (
            "a date or a time" if dtype.kind == "M" else "a duration, or a time of the day, of Python, NumPy or pandas"
        )
        raise TypeError(f"{name} must be {rule}, got {shown(bound)}") from error
    if np.isnat(same) or same.astype(found.dtype) != found:
        raise ValueError(f"{name} must be one of the values that {dtype} can hold, got {shown(bound)}")
    return same[()]
