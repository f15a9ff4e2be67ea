"""The attack: databases and words of every form, learners that must and must not be traced, bounds on epsilon that hold."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Outcome, Status, bounds
from dpjax.core import bits
from dpjax.core.pytree import frozen
from dpjax.domains import wide
from dpjax.fingerprinting import against, attack, audit, boneh_shaw, forms, implied_epsilon, necessary, tardos, trial
from dpjax.fingerprinting.attack import run
from dpjax.learners import thresholds as one_threshold
from dpjax.multi import direct_sum, generic, parities, points
from dpjax.sanitizers import points as point_sanitizer
from dpjax.trials import engine

LEVEL = 1 - 2e-5  # false-alarm rate of a bound

# ---------------------------------------------------------------------------------- learners of constant hypotheses


def says(hypothesis, x):
    """Hypotheses that give every point the same label."""
    return jnp.broadcast_to(hypothesis, (x.shape[0], hypothesis.shape[0]))


@jax.jit
def ones_of(sample):
    return jnp.sum((sample.labels & sample.valid[:, None]).astype(jnp.int32), axis=0, dtype=jnp.int32)


@jax.jit
def most(key, sample):
    """Exact majority: no privacy."""
    return 2 * ones_of(sample) >= sample.n_valid


def blind(key, sample):
    """Looks at nothing."""
    return jnp.arange(sample.k) % 2 == 0


def silent(key, sample):
    """Bottom, always."""
    return Outcome(hypothesis=jnp.ones(sample.k, bool), status=jnp.int32(Status.BOTTOM), info=None)


def copies_a_row(key, sample):
    """Publishes a random row: (0, 1/n)-private, and not private at any epsilon with a smaller delta."""
    return sample.labels[jax.random.randint(key, (), 0, sample.n_valid)]


def zeros(key, sample):
    """The same for everybody."""
    return jnp.zeros(sample.k, bool)


TOYS = {"most": most, "blind": blind, "copies a row": copies_a_row, "zeros": zeros}


@frozen
class Toy:
    """One of these learners, as data: one program for all."""

    number: int

    def __call__(self, key, sample):
        return jax.lax.switch(jnp.asarray(self.number), list(TOYS.values()), key, sample)

    def predict(self, hypothesis, x):
        return says(hypothesis, x)


def toy(name):
    return Toy(number=list(TOYS).index(name))


@frozen
class Exponential:
    """Label 1 for column j with odds exp(epsilon_each (ones - zeros) / 2): k * epsilon_each in total, exactly (REPLACE_ONE)."""

    epsilon: float

    def __call__(self, key, sample):
        each = self.epsilon / sample.k
        log_odds = each * (2 * ones_of(sample) - sample.n_valid).astype(float) / 2
        return jax.random.uniform(key, (sample.k,)) < jax.nn.sigmoid(log_odds)

    def predict(self, hypothesis, x):
        return says(hypothesis, x)


# -------------------------------------------------------------------------------------------- learners of real classes


def least_threshold(key, sample):
    """Exact and proper for realizable samples: one above the last point labelled 1."""
    above = jnp.where(sample.labels & sample.valid[:, None], sample.x[:, :1].astype(jnp.int32) + 1, 0)
    return jnp.max(above, axis=0)


def below(hypothesis, x):
    return x[:, :1].astype(jnp.int32) < hypothesis[None, :]


def best_parity(key, sample):
    """Exact and agnostic for parities of few bits: all concepts tried."""
    table = parity_table(sample.rows)
    wrong = jnp.sum((table[:, :, None] ^ sample.labels[None]).astype(jnp.int32), axis=1)
    return jnp.argmin(wrong, axis=0)


def parity_table(n):
    return jnp.asarray([[(a & x).bit_count() % 2 == 1 for x in range(n)] for a in range(n)])


def parity(hypothesis, x):
    return parity_table(x.shape[0])[hypothesis].T


CASES = {
    "thresholds": (boneh_shaw(5, xi=0.1), forms.thresholds(5), least_threshold, below),
    "thresholds padded": (boneh_shaw(5, xi=0.1), forms.thresholds(5, alpha=0.05), least_threshold, below),
    "agnostic boneh-shaw": (boneh_shaw(5, xi=0.1), forms.agnostic(5), most, says),
    "agnostic tardos": (tardos(5, xi=0.1, score="symmetric"), forms.agnostic(5, bits=64, point=7, junk=0), most, says),
    "parities": (tardos(8, xi=0.1, score="symmetric"), forms.parities(8), best_parity, parity),
}
LONG = ("thresholds padded", "agnostic boneh-shaw", "parities")  # the other ones state as much of their code and form
every_case = pytest.mark.parametrize(
    ("code", "form", "learner", "predict"),
    [builders.thorough(*case) if name in LONG else case for name, case in CASES.items()],
    ids=CASES,
)


# ------------------------------------------------------------------------------------------------------------- forms


def test_databases_hold_the_code_a_nonce_row_and_junk():
    code = boneh_shaw(5, xi=0.1)
    book = code.generate(jax.random.key(0))
    form, there = forms.thresholds(5, bits=40, alpha=0.1), np.array([True, False, True, True, False])
    sample = form.database(book.rows, there, code.length)
    assert sample.rows == 29 and sample.k == code.length and sample.x.shape[1] == 2
    x = np.asarray(sample.x)
    assert x[:, 1].tolist() == [0, 1, 2, 3, 4] + [5] * 24 and not x[:, 0].any()
    expected = np.zeros((29, code.length), bool)
    expected[:5] = np.asarray(book.bits) & there[:, None]
    labels_of = jax.jit(lambda sample: sample.labels)
    assert (np.asarray(labels_of(sample)) == expected).all()
    whole = np.asarray(labels_of(form.database(book.rows, np.ones(5, bool), code.length)))
    types = whole.sum(axis=0)  # column of type s: the labels of the threshold s
    assert ((x[:, 1:] < types) == whole).all()


CLASSES = {
    "thresholds": (forms.thresholds(8), [[x < s for x in range(8)] for s in range(9)]),
    "agnostic": (forms.agnostic(8), [[False] * 8, [True] * 8]),
    "parities": (forms.parities(8), np.asarray(parity_table(8)).tolist()),
}


@pytest.mark.parametrize(("form", "concepts"), CLASSES.values(), ids=CLASSES)
def test_excess_error_is_against_the_best_concept(form, concepts):
    rng = np.random.default_rng(0)
    labels, answers = (rng.integers(0, 2, (form.rows, 50)).astype(bool) for _ in range(2))
    best = (np.asarray(concepts)[:, :, None] != labels[None]).mean(axis=1).min(axis=0)
    expected = (answers != labels).mean(axis=0) - best
    np.testing.assert_allclose(jax.jit(form.excess)(answers, labels), expected, atol=1e-6)


def test_excess_error_is_a_share_of_all_rows():
    """On junk rows all are right."""
    form = forms.agnostic(4, alpha=0.1)
    labels = np.arange(form.rows)[:, None] < 4
    excess = jax.jit(form.excess)(np.zeros_like(labels), labels)
    assert form.rows == 39 and excess.tolist() == pytest.approx([4 / 39])


ROUNDED = {
    "thresholds": forms.thresholds(8),
    "thresholds odd": forms.thresholds(5),
    "thresholds padded": forms.thresholds(8, alpha=0.07),
    "thresholds among rows": forms.thresholds(7, rows=1000),
    "agnostic": forms.agnostic(3),
    "agnostic padded": forms.agnostic(7, alpha=0.1),
    "agnostic paper": forms.agnostic(7, rows=7, alpha=1 / 3),
    "parities": forms.parities(8),
    "parities padded": forms.parities(8, alpha=0.03),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_accurate_hypotheses_give_a_feasible_word(name):
    """On marked columns, by how many users' rows a hypothesis answers with one: accurate ones round to the mark, the next one may not."""
    form = ROUNDED[name]
    n, rows = form.users, form.rows
    ones = np.array([0, n] if "agnostic" in name else range(n + 1))  # a hypothesis has one answer at one point
    answers = np.arange(rows)[:, None] < ones
    rounded = jax.jit(lambda answers, labels: (form.word(answers), form.excess(answers, labels)))
    wrong = []
    for mark in (False, True):
        labels = np.broadcast_to((np.arange(rows) < n)[:, None] & mark, answers.shape)
        word, excess = jax.device_get(rounded(answers, labels))
        accurate = excess <= np.float32(form.alpha)
        assert (word[accurate] == mark).all() and accurate.any()
        nearest = np.argmin(np.where(accurate, np.inf, excess))
        wrong.append(word[nearest] != mark)
        if "paper" not in name:
            assert excess[nearest] == pytest.approx(float(form.alpha), rel=0.3)
    assert any(wrong)  # so a larger alpha would not do; a tie is a one


def test_a_database_has_as_many_rows_as_its_error_allows():
    for wrong, n, form in ((4, 7, forms.thresholds), (7, 7, forms.agnostic), (2, 8, forms.parities)):
        for alpha in (0.1, 0.07, 1 / 7, 0.013):
            most = max(n for n in range(1, 1000) if Fraction(alpha) < Fraction(wrong, n))
            rows = form(n, alpha=alpha).rows
            assert rows in (most, most - 1)
            assert rows == most or wrong / most == pytest.approx(alpha, rel=1e-6)  # equal but for rounding
            with pytest.raises(ValueError, match="alpha must be below"):
                form(n, alpha=alpha, rows=most + 1)
        assert form(n).rows == n and float(form(n).alpha) == pytest.approx(wrong / n)
        assert form(n, rows=50).rows == 50 and float(form(n, rows=50).alpha) == pytest.approx(wrong / 50)


# ---------------------------------------------------------------------------------------- what every learner needs


PRIVATE = {"beta": 0.1, "epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("k", [100, 1000, 10**4, 10**6])
def test_so_many_users_refute_every_learner_and_one_more_does_not(k):
    """n/alpha with alpha just below 1, and ceil(n/2)/alpha: by codes that are made one by one."""

    def refuted(codes):
        return any(
            implied_epsilon(
                users=code.users, completeness=code.completeness(), innocent=code.innocent(), inaccuracy=0.1, delta=1e-6
            )
            > 1.0
            for code in codes
            if code.length <= k
        )

    most = round(0.999 * necessary.agnostic(k, alpha=0.999, **PRIVATE))
    securities = lambda n: (xi for each in range(40) if (xi := n * math.exp(-each) * (1 + 1e-9)) < 1)  # noqa: E731
    symmetric = lambda n: (tardos(n, xi, score="symmetric", length=k) for xi in securities(n))  # noqa: E731

    def short(n):
        """Codes of as many copies as completeness requires: more than n (n + 1) L."""
        for xi in (2.0 ** (-each / 16) for each in range(1, 500)):
            yield boneh_shaw(n, xi=xi, copies=math.floor(n * (n + 1) * math.log(2 * n / xi) * (1 + 2.0**-20)) + 1)

    assert most == 0 or refuted(symmetric(max(most, 3))) or refuted(short(most))
    assert not refuted(symmetric(max(most, 2) + 1)) and not refuted(short(max(most, 1) + 1))
    half = round(necessary.thresholds(k, alpha=0.25, **PRIVATE) / 4)
    assert half == 0 or refuted(short(max(2, 2 * half - 1)))
    assert not refuted(short(2 * half + 1 if half else 2))


def test_the_best_l_of_tardos_moves_with_epsilon_and_need_not_be_the_first():
    for k, beta, epsilon, users in ((10**7, 0.1, 40.0, 146), (10**6, 0.1, 40.0, 46), (8817, 0.5, 1.0, 11)):
        given = beta, epsilon, 1e-6
        assert necessary._most_users(3, necessary._tardos(k, *given), *given) == users


@pytest.mark.parametrize(("n", "beta", "delta"), [(10, 0.99, 0.001), (3, 0.7, 0.1), (2, 0.18, 0.41)])
def test_who_publishes_each_row_with_probability_delta_is_not_refuted(n, beta, delta):
    """She is accurate with probability n delta = 1 - beta, at epsilon = 0."""
    assert implied_epsilon(users=n, completeness=0.0, innocent=1e-30, inaccuracy=beta, delta=delta) == 0.0


def test_needed_examples_are_at_least_those_of_the_corollaries():
    """The corollaries at the best xi, for learners whose delta they exclude."""
    for k in (10**4, 10**7):
        for xi in (1e-2, 1e-3, 1e-4):
            for corollary, needed in (
                (bounds.fingerprinting_agnostic, necessary.agnostic),
                (bounds.fingerprinting_thresholds, necessary.thresholds),
            ):
                examples = corollary(k, xi, alpha=0.2)
                users = math.ceil(examples * 0.4 if needed is necessary.thresholds else examples * 0.2)
                if bounds.fingerprinting_delta(users, xi, 0.1, 1.0) > 1e-6:
                    assert needed(k, alpha=0.2, **PRIVATE) >= examples > 0


@pytest.mark.parametrize("needed", [necessary.thresholds, necessary.agnostic])
def test_needed_examples_take_numbers_of_any_kind(needed):
    given = {"alpha": 0.125, "beta": 0.25, "epsilon": 1.0, "delta": 2.0**-20}
    arrays = {name: np.array(value) for name, value in given.items()}
    assert needed(np.int64(10**5), **arrays) == needed(10**5, **given) > 0


def test_needed_examples_grow_with_what_is_asked_for():
    for needed in (necessary.agnostic, necessary.thresholds):
        plain = needed(10**5, alpha=0.2, **PRIVATE)
        assert needed(10**6, alpha=0.2, **PRIVATE) > plain < needed(10**5, alpha=0.1, **PRIVATE)
        assert (
            needed(10**5, alpha=0.2, **PRIVATE | {"epsilon": 0.1})
            > plain
            > needed(10**5, alpha=0.2, **PRIVATE | {"epsilon": 5})
        )
        assert needed(10**5, alpha=0.2, **PRIVATE | {"delta": 0.05}) < plain
        assert needed(1, alpha=0.2, **PRIVATE) == needed(10**5, alpha=0.2, **PRIVATE | {"epsilon": 1e4}) == 0.0
        assert needed(2**40, alpha=0.2, **PRIVATE) > plain
        assert needed(2**128, alpha=0.2, **PRIVATE | {"delta": 0.0}) > 2**31
        for wrong in ({"alpha": 1.0}, {"beta": 0.0}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": -1.0}):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                needed(10**5, **{"alpha": 0.2} | PRIVATE | wrong)
    for k in (50, 500, 5000, 10**5):  # a learner for any labels is one for those of thresholds
        assert necessary.agnostic(k, alpha=0.2, **PRIVATE) >= necessary.thresholds(k, alpha=0.2, **PRIVATE) > 0
    assert necessary.thresholds(10**5, alpha=0.25, domain=8, **PRIVATE) == 16.0
    assert necessary.thresholds(10**5, alpha=0.25, domain=2, **PRIVATE) == 0.0


# ------------------------------------------------------------------------------------------------------------ attacks


@every_case
def test_an_exact_learner_is_traced(code, form, learner, predict):
    counts = engine.count(
        trial,
        against(learner, code=code, form=form, predict=predict),
        root=engine.root_key(1),
        cell=0,
        trials=20,
        batch=4,
    )
    assert counts["traced"] == 20  # completeness 0, or below 1e-5
    assert (counts["inaccurate"], counts["infeasible"], counts["falsely_accused"], counts["bottom"]) == (0, 0, 0, 0)


USUAL = boneh_shaw(4, xi=1e-3)
COALITIONS = {
    "boneh-shaw": (USUAL, forms.agnostic(4), {"learner": toy("most")}, {}, 3),
    "tardos": (*CASES["agnostic tardos"][:2], {"learner": most, "predict": says}, {"batch": 4}, 12),
}


@pytest.mark.parametrize(("code", "form", "given", "batch", "most_false"), COALITIONS.values(), ids=COALITIONS)
def test_a_coalition_is_traced_and_nobody_else(code, form, given, batch, most_false):
    """The majority of all members but one and a nonce row still marks what all members share."""
    setup = against(**given, code=code, form=form, coalition=np.arange(code.users) != 1)
    counts = engine.count(trial, setup, root=engine.root_key(2), cell=0, trials=20, **batch)
    assert counts["traced"] == 20 and counts["infeasible"] == 0
    # At xi = 1e-3 more than 3, and at 0.1 more than 12, have probability below 1e-6.
    assert counts["falsely_accused"] == counts["accused"][1] <= most_false


def test_a_report_says_what_happened():
    code, form, learner, predict = CASES["agnostic boneh-shaw"]
    report = attack(jax.random.key(0), learner, code=code, form=form, predict=predict)
    assert report.word.shape == (code.length,) and bool(report.feasible) and bool(report.accurate)
    assert float(report.excess) == 0 and bool(report.accused[report.user]) and not bool(report.falsely_accused)
    blank = attack(jax.random.key(0), blind, code=code, form=form, predict=predict)
    assert not bool(blank.accurate) and not bool(blank.feasible) and float(blank.excess) == 1
    nothing = attack(jax.random.key(0), silent, code=code, form=form, predict=predict)
    assert int(nothing.status) == Status.BOTTOM and not bool(nothing.accused.any()) and int(nothing.user) == -1
    assert not bool(nothing.accurate) and not bool(nothing.word.any())


THREE = boneh_shaw(3, xi=0.1, variant="original")


@pytest.mark.thorough
def test_bottom_accuses_nobody_though_the_code_names_somebody_for_the_word_0():
    assert THREE.trace(THREE.generate(jax.random.key(4)), np.zeros(THREE.length)).accused.any()
    report = attack(jax.random.key(0), silent, code=THREE, form=forms.agnostic(3), predict=says)
    assert int(report.user) == -1 and not report.accused.any() and not report.falsely_accused


def test_an_excess_of_alpha_is_accurate_still():
    """The majority, but for one row: an excess of 1/3 wherever two users of three agree with her."""
    form = forms.agnostic(3, rows=3, alpha=1 / 3)
    says_but_one = lambda hypothesis, x: np.asarray(says(hypothesis, x)) ^ (np.arange(3) == 0)[:, None]  # noqa: E731
    report = attack(jax.random.key(0), most, code=THREE, form=form, predict=says_but_one)
    assert report.excess == np.float32(1 / 3) == np.float32(form.alpha) and report.accurate


def test_the_learner_may_be_any_callable():
    """A class of the user's own, in NumPy."""

    class Host:
        def __call__(self, key, sample):
            labels = np.asarray(bits.unpack(sample.y, sample.k))
            return labels.mean(axis=0) >= 0.5

        def predict(self, hypothesis, x):
            return np.tile(hypothesis, (x.shape[0], 1))

    code = boneh_shaw(5, xi=0.1)
    mine = attack(jax.random.key(0), Host(), code=code, form=forms.agnostic(5))
    same = attack(jax.random.key(0), most, code=code, form=forms.agnostic(5), predict=says)
    assert (mine.word == same.word).all() and mine.user == same.user


# -------------------------------------------------------------------------------------------------------- epsilon


def evidence(learner, code=USUAL, trials=500, coalition=None, **settings):
    setup = against(learner, code=code, form=forms.agnostic(code.users), coalition=coalition)
    return audit(setup, root=engine.root_key(3), trials=trials, level=LEVEL, **settings)


@pytest.mark.thorough
def test_a_learner_without_privacy_is_found_out():
    found = evidence(toy("most"), pilot=20)
    assert found.epsilon > math.log(0.99 / (1e-3 / 8)) - 0.1 and found.measured > 3
    assert found.accused_with.value == 1 and found.accused_without.value == 0
    assert 0 < found.implied < found.epsilon  # every accurate learner: a factor n and the inaccuracy less
    assert f"epsilon is at least {found.epsilon:.2f}"[:-1] in str(found)
    assert f"user {found.victim} was accused in 100.0% of " in str(found) and "and in 0.0% of " in str(found)


@pytest.mark.thorough
def test_a_learner_that_ignores_its_data_is_not():
    found = evidence(toy("blind"), victim=1)
    assert found.epsilon == found.measured == found.implied == 0 and found.inaccurate.value == 1
    assert found.falsely_accused.value <= 0.01 and found.victim == 1


@pytest.mark.thorough
def test_delta_is_allowed_for():
    """A published row: nothing can be shown at delta = 1/n; much at delta = 0 (negative control)."""
    assert evidence(toy("copies a row"), victim=1, delta=0.25).epsilon == 0
    assert evidence(toy("copies a row"), victim=1).epsilon > 5


@pytest.mark.thorough
def test_a_code_that_is_sound_for_feasible_words_only_proves_nothing_beyond_the_runs():
    """Without the victim the learner may give any word: her innocence is what was measured, and no theorem adds to it."""
    settings = {"trials": 40, "victim": 1}
    found = evidence(toy("most"), code=boneh_shaw(3, xi=1e-3, variant="original"), **settings)
    assert found.epsilon == found.measured > 0 and found.implied == 0


def test_what_accuracy_implies_is_said_of_the_upper_end_of_the_inaccuracy():
    trials, delta = 40, 1e-3
    found = evidence(toy("most"), trials=trials, victim=1, delta=delta)
    inaccuracy = 1 - ((1 - LEVEL) / 2) ** (1 / trials)  # none of the runs was inaccurate
    assert found.inaccurate.value == 0 and USUAL.completeness() == 0
    assert (1 - inaccuracy) / 4 - delta == pytest.approx(math.exp(found.implied) * USUAL.innocent(), rel=1e-9)


def test_a_victim_is_chosen_among_the_members():
    """Also where nobody is accused."""
    found = evidence(toy("zeros"), coalition=np.array([False, False, True, True]), trials=5, pilot=2)
    assert found.victim == 2 and found.accused_with.value == 0


SHORT = boneh_shaw(2, xi=0.5, copies=5)  # fifteen columns: few enough for a private learner to be accused at times


@pytest.mark.slow  # that privacy is measured at all: the learner without any
def test_the_bound_stays_below_a_known_epsilon():
    """And it refutes a claim of 2 made by a learner that spends 40 (negative control)."""
    shown = {}
    for epsilon, trials in ((0.5, 3000), (2.0, 3000), (40.0, 20_000)):
        found = evidence(Exponential(epsilon=epsilon), SHORT, victim=0, trials=trials)
        shown[epsilon] = max(found.epsilon, found.measured)
        assert found.measured <= found.epsilon <= epsilon
    assert shown[40.0] > 2


def test_implied_epsilon_is_theorem_43():
    """delta < (1 - xi - beta)/n - exp(epsilon) xi is impossible for a private learner."""
    n, xi, beta, delta = 12, 1e-4, 0.2, 1e-3
    epsilon = implied_epsilon(users=n, completeness=xi, innocent=xi, inaccuracy=beta, delta=delta)
    assert (1 - xi - beta) / n - math.exp(epsilon) * xi == pytest.approx(delta)
    assert implied_epsilon(users=n, completeness=xi, innocent=xi, inaccuracy=1.0) == 0
    assert implied_epsilon(users=n, completeness=0, innocent=0.0, inaccuracy=0) == math.inf


# ------------------------------------------------------------------------------------------------------ bad input


def probably(hypotheses, x):
    """Probabilities, not labels."""
    return says(hypotheses, x).astype(float)


def signs(hypotheses, x):
    """-1 and 1, not 0 and 1."""
    return 2 * says(hypotheses, x).astype(int) - 1


@frozen
class Numbers:
    """The majority, as `least` and 1."""

    least: int

    def __call__(self, key, sample):
        return most(key, sample)

    def predict(self, hypotheses, x):
        return jnp.where(says(hypotheses, x), 1, self.least)


run_compiled = jax.jit(run)


@pytest.mark.thorough
def test_answers_that_are_no_labels_show_in_the_status_of_a_compiled_attack():
    setups = [against(Numbers(least=least), code=SHORT, form=forms.agnostic(2)) for least in (0, -1)]
    reports = [run_compiled(jax.random.key(0), setup) for setup in setups]
    assert [int(report.status) for report in reports] == [Status.OK, Status.OUTSIDE_DOMAIN]
    assert bool(reports[0].accused.any()) and not bool(reports[1].accused.any())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: forms.thresholds(4, bits=2), ValueError, "bits must be at least 3 to hold n"),
        (
            lambda: forms.thresholds(4, alpha=0.5),
            ValueError,
            "alpha must be below 0.5 for 4 users among 4 rows, got 0.5",
        ),
        (lambda: forms.thresholds(5, alpha=0.1, rows=30), ValueError, "alpha must be below 0.1 for 5 users among 30"),
        (lambda: forms.thresholds(4, alpha=1e-30), ValueError, "alpha must be above"),
        (lambda: forms.agnostic(4, rows=3), ValueError, "rows must be from 4 to 16777216, got 3"),
        (lambda: forms.agnostic(1), ValueError, "users must be >= 2"),
        (lambda: forms.thresholds(2**31 - 1), ValueError, "users must be from 2 to 16777216, got 2147483647"),
        (lambda: forms.parities(2**25), ValueError, "users must be from 4 to 16777216"),
        (lambda: forms.agnostic(100, alpha=1e-9), ValueError, "alpha must be above 5.96e-06, so that"),
        (lambda: forms.agnostic(4, junk=0), ValueError, "junk must differ from point"),
        (lambda: forms.agnostic(4, alpha=4 / (2**24 + 99)), ValueError, "alpha must be above 2.38e-07, so that"),
        (lambda: forms.agnostic(4, bits=3, point=8), ValueError, "bits must be at least 4 to hold point"),
        (lambda: forms.parities(6), ValueError, "users must be a power of two"),
        (lambda: forms.parities(8, alpha=0.25), ValueError, "alpha must be below 0.25 for 8"),
        (lambda: against(most, code=SHORT, form=forms.agnostic(3), predict=says), ValueError, "code's 2 users"),
        (lambda: against(most, code=tardos(4), form=forms.thresholds(4), predict=says), ValueError, "compatible"),
        (lambda: against(most, code=SHORT, form=forms.agnostic(2)), TypeError, "predict must be given"),
        (lambda: against(3, code=SHORT, form=forms.agnostic(2)), TypeError, "learner must be callable"),
        (
            lambda: against(most, code=SHORT, form=forms.agnostic(2), predict=says, coalition=[1, 0]),
            ValueError,
            "coalition must be booleans",
        ),
        (lambda: against(most, code=None, form=forms.agnostic(2), predict=says), TypeError, "code must be a Code"),
        (lambda: against(most, code=SHORT, form=None, predict=says), TypeError, "form must be a Form"),
        (
            lambda: attack(0, most, code=SHORT, form=forms.agnostic(2), predict=says),
            TypeError,
            "key must be a single PRNG key",
        ),
        (lambda: audit(None, root=jax.random.key(0), trials=9), TypeError, "attack must be an Attack, got None"),
        (lambda: implied_epsilon(users=0, completeness=0, innocent=0, inaccuracy=0), ValueError, "users must be"),
        (lambda: implied_epsilon(users=2, completeness=2, innocent=0, inaccuracy=0), ValueError, "completeness must"),
        (lambda: boneh_shaw(10**400), ValueError, "users must be from 2 to"),
        (lambda: tardos(5, length=2**70), ValueError, "length must be from 1"),
        (lambda: evidence(toy("most"), victim=4), ValueError, "victim must be from 0 to 3"),
        (lambda: evidence(toy("most"), delta=1.0), ValueError, "delta must be < 1"),
        (
            lambda: audit(
                against(toy("most"), code=USUAL, form=forms.agnostic(USUAL.users)),
                root=engine.root_key(3),
                trials=9,
                level=1.0,
            ),
            ValueError,
            "level must be < 1",
        ),
        (lambda: evidence(toy("most"), trials=0), ValueError, "trials must be >= 1"),
        (
            lambda: audit(
                against(toy("most"), code=USUAL, form=forms.agnostic(USUAL.users), coalition=[False] * USUAL.users),
                root=engine.root_key(3),
                trials=9,
            ),
            ValueError,
            "coalition must have a member",
        ),
        (
            lambda: against(toy("most"), code=USUAL, form=forms.agnostic(USUAL.users)).without(USUAL.users),
            ValueError,
            "user must be from 0 to",
        ),
        (
            lambda: attack(jax.random.key(0), most, code=THREE, form=forms.agnostic(3), predict=signs),
            ValueError,
            "predict must return zeros and ones, got -1",
        ),
        (
            lambda: attack(jax.random.key(0), most, code=THREE, form=forms.agnostic(3), predict=lambda h, x: h),
            ValueError,
            rf"predict must return shape \(3, {THREE.length}\), got \({THREE.length},\)",
        ),
        (
            lambda: attack(jax.random.key(0), most, code=THREE, form=forms.agnostic(3), predict=probably),
            TypeError,
            "predict must return booleans, got float",
        ),
    ],
)
def test_bad_input_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.slow  # its siblings below run learners whose n does not grow with k
def test_a_private_learner_at_its_own_n_is_not_traced():
    """348 thresholds, epsilon = 1, on as many rows as it takes to be accurate to 0.1: the users are lost among the padding."""
    code = boneh_shaw(3, xi=0.05)
    private = direct_sum.direct_sum(
        lambda each: one_threshold.exponential(bits=4, epsilon=each.epsilon),
        k=code.length,
        epsilon=1.0,
        delta=1e-6,
        accountant="optimal",
        delta_share=0.0,
    )
    form = forms.thresholds(3, bits=4, rows=4095)
    setup = against(private, code=code, form=form)
    book = code.generate(jax.random.key(1))
    sample = form.database(book.rows, setup.coalition, code.length)
    assert float(private.failure_probability(sample, error=0.1)) < 0.05  # its proper n
    trials = 5
    counted = engine.count(trial, setup, root=engine.root_key(0), cell=0, trials=trials, batch=1)
    # Privacy: P[user i accused] <= e P[she is accused without her row] + delta <= e innocent + delta.
    bound = code.users * (math.e * code.innocent() + 1e-6)
    assert stats.binom.sf(int(counted["traced"]) - 1, trials, bound) > 1 - LEVEL
    # Negative control: the same book's rows are found at once by a learner without privacy.
    public = direct_sum.of(one_threshold.erm(bits=4), k=code.length)
    exact = against(public, code=code, form=forms.thresholds(3, bits=4))
    assert engine.count(trial, exact, root=engine.root_key(0), cell=1, trials=5)["traced"] == 5


# --------------------------------------------------------------- learners whose n does not grow with k, and agnostic ones

FOUR = boneh_shaw(4, xi=0.05)
BUDGET: dict[str, Any] = {"k": FOUR.length, "delta": 1e-6}


def point_learner(epsilon):
    return points.point_learner(bits=8, alpha=0.1, epsilon=epsilon, **BUDGET)


def parity_learner(epsilon):
    return parities.parity_learner(bits=2, size=4, epsilon=epsilon, **BUDGET)


def best_point(key, sample):
    """The best of c_0 and all-zero, exactly: no privacy."""
    here = (sample.x[:, -1] == 0)[:, None]
    return 2 * jnp.sum((sample.labels & here).astype(jnp.int32), axis=0) >= jnp.sum(here.astype(jnp.int32))


def says_at_zero(hypothesis, x):
    return (x[:, -1] == 0)[:, None] & hypothesis[None, :]


def counted(learner, form, trials=20, predict=None, cell=0):
    setup = against(learner, code=FOUR, form=form, predict=predict)
    return engine.count(trial, setup, root=engine.root_key(7), cell=cell, trials=trials, batch=4)


@pytest.mark.slow
def test_point_learner_goes_from_all_zero_to_bottom():
    """All users share a point and no two their labels: the gap is 0. While the point is not heavy, all-zero is an answer."""
    small, large = (counted(point_learner(epsilon), forms.agnostic(4, bits=8)) for epsilon in (1.0, 1e4))
    assert (small["bottom"], large["bottom"]) == (0, 20)
    for counts in (small, large):
        assert (counts["traced"], counts["inaccurate"]) == (0, 20)


@pytest.mark.slow
def test_parity_learner_refuses_its_form_at_every_epsilon():
    """Four strings of two bits with arbitrary labels: no k columns are all consistent."""
    for epsilon in (1.0, 1e4):
        counts = counted(parity_learner(epsilon), forms.parities(4))
        assert (counts["bottom"], counts["traced"], counts["inaccurate"]) == (20, 0, 20)


@pytest.mark.slow
def test_generic_learner_is_traced_as_epsilon_grows():
    seen = []
    for epsilon in (1.0, 1e2, 1e5):
        generic_learner = generic.learner(
            sanitizer=point_sanitizer.histogram(bits=8, n=4, epsilon=epsilon / 2, delta=5e-7),
            concepts=generic.points(bits=8, most=2),
            epsilon=epsilon,
            accountant="optimal",
            **BUDGET,
        )
        counts = counted(generic_learner, forms.agnostic(4, bits=8))
        seen.append((counts["traced"], counts["inaccurate"], counts["bottom"]))
    assert seen[0][:2] == seen[1][:2] == (0, 20)
    assert seen[2] == (20, 0, 0)


def all_strings(rows):
    """The form for parities with junk rows on all strings in turn: ParityLearner needs points that span."""
    places = wide.from_ints([i % 4 for i in range(rows)], 2)
    return dataclasses.replace(forms.parities(4), x=places, alpha=jnp.asarray(0.1))


def padded(rows):
    """The form for points, judged by the error that the learner promises and not by the one the form asks for."""
    form = forms.agnostic(4, bits=8, rows=rows)
    return dataclasses.replace(form, alpha=jnp.asarray(0.1))


OWN = {
    "PointLearner": (point_learner(1.0), padded),
    "histogram": (points.histogram_learner(bits=8, epsilon=1.0, **BUDGET), padded),
    "ParityLearner": (parity_learner(1.0), all_strings),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("PointLearner", "histogram")), "ParityLearner"]
)
def test_at_its_own_n_a_learner_keeps_its_promise_and_gives_nobody_away(name):
    """Error 0.1 but for beta = 0.1; and P[user i accused] <= e innocent + delta, whatever k is."""
    learner, form = OWN[name]
    n, trials = learner.sample_size(alpha=0.1, beta=0.1), 40
    counts = counted(learner, form(n), trials=trials)
    assert form(n).rows == n
    assert stats.binom.sf(counts["inaccurate"] - 1, trials, 0.1) > 1 - LEVEL
    bound = FOUR.users * (math.e * FOUR.innocent() + 1e-6)
    assert stats.binom.sf(counts["traced"] - 1, trials, bound) > 1 - LEVEL


@pytest.mark.slow
def test_without_privacy_the_padded_users_are_traced():
    """Negative control of the previous test."""
    counts = counted(best_point, forms.agnostic(4, bits=8, rows=1784), predict=says_at_zero)
    assert (counts["traced"], counts["inaccurate"]) == (20, 0)


@pytest.mark.thorough
def test_accuracy_for_some_users_implies_nothing():
    """A learner that ignores its data is accurate where the only user's word is all zeros; it has epsilon 0."""
    alone = np.array([True, False, False, False])
    found = evidence(toy("zeros"), coalition=alone, trials=50, victim=0)
    assert found.implied == 0.0 and found.epsilon == 0.0 and found.inaccurate.value == 0.0


def test_what_an_attack_implies_is_computed_in_float64():
    given = {"users": 10, "completeness": 0.1, "inaccuracy": 0.1}
    for kind in (np.float16, np.float32):
        innocent = kind(0.01)
        assert implied_epsilon(**given, innocent=innocent) == implied_epsilon(**given, innocent=float(innocent))
    code = boneh_shaw(users=2, xi=0.1)
    with pytest.raises(TypeError, match="predict must be callable"):
        against(lambda key, sample: None, code=code, form=forms.thresholds(code.users), predict=1.5)


@pytest.mark.parametrize("form", [forms.thresholds, forms.agnostic, forms.parities])
def test_users_may_be_an_integer_of_numpy(form):
    found, expected = form(np.int64(8), alpha=0.1), form(8, alpha=0.1)
    assert type(found.users) is int and found.rows == expected.rows and found.alpha == expected.alpha
