"""The Boneh-Shaw fingerprinting code (MULTI §5, Lemma 45; Boneh and Shaw 1998).

A column of type s holds ones for users 1, ..., s and zeros for the others: the labels that the threshold c_s gives the points 0,
..., n-1, so the code is compatible with thresholds (Definition 42). Each type has B = ceil(2 n^2 L) copies, L = ln(2n/xi), and
the columns are secretly permuted. Let W_s count the ones of a word w' on the columns of type s.

*Test.* Types s-1 and s differ for user s alone. With R = W_{s-1} + W_s, user s is accused iff W_s - R/2 > sqrt(L R/2).

*Soundness.* If s is outside the coalition, then, given all that the coalition sees, the 2B columns of types s-1 and s are in
uniformly random order: given R, W_s is hypergeometric with mean R/2. By Hoeffding (his bound holds for draws without replacement)
P[W_s - R/2 > z] <= exp(-2 z^2 / R), which at z = sqrt(L R/2) is exp(-L) = xi/(2n). Nothing was asked of w': this holds for every
word.

*Completeness.* Let types run from 0 to n; then a feasible word has W_0 = 0 and W_n = B. If nobody is accused, then by induction
W_s <= s (s+1) L: W_s - W_{s-1} <= sqrt(2 L (W_s + W_{s-1})) holds for W_s no larger than the greater root of a quadratic that grows
with W_{s-1}, which is W_{s-1} + L + sqrt(L^2 + 4 L W_{s-1}); at W_{s-1} = (s-1) s L that root is s (s+1) L. So W_n <= n (n+1) L, which is
below 2 n^2 L <= B, a contradiction (n >= 2): some user is surely accused. More than n (n+1) L copies are enough.

Variant "padded" (default) is the code above. Variant "original" leaves out the types 0 and n, on which a feasible word is known beforehand,
and accuses user 1 if W_1 > 0 and user n if W_{n-1} < B. That is shorter by 2B columns, complete by the same induction, and sound
**for feasible words only**: a coalition without user 1 that writes a one in every column surely frames her.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dpjax.core import arguments, bits
from dpjax.core.pytree import frozen, static
from dpjax.fingerprinting.arrangement import arrangement
from dpjax.fingerprinting.codes import BLOCK, MOST_COLUMNS, Accusation, Code, Columns, Stream, security

VARIANTS = ("padded", "original")
ROUNDED = 1 + 2.0**-20  # the factor by which thresholds that are rounded to float32 may be larger, squared
_LANES = 128  # columns along which vector instructions run


@frozen
class BonehShaw(Code):
    """The code; build it by `boneh_shaw`.

    Attributes:
      log_term: L = ln(2 n / xi).
      users: n.
      copies: B, columns of each type.
      variant: "padded" or "original".
    """

    log_term: Float[Any, ""]
    users: int = static()
    copies: int = static()
    variant: str = static()

    @property
    def types(self) -> range:
        """The column types that exist."""
        return range(self.users + 1) if self.variant == "padded" else range(1, self.users)

    @property
    def length(self) -> int:  # type: ignore[override]
        """k = B times the number of types."""
        return len(self.types) * self.copies

    @property
    def every_word(self) -> bool:  # type: ignore[override]
        """Whether soundness holds for every word."""
        return self.variant == "padded"

    @jax.jit
    def secret(self, key: Array) -> Int[Array, "blocks block"]:
        """The type of every column, in secret order; 0 past the last."""
        types = self.types.start + arrangement(key, len(self.types), self.copies)
        return jnp.pad(types, (0, self.blocks * BLOCK - self.length)).reshape(self.blocks, BLOCK)

    def columns(self, secret: Array, block: Int[Array, ""]) -> Columns:
        """Ones for the users below the type."""
        types = secret[block]
        held = jnp.arange(self.users, dtype=jnp.int32)[:, None] < types[None, :]
        return Columns(bits=held, valid=self.valid(block), hidden=types)

    def generate(self, key: Array) -> Stream:
        """A codebook. It is held as one type per column, n times less than the matrix."""
        return _generate(self, arguments.key(key))

    def nothing(self) -> Int[Array, "types"]:
        """No ones on any type."""
        return jnp.zeros(self.users + 1, jnp.int32)

    def part(self, columns: Columns, word: Bool[Array, "block"]) -> Int[Array, "types"]:
        """Ones of the word by type, 0, ..., n."""
        types = jnp.arange(self.users + 1, dtype=jnp.int32)[None, :, None]
        counted = jnp.where(word & columns.valid, columns.hidden, -1).reshape(-1, 1, _LANES)
        return jnp.sum(bits.tally(counted == types), axis=1, dtype=jnp.int32)

    def accuse(self, sums: Int[Array, "types"]) -> Accusation:
        """Scores W_s - R/2 against thresholds sqrt(L R/2), s = 1, ..., n.

        In the original variant user 1 scores W_1 and user n scores B - W_{n-1}, against 0.
        """
        counts = sums.astype(float)
        # From the difference: counts themselves may exceed float32's 24 digits.
        scores = (sums[1:] - sums[:-1]).astype(float) / 2
        thresholds = jnp.sqrt(jnp.asarray(self.log_term, float) * (counts[1:] + counts[:-1]) / 2)
        if self.variant == "original":
            scores = scores.at[0].set(counts[1]).at[-1].set((self.copies - sums[self.users - 1]).astype(float))
            thresholds = thresholds.at[0].set(0.0).at[-1].set(0.0)
        return Accusation(accused=scores > thresholds, scores=scores, thresholds=thresholds)

    def innocent(self) -> float:
        """exp(-L) = xi / (2n): for every word if padded, for feasible words if original."""
        return math.exp(-float(self.log_term))

    def completeness(self) -> float:
        """0 with more than n (n+1) L copies: a feasible word always accuses somebody."""
        enough = self.users * (self.users + 1) * float(self.log_term) * ROUNDED
        return 0.0 if self.copies > enough else 1.0


def boneh_shaw(users: int, xi: Any = 0.05, *, variant: str = "padded", copies: int | None = None) -> BonehShaw:
    """Boneh and Shaw's code of security xi (Definition 41), compatible with thresholds.

    k = (n + 1) B columns, B = ceil(2 n^2 ln(2n/xi)); (n - 1) B in the original variant.

    Args:
      users: n >= 2.
      xi: in [2^-960, 1). Soundness holds with xi/2 in total and xi/(2n) for each innocent user, completeness with error 0.
      variant: "padded", sound for every word; "original", sound for feasible words.
      copies: columns of each type, instead of B. The thresholds stay: soundness holds as before, completeness only with more than
        n (n+1) ln(2n/xi).

    Returns:
      The code: `generate(key)`, `stream(key)`, `trace(book, word)`, `length`, `innocent()`, `soundness()`, `completeness()`.

    Raises:
      TypeError, ValueError: an argument is out of range, or the code would have more than 2^31 - 1024 columns.

    >>> import jax
    >>> code = boneh_shaw(3, xi=0.1)
    >>> book = code.generate(jax.random.key(0))
    >>> code.length, code.trace(book, book.bits[1]).accused.tolist()
    (296, [False, True, False])
    """
    users = arguments.size("users", users, at_least=2)
    log_term = math.log(2 * users / security(xi))
    variant = arguments.choice("variant", variant, VARIANTS)
    proved = math.ceil(2 * users**2 * log_term)
    chosen_by = "users and xi" if copies is None else "copies"
    copies = proved if copies is None else arguments.size("copies", copies)
    code = BonehShaw(log_term=np.float64(log_term), users=users, copies=copies, variant=variant)
    if code.length > MOST_COLUMNS:
        raise ValueError(f"{chosen_by} must give at most {MOST_COLUMNS} columns, got {code.length} for {users} users")
    return code


@jax.jit
def _generate(code: BonehShaw, key: Array) -> Stream:
    return code.stream(key)
