"""SanPoints (BNS Figure 9): heavy points are chosen one by one, and their counts released with noise.

There are R = ceil(2/alpha) rounds. Each uses the Choosing Mechanism at (e, d) and alpha/2 to choose one of the points that are left, and
releases its count + Lap(1/e).

**Privacy.** The paper pays for 2R mechanisms, R choices and R counts: e = epsilon / sqrt(16 R ln(5/delta)). R + 2 suffice. Fix two
neighbours, in which an example x is replaced by x'. No choice uses a noisy count, so the run is the R choices, each (e, d)-private given
those before it, and then the noisy counts of the chosen points. No point is chosen twice, and at most two of their counts differ, those of
x and x', each by 1; the others have the same law in both. So the release is a post-processing of R + 2 mechanisms, composed adaptively: the
choices, and for x and for x' "its noisy count if it was chosen", e-private. `bounds.san_points_budget` composes these R + 2 mechanisms:
e = epsilon / (R + 2), or by advanced composition (BNS Theorem 2.5, whose proof takes the two datasets as fixed) with slack delta/5
epsilon / sqrt(8 (R + 2) ln(5/delta)), whichever is larger, and d = 2 delta/(5R).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core import arguments, logspace
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import sound
from dpjax.domains import groups
from dpjax.domains.events import Accurate
from dpjax.mechanisms import choosing, laplace
from dpjax.sanitizers import base
from dpjax.sanitizers.points.base import Frequencies, PointSanitizer

MOST_POINTS = 12  # in the list of all sets
MOST_ROUNDS = 2**24
ROUNDED = 1 + 2.0**-20  # the factor by which an epsilon that the host has allowed may be above the limit in float32


@frozen
class SanPoints(PointSanitizer):
    """R rounds of the Choosing Mechanism, and noisy counts; see the module.

    `log_released` and `log_density` are its exact law: which points are released, and given that, their independent answers.
    """

    bits: Int[Array, ""]
    n: Float[Array, ""]
    epsilon: Float[Array, ""]
    delta: Float[Array, ""]
    alpha: Float[Array, ""]
    limbs: int = static()
    rounds: int = static()

    @property
    def most_points(self) -> int:
        """How many points may be named: one in each round."""
        return self.rounds

    def round_epsilon(self) -> Float[Array, ""]:
        """e, the epsilon of one choice and of one count."""
        epsilon, delta = jnp.asarray(self.epsilon, float), jnp.asarray(self.delta, float)
        return bounds.san_points_budget(
            epsilon, delta, self.rounds, sqrt=jnp.sqrt, log=jnp.log, larger=logspace.greater_of
        )[0]

    def draw(self, key: Array, found: groups.Groups) -> tuple[Frequencies, Bool[Array, ""], Any]:
        key_choices, key_noise = jax.random.split(key)
        counts, epsilon = found.counts, self.round_epsilon()

        def choose(left: Array, number: Array) -> tuple[Array, Array]:
            key, alpha = jax.random.fold_in(key_choices, number), jnp.asarray(self.alpha / 2, float)
            chosen = choosing.choosing(key, counts, n=self.n, epsilon=epsilon, alpha=alpha, where=left)
            index = jnp.where(chosen.ok, chosen.index, counts.shape[0])
            return left.at[index].set(False, mode="drop"), index

        _, chosen = jax.lax.scan(choose, found.valid, jnp.arange(self.rounds, dtype=jnp.int32))
        chosen = jnp.sort(chosen)  # as their points are
        noisy = laplace.laplace(key_noise, counts.at[chosen].get(mode="fill", fill_value=0), epsilon=epsilon)
        points = found.rows.at[chosen].get(mode="fill", fill_value=np.uint32(0xFFFFFFFF))
        released = Frequencies.kept(points, noisy / jnp.asarray(self.n, float), chosen < counts.shape[0])
        return released, jnp.bool_(True), {}

    def law(self, found: groups.Groups, event: Accurate) -> Float[Array, "2"]:
        """(P[every answer is within `error` of the truth], P[not]), a sum over sets of points; NaN for more than 12 distinct points."""
        counts = found.counts[:MOST_POINTS]
        slack = event.limit(self.n)
        inside = jnp.where(slack > 0, slack, 1.0)  # where there is none, no derivative of ln 0 is taken
        # ln P[noise within the slack].
        near = jnp.where(slack > 0, jnp.log(-jnp.expm1(-inside * self.round_epsilon())), -jnp.inf)
        named = jnp.where(_sets(counts.shape[0]), near, jnp.where(counts.astype(float) > slack, -jnp.inf, 0.0)[None])
        right = jnp.sum(named, axis=1)
        p = jnp.exp(self.log_released(counts))
        law = jnp.stack([jnp.sum(p * jnp.exp(right)), jnp.sum(p * -jnp.expm1(right))])
        return jnp.where(found.size <= counts.shape[0], law, jnp.nan)

    def log_choice(self, counts: Int[Array, "m"], left: Bool[Array, "m"]) -> Float[Array, "m+1"]:
        """ln P of each point in one round, then of ⊥, when those `left` have not been chosen yet."""
        return choosing.log_pmf(
            counts, n=self.n, epsilon=self.round_epsilon(), alpha=jnp.asarray(self.alpha / 2, float), where=left
        )

    def log_released(self, counts: Int[Array, "m"]) -> Float[Array, "sets"]:
        """ln P[exactly these points are released] for all 2^m sets, m <= 12; point i is in number s if bit i of s is 1."""
        m = arguments.integer("the number of counts", counts.shape[0], at_least=1, at_most=MOST_POINTS)
        sets, points, inside = np.arange(1 << m), np.arange(m), _sets(m)
        before = np.where(inside, sets[:, None] - (1 << points), 0)  # the set without point i
        choice = jax.vmap(lambda chosen: self.log_choice(counts, ~chosen))(jnp.asarray(inside))
        joins, stays = jnp.where(inside, choice[before, points], -jnp.inf), choice[:, m]

        def step(log_p: Array, _: None) -> tuple[Array, None]:
            ways = jnp.concatenate([log_p[before] + joins, (log_p + stays)[:, None]], axis=1)
            return logspace.logsumexp(ways), None

        return jax.lax.scan(step, jnp.where(sets == 0, 0.0, -jnp.inf), length=self.rounds)[0]

    def log_density(self, counts: Int[Array, "m"], answers: Float[Array, "m"]) -> Float[Array, "m"]:
        """ln of the density of the answer of a released point (a share of n)."""
        n = jnp.asarray(self.n, float)
        return laplace.log_pdf(answers * n, counts.astype(float), epsilon=self.round_epsilon()) + jnp.log(n)

    def sound(self) -> Bool[Array, ""]:
        alpha, n = jnp.asarray(self.alpha, float), jnp.asarray(self.n, float)
        epsilon, delta = jnp.asarray(self.epsilon, float), jnp.asarray(self.delta, float)
        composed = (delta > 0) & (epsilon <= 2 * jnp.log(5 / delta) * ROUNDED)
        return sound(self) & composed & (alpha > 0) & (alpha < 1) & (n >= 1)

    def guarantee(self) -> Guarantee:
        """(epsilon, delta) under REPLACE_ONE, by composition; none if n is too small for the Choosing Mechanism."""
        epsilon, delta, alpha = float(self.epsilon), float(self.delta), float(self.alpha)
        private = self.n >= bounds.san_points_private(epsilon, delta, alpha)
        return Guarantee(epsilon, delta, REPLACE_ONE) if private else Guarantee.none(REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Theorem 4.6; see `bounds.san_points`.

        Raises:
          ValueError: an alpha below this mechanism's own.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        own = float(self.alpha)
        if alpha < own:
            raise ValueError(f"alpha must be >= {own}, which this sanitizer was built for, got {alpha}")
        return bounds.san_points(float(self.epsilon), float(self.delta), own, beta)


def _sets(points: int) -> np.ndarray:
    """All sets of `points` points, one in each row; point i is in number s if bit i of s is 1."""
    return (np.arange(1 << points)[:, None] >> np.arange(points)) % 2 == 1


def san_points(*, bits: int, n: Any, epsilon: Any, delta: Any, alpha: Any, allow_unproved: bool = False) -> SanPoints:
    """SanPoints (BNS Figure 9): ceil(2/alpha) rounds; see the module.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d.
      n: number of examples, public.
      epsilon: in (0, 2 ln(5/delta)], which the composition needs. delta: in (0, 1).
      alpha: error, in (0, 1), not traced (it sets the number of rounds); met with probability 1 - beta for n >= `bounds.san_points`.
      allow_unproved: simulate below the n that privacy needs; `guarantee()` is then none.

    Raises:
      TypeError, ValueError: an argument out of range, or n < `bounds.san_points_private`.
    """
    given = {
        "epsilon": arguments.epsilon(epsilon),
        "delta": arguments.delta(delta),
        "alpha": np.float64(arguments.known_fraction("alpha", alpha)),
    }
    if given["alpha"] < 2 / MOST_ROUNDS:
        raise ValueError(f"alpha must be >= {2 / MOST_ROUNDS}, for at most {MOST_ROUNDS} rounds, got {given['alpha']}")
    if not any(map(arguments.is_traced, given.values())):
        # Refuses an epsilon that cannot be composed, also where no n is needed.
        bounds.san_points_private(**{name: float(value) for name, value in given.items()})
    where = base.domain(bits, n)
    base.refuse_small(
        where["n"],
        bounds.san_points_private,
        "the Choosing Mechanism (BNS Lemma 4.4) in every round",
        allow_unproved,
        **given,
    )
    return SanPoints(**where, **given, rounds=bounds.san_points_rounds(float(given["alpha"])))
