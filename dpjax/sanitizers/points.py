"""How often every point occurs, to within alpha n: sanitizers for POINT_d, over X_d = {0, ..., 2^d - 1}, n public.

| factory | algorithm | private (REPLACE_ONE) | n for error alpha with probability 1 - beta |
|---|---|---|---|
| `release` | MULTI Algorithm 2 | (epsilon, delta) if exp(-epsilon n alpha/8 + epsilon/2) <= delta | `release_sample_size` |
| `histogram` | the same with the best thresholds | (epsilon, delta) for every n | `histogram_sample_size` |
| `san_points` | SanPoints (BNS Figure 9) | (epsilon, delta) if n >= `san_points_private_size` | `san_points_sample_size` |
| `k_points` | sets of k points (BNS Figure 10) | SanPoints at alpha/k | the same at alpha/k |

**Algorithm 2.** A point of count c <= low is never released. Otherwise c + Lap(2/epsilon) is, if it is > high. As printed low = alpha n/4
and high = alpha n/2; every other answer is 0.

Privacy. Replacing an example lowers one count and raises another one by 1; the answers of all other points keep their law. Let
p = exp(-(epsilon/2) (high - low - 1)) / 2 >= P[released] of a point whose neighbour is not above low, since its count is at most low + 1
and high >= low + 1. The answers of the two points are independent, and each of them is one of three: (i) 0 in both datasets; (ii) above
low in both: Laplace noise of scale 2/epsilon on values 1 apart, epsilon/2-close; (iii) above low in one only: released there with
probability at most p, and 0 in the other. So both together are (epsilon, 2 p): the paper's claim, delta = 2 p being its condition. In
truth they are (epsilon, p), which is why `histogram` sets high - low = 1 + (2/epsilon) ln(1/(2 delta)):
- (ii) twice: (epsilon, 0). (iii) twice, in opposite directions: S releases only x and S' only x', each with probability at most p, and all
  else is the same outcome (0, 0): delta is p at every epsilon.
- (iii) and (ii), answers (A, B) against (0, B'): events with A > high have probability at most p in S and 0 in S'; the others are
  P[A = 0] B <= exp(epsilon/2) B'. The other way, with u = P_S[B in R]: min(1, exp(epsilon/2) u) - exp(epsilon) (1 - p) u is largest at
  u = exp(-epsilon/2), where it is 1 - exp(epsilon/2) (1 - p) <= p.
Thresholds are set by the n given to the factory: no count of the actual dataset enters, so the guarantee does not rest on it.

**SanPoints.** R = ceil(2/alpha) rounds; each chooses a point of those left by the Choosing Mechanism at (e, d) and alpha/2, and releases
its count + Lap(1/e): e = epsilon / sqrt(16 R ln(5/delta)), d = 2 delta/(5R). By advanced composition (BNS Theorem 2.5) of 2R mechanisms
with slack delta/5: sqrt(4R ln(5/delta)) e + 4R e^2 = epsilon/2 + epsilon^2 / (4 ln(5/delta)) <= epsilon for
epsilon <= 2 ln(5/delta), and R d + delta/5 = 3 delta/5. (That theorem is stated for e <= 1. Its proof holds for every e: the mean privacy
loss of an e-private mechanism is at most e (exp(e) - 1) / (exp(e) + 1) <= e^2 / 2, a quarter of what it allows.)
The paper pays for R counts. A replaced example moves two, so that all of them cost 2e, and the whole is ((R + 2) e, R d) too.

    >>> import jax
    >>> from dpjax import Points
    >>> from dpjax.domains import wide
    >>> from dpjax.sanitizers import points
    >>> data = Points.create(wide.from_ints([7] * 700 + [2**50] * 295 + [1, 2, 3, 4, 5], 64))
    >>> mechanism = points.histogram(bits=64, n=1000, epsilon=1.0, delta=1e-6)
    >>> released = mechanism(jax.random.key(0), data).hypothesis
    >>> [round(float(a), 1) for a in released.answer(wide.from_ints([7, 2**50, 1], 64))]
    [0.7, 0.3, 0.0]

Below the n that privacy needs a factory raises ValueError, unless `allow_unproved=True`: then `guarantee()` is None. Under tracing of
n, epsilon or delta nothing can be compared, and it is None as well.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.domains import groups, wide
from dpjax.mechanisms import choosing as choosing_mechanism
from dpjax.mechanisms import laplace
from dpjax.mechanisms.choosing import choosing

_MORE = 1 + 1e-12  # sample sizes are rounded up, past what floating point may have lost


# ----------------------------------------------------------------------------------------------------- what is released


@frozen
class Release:
    """Estimated frequencies of points; those not named have frequency 0.

    Attributes:
      points: increasing, the named ones first (the others are all ones and say nothing).
      answers: estimated share of the dataset, 0 for slots that are not used.
      where: which slots are used.
    """

    points: UInt32[Array, "slots limbs"]
    answers: Float[Array, "slots"]
    where: Bool[Array, "slots"]

    def answer(self, x: UInt32[Array, "q limbs"]) -> Float[Array, "q"]:
        """The estimated frequency of each x."""
        at = jnp.minimum(jax.vmap(lambda one: wide.search(self.points, one))(x), self.points.shape[0] - 1)
        return jnp.where(wide.equal(self.points[at], x) & self.where[at], self.answers[at], 0.0)

    def support(self) -> tuple[UInt32[Array, "slots limbs"], Bool[Array, "slots"]]:
        """(points, where): what `multi.generic` asks of a sanitized database."""
        return self.points, self.where

    def total(self, x: UInt32[Array, "k limbs"]) -> Float[Array, ""]:
        """The estimated frequency of a set of distinct points (BNS Figure 10)."""
        return jnp.sum(self.answer(x))


def _released(points: Array, answers: Array, keep: Array) -> Release:
    """The kept ones of increasing points, moved to the front: nothing of the others is left."""
    slots = keep.shape[0]
    place = jnp.where(keep, jnp.cumsum(keep, dtype=jnp.int32) - 1, slots)
    return Release(
        points=jnp.full_like(points, np.uint32(0xFFFFFFFF)).at[place].set(points, mode="drop"),
        answers=jnp.zeros_like(answers).at[place].set(answers, mode="drop"),
        where=jnp.arange(slots, dtype=jnp.int32) < jnp.sum(keep, dtype=jnp.int32),
    )


class _Sanitizer:
    """Checked, padded and compiled entry points around `_release`."""

    bits: Any
    limbs: int

    def _release(self, key: Array, found: groups.Groups) -> Release:
        """One run on counted points."""
        raise NotImplementedError

    def __call__(self, key: Array, data: Any) -> Outcome:
        """One release.

        Args:
          key: PRNG key.
          data: `Points` (or a `Sample`, whose labels are ignored); its size should be the n of the factory, which is public.

        Returns:
          An `Outcome` with a `Release`.

        Raises:
          TypeError, ValueError: data that do not fit the domain (as far as they are not traced).
        """
        return _run(self, key, fitted(Points.of(data), Points, bits=self.bits, limbs=(self.limbs,), name="points"))


@jax.jit
def _run(sanitizer: _Sanitizer, key: Array, points: Points) -> Outcome:
    valid = jnp.arange(points.rows, dtype=jnp.int32) < points.n_valid
    fits = wide.all_below(points.x, valid, sanitizer.bits)
    released = sanitizer._release(key, groups.group(points.x, valid))
    status = jnp.where(fits, Status.OK, Status.OUTSIDE_DOMAIN).astype(jnp.int32)
    return Outcome(hypothesis=released, status=status, info={})


# --------------------------------------------------------------------------------------------------- MULTI Algorithm 2


@frozen
class NoisyCounts(_Sanitizer):
    """Algorithm 2 with any two thresholds, in counts; build it by `release` or `histogram`.

    `log_released` and `log_density` are its exact law: given the counts, the points' answers are independent, each an atom at 0 and,
    above high / n, a Laplace density.
    """

    bits: Int[Array, ""]
    n: Any
    epsilon: Any
    delta: Any
    low: Any
    high: Any
    limbs: int = static()
    proved: bool = static()

    def noisy(self, key: Array, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Bool[Array, "m"]]:
        """(noisy counts, which are released)."""
        values = laplace.laplace(key, counts, epsilon=self.epsilon, sensitivity=2.0)
        eligible = counts.astype(float) > jnp.asarray(self.low, float)
        return values, eligible & (values > jnp.asarray(self.high, float))

    def log_released(self, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[released], ln P[answered 0]) for points of these counts."""
        counts = counts.astype(float)
        scale = 2 / jnp.asarray(self.epsilon, float)
        log_q, log_p = laplace.log_tails((jnp.asarray(self.high, float) - counts) / scale)
        eligible = counts > jnp.asarray(self.low, float)
        return jnp.where(eligible, log_p, -jnp.inf), jnp.where(eligible, log_q, 0.0)

    def log_density(self, counts: Int[Array, "m"], answers: Float[Array, "m"]) -> Float[Array, "m"]:
        """ln of the density of a released answer (a share of n); -inf at and below high / n."""
        n, counts = jnp.asarray(self.n, float), counts.astype(float)
        density = laplace.log_pdf(answers * n, counts, epsilon=self.epsilon, sensitivity=2.0) + jnp.log(n)
        possible = (counts > jnp.asarray(self.low, float)) & (answers * n > jnp.asarray(self.high, float))
        return jnp.where(possible, density, -jnp.inf)

    def _release(self, key: Array, found: groups.Groups) -> Release:
        values, keep = self.noisy(key, found.counts)
        return _released(found.rows, values / jnp.asarray(self.n, float), keep & found.valid)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """An n for which, with these thresholds, every answer is within alpha but for beta; see `histogram_sample_size`."""
        return _accurate_size(float(self.epsilon), float(self.high), alpha, beta)

    def guarantee(self) -> Guarantee | None:
        """(epsilon, delta) under REPLACE_ONE, as proved in the module; None if n is too small for that."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE) if self.proved else None


def release(*, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False) -> NoisyCounts:
    """MULTI Algorithm 2 as printed: counts <= alpha n / 4 are never released, noisy ones <= alpha n / 2 neither.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: d.
      n: number of examples, public.
      epsilon: > 0. delta: in (0, 1).
      alpha: error, in (0, 1); met with probability 1 - beta for n >= `release_sample_size`.
      allow_unproved: simulate below the n that privacy needs; `guarantee()` is then None.

    Raises:
      TypeError, ValueError: an argument out of range, or n < `release_private_size`.
    """
    n, given = _size(n), _budget(epsilon, delta, alpha)
    proved = _proved(n, release_private_size, "MULTI Proposition 30", allow_unproved, **given)
    alpha = given["alpha"]
    return _noisy_counts(bits, n, epsilon, delta, alpha * n / 4, alpha * n / 2, proved=proved)


def histogram(*, bits: int, n: Any, epsilon: Any, delta: Any, low: float = 0.0) -> NoisyCounts:
    """Algorithm 2 with low = 0 and high = 1 + (2/epsilon) ln(1/(2 delta)): private for every n.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE, tight (two counts of 1 that trade places). Not promised: floating-point side
    channels; a cryptographic generator.

    Args:
      bits: d.
      n: number of examples, public (only a unit: answers are shares of it).
      epsilon: > 0. delta: in (0, 1/2].
      low: counts up to here are never released; the same is added to high.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    low = arguments.real("low", low, at_least=0.0, below=math.inf)
    return _noisy_counts(bits, _size(n), epsilon, delta, low, low + margin(epsilon, delta), proved=True)


def margin(epsilon: Any, delta: Any) -> Any:
    """1 + (2/epsilon) ln(1/(2 delta)): how far above `low` a noisy count must be. delta <= 1/2."""
    epsilon, delta = arguments.epsilon(epsilon), arguments.real("delta", arguments.delta(delta), at_most=0.5)
    log = jnp.log if arguments.is_traced(delta) else np.log
    return 1 - 2 / epsilon * log(2 * delta)


def _noisy_counts(bits: int, n: Any, epsilon: Any, delta: Any, low: Any, high: Any, *, proved: bool) -> NoisyCounts:
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    return NoisyCounts(
        bits=jnp.int32(bits),
        n=n,
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta),
        low=low,
        high=high,
        limbs=wide.limbs_for(bits),
        proved=proved,
    )


def release_private_size(*, epsilon: Any, delta: Any, alpha: Any) -> int:
    """The least n with exp(-epsilon n alpha/8 + epsilon/2) <= delta.

    >>> release_private_size(epsilon=1.0, delta=1e-6, alpha=0.1)
    1146
    """
    epsilon, delta, alpha = arguments.epsilon(epsilon), arguments.delta(delta), arguments.fraction("alpha", alpha)
    return math.ceil(8 / (alpha * epsilon) * (epsilon / 2 - math.log(delta)) * _MORE)


def release_sample_size(*, epsilon: Any, delta: Any, alpha: Any, beta: Any) -> int:
    """The n of Proposition 30: private, and every answer within alpha except with probability beta.

    The noise of each of the at most 4/alpha points above alpha/4 must stay below alpha/2: exp(-epsilon n alpha/4) <= alpha beta/4.

    >>> release_sample_size(epsilon=1.0, delta=1e-6, alpha=0.1, beta=1e-9)
    1146
    """
    beta = arguments.fraction("beta", beta)
    accurate = -4 / (arguments.fraction("alpha", alpha) * arguments.epsilon(epsilon)) * math.log(alpha * beta / 4)
    return max(math.ceil(accurate * _MORE), release_private_size(epsilon=epsilon, delta=delta, alpha=alpha))


def histogram_sample_size(*, epsilon: Any, delta: Any, alpha: Any, beta: Any) -> int:
    """An n for which every answer of `histogram` is within alpha except with probability beta.

    A point is answered wrongly only if (a) its count is above alpha n (at most 1/alpha points) and its noise is below high - alpha n, or
    (b) its noise is above alpha n (at most n points): exp(-(epsilon/2) (alpha n - high)) / (2 alpha) + n exp(-(epsilon/2) alpha n) / 2.

    >>> histogram_sample_size(epsilon=1.0, delta=1e-6, alpha=0.1, beta=0.1)
    351
    """
    return _accurate_size(float(arguments.epsilon(epsilon)), margin(epsilon, delta), alpha, beta)


def _accurate_size(epsilon: float, high: float, alpha: Any, beta: Any) -> int:
    """The same for any threshold `high` and `low` below it."""
    alpha, beta = float(arguments.fraction("alpha", alpha)), float(arguments.fraction("beta", beta))

    def failure(n: int) -> float:
        return (
            math.exp(min(0.0, -epsilon / 2 * (alpha * n - high))) / alpha + n * math.exp(-epsilon / 2 * alpha * n)
        ) / 2

    # Both terms decrease from 2 / (alpha epsilon) on.
    return least(lambda n: failure(n) <= beta, math.ceil(max(high, 2 / epsilon) / alpha))


def least(holds: Any, start: int) -> int:
    """The least n >= start with the property, which larger n keep."""
    high = max(start, 1)
    while not holds(high):
        high *= 2
    low = max(start, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _proved(n: Any, size: Any, what: str, allow_unproved: bool, **given: Any) -> bool:
    """Whether n >= size(**given); ValueError if it is not and nobody allowed that. False under tracing."""
    if any(arguments.is_traced(value) for value in (n, *given.values())):
        return False
    needed = size(**given)
    if n < needed and not allow_unproved:
        raise ValueError(
            f"n must be at least {needed} for ({given['epsilon']}, {given['delta']})-privacy at alpha = {given['alpha']} ({what}),"
            f" got {n:.0f}; allow_unproved=True simulates without a guarantee"
        )
    return bool(n >= needed)


def _budget(epsilon: Any, delta: Any, alpha: Any) -> dict[str, Any]:
    """The three parameters as leaves, checked."""
    return {
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "alpha": arguments.fraction("alpha", alpha),
    }


def _size(n: Any) -> Any:
    """n as a parameter leaf."""
    return jnp.asarray(n, float) if arguments.is_traced(n) else np.float64(arguments.integer("n", n, at_least=1))


# ------------------------------------------------------------------------------------------------------ BNS Figure 9


@frozen
class SanPoints(_Sanitizer):
    """R rounds of the Choosing Mechanism, each followed by a noisy count; build it by `san_points` or `k_points`.

    `log_released` and `log_density` are its exact law: which points are released, and given that, their independent answers.
    """

    bits: Int[Array, ""]
    n: Any
    epsilon: Any
    delta: Any
    alpha: Any
    limbs: int = static()
    rounds: int = static()
    proved: bool = static()

    def round_epsilon(self) -> Float[Array, ""]:
        """e, of one choice and of one count."""
        return _round_budget(jnp.asarray(self.epsilon, float), jnp.asarray(self.delta, float), self.rounds, jnp)[0]

    def log_choice(self, counts: Int[Array, "m"], left: Bool[Array, "m"]) -> Float[Array, "m+1"]:
        """ln P of each point in one round, then of ⊥, when those `left` have not been chosen yet."""
        return choosing_mechanism.log_pmf(
            counts, n=self.n, epsilon=self.round_epsilon(), alpha=jnp.asarray(self.alpha / 2, float), where=left
        )

    def log_released(self, counts: Int[Array, "m"]) -> Float[Array, "sets"]:
        """ln P[exactly these points are released] for all 2^m sets, m <= 12; point i is in number s if bit i of s is 1."""
        m = arguments.integer("the number of counts", counts.shape[0], at_least=1, at_most=12)
        sets, points = np.arange(1 << m), np.arange(m)
        inside = (sets[:, None] >> points) % 2 == 1
        before = np.where(inside, sets[:, None] - (1 << points), 0)  # the set without point i
        choice = jax.vmap(lambda chosen: self.log_choice(counts, ~chosen))(jnp.asarray(inside))
        joins, stays = jnp.where(inside, choice[before, points], -jnp.inf), choice[:, m]

        def step(log_p: Array, _: None) -> tuple[Array, None]:
            ways = jnp.concatenate([log_p[before] + joins, (log_p + stays)[:, None]], axis=1)
            return jax.nn.logsumexp(ways, axis=1), None

        return jax.lax.scan(step, jnp.where(sets == 0, 0.0, -jnp.inf), length=self.rounds)[0]

    def log_density(self, counts: Int[Array, "m"], answers: Float[Array, "m"]) -> Float[Array, "m"]:
        """ln of the density of the answer of a released point (a share of n)."""
        n = jnp.asarray(self.n, float)
        return laplace.log_pdf(answers * n, counts.astype(float), epsilon=self.round_epsilon()) + jnp.log(n)

    def _release(self, key: Array, found: groups.Groups) -> Release:
        key_choices, key_noise = jax.random.split(key)
        counts, epsilon = found.counts, self.round_epsilon()

        def choose(left: Array, number: Array) -> tuple[Array, Array]:
            key, alpha = jax.random.fold_in(key_choices, number), jnp.asarray(self.alpha / 2, float)
            chosen = choosing(key, counts, n=self.n, epsilon=epsilon, alpha=alpha, where=left)
            index = jnp.where(chosen.ok, chosen.index, counts.shape[0])
            return left.at[index].set(False, mode="drop"), index

        _, chosen = jax.lax.scan(choose, found.valid, jnp.arange(self.rounds, dtype=jnp.int32))
        chosen = jnp.sort(chosen)  # as their points are
        noisy = laplace.laplace(key_noise, counts.at[chosen].get(mode="fill", fill_value=0), epsilon=epsilon)
        points = found.rows.at[chosen].get(mode="fill", fill_value=np.uint32(0xFFFFFFFF))
        return _released(points, noisy / jnp.asarray(self.n, float), chosen < counts.shape[0])

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Theorem 4.6 with its constants.

        Raises:
          ValueError: an alpha below this mechanism's own.
        """
        if alpha < float(self.alpha):
            raise ValueError(f"alpha must be >= {float(self.alpha)}, which this sanitizer was built for, got {alpha}")
        given = {"epsilon": float(self.epsilon), "delta": float(self.delta), "alpha": float(self.alpha)}
        return san_points_sample_size(**given, beta=beta)

    def guarantee(self) -> Guarantee | None:
        """(epsilon, delta) under REPLACE_ONE, by advanced composition; None if n is too small for the Choosing Mechanism."""
        return Guarantee(float(self.epsilon), float(self.delta), REPLACE_ONE) if self.proved else None


def san_points(*, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False) -> SanPoints:
    """SanPoints (BNS Figure 9): ceil(2/alpha) rounds; see the module.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: floating-point side channels; a cryptographic generator.

    Args:
      bits: d.
      n: number of examples, public.
      epsilon: in (0, 2 ln(5/delta)], which the composition needs. delta: in (0, 1).
      alpha: error, in (0, 1); met with probability 1 - beta for n >= `san_points_sample_size`.
      allow_unproved: simulate below the n that privacy needs; `guarantee()` is then None.

    Raises:
      TypeError, ValueError: an argument out of range, or n < `san_points_private_size`.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    n, given = _size(n), _budget(epsilon, delta, alpha)
    proved = _proved(n, san_points_private_size, "BNS Lemma 4.4 in every round", allow_unproved, **given)
    limbs, rounds = wide.limbs_for(bits), _rounds(given["alpha"])
    return SanPoints(bits=jnp.int32(bits), n=n, limbs=limbs, rounds=rounds, proved=proved, **given)


def k_points(
    *, k: int, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False
) -> SanPoints:
    """BNS Figure 10: SanPoints at alpha/k, so that `Release.total` of any k distinct points is within alpha.

    Args:
      k: points in a set.
      bits, n, epsilon, delta, alpha, allow_unproved: as for `san_points`.
    """
    k = arguments.integer("k", k, at_least=1)
    alpha = arguments.fraction("alpha", alpha) / k
    return san_points(bits=bits, n=n, epsilon=epsilon, delta=delta, alpha=alpha, allow_unproved=allow_unproved)


def san_points_private_size(*, epsilon: Any, delta: Any, alpha: Any) -> int:
    """The least n for which every round's Choosing Mechanism is proved private.

    >>> san_points_private_size(epsilon=1.0, delta=1e-6, alpha=0.5)
    32428
    """
    e, d = _checked_budget(epsilon, delta, alpha)
    return choosing_mechanism.private_sample_size(epsilon=e, delta=d, alpha=alpha / 2)


def san_points_sample_size(*, epsilon: Any, delta: Any, alpha: Any, beta: Any) -> int:
    """An n for which SanPoints is private and within alpha except with probability beta (Theorem 4.6 with its constants).

    Every round meets Lemma 4.5 with beta/(2R), and none of the R noises exceeds alpha n: R exp(-e alpha n) <= beta/2.

    >>> san_points_sample_size(epsilon=1.0, delta=1e-6, alpha=0.5, beta=0.1)
    56519
    """
    e, d = _checked_budget(epsilon, delta, alpha)
    share = arguments.fraction("beta", beta) / (2 * _rounds(alpha))
    chosen = choosing_mechanism.sample_size(epsilon=e, delta=d, alpha=alpha / 2, beta=share)
    return max(chosen, math.ceil(-math.log(share) / (e * alpha)))


def _rounds(alpha: Any) -> int:
    """R = ceil(2/alpha)."""
    return math.ceil(2 / arguments.fraction("alpha", alpha) * (1 - 1e-12))


def _round_budget(epsilon: Any, delta: Any, rounds: int, xp: Any) -> tuple[Any, Any]:
    """(e, d) of a round."""
    return epsilon / xp.sqrt(16 * rounds * xp.log(5 / delta)), 2 * delta / (5 * rounds)


def _checked_budget(epsilon: Any, delta: Any, alpha: Any) -> tuple[float, float]:
    """`_round_budget`, refused where the composition does not give (epsilon, delta)."""
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    most = 2 * math.log(5 / delta)
    if epsilon > most:
        raise ValueError(
            f"epsilon must be <= 2 ln(5/delta) = {most:.4g} for the composition of SanPoints, got {epsilon}"
        )
    e, d = _round_budget(epsilon, delta, _rounds(alpha), np)
    return float(e), float(d)
