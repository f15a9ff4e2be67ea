"""Random draws with correct tails.

JAX's default float32 uniforms carry 23 bits, so their Laplace and Gumbel draws never pass about 16.7 scales and every
event rarer than 1e-7 is misjudged. Here rare events are decided on two 32-bit words: probabilities come out right to
half a unit of 2^-64 (5e-20), on both sides. Not promised: a cryptographic generator, or protection from floating-point side
channels (Mironov 2012).

**Words are stored before they are used.** Threefry's 20 rounds are one long elementwise expression, in which each value is
used about three times, and XLA fuses such an expression into the loops of its consumers. Where a consumer runs along another
axis than the words (one word decides about a whole row), the words are uniform in the loop that LLVM vectorises, and before it
vectorises, LLVM (of jaxlib 0.12) asks of each value whether it is uniform, operand by operand and without remembering the
answers: 3^20 steps, a program that never finishes compiling. If the value varies, the first operand ends the question. So the
words must never be fused into a consumer: on a CPU they are drawn in the branch of a conditional that the compiler cannot
resolve (`staging.once`). Conditionals are not fused, and within the branch there is nothing but the words themselves, along
whose axes counters or keys vary in every loop. The loop of `coins` does the same by its carry.
"""

import math
import operator
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, UInt32

from dpjax.core import bits as packed
from dpjax.core import logarithm, staging

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


@jax.jit(static_argnames="count")
def bits(key: Array, count: int) -> UInt32[Array, "count"]:
    """jax.random.bits(key, (count,), uint32), the same words, at half its cost on a CPU.

    JAX rolls Threefry's rounds into a loop there, to compile faster; each turn of it goes through memory. Here all 20 rounds
    (Threefry-2x32-20, Salmon et al. 2011) are one elementwise expression. Keys of other generators are left to JAX.
    """
    if not _is_threefry(key):
        return jax.random.bits(key, (count,), jnp.uint32)

    def words(data: Array) -> Array:
        return operator.xor(*_threefry(data, count))

    def stored(data: Array) -> Array:
        return staging.once(words, data)

    # Other compilers do not vectorise loops, and a conditional costs more on them.
    return lax.platform_dependent(jax.random.key_data(key), cpu=stored, default=words)


@jax.jit(static_argnames="count")
def pairs(key: Array, count: int) -> tuple[UInt32[Array, "count"], UInt32[Array, "count"]]:
    """The high and low halves of 64-bit words, of jax.random.bits(key, (count,), uint64) with x64: two words for the price of one.

    Threefry makes 64 bits at a time, of which JAX's 32-bit words are the exclusive or of the halves. They are not stored (a program
    of two results would go through the rounds twice): use them elementwise, in the body of a loop, whose results are stored.
    """
    if not _is_threefry(key):
        high, low = jax.random.bits(key, (2, count), jnp.uint32)
        return high, low
    return _threefry(jax.random.key_data(key), count)


def _is_threefry(key: Array) -> bool:
    """Whether this is a Threefry key, from which JAX would draw by counters."""
    partitionable = getattr(jax.config, "jax_threefry_partitionable", False)
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return partitionable and typed and str(jax.random.key_impl(key)) == "threefry2x32"


def for_loops(key: Array) -> Array:
    """The key itself if it is one of Threefry, else a Threefry key drawn from it: for loops in which every turn draws anew by `fold_in`.

    Under `vmap` other generators (rbg) draw the words of all lanes from the key of the first one. Once the loop of that lane has ended,
    its key stands still, and all further turns of other lanes would get the same words.

    >>> str(jax.random.key_impl(for_loops(jax.random.key(0, impl="rbg"))))
    'threefry2x32'
    """
    if str(jax.random.key_impl(key)) == "threefry2x32":
        return key
    return jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")


@jax.jit(static_argnames="count")  # traced once for every platform
def _threefry(data: UInt32[Array, "2"], count: int) -> tuple[Array, Array]:
    """Threefry-2x32-20 of the counters 0, ..., count - 1."""
    first, second = data
    keys = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    x, y = keys[0], keys[1] + jnp.arange(count, dtype=jnp.uint32)
    for turn in range(5):
        for rotation in _ROTATIONS[turn % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation)))
        x, y = x + keys[(turn + 1) % 3], y + (keys[(turn + 2) % 3] + np.uint32(turn + 1))
    return x, y


def exponential(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Standard exponential variates E = -ln U, with U = (64 random bits + 1/2) 2^-64.

    P[E > t] is right to a relative 2e-6 for t up to 31 (probability 3e-14), and beyond that to 1e-5 and 2^-65, as U is a multiple of
    2^-64. Small values are multiples of about 6e-8 in float32, so compare E with large numbers only; `bernoulli` does.
    """
    return -jnp.log(_unit(bits(key, 2 * math.prod(shape)).reshape(*shape, 2)))


def of_pairs(function: Callable[[Array, Array], Array], key: Array, shape: tuple[int, ...] = ()) -> Array:
    """An elementwise function of the high and low halves of independent 64-bit words, each as `pairs` makes it.

    The results are stored in place of the words (see the module). A longer array begins with the same draws.

    Args:
      function: recognised by equality, so pass the same function each time.
      key: a PRNG key.
      shape: of the result.
    """
    return _of_pairs(key, function, math.prod(shape)).reshape(shape)


@jax.jit(static_argnames=("function", "count"))
def _of_pairs(key: Array, function: Callable[[Array, Array], Array], count: int) -> Array:
    if not _is_threefry(key):
        return function(*pairs(key, count))

    def drawn(data: Array) -> Array:
        return function(*_threefry(data, count))

    def stored(data: Array) -> Array:
        return staging.once(drawn, data)

    return lax.platform_dependent(jax.random.key_data(key), cpu=stored, default=drawn)


def fine_exponential(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Standard exponential variates with full relative accuracy near 0 and right tails down to 5e-20, a pair of words each.

    `exponential` makes them with less arithmetic; it is exact where variates are compared with large numbers, as coins are, but its
    small ones are multiples of 6e-8. Noise needs accurate small ones, too, so neither function can replace the other.
    """
    return of_pairs(log_uniform, key, shape)


def log_uniform(high: UInt32[Array, "*s"], low: UInt32[Array, "*s"]) -> Float[Array, "*s"]:
    """-ln U for the uniform U whose binary digits are two words; relative accuracy at both ends of (0, 1)."""
    upper = high >= jnp.uint32(2**31)
    # Above 1/2 the logarithm is well conditioned in 1 - U, whose digits are the complement.
    high, low = jnp.where(upper, ~high, high).astype(float), jnp.where(upper, ~low, low).astype(float)
    nearer = (high + (low + 0.5) * 2.0**-32) * 2.0**-32
    # One logarithm serves both ends: 1 - nearer loses at most half a unit in the last place, which is added again.
    u = jnp.where(upper, 1 - nearer, nearer)
    lost = jnp.where(upper, nearer - (1 - u), 0.0)
    return lost - logarithm.positive(u)


def gumbel(key: Array, shape: tuple[int, ...] = ()) -> Float[Array, "*shape"]:
    """Standard Gumbel variables -ln E, both tails right to 5e-20 or so: with them added, logit i is the greatest with P ∝ exp(logit i)."""
    return of_pairs(_gumbel, key, shape)


def _gumbel(high: UInt32[Array, "*s"], low: UInt32[Array, "*s"]) -> Float[Array, "*s"]:
    return -logarithm.positive(log_uniform(high, low))


def _unit(words: UInt32[Array, "*shape 2"]) -> Float[Array, "*shape"]:
    """(64 bits + 1/2) 2^-64."""
    scaled = words.astype(float) * 2.0**-32
    # Where the first word is 0, with probability 2^-32, the second one carries the leading digits.
    return scaled[..., 0] + (scaled[..., 1] + 2.0**-33) * 2.0**-32


def bernoulli(key: Array, log_p: Float[Array, "*s"], log_q: Float[Array, "*s"]) -> Bool[Array, "*s"]:
    """True with probability exp(log_p), where exp(log_p) + exp(log_q) = 1; both tails as accurate as those of `exponential`.

    The rarer side is decided by an exponential's right tail, so neither 1e-15 nor 1 - 1e-15 is lost, and certain events are certain.
    """
    return decide(exponential(key, jnp.shape(log_p)), log_p, log_q)


def coins(
    key: Array, bias: UInt32[Array, "32 words"], rows: int, digits: int = packed.WORD
) -> UInt32[Array, "rows words"]:
    """Independent coins, packed: in every row, bit i of word w is 1 with probability bias[i, w] 2^-32, exactly.

    If all biases are multiples of 2^(32 - digits), only `digits` of the digits are drawn; the coins are the same.

    The bits i of 32 random words form a number below 2^32, one digit per word, and the coin is 1 iff that number is below the bias. The
    comparison runs from the last digit to the first, 32 coins at a time: a smaller digit makes it less, a greater one makes it not less,
    and an equal one leaves the verdict of the digits behind it. With the complement of the random digit, that is the majority of the three.
    """
    of_bias = packed.planes(bias)

    def compare(turn: Array, less: Array) -> Array:
        for half, word in enumerate(pairs(jax.random.fold_in(key, turn), less.size)):
            digit, word = of_bias[2 * turn + half][None], word.reshape(less.shape)
            less = (word & (digit | less)) | (digit & less)
        return less

    # No number is less than one whose digits are all 0.
    return lax.fori_loop(
        (packed.WORD - digits) // 2, packed.WORD // 2, compare, jnp.zeros((rows, bias.shape[1]), jnp.uint32)
    )


def decide(rarity: Float[Array, "*s"], log_p: Float[Array, "*s"], log_q: Float[Array, "*s"]) -> Bool[Array, "*s"]:
    """`bernoulli` given the standard exponential that decides."""
    rare = rarity > -jnp.minimum(log_p, log_q)
    return jnp.where(log_p < log_q, rare, ~rare)
