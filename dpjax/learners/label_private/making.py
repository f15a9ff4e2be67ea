"""The factories of label-private and semi-private learners; see the package."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.concepts.dichotomies import ParityClass, PointClass, RectangleClass, ThresholdClass
from dpjax.core import arguments
from dpjax.data.examples import Examples
from dpjax.data.fitting import fitted
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.learners.label_private import of_rectangles
from dpjax.learners.label_private.base import LabelPrivate
from dpjax.learners.label_private.of_parities import LabelPrivateParities
from dpjax.learners.label_private.of_points import LabelPrivatePoints
from dpjax.learners.label_private.of_rectangles import LabelPrivateRectangles
from dpjax.learners.label_private.of_thresholds import LabelPrivateThresholds

Class = ThresholdClass | PointClass | ParityClass | RectangleClass

_LEARNERS: dict[type, Any] = {
    ThresholdClass: LabelPrivateThresholds,
    PointClass: LabelPrivatePoints,
    ParityClass: LabelPrivateParities,
    RectangleClass: LabelPrivateRectangles,
}


def label_private(*, concepts: Class, epsilon: Any, unlabelled: int | None = None) -> LabelPrivate:
    """The label-private learner of BNS §6.1; see the package.

    Formal guarantees: (epsilon, 0) under REPLACE_LABEL, for arbitrary labels; points, their order and their number are public. Not
    promised: anything under REPLACE_ONE; protection from floating-point side channels; a cryptographic generator.

    Args:
      concepts: `thresholds(bits=...)`, `points(bits=...)` (whose `most` plays no part here), `parities(bits=...)` or
        `rectangles(bits=..., axes=...)` of this package.
      epsilon: > 0, finite.
      unlabelled: n, >= 1: the first n examples give points only, the others labels only, as in BNS; `bounds.label_private_unlabelled`
        says how many suffice. By default all examples give both.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    n = None if unlabelled is None else np.int32(arguments.size("unlabelled", unlabelled))
    return _learner(concepts, epsilon=arguments.epsilon(epsilon), unlabelled=n)


def semi_private(*, concepts: Class, public: Points | Examples, epsilon: Any) -> LabelPrivate:
    """The semi-private learner of BNS §6.2: B are public points from the same distribution; both point and label of an example are private.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE, for arbitrary points and labels of the sample; the public points are fixed. Not
    promised: anything for the public points; protection from floating-point side channels; a cryptographic generator.

    Args:
      concepts: as for `label_private`.
      public: points without labels (for rectangles `Examples`, whose labels play no part), drawn independently of the sample;
        `bounds.label_private_unlabelled` says how many suffice.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range, or public points outside the domain.

    >>> from dpjax import Points
    >>> from dpjax.concepts.dichotomies import thresholds
    >>> learner = semi_private(concepts=thresholds(bits=8), public=Points.create(wide.from_ints([3, 70, 200], 8), 3), epsilon=1.0)
    >>> print(learner.guarantee())
    (1.0, 0.0)-private under REPLACE_ONE
    """
    _check_class(concepts)
    if isinstance(concepts, RectangleClass):
        given: Any = arguments.instance("public", public, Examples)
        unlabelled = dataclasses.replace(given, y=jnp.zeros(np.shape(given.x)[:1], jnp.int32))
        fit: Any = of_rectangles.fitted(unlabelled, concepts, "public")
    else:
        points: Any = public
        fit = fitted(points, Points, bits=concepts.bits, limbs=(wide.limbs_for(int(concepts.bits)),), name="public")
    if hasattr(concepts, "refuse") and not any(map(arguments.is_traced, jax.tree.leaves(fit))):
        concepts.refuse("public.x", np.asarray(fit.x)[: int(fit.n_valid)])
    return _learner(concepts, epsilon=arguments.epsilon(epsilon), public=fit)


def _learner(concepts: Class, **given: Any) -> LabelPrivate:
    _check_class(concepts)
    limbs = concepts.limbs if isinstance(concepts, ThresholdClass) else wide.limbs_for(int(concepts.bits))
    return _LEARNERS[type(concepts)](concepts=concepts, limbs=limbs, **given)


def _check_class(concepts: Any) -> None:
    if type(concepts) not in _LEARNERS:
        raise TypeError(f"concepts must be a class, as label_private.thresholds(bits=...) makes it, got {concepts!r}")
