"""Exact privacy of k concepts at once: direct sums under advanced composition, GenericLearner with thresholds, learners on rows drawn with
replacement; and of several slices in one pass: two sliced quantiles, rectangles in the plane. The hockey-stick divergence over all
neighbouring datasets of tiny domains, labels arbitrary, and controls that must be refuted. All laws are evaluated in float64."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import MultiSample, Points, Sample
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_ONE, Guarantee, slicing
from dpjax.concepts import rectangles as boxes
from dpjax.domains import wide
from dpjax.learners import points, rectangles, thresholds
from dpjax.multi import direct_sum, generic, reductions
from dpjax.optimizers import interior_point, quantiles
from dpjax.sanitizers import cdf
from dpjax.verify import exact
from dpjax.verify.plain.quantiles import recursive_law, sliced_law
from dpjax.verify.plain.rectangles import plane_law

FALSE_ALARM = 2e-5


def datasets(bits: int, k: int, n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """All multisets of n records (x, y_1, ..., y_k) over 2^bits points, as rows; and the pairs of neighbours."""
    records = np.asarray(list(itertools.product(range(2**bits), *[(0, 1)] * k)))
    counts = exact.histograms(len(records), [n])
    rows = records[exact.records(counts)[0]]
    return {"x": rows[..., :1].astype(np.uint32), "y": rows[..., 1:]}, exact.neighbours(counts, REPLACE_ONE)


def multi(row: Any) -> MultiSample:
    return MultiSample.create(row["x"], row["y"])


def log_law(learner: Any) -> Callable[[Any], Any]:
    """ln P of every outcome of a k-learner with a joint pmf."""
    return lambda row: jnp.log(jnp.maximum(learner.pmf(multi(row)), 0.0))


def delta_of(p: np.ndarray, pairs: np.ndarray, epsilon: float) -> float:
    """The largest hockey-stick of tabulated laws."""
    return float(np.maximum(p[pairs[:, 0]] - math.exp(epsilon) * p[pairs[:, 1]], 0.0).sum(axis=1).max())


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs(learner: Any, key: jax.Array, data: Any) -> Any:
    return learner(key, data)


def fits(seen: np.ndarray, law: np.ndarray) -> bool:
    """Chi-square at the false-alarm rate; impossible outcomes must not occur, rare ones are merged."""
    expected = law * (seen.sum() / law.sum())
    rare = expected < 20
    if seen[law == 0].any():
        return False
    seen, expected = np.append(seen[~rare], seen[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    possible = expected > 0
    return bool(stats.chisquare(seen[possible], expected[possible]).pvalue > FALSE_ALARM)


# ------------------------------------------------------------------------------------- direct sum, advanced composition


def threshold(each: Any) -> Any:
    return thresholds.exponential(bits=1, epsilon=each.epsilon)


def pure_point(each: Any) -> Any:
    return points.exponential(bits=1, epsilon=each.epsilon)


def point(each: Any) -> Any:
    return points.learn_points(bits=1, epsilon=each.epsilon, delta=each.delta, bottom="zero")


def columns(learner: Any, n: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """(P[outcome | sample] for all ordered samples of n examples on two points, the same with epsilon and delta multiplied by `factor`).

    The multiplied delta is capped at 1/2, the most that a stability test may spend.
    """
    values = np.tile(exact.sequences(4, n), (2, 1))
    scale = np.repeat([1.0, factor], len(values) // 2)
    limits = {"epsilon": np.inf, "delta": 0.5}
    spent = [name for name in limits if hasattr(learner, name)]
    rows = {
        "x": values // 2,
        "y": values % 2,
        "spent": {name: np.minimum(scale * getattr(learner, name), limits[name]) for name in spent},
    }

    def law(row: Any) -> Any:
        sample = Sample(x=row["x"][:, None].astype(jnp.uint32), y=row["y"])
        return jnp.log(dataclasses.replace(learner, **row["spent"]).pmf(sample))

    first, second = np.split(exact.probabilities(law, rows), 2)
    return first, second


def product_delta(table: np.ndarray, k: int, n: int, epsilon: float) -> float:
    """delta(epsilon) of k independent columns over all neighbours of n examples on two points, labels arbitrary.

    The first example changes from x_1 to any x'_1 and in each column from y_1 to any y'_1. Columns in another order have the same law, so
    what counts is how many have each of the 2^(n+1) kinds (y'_1, y_1, ..., y_n).
    """
    table = table[:, table.max(axis=0) > 0].reshape((4,) * n + (-1,))
    kinds, worst = list(itertools.product((0, 1), repeat=n + 1)), 0.0
    for moved, *xs in itertools.product((0, 1), repeat=n + 1):
        here = [table[tuple(2 * x + y for x, y in zip(xs, ys, strict=True))] for _, *ys in kinds]
        there = [
            table[(2 * moved + new, *(2 * x + y for x, y in zip(xs[1:], ys[1:], strict=True)))] for new, *ys in kinds
        ]
        for chosen in itertools.combinations_with_replacement(range(len(kinds)), k):
            p, q = (functools.reduce(np.multiply.outer, [laws[j] for j in chosen]) for laws in (here, there))
            worst = max(worst, np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
    return worst


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "k", "n", "epsilon", "delta", "share"),
    [
        builders.slow(threshold, 7, 1, 0.3, 0.6, 0.0),
        (pure_point, 3, 2, 0.2, 0.5, 0.0),
        (point, 6, 1, 0.3, 0.5, 0.25),  # it spends nearly all of its own quarter of delta
        pytest.param(threshold, 10, 1, 0.3, 0.6, 0.0, marks=pytest.mark.slow),
        pytest.param(threshold, 3, 2, 0.2, 0.5, 0.0, marks=pytest.mark.slow),
        pytest.param(threshold, 5, 2, 0.3, 0.5, 0.0, marks=pytest.mark.slow),
        pytest.param(point, 4, 2, 0.3, 0.6, 0.15, marks=pytest.mark.slow),
    ],
)
def test_advanced_direct_sums_keep_their_promise(
    make: Any, k: int, n: int, epsilon: float, delta: float, share: float
) -> None:
    summed = direct_sum.direct_sum(make, k=k, epsilon=epsilon, delta=delta, accountant="advanced", delta_share=share)
    promised, each = summed.guarantee(), summed.learner.guarantee()
    assert promised.covers(epsilon, delta) and k * each.epsilon > epsilon  # basic composition would not do
    table, greedy = columns(summed.learner, n, 40.0)
    found, leak = (product_delta(table, k, n, e) for e in (promised.epsilon, promised.epsilon / 2))
    assert found <= promised.delta and leak > max(2e-3, 0.9 * k * each.delta)
    assert product_delta(greedy, k, n, promised.epsilon) > promised.delta  # negative control


@pytest.mark.thorough
def test_the_columns_are_those_of_the_joint_law() -> None:
    """What `product_delta` multiplies is `DirectSum.pmf`, which `tests/test_direct_sum.py` compares with samples."""
    summed = direct_sum.direct_sum(point, k=2, epsilon=0.5, delta=0.3, accountant="advanced")
    table, _ = columns(summed.learner, 2, 1.0)
    with jax.enable_x64(True):
        law = np.asarray(jax.jit(summed.pmf)(MultiSample.create(wide.from_ints([1, 0], 1), [[1, 0], [1, 1]])))
    first, second = table[4 * 3 + 1][:-1], table[4 * 2 + 1][:-1]  # bottom="zero": no bottom
    np.testing.assert_allclose(law[:-1], np.outer(first, second).ravel(), rtol=1e-12)
    assert float(law[-1]) < 1e-12


# ------------------------------------------------------------------------------------- GenericLearner with thresholds


class Generic:
    """GenericLearner over thresholds on 2^bits points, with all its laws: P[the quantiles released, and the k hypotheses]."""

    def __init__(
        self,
        *,
        bits: int,
        k: int,
        n: int,
        extra: int = 1,
        levels: int = 1,
        accountant: str = "basic",
        spent: float = 0.8,
        left: float = 1.0,
        solver: Any = None,
        direct: bool = False,
    ) -> None:
        """Quantiles with 1 (the median) or 2 levels; `spent` epsilon on them, by the exponential mechanism, `left` on the hypotheses."""
        # A replaced example is two steps of add/remove, each of which replaces one point in a window of every level; but in the window of
        # the whole dataset, whose size is public, the two steps replace only one point.
        self.epsilon = spent / 2 if direct else spent / (4 * levels)
        self.levels, self.extra = levels, extra
        self.solver = solver or interior_point.exponential(bits=bits + extra, epsilon=self.epsilon)
        given: dict[str, Any] = {"solver": self.solver, "m": 1, "allow_unproved": True}
        if direct:
            sanitizer = cdf.release(quantiles=quantiles.direct(**given, fractions=[0.5]))
        else:
            sanitizer = cdf.release(quantiles=quantiles.recursive(**given, bits=bits, depth=levels))
        promised = sanitizer.guarantee_under(REPLACE_ONE)
        assert solver is not None or promised.epsilon == pytest.approx(spent)
        self.learner = generic.learner(
            sanitizer=sanitizer,
            concepts=generic.thresholds(bits=bits),
            k=k,
            epsilon=promised.epsilon + left,
            delta=promised.delta + (0.0 if accountant == "basic" else 0.5),
            accountant=accountant,
        )
        self.told = np.asarray(list(itertools.combinations_with_replacement(range(2**bits), 2**levels - 1)))
        self.bits, self.data, self.pairs = bits, *datasets(bits, k, n)

    def told_law(self) -> np.ndarray:
        """P[each vector of quantiles] for every dataset."""
        found: dict[Any, np.ndarray] = {}
        laws = []
        for xs in self.data["x"][..., 0].tolist():
            if tuple(xs) not in found:
                law = recursive_law(xs, self.bits, extra=self.extra, levels=self.levels, m=1, epsilon=self.epsilon)
                found[tuple(xs)] = np.asarray([law.get(tuple(z), 0.0) for z in self.told.tolist()])
            laws.append(found[tuple(xs)])
        return np.asarray(laws)

    def given_law(self, *factors: float) -> list[np.ndarray]:
        """P[hypotheses | quantiles, dataset], (datasets, told, choices), for epsilon' times each factor: one program."""
        rows = jax.tree.map(lambda leaf: np.tile(leaf, (len(factors),) + (1,) * (leaf.ndim - 1)), self.data)
        spent = np.repeat(np.asarray(factors) * float(self.learner.each_epsilon), len(self.data["x"]))
        told = self.told[..., None].astype(np.uint32)

        def law(row: Any) -> Any:
            spender = dataclasses.replace(self.learner, each_epsilon=row["spent"])

            def choices(z: Any) -> Any:
                _, each, _ = spender.law_given(z, jnp.ones(z.shape[0], bool), multi(row))
                return functools.reduce(jnp.multiply.outer, list(each)).reshape(-1)

            return jnp.log(jax.vmap(choices)(jnp.asarray(told)) / len(told)).reshape(-1)

        p = exact.probabilities(law, {**rows, "spent": spent}) * len(told)
        return np.split(p.reshape(len(p), len(told), -1), len(factors))


GENERIC: dict[str, dict[str, Any]] = {
    "two points, two labels, three examples": {"bits": 1, "k": 2, "n": 3},
    "the median, directly": {"bits": 1, "k": 2, "n": 3, "extra": 0, "direct": True},
    "four points, the median directly": {"bits": 2, "k": 1, "n": 3, "extra": 0, "direct": True, "spent": 1.2},
    "four points, one example": {"bits": 2, "k": 1, "n": 1, "levels": 2},
    "four points, three examples": {"bits": 2, "k": 1, "n": 3, "levels": 2},
    "four points, two labels": {"bits": 2, "k": 2, "n": 2, "levels": 2, "extra": 0},
    "advanced": {"bits": 1, "k": 4, "n": 1, "accountant": "advanced", "spent": 0.1, "left": 0.25},
    "optimal": {"bits": 1, "k": 3, "n": 2, "accountant": "optimal", "spent": 0.1, "left": 0.5},
}
SLOW_GENERIC: dict[str, dict[str, Any]] = {
    "four points, four examples": {"bits": 2, "k": 1, "n": 4, "levels": 2},
    "four points, two labels, three examples": {"bits": 2, "k": 2, "n": 3, "levels": 2},
    "eight points": {"bits": 3, "k": 1, "n": 2, "levels": 2},
    "two points, three labels": {"bits": 1, "k": 3, "n": 3, "accountant": "optimal", "spent": 0.2},
}


@pytest.mark.parametrize("case", [*GENERIC, *(pytest.param(case, marks=pytest.mark.slow) for case in SLOW_GENERIC)])
def test_generic_learner_of_thresholds_keeps_its_promise(case: str) -> None:
    """The joint law of all released quantiles and all hypotheses, including the sanitizer's randomised ties."""
    subject = Generic(**(GENERIC | SLOW_GENERIC)[case])
    promised, told = subject.learner.guarantee(), subject.told_law()
    np.testing.assert_allclose(told.sum(axis=1), 1.0, rtol=1e-12)
    joint, careless = ((told[..., None] * given).reshape(len(told), -1) for given in subject.given_law(1.0, 40.0))
    found, leak = (delta_of(joint, subject.pairs, epsilon) for epsilon in (promised.epsilon, promised.epsilon / 8))
    assert found <= promised.delta + 1e-12 and leak > max(0.01, found)
    assert delta_of(careless, subject.pairs, promised.epsilon) > promised.delta + 0.01  # negative control


@pytest.mark.slow
def test_generic_learner_keeps_its_promise_when_its_median_may_fail() -> None:
    """For the median of one of 64 points, RecConcave with two levels, which spends delta and may give bottom: then nothing is told."""
    solver = interior_point.rec_concave(bits=6, epsilon=0.5, delta=0.05, promise=1.0)
    subject = Generic(bits=6, k=2, n=1, extra=0, solver=solver)
    promised, (given, careless) = subject.learner.guarantee(), subject.given_law(1.0, 40.0)

    def law(x: Any) -> Any:  # of the window: the point and the end of the domain
        window = jnp.stack([x, jnp.full_like(x, 63)])
        return jnp.log(jnp.maximum(solver.pmf(Points.create(window[:, None].astype(jnp.uint32))), 0.0))

    told = exact.probabilities(law, subject.data["x"][:, 0, 0])
    joint, broken = (np.c_[(told[:, :-1, None] * p).reshape(len(told), -1), told[:, -1]] for p in (given, careless))
    assert told[:, -1].min() > 0.1 and told[:, -1].max() < 0.9
    found, leak = (delta_of(joint, subject.pairs, epsilon) for epsilon in (promised.epsilon, promised.epsilon / 8))
    assert found <= promised.delta and leak > 0.01
    assert delta_of(broken, subject.pairs, promised.epsilon) > promised.delta + 0.01  # negative control


@pytest.mark.slow
def test_generic_runs_follow_the_law_that_was_verified() -> None:
    """Frequencies of both hypotheses over 6000 keys, ties broken at random; the laws for twice either budget are rejected."""
    subject = Generic(bits=2, k=2, n=3, levels=2, spent=8.0, left=6.0)
    place = int(np.flatnonzero((subject.data["x"][..., 0] == [0, 2, 2]).all(axis=1))[5])
    subject.data = {name: values[place : place + 1] for name, values in subject.data.items()}
    sample = multi({name: values[0] for name, values in subject.data.items()})
    drawn = runs(subject.learner, jax.random.split(jax.random.key(1), 6000), sample).hypothesis[..., 0]
    seen = np.bincount(np.asarray(drawn).astype(int) @ [5, 1], minlength=25)

    def law(told: np.ndarray, given: np.ndarray) -> np.ndarray:
        total = np.zeros((5, 5))
        for z, p, choices in zip(subject.told, told[0], given[0], strict=True):
            hypotheses = np.asarray([0, *(z + 1)])  # of equal ones all but the first have probability 0
            np.add.at(total, np.ix_(hypotheses, hypotheses), p * choices.reshape((len(z) + 1,) * 2))
        return total.reshape(-1)

    told, (given, careless) = subject.told_law(), subject.given_law(1.0, 2.0)
    assert fits(seen, law(told, given))
    subject.epsilon *= 2
    assert not fits(seen, law(subject.told_law(), given)) and not fits(seen, law(told, careless))  # negative controls


# ------------------------------------------------------------------------------------- rows drawn with replacement


def pure(k: int) -> Any:
    return direct_sum.direct_sum(pure_point, k=k, epsilon=1.0)


def pure_thresholds(k: int) -> Any:
    return direct_sum.direct_sum(threshold, k=k, epsilon=1.0)


def approximate(k: int) -> Any:
    return direct_sum.direct_sum(point, k=k, epsilon=1.0, delta=0.2)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "k", "n", "m"),
    [
        builders.thorough(pure, 1, 2, 9),
        builders.slow(pure, 2, 1, 6),
        (approximate, 1, 2, 7),
        pytest.param(pure_thresholds, 2, 1, 6, marks=pytest.mark.slow),
        pytest.param(pure_thresholds, 1, 3, 9, marks=pytest.mark.slow),
        pytest.param(approximate, 2, 1, 6, marks=pytest.mark.slow),
    ],
)
def test_empirical_learners_keep_their_promise(make: Any, k: int, n: int, m: int) -> None:
    """All m-row samples on two points, the k labels arbitrary: the law is the inner one's average over all m^n draws."""
    inner = make(k)
    learner = reductions.empirical(inner, n=n, rows=m)
    data, pairs = datasets(1, k, m)
    p = exact.probabilities(log_law(learner), data)
    for calibration in ("proved", "printed"):
        promised = reductions.empirical(inner, n=n, rows=m, calibration=calibration).guarantee()
        assert delta_of(p, pairs, promised.epsilon) <= promised.delta + 1e-12
    proved = learner.guarantee()
    assert delta_of(p, pairs, proved.epsilon / 8) > max(0.01, proved.delta / 4)
    # Negative control: always the first n rows, which is no sampling at all.
    unsampled = exact.probabilities(log_law(inner), jax.tree.map(lambda leaf: leaf[:, :n], data))
    assert delta_of(unsampled, pairs, proved.epsilon) > proved.delta + 0.01


@pytest.mark.slow
def test_empirical_runs_follow_the_law_that_was_verified() -> None:
    """Frequencies of both hypotheses over 6000 keys; the law of a sample with one example replaced is rejected."""
    learner = reductions.empirical(direct_sum.direct_sum(pure_point, k=2, epsilon=8.0), n=2, rows=3)
    sample, other = (
        MultiSample.create(wide.from_ints([0, 0, 1], 1), [[0, 1], [1, 0], last]) for last in ([0, 1], [1, 1])
    )
    drawn = runs(learner, jax.random.split(jax.random.key(2), 6000), sample).hypothesis
    outcome = np.where(drawn.zero, 2, np.asarray(drawn.position)[..., 0].astype(int))
    seen = np.bincount(outcome @ [3, 1], minlength=10)  # bottom is the last
    law = jax.jit(learner.pmf)  # a closure: the law is listed, so the domain must be known
    assert fits(seen, np.asarray(law(sample), np.float64))
    assert not fits(seen, np.asarray(law(other), np.float64))  # negative control


# ------------------------------------------------------------------------------------- several slices in one pass


def two_quantiles(epsilon: float, rate: float) -> tuple[Any, dict[int, list[int]]]:
    """(the mechanism, its gaps for every released count)."""
    solver = interior_point.exponential(bits=2, epsilon=epsilon)
    given: dict[str, Any] = {"count": 2, "size": 1, "slice_epsilon": rate, "count_epsilon": 0.5, "delta": 0.01}
    sliced = quantiles.sliced(solver=solver, **given, allow_unproved=True)
    return sliced, dict(enumerate(np.asarray(gaps_of(sliced, np.arange(80, dtype=np.int32))).tolist()))


def law_of_two(points: tuple[int, ...], plans: dict[int, list[int]], mechanism: Any) -> np.ndarray:
    """The joint law of two sliced quantiles of points of 2 bits, before they are sorted."""
    numbers = {name: float(getattr(mechanism, name)) for name in ("slice_epsilon", "count_epsilon")}
    return sliced_law(
        points, plans, domain=4, size=int(mechanism.size), epsilon=float(mechanism.solver.epsilon), **numbers
    )


@jax.jit
def gaps_of(sliced: Any, counts: Any) -> Any:
    return jax.vmap(sliced.gaps)(counts)


@pytest.mark.parametrize("largest", [4, pytest.param(6, marks=pytest.mark.slow)])
def test_two_sliced_quantiles_keep_their_guarantee(largest: int) -> None:
    """All multisets of at most `largest` points from a domain of four; one point is added or removed (ADD_OR_REMOVE_ONE)."""
    counts = exact.histograms(4, range(largest + 1))
    pairs = exact.neighbours(counts, ADD_OR_REMOVE_ONE)
    multisets = [tuple(np.repeat(np.arange(4), row).tolist()) for row in counts]

    def table(epsilon: float, rate: float) -> np.ndarray:
        sliced, plans = two_quantiles(epsilon, rate)
        return np.asarray([law_of_two(xs, plans, sliced).reshape(-1) for xs in multisets])

    p, broken = table(0.4, 0.8), table(12.0, 40.0)  # the latter without noise in the sizes, and with a careless solver
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    sliced, _ = two_quantiles(0.4, 0.8)
    for delta, accountant in itertools.product((0.01, 0.1, 0.3), ("slicing", "optimal")):
        promised = dataclasses.replace(sliced, delta=delta, accountant=accountant).guarantee()
        assert delta_of(p, pairs, promised.epsilon) <= promised.delta
        assert accountant == "slicing" or delta_of(broken, pairs, promised.epsilon) > promised.delta  # negative control
    run = slicing.Run(0.8, sliced.solver.guarantee(), slices=4, extra=(Guarantee(0.5, 0.0, ADD_OR_REMOVE_ONE),))
    for epsilon in (0.0, 0.1, 0.2, 0.5, 1.0, 2.0):
        assert delta_of(p, pairs, epsilon) <= run.delta(epsilon) < delta_of(broken, pairs, epsilon)
    assert delta_of(p, pairs, 0.0) > 0.05 and delta_of(p, pairs, 0.2) > 0.005


@pytest.mark.slow
def test_two_sliced_quantiles_follow_the_law_that_was_verified() -> None:
    (sliced, plans), (greedy, _) = two_quantiles(0.4, 0.8), two_quantiles(2.0, 0.8)
    xs = (0, 1, 1, 3)
    points = Points.create(wide.from_ints(list(xs), 2))
    drawn = runs(sliced, jax.random.split(jax.random.key(3), 6000), points).hypothesis[..., 0]
    seen = np.bincount(np.asarray(drawn).astype(int) @ [4, 1], minlength=16)
    for each, right in ((sliced, True), (greedy, False)):
        law = law_of_two(xs, plans, each)
        assert fits(seen, np.triu(law + np.tril(law, -1).T).reshape(-1)) == right


def insertions(bits: int, largest: int, ordered: bool) -> tuple[list[Any], np.ndarray]:
    """All lists of points of the plane, or all increasing ones, and the pairs that differ by an inserted point."""
    plane = list(itertools.product(range(2**bits), repeat=2))
    several = itertools.combinations_with_replacement if ordered else lambda one, n: itertools.product(one, repeat=n)
    lists = [xs for n in range(largest + 1) for xs in several(plane, n)]
    place = {xs: i for i, xs in enumerate(lists)}
    pairs = {
        (i, place[smaller])
        for xs, i in place.items()
        for j in range(len(xs))
        if (smaller := xs[:j] + xs[j + 1 :]) in place
    }
    return lists, np.asarray([*pairs, *((b, a) for a, b in pairs)])


@pytest.mark.parametrize(
    ("bits", "largest", "ordered"),
    [
        (1, 4, False),
        (2, 3, True),
        pytest.param(1, 5, False, marks=pytest.mark.slow),
        pytest.param(1, 8, True, marks=pytest.mark.slow),
        pytest.param(2, 4, True, marks=pytest.mark.slow),
    ],
)
def test_rectangles_in_the_plane_are_private_exactly(bits: int, largest: int, ordered: bool) -> None:
    """Noisy sizes by the slicing accountant, public ones by composition; the order of rows breaks ties, so lists matter, not multisets."""
    lists, pairs = insertions(bits, largest, ordered)

    def table(rate: float, spent: float, epsilon: float) -> np.ndarray:
        given: dict[str, Any] = {"size": 1, "bits": bits, "rate": rate, "spent": spent, "epsilon": epsilon}
        return np.asarray([plane_law(xs, **given) for xs in lists])

    public, noisy, broken = table(40.0, 0.7, 0.7), table(0.8, 0.4, 0.4), table(40.0, 12.0, 0.4)
    np.testing.assert_allclose(noisy.sum(axis=1), 1.0, rtol=1e-12)
    assert delta_of(public, pairs, 5 * 0.7) < 1e-9 and delta_of(public, pairs, 0.7) > 0.01
    run = slicing.Run(0.8, Guarantee(0.4, 0.0, ADD_OR_REMOVE_ONE), slices=5)
    for epsilon in (0.2, 0.5, 0.8, 1.2):
        assert delta_of(noisy, pairs, epsilon) <= run.delta(epsilon) < delta_of(broken, pairs, epsilon)
    assert (
        delta_of(noisy, pairs, 0.2) > 0.01 and delta_of(broken, pairs, 5 * 0.7) > 0.1
    )  # not vacuous; a negative control


@pytest.mark.slow
def test_rectangles_in_the_plane_follow_the_law_that_was_verified() -> None:
    """Frequencies of the four faces and of all-zero; the law of a solver with twice the epsilon is rejected."""
    whole = rectangles.plan(axes=2, bits=1, accountant="basic", epsilon=1.0, delta=0.0, beta=0.1, solver="exponential")
    compute = Guarantee(1.5, 0.0, ADD_OR_REMOVE_ONE)
    changed: dict[str, Any] = {"size": 1, "slice_epsilon": 0.8, "compute": compute, "threshold": 1, "capacity": 15}
    learner = rectangles.from_plan(dataclasses.replace(whole, **changed))
    points = ((0, 1), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1))
    data = boxes.Examples.create(jnp.asarray(points, jnp.uint32)[..., None], np.ones(len(points), int))
    drawn = runs(learner, jax.random.split(jax.random.key(4), 6000), data)
    faces = np.stack([drawn.hypothesis.low[..., 0], drawn.hypothesis.high[..., 0]], axis=-1).reshape(-1, 4).astype(int)
    seen = np.bincount(np.where(drawn.info["enough"], faces @ [8, 4, 2, 1], 16), minlength=17)
    law = functools.partial(plane_law, points, size=1, bits=1, rate=0.8, epsilon=1.5)
    assert fits(seen, law(spent=1.5)) and not fits(seen, law(spent=3.0))
