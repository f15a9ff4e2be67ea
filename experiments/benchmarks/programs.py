"""Every NumPy program by name. The contest of `contests.py` with the same name runs the same trials by dpjax."""

from experiments.benchmarks import (
    numpy_conjunctions,
    numpy_dense,
    numpy_general,
    numpy_interior,
    numpy_intervals,
    numpy_many_thresholds,
    numpy_mechanisms,
    numpy_multi,
    numpy_parities,
    numpy_points,
    numpy_polygons,
    numpy_quantiles,
    numpy_rectangles,
    numpy_sanitizers,
    numpy_supported,
    numpy_together,
    numpy_trials,
)
from experiments.benchmarks.numpy_driver import Program

_FAMILIES = (
    numpy_trials,
    numpy_general,
    numpy_interior,
    numpy_rectangles,
    numpy_points,
    numpy_parities,
    numpy_many_thresholds,
    numpy_multi,
    numpy_mechanisms,
    numpy_sanitizers,
    numpy_conjunctions,
    numpy_intervals,
    numpy_dense,
    numpy_polygons,
    numpy_quantiles,
    numpy_together,
    numpy_supported,
)
PROGRAMS: dict[str, Program] = {name: program for family in _FAMILIES for name, program in family.PROGRAMS.items()}
