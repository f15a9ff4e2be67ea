"""Argument checks. Each names the argument, the value and the rule; values under tracing pass unchecked.

A factory calls these on what the user wrote, before anything is compiled. Under `jit`, `vmap` or `grad` the value is a
tracer without a number: it is let through, and what goes wrong then shows in the outcome's status.

The packages that compute only on the host (`accounting`, `bounds`) use them too, so JAX is not imported here: where it has
not been loaded there are no tracers.
"""

import difflib
import functools
import math
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

CALIBRATIONS = ("printed", "proved")
# 64 times the least normal float32, so that the shares of a budget can be held as well; XLA takes subnormal numbers for 0.
_LEAST, _MOST = 2.0**-120, float(np.finfo(np.float32).max)
_LEAST_FRACTION = 2.0**-500
_LONGEST = 2**31 - 1  # indices are int32
_MOST_THINGS = 2**128  # the most that formulas in floats can count
_MOST_BITS = 2**24  # of a domain whose size 2^bits is written out: 2 MiB


def is_traced(value: Any) -> bool:
    """Whether `value` is a tracer, which has no number yet."""
    if isinstance(value, int | float | np.generic):  # nearly always so, and the class of tracers is slow to ask
        return False
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.core.Tracer)


def extremes(value: Any) -> list[Any]:
    """The values to check of a number or array: the number itself, the array's least and greatest, nothing if it is traced or empty."""
    if is_traced(value):
        return []
    if not hasattr(value, "dtype") or isinstance(value, np.generic):
        return [value]
    try:
        each = np.asarray(value)
        return [each.min().item(), each.max().item()] if each.size else []
    except TypeError:  # text, a PRNG key: to be refused for what it is
        return [value]


# ------------------------------------------------------------------------------------------------------------ numbers


def integer(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as int; TypeError unless an integer (bool is not), ValueError outside the bounds."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer | numbers.Integral):
        raise TypeError(f"{name} must be an int, got {value!r} of type {type(value).__name__}")
    value = int(value)
    if value < at_least or (at_most is not None and value > at_most):
        rule = f">= {at_least}" if at_most is None else f"from {at_least} to {at_most}"
        raise ValueError(f"{name} must be {rule}, got {brief(value)}")
    return value


def count(name: str, value: Any, *, at_least: int = 1, at_most: int = _MOST_THINGS) -> int:
    """`value` as a number of things, small enough for formulas in floats."""
    integer(name, value, at_least=at_least)
    return integer(name, value, at_least=at_least, at_most=at_most)


def size(name: str, value: Any, *, at_least: int = 1) -> int:
    """`value` as the length of an axis of an array, or the number of steps of a program."""
    return count(name, value, at_least=at_least, at_most=_LONGEST)


def domain_bits(value: Any, *, at_least: int = 1) -> int:
    """`value` as the bits of a domain whose size 2^bits is computed as an integer."""
    return integer("bits", value, at_least=at_least, at_most=_MOST_BITS)


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """`value` as float, for what is computed on the host; TypeError unless a real number, ValueError outside the bounds.

    NaN is refused, whatever the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, float | int | numbers.Real):
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    try:
        given = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold, got {brief(value)}") from None
    if math.isnan(given):
        rule = "a number, not NaN"
    elif above is not None and given <= above:
        rule = f"> {above}"
    elif at_least is not None and given < at_least:
        rule = f">= {at_least}"
    elif below is not None and given >= below:
        rule = f"< {below}"
    elif at_most is not None and given > at_most:
        rule = f"<= {at_most}"
    else:
        return given
    raise ValueError(f"{name} must be {rule}, got {value!r}")


def real(name: str, value: Any, **bounds: float | None) -> Any:
    """`value` as a parameter leaf: float64 on the host if it has a number, else the tracer in the default float.

    Host float64 keeps guarantees exact; a compiled program sees one dtype whatever Python type came in, so a sweep
    never retraces. The bounds are those of `number`; values that the default float would turn into 0 or infinity are refused, too.
    """
    if is_traced(value):
        import jax.numpy as jnp

        return jnp.asarray(value, float)
    return _held(name, np.float64(number(name, plain(value), **bounds)))


def plain(value: Any) -> Any:
    """The number in an array without axes; anything else (a PRNG key, too) as it is."""
    plain = isinstance(getattr(value, "dtype", None), np.dtype) and value.ndim == 0 and hasattr(value, "item")
    return value.item() if plain else value


def in_plain_numbers(function: Callable[P, R]) -> Callable[P, R]:
    """The function, but NumPy's numbers and arrays without axes become Python's numbers, and what float64 cannot hold is refused.

    Otherwise 2^bits is 0 if bits is an int64 of 64, and a formula in which one number is a float32 has only its precision. SciPy takes no
    fractions, so they become the nearest floats. Numbers that are each in range may be too large or too small together: where Python
    raises an OverflowError, or divides by 0, a ValueError says so.

    >>> in_plain_numbers(lambda bits: 2**bits)(np.int64(64)) == 2**64
    True
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        plain = tuple(map(_of_python, args))
        named = {name: _of_python(value) for name, value in kwargs.items()}
        try:
            return function(*plain, **named)  # type: ignore[arg-type]
        except (OverflowError, ZeroDivisionError) as error:
            given = ", ".join([*map(_shown, plain), *(f"{name}={_shown(value)}" for name, value in named.items())])
            what = f"{getattr(function, '__name__', 'a formula')}({given})"
            raise ValueError(f"{what} must have numbers whose powers and quotients float64 can hold: {error}") from None

    return called


def _shown(value: Any) -> str:
    return brief(value) if isinstance(value, int) else repr(value)


def _of_python(value: Any) -> Any:
    found = value if is_traced(value) else plain(value)
    try:
        return float(found) if isinstance(found, Fraction) else found
    except OverflowError:  # to be refused by its name
        return found


def known(name: str, value: Any, **bounds: float | None) -> float:
    """The number in a parameter leaf, for guarantees, sample sizes and whatever else is computed on the host.

    Raises:
        TypeError: a traced value, or a batch of them.
    """
    if is_traced(value):
        raise TypeError(f"{name} must be a known number: the host computes with it, got {value!r}")
    return number(name, plain(value), **bounds)


def known_fraction(name: str, value: Any) -> float:
    """A number strictly between 0 and 1 for the host."""
    return known(name, value, above=0.0, below=1.0)


def known_integer(name: str, value: Any) -> int:
    """The integer in a parameter leaf; TypeError for a traced one."""
    known(name, value)
    return int(value)


def counts(*, at_least: int = 1, unbounded: bool = False, **values: Any) -> None:
    """Refuses all but integers >= `at_least` that formulas in floats can hold; if `unbounded`, as sizes of domains are, of any size."""
    for name, value in values.items():
        integer(name, value, at_least=at_least) if unbounded else count(name, value, at_least=at_least)


def positive(**values: Any) -> None:
    """Refuses all but finite numbers > 0."""
    for name, value in values.items():
        number(name, value, above=0.0, below=math.inf)


def fractions(**values: Any) -> None:
    """Refuses all but numbers strictly between 0 and 1, large enough that float64 holds products of two, and quotients."""
    for name, value in values.items():
        number(name, value, above=0.0, at_least=_LEAST_FRACTION, below=1.0)


def fraction(name: str, value: Any) -> Any:
    """A parameter leaf strictly between 0 and 1."""
    return real(name, value, above=0.0, below=1.0)


# ------------------------------------------------------------------------------------------------------------ privacy


def epsilon(value: Any, name: str = "epsilon") -> Any:
    """A privacy parameter epsilon: a finite number > 0, so far from the largest float that multiples of it are finite, too."""
    held = real(name, value, above=0.0, below=math.inf)
    if not is_traced(held) and not _exact() and held > 2.0**120:
        raise ValueError(f"{name} must be <= 2^120 in float32 (or enable x64), got {float(held)!r}")
    return held


def delta(value: Any, name: str = "delta", *, positive: bool = True) -> Any:
    """A privacy parameter delta: in (0, 1), or in [0, 1) where the mechanism also works with delta = 0."""
    held = real(name, value, above=0.0 if positive else None, at_least=0.0, below=1.0)
    if not is_traced(held) and not _exact() and np.float32(held) == 1:
        raise ValueError(f"{name} must be below 1 in float32, too (or enable x64), got {float(held)!r}")
    return held


def _exact() -> bool:
    """Whether compiled programs compute in float64."""
    jax = sys.modules.get("jax")
    return jax is None or jax.config.jax_enable_x64


def most_counted() -> int:
    """The number up to which the default float holds all integers exactly: 2^24, or 2^53 under `jax.enable_x64(True)`."""
    return 2**53 if _exact() else 2**24


def _held(name: str, value: Any) -> Any:
    """The leaf; ValueError if compiled programs would take it for 0 or infinity: they compute in float32 where x64 is not enabled."""
    if value == 0.0 or math.isinf(value) or _exact() or _LEAST <= abs(value) <= _MOST:
        return value
    small, end = abs(value) < 1, math.copysign(_LEAST if abs(value) < 1 else _MOST, value)
    rule = f"{'at least' if small == (value > 0) else 'at most'} {end:.2g}"
    raise ValueError(f"{name} must be {rule}, which float32 can hold (or enable x64), got {float(value)!r}")


def least() -> float:
    """The least positive number that compiled programs are given."""
    return 2.0**-1020 if _exact() else _LEAST


def brief(value: Any) -> str:
    """The value; a long integer by its length, as Python may refuse to write it."""
    length = int(value).bit_length()
    return str(value) if length <= 1024 else f"an int of {length} bits"


# -------------------------------------------------------------------------------------------------------- other things


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """`value`, if it is one of the options; ValueError for the rest."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}{meant(value, options)}")
    return value


def meant(value: Any, options: Iterable[str]) -> str:
    """The end of a message about a name that is none of the options: the one that is spelt nearly so, if there is one.

    >>> meant("tresholds", ("points", "thresholds")), meant("lines", ("points", "thresholds"))
    ("; did you mean 'thresholds'?", '')
    """
    near = difflib.get_close_matches(value, options, n=1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}")
    return bool(value)


def calibration(value: Any) -> str:
    """Which constants are used: "printed" (the paper's to the letter) or "proved" (those for which the claim holds)."""
    return choice("calibration", value, CALIBRATIONS)


def array(name: str, value: Any) -> np.ndarray:
    """`value` as a NumPy array of real numbers or booleans; TypeError if NumPy cannot make one of it."""
    unmasked(name, value)
    try:
        found = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths, a PRNG key
        found = np.asarray("")
    if not holds_numbers(found):
        raise TypeError(f"{name} must be an array of numbers, got {value!r} of type {type(value).__name__}")
    return found


def unmasked(name: str, value: Any) -> None:
    """Refuses an array with masked entries: what lies under the mask is not data."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} must have no missing entries, got a masked array")


def holds_numbers(array: Any) -> bool:
    """Whether an array of NumPy's or JAX's holds real numbers or booleans; a PRNG key does not."""
    return getattr(array.dtype, "kind", "key") in tuple("biuf")


def is_row(value: Any) -> bool:
    """Whether the value is a list, a tuple, an array or a column: something that has a length and an order."""
    unordered = isinstance(value, str | bytes | Mapping | Set)
    return not unordered and hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def several(name: str, value: Any) -> list[Any]:
    """A list, tuple or array of things, as a list; TypeError for anything else."""
    if not is_row(value):
        raise TypeError(f"{name} must be a list, got {value!r} of type {type(value).__name__}")
    return list(value)


def instance(name: str, value: Any, kind: type) -> Any:
    """`value`, if it is an instance of this class; TypeError for the rest."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise TypeError(f"{name} must be {article} {kind.__name__}, got {value!r} of type {type(value).__name__}")
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """`value`, if it can be called; TypeError for the rest."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {value!r} of type {type(value).__name__}")
    return value


def key(value: Any, name: str = "key") -> Any:
    """A single PRNG key as `jax.random.key` makes it; two words (the older form) are made into one; either may be traced.

    Raises:
        TypeError: anything else, several keys included.

    >>> import jax
    >>> key(jax.random.key(0)).shape
    ()
    >>> key(0)
    Traceback (most recent call last):
    ...
    TypeError: key must be a single PRNG key as jax.random.key(seed) makes it, got 0 of type int
    """
    import jax

    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    typed = dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) and shape == ()
    if not (typed or (dtype == np.uint32 and shape == (2,))):
        got = f"{value!r} of type {type(value).__name__}" if dtype is None else f"an array of {dtype} of shape {shape}"
        raise TypeError(f"{name} must be a single PRNG key as jax.random.key(seed) makes it, got {got}")
    return value if typed else jax.random.wrap_key_data(value, impl="threefry2x32")
