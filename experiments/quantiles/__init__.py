"""Private quantiles as engineers need them, on real columns and on simulated heavy tails: which method has the least error?

Three pictures: (a) the largest rank error of all quantiles of a release against n, against the number of quantiles and against epsilon,
on simulated incomes and on real delays; (b) the same for quartiles of every column; (c) private learners on small tables. OpenDP and
diffprivlib run beside our methods. Bounds, unit and grid of each column are public rules (`data.py`), written down and never computed
from the values; values beyond the bounds are clipped.

Real data need `pip install '.[data]'`, the peers `pip install '.[bench]'`; what is missing is left out, and a message says so.
"""

from experiments.quantiles.draw import draw
from experiments.quantiles.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "level": 0.95, "base": 1.002}
EXPERIMENT = Experiment(
    summary="the largest rank error of private quantiles by every method, on real and simulated columns, beside OpenDP and diffprivlib",
    presets={
        "smoke": {
            **COMMON,
            "n": 1000,
            "count": 3,
            "sizes": [1000],
            "counts": [3],
            "epsilons": [1.0],
            "draws": 8,
            "peers": 8,
            "everywhere": ["log-normal"],
            "curves": ["log-normal"],
            "learners": [],
        },
        "quick": {
            **COMMON,
            "n": 4000,
            "count": 3,
            "sizes": [500, 1000, 2000, 4000],
            "counts": [3, 15],
            "epsilons": [0.3, 1.0, 3.0],
            "draws": 24,
            "peers": 12,
            "everywhere": ["log-normal", "Pareto", "arrival delays", "doctor visits", "affairs", "food"],
            "curves": ["log-normal", "arrival delays"],
            "learners": [0.1, 1.0, 10.0],
        },
        "full": {
            **COMMON,
            "n": 32000,
            "count": 3,
            "sizes": [500, 1000, 2000, 4000, 8000, 16000, 32000],
            "counts": [3, 7, 15, 31, 63],
            "epsilons": [0.1, 0.3, 1.0, 3.0, 10.0],
            "draws": 1000,
            "peers": 200,
            "everywhere": ["log-normal", "Pareto", "arrival delays", "doctor visits", "affairs", "food"],
            "curves": ["log-normal", "arrival delays"],
            "learners": [0.1, 1.0, 10.0],
        },
    },
    measure=measure,
    draw=draw,
)
