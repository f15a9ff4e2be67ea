"""Trials of rectangles by slices without a table of examples: only the slices are drawn."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.concepts import rectangles as concept
from dpjax.data.points import Points
from dpjax.learners.rectangles.by_slices import Rectangles


def trial(key: Array, experiment: Any) -> dict[str, Bool[Array, ""]]:
    """`pac.trial` for a product distribution without drawing the examples that are in no slice: the same law, far less work.

    Given how many examples remain, their coordinates on the next axis are independent draws from the target's side, whatever
    was cut before: so only the least and the greatest of them are drawn (Renyi's representation).

    Args:
      key: PRNG key.
      experiment: a `pac.Experiment` with a learner and a distribution of rectangles; its capacity plays no part.

    Returns:
      Whether the run failed (population error > alpha, or bottom), and whether it ended in bottom.
    """
    learner, distribution = experiment.learner, experiment.distribution
    key_n, key_sizes, key_slices, key_faces, key_count = jax.random.split(key, 5)
    n = jnp.asarray(experiment.n, float)
    positives = jax.random.binomial(key_n, n, distribution.mass(distribution.target)).astype(jnp.int32)
    slices = draw(key_slices, learner, distribution, positives, learner.sizes(key_sizes, 2**30))
    hypothesis, released, _ = learner.answer(key_count, learner.few_faces(key_faces, slices), slices)
    good = distribution.error(hypothesis) <= experiment.alpha
    return {"failed": ~(good & released), "bottom": ~released}


class DrawnSlices(NamedTuple):
    """Slices of examples that were not all drawn.

    Attributes:
      points: their projections, in order, stacked.
      sizes: how many points were taken.
      remaining: how many are in no slice.
    """

    points: Points
    sizes: Int[Array, "faces"]
    remaining: Int[Array, ""]

    def projections(self, width: int) -> Points:
        """The first points of each."""
        return Points(x=self.points.x[:, :width], n_valid=jnp.minimum(self.points.n_valid, width), ordered=True)


def draw(
    key: Array,
    learner: Rectangles,
    distribution: concept.Product,
    positives: Int[Array, ""],
    sizes: Int[Array, "faces"],
) -> DrawnSlices:
    """The slices of `positives` positive examples."""
    before = jnp.concatenate([jnp.zeros((1,), jnp.int32), jnp.cumsum(sizes)])
    left = jnp.maximum(positives - before, 0)  # entries before each slice, and after the last
    taken = left[:-1] - left[1:]
    fractions, ends = jax.vmap(lambda key, k, n: _least(key, k, n, learner.capacity))(
        jax.random.split(key, 2 * learner.axes), taken, left[:-1]
    )
    # The high slice is cut from what follows the low one.
    room = 1 - ends[0::2]
    from_low, from_high = fractions[0::2], fractions[1::2] * room[:, None]
    full = np.float32(2.0**32)
    word = jnp.stack([_word(from_low * full), ~_word(from_high[:, ::-1] * full)], axis=1)
    x = jnp.stack([distribution.inside(word[:, 0]), distribution.inside(word[:, 1])], axis=1)
    x = x.reshape(2 * learner.axes, learner.capacity, learner.limbs)
    seen = jnp.minimum(taken, learner.capacity)
    # The high slice's points are the last ones of its row: bring them to the front.
    turn = jnp.where(jnp.arange(2 * learner.axes, dtype=jnp.int32) % 2 == 1, learner.capacity - seen, 0)
    x = jax.vmap(lambda row, by: jnp.roll(row, -by, axis=0))(x, turn)
    return DrawnSlices(Points(x=x, n_valid=seen, ordered=True), taken, left[-1])


def _word(v: Float[Array, "*s"]) -> UInt32[Array, "*s"]:
    """floor(v) for 0 <= v <= 2^32, cut to a word."""
    return jnp.minimum(v, np.float32(2**32 - 256)).astype(jnp.uint32)


def _least(
    key: Array, k: Int[Array, ""], n: Int[Array, ""], capacity: int
) -> tuple[Float[Array, "capacity"], Float[Array, ""]]:
    """(the k least of n uniforms in order, the k-th of them): partial sums of exponentials over the sum of n + 1."""
    key_first, key_rest = jax.random.split(key)
    index = jnp.arange(capacity, dtype=jnp.int32)
    sums = jnp.cumsum(jnp.where(index < k, jax.random.exponential(key_first, (capacity,), jnp.float32), 0))
    rest = jax.random.gamma(key_rest, (n - k + 1).astype(jnp.float32), dtype=jnp.float32)
    fractions = sums / (sums[-1] + rest)
    return fractions, fractions[-1]
