"""Learners of conjunctions and disjunctions of at most k literals of d Boolean variables (GEO §3).

| factory | algorithm | privacy (ADD_OR_REMOVE_ONE) | cost |
|---|---|---|---|
| `conjunction`, `disjunction` | SetCoverLearner | (epsilon, delta) | at most n d / 32 words per round |
| `greedy` | the classical greedy set cover | none | the same |
| `exponential` | KLNRS: the exponential mechanism over all of them | (epsilon, 0) | k n / 32 words for each of up to 65,536 concepts |

The privacy analysis of SetCoverLearner charges all rounds to one failing test; with `accountant="composition"` the rounds are composed
instead, which is the baseline that GEO improves on. Neighbouring samples differ by one added or removed example, whatever its label. Data
are `dpjax.data.assignments.Assignments`, which pack 32 examples into a word.

    >>> import jax
    >>> from dpjax.concepts import conjunctions as concept
    >>> from dpjax.learners import conjunctions
    >>> law = concept.product(bits=1000, target=[4, 11, 600], p=0.75)
    >>> learner = conjunctions.conjunction(bits=1000, k=3, epsilon=1.0, delta=1e-6, alpha=0.2)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 2**15, 30_000))
    >>> float(law.error(outcome.hypothesis)) < 0.2, learner.guarantee().covers(1.0, 1e-6)
    (True, True)
    >>> learner.sample_size(alpha=0.2, beta=0.1)
    42688
"""

from dpjax.learners.conjunctions.by_set_cover import SelectLiteral, conjunction, disjunction
from dpjax.learners.conjunctions.exponential import ConjunctionExponential, exponential
from dpjax.learners.conjunctions.greedy import Greedy, greedy

__all__ = [
    "ConjunctionExponential",
    "Greedy",
    "SelectLiteral",
    "conjunction",
    "disjunction",
    "exponential",
    "greedy",
]
