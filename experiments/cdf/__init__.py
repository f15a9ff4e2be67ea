"""A whole distribution function, released privately through interior points.

Two pictures: (a) one release by each method over the true distribution function, with its error band; (b) the Kolmogorov distance that
nine releases in ten stay within, against n, with the distance that the theorem promises for the same mechanism.
"""

from experiments.cdf.draw import draw
from experiments.cdf.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "level": 0.95, "bits": 32}
EXPERIMENT = Experiment(
    summary="a distribution function through private quantiles: released over true, alpha against n",
    presets={
        "smoke": {**COMMON, "sizes": [1000, 4000], "draws": 16, "counts": [3], "picture": 4000},
        "quick": {
            **COMMON,
            "sizes": [1000, 2000, 4000, 8000, 16000, 32000],
            "draws": 128,
            "counts": [3, 7, 15],
            "picture": 8000,
        },
        "full": {
            **COMMON,
            "sizes": [1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000],
            "draws": 4096,
            "counts": [3, 7, 15, 31],
            "picture": 8000,
        },
    },
    measure=measure,
    draw=draw,
)
