"""SelectTriangle (GEO §5) on large grids, approximately: a Gibbs sampler over the three halfplanes. Nothing is promised for its privacy.

Let h = h_1 and h_2 and h_3 have the law proportional to exp(r q(h)). Given two of the halfplanes, the law of the third is that of
SelectHalfplane on the examples inside those two: the other examples have the label 0 whatever the third is. So every conditional law is
drawn from exactly (`dpjax.learners.halfplanes.refinement`), and a sweep draws all three in turn.

**Mixing.** At the full rate a chain would stay in the first local maximum that it meets: a triangle around half of the target is not
improved by small steps. So

- a chain starts at three random halfplanes, that is at r = 0, and the rate rises during the first half of the sweeps as the fourth power
  of the number of sweeps so far, so that its first steps are small;
- an empty triangle is left soon, at any rate: where h_1 is empty no example is inside h_1 and h_2, so that h_3 is random, and with it
  the wedge in which the next h_1 is searched for;
- several chains run, and one is chosen with the weights exp(sum_j (r_{j+1} - r_j) q(x_j)) of annealed importance sampling (Neal 2001).
  A chain that found no good triangle while the rate rose has a small weight. With infinitely many chains the choice would be exact.

**Diagnostics.** `info["scores"]` holds the scores of all chains after every sweep of every round, and `shrink_factors` compares the chains.
On thousands of examples the chains do not agree at the full rate (factors of 1 to 10): there the choice among chains is what counts.
`dpjax.verify.plain.triangles.gibbs_laws` computes how far the law of one chain is from the exact law where all triples can be listed: on a
grid of side 4 with 42 examples at 14 points, the total variation distance after 8 and 16 sweeps is 0.021 and 0.003 at r = 1, and 0.068 and
0.013 at r = 3; with 10 examples at 6 points and r = 2 it is 0.011 and 0.0002.
"""

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax.concepts.plane.lattice import above
from dpjax.concepts.plane.regions import Region
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.domains import wide
from dpjax.learners.halfplanes import refinement
from dpjax.learners.halfplanes.refinement import Line, Problem
from dpjax.learners.halfplanes.select import Placed
from dpjax.learners.polygons.select_triangle import TriangleSelection


class Found(NamedTuple):
    """What a draw returns.

    Attributes:
      lines: the three halfplanes of the chain that was chosen.
      scores: the score of each chain after every sweep.
    """

    lines: Line
    scores: Float[Array, "*rounds chains sweeps"]


@frozen
class GibbsTriangle(TriangleSelection):
    """One triangle, drawn approximately.

    Attributes:
      sweeps: how many sweeps each chain makes (static).
      chains: how many chains there are (static).
    """

    sweeps: int = static()
    chains: int = static()

    exact: ClassVar[bool] = False  # type: ignore[misc]

    def draw(
        self, key: Array, view: Placed, negative: Any, positive: Any, *, score: Any, rate: Any, dual: bool
    ) -> Found:
        if not dual:
            raise ValueError("dual must be True: the Gibbs sampler is for unions of triangles, got False")
        weights = jnp.stack([view.at_points(negative), view.at_points(positive)])
        problem = Problem(self.grid, view.columns, weights, score, rate, dual)
        key_chains, key_choice = jax.random.split(key)
        lines, log_weights, scores = lax.map(
            lambda each: self._chain(each, problem), jax.random.split(key_chains, self.chains)
        )
        chosen = jax.random.categorical(key_choice, log_weights)
        return Found(jax.tree.map(lambda leaf: leaf[chosen], lines), scores)

    def _chain(self, key: Array, problem: Problem) -> tuple[Line, Float[Array, ""], Float[Array, "sweeps"]]:
        """(where it ends, its weight, the score after each sweep)."""
        key_start, key_sweeps = jax.random.split(key)
        start = _random_lines(key_start, self)
        rates = jnp.asarray(problem.rate, float) * jnp.asarray(ladder(self.sweeps), float)
        steps = jnp.diff(rates, prepend=0.0)

        def sweep(state: Any, given: Any) -> tuple[Any, Array]:
            lines, held, log_weight = state
            key, rate, step = given
            log_weight = log_weight + step * _score(held, problem)

            def turn(state: Any, side: Array) -> tuple[Any, None]:
                lines, held = state
                return _turn(jax.random.fold_in(key, side), side, lines, held, problem._replace(rate=rate)), None

            (lines, held), _ = lax.scan(turn, (lines, held), jnp.arange(3, dtype=jnp.int32))
            return (lines, held, log_weight), _score(held, problem)

        keys = jax.random.split(key_sweeps, self.sweeps)
        state = (start, above(self.grid, *start, problem.columns), jnp.zeros(()))
        (lines, _, log_weight), scores = lax.scan(sweep, state, (keys, rates, steps))
        return lines, log_weight, scores

    def deleted(self, view: Placed, choice: Found, *, dual: bool) -> Bool[Array, "places"]:
        held = jnp.all(above(self.grid, *choice.lines, view.columns), axis=0)
        return view.everywhere(held)

    def released(self, chosen: Found, *, dual: bool) -> Region:
        return self.region(chosen.lines)

    def info(self, chosen: Found) -> dict[str, Any]:
        return {"scores": chosen.scores}


def ladder(sweeps: int) -> Float[np.ndarray, "sweeps"]:
    """The rates of the sweeps, as fractions of the full rate.

    >>> ladder(4).tolist()
    [0.0625, 1.0, 1.0, 1.0]
    """
    return np.minimum(1.0, np.arange(1, sweeps + 1) / max(1, sweeps // 2)) ** 4


def shrink_factors(scores: Float[Array, "*rounds chains sweeps"]) -> Float[np.ndarray, "*rounds"]:
    """Gelman and Rubin's comparison of chains in the second half of the sweeps: about 1 if all chains explore the same region, else larger.

    It is sqrt((W (m - 1)/m + B)/W), where W is the mean, over the chains, of the variance of a chain's m scores, and B is the variance of
    the chains' means; 1 if nothing varies.

    Args:
      scores: `info["scores"]` of a run, or a part of it.

    Raises:
      TypeError, ValueError: scores that are not numbers, or fewer than two chains.

    >>> shrink_factors(np.array([[0, 0, 1, 3], [0, 0, 1, 3]])).item(), shrink_factors(np.array([[0, 1], [0, 2]])).item()
    (0.7071067811865476, inf)
    """
    every = arguments.array("scores", scores).astype(float)
    if every.ndim < 2 or every.shape[-2] < 2 or every.shape[-1] < 1:
        raise ValueError(f"scores must be of two chains or more, (..., chains, sweeps), got shape {every.shape}")
    late = every[..., every.shape[-1] // 2 :]
    m = late.shape[-1]
    within = late.var(axis=-1, ddof=1).mean(axis=-1) if m > 1 else np.zeros(late.shape[:-2])
    between = late.mean(axis=-1).var(axis=-1, ddof=1)
    inner = np.sqrt((m - 1) / m + between / np.where(within > 0, within, 1.0))
    return np.where(within > 0, inner, np.where(between > 0, np.inf, 1.0))


def _score(held: Bool[Array, "3 points"], problem: Problem) -> Float[Array, ""]:
    """q of a triangle."""
    inside = jnp.sum(jnp.where(jnp.all(held, axis=0)[None], problem.weights, 0), axis=1, dtype=jnp.int32)
    return problem.score(inside[0], inside[1])


def _turn(
    key: Array, side: Int[Array, ""], lines: Line, held: Bool[Array, "3 points"], problem: Problem
) -> tuple[Line, Bool[Array, "3 points"]]:
    """One side redrawn, given the other two."""
    inside = jnp.all(held | (jnp.arange(3, dtype=jnp.int32) == side)[:, None], axis=0)
    line, _ = refinement.draw(key, problem._replace(weights=jnp.where(inside[None], problem.weights, 0)))
    mine = above(problem.grid, line.chart[None], line.slope[None], line.height[None], problem.columns)[0]
    return jax.tree.map(lambda leaf, new: leaf.at[side].set(new), lines, line), held.at[side].set(mine)


def _random_lines(key: Array, selection: GibbsTriangle) -> Line:
    """Three random halfplanes from the measure; the block is uniform up to 2^-28."""
    grid = selection.grid
    words = random.bits(key, 3 * (2 * grid.limbs + 1)).reshape(3, -1)
    block = wide.high_product(words[:, -1], jnp.uint32(grid.charts * grid.blocks)).astype(jnp.int32)
    starts = wide.from_ints([each << grid.log_block for each in range(grid.blocks)], 32 * grid.limbs)
    most = wide.from_ints([(1 << grid.log_slopes) - 1, (1 << grid.log_block) - 1], 32 * grid.limbs)
    slope, height = words[:, : grid.limbs] & most[:1], words[:, grid.limbs : -1] & most[1:]
    return Line(chart=block // grid.blocks, slope=slope, height=wide.add(starts[block % grid.blocks], height))
