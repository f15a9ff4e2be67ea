"""The improper pure learner of points: a random hash, then the exponential mechanism over its buckets and all-zero.

(Beimel, Brenner, Kasiviswanathan and Nissim 2014 gave the first learner of this kind.) A random affine map x -> A x + b over GF(2) into
X_m is pairwise independent, and is drawn without regard to the data: given the map, the learner is the exponential mechanism on X_m,
all-zero included. The error of the target's bucket is the mass under D of the other points in it, at most 2^-m on average: it is above
alpha/8 with probability at most 2^-m 8/alpha <= beta/2 for 2^m >= 16/(alpha beta). Only buckets that occur are examined, so the dependence
on beta costs no more than a logarithm.

Its plain twin, given the hash, is `dpjax.verify.plain.exponential.point_law` with the all-zero hypothesis.
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax import bounds
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.concepts.points import Point
from dpjax.core import arguments
from dpjax.core import bits as packed
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import whole
from dpjax.data.sample import Sample
from dpjax.domains import gf2, wide
from dpjax.domains.events import Interval, PointSet
from dpjax.learners.points import base
from dpjax.learners.points.base import OnePointLearner, Seen
from dpjax.learners.points.exponential import PointExponential

LOST = 1 / 8  # what part of alpha the target's bucket may lose to other points


@frozen
class Hash:
    """x -> A x + b over GF(2), from X_d to X_m, m <= 32.

    Attributes:
      rows: A, packed like points: bit i of the result (from the least) is the parity of x & rows[i].
      shift: b.
    """

    rows: UInt32[Array, "*k m limbs"]
    shift: UInt32[Array, "*k"]

    def __call__(self, x: UInt32[Array, "n limbs"]) -> UInt32[Array, "n 1"]:
        """The buckets of points."""
        return gf2.product(x, self.rows) ^ self.shift[None, None]


@frozen
class Bucket:
    """The hypothesis "x hashes to this bucket", or all-zero; k of them, each with its hash, where `zero` has an axis of k.

    Attributes:
      hash: the hash of points to buckets.
      bucket: the number of the bucket, a wide integer of one limb; it means nothing where `zero`.
      zero: whether the hypothesis is all-zero.
    """

    hash: Hash
    bucket: UInt32[Array, "*k 1"]
    zero: Bool[Array, "*k"]

    def predict(self, x: UInt32[Array, "rows more"]) -> Bool[Array, "rows *k"]:
        """The labels of points: shape (rows,), or (rows, k)."""
        if self.zero.ndim:
            return jax.vmap(lambda one: one.predict(x), out_axes=-1)(self)
        x = wide.resize(x, self.hash.rows.shape[1])
        return wide.equal(self.hash(x), self.bucket[None]) & ~self.zero

    def share(self, bits: Int[Array, ""]) -> Float[Array, "*k"]:
        """The share of X_bits in the bucket: 2^-rank(A) if A x = bucket - b has a solution, else 0."""
        if self.zero.ndim:
            return jax.vmap(lambda one: one.share(bits))(self)
        m, limbs = self.hash.rows.shape
        right = packed.unpack(self.bucket ^ self.hash.shift[None], m)[:, None].astype(jnp.uint32)
        solved = gf2.solve(self.hash.rows, right, columns=32 * limbs)
        return jnp.where(solved.consistent & ~self.zero, jnp.exp2(-solved.rank.astype(float)), 0.0)


@frozen
class HashedPoints(OnePointLearner):
    """The improper pure learner; see the module. It has a law only once its hash is given: `learner.given(learner.hash(key))`.

    Attributes:
      bits: d.
      epsilon: privacy parameter.
      limbs: of a point (static).
      buckets: m, the number of bits of a bucket (static).
    """

    output_kind: ClassVar[type] = Bucket
    bounded_range: ClassVar[bool] = True  # given any hash, which is drawn without regard to the data
    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    limbs: int = static()
    buckets: int = static()

    def hash(self, key: Array) -> Hash:
        """A random hash; it does not depend on the data."""
        key_rows, key_shift = jax.random.split(key)
        words = jax.random.bits(key_rows, (self.buckets, self.limbs), jnp.uint32)
        digits = wide.largest(self.bits, self.limbs)
        shift = wide.random_bits(key_shift, jnp.int32(self.buckets), 1)[0]
        return Hash(rows=words & digits[None], shift=shift)

    def given(self, hash: Hash) -> "GivenHash":
        """The learner with this hash, which has an exact law."""
        return GivenHash(bits=self.bits, epsilon=self.epsilon, hash=hash, limbs=self.limbs, buckets=self.buckets)

    def run(self, key: Array, sample: Sample) -> tuple[Bucket, Bool[Array, ""], Any]:
        key_hash, key_choice = jax.random.split(key)
        return self.given(self.hash(key_hash)).run(key_choice, sample)

    def prepare(self, sample: Sample) -> Seen:
        raise self._without_hash()

    def exactly(self, output: Any) -> PointSet:
        raise self._without_hash()

    def _without_hash(self) -> TypeError:
        return TypeError("HashedPoints has a law given its hash alone: that of learner.given(learner.hash(key))")

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE, since this holds for every hash."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """(ln(2^m + 1) + ln(2/beta)) / (alpha r), where the target's bucket loses alpha/8; for r see `bounds.exponential_points`.

        Targets may be all-zero.

        Raises:
          ValueError: too few buckets for this alpha and beta: 2^m < 16/(alpha beta).
        """
        _enough(self.buckets, alpha, beta)
        hypotheses = math.log(2.0**self.buckets + 1)
        return whole(bounds.exponential_points(hypotheses, alpha, beta / 2, float(self.epsilon), lost=LOST))


@frozen
class BucketSet(PointSet):
    """An event of `GivenHash`: a set of bucket numbers, as a `PointSet` is a set of points."""


@frozen
class GivenHash(OnePointLearner):
    """`HashedPoints` with its hash drawn: the exponential mechanism on hashed points.

    Events are intervals (low, high) and `BucketSet`s of bucket numbers. A set of points, such as `distribution.within(alpha)`, does not
    say which buckets belong to it, and is refused.

    Attributes:
      bits, epsilon, limbs, buckets: as for `HashedPoints`.
      hash: the hash.
    """

    output_kind: ClassVar[type] = Bucket
    bits: Int[Array, ""]
    epsilon: Float[Array, ""]
    hash: Hash
    limbs: int = static()
    buckets: int = static()

    def domain(self) -> tuple[Any, int]:
        return np.int32(self.buckets), 1

    def named(self, sample: Sample) -> UInt32[Array, "n 1"]:
        return self.hash(sample.x)

    def check_event(self, event: Any) -> Interval | PointSet:
        if isinstance(event, PointSet) and not isinstance(event, BucketSet):
            raise TypeError(
                f"event must be of numbers of buckets, an interval (low, high) or a BucketSet, got a set of points {event!r}"
            )
        return super().check_event(event)

    def exactly(self, output: Any) -> PointSet:
        return BucketSet(**vars(super().exactly(output)))

    def _mechanism(self) -> PointExponential:
        return PointExponential(bits=jnp.int32(self.buckets), epsilon=self.epsilon, limbs=1, zero=True)

    def draw(self, key: Array, seen: Seen) -> tuple[Bucket, Bool[Array, ""], Any]:
        chosen, released, info = self._mechanism().draw(key, seen)
        return self._bucket(chosen), released, info

    def log_law(self, seen: Seen) -> Float[Array, "entries"]:
        return self._mechanism().log_law(seen)

    def output(self, index: UInt32[Array, ""]) -> Bucket:
        return self._bucket(super().output(index))

    def _bucket(self, chosen: Point) -> Bucket:
        return Bucket(hash=self.hash, bucket=chosen.position, zero=chosen.zero)

    def _position(self, output: Any) -> Point:
        self._check_output(output)
        return Point(position=output.bucket, zero=output.zero)

    def guarantee(self) -> Guarantee:
        """(epsilon, 0) under REPLACE_ONE."""
        return Guarantee(float(self.epsilon), 0.0, REPLACE_ONE)

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """No number suffices: a hash may put every point into the target's bucket.

        Raises:
          ValueError: always.
        """
        raise ValueError(f"alpha = {alpha}, beta = {beta}: no number of examples suffices for every hash")


def hashed(
    *,
    bits: int,
    epsilon: Any,
    alpha: float = 0.1,
    beta: float = 0.1,
    buckets: int | None = None,
    allow_inaccurate: bool = False,
) -> HashedPoints:
    """The improper pure learner, whose sample size does not depend on d.

    Formal guarantees: (epsilon, 0) under REPLACE_ONE. Not promised: protection from floating-point side channels; a cryptographic
    generator.

    Args:
      bits: d, 1 to 4096.
      epsilon: > 0, finite.
      alpha, beta: error and failure probability for which the buckets must suffice.
      buckets: m, up to 31; by default the least m with 2^m >= 16/(alpha beta).
      allow_inaccurate: whether to allow fewer buckets than alpha and beta need, for simulations.

    Raises:
      TypeError, ValueError: an argument out of range, or too few buckets.
    """
    buckets = _least_buckets(alpha, beta) if buckets is None else buckets
    buckets = arguments.integer("buckets", buckets, at_least=1, at_most=31)
    if not arguments.flag("allow_inaccurate", allow_inaccurate):
        _enough(buckets, alpha, beta)
    return HashedPoints(**base.domain(bits), epsilon=arguments.epsilon(epsilon), buckets=buckets)


def _least_buckets(alpha: float, beta: float) -> int:
    """The least m with 2^m >= 16/(alpha beta)."""
    alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
    return math.ceil(1 - math.log2(LOST) - math.log2(alpha) - math.log2(beta))


def _enough(buckets: int, alpha: float, beta: float) -> None:
    """ValueError if there are fewer buckets than alpha and beta need."""
    needed = _least_buckets(alpha, beta)
    if buckets < needed:
        raise ValueError(f"2^buckets must be >= 16/(alpha beta), buckets >= {needed}, got {buckets}")
