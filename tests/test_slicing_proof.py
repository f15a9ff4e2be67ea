"""Reorder-Slice-Compute's privacy proof, run on every small case; what is printed wrongly must be seen to fail."""

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import builders
import numpy as np
import pytest

from dpjax.accounting import slicing as accountant
from dpjax.accounting import synchronization
from dpjax.verify import slicing_proof as proof
from dpjax.verify.slicing_proof import Delayed, Step

RATIOS = [Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(9, 10), Fraction(19, 20)]

# ---------------------------------------------------------------------------------------------------------- programs


def reveal(taken):
    """The slice itself: not private, so that laws agree only if slices do."""
    return [(taken, Fraction(1))]


def leaning(odds, kind):
    """0 or 1, the odds of 1 multiplied by `odds` with every record x with x % 2 == kind: ln(odds)-private under add/remove."""

    @functools.cache
    def law(taken):
        one = odds ** sum(x % 2 == kind for x in taken)
        return [(1, one / (1 + one)), (0, 1 / (1 + one))]

    return law


def ascending(data):
    return data


def descending(data):
    return data[::-1]


def odd_first(data):
    return tuple(sorted(data, key=lambda x: (-(x % 2), x)))


def halved(data):
    """Maps records, then orders: an embedding."""
    return tuple(sorted(x // 2 for x in data))


def without_zeros(data):
    """A mapping that may take the difference away."""
    return tuple(x for x in data if x)


def restless_start(data):
    """Sorted, but the first two exchanged whenever the number of records is odd: an insertion only for slices of 3 or more."""
    return data[1::-1] + data[2:] if len(data) % 2 else data


def in_turn(*requests):
    return lambda told: requests[len(told)] if len(told) < len(requests) else None


def adaptive(told):
    """The second order and size depend on the first answer, the delayed phase on both."""
    fair = leaning(Fraction(2), 1)
    if len(told) == 0:
        return Step(1, odd_first, fair)
    if len(told) == 1:
        return Step(0 if told[0] else 2, descending if told[0] else ascending, None)
    if len(told) == 2:
        return Delayed(told[0], reveal)
    return Delayed(1 - told[0], reveal) if len(told) == 3 else None


PROGRAMS = {
    "one order": in_turn(Step(1, ascending, reveal), Step(1, ascending, reveal), Step(0, ascending, reveal)),
    "both ends": in_turn(Step(1, ascending, reveal), Step(2, descending, reveal)),
    "three orders": in_turn(Step(1, ascending, reveal), Step(1, odd_first, reveal), Step(0, descending, reveal)),
    "embedding": in_turn(Step(1, odd_first, reveal), Step(1, halved, reveal), Step(0, descending, reveal)),
    "difference removed": in_turn(Step(1, descending, reveal), Step(1, without_zeros, reveal), Step(0, halved, reveal)),
    "restless below m": in_turn(Step(3, restless_start, reveal), Step(3, restless_start, reveal)),
    "delayed": in_turn(
        Step(1, descending, None),
        Step(1, odd_first, leaning(Fraction(3), 0)),
        Delayed(1, reveal),
        Delayed(0, leaning(Fraction(2), 1)),
        Delayed(0, reveal),
    ),
    "adaptive": adaptive,
}


def pairs(domain, largest):
    """Every dataset of at most `largest` records with every record that can join it."""
    for size in range(largest + 1):
        for small in itertools.combinations_with_replacement(range(domain), size):
            for extra in range(domain):
                yield small, extra


def joined(small, extra):
    return tuple(sorted((*small, extra)))


true_law = functools.cache(proof.true_law)  # many neighbours share a dataset
replies_law = functools.cache(proof.replies_law)


# --------------------------------------------------------------------------------------------------------- Lemma 2.4


def reach_of(ratio):
    """Beyond it the noise has mass below 1e-15."""
    return math.ceil(math.log(1e-15) / math.log(ratio))


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
def test_lemma_2_4_in_rationals(ratio):
    found = proof.lemma_2_4(ratio, reach=reach_of(ratio))
    assert found.aligned
    assert found.factor == 1 / ratio  # property 2 holds, and is tight
    for bit in (0, 1):
        stop = synchronization.stop_probability(-math.log(ratio), bit)
        assert abs(float(found.stops[bit]) - stop) < 3e-15
        assert float(found.stops[bit]) >= 1 / 6 or ratio < Fraction(1, 6)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-4, 1e-2, 0.1, 0.4812, 0.5, 1.0, 3.0, 30.0, 600.0])
def test_lemma_2_4_in_floats(epsilon):
    """The arrays of the accounting package, up to noise of mass 1e-15 (or its first 10^6 values)."""
    size = min(10**6, max(2, math.ceil(36 / epsilon)))
    laws = [synchronization.law(epsilon, size, bit) for bit in (0, 1)]
    assert math.isclose(synchronization.leave_probabilities(epsilon, 1, 0)[0], -math.expm1(-epsilon), rel_tol=1e-14)
    for first, second in itertools.permutations(laws):
        assert np.all(first <= math.exp(epsilon) * second * (1 + 1e-9) + 1e-22)
    for bit, law in enumerate(laws):
        assert np.all(law >= 0)
        rest = math.exp(-(size + bit) * epsilon)
        if size >= synchronization.surely_synchronised(epsilon):
            assert abs(law.sum() + rest - 1) < 1e-11
            assert abs(law[:, 1].sum() + rest - synchronization.stop_probability(epsilon, bit)) < 1e-11


def test_without_noise_worth_the_name_nothing_overflows():
    """e^800 is no float64: the smaller dataset leaves surely, the larger one stays."""
    nothing = [[0.0, 0.0]] * 2
    assert synchronization.law(800.0, 3, 0).tolist() == [[0.0, 1.0], *nothing]
    assert synchronization.law(800.0, 3, 1).tolist() == [[1.0, 0.0], *nothing]


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
def test_arrays_of_the_mapping_are_the_papers(ratio):
    epsilon, size = -math.log(ratio), 40
    for bit in (0, 1):
        exact = [dict(proof.synchronisation(ratio, noise, bit)) for noise in range(size)]
        stays = [float(law[noise, 0]) for noise, law in enumerate(exact)]
        leaves = [float(law.get((noise - bit, 1), 0)) for noise, law in enumerate(exact)]
        np.testing.assert_allclose(synchronization.stay_probabilities(epsilon, size, bit), stays, atol=1e-15)
        np.testing.assert_allclose(synchronization.leave_probabilities(epsilon, size, bit), leaves, rtol=1e-14)
    first = synchronization.surely_synchronised(epsilon)
    t = [ratio**i + ratio ** (i + 1) - 1 for i in range(first + 1)]
    assert t[first] <= 0 < t[first - 1]


def test_stop_probabilities_of_the_specification():
    assert round(synchronization.stop_probability(1.0, 1), 3) == 0.368
    assert round(synchronization.stop_probability(0.1, 1), 3) == 0.676
    grid = np.linspace(1e-4, 1.0, 4001)
    assert min(synchronization.stop_probability(e, bit) for e in grid for bit in (0, 1)) == math.exp(-1.0)
    assert abs(synchronization.stop_probability(1e-6, 1) - math.log(2)) < 1e-6
    assert synchronization.stop_probability(1.8, 1) < 1 / 6  # why the paper asks for epsilon < 1


def never(ratio, noise, bit):
    return [((noise, 0), Fraction(1))]


def whenever_possible(ratio, noise, bit):
    """Aligned, but b = 1 gives itself away by (0, 0)."""
    return [((noise, 0), Fraction(1))] if noise < bit else [((noise - bit, 1), Fraction(1))]


def perturbed(ratio, noise, bit):
    """Lemma 2.4's, but b = 0 synchronises half as often."""
    stay = dict(proof.synchronisation(ratio, noise, bit))[noise, 0]
    return [((noise, 0), stay if bit else (1 + stay) / 2), ((noise - bit, 1), 1 - stay if bit else (1 - stay) / 2)]


def misaligned(ratio, noise, bit):
    """Reports b = 0's size when b = 1 synchronises."""
    return [((noise, beta), weight) for (_, beta), weight in proof.synchronisation(ratio, noise, bit)]


def test_lemma_2_4_of_other_mappings():
    """Negative controls: each breaks one property."""
    ratio = Fraction(9, 10)
    check = {m: proof.lemma_2_4(ratio, reach=330, mapping=m) for m in (never, whenever_possible, perturbed, misaligned)}
    assert check[never].factor == 1 and check[never].stops == (0, 0)
    assert check[whenever_possible].aligned and check[whenever_possible].factor == math.inf
    assert check[perturbed].aligned and check[perturbed].factor > 1 / ratio
    assert not check[misaligned].aligned


def test_laws_that_do_not_sum_to_one_are_none():
    """A mapping that keeps silent for one of the two would tell which is true."""

    def half(ratio, noise, bit):
        return [(report, weight / 2) for report, weight in proof.synchronisation(ratio, noise, bit)]

    assert not proof.lemma_2_4(Fraction(1, 2), reach=60, mapping=half).aligned
    step = proof.Step(1, lambda data: data, lambda taken: [(taken, Fraction(1, 2))])
    with pytest.raises(ValueError, match="sum to one, got 1/2"):
        proof.true_law((1, 2), lambda told: None if told else step, ratio=Fraction(1, 3))


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf"), 800.0])
def test_an_epsilon_of_no_exponential_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        proof.largest_delta({0: Fraction(1)}, {0: Fraction(1)}, epsilon)


def test_a_mapping_of_negative_weights_is_none():
    """Weights -1 and 2 add up to 1, and no coin has them."""

    def signed(ratio, noise, bit):
        return [((noise, 0), Fraction(-1)), ((noise, 0), Fraction(2))]

    assert not proof.lemma_2_4(Fraction(1, 2), reach=5, mapping=signed).aligned
    assert proof.lemma_2_4(Fraction(1, 2), reach=5, mapping=never).aligned


# --------------------------------------------------------------------------------------------------------- Lemma 2.5


def check_simulation(name, bit, cases):
    """Lemma 2.5 as an equality of Fractions."""
    program, ratio = PROGRAMS[name], Fraction(4, 5)
    for small, extra in cases:
        truth = true_law(joined(small, extra) if bit else small, program, ratio=ratio)
        assert sum(truth.values()) == 1
        assert proof.simulated_law(small, extra, program, bit=bit, ratio=ratio) == truth, (small, extra)


@pytest.mark.parametrize("bit", [builders.thorough(0), 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_simulation_has_the_law_of_the_algorithm(name, bit):
    """Every multiset of up to four records of two values, and up to three of three values (seven and six where slices have three)."""
    larger = 3 if name == "restless below m" else 0
    check_simulation(name, bit, {*pairs(2, 4 + larger), *pairs(3, 3 + larger)})


@pytest.mark.slow
@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_simulation_has_the_law_of_the_algorithm_on_five(name, bit):
    check_simulation(name, bit, pairs(3, 5))


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
def test_simulation_for_every_ratio(ratio):
    small, extra = (0, 1, 1, 2, 3), 1
    for name, bit in itertools.product(("both ends", "adaptive"), (0, 1)):
        truth = true_law(joined(small, extra) if bit else small, PROGRAMS[name], ratio=ratio)
        assert proof.simulated_law(small, extra, PROGRAMS[name], bit=bit, ratio=ratio) == truth


@pytest.mark.parametrize("mapping", [never, whenever_possible, perturbed])
def test_any_aligned_mapping_simulates_perfectly(mapping):
    """Only property 1 matters for Lemma 2.5; the others are about privacy."""
    small, extra, ratio = (0, 1, 2, 2), 1, Fraction(1, 2)
    program = PROGRAMS["three orders"]
    truth = proof.true_law(joined(small, extra), program, ratio=ratio)
    assert proof.simulated_law(small, extra, program, bit=1, ratio=ratio, mapping=mapping) == truth


def test_a_misaligned_mapping_is_caught():
    small, extra, ratio, program = (0, 1, 2, 2), 0, Fraction(4, 5), PROGRAMS["three orders"]
    truth = proof.true_law(joined(small, extra), program, ratio=ratio)
    assert proof.simulated_law(small, extra, program, bit=1, ratio=ratio, mapping=misaligned) != truth


def _line_25_as_printed(self, step):
    """The new x is element q, not q^."""
    parted = proof.difference(step, self.data, self.differing[0]) if self.differing else None
    asked = len(self.holder.slices)
    answer = _query(self, step)
    if len(self.holder.slices) > asked and self.differing:
        self.differing = (parted.small[parted.position - 1],)
    return answer


def _keeps_a_difference(self, step):
    """When both are used up the old x stays, as line 25 has no element to name."""
    before = self.differing
    answer = _query(self, step)
    if self.holder.replies and self.holder.replies[-1][0] == "all":
        self.differing = before
    return answer


_query = proof.Simulator.query


@pytest.mark.parametrize("wrong", [_line_25_as_printed, _keeps_a_difference])
def test_misprints_are_caught(monkeypatch, wrong):
    """The corrections are needed: without them the laws differ."""
    monkeypatch.setattr(proof.Simulator, "query", wrong)
    small, extra, program, ratio = (1, 2, 3), 0, PROGRAMS["one order"], Fraction(4, 5)
    truth = proof.true_law(joined(small, extra), program, ratio=ratio)
    assert proof.simulated_law(small, extra, program, bit=1, ratio=ratio) != truth


# -------------------------------------------------------------------------------------------------------- the orders


def test_difference_by_hand():
    assert proof.difference(Step(0, ascending, None), (), 5) == ((), (5,), 1)
    assert proof.difference(Step(7, ascending, None), (1, 2), 5) == ((1, 2), (1, 2, 5), 7)
    assert proof.difference(Step(1, ascending, None), (1, 1, 2), 1).position == 3  # the third 1 is where they part
    assert proof.difference(Step(1, without_zeros, None), (1, 2), 0) is None
    assert proof.difference(Step(3, restless_start, None), (1, 2, 3), 0) == ((2, 1, 3), (0, 1, 2, 3), 3)


def singles(data):
    """Records that occur once: adding a copy takes one away, so E(D) and E(D + x) are adjacent the wrong way round."""
    return tuple(x for x, count in Counter(data).items() if count == 1)


def reversed_if_odd(data):
    return data[::-1] if len(data) % 2 else data


@pytest.mark.parametrize(("order", "size"), [(singles, 0), (reversed_if_odd, 1), (restless_start, 2)])
def test_orders_that_do_not_insert_are_refused(order, size):
    step = Step(size, order, reveal)
    with pytest.raises(ValueError, match=r"order must insert one entry"):
        for small, extra in pairs(3, 3):
            proof.difference(step, small, extra)


# -------------------------------------------------------------------------------------------------------- the privacy


def parity(odds):
    """1 with probability 1/2, and with 1/(2 odds) or 1 - 1/(2 odds) if more are even or odd: ln(odds)-private, nearly tight for two."""

    @functools.cache
    def law(taken):
        odd = sum(x % 2 for x in taken)
        one = {-1: 1 / (2 * odds), 0: Fraction(1, 2), 1: 1 - 1 / (2 * odds)}[np.sign(2 * odd - len(taken))]
        return [(1, one), (0, 1 - one)]

    return law


def alternating(slices, odds):
    """Slices of one, ordered by position: even and odd in turn."""
    return in_turn(*[Step(1, ascending, parity(odds))] * slices)


PRIVATE = {
    "one order": alternating(3, Fraction(2)),
    "two kinds": in_turn(
        Step(1, ascending, leaning(Fraction(2), 1)),
        Step(1, descending, leaning(Fraction(2), 0)),
        Step(0, odd_first, leaning(Fraction(2), 1)),
    ),
    "delayed": in_turn(
        Step(1, descending, None),
        Step(1, odd_first, None),
        Delayed(1, leaning(Fraction(2), 0)),
        Delayed(0, leaning(Fraction(2), 1)),
    ),
}


def claimed(ratio, odds, total):
    """What the numerical accountant promises."""
    return accountant.total_delta(slice_epsilon=-math.log(ratio), compute_epsilon=math.log(odds), total_epsilon=total)


@pytest.mark.parametrize("total", [0.0, 0.7, 1.5, 2.5])
@pytest.mark.parametrize("name", PRIVATE)
def test_transcripts_and_replies_are_within_the_accountant(name, total):
    """Algorithm 1's own answers, and the larger view of the simulator."""
    ratio, program = Fraction(2, 3), PRIVATE[name]
    promised = claimed(ratio, Fraction(2), total)
    for small, extra in [((), 1), ((0,), 1), ((1, 2), 0), ((1, 2, 3), 0), ((0, 1, 2, 3), 1), ((1, 1, 2, 2), 1)]:
        views = [replies_law(small, extra, program, bit=bit, ratio=ratio) for bit in (0, 1)]
        seen = proof.largest_delta(*views, total)
        truths = [true_law(data, program, ratio=ratio) for data in (small, joined(small, extra))]
        published = [_published(law) for law in truths]
        assert proof.largest_delta(*published, total) <= seen <= promised
        if total == 0.0 and small:
            assert seen > 0.02  # the comparison is not empty


def _published(law):
    """The marginal law of what is published."""
    answers = Counter()
    for (told, _), weight in law.items():
        answers[told] += weight
    return dict(answers)


def test_without_slice_noise_the_claim_is_refuted():
    """Negative control: eight slices without noise, judged as if they had it."""
    odds, total, records = Fraction(23, 20), 1.0, tuple(range(1, 10))
    program = alternating(8, odds)
    laws = [_published(proof.true_law(data, program, ratio=Fraction(0))) for data in (records, (0, *records))]
    assert proof.largest_delta(*laws, total) > 5 * claimed(Fraction(9, 10), odds, total)


@pytest.mark.parametrize("mapping", [whenever_possible, perturbed])
def test_a_perturbed_mapping_is_refuted(mapping):
    """Negative control: the same output, but replies that tell more than the accountant allows."""
    small, extra, ratio, total = tuple(range(1, 9)), 0, Fraction(4, 5), 0.6
    program = alternating(1, Fraction(21, 20))
    promised = claimed(ratio, Fraction(21, 20), total)
    views = [proof.replies_law(small, extra, program, bit=bit, ratio=ratio, mapping=mapping) for bit in (0, 1)]
    assert proof.largest_delta(*views, total) > 1.1 * promised
    right = [proof.replies_law(small, extra, program, bit=bit, ratio=ratio) for bit in (0, 1)]
    assert proof.largest_delta(*right, total) <= promised


def worst_calls(epsilon, total, directions, calls):
    """The largest hockey-stick divergence of `calls` calls (nothing computed) when each may exchange the roles of D and D + x."""
    laws = [synchronization.law(epsilon, 200, bit) for bit in (0, 1)]
    tables = []
    for bit in directions:
        p, losses = laws[bit][laws[bit] > 0], np.log(laws[bit][laws[bit] > 0] / laws[1 - bit][laws[bit] > 0])
        stops = np.broadcast_to([False, True], laws[bit].shape)[laws[bit] > 0]
        tables.append(Counter())
        for weight, loss, stop in zip(p, losses.round(9), stops, strict=True):
            tables[-1][loss, stop] += weight

    def worst(left, loss):
        if left == 0:
            return max(0.0, 1 - math.exp(total - loss))
        outcomes = [
            sum(weight * worst(0 if stop else left - 1, loss + more) for (more, stop), weight in table.items())
            for table in tables
        ]
        return max(outcomes)

    return worst(calls, 0.0)


def test_the_accountant_needs_orders_that_insert():
    """Why `difference` refuses orders that take a record away: calls in both directions leak more than W."""
    promised = accountant.total_delta(slice_epsilon=0.5, compute_epsilon=1e-6, total_epsilon=1.0)
    assert worst_calls(0.5, 1.0, (1,), 7) <= promised
    assert worst_calls(0.5, 1.0, (0,), 7) <= promised
    assert worst_calls(0.5, 1.0, (0, 1), 7) > 1.05 * promised


# ------------------------------------------------------------------------------------------------- the holder's calls


@pytest.mark.parametrize("bit", [0, 1])
def test_calls_are_at_most_geometric(bit):
    """Lemma 2.7 with the exact probability instead of 5/6, on every small case."""
    ratio = Fraction(4, 5)
    stay = 1 - synchronization.stop_probability(-math.log(ratio), bit)
    for name in ("one order", "three orders", "adaptive"):
        for small, extra in pairs(2, 4):
            law = proof.calls_law(small, extra, PROGRAMS[name], bit=bit, ratio=ratio)
            for w in range(4):
                assert sum(weight for calls, weight in law.items() if calls > w) <= stay**w + 1e-15


@pytest.mark.parametrize("bit", [0, 1])
def test_worst_case_calls_have_their_exact_law(bit):
    """The simulator on a long chain, enumerated, has `call_tails` as its law."""
    ratio, rounds = Fraction(1, 3), 3
    program = in_turn(*[Step(1, ascending, None)] * rounds)
    law = proof.calls_law(tuple(range(1, 22)), 0, program, bit=bit, ratio=ratio)
    tails = [float(sum(weight for calls, weight in law.items() if calls > w)) for w in range(rounds + 1)]
    np.testing.assert_allclose(tails, proof.call_tails(-math.log(ratio), rounds)[bit], atol=1e-8)


def binomial_radius(p, trials, tests):
    """Half-width that a fraction exceeds with probability below 2e-5 over all tests (Bernstein)."""
    log = math.log(2 * tests / 2e-5)
    return math.sqrt(2 * p * (1 - p) * log / trials) + 2 * log / (3 * trials)


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_sampled_calls_match_their_law(epsilon, bit):
    trials, rounds = 200_000, 12
    calls = proof.holder_calls(np.random.default_rng(bit), trials, epsilon=epsilon, bit=bit, rounds=rounds)
    tails = proof.call_tails(epsilon, rounds)
    assert calls.min() >= 1 and calls.max() <= rounds
    for w in range(1, rounds):
        exact = tails[bit][w]
        assert abs(np.mean(calls > w) - exact) <= binomial_radius(exact, trials, rounds)
    # Negative controls: neither the other dataset's law nor the printed one fits.
    assert abs(np.mean(calls > 1) - tails[1 - bit][1]) > binomial_radius(tails[1 - bit][1], trials, rounds)
    assert abs(np.mean(calls > 1) - tails.printed[1]) > binomial_radius(tails.printed[1], trials, rounds)


def test_sampled_simulation_matches_the_enumerated_one():
    """`sample` and `exact_law` toss the same coins."""
    small, extra, ratio, trials = (0, 1, 2), 1, Fraction(1, 2), 3000
    program, generator = PROGRAMS["adaptive"], np.random.default_rng(7)
    exact = proof.simulated_law(small, extra, program, bit=1, ratio=ratio)
    run = [
        proof.sample(lambda choose: proof.simulate(choose, small, extra, program, bit=1, ratio=ratio)[:2], generator)
        for _ in range(trials)
    ]
    seen = Counter(run)
    assert seen.keys() <= exact.keys()
    for outcome, weight in exact.items():
        assert abs(seen[outcome] / trials - weight) <= binomial_radius(float(weight), trials, len(exact))


# ---------------------------------------------------------------------------------------------------------- arguments


def test_arguments_are_checked():
    program = PROGRAMS["one order"]
    with pytest.raises(TypeError, match=r"ratio must be a Fraction, got 0\.5"):
        proof.true_law((1,), program, ratio=0.5)
    with pytest.raises(ValueError, match=r"ratio must be in \[0, 1\), got 1"):
        proof.true_law((1,), program, ratio=1)
    with pytest.raises(ValueError, match=r"ratio must be in \(0, 1\), got 0"):
        proof.simulated_law((1,), 2, program, bit=0, ratio=Fraction(0))
    with pytest.raises(ValueError, match=r"bit must be from 0 to 1, got 2"):
        proof.calls_law((1,), 2, program, bit=2, ratio=Fraction(1, 2))
    with pytest.raises(ValueError, match=r"reach must be >= 2, got 1"):
        proof.lemma_2_4(Fraction(1, 2), reach=1)
    with pytest.raises(ValueError, match=r"rounds must be >= 1, got 0"):
        proof.call_tails(0.1, 0)


@pytest.mark.parametrize("function", [synchronization.stay_probabilities, synchronization.law])
def test_arguments_of_the_mapping_are_checked(function):
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"epsilon must be"):
            function(epsilon, 4, 0)
    with pytest.raises(ValueError, match=r"size must be >= 1, got 0"):
        function(0.5, 0, 0)
    for bit, refusal in ((2, ValueError), (True, TypeError), (None, TypeError)):
        with pytest.raises(refusal, match=r"bit must be"):
            function(0.5, 4, bit)
