"""Exact privacy of the threshold learners: the hockey-stick divergence over all neighbouring samples of one, two and three examples, and
over larger pairs that are built to hurt or found by climbing. All laws are evaluated in float64."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Sample
from dpjax.accounting import REPLACE_ONE, Guarantee
from dpjax.core.pytree import frozen
from dpjax.learners import thresholds
from dpjax.verify import histograms, hockey_stick, neighbours, probabilities, records
from dpjax.verify.exact import worst_of_table

Create = Callable[[Any, Any], Any]  # (epsilon, delta) to a learner

BATCH = 32  # laws at a time

# Few examples never pass A_dist's threshold unless delta and epsilon are large.
BUDGETS = ((1.0, 0.1), (4.0, 0.3), (24.0, 0.5))


def recursive(calibration: str, alpha: float = 0.6) -> Create:
    """RecConcave on {0, ..., 64}: more than 32, so two levels really run."""
    return lambda epsilon, delta: thresholds.rec_concave(
        bits=6, epsilon=epsilon, delta=delta, alpha=alpha, depth=2, calibration=calibration
    )


def base_case(epsilon: Any, delta: Any) -> Any:
    return thresholds.rec_concave(bits=3, epsilon=epsilon, delta=delta, alpha=0.6, depth=2)


def exponential(epsilon: Any, delta: Any) -> Any:
    return thresholds.exponential(bits=3, epsilon=epsilon)


def pure_search(epsilon: Any, delta: Any) -> Any:
    return thresholds.binary_search(bits=3, epsilon=epsilon)


def search(epsilon: Any, delta: Any) -> Any:
    return thresholds.binary_search(bits=3, epsilon=epsilon, delta=delta)


def power_search(epsilon: Any, delta: Any, calibration: str = "proved") -> Any:
    return thresholds.power_search(bits=3, epsilon=epsilon, delta=delta, alpha=0.8, calibration=calibration)


def length_search(epsilon: Any, delta: Any) -> Any:
    return thresholds.length_search(bits=3, epsilon=epsilon, delta=delta, alpha=0.8)


def supported(epsilon: Any, delta: Any) -> Any:
    """With room for the errors of no example: T = 1 for three of them."""
    return thresholds.supported(bits=3, epsilon=epsilon, delta=delta, alpha=0.99)


@dataclasses.dataclass(frozen=True)
class Family:
    """Samples of several sizes in one padded shape, and which of them are neighbours (replace one, both directions)."""

    x: np.ndarray
    y: np.ndarray
    n: np.ndarray
    pairs: np.ndarray


def all_samples(points_by_size: dict[int, Sequence[int]]) -> Family:
    """All samples of each size n over the given points, arbitrary labels (as multisets: no learner sees the order)."""
    capacity = max(points_by_size)
    parts, start = [], 0
    for n, points in points_by_size.items():
        counts = histograms(2 * len(points), [n])
        values, sizes = records(counts, capacity)
        parts.append((np.asarray(points)[values // 2], values % 2, sizes, neighbours(counts, REPLACE_ONE) + start))
        start += len(counts)
    x, y, n, pairs = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Family(x.astype(np.uint32), y, n, pairs)


def given(samples: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Family:
    """Samples 0 and 1, 2 and 3, ... are neighbours; all of one size."""
    x, y = (np.array([sample[part] for sample in samples]) for part in (0, 1))
    even = np.arange(0, len(samples), 2)
    pairs = np.concatenate([np.stack([even, even + 1], 1), np.stack([even + 1, even], 1)])
    return Family(x.astype(np.uint32), y, np.full(len(samples), x.shape[1], np.int32), pairs)


def log_law(create: Create) -> Callable[[dict[str, Any]], Any]:
    """A law in the form that the verifier takes: of one sample and one budget."""

    def law(row: dict[str, Any]) -> Any:
        sample = Sample(x=row["x"][:, None], y=row["y"], n_valid=row["n"])
        return jnp.log(jnp.maximum(create(row["epsilon"], row["delta"]).pmf(sample), 0.0))

    return law


def tables(create: Create, family: Family, budgets: Sequence[tuple[float, float]]) -> list[np.ndarray]:
    """P[outcome | sample] for every budget: one program for all of them."""
    size, count = len(family.n), len(budgets)
    rows = {name: np.concatenate([getattr(family, name)] * count) for name in ("x", "y", "n")}
    rows["epsilon"], rows["delta"] = np.repeat(np.array(budgets), size, axis=0).T
    # Filled up to whole batches: a remainder would be compiled once more.
    rows = {name: np.resize(row, (-(-len(row) // BATCH) * BATCH, *row.shape[1:])) for name, row in rows.items()}
    return np.split(probabilities(log_law(create), rows, batch_size=BATCH)[: size * count], count)


def worst(table: np.ndarray, pairs: np.ndarray, epsilon: float) -> Any:
    """The worst pair of a tabulated law."""
    return worst_of_table(table, np.arange(len(table)), pairs, epsilon)


def check(create: Create, family: Family, budgets: Sequence[tuple[float, float]]) -> list[np.ndarray]:
    """Assert that no pair refutes what the learner guarantees; return the tables."""
    found = tables(create, family, budgets)
    for table, budget in zip(found, budgets, strict=True):
        guarantee = create(*budget).guarantee()
        assert not worst(table, family.pairs, guarantee.epsilon).refutes(guarantee), budget
    return found


EIGHT = range(8)
# The borders of blocks of 8 and of 16, shifted or not, and points inside.
BORDERS = (0, 3, 7, 11, 15, 20, 31, 63)


# ------------------------------------------------------------------------------------------- all neighbouring samples


@pytest.mark.parametrize(
    "create",
    [
        pytest.param(power_search, marks=pytest.mark.thorough),
        pytest.param(supported, marks=pytest.mark.thorough),
        *(
            pytest.param(create, marks=pytest.mark.slow)
            for create in (exponential, search, pure_search, base_case, length_search)
        ),
    ],
)
def test_no_pair_of_small_samples_refutes_a_guarantee(create: Create) -> None:
    family = all_samples({1: EIGHT, 2: EIGHT, 3: EIGHT})
    budgets = ((0.1, 1e-3), (1.0, 0.01), (6.0, 0.3))
    found = check(create, family, budgets)
    # Not vacuous: at a small fraction of epsilon every one of them does leak.
    for table, (epsilon, _) in zip(found, budgets, strict=True):
        assert worst(table, family.pairs, epsilon / 8).delta > 0


@pytest.mark.slow
def test_exponential_and_binary_search_are_refuted_when_they_spend_more() -> None:
    family = all_samples({3: EIGHT})
    (table,) = tables(exponential, family, [(1.5, 0.1)])
    assert worst(table, family.pairs, 1.0).refutes(Guarantee(1.0, 0.0, REPLACE_ONE))
    (table,) = tables(pure_search, family, [(2.0, 0.1)])
    assert worst(table, family.pairs, 1.0).refutes(Guarantee(1.0, 0.0, REPLACE_ONE))


FEW = {1: BORDERS, 2: (3, 7, 15, 31, 63), 3: (7, 11)}
MANY = {1: range(64), 2: BORDERS, 3: BORDERS[1:4]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("calibration", "points"),
    [
        pytest.param("proved", FEW, id="proved, few"),
        *(pytest.param(c, MANY, id=f"{c}, many", marks=pytest.mark.slow) for c in ("proved", "printed")),
    ],
)
def test_no_pair_of_small_samples_refutes_rec_concave(calibration: str, points: dict[int, Sequence[int]]) -> None:
    family = all_samples(points)
    found = check(recursive(calibration), family, BUDGETS)
    for table, (epsilon, _) in zip(found, BUDGETS, strict=True):
        assert worst(table, family.pairs, epsilon / 8).delta > 1e-3
    bottom = found[-1][:, -1]  # blocks are really kept, and really dropped
    assert bottom.min() < 0.35 and bottom.max() > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_no_pair_of_two_or_three_examples_refutes_rec_concave(calibration: str) -> None:
    family = all_samples({2: range(0, 64, 2), 3: BORDERS})
    check(recursive(calibration), family, [(8.0, 0.4)])


# ------------------------------------------------------------------------------------------------- pairs made to hurt


def two_peaks(size: int = 40) -> list[tuple[list[int], list[int]]]:
    """Neighbours whose best block differs in both partitions: the worst that can happen to A_dist, twice.

    In the first sample the peak at 21 beats the one at 5 by 2, the largest gap that one replacement can undo; in the second they
    tie, and the lower one is meant. With 242 examples windows of more than one point are so much worse that k = 0 is all but sure.
    """
    a, b = 2 * size, size
    xs = [4] * a + [5] * b + [20] * (b + 2) + [21] * a
    ys = [1] * a + [0] * b + [1] * (b + 2) + [0] * a
    moved = ys.copy()
    moved[a + b + 1] = 0  # a one at 20 becomes a zero: the peak at 21 loses 1, the one at 5 gains 1
    return [(xs, ys), (xs, moved)]


@pytest.mark.slow
def test_two_peaks_spend_the_proved_delta_and_half_as_much_again_is_flagged() -> None:
    pair, create = given(two_peaks()), recursive("proved", alpha=0.9)
    claimed = create(12.0, 0.1).guarantee()
    honest, greedy = (worst(table, pair.pairs, 12.0) for table in tables(create, pair, [(12.0, 0.1), (18.0, 0.15)]))
    assert not honest.refutes(claimed)
    assert greedy.refutes(claimed)
    share = 0.05  # of each A_dist; either of the two gives the sample away
    np.testing.assert_allclose(honest.delta, 1 - (1 - share) ** 2, rtol=1e-2)


@pytest.mark.slow
def test_printed_constants_break_the_claim_at_large_epsilon_and_keep_what_is_proved() -> None:
    # e = epsilon/6 and d = delta/6 a mechanism: claimed 6 d, proved exp(2 e) d, which is more iff e > ln(6) / 2, epsilon > 5.4.
    pair, create, budgets = given(two_peaks()), recursive("printed", alpha=0.9), [(4.5, 1e-3), (9.0, 1e-3)]
    for table, (epsilon, delta) in zip(tables(create, pair, budgets), budgets, strict=True):
        learner, found = create(epsilon, delta), worst(table, pair.pairs, epsilon)
        assert found.refutes(learner.claimed_guarantee()) == (epsilon > 5.4)
        assert not found.refutes(learner.guarantee())
        np.testing.assert_allclose(found.delta, np.exp(epsilon / 3) * delta / 6, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_climbing_finds_no_pair_that_refutes(calibration: str, x64: None) -> None:
    """From random pairs of 15 examples, keep what raises the hockey-stick at an eighth of epsilon."""
    rng = np.random.default_rng(0)
    (epsilon, delta), lanes = (6.0, 0.2), 16
    create = recursive(calibration, alpha=0.9)
    guarantee = create(epsilon, delta).guarantee()
    laws = jax.jit(jax.vmap(log_law(create)))  # compiled once for all steps
    budgets = {"epsilon": np.full(2 * lanes, epsilon), "delta": np.full(2 * lanes, delta)}
    state = rng.integers(0, 128, (lanes, 16))  # 15 examples, and what replaces the first
    best = start = np.zeros(lanes)
    for step in range(60):
        proposal = state.copy()
        if step:
            proposal[np.arange(lanes), rng.integers(0, 16, lanes)] = rng.integers(0, 128, lanes)
        pair = given([(row // 2, row % 2) for p in proposal for row in (p[:15], np.r_[p[15], p[1:15]])])
        logs = np.asarray(laws({"x": pair.x, "y": pair.y, "n": pair.n, **budgets}))
        assert hockey_stick(logs[pair.pairs[:, 0]], logs[pair.pairs[:, 1]], guarantee.epsilon).max() <= guarantee.delta
        value = hockey_stick(logs[::2], logs[1::2], epsilon / 8)
        start = value if step == 0 else start
        state[value > best], best = proposal[value > best], np.maximum(best, value)
    assert best.max() > max(1.5 * start.max(), 0.01)  # it did climb


def two_clusters(size: int = 20) -> list[tuple[list[int], list[int]]]:
    """Neighbours whose best block of 4 points differs in A and in B; the search is all but sure to end at blocks of 4.

    A one moves from the cluster at 10 to that at 2: balances (size, size + 2) become (size + 1, size + 1), and the lower one is meant.
    """
    rest = [3] * (2 * size) + [11] * (2 * size)
    ones = [2] * size + [10] * (size + 2)
    moved = [2] * (size + 1) + [10] * (size + 1)
    y = [0] * len(rest) + [1] * len(ones)
    return [(rest + ones, y), (rest + moved, y)]


@pytest.mark.thorough
@pytest.mark.parametrize("calibration", ["proved", "printed"])
def test_two_clusters_spend_the_proved_delta_of_a_search_and_refute_the_printed_constants(calibration: str) -> None:
    """In one sample A_dist, and when that fails its twin for B, gives the upper cluster away; in the other neither can."""

    def create(epsilon: Any, delta: Any) -> Any:
        return thresholds.power_search(bits=4, epsilon=epsilon, delta=delta, alpha=0.3, calibration=calibration)

    pair, (epsilon, delta) = given(two_clusters()), (8.0, 1e-3)
    (table,) = tables(create, pair, [(epsilon, delta)])
    learner, found = create(epsilon, delta), worst(table, pair.pairs, epsilon)
    share = delta / 2 * (np.exp(2 * epsilon / 4) / 2 if calibration == "printed" else 1)
    np.testing.assert_allclose(found.delta, 1 - (1 - share) ** 2, rtol=0.02)
    assert found.refutes(learner.claimed_guarantee()) == (calibration == "printed")
    assert not found.refutes(learner.guarantee())


@frozen
class Forgetful(thresholds.PowerSearch):
    """Each comparison spends what all of them together may."""

    def comparison_epsilon(self) -> Any:
        return 3 / 8 * self.epsilon


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
def test_a_search_that_forgets_how_often_it_compares_is_refuted(forgets: bool) -> None:
    """Thirty zeros and thirty ones at one point, or one example less: every comparison sees it, just below the bar."""

    def create(epsilon: Any, delta: Any) -> Any:
        made = thresholds.power_search(bits=8, epsilon=epsilon, delta=delta, alpha=0.4)
        return Forgetful(**vars(made)) if forgets else made

    xs, ys = [100] * 60 + [0] * 250, [1, 0] * 30 + [1] * 250
    pair = given([(xs, ys), ([0, *xs[1:]], ys)])
    (table,) = tables(create, pair, [(4.0, 1e-5)])
    assert worst(table, pair.pairs, 4.0).refutes(Guarantee(4.0, 1e-5, REPLACE_ONE)) == forgets
