"""How does the number of examples grow with the number k of parities learned from one uniform sample (MULTI §4.2.1, Theorem 55)?

Two pictures: (a) n* against k for ParityLearner (the exact law: flat), Gaussian elimination and direct sums, beside the lower bounds;
(b) n* of ParityLearner against d, beside what the theorem's proof requires, and its failures at n* in trials, against k.
"""

from experiments.multi_parities.draw import draw
from experiments.multi_parities.measure import measure
from experiments.runner import Experiment

COMMON = {"bits": 16, "epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "level": 0.95, "xi": 1e-3}
POWERS = [1, 4, 16, 64, 256, 1024, 4096]
BEYOND = [2**14, 2**16, 2**18, 2**20]
EXPERIMENT = Experiment(
    summary="least n to learn k parities from one uniform sample, against k; ParityLearner against d, and in trials",
    presets={
        "smoke": {
            **COMMON,
            "concepts": {"closed form": [1, 16, 256], "direct sum": [1, 16], "bound": [1, 16, 256]},
            "draws": 4,
            "rtol": 0.05,
            "dimensions": [1, 8, 64],
            "trials": {"bits": 64, "concepts": [1, 33], "count": 20},
        },
        "quick": {
            **COMMON,
            "concepts": {"closed form": POWERS, "direct sum": POWERS, "bound": [*POWERS, *BEYOND]},
            "draws": 16,
            "rtol": 0.01,
            "dimensions": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
            "trials": {"bits": 256, "concepts": [1, 32, 1000], "count": 100},
        },
        "full": {
            **COMMON,
            "concepts": {"closed form": POWERS, "direct sum": POWERS, "bound": [*POWERS, *BEYOND]},
            "draws": 256,
            "rtol": 0.001,
            "dimensions": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
            "trials": {"bits": 256, "concepts": [1, 10, 100, 1000, 4000], "count": 2000},
        },
    },
    measure=measure,
    draw=draw,
    cells=("concepts", "dimensions", "trials.concepts"),
)
