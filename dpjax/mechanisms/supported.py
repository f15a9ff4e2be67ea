"""The exponential mechanism over the candidates that the data support, however many others there are; bottom if there may be none.

Scores are counts. One record more raises each score by 0 or 1, and at most k of them (the *growth*) from 0: it is with the data that
candidates come into view. That is the setting of the Choosing Mechanism (BNS Figure 8), where a record raises at most k scores at all.

1. Candidates are the solutions of score >= 1; let Z be the sum of e^(epsilon q) over them, with delta' = min(delta, 1/8, epsilon/4),

       rho = epsilon/(epsilon + 4 delta'),    edge = rho/(1 + rho) k e^epsilon / delta'.

   Return bottom with probability 1 - (rho/(1 + rho)) Z/edge for Z <= edge, and (1/(1 + rho)) (edge/Z)^rho beyond.
2. Else choose a candidate with probability e^(epsilon q)/Z.

**Private**: (epsilon, delta) under ADD_OR_REMOVE_ONE, for data of any size. Let S' be S and one record more. A candidate has probability
h(Z) e^(epsilon q), where h(Z) is m = delta'/(k e^epsilon) up to the edge and falls beyond, no faster than 1/Z; bottom's falls with Z,
no faster than Z^-rho. In S' let V be what the candidates that S does not support add to Z': at most k e^epsilon, as each
of them has score 1. So m V <= delta', and Z <= Z' <= e^epsilon Z + V.

- *From S' to S.* h(Z') <= h(Z), so common candidates are at most e^epsilon times as likely in S', and bottom is less likely. The others
  have probability h(Z') V <= m V <= delta'.
- *From S to S', candidates.* With b = V/Z', h(Z) <= h(Z') Z'/Z <= h(Z') e^epsilon/(1 - b): a set C of candidates has
  (1 - b) P[C] <= e^epsilon P'[C], and b P[C] <= h(Z) Z V/Z' <= m V <= delta'.
- *From S to S', bottom.* Its probability is at most e^epsilon times that in S'. Let Z' be the largest, e^epsilon Z + V, as bottom's
  probability falls. Let t = rho/(1 + rho): since rho >= 1/2, delta'/t <= 3/8. If Z' >= edge, then m Z' >= t, so V <= Z' delta'/t and
  Z' <= e^epsilon Z/(1 - delta'/t) <= Z e^(epsilon + 4 delta'): the probabilities differ by at most a factor of (Z'/Z)^rho <= e^epsilon. If
  Z' < edge, both are linear in Z for given V: the inequality holds at the largest Z, which was the first case, and at Z = 0, where it
  says 1 <= e^epsilon (1 - m V), as delta' <= 1/8 and delta' <= epsilon/4.

**Scores that move both ways.** Let scores, whole or not, differ by at most 1 between neighbours, each in its own direction, as sums over
records do when one is replaced. Candidates are those of score above 0, and k is how many come into view or leave it. With weights
e^(epsilon q/2),

    rho = epsilon/(epsilon/2 + 4 delta'),    edge = rho/(1 + rho) k e^(epsilon/2) / delta',    delta' <= epsilon/8,

the same is (epsilon, delta)-private. The parts V and V' of the candidates that only one of the two runs has are at most k e^(epsilon/2)
together, since each such candidate has a score of 1 at most: m (V + V') <= delta'. The other parts of Z and Z' differ by a factor of at
most e^(epsilon/2), and so do the weights: with b = V'/Z', P[C] (1 - b) <= e^epsilon P'[C] for common candidates, b P[C] <= m V', and the
others have m V at most. Bottom's probability changes by at most (Z'/Z)^rho, where Z' <= e^(epsilon/2) Z/(1 - delta'/t), now with t >= 1/2.

**Useful.** With the best score q*, Z >= e^(epsilon q*): bottom has probability at most beta once q* is about
1 + (1/epsilon) ln(k/(4 delta beta)). The Choosing Mechanism tests the best score first, with half of epsilon, and needs n to be large for
its privacy.

*Literature.* A bottom that takes part in the choice is that of Durfee and Rogers (2019, arXiv 1905.04273), who choose among the best of
an unknown domain by noise. Here its probability is not that of one more candidate, of weight w, which is w/(Z + w) with
w = k e^epsilon/delta, but next to a quarter of that: its odds fall as fast as they may, as bottom is the last word.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax import bounds
from dpjax.accounting.guarantee import Guarantee
from dpjax.bounds.mechanisms import supported_parts
from dpjax.core import arguments, logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound
from dpjax.mechanisms import exponential as em
from dpjax.mechanisms.base import Candidates, Chooser, Number, Selection, released, scored
from dpjax.mechanisms.laplace import log_passed


def log_release(
    log_z: Float[Array, "*s"],
    less: Real[Array, "*s"],
    *,
    epsilon: Number,
    delta: Number,
    growth: Number = 1,
    monotone: bool = True,
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[some candidate], ln P[bottom]) from ln Z - epsilon `less` (epsilon/2, if not monotone); -inf stands for no candidates.

    The score at the edge, a public number, is subtracted from `less` first: next to the edge's logarithm, which may be 80, one record more
    would not add epsilon = 1e-5, but 1.5 times that.
    """
    given = growth, jnp.asarray(epsilon, float), jnp.asarray(delta, float)
    rho, unit, log_edge = supported_parts(*given, monotone, jnp)
    # Scores are counted from 1, as is the edge: beside a large epsilon its logarithm would have no digits left, and delta would not hold.
    # Any integer is private; one beyond int32 would not fit.
    edge = jnp.clip(jnp.floor(log_edge / unit), 0.0, 2.0**30)
    above = unit * (less - 1 - edge.astype(less.dtype)).astype(float)
    none = jnp.isneginf(log_z)
    # A harmless number where there are none: gradients would be NaN.
    x = jnp.where(none, 0.0, above + (log_z - (log_edge - unit * edge)))
    log_p, log_q = log_passed(x, 1.0, rho)
    return jnp.where(none, -jnp.inf, log_p), jnp.where(none, 0.0, log_q)


def _weights(scores: ArrayLike, epsilon: Number, where: ArrayLike | None) -> tuple[Array, Array, Array]:
    """(ln of the weights, relative to the best candidate's; ln of their sum; the best score)."""
    scores, mask = scored(scores, where)
    mask = mask & (scores >= 1)
    logs = em.log_weights(scores, epsilon=epsilon, where=mask, monotone=True)
    some = jnp.any(mask)
    best = jnp.max(jnp.where(mask, scores, 0))
    best = best.astype(int if jnp.issubdtype(best.dtype, jnp.integer) else float)  # the edge fits no smaller integer
    return logs, jnp.where(some, logspace.logsumexp(jnp.where(some, logs, 0.0)), -jnp.inf), best


def log_pmf(
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    delta: Number,
    growth: int = 1,
    where: Bool[ArrayLike, "k"] | None = None,
) -> Float[Array, "k+1"]:
    """ln P of every candidate, then of bottom (last)."""
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    logs, log_sum, best = _weights(scores, epsilon, where)
    log_p, log_q = log_release(log_sum, best, epsilon=epsilon, delta=delta, growth=growth)
    return jnp.append(log_p + em.normalised(logs), log_q)


def supported(
    key: Array,
    scores: Real[ArrayLike, "k"],
    *,
    epsilon: Number,
    delta: Number,
    growth: int = 1,
    where: Bool[ArrayLike, "k"] | None = None,
) -> Selection:
    """Chooses among the candidates of score 1 or more with probability proportional to e^(epsilon q), or gives bottom; see the module.

    Args:
      key: a PRNG key.
      scores: counts, whole numbers; one record more raises each by 0 or 1, and at most `growth` of them from 0.
      epsilon, delta: privacy parameters, > 0 and in (0, 1).
      growth: k, at least 1.
      where: which candidates exist, independent of the data.

    Returns:
      Selection(index, ok); ok is False for bottom.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE. In float32 a rounding of ln P adds up to 6e-8 (1 + |ln P|) to a privacy
    loss on either side. Not promised: protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: a parameter out of range.

    >>> import jax, jax.numpy as jnp
    >>> out = supported(jax.random.key(0), jnp.array([0, 50, 1]), epsilon=1.0, delta=1e-6)
    >>> int(out.index), bool(out.ok)
    (1, True)
    """
    key_test, key_choose = jax.random.split(arguments.key(key))
    epsilon, delta = arguments.epsilon(epsilon), arguments.delta(delta)
    logs, log_sum, best = _weights(scores, epsilon, where)
    log_p, log_q = log_release(log_sum, best, epsilon=epsilon, delta=delta, growth=growth)
    chosen = em.draw(key_choose, logs)
    return released(chosen.index, chosen.ok & random.bernoulli(key_test, log_p, log_q))


@frozen
class Supported(Chooser):
    """The exponential mechanism over what the data support; see `supported`, and `mechanism`, which makes it.

    Its plain twin is `dpjax.verify.plain.supported`.
    """

    epsilon: Number
    delta: Number
    growth: int = static()

    def _given(self, data: Candidates) -> dict[str, Any]:
        return {"epsilon": self.epsilon, "delta": self.delta, "growth": self.growth, "where": data.where}

    def sound(self) -> Bool[Array, ""]:
        return sound(self) & (jnp.asarray(self.delta, float) > 0) & (self.growth >= 1)

    def draw(self, key: Array, data: Candidates) -> Any:
        return *supported(key, data.scores, **self._given(data)), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return log_pmf(data.scores, **self._given(data))

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under ADD_OR_REMOVE_ONE, for whole scores: a real one that comes into view may be nearly 2, not 1."""
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        return Guarantee(epsilon, delta, "ADD_OR_REMOVE_ONE")

    def score_needed(self, beta: float) -> int:
        """The best score from which on some candidate is released with probability 1 - beta.

        >>> mechanism(epsilon=1.0, delta=1e-6).score_needed(0.1)
        16
        """
        epsilon, delta = arguments.known("epsilon", self.epsilon), arguments.known("delta", self.delta)
        beta = arguments.known_fraction("beta", beta)
        return max(math.ceil(bounds.supported_weight(self.growth, beta, epsilon, delta) / epsilon - 1e-12), 1)


def mechanism(*, epsilon: Number, delta: Number, growth: int = 1) -> Supported:
    """The exponential mechanism over what the data support, (epsilon, delta)-private.

    Args:
      epsilon: > 0, finite.
      delta: in (0, 1).
      growth: k, how many scores one more record can raise from 0; from 1 to 2^31 - 1.

    Raises:
      TypeError, ValueError: a parameter out of range.

    >>> mechanism(epsilon=1.0, delta=1e-6).guarantee()
    Guarantee(epsilon=1.0, delta=1e-06, relation='ADD_OR_REMOVE_ONE')
    """
    return Supported(
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta),
        growth=arguments.integer("growth", growth, at_least=1, at_most=2**31 - 1),  # more candidates fit no array
    )
