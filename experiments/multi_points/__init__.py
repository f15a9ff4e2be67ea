"""How does the number of examples grow with the number k of points learned from one sample (MULTI §1.3)?

One picture: n* against k for PointLearner and a histogram of labelled points (flat), GenericLearner and the direct sum of LearnPoints
(sqrt k), the pure direct sums (k) and a pure histogram (d + k), beside the lower bounds.
"""

from experiments.multi_points.draw import draw
from experiments.multi_points.measure import SERIES, measure
from experiments.runner import Experiment

COMMON = {
    "bits": 64,
    "epsilon": 1.0,
    "delta": 1e-6,
    "alpha": 0.1,
    "beta": 0.1,
    "level": 0.95,
}
BOUNDS = [4**i for i in range(10)]
EXPERIMENT = Experiment(
    summary="least n to learn k points from one sample, against k",
    presets={
        "smoke": {
            **COMMON,
            "concepts": {**{name: [] for name in SERIES}, "PointLearner": [1, 64]},
            "bounds": [1, 4, 16],
            "trials": 30,
            "rtol": 0.2,
        },
        "quick": {
            **COMMON,
            "concepts": {
                "PointLearner": [1, 32, 1024],
                "histogram": [1, 32, 1024],
                "generic": [1, 16, 256],
                "direct sum, optimal": [1, 4, 16],
                "pure direct sum": [1, 4, 16],
                "pure, proper": [1, 4, 16],
                "pure histogram": [1, 32, 256, 2048],
            },
            "bounds": BOUNDS,
            "trials": 200,
            "rtol": 0.05,
        },
        "full": {
            **COMMON,
            "concepts": {
                **{name: [1, 4, 16, 64, 256, 1024, 4096] for name in SERIES},
                "pure direct sum": [1, 4, 16, 64, 256],
                "pure, proper": [1, 4, 16, 64, 256],
            },
            "bounds": BOUNDS,
            "trials": 4000,
            "rtol": 0.01,
        },
    },
    measure=measure,
    draw=draw,
    cells=("concepts", "bounds"),
)
