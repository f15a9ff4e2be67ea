"""Permute-and-flip over a wide range, for log weights that are constant on pieces.

Points come up in a random order, and the first whose coin comes up heads is released. A point's coin does so with probability p, the
point's weight over the greatest one. McKenna and Sheldon (2020) show that this is as private as the exponential mechanism with the same
weights, and never worse.

**Privacy.** A race has the same law: point z arrives at time U_z/p_z, with U_z uniform on (0, 1), and the first one wins (Ding et al.
2021; with exponential instead of uniform variables it is the exponential mechanism). So, over 0 < t < 1/p_z,

    P[z] = p_z int prod_{y != z} max{1 - p_y t, 0} dt.

Let the logs of all weights move by amounts that lie within an interval of length R. Only ratios of weights matter, so let p_z stay fixed;
then every other p_y grows by a factor of e^R at most. With t = e^-R s, P[z] after the move is at least e^-R times the same integral over
s < e^R/p_z, which is no less than the one above. R is the range of the moves, not twice the largest one: where the exponential mechanism
is (R, 0)-private, so is this. The exponential mechanism is also R^2/8-zCDP, which this is not: of two points of equal weight, let one fall
by a factor of e; the divergence of (1/2, 1/2) from (1 - 1/(2 e), 1/(2 e)) is 0.255.

**Law.** With N_i points of probability p_i in piece i, no point has arrived by time t with probability e^-L(t),

    L(t) = sum_i -N_i ln(1 - p_i t),

so L at the winner's arrival is a standard exponential variable. Given that the winner arrives at t, a point of piece i weighs
p_i/(1 - p_i t). Permute-and-flip is a mixture of exponential mechanisms: P[a point of piece i] is the mean of these weights' shares. As
functions of L the shares are so smooth (since N_i >= 1, no logarithm of a weight moves faster than L) that `NODES` Gauss-Legendre nodes on
[0, 40] give the means to a relative 5e-13 (the worst of 40 random laws, compared with 400 nodes). The mean serves as a weight for each
piece, from which `exponential_piecewise` finds all laws.

**Utility.** P[z] is p_z times something that grows with p_z. Compared with the exponential mechanism, probability therefore moves towards
the points that weigh more: the points above any given weight are together at least as likely. Let some good point weigh 1, and all bad ones
together s. Then P[bad] <= s/2, half of what is known for the exponential mechanism, as a bad point wins with probability at most
s int_0^1 (1 - t) dt. Where the best pieces have many points each, nothing is gained or lost.

    >>> from dpjax.domains import ordered
    >>> from dpjax.mechanisms import exponential_piecewise, permute_and_flip_piecewise
    >>> one_is_right = ordered.from_breakpoints([0, 2**20, 2**20 + 1], [0.0, 44.0, 0.0], 2**31, beyond=0.0)
    >>> [round(float(made.mechanism(epsilon=1.0).failure_probability(one_is_right, error=1)), 3)
    ...  for made in (exponential_piecewise, permute_and_flip_piecewise)]
    [0.375, 0.248]
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from dpjax.accounting.guarantee import REPLACE_ONE
from dpjax.core import logspace, random
from dpjax.core.pytree import frozen
from dpjax.core.staging import once
from dpjax.domains.ordered import Pieces
from dpjax.mechanisms import exponential_piecewise
from dpjax.mechanisms.exponential_piecewise import (
    ExponentialPiecewise,
    Point,
    everything,
    plain,
    plain_weights,
    uniform_within,
)

NODES = 64
LAST = 40.0  # the last value of L: what lies beyond has probability 4e-18
# Pairs of a node and a piece that are computed at once: few pieces then take fewer turns, and many do not take too much memory.
TOGETHER = 2**14
STEPS = 40  # at most, of Newton's method; half a dozen are usual
# Points proposed in a stretch of a draw, at most: with fewer, there may be none; with more, the first may be refused.
PROPOSED = 8.0


def draw(key: Array, pieces: Pieces, log_density: Float[Array, "pieces"]) -> Point:
    """A point of the whole range, by thinning (Lewis and Shedler 1979): no number is drawn for a piece.

    If no point has arrived by t, points of piece i arrive at a rate of N_i p_i/(1 - p_i t), which is at most N_i p_i/left until 1 - t is
    `left`. So points are proposed by the exponential mechanism at the rate S/left, S = sum_i N_i p_i, and one proposed at t is accepted
    with probability left/(1 - p_i t). At the end of a stretch, 1 - t is a fraction of its value at the start: a half, or so near 1 that
    `PROPOSED` points come up in the stretch. If many points weigh much, the first proposal is accepted.
    """
    key_turns, key_point = jax.random.split(random.for_loops(key))
    beyond = everything(pieces).high
    if plain(pieces):
        log_p = _log_p(log_density, pieces.lengths(beyond) > 0)
        weights = once(plain_weights, pieces, log_p)
        log_sum = jnp.log(jnp.sum(weights))
    else:
        log_count = pieces.log_lengths(beyond)
        log_p = _log_p(log_density, ~jnp.isneginf(log_count))
        logs = log_count + log_p
        best = jnp.max(logs)
        weights = jnp.exp(logs - best)
        log_sum = best + jnp.log(jnp.sum(weights))
    lanes, tree = logspace.in_lanes(weights)
    share = jnp.exp(-log_sum)  # 1/S
    gone = jnp.minimum(0.5, PROPOSED * share)
    proposed = jnp.minimum(jnp.exp(jnp.minimum(log_sum, 2 * PROPOSED) - math.log(2)), PROPOSED) / (1 - gone)

    def turn(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        number, left, piece, _ = state
        rarity = random.exponential(jax.random.fold_in(key_turns, number), (2 + logspace.levels(lanes),))
        wait, patience = rarity[0], rarity[1]
        piece = logspace.choose_lane(rarity[2:], lanes, tree)
        end = left * (1 - gone)
        at = left - end * wait * share
        arrived = wait < proposed
        taken = arrived & (patience > jnp.log(-jnp.expm1(log_p[piece]) + jnp.exp(log_p[piece]) * at) - jnp.log(end))
        return number + 1, jnp.where(arrived, at, end), piece, ~taken

    # The loop does not start if the sum is not finite (no point has a weight, or the data are invalid), as it would never end.
    start = jnp.int32(0), jnp.ones_like(log_sum), jnp.int32(0), jnp.isfinite(log_sum)
    _, _, piece, _ = lax.while_loop(lambda state: state[-1], turn, start)
    return uniform_within(key_point, pieces, piece)


def log_masses(pieces: Pieces, log_density: Float[Array, "pieces"]) -> Float[Array, "pieces"]:
    """ln of the probability of a point of each piece, up to a constant: the density for `exponential_piecewise.law_everywhere`."""
    log_count = pieces.log_lengths(everything(pieces).high)
    log_p = _log_p(log_density, ~jnp.isneginf(log_count))
    position, weight = np.polynomial.legendre.leggauss(NODES)
    level = LAST * (1 + position) / 2
    log_weight = jnp.asarray(np.log(weight) - level, float)

    def density(v: Array) -> Float[Array, "pieces"]:
        return -jnp.log(_left(log_p, v))

    def at(node: tuple[Array, Array]) -> tuple[Array, Array]:
        v = _arrival(log_count, log_p, node[0])
        return v, node[1] - logspace.logsumexp(log_count + log_p + density(v))

    together = max(1, TOGETHER // log_p.shape[0])
    arrival, factor = lax.map(at, (jnp.asarray(level, float), log_weight), batch_size=together)
    factor = factor - jnp.max(factor)

    def add(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        return total + jnp.exp(node[1] + density(node[0])), None

    total, _ = lax.scan(add, jnp.zeros_like(log_p), (arrival, factor))
    return log_p + jnp.log(total)


@frozen
class PermuteAndFlipPiecewise(ExponentialPiecewise):
    """Permute-and-flip over {0, ..., T}, for a quality of sensitivity 1; see the module, and `mechanism`, which makes it.

    Data, events and errors are those of `ExponentialPiecewise`. Its plain twin, point by point, is
    `dpjax.verify.plain.report_noisy_max.permute_and_flip_law`.
    """

    def log_density(self, pieces: Pieces) -> Float[Array, "pieces"]:
        """ln of the probability of a point of each piece, up to a constant."""
        return log_masses(pieces, super().log_density(pieces))

    def draw(self, key: Array, pieces: Pieces) -> Any:
        point = draw(key, pieces, super().log_density(pieces))
        return point.position, jnp.bool_(True), point


def mechanism(*, epsilon: Any, relation: str = REPLACE_ONE) -> PermuteAndFlipPiecewise:
    """Permute-and-flip over pieces, epsilon-private: log weights are epsilon/2 times the quality, and move within a range of epsilon.

    Args:
      epsilon: > 0, finite.
      relation: the one under which the quality has sensitivity 1.

    Raises:
      TypeError, ValueError: epsilon not a finite positive number, or an unknown relation.
    """
    return PermuteAndFlipPiecewise(**vars(exponential_piecewise.mechanism(epsilon=epsilon, relation=relation)))


def _log_p(log_density: Float[Array, "pieces"], there: Bool[Array, "pieces"]) -> Float[Array, "pieces"]:
    """ln p_i, 0 for pieces without a point."""
    best = jnp.max(jnp.where(there, log_density, -jnp.inf))
    return jnp.where(there, log_density - best, 0.0)


def _left(log_p: Float[Array, "pieces"], v: Float[Array, ""]) -> Float[Array, "pieces"]:
    """1 - p t at t = 1 - e^-v, without cancellation: (1 - p) + p e^-v."""
    return -jnp.expm1(log_p) + jnp.exp(log_p - v)


def _arrival(log_count: Float[Array, "pieces"], log_p: Float[Array, "pieces"], level: Float[Array, ""]) -> Array:
    """v with L(1 - e^-v) = level, by Newton's method in the logarithm of v, since v may be as small as 2^-4096.

    L is concave in v and begins at 0 with the slope S = sum_i N_i p_i, so iterates that start at level/S approach the root from below. One
    last step is taken from the result, which is held fixed: its first derivatives are those of the root.
    """

    def step(w: Array, log_count: Array, log_p: Array) -> Array:
        log_value, log_slope = _level(log_count, log_p, w)
        return w + jnp.log1p((level - jnp.exp(log_value)) * jnp.exp(-log_slope))

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        w, before, steps = state
        return (w - before > 4 * jnp.finfo(w.dtype).eps * jnp.maximum(jnp.abs(w), 1.0)) & (steps < STEPS)

    def advance(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w, _, steps = state
        return step(w, *held), w, steps + 1

    held = lax.stop_gradient((log_count, log_p))
    start = jnp.log(level) - logspace.logsumexp(held[0] + held[1])
    w, _, _ = lax.while_loop(unfinished, advance, (start, start - 1.0, jnp.int32(0)))
    return jnp.exp(step(w, log_count, log_p))


def _level(log_count: Array, log_p: Array, w: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """(ln L, ln of v dL/dv) at v = e^w."""
    v = jnp.exp(w)
    left = _left(log_p, v)
    log_t = jnp.where(w < _tiny(w), w, logspace.log1mexp(-v))
    log_pt = log_p + log_t
    # -ln(1 - p t) is p t where that is small; there ln(p t) may be so low that p t itself underflows.
    small, likely = log_pt < _tiny(w), log_pt > -0.7
    unlikely = jnp.where(small | likely, -1.0, log_pt)
    miss = jnp.where(likely, -jnp.log(left), -jnp.log1p(-jnp.exp(unlikely)))
    log_value = logspace.logsumexp(log_count + jnp.where(small, log_pt, jnp.log(miss)))
    return log_value, logspace.logsumexp(log_count + log_p - v - jnp.log(left)) + w


def _tiny(like: Array) -> Array:
    """ln of the x below which floats do not tell 1 - e^-x from x."""
    return jnp.log(jnp.finfo(like.dtype).eps)
