"""Parities PAR_d = {c_v : v in {0,1}^d}, c_v(x) = <v, x> mod 2, under the uniform distribution on {0,1}^d (MULTI §2.2.1, Definition 14).

Points and concepts are d-bit integers, 1 <= d <= 1024, as wide numbers (`dpjax.domains.wide`). Two parities agree everywhere or on
exactly half of the points, so errors are 0 or 1/2.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, UInt32

from dpjax.concepts.distribution import Distribution, of_hypotheses, of_hypothesis, of_tolerance
from dpjax.core import arguments, random
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.data.sample import Sample
from dpjax.domains import gf2, wide

MAX_BITS = 1024


@jax.jit
def label(v: UInt32[Array, "limbs"], x: UInt32[Array, "n limbs"]) -> Int[Array, "n"]:
    """c_v(x) for one parity.

    >>> label(wide.from_ints([5], 3)[0], wide.from_ints([1, 2, 5], 3)).tolist()
    [1, 0, 0]
    """
    return packed.odd(x & v[None]).astype(jnp.int32)


@jax.jit
def predict(hypothesis: UInt32[Array, "k limbs"], x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
    """c_v(x) for k parities."""
    return packed.unpack(gf2.product(x, hypothesis), hypothesis.shape[0])


@jax.jit
def nearest(table: Bool[Array, "points"]) -> Int[Array, ""]:
    """The parity closest to a hypothesis given by its 2^d values, which makes a learner of error < 1/4 proper and exact (MULTI Lemma 54).

    >>> int(nearest(jnp.array([0, 1, 0, 0], bool)))  # as near to 1 as to 2 and 3
    0
    >>> int(nearest(jnp.array([0, 1, 1, 0], bool)))
    3
    """
    return jnp.argmax(gf2.walsh_hadamard(1 - 2 * table.astype(jnp.int32))).astype(jnp.int32)


# --------------------------------------------------------------------------------------------------- distributions


def _points(key: Array, capacity: int, bits: int) -> UInt32[Array, "capacity limbs"]:
    """`capacity` uniform points; a larger capacity gives the same ones first."""
    limbs = wide.limbs_for(bits)
    words = random.bits(key, capacity * limbs).reshape(capacity, limbs)
    top = np.uint32((1 << (bits - 32 * (limbs - 1))) - 1)
    return words & jnp.asarray(np.r_[top, np.full(limbs - 1, 0xFFFFFFFF, np.uint32)])[None]


def _within(target: UInt32[Array, "*k limbs"], alpha: Float[ArrayLike, ""], bits: int) -> tuple[Array, Array]:
    """The target alone if alpha < 1/2, else everything."""
    low = wide.resize(target, wide.limbs_for(bits + 1))
    high = wide.add(low, jnp.zeros_like(low).at[..., -1].set(1))
    top = jnp.broadcast_to(wide.power_of_two(jnp.int32(bits), low.shape[-1]), low.shape)
    exact = ~(jnp.asarray(alpha, float) >= 0.5)  # also for NaN
    return jnp.where(exact, low, np.uint32(0)), jnp.where(exact, high, top)


@frozen
class UniformParities(Distribution):
    """Uniform points of {0,1}^d, each labelled by k target parities; build it by `uniform`."""

    targets: UInt32[Array, "k limbs"]
    bits: int = static()

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> MultiSample:
        """n independent k-labelled examples in `capacity` rows."""
        x = _points(key, capacity, self.bits)
        y = gf2.product(x, self.targets)
        return MultiSample(x=x, y=y, n_valid=n, k=self.targets.shape[0])

    @of_hypotheses
    def errors(self, hypotheses: UInt32[Array, "k limbs"]) -> Float[Array, "k"]:
        """P[h_j differs from c_j]: 0 if they are equal, else 1/2."""
        return jnp.where(jnp.all(hypotheses == self.targets, axis=-1), 0.0, 0.5)

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "k more"], UInt32[Array, "k more"]]:
        """(low, high), limbs of bits + 1 bits: h_j has error <= alpha exactly for low_j <= h_j < high_j."""
        return _within(self.targets, alpha, self.bits)


@frozen
class UniformParity(Distribution):
    """Uniform points labelled by a single parity; build it by `uniform_single`."""

    target: UInt32[Array, "limbs"]
    bits: int = static()

    def draw(self, key: Array, capacity: int, n: Int[Array, ""]) -> Sample:
        """n independent examples in `capacity` rows."""
        x = _points(key, capacity, self.bits)
        return Sample.tree_unflatten((False, False), (x, label(self.target, x), n))

    @of_hypothesis
    def error(self, hypothesis: UInt32[Array, "limbs"]) -> Float[Array, ""]:
        """0 if the hypothesis is the target, else 1/2."""
        return jnp.where(jnp.all(hypothesis == self.target), 0.0, 0.5)

    @of_tolerance
    @jax.jit
    def within(self, alpha: Float[ArrayLike, ""]) -> tuple[UInt32[Array, "more"], UInt32[Array, "more"]]:
        """(low, high), limbs of bits + 1 bits: h has error <= alpha exactly for low <= h < high."""
        return _within(self.target, alpha, self.bits)


def uniform(*, bits: int, targets: Sequence[int] | UInt32[Array, "k limbs"]) -> UniformParities:
    """Uniform points with the labels of k parities.

    Args:
      bits: d, from 1 to 1024.
      targets: k integers below 2^bits, or a wide array of them with two axes (as `random_targets` gives it).

    Raises:
      TypeError, ValueError: bits or a target out of range, or no targets.

    >>> import jax
    >>> d = uniform(bits=64, targets=[1, 2**63 + 5])
    >>> sample = d.sample(jax.random.key(0), 7, 5)
    >>> sample.labels[:, 0].astype(int).tolist() == (sample.x[:, 1] & 1).tolist(), d.errors(d.targets[::-1]).tolist()
    (True, [0.5, 0.5])
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    if getattr(targets, "ndim", 1) == 1:
        listed = arguments.several("targets", targets)
        ints = [arguments.integer("targets", v, at_least=0, at_most=(1 << bits) - 1) for v in listed]
        vectors = wide.from_ints(ints, bits)
    else:
        vectors = jnp.asarray(targets)
    if vectors.ndim != 2 or vectors.shape[0] == 0 or vectors.shape[1] != wide.limbs_for(bits):
        raise ValueError(f"targets must hold k >= 1 numbers of {wide.limbs_for(bits)} limbs, got shape {vectors.shape}")
    if not arguments.is_traced(vectors):
        wide.check_below("targets", vectors, bits)
    return UniformParities(targets=vectors, bits=bits)


def uniform_single(*, bits: int, target: int) -> UniformParity:
    """Uniform points with the labels of one parity.

    Raises:
      TypeError, ValueError: bits or target out of range.
    """
    several = uniform(bits=bits, targets=[target])
    return UniformParity(target=several.targets[0], bits=several.bits)


def random_targets(key: Array, *, bits: int, k: int) -> UInt32[Array, "k limbs"]:
    """k independent uniform parities.

    >>> import jax
    >>> random_targets(jax.random.key(0), bits=40, k=3).shape
    (3, 2)
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MAX_BITS)
    return _points(arguments.key(key), arguments.size("k", k), bits)
