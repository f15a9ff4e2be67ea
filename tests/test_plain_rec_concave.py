"""The reference itself, against Figure 5 written out point by point, and against values known by other means."""

import math
import random
from fractions import Fraction

import builders
import pytest

from dpjax.verify.plain import rec_concave as reference

TOLERANCE = 1e-12


def brute_law(quality, r, alpha, epsilon, delta, depth, calibration, base, span=None):
    """Figure 5 on a list of values, every window, block and point, with L clipped to twice the first r; returns (law, bottom)."""
    span = 2 * abs(r) if span is None else span
    if len(quality) - 1 <= base or depth == 1:
        return brute_exponential(quality, set(range(len(quality))), epsilon), 0.0
    log = math.ceil(math.log2(len(quality) - 1))
    quality = quality + [min(Fraction(0), quality[-1])] * (2**log + 1 - len(quality))
    points = range(2**log + 1)
    windows = [[quality[a : a + 2**j] for a in points if a + 2**j <= len(quality)] for j in range(log + 1)]
    L = [max(-span, min(span, max(min(window) for window in each))) for each in windows]
    L.append(min(Fraction(0), L[log]))
    q = [min(L[j] - (1 - alpha) * r, r - L[j + 1]) for j in range(log + 1)]
    inner, bottom = brute_law(q, alpha * r / 2, Fraction(1, 4), epsilon, delta, depth - 1, calibration, base, span)
    law = [0.0] * len(quality)
    for k, p in enumerate(inner):
        K = 2**k
        halves = []
        for first in (0, 4 * K):
            blocks = [{i for i in range(a, a + 8 * K) if i in points} for a in range(first, 2**log + 1, 8 * K)]
            halves.append(brute_stable(quality, blocks, epsilon, delta, calibration))
        for A, a in halves[0]:
            for B, b in halves[1]:
                if A is None and B is None:
                    bottom += p * a * b
                    continue
                chosen = brute_exponential(quality, (A or set()) | (B or set()), epsilon)
                law = [old + p * a * b * new for old, new in zip(law, chosen, strict=True)]
    return law, bottom


def brute_exponential(quality, points, epsilon):
    """The exponential mechanism on a set of points."""
    weights = [math.exp(epsilon * q / 2) if i in points else 0.0 for i, q in enumerate(quality)]
    return [weight / sum(weights) for weight in weights]


def brute_stable(quality, blocks, epsilon, delta, calibration):
    """A_dist: every outcome (a block, or None for bottom) with its probability."""
    if len(blocks) <= 1:
        return [(blocks[0] if blocks else None, 1.0)]
    scores = [max(quality[i] for i in block) for block in blocks]
    best = blocks[scores.index(max(scores))]
    second, first = sorted(scores)[-2:]
    if calibration == "printed":
        scale, threshold = 1 / epsilon, math.log(1 / delta) / epsilon
    else:
        scale, threshold = 2 / epsilon, 2 + 2 / epsilon * math.log(1 / (2 * delta))
    z = (threshold - float(first - second)) / scale
    kept = math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2
    return [(best, kept), (None, 1 - kept)]


def compare(starts, values, T, r, alpha, epsilon, delta, depth, calibration, base):
    """Assert that both laws agree on every point, those added above T included."""
    law = reference.rec_concave_law(starts, values, T, r, alpha, epsilon, delta, depth, calibration, base)
    quality = [Fraction(values[sum(start <= i for start in starts) - 1]) for i in range(T + 1)]
    expected, bottom = brute_law(quality, Fraction(r), Fraction(alpha), epsilon, delta, depth, calibration, base)
    for i, p in enumerate(expected):
        assert reference.mass(law, i, i) == pytest.approx(p, abs=TOLERANCE)
    assert law[1] == pytest.approx(bottom, abs=TOLERANCE)
    assert sum(p for _, _, p in law[0]) + law[1] == pytest.approx(1, abs=TOLERANCE)
    return expected, bottom


@pytest.mark.parametrize("calibration", ["printed", "proved"])
@pytest.mark.parametrize("base", [1, 2, 4, 32])
def test_the_law_is_that_of_the_figure_written_out(calibration, base):
    rng = random.Random(base)
    for _ in range(20):
        T = rng.choice([rng.randint(1, 128), 64, 128, base])
        low = rng.choice([-6, 0, 8])
        starts = [0, *sorted(rng.sample(range(1, T + 1), min(T, rng.randint(0, 9))))]
        values = [rng.randint(low, 24) / rng.choice([1, 2]) for _ in starts]
        compare(starts, values, T, rng.randint(0, 12), 0.25, 1.5, 0.03, rng.randint(1, 4), calibration, base)


def test_small_gaps_thresholds_and_points_above_the_range_are_all_met():
    spike = [0, 60, 61], [0, 40, 0]
    law, bottom = compare(*spike, 96, 40, 0.5, 1.0, 0.01, 3, "printed", 2)
    assert sum(law[97:]) > 0 and 0 < bottom < 1 and law[60] > 0.9
    equal = (
        [0, 20, 21, 100, 101],
        [0, 40, 0, 40, 0],
    )  # the best two blocks tie: bottom, but for noise beyond delta
    law, bottom = compare(*equal, 128, 40, 0.5, 1.0, 0.01, 2, "printed", 2)
    assert bottom > 0.9 and law[20] > law[100]


def test_a_recursive_call_may_return_a_point_above_its_range():
    """On {0..128} the call on {0..7} works on {0..8}: k = 8 makes one block of everything."""
    pieces = reference.as_pieces([0], [Fraction(0)], 128)
    tests = ((Fraction(1), Fraction(1, 100)),) * 2
    blocks, missed = reference._choose_blocks(pieces, 2**8, tests, "printed")
    assert blocks == [([(0, 128)], 1)] and missed == 0
    compare([0], [0], 128, -4, 0.5, 0.1, 0.01, 3, "printed", 2)


def test_threshold_quality_is_its_definition():
    rng = random.Random(0)
    for _ in range(50):
        bits = rng.randint(1, 7)
        size = rng.randint(1, 20)
        xs = [rng.randrange(2**bits) for _ in range(size)]
        ys = [rng.randrange(2) for _ in xs]
        pieces = reference.as_pieces(*reference.threshold_quality(xs, ys), 2**bits)
        quality = [value for lo, hi, value in pieces for _ in range(lo, hi + 1)]
        right = [sum((x < j) == (y == 1) for x, y in zip(xs, ys, strict=True)) for j in range(2**bits + 1)]
        assert quality == right
        good = {j for lo, hi in reference.good_thresholds(xs, ys, bits, 0.3) for j in range(lo, hi + 1)}
        assert good == {j for j, correct in enumerate(right) if (size - correct) / size <= 0.3}
        p = brute_exponential(right, set(range(2**bits + 1)), 0.7)
        success = reference.exponential_success(xs, ys, bits, 0.7, 0.3)
        assert success == pytest.approx(sum(p[j] for j in good), abs=TOLERANCE)


@pytest.mark.parametrize(("calibration", "share"), [("printed", (6, 6)), ("proved", (4, 2))])
def test_learn_thresholds_is_the_figure_with_its_share_of_the_budget(calibration, share):
    rng = random.Random(1)
    xs = [rng.randrange(128) for _ in range(60)]
    ys = [int(x < 70) for x in xs]
    law = reference.learn_thresholds_law(xs, ys, 7, 8.0, 0.05, 0.5, 2, calibration)
    right = [Fraction(sum((x < j) == (y == 1) for x, y in zip(xs, ys, strict=True))) for j in range(129)]
    epsilon, delta = 8 / share[0], 0.05 / share[1]
    expected, bottom = brute_law(right, Fraction(60), Fraction(1, 4), epsilon, delta, 2, calibration, 32)
    assert law[1] == pytest.approx(bottom, abs=TOLERANCE)
    for j, p in enumerate(expected):
        assert reference.mass(law, j, j) == pytest.approx(p, abs=TOLERANCE)
    success = reference.success_probability(xs, ys, 7, 0.1, 8.0, 0.05, 0.5, 2, calibration)
    assert success == pytest.approx(sum(p for p, q in zip(expected, right, strict=True) if 60 - q <= 6), abs=TOLERANCE)


def test_levels_run_stop_at_ranges_of_33_points():
    assert [reference.levels_run(2**bits, 9) for bits in (5, 6, 32, 33, 64, 1024, 4096)] == [
        1,
        2,
        2,
        3,
        3,
        3,
        3,
    ]
    assert reference.levels_run(2**1024, 2) == 2


def log_uniform_sample(rng, bits, size):
    """Points at log-uniform distances from the target 2^(bits-1), the hard distribution here."""
    target = 2 ** (bits - 1)
    xs = [target + rng.choice((-1, 1)) * math.floor(2 ** rng.uniform(0, bits - 1)) for _ in range(size)]
    xs = [min(x, 2**bits - 1) for x in xs]
    return xs, [int(x < target) for x in xs]


@pytest.mark.slow
def test_success_on_64_bits_is_where_it_should_be():
    """RecConcave at alpha = 0.1, hence LearnThresholds at 0.2: over several draws success was 0.96 to 0.99 for m = 2000."""
    rng = random.Random(2)
    for size, low, high in ((2000, 0.95, 0.995), (5000, 1 - 1e-8, 1 - 1e-11)):
        xs, ys = log_uniform_sample(rng, 64, size)
        success = reference.success_probability(xs, ys, 64, 0.1, 1.0, 1e-6, 0.2, 2, "printed")
        assert low < success < high


@pytest.mark.thorough
@pytest.mark.parametrize("calibration", [builders.slow("printed"), "proved"])
def test_wide_domains(calibration):
    xs, ys = log_uniform_sample(random.Random(3), 1024, 80)
    law = reference.learn_thresholds_law(xs, ys, 1024, 20.0, 1e-4, 0.5, 3, calibration)
    assert sum(p for _, _, p in law[0]) + law[1] == pytest.approx(1, abs=TOLERANCE)
    assert reference.mass(law, 0, 2**1024) + law[1] == pytest.approx(1, abs=TOLERANCE)
    assert 0 < law[1] < 1


def test_mirrored_labels_mirror_the_exponential_mechanism():
    """x -> 2^d - 1 - x with the other label maps j to 2^d - j."""
    xs, ys = log_uniform_sample(random.Random(4), 64, 100)
    mirrored = [2**64 - 1 - x for x in xs], [1 - y for y in ys]
    success = reference.exponential_success(xs, ys, 64, 2.0, 0.1)
    assert 0.1 < success < 0.9
    assert reference.exponential_success(*mirrored, 64, 2.0, 0.1) == pytest.approx(success, abs=TOLERANCE)


def test_the_exponential_mechanism_has_its_closed_form_on_a_wide_domain():
    """One example (2^1023 - 1, 1): half the thresholds and one more are right."""
    success = reference.exponential_success([2**1023 - 1], [1], 1024, 0.8, 0.0)
    assert success == pytest.approx(1 / (1 + math.exp(-0.4)), abs=TOLERANCE)


def test_an_unknown_calibration_is_refused():
    with pytest.raises(ValueError, match="calibration must be 'printed' or 'proved', got 'guessed'"):
        reference.rec_concave_law([0, 50], [0, 9], 64, 9, 0.5, 1.0, 0.01, 2, "guessed")
