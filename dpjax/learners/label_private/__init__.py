"""The label-private learner (BNS Theorem 6.2; Figure 13 is missing from the text): points are public, labels are not.

1. B = the points of some examples. H = one concept for every way in which the class labels B: the dichotomies of B.
2. The exponential mechanism over H with score "labelled examples that h labels right", sensitivity 1, and epsilon.

H depends on the points alone, so only step 2 sees labels: (epsilon, 0) under REPLACE_LABEL (BNS Definition 6.1), and nothing under
REPLACE_ONE, since the output reveals points. |H| depends on the number of points and the VC dimension, and therefore so does the number
of examples: there is no price for the size of the domain, which every pure learner that protects examples pays in full.

Which examples give B, and which labels count:

* `unlabelled=n`, as in BNS: the labels of the first n examples are ignored and their points are B; the labels of the other r = m - n
  examples count. n = (64/a) (VC ln(128/a) + ln(8/b)), where BNS print 32 and 64: the proof needs an error of a/8 except with probability
  b/4, which is Theorem 2.13 at (a/8, b/4), (8/(a/8)) (VC ln(16/(a/8)) + ln(2/(b/4))); what is printed is that theorem at a/4. Further,
  r = max{(24/a) ln(4/b), (8/a) ln(4|H|/b), (8/(a eps)) ln(4|H|/b)}: the second and third terms count r examples, not m as printed, and
  |H| is at most sum_(i <= VC) C(n, i) by Sauer's lemma, where BNS print 2^n. At a = b = 0.1, eps = 1, VC = 1 this is 8,392 examples
  instead of 1,169,321. The first n must be a random part of the sample, so data that promise to be sorted are refused.
* By default, the points of all examples are B and all labels count. Nothing is set aside, as points are public: 2,031 examples in the same
  case.

`semi_private` (BNS §6.2) takes B from public points and all labels from the sample, whose examples then count only in step 2:
(epsilon, 0) under REPLACE_ONE, with r examples in addition to n public points.

Both sizes are derived in `dpjax.bounds.labels`. They hold for labels given by a concept of the class; privacy holds for any labels.

| class | dichotomies of n distinct points | VC | listed |
|---|---|---|---|
| `thresholds`, `points` | n + 1 | 1 | any n |
| `parities` | 2^rank | d | rank <= 16, any d <= 1024 |
| `rectangles` | at most sum_(i <= 2D) C(n, i) | 2D | (n (n + 1) / 2)^D <= 2^22, (2n + 1)^D <= 2^24 |

More points than can be listed are refused; where they are traced the output is bottom, which depends on the points only.
Rectangles take `dpjax.data.examples.Examples`.

    >>> import jax
    >>> from dpjax.concepts import thresholds
    >>> from dpjax.learners import label_private
    >>> learner = label_private.label_private(concepts=label_private.thresholds(bits=1024), epsilon=1.0)
    >>> law = thresholds.log_uniform(bits=1024)
    >>> sample = law.sample(jax.random.key(0), 255, 250)
    >>> outcome = learner(jax.random.key(1), sample)
    >>> bool(law.error(outcome.hypothesis) < 0.1), float(learner.probability(sample, law.within(0.1))[1]) < 1e-3
    (True, True)
    >>> print(learner.guarantee())
    (1.0, 0.0)-private under REPLACE_LABEL
"""

from dpjax.concepts.dichotomies import parities, points, rectangles, thresholds
from dpjax.learners.label_private.base import LabelPrivate
from dpjax.learners.label_private.making import label_private, semi_private
from dpjax.learners.label_private.of_parities import LabelPrivateParities
from dpjax.learners.label_private.of_points import LabelPrivatePoints
from dpjax.learners.label_private.of_rectangles import LabelPrivateRectangles
from dpjax.learners.label_private.of_thresholds import LabelPrivateThresholds

__all__ = [
    "LabelPrivate",
    "LabelPrivateParities",
    "LabelPrivatePoints",
    "LabelPrivateRectangles",
    "LabelPrivateThresholds",
    "label_private",
    "parities",
    "points",
    "rectangles",
    "semi_private",
    "thresholds",
]
