"""TreeLog: the interior point problem by recursion on the levels of a trie (Kaplan, Ligett, Mansour, Naor, Stemmer 2020;
CLNSS §1.3.3; completed here).

One level, on a multiset in {0, ..., 2^h - 1}, under add/remove. Let p be the law of optimal partition selection at (eps, d), g the least
count that it keeps with certainty, and p~(c) = p(c - t1 + 1), q~ = 1 - p~: a coin that never comes up below t1, and always from
t2 = t1 + g - 1 on.

1. *Left slice.* The m1 (+ noise) smallest points are set aside.
2. *Walk.* From the root of the binary trie of the rest, follow the heavier child (ties: left). At each node, with probability p~ of the
   lighter child's weight, STOP with the last element of the left child's range: both children hold points, so it is interior.
3. *Deep slice.* If the walk never stops: a point's level is the depth of the deepest path node above it. The m2 (+ noise) points of
   greatest level (ties by value) are set aside.
4. *Recursion* on the levels of the points that are left, numbers in {0, ..., h}: it returns an interior point l of them.
5. *Delayed compute.* Some point left the path at or above depth l, so its node of depth l + 1 holds some points but not all. A_dist
   releases that node as the prefix of l + 1 bits that most of the deep slice has; a noisy count of the left slice decides whether the
   node's least or its greatest element is the interior point.

The last level is the exponential mechanism on the depth min(#<=x, #>=x).

**A walk is (eps, d')-private, and what it hands on is adjacent**, if m2 >= 2 t2 - 3 and 2 t1 >= g - 1, where

    d' = d + e^eps max q~(m) p~(floor(m/2)) over 2 t1 <= m < t2     (so d' = d from t1 = g - 1 on: there is no such m).

Let D be what the left slice leaves, and D' = D + z. "Went on" is one outcome, because then the deep slices are equal, or differ by one
insertion or replacement, and the levels left are equal or differ by one insertion. A walk from a node of weight m stops with probability at
most B(m) = p~(floor(m/2)), 0 below 2 t1: m < 3 t1 here, and a stop at lam >= t1 leaves less than 2 t1.

*No tie broken.* z follows the path to its leaf, or falls into the lighter child of one node u, whose test sees lam + 1 in place of lam.
No other test changes: one (eps, d) event. If both go on, the order of D' is that of D with z inserted at z's level.

*A tie broken at u*, of weight W in D: the walks part there. Either (a) the children weigh w and w, and z falls right: both tests see w. Or
(b) they weigh w and w + 1, and z falls left: the tests see w and w + 1. Stops below u have no counterpart in the other run (the value of a
stop tells its node); b and b' are their conditional probabilities.
- w >= t2: both stop at u. w = t2 - 1: in (a) everything but a stop at u has mass q~(t2 - 1) <= d; in (b) D' stops with certainty, D with
  probability >= 1 - d.
- w <= t2 - 2: then W <= 2 t2 - 3 <= m2. Points outside u have the same levels in both runs, above all of those inside. So the slices
  are u + (the next m2 - W) and u + z + (the next m2 - W - 1), the last point of u left out if m2 = W: one replacement; the levels
  left differ by one insertion. In (a) the excess of one run over e^eps times the other is at most q~(w) max(b, b') <= q~(w) B(w + 1).
  In (b), with m = w + 1: D over D' max(q~(w) b, q~(w) - e^eps q~(m) (1 - b')) <= max(q~(w) B(m), d + e^eps q~(m) B(m)); D' over D at
  most d + q~(m) B(m), or q~(w) B(m). And q~(m - 1) B(m) <= (e^eps q~(m) + d) B(m). All are at most d'.  QED

**N levels and the base** are, by composition, ((4N + 1) eps, N (d' + e^eps d)) with equal budgets, sizes public or not: z in the left
slice pushes its last point into the rest, so both slices may differ by a replacement, under which the count moves by at most 1 and
A_dist is (2 eps, e^eps d). By slicing (`dpjax.accounting.slicing`) a compute costs eps on slices that differ by an insertion, 2 eps
by a replacement, and the walks are composed on top. The order is not an adjacency-preserving map: below a broken tie, k points of D' are
k - 1 points of D and z only for k > W. So m2 >= K = 2 t2 - 2 is required.

(The walk's theorem is sharp: at t1 = g - 2 and d' = d, or with m2 = 2 t2 - 4, small datasets exceed it; see the tests. A simpler
choice that also works is t1 = g + 2, K = 2 t2 + 1.)

**One algorithm, two uses.** `walk`, `remainder`, `choose` and `base_log_law` are pure functions of the data and the choices so far.
`sample` draws a choice and calls the next function; `law` calls it for every choice and adds up.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import bits as packed
from dpjax.core import logspace, random
from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen, static
from dpjax.core.staging import unless
from dpjax.domains import trie
from dpjax.domains.trie import Heaviest, Path, Trie
from dpjax.mechanisms import exponential, laplace, partition_selection, stability
from dpjax.mechanisms import exponential_piecewise as piecewise
from dpjax.mechanisms.geometric import one_sided_geometric
from dpjax.optimizers.interior_point import depth

NOTHING = np.int32(2**31 - 1)  # sorts behind every level


@frozen
class Parameters:
    """The budgets of a run, and where it cuts; see `dpjax.optimizers.interior_point.planning` for a choice that keeps a total.

    Attributes:
      walk_epsilon, walk_delta: those of the partition selection that stops the walk.
      select_epsilon, select_delta: those of A_dist on the deep slice.
      count_epsilon: that of the noisy count of the left slice.
      base_epsilon: that of the exponential mechanism at the end.
      slice_epsilon: that of the noise Geom(1 - e^-slice_epsilon) on the slices' sizes; not used unless `noisy`.
      left, deep: m1 and m2.
      never_below: t1.
      at: the anchors of partition selection at (walk_epsilon, walk_delta).
      depth: number N of levels before the last (static).
      noisy: whether the slices' sizes are noisy, as Reorder-Slice-Compute requires (static).
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

    def sound(self) -> Bool[Array, ""]:
        """Whether each of them is in its range."""
        epsilons = [self.walk_epsilon, self.select_epsilon, self.count_epsilon, self.base_epsilon]
        epsilons += [self.slice_epsilon] if self.noisy else []
        deltas = [self.walk_delta, self.select_delta]
        good = [(jnp.asarray(epsilon, float) > 0) & (jnp.asarray(epsilon, float) < jnp.inf) for epsilon in epsilons]
        good += [(jnp.asarray(delta, float) > 0) & (jnp.asarray(delta, float) < 1) for delta in deltas]
        good += [jnp.asarray(count, jnp.int32) >= 1 for count in (self.left, self.deep, self.never_below)]
        return jnp.all(jnp.stack(good))


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
class Levels:
    """A multiset of levels, by value.

    Attributes:
      level: the levels, increasing.
      up_to: how many are at most level[i], where level[i + 1] differs from it.
      count: how many there are.
    """

    level: Int[Array, "nodes"]
    up_to: Int[Array, "nodes"]
    count: Int[Array, ""]

    def listed(self, rows: int) -> Int[Array, "rows"]:
        """All of them in increasing order, NOTHING behind them."""
        index = jnp.arange(rows, dtype=jnp.int32)
        node = jnp.searchsorted(self.up_to, index, side="right")
        return jnp.where(index < self.count, self.level[jnp.minimum(node, self.level.shape[0] - 1)], NOTHING)

    def counts(self, size: int) -> Int[Array, "size"]:
        """How often each of 0, ..., size - 1 occurs."""
        each = self.up_to - jnp.concatenate([jnp.zeros((1,), jnp.int32), self.up_to[:-1]])
        return jnp.zeros((size,), jnp.int32).at[self.level].add(each)


@frozen
class Walk:
    """Steps 1 and 2: the path, and how the points are divided.

    Attributes:
      slice: number of points in the left slice.
      rest: number of points below the root.
    """

    path: Path
    slice: Int[Array, ""]
    rest: Int[Array, ""]


def walk(tree: Trie, left: Int[Array, ""], limit: int) -> Walk:
    """The walk when the left slice is to hold `left` points (or all there are); `limit` >= tree.bits is a static bound."""
    taken = jnp.minimum(left, tree.n_valid)
    return Walk(path=trie.heavy_path(tree, taken, limit), slice=taken, rest=tree.n_valid - taken)


def log_stop(tree: Trie, walked: Walk, parameters: Parameters) -> tuple[Float[Array, "nodes"], Float[Array, "nodes"]]:
    """(ln p~, ln(1 - p~)) for each node of the path."""
    lighter = jnp.where(walked.path.depth < tree.bits, walked.path.leaving, 0)
    return partition_selection.log_keep(
        jnp.maximum(lighter - parameters.never_below + 1, 0),
        epsilon=parameters.walk_epsilon,
        delta=parameters.walk_delta,
        at=parameters.at,
    )


def stop_answer(walked: Walk, node: Int[Array, "*s"]) -> Answer:
    """The last element of the left child of a node of the path."""
    path = walked.path
    return Answer(point=path.split[node] - 1, length=path.depth[node] + 1, upper=jnp.ones(jnp.shape(node), bool))


@frozen
class Deep:
    """Step 3: the deep slice, the first `taken` points of the deepest-first order (ties by value).

    Attributes:
      taken: their number.
      cut: the level of the last of them; meaningless if there is none.
    """

    taken: Int[Array, ""]
    cut: Int[Array, ""]


def remainder(walked: Walk, deep: Int[Array, ""]) -> tuple[Levels, Deep]:
    """(the levels left behind the deep slice, the deep slice)."""
    path = walked.path
    taken = jnp.minimum(deep, walked.rest)
    count, up_to = walked.rest - taken, jnp.cumsum(path.leaving)
    last = jnp.minimum(jnp.sum(up_to <= count), path.depth.shape[0] - 1)
    levels = Levels(level=path.depth, up_to=jnp.minimum(up_to, count), count=count)
    return levels, Deep(taken=taken, cut=path.depth[last])


def deep_slice(tree: Trie, walked: Walk, deep: Deep) -> Bool[Array, "rows"]:
    """Which points are in it."""
    index = tree.index
    below = (index >= walked.slice) & (index < tree.n_valid)
    level = jnp.where(below, tree.shared(index, walked.path.center), -1)
    deeper, tied = level > deep.cut, level == deep.cut  # those tied are neighbours: they left the path together
    rank = index - jnp.argmax(tied).astype(jnp.int32)
    return (deeper | (tied & (rank < deep.taken - jnp.sum(deeper, dtype=jnp.int32)))) & (deep.taken > 0)


# ----------------------------------------------------------------------------------------------------- steps 4 and 5


def level_bits(bits: Int[Array, ""]) -> Int[Array, ""]:
    """Bits of the numbers 0, ..., bits."""
    return packed.bit_length(jnp.asarray(bits, jnp.int32))


def base_log_law(levels: Levels, bits: Int[Array, ""], size: int, epsilon: Any) -> Float[Array, "size"]:
    """The exponential mechanism on the depth over {0, ..., 2^bits - 1}: ln P of 0, ..., size - 1 (-inf past 2^bits)."""
    here = levels.counts(size)
    up_to = jnp.cumsum(here)
    quality = jnp.minimum(up_to, levels.count - up_to + here)
    inside = jnp.arange(size, dtype=jnp.int32) < (jnp.int32(1) << bits)
    return exponential.log_pmf(quality, epsilon=epsilon, where=inside, monotone=True)


class Choice(NamedTuple):
    """Step 5 given l: the node, the odds that A_dist releases it, and the odds that its least element is then the answer."""

    point: Int[Array, ""]
    length: Int[Array, ""]
    log_release: Float[Array, ""]
    log_bottom: Float[Array, ""]
    log_least: Float[Array, ""]
    log_greatest: Float[Array, ""]


def choose(tree: Trie, walked: Walk, deep: Deep, level: Int[Array, ""], parameters: Parameters) -> Choice:
    """What the two slices say about the path's node of depth level + 1."""
    length = jnp.minimum(level + 1, tree.bits)
    node = unless(
        (length <= deep.cut) | (deep.taken == 0),
        _undivided(tree, walked, deep, length),
        _heaviest,
        *(tree, walked, deep, length),
    )
    release, bottom = stability.log_keep(
        node.gap, epsilon=parameters.select_epsilon, delta=parameters.select_delta, calibration="proved_counts"
    )
    count = jnp.minimum(node.before, walked.slice).astype(float)
    enough = jnp.asarray(parameters.left, float) / 2
    greatest, least = laplace.log_tails((enough - count) * jnp.asarray(parameters.count_epsilon, float))
    return Choice(node.point, length, release, bottom, least, greatest)


def _heaviest(tree: Trie, walked: Walk, deep: Deep, length: Int[Array, ""]) -> Heaviest:
    """The prefix of that length that most of the deep slice has."""
    return trie.heaviest_prefix(tree, deep_slice(tree, walked, deep), length)


def _undivided(tree: Trie, walked: Walk, deep: Deep, length: Int[Array, ""]) -> Heaviest:
    """The heaviest prefix where all of the deep slice has it, being below a node of the path that deep. Of the points before it, those in
    the left slice are counted, and no others matter."""
    some, center = deep.taken > 0, walked.path.center
    before = first_where(lambda i: tree.shared(i, center) >= length, jnp.int32(0), walked.slice, tree.rows)
    return Heaviest(point=jnp.where(some, center, -1), before=jnp.where(some, before, 0), gap=deep.taken)


# ---------------------------------------------------------------------------------------------------------- sampler


@frozen
class Run:
    """One run: the answer, whether there is one, and what was chosen at the topmost level.

    Attributes:
      stopped: whether the walk stopped.
      level: the recursion's answer l (meaningless if the walk stopped).
    """

    answer: Answer
    found: Bool[Array, ""]
    stopped: Bool[Array, ""]
    level: Int[Array, ""]


def sample(key: Array, tree: Trie, parameters: Parameters, limit: int) -> Run:
    """One run. `limit` >= tree.bits is a static bound; parameters.depth >= 1."""
    key_left, key_walk, key_deep, key_next, key_release, key_side = jax.random.split(key, 6)
    walked = walk(tree, parameters.left + noise(key_left, parameters), limit)
    stops = random.bernoulli(key_walk, *log_stop(tree, walked, parameters))
    levels, deep = remainder(walked, parameters.deep + noise(key_deep, parameters))
    level, below = _sample_level(key_next, levels, tree, parameters, limit)
    choice = choose(tree, walked, deep, level, parameters)
    released = random.bernoulli(key_release, choice.log_release, choice.log_bottom)
    least = random.bernoulli(key_side, choice.log_least, choice.log_greatest)
    stopped = jnp.any(stops)
    chosen = Answer(choice.point, choice.length, ~least)
    first = stop_answer(walked, jnp.argmax(stops))
    answer = jax.tree.map(lambda a, b: jnp.where(stopped, a, b), first, chosen)
    return Run(answer=answer, found=stopped | (below & released), stopped=stopped, level=level)


def _sample_level(
    key: Array, levels: Levels, tree: Trie, parameters: Parameters, limit: int
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Step 4: an interior point of the levels, clipped to at most `tree.bits`; and whether there is one."""
    inner = level_bits(tree.bits)
    if parameters.depth == 1:
        level, found = _sample_base(key, levels, inner, parameters, limit, tree.rows), jnp.bool_(True)
    else:
        listed = levels.listed(tree.rows)
        run = sample(
            key,
            trie.from_numbers(listed, levels.count, inner),
            dataclasses.replace(parameters, depth=parameters.depth - 1),
            limit.bit_length(),
        )
        level, found = number(run.answer, listed, inner), run.found
    return jnp.minimum(level, tree.bits), found


def _sample_base(
    key: Array, levels: Levels, bits: Array, parameters: Parameters, limit: int, rows: int
) -> Int[Array, ""]:
    """A draw of `base_log_law`: over all numbers, or over the pieces between the levels of `rows` points where those are fewer."""
    size = 1 << limit.bit_length()
    if size <= rows:
        return exponential.draw(key, base_log_law(levels, bits, size, parameters.base_epsilon)).index
    listed = levels.listed(rows).astype(jnp.uint32)[:, None]
    quality = depth.pieces(listed, levels.count, bits, 1)
    density = piecewise.peak_density(quality, 2 * jnp.asarray(parameters.base_epsilon, float))  # the depth is monotone
    return piecewise.draw_everywhere(key, quality, density).position[-1].astype(jnp.int32)


def noise(key: Array, parameters: Parameters, shape: tuple[int, ...] = ()) -> Int[Array, "*s"]:
    """Noise on the sizes of slices."""
    if not parameters.noisy:
        return jnp.zeros(shape, jnp.int32)
    # Clipped far beyond any number of points, so that a size cannot overflow.
    return jnp.minimum(one_sided_geometric(key, shape, epsilon=parameters.slice_epsilon), 1 << 30)


# -------------------------------------------------------------------------------------------------------------- law


@frozen
class Law:
    """The law of a level's answer, as atoms with the logs of their probabilities.

    Attributes:
      stop, log_stop: the walk stops at a node of the path.
      least, log_least: the recursion returns l = 0, ..., limit, and the node's least element is the answer.
      greatest, log_greatest: the same with its greatest element.
      log_bottom: no answer.
    """

    stop: Answer
    least: Answer
    greatest: Answer
    log_stop: Float[Array, "nodes"]
    log_least: Float[Array, "levels"]
    log_greatest: Float[Array, "levels"]
    log_bottom: Float[Array, ""]

    def atoms(self) -> tuple[tuple[Answer, Float[Array, "_"]], ...]:
        """Answers with their log probabilities."""
        return (self.stop, self.log_stop), (self.least, self.log_least), (self.greatest, self.log_greatest)


def law(tree: Trie, parameters: Parameters, limit: int, sizes: Int[Array, "depth 2"]) -> Law:
    """The law of the answer given the sizes of the left and the deep slice of each level, topmost first."""
    walked = walk(tree, sizes[0, 0], limit)
    log_p, log_q = log_stop(tree, walked, parameters)
    through = jnp.cumsum(log_q)
    before = jnp.concatenate([jnp.zeros((1,), log_q.dtype), through[:-1]])
    levels, deep = remainder(walked, sizes[0, 1])
    recursion, log_none = _level_log_law(levels, tree, parameters, limit, sizes[1:])

    each = jnp.arange(limit + 1, dtype=jnp.int32)
    choice = lax.map(lambda level: choose(tree, walked, deep, level, parameters), each, batch_size=64)
    weight = through[-1] + recursion
    upper = jnp.ones(each.shape, bool)
    return Law(
        stop=stop_answer(walked, jnp.arange(log_p.shape[0], dtype=jnp.int32)),
        least=Answer(choice.point, choice.length, ~upper),
        greatest=Answer(choice.point, choice.length, upper),
        log_stop=jnp.where(jnp.isneginf(log_p), -jnp.inf, before + log_p),
        log_least=weight + choice.log_release + choice.log_least,
        log_greatest=weight + choice.log_release + choice.log_greatest,
        log_bottom=logspace.logsumexp(jnp.append(weight + choice.log_bottom, through[-1] + log_none)),
    )


def _level_log_law(
    levels: Levels, tree: Trie, parameters: Parameters, limit: int, sizes: Array
) -> tuple[Float[Array, "levels"], Float[Array, ""]]:
    """Step 4: ln P[l] for l = 0, ..., limit (clipped to at most `tree.bits`), and ln P[no l]."""
    inner, size = level_bits(tree.bits), 1 << limit.bit_length()
    none = jnp.full((), -jnp.inf)
    if parameters.depth == 1:
        log_law = base_log_law(levels, inner, size, parameters.base_epsilon)
    else:
        listed = levels.listed(tree.rows)
        below = law(
            trie.from_numbers(listed, levels.count, inner),
            dataclasses.replace(parameters, depth=parameters.depth - 1),
            limit.bit_length(),
            sizes,
        )
        log_law, none = _dense(below, listed, inner, size), below.log_bottom
    point = jnp.minimum(jnp.arange(size, dtype=jnp.int32), tree.bits)
    return _scatter(jnp.full((limit + 1,), -jnp.inf), point, log_law), none


def _dense(law_given: Law, x: Int[Array, "rows"], bits: Int[Array, ""], size: int) -> Float[Array, "size"]:
    """ln P of each number."""
    log_law = jnp.full((size,), -jnp.inf)
    for answer, log_p in law_given.atoms():
        log_law = _scatter(log_law, number(answer, x, bits), log_p)
    return log_law


def _scatter(log_law: Array, point: Array, log_p: Array) -> Array:
    """Adds probabilities to the entries of a law, in logs."""
    top = logspace.finite(jnp.max(log_p))
    added = jnp.zeros_like(log_law).at[point].add(jnp.exp(log_p - top))
    log_added = jnp.where(
        added > 0, jnp.log(jnp.where(added > 0, added, 1.0)), -jnp.inf
    )  # no derivative where nothing is added
    return logspace.logaddexp(log_law, top + log_added)
