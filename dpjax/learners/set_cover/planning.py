"""The number of rounds and the split of the budget, and the learner that is built with them."""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from dpjax import bounds
from dpjax.accounting import exponential_epsilon
from dpjax.accounting.set_cover import rate_for
from dpjax.core import arguments
from dpjax.learners.set_cover.rounds import SetCover
from dpjax.learners.set_cover.selection import Selection

ACCOUNTANTS = ("shared_test", "composition")
MOST_HYPOTHESES = 2**10  # of a target


class Plan(NamedTuple):
    """Rounds and budgets, and the examples that they need."""

    size: float
    rounds: int
    rate: float
    noise_epsilon: float
    shift: int


def _checked(k: int, epsilon: float, delta: float, alpha: float, beta: float, composed: bool) -> tuple[Any, ...]:
    """The arguments as Python's numbers, refused when out of range."""
    k = arguments.integer("k", k, at_least=1, at_most=MOST_HYPOTHESES)
    epsilon = arguments.known("epsilon", arguments.epsilon(epsilon))
    delta = arguments.known("delta", arguments.delta(delta, positive=not composed))
    alpha, beta = arguments.known_fraction("alpha", alpha), arguments.known_fraction("beta", beta)
    arguments.fractions(alpha=alpha, beta=beta)  # so large that their quotients are finite
    return k, epsilon, delta, alpha, beta


def plan(log_size: float, k: int, epsilon: float, delta: float, alpha: float, beta: float, accountant: str) -> Plan:
    """The rounds and the split of the budget that need the fewest examples, among several candidates for each.

    Raises:
      TypeError, ValueError: an argument out of range; see `learner`.

    >>> plan(math.log(2000), 3, 1.0, 1e-6, 0.2, 0.1, "shared_test").rounds
    12
    """
    log_size = arguments.known("log_size", log_size, above=0.0, below=math.inf)
    composed = arguments.choice("accountant", accountant, ACCOUNTANTS) == "composition"
    return _plan(log_size, *_checked(k, epsilon, delta, alpha, beta, composed), accountant)


@functools.lru_cache(maxsize=256)
def _plan(log_size: float, k: int, epsilon: float, delta: float, alpha: float, beta: float, accountant: str) -> Plan:
    rounds = sorted({math.ceil(k * math.log(c / alpha)) for c in np.geomspace(2.5, 40.0, 16)})
    if accountant == "composition":
        return min(_composed(log_size, k, epsilon, delta, alpha, beta, count) for count in rounds)
    shares = np.linspace(0.05, 0.8, 16)
    return min(_shared(log_size, k, epsilon, delta, alpha, beta, count, share) for count in rounds for share in shares)


def _shared(
    log_size: float, k: int, epsilon: float, delta: float, alpha: float, beta: float, rounds: int, share: float
) -> Plan:
    noise = float(share * epsilon)
    rate = _rate(epsilon=float(epsilon - noise) * (1 - 1e-12), delta=delta)
    shift = bounds.set_cover_shift(rounds, beta / 4, noise)
    return Plan(bounds.set_cover(log_size, k, rounds, alpha, beta, rate, shift), rounds, rate, noise, shift)


_rate = functools.lru_cache(maxsize=1024)(rate_for)


def _composed(log_size: float, k: int, epsilon: float, delta: float, alpha: float, beta: float, rounds: int) -> Plan:
    rate = exponential_epsilon(rounds, epsilon=epsilon, delta=delta)
    return Plan(bounds.set_cover(log_size, k, rounds, alpha, beta, rate, 0), rounds, rate, math.inf, 0)


def printed(k: int, epsilon: float, delta: float, alpha: float, beta: float) -> Plan:
    """GEO's constants at alpha/2, R = ceil(2k ln(4/alpha)): at alpha Claim 3.1 leaves over alpha n/2 errors, more than Theorem 2.5 allows.

    Raises:
      TypeError, ValueError: an argument out of range; see `learner`.

    >>> printed(3, 1.0, 1e-6, 0.2, 0.1)[1:]  # doctest: +ELLIPSIS
    (18, 0.0337484..., 1.0, 94)
    """
    k, epsilon, delta, alpha, beta = _checked(k, epsilon, delta, alpha, beta, composed=False)
    rounds = math.ceil(2 * k * math.log(4 / alpha))
    shift = math.ceil(rounds / epsilon * math.log(rounds / beta))
    return Plan(math.nan, rounds, epsilon / (2 * math.log(math.e / delta)), epsilon, shift)


def learner(
    selection: Selection,
    *,
    k: int,
    epsilon: float,
    delta: float,
    alpha: float,
    beta: float = 0.1,
    dual: bool = False,
    accountant: str = "shared_test",
    calibration: str = "proved",
) -> SetCover:
    """SetCoverLearner over the hypotheses of a selection (GEO §3); see `dpjax.learners.set_cover.rounds`.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE ("printed": what `guarantee()` says, up to (2 epsilon, delta) for epsilon <=
    2.5 ln(e/delta)), if the selection draws with the weights it is given. Not promised: protection from floating-point side channels; a
    cryptographic generator.

    Args:
      selection: a `Selection`, for instance `dpjax.learners.conjunctions.SelectLiteral(bits=20)`.
      k: the largest number of hypotheses of the target.
      epsilon, delta: the total budget; known numbers, as it is split on the host. delta may be 0 by composition.
      alpha: population error for which the number of rounds is chosen, in (0, 1).
      beta: failure probability for which the shift is chosen, in (0, 1).
      dual: whether the target is a disjunction.
      accountant: "shared_test" (Claim 3.4), "composition" of the same rounds without noise, or "best", the one of these for which fewer
        examples are proved to suffice.
      calibration: "proved", or "printed" for the paper's constants.

    Raises:
      TypeError, ValueError: an argument out of range.

    >>> from dpjax.learners.conjunctions import SelectLiteral
    >>> mine = learner(SelectLiteral(bits=20), k=2, epsilon=1.0, delta=1e-6, alpha=0.1)
    >>> mine.rounds, mine.guarantee().covers(1.0, 1e-6)
    (10, True)
    """
    arguments.instance("selection", selection, Selection)
    dual, log_size = arguments.flag("dual", dual), selection.log_size()
    shared = arguments.choice("accountant", accountant, (*ACCOUNTANTS, "best")) == "shared_test"
    k, epsilon, delta, alpha, beta = _checked(k, epsilon, delta, alpha, beta, composed=not shared)
    if arguments.calibration(calibration) == "printed":
        if not shared:
            raise ValueError(
                f"calibration must be 'proved' by composition, which GEO states without constants, got {calibration!r}"
            )
        chosen = printed(k, epsilon, delta, alpha, beta)
    else:
        if accountant == "best":
            tried = ACCOUNTANTS if delta > 0 else ("composition",)
            accountant = min(tried, key=lambda each: plan(log_size, k, epsilon, delta, alpha, beta, each).size)
        chosen = plan(log_size, k, epsilon, delta, alpha, beta, accountant)
    if chosen.shift > (most := arguments.most_counted()):
        raise ValueError(
            f"epsilon must be larger: a shift of {chosen.shift} is beyond the {most} examples that floats count,"
            f" got epsilon = {epsilon}"
        )
    return SetCover(
        selection=selection,
        rate=np.float64(chosen.rate),
        noise_epsilon=np.float64(chosen.noise_epsilon),
        shift=np.float64(chosen.shift),
        delta=np.float64(delta),
        k=k,
        rounds=chosen.rounds,
        dual=dual,
        accountant=accountant,
    )
