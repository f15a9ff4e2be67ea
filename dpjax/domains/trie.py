"""The binary trie over {0, ..., 2^bits - 1} that a sorted multiset touches, without its nodes.

A node at depth l is a prefix of l bits, its weight the number of points that begin with it. All there is to know of the trie is
how many leading bits each point shares with the next one: the points below a node are neighbours in the order, and a node with two
non-empty children is a place where two neighbours part. So a trie over 2^4096 leaves, or over 2^(2^20), is an array of n numbers.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.pytree import frozen
from dpjax.domains import ordered, wide


@frozen
class Trie:
    """A sorted multiset, seen from its prefixes.

    Attributes:
      shared: how many leading bits point i has in common with point i + 1 (`bits`, if they are equal); -1 where one of the two is
        not there. Shape (rows,), rows = 2^b - 1.
      n_valid: number of points.
      bits: depth of the leaves.
    """

    shared: Int[Array, "rows"]
    n_valid: Int[Array, ""]
    bits: Int[Array, ""]

    @property
    def index(self) -> Int[Array, "rows"]:
        """0, 1, ..., rows - 1."""
        return jnp.arange(self.shared.shape[0], dtype=jnp.int32)


def from_points(x: UInt32[Array, "rows limbs"], n_valid: Int[Array, ""], bits: Int[Array, ""]) -> Trie:
    """The trie of sorted wide points below 2^bits."""
    following = jnp.concatenate([x[1:], x[-1:]])
    return _trie(wide.bit_length(x ^ following), n_valid, bits)


def from_numbers(x: Int[Array, "rows"], n_valid: Int[Array, ""], bits: Int[Array, ""]) -> Trie:
    """The trie of sorted int32 numbers in 0, ..., 2^bits - 1."""
    following = jnp.concatenate([x[1:], x[-1:]])
    return _trie((32 - lax.clz(x ^ following)).astype(jnp.int32), n_valid, bits)


def _trie(differ: Array, n_valid: Array, bits: Array) -> Trie:
    """From the bit length of each point's difference to the next."""
    index = jnp.arange(differ.shape[0], dtype=jnp.int32)
    return Trie(shared=jnp.where(index + 1 < n_valid, bits - differ, -1), n_valid=n_valid, bits=bits)


@frozen
class Path:
    """The path from the root that follows the heavier child (the left one on ties) down to a leaf.

    Attributes:
      level: depth of the deepest path node above each point, in 0, ..., bits; -1 for points that are not below the root.
      center: the first point in the leaf where the path ends.
    """

    level: Int[Array, "rows"]
    center: Int[Array, ""]


def heavy_path(trie: Trie, low: Int[Array, ""]) -> Path:
    """The heavy path of the trie of the points low, low + 1, ..., n_valid - 1.

    No walk is needed. Point i and i + 1 part at a node whose points are the longest run around them with at least as many shared
    bits; so all weights are known at once. The path's leaf is the only one with no lighter child above it, and a point's level is the
    least number of bits shared on the way from it to that leaf.
    """
    index = trie.index
    shared = jnp.where((index >= low) & (index + 1 < trie.n_valid), trie.shared, -1)
    parts = (shared >= 0) & (shared < trie.bits)
    first, last = ordered.runs(
        jnp.append(shared, -1).astype(float)
    )  # the node's points are first, ..., last, inclusively
    first, last = first[:-1], last[:-1]
    right_is_lighter = index - first + 1 >= last - index
    begin = jnp.where(right_is_lighter, index + 1, first)
    stop = jnp.where(right_is_lighter, last + 1, index + 1)
    part = parts.astype(jnp.int32)
    beyond = index.shape[0]  # where parts is False the run may leave the array; its mark is 0
    marks = jnp.zeros((beyond + 1,), jnp.int32).at[jnp.minimum(begin, beyond)].add(part)
    lighter = jnp.cumsum(marks.at[jnp.minimum(stop, beyond)].add(-part))[:-1]
    here = (index >= low) & (index < trie.n_valid)
    center = jnp.argmax(here & (lighter == 0)).astype(jnp.int32)
    return Path(level=_levels(shared, here, center, trie.bits), center=center)


def _levels(shared: Array, here: Array, center: Array, bits: Array) -> Int[Array, "rows"]:
    """Least number of shared bits between each point and the center."""
    index = jnp.arange(shared.shape[0], dtype=jnp.int32)
    upward = lax.cummin(jnp.where(index >= center, shared, bits))
    after = jnp.concatenate([bits[None], upward[:-1]])
    before = lax.cummin(jnp.where(index < center, shared, bits), reverse=True)
    return jnp.where(here, jnp.minimum(after, before), -1)


@frozen
class Heaviest:
    """The prefix of a given length that most of the marked points have.

    Attributes:
      point: a point that has it; -1 if no point is marked, and the prefix then is 0...0, the first of all.
      before: how many points (marked or not) come before the first point that has it.
      gap: by how many marked points it leads.
    """

    point: Int[Array, ""]
    before: Int[Array, ""]
    gap: Int[Array, ""]


def heaviest_prefix(trie: Trie, marked: Bool[Array, "rows"], length: Int[Array, ""]) -> Heaviest:
    """Among all 2^length prefixes, length >= 1, of which most have no point: so there always is a second, if only of weight 0.

    Ties go to the least prefix.
    """
    index = trie.index
    one = marked.astype(jnp.int32)
    counts = jnp.cumsum(one)
    ends = trie.shared < length
    begins = jnp.concatenate([jnp.ones((1,), bool), ends[:-1]])
    first = lax.cummax(jnp.where(begins, index, 0))
    earlier = lax.cummax(jnp.where(begins, counts - one, 0))
    weight = jnp.where(ends, counts - earlier, 0)
    point = jnp.argmax(weight).astype(jnp.int32)
    second = jnp.max(jnp.where(index == point, 0, weight))
    some = weight[point] > 0
    return Heaviest(
        point=jnp.where(some, point, -1),
        before=jnp.where(some, first[point], 0),
        gap=weight[point] - second,
    )
