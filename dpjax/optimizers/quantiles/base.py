"""Common parts of private quantiles: ranks, stretches of sorted rows with their windows, and the size that a slice must have."""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, basic, optimal
from dpjax.accounting.adaptive import adaptive_total
from dpjax.accounting.bounded import BOUNDED, composes_by_range, independent_total
from dpjax.accounting.exponential import currency
from dpjax.core import arguments
from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen
from dpjax.core.staging import once
from dpjax.data.algorithm import Algorithm
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import scaled, wide
from dpjax.domains.scaled import Scaled

MOST_POINTS = 2**30  # of a slice, so that its ends are int32 ranks
MOST_ROWS = 2**31 - 1  # of any dataset, so that it is public
ACCOUNTANTS = ("basic", "optimal")


class Quantiles(Algorithm):
    """A mechanism on `Points` of X_bits (or on a `Sample`, whose labels it ignores): it outputs the quantiles, in increasing order.

    Attributes:
      bits, limbs: the bits of the domain of the points, and the limbs of a point.
      fractions: the integers F of the fractions F 2^-32, in increasing order.
    """

    kind: ClassVar[type] = Points
    bits: Any
    limbs: int
    fractions: UInt32[Any, "quantiles"]

    def fit(self, data: Any) -> Points:
        return fitted(Points.of(data), Points, bits=self.bits, limbs=(self.limbs,), name="points")

    def prepare(self, points: Points) -> Points:
        return points.in_order(self.limbs)

    def focused(self, rows: int) -> Any:
        """The same mechanism for data of `rows` rows, with runs that process only a few of them if its law allows that; else itself."""
        return self

    def guarantee_under(self, relation: str) -> Guarantee:
        """The guarantee under a neighbouring relation: `guarantee`, converted."""
        return self.guarantee().under(relation)


class OnSlices:
    """Base of quantiles whose solver runs on slices of the data; their domain is the solver's."""

    solver: Any

    @property
    def bits(self) -> Any:
        """Bits of the domain."""
        return self.solver.bits

    @property
    def limbs(self) -> int:
        """Limbs of a point."""
        return self.solver.limbs


@frozen
class Stretch:
    """Sorted rows first, ..., stop - 1 of an array, continued by endless copies of `low` before them and of `high` after them."""

    x: Any  # whole rows, or `Scaled`
    first: Int[Array, ""]
    stop: Int[Array, ""]
    low: UInt32[Array, "limbs"]
    high: UInt32[Array, "limbs"]

    def window(self, start: Int[Array, ""], size: Int[Array, ""], capacity: int) -> Points:
        """Rows start, ..., start + size - 1 of the continuation, as points with room for `capacity`."""
        row = start + jnp.arange(capacity, dtype=jnp.int32)
        kept = jnp.clip(row, 0, self.x.shape[0] - 1)
        inside = self.x.at(kept) if isinstance(self.x, Scaled) else self.x[kept]
        x = wide.select(row < self.first, self.low[None], wide.select(row < self.stop, inside, self.high[None]))
        # Stored, since otherwise the selection would be fused into every access of a solver to its points.
        return Points(x=once(lambda x: x, x), n_valid=size, ordered=True)


def ranks(fraction: UInt32[ArrayLike, "*k"], n: Int[ArrayLike, ""]) -> tuple[UInt32[Array, "*k"], UInt32[Array, "*k"]]:
    """The integer part of f n, and 2^32 times its fractional part, for a fraction f = F 2^-32."""
    fraction, count = jnp.asarray(fraction), jnp.asarray(n, jnp.int32).astype(jnp.uint32)
    return wide.high_product(fraction, count), fraction * count


def nearest_rank(fraction: UInt32[ArrayLike, "*k"], n: Int[ArrayLike, ""]) -> Int[Array, "*k"]:
    """k(n) = floor(F n / 2^32 + 1/2) in integers, for a fraction F 2^-32; it moves by 0 or 1 when n moves by 1.

    >>> nearest_rank(np.uint32([2**30, 2**31]), 7).tolist()
    [2, 4]
    """
    whole, rest = ranks(fraction, n)
    return (whole + (rest >> np.uint32(31))).astype(jnp.int32)


@jax.jit
def rank_errors(points: Points, answers: UInt32[Array, "k limbs"], ranks: Int[Array, "k"]) -> Int[Array, "k"]:
    """The distance of each wanted rank from the ranks of its answer z, #{x < z}, ..., #{x <= z}; the points must be sorted.

    >>> points = Points.create(wide.from_ints([3, 5, 5, 9], 8), ordered=True)
    >>> rank_errors(points, wide.from_ints([5, 4], 8), jnp.array([2, 3])).tolist()
    [0, 2]
    """
    limbs = max(points.x.shape[-1], answers.shape[-1])
    x: Any = points.x
    at = scaled.at(x.resized(limbs) if isinstance(x, Scaled) else wide.resize(x, limbs))
    answers, n = wide.resize(answers, limbs), points.n_valid

    def error(answer: Array, rank: Array) -> Array:
        below = first_where(lambda index: ~wide.less(at(index), answer), jnp.int32(0), n, points.rows)
        up_to = first_where(lambda index: wide.less(answer, at(index)), below, n, points.rows)
        return jnp.maximum(jnp.maximum(below - rank, rank - up_to), 0)

    return jax.vmap(error)(answers, ranks)


def ends(bits: Int[Array, ""], limbs: int) -> UInt32[Array, "2 limbs"]:
    """The first and the last point of the domain, 0 and 2^bits - 1."""
    return jnp.stack([jnp.zeros((limbs,), jnp.uint32), wide.largest(bits, limbs)])


def in_order(runs: Outcome) -> tuple[UInt32[Array, "k limbs"], Bool[Array, ""], dict[str, Any]]:
    """One outcome from the stacked outcomes of all runs: (the answers in order; whether all runs had one; info, which says which had).

    Sorting moves no rank error above the largest: at least q - i + 1 of the answers, namely z_i, ..., z_q, have as many points below them
    as z_i must have; so the i-th smallest answer has them, too. The same holds above.
    """
    ok = runs.status == Status.OK
    return wide.sort(runs.hypothesis)[0], jnp.all(ok), {"ok": ok}


def stretch_of(quantiles: Any, points: Points) -> Stretch:
    """All sorted points, continued by the ends of the domain, for quantiles with `bits` and `limbs`."""
    low, high = ends(quantiles.bits, quantiles.limbs)
    return Stretch(x=points.x, first=jnp.int32(0), stop=points.n_valid, low=low, high=high)


def around(quantiles: Any, points: Points, ranks: Int[Array, "k"]) -> Points:
    """The 2m points around each rank, stacked, for quantiles with `m` and `capacity`; past the data these are the ends of the domain."""
    stretch, m = stretch_of(quantiles, points), jnp.asarray(quantiles.m, jnp.int32)
    return jax.vmap(lambda rank: stretch.window(rank - m, 2 * m, quantiles.capacity))(ranks)


# ------------------------------------------------------------------------------------------------ what factories check


def check_solver(solver: Any, name: str = "solver") -> None:
    """TypeError unless it is a solver of the interior point problem."""
    parts = ("bits", "limbs", "sample_size", "guarantee")
    usable = callable(solver) and not isinstance(solver, type) and all(hasattr(solver, part) for part in parts)
    if not usable or getattr(solver, "kind", Points) is not Points or isinstance(solver, Quantiles):
        raise TypeError(f"{name} must be one of dpjax.optimizers.interior_point, got {solver!r}")


def half_slice(solver: Any, *, beta: float) -> int:
    """The least m for which 2m points suffice for the solver, by its own `sample_size`, to fail with probability at most beta."""
    check_solver(solver)
    return -(-solver.sample_size(beta=beta) // 2)


def half_width(solver: Any, m: Any, *, runs: int, beta: Any, allow_unproved: bool) -> dict[str, Any]:
    """The fields m and capacity (rows of a slice of 2m points), for slices large enough that all runs succeed except with probability beta.

    Raises:
      TypeError: not a solver, or m not an int. ValueError: m below `half_slice` at beta / runs, and not `allow_unproved`.
    """
    check_solver(solver)
    m = arguments.integer("m", m, at_least=1, at_most=MOST_POINTS // 2)
    share = arguments.known_fraction("beta", beta) / runs
    if not arguments.flag("allow_unproved", allow_unproved):
        require(solver, m, share)
    return {"m": np.int32(m), "capacity": bucket(2 * m)}


def require(solver: Any, m: int, beta: float) -> None:
    """ValueError if slices of 2m points are too small for the solver to fail with probability at most beta."""
    needed = half_slice(solver, beta=beta)
    if m < needed:
        raise ValueError(f"m must be >= {needed} for the solver to fail with probability <= {beta:g}, got {m}")


def composition(accountant: Any, delta: Any, solver: Any, *, by_ranges: str) -> dict[str, Any]:
    """The fields accountant and delta: how runs are composed, and the total delta of their composition.

    Runs of exponential mechanisms may be composed `by_ranges`: "bounded" if none depends on what others release, otherwise "adaptive".

    Raises:
      TypeError, ValueError: an unknown accountant, or `by_ranges` for other solvers; a delta with "basic", or none with another.
    """
    if accountant != by_ranges or not composes_by_range(solver):
        arguments.choice("accountant", accountant, ACCOUNTANTS)
    if (delta is None) == (accountant != "basic"):
        raise ValueError(f'delta must be given for every accountant but "basic", got {delta!r}')
    return {"accountant": accountant, "delta": np.float64(0.0) if delta is None else arguments.delta(delta)}


def composed(accountant: str, solver: Any, each: Guarantee, runs: int, delta: float) -> Guarantee:
    """The guarantee of all runs of a solver together: by basic composition, or by another one at a total delta.

    None by ranges, if the solver was replaced by one whose losses have no such range.
    """
    if accountant == "basic":
        return basic({each: runs})
    if accountant == "optimal":
        return optimal({each: runs}, delta=delta)
    if not composes_by_range(solver):
        return Guarantee.none(each.relation)
    return (independent_total if accountant == BOUNDED else adaptive_total)(each, runs, delta)


def total(epsilon: Any, delta: Any, rho: Any, *, per_root: float, least: float = 0.0) -> dict[str, Any]:
    """The fields epsilon, `least` or more, and delta, for a total given as epsilon and delta, or as rho.

    A total of rho is the pure epsilon `per_root` sqrt(8 rho), at which the same mechanism is rho-zCDP.

    Raises:
      TypeError, ValueError: an argument out of range; both epsilon and rho, or neither; a delta with rho.
    """
    currency(epsilon, delta, rho)
    if rho is not None:
        rho = arguments.real("rho", rho, above=0.0, below=math.inf)
        epsilon = per_root * (1 - 2.0**-44) * (8 * rho) ** 0.5
        if not arguments.is_traced(epsilon) and epsilon < least:  # refused by the name that callers know it by
            enough = (least / per_root) ** 2 / 8 * (1 + 2.0**-42)
            raise ValueError(f"rho must be >= {enough}, for an epsilon of {least}, got {float(rho)!r}")
    epsilon = arguments.real("epsilon", arguments.epsilon(epsilon), at_least=least)
    return {"epsilon": epsilon, "delta": arguments.delta(delta, positive=False)}


def at_distance_two(solver: Any, relation: str = ADD_OR_REMOVE_ONE) -> Guarantee:
    """The solver's guarantee for slices of equal size that differ by one replacement: two steps of add/remove, or one of replace-one."""
    replaced = solver.guarantee().under(REPLACE_ONE)
    return Guarantee(replaced.epsilon, replaced.delta, relation)
