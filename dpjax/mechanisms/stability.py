"""A_dist (BNS §2.5.3, after Smith and Thakurta): the best candidate, if it beats the next by a noisy margin.

q has sensitivity 1, gap is best minus second best, and the best is kept iff gap + Lap(scale) >= threshold:

| calibration | scale | threshold | truly private |
|---|---|---|---|
| printed | 1/eps | (1/eps) ln(1/delta) | (2 eps, exp(2 eps) delta / 2), replace-one; claimed (eps, delta) |
| proved | 2/eps | 2 + (2/eps) ln(1/(2 delta)) | (eps, delta) for any q of sensitivity 1, delta <= 1/2 |
| proved_counts | 1/eps | 1 + (1/eps) ln(1/(2 delta)) | (eps, delta), counts under add/remove, delta <= 1/2 |

Why: between neighbours the gap moves by at most s (2 in general: one score up, the other down; 1 for counts
under add/remove). If both runs have the same best candidate, Lap(s/eps) makes the two coins exp(eps)-close.
If not, the two gaps add up to at most s, so the best is kept with probability at most P[Lap(s/eps) >=
threshold - s] = delta.

The paper prints "log" in its threshold, which is ln here. Read as log2, as in its Theorem 3.18, the printed test is
(2 eps, exp(2 eps) delta^1.44 / 2)-private, and no more (eps, delta)-private than with ln.
"""

import math
from typing import Any

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax import bounds
from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound
from dpjax.mechanisms.base import Candidates, Chooser, Number, Selection, largest, reals, released, scored
from dpjax.mechanisms.laplace import log_tails

CALIBRATIONS = ("printed", "proved", "proved_counts")


def _checked(calibration: str, epsilon: Number, delta: Number) -> tuple[str, Number, Number]:
    """The three parameters, refused when out of range."""
    arguments.choice("calibration", calibration, CALIBRATIONS)
    delta = arguments.delta(delta)
    if calibration != "printed":
        delta = arguments.real("delta", delta, at_most=0.5)
    return calibration, arguments.epsilon(epsilon), delta


def noise(calibration: str, epsilon: Number, delta: Number) -> tuple[Array, Array]:
    """(scale, threshold) of the test gap + Lap(scale) >= threshold, by `bounds.stability_noise`; differentiable in epsilon and delta.

    `dpjax.bounds.stability_noise` computes the same in float64 on the host, for sample sizes.

    Raises:
      ValueError: unknown calibration, epsilon not finite and positive, delta outside (0, 1), or above 1/2
      for a proved calibration.
    """
    calibration, epsilon, delta = _checked(calibration, epsilon, delta)
    given = jnp.asarray(epsilon, float), jnp.asarray(delta, float)
    return bounds.stability_noise(*given, calibration=calibration, xp=jnp)


def log_keep(
    gap: Real[ArrayLike, "*s"], *, epsilon: Number, delta: Number, calibration: str = "proved"
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[kept], ln P[not kept]) given the gap, each accurate however small; (0, -inf) at gap +inf."""
    scale, threshold = noise(calibration, epsilon, delta)
    gap = reals("gap", gap)
    alone = gap == jnp.inf
    # A harmless gap replaces an infinite one: otherwise gradients would be inf * 0.
    log_q, log_p = log_tails((threshold - jnp.where(alone, 0.0, gap)) / scale)
    return jnp.where(alone, 0.0, log_p), jnp.where(alone, -jnp.inf, log_q)


def leader(
    scores: Real[ArrayLike, "k"], where: Bool[ArrayLike, "k"] | None = None
) -> tuple[Selection, Float[Array, ""]]:
    """The best valid candidate (the lowest index on ties) and its gap to the next: +inf when it is alone.

    Integer scores are subtracted exactly; they must lie from -2^30 to 2^30 - 1.
    """
    scores, mask = scored(scores, where)
    best = largest(scores, mask)
    index = jnp.argmax(mask & (scores == best)).astype(jnp.int32)
    others = mask & (jnp.arange(scores.shape[0], dtype=jnp.int32) != index)
    second = jnp.where(jnp.any(others), largest(scores, others), best)
    gap = jnp.where(jnp.any(others), (best - second).astype(float), jnp.inf)
    return Selection(index, jnp.any(mask)), gap


def log_pmf(
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    delta: Number,
    calibration: str = "proved",
    where: Bool[ArrayLike, "k"] | None = None,
) -> Float[Array, "k+1"]:
    """ln P of every candidate, then of ⊥ (last)."""
    best, gap = leader(scores, where)
    log_p, log_q = log_keep(gap, epsilon=epsilon, delta=delta, calibration=calibration)
    chosen = (jnp.arange(jnp.shape(scores)[0], dtype=jnp.int32) == best.index) & best.ok
    bottom = jnp.where(best.ok, log_q, 0.0)
    return jnp.append(jnp.where(chosen, log_p, -jnp.inf), bottom)


def stability(
    key: Array,
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    delta: Number,
    calibration: str = "proved",
    where: Bool[ArrayLike, "k"] | None = None,
) -> Selection:
    """The best candidate if it passes the noisy stability test, else ⊥ (BNS Proposition 2.27).

    Args:
      key: a PRNG key.
      scores: quality of each candidate, sensitivity 1.
      epsilon: the privacy parameter, > 0.
      delta: in (0, 1), at most 1/2 for the proved calibrations.
      calibration: "proved", "proved_counts" or "printed".
      where: which candidates exist, independent of the data. A single candidate is always released: it is
        a constant.

    Returns:
      Selection(index, ok); ok is False for ⊥, and when no candidate is valid.

    Formal guarantees: "proved" (epsilon, delta) under the relation for which scores have sensitivity 1;
    "proved_counts" (epsilon, delta) under ADD_OR_REMOVE_ONE for scores that all move in one direction by at
    most 1; "printed" (2 epsilon, exp(2 epsilon) delta / 2) under REPLACE_ONE. Probabilities down to 5e-20
    are sampled correctly. Not promised: protection from floating-point side channels, or a cryptographic
    generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: unknown calibration, epsilon not finite and positive, delta
        out of range.

    >>> import jax, jax.numpy as jnp
    >>> out = stability(jax.random.key(0), jnp.array([1, 200, 3]), epsilon=1.0, delta=1e-9)
    >>> int(out.index), bool(out.ok)
    (1, True)
    """
    best, gap = leader(scores, where)
    log_p, log_q = log_keep(gap, epsilon=epsilon, delta=delta, calibration=calibration)
    return released(best.index, best.ok & (gap >= 0) & random.bernoulli(arguments.key(key), log_p, log_q))


@frozen
class Stability(Chooser):
    """A_dist; see `stability`, and `mechanism`, which makes it. Its plain twin is `dpjax.verify.plain.stability`."""

    epsilon: Number
    delta: Number
    calibration: str = static()

    def _given(self) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "calibration": self.calibration}

    def sound(self) -> Bool[Array, ""]:
        most = 1.0 if self.calibration == "printed" else 0.5
        delta = jnp.asarray(self.delta, float)
        return sound(self) & (delta > 0) & (delta <= most)

    def draw(self, key: Array, data: Candidates) -> Any:
        return *stability(key, data.scores, where=data.where, **self._given()), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return log_pmf(data.scores, where=data.where, **self._given())

    def guarantee(self) -> Guarantee:
        """The guarantee that is proved for these constants; "printed" keeps less than it claims."""
        claimed = self.claimed_guarantee()
        if self.calibration == "proved":
            return claimed
        epsilon, delta = claimed.epsilon, claimed.delta
        if self.calibration == "proved_counts":
            return Guarantee(epsilon, delta, "ADD_OR_REMOVE_ONE")
        # exp overflows past 709; the product is below 1 only if its logarithm is negative.
        log_delta = 2 * epsilon + math.log(delta / 2)
        doubled = 1.0 if log_delta >= 0 else min(1.0, math.exp(log_delta) * (1 + 1e-12))
        return Guarantee(2 * epsilon, doubled, "REPLACE_ONE")

    def claimed_guarantee(self) -> Guarantee:
        """The guarantee that the paper claims under replace-one (BNS Proposition 2.27 (i)); false for "printed"."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return Guarantee(epsilon, delta, "REPLACE_ONE")


def mechanism(*, epsilon: Number, delta: Number, calibration: str = "proved") -> Stability:
    """A_dist, (epsilon, delta)-private for a proved calibration.

    Args:
      epsilon: > 0, finite.
      delta: in (0, 1), at most 1/2 for the proved calibrations.
      calibration: "proved", "proved_counts" or "printed"; see the module.

    Raises:
      TypeError, ValueError: unknown calibration, epsilon not finite and positive, delta out of range.

    >>> choose = mechanism(epsilon=1.0, delta=1e-6)
    >>> choose.guarantee().delta
    1e-06
    >>> float(choose.pmf([1, 200, 3])[1])
    1.0
    """
    calibration, epsilon, delta = _checked(calibration, epsilon, delta)
    return Stability(epsilon=epsilon, delta=delta, calibration=calibration)
