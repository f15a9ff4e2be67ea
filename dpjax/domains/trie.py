"""The binary trie over {0, ..., 2^bits - 1} that a sorted multiset touches, without storing its nodes.

A node at depth l is a prefix of l bits, its weight the number of points that begin with it. The points below a node are neighbours in the
order: a node is an interval of them. Its two children are found by bisection, so a walk down a trie over 2^4096 leaves reads only a few of
the points, never all of them.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.core.bisection import first_where
from dpjax.core.pytree import frozen
from dpjax.core.staging import SHORT_ROW
from dpjax.domains import wide


class Trie:
    """A sorted multiset, seen from its prefixes.

    Attributes:
      n_valid: number of points.
      bits: depth of the leaves.
    """

    n_valid: Int[Array, ""]
    bits: Int[Array, ""]

    @property
    def rows(self) -> int:
        """The capacity."""
        raise NotImplementedError

    def shared(self, i: Int[Array, "*#n"], j: Int[Array, "*#n"]) -> Int[Array, "*#n"]:
        """How many leading bits points i and j have in common (`bits`, if they are equal)."""
        raise NotImplementedError

    def turns(self, i: Int[Array, ""], depth: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether the path to point i goes right from its node at this depth, which is < bits."""
        raise NotImplementedError

    @property
    def index(self) -> Int[Array, "rows"]:
        """0, 1, ..., rows - 1."""
        return jnp.arange(self.rows, dtype=jnp.int32)


@frozen
class Written(Trie):
    """The trie of points that are stored explicitly; those from n_valid on are ignored, whatever they are."""

    x: UInt32[Array, "rows limbs"]
    n_valid: Int[Array, ""]
    bits: Int[Array, ""]

    @property
    def rows(self) -> int:
        return self.x.shape[0]

    # A few limbs are fetched one by one and never joined: XLA would start its threads for each such fetch of a walk.

    def shared(self, i: Int[Array, "*#n"], j: Int[Array, "*#n"]) -> Int[Array, "*#n"]:
        if self.x.shape[1] > SHORT_ROW:
            one, other = jnp.broadcast_arrays(self.x[i], self.x[j])
            return self.bits - wide.bit_length(one ^ other)
        differ = [column[i] ^ column[j] for column in reversed(wide.columns(self.x))]
        lengths = [
            jnp.where(word > 0, 32 * (k + 1) - lax.clz(word).astype(jnp.int32), 0) for k, word in enumerate(differ)
        ]
        return self.bits - functools.reduce(jnp.maximum, lengths)

    def turns(self, i: Int[Array, ""], depth: Int[Array, ""]) -> Bool[Array, ""]:
        place = jnp.maximum(self.bits - 1 - depth, 0)
        limb = self.x.shape[1] - 1 - place // 32
        if self.x.shape[1] > SHORT_ROW:
            word = self.x[i, limb]
        else:
            word = lax.select_n(limb, *[column[i] for column in wide.columns(self.x)])
        return (word >> (place % 32).astype(jnp.uint32)) & np.uint32(1) > 0


def from_points(x: UInt32[Array, "rows limbs"], n_valid: Int[Array, ""], bits: Int[Array, ""]) -> Trie:
    """The trie of sorted wide points below 2^bits."""
    return Written(x=x, n_valid=n_valid, bits=bits)


def from_numbers(x: Int[Array, "rows"], n_valid: Int[Array, ""], bits: Int[Array, ""]) -> Trie:
    """The trie of sorted int32 numbers in 0, ..., 2^bits - 1."""
    return Written(x=x.astype(jnp.uint32)[:, None], n_valid=n_valid, bits=bits)


@frozen
class Path:
    """The path from the root that follows the heavier child (the left one on ties) down to a leaf.

    It lists the nodes at which points leave it, from the root down: those with two children, then the leaf, where all remaining points
    leave; entries behind the leaf are left by no point. A point's level is the depth of the node where it leaves.

    Attributes:
      depth: depths of the nodes; `bits` from the leaf on.
      leaving: how many points leave; at a node with two children, the weight of the lighter one.
      split: the first point of a node's right child.
      center: a point in the leaf (any, if there are no points).
    """

    depth: Int[Array, "nodes"]
    leaving: Int[Array, "nodes"]
    split: Int[Array, "nodes"]
    center: Int[Array, ""]


def heavy_path(trie: Trie, low: Int[Array, ""], limit: int) -> Path:
    """The heavy path of the trie of the points low, low + 1, ..., n_valid - 1; `limit` >= trie.bits is a static bound."""

    def leave(node: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        first, stop = node
        here = jnp.minimum(first, trie.rows - 1)
        depth = trie.shared(here, jnp.maximum(stop - 1, here))
        parts = depth < trie.bits
        split = first_where(lambda i: trie.turns(i, depth), first, stop, trie.rows)
        goes_right = stop - split > split - first
        leaving = jnp.where(parts, jnp.minimum(split - first, stop - split), stop - first)
        following = (
            jnp.where(~parts, stop, jnp.where(goes_right, split, first)),
            jnp.where(parts & ~goes_right, split, stop),
        )
        return following, (depth, leaving, split)

    (_, stop), (depth, leaving, split) = lax.scan(leave, (low, trie.n_valid), length=min(limit, trie.rows - 1) + 1)
    return Path(depth=depth, leaving=leaving, split=split, center=jnp.maximum(stop - 1, 0))


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
    """The heaviest of all 2^length prefixes, length >= 1; since most have no point, there always is a second, if only of weight 0.

    Ties go to the least prefix.
    """
    index = trie.index
    one = marked.astype(jnp.int32)
    counts = jnp.cumsum(one)
    following = jnp.minimum(index + 1, trie.rows - 1)
    ends = (trie.shared(index, following) < length) | (index + 1 >= trie.n_valid)
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
