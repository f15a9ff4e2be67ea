"""TreeLog (CLNSS §1.3.3) as an interior point solver; the algorithm and its proof are in `dpjax.optimizers.interior_point.walk`.

Its plain twin is `dpjax.verify.plain.tree_log`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.points import Points
from dpjax.domains import trie, wide
from dpjax.domains.events import Accurate, Interval
from dpjax.domains.trie import Trie
from dpjax.mechanisms.one_sided_geometric import log_pmf as one_sided_log_pmf
from dpjax.optimizers.interior_point import base, planning
from dpjax.optimizers.interior_point import walk as tree
from dpjax.optimizers.interior_point.base import InteriorPoint
from dpjax.optimizers.interior_point.walk import Parameters


@frozen
class TreeLog(InteriorPoint):
    """TreeLog; see `tree_log` and `dpjax.optimizers.interior_point.walk`.

    Attributes:
      parameters: thresholds, sizes and budgets.
      epsilon, delta: where the accountant is evaluated: it gives its delta at this epsilon, or its epsilon at this delta.
      accountant: the analysis by which the parts of the parameters are composed (static).
    """

    bits: Any
    limbs: int = static()
    parameters: Parameters
    epsilon: Any
    delta: Any
    accountant: str = static()

    def sound(self) -> Bool[Array, ""]:
        bits = jnp.asarray(self.bits, jnp.int32)
        return self.parameters.sound() & (bits >= 1) & (bits <= 32 * self.limbs)

    def guarantee(self) -> Guarantee:
        """What the accountant proves for the parameters in use, under ADD_OR_REMOVE_ONE; nothing where the walk's theorem does not hold."""
        budget = planning.spent(self.parameters)
        if budget is None:
            return Guarantee.none(ADD_OR_REMOVE_ONE)
        at = Guarantee(arguments.known("epsilon", self.epsilon), float(self.delta), ADD_OR_REMOVE_ONE)
        return planning.proved(budget, self.accountant, at, self.parameters.depth)

    def points_needed(self, beta: float) -> int:
        """The plan's sample size for the plan's beta, and fewer points for a larger beta; for a smaller one the slices are too small.

        Raises:
          ValueError: the slices are too small for beta.
        """
        return planning.sample_size(self.parameters, bits=int(self.bits), beta=beta)

    def _tree(self, points: Points) -> Trie:
        return trie.from_points(points.x, points.n_valid, jnp.asarray(self.bits, jnp.int32))

    def draw(self, key: Array, points: Points) -> Any:
        run = tree.sample(key, self._tree(points), self.parameters, 32 * self.limbs)
        info = {"stopped": run.stopped, "level": run.level}
        return self._element(points, run.answer), run.found, info

    def _element(self, points: Points, answer: tree.Answer) -> UInt32[Array, "limbs"]:
        """The answer as a wide number."""
        prefix = jnp.where(answer.point < 0, np.uint32(0), points.x[jnp.maximum(answer.point, 0)])
        tail = wide.largest(self.bits - answer.length, self.limbs)
        return jnp.where(answer.upper, prefix | tail, prefix & ~tail)

    def law(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        if not self.parameters.noisy:
            return self._law_given(points, interval, self._least_sizes())
        if self.parameters.depth > 1:
            depth = self.parameters.depth
            raise ValueError(f"depth must be 1 for an exact law with noisy slices, got {depth}: use `estimates`")
        return self._law_over_sizes(points, interval)

    def _least_sizes(self) -> Int[Array, "depth 2"]:
        """Sizes of the left and the deep slice of each level, before noise."""
        each = jnp.stack([jnp.asarray(self.parameters.left, jnp.int32), jnp.asarray(self.parameters.deep, jnp.int32)])
        return jnp.broadcast_to(each, (self.parameters.depth, 2))

    def _law_given(self, points: Points, interval: Interval, sizes: Int[Array, "depth 2"]) -> Float[Array, "2"]:
        """The law given the sizes of all slices."""
        law = tree.law(self._tree(points), self.parameters, 32 * self.limbs, sizes)
        good, bad = [], [law.log_bottom[None]]
        for answer, log_p in law.atoms():
            inside = interval.holds(jax.vmap(lambda one: self._element(points, one))(answer))
            good.append(jnp.where(inside, log_p, -jnp.inf))
            bad.append(jnp.where(inside, -jnp.inf, log_p))
        return jnp.exp(jnp.stack([logspace.logsumexp(jnp.concatenate(part)) for part in (good, bad)]))

    def _law_over_sizes(self, points: Points, interval: Interval) -> Float[Array, "2"]:
        """The law with one noisy level: the sum over both sizes. A slice of more points than there are takes them all."""
        extra = jnp.arange(points.rows + 1, dtype=jnp.int32)
        epsilon = jnp.asarray(self.parameters.slice_epsilon, float)
        log_p = jnp.where(extra == points.rows, -epsilon * points.rows, one_sided_log_pmf(extra, epsilon=epsilon))
        grid = jnp.stack(jnp.meshgrid(extra, extra, indexing="ij"), axis=-1).reshape(-1, 1, 2)
        laws = jax.lax.map(
            lambda noise: self._law_given(points, interval, self._least_sizes() + noise), grid, batch_size=64
        )
        return jnp.sum(jnp.exp((log_p[:, None] + log_p[None]).reshape(-1))[:, None] * laws, axis=0)

    def estimates(self, key: Array, data: Any, event: Any, *, draws: int) -> Float[Array, "draws 2"]:
        """Independent unbiased estimates of `probability` for noisy slices: the sizes are drawn, the law of the rest is exact.

        Each has less variance than the outcome of a run (Rao-Blackwell); average them, and take their spread for a confidence interval.

        Args:
          key: PRNG key.
          data, event: as for `probability`.
          draws: the number of estimates.
        """
        draws = arguments.integer("draws", draws, at_least=1)
        return _estimates(self, arguments.key(key), self.fit(data), self.check_event(event), draws)

    def estimate_success(self, key: Array, data: Any, *, draws: int) -> Float[Array, "draws 2"]:
        """`estimates` of (P[an interior point], P[none])."""
        draws = arguments.integer("draws", draws, at_least=1)
        return _estimates(self, arguments.key(key), self.fit(data), Accurate(error=jnp.zeros(())), draws)


@jax.jit(static_argnums=4)
def _estimates(solver: TreeLog, key: Array, data: Points, event: Any, draws: int) -> Float[Array, "draws 2"]:
    points = solver.prepare(data)
    interval = solver.event(points, event)
    shape = (draws, solver.parameters.depth, 2)
    sizes = solver._least_sizes()[None] + tree.noise(key, solver.parameters, shape)
    return jax.lax.map(lambda size: solver._law_given(points, interval, size), sizes, batch_size=8)


def tree_log(
    *, bits: int, epsilon: Any, delta: Any, beta: Any = 0.1, accountant: str = "optimal", depth: int | None = None
) -> TreeLog:
    """TreeLog (CLNSS §1.3.3) with the parameters that need the fewest points; see `dpjax.optimizers.interior_point.walk`.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE, for any data, by the named accountant; a walk that was stopped never
    returns an element that is not an interior point. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      epsilon: total, from 1e-4 to 700.
      delta: total, in (0, 1).
      beta: failure is at most beta on `sample_size(beta=beta)` points or more, whatever they are.
      accountant, depth: as for `planning.calibrate`, which also returns every number that was chosen.

    Raises:
      TypeError, ValueError: an argument out of range, or traced: the plan is made on the host.

    >>> from dpjax.optimizers.interior_point import exponential
    >>> solver = tree_log(bits=1024, epsilon=1.0, delta=1e-6, beta=0.1, depth=2)
    >>> solver.sample_size(beta=0.1) < exponential(bits=1024, epsilon=1.0).sample_size(beta=0.1)
    True
    """
    plan = planning.calibrate(bits=bits, epsilon=epsilon, delta=delta, beta=beta, accountant=accountant, depth=depth)
    return tree_log_planned(bits=bits, plan=plan)


def tree_log_planned(*, bits: int, plan: planning.Plan) -> TreeLog:
    """TreeLog with a given plan (`dataclasses.replace` changes one).

    Raises:
      ValueError: a deep slice of fewer than K = 2 t2 - 2 points, for which no privacy is proved; or a budget with a number that is 0 as a
        float.
    """
    arguments.instance("plan", plan, planning.Plan)
    if plan.m2 < plan.K:
        raise ValueError(f"plan.m2 must be >= K = {plan.K}, else no privacy is proved, got {plan.m2}")
    for name, value in vars(plan.budget).items():
        if value is not None:
            arguments.real(f"plan.budget.{name}", value, above=0.0)
    return TreeLog(
        **base.domain(bits),
        parameters=plan.parameters(),
        epsilon=np.float64(plan.guarantee.epsilon),
        delta=np.float64(plan.guarantee.delta),
        accountant=plan.accountant,
    )
