"""What every algorithm of the registry must do: one list of tests.

Parameters and data are arguments of the compiled programs, so that an algorithm costs a handful of programs in all.
"""

import dataclasses
import functools
import pickle
from typing import Any

import builders
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frequencies import FALSE_ALARM, p_value
from registry import ENTRIES, Entry

from dpjax.accounting import Guarantee
from dpjax.data.assignments import Assignments
from dpjax.data.outcome import Status
from dpjax.data.points import Points
from dpjax.verify.audit import audit_samples

pytestmark = pytest.mark.usefixtures("no_key_twice")

TRIALS = 4096
MOST = 6  # neighbours that runs are compared with
LARGE = 100.0  # an epsilon
SURE = ("interior.threshold_learner",)  # on its data no single record matters


def over(entries: list[Entry], only_laws: bool = False, also_slow: Any = (), also_thorough: Any = ()) -> Any:
    """One test per algorithm; with `only_laws`, one per law."""
    slow = {e.name for e in entries if e.slow or (only_laws and e.law_of)} | set(also_slow)
    thorough = {e.name for e in entries if e.thorough} | set(also_thorough)

    def marks(entry: Entry) -> list[Any]:
        return [pytest.mark.slow] if entry.name in slow else [pytest.mark.thorough] if entry.name in thorough else []

    cases = [pytest.param(entry, id=entry.name, marks=marks(entry)) for entry in entries]
    return pytest.mark.parametrize("entry", cases)


def first_of_families() -> set[str]:
    """One algorithm of each family: what the shared shell does, it does for all of them."""
    return set({entry.name.partition(".")[0]: entry.name for entry in reversed(ENTRIES) if not entry.slow}.values())


def shown_in_all_forms() -> set[str]:
    """The algorithms whose laws quick tests check in all their forms: the three left out would take twelve seconds more to compile."""
    return first_of_families() - {"thresholds.erm", "interior_point.tree_score", "multi.direct_sum"}


def covered_by_families() -> set[str]:
    """Algorithms with a law that are not the first of their family: their draws on bare data follow the law on padded data (first test)."""
    return {entry.name for entry in ENTRIES if entry.law is not None} - first_of_families()


over_all = over(ENTRIES)
over_families = over(ENTRIES, also_slow={entry.name for entry in ENTRIES} - first_of_families())
over_laws = over([entry for entry in ENTRIES if entry.law is not None])
over_laws_of_rows = over(
    [entry for entry in ENTRIES if entry.law is not None and entry.private and hasattr(entry.data(), "n_valid")]
)
over_own_laws = over(
    [entry for entry in ENTRIES if entry.law is not None],
    only_laws=True,
    also_thorough={entry.name for entry in ENTRIES} - shown_in_all_forms(),
)
over_sweeps = over([entry for entry in ENTRIES if entry.private and entry.sweeps])
over_sweeps_on_ties = over(
    [
        entry
        for entry in ENTRIES
        if entry.law is not None and entry.private and entry.sweeps and not entry.sized
        if entry.name != "learners.polygons"
    ]
)
over_swept_families = over(
    [e for e in ENTRIES if e.private and e.sweeps and e.law is not None],
    only_laws=True,
    also_slow=covered_by_families(),
    also_thorough=first_of_families() - shown_in_all_forms(),
)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def runs(algorithm: Any, key: jax.Array, data: Any) -> Any:
    """Many runs on one dataset: every test below uses this one program per algorithm."""
    return algorithm(key, data)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0, None))
def statuses(algorithm: Any, key: jax.Array, data: Any) -> Any:
    """The statuses of many runs: where no draw enters them, next to nothing is compiled."""
    return algorithm(key, data).status


def keys() -> jax.Array:
    return jax.random.split(jax.random.key(1), TRIALS)


@functools.cache
def seen(name: str) -> Any:
    """The runs of an entry, made once."""
    entry = next(entry for entry in ENTRIES if entry.name == name)
    return jax.device_get(runs(entry.make(entry.epsilon), keys(), entry.data()))


def event_of(entry: Entry) -> tuple[Any, slice]:
    """An event, and its places in the law."""
    if entry.event is not None:
        return entry.event
    size = entry.make(entry.epsilon).listed()
    return (size // 4, 3 * size // 4), slice(size // 4, 3 * size // 4)


def inside(entry: Entry, algorithm: Any, data: Any) -> Any:
    """P[the entry's event], or of the first label where an algorithm has no events."""
    return algorithm.probability(data, event_of(entry)[0])[0] if entry.events else entry.law(algorithm, data)[0]


@functools.cache
def forms(name: str, only_pmf: bool) -> Any:
    """(epsilon, data, output) -> the law in all its forms, or its pmf alone: one program per algorithm."""
    entry = next(entry for entry in ENTRIES if entry.name == name)

    @jax.jit
    def program(epsilon: Any, data: Any, output: Any) -> dict[str, Any]:
        algorithm = entry.make(epsilon if entry.sweeps else entry.epsilon)
        law = {"pmf": entry.law(algorithm, data)}
        if only_pmf:
            return law
        if entry.events:  # the event, and an empty one
            (low, high), _ = event_of(entry)
            events = jax.tree.map(lambda *ends: jnp.stack(ends), *map(algorithm.check_event, ((low, high), (low, low))))
            law["event"], law["empty"] = jax.vmap(lambda event: algorithm.probability(data, event))(events)
        if entry.error is not None:
            law["success"] = algorithm.success_probability(data, error=entry.error)
            law["failure"] = algorithm.failure_probability(data, error=entry.error)
        if entry.single:
            law["log_prob"] = algorithm.log_prob(data, output)
        return law

    return program


def law_of(entry: Entry, epsilon: float, data: Any = None, only_pmf: bool = False) -> dict[str, np.ndarray]:
    """The forms of the law at this epsilon, for the first output seen; on padded data if no data are given."""
    data = padded(entry.data()) if data is None else data
    output = jax.tree.map(lambda leaf: leaf[0], seen(entry.name).hypothesis)
    law = forms(entry.name, only_pmf)(float(epsilon), data, output)
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), law)


def pmf_of(entry: Entry, epsilon: float, data: Any = None) -> np.ndarray:
    """The pmf at this epsilon; the program of all forms, which costs twice as much, is used only where a quick test needs those as well."""
    only_pmf = bool(entry.law_of) or entry.name not in shown_in_all_forms()
    return law_of(entry, epsilon, data, only_pmf=only_pmf)["pmf"]


def places(entry: Entry, outcomes: Any, size: int) -> np.ndarray:
    """Which outcome of the pmf each run had; bottom is the last."""
    assert np.all(np.isin(outcomes.status, (Status.OK, Status.BOTTOM)))
    return np.where(outcomes.status == Status.OK, entry.place(outcomes.hypothesis), size - 1)


@over_laws
def test_the_sampler_follows_the_law_and_not_another(entry: Entry) -> None:
    law = pmf_of(entry, entry.epsilon)
    counts = np.bincount(places(entry, seen(entry.name), len(law)), minlength=len(law))
    assert p_value(counts, TRIALS * law) > FALSE_ALARM / len(ENTRIES)
    other = pmf_of(entry, 2 * entry.epsilon) if entry.private and entry.sweeps else np.roll(law, 1)
    assert p_value(counts, TRIALS * other) < FALSE_ALARM  # negative control


@pytest.mark.slow
@over_laws
def test_the_sampler_follows_the_law_whatever_the_generator(entry: Entry) -> None:
    """Under vmap, rbg draws the words of all lanes from the first lane's key, which stands still once that lane's loops have ended."""
    others = jax.random.split(jax.random.key(1, impl="rbg"), TRIALS)
    law = pmf_of(entry, entry.epsilon)
    with jax.debug_key_reuse(False):  # the check mistakes stacked keys for used ones, whatever draws from them
        outcomes = jax.device_get(runs(entry.make(entry.epsilon), others, entry.data()))
    counts = np.bincount(places(entry, outcomes, len(law)), minlength=len(law))
    assert p_value(counts, TRIALS * law) > FALSE_ALARM / len(ENTRIES)


def padded(data: Any, more: bool = True) -> Any:
    """The same data in more rows (with `more`), and junk in every row past the end."""
    if not hasattr(data, "padded"):
        return data
    wider = data.padded(2 * data.rows + 1 if more else data.rows)
    beyond = np.arange(wider.rows) >= int(data.n_valid)

    def junk(leaf: jax.Array) -> jax.Array:
        if leaf.shape[:1] != beyond.shape:  # the count, or packed rows
            return leaf
        mask = beyond.reshape((-1,) + (1,) * (leaf.ndim - 1))
        return jnp.where(mask, jnp.ones_like(leaf), leaf)

    return jax.tree.map(junk, wider)


def at_one_place(data: Any) -> Any:
    """As many rows, all at the first one's point; labels, if any, are 0 and 1 in turn, so that neither is better."""

    def tie(path: Any, leaf: jax.Array) -> jax.Array:
        name = jax.tree_util.keystr(path)
        if name.endswith(".y"):
            return jnp.broadcast_to(
                (jnp.arange(leaf.shape[0]) % 2).astype(leaf.dtype).reshape(-1, *[1] * (leaf.ndim - 1)), leaf.shape
            )
        return jnp.broadcast_to(leaf[:1], leaf.shape) if name.endswith(".x") else leaf

    return jax.tree_util.tree_map_with_path(tie, data)


# Left out: entries that compare released frequencies with fixed ones, and polygons, which would take years (see `refinement`).
@over_sweeps_on_ties
def test_the_sampler_follows_the_law_on_ties_at_a_large_epsilon(entry: Entry) -> None:
    """There weights leave the range of floats: a law adds them up as logarithms, a sampler may not."""
    data = at_one_place(entry.data())
    outcomes = jax.device_get(runs(entry.make(LARGE), keys(), data))
    law = pmf_of(entry, LARGE, padded(data))
    counts = np.bincount(places(entry, outcomes, len(law)), minlength=len(law))
    assert p_value(counts, TRIALS * law) > FALSE_ALARM / len(ENTRIES)


@pytest.mark.thorough
@over_families
def test_a_run_exported_and_on_padded_data_is_the_run_of_the_batch(entry: Entry) -> None:
    """Neither batching, nor capacity, nor what lies past the end, nor export and serialisation change a draw."""
    algorithm, outcomes = entry.make(entry.epsilon), seen(entry.name)
    data = padded(entry.data(), more=not entry.sized)
    words = jax.random.key_data(keys()[:8])

    @jax.jit
    def run(algorithm: Any, words: jax.Array, data: Any) -> Any:
        outcome = algorithm(jax.random.wrap_key_data(words), data)
        return outcome.hypothesis, outcome.status

    exported = jax.export.export(run)(algorithm, words[0], data)
    again = jax.export.deserialize(exported.serialize()).call
    for i in range(8):
        hypothesis, status = again(algorithm, words[i], data)
        assert status.dtype == jnp.int32 and status.shape == () and status == outcomes.status[i]
        for one, many in zip(*map(jax.tree.leaves, (hypothesis, outcomes.hypothesis)), strict=True):
            np.testing.assert_allclose(
                one, many[i], rtol=1e-6
            )  # the last digit of a real number may depend on the program


@over(ENTRIES, also_thorough={entry.name for entry in ENTRIES if entry.law is None} - first_of_families())
def test_nothing_is_shown_unless_released(entry: Entry) -> None:
    def blank(outcomes: Any) -> bool:
        hidden = outcomes.status != Status.OK
        return all(not np.asarray(leaf)[hidden].any() for leaf in jax.tree.leaves(outcomes.hypothesis))

    assert blank(seen(entry.name))
    data = entry.data()
    if not hasattr(data, "n_valid"):
        return
    for n_valid in (-1, data.rows + 1):  # the count is data: the same program
        wrong = jax.tree.unflatten(*_with_count(data, n_valid))
        outcomes = jax.device_get(runs(entry.make(entry.epsilon), keys(), wrong))
        assert np.all(outcomes.status == Status.OUTSIDE_DOMAIN) and blank(outcomes)


@over(ENTRIES, also_thorough={entry.name for entry in ENTRIES})
@pytest.mark.parametrize("wide", [False, True])
def test_data_of_an_outer_trace_are_checked_in_either_width(entry: Entry, wide: bool) -> None:
    """The surrounding trace records every operation on arrays, so a check must perform none. And 32 and 64 bits do not mix."""
    with jax.enable_x64(wide):
        algorithm, data = entry.make(entry.epsilon), jax.tree.map(jnp.asarray, entry.data())
        jax.eval_shape(lambda key: algorithm(key, data), jax.random.key(0))


def test_rows_that_are_added_do_not_hide_a_wrong_count() -> None:
    """A count of one more than the rows stays wrong when rows are added, on the host and traced, for every kind of data."""
    kinds = {type(data): data for data in (entry.data() for entry in ENTRIES) if hasattr(data, "padded")}
    assert len(kinds) >= 5
    for data in kinds.values():
        longer = functools.partial(lambda rows, given: given.padded(rows), 2 * data.rows + 1)
        for n_valid, counts in ((data.rows, data.rows), (data.rows + 1, -1)):
            given = jax.tree.unflatten(*_with_count(data, n_valid))
            assert longer(given).n_valid == jax.jit(longer)(given).n_valid == counts, type(data)


def _with_count(data: Any, n_valid: int) -> tuple[Any, list[Any]]:
    """The structure and leaves of the data with another count, bypassing all checks."""
    paths, structure = jax.tree_util.tree_flatten_with_path(data)
    leaves = [jnp.int32(n_valid) if path[-1].name == "n_valid" else leaf for path, leaf in paths]
    return structure, leaves


@over_sweeps
@pytest.mark.parametrize("epsilon", [np.nan, builders.slow(-1.0), builders.thorough(0.0), builders.slow(np.inf)])
def test_a_parameter_that_nobody_could_check_shows_in_the_status(entry: Entry, epsilon: float) -> None:
    """The parameters are data: the program is the same."""
    good, other = entry.make(entry.epsilon), entry.make(2 * entry.epsilon)
    known = lambda one, two: np.array_equal(one, two) or np.asarray(one).dtype.kind in "iu"  # noqa: E731
    bad = jax.tree.map(lambda one, two: one if known(one, two) else np.full(np.shape(one), epsilon), good, other)
    if entry.law is None:  # no quick test runs the whole of it
        assert not np.any(statuses(good, keys(), entry.data()) == Status.BAD_PARAMETER)
        program, status_of = statuses, np.asarray
    else:
        seen(entry.name)
        program, status_of = runs, lambda outcomes: np.asarray(outcomes.status)
    programs = program._cache_size()
    assert np.all(status_of(program(bad, keys(), entry.data())) == Status.BAD_PARAMETER)
    assert program._cache_size() == programs


@over_own_laws
def test_the_law_is_a_law_in_every_form(entry: Entry) -> None:
    forms = law_of(entry, entry.epsilon)
    law = forms["pmf"]
    assert law.min() > -1e-6
    np.testing.assert_allclose(law.sum(), 1, rtol=1e-5)
    if entry.events:
        inside = law[event_of(entry)[1]].sum()
        np.testing.assert_allclose(forms["event"], [inside, 1 - inside], atol=2e-5)
        np.testing.assert_allclose(forms["empty"], [0, 1], atol=1e-6)
    if entry.error is not None:
        assert 0 <= forms["success"] <= 1 + 1e-5
        np.testing.assert_allclose(forms["success"] + forms["failure"], 1, rtol=1e-5)
    if entry.single and seen(entry.name).status[0] == Status.OK:
        place = int(places(entry, jax.tree.map(lambda leaf: leaf[:1], seen(entry.name)), len(law))[0])
        np.testing.assert_allclose(np.exp(forms["log_prob"]), law[place], rtol=1e-4)


@over_swept_families
def test_laws_of_a_batch_of_epsilons_and_data_are_laws(entry: Entry) -> None:
    epsilons = entry.epsilon * np.array([0.5, 1.0, 2.0])
    data = padded(entry.data())
    fewer = jax.tree.unflatten(*_with_count(data, int(data.n_valid) - 7)) if hasattr(data, "n_valid") else data
    datasets = (data, fewer, data)
    stack = jax.tree.map(lambda *leaves: np.stack(leaves), *map(jax.device_get, datasets))
    laws = jax.jit(jax.vmap(lambda e, rows: inside(entry, entry.make(e), rows)))(epsilons, stack)
    expected = [law_of(entry, e, rows) for e, rows in zip(epsilons, datasets, strict=True)]
    np.testing.assert_allclose(
        laws, [law["event" if entry.events else "pmf"][0] for law in expected], rtol=1e-4, atol=1e-7
    )


@over_swept_families
def test_gradients_of_the_law_are_finite_and_right(entry: Entry, x64: None) -> None:
    data, at = padded(entry.data()), entry.smooth_epsilon
    step = 1e-5 * at

    def law(epsilon: Any) -> jax.Array:
        """P[the event], or of the likeliest label where an algorithm has no events."""
        algorithm = entry.make(epsilon)
        return inside(entry, algorithm, data) if entry.events else jnp.max(entry.law(algorithm, data))

    @jax.jit
    def slopes(epsilon: Any) -> Any:
        value, push = jax.linearize(law, epsilon)  # traced once: its transpose is what reverse mode evaluates
        (reverse,) = jax.linear_transpose(push, epsilon)(jnp.ones_like(value))
        return value, push(jnp.ones_like(epsilon)), reverse

    (_, forward, reverse), above, below = (slopes(at + shift) for shift in (0.0, step, -step))
    expected = (above[0] - below[0]) / (2 * step)
    assert abs(expected) > 1e-6
    np.testing.assert_allclose([forward, reverse], [expected, expected], rtol=1e-5, atol=1e-9)
    for edge in (1e-3, 200.0):
        assert np.isfinite(slopes(edge)).all()


def neighbours_of(data: Any, relation: str) -> list[Any]:
    """Data of the same shapes that are neighbours of these under this relation: they differ in one record."""
    n, (leaves, structure) = int(data.n_valid), jax.tree_util.tree_flatten_with_path(data)
    if isinstance(data, Assignments):  # packed along the records: only the last one can be left out
        return [jax.tree.unflatten(*_with_count(data, n - 1))]
    records = [np.asarray(leaf)[:n].reshape(n, -1) for _, leaf in leaves if leaf.shape[:1] == (data.rows,)]
    _, different = np.unique(np.concatenate(records, axis=1), axis=0, return_index=True)
    some = sorted({0, n // 3, n // 2, n - 1, *different[:3].tolist()})

    def changed(i: int, j: int, only: str = "") -> Any:
        """Row j in the place of row i."""

        def change(path: Any, leaf: Any) -> Any:
            rowwise = leaf.shape[:1] == (data.rows,) and jax.tree_util.keystr(path).endswith(only)
            return jnp.asarray(leaf).at[i].set(leaf[j]) if rowwise else leaf

        return jax.tree.unflatten(structure, [change(*each) for each in leaves])

    if relation == "ADD_OR_REMOVE_ONE":
        return [jax.tree.unflatten(*_with_count(changed(i, n - 1), n - 1)) for i in some]
    only = ".y" if relation == "REPLACE_LABEL" else ""
    return [changed(i, j, only) for i in some for j in some if i != j]


def divergence(laws: list[np.ndarray], epsilon: float) -> float:
    """The largest hockey-stick divergence of the first law from one of the others, or the other way round."""
    first, *others = laws
    pairs = [(first, other) for other in others] + [(other, first) for other in others]
    return max(float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum()) for p, q in pairs)


def laws_about(entry: Entry, epsilon: float) -> list[np.ndarray]:
    """The law at this epsilon on the entry's data, and on neighbours."""
    here = padded(entry.data())
    every = [here, *neighbours_of(here, entry.make(entry.epsilon).guarantee().relation)]
    return [pmf_of(entry, epsilon, data) for data in every]


@over_laws_of_rows
def test_neighbours_tell_no_more_than_is_guaranteed(entry: Entry) -> None:
    """A quick check of each law, in single precision and around one dataset. Other tests cover all small datasets in double precision."""
    guarantee = entry.make(entry.epsilon).guarantee()
    laws = laws_about(entry, entry.epsilon)
    assert divergence(laws, guarantee.epsilon) <= guarantee.delta + 3e-5
    assert divergence(laws, 0.0) > 1e-3 or entry.name in SURE


def test_neighbours_tell_when_more_is_spent() -> None:
    """Negative control: at four times the epsilon."""
    entry = next(entry for entry in ENTRIES if entry.name == "points.exponential")
    guarantee = entry.make(entry.epsilon).guarantee()
    assert divergence(laws_about(entry, 4 * entry.epsilon), guarantee.epsilon) > 0.01


def tiny(data: Any) -> Any:
    """Three records of the data, distinct ones if possible: among so few, whatever shows of a record shows most."""
    n, (leaves, structure) = int(data.n_valid), jax.tree_util.tree_flatten_with_path(data)
    rowwise = [leaf for _, leaf in leaves if leaf.shape[:1] == (data.rows,)]
    records = np.concatenate([np.asarray(leaf)[:n].reshape(n, -1) for leaf in rowwise], axis=1)
    _, different = np.unique(records, axis=0, return_index=True)
    order = np.resize(different[:: max(1, len(different) // 3)], data.rows)
    chosen = [jnp.asarray(leaf)[order] if leaf.shape[:1] == (data.rows,) else leaf for _, leaf in leaves]
    return jax.tree.unflatten(*_with_count(jax.tree.unflatten(structure, chosen), 3))


def released(outcomes: Any) -> list[np.ndarray]:
    """All that runs release, then each leaf of it alone (where real numbers are released, no two whole rows are equal, so these say
    nothing): each distinct value, by its bits, becomes an integer."""
    shown = jax.tree.leaves((outcomes.status, outcomes.hypothesis))
    rows = [np.ascontiguousarray(leaf).reshape(len(leaf), -1).view(np.uint8) for leaf in shown if np.size(leaf)]
    return [
        np.unique(each, axis=0, return_inverse=True)[1].reshape(-1) for each in (np.concatenate(rows, axis=1), *rows)
    ]


def refuted(algorithm: Any, data: Any, guarantee: Guarantee) -> bool:
    """Whether runs on these data and on a neighbour contradict a guarantee in anything that is released."""
    every = [data, *neighbours_of(data, guarantee.relation)[:MOST]]
    outcomes = jax.device_get([runs(algorithm, keys(), each) for each in every])
    parts = released(jax.tree.map(lambda *leaves: np.concatenate(leaves), *outcomes))
    return any(
        audit_samples(first, other, epsilon=guarantee.epsilon, level=1 - FALSE_ALARM / len(ENTRIES)).refutes(guarantee)
        for first, *others in (np.split(part, len(every)) for part in parts)
        for other in others
    )


@over(
    [entry for entry in ENTRIES if entry.private and hasattr(entry.data(), "n_valid")],
    also_thorough={e.name for e in ENTRIES},
)
def test_a_whole_release_tells_no_more_than_is_guaranteed(entry: Entry) -> None:
    """Laws describe what a hypothesis says. But a release has other leaves, too, which may show what the answer hides."""
    algorithm, data = entry.make(entry.epsilon), entry.data()
    few = data if isinstance(data, Assignments) else tiny(data)
    sizes = (1, 2, 3) if isinstance(data, Points) else (2, 3)  # no other data are ever empty
    for given in (*(jax.tree.unflatten(*_with_count(few, n)) for n in sizes), data):
        assert not refuted(algorithm, given, algorithm.guarantee())


@pytest.mark.thorough
def test_a_release_that_shows_a_record_is_refuted() -> None:
    """Negative control."""
    entry = next(entry for entry in ENTRIES if entry.name == "points.exponential")

    def leaking(key: jax.Array, data: Any) -> Any:
        outcome = entry.make(entry.epsilon)(key, data)
        return dataclasses.replace(outcome, hypothesis=(outcome.hypothesis, data.x[0]))

    data = jax.tree.unflatten(*_with_count(tiny(entry.data()), 2))
    assert refuted(jax.tree_util.Partial(leaking), data, entry.make(entry.epsilon).guarantee())


@over_all
def test_the_guarantee_follows_from_the_numbers_in_use(entry: Entry) -> None:
    algorithm = entry.make(entry.epsilon)
    guarantee = algorithm.guarantee()
    assert isinstance(guarantee, Guarantee)
    if jax.tree.leaves(algorithm):
        with pytest.raises(TypeError, match="must be a known number"):
            jax.eval_shape(lambda traced: jnp.float32(traced.guarantee().epsilon), algorithm)
    if entry.private and entry.sweeps:
        assert guarantee.epsilon < np.inf
        twice = entry.make(2 * entry.epsilon)
        leaves = jax.tree.leaves(twice)
        replaced = jax.tree.unflatten(jax.tree.structure(algorithm), leaves)  # what an optimiser of the leaves does
        assert replaced.guarantee() == twice.guarantee()
        assert twice.guarantee().epsilon > guarantee.epsilon and twice.guarantee().relation == guarantee.relation


@over([entry for entry in ENTRIES if entry.alpha is not None])
def test_the_sample_size_is_a_whole_number_that_grows_with_confidence(entry: Entry) -> None:
    algorithm = entry.make(entry.epsilon)
    sizes = [algorithm.sample_size(alpha=entry.alpha, beta=beta) for beta in (0.3, 0.1, 1e-3)]
    assert all(type(size) is int for size in sizes)
    assert 0 < sizes[0] <= sizes[1] <= sizes[2] and sizes[0] < sizes[2]
    for alpha, beta in ((entry.alpha, 0.0), (entry.alpha, 1.5), (float("nan"), 0.1), (-1.0, 0.1)):
        with pytest.raises(ValueError, match=r"alpha|beta"):
            algorithm.sample_size(alpha=alpha, beta=beta)


@over_all
def test_it_is_a_frozen_pytree_with_a_short_name(entry: Entry) -> None:
    algorithm = entry.make(entry.epsilon)
    leaves, structure = jax.tree.flatten(algorithm)
    for copy in (jax.tree.unflatten(structure, leaves), pickle.loads(pickle.dumps(algorithm))):
        assert jax.tree.structure(copy) == structure
        assert all(map(np.array_equal, jax.tree.leaves(copy), leaves))
    assert not any(
        isinstance(leaf, np.ndarray) and leaf.ndim == 0 for leaf in leaves
    )  # JAX would keep its copy in 32 bits
    shown = repr(algorithm)
    assert shown.startswith(type(algorithm).__name__ + "(") and len(shown) < 300 and "Array" not in shown
    with pytest.raises(AttributeError):
        algorithm.bits = 7


@over_all
def test_wrong_calls_are_refused_by_name(entry: Entry) -> None:
    algorithm, data = entry.make(entry.epsilon), entry.data()
    for key in (0, None, 0.5, keys()[:2]):
        with pytest.raises(TypeError, match="key must be"):
            algorithm(key, data)
    for wrong in entry.wrong:
        with pytest.raises(TypeError):
            algorithm(keys()[0], wrong)
        if entry.law is not None:
            with pytest.raises(TypeError):
                entry.law(algorithm, wrong)


over_twins = over([entry for entry in ENTRIES if entry.twin is not None])


@over_twins
def test_the_plain_twin_agrees(entry: Entry) -> None:
    np.testing.assert_allclose(pmf_of(entry, entry.epsilon), entry.twin(entry), atol=2e-6)


@pytest.mark.slow
@over_twins
def test_the_plain_twin_agrees_to_nine_digits(entry: Entry) -> None:
    """In float64, which needs another program."""
    np.testing.assert_allclose(_pmf_in_x64(entry, entry.epsilon), entry.twin(entry), atol=1e-9)


def _pmf_in_x64(entry: Entry, epsilon: float) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(entry.make(epsilon).pmf(entry.data()))


def test_whoever_stands_for_another_law_is_not_slow_itself() -> None:
    standing = {entry.name for entry in ENTRIES if not (entry.slow or entry.law_of)}
    assert {entry.law_of for entry in ENTRIES if entry.law_of} <= standing


def test_another_law_than_the_twins_is_refused() -> None:
    """Negative control: the same algorithm at another epsilon."""
    entry = next(entry for entry in ENTRIES if entry.name == "mechanisms.exponential")
    for law, atol in ((pmf_of(entry, 1.01 * entry.epsilon), 2e-6), (_pmf_in_x64(entry, 1.01 * entry.epsilon), 1e-9)):
        with pytest.raises(AssertionError, match="Mismatched"):
            np.testing.assert_allclose(law, entry.twin(entry), atol=atol)
