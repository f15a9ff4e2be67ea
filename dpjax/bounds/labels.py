"""How many examples suffice where labels alone are private (BNS §6.1), the constants worked out. Floats.

Two ways to the hypotheses among which the exponential mechanism chooses, both the same for every domain:

* `label_private`: BNS Theorem 6.2, the dichotomies of n points whose labels are ignored. The proof wants three events.
  E1: a hypothesis that agrees with the target on the n points errs on at most a/8 of the distribution but for b/4, by Theorem 2.13 at
  (a/8, b/4), so n = (64/a) (VC ln(128/a) + ln(8/b)); printed is that theorem at a/4. Then it errs on at most a/4 of the other r = m - n
  examples but for exp(-r a/24) <= b/4 (Chernoff).
  E2: a hypothesis of error above a errs on at most a/2 of the r examples with probability exp(-r a/8) at most, and there are |H|.
  E3: the exponential mechanism on the r examples loses a/4 but for |H| exp(-eps a r/8) (Proposition 2.26 (ii)). Printed is m for r in
  E2 and E3, and 2^n for |H|, which by Sauer's lemma is at most sum_(i <= VC) C(n, i).
* `label_private_whole`: the dichotomies of all m points, of which all labels count too. Points are public, so nothing needs to be set
  aside. H holds a hypothesis without an error on the sample; the exponential mechanism loses a/2 but for |H| exp(-eps a m/4) <= b/2;
  and no concept with at most a/2 on the sample has more than a on the distribution but for 4 Pi(2m) exp(-a m/16) <= b/2 (relative
  deviations, Vapnik; Anthony and Shawe-Taylor 1993, Theorem 2.1, with nu = sqrt(a)/2), where Pi is Sauer's bound.
"""

import math

from dpjax.bounds.learning import realizable
from dpjax.bounds.mechanisms import exponential_mechanism
from dpjax.core import arguments, bisection


def log_dichotomies(points: int, vc: int) -> float:
    """ln of the largest number of ways in which a class of this VC dimension labels so many points (Sauer's lemma).

    Example:
        >>> [round(math.exp(log_dichotomies(4, vc))) for vc in (1, 2, 4)]
        [5, 11, 16]
    """
    arguments.counts(points=points, vc=vc)
    return math.log(sum(math.comb(points, i) for i in range(vc + 1)))


def label_private_unlabelled(vc: int, alpha: float, beta: float, *, calibration: str = "proved") -> float:
    """n of BNS Theorem 6.2, the examples whose labels are ignored; see the module.

    Example:
        >>> round(label_private_unlabelled(1, 0.1, 0.1)), round(label_private_unlabelled(1, 0.1, 0.1, calibration="printed"))
        (7383, 3470)
    """
    arguments.choice("calibration", calibration, ("printed", "proved"))
    arguments.fractions(alpha=alpha, beta=beta)
    return realizable(vc, alpha / (4 if calibration == "printed" else 8), beta / 4)


def label_private(
    vc: int, alpha: float, beta: float, epsilon: float, *, unlabelled: int | None = None, calibration: str = "proved"
) -> float:
    """m of BNS Theorem 6.2, all examples of the label-private learner; see the module.

    Args:
        vc: VC dimension of the class, >= 1.
        alpha, beta: error and failure probability, in (0, 1).
        epsilon: > 0.
        unlabelled: n, at least `label_private_unlabelled`, which it is when absent. "proved" only.
        calibration: "proved", or "printed": (768/(a^2 eps)) (VC ln(64/a) + 2 ln(8/b)).

    Returns:
        Number of examples, n among them.

    Raises:
        TypeError, ValueError: an argument out of range; an n that is too small for E1.

    Example:
        >>> round(label_private(1, 0.1, 0.1, 1.0)), round(label_private(1, 0.1, 0.1, 1.0, calibration="printed"))
        (8392, 1169320)
    """
    least = label_private_unlabelled(vc, alpha, beta, calibration=calibration)
    arguments.positive(epsilon=epsilon)
    if calibration == "printed":
        return 768 / (alpha**2 * epsilon) * (vc * math.log(64 / alpha) + 2 * math.log(8 / beta))
    n = math.ceil(least) if unlabelled is None else arguments.integer("unlabelled", unlabelled, at_least=1)
    if n < least:
        raise ValueError(f"unlabelled must be >= {math.ceil(least)} for alpha = {alpha} and beta = {beta}, got {n}")
    log_hypotheses = log_dichotomies(n, vc)
    first = 24 / alpha * math.log(4 / beta)
    second = 8 / alpha * (log_hypotheses + math.log(4 / beta))
    third = exponential_mechanism(log_hypotheses, alpha / 4, beta / 4, epsilon)
    return n + max(first, second, third)


def label_private_whole(vc: int, alpha: float, beta: float, epsilon: float) -> float:
    """Examples for the exponential mechanism on all labels over the dichotomies of all points; see the module.

    Example:
        >>> round(label_private_whole(1, 0.1, 0.1, 1.0)), round(label_private_whole(1, 0.1, 0.1, 0.1))
        (2031, 4570)
    """
    arguments.counts(vc=vc)
    arguments.fractions(alpha=alpha, beta=beta)
    arguments.positive(epsilon=epsilon)

    def enough(m: int) -> bool:
        deviation = 16 / alpha * (log_dichotomies(2 * m, vc) + math.log(8 / beta))
        return m >= max(deviation, exponential_mechanism(log_dichotomies(m, vc), alpha / 2, beta / 2, epsilon))

    # From so many points on m grows faster than the logarithms of m^VC do.
    return float(bisection.least_int(enough, math.ceil(vc * max(16 / alpha, 4 / (alpha * epsilon)))))
