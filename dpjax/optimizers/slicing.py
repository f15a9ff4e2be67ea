"""Reorder-Slice-Compute (CLNSS, Algorithm 1): many private computations on disjoint slices of one dataset.

Round i takes the first m_i + Geom(1 - exp(-epsilon_s)) of the remaining records, in an order chosen for this round,
and runs a private mechanism on that slice. Sizes, orders and mechanisms may depend on everything published
before. A record is in at most one slice, and the noise in the sizes lets two neighbouring runs fall into step after a few rounds (Theorem
2.1), so the price hardly grows with the number of slices; `dpjax.accounting.slicing` computes it.

Records are rows of padded arrays that the caller keeps. A slice is a mask over the rows, so everything jits and
vmaps, and padding changes nothing. There are two ways to use it:

- `Slicing`: cut, compute, look at the results, cut again; plain Python code decides what comes next.
- `reorder_slice_compute`: the paper's form, a list of steps, then delayed computations.

Algorithms that know all their steps beforehand are built from the stages of a cut: `noise` draws the noise of many sizes at once, `take`
cuts once; `take_ends` cuts both ends of one order, `consecutive` many slices of one order.

The theorem requires of an order that adding one record to those remaining inserts one entry into the ordered list (from position m_i on,
see `dpjax.verify.slicing_proof.difference`). Sorting by keys that depend on each record alone ensures that. Keys that depend on other
records, such as TreeLog's levels, need a proof of their own.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Int, Integer

from dpjax.accounting import slicing as accountant
from dpjax.accounting.composition import basic
from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen
from dpjax.domains import selection
from dpjax.mechanisms.geometric import SMALLEST_RATE, one_sided_geometric
from dpjax.mechanisms.laplace import Number

Order = Sequence[Integer[Array, "rows ..."]]
Mechanism = Callable[[Array, Bool[Array, "rows"]], Any]


def cut(
    key: Array,
    remaining: Bool[Array, "rows"],
    size: Int[ArrayLike, ""],
    *,
    order: Order = (),
    slice_epsilon: Number | None,
) -> tuple[Bool[Array, "rows"], Bool[Array, "rows"]]:
    """Takes the first size + Geom(1 - exp(-slice_epsilon)) of the remaining records.

    Args:
      key: a PRNG key.
      remaining: which rows still are in the dataset.
      size: the least size m of the slice, a count >= 0, may be traced; all remaining records if there are fewer.
      order: sort keys, the most significant first: integers of shape (rows,) or, for wide numbers, (rows, limbs). Records with equal keys
        are taken in row order: let the keys distinguish any records that differ. Without keys all are taken in row order, without a sort.
      slice_epsilon: the rate of the size noise, at least 2^-25; None or infinity for none: then sizes are public.

    Returns:
      (slice, what remains after it), as masks.

    Formal guarantees: none by itself, as the slice is not a release; see `Slicing`.

    Raises:
      ValueError: size negative, slice_epsilon below 2^-25 or NaN, a key without one entry for each row.
      TypeError: size or a key not of integers, or remaining not a mask.

    >>> import jax, jax.numpy as jnp
    >>> points = jnp.array([5, 1, 4, 2, 3])
    >>> taken, rest = cut(jax.random.key(0), points < 5, 2, order=(points,), slice_epsilon=None)
    >>> points[taken].tolist(), points[rest].tolist()
    ([1, 2], [4, 3])
    """
    key = arguments.key(key)
    if str(getattr(remaining, "dtype", None)) != "bool" or remaining.ndim != 1:
        raise TypeError(f"remaining must be a mask, an array of one boolean a row, got {remaining!r}")
    rows = remaining.shape[0]
    wanted = jnp.minimum(_checked_size(size), rows) + noise(key, slice_epsilon, most=rows)
    return take(remaining, wanted, order)


def noise(
    key: Array, slice_epsilon: Number | None, *, most: Int[ArrayLike, "*#s"], shape: tuple[int, ...] = ()
) -> Int[Array, "*s"]:
    """The noise of slices' sizes, clipped at `most`, where this makes no difference and nothing can overflow.

    >>> import jax
    >>> noise(jax.random.key(0), None, most=5, shape=(2,)).tolist()
    [0, 0]
    """
    slice_epsilon = _checked_epsilon(slice_epsilon)
    if slice_epsilon is None:
        return jnp.zeros(shape, jnp.int32)
    return jnp.minimum(one_sided_geometric(key, shape, epsilon=slice_epsilon), most)


def take(
    remaining: Bool[Array, "rows"], size: Int[Array, ""], order: Order
) -> tuple[Bool[Array, "rows"], Bool[Array, "rows"]]:
    """(The first `size` of the remaining records, what remains after them); a size includes its noise. Arguments as for `cut`."""
    taken = selection.first(size, remaining, _checked_order(order, remaining.shape[0]))
    return taken, remaining & ~taken


def take_ends(
    remaining: Bool[Array, "rows"], sizes: Int[Array, "2"], order: Order
) -> tuple[Bool[Array, "2 rows"], Bool[Array, "rows"]]:
    """(The first sizes[0] records and the last sizes[1] of the others, what remains): two cuts, the second in the opposite order.

    Both are read off one selection. The opposite order reverses the rows, too, which distinguish records with equal keys.

    >>> points = jnp.array([5, 1, 4, 2, 3])
    >>> taken, rest = take_ends(points < 5, jnp.array([1, 2], jnp.int32), (points,))
    >>> points[taken[0]].tolist(), points[taken[1]].tolist(), points[rest].tolist()
    ([1], [4, 3], [2])
    """
    count = jnp.sum(remaining, dtype=jnp.int32)
    ranks = jnp.stack([sizes[0], jnp.maximum(count - sizes[1], sizes[0])])
    low, others = jax.vmap(lambda rank: take(remaining, rank, order)[0])(ranks)
    return jnp.stack([low, remaining & ~others]), others & ~low


def consecutive(sizes: Int[Array, "slices"], records: Int[Array, ""]) -> Int[Array, "slices"]:
    """The ends of slices that are cut one after the other in an order that never changes, as positions in the ordered list.

    They are the partial sums of the sizes, cut off at the number of records before they can overflow.

    >>> consecutive(jnp.array([2, 3, 4], jnp.int32), jnp.int32(6)).tolist()
    [2, 5, 6]
    """

    def step(end: Array, size: Array) -> tuple[Array, Array]:
        end = end + jnp.minimum(size, records - end)
        return end, end

    return jax.lax.scan(step, jnp.zeros_like(records), sizes)[1]


def descending(key: Integer[Array, "rows *s"]) -> Integer[Array, "rows *s"]:
    """The sort key of the opposite order: the largest come first.

    >>> import jax.numpy as jnp
    >>> descending(jnp.array([0, 7], jnp.uint32)).tolist()
    [4294967295, 4294967288]
    """
    return ~key


def _checked_size(size: Any) -> Array:
    """The size as an int32 scalar."""
    if arguments.is_traced(size):
        if not jnp.issubdtype(size.dtype, jnp.integer):
            raise TypeError(f"size must be an integer, got {size.dtype}")
        most = min(2**31 - 1, int(jnp.iinfo(size.dtype).max))  # wider integers would wrap around
        return jnp.minimum(size, jnp.asarray(most, size.dtype)).astype(jnp.int32)
    return jnp.int32(arguments.integer("size", np.asarray(size)[()], at_least=0, at_most=2**31 - 1))


def _checked_epsilon(slice_epsilon: Number | None) -> Number | None:
    """The rate of the noise, None for no noise."""
    if slice_epsilon is None or (not arguments.is_traced(slice_epsilon) and slice_epsilon == math.inf):
        return None
    return arguments.real("slice_epsilon", slice_epsilon, at_least=SMALLEST_RATE)


def _checked_order(order: Any, rows: int) -> Order:
    """Integer keys that JAX does not truncate, one entry for each row."""
    return tuple(_checked_keys(f"order[{place}]", keys, rows) for place, keys in enumerate(order))


def _checked_keys(name: str, keys: Any, rows: int) -> Any:
    keys = keys if hasattr(keys, "dtype") else arguments.array(name, keys)
    if keys.ndim not in (1, 2) or keys.shape[0] != rows:
        raise ValueError(f"{name} must have shape ({rows},) or ({rows}, limbs), got {keys.shape}")
    if not jnp.issubdtype(keys.dtype, jnp.integer):
        raise TypeError(f"{name} must hold integers, got {keys.dtype}")
    held = np.iinfo(jax.dtypes.canonicalize_dtype(keys.dtype))
    if isinstance(keys, np.ndarray) and keys.size and not held.min <= int(keys.min()) <= int(keys.max()) <= held.max:
        rule = f"hold integers that {held.dtype} holds, or be split into limbs of 32 bits"
        raise ValueError(f"{name} must {rule}, got {keys.min()} to {keys.max()}")
    return keys


@frozen
class Spent:
    """The cost of a run, for `dpjax.accounting.slicing` to evaluate.

    Attributes:
      slice_epsilon: the rate of the size noise; None when sizes are public, and then only plain composition applies.
      computes: for each slice, the (epsilon, delta) of everything run on it.

    Numbers that have passed through a compiled program are in its default float: for an evaluation exact to the last digit, take them from
    a run outside `jit`, or supply them yourself. If budgets or the number of slices depended on what was published, supply bounds that were
    known beforehand: what one run happened to spend bounds no other run, and a promise is about all of them.
    """

    slice_epsilon: Number | None
    computes: tuple[tuple[tuple[Number, Number], ...], ...] = ()

    def per_slice(self) -> tuple[Guarantee, ...]:
        """The composition of everything run on each slice, under add/remove."""
        idle = Guarantee(0.0, 0.0, ADD_OR_REMOVE_ONE)
        parts = [[Guarantee(float(e), float(d), ADD_OR_REMOVE_ONE) for e, d in slice_] for slice_ in self.computes]
        return tuple(basic(slice_) if slice_ else idle for slice_ in parts)

    def worst(self) -> Guarantee:
        """An (epsilon, delta) that holds for every slice, as the slicing accountant requires.

        >>> Spent(slice_epsilon=0.1, computes=(((0.25, 0.0), (0.25, 1e-9)), ((0.125, 1e-8),))).worst()
        Guarantee(epsilon=0.5, delta=1e-08, relation='ADD_OR_REMOVE_ONE')
        """
        each = self.per_slice()
        largest = (max((part.epsilon for part in each), default=0.0), max((part.delta for part in each), default=0.0))
        return Guarantee(*largest, ADD_OR_REMOVE_ONE)

    def run(self) -> accountant.Run:
        """The same for the accountants: `run().guarantee(delta=...)`, `run().best(delta=...)`.

        Raises:
          ValueError: no slice noise, which their theorem needs.

        >>> spent = Spent(slice_epsilon=0.05, computes=(((0.05, 0.0),),) * 100)
        >>> spent.run().best(delta=1e-6).accountant
        'numerical'
        """
        if self.slice_epsilon is None:
            raise ValueError("slice_epsilon must be a number for the slicing accountants, got None: compose instead")
        return accountant.Run(float(self.slice_epsilon), self.worst(), slices=max(1, len(self.computes)))


@frozen
class Slicing:
    """A Reorder-Slice-Compute run in progress; begin it by `Slicing.create`.

    Attributes:
      remaining: the rows in no slice so far.
      slices: the slices as masks, in the order they were cut.
      spent: what has been computed on them.

    Formal guarantees: with size noise, everything published is private by Theorem 2.1 (any number of computations on a slice, at
    any time after it was cut: Corollary 2.2; several runs: Theorem 2.3), under ADD_OR_REMOVE_ONE, at the budget that
    `dpjax.accounting.slicing` computes from `spent`; without noise, by composition. This requires orders as described in the module, and
    mechanisms that are as private as declared under ADD_OR_REMOVE_ONE and see only the rows of their slice. Masks are not releases. Not
    promised: protection from floating-point side channels, a cryptographic generator.

    Example: the two smallest, then the two largest of the rest, and a private count of the latter.
    >>> import jax, jax.numpy as jnp
    >>> from dpjax.mechanisms.geometric import geometric
    >>> points = jnp.array([5, 1, 4, 2, 3])
    >>> low, high, coin = jax.random.split(jax.random.key(0), 3)
    >>> run = Slicing.create(jnp.ones(5, bool), slice_epsilon=None)
    >>> run = run.cut(low, 2, order=(points,)).cut(high, 2, order=(descending(points),))
    >>> points[run.slices[0]].tolist(), points[run.slices[1]].tolist(), points[run.remaining].tolist()
    ([1, 2], [5, 4], [3])
    >>> count, run = run.compute(coin, lambda key, mask: geometric(key, mask.sum(), epsilon=0.5), epsilon=0.5)
    >>> run.spent.worst().epsilon
    0.5
    """

    remaining: Bool[Array, "rows"]
    slices: tuple[Bool[Array, "rows"], ...] = ()
    spent: Spent

    @classmethod
    def create(cls, remaining: Bool[Array, "rows"], *, slice_epsilon: Number | None) -> "Slicing":
        """The whole dataset, nothing cut yet.

        Args:
          remaining: which rows are records.
          slice_epsilon: as for `cut`.
        """
        return cls(remaining=remaining, spent=Spent(slice_epsilon=_checked_epsilon(slice_epsilon)))

    def cut(self, key: Array, size: Int[ArrayLike, ""], *, order: Order = ()) -> "Slicing":
        """The run with one slice more; arguments as for the function `cut`."""
        epsilon = self.spent.slice_epsilon
        taken, rest = cut(key, self.remaining, size, order=order, slice_epsilon=epsilon)
        spent = Spent(slice_epsilon=epsilon, computes=(*self.spent.computes, ()))
        return Slicing(remaining=rest, slices=(*self.slices, taken), spent=spent)

    def compute(
        self, key: Array, mechanism: Mechanism, *, index: int = -1, epsilon: Number, delta: Number = 0.0
    ) -> tuple[Any, "Slicing"]:
        """Runs a mechanism on a slice, now or later (delayed compute).

        Args:
          key: a PRNG key.
          mechanism: (key, mask of the slice) -> what is published; (epsilon, delta)-private under ADD_OR_REMOVE_ONE.
          index: which slice; by default the last one.
          epsilon, delta: the cost of the mechanism.

        Returns:
          (what is published, the run with this cost added).

        Raises:
          ValueError: no such slice, or a budget out of range.
        """
        cost = (arguments.epsilon(epsilon), arguments.delta(delta, positive=False))
        count = len(self.slices)
        if not -count <= arguments.integer("index", index, at_least=-(2**63)) < count:
            raise ValueError(f"index must be one of the {count} slices cut so far, got {index}")
        index %= count
        computes = tuple((*costs, cost) if place == index else costs for place, costs in enumerate(self.spent.computes))
        spent = Spent(slice_epsilon=self.spent.slice_epsilon, computes=computes)
        return mechanism(key, self.slices[index]), Slicing(remaining=self.remaining, slices=self.slices, spent=spent)


class Step(NamedTuple):
    """A round of the slicing phase: the triple (m_i, E_i, A_i) and the cost of A_i.

    Attributes:
      size: the least size m_i.
      order: the sort keys of `cut` as a function of the mask of remaining records.
      mechanism: as for `Slicing.compute`; None to compute nothing now.
      epsilon, delta: the cost of the mechanism.
    """

    size: Int[ArrayLike, ""]
    order: Callable[[Bool[Array, "rows"]], Order]
    mechanism: Mechanism | None = None
    epsilon: Number = 0.0
    delta: Number = 0.0


class Delayed(NamedTuple):
    """A delayed computation on slice number `which`; the rest as for `Step`."""

    which: int
    mechanism: Mechanism
    epsilon: Number
    delta: Number = 0.0


def reorder_slice_compute(
    key: Array,
    remaining: Bool[Array, "rows"],
    steps: Sequence[Callable[[tuple[Any, ...]], Step]],
    *,
    delayed: Sequence[Callable[[tuple[Any, ...]], Delayed]] = (),
    slice_epsilon: Number | None,
) -> tuple[tuple[Any, ...], Slicing]:
    """Algorithm 1 of CLNSS: slices are cut and computed on, then delayed computations follow.

    Args:
      key: a PRNG key.
      remaining: which rows are records.
      steps: each receives everything published so far (None for a round without a mechanism) and returns what to do next.
      delayed: likewise, for the delayed phase.
      slice_epsilon: as for `cut`.

    Returns:
      (everything published, in order; the finished run with its slices and cost).

    Formal guarantees: those of `Slicing`, if steps use nothing private beyond what they receive.

    >>> import jax, jax.numpy as jnp
    >>> points = jnp.arange(8)
    >>> count = lambda key, mask: mask.sum()  # not private: for show
    >>> first = lambda told: Step(3, lambda rest: (points,), count, epsilon=1.0)
    >>> then = lambda told: Step(told[0] + 1, lambda rest: (descending(points),))
    >>> last = lambda told: Delayed(1, count, epsilon=1.0)
    >>> told, run = reorder_slice_compute(
    ...     jax.random.key(0), points >= 0, [first, then], delayed=[last], slice_epsilon=None
    ... )
    >>> [None if value is None else int(value) for value in told], points[run.remaining].tolist()
    ([3, None, 4], [3])
    """
    run = Slicing.create(remaining, slice_epsilon=slice_epsilon)
    told: tuple[Any, ...] = ()
    key_slices, key_delayed = jax.random.split(key)
    for i, choose in enumerate(steps):
        step = choose(told)
        key_cut, key_compute = jax.random.split(jax.random.fold_in(key_slices, i))
        run, result = run.cut(key_cut, step.size, order=step.order(run.remaining)), None
        if step.mechanism is not None:
            result, run = run.compute(key_compute, step.mechanism, epsilon=step.epsilon, delta=step.delta)
        told = (*told, result)
    for i, ask in enumerate(delayed):
        which, mechanism, epsilon, delta = ask(told)
        key_compute = jax.random.fold_in(key_delayed, i)
        result, run = run.compute(key_compute, mechanism, index=which, epsilon=epsilon, delta=delta)
        told = (*told, result)
    return told, run
