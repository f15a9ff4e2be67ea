"""The trial engine, the estimates and the search, against plain loops, exact binomial sums and known curves.

Statistical tests: fixed keys, false-alarm rate 2e-5 each.
"""

import functools
import io
import itertools
import math
import pathlib
import re
import subprocess
import sys
import textwrap
import time
import types

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpjax.concepts import thresholds as concept
from dpjax.core.pytree import frozen, static
from dpjax.data.sample import bucket
from dpjax.learners import pac, thresholds
from dpjax.trials import engine, estimates, footprint, resumable, search
from dpjax.trials.estimates import Estimate, known
from dpjax.trials.progress import Progress
from dpjax.trials.shared import Memory
from dpjax.trials.store import open_store

pytestmark = pytest.mark.usefixtures("no_key_twice")

ROOT = engine.root_key(20)
ALARM = 2e-5


def counters(key, params):
    """Counters of several types and shapes, some of them huge or negative."""
    key_bits, key_hit = jax.random.split(key)
    bits = jax.random.bits(key_bits, (3,), jnp.uint32)
    return {
        "hit": jax.random.uniform(key_hit) < params["p"],
        "small": (bits[0] % 256).astype(jnp.uint8),
        "signed": bits[:2].astype(jnp.int32),
        "unsigned": bits | jnp.uint32(2**31),
    }


def naive_sums(run, params, cell, trials):
    """Reference: one trial after another, added as Python integers."""
    total = None

    @jax.jit
    def one(trial):
        return run(jax.random.fold_in(jax.random.fold_in(ROOT, cell), trial), params)

    for trial in trials:
        outcome = jax.tree.map(lambda leaf: np.asarray(leaf).astype(object), one(np.uint32(trial)))
        total = outcome if total is None else jax.tree.map(np.add, total, outcome)
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), total)


def as_lists(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), tree)


# --- engine


@functools.cache
def expected_counters():
    return naive_sums(counters, {"p": np.float32(0.3)}, 4, range(6, 27))


@pytest.mark.parametrize("batch", [*map(builders.thorough, (1, 64, None)), 5])
def test_count_is_the_sum_of_single_trials(batch):
    params = {"p": 0.3}
    got = engine.count(counters, params, root=ROOT, cell=4, first=6, trials=21, batch=batch)
    assert as_lists(got) == expected_counters()


def test_counters_never_overflow():
    def extremes(key, params):
        word = jnp.asarray([2**31 - 1, -(2**31)], jnp.int32)
        return word, jnp.uint32(2**32 - 1)

    trials = 3 * 2**15 + 17
    signed, unsigned = engine.count(extremes, None, root=ROOT, cell=0, trials=trials)
    assert signed.tolist() == [trials * (2**31 - 1), -trials * 2**31]
    assert unsigned == trials * (2**32 - 1)


def fickle(key, params):
    """A trial whose outcome depends on the last bits of floating-point sums."""
    x = jax.random.normal(key, (50,)) * params
    return jnp.sum(jnp.exp(x)), (jnp.sum(x) * 1e6).astype(jnp.int32) & 7


def last_bits(key, params):
    return fickle(key, params)[1]


MANY = 100


@functools.cache
def undivided(batch):
    """(sum of last bits, floats) of the first MANY trials."""
    given_to_all = {"root": ROOT, "cell": 1, "batch": batch}
    floats = engine.evaluate(fickle, 1.0, draws=MANY, **given_to_all)[0]
    return engine.count(last_bits, 1.0, trials=MANY, **given_to_all), floats


@pytest.mark.parametrize("batch", [1, 8, builders.thorough(32)])
def test_same_result_for_any_chunks(batch):
    given_to_all = {"root": ROOT, "cell": 1, "batch": batch}
    whole, floats = undivided(batch)

    @settings(max_examples=5)
    @given(st.lists(st.integers(0, MANY), max_size=5))
    def check(cuts):
        ranges = list(itertools.pairwise(sorted({0, MANY, *cuts})))
        parts = [engine.count(last_bits, 1.0, first=a, trials=b - a, **given_to_all) for a, b in ranges]
        assert whole == sum(parts)
        pieces = [engine.evaluate(fickle, 1.0, first=a, draws=b - a, **given_to_all)[0] for a, b in ranges]
        np.testing.assert_array_equal(floats, np.concatenate(pieces))

    check()


@pytest.mark.parametrize(("first", "last"), [(0, 1), (7, 8), (13, 5000), (100_000, 400_001)])
@pytest.mark.parametrize("lanes", [1, 7, 1024, 2**15])
def test_every_trial_keeps_its_lane(first, last, lanes):
    """Pieces begin at blocks, whatever the range; only then are last bits the same on every machine."""
    pieces = [piece for step in engine._steps(first, last, lanes, 1) for piece in step.tolist()]
    assert all(start % lanes == 0 and 0 <= low < high <= 2**15 for start, low, high in pieces)
    trials = [trial for start, low, high in pieces for trial in range(start + low, start + high)]
    assert trials == list(range(first, last))


def four_words(key, params):
    return jax.random.bits(key, (4,), jnp.uint32)


@pytest.mark.parametrize("batch", [1, builders.thorough(7), 100, 1024])
def test_integer_trials_do_not_depend_on_batch(batch):
    got = engine.count(four_words, None, root=ROOT, cell=2, first=3, trials=500, batch=batch)
    other = engine.count(four_words, None, root=ROOT, cell=2, first=3, trials=500, batch=33)
    np.testing.assert_array_equal(got, other)


def test_cells_and_roots_are_different_streams():
    sums = {
        engine.count(last_bits, 1.0, root=engine.root_key(seed), cell=cell, trials=400, batch=8)
        for seed in (0, 1)
        for cell in (0, 1, 2**32 - 1)
    }
    assert len(sums) == 6


def test_trials_at_the_end_of_a_cell():
    def bits(key, params):
        return jax.random.bits(key, (), jnp.uint32)

    got = engine.count(bits, None, root=ROOT, cell=0, first=2**32 - 5, trials=5, batch=4)
    assert got == naive_sums(bits, None, 0, range(2**32 - 5, 2**32))


@frozen
class Setting:
    epsilon: float
    n: int
    data: object
    limbs: int = static()


@pytest.mark.thorough
def test_one_trace_a_bucket_and_limb_count():
    traces = []

    def run(key, setting):
        traces.append((setting.data.shape, setting.limbs))
        used = jnp.arange(setting.data.shape[0]) < setting.n
        noise = jax.random.uniform(key) / setting.epsilon
        return jnp.sum(jnp.where(used, setting.data, 0)) + noise > 0.5 * setting.limbs

    for limbs in (1, 2):
        for n in (100, 127, 200, 255):
            data = np.zeros(bucket(n), np.float32)
            for i in range(4):
                epsilon = [0.1 * (i + 1), np.float64(i + 1), np.float32(i + 1), i + 1.0][i % 4]
                setting = Setting(epsilon=epsilon, n=[n, np.int64(n)][i % 2], data=data, limbs=limbs)
                engine.count(run, setting, root=ROOT, cell=i, first=i, trials=10 + i)
                engine.evaluate(run, setting, root=ROOT, cell=i, first=i, draws=1 + i)
    assert sorted(traces) == [((127,), 1), ((127,), 2), ((255,), 1), ((255,), 2)]


def test_strict_promotion_and_x64():
    def run(key, p):
        return jnp.sum(jax.random.uniform(key, (10,)) < p)

    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        narrow = engine.count(run, 0.5, root=ROOT, cell=0, trials=1000)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        wide = engine.count(run, 0.5, root=ROOT, cell=0, trials=1000)
        draws = engine.evaluate(lambda key, p: p / 3, 1.0, root=ROOT, cell=0, draws=3)
    assert draws.dtype == np.float64 and draws[0] == 1 / 3
    # 10,000 coins each; the two draw different numbers, so they agree only in law.
    tail = stats.norm.isf(ALARM / 4) * math.sqrt(10_000 / 4)
    assert abs(narrow - 5000) < tail and abs(wide - 5000) < tail


@builders.on_cpu
def test_default_batch_counts_what_each_trial_owns():
    def shared(key, table):
        return table[jax.random.randint(key, (), 0, table.shape[0])].astype(jnp.int32)

    def owned(key, params):
        return jnp.sort(jax.random.bits(key, (10_000,), jnp.uint32))[0].astype(jnp.int32)

    def talkative(key, params):
        bits = jax.random.bits(key, (10_000,), jnp.uint32)
        jax.debug.callback(lambda first: None, bits[0])  # an operation without a result
        return jnp.sort(bits)[0].astype(jnp.int32)

    assert engine.default_batch(talkative, None) == engine.default_batch(owned, None)
    assert engine.default_batch(shared, np.zeros(10**6, np.float32)) >= 256
    assert engine.default_batch(owned, None) == 16


IN_CACHE = {2**8: 1024, 2**13: 128, 2**16: 16, 2**17: 16, 150_000: 8, 2**18: 8}  # bytes of a trial: trials per block
ONE_A_THREAD = {2: {2**21: 2, 2**26: 2, 70_000_000: 1, 2**27: 1}, 6: {900_000: 8, 2**20: 8, 2**24: 8, 17_000_000: 1}}


@builders.on_cpu
@pytest.mark.parametrize("threads", ONE_A_THREAD)
def test_default_batch_by_bytes_and_threads(monkeypatch, threads):
    monkeypatch.setattr(engine.devices, "threads", lambda: threads)
    for size, expected in (IN_CACHE | ONE_A_THREAD[threads]).items():
        monkeypatch.setattr(engine, "_bytes_a_lane", lambda *_, size=size: size)
        assert engine.default_batch(big, None) == expected, size


def test_default_batch_of_an_accelerator_is_what_its_room_holds(monkeypatch):
    device = types.SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": 2**34})
    monkeypatch.setattr(engine.jax, "local_devices", lambda: [device])
    for size, expected in {2**10: 2**15, 2**20: 2**10, 2**29: 2, 2**31: 1}.items():
        monkeypatch.setattr(engine, "_bytes_a_lane", lambda *_, size=size: size)
        assert engine.default_batch(big, None) == expected, size


BY_NUMBER = {
    *("add", "sub", "mul", "div", "neg", "max", "min", "exp", "log", "eq", "ne", "lt", "le", "gt", "ge", "select_n"),
    *("and", "or", "xor", "not", "shift_left", "shift_right_logical", "convert_element_type", "broadcast_in_dim"),
}


def bytes_of_operations(program):
    """For every innermost operation, the bytes that it reads and writes; for elementwise ones, the bytes that they write."""
    sizes = []
    for equation in program.eqns:
        inner = [part for part in jax.tree.leaves(list(equation.params.values())) if hasattr(part, "eqns")]
        sizes += [size for part in inner for size in bytes_of_operations(part)]
        if not inner:
            fused = equation.primitive.name in BY_NUMBER
            values = equation.outvars if fused else (*equation.invars, *equation.outvars)
            sizes.append(sum(value.aval.size * value.aval.dtype.itemsize for value in values))
    return sizes


def looping(key, table):
    """A loop that reads what all trials share, and one whose state starts from it."""
    start = jax.random.randint(key, (), 0, 5)
    summed = jax.lax.fori_loop(0, 3, lambda i, total: total + table[start + i], jnp.float32(0))
    steps = start + jnp.arange(4, dtype=jnp.int32)
    spread, firsts = jax.lax.scan(lambda state, i: (state + i.astype(float), state[0]), table, steps)
    return jnp.where(summed > 0, table, spread), firsts


LEARNER = pac.Experiment(
    learner=thresholds.exponential(bits=8, epsilon=1.0),
    distribution=concept.log_uniform(bits=8),
    n=100,
    alpha=0.1,
    capacity=127,
)


@pytest.mark.thorough
@pytest.mark.parametrize("run, params", [(looping, np.zeros(100, np.float32)), (pac.trial, LEARNER)])
def test_the_bytes_of_a_trial_are_what_a_batch_takes_more_for_each(run, params):
    params = engine.tree_of_arrays(params)
    two, three = (jax.eval_shape(lambda n=n: jax.random.split(jax.random.key(0), n)) for n in (2, 3))
    batched = jax.make_jaxpr(jax.vmap(run, in_axes=(0, None)))
    differences = zip(*(bytes_of_operations(batched(keys, params)) for keys in (two, three)), strict=True)
    program = jax.make_jaxpr(run)(jax.eval_shape(lambda: ROOT), params).jaxpr
    owned = [True] + [False] * (len(program.invars) - 1)
    assert footprint.largest(program, owned) == max(more - less for less, more in differences)


def big(key, params):
    """A trial of 512 KB and more."""
    return (jnp.sort(jax.random.bits(key, (2**17,), jnp.uint32))[5] & 1).astype(jnp.int32)


@builders.on_cpu
def test_a_block_that_does_not_fit_is_halved_beforehand_and_a_trial_that_does_not_is_refused(monkeypatch):
    given = {"root": ROOT, "cell": 0, "batch": 4}
    whole = engine.count(big, None, trials=6, **given)
    draws = engine.evaluate(big, None, draws=6, **given)
    monkeypatch.setattr(engine.devices, "free_bytes", lambda: 2 * 7_500_000)
    with pytest.warns(RuntimeWarning, match="a block of 4 trials needs .* going on with 2"):
        assert engine.count(big, None, trials=6, **given) == whole
    with pytest.warns(RuntimeWarning, match="going on with 2"):
        np.testing.assert_array_equal(engine.evaluate(big, None, draws=6, **given), draws)
    monkeypatch.setattr(engine.devices, "free_bytes", lambda: 125_000)
    with pytest.raises(MemoryError, match="one trial needs"), pytest.warns(RuntimeWarning):
        engine.count(big, None, trials=6, **given)


@pytest.mark.slow  # halved beforehand: the test after
def test_a_block_that_runs_out_of_memory_is_halved_and_retried():
    """Really out of memory: in a process whose address space is limited, but which is told that there is plenty."""
    program = textwrap.dedent(
        """
        import resource
        import jax, jax.numpy as jnp
        from dpjax.trials import engine
        def big(key, params):
            return (jnp.sort(jax.random.bits(key, (2**20,), jnp.uint32))[5] & 1).astype(jnp.int32)
        engine.devices.free_bytes = lambda: 2**60
        given = {"root": engine.root_key(20), "cell": 0, "trials": 9}
        whole = engine.count(big, None, batch=1, **given)
        used = 4096 * int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, -1))
        assert engine.count(big, None, batch=8, **given) == whole
        """
    )
    command = [sys.executable, "-W", "default", "-c", program]
    done = subprocess.run(
        command, cwd=pathlib.Path(__file__).parent.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "a block of 8 trials ran out of memory" in done.stderr and "going on with 4" in done.stderr


@pytest.mark.slow
def test_ten_million_trials_take_no_more_memory_than_a_hundred_thousand():
    program = textwrap.dedent(
        """
        import resource
        import jax
        from dpjax.trials import engine
        def coin(key, p):
            return jax.random.uniform(key) < p
        most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        given = {"root": engine.root_key(0), "cell": 0}
        engine.count(coin, 0.5, trials=10**5, **given)
        before, heads = most(), engine.count(coin, 0.5, trials=10**7, **given)
        assert abs(heads - 5 * 10**6) < 8000, heads  # five standard deviations: false alarm 4e-7
        print(most() - before)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 8_000  # kilobytes: less than a byte a trial


def test_sums_of_devices_are_exact():
    words = np.array([[2**31 - 1], [-(2**31)], [-1], [5]], np.int32)
    rows = np.stack([words >> 16, words & 0xFFFF], axis=1).astype(np.int32) * 2**15  # as after 2^15 trials a device
    total = engine.devices.add_up(jnp.asarray(rows))
    assert total.tolist() == [2**15 * int(words.sum(dtype=np.int64))]


def test_free_memory_is_a_number_of_bytes():
    assert 2**20 < engine.devices.free_bytes() < 2**50


def test_reports_add_up():
    seen = []
    engine.count(last_bits, 1.0, root=ROOT, cell=0, first=7, trials=1000, batch=8, report=seen.append)
    assert sum(seen) == 1000 and len(seen) > 1
    seen.clear()
    engine.evaluate(fickle, 1.0, root=ROOT, cell=0, first=7, draws=30, report=seen.append)
    assert sum(seen) == 30
    with pytest.raises(TypeError, match="report must be callable"):
        engine.evaluate(fickle, 1.0, root=ROOT, cell=0, draws=30, report=3)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"trials": 0}, ValueError, "trials"),
        ({"trials": 1.0}, TypeError, "trials"),
        ({"first": -1}, ValueError, "first"),
        ({"first": 2**32}, ValueError, "2\\^32"),
        ({"cell": 2**32}, ValueError, "cell"),
        ({"batch": 0}, ValueError, "batch"),
        ({"batch": 2**15 + 1}, ValueError, "batch"),
        ({"root": 3}, TypeError, "root"),
        ({"root": jax.random.split(jax.random.key(3), 2)}, TypeError, "root must be one typed key"),
        ({"root": jax.random.PRNGKey(3)}, TypeError, "root"),
        ({"root": jax.random.key(3, impl="rbg")}, ValueError, "threefry"),
        ({"params": 2**40}, ValueError, "params"),
        ({"params": np.int64(2**40)}, ValueError, "params"),
        ({"run": [1]}, TypeError, "run"),
        ({"run": lambda key, params: jax.random.uniform(key)}, TypeError, "integers"),
    ],
)
def test_count_refuses(change, error, words):
    arguments = {"run": last_bits, "params": 1.0, "root": ROOT, "cell": 0, "trials": 10} | change
    with pytest.raises(error, match=words):
        engine.count(arguments.pop("run"), arguments.pop("params"), **arguments)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, True])
def test_root_key_refuses(seed):
    with pytest.raises((ValueError, TypeError), match="seed"):
        engine.root_key(seed)


# --- estimates


def coverage(intervals, trials, rate):
    """Exact probability that the interval of X ~ Bin(trials, rate) holds the rate."""
    holds = [low <= rate <= high for low, high in intervals]
    return float(np.dot(stats.binom.pmf(np.arange(trials + 1), trials, rate), holds))


RATES = np.concatenate([np.linspace(0.0005, 0.9995, 400), [1e-6, 1 - 1e-6]])


def ends(method, trials, level):
    found = [method(events, trials, level=level) for events in range(trials + 1)]
    return [(estimate.low, estimate.high) for estimate in found]


@pytest.mark.parametrize("trials", [1, 2, 5, 17, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_clopper_pearson_covers(trials, level):
    intervals = ends(estimates.clopper_pearson, trials, level)
    assert min(coverage(intervals, trials, rate) for rate in RATES) >= level - 1e-12


def test_shorter_intervals_do_not_cover():
    """Negative control: the same sum convicts Clopper-Pearson made 10% shorter, and Wilson's interval."""
    exact = ends(estimates.clopper_pearson, 40, 0.95)
    shorter = [(low + 0.05 * (high - low), high - 0.05 * (high - low)) for low, high in exact]
    for intervals in (shorter, ends(estimates.wilson, 40, 0.95)):
        assert min(coverage(intervals, 40, rate) for rate in RATES) < 0.95


@pytest.mark.parametrize(("method", "name"), [(estimates.clopper_pearson, "exact"), (estimates.wilson, "wilson")])
@pytest.mark.parametrize(("events", "trials"), [(0, 1), (0, 64), (3, 64), (64, 64), (123_456, 10**9)])
def test_intervals_agree_with_scipy(method, name, events, trials):
    got = method(events, trials, level=0.99)
    want = stats.binomtest(events, trials).proportion_ci(0.99, method=name)
    assert (got.value, got.count, got.level) == (events / trials, trials, 0.99)
    assert got.low == pytest.approx(want.low, rel=1e-8, abs=1e-300)
    assert got.high == pytest.approx(want.high, rel=1e-8)
    assert got.low <= got.value <= got.high


def test_mean_is_student():
    values = [0.1, 0.4, 0.2, 0.9]
    got = estimates.mean(values, level=0.9)
    want = stats.t.interval(0.9, 3, np.mean(values), stats.sem(values))
    assert got.value == pytest.approx(0.4) and got.count == 4
    assert (got.low, got.high) == pytest.approx(want)
    assert estimates.mean(values[::-1], level=0.9) == got


@pytest.mark.parametrize("power", [-1000, -600, 600, 1000])
def test_the_mean_of_draws_whose_squares_are_no_floats(power):
    """A variance of 0 said that the mean was known exactly, and an infinite one that nothing was."""
    values, unit = np.array([0.1, 0.4, 0.2, 0.9]), 2.0**power
    want, got = estimates.mean(values), estimates.mean(values * unit)
    assert (got.value, got.low, got.high) == (want.value * unit, want.low * unit, want.high * unit)


def test_the_mean_of_probabilities_is_one():
    values = [1e-6, 3e-6, 2e-6]
    want, got = estimates.mean(values), estimates.mean_probability(values)
    assert want.low < 0 == got.low and (got.value, got.high) == (want.value, want.high)
    likely = estimates.mean_probability(1 - np.array(values))
    assert likely.high == 1.0 and 0 < likely.low < likely.value
    over = estimates.mean_probability([1 + 1e-7, 1 + 1e-7])
    assert over.low == over.value == over.high == 1 + 1e-7


def test_mean_cannot_see_rare_disasters():
    """Why the docstring warns: 64 clean draws say [0, 0], yet 4.5% of all data may be disastrous."""
    zeros = estimates.mean(np.zeros(64))
    mass = estimates.hidden_mass(64)
    assert zeros.high == 0.0
    assert (1 - mass) ** 64 == pytest.approx(0.05) and mass == pytest.approx(3 / 64, rel=0.03)
    assert estimates.clopper_pearson(0, 64, level=0.9).high == pytest.approx(mass)


@pytest.mark.parametrize(
    "call",
    [
        lambda: estimates.clopper_pearson(5, 4),
        lambda: estimates.clopper_pearson(-1, 4),
        lambda: estimates.clopper_pearson(0, 0),
        lambda: estimates.clopper_pearson(1, 2**63),
        lambda: estimates.rate_sequence(1, 2**62),
        lambda: estimates.wilson(1, 4, level=1.0),
        lambda: estimates.wilson(1, 4, level=0.0),
        lambda: estimates.mean([1.0]),
        lambda: estimates.mean([1.0, math.nan]),
        lambda: estimates.mean([[1.0, 2.0]]),
        lambda: estimates.hidden_mass(0),
        lambda: known(math.nan),
    ],
)
def test_estimates_refuse(call):
    with pytest.raises(ValueError, match="must be"):
        call()


# --- search


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([1, 3, 50]))
def test_search_finds_the_exact_least_n(truth, start, minimum):
    calls = []

    def failure(n):
        calls.append(n)
        return known(0.1 if n >= truth else 0.100001)

    start, want = max(start, minimum), max(truth, minimum)
    found = search.least_n(failure, beta=0.1, start=start, minimum=minimum, maximum=5000)
    assert (found.n, found.low, found.high, found.status) == (want, want, want, search.FOUND)
    assert len(calls) == len(set(calls)) <= 30
    assert [n for n, _ in found.evaluations] == sorted(calls)


@pytest.mark.parametrize("rtol", [0.01, 0.1, 0.5])
def test_relative_tolerance(rtol):
    for truth in (3, 100, 12_345):
        found = search.least_n(
            lambda n, truth=truth: known(0.5 * truth / n), beta=0.5, start=64, maximum=10**6, rtol=rtol
        )
        assert truth <= found.n <= max(truth + 1, (1 + rtol) * truth)


def test_maximum_is_a_status_never_a_number():
    found = search.least_n(lambda n: known(1 / n), beta=0.001, start=10, maximum=999)
    assert (found.n, found.high, found.status) == (None, None, search.ABOVE_MAXIMUM)
    assert found.low == 1000 and max(n for n, _ in found.evaluations) == 999


def test_interval_from_the_ends_of_the_estimates():
    def failure(n):
        return Estimate(10 / n, 8 / n, 15 / n, 0.95, 100)

    found = search.least_n(failure, beta=0.1, start=7, maximum=10**6)
    assert (found.low, found.n, found.high) == (80, 100, 150)
    unresolved = search.least_n(lambda n: Estimate(10 / n, 0.0, 1.0, 0.95, 100), beta=0.1, start=7, maximum=10**6)
    assert (unresolved.low, unresolved.n, unresolved.high) == (1, 100, None)
    assert max(n for n, _ in unresolved.evaluations) <= 400


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 2000))
def test_noise_cannot_trap_the_search(seed, start):
    def failure(n):
        noise = np.random.default_rng([seed, n]).uniform(0.3, 3.0, 3)
        low, value, high = np.sort(noise) * 50 / n
        return Estimate(value, low, high, 0.5, 1)

    found = search.least_n(failure, beta=0.1, start=start, maximum=2000)
    again = search.least_n(failure, beta=0.1, start=start, maximum=2000)
    assert found == again
    points = dict(found.evaluations)
    if found.n is not None:
        assert points[found.n].value <= 0.1 and found.low <= found.n
        assert all(points[n].value <= 0.1 for n in points if n > found.n)
    if found.high is not None:
        assert points[found.high].high <= 0.1 and found.n <= found.high


BIASES = jnp.asarray([0.05, 0.10])


def law(key, n):
    """Exact failure on one data draw: the draw picks a coin, failure is never seeing heads in n tosses."""
    bias = BIASES[jax.random.bernoulli(jax.random.fold_in(key, 0)).astype(jnp.int32)]
    return jnp.exp(n * jnp.log1p(-bias))


def coins(key, n):
    """The same experiment, tossed."""
    picked = BIASES[jax.random.bernoulli(jax.random.fold_in(key, 0)).astype(jnp.int32)]
    tosses = jax.random.uniform(jax.random.fold_in(key, 1), (128,)) < picked
    return ~jnp.any(tosses & (jnp.arange(128) < n))


@functools.cache
def failure_by(method, n):
    """By exact laws over 64 draws or by 8000 plain trials."""
    if method == "law":
        draws = engine.evaluate(law, float(n), root=ROOT, cell=n, draws=64)
        return estimates.mean(draws, level=1 - ALARM)
    failed = engine.count(coins, n, root=ROOT, cell=1000 + n, trials=8000)
    return estimates.clopper_pearson(failed, 8000, level=1 - ALARM)


def least_by(method, beta):
    """The n that the search finds."""
    return search.least_n(functools.partial(failure_by, method), beta=beta, start=8, maximum=128, rtol=0.02)


@pytest.mark.slow
def test_laws_and_monte_carlo_agree():
    def truth(n):
        return (0.95**n + 0.90**n) / 2

    for beta in (0.02, 0.1):
        exact = next(n for n in range(1, 129) if truth(n) <= beta)
        by_law, by_trials = least_by("law", beta), least_by("trials", beta)
        for found in (by_law, by_trials):
            assert found.low <= exact <= found.high
            assert found.high <= 2 * found.low  # and the interval says something
        # Negative control: coins 1.3 times as lucky need fewer tosses than plain trials allow.
        lucky = next(n for n in range(1, 129) if (0.935**n + 0.87**n) / 2 <= beta)
        assert not by_trials.low <= lucky <= by_trials.high


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"beta": 0.0}, ValueError, "beta"),
        ({"beta": 1.0}, ValueError, "beta"),
        ({"beta": math.nan}, ValueError, "beta"),
        ({"start": 0}, ValueError, "start"),
        ({"start": 101}, ValueError, "start"),
        ({"maximum": 0}, ValueError, "maximum"),
        ({"minimum": 0}, ValueError, "minimum"),
        ({"rtol": 1.0}, ValueError, "rtol"),
        ({"reach": 0.5}, ValueError, "reach"),
        ({"failure": lambda n: 0.5}, TypeError, "Estimate"),
        ({"failure": lambda n: Estimate(math.nan, 0.0, 1.0, 0.95, 1)}, ValueError, "numbers"),
    ],
)
def test_search_refuses(change, error, words):
    arguments = {"failure": lambda n: known(1 / n), "beta": 0.1, "start": 5, "maximum": 100} | change
    with pytest.raises(error, match=words):
        search.least_n(arguments.pop("failure"), **arguments)


# --- resumable counts and progress


@pytest.mark.parametrize("chunk", [1, 7, 40, 1000])
def test_stored_chunks_give_the_same_result(tmp_path, chunk):
    with open_store(tmp_path, {}) as store:
        place = {"store": store, "root": ROOT, "cell": 4}
        got = resumable.count(counters, {"p": 0.3}, key={"what": "sums"}, trials=50, chunk=chunk, batch=5, **place)
        draws = resumable.evaluate(fickle, 1.0, key={"what": "law"}, draws=21, chunk=chunk, **place)
    want = engine.count(counters, {"p": 0.3}, root=ROOT, cell=4, trials=50, batch=5)
    assert as_lists(got) == as_lists(want)
    assert [np.asarray(leaf).dtype for leaf in jax.tree.leaves(got)] == [np.int64] * 4
    for stored, direct in zip(draws, engine.evaluate(fickle, 1.0, root=ROOT, cell=4, draws=21), strict=True):
        np.testing.assert_array_equal(stored, direct)


@pytest.mark.parametrize("name", ["first", "trials", "draws"])
def test_a_key_leaves_to_records_what_they_say_of_chunks(name):
    """Two counts that differ in it alone would have been taken for one."""
    given = {"key": {name: 1}, "store": Memory(), "root": ROOT, "cell": 0}
    ask = [lambda: resumable.count(last_bits, 1.0, trials=10, **given)] if name != "draws" else []
    ask += [lambda: resumable.evaluate(fickle, 1.0, draws=2, **given)] if name != "trials" else []
    for each in ask:
        with pytest.raises(ValueError, match=f"key must leave {name} to the chunks"):
            each()


def test_sums_of_chunks_may_pass_64_bits(x64):
    place = {"store": Memory(), "key": {}, "root": ROOT, "cell": 0}
    assert resumable.count(lambda key, most: most, 2**62, trials=6, chunk=3, batch=1, **place) == 6 * 2**62


def test_resumed_count_runs_only_what_is_missing(tmp_path):
    def through(directory, lose_after=None):
        calls, stream = [], io.StringIO()
        with open_store(directory, {}, resume=True) as store, Progress(100, "t", stream=stream) as progress:

            def lossy(record, compute):
                calls.append(record["first"])
                if len(calls) == lose_after:
                    raise KeyboardInterrupt
                return original(record, compute)

            original, store.get_or_compute = store.get_or_compute, lossy
            stored = len(store)
            options = {"key": {"c": 0}, "trials": 100, "chunk": 10, "progress": progress}
            try:
                total = resumable.count(last_bits, 1.0, store=store, root=ROOT, cell=0, **options)
            except KeyboardInterrupt:
                total = None
        return total, stored, len(store), stream.getvalue()

    whole, _, _, _ = through(tmp_path / "whole")
    none, _, kept, _ = through(tmp_path / "cut", lose_after=5)
    resumed, stored, _, printed = through(tmp_path / "cut")
    assert none is None and kept == stored == 4
    assert resumed == whole == engine.count(last_bits, 1.0, root=ROOT, cell=0, trials=100)
    assert printed.splitlines()[-1].startswith("t: 100/100 trials")
    assert (tmp_path / "cut/records.jsonl").read_bytes() == (tmp_path / "whole/records.jsonl").read_bytes()


def test_progress_lines_and_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    log, terminal = io.StringIO(), Terminal()
    for stream in (log, terminal):
        with Progress(10, "thresholds", unit="draws", stream=stream) as progress:
            progress.skip(4)
            progress.done(6)
    assert "\r" not in log.getvalue() and "\r" in terminal.getvalue()
    assert "10/10 draws" in log.getvalue() and "left" in log.getvalue()


def test_what_is_being_done_is_said_every_few_seconds(monkeypatch):
    log, now = io.StringIO(), [0.0]
    monkeypatch.setattr("dpjax.trials.progress.time.monotonic", lambda: now[0])
    with Progress(2, "least n", unit="searches", stream=log) as progress:
        for now[0], what in ((1.0, "n = 64"), (6.0, "n = 128"), (7.0, "n = 256")):
            progress.note(what)
    lines = log.getvalue().splitlines()
    assert any(line.endswith("left, n = 128") for line in lines) and not any("n = 64" in line for line in lines)


def test_progress_says_how_long_each_takes_where_it_is_slow():
    log = io.StringIO()
    with Progress(2, "slow", unit="cells", stream=log) as progress:
        progress._bar.start_t -= 60
        progress.done(2)
    assert re.search(r", 30\.0\d s each, ", log.getvalue())


def test_what_was_done_before_memory_ran_out_is_not_done_again(monkeypatch):
    begun = []

    def steps(program, lanes, first):
        begun.append((lanes, first))
        yield 8, f"from {first} on"
        if lanes == 8:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no room")

    monkeypatch.setattr(engine, "_compiled", lambda build, lanes, signature: (None, lanes))
    with pytest.warns(RuntimeWarning, match="ran out of memory .*; going on with 4"):
        found = list(engine._fitting(None, steps, 100, 8, ()))
    assert begun == [(8, 100), (4, 108)] and found == [(8, "from 100 on"), (8, "from 108 on")]


def test_integers_that_would_wrap_around_are_refused():
    for wide in (np.int64(2**31), np.int64(-(2**31) - 1), np.array([0, -(2**40)])):
        with pytest.raises(ValueError, match="params must hold integers that fit int32"):
            engine.count(lambda key, p: jnp.sum(p), wide, root=ROOT, cell=0, trials=1)
    assert engine.count(lambda key, p: p, np.int64(-(2**31)), root=ROOT, cell=0, trials=1) == -(2**31)


@pytest.mark.parametrize("number", [1e-300, 1e39, np.array([1.0, -1e39])])
def test_numbers_that_would_be_0_or_infinite_are_refused(number):
    with pytest.raises(ValueError, match="params must hold numbers that fit float32, got"):
        engine.count(lambda key, p: jax.random.uniform(key) < p, number, root=engine.root_key(0), cell=0, trials=4)


@pytest.mark.parametrize("stream", [None, object()])
def test_progress_needs_no_terminal(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(1, "x", silent=True) as bar:
        bar.done(1)


def test_an_interrupt_does_not_wait_for_what_is_queued():
    done = []

    def work(item):
        time.sleep(0.05)
        done.append(item)

    items = engine._in_parallel(work, range(100))
    next(items)
    items.close()
    assert len(done) <= 1 + 2 * engine.devices.threads()


@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_wide_words_and_empty_rows_come_back_from_a_store_as_they_were(chunk):
    def words(key, _):
        return {"word": jax.random.bits(key, (), jnp.uint64), "none": jnp.zeros((0, 3))}

    with jax.enable_x64(True):
        given = {"root": engine.root_key(0), "cell": 0, "draws": 12}
        whole = engine.evaluate(words, 0, **given)
        parts = resumable.evaluate(words, 0, store=Memory(), key={}, chunk=chunk, **given)
    assert parts["word"].dtype == np.uint64 and parts["word"].tolist() == whole["word"].tolist()
    assert parts["none"].shape == whole["none"].shape
