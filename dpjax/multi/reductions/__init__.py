"""Algorithms built from other algorithms: from PAC to empirical learners, and between sanitizers and learners.

| factory | takes | makes | paper |
|---|---|---|---|
| `empirical` | a private PAC k-learner for n examples | a private empirical one for more | MULTI Theorem 28 |
| `block_sanitizer` | a sanitizer for m rows | one for any number of blocks of m rows | BNS Lemma 5.1 |
| `label_class` | a sanitizer for C, of points | one for C^label, of labelled points | BNS Figure 12, Lemma 5.4 |
| `learn_by_sanitizing` | a sanitizer for C^label | a proper private learner of C | BNS Lemma 5.3, Theorem 5.5 |

Theorem 5.5 from end to end, in which a sanitizer of points becomes a learner:

    >>> import jax
    >>> from dpjax.concepts import dichotomies
    >>> from dpjax.concepts import thresholds as concept
    >>> from dpjax.multi import reductions
    >>> from dpjax.sanitizers import dense
    >>> points = dense.multiplicative_weights(queries=dense.thresholds(bits=8), rounds=50, epsilon=0.25, delta=1e-7)
    >>> labelled = reductions.label_class(points, block=64, epsilon=0.25)
    >>> learner = reductions.learn_by_sanitizing(labelled, dichotomies.thresholds(bits=8))
    >>> law = concept.uniform(bits=8, target=100)
    >>> outcome = learner(jax.random.key(0), law.sample(jax.random.key(1), 16383, 16000))
    >>> bool(law.error(outcome.hypothesis) < 0.1)
    True
    >>> learner.guarantee().covers(1.0, 2e-7)  # two sanitized parts and two noisy sizes
    True
"""

from dpjax.multi.reductions.block_sanitizer import BlockSanitizer, block_sanitizer
from dpjax.multi.reductions.databases import label_error
from dpjax.multi.reductions.empirical import Empirical, draw_rows, empirical
from dpjax.multi.reductions.label_class import LabelClass, label_class
from dpjax.multi.reductions.learn_by_sanitizing import LearnBySanitizing, learn_by_sanitizing

__all__ = [
    "BlockSanitizer",
    "Empirical",
    "LabelClass",
    "LearnBySanitizing",
    "block_sanitizer",
    "draw_rows",
    "empirical",
    "label_class",
    "label_error",
    "learn_by_sanitizing",
]
