"""The best private algorithm for interior points: closed forms, a naive linear programme, certificates checked by the verifier."""

import functools
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough
from scipy import optimize

from dpjax.bounds import noise as added_noise
from dpjax.bounds import optimal
from dpjax.mechanisms import exponential
from dpjax.verify import exact

REPLACE, ADD = "REPLACE_ONE", "ADD_OR_REMOVE_ONE"
CLOSE = 1e-8


def best(domain, n, relation, *, epsilon=1.0, delta=0.0, **more):
    return optimal.interior_point(domain, n, epsilon=epsilon, delta=delta, relation=relation, **more)


# ------------------------------------------------------------------------------------------------------- closed forms


def two_values(n, relation, epsilon, delta):
    """|X| = 2: one path of neighbours leads from n zeros to n ones, symmetric about its middle, away from which Pr[wrong] shrinks.

    A neighbour's least Pr[wrong] is e^-epsilon (q - delta). Under add/remove the middle is the empty set, with q = 1/2, n steps away.
    Under replace-one it is n/2 steps away; for odd n the two middle datasets mirror each other: 1 - q <= e^epsilon q + delta.
    """
    steps, odd = (n, 0) if relation == ADD else divmod(n, 2)
    q = (1 - delta) / (1 + math.exp(epsilon)) if odd else 0.5
    for _ in range(steps):
        q = max(0.0, math.exp(-epsilon) * (q - delta))
    return q


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 0.02), (2.0, 1e-4)])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_two_values(relation, epsilon, delta):
    for n in range(1, 7):
        found = best(2, n, relation, epsilon=epsilon, delta=delta)
        assert found.failure == pytest.approx(two_values(n, relation, epsilon, delta), abs=CLOSE)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.05), (2.5, 1e-3)])
def test_one_point(epsilon, delta):
    """n = 1 is symmetric in all values: P_x(x) = 1 - q, P_x(y) = q/(d-1), and P_empty = 1/d.

    Replace-one: 1 - q - e^epsilon q/(d-1) <= delta, randomised response. Add/remove, against the empty set and back:
    1 - q - e^epsilon/d <= delta, (d-1)/d - e^epsilon q <= delta.
    """
    grow = math.exp(epsilon)
    for d in (2, 3, 5, 9):
        replaced = (d - 1) * (1 - delta) / (d - 1 + grow)
        added = max(0.0, 1 - grow / d - delta, ((d - 1) / d - delta) / grow)
        assert best(d, 1, REPLACE, epsilon=epsilon, delta=delta).failure == pytest.approx(replaced, abs=CLOSE)
        assert best(d, 1, ADD, epsilon=epsilon, delta=delta).failure == pytest.approx(added, abs=CLOSE)


# ---------------------------------------------------------------------------------------------- a naive linear programme


def naive(datasets, pairs, judged, domain, epsilon, delta):
    """One variable for each dataset and output, one constraint for each pair and SET of outputs; no symmetry, dense."""
    place = np.arange(len(datasets) * domain).reshape(len(datasets), domain)
    rows, limits, laws = [], [], []
    for row in judged:
        line = np.zeros(place.size + 1)
        line[[place[row, y] for y in range(domain) if not min(datasets[row]) <= y <= max(datasets[row])]] = 1
        line[-1] = -1
        rows.append(line)
        limits.append(0.0)
    events = [list(e) for k in range(1, domain) for e in itertools.combinations(range(domain), k)]
    for (i, j), event in itertools.product(pairs, events):
        line = np.zeros(place.size + 1)
        line[place[i, event]] = 1
        line[place[j, event]] = -math.exp(epsilon)
        rows.append(line)
        limits.append(delta)
    for row in place:
        line = np.zeros(place.size + 1)
        line[row] = 1
        laws.append(line)
    objective = np.eye(place.size + 1)[-1]
    answer = optimize.linprog(objective, np.array(rows), limits, np.array(laws), np.ones(len(laws)), method="highs-ds")
    assert answer.status == 0
    return answer.fun


def as_points(counts):
    return [np.repeat(np.arange(len(row)), row).tolist() for row in counts]


@pytest.mark.parametrize(("domain", "n"), [(2, 3), (3, 2), (3, 3), (4, 2)])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_symmetry_loses_nothing(domain, n, delta):
    """Algorithms on ordered lists, mirrored or not, do no better than those on multisets up to reflection."""
    lists, pairs = exact.sequences(domain, n), exact.sequence_neighbours(domain, n)
    reference = naive(lists.tolist(), pairs, range(len(lists)), domain, 1.0, delta)
    assert best(domain, n, REPLACE, delta=delta).failure == pytest.approx(reference, abs=CLOSE)


@functools.cache
def naive_multisets(domain, n, smallest, largest, epsilon, delta):
    counts = exact.histograms(domain, range(smallest, largest + 1))
    judged = np.flatnonzero(counts.sum(axis=1) == n)
    return naive(as_points(counts), exact.neighbours(counts, ADD), judged, domain, epsilon, delta)


@pytest.mark.parametrize(("domain", "n", "largest"), [(2, 3, 3), (3, 2, 2), (3, 2, 4), (4, 2, 3)])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_add_or_remove_agrees_with_the_naive_programme(domain, n, largest, delta):
    reference = naive_multisets(domain, n, 0, largest, 1.0, delta)
    assert best(domain, n, ADD, delta=delta, largest=largest).failure == pytest.approx(reference, abs=CLOSE)


# --------------------------------------------------------------------------------------------------------- which sizes


def test_the_smallest_sizes_matter():
    """|X| = 6, n = 2: requiring privacy on sizes 1 and 2 only is not enough; the module's docstring quotes the numbers."""
    assert naive_multisets(6, 2, 1, 2, 1.0, 0.0) == pytest.approx(0.1814, abs=5e-5)
    assert best(6, 2, ADD).failure == pytest.approx(0.2012, abs=5e-5)


CASES = [(2, 4), (3, 2), (3, 3), (4, 2), (4, 3), (6, 1), (6, 2), slow(8, 2)]


@pytest.mark.parametrize(("domain", "n"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.02)])
def test_sizes_above_n_change_nothing(domain, n, epsilon, delta):
    """An algorithm private on ALL sizes does as well as the programme on sizes 0..n: both bounds, certified."""
    below = best(domain, n, ADD, epsilon=epsilon, delta=delta)
    beyond = best(domain, n, ADD, epsilon=epsilon, delta=delta, largest=2 * n, extends=True)
    assert beyond.failure - below.lower_bound < CLOSE
    at_largest = beyond.mechanism[beyond.datasets.sum(axis=1) == 2 * n]
    np.testing.assert_array_equal(at_largest, np.broadcast_to(at_largest[0], at_largest.shape))


def test_extending_too_early_costs():
    """Negative control: one law for all datasets of size n + 1 is too much to ask."""
    assert best(3, 3, ADD, largest=4, extends=True).failure > best(3, 3, ADD).failure + 0.1


# ------------------------------------------------------------------------------------------------------- certificates


@functools.cache
def certified(domain, n, relation, delta):
    return best(domain, n, relation, delta=delta)


LARGE = [(4, 6, REPLACE, 0.0), (6, 5, REPLACE, 0.01), (6, 5, ADD, 0.01), (7, 4, ADD, 0.0), (12, 2, REPLACE, 1e-4)]


@pytest.mark.parametrize("case", [*LARGE[:2], *(thorough(case) for case in LARGE[2:])])
def test_the_mechanism_is_private_and_as_good_as_said(case):
    domain, n, relation, delta = case
    found = certified(*case)
    pairs = exact.neighbours(found.datasets, relation)
    assert exact.sticks(found.mechanism, pairs, 1.0).max() <= delta + 1e-13
    assert exact.sticks(found.mechanism, pairs, 0.9).max() > delta + 1e-3  # negative control

    place = {tuple(points): i for i, points in enumerate(as_points(found.datasets))}
    laws = lambda datasets: found.mechanism[[place[tuple(points)] for points in datasets.tolist()]]  # noqa: E731
    assert optimal.worst_failure(laws, domain, n) == pytest.approx(found.failure, rel=1e-12)


@pytest.mark.parametrize("case", [*LARGE[:2], *map(thorough, LARGE[2:])])
def test_the_two_sides_meet(case):
    assert 0 <= certified(*case).gap < CLOSE


def test_any_prices_give_a_lower_bound():
    """Weak duality: whatever the weights and prices, no certificate exceeds the optimum."""
    rng = np.random.default_rng(0)
    for relation, delta in itertools.product([REPLACE, ADD], [0.0, 0.05]):
        programme = optimal._programme(4, 3, optimal._sizes(3, relation, None, False), relation, False)
        optimum = best(4, 3, relation, delta=delta).failure
        _, weights, prices = optimal._solve(programme, math.e, delta)
        for noise in (0.0, 1e-3, 0.1, 10.0):
            near = [
                v * rng.exponential(size=len(v)) ** noise + noise * (rng.random(len(v)) < 0.1)
                for v in (weights, prices)
            ]
            assert optimal._certified(programme, *near, math.e, delta) <= optimum


def test_any_law_is_made_private():
    rng = np.random.default_rng(1)
    for relation, delta in itertools.product([REPLACE, ADD], [0.0, 0.05]):
        programme = optimal._programme(3, 3, optimal._sizes(3, relation, None, False), relation, False)
        for spread in (0.01, 1.0, 5.0):
            law = optimal._made_private(programme, np.exp(spread * rng.normal(size=programme.variables)), math.e, delta)
            pairs = exact.neighbours(programme.datasets, relation)
            assert exact.hockey_stick(*np.log(law[pairs.T]), 1.0).max() <= delta + 1e-14


# -------------------------------------------------------------------------------------------------------- known facts


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_more_points_more_budget_or_a_smaller_domain_is_never_worse(relation):
    def falls(values):
        return all(b <= a + CLOSE for a, b in itertools.pairwise(values)) and values[-1] < values[0] - 1e-3

    assert falls([best(4, n, relation, delta=0.01).failure for n in range(1, 6)])
    assert falls([best(4, 3, relation, epsilon=e).failure for e in (0.1, 0.5, 1.0, 2.0)])
    assert falls([best(4, 3, relation, delta=d).failure for d in (0.0, 1e-6, 1e-2, 0.1)])
    assert falls([best(d, 3, relation).failure for d in (7, 6, 5, 4, 3, 2)])


@pytest.mark.parametrize(("domain", "n"), [(3, 3), (5, 2), (4, 4)])
def test_group_privacy_relates_the_two_relations(domain, n):
    """epsilon/2 under add/remove is epsilon under replace-one, so the latter's optimum is no worse."""
    assert best(domain, n, REPLACE, epsilon=1.0).lower_bound <= best(domain, n, ADD, epsilon=0.5).failure


def depth_law(relation, epsilon):
    """The exponential mechanism on min(#<=x, #>=x); the depth only grows when a point is added, so add/remove needs no factor 2."""

    def law(counts):
        depth = jnp.minimum(jnp.cumsum(counts), jnp.cumsum(counts[::-1])[::-1])
        return exponential.log_pmf(depth, epsilon=epsilon, monotone=relation == ADD)

    return law


def counts_of(datasets, domain):
    return (datasets[:, :, None] == np.arange(domain, dtype=np.int32)).sum(axis=1).astype(np.int32)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_the_exponential_mechanism_is_private_and_no_better(relation):
    domain, law = 5, depth_law(relation, 1.0)
    counts = exact.histograms(domain, range(5) if relation == ADD else [4])
    assert exact.worst_pair(law, counts, exact.neighbours(counts, relation), 1.0).delta <= 1e-12
    every = exact.histograms(domain, [1, 2, 4])
    table = dict(zip(map(tuple, every.tolist()), exact.probabilities(law, every), strict=True))
    for n in (1, 2, 4):
        laws = lambda rows: np.array([table[tuple(row)] for row in counts_of(rows, domain).tolist()])  # noqa: E731
        worst = optimal.worst_failure(laws, domain, n)
        assert worst >= best(domain, n, relation).lower_bound


def test_monotone_weights_are_not_private_under_replace_one():
    """Negative control of the test above."""
    counts = exact.histograms(5, [4])
    assert exact.worst_pair(depth_law(ADD, 1.0), counts, exact.neighbours(counts, REPLACE), 1.0).delta > 1e-2


# ------------------------------------------------------------------------------------------------ least n, worst failure


@pytest.mark.parametrize(("relation", "delta"), [(REPLACE, 0.0), (ADD, 0.01)])
def test_least_n_is_least(relation, delta):
    n = optimal.least_n(4, 0.15, epsilon=1.0, delta=delta, relation=relation, limit=6)
    assert best(4, n, relation, delta=delta).failure <= 0.15 < best(4, n - 1, relation, delta=delta).lower_bound
    assert optimal.least_n(4, 0.15, epsilon=1.0, delta=delta, relation=relation, limit=n - 1) is None


def test_least_n_says_when_it_cannot_tell():
    """beta lies between the two certified bounds."""
    found = best(3, 1, REPLACE)
    between = (found.failure + found.lower_bound) / 2
    assert found.lower_bound < between < found.failure
    with pytest.raises(RuntimeError, match="too close"):
        optimal.least_n(3, between, epsilon=1.0, delta=0.0, relation=REPLACE, limit=2)


def test_worst_failure_counts_bottom_and_looks_at_every_dataset():
    table = np.random.default_rng(2).dirichlet(np.ones(4), 10)  # |X| = 3, n = 3, and bottom
    datasets = list(itertools.combinations_with_replacement(range(3), 3))
    failures = [
        sum(row[y] for y in range(4) if not min(d) <= y <= max(d)) for d, row in zip(datasets, table, strict=True)
    ]

    def laws(rows):
        assert [tuple(row) for row in rows.tolist()] == datasets
        return table

    assert optimal.worst_failure(laws, 3, 3) == pytest.approx(max(failures))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"domain": 1}, ValueError, "domain must be >= 2, got 1"),
        ({"domain": 2.0}, TypeError, "domain must be an int"),
        ({"n": 0}, ValueError, "n must be >= 1, got 0"),
        ({"domain": 2**100, "n": 2**100}, ValueError, "n must be from 1 to 400000"),
        ({"domain": 2**100, "n": 70}, ValueError, "at most 400000 privacy constraints"),
        ({"relation": ADD, "extends": []}, TypeError, r"extends must be True or False, got \[\]"),
        ({"relation": ADD, "largest": 2**100}, ValueError, "largest must be from 3 to 400000"),
        ({"epsilon": 0.0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": 21.0}, ValueError, "epsilon must be <= 20"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"delta": 1.0}, ValueError, "delta must be < 1.0, got 1.0"),
        ({"delta": -1e-9}, ValueError, "delta must be >= 0"),
        ({"relation": "SWAP"}, ValueError, "relation must be one of REPLACE_ONE, ADD_OR_REMOVE_ONE, got 'SWAP'"),
        ({"largest": 4}, ValueError, "largest and extends must be left out"),
        ({"relation": ADD, "largest": 2}, ValueError, "largest must be >= 3"),
        ({"relation": ADD, "extends": True}, ValueError, "largest must be >= 4"),
        ({"domain": 40, "n": 10}, ValueError, "at most 400000 privacy constraints, got domain = 40, n = 10"),
        ({"domain": 8, "n": 8, "delta": 1e-3}, ValueError, "at most 120000 privacy constraints"),
    ],
)
def test_bad_input(change, error, words):
    arguments = {"domain": 3, "n": 3, "epsilon": 1.0, "delta": 0.0, "relation": REPLACE, **change}
    with pytest.raises(error, match=words):
        optimal.interior_point(**arguments)


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        (np.ones((6, 2)) / 2, "laws must give 6 laws of 3 or more outcomes"),
        (np.ones((6, 3)), "laws must sum to one, got 3.0"),
        (np.full((6, 3), np.nan), "laws must sum to one"),
    ],
)
def test_worst_failure_refuses_what_is_no_law(laws, words):
    with pytest.raises(ValueError, match=words):
        optimal.worst_failure(lambda _: laws, 3, 2)


def test_what_cannot_be_listed_is_refused():
    with pytest.raises(TypeError, match="laws must be callable, got None"):
        optimal.worst_failure(None, 3, 2)  # type: ignore[arg-type]
    for domain, size in [(3, 2**200), (2**200, 2**200), (40, 10)]:
        with pytest.raises(ValueError, match="domain and size must give at most 10000000 multisets"):
            optimal.multisets(domain, size)
    assert len(optimal.multisets(2, 1000)) == 1001


def test_the_limits_count_constraints_right(monkeypatch):
    """The number of constraints follows from domain and sizes alone; reflection leaves half the pairs, or a little more."""
    for relation, domain, n in [(REPLACE, 4, 3), (REPLACE, 5, 4), (ADD, 4, 3), (ADD, 5, 2)]:
        sizes = optimal._sizes(n, relation, None, False)
        pairs = exact.neighbours(exact.histograms(domain, sizes), relation)
        kept = optimal._programme(domain, n, sizes, relation, False).pairs
        assert len(pairs) / 2 <= len(kept) <= 0.6 * len(pairs)
        monkeypatch.setitem(optimal.MAX_CONSTRAINTS, "pure", 1)
        with pytest.raises(ValueError, match=f": {len(pairs) * domain // 2}$"):
            optimal._refuse_too_large(domain, sizes, n, 0.0)


@pytest.mark.parametrize(("name", "function"), [("absolute", abs), ("square", np.square), ("zero_one", np.sign)])
def test_tails_in_closed_form_cost_what_their_sums_do(name, function):
    """A loss given by its name, and the same loss given as a function, whose values are summed."""
    for sensitivity, reach in ((1, 2), (3, 7)):
        description = added_noise.tails(epsilon=0.7, sensitivity=sensitivity, reach=reach)
        summed = added_noise.coefficients(lambda x: abs(function(x)), description)
        np.testing.assert_allclose(added_noise.coefficients(name, description), summed, rtol=1e-12)


def test_a_programme_is_too_large_whatever_kind_of_integer_says_so():
    """Products of NumPy's integers would wrap round."""
    with pytest.raises(ValueError, match="privacy constraints"):
        optimal.interior_point(np.int32(2000), 1, epsilon=1.0, delta=0.0, relation="REPLACE_ONE")


def test_places_stand_for_all_integers_and_their_multiples_for_whole_tails():
    """The sum of a law over the places, each with its multiplicity, is the sum over all integers."""
    for sensitivity, reach in ((1, 2), (2, 4), (3, 7)):
        description = added_noise.tails(epsilon=0.7, sensitivity=sensitivity, reach=reach)
        law = np.arange(1.0, reach + 2)
        column, periods = (part[abs(description.places)] for part in description.beyond)
        everywhere = description.multiples() @ (law[column] * np.exp(-0.7 * periods))
        assert everywhere == pytest.approx(added_noise.coefficients("zero_one", description)[1] @ law)


@pytest.mark.parametrize(
    "case", [(6, 3, 3.0, 0.0), (4, 4, 2.0, 0.0), (4, 3, 4.0, 0.0), (4, 4, 4.0, 1e-6), (5, 3, 5.0, 1e-6)]
)
def test_both_sides_meet_where_the_optimum_is_small(case):
    domain, n, epsilon, delta = case
    found = optimal.interior_point(domain, n, epsilon=epsilon, delta=delta, relation="ADD_OR_REMOVE_ONE")
    assert 0 <= found.gap < 1e-8
