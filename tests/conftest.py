"""The strict session every test and doctest runs in.

Rank promotion raises, dtype promotion is strict, and warnings are errors (pyproject.toml). Hypothesis draws the same examples every time.
Whenever thorough or slow tests run as well, beartype checks the jaxtyping shapes of dpjax on every call, and reusing a key is an error; in
quick tests, reusing a key is an error only in files that request `no_key_twice`. The two checks together take a fifth of the total time.
"""

import gc
import importlib.metadata
import importlib.util
import os
import pathlib

os.environ.setdefault("MPLBACKEND", "Agg")
# Tests compile far more than they run. Without most optimisations a program compiles in three fifths of the time; without the fusion
# emitters, in three fifths of that; and a tenth faster still in one piece (by default LLVM gets it in 32, for threads that the other
# worker keeps busy). Old versions let one choose the emitters; from 0.11 on, jaxlib refuses to start with that flag.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if tuple(map(int, importlib.metadata.version("jaxlib").split(".")[:2])) < (0, 11):
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_parallel_codegen_split_count=1 --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_parallel_codegen_split_count=1")

import types
import typing
from typing import Any

import beartype
import hypothesis
import jax
import jaxtyping
import pytest

# Tracing and importing allocate so much that garbage collections took a tenth of the time: collect rarely.
gc.set_threshold(100_000, 50, 1000)

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_enable_compilation_cache", False)  # the command line would turn it on, in the user's home


class _HostMeta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return not isinstance(value, jax.Array)


class Host(metaclass=_HostMeta):
    """Anything but a JAX array: Python and NumPy values are left to the package's own argument checks."""


def has_shape(hint: Any) -> bool:
    """Whether a jaxtyping array occurs in an annotation."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(has_shape(part) for part in typing.get_args(hint))


def check_shapes(function: types.FunctionType) -> Any:
    """Apply beartype to shapes and dtypes alone.

    Constructors are left out: a pytree rebuilt by vmap or jax.tree holds batched arrays, or no arrays at all.
    """
    if function.__name__ == "__init__":
        return function
    function.__annotations__ = {
        name: hint if name == "return" else hint | Host
        for name, hint in function.__annotations__.items()
        if has_shape(hint)
    }
    return beartype.beartype(function)


_jaxtyped = jaxtyping.jaxtyped  # what the import hook wraps every function in


def jaxtyped_where_shapes_are(function: Any = None, *, typechecker: Any) -> Any:
    """`jaxtyping.jaxtyped`, but functions without any shape stay as they are: a checked call costs 20 microseconds or more."""
    if function is None:
        return lambda function: jaxtyped_where_shapes_are(function, typechecker=typechecker)
    if isinstance(function, types.FunctionType) and not any(map(has_shape, function.__annotations__.values())):
        return function
    return _jaxtyped(function, typechecker=typechecker)


jaxtyping.jaxtyped = jaxtyped_where_shapes_are


def modules_with_shapes() -> list[str]:
    """The modules of dpjax that annotate shapes: instrumenting the other half would only cost time."""
    root = pathlib.Path(__file__).parents[1]
    files = [path for path in (root / "dpjax").rglob("*.py") if "jaxtyping" in path.read_text("utf-8")]
    return [".".join(path.relative_to(root).with_suffix("").parts) for path in files]


hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("fixed")


# Docstrings whose examples compile for seconds; the tests of their modules run the same algorithms.
SLOW_EXAMPLES = {
    "dpjax.accounting.slicing.split",
    "dpjax.concepts.dichotomies.of_parities.parities",
    "dpjax.concepts.rectangles.uniform",
    "dpjax.data.pac",
    "dpjax.domains.groups",
    "dpjax.fingerprinting",
    "dpjax.fingerprinting.attack.attack",
    "dpjax.fingerprinting.attack.audit",
    "dpjax.fingerprinting.pirates.trial",
    "dpjax.fingerprinting.tardos.tardos",
    "dpjax.learners.conjunctions",
    "dpjax.learners.conjunctions.exponential.exponential",
    "dpjax.learners.halfplanes.exponential",
    "dpjax.learners.interior",
    "dpjax.learners.interior.solver.solver",
    "dpjax.learners.label_private",
    "dpjax.learners.points",
    "dpjax.learners.polygons.by_halfplanes",
    "dpjax.learners.polygons.by_triangles",
    "dpjax.learners.rectangles",
    "dpjax.learners.rectangles.kearns",
    "dpjax.learners.thresholds",
    "dpjax.mechanisms.above_threshold.above_threshold",
    "dpjax.mechanisms.choosing.choosing",
    "dpjax.mechanisms.exponential_piecewise",
    "dpjax.mechanisms.permute_and_flip_piecewise",
    "dpjax.multi.direct_sum",
    "dpjax.multi.generic",
    "dpjax.multi.parities",
    "dpjax.multi.points",
    "dpjax.multi.points.sparse_histogram.sparse_histogram_learner",
    "dpjax.multi.reductions",
    "dpjax.multi.reductions.databases.label_error",
    "dpjax.multi.reductions.empirical",
    "dpjax.multi.reductions.learn_by_sanitizing",
    "dpjax.optimizers.interior_point",
    "dpjax.optimizers.interior_point.flat_tree_score.flat_tree_score_planned",
    "dpjax.optimizers.interior_point.tree_log.tree_log",
    "dpjax.optimizers.quantiles",
    "dpjax.optimizers.quantiles.answer.quantiles",
    "dpjax.optimizers.quantiles.approximate.approximate",
    "dpjax.optimizers.quantiles.inverse_sensitivity.inverse_sensitivity",
    "dpjax.optimizers.quantiles.joint.joint",
    "dpjax.optimizers.quantiles.permute_and_flip.permute_and_flip",
    "dpjax.optimizers.quantiles.rank_exponential.rank_exponential",
    "dpjax.optimizers.quantiles.recursive.recursive",
    "dpjax.optimizers.quantiles.unbounded.unbounded",
    "dpjax.optimizers.quasi_concave",
    "dpjax.optimizers.slicing.Slicing",
    "dpjax.optimizers.slicing.cut",
    "dpjax.optimizers.slicing.reorder_slice_compute",
    "dpjax.optimizers.slicing.take_ends",
    "dpjax.relaxations.accountant.calibrated",
    "dpjax.relaxations.accountant.log_total_delta",
    "dpjax.relaxations.budgets.set_cover.set_cover_plans",
    "dpjax.relaxations.estimators.score_function",
    "dpjax.relaxations.estimators.straight_through",
    "dpjax.relaxations.floats.partition",
    "dpjax.relaxations.learned_audit.audit_outcomes",
    "dpjax.relaxations.learned_noise.learn",
    "dpjax.relaxations.learned_noise.parts",
    "dpjax.relaxations.learned_selection.learn",
    "dpjax.relaxations.soft.quantile.quantile",
    "dpjax.relaxations.tune.tune",
    "dpjax.relaxations.worst.worst_data",
    "dpjax.relaxations.worst_pairs.worst_pair",
    "dpjax.relaxations.worst_records.worst_records",
    "dpjax.sanitizers.cdf",
    "dpjax.sanitizers.cdf.StepFunction.database",
    "dpjax.sanitizers.dense",
    "dpjax.sanitizers.dense.multiplicative_weights",
    "dpjax.sanitizers.points",
    "dpjax.sanitizers.points.rows.rows",
    "dpjax.sanitizers.points.sparse_histogram.sparse_histogram",
    "dpjax.sanitizers.thresholds.from_interior_points.from_interior_points",
    "dpjax.sanitizers.thresholds.histogram.histogram",
    "dpjax.sanitizers.thresholds.san_thresholds.san_thresholds",
    "dpjax.sanitizers.thresholds.tree.tree",
    "dpjax.trials.failures.failures",
    "dpjax.trials.sweep.least_n",
    "dpjax.verify.check.Report.to_pld",
}

# Docstrings whose examples compile for a second or more, where quick tests of their modules run the same algorithms.
THOROUGH_EXAMPLES = {
    "dpjax.concepts.agnostic",
    "dpjax.concepts.combs.zeros",
    "dpjax.concepts.conjunctions.product",
    "dpjax.concepts.parities.uniform",
    "dpjax.concepts.plane.lattice.product",
    "dpjax.concepts.points",
    "dpjax.concepts.polygons.area_between",
    "dpjax.concepts.thresholds.log_uniform",
    "dpjax.concepts.thresholds.several",
    "dpjax.core.logspace.all_happen",
    "dpjax.core.logspace.any_fails",
    "dpjax.core.sums.running",
    "dpjax.domains.gf2",
    "dpjax.domains.order_statistics.sort_nearly",
    "dpjax.domains.scaled.Scaled",
    "dpjax.domains.selection.first",
    "dpjax.domains.selection.places",
    "dpjax.domains.wide.searcher",
    "dpjax.fingerprinting.boneh_shaw.boneh_shaw",
    "dpjax.interop.measurement.to_opendp",
    "dpjax.interop.private_quantiles.PrivateQuantiles",
    "dpjax.interop.private_rectangle.PrivateRectangle",
    "dpjax.interop.private_threshold.PrivateThreshold",
    "dpjax.learners.parities",
    "dpjax.mechanisms.partition_selection.partition_selection",
    "dpjax.mechanisms.report_noisy_max.report_noisy_max",
    "dpjax.mechanisms.stability.stability",
    "dpjax.optimizers.quantiles.shared.shared",
    "dpjax.relaxations.budgets.of",
    "dpjax.relaxations.estimators.expectation",
    "dpjax.relaxations.estimators.log_prob",
    "dpjax.relaxations.learned_gate.learn",
    "dpjax.relaxations.learned_selection.mechanism",
    "dpjax.relaxations.soft",
    "dpjax.relaxations.soft.perturbed.perturbed",
    "dpjax.relaxations.soft.stability.stability",
    "dpjax.relaxations.soft.threshold.threshold",
    "dpjax.verify.broken.specimens",
}

# Modules that can be imported only with an extra of the package, and the import that the extra provides.
NEED_EXTRAS = {
    "dpjax/interop/columns.py": "sklearn",
    "dpjax/interop/measurement.py": "opendp",
    "dpjax/interop/private_quantiles.py": "sklearn",
    "dpjax/interop/private_rectangle.py": "sklearn",
    "dpjax/interop/private_threshold.py": "sklearn",
}


def pytest_configure(config: pytest.Config) -> None:
    """Leave out doctests of modules whose extra is absent. Check shapes and keys whenever more than the quick tests run."""
    if "not thorough" not in config.option.markexpr:
        jax.config.update("jax_debug_key_reuse", True)
        # Before anything imports dpjax: modules are instrumented as they load.
        jaxtyping.install_import_hook(modules_with_shapes(), f"{__name__}.check_shapes")
    absent = [path for path, extra in NEED_EXTRAS.items() if importlib.util.find_spec(extra) is None]
    root = pathlib.Path(__file__).parents[1]
    config.option.ignore = [*(config.option.ignore or []), *(str(root / path) for path in absent)]


@pytest.hookimpl(tryfirst=True)  # before slow ones are deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not isinstance(item, pytest.DoctestItem):
            continue
        if item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        elif item.name in THOROUGH_EXAMPLES:
            item.add_marker(pytest.mark.thorough)


def pytest_collection_finish() -> None:
    """Leave modules and tests out of garbage collections."""
    gc.collect()
    gc.freeze()


def memory_maps() -> int:
    """The number of memory maps of this process, or the largest allowed where the number cannot be read (macOS, Windows)."""
    maps = pathlib.Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.exists() else 65_530


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Drop all programs at the end of a file if many are held: each has memory maps, and a process that reaches the limit of 65,530 maps
    dies in the compiler; 12,000 maps are some 3 GB. A few hundred small programs are of use to the next file."""
    yield
    if memory_maps() > 12_000:
        jax.clear_caches()


@pytest.fixture(scope="module")
def no_key_twice():
    """Reusing a key is an error: a test that wants a draw twice makes the key twice."""
    with jax.debug_key_reuse(True):
        yield


@pytest.fixture
def x64():
    """64-bit types for one test."""
    with jax.enable_x64(True):
        yield
