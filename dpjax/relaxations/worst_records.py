"""Worst data of any algorithm with a law, among copies of given records: exchanges alone, judged by the exact law.

`dpjax.relaxations.worst` knows the form of the data of solvers and of learners of one concept, and climbs through real counts. For other
algorithms (quantiles, sanitizers, parities, rectangles, k concepts, one of your own) only the possible records need be given: the rows of a
dataset of the kind that the algorithm takes.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from dpjax.core import arguments
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.data.points import Points
from dpjax.data.sample import Sample, bucket
from dpjax.relaxations import search
from dpjax.relaxations.worst import MOST_POINTS, WorstData


def worst_records(
    algorithm: Any,
    records: Any,
    *,
    n: int,
    key: Array,
    error: float = 0.0,
    starts: int = 8,
    rounds: int = 60,
    width: int = 32,
) -> WorstData:
    """The dataset of n records, copies of the rows given, on which the algorithm fails most, as far as a search finds it.

    Args:
      algorithm: any pytree with `failure_probability(data, error=)`.
      records: a dataset of the kind it takes (`Points`, `Sample`, `MultiSample`, `Examples`) with one row for every kind of record.
      n: number of records.
      key: PRNG key.
      error: failure is an error on the data above this, as for `failure_probability`.
      starts: number of datasets from which the search begins.
      rounds, width: number of rounds of exchanges, and of exchanges that a round tries.

    Returns:
      `WorstData`, whose `counts` are by row of `records`. Its failure is exact for its data, and a lower bound on the worst failure.

    **Formal guarantees**: none; nothing private is computed, and it is not promised that there are no worse data.

    Raises:
      TypeError: an algorithm without a law or that is not a pytree, records that are not a dataset, or not a key.
      ValueError: too many records, an argument out of range, or data whose law is NaN.

    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import quantiles
    >>> median = quantiles.rank_exponential(bits=3, fractions=[0.5], epsilon=1.0)
    >>> every = Points.create(wide.from_ints(range(8), 3))
    >>> found = worst_records(median, every, n=7, key=jax.random.key(0), error=0.2, starts=4, rounds=20, width=8)
    >>> found.counts, round(found.failure, 3)
    ({0: 2, 6: 2, 7: 3}, 0.373)
    """
    arguments.function("algorithm.failure_probability", getattr(algorithm, "failure_probability", None))
    if jax.tree_util.all_leaves([algorithm]):
        raise TypeError(
            f"algorithm must be a pytree: decorate its class with @dpjax.core.pytree.frozen; got {algorithm!r}"
        )
    rows = _rows(records)
    n, key = arguments.size("n", n), arguments.key(key)
    error = arguments.known("error", error, at_least=0.0)
    starts, width = arguments.size("starts", starts), arguments.size("width", width)
    rounds = arguments.size("rounds", rounds, at_least=0)
    with jax.enable_x64(True):
        counts, path = jax.device_get(_found(key, algorithm, records, n, error, bucket(n), starts, rounds, width))
        best = int(np.argmax(path[:, -1]))
        data = jax.device_put(repeated(records, jnp.asarray(counts[best]), bucket(n)))
        failure = float(algorithm.failure_probability(data, error=error))
    if math.isnan(failure):
        raise ValueError(
            "records must be data of which the algorithm's failure_probability is known, got NaN for all of them"
        )
    return WorstData(
        data=data,
        failure=failure,
        counts={row: int(count) for row, count in enumerate(counts[best][:rows]) if count},
        path=np.exp(path.max(axis=0)),
        relaxed=np.zeros((starts, 0)),
        evaluations=starts * (1 + rounds * width),
    )


def _rows(records: Any) -> int:
    """The number of records, checked to be a dataset all of whose rows count."""
    # Bits packed across rows, as in `Assignments`, and rows with counts of their own cannot be repeated.
    if not isinstance(records, Points | Sample | MultiSample | Examples):
        raise TypeError(f"records must be Points, a Sample, a MultiSample or Examples, got {type(records).__name__}")
    rows, n_valid = int(records.rows), int(records.n_valid)
    if not 1 <= rows <= MOST_POINTS or n_valid != rows:
        raise ValueError(f"records must be 1 to {MOST_POINTS} rows, all of which count, got {n_valid} of {rows}")
    return rows


@jax.jit(static_argnums=(5, 6, 7, 8))
def _found(
    key: Array, algorithm: Any, records: Any, n: Any, error: Any, rows: int, starts: int, rounds: int, width: int
) -> tuple[Array, Array]:
    """(counts, ln failure by rounds) of all starts."""
    key_start, key_exchange = jax.random.split(key)
    n, kinds = jnp.asarray(n, jnp.int32), jnp.ones(1, jnp.int32)  # one tag, which has no meaning

    def exact(counts: Array, tags: Array) -> Array:
        return jnp.log(algorithm.failure_probability(repeated(records, counts, rows), error=error))

    logits, tags = jax.vmap(lambda key: search.begin(key, records.rows, kinds))(jax.random.split(key_start, starts))
    counts = jax.vmap(lambda logits: search.rounded(n.astype(float) * jax.nn.softmax(logits), n))(logits)
    counts, _, path = search.exchange(key_exchange, exact, counts, tags, kinds, rounds=rounds, width=width)
    return counts, path


def repeated(records: Any, counts: Int[Array, "m"], rows: int) -> Any:
    """The dataset with `counts` copies of each record, in their order."""
    index, n = search.records(counts, rows)
    return jax.tree.map(lambda leaf: leaf[index] if jnp.ndim(leaf) else n, records)
