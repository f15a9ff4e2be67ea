"""Whether a sample fits a learner: its kind, its width, its points."""

from typing import Any, TypeVar

import jax
import numpy as np

from dpjax.core import arguments
from dpjax.core import bits as packed
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
      bits: of the domain; may be traced, and then points are not checked.
      limbs: how many limbs points may have, the usual number first; nothing: any.
      k: how many labels an example must have.
      any_rows: whether the learner can do with any number of rows. Then a traced sample stays as it is: its program is compiled for
        that number anyway.
      counted: whether numbers of points enter floating point, as those of labels always do.

    Raises:
      TypeError: another kind, or points that are no wide numbers, in data put together by hand.
      ValueError: another k, other limbs, or, as far as they are not traced, a valid point outside, or more rows than floats hold.

    >>> sample = Sample(x=wide.from_ints([1, 2, 3, 4], 8), y=[0, 0, 1, 1])
    >>> fitted(sample, Sample, bits=8, limbs=(1,)).rows
    7
    """
    if not isinstance(sample, kind):
        raise TypeError(f"{name} must be a dpjax.{kind.__name__}, got {type(sample).__name__}")
    if isinstance(sample.x, Scaled):  # drawn by a distribution, in its bucket
        return sample
    wide_rows(f"{name}.x", sample.x)
    if k is not None and isinstance(sample, MultiSample) and sample.k != k:
        raise ValueError(f"{name} must have the labels of k = {k} concepts, got {sample.k}")
    if isinstance(sample, MultiSample):
        _check_packed(name, sample)
    width = sample.x.shape[-1]
    if limbs and width not in limbs:
        raise ValueError(f"{name}.x must have {limbs[0]} limbs for points of {bits} bits, got {width}")
    if counted or isinstance(sample, Sample | MultiSample):
        refuse_uncountable(f"{name}.n_valid", sample.n_valid)
    traced = any(map(arguments.is_traced, jax.tree.leaves(sample)))
    if not (traced or arguments.is_traced(bits)):
        wide.check_below(f"{name}.x", np.asarray(sample.x)[: int(sample.n_valid)], int(bits))
    return sample if traced and any_rows else sample.padded()


def _check_packed(name: str, sample: MultiSample) -> None:
    """ValueError if the labels are no packed ones of k concepts: their type and shape are known of traced ones, too."""
    shape = (sample.rows, packed.words_for(sample.k))
    got = getattr(sample.y, "dtype", type(sample.y).__name__), getattr(sample.y, "shape", None)
    if got != (np.uint32, shape):
        raise ValueError(
            f"{name}.y must be packed labels, uint32 of shape {shape}, as MultiSample.create makes them of zeros and ones,"
            f" got {got[0]} of shape {got[1]}"
        )
