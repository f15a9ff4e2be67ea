"""Exact privacy of anything with a law: the largest hockey-stick over all neighbouring pairs of a small domain.

delta(eps) = max over neighbours S, S' of sum_o max(0, P_S[o] - exp(eps) P_S'[o]): the least delta for which
the mechanism is (eps, delta)-DP on that domain. The event of the worst pair, {o : P_S[o] > exp(eps)
P_S'[o]}, is a witness.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from dpjax.accounting.guarantee import RELATIONS, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.core import arguments

Law = Callable[[Any], Any]
LARGEST_EPSILON = 700.0  # exp of much more overflows: there `grown` adds logarithms
_HALF = re.compile(r"\b(b?f16|f[48]_\w+)\[")  # arrays of floats of 16 bits or fewer, as a jaxpr prints them


def hockey_stick(log_p: Any, log_q: Any, epsilon: float) -> Any:
    """sum_o max(0, p_o - exp(epsilon) q_o) over the last axis, in float64, from ln p_o and ln q_o.

    Raises:
      ValueError: epsilon out of range, other outcomes, or numbers that are no logarithms of probabilities: their sum is not one.

    >>> round(float(hockey_stick([0.0, -np.inf], [-np.inf, 0.0], 1.0)), 3)
    1.0
    """
    epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf)
    p, q = (np.exp(arguments.array(*each).astype(float)) for each in (("log_p", log_p), ("log_q", log_q)))
    if p.shape[-1:] != q.shape[-1:]:
        raise ValueError(f"log_p and log_q must list the same outcomes, got shapes {p.shape} and {q.shape}")
    for name, law in (("log_p", p), ("log_q", q)):
        if not np.all(np.abs(law.sum(axis=-1) - 1.0) <= 1e-3):  # NaN is not, either
            total = f"got a sum of {law.sum(axis=-1).max():.4g}"
            raise ValueError(f"{name} must hold logarithms of probabilities that sum to one, {total}")
    return np.maximum(p - grown(q, epsilon), 0.0).sum(axis=-1)


def grown(p: np.ndarray, epsilon: float) -> np.ndarray:
    """exp(epsilon) p if a float can hold it, else a number above any probability; 0 where p is 0.

    >>> grown(np.array([0.0, 1e-307, 1.0]), 703.0)[:2].round(3).tolist()
    [0.0, 0.02]
    """
    if epsilon <= LARGEST_EPSILON:
        return math.exp(epsilon) * p
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == 0, 0.0, np.exp(np.minimum(epsilon + np.log(p), LARGEST_EPSILON)))


def laplace_delta(epsilon: float, *, shift: float, scale: float) -> float:
    """The exact delta(epsilon) of Laplace noise of this scale between two values `shift` apart.

    max(0, 1 - exp((epsilon - shift/scale) / 2)): the worst event is a half-line, and the sum over it is in
    closed form.

    >>> laplace_delta(1.0, shift=1.0, scale=1.0), round(laplace_delta(1.0, shift=1.0, scale=0.5), 4)
    (0.0, 0.3935)
    """
    epsilon = arguments.real("epsilon", epsilon)
    shift = arguments.real("shift", shift, at_least=0.0, below=math.inf)
    scale = arguments.real("scale", scale, above=0.0, below=math.inf)
    return float(laplace_deltas(epsilon, loss=shift / scale, count=1))


def laplace_deltas(epsilon: Any, *, loss: float, count: Any) -> Any:
    """delta(epsilon) of `count` = 0, 1 or 2 independent Laplace noises, each between values `loss` scales apart; arrays broadcast.

    Epsilon may also be negative or infinite: if a mechanism first releases a choice o, with probabilities p_o and q_o, and then noisy
    counts, sum_o p_o delta(epsilon + ln(q_o / p_o)) is the hockey-stick of the two joint laws, without any grid.

    For t = epsilon >= 0 and one noise it is 1 - exp(-w), w = (loss - t) / 2 >= 0, see `laplace_delta`. The loss of one noise is
    l = loss - 2 u with density exp(-u) / 2 for 0 < u < loss, else +loss (probability 1/2) or -loss; averaging delta(t - l) of one noise
    over l gives 1 - exp(-v) (1 + v / 2), v = loss - t / 2 >= 0, for two. For t < 0, as both directions have the same law, it is
    1 - exp(t) + exp(t) delta(-t).

    >>> laplace_deltas(0.0, loss=1.0, count=np.arange(3)).round(4).tolist()
    [0.0, 0.3935, 0.4482]
    """
    loss = arguments.known("loss", loss, at_least=0.0, below=math.inf)
    t, count = np.broadcast_arrays(arguments.array("epsilon", epsilon).astype(float), arguments.array("count", count))
    if np.any(np.isnan(t)):
        raise ValueError(f"epsilon must be a number, not NaN, got {epsilon!r}")
    if count.dtype.kind not in "iu" or not np.all(np.isin(count, (0, 1, 2))):
        raise ValueError(f"count must be 0, 1 or 2, got {count}")
    w, v = np.maximum((loss - np.abs(t)) / 2, 0.0), np.maximum(loss - np.abs(t) / 2, 0.0)
    ahead = np.select([count == 0, count == 1], [0.0, -np.expm1(-w)], -np.expm1(-v) - np.exp(-v) * v / 2)
    below = np.minimum(t, 0.0)
    return np.where(t >= 0, ahead, -np.expm1(below) + np.exp(below) * ahead)


def histograms(domain: int, sizes: Sequence[int]) -> np.ndarray:
    """All datasets, as counts over `domain` record values, of the given sizes.

    Args:
      domain: how many values a record can take.
      sizes: the sizes wanted; one for REPLACE_ONE and REPLACE_LABEL, consecutive ones for ADD_OR_REMOVE_ONE.

    Returns:
      int32 array (datasets, domain), in lexicographic order within a size.

    >>> histograms(2, [2]).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    domain = arguments.size("domain", domain)
    if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str) or len(sizes) == 0:
        raise TypeError(f"sizes must list at least one size, got {sizes!r}")
    rows = [_split(arguments.size("sizes", size, at_least=0), domain) for size in sizes]
    return np.concatenate(rows).astype(np.int32)


def _split(total: int, parts: int) -> np.ndarray:
    """All ways to write `total` as an ordered sum of `parts` counts: gaps between parts-1 bars."""
    bars = np.array(list(itertools.combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, total + parts - 1)))
    return np.diff(edges, axis=1) - 1


def records(counts: np.ndarray, capacity: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Histograms as padded lists of records: (values (datasets, capacity), n_valid (datasets,)), both int32.

    >>> values, n_valid = records(np.array([[2, 0, 1]]), 4)
    >>> values.tolist(), n_valid.tolist()
    ([[0, 0, 2, 0]], [3])
    """
    counts = _checked_counts(counts)
    sizes = counts.sum(axis=1)
    largest = int(sizes.max(initial=0))
    capacity = largest if capacity is None else arguments.size("capacity", capacity, at_least=largest)
    positions = np.arange(capacity)
    values = (positions[None, :, None] >= counts.cumsum(axis=1)[:, None, :]).sum(axis=2)
    padded = np.where(positions[None, :] < sizes[:, None], values, 0)
    return padded.astype(np.int32), sizes.astype(np.int32)


def _checked_counts(counts: Any) -> np.ndarray:
    """Histograms, checked: integers >= 0 of shape (datasets, domain)."""
    counts = np.asarray(counts)
    if counts.ndim != 2 or counts.dtype.kind not in "iu" or np.any(counts < 0):
        rule = "whole numbers >= 0 of shape (datasets, domain)"
        raise ValueError(f"counts must be {rule}, got {counts.dtype} of shape {counts.shape}")
    return counts.astype(np.int64)  # in narrow types 0 - 1 is their largest number, a dataset that is no neighbour


def sequences(domain: int, size: int) -> np.ndarray:
    """All ordered datasets of `size` records with values 0, ..., domain-1: int32 (domain^size, size).

    >>> sequences(2, 2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    domain, size = arguments.size("domain", domain), arguments.size("size", size, at_least=0)
    if size * math.log2(domain) >= 31:
        raise ValueError(f"domain^size must be below 2^31, the most datasets that are listed, got {domain}^{size}")
    digits = np.arange(domain**size)[:, None] // domain ** np.arange(size - 1, -1, -1)[None, :]
    return (digits % domain).astype(np.int32)


def neighbours(counts: np.ndarray, relation: str, *, labels: int = 2) -> np.ndarray:
    """All ordered neighbouring pairs among histograms, as indices (pairs, 2).

    Args:
      counts: histograms, as `histograms` makes them.
      relation: one of `dpjax.accounting.RELATIONS`.
      labels: for REPLACE_LABEL only: the record value of point x with label y is `labels` x + y.

    >>> sorted(neighbours(histograms(2, [1]), "REPLACE_ONE").tolist())
    [[0, 1], [1, 0]]
    """
    arguments.choice("relation", relation, RELATIONS)
    counts = _checked_counts(counts)
    unit = np.eye(counts.shape[1], dtype=counts.dtype)
    if relation in (REPLACE_ONE, REPLACE_LABEL):
        replaced = _replacements(counts.shape[1], relation, labels)
        moves = [unit[new] - unit[old] for old, new in replaced]
    else:
        moves = [sign * a for a in unit for sign in (1, -1)]
    places = {row.tobytes(): place for place, row in enumerate(counts)}
    pairs = [
        (i, places[moved])
        for move in moves
        for i, moved in enumerate(row.tobytes() for row in counts + move)
        if moved in places
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def sequence_neighbours(domain: int, size: int, relation: str = REPLACE_ONE, *, labels: int = 2) -> np.ndarray:
    """All ordered pairs among `sequences(domain, size)` that differ in one position, as indices (pairs, 2).

    Under REPLACE_LABEL they differ there in the label alone; see `neighbours`.

    >>> sequence_neighbours(2, 1).tolist()
    [[0, 1], [1, 0]]
    """
    arguments.choice("relation", relation, (REPLACE_ONE, REPLACE_LABEL))
    values = sequences(domain, size)
    domain, size = int(domain), int(size)  # NumPy's integers wrap around
    pairs = []
    for position, (old, new) in itertools.product(range(size), _replacements(domain, relation, labels)):
        before = np.flatnonzero(values[:, position] == old)
        pairs.append(np.stack([before, before + domain ** (size - 1 - position) * (new - old)], axis=1))
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), np.int64)


def _replacements(domain: int, relation: str, labels: int) -> list[tuple[int, int]]:
    """The ordered pairs of record values that may replace one another."""
    if relation == REPLACE_ONE:
        return list(itertools.permutations(range(domain), 2))
    labels = arguments.integer("labels", labels, at_least=2)
    if domain % labels:
        raise ValueError(f"labels must divide the number of record values, {domain}, got {labels}")
    return [(old, new) for old, new in itertools.permutations(range(domain), 2) if old // labels == new // labels]


def probabilities(law: Law, datasets: Any, *, batch_size: int = 256) -> np.ndarray:
    """The law of every dataset, float64 (datasets, outcomes): `law` maps one dataset to ln P of every outcome.

    It is evaluated in float64 whatever the session's default: float32 would blur every delta below 1e-7.
    """
    is_single(law, datasets)
    p = np.exp(evaluated(law, datasets, batch_size=batch_size).astype(np.float64))
    wrong = np.flatnonzero(~(np.abs(p.sum(axis=1) - 1) < 1e-9))
    if wrong.size:
        raise ValueError(f"law must sum to one, got {p[wrong[0]].sum()} for dataset {wrong[0]}")
    return p


def evaluated(function: Callable[[Any], Any], datasets: Any, *, batch_size: int = 256) -> np.ndarray:
    """`function` of every dataset, in batches, with 64-bit types whatever the session's default."""
    arguments.function("law", function)
    count = _checked_datasets(datasets)
    size = min(arguments.integer("batch_size", batch_size, at_least=1), count)
    # Whole batches, by repeating the first datasets: `lax.map` would compile the law once more for a shorter last one.
    whole = np.arange(-(-count // size) * size) % count
    with jax.enable_x64(True):
        repeated = jax.tree.map(lambda leaf: np.asarray(leaf)[whole], datasets)
        return np.asarray(jax.jit(lambda rows: jax.lax.map(function, rows, batch_size=size))(repeated))[:count]


_SINGLE_BY_THEMSELVES: set[int] = set()  # hashes of what laws compute that are known to be single by themselves


def is_single(law: Law, datasets: Any) -> bool:
    """Whether the law by itself computes anything in single precision although 64-bit types are enabled.

    JAX keeps what it made of a NumPy array for other programs: once a 32-bit program has used a table of an algorithm, all programs get
    the table in single precision, 64-bit ones, too. So if the law looks single, it is examined again after JAX's caches are cleared.

    Raises:
      ValueError: it computes something in 16 bits or fewer, where a probability may be off by a thousandth.
    """
    arguments.function("law", law)
    _checked_datasets(datasets)
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], datasets)

    def steps() -> str:
        with jax.enable_x64(True):
            return str(jax.make_jaxpr(law)(first))

    found = steps()
    if _HALF.search(found):
        rule = "be computed in single or double precision (convert tables outside of it)"
        raise ValueError(f"the law must {rule}, got numbers of 16 bits or fewer")
    if "f32[" in found and hash(found) not in _SINGLE_BY_THEMSELVES:
        jax.clear_caches()
        found = steps()
        _SINGLE_BY_THEMSELVES.add(hash(found))
    return "f32[" in found


@dataclasses.dataclass(frozen=True)
class Worst:
    """The worst neighbouring pair at one epsilon.

    Attributes:
      epsilon: the epsilon at which delta was computed.
      delta: the exact delta(epsilon) over all pairs given.
      pair: indices of (S, S').
      datasets: S and S'.
      event: which outcomes are in the witness, P_S[event] - exp(epsilon) P_S'[event] = delta.
      p: P_S of every outcome. q: P_S' of every outcome.
    """

    epsilon: float
    delta: float
    pair: tuple[int, int]
    datasets: tuple[Any, Any]
    event: np.ndarray
    p: np.ndarray
    q: np.ndarray

    def refutes(self, guarantee: Guarantee, *, slack: float = 1e-9) -> bool:
        """Whether this pair contradicts `guarantee`, beyond a relative `slack` (and 1e-12) for rounding.

        A probability below the least normal float may have been computed as 0: it counts as that float.

        Raises:
          TypeError, ValueError: it is not a guarantee, or slack is no number >= 0.
        """
        arguments.instance("guarantee", guarantee, Guarantee)
        slack = arguments.known("slack", slack, at_least=0.0, below=math.inf)
        least = np.maximum(self.q, np.finfo(np.float64).tiny)
        delta = float(np.maximum(self.p - grown(least, guarantee.epsilon), 0.0).sum())
        return delta > guarantee.delta * (1 + slack) + 1e-12


def worst_pair(law: Law, datasets: Any, pairs: np.ndarray, epsilon: float, *, batch_size: int = 256) -> Worst:
    """The pair of neighbours with the largest hockey-stick at `epsilon`.

    Args:
      law: maps one dataset to the vector of ln P over all outcomes, ⊥ included; pure JAX.
      datasets: a pytree of arrays with one leading axis over all datasets.
      pairs: ordered pairs of indices, both directions, as `neighbours` gives them.
      epsilon: the epsilon at which delta is computed, >= 0.
      batch_size: how many laws are computed at once.

    Returns:
      Worst, exact up to float64 rounding of the law.

    Raises:
      TypeError: pairs are not integers.
      ValueError: epsilon negative or NaN, no pairs, a pair that names no dataset, or a law that does not sum to one.

    Example: adding no noise at all reveals everything.
    >>> import jax.numpy as jnp
    >>> counts = histograms(2, [3])
    >>> law = lambda count: jnp.where(jnp.arange(4, dtype=jnp.int32) == count[0], 0.0, -jnp.inf)
    >>> worst_pair(law, counts, neighbours(counts, "REPLACE_ONE"), 1.0).delta
    1.0
    """
    arguments.function("law", law)
    epsilon, pairs = _checked_question(datasets, pairs, epsilon)
    return worst_of_table(probabilities(law, datasets, batch_size=batch_size), datasets, pairs, epsilon)


def worst_of_table(p: np.ndarray, datasets: Any, pairs: np.ndarray, epsilon: float) -> Worst:
    """`worst_pair` of a law that `probabilities` has tabulated, so that it can answer several questions."""
    epsilon, pairs = _checked_question(datasets, pairs, epsilon)
    found = sticks(p, pairs, epsilon)
    i, j = (int(index) for index in pairs[int(np.argmax(found))])
    first = jax.tree.map(lambda rows: np.asarray(rows)[i], datasets)
    second = jax.tree.map(lambda rows: np.asarray(rows)[j], datasets)
    return Worst(
        epsilon=epsilon,
        delta=float(found.max()),
        pair=(i, j),
        datasets=(first, second),
        event=p[i] > grown(p[j], epsilon),
        p=p[i],
        q=p[j],
    )


def delta_curve(
    law: Law, datasets: Any, pairs: np.ndarray, epsilons: Sequence[float], *, batch_size: int = 256
) -> np.ndarray:
    """delta(epsilon) over all pairs, for each of `epsilons`; arguments as for `worst_pair`."""
    arguments.function("law", law)
    pairs = _checked_pairs(pairs, _checked_datasets(datasets))
    if not isinstance(epsilons, Sequence | np.ndarray) or len(epsilons) == 0:
        raise TypeError(f"epsilons must list at least one epsilon, got {epsilons!r}")
    checked = [arguments.known("epsilons", epsilon, at_least=0.0, below=math.inf) for epsilon in epsilons]
    p = probabilities(law, datasets, batch_size=batch_size)
    return np.array([sticks(p, pairs, epsilon).max() for epsilon in checked])


def _checked_question(datasets: Any, pairs: Any, epsilon: Any) -> tuple[float, np.ndarray]:
    """epsilon and the pairs, checked."""
    epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf)
    return epsilon, _checked_pairs(pairs, _checked_datasets(datasets))


def _checked_datasets(datasets: Any) -> int:
    """How many datasets there are, all of their arrays of one length."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(datasets)]
    if not shapes or not all(shapes) or len({shape[0] for shape in shapes}) != 1 or shapes[0][0] == 0:
        raise ValueError(f"datasets must be arrays with one leading axis over all datasets, got shapes {shapes}")
    return shapes[0][0]


def _checked_pairs(pairs: Any, datasets: int) -> np.ndarray:
    """`pairs`, if they are (pairs, 2) indices of datasets."""
    pairs = np.asarray(pairs)
    if pairs.size and pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs must hold indices of datasets, got {pairs.dtype}")
    if pairs.ndim != 2 or pairs.shape[0] == 0 or pairs.shape[1] != 2:
        raise ValueError(f"pairs must hold at least one neighbouring pair, shape (pairs, 2), got shape {pairs.shape}")
    wrong = pairs[(pairs < 0) | (pairs >= datasets)]
    if wrong.size:
        raise ValueError(f"pairs must hold indices from 0 to {datasets - 1} of the datasets, got {wrong[0]}")
    return pairs


def sticks(p: np.ndarray, pairs: np.ndarray, epsilon: float, others: np.ndarray | None = None) -> np.ndarray:
    """The hockey-stick of every pair of rows of p; of a row of p and one of `others`, if they are given."""
    scaled = grown(p if others is None else others, epsilon)
    return np.concatenate([np.maximum(p[i] - scaled[j], 0.0).sum(axis=1) for i, j in in_parts(pairs, p.shape[1])])


def in_parts(pairs: np.ndarray, outcomes: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(first, second) indices of the pairs, so many at a time that the laws of each side are about 2^22 numbers at most."""
    size = max(1, 2**22 // max(1, outcomes))
    for start in range(0, len(pairs), size):
        first, second = pairs[start : start + size].T
        yield first, second
