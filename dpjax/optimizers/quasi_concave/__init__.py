"""Quasi-concave optimisation (BNS Definition 3.7): one problem, three optimisers.

Given Q of sensitivity 1 on {0, ..., T} with max Q >= p, find x with Q(x) >= (1 - alpha) p. Q is quasi-concave if no point between two
others is worse than both.

| factory | algorithm | privacy | additive error alpha p that it needs |
|---|---|---|---|
| `exponential` | exponential mechanism over all points | (epsilon, 0) | (2/epsilon) ln(T/beta) |
| `rec_concave` | RecConcave (BNS §3.3) | (epsilon, delta) | 8^N, N <= log* T levels |
| `amplified` | amplified interior points (CLNSS §1.3.5) | (epsilon, delta) | 2^N |

Call an optimiser with a key and a `problem`. An event is a half-open interval of points; the laws are exact, `error` is the derived
additive error. Neighbours are datasets whose qualities differ by at most 1 everywhere: `relation` says which those are.

    >>> import jax
    >>> from dpjax.domains import ordered, wide
    >>> from dpjax.optimizers import quasi_concave
    >>> pieces = ordered.from_breakpoints([0, 2**20, 2**20 + 9], [0.0, 3100.0, 500.0], 2**24, beyond=0.0)
    >>> problem = quasi_concave.problem(pieces, promise=3000, alpha=0.5)
    >>> optimizer = quasi_concave.amplified(bits=24, epsilon=1.0, delta=1e-6)
    >>> round(optimizer.error(0.1)), optimizer.error(0.1) <= 0.5 * 3000
    (330, True)
    >>> outcome = optimizer(jax.random.key(0), problem)
    >>> 0 <= wide.to_ints(outcome.hypothesis)[0] - 2**20 < 9
    True
    >>> round(float(optimizer.success_probability(problem)), 6)
    1.0
"""

from dpjax.optimizers.quasi_concave.amplified import Amplified, amplified
from dpjax.optimizers.quasi_concave.base import QuasiConcave, problem
from dpjax.optimizers.quasi_concave.exponential import QuasiConcaveExponential, exponential
from dpjax.optimizers.quasi_concave.rec_concave import QuasiConcaveRecConcave, rec_concave
from dpjax.optimizers.quasi_concave.split import Split

__all__ = [
    "Amplified",
    "QuasiConcave",
    "QuasiConcaveExponential",
    "QuasiConcaveRecConcave",
    "Split",
    "amplified",
    "exponential",
    "problem",
    "rec_concave",
]
