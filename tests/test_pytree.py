"""Frozen pytrees: pickle, `jax.export`, and what their repr shows."""

import dataclasses
import importlib
import pickle
import pkgutil
import subprocess
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import MultiSample, Outcome, Points, Sample, Status
from dpjax.core import show
from dpjax.core.pytree import frozen, static
from dpjax.domains import events, wide
from dpjax.learners import thresholds
from dpjax.learners.thresholds.base import ThresholdLearner
from dpjax.mechanisms import laplace


@frozen
class Recipe:
    """Every kind of static value."""

    scale: float
    words: tuple = static(default=("a", ("b", 1), ()))
    count: int = static(default=3)
    flag: bool = static(default=True)
    nothing: None = static(default=None)
    rate: float = static(default=float("inf"))
    size: int = static(default=np.int32(7))


def sample(**promises):
    return Sample(x=wide.from_ints([3, 2**40], 64), y=[1, 0], **promises)


VALUES = [
    Recipe(scale=jnp.float32(2.0)),
    sample(),
    sample(realizable=True),
    Points.create(wide.from_ints([3, 2**40], 64), ordered=True),
    MultiSample.create(wide.from_ints([3, 2**40], 64), [[1, 0, 1], [0, 0, 1]]),
    Outcome.of(jnp.array([0, 7], jnp.uint32), Status.OK, {"chosen": jnp.int32(3), "more": None}),
    thresholds.exponential(bits=24, epsilon=1.0),
]
IDS = [type(value).__name__ for value in VALUES]


def same(one, two):
    return jax.tree.structure(one) == jax.tree.structure(two) and all(
        np.array_equal(a, b) and np.dtype(a.dtype) == np.dtype(b.dtype)
        for a, b in zip(map(jnp.asarray, jax.tree.leaves(one)), map(jnp.asarray, jax.tree.leaves(two)), strict=True)
    )


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_pickle(value):
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is type(value) and same(again, value)


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_functions_of_pytrees_can_be_exported(value):
    """Serialized and read again, the function takes the value and returns it, static values and all."""
    exported = jax.export.export(jax.jit(lambda tree: (tree, jnp.float32(1.0))))(value)
    again = jax.export.deserialize(exported.serialize())
    assert again.in_tree == exported.in_tree and again.out_tree == exported.out_tree
    assert same(again.call(value)[0], value)


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_equal_in_every_number_is_equal(value):
    again = jax.tree.map(lambda leaf: np.array(leaf), value)
    assert (value == again) is True and hash(value) == hash(again) and value in [again]
    leaves, structure = jax.tree.flatten(value)
    for i in (i for i, leaf in enumerate(leaves) if np.size(leaf)):
        assert (value == jax.tree.unflatten(structure, [*leaves[:i], leaves[i] + 1, *leaves[i + 1 :]])) is False
    assert value != "another thing" and value != Recipe(scale=3.0)


def test_arrays_of_other_shapes_are_not_equal():
    assert Recipe(scale=np.ones(2)) != Recipe(scale=np.ones(3)) != Recipe(scale=1.0)
    one, again, other = (Recipe(scale=jax.random.key(seed)) for seed in (0, 0, 1))
    assert one == again != other and hash(one) == hash(again)
    exact, rounded = Recipe(scale=np.float64(0.1)), Recipe(scale=jnp.float32(0.1))
    assert exact != rounded and exact == Recipe(scale=0.1) and hash(exact) == hash(Recipe(scale=0.1))
    assert Recipe(scale=np.int64(2**32 + 1)) != Recipe(scale=jnp.int32(1)) != one != Recipe(scale=jnp.zeros(()))
    assert rounded == Recipe(scale=np.float64(np.float32(0.1))) and hash(jax.eval_shape(lambda: rounded))


def test_what_cannot_be_exported_says_so():
    @frozen
    class Odd:
        function: object = static()

    exported = jax.export.export(jax.jit(lambda tree: jnp.float32(1.0)))(Odd(function=test_pickle))
    with pytest.raises(TypeError, match="static values that are literals"):
        exported.serialize()


def test_text_is_no_number():
    with pytest.raises(
        TypeError, match=r"Named\.relation must be static, as text is no number: relation: str = static\(\)"
    ):

        @frozen
        class Named:
            relation: str = "REPLACE_ONE"


def test_a_class_may_be_defined_again():
    """As in a notebook whose cell runs twice."""

    def cell():
        @frozen
        class Again:
            size: int = static()

        return Again(size=3)

    assert cell().size == cell().size == 3


PICKLED_HERE = """
import pickle, sys
from dpjax.learners import thresholds
sys.stdout.buffer.write(pickle.dumps(thresholds.exponential(bits=24, epsilon=1.0)))
"""


def test_pickles_pass_between_processes():
    done = subprocess.run([sys.executable, "-c", PICKLED_HERE], capture_output=True, check=True)
    assert same(pickle.loads(done.stdout), thresholds.exponential(bits=24, epsilon=1.0))


def classes():
    """All frozen classes of the package; `interop` needs extras and has none."""
    modules = [
        m.name
        for m in pkgutil.walk_packages(dpjax.__path__, "dpjax.")
        if m.name.split(".")[1] not in ("plotting", "interop")
    ]
    found = {c for name in modules for c in vars(importlib.import_module(name)).values() if isinstance(c, type)}
    return [c for c in found if c.__module__.startswith("dpjax") and "__dataclass_fields__" in vars(c)]


def test_every_class_is_found_where_it_says():
    """Pickle needs this."""
    assert len(classes()) > 60
    for cls in classes():
        assert getattr(importlib.import_module(cls.__module__), cls.__qualname__) is cls


# --------------------------------------------------------------------------------------------------------------- repr


def test_samples_show_counts_and_integers():
    assert repr(sample()) == "Sample(n_valid=2, rows=2, x=[3, 1099511627776], y=[1, 0])"
    assert (
        repr(sample(ordered=True).padded()) == "Sample(n_valid=2, rows=3, x=[3, 1099511627776], y=[1, 0], ordered=True)"
    )
    assert repr(Points.create(wide.from_ints(range(100), 8), 50)) == "Points(n_valid=50, rows=100, x=[0, 1, 2, 3, ...])"
    assert repr(VALUES[4]) == "MultiSample(n_valid=2, rows=2, k=3, x=[3, 1099511627776])"


def test_outcomes_show_the_status_by_name():
    assert repr(VALUES[5]) == "Outcome(hypothesis=7, status=OK, info={chosen: 3, more: None})"
    bottom = Outcome.of(jnp.zeros((2, 1), jnp.uint32), Status.BOTTOM, {})
    assert repr(bottom) == "Outcome(hypothesis=[0, 0], status=BOTTOM, info={})"


def test_values_that_are_not_known_are_shown_by_shape():
    seen = []
    jax.jit(lambda tree: (seen.append(repr(tree)), tree)[1])(sample())
    jax.vmap(lambda tree: (seen.append(repr(tree)), tree)[1])(jax.tree.map(lambda leaf: leaf[None], sample()))
    assert seen == ["Sample(n_valid=int32[], x=uint32[2,2], y=int32[2])"] * 2
    batched = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), sample())
    assert repr(batched) == "Sample(n_valid=[2, 2, 2], x=uint32[3,2,2], y=int32[3,2])"
    batched = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), VALUES[5])
    assert repr(batched) == "Outcome(hypothesis=[7, 7, 7], status=[OK, OK, OK], info={chosen: [3, 3, 3], more: None})"
    assert repr(jax.tree.map(lambda leaf: object, VALUES[5])).startswith("Outcome(hypothesis=<class 'object'>")


def test_learners_show_numbers():
    text = repr(thresholds.exponential(bits=24, epsilon=0.1))
    assert text == "ThresholdExponential(bits=24, epsilon=0.1, limbs=1)"
    assert repr(VALUES[0]).startswith("Recipe(scale=2.0, words=('a', ('b', 1), ()), count=3")
    assert repr(laplace.mechanism(epsilon=1.0)).count("Array") == 0


def test_wide_integers_are_shown_as_integers():
    """They are the fields whose last axis is called limbs."""
    event, text = events.Interval.of((3, 2**40), 2), "Interval(low=3, high=1099511627776)"
    traced = []
    jax.jit(lambda _: traced.append(repr(event)))(0.0)  # known numbers stay known where others are traced
    assert [repr(event), *traced] == [text, text]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (jnp.arange(9), "int32[9]"),
        (jnp.zeros((2, 2)), "float32[2,2]"),
        (np.array([True]), "[True]"),
        ((jnp.int32(1),), "(1,)"),
        ([np.float32(0.1), "a"], "[0.1, 'a']"),
        (jax.ShapeDtypeStruct((3,), jnp.uint32), "uint32[3]"),
    ],
)
def test_short(value, text):
    assert show.short(value) == text


def test_keys_are_not_shown():
    assert show.short(jax.random.key(0)) == "key<fry>[]"


def test_keys_of_two_generators_are_not_equal():
    """Both are made of the same words."""
    one, other = (jax.random.key(0, impl=impl) for impl in ("rbg", "unsafe_rbg"))
    assert jnp.array_equal(jax.random.key_data(one), jax.random.key_data(other))
    assert Recipe(scale=one) == Recipe(scale=jax.random.clone(one)) != Recipe(scale=other)


def test_a_few_entries_are_listed_whole():
    assert show.listed(list(range(8))) == "[0, 1, 2, 3, 4, 5, 6, 7]"
    assert show.listed(list(range(9))) == "[0, 1, 2, 3, ...]"


def test_an_algorithm_that_is_no_pytree_says_how_to_make_it_one():
    class Undecorated(ThresholdLearner):
        bits, limbs, epsilon = 64, 2, 1.0

    for call in (lambda one: one(jax.random.key(0), sample()), lambda one: one.probability(sample(), (0, 1))):
        with pytest.raises(TypeError, match=r"Undecorated must be a pytree: decorate .* @dpjax\.core\.pytree\.frozen"):
            call(Undecorated())


def test_equality_does_not_round_a_float_to_32_bits():
    """Else a number would equal two that differ, and equal objects would have different hashes."""
    made = thresholds.exponential(bits=6, epsilon=0.1)
    narrow, broad = (dataclasses.replace(made, epsilon=value) for value in (jnp.float32(0.1), 0.1))
    assert broad == made != narrow != broad and hash(broad) == hash(made)
