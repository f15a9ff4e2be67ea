"""`dpjax.check` on algorithms that somebody else might write: correct ones, broken ones, odd ones."""

import dataclasses
import functools
import gc
import itertools
import math
import types
import weakref
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import Outcome, Sample, Status
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.core.pytree import frozen, static
from dpjax.data.algorithm import of_dpjax
from dpjax.data.examples import Examples
from dpjax.data.multi_sample import MultiSample
from dpjax.data.points import Points
from dpjax.learners import parities, thresholds
from dpjax.multi import direct_sum
from dpjax.sanitizers import dense
from dpjax.sanitizers.dense.queries import Thresholds
from dpjax.sanitizers.dense.queries import thresholds as threshold_queries
from dpjax.verify import agreement, audit_samples, check, dominating, histograms, laws, neighbours, runs, suspects
from dpjax.verify.family import family, kind_of
from dpjax.verify.laws import least_epsilon

SMALL: dict[str, Any] = {"n": 4, "domain": 2}


@pytest.fixture(autouse=True)
def as_strangers_have_it() -> Any:
    """Users' code is written for JAX with its defaults, without the strictness of the test session."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def word(key: Any) -> int:
    """A random word for a Python loop: half of the key itself, which runs no program."""
    return int(np.asarray(jax.random.key_data(key))[1])


# Algorithms run untraced too, operation by operation: what is one program here is compiled once for all of them.
method = functools.partial(jax.jit, static_argnums=0)  # of an object that is told apart by its identity


@jax.jit
def vote_law(epsilon: Any, sample: Any) -> Any:
    valid = jnp.arange(sample.x.shape[0]) < sample.n_valid
    ones = jnp.sum(jnp.where(valid, sample.y, 0))
    return jax.nn.softmax(0.5 * epsilon * jnp.stack([sample.n_valid - ones, ones]).astype(float))


@jax.jit
def second_by_law(key: Any, law: Any) -> Any:
    """Whether the second outcome is drawn."""
    return (jax.random.uniform(key) < law[1]).astype(jnp.int32)


class Vote:
    """The majority label, by the exponential mechanism: a count changes by at most one, so it is epsilon-private."""

    def __init__(self, epsilon: float, claimed: float | None = None) -> None:
        self.epsilon, self.claimed = epsilon, epsilon if claimed is None else claimed

    def pmf(self, sample: Any) -> Any:
        return vote_law(self.epsilon, sample)

    def __call__(self, key: Any, sample: Any) -> Any:
        return second_by_law(key, self.pmf(sample))

    def guarantee(self) -> Guarantee:
        return Guarantee(self.claimed, 0.0, REPLACE_ONE)


class Stated(Vote):
    """A vote with a law but without runs: a check of it compiles none."""

    def __call__(self, key: Any, sample: Any) -> Any:
        raise NotImplementedError


def sampler(vote: Vote, wrap: Any = lambda label: label) -> Any:
    """The same vote without a law or a claim."""
    return lambda key, sample: wrap(vote(key, sample))


def truth(epsilon: float, n: int = 4) -> tuple[float, float]:
    """(delta(1/4), pure epsilon) of Vote(epsilon), by plain loops."""
    laws = [1 / (1 + math.exp(epsilon / 2 * (n - 2 * ones))) for ones in range(n + 1)]
    laws = [(1 - p, p) for p in laws]
    pairs = [(laws[i], laws[j]) for i in range(n + 1) for j in (i - 1, i + 1) if 0 <= j <= n]
    delta = max(sum(max(0.0, a - math.exp(0.25) * b) for a, b in zip(p, q, strict=True)) for p, q in pairs)
    return delta, max(math.log(a / b) for p, q in pairs for a, b in zip(p, q, strict=True))


# --------------------------------------------------------------------------------------------------------- exact laws


@pytest.mark.thorough
def test_a_voting_learner_is_verified() -> None:
    report = check(Vote(1.0), epsilon=0.25, **SMALL)
    delta, pure = truth(1.0)
    assert report.exact and report.holds and not report.refutes(Guarantee(1.0, 0.0, REPLACE_ONE))
    assert report.level == 1.0 and report.delta == pytest.approx(delta, rel=1e-9)
    with pytest.raises(ValueError, match="errors must be <= 1"):
        report.trade_off([0.5, 1.5])
    assert report.epsilon_at(0.0) == pytest.approx(pure, rel=1e-9)
    assert report.epsilon_at(delta) == pytest.approx(0.25, rel=1e-9)
    assert report.delta_at(pure * (1 + 1e-9)) == 0.0 < report.delta_at(pure * (1 - 1e-6))
    first, second = report.worst_pair
    assert len(first) == len(second) == 4 and sum(map(bool, set(first) ^ set(second))) <= 2
    assert abs(sum(y for _, y in first) - sum(y for _, y in second)) == 1
    assert "verified exactly" in repr(report) and "holds" in repr(report) and str(first) in repr(report)


class Cached:
    """An algorithm that computes something on its first use, which happens while it is traced."""

    @functools.cached_property
    def half(self) -> Any:
        return jnp.array([0.5, 0.5])[0]

    def __call__(self, key: Any, sample: Any) -> Any:
        return jnp.where(jax.random.uniform(key) < self.half, sample.y[0], 0)


class CachedConstant(Cached):
    @functools.cached_property
    def half(self) -> Any:
        return jnp.float32(0.5)


class CachedLaw(Cached):
    def pmf(self, sample: Any) -> Any:
        return jnp.where(sample.y[0] == 1, jnp.stack([1 - self.half, self.half]), jnp.array([1.0, 0.0]))


@pytest.mark.parametrize("kind", [Cached, CachedConstant, CachedLaw])
def test_what_is_kept_of_a_trace_is_named(kind: Any) -> None:
    with pytest.raises(
        TypeError, match=r"algorithm must keep nothing .* \(now in half\), as a functools\.cached_property"
    ):
        check(kind(), n=1, domain=1)


def test_programs_do_not_outlive_a_check() -> None:
    """A thousand checks must not leave a thousand programs behind: each takes memory maps, of which a process has some 65,000."""
    values = np.zeros(4, np.int32)
    added = jax.jit(lambda key, given: given[0] + jax.random.bits(key))
    runner = runs.runner(added, lambda given, size: given, values, 4)
    runner.outcomes(jax.random.key(0), values, 4, 1)
    program = weakref.ref(runner._block)
    del runner
    gc.collect()
    assert program() is None


def test_what_two_outcomes_in_one_result_chose_on_the_way_is_not_released() -> None:
    def told(sample: Any, bit: Any) -> Outcome:
        inside = Outcome.of(bit.astype(jnp.int32), Status.OK, {"first": sample.x[0, 0]})
        return Outcome(hypothesis=inside, status=jnp.int32(0), info={"first": sample.x[0, 0]})

    @jax.jit
    def both(key: Any, sample: Any) -> Any:
        one, other = jax.random.bits(key, (2,)) % 2
        return told(sample, one), {"second": told(sample, other)}

    assert check(both, n=1, domain=2, epsilon=1.0, delta=0.0, trials=4096).holds is None


@pytest.mark.parametrize(
    "leak",
    [
        lambda x: {x: 1},
        lambda x: (1, None) if x else (None, 1),
        lambda x: ([1], [2, 3]) if x else ([1, 2], [3]),
        lambda x: np.arange(6).reshape((2, 3) if x else (3, 2)),
        lambda x: jax.tree_util.Partial(max if x else min, 1),
    ],
)
def test_what_leaks_by_structure_is_seen(leak: Any) -> None:
    run = lambda key, points: leak(int(points.x[0, 0]))  # noqa: E731
    report = check(run, n=1, domain=2, data=Points, delta=0.0, trials=1000)
    assert report.holds is False and report.delta > 0.9


@pytest.mark.parametrize("same", [lambda x: 1 if x else np.int32(1), lambda x: True if x else 1, lambda x: 0.5 + 0 * x])
def test_one_number_in_two_widths_is_one_outcome(same: Any) -> None:
    run = lambda key, points: same(int(points.x[0, 0]))  # noqa: E731
    assert check(run, n=1, domain=2, data=Points, delta=0.0, trials=1000).delta == 0.0


def test_an_integer_among_real_numbers_is_one_and_more_is_refused() -> None:
    def audited(result: Any) -> Any:
        def run(key: Any, points: Any) -> Any:
            return result(int(points.x[0, 0]), word(key) % 2)

        return check(run, n=1, domain=2, data=Points, delta=0.0, trials=400)

    assert audited(lambda x, coin: 7 if coin else 0.5).holds is None
    assert audited(lambda x, coin: 7 + x if coin else 0.5).holds is False
    blank = Outcome(hypothesis=None, status=np.int32(Status.BOTTOM), info={})
    assert (
        audited(lambda x, coin: Outcome(hypothesis=1.5, status=np.int32(0), info={}) if coin else blank).holds is None
    )
    with pytest.raises(TypeError, match="must return always one real number or never"):
        audited(lambda x, coin: [1, 2] if coin else 0.5)


def test_runs_that_cannot_be_compared_with_the_pmf_leave_the_claim_open() -> None:
    class Prints(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.array([0.5, 0.5])

        def __call__(self, key: Any, sample: Any) -> Any:
            return jnp.array([1.0, 2.0]) * sample.x[0, 0]

    report = check(Prints(1.0), **SMALL)
    assert report.holds is None and "could not be compared with this law" in repr(report)


def test_a_small_change_of_the_law_with_the_order_of_records_is_seen() -> None:
    class Ordered(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.array([0.5, 0.5]) + jnp.where(sample.x[0, 0] > sample.x[1, 0], 1e-9, 0.0) * jnp.array([1, -1])

    with pytest.raises(ValueError, match="ordered must be True"):
        check(Ordered(1.0), n=2, domain=2)


def law_alone(law: Any, epsilon: float = 1.0) -> Any:
    """An algorithm on points that only states a law, and a guarantee."""

    class Alone:
        kind = Points

        def guarantee(self) -> Guarantee:
            return Guarantee(epsilon, 0.0, REPLACE_ONE)

        def pmf(self, points: Any) -> Any:
            return law(points.x[:, 0])

        def __call__(self, key: Any, points: Any) -> Any:
            raise NotImplementedError

    return Alone()


@pytest.mark.parametrize("outcomes", [100, 2**17])
def test_many_small_changes_with_the_order_of_records_are_a_large_one(outcomes: int) -> None:
    """In double precision, with sums that are off by 4e-13, and in single precision, where the laws have nothing in common."""
    first = np.arange(outcomes) < outcomes // 2

    def in_double(half: Any) -> Any:
        return 1 / outcomes + 9e-6 * np.where(first, 1.0, -1.0) * half + 4e-15

    def in_single(half: Any) -> Any:
        return jnp.where(first == half, jnp.float32(2 / outcomes), jnp.float32(0.0))

    law = in_double if outcomes == 100 else in_single
    with pytest.raises(ValueError, match="ordered must be True"):
        check(law_alone(lambda x: law(x[0] > x[1])), n=2, domain=2)


@pytest.mark.parametrize("narrow", [jnp.float16, jnp.bfloat16, "numpy"])
def test_a_law_in_half_precision_is_refused(narrow: Any) -> None:
    """Also of one that returns it in double precision, but for NumPy's, where nothing else is seen."""

    def law(x: Any) -> Any:
        p = 0.5 + 1.2e-4 * x[0].astype(float) * jnp.array([1.0, -1.0])
        return np.asarray(p).astype(np.float16) if narrow == "numpy" else p.astype(narrow).astype(float)

    with pytest.raises(ValueError, match=r"16 bits or fewer|float16"):
        check(law_alone(law), n=1, domain=2, epsilon=0.0, delta=1e-6)


@pytest.mark.parametrize("epsilon", [700.0, 709.0, 2000.0])
def test_a_private_law_whose_probabilities_are_no_floats_is_not_refuted(epsilon: float) -> None:
    vote = lambda x: jax.nn.softmax(epsilon / 2 * (2 * x[0].astype(float) - 1) * jnp.array([-1.0, 1.0]))  # noqa: E731
    report = check(law_alone(vote, epsilon), n=1, domain=2)
    assert report.holds is (True if epsilon == 700.0 else None)
    assert not report.refutes(Guarantee(epsilon, 0.0, REPLACE_ONE))


@pytest.mark.parametrize(("epsilon", "log_p"), [(702.0, math.log(1e-6)), (708.0, math.log(0.5))])
def test_a_likely_outcome_that_is_no_float_on_a_neighbour_refutes_nothing(epsilon: float, log_p: float) -> None:
    def law(x: Any) -> Any:
        p = jnp.exp(jnp.where(x[0] == 0, log_p, log_p - epsilon))
        return jnp.stack([p, 1 - p])

    assert check(law_alone(law, epsilon), n=1, domain=2).holds is None


@pytest.mark.parametrize(
    ("epsilon", "kind"), [(11.0, float), (12.0, float), (30.0, float), (37.0, float), (5.25, np.float32)]
)
def test_digits_lost_in_a_difference_refute_nothing(epsilon: float, kind: Any) -> None:
    """Randomized response is exactly epsilon-private; its computed 1 - p is off by up to an ulp of 1, exp(epsilon) times that matters."""
    keep = np.asarray(1 / (1 + np.exp(-np.asarray(epsilon, kind)))).astype(kind)

    def law(x: Any) -> Any:
        p = jnp.asarray(keep)
        return jnp.where(x[0] == 1, jnp.stack([1 - p, p]), jnp.stack([p, 1 - p]))

    report = check(law_alone(law, epsilon), n=1, domain=2)
    assert report.holds is not False
    assert report.refutes(Guarantee(epsilon - 2.0, 0.0, REPLACE_ONE))


@pytest.mark.parametrize("likely", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("epsilon", [22.0, 23.0, 25.0, 26.0, 28.1])
def test_digits_lost_in_two_differences_refute_nothing(likely: float, epsilon: float) -> None:
    """The rare outcome is what two others leave: off by the last digit of the smaller one, which is less than that of 1."""

    def law(x: Any) -> Any:
        rest = 1.0 - likely
        rare = rest / 2 * jnp.where(x[0] == 1, 1.0, math.exp(-epsilon))
        other = rest - rare
        return jnp.stack([jnp.asarray(likely), other, 1.0 - likely - other])

    report = check(law_alone(law, epsilon), n=1, domain=2)
    assert report.holds is not False
    assert report.refutes(Guarantee(epsilon - 4.0, 0.0, REPLACE_ONE))


def test_digits_that_a_law_keeps_refute() -> None:
    law = lambda x: jax.nn.softmax(jnp.where(x[0] == 0, 1.0, -1.0) * jnp.array([30.0, 0.0]))  # noqa: E731
    assert check(law_alone(law, 30.0), n=1, domain=2).refutes(Guarantee(29.9, 0.0, REPLACE_ONE))


def flips(keep: Any, x: Any) -> Any:
    return jnp.where(x[0] == 1, jnp.stack([1 - keep, keep]), jnp.stack([keep, 1 - keep]))


@pytest.mark.parametrize("epsilon", [12.0, 30.0])
def test_digits_lost_in_a_difference_that_is_multiplied_refute_nothing(epsilon: float) -> None:
    """Randomized response and a coin of its own: the product hides that 1 - keep has few digits."""
    coin = np.array([0.3, 0.7])
    law = lambda x: jnp.outer(flips(jax.nn.sigmoid(epsilon), x), coin).ravel()  # noqa: E731
    report = check(law_alone(law, epsilon), n=1, domain=2)
    assert report.holds is not False
    assert report.refutes(Guarantee(epsilon - 1.0, 0.0, REPLACE_ONE))


@pytest.mark.parametrize("epsilon", [47.9, 80.3])
def test_the_last_digit_of_a_logarithm_in_single_precision_refutes_nothing(epsilon: float) -> None:
    law = lambda x: jax.nn.softmax(jnp.where(x[0] == 0, 1, 0) * jnp.array([epsilon, 0.0], jnp.float32))  # noqa: E731
    one = lambda x: jnp.where(x[0] == 0, law(x), law(1 - x)[::-1])  # noqa: E731
    assert check(law_alone(one, epsilon), n=1, domain=2).holds is not False


@pytest.mark.parametrize(("epsilon", "claimed"), [(36.3, 36.05), (35.0, 34.95)])
def test_digits_lost_in_a_difference_prove_nothing(epsilon: float, claimed: float) -> None:
    """At (36.05, 0) the true delta is 0.22, but 1 - sigmoid(36.3) is rounded up to 2^-52."""
    assert check(law_alone(lambda x: flips(jax.nn.sigmoid(epsilon), x), claimed), n=1, domain=2).holds is None


def test_a_rare_outcome_that_the_law_excludes_is_seen() -> None:
    """One run in a hundred reveals the label."""
    fair = jnp.array([0.5, 0.5, 0.0, 0.0])

    class Rare:
        def pmf(self, sample: Any) -> Any:
            return fair

        @method
        def __call__(self, key: Any, sample: Any) -> Any:
            coin, often = jax.random.bits(key, (2,))
            return jnp.where(often < 2**32 // 100, 2 + sample.y[0], (coin % 2).astype(jnp.int32))

    report = check(Rare(), n=1, domain=1, delta=0.0)
    assert report.holds is None and "where the law has 0.5, 0.5, 0, ..." in str(report.disagreement)


def test_rows_that_do_not_count_are_no_data() -> None:
    """If all of these rows held a zero, counting it would reveal nothing."""
    law = jax.jit(lambda x: jax.nn.softmax(jnp.sum(x == 0) * jnp.arange(2.0)))
    assert check(law_alone(law), n=4, domain=2, relation=ADD_OR_REMOVE_ONE, delta=0.0).holds is False


def no_coin_where(holds: Any) -> Any:
    """A fair coin by its law, whose runs are 0 for points of which something holds."""

    class Coin:
        def pmf(self, points: Any) -> Any:
            return jnp.array([0.5, 0.5])

        @method
        def __call__(self, key: Any, points: Any) -> Any:
            return jnp.where(holds(points.x), 0, jax.random.bits(key) % 2)

    return Coin()


def test_the_last_dataset_is_run() -> None:
    """The runs depart from the law where all records are 0, which is the last of 20 multisets."""
    report = check(no_coin_where(lambda x: (x == 0).all()), n=3, domain=4, data=Points, delta=0.0)
    assert report.holds is None and "on the records [0, 0, 0]" in str(report.disagreement)


def on_a_grid(outcomes: int, dtype: Any, scale: float = 0.6, sensitivity: float = 0.6) -> Any:
    """Laplace noise on a grid, by differences of its distribution function: all outcomes have an error of their own."""

    def law(x: Any) -> Any:
        centre = jnp.sum(
            jnp.array([0.3, 0.3 + sensitivity], dtype)[x.astype(int)] * np.linspace(1, 0.7, len(x)).astype(dtype)
        )
        z = (np.linspace(-40, 40, outcomes - 1).astype(dtype) - centre) / np.asarray(scale, dtype)
        below = jnp.where(z < 0, jnp.exp(z) / 2, 1 - jnp.exp(-z) / 2)
        return jnp.diff(below, prepend=jnp.zeros(1, dtype), append=jnp.ones(1, dtype))

    return law


def test_the_last_digits_of_many_outcomes_refute_nothing() -> None:
    assert check(law_alone(on_a_grid(100_000, np.float64)), n=1, domain=2).holds
    assert not check(law_alone(on_a_grid(100_000, np.float64, sensitivity=0.601)), n=1, domain=2).holds


def test_a_leak_in_the_last_digits_of_many_outcomes_is_in_the_loss_distribution() -> None:
    """Half a digit of a distribution function, up or down by turns, tells the data at 3e-5; in single precision it is rounded off."""
    outcomes = 4096
    turns = 0.49 * 2.0**-24 * np.where(np.arange(outcomes // 2, outcomes) % 2, 1.0, -1.0)
    moved = np.concatenate([np.zeros(outcomes // 2), turns, [0.0]])
    laws = [np.diff(np.arange(outcomes + 1) / outcomes + sign * moved) for sign in (1, -1)]
    leak = np.maximum(laws[0] - laws[1], 0.0).sum()
    computed = [np.diff((np.arange(outcomes + 1) / outcomes + sign * moved).astype(np.float32)) for sign in (1, -1)]
    report = check(law_alone(lambda x: jnp.where(x[0] == 0, *computed)), n=1, domain=2)
    assert leak > 3e-5
    assert report.to_pld().get_delta_for_epsilon(0.0) >= leak
    assert 1 - report.trade_off([0.0])[0] >= leak


@pytest.mark.parametrize("interval", [1e-300, 1e-20, 1e-9])
def test_a_grid_of_losses_too_fine_to_hold_is_refused(interval: float) -> None:
    report = check(law_alone(lambda x: flips(0.75, x)), n=1, domain=2)
    with pytest.raises(ValueError, match=rf"^interval must be at least 1.64e-08, .*got {interval}"):
        report.to_pld(interval)


def test_the_divergence_of_the_highest_orders_is_that_of_infinity() -> None:
    report = check(law_alone(lambda x: flips(1 - 1e-9, x)), n=1, domain=2)
    assert report.renyi([1e308])[0] == report.renyi([math.inf])[0] < 21


def test_outcomes_that_are_rare_each_count_together_in_divergences() -> None:
    pairs = np.array([[0, 1], [1, 0]])
    leak = np.kron(np.eye(2), np.full(2000, 1 / 2000))
    assert dominating.renyi(leak, pairs, 1e-3, 2.0) == dominating.concentration(leak, pairs, 1e-3) == math.inf
    whole = np.array([[0.75, 0.25], [0.25, 0.75]])
    spread = np.repeat(whole / 2000, 2000, axis=1)
    assert math.isclose(dominating.renyi(spread, pairs, 1e-3, 2.0), dominating.renyi(whole, pairs, 0.0, 2.0))
    rounded = np.array([[1.0, 1e-13], [1.0, 0.0]])
    assert dominating.renyi(rounded, pairs, 1e-12, 2.0) == 0.0


@pytest.mark.thorough
def test_an_epsilon_whose_exponential_is_no_float_is_reckoned_with() -> None:
    class Extreme:
        kind = Points

        def guarantee(self) -> Guarantee:
            return Guarantee(706.3, 0.0, REPLACE_ONE)

        def pmf(self, points: Any) -> Any:
            return jnp.where(points.x[0, 0] == 0, jnp.array([1 - 1e-307, 1e-307]), jnp.array([0.5, 0.5]))

        @method
        def __call__(self, key: Any, points: Any) -> Any:
            return jax.random.bernoulli(key, self.pmf(points)[1])

    report = check(Extreme(), n=1, domain=2)
    assert report.holds and report.delta_at(706.1) > 0.04 and report.delta_at(1e300) == 0.0
    assert not report.refutes(Guarantee(706.1, 0.0, REPLACE_ONE))  # 1e-307 may be what rounding left


def test_a_broken_one_is_refuted() -> None:
    report = check(Stated(2.0, claimed=1.0), **SMALL)
    assert report.exact and report.holds is False and report.delta > 0.01 and report.epsilon_at(1e-6) > 1.0
    assert "REFUTED" in repr(report)
    assert check(Stated(2.0), **SMALL).holds
    assert check(Stated(2.0), delta=0.01, **SMALL).holds is False  # (1, 0.01) is claimed instead
    assert check(Stated(2.0), delta=0.5, **SMALL).holds


@pytest.mark.slow
def test_an_algorithm_of_ours_is_verified_in_its_own_domain() -> None:
    report = check(thresholds.exponential(bits=2, epsilon=1.0), n=3, domain=4)
    assert report.exact and report.holds and report.relation == REPLACE_ONE
    assert 0.8 < report.epsilon_at(0.0) <= 1.0 + 1e-9
    assert check(thresholds.erm(bits=2), n=2, domain=4).holds is not False  # promises nothing
    with pytest.raises(ValueError, match=r"domain must be at most 2\^bits = 4"):
        check(thresholds.exponential(bits=2, epsilon=1.0), n=3, domain=5)


@pytest.mark.thorough
def test_runs_that_do_not_follow_the_pmf_are_seen() -> None:
    class Liar(Vote):
        def __call__(self, key: Any, sample: Any) -> Any:
            return sample.y[0]

    report = check(Liar(1.0), **SMALL)
    assert report.disagreement is not None and report.holds is None and "do NOT follow" in repr(report)
    assert check(Vote(1.0), **SMALL).disagreement is None

    class Otherwise(Vote):  # outcomes are named in another order than the law lists them, and by an Outcome
        def __call__(self, key: Any, sample: Any) -> Any:
            label = super().__call__(key, sample)
            return Outcome(hypothesis=jnp.stack([1 - label, label]), status=jnp.int32(Status.OK), info={})

    assert check(Otherwise(1.0), **SMALL).disagreement is None


def test_a_law_in_another_order_for_each_dataset_is_seen() -> None:
    """The law lists (the label is kept, it is flipped): on each dataset by itself the runs have these frequencies."""

    class Kept(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.array([7 / 8, 1 / 8])

        @method
        def __call__(self, key: Any, sample: Any) -> Any:
            return sample.y[0] ^ (jax.random.uniform(key) < 1 / 8).astype(jnp.int32)

    report = check(Kept(1.0), n=1, domain=1)
    assert report.holds is None and "none has such probabilities in the law" in str(report.disagreement)


def _many(draw: Any) -> Any:
    """4096 outcomes, equally likely by the law, each too rare for its frequency to say much."""

    class Many:
        def pmf(self, sample: Any) -> Any:
            return jnp.full(4096, 1 / 4096)

        def __call__(self, key: Any, sample: Any) -> Any:
            return draw(key, sample)

    return Many()


def test_leaks_among_many_rare_outcomes_are_seen() -> None:
    number = lambda key, sample, most: jax.random.randint(key, (), 0, most)  # noqa: E731
    fair = _many(jax.jit(lambda key, sample: number(key, sample, 4096)))
    assert check(fair, n=1, domain=1, delta=0.0).holds
    more = _many(jax.jit(lambda key, sample: jnp.stack([number(key, sample, 4096), sample.y[0]])))
    report = check(more, n=1, domain=1, delta=0.0)
    assert report.holds is None and "different outcomes came, where the law has 4096" in str(report.disagreement)
    half = _many(jax.jit(lambda key, sample: number(key, sample, 2048) + 2048 * sample.y[0]))
    report = check(half, n=1, domain=1, delta=0.0)
    assert report.holds is None and "and none of the law by more than 0" in str(report.disagreement)


def test_runs_that_are_refused_on_some_data_are_seen() -> None:
    def sometimes(key: Any, sample: Any) -> Any:
        if sample.y[0]:
            raise NotImplementedError
        return 0

    report = check(_many(sometimes), n=1, domain=1, delta=0.0)
    assert report.holds is None and "there are none (NotImplementedError)" in str(report.disagreement)


@pytest.mark.thorough
def test_a_class_of_ones_own_is_compared_with_its_runs_whatever_it_inherits() -> None:
    ours = parities.exponential(bits=1, epsilon=1.0)

    class Best(type(ours)):
        def draw(self, key: Any, scores: Any) -> Any:
            found, ok, info = super().draw(key, scores)
            return scores.right.argmax().astype(found.dtype)[None], ok, info

    frozen(Best)
    mine = Best(**{field.name: getattr(ours, field.name) for field in dataclasses.fields(ours) if field.init})
    assert check(mine, n=2, domain=2).holds is None
    assert of_dpjax(ours) and not of_dpjax(mine)
    assert of_dpjax(direct_sum.of(ours, k=2)) and not of_dpjax(direct_sum.of(mine, k=2))


def _status(key: Any, sample: Any) -> Any:
    return Outcome(hypothesis=jnp.float32(0.5), status=1 + sample.y[0], info=None)


@pytest.mark.parametrize(
    "leak",
    [
        _status,
        lambda key, sample: jnp.where(sample.y[0] == 1, 0.0, -0.0),
        lambda key, sample: -0.0 if int(sample.y[0]) else 0.0,
        lambda key, sample: None if int(sample.y[0]) else math.nan,
    ],
    ids=["status", "sign of zero", "sign of zero in Python", "None and NaN"],
)
def test_all_that_is_told_beside_a_real_number_is_audited(leak: Any) -> None:
    assert check(leak, n=1, domain=1, delta=0.0, trials=400).delta > 0.7


@pytest.mark.thorough
@pytest.mark.parametrize("code", [-4, 2**26], ids=["negative", "beyond the integers of float32"])
def test_a_status_of_any_code_is_told_from_the_next(code: int) -> None:
    def mechanism(key: Any, sample: Any) -> Any:
        return Outcome(hypothesis=jax.random.uniform(key), status=code + sample.y[0], info={})

    assert dpjax.check(mechanism, n=1, domain=1, epsilon=1.0, delta=0.0).holds is False


@pytest.mark.thorough
def test_outcomes_of_half_precision_are_real_numbers() -> None:
    response = Vote(1.0)
    given = types.SimpleNamespace(pmf=response.pmf)

    class Half:
        pmf = given.pmf

        @method
        def __call__(self, key: Any, sample: Any) -> Any:
            return response(key, sample).astype(jnp.bfloat16)

    assert check(Half(), delta=0.5, n=1, domain=1).holds
    assert check(lambda key, sample: sample.y[0].astype(jnp.bfloat16), n=1, domain=1, delta=0.0).delta > 0.9


@pytest.mark.thorough
def test_what_cannot_be_batched_runs_in_python() -> None:
    def called(key: Any, sample: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), jnp.int32)
        return jax.pure_callback(lambda word, y: np.int32(y), shape, jax.random.bits(key), sample.y[0])

    report = check(called, n=1, domain=1, delta=0.0, trials=400)
    assert report.delta > 0.7 and "in Python, for JAX cannot trace it" in str(report)


def test_an_algorithm_may_refuse_to_be_run_on_nothing() -> None:
    """A refusal that depends on what is known only outside a trace is not seen."""

    class Careful:
        kind = Points

        def pmf(self, points: Any) -> Any:
            return jnp.full(2, 0.5)

        def __call__(self, key: Any, points: Any) -> Any:
            if not isinstance(points.n_valid, jax.core.Tracer) and int(points.n_valid) == 0:
                raise ValueError("no points")
            return jax.random.randint(key, (), 0, 2)

    assert check(Careful(), n=2, domain=2, delta=0.0, relation=ADD_OR_REMOVE_ONE).holds


def test_noise_of_another_generator_beside_a_large_number_is_drawn_anew() -> None:
    """Compiled, the noise would be one constant on each dataset, and the algorithm would be accused."""
    rng = np.random.default_rng(0)

    def noisy(key: Any, sample: Any) -> Any:
        return 1e6 + jnp.sum(sample.y).astype(float) + rng.laplace(scale=2.0)

    report = check(noisy, n=1, domain=1, epsilon=1.0, delta=0.0, trials=400)
    assert report.delta == 0.0 and "no pure function of its key" in str(report)


def test_a_report_rounds_nothing_to_the_better() -> None:
    class Slightly(Stated):
        def guarantee(self) -> Guarantee:
            return Guarantee(1.0000049, 0.0, REPLACE_ONE)

        def pmf(self, sample: Any) -> Any:
            kept = jax.nn.sigmoid(1.0000049 * (2 * sample.y[0].astype(float) - 1))
            return jnp.stack([1 - kept, kept])

    report = check(Slightly(1.0), n=1, domain=1)
    assert report.holds and "(1.0000049, 0)-privacy holds" in str(report)


def test_a_leak_of_probability_delta_is_within_delta() -> None:
    """With probability 0.1, a sum of parts that are not exact in floats, the largest label is printed."""

    class Rare(Stated):
        def pmf(self, sample: Any) -> Any:
            shown = jnp.where(jnp.arange(2) == jnp.max(sample.y), 0.03 + 0.07, 0.0)
            return jnp.append(shown, 0.9)

    report = check(Rare(1.0), **SMALL)
    assert report.delta == pytest.approx(0.1) and report.holds is False
    assert report.epsilon_at(0.1) == 0.0 and report.epsilon_at(0.0999) == math.inf
    assert check(Rare(1.0), delta=0.1, **SMALL).holds and not check(Rare(1.0), delta=0.0999, **SMALL).holds


def test_a_law_too_large_to_hold_is_refused() -> None:
    class Long(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.full((2**22,), 2.0**-22)

    with pytest.raises(ValueError, match="70 datasets have 4194304 outcomes"):
        check(Long(1.0), **SMALL)


@pytest.mark.parametrize("share", [0.9, math.nan, -1.0])
def test_a_pmf_that_is_no_law_is_refused(share: float) -> None:
    class Bad(Vote):
        def pmf(self, sample: Any) -> Any:
            return share * super().pmf(sample)

    with pytest.raises(ValueError, match=r"sum to one; on the data \[\("):
        check(Bad(1.0), **SMALL)


@pytest.mark.parametrize("missing", [9e-5, 1e-8])
def test_what_leaks_cannot_hide_in_what_a_pmf_leaves_out(missing: float) -> None:
    class Tail(Vote):
        def pmf(self, sample: Any) -> Any:
            leak = jnp.where(jnp.max(sample.y) == 1, 3 * missing, 0.0)
            return jnp.stack([leak, 1 - leak - missing])

    with pytest.raises(ValueError, match="sum to one"):
        check(Tail(1.0), **SMALL)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0])
def test_renyi_near_order_one_is_that_of_order_one(epsilon: float) -> None:
    report = check(Stated(epsilon), n=1, domain=1)
    found = report.renyi([1.0, 1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.0001])
    np.testing.assert_allclose(found, Guarantee(epsilon / 2, 0.0, REPLACE_ONE).renyi([1, 1, 1, 1, 1.0001]), rtol=1e-5)


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_OR_REMOVE_ONE])
@pytest.mark.parametrize("ordered", [False, True])
def test_datasets_without_neighbours_are_refused(relation: str, ordered: bool) -> None:
    size = {"n": 3, "domain": 1, "data": Points} if relation == REPLACE_ONE else {"n": 1, "domain": 2}
    with pytest.raises(ValueError, match=f"no two of . (multisets|sequences) .* are neighbours .{relation}"):
        check(Vote(1.0), relation=relation, ordered=ordered, **size)


def test_a_pmf_must_be_a_vector() -> None:
    class Bad(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.ones(())

    with pytest.raises(ValueError, match="vector of probabilities"):
        check(Bad(1.0), **SMALL)

    class Named(Vote):
        def pmf(self, sample: Any) -> Any:
            return {0: 0.5, 1: 0.5}

    with pytest.raises(TypeError, match="pmf must return a vector of probabilities, got dict"):
        check(Named(1.0), **SMALL)


def test_a_pmf_in_numpy_is_looped() -> None:
    class Plain(Stated):
        def pmf(self, sample: Any) -> Any:
            ones = int(np.asarray(sample.y)[: int(sample.n_valid)].sum())
            weights = np.exp(0.5 * self.epsilon * np.array([int(sample.n_valid) - ones, ones]))
            return weights / weights.sum()

    assert check(Plain(1.0), epsilon=0.25, **SMALL).delta == pytest.approx(truth(1.0)[0], rel=1e-9)


def test_order_is_not_taken_for_granted_where_datasets_are_few() -> None:
    """In every sorted dataset, the record in the middle lies between the others."""

    class Middle(Vote):
        def pmf(self, points: Any) -> Any:
            first, middle, last = points.x[:3, 0]
            between = (jnp.minimum(first, last) <= middle) & (middle <= jnp.maximum(first, last))
            return jnp.where(between, jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))

    with pytest.raises(ValueError, match="ordered must be True"):
        check(Middle(1.0), n=3, domain=2, data=Points)


def test_a_single_order_of_a_single_dataset_is_tried_where_there_are_few() -> None:
    class Rare(Vote):
        def pmf(self, points: Any) -> Any:
            odd = jnp.array_equal(points.x[:, 0], jnp.array([2, 1, 0], jnp.uint32))
            return jnp.where(odd, jnp.array([0.1, 0.9]), jnp.array([0.5, 0.5]))

    with pytest.raises(ValueError, match=r"ordered must be True .* records \[0, 1, 2\]"):
        check(Rare(1.0), n=3, domain=3, data=Points)


def test_all_orders_are_tried_if_they_are_few() -> None:
    found = family(kind_of(None, Points, 3), 3, ADD_OR_REMOVE_ONE, ordered=False)
    tried = [found.values, *found.reordered(5)]
    for place, size in enumerate(found.sizes):
        seen = {tuple(values[place, :size].tolist()) for values in tried}
        assert seen == set(itertools.permutations(found.shown(place)))
        assert all((values[place, size:] == size % 3).all() for values in tried)
    assert len(found.reordered(4)) == 4


def test_order_is_not_taken_for_granted() -> None:
    class First(Stated):
        def pmf(self, sample: Any) -> Any:
            return jnp.where(jnp.arange(2) == sample.y[0], 0.8, 0.2)

    with pytest.raises(ValueError, match="ordered must be True"):
        check(First(1.0), **SMALL)
    report = check(First(1.0), ordered=True, **SMALL)
    assert report.epsilon_at(0.0) == pytest.approx(math.log(4)) and report.holds is False
    assert check(First(1.5), ordered=True, **SMALL).holds


def test_add_or_remove() -> None:
    report = check(Stated(1.0), relation=ADD_OR_REMOVE_ONE, **SMALL)
    assert report.guarantee is None  # nothing follows from a promise for replaced records
    assert abs(len(report.worst_pair[0]) - len(report.worst_pair[1])) == 1
    assert 0.4 < report.epsilon_at(0.0) <= 0.5
    assert check(Stated(1.0), relation=ADD_OR_REMOVE_ONE, ordered=True, n=3, domain=1).epsilon_at(0.0) <= 0.5

    class Counted(Stated):
        def guarantee(self) -> Guarantee:
            return Guarantee(0.5, 0.0, ADD_OR_REMOVE_ONE)

    assert check(Counted(1.0), **SMALL).relation == ADD_OR_REMOVE_ONE
    assert check(Counted(1.0), delta=0.1, **SMALL).guarantee == Guarantee(1.0, 0.1, ADD_OR_REMOVE_ONE)
    replaced = check(Counted(1.0), relation=REPLACE_ONE, **SMALL)
    assert replaced.holds and replaced.epsilon_at(0.0) > 0.6  # (1, 0) follows by group privacy
    assert not replaced.refutes(Guarantee(0.5, 0.0, ADD_OR_REMOVE_ONE))
    assert replaced.refutes(Guarantee(0.2, 0.0, ADD_OR_REMOVE_ONE))
    with pytest.raises(ValueError, match="does not follow from REPLACE_ONE"):
        report.refutes(Guarantee(1.0, 0.0, REPLACE_ONE))


@pytest.mark.thorough
def test_a_caller_says_what_the_data_are() -> None:
    @jax.jit
    def pmf(histogram: Any) -> Any:
        return jax.nn.softmax(0.5 * histogram.astype(float))

    drawn = jax.jit(lambda key, histogram: jax.random.categorical(key, jnp.log(pmf(histogram))))
    histogram = jax.jit(lambda values, size: jnp.bincount(values, length=3))

    def count(key: Any, histogram: Any) -> Any:
        return drawn(key, histogram)

    count.pmf = pmf  # type: ignore[attr-defined]
    report = check(count, n=3, domain=3, data=histogram, delta=0.0)
    assert report.exact and report.holds and report.worst_pair[0] == sorted(report.worst_pair[0])
    assert all(isinstance(value, int) for value in report.worst_pair[0])


@pytest.mark.parametrize("kind", [Points, MultiSample])
def test_other_kinds_of_data(kind: Any) -> None:
    class Leak:
        kind: Any = None
        k = 2

        def __call__(self, key: Any, data: Any) -> Any:
            assert isinstance(data, self.kind)
            return data.x[0, 0]

        def pmf(self, data: Any) -> Any:
            return jax.nn.one_hot(jnp.max(data.x[:, 0]), 2, dtype=float)

    Leak.kind = kind
    report = check(Leak(), n=2, domain=2)
    assert report.delta == 1.0 and report.epsilon_at(0.0) == math.inf and report.holds is None
    record = report.worst_pair[0][0]
    assert isinstance(record, int) if kind is Points else len(record) == 3


def test_the_least_epsilon_of_a_pair_against_bisection() -> None:
    rng = np.random.default_rng(0)
    for delta in (1e-6, 0.01, 0.2):
        p, q = rng.dirichlet(np.ones(6), 2)
        low, high = 0.0, 50.0
        for _ in range(80):
            middle = (low + high) / 2
            fits = np.maximum(p - math.exp(middle) * q, 0).sum() <= delta
            low, high = (low, middle) if fits else (middle, high)
        assert least_epsilon(p, q, delta) == pytest.approx(high, abs=1e-9)


# --------------------------------------------------------------------------------------------------------------- runs

WRAPS = {
    "array": lambda label: label,
    "outcome": lambda label: Outcome(hypothesis=label, status=jnp.int32(Status.OK), info={"secret": label}),
    "tuple": lambda label: (label, jnp.uint32(7)),
    "real": lambda label: 0.5 * label.astype(float),
}
# The info of an outcome is not released: `test_what_two_outcomes_in_one_result_chose_on_the_way_is_not_released` says so quickly, too.
MARKS = {"outcome": pytest.mark.thorough, "tuple": pytest.mark.slow}


@pytest.mark.parametrize("wrap", [pytest.param(w, id=n, marks=MARKS.get(n, ())) for n, w in WRAPS.items()])
def test_without_a_pmf_it_is_audited(wrap: Any) -> None:
    report = check(sampler(Vote(3.0), wrap), epsilon=1.0, n=2, domain=2, trials=8192)
    assert not report.exact and report.guarantee is None and report.level == 1 - 2e-5
    assert 0 < report.delta < truth(3.0, 2)[0] and 1 < report.epsilon_at(0.0) <= truth(3.0, 2)[1]
    assert report.refutes(Guarantee(1.0, 0.0, REPLACE_ONE)) and not report.refutes(Guarantee(3.0, 0.0, REPLACE_ONE))
    ones = [sum(y for _, y in data) for data in report.worst_pair]
    assert abs(ones[0] - ones[1]) == 1 and "lower bound" in repr(report)


def test_a_claim_is_refuted_or_not_by_runs() -> None:
    given: dict[str, Any] = {"n": 2, "domain": 1, "trials": 8192}
    assert check(sampler(Vote(3.0)), epsilon=1.0, delta=0.0, **given).holds is False
    assert check(sampler(Vote(1.0)), epsilon=1.0, delta=0.0, **given).holds is None


def test_a_total_leak_of_real_numbers_is_seen() -> None:
    leak = check(lambda key, sample: jnp.mean(sample.y.astype(float)), n=2, domain=1, trials=4096)
    assert leak.delta > 0.97 and leak.epsilon_at(1e-6) > 5


def python_vote(key: Any, sample: Any) -> Any:
    """A vote that JAX cannot trace; it returns None where the answer is 0."""
    ones, n = int(np.asarray(sample.y).sum()), int(sample.n_valid)
    coin = float(jax.random.uniform(key))
    return 1 if coin < 1 / (1 + math.exp(1.5 * (n - 2 * ones))) else None


def stateful_vote(key: Any, sample: Any) -> Any:
    """JAX can trace it, but would draw its coin once and for all."""
    return stateful_vote.rng.random() < 1 / (1 + jnp.exp(1.5 * (sample.n_valid - 2 * jnp.sum(sample.y))))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("vote", "note"), [builders.slow(python_vote, "cannot trace"), (stateful_vote, "no pure function of its key")]
)
def test_what_jax_cannot_trace_is_looped(vote: Any, note: str) -> None:
    stateful_vote.rng = np.random.default_rng(0)  # type: ignore[attr-defined]
    report = check(vote, n=2, domain=1, trials=400, epsilon=1.0)
    assert note in repr(report)
    assert 0.5 < report.epsilon_at(0.0) <= 3 and not report.refutes(Guarantee(3.0, 0.0, REPLACE_ONE))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("word", "must return integers"),
        (None, "must return integers"),
        (np.zeros(3), "or one real number: round, bin or index"),
        (np.ones(1, complex), "one real number"),
    ],
)
def test_outcomes_that_cannot_be_compared_are_refused(result: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        check(lambda key, sample: result, **SMALL)


def test_what_an_algorithm_raises_is_passed_on_with_a_note() -> None:
    with pytest.raises(AttributeError) as raised:
        check(lambda key, sample: sample.nothing, **SMALL)
    assert any("Raised by code that was handed" in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"n": 0}, ValueError, "n must be"),
        ({"domain": 1.5}, TypeError, "domain must be"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be"),
        ({"epsilon": math.inf}, ValueError, "epsilon must be"),
        ({"delta": 2.0}, ValueError, "delta must be"),
        ({"relation": "SWAP"}, ValueError, "relation must be"),
        ({"level": 1.0}, ValueError, "level must be"),
        ({"trials": 1}, ValueError, "trials must be"),
        ({"seed": -1}, ValueError, "seed must be"),
        ({"data": 3}, TypeError, "data must be"),
        ({"algorithm": Vote}, TypeError, "not a class"),
        ({"algorithm": 3}, TypeError, "algorithm must have"),
        ({"n": 40, "domain": 20}, ValueError, r"n and domain must be smaller: .* multisets of 40 kinds"),
        ({"n": 10**6, "domain": 20}, ValueError, "n and domain must be smaller: 1000000 records of 40 kinds"),
        ({"n": 9, "domain": 2, "ordered": True}, ValueError, "262144 sequences of 4 kinds"),
        ({"algorithm": sampler(Vote(1.0)), "n": 20, "domain": 3}, ValueError, "must be smaller"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        check(**{"algorithm": Vote(1.0), **SMALL, **change})


def test_a_guarantee_must_be_one() -> None:
    class Bad(Vote):
        def guarantee(self) -> Any:
            return (1.0, 0.0)

    with pytest.raises(TypeError, match="guarantee"):
        check(Bad(1.0), **SMALL)


# -------------------------------------------------------------------------------------------------------- the datasets


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_OR_REMOVE_ONE])
@pytest.mark.parametrize("ordered", [False, True])
def test_families_against_brute_force(relation: str, ordered: bool) -> None:
    kind = kind_of(None, Points, 2)
    found = family(kind, 3, relation, ordered=ordered)
    rows = [tuple(found.shown(i)) for i in range(len(found.sizes))]
    assert (
        len(set(rows))
        == len(rows)
        == {(False, False): 4, (False, True): 10, (True, False): 8, (True, True): 15}[
            ordered, relation == ADD_OR_REMOVE_ONE
        ]
    )

    def near(a: Any, b: Any) -> bool:
        if relation == REPLACE_ONE and ordered:
            return sum(x != y for x, y in zip(a, b, strict=True)) == 1
        if relation == REPLACE_ONE:
            return abs(sum(a) - sum(b)) == 1
        shorter, longer = sorted((a, b), key=len)
        removed = [longer[:i] + longer[i + 1 :] for i in range(len(longer))]
        return len(longer) == len(shorter) + 1 and shorter in removed

    expected = {(i, j) for i, a in enumerate(rows) for j, b in enumerate(rows) if near(a, b)}
    assert {(int(i), int(j)) for i, j in found.pairs} == expected and len(found.pairs) == len(expected)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("kind", [Sample, MultiSample])
def test_families_of_labels_against_brute_force(kind: Any, ordered: bool) -> None:
    """Under REPLACE_LABEL one example keeps its point and takes other labels."""
    algorithm = types.SimpleNamespace(k=2)
    found = family(kind_of(algorithm, kind, 2), 2, REPLACE_LABEL, ordered=ordered)
    rows = [tuple(found.shown(i)) for i in range(len(found.sizes))]
    as_data = list if ordered else sorted  # a multiset has no order
    values = {value for row in rows for value in row}

    def near(a: Any, b: Any) -> bool:
        relabelled = [(*a[:i], v, *a[i + 1 :]) for i in range(2) for v in values if v[0] == a[i][0] and v != a[i]]
        return any(as_data(other) == as_data(b) for other in relabelled)

    expected = {(i, j) for i, a in enumerate(rows) for j, b in enumerate(rows) if near(a, b)}
    assert {(int(i), int(j)) for i, j in found.pairs} == expected and len(found.pairs) == len(expected)


def test_labels_are_replaced_only_where_there_are_some() -> None:
    with pytest.raises(ValueError, match="relation REPLACE_LABEL must be for records with labels"):
        family(kind_of(None, Points, 2), 2, REPLACE_LABEL, ordered=False)
    with pytest.raises(ValueError, match="labels must divide"):
        neighbours(histograms(3, [2]), REPLACE_LABEL)


def test_shuffling_keeps_the_records() -> None:
    found = family(kind_of(None, Sample, 3), 4, ADD_OR_REMOVE_ONE, ordered=False)
    shuffled = found.shuffled()
    assert (shuffled != found.values).any()
    for before, after, size in zip(found.values, shuffled, found.sizes, strict=True):
        assert sorted(before[:size]) == sorted(after[:size]) and (after[size:] == before[size:]).all()


def test_multisets_are_those_of_the_histograms() -> None:
    found = family(kind_of(None, None, 2), 3, REPLACE_ONE, ordered=False)
    counts = histograms(4, [3])
    assert len(found.sizes) == len(counts) and (found.pairs == neighbours(counts, REPLACE_ONE)).all()


@pytest.mark.parametrize(
    "pair",
    [
        [[0.93222, 0.00114, 0.06664], [0.97502, 0.00001, 0.02497]],
        [[0.89417, 0.01101, 0.09482], [0.99496, 0.00483, 0.00021]],
        [
            [0.2826790446714406, 3.0148124709597043e-05, 0.7172908072038497],
            [0.174007644169073, 0.12072752870256515, 0.7052648271283618],
        ],
        [[0.25, 0.75], [0.75, 0.25]],
    ],
)
def test_concentration_is_the_largest_quotient_over_all_orders(pair: Any) -> None:
    """The least rho with D_a <= rho a, for D_a = ln(sum P^a Q^(1 - a))/(a - 1), on a fine grid of orders."""
    p, q = np.array(pair)
    orders = np.exp(np.linspace(1e-3, 9.0, 20_001))[:, None]
    found = 0.0
    for log_p, log_q in ((np.log(p), np.log(q)), (np.log(q), np.log(p))):
        exponents = orders * log_p + (1 - orders) * log_q
        most = exponents.max(axis=1)
        divergences = (most + np.log(np.exp(exponents - most[:, None]).sum(axis=1))) / (orders[:, 0] - 1)
        found = max(found, float(np.max(divergences / orders[:, 0])))
    stated = dominating.concentration(np.array(pair), np.array([[0, 1], [1, 0]]), 0.0)
    assert found * (1 - 1e-9) <= stated <= found * 1.001


def test_a_probability_below_zero_counts_as_rounding() -> None:
    """-5e-10 instead of 0: bounds that rest on the law must allow for as much."""
    datasets = family(kind_of(None, Points, 2), 1, REPLACE_ONE, ordered=False)
    exact, rounding = laws._checked_law(np.array([[1 + 5e-10, -5e-10]]), datasets)
    assert exact.tolist() == [[1 + 5e-10, 0.0]] and rounding >= 5e-10


@functools.cache
def a_hundred_runs() -> Any:
    datasets = family(kind_of(None, Sample, 2), 2, REPLACE_ONE, ordered=False)
    return suspects.audits_of(Vote(1.0), datasets, 1.0, 100, 0.95, 0)


def test_bounds_on_several_pairs_hold_together() -> None:
    """Each bound may fail with probability 0.05 divided by the number of pairs that were run."""
    found = a_hundred_runs()
    assert len(found.pairs) > 1 and (1 - found.level) * len(found.pairs) == pytest.approx(0.05)


def test_the_worst_pair_of_an_audit_begins_with_the_dataset_on_which_the_event_is_likelier() -> None:
    """Outcome 1 comes with one label alone, half of the time; at epsilon = 1 no other event adds to delta."""
    for label in (0, 1):
        report = check(
            jax.jit(lambda key, sample, label=label: jnp.where(sample.y[0] == label, jax.random.bits(key) % 2, 0)),
            n=1,
            domain=1,
            trials=4096,
        )
        assert report.delta > 0.4 and report.worst_pair == ([(0, label)], [(0, 1 - label)])


def test_an_audit_answers_for_the_epsilon_and_delta_that_it_is_asked_about() -> None:
    """On one dataset all outcomes are 0, except for 1 in 400 runs; on the other, a tenth of them are 1 and a tenth 2."""
    first = np.where(np.arange(20_000) % 400 == 0, 1, 0)
    second = np.select([np.arange(20_000) % 10 == 1, np.arange(20_000) % 10 == 0], [2, 1], 0)
    found = suspects.Audits([(3, 5)], [(first, second)], 0.95, None)  # type: ignore[arg-type]
    assert found.epsilon_at(0.25) == 0.0 and found.epsilon_at(0.0) > 4
    delta, *pair = found.delta_at(1.0)
    assert pair == [5, 3] and delta > 0.17  # by 1 and 2 together; by 2 alone it would be a tenth


def test_real_outcomes_of_a_pilot_are_told_apart_by_cells() -> None:
    low, high = suspects._tallies([np.linspace(0, 1, 1000), np.linspace(1, 2, 1000) + 1e-3])
    assert low.sum() == high.sum() == 1000 and np.minimum(low, high).sum() < 50 and np.count_nonzero(low) > 20


def test_a_number_that_repeats_is_a_cell_of_its_own_in_pilots_and_audits() -> None:
    """One outcome in a hundred is a number that tells the datasets apart, between real outcomes that do not."""
    outcomes = np.random.default_rng(7).normal(size=(2, 20_000))
    outcomes[:, ::100] = [[0.001], [0.002]]
    first, second = suspects._tallies([*outcomes])
    assert min((first - second).max(), (second - first).max()) >= 200
    assert audit_samples(*outcomes).epsilon > 1.5


def test_pairs_look_bad_by_delta_at_epsilon_and_at_0_and_by_one_likelier_outcome() -> None:
    """By each of the three criteria another pair is worst; a fourth pair only looks bad, by six runs of 10,000."""
    tallies = np.array(
        [
            *([4000, 1000, 5000], [1000, 4000, 5000]),
            *([7000, 3000, 0], [3000, 7000, 0]),
            *([1000, 100, 8900], [100, 1000, 8900]),
            *([6, 0, 9994], [0, 6, 9994]),
        ]
    )
    pairs = np.array([(a, a ^ 1) for a in range(8)])
    assert suspects._suspects(tallies, pairs, 1.0, 1) == [(0, 1), (2, 3), (4, 5)]


def test_so_many_runs_are_audited_as_are_asked_for() -> None:
    """Compiled runs come in whole blocks; those in excess are dropped."""
    assert a_hundred_runs().runs == 100


def test_what_frequencies_say_against_a_law_is_said_of_the_right_datasets() -> None:
    """Outcome 0 has frequency 7/8 on the first dataset and 1/8 on the second; the law gives it 7/8 on both."""
    seen = [np.repeat([0, 1], [3584, 512]), np.repeat([0, 1], [512, 3584])]
    p = np.array([[7 / 8, 1 / 8]] * 2)
    where, what = agreement._of_frequencies(seen, p) or ((), "")
    assert where == (0, 1) and "frequencies 0.875 on the records {} and 0.125 on the records {}" in what
    where, _ = agreement._of_frequencies(seen[::-1], p) or ((), "")
    assert where == (1, 0)


def test_one_outcome_more_than_the_law_has_is_too_many() -> None:
    """The law has two equally likely outcomes; a third one comes once."""
    seen = [np.repeat([0, 1, 2], [2048, 2047, 1])]
    where, what = agreement._of_frequencies(seen, np.array([[0.5, 0.5]])) or ((0,), "")
    assert where == () and what == "3 different outcomes came, where the law has 2"


def test_an_event_of_the_runs_is_told_of_the_dataset_where_it_is_likelier_and_held_to_that_of_the_law() -> None:
    """Outcome 0 has frequency 0.9 on one dataset and 0.5 on the other; a law allows as much as its total variation between the two."""
    seen = [np.arange(4096) % 10 == 0, np.arange(4096) % 2 == 0]
    seen = [each.astype(np.int64) for each in seen]
    law = np.array([[0.65, 0.35], [0.4, 0.6]])
    found = agreement._of_pairs(seen, law)
    assert found is not None and "none of the law by more than 0.25" in found[1]
    assert agreement._of_pairs(seen, np.array([[0.9, 0.1], [0.5, 0.5]])) is None
    other = agreement._of_pairs(seen[::-1], law[::-1])
    assert other is not None and other[0] == found[0][::-1] and other[1] == found[1]


def test_all_of_eight_datasets_are_run() -> None:
    """The runs depart from the law on the point 4 alone."""
    report = check(no_coin_where(lambda x: x[0, 0] == 4), n=1, domain=8, data=Points, delta=0.0)
    assert report.holds is None and "on the records [4]" in str(report.disagreement)


def test_few_runs_are_made_in_a_python_loop() -> None:
    calls = []

    class Looped:
        def pmf(self, sample: Any) -> Any:
            return jnp.array([0.5, 0.5])

        def __call__(self, key: Any, sample: Any) -> Any:
            calls.append(int(sample.n_valid))
            return word(key) % 2

    report = check(Looped(), n=1, domain=1, delta=0.0)
    assert report.holds and str(report).endswith(
        "512 runs on each of 2 datasets do not contradict the law; small differences would not show."
    )
    assert 2 * agreement.LOOPED_RUNS <= len(calls) < 2 * agreement.LOOPED_RUNS + 20
    calls.clear()
    assert check(Looped(), n=1, domain=1, delta=0.0, trials=8).holds and 16 <= len(calls) < 36


@pytest.mark.thorough
def test_more_runs_show_smaller_differences_from_the_law() -> None:
    class Off(Vote):
        """Its coin comes up 1 with probability 0.52, where its law says 0.5."""

        def pmf(self, sample: Any) -> Any:
            return jnp.array([0.5, 0.5])

        @method
        def __call__(self, key: Any, sample: Any) -> Any:
            return (jax.random.uniform(key) < 0.52).astype(jnp.int32)

    off = Off(1.0)
    assert check(off, n=1, domain=1, delta=0.0).holds
    assert check(off, n=1, domain=1, delta=0.0, trials=2**16).holds is None


def test_labels_of_several_concepts_are_shown_as_they_are_handed_over() -> None:
    kind = kind_of(types.SimpleNamespace(k=3), MultiSample, 2)
    data = kind.make(np.arange(16, dtype=np.int32), 16)
    told = zip(data.x[:, 0].tolist(), data.labels.astype(int).tolist(), strict=True)
    assert [kind.show(value) for value in range(16)] == [(x, *labels) for x, labels in told]
    assert kind.show(0b1011) == (1, 1, 1, 0)


def test_a_domain_is_that_of_the_algorithms_bits_in_whole_words() -> None:
    wide = kind_of(types.SimpleNamespace(bits=33), Points, 4)
    assert wide.make(np.zeros(2, np.int32), 2).x.shape == (2, 2)
    assert kind_of(types.SimpleNamespace(bits=1), Points, 2).values == 2
    with pytest.raises(ValueError, match=r"domain must be at most 2\^bits = 2, the algorithm's, got 3"):
        kind_of(types.SimpleNamespace(bits=1), Points, 3)


def test_what_is_within_rounding_is_no_leak() -> None:
    """An event whose probability is delta up to the last digit is within delta, and one of probability 1e-13 does not count."""
    rounded = laws.Laws(np.array([[0.1 + 0.2, 0.0, 0.7], [0.0, 0.1 + 0.2, 0.7]]), np.array([[0, 1], [1, 0]]), 1e-12)
    assert rounded.epsilon_at(0.3) == 0.0 and rounded.epsilon_at(0.3 - 1e-9) == math.inf
    p = np.array([[0.5, 0.5, 0.0], [0.5, 0.5 - 1e-13, 1e-13], [0.6, 0.4, 0.0], [0.9, 0.1, 0.0]])
    alike = laws.Laws(p, np.array([[1, 0], [0, 1]]), 1e-12)
    assert alike.delta_at(0.0)[0] == 0.0 and alike.epsilon_at(0.0) < 1e-12
    pairs = np.array([[0, 2], [2, 0], [2, 3], [3, 2]])
    assert laws.Laws(p, pairs, 1e-12).delta_at(5.0) == (0.0, 2, 3)  # 0.4 against 0.1


def test_the_pair_that_keeps_the_least_is_found_beyond_the_first_chunk() -> None:
    """With many outcomes, pairs are processed in chunks."""
    p = np.full((3, 2**16), 2.0**-16)
    p[2, :2] += [2.0**-17, -(2.0**-17)]
    pairs = np.array([[0, 1]] * 70 + [[0, 2]])
    epsilon, worst = laws.Laws(p, pairs, 1e-12)._pure()
    assert epsilon == pytest.approx(math.log(2.0)) and worst == 70


@pytest.mark.parametrize("label", [0, 1])
def test_a_pmf_that_is_no_law_is_refused_with_the_data_on_which_it_is_none(label: int) -> None:
    class Bad(Vote):
        def pmf(self, sample: Any) -> Any:
            return super().pmf(sample) * jnp.where(sample.y[0] == label, 0.5, 1.0)

    with pytest.raises(ValueError, match=rf"on the data \[\(0, {label}\)\] they sum to 0\.5"):
        check(Bad(1.0), n=1, domain=1)


def test_a_pmf_below_zero_is_refused_and_four_times_what_a_sum_is_off_by_is_reckoned_with() -> None:
    class Below(Vote):
        def pmf(self, sample: Any) -> Any:
            return jnp.array([1.5, -0.5])

    with pytest.raises(ValueError, match=r"they sum to 1, the least is -0\.5"):
        check(Below(1.0), n=1, domain=1)
    datasets = family(kind_of(None, Points, 2), 1, REPLACE_ONE, ordered=False)
    assert laws._checked_law(np.array([[0.5, 0.5 + 5e-10]]), datasets)[1] == pytest.approx(2e-9, rel=1e-5)


def test_what_follows_from_a_law_reckons_with_its_rounding() -> None:
    """Every hypothesis test may be better by 0.01 in both errors; Rényi divergences ignore outcomes no likelier than the rounding."""
    p, pairs = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([[0, 1], [1, 0]])
    moved = dominating.trade_off(p, pairs, 0.01, np.array([0.0, 0.24, 0.99]))
    np.testing.assert_allclose(moved, [0.99, 0.24, 0.0], atol=1e-12)
    loss, mass = dominating.losses(p, pairs, 0.01)
    assert loss[-1] == math.inf and mass[-1] == pytest.approx(0.01) and mass.sum() == pytest.approx(1.0)
    rare = np.array([[0.5, 0.5 - 1e-13, 1e-13], [0.5, 0.5, 0.0]])
    assert dominating.renyi(rare, pairs, 1e-12, 2.0) < 1e-9 < dominating.renyi(rare, pairs, 0.0, 2.0) == math.inf
    q, power = dominating.chain(p * [[1 + 1e-8], [1 - 1e-8]], pairs)
    np.testing.assert_allclose([q, power], [[0.0, 0.25, 1.0], [0.0, 0.75, 1.0]], atol=1e-12)


def test_multisets_are_counted_before_they_are_listed() -> None:
    with pytest.raises(ValueError, match="no two of 1 multisets"):
        family(kind_of(None, Points, 1), 3, REPLACE_ONE, ordered=False)
    with pytest.raises(ValueError, match="1001 multisets of 2 kinds of records and up to 2002000 neighbouring pairs"):
        family(kind_of(None, Points, 2), 1000, REPLACE_ONE, ordered=False)


# ------------------------------------------------------------------------------------------- what once was not seen

ONE: dict[str, Any] = {"n": 1, "domain": 1, "delta": 0.0, "trials": 400}


@frozen
class Mine(Thresholds):
    bits: int = static()


def test_a_part_that_is_not_called_may_be_somebody_elses_too() -> None:
    def with_(queries: Any) -> Any:
        return dense.multiplicative_weights(queries=queries, rounds=1, epsilon=0.5)

    assert of_dpjax(with_(threshold_queries(bits=1))) and not of_dpjax(with_(Mine(bits=1)))


@pytest.mark.parametrize("forms", [lambda x: ([x], (x,)), lambda x: (x, np.array([x])), lambda x: ({"a": x}, {"b": x})])
def test_in_what_a_real_number_comes_is_released_too(forms: Any) -> None:
    with pytest.raises(TypeError, match="always in one structure"):
        check(lambda key, sample: forms(float(jax.random.normal(key)))[int(sample.y[0])], **ONE)


def test_a_status_without_a_hypothesis_is_no_number() -> None:
    def run(key: Any, sample: Any) -> Any:
        if word(key) % 2:
            return Outcome(hypothesis=0.5, status=0, info={})
        return (
            Outcome(hypothesis=None, status=1, info={})
            if int(sample.y[0])
            else Outcome(hypothesis=1.0, status=0, info={})
        )

    assert check(run, **ONE).holds is False


def test_a_dataset_may_have_bottom_alone_whichever_comes_first() -> None:
    def run(y: int) -> Any:
        blank = Outcome(hypothesis=None, status=1, info={})
        return lambda key, sample: (
            blank if int(sample.y[0]) == y else Outcome(hypothesis=float(jax.random.normal(key)), status=0, info={})
        )

    assert [check(run(y), **ONE).holds for y in (0, 1)] == [False, False]


def test_a_guarantee_that_is_no_method_is_not_passed_over() -> None:
    stated = law_alone(lambda x: jnp.array([0.5, 0.5]))
    stated.guarantee = stated.guarantee()
    with pytest.raises(TypeError, match="guarantee must be a method"):
        check(stated, n=1, domain=2)


def test_a_delta_near_one_is_held_to_the_rounding_of_the_law() -> None:
    report = check(law_alone(lambda x: jnp.where(x[0] == jnp.arange(2), 1.0, 0.0)), n=1, domain=2)
    assert report.refutes(Guarantee(0.0, 1 - 1e-9, REPLACE_ONE))


def test_what_promises_nothing_does_not_hold() -> None:
    class Promises(Stated):
        def guarantee(self) -> Guarantee:
            return Guarantee.none(REPLACE_ONE)

    assert check(Promises(1.0), n=1, domain=1).holds is None


def test_what_comes_seldom_on_one_dataset_and_never_on_the_first_follows_its_law() -> None:
    class Sometimes:
        def pmf(self, sample: Any) -> Any:
            p = jnp.where(sample.y[0] == 0, 0.5, 0.0)
            return jnp.stack([p, 1 - p])

        def __call__(self, key: Any, sample: Any) -> Any:
            return 0.5 if int(sample.y[0]) == 0 and word(key) % 2 else None

    assert check(Sometimes(), n=1, domain=1, trials=400).disagreement is None


def test_what_a_python_loop_counts_in_the_order_it_comes_is_no_number() -> None:
    """The numbers seldom repeat and depend on the key alone; coded as they come, they would rise from the first dataset to the second."""

    def run(key: Any, points: Any) -> Any:
        return int(np.random.default_rng(word(key)).integers(20000))

    assert check(run, n=1, domain=2, delta=0.0, data=Points, trials=400).epsilon_at(0.0) == 0.0


class Unordered:
    """Holds a value that JAX cannot traverse, and makes a mistake of its own."""

    def __init__(self) -> None:
        self.held: Any = {1: 2.0, "a": 3.0}

    def __call__(self, key: Any, sample: Any) -> Any:
        raise ValueError("a mistake of one's own")


def test_mistakes_of_ones_own_are_shown_whatever_is_held() -> None:
    with pytest.raises(ValueError, match="a mistake of one's own"):
        check(Unordered(), n=1, domain=1)


def test_no_examples_and_one_are_neighbours():
    """Under add/remove the number of examples is private, too, and it may be 0."""

    class Seen:
        kind, axes, bits = Examples, 1, 2

        def guarantee(self):
            return Guarantee(0.5, 0.0, "ADD_OR_REMOVE_ONE")

        def pmf(self, data):
            p = jax.nn.sigmoid(jnp.where(data.n_valid == 0, 0.0, 2.0))
            return jnp.stack([p, 1 - p])

        @method
        def __call__(self, key, data):
            return jax.random.bernoulli(key, self.pmf(data)[1]).astype(jnp.int32)

    report = dpjax.check(Seen(), n=1, domain=2)
    assert report.holds is False and report.worst_pair[0] == []


def test_a_mask_cannot_be_compared() -> None:
    """It would release a bit that the array's values do not hold."""

    def leak(key: Any, sample: Any) -> Any:
        return np.ma.array(0, mask=int(np.asarray(sample.y)[: int(sample.n_valid)].sum()) == 1)

    with pytest.raises(TypeError, match="must return integers"):
        check(leak, n=2, domain=1, trials=100)


# -------------------------------------------------------------------------------------------- laws in single precision
# Last, because `check` drops all programs of the session when it meets such a law.


def test_the_order_of_sums_in_single_precision_is_no_order_of_records() -> None:
    class Rounded(Stated):
        def pmf(self, sample: Any) -> Any:
            tenths = jnp.sum(
                sample.x[:, 0].astype(jnp.float32) / 10
            )  # in single precision, in which sums depend on their order
            return jax.nn.softmax(jnp.array([0.0, 1.0], float) * tenths.astype(float))

    assert check(Rounded(1.0), n=5, domain=4, relation=REPLACE_ONE).exact


def test_a_report_tells_how_exact_the_law_is() -> None:
    class Single(Stated):
        def pmf(self, sample: Any) -> Any:
            return super().pmf(sample).astype(jnp.float32)

    assert "up to 1e-06 in a probability" in repr(check(Single(1.0), n=1, domain=1))


def test_outcomes_that_are_rare_each_count_together() -> None:
    class Tail:  # 2^15 outcomes of 5e-7 each on one dataset, of 0 on the other, in single precision
        def pmf(self, sample: Any) -> Any:
            low = jnp.where((jnp.arange(2**16) < 2**15) & (sample.y[0] == 0), jnp.float32(5e-7), jnp.float32(0.0))
            return low.at[-1].set(1 - low.sum())

        def __call__(self, key: Any, sample: Any) -> Any:
            raise NotImplementedError

    assert math.isinf(check(Tail(), n=1, domain=1).epsilon_at(0.0))


def test_single_precision_inside_is_single_precision() -> None:
    class Inside:
        def pmf(self, sample: Any) -> Any:
            weights = jnp.exp(
                jnp.where(sample.y[0] == 1, jnp.array([0.0, 1.1], jnp.float32), jnp.array([1.1, 0.0], jnp.float32))
            ).astype(float)
            return weights / weights.sum()

        def __call__(self, key: Any, sample: Any) -> Any:
            raise NotImplementedError

    assert check(Inside(), n=1, domain=1, epsilon=1.1, delta=0.0).holds


class Tabled:
    """Reads its law from a NumPy array."""

    kind = Points
    table = np.array([[0.5, 0.5, 0.0], [0.5 - 1e-8, 0.5, 1e-8]])

    def guarantee(self) -> Guarantee:
        return Guarantee(1e-12, 1e-9, REPLACE_ONE)

    def pmf(self, points: Any) -> Any:
        return jnp.asarray(self.table)[points.x[0, 0].astype(int)]

    @method
    def __call__(self, key: Any, points: Any) -> Any:
        return (jax.random.uniform(key) < self.pmf(points)[0]).astype(int)


@pytest.mark.thorough
def test_a_table_that_a_program_of_32_bits_has_met_is_read_in_64() -> None:
    """JAX reuses in one program what it made of an array for another, such as an earlier check or a user's own program."""
    algorithm = Tabled()
    algorithm(jax.random.key(0), Points.create(np.zeros((1, 1), np.uint32)))
    for _ in range(2):
        report = check(algorithm, n=1, domain=2, epsilon=0.0)
        assert report.delta == pytest.approx(1e-8, rel=1e-3) and report.holds is False


def test_single_precision_refutes_nothing_beyond_its_floats_and_digits() -> None:
    """At the end of the file: laws in single precision have JAX's caches cleared."""
    far = lambda x: jax.nn.softmax(jnp.where(x[0] == 0, 1.0, -1.0) * jnp.array([110.0, 0.0], jnp.float32))  # noqa: E731
    assert check(law_alone(lambda x: far(x).astype(jnp.float32), 110.0), n=1, domain=2).holds is None
    assert check(law_alone(on_a_grid(1000, np.float32)), n=1, domain=2).holds
