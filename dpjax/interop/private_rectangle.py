"""An axis-aligned rectangle as a classifier of scikit-learn."""

import operator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpjax.data.examples import Examples
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.interop import columns
from dpjax.learners import rectangles


class PrivateRectangle(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that privately learns a rectangle, inside which the second class is predicted (`learners.rectangles.rectangles`).

    Formal guarantees: `guarantee_`, (epsilon, delta) under ADD_OR_REMOVE_ONE for lists of rows, as proved for that learner. All parameters
    are public, and so are the names and the number of columns, and the two classes: those that occur in y if `classes` is None. Not
    promised: that errors raised for bad data reveal nothing; protection from floating-point side channels; a cryptographic generator.

    Args:
      epsilon: > 0. delta: in [0, 1). The whole run spends at most these.
      beta: the probability with which the learner may fail on enough examples.
      low, high: public bounds, for all columns or one each; values outside are moved to the nearer one.
      unit: one step of the columns, for all or one each; None for every float.
      classes: both classes; None for those in y.
      random_state: None for coins of the operating system, or a seed or `RandomState`, for tests: whoever knows it, or holds the estimator
        that holds it, knows the coins, and clones share them (all folds and candidates of a search get the same noise).

    Attributes:
      low_, high_: the sides, both inclusive, for values moved between the bounds and rounded to the unit; infinity and -infinity for the
        empty rectangle, which is the answer to too few examples.
      classes_: both classes, in order.
      guarantee_: `dpjax.accounting.Guarantee`.

    >>> x = np.random.default_rng(0).uniform(0, 10, (4000, 1))
    >>> inside = (2 < x[:, 0]) & (x[:, 0] < 9)
    >>> learner = PrivateRectangle(low=0, high=10, unit=0.01, random_state=0).fit(x, inside)
    >>> bool(learner.score(x, inside) > 0.9), learner.guarantee_.covers(1.0, 1e-6)
    (True, True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        beta: float = 0.1,
        low: Any = None,
        high: Any = None,
        unit: Any = None,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.beta = beta
        self.low = low
        self.high = high
        self.unit = unit
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # the empty rectangle is all that few examples allow
        return tags

    @columns.all_or_nothing
    def fit(self, X: Any, y: Any) -> "PrivateRectangle":
        """One private run on the rows."""
        x, y = columns.validated(self, X, y)
        classes, label = columns.two_classes(y, self.classes)
        asked = self.low, self.high, self.unit
        data = columns.encoded(x, *asked)
        codes, bits = columns.stacked(data)
        learner = rectangles.rectangles(
            axes=x.shape[1], bits=bits, epsilon=self.epsilon, delta=self.delta, beta=self.beta
        )
        outcome = learner(columns.fresh_key(columns.coins(self.random_state)), Examples.create(codes, label))
        low, high = wide.to_ints(outcome.hypothesis.low), wide.to_ints(outcome.hypothesis.high)
        self.classes_, self._asked, self._sides = classes, asked, (low, high)
        # No value has a code between its bound's and the end of the domain, which is the same for all columns.
        most = [min(code, column.encoding.last) for code, column in zip(high, data, strict=True)]
        self._empty = int(outcome.status) != Status.OK or any(map(operator.gt, low, most))
        if self._empty:
            self.low_, self.high_ = np.full(len(data), np.inf), np.full(len(data), -np.inf)
        else:
            self.low_, self.high_ = (
                np.array([column.encoding.value(code) for column, code in zip(data, side, strict=True)])
                for side in (low, high)
            )
        self.guarantee_ = learner.guarantee()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        check_is_fitted(self, "low_")
        x = columns.validated(self, X, reset=False)
        inside = np.full(len(x), not self._empty)
        for column, low, high in zip(columns.encoded(x, *self._asked), *self._sides, strict=True):
            code = columns.codes(column)
            inside &= (code >= low) & (code <= high)
        return self.classes_[inside.astype(int)]
