"""Algorithm B (BNS Figure 12, which is missing from the text; Lemma 5.4): from a sanitizer for C to one for C^label.

For s = 0, 1, on a sample of t labelled points:

1. S_s = the points with label s.
2. m_s = |S_s| + Lap(1/epsilon), rounded to the nearest multiple M^_s of M, from 0 to the first that is >= t. (t is public, and
   |S_s| lies between these two, so the restriction only brings M^_s nearer.)
3. Cut S_s to M^_s rows at random, or pad it with copies of a fixed point, and then shuffle the rows.
4. S~_s = a sanitization of these; none if M^_s = 0.

Release S~_s with label s and total weight M^_s, for both s. (BNS release M^_s copies of every element of S~_s, which is the same if S~_0
and S~_1 have equally many elements; hence they use Theorem 2.21 once more, and get 2 alpha for alpha. With weights this is not needed.)

**Privacy.** (2 epsilon + 2 e, 2 d) under REPLACE_ONE for an (e, d)-private sanitizer. Let an example be replaced.

- If its label stays s, no size changes, and S_s changes in one element: with the same coins, one row of step 3 at most. That is (e, d).
- If its label changes, S_0 loses an element x and S_1 gains one, or the other way round. Condition on the values of both M^_s, which
  costs epsilon each, and compare what step 3 makes of S_s and of S_s without x. If M^_s >= |S_s|, a copy of the fixed point takes the place
  of x. If M^_s < |S_s|, couple a random part of S_s with the part in which x, if it is there, is replaced by a random one of the elements
  left over: that is a random part of the rest. So at most one row differs. (M^_s, S~_s) jointly cost (epsilon + e, d), for each s.

BNS say 6 epsilon (at e = epsilon): they release M^_s alone for epsilon and S~_s alone for 2 epsilon, and so pay twice for M^_s. (As t is
public and |S_1| = t - |S_0|, one noisy size would do for both, at a cost of 3 epsilon. This is the paper's algorithm, with two sizes.)

The shuffle must come last, for sanitizers that depend on the order of rows, as `block_sanitizer` does. Without any shuffle, all rows behind
x move up. If S_s alone is shuffled and copies of the fixed point follow, x and the first of these copies both change: in blocks of one row,
randomised response then costs ln(((k - 1) exp(2 e) + 1)/k) with k = |S_s|, which is more than e from k = 2 on. If S_s is not padded, its
exact size is used, and sanitizers whose n is public promise nothing.

**Accuracy.** If both noises are at most z = ln(2/b)/epsilon in size, which holds except with probability b, step 3 changes g_s <= M/2 + z
rows. With the sanitizer within a on M rows and more, |t Q(D) - W Q(D~)| <= g_0 + g_1 + a W for every query of C^label, where W is the total
weight, and |W - t| <= g_0 + g_1. So D~ is within a + (2 + a)(M + 2 z)/t of D: `bounds.label_class`. As printed: 5 alpha + 4 beta, at
t = `bounds.sanitizer_to_learner`.

The plain twin is `dpjax.verify.plain.label_class`.

    >>> from dpjax.multi import reductions
    >>> from dpjax.sanitizers import dense
    >>> points = dense.blr(queries=dense.thresholds(bits=2), rows=12, epsilon=0.5)
    >>> labelled = reductions.label_class(points, block=1000, epsilon=0.5)
    >>> print(labelled.guarantee(), labelled.sample_size(alpha=0.2, beta=0.1))
    (2.0, 0.0)-private under REPLACE_ONE 21344
"""

import itertools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee, basic
from dpjax.accounting.guarantee import promised
from dpjax.core import arguments, random, sorting
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, if_good, sanitizer_size, whole
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.data.weighted import Weighted
from dpjax.domains import wide
from dpjax.mechanisms import laplace
from dpjax.mechanisms.base import Between
from dpjax.multi.reductions.block_sanitizer import BlockSanitizer
from dpjax.multi.reductions.databases import check_sanitizer, database_of, labelled, mixture

MOST_ROWS = 6  # the most rows for a law, which enumerates all their orders
MOST_ROOM = 2**26  # the most rows, in whole blocks, that a part takes in memory: some gigabytes


@frozen
class LabelClass(Algorithm):
    """Algorithm B: a sanitizer of labelled points; see the module, and `label_class`, which builds it.

    It releases a `Weighted` database over X_(bits + 1): the point x with label y is 2 x + y.

    Attributes:
      sanitizer: a sanitizer of points, for every multiple of `block` rows.
      epsilon: privacy parameter of one noisy size.
      block: M (static).
      limbs: of a labelled point (static).
    """

    kind: ClassVar[type] = Sample
    sanitizer: Any
    epsilon: Float[Any, ""]
    block: int = static()
    limbs: int = static()

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain, without its label."""
        return self.sanitizer.bits

    def fit(self, sample: Any) -> Sample:
        sample = fitted(sample, Sample, bits=self.bits, any_rows=True)
        arguments.integer("the rows of sample, in whole blocks,", self._room(sample), at_least=1, at_most=MOST_ROOM)
        return sample

    def prepare(self, sample: Sample) -> Sample:
        return sample

    def draw(self, key: Array, sample: Sample) -> Any:
        def part(key: Array, label: Array) -> Any:
            key_size, key_order, key_sanitizer = jax.random.split(key, 3)
            mine, count = _of_label(sample, label)
            noisy = laplace.laplace(key_size, count, epsilon=self.epsilon)
            number = jnp.clip(jnp.floor(noisy / self.block + 0.5), 0, self._most(sample).astype(float))
            size = number.astype(jnp.int32) * self.block
            room = self._room(sample)
            words = random.bits(key_order, 2 * room).reshape(-1, 2)
            place = jnp.arange(room, dtype=jnp.int32)
            last = (place >= jnp.maximum(size, count)).astype(jnp.uint32)
            order = sorting.sort([last, words[:, 0], words[:, 1]], place)[-1]  # 64 random bits a row
            return size, self.sanitizer(key_sanitizer, self._rows(sample, mine, order, size))

        sizes, outcomes = jax.vmap(part)(jax.random.split(key), jnp.arange(2, dtype=jnp.int32))
        released = jnp.all((sizes == 0) | (outcomes.status == Status.OK))
        return self._together(database_of(outcomes), sizes), released, {"sizes": sizes}

    def _most(self, sample: Sample) -> Int[Array, ""]:
        """How many blocks a part may have."""
        return (sample.n_valid + self.block - 1) // self.block

    def _room(self, sample: Sample) -> int:
        """How many rows a part may have."""
        return -(-sample.rows // self.block) * self.block

    def _rows(self, sample: Sample, mine: Bool[Array, "n"], order: Int[Array, "room"], size: Int[Array, ""]) -> Points:
        """Step 3: the points of a part, then zeros, taken in this order, whose first max(size, |S_s|) entries permute the first rows."""
        place = jnp.where(mine, jnp.cumsum(mine, dtype=jnp.int32) - 1, order.shape[0])
        padded = jnp.zeros((order.shape[0], sample.x.shape[1]), jnp.uint32).at[place].set(sample.x, mode="drop")
        return Points(x=padded[order], n_valid=size)

    def _together(self, parts: Weighted, sizes: Int[Array, "2"]) -> Weighted:
        """Both parts with their labels."""
        labels = jnp.broadcast_to(jnp.arange(2, dtype=jnp.int32)[:, None], parts.x.shape[:2])
        x = jax.vmap(lambda x, y: labelled(x, y, self.limbs))(parts.x, labels)
        return mixture(x, parts.weights, sizes.astype(float))

    # The law on tiny samples ----------------------------------------------------------------------------------

    def pmf(self, sample: Sample) -> Float[Array, "transcripts"]:
        """The law of both (M^_s, S~_s), of which the output is a function: for the exact verifier.

        A part has the outcome "none", then for M, 2 M, ... rows those of the sanitizer's own `pmf`; part 0 changes slowest.

        Raises:
          ValueError: more than 6 rows in whole blocks, as all their orders are enumerated.
        """
        fit = self.fit(sample)
        arguments.integer("the rows of sample, in whole blocks,", self._room(sample), at_least=1, at_most=MOST_ROWS)
        return if_good(self, fit, _transcripts(self, sample))

    def databases(self, sample: Sample) -> Weighted:
        """What is released for every entry of `pmf`, stacked, by a sanitizer that lists its outputs."""
        outputs = self.sanitizer.listed()
        each = [*range(outputs), 0]  # bottom, whose database is none
        found = jax.vmap(self.sanitizer.output)(jnp.asarray(each, jnp.int32))
        sizes = range(1, -(-sample.rows // self.block) + 1)
        size = jnp.asarray([0, *(number * self.block for number in sizes for _ in each)], jnp.int32)
        index = jnp.asarray([0, *(place for _ in sizes for place in range(len(each)))], jnp.int32)
        first, second = (place.ravel() for place in jnp.indices((len(size), len(size)), jnp.int32))

        def together(first: Array, second: Array) -> Weighted:
            both = jnp.stack([first, second])
            return self._together(jax.tree.map(lambda leaf: leaf[index[both]], found), size[both])

        return jax.vmap(together)(first, second)

    def _sizes(self, sample: Sample, count: Int[Array, ""]) -> Float[Array, "sizes"]:
        """P[M^_s = 0], P[M^_s = M], ..., up to as many blocks as there is room for."""
        ends = (jnp.arange(-(-sample.rows // self.block) + 1, dtype=jnp.int32).astype(float) + 0.5) * self.block
        most = self._most(sample)
        number = jnp.arange(ends.shape[0], dtype=jnp.int32)
        low = jnp.concatenate([jnp.full(1, -jnp.inf), ends[:-1]])
        noise = laplace.Laplace(epsilon=self.epsilon, sensitivity=1.0, relation=REPLACE_ONE)
        value = jnp.full(ends.shape, count.astype(float))
        law = noise.split(value, Between(low=low, high=jnp.where(number == most, jnp.inf, ends)))[0]
        return jnp.where(number <= most, law, 0.0)

    # What is promised -----------------------------------------------------------------------------------------

    def guarantee(self) -> Guarantee:
        """(2 epsilon + 2 e, 2 d) under REPLACE_ONE: two noisy sizes and two sanitized parts."""
        size = Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)
        return basic([size, size, *[promised(self.sanitizer, REPLACE_ONE)] * 2])

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """Examples for a largest error of alpha over C^label, of which the sanitizer has alpha/2; parts and noises get beta/3 each.

        Raises:
          ValueError: alpha or beta outside (0, 1), or blocks that are too small for the sanitizer.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        needed = sanitizer_size(self.sanitizer, alpha=alpha / 2, beta=beta / 3, asked=(alpha, beta))
        if needed > self.block:
            raise ValueError(f"block must be >= {needed} for alpha = {alpha} and beta = {beta}, got {self.block}")
        return whole(bounds.label_class(self.block, alpha / 2, alpha, beta / 3, float(self.epsilon)))


def _of_label(sample: Sample, label: Int[Array, ""]) -> tuple[Bool[Array, "n"], Int[Array, ""]]:
    """(which rows are in S_s, how many)."""
    mine = sample.valid & (sample.y == label)
    return mine, jnp.sum(mine, dtype=jnp.int32)


@jax.jit
def _transcripts(algorithm: LabelClass, sample: Sample) -> Float[Array, "transcripts"]:
    room = algorithm._room(sample)
    orders = jnp.asarray(list(itertools.permutations(range(room))), jnp.int32)
    sizes = jnp.arange(algorithm.block, room + 1, algorithm.block, dtype=jnp.int32)

    def part(label: Array) -> Array:
        mine, count = _of_label(sample, label)

        def sanitized(order: Array, size: Array) -> Array:
            first = order[jnp.argsort(order >= jnp.maximum(size, count), stable=True)]
            return algorithm.sanitizer.pmf(algorithm._rows(sample, mine, first, size))

        laws = jax.vmap(lambda size: jnp.mean(jax.vmap(lambda order: sanitized(order, size))(orders), axis=0))(sizes)
        p = algorithm._sizes(sample, count).astype(laws.dtype)
        return jnp.concatenate([p[:1], (p[1:, None] * laws).ravel()])

    zeros, ones = jax.vmap(part)(jnp.arange(2, dtype=jnp.int32))
    return (zeros[:, None] * ones[None]).ravel()


def label_class(sanitizer: Any, *, block: int, epsilon: Any) -> LabelClass:
    """The sanitizer for C^label that is built from a sanitizer for C; see the module.

    Formal guarantees: (2 epsilon + 2 e, 2 d) under REPLACE_ONE for an (e, d)-private sanitizer, labels arbitrary; the number of examples is
    public. Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      sanitizer: releases a database (`Weighted`) for every multiple of `block` rows: one of `dpjax.sanitizers.dense`, or any that was
        built for a fixed number of rows, on blocks of that many (`block_sanitizer`).
      block: M, a multiple of the rows of a block of that sanitizer.
      epsilon: privacy parameter of one noisy size, > 0, finite.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    check_sanitizer(sanitizer)
    block = arguments.size("block", block)
    if isinstance(sanitizer, BlockSanitizer) and block % sanitizer.block:
        raise ValueError(f"block must be a multiple of {sanitizer.block}, the sanitizer's, got {block}")
    if hasattr(sanitizer, "n"):
        raise ValueError(
            f"sanitizer must take any multiple of block rows: block_sanitizer(...) of it does, got {sanitizer!r}"
        )
    limbs = wide.limbs_for(arguments.known_integer("bits", sanitizer.bits) + 1)
    return LabelClass(sanitizer=sanitizer, epsilon=arguments.epsilon(epsilon), block=block, limbs=limbs)
