"""The least sample size at which a learner's failure probability is small enough."""

import dataclasses
import math
from collections.abc import Callable, Generator

from dpjax.core import arguments
from dpjax.trials.estimates import Estimate

FOUND, ABOVE_MAXIMUM = "found", "failure > beta up to maximum"


@dataclasses.dataclass(frozen=True)
class LeastN:
    """Result of `least_n`.

    Attributes:
        n: least n found with failure <= beta, by the estimates' values; None unless status is FOUND.
        low, high: the n-interval. The whole interval of the estimate at low - 1 lies above beta (low is the
            minimum where no such point was met), and that of the estimate at `high` at or below beta (high is
            None where this holds at no point searched).
        status: FOUND or ABOVE_MAXIMUM.
        evaluations: every (n, Estimate) computed, by increasing n.
    """

    n: int | None
    low: int
    high: int | None
    status: str
    evaluations: tuple[tuple[int, Estimate], ...]


def least_n(
    failure: Callable[[int], Estimate],
    *,
    beta: float,
    start: int,
    maximum: int,
    minimum: int = 1,
    rtol: float = 0.0,
    reach: float = 4.0,
) -> LeastN:
    """Least n with failure(n) <= beta, and where the ends of the confidence interval cross beta.

    **Assumes that failure does not increase with n.** Doubles or halves n from `start` until failure crosses
    beta, then cuts the bracket (a, b], failure(a) > beta >= failure(b), at its geometric mean until b - a <=
    max(1, rtol a), and returns b. The same is then done, from the points already known, for the low and the
    high ends of the estimates: under the assumption the true least n lies in [low, high] whenever the two
    intervals that decide it contain the truth. (Which points decide depends on the estimates, so this is not a
    joint confidence statement at their level.) Where noise contradicts the assumption, the largest n seen to fail counts.

    The points visited are a deterministic function of the estimates: a resumed run replays them from its store.

    Args:
        failure: estimate of the failure probability with n examples, by exact laws (`estimates.mean`) or by
            plain Monte Carlo (`estimates.clopper_pearson`); called once for each n.
        beta: in (0, 1).
        start: first n tried, from minimum to maximum.
        maximum: largest n ever tried.
        minimum: smallest n ever tried.
        rtol: relative width of the last bracket, in [0, 1); 0 gives the exact integer.
        reach: the ends of the n-interval are searched for up to this factor away from n, at least 1. An
            interval without an end (the upper confidence limit exceeds beta at every n, for want of trials)
            then costs little.

    Returns:
        LeastN.

    Raises:
        TypeError: an n is not an integer, or `failure` does not return an Estimate.
        ValueError: an argument is out of range, or an estimate is NaN.

    Example:
        >>> from dpjax.trials.estimates import known
        >>> least_n(lambda n: known(1 / n), beta=0.01, start=7, maximum=10**6).n
        100
        >>> least_n(lambda n: known(1 / n), beta=0.01, start=7, maximum=99).status
        'failure > beta up to maximum'
    """
    arguments.function("failure", failure)
    given = {"beta": beta, "start": start, "maximum": maximum, "minimum": minimum, "rtol": rtol, "reach": reach}
    questions = steps(**given)  # type: ignore[arg-type]
    n = next(questions)
    while True:
        try:
            n = questions.send(failure(n))
        except StopIteration as end:
            return end.value


def steps(
    *, beta: float, start: int, maximum: int, minimum: int = 1, rtol: float = 0.0, reach: float = 4.0
) -> Generator[int, Estimate, LeastN]:
    """The search of `least_n` as a generator, so that several can run at once: it yields an n and is sent the estimate there.

    Args:
        beta, start, maximum, minimum, rtol, reach: as for `least_n`.

    Raises:
        TypeError, ValueError: as `least_n`.

    Example:
        >>> from dpjax.trials.estimates import known
        >>> questions = steps(beta=0.01, start=64, maximum=10**6)
        >>> next(questions), questions.send(known(1 / 64)), questions.send(known(1 / 128))
        (64, 128, 90)
    """
    beta = arguments.known_fraction("beta", beta)
    rtol = arguments.known("rtol", rtol, at_least=0.0, below=1.0)
    reach = arguments.known("reach", reach, at_least=1.0, below=math.inf)
    minimum = arguments.integer("minimum", minimum, at_least=1)
    maximum = arguments.integer("maximum", maximum, at_least=minimum)
    start = arguments.integer("start", start, at_least=minimum, at_most=maximum)

    points: dict[int, Estimate] = {}

    def narrow(end: str, smallest: int, largest: int) -> Generator[int, Estimate, tuple[int | None, int | None]]:
        """(a, b) for one end of the estimates; None where nothing fails, or nothing succeeds."""
        while True:
            below, above = _bracket({n: getattr(estimate, end) for n, estimate in points.items()}, beta)
            n = _next(below, above, smallest, largest, rtol)
            if n is None:
                return below, above
            points[n] = _check_estimate(n, (yield n))

    points[start] = _check_estimate(start, (yield start))
    before = 0
    while len(points) > before:  # under noise, a point visited for one end may move another
        before = len(points)
        _, n = yield from narrow("value", minimum, maximum)
        centre = maximum if n is None else n
        near, far = max(minimum, math.floor(centre / reach)), min(maximum, math.ceil(centre * reach))
        below, _ = yield from narrow("low", near, far)
        _, above = yield from narrow("high", near, far)
    low = minimum if below is None else below + 1
    status = ABOVE_MAXIMUM if n is None else FOUND
    return LeastN(n, low, above, status, tuple(sorted(points.items())))


def _bracket(values: dict[int, float], beta: float) -> tuple[int | None, int | None]:
    """Largest n seen to fail, and the smallest n above it seen to succeed."""
    below = max((n for n, value in values.items() if value > beta), default=None)
    above = min((n for n, value in values.items() if value <= beta and n > (below or 0)), default=None)
    return below, above


def _next(below: int | None, above: int | None, smallest: int, largest: int, rtol: float) -> int | None:
    """The next n to try, never one tried before; None when the bracket is final."""
    if below is None and above is not None:
        return max(smallest, above // 2) if above > smallest else None
    if below is not None and above is None:
        return min(largest, 2 * below) if below < largest else None
    assert below is not None and above is not None  # at least one point is known
    if above - below <= max(1, rtol * below):
        return None
    return min(max(math.isqrt(below * above), below + 1), above - 1)


def _check_estimate(n: int, estimate: Estimate) -> Estimate:
    """The estimate, checked: none of its three numbers may be NaN."""
    if not isinstance(estimate, Estimate):
        raise TypeError(f"failure must return an Estimate, got {estimate!r} at n = {n}")
    if any(map(math.isnan, (estimate.value, estimate.low, estimate.high))):
        raise ValueError(f"failure must return numbers, got {estimate!r} at n = {n}")
    return estimate
