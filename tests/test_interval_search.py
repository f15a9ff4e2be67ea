"""The searches for a length (BNS §3.2): laws on realizable samples, what they promise, and their sample sizes."""

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import Sample, bounds
from dpjax.accounting.calibration import closed_form_epsilon
from dpjax.concepts import thresholds as concept
from dpjax.domains import wide
from dpjax.learners import pac, thresholds
from dpjax.learners.thresholds import intervals
from dpjax.verify.plain import interval_search as twin
from dpjax.verify.plain.laplace import laplace_tail

BITS, ROWS = 6, 31
SEARCHES = {
    "power": (thresholds.power_search, twin.power_search_law, 2),
    "length": (thresholds.length_search, twin.length_search_law, 3),
}


def realizable(seed: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sorted examples labelled by a threshold, some without a one or a zero."""
    rng, samples = np.random.default_rng(seed), []
    for _ in range(count):
        xs = np.sort(rng.integers(0, 2**BITS, rng.integers(1, ROWS + 1)) // rng.choice([1, 4]))
        samples.append((xs, (xs < rng.integers(0, 2**BITS)).astype(int)))
    return [*samples, (np.arange(20), np.ones(20, int)), (np.arange(20), np.zeros(20, int))]


@pytest.mark.slow  # `test_conformance` covers samples that are not realizable
@pytest.mark.parametrize("name", ["power", pytest.param("length", marks=pytest.mark.slow)])
def test_the_law_of_a_realizable_sample_agrees_with_every_path(name: str, x64: None) -> None:
    make, law, parts = SEARCHES[name]
    epsilon, delta, alpha = 12.0, 0.2, 0.6
    learner = make(bits=BITS, epsilon=epsilon, delta=delta, alpha=alpha)
    samples = realizable(3, 14)
    x = np.stack([np.pad(xs, (0, ROWS - len(xs))) for xs, _ in samples]).astype(np.uint32)[..., None]
    y = np.stack([np.pad(ys, (0, ROWS - len(ys))) for _, ys in samples])
    n = np.array([len(xs) for xs, _ in samples], np.int32)
    found = jax.jit(jax.vmap(lambda x, y, n: learner.pmf(Sample(x=x, y=y, n_valid=n, realizable=True))))(x, y, n)
    unit = 8 / epsilon
    threshold = 2 + unit * np.log(parts / (2 * delta))
    given: dict[str, Any] = {
        "alpha": alpha,
        "comparison_epsilon": float(learner.comparison_epsilon()),
        "keep": lambda gap: laplace_tail((threshold - gap) / unit),
        "choice_epsilon": epsilon / 8,
    }
    for (xs, ys), row in zip(samples, found, strict=True):
        expected = law(list(zip(xs.tolist(), ys.tolist(), strict=True)), BITS, **given)
        np.testing.assert_allclose(row, expected, atol=1e-12)


def failures(learner: Any, bits: int, n: int, draws: int) -> np.ndarray:
    """P[population error > 0.2] given each of several data draws; the target is no power of two, or blocks would hit it by themselves."""
    distribution = concept.log_uniform(bits=bits, target=2**bits // 3)
    experiment = pac.Experiment(learner=learner, distribution=distribution, n=n, alpha=0.2, capacity=2**15 - 1)
    keys = jax.random.split(jax.random.key(5), draws)
    return np.asarray(jax.jit(jax.vmap(pac.failure, in_axes=(0, None)))(keys, experiment))


@pytest.mark.slow
def test_at_its_sample_size_a_search_fails_more_rarely_than_it_says() -> None:
    learner = thresholds.power_search(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2)
    n = learner.sample_size(alpha=0.2, beta=0.1)
    assert failures(learner, 64, n, 4).mean() < 0.1
    assert failures(learner, 64, n // 40, 4).mean() > 0.5  # negative control: too few examples


def test_the_sample_grows_with_log_d_by_powers_and_with_the_root_of_d_by_lengths() -> None:
    def size(make: Callable[..., Any], bits: int) -> int:
        # At a small epsilon and a large alpha the search decides, not the generalisation.
        return make(bits=bits, epsilon=0.01, delta=1e-6, alpha=0.9).sample_size(alpha=0.9, beta=0.1)

    powers, lengths = ([size(make, bits) for bits in (16, 64, 256, 1024)] for make, *_ in SEARCHES.values())
    assert powers[-1] / powers[0] < 3
    growth = lengths[-1] / lengths[-2]  # d grows fourfold: its root doubles, times a logarithm
    assert 2 < growth < 2.7


@pytest.mark.parametrize("name", SEARCHES)
def test_the_parts_add_up_to_the_guarantee(name: str) -> None:
    make, _, parts = SEARCHES[name]
    for bits in (1, 2, 3, 4, 64, 1024):
        learner = make(bits=bits, epsilon=1.0, delta=1e-6, alpha=0.2)
        comparisons = int(learner.comparisons())
        assert comparisons == (bits if name == "length" else int(np.ceil(np.log2(bits + 1))))
        if name == "power":
            assert comparisons * float(learner.comparison_epsilon()) <= 3 / 8 * (1 + 1e-6)
        assert learner.guarantee() == learner.claimed_guarantee()
    printed = make(bits=64, epsilon=1.0, delta=1e-6, alpha=0.2, calibration="printed").guarantee()
    assert printed.epsilon == 1.5
    np.testing.assert_allclose(printed.delta, 1e-6 / parts * (parts - 2 + np.exp(0.5)))


@pytest.mark.parametrize("name", SEARCHES)
def test_every_part_has_its_share_of_delta(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Both runs of A_dist and, when searching lengths, the comparisons, which are composed with a delta."""
    make, _, parts = SEARCHES[name]
    learner = make(bits=64, epsilon=1.0, delta=1e-2, alpha=0.2)
    gap, both = np.array([20.0, 50.0], np.float32), np.ones(2, bool)
    monkeypatch.setattr(intervals, "best_blocks", lambda *seen: types.SimpleNamespace(gap=gap, exists=both))
    unit = 2 / 0.25
    keep = [laplace_tail((2 + unit * np.log(parts / (2 * 1e-2)) - float(one)) / unit) for one in gap]
    np.testing.assert_allclose(np.exp(jax.jit(lambda k: learner._blocks(None, k)[1])(0)), keep, rtol=1e-5)
    if name == "length":
        expected = closed_form_epsilon(3 / 8, 1e-2 / 3, 64)
        np.testing.assert_allclose(learner.comparison_epsilon(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", SEARCHES)
def test_searches_turn_by_coins_of_their_own_as_their_law_says(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each comparison passes for large with probability 0.3, whatever is compared: runs against the law of the length."""
    learner = SEARCHES[name][0](bits=3, epsilon=1.0, delta=0.1, alpha=0.2)
    both = np.log(np.array([0.3, 0.7], np.float32))
    monkeypatch.setattr(type(learner), "log_turns", lambda *seen: (both[0], both[1]))
    pieces: Any = types.SimpleNamespace(exponent=jnp.int32(3), last=wide.from_ints([8], 4)[0])

    @jax.jit
    def both_of_them(seed: Any) -> Any:
        keys = jax.random.split(jax.random.key(seed), 1000)
        return learner.log_search(pieces)[:4], jax.vmap(lambda key: learner.search(key, pieces)[0])(keys)

    log_law, found = jax.device_get(both_of_them(0))
    law = np.exp(log_law.astype(np.float64))
    expected, counts = 1000 * law / law.sum(), np.bincount(found, minlength=4)
    assert stats.chisquare(counts, expected).pvalue > 2e-5 > stats.chisquare(counts[::-1], expected).pvalue


def test_the_first_block_that_is_kept_gives_the_hypotheses_and_one_is_chosen_by_its_law(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A is kept with probability 1/2 and B with 1/4: the ends start at 0, at 32 where only B is kept, or nothing is released."""
    learner = thresholds.power_search(bits=6, epsilon=1.0, delta=0.1, alpha=0.2)
    keep, choice = jnp.array([0.5, 0.25]), np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    blocks = types.SimpleNamespace(start=wide.from_ints([0, 32], 7))
    monkeypatch.setattr(type(learner), "search", lambda self, key, pieces: (jnp.int32(3), {}))
    monkeypatch.setattr(type(learner), "_blocks", lambda *seen: (blocks, jnp.log(keep), jnp.log1p(-keep)))
    monkeypatch.setattr(type(learner), "_log_choice", lambda *seen: (None, jnp.log(choice)))
    pieces: Any = types.SimpleNamespace(exponent=jnp.int32(6), last=wide.from_ints([64], 7)[0], limbs=1)
    draw = jax.jit(jax.vmap(lambda key: learner.draw(key, pieces)[:2]))
    ends, kept = draw(jax.random.split(jax.random.key(0), 4000))
    seen = np.where(kept, ends[:, 0] // 4, 16)  # quarters of 16 points
    expected = np.zeros(17)
    expected[:5], expected[8:13], expected[16] = 0.5 * choice, 0.125 * choice, 0.375
    there = expected > 0
    counts = np.bincount(seen, minlength=17)
    assert not counts[~there].any() and stats.chisquare(counts[there], 4000 * expected[there]).pvalue > 2e-5


@pytest.mark.slow
def test_a_run_says_what_length_it_found() -> None:
    """Ones up to 99 and zeros from 108 on: the shortest interval that holds many of both has 14 points, so the exponent is 4."""
    xs = [*range(50, 100)] * 20 + [*range(108, 158)] * 20
    sample = Sample(x=wide.from_ints(xs, 40), y=[int(x < 104) for x in xs])
    for make, _, _ in SEARCHES.values():
        outcome = make(bits=40, epsilon=50.0, delta=1e-3, alpha=0.1)(jax.random.key(0), sample)
        assert int(outcome.info["exponent"]) == 4
        assert 96 <= wide.to_ints(outcome.hypothesis)[0] <= 112
        if "length" in outcome.info:
            assert 8 < wide.to_ints(outcome.info["length"])[0] <= 16


def test_what_cannot_be_promised_is_refused() -> None:
    learner = thresholds.power_search(bits=8, epsilon=1.0, delta=0.1, alpha=0.2)
    with pytest.raises(ValueError, match=r"alpha must be >= 0\.2"):
        learner.sample_size(alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match=r"beta must be > 0.1, that is delta times 1, got 0.1"):
        learner.sample_size(alpha=0.2, beta=0.1)
    with pytest.raises(ValueError, match="comparisons"):
        bounds.interval_search_thresholds(
            0, 0.2, 0.1, comparison_epsilon=1.0, stability_epsilon=1.0, stability_delta=1e-6, choice_epsilon=1.0
        )


def test_odds_of_hypotheses_that_are_right_on_millions_move_by_what_is_said():
    """By an eighth of epsilon, halved, times 2, as two scores move apart by 1 each; on 2^24 examples it was up to 1.4 times that."""
    learner, n = thresholds.power_search(bits=8, epsilon=0.7, delta=1e-6, alpha=0.1), 2**24 - 2
    ends = np.arange(5, dtype=np.uint32)[:, None]

    @jax.jit
    def log_p(values: Any) -> Any:
        pieces: Any = types.SimpleNamespace(locate=lambda end: end[0].astype(jnp.int32), values=values)
        return learner._log_choice(pieces, ends)[1]

    def odds(more: int) -> float:
        found = log_p(np.array([n // 2 + 7 + more, n // 2 - more, 0, 0, 0], np.float32))
        return float(found[0] - found[1])

    found = np.diff([odds(more) for more in range(8)])
    np.testing.assert_allclose(found, 0.7 / 8, rtol=1e-5)
