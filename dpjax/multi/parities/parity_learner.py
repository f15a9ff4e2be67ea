"""ParityLearner (MULTI Algorithm 4): subsamples vote for all k parities at once.

Cut the n examples, in their order, into m = floor(n / s) subsamples of s. Apply Gaussian elimination to each, for all k label columns at
once: the subsample votes for the vector (v_1, ..., v_k) that it determines, or for ⊥ if its points have rank below d or any column is
inconsistent (noisy labels). A_dist on the counts of votes releases the leading vector if gap + Lap(2/eps) >= 2 + (2/eps) ln(1/(2 delta)).

*Privacy.* Neighbouring samples differ by the replacement of one example with all its labels by any other; n is public. One vote changes, so
at most one vector's count falls by one and at most one other's rises by one: counts have sensitivity 1 and their gap has sensitivity 2, and
A_dist with the proved constants is (epsilon, delta)-private. Every vector is a candidate, so the runner-up of a lone vector has count 0. ⊥
is never a candidate; if all votes are ⊥ the answer is ⊥ with certainty, which is within delta of its neighbours: a vector with a single
vote is released with probability at most P[Lap(2/eps) >= threshold - 1] < delta.

*Utility.* The failure probability on uniform points is known exactly, over points and coins: `bounds.parity_learner_failure`. It does not
depend on k. In closed form: `bounds.parity_learner_theorem`.

Its plain twin is `dpjax.verify.plain.parity_learner`.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import Guarantee
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import gf2
from dpjax.mechanisms import stability
from dpjax.multi.parities import base
from dpjax.multi.parities.base import Leading, ManyParitiesLearner

CALIBRATIONS = ("printed", "proved")


class Votes(NamedTuple):
    """The subsamples' votes.

    Attributes:
      counts: at the first subsample that votes for a vector, the number of votes for it; 0 at all others.
      vectors: the vector that each subsample votes for; row c of a vector holds bit c of its k parities, packed.
    """

    counts: Int[Array, "m"]
    vectors: UInt32[Array, "m d words"]

    def leader(self) -> tuple[Int[Array, ""], Float[Array, ""]]:
        """(place of the leading vector, gap to the next); a vector without votes has count 0."""
        best, gap = stability.leader(jnp.append(self.counts, 0))
        return best.index, gap


@frozen
class ParityLearner(ManyParitiesLearner):
    """ParityLearner (MULTI Algorithm 4); see the module.

    Attributes:
      epsilon, delta: privacy of A_dist, which is that of the learner.
      bits: d. k: number of concepts. size: s, examples per subsample. calibration: constants of A_dist (all static).
    """

    epsilon: Float[Any, ""]
    delta: Float[Any, ""]
    bits: int = static()
    k: int = static()
    size: int = static()
    calibration: str = static()

    def prepare(self, sample: MultiSample) -> Leading:
        """Both stages, up to A_dist's coin."""
        votes = self.votes(sample)
        best, gap = votes.leader()
        log_p, log_q = stability.log_keep(gap, epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)
        seen = votes.counts[best] > 0
        return Leading(
            hypothesis=base.parities(votes.vectors[best], self.k),
            log_p=jnp.where(seen, log_p, -jnp.inf),
            log_q=jnp.where(seen, log_q, 0.0),
            info={
                "subsamples": sample.n_valid // self.size,
                "votes": jnp.sum(votes.counts),
                "leading": votes.counts[best],
            },
            sample=sample,
        )

    def votes(self, sample: MultiSample) -> Votes:
        """Stage 1: every subsample's vote."""
        places = max(1, sample.rows // self.size)
        missing = max(0, places * self.size - sample.rows)
        x, y = (jnp.pad(part, ((0, missing), (0, 0))) for part in (sample.x[:, ::-1], sample.y))

        def vote(t: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            vectors, usable = state
            a, b = (lax.dynamic_slice_in_dim(part, t * self.size, self.size) for part in (x, y))
            solved = gf2.solve(a, b, columns=self.bits)
            determined = (solved.rank == self.bits) & solved.consistent
            return vectors.at[t].set(solved.unknowns), usable.at[t].set(determined)

        # Subsamples are processed one after the other: each stays in cache, and those past n cost nothing.
        start = (jnp.zeros((places, self.bits, y.shape[1]), jnp.uint32), jnp.zeros((places,), bool))
        count = jnp.clip(sample.n_valid // self.size, 0, places)
        vectors, usable = lax.fori_loop(0, count, vote, start)
        return Votes(counts=_count_equal(vectors, usable), vectors=vectors)

    def sound(self) -> Bool[Array, ""]:
        return self._test().sound()

    def guarantee(self) -> Guarantee:
        """The guarantee of A_dist: (epsilon, delta) for "proved", (2 epsilon, exp(2 epsilon) delta / 2) for "printed"."""
        return self._test().guarantee()

    def claimed_guarantee(self) -> Guarantee:
        """What the paper claims, (epsilon, delta); false for "printed"."""
        return self._test().claimed_guarantee()

    def _test(self) -> stability.Stability:
        return stability.Stability(epsilon=self.epsilon, delta=self.delta, calibration=self.calibration)

    def uniform_failure(self, n: int) -> float:
        """P[some of k parities is not identified] with n uniform examples, exactly; see `bounds.parity_learner_failure`."""
        return bounds.parity_learner_failure(
            n, self.size, self.bits, float(self.epsilon), float(self.delta), calibration=self.calibration
        )

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The least n from which on `uniform_failure` <= beta; a multiple of s, the same for every k and every alpha < 1/2."""
        base.check_alpha(alpha)
        return bounds.parity_learner_exact(
            beta, self.size, self.bits, float(self.epsilon), float(self.delta), calibration=self.calibration
        )


def _count_equal(vectors: UInt32[Array, "m d words"], usable: Bool[Array, "m"]) -> Int[Array, "m"]:
    """At the first of equal usable vectors, how many there are, 0 elsewhere; it takes as many passes as there are different vectors."""

    def count(state: tuple[Array, Array]) -> tuple[Array, Array]:
        left, counts = state
        first = jnp.argmax(left)
        same = left & jnp.all(vectors == vectors[first][None], axis=(1, 2))
        return left & ~same, counts.at[first].set(jnp.sum(same, dtype=jnp.int32))

    start = (usable, jnp.zeros(usable.shape, jnp.int32))
    return lax.while_loop(lambda state: jnp.any(state[0]), count, start)[1]


def parity_learner(
    *,
    bits: int,
    k: int,
    epsilon: Any,
    delta: Any,
    beta: float = 0.1,
    size: int | None = None,
    calibration: str = "proved",
) -> ParityLearner:
    """ParityLearner (MULTI Algorithm 4, Theorem 39).

    Args:
      bits: d, from 1 to 1024.
      k: number of concepts, >= 1.
      epsilon: privacy, > 0.
      delta: privacy, in (0, 1), at most 1/2 for "proved".
      beta: failure probability for which `size` is optimised; privacy does not depend on it.
      size: s, examples per subsample, >= bits; by default the best for epsilon, delta and beta.
      calibration: constants of A_dist; "printed" is the paper's, which does not keep its claim.

    Formal guarantees: (epsilon, delta) under REPLACE_ONE ("proved"), for arbitrary points and labels; n is public. Not promised:
    protection from floating-point side channels, or a cryptographic generator.

    Raises:
      TypeError, ValueError: an argument out of range; no size while epsilon or delta is traced.
    """
    where = base.domain(bits, k)
    arguments.choice("calibration", calibration, CALIBRATIONS)
    test = stability.mechanism(epsilon=epsilon, delta=delta, calibration=calibration)
    beta = arguments.known_fraction("beta", beta)
    if size is None:
        if arguments.is_traced(epsilon) or arguments.is_traced(delta):
            raise ValueError("size must be given when epsilon or delta is traced: it is a shape")
        size = bounds.parity_learner_size(
            bits=bits,
            epsilon=float(test.epsilon),
            delta=float(test.delta),
            beta=beta,
            calibration=calibration,
        )
    size = arguments.size("size", size, at_least=where["bits"])
    return ParityLearner(**where, epsilon=test.epsilon, delta=test.delta, size=size, calibration=calibration)
