"""A naive exact reference for RecConcave and LearnThresholds (BNS Figure 5 and §3.4), in plain Python.

Integers are Python's, quality values are fractions and probabilities 50-digit decimals with an unbounded
exponent, so nothing here needs logs, scaling or a limit on the domain: each step reads like its line in the
figure. A law is (parts, bottom): each part (lo, hi, p) puts probability p uniformly on {lo..hi}; parts may
overlap, and bottom is the probability of no answer. A float argument means the number it prints as: 0.05 is
exactly 1/20.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Any

Number = int | float | Fraction | Decimal
Interval = tuple[int, int]
Piece = tuple[int, int, Any]  # first point, last point, and a value there (quality, weight or probability)
Law = tuple[list[tuple[int, int, float]], float]
# What a level may spend: epsilon of the exponential mechanism, (epsilon, delta) of A_dist on each of the two partitions.
Level = tuple[Fraction, tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]

DIGITS = Context(prec=50, Emax=MAX_EMAX, Emin=MIN_EMIN)


def rec_concave_law(
    starts: Sequence[int],
    values: Sequence[Number],
    T: int,
    r: Number,
    alpha: Number,
    epsilon: Number,
    delta: Number,
    depth: int,
    calibration: str,
    base: int = 32,
) -> Law:
    """The exact law of RecConcave (BNS Figure 5) on the range {0..T}.

    The quality is values[i] from starts[i] to the next start (starts[0] = 0); it need not be quasi-concave.
    epsilon and delta are those of each mechanism. base is the figure's 32; a smaller one makes the recursion
    run on ranges small enough to be written out.

    >>> law = rec_concave_law([0, 1], [0, 2], 2, 2, 0.5, 1.0, 1e-6, 1, "printed")  # weights 1, e, e
    >>> round(mass(law, 1, 2), 6)
    0.844638
    """
    test = exact(epsilon), exact(delta)
    return _law(starts, values, T, r, alpha, [(exact(epsilon), (test, test))] * depth, calibration, base)


def split_law(
    starts: Sequence[int], values: Sequence[Number], T: int, r: Number, alpha: Number, split: Any, base: int = 32
) -> Law:
    """The same where each mechanism has a budget of its own, with `proved` constants.

    split has choices[level], tests[level][partition] and deltas[level][partition], the wide range first (`optimizers.quasi_concave.Split`).
    """
    choices, inner = [exact(float(epsilon)) for epsilon in split.choices], len(split.choices) - 1
    tests = [
        tuple((exact(float(split.tests[level][side])), exact(float(split.deltas[level][side]))) for side in (0, 1))
        for level in range(inner)
    ]
    nothing = (Fraction(0), Fraction(0))
    levels: Any = list(zip(choices, [*tests, (nothing, nothing)], strict=True))
    return _law(starts, values, T, r, alpha, levels, "proved", base)


def _law(
    starts: Sequence[int],
    values: Sequence[Number],
    T: int,
    r: Number,
    alpha: Number,
    levels: list[Level],
    calibration: str,
    base: int,
) -> Law:
    """The law for the budgets of all levels, the wide range first."""
    pieces = as_pieces(starts, [exact_value(value) for value in values], T)
    with localcontext(DIGITS):
        parts, bottom = _rec_concave(pieces, exact(r), exact(alpha), levels, calibration, base, 2 * abs(exact(r)))
        return [(lo, hi, float(p)) for (lo, hi), p in sorted(parts.items())], float(bottom)


def learn_thresholds_law(
    xs: Sequence[int],
    ys: Sequence[int],
    bits: int,
    epsilon: Number,
    delta: Number,
    alpha: Number,
    depth: int,
    calibration: str,
) -> Law:
    """The exact law of LearnThresholds (BNS §3.4) with total budget (epsilon, delta).

    Printed: each mechanism at (epsilon/3N, delta/3N), N = depth. Proved: N levels really run, hence 3N-2
    mechanisms of which 2(N-1) are A_dist, at (epsilon/(3N-2), delta/(2(N-1))) each, since the exponential
    mechanisms spend no delta. RecConcave itself gets alpha/2.
    """
    starts, values = threshold_quality(xs, ys)
    each_epsilon, each_delta = per_mechanism(bits, exact(epsilon), exact(delta), depth, calibration)
    return rec_concave_law(
        starts, values, 2**bits, len(xs), exact(alpha) / 2, each_epsilon, each_delta, depth, calibration
    )


def success_probability(
    xs: Sequence[int],
    ys: Sequence[int],
    bits: int,
    error: float,
    epsilon: Number,
    delta: Number,
    alpha: Number,
    depth: int,
    calibration: str,
) -> float:
    """P[LearnThresholds returns a threshold with empirical error (wrong / m, in float64) at most error]."""
    law = learn_thresholds_law(xs, ys, bits, epsilon, delta, alpha, depth, calibration)
    return sum(mass(law, lo, hi) for lo, hi in good_thresholds(xs, ys, bits, error))


def exponential_success(xs: Sequence[int], ys: Sequence[int], bits: int, epsilon: Number, error: float) -> float:
    """The same probability for the exponential mechanism over all 2^bits + 1 thresholds."""
    law = rec_concave_law(*threshold_quality(xs, ys), 2**bits, len(xs), 1, epsilon, 1, 1, "printed")
    return sum(mass(law, lo, hi) for lo, hi in good_thresholds(xs, ys, bits, error))


def mass(law: Law, lo: int, hi: int) -> float:
    """P[lo <= output <= hi]."""
    overlaps = [(p, min(hi, b) - max(lo, a) + 1, b - a + 1) for a, b, p in law[0] if a <= hi and lo <= b]
    return math.fsum(p * (shared / length) for p, shared, length in overlaps)


def threshold_quality(xs: Iterable[int], ys: Iterable[int]) -> tuple[list[int], list[int]]:
    """Starts and values of Q(j) = #{i : [x_i < j] = y_i}; example i changes it at x_i + 1 only."""
    ys = list(ys)
    steps = Counter({0: sum(y != 1 for y in ys)})
    for x, y in zip(xs, ys, strict=True):
        steps[x + 1] += 1 if y == 1 else -1
    starts = sorted(steps)
    return starts, list(accumulate(steps[start] for start in starts))


def good_thresholds(xs: Sequence[int], ys: Sequence[int], bits: int, error: float) -> list[Interval]:
    """The intervals of thresholds whose empirical error is at most error (the sample is not empty)."""
    pieces = as_pieces(*threshold_quality(xs, ys), 2**bits)
    good = [(lo, hi) for lo, hi, right in pieces if (len(xs) - right) / len(xs) <= error]
    return list(_union(good)) if good else []


def per_mechanism(
    bits: int, epsilon: Fraction, delta: Fraction, depth: int, calibration: str
) -> tuple[Fraction, Fraction]:
    """The part of LearnThresholds's budget that each mechanism gets."""
    if calibration == "printed":
        return epsilon / (3 * depth), delta / (3 * depth)
    levels = levels_run(2**bits, depth)
    return epsilon / (3 * levels - 2), delta / max(2 * (levels - 1), 1)


def levels_run(T: int, depth: int, base: int = 32) -> int:
    """How many levels of RecConcave run on {0..T}, the last being the exponential mechanism."""
    return 1 if depth == 1 or base >= T else 1 + levels_run(log2_ceiling(T), depth - 1, base)


def exact(x: Number) -> Fraction:
    """The number x prints as."""
    return Fraction(str(x))


def exact_value(x: Number) -> Fraction | int:
    """The same as an int where it is one, which is faster."""
    value = exact(x)
    return value.numerator if value.denominator == 1 else value


def as_decimal(x: Fraction) -> Decimal:
    """x to the context's digits."""
    return Decimal(x.numerator) / Decimal(x.denominator)


def log2_ceiling(T: int) -> int:
    """log2 T' for the smallest power of two T' >= T >= 1."""
    return (T - 1).bit_length()


def as_pieces(starts: Sequence[int], values: Sequence[Any], T: int) -> list[Piece]:
    """The pieces of a function on {0..T}; one starting beyond T is dropped."""
    ends = [start - 1 for start in starts[1:]] + [T]
    return [(lo, min(hi, T), value) for lo, hi, value in zip(starts, ends, values, strict=True) if lo <= T]


def _rec_concave(
    pieces: list[Piece],
    r: Fraction,
    alpha: Fraction,
    levels: list[Level],
    calibration: str,
    base: int,
    span: Fraction,
) -> tuple[dict[Interval, Decimal], Decimal]:
    """Figure 5: ({(lo, hi): probability spread over it}, probability of bottom).

    L is clipped to what is at most `span`, and no further than that below (1 - alpha) r (ours).
    """
    T, (epsilon, tests) = pieces[-1][1], levels[0]
    if len(levels) == 1 or base >= T:  # step 1
        return _sum_parts(_exponential(_weights(pieces, epsilon), [(0, T)])), Decimal(0)

    # Step 2. The added points stay candidates to the end, as steps 7 to 10 speak of [0, T']. A recursive call
    # may thus return k > log2 T' of its parent, which then has one block only (8K > T') and surely takes it.
    log = log2_ceiling(T)
    if 2**log > T:
        pieces = [*pieces, (T + 1, 2**log, min(Fraction(0), pieces[-1][2]))]

    least = (1 - alpha) * r
    best = [max(least - span, min(value, span)) for value in best_windows(pieces, log)]  # step 3
    q = [min(best[j] - least, r - best[j + 1]) for j in range(log + 1)]  # step 4
    points = [(j, j, value) for j, value in enumerate(q)]
    inner, bottom = _rec_concave(  # steps 5 and 6
        points, alpha * r / 2, Fraction(1, 4), levels[1:], calibration, base, span
    )
    weights = _weights(pieces, epsilon)
    parts: list[Piece] = []
    for k, p in _point_by_point(inner):
        blocks, missed = _choose_blocks(pieces, 2**k, tests, calibration)  # steps 7 to 9
        bottom += p * missed
        for chosen, kept in blocks:
            shares = _exponential(weights, chosen)  # step 10
            parts += [(lo, hi, p * kept * share) for lo, hi, share in shares]
    return _sum_parts(parts), bottom


def best_windows(pieces: list[Piece], log: int) -> list[Fraction]:
    """L(0), ..., L(log + 1): the best minimum over windows of 2^j points, found in runs of values >= it."""
    firsts = _run_ends((lo, value) for lo, _, value in pieces)
    lasts = _run_ends((hi, value) for _, hi, value in reversed(pieces))[::-1]
    runs = [(b - a + 1, value) for a, b, (_, _, value) in zip(firsts, lasts, pieces, strict=True)]
    best = [max(value for length, value in runs if length >= 2**j) for j in range(log + 1)]
    return [*best, min(Fraction(0), best[-1])]


def _run_ends(pieces: Iterable[tuple[int, Fraction]]) -> list[int]:
    """For each piece, how far back the values stay at least as large as its own."""
    ends: list[int] = []
    open_runs: list[tuple[int, Fraction]] = []
    for end, value in pieces:
        while open_runs and open_runs[-1][1] >= value:
            end, _ = open_runs.pop()
        open_runs.append((end, value))
        ends.append(end)
    return ends


def _choose_blocks(
    pieces: list[Piece], K: int, tests: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]], calibration: str
) -> tuple[list[tuple[list[Interval], Decimal]], Decimal]:
    """Every non-empty choice of blocks with its probability, and the probability of none."""
    A, a = _stable_block(pieces, 0, 8 * K, *tests[0], calibration)
    if pieces[-1][1] < 4 * K:  # no point is left for the shifted partition
        return [([A], a)], 1 - a
    B, b = _stable_block(pieces, 4 * K, 8 * K, *tests[1], calibration)
    return [([A, B], a * b), ([A], a * (1 - b)), ([B], (1 - a) * b)], (1 - a) * (1 - b)


def _stable_block(
    pieces: list[Piece], first: int, width: int, epsilon: Fraction, delta: Fraction, calibration: str
) -> tuple[Interval, Decimal]:
    """A_dist over blocks of that width from first on: the best (the lowest of equals) and P[it is kept]."""
    end = pieces[-1][1]
    spans = [
        ((max(lo, first) - first) // width, (hi - first) // width, value) for lo, hi, value in pieces if hi >= first
    ]
    top = max(value for _, _, value in spans)
    winner = min(block for block, _, value in spans if value == top)
    start = first + winner * width
    interval = (start, min(start + width - 1, end))
    others = [value for low, high, value in spans if (low, high) != (winner, winner)]
    return interval, _release(top - max(others), epsilon, delta, calibration) if others else Decimal(1)


def _release(gap: Fraction, epsilon: Fraction, delta: Fraction, calibration: str) -> Decimal:
    """P[gap + Laplace noise >= threshold]."""
    if calibration == "printed":
        scale = as_decimal(1 / epsilon)
        threshold = scale * as_decimal(1 / delta).ln()
    elif calibration == "proved":
        scale = as_decimal(2 / epsilon)
        threshold = 2 + scale * as_decimal(1 / (2 * delta)).ln()
    else:
        raise ValueError(f"calibration must be 'printed' or 'proved', got {calibration!r}")
    short = (threshold - as_decimal(gap)) / scale
    return (-short).exp() / 2 if short >= 0 else 1 - short.exp() / 2


def _weights(pieces: list[Piece], epsilon: Fraction) -> list[Piece]:
    """The pieces with the exponential mechanism's weight exp(epsilon Q / 2) of one point."""
    return [(lo, hi, as_decimal(epsilon * value / 2).exp()) for lo, hi, value in pieces]


def _exponential(weights: list[Piece], blocks: list[Interval]) -> list[Piece]:
    """The exponential mechanism on the union of the blocks, a point in two of them counted once."""
    cells = [
        (max(lo, a), min(hi, b), weight) for a, b in _union(blocks) for lo, hi, weight in weights if lo <= b and a <= hi
    ]
    total = sum((hi - lo + 1) * weight for lo, hi, weight in cells)
    return [(lo, hi, (hi - lo + 1) * weight / total) for lo, hi, weight in cells]


def _union(blocks: list[Interval]) -> Iterator[Interval]:
    """The fewest intervals covering the same points."""
    low, *rest = sorted(blocks)
    for block in rest:
        if block[0] <= low[1] + 1:
            low = (low[0], max(low[1], block[1]))
        else:
            yield low
            low = block
    yield low


def _point_by_point(parts: dict[Interval, Decimal]) -> Iterator[tuple[int, Decimal]]:
    """Every point with its probability."""
    for (lo, hi), p in parts.items():
        for k in range(lo, hi + 1):
            yield k, p / (hi - lo + 1)


def _sum_parts(parts: Iterable[Piece]) -> dict[Interval, Decimal]:
    """The probabilities of equal intervals added up."""
    sums: dict[Interval, Decimal] = {}
    for lo, hi, p in parts:
        sums[lo, hi] = sums.get((lo, hi), Decimal(0)) + p
    return sums
