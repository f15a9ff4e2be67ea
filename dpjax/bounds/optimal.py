"""The best possible private algorithm for the interior point problem, by linear programming on small domains.

Interior point (CLNSS, Definition 2): given n points D of X = {0, ..., |X|-1}, output a y with min D <= y <= max D; the failure
of an algorithm is its largest probability of not doing so, over all D of size n. With P_D(y) = Pr[A(D) = y], the least failure of any
(epsilon, delta)-private A is the linear programme

    minimise t   subject to   sum_{y not in [min D, max D]} P_D(y) <= t                         for every D of size n,
                              sum_y max(0, P_D(y) - e^epsilon P_D'(y)) <= delta                 for all neighbours D, D',
                              P_D a law on X                                                    for every D.

**Nothing is lost** by the restrictions that make it finite and small:

- *Outputs in X.* Sending every other output to 0 is post-processing, and such an output was a failure already.
- *Multisets.* Run A on the records in random order. On two neighbouring lists the same permutation gives neighbouring lists, and
  the hockey-stick sum_y max(0, p - e^epsilon q) is jointly convex, so its average is at most delta; the failure is an average of
  failures. What remains depends on the multiset alone.
- *Reflection* x -> |X|-1-x. The average of A and its mirror image is private and fails as little, again by convexity: P_D(y) and
  P_mirror(D)(mirror(y)) are one variable, and one of two mirrored constraints is enough.

**Which sizes** (ADD_OR_REMOVE_ONE). A must be private on all sizes, but its failures count only at size n. Each subset of the constraints
gives a lower bound. Privacy is required on sizes below n, down to 0: without the smallest ones the value can be too low (|X| = 6, n = 2,
epsilon = 1, delta = 0: 0.1814 instead of 0.2012). As for sizes above n, no general reason is known why a mechanism on sizes 0..n should
extend to n + 1. But if its laws of size N > n are all the same, that law serves every size above N as well. So `largest=N` with
`extends=True` gives an algorithm private on all sizes, an upper bound, and the default, sizes 0..n, a lower one. At N = 2n the two agreed,
to 1e-8, in every case tried (tests/test_optimal.py): there sizes above n change nothing.

**More points, more privacy budget, smaller domain: never worse.** Dropping a random record keeps privacy (both relations, by coupling
the dropped records and joint convexity) and keeps the output interior, so the least failure falls with n; `least_n` rests on it.

**Certificates.** Neither number is taken on trust from the solver. `failure` is that of a mechanism which is itself private: the
solver's, mixed with as much of the uniform law as its worst neighbours need. `lower_bound` is by weak duality: for weights w_D >= 0
of sum 1 on datasets of size n and any prices f_{D,D'}(y) >= 0, every private algorithm fails with probability at least

    sum_D min_y [ w_D 1{y not interior to D} + sum_D' f_{D,D'}(y) - e^epsilon sum_D' f_{D',D}(y) ] - delta sum_{D,D'} max_y f_{D,D'}(y),

since sum_y f(y) (P_D(y) - e^epsilon P_D'(y)) <= delta max f. The solver only proposes w and f. It works to
absolute tolerances: for epsilon <= 5 the two sides meet to 1e-8, but an optimum below 1e-7 is known from above only.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dpjax.core import arguments

RELATIONS = ("REPLACE_ONE", "ADD_OR_REMOVE_ONE")
MAX_CONSTRAINTS = {"pure": 400_000, "approximate": 120_000}  # what HiGHS solves in a few minutes
MAX_MULTISETS = 10_000_000  # that are listed
MAX_POINTS = 400_000  # with two values, even this many give too many constraints
MAX_EPSILON = 20.0  # beyond, e^epsilon leaves the solver no digits
_TOLERANCES = {
    "ipm_optimality_tolerance": 1e-12,
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The least worst-case failure of any private algorithm, from both sides.

    Attributes:
      failure: the worst failure of `mechanism`, over all datasets of size n.
      lower_bound: a failure that no private algorithm can go below, proved by a dual solution (up to float64 rounding, rounded down).
      datasets: counts of each value, int (datasets, |X|); of all sizes at which the programme required privacy.
      mechanism: P_D(y), float64 (datasets, |X|); (epsilon, delta)-private on those sizes, up to float64 rounding.
    """

    failure: float
    lower_bound: float
    datasets: np.ndarray
    mechanism: np.ndarray

    @property
    def gap(self) -> float:
        """failure - lower_bound."""
        return self.failure - self.lower_bound


def interior_point(
    domain: int,
    n: int,
    *,
    epsilon: float,
    delta: float,
    relation: str,
    largest: int | None = None,
    extends: bool = False,
) -> Optimum:
    """The least worst-case failure of any (epsilon, delta)-private algorithm for the interior point problem (CLNSS, Definition 2).

    It is the linear programme of this module's docstring, solved by HiGHS and certified from both sides.

    Args:
      domain: |X|, >= 2.
      n: number of points, >= 1.
      epsilon: > 0 and <= MAX_EPSILON, in nats.
      delta: in [0, 1).
      relation: "REPLACE_ONE" (datasets of size n) or "ADD_OR_REMOVE_ONE" (sizes 0 to `largest`).
      largest: ADD_OR_REMOVE_ONE only: the largest size at which privacy is required, >= n (the default).
      extends: ADD_OR_REMOVE_ONE only: whether all datasets of size `largest` > n must have the same law, by which the mechanism
        extends to every larger size.

    Returns:
      An `Optimum`; with `extends` its lower bound is for algorithms with that property only.

    Raises:
      TypeError, ValueError: an argument out of range, or a programme of more than MAX_CONSTRAINTS privacy constraints.
      RuntimeError: HiGHS did not find an optimum.

    Example: with two values and one point nothing beats randomised response, which fails with probability 1/(1 + e^epsilon).
    >>> best = interior_point(2, 1, epsilon=1.0, delta=0.0, relation="REPLACE_ONE")
    >>> round(best.failure, 6), round(best.lower_bound, 6), round(1 / (1 + math.e), 6)
    (0.268941, 0.268941, 0.268941)
    """
    # Python integers, since products of NumPy integers wrap around.
    domain, n = arguments.integer("domain", domain, at_least=2), arguments.count("n", n, at_most=MAX_POINTS)
    arguments.positive(epsilon=epsilon)
    if epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon must be <= {MAX_EPSILON}, got {epsilon!r}")
    delta = arguments.number("delta", delta, at_least=0.0, below=1.0)
    sizes = _sizes(n, relation, largest, arguments.flag("extends", extends))
    _refuse_too_large(domain, sizes, n, delta)
    factor = math.exp(epsilon)
    programme = _programme(domain, n, sizes, relation, extends)
    variables, weights, prices = _solve(programme, factor, delta)
    mechanism = _made_private(programme, variables, factor, delta)
    missed = (mechanism * programme.misses).sum(axis=1)
    return Optimum(
        failure=float(missed[programme.judged].max()),
        lower_bound=_certified(programme, weights, prices, factor, delta),
        datasets=programme.datasets,
        mechanism=mechanism,
    )


def least_n(domain: int, beta: float, *, epsilon: float, delta: float, relation: str, limit: int) -> int | None:
    """The least n at which some (epsilon, delta)-private algorithm finds an interior point with probability 1 - beta.

    Fewer points do not suffice for any algorithm; under ADD_OR_REMOVE_ONE privacy is required on sizes 0..n (see the module).

    Args:
      domain, epsilon, delta, relation: as for `interior_point`.
      beta: allowed worst-case failure, in (0, 1).
      limit: the largest n tried, >= 1.

    Returns:
      n, or None if n = `limit` is not enough.

    Raises:
      TypeError, ValueError: an argument out of range, or a programme too large before n is found.
      RuntimeError: beta lies between the two sides of an `Optimum`, too close to call.

    Example:
    >>> least_n(2, 0.25, epsilon=1.0, delta=0.0, relation="REPLACE_ONE", limit=5)
    2
    """
    arguments.fractions(beta=beta)
    arguments.counts(limit=limit)
    for n in range(1, limit + 1):
        best = interior_point(domain, n, epsilon=epsilon, delta=delta, relation=relation)
        if best.failure <= beta:
            return n
        if best.lower_bound <= beta:
            raise RuntimeError(f"beta = {beta!r} is too close to the optimum {best.failure!r} at n = {n} to call")
    return None


def worst_failure(laws: Callable[[np.ndarray], Any], domain: int, n: int) -> float:
    """The largest probability, over all multisets of size n, that an algorithm with an exact law returns no interior point.

    Args:
      laws: maps datasets, int32 (datasets, n), each in increasing order, to their output laws, float (datasets, outcomes): P[0], ...,
        P[|X|-1] and, where there are any, the probabilities of other outcomes such as ⊥, which are failures.
      domain: |X|, >= 1.
      n: number of points, >= 1.

    Returns:
      max over D of Pr[A(D) < min D, or > max D, or no point]: a sum over the failures, so that small ones keep their digits.

    Raises:
      TypeError, ValueError: an argument out of range, or a law that does not sum to one.

    Example: always answering 0 is wrong on other points.
    >>> worst_failure(lambda datasets: np.eye(3)[np.zeros(len(datasets), int)], 3, 2)
    1.0
    """
    arguments.function("laws", laws)
    datasets = multisets(domain, arguments.integer("n", n, at_least=1))
    p = np.asarray(laws(datasets), np.float64)
    if p.ndim != 2 or len(p) != len(datasets) or p.shape[1] < domain:
        raise ValueError(f"laws must give {len(datasets)} laws of {domain} or more outcomes, got shape {p.shape}")
    wrong = np.flatnonzero(~(np.abs(p.sum(axis=1) - 1) < 1e-4))
    if wrong.size:
        raise ValueError(f"laws must sum to one, got {p[wrong[0]].sum()} for points {datasets[wrong[0]].tolist()}")
    y = np.arange(p.shape[1])
    return float(p.sum(axis=1, where=(y < datasets[:, :1]) | (y > datasets[:, -1:])).max())


def multisets(domain: int, size: int) -> np.ndarray:
    """All multisets of `size` elements of {0, ..., domain - 1} as increasing rows, int32 (multisets, size), in lexicographic order.

    Args:
      domain: >= 1.
      size: >= 0.

    Raises:
      TypeError, ValueError: an argument out of range, or more than MAX_MULTISETS.

    >>> multisets(3, 2).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
    """
    arguments.counts(domain=domain, unbounded=True)
    arguments.counts(at_least=0, size=size, unbounded=True)
    if _count(domain, size) > MAX_MULTISETS:
        raise ValueError(f"domain and size must give at most {MAX_MULTISETS} multisets, got {domain} and {size}")
    rows = list(itertools.combinations_with_replacement(range(domain), size))
    return np.array(rows, np.int32).reshape(len(rows), size)


def _count(domain: int, size: int) -> int:
    """How many multisets there are; 2^64 stands for more."""
    fewer = min(domain - 1, size)
    return 2**64 if fewer >= 64 else math.comb(domain + size - 1, fewer)


def _sizes(n: int, relation: str, largest: int | None, extends: bool) -> range:
    """The sizes at which privacy is required."""
    if relation not in RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}")
    if relation == "REPLACE_ONE":
        if largest is not None or extends:
            raise ValueError(f"largest and extends must be left out under REPLACE_ONE, got {largest!r} and {extends!r}")
        return range(n, n + 1)
    if largest is None:
        largest = n
    arguments.count("largest", largest, at_least=n + 1 if extends else n, at_most=MAX_POINTS)
    return range(largest + 1)


def _refuse_too_large(domain: int, sizes: range, n: int, delta: float) -> None:
    """ValueError before anything is enumerated."""
    if len(sizes) == 1:  # a record of a dataset changes to another value
        pairs = domain * (domain - 1) * _count(domain, n - 1)
    else:
        pairs = 2 * domain * sum(_count(domain, size) for size in sizes[:-1])
    most = MAX_CONSTRAINTS["approximate" if delta else "pure"]
    if (constraints := pairs * domain // 2) > most:
        raise ValueError(
            f"domain and n must give at most {most} privacy constraints, got domain = {domain}, n = {n}, sizes up to {sizes[-1]}: "
            f"{constraints}"
        )


@dataclasses.dataclass(frozen=True)
class _Programme:
    """The problem up to reflection.

    Attributes:
      datasets: counts (datasets, |X|). misses: which outputs are not interior, of the same shape.
      judged: indices of the datasets whose failure counts. pairs: indices (pairs, 2) of ordered neighbours, one of two mirrored pairs.
      columns: the variable that stands for P_D(y), (datasets, |X|). laws: the distinct laws, as variables (laws, |X|).
    """

    datasets: np.ndarray
    misses: np.ndarray
    judged: np.ndarray
    pairs: np.ndarray
    columns: np.ndarray
    laws: np.ndarray

    @property
    def variables(self) -> int:
        """How many distinct P_D(y) there are."""
        return int(self.columns.max()) + 1

    def failures(self) -> Any:
        """Sparse (judged, variables): the failure of each judged dataset."""
        row, y = np.nonzero(self.misses[self.judged])
        return self._sparse([(row, self.columns[self.judged[row], y], 1.0)], len(self.judged))

    def losses(self, factor: float) -> Any:
        """Sparse (pairs |X|, variables): P_D(y) - factor P_D'(y)."""
        here, there = self.columns[self.pairs[:, 0]].ravel(), self.columns[self.pairs[:, 1]].ravel()
        row = np.arange(len(here))
        return self._sparse([(row, here, 1.0), (row, there, -factor)], len(row))

    def totals(self) -> Any:
        """Sparse (laws, variables): the total probability of each law."""
        row = np.repeat(np.arange(len(self.laws)), self.laws.shape[1])
        return self._sparse([(row, self.laws.ravel(), 1.0)], len(self.laws))

    def _sparse(self, parts: list[tuple[np.ndarray, np.ndarray, float]], rows: int) -> Any:
        """(row, column, value) triples as a matrix; values at the same place add up."""
        from scipy import sparse

        row, column = (np.concatenate([part[axis] for part in parts]) for axis in (0, 1))
        value = np.concatenate([np.full(len(part[0]), part[2]) for part in parts])
        return sparse.coo_array((value, (row, column)), shape=(rows, self.variables)).tocsr()


def _programme(domain: int, n: int, sizes: range, relation: str, extends: bool) -> _Programme:
    """Enumerates datasets, neighbours and their reflection classes."""
    points = [multisets(domain, size) for size in sizes]
    datasets = np.concatenate([(rows[:, :, None] == np.arange(domain)).sum(axis=1) for rows in points])
    places = {row.tobytes(): place for place, row in enumerate(datasets)}
    mirror = np.array([places[row.tobytes()] for row in np.ascontiguousarray(datasets[:, ::-1])])
    size = datasets.sum(axis=1)
    constant = np.flatnonzero(size == sizes[-1]) if extends else np.zeros(0, np.int64)
    chosen = np.arange(len(datasets)) <= mirror
    columns = _columns(datasets.shape, mirror, constant)
    return _Programme(
        datasets=datasets,
        misses=_misses(datasets),
        judged=np.flatnonzero(chosen & (size == n)),
        pairs=_neighbours(datasets, places, mirror, relation),
        columns=columns,
        laws=columns[np.setdiff1d(np.flatnonzero(chosen), constant[1:])],
    )


def _misses(datasets: np.ndarray) -> np.ndarray:
    """Which outputs lie outside [min D, max D]; all do when D is empty."""
    held = datasets > 0
    reached, left = np.logical_or.accumulate(held, axis=1), np.logical_or.accumulate(held[:, ::-1], axis=1)[:, ::-1]
    return ~(reached & left)


def _columns(shape: tuple[int, int], mirror: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Numbers the classes of (D, y) that share a probability: mirror images, and the datasets that share their law."""
    own = np.arange(math.prod(shape)).reshape(shape)
    own[constant] = own[constant[:1]]
    classes = np.minimum(own, own[mirror][:, ::-1])
    return np.unique(classes, return_inverse=True)[1].reshape(shape)


def _neighbours(datasets: np.ndarray, places: dict[bytes, int], mirror: np.ndarray, relation: str) -> np.ndarray:
    """Ordered neighbouring pairs as indices (pairs, 2), the first of two mirrored ones."""
    unit = np.eye(datasets.shape[1], dtype=datasets.dtype)
    if relation == "REPLACE_ONE":
        moves = [b - a for a, b in itertools.permutations(unit, 2)]
    else:
        moves = [sign * a for a in unit for sign in (1, -1)]
    moved = [(place, row.tobytes()) for move in moves for place, row in enumerate(datasets + move)]
    pairs = np.array([(place, places[row]) for place, row in moved if row in places])
    number, reflected = (two[:, 0] * len(datasets) + two[:, 1] for two in (pairs, mirror[pairs]))
    return pairs[number <= reflected]


def _solve(programme: _Programme, factor: float, delta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """HiGHS: (value of every variable, weight of every judged dataset, price of every pair and output)."""
    from scipy import optimize, sparse

    failures, losses, totals = programme.failures(), programme.losses(factor), programme.totals()
    rows, domain = losses.shape[0], programme.datasets.shape[1]
    worst = sparse.csr_array(np.full((failures.shape[0], 1), -1.0))
    blocks = [[failures, worst], [losses, None]]
    limits = np.zeros(failures.shape[0] + rows)
    if delta > 0:  # excess >= P_D(y) - factor P_D'(y), >= 0, and at most delta in all for a pair
        pair_total = sparse.kron(sparse.eye_array(rows // domain), np.ones((1, domain)))
        blocks = [[failures, worst, None], [losses, None, -sparse.eye_array(rows)], [None, None, pair_total]]
        limits = np.append(limits, np.full(rows // domain, delta))
    constraints = sparse.block_array(blocks, format="csr")
    objective = np.zeros(constraints.shape[1])
    objective[programme.variables] = 1.0
    totals.resize(totals.shape[0], constraints.shape[1])
    equal = np.ones(totals.shape[0])
    result = optimize.linprog(
        objective, constraints, limits, totals, equal, bounds=(0, 1), method="highs-ipm", options=_TOLERANCES
    )
    if result.status != 0:
        raise RuntimeError(f"HiGHS found no optimum: {result.message}")
    multipliers = np.maximum(-result.ineqlin.marginals, 0.0)
    weights, prices = np.split(multipliers[: failures.shape[0] + rows], [failures.shape[0]])
    return result.x[: programme.variables], weights, prices


def _made_private(programme: _Programme, variables: np.ndarray, factor: float, delta: float) -> np.ndarray:
    """The laws, mixed with as much of the uniform law as the solver's tolerance makes necessary."""
    law = np.maximum(variables, 0.0)[programme.columns]
    law /= law.sum(axis=1, keepdims=True)
    here, there = law[programme.pairs.T]
    excess = max(0.0, float(np.maximum(here - factor * there, 0.0).sum(axis=1).max()) - delta)
    # (1 - share) (delta + excess) - share (factor - 1) / |X| = delta or less: an event has at least one output.
    share = excess / (delta + excess + (factor - 1) / law.shape[1]) if excess > 0 else 0.0
    return (1 - share) * law + share / law.shape[1]


def _certified(programme: _Programme, weights: np.ndarray, prices: np.ndarray, factor: float, delta: float) -> float:
    """The weak-duality bound of the module's docstring, from any weights and prices >= 0."""
    if not weights.sum() > 0:
        return 0.0
    prices, weights = prices / weights.sum(), weights / weights.sum()
    failures, losses = programme.failures(), programme.losses(factor)
    cost = failures.T @ weights + losses.T @ prices
    # A variable that occurs twice in its law has half the cost, and half the probability, at each place.
    share = cost / np.bincount(programme.laws.ravel(), minlength=programme.variables)
    paid = delta * prices.reshape(-1, programme.datasets.shape[1]).max(axis=1).sum()
    rounding = 2.0**-45 * (weights.sum() + (abs(losses).T @ prices).sum())
    return max(0.0, float(share[programme.laws].min(axis=1).sum() - paid - rounding))
