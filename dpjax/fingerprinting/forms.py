"""How a codebook becomes a k-labelled database, and k hypotheses a pirate word (MULTI Theorems 43, 47, Remarks 44, 48, Proposition 51).

User i's row of the code labels an example x_i; a user outside the coalition is replaced by a nonce row (x_i, 0, ..., 0): x stays,
so two coalitions that differ in one user give neighbours even for label privacy. With padding, junk rows (x_0, 0, ..., 0) bring the
n users to N rows. The word's bit j is read off u_j, the number of users' rows to which hypothesis h_j gives a one.

| form | the users' points | u_j of an α-accurate h_j, on a 0-marked and on a 1-marked column | bit 1 iff u_j >= | feasible if αN < |
|---|---|---|---|---|
| `thresholds` | 0, ..., n-1; x_0 = n | <= αN, >= n - αN | n/2 | ceil(n/2) |
| `agnostic` | x, n times | 0 or n, of which the wrong one is an excess of n/N | n/2 | n |
| `parities` | the n = 2^d binary strings; x_0 = 0 | <= αN, >= n/2 - αN | n/4 | n/4 |

so **α-accurate hypotheses give a feasible word** if αN is below the last column. (Thresholds: every column of the Boneh-Shaw code is a
threshold's labels, so "accurate" is meant in the PAC sense. The others use excess error, agnostically. On a 1-marked column of
`parities` every concept but 0 errs on n/2 rows, and 0 on all.) The paper's proofs read the word off all N rows, among which a wrong
answer on a junk row counts like one on a user's; hence its N = n/3α for the first two forms, and α <= 1/6 for the third.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, bisection
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.domains import gf2, wide

MOST_ROWS = 2**24  # up to here float32 holds every number of rows, which `excess` divides


@frozen
class Form:
    """One row of the table; build it by `thresholds`, `agnostic` or `parities`.

    Attributes:
      x: the points of the database, the users' first, then the junk rows'.
      alpha: accuracy at which the word is feasible.
      users: n.
      share: bit j is 1 iff share * u_j >= n.
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

    @jax.jit(static_argnames="k")
    def database(self, words: UInt32[Array, "users words"], coalition: Bool[Array, "users"], k: int) -> MultiSample:
        """The coalition's rows, nonce rows for the others, and junk rows."""
        held = jnp.where(coalition[:, None], words, np.uint32(0))
        y = jnp.pad(held, ((0, self.rows - self.users), (0, 0)))
        return MultiSample(x=self.x, y=y, n_valid=jnp.asarray(self.rows, jnp.int32), k=k)

    def word(self, answers: Bool[Array, "rows k"]) -> Bool[Array, "k"]:
        """The pirate word, from the hypotheses' answers on the rows."""
        return self.share * packed.tally(answers[: self.users]) >= self.users

    def excess(self, answers: Bool[Array, "rows k"], labels: Bool[Array, "rows k"]) -> Float[Array, "k"]:
        """Empirical error of every hypothesis minus that of the best concept for its column (all are right on junk rows)."""
        wrong = packed.tally(answers != labels) - self.least_errors(labels[: self.users])
        return wrong.astype(float) / self.rows


def thresholds(users: int, *, bits: int = 32, rows: int | None = None, alpha: Any = None) -> Form:
    """Theorem 43 with Remark 44, for thresholds c_j(x) = 1 iff x < j and the Boneh-Shaw code.

    Args:
      users: n.
      bits: d, of the domain; n + 1 points must fit.
      rows: N, from n to 2^24. Default: as many as alpha allows, and n if alpha is not given either.
      alpha: accuracy at which the word is feasible, above 0 and below ceil(n/2) / N. Default: just below that.

    >>> thresholds(10, alpha=0.1).rows, round(float(thresholds(10, rows=100).alpha), 6)
    (49, 0.05)
    """
    users = _users(users)
    rows, alpha = _padding(users, -(-users // 2), rows, alpha)
    _fits(bits, "n + 1 points", users)
    return Form(
        x=_points(np.minimum(np.arange(rows), users), bits),
        alpha=alpha,
        users=users,
        share=2,
        least_errors=_threshold_errors,
        thresholds_only=True,
    )


def agnostic(
    users: int, *, bits: int = 32, point: int = 0, junk: int = 1, rows: int | None = None, alpha: Any = None
) -> Form:
    """Theorem 47 with Remark 48, for any class with concepts that differ at `point` and any code.

    Args:
      users: n.
      bits: d, of the domain.
      point: x; some concept labels it 0, some 1.
      junk: x_0; those two concepts label it 0. Only used with padding. The defaults suit points and thresholds.
      rows: N, from n to 2^24. Default: as many as alpha allows, and n if alpha is not given either.
      alpha: accuracy at which the word is feasible, above 0 and below n / N. Default: just below that.

    >>> agnostic(10).rows, agnostic(10, alpha=0.1).rows
    (10, 99)
    """
    users = _users(users)
    rows, alpha = _padding(users, users, rows, alpha)
    for name, value in (("point", point), ("junk", junk)):
        _fits(bits, name, arguments.integer(name, value, at_least=0))
    if point == junk:
        raise ValueError(f"junk must differ from point, got {junk} for both")
    both = np.asarray(wide.from_ints([point, junk], bits))  # either may be wider than a machine's integers
    x = jax.device_put(np.repeat(both, [users, rows - users], axis=0))
    return Form(x=x, alpha=alpha, users=users, share=2, least_errors=_constant_errors)


def parities(users: int, *, bits: int | None = None, rows: int | None = None, alpha: Any = None) -> Form:
    """Proposition 51, for parities and any code: the users hold all binary strings of log2(n) bits.

    Args:
      users: n, a power of two, at least 4.
      bits: d >= log2(n), the default; further bits of the points are 0.
      rows: N, from n to 2^24; the proposition has no junk rows. Default: as many as alpha allows, and n if alpha is not given either.
      alpha: accuracy at which the word is feasible, above 0 and below n / (4N). Default: just below that.

    >>> parities(8).x[:, 0].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    users = _users(users, at_least=4)
    if users & (users - 1):
        raise ValueError(f"users must be a power of two, got {users}")
    bits = users.bit_length() - 1 if bits is None else bits
    _fits(bits, "n strings", users - 1)
    rows, alpha = _padding(users, users // 4, rows, alpha)
    places = np.arange(rows) * (np.arange(rows) < users)
    return Form(x=_points(places, bits), alpha=alpha, users=users, share=4, least_errors=_parity_errors)


def _users(users: int, at_least: int = 2) -> int:
    return arguments.count("users", users, at_least=at_least, at_most=MOST_ROWS)


def _padding(users: int, wrong: int, rows: int | None, alpha: Any) -> tuple[int, Any]:
    """(N, α), either of which may be left out, with α just below wrong / N at most, the least excess error of a wrong bit."""
    if alpha is not None:
        alpha = arguments.known("alpha", arguments.real("alpha", alpha, above=0.0))
    if rows is None:
        if alpha is not None and alpha <= _below(wrong, MOST_ROWS + 1):
            raise ValueError(
                f"alpha must be above {wrong / MOST_ROWS:.3g}, so that it allows at most 2^24 rows, got {alpha}"
            )
        fits = users if alpha is None else bisection.least_int(lambda rows: alpha > _below(wrong, rows), 1) - 1
        rows = max(users, fits)
    rows = arguments.integer("rows", rows, at_least=users, at_most=MOST_ROWS)
    largest = _below(wrong, rows)
    if alpha is not None and alpha > largest:
        raise ValueError(f"alpha must be below {wrong / rows:.3g} for {users} users among {rows} rows, got {alpha}")
    return rows, largest if alpha is None else alpha


def _below(wrong: int, rows: int) -> np.float64:
    """Just below wrong / rows: where `excess` is computed in float32, it is above this as well, for two of its roundings are smaller."""
    return np.float64(wrong / rows * (1 - 2.0**-22))


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
