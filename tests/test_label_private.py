"""The label-private learner (BNS §6.1): private for labels and for nothing else, and as cheap as the theorem says, on every domain."""

import dataclasses
import functools
import itertools
import math
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value

from dpjax import Points, Sample, bounds, check
from dpjax.accounting import ADD_OR_REMOVE_ONE, REPLACE_LABEL, REPLACE_ONE, Guarantee
from dpjax.concepts import points as point_concept
from dpjax.concepts import rectangles as rectangle_concept
from dpjax.concepts import thresholds as threshold_concept
from dpjax.data.examples import Examples
from dpjax.data.outcome import Status
from dpjax.domains import wide
from dpjax.learners import label_private, thresholds
from dpjax.multi import direct_sum
from dpjax.verify.plain import label_private as twin


def segments(bits: int) -> Any:
    """Rectangles on a line."""
    return label_private.rectangles(bits=bits, axes=1, most=7)


def squares(bits: int) -> Any:
    """Rectangles in the plane."""
    return label_private.rectangles(bits=bits, axes=2, most=7)


CLASSES = [label_private.thresholds, label_private.points]
over_classes = pytest.mark.parametrize("concepts", CLASSES)
over_first_class = pytest.mark.parametrize("concepts", [CLASSES[0], *map(builders.thorough, CLASSES[1:])])
EVERY = [*CLASSES, label_private.parities, segments]
over_every = pytest.mark.parametrize("concepts", [CLASSES[0], *map(builders.thorough, EVERY[1:])])
SLOW = [pytest.param(concepts, marks=pytest.mark.slow) for concepts in EVERY[2:]]
over_every_if_slow = pytest.mark.parametrize("concepts", [*map(builders.thorough, CLASSES), *SLOW])
ALPHA = BETA = 0.2


def learner(concepts: Any, bits: int = 2, epsilon: float = 1.0, **given: Any) -> Any:
    return label_private.label_private(concepts=concepts(bits=bits), epsilon=epsilon, **given)


# ------------------------------------------------------------------------------------------------------------- privacy


@over_every
@pytest.mark.parametrize("epsilon", [0.5, builders.slow(2.0)])
def test_it_is_private_for_labels_and_needs_its_epsilon(concepts: Any, epsilon: float) -> None:
    """All labellings of all multisets of five examples on two points: the guarantee holds, and less is refuted."""
    report = check(learner(concepts, epsilon=epsilon), n=5, domain=2)
    assert report.relation == REPLACE_LABEL and report.exact and report.holds
    share = 0.75 if concepts in CLASSES else 0.6
    assert report.refutes(Guarantee(share * epsilon, 0.0, REPLACE_LABEL))
    assert report.worst_pair[0] != report.worst_pair[1]
    assert [x for *x, _ in report.worst_pair[0]] == [x for *x, _ in report.worst_pair[1]]


@pytest.mark.thorough
@over_first_class
def test_examples_in_order_have_the_same_law(concepts: Any) -> None:
    """All labellings of all multisets of three examples on four points: equal points stay apart where examples come in order."""
    algorithm, worst = learner(concepts), 0.0
    multisets = [*itertools.combinations_with_replacement(range(4), 3)]
    samples = [
        sorted(zip(points, labels, strict=True), key=lambda one: (one[0], -one[1]))
        for points in multisets
        for labels in itertools.product((0, 1), repeat=3)
    ]

    @functools.partial(jax.jit, static_argnums=1)
    def laws_of(samples: Any, ordered: bool) -> Any:
        law = lambda one: algorithm.pmf(Sample(x=one[:, :1], y=one[:, 1], ordered=ordered).padded(5))  # noqa: E731
        return jax.vmap(law)(samples)

    one, other = (np.asarray(laws_of(np.uint32(samples), ordered)) for ordered in (True, False))
    np.testing.assert_allclose(one, other, atol=1e-6)
    for laws in np.log(one + 1e-30).reshape(len(multisets), 8, -1):
        replaced = [np.abs(laws[i] - laws[i ^ 1 << j]).max() for i in range(8) for j in range(3)]
        worst = max(worst, *replaced)
    assert 0.5 < worst < 1 + 1e-5  # epsilon is 1, under REPLACE_LABEL


@pytest.mark.slow
def test_so_it_is_in_the_plane() -> None:
    """All labellings of all multisets of three corners of a square; points themselves are not protected."""
    algorithm = learner(squares, bits=1)
    report = check(algorithm, n=3, domain=2)
    assert report.relation == REPLACE_LABEL and report.exact and report.holds
    assert report.refutes(Guarantee(0.7, 0.0, REPLACE_LABEL))
    assert check(algorithm, n=2, domain=2, relation=REPLACE_ONE).refutes(Guarantee(50.0, 0.01, REPLACE_ONE))


@pytest.mark.slow
def test_parities_do_not_protect_points() -> None:
    report = check(learner(label_private.parities), n=2, domain=4, relation=REPLACE_ONE)
    assert report.guarantee is None and report.refutes(Guarantee(50.0, 0.01, REPLACE_ONE))


@pytest.mark.thorough
@pytest.mark.parametrize("concepts", [CLASSES[0], builders.thorough(CLASSES[1]), *SLOW])
def test_so_it_is_with_examples_that_give_points_only(concepts: Any) -> None:
    """All labels of all sequences of four examples on three points; labels of examples that give points only do not matter at all."""
    report = check(learner(concepts, unlabelled=2), n=4, domain=3, ordered=True)
    assert (
        report.exact
        and report.holds
        and report.refutes(Guarantee(0.7 if concepts in CLASSES else 0.5, 0.0, REPLACE_LABEL))
    )
    ignored = learner(concepts, unlabelled=4)
    assert check(ignored, n=2, domain=3, ordered=True).epsilon_at(0.0) == pytest.approx(0.0, abs=1e-12)


@over_every_if_slow
@pytest.mark.parametrize("relation", [REPLACE_ONE, builders.slow(ADD_OR_REMOVE_ONE)])
def test_points_are_not_protected(concepts: Any, relation: str) -> None:
    """Negative control: a point that is there can be the answer, one that is not cannot."""
    report = check(learner(concepts), n=2, domain=3, relation=relation)
    assert report.guarantee is None and report.refutes(Guarantee(30.0, 0.01, relation))


class SaysHalf:
    """A learner that spends twice the epsilon that it states."""

    bits = 2

    def __init__(self, learner: Any) -> None:
        self.pmf, self.run, self.epsilon = learner.pmf, learner, float(learner.epsilon)

    def __call__(self, key: Any, data: Any) -> Any:
        return self.run(key, data)

    def guarantee(self) -> Guarantee:
        return Guarantee(self.epsilon / 2, 0.0, REPLACE_LABEL)


@pytest.mark.thorough
def test_half_the_noise_is_refuted() -> None:
    """Negative control."""
    assert check(SaysHalf(learner(label_private.points)), n=3, domain=2).holds is False


def semi(concepts: Any, xs: Any, bits: int = 2) -> Any:
    public: Any = builders.points_of(xs, bits)
    if concepts is segments:
        public = Examples.create(public.x[:, None], np.zeros(len(xs)))
    return label_private.semi_private(concepts=concepts(bits=bits), public=public, epsilon=1.0)


@over_every_if_slow
def test_with_public_points_examples_are_protected_whole(concepts: Any) -> None:
    """All multisets of three examples, beside two public points, one of which no example has."""
    report = check(semi(concepts, [1, 3]), n=3, domain=3)
    assert report.relation == REPLACE_ONE and report.exact and report.holds
    assert report.refutes(Guarantee(0.7, 0.0, REPLACE_ONE))


@pytest.mark.thorough
@pytest.mark.parametrize("relation", [REPLACE_ONE, REPLACE_LABEL])
def test_what_protects_examples_protects_labels(relation: str) -> None:
    report = check(thresholds.exponential(bits=2, epsilon=1.0), n=3, domain=3, relation=relation)
    assert report.holds and report.guarantee == Guarantee(1.0, 0.0, relation)


@pytest.mark.slow
def test_k_of_them_protect_all_labels_of_an_example() -> None:
    """A direct sum of two: all labels of one example are replaced at once; basic composition holds, and is needed."""
    summed = direct_sum.direct_sum(
        lambda each: label_private.label_private(concepts=label_private.points(bits=1), epsilon=each.epsilon),
        k=2,
        epsilon=1.0,
        relation=REPLACE_LABEL,
    )
    assert summed.guarantee() == Guarantee(1.0, 0.0, REPLACE_LABEL)
    report = check(summed, n=2, domain=2)
    assert report.relation == REPLACE_LABEL and report.exact and report.holds
    assert report.refutes(Guarantee(0.5, 0.0, REPLACE_LABEL))
    with pytest.raises(ValueError, match="make must build a learner that keeps its budget"):
        direct_sum.direct_sum(
            lambda each: label_private.label_private(concepts=label_private.points(bits=1), epsilon=each.epsilon),
            k=2,
            epsilon=1.0,
        )


# ------------------------------------------------------------------------------------------------------------- the law

_XS = [1, 1, 4, 4, 4, 6, 2, 6, 1, 4]
_YS = [1, 0, 0, 1, 0, 0, 1, 0, 1, 1]


def plain_law(kind: str, xs: Any, ys: list[int], unlabelled: int | None, epsilon: float) -> dict[Any, float]:
    """The law by the plain twin, over X_3 (X_2^2 for rectangles), thresholds 0, ..., 8, points with 8 for all-zero."""
    named = xs if unlabelled is None else xs[:unlabelled]
    labelled = list(zip(xs, ys, strict=True))[unlabelled or 0 :]
    says: Any = {
        "thresholds": lambda c, x: x < c,
        "points": lambda c, x: x == c,
        "parities": lambda v, x: (v & x).bit_count() % 2 == 1,
        "rectangles": twin.in_box,
    }[kind]
    every: Any = {"thresholds": range(9), "points": [8, *range(8)], "parities": range(8)}.get(kind, twin.boxes(4, 2))
    return twin.label_private_law(labelled, named, every, says, epsilon)


@pytest.mark.parametrize("unlabelled", [None, builders.slow(3)])
@pytest.mark.parametrize("concepts", [*CLASSES, label_private.parities])
def test_the_law_is_that_of_the_plain_twin(concepts: Any, unlabelled: int | None) -> None:
    sample = builders.sample_of(_XS, _YS, 3, 15)
    found = np.asarray(learner(concepts, bits=3, unlabelled=unlabelled).pmf(sample))
    expected = np.zeros(10 if concepts in CLASSES else 9)
    for concept, p in plain_law(concepts.__name__, _XS, _YS, unlabelled, 1.0).items():
        expected[concept] = p
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("unlabelled", [builders.slow(None), 5])
def test_so_is_that_of_rectangles(unlabelled: int | None) -> None:
    """In the plane, with ties on both axes, points that no named point shares a coordinate with, and a repeated point."""
    xs = [(0, 1), (2, 1), (2, 3), (0, 1), (3, 0), (1, 2), (2, 2), (1, 0)]
    ys = [1, 0, 1, 1, 0, 1, 1, 0]
    examples = Examples.create(wide.from_ints([c for x in xs for c in x], 2).reshape(8, 2, 1), ys)
    algorithm = learner(squares, bits=2, unlabelled=unlabelled)
    found = np.asarray(algorithm.pmf(examples))
    expected = np.zeros(4**4 + 2)
    for box, p in plain_law("rectangles", xs, ys, unlabelled, 1.0).items():
        (a, b), (c, d) = box
        expected[4**4 if a > b else ((a * 4 + b) * 4 + c) * 4 + d] += p
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    law = rectangle_concept.uniform(bits=2, low=[0, 1], high=[2, 2])
    near = sum(
        p
        for box, p in plain_law("rectangles", xs, ys, unlabelled, 1.0).items()
        if sum(twin.in_box(box, x) != twin.in_box(((0, 2), (1, 2)), x) for x in itertools.product(range(4), repeat=2))
        <= 4
    )
    assert 0.1 < near < 0.95
    assert float(algorithm.probability(examples, law.within(0.25))[0]) == pytest.approx(near, rel=1e-5)
    np.testing.assert_allclose(algorithm.probability(examples, algorithm.anything()), [1, 0], atol=1e-6)


@pytest.mark.thorough
def test_what_cannot_be_listed_is_refused_or_bottom() -> None:
    spanning = builders.sample_of([1, 2, 4, 7], [1, 0, 1, 1], 3, 7)
    small = learner(lambda bits: label_private.parities(bits=bits, rank=2), bits=3)
    with pytest.raises(ValueError, match=r"sample\.x must span at most 2 dimensions"):
        small.pmf(spanning)
    traced = jax.jit(lambda sample: (small(jax.random.key(0), sample).status, small.pmf(sample)))(spanning)
    assert traced[0] == Status.BOTTOM and traced[1][-1] == 1.0
    many = Examples.create(wide.from_ints(range(8), 3).reshape(8, 1, 1), [1] * 8)
    with pytest.raises(ValueError, match="at most 7 distinct points"):
        learner(segments, bits=3).pmf(many)
    assert not jnp.isnan(learner(segments, bits=3, unlabelled=7).pmf(many)).any()
    nothing = dataclasses.replace(many, n_valid=jnp.int32(0))
    assert learner(segments, bits=3).pmf(nothing)[-2] == 1.0  # all-zero: no examples, no other dichotomy
    assert int(learner(segments, bits=3)(jax.random.key(0), nothing).status) == Status.OK
    with pytest.raises(ValueError, match="most must leave at most"):
        label_private.rectangles(bits=3, axes=3, most=20)
    with pytest.raises(ValueError, match=r"examples\.x must have shape"):
        learner(squares).pmf(many)
    with pytest.raises(ValueError, match=r"examples\.x"):
        learner(segments, bits=2).pmf(many)


@pytest.mark.slow
def test_a_parity_in_a_small_span_of_a_wide_domain() -> None:
    """32 examples in a span of dimension 3 of {0,1}^40: eight parities, of which the right one is found."""
    xs, v = [1, 2**39, 2**39 + 1, 2**20 + 2**3] * 8, 2**39 + 2**3
    sample = builders.sample_of(xs, [(x & v).bit_count() % 2 for x in xs], 39)
    algorithm = learner(lambda bits: label_private.parities(bits=bits, rank=3), bits=40, epsilon=2.0)
    outcome = algorithm(jax.random.key(0), sample)
    assert int(outcome.info["choices"]) == 8 and wide.to_ints(outcome.hypothesis[None]) == [v]
    assert float(algorithm.failure_probability(sample, error=0.0)) < 1e-2


@pytest.mark.thorough
@over_classes
def test_public_points_are_as_examples_without_labels(concepts: Any) -> None:
    split = learner(concepts, bits=3, unlabelled=3).pmf(builders.sample_of(_XS, _YS, 3, 15))
    found = semi(concepts, _XS[:3], bits=3).pmf(builders.sample_of(_XS[3:], _YS[3:], 2, 15))
    np.testing.assert_allclose(found, split, rtol=1e-5, atol=1e-7)


@pytest.mark.slow  # conformance, with wider domains
@over_classes
def test_the_sampler_follows_the_law(concepts: Any) -> None:
    sample = builders.sample_of(_XS, _YS, 3, 15)
    algorithm = learner(concepts, bits=3, unlabelled=3)
    run = jax.jit(jax.vmap(algorithm, in_axes=(0, None)))
    outcomes = jax.device_get(run(jax.random.split(jax.random.key(3), 4096), sample))
    assert not outcomes.status.any()
    h = outcomes.hypothesis
    place = h[:, -1] if concepts is label_private.thresholds else np.where(h.zero, 8, h.position[:, -1])
    counts = np.bincount(place, minlength=10)
    for epsilon, follows in ((1.0, True), (2.0, False)):  # the second is the negative control
        law = np.asarray(dataclasses.replace(algorithm, epsilon=epsilon).pmf(sample), np.float64)
        assert (p_value(counts, 4096 * law / law.sum()) > FALSE_ALARM) == follows


@over_first_class
def test_success_and_failure_are_sums_over_the_law(concepts: Any) -> None:
    sample = builders.sample_of(_XS, _YS, 3, 15)
    algorithm, plain = learner(concepts, bits=3), plain_law(concepts.__name__, _XS, _YS, None, 1.0)
    says = (lambda c, x: x < c) if concepts is label_private.thresholds else (lambda c, x: x == c)
    wrong = {c: sum(says(c, x) != y for x, y in zip(_XS, _YS, strict=True)) for c in plain}
    expected = sum(p for c, p in plain.items() if wrong[c] <= 4)
    assert 0.1 < expected < 0.9

    @jax.jit
    def found(sample: Sample) -> Any:
        success, failure = (
            of(sample, error=0.4) for of in (algorithm.success_probability, algorithm.failure_probability)
        )
        return success, failure, algorithm.probability(sample, (2, 6))[0]

    inside = sum(p for c, p in plain.items() if 2 <= c < 6)
    assert [*map(float, found(sample))] == pytest.approx([expected, 1 - expected, inside], rel=1e-5)


# --------------------------------------------------------------------------------------------------- how many suffice


def shuffled(sample: Sample, seed: int) -> Sample:
    """The examples in the order in which they might have been drawn."""
    n = int(sample.n_valid)
    order = np.r_[np.random.default_rng(seed).permutation(n), np.arange(n, sample.rows)]
    return Sample(x=np.asarray(sample.x)[order], y=np.asarray(sample.y)[order], n_valid=n)


@functools.cache
def size(concepts: Any, unlabelled: int | None) -> int:
    return learner(concepts, unlabelled=unlabelled).sample_size(alpha=ALPHA, beta=BETA)


@pytest.mark.parametrize("split", [False, builders.slow(True)])
@over_first_class
def test_the_stated_number_suffices(concepts: Any, split: bool) -> None:
    """The exact failure probability given the sample, on three samples."""
    n = math.ceil(bounds.label_private_unlabelled(1, ALPHA, BETA)) if split else None
    m = size(concepts, n)
    if concepts is label_private.thresholds:
        law: Any = threshold_concept.log_uniform(bits=30)
    else:
        masses = [0.25, *[0.75 / 9] * 9]
        law = point_concept.point_masses(bits=30, points=[2**i for i in range(10)], masses=masses, target=1)
    algorithm, capacity = learner(concepts, bits=30, unlabelled=n), (1 << m.bit_length()) - 1
    for seed in range(3):
        sample = shuffled(law.sample(jax.random.key(seed), capacity, m), seed)
        assert float(algorithm.probability(sample, law.within(ALPHA))[1]) <= BETA


def uniform_box() -> Any:
    return rectangle_concept.log_uniform(bits=30, low=[2**28], high=[3 * 2**28], mass=0.4)


@pytest.mark.slow  # for thresholds and points: the test before
def test_the_stated_number_suffices_for_segments() -> None:
    """On a line at alpha = 1/2, where all boxes of that many points can be listed."""
    concepts = label_private.rectangles(bits=30, axes=1, most=511)
    algorithm, law = label_private.label_private(concepts=concepts, epsilon=4.0), uniform_box()
    m = algorithm.sample_size(alpha=0.5, beta=0.5)
    assert m == math.ceil(bounds.label_private_whole(2, 0.5, 0.5, 4.0)) <= 511
    for seed in range(2):
        assert float(algorithm.probability(law.sample(jax.random.key(seed), 511, m), law.within(0.5))[1]) <= 0.5


def test_sizes_follow_the_vc_dimension() -> None:
    """2D for rectangles; d for parities, of which there are no more than 2^d."""
    square, parity = learner(squares, bits=30), learner(label_private.parities, bits=30)
    assert square.sample_size(alpha=0.1, beta=0.1) == bounds.label_private_whole(4, 0.1, 0.1, 1.0)
    log = 30 * math.log(2)
    m = parity.sample_size(alpha=0.1, beta=0.1)
    assert m == math.ceil(160 * (log + math.log(80))) < bounds.label_private_whole(30, 0.1, 0.1, 1.0)


def test_sizes_do_not_know_the_domain() -> None:
    sizes = {learner(c, bits=bits).sample_size(alpha=0.1, beta=0.1) for c in CLASSES for bits in (8, 64, 1024)}
    assert sizes == {2031}
    n = math.ceil(bounds.label_private_unlabelled(1, 0.1, 0.1))
    assert n == 7384 and learner(CLASSES[0], unlabelled=n).sample_size(alpha=0.1, beta=0.1) == 8392


@pytest.mark.slow
@pytest.mark.parametrize("bits", [8, 1024])
def test_what_it_takes_does_not_grow_with_the_domain(bits: int) -> None:
    """127 examples: enough for labels at any d; the learner that protects examples has lost at d = 1024."""
    law = threshold_concept.log_uniform(bits=bits)
    private, pure = learner(CLASSES[0], bits=bits), thresholds.exponential(bits=bits, epsilon=1.0)
    samples = [law.sample(jax.random.key(seed), 127, 127) for seed in range(4)]
    failure, other = (
        np.mean([float(a.probability(sample, law.within(0.2))[1]) for sample in samples]) for a in (private, pure)
    )
    assert failure < 2e-3
    assert other < 0.1 if bits == 8 else other > 0.9


def test_the_constants_of_theorem_6_2() -> None:
    """Printed is Theorem 2.13 at alpha/4 where the proof uses it at alpha/8; and each event of the proof is paid for."""
    assert bounds.label_private_unlabelled(3, 0.1, 0.2) == pytest.approx(bounds.realizable(3, 0.1 / 8, 0.2 / 4))
    printed = bounds.label_private_unlabelled(3, 0.1, 0.2, calibration="printed")
    assert printed == pytest.approx(bounds.realizable(3, 0.1 / 4, 0.2 / 4))
    assert printed == pytest.approx(320 * (3 * math.log(640) + math.log(40)))
    for epsilon in (0.1, 1.0, 10.0):
        n = math.ceil(bounds.label_private_unlabelled(1, 0.1, 0.1))
        r = bounds.label_private(1, 0.1, 0.1, epsilon) - n
        failures = [
            math.exp(-r * 0.1 / 24),
            (n + 1) * math.exp(-r * 0.1 / 8),
            (n + 1) * math.exp(-epsilon * r * 0.1 / 8),
        ]
        assert max(failures) == pytest.approx(0.1 / 4)
        m = bounds.label_private_whole(1, 0.1, 0.1, epsilon)
        assert 4 * (2 * m + 1) * math.exp(-0.1 * m / 16) <= 0.05 and (m + 1) * math.exp(-epsilon * 0.1 * m / 4) <= 0.05


def test_the_examples_without_errors_are_paid_for_where_epsilon_is_large() -> None:
    """A hypothesis that errs on a/8 errs on a/4 of the r others with probability exp(-r a/24), which is to be b/4; E1 of the proof."""
    alpha, beta = 0.1, 1e-6
    r = bounds.label_private(1, alpha, beta, 10.0) - math.ceil(bounds.label_private_unlabelled(1, alpha, beta))
    assert math.exp(-r * alpha / 24) == pytest.approx(beta / 4)


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"unlabelled": 0}, ValueError, "unlabelled must be"),
        ({"unlabelled": 1.5}, TypeError, "unlabelled must be"),
        ({"concepts": 3}, TypeError, "concepts must be a class"),
    ],
)
def test_bad_parameters_are_refused_by_name(given: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        label_private.label_private(**{"concepts": label_private.points(bits=3), "epsilon": 1.0, **given})


def test_too_few_or_wrong_public_points_are_refused() -> None:
    with pytest.raises(ValueError, match="public points must be at least"):
        semi(CLASSES[0], [1, 3]).sample_size(alpha=0.1, beta=0.1)
    many = semi(CLASSES[0], [1] * 7384).sample_size(alpha=0.1, beta=0.1)
    assert many == 8392 - 7384
    with pytest.raises(TypeError, match=r"public must be a dpjax\.Points"):
        label_private.semi_private(concepts=CLASSES[0](bits=2), public=[1, 3], epsilon=1.0)
    with pytest.raises(ValueError, match="public"):
        semi(lambda bits: label_private.points(bits=1), [1, 3])


def test_parities_of_another_width_are_refused() -> None:
    """Cut off, 2^32 + v would be v."""
    mine, sample = learner(label_private.parities, bits=2), Sample(x=wide.from_ints([1, 2], 2), y=[1, 0])
    with pytest.raises(ValueError, match="output must have numbers of 1 limbs, got 2"):
        mine.log_prob(sample, wide.from_ints([2**32 + 1], 34)[0])
    with pytest.raises(ValueError, match="hypothesis must have"):
        mine.predict(wide.from_ints([2**32 + 1], 34)[0], sample.x)
    with pytest.raises(ValueError, match="x must have"):
        mine.predict(wide.from_ints([1], 2)[0], wide.from_ints([2**32 + 1], 34))


@over_classes
def test_bad_data_and_sizes_are_refused(concepts: Any) -> None:
    split = learner(concepts, bits=3, unlabelled=2)
    with pytest.raises(ValueError, match="unlabelled must be >="):
        split.sample_size(alpha=0.1, beta=0.1)
    with pytest.raises(ValueError, match="alpha"):
        learner(concepts).sample_size(alpha=0.0, beta=0.1)
    with pytest.raises(ValueError, match="order in which it was drawn"):
        split.pmf(Sample(x=wide.from_ints([1, 2], 3), y=[1, 0], ordered=True))
    with pytest.raises(TypeError, match="sample must be a"):
        split.pmf([1, 2])
    with pytest.raises(ValueError, match=r"sample\.x"):
        split.pmf(Sample(x=wide.from_ints([1, 9], 4), y=[1, 0]))
    wrong = dataclasses.replace(learner(concepts, bits=3), epsilon=np.float64(-1.0))
    assert np.isnan(wrong.pmf(builders.sample_of(_XS, _YS, 3, 15))).all()


def test_points_of_another_shape_have_no_labels() -> None:
    square = learner(squares, bits=3)
    box = rectangle_concept.rectangle(bits=3, low=[0, 0], high=[2, 2])
    assert square.predict(box, np.uint32([[[1], [2]], [[1], [3]]])).tolist() == [True, False]
    with pytest.raises(TypeError, match="x must be a uint32 array"):
        square.predict(box, [[1, 2]])
    with pytest.raises(ValueError, match=r"x must have shape \(rows, 2, 1\), got \(1, 3, 1\)"):
        square.predict(box, np.zeros((1, 3, 1), np.uint32))


def test_boxes_are_listed_where_their_table_fits():
    """With one place per axis there are few boxes, but 3^20 cells."""
    for axes in (11, 12, 15):
        assert (2 * label_private.rectangles(bits=2, axes=axes).most + 1) ** axes <= 2**24
    with pytest.raises(ValueError, match="axes must be from 1 to 15, got 20"):
        label_private.rectangles(bits=2, axes=20)
    with pytest.raises(ValueError, match=r"most must leave at most .* and 16777216 cells"):
        label_private.rectangles(bits=2, axes=11, most=2)


def test_boxes_of_points_cut_out_what_boxes_can_and_count_what_they_label() -> None:
    """Against all boxes of X_2^2; one point comes twice, two are not named. In four slots they do not fit."""
    rng, named = np.random.default_rng(0), np.array([True, True, False, True, True, True, False])
    points = np.array([[0, 1], [2, 3], [1, 0], [2, 3], [3, 1], [2, 1], [3, 3]])
    ones, zeros = rng.integers(0, 5, (2, len(points))).astype(np.int32)

    def choices(most: int) -> Any:
        return label_private.rectangles(bits=2, axes=2, most=most).choices(jnp.asarray(points, jnp.uint32), named)

    @jax.jit
    def listed() -> Any:
        found = choices(most=5)
        return found.concepts, found.where, found.right(jnp.asarray(ones), jnp.asarray(zeros)), found.fits

    boxes, where, right, fits = jax.device_get(listed())
    assert fits and not jax.jit(lambda: choices(most=4).fits)()

    def within(low: Any, high: Any) -> np.ndarray:
        return np.all((np.asarray(low) <= points) & (points <= np.asarray(high)), axis=1)

    found = [within(low[:, 0], high[:, 0]) for low, high in zip(boxes.low[where], boxes.high[where], strict=True)]
    sides = list(itertools.combinations_with_replacement(range(4), 2))
    ways = {tuple(within(*zip(*box, strict=True))[named]) for box in itertools.product(sides, sides)}
    assert len(found) == len(ways) and {tuple(each[named]) for each in found} == ways
    assert right[where].tolist() == [int(np.where(each, ones, zeros).sum()) for each in found]


@pytest.mark.thorough
def test_public_points_that_are_traced_show_in_the_status_and_the_law() -> None:
    sample = Sample(x=wide.from_ints([1, 2, 3], 2), y=[1, 0, 1])

    @jax.jit
    def run(x: Any, n: Any) -> Any:
        learner = label_private.semi_private(
            concepts=label_private.thresholds(bits=2), public=Points(x=x, n_valid=n), epsilon=1.0
        )
        return learner(jax.random.key(0), sample).status, learner.pmf(sample)

    for x, n, good in (([1, 3, 2], 3, True), ([1, 9, 2], 2, False), ([1, 9, 2], 1, True), ([1, 2, 3], 7, False)):
        status, law = run(jnp.uint32(x)[:, None], jnp.int32(n))
        assert (status == Status.OK) == good and bool(np.isnan(law).all()) != good


def test_examples_of_label_private_rectangles_are_checked_as_those_of_other_learners() -> None:
    concepts = label_private.rectangles(bits=2, axes=1, most=3)
    x, y = jnp.uint32([1, 3, 2]).reshape(3, 1, 1), jnp.int32([1, 0, 1])
    for wrong, error, words in (
        ({"n_valid": jnp.int32(9)}, ValueError, "n_valid must be from 0 to 3, got 9"),
        ({"x": x.astype(jnp.int32)}, TypeError, "x must be a uint32 array"),
        ({"y": y[:2]}, ValueError, "y must have one label a row"),
    ):
        data = Examples(**({"x": x, "y": y, "n_valid": jnp.int32(3)} | wrong))
        with pytest.raises(error, match=f"examples.{words}"):
            label_private.label_private(concepts=concepts, epsilon=1.0)(jax.random.key(0), data)
        if "y" not in wrong:  # labels of public points play no part
            with pytest.raises(error, match=f"public.{words}"):
                label_private.semi_private(concepts=concepts, public=data, epsilon=1.0)
