"""How many examples does it take to learn a convex polygon privately (GEO §4), and what does a learned one look like?

Shows n* against the number of sides and against d, for rounds that share one failing test, with this package's measure on halfplanes and
with GEO's, and, against the sides alone, for the same rounds under composition; beside them the convex hull without privacy, what the
proofs here require, and what GEO's constants require. Single runs follow: a hexagon round by round, a hexagon on a fine grid ten times, and
the outline of a country.
"""

from typing import Any

from experiments.polygons.draw import draw
from experiments.polygons.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95}
RUNS: dict[str, dict[str, Any]] = {
    "rounds": {"bits": 20, "sides": 6, "n": 2**15 - 1, "shown": [1, 3, 6, 0]},
    "many": {"bits": 20, "sides": 6, "n": 2**15 - 1, "runs": 10},
    "outline": {"bits": 10, "sides": 8, "sizes": [2**12 - 1, 2**14 - 1, 2**17 - 1]},
}
EXPERIMENT = Experiment(
    summary="least n to learn a convex polygon against its sides and against d; learned polygons",
    presets={
        "smoke": {
            **COMMON,
            "over sides": {"bits": 4, "sides": [3, 4], "composition": [3], "box": []},
            "over bits": {"sides": 3, "bits": [4], "box": []},
            "rtol": 0.2,
            "trials": 40,
            "start": 2048,
            "runs": {
                "rounds": {**RUNS["rounds"], "n": 2**11 - 1},
                "many": {**RUNS["many"], "n": 2**11 - 1, "runs": 2},
                "outline": {**RUNS["outline"], "sizes": [2**11 - 1]},
            },
        },
        "quick": {
            **COMMON,
            "over sides": {
                "bits": 6,
                "sides": [3, 4, 6, 8, 12, 16],
                "composition": [3, 4, 6, 8, 12, 16],
                "box": [3, 6],
            },
            "over bits": {"sides": 4, "bits": [4, 6, 10, 16, 32, 64], "box": [4, 6]},
            "rtol": 0.1,
            "trials": 150,
            "start": 4096,
            "runs": RUNS,
        },
        "full": {
            **COMMON,
            "over sides": {
                "bits": 6,
                "sides": [3, 4, 6, 8, 12, 16, 24, 32, 48],
                "composition": [3, 4, 6, 8, 12, 16, 24, 32, 48],
                "box": [3, 4, 6, 8, 12, 16, 24, 32],
            },
            "over bits": {"sides": 4, "bits": [4, 6, 8, 10, 12, 16, 24, 32, 48, 64], "box": [4, 6, 8, 10, 12, 16, 24]},
            "rtol": 0.02,
            "trials": 4000,
            "start": 4096,
            "runs": RUNS,
        },
    },
    measure=measure,
    draw=draw,
    cells=("over sides", "over bits"),
)
