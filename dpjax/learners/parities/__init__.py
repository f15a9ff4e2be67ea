"""Learners of one parity c_v(x) = <v, x> mod 2 over {0,1}^d.

| factory | algorithm | privacy (REPLACE_ONE) | examples, uniform points |
|---|---|---|---|
| `exponential` | exponential mechanism over all 2^d parities, d <= 16 | (epsilon, 0) | 4 (d ln 2 + ln(1/beta)) / epsilon |

Neighbouring samples differ by the replacement of one example (x, y) by any other, whatever its label; the number of examples is public.
For k parities at once see `dpjax.multi.parities`, and `dpjax.multi.direct_sum` (MULTI Example 1).

    >>> import jax
    >>> from dpjax.concepts import parities as concept
    >>> from dpjax.learners import parities
    >>> law = concept.uniform_single(bits=10, target=700)
    >>> learner = parities.exponential(bits=10, epsilon=1.0)
    >>> n = learner.sample_size(alpha=0.1, beta=0.01)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), n, n))
    >>> n, float(law.error(outcome.hypothesis))
    (53, 0.0)
"""

from dpjax.learners.parities.exponential import ParityExponential, exponential

__all__ = ["ParityExponential", "exponential"]
