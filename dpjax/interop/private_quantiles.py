"""Private quantiles of each column as a transformer of scikit-learn: every value becomes the number of quantiles below it."""

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, basic, calibrate
from dpjax.core import arguments
from dpjax.interop import columns
from dpjax.optimizers.quantiles import answer


class PrivateQuantiles(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Private quantiles of each column, as `dpjax.quantiles` finds them.

    With q fractions, `transform` sends a value to its bin 0, ..., q: the number of the column's quantiles that are at most the value.

    Formal guarantees: `guarantee_`, at most (epsilon, 0) under ADD_OR_REMOVE_ONE: each of the D columns gets epsilon/D. All parameters are
    public, and so are the names and the number of columns. Not promised: that errors raised for bad data reveal nothing; floating-point
    side channels; a cryptographic generator.

    Args:
      epsilon: > 0, for all columns together.
      fractions: fractions of the quantiles, increasing, between 0 and 1.
      low, high: public bounds, for all columns or one each; values outside are moved to the nearer one.
      unit: one step of the columns, for all or one each; None for every float.
      algorithm: as for `dpjax.quantiles`; by default the fractions decide. "rank_exponential" compiles fastest.
      random_state: None for coins of the operating system, or a seed or `RandomState`, for tests: whoever knows it, or holds the estimator
        that holds it, knows the coins, and clones share them (all folds and candidates of a search get the same noise).

    Attributes:
      quantiles_: the quantiles, of shape (fractions, columns).
      guarantee_: `dpjax.accounting.Guarantee`.

    >>> x = np.linspace(0, 10, 1001)[:, None]
    >>> private = PrivateQuantiles(fractions=[0.5], low=0, high=10, unit=0.01, random_state=0).fit(x)
    >>> bool(np.abs(private.quantiles_ - 5).max() < 0.5), private.transform([[0.1], [9.9]]).ravel().tolist()
    (True, [0.0, 1.0])
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        fractions: Any = (0.25, 0.5, 0.75),
        low: Any = None,
        high: Any = None,
        unit: Any = None,
        algorithm: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.fractions = fractions
        self.low = low
        self.high = high
        self.unit = unit
        self.algorithm = algorithm
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    @columns.all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "PrivateQuantiles":
        """One private run per column."""
        x = columns.validated(self, X)
        total = Guarantee(arguments.number("epsilon", self.epsilon, above=0.0, below=math.inf), 0.0, ADD_OR_REMOVE_ONE)
        each = calibrate(total, x.shape[1], accountant="basic")
        found, spent, random = [], [], columns.coins(self.random_state)
        for column in columns.encoded(x, self.low, self.high, self.unit):
            given = {"bits": column.bits, "origin": column.encoding.origin, "fractions": self.fractions}
            mechanism = answer.of_choice(self.algorithm, **given, epsilon=each.epsilon)
            run = mechanism.focused(column.points.rows)
            found.append(column.decode(run(columns.fresh_key(random), column.points).hypothesis))
            spent.append(mechanism.guarantee())
        self.quantiles_ = np.stack(found, axis=1)
        self.guarantee_ = basic(spent)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The bin of each value, as floats."""
        check_is_fitted(self, "quantiles_")
        x = columns.validated(self, X, reset=False)
        edges = zip(self.quantiles_.T, x.T, strict=True)
        return np.stack([np.searchsorted(edge, column, side="right") for edge, column in edges], axis=1).astype(float)
