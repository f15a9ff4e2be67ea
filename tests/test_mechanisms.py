"""Mechanisms: what all refuse, then each against a naive reference; `test_conformance.py` has what all algorithms share.

Statistical tests use fixed keys and a false-alarm rate of 2e-5; each has a negative control that must fail.
"""

import dataclasses
import decimal
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import slow, thorough
from scipy import stats

import dpjax
from dpjax import Status, bounds
from dpjax.accounting.guarantee import Guarantee
from dpjax.core import random
from dpjax.domains import ordered
from dpjax.domains import wide as wide_integers
from dpjax.domains.events import Interval
from dpjax.mechanisms import (
    Selection,
    above_threshold,
    candidates,
    choosing,
    exponential,
    exponential_piecewise,
    geometric,
    laplace,
    one_sided_geometric,
    partition_selection,
    permute_and_flip_piecewise,
    report_noisy_max,
    stability,
)
from dpjax.relaxations import estimators
from dpjax.verify.plain.above_threshold import first_above
from dpjax.verify.plain.choosing import choosing_law
from dpjax.verify.plain.exponential import exponential_law
from dpjax.verify.plain.partition_selection import keep_table
from dpjax.verify.plain.report_noisy_max import permute_and_flip_law

pytestmark = pytest.mark.usefixtures("no_key_twice")

FALSE_ALARM = 2e-5
SCORES = jnp.array([3, 5, 0, 4, 5], jnp.int32)


def compiled(function: Callable[..., Any], *arrays: Any, **given: Any) -> Any:
    """function(*arrays, **given) as one program; run operation by operation, it would be a hundred."""
    return jax.jit(lambda *arrays: function(*arrays, **given))(*arrays)


def with_slopes(function: Callable[..., Any]) -> Callable[..., Any]:
    """One program for function(*arrays), a vector, and its two Jacobians, by columns and by rows: a list of both for each argument.

    It is traced once: the transpose is what reverse mode evaluates.
    """

    @jax.jit
    def program(*arrays: Any) -> Any:
        arrays = tuple(map(jnp.asarray, arrays))
        value, push = jax.linearize(function, *arrays)
        rows = jax.vmap(jax.linear_transpose(push, *arrays))(jnp.eye(value.size, dtype=value.dtype))

        def columns(at: int) -> Any:
            array = arrays[at]
            units = jnp.eye(array.size, dtype=array.dtype).reshape(-1, *array.shape)
            still = [jnp.zeros_like(other) for other in arrays]
            pushed = jax.vmap(lambda unit: push(*still[:at], unit, *still[at + 1 :]))(units)
            return pushed.T.reshape(value.shape + array.shape)

        return value, [columns(at) for at in range(len(arrays))], list(rows)

    return program


def pieces() -> ordered.Pieces:
    """A quality on {0, ..., 9}."""
    return ordered.from_breakpoints([0, 2, 5], [1.0, 4.0, 3.0], 9, beyond=0.0)


@dataclasses.dataclass(frozen=True)
class Case:
    """One mechanism with an input.

    Attributes:
      make: epsilon -> mechanism. build: makes the input, in the default types.
      function: the plain sampling function, called as function(key, input, *more, epsilon=..., **given).
    """

    name: str
    make: Callable[[float], Any]
    build: Callable[[], Any]
    function: Callable[..., Any]
    more: tuple[Any, ...] = ()
    given: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def data(self) -> Any:
        with jax.ensure_compile_time_eval():  # inside compiled programs it is a constant
            return self.build()


CASES = [
    Case(
        "laplace",
        lambda e: laplace.mechanism(epsilon=e),
        lambda: 3.0,
        laplace.laplace,
    ),
    Case(
        "geometric",
        lambda e: geometric.mechanism(epsilon=e),
        lambda: 3,
        geometric.geometric,
    ),
    Case(
        "one_sided_geometric",
        lambda e: one_sided_geometric.mechanism(epsilon=e),
        lambda: 3,
        lambda key, value, epsilon: value + one_sided_geometric.one_sided_geometric(key, epsilon=epsilon),
    ),
    Case("exponential", lambda e: exponential.mechanism(epsilon=e), lambda: SCORES, exponential.exponential),
    Case(
        "exponential_piecewise",
        lambda e: exponential_piecewise.mechanism(epsilon=e),
        pieces,
        lambda key, pieces, epsilon: (
            exponential_piecewise.draw_everywhere(
                key, pieces, exponential_piecewise.log_density(pieces, jnp.asarray(epsilon, float))
            ).position
        ),
    ),
    Case(
        "report_noisy_max",
        lambda e: report_noisy_max.mechanism(epsilon=e),
        lambda: SCORES,
        report_noisy_max.report_noisy_max,
    ),
    Case(
        "stability",
        lambda e: stability.mechanism(epsilon=e, delta=0.2),
        lambda: jnp.array([3, 8, 0], jnp.int32),
        stability.stability,
        given={"delta": 0.2},
    ),
    Case(
        "choosing",
        lambda e: choosing.mechanism(n=17, epsilon=e, delta=1e-3, alpha=0.5, allow_unproved=True),
        lambda: SCORES,
        choosing.choosing,
        given={"n": 17, "alpha": 0.5},
    ),
    Case(
        "partition_selection",
        lambda e: partition_selection.mechanism(epsilon=e, delta=0.01),
        lambda: jnp.int32(4),
        partition_selection.partition_selection,
        given={"delta": 0.01},
    ),
    Case(
        "above_threshold",
        lambda e: above_threshold.mechanism(epsilon=e, threshold=4),
        lambda: SCORES,
        above_threshold.above_threshold,
        more=(jnp.int32(4),),
    ),
]
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.thorough
@every
def test_a_run_is_what_the_plain_function_draws(case: Case) -> None:
    mechanism, keys = case.make(0.7), jax.random.split(jax.random.key(1), 40)

    def plain(key: Any) -> tuple[Any, Any]:
        drawn = case.function(key, case.data, *case.more, epsilon=0.7, **case.given)
        index, ok = drawn if isinstance(drawn, Selection) else (drawn, jnp.bool_(True))
        return jnp.where(ok, index, jnp.zeros_like(index)), ok

    run = jax.jit(jax.vmap(lambda key: mechanism(key, case.data)))(keys)
    expected, ok = jax.jit(jax.vmap(plain))(jax.random.clone(keys))
    assert ((run.status == Status.OK) == ok).all()
    np.testing.assert_allclose(run.hypothesis, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["stability", "partition_selection"])
def test_laws_have_the_right_gradients_in_delta(name: str, x64: None) -> None:
    case = next(case for case in CASES if case.name == name)
    mechanism = case.make(0.7)

    law = with_slopes(lambda delta: dataclasses.replace(mechanism, delta=delta).pmf(case.data))
    (above, *_), (below, *_), (_, *both) = map(jax.device_get, map(law, (0.05 + 1e-7, 0.05 - 1e-7, 0.05)))
    for (slope,) in both:
        np.testing.assert_allclose(slope, (above - below) / 2e-7, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "name", [*map(slow, ("exponential", "above_threshold")), "report_noisy_max", "stability", "choosing"]
)
def test_laws_have_the_right_gradients_in_scores(name: str, x64: None) -> None:
    law, step = with_slopes(next(case for case in CASES if case.name == name).make(0.7).pmf), 1e-6 * np.eye(3)
    for scores in ([1.25, 2.0, 3.0], [6.0, 1.5, 2.25], [0.5, 7.0, 2.0]):
        point = np.array(scores)
        differences = [np.asarray(law(point + d)[0]) - np.asarray(law(point - d)[0]) for d in step]
        for (slope,) in law(point)[1:]:
            np.testing.assert_allclose(slope, np.stack(differences, axis=1) / 2e-6, rtol=1e-5, atol=1e-8)


def test_report_noisy_max_has_the_right_gradients_of_logarithms_at_ties_too(x64: None) -> None:
    law = with_slopes(lambda scores, epsilon: report_noisy_max.log_pmf(scores, epsilon=epsilon))

    def values(scores: Any, epsilon: float) -> np.ndarray:
        return np.asarray(law(scores, epsilon)[0])

    for scores in ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], [2.0, 0.0, 2.0], [0.0, 0.0, -300.0]):
        point, step = np.array(scores), 1e-5 * np.eye(3)
        in_scores = np.stack([(values(point + d, 0.7) - values(point - d, 0.7)) / 2e-5 for d in step], axis=1)
        in_epsilon = (values(point, 0.7 + 1e-5) - values(point, 0.7 - 1e-5)) / 2e-5
        for first, second in law(point, 0.7)[1:]:
            # At ties the law is smooth to the first order only, so that differences are off by their step.
            np.testing.assert_allclose(first, in_scores, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(second, in_epsilon, rtol=1e-5, atol=1e-8)


@every
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(case: Case, epsilon: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        case.make(epsilon)


@every
def test_sample_sizes_and_errors_that_no_theorem_gives_are_refused(case: Case) -> None:
    mechanism = case.make(1.0)
    if case.name == "choosing":
        least = 16 / 0.5 * math.log(16 / (0.5 * 0.1 * 1e-3))
        assert mechanism.sample_size(alpha=0.5, beta=0.1) == math.ceil(least)
        with pytest.raises(ValueError, match=r"alpha must be >= 0\.5"):
            mechanism.sample_size(alpha=0.4, beta=0.1)
        return
    with pytest.raises(ValueError, match="no theorem"):
        mechanism.sample_size(alpha=0.1, beta=0.1)


@pytest.mark.parametrize("epsilon", ["1", None, True, [1.0]])
def test_epsilon_that_is_no_number_is_refused(epsilon: Any) -> None:
    with pytest.raises(TypeError, match="epsilon"):
        exponential.mechanism(epsilon=epsilon)


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: stability.mechanism(epsilon=1.0, delta=0.0), "delta"),
        (lambda: stability.mechanism(epsilon=1.0, delta=1.0), "delta"),
        (lambda: stability.mechanism(epsilon=1.0, delta=0.6), "delta"),
        (lambda: stability.mechanism(epsilon=1.0, delta=1e-300), "delta"),
        (lambda: stability.mechanism(epsilon=1.0, delta=1e-6, calibration="exact"), "calibration.*exact"),
        (lambda: partition_selection.mechanism(epsilon=1.0, delta=0.0), "delta"),
        (lambda: partition_selection.mechanism(epsilon=1.0, delta=1e-300), "delta"),
        (lambda: partition_selection.mechanism(epsilon=1.0, delta=math.nan), "delta"),
        (lambda: choosing.mechanism(n=234, epsilon=1.0, delta=1e-6, alpha=0.5), "n must be at least 235.*234"),
        (lambda: choosing.mechanism(n=500, epsilon=1.0, delta=0.0, alpha=0.5), "delta"),
        (lambda: choosing.mechanism(n=500, epsilon=1.0, delta=1e-300, alpha=0.5), "delta"),
        (lambda: choosing.mechanism(n=500, epsilon=1.0, delta=1e-6, alpha=1.0), "alpha"),
        (lambda: exponential.mechanism(epsilon=1.0, sensitivity=0.0), "sensitivity"),
        (lambda: exponential.mechanism(epsilon=1.0, monotone=True, relation="REPLACE_ONE"), "relation"),
        (lambda: report_noisy_max.mechanism(epsilon=1.0, monotone=True, relation="REPLACE_ONE"), "relation"),
        (lambda: laplace.mechanism(epsilon=1.0, relation="CHANGE_ONE"), "relation"),
        (lambda: exponential_piecewise.mechanism(epsilon=1.0, relation="CHANGE_ONE"), "relation"),
        (lambda: geometric.mechanism(epsilon=1e-9), "epsilon"),
        (lambda: geometric.mechanism(epsilon=1.0, sensitivity=0), "sensitivity"),
        (lambda: above_threshold.mechanism(epsilon=1.0, threshold=math.nan), "threshold"),
        (lambda: exponential.exponential(jax.random.key(0), SCORES, epsilon=-1.0), "epsilon"),
        (lambda: laplace.laplace(jax.random.key(0), 1.0, epsilon=0.0), "epsilon"),
    ],
)
def test_bad_parameters_are_refused(build: Callable[[], Any], names: str) -> None:
    with pytest.raises(ValueError, match=names):
        build()


CHOOSERS = [
    case
    for case in CASES
    if case.name in ("exponential", "report_noisy_max", "stability", "choosing", "above_threshold")
]
choosers = pytest.mark.parametrize("case", CHOOSERS, ids=lambda case: case.name)


@choosers
@pytest.mark.parametrize("scores", [5, np.float32(2.0), [], np.zeros((2, 3)), np.zeros((0,))])
def test_scores_of_another_shape_are_refused(case: Case, scores: Any) -> None:
    for call in (
        lambda: case.make(1.0)(jax.random.key(0), scores),
        lambda: case.make(1.0).pmf(scores),
        lambda: case.function(jax.random.key(0), scores, *case.more, epsilon=1.0, **case.given),
    ):
        with pytest.raises(ValueError, match=r"must have shape \(k,\) with k >= 1"):
            call()


@choosers
@pytest.mark.parametrize("scores", [None, "best", ["a", "b"], [True, False], np.arange(3, dtype=np.uint8)])
def test_scores_that_are_no_numbers_are_refused(case: Case, scores: Any) -> None:
    with pytest.raises(TypeError, match="must hold signed integers or reals"):
        case.make(1.0)(jax.random.key(0), scores)
    with pytest.raises(TypeError, match="must hold signed integers or reals"):
        case.function(jax.random.key(0), scores, *case.more, epsilon=1.0, **case.given)


@choosers
def test_a_mask_of_another_shape_or_kind_is_refused(case: Case) -> None:
    def run(where: Any) -> Any:
        return case.function(jax.random.key(0), SCORES, *case.more, epsilon=1.0, where=where, **case.given)

    with pytest.raises(ValueError, match="where must have the shape"):
        run(np.array([True]))
    with pytest.raises(ValueError, match="where must have the shape"):
        candidates(SCORES, where=[True])
    with pytest.raises(TypeError, match="where must hold booleans"):
        run(np.array([1, 0, 1, 1, 1]))


@pytest.mark.slow  # intervals: conformance
@choosers
def test_events_are_intervals_of_indices_or_flags(case: Case) -> None:
    mechanism = case.make(0.7)
    size = case.data.shape[0]
    law = mechanism.pmf(case.data)
    flags = np.arange(size) % 2 == 0
    np.testing.assert_allclose(mechanism.probability(case.data, (1, 3))[0], law[1:3].sum(), rtol=1e-6)
    np.testing.assert_allclose(mechanism.probability(case.data, flags)[0], law[:size:2].sum(), rtol=1e-6)
    np.testing.assert_allclose(mechanism.probability(case.data, flags)[1], law[1:size:2].sum() + law[-1], rtol=1e-6)


@choosers
def test_what_is_no_event_is_refused(case: Case) -> None:
    mechanism = case.make(0.7)
    for event, error in [(3, TypeError), ((1.5, 2), TypeError), ("ab", TypeError), (np.array([True]), ValueError)]:
        with pytest.raises(error, match=r"event|low"):
            mechanism.probability(case.data, event)


@pytest.mark.parametrize(
    "case",  # the two left out have the events of the others, which their family defines, and laws that other tests check
    [thorough(case) if case.name in ("report_noisy_max", "choosing") else case for case in CHOOSERS],
    ids=lambda case: case.name,
)
def test_success_is_a_score_near_the_best(case: Case) -> None:
    mechanism, scores = case.make(0.7), np.array([3, 5, 0, 4, 5])
    if case.name == "above_threshold":
        with pytest.raises(TypeError, match="error"):
            mechanism.success_probability(scores, error=1)
        return
    success, law = np.asarray(mechanism.success_probability(scores, error=1)), np.asarray(mechanism.pmf(scores))
    np.testing.assert_allclose(success, law[[1, 3, 4]].sum(), rtol=1e-6)
    np.testing.assert_allclose(success + np.asarray(mechanism.failure_probability(scores, error=1)), 1, rtol=1e-6)


@pytest.mark.thorough
@choosers
def test_masked_padding_changes_nothing_and_nothing_valid_is_bottom(case: Case) -> None:
    mechanism, scores = case.make(0.7), SCORES
    padded = candidates(jnp.concatenate([scores, jnp.array([99, -7, 1], jnp.int32)]), where=jnp.arange(8) < 5)
    for key in jax.random.split(jax.random.key(3), 20):
        plain, wide = mechanism(key, scores), mechanism(jax.random.clone(key), padded)
        assert plain.status == wide.status and plain.hypothesis == wide.hypothesis
    law, wide_law = mechanism.pmf(scores), mechanism.pmf(padded)
    np.testing.assert_allclose(wide_law[:5], law[:5], rtol=1e-6)
    np.testing.assert_allclose(wide_law[8], law[5], rtol=1e-6)
    assert (wide_law[5:8] == 0).all()
    nothing = candidates(scores, where=jnp.zeros(5, bool))
    assert mechanism(jax.random.key(0), nothing).status == Status.BOTTOM
    empty = mechanism.pmf(nothing)
    assert (empty[:5] == 0).all() and empty[5] == 1


@choosers
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_outside_the_domain(case: Case, bad: float) -> None:
    mechanism, scores = case.make(1.0), np.array([1.0, bad, 2.0], np.float32)
    outcome = jax.device_get(mechanism(jax.random.key(0), scores))
    assert outcome.status == Status.OUTSIDE_DOMAIN and outcome.hypothesis == 0
    assert np.isnan(mechanism.pmf(scores)).all()
    masked = candidates(scores, where=np.array([True, False, True]))
    assert abs(np.asarray(mechanism.pmf(masked)).sum() - 1) < 1e-5


@pytest.mark.parametrize("module", [geometric, one_sided_geometric, partition_selection])
@pytest.mark.parametrize("value", [1.9, 40.9, np.array([1.0, 2.0]), True, None, "7"])
def test_counts_that_are_no_integers_are_refused(module: Any, value: Any) -> None:
    given = {"delta": 0.01} if module is partition_selection else {}
    with pytest.raises(TypeError, match="must hold signed integers"):
        module.mechanism(epsilon=1.0, **given)(jax.random.key(0), value)
    if module is not one_sided_geometric:
        function = geometric.geometric if module is geometric else partition_selection.partition_selection
        with pytest.raises(TypeError, match="must hold signed integers"):
            function(jax.random.key(0), value, epsilon=1.0, **given)


def test_outputs_and_measures_that_are_none_are_refused() -> None:
    choose = exponential.mechanism(epsilon=1.0)
    with pytest.raises(ValueError, match=r"output must be the index of one candidate, got shape \(2,\)"):
        choose.log_prob([1, 2, 3], [0, 1])
    with pytest.raises(ValueError, match="output must hold numbers, not NaN"):
        laplace.mechanism(epsilon=1.0).log_prob([1.0, 2.0], math.nan)
    for measure in ([math.nan, 0.0], [math.inf, 0.0]):
        with pytest.raises(ValueError, match="log_measure must hold numbers below infinity"):
            candidates([1.0, 2.0], log_measure=measure)
    never = candidates([1.0, 2.0], log_measure=[-math.inf, 0.0])
    assert choose.pmf(never).tolist() == [0.0, 1.0, 0.0]


def test_counts_past_int32_and_negative_people_are_refused() -> None:
    with pytest.raises(ValueError, match="value must hold integers from"):
        geometric.geometric(jax.random.key(0), 2**40, epsilon=1.0)
    select = partition_selection.mechanism(epsilon=1.0, delta=0.01)
    assert select(jax.random.key(0), [3, -1]).status == Status.OUTSIDE_DOMAIN


@pytest.mark.thorough
def test_integers_of_which_a_difference_could_pass_int32_are_refused() -> None:
    far = [2**30, -(2**30)]
    for mechanism, data in (
        (stability.mechanism(epsilon=1.0, delta=1e-6), far),
        (exponential.mechanism(epsilon=1.0), far),
        (above_threshold.mechanism(epsilon=1.0, threshold=-(2**30)), [2**30]),
        (geometric.mechanism(epsilon=1.0), 2**31 - 1),
        (one_sided_geometric.mechanism(epsilon=1.0), 2**30),
    ):
        assert not compiled(mechanism.fits, mechanism.fit(data))
    far = [2**30 - 1, -(2**30)]
    assert stability.mechanism(epsilon=1.0, delta=1e-6).pmf(far).tolist() == [1.0, 0.0, 0.0]
    half = exponential.mechanism(epsilon=1e-12)
    np.testing.assert_allclose(half.success_probability(far, error=0), half.pmf(far)[0], rtol=1e-6)
    assert above_threshold.mechanism(epsilon=1.0, threshold=-(2**30)).pmf([2**30 - 1])[0] == 1.0
    for counted in (2**30 - 1, -(2**30)):
        for mechanism in (geometric.mechanism(epsilon=1.0), one_sided_geometric.mechanism(epsilon=1.0)):
            for error in (3, 2**40):
                near = mechanism.success_probability(counted, error=error)
                np.testing.assert_allclose(near, mechanism.success_probability(0, error=error), rtol=1e-6)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1e30, 1e-20), (1e-20, 1e30)])
def test_scales_that_floats_do_not_hold_are_refused(epsilon: float, sensitivity: float) -> None:
    for make in (
        laplace.mechanism,
        exponential.mechanism,
        report_noisy_max.mechanism,
        lambda **given: above_threshold.mechanism(threshold=0, **given),
    ):
        with pytest.raises(ValueError, match="sensitivity / epsilon must be at"):
            make(epsilon=epsilon, sensitivity=sensitivity)


def test_noise_has_no_list_of_outputs() -> None:
    for mechanism in (laplace.mechanism(epsilon=1.0), geometric.mechanism(epsilon=1.0)):
        with pytest.raises(NotImplementedError, match="too many outputs"):
            mechanism.pmf(3)


def test_noise_is_audited_where_there_is_no_list_of_outputs() -> None:
    given: dict[str, Any] = {"n": 1, "domain": 2, "data": lambda values, size: values[0], "trials": 1024}
    report = dpjax.check(geometric.mechanism(epsilon=1.0), **given)
    assert not report.exact and report.holds is None
    assert dpjax.check(geometric.mechanism(epsilon=9.0), **given, epsilon=1.0, delta=0.0).holds is False


@pytest.mark.parametrize("module", [laplace, geometric, one_sided_geometric])
def test_laws_of_several_numbers_are_products(module: Any, x64: None) -> None:
    mechanism, values = module.mechanism(epsilon=0.4), [3, 8]
    low, high = [2, 7], [6, 11]

    @jax.jit
    def alone_and_together(values: Any, low: Any, high: Any) -> Any:
        """The probabilities of each interval, and of both; the logarithms of the probabilities of outputs 2 above."""
        each = [mechanism.probability(value, event)[0] for value, *event in zip(values, low, high, strict=True)]
        logs = [mechanism.log_prob(value, value + 2) for value in values]
        both = [jnp.stack(numbers) for numbers in (values, low, high)]
        return each, mechanism.probability(both[0], (both[1], both[2])), logs, mechanism.log_prob(both[0], both[0] + 2)

    each, (inside, outside), logs, together = jax.device_get(alone_and_together(values, low, high))
    np.testing.assert_allclose([inside, inside + outside], [each[0] * each[1], 1], rtol=1e-12)
    np.testing.assert_allclose(together, sum(logs), rtol=1e-12)
    with pytest.raises(ValueError, match="low of the event, or the output, must be a number or have the shape"):
        mechanism.probability(values, ([1, 2, 3], 9))


def test_intervals_keep_small_probabilities_and_may_be_empty_or_endless() -> None:
    release, count = laplace.mechanism(epsilon=1.0), geometric.mechanism(epsilon=1.0)
    np.testing.assert_allclose(
        release.probability(0.0, (40.0, 41.0))[0], stats.laplace.sf(40) * -math.expm1(-1), rtol=1e-5
    )
    np.testing.assert_allclose(release.probability(0.0, (-40.0, 40.0))[1], 2 * stats.laplace.sf(40), rtol=1e-5)
    assert release.probability(0.0, (-math.inf, math.inf)).tolist() == [1.0, 0.0]
    tail = math.exp(-40) / (1 + math.exp(-1))
    np.testing.assert_allclose(count.probability(0, (40, 2**31 - 1))[0], tail, rtol=1e-5)
    np.testing.assert_allclose(count.probability(0, (-39, 40))[1], 2 * tail, rtol=1e-5)
    np.testing.assert_allclose(count.probability(0, (-(2**31), 2**31 - 1)), [1.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(count.log_prob(0, 400), -400 + math.log(math.tanh(0.5)), rtol=1e-6)
    for mechanism in (release, count):
        kind = float if mechanism is release else int  # as above, so that the programs are the same
        np.testing.assert_allclose(mechanism.probability(kind(0), (kind(5), kind(5))), [0.0, 1.0], rtol=1e-6)
        np.testing.assert_allclose(mechanism.probability(kind(0), (kind(7), kind(5))), [0.0, 1.0], rtol=1e-6)
    slope = jax.grad(lambda e: dataclasses.replace(release, epsilon=e).probability(0.0, (-math.inf, 2.0))[0])(1.0)
    np.testing.assert_allclose(slope, math.exp(-2), rtol=1e-5)


def test_intervals_that_are_wider_than_an_integer_keep_their_probability() -> None:
    """From -2^31 up to the count itself, 2^30 - 1: their difference is no int32. P[noise <= 0] is 1 / (1 + exp(-epsilon))."""
    found = geometric.mechanism(epsilon=1.0).probability(2**30 - 1, (-(2**31), 2**30))
    np.testing.assert_allclose(found, np.array([1.0, math.exp(-1)]) / (1 + math.exp(-1)), rtol=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("mechanism", [thorough(exponential_piecewise), permute_and_flip_piecewise])
def test_what_lies_beyond_the_range_is_never_drawn_however_good_it_is(mechanism: Any) -> None:
    """The quality is 0, 0, 3, 3, 3, 3, then 1000 beyond the range: 2,000 draws by chi-square; the uniform law is the control."""
    pieces = ordered.from_breakpoints([0, 2], [0.0, 3.0], 5, beyond=1000.0)
    made = mechanism.mechanism(epsilon=1.0)
    keys = jax.random.split(jax.random.key(1), 2000)
    found = np.asarray(jax.jit(jax.vmap(lambda key: made(key, pieces).hypothesis))(keys))[:, 0]
    assert found.max() <= 5
    counts = np.bincount(found, minlength=6)
    law = np.array([made.probability(pieces, (point, point + 1))[0] for point in range(6)], float)
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-6)
    assert stats.chisquare(counts, 2000 * law / law.sum()).pvalue > FALSE_ALARM
    assert stats.chisquare(counts).pvalue < FALSE_ALARM


@pytest.mark.slow
def test_exponential_piecewise_law_against_a_sum_over_points() -> None:
    mechanism = exponential_piecewise.mechanism(epsilon=0.8, relation="ADD_OR_REMOVE_ONE")
    assert mechanism.guarantee() == Guarantee(0.8, 0.0, "ADD_OR_REMOVE_ONE")
    law = np.array(exponential_law([1, 1, 4, 4, 4, 3, 3, 3, 3, 3], 0.4))
    np.testing.assert_allclose(mechanism.pmf(pieces()), np.append(law, 0.0), rtol=1e-6)
    np.testing.assert_allclose(mechanism.probability(pieces(), (1, 6))[0], law[1:6].sum(), rtol=1e-6)
    np.testing.assert_allclose(mechanism.probability(pieces(), (7, 2**40))[0], law[7:].sum(), rtol=1e-6)
    np.testing.assert_allclose(mechanism.success_probability(pieces(), error=1.5), law[2:].sum(), rtol=1e-6)
    np.testing.assert_allclose(mechanism.log_prob(pieces(), 4), math.log(law[4]), rtol=1e-5)
    np.testing.assert_allclose(
        mechanism.log_prob(pieces(), wide_integers.from_ints([4], 32)[0]), math.log(law[4]), rtol=1e-5
    )
    with pytest.raises(TypeError, match="Pieces"):
        mechanism(jax.random.key(0), SCORES)


def test_a_piece_weighs_as_many_points_as_two_intervals_offer_of_it() -> None:
    """[0, 5) and [12, 25) contain 5, 8 and 5 points of three pieces of 10; a forgotten end would never be drawn."""
    three = ordered.from_breakpoints([0, 10, 20], [0.0, 0.0, 0.0], 29, beyond=0.0)
    one, other = (Interval.of(ends, three.limbs) for ends in ((0, 5), (12, 25)))
    weights = np.exp(compiled(exponential_piecewise._lengths, three, one, other).over(0) - math.log(8))
    np.testing.assert_allclose(weights[:3], [5 / 8, 1.0, 5 / 8], rtol=1e-6)
    assert not np.any(weights[3:])


# Laplace

exponential_variate = jax.jit(random.log_uniform)


@pytest.mark.parametrize(
    ("high", "low"),
    [
        (0, 0),
        (0, 7),
        (1, 2**31),
        (2**20, 5),
        (2**31 - 1, 9),
        (2**31, 0),
        (3 * 2**30 + 5, 17),
        (2**32 - 2**20 - 3, 2**31),
        (2**32 - 2**7 - 1, 3),
        (2**32 - 1, 2**32 - 1),
        (2**32 - 2, 3),
    ],
)
def test_exponential_variate_is_accurate_at_both_ends(high: int, low: int) -> None:
    half_steps = 2 * (high * 2**32 + low) + 1  # U = half_steps / 2^65
    above = (2**65 - half_steps) / 2**65
    exact = -math.log(half_steps / 2**65) if half_steps < 2**64 else -math.log1p(-above)
    got = exponential_variate(np.uint32(high), np.uint32(low))
    np.testing.assert_allclose(float(got), exact, rtol=1e-6)


def laplace_log_cdf(x: np.ndarray) -> np.ndarray:
    """By its definition; older versions of SciPy lose the upper tail."""
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))


def test_laplace_law_on_both_tails() -> None:
    x = np.array([-40.0, -20.0, -1.0, 0.0, 0.5, 20.0, 40.0])
    shifted = (x * 0.5).astype(np.float32)
    np.testing.assert_allclose(compiled(laplace.log_cdf, shifted, 0.0, epsilon=2.0), laplace_log_cdf(x), rtol=2e-6)
    np.testing.assert_allclose(compiled(laplace.log_sf, shifted, 0.0, epsilon=2.0), laplace_log_cdf(-x), rtol=2e-6)
    expected = stats.laplace.logpdf(x) + math.log(2.0)
    np.testing.assert_allclose(compiled(laplace.log_pdf, shifted, 0.0, epsilon=2.0), expected, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1e6, 3e8])
def test_laplace_law_keeps_its_digits_beside_a_large_value(value: float) -> None:
    """The value's own digits are too coarse for the ends of an interval."""
    narrow, wide = laplace.mechanism(epsilon=1e6), laplace.mechanism(epsilon=0.1)
    np.testing.assert_allclose(narrow.probability(value, (-math.inf, math.inf)), [1.0, 0.0])
    np.testing.assert_allclose(narrow.success_probability(value, error=1.0), 1.0)
    np.testing.assert_allclose(wide.success_probability(value, error=10.0), -math.expm1(-1.0), rtol=1e-6)
    np.testing.assert_allclose(wide.success_probability([value, 1.0], error=10.0), math.expm1(-1.0) ** 2, rtol=1e-6)
    with pytest.raises(ValueError, match="low of the event must hold numbers, not NaN"):
        wide.probability(value, (math.nan, 3.0))


@pytest.mark.slow
def test_laplace_draws_begin_alike_whatever_the_length() -> None:
    key = jax.random.key(5)
    long, short = laplace.standard_laplace(key, (9,)), laplace.standard_laplace(jax.random.clone(key), (4,))
    assert (long[:4] == short).all()


# Geometric


def test_geometric_laws_against_scipy() -> None:
    k = np.arange(-30, 31, dtype=np.int32)
    law = stats.dlaplace(0.3)
    given = {"epsilon": 0.6, "sensitivity": 2}
    np.testing.assert_allclose(compiled(geometric.log_pmf, k, 0, **given), law.logpmf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(compiled(geometric.log_cdf, k, 0, **given)), law.cdf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(compiled(geometric.log_sf, k, 0, **given)), law.cdf(-k - 1), rtol=2e-6)
    one = stats.geom(-math.expm1(-0.3), loc=-1)
    np.testing.assert_allclose(np.exp(compiled(one_sided_geometric.log_pmf, k, epsilon=0.3)), one.pmf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(compiled(one_sided_geometric.log_sf, k, epsilon=0.3)), one.sf(k), rtol=2e-6)
    np.testing.assert_allclose(np.exp(compiled(one_sided_geometric.log_cdf, k, epsilon=0.3)), one.cdf(k), rtol=2e-6)


def test_geometric_skips_no_value_at_tiny_rates() -> None:
    rate, trials = 2.0**-25, 20_000
    draws = np.asarray(one_sided_geometric.one_sided_geometric(jax.random.key(2), (trials,), epsilon=rate))
    assert (draws >= 0).all()
    assert stats.binomtest(int((draws % 2).sum()), trials).pvalue > FALSE_ALARM
    assert stats.kstest(draws * rate, "expon").pvalue > FALSE_ALARM
    # The negative control: floor of a float32 exponential is even wherever it passes 2^24.
    exponentials = random.fine_exponential(jax.random.key(2), (trials,)).astype(jnp.float32)
    rounded = np.asarray(jnp.floor(exponentials / jnp.float32(rate))).astype(np.int64)
    assert stats.binomtest(int((rounded % 2).sum()), trials).pvalue < FALSE_ALARM


def distortion(rate: float) -> float:
    """The largest relative error of a probability of two-sided noise above 1e-15, if all the float32 Laplace variables round to nearest.

    The place where the noise passes from k - 1 to k is found among the floats near the exact one; the numbers that round to a float reach
    half way to the next.
    """
    r, steps = float(np.float32(rate)), 60
    c = math.log(2 / (1 + math.exp(-r)))
    k = np.arange(1, int((34 + c) / r) + 2)
    ends = (k * r - c).astype(np.float32)
    near = ends[:, None] + np.arange(-steps, steps + 1, dtype=np.float32) * np.spacing(ends)[:, None]
    reached = np.asarray(compiled(geometric._piece, np.maximum(near, 0), np.float32(r))) >= k[:, None]
    assert reached[:, -1].all() and (np.diff(reached.astype(int), axis=1) >= 0).all()
    first = reached.argmax(axis=1)
    middle = near[np.arange(len(k)), first] - np.where(first > 0, np.spacing(ends) / 2, 0)
    tail, exact = (np.exp(-np.append(0, x.astype(float))) for x in (middle, k * r - c))
    return float(np.max(np.abs(np.diff(tail) / np.diff(exact) - 1)))


@pytest.mark.parametrize("rate", [geometric.COARSE, 0.04, 0.3, 1.0, 3.3])
def test_pieces_of_a_laplace_variable_have_the_two_sided_law(rate: float) -> None:
    assert distortion(rate) < 2e-4  # the promise is 3e-4: the logarithm itself may be off by a last place


def test_pieces_that_are_too_short_are_seen() -> None:
    assert distortion(0.01) > 5e-4


def test_no_rate_uses_pieces_that_hold_too_few_floats() -> None:
    """At the smallest rate of pieces, near |x| = 34 (beyond which lies 1e-15), floats are 2^-18 apart: 3e-4 of a piece is more than one."""
    steps = geometric.COARSE / float(np.spacing(np.float32(34)))
    assert 1 / steps < 3e-4


@pytest.mark.parametrize("rate", [geometric.COARSE, geometric.COARSE / 2])
def test_two_sided_draws_follow_their_law_in_pieces_and_by_digits(rate: float) -> None:
    trials = 20_000
    draws = np.asarray(geometric.geometric(jax.random.key(3), np.zeros(trials, np.int32), epsilon=rate))
    edges = np.unique(stats.dlaplace(rate).ppf(np.linspace(0.05, 0.95, 19)))
    law = np.diff(np.concatenate([[0], stats.dlaplace(rate).cdf(edges), [1]]))
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(law))
    assert stats.chisquare(counts, trials * law).pvalue > FALSE_ALARM
    # The negative control: a tenth more noise.
    wrong = np.bincount(np.searchsorted(edges, np.round(1.1 * draws)), minlength=len(law))
    assert stats.chisquare(wrong, trials * law).pvalue < FALSE_ALARM


def test_rates_of_both_kinds_in_one_batch_give_what_each_gives_alone() -> None:
    def noise(rate: Any) -> Any:
        return geometric.geometric(jax.random.key(4), jnp.zeros(50, jnp.int32), epsilon=rate)

    rates = jnp.array([geometric.COARSE / 4, geometric.COARSE, 2.0])
    together = compiled(jax.vmap(noise), rates)
    np.testing.assert_array_equal(together, [noise(rate) for rate in rates.tolist()])


def test_a_key_that_serves_twice_is_seen() -> None:
    key = jax.random.key(1)
    geometric.geometric(key, 5, epsilon=1.0)
    with pytest.raises(jax.errors.KeyReuseError):
        geometric.geometric(key, 5, epsilon=1.0)


def test_one_sided_guarantee_is_tight() -> None:
    mechanism = one_sided_geometric.mechanism(epsilon=0.5)
    assert math.isclose(mechanism.guarantee().delta, 1 - math.exp(-0.5))


def test_one_sided_guarantee_never_understates_delta() -> None:
    """Against 1 - exp(-epsilon) in 50 digits; nor does it overstate delta by more than two floats."""
    for epsilon in np.random.default_rng(0).uniform(0.01, 2.0, 50).tolist():
        delta = one_sided_geometric.mechanism(epsilon=epsilon).guarantee().delta
        with decimal.localcontext(prec=50):
            exact = 1 - (-decimal.Decimal(epsilon)).exp()
        assert exact <= decimal.Decimal(delta) <= exact + 2 * decimal.Decimal(math.ulp(delta))


# Exponential


def test_exponential_mechanism_against_the_formula() -> None:
    scores, measure = np.array([3.0, 5.0, 0.0, 4.5]), np.array([0.0, -1.0, 2.0, 0.5])
    weights = np.exp(0.8 * scores / (2 * 1.5) + measure)
    got = compiled(exponential.log_pmf, scores, epsilon=0.8, sensitivity=1.5, log_measure=jnp.asarray(measure, float))
    np.testing.assert_allclose(np.exp(got), weights / weights.sum(), rtol=1e-6)
    monotone = np.exp(compiled(exponential.log_pmf, scores, epsilon=0.8, monotone=True))
    np.testing.assert_allclose(monotone, exponential_law(scores, 0.8), rtol=1e-6)


def test_exponential_mechanism_keeps_the_last_digit_of_large_counts() -> None:
    scores = jnp.array([2**30, 2**30 + 1], jnp.int32)
    np.testing.assert_allclose(
        np.exp(compiled(exponential.log_pmf, scores, epsilon=2.0)), [1 / (1 + math.e), math.e / (1 + math.e)], rtol=1e-6
    )


def test_exponential_mechanism_with_counts_of_two_to_the_4096() -> None:
    measure = np.array([4096 * math.log(2.0), 0.0], np.float32)

    @jax.jit
    def chosen(scores: Any) -> Any:
        return exponential.exponential(jax.random.key(0), scores, epsilon=1.0, log_measure=measure).index

    assert chosen(np.array([0, 6000], np.int32)) == 1
    assert chosen(np.array([0, 5000], np.int32)) == 0


def test_scores_that_are_no_numbers_are_not_ok() -> None:
    @jax.jit
    def ok(scores: jax.Array) -> tuple[jax.Array, ...]:
        one, other, third, fourth, fifth = jax.random.split(jax.random.key(0), 5)
        chosen = exponential.exponential(one, scores, epsilon=1.0)
        noisy = report_noisy_max.report_noisy_max(other, scores, epsilon=1.0)
        stable = stability.stability(third, scores, epsilon=1.0, delta=0.1)
        some = choosing.choosing(fourth, scores, n=100, epsilon=1.0, alpha=0.5)
        return (
            chosen.ok,
            noisy.ok,
            stable.ok,
            some.ok,
            above_threshold.above_threshold(fifth, scores, 0.0, epsilon=9.0).ok,
        )

    assert not any(ok(jnp.array([1.0, math.nan, 2.0])))
    assert not any(ok(jnp.array([1.0, math.inf, 2.0]))[:2])


# Report-noisy-max


def test_report_noisy_max_is_permute_and_flip() -> None:
    scores, epsilon = np.array([3, 5, 0, 4, 5]), 0.9
    law = permute_and_flip_law(scores, epsilon)
    np.testing.assert_allclose(np.exp(compiled(report_noisy_max.log_pmf, scores, epsilon=epsilon)), law, rtol=2e-6)


def test_report_noisy_max_law_keeps_its_tails() -> None:
    scores = np.array([0, 60, 60, 59] + [40] * 60)
    with jax.enable_x64(True):
        exact = np.asarray(compiled(report_noisy_max.log_pmf, scores, epsilon=1.0))
    assert abs(np.exp(exact).sum() - 1) < 1e-12 and exact[0] < -30
    got = compiled(report_noisy_max.log_pmf, scores.astype(np.int32), epsilon=1.0)
    np.testing.assert_allclose(got, exact, atol=2e-5)


# A_dist


def test_stability_constants() -> None:
    epsilon, delta = 0.5, 1e-4
    expected = {
        "printed": (2.0, 2 * math.log(1 / delta)),
        "proved": (4.0, 2 + 4 * math.log(1 / (2 * delta))),
        "proved_counts": (2.0, 1 + 2 * math.log(1 / (2 * delta))),
    }
    for calibration, pair in expected.items():
        np.testing.assert_allclose(stability.noise(calibration, epsilon, delta), pair, rtol=1e-6)
        if calibration != "proved_counts":
            on_the_host = bounds.stability_noise(epsilon, delta, calibration=calibration)
            np.testing.assert_allclose(on_the_host, pair, rtol=1e-14)


def test_stability_keeps_on_both_tails() -> None:
    gaps = np.array([0, 2, 10, 33, 60, 100, 120])
    log_p, log_q = compiled(stability.log_keep, gaps.astype(np.int32), epsilon=1.0, delta=1e-7)
    scaled = (2 + 2 * math.log(1 / 2e-7) - gaps) / 2
    np.testing.assert_allclose(log_p, laplace_log_cdf(-scaled), rtol=3e-6)
    np.testing.assert_allclose(log_q, laplace_log_cdf(scaled), rtol=3e-6)


def test_a_single_candidate_is_released_surely_with_finite_gradients() -> None:
    @jax.jit
    def log_keep(gap: Any, epsilon: Any, delta: Any) -> Any:
        """The gradient of the first logarithm, and both."""

        def logs(epsilon: Any, delta: Any) -> Any:
            log_p, log_q = stability.log_keep(gap, epsilon=epsilon, delta=delta)
            return log_p, (log_p, log_q)

        return jax.grad(logs, argnums=(0, 1), has_aux=True)(epsilon, delta)

    gradient, (value, other) = log_keep(math.inf, 1.0, 1e-6)
    assert value == 0.0 and gradient == (0.0, 0.0) and other == -math.inf
    (slope, _), _ = log_keep(20.0, 1.0, 1e-6)
    step = [float(log_keep(20.0, e, 1e-6)[1][0]) for e in (0.99, 1.01)]
    np.testing.assert_allclose(slope, (step[1] - step[0]) / 0.02, rtol=1e-3)


def test_stability_breaks_ties_by_the_lowest_index() -> None:
    best, gap = compiled(stability.leader, jnp.array([1, 7, 7], jnp.int32))
    assert int(best.index) == 1 and gap == 0
    best, gap = compiled(stability.leader, jnp.array([9, 7, 7], jnp.int32), jnp.array([False, False, True]))
    assert int(best.index) == 2 and gap == jnp.inf


def test_stability_guarantees() -> None:
    printed = stability.mechanism(epsilon=1.0, delta=1e-4, calibration="printed")
    assert printed.guarantee().epsilon == 2.0 and printed.guarantee().relation == "REPLACE_ONE"
    assert math.isclose(printed.guarantee().delta, math.e**2 * 0.5e-4, rel_tol=1e-9)
    assert printed.claimed_guarantee() == Guarantee(1.0, 1e-4, "REPLACE_ONE")
    counts = stability.mechanism(epsilon=1.0, delta=1e-4, calibration="proved_counts")
    assert counts.guarantee() == Guarantee(1.0, 1e-4, "ADD_OR_REMOVE_ONE")
    assert stability.mechanism(epsilon=400.0, delta=0.9, calibration="printed").guarantee().delta == 1.0


# Choosing


def test_choosing_law_against_figure_8() -> None:
    scores, n, epsilon, alpha = np.array([0, 3, 9, 1]), 20, 0.8, 0.6
    expected = choosing_law(scores, n, alpha, epsilon)
    got = np.exp(compiled(choosing.log_pmf, scores, n=n, epsilon=epsilon, alpha=alpha))
    np.testing.assert_allclose(got, expected, rtol=2e-6)


def test_choosing_needs_its_sample_size() -> None:
    given = {"epsilon": 0.5, "delta": 1e-5, "alpha": 0.25}
    needed = math.ceil(8 / (0.25 * 0.5) * math.log(3 * (1 + math.exp(0.5 / 4)) / 1e-5))
    assert choosing.private_sample_size(**given, growth=3) == needed
    mechanism = choosing.mechanism(n=needed, **given, growth=3)
    assert mechanism.guarantee() == Guarantee(0.5, 1e-5, "REPLACE_ONE")
    assert mechanism.sample_size(alpha=0.25, beta=0.1) > needed
    with pytest.raises(ValueError, match="allow_unproved"):
        choosing.mechanism(n=needed - 1, **given, growth=3)
    small = choosing.mechanism(n=needed - 1, **given, growth=3, allow_unproved=True)
    assert small.guarantee() == Guarantee.none("REPLACE_ONE")
    assert dataclasses.replace(small, n=float(needed)).guarantee() == Guarantee(0.5, 1e-5, "REPLACE_ONE")


# Partition selection


@pytest.mark.parametrize(
    ("epsilon", "delta", "least"),
    [(1.0, 1e-6, 28), thorough(0.1, 1e-8, 310), thorough(0.05, 1e-9, 683), (3.0, 0.4, None)],
)
def test_partition_selection_against_the_recursion(epsilon: float, delta: float, least: int | None) -> None:
    p, q = keep_table(epsilon, delta)
    counts = np.arange(len(p) + 3, dtype=np.int32)
    p, q = np.append(p, [1.0] * 3), np.append(q, [0.0] * 3)
    assert partition_selection.saturation(epsilon, delta) == len(p) - 4
    assert least is None or partition_selection.saturation(epsilon, delta) == least
    for wide, tolerance in ((True, 1e-8), (False, 1e-5)):
        with jax.enable_x64(wide):
            log_p, log_q = compiled(partition_selection.log_keep, counts, epsilon=epsilon, delta=delta)
        np.testing.assert_allclose(np.exp(np.asarray(log_p, float)), p, rtol=tolerance)
        np.testing.assert_allclose(np.exp(np.asarray(log_q, float)), q, rtol=tolerance)
    traced = jax.jit(lambda e, d: partition_selection.log_keep(counts, epsilon=e, delta=d))(epsilon, delta)
    np.testing.assert_allclose(np.exp(np.asarray(traced[1], float)), q, rtol=1e-4, atol=1e-3 * delta)


LARGE = [(1e17, 0.5), (1e4, 0.999), (20.0, 0.9999), (1e6, 1e-30), (710.0, 0.1), (40.0, 1e-20)]


@functools.cache
def logs_at_large_epsilons() -> Any:
    """What `log_keep` gives counts of 1, 2, 3, by (epsilon, delta); one program for all."""
    log_keep, counts = partition_selection.log_keep, np.array([1, 2, 3], np.int32)
    return jax.device_get(
        jax.jit(lambda counts: {(e, d): log_keep(counts, epsilon=e, delta=d) for e, d in LARGE})(counts)
    )


@pytest.mark.parametrize(("epsilon", "delta"), LARGE)
def test_partition_selection_keeps_its_digits_at_a_large_epsilon(epsilon: float, delta: float) -> None:
    log_p, log_q = logs_at_large_epsilons()[epsilon, delta]
    np.testing.assert_allclose([log_p[0], log_q[0]], [math.log(delta), math.log1p(-delta)], rtol=1e-5)
    # p(2) is the largest that is private: of dropping, or of keeping.
    most = min(math.exp(min(epsilon, 700.0)) * delta + delta, 1 - math.exp(-epsilon) * (1 - delta - delta))
    assert log_p[1] == pytest.approx(math.log(min(most, 1.0)), rel=1e-5, abs=1e-30)
    kept, dropped = partition_selection.probabilities(epsilon, delta)
    assert np.isfinite([kept, dropped]).all() and kept[1] == pytest.approx(delta, rel=1e-12)
    assert (np.diff(kept) >= 0).all() and (kept[-1], dropped[-1]) == (1.0, 0.0)
    if epsilon < 100:  # beyond, what is dropped next has no float
        assert (dropped[:-1] - math.exp(epsilon) * dropped[1:]).max() <= delta * (1 + 1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-12), (1e-12, 1e-15), (1e-30, 1e-30)])
def test_partition_selection_that_no_count_passes_surely_is_refused(epsilon: float, delta: float) -> None:
    for make in (partition_selection.mechanism, partition_selection.saturation):
        with pytest.raises(ValueError, match="so large that a count below 2147483520 is surely kept"):
            make(epsilon=epsilon, delta=delta)

    @jax.jit
    def status(epsilon: Any, delta: Any) -> Any:
        return partition_selection.mechanism(epsilon=epsilon, delta=delta)(jax.random.key(0), [0]).status

    assert status(epsilon, delta) == Status.BAD_PARAMETER and status(1.0, 1e-6) == Status.OK


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-8), (2.0, 0.3)])
def test_partition_selection_spends_its_budget_exactly(epsilon: float, delta: float) -> None:
    counts = np.arange(partition_selection.saturation(epsilon, delta) + 3, dtype=np.int32)
    with jax.enable_x64(True):
        kept = compiled(partition_selection.log_keep, counts, epsilon=epsilon, delta=delta)
        p, q = (np.exp(np.asarray(x)) for x in kept)
    more = p[1:] - math.exp(epsilon) * p[:-1]  # a person joins: kept more often
    fewer = q[:-1] - math.exp(epsilon) * q[1:]  # a person leaves: dropped more often
    assert np.maximum(more, fewer).max() <= delta * (1 + 1e-6)
    tight = np.isclose(np.maximum(more, fewer), delta, rtol=1e-6)
    assert tight[: counts[-1] - 4].all()  # every step but the last, where p reaches 1 early


# AboveThreshold


@pytest.mark.thorough
@pytest.mark.parametrize("threshold", [4.0, thorough(-20.0), thorough(30.0)])
def test_above_threshold_law_against_adaptive_quadrature(threshold: float) -> None:
    queries = np.array([3.0, 5.0, 0.0, 4.0, 5.0])
    expected = first_above(queries, threshold, 1.0, range(6))
    np.testing.assert_allclose(
        np.exp(compiled(above_threshold.log_pmf, queries, threshold, epsilon=1.0)), expected, rtol=1e-5
    )
    with jax.enable_x64(True):
        got = np.exp(np.asarray(compiled(above_threshold.log_pmf, queries, threshold, epsilon=1.0)))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_scores_of_16_bits_are_subtracted_in_32(dtype: Any) -> None:
    """The difference of 60000 and -60000 is no float16, and that of 32768 and 65, or 63, has more digits than 16 bits hold."""
    for top in (65, 63):
        scores = jnp.array([32768, top], dtype)
        for mechanism in (
            exponential.mechanism(epsilon=1e-3),
            report_noisy_max.mechanism(epsilon=1e-3),
            stability.mechanism(epsilon=1e-4, delta=1e-3),
        ):
            np.testing.assert_array_equal(mechanism.pmf(scores), mechanism.pmf(scores.astype(jnp.float32)))
    far = np.array([60000, -60000], dtype)
    half = exponential.mechanism(epsilon=1e-5)
    np.testing.assert_allclose(half.pmf(far), half.pmf(far.astype(np.float32)))


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.int8, thorough(np.int16), thorough(np.int32)])
def test_narrow_integers_are_the_same_traced(dtype: Any) -> None:
    scores = jnp.array([0, 5, 100], dtype)
    choose, flip = exponential.mechanism(epsilon=1.0), report_noisy_max.mechanism(epsilon=1.0)
    noisy = geometric.mechanism(epsilon=5.0)

    @jax.jit
    def traced(scores: jax.Array) -> Any:
        return choose.pmf(scores), flip.pmf(scores), noisy(jax.random.key(0), scores).hypothesis

    *laws, released = jax.device_get(traced(scores))
    for mechanism, law in zip((choose, flip), laws, strict=True):
        np.testing.assert_allclose(law, mechanism.pmf([0, 5, 100]), rtol=1e-6)
    assert released.tolist() == noisy(jax.random.key(0), scores).hypothesis.tolist()


def test_scores_of_which_a_difference_is_no_float_are_refused() -> None:
    largest = float(np.finfo(np.float32).max)
    mechanism = exponential.mechanism(epsilon=1.0)
    assert mechanism.fits(mechanism.fit([largest / 2, -largest / 2]))
    assert mechanism(jax.random.key(0), [largest, -largest]).status == Status.OUTSIDE_DOMAIN


def test_another_order_of_bytes_is_the_same_data() -> None:
    for dtype in (">f8", ">f4", ">i4"):
        given = np.array([1, 2, 5], dtype)
        for mechanism in (exponential.mechanism(epsilon=1.0), laplace.mechanism(epsilon=1.0)):
            one, other = (mechanism(jax.random.key(0), data).hypothesis for data in (given, given.tolist()))
            np.testing.assert_array_equal(one, other)


def test_keys_of_the_older_form_draw_the_same() -> None:
    for mechanism in (laplace.mechanism(epsilon=1.0), exponential.mechanism(epsilon=1.0)):
        new, old = (mechanism(key, [1.0, 2.0]).hypothesis for key in (jax.random.key(3), jax.random.PRNGKey(3)))
        np.testing.assert_array_equal(new, old)


@pytest.mark.thorough
def test_above_threshold_law_has_right_derivatives_where_kinks_meet_cuts(x64: None) -> None:
    def law(epsilon: Any) -> Any:
        return jnp.exp(above_threshold.log_pmf(np.array([8, 6, 12]), 10, epsilon=epsilon))

    @jax.jit
    def slopes(epsilon: Any) -> Any:
        return law(epsilon), jax.jacrev(law)(epsilon), jax.jacfwd(jax.jacfwd(law))(epsilon)

    for epsilon in (0.5, 1.0, 2.0, 0.99):  # whole margins, and some between
        after, before, at = map(jax.device_get, map(slopes, (epsilon + 1e-5, epsilon - 1e-5, epsilon)))
        np.testing.assert_allclose(at[1], (after[0] - before[0]) / 2e-5, rtol=1e-6)
        np.testing.assert_allclose(at[2], (after[1] - before[1]) / 2e-5, rtol=1e-4)


def test_above_threshold_law_of_64_queries() -> None:
    queries = np.random.default_rng(0).integers(0, 30, 64)
    with jax.enable_x64(True):
        exact = np.exp(np.asarray(compiled(above_threshold.log_pmf, queries, 25, epsilon=1.0)))
    assert abs(exact.sum() - 1) < 1e-11
    np.testing.assert_allclose(exact[[20, 64]], first_above(queries, 25, 1.0, [20, 64]), rtol=1e-9)
    got = compiled(above_threshold.log_pmf, queries.astype(np.int32), jnp.int32(25), epsilon=1.0)
    np.testing.assert_allclose(np.exp(np.asarray(got, float)), exact, rtol=1e-5)


@pytest.mark.parametrize("n", [2**24, 2**29])
def test_a_count_more_is_one_more_beside_a_threshold_that_is_no_float(n: int) -> None:
    """When large counts were rounded first, neighbouring ones were equal, or up to 64 apart: losses of 4 and 16 where 1 was promised."""
    choose = choosing.mechanism(n=n, epsilon=1.0, delta=1e-6, alpha=0.3)
    at = int(0.15 * n)
    bottoms = np.array([choose.pmf(jnp.array([at + more, 0], jnp.int32))[-1] for more in range(20, 26)], float)
    np.testing.assert_allclose(np.diff(np.log(bottoms)), -0.25, atol=1e-3)
    test = above_threshold.mechanism(epsilon=1.0, threshold=n + 0.5)
    first = np.array([test.pmf(jnp.array([n + more], jnp.int32))[1] for more in range(20, 26)], float)
    assert np.all(np.abs(np.diff(np.log(first))) <= 0.5 + 1e-3) and np.all(np.diff(first) < 0)


def test_whole_numbers_that_no_float_holds_get_no_laplace_noise() -> None:
    noise = laplace.mechanism(epsilon=1.0)
    with pytest.raises(ValueError, match="value must be whole numbers up to 16777216 in size"):
        noise(jax.random.key(0), 2**24 + 1)
    run = jax.jit(lambda value: noise(jax.random.key(0), value).status)
    assert run(jnp.int32(2**24)) == Status.OK and run(jnp.int32(2**24 + 1)) == Status.OUTSIDE_DOMAIN
    assert noise(jax.random.key(0), 2.0**30).status == Status.OK


def test_pure_functions_look_at_what_they_are_given() -> None:
    """Anything that counts as true halved the noise, what is no integer was never a release, a complex number lost a part."""
    given: dict[str, Any] = {"epsilon": 1.0}
    for wrong in ("False", math.nan, 1):
        with pytest.raises(TypeError, match="monotone must be True or False"):
            report_noisy_max.log_pmf([1, 2], **given, monotone=wrong)
    for law in (one_sided_geometric.log_pmf, one_sided_geometric.log_sf, one_sided_geometric.log_cdf):
        with pytest.raises(TypeError, match="noise must hold signed integers"):
            law(2.9, **given)
    for value in (np.array(3 + 4j), np.array(["3"]), np.array(None), jnp.array(3 + 4j)):
        with pytest.raises(TypeError, match=r"value must|parameter .value"):
            laplace.laplace(jax.random.key(0), value, **given)
        with pytest.raises(TypeError, match=r"output must|parameter .output"):
            laplace.log_cdf(value, 0.0, **given)
    for threshold in (math.nan, [1.0, 2.0]):
        with pytest.raises(ValueError, match="threshold must be a single number"):
            above_threshold.log_pmf([1, 2], threshold, **given)
    assert laplace.laplace(jax.random.key(0), 2**70, **given) > 1e21
    assert stability.log_keep(np.uint8(3), **given, delta=0.1) == stability.log_keep(3.0, **given, delta=0.1)
    with pytest.raises(TypeError, match="gap must hold"):
        stability.log_keep(1 + 1j, **given, delta=0.1)
    with pytest.raises(TypeError, match="delta must be a real number"):
        choosing.private_sample_size(epsilon=1.0, delta="0.1", alpha=0.5)


@pytest.mark.parametrize("key", [None, 3, [0, 0]])
def test_pure_functions_take_keys(key: Any) -> None:
    for draw in (
        lambda: laplace.laplace(key, 0.0, epsilon=1.0),
        lambda: geometric.geometric(key, 0, epsilon=1.0),
        lambda: one_sided_geometric.one_sided_geometric(key, epsilon=1.0),
        lambda: exponential.exponential(key, [1, 2], epsilon=1.0),
        lambda: report_noisy_max.report_noisy_max(key, [1, 2], epsilon=1.0),
        lambda: above_threshold.above_threshold(key, [1, 2], 1, epsilon=1.0),
        lambda: stability.stability(key, [1, 2], epsilon=1.0, delta=0.1),
        lambda: choosing.choosing(key, [1, 2], n=3, epsilon=1.0, alpha=0.5),
        lambda: partition_selection.partition_selection(key, jnp.array([3]), epsilon=1.0, delta=0.1),
    ):
        with pytest.raises(TypeError, match="key must be a single PRNG key"):
            jax.eval_shape(draw)  # traced only: what comes before the check would be compiled operation by operation


def test_an_epsilon_whose_inverse_is_no_float_shows_in_the_status() -> None:
    """On CPUs, which treat subnormal numbers as 0, it always did."""
    status = jax.jit(lambda epsilon: laplace.mechanism(epsilon=epsilon)(jax.random.key(0), 3.0).status)
    assert status(np.float32(1e-38)) == Status.BAD_PARAMETER and status(np.float32(1e-30)) == Status.OK


def test_the_host_computes_in_float64_whatever_it_is_given() -> None:
    kept = partition_selection.probabilities(1.0, 0.1)[0]
    assert (partition_selection.probabilities(np.float32(1.0), 0.1)[0] == kept).all()


def test_bottom_shows_no_candidate():
    """Neither the best one, nor the one that was chosen before the test."""
    scores = np.array([0, 0, 4], np.int32)

    @jax.jit
    @jax.vmap
    def draws(seed: Any) -> Any:
        one, other = jax.random.split(jax.random.key(seed))
        kept = stability.stability(one, scores, epsilon=1.0, delta=1e-2)
        return kept, choosing.choosing(other, scores, n=40, epsilon=1.0, alpha=0.5)

    for found in jax.device_get(draws(np.arange(64, dtype=np.uint32))):
        assert not found.ok.all() and not found.index[~found.ok].any()


@pytest.mark.parametrize("epsilon", [1e-5, 1e-4])
def test_a_large_base_measure_takes_no_digits_from_the_scores(epsilon: float) -> None:
    """Both candidates weigh ln 2^4096 = 2839, of which a float32 has steps of 2^-12: one record moves no law by more than epsilon."""
    choose = exponential.mechanism(epsilon=epsilon)
    heavy = jnp.full(2, 4096 * math.log(2.0))

    @jax.jit
    @jax.vmap
    def law(score: jax.Array) -> jax.Array:
        return choose.log_law(candidates(jnp.stack([score, jnp.int32(0)]), log_measure=heavy))[:2]

    laws = np.asarray(law(jnp.arange(4000, dtype=jnp.int32)), float)
    assert np.abs(laws[2:] - laws[:-2]).max() <= 1.01 * epsilon + 1e-6  # (s + 2, 0) is (s + 1, -1), a neighbour


@pytest.mark.parametrize("measure", [0.0, 2839.0, 1e6, 3e38])
def test_a_base_measure_that_is_the_same_for_all_changes_nothing(measure: float) -> None:
    given = candidates(jnp.array([1, 2], jnp.int32), log_measure=jnp.full(2, measure))
    law = exponential.mechanism(epsilon=1.0).pmf(given)
    np.testing.assert_allclose(law, [1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5)), 0.0], rtol=1e-5)


def test_the_least_noise_that_an_integer_holds_has_a_probability() -> None:
    noise = geometric.mechanism(epsilon=0.5)
    assert float(noise.log_prob(0, -(2**31))) == pytest.approx(-(2.0**30), rel=1e-6)
    for far in (geometric.log_cdf(-(2**31), 0, epsilon=0.5), geometric.log_sf(2**31 - 1, 0, epsilon=0.5)):
        assert float(far) == pytest.approx(-(2.0**30), rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-6), (1.0, 1e-30), (0.05, 1e-9)])
def test_rounding_adds_little_to_the_delta_of_partition_selection(epsilon: float, delta: float) -> None:
    """In single precision. For the first two, a fiftieth of the allowance would not do (negative control)."""
    counts = np.arange(partition_selection.saturation(epsilon, delta) + 2, dtype=np.int32)
    log_keep, log_drop = compiled(partition_selection.log_keep, counts, epsilon=epsilon, delta=delta)
    keep, drop = np.exp(np.asarray(log_keep, float)), np.exp(np.asarray(log_drop, float))
    factor = math.exp(epsilon)
    excess = max(np.max(keep[1:] - factor * keep[:-1]), np.max(drop[:-1] - factor * drop[1:])) - delta
    assert excess <= 5e-6 and (excess > 1e-7 or epsilon < 1)


def test_partition_selection_has_derivatives_where_a_probability_rounds_to_one():
    """ln(1 - p) once was 0 in the branch that was not taken, and its derivative infinite."""

    def logs(epsilon):
        return jnp.stack(partition_selection.log_keep(jnp.arange(6), epsilon=epsilon, delta=1e-8))

    assert np.isfinite(jax.jit(jax.vmap(jax.jacrev(logs)))(jnp.arange(10.0, 60.0))).all()


def test_what_gives_no_probability_of_a_release_says_so():
    with pytest.raises(NotImplementedError, match="PartitionSelection does not give the probability that something"):
        jax.eval_shape(  # it is refused before anything runs
            lambda key: estimators.score_function(
                key,
                partition_selection.mechanism(epsilon=1.0, delta=0.1),
                np.array([2, 3]),
                lambda outcome: outcome.hypothesis[0].astype(float),
                draws=4,
            ),
            jax.random.key(0),
        )


@pytest.mark.thorough
@pytest.mark.parametrize(("left", "right"), [(1, 8), (2, 7), (6, 8)])
def test_short_pieces_of_a_wide_domain_keep_their_lengths(left, right):
    """In units of the domain their logarithms would be off by 0.0002."""
    at = 2**4095
    starts, last = [0, at, at + left, at + left + right], 2**4096
    pieces = ordered.from_breakpoints(starts, [0.0, 1.2e7, 1.2e7, 0.0], last, beyond=0.0)
    choose = exponential_piecewise.mechanism(epsilon=0.001)
    p, q = choose.probability(pieces, (at, at + left))
    assert abs(math.log(p) - math.log(left / (left + right))) < 1e-5 and float(p + q) == pytest.approx(1, abs=1e-6)


def test_laplace_gives_an_event_beyond_all_numbers_no_probability():
    """Also where 10,000 scales of noise are more than a float32."""
    for end in (math.inf, -math.inf):
        assert laplace.mechanism(epsilon=1e-35).probability(0.0, (end, end)).tolist() == [0.0, 1.0]
