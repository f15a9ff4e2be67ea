"""Algorithm 2 of MULTI with any two thresholds, in counts.

A point of count c <= low is never released. Otherwise c + Lap(2/epsilon) is, if it is > high. Every other answer is 0.

**Privacy.** Replacing an example lowers one count and raises another one by 1; the answers of all other points keep their law. Let
p = exp(-(epsilon/2) (high - low - 1)) / 2 >= P[released] of a point whose neighbour is not above low, since its count is at most low + 1
and high >= low + 1. The answers of the two points are independent, and each of them is one of three: (i) 0 in both datasets; (ii) above
low in both: Laplace noise of scale 2/epsilon on values 1 apart, epsilon/2-close; (iii) above low in one only: released there with
probability at most p, and 0 in the other. So both together are (epsilon, 2 p): the paper's claim, delta = 2 p being its condition. In
truth they are (epsilon, p):

- (ii) twice: (epsilon, 0). (iii) twice, in opposite directions: S releases only x and S' only x', each with probability at most p, and all
  else is the same outcome (0, 0): delta is p at every epsilon.
- (iii) and (ii), answers (A, B) against (0, B'): events with A > high have probability at most p in S and 0 in S'; the others are
  P[A = 0] B <= exp(epsilon/2) B'. The other way, with u = P_S[B in R]: min(1, exp(epsilon/2) u) - exp(epsilon) (1 - p) u is largest at
  u = exp(-epsilon/2), where it is 1 - exp(epsilon/2) (1 - p) <= p.

Thresholds depend on the n given to the factory, and on no count of the actual dataset: the guarantee does not rest on such a count.

The plain twin of what is released is `dpjax.verify.plain.point_learner.noisy_count_chance`.
"""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.core import arguments, logspace
from dpjax.data.algorithm import sound
from dpjax.domains import groups
from dpjax.domains.events import Accurate
from dpjax.mechanisms import laplace
from dpjax.mechanisms.base import Between, beyond
from dpjax.sanitizers.points.base import Frequencies, PointSanitizer


class NoisyCounts(PointSanitizer):
    """Algorithm 2: neither counts up to `low` nor noisy counts up to `high` are ever released.

    `log_released` and `log_density` are its exact law: given the counts, the points' answers are independent, each an atom at 0 and,
    above high / n, a Laplace density.
    """

    epsilon: Any
    delta: Any
    low: Any
    high: Any

    @property
    def most_points(self) -> int:
        """How many points may be named: as many as can have counts above `low` among n examples, if the domain has so many."""
        named = int(arguments.known("n", self.n)) // (math.floor(arguments.known("low", self.low)) + 1)
        return min(named, 2 ** arguments.known_integer("bits", self.bits))

    def draw(self, key: Array, found: groups.Groups) -> tuple[Frequencies, Bool[Array, ""], Any]:
        values, keep = self.noisy(key, found.counts)
        released = Frequencies.kept(found.rows, values / jnp.asarray(self.n, float), keep & found.valid)
        return released, jnp.bool_(True), {}

    def noisy(self, key: Array, counts: Int[Array, "m"]) -> tuple[Float[Array, "m"], Bool[Array, "m"]]:
        """(noisy counts, which are released)."""
        noise = laplace.laplace(key, jnp.zeros(counts.shape), epsilon=self.epsilon, sensitivity=2.0)
        return counts.astype(float) + noise, self._eligible(counts) & (noise > self.short(counts))

    def short(self, counts: Int[Array, "m"]) -> Float[Array, "m"]:
        """By how much counts fall short of `high`: integer parts are subtracted before anything is rounded."""
        return -beyond(counts, self.high)

    def log_released(self, counts: Int[Array, "m"], above: Any = 0.0) -> tuple[Float[Array, "m"], Float[Array, "m"]]:
        """(ln P[released, and its noisy count is `above` this], ln P[not]) for points of these counts."""
        least = jnp.maximum(self.short(counts), jnp.asarray(above, float) - counts.astype(float))
        log_q, log_p = laplace.log_tails(least / (2 / jnp.asarray(self.epsilon, float)))
        eligible = self._eligible(counts)
        return jnp.where(eligible, log_p, -jnp.inf), jnp.where(eligible, log_q, 0.0)

    def log_density(self, counts: Int[Array, "m"], answers: Float[Array, "m"]) -> Float[Array, "m"]:
        """ln of the density of a released answer (a share of n); -inf up to high / n."""
        n = jnp.asarray(self.n, float)
        values = answers * n
        density = laplace.log_pdf(values, counts.astype(float), epsilon=self.epsilon, sensitivity=2.0) + jnp.log(n)
        # For a count of millions with noise that is just enough, the sum and its share of n are rounded: it may be `high`, or less.
        rounded = jnp.where(values > 2**12, 2 * jnp.finfo(values.dtype).eps * values, 0.0)
        enough = values - counts.astype(float) > self.short(counts) - rounded
        return jnp.where(self._eligible(counts) & enough, density, -jnp.inf)

    def law(self, found: groups.Groups, event: Accurate) -> Float[Array, "2"]:
        """(P[every answer is within `error` of the truth], P[not]): answers are independent."""
        counts, slack = found.counts.astype(float), event.limit(self.n)
        short, missed = self.short(found.counts), counts > slack
        # The answer is 0 for all counts up to `high`, and that is right unless it is missed.
        least = jnp.where(missed, jnp.maximum(short, -slack), -jnp.inf)
        kept = Between(low=least, high=jnp.maximum(short, slack))
        noise = laplace.mechanism(epsilon=self.epsilon, sensitivity=2.0)
        noisy = jnp.stack(noise.split(jnp.zeros_like(counts), kept))
        all_or_none = jnp.stack([~missed, missed]).astype(float)
        each = jnp.where(self._eligible(found.counts), noisy, all_or_none)
        return logspace.all_happen(jnp.where(found.valid, each, jnp.array([[1.0], [0.0]])).T)

    def sound(self) -> Bool[Array, ""]:
        return sound(self) & (jnp.asarray(self.delta, float) > 0) & (jnp.asarray(self.n, float) >= 1)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """An n for which, with these thresholds, every answer is within alpha with probability 1 - beta; see `bounds.point_histogram`."""
        return bounds.point_histogram(float(self.epsilon), float(self.high), alpha, beta)

    def _eligible(self, counts: Int[Array, "m"]) -> Bool[Array, "m"]:
        return beyond(counts, self.low) > 0
