"""From a sanitizer for m rows to one for any number of blocks of m rows (BNS Lemma 5.1).

1. Split the database into q blocks of m rows, in the order in which they come.
2. Sanitize every block on its own.
3. Merge the q databases, each with the same weight.

**Privacy.** A replaced row is in one block, whatever the coins are, and the blocks' coins are independent: what the sanitizer promises
under REPLACE_ONE holds for all blocks together. (Rows keep their places. An added or removed row would shift all rows behind it, so
nothing is promised under ADD_OR_REMOVE_ONE.)

**Accuracy.** Q_f of the whole is the mean of Q_f over the blocks. Let b be the probability that a block fails to be within a. If no more
than 2 b q blocks fail, the error is at most (1 - 2b) a + 2b <= a + 2b, and more fail with probability at most exp(-q KL(2b || b)). The
lemma says 2 alpha + 2 beta for alpha and beta: it first brings all databases to one size (Theorem 2.21), which doubles alpha, so that
all blocks count equally. With weights this is not needed. The lemma asks for q >= (18/beta) ln(1/beta), as if the common size cost
probability, too; `bounds.sanitizer_blocks` has both numbers. A block whose sanitizer says bottom is one of those that fail, and the point 0
stands for its database: if the whole were bottom then, one of q blocks could fail it. It is bottom only if all blocks are.

    >>> from dpjax.multi import reductions
    >>> from dpjax.sanitizers import dense
    >>> one = dense.blr(queries=dense.thresholds(bits=2), rows=10, epsilon=1.0)
    >>> m = one.sample_size(alpha=0.1, beta=0.05)
    >>> many = reductions.block_sanitizer(one, block=m)
    >>> m, many.sample_size(alpha=0.2, beta=0.1) // m, many.guarantee() == one.guarantee()
    (347, 112, True)
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.accounting.guarantee import promised
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import Algorithm, if_good, sanitizer_size
from dpjax.data.fitting import fitted
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.multi.reductions.databases import check_sanitizer, database_of, mixture

MOST_TRANSCRIPTS = 2**24  # that `pmf` lists


@frozen
class BlockSanitizer(Algorithm):
    """A sanitizer on blocks of rows; see the module, and `block_sanitizer`, which builds it.

    Attributes:
      sanitizer: the sanitizer of `block` rows.
      block: m (static).
    """

    kind: ClassVar[type] = Points
    sanitizer: Any
    block: int = static()

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain."""
        return self.sanitizer.bits

    def fit(self, data: Any) -> Points:
        points = fitted(Points.of(data), Points, bits=self.bits, any_rows=True, name="points")
        if points.ordered:
            raise ValueError(
                "points must come in a public order, not a sorted one, in which a replaced row moves others"
            )
        if not arguments.is_traced(points.n_valid):
            n = int(points.n_valid)  # no comparison of arrays, which an outer trace would record
            if n == 0 or n % self.block:
                raise ValueError(f"points must be whole blocks of {self.block}, and one at least, got {n}")
        return points

    def fits(self, points: Points) -> Bool[Array, ""]:
        return points.in_domain(self.bits) & (points.n_valid > 0) & (points.n_valid % self.block == 0)

    def prepare(self, points: Points) -> tuple[Points, Bool[Array, "q"]]:
        """(as many blocks as there is room for, which of them hold rows)."""
        q = -(-points.rows // self.block)
        x = jnp.pad(points.x, ((0, q * self.block - points.rows), (0, 0))).reshape(q, self.block, -1)
        used = jnp.arange(q, dtype=jnp.int32) * self.block < points.n_valid
        return Points(x=x, n_valid=jnp.where(used, jnp.int32(self.block), 0)), used

    def draw(self, key: Array, view: Any) -> Any:
        blocks, used = view

        def sanitized(number: Array, points: Points) -> Any:
            return self.sanitizer(jax.random.fold_in(key, number), points)

        outcomes = jax.vmap(sanitized)(jnp.arange(used.shape[0], dtype=jnp.int32), blocks)
        databases = database_of(outcomes)
        found = outcomes.status == Status.OK
        x = jnp.where(found[:, None, None], databases.x, jnp.uint32(0))
        one_row = jnp.zeros_like(databases.weights).at[:, 0].set(1)
        weights = jnp.where(found[:, None], databases.weights, one_row)
        # Bottom is released, too, by its block; any other status says that nothing may be.
        released = jnp.all(~used | found | (outcomes.status == Status.BOTTOM)) & jnp.any(used & found)
        info = {"blocks": jnp.sum(used, dtype=jnp.int32), "failed": jnp.sum(used & ~found, dtype=jnp.int32)}
        return mixture(x, weights, used.astype(float)), released, info

    def pmf(self, points: Points) -> Float[Array, "transcripts"]:
        """The law of what all blocks release, in their order, of which the output is a function: for the exact verifier.

        A block without rows has one outcome, the first.
        """
        fit = self.fit(points)
        blocks = -(-points.rows // self.block)
        block = Points(x=points.x[: self.block], n_valid=jnp.int32(self.block))
        outcomes = jax.eval_shape(self.sanitizer.pmf, block).shape[0]
        if blocks * math.log(outcomes) > math.log(MOST_TRANSCRIPTS):
            raise ValueError(
                f"a law is a list of at most {MOST_TRANSCRIPTS} transcripts, got {blocks} blocks of {outcomes} outcomes each"
            )
        return if_good(self, fit, _transcripts(self, points))

    def guarantee(self) -> Guarantee:
        """The sanitizer's own, under REPLACE_ONE."""
        return promised(self.sanitizer, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """q m rows, where each block is within alpha/2 except with probability alpha/4.

        Raises:
          ValueError: alpha or beta outside (0, 1), or m rows are too few for that.
        """
        alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
        needed = sanitizer_size(self.sanitizer, alpha=alpha / 2, beta=alpha / 4, asked=(alpha, beta))
        if needed > self.block:
            raise ValueError(f"block must be >= {needed} for alpha = {alpha}, got {self.block}")
        return self.block * bounds.sanitizer_blocks(alpha / 4, failure=beta)


@jax.jit
def _transcripts(sanitizer: BlockSanitizer, points: Points) -> Float[Array, "transcripts"]:
    blocks, used = sanitizer.prepare(points)
    laws = jax.vmap(sanitizer.sanitizer.pmf)(blocks)
    nothing = jnp.zeros(laws.shape[1], laws.dtype).at[0].set(1)
    together = jnp.ones(1, laws.dtype)
    for number in range(used.shape[0]):
        law = jnp.where(used[number], laws[number], nothing)
        together = (together[:, None] * law[None]).ravel()
    return together


def block_sanitizer(sanitizer: Any, *, block: int) -> BlockSanitizer:
    """The sanitizer of Lemma 5.1, for every number of rows that is a multiple of `block`; see the module.

    Formal guarantees: those of the sanitizer, under REPLACE_ONE; rows are in a public order.

    Args:
      sanitizer: releases a database (`Weighted`) of `block` rows; if it was built for a fixed n, that n must be `block`.
      block: m, rows of a block.

    Raises:
      TypeError, ValueError: not a sanitizer, or block < 1.
    """
    check_sanitizer(sanitizer)
    block, n = arguments.size("block", block), getattr(sanitizer, "n", block)
    if not arguments.is_traced(n) and int(n) != block:
        raise ValueError(f"block must be {int(n)}, the rows that the sanitizer was built for, got {block}")
    return BlockSanitizer(sanitizer=sanitizer, block=block)
