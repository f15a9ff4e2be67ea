"""Numbers of few digits around a centre, compared with full rows: the same rows, lengths, searches and answers."""

import functools
import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.concepts import thresholds as concept
from dpjax.data import pac
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.domains import offsets, ordered, scaled, wide
from dpjax.learners import thresholds
from dpjax.optimizers import interior_point, quantiles

BITS, LIMBS, ROWS = 319, 10, 15
CENTRE = (1 << 318) + (1 << 200) + 7
FULL = 2**32 - 1
# (side, digits, exponent): equal points, neighbours, powers of two beside 1, digits far apart, 64 of them that agree.
CASES = {
    "ties": [(-1, 3, 4), (-1, 6, 3), (-1, 1, 0), (1, 1, 0), (1, 1, 0), (1, 12, 2), (1, 3, 4), (1, 48, 0)],
    "powers": [(-1, 1, 150), (-1, 1, 0), (1, 1, 0), (1, 1, 1), (1, 1, 64), (1, 1, 65), (1, 1, 200)],
    "right": [(1, 1, 0), (1, 1, 31), (1, 1, 32), (1, 1, 33), (1, 1, 63), (1, 1, 64), (1, 1, 100), (1, 1, 101)],
    "left": [(-1, FULL, 270), (-1, FULL, 100), (-1, FULL - 1, 100), (-1, 2, 99), (-1, 1, 0)],
    "full": [(-1, FULL, 32), (-1, FULL, 0), (1, FULL, 0), (1, FULL, 32), (1, 1, 64), (1, FULL, 33)],
}


def build(rows, centre=CENTRE):
    """The scaled points in order, and the same points as ints."""
    value = lambda row: centre + row[0] * (row[1] << row[2])  # noqa: E731
    rows = sorted(rows, key=value)
    padded = rows + [(1, 1, 0)] * (ROWS - len(rows))
    points = scaled.Scaled(
        centre=wide.from_ints([centre], 32 * LIMBS)[0],
        digits=jnp.array([digits for _, digits, _ in padded], jnp.uint32),
        exponent=jnp.array([exponent for *_, exponent in padded], jnp.int32),
        below=jnp.int32(sum(side < 0 for side, *_ in rows)),
    )
    return points, [value(row) for row in rows]


@functools.partial(jax.jit, static_argnames="depth")
def both(points, whole, n, ones, depth):
    """All that is used of pieces, from points of either form, and positions to search for."""
    found = []
    for x in (points, whole):
        if depth:
            view = Points(x=x, n_valid=n, ordered=True)
            pieces = interior_point.exponential(bits=BITS, epsilon=1.0).pieces(view)
        else:
            sample = Sample.promised(x, (jnp.arange(ROWS) < ones).astype(jnp.int32), n)
            pieces = concept.quality(sample, jnp.int32(BITS), LIMBS)
        index = jnp.arange(pieces.count + 1, dtype=jnp.int32)
        rows = jax.vmap(pieces.at)(index)
        found.append((pieces.values, rows, pieces.log_lengths(), ordered.digits_around_top(pieces), pieces.nonempty()))
    queries = found[1][1]
    one = wide.from_uint32(jnp.uint32(1), LIMBS)
    queries = jnp.concatenate([queries, wide.add(queries, one[None]), wide.subtract(queries, one[None])])
    queries = wide.minimum(queries, queries[len(index) - 1][None])
    return found, queries


@functools.partial(jax.jit, static_argnames="side")
def counted(starts, queries, side):
    return jax.vmap(lambda query: starts.search(query, side=side))(queries)


def test_what_is_less_than_a_row_and_equal_to_it_is_so_of_the_numbers():
    around = jax.jit(lambda points: jax.vmap(lambda i: scaled.around(points, i))(jnp.arange(ROWS)))
    for rows in CASES.values():
        points, values = build(rows)
        less, equal = (np.asarray(each)[: len(values), : len(values)] for each in around(points))
        assert less.tolist() == [[x < y for x in values] for y in values]
        assert equal.tolist() == [[x == y for x in values] for y in values]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pieces_of_scaled_points_are_those_of_whole_rows(depth):
    """Starts, lengths, emptiness and digits of runs, where leading words tie, carry, or do not decide; searches, against exact integers."""
    for name, rows in CASES.items():
        points, values = build(rows)
        whole = wide.from_ints(values + [0] * (ROWS - len(values)), 32 * LIMBS)
        found, queries = both(points, whole, jnp.int32(len(rows)), jnp.int32(len(rows) // 2), depth)
        for what, mine, theirs in zip(("values", "rows", "logs", "digits", "nonempty"), *found, strict=True):
            # Logarithms of the same length may be rounded differently: 2 units in the last place of 222.
            np.testing.assert_allclose(
                mine, theirs, rtol=0, atol=4e-5 if what == "logs" else 0, err_msg=f"{name} {what}"
            )
        starts = wide.to_ints(found[1][1][:-1])
        if depth:
            built = interior_point.exponential(bits=BITS, epsilon=1.0).pieces(
                Points(x=points, n_valid=jnp.int32(len(rows)), ordered=True)
            )
        else:
            labels = (jnp.arange(ROWS) < len(rows) // 2).astype(jnp.int32)
            built = concept.quality(Sample.promised(points, labels, jnp.int32(len(rows))), jnp.int32(BITS), LIMBS)
        for side, before in (("left", int.__lt__), ("right", int.__le__)):
            want = [sum(before(start, query) for start in starts) for query in wide.to_ints(queries)]
            assert counted(built.starts, queries, side).tolist() == want, (name, side)


@pytest.mark.thorough
def test_runs_that_reach_an_end_of_the_range_have_the_digits_of_whole_rows():
    """More points on one side of the top than on the other: many, few or one number of digits; all or none of the points on one side."""

    @jax.jit
    def digits(x, n, ones):
        sample = Sample.promised(x, (jnp.arange(ROWS, dtype=jnp.int32) < ones).astype(jnp.int32), n)
        return ordered.digits_around_top(concept.quality(sample, jnp.int32(BITS), LIMBS))

    near = [(-1, 5, 0), *[(1, 1, exponent) for exponent in (0, 0, 3, 31, 32, 64, 100, 101, 250, 317)]]
    far = [(-1, 1, exponent) for exponent in (317, 316, 315, 270, 100, 99, 1, 0)]
    for rows, centre in ((near, 5), (near, CENTRE), (far, CENTRE), (CASES["full"], CENTRE)):
        points, values = build(rows, centre)
        whole = wide.from_ints(values + [0] * (ROWS - len(values)), 32 * LIMBS)
        for ones in (0, 1, len(rows) // 2, len(rows)):
            mine, theirs = (digits(x, jnp.int32(len(rows)), jnp.int32(ones)) for x in (points, whole))
            assert mine.tolist() == theirs.tolist(), (centre, ones)


def test_starts_that_are_not_used_are_at_the_end_and_not_below_it():
    points, values = build(CASES["ties"])

    @jax.jit
    def at_the_end(points):
        sample = Sample.promised(points, jnp.ones((ROWS,), jnp.int32), jnp.int32(len(values)))
        starts = concept.quality(sample, jnp.int32(BITS), LIMBS).starts
        return [counted(starts, starts.end[None], side)[0] for side in ("left", "right")]

    assert at_the_end(points) == [len(values) + 1, ROWS + 1]


@pytest.mark.thorough
def test_lengths_where_starts_turn_from_points_to_what_follows_them_are_those_of_whole_rows():
    """Depth rises at points and falls right after them: the piece between is longer by one than they are apart."""
    solver = interior_point.exponential(bits=BITS, epsilon=1.0)
    points, values = build([(-1, 9, 0), *[(1, digits, 0) for digits in (1, 5, 9, 20, 30)]])
    whole = wide.from_ints(values + [0] * (ROWS - len(values)), 32 * LIMBS)
    logs = jax.jit(lambda x: solver.pieces(Points(x=x, n_valid=jnp.int32(len(values)), ordered=True)).log_lengths())
    np.testing.assert_allclose(logs(points), logs(whole), rtol=0, atol=4e-5)


@pytest.mark.thorough
def test_what_leading_words_do_not_show_decides():
    """Negative control: the first 32 digits of a distance, without those after them, give a wrong count."""
    points, values = build(CASES["right"])
    sample = Sample.promised(points, jnp.ones((ROWS,), jnp.int32), jnp.int32(len(values)))
    starts = concept.quality(sample, jnp.int32(BITS), LIMBS).starts
    query = wide.from_ints([values[6] + 3], 32 * LIMBS)  # 2 beyond a start, 101 digits from the centre
    assert counted(starts, query, "left").tolist() == [8]

    class Blind(scaled.Starts):
        def _compact(self, number):
            return (*super()._compact(number)[:3], jnp.bool_(False))

    blind = Blind(points=starts.points, used=starts.used, later=starts.later, end=starts.end)
    assert blind.search(query[0]) == 7


@pytest.mark.slow
def test_trials_and_laws_on_scaled_points_are_those_on_whole_rows():
    """For the same keys: the sample row by row, the answers of five learners, and exact failure probabilities."""
    law = concept.log_uniform(bits=BITS)
    learners = (
        thresholds.erm(bits=BITS),
        thresholds.exponential(bits=BITS, epsilon=1.0),
        thresholds.rec_concave(bits=BITS, epsilon=1.0, delta=1e-6, alpha=0.2, depth=2),
        thresholds.binary_search(bits=BITS, epsilon=500.0),
        thresholds.supported(bits=BITS, epsilon=1.0, delta=1e-6, alpha=0.2),
    )

    @jax.jit
    def answers(key):
        few, rows = law.draw_scaled(key, 255, jnp.int32(200)), law.draw(key, 255, jnp.int32(200))
        same = jnp.all(few.x.at(jnp.arange(200))[:, -rows.x.shape[1] :] == rows.x[:200]) & jnp.all(
            few.y[:200] == rows.y[:200]
        )
        return (
            same,
            [[each(jax.random.clone(key), x).hypothesis for x in (few, rows)] for each in learners],
            [[each.probability(x, law.within(0.1))[1] for x in (few, rows)] for each in learners],
        )

    for seed in range(3):
        same, drawn, laws = answers(jax.random.key(seed))
        assert same
        for mine, theirs in drawn:
            assert (mine == theirs).all()
        np.testing.assert_allclose(*np.asarray(laws).T, rtol=3e-4, atol=1e-30)


@pytest.mark.thorough
@pytest.mark.parametrize("slices", [False, True])
def test_quantiles_of_scaled_points_are_those_of_whole_rows(slices):
    """The same answers from the same keys, and the same errors in ranks, by windows that reach beyond the data on both sides, too."""
    given = {"bits": BITS, "fractions": [0.2, 0.7], "m": 3}
    if slices:
        made = quantiles.supported_slices(
            **given, epsilon=9.0, delta=0.1, rank_epsilon=9.0, count_epsilon=1.0, gap_delta=0.5, margin=1, chains=2
        )
    else:
        made = quantiles.supported(**given, epsilon=20.0, delta=0.1)

    @jax.jit
    @jax.vmap
    def run(key, x, n):
        points = Points(x=x, n_valid=n, ordered=True)
        outcome = made(key, points)
        return outcome.hypothesis, outcome.status, quantiles.rank_errors(points, outcome.hypothesis, jnp.int32([2, 5]))

    for rows in CASES.values():
        points, values = build(rows)
        n = jnp.int32(len(values))
        whole = wide.from_ints(values + [0] * (ROWS - len(values)), 32 * LIMBS)
        found = [
            run(
                jax.random.split(jax.random.key(0), 64),
                *jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (64, *leaf.shape)), (x, n)),
            )
            for x in (points, whole)
        ]
        for part, other in zip(*found, strict=True):
            np.testing.assert_array_equal(part, other)
        assert slices or np.any(found[0][1] == Status.OK)


def test_who_gets_scaled_points():
    """Wide distributions with rows that fill a bucket, for learners that take scaled points; others get full rows."""
    wide_law, narrow = concept.log_uniform(bits=BITS), concept.log_uniform(bits=64)
    assert pac.scales(wide_law, 255) and not pac.scales(wide_law, 254) and not pac.scales(narrow, 255)
    taker = thresholds.erm(bits=BITS)
    other = thresholds.length_search(bits=BITS, epsilon=1.0, delta=1e-6, alpha=0.2)
    given = [
        pac.Experiment(learner=each, distribution=wide_law, n=9, alpha=0.1, capacity=15) for each in (taker, other)
    ]
    forms = [type(jax.eval_shape(pac.draw, jax.random.key(0), each)[1].x) for each in given]
    assert forms[0] is scaled.Scaled and forms[1] is not scaled.Scaled


digits_of_one_more = jax.jit(lambda *given: scaled._digits(*scaled._one_more(*given)))


@pytest.mark.parametrize("more", [False, True])
def test_one_more_is_counted_in_lengths_of_up_to_64_digits(more):
    lengths = [
        1,
        2,
        3,
        6,
        7,
        12345,
        *(2**j + d for j in (31, 32, 33, 40, 63) for d in (-2, -1, 0)),
        2**64 - 2,
        2**64 - 1,
    ]
    sizes = [length.bit_length() for length in lengths]
    words = np.array([length << 64 - size for length, size in zip(lengths, sizes, strict=True)], np.uint64)
    high, low = ((words >> np.uint64(shift)).astype(np.uint32) for shift in (32, 0))
    found = np.zeros(len(lengths), bool), high, low, np.array(sizes, np.int32)
    digits = digits_of_one_more(found, np.full(len(lengths), more), np.ones(len(lengths), np.int32))
    assert digits.tolist() == [(length + more).bit_length() for length in lengths]


def test_distances_from_a_pivot_are_those_of_whole_numbers():
    """Of 100 bits, wherever they are known: where at most 16 of 64 digits cancel, or there are no others."""
    rng = random.Random(0)
    pivot = rng.getrandbits(100) | 1 << 99
    numbers = [pivot + sign * (rng.getrandbits(8) << rng.randrange(80)) for sign in (-1, 1) for _ in range(12)]
    numbers += [0, pivot - 1, pivot, pivot + 1, numbers[3] + 1, numbers[5] ^ 1 << 60, pivot ^ (1 << 97) - 1]

    @jax.jit
    def compared(rows, point):
        seen = jax.vmap(lambda row: offsets.of(row, point))(rows)
        one, other = (jnp.repeat if i else jnp.tile for i in (0, 1))
        n = rows.shape[0]
        first, second = (seen[way(jnp.arange(n), n)] for way in (other, one))
        return offsets.less(first, second), offsets.distance(first, second)

    less, found = jax.device_get(compared(wide.from_ints(numbers, 101), wide.from_ints([pivot], 101)[0]))
    pairs = [(a, b) for a in numbers for b in numbers]
    known = found.known
    assert np.array_equal(less[known], np.array([a < b for a, b in pairs])[known])
    logs = np.array([math.log(abs(a - b)) if a != b else -math.inf for a, b in pairs])
    np.testing.assert_allclose(found.log[known], logs[known], rtol=1e-6, atol=1e-6)
    assert known.mean() > 0.9
    for (a, b), is_known in zip(pairs, known, strict=True):
        assert is_known or abs(a - b) < max(abs(a - pivot), abs(b - pivot)) >> (offsets.LOST - 2)
