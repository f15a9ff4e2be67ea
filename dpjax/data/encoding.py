"""Columns of numbers, dates and times as points of an ordered domain, and back.

An encoding is public: it depends on the type of the values, on the bounds and on the unit, never on the values themselves. (The type of a
Python list or an object array is inferred from its values, and so is the type that pandas chose for a column: `read_csv` turns integers
into floats if one is missing or has a decimal point, and `to_datetime` takes the finest unit that occurs. Where this must not become
known, fix the type beforehand, as by `read_csv(dtype=...)` or `.astype("float64")`.) It preserves the order, so that whatever lies between
two codes lies between their values. Values outside the bounds are detected before anything is rounded to a step; a float that is the
nearest float to a bound counts as equal to it.

| values | codes |
|---|---|
| integers, booleans, dates, times | steps of one unit from `low` on, exact; a value between two steps gets the nearest, ties to even |
| decimals (floats with a unit) | the same; unit and bounds are taken as they are written, so that 0.1 is a tenth |
| floats | all floats from `low` to `high` in order: a float's bits are read as an integer, those of negative ones inverted; -0 is 0 |

A float that misses the middle of two steps by no more than a few roundings, as 1.115 does in steps of 0.01, may get either of them.
"""

import dataclasses
import decimal
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from dpjax.core import arguments
from dpjax.data.columns import moment, read, rows, shown
from dpjax.data.outcome import Outcome
from dpjax.data.points import Points
from dpjax.domains import wide

MOST_STEPS = 2**53  # of decimals, so that float64 holds them
FRACTIONAL = float | np.floating | decimal.Decimal | Fraction
FAST = 2**51  # up to here a decimal times its denominator is off by 1/4 + 1/8 at most: the nearest integer is right


@dataclasses.dataclass(frozen=True)
class Encoding:
    """The values that codes stand for; made by `encode`, and contains nothing private.

    Attributes:
      kind: "integers", "decimals" or "floats".
      dtype: the type of the values, as NumPy writes it; "object" for integers beyond 64 bits.
      low: the value of code 0: an integer in units of the dtype, a fraction for decimals, or for floats its place in the order of floats.
      unit: one step, in the same units as `low`.
      last: the code of the upper bound.
    """

    kind: str
    dtype: str
    low: Any
    unit: Any
    last: int

    @property
    def bits(self) -> int:
        """d: codes are points of {0, ..., 2^d - 1}."""
        return max(1, self.last.bit_length())

    @property
    def origin(self) -> int:
        """The code of the value 0; 0 if all values are above, one more than the last code if all are below; 0 for dates and floats."""
        if self.kind == "floats" or np.dtype(self.dtype).kind == "M":
            return 0
        return min(max(round(Fraction(-self.low) / Fraction(self.unit)), 0), self.last + 1)

    def agrees(self, other: "Encoding") -> bool:
        """Whether every value has the same code under both encodings, whatever the types of integers and decimals.

        >>> narrow, wide = (encode(np.array([1, 7], kind), low=0, high=9).encoding for kind in ("uint8", "int64"))
        >>> narrow.agrees(wide), narrow.agrees(encode(np.array([1, 7]), low=1, high=9).encoding)
        (True, False)
        """
        numbers = all(each.kind != "floats" and np.dtype(each.dtype).kind not in "mM" for each in (self, other))
        alike = numbers or (self.kind, self.dtype) == (other.kind, other.dtype)
        return alike and (self.low, self.unit, self.last) == (other.low, other.unit, other.last)

    def value(self, code: int) -> Any:
        """The value that a code stands for, as a NumPy scalar (or a Python integer beyond 64 bits)."""
        return self.values([code])[0]

    def values(self, codes: Iterable[int]) -> np.ndarray:
        """The values that codes stand for; a code beyond that of the upper bound stands for the upper bound.

        Raises:
          TypeError, ValueError: a code is no integer, or below 0.
        """
        return self._values([min(arguments.integer("code", code, at_least=0), self.last) for code in codes])

    def _values(self, codes: Any) -> np.ndarray:
        """The values of codes up to `last`: a list of ints, or an array of uint64."""
        if self.dtype == "object":
            return np.array([self.low + self.unit * int(code) for code in codes], object)
        whole = np.asarray(codes, np.uint64)
        if self.kind == "decimals":
            return self._decimals_of(whole).astype(self.dtype)
        # Modulo 2^64, as these integers need not fit on the way; the results do.
        found = (np.uint64(self.low % 2**64) + np.uint64(self.unit) * whole).view(np.int64)
        if self.kind == "floats":
            return _unordered(found, self.dtype)
        return found.view(self.dtype) if np.dtype(self.dtype).kind in "mM" else found.astype(self.dtype)

    def _decimals_of(self, codes: np.ndarray) -> np.ndarray:
        """The float64 nearest to each decimal: a quotient of two integers, in NumPy where float64 holds both."""
        q = _denominator(self.low, self.unit)
        start, step = int(self.low * q), int(self.unit * q)
        if max(q, abs(start), step * max(self.last, 1), abs(start + step * self.last)) <= 2**53:
            return (np.int64(start) + np.int64(step) * codes.astype(np.int64)) / q
        return np.array([(start + step * code) / q for code in codes.tolist()])


@dataclasses.dataclass(frozen=True)
class Column:
    """An encoded column.

    Attributes:
      points: the codes, for any algorithm on points; with labels, `points.x` makes a `Sample`.
      encoding: how to read the codes; public.
      clipped: how many values lay outside the bounds and were moved to the nearer one. Not to be released: it depends on the data.
    """

    points: Points
    encoding: Encoding
    clipped: int

    @property
    def bits(self) -> int:
        """The number d of bits of the domain."""
        return self.encoding.bits

    def decode(self, outputs: Any) -> Any:
        """`decode` with the column's encoding."""
        return decode(outputs, self.encoding)


def encode(values: Any, *, unit: Any = None, low: Any = None, high: Any = None, clip: bool = False) -> Column:
    """Encodes a column as points of an ordered domain; see the module.

    Args:
      values: one axis of integers, booleans, floats, dates or times: a NumPy array, a pandas column, or a list. A list may also hold
        `decimal.Decimal`, `datetime.date`, `datetime.time`, `datetime.datetime` and pandas' moments. Moments with a zone are converted
        to UTC, and bounds without one are then taken to be in UTC, too. Floats and integers in one list become floats of 64 bits.
      unit: one step: a number for numbers (a fractional one turns integers into floats), a `numpy.timedelta64` or a
        `datetime.timedelta` for dates and times. Absent: 1 for integers, the array's own unit for dates and times; for floats, every
        float is a step. A unit that is given needs bounds.
      low, high: public bounds, both inclusive, in the values' own type, a whole number of units apart. Absent: all values of the type.
      clip: whether values outside the bounds are moved to the nearer one.

    Returns:
      A `Column`.

    Raises:
      TypeError: values, a unit or bounds of a type that cannot be encoded, or that is not the type of the values.
      ValueError: missing values or values outside the bounds (the message names their rows); more than one axis; a unit that is not
        positive or does not divide the distance of the bounds; a unit without bounds.

    >>> column = encode([19.99, 5.25, 1200.0], unit=0.01, low=0, high=1e6, clip=True)
    >>> column.bits, column.clipped, [float(value) for value in column.decode([525, 1999])]
    (27, 0, [5.25, 19.99])
    >>> from dpjax.optimizers import interior_point
    >>> days = encode(np.array(["2024-02-28", "2024-03-01", "2024-03-01"], "M8[D]"), low="2000-01-01", high="2099-12-31")
    >>> outcome = interior_point.exponential(bits=days.bits, epsilon=20.0)(jax.random.key(0), days.points)
    >>> str(days.decode(outcome.hypothesis))
    '2024-03-01'
    """
    clip = arguments.flag("clip", clip)
    array = read(values)
    unit, low, high = map(_scalar, (unit, low, high))
    if array.dtype.kind in "iu":
        unit = _of_integers(unit)
    for name, given in (("unit", unit), ("low", low), ("high", high)):
        # NumPy counts durations among the integers.
        if isinstance(given, np.timedelta64 | np.datetime64) and array.dtype.kind not in "mM":
            raise TypeError(f"{name} must be a number, as the values are, got {shown(given)}")
    if array.dtype.kind in "iu" and isinstance(unit, FRACTIONAL):
        array = array.astype(np.float64)
        encoding, codes = _decimals(array, unit, low, high)
        if max(abs(encoding.low), abs(encoding.low + encoding.unit * encoding.last)) >= MOST_STEPS:
            raise ValueError(
                "low and high must be less than 2^53 in size for integers "
                f"in steps of {_text(unit)}, got {_text(low)} and {_text(high)}"
            )
    elif array.dtype == object:
        encoding, codes = _python_numbers(array, unit, low, high)
    elif array.dtype.kind == "f":
        encoding, codes = (_floats if unit is None else _decimals)(array, unit, low, high)
    else:
        encoding, codes = _integers(array, unit, low, high)
    found, outside = codes(array)
    if outside.any() and not clip:
        least, most = map(_text, encoding.values([0, encoding.last]))
        rule = f"lie from {least} to {most} (or clip=True)"
        raise ValueError(f"values must {rule}, got {rows(outside)}")
    points = Points.create(_limbs(found, encoding.bits), len(array))
    return Column(points=points, encoding=encoding, clipped=int(np.count_nonzero(outside)))


def _text(value: Any) -> str:
    """A bound or a unit, for a message; a long integer by its length, as Python may refuse to write it."""
    return arguments.brief(value) if isinstance(value, int | Fraction) else shown(value, str)


def _scalar(value: Any) -> Any:
    """The number in an array without axes, in its own precision, since it will be taken as it is written; other values as they are."""
    plain = isinstance(value, np.ndarray | jax.Array) and value.ndim == 0 and isinstance(value.dtype, np.dtype)
    masked = isinstance(value, np.ma.MaskedArray)  # it would be read as 0
    return np.asarray(value)[()] if plain and not masked and not arguments.is_traced(value) else value


def _of_integers(unit: Any) -> Any:
    """The unit for a column of integers, as an int if it is a whole number."""
    if isinstance(unit, decimal.Decimal | Fraction):  # as floats, they would be rounded
        finite = isinstance(unit, Fraction) or unit.is_finite()
        return int(unit) if finite and Fraction(unit).denominator == 1 else unit
    return int(unit) if isinstance(unit, FRACTIONAL) and float(unit).is_integer() else unit


def decode(outputs: Any, encoding: Encoding) -> Any:
    """The values that codes stand for.

    Args:
      outputs: a wide integer, as algorithms release it, or an array of them, shape (..., limbs); or an int, or a list of ints.
      encoding: that of the column. A code beyond that of the upper bound, up to 2^bits, stands for the upper bound.

    Returns:
      A NumPy array of the values' type, with the outputs' leading axes; a scalar for a single output.

    Raises:
      TypeError, ValueError: outputs that are not codes.

    >>> int(decode(7, encode([1, 2], low=-5, high=10).encoding))
    2
    """
    arguments.instance("encoding", encoding, Encoding)
    if isinstance(outputs, Outcome):
        raise TypeError("outputs must be codes: outcome.hypothesis, once its status is OK, got an Outcome")
    if getattr(outputs, "dtype", None) == np.uint32 and np.ndim(outputs):
        limbs = wide.limbs_for(encoding.bits)
        if np.shape(outputs)[-1] != limbs:
            raise ValueError(f"outputs must be wide integers of shape (..., {limbs}), got shape {np.shape(outputs)}")
        codes = _of_limbs(outputs)
        largest = int(codes.max(initial=0))
        if largest > 2**encoding.bits:
            rule = f"codes of {encoding.bits} bits, limb by limb (or ints)"
            raise ValueError(f"outputs must be {rule}, got {arguments.brief(largest)}")
        found = encoding._values(np.minimum(codes, encoding.last).astype(codes.dtype))
        return found.reshape(np.shape(outputs)[:-1]) if np.ndim(outputs) > 1 else found[0]
    if np.ndim(outputs) == 0:
        return encoding.value(arguments.integer("outputs", outputs, at_least=0, at_most=2**encoding.bits))
    most = 2**encoding.bits  # the code of a threshold above all points
    whole = _of_ints(outputs)
    if whole is not None and int(whole.max(initial=0)) <= most <= 2**64:
        return encoding._values(np.minimum(whole, np.uint64(encoding.last)))
    return encoding.values([arguments.integer("outputs", each, at_least=0, at_most=most) for each in outputs])


# --------------------------------------------------------------------------------------------------- three encodings
#
# Each returns the encoding and a function from the array to (codes, which of them were clipped).

Codes = Callable[[np.ndarray], tuple[Any, np.ndarray]]


def _integers(array: np.ndarray, unit: Any, low: Any, high: Any) -> tuple[Encoding, Codes]:
    """Integers, and dates and times by the integers that represent them."""
    timed = array.dtype.kind in "mM"
    least, most = _ends(array.dtype)
    given = unit, low, high
    if unit is not None and (low is None or high is None):
        raise ValueError(f"low and high must be given with a unit, got {shown(low)} and {shown(high)}")
    low = least if low is None else _whole("low", low, array.dtype)
    high = most if high is None else _whole("high", high, array.dtype)
    step = 1 if unit is None else _step(unit, array.dtype)
    encoding = Encoding("integers", array.dtype.str, low, step, _last(step, low, high, given))

    def codes(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole = array.view(np.int64) if timed else array
        below = whole < low if low > least else np.zeros(whole.shape, bool)
        above = whole > high if high < most else np.zeros(whole.shape, bool)
        # Differences are taken modulo 2^64, so that none is too large.
        away = np.where(below, low, np.where(above, high, whole)) if below.any() or above.any() else whole
        away = away.astype(np.uint64) - np.uint64(low % 2**64)
        if step == 1:
            return away, below | above
        found, rest = np.divmod(away, np.uint64(step))
        other = np.uint64(step) - rest
        up = (rest > other) | ((rest == other) & (found % np.uint64(2) == 1))
        return found + up.astype(np.uint64), below | above

    return encoding, codes


def _decimals(array: np.ndarray, unit: Any, low: Any, high: Any) -> tuple[Encoding, Codes]:
    """Floats on a grid."""
    encoding = _grid(unit, low, high, array.dtype.str)
    if encoding.last >= MOST_STEPS:
        raise ValueError(
            f"unit must leave fewer than 2^53 steps from low to high, got {_text(unit)} for {_text(low)} to {_text(high)}"
        )
    q = _denominator(encoding.low, encoding.unit)
    start, step = int(encoding.low * q), int(encoding.unit * q)
    width = step * encoding.last
    fast = max(q, step, abs(start), abs(start + width), width) <= FAST
    least, most = (array.dtype.type(end / q) for end in (start, start + width))

    def codes(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        outside = (array < least) | (array > most)
        inside = np.clip(array, least, most)
        if not fast:
            return np.array(_nearest(inside.tolist(), encoding), np.uint64), outside
        steps = np.rint((inside.astype(np.float64) * q - start) / step)
        return np.clip(steps, 0, encoding.last).astype(np.uint64), outside

    return encoding, codes


def _nearest(values: Iterable[Any], encoding: Encoding) -> list[int]:
    """The codes of the nearest steps, computed exactly, one by one; integers in steps of 1 are not rounded."""
    if encoding.kind == "integers" and encoding.unit == 1:
        return [each - encoding.low for each in values]
    steps = (round((Fraction(each) - encoding.low) / encoding.unit) for each in values)
    return [min(max(step, 0), encoding.last) for step in steps]


def _floats(array: np.ndarray, unit: None, low: Any, high: Any) -> tuple[Encoding, Codes]:
    """All floats in order."""
    dtype = array.dtype
    ends = {"low": -math.inf if low is None else low, "high": math.inf if high is None else high}
    held = [_held(name, arguments.number(name, end), end, dtype) for name, end in ends.items()]
    first, final = _ordered(np.array(held, dtype)).tolist()
    encoding = Encoding("floats", dtype.str, first, 1, _last(1, first, final, (unit, low, high)))

    def codes(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = _ordered(array)
        outside = (places < first) | (places > final)
        return np.clip(places, first, final).astype(np.uint64) - np.uint64(first % 2**64), outside

    return encoding, codes


def _python_numbers(array: np.ndarray, unit: Any, low: Any, high: Any) -> tuple[Encoding, Codes]:
    """Python's integers beyond 64 bits, decimals and fractions."""
    whole = all(isinstance(each, int | np.integer) for each in array)
    if whole and unit is None and (low is None or high is None):
        ends = f"{_text(low)} and {_text(high)}"
        raise ValueError(f"low and high must be given for Python's integers in an array, or beyond 64 bits, got {ends}")
    encoding = _grid(1 if unit is None and whole else unit, low, high, "object" if whole else "<f8")
    if whole:
        encoding = dataclasses.replace(encoding, kind="integers", low=int(encoding.low), unit=int(encoding.unit))
    elif max(abs(encoding.low), abs(encoding.low + encoding.unit * encoding.last)) >= MOST_STEPS * encoding.unit:
        raise ValueError(
            "low and high must be less than 2^53 units in size, to be told apart as floats, "
            f"got {_text(low)} and {_text(high)}"
        )

    def codes(array: np.ndarray) -> tuple[list[int], np.ndarray]:
        least, most = encoding.low, encoding.low + encoding.unit * encoding.last
        outside = np.array([not least <= each <= most for each in array], bool)
        inside = (min(max(each, least), most) for each in array)  # before `Fraction`, which infinities do not have
        return _nearest(inside, encoding), outside

    return encoding, codes


def _grid(unit: Any, low: Any, high: Any, dtype: str) -> Encoding:
    """A grid in steps of the unit; bounds and unit are the fractions that were written."""
    if unit is None or low is None or high is None:
        kinds = "floats with a unit, decimals, fractions and Python's integers"
        raise ValueError(
            f"unit, low and high must all be given for {kinds}, got {_text(unit)}, {_text(low)} and {_text(high)}"
        )
    given = unit, low, high
    unit, low, high = (_written(name, each, dtype) for name, each in zip(("unit", "low", "high"), given, strict=True))
    return Encoding("decimals", dtype, low, unit, _last(unit, low, high, given))


def _written(name: str, value: Any, dtype: str) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise ValueError(f"{name} must be a finite number, got {value}")
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        found = Fraction(int(value))
    elif isinstance(value, decimal.Decimal | Fraction):
        found = Fraction(value)
    else:
        number = arguments.number(name, value, above=-math.inf, below=math.inf)
        # As it is written in its own precision: 0.1 in 32 bits is a tenth.
        found = Fraction(str(value) if isinstance(value, np.floating) else repr(number))
    if dtype == "object" and found.denominator > 1:
        raise ValueError(f"{name} must be a whole number, as the values are, got {_text(value)}")
    return found if dtype == "object" else _held(name, found, value, np.dtype(dtype))


def _held(name: str, value: Any, shown: Any, dtype: np.dtype) -> Any:
    """The value; ValueError if it is finite, but floats of this type would make it infinite."""
    if float(np.finfo(dtype).max) < abs(value) < math.inf:
        raise ValueError(f"{name} must be a number that {dtype} can hold, got {_text(shown)}")
    return value


def _last(unit: Any, low: Any, high: Any, shown: tuple[Any, Any, Any]) -> int:
    """The last code; error messages show the arguments as they were given."""
    step, least, most = map(_text, shown)
    if unit <= 0:
        raise ValueError(f"unit must be > 0, got {step}")
    if high < low:
        raise ValueError(f"high must be at least low, got {most} below {least}")
    last, rest = divmod(high - low, unit)
    if rest:
        raise ValueError(f"high must be a whole number of units above low, got {least} to {most} in steps of {step}")
    if int(last).bit_length() > wide.MAX_BITS:
        raise ValueError(f"high must be less than 2^{wide.MAX_BITS} units above low, got {least} to {most}")
    return int(last)


def _denominator(low: Fraction, unit: Fraction) -> int:
    return math.lcm(low.denominator, unit.denominator)


def _ends(dtype: np.dtype) -> tuple[int, int]:
    """The least and the greatest value, as integers in units of the type."""
    if dtype.kind == "b":
        return 0, 1
    ends = np.iinfo(np.int64 if dtype.kind in "mM" else dtype)
    return int(ends.min) + (dtype.kind in "mM"), int(ends.max)  # the least integer of 64 bits stands for NaT


def _whole(name: str, bound: Any, dtype: np.dtype) -> int:
    """A bound as an integer in the units of the values."""
    if dtype.kind in "mM":
        return int(moment(name, bound, dtype).view(np.int64))
    of_type = dtype.kind == "b" and isinstance(bound, bool | np.bool_)
    if of_type or (isinstance(bound, float | np.floating) and float(bound).is_integer()):
        bound = int(bound)
    least, most = _ends(dtype)
    return arguments.integer(name, bound, at_least=least, at_most=most)


def _step(unit: Any, dtype: np.dtype) -> int:
    """A unit as an integer in the units of the values."""
    if dtype.kind in "mM":
        name, steps = np.datetime_data(dtype)
        step = moment("unit", unit, np.dtype(f"m8[{steps}{name}]"))
        return int(step.view(np.int64))
    if isinstance(unit, float | np.floating) and float(unit).is_integer():
        unit = int(unit)
    return arguments.integer("unit", unit, at_least=1, at_most=2**63 - 1)


# ------------------------------------------------------------------------------------------------------ order of bits


def _ordered(array: np.ndarray) -> np.ndarray:
    """Integers in the order of the floats: the bits of a positive float, and the inverted bits of |x| for a negative one."""
    width = array.dtype.itemsize
    raw: Any = (array + array.dtype.type(0)).view(np.int32 if width == 4 else np.int64)  # -0 becomes 0
    most = raw.dtype.type(np.iinfo(raw.dtype).max)
    return np.where(raw < 0, raw ^ most, raw).astype(np.int64)


def _unordered(places: np.ndarray, dtype: str) -> np.ndarray:
    """The floats at these places in the order of floats."""
    raw: Any = places.astype(np.int32 if np.dtype(dtype).itemsize == 4 else np.int64)
    most = raw.dtype.type(np.iinfo(raw.dtype).max)
    return np.where(raw < 0, raw ^ most, raw).view(dtype)


def _limbs(codes: Any, bits: int) -> Any:
    """Codes as wide integers."""
    size = wide.limbs_for(bits)
    if not len(codes):
        return jax.device_put(np.zeros((1, size), np.uint32))
    if isinstance(codes, list):
        return wide.from_ints(codes, bits)
    if size == 1:
        return jax.device_put(codes.astype(np.uint32)[:, None])
    return jax.device_put(codes.astype(">u8").view(">u4").reshape(-1, 2).astype(np.uint32))


def _of_ints(outputs: Any) -> np.ndarray | None:
    """A row of ints from 0 to 2^64 - 1, in uint64; None for anything else, which is to be examined one by one."""
    if type(outputs) is np.ndarray:
        whole = outputs.dtype.kind in "iu" and outputs.ndim == 1 and outputs.min(initial=0) >= 0
        return outputs.astype(np.uint64) if whole else None
    if not isinstance(outputs, list | tuple) or set(map(type, outputs)) != {int}:
        return None
    try:
        return np.array(outputs, np.uint64)
    except OverflowError:
        return None


def _of_limbs(x: Any) -> np.ndarray:
    """Wide integers as codes: in uint64, or as Python's integers where they have more than 64 bits."""
    limbs = np.asarray(x).reshape(-1, np.shape(x)[-1])
    if limbs.shape[1] > 2:
        return np.array(wide.to_ints(limbs), object)
    high = limbs[:, 0].astype(np.uint64)
    return high if limbs.shape[1] == 1 else (high << np.uint64(32)) | limbs[:, 1]
