"""Noise for an integer, learned by gradient steps under (epsilon, delta), and certified afterwards.

The best noise solves a linear programme (`dpjax.bounds.noise`); here it is found by ascent through a parametrisation in which **every
point is private**, so that nothing has to be projected. Laws are even, on the integers, and described as in `dpjax.bounds.noise`: by
their values at 0, ..., R, with tails P(x + D) = e^-epsilon P(x). A point is a vector v on 0, ..., R and two vectors w, w' on
0, ..., R - D:

- *A pure part* Q(x) ~ exp(min_y v(y) + epsilon ceil(|x - y| / D)), the minimum over -R <= y <= R. Each of its terms moves by at most
  epsilon when x moves by at most D, and so does the minimum: Q is epsilon-private for every v. If exp(v) is epsilon-private already,
  Q ~ exp(v) (the minimum is at y = x): every pure law of the description is reached. This is McShane's extension of a Lipschitz function.
  For the sake of the tail, Q must not increase on the last D of 0, ..., R: P(x + D - s) = e^-epsilon P(x - s) >= e^-epsilon P(x). There
  each value is replaced by the least of those up to it, which keeps differences within a distance of D as small.
- *A free part* F = sum_m pi_m U_m + sum_m pi'_m V_m with (pi, pi') the softmax of (w, w'), U_m uniform on -m, ..., m and V_m on {-m, m}.
  The V_m alone give every even law on |x| <= R - D; the U_m are included because they make descent easy (every unimodal law is a mixture
  of them). H(F) = max_s H_s(F).
- *The law* P = c Q + (1 - c) F, c = max(0, 1 - delta / H(F)): H is convex and H(Q) = 0, so H(P) <= (1 - c) H(F) <= delta. A law of finite
  support that is private already is its own F, with c = 0, so nothing is lost. At delta = 0, c = 1.

The descent proposes; the certificate decides. What is released is an `IntegerNoise`, whose `guarantee` is computed from the weights in
use, in float64 with every rounding pessimistic.
"""

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting.guarantee import RELATIONS, Guarantee
from dpjax.bounds import noise as bound
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms.base import Between, Noise, Number, difference
from dpjax.mechanisms.one_sided_geometric import SMALLEST_RATE, one_sided_geometric
from dpjax.relaxations import descent

IMPOSSIBLE = -1e5  # ln of a weight that stands for 0, and is 0 wherever it is exponentiated
LARGEST_REACH = 256  # of `learn`, unless more is requested
_MARGIN = 2.0**-20  # the part of epsilon and delta left for the certificate's roundings
_ROUNDING = 1.0 + 2.0**-40  # sums of at most 2^10 shifts of 2^12 positive terms, each good to a few units of 2^-53
_FAR = 2.0**33  # beyond every difference of two int32

# ------------------------------------------------------------------------------------------------- what is released


@frozen
class IntegerNoise(Noise):
    """An integer plus noise of any even law with geometric tails; see `learn` and `mechanism`, which make it.

    P[noise = x] is proportional to exp(log_weights[|x|]) for |x| <= R, and the last D weights continue as P(x + D) = e^-rate P(x).

    Formal guarantees: `guarantee`, computed from these numbers. Draws are accurate to a relative 1e-4 in float32, probabilities down to
    5e-20. Not promised: protection from floating-point side channels, or a cryptographic generator.

    Attributes:
      log_weights: ln of the weights of 0, ..., R; need not be normalised.
      rate: rate of the tails.
      epsilon: the epsilon at which `guarantee` states delta.
      sensitivity: D, the most that the integer changes between neighbours.
      relation: relation that defines neighbours.
    """

    whole: ClassVar[bool] = True

    log_weights: Float[Any, "r"]
    rate: Number
    epsilon: Number
    sensitivity: int = static()
    relation: str = static()

    @property
    def _reach(self) -> int:
        return int(np.shape(self.log_weights)[0]) - 1

    def sound(self) -> Bool[Array, ""]:
        rate = jnp.asarray(self.rate, float)
        finite = jnp.all(jnp.isfinite(jnp.asarray(self.log_weights, float)))
        return super().sound() & (rate >= SMALLEST_RATE * self.sensitivity) & finite

    def fit(self, data: Any) -> Int[Array, ""]:
        value = super().fit(data)
        if value.ndim:
            raise ValueError(f"value must be one integer: the noise is certified for one, got shape {value.shape}")
        return value

    def _log_law(self) -> tuple[Float[Array, "classes"], Float[Array, ""]]:
        """(ln P of -R, ..., R, then of the D progressions with step D that form each tail, upper and lower, each as a whole; rate)."""
        weights, rate = jnp.asarray(self.log_weights, float), jnp.asarray(self.rate, float)
        both = weights[np.abs(np.arange(-self._reach, self._reach + 1))]
        later = weights[-self.sensitivity :] - rate - logspace.log1mexp(-rate)  # sum over j >= 1 of e^(-rate j)
        classes = jnp.concatenate([both, later, later])
        return classes - logspace.logsumexp(classes), rate

    def add(self, key: Array, value: Int[Array, ""]) -> Int[Array, ""]:
        key_class, key_period = jax.random.split(key)
        log_law, rate = self._log_law()
        # The first of independent exponential clocks to ring, at rates P.
        ringing = -random.gumbel(key_class, log_law.shape) - log_law
        chosen = jnp.argmin(ringing).astype(jnp.int32)
        d, reach = self.sensitivity, self._reach
        ends = np.arange(reach - d + 1, reach + 1)
        start = jnp.asarray(np.concatenate([np.arange(-reach, reach + 1), ends, -ends]), jnp.int32)[chosen]
        further = d * (1 + one_sided_geometric(key_period, epsilon=rate))
        return value + start + jnp.where(chosen > 2 * reach, jnp.sign(start) * further, 0)

    def log_density(self, value: Int[Array, ""], output: Int[Array, ""]) -> Float[Array, ""]:
        log_law, rate = self._log_law()
        d, reach = self.sensitivity, self._reach
        size = jnp.abs(output - value)
        periods = jnp.maximum(0, -((reach - size) // d))
        return log_law[reach + size - periods * d] - rate * periods.astype(float)

    def split(self, value: Int[Array, ""], event: Between) -> tuple[Float[Array, ""], Float[Array, ""]]:
        low, high = (difference(end, value) for end in (event.low, event.high))
        inside, under, over = (self._between(*ends) for ends in ((low, high), (-_FAR, low), (high, _FAR)))
        return inside, under + over

    def _between(self, low: Any, high: Any) -> Float[Array, ""]:
        """P[low <= noise < high], a sum of positive terms."""
        log_law, rate = self._log_law()
        d, reach = self.sensitivity, self._reach
        x = jnp.arange(-reach, reach + 1, dtype=jnp.int32).astype(float)
        body = jnp.sum(jnp.where((x >= low) & (x < high), jnp.exp(log_law[: 2 * reach + 1]), 0.0))
        ends, weights = x[-d:], jnp.exp(log_law[2 * reach + 1 - d : 2 * reach + 1])

        def tail(low: Any, high: Any) -> Array:
            """The noises ends + j D, j >= 1, in [low, high)."""
            first = jnp.maximum(jnp.ceil((low - ends) / d), 1.0)
            past = jnp.maximum(jnp.ceil((high - ends) / d), first)
            # e^(-rate j) for first <= j < past.
            stretch = jnp.exp(-rate * first) * jnp.expm1(-rate * (past - first)) / jnp.expm1(-rate)
            return jnp.sum(weights * stretch)

        return body + tail(low, high) + tail(1.0 - high, 1.0 - low)

    def delta_at(self, epsilon: float) -> float:
        """The least delta for which this is (epsilon, delta)-private, rounded up: the largest hockey-stick over all shifts 1, ..., D.

        The law is even, so both directions of a shift have the same hockey-stick. Its terms are P(x) (1 - e^-g), g = ln P(x) - epsilon -
        ln P(x + s), where g > 0; g is rounded up by more than its roundings can have lost, so that delta = 0 is returned only if
        every ratio is at most e^epsilon.

        Raises:
          TypeError, ValueError: epsilon that is not a finite number >= 0.
        """
        epsilon = arguments.known("epsilon", epsilon, at_least=0.0, below=math.inf)
        description = self._description()
        weights = np.asarray(self.log_weights, np.float64)
        weights = weights - weights.max()
        columns, periods = description.beyond
        log_p = weights[columns] - description.rate * periods
        x, multiples = description.places, description.multiples()
        total = np.exp(weights) @ self._coefficients("zero_one")[1]
        here = log_p[abs(x)]
        worst, breaks = 0.0, False
        for shift in range(1, self.sensitivity + 1):
            there = log_p[abs(x + shift)]
            slack = 2.0**-50 * (abs(here) + abs(there) + epsilon + abs(np.asarray(self.log_weights)).max())
            gap = np.maximum(here - epsilon - there + slack, 0.0)
            worst = max(worst, float(multiples @ (np.exp(here) * -np.expm1(-gap))))
            breaks |= bool(np.any(gap > 0))
        return min(1.0, max(worst / total * _ROUNDING, 5e-324)) if breaks else 0.0

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under the relation, delta by `delta_at` from the weights in use."""
        epsilon = arguments.known("epsilon", self.epsilon)
        return Guarantee(epsilon, self.delta_at(epsilon), self.relation)

    def pmf_of_sizes(self) -> np.ndarray:
        """P[noise = x] for x = 0, ..., R, in float64 on the host; P[noise = -x] is the same."""
        weights = np.exp(np.asarray(self.log_weights, np.float64) - np.max(self.log_weights))
        return weights / (self._coefficients("zero_one")[1] @ weights)

    def _description(self) -> bound.Tails:
        return bound.Tails(self.sensitivity, self._reach, arguments.known("rate", self.rate))

    def _coefficients(self, loss: bound.Loss) -> tuple[np.ndarray, np.ndarray]:
        """(cost, mass) of 0, ..., R."""
        return bound.coefficients(loss, self._description())

    def expected_loss(self, loss: bound.Loss) -> float:
        """The mean loss of the noise, in float64 on the host.

        Args:
          loss: "absolute", "square", "zero_one", or an even function of integers.

        Raises:
          ValueError: see `dpjax.bounds.noise.coefficients`.
        """
        return float(self._coefficients(loss)[0] @ self.pmf_of_sizes())


def mechanism(
    log_weights: Any,
    *,
    epsilon: Number,
    delta: float = 0.0,
    sensitivity: int = 1,
    rate: Number | None = None,
    relation: str = "REPLACE_ONE",
) -> IntegerNoise:
    """An integer plus noise of these weights, refused unless it is (epsilon, delta)-private.

    Args:
      log_weights: ln of the weights of 0, ..., R, finite, R at least twice the sensitivity; the law is even.
      epsilon: at least 2^-25 times the sensitivity, as int32 could not hold the noise otherwise; at most 50.
      delta: in [0, 1).
      sensitivity: D, the most that the integer changes between neighbours.
      rate: rate of the tails, P(x + D) = e^-rate P(x), in the range of epsilon. If absent, epsilon less a relative 2^-20, which is left
        for roundings: otherwise those of the tails alone would take more than epsilon.
      relation: the relation of neighbours for which `sensitivity` holds.

    Raises:
      TypeError, ValueError: an argument out of range, or weights that are not (epsilon, delta)-private.

    >>> mechanism([0.0, -1.0, -2.0], epsilon=1.01, rate=1.0).guarantee().delta
    0.0
    >>> mechanism([0.0, -1.5, -2.5], epsilon=1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: log_weights must be (1.0, 0.0)-private noise for sensitivity 1, got delta = 0.230642...
    """
    sensitivity = arguments.count("sensitivity", sensitivity)
    allowed = {"at_least": SMALLEST_RATE * sensitivity, "at_most": bound.MAX_EPSILON}
    epsilon = arguments.known("epsilon", epsilon, **allowed)
    rate = (
        max(allowed["at_least"], epsilon * (1 - _MARGIN)) if rate is None else arguments.known("rate", rate, **allowed)
    )
    weights = arguments.array("log_weights", log_weights).astype(np.float64)
    if weights.ndim != 1 or not np.all(np.isfinite(weights)):
        raise ValueError(f"log_weights must be finite numbers of shape (R + 1,), got {log_weights!r}")
    if len(weights) <= 2 * sensitivity:
        raise ValueError(f"log_weights must be at least {2 * sensitivity + 1}, for 0, ..., 2 D, got {len(weights)}")
    delta = arguments.known("delta", delta, at_least=0.0, below=1.0)
    description = bound.tails(epsilon=epsilon, sensitivity=sensitivity, reach=len(weights) - 1)
    made = IntegerNoise(
        log_weights=np.maximum(weights - weights.max(), IMPOSSIBLE),
        rate=np.float64(rate),
        epsilon=np.float64(epsilon),
        sensitivity=description.sensitivity,
        relation=arguments.choice("relation", relation, RELATIONS),
    )
    if (found := made.guarantee().delta) > delta:
        claim = f"({epsilon}, {delta})-private noise for sensitivity {description.sensitivity}"
        raise ValueError(f"log_weights must be {claim}, got delta = {found}")
    return made


# ------------------------------------------------------------------------------------------------- how it is learned


class Parameters(NamedTuple):
    """A point of the parametrisation.

    Attributes:
      pure: v, on 0, ..., R.
      uniform, pairs: w and w', on 0, ..., R - D.
    """

    pure: Float[Array, "r"]
    uniform: Float[Array, "f"]
    pairs: Float[Array, "f"]


class Parts(NamedTuple):
    """A law of the parametrisation.

    Attributes:
      pure: ln Q. free: F. share: c, the share of the pure part.
    """

    pure: Float[Array, "r"]
    free: Float[Array, "r"]
    share: Float[Array, ""]

    def law(self) -> Float[Array, "r"]:
        """P(0), ..., P(R)."""
        return self.share * jnp.exp(self.pure) + (1.0 - self.share) * self.free


def parts(parameters: Parameters, *, epsilon: Number, delta: Number, sensitivity: int) -> Parts:
    """The law of a point: (epsilon, delta)-private at every point, and differentiable almost everywhere.

    Args:
      parameters: v of shape (R + 1,), w and w' of shape (R - D + 1,), R >= 2 D.
      epsilon: > 0, at most 50; may be traced.
      delta: in [0, 1); may be traced.
      sensitivity: D.

    Formal guarantees: (epsilon, delta) in real numbers for shifts up to D. Sums are rounded, so a release must be certified by `mechanism`.

    >>> point = Parameters(jnp.zeros(5), jnp.zeros(3), jnp.zeros(3))
    >>> float(parts(point, epsilon=1.0, delta=0.0, sensitivity=2).share)
    1.0
    """
    reach = parameters.pure.shape[0] - 1
    epsilon, delta = (jnp.asarray(each, parameters.pure.dtype) for each in (epsilon, delta))
    description = bound.Tails(sensitivity, reach, epsilon)
    mirrored = np.arange(-reach, reach + 1)
    steps = -(-np.abs(np.arange(reach + 1)[:, None] - mirrored[None]) // sensitivity)
    steps[-sensitivity:] = np.minimum.accumulate(steps[-sensitivity:], axis=0)  # the last D do not increase
    capped = jnp.min(parameters.pure[np.abs(mirrored)][None] + epsilon * jnp.asarray(steps, epsilon.dtype), axis=1)
    later = jnp.where(np.arange(reach + 1) > reach - sensitivity, jnp.log1p(1.0 / jnp.expm1(epsilon)), 0.0)
    twice = jnp.asarray(np.where(np.arange(reach + 1) > 0, math.log(2.0), 0.0), epsilon.dtype)
    log_pure = capped - logspace.logsumexp(capped + later + twice)
    free = _free(parameters, sensitivity)
    stick = _hockey_stick(free, description)
    excess = stick > delta
    share = jnp.where(excess, 1.0 - delta / jnp.where(excess, stick, 1.0), 0.0)
    return Parts(pure=log_pure, free=free, share=share)


def _free(parameters: Parameters, sensitivity: int) -> Float[Array, "r"]:
    """F(0), ..., F(R)."""
    m = jnp.arange(parameters.uniform.shape[0]).astype(parameters.uniform.dtype)
    both = jnp.concatenate([parameters.uniform, parameters.pairs])
    uniform, pairs = jnp.split(jnp.exp(both - logspace.logsumexp(both)), 2)
    at_least = jax.lax.cumsum(uniform / (2.0 * m + 1.0), reverse=True)
    return jnp.pad(at_least + pairs / jnp.where(m > 0, 2.0, 1.0), (0, sensitivity))


def _hockey_stick(law: Float[Array, "r"], description: bound.Tails) -> Float[Array, ""]:
    """max_s H_s of a law that is 0 beyond R - D, differentiable; its epsilon is the tails' rate."""
    everywhere = jnp.pad(law, (0, 2 * description.sensitivity))
    x = description.places
    here = everywhere[np.abs(x)]

    def of_shift(shift: int) -> Array:
        return jnp.sum(jnp.maximum(here - jnp.exp(description.rate) * everywhere[np.abs(x + shift)], 0.0))

    return jnp.max(jnp.stack([of_shift(shift) for shift in range(1, description.sensitivity + 1)]))


def learn(
    *,
    epsilon: Number,
    delta: float = 0.0,
    sensitivity: int = 1,
    loss: bound.Loss = "absolute",
    relation: str = "REPLACE_ONE",
    reach: int | None = None,
    steps: int = 10_000,
    learning_rate: float = 0.05,
) -> IntegerNoise:
    """Noise of least mean loss under (epsilon, delta), by Adam on the parametrisation of this module.

    The best point met is kept: in most settings it is within 1 % of the optimum (`dpjax.bounds.noise.least_noise`); the largest gap seen is
    4.3 % (x^2, epsilon 0.4, delta 0.3, D = 2, where 100,000 steps close it). The descent starts from discrete Laplace noise, cut off as
    soon as delta allows.

    Args:
      epsilon: from 2^-24 times the sensitivity to 50.
      delta: in [0, 1).
      sensitivity: D, the most that the integer changes between neighbours.
      loss: "absolute", "square", "zero_one", or an even function of integers (NumPy arrays) with values >= 0.
      relation: the relation of neighbours for which `sensitivity` holds.
      reach: R, the last integer with a weight of its own; by default far enough to cut the noise off, but at most 256.
      steps: number of steps of the descent.
      learning_rate: its initial value; it falls to 0 as a cosine.

    Returns:
      IntegerNoise, certified.

    Formal guarantees: (epsilon, delta) under `relation`, as `guarantee` computes from the released weights; the descent is never trusted.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> learned = learn(epsilon=1.0, sensitivity=2, steps=200)
    >>> best, _ = bound.staircase("absolute", epsilon=1.0, sensitivity=2)
    >>> learned.guarantee().delta, best <= learned.expected_loss("absolute") <= 1.01 * best
    (0.0, True)
    """
    sensitivity = arguments.integer("sensitivity", sensitivity, at_least=1, at_most=2**10)
    least = 2 * SMALLEST_RATE * sensitivity
    epsilon = arguments.known("epsilon", epsilon, at_least=least, at_most=bound.MAX_EPSILON)
    delta = arguments.known("delta", delta, at_least=0.0, below=1.0)
    steps = arguments.size("steps", steps)
    learning_rate = arguments.known("learning_rate", learning_rate, above=0.0, below=math.inf)
    arguments.choice("relation", relation, RELATIONS)
    # A millionth of both is left to the certificate, which rounds pessimistically.
    inner, inner_delta = epsilon * (1 - _MARGIN), delta * (1 - _MARGIN)
    if reach is None:
        width = cut_off(inner, inner_delta, sensitivity, LARGEST_REACH - sensitivity)
        reach = 4 * sensitivity if width is None else max(4 * sensitivity, width + 2 * sensitivity)
    description = bound.tails(epsilon=inner, sensitivity=sensitivity, reach=reach)
    cost, _ = bound.coefficients(loss, description)
    with jax.enable_x64(True):
        given = jnp.asarray(cost), jnp.asarray(inner), jnp.asarray(inner_delta), jnp.asarray(learning_rate)
        start = _start(description, inner_delta)
        found = jax.device_get(_descend(start, *given, sensitivity=sensitivity, steps=steps))
    with np.errstate(divide="ignore"):  # ln 0 of a share, or of what F leaves out
        mixed = np.logaddexp(np.log(found.share) + found.pure, np.log1p(-found.share) + np.log(found.free))
    return mechanism(
        np.maximum(mixed, IMPOSSIBLE),
        epsilon=epsilon,
        delta=delta,
        sensitivity=sensitivity,
        rate=inner,
        relation=relation,
    )


def cut_off(epsilon: float, delta: float, sensitivity: int, limit: int) -> int | None:
    """The least m up to `limit` for which discrete Laplace noise on -m, ..., m and nothing beyond is (epsilon, delta)-private, if any.

    It is P(x) ~ e^(-epsilon |x| / D), whose hockey-stick at a shift of D is the mass of the last D integers.

    >>> cut_off(1.0, 0.1, 1, 100)
    2
    """
    if delta == 0.0:
        return None
    weights = np.exp(-epsilon / sensitivity * np.arange(limit + 1))
    totals = 2 * np.cumsum(weights) - 1
    before = np.concatenate([np.zeros(sensitivity), totals])[: limit + 1]
    last = np.where(np.arange(limit + 1) < sensitivity, 2.0, 0.5 * (totals - before) / totals)
    private = np.flatnonzero(last <= delta)
    return int(private[0]) if private.size else None


def _start(description: bound.Tails, delta: float) -> Parameters:
    """The starting point: discrete Laplace noise, as it is and cut off."""
    x = np.arange(description.reach + 1)
    laplace = -description.rate / description.sensitivity * x
    most = description.reach - description.sensitivity
    width = cut_off(description.rate, delta, description.sensitivity, most)
    cut = np.where(x[: most + 2] <= (most if width is None else width), np.exp(laplace[: most + 2]), 0.0)
    cut[-1] = 0.0
    uniform = (2 * x[: most + 1] + 1) * -np.diff(cut)
    # A hundredth is spread over all widths, so that each has a gradient; the pairs get next to nothing.
    uniform = np.log(uniform / uniform.sum() + 0.01 / (most + 1))
    return Parameters(*map(jnp.asarray, (laplace, uniform, np.full(most + 1, -14.0 - math.log(most + 1)))))


@jax.jit(static_argnames=("sensitivity", "steps"))
def _descend(
    start: Parameters, cost: Array, epsilon: Array, delta: Array, learning_rate: Array, *, sensitivity: int, steps: int
) -> Parts:
    """The best law met in the descent."""

    def objective(parameters: Parameters) -> Array:
        """ln of the mean loss: steps do not depend on its unit."""
        law = parts(parameters, epsilon=epsilon, delta=delta, sensitivity=sensitivity).law()
        return jnp.log(jnp.matmul(cost, law, precision="highest"))

    best = descent.best_met(objective, start, learning_rate, steps)
    return parts(best, epsilon=epsilon, delta=delta, sensitivity=sensitivity)
