"""Proper learners of thresholds c_j(x) = 1 iff x < j over X_d = {0, ..., 2^d - 1}: the hypothesis is a j in 0, ..., 2^d.

| factory | algorithm | privacy (REPLACE_ONE) | examples |
|---|---|---|---|
| `erm` | uniform among the thresholds of least empirical error | none | VC theory |
| `exponential` | exponential mechanism over all thresholds (Kasiviswanathan et al.) | (epsilon, 0) | d / (alpha epsilon) |
| `binary_search` | noisy binary search for the threshold (a baseline) | (epsilon, delta), delta >= 0 | d (delta = 0), d^1/2 |
| `length_search` | noisy binary search for the length of an interval (BNS §3.2) | (epsilon, delta) | d^1/2 log d |
| `power_search` | noisy binary search for its power of two (BNS §3.2) | (epsilon, delta) | log d log log d |
| `rec_concave` | LearnThresholds (BNS §3.4) | (epsilon, delta) | 8^N (log ... log d) / (alpha epsilon) |
| `amplified` | the optimiser of CLNSS Theorem 1.2 in RecConcave's place | (epsilon, delta) | 2^N (log ... log d) / (alpha epsilon) |
| `supported` | exponential mechanism over the thresholds that the sample supports | (epsilon, delta) | log (n d) / (alpha epsilon) |

Neighbouring samples differ by the replacement of one example (x, y) by any other, whatever its label; the number of examples is public.
Every learner can be called for a draw, and has a guarantee, its theorem's sample size and, given a sample, the exact law of its hypothesis.
The plain twins are in `dpjax.verify.plain`.

    >>> import jax
    >>> from dpjax import Sample
    >>> from dpjax.domains import wide
    >>> from dpjax.learners import thresholds
    >>> sample = Sample(x=wide.from_ints([10, 20, 2**20, 2**21] * 100, 24), y=[1, 1, 0, 0] * 100)
    >>> learner = thresholds.exponential(bits=24, epsilon=1.0)
    >>> outcome = learner(jax.random.key(0), sample)
    >>> 20 < wide.to_ints(outcome.hypothesis)[0] <= 2**20
    True
    >>> round(float(learner.success_probability(sample, error=0.1)), 3)
    1.0
"""

from dpjax.learners.thresholds.amplified import ThresholdAmplified, amplified
from dpjax.learners.thresholds.binary_search import BinarySearch, binary_search
from dpjax.learners.thresholds.erm import ThresholdErm, erm
from dpjax.learners.thresholds.exponential import ThresholdExponential, exponential
from dpjax.learners.thresholds.length_search import LengthSearch, length_search
from dpjax.learners.thresholds.power_search import PowerSearch, power_search
from dpjax.learners.thresholds.rec_concave import ThresholdRecConcave, rec_concave
from dpjax.learners.thresholds.supported import ThresholdSupported, supported

__all__ = [
    "BinarySearch",
    "LengthSearch",
    "PowerSearch",
    "ThresholdAmplified",
    "ThresholdErm",
    "ThresholdExponential",
    "ThresholdRecConcave",
    "ThresholdSupported",
    "amplified",
    "binary_search",
    "erm",
    "exponential",
    "length_search",
    "power_search",
    "rec_concave",
    "supported",
]
