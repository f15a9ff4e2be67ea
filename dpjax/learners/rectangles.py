"""Axis-aligned rectangles in D dimensions by 2D slices (CLNSS §1.3.4, Corollary 1.7), over X_d^D, X_d = {0, ..., 2^d - 1}.

Axis after axis, cut the m smallest (+ noise) and the m largest (+ noise) of the positive examples that remain, and find an interior point
of each slice's projection privately: the two faces of this axis. If too few remain at the end, answer the all-zero hypothesis.

| accountant | slice sizes | what one slice may spend | examples |
|---|---|---|---|
| "basic" | public | epsilon / (2D + 1) | D^2 |
| "optimal" | public | about epsilon / sqrt(8 D ln(1/delta)) | D^1.5 |
| "slicing_printed" | noisy (Theorem 2.1) | epsilon / ln(1/delta) over a constant | D |
| "slicing" | noisy (`dpjax.accounting.slicing`) | ten times more | D |

times what the interior point problem takes at epsilon = 1, over alpha epsilon. It is the same algorithm in all four rows.

**Privacy.** Neighbours: one labelled example, of any label, is inserted into the list of examples or removed from it (the others keep
their order, which breaks ties on an axis: for multisets, let the order be random). A negative one changes nothing. Let z be a positive
one more. Ordering by (x_i, row) then inserts one entry into the ordered list of what remains.
- *Noisy sizes.* So this is Reorder-Slice-Compute: 2D slices, an (e, d)-private compute on each. The count of what remains at the end
  is a compute on one more slice, all that is left. Theorem 2.1, or the numerical accountant, with 2D + 1 slices.
- *Public sizes.* By induction the lists that remain before axis i are equal, or one has an entry z more. In the latter case: (i) If z is
  not among the first m of its list, the low slices are equal, and the high ones differ at most by the replacement of an entry by z. (ii) If
  it is, the low slices differ by the replacement of v, the last entry of the other list's slice, by z. Then v is the entry more of what
  remains, and the last one in the order of the high slice, which sees it only by taking all. (iii) A slice that takes all of both lists
  differs by an insertion, and nothing remains. So one slice an axis differs by a replacement, until at most one differs by an
  insertion and all later ones are empty. A replacement is two steps of add/remove. In all: D times (2e, (1 + exp(e)) d), and once
  (e, d), for the insertion or for the count, which differs (by one) only if nothing was exhausted.
- A solver sees at most `capacity` points of a slice; noise exceeds that with probability at most 2^-20 delta / (1 + exp(epsilon)) in
  all slices together, which is charged: the accountants are given delta (1 - 2^-20).

**Utility.** Let the examples be independent and labelled by a rectangle t. W bounds the sum of all noises, K = 2D m + W entries are in
slices, R remain, and the test is R + noise >= tau, the noise two-sided geometric of rate e.

*Faces.* If R >= 1 every slice was full. Its solver then fails with probability at most beta_1 = beta/(4D). Otherwise each face is an
interior point of its slice. So low_i <= max A_i <= min B_i <= high_i for the two slices of axis i, and the hypothesis h lies in t and
contains h' = product of [max A_i, min B_i], which contains all that remain. error(h) <= P[t without h'].

*Mass of slices.* That mass is at most the K-th smallest of n uniforms (Wald 1943, Tukey 1947), however the mass of t is spread. Give
each example a uniform u that tells ties apart (rows in the order of u are again independent examples). The N positive ones are
independent draws from a law P in which the key (x_i, u) has no atoms. The P-mass of what precedes the k-th smallest key is distributed
as the k-th smallest of N uniforms, and given the k smallest entries the others are independent draws from P conditioned to follow
them. So each slice multiplies the share of mass that is left by an independent Beta(N_j - k_j + 1, k_j), N_j = N - k_1 - ... - k_(j-1),
just as the gaps of N uniforms do: 1 - U_(k_1), (1 - U_(k_1 + k_2)) / (1 - U_(k_1)), ... After all slices the share is 1 - U_(K), and
the mass lost p U_(K), p = P[t]. Those of n uniforms that are below p, divided by p, are N uniforms with the right law of N: if N >= K,
p U_(K) is the K-th smallest of n uniforms.

*Together.* Let V count n uniforms below alpha: Bin(n, alpha).
- p > alpha: if V >= K + 2 tau - 1 then R = N - K >= 2 tau - 1 and error(h') <= alpha; the test fails with probability at most
  b_t = r^tau / (1 + r), r = exp(-e).
- p <= alpha: the all-zero hypothesis has error p, and any h in t at most that. If R = 0 the test passes with probability at most b_t.
Hence error(h) <= alpha except with probability P[Bin(n, alpha) < K + 2 tau - 1] + P[noises > W] + b_t + 2D beta_1: no union over faces,
no VC theory, and n alpha = K to first order. `sample_size` gives beta/2 to the solvers, beta/8 each to test and noise, the rest to the
first term, which it computes exactly.

    >>> import jax
    >>> from dpjax.concepts import rectangles as concept
    >>> from dpjax.learners import rectangles
    >>> d = concept.uniform(bits=16, low=[1000, 20000], high=[60000, 64000])
    >>> learner = rectangles.rectangles(axes=2, bits=16, epsilon=1.0, delta=1e-6, beta=0.1)
    >>> n = learner.sample_size(alpha=0.1, beta=0.1)
    >>> outcome = learner(jax.random.key(1), d.sample(jax.random.key(0), n, n))
    >>> float(d.error(outcome.hypothesis)) < 0.1
    True
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee, slicing
from dpjax.accounting.rounding import at_most
from dpjax.concepts import rectangles as concept
from dpjax.concepts.rectangles import Examples, Rectangle
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import unless
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.data.sample import bucket
from dpjax.domains import selection, wide
from dpjax.domains.events import Interval
from dpjax.mechanisms import geometric
from dpjax.optimizers import interior_point
from dpjax.optimizers.interior_point import InteriorPoint

ACCOUNTANTS = ("basic", "optimal", "slicing_printed", "slicing")
SOLVERS = ("exponential", "tree_log")
# How beta is divided: all solvers together, the test, the noises in the sizes; sampling gets the rest.
_SOLVERS_SHARE, _TEST_SHARE, _NOISE_SHARE = 0.5, 0.125, 0.125
# What of delta pays for noises beyond the capacity, and what the solvers' own deltas may take when they have any.
_CAPACITY_SHARE, _SOLVERS_DELTA = 2.0**-20, 0.5

Solver = Callable[[float, float, float], InteriorPoint]


# ---------------------------------------------------------------------------------------------------------- planning


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a budget is spent, and what follows; see the module.

    Attributes:
      axes, bits: D and d.
      accountant: which analysis the budget rests on.
      guarantee: what is proved, under ADD_OR_REMOVE_ONE.
      beta: bound on the probability of failure, of which solvers, test and noises take `spent_beta`.
      slice_epsilon: rate of the noise in the slices' sizes; None if sizes are public.
      compute: what the solver on one slice promises (and the last count, with delta 0).
      size: m, the least size of a slice.
      noise: W, which the sum of all noises exceeds with probability at most beta/8.
      threshold: tau, of the test.
      capacity: how many points of a slice the solver sees at most.
    """

    axes: int
    bits: int
    accountant: str
    guarantee: Guarantee
    beta: float
    spent_beta: float
    slice_epsilon: float | None
    compute: Guarantee
    size: int
    noise: int
    threshold: int
    capacity: int

    @property
    def entries(self) -> int:
        """K = 2D m + W: how many positive examples are in slices."""
        return 2 * self.axes * self.size + self.noise

    @property
    def solver_beta(self) -> float:
        """What the solver on one slice may fail with."""
        return _SOLVERS_SHARE * self.beta / (2 * self.axes)


@dataclasses.dataclass(frozen=True)
class _Budget:
    """(slice_epsilon, compute) and what is proved for the run."""

    slice_epsilon: float | None
    compute: Guarantee
    guarantee: Guarantee


def _run(axes: int, slice_epsilon: float | None, compute: Guarantee) -> slicing.Run:
    """The whole run for `dpjax.accounting.slicing`: with public sizes one slice an axis differs, and one insertion is possible."""
    if slice_epsilon is not None:
        return slicing.Run(slice_epsilon, compute, slices=2 * axes + 1)
    return slicing.Run(1.0, compute, slices=axes, extra=(compute,))


def _basic(axes: int, total: Guarantee, delta: float, weight: float) -> _Budget:
    """epsilon / (2D + 1) for each: D differ by a replacement, one by an insertion."""
    compute = Guarantee(at_most(Fraction(total.epsilon) / (2 * axes + 1)), delta, ADD_OR_REMOVE_ONE)
    return _Budget(None, compute, _run(axes, None, compute).guarantee(delta=0.5, accountant="basic"))  # whatever delta


def _optimal(axes: int, total: Guarantee, delta: float, weight: float) -> _Budget:
    """The largest compute that optimal composition allows."""

    def run(epsilon: float) -> slicing.Run:
        return _run(axes, None, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE))

    epsilon = slicing.largest(run, total, accountant="optimal", precision=2.0**-12)
    return _Budget(None, Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE), total)


def _sliced(method: str, axes: int, total: Guarantee, delta: float, weight: float) -> _Budget:
    """The split between noise and computes with the fewest entries in slices, 1/s + weight/e each on average."""
    found = slicing.split(
        total_epsilon=total.epsilon,
        total_delta=total.delta,
        cost=lambda s, e: 1 / s + weight / e,
        accountant=method,
        compute_delta=delta,
        slices=2 * axes + 1,
    )
    return _Budget(found.slice_epsilon, Guarantee(found.compute_epsilon, delta, ADD_OR_REMOVE_ONE), total)


_BUDGETS: dict[str, Callable[[int, Guarantee, float, float], _Budget]] = {
    "basic": _basic,
    "optimal": _optimal,
    "slicing_printed": functools.partial(_sliced, "printed"),
    "slicing": functools.partial(_sliced, "numerical"),
}


def _solvers_delta(accountant: str, axes: int, total: Guarantee) -> float:
    """d of each solver: half of delta for all of them where composition adds them up, a sixteenth where slicing does not."""
    if accountant == "slicing":
        return total.delta / 16
    return _SOLVERS_DELTA * total.delta / (2 * axes * (2 + 2 * math.exp(min(2 * total.epsilon, 700.0))))


def plan(
    *, axes: int, bits: int, epsilon: float, delta: float, beta: float, accountant: str, solver: Solver | str
) -> Plan:
    """The plan of one accountant; arguments as for `rectangles`."""
    axes, bits = arguments.integer("axes", axes, at_least=1), arguments.integer("bits", bits, at_least=1, at_most=4096)
    arguments.choice("accountant", accountant, ACCOUNTANTS)
    epsilon, beta = float(arguments.epsilon(epsilon)), float(arguments.fraction("beta", beta))
    delta = float(arguments.delta(delta, positive=accountant != "basic"))
    solver = _solver(solver, bits)
    share = _SOLVERS_SHARE * beta / (2 * axes)
    total = Guarantee(epsilon, delta * (1 - _CAPACITY_SHARE), ADD_OR_REMOVE_ONE)
    nominal = epsilon / (2 * axes + 1)
    own = _solvers_delta(accountant, axes, total)
    trial = solver(nominal, own, share)
    own = own if trial.guarantee().delta > 0.0 else 0.0
    budget = _BUDGETS[accountant](axes, total, own, nominal * trial.sample_size(share))
    size = solver(budget.compute.epsilon, own, share).sample_size(beta=share)
    noise, most = _noises(axes, budget.slice_epsilon, beta * _NOISE_SHARE, epsilon, delta)
    ratio = math.exp(-budget.compute.epsilon)
    threshold = max(1, math.ceil(-math.log((1 + ratio) * _TEST_SHARE * beta) / budget.compute.epsilon))
    noisy = budget.slice_epsilon is not None
    return Plan(
        axes=axes,
        bits=bits,
        accountant=accountant,
        guarantee=Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE) if accountant != "basic" else budget.guarantee,
        beta=beta,
        spent_beta=beta * (_SOLVERS_SHARE + _TEST_SHARE + (_NOISE_SHARE if noisy else 0.0)),
        slice_epsilon=budget.slice_epsilon,
        compute=budget.compute,
        size=size,
        noise=noise,
        threshold=threshold,
        capacity=bucket(size + most),
    )


def _noises(axes: int, rate: float | None, chance: float, epsilon: float, delta: float) -> tuple[int, int]:
    """(what the sum of 2D noises exceeds with probability at most `chance`, what no noise exceeds but for a sliver of delta)."""
    if rate is None:
        return 0, 0
    from scipy.stats import nbinom

    sliver = math.log(delta * _CAPACITY_SHARE / (2 * axes * (1 + math.exp(min(epsilon, 700.0)))))
    return int(nbinom.isf(chance, 2 * axes, -math.expm1(-rate))), math.ceil(-sliver / rate)


def _solver(solver: Solver | str, bits: int) -> Solver:
    """The factory of that name."""
    if callable(solver):
        return solver
    if arguments.choice("solver", solver, SOLVERS) == "exponential":
        return lambda epsilon, delta, beta: interior_point.exponential(bits=bits, epsilon=epsilon)
    return lambda epsilon, delta, beta: interior_point.tree_log(bits=bits, epsilon=epsilon, delta=delta, beta=beta)


# ----------------------------------------------------------------------------------------------------------- learner


def rectangles(
    *,
    axes: int,
    bits: int,
    epsilon: float,
    delta: float,
    beta: float,
    accountant: str = "best",
    solver: Solver | str = "exponential",
) -> "Rectangles":
    """The learner of the module, with the slices cut for this beta.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE for any examples, realizable or not, as proved in the module, if the
    solver keeps its own promise. The number of examples is private. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      axes: D >= 1.
      bits: each coordinate is in {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, > 0.
      delta: total, in (0, 1); 0 is allowed for "basic" with a pure solver.
      beta: failure is at most beta on `sample_size(alpha, beta)` examples.
      accountant: one of `ACCOUNTANTS`, or "best": the one with the fewest examples in slices.
      solver: "exponential", "tree_log", or any factory (epsilon, delta, beta) -> `InteriorPoint` over the same bits with a guarantee of
        at most (epsilon, delta) under ADD_OR_REMOVE_ONE; beta is what it may fail with.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    names = ACCOUNTANTS if accountant == "best" else (accountant,)
    if accountant == "best" and delta == 0.0:
        names = ("basic",)
    plans = [
        plan(axes=axes, bits=bits, epsilon=epsilon, delta=delta, beta=beta, accountant=name, solver=solver)
        for name in names
    ]
    return from_plan(min(plans, key=lambda each: each.entries), solver=solver)


def from_plan(plan: Plan, *, solver: Solver | str = "exponential") -> "Rectangles":
    """The learner of a plan, with the solver that it was made for.

    Raises:
      ValueError: the solver promises less privacy than the plan counts on.
    """
    built = _solver(solver, plan.bits)(plan.compute.epsilon, plan.compute.delta, plan.solver_beta)
    promised = built.guarantee()
    if promised.relation != ADD_OR_REMOVE_ONE or not promised.covers(plan.compute.epsilon, plan.compute.delta):
        raise ValueError(f"solver must promise {plan.compute}, got {promised}")
    rate = math.inf if plan.slice_epsilon is None else plan.slice_epsilon
    numbers: dict[str, Any] = {
        "bits": np.int32(plan.bits),
        "slice_epsilon": np.float64(rate),
        "count_epsilon": np.float64(plan.compute.epsilon),
        "size": np.int32(plan.size),
        "noise": np.int32(plan.noise),
        "threshold": np.int32(plan.threshold),
        "epsilon": np.float64(plan.guarantee.epsilon),
        "delta": np.float64(plan.guarantee.delta),
        "spent_beta": np.float64(plan.spent_beta),
    }
    return Rectangles(
        solver=built,
        **numbers,
        axes=plan.axes,
        limbs=wide.limbs_for(plan.bits),
        capacity=plan.capacity,
        noisy=plan.slice_epsilon is not None,
    )


@frozen
class Rectangles:
    """The learner; build it by `rectangles`. Slice 2i is the low one of axis i, 2i + 1 the high one.

    One compiled program serves every number of examples up to its bucket and every budget with the same capacity.
    """

    solver: InteriorPoint
    bits: Int[Array, ""]
    slice_epsilon: Float[Array, ""]
    count_epsilon: Float[Array, ""]
    size: Int[Array, ""]
    noise: Int[Array, ""]
    threshold: Int[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    spent_beta: Float[Array, ""]
    axes: int = static()
    limbs: int = static()
    capacity: int = static()
    noisy: bool = static()

    def __call__(self, key: Array, examples: Examples) -> Outcome:
        """One run.

        Args:
          key: PRNG key.
          examples: x of shape (rows, axes, limbs of `bits` bits), labels arbitrary.

        Returns:
          An `Outcome`: `hypothesis` a `Rectangle`; `status` a `Status` code, BOTTOM if a solver had no answer; `info` (not private): the
          sizes of the slices, how many positive examples remained, whether that was enough.

        Raises:
          TypeError, ValueError: examples that do not fit the domain (as far as they are not traced).
        """
        return _learn(self, key, self.fit(examples))

    def guarantee(self) -> Guarantee:
        """The total of the plan, under ADD_OR_REMOVE_ONE."""
        return Guarantee(float(self.epsilon), float(self.delta), ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n with P[Bin(n, alpha) < K + 2 tau - 1] <= what solvers, test and noises leave of beta.

        Raises:
          ValueError: alpha or beta out of range, or nothing left of beta.
        """
        from scipy.special import betaincc

        alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))
        left = beta - float(self.spent_beta)
        if left <= 0.0:
            raise ValueError(f"beta must be > {float(self.spent_beta)}, for which the slices are cut, got {beta}")
        need = 2 * self.axes * int(self.size) + int(self.noise) + 2 * int(self.threshold) - 1

        def enough(n: int) -> bool:
            return n >= need and float(betaincc(need, n - need + 1, alpha)) <= left

        low, high = need - 1, math.ceil(need / alpha)
        while not enough(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    def slices(self, key: Array, examples: Examples) -> Int[Array, "rows"]:
        """Which slice each row is in when run with this key, -1 for none: for pictures, not private."""
        examples = self.fit(examples)
        cuts = _cut(examples, self._sizes(jax.random.split(key, 3)[0], examples.rows))
        number = jnp.arange(2 * self.axes, dtype=jnp.int32)[:, None]
        return jnp.max(jnp.where(cuts.taken.reshape(-1, examples.rows), number, -1), axis=0)

    def law_within(
        self,
        examples: Examples,
        noise: Int[Array, "faces"],
        low: UInt32[Array, "faces limbs"],
        high: UInt32[Array, "faces limbs"],
    ) -> Float[Array, "2"]:
        """The exact law given the noises in the slices' sizes (zeros, if sizes are public).

        Given the sizes all faces are independent, and so is the test.

        Args:
          examples: as for a run.
          noise: one >= 0 a slice.
          low, high: an interval a face, in the order of the slices.

        Returns:
          (P[released, and face j in [low_j, high_j] for all j], P[the test sends the all-zero hypothesis]).
        """
        return _law_within(self, self.fit(examples), noise, low, high)

    # How ------------------------------------------------------------------------------------------------------

    def fit(self, examples: Examples) -> Examples:
        """The examples, checked and padded to a bucket that holds a slice."""
        if not isinstance(examples, Examples):
            raise TypeError(f"examples must be concepts.rectangles.Examples, got {type(examples).__name__}")
        if examples.x.shape[1:] != (self.axes, self.limbs):
            raise ValueError(f"examples.x must have shape (rows, {self.axes}, {self.limbs}), got {examples.x.shape}")
        if not any(arguments.is_traced(leaf) for leaf in jax.tree.leaves((self.bits, examples))):
            self._check_domain(examples)
        return examples.padded(self.capacity)

    def _check_domain(self, examples: Examples) -> None:
        """ValueError for the first positive example outside."""
        n = int(examples.n_valid)
        coordinates = np.asarray(examples.x)[:n][np.asarray(examples.y)[:n] == 1].reshape(-1, self.limbs)
        wide.check_below("the positive examples.x", coordinates, int(self.bits))

    def _sizes(self, key: Array, most: int) -> Int[Array, "faces"]:
        """Sizes of the slices; noise is cut off where it makes no difference."""
        size = jnp.asarray(self.size, jnp.int32)
        if not self.noisy:
            return jnp.full((2 * self.axes,), size)
        drawn = geometric.one_sided_geometric(key, (2 * self.axes,), epsilon=self.slice_epsilon)
        return size + jnp.minimum(drawn, most)

    def _answer(
        self,
        key: Array,
        key_count: Array,
        slices: Callable[[int, Any], Points],
        given: Any,
        sizes: Int[Array, "faces"],
        remaining: Int[Array, ""],
        fits: Bool[Array, ""],
    ) -> Outcome:
        """Faces of the slices, or the all-zero hypothesis if too few remain.

        slices(width, given) are the projections of the slices, in order, cut to `width` points.
        """
        keys = jax.random.split(key, 2 * self.axes)
        words, impl = jax.random.key_data(keys), jax.random.key_impl(keys)

        def answers(width: int, words: Array, given: Any) -> Outcome:
            keys = jax.random.wrap_key_data(words, impl=impl)  # the same coins for either width: only one answer counts
            return jax.vmap(lambda key, points: self.solver(key, points))(keys, slices(width, given))

        # The capacity has room for noises that hardly ever occur.
        usual = max((self.capacity + 1) // 4 - 1, 1) if self.noisy else self.capacity
        faces = answers(usual, words, given)
        if self.noisy:
            faces = unless(jnp.all(sizes <= usual), faces, functools.partial(answers, self.capacity), *(words, given))
        noisy = geometric.geometric(key_count, remaining, epsilon=self.count_epsilon)
        enough = noisy >= self.threshold
        learned = Rectangle(low=faces.hypothesis[0::2], high=faces.hypothesis[1::2])
        zero = concept.nothing(self.axes, self.limbs)
        found = ~enough | jnp.all(faces.status == Status.OK)
        status = jnp.where(fits, jnp.where(found, Status.OK, Status.BOTTOM), Status.OUTSIDE_DOMAIN)
        return Outcome(
            hypothesis=jax.tree.map(lambda one, other: jnp.where(enough, one, other), learned, zero),
            status=status.astype(jnp.int32),
            info={"sizes": jnp.minimum(sizes, self.capacity), "remaining": remaining, "enough": enough},
        )


class _Cuts(NamedTuple):
    """How the examples are divided: an entry an axis, and for `taken` and `sizes` one for its low and one for its high slice.

    Attributes:
      x: the coordinates.
      left: which rows remain before the axis is cut.
      taken: which of them are in the slice.
      sizes: how many.
      remaining: how many rows are in no slice.
    """

    x: UInt32[Array, "axes rows limbs"]
    left: Bool[Array, "axes rows"]
    taken: Bool[Array, "axes 2 rows"]
    sizes: Int[Array, "axes 2"]
    remaining: Int[Array, ""]


def _cut(examples: Examples, sizes: Int[Array, "faces"]) -> _Cuts:
    """Cuts one axis after the other."""

    def axis(left: Array, given: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array, Array]]:
        x, wanted = given
        count = jnp.sum(left, dtype=jnp.int32)
        low = jnp.minimum(wanted[0], count)
        cut = jnp.stack([low, jnp.minimum(wanted[1], count - low)])
        taken = _ends(x, left, cut)
        return left & ~taken[0] & ~taken[1], (left, taken, cut)

    x = jnp.moveaxis(examples.x, 1, 0)
    left, each = lax.scan(axis, examples.positive, (x, sizes.reshape(-1, 2)))
    return _Cuts(x, *each, jnp.sum(left, dtype=jnp.int32))


def _ends(x: UInt32[Array, "rows limbs"], left: Bool[Array, "rows"], sizes: Int[Array, "2"]) -> Bool[Array, "2 rows"]:
    """The first and the last rows of those that are left, so many of each, ordered by (x, row)."""
    ranks = jnp.stack([sizes[0], jnp.sum(left, dtype=jnp.int32) - sizes[1]])
    low, others = jax.vmap(lambda rank: selection.first(rank, left, [x]))(ranks)
    return jnp.stack([low, left & ~others])


def _projections(width: int, cuts: _Cuts) -> Points:
    """The slices' points in order: of a low slice the least `width`, of a high one the greatest."""

    def axis(x: Array, left: Array, taken: Array, sizes: Array) -> Points:
        seen = jnp.minimum(sizes, width)
        taken = unless(jnp.all(sizes <= width), taken, _ends, x, left, seen)
        each = [x[selection.places(mask, width)] for mask in taken]
        valid = jnp.arange(width, dtype=jnp.int32)[None] < seen[:, None]
        points = jnp.where(valid[..., None], jnp.stack(each), np.uint32(2**32 - 1))
        return Points(x=jnp.stack([wide.sort(half)[0] for half in points]), n_valid=seen, ordered=True)

    points = jax.vmap(axis)(cuts.x, cuts.left, cuts.taken, cuts.sizes)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), points)


@jax.jit
def _learn(learner: Rectangles, key: Array, examples: Examples) -> Outcome:
    key_sizes, key_faces, key_count = jax.random.split(key, 3)
    cuts = _cut(examples, learner._sizes(key_sizes, examples.rows))
    fits = jnp.all(~examples.positive[:, None] | (wide.bit_length(examples.x) <= learner.bits))
    return learner._answer(key_faces, key_count, _projections, cuts, cuts.sizes.reshape(-1), cuts.remaining, fits)


@jax.jit
def _law_within(learner: Rectangles, examples: Examples, noise: Array, low: Array, high: Array) -> Float[Array, "2"]:
    cuts = _cut(examples, learner.size + jnp.minimum(noise, examples.rows))
    slices = _projections(learner.capacity, cuts)
    faces = jax.vmap(Interval.closed)(low, high)
    each = jax.vmap(lambda points, face: learner.solver.probability(points, face)[0])(slices, faces)
    too_few = jnp.exp(geometric.log_cdf(learner.threshold - 1, cuts.remaining, epsilon=learner.count_epsilon))
    enough = jnp.exp(geometric.log_sf(learner.threshold - 1, cuts.remaining, epsilon=learner.count_epsilon))
    return jnp.stack([enough * jnp.prod(each), too_few])


# --------------------------------------------------------------------------------------------- trials without a table


def trial(key: Array, experiment: Any) -> dict[str, Bool[Array, ""]]:
    """`pac.trial` for a product distribution without drawing the examples that are in no slice: the same law, far less work.

    Given how many remain, the coordinates on the next axis of those that remain are independent draws from the target's
    side, whatever was cut before: only the least and the greatest of so many are drawn (Renyi's representation).

    Args:
      key: PRNG key.
      experiment: a `pac.Experiment` with a learner and a distribution of rectangles; its capacity plays no part.

    Returns:
      Whether it failed (population error > alpha, or bottom), and whether that was bottom.
    """
    learner, distribution = experiment.learner, experiment.distribution
    key_n, key_sizes, key_slices, key_faces, key_count = jax.random.split(key, 5)
    n = jnp.asarray(experiment.n, float)
    positives = jax.random.binomial(key_n, n, distribution.mass(distribution.target)).astype(jnp.int32)
    sizes = learner._sizes(key_sizes, 2**30)
    slices, taken, remaining = _drawn_slices(key_slices, learner, distribution, positives, sizes)
    outcome = learner._answer(key_faces, key_count, _shortened, slices, taken, remaining, jnp.bool_(True))
    good = distribution.error(outcome.hypothesis) <= experiment.alpha
    return {"failed": ~(good & (outcome.status == Status.OK)), "bottom": outcome.status == Status.BOTTOM}


def _shortened(width: int, slices: Points) -> Points:
    """The first points of each."""
    return Points(x=slices.x[:, :width], n_valid=jnp.minimum(slices.n_valid, width), ordered=True)


def _drawn_slices(
    key: Array,
    learner: Rectangles,
    distribution: concept.Product,
    positives: Int[Array, ""],
    sizes: Int[Array, "faces"],
) -> tuple[Points, Int[Array, "faces"], Int[Array, ""]]:
    """The slices' projections, in order, their sizes, and how many remain."""
    before = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(sizes)])
    left = jnp.maximum(positives - before, 0)  # entries before each slice, and after the last
    taken = left[:-1] - left[1:]
    fractions, ends = jax.vmap(lambda key, k, n: _least(key, k, n, learner.capacity))(
        jax.random.split(key, 2 * learner.axes), taken, left[:-1]
    )
    # The high slice is cut from what follows the low one.
    room = 1 - ends[0::2]
    from_low, from_high = fractions[0::2], fractions[1::2] * room[:, None]
    full = np.float32(2.0**32)
    word = jnp.stack([_word(from_low * full), ~_word(from_high[:, ::-1] * full)], axis=1)
    x = jnp.stack([distribution.inside(word[:, 0]), distribution.inside(word[:, 1])], axis=1)
    x = x.reshape(2 * learner.axes, learner.capacity, learner.limbs)
    seen = jnp.minimum(taken, learner.capacity)
    # The high slice's points are the last ones of its row: bring them to the front.
    turn = jnp.where(jnp.arange(2 * learner.axes, dtype=jnp.int32) % 2 == 1, learner.capacity - seen, 0)
    x = jax.vmap(lambda row, by: jnp.roll(row, -by, axis=0))(x, turn)
    return Points(x=x, n_valid=seen, ordered=True), taken, left[-1]


def _word(v: Float[Array, "*s"]) -> UInt32[Array, "*s"]:
    """floor(v) for 0 <= v <= 2^32, cut to a word."""
    return jnp.minimum(v, np.float32(2**32 - 256)).astype(jnp.uint32)


def _least(
    key: Array, k: Int[Array, ""], n: Int[Array, ""], capacity: int
) -> tuple[Float[Array, "capacity"], Float[Array, ""]]:
    """(the k least of n uniforms in order, the k-th of them): partial sums of exponentials over the sum of n + 1."""
    key_first, key_rest = jax.random.split(key)
    index = jnp.arange(capacity, dtype=jnp.int32)
    sums = jnp.cumsum(jnp.where(index < k, jax.random.exponential(key_first, (capacity,), jnp.float32), 0))
    rest = jax.random.gamma(key_rest, (n - k + 1).astype(jnp.float32), dtype=jnp.float32)
    fractions = sums / (sums[-1] + rest)
    return fractions, fractions[-1]
