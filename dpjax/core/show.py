"""How values are shown: numbers as numbers, wide integers as integers, anything large as its type and shape."""

import decimal
from typing import Any

import numpy as np

FEW = 8  # the most entries that are all listed
HEAD = 4  # how many are listed if there are more
LONG = 80  # characters: an object within another one that needs more is shown by the name of its type


def short(value: Any) -> str:
    """A value in few words.

    >>> import jax.numpy as jnp
    >>> short(jnp.float32(0.1)), short({"a": jnp.arange(3), "b": (jnp.zeros((9, 2)), None)})
    ('0.1', '{a: [0, 1, 2], b: (float32[9,2], None)}')
    """
    return _nested(value, _array)


def wide(value: Any) -> str:
    """As `short`, but uint32 arrays are wide integers (`dpjax.domains.wide`): the last axis holds the limbs, the most significant first.

    >>> import jax.numpy as jnp
    >>> wide(jnp.array([1, 5], jnp.uint32)), wide(jnp.array([[0, 5], [2, 0]], jnp.uint32))
    ('4294967301', '[5, 8589934592]')
    """
    return _nested(value, _wide_array)


def at_least(value: float, digits: int = 4) -> str:
    """A number in `digits` digits, rounded up: for quantities that are promised not to exceed it.

    >>> at_least(0.46211716), at_least(1e-6), at_least(0.25), at_least(float("inf"))
    ('0.4622', '1e-06', '0.25', 'inf')
    """
    return _rounded(value, digits, decimal.ROUND_CEILING)


def at_most(value: float, digits: int = 4) -> str:
    """A number in `digits` digits, rounded down: for quantities that are known not to be less.

    >>> at_most(0.46218716)
    '0.4621'
    """
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def _rounded(value: float, digits: int, way: str) -> str:
    rounded = decimal.Context(prec=digits, rounding=way).create_decimal(repr(float(value)))
    return f"{float(rounded):.{digits}g}"


def whole(value: float) -> str:
    """A given number with all of its digits, without a superfluous decimal point.

    >>> whole(1.0), whole(1.0000049), whole(1e-6)
    ('1', '1.0000049', '1e-06')
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def but(beta: float) -> str:
    """1 - beta, never rounded up: it is written as a difference for a small beta, where it would be shown as 1.

    >>> but(0.05), but(0.9), but(1e-7), but(1e-20)
    ('0.95', '0.1', '1 - 1e-07', '1 - 1e-20')
    """
    shown = f"{1 - beta:g}"
    return shown if float(shown) < 1 and float(shown) <= (1 - beta) * (1 + 1e-12) else f"1 - {at_least(beta, 6)}"


def listed(entries: list[Any]) -> str:
    """A list; if it is long, only its first few entries are shown.

    >>> listed([1, 2]), listed(list(range(100)))
    ('[1, 2]', '[0, 1, 2, 3, ...]')
    """
    shown = entries if len(entries) <= FEW else entries[:HEAD]
    return f"[{', '.join([*map(str, shown), *(['...'] if len(entries) > FEW else [])])}]"


def integers(rows: Any) -> list[int]:
    """Rows of limbs as Python integers."""
    return [int.from_bytes(row.tobytes(), "big") for row in np.asarray(rows).astype(">u4")]


def concrete(value: Any) -> bool:
    """Whether a value is an array of known numbers: not traced, nor a PRNG key, nor a description of an array."""
    if isinstance(value, np.ndarray | np.generic):
        return True
    import jax  # not above: rooms that do not load JAX show numbers, too

    known = isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)
    return known and not jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended) and value.is_fully_addressable


def _nested(value: Any, array: Any) -> str:
    """Dictionaries, lists and tuples of arrays."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_nested(entry, array)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_nested(entry, array) for entry in value)}]"
    if type(value) is tuple:
        return f"({', '.join(_nested(entry, array) for entry in value)}{',' if len(value) == 1 else ''})"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return array(value)
    shown = repr(value)
    return shown if len(shown) <= LONG else f"{type(value).__name__}(...)"


def _array(value: Any) -> str:
    """Scalars and short vectors by their entries, else type and shape."""
    if not concrete(value) or np.ndim(value) > 1 or np.size(value) > FEW:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    entries = np.asarray(value)
    return str(entries[()]) if entries.ndim == 0 else listed(list(entries))


def _wide_array(value: Any) -> str:
    if value.dtype != np.uint32 or not concrete(value) or np.ndim(value) not in (1, 2):
        return _array(value)
    rows = integers(np.atleast_2d(value))  # NumPy's: while something is traced, indexing by JAX gives tracers
    return str(rows[0]) if value.ndim == 1 else listed(rows)


def as_chosen(value: Any) -> str:
    """A setting as somebody chose it: a float without its last digits, in which 0.1 + 0.2 differs from 0.3.

    >>> as_chosen(0.1 + 0.2)
    '0.3'
    """
    return str(float(f"{value:.12g}")) if isinstance(value, float) else str(value)
