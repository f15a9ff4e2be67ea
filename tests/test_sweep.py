"""`dpjax.least_n`: laws and trials agree, learners written by others work, nothing depends on what else is searched."""

import builtins
import collections
import contextlib
import dataclasses
import fractions
import functools
import math
import operator
import types
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib import pyplot

import dpjax
from dpjax import Outcome, Sample, Status, least_n
from dpjax.concepts import thresholds as concept
from dpjax.core.pytree import frozen
from dpjax.data.algorithm import Algorithm
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.plotting import style
from dpjax.trials import cells, contents, engine, search, sweep
from dpjax.trials.estimates import Estimate
from dpjax.trials.shared import Memory
from dpjax.trials.store import as_json


def exponential(bits: int) -> Any:
    return thresholds.exponential(bits=bits, epsilon=2.0)


def log_uniform(bits: int) -> Any:
    return concept.log_uniform(bits=bits)


class Largest:
    """The threshold right after the last one: a learner as somebody else would write it, no pytree and without a law."""

    def __init__(self, bits: int) -> None:
        self.limbs = wide.limbs_for(bits + 1)

    def __call__(self, key: Any, sample: Any) -> Any:
        ones = (jnp.arange(sample.x.shape[0], dtype=jnp.int32) < sample.n_valid) & (sample.y == 1)
        last = jnp.max(jnp.where(ones, sample.x[:, 0], 0))
        return wide.from_uint32(last + 1, self.limbs)


class Coin(Largest):
    """The same with an `Outcome`, bottom half of the time."""

    def __call__(self, key: Any, sample: Any) -> Any:
        status = jnp.where(jax.random.bernoulli(key), Status.OK, Status.BOTTOM)
        return Outcome.of(super().__call__(key, sample), status, {})


one_largest = functools.cache(lambda limbs: Largest(32 * limbs - 1))


def largest(bits: int) -> Any:
    """One object for all widths of so many limbs, and so one program."""
    return one_largest(wide.limbs_for(bits + 1))


coin = functools.cache(Coin)


GIVEN: dict[str, Any] = {
    "distribution": log_uniform,
    "over": {"bits": [6, 8]},
    "alpha": 0.2,
    "beta": 0.2,
    "start": 31,
    "maximum": 400,
    "trials": 512,
    "draws": 32,
}
ONE = {**GIVEN, "over": {"bits": [6]}}


@pytest.fixture(scope="module")
def curve() -> Any:
    return least_n({"exponential": exponential, "largest": largest}, **GIVEN)


def test_rows(curve: Any) -> None:
    rows = curve.to_rows()
    assert [(row["series"], row["bits"], row["by"]) for row in rows] == [
        ("exponential", 6, "law"),
        ("exponential", 8, "law"),
        ("largest", 6, "trials"),
        ("largest", 8, "trials"),
    ]
    for row in rows:
        assert list(row) == ["series", "bits", "n", "low", "high", "by", "reason"]
        assert row["low"] <= row["n"] <= row["high"] and row["reason"] is None
    by_name = {(row["series"], row["bits"]): row["n"] for row in rows}
    assert by_name["largest", 6] < by_name["exponential", 6] < by_name["exponential", 8]
    rows[0]["n"] = -1
    assert curve.to_rows()[0]["n"] != -1  # copies
    assert repr(curve).splitlines()[1].split() == ["series", "bits", "n", "low", "high", "by"]


@pytest.mark.slow  # `test_trials`
def test_trials_agree_with_laws(curve: Any) -> None:
    (trials,) = least_n({"exponential": exponential}, **{**ONE, "trials": 2**12}, by="trials").to_rows()
    law = curve.to_rows()[0]
    assert trials["by"] == "trials" and abs(trials["n"] - law["n"]) <= 0.15 * law["n"]
    assert max(law["low"], trials["low"]) <= min(law["high"], trials["high"])


@pytest.mark.thorough
def test_the_n_found_is_the_least_by_the_law_itself() -> None:
    """Every n from 1 on, by laws averaged without the search, the engine and the store."""
    found = least_n({"exponential": exponential}, **{**ONE, "rtol": 0.0}).to_rows()[0]
    cell = cells.Cell("", {}, {"bits": 6}, None, None, effort=None).number  # type: ignore[arg-type]

    @jax.jit
    def failure(n: Any) -> Any:
        root = jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), cell)
        keys = jax.vmap(lambda t: jax.random.fold_in(root, t))(jnp.arange(32, dtype=jnp.uint32))
        experiment = pac.Experiment(learner=exponential(6), distribution=log_uniform(6), n=n, alpha=0.2, capacity=63)
        return jnp.mean(jax.vmap(lambda key: pac.failure(key, experiment))(keys))

    means = [float(failure(jnp.int32(n))) for n in range(1, 64)]
    assert found["n"] == 1 + max(n for n, mean in enumerate(means, 1) if mean > 0.2)


@pytest.mark.thorough
def test_other_series_and_settings_change_nothing(curve: Any) -> None:
    alone = least_n({"largest": largest}, **{**GIVEN, "over": {"bits": [8]}}).to_rows()
    assert alone == [row for row in curve.to_rows() if row["series"] == "largest" and row["bits"] == 8]
    other = least_n({"exponential": exponential}, **{**ONE, "seed": 1, "rtol": 0.0}).to_rows()[0]
    assert other != curve.to_rows()[0] and abs(other["n"] - curve.to_rows()[0]["n"]) < 10


def test_a_grid_of_numbers_is_searched_as_each_alone() -> None:
    """Together the settings share samples and a program; the numbers are the same to the last digit."""
    given = {**GIVEN, "distribution": log_uniform, "draws": 8}
    made = {"exponential": lambda bits, epsilon: thresholds.exponential(bits=bits, epsilon=epsilon)}
    epsilons = [1.0, 1.1, 2.0]
    together = least_n(made, **{**given, "over": {"bits": [8], "epsilon": epsilons}}).to_rows()
    alone = [
        least_n(made, **{**given, "over": {"bits": [8], "epsilon": [epsilon]}}).to_rows()[0] for epsilon in epsilons
    ]
    assert together == alone and together[0]["n"] > together[2]["n"]


def test_there_is_room_for_half_of_what_a_theorem_asks_for() -> None:
    class Asks(Algorithm):
        def __init__(self, asked: int | None) -> None:
            self.asked = asked

        def sample_size(self, *, alpha: float, beta: float) -> int:
            if self.asked is None:
                raise ValueError("alpha")
            return self.asked

    asked = [1, 2047, 2048, 5000, 10**9, None]
    assert [sweep._room(Asks(one), 0.1, 0.1, 64) for one in asked] == [1023, 1023, 4095, 4095, 4095, 4095]
    assert [sweep._room(Largest(6), 0.1, 0.1, start) for start in (64, 200)] == [255, 1023]


@pytest.mark.thorough
def test_a_distribution_takes_what_it_names() -> None:
    """The settings that a distribution is made from decide which data are drawn."""
    over = {"bits": [6], "epsilon": [1.0, 2.0]}
    made = {"exponential": lambda bits, epsilon: exponential(bits)}
    given = {**GIVEN, "over": over, "draws": 8}
    one, other = least_n(made, **given).to_rows()
    assert {**one, "epsilon": 2.0} == other
    one, other = least_n(made, **{**given, "distribution": lambda bits, epsilon: log_uniform(bits)}).to_rows()
    assert one["low"] != other["low"] or one["n"] != other["n"]
    assert least_n(made, **{**given, "distribution": lambda **all: log_uniform(all["bits"])}).to_rows() == [one, other]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (collections.deque([1]), collections.deque([2])),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (operator.itemgetter(1), operator.itemgetter(2)),
        (bytearray(b"1"), bytearray(b"2")),
        ([1].count, [2].count),
        (
            functools.reduce(lambda inner, _: [inner], range(12), 1),
            functools.reduce(lambda inner, _: [inner], range(12), 2),
        ),
    ],
)
def test_what_an_algorithm_holds_is_told_apart_also_where_it_is_no_attribute(one: Any, other: Any) -> None:
    def text(holds: Any) -> str:
        return contents.text(contents.of(lambda bits: (bits, holds)))

    assert text(one) == text(one) != text(other)


def test_classes_of_one_name_in_two_modules_are_told_apart() -> None:
    one, other = (type("Learner", (), {"__module__": module}) for module in ("lab_a", "lab_b"))
    texts = {contents.text(contents.of(given)) for given in (one, other, one(), other())}
    assert len(texts) == 2


def test_other_random_words_are_another_result() -> None:
    before = engine.width()
    with jax.threefry_partitionable(False):
        assert engine.width() != before


def test_a_domain_smaller_than_the_distribution_s_is_refused_by_name() -> None:
    wider = {**ONE, "distribution": lambda bits: concept.log_uniform(bits=bits + 1), "over": {"bits": [4]}}
    with pytest.raises(
        ValueError, match=r"series 'one' at {'bits': 4} .* got NaN: data outside the algorithm's domain"
    ):
        least_n({"one": exponential}, **wider)


class Refusing(Largest):
    """Takes points below 16 alone, which the data need not be."""

    def __call__(self, key: Any, sample: Any) -> Any:
        status = jnp.where(jnp.any(sample.x >= 16), Status.OUTSIDE_DOMAIN, Status.OK)
        return Outcome.of(super().__call__(key, sample), status, {})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sweep_of", "learner"),
    [
        (least_n, Refusing),
        builders.thorough(least_n, thresholds.erm),
        builders.thorough(dpjax.failures, thresholds.erm),
    ],
)
def test_runs_that_take_no_data_are_refused_by_name(sweep_of: Any, learner: Any) -> None:
    """Their failures would look like those of too few examples."""
    numbers = {"beta": 0.1, "maximum": 60, "start": 60} if sweep_of is least_n else {"n": [30, 60]}
    with pytest.raises(ValueError, match=r"series 'one' at {'bits': 4} .* got runs that ended with OUTSIDE_DOMAIN"):
        sweep_of(
            {"one": learner},
            distribution=lambda bits: concept.log_uniform(bits=bits + 1),
            over={"bits": [4]},
            alpha=0.25,
            by="trials",
            trials=64,
            **numbers,
        )


@pytest.mark.parametrize("by", ["law", "trials"])
def test_a_distribution_that_draws_with_numpy_is_refused(by: str) -> None:
    """NumPy's numbers would be drawn once and for all, when the program is compiled."""
    law = concept.log_uniform(bits=4)

    class WithNumPy:
        within, error = law.within, law.error

        def sample(self, key: Any, capacity: int, n: Any) -> Any:
            return law.sample(jax.random.key(np.random.randint(2**31)), capacity, n)

    given: Any = {"distribution": WithNumPy, "over": {"bits": [4]}, "n": 15, "alpha": 0.2, "by": by}
    with pytest.raises(TypeError, match=r"distribution .* must draw with jax\.random"):
        dpjax.failures({"exponential": exponential}, **given)


@pytest.mark.thorough
def test_probabilities_beyond_1_are_refused_whatever_setting_has_them() -> None:
    """The first setting of a series is compared with runs, the others are not."""

    @frozen
    class Beyond:  # a pytree, so that one program has the laws of both settings
        above: Any

        def __call__(self, key: Any, sample: Any) -> Any:
            return one_largest(1)(key, sample)

        def probability(self, sample: Any, event: Any) -> Any:
            answer = one_largest(1)(None, sample)
            inside = jnp.where(wide.less_equal(event[0], answer) & wide.less(answer, event[1]), 1.0, 0.0)
            return jnp.stack([inside - self.above, 1 - inside + self.above])

    given: Any = {"distribution": lambda: concept.log_uniform(bits=4), "n": 15, "alpha": 0.2}
    with pytest.raises(ValueError, match="must have a law whose probabilities are from 0 to 1"):
        dpjax.failures({"beyond": Beyond}, over={"above": [0.0, 2.0]}, **given)


def test_probabilities_below_0_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """So are those above 1; rounding errors are let through. A mean over draws would hide them all."""
    effort = cells.Effort(level=0.95, seed=0, by=None, draws=2, trials=1)
    cell = cells.cells({"mine": Largest}, log_uniform, {"bits": [6]}, effort, ())[0]
    for least, words in ((-1e-5, None), (-0.01, "from 0 to 1"), (1.01, "from 0 to 1"), (math.nan, "got NaN")):
        law = np.tile([[least], [0.5]], cells.TOGETHER)
        monkeypatch.setattr(cells.engine, "evaluate", lambda *args, law=law, **kwargs: law)
        with pytest.raises(ValueError, match=words) if words else contextlib.nullcontext():
            cells.laws([(cell, cell.experiment(10, 0.1, 255))], store=Memory())


def test_runs_of_one_bad_status_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = cells.Effort(level=0.95, seed=0, by=None, draws=2, trials=1)
    cell = cells.cells({"mine": Largest}, log_uniform, {"bits": [6]}, effort, ())[0]
    for status in Status:
        monkeypatch.setattr(
            cells.engine,
            "evaluate",
            lambda *args, draws, status=status, **_: (np.full(draws, status), np.zeros(draws, bool)),
        )
        refused = status in (Status.OUTSIDE_DOMAIN, Status.BAD_PARAMETER)
        with pytest.raises(ValueError, match=status.name) if refused else contextlib.nullcontext():
            cell.refuse_unheard(cell.experiment(10, 0.1, 255))


def test_runs_that_never_succeed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where trials found no n: a law would have shown it already."""
    asked, known = [], Estimate(1.0, 1.0, 1.0, 0.95, 1)
    monkeypatch.setattr(cells.Cell, "refuse_unheard", lambda self, experiment: asked.append(int(experiment.n)))
    monkeypatch.setattr(cells, "refuse_draws_of_their_own", lambda given: None)
    for by, n, wanted in (("trials", None, [40]), ("trials", 40, []), ("law", None, [])):
        found = search.LeastN(n, 40, n, "found" if n else "above maximum", ((20, known), (40, known)))
        monkeypatch.setattr(sweep, "_together", lambda searches, *rest, found=found: [found for _ in searches])
        least_n({"exponential": exponential}, **{**GIVEN, "over": {"bits": [6]}}, by=by)
        assert asked == wanted
        asked.clear()


def test_a_law_is_kept_for_what_was_asked() -> None:
    def key(n: int = 10, alpha: float = 0.1, seed: int = 0, draws: int = 2) -> str:
        effort = cells.Effort(level=0.95, seed=seed, by=None, draws=draws, trials=1)
        cell = cells.cells({"mine": Largest}, log_uniform, {"bits": [6]}, effort, ())[0]
        return as_json(cells._law_key(cell, cell.experiment(n, alpha, 255)))

    assert len({key(), key(n=11), key(alpha=0.2), key(seed=1), key(draws=3), key()}) == 5


def test_a_large_array_is_told_apart_by_a_short_key() -> None:
    one, other = np.arange(10**5), np.arange(10**5)
    other[-1] += 1
    described = [as_json(contents.of(each)) for each in (one, one.copy(), other, one.reshape(2, -1))]
    assert described[0] == described[1] and len(set(described)) == 3 and len(described[0]) < 200


def test_the_same_numbers_of_another_type_are_another_result() -> None:
    """200 of uint8 and of int32 differ once they are doubled."""
    kinds = (np.uint8, np.int32, np.float32)
    assert len({as_json(contents.of(np.array([200], kind))) for kind in kinds}) == 3


def test_a_result_is_kept_for_its_rows() -> None:
    """A stranger's draws may depend on how many rows there are."""
    effort = cells.Effort(level=0.95, seed=0, by=None, draws=2, trials=1)
    cell = cells.cells({"mine": Largest}, log_uniform, {"bits": [6]}, effort, ())[0]
    assert cell.key(cell.experiment(10, 0.1, 15), "law") != cell.key(cell.experiment(10, 0.1, 255), "law")


def test_a_distribution_that_takes_no_such_setting_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="distribution must be a function of some of the settings, lambda bits: "):
        least_n({"mine": Largest}, **{**ONE, "distribution": lambda other: log_uniform(other)})


@pytest.mark.parametrize("name", ["draws", "trials"])
def test_more_trials_than_a_cell_has_are_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be from \d to 4294967296"):
        least_n({"mine": Largest}, **{**ONE, name: 2**33})


class NoNumber:
    """A distribution whose error is NaN."""

    def sample(self, key: jax.Array, capacity: int, n: int) -> jax.Array:
        return jax.random.uniform(key, (capacity,))

    def error(self, hypothesis: Any) -> Any:
        return hypothesis * jnp.nan


@pytest.mark.thorough
def test_errors_that_are_no_numbers_are_not_failures() -> None:
    given: dict[str, Any] = {"distribution": NoNumber, "over": {"s": [1]}, "n": 30, "alpha": 0.2, "trials": 32}
    with pytest.raises(ValueError, match=r"series 'a' at .* must have errors that are numbers, got NaN"):
        dpjax.failures({"a": lambda s: lambda key, sample: jax.random.uniform(key)}, **given)


def test_a_law_that_is_none_is_refused_by_name() -> None:
    class Lawless(Largest):
        """NaN, as for data outside its domain."""

        def probability(self, sample: Any, event: Any) -> Any:
            return jnp.full(2, jnp.nan)

    with pytest.raises(ValueError, match=r"series 'one' at .* must have a law on what its distribution draws, got NaN"):
        least_n({"one": functools.cache(Lawless)}, **ONE)


class Swapped(Largest):
    """Says how likely it is to fail where it should say how likely it is to succeed."""

    def probability(self, sample: Any, event: Any) -> Any:
        answer = self(jax.random.key(0), sample)
        inside = wide.less_equal(event[0], answer) & wide.less(answer, event[1])
        return jnp.stack([~inside, inside]).astype(float)


class Doubled(Swapped):
    def probability(self, sample: Any, event: Any) -> Any:
        return jnp.maximum(*super().probability(sample, event)) * jnp.ones(2)


class Alone(Swapped):
    def probability(self, sample: Any, event: Any) -> Any:
        return super().probability(sample, event)[0]


class Slip(Swapped):
    def probability(self, sample: Any, event: Any) -> Any:
        return sample.nothing


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (Swapped, ValueError, r"got a failure probability of [^0]\S* on 16 samples of n = 60, where 0\S* of 1024 runs"),
        builders.thorough(
            Doubled, ValueError, r"got a failure probability of 1 on 16 samples of n = 60, where 0\S* of 1024 runs"
        ),
        (Alone, ValueError, r"must return \(P\[event\], P\[not, or bottom\]\), of shape \(2,\), got shape \(\)"),
        (Slip, AttributeError, "nothing"),
    ],
)
def test_laws_of_strangers_are_not_taken_for_granted(make: Any, error: type[Exception], words: str) -> None:
    """A wrong law is refused: trials do not replace it, and it gives no answer."""
    given = {"distribution": log_uniform, "over": {"bits": [6]}, "alpha": 0.2, "trials": 16}
    with pytest.raises(error, match=words):
        dpjax.failures({"mine": make}, **given, n=60)


def test_a_law_is_held_against_its_runs_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """If half of 1,024 runs fail, Hoeffding's bound allows 0.075 more or less, and much less if hardly any do."""
    effort = cells.Effort(level=0.95, seed=0, by=None, draws=16, trials=1)
    cell = cells.cells({"mine": Largest}, log_uniform, {"bits": [6]}, effort, ())[0]
    monkeypatch.setattr(cells.tracing, "untraced", lambda *args: False)
    monkeypatch.setattr(cells.tracing, "is_pure", lambda *args: True)
    half = ((0.0, False), (0.42, False), (0.43, True), (0.57, True), (0.58, False), (1.0, False))
    few = ((0.0002, False), (0.0027, False), (0.0031, True), (0.039, True), (0.042, False))
    for seen, claims in ((0.5, half), (0.0146, few), (0.0, ((0.0, True), (0.01, True), (0.012, False)))):
        monkeypatch.setattr(cells.engine, "evaluate", lambda *a, draws, seen=seen, **kwargs: np.full((draws, 2), seen))
        for stated, right in claims:
            with contextlib.nullcontext() if right else pytest.raises(ValueError, match="a law that its runs follow"):
                assert cell.compared(cell.experiment(10, 0.1, 255), [stated] * 20) == [seen, seen]


@pytest.mark.thorough
def test_a_right_law_of_a_stranger_is_taken() -> None:
    class Right(Swapped):
        def probability(self, sample: Any, event: Any) -> Any:
            return super().probability(sample, event)[::-1]

    given = {"distribution": log_uniform, "over": {"bits": [6]}, "alpha": 0.05, "draws": 2, "n": 20}
    assert dpjax.failures({"law": Right}, **given).rows[0]["by"] == "law"


@pytest.mark.thorough
def test_an_algorithm_that_inherits_from_ours_is_compared() -> None:
    ours = exponential(6)

    @frozen
    class Mine(type(ours)):  # type: ignore[misc]
        def law(self, view: Any, event: Any) -> Any:
            return super().law(view, event)[::-1]

    def make(bits: int) -> Any:
        return Mine(**{field.name: getattr(ours, field.name) for field in dataclasses.fields(ours) if field.init})

    with pytest.raises(ValueError, match="must have a law that its runs follow"):
        dpjax.failures({"mine": make}, distribution=log_uniform, over={"bits": [6]}, n=60, alpha=0.2, draws=2)


@pytest.mark.thorough
def test_a_law_that_was_refused_is_not_kept(tmp_path: Any) -> None:
    class Mine(Swapped):
        swapped = True

        def probability(self, sample: Any, event: Any) -> Any:
            law = super().probability(sample, event)
            return law if type(self).swapped else law[::-1]

    given = {
        "distribution": log_uniform,
        "over": {"bits": [6]},
        "alpha": 0.2,
        "n": 60,
        "draws": 2,
        "store": tmp_path / "s",
    }
    with pytest.raises(ValueError, match="must have a law that its runs follow"):
        dpjax.failures({"mine": lambda bits: Mine(bits)}, **given)
    Mine.swapped = False
    found = dpjax.failures({"mine": lambda bits: Mine(bits)}, **given).rows[0]["failure"]
    assert found < 0.5 and found == dpjax.failures({"mine": lambda bits: Mine(bits)}, **given).rows[0]["failure"]


@pytest.mark.thorough
def test_a_law_of_what_cannot_be_batched_is_taken() -> None:
    class Called(Swapped):
        def __call__(self, key: Any, sample: Any) -> Any:
            answer = super().__call__(key, sample)
            return jax.pure_callback(lambda given: given, answer, answer)

        def probability(self, sample: Any, event: Any) -> Any:
            answer = Largest.__call__(self, None, sample)
            inside = wide.less_equal(event[0], answer) & wide.less(answer, event[1])
            return jnp.stack([inside, ~inside]).astype(float)

    given = {"distribution": log_uniform, "over": {"bits": [6]}, "alpha": 0.2, "n": 60, "draws": 2}
    assert dpjax.failures({"mine": Called}, **given).rows[0]["by"] == "law"


@pytest.mark.thorough
def test_a_law_that_is_not_implemented_is_none() -> None:
    class Elsewhere(Swapped):
        def probability(self, sample: Any, event: Any) -> Any:
            raise NotImplementedError

    given = {"distribution": log_uniform, "over": {"bits": [6]}, "alpha": 0.05, "trials": 16, "n": 60}
    assert dpjax.failures({"trials": Elsewhere}, **given).rows[0]["by"] == "trials"


def test_a_maximum_below_the_usual_start_is_where_the_search_starts() -> None:
    row = least_n({"exponential": exponential}, **{**ONE, "start": None, "maximum": 50}).to_rows()[0]
    assert row["n"] is not None and row["n"] <= 50


def test_what_cannot_be_told_apart_is_refused() -> None:
    for held in (memoryview(b"1"), (i for i in range(3))):
        with pytest.raises(TypeError, match="must hold nothing but what can be copied"):
            contents.of(lambda bits, held=held: (bits, held))
    with pytest.raises(TypeError, match="objects within objects more than 32 times"):
        contents.of(functools.reduce(lambda inner, _: [inner], range(40), 1))


@pytest.mark.slow
def test_what_does_not_release_fails() -> None:
    row = least_n({"coin": coin}, **{**ONE, "beta": 0.4, "maximum": 63}).to_rows()[0]
    assert row["n"] is None and row["high"] is None and row["reason"] == search.ABOVE_MAXIMUM
    assert least_n({"coin": coin}, **{**ONE, "beta": 0.6}).to_rows()[0]["n"] is not None


@pytest.mark.slow
def test_a_killed_run_goes_on(curve: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**GIVEN, "over": {"bits": [6, 8]}, "store": tmp_path / "store"}

    real, calls = search._next, []

    def killed(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return real(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(search, "_next", killed)
        least_n({"largest": largest}, **given)
    lines = (tmp_path / "store/records.jsonl").read_text().splitlines()
    assert len(lines) > 3
    whole = least_n({"largest": largest}, **given)
    again = (tmp_path / "store/records.jsonl").read_text().splitlines()
    assert again[: len(lines)] == lines
    assert whole.to_rows() == least_n({"largest": largest}, **given).to_rows()
    assert whole.to_rows() == [row for row in curve.to_rows() if row["series"] == "largest"]  # without a store
    assert (tmp_path / "store/records.jsonl").read_text().splitlines() == again
    # Another epsilon under the same name is not taken for what is stored.
    small = {**given, "over": {"bits": [6]}}
    first, second = (
        least_n({"same": lambda bits: thresholds.exponential(bits=bits, epsilon=epsilon)}, **small).to_rows()[0]["n"]  # noqa: B023
        for epsilon in (2.0, 1.0)
    )
    assert second > first


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    rate: float

    def __call__(self, key: Any, sample: Any) -> Any:
        return wide.from_uint32(jnp.uint32(self.rate), 1)


def _closed(rate: float) -> Any:
    return lambda key, sample: Slotted(rate)(key, sample)


def _holding(held: Any) -> Any:
    learner = Largest(6)
    learner.held = held  # type: ignore[attr-defined]
    return learner


LIKE = {
    "slots": Slotted,
    "a closure": _closed,
    "a jitted closure": lambda rate: jax.jit(_closed(rate)),
    "a wrapper": lambda rate: functools.update_wrapper(_holding(rate), _closed(0)),
    "a default": lambda rate: lambda key, sample, rate=rate: Slotted(rate)(key, sample),
    "a partial": lambda rate: functools.partial(lambda rate, key, sample: Slotted(rate)(key, sample), rate),
    "a method": lambda rate: Slotted(rate).__call__,
    "a dict": lambda rate: _holding({"rate": rate}),
    "a set": lambda rate: _holding({rate}),
    "a fraction": lambda rate: _holding(fractions.Fraction(rate)),
    "a key": lambda rate: _holding(jax.random.key(rate)),
}


@pytest.mark.parametrize("make", LIKE.values(), ids=LIKE.keys())
def test_a_stored_result_is_that_of_the_same_numbers(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a stranger's learner keeps its numbers, and however often it is made anew; and of the same versions."""
    effort = cells.Effort(level=0.95, seed=0, by=None, draws=2, trials=1)

    def key(rate: int) -> str:
        cell = cells.cells({"mine": lambda bits: make(rate)}, log_uniform, {"bits": [6]}, effort, ())[0]
        return as_json(cell.key(cell.experiment(10, 0.1, 255), cells.TRIALS))

    assert key(1) == key(1) != key(2)
    with jax.enable_x64():
        wide_key = key(1)
        assert key(1) == wide_key
    assert key(1) != wide_key
    before = key(1)
    monkeypatch.setattr(cells.engine, "versions", lambda: {"jax": "0.1.2"})
    assert key(1) != before


@pytest.mark.slow
def test_several_settings_and_functions() -> None:
    plain = largest(6).__call__  # a function of (key, sample)
    over = {"bits": [6], "share": [0.25, 0.5]}
    distribution = lambda bits, share: concept.uniform(bits=bits, target=int(share * 2**bits))  # noqa: E731
    made = {"largest": lambda bits, share: plain}
    rows = least_n(made, **{**GIVEN, "over": over, "distribution": distribution}).to_rows()
    assert [(row["bits"], row["share"]) for row in rows] == [(6, 0.25), (6, 0.5)]


def test_a_curve_is_drawn_and_tabulated(curve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = curve.plot()
    assert axes.get_xlabel() == "bits" and [text.get_text() for text in axes.get_legend().get_texts()] == [
        "exponential",
        "largest",
    ]
    assert curve.plot(axes) is axes
    pyplot.close(axes.figure)
    real = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="pip install pandas"):
        curve.to_pandas()


def test_lines_follow_the_setting_that_varies() -> None:
    rows = tuple(
        {"series": "mine", "bits": 8, "epsilon": epsilon, "share": share, "n": 10, "low": 9, "high": None}
        for epsilon in (2.0, 0.5, 1.0)
        for share in (0.1, 0.1 + 0.2)
    )
    axes = sweep.Curve(rows, ("bits", "epsilon", "share"), 0.1, 0.1, 0.95).plot()
    assert axes.get_xlabel() == "epsilon"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["mine, share = 0.1", "mine, share = 0.3"]
    assert [bars.lines[0].get_xdata().tolist() for bars in axes.containers] == [[0.5, 1.0, 2.0]] * 2
    pyplot.close(axes.figure)


def test_bars_reach_from_low_to_high() -> None:
    figure, axes = style.figure()
    style.points(axes, [1, 2], [5.0, 6.0], [4.0, 2.0], [7.0, 9.0])
    (bars,) = axes.containers[0].lines[2]
    assert [bar[:, 1].tolist() for bar in bars.get_segments()] == [[4.0, 7.0], [2.0, 9.0]]
    pyplot.close(figure)


def test_axes_are_logarithmic_from_a_factor_of_8_on() -> None:
    for last, scale in ((79, "linear"), (80, "log")):
        rows = tuple(
            {"series": "mine", "bits": b, "n": n, "low": n - 2, "high": n + 5} for b, n in ((8, 10), (9, last))
        )
        axes = sweep.Curve(rows, ("bits",), 0.1, 0.1, 0.95).plot()
        (bars,) = axes.containers[0].lines[2]
        assert [bar[:, 1].tolist() for bar in bars.get_segments()] == [[8, 15], [last - 2, last + 5]]
        assert (axes.get_xscale(), axes.get_yscale()) == ("linear", scale)
        pyplot.close(axes.figure)


def drawn(*rows: tuple[Any, ...], ax: Any = None) -> Any:
    names = ("series", "kind", "n", "low", "high")
    rows = tuple(dict(zip(names, row, strict=True)) for row in rows)
    return sweep.Curve(rows, ("kind",), 0.1, 0.1, 0.95).plot(ax)


def test_words_stand_in_the_order_given_beside_numbers_too() -> None:
    """Also where the first line lacks one of them."""
    none = ("one", "a", None, 1, None)
    axes = drawn(none, ("one", 8, 20, 18, 22), ("two", "a", 10, 9, 11), ("two", 8, 15, 14, 16))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "8"]
    assert [bars.lines[0].get_xdata(orig=False).tolist() for bars in axes.containers] == [[1], [0, 1]]
    assert "nothing released" in axes.get_ylabel()
    pyplot.close(axes.figure)


def test_words_of_two_curves_on_one_picture_keep_their_places() -> None:
    axes = drawn(("one", "a", 10, 9, 11), ("one", "b", 20, 18, 22))
    drawn(("two", "b", 12, 9, 13), ("two", "c", 25, 18, 28), ax=axes)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [bars.lines[0].get_xdata(orig=False).tolist() for bars in axes.containers] == [[0, 1], [1, 2]]
    pyplot.close(axes.figure)


def test_a_cycle_with_strokes_of_its_own_is_kept() -> None:
    with pyplot.rc_context({"axes.prop_cycle": pyplot.cycler(linestyle=["-", "--"])}):
        axes = drawn(*((name, kind, 9, 9, 30) for name in "ab" for kind in (8, 9)))
    assert [bars.lines[0].get_linestyle() for bars in axes.containers] == ["-", "--"]
    pyplot.close(axes.figure)


def test_an_interval_without_an_end_does_not_look_like_one_with() -> None:
    known, unknown = (drawn(("one", 8, 10, 9, high), ("one", 9, 12, 11, 12)) for high in (10, None))
    assert len(unknown.lines) == len(known.lines) + 1
    for axes in (known, unknown):
        pyplot.close(axes.figure)


def test_more_lines_than_colours_look_different() -> None:
    axes = drawn(*((f"{i}", kind, 9 + i, 9, 30) for i in range(12) for kind in (8, 9)))
    assert len({(bars.lines[0].get_color(), bars.lines[0].get_linestyle()) for bars in axes.containers}) == 12
    pyplot.close(axes.figure)


def test_progress_is_shown_on_request(capsys: Any) -> None:
    few = {**ONE, "draws": 8}
    least_n({"exponential": exponential}, **few)
    assert capsys.readouterr().err == ""
    least_n({"exponential": exponential}, **few, progress=True)
    assert "1/1 searches" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------- refusals


class InNumpy(Largest):
    def __call__(self, key: Any, sample: Any) -> Any:
        return np.asarray(sample.x)[0]


class Stateful(Largest):
    rng = np.random.default_rng(0)

    def __call__(self, key: Any, sample: Any) -> Any:
        return wide.from_uint32(jnp.uint32(self.rng.integers(64)), self.limbs)


class Scalar(Largest):
    def __call__(self, key: Any, sample: Any) -> Any:
        return jnp.int32(7)


class Several(Largest):
    def __call__(self, key: Any, sample: Any) -> Any:
        return jnp.stack([super().__call__(key, sample)] * 3)


class Faulty(Largest):
    def __call__(self, key: Any, sample: Any) -> Any:
        return sample.nothing


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (InNumpy, TypeError, "series 'mine' at {'bits': 6} must be written with jax.numpy"),
        (Stateful, TypeError, "must draw with jax.random"),
        (Scalar, TypeError, "must return a hypothesis as distribution.error takes it, got"),
        (Several, TypeError, r"takes it, got \('uint32', \(3, 1\)\): "),
        (Faulty, AttributeError, "nothing"),
    ],
)
def test_strangers_that_cannot_be_run_are_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        least_n({"mine": make}, **GIVEN)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"alpha": math.nan}, ValueError, "alpha must be"),
        ({"alpha": -1}, ValueError, "alpha must be"),
        ({"alpha": 2}, ValueError, "alpha must be"),
        ({"beta": 1.0}, ValueError, "beta must be"),
        ({"level": 0.0}, ValueError, "level must be"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"by": "luck"}, ValueError, "by must be"),
        ({"by": "law"}, TypeError, "Largest .* has no probability"),
        ({"start": 500}, ValueError, "start must be"),
        ({"draws": 1}, ValueError, "draws must be"),
        ({"trials": 0}, ValueError, "trials must be"),
        ({"progress": "no"}, TypeError, "progress must be True or False"),
        ({"algorithms": {}}, TypeError, "algorithms must be"),
        ({"algorithms": {"mine": 3}}, TypeError, "algorithms must map"),
        ({"algorithms": {"mine": thresholds.erm(bits=8)}}, TypeError, "functions of a setting, such as lambda bits"),
        ({"distribution": 3}, TypeError, "distribution must be a function that makes one"),
        (
            {"distribution": lambda: types.SimpleNamespace(sample=lambda key, capacity: 0)},
            TypeError,
            r"sample must take \(key, capacity, n\)",
        ),
        ({"algorithms": {"mine": Largest(6)}}, TypeError, r"function of the settings, lambda bits: \.\.\., got"),
        ({"over": {}}, TypeError, "over must be"),
        ({"over": {"bits": 8}}, TypeError, "over must list"),
        ({"over": {"bits": []}}, TypeError, "over must list"),
        ({"over": {"bits": [None]}}, TypeError, "over must hold"),
        ({"over": {1: [8]}}, TypeError, "over must have names of settings as keys, got 1"),
        ({"over": {"n": [8]}}, ValueError, "over must not vary 'n'"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        least_n(**{"algorithms": {"mine": Largest}, **GIVEN, **change})


@pytest.mark.parametrize("n", [0, 8])
def test_experiments_refuse_an_n_beyond_the_capacity(n: int) -> None:
    with pytest.raises(ValueError, match="n must be"):
        pac.Experiment(learner=exponential(6), distribution=log_uniform(6), n=n, alpha=0.1, capacity=7)


@pytest.mark.slow
def test_k_concepts_are_all_to_be_learned() -> None:
    """Of k hypotheses the worst counts: two concepts with the same target need fewer examples than two with one target further out."""

    class EachLargest(Largest):
        def __call__(self, key: Any, sample: Any) -> Any:
            return jax.vmap(lambda j: Largest.__call__(self, key, sample.column(j)))(
                jnp.arange(sample.k, dtype=jnp.int32)
            )

    def several(targets: int) -> Any:
        base = concept.uniform(bits=6, target=0)
        return concept.several(base, bits=6, targets=[32, 32] if targets == 1 else [32, 60])

    given = {**ONE, "over": {"targets": [1, 2]}, "distribution": several, "alpha": 0.1}
    each = EachLargest(6)
    one, two = least_n({"each": lambda targets: each}, **given).to_rows()
    assert one["by"] == two["by"] == "trials" and one["n"] < two["n"]


class Bell:
    """Points of 40 bits from floats: their last digits differ when they are compiled."""

    def sample(self, key: Any, capacity: int, n: Any) -> Any:
        z = jnp.clip(0.5 + 0.1 * jax.random.normal(key, (capacity,)), 0.0, 0.999)
        high = jnp.floor(z * 2.0**8)
        return Sample(
            x=jnp.stack([high, (z * 2.0**8 - high) * 2.0**32], axis=1).astype(jnp.uint32), y=z < 0.5, n_valid=n
        )

    def error(self, hypothesis: Any) -> Any:
        return jnp.float32(0.0)


def test_a_distribution_whose_digits_depend_on_the_program_is_one() -> None:
    never = functools.cache(lambda bits: lambda key, sample: jnp.uint32(0))
    given: Any = {"distribution": Bell, "over": {"bits": [40]}, "n": 15, "alpha": 0.2, "trials": 16}
    assert dpjax.failures({"never": never}, **given).rows[0]["failure"] == 0.0


def test_words_among_many_are_told_apart_by_themselves() -> None:
    """Their bytes are addresses, which differ in every process."""
    one, other = (np.array([f"bin {i}" for i in range(100)], dtype=object) for _ in range(2))
    assert as_json(contents.of(one)) == as_json(contents.of(other))
