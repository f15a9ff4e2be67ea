"""Quantiles at any fractions from one hierarchical histogram: noisy counts of a tree of intervals, made only where they are read.

The domain {0, ..., 2^d - 1} is cut into b = 2^w intervals of equal length, each of these into b again, and so on: L = ceil(d/w) levels (the
first has fewer intervals, if w does not divide d). The released structure is every interval's count plus two-sided geometric noise at rate
epsilon / L.

**Privacy** (ADD_OR_REMOVE_ONE). A point lies in one interval a level, so all counts together move by L in L1 norm: the structure is
(epsilon, 0)-private, and any number of quantiles is read off it for the same price. The noises of different intervals are independent, so
the structure need not be written down: the noise of an interval is made from the key and the interval's name whenever the interval is read,
and is the same each time.

**Descent.** The noisy counts of a node's children contradict the estimate of the node's count. Let T be that estimate, from everything
above or beside the path, with variance v (noise has variance 1), and c_1, ..., c_b the children's noisy counts. Least squares gives the
children

    c_j + (T - c_1 - ... - c_b) / (b + v),  each of variance  1 - 1/(b + v);

at the root v is infinite: T is the sum of the c_j. (The levels below them are left out, unlike in `dpjax.sanitizers.thresholds.tree`: they
have as many intervals as the domain has points.) The wanted rank t is f max{T, 0} at the root. The descent goes to the first child up to
which the running sum exceeds t, or to the last one if none does, and subtracts the sum before that child from t.

**Utility.** Fix a node. The path to it fixes the weights with which the noises of the (at most) L b counts on it enter the estimates of the
number of points before the node and up to its end. Neither these estimates nor their differences from f times the estimate of n give a
noise a weight beyond [-1, 1]: a noise enters with weight 1, or 0, less at most j/(b + v) <= 1, and each level hands on at most 1/b of it.
Hence each of these errors exceeds B with probability at most exp(-lambda B) M(lambda)^(L b), where M is the moment generating function of a
noise. There are fewer than 2^(d+1) nodes and three such errors for each. If none exceeds B, every answer is within B ranks of f n: at the
last node that was not a first child, the running sum before it was at most t; and at the last node at which a running sum exceeded t, that
sum belongs to a node that ends where the answer lies, or behind it.

The plain twin, of the law of one quantile, is `dpjax.verify.plain.quantiles.tree_law`.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.core import arguments, random
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.points import Points
from dpjax.domains import wide
from dpjax.mechanisms.geometric import SMALLEST_RATE, geometric
from dpjax.optimizers.quantiles.base import Quantiles
from dpjax.optimizers.quantiles.ranked import rounded_fractions

WIDEST = 8  # bits a level: 256 children


@frozen
class Node:
    """A node on the way down, and what is known about it.

    Attributes:
      prefix: its place among the nodes of its level.
      before: how many points come before it (exact, private).
      total: T, the estimate of its count.
      rank: t, the wanted rank among its points.
    """

    prefix: UInt32[Array, "limbs"]
    before: Int[Array, ""]
    total: Float[Array, ""]
    rank: Float[Array, ""]


@frozen
class TreeQuantiles(Quantiles):
    """Quantiles from a hierarchical histogram; build it by `tree`.

    Attributes:
      bits: d.
      fractions: F for each wanted fraction F 2^-32, increasing.
      epsilon: the cost of the structure.
      limbs: limbs of a point (static).
      width: w, bits of a level (static).
      levels: L (static).
    """

    bits: Int[Array, ""]
    fractions: UInt32[Array, "quantiles"]
    epsilon: Float[Array, ""]
    limbs: int = static()
    width: int = static()
    levels: int = static()

    @property
    def _children(self) -> int:
        return 1 << self.width

    def sound(self) -> Bool[Array, ""]:
        return super().sound() & (jnp.asarray(self.epsilon, float) >= SMALLEST_RATE * self.levels)

    def draw(self, key: Array, points: Points) -> Any:
        key = random.for_loops(key)  # privacy rests on it: every fraction must meet the same noise at the same node
        answers = jax.vmap(lambda fraction: self._answer(key, points, fraction))(jnp.asarray(self.fractions))
        return answers, jnp.bool_(True), {}

    def _answer(self, key: Array, points: Points, fraction: UInt32[Array, ""]) -> UInt32[Array, "limbs"]:
        """One quantile: the same key makes the same structure for all of them."""

        def step(node: Node, level: tuple[Array, Array]) -> tuple[Node, None]:
            number, weight = level
            ends = self._ends(points, node.prefix, number)
            counts = jnp.diff(ends, prepend=node.before[None])
            noisy = self._noisy(_named(key, number, node.prefix), counts)
            return self._descended(node, jnp.concatenate([node.before[None], ends]), noisy, weight), None

        zero, none = jnp.zeros((self.limbs,), jnp.uint32), jnp.int32(0)
        ends = self._ends(points, zero, none)
        top = 1 << (self.bits - self.width * (self.levels - 1))
        there = jnp.arange(self._children, dtype=jnp.int32) < top
        noisy = jnp.where(there, self._noisy(_named(key, none, zero), jnp.diff(ends, prepend=none[None])), 0)
        total = jnp.sum(noisy.astype(float))  # at the least rate the noises of 256 children may exceed int32 in sum
        rank = fraction.astype(float) * 2.0**-32 * jnp.maximum(total, 0.0)
        root = Node(prefix=zero, before=none, total=total, rank=rank)
        first = self._descended(root, jnp.concatenate([none[None], ends]), noisy, jnp.zeros(()), top)
        below = jnp.arange(1, self.levels, dtype=jnp.int32), jnp.asarray(self.weights(), float)
        return lax.scan(step, first, below)[0].prefix

    def weights(self) -> list[float]:
        """1/(b + v) of levels 2, ..., L."""
        variance, found = 1.0, []
        for _ in range(self.levels - 1):
            found.append(1 / (self._children + variance))
            variance = 1 - found[-1]
        return found

    def _ends(self, points: Points, prefix: UInt32[Array, "limbs"], level: Int[Array, ""]) -> Int[Array, "children"]:
        """How many points come before the end of each child of the node with this prefix."""
        one = wide.one(self.limbs)
        first = wide.shift_left(prefix, jnp.int32(self.width))
        behind = wide.from_uint32(jnp.arange(1, self._children + 1, dtype=jnp.uint32), self.limbs)
        shift = jnp.broadcast_to(self.width * (self.levels - 1 - level), (self._children,))
        # The end behind the last number wraps around to 0, and subtracting 1 wraps it back.
        last = wide.subtract(wide.shift_left(wide.add(first[None], behind), shift), one[None])
        counts = jax.vmap(lambda end: wide.search(points.x, end, side="right"))(last)
        return jnp.minimum(counts, points.n_valid)

    def _noisy(self, key: Array, counts: Int[Array, "children"]) -> Int[Array, "children"]:
        """The children's noisy counts."""
        return geometric(key, counts, epsilon=self.epsilon, sensitivity=self.levels)

    def _descended(
        self,
        node: Node,
        edges: Int[Array, "edges"],
        noisy: Int[Array, "children"],
        weight: Float[Array, ""],
        children: Any = None,
    ) -> Node:
        """The child that holds the wanted rank, among the first `children` children."""
        children = self._children if children is None else children
        counts = noisy.astype(float)
        counts = counts + weight * (node.total - jnp.sum(counts))
        running = jnp.cumsum(counts)
        exceeds = (running > node.rank) & (jnp.arange(self._children, dtype=jnp.int32) < children)
        child = jnp.where(jnp.any(exceeds), jnp.argmax(exceeds).astype(jnp.int32), jnp.asarray(children - 1, jnp.int32))
        passed = jnp.where(child > 0, running[child - 1], 0.0)
        prefix = wide.shift_left(node.prefix, jnp.int32(self.width))
        prefix = wide.add(prefix, wide.from_uint32(child.astype(jnp.uint32), self.limbs))
        return Node(prefix=prefix, before=edges[child], total=counts[child], rank=node.rank - passed)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under ADD_OR_REMOVE_ONE, for any number of quantiles."""
        return Guarantee(arguments.known("epsilon", self.epsilon), 0.0, ADD_OR_REMOVE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """The number of points for which all ranks are within alpha n of f n, with probability 1 - beta: (B + 1) / alpha; see the module.

        One rank is added as ranks are integers, and f n is rounded to one.

        Raises:
          ValueError: alpha or beta outside (0, 1).
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        within = error_bound(int(self.bits), self.width, self.fractions.size, float(self.epsilon), beta)
        return whole((within + 1) / alpha)  # ranks are integers, and f n is rounded to one


def error_bound(bits: int, width: int, count: int, epsilon: float, beta: float) -> float:
    """B of the module: none of the answers to `count` fractions is further from f n, whatever the points, except with probability beta.

    >>> round(error_bound(32, 4, 9, 1.0, 0.1))
    1015
    """
    levels, errors = -(-bits // width), math.log(6 * count) - math.log(beta) + bits * math.log(2)
    return bounds.noise_deviation(levels << width, errors) * levels / epsilon


def _named(key: Array, level: Int[Array, ""], prefix: UInt32[Array, "limbs"]) -> Array:
    """The key of a node's children."""
    key = jax.random.fold_in(key, level)
    return lax.fori_loop(0, prefix.shape[0], lambda i, key: jax.random.fold_in(key, prefix[i]), key)


def tree(*, bits: int, fractions: Sequence[float], epsilon: Any, branching: int = 16) -> TreeQuantiles:
    """Quantiles at `fractions` of the points from a hierarchical histogram; see the module.

    Formal guarantees: (epsilon, 0) under ADD_OR_REMOVE_ONE for all quantiles together, however many. Not promised: protection from
    floating-point side channels; a cryptographic generator.

    Args:
      bits: the domain is {0, ..., 2^bits - 1}, 1 to 4096.
      fractions: from 0 to 1, increasing; rounded to multiples of 2^-32 (`rounded_fractions`).
      epsilon: total, at least 2^-25 times the number of levels, finite; may be traced.
      branching: children of a node, a power of two from 2 to 256.

    Raises:
      TypeError, ValueError: an argument out of range, fractions that do not increase.

    >>> deciles = tree(bits=32, fractions=[i / 10 for i in range(1, 10)], epsilon=1.0)
    >>> deciles.levels, deciles.guarantee().epsilon, deciles.sample_size(alpha=0.1, beta=0.1)
    (8, 1.0, 10163)
    """
    each: Any = np.asarray(rounded_fractions(fractions), np.uint32)
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    width = arguments.integer("branching", branching, at_least=2, at_most=1 << WIDEST).bit_length() - 1
    if branching != 1 << width:
        raise ValueError(f"branching must be a power of two, got {branching}")
    levels = -(-bits // width)
    epsilon = arguments.real("epsilon", epsilon, at_least=SMALLEST_RATE * levels, below=math.inf)
    domain: Any = {"bits": np.int32(bits), "limbs": wide.limbs_for(bits), "width": width, "levels": levels}
    return TreeQuantiles(**domain, fractions=each, epsilon=epsilon)
