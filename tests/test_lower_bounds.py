"""Lower bounds against exact optima: no bound may ask for more than the best private algorithm of a small instance needs.

The optima are linear programmes, like those of `bounds.optimal`: laws on all outputs that matter, privacy between all neighbours, least
worst failure. Where a programme keeps some of the datasets only, its optimum is a lower bound itself, for the very family of a proof.
"""

import functools
import importlib
import itertools
import json
import math
import pathlib
import re

import numpy as np
import pytest
from scipy import optimize, sparse, stats

import dpjax
from dpjax import bounds
from dpjax.bounds import optimal, packing, towers
from experiments import records

ABOVE = 1 + 1e-6  # past the tolerance of the solver


def least_failure(failed, ratios):
    """The best of all pure algorithms on these datasets: its largest judgement.

    Args:
        failed: (judgements, datasets, outputs), how much an output on a dataset adds to a judgement.
        ratios: (datasets, datasets), e^epsilon to the power of the number of steps between two datasets, inf where nothing is required.
    """
    judgements, datasets, outputs = failed.shape
    here, there = np.nonzero(np.isfinite(ratios) & ~np.eye(datasets, dtype=bool))
    size, rows = datasets * outputs, np.arange(len(here) * outputs)
    places = [np.repeat(end, outputs) * outputs + np.tile(np.arange(outputs), len(here)) for end in (here, there)]
    values = np.concatenate([np.ones(len(rows)), -np.repeat(ratios[here, there], outputs)])
    private = sparse.csr_array((values, (np.tile(rows, 2), np.concatenate(places))), shape=(len(rows), size + 1))
    judged = sparse.csr_array(np.hstack([failed.reshape(judgements, size), -np.ones((judgements, 1))]))
    laws = np.hstack([np.kron(np.eye(datasets), np.ones(outputs)), np.zeros((datasets, 1))])
    found = optimize.linprog(
        np.eye(size + 1)[-1],
        sparse.vstack([private, judged]),
        np.zeros(len(rows) + judgements),
        sparse.csr_array(laws),
        np.ones(datasets),
        method="highs",
    )
    assert found.status == 0, found.message
    return float(found.fun)


def every(good):
    """The failures of each dataset, judged by itself."""
    return np.eye(len(good))[:, :, None] * ~good[None]


# ------------------------------------------------------------------------------------------------------------ sanitizers


def cliques(near, chosen=(), candidates=None):
    """All maximal sets of mutually near datasets."""
    if candidates is None:
        candidates = list(range(len(near)))
    further = [c for c in candidates if all(near[c, i] for i in chosen)]
    if not [i for i in range(len(near)) if i not in chosen and all(near[i, j] for j in chosen)]:
        yield chosen
    for place, c in enumerate(further):
        yield from cliques(near, (*chosen, c), further[place + 1 :])


@functools.cache
def sanitized(kind, points, rows, alpha, epsilon):
    """The least failure of an (alpha, ., epsilon)-sanitizer, proper or not.

    Answers serve a set of databases if for every query they are within alpha of all of them; intervals that meet in pairs have a point in
    common, so the useful answers are the maximal sets of databases whose queries differ by at most 2 alpha in pairs.
    """
    concepts = classes(kind, points)
    counts = (optimal.multisets(points, rows)[:, :, None] == np.arange(points)).sum(axis=1)
    answers = counts @ concepts.T
    apart = np.abs(answers[:, None] - answers[None]).max(axis=2)
    outputs = list(cliques(apart <= 2 * alpha * rows + 1e-9))
    good = np.array([[i in clique for clique in outputs] for i in range(len(counts))])
    neighbours = np.abs(counts[:, None] - counts[None]).sum(axis=2) == 2
    return least_failure(every(good), np.where(neighbours, math.exp(epsilon), np.inf))


def classes(kind, points):
    """Concepts as a matrix: points, all sets, or all sets of two points."""
    every = np.array(list(itertools.product([False, True], repeat=points)))
    return {"points": np.eye(points, dtype=bool), "sets": every, "pairs": every[every.sum(axis=1) == 2]}[kind]


CASES = [
    *itertools.product(["points", "sets"], [2], [1, 2, 3, 6], [0.1, 0.3], [0.3, 1.0, 2.0]),
    *itertools.product(["points", "sets"], [3], [1, 2, 3], [0.1, 0.3], [1.0]),
    ("points", 4, 2, 0.1, 1.0),
    ("pairs", 4, 2, 0.1, 1.0),
    ("pairs", 4, 2, 0.2, 1.0),
]


@pytest.mark.parametrize(("kind", "points", "rows", "alpha", "epsilon"), CASES)
def test_no_sanitizer_beats_its_bounds(kind, points, rows, alpha, epsilon):
    """Lemma 4.15 and Theorem 2.20 as proved, Theorem 4.16, and the packing of k-POINT: at the optimum's own beta they allow its m."""
    concepts = classes(kind, points)
    best = sanitized(kind, points, rows, alpha, epsilon) * ABOVE
    if best >= 1.0 or best < 1e-6:
        return
    size, vc = bounds.effective_size(concepts), bounds.vc_dimension(concepts)
    assert size == points
    assert bounds.sanitizer_packing(size, alpha, best, epsilon) <= rows
    assert bounds.sanitizer_vc(vc, alpha, best, epsilon) <= rows
    assert bounds.sanitizer_pure(size, vc, alpha, best, epsilon) <= rows
    if points in (2, 4) and kind != "sets":
        k = 2 if kind == "pairs" else 1
        for same in (k, points - k):  # the complements' answers are 1 minus these
            assert bounds.sanitizer_k_points(points.bit_length() - 1, same, alpha, best, epsilon) <= rows


def test_sets_are_as_hard_as_their_complements():
    for k in (1, 2, 5):
        for bound in (bounds.pure_points, bounds.sanitizer_k_points):
            assert bound(5, k, 0.01, 0.01, 1.0) == bound(5, 32 - k, 0.01, 0.01, 1.0) > 300


def test_with_two_points_and_a_row_the_bounds_are_sharp():
    """Randomised response: at a little less than its failure, one row is not enough."""
    for epsilon in (0.3, 1.0, 2.0):
        best = sanitized("sets", 2, 1, 0.1, epsilon)
        assert best == pytest.approx(1 / (1 + math.exp(epsilon)))
        assert bounds.sanitizer_packing(2, 0.1, best / ABOVE, epsilon) > 1
        assert bounds.sanitizer_vc(2, 1e-9, best / ABOVE, epsilon) > 1


def test_a_wrong_factor_exceeds_the_optimum():
    """Negative controls: w copies where they cost half an epsilon a row, and a lemma without its floor."""
    excess = {"packing": 0, "vc": 0, "printed": 0}
    for kind, points, rows, alpha, epsilon in CASES:
        best = sanitized(kind, points, rows, alpha, epsilon) * ABOVE
        if kind == "sets" and 1e-6 < best < 1:
            excess["packing"] += bounds.sanitizer_packing(points, alpha, best, epsilon / 2) > rows
            excess["vc"] += bounds.sanitizer_vc(points, alpha / 2, best / 2, epsilon) > rows
            excess["printed"] += bounds.sanitizer_packing(points, alpha, best, epsilon, calibration="printed") > rows
    assert all(excess.values()), excess


def test_printed_sanitizer_bounds_are_false_where_they_leave_something_out():
    """3 alpha m below one row; and beta = 1/2, where a coin sanitizes a row of two points exactly."""
    assert sanitized("points", 2, 1, 0.1, 1.0) < 0.4
    assert bounds.sanitizer_packing(2, 0.1, 0.4, 1.0, calibration="printed") == 2 > 1
    assert bounds.sanitizer_packing(2, 0.1, 0.4, 1.0) <= 1
    assert bounds.sanitizer_vc(2, 0.01, 0.5, 1.0, calibration="printed") == 2 > 1
    assert bounds.sanitizer_vc(2, 0.01, 0.5, 1.0) <= 1


def test_theorem_4_16_does_not_follow_from_theorem_2_20_as_printed_but_holds():
    assert bounds.sanitizer_vc(1000, 1 / 8, 1 / 8, 1 / 2, calibration="printed") == 0
    assert bounds.sanitizer_vc(1000, 1 / 8, 1 / 8, 1 / 2) >= 500
    # At small beta and m = v/2 the proved one excludes more alphas, for every epsilon that the printed one allows.
    for epsilon in (0.01, 0.3, 1.0):
        border = 1 / (2 + 2 * math.exp(epsilon))
        assert border > 1 / (4 + 16 * epsilon)
        assert bounds.sanitizer_vc(1000, border * 0.99, 1e-6, epsilon) > 500
        assert bounds.sanitizer_vc(1000, border * 1.01, 1e-6, epsilon) <= 500


@pytest.mark.parametrize(("bits", "left"), [(2, 1), (3, 2), (4, 3), (3, 5)])
def test_the_example_of_theorem_4_16_has_the_sizes_it_names(bits, left):
    concepts = bounds.example_class(bits, left)
    assert (bounds.effective_size(concepts), bounds.vc_dimension(concepts)) == (2**bits, left)
    # Shattered sets by definition, for the smallest.
    if bits == 2:
        shattered = [
            len(points)
            for size in range(5)
            for points in itertools.combinations(range(4), size)
            if len({tuple(row) for row in concepts[:, points].tolist()}) == 2**size
        ]
        assert max(shattered) == left


def test_delta_weakens_the_vc_bound_continuously():
    exact = bounds.sanitizer_vc(1000, 0.1, 0.1, 0.5)
    assert bounds.sanitizer_vc(1000, 0.1, 0.1, 0.5, 1e-9) == exact
    assert 1 < bounds.sanitizer_vc(1000, 0.1, 0.1, 0.5, 1e-3) < exact
    assert bounds.sanitizer_vc(1000, 0.1, 0.1, 0.5, 0.9) == 0


def test_k_points_directly_and_by_learning():
    """Theorems 5.9 and 5.10 as the paper derives them say less than packing does at the same alpha and beta."""
    for bits, k, epsilon in ((64, 8, 0.1), (256, 100, 1 / 8), (16, 3, 0.01)):
        by_learning = bounds.sanitizer_k_points_by_learning(bits, k, epsilon)
        direct = bounds.sanitizer_k_points(bits, k, 1 / 150, 1 / 150, epsilon)
        assert 1 <= by_learning < direct
        assert direct > k * bits * math.log(2) / (
            40 * epsilon / 150
        )  # of the order that the theorems state, and with alpha
        labels = bounds.sanitizer_k_points_by_learning(bits, k, epsilon, alpha=1 / 50)
        assert labels <= bounds.sanitizer_k_points(bits, k, 1 / 50, 1 / 50, epsilon)
    # Once d is large enough, Theorem 5.10's alpha appears.
    small, large = (bounds.sanitizer_k_points_by_learning(4096, 2, e, alpha=0.02) for e in (1e-3, 1e-12))
    assert small < bounds.agnostic(2, 0.02, 1 / 50) < large / 1e6


def test_a_learner_made_of_a_sanitizer_pays_for_noisy_sizes():
    """Lemma 5.4 has 1/(m eps) more blocks; Theorem 5.9 asks for the least m that makes enough of them."""
    alpha, beta, rows, epsilon = 0.1, 0.2, 10, 0.02
    blocks = math.ceil(18 / beta * math.log(2 / (alpha * beta)) * (1 + 5))  # 1/(m eps) = 5
    assert bounds.sanitizer_to_learner(rows, alpha, beta, epsilon) == 600 * blocks * rows
    rows = bounds.sanitizer_k_points_by_learning(64, 2**33, epsilon, calibration="printed")
    learned = bounds.pure_points(64, 2**33, 9 / 50, 1 / 15, 6 * epsilon, calibration="printed")
    fewer, enough = (bounds.sanitizer_to_learner(m, 1 / 150, 1 / 150, epsilon) for m in (rows - 1, rows))
    assert rows > 1 and fewer < learned <= enough


def test_k_points_at_alpha_near_one_half_and_for_many_concepts():
    """m from c to 1.0000002 c, c copies, is excluded for all c < L/epsilon, one by one; and the bound grows with k."""
    needed = math.ceil((math.log(2**64 - 2) + math.log(9)) / 1e-6) - 1
    assert bounds.sanitizer_k_points(64, 1, 0.4999999, 0.1, 1e-6) == math.ceil(needed / (2 * 0.4999999))
    few, many = (bounds.sanitizer_k_points(64, k, 0.1, 0.1, 1.0) for k in (2**12, 2**18))
    assert many > 50 * few
    with pytest.raises(ValueError, match=f"concepts must be from 1 to {2**24}"):
        bounds.pure_points(64, 2**40, 0.1, 0.1, 1.0)


# ------------------------------------------------------------------------------------------------------------------ packing


def learned(targets, rows, mass, epsilon):
    """The least failure on the proof's family: S(c, N) has N rows that show target c, N ~ Bin(rows, mass)."""
    places = [(0, 0), *itertools.product(range(targets), range(1, rows + 1))]
    distance = np.array(
        [[abs(n - m) if c == b or 0 in (n, m) else max(n, m) for b, m in places] for c, n in places], float
    )
    weights = stats.binom.pmf(np.arange(rows + 1), rows, mass)
    failed = np.zeros((targets, len(places), targets))
    for target, (place, (c, n)) in itertools.product(range(targets), enumerate(places)):
        if c == target or n == 0:  # without a row that shows the target all databases are the same
            failed[target, place] = weights[n] * (np.arange(targets) != target)
    return least_failure(failed, np.exp(epsilon * distance))


# name: (bound at alpha, beta, epsilon; targets; mass per alpha)
PACKINGS = {
    "points": (lambda *at: bounds.pure_points(2, 1, *at), 3, 1),
    "two concepts at once": (lambda *at: bounds.pure_packing_padded(2, *at), 4, 1),
    "thresholds": (lambda *at: bounds.pure_proper_thresholds(2, *at), 2, 2),
}


@pytest.mark.parametrize("name", PACKINGS)
def test_no_learner_beats_its_packing_bound(name):
    """Lemma 5.7 and Remark 53 with the mean over N: at the family's own optimum they allow its m; at half of epsilon they do not."""
    bound, targets, scale = PACKINGS[name]
    controls = 0
    for rows, alpha, epsilon in itertools.product([1, 3, 6], [0.2, 0.4], [0.5, 2.0]):
        best = learned(targets, rows, scale * alpha, epsilon) * ABOVE
        assert bound(alpha, best, epsilon) <= rows
        controls += bound(alpha, best, epsilon / 2) > rows
    assert controls >= 3


def test_packing_with_everything_changed_is_theorem_52():
    """alpha -> 1: all rows are at x."""
    for k, epsilon in ((1, 0.3), (5, 1.0), (100, 2.0)):
        whole = bounds.pure_packing(k, epsilon)
        assert math.ceil(whole - 1e-9) == bounds.pure_packing_padded(k, 1 - 1e-12, 0.5, epsilon) or k == 1
        assert bounds.pure_packing_padded(k, 0.01, 0.5, epsilon) >= 0.9 * whole / 0.01 / max(1.0, math.expm1(epsilon))


def test_spread_sets_by_brute_force():
    """The greedy choice itself finds at least as many sets as stated; a count of the disjoint ones would be too large."""
    for points, size in ((6, 2), (7, 3), (8, 4)):
        for most, log_sets in enumerate(bounds.log_spread_sets(points, size)):
            found: list[set[int]] = []
            for chosen in itertools.combinations(range(points), size):
                if all(len(set(chosen) & other) <= most for other in found):
                    found.append(set(chosen))
            assert len(found) >= math.exp(log_sets) * (1 - 1e-9)
    assert bounds.log_spread_sets(2**4096, 1)[0] == pytest.approx(4096 * math.log(2))


def test_lemma_5_7_with_its_mean_says_more_than_as_printed():
    for bits, k, alpha, epsilon in itertools.product([16, 64, 1024], [2, 8, 30], [0.01, 0.15], [0.1, 1.0]):
        printed = bounds.pure_points(bits, k, alpha, 0.5, epsilon, calibration="printed")
        assert printed <= bounds.pure_points(bits, k, alpha, 0.5, epsilon)
    # Where it would not exclude 5 ln(4)/(3 alpha) examples, the printed one says nothing.
    assert bounds.pure_points(16, 2, 0.1, 0.5, 9.0, calibration="printed") == 0


def test_lemma_5_7_says_nothing_of_fewer_examples_than_its_proof_excludes():
    """16 bits, 2 concepts: it excludes 147.8 examples at alpha = 0.01; its proof asks for 5 ln(4)/(3 alpha) = 231."""
    needed = (math.log((2**16 - 1) / (8 * math.e**2) - 1) - math.log(3)) / (0.08 * 0.5)
    assert math.log(4) / 0.01 < needed < 5 * math.log(4) / 0.03
    assert bounds.pure_points(16, 2, 0.01, 0.5, 0.5, calibration="printed") == 0
    assert bounds.pure_points(16, 2, 0.01, 0.5, 0.25, calibration="printed") == math.ceil(2 * needed)


def test_a_number_of_rows_that_is_hardly_random_is_taken_at_its_largest():
    """Beyond a mean of 10^9 it is the greatest in the tail's reach: the bound may not be too large."""
    n, mass, epsilon = 10**10, 0.2, 1e-4
    assert packing._succeeds(n, epsilon * n * mass, mass, epsilon) > 0.5


def test_what_suffices_is_more_than_what_is_needed():
    """The upper bounds of learners and sanitizers, compared with the lower bounds under the same definition."""
    for bits, epsilon in itertools.product([8, 64, 1024], [0.05, 1.0]):
        log_domain = bits * math.log(2)
        assert bounds.pure_points(bits, 1, 0.1, 0.1, epsilon) <= bounds.exponential_points(
            log_domain, 0.1, 0.1, epsilon
        )
        assert bounds.pure_proper_thresholds(bits, 0.1, 0.1, epsilon) <= bounds.exponential_thresholds(
            bits, 0.1, 0.1, epsilon
        )
        assert bounds.sanitizer_pure(2**bits, 1, 0.1, 0.1, epsilon) <= bounds.blr(log_domain, 1, 0.1, 0.1, epsilon)
        assert bounds.approximate_proper_thresholds(bits, 0.1, epsilon, 1e-6) <= bounds.learn_thresholds(
            bits, 2, 0.1, 0.1, epsilon, 1e-6
        )
        for k in (1, 30, 10**4):
            needed = bounds.pure_packing_padded(k, 0.1, 0.1, epsilon)
            assert needed <= bounds.any_class(log_domain, log_domain, 1, k, 0.1, 0.1, epsilon)


# ------------------------------------------------------------------------------------------------------------------- towers


def test_interior_points_are_no_easier_than_the_towers_say():
    """Against the optimum by linear programming, whose beta allows its n."""
    for domain, n, epsilon, delta in [(2, 1, 0.5, 0.0), (2, 3, 0.5, 0.01), (4, 2, 0.2, 0.01), (9, 2, 0.1, 0.0)]:
        best = optimal.interior_point(domain, n, epsilon=epsilon, delta=delta, relation="REPLACE_ONE").failure * ABOVE
        assert bounds.approximate_interior_point(domain, best, epsilon, delta) <= n
        assert bounds.pure_interior_point(domain, best, epsilon) <= n or delta
        if domain == 2:  # sharp: told apart as well as c steps allow
            assert bounds.approximate_interior_point(domain, best / ABOVE**2, epsilon, delta) > n
    for domain, n, epsilon in [(2, 2, 0.5), (4, 2, 0.3), (4, 3, 1.0)]:
        free = optimal.interior_point(domain, n, epsilon=epsilon, delta=0.0, relation="ADD_OR_REMOVE_ONE").failure
        assert 0 < bounds.pure_interior_point(domain, free * ABOVE, epsilon, "ADD_OR_REMOVE_ONE") <= n
    # The second level at last: 9 = 3^2 values for n = 2, with one copy.
    assert best > 1 / (1 + math.exp(0.1)) - math.exp(0.1) / 3 > 0.1
    needed = [bounds.approximate_interior_point(domain, 0.3, 0.4, 0.0) for domain in (2, 9, 10**6)]
    assert needed[0] == needed[1] < needed[2]


def strings(base, length):
    """All strings of digits, and the number that each is."""
    return np.array(list(itertools.product(range(base), repeat=length)))


def test_one_step_of_the_tower_executed():
    """The best solver for 2 points on 9 values, made into one for 1 point on 2 values: as private, and as bad as the step says."""
    epsilon, delta, base = 0.5, 0.05, 3
    best = optimal.interior_point(base**2, 2, epsilon=epsilon, delta=delta, relation="REPLACE_ONE")
    place = {tuple(row): i for i, row in enumerate(best.datasets.tolist())}
    digits = strings(base, 2)
    laws = np.zeros((2, 3))  # of the number of shared digits
    for x, (y, string), (_, rest) in itertools.product((1, 2), enumerate(digits), enumerate(digits)):
        other = np.concatenate([string[:x], rest[x:]])
        counts = np.bincount([y, int(other @ [base, 1])], minlength=base**2)
        shared = np.where(digits[:, 0] != string[0], 0, np.where(digits[:, 1] != string[1], 1, 2))
        law = best.mechanism[place[tuple(counts.tolist())]]
        laws[x - 1] += np.bincount(shared, weights=law, minlength=3) / len(digits) ** 2
    assert laws.sum(axis=1) == pytest.approx([1, 1])
    for here, there in ((0, 1), (1, 0)):
        assert np.maximum(laws[here] - math.exp(epsilon) * laws[there], 0).sum() <= delta + 1e-9
    failure = max(1 - laws[0, 1], 1 - laws[1, 2])
    assert failure >= (1 - delta) / (1 + math.exp(epsilon)) - 1e-9
    assert failure <= best.failure + math.exp(epsilon) / base + delta + 1e-9
    assert failure > best.failure  # negative control: the step is not free


@pytest.mark.parametrize(
    ("spare", "steps", "factor", "delta"), [(0.3, 1, 1.0, 0.0), (0.2, 2, 2.7, 0.01), (0.5, 1, 1.25, 0.25)]
)
def test_the_base_of_a_tower_is_the_least_that_leaves_a_failure(spare, steps, factor, delta):
    """Each step costs factor / base + delta, all together less than what the copies have to spare."""
    base = towers._base(spare, steps, factor, delta)
    assert steps * (factor / base + delta) < spare <= steps * (factor / (base - 1) + delta)


def test_a_step_of_the_tower_costs_a_guess_of_a_digit():
    """Its probability is e^epsilon/b + delta: 400 values are too few for a second level, and enough without either."""
    for epsilon, delta, domain, beta in ((1.0, 0.0, 400, 0.1), (0.3, 0.01, 10**4, 0.2)):
        n = bounds.approximate_interior_point(domain, beta, epsilon, delta)
        free = [towers._excluded(domain, beta, epsilon, delta, *step) for step in ((1.0, 0.0), (1.0, delta))]
        assert n < max(copies + levels for copies, levels in free[0])
    assert n == 6 and max(copies + levels for copies, levels in free[0]) == 7


def test_a_larger_delta_leaves_proper_thresholds_fewer_examples():
    """Delta of a learner is e^epsilon + 1 times as large for the interior point problem."""
    at = (64, 0.05, 0.05)
    needed = [bounds.approximate_proper_thresholds(*at, delta, learner="empirical") for delta in (0.0, 1e-3, 1e-2)]
    assert needed == [48, 41, 21]


def doubled(base, copies):
    """The hard family of two levels: `copies` points on {1, 2}, each two strings; as counts of the base^2 values."""
    found = {}
    for xs in itertools.combinations_with_replacement((1, 2), copies):
        for string in strings(base, 2):
            points = [np.concatenate([string[:x], np.full(2 - x, end)]) for x in xs for end in (0, base - 1)]
            counts = np.bincount([int(p @ [base, 1]) for p in points], minlength=base**2)
            found[tuple(counts)] = counts
    return np.array(list(found.values()))


@pytest.mark.parametrize(("base", "copies", "epsilon"), [(3, 1, 0.1), (5, 1, 0.1), (4, 2, 0.1)])
def test_amplified_privacy_needs_twice_the_points_at_the_next_level(base, copies, epsilon):
    """The least failure on the hard family under amplified neighbours is what the step says; under plain ones it is less."""
    counts = doubled(base, copies)
    below = counts.cumsum(axis=1)
    amplified = np.abs(below[:, None] - below[None]).max(axis=2) <= 1
    plain = np.abs(counts[:, None] - counts[None]).sum(axis=2) <= 2
    first = np.argmax(counts > 0, axis=1)
    last = base**2 - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
    good = (np.arange(base**2) >= first[:, None]) & (np.arange(base**2) <= last[:, None])
    told = 1 / (1 + math.exp(copies * epsilon))
    best, easy = (least_failure(every(good), np.where(near, math.exp(epsilon), np.inf)) for near in (amplified, plain))
    assert best >= told - 1 / base - 1e-9
    assert easy < best - 0.05
    beta = (told - 1 / base) * (1 - 1e-9)
    if beta > 0:
        assert bounds.amplified_interior_point(base**2, beta, epsilon, 0.0) > 2 * copies
        assert bounds.amplified_interior_point(base**2, best * ABOVE, epsilon, 0.0) <= 10 * copies


def test_copies_are_found_by_bisection():
    """t_c falls in c, and a tiny epsilon takes no time."""
    for epsilon, delta in itertools.product([1e-3, 0.5, 3.0], [0.0, 1e-6, 0.2, 0.9]):
        told = [towers._two_values(copies, epsilon, delta) for copies in range(1, 60)]
        assert (np.diff(told) <= 1e-15).all()
    assert bounds.approximate_proper_thresholds(64, 0.1, 2.0**-40, 0.0) == 4095  # the largest number it looks at
    copies = bounds.quasi_concave_error(1, 0.1, 2.0**-40, 0.0)
    assert copies == pytest.approx(2 * math.log(5) * 2.0**40, rel=1e-9)


def test_theorem_1_3_doubles_with_every_level_and_stays_below_what_is_achieved():
    epsilon, beta = 0.1, 0.05
    errors = [bounds.quasi_concave_error(2**bits, beta, epsilon, 0.0) for bits in (1, 64, 4096)]
    assert errors == sorted(errors) and errors[-1] > errors[0] > 0
    points = [bounds.amplified_interior_point(2**bits, beta, epsilon, 0.0) for bits in (1, 9, 4096)]
    assert points[2] > 1.8 * points[0]
    for bits, epsilon in itertools.product([1, 16, 64, 4096], [0.1, 1.0]):
        levels = bounds.levels_run(2**bits, 2)
        achieved = bounds.rec_concave_error(2**bits, levels, beta, epsilon, 1e-6)
        assert bounds.quasi_concave_error(2**bits, beta, epsilon, 1e-6) < achieved
    assert bounds.quasi_concave_error(10, 0.6, 1.0, 0.0) == 0  # a coin does


# ----------------------------------------------------------------------------------------------------- what suffices


def test_rows_of_a_point_database():
    """Proposition 30's database by rounding, for answers at the edge of what they may be; O(1/alpha) rows fail without the room."""
    rng = np.random.default_rng(0)
    error, answers = 0.1, 0.03
    rows = bounds.point_rows(error, answers)
    assert rows == 25
    for _ in range(200):
        truth = rng.dirichlet(np.full(40, 0.2))
        near = rng.dirichlet(np.full(40, 0.2))
        near = truth + (near - truth) * min(1.0, 2 * answers / np.abs(near - truth).max())  # a law within 2 answers
        counts = np.floor(near * rows)
        counts[np.argsort(counts - near * rows)[: int(rows - counts.sum())]] += 1
        assert counts.sum() == rows and np.abs(counts / rows - truth).max() <= error
    # 1000 points with a row each, answers too high by alpha: within alpha of them there is no row to spare.
    alpha, points = 0.1, 1000
    least_counts = math.ceil(math.ceil(1 / alpha) * (1 / points + alpha - alpha) - 1e-9) * points
    assert least_counts > math.ceil(1 / alpha)


def test_rows_of_any_database():
    for vc, alpha in itertools.product([1, 3, 20], [0.03, 0.2, 0.6]):
        n = bounds.approximating_rows(vc, alpha)
        remainder = [4 * (2 * math.e * m / vc) ** vc * math.exp(-(alpha**2) * m / 8) for m in (n - 1, n)]
        assert remainder[1] < 1 <= remainder[0] * (1 + 1e-9)
    assert bounds.approximating_rows(1, 0.1) < bounds.approximating_rows(1, 0.1, calibration="printed")


def test_blr_pays_for_all_databases():
    log_domain, alpha, beta, epsilon = 5.0, 0.2, 0.05, 0.5
    m = bounds.blr(log_domain, 1, alpha, beta, epsilon)
    rows = bounds.approximating_rows(1, alpha / 2)
    assert rows * log_domain - epsilon * (alpha / 2) * m / 2 == pytest.approx(math.log(beta))


@pytest.mark.parametrize("beta", [0.01, 0.1, 0.3])
def test_so_many_blocks_rarely_fail(beta):
    """Lemma 5.1: more than 2 beta q of q blocks fail with probability at most beta, from q on."""
    q = bounds.sanitizer_blocks(beta)
    assert q < bounds.sanitizer_blocks(beta, calibration="printed")
    assert all(stats.binom.sf(math.floor(2 * beta * n + 1e-9), n, beta) <= beta for n in range(q, q + 60))
    assert beta == 0.3 or any(stats.binom.sf(math.floor(2 * beta * n + 1e-9), n, beta) > beta for n in range(1, q))


def test_differences_do_not_shatter_more_than_they_may():
    for concepts in (np.eye(7, dtype=bool), np.tri(8, 7, -1, dtype=bool), bounds.example_class(3, 2)):
        xor = (concepts[:, None] ^ concepts[None]).reshape(-1, concepts.shape[1])
        assert bounds.vc_dimension(xor) <= bounds.vc_of_differences(bounds.vc_dimension(concepts))
    assert bounds.vc_dimension(xor) > bounds.vc_dimension(concepts)


def test_theorem_31_takes_the_cheaper_way():
    at = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0}
    small, large = 2839.0, 1e12
    for k in (1, 10**6):
        both = [bounds.direct_sum(large, k, **at), bounds.generic_pure(small, 1, k, **at)]
        assert bounds.any_class(small, large, 1, k, **at) == min(both)
    assert bounds.direct_sum(small, 1, **at) < bounds.generic_pure(small, 1, 1, **at)
    # With k: as k, or its root.
    pure = [bounds.generic_pure(small, 1, k, **at) for k in (10**9, 10**11)]
    assert 90 < pure[1] / pure[0] < 120
    approximate = [bounds.generic_pure(small, 1, k, **at, delta=1e-6) for k in (10**19, 10**21)]
    assert 9 < approximate[1] / approximate[0] < 12
    with_weights = bounds.any_class(small, 20.0, 1, 10, **at, delta=1e-6, constant=1e-9)
    assert with_weights <= bounds.any_class(small, 20.0, 1, 10, **at, delta=1e-6)
    for log_domain in (1e300, 1e308):  # no float64 holds the rows of a database; its rows, and not it, were refused
        assert bounds.any_class(log_domain, small, 1, 10, **at) == bounds.direct_sum(small, 10, **at)
        sanitized = bounds.blr(log_domain, 1, alpha=0.02, beta=0.02, epsilon=0.5)
        assert sanitized == bounds.generic_pure(log_domain, 1, 10, **at) == math.inf


def test_each_epsilon_adds_up():
    for k, delta in ((3, 0.0), (10**4, 1e-6)):
        each = bounds.each_epsilon(k, 0.8, delta)
        total = k * each if delta == 0 else math.sqrt(2 * k * math.log(1 / delta)) * each + 2 * k * each**2
        assert total == pytest.approx(0.8)


def test_one_concept_gets_all_of_epsilon_whatever_delta_is():
    assert bounds.each_epsilon(1, 0.8, 1e-6) == 0.8
    assert bounds.each_epsilon(4, 0.8, 1e-6) == 0.2


def test_k_labels_share_beta_in_theorem_12_and_in_lemma_36():
    """Theorem 12 counts k hypotheses; Lemma 36 counts 2^|B|, |B| = VC ln(1/a)/a^2, unless it is told how many."""
    one, ten = (bounds.empirical_to_pac(2, 0.1, 0.1, concepts=k, agnostic=True, calibration="printed") for k in (1, 10))
    assert ten - one == pytest.approx(6400 * math.log(10))
    found = bounds.generic_learner(1.0, 3, 7, 0.1, 0.2, 1e-3)
    assert found == pytest.approx(1e5 * (3 * math.log(10) / 0.01 * math.log(2) + math.log(5 * 7 / 0.2)))


def test_corollary_38_pays_for_two_thresholds_a_difference():
    """The sanitizer's alpha is a tenth; where labels cost more, thresholds do ceil(5/alpha) + 1 things on its rows."""
    at = (5, 3, 0.1, 0.1, 0.5, 1e-6)
    sanitizer = bounds.threshold_sanitizer(5, 0.01, 0.02, 0.5, 1e-6)
    assert bounds.generic_thresholds(*at, 1e6) == sanitizer
    recursion = 2**5 * 5 * math.log(5 / (0.5 * 1e-6)) * math.log(50) * math.log(100) ** 2.5
    assert sanitizer == pytest.approx(recursion / (0.01 * 0.5))
    assert bounds.generic_thresholds(*at, 1e-6) == pytest.approx(1e8 * (math.log(51) + math.log(5 * 3 / 0.1)))


def test_generic_learners_spend_what_their_sanitizer_leaves():
    """Half of epsilon and delta for k labels: where they cost most, (10/(a e'))(1 + ln R + ln(5k/b))."""
    k, log_domain, log_concepts = 10**14, 44.0, 50.0
    each = bounds.each_epsilon(k, 0.5, 5e-7)

    def labels(rows):
        return 100 / each * (1 + math.log(rows) + math.log(5 * k / 0.1))

    rows = bounds.approximating_rows(bounds.vc_of_differences(1), 0.01)
    found = bounds.generic_weights(log_domain, log_concepts, 1, k, 0.1, 0.1, 1.0, 1e-6)
    assert found == pytest.approx(labels(rows))
    # The same on the database whose constant the papers leave out: it costs nothing if that is tiny, and BLR too much.
    rows = bounds.approximating_rows(bounds.vc_of_differences(1), 0.02)
    found = bounds.any_class(1e12, 1e12, 1, k, 0.1, 0.1, 1.0, 1e-6, constant=1e-30)
    assert found == pytest.approx(labels(rows))
    # And where that database costs most: for the |C|^2 symmetric differences, within alpha/5 but for beta/5.
    weights = bounds.multiplicative_weights(44.0, 2e6, 0.02, 0.02, 0.5, 5e-7, constant=1e-2)
    assert bounds.any_class(44.0, 1e6, 1, 10**4, 0.1, 0.1, 1.0, 1e-6, constant=1e-2) == weights


def test_corollary_37_pays_for_every_label():
    few, many = (bounds.generic_points(k, 0.1, 0.1, 0.5, 1e-6, 1e-3) for k in (1, 10**6))
    assert few < many < 4 * few
    assert bounds.generic_points(100, 0.1, 0.1, 0.5, 1e-6, 1e-3) >= bounds.fingerprinting_agnostic_pac(
        100, 1e-3, 1.0, alpha=0.1
    )


def test_pac_bounds_are_the_empirical_ones_through_theorem_28():
    for calibration, factor in (("proved", math.expm1(0.5) / 0.5), ("printed", 9.0)):
        empirical = bounds.fingerprinting_thresholds(10**6, 1e-3, alpha=0.1, domain=20, calibration=calibration)
        pac = bounds.fingerprinting_thresholds_pac(10**6, 1e-3, 0.5, alpha=0.1, domain=20, calibration=calibration)
        assert empirical == pytest.approx(19 / 0.3 if calibration == "printed" else 10 / 0.1)
        assert pac == pytest.approx(empirical / factor)
        agnostic = bounds.fingerprinting_agnostic_pac(10**6, 1e-3, 0.5, alpha=0.1, calibration=calibration)
        empirical = bounds.fingerprinting_agnostic(10**6, 1e-3, alpha=0.1, calibration=calibration)
        assert agnostic == pytest.approx(empirical / factor)


def test_uniform_parities_need_a_code_for_all_points():
    """Proposition 51 begins where 2^d users have a Tardos code of k columns."""
    users, xi = 2**4, 1e-3
    for calibration, columns, factor in (("proved", 30, math.e - 1), ("printed", 100, 9)):
        length = columns * users**2 * math.ceil(math.log(users / xi))
        needed = functools.partial(bounds.fingerprinting_parities_pac, calibration=calibration)
        least, most = (needed(k, xi, 4, 1.0) for k in (length - 1, length))
        assert (least, most) == (0.0, pytest.approx(16 / factor))
    for bits in (49, 50, 52):  # the logarithm of 2^50 - 1 is 50 in floats
        users = 2**bits - 1
        length = 31 * users**2 * math.ceil(math.log(users / xi))
        assert bounds.fingerprinting_parities_pac(length, xi, bits - 1, 1.0) == pytest.approx(
            2.0 ** (bits - 1) / (math.e - 1)
        )
        exact = 30 * users**2 * math.ceil(math.log(users / xi))
        assert bounds.fingerprinting_parities_pac(exact, xi, bits, 1.0) == 0.0


# ----------------------------------------------------------------------------------------------------------------- arguments

BASE = {"alpha": 0.1, "beta": 0.1, "epsilon": 0.1, "delta": 1e-6}


def given(*names, **others):
    return {**{name: BASE[name] for name in names}, **others}


GOOD = {
    bounds.any_class: given("alpha", "beta", "epsilon", log_domain=9.0, log_concepts=9.0, vc=1, concepts=2),
    bounds.amplified_interior_point: given("beta", "epsilon", "delta", domain=9),
    bounds.approximate_interior_point: given("beta", "epsilon", "delta", domain=9),
    bounds.approximate_proper_thresholds: given("beta", "epsilon", "delta", bits=9, calibration="printed"),
    bounds.approximating_rows: given("alpha", vc=1, calibration="printed"),
    bounds.blr: given("alpha", "beta", "epsilon", log_domain=9.0, vc=1),
    bounds.direct_sum: given("alpha", "beta", "epsilon", log_concepts=9.0, concepts=2),
    bounds.each_epsilon: given("epsilon", concepts=2),
    bounds.fingerprinting_agnostic_pac: given("epsilon", concepts=10**6, xi=0.1, calibration="proved"),
    bounds.fingerprinting_parities_pac: given("epsilon", concepts=10**6, xi=0.1, bits=3, calibration="proved"),
    bounds.fingerprinting_thresholds_pac: given("epsilon", concepts=10**6, xi=0.1, calibration="proved"),
    bounds.finite_class: given("alpha", "beta", "epsilon", log_concepts=9.0),
    bounds.generic_points: given("alpha", "beta", "epsilon", "delta", concepts=2, label_epsilon=0.1),
    bounds.generic_pure: given("alpha", "beta", "epsilon", log_domain=9.0, vc=1, concepts=2),
    bounds.generic_thresholds: given("alpha", "beta", "epsilon", "delta", log_star=5, concepts=2, label_epsilon=0.1),
    bounds.multiplicative_weights: given("alpha", "beta", "epsilon", "delta", log_domain=9.0, log_concepts=9.0),
    bounds.pure_interior_point: given("beta", "epsilon", domain=9, relation="REPLACE_ONE"),
    bounds.pure_packing_padded: given("alpha", "beta", "epsilon", concepts=2),
    bounds.pure_points: given("alpha", "beta", "epsilon", bits=64, concepts=2, calibration="printed"),
    bounds.pure_proper_thresholds: given("alpha", "beta", "epsilon", bits=9),
    bounds.quasi_concave_error: given("beta", "epsilon", "delta", size=9),
    bounds.sanitizer_blocks: given("beta", calibration="printed"),
    bounds.sanitizer_k_points: given("alpha", "beta", "epsilon", bits=9, concepts=2),
    bounds.sanitizer_k_points_by_learning: given("epsilon", bits=64, concepts=2, alpha=0.02, calibration="printed"),
    bounds.sanitizer_packing: given("alpha", "beta", "epsilon", size=9, calibration="printed"),
    bounds.sanitizer_pure: given("alpha", "beta", "epsilon", size=9, vc=1),
    bounds.sanitizer_to_learner: given("alpha", "beta", "epsilon", rows=9),
    bounds.sanitizer_vc: given("alpha", "beta", "epsilon", vc=9, calibration="printed"),
    bounds.threshold_sanitizer: given("alpha", "beta", "epsilon", "delta", log_star=5),
    bounds.vc_of_differences: {"vc": 1},
}
WRONG = {
    **dict.fromkeys(("alpha", "beta", "xi"), (0.0, 1.0, math.nan, "0.1", True)),
    **dict.fromkeys(("epsilon", "label_epsilon", "log_domain", "log_concepts"), (0.0, -1.0, math.inf, math.nan, None)),
    **dict.fromkeys(("bits", "vc", "concepts", "rows", "log_star", "size", "domain"), (0, -3, 1.5, True)),
    "delta": (-0.1, 1.0, math.nan),
    "calibration": ("other",),
    "relation": ("REPLACE_LABEL", "other", None),
}


@pytest.mark.parametrize("bound", GOOD, ids=lambda bound: bound.__name__)
def test_bad_arguments_are_named(bound):
    good = GOOD[bound]
    assert type(bound(**good)) in (float, int) and bound(**good) > 0
    for name in good:
        for value in WRONG[name]:
            with pytest.raises((TypeError, ValueError), match=name):
                bound(**{**good, name: value})


def test_further_refusals():
    for call, words in (
        (lambda: bounds.pure_points(9, 3, 0.1, 0.1, 1.0, calibration="printed"), "even"),
        (lambda: bounds.pure_points(3, 8, 0.1, 0.1, 1.0), "concepts"),
        (lambda: bounds.pure_points(3, 7, 0.1, 0.1, 1.0, calibration="printed"), "even"),
        (lambda: bounds.pure_points(3, 8, 0.1, 0.1, 1.0, calibration="printed"), "concepts"),
        (lambda: bounds.sanitizer_vc(9, 0.1, 0.1, 2.0, calibration="printed"), "epsilon"),
        (lambda: bounds.point_rows(0.1, 0.05), "answers"),
        (lambda: bounds.threshold_sanitizer(1, 0.1, 0.1, 9.0, 0.9), "epsilon"),
        (lambda: bounds.effective_size(np.ones((2, 2))), "booleans"),
        (lambda: bounds.vc_dimension(np.ones(3, bool)), "shape"),
        (lambda: bounds.example_class(3, 8), "left"),
        (lambda: bounds.approximate_proper_thresholds(9, 0.1, 1.0, 0.0, learner="other"), "learner"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            call()


# ------------------------------------------------------------------------------------------------------------------- the map

MAP = (pathlib.Path(bounds.__file__).parent / "README.md").read_text()
ROWS = [
    re.findall(r"(?<=\|)[^|]*(?=\|)", line) for line in MAP[MAP.index("## The map") :].splitlines() if line[:2] == "| "
]
ITEMS = [row for row in ROWS if row[0].strip() not in ("item", "")]


def exists(name):
    """Whether a dotted name below dpjax is a package, a module, or a function or class written in a module."""
    path, parts = pathlib.Path(dpjax.__file__).parent, name.split(".")
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if parts and (path / f"{parts[0]}.py").is_file():
        path /= f"{parts.pop(0)}.py"
    return not parts or (
        path.is_file() and bool(re.search(rf"^(def|class) {parts[0]}\b", path.read_text(), re.MULTILINE))
    )


def test_the_map_names_what_there_is():
    tests = pathlib.Path(__file__).parent
    assert len(ITEMS) > 90 and all(len(row) == 4 for row in ITEMS)
    for item, names, checks, _ in ITEMS:
        assert re.findall(r"`([^`]+)`", names) or "not in dpjax" in names, item
        for name in re.findall(r"`([^`]+)`", names):
            assert exists(name), (item, name)
        for check in re.findall(r"`([^`]+)`", checks):
            file, _, function = check.partition("::")
            assert f"def {function}" in (tests / file).read_text(), (item, check)
    for name in re.findall(r"`(packing|towers|multi|sanitizers)\.(\w+)`", MAP[: MAP.index("## The map")]):
        assert exists(f"bounds.{name[0]}.{name[1]}"), name
    assert not exists("bounds.packing.nothing") and not exists("nowhere")  # negative control


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        (
            "### BNS",
            {
                "Theorem": [
                    "2.3",
                    "2.12",
                    "2.13",
                    "2.14",
                    "2.19",
                    "2.20",
                    "2.21",
                    "2.24",
                    "3.15",
                    "3.18",
                    "3.21",
                    "3.22",
                ]
            },
        ),
        ("### BNS", {"Theorem": ["4.6", "4.7", "4.13", "4.16", "5.5", "5.9", "5.10", "6.2"], "Figure": range(1, 14)}),
        ("### BNS", {"Lemma": ["3.2", "3.12", "3.14", "4.4", "4.5", "4.8", "4.15", "5.1", "5.3", "5.4", "5.7"]}),
        (
            "### CLNSS",
            {
                "Theorem": ["1.1", "1.2", "1.3", "1.5", "2.1", "2.3"],
                "Lemma": ["1.6", "2.4", "2.5", "2.6", "2.7", "2.8"],
            },
        ),
        ("### MULTI", {"Theorem": [8, 9, 12, 17, 20, 24, 25, 27, 28, 31, 39, 40, 43, 47, 52, 55]}),
        (
            "### MULTI",
            {
                "Corollary": [13, 33, 34, 37, 38, 46, 50],
                "Proposition": [21, 22, 26, 30, 49, 51],
                "Lemma": [29, 35, 36, 45, 54],
            },
        ),
        (
            "### MULTI",
            {"Definition": [*range(2, 8), 10, 11, *range(14, 17), 18, 19, 23, 41, 42], "Remark": [44, 48, 53]},
        ),
    ],
)
def test_the_map_is_complete(heading, kinds):
    """Every numbered item has a row; a range 'A to B' covers the items between."""
    part = MAP[MAP.index(heading) :].split("\n### ")[0]
    items = " ; ".join(row.split("|")[1] for row in part.splitlines() if row[:2] == "| ")
    for kind, numbers in kinds.items():
        plural = {"Corollary": "Corollaries", "Lemma": "Lemmas"}.get(kind, kind + "s")
        mentioned = " ".join(re.findall(rf"(?:{kind}|{plural}) ((?:[\d.]+(?:, | to (?:Theorem )?)?)+)", items))
        for number in map(str, numbers):
            ranges = [pair for pair in re.findall(r"([\d.]+) to ([\d.]+)", mentioned) if within(number, *pair)]
            crossing = "Lemma 4.8 to Theorem 4.13" in items and within(number, "4.8", "4.13")
            assert number in re.findall(r"[\d.]*\d", mentioned) or ranges or crossing, (heading, kind, number)


def within(number, low, high):
    """low <= number <= high for numbers with a dot in them."""
    return version(low) <= version(number) <= version(high)


def version(number):
    return tuple(int(part) for part in number.strip(".").split("."))


@pytest.mark.parametrize("name", ["multi_points", "multi_thresholds", "multi_parities"])
def test_drawn_bounds_are_those_of_the_settings_beside_them(name):
    """The grey lines of the pictures are the bounds that the experiments compute from the stored settings."""
    measured = importlib.import_module(f"experiments.{name}.measure")
    where = pathlib.Path(__file__).parent.parent / "figures" / name
    settings = json.loads((where / f"{name}.json").read_text())["settings"]
    drawn = [row for row in records.read(where / f"{name}.csv") if row.panel == "bound"]
    computed = measured.lower_bounds(settings)
    assert [(row.series, row.x) for row in drawn] == [(row.series, row.x) for row in computed]
    assert [row.value for row in drawn] == pytest.approx([row.value for row in computed])


def test_a_database_of_multiplicative_weights_gets_half_of_delta():
    """Where it is what costs, the examples are as the root of ln(2/delta)."""
    few, many = (bounds.any_class(44.0, 1e6, 1, 10**4, 0.1, 0.1, 1.0, delta, constant=1e-2) for delta in (1e-2, 1e-6))
    assert few < bounds.any_class(44.0, 1e6, 1, 10**4, 0.1, 0.1, 1.0, 1e-2)
    assert many / few == pytest.approx(math.sqrt(math.log(2e6) / math.log(200)), rel=1e-9)
