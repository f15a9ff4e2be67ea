"""What columns hold, brought to one array of NumPy's own types where there is one: numbers, dates and times, none of them missing."""

import datetime
import decimal
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

SHOWN = 5  # rows named in a refusal
MISSING = ("NAType", "NaTType", "NoneType")


def read(values: Any) -> np.ndarray:
    """The column as an array of one axis without missing values: of NumPy's own types if it can be."""
    if hasattr(values, "isna"):  # pandas: its own idea of what is missing, and of types
        _refuse_missing(np.asarray(values.isna()))
        kind = getattr(values, "dtype", None)
        if getattr(kind, "tz", None) is not None:
            values = values.dt.tz_convert("UTC").dt.tz_localize(None)
        values = values.to_numpy(dtype=getattr(kind, "numpy_dtype", None))
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise TypeError(f"values must be a column of numbers, dates or times, got {type(values).__name__}")
    array = np.asarray(values) if len(values) else np.asarray(values, getattr(values, "dtype", np.int64))
    if array.ndim != 1:
        raise ValueError(f"values must have one axis, got shape {array.shape}")
    if array.dtype.kind == "f" and isinstance(values, list | tuple) and all(isinstance(each, int) for each in values):
        array = np.asarray(values, object)  # NumPy rounds lists of integers that no type of its own holds
    if array.dtype == object:
        _refuse_missing(np.array([type(each).__name__ in MISSING or each != each for each in array], bool))
        array = _of_python(array)
    if array.dtype.kind in "fmM":
        _refuse_missing(np.isnan(array) if array.dtype.kind == "f" else np.isnat(array))
    if array.dtype.kind not in "biufmMO" or (array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)):
        raise TypeError(f"values must be numbers (floats of 32 or 64 bits), dates or times, got {array.dtype}")
    return array.astype(np.uint8 if array.dtype.kind == "b" else array.dtype.newbyteorder("="), copy=False)


def _refuse_missing(missing: np.ndarray) -> None:
    if missing.any():
        raise ValueError(f"values must have no missing entries, got {rows(missing)}")


def rows(wrong: np.ndarray) -> str:
    """How many rows, and the first of them."""
    places = np.flatnonzero(wrong)
    first = ", ".join(map(str, places[:SHOWN].tolist())) + (", ..." if len(places) > SHOWN else "")
    return f"{len(places)} of {len(wrong)} rows: {first}"


def _of_python(array: np.ndarray) -> np.ndarray:
    """Python's dates and times as NumPy's; numbers as they are."""
    kinds: list[tuple[type | tuple[type, ...], str, Callable[[Any], Any]]] = [
        (datetime.datetime, "M8[us]", _in_utc),
        (datetime.date, "M8[D]", lambda each: each),
        (datetime.timedelta, "m8[us]", lambda each: each),
        (datetime.time, "m8[us]", _since_midnight),
    ]
    for kind, dtype, convert in kinds:
        mixed = kind is datetime.date and any(isinstance(each, datetime.datetime) for each in array)
        if all(isinstance(each, kind) for each in array) and not mixed:
            return np.array([convert(each) for each in array], dtype)
    for row, each in enumerate(array):
        if not isinstance(each, int | np.integer | decimal.Decimal | Fraction) or isinstance(each, bool):
            raise TypeError(f"values[{row}] must be a number, a date or a time, like all others, got {each!r}")
    return array


def _in_utc(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is None else moment.astimezone(datetime.UTC).replace(tzinfo=None)


def _since_midnight(time: datetime.time) -> datetime.timedelta:
    if time.tzinfo is not None:
        raise TypeError(f"values must be times without a zone, got {time!r}")
    return datetime.datetime.combine(datetime.date.min, time) - datetime.datetime.min


def moment(name: str, bound: Any, dtype: np.dtype) -> np.ndarray:
    """A bound or a unit as one date, time or duration of this dtype; TypeError or ValueError if it is none that the dtype can hold."""
    if isinstance(bound, datetime.datetime):
        bound = _in_utc(bound)
    if isinstance(bound, datetime.time):
        bound = _since_midnight(bound)
    try:
        if isinstance(bound, int | float | np.number) and not isinstance(bound, np.timedelta64):
            raise TypeError("a number without a unit")
        found = np.array([bound], dtype.kind + "8")  # in a unit of its own
        same = found.astype(dtype)
    except (TypeError, ValueError) as error:
        rule = "a date or a time" if dtype.kind == "M" else "a duration"
        raise TypeError(f"{name} must be {rule}, got {bound!r}") from error
    if np.isnat(same[0]) or same.astype(found.dtype)[0] != found[0]:
        raise ValueError(f"{name} must be one of the values that {dtype} can hold, got {bound!r}")
    return same[0]
