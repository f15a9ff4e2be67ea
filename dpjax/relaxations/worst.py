"""Worst data by ascent: the datasets on which an algorithm fails most.

A guarantee holds for all data, so whoever measures wants the worst ones. On small domains `dpjax.check` lists all datasets; here the worst
ones are searched for on domains of any size, in three stages:

1. Counts of given points are relaxed to real numbers, and the logarithm of the failure climbs through the exact law
   (`dpjax.relaxations.real_counts`), from many starts in one program. Laws that are not functions of real counts skip this stage.
2. Counts are rounded to integers.
3. Records are exchanged for a number of rounds: many exchanges per round, judged by the exact law in one batch.

What is reported is only what the algorithm's own law gives, in float64, for the dataset that was found: a lower bound on the worst failure,
and never an estimate. It is not claimed that nothing worse exists.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from dpjax.core import arguments
from dpjax.data.points import Points
from dpjax.data.sample import Sample, bucket
from dpjax.domains import wide
from dpjax.domains.events import Accurate
from dpjax.learners.points.base import OnePointLearner
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.relaxations import real_counts, search

MOST_POINTS = 4096
WHOLE_DOMAIN = 6  # most bits of a domain all of whose points are tried


@dataclasses.dataclass(frozen=True)
class WorstData:
    """The worst dataset that was found.

    Attributes:
      data: `Points`, or a `Sample` labelled by some concept.
      failure: the algorithm's own `failure_probability` on it, in float64.
      counts: how often each point occurs: {point: count}.
      path: the largest failure over all starts, by the exact law at integer counts, before and after each round of exchanges.
      relaxed: the relaxed failure of each step of each start, (starts, steps); no steps where the law is not a function of real counts.
      evaluations: total number of evaluations of the law.
    """

    data: Any
    failure: float
    counts: dict[int, int]
    path: np.ndarray
    relaxed: np.ndarray
    evaluations: int


def scales(bits: int) -> list[int]:
    """Points at every scale from either end of {0, ..., 2^bits - 1}: 2^k - 1 and 2^bits - 2^k; the whole domain where it is small.

    The law has no derivative in the position of a point: answers are integers, and so are lengths. Points at every scale stand for all.

    >>> len(scales(3)), scales(64)[:4], scales(64)[-1] == 2**64 - 1
    (8, [0, 1, 3, 7], True)
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    if bits <= WHOLE_DOMAIN:
        return list(range(1 << bits))
    ends = [(1 << k) - 1 for k in range(bits + 1)]
    return sorted({*ends, *((1 << bits) - 1 - end for end in ends)})


def worst_data(
    algorithm: Any,
    *,
    n: int,
    key: Array,
    points: Sequence[int] | None = None,
    error: float = 0.0,
    starts: int = 8,
    steps: int = 60,
    rounds: int = 60,
    width: int = 32,
) -> WorstData:
    """The dataset of n records on which the algorithm fails most, as far as a search finds it; see the module.

    Args:
      algorithm: a solver of the interior point problem, or a learner of thresholds or of one point; for learners the labels are those of
        some concept of the class, which is searched for, too.
      n: number of records.
      key: PRNG key.
      points: the distinct points that records may have; default `scales(bits)`.
      error: failure is an error on the data above this, as for `failure_probability`.
      starts: number of datasets from which the search begins, each with points and a concept of its own.
      steps: number of steps of the ascent over real counts; 0 skips it.
      rounds, width: number of rounds of exchanges, and of exchanges that a round tries.

    Returns:
      `WorstData`. Its failure is exact for its data, and a lower bound on the worst failure of any n records.

    **Formal guarantees**: none; nothing private is computed, and it is not promised that there are no worse data.

    Raises:
      TypeError: an algorithm of another kind, or not a key.
      ValueError: no points, points that are repeated or outside the domain, or another argument out of range.

    Two neighbouring points with half of the records each are worst for the exponential mechanism.

    >>> from dpjax.optimizers import interior_point
    >>> solver = interior_point.exponential(bits=3, epsilon=0.5)
    >>> found = worst_data(solver, n=12, key=jax.random.key(0), starts=4)
    >>> sorted(found.counts.values()), round(found.failure, 4)
    ([6, 6], 0.13)
    """
    kind = labelling(algorithm)
    n = arguments.size("n", n)
    key = arguments.key(key)
    bits = arguments.known_integer("bits of the algorithm", algorithm.bits)
    listed = listed_points(scales(bits) if points is None else points, bits)
    error = arguments.known("error", error, at_least=0.0, below=1.0)
    starts, width = arguments.size("starts", starts), arguments.size("width", width)
    steps, rounds = (arguments.size(name, value, at_least=0) for name, value in (("steps", steps), ("rounds", rounds)))
    steps = steps if real_counts.allowed(algorithm) else 0
    with jax.enable_x64(True):
        at = wide.from_ints(listed, bits)
        found = _found(key, algorithm, at, n, error, kind, bucket(n), starts, steps, rounds, width)
        counts, tags, path, relaxed = jax.device_get(found)
        best = int(np.argmax(path[:, -1]))
        rows = bucket(n)
        data = jax.device_put(dataset(kind, at, jnp.asarray(counts[best]), jnp.asarray(tags[best]), rows))
        failure = float(algorithm.failure_probability(data, error=error))
    return WorstData(
        data=data,
        failure=failure,
        counts={x: int(count) for x, count in zip(listed, counts[best], strict=True) if count},
        path=np.exp(path.max(axis=0)),
        relaxed=np.exp(relaxed),
        evaluations=starts * (steps + 1 + rounds * width),
    )


@jax.jit(static_argnums=(5, 6, 7, 8, 9, 10))
def _found(
    key: Array,
    algorithm: Any,
    points: UInt32[Array, "m limbs"],
    n: Any,
    error: Any,
    kind: str,
    rows: int,
    starts: int,
    steps: int,
    rounds: int,
    width: int,
) -> tuple[Array, Array, Array, Array]:
    """(counts, tags, ln failure by rounds, relaxed ln failure by steps) of all starts."""
    key_start, key_exchange = jax.random.split(key)
    n, error, m = jnp.asarray(n, jnp.int32), jnp.asarray(error, float), points.shape[0]
    mistakes = jnp.floor(Accurate(error=error).limit(n))

    def exact(counts: Array, tags: Array) -> Array:
        return jnp.log(algorithm.failure_probability(dataset(kind, points, counts, tags, rows), error=error))

    def relaxed(counts: Array, tags: Array) -> Array:
        return jnp.log(real_counts.failure(algorithm, points, counts, tags[0], mistakes))

    kinds = jnp.asarray([{"": 1, "below": m + 1, "equal": m + 1}[kind]], jnp.int32)
    logits, tags = jax.vmap(lambda key: search.begin(key, m, kinds))(jax.random.split(key_start, starts))
    weights, path = n.astype(float) * jax.nn.softmax(logits), jnp.zeros((starts, 0))
    if steps:
        weights, path = search.ascend(relaxed, logits, tags, n, steps)
    counts = jax.vmap(lambda weights: search.rounded(weights, n))(weights)
    found = search.exchange(key_exchange, exact, counts, tags, kinds, rounds=rounds, width=width)
    return *found, path


def labelling(algorithm: Any) -> str:
    """How labels follow from the tag: no labels (""), label 1 below it ("below"), or label 1 at it ("equal")."""
    for base, kind in ((InteriorPoint, ""), (ThresholdLearner, "below"), (OnePointLearner, "equal")):
        if isinstance(algorithm, base):
            return kind
    rule = "a solver of the interior point problem, or a learner of thresholds or of one point"
    raise TypeError(f"algorithm must be {rule}, got {type(algorithm).__name__}")


def listed_points(points: Any, bits: int) -> list[int]:
    """The points in order, checked."""
    listed = sorted(
        arguments.integer("points", x, at_least=0, at_most=(1 << bits) - 1) for x in arguments.several("points", points)
    )
    if not 1 <= len(listed) <= MOST_POINTS or len(set(listed)) < len(listed):
        raise ValueError(f"points must be 1 to {MOST_POINTS} distinct ones, got {len(set(listed))} of {len(listed)}")
    return listed


def dataset(
    kind: str, points: UInt32[Array, "m limbs"], counts: Int[Array, "m"], tags: Int[Array, "1"], rows: int
) -> Points | Sample:
    """The dataset with these integer counts of the points, in order."""
    index, n = search.records(counts, rows)
    x = points[index]
    if not kind:
        return Points(x=x, n_valid=n, ordered=True)
    if kind == "below":
        return Sample.promised(x, (index < tags[0]).astype(jnp.int32), n)
    return Sample(x=x, y=(index == tags[0]).astype(jnp.int32), n_valid=n)
