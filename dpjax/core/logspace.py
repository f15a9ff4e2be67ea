"""Sums of weights kept as logarithms: lengths run to 2^4096 and quality weights to exp(+-1000)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from dpjax.core import random

LANES = 64  # weights that are added side by side: full vectors
ROW = 32  # leaves of a subtree that is examined by itself


def log1mexp(log_p: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """ln(1 - exp(log_p)) for log_p <= 0, accurate at both ends (Maechler 2012); safe under differentiation, at 0 as `log` is."""
    near_zero = log_p > -0.6931472
    # Each branch sees a harmless argument where the other one is chosen: otherwise its gradient would be NaN.
    close = jnp.where(near_zero, log_p, -1.0)
    far = jnp.where(near_zero, -1.0, log_p)
    return jnp.where(near_zero, log(-jnp.expm1(close)), jnp.log1p(-jnp.exp(far)))


def greater_of(a: Float[Array, "*#s"] | float, b: Float[Array, "*#s"]) -> Float[Array, "*s"]:
    """The greater of two numbers, with its derivative.

    The derivative of `jnp.maximum` is that of the side equal to the result. XLA computes both sides again where it needs them, in another
    fusion and so with other rounding, and then neither may be equal: the derivative is lost. This function compares the sides.

    >>> greater_of(0.0, jnp.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return jnp.where(a >= b, a, b)


def lesser_of(a: Float[Array, "*#s"] | float, b: Float[Array, "*#s"]) -> Float[Array, "*s"]:
    """The lesser of two numbers, with its derivative; see `greater_of`."""
    return jnp.where(a <= b, a, b)


def sum_tree(log_weights: Float[Array, "leaves"]) -> Float[Array, "nodes"]:
    """All partial sums of weights, in logs: node 1 is the total, node i has children 2i and 2i+1.

    The number of leaves is a power of two: the weights are padded with weights of 0. The tree is built from additions of positive terms
    only, so every `range_sum` keeps full relative accuracy, however much smaller than the total it is (a difference of prefix sums would
    lose it).
    """
    return _tree(log_weights, logaddexp, -jnp.inf)


def plain_tree(weights: Float[Array, "leaves"]) -> Float[Array, "nodes"]:
    """`sum_tree` for weights >= 0 that are not logarithms: it saves an exponential and a logarithm for each, but loses all below 1e-38."""
    return _tree(weights, jnp.add, 0.0)


def _tree(weights: Array, add: Callable[[Array, Array], Array], nothing: float) -> Array:
    count = weights.shape[0]
    levels = [jnp.pad(weights, (0, (1 << (count - 1).bit_length()) - count), constant_values=nothing)]
    while levels[-1].shape[0] > 1:
        below = levels[-1].reshape(-1, 2)
        levels.append(add(below[:, 0], below[:, 1]))
    return jnp.concatenate([levels[-1], *reversed(levels)])  # entry 0 is not used


def range_sum(tree: Float[Array, "*k nodes"], start: Int[Array, ""], stop: Int[Array, ""]) -> Float[Array, "*k"]:
    """ln of the sum of weights start, ..., stop-1 (nothing when stop <= start), for each of several trees at once."""
    leaves = tree.shape[-1] // 2
    # The classical bottom-up walk over a segment tree takes at most two nodes a level: one at `low`, one before `high`. On the level above,
    # both are halved, `low` rounded up and `high` down. All levels at once: a chain of halvings would be computed anew for each.
    level = jnp.arange(leaves.bit_length(), dtype=jnp.int32)
    low = (start + leaves + (1 << level) - 1) >> level
    high = (jnp.maximum(start, stop) + leaves) >> level
    nodes, odd = jnp.stack([low, high - 1], axis=-1), jnp.stack([low, high], axis=-1) % 2 == 1
    taken = (low < high)[:, None] & odd
    terms = jnp.where(taken.reshape(-1), tree[..., nodes.reshape(-1)], -jnp.inf)
    return logsumexp(terms)


def log(p: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """ln p; at 0, whose derivative is infinite, it passes none on: times a derivative of 0 it would be NaN.

    >>> float(jax.grad(lambda t: log(t * jnp.array([0.5, 0.0]))[0])(1.0)), float(log(jnp.array(0.0)))
    (1.0, -inf)
    """
    return jnp.where(p == 0, -jnp.inf, jnp.log(jnp.where(p == 0, 1.0, p)))


def logaddexp(a: Float[Array, "*s"], b: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """ln(exp a + exp b); where both are -inf so is the result, with a zero gradient (JAX's own is NaN there)."""
    nothing = jnp.isneginf(a) & jnp.isneginf(b)
    return jnp.where(nothing, -jnp.inf, jnp.logaddexp(jnp.where(nothing, 0.0, a), jnp.where(nothing, 0.0, b)))


def logsumexp(terms: Float[Array, "*k n"]) -> Float[Array, "*k"]:
    """ln of the sum of exp over the last axis; -inf, with a zero gradient rather than NaN, where all terms are -inf."""
    nothing = jnp.all(jnp.isneginf(terms), axis=-1)
    safe = jnp.where(nothing[..., None], 0.0, terms)
    return jnp.where(nothing, -jnp.inf, jax.nn.logsumexp(safe, axis=-1))


def finite(log: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """The logarithm, but 0 where it is -inf: it may be subtracted even from logarithms that are all -inf."""
    return jnp.where(jnp.isneginf(log), 0.0, log)


def draw(key: Array, tree: Float[Array, "nodes"]) -> Int[Array, ""]:
    """A leaf, with probability proportional to its weight: one exact-tailed coin a level.

    An all-zero tree (total -inf) gives an arbitrary leaf: callers test `tree[1]` first.
    """
    depth = tree.shape[0].bit_length() - 2
    return descend(random.exponential(key, (max(depth, 1),)), tree)


def descend(
    rarity: Float[Array, "levels"], tree: Float[Array, "nodes"], log: Callable[[Array], Array] = lambda x: x
) -> Int[Array, ""]:
    """`draw` given one standard exponential a level; log=jnp.log for a `plain_tree`."""
    leaves = tree.shape[0] // 2
    depth = leaves.bit_length() - 1

    def step(level: Array, node: Array) -> Array:
        left, right, total = log(tree[2 * node]), log(tree[2 * node + 1]), log(tree[node])
        total = finite(total)
        # Variates are used from the leaves upward, so that padding the leaves shifts none of them.
        return 2 * node + random.decide(rarity[depth - 1 - level], right - total, left - total).astype(jnp.int32)

    return jax.lax.fori_loop(0, depth, step, jnp.int32(1)) - leaves


def descend_plain(rarity: Float[Array, "levels"], weights: Float[Array, "leaves"]) -> Int[Array, ""]:
    """descend(rarity, plain_tree(weights), jnp.log), without building all of the tree: first sums of rows of 32, then the chosen row.

    A sum of 32 positive terms is right to a relative 2e-6 in float32, that of the tree to 3e-7: where a coin is that close to its
    threshold, the leaf may be another one.
    """
    if weights.shape[0] <= 2 * ROW:
        return descend(rarity, plain_tree(weights), jnp.log)
    rows, within = weights.reshape(-1, ROW), ROW.bit_length() - 1
    row = descend_plain(rarity[within:], jnp.sum(rows, axis=1))
    return row * ROW + descend(rarity[:within], plain_tree(rows[row]), jnp.log)


def choose(key: Array, weights: Float[Array, "n"]) -> Int[Array, ""]:
    """An index with probability proportional to its weight >= 0, exact down to what float32 can hold beside the largest.

    The weights are added up in `LANES` lanes, of equal rank modulo `LANES`, along vectors; one draw chooses the lane, another one the
    weight within it. n is a power of two, or a multiple of `LANES`. If all weights are 0, the index is arbitrary.
    """
    lanes, tree = in_lanes(weights)
    return choose_lane(random.exponential(key, (levels(lanes),)), lanes, tree)


def in_lanes(weights: Float[Array, "n"]) -> tuple[Float[Array, "rows lanes"], Float[Array, "nodes"]]:
    """(The weights in lanes, the partial sums of whole lanes), for several draws by `choose_lane`."""
    lanes = weights.reshape(-1, min(weights.shape[0], LANES))
    return lanes, plain_tree(jnp.sum(lanes, axis=0))


def levels(lanes: Float[Array, "rows lanes"]) -> int:
    """How many variates a draw by `choose_lane` takes."""
    return LANES.bit_length() + (lanes.shape[0] - 1).bit_length()


def choose_lane(
    rarity: Float[Array, "levels"], lanes: Float[Array, "rows lanes"], tree: Float[Array, "nodes"]
) -> Int[Array, ""]:
    """`choose` given one standard exponential a level."""
    within = LANES.bit_length() - 1
    lane = descend(rarity[:within], tree, jnp.log)
    return descend(rarity[within:], plain_tree(lanes[:, lane]), jnp.log) * lanes.shape[1] + lane


def all_happen(laws: Float[Array, "k 2"]) -> Float[Array, "2"]:
    """(prod p_j, 1 - prod p_j) of k independent events with laws (p_j, q_j), the latter without cancellation.

    >>> [f"{p:.6g}" for p in all_happen(jnp.array([[1.0, 1e-12], [1.0, 1e-12]])).tolist()]
    ['1', '2e-12']
    """
    p, q = laws[:, 0], laws[:, 1]
    near = q < 0.5  # then p may have been rounded to 1, and what a million such factors lack would be lost
    likely = jnp.exp(jnp.sum(jnp.log1p(-jnp.where(near, q, 0.0))))
    return jnp.stack([likely * jnp.prod(jnp.where(near, 1.0, p)), any_fails(q)])


def any_fails(failures: Float[Array, "k"]) -> Float[Array, ""]:
    """1 - prod (1 - f_j), without cancellation: the probability that at least one of k independent events happens.

    It has derivatives where some are certain, too.

    >>> jax.grad(any_fails)(jnp.array([1.0, 0.25])).tolist()
    [0.75, 0.0]
    """
    possible = failures < 1  # else the gradient would be NaN where one is certain
    each = jnp.where(possible, failures, 0.0)
    return jnp.where(jnp.all(possible), 0.0 - jnp.expm1(jnp.sum(jnp.log1p(-each))), 1 - jnp.prod(1 - failures))
