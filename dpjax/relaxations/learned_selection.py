"""Selection with learned noise: the candidate whose score plus noise is largest, private for every point of the parametrisation.

Scores are integers, each of which moves by at most 1 between neighbours, in any direction. Candidate h wins if q_h + Z_h is
largest, where the Z_h are independent, Z >= 0 is an integer with P[Z >= z] = e^-f(z), f(z) = 0 for z <= 0, and ties are broken
uniformly. This is epsilon-private if f rises and

    f(z + s) <= f(z) + epsilon    for all z,    s = 2.

*Proof.* A uniform U_h in [0, 1) added to each Z_h breaks ties; S(x) = P[Z + U >= x] is e^-f, interpolated linearly between integers,
so S(x) <= e^epsilon S(x + 2) for all real x. Let M be the greatest q_j + Z_j + U_j of the others. Then P[h wins] = E S(M - q_h).
On a neighbour, with the same noise of the others, M rises by at most 1 and q_h falls by at most 1, and S falls: P[h wins] is at least
E S(M - q_h + 2) >= e^-epsilon E S(M - q_h). An event is a set of candidates, whose probabilities add up. If all scores move in one
direction (counts, under ADD_OR_REMOVE_ONE), then M - q_h moves by at most 1, and s = 1.

With f(z) = epsilon z / 2 it is permute-and-flip (`dpjax.mechanisms.report_noisy_max`). **Steps of two**, f(z) = epsilon ceil(z / 2), are
the best law that exists for two candidates: let the one that is l behind win with probability p_l; then privacy requires p_0 = 1/2,
p_1 >= e^-epsilon (1 - p_1) and p_l >= e^-epsilon p_(l-2), and here all of these are equalities. The descent finds these steps where
failures must be rare; where failures are frequent anyway it may find softer noise, which favours the candidates just behind the best.

**Why not a learned weight of a score**, P[h] proportional to e^psi(q_h)? Let psi rise by a_u from u to u + 1. A candidate of score u that
falls by one, beside many of score v that rise by one, has its probability divided by nearly e^(a_u + a_v), and u = v gives
2 a_u <= epsilon: without a bound on the number of candidates nothing is steeper than the exponential mechanism, and nothing is left to
be learned. Why no delta? It could cut noise off where that has probability delta, which changes no failure that is much more likely.

**The inner choice of RecConcave** (N = 2) is such a selection, of an exponent j by q(j) = min(L(j) - (1 - alpha) r, r - L(j+1)), where
L(j) moves by at most 1 (`dpjax.optimizers.quasi_concave.recursion`). With (1 - alpha) r rounded up, q is an integer. The failure of
RecConcave is linear in the law of this choice: sum_j P[j] P[failure | j]. `lengths` returns q and P[failure | j] for datasets, and descent
on the mean cost of the choice is then descent on the exact failure. `quasi_concave.Split(last=...)` runs RecConcave with the learned noise.

A point is a vector v: f(z) = f(z-1) + sigmoid(v_z) (f(z-s) + epsilon - f(z-1)), z = 1, ..., R, and f(z + s) = f(z) + epsilon beyond
R - s. The largest step allowed is never negative, as f(z-1) <= f(z-1-s) + epsilon. `NoisyMax.guarantee` is the greatest
f(z + s) - f(z) of the numbers in use: the descent is not trusted.
"""

import math
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee
from dpjax.accounting.rounding import at_least
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.sample import Sample
from dpjax.domains.events import Accurate
from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave
from dpjax.mechanisms import exponential
from dpjax.mechanisms.base import LARGEST, Candidates, Chooser, Number, largest, with_bottom
from dpjax.optimizers.quasi_concave import recursion
from dpjax.relaxations import descent

SMALLEST_EPSILON, LARGEST_EPSILON = 2.0**-6, 20.0
_DIGITS = 40.0  # levels of the winner are ignored once only a relative e^-40 of each probability is left
_MARGIN = 2.0**-20  # the part of epsilon that the descent leaves for roundings


@frozen
class NoisyMax(Chooser):
    """The candidate whose integer score plus noise is largest; see `learn` and `mechanism`, which make it.

    Its plain twin, computed from the full joint law of the noise, is in tests/test_learned_selection.py.

    Attributes:
      fall: f(1), ..., f(R), rising, R >= s; f(z + s) = f(z) + rate beyond R - s.
      rate: > 0.
      shift: s, how much a score and the best of the others move apart between neighbours (static).
      levels: how many values of the winner's noisy score, from the best score on, the law sums over (static).
    """

    fall: Float[Any, "r"]
    rate: Number
    shift: int = static()
    levels: int = static()

    def fit(self, data: Any) -> Candidates:
        made = super().fit(data)
        if not jnp.issubdtype(made.scores.dtype, jnp.integer):
            raise TypeError(f"scores must be integers: the noise is whole, got {made.scores.dtype}")
        return made

    def draw(self, key: Array, data: Candidates) -> Any:
        selection = exponential.draw(key, self.log_pmf(data.scores, data.where))
        return selection.index, selection.ok, {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return with_bottom(self.log_pmf(data.scores, data.where))

    def log_pmf(self, scores: Int[Array, "k"], where: Bool[Array, "k"]) -> Float[Array, "k"]:
        """ln P of every candidate; all -inf when none is valid.

        P[h] = sum over x of P[Z = x - q_h] times the integral over the tie-breaker u of prod_{j != h} P[Z_j + U_j <= x - q_j + u]. The
        product is a polynomial in u of degree k - 1, which ceil(k/2) Gauss-Legendre nodes integrate exactly. All terms are positive.
        """
        position, mass = np.polynomial.legendre.leggauss(max(1, (scores.shape[0] + 1) // 2))
        u, log_mass = (jnp.asarray(each, float) for each in ((1 + position) / 2, np.log(mass / 2)))
        lag = jnp.where(where, largest(scores, where) - scores, 0)
        z = jnp.arange(self.levels, dtype=lag.dtype)[:, None] + lag[None]
        here, after = self.falls(z), self.falls(z + 1)
        tiny = jnp.finfo(here.dtype).tiny
        atom = -jnp.expm1(here - after)  # P[Z = z | Z >= z]: no logarithm, as a flat step has none and yet a derivative
        below, up_to = -jnp.expm1(-here), -jnp.expm1(-after)  # P[Z < z], P[Z <= z]
        ahead = below[None] * (1 - u)[:, None, None] + up_to[None] * u[:, None, None]
        # Where f starts flat a factor may be 0, which has no logarithm but has a derivative: it is multiplied separately.
        none = where[None, None] & (ahead < tiny)
        factor = self._product_of_others(jnp.where(none, ahead, 0.0), none)
        log_ahead = jnp.where(where[None, None] & ~none, jnp.log(jnp.where(none, 1.0, ahead)), 0.0)
        others = jnp.sum(log_ahead, axis=2, keepdims=True) - log_ahead + log_mass[:, None, None]
        logs = others - here[None]
        top = jax.lax.stop_gradient(jnp.max(jnp.where(factor > 0, logs, -jnp.inf), axis=(0, 1)))
        # A term of factor 0 may be beyond all others: it is cut off before it overflows.
        terms = factor * atom[None] * jnp.exp(jnp.minimum(logs - top[None, None], _DIGITS))
        each = top + jnp.log(jnp.maximum(jnp.sum(terms, axis=(0, 1)), tiny))
        return exponential.normalised(jnp.where(where, each, -jnp.inf))

    @staticmethod
    def _product_of_others(factors: Float[Array, "u z k"], none: Bool[Array, "u z k"]) -> Float[Array, "u z k"]:
        """The product of the flagged factors of all other candidates; a product of two of them is 0, and so is its derivative."""
        count = jnp.sum(none, axis=2, keepdims=True, dtype=jnp.int32) - none.astype(jnp.int32)
        single = jnp.sum(factors, axis=2, keepdims=True) - factors
        return jnp.where(count == 0, 1.0, jnp.where(count == 1, single, 0.0))

    def falls(self, z: Int[Array, "*s"]) -> Float[Array, "*s"]:
        """f(z), z >= 0."""
        fall = jnp.concatenate([jnp.zeros(1), jnp.asarray(self.fall, float)])
        reach = fall.shape[0] - 1
        periods = jnp.maximum(0, -((reach - z) // self.shift))
        return fall[z - self.shift * periods] + periods.astype(float) * jnp.asarray(self.rate, float)

    def sound(self) -> Bool[Array, ""]:
        fall, rate = jnp.asarray(self.fall, float), jnp.asarray(self.rate, float)
        return super().sound() & (rate > 0) & (rate < jnp.inf) & jnp.all(jnp.isfinite(fall))

    def guarantee(self) -> Guarantee:
        """(epsilon, 0), where epsilon is the greatest f(z + s) - f(z) of the numbers in use, rounded up.

        Raises:
          ValueError: an f that falls.
        """
        fall, s, rate = np.asarray(self.fall, np.float64), self.shift, arguments.known("rate", self.rate)
        first = np.concatenate([np.zeros(s), fall])
        if np.any(np.diff(np.append(first, fall[-s] + rate)) < 0):  # beyond, all repeats itself
            raise ValueError(f"fall must rise, got {self.fall!r} at rate {self.rate!r}")
        # Differences are exact fractions: rounded ones might come out too small, and with a margin for that a private f would be refused.
        exact = list(map(Fraction, first.tolist()))
        epsilon = at_least(max(Fraction(rate), *(late - early for early, late in zip(exact, exact[s:], strict=False))))
        return Guarantee(epsilon, 0.0, ADD_OR_REMOVE_ONE if s == 1 else REPLACE_ONE)


def mechanism(fall: Any, *, epsilon: Number, shift: int = 2) -> NoisyMax:
    """The candidate whose integer score plus noise of this f is largest, refused unless it is epsilon-private.

    Args:
      fall: f(1), ..., f(R), rising, R at least the shift; if roundings alone make it too steep, it is flattened by as much. Beyond R it
        rises by epsilon in `shift` steps, less a millionth for roundings, but never falls.
      epsilon: in [2^-6, 20].
      shift: 2 for scores that move by at most 1 in any direction; 1 under ADD_OR_REMOVE_ONE if all move in one direction.

    Formal guarantees: (epsilon, 0), under REPLACE_ONE (shift 2) or ADD_OR_REMOVE_ONE (shift 1). Probabilities are accurate to a relative
    1e-4 in float32. Not promised: protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range, or an f that falls or is too steep.

    >>> steps_of_two = mechanism([0.99, 0.99], epsilon=1.0)
    >>> steps_of_two.guarantee().covers(1.0, 0.0)
    True
    >>> round(float(steps_of_two.pmf([0, 1])[0]), 3)
    0.271
    >>> mechanism([1.0, 1.25], epsilon=1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: fall must be (1.0, 0.0)-private noise, got epsilon = 1.25...
    """
    epsilon = arguments.known("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    shift = arguments.integer("shift", shift, at_least=1, at_most=2)
    values = arguments.array("fall", fall).astype(np.float64)
    if values.ndim != 1 or len(values) < shift or not np.all(np.isfinite(values) & (values >= 0)):
        raise ValueError(f"fall must be at least {shift} finite numbers >= 0, got {fall!r}")
    rate = np.float64(epsilon * (1 - _MARGIN))
    if values[-1] > np.append(0.0, values)[-shift] + rate:
        # As where [e, e, 2 e] ends: f(R - 1) + rate would be a little below f(R), so f(R + 1) = f(R), which is as private.
        values = np.append(values, values[-1])
    levels = _levels(epsilon, len(values), shift)
    made = _noisy_max(values, rate, shift, levels)
    # Multiples of epsilon / 2, say, may be too steep by roundings: half a relative 2^-52 for a number, so all of that for a difference.
    roundings = 2.0**-52 * float(values[-1])
    if epsilon < made.guarantee().epsilon <= epsilon + roundings:
        made = _noisy_max(values * (1 - 4 * roundings / epsilon), rate, shift, levels)
    if not (found := made.guarantee()).covers(epsilon, 0.0):
        raise ValueError(f"fall must be ({epsilon}, 0.0)-private noise, got epsilon = {found.epsilon}")
    return made


def _levels(epsilon: float, reach: int, shift: int) -> int:
    """The number of levels of the winner beyond which each candidate has a relative e^-40 of its probability left, in real numbers."""
    return reach + shift * math.ceil(_DIGITS / epsilon)


def _noisy_max(fall: Any, rate: Any, shift: int, levels: int) -> NoisyMax:
    return NoisyMax(fall=fall, rate=rate, shift=shift, levels=levels)


# ------------------------------------------------------------------------------------------------- how it is learned


def falls(point: Float[Array, "r"], *, epsilon: Number, shift: int = 2) -> Float[Array, "r"]:
    """(f(1), ..., f(R)) at a point v of the parametrisation: private at every v, and differentiable.

    >>> falls(jnp.full(4, 20.0), epsilon=1.0).round(1)  # steps of two
    Array([1., 1., 2., 2.], dtype=float32)
    >>> falls(jnp.array([0.0, 20.0, 20.0, 20.0]), epsilon=1.0).round(1)  # permute-and-flip
    Array([0.5, 1. , 1.5, 2. ], dtype=float32)
    """
    epsilon = jnp.asarray(epsilon, point.dtype)

    def step(last: Array, share: Array) -> tuple[Array, Array]:
        """From f(z - s), ..., f(z - 1) to those after."""
        now = last[-1] + share * (last[0] + epsilon - last[-1])
        return jnp.append(last[1:], now), now

    return jax.lax.scan(step, jnp.zeros(shift, point.dtype), jax.nn.sigmoid(point))[1]


def learn(
    scores: Any,
    costs: Any,
    *,
    epsilon: Number,
    where: Any = None,
    shift: int = 2,
    reach: int = 32,
    steps: int = 200,
    learning_rate: float = 0.1,
) -> NoisyMax:
    """The noise with which the choice costs least on average over several vectors of scores, by Adam through the exact law.

    The best point met is kept. The descent starts from a noise between permute-and-flip and steps of two.

    Args:
      scores: integers, shape (problems, k), each of sensitivity 1.
      costs: the cost of every candidate, in [0, 1], of that shape: 1 where it is wrong, or the failure probability it leads to (`lengths`).
        Costs must be public: otherwise the noise is a function of private data, and the guarantee says nothing.
      epsilon: in [2^-6, 20].
      where: which candidates exist, of that shape; all if absent.
      shift: 2 for scores that move by at most 1 in any direction; 1 under ADD_OR_REMOVE_ONE if all move in one direction.
      reach: R, up to which f is learned freely.
      steps: number of steps of the descent.
      learning_rate: its initial value; it falls to 0 as a cosine.

    Returns:
      NoisyMax, certified.

    Formal guarantees: (epsilon, 0), as `NoisyMax.guarantee` computes from the released numbers; the descent is never trusted.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> chooser = learn([[0, 3]], [[1, 0]], epsilon=1.0, reach=4)
    >>> chooser.guarantee().covers(1.0, 0.0), round(float(chooser.pmf([0, 3])[0]), 3)  # permute-and-flip: 0.112
    (True, 0.099)
    """
    epsilon = arguments.known("epsilon", epsilon, at_least=SMALLEST_EPSILON, at_most=LARGEST_EPSILON)
    shift = arguments.integer("shift", shift, at_least=1, at_most=2)
    reach = arguments.integer("reach", reach, at_least=shift, at_most=2**10)
    steps = arguments.size("steps", steps)
    learning_rate = arguments.known("learning_rate", learning_rate, above=0.0, below=math.inf)
    whole, paid = arguments.array("scores", scores), arguments.array("costs", costs).astype(np.float64)
    if whole.ndim != 2 or whole.dtype.kind not in "iu" or 0 in whole.shape:
        raise ValueError(
            f"scores must be whole numbers of shape (problems, candidates), got {whole.dtype} {whole.shape}"
        )
    if whole.min() < -LARGEST - 1 or whole.max() > LARGEST:
        raise ValueError(f"scores must be from {-LARGEST - 1} to {LARGEST}, as mechanisms take them, got {scores!r}")
    if paid.shape != whole.shape or not np.all((paid >= 0) & (paid <= 1)):
        raise ValueError(f"costs must be numbers in [0, 1] of shape {whole.shape}, got {costs!r}")
    exists = np.ones(whole.shape, bool) if where is None else arguments.array("where", where)
    if exists.shape != whole.shape or exists.dtype != bool or not np.all(exists.any(axis=1)):
        raise ValueError(f"where must be flags of shape {whole.shape}, with a candidate in each row, got {where!r}")
    inner = epsilon * (1 - _MARGIN)
    levels = _levels(epsilon, reach, shift)
    with jax.enable_x64(True):
        given = jnp.asarray(whole, jnp.int32), jnp.asarray(exists), jnp.asarray(paid)
        numbers = jnp.asarray(inner), jnp.asarray(learning_rate)
        found = np.asarray(_descend(*given, *numbers, shift=shift, levels=levels, reach=reach, steps=steps))
    return mechanism(found, epsilon=epsilon, shift=shift)


@jax.jit(static_argnames=("shift", "levels", "reach", "steps"))
def _descend(
    scores: Array,
    where: Array,
    costs: Array,
    epsilon: Array,
    learning_rate: Array,
    *,
    shift: int,
    levels: int,
    reach: int,
    steps: int,
) -> Float[Array, "r"]:
    """f at the best point met in the descent on ln of the mean cost."""

    def loss(point: Array) -> Array:
        chooser = _noisy_max(falls(point, epsilon=epsilon, shift=shift), epsilon, shift, levels)
        laws = jnp.exp(jax.lax.map(lambda one: chooser.log_pmf(*one), (scores, where), batch_size=16))
        return jnp.log(jnp.mean(jnp.sum(laws * costs, axis=1)))

    best = descent.best_met(loss, jnp.full(reach, 2.0, epsilon.dtype), learning_rate, steps)
    return falls(best, epsilon=epsilon, shift=shift)


# -------------------------------------------------------------------------------------- the inner choice of RecConcave


class Lengths(NamedTuple):
    """What the inner choice of RecConcave with two levels is made from, for one sample or several.

    Attributes:
      scores: q(j), integers. where: which j exist. failures: P[failure | j] of the rest of the algorithm.
    """

    scores: Int[Array, "*s k"]
    where: Bool[Array, "*s k"]
    failures: Float[Array, "*s k"]


def lengths(learner: ThresholdRecConcave, sample: Sample, *, error: Any) -> Lengths:
    """The inner choice of a learner of thresholds with two levels on a sample, pure JAX; failure is a sample error above `error`.

    P[failure] = sum_j P[j] failures[j], whatever law the choice has; `where` it is that of RecConcave with `Split(last=...)`.

    Raises:
      TypeError, ValueError: not such a learner, not two levels, or an error that is negative or not a number.
    """
    arguments.instance("learner", learner, ThresholdRecConcave)
    if learner.levels != 2:
        raise ValueError(f"learner must run two levels, the second of which is the inner choice, got {learner.levels}")
    error = arguments.real("error", error, at_least=0.0)
    pieces = learner.prepare(learner.fit(sample))
    goal = learner.event(pieces, Accurate(error=jnp.asarray(error, float)))
    problem, budget = learner.problem(pieces), learner.budget()
    quality = recursion.length_quality(problem, whole=True)
    index = jnp.arange(quality.shape[0], dtype=jnp.int32)
    where = index <= pieces.exponent
    given = recursion.law_given_lengths(problem, budget, goal)
    return Lengths(jnp.where(where, quality, 0.0).astype(jnp.int32), where, jnp.exp(given[:, 1]))
