"""From PAC to empirical learning and back, k concepts at once (MULTI §2.7).

- A private empirical k-learner run on enough examples is a PAC k-learner: the same algorithm; `bounds.empirical_to_pac` (Theorem 12)
  counts the examples.
- A private PAC k-learner for n examples becomes a private empirical one for m = 9 n (Theorem 28): `empirical` draws n of the m rows with
  replacement and learns. Under the uniform distribution over the m rows, population error is empirical error, so accuracy is preserved
  exactly; privacy improves, by `accounting.with_replacement` (Lemma 29).

    >>> import jax
    >>> from dpjax import MultiSample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import thresholds
    >>> from dpjax.multi import direct_sum, reductions
    >>> pac = direct_sum.direct_sum(lambda each: thresholds.exponential(bits=8, epsilon=each.epsilon), k=2, epsilon=1.0)
    >>> learner = reductions.empirical(pac, n=200, rows=2048)
    >>> x = wide.from_ints(list(range(256)) * 8, 8)
    >>> sample = MultiSample.create(x, [[v % 256 < 40, v % 256 < 90] for v in range(2048)])
    >>> outcome = learner(jax.random.key(0), sample)
    >>> round(learner.guarantee().epsilon, 3)
    0.168
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import REPLACE_ONE, Guarantee, with_replacement
from dpjax.accounting.guarantee import promised
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import if_good
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Status
from dpjax.data.sample import bucket
from dpjax.multi.base import KLearner

MOST_DRAWS = 2**20  # the most draws over which `pmf` averages


@frozen
class Empirical(KLearner):
    """A PAC k-learner on rows drawn with replacement; build it by `empirical`.

    Attributes:
      learner: the PAC k-learner.
      n: number of rows drawn.
      rows: m, the least number of rows to draw from.
      capacity: rows of the drawn sample with its padding, a bucket (static).
      calibration: constants of Lemma 29 (static).
    """

    learner: Any
    n: Int[Any, ""]
    rows: Int[Any, ""]
    capacity: int = static()
    calibration: str = static()

    @property
    def bits(self) -> Any:
        """d, the bits of a point of the domain."""
        return self.learner.bits

    @property
    def k(self) -> int:  # type: ignore[override]
        """Number of concepts."""
        return self.learner.k

    def draw(self, key: Array, sample: MultiSample) -> Any:
        key_rows, key_coins = jax.random.split(key)
        drawn = self._at(draw_rows(key_rows, self.capacity, sample.n_valid), sample)
        outcome = self.learner(key_coins, drawn)
        return outcome.hypothesis, outcome.status == Status.OK, outcome.info

    def _at(self, rows: Int[Array, "drawn"], sample: MultiSample) -> MultiSample:
        """The sample of the first n of these rows."""
        n = jnp.asarray(self.n, jnp.int32)
        return MultiSample(x=sample.x[rows], y=sample.y[rows], n_valid=n, k=sample.k)

    def pmf(self, sample: MultiSample) -> Float[Array, "outcomes"]:
        """The law, averaged over all draws of n of the sample's rows: for the exact verifier on tiny cases."""
        fit = self.fit(sample)
        if int(self.n) * math.log(sample.rows) > math.log(MOST_DRAWS):
            raise ValueError(
                f"a law is a mean over at most {MOST_DRAWS} draws, got {int(self.n)} of {sample.rows} rows each"
            )
        draws = jnp.asarray(list(itertools.product(range(sample.rows), repeat=int(self.n))), jnp.int32)
        laws = jax.vmap(lambda rows: self.learner.pmf(self._at(rows, sample)))(draws)
        chosen = jnp.all(draws < sample.n_valid, axis=1)
        return if_good(self, fit, jnp.mean(laws, axis=0, where=chosen[:, None]))

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        return self.learner.predict(hypothesis, x)

    def guarantee(self) -> Guarantee:
        """On `rows` = m rows or more, under REPLACE_ONE: Lemma 29, "printed" or "proved"."""
        return with_replacement(
            promised(self.learner, REPLACE_ONE), drawn=int(self.n), rows=int(self.rows), calibration=self.calibration
        )

    def sample_size(self, *, alpha: float, beta: float) -> int:
        """m: the empirical error is at most alpha except with probability beta, if n examples suffice for the PAC learner.

        They must suffice whatever their distribution.

        Raises:
          ValueError: they do not, or the learner's own theorem is about one distribution: learners of parities need uniform points,
          semi-private learners the distribution of their public points.
        """
        if not getattr(self.learner, "any_distribution", True):
            inner = getattr(self.learner, "learner", None)
            of = "" if inner is None else f" of {type(inner).__name__}"
            raise ValueError(
                "learner must learn any distribution; learners of parities, and semi-private ones, promise nothing of another one than "
                f"uniform, or their public points', got {type(self.learner).__name__}{of}"
            )
        needed = self.learner.sample_size(alpha=alpha, beta=beta)
        if int(self.n) < needed:
            raise ValueError(f"n must be >= {needed} for alpha = {alpha} and beta = {beta}, got {int(self.n)}")
        return int(self.rows)

    def fits(self, sample: MultiSample) -> Bool[Array, ""]:
        """Whether the sample is in the domain and has at least as many rows as the guarantee relies on."""
        return super().fits(sample) & (sample.n_valid >= self.rows)

    def fit(self, sample: MultiSample) -> MultiSample:
        sample = super().fit(sample)
        # What the learner asks of its data is asked of the n rows that it will see: it may be built for that many.
        self.learner.fit(self._at(jnp.zeros((self.capacity,), jnp.int32), sample))
        known = not any(map(arguments.is_traced, (sample.n_valid, self.rows)))
        if known and int(sample.n_valid) < int(self.rows):
            raise ValueError(
                f"sample must have at least the {int(self.rows)} rows that the guarantee is for, got {sample.n_valid}"
            )
        return sample


def draw_rows(key: Array, count: int, rows: Int[Array, ""]) -> Int[Array, "count"]:
    """`count` independent row numbers: 64 random bits modulo rows < 2^31, so uniform to a relative 2^-33.

    Raises:
      TypeError, ValueError: a known number of rows that is not an int, or below 1.
    """
    count = arguments.size("count", count)
    if not arguments.is_traced(rows):
        rows = jnp.asarray(arguments.size("rows", arguments.plain(rows)), jnp.int32)
    high, low = (jax.random.bits(one, (count,), jnp.uint32) for one in jax.random.split(key))
    rows = rows.astype(jnp.uint32)
    # (high 2^32 + low) mod rows by Horner's rule, a bit at a time: 2 r < 2^32 never overflows.
    rest = high % rows
    for bit in range(31, -1, -1):
        rest = (2 * rest + ((low >> np.uint32(bit)) & np.uint32(1))) % rows
    return rest.astype(jnp.int32)


def empirical(learner: Any, *, n: int, rows: int, calibration: str = "proved") -> Empirical:
    """The empirical k-learner of Theorem 28; give it rows = 9 n for the theorem as printed.

    Args:
      learner: a PAC k-learner.
      n: number of rows it is given, for instance its `sample_size(alpha=, beta=)`.
      rows: m >= 2, the least number of rows that samples will have: the more rows there are to draw from, the better the privacy.
      calibration: constants of Lemma 29, "proved" or "printed".

    Formal guarantees: `Empirical.guarantee()`. Accuracy (alpha, beta) of the PAC learner becomes empirical (alpha, beta).

    Raises:
      TypeError: learner is not a k-learner. ValueError: n < 1, rows < 2, another calibration.
    """
    if not (callable(learner) and all(hasattr(learner, name) for name in ("fit", "guarantee", "k"))):
        raise TypeError(f"learner must be a k-learner of dpjax.multi, got {type(learner).__name__}")
    n = arguments.integer("n", n, at_least=1, at_most=2**30)
    rows = arguments.integer("rows", rows, at_least=2, at_most=2**30)
    given: dict[str, Any] = {"n": np.int32(n), "rows": np.int32(rows)}
    return Empirical(learner=learner, **given, capacity=bucket(n), calibration=arguments.calibration(calibration))
