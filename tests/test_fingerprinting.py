"""Fingerprinting codes: books, traces against NumPy, proofs checked by number, errors counted against the claimed xi."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from dpjax.core import bits, random
from dpjax.fingerprinting import arrangement, boneh_shaw, codes, feasible, pirates, tardos
from dpjax.trials import engine

FALSE_ALARM = 1e-6
CODES = {
    "tardos": tardos(5, xi=0.1, length=3001),
    "tardos symmetric": tardos(5, xi=0.1, score="symmetric", length=3001),
    "boneh-shaw": boneh_shaw(5, xi=0.1),
    "boneh-shaw original": boneh_shaw(5, xi=0.1, variant="original"),
}
every_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)


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


@every_code
def test_traces_are_what_numpy_computes(code):
    book = code.generate(jax.random.key(3))
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


@every_code
def test_a_stream_is_the_book_without_holding_it(code):
    book, stream = code.generate(jax.random.key(4)), code.stream(jax.random.key(4))
    assert (book.rows == stream.rows).all() and (book.bits == stream.bits).all()
    assert (bits.pack(book.bits) == book.rows).all() and book.bits.shape == (code.users, code.length)
    word = pirates.minority(jax.random.key(0), book.bits)
    for a, b in zip(jax.tree.leaves(book.trace(word)), jax.tree.leaves(stream.trace(word)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@every_code
def test_books_and_traces_vmap(code):
    keys = lambda: jax.random.split(jax.random.key(5), 3)  # noqa: E731
    words = jax.random.bernoulli(jax.random.key(6), shape=(3, code.length))
    many = jax.vmap(lambda key, word: code.generate(key).trace(word))(keys(), words)
    for i in range(3):
        np.testing.assert_allclose(
            many.scores[i], code.generate(keys()[i]).trace(words[i]).scores, rtol=1e-5, atol=1e-3
        )


SHAPES = pytest.mark.parametrize(("kinds", "copies"), [(1, 5), (4, 1), (9, 737)])


@SHAPES
def test_an_arrangement_gives_the_smallest_words_the_first_kind(kinds, copies):
    keys = lambda: jax.random.split(jax.random.key(8), 20)  # noqa: E731
    many = jax.jit(jax.vmap(lambda key: arrangement.arrangement(key, kinds, copies)))(keys())
    for key, kind in zip(keys(), np.asarray(many), strict=True):
        words = np.asarray(random.bits(jax.random.split(key)[0], kinds * copies))
        assert kind[np.argsort(words)].tolist() == np.repeat(np.arange(kinds), copies).tolist()


@SHAPES
def test_an_arrangement_is_sorted_where_words_agree(monkeypatch, kinds, copies):
    """With 8 random bits a word, one kind apart from another in some lanes only."""
    draw = random.bits
    monkeypatch.setattr(arrangement.random, "bits", lambda key, count: draw(key, count) >> np.uint32(24))
    keys = lambda: jax.random.split(jax.random.key(9), 20)  # noqa: E731
    many = jax.jit(jax.vmap(lambda key: arrangement.arrangement(key, kinds, copies)))(keys())
    assert (np.sort(many, axis=1) == np.repeat(np.arange(kinds), copies)).all()


@pytest.mark.parametrize("random_bits", [2, 32])
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


def test_tardos_has_the_lengths_and_thresholds_of_the_paper():
    for n, xi in ((4, 0.5), (10, 0.05), (100, 1e-6)):
        code, level = tardos(n, xi=xi), math.ceil(math.log(n / xi))
        assert code.length == 100 * n**2 * level and math.isclose(code.threshold, 20 * n * level)
        assert tardos(n, xi=xi, score="symmetric").length == 30 * n**2 * level


@pytest.mark.parametrize("score", ["asymmetric", "symmetric"])
def test_tardos_is_proved_to_meet_its_security(score):
    for n in (4, 5, 8, 20, 100, 300):
        for xi in (0.9, 0.1, 1e-3, 1e-9):
            code = tardos(n, xi=xi, score=score)
            assert code.soundness() <= xi * (1 + 1e-12) and code.completeness() <= xi / n
    u = np.linspace(-50, 1.79, 100_001)
    assert (np.exp(u) <= 1 + u + u * u).all()
    assert tardos(10, length=100, score=score).completeness() == 1  # nothing is claimed for short codes


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
    assert 0.5 * code.copies < slow[-1] < code.copies
    counts = np.sort(np.random.default_rng(0).integers(0, code.copies + 1, (2000, 7)), axis=1)
    counts = np.concatenate([counts, [slow]]).astype(np.int32)
    counts[:, 0], counts[:, -1] = 0, code.copies
    assert jax.vmap(lambda tally: jnp.any(code.accuse(tally).accused))(jnp.asarray(counts)).all()
    assert code.completeness() == 0
    short = boneh_shaw(6, xi=0.3, copies=slow[-1])  # negative control: as many copies as that growth reaches
    assert short.completeness() == 1 and not short.accuse(jnp.asarray(slow, jnp.int32)).accused.any()


# --------------------------------------------------------------------------------------------------------- pirates


def test_feasible_is_the_marking_assumption():
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(200):
        rows, word = rng.integers(0, 2, (4, 5)).astype(bool), rng.integers(0, 2, 5).astype(bool)
        coalition = rng.integers(0, 2, 4).astype(bool)
        expected = all(any(rows[i, j] == word[j] for i in range(4) if coalition[i]) for j in range(5))
        assert bool(feasible(jnp.asarray(rows), jnp.asarray(word), jnp.asarray(coalition))) == expected
        assert bool(feasible(jnp.asarray(rows[coalition]), jnp.asarray(word))) == expected
        seen.add(expected)
    assert seen == {True, False}


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
    for name, strategy in pirates.STRATEGIES.items():
        word = np.asarray(strategy(jax.random.key(0), jnp.asarray(rows), jnp.asarray(coalition)))
        alone = np.asarray(strategy(jax.random.key(0), jnp.asarray(rows[coalition])))
        assert (word == alone).all() and bool(feasible(jnp.asarray(rows[coalition]), jnp.asarray(word)))
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


def run(key, params):
    """`pirates.trial` with the strategy's number as data: one program for all."""
    code, coalition, number = params
    chosen = lambda *seen: jax.lax.switch(number, list(STRATEGIES.values()), *seen)  # noqa: E731
    return pirates.trial(key, pirates.Experiment(code=code, coalition=coalition, strategy=chosen))


def counted(code, coalition, strategy, trials=TRIALS):
    params = code, jnp.asarray(coalition, bool), list(STRATEGIES).index(strategy)
    return engine.count(run, params, root=engine.root_key(7), cell=0, trials=trials, batch=100)


def exceeds(events, xi, trials=TRIALS):
    """Whether so many errors refute a probability xi, at false-alarm rate 1e-6."""
    return stats.binomtest(events, trials, xi, alternative="greater").pvalue < FALSE_ALARM


@pytest.mark.parametrize("code", CLAIMED.values(), ids=CLAIMED)
def test_errors_stay_within_the_claim(code):
    for strategy in pirates.STRATEGIES:
        for coalition in ([0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]):
            result = counted(code, coalition, strategy)
            assert result["infeasible"] == 0
            assert not exceeds(result["incomplete"], SECURITY) and not exceeds(result["unsound"], SECURITY)
    for strategy in ("ones", "framing") if code.every_word else ():
        result = counted(code, [0, 1, 1, 1], strategy)
        assert result["infeasible"] == TRIALS and not exceeds(result["unsound"], SECURITY)


def test_negative_controls_are_seen():
    framed = counted(CLAIMED["boneh-shaw original"], [0, 1, 1, 1], "ones")
    assert framed["unsound"] == TRIALS  # the original code is sound for feasible words only
    code = tardos(4, xi=SECURITY, length=640)
    assert exceeds(counted(code, [1] * 4, "majority")["incomplete"], SECURITY)  # too short
    eager = dataclasses.replace(code, threshold=code.threshold / 8)
    assert exceeds(counted(eager, [0, 1, 1, 0], "majority")["unsound"], SECURITY)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tardos(3), ValueError, "users must be >= 4"),
        (lambda: tardos(4.0), TypeError, "users must be an int"),
        (lambda: tardos(4, xi=0), ValueError, "xi must be > 0"),
        (lambda: tardos(4, xi=1.0), ValueError, "xi must be < 1"),
        (lambda: tardos(4, score="best"), ValueError, "score must be one of"),
        (lambda: tardos(4, length=0), ValueError, "length must be >= 1"),
        (lambda: tardos(10**5), ValueError, r"fewer than 2\^31 columns"),
        (lambda: boneh_shaw(1), ValueError, "users must be >= 2"),
        (lambda: boneh_shaw(3, xi=float("nan")), ValueError, "xi must be"),
        (lambda: boneh_shaw(3, variant="new"), ValueError, "variant must be one of"),
        (lambda: boneh_shaw(3, copies=0), ValueError, "copies must be >= 1"),
        (lambda: boneh_shaw(1000), ValueError, r"fewer than 2\^31 columns"),
    ],
)
def test_bad_codes_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bad_words_are_refused():
    book = boneh_shaw(2, copies=3).generate(jax.random.key(0))
    for word, error, message in [
        (np.zeros(8), ValueError, r"word must have one bit a column, shape \(9,\)"),
        (np.full(9, 2), ValueError, r"got word\[0\] = 2"),
        (["a"] * 9, TypeError, "word must hold bits"),
    ]:
        with pytest.raises(error, match=message):
            book.trace(word)
