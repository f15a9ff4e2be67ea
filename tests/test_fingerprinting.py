"""Fingerprinting codes: books, traces against NumPy, proofs checked by number, errors counted against the claimed xi."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders import packed, thorough
from scipy import integrate, stats

from dpjax.core import random
from dpjax.fingerprinting import arrangement, boneh_shaw, codes, feasible, pirates, tardos
from dpjax.trials import engine

pytestmark = pytest.mark.usefixtures("no_key_twice")

FALSE_ALARM = 1e-6
CODES = {
    "tardos": tardos(5, xi=0.1, length=3001),
    "tardos symmetric": tardos(5, xi=0.1, score="symmetric", length=3001),
    "boneh-shaw": boneh_shaw(5, xi=0.1),
    "boneh-shaw original": boneh_shaw(5, xi=0.1, variant="original"),
}
VARIANTS = ("tardos symmetric", "boneh-shaw original")  # much like the codes themselves: with -m slow


def over(codes):
    """One test per code."""
    marks = {name: [pytest.mark.slow] if name in VARIANTS else [] for name in codes}
    return pytest.mark.parametrize("code", [pytest.param(codes[n], id=n, marks=marks[n]) for n in codes])


every_code = over(CODES)


@functools.cache
def book_of(code):
    return code.generate(jax.random.key(4))


# ------------------------------------------------------------------------------------------------- naive references


def tardos_reference(code, book, word):
    """Scores and threshold as in the paper, float64."""
    w, held, p = np.asarray(word), np.asarray(book.bits), np.asarray(book.probabilities, np.float64)
    u = np.where(held, np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p)))
    n, level = code.users, float(code.log_term)
    sign = w.astype(float) if code.score == "asymmetric" else 2.0 * w - 1
    alphas = np.linspace(1e-6, 1.79 / math.sqrt(300 * n), 200_001)
    return u @ sign, np.full(n, np.min(alphas * code.length + level / alphas))


def boneh_shaw_reference(code, book, word):
    """Counts of ones by column type, the tests user by user."""
    held, n = np.asarray(book.bits), code.users
    types = held.sum(axis=0)
    ones = [int(np.asarray(word)[types == s].sum()) for s in range(n + 1)]
    scores, thresholds = [], []
    for s in range(1, n + 1):
        r = ones[s - 1] + ones[s]
        score, threshold = ones[s] - r / 2, math.sqrt(r / 2 * float(code.log_term))
        if code.variant == "original" and s == 1:
            score, threshold = ones[1], 0
        if code.variant == "original" and s == n:
            score, threshold = code.copies - ones[n - 1], 0
        scores.append(score)
        thresholds.append(threshold)
    return np.array(scores), np.array(thresholds)


def reference(code, book, word):
    return (tardos_reference if "Tardos" in type(code).__name__ else boneh_shaw_reference)(code, book, word)


# ----------------------------------------------------------------------------------------------------------- books


@pytest.mark.thorough
@every_code
def test_traces_are_what_numpy_computes(code):
    book = book_of(code)
    rng = np.random.default_rng(0)
    rows = np.asarray(book.bits)
    words = [rng.integers(0, 2, code.length), rows[2], np.zeros(code.length), rows.any(axis=0), rows[1] | rows[3]]
    for word in words:
        verdict = code.trace(book, word)
        scores, thresholds = reference(code, book, word)
        np.testing.assert_allclose(verdict.scores, scores, rtol=2e-6, atol=1e-3)
        np.testing.assert_allclose(verdict.thresholds, thresholds, rtol=2e-6)
        assert verdict.accused.tolist() == (scores > thresholds).tolist()
        best = np.argmax(np.where(scores > thresholds, scores - thresholds, -np.inf))
        assert int(verdict.user) == (best if (scores > thresholds).any() else -1)


@pytest.mark.thorough
@pytest.mark.parametrize("generator", ["rbg", "unsafe_rbg"])
def test_a_stream_traces_the_columns_that_it_shows_whatever_the_generator(generator):
    stream = tardos(4, length=40_000).stream(jax.random.key(0, impl=generator))
    assert stream.trace(stream.bits[1]).accused.tolist() == [False, True, False, False]


@pytest.mark.thorough
@every_code
def test_a_stream_is_the_book_without_holding_it(code):
    book, stream = book_of(code), code.stream(jax.random.key(4))
    rows, held = np.asarray(book.rows), np.asarray(book.bits)
    assert (rows == np.asarray(stream.rows)).all() and (held == np.asarray(stream.bits)).all()
    assert (packed(held) == rows).all() and held.shape == (code.users, code.length)
    word = held.sum(axis=0) == 1
    for a, b in zip(jax.tree.leaves(book.trace(word)), jax.tree.leaves(stream.trace(word)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.thorough
@every_code
def test_books_and_traces_vmap(code):
    keys = lambda: jax.random.split(jax.random.key(5), 3)  # noqa: E731
    words = np.random.default_rng(6).random((3, code.length)) < 0.5
    many = jax.jit(jax.vmap(lambda key, word: code.generate(key).trace(word).scores))(keys(), words)
    for key, word, scores in zip(keys(), words, np.asarray(many), strict=True):
        np.testing.assert_allclose(scores, code.generate(key).trace(word).scores, rtol=1e-5, atol=1e-3)


SHAPES = pytest.mark.parametrize(("kinds", "copies"), [(1, 5), (4, 1), (9, 737)])


@pytest.mark.thorough
@SHAPES
def test_an_arrangement_gives_the_smallest_words_the_first_kind(kinds, copies):
    keys = lambda: jax.random.split(jax.random.key(8), 20)  # noqa: E731
    many = jax.jit(jax.vmap(lambda key: arrangement.arrangement(key, kinds, copies)))(keys())
    drawn = jax.jit(jax.vmap(lambda key: random.bits(jax.random.split(key)[0], kinds * copies)))(keys())
    for words, kind in zip(np.asarray(drawn), np.asarray(many), strict=True):
        assert kind[np.argsort(words)].tolist() == np.repeat(np.arange(kinds), copies).tolist()


@pytest.mark.thorough
@SHAPES
def test_an_arrangement_is_sorted_where_words_agree(monkeypatch, kinds, copies):
    """With 8 random bits a word, one kind apart from another in some lanes only."""
    draw = random.bits
    monkeypatch.setattr(arrangement.random, "bits", lambda key, count: draw(key, count) >> np.uint32(24))
    keys = lambda: jax.random.split(jax.random.key(9), 20)  # noqa: E731
    many = jax.jit(jax.vmap(lambda key: arrangement.arrangement(key, kinds, copies)))(keys())
    assert (np.sort(np.asarray(many), axis=1) == np.repeat(np.arange(kinds), copies)).all()


@pytest.mark.parametrize("random_bits", [2, thorough(32)])
def test_all_orders_are_equally_likely(monkeypatch, random_bits):
    """6 of them; with 2 bits a word nearly always by sorting."""
    draw = random.bits
    coarse = lambda key, count: draw(key, count) << np.uint32(32 - random_bits)  # noqa: E731
    first = iter([coarse])  # the words; what sorts is drawn in full
    monkeypatch.setattr(arrangement.random, "bits", lambda *given: next(first, draw)(*given))
    keys = jax.random.split(jax.random.key(1), 12_000)
    orders = jax.jit(jax.vmap(lambda key: arrangement.arrangement(key, 2, 2)))(keys)
    counts = np.unique(np.asarray(orders), axis=0, return_counts=True)[1]
    assert len(counts) == 6 and stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_boneh_shaw_holds_every_type_equally_often_in_uniform_order():
    for code in (boneh_shaw(3, xi=0.5), boneh_shaw(3, xi=0.5, variant="original")):
        held = np.asarray(code.generate(jax.random.key(0)).bits)
        assert (np.diff(held.astype(int), axis=0) <= 0).all()
        assert np.bincount(held.sum(axis=0), minlength=4).tolist() == [
            code.copies if s in code.types else 0 for s in range(4)
        ]
    code = boneh_shaw(3, copies=1)  # four columns, 24 orders
    keys = jax.random.split(jax.random.key(1), 12_000)
    types = np.asarray(jax.jit(jax.vmap(lambda key: code.secret(key)[0, :4]))(keys))
    assert stats.chisquare(np.unique(types, axis=0, return_counts=True)[1]).pvalue > FALSE_ALARM
    assert len(np.unique(types, axis=0)) == 24


def test_tardos_draws_the_arcsine_law_and_bits_of_that_bias():
    code = tardos(40, length=20 * codes.BLOCK)
    book = code.generate(jax.random.key(2))
    p = np.asarray(book.probabilities, np.float64)
    t = 1 / 12_000
    assert p.min() >= t and p.max() <= 1 - t + 1e-7
    lowest = math.asin(math.sqrt(t))
    angle = np.arcsin(np.sqrt(p))
    assert stats.kstest((angle - lowest) / (math.pi / 2 - 2 * lowest), "uniform").pvalue > FALSE_ALARM
    scores = (np.asarray(book.bits) - p) / np.sqrt(p * (1 - p))  # mean 0, variance 1 whatever the bias
    assert abs(scores.mean() * math.sqrt(scores.size)) < stats.norm.isf(FALSE_ALARM)
    rare = scores[:, (p < 0.01) | (p > 0.99)]
    assert abs(rare.mean() * math.sqrt(rare.size)) < stats.norm.isf(FALSE_ALARM)
    assert abs(np.asarray(book.bits)[:, p > 0.5].mean() - p[p > 0.5].mean()) < 0.01


# ---------------------------------------------------------------------------------------------------------- proofs


def test_no_bias_of_tardos_is_below_the_cutoff(monkeypatch):
    """Not by a rounding, either, where the angle is the least: |U| < 1/sqrt(t) is what soundness rests on."""
    monkeypatch.setattr("dpjax.core.random.bits", lambda key, count: jnp.zeros(count, jnp.uint32))
    for users in (4, 301):
        code = tardos(users, length=40)
        rare = jax.jit(lambda key, code=code: code.columns(key, jnp.int32(0)).hidden.rare)(jax.random.key(0))
        assert int(np.min(rare)) == -(-(2**32) // (300 * users))


def test_tardos_has_the_lengths_and_thresholds_of_the_paper():
    for n, xi in ((4, 0.5), (10, 0.05), (100, 1e-6)):
        code, level = tardos(n, xi=xi), math.ceil(math.log(n / xi))
        assert code.length == 100 * n**2 * level and math.isclose(code.threshold, 20 * n * level)
        assert tardos(n, xi=xi, score="symmetric").length == 30 * n**2 * level


@pytest.mark.parametrize("score", ["asymmetric", "symmetric"])
def test_tardos_is_proved_to_meet_its_security(score):
    for n in (3, 4, 5, 8, 20, 100, 300):
        for xi in (0.9, 0.1, 1e-3, 1e-9, 1e-40, *np.exp(-np.linspace(0.01, 9, 40))):
            code = tardos(n, xi=xi, score=score)
            assert code.soundness() <= xi * (1 + 1e-12) and code.completeness() <= xi / n
    u = np.linspace(-50, 1.79, 100_001)
    assert (np.exp(u) <= 1 + u + u * u).all()
    assert tardos(10, length=100, score=score).completeness() == 1  # nothing is claimed for short codes


def test_codes_state_the_chance_that_their_proofs_leave():
    """An innocent user is accused with probability e^-l: l = ceil(ln(n/xi)) of Tardos, ln(2n/xi) of Boneh and Shaw."""
    stated = [(code.innocent(), code.soundness()) for code in (CODES["tardos"], CODES["boneh-shaw"])]
    np.testing.assert_allclose(stated, [(math.exp(-4), 5 * math.exp(-4)), (0.01, 0.05)], rtol=1e-12)


def test_the_traced_user_is_farthest_above_a_threshold_of_his_own():
    verdict = codes.Accusation(
        accused=np.array([True, True, False]),
        scores=np.float32([5.0, 4.0, 9.0]),
        thresholds=np.float32([4.9, 1.0, 10.0]),
    )
    assert int(verdict.user) == 1


@pytest.mark.parametrize("members", [1, 2, 3, 4])
def test_the_mean_score_of_a_coalition_is_what_the_completeness_proof_says(members):
    """min over the pirates' choices of E[s U_T], by quadrature over the bias, for n = 4."""
    t = 1 / 1200
    low = math.asin(math.sqrt(t))

    def part(x):
        """E[U_T; x ones]."""

        def density(r):
            p = math.sin(r) ** 2
            u = x / math.tan(r) - (members - x) * math.tan(r)
            return math.comb(members, x) * p**x * (1 - p) ** (members - x) * u / (math.pi / 2 - 2 * low)

        return integrate.quad(density, low, math.pi / 2 - low, epsabs=1e-12)[0]

    parts = [part(x) for x in range(members + 1)]
    least = parts[-1] + sum(min(0.0, v) for v in parts[1:-1])
    least_symmetric = parts[-1] - parts[0] - sum(abs(v) for v in parts[1:-1])
    mean = (1 - 8 * t) / math.pi
    assert least >= mean and least_symmetric >= 2 * mean
    assert least < 1.05 * mean and least_symmetric < 2.1 * mean  # and not much more


def test_boneh_shaw_innocents_by_the_exact_hypergeometric_law():
    for n, xi in ((2, 0.5), (3, 0.1)):
        code = boneh_shaw(n, xi=xi)
        worst, looser = 0.0, 0.0
        for r in range(1, 2 * code.copies + 1):
            law = stats.hypergeom(2 * code.copies, code.copies, r)
            threshold = math.sqrt(float(code.log_term) * r / 2)
            worst = max(worst, law.sf(math.floor(r / 2 + threshold)))
            looser = max(looser, law.sf(math.floor(r / 2 + threshold / 2)))
        assert worst <= code.innocent() == pytest.approx(xi / (2 * n))
        assert looser > code.innocent()  # half the threshold would not do
        assert code.soundness() <= xi


@pytest.mark.parametrize("variant", ["padded", "original"])
def test_boneh_shaw_accuses_somebody_whatever_a_feasible_word_counts(variant):
    """Random counts, and the fastest growth of W_s that accuses nobody: it stays below B, so B copies are enough."""
    code = boneh_shaw(6, xi=0.3, variant=variant)
    slow = [0]
    for _ in range(6):
        grows = lambda w: w - slow[-1] <= math.sqrt(2 * float(code.log_term) * (w + slow[-1]))  # noqa: E731
        slow.append(max(w for w in range(slow[-1], 2 * code.copies) if grows(w)))
    assert slow[-1] <= 6 * 7 * float(code.log_term) < slow[-1] + 7 and slow[-1] < code.copies
    counts = np.sort(np.random.default_rng(0).integers(0, code.copies + 1, (2000, 7)), axis=1)
    counts = np.concatenate([counts, [slow]]).astype(np.int32)
    counts[:, 0], counts[:, -1] = 0, code.copies
    accused = jax.jit(jax.vmap(lambda tally: code.accuse(tally).accused))
    assert np.asarray(accused(counts)).any(axis=1).all()
    assert code.completeness() == 0
    enough = boneh_shaw(6, xi=0.3, variant=variant, copies=math.floor(6 * 7 * float(code.log_term)) + 1)
    assert enough.completeness() == 0
    short = boneh_shaw(6, xi=0.3, copies=slow[-1])  # negative control: as many copies as that growth reaches
    accused_by_few = jax.jit(lambda tally: short.accuse(tally).accused)(np.array(slow, np.int32))
    assert short.completeness() == 1 and not np.asarray(accused_by_few).any()


def test_boneh_shaw_counts_no_column_beyond_its_length():
    """Three types of a hundred columns in a block of 1024, and a word of ones only."""
    code = boneh_shaw(2, xi=0.5, copies=100)

    @jax.jit
    def counted(key):
        return code.part(code.columns(code.secret(key), jnp.int32(0)), jnp.ones(codes.BLOCK, bool))

    assert counted(jax.random.key(0)).tolist() == [100, 100, 100]


def test_the_original_code_accuses_the_ends_for_a_word_that_only_they_explain():
    """User 1 where a one stands for type 1, user n where a zero stands for type n - 1: never in words of the others."""
    code = boneh_shaw(3, xi=0.1, variant="original", copies=10)
    accused = jax.jit(lambda tally: code.accuse(tally).accused)
    for first, second, ends in ((0, 10, [False, False]), (1, 10, [True, False]), (0, 9, [False, True])):
        assert np.asarray(accused(np.array([0, first, second, 0], np.int32)))[[0, 2]].tolist() == ends


# --------------------------------------------------------------------------------------------------------- pirates


def test_each_verdict_of_a_batch_names_its_own_user():
    scores = np.float32([[2.0, 5.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.5, 4.0]])
    batch = codes.Accusation(accused=scores > 1.0, scores=scores, thresholds=np.ones((3, 3), np.float32))
    assert batch.user.tolist() == [1, -1, 2]


def test_feasible_is_the_marking_assumption():
    rng = np.random.default_rng(1)
    seen, keeps = set(), jax.jit(feasible)
    for _ in range(200):
        rows, word = rng.integers(0, 2, (4, 5)).astype(bool), rng.integers(0, 2, 5).astype(bool)
        coalition = rng.integers(0, 2, 4).astype(bool)
        expected = all(any(rows[i, j] == word[j] for i in range(4) if coalition[i]) for j in range(5))
        assert bool(keeps(rows, word, coalition)) == expected
        assert bool(keeps(rows[coalition], word)) == expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("rows", "word", "coalition", "error", "match"),
    [
        ([[True]], np.ones(1, bool), None, TypeError, "rows must be an array of booleans of 2 axes"),
        (np.ones((2, 3)), np.ones(3, bool), None, TypeError, "rows must be an array of booleans"),
        (np.ones((2, 3), bool), np.ones((3, 1), bool), None, TypeError, "word must be an array of booleans of 1 axes"),
        (
            np.ones((2, 3), bool),
            np.ones(4, bool),
            None,
            ValueError,
            "word must have a bit for each of 3 columns, got 4",
        ),
        (np.ones((2, 3), bool), np.ones(3, bool), [True, False], TypeError, "coalition must be an array of booleans"),
        (np.ones((2, 3), bool), np.ones(3, bool), np.ones(3, bool), ValueError, "coalition must have a flag for each"),
    ],
)
def test_feasible_refuses_by_name(rows, word, coalition, error, match):
    with pytest.raises(error, match=match):
        feasible(rows, word, coalition)


def test_strategies_do_what_they_are_called():
    rows = np.random.default_rng(2).integers(0, 2, (6, 4000)).astype(bool)
    rows[:, 0], rows[:, 1] = True, False
    coalition = np.array([1, 0, 1, 1, 1, 0], bool)
    ones = rows[coalition].sum(axis=0)
    expected = {
        "majority": 2 * ones >= 4,
        "minority": (ones > 0) & ((2 * ones < 4) | (ones == 4)),
        "all_ones": ones > 0,
        "all_zeros": ones == 4,
    }
    rates = {"random": [0, 0.5, 0.5, 0.5, 1], "interleaving": [0, 0.25, 0.5, 0.75, 1]}
    assert set(expected) | set(rates) == set(pirates.STRATEGIES)

    @jax.jit
    def words(*seen):
        return {name: strategy(jax.random.key(0), *seen) for name, strategy in pirates.STRATEGIES.items()}

    together, alone, keeps = words(rows, coalition), words(rows[coalition]), jax.jit(feasible)
    assert not any(word.any() for word in words(rows, np.zeros(6, bool)).values())  # nobody writes nothing
    for name, word in jax.device_get(together).items():
        assert (word == np.asarray(alone[name])).all() and bool(keeps(rows[coalition], word))
        if name in expected:
            assert (word == expected[name]).all()
        else:
            for x, rate in enumerate(rates[name]):
                part = word[ones == x]
                assert stats.binomtest(int(part.sum()), len(part), rate).pvalue > FALSE_ALARM


TRIALS = 400
SECURITY = 0.2
CLAIMED = {
    "tardos": tardos(4, xi=SECURITY),
    "tardos symmetric": tardos(4, xi=SECURITY, score="symmetric"),
    "boneh-shaw": boneh_shaw(4, xi=SECURITY),
    "boneh-shaw original": boneh_shaw(4, xi=SECURITY, variant="original"),
}


def ones(key, rows, coalition):
    """Not feasible: a one everywhere."""
    return jnp.ones(rows.shape[1], bool)


def framing(key, rows, coalition):
    """Not feasible: the complement of what the first user holds."""
    return ~rows[0]


STRATEGIES = {**pirates.STRATEGIES, "ones": ones, "framing": framing}


COALITIONS = np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0], [0, 1, 1, 1]], bool)


def run(key, code):
    """`pirates.trial` of every coalition and strategy, on one book."""

    def one(coalition, number):
        def chosen(key, *seen):
            words = [strategy(jax.random.fold_in(key, i), *seen) for i, strategy in enumerate(STRATEGIES.values())]
            return jnp.stack(words)[number]

        return pirates.trial(key, pirates.Experiment(code=code, coalition=coalition, strategy=chosen))

    strategies = jax.vmap(one, in_axes=(None, 0))
    return jax.vmap(strategies, in_axes=(0, None))(COALITIONS, np.arange(len(STRATEGIES)))


@functools.cache
def counted(code):
    """(event, coalition, strategy) -> how many of the trials."""
    counts = engine.count(run, code, root=engine.root_key(7), cell=0, trials=TRIALS, batch=50)
    places = list(map(tuple, COALITIONS.astype(int))), list(STRATEGIES)
    return lambda event, coalition, strategy: int(
        counts[event][places[0].index(tuple(coalition)), places[1].index(strategy)]
    )


def exceeds(events, xi, trials=TRIALS):
    """Whether this number of errors refutes a probability xi, at false-alarm rate 1e-6."""
    return stats.binomtest(events, trials, xi, alternative="greater").pvalue < FALSE_ALARM


@pytest.mark.thorough
@pytest.mark.parametrize(
    "code", [pytest.param(c, id=n, marks=[] if n == "boneh-shaw" else pytest.mark.slow) for n, c in CLAIMED.items()]
)
def test_errors_stay_within_the_claim(code):
    count = counted(code)
    for strategy in pirates.STRATEGIES:
        for coalition in ([0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]):
            given = coalition, strategy
            assert count("infeasible", *given) == 0
            assert not exceeds(count("incomplete", *given), SECURITY) and not exceeds(
                count("unsound", *given), SECURITY
            )
    for strategy in ("ones", "framing") if code.every_word else ():
        given = [0, 1, 1, 1], strategy
        assert count("infeasible", *given) == TRIALS and not exceeds(count("unsound", *given), SECURITY)


@pytest.mark.thorough
def test_negative_controls_are_seen():
    framed = counted(CLAIMED["boneh-shaw original"])("unsound", [0, 1, 1, 1], "ones")
    assert framed == TRIALS  # the original code is sound for feasible words only
    code = tardos(4, xi=SECURITY, length=640)
    assert exceeds(counted(code)("incomplete", [1] * 4, "majority"), SECURITY)  # too short
    eager = dataclasses.replace(code, threshold=code.threshold / 8)
    assert exceeds(counted(eager)("unsound", [0, 1, 1, 0], "majority"), SECURITY)


def turned(key, rows, coalition):
    """The first user's bits, all or none of them turned over."""
    return rows[0] ^ jax.random.bernoulli(key)


@pytest.mark.thorough
def test_pirates_have_coins_of_their_own_for_every_block():
    """Six blocks of one pirate's bits are left as they are with probability 1/64."""
    alone = jnp.array([True, False, False, False])
    experiment = pirates.Experiment(code=tardos(4, length=6 * codes.BLOCK), coalition=alone, strategy=turned)
    counts = engine.count(pirates.trial, experiment, root=engine.root_key(0), cell=0, trials=200)
    assert stats.binomtest(counts["infeasible"], 200, 63 / 64).pvalue > 2e-5
    assert counts["incomplete"] + counts["infeasible"] <= 200  # codes owe nothing to a word that is not feasible


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tardos(2), ValueError, "users must be >= 3"),
        (lambda: tardos(4.0), TypeError, "users must be an int"),
        (lambda: tardos(4, xi=0), ValueError, "xi must be > 0"),
        (lambda: tardos(4, xi=1.0), ValueError, "xi must be < 1"),
        (lambda: tardos(100, xi=1e-308, length=10), ValueError, "xi must be >="),
        (lambda: boneh_shaw(100, xi=1e-323, copies=3), ValueError, "xi must be >="),
        (lambda: tardos(4, score="best"), ValueError, "score must be one of"),
        (lambda: tardos(4, length=0), ValueError, "length must be >= 1"),
        (lambda: tardos(10**5), ValueError, r"users and xi must give at most 2147482624 columns"),
        (lambda: boneh_shaw(1), ValueError, "users must be >= 2"),
        (lambda: boneh_shaw(3, xi=float("nan")), ValueError, "xi must be"),
        (lambda: boneh_shaw(3, variant="new"), ValueError, "variant must be one of"),
        (lambda: boneh_shaw(3, copies=0), ValueError, "copies must be >= 1"),
        (lambda: boneh_shaw(1000), ValueError, r"at most 2147482624 columns"),
        # As whole blocks there would be 2^31 of them, which int32 does not count.
        (lambda: boneh_shaw(2, copies=(2**31 - 1) // 3), ValueError, r"copies must give at most 2147482624 columns"),
        (lambda: tardos(4, length=2**31 - 1), ValueError, r"length must give at most 2147482624 columns"),
        (lambda: boneh_shaw(3).generate(0), TypeError, "key must be a single PRNG key"),
        (lambda: tardos(4).generate("a"), TypeError, "key must be a single PRNG key"),
        (lambda: tardos(4, length=40).stream(0), TypeError, "key must be a single PRNG key"),
        (lambda: pirates.coin(0, np.ones((2, 3), bool)), TypeError, "key must be a single PRNG key"),
    ],
)
def test_bad_codes_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bad_words_are_refused():
    code = CODES["boneh-shaw"]
    for word, error, message in [
        (np.zeros(8), ValueError, rf"word must have one bit a column, shape \({code.length},\)"),
        (np.full(code.length, 2), ValueError, r"got word\[0\] = 2"),
        (["a"] * code.length, TypeError, "word must hold bits"),
    ]:
        with pytest.raises(error, match=message):
            book_of(code).trace(word)


def test_the_book_of_another_code_is_refused():
    """Which would be judged by its own thresholds."""
    code, word = tardos(4, xi=0.1, length=640), np.zeros(640)
    book = code.generate(jax.random.key(0))
    assert code.trace(book, word).scores.shape == jax.jit(code.trace)(book, word).scores.shape == (4,)
    others = [tardos(4, xi=0.01, length=640), tardos(4, xi=0.1, length=640, score="symmetric"), CODES["boneh-shaw"]]
    for other in [*others, tardos(5, xi=0.1, length=640)]:
        with pytest.raises(ValueError, match=r"book must be one of .*, got one of Tardos"):
            other.trace(book, word)
    with pytest.raises(TypeError, match="book must be a Book, got None"):
        code.trace(None, word)


@pytest.mark.thorough
def test_a_book_that_does_not_fill_its_last_group_of_blocks_counts_every_column_once():
    """Nine blocks where eight are traced together; the word 0, of which padding would be more."""
    code = tardos(4, xi=0.1, score="symmetric", length=8 * codes.BLOCK + 1)
    book, word = book_of(code), np.zeros(code.length)
    np.testing.assert_allclose(code.trace(book, word).scores, reference(code, book, word)[0], rtol=2e-6, atol=1e-3)
    last = jax.jit(lambda book: book.columns(jnp.int32(8)).bits)(book)
    assert not np.asarray(last)[:, 1:].any()


def test_sums_lose_nothing_beside_what_they_have():
    """2^24 + 1 is no float."""

    @jax.jit
    def total(start):
        return codes.fold(1000, lambda so_far, _: so_far.plus(jnp.ones(2)), codes.Sum.of(start)).total

    assert total(np.float32([2.0**24, 0.0])).tolist() == [2.0**24 + 1000, 1000.0]


@pytest.mark.parametrize("length", [100, 6000, 60_000])
def test_thresholds_are_least_among_the_slopes_that_the_proof_allows(length):
    """Z = min over a of a k + l/a, a up to 1.79 sqrt(t), t = 1/(300 n): beyond it e^u <= 1 + u + u^2 is not known to hold."""
    code = tardos(10, xi=0.05, length=length)
    slopes = np.linspace(1e-4, 1.79 / math.sqrt(300 * 10), 100_001)
    log_term = math.ceil(math.log(10 / 0.05))
    assert float(code.threshold) == pytest.approx(np.min(slopes * length + log_term / slopes), rel=1e-6)


@pytest.mark.parametrize("length", [25_000, 60_000])
def test_completeness_is_the_least_over_the_exponents_that_the_proof_allows(length):
    """min over b of exp(b n Z - k (b mu - b^2 n)), b up to 1.79 sqrt(t)/n, for t = 1/(300 n) and mu = (1 - 2 n t)/pi."""
    n, t = 10, 1 / 3000
    code = tardos(n, xi=0.05, length=length)
    b = np.linspace(0.0, 1.79 * math.sqrt(t) / n, 100_001)
    exponents = b * n * float(code.threshold) - length * (b * (1 - 2 * n * t) / math.pi - b**2 * n)
    assert code.completeness() == pytest.approx(math.exp(exponents.min()), rel=1e-6)
