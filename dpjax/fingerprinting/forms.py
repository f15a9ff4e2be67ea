"""How a codebook becomes a k-labelled database, and k hypotheses a pirate word (MULTI Theorems 43, 47, Remarks 44, 48, Proposition 51).

User i's row of the code labels an example x_i; a user outside the coalition is replaced by a nonce row (x_i, 0, ..., 0): x stays,
so two coalitions that differ in one user give neighbours even for label privacy. With padding, junk rows (x_0, 0, ..., 0) bring n
users to N = floor(n / 3α) rows D. The word's bit j is read off h_j(D), the share of rows to which hypothesis h_j gives a one.

| form | the users' points | α-accurate, α <= | a 0-marked, a 1-marked column has N h_j(D) | bit 1 iff N h_j(D) >= |
|---|---|---|---|---|
| `thresholds` | 0, ..., n-1; x_0 = n | 1/3 | <= αN <= n/3, >= n - αN >= 2n/3 | n/2 |
| `agnostic` | x, n times | 1/3 | the same | n/2 |
| `parities` | the n = 2^d binary strings | 1/6 | <= αn, >= n/2 - αn | n/4 |

so **α-accurate hypotheses give a feasible word**. (Thresholds: every column of the Boneh-Shaw code is a threshold's labels, so
"accurate" is meant in the PAC sense. The others use excess error, agnostically. On a 1-marked column of `parities` every concept
but 0 errs on n/2 rows, and 0 on all.)
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import gf2, wide

THIRD = 1 / 3
MOST_ROWS = 2**24  # up to here float32 holds every number of rows, which `excess` divides


@frozen
class Form:
    """One row of the table; build it by `thresholds`, `agnostic` or `parities`.

    Attributes:
      x: the points of the database, the users' first, then the junk rows'.
      alpha: accuracy at which the word is feasible.
      users: n.
      share: bit j is 1 iff share * N h_j(D) >= n.
      least_errors: (users, k) labels -> how many users' labels the best concept of the class gets wrong, by column.
      thresholds_only: whether every column must be a threshold's labels.
    """

    x: UInt32[Array, "rows limbs"]
    alpha: Float[Array, ""]
    users: int = static()
    share: int = static()
    least_errors: Callable[[Array], Array] = static()
    thresholds_only: bool = static(default=False)

    @property
    def rows(self) -> int:
        """N."""
        return self.x.shape[0]

    @functools.partial(jax.jit, static_argnames="k")
    def database(self, words: UInt32[Array, "users words"], coalition: Bool[Array, "users"], k: int) -> MultiSample:
        """The coalition's rows, nonce rows for the others, and junk rows."""
        held = jnp.where(coalition[:, None], words, np.uint32(0))
        y = jnp.pad(held, ((0, self.rows - self.users), (0, 0)))
        return MultiSample(x=self.x, y=y, n_valid=jnp.asarray(self.rows, jnp.int32), k=k)

    def word(self, answers: Bool[Array, "rows k"]) -> Bool[Array, "k"]:
        """The pirate word, from the hypotheses' answers on the rows."""
        return self.share * packed.tally(answers) >= self.users

    def excess(self, answers: Bool[Array, "rows k"], labels: Bool[Array, "rows k"]) -> Float[Array, "k"]:
        """Empirical error of every hypothesis minus that of the best concept for its column (all are right on junk rows)."""
        wrong = packed.tally(answers != labels) - self.least_errors(labels[: self.users])
        return wrong.astype(float) / self.rows


def thresholds(users: int, *, bits: int = 32, alpha: Any = THIRD) -> Form:
    """Theorem 43 with Remark 44, for thresholds c_j(x) = 1 iff x < j and the Boneh-Shaw code.

    Args:
      users: n.
      bits: d, of the domain; n + 1 points must fit.
      alpha: in (0, 1/3]; below 1/3 the database is padded to floor(n / 3α) rows, 2^24 at most.

    >>> thresholds(10, alpha=0.1).rows
    33
    """
    users, rows, alpha = _padding(users, alpha)
    _fits(bits, "n + 1 points", users)
    return Form(
        x=_points(np.minimum(np.arange(rows), users), bits),
        alpha=alpha,
        users=users,
        share=2,
        least_errors=_threshold_errors,
        thresholds_only=True,
    )


def agnostic(users: int, *, bits: int = 32, point: int = 0, junk: int = 1, alpha: Any = THIRD) -> Form:
    """Theorem 47 with Remark 48, for any class with concepts that differ at `point` and any code.

    Args:
      users: n.
      bits: d, of the domain.
      point: x; some concept labels it 0, some 1.
      junk: x_0; those two concepts label it 0. Only used with padding. The defaults suit points and thresholds.
      alpha: in (0, 1/3]; below 1/3 the database is padded to floor(n / 3α) rows.

    >>> agnostic(10).rows, agnostic(10, alpha=0.1).rows
    (10, 33)
    """
    users, rows, alpha = _padding(users, alpha)
    for name, value in (("point", point), ("junk", junk)):
        _fits(bits, name, arguments.integer(name, value, at_least=0))
    if point == junk:
        raise ValueError(f"junk must differ from point, got {junk} for both")
    both = np.asarray(wide.from_ints([point, junk], bits))  # either may be wider than a machine's integers
    x = jax.device_put(np.repeat(both, [users, rows - users], axis=0))
    return Form(x=x, alpha=alpha, users=users, share=2, least_errors=_constant_errors)


def parities(users: int, *, bits: int | None = None, alpha: Any = 1 / 6) -> Form:
    """Proposition 51, for parities and any code: the users hold all binary strings of log2(n) bits.

    Args:
      users: n, a power of two, at least 4.
      bits: d >= log2(n), the default; further bits of the points are 0.
      alpha: in (0, 1/6].

    >>> parities(8).x[:, 0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    users = arguments.count("users", users, at_least=4, at_most=MOST_ROWS)
    if users & (users - 1):
        raise ValueError(f"users must be a power of two, got {users}")
    bits = users.bit_length() - 1 if bits is None else bits
    _fits(bits, "n strings", users - 1)
    alpha = arguments.real("alpha", alpha, above=0.0, at_most=1 / 6)
    return Form(x=_points(np.arange(users), bits), alpha=alpha, users=users, share=4, least_errors=_parity_errors)


def _padding(users: int, alpha: Any) -> tuple[int, int, Any]:
    """(n, N, α): n users among N rows make a share of at least 3α."""
    users = arguments.count("users", users, at_least=2, at_most=MOST_ROWS)
    alpha = arguments.real("alpha", alpha, above=0.0, at_most=THIRD)
    rows = max(users, int(users / (3 * float(alpha))))
    if rows > MOST_ROWS:
        raise ValueError(
            f"alpha must be at least {users / (3 * MOST_ROWS):.3g} for {users} users, so that floor(n / 3α) <= 2^24, got {alpha}"
        )
    return users, rows, alpha


def _points(values: np.ndarray, bits: int) -> UInt32[Array, "rows limbs"]:
    """Numbers below 2^32 as wide points of `bits` bits."""
    x = np.zeros((len(values), wide.limbs_for(bits)), np.uint32)
    x[:, -1] = values
    return jax.device_put(x)


def _fits(bits: int, name: str, largest: int) -> None:
    bits = arguments.integer("bits", bits, at_least=1, at_most=wide.MAX_BITS)
    if largest.bit_length() > bits:
        raise ValueError(f"bits must be at least {largest.bit_length()} to hold {name}, got {bits}")


def _threshold_errors(labels: Bool[Array, "users k"]) -> Int[Array, "k"]:
    """Least over s of (zeros among the first s) + (ones among the rest)."""
    moved = jnp.cumsum(1 - 2 * labels.astype(jnp.int32), axis=0, dtype=jnp.int32)
    return packed.tally(labels) + jnp.minimum(jnp.min(moved, axis=0), 0)


def _constant_errors(labels: Bool[Array, "users k"]) -> Int[Array, "k"]:
    """All rows are one point: the rarer label."""
    ones = packed.tally(labels)
    return jnp.minimum(ones, labels.shape[0] - ones)


def _parity_errors(labels: Bool[Array, "users k"]) -> Int[Array, "k"]:
    """Least over a of #{x: <a, x> != y}: (n - max_a sum_x (-1)^(<a, x> + y)) / 2, by the Walsh-Hadamard transform."""
    signs = 1 - 2 * labels.astype(jnp.int32)
    sums = jax.vmap(gf2.walsh_hadamard, in_axes=1, out_axes=1)(signs)
    return (labels.shape[0] - jnp.max(sums, axis=0)) // 2
