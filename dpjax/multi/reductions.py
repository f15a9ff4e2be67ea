"""From PAC to empirical learning and back, k concepts at once (MULTI §2.7).

- A private empirical k-learner run on enough examples is a PAC k-learner: the same algorithm; `bounds.empirical_to_pac` (Theorem 12)
  counts the examples.
- A private PAC k-learner for n examples becomes a private empirical one for m = 9 n (Theorem 28): `empirical` draws n of the m rows with
  replacement and learns. On the uniform distribution over the m rows population error is empirical error, so accuracy is kept exactly;
  `accounting.with_replacement` (Lemma 29) says what privacy does: it improves.

    >>> import jax
    >>> from dpjax import MultiSample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import thresholds
    >>> from dpjax.multi import direct_sum, reductions
    >>> pac = direct_sum.direct_sum(lambda each: thresholds.exponential(bits=8, epsilon=each.epsilon), k=2, epsilon=1.0)
    >>> learner = reductions.empirical(pac, n=200)
    >>> x = wide.from_ints(list(range(256)) * 8, 8)
    >>> sample = MultiSample.create(x, [[v % 256 < 40, v % 256 < 90] for v in range(2048)])
    >>> outcome = learner(jax.random.key(0), sample)
    >>> round(learner.guarantee(rows=2048).epsilon, 3)
    0.168
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from dpjax.accounting import Guarantee, with_replacement
from dpjax.core import arguments
from dpjax.core.pytree import frozen, static
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome
from dpjax.data.sample import bucket


@frozen
class Empirical:
    """A PAC k-learner on rows drawn with replacement; build it by `empirical`.

    Attributes:
      learner: the PAC k-learner.
      n: rows drawn.
      capacity: rows of the drawn sample, a bucket (static).
    """

    learner: Any
    n: Int[Any, ""]
    capacity: int = static()

    def __call__(self, key: Array, sample: MultiSample) -> Outcome:
        """One run; the outcome is the PAC learner's.

        Raises:
          TypeError, ValueError: a sample that does not fit the PAC learner.
        """
        return _run(self, key, self.fit(sample))

    def predict(self, hypothesis: Any, x: UInt32[Array, "rows limbs"]) -> Bool[Array, "rows k"]:
        """What each hypothesis says of each point."""
        return self.learner.predict(hypothesis, x)

    def pmf(self, sample: MultiSample) -> Float[Array, "outcomes"]:
        """The law, averaged over all rows^n draws of rows that all count: for the exact verifier on tiny cases."""
        draws = jnp.asarray(list(itertools.product(range(sample.rows), repeat=int(self.n))), jnp.int32)

        def given(rows: Array) -> Array:
            return self.learner.pmf(MultiSample(x=sample.x[rows], y=sample.y[rows], n_valid=self.n, k=sample.k))

        return jnp.mean(jax.vmap(given)(draws), axis=0)

    def guarantee(self, *, rows: int, calibration: str = "proved") -> Guarantee:
        """On `rows` = m rows (the sample's n_valid), under REPLACE_ONE: Lemma 29, "printed" or "proved"."""
        promised = self.learner.guarantee()
        if promised is None:
            raise ValueError("learner must have a guarantee, got one built with allow_unproved=True")
        return with_replacement(promised, drawn=int(self.n), rows=rows, calibration=calibration)

    def fit(self, sample: MultiSample) -> MultiSample:
        """The sample, checked by the PAC learner and padded to its bucket."""
        return self.learner.fit(sample)


@jax.jit
def _run(reduced: Empirical, key: Array, sample: MultiSample) -> Outcome:
    key_rows, key_coins = jax.random.split(key)
    rows = draw_rows(key_rows, reduced.capacity, sample.n_valid)
    drawn = MultiSample(x=sample.x[rows], y=sample.y[rows], n_valid=jnp.asarray(reduced.n, jnp.int32), k=sample.k)
    return reduced.learner(key_coins, drawn)


def draw_rows(key: Array, count: int, rows: Int[Array, ""]) -> Int[Array, "count"]:
    """`count` independent row numbers: 64 random bits modulo rows < 2^31, so uniform to a relative 2^-33."""
    high, low = (jax.random.bits(one, (count,), jnp.uint32) for one in jax.random.split(key))
    rows = rows.astype(jnp.uint32)
    # (high 2^32 + low) mod rows by Horner's rule, a bit at a time: 2 r < 2^32 never overflows.
    rest = high % rows
    for bit in range(31, -1, -1):
        rest = (2 * rest + ((low >> np.uint32(bit)) & np.uint32(1))) % rows
    return rest.astype(jnp.int32)


def empirical(learner: Any, *, n: int) -> Empirical:
    """The empirical k-learner of Theorem 28; give it m = 9 n rows for the theorem as printed, m >= 2 for a guarantee.

    Args:
      learner: a PAC k-learner.
      n: rows it is given, for instance its `sample_size(alpha=, beta=)`.

    Formal guarantees: `Empirical.guarantee(rows=m)`. Accuracy (alpha, beta) of the PAC learner becomes empirical (alpha, beta).

    Raises:
      TypeError: learner is no k-learner. ValueError: n < 1.
    """
    if not (callable(learner) and hasattr(learner, "fit") and hasattr(learner, "guarantee")):
        raise TypeError(f"learner must be a k-learner of dpjax.multi, got {type(learner).__name__}")
    n = arguments.integer("n", n, at_least=1, at_most=2**30)
    return Empirical(learner=learner, n=np.int32(n), capacity=bucket(n))
