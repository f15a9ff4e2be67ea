"""How many examples does it take to learn a threshold over {0, ..., 2^d - 1} privately?

Three pictures: (a) the least n with failure <= beta against d, for four learners, by exact laws, beside what the theorems require;
(b) success against n at one d, by exact law and by Monte Carlo on top of each other; (c) the anatomy of one run of RecConcave.
"""

from dpjax.core.arguments import CALIBRATIONS
from experiments.runner import Experiment
from experiments.thresholds.draw import draw
from experiments.thresholds.measure import measure

# Draws: ERM's failures come from the data, so its mean law needs many draws; RecConcave's come from its coins, whose law is exact.
COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "calibration": "proved", "level": 0.95}
SUCCESS = {
    "bits": 64,
    "sizes": {
        "ERM": [5, 8, 12, 16, 24, 32, 48, 63],
        "exponential mechanism": [60, 90, 120, 150, 180, 210, 255, 320, 400],
        "RecConcave, N=2": [750, 1000, 1250, 1500, 1750, 2000, 2500, 3000, 4000],
        "binary search": [1000, 1500, 2000, 2500, 3000, 3500, 4000],
    },
}
EXPERIMENT = Experiment(
    summary="least n to learn a threshold against d; success against n; anatomy of RecConcave",
    presets={
        "smoke": {
            **COMMON,
            "bits": [8, 16],
            "draws": {"ERM": 64, "other": 8},
            "rtol": 0.1,
            "success": {"bits": 16, "sizes": {"ERM": [8, 16, 31], "exponential mechanism": [31, 47, 63]}},
            "trials": 200,
            "anatomy": {"bits": 16, "n": 2000},
        },
        "quick": {
            **COMMON,
            "bits": [8, 16, 32, 64, 128, 256, 512, 1024],
            "draws": {"ERM": 2048, "exponential mechanism": 256, "other": 32},
            "rtol": 0.01,
            "success": SUCCESS,
            "trials": 1000,
            "anatomy": {"bits": 64, "n": 2000},
        },
        "full": {
            **COMMON,
            "bits": [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
            "draws": {"ERM": 2**15, "exponential mechanism": 2048, "other": 256},
            "rtol": 0.002,
            "success": SUCCESS,
            "trials": 100_000,
            "anatomy": {"bits": 64, "n": 2000},
        },
    },
    measure=measure,
    draw=draw,
    words={"calibration": CALIBRATIONS},
    cells=("bits", "success.sizes"),
)
