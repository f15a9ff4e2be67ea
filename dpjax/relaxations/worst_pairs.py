"""Worst neighbours by ascent: two datasets that differ in one record, and that an algorithm tells apart best.

`dpjax.check` compares all neighbours of a small domain. Here the largest delta(epsilon) = sum_o max(0, P_S[o] - exp(epsilon) P_S'[o]) is
searched for where neighbours are too many to be listed: over the counts that both datasets share, and over the record in which they differ.
The reported delta is computed from the law itself, in float64, for the two datasets that were found: a lower bound on the least delta that
holds, which refutes a claim that is below it and proves none.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dpjax.accounting import ADD_OR_REMOVE_ONE, RELATIONS, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.data.points import Points
from dpjax.data.sample import Sample, bucket
from dpjax.domains import wide
from dpjax.domains.events import Interval
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.optimizers.interior_point import InteriorPoint
from dpjax.relaxations import real_counts, search
from dpjax.relaxations.worst import listed_points
from dpjax.verify import exact
from dpjax.verify.family import kind_of

Law = Callable[[Any], Any]
TINY = 1e-14  # by how much float64 may be wrong in a sum of probabilities
NOTHING = -40.0  # below the logarithm of every delta that is more than rounding


@dataclasses.dataclass(frozen=True)
class WorstPair(exact.Worst):
    """The worst neighbours that were found; `refutes(guarantee)` tells whether they contradict a claim.

    Attributes:
      path: the largest delta over all starts, before and after each round of exchanges.
      evaluations: total number of evaluations of the law.
      relation: the relation under which the datasets are neighbours.
      (epsilon, delta, datasets, event, p, q as in `verify.exact.Worst`; datasets are counts, and `pair` means nothing.)
    """

    path: np.ndarray
    evaluations: int
    relation: str

    def refutes(self, guarantee: Guarantee, *, slack: float = 1e-9) -> bool:
        """As `Worst.refutes`, for what the guarantee says under the pair's relation.

        Raises:
          ValueError: nothing follows from the guarantee for this relation.
        """
        return super().refutes(guarantee.under(self.relation), slack=slack)


def law_of(algorithm: Any, *, n: int, domain: int, data: Any = None) -> Law:
    """ln P of all outputs as a function of how often each record value occurs, for algorithms that have a `pmf`.

    Args:
      algorithm: one with `pmf(data)`.
      n: largest number of records.
      domain, data: as for `dpjax.check`, which also says what a record value stands for.
    """
    kind, rows = kind_of(algorithm, data, arguments.size("domain", domain)), bucket(arguments.size("n", n))

    def law(counts: Array) -> Array:
        values, size = search.records(jnp.asarray(counts), rows)
        return jnp.log(jnp.asarray(algorithm.pmf(kind.make(values, size))))

    return law


def law_of_cells(algorithm: Any, points: Sequence[int], *, n: int) -> Law:
    """ln P of the cells into which some points cut a domain of any size, then of bottom, as a function of counts of those points.

    Cells are the points themselves and the gaps between them. Two laws differ at least as much as their probabilities of cells do: the
    delta of cells is a lower bound on delta. Counts may be real where `real_counts.allowed`.

    Args:
      algorithm: a solver of the interior point problem (one count per point), or a learner of thresholds (for each point the count of
        label 0, then that of label 1).
      points: distinct points of the domain.
      n: largest number of records.
    """
    labelled = isinstance(algorithm, ThresholdLearner)
    if not labelled and not isinstance(algorithm, InteriorPoint):
        rule = "a solver of the interior point problem or a learner of thresholds"
        raise TypeError(f"algorithm must be {rule}, got {type(algorithm).__name__}")
    bits = arguments.known_integer("bits of the algorithm", algorithm.bits)
    listed, rows = listed_points(points, bits), bucket(arguments.size("n", n))
    end = (1 << bits) + labelled
    cuts = sorted({0, end, *listed, *(x + 1 for x in listed)})
    limbs = algorithm.limbs if labelled else algorithm.limbs + 1
    at, ends = wide.from_ints(listed, bits), wide.resize(wide.from_ints(cuts, bits + 1), limbs)

    def law(counts: Array) -> Array:
        counts = jnp.asarray(counts)
        if jnp.issubdtype(counts.dtype, jnp.floating):
            view = functools.partial(real_counts.law, algorithm, at, counts)
        else:
            values, size = search.records(counts, rows)
            x = at[values // 2 if labelled else values]
            data = Sample(x=x, y=values % 2, n_valid=size) if labelled else Points(x=x, n_valid=size, ordered=True)
            view = functools.partial(algorithm.probability, data)
        cells = jax.vmap(lambda low, high: view(Interval(low=low, high=high))[0])(ends[:-1], ends[1:])
        bottom = view(Interval(low=ends[0], high=ends[-1]))[1]
        return _log(jnp.append(cells, bottom))

    return law


def worst_pair(
    law: Law,
    *,
    kinds: int,
    n: int,
    epsilon: float,
    key: Array,
    relation: str = REPLACE_ONE,
    labels: int = 2,
    real: bool = False,
    starts: int = 8,
    steps: int = 60,
    rounds: int = 60,
    width: int = 32,
) -> WorstPair:
    """The neighbouring datasets with the largest delta at epsilon, as far as a search finds them; see the module.

    Args:
      law: maps int32 counts (kinds,) to ln P of every outcome, bottom included: `law_of`, `law_of_cells`, or one's own, as
        `dpjax.verify.exact.worst_pair` takes it.
      kinds: how many values a record can have.
      n: number of records of both datasets; under ADD_OR_REMOVE_ONE of the larger one.
      epsilon: the epsilon at which delta is computed, >= 0.
      key: PRNG key.
      relation: one of `dpjax.accounting.RELATIONS`.
      labels: for REPLACE_LABEL: record values that differ only in the label follow one another, in blocks of this size.
      real: whether the law takes real counts, too, and is differentiable in them; then an ascent precedes the exchanges.
      starts, steps, rounds, width: as for `dpjax.relaxations.worst.worst_data`.

    Returns:
      `WorstPair`: exact for the pair, and a lower bound on the delta of the algorithm at epsilon.

    **Formal guarantees**: none; what is found refutes claims, and proves none.

    Raises:
      TypeError, ValueError: an argument out of range, or more records, or fewer, than the law is for.

    Without the 1/2 the exponential mechanism is not epsilon-private where scores may move both ways.

    >>> from dpjax.mechanisms import exponential
    >>> def law(counts):
    ...     return exponential.log_pmf(counts, epsilon=2.0, sensitivity=1.0)
    >>> found = worst_pair(law, kinds=3, n=40, epsilon=0.5, key=jax.random.key(0), real=True, starts=2, steps=20, rounds=8, width=8)
    >>> found.delta > 0.2, [int(counts.sum()) for counts in found.datasets]
    (True, [40, 40])
    """
    law, key = arguments.function("law", law), arguments.key(key)
    kinds, n = arguments.size("kinds", kinds), arguments.size("n", n)
    epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=exact.LARGEST_EPSILON)
    relation, real = arguments.choice("relation", relation, RELATIONS), arguments.flag("real", real)
    labels = arguments.integer("labels", labels, at_least=2)
    if relation == REPLACE_LABEL and kinds % labels:
        raise ValueError(f"labels must divide the number of record values, {kinds}, got {labels}")
    starts, width = arguments.size("starts", starts), arguments.size("width", width)
    steps, rounds = (arguments.size(name, value, at_least=0) for name, value in (("steps", steps), ("rounds", rounds)))
    steps = steps if real else 0
    sizes = np.array([n, n - 1] if relation == ADD_OR_REMOVE_ONE else [n], np.int32)
    sums = np.exp(exact.evaluated(law, sizes[:, None] * np.eye(1, kinds, dtype=np.int32))).sum(axis=1)
    for size, total in zip(sizes, sums, strict=True):
        if not abs(total - 1) < 1e-3:
            raise ValueError(f"n must be such that law knows {size} records, got {n}: on those its sum is {total}")
    other = {ADD_OR_REMOVE_ONE: 2, REPLACE_LABEL: labels, REPLACE_ONE: kinds}[relation]

    pair = functools.partial(_pair, relation=relation, labels=labels)

    def value(common: Array, tags: Array) -> Array:
        first, second = pair(common, tags)
        return _worth(law(first), law(second), epsilon)

    def search_all(key: Array) -> Any:
        key_start, key_exchange = jax.random.split(key)
        sizes, total = jnp.array([kinds, other], jnp.int32), jnp.int32(n - 1)
        logits, tags = jax.vmap(lambda key: search.begin(key, kinds, sizes))(jax.random.split(key_start, starts))
        weights = total.astype(float) * jax.nn.softmax(logits)
        if steps:
            weights, _ = search.ascend(value, logits, tags, total, steps)
        counts = jax.vmap(lambda weights: search.rounded(weights, total))(weights)
        return search.exchange(key_exchange, value, counts, tags, sizes, rounds=rounds, width=width)

    with jax.enable_x64(True):
        counts, tags, path = jax.device_get(jax.jit(search_all)(key))
        best = int(np.argmax(path[:, -1]))
        datasets = tuple(map(np.asarray, pair(jnp.asarray(counts[best]), jnp.asarray(tags[best]))))
    p, q = exact.probabilities(law, np.stack(datasets))
    found = exact.worst_of_table(np.stack([p, q]), np.stack(datasets), np.array([[0, 1]]), epsilon)
    return WorstPair(
        **{field.name: getattr(found, field.name) for field in dataclasses.fields(found)},
        path=np.where(path.max(axis=0) > NOTHING, np.exp(path.max(axis=0)), 0.0),
        evaluations=2 * starts * (steps + 1 + rounds * width),
        relation=relation,
    )


def _pair(common: Array, tags: Array, *, relation: str, labels: int) -> tuple[Array, Array]:
    """Both datasets, from what they share and what tells them apart."""
    first, second = tags[0], tags[1]
    if relation == REPLACE_LABEL:
        second = first // labels * labels + second
    with_it = common.at[first].add(1)
    if relation != ADD_OR_REMOVE_ONE:
        return with_it, common.at[second].add(1)
    return jnp.where(second == 0, with_it, common), jnp.where(second == 0, common, with_it)


def _worth(log_p: Array, log_q: Array, epsilon: float) -> Array:
    """ln delta(epsilon); where delta is negligible, a far smaller number that shows how near the largest privacy loss comes to epsilon."""
    p, q = jnp.exp(log_p), jnp.exp(log_q)
    delta = jnp.sum(jnp.maximum(p - jnp.exp(epsilon) * q, 0.0))
    seen = p > TINY
    loss = jnp.where(seen, jnp.where(seen, log_p, 0.0) - jnp.where(seen, jnp.maximum(log_q, -700.0), 0.0), -jnp.inf)
    some = delta > TINY
    return jnp.where(some, jnp.log(jnp.where(some, delta, 1.0)), NOTHING + jnp.minimum(jnp.max(loss) - epsilon, 0.0))


def _log(p: Array) -> Array:
    """ln of probabilities; -inf, with a zero gradient, at 0."""
    return jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), -jnp.inf)
