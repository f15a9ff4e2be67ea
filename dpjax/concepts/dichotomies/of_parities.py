"""Parities: points whose span has dimension r are labelled in 2^r ways.

Let P be the leading columns of the points (`gf2.solve`), r of them. Reduced to echelon form, the basis vector b_i of the span has a one in
column p_i and zeros in the others of P, so that <v, b_i> = v_(p_i) for every v that is zero outside P. Hence the 2^r parities v that are
zero outside P label the points in all 2^r ways, each once; and on EVERY point, in the span or not, such a v depends on the bits at P only.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from dpjax.concepts.dichotomies.base import Choices
from dpjax.concepts.parities import MAX_BITS
from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.domains import gf2, wide

MAX_RANK = 16


@frozen
class ParityClass:
    """c_v(x) = <v, x> mod 2 on {0,1}^bits; build it by `parities`."""

    bits: int = static()
    most: int = static()

    @property
    def vc(self) -> int:
        """d."""
        return self.bits

    @property
    def log_concepts(self) -> float:
        """ln|C|: no set of points can be labelled in more ways."""
        return self.bits * math.log(2)

    def choices(self, points: UInt32[Array, "slots limbs"], named: Bool[Array, "slots"]) -> Choices:
        """The parities that are zero outside the leading columns of the named points, in increasing order."""
        x = points[:, ::-1]
        spanning = jnp.where(named[:, None], x, np.uint32(0))
        solved = gf2.solve(spanning, jnp.zeros((x.shape[0], 1), jnp.uint32), columns=self.bits)
        columns = jnp.nonzero(solved.leading, size=self.most, fill_value=self.bits)[0]
        seen = jnp.pad(packed.unpack(x, self.bits), ((0, 0), (0, 1)))[:, columns]  # the bits at P
        code = jnp.sum(seen.astype(jnp.int32) << jnp.arange(self.most, dtype=jnp.int32)[None], axis=1)

        def right(ones: Array, zeros: Array) -> Array:
            f = jnp.zeros((1 << self.most,), jnp.int32).at[code].add(zeros - ones, mode="drop")
            return (jnp.sum(ones + zeros, dtype=jnp.int32) + gf2.walsh_hadamard(f)) // 2

        number = jnp.arange(1 << self.most, dtype=jnp.int32)
        where = number < jnp.left_shift(1, jnp.minimum(solved.rank, self.most))
        fits = solved.rank <= self.most
        return Choices(concepts=self._parities(columns), where=where, right=right, fits=fits)

    def _parities(self, columns: Int[Array, "most"]) -> UInt32[Array, "parities limbs"]:
        """The parity whose bits at these columns are those of the number, for every number."""
        limbs = wide.limbs_for(self.bits)
        one = wide.power_of_two(columns.astype(jnp.int32), limbs)
        one = jnp.where((columns < self.bits)[:, None], one, np.uint32(0))
        number = jnp.arange(1 << self.most, dtype=jnp.uint32)

        def add(i: Array, v: Array) -> Array:
            chosen = (number >> i.astype(jnp.uint32)) & np.uint32(1)
            return v | jnp.where(chosen[:, None] == 1, one[i][None], np.uint32(0))

        return jax.lax.fori_loop(0, self.most, add, jnp.zeros((number.shape[0], limbs), jnp.uint32))

    def refuse(self, name: str, x: Any) -> None:
        """ValueError if the points span more dimensions than can be listed."""
        basis: dict[int, int] = {}
        for value in dict.fromkeys(wide.to_ints(x)):
            while value and (top := value.bit_length()) in basis:
                value ^= basis[top]
            if value:
                basis[value.bit_length()] = value
            if len(basis) > self.most:
                raise ValueError(
                    f"{name} must span at most {self.most} dimensions, of which all 2^{self.most} parities are listed; it spans more"
                )


def parities(*, bits: int, rank: int | None = None) -> ParityClass:
    """The class of parities over {0,1}^bits.

    Args:
      bits: d, 1 to 1024.
      rank: the largest dimension of the points' span, 1 to 16: 2^rank parities are listed. By default the largest possible.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.domains import wide
    >>> found = parities(bits=3).choices(wide.from_ints([3, 5, 6], 3), jnp.ones(3, bool))  # of rank 2
    >>> wide.to_ints(found.concepts[found.where])
    [0, 1, 2, 3]
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    most = min(bits, MAX_RANK) if rank is None else arguments.integer("rank", rank, at_least=1, at_most=MAX_RANK)
    return ParityClass(bits=bits, most=min(bits, most))
