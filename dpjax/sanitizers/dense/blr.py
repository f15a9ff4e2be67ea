"""The sanitizer of Blum, Ligett and Roth (BNS Theorem 2.19, MULTI Theorem 24): the exponential mechanism over all databases.

Among all multisets S' of R rows one is chosen with the score -n max_c |Q_c(S) - Q_c(S')|, n the number of rows of S.

**Privacy.** n is public, and replacing a row changes every Q_c(S) by 1/n at most: the score has sensitivity 1 under REPLACE_ONE, and the
choice is (epsilon, 0)-private (BNS Proposition 2.26 (i)).

**Accuracy.** Some database of R rows is within r = `queries.rounding(R)` of S, so by Proposition 2.26 (ii) the released one is within alpha
except with probability M exp(-epsilon (alpha - r) n / 2), where M is the number of databases: this is beta at
n = `bounds.exponential_mechanism(ln M, alpha - r, beta, epsilon)`. The theorem holds for any domain and class: there R is
`bounds.approximating_rows` of the VC dimension and M is at most |X|^R, which gives `bounds.blr`. On a domain so small that databases can be
listed, rounding does better than the VC dimension.

The plain twin is `dpjax.verify.plain.dense.blr_law`.

    >>> from dpjax.sanitizers import dense
    >>> sanitizer = dense.blr(queries=dense.intervals(bits=2), rows=20, epsilon=1.0)
    >>> sanitizer.listed(), sanitizer.sample_size(alpha=0.1, beta=0.1)
    (1771, 392)
    >>> print(sanitizer.guarantee())
    (1.0, 0.0)-private under REPLACE_ONE
"""

import functools
import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.weighted import Weighted
from dpjax.mechanisms import exponential
from dpjax.sanitizers.dense.base import Counted, DenseSanitizer
from dpjax.sanitizers.dense.queries import Queries

MOST_DATABASES = 2**16
MOST_NUMBERS = 2**21  # counts that the list of all databases holds


@frozen
class Blr(DenseSanitizer):
    """The exponential mechanism over all databases of `rows` rows; see the module, and build it by `blr`."""

    queries: Queries
    epsilon: Float[Array, ""]
    rows: int = static()

    @property
    def most_points(self) -> int:
        return min(self.rows, self.queries.size)

    def most(self) -> int:
        return super().most() // self.rows

    def _excess(self, view: Counted) -> Int[Array, "databases"]:
        """n R times the largest error of every database: integers, so that equal errors stay equal.

        The answers of databases do not depend on the data: there is one row for each answer, along which they are compared with that of the
        data.
        """
        listed = self.queries.answers(jnp.asarray(databases(self.bits, self.rows).T))

        def compared(held: Array, n: Array) -> Array:
            return self.queries.extent(listed * n - (held * self.rows)[:, None])

        return staging.once(compared, self.queries.answers(view.counts), view.n)

    def _log_weights(self, view: Counted) -> Float[Array, "databases"]:
        return exponential.log_weights(-self._excess(view), epsilon=self.epsilon, sensitivity=self.rows)

    def draw(self, key: Array, view: Counted) -> Any:
        index = exponential.draw(key, self._log_weights(view)).index
        return self.output(index), jnp.bool_(True), {}

    def log_masses(self, view: Counted) -> Float[Array, "databases"]:
        return exponential.normalised(self._log_weights(view))

    def errors(self, view: Counted) -> Float[Array, "databases"]:
        return self._excess(view).astype(float) / (jnp.maximum(view.n, 1) * self.rows).astype(float)

    def listed(self) -> int:
        """How many databases there are."""
        return math.comb(self.rows + self.queries.size - 1, self.rows)

    def output(self, index: Int[Array, ""]) -> Weighted:
        """The database of this index, in the order of `databases`."""
        return self.database(jnp.asarray(databases(self.bits, self.rows))[index])

    def exactly(self, output: Any) -> Bool[Array, "databases"]:
        if not isinstance(output, Weighted):
            raise TypeError(f"output must be a dpjax.Weighted, got {output!r}")
        counts = self.prepare(output).counts
        same = jnp.all(jnp.asarray(databases(self.bits, self.rows)) == counts[None], axis=1)
        return same & output.in_domain(self.bits)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The rows of data needed for a largest error of alpha; see the module.

        Raises:
          ValueError: alpha or beta outside (0, 1), or an alpha for which `rows` are too few.
        """
        alpha, least = arguments.known_fraction("alpha", alpha), self.queries.rounding(self.rows)
        if alpha <= least:
            raise ValueError(f"alpha must be > {least}, which {self.rows} rows are known to reach, got {alpha}")
        return whole(bounds.exponential_mechanism(math.log(self.listed()), alpha - least, beta, float(self.epsilon)))


@functools.cache
def databases(bits: int, rows: int) -> Int[np.ndarray, "databases points"]:
    """All multisets of `rows` rows over X_bits, as counts, in lexicographic order.

    >>> databases(1, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    size = 1 << bits
    # Counts are the gaps between size - 1 bars among rows + size - 1 places.
    bars = np.array(list(itertools.combinations(range(rows + size - 1), size - 1)), np.int32)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, rows + size - 1)))
    return np.diff(edges, axis=1) - 1


def listed(points: int, rows: int) -> int | None:
    """The number of databases of `rows` rows over `points` points; None if there are too many to be listed."""
    if rows > MOST_DATABASES:
        return None
    found = math.comb(rows + points - 1, rows)
    return found if found <= MOST_DATABASES and found * points <= MOST_NUMBERS else None


def blr(*, queries: Queries, rows: int, epsilon: Any) -> Blr:
    """The exponential mechanism over all databases of `rows` rows, for tiny domains; see the module.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      queries: `thresholds(bits=...)`, `intervals`, `points`, `pairs` or `listed` of `dpjax.sanitizers.dense`.
      rows: R, the number of rows of the released database.
      epsilon: > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range, or more databases than can be listed.

    >>> from dpjax.sanitizers import dense
    >>> blr(queries=dense.thresholds(bits=8), rows=4, epsilon=1.0)
    Traceback (most recent call last):
    ...
    ValueError: rows must be fewer: there are 183181376 databases of 4 rows over 256 points, and at most 8192 are listed
    """
    arguments.instance("queries", queries, Queries)
    rows = arguments.integer("rows", rows, at_least=1, at_most=MOST_DATABASES)
    if listed(queries.size, rows) is None:
        found = math.comb(rows + queries.size - 1, rows)
        most = min(MOST_DATABASES, MOST_NUMBERS // queries.size)
        count = found if found < 10**18 else f"more than {10**18:,}"
        what = f"there are {count} databases of {rows} rows over {queries.size} points, and at most {most} are listed"
        raise ValueError(f"rows must be fewer: {what}")
    return Blr(queries=queries, epsilon=arguments.epsilon(epsilon), rows=rows)
