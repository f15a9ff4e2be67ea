"""Wide integers against Python's own, at one to 129 limbs."""

import bisect
import functools
import itertools
import math
from fractions import Fraction

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpjax.domains import wide

FALSE_ALARM = 2e-5
# One limb; masks packed column by column; 9 limbs: a summed mask; 33 and 128 limbs: masks of several words.
WIDTHS = [1, 32, 33, 96, 257, builders.thorough(1056), builders.slow(4096)]
SEVERAL = [33, 257, builders.slow(1056)]
PAIRS = 64


def modulus(bits):
    return 1 << 32 * wide.limbs_for(bits)


def edges(bits):
    """Numbers at which carries, borrows and shifts go wrong."""
    powers = {0, 1, bits // 2, bits - 1, *(32 * limb for limb in range(wide.limbs_for(bits)))}
    values = {2**p + shift for p in powers for shift in (-1, 0, 1)} | {0, 2**bits - 1}
    return sorted(value for value in values if 0 <= value < 2**bits)


def numbers(bits):
    """Numbers of long runs of equal bits, in which carries travel far, and any others."""
    exponent = st.integers(0, bits)
    runs = st.tuples(exponent, exponent).map(lambda ends: abs(2 ** ends[0] - 2 ** ends[1]) % 2**bits)
    return st.one_of(st.sampled_from(edges(bits)), runs, st.integers(0, 2**bits - 1))


def batches(bits):
    """PAIRS pairs: eight drawn numbers with one another, in equal, increasing and decreasing order."""
    drawn = st.lists(numbers(bits), min_size=8, max_size=8)
    return drawn.map(lambda values: list(itertools.product(values, values)))


AMOUNTS = [0, 1, 31, 32, 33, 63, 64, 95, 127, 500, 1024, 4095, 4096, 10**6, 2**31 - 1]
amounts = [AMOUNTS[i % len(AMOUNTS)] for i in range(PAIRS)]


def operations(a, b, amount):
    """Every operation at once: one compilation per width."""
    low, high = wide.minimum(a, b), wide.maximum(a, b)
    return {
        "less": wide.less(a, b),
        "less_equal": wide.less_equal(a, b),
        "equal": wide.equal(a, b),
        "is_zero": wide.is_zero(a),
        "add": wide.add(a, b),
        "subtract": wide.subtract(a, b),
        "select": wide.select(wide.less(a, b), a, b),
        "minimum": low,
        "maximum": high,
        "midpoint": wide.midpoint(low, high),
        "shift_left": wide.shift_left(a, amount),
        "shift_right": wide.shift_right(a, amount),
        "power_of_two": wide.power_of_two(amount, a.shape[-1]),
        "bit_length": wide.bit_length(a),
        "narrower": wide.resize(a, 1),
        "wider": wide.resize(a, a.shape[-1] + 2),
        "log": wide.log(a),
    }


compiled = jax.jit(operations)


def reference(a, b, amount, modulus):
    """The same on Python ints."""
    return {
        "less": a < b,
        "less_equal": a <= b,
        "equal": a == b,
        "is_zero": a == 0,
        "add": (a + b) % modulus,
        "subtract": (a - b) % modulus,
        "select": min(a, b),
        "minimum": min(a, b),
        "maximum": max(a, b),
        "midpoint": (a + b) // 2,
        "shift_left": (a << amount) % modulus if amount < 5000 else 0,
        "shift_right": a >> amount,
        "power_of_two": (1 << amount) % modulus if amount < 5000 else 0,
        "bit_length": a.bit_length(),
        "narrower": a % 2**32,
        "wider": a,
    }


def python(values):
    return wide.to_ints(values) if values.dtype == jnp.uint32 else values.tolist()


def arguments(pairs, bits):
    a, b = (wide.from_ints(column, bits) for column in zip(*pairs, strict=True))
    return a, b, np.array(amounts, np.int32)


def check_against_python(pairs, bits):
    result = compiled(*arguments(pairs, bits))
    expected = [reference(a, b, k, modulus(bits)) for (a, b), k in zip(pairs, amounts, strict=True)]
    for name in expected[0]:
        assert python(result[name]) == [row[name] for row in expected], name
    assert_logs(result["log"], [a for a, _ in pairs], 3e-7)


def assert_logs(logs, values, tolerance):
    """Relative error of ln x, with ln 0 = -inf and ln 1 = 0 exactly."""
    for log, x in zip(logs.tolist(), values, strict=True):
        exact = math.log(x) if x else -math.inf
        assert log == exact or abs(log - exact) <= tolerance * abs(exact), (x, log, exact)


# ---------------------------------------------------------------------------- arithmetic, order, shifts, logs


@pytest.mark.parametrize("bits", WIDTHS)
def test_operations_equal_those_of_python(bits):
    @settings(max_examples=8)
    @given(batches(bits))
    def check(pairs):
        check_against_python(pairs, bits)

    check()


@pytest.mark.parametrize("bits", WIDTHS)
def test_operations_at_the_edges(bits):
    pairs = list(itertools.product(edges(bits), repeat=2))[: 4 * PAIRS]
    pairs += [(2**bits - 1, x) for x in edges(bits)] + [(x, 2**bits - 1) for x in edges(bits)]
    pairs += [(0, 0)] * (-len(pairs) % PAIRS)
    for start in range(0, len(pairs), PAIRS):
        check_against_python(pairs[start : start + PAIRS], bits)


@pytest.mark.parametrize("bits", SEVERAL)
def test_a_lost_carry_would_be_seen(bits):
    """Negative control: addition limb by limb, without carries, must differ from the reference."""
    a, b, amount = arguments([(2**32 - 1, 1)] * PAIRS, bits)
    assert wide.to_ints(np.asarray(a) + np.asarray(b)) != [2**32] * PAIRS
    assert wide.to_ints(compiled(a, b, amount)["add"]) == [2**32] * PAIRS


@pytest.mark.parametrize("bits", [33, builders.thorough(257), builders.slow(1056)])
def test_vmap_and_x64_change_nothing(bits, x64):
    inputs = arguments(some_pairs(bits), bits)
    in_x64 = compiled(*inputs)
    with jax.enable_x64(False):
        batched = compiled(*inputs)
        one_by_one = jax.jit(jax.vmap(operations))(*inputs)
    for name in sorted(set(batched) - {"log"}):
        assert batched[name].dtype == one_by_one[name].dtype == in_x64[name].dtype
        np.testing.assert_array_equal(batched[name], one_by_one[name], name)
        np.testing.assert_array_equal(batched[name], in_x64[name], name)
    assert batched["log"].dtype == jnp.float32 and in_x64["log"].dtype == jnp.float64


def some_pairs(bits):
    rng = np.random.default_rng(bits)
    values = [
        int.from_bytes(rng.bytes(bits // 8 + 1), "big") % 2 ** int(rng.integers(1, bits + 1)) for _ in range(PAIRS)
    ]
    return list(zip(values, values[::-1], strict=True))


log = jax.jit(wide.log)


@pytest.mark.parametrize("bits", SEVERAL)
def test_log_in_x64(bits, x64):
    values = [0, 1, 2, 3, 2**32 - 1, 2**32, 2**32 + 1, 2**bits - 1, *(a for a, _ in some_pairs(bits))]
    assert_logs(log(wide.from_ints(values, bits)), values, 1.2e-15)


def test_log_of_small_and_huge_numbers():
    values = [*range(2000), 2**4097 - 1, 2**4096, 2**4096 - 1, 3 * 2**4000]
    assert_logs(log(wide.from_ints(values, 4097)), values, 3e-7)


@pytest.mark.parametrize("bits", [20, 96, 1000, 4096])
def test_log_of_a_share_keeps_its_digits(bits):
    """ln(x 2^-bits) is right to 2e-6 for the greatest x, where ln x of 4096 bits is only right to 1e-4."""
    x = [2**bits - 1, 2 ** (bits - 1) + 1, 3 * 2 ** (bits - 15)]
    exact = [math.log(Fraction(each, 2**bits)) for each in x]
    np.testing.assert_allclose(log(wide.from_ints(x, bits), jnp.int32(bits)), exact, rtol=0, atol=2e-6)


def test_log_has_no_gradient_but_lets_others_pass():
    x = np.asarray(wide.from_ints([5], 64))[0]
    assert jax.jit(jax.grad(lambda t, x: t * wide.log(x)))(2.0, x) == pytest.approx(math.log(5), rel=1e-6)


def test_leading_axes_of_equal_rank_broadcast():
    operations = (wide.add, wide.subtract, wide.less, wide.equal, wide.minimum, wide.maximum)

    @jax.jit
    def both(a, b):
        return [(operation(a, b), operation(a, jnp.broadcast_to(b, a.shape))) for operation in operations]

    for found, expected in both(wide.from_ints([0, 5, 2**40, 2**64 - 1], 64), wide.from_ints([2**40], 64)):
        np.testing.assert_array_equal(found, expected)


# ------------------------------------------------------------------------------------------- one limb is free


def arithmetic(function, *inputs):
    """The kinds of all operations that a function lowers to, moves of data aside."""
    moves = {"return", "func", "reshape", "slice", "broadcast_in_dim", "constant", "module"}
    lines = jax.jit(function).lower(*inputs).as_text().splitlines()
    kinds = [line.split("stablehlo.")[1].split()[0].rstrip(",(") for line in lines if "= stablehlo." in line]
    return sorted(kind for kind in kinds if kind not in moves)


@pytest.mark.parametrize(
    ("name", "plain"),
    [("add", lambda a, b: a + b), ("subtract", lambda a, b: a - b), ("less", lambda a, b: a < b)],
)
def test_one_limb_costs_what_plain_integers_cost(name, plain):
    a, b = jnp.arange(8, dtype=jnp.uint32), jnp.ones(8, jnp.uint32)
    ours = arithmetic(getattr(wide, name), a[:, None], b[:, None])
    assert len(ours) == len(arithmetic(plain, a, b)) == 1
    assert len(arithmetic(getattr(wide, name), *(wide.from_uint32(x, 2) for x in (a, b)))) > 1


# ----------------------------------------------------------------------------------------- to and from Python


@pytest.mark.parametrize("bits", WIDTHS)
def test_round_trip_through_python(bits):
    values = edges(bits)
    array = wide.from_ints(values, bits)
    assert array.shape == (len(values), wide.limbs_for(bits)) and array.dtype == jnp.uint32
    assert wide.to_ints(array) == values
    assert [wide.to_ints(row)[0] for row in np.asarray(array)] == values


def test_from_ints_takes_numpy_integers_and_nothing():
    assert wide.to_ints(wide.from_ints(np.array([3, 7]), 8)) == [3, 7]
    assert wide.from_ints([], 64).shape == (0, 2) and wide.to_ints(wide.from_ints([], 64)) == []


@pytest.mark.parametrize(
    ("values", "bits", "error", "message"),
    [
        ([0, -1], 8, ValueError, r"values\[1\] must be in 0, ..., 2\^8 - 1, got -1"),
        ([256], 8, ValueError, r"values\[0\] must be in 0, ..., 2\^8 - 1, got 256"),
        ([1.0], 8, TypeError, r"values\[0\] must be an int, got 1.0 of type float"),
        ([True], 8, TypeError, r"values\[0\] must be an int, got True"),
        (["1"], 8, TypeError, r"values\[0\] must be an int"),
        ([1], 0, ValueError, "bits must be from 1 to 4097, got 0"),
        ([1], 4098, ValueError, "bits must be from 1 to 4097, got 4098"),
        ([1], 8.0, TypeError, "bits must be an int, got 8.0"),
    ],
)
def test_from_ints_refuses(values, bits, error, message):
    with pytest.raises(error, match=message):
        wide.from_ints(values, bits)


@pytest.mark.parametrize("array", [np.zeros((2, 2), np.int32), np.zeros(2), np.uint32(3), [1, 2]])
def test_to_ints_refuses(array):
    with pytest.raises(TypeError, match="array must be uint32 of shape"):
        wide.to_ints(array)


# -------------------------------------------------------------------------------------------- sort and search


@pytest.mark.parametrize(("bits", "rows"), [(8, 1), (33, 7), (257, 50)])
def test_sort_is_stable_and_search_counts(bits, rows):
    rng = np.random.default_rng(bits)
    values = [edges(bits)[i] for i in rng.integers(0, len(edges(bits)), rows)]

    @jax.jit
    def run(x, queries):
        array, order = wide.sort(x, jnp.arange(rows, dtype=jnp.int32))
        search = {side: functools.partial(wide.search, side=side) for side in ("left", "right")}
        return array, order, {side: jax.vmap(one, in_axes=(None, 0))(array, queries) for side, one in search.items()}

    array, order, found = run(wide.from_ints(values, bits), wide.from_ints(edges(bits), bits))
    assert order.tolist() == sorted(range(rows), key=values.__getitem__)
    assert wide.to_ints(array) == sorted(values)
    for side, count in (("left", bisect.bisect_left), ("right", bisect.bisect_right)):
        assert found[side].tolist() == [count(sorted(values), query) for query in edges(bits)]


@pytest.mark.parametrize(
    ("bits", "rows"),
    [
        (31, 29),
        (31, 65),
        (65, 100),
        *(builders.thorough(*case) for case in ((31, 200), (64, 2048), (64, 40), (300, 200))),
    ],
)
def test_a_searcher_counts_what_search_counts(bits, rows):
    """With the last block full or not; also with few rows and with wide ones, where it is `search` itself."""
    rng = np.random.default_rng(rows)
    x = wide.from_ints(sorted(edges(bits)[i] for i in rng.integers(0, len(edges(bits)), rows)), bits)
    queries = wide.from_ints(edges(bits), bits)

    @jax.jit
    def counts(x, queries):
        ways = (functools.partial(wide.search, x), wide.searcher(x))
        sides = ("left", "right")
        return [[jax.vmap(functools.partial(way, side=side))(queries) for side in sides] for way in ways]

    slow, fast = jax.device_get(counts(x, queries))
    np.testing.assert_array_equal(fast, slow)


# ---------------------------------------------------------------------------------------------------- drawing


@functools.partial(jax.jit, static_argnums=2)
def draws(key, bound, count):
    return jax.vmap(wide.uniform, in_axes=(0, None))(jax.random.split(key, count), bound)


def p_uniform(values, cells):
    counts = np.bincount(values, minlength=cells)
    return stats.chisquare(counts).pvalue if counts.size == cells else 0.0


def test_uniform_is_uniform():
    values = draws(jax.random.key(1), wide.from_ints([11], 64)[0], 110_000)
    assert p_uniform(wide.to_ints(values), 11) > FALSE_ALARM


def test_a_remainder_would_be_seen():
    """Negative control: five bits modulo 11, where 32 = 3 * 11 - 1 leaves one value too rare by a third."""
    words = np.random.default_rng(2).integers(0, 2**5, 110_000)
    assert p_uniform(words % 11, 11) < FALSE_ALARM


def test_uniform_tries_for_long(monkeypatch):
    """Eight words at a time: of the first 72 none fits, of the next the first."""
    key, bound = jax.random.key(0), wide.from_ints([2**31 + 1], 32)[0]
    folded = jax.jit(jax.vmap(jax.random.fold_in, in_axes=(None, 0)))(jax.random.key(0), np.arange(0, 72, 8))
    words = np.asarray(jax.random.key_data(folded))

    def bits(key, count):
        early = jnp.any(jnp.all(jax.random.key_data(key)[None] == words, axis=1))
        return jnp.where(early, jnp.uint32(2**32 - 1), jnp.arange(count, dtype=jnp.uint32) + 3)

    monkeypatch.setattr("dpjax.core.random.bits", bits)
    assert wide.to_ints(jax.jit(wide.uniform)(key, bound)) == [3]


def test_uniform_is_uniform_on_every_limb():
    bound = 3 << 64
    values = wide.to_ints(draws(jax.random.key(3), wide.from_ints([bound], 96)[0], 60_000))
    assert max(values) < bound
    for shift, cells in ((64, 3), (56, 768), (32, 1 << 8), (0, 1 << 8)):
        assert p_uniform(np.array([(x >> shift) % cells for x in values]), cells) > FALSE_ALARM


@pytest.mark.parametrize("bound", [0, 1, 2, 2**32 - 1, 2**32, 2**64 - 1])
def test_uniform_stays_below_its_bound(bound):
    values = wide.to_ints(draws(jax.random.key(4), wide.from_ints([bound], 64)[0], 1000))
    assert max(values) < max(bound, 1)
    assert max(values) >= 0.98 * (bound - 1)  # misses with probability 0.98^1000 = 2e-9


def test_random_bits_fills_exactly_the_asked_bits():
    widths = np.array([0, 1, 5, 32, 33, 96], np.int32)

    @jax.jit
    def draw(key):
        keys, of_a_width = jax.random.split(key, 400), jax.vmap(wide.random_bits, in_axes=(0, None, None))
        return jax.vmap(of_a_width, in_axes=(None, 0, None))(keys, jnp.asarray(widths), 3)

    for width, rows in zip(widths.tolist(), np.asarray(draw(jax.random.key(5))), strict=True):
        values = wide.to_ints(rows)
        # One bit is the same in all 400 draws with probability 2^-399.
        assert functools.reduce(int.__or__, values) == 2**width - 1
        assert functools.reduce(int.__and__, values) == 0


def test_high_product_and_scaled_are_exact():
    """Against Python ints, corners included."""
    corners = [0, 1, 2**16 - 1, 2**16, 2**31, 2**32 - 1]
    pairs = [(a, b) for a in corners for b in corners]
    a, b = (np.array([pair[i] for pair in pairs], np.uint32) for i in (0, 1))
    assert jax.jit(wide.high_product)(a, b).tolist() == [x * y >> 32 for x, y in pairs]
    exponents = [-40, -32, -31, -1, 0, 1, 31, 32, 33, 64, 95, 96, 200]
    cases = [(x, e) for x in corners for e in exponents]
    x, e = np.array([c[0] for c in cases], np.uint32), np.array([c[1] for c in cases], np.int32)
    expected = [(x << e if e >= 0 else x >> -e) % 2**96 for x, e in cases]
    assert wide.to_ints(jax.jit(wide.scaled, static_argnums=2)(x, e, 3)) == expected


@pytest.mark.parametrize("bits", [1, 31, 32, 33, 64, 95, 96])
def test_points_outside_a_domain_are_found(bits):
    for limbs in range(wide.limbs_for(bits), 5):
        largest = min(2**bits, 2 ** (32 * limbs)) - 1
        inside = wide.from_ints([0, largest], 32 * limbs)
        wide.check_below("x", inside, bits)
        for outside in {2**bits, 2 ** (32 * limbs) - 1} - {largest}:
            if outside < 2 ** (32 * limbs):
                with pytest.raises(ValueError, match=rf"2\^{bits} - 1, got {outside}$"):
                    wide.check_below("x", wide.from_ints([0, outside], 32 * limbs), bits)
