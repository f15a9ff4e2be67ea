"""What the estimators share: the columns of X as codes between public bounds, keys from a random state, two classes."""

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from dpjax.core import arguments
from dpjax.data import encoding
from dpjax.data.columns import rows
from dpjax.data.encoding import Column
from dpjax.domains import wide


def encoded(x: np.ndarray, low: Any, high: Any, unit: Any) -> list[Column]:
    """Each column by `dpjax.encode`, values outside the bounds moved to the nearer one; bounds and units for all or one per column.

    >>> [column.bits for column in encoded(np.zeros((2, 2)), 0.0, [1.0, 100.0], 0.5)]
    [2, 8]
    """
    if low is None or high is None:
        raise ValueError(
            f"low and high must be given: they are public, and never read off the data; got {low} and {high}"
        )
    each = [_for_each(name, given, x.shape[1]) for name, given in (("low", low), ("high", high), ("unit", unit))]
    found = [
        encoding.encode(np.ascontiguousarray(column), low=start, high=end, unit=step, clip=True)
        for column, start, end, step in zip(x.T, *each, strict=True)
    ]
    for start, end, step in zip(*each, strict=True):
        _held(start, end, step)
    return found


def _held(low: Any, high: Any, unit: Any) -> None:
    """ValueError unless float64, in which scikit-learn passes columns, can tell apart steps of `unit` between these bounds."""
    if unit is None:
        return
    most = max(abs(float(low)), abs(float(high)))
    least = float(np.spacing(np.nextafter(most, 0.0)))
    if unit < least:
        raise ValueError(
            f"unit must be at least {least}, by which floats differ near {most}, got {unit}; shift the column towards 0"
        )


def _for_each(name: str, given: Any, columns: int) -> list[Any]:
    if given is None or np.ndim(given) == 0:
        return [given] * columns
    if isinstance(getattr(given, "index", None), Iterable):  # a pandas column, whose names might be in another order
        raise TypeError(f"{name} must be a list in the order of X's columns, got a {type(given).__name__} with names")
    listed = arguments.several(name, given)
    if len(listed) != columns:
        raise ValueError(f"{name} must be one number, or one for each of the {columns} columns, got {len(listed)}")
    return listed


def stacked(columns: list[Column]) -> tuple[Any, int]:
    """(Codes of all columns (rows, columns, limbs), bits of the widest)."""
    bits = max(column.bits for column in columns)
    limbs = wide.limbs_for(bits)
    return jnp.stack([wide.resize(column.points.x, limbs) for column in columns], axis=1), bits


def codes(column: Column) -> np.ndarray:
    """The codes of a column as integers of 64 bits."""
    return np.array(wide.to_ints(column.points.x), np.uint64)


def validated(estimator: Any, x: Any, *y: Any, **given: Any) -> Any:
    """scikit-learn's `validate_data` as float64; TypeError for dates and times, which it would turn into counts of their storage unit.

    ValueError names the rows that are not finite.
    """
    for each in _dtypes(x):
        temporal = getattr(each, "is_temporal", None)  # of polars
        if getattr(each, "kind", "") in ("m", "M") or (callable(temporal) and temporal()):
            raise TypeError(f"X must hold numbers, got dates or times ({each}): use dpjax.encode and dpjax.quantiles")
    if np.ma.is_masked(x):
        raise ValueError("X must have no missing entries, got a masked array")
    found = validate_data(estimator, x, *y, dtype=np.float64, ensure_all_finite=False, **given)
    wrong = ~np.isfinite(found[0] if y else found).all(axis=1)
    if wrong.any():
        raise ValueError(f"X must hold finite numbers, neither NaN nor infinity, got {rows(wrong)}")
    return found


def _dtypes(x: Any) -> list[Any]:
    """The types of the columns, and of those rows and entries of lists and object columns that have one of their own."""
    dtypes = getattr(x, "dtypes", None)
    found = [getattr(x, "dtype", None)] if dtypes is None or np.ndim(dtypes) == 0 else list(dtypes)
    entries: Any = ()
    if isinstance(x, list | tuple):
        entries = itertools.chain(x, *(row for row in x if isinstance(row, list | tuple) or _is_object(row)))
    elif not all(getattr(each, "kind", "O") in "biuf" for each in found):  # as scikit-learn would convert it
        array = np.asarray(x)
        found, entries = [*found, array.dtype], array.ravel() if array.dtype == object else ()
    return found + [each.dtype for each in entries if hasattr(each, "dtype")]


def _is_object(row: Any) -> bool:
    return getattr(row, "dtype", None) == np.dtype(object)


def all_or_nothing(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that leaves the estimator as it was if it fails: `validate_data` sets attributes before anything else is checked."""

    @functools.wraps(fit)
    def fitted(self: Any, *args: Any, **given: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **given)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return fitted


def coins(random_state: Any) -> np.random.RandomState:
    """The source of keys; for None the operating system's entropy, not NumPy's global state, which any line of a script may seed."""
    return np.random.RandomState() if random_state is None else check_random_state(random_state)


def fresh_key(random: np.random.RandomState) -> Any:
    """A new PRNG key."""
    words = random.randint(2**32, size=2, dtype=np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32")


def two_classes(y: np.ndarray, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """(The two classes in order, for each label the index of its class)."""
    found = _ordered("y", y)  # before scikit-learn puts them in order, whose error names nothing
    check_classification_targets(y)
    if type_of_target(y) not in ("binary", "multiclass"):
        raise ValueError(f"y must hold the two classes, one a row, got a target of type {type_of_target(y)}")
    found = found if classes is None else _ordered("classes", classes)
    if len(found) > 2:
        raise ValueError(f"Only binary classification is supported: y must hold two classes, got {len(found)}")
    if len(found) < 2:
        raise ValueError(f"y must hold two classes (or give both as `classes`), got 1 class: {found.tolist()}")
    strange = np.setdiff1d(y, found)
    if len(strange):
        raise ValueError(f"y must hold the classes {found.tolist()} only, got {strange.tolist()}")
    return found, np.searchsorted(found, y)


def _ordered(name: str, labels: Any) -> np.ndarray:
    """The different labels, in order; TypeError if they have none."""
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(each).__name__ for each in labels})
        raise TypeError(f"{name} must hold classes of one kind, to be put in order, got {', '.join(kinds)}") from None
