"""Tardos's fingerprinting code (MULTI Proposition 49; Tardos 2008), with his score and a symmetric one (Škorić et al. 2008).

Column j has a secret bias p_j = sin^2 r_j, r_j uniform on [t', π/2 - t'], sin^2 t' = t = 1/(300 n); every user holds an
independent bit of that bias. A one counts U = sqrt((1-p)/p), a zero U = -sqrt(p/(1-p)): mean 0, variance 1, |U| < 1/sqrt(t). User
i is accused iff

    sum_j s_j U_ij > Z,    s_j = w'_j (asymmetric) or 2 w'_j - 1 (symmetric).

Let l = ceil(ln(n/xi)) and k = A n^2 l, with A = 100 (asymmetric, Tardos) or A = 30 (symmetric). All rests on e^u <= 1 + u + u^2
for u <= 1.79.

*Soundness.* User i is outside T: her bits are independent of w', given the biases. For 0 < a <= 1.79 sqrt(t), E[exp(a s_j U_ij)]
<= 1 + a^2, so P[score > Z] <= exp(a^2 k - a Z), and Z = min_a (a k + l/a) makes that exp(-l) <= xi/n. For long codes the minimum
is Z = 2 sqrt(k l): 20 n l for A = 100, Tardos's threshold. It holds for every word, every length and every law of the biases;
over all users it sums up to xi.

*Completeness.* Of the c <= n members of T let x hold a one in a column, and U_T be the sum of their U. As d/dr sin^{2x} r
cos^{2(c-x)} r = 2 p^x (1-p)^{c-x} U_T, the part of E[U_T] with x ones is C(c,x) ((1-t)^x t^{c-x} - t^x (1-t)^{c-x}) / (π - 4t').
A feasible word has w' = 1 at x = c and w' = 0 at x = 0; elsewhere the pirates choose, to gain at most (1 - (1-t)^c) / (π - 4t') per
side. Hence E[s U_T] >= mu = (1 - 2nt)/π for the asymmetric score and twice that for the symmetric one, and for b <= 1.79
sqrt(t)/n, by E[U_T^2] = c,

    P[nobody in T is accused] <= P[sum_{i in T} score_i <= c Z] <= exp(b n Z - k (b mu - b^2 n)).

(The columns multiply: given what T sees, the biases are independent.) With the lengths above this is at most xi/n for n = 3 and (xi/n)^1.3
for every n >= 4, and falls with n: see `Tardos.completeness`, which finds the best b. The constants of (xi, xi)-security are thus proved
here for both scores.

*Numbers.* The bias of the rarer symbol is exactly a multiple of 2^-32, and a fair coin chooses that symbol: so p and 1 - p have the same
relative precision, and U is exact to float32 rounding (2e-7) for the bias really used. r has 24 random digits.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.core import arguments, bits, random
from dpjax.core.pytree import frozen, static
from dpjax.fingerprinting.codes import BLOCK, MOST_COLUMNS, Accusation, Book, Code, Columns, security

SCORES = {"asymmetric": 100, "symmetric": 30}  # A: the length is A n^2 l
_STEEPEST = 1.79  # e^u <= 1 + u + u^2 up to here


@frozen
class Bias:
    """The biases of a block.

    Attributes:
      rare: P[the rarer symbol] as a multiple of 2^-32, from t to 1/2.
      ones: whether the rarer symbol is 1.
    """

    rare: UInt32[Array, "*block"]
    ones: Bool[Array, "*block"]

    def probability(self) -> Float[Array, "*block"]:
        """p, the probability of a one."""
        rare = self.rare.astype(float) * 2.0**-32
        return jnp.where(self.ones, rare, 1 - rare)

    def weights(self) -> tuple[Float[Array, "*block"], Float[Array, "*block"]]:
        """(U of a one, U of a zero)."""
        rare = self.rare.astype(float) * 2.0**-32
        ratio = jnp.sqrt((1 - rare) / rare)
        return jnp.where(self.ones, ratio, 1 / ratio), -jnp.where(self.ones, 1 / ratio, ratio)


@frozen
class Tardos(Code):
    """The code; build it by `tardos`.

    Attributes:
      log_term: l = ceil(ln(n/xi)).
      threshold: Z.
      users: n.
      length: k.
      score: "asymmetric" or "symmetric".
    """

    log_term: Float[Any, ""]
    threshold: Float[Any, ""]
    users: int = static()
    length: int = static()
    score: str = static()

    @property
    def cutoff(self) -> float:
        """t = 1/(300 n): every bias lies in [t, 1 - t]."""
        return 1 / (300 * self.users)

    def secret(self, key: Array) -> Array:
        """The key: blocks are independent, and each must be the same however many are processed together."""
        return random.for_loops(key)

    def columns(self, secret: Array, block: Int[Array, ""]) -> Columns:
        """Biases and bits of a block, from fold_in(key, block)."""
        return self.unpacked(*self.packed(secret, block), block)

    def packed(self, secret: Array, block: Int[Array, ""]) -> tuple[UInt32[Array, "users words"], Bias]:
        """The bits of a block, 32 to a word, and its biases; column j * 32 + w is bit j of word w."""
        key_bias, key_bits = jax.random.split(jax.random.fold_in(secret, block))
        bias = self._bias(key_bias)
        ones = jnp.where(bias.ones, bias.rare, -bias.rare)  # P[1] as a multiple of 2^-32
        ones = jnp.where(self.valid(block), ones, np.uint32(0))
        return random.coins(key_bits, ones.reshape(bits.WORD, -1), self.users), bias

    def unpacked(self, words: UInt32[Array, "users words"], bias: Bias, block: Int[Array, ""]) -> Columns:
        """A block of columns."""
        return Columns(bits=bits.spread(words), valid=self.valid(block), hidden=bias)

    def _bias(self, key: Array) -> Bias:
        """sin^2 of an angle from t' to π/4, and a fair coin: the reflection at π/4 swaps the symbols."""
        words = random.bits(key, 2 * BLOCK)
        lowest = math.asin(math.sqrt(self.cutoff))
        angle = lowest + (math.pi / 4 - lowest) * (words[:BLOCK].astype(float) * 2.0**-32)
        rare = jnp.maximum(jnp.sin(angle) ** 2 * 2.0**32, math.ceil(self.cutoff * 2**32))
        return Bias(rare=jnp.minimum(rare, 2.0**31).astype(jnp.uint32), ones=words[BLOCK:] >= np.uint32(2**31))

    def generate(self, key: Array) -> "TardosBook":
        """A codebook: one bit per user and column, packed, and 5 bytes per column for its bias."""
        return _generate(self, arguments.key(key))

    def nothing(self) -> Float[Array, "users"]:
        """A score of 0 for every user."""
        return jnp.zeros(self.users, float)

    def part(self, columns: Columns, word: Bool[Array, "block"]) -> Float[Array, "users"]:
        """sum_j s_j U_ij over the columns of a block."""
        one, zero = columns.hidden.weights()
        sign = word.astype(float) if self.score == "asymmetric" else jnp.where(word, 1.0, -1.0)
        sign = jnp.where(columns.valid, sign, 0.0)
        return jnp.sum(jnp.where(columns.bits, (sign * one)[None, :], (sign * zero)[None, :]), axis=1)

    def accuse(self, sums: Float[Array, "users"]) -> Accusation:
        """Scores against Z."""
        thresholds = jnp.full(self.users, jnp.asarray(self.threshold, float))
        return Accusation(accused=sums > thresholds, scores=sums, thresholds=thresholds)

    def innocent(self) -> float:
        """exp(-l) <= xi/n, for every word."""
        return math.exp(-float(self.log_term))

    def completeness(self) -> float:
        """min_b exp(b n Z - k (b mu - b^2 n)), at most 1, over b <= 1.79 sqrt(t)/n."""
        n, k = self.users, self.length
        mean = (1 - 2 * n * self.cutoff) / math.pi * (1 if self.score == "asymmetric" else 2)
        gain = k * mean - n * float(self.threshold)
        b = min(gain / (2 * k * n), _STEEPEST * math.sqrt(self.cutoff) / n)
        return math.exp(-b * (gain - b * k * n)) if gain > 0 else 1.0


@frozen
class TardosBook(Book):
    """A codebook, packed.

    Attributes:
      code: its code.
      words: packed bits, block by block.
      bias: the biases, leaves of shape (blocks, BLOCK).
    """

    code: Tardos
    words: UInt32[Array, "blocks users words"]
    bias: Bias

    @property
    @jax.jit
    def probabilities(self) -> Float[Array, "length"]:
        """The secret biases p_j."""
        return self.bias.probability().reshape(-1)[: self.code.length]

    def columns(self, block: Int[Array, ""]) -> Columns:
        """Block b of the columns."""
        bias = Bias(rare=self.bias.rare[block], ones=self.bias.ones[block])
        return self.code.unpacked(self.words[block], bias, block)


def tardos(users: int, xi: Any = 0.05, *, score: str = "asymmetric", length: int | None = None) -> Tardos:
    """Tardos's code of security xi (Definition 41): k = 100 n^2 ceil(ln(n/xi)) columns, 30 n^2 ceil(ln(n/xi)) for the symmetric score.

    Tardos's own parameter is the error for each innocent user, here xi/n: k = 100 n^2 ceil(ln(1/(xi/n))), Z = 20 n ceil(ln(1/(xi/n))).

    Args:
      users: n >= 3 (for two users the completeness proof does not reach xi).
      xi: in [2^-960, 1). Soundness: xi in total, xi/n for each innocent user. Completeness: at most xi/n.
      score: "asymmetric" (columns where w' = 1 count) or "symmetric" (all count).
      length: k, instead of the proved one. Z follows: soundness is as before at every length, completeness is whatever
        `completeness()` says.

    Returns:
      The code: `generate(key)`, `stream(key)`, `trace(book, word)`, `threshold`, `innocent()`, `soundness()`, `completeness()`.

    Raises:
      TypeError, ValueError: an argument is out of range, or the code would have more than 2^31 - 1024 columns.

    >>> import jax
    >>> code = tardos(4, xi=0.1)
    >>> book = code.generate(jax.random.key(0))
    >>> code.length, float(code.threshold), code.trace(book, book.bits[1]).accused.tolist()
    (6400, 320.0, [False, True, False, False])
    """
    users = arguments.size("users", users, at_least=3)
    log_term = math.ceil(math.log(users / security(xi)))
    proved = SCORES[arguments.choice("score", score, tuple(SCORES))] * users**2 * log_term
    chosen_by = "users and xi" if length is None else "length"
    length = proved if length is None else arguments.size("length", length)
    if length > MOST_COLUMNS:
        raise ValueError(f"{chosen_by} must give at most {MOST_COLUMNS} columns, got {length} for {users} users")
    steepness = min(math.sqrt(log_term / length), _STEEPEST / math.sqrt(300 * users))
    threshold = steepness * length + log_term / steepness
    return Tardos(
        log_term=np.float64(log_term), threshold=np.float64(threshold), users=users, length=length, score=score
    )


@jax.jit
def _generate(code: Tardos, key: Array) -> TardosBook:
    secret = code.secret(key)

    blocks = jnp.arange(code.blocks, dtype=jnp.int32)
    words, bias = jax.lax.map(lambda block: code.packed(secret, block), blocks)
    return TardosBook(code=code, words=words, bias=bias)
