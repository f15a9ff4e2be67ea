"""The plans of a set cover learner: the rounds, the share of epsilon for the noise in the test, and the shift, all integers or on a grid.

Nothing here has a derivative, so the plans are listed and `tune.best` compares them. Each keeps the learner's (epsilon, delta): the rate is
what `accounting.set_cover.rate_for` leaves of it, and the shift costs no privacy. With the accountant "composition" there is neither noise
nor shift, and the rate is what the rounds leave.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from dpjax.accounting import exponential_epsilon
from dpjax.accounting.set_cover import rate_for
from dpjax.core import arguments
from dpjax.learners.set_cover.rounds import SetCover

LOWERED = 1e-12  # the part of epsilon left for the roundings of the host's accountant


def set_cover_plans(
    learner: SetCover,
    *,
    rounds: Sequence[int] | None = None,
    shares: Sequence[float] = (0.05, 0.1, 0.2, 0.4),
    shifts: Sequence[float] = (0.0, 0.3, 1.0),
    beta: float = 0.1,
) -> list[SetCover]:
    """The learner as it is, and the learner with other plans of the same (epsilon, delta).

    Args:
      learner: a learner of `dpjax.learners.set_cover`, `dpjax.learners.conjunctions` and others, with known numbers.
      rounds: numbers of rounds; k, 2k, 3k and the learner's own if absent.
      shares: shares of epsilon for the noise in the test.
      shifts: in units of (R/e_w) ln(R/beta), which the largest of R noises exceeds with probability about beta.
      beta: in (0, 1).

    **Formal guarantees**: the `guarantee()` of every plan covers that of the learner.

    Raises:
      TypeError, ValueError: a learner of another kind, one without a guarantee, or a number out of range.

    >>> from dpjax.learners import conjunctions
    >>> learner = conjunctions.conjunction(bits=12, k=3, epsilon=1.0, delta=1e-6, alpha=0.1)
    >>> plans = set_cover_plans(learner, rounds=[3], shares=[0.1], shifts=[0.0, 0.3])
    >>> [(plan.rounds, int(plan.shift), plan.guarantee().covers(1.0, 1e-6)) for plan in plans]
    [(14, 355, True), (3, 0, True), (3, 31, True)]
    """
    arguments.instance("learner", learner, SetCover)
    total = learner.guarantee()
    if not math.isfinite(total.epsilon):
        raise ValueError(f"learner must have a guarantee, which its plans keep, got {total}")
    if rounds is None:
        rounds = sorted({learner.k, 2 * learner.k, 3 * learner.k, learner.rounds})
    counts = [arguments.integer("rounds", each, at_least=1) for each in rounds]
    beta = arguments.known_fraction("beta", beta)
    epsilon, delta = total.epsilon * (1 - LOWERED), float(learner.delta)
    plans = [learner]
    if learner.accountant == "composition":
        for count in counts:
            rate = exponential_epsilon(count, epsilon=epsilon, delta=delta)
            plans.append(dataclasses.replace(learner, rounds=count, rate=np.float64(rate)))
        return plans
    for share in shares:
        noise = arguments.known_fraction("shares", share) * epsilon
        rate = rate_for(epsilon=(epsilon - noise) * (1 - LOWERED), delta=delta)
        for count, part in itertools.product(counts, shifts):
            part = arguments.known("shifts", part, at_least=0.0, below=math.inf)
            shift = math.ceil(part * count / noise * math.log(count / beta))
            free = {"rate": np.float64(rate), "noise_epsilon": np.float64(noise), "shift": np.float64(shift)}
            plans.append(dataclasses.replace(learner, rounds=count, **free))  # type: ignore[arg-type]
    return plans
