"""Checks that data fit a learner: their kind, their width and their points."""

from typing import Any, TypeVar

import jax
import numpy as np

from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.data.assignments import Assignments
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.data.points import Points
from dpjax.data.sample import Sample, refuse_uncountable, wide_rows
from dpjax.data.weighted import Weighted
from dpjax.domains import wide
from dpjax.domains.scaled import Scaled

Kind = TypeVar("Kind", Sample, MultiSample, Points, Weighted)


def fitted(
    sample: Kind,
    kind: type[Kind],
    *,
    bits: Any,
    limbs: tuple[int, ...] = (),
    k: int | None = None,
    any_rows: bool = False,
    counted: bool = False,
    name: str = "sample",
) -> Kind:
    """The sample, checked against X_bits and padded to its bucket.

    Args:
      sample: what a learner was called with.
      kind: `Sample`, `MultiSample`, `Points` or `Weighted`.
      bits: number of bits of the domain; may be traced, and then points are not checked.
      limbs: the numbers of limbs that points may have, the usual one first; if empty, any.
      k: how many labels an example must have.
      any_rows: whether the learner can handle any number of rows. If so, a traced sample stays as it is: its program is compiled for
        that number anyway.
      counted: whether counts of points enter floating point, as counts of labels always do.

    Raises:
      TypeError: another kind, or, in data assembled by hand, points that are not wide integers.
      ValueError: another k or number of limbs, or, where they are not traced, a valid point outside the domain, or a number of valid rows
        that is impossible or that floats cannot hold.

    >>> sample = Sample(x=wide.from_ints([1, 2, 3, 4], 8), y=[0, 0, 1, 1])
    >>> fitted(sample, Sample, bits=8, limbs=(1,)).rows
    7
    """
    if not isinstance(sample, kind):
        raise TypeError(f"{name} must be a dpjax.{kind.__name__}, got {type(sample).__name__}")
    if isinstance(sample.x, Scaled):  # drawn by a distribution, and padded to its bucket already
        return sample
    wide_rows(f"{name}.x", sample.x)
    if k is not None and isinstance(sample, MultiSample) and sample.k != k:
        raise ValueError(f"{name} must have the labels of k = {k} concepts, got {sample.k}")
    if isinstance(sample, MultiSample):
        _check_packed(name, sample)
    width = sample.x.shape[-1]
    if limbs and width not in limbs:
        raise ValueError(f"{name}.x must have {limbs[0]} limbs for points of {bits} bits, got {width}")
    counted = counted or isinstance(sample, Sample | MultiSample)
    n = _checked_count(f"{name}.n_valid", sample.n_valid, sample.rows, counted=counted)
    traced = any(map(arguments.is_traced, jax.tree.leaves(sample)))
    if not (traced or arguments.is_traced(bits)):
        wide.check_below(f"{name}.x", np.asarray(sample.x)[:n], int(bits))
    if isinstance(sample, Weighted) and not traced:
        sample.check_increasing(name)
    return sample if traced and any_rows else sample.padded()


def _check_packed(name: str, sample: MultiSample) -> None:
    """ValueError unless these are packed labels of k concepts: type and shape are known of traced labels, too."""
    shape = (sample.rows, packed.words_for(sample.k))
    got = getattr(sample.y, "dtype", type(sample.y).__name__), getattr(sample.y, "shape", None)
    if got != (np.uint32, shape):
        raise ValueError(
            f"{name}.y must be packed labels, uint32 of shape {shape}, as MultiSample.create makes them of zeros and ones,"
            f" got {got[0]} of shape {got[1]}"
        )


def fitted_examples(
    data: Any,
    *,
    axes: int,
    limbs: int,
    bits: Any,
    positive_only: bool = False,
    at_least: int = 1,
    name: str = "examples",
) -> Examples:
    """Examples, checked against X_bits^axes and padded to their bucket, or that of `at_least` rows.

    Args:
      data: what a learner was called with.
      axes, limbs: the number of coordinates of a point, and the number of limbs of each.
      bits: number of bits of a coordinate; may be traced, and then coordinates are not checked.
      positive_only: whether the points of negative examples are not used, and may be anywhere.
      at_least: a number of rows, to whose bucket the examples are padded if it is larger than their own.
      name: what errors call the data.

    Raises:
      TypeError: another kind, or, in data assembled by hand, arrays of other types.
      ValueError: other shapes, or, where they are not traced, a wrong number of valid rows, a label other than 0 and 1, or a valid point
        outside the domain.
    """
    if not isinstance(data, Examples):
        raise TypeError(f"{name} must be dpjax.data.examples.Examples, got {type(data).__name__}")
    _check_words(f"{name}.x", data.x)
    if len(data.x.shape) != 3 or data.x.shape[1:] != (axes, limbs):
        raise ValueError(f"{name}.x must have shape (rows, {axes}, {limbs}), got {data.x.shape}")
    if getattr(data.y, "dtype", np.dtype(object)).kind not in "biu":
        got = getattr(data.y, "dtype", type(data.y).__name__)
        raise TypeError(f"{name}.y must hold labels 0 and 1 as integers or booleans, got {got}")
    if data.y.shape != data.x.shape[:1]:
        raise ValueError(f"{name}.y must have one label a row, shape {data.x.shape[:1]}, got {data.y.shape}")
    n = _checked_count(f"{name}.n_valid", data.n_valid, data.rows)
    if n is not None and not arguments.is_traced(data.y):
        # In NumPy, because JAX would turn them into tracers while another function is traced.
        y = np.asarray(data.y)[:n]
        if not np.isin(y, (0, 1)).all():
            raise ValueError(f"{name}.y must hold labels 0 and 1 only, got {np.unique(y).tolist()}")
        if not (arguments.is_traced(data.x) or arguments.is_traced(bits)):
            x = np.asarray(data.x)[:n]
            wide.check_below(f"{name}.x", (x[y == 1] if positive_only else x).reshape(-1, limbs), int(bits))
    return data.padded(at_least)


def fitted_assignments(data: Any, variables: int) -> Assignments:
    """Assignments to this number of variables, checked and padded to their bucket.

    Raises:
      TypeError: another kind, or, in data assembled by hand, arrays of other types.
      ValueError: another number of variables, shapes that do not fit, or, if it is not traced, a wrong number of examples.
    """
    arguments.instance("data", data, Assignments)
    for name, array, axes in (("data.x", data.x, 2), ("data.y", data.y, 1)):
        _check_words(name, array)
        if array.ndim != axes:
            raise ValueError(f"{name} must have {axes} axes, got shape {array.shape}")
    if data.variables != variables:
        raise ValueError(f"data must have {variables} variables, got {data.variables}")
    if data.y.shape != data.x.shape[:1]:
        raise ValueError(f"data.y must have as many words as data.x, {data.x.shape[0]}, got shape {data.y.shape}")
    _checked_count("data.n_valid", data.n_valid, data.rows)
    return data.padded()


def _check_words(name: str, array: Any) -> None:
    """TypeError unless it is an array of words, as constructors make them."""
    if getattr(array, "dtype", None) != np.uint32:
        raise TypeError(f"{name} must be a uint32 array, got {getattr(array, 'dtype', type(array).__name__)}")


def _checked_count(name: str, n_valid: Any, rows: int, *, counted: bool = True) -> int | None:
    """How many rows count, checked, or None if traced: at most `rows` and, if they are `counted`, no more than floats can count."""
    if arguments.is_traced(n_valid):
        return None
    n = arguments.integer(name, arguments.plain(n_valid), at_least=0, at_most=rows)
    if counted:
        refuse_uncountable(name, n)
    return n
