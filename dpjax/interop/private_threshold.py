"""A threshold on one column as a classifier of scikit-learn."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dpjax.core import arguments
from dpjax.data.sample import Sample
from dpjax.domains import wide
from dpjax.interop import columns
from dpjax.learners import thresholds


class PrivateThreshold(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that privately learns a threshold on one column, by the exponential mechanism (`learners.thresholds.exponential`).

    The threshold t is drawn with probability proportional to exp(epsilon/2 times the number of examples that it classifies correctly).

    Formal guarantees: `guarantee_`, (epsilon, 0) under REPLACE_ONE: the number of rows is public. So are all parameters, the names and the
    number of columns, and the two classes: those that occur in y if `classes` is None. Not promised: that errors raised for bad data reveal
    nothing; protection from floating-point side channels; a cryptographic generator.

    Args:
      epsilon: > 0.
      low, high: public bounds of the column; values outside are moved to the nearer one.
      unit: one step of the column; None for every float.
      column: the column of X that is used, by its number or, for a DataFrame, by its name.
      above: whether the second class is the one above the threshold; otherwise it is the one below.
      classes: both classes; None for those in y.
      random_state: None for coins of the operating system, or a seed or `RandomState`, for tests: whoever knows it, or holds the estimator
        that holds it, knows the coins, and clones share them (all folds and candidates of a search get the same noise).

    Attributes:
      threshold_: the second class is predicted from here on (below it, if not `above`), for values moved between the bounds and rounded to
        the unit; one step beyond `high` is infinity.
      classes_: both classes, in order.
      guarantee_: `dpjax.accounting.Guarantee`.

    >>> x = np.linspace(0, 10, 1001)[:, None]
    >>> learner = PrivateThreshold(epsilon=1.0, low=0, high=10, unit=0.01, random_state=0).fit(x, x[:, 0] > 3)
    >>> bool(2.5 < learner.threshold_ < 3.5), learner.guarantee_.epsilon, learner.predict([[1.0], [9.0]]).tolist()
    (True, 1.0, [False, True])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        low: Any = None,
        high: Any = None,
        unit: Any = None,
        column: int | str = 0,
        above: bool = True,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.low = low
        self.high = high
        self.unit = unit
        self.column = column
        self.above = above
        self.classes = classes
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True  # one threshold on one column, from few examples
        return tags

    @columns.all_or_nothing
    def fit(self, X: Any, y: Any) -> "PrivateThreshold":
        """One private run on the rows."""
        x, y = columns.validated(self, X, y)
        classes, label = columns.two_classes(y, self.classes)
        asked = {name: getattr(self, name) for name in ("column", "low", "high", "unit")}
        above = arguments.flag("above", self.above)
        data = self._encoded(x, asked)
        learner = thresholds.exponential(bits=data.bits, epsilon=self.epsilon)
        sample = Sample(x=data.points.x, y=label != above)
        released = learner(columns.fresh_key(columns.coins(self.random_state)), sample).hypothesis
        self.classes_, self._asked, self._above, self._code = classes, asked, above, wide.to_ints(released)[0]
        beyond = self._code > data.encoding.last
        self.threshold_ = float("inf") if beyond else float(data.encoding.value(self._code))
        self.guarantee_ = learner.guarantee()
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        check_is_fitted(self, "threshold_")
        x = columns.validated(self, X, reset=False)
        reached = columns.codes(self._encoded(x, self._asked)) >= self._code
        return self.classes_[(reached == self._above).astype(int)]

    def _encoded(self, x: np.ndarray, asked: dict[str, Any]) -> Any:
        """The column, encoded with these parameters: those of this fit, or of the last one."""
        column, low, high, unit = asked.values()
        if isinstance(column, str):
            names = getattr(self, "feature_names_in_", np.zeros(0, object)).tolist()
            if names.count(column) != 1:
                raise ValueError(f"column must be a number, or the name of one of X's columns, {names}, got {column!r}")
            column = names.index(column)
        column = arguments.integer("column", column, at_least=0, at_most=x.shape[1] - 1)
        return columns.encoded(x[:, [column]], low, high, unit)[0]
