"""What many mechanisms promise together: basic, advanced as printed, and optimal composition.

Every function takes the guarantees as any iterable, or as a mapping from each guarantee to how often it is
used. The mechanisms may be chosen adaptively. Mixed neighbouring relations are refused: convert first
(`Guarantee.under`). If one mechanism promises nothing (`Guarantee.none`), the whole promises nothing.

Among all (epsilon, delta)-private mechanisms one is worst, also in composition: its loss is +epsilon, -epsilon
or infinity (Kairouz, Oh, Viswanath 2015; Murtagh, Vadhan 2016 for unequal budgets). So optimal composition is
a sum over the total losses of the worst mechanisms, where these are few, and otherwise a convolution of
privacy-loss distributions by dp-accounting.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpjax.accounting import losses
from dpjax.accounting.guarantee import Guarantee
from dpjax.accounting.rounding import at_least
from dpjax.core import arguments, bisection

Guarantees = Iterable[Guarantee] | Mapping[Guarantee, int]

# The convolutions are done by FFT: compared with exact sums in 50 digits, their error stayed under a fifth of
# this per mechanism (up to 10^5 mechanisms).
FFT_ERROR = 2.0**-52
# Points of the loss grid when budgets are not multiples of the smallest: at least _CELLS, and _CELLS_EACH per
# mechanism. Every budget is then raised by at most 2/_CELLS_EACH of the average one.
_CELLS = 2**16
_CELLS_EACH = 64
_MOST_PARTS = 2**24  # more would fill the memory
# Budgets this close to multiples of the smallest are treated as multiples (and rounded up), such as 0.1 and 0.3.
_NEARLY = 1.0 + 2.0**-48
# Relative allowance for a handful of correctly rounded operations.
_UP = 1.0 + 2.0**-48
TOTAL_PRECISION = 2.0**-40  # relative precision of a total epsilon that is searched for
MOST_LOSSES = 2**20  # summing so many takes some ten milliseconds, as a convolution does


def basic(guarantees: Guarantees) -> Guarantee:
    """Basic composition: (e_1 + ... + e_k, d_1 + ... + d_k) (BNS, Theorems 2.3 and 2.4), rounded up to float64.

    Args:
        guarantees: the mechanisms' guarantees, all under one relation; at least one.

    Returns:
        The guarantee of running them all, adaptively.

    Raises:
        ValueError: no guarantees, or mixed relations.

    Example:
        >>> basic({Guarantee(0.25, 1e-7, "REPLACE_ONE"): 4}).epsilon
        1.0
    """
    parts = _counted(guarantees)
    relation = next(iter(parts)).relation
    if any(part.is_none for part in parts):
        return Guarantee.none(relation)
    epsilon = at_least(sum((count * Fraction(part.epsilon) for part, count in parts.items()), Fraction(0)))
    delta = sum((count * Fraction(part.delta) for part, count in parts.items()), Fraction(0))
    if math.isinf(epsilon):
        return Guarantee.none(relation)
    return Guarantee(epsilon, at_least(min(delta, Fraction(1))), relation)


def advanced(guarantee: Guarantee, count: int, slack: float) -> Guarantee:
    """Advanced composition as printed: (sqrt(2 k ln(1/d')) e + 2 k e^2, k d + d') (BNS, Theorem 2.5).

    Args:
        guarantee: (e, d) of each of the mechanisms, 0 < e <= 1.
        count: number k of mechanisms.
        slack: d', 0 < d' <= 1.

    Returns:
        The guarantee of running them all, adaptively; rounded up.

    Raises:
        ValueError: outside the theorem's conditions.

    Example:
        >>> round(advanced(Guarantee(0.01, 0.0, "REPLACE_ONE"), 100, 1e-6).epsilon, 4)
        0.5457
    """
    arguments.instance("guarantee", guarantee, Guarantee)
    count = arguments.count("count", count)
    slack = arguments.number("slack", slack, above=0.0, at_most=1.0)
    if guarantee.is_none:
        return guarantee
    if not 0.0 < guarantee.epsilon <= 1.0:
        raise ValueError(f"guarantee.epsilon must be in (0, 1] (BNS, Theorem 2.5), got {guarantee.epsilon}")
    epsilon = math.sqrt(-2.0 * count * math.log(slack)) * guarantee.epsilon + 2.0 * count * guarantee.epsilon**2
    delta = min(count * Fraction(guarantee.delta) + Fraction(slack), Fraction(1))
    return Guarantee(epsilon * _UP, at_least(delta), guarantee.relation)


def total_delta(guarantees: Guarantees, epsilon: float) -> float:
    """The least delta such that all mechanisms together are (epsilon, delta)-private, whatever they are.

    The result is optimal, to seven digits and more, for up to 2^20 total losses of the worst mechanisms (k equal
    budgets have k + 1, two kinds of budgets the product). Otherwise, unless budgets are equal or multiples of the
    smallest one, they are first rounded up to a grid of about 65,536 losses. Numerical error is added; in a total
    loss it is a rounding unit of all of them together, which is all of delta where epsilon is just below the largest.

    Args:
        guarantees: the mechanisms' guarantees, all under one relation; at least one.
        epsilon: the total epsilon, finite, >= 0.

    Returns:
        The total delta in [0, 1], never above that of `basic` when epsilon reaches the sum of the epsilons.

    Raises:
        ValueError: no guarantees, mixed relations, epsilon negative or infinite.

    Example:
        >>> total_delta({Guarantee(0.1, 0.0, "REPLACE_ONE"): 100}, 3.0) < 2e-3
        True
    """
    parts = _counted(guarantees)
    epsilon = arguments.number("epsilon", epsilon, at_least=0.0, below=math.inf)
    whole = basic(parts)
    simple = whole.delta if epsilon >= whole.epsilon else 1.0
    if simple == 0.0 or _hopeless(parts):
        return simple
    if few_losses(parts.values()):
        return min(simple, _summed(parts, epsilon))
    loss = _loss_distribution(parts)
    if loss is None:
        return simple
    return min(simple, max(0.0, float(loss.get_delta_for_epsilon(epsilon))) + _allowance(parts))


def few_losses(counts: Iterable[int]) -> bool:
    """Whether these numbers of mechanisms of each kind have few enough total losses for `composed_delta` to be quick.

    Example:
        >>> few_losses([1000, 1000]), few_losses([2000, 1000])
        (True, False)
    """
    return math.prod(count + 1 for count in counts) <= MOST_LOSSES


def own_delta(deltas: Iterable[tuple[float, int]]) -> float:
    """1 - (1 - delta_1)(1 - delta_2) ...: the total of the mechanisms' own deltas, given as pairs (delta, how many have it), each below 1.

    Example:
        >>> own_delta([(0.5, 2), (0.0, 7)])
        0.75
    """
    return -math.expm1(sum(count * math.log1p(-delta) for delta, count in deltas))


def composed_delta(parts: Sequence[tuple[float, int]], own: float, epsilon: float) -> float:
    """delta(epsilon) of (e, 0)-private mechanisms combined with a delta of `own`, rounded up; by a sum over all total losses.

    Each has loss e with probability e^e / (1 + e^e), else -e, and delta(epsilon) is the mean of (1 - e^(epsilon - loss))+ over the sums of
    these losses.

    Args:
        parts: pairs (e, how many mechanisms have it), e >= 0; see `few_losses`.
        own: the total of the mechanisms' own deltas (`own_delta`).
        epsilon: the total, >= 0.

    Example:
        >>> round(composed_delta([(0.1, 100)], 0.0, 3.0), 6)
        0.001361
    """
    from scipy.special import gammaln

    totals, logs, size = np.zeros(1), np.zeros(1), 1.0
    most = sum(e * count for e, count in parts)
    # How far below its exact value a total may be, as a sum of rounded products.
    low = (len(parts) + 2) * 2.0**-52 * (epsilon + most)
    for e, count in parts:
        i = _likely(count, 1 / (1 + math.exp(-e)))
        i = i[2 * e * (count - i) <= most - epsilon + 2 * low]  # no others contribute to a total above epsilon
        ways = gammaln(count + 1) - gammaln(i + 1) - gammaln(count - i + 1)
        law = ways - i * np.logaddexp(0.0, -e) - (count - i) * np.logaddexp(0.0, e)
        totals = (totals[:, None] + (e * (2 * i - count))[None]).reshape(-1)
        logs = (logs[:, None] + law[None]).reshape(-1)
        size += gammaln(count + 1) + count * (e + 1.0)  # the size of the terms that make up a log
    # How far below its exact value a sum of exponentials of logs may be, relatively.
    share = (len(parts) + 8) * 2.0**-52 * size + totals.size * 2.0**-53
    over = totals + low > epsilon
    # Not by @: for so many numbers BLAS starts threads, which wait for each other.
    found = -float((np.exp(logs[over]) * np.expm1(epsilon - low - totals[over])).sum())
    pure = found * (1.0 + share) + len(parts) * np.finfo(float).tiny  # half of it for what `_likely` leaves out
    return float(min(1.0, (own + (1.0 - own) * min(pure, 1.0)) * _UP))


def _likely(count: int, chance: float) -> np.ndarray:
    """The numbers of successes in `count` trials, except some of total probability at most half the least normal float64 (Hoeffding).

    >>> _likely(10**6, 0.5)[[0, -1]].tolist()
    [481162.0, 518838.0]
    """
    mean, apart = count * chance, math.sqrt(-0.5 * count * math.log(np.finfo(float).tiny / 4))
    return np.arange(float(max(0, math.ceil(mean - apart))), min(count, math.floor(mean + apart)) + 1.0)


def total_epsilon(guarantees: Guarantees, delta: float) -> float:
    """The least epsilon such that all mechanisms together are (epsilon, delta)-private, whatever they are.

    The inverse of `total_delta`, with the same rounding.

    Args:
        guarantees: the mechanisms' guarantees, all under one relation; at least one.
        delta: the total delta in [0, 1].

    Returns:
        The total epsilon >= 0; `math.inf` when no epsilon suffices (delta is below the share of the mechanisms' own
        deltas).

    Raises:
        ValueError: no guarantees, mixed relations, delta outside [0, 1].

    Example:
        >>> total_epsilon({Guarantee(0.1, 0.0, "REPLACE_ONE"): 100}, 1e-6) < 10 / 2
        True
    """
    parts = _counted(guarantees)
    delta = arguments.number("delta", delta, at_least=0.0, at_most=1.0)
    if delta == 1.0:
        return 0.0
    whole = basic(parts)
    best = whole.epsilon if delta >= whole.delta else math.inf
    if _hopeless(parts):
        return best
    if few_losses(parts.values()):
        return min(best, _least_epsilon(lambda epsilon: _summed(parts, epsilon) <= delta, whole.epsilon))
    loss, target = _loss_distribution(parts), delta - _allowance(parts)
    if loss is None or target <= 0.0:
        return best
    # Checked first because dp-accounting would go on into negative losses, where its exp overflows.
    if loss.get_delta_for_epsilon(0.0) <= target:
        return 0.0
    return min(best, float(loss.get_epsilon_for_delta(target)) * _UP)


def optimal(guarantees: Guarantees, *, epsilon: float | None = None, delta: float | None = None) -> Guarantee:
    """Optimal composition as a guarantee, at a total epsilon or at a total delta (exactly one of the two).

    Args:
        guarantees: the mechanisms' guarantees, all under one relation; at least one.
        epsilon: the total epsilon; delta follows by `total_delta`.
        delta: the total delta; epsilon follows by `total_epsilon`.

    Returns:
        The guarantee; (inf, 1) when there is no finite epsilon for this delta.

    Raises:
        ValueError: both or neither given, or as in `total_delta` and `total_epsilon`.

    Example:
        >>> optimal([Guarantee(0.5, 0.0, "REPLACE_ONE")] * 2, epsilon=1.0)
        Guarantee(epsilon=1.0, delta=0.0, relation='REPLACE_ONE')
    """
    parts = _counted(guarantees)
    relation = next(iter(parts)).relation
    if epsilon is not None and delta is None:
        found = Guarantee(epsilon, total_delta(parts, epsilon), relation)
    elif delta is not None and epsilon is None:
        least = total_epsilon(parts, delta)
        found = Guarantee.none(relation) if math.isinf(least) else Guarantee(least, delta, relation)
    else:
        raise ValueError(f"give exactly one of epsilon and delta, got epsilon={epsilon!r}, delta={delta!r}")
    return Guarantee.none(relation) if basic(parts).is_none else found


def _counted(guarantees: Guarantees) -> Counter[Guarantee]:
    """Each distinct guarantee with how often it is used; one relation only."""
    if not isinstance(guarantees, Iterable):
        raise TypeError(
            f"guarantees must be several guarantees, got {guarantees!r} of type {type(guarantees).__name__}"
        )
    try:
        parts = Counter(guarantees)
    except TypeError:  # an array without axes, or of lists, which cannot be counted
        raise TypeError(f"guarantees must hold Guarantee objects, got {guarantees!r}") from None
    if not parts:
        raise ValueError("guarantees must hold at least one guarantee, got none")
    for part, count in parts.items():
        if not isinstance(part, Guarantee):
            raise TypeError(f"guarantees must hold Guarantee objects, got {part!r}")
        parts[part] = arguments.count("the count of each guarantee", count)  # sums of NumPy integers would wrap
    relations = sorted({part.relation for part in parts})
    if len(relations) > 1:
        rule = "convert first, as with guarantee.under('REPLACE_ONE')"
        raise ValueError(f"guarantees must be under one relation, got {', '.join(relations)}: {rule}")
    return parts


def _allowance(parts: Counter[Guarantee]) -> float:
    """The amount added to a delta for the rounding of the convolutions."""
    return parts.total() * FFT_ERROR


def _summed(parts: Counter[Guarantee], epsilon: float) -> float:
    """`composed_delta` of these guarantees."""
    own = own_delta([(part.delta, count) for part, count in parts.items()])
    return composed_delta([(part.epsilon, count) for part, count in parts.items()], own, epsilon)


def _least_epsilon(keeps: Callable[[float], bool], most: float) -> float:
    """The least epsilon up to `most` that keeps a delta, rounded up; infinite if none does."""
    if keeps(0.0):
        return 0.0
    return bisection.least_float(keeps, 0.0, most, precision=TOTAL_PRECISION) if keeps(most) else math.inf


def _hopeless(parts: Counter[Guarantee]) -> bool:
    """Whether one of them promises nothing that floats can express."""
    return any(part.epsilon > losses.LARGEST_EPSILON or part.delta >= 1.0 for part in parts)


def _loss_distribution(parts: Counter[Guarantee]) -> Any:
    """The privacy-loss distribution of the worst mechanisms with these guarantees, if not `_hopeless`; None if it cannot be computed."""
    arguments.integer("the count of guarantees", parts.total(), at_least=1, at_most=_MOST_PARTS)
    interval = _interval(parts)
    if interval == 0.0:
        return None
    total = None
    try:
        for part, count in parts.items():
            each = losses.worst(part.epsilon, part.delta, interval).self_compose(count)
            total = each if total is None else total.compose(each)
    except IndexError:  # raised by dp-accounting where hardly any loss is finite and its truncation leaves none
        return None
    return total


def _interval(parts: Counter[Guarantee]) -> float:
    """The grid step for the losses: the smallest budget if the others are its multiples, else a power of two.

    Either has so few significant bits that its multiples are exact and divide back exactly: nothing slips
    to the next grid point.
    """
    budgets = [part.epsilon for part in parts if part.epsilon > 0.0]
    whole = sum(part.epsilon * count for part, count in parts.items())
    if not budgets:
        return 0.0
    cells = max(_CELLS, _CELLS_EACH * parts.total())
    smallest, largest = min(budgets), max(budgets)
    if whole / smallest <= cells:
        step = _raised(smallest * _NEARLY, 51 - math.ceil(largest / smallest).bit_length())
        if all(budget <= losses.on_grid(budget, step) <= budget * _NEARLY**2 for budget in budgets):
            return step
    return 2.0 ** math.ceil(math.log2(whole / cells))


def _raised(value: float, bits: int) -> float:
    """`value` rounded up to `bits` significant bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, bits)), exponent - bits)
