"""The interior point problem (CLNSS, Definition 2): an element between the least and the greatest point of a dataset.

Trivial without privacy, and equivalent to learning thresholds with it (`dpjax.learners.interior`). The domain is
X = {0, ..., 2^bits - 1}, the dataset a multiset whose size is private too.

| factory | algorithm | privacy (ADD_OR_REMOVE_ONE) | points needed |
|---|---|---|---|
| `exponential` | exponential mechanism on the depth min(#<=x, #>=x) | (epsilon, 0) | (2 / epsilon) (bits ln 2 + ln(1/beta)) |
| `rec_concave` | RecConcave on the depth (BNS §3.3) | (epsilon, delta) | 8^(log* |X|) |
| `tree_log` | TreeLog (CLNSS §1.3.3) | (epsilon, delta) | log* |X|, or (log* |X|)^1.5 by composition |

Each is a frozen pytree: call it with a key and `dpjax.Points` (a `Sample` will do: labels are ignored); `law_within` and
`success_probability` are exact.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.optimizers import interior_point
    >>> points = Points.create(wide.from_ints([2**20 + 3 * i for i in range(60)], 24))
    >>> solver = interior_point.exponential(bits=24, epsilon=1.0)
    >>> 2**20 <= wide.to_ints(solver(jax.random.key(0), points).hypothesis)[0] <= 2**20 + 177
    True
    >>> round(float(solver.success_probability(points)), 6)
    1.0
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, logspace, staging
from dpjax.core.pytree import frozen, static
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.domains import trie, wide
from dpjax.domains.events import Goal, Interval
from dpjax.domains.ordered import Pieces
from dpjax.domains.trie import Trie
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.mechanisms.geometric import one_sided_log_pmf
from dpjax.optimizers import depth, quasi_concave, tree_log_budget
from dpjax.optimizers import rec_concave as optimizer
from dpjax.optimizers import tree_log as tree
from dpjax.optimizers.tree_log import Parameters

LARGEST_PMF = 12  # bits: `pmf` lists every point


class InteriorPoint:
    """What the solvers share: checked, sorted, padded and compiled entry points around `_draw` and `_law`.

    One compiled program serves every number of points up to its bucket, every epsilon and delta, and every number of bits with the
    same number of limbs: those are all data.
    """

    bits: Any
    limbs: int

    # What a solver defines ------------------------------------------------------------------------------------

    def _draw(self, key: Array, points: Points) -> tuple[UInt32[Array, "limbs"], Bool[Array, ""], Any]:
        """One run on sorted points: (answer, whether there is one, info)."""
        raise NotImplementedError

    def _law(self, points: Points, low: Array, high: Array) -> Float[Array, "2"]:
        """(P[low <= answer <= high], P[not, or bottom]) given sorted points."""
        raise NotImplementedError

    def guarantee(self) -> Guarantee:
        """The privacy that is proved, under ADD_OR_REMOVE_ONE."""
        raise NotImplementedError

    def sample_size(self, beta: float) -> int:
        """Points that suffice, whatever they are, for an interior point with probability 1 - beta."""
        raise NotImplementedError

    # What everyone calls --------------------------------------------------------------------------------------

    def __call__(self, key: Array, points: Any) -> Outcome:
        """One run.

        Args:
          key: PRNG key.
          points: `dpjax.Points` (or a `Sample`, whose labels are ignored), x of shape (rows, limbs of `bits` bits), in any order.

        Returns:
          An `Outcome`: `hypothesis` is the point, uint32 (limbs,); `status` a `Status` code; `info` what was chosen on the way (not
          private).

        Raises:
          TypeError, ValueError: points that do not fit the domain (as far as they are not traced).
        """
        return _run(self, key, self.fit(points))

    def success_probability(self, points: Any) -> Float[Array, ""]:
        """P[min <= answer <= max] over the solver's coins, exactly; bottom is a failure, and so is anything on no points."""
        return _interior(self, self.fit(points))[0]

    def failure_probability(self, points: Any) -> Float[Array, ""]:
        """P[answer outside, or bottom], as a sum of positive terms: 1e-12 comes out right in float32 too."""
        return _interior(self, self.fit(points))[1]

    def law_within(self, points: Any, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"]) -> Float[Array, "2"]:
        """(P[low <= answer <= high], P[not, or bottom]), exactly."""
        return _law_within(self, self.fit(points), low, high)

    def pmf(self, points: Any) -> Float[Array, "outcomes"]:
        """P[x] for x = 0, ..., 2^bits - 1, then P[bottom]: for the exact verifier on small domains (bits <= 12)."""
        bits = arguments.integer("bits", int(self.bits), at_least=1, at_most=LARGEST_PMF)
        return _pmf(self, self.fit(points), 1 << bits)

    # How ------------------------------------------------------------------------------------------------------

    def fit(self, points: Any) -> Points:
        """The points, checked and padded to their bucket."""
        return fit(points, self.bits, self.limbs)


def fit(points: Any, bits: Any, limbs: int) -> Points:
    """The points, checked against a domain of `bits` bits and padded to their bucket.

    Raises:
      TypeError: no points. ValueError: other limbs, or a point outside (as far as they are not traced).
    """
    points = Points.of(points)
    if points.x.shape[-1] != limbs:
        raise ValueError(f"points.x must have {limbs} limbs, those of the domain, got {points.x.shape[-1]}")
    if not any(arguments.is_traced(leaf) for leaf in jax.tree.leaves((bits, points))):
        wide.check_below("points.x", np.asarray(points.x)[: int(points.n_valid)], int(bits))
    return points.padded()


def in_order(points: Points, bits: Array) -> tuple[Points, Bool[Array, ""]]:
    """The points in order, those past n_valid set to the greatest number; and whether all are in the domain."""
    valid = jnp.arange(points.rows, dtype=jnp.int32) < points.n_valid
    fits = wide.all_below(points.x, valid, bits)
    x = jnp.where(valid[:, None], points.x, np.uint32(2**32 - 1))
    x = x if points.ordered else wide.sort(x)[0]
    return Points(x=x, n_valid=points.n_valid, ordered=True), fits


@jax.jit
def _run(solver: InteriorPoint, key: Array, points: Points) -> Outcome:
    points, fits = in_order(points, solver.bits)
    answer, found, info = solver._draw(key, points)
    status = jnp.where(fits, jnp.where(found, Status.OK, Status.BOTTOM), Status.OUTSIDE_DOMAIN)
    return Outcome.of(answer, status, info)


@jax.jit
def _interior(solver: InteriorPoint, points: Points) -> Float[Array, "2"]:
    points, _ = in_order(points, solver.bits)
    law = solver._law(points, points.x[0], points.x[jnp.maximum(points.n_valid - 1, 0)])
    nothing = jnp.array([0.0, 1.0], law.dtype)
    return jnp.where(points.n_valid > 0, law, nothing)


@jax.jit
def _law_within(solver: InteriorPoint, points: Points, low: Array, high: Array) -> Float[Array, "2"]:
    return solver._law(in_order(points, solver.bits)[0], low, high)


@jax.jit(static_argnums=2)
def _pmf(solver: InteriorPoint, points: Points, size: int) -> Float[Array, "outcomes"]:
    points, _ = in_order(points, solver.bits)

    def within(low: Array, high: Array) -> Array:
        return solver._law(points, wide.from_uint32(low, solver.limbs), wide.from_uint32(high, solver.limbs))

    each = jax.vmap(lambda x: within(x, x)[0])(
        jnp.arange(size, dtype=jnp.uint32)
    )  # what does not depend on x is done once
    return jnp.append(each, within(jnp.uint32(0), jnp.uint32(size - 1))[1])


def _domain(bits: Any) -> tuple[Any, int]:
    """(bits as traced data, limbs): checked."""
    bits = arguments.integer("bits", bits, at_least=1, at_most=4096)
    return np.int32(bits), wide.limbs_for(bits)


# ------------------------------------------------------------------------------------- solvers that maximise the depth


@frozen
class _Depth(InteriorPoint):
    """A solver that maximises the depth. Positions on its range, up to 2^bits + 1, have `wider` limbs."""

    bits: Any
    limbs: int = static()
    wider: int = static()

    def _pieces(self, points: Points, count: int | None = None) -> Pieces:
        return depth.pieces(points.x, points.n_valid, self.bits, self.wider, count)

    def _goal(self, pieces: Pieces, low: Array, high: Array) -> Goal:
        """The points of [low, high]; nothing lies beyond the last point, so high + 1 fits."""
        low, high = (wide.resize(end, self.wider) for end in (low, high))
        after = wide.add(wide.minimum(high, pieces.last), wide.from_uint32(jnp.uint32(1), self.wider))
        return Goal(marked=jnp.ones((pieces.count,), bool), within=Interval(low=low, high=after))


@frozen
class Exponential(_Depth):
    """The exponential mechanism on the depth; see `exponential`."""

    epsilon: Any

    def _density(self, pieces: Pieces) -> Array:
        # The depth is monotone: exp(epsilon q), not exp(epsilon q / 2), is epsilon-private under add/remove.
        return piecewise.log_density(pieces, 2 * jnp.asarray(self.epsilon, float))

    def _draw(self, key: Array, points: Points) -> tuple[Array, Array, Any]:
        def position(points: Points, count: int | None = None) -> Array:
            pieces = self._pieces(points, count)
            return piecewise.draw_everywhere(jax.random.clone(key), pieces, self._density(pieces)).position

        # One piece a point, unless so many are equal to the median that it takes two.
        few = 2 * depth.at_median(points.x, points.n_valid) <= points.rows
        found = staging.unless(few, position(points, points.rows + 1), position, points)
        return wide.resize(found, self.limbs), jnp.bool_(True), {}

    def _law(self, points: Points, low: Array, high: Array) -> Array:
        pieces = self._pieces(points)
        return piecewise.law_everywhere(pieces, self._density(pieces), self._goal(pieces, low, high))

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, beta: float) -> int:
        """ceil((2/epsilon) (bits ln 2 + ln(1/beta))): every x outside has q = 0, the median q >= n/2."""
        beta = float(arguments.fraction("beta", beta))
        return math.ceil(2 / float(self.epsilon) * (int(self.bits) * math.log(2.0) - math.log(beta)))


def exponential(*, bits: int, epsilon: Any) -> Exponential:
    """The exponential mechanism on the depth q(x) = min(#<=x, #>=x), P[x] proportional to exp(epsilon q(x)).

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE: adding a point raises q by 0 or 1 everywhere, so numerator and
    normaliser each move by a factor in [1, e^epsilon]. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: > 0.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    checked, limbs = _domain(bits)
    return Exponential(bits=checked, limbs=limbs, wider=wide.limbs_for(bits + 1), epsilon=arguments.epsilon(epsilon))


@frozen
class RecConcave(_Depth):
    """RecConcave on the depth; see `rec_concave`."""

    epsilon: Any
    delta: Any
    promise: Any
    alpha: Any
    levels: int = static()

    def _optimizer(self) -> quasi_concave.RecConcave:
        """The same for any quality: it splits the budget and proves the error."""
        given: Any = {"bits": self.bits, "epsilon": self.epsilon, "delta": self.delta, "levels": self.levels}
        return quasi_concave.RecConcave(**given, limbs=self.wider, relation=ADD_OR_REMOVE_ONE)

    def _problem(self, points: Points) -> optimizer.Problem:
        promise, alpha = (jnp.asarray(value, float) for value in (self.promise, self.alpha))
        return optimizer.Problem(pieces=self._pieces(points), promise=promise, alpha=alpha)

    def _draw(self, key: Array, points: Points) -> tuple[Array, Array, Any]:
        run = optimizer.sample(key, self._problem(points), self._optimizer().budget(), self.levels)
        # Beyond the domain the depth counts as 0 on one more point, 2^bits: an answer there is none.
        inside = wide.bit_length(run.point.position) <= self.bits
        return wide.resize(run.point.position, self.limbs), run.ok & inside, {"k": run.k}

    def _law(self, points: Points, low: Array, high: Array) -> Array:
        problem = self._problem(points)
        return optimizer.law(problem, self._optimizer().budget(), self.levels, self._goal(problem.pieces, low, high))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE."""
        return Guarantee(float(self.epsilon), float(self.delta), ADD_OR_REMOVE_ONE)

    def sample_size(self, beta: float) -> int:
        """Twice the promise, so that the median keeps it, if the promise is large enough for `quasi_concave`'s derived error.

        Raises:
          ValueError: it is not: nothing is proved for any number of points.
        """
        needed = self._optimizer().error(beta) / float(self.alpha)
        if float(self.promise) < needed:
            raise ValueError(
                f"promise must be >= {needed:.6g} for failure probability {beta}, got {float(self.promise)}"
            )
        return math.ceil(2 * float(self.promise))


def rec_concave(
    *, bits: int, epsilon: Any, delta: Any, promise: Any, alpha: Any = 0.5, levels: int | None = None
) -> RecConcave:
    """RecConcave (BNS §3.3, Figure 5) on the depth, with `proved` constants: N levels run at epsilon/(3N-2), delta/(2(N-1)) each.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE, by basic composition, because the depth has sensitivity 1 under it. Not
    promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, > 0.
      delta: total, in (0, 1).
      promise: r > 0: the depth that some element is promised to have. Fixed in advance, as the number of points is private;
        n points promise n/2.
      alpha: in (0, 1): an element of depth (1 - alpha) r is searched for. Any depth >= 1 is an interior point.
      levels: N; by default as many as can run, at most 2.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    checked, limbs = _domain(bits)
    wanted = 2 if levels is None else arguments.integer("levels", levels, at_least=1)
    return RecConcave(
        bits=checked,
        limbs=limbs,
        wider=wide.limbs_for(bits + 1),
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta),
        promise=arguments.real("promise", promise, above=0.0, below=math.inf),
        alpha=arguments.fraction("alpha", alpha),
        levels=optimizer.levels_run(2**bits - 1, wanted),
    )


# --------------------------------------------------------------------------------------------------------- TreeLog


@frozen
class TreeLog(InteriorPoint):
    """TreeLog; see `tree_log` and `dpjax.optimizers.tree_log`.

    Attributes:
      parameters: thresholds, sizes and budgets.
      epsilon, delta: what is proved for them.
      beta, points: failure is at most beta on so many points or more.
    """

    bits: Any
    limbs: int = static()
    parameters: Parameters
    epsilon: Any
    delta: Any
    beta: Any
    points: Any

    def guarantee(self) -> Guarantee:
        """The total that the parameters keep, under ADD_OR_REMOVE_ONE."""
        return Guarantee(float(self.epsilon), float(self.delta), ADD_OR_REMOVE_ONE)

    def sample_size(self, beta: float) -> int:
        """The plan's sample size: the slices are cut for the plan's own beta, so a smaller one is refused.

        Raises:
          ValueError: beta below the one that was planned for.
        """
        beta = float(arguments.fraction("beta", beta))
        if beta < float(self.beta):
            raise ValueError(f"beta must be >= {float(self.beta)}, for which the slices are cut, got {beta}")
        return int(self.points)

    def _tree(self, points: Points) -> Trie:
        return trie.from_points(points.x, points.n_valid, jnp.asarray(self.bits, jnp.int32))

    def _draw(self, key: Array, points: Points) -> tuple[Array, Array, Any]:
        run = tree.sample(key, self._tree(points), self.parameters, 32 * self.limbs)
        info = {"stopped": run.stopped, "level": run.level}
        return self._element(points, run.answer), run.found, info

    def _element(self, points: Points, answer: tree.Answer) -> UInt32[Array, "limbs"]:
        """The answer as a wide number."""
        prefix = jnp.where(answer.point < 0, np.uint32(0), points.x[jnp.maximum(answer.point, 0)])
        one = wide.from_uint32(jnp.uint32(1), self.limbs)
        tail = wide.subtract(wide.power_of_two(self.bits - answer.length, self.limbs), one)
        return jnp.where(answer.upper, prefix | tail, prefix & ~tail)

    def _law(self, points: Points, low: Array, high: Array) -> Array:
        if not self.parameters.noisy:
            return self._law_given(points, low, high, self._least_sizes())
        if self.parameters.depth > 1:
            raise ValueError(
                f"depth must be 1 for an exact law with noisy slices, got {self.parameters.depth}: use `estimate_within`"
            )
        return self._law_over_sizes(points, low, high)

    def _least_sizes(self) -> Int[Array, "depth 2"]:
        """Sizes of the left and the deep slice of each level, before noise."""
        each = jnp.stack([jnp.asarray(self.parameters.left, jnp.int32), jnp.asarray(self.parameters.deep, jnp.int32)])
        return jnp.broadcast_to(each, (self.parameters.depth, 2))

    def _law_given(self, points: Points, low: Array, high: Array, sizes: Int[Array, "depth 2"]) -> Float[Array, "2"]:
        """The law given the sizes of all slices."""
        law = tree.law(self._tree(points), self.parameters, 32 * self.limbs, sizes)
        good, bad = [], [law.log_bottom[None]]
        for answer, log_p in law.atoms():
            element = jax.vmap(lambda one: self._element(points, one))(answer)
            inside = wide.less_equal(low[None], element) & wide.less_equal(element, high[None])
            good.append(jnp.where(inside, log_p, -jnp.inf))
            bad.append(jnp.where(inside, -jnp.inf, log_p))
        return jnp.exp(jnp.stack([logspace.logsumexp(jnp.concatenate(part)) for part in (good, bad)]))

    def _law_over_sizes(self, points: Points, low: Array, high: Array) -> Float[Array, "2"]:
        """The law with one noisy level: the sum over both sizes. A slice of more points than there are takes them all."""
        extra = jnp.arange(points.rows + 1, dtype=jnp.int32)
        epsilon = jnp.asarray(self.parameters.slice_epsilon, float)
        log_p = jnp.where(extra == points.rows, -epsilon * points.rows, one_sided_log_pmf(extra, epsilon=epsilon))
        grid = jnp.stack(jnp.meshgrid(extra, extra, indexing="ij"), axis=-1).reshape(-1, 1, 2)
        laws = jax.lax.map(
            lambda noise: self._law_given(points, low, high, self._least_sizes() + noise), grid, batch_size=64
        )
        return jnp.sum(jnp.exp((log_p[:, None] + log_p[None]).reshape(-1))[:, None] * laws, axis=0)

    def estimate_within(
        self, key: Array, points: Any, low: UInt32[Array, "limbs"], high: UInt32[Array, "limbs"], *, draws: int
    ) -> Float[Array, "draws 2"]:
        """Independent unbiased estimates of `law_within` for noisy slices: the sizes are drawn, the law of the rest is exact.

        Each has less variance than the outcome of a run (Rao-Blackwell); average them, and take the spread for an interval.

        Args:
          key: PRNG key.
          points, low, high: as for `law_within`.
          draws: how many.
        """
        draws = arguments.integer("draws", draws, at_least=1)
        return _estimate_within(self, key, self.fit(points), low, high, draws)

    def estimate_success(self, key: Array, points: Any, *, draws: int) -> Float[Array, "draws 2"]:
        """`estimate_within` for the interval from the least to the greatest point (there must be one)."""
        fitted = self.fit(points)
        ordered, _ = in_order(fitted, self.bits)
        return self.estimate_within(key, fitted, ordered.x[0], ordered.x[fitted.n_valid - 1], draws=draws)


@jax.jit(static_argnums=5)
def _estimate_within(
    solver: TreeLog, key: Array, points: Points, low: Array, high: Array, draws: int
) -> Float[Array, "draws 2"]:
    points, _ = in_order(points, solver.bits)
    shape = (draws, solver.parameters.depth, 2)
    sizes = solver._least_sizes()[None] + tree.noise(key, solver.parameters, shape)
    return jax.lax.map(lambda size: solver._law_given(points, low, high, size), sizes, batch_size=8)


def tree_log(
    *, bits: int, epsilon: Any, delta: Any, beta: Any = 0.1, accountant: str = "optimal", depth: int | None = None
) -> TreeLog:
    """TreeLog (CLNSS §1.3.3) with the parameters that need the fewest points; see `dpjax.optimizers.tree_log`.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE, for any data, by the accountant that is named; a walk that was stopped
    never returns an element that is no interior point. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, > 0.
      delta: total, in (0, 1).
      beta: failure is at most beta on `sample_size(beta)` points or more, whatever they are.
      accountant, depth: as for `tree_log_budget.calibrate`, which also tells every number that was chosen.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> solver = tree_log(bits=1024, epsilon=1.0, delta=1e-6, beta=0.1, depth=2)
    >>> solver.sample_size(0.1) < exponential(bits=1024, epsilon=1.0).sample_size(0.1)
    True
    """
    plan = tree_log_budget.calibrate(
        bits=bits, epsilon=epsilon, delta=delta, beta=beta, accountant=accountant, depth=depth
    )
    return tree_log_planned(bits=bits, plan=plan)


def tree_log_planned(*, bits: int, plan: tree_log_budget.Plan) -> TreeLog:
    """TreeLog with a plan of one's own (`dataclasses.replace` changes one).

    Raises:
      ValueError: a deep slice of fewer than K = 2 t2 - 2 points: no privacy is proved for it.
    """
    bits, limbs = _domain(bits)
    if plan.m2 < plan.K:
        raise ValueError(f"plan.m2 must be >= K = {plan.K}, else no privacy is proved, got {plan.m2}")
    return TreeLog(
        bits=bits,
        limbs=limbs,
        parameters=plan.parameters(),
        epsilon=np.float64(plan.guarantee.epsilon),
        delta=np.float64(plan.guarantee.delta),
        beta=np.float64(plan.beta),
        points=np.int32(plan.sample_size),
    )
