"""Rounds that share one failing test (GEO Claim 3.4, after Gupta et al. 2010), with the sharp form of its Lemma 3.5. Add/remove neighbours.

**The process.** In round j a coin falls heads with probability p_j on one dataset S, chosen by an adversary who sees the past; on S' the
odds of heads are e^r times as large: p'_j = e^r p_j / (1 + c p_j), c = e^r - 1. After the first heads both continue in the same way. For
the exponential mechanism with weights exp(r q), "heads" is the choice of a hypothesis that deletes the record z in which S and S' differ:
only the scores of such hypotheses differ, by 1.

**Its exact price.** In a round with p_j = p, tails multiply the likelihood ratio of S to S' by 1 + c p, and heads by (1 + c p) e^-r.
Tails with small p are best for the adversary: they multiply P[all tails] by 1 - p, and -ln(1 - p) >= p >= ln(1 + c p)/c. So a ratio of L
after tails alone has probability L^(-1/c) at most. An adversary who stops there gains (1 - e^x/L) L^(-1/c) of delta(x), which is largest at
L = e^(x + r), where one who never stops gains as much:

    delta(x) = e^(-(x + r)/c) (1 - e^-r),    that is    x = c ln((1 - e^-r)/delta) - r.

GEO bounds the same x by 2 r (ln(1/delta) + 1). In the other direction, S' to S, tails have ratios below 1 and heads e^r at most.

**SetCoverLearner.** If z is positive, this is all. If it is negative, |S0| differs by 1 as well until z is deleted, in some round t: the
noise in each of the first t rounds absorbs that. The noises floor(Lap(R/e_w)) of R rounds, each moved by 1, cost e_w in all.
So the learner is (e_w + max(r, x), delta)-private. That holds for every selection procedure with weights exp(r q), over any measure.
"""

import math
from fractions import Fraction

from dpjax.accounting.guarantee import ADD_OR_REMOVE_ONE, Guarantee
from dpjax.accounting.rounding import at_least
from dpjax.core import arguments, bisection

LARGEST_RATE = 709.0  # up to here e^r is a float


def process_delta(rate: float, epsilon: float) -> float:
    """delta(epsilon), the exact price of the process for any number of rounds; see the module.

    >>> round(process_delta(0.1, 1.0), 8)
    2.73e-06
    """
    rate = arguments.number("rate", rate, above=0.0, below=math.inf)
    epsilon = arguments.number("epsilon", epsilon, at_least=0.0, below=math.inf)
    heads = -math.expm1(-rate)
    # 1/c is written with e^-r, as e^r may overflow; the product comes first, as 1 / (1 - e^-r) may overflow.
    return min(1.0, math.exp(-((epsilon + rate) * math.exp(-rate)) / heads) * heads * (1 + 2.0**-40) + math.ulp(0.0))


def shared_test(*, rate: float, noise_epsilon: float, delta: float) -> Guarantee:
    """What SetCoverLearner promises: (e_w + max(r, x), delta) under ADD_OR_REMOVE_ONE; see the module.

    Args:
      rate: r in the weights exp(r q).
      noise_epsilon: e_w; 0 where no noise is needed.
      delta: in (0, 1).

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> print(shared_test(rate=0.05, noise_epsilon=0.25, delta=1e-6))  # doctest: +ELLIPSIS
    (0.753465..., 1e-06)-private under ADD_OR_REMOVE_ONE
    """
    rate = arguments.number("rate", rate, above=0.0, at_most=LARGEST_RATE)
    noise_epsilon = arguments.number("noise_epsilon", noise_epsilon, at_least=0.0, below=math.inf)
    delta = arguments.number("delta", delta, above=0.0, below=1.0)
    # As 1 - e^-r and delta may be nearly the same, of the logarithm no relative precision is known, but an absolute one.
    quotient = -math.expm1(-rate) / delta
    # A quotient beyond all floats has so large a logarithm that the difference of two keeps its digits.
    log = math.log(quotient) if quotient < math.inf else math.log(-math.expm1(-rate)) - math.log(delta)
    log = log * (1 + 2.0**-50) + 2.0**-50
    most = max(rate, (math.expm1(rate) * log) * (1 + 2.0**-50) - rate)
    if most == math.inf:  # no float is as large as x
        return Guarantee.none(ADD_OR_REMOVE_ONE)
    return Guarantee(at_least(Fraction(noise_epsilon) + Fraction(most * (1 + 1e-12))), delta, ADD_OR_REMOVE_ONE)


def rate_for(*, epsilon: float, delta: float) -> float:
    """The largest rate r with max(r, x) <= epsilon: what is left for the choices.

    >>> rate = rate_for(epsilon=0.5, delta=1e-6)
    >>> round(rate, 4), shared_test(rate=rate, noise_epsilon=0.0, delta=1e-6).covers(0.5, 1e-6)
    (0.0497, True)
    """
    epsilon = arguments.number("epsilon", epsilon, above=0.0, below=math.inf)
    delta = arguments.number("delta", delta, above=0.0, below=1.0)

    def allowed(rate: float) -> bool:
        return shared_test(rate=rate, noise_epsilon=0.0, delta=delta).epsilon <= epsilon

    return bisection.largest_float(allowed, 0.0, min(epsilon, LARGEST_RATE), precision=1e-12)
