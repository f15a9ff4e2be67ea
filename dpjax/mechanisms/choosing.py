"""The Choosing Mechanism (BNS Figure 8): the exponential mechanism over solutions that some record supports.

1. If max_f q(f) + Lap(4/eps) < alpha n / 2, return ⊥.
2. Otherwise choose f with q(f) >= 1 by the exponential mechanism with eps/2.

q is of k-bounded growth: adding a record raises at most k scores, each by 1, and lowers none. The
proof of privacy needs n to be large enough; n is public.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax import bounds
from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound, whole
from dpjax.mechanisms import exponential as em
from dpjax.mechanisms.base import Candidates, Chooser, Number, Selection, beyond, largest, released, scored
from dpjax.mechanisms.laplace import log_tails


def private_sample_size(*, epsilon: Number, delta: Number, alpha: Number, growth: int = 1) -> int:
    """The least n that is proved to give (epsilon, delta); see `dpjax.bounds.choosing_mechanism_privacy`.

    Lemma 4.4 as stated requires twice as much or more for epsilon <= 4, and less for some epsilon > 6.4; beta plays no part in privacy.

    >>> private_sample_size(epsilon=1.0, delta=1e-6, alpha=0.5)
    235
    """
    alpha, delta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("delta", delta)
    size = bounds.choosing_mechanism_privacy(growth, alpha, arguments.known("epsilon", epsilon), delta)
    return math.ceil(size * (1 + 1e-12))


def log_keep(
    best: Real[ArrayLike, "*s"], *, n: Number, epsilon: Number, alpha: Number
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[step 1 passes], ln P[it gives ⊥]) when the best score is `best`."""
    epsilon, alpha = arguments.epsilon(epsilon), arguments.fraction("alpha", alpha)
    n = arguments.real("n", n, at_least=0.0, below=math.inf)
    log_q, log_p = log_tails(-beyond(best, alpha * n / 2) * jnp.asarray(epsilon / 4, float))
    return log_p, log_q


def supported(scores: Real[ArrayLike, "k"], where: Bool[ArrayLike, "k"] | None = None) -> Bool[Array, "k"]:
    """G(S): the valid solutions of score at least 1."""
    scores, mask = scored(scores, where)
    return mask & (scores >= 1)


def _best(scores: ArrayLike, where: ArrayLike | None) -> Array:
    """The largest valid score, and 0 when there is none (scores are never negative)."""
    scores, mask = scored(scores, where)
    return jnp.where(jnp.any(mask), largest(scores, mask), jnp.zeros((), scores.dtype))


def log_pmf(
    scores: Real[ArrayLike, "k"],
    *,
    n: Number,
    epsilon: Number,
    alpha: Number,
    where: Bool[ArrayLike, "k"] | None = None,
) -> Float[Array, "k+1"]:
    """ln P of every solution, then of ⊥ (last)."""
    log_p, log_q = log_keep(_best(scores, where), n=n, epsilon=epsilon, alpha=alpha)
    group = supported(scores, where)
    chosen = em.log_pmf(scores, epsilon=arguments.epsilon(epsilon) / 2, where=group)
    return jnp.append(log_p + chosen, jnp.where(jnp.any(group), log_q, 0.0))


def choosing(
    key: Array,
    scores: Real[ArrayLike, "k"],
    *,
    n: Number,
    epsilon: Number,
    alpha: Number,
    where: Bool[ArrayLike, "k"] | None = None,
) -> Selection:
    """Chooses a solution within alpha n of the best, or ⊥ when none scores about alpha n / 2 or more (BNS Figure 8).

    Args:
      key: a PRNG key.
      scores: q(S, f) for every solution: counts of k-bounded growth.
      n: number of records, public.
      epsilon: the privacy parameter, > 0.
      alpha: the approximation parameter, in (0, 1).
      where: which solutions exist, independent of the data.

    Returns:
      Selection(index, ok); ok is False for ⊥, when no solution scores 1 or more, and when a score is NaN.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE for every delta with n >= `private_sample_size`
    (Lemma 4.4); none for a smaller n. Not promised: protection from floating-point side channels, or a
    cryptographic generator.

    Raises:
      TypeError: key is not a PRNG key. ValueError: epsilon or alpha out of range, n negative.

    >>> import jax, jax.numpy as jnp
    >>> out = choosing(jax.random.key(0), jnp.array([0, 500, 1]), n=501, epsilon=1.0, alpha=0.5)
    >>> int(out.index), bool(out.ok)
    (1, True)
    """
    key_test, key_choose = jax.random.split(arguments.key(key))
    log_p, log_q = log_keep(_best(scores, where), n=n, epsilon=epsilon, alpha=alpha)
    chosen = em.exponential(key_choose, scores, epsilon=arguments.epsilon(epsilon) / 2, where=supported(scores, where))
    passes = random.bernoulli(key_test, log_p, log_q) & ~jnp.isnan(log_p)
    return released(chosen.index, chosen.ok & passes)


@frozen
class Choosing(Chooser):
    """The Choosing Mechanism for n records; see `choosing`, and `mechanism`, which makes it.

    Its plain twin is `dpjax.verify.plain.choosing`.
    """

    n: Number
    epsilon: Number
    delta: Number
    alpha: Number
    growth: int = static()

    def _given(self, data: Candidates) -> dict[str, Any]:
        return {"n": self.n, "epsilon": self.epsilon, "alpha": self.alpha, "where": data.where}

    def sound(self) -> Bool[Array, ""]:
        n, delta, alpha = (jnp.asarray(value, float) for value in (self.n, self.delta, self.alpha))
        return sound(self) & (n >= 0) & (n < jnp.inf) & (delta > 0) & (alpha > 0) & (alpha < 1)

    def draw(self, key: Array, data: Candidates) -> Any:
        return *choosing(key, data.scores, **self._given(data)), {}

    def log_law(self, data: Candidates) -> Float[Array, "outcomes"]:
        return log_pmf(data.scores, **self._given(data))

    def _known(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "alpha")
        return {name: arguments.known(name, getattr(self, name)) for name in names} | {"growth": self.growth}

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE, for whole scores, if n is large enough for Lemma 4.4's proof, else no guarantee."""
        given = self._known()
        if arguments.known("n", self.n) < private_sample_size(**given):
            return Guarantee.none("REPLACE_ONE")
        return Guarantee(given["epsilon"], given["delta"], "REPLACE_ONE")

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The sample size of Lemma 4.5 at the mechanism's own alpha, for data on which some score is alpha n or more.

        On other data every solution is within alpha n of the best, and ⊥ is likely where no score is near alpha n / 2.

        Raises:
          ValueError: an alpha below the mechanism's own.
        """
        given = self._known()
        arguments.fraction("alpha", alpha)
        if alpha < given["alpha"]:
            raise ValueError(f"alpha must be >= {given['alpha']}, for which this mechanism was made, got {alpha}")
        return whole(bounds.choosing_mechanism(self.growth, given["alpha"], beta, given["epsilon"], given["delta"]))


def mechanism(
    *, n: int, epsilon: Number, delta: Number, alpha: Number, growth: int = 1, allow_unproved: bool = False
) -> Choosing:
    """The Choosing Mechanism, (epsilon, delta)-private.

    Args:
      n: number of records, public.
      epsilon: > 0, finite.
      delta: in (0, 1).
      alpha: the approximation parameter, in (0, 1).
      growth: k, how many scores one more record can raise.
      allow_unproved: whether an n too small for the proof may be simulated; nothing is guaranteed then. The rule is not checked while a
        parameter is traced.

    Raises:
      TypeError, ValueError: a parameter out of range, or n below `private_sample_size`.

    >>> mechanism(n=500, epsilon=1.0, delta=1e-6, alpha=0.5).guarantee().delta
    1e-06
    """
    made = Choosing(
        n=np.float64(arguments.count("n", n)),
        epsilon=arguments.epsilon(epsilon),
        delta=arguments.delta(delta),
        alpha=arguments.fraction("alpha", alpha),
        growth=arguments.integer("growth", growth, at_least=1),
    )
    known = not any(map(arguments.is_traced, (made.epsilon, made.delta, made.alpha)))
    if known and not arguments.flag("allow_unproved", allow_unproved):
        needed = private_sample_size(**made._known())
        if n < needed:
            raise ValueError(
                f"n must be at least {needed} for ({epsilon}, {delta})-privacy (BNS Lemma 4.4), got {n};"
                " allow_unproved=True simulates without a guarantee"
            )
    return made
