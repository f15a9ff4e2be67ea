"""The Choosing Mechanism (BNS Figure 8): the exponential mechanism over solutions that some record supports.

1. If max_f q(f) + Lap(4/eps) < alpha n / 2, return ⊥.
2. Otherwise choose f with q(f) >= 1 by the exponential mechanism with eps/2.

q is k-bounded-growth: adding a record raises at most k scores, each by 1, and lowers none. Its privacy
needs n to be large enough; n is public.
"""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Real

from dpjax.accounting.guarantee import Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.mechanisms import exponential as em
from dpjax.mechanisms.exponential import Selection, largest, valid
from dpjax.mechanisms.laplace import Number, log_tails


def private_sample_size(*, epsilon: Number, delta: Number, alpha: Number, growth: int = 1) -> int:
    """The least n for which Lemma 4.4's proof gives (epsilon, delta).

    max{u ln(1/(2 delta)), 4/alpha + u ln(k/delta), u ln(4k/eps)} with u = 16/(alpha eps): the three
    inequalities the proof uses, in its order. The lemma as stated asks for u ln(16k/(alpha beta eps delta)),
    which is more, and beta plays no part in privacy.

    >>> private_sample_size(epsilon=1.0, delta=1e-6, alpha=0.5)
    451
    """
    epsilon, delta, alpha = arguments.epsilon(epsilon), arguments.delta(delta), arguments.fraction("alpha", alpha)
    growth = arguments.integer("growth", growth, at_least=1)
    unit = 16 / (alpha * epsilon)
    keep = unit * math.log(1 / (2 * delta))
    newcomers = 4 / alpha + unit * math.log(growth / delta)
    total = unit * math.log(4 * growth / epsilon)
    return math.ceil(max(keep, newcomers, total) * (1 + 1e-12))


def sample_size(*, epsilon: Number, delta: Number, alpha: Number, beta: Number, growth: int = 1) -> int:
    """The n of Lemmas 4.4 and 4.5: private, and alpha-good except with probability beta.

    n >= (16/(alpha eps)) ln(16k/(alpha beta eps delta)), as printed.

    >>> sample_size(epsilon=1.0, delta=1e-6, alpha=0.5, beta=0.1)
    627
    """
    epsilon, delta, alpha = arguments.epsilon(epsilon), arguments.delta(delta), arguments.fraction("alpha", alpha)
    beta, growth = arguments.fraction("beta", beta), arguments.integer("growth", growth, at_least=1)
    return math.ceil(16 / (alpha * epsilon) * math.log(16 * growth / (alpha * beta * epsilon * delta)))


def log_keep(
    best: Real[ArrayLike, "*s"], *, n: Number, epsilon: Number, alpha: Number
) -> tuple[Float[Array, "*s"], Float[Array, "*s"]]:
    """(ln P[step 1 passes], ln P[it gives ⊥]) when the best score is `best`."""
    epsilon, alpha = arguments.epsilon(epsilon), arguments.fraction("alpha", alpha)
    n = arguments.real("n", n, at_least=0.0, below=math.inf)
    short = jnp.asarray(alpha * n / 2, float) - jnp.asarray(best).astype(float)
    log_q, log_p = log_tails(short * jnp.asarray(epsilon / 4, float))
    return log_p, log_q


def supported(scores: Real[ArrayLike, "k"], where: Bool[ArrayLike, "k"] | None = None) -> Bool[Array, "k"]:
    """G(S): the valid solutions of score at least 1."""
    return valid(scores, where) & (jnp.asarray(scores) >= 1)


def _best(scores: ArrayLike, where: ArrayLike | None) -> Array:
    """The largest valid score, and 0 when there is none (scores are never negative)."""
    scores, mask = jnp.asarray(scores), valid(scores, where)
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
    """Chooses a solution within alpha n of the best, or ⊥ when none scores about alpha n / 2 (BNS Figure 8).

    Args:
      key: a PRNG key.
      scores: q(S, f) for every solution, counts; k-bounded-growth.
      n: number of records, public.
      epsilon: the privacy parameter, > 0.
      alpha: the approximation parameter, in (0, 1).
      where: which solutions exist, independent of the data.

    Returns:
      Selection(index, ok); ok is False for ⊥, and when no solution scores 1 or more.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE for every delta with n >= `private_sample_size`
    (Lemma 4.4); nothing below it. Not promised: protection from floating-point side channels, or a
    cryptographic generator.

    Raises:
      ValueError: epsilon or alpha out of range, n negative.

    >>> import jax, jax.numpy as jnp
    >>> out = choosing(jax.random.key(0), jnp.array([0, 500, 1]), n=501, epsilon=1.0, alpha=0.5)
    >>> int(out.index), bool(out.ok)
    (1, True)
    """
    key_test, key_choose = jax.random.split(key)
    log_p, log_q = log_keep(_best(scores, where), n=n, epsilon=epsilon, alpha=alpha)
    chosen = em.exponential(key_choose, scores, epsilon=arguments.epsilon(epsilon) / 2, where=supported(scores, where))
    return Selection(chosen.index, chosen.ok & random.bernoulli(key_test, log_p, log_q))


@frozen
class Choosing:
    """The Choosing Mechanism with its parameters bound; build it by `Choosing.create`.

    >>> Choosing.create(n=500, epsilon=1.0, delta=1e-6, alpha=0.5).guarantee().delta
    1e-06
    """

    n: Number
    epsilon: Number
    delta: Number
    alpha: Number
    proved: bool = static()

    @classmethod
    def create(
        cls,
        *,
        n: int,
        epsilon: Number,
        delta: Number,
        alpha: Number,
        growth: int = 1,
        allow_unproved: bool = False,
    ) -> "Choosing":
        """Checks and binds; `growth` is k.

        With allow_unproved a smaller n may be simulated, and nothing is guaranteed.

        Raises:
          ValueError: a parameter out of range, or n below `private_sample_size`.
        """
        n = arguments.integer("n", n, at_least=1)
        needed = private_sample_size(epsilon=epsilon, delta=delta, alpha=alpha, growth=growth)
        if n < needed and not allow_unproved:
            raise ValueError(
                f"n must be at least {needed} for ({epsilon}, {delta})-privacy (BNS Lemma 4.4), got {n};"
                " allow_unproved=True simulates without a guarantee"
            )
        return cls(
            n=arguments.real("n", n),
            epsilon=arguments.epsilon(epsilon),
            delta=arguments.delta(delta),
            alpha=arguments.fraction("alpha", alpha),
            proved=n >= needed,
        )

    def __call__(
        self, key: Array, scores: Real[ArrayLike, "k"], *, where: Bool[ArrayLike, "k"] | None = None
    ) -> Selection:
        """A good solution, or ⊥."""
        return choosing(key, scores, n=self.n, epsilon=self.epsilon, alpha=self.alpha, where=where)

    def log_pmf(
        self, scores: Real[ArrayLike, "k"], *, where: Bool[ArrayLike, "k"] | None = None
    ) -> Float[Array, "k+1"]:
        """ln P of every solution, then of ⊥."""
        return log_pmf(scores, n=self.n, epsilon=self.epsilon, alpha=self.alpha, where=where)

    def guarantee(self) -> Guarantee | None:
        """(epsilon, delta) under replace-one; None when n is too small for the proof."""
        if not self.proved:
            return None
        return Guarantee(epsilon=float(self.epsilon), delta=float(self.delta), relation="REPLACE_ONE")
