"""Worst data and worst neighbours: what a search finds is the worst where all can be listed, and its numbers are the laws' own."""

import functools
import types
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Points, Sample
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.data.assignments import Assignments
from dpjax.data.weighted import Weighted
from dpjax.domains import events, wide
from dpjax.learners import parities, points, thresholds
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.interior_point import planning
from dpjax.relaxations import real_counts, search, worst, worst_pairs, worst_records
from dpjax.verify import broken, exact

KEY = functools.partial(jax.random.key, 0)
EIGHT = list(range(8))
SMALL = {"starts": 4, "steps": 30, "rounds": 40, "width": 16}


def tree_log() -> Any:
    plan = planning.calibrate(bits=3, epsilon=20.0, delta=0.1, beta=0.3, depth=1)
    return interior_point.tree_log_planned(bits=3, plan=plan)


SOLVERS = {
    "exponential": lambda: interior_point.exponential(bits=3, epsilon=0.5),
    "rec_concave": lambda: interior_point.rec_concave(bits=6, epsilon=3.0, delta=0.1, promise=4.0, alpha=0.7),
    "tree_log": tree_log,
    "thresholds.exponential": lambda: thresholds.exponential(bits=3, epsilon=0.5),
    "thresholds.rec_concave": lambda: thresholds.rec_concave(bits=6, epsilon=9.0, delta=0.1, alpha=0.5, depth=2),
    "thresholds.amplified": lambda: thresholds.amplified(bits=3, epsilon=20.0, delta=0.5, alpha=0.8, beta=0.9, depth=1),
    "thresholds.binary_search": lambda: thresholds.binary_search(bits=3, epsilon=3.0),
    "points.learn_points": lambda: points.learn_points(bits=3, epsilon=1.0, delta=0.1),
    "points.exponential": lambda: points.exponential(bits=3, epsilon=1.0),
}
# The 2^log* optimiser fails always on as few records as the others have: (records, points).
LARGER = {"thresholds.amplified": (20, [0, 2, 3, 6])}
RELAXED = ("exponential", "thresholds.rec_concave", "rec_concave", "thresholds.exponential", "thresholds.amplified")


def names(by_default: tuple[str, ...], all_of: Any) -> Any:
    cases = [name if name in by_default else builders.slow(name) for name in all_of]
    return pytest.mark.parametrize("name", cases)


def failures(algorithm: Any, at: Any, counts: np.ndarray, tags: np.ndarray, error: float) -> np.ndarray:
    """The exact failure of each dataset, by the algorithm's own law."""
    kind, rows = worst.labelling(algorithm), worst.bucket(int(counts[0].sum()))
    law = lambda row: algorithm.failure_probability(worst.dataset(kind, at, *row, rows), error=error)  # noqa: E731
    return exact.evaluated(law, (counts, tags[:, None]))


# ------------------------------------------------------------------------------------------------------ real counts


@pytest.mark.slow
@names(("exponential",), RELAXED)
def test_a_law_of_real_counts_is_the_law_where_counts_are_whole(name: str, x64: None) -> None:
    algorithm, at, rng = SOLVERS[name](), wide.from_ints(EIGHT, 3), np.random.default_rng(1)
    n, _ = LARGER.get(name, (9, EIGHT))
    counts = rng.multinomial(n, rng.dirichlet(0.5 * np.ones(8), 24)).astype(np.int32)
    ones = rng.integers(0, 9, 24).astype(np.int32)
    relaxed = jax.jit(lambda weights, ones: real_counts.failure(algorithm, at, weights, ones, jnp.asarray(1.0)))
    found = np.array([relaxed(jnp.asarray(row, float), one) for row, one in zip(counts, ones, strict=True)])
    expected = failures(algorithm, at, counts, ones, 1.1 / n)  # one mistake
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert expected.max() > 1.01 * expected.min()
    between = np.array([relaxed(jnp.asarray(row + 0.3, float), one) for row, one in zip(counts, ones, strict=True)])
    assert np.abs(between - expected).max() > 1e-3  # negative control: counts matter


@pytest.mark.thorough
def test_a_law_of_many_real_counts_keeps_its_digits() -> None:
    """On plateaus, in 32 bits: P[within] and P[not] sum to 1 however many points there are, and both are those of the exact mechanism."""
    algorithm = interior_point.exponential(bits=20, epsilon=1.0)
    at = wide.from_ints(sorted(np.random.default_rng(2).choice(2**20, 64, replace=False).tolist()), 20)
    points, everywhere = wide.to_ints(at), np.arange(2**20)
    low, high = points[24], (points[31] + points[32]) // 2  # which halves the top
    ends = wide.from_ints([low, high], 20)
    within = events.Interval(low=ends[0], high=ends[1])
    fewest = np.minimum(np.searchsorted(points, everywhere, side="right"), 64 - np.searchsorted(points, everywhere))
    for each in (0.5, 4.0, 400.0):
        law = np.asarray(jax.jit(real_counts.law)(algorithm, at, jnp.full(64, each), within))
        weights = np.exp(each * (fewest - fewest.max()))
        np.testing.assert_allclose(law.sum(), 1.0, rtol=1e-6)
        np.testing.assert_allclose(law[0], weights[low:high].sum() / weights.sum(), rtol=2e-6)


# ------------------------------------------------------------------------------------------------------- worst data


@pytest.mark.slow
@names(("exponential",), SOLVERS)
def test_the_worst_of_all_datasets_is_found(name: str) -> None:
    algorithm, error = SOLVERS[name](), 0.0 if "." not in name else 0.15
    n, listed = LARGER.get(name, (7, EIGHT))
    found = worst.worst_data(algorithm, n=n, key=KEY(), points=listed, error=error, **SMALL)
    histograms, kinds = exact.histograms(len(listed), [n]), len(listed) + 1 if worst.labelling(algorithm) else 1
    counts, tags = np.repeat(histograms, kinds, axis=0), np.tile(np.arange(kinds, dtype=np.int32), len(histograms))
    everything = failures(algorithm, wide.from_ints(listed, 3), counts, tags, error)
    np.testing.assert_allclose(found.failure, everything.max(), rtol=1e-6)
    assert sum(found.counts.values()) == n
    assert np.mean(everything < 0.999 * everything.max()) > 0.3  # most datasets are not the worst
    if name in RELAXED:  # the ascent alone, before any exchange, leads into the worst twentieth
        assert found.path[0] >= np.quantile(everything, 0.95)


@pytest.mark.slow
def test_a_batch_of_laws_counts_mistakes_as_one_law_does() -> None:
    """3 of 20 are an error of 0.15, also where a compiler multiplies by a rounded 1 / 20, which it did in this batch."""
    algorithm, at = SOLVERS["thresholds.exponential"](), wide.from_ints([0, 2, 3, 6], 3)
    counts, tags = np.array([[14, 0, 3, 3], [9, 5, 3, 3]], np.int32), np.array([3, 3], np.int32)
    below, at_error, above = (failures(algorithm, at, counts, tags, error) for error in (0.149, 0.15, 0.151))
    assert (at_error == above).all() and (below > 5 * above).all()


def _all_of(kind: str) -> tuple[Any, Any]:
    """An algorithm of another kind, and all records that there are."""
    if kind == "quantiles":
        made = quantiles.rank_exponential(bits=3, fractions=[0.5], epsilon=1.0)
        return made, Points.create(wide.from_ints(EIGHT, 3), ordered=True)
    return parities.exponential(bits=3, epsilon=1.0), Sample(x=wide.from_ints(EIGHT, 3), y=[x & 1 for x in EIGHT])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parities", builders.slow("quantiles")])
def test_the_worst_copies_of_given_records_are_found(kind: str) -> None:
    (algorithm, records), n, error = _all_of(kind), 5, 0.3
    found = worst_records.worst_records(algorithm, records, n=n, key=KEY(), error=error, starts=4, rounds=30, width=16)
    law = lambda row: algorithm.failure_probability(worst_records.repeated(records, row[0], 7), error=error)  # noqa: E731
    everything = exact.evaluated(law, (exact.histograms(8, [n]),))
    np.testing.assert_allclose(found.failure, everything.max(), rtol=1e-6)
    assert 0.01 < everything.max() < 0.99 and np.mean(everything < 0.95 * everything.max()) > 0.3
    assert sum(found.counts.values()) == n


def test_records_that_are_none_are_refused() -> None:
    algorithm, records = _all_of("quantiles")
    packed = Assignments.create(np.zeros((32, 3), bool), np.zeros(32, bool))  # 32 rows a word
    weighted = Weighted.create(records.x, [1] * 8)
    for wrong in (
        {"algorithm": 1, "records": records},
        {"algorithm": types.SimpleNamespace(failure_probability=lambda data, error: 0.5), "records": records},
        *({"algorithm": algorithm, "records": one} for one in ([1, 2], packed, weighted)),
    ):
        with pytest.raises(TypeError, match=r"algorithm|records"):
            worst_records.worst_records(**wrong, n=3, key=KEY())
    with pytest.raises(ValueError, match="all of which count, got 8 of 15"):
        worst_records.worst_records(algorithm, records.padded(15), n=3, key=KEY())


def two_neighbours(bits: int, n: int, epsilon: float) -> float:
    """The failure of the exponential mechanism on two neighbouring points with half of the records each."""
    inside = 2 * np.exp(epsilon * n / 2)
    return (2**bits - 2) / (inside + 2**bits - 2)


@pytest.mark.slow
def test_the_worst_data_of_the_exponential_mechanism_are_two_neighbours() -> None:
    """Data that are easily written down are not the worst: negative control."""
    bits, n, points = 24, 6, [0, 1, 7, 2**10, 2**20, 2**23, 2**23 + 5, 2**24 - 1]
    algorithm = interior_point.exponential(bits=bits, epsilon=4.0)
    found = worst.worst_data(algorithm, n=n, key=KEY(), points=points, **SMALL)
    np.testing.assert_allclose(found.failure, two_neighbours(bits, n, 4.0), rtol=1e-9)
    assert found.counts == {0: n // 2, 1: n // 2}
    even = builders.points_of(points[1:-1], bits, 7)
    assert algorithm.failure_probability(even) < 0.9 * found.failure


@pytest.mark.slow
def test_so_many_random_datasets_hold_nothing_as_bad() -> None:
    bits, epsilon, n = 24, 1.0, 40
    algorithm, at = interior_point.exponential(bits=bits, epsilon=epsilon), worst.scales(bits)
    found = worst.worst_data(algorithm, n=n, key=KEY(), starts=4, steps=30, rounds=60, width=16)
    np.testing.assert_allclose(found.failure, two_neighbours(bits, n, epsilon), rtol=1e-9)
    rng = np.random.default_rng(0)
    random = rng.multinomial(n, rng.dirichlet(0.1 * np.ones(len(at)), found.evaluations)).astype(np.int32)
    with jax.enable_x64(True):
        points = wide.from_ints(at, bits)
    others = failures(algorithm, points, random, np.zeros(len(random), np.int32), 0.0)
    assert others.max() < 0.5 * found.failure


@pytest.mark.thorough
def test_where_counts_are_whole_the_relaxed_failure_is_the_exact_one() -> None:
    """With one record, of which a tenth may be wrong, none may."""
    found = worst.worst_data(
        thresholds.exponential(bits=3, epsilon=1.0),
        **{"n": 1, "points": [3], "error": 0.1, "key": jax.random.key(0), "starts": 1, "steps": 1, "rounds": 0},
    )
    assert found.failure > 0.1 and found.relaxed.tolist() == [[pytest.approx(found.failure, rel=1e-12)]]


@pytest.mark.thorough
def test_counts_are_rounded_to_whole_ones_with_their_total() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(9), 5) * 17
    rounded = jax.jit(search.rounded)
    for row in weights:
        whole = np.asarray(rounded(row.astype(np.float32), np.int32(17)))
        assert whole.sum() == 17 and np.abs(whole - row).max() < 1


@pytest.mark.thorough
def test_data_that_a_law_refuses_are_left() -> None:
    """A start whose value is NaN is as bad as none, and hides no other start."""
    refused = lambda counts, tags: jnp.where(counts[0] > 3, jnp.nan, counts[0].astype(float))  # noqa: E731
    counts, kinds = jnp.array([[5, 0], [1, 4]], jnp.int32), jnp.ones(1, jnp.int32)
    given = counts, jnp.zeros((2, 1), jnp.int32), kinds
    found, _, path = search.exchange(jax.random.key(0), refused, *given, rounds=20, width=8)
    assert found[:, 0].tolist() == [3, 3] and path[:, 0].tolist() == [-jnp.inf, 1.0]


# -------------------------------------------------------------------------------------------------- worst neighbours


@pytest.mark.thorough
def test_where_labels_are_replaced_points_stay() -> None:
    """How many records have which point tells nothing of labels, and much of records (negative control)."""

    def law(counts: Any) -> Any:
        return jax.nn.log_softmax(jnp.sum(counts.reshape(2, 3), axis=1).astype(float))

    given = {"kinds": 6, "n": 4, "epsilon": 0.5, "labels": 3, "starts": 2, "rounds": 8, "width": 8}
    found = [
        worst_pairs.worst_pair(law, **given, key=jax.random.key(0), relation=r) for r in (REPLACE_LABEL, REPLACE_ONE)
    ]
    assert found[0].delta == 0 and found[1].delta > 0.1
    assert [int(counts.sum()) for counts in found[0].datasets] == [4, 4]


def test_a_pair_contradicts_what_a_claim_says_of_its_relation() -> None:
    """A loss of ln 3 by replacing a record: less than 1.2, which 0.6 says of removing one and adding another."""
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    found = worst_pairs.WorstPair(
        **{"epsilon": 0.6, "delta": 0.3, "pair": (0, 1), "datasets": (0, 1), "event": p > q, "p": p, "q": q},
        **{"path": np.zeros(1), "evaluations": 0, "relation": REPLACE_ONE},
    )
    assert found.refutes(Guarantee(0.6, 0.0, REPLACE_ONE)) and not found.refutes(Guarantee(1.2, 0.0, REPLACE_ONE))
    assert found.refutes(Guarantee(0.5, 0.0, ADD_OR_REMOVE_ONE))
    assert not found.refutes(Guarantee(0.6, 0.0, ADD_OR_REMOVE_ONE))
    with pytest.raises(ValueError, match="relation REPLACE_ONE does not follow from REPLACE_LABEL"):
        found.refutes(Guarantee(0.6, 0.0, REPLACE_LABEL))


@pytest.mark.thorough
@pytest.mark.parametrize("index", [0, builders.slow(1), builders.slow(2), builders.slow(3)])
def test_a_broken_promise_is_found_as_by_enumeration(index: int) -> None:
    specimen = broken.specimens()[index]
    found = worst_pairs.worst_pair(
        specimen.law,
        kinds=specimen.datasets.shape[1],
        n=int(specimen.datasets[0].sum()),
        epsilon=specimen.claimed.epsilon,
        relation=specimen.claimed.relation,
        key=KEY(),
        real=index in (0, 1),
        **SMALL,
    )
    np.testing.assert_allclose(found.delta, specimen.worst().delta, rtol=1e-6)
    assert found.refutes(specimen.claimed)
    assert not found.refutes(dpjax.accounting.Guarantee(specimen.claimed.epsilon, found.delta, "REPLACE_ONE"))
    assert np.abs(found.datasets[0] - found.datasets[1]).sum() == 2


class Commonest:
    """Releases a point with a probability that grows with how often it occurs; 1-private, for three points out of four."""

    def pmf(self, data: Any) -> jax.Array:
        values, size = data
        valid = jnp.arange(values.shape[0], dtype=jnp.int32) < size
        hits = (values[:, None] == jnp.arange(4, dtype=jnp.int32)[None]) & valid[:, None]
        return jax.nn.softmax(0.5 * jnp.sum(hits, axis=0, dtype=jnp.int32).astype(float))

    def __call__(self, key: jax.Array, data: Any) -> jax.Array:
        return jax.random.categorical(key, jnp.log(self.pmf(data)))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_worst_pair_is_that_of_check(epsilon: float) -> None:
    """At 1.5 nothing is left of an epsilon of 1: no pair is made up."""
    data = lambda values, size: (values, size)  # noqa: E731
    report = dpjax.check(Commonest(), n=6, domain=4, epsilon=epsilon, data=data)
    law = worst_pairs.law_of(Commonest(), n=6, domain=4, data=data)
    found = worst_pairs.worst_pair(law, kinds=4, n=6, epsilon=epsilon, key=KEY(), **SMALL)
    np.testing.assert_allclose(found.delta, report.delta, rtol=1e-6, atol=1e-12)
    assert (found.delta > 0.01) == (epsilon < 1)


@pytest.mark.slow
def test_the_worst_pair_of_a_solver_is_that_of_check() -> None:
    solver = interior_point.exponential(bits=2, epsilon=1.0)
    report = dpjax.check(solver, n=3, domain=4, epsilon=0.5)
    law = worst_pairs.law_of(solver, n=3, domain=4)
    given = {"kinds": 4, "epsilon": 0.5, "relation": ADD_OR_REMOVE_ONE, **SMALL}
    keys = jax.random.split(KEY(), 3)
    largest = max(worst_pairs.worst_pair(law, n=n, key=key, **given).delta for n, key in enumerate(keys, 1))
    np.testing.assert_allclose(largest, report.delta, rtol=1e-6)


class OfSome(Commonest):
    """Has no law of no records, nor of more than there are rows, as algorithms of dpjax have none."""

    def pmf(self, data: Any) -> jax.Array:
        values, size = data
        return jnp.where((size >= 1) & (size <= values.shape[0]), super().pmf(data), jnp.nan)


@pytest.mark.thorough
@pytest.mark.parametrize("own", [builders.thorough(False), True])
@pytest.mark.parametrize("n, relation", [(8, REPLACE_ONE), (1, ADD_OR_REMOVE_ONE)], ids=["more than rows", "none"])
def test_a_number_of_records_for_which_there_is_no_law_is_refused_by_name(n: int, relation: str, own: bool) -> None:
    """Of an algorithm of dpjax, and of one whose law compiles in a tenth of the time."""
    if own:
        law = worst_pairs.law_of(OfSome(), n=3, domain=4, data=lambda values, size: (values, size))
    else:
        law = worst_pairs.law_of(thresholds.exponential(bits=1, epsilon=1.0), n=3, domain=2)
    with pytest.raises(ValueError, match=f"^n must be such that law knows [08] records, got {n}"):
        worst_pairs.worst_pair(law, kinds=4, n=n, epsilon=1.0, key=KEY(), relation=relation)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["exponential", "thresholds.exponential", "rec_concave"])
def test_cells_of_real_counts_lead_to_a_pair_whose_delta_the_cells_have(name: str) -> None:
    algorithm = SOLVERS[name]()
    law = worst_pairs.law_of_cells(algorithm, EIGHT, n=6)
    relation, kinds = algorithm.guarantee().relation, 16 if "." in name else 8
    found = worst_pairs.worst_pair(
        law, kinds=kinds, n=6, epsilon=0.2, relation=relation, key=KEY(), real=True, starts=4, steps=20, rounds=8
    )
    assert found.delta > 1e-3 and found.path[-1] == pytest.approx(found.delta, rel=1e-9)
    assert not found.refutes(algorithm.guarantee())
    with jax.enable_x64(True):
        whole, real = jax.jit(law)(found.datasets[0]), jax.jit(law)(found.datasets[0].astype(float))
    np.testing.assert_allclose(np.exp(whole), np.exp(real), rtol=1e-9, atol=1e-12)


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "change, word",
    [
        ({"algorithm": "solver"}, "algorithm"),
        ({"n": 0}, "n"),
        ({"key": 0}, "key"),
        ({"points": [1, 1]}, "points"),
        ({"points": [8]}, "points"),
        ({"points": []}, "points"),
        ({"error": 1.5}, "error"),
        ({"starts": 0}, "starts"),
        ({"steps": -1}, "steps"),
        ({"width": 0.5}, "width"),
    ],
)
def test_bad_questions_about_data_are_refused_by_name(change: Any, word: str) -> None:
    given = {"algorithm": SOLVERS["exponential"](), "n": 4, "key": KEY()} | change
    with pytest.raises((TypeError, ValueError), match=rf"^{word}"):
        worst.worst_data(given.pop("algorithm"), **given)


@pytest.mark.parametrize(
    "change, word",
    [
        ({"law": None}, "law"),
        ({"kinds": 0}, "kinds"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"relation": "NEXT"}, "relation"),
        ({"relation": "REPLACE_LABEL", "kinds": 3}, "labels"),
        ({"real": 1}, "real"),
    ],
)
def test_bad_questions_about_pairs_are_refused_by_name(change: Any, word: str) -> None:
    given = {"law": jnp.log, "kinds": 4, "n": 4, "epsilon": 1.0, "key": KEY()} | change
    with pytest.raises((TypeError, ValueError), match=rf"^{word}"):
        worst_pairs.worst_pair(given.pop("law"), **given)
    with pytest.raises(TypeError, match="algorithm"):
        worst_pairs.law_of_cells(points.exponential(bits=3, epsilon=1.0), EIGHT, n=4)
