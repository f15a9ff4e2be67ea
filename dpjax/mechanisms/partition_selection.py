"""Optimal partition selection: keep a group of c people with probability p(c).

p(0) = 0, p(c+1) = min(e^eps p(c) + delta, 1 - e^-eps (1 - p(c) - delta), 1): the largest that is
(eps, delta)-DP (Desfontaines, Voss, Gipson, Mandayam 2020). In closed form, a being the last count of the
first branch, q = 1 - p and z >= a the real number at which q would reach 0:

    p(c) = delta (e^(c eps) - 1) / (e^eps - 1)         for c <= a,
    q(c) = delta (e^((z - c) eps) - 1) / (e^eps - 1)   for a <= c <= z,
    p(c) = 1                                           for c >= g = ceil(z).

Each half is written for the one of p and q that is small, so neither p(1) = delta nor q(g-1) < delta loses a digit.
"""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, random
from dpjax.core.logspace import log1mexp
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import LARGEST_PMF, sound
from dpjax.mechanisms.base import Mechanism, Number, all_or_first_failure, array

MOST_COUNTED = 2**31 - 128  # counts are int32: the largest of them that float32 holds


@frozen
class Anchors:
    """The integers a and g, the fraction z - (g-1) in (0, 1], ln delta and ln q(a), for which float32 parameters have too few digits."""

    turn: Int[Array, ""]
    saturation: Int[Array, ""]
    excess: Float[Array, ""]
    log_delta: Float[Array, ""]
    log_turn: Float[Array, ""]


def anchors(epsilon: Number, delta: Number) -> Anchors:
    """Where the closed form turns and ends: computed in float64 on the host if the parameters are known, else traced.

    Traced in float32, z is off by about 1e-7 z, which changes q by about 1e-7 z eps delta and no p by more.

    Raises:
      ValueError: epsilon or delta out of range, or so small that no int32 count is certain to be kept. In the latter case g is
        MOST_COUNTED, without an error, if they are traced.

    >>> int(anchors(1.0, 1e-6).saturation)
    28
    """
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    xp = jnp if arguments.is_traced(epsilon) or arguments.is_traced(delta) else np
    log_delta = xp.log(delta)
    # The first branch is the smaller one iff p(c) <= (1 - delta) / (e^eps + 1).
    turn = 1 + xp.floor(xp.log1p((1 - delta) / delta * xp.tanh(epsilon / 2)) / epsilon)
    # ln q(a). If a = 1, p(a) is delta; else it may be nearly 1, and q is rounded up by as much as ln p may be off: dropping more often
    # is private.
    log_p = log_delta + _log_times(xp, turn, epsilon)
    least = xp.finfo(log_p.dtype).eps * (1 - log_delta + turn * epsilon)
    rest = xp.where(turn > 1, xp.log(least - xp.expm1(xp.minimum(log_p, 0))), xp.log1p(-delta))
    zero = turn + xp.logaddexp(xp.zeros_like(rest), rest - log_delta + _log_expm1(xp, epsilon)) / epsilon
    saturation = xp.ceil(zero)
    if xp is np and saturation >= MOST_COUNTED:
        rule = f"so large that a count below {MOST_COUNTED} is surely kept"
        raise ValueError(f"epsilon and delta must be {rule}, which {saturation:.3g} is, got {epsilon} and {delta}")
    # `np.where` makes an array, and JAX hands to a 64-bit program the 32-bit copy that it once made of an array.
    logs = {"log_delta": log_delta, "log_turn": rest if xp is jnp else rest[()]}
    excess, as_count = zero - (saturation - 1), jnp.int32 if xp is jnp else np.int32
    turn, saturation = (xp.minimum(each, MOST_COUNTED).astype(as_count) for each in (turn, saturation))
    return Anchors(turn=turn, saturation=saturation, excess=excess, **logs)


def _log_expm1(xp: Any, x: Any) -> Any:
    """ln(e^x - 1) for x > 0, without overflow."""
    return x + xp.log(-xp.expm1(-x))


def _log_times(xp: Any, count: Any, epsilon: Any) -> Any:
    """ln((e^(count epsilon) - 1) / (e^epsilon - 1)): 0 for a count of 1, and no difference of large numbers for others."""
    return (count - 1) * epsilon + xp.log(-xp.expm1(-count * epsilon)) - xp.log(-xp.expm1(-epsilon))


def saturation(epsilon: Number, delta: Number) -> int:
    """g: the least count that is surely kept, about 1 + (2/eps) ln((e^eps - 1) / ((e^eps + 1) delta)).

    >>> saturation(1.0, 1e-6), saturation(0.1, 1e-8), saturation(0.05, 1e-9)
    (28, 310, 683)
    """
    return int(anchors(epsilon, delta).saturation)


def log_keep(
    count: Int[ArrayLike, "*s"], *, epsilon: Number, delta: Number, at: Anchors | None = None
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln p(c), ln(1 - p(c))), each accurate however small; `at` saves computing the anchors again."""
    at = anchors(epsilon, delta) if at is None else at
    rate, log_delta, log_turn = (jnp.asarray(each, float) for each in (epsilon, at.log_delta, at.log_turn))
    count = array("count", count, whole=True)
    # Clipped where the other branch is chosen, so that no branch ever gets an invalid argument.
    from_start = jnp.clip(count, 1, at.turn).astype(float)
    to_end = (at.saturation - 1 - jnp.clip(count, at.turn, at.saturation - 1)).astype(float)
    log_p = log_delta + _log_times(jnp, from_start, rate)
    log_q = log_delta + _log_times(jnp, to_end + jnp.asarray(at.excess, float), rate)
    log_q = jnp.where(count == at.turn, log_turn, log_q)
    below = (count < at.turn) | ((count == at.turn) & (log_p <= log_turn))
    lesser = jnp.where(below, log_p, log_q)  # never so near 0 that the derivative of the other one is infinite
    greater = log1mexp(lesser)
    log_p, log_q = jnp.where(below, lesser, greater), jnp.where(below, greater, lesser)
    none, sure = count <= 0, count >= at.saturation
    log_p = jnp.where(sure, 0.0, jnp.where(none, -jnp.inf, log_p))
    return log_p, jnp.where(sure, -jnp.inf, jnp.where(none, 0.0, log_q))


@arguments.in_plain_numbers
def probabilities(
    epsilon: float, delta: float, count: np.ndarray | None = None, at: Anchors | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(p(c), 1 - p(c)) for c = 0, ..., g, or for the given c, in float64 on the host; for traced parameters use `log_keep`, in logs.

    >>> kept, dropped = probabilities(1.0, 0.1)
    >>> kept.round(3).tolist()
    [0.0, 0.1, 0.372, 0.806, 0.965, 1.0]
    """
    at = anchors(epsilon, delta) if at is None else at
    count = np.arange(int(at.saturation) + 1) if count is None else count
    to_end = at.saturation - 1 - np.clip(count, at.turn, at.saturation - 1) + at.excess
    kept = np.exp(at.log_delta + _log_times(np, np.clip(count, 1, at.turn), epsilon)) * (count > 0)
    dropped = np.exp(at.log_delta + _log_times(np, to_end, epsilon)) * (count < at.saturation)
    dropped = np.where(count == at.turn, np.exp(at.log_turn), dropped)
    below = (count < at.turn) | ((count == at.turn) & (kept <= dropped))
    return np.where(below, kept, 1 - dropped), np.where(below, 1 - kept, dropped)


def partition_selection(
    key: Array, counts: Int[ArrayLike, "*s"], *, epsilon: Number, delta: Number, at: Anchors | None = None
) -> Bool[Array, "*s"]:
    """Keeps each group with probability p(count), by a coin of its own.

    Args:
      key: a PRNG key.
      counts: how many people each group has, any shape.
      epsilon: the privacy parameter, > 0.
      delta: in (0, 1).
      at: the anchors of (epsilon, delta), if already known.

    Returns:
      Which groups are kept; empty ones never are.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE when each person is in one group, and no
    selection with that guarantee keeps any group more often. Coins are correct down to 5e-20. Rounding adds
    up to 5e-6 to delta in single precision, and 6e-15 under `jax.enable_x64(True)` (the most in 42 settings,
    by the law). Not promised: protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: epsilon not finite and positive, delta outside (0, 1).

    >>> import jax, jax.numpy as jnp
    >>> partition_selection(jax.random.key(0), jnp.array([0, 28]), epsilon=1.0, delta=1e-6).tolist()
    [False, True]
    """
    log_p, log_q = log_keep(counts, epsilon=epsilon, delta=delta, at=at)
    return random.bernoulli(arguments.key(key), log_p, log_q) & ~jnp.isnan(log_p)


@frozen
class Groups:
    """How many people each group has, and the anchors of the mechanism that is to select among them."""

    counts: Int[Array, "*s"]
    at: Anchors


@frozen
class PartitionSelection(Mechanism):
    """Optimal partition selection; see `partition_selection`, and `mechanism`, which makes it.

    It takes the counts, of any shape, and returns which groups are kept. An event is one such answer, an array of flags.
    Its plain twin is `dpjax.verify.plain.partition_selection`.
    """

    kind: ClassVar[type] = jax.Array

    epsilon: Number
    delta: Number

    def sound(self) -> Bool[Array, ""]:
        delta = jnp.asarray(self.delta, float)
        return sound(self) & (delta > 0) & (anchors(self.epsilon, delta).saturation < MOST_COUNTED)

    def fit(self, data: Any) -> Groups:
        # The anchors are computed here, in float64, and not on the view, where epsilon and delta would be traced.
        return Groups(counts=array("counts", data, whole=True), at=anchors(self.epsilon, self.delta))

    def fits(self, groups: Groups) -> Bool[Array, ""]:
        return jnp.all(groups.counts >= 0)

    def _given(self, groups: Groups) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "at": groups.at}

    def draw(self, key: Array, groups: Groups) -> Any:
        return partition_selection(key, groups.counts, **self._given(groups)), jnp.bool_(True), {}

    def check_event(self, event: Any) -> Bool[Array, "*s"]:
        kept = event if hasattr(event, "dtype") else arguments.array("event", event)
        if kept.dtype != bool:
            raise TypeError(f"event must hold one flag a group, got {event!r}")
        return jnp.asarray(kept)

    def event(self, groups: Groups, event: Any) -> Bool[Array, "*s"]:
        if jnp.shape(event) != groups.counts.shape:
            raise ValueError(f"event must have one flag a group, shape {groups.counts.shape}, got {jnp.shape(event)}")
        return event

    def exactly(self, output: Any) -> Bool[Array, "*s"]:
        return self.check_event(output)

    def log_law(self, groups: Groups) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
        """(ln P[kept], ln P[dropped]) of every group."""
        return log_keep(groups.counts, **self._given(groups))

    def law(self, groups: Groups, kept: Bool[Array, "*s"]) -> Float[Array, "2"]:
        log_p, log_q = self.log_law(groups)
        right = jnp.exp(jnp.where(kept, log_p, log_q)).ravel()
        wrong = jnp.exp(jnp.where(kept, log_q, log_p)).ravel()
        return all_or_first_failure(right, wrong)

    def log_mass(self, groups: Groups, kept: Bool[Array, "*s"]) -> Float[Array, ""]:
        return jnp.sum(jnp.where(kept, *self.log_law(groups)))

    def outputs(self, groups: Groups) -> int:
        return 1 << arguments.integer("counts", groups.counts.size, at_least=1, at_most=LARGEST_PMF)

    def masses(self, groups: Groups, outputs: int) -> Float[Array, "outcomes"]:
        index, place = jnp.arange(outputs, dtype=jnp.int32), jnp.arange(groups.counts.size, dtype=jnp.int32)
        kept = ((index[:, None] >> place[None]) & 1) == 1  # bit i of an index: whether group i is kept
        each = jax.vmap(lambda flags: self.law(groups, flags.reshape(groups.counts.shape))[0])(kept)
        return jnp.append(each, 0.0)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta), which is tight, when each person is in one group."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return Guarantee(epsilon, delta, "ADD_OR_REMOVE_ONE")


def mechanism(*, epsilon: Number, delta: Number) -> PartitionSelection:
    """Optimal partition selection, (epsilon, delta)-private when each person is in one group.

    Args:
      epsilon: > 0, finite.
      delta: in (0, 1).

    Raises:
      TypeError, ValueError: epsilon not finite and positive, delta outside (0, 1), or both so small that no int32 count is certain to be
        kept.

    >>> select = mechanism(epsilon=1.0, delta=0.1)
    >>> select.guarantee().relation
    'ADD_OR_REMOVE_ONE'
    >>> [round(float(p), 3) for p in select.pmf(2)]  # dropped, kept, nothing released
    [0.628, 0.372, 0.0]
    """
    made = PartitionSelection(epsilon=arguments.epsilon(epsilon), delta=arguments.delta(delta))
    anchors(made.epsilon, made.delta)  # refuses parameters that have none
    return made
