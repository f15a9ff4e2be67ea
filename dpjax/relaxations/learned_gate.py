"""A_dist with a learned gate: how often to release the best candidate, given its lead over the second.

A_dist (`dpjax.mechanisms.stability`) keeps the best candidate if gap + Laplace noise reaches a threshold. Any rule "keep with probability
p(gap)" that rises with the gap is such a test, with different noise: P[noise >= threshold - gap]. Let the gap move by at most s between
neighbours (2 for integer scores of sensitivity 1; 1 for counts under add/remove), and let p depend on c = ceil(gap / s), p_0 = 0. A rule
that rises is (epsilon, delta)-private if

    p_1 <= delta,    p_c - e^epsilon p_(c-1) <= delta    and    (1 - p_(c-1)) - e^epsilon (1 - p_c) <= delta.

*If both runs have the same best candidate*, c moves by at most 1, the outcomes are that candidate and ⊥, and these are
the two events. *If not*, the gaps add up to at most s, so both c are 0 or 1, or one gap is s and the other 0, and both p are at most
delta; p + max(0, (1 - p) - e^epsilon (1 - p')) <= delta follows from p, p' <= delta.

Every point of the parametrisation is private: p_c = p_(c-1) + sigmoid(v_c) (r(p_(c-1)) - p_(c-1)) with the largest step that is allowed,
r(x) = min(e^epsilon x + delta, 1 - e^-epsilon (1 - x - delta), 1). At sigmoid = 1 it is the coin of optimal partition selection
(`dpjax.mechanisms.partition_selection`), on c, and no rule under these conditions keeps more often, since r rises. The descent reaches it.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float

from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Candidates, Chooser, Number
from dpjax.mechanisms.partition_selection import saturation
from dpjax.mechanisms.stability import leader

SMALLEST_DELTA = 1e-6  # probabilities near 1 have 16 digits
LARGEST_EPSILON = 10.0
_MARGIN = 2.0**-20  # the part of epsilon and delta that the descent leaves for roundings


@frozen
class Gate(Chooser):
    """The best candidate, kept with a probability that depends on its lead; see `learn`.

    Attributes:
      keep: p_1, ..., p_C; p_c = p_C beyond. Rising, in [0, 1].
      drop: 1 - p_1, ..., 1 - p_C. Privacy compares them times e^epsilon, and near p = 1 float32 holds them only if they are no differences.
      epsilon: the epsilon at which `guarantee` states delta.
      sensitivity: s, how far the gap moves: 1 for counts under ADD_OR_REMOVE_ONE, 2 under REPLACE_ONE. Scores are integers.
    """

    keep: Float[Any, "c"]
    drop: Float[Any, "c"]
    epsilon: Number
    sensitivity: int = static()

    def fit(self, data: Any) -> Candidates:
        made = super().fit(data)
        if not jnp.issubdtype(made.scores.dtype, jnp.integer):
            raise TypeError(f"scores must be integers: the gate counts steps of the gap, got {made.scores.dtype}")
        return made

    def _coin(self, data: Candidates) -> tuple[Array, Bool[Array, ""], Array, Array]:
        """(best, whether there is one, ln p, ln(1 - p))."""
        best, gap = leader(data.scores, data.where)
        keep, drop = jnp.asarray(self.keep, float), jnp.asarray(self.drop, float)
        steps = jnp.clip(jnp.ceil(gap / self.sensitivity), 0.0, float(keep.shape[0])).astype(jnp.int32)
        p, q = (jnp.append(first, each)[steps] for first, each in ((0.0, keep), (1.0, drop)))
        alone = gap == jnp.inf  # an only candidate, a constant, is kept
        return best.index, best.ok, _log(jnp.where(alone, 1.0, p)), _log(jnp.where(alone, 0.0, q))

    def draw(self, key: Array, data: Candidates) -> Any:
        index, ok, log_p, log_q = self._coin(data)
        return index, ok & random.bernoulli(key, log_p, log_q), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        index, ok, log_p, log_q = self._coin(data)
        chosen = (jnp.arange(data.scores.shape[0], dtype=jnp.int32) == index) & ok
        return jnp.append(jnp.where(chosen, log_p, -jnp.inf), jnp.where(ok, log_q, 0.0))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), the latter from the probabilities in use, rounded up."""
        epsilon = arguments.known("epsilon", self.epsilon)
        keep, drop = np.asarray(self.keep, np.float64), np.asarray(self.drop, np.float64)
        risen = f"keep must rise within [0, 1], got {self.keep!r}"
        if not np.all((keep >= 0) & (keep <= 1)):
            raise ValueError(risen)
        if drop.shape != keep.shape or not np.all((drop >= 0) & (abs(keep + drop - 1) <= 2.0**-20)):
            raise ValueError(f"drop must be 1 - keep, got {self.drop!r}")
        # The rarer side is what the coin decides by; the other one is what it leaves.
        rare = keep < drop
        keep, drop = np.where(rare, keep, 1.0 - drop), np.where(rare, 1.0 - keep, drop)
        p, q, factor = np.append(0.0, keep), np.append(1.0, drop), math.exp(epsilon)
        if np.any(np.diff(p) < 0):
            raise ValueError(risen)
        up = p[1:] - factor * p[:-1] + 2.0**-50 * (p[1:] + factor * p[:-1])
        down = q[:-1] - factor * q[1:] + 2.0**-50 * (q[:-1] + factor * q[1:])
        delta = min(1.0, max(0.0, float(up.max()), float(down.max())) * (1 + 2.0**-40))
        return Guarantee(epsilon, delta, ADD_OR_REMOVE_ONE if self.sensitivity == 1 else REPLACE_ONE)


def _log(p: Array) -> Array:
    """ln p; where p = 0, no derivative reaches the logarithm."""
    return jnp.where(p > 0, jnp.log(jnp.where(p > 0, p, 1.0)), -jnp.inf)


def keeps(steps: Float[Array, "c"], *, epsilon: Number, delta: Number) -> tuple[Float[Array, "c"], Float[Array, "c"]]:
    """(p_1, ..., p_C, and all 1 - p_c) at a point v of the parametrisation: private at every v, and differentiable almost everywhere.

    A v above 30 counts as 30, so that 1 - p has a logarithm, unless dozens of steps are as steep as they may be.

    >>> [round(float(p), 3) for p in keeps(jnp.full(3, 20.0), epsilon=1.0, delta=0.1)[0]]  # optimal partition selection
    [0.1, 0.372, 0.806]
    """
    epsilon, delta = (jnp.asarray(each, steps.dtype) for each in (epsilon, delta))

    def step(before: tuple[Array, Array], share: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        p, q = before
        most = jnp.minimum(jnp.exp(epsilon) * p + delta - p, q - jnp.maximum(jnp.exp(-epsilon) * (q - delta), 0.0))
        now = p + share * most, q - share * most
        return now, now

    zero = jnp.zeros((), steps.dtype)
    _, found = jax.lax.scan(step, (zero, 1.0 - zero), jax.nn.sigmoid(jnp.minimum(steps, 30.0)))
    return found


def learn(*, gap: int, epsilon: Number, delta: float, sensitivity: int = 2, steps: int = 500) -> Gate:
    """The gate that drops a candidate with this lead least often, by Adam.

    Args:
      gap: the lead of the best integer score, at least 1; larger leads are kept as often.
      epsilon: in (0, 10].
      delta: in [1e-6, 1).
      sensitivity: how far the gap moves between neighbours: 2 under REPLACE_ONE, for integer scores of sensitivity 1; 1 for counts under
        ADD_OR_REMOVE_ONE.
      steps: number of steps of the descent.

    Returns:
      Gate.

    Formal guarantees: (epsilon, delta), as `Gate.guarantee` computes from the released probabilities. Coins are accurate down to 1e-7 in
    float32. Not promised: protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> gate = learn(gap=12, epsilon=1.0, delta=0.01)
    >>> gate.guarantee().covers(1.0, 0.01), round(float(gate.pmf([0, 12, 0])[1]), 3)
    (True, 0.912)
    """
    gap = arguments.integer("gap", gap, at_least=1, at_most=2**16)
    sensitivity = arguments.integer("sensitivity", sensitivity, at_least=1, at_most=2)
    epsilon = arguments.known("epsilon", epsilon, above=0.0, at_most=LARGEST_EPSILON)
    delta = arguments.known("delta", delta, at_least=SMALLEST_DELTA, below=1.0)
    steps = arguments.size("steps", steps)
    inner, inner_delta = epsilon * (1 - _MARGIN), delta * (1 - _MARGIN)
    # Where the coin of partition selection is certain nothing more can be gained, and beyond it floats soon cannot hold 1 - p.
    count = min(-(-gap // sensitivity), saturation(inner, inner_delta))
    with jax.enable_x64(True):
        given = jnp.asarray(inner), jnp.asarray(inner_delta)
        keep, drop = map(np.asarray, _descend(*given, count=count, steps=steps))
    made = Gate(keep=np.minimum(keep, 1.0), drop=drop, epsilon=np.float64(epsilon), sensitivity=sensitivity)
    if not made.guarantee().covers(epsilon, delta):
        raise RuntimeError(f"the learned gate is not ({epsilon}, {delta})-private: {made.guarantee()}")
    return made


@jax.jit(static_argnames=("count", "steps"))
def _descend(epsilon: Array, delta: Array, *, count: int, steps: int) -> tuple[Float[Array, "c"], Float[Array, "c"]]:
    """(p, 1 - p) after the descent on ln(1 - p_C)."""

    def loss(point: Array) -> Array:
        return jnp.log(keeps(point, epsilon=epsilon, delta=delta)[1][-1])

    optimiser = optax.adam(optax.cosine_decay_schedule(0.3, steps))

    def step(carry: Any, _: None) -> tuple[Any, None]:
        point, state = carry
        slope = jax.grad(loss)(point)
        with jax.numpy_dtype_promotion("standard"):  # Adam raises a float to the power of its count of steps
            move, state = optimiser.update(slope, state)
        return (optax.apply_updates(point, move), state), None

    first = jnp.zeros(count, epsilon.dtype)
    (point, _), _ = jax.lax.scan(step, (first, optimiser.init(first)), None, length=steps)
    return keeps(point, epsilon=epsilon, delta=delta)
