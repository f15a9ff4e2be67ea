"""TreeLog: the interior point problem by recursion on the levels of a trie (CLNSS §1.3.3; completed here).

One level, on a multiset in {0, ..., 2^h - 1}, under add/remove. Let p be the law of optimal partition selection at (eps, d), g the
least count it surely keeps, and p~(c) = p(c - t1 + 1), q~ = 1 - p~: a coin that never falls below t1 and surely from t2 = t1 + g - 1
on.

1. *Left slice.* The m1 (+ noise) smallest points are set aside.
2. *Walk.* From the root of the binary trie of the rest follow the heavier child (ties: left). At each node, with probability p~ of
   the lighter child's weight, STOP with the last element of the left child's range: both children hold points, so it is interior.
3. *Deep slice.* If the walk never stops: a point's level is the depth of the deepest path node above it. The m2 (+ noise) points of
   greatest level (ties by value) are set aside.
4. *Recursion* on the levels of what is left, numbers in {0, ..., h}: it returns an interior point l of them.
5. *Delayed compute.* Some point left the path at or above depth l, so its node of depth l + 1 holds some points but not all. A_dist
   releases that node as the prefix of l + 1 bits that most of the deep slice has; a noisy count of the left slice tells whether the
   node's least or its greatest element is the interior point.

The last level is the exponential mechanism on the depth min(#<=x, #>=x).

**A walk is (eps, d')-private, and what it hands on is adjacent**, if m2 >= 2 t2 - 3 and 2 t1 >= g - 1, where

    d' = d + e^eps max q~(m) p~(floor(m/2)) over 2 t1 <= m < t2     (so d' = d from t1 = g - 1 on: there is no such m).

Let D be what the left slice left, D' = D + z. "Went on" is one outcome, because the deep slices then are equal, or differ by one
insertion or replacement, and the levels left are equal or differ by one insertion. A walk from a node of weight m stops with
probability at most B(m) = p~(floor(m/2)), 0 below 2 t1: m < 3 t1 here, and a stop at lam >= t1 leaves less than 2 t1.

*No tie broken.* z follows the path to its leaf, or falls into the lighter child of one node u, whose test sees lam + 1 in place of lam.
No other test changes: one (eps, d) event. If both go on, the order of D' is that of D with z inserted at z's level.

*A tie broken at u*, of weight W in D: the walks part there. Either (a) the children weigh w, w and z falls right: both tests see w.
Or (b) they weigh w, w + 1 and z falls left: the tests see w and w + 1. Stops below u have no counterpart in the other run (the value
of a stop tells its node); b and b' are their conditional probabilities.
- w >= t2: both stop at u. w = t2 - 1: in (a) all that is no stop at u has mass q~(t2 - 1) <= d; in (b) D' stops surely, D with
  probability >= 1 - d.
- w <= t2 - 2: then W <= 2 t2 - 3 <= m2. Points outside u have the same levels in both runs, above all of those inside. So the slices
  are u + (the next m2 - W) and u + z + (the next m2 - W - 1), the last point of u left out if m2 = W: one replacement; the levels
  left differ by one insertion. In (a) the excess of one run over e^eps times the other is at most q~(w) max(b, b') <= q~(w) B(w + 1).
  In (b), with m = w + 1: D over D' max(q~(w) b, q~(w) - e^eps q~(m) (1 - b')) <= max(q~(w) B(m), d + e^eps q~(m) B(m)); D' over D at
  most d + q~(m) B(m), or q~(w) B(m). And q~(m - 1) B(m) <= (e^eps q~(m) + d) B(m). All are at most d'.  QED

**N levels and the base** are, by composition, ((4N + 1) eps, N (d' + e^eps d)) with equal budgets, sizes public or not: z in the left
slice pushes its last point into the rest, so both slices may differ by a replacement, under which the count moves by at most 1 and
A_dist is (2 eps, e^eps d). By slicing (`dpjax.accounting.slicing`) a compute costs eps on slices that differ by an insertion, 2 eps
by a replacement, and the walks are composed on top. The order is no adjacency-preserving map: below a broken tie k points of D' are k
- 1 points of D and z only for k > W. So m2 >= K = 2 t2 - 2 is asked for.

(The walk's theorem is sharp: at t1 = g - 2 and d' = d, or with m2 = 2 t2 - 4, small datasets exceed it; see the tests. A simpler
choice that also works is t1 = g + 2, K = 2 t2 + 1.)

**One algorithm, two uses.** `walk`, `remainder`, `choose` and `base_log_law` are pure functions of the data and the choices so far.
`sample` draws a choice and calls the next; `law` calls the next for every choice and adds up.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import logspace, random
from dpjax.core.pytree import frozen, static
from dpjax.domains import trie
from dpjax.domains.trie import Path, Trie
from dpjax.mechanisms import exponential, laplace, partition_selection, stability
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.mechanisms.geometric import one_sided_geometric
from dpjax.optimizers import depth

NOTHING = np.int32(2**31 - 1)  # sorts behind every level


@frozen
class Parameters:
    """What a run may spend and how it cuts; see `dpjax.optimizers.tree_log_budget` for a choice that keeps a total.

    Attributes:
      walk_epsilon, walk_delta: those of the partition selection that stops the walk.
      select_epsilon, select_delta: A_dist on the deep slice.
      count_epsilon: the noisy count of the left slice.
      base_epsilon: the exponential mechanism at the end.
      slice_epsilon: noise Geom(1 - e^-slice_epsilon) on the slices' sizes; not used unless `noisy`.
      left, deep: m1 and m2.
      never_below: t1.
      at: the anchors of partition selection at (walk_epsilon, walk_delta).
      depth: number N of levels before the last (static).
      noisy: whether the slices' sizes are noisy, as Reorder-Slice-Compute asks (static).
    """

    walk_epsilon: Any
    walk_delta: Any
    select_epsilon: Any
    select_delta: Any
    count_epsilon: Any
    base_epsilon: Any
    slice_epsilon: Any
    left: Any
    deep: Any
    never_below: Any
    at: partition_selection.Anchors
    depth: int = static()
    noisy: bool = static()


class Answer(NamedTuple):
    """An element of the domain: the first `length` bits of a point, then all ones (`upper`) or all zeros.

    `point` is the point's index, or -1 for the element 0...0.
    """

    point: Int[Array, "*s"]
    length: Int[Array, "*s"]
    upper: Bool[Array, "*s"]


def number(answer: Answer, x: Int[Array, "rows"], bits: Int[Array, ""]) -> Int[Array, "*s"]:
    """The answer in a trie of int32 numbers."""
    prefix = jnp.where(answer.point < 0, 0, x[jnp.maximum(answer.point, 0)])
    tail = (jnp.int32(1) << (bits - answer.length)) - 1
    return jnp.where(answer.upper, prefix | tail, prefix & ~tail)


# ----------------------------------------------------------------------------------------------------- steps 1 to 3


@frozen
class Walk:
    """Steps 1 and 2: the path, and where it may stop.

    Attributes:
      levels: levels of all points below the root in increasing order, NOTHING behind them.
      weight: at the first entry of each level below the leaf, the lighter child's weight there; 0 at all other entries.
      slice: number of points in the left slice.
      rest: number of points below the root.
    """

    path: Path
    levels: Int[Array, "rows"]
    weight: Int[Array, "rows"]
    slice: Int[Array, ""]
    rest: Int[Array, ""]


def walk(tree: Trie, left: Int[Array, ""]) -> Walk:
    """The walk when the left slice is to hold `left` points (or all there are)."""
    taken = jnp.minimum(left, tree.n_valid)
    path = trie.heavy_path(tree, taken)
    levels = lax.sort(jnp.where(path.level >= 0, path.level, NOTHING))
    begins = jnp.concatenate([jnp.ones((1,), bool), levels[1:] != levels[:-1]])
    index = tree.index
    rows = index.shape[0]
    starts = jnp.where(begins, index, rows)
    following = jnp.concatenate([lax.cummin(starts, reverse=True)[1:], jnp.full((1,), rows, jnp.int32)])
    # Points that leave the path at one node are its lighter child. At the leaf nobody leaves.
    weight = jnp.where(begins & (levels < tree.bits), following - index, 0)
    return Walk(path=path, levels=levels, weight=weight, slice=taken, rest=tree.n_valid - taken)


def log_stop(walked: Walk, parameters: Parameters) -> tuple[Float[Array, "rows"], Float[Array, "rows"]]:
    """(ln p~, ln(1 - p~)) for the node at which each level is left."""
    count = jnp.maximum(walked.weight - parameters.never_below + 1, 0)
    return partition_selection.log_keep(
        count, epsilon=parameters.walk_epsilon, delta=parameters.walk_delta, at=parameters.at
    )


def stop_answer(tree: Trie, walked: Walk, level: Int[Array, ""]) -> Answer:
    """The last element of the left child of the path's node at depth `level`, at which some points leave the path."""
    leaves = walked.path.level == level
    on_left = leaves & (tree.index < walked.path.center)
    behind = jnp.argmax(leaves).astype(jnp.int32) - 1  # if they leave to the right, the path goes on in the left child
    last = jnp.max(jnp.where(on_left, tree.index, -1))
    return Answer(point=jnp.where(last >= 0, last, behind), length=level + 1, upper=jnp.bool_(True))


def remainder(walked: Walk, deep: Int[Array, ""]) -> tuple[Int[Array, "rows"], Int[Array, ""], Int[Array, ""]]:
    """(levels left behind the deep slice, how many, number of points in the deep slice)."""
    taken = jnp.minimum(deep, walked.rest)
    count = walked.rest - taken
    index = jnp.arange(walked.levels.shape[0], dtype=jnp.int32)
    return jnp.where(index < count, walked.levels, NOTHING), count, taken


def deep_slice(tree: Trie, walked: Walk, taken: Int[Array, ""]) -> Bool[Array, "rows"]:
    """Which points are the first `taken` of the deepest-first order, ties by value."""
    level, index = walked.path.level, tree.index
    cut = walked.levels[jnp.maximum(walked.rest - taken, 0)]  # the level of the last point taken
    deeper = jnp.sum(level > cut, dtype=jnp.int32)
    tied = level == cut  # neighbours in the order: they left the path together
    first = jnp.argmax(tied).astype(jnp.int32)
    return ((level > cut) | (tied & (index - first < taken - deeper))) & (taken > 0)


# ----------------------------------------------------------------------------------------------------- steps 4 and 5


def level_bits(bits: Int[Array, ""]) -> Int[Array, ""]:
    """Bits of the numbers 0, ..., bits."""
    return (32 - lax.clz(jnp.asarray(bits, jnp.int32))).astype(jnp.int32)


def base_log_law(
    levels: Int[Array, "rows"], count: Int[Array, ""], bits: Int[Array, ""], size: int, epsilon: Any
) -> Float[Array, "size"]:
    """The exponential mechanism on the depth over {0, ..., 2^bits - 1}: ln P of 0, ..., size - 1 (-inf past 2^bits)."""
    point = jnp.arange(size, dtype=jnp.int32)
    below = jnp.searchsorted(levels, point, side="right").astype(jnp.int32)
    above = count - jnp.searchsorted(levels, point, side="left").astype(jnp.int32)
    quality = jnp.minimum(below, above)
    return exponential.log_pmf(quality, epsilon=epsilon, where=point < (jnp.int32(1) << bits), monotone=True)


class Choice(NamedTuple):
    """Step 5 given l: the node, the odds that A_dist releases it, and the odds that its least element is then the answer."""

    point: Int[Array, ""]
    length: Int[Array, ""]
    log_release: Float[Array, ""]
    log_bottom: Float[Array, ""]
    log_least: Float[Array, ""]
    log_greatest: Float[Array, ""]


def choose(
    tree: Trie, walked: Walk, marked: Bool[Array, "rows"], level: Int[Array, ""], parameters: Parameters
) -> Choice:
    """What the two slices say of the path's node of depth level + 1."""
    length = jnp.minimum(level + 1, tree.bits)
    node = trie.heaviest_prefix(tree, marked, length)
    release, bottom = stability.log_keep(
        node.gap, epsilon=parameters.select_epsilon, delta=parameters.select_delta, calibration="proved_counts"
    )
    count = jnp.minimum(node.before, walked.slice).astype(float)
    enough = jnp.asarray(parameters.left, float) / 2
    greatest, least = laplace.log_tails((enough - count) * jnp.asarray(parameters.count_epsilon, float))
    return Choice(node.point, length, release, bottom, least, greatest)


# ---------------------------------------------------------------------------------------------------------- sampler


@frozen
class Run:
    """One run: the answer, whether there is one, and what was chosen at the topmost level.

    Attributes:
      stopped: whether the walk stopped.
      level: the recursion's answer l (it means nothing if the walk stopped).
    """

    answer: Answer
    found: Bool[Array, ""]
    stopped: Bool[Array, ""]
    level: Int[Array, ""]


def sample(key: Array, tree: Trie, parameters: Parameters, limit: int) -> Run:
    """One run. `limit` >= tree.bits is a static bound; parameters.depth >= 1."""
    key_left, key_walk, key_deep, key_next, key_release, key_side = jax.random.split(key, 6)
    walked = walk(tree, parameters.left + noise(key_left, parameters))
    stops = _coins(key_walk, *log_stop(walked, parameters))
    stop = walked.levels[jnp.argmax(stops)]
    levels, count, taken = remainder(walked, parameters.deep + noise(key_deep, parameters))
    level, below = _sample_level(key_next, levels, count, tree.bits, parameters, limit)
    choice = choose(tree, walked, deep_slice(tree, walked, taken), level, parameters)
    released = random.bernoulli(key_release, choice.log_release, choice.log_bottom)
    least = random.bernoulli(key_side, choice.log_least, choice.log_greatest)
    stopped = jnp.any(stops)
    chosen = Answer(choice.point, choice.length, ~least)
    answer = jax.tree.map(lambda a, b: jnp.where(stopped, a, b), stop_answer(tree, walked, stop), chosen)
    return Run(answer=answer, found=stopped | (below & released), stopped=stopped, level=level)


def _sample_level(
    key: Array, levels: Array, count: Array, bits: Array, parameters: Parameters, limit: int
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Step 4: an interior point of the levels, cut to at most `bits`; and whether there is one."""
    inner = level_bits(bits)
    if parameters.depth == 1:
        level, found = _sample_base(key, levels, count, inner, parameters, limit), jnp.bool_(True)
    else:
        run = sample(
            key,
            trie.from_numbers(levels, count, inner),
            dataclasses.replace(parameters, depth=parameters.depth - 1),
            limit.bit_length(),
        )
        level, found = number(run.answer, levels, inner), run.found
    return jnp.minimum(level, bits), found


def _sample_base(
    key: Array, levels: Array, count: Array, bits: Array, parameters: Parameters, limit: int
) -> Int[Array, ""]:
    """A draw of `base_log_law`: over all numbers, or over the pieces between the levels where those are fewer."""
    size = 1 << limit.bit_length()
    if size <= levels.shape[0]:
        return exponential.draw(key, base_log_law(levels, count, bits, size, parameters.base_epsilon)).index
    quality = depth.pieces(levels.astype(jnp.uint32)[:, None], count, bits, 1)
    density = piecewise.log_density(quality, 2 * jnp.asarray(parameters.base_epsilon, float))  # the depth is monotone
    return piecewise.draw_everywhere(key, quality, density).position[-1].astype(jnp.int32)


def noise(key: Array, parameters: Parameters, shape: tuple[int, ...] = ()) -> Int[Array, "*s"]:
    """Noise on the sizes of slices."""
    if not parameters.noisy:
        return jnp.zeros(shape, jnp.int32)
    # Cut far beyond any number of points, so that a size cannot overflow.
    return jnp.minimum(one_sided_geometric(key, shape, epsilon=parameters.slice_epsilon), 1 << 30)


def _coins(key: Array, log_p: Array, log_q: Array) -> Bool[Array, "rows"]:
    """Fresh coins; what is certain is not left to the coin."""
    return (random.bernoulli(key, log_p, log_q) & (log_p > -jnp.inf)) | (log_q == -jnp.inf)


# -------------------------------------------------------------------------------------------------------------- law


@frozen
class Law:
    """The law of a level's answer, as atoms: three for each level l = 0, ..., limit, with the logs of their probabilities.

    Attributes:
      stop, log_stop: the walk stops at the node of depth l.
      least, log_least: the recursion returns l, and the node's least element is the answer.
      greatest, log_greatest: the same with its greatest element.
      log_bottom: no answer.
    """

    stop: Answer
    least: Answer
    greatest: Answer
    log_stop: Float[Array, "levels"]
    log_least: Float[Array, "levels"]
    log_greatest: Float[Array, "levels"]
    log_bottom: Float[Array, ""]

    def atoms(self) -> tuple[tuple[Answer, Float[Array, "levels"]], ...]:
        """Answers with their log probabilities."""
        return (self.stop, self.log_stop), (self.least, self.log_least), (self.greatest, self.log_greatest)


def law(tree: Trie, parameters: Parameters, limit: int, sizes: Int[Array, "depth 2"]) -> Law:
    """The law of the answer given the sizes of the left and the deep slice of each level, topmost first."""
    walked = walk(tree, sizes[0, 0])
    log_p, log_q = log_stop(walked, parameters)
    through = jnp.cumsum(log_q)
    before = jnp.concatenate([jnp.zeros((1,), log_q.dtype), through[:-1]])
    log_stops = jnp.where(jnp.isneginf(log_p), -jnp.inf, before + log_p)
    levels, count, taken = remainder(walked, sizes[0, 1])
    marked = deep_slice(tree, walked, taken)
    recursion, log_none = _level_log_law(levels, count, tree.bits, parameters, limit, sizes[1:])

    def given(level: Array) -> tuple[Answer, Array, Choice]:
        entry = jnp.minimum(jnp.searchsorted(walked.levels, level), walked.levels.shape[0] - 1)
        log_p = jnp.where(walked.levels[entry] == level, log_stops[entry], -jnp.inf)
        return stop_answer(tree, walked, level), log_p, choose(tree, walked, marked, level, parameters)

    each = jnp.arange(limit + 1, dtype=jnp.int32)
    stop, log_stopped, choice = lax.map(given, each, batch_size=64)
    weight = through[-1] + recursion
    upper = jnp.ones(each.shape, bool)
    return Law(
        stop=stop,
        least=Answer(choice.point, choice.length, ~upper),
        greatest=Answer(choice.point, choice.length, upper),
        log_stop=log_stopped,
        log_least=weight + choice.log_release + choice.log_least,
        log_greatest=weight + choice.log_release + choice.log_greatest,
        log_bottom=logspace.logsumexp(jnp.append(weight + choice.log_bottom, through[-1] + log_none)),
    )


def _level_log_law(
    levels: Array, count: Array, bits: Array, parameters: Parameters, limit: int, sizes: Array
) -> tuple[Float[Array, "levels"], Float[Array, ""]]:
    """Step 4: ln P[l] for l = 0, ..., limit (cut to at most `bits`), and ln P[no l]."""
    inner, size = level_bits(bits), 1 << limit.bit_length()
    none = jnp.full((), -jnp.inf)
    if parameters.depth == 1:
        log_law = base_log_law(levels, count, inner, size, parameters.base_epsilon)
    else:
        below = law(
            trie.from_numbers(levels, count, inner),
            dataclasses.replace(parameters, depth=parameters.depth - 1),
            limit.bit_length(),
            sizes,
        )
        log_law, none = _dense(below, levels, inner, size), below.log_bottom
    point = jnp.minimum(jnp.arange(size, dtype=jnp.int32), bits)
    return _scatter(jnp.full((limit + 1,), -jnp.inf), point, log_law), none


def _dense(law_given: Law, x: Int[Array, "rows"], bits: Int[Array, ""], size: int) -> Float[Array, "size"]:
    """ln P of each number."""
    log_law = jnp.full((size,), -jnp.inf)
    for answer, log_p in law_given.atoms():
        log_law = _scatter(log_law, number(answer, x, bits), log_p)
    return log_law


def _scatter(log_law: Array, point: Array, log_p: Array) -> Array:
    """Adds probabilities to the entries of a law, in logs."""
    top = jnp.max(log_p)
    top = jnp.where(jnp.isneginf(top), 0.0, top)
    return logspace.logaddexp(log_law, top + jnp.log(jnp.zeros_like(log_law).at[point].add(jnp.exp(log_p - top))))
