"""The benchmark compares like with like: every NumPy program succeeds as often as dpjax's trial of the same name.

Statistical tests: fixed keys, false-alarm rate 2e-5 each, and a cell of other sizes that each must tell from the first.
"""

import math
from collections import Counter

import jax
import numpy as np
import pytest
from scipy import stats

from dpjax.trials import engine
from dpjax.verify.plain.quantiles import supported_laws
from dpjax.verify.plain.supported import supported_thresholds_law
from dpjax.verify.plain.tree_score import supported_tree_law
from experiments import benchmarks, records
from experiments.benchmarks import (
    contests,
    numpy_driver,
    numpy_interior,
    numpy_keys,
    numpy_many_thresholds,
    numpy_parities,
    numpy_points,
    numpy_supported,
    peers,
    runners,
    scaling,
    timing,
)
from experiments.benchmarks.contests import CONTESTS
from experiments.benchmarks.draw import draw
from experiments.benchmarks.numpy_driver import Program, count
from experiments.benchmarks.pool import Pool
from experiments.benchmarks.programs import PROGRAMS
from experiments.records import Row

ALARM = 2e-5
# (contest, sizes, other sizes, trials of dpjax). Families that take more than a second to compile are slow tests.
FAST = [
    ("exponential mechanism", (1000,), (6,), 4000),
]
SLOW = [
    ("attack", (3, 10), (3, 6), 100),
    ("parities exponential", (10, 30), (10, 36), 1000),
    ("elimination", (16, 17, 40), (16, 18, 40), 1000),
    ("interior exponential", (31, 20), (31, 26), 4000),
    ("quantiles", (31, 3, 300), (31, 4, 300), 2000),
    ("quantiles approximate", (31, 9, 300), (31, 7, 300), 1000),
    ("quantiles inverse_sensitivity", (63, 3, 180), (63, 3, 300), 500),
    ("quantiles joint", (63, 3, 230), (63, 3, 260), 1000),
    ("quantiles supported", (63, 2, 4000), (63, 2, 1000), 1000),
    ("quantiles supported", (100, 2, 300), (31, 2, 300), 1000),
    ("quantiles supported_slices", (31, 2, 1800), (31, 2, 1400), 1000),
    ("quantiles permute_and_flip", (31, 3, 300), (31, 4, 300), 2000),
    ("quantiles tree", (31, 3, 300), (31, 1, 300), 1000),
    ("quantiles unbounded", (31, 3, 300), (31, 3, 500), 1000),
    ("learn_points", (180,), (220,), 2000),
    ("histogram_learner", (16, 200), (16, 240), 1000),
    ("sparse_histogram_learner", (16, 1000), (16, 1040), 1000),
    ("interior rec_concave", (31, 600), (31, 700), 2000),
    ("tree_log", (64, 340), (64, 360), 2000),
    ("supported", (31, 500), (31, 550), 1000),
    ("supported", (100, 400), (100, 450), 1000),
    ("supported_tree", (31, 36), (31, 33), 2000),
    ("supported_tree", (100, 38), (100, 35), 2000),
    ("rectangles by slices", (1, 32, 3600), (1, 32, 4000), 1000),
    ("rectangles", (1, 32, 3600), (1, 32, 4000), 500),
    ("points exponential", (560,), (700,), 2000),
    ("hashed", (100,), (130,), 2000),
    ("point_learner", (16, 1000), (16, 1100), 1000),
    ("parity_learner", (16, 70, 600), (16, 70, 720), 1000),
    ("direct_sum", (16, 4, 150), (16, 4, 220), 1000),
    ("distribution function", (16, 3, 30, 600), (16, 3, 60, 1200), 1000),
    ("generic", (16, 4, 3, 60, 600), (16, 4, 3, 100, 900), 1000),
    ("thresholds histogram", (8, 1003), (8, 1203), 2000),
    ("thresholds tree", (8, 1203), (8, 1403), 2000),
    ("label_private", (31, 30), (31, 50), 2000),
    ("blr", (3, 6, 103), (3, 6, 83), 2000),
    ("length_search", (31, 2000), (31, 1400), 2000),
    ("power_search", (31, 1600), (31, 1700), 2000),
    ("conjunction", (64, 700), (64, 900), 1000),
    ("convex polygon", (6, 3, 700), (6, 3, 900), 500),
    ("tracing", (8, 8000), (8, 9000), 500),
    ("laplace", (1000,), None, 4000),
    ("soft exponential mechanism", (1000,), (6,), 4000),
    ("soft quantile", (400,), (200,), 4000),
    ("soft threshold", (400,), (200,), 4000),
]
CELLS = [*FAST, *(pytest.param(*cell, marks=pytest.mark.slow) for cell in SLOW)]


def p_value(successes: int, trials: int, others: int, other_trials: int) -> float:
    """Fisher's exact test of equal rates."""
    return stats.fisher_exact([[successes, trials - successes], [others, other_trials - others]]).pvalue


def programs_of(name: str) -> list[Program]:
    """NumPy's programs for a contest: the general one and the specialised one, as far as they exist."""
    program = CONTESTS[name].program
    return [PROGRAMS[each] for each in (program, f"specialised {program}") if each in PROGRAMS]


@pytest.mark.parametrize(("name", "sizes", "control", "trials"), CELLS)
def test_numpy_succeeds_as_often_as_dpjax(name, sizes, control, trials):
    run, params = CONTESTS[name].make(*sizes)
    expected = engine.count(run, params, root=engine.root_key(3), cell=0, trials=trials)
    for program in programs_of(name):
        more = 2 * trials
        assert p_value(count(program, sizes, more, 5), more, expected, trials) > ALARM
        if control:
            assert p_value(count(program, control, more, 5), more, expected, trials) < ALARM


def test_laplace_noise_has_the_exact_law():
    """The largest of c draws exceeds ln(c)/epsilon with probability 1 - (1 - 1/(2c))^c."""
    trials = 40_000
    rate = 1 - (1 - 1 / 200) ** 100
    assert stats.binomtest(count(PROGRAMS["laplace"], (100,), trials, 1), trials, rate).pvalue > ALARM
    assert stats.binomtest(count(PROGRAMS["laplace"], (6,), trials, 1), trials, rate).pvalue < ALARM


def test_every_contest_is_checked_here_or_with_the_thresholds():
    """`test_numpy_trials` checks those of thresholds."""
    checked = {name for name, *_ in (*FAST, *SLOW)} | {"erm", "exponential", "binary_search", "rec_concave"}
    assert checked == set(CONTESTS)


@pytest.mark.parametrize("preset", ["smoke", "quick", "full"])
def test_presets_ask_for_what_there_is(preset):
    for name, sizes in benchmarks.EXPERIMENT.presets[preset]["contests"]:
        assert len(CONTESTS[name].sizes) == len(sizes)
        program = CONTESTS[name].program
        assert runners.can(program, tuple(sizes)) or runners.can(f"specialised {program}", tuple(sizes))


def test_every_learner_and_attack_is_in_the_quick_run():
    assert {name for name, _ in benchmarks.CONTESTS} == set(CONTESTS)


# ------------------------------------------------------------------------------------------------------- NumPy's parts


@pytest.mark.parametrize("name", [name for name, *_ in FAST])
def test_programs_depend_on_the_seed_alone(name):
    sizes = next(sizes for other, sizes, *_ in FAST if other == name)
    for program in programs_of(name):
        first = count(program, sizes, 70, 1)
        assert 0 <= first <= 70 and count(program, sizes, 70, 1) == first


def test_points_with_any_labels_are_counted_as_defined():
    """Per trial and point: how often it and its two most frequent label vectors occur, and the most frequent vector."""
    rng = np.random.default_rng(2)
    kind, words = rng.integers(0, 5, (6, 40)), rng.integers(0, 2, (6, 40, 2)).astype(np.uint64)
    x = numpy_points.EXAMPLES[kind]
    items = numpy_points._by_point(x, words)
    place = 0
    for trial in range(6):
        for point in np.unique(x[trial]).tolist():
            vectors = Counter(map(tuple, words[trial][x[trial] == point].tolist()))
            (best, first), *rest = sorted(vectors.items(), key=lambda pair: (-pair[1], pair[0]))
            found = [part[place].tolist() for part in items[:6]]
            assert found == [trial, point, vectors.total(), first, rest[0][1] if rest else 0, list(best)]
            place += 1
    assert place == len(items.trial)


def naive_path(points, d, first):
    """TreeLog's walk in Python integers: (points that leave at each level, points in the leaf, the leaf)."""
    left, prefix, leaving = sorted(points)[first:], 0, []
    for level in range(d):
        right = [x for x in left if x >> (d - 1 - level) & 1]
        other = [x for x in left if not x >> (d - 1 - level) & 1]
        to_right = len(right) > len(other)
        leaving.append(min(len(right), len(other)))
        left, prefix = (right if to_right else other), 2 * prefix + to_right
    return leaving, len(left), prefix


def test_tree_log_walks_as_defined():
    rng = np.random.default_rng(0)
    x = np.sort(rng.integers(0, 64, (50, 20)).astype(np.uint32), axis=1)
    path = numpy_interior._walk(x, 6, 3)
    for i, row in enumerate(x.tolist()):
        assert (path.lighter[i].tolist(), path.leaf[i], path.bits[i]) == naive_path(row, 6, 3)


def test_deep_slice_prefixes_as_defined():
    """The deepest points by level, ties by value; their most frequent prefix, and its lead over the next."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = np.sort(rng.integers(0, 64, 15).astype(np.uint32))
        leaving, leaf, end = naive_path(x.tolist(), 6, 0)
        levels = {v: 6 - (v ^ end).bit_length() for v in x.tolist()}
        deepest = sorted(x.tolist(), key=lambda v: -levels[v])[:7]
        for length in range(1, 7):
            votes = sorted((v >> (6 - length)) for v in deepest)
            ordered = sorted({p: votes.count(p) for p in votes}.items(), key=lambda item: (-item[1], item[0]))
            gap = ordered[0][1] - (ordered[1][1] if len(ordered) > 1 else 0)
            given = np.array([*leaving, leaf])
            assert numpy_interior._heaviest(x, np.uint32(end), given, length, 7, 6) == (ordered[0][0], gap)


@pytest.mark.slow  # the runs that use them are compared above
def test_stopping_odds_are_those_of_the_library():
    from dpjax.mechanisms import partition_selection

    plan, chance = numpy_interior._plan(64)
    kept, _ = partition_selection.probabilities(plan.budget.walk_epsilon, plan.stop_delta)
    size = min(len(kept), len(chance) - plan.t1 + 1)
    assert np.allclose(chance[plan.t1 - 1 :][:size], kept[:size], rtol=1e-9, atol=0) and chance[-1] == 1.0


def in_words(numbers, words):
    """An array of Python integers as `numpy_keys` has points, the same for one row."""
    return np.array([[[x >> 64 * i & (2**64 - 1)] for x in numbers] for i in range(words)], np.uint64)


def below_keys(points, bits):
    """(points in the subtree, less than the key, up to it) of each key that has points below it, along the path of every point."""
    found = {}
    for point in points:
        for height in range((point & -point).bit_length() - 1, bits):
            key = (point >> height + 1 << height + 1 | 1 << height) if height >= 0 else 0
            first = 0 if key & (key - 1) == 0 else key - 2**height + 1
            inside = sum(first <= each < key + 2 ** max(height, 0) for each in points)
            found[key] = inside, sum(each < key for each in points), sum(each <= key for each in points)
    return found


@pytest.mark.parametrize("shift", [0, 60, 62, 130])  # in words of any number, and across their ends
@pytest.mark.parametrize(("bits", "n"), [(2, 3), (4, 2), (4, 7), (8, 7)])
def test_runs_hold_every_key_with_points_below_it_once(bits, n, shift):
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = sorted(int(x) << shift for x in rng.integers(0, 2**bits, n))
        found = {}
        for runs in numpy_keys.runs(in_words(points, numpy_keys.words_for(bits + shift)), bits + shift):
            each = [np.broadcast_to(part, runs.exists.shape)[runs.exists].tolist() for part in runs[1:]]
            for item, low, high, before, stop, under, up_to, ones in zip(*each, strict=True):
                digits = [points[item] >> height & 1 for height in range(low + 1, high)]
                assert sum(digits) == ones
                for height, digit in zip(range(low, high), [None, *digits], strict=True):
                    key = (points[item] >> height + 1 << height + 1 | 1 << height) if height >= 0 else 0
                    assert key not in found
                    side = before if digit else stop
                    found[key] = stop - before, *((under, up_to) if digit is None else (side, side))
        assert found == below_keys(points, bits + shift)


ROWS = 20_000  # of the same data, each with coins of its own


def assert_law(drawn, found, law):
    """Whether answers are those of a law, whose last entry is bottom; what it excludes never happens."""
    counts, expected = np.bincount(np.where(found, drawn, len(law) - 1), minlength=len(law)), ROWS * np.array(law)
    often = expected > 5
    assert counts[expected == 0].sum() == 0
    both = [np.append(each[often], each[~often].sum() + 1e-9) for each in (counts, expected)]
    assert stats.chisquare(both[0], both[1] * both[0].sum() / both[1].sum()).pvalue > ALARM


@pytest.mark.parametrize(("bits", "n"), [(3, 12), (5, 20), (4, 2)])
def test_numpy_interior_points_have_the_exact_law(monkeypatch, bits, n):
    monkeypatch.setattr(numpy_supported, "DELTA", 0.05)
    rng = np.random.default_rng(n)
    points = np.sort(rng.integers(0, 2**bits, n)).tolist()
    answer, found = numpy_supported.interior_point(rng, np.repeat(in_words(points, 1), ROWS, axis=2), bits)
    assert_law(answer[0].astype(int), found, supported_tree_law(points, bits, 1.0, 0.05))


@pytest.mark.parametrize(("bits", "n", "room", "noise"), [(3, 30, 12, 0.1), (4, 40, 14, 0.0), (3, 12, 12, 0.5)])
def test_numpy_thresholds_have_the_exact_law_for_any_labels(monkeypatch, bits, n, room, noise):
    monkeypatch.setattr(numpy_supported, "DELTA", 0.05)
    rng = np.random.default_rng(n)
    x = np.sort(rng.integers(0, 2**bits, n))
    labels = (x < 2 ** (bits - 1)) ^ (rng.random(n) < noise)
    examples = numpy_supported.Examples(np.repeat(labels[None], ROWS, axis=0), room)
    place = examples.place[0]
    inner = 2 * x[np.clip(place, 0, n - 1)] + 3
    points = np.where(place < 0, 1, np.where(place == n, 2 ** (bits + 1) + 3, inner)).tolist()
    answer, found = numpy_supported.threshold(rng, np.repeat(in_words(points, 1), ROWS, axis=2), examples, bits)
    law = supported_thresholds_law(x.tolist(), labels.astype(int).tolist(), bits, 1.0, 0.05, room)
    assert_law(answer[0].astype(int) // 2 - 1, found, law)


@pytest.mark.parametrize(("bits", "n", "fraction", "m"), [(3, 30, 0.3125, 6), (5, 20, 0.5, 7), (4, 9, 0.25, 5)])
def test_numpy_medians_have_the_exact_law(bits, n, fraction, m):
    rng = np.random.default_rng(n)
    x = np.sort(rng.integers(0, 2**bits, n))
    at, rest = math.floor(fraction * n), fraction * n % 1
    place = np.arange(at - m, at + m + (rest > 0))
    points = np.where(place < 0, 0, np.where(place >= n, 2**bits - 1, x[np.clip(place, 0, n - 1)])).tolist()
    window = numpy_supported.Window(bits, m, m + rest, max(fraction, 1 - fraction), 1.0, 0.05)
    answer, _, _, found = window.answers(rng, np.repeat(in_words(points, 1), ROWS, axis=2))
    law = supported_laws(x.tolist(), [fraction], bits=bits, epsilon=1.0, delta=0.05, m=m)[0]
    assert_law(answer[0].astype(int), found, law)


@pytest.mark.parametrize("d", [31, 62, 64, 100, 1024])
def test_examples_are_written_out_on_both_sides_of_the_target(d):
    exponents = np.append(np.random.default_rng(6).uniform(-(d - 1), d - 1, 40), [0.3, -0.3, 1.2, -1.2])[:, None]
    x = numpy_supported._examples(exponents, d)
    for i, exponent in enumerate(exponents[:, 0].tolist()):
        whole = int(abs(exponent))
        digits = int(np.exp2(np.float32(abs(exponent) - whole) + np.float32(23)))
        distance = digits << whole - 23 if whole >= 23 else digits >> 23 - whole
        wanted = 2 * (2 ** (d - 1) + (distance if exponent > 0 else -distance)) + 3
        assert sum(int(word) << 64 * j for j, word in enumerate(x[:, i, 0])) == wanted


def test_systems_are_solved():
    rng = np.random.default_rng(2)
    d, k, s, stack = 16, 70, 20, 30
    truth = rng.integers(0, 2, (stack, d, k))
    a = rng.integers(0, 2, (stack, s, d))
    a[0, :, 3] = 0  # one without full rank
    y = np.einsum("isd,idk->isk", a, truth) % 2
    columns = np.concatenate(
        [np.pad(a, ((0, 0), (0, 0), (0, 64 - d))), np.pad(y, ((0, 0), (0, 0), (0, 128 - k)))], axis=2
    )
    system = np.packbits(columns.astype(bool), axis=2, bitorder="little").view(np.uint64)
    full, solved = numpy_parities._solve(np.ascontiguousarray(system), d)
    bits = np.unpackbits(np.ascontiguousarray(solved).view(np.uint8), axis=2, bitorder="little", count=k)
    assert not full[0] and full.sum() > 20  # 94 % of random systems have full rank
    assert (bits[full] == truth[full]).all()


def test_labels_from_tables_are_inner_products():
    truth, tables = numpy_parities._targets(16, 3)
    for x in (0, 1, 40_000, 65_535):
        bits = [x >> i & 1 for i in range(16)]
        label = int(tables[0, x & 255, 0] ^ tables[1, x >> 8, 0])
        assert [label >> j & 1 for j in range(3)] == [
            sum(b * (int(row[0]) >> j & 1) for b, row in zip(bits, truth, strict=True)) % 2 for j in range(3)
        ]


def test_points_of_many_thresholds_are_uniform_and_in_order():
    x = numpy_many_thresholds._points(np.random.default_rng(3), 200, 16, 50)
    assert (np.diff(x, axis=1) >= 0).all() and (x[:, -1] == 1 << 16).all()
    assert stats.kstest((x[:, :50].reshape(-1) + 0.5) / 2**16, "uniform").pvalue > ALARM


@pytest.mark.parametrize("k", [3, 4, 9])
def test_labels_of_many_thresholds_and_their_partial_sums(k):
    x = numpy_many_thresholds._points(np.random.default_rng(4), 20, 8, 30)
    labels = numpy_many_thresholds._labels(x, 8, k)
    ones = numpy_many_thresholds._ones_before(labels)
    for j, target in enumerate(numpy_many_thresholds.targets(8, k)):
        wanted = np.cumsum(x[:, :30] < target, axis=1)
        assert (ones[j // 4, :, 1:, j % 4] == wanted).all() and (ones[j // 4, :, 0] == 0).all()


def test_the_numpy_direct_sum_takes_any_labels():
    """On labels that no threshold gives, its draws have the exponential mechanism's law."""
    rng, rows, k = np.random.default_rng(5), 20_000, 2
    x = np.broadcast_to(np.array([1, 3, 3, 4, 9, 14, 16]), (rows, 7)).copy()
    labels = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0]])
    words = np.broadcast_to(labels[0] + (labels[1] << 16), (1, rows, 6)).astype(np.uint64)
    drawn = numpy_many_thresholds.learned_one_by_one(rng, x, words, 4, k)
    for j in range(k):
        right = ((x[0, :6, None] < np.arange(17)) == labels[j][:, None]).sum(axis=0)
        weights = np.exp(numpy_many_thresholds.EPSILON / k / 2 * right)
        expected = rows * weights / weights.sum()
        assert stats.chisquare(np.bincount(drawn[j], minlength=17), expected).pvalue > ALARM


def test_bad_sizes_are_named():
    for name, sizes, named in (
        ("exponential", (65, 100), "d "),
        ("tree_log", (64, 10), "n "),
        ("interior exponential", (31, 7), "n "),
        ("parity_learner", (20, 4, 2000), "d "),
        ("rectangles", (2, 16, 100), "d "),
        ("supported_tree", (64, 1001), "n "),
        ("supported", (1025, 100), "d "),
        ("quantiles supported", (64, 0, 100), "m "),
    ):
        with pytest.raises(ValueError, match=f"^{named}"):
            count(PROGRAMS[name], sizes, 1, 0)


def test_batches_add_up_to_the_trials():
    asked: list[int] = []
    program = Program(lambda rng, rows: asked.append(rows) or rows, lambda: 7, lambda: None)
    assert count(program, (), 23, 0) == 23 and asked == [7, 7, 7, 2]


def test_below_counts_smaller_entries():
    starts = np.array([[0, 3, 3, 9, 99], [0, 1, 2, 3, 99]])
    assert numpy_driver.below(starts, np.array([[3, 3], [4, 0]])).tolist() == [[1, 3], [3, 0]]


@pytest.mark.slow
def test_pool_passes_names_and_keeps_one_thread_a_process():
    with Pool(2) as pool:
        got = pool.count("laplace", (100,), 1001, 9)
    seeds = np.random.SeedSequence(9).spawn(2)
    assert got == sum(count(PROGRAMS["laplace"], (100,), m, s) for m, s in zip((500, 501), seeds, strict=True))


# --------------------------------------------------------------------------------------------------- packages, pictures


@pytest.mark.parametrize("contest", sorted(peers.CAN))
def test_packages_answer_or_say_why_not(contest):
    sizes = next(sizes for name, sizes in benchmarks.CONTESTS if name == contest)
    for make in peers.CAN[contest]:
        peer = make(*sizes)
        assert peer.note
        if peer.call is not None:
            peer.call()


def test_packages_that_are_absent_are_left_out(monkeypatch):
    import sys

    packages = "opendp.prelude", "diffprivlib.tools", "diffprivlib.mechanisms"
    published = "dp_multiq.ind_exp", "dp_multiq.joint_exp", "dp_multiq.tree", "algorithms.approximate_quantiles_algo"
    for module in (*packages, *published):
        monkeypatch.setitem(sys.modules, module, None)
    assert all(peers.rivals(name, tuple(sizes)) == {} for name, sizes in benchmarks.CONTESTS)


def test_exponents_of_powers():
    rows = [
        Row("scaling, n", "dpjax, a trial", n, 3 * n**1.5, 2.9 * n**1.5, 3.1 * n**1.5) for n in (10, 100, 1000, 10_000)
    ]
    (fitted,) = scaling.fitted(rows)
    assert fitted.panel == "exponent, n" and fitted.x == 1000
    assert math.isclose(fitted.value, 1.5) and fitted.low < 1.5 < fitted.high


def test_a_rate_is_that_of_whole_blocks(monkeypatch):
    """A part of a block takes as long as all of it: a rate of two trials would be a sixteenth of the real one."""
    monkeypatch.setattr(timing, "spent", lambda run, trials: run(trials))
    (rate, least, largest), (steady, *_) = timing.rates(
        {"in blocks": lambda n: 0.25 * math.ceil(n / 32), "one by one": lambda n: 0.01 + n / 400}, 0.2, 3
    ).values()
    assert 96 <= least <= rate <= largest <= 128 and 300 < steady < 400


def test_pictures_and_tables_hold_every_cell(tmp_path):
    rates = [
        Row("trials per second, erm, d=31, n=9", series, 0, value, value, value)
        for series, value in (("floor", 400.0), ("dpjax", 200.0), ("NumPy", 100.0), ("OpenDP median", 2.0))
    ]
    grown = [Row("scaling, n", "dpjax, a law", n, n, n, n) for n in (1, 10)]
    answer = [records.exact("seconds to answer, why?", "law", 42.0, 1.5)]
    first = [
        records.exact("seconds to a first answer, erm, d=31, n=9", series, 0, x)
        for series, x in (("cold", 3), ("from disk", 1), ("again", 0.0123))
    ]
    grid = [
        records.exact("cells per second, least_n, erm", series, 0, x)
        for series, x in (("in one call", 6), ("one by one", 2))
    ]
    draw([*rates, *first, *grid, *grown, *scaling.fitted(grown), *answer], {"repeats": 1}, tmp_path)
    text = (tmp_path / "benchmarks.md").read_text()
    assert "| erm | d=31, n=9 | 200 | 2.00 | 2 |  | 100 |  |" in text
    assert "| erm | d=31, n=9 | 3.0 | 1.0 | 0.012 |" in text and "| least_n | erm | 6 | 2 | 3 |" in text
    assert "| why? | law | 42 | 1.5 |" in text and "| dpjax, a law | n | 1 | 1.00 | 1.00 to 1.00 |" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "benchmarks.md",
        *(f"benchmarks_{name}.{kind}" for name in ("rates", "scaling") for kind in ("png", "svg")),
    }


def test_every_floor_gives_one_number():
    for name, sizes, *_ in FAST:
        run, params = CONTESTS[name].floor(*sizes)
        assert jax.eval_shape(run, jax.random.key(0), params).shape == ()


def test_interior_points_cover_every_scale():
    scales = contests.Scales(octaves=np.int32(30), limbs=1)
    x = np.asarray(jax.jit(lambda key: scales.sample(key, 2047, 2000).x)(jax.random.key(0)))[:2000, 0]
    assert (np.diff(x.astype(np.int64)) >= 0).all() and x.min() >= 1
    assert stats.kstest(np.log2(x[x > 2**10]) / 20 - 0.5, "uniform").pvalue > ALARM
