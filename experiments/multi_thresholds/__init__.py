"""How does the number of examples grow with the number k of thresholds learned from one sample (MULTI §1.3)?

One picture: n* against k for direct sums (pure; by advanced, optimal and bounded composition; of RecConcave), GenericLearner on a private
CDF, and ERM, beside the lower bounds k/eps (pure), k^(1/3) (approximate, PAC) and sqrt(k) (approximate, agnostic).
"""

from experiments.multi_thresholds.draw import draw
from experiments.multi_thresholds.measure import SERIES, measure
from experiments.runner import Experiment

COMMON = {
    "bits": 16,
    "epsilon": 1.0,
    "delta": 1e-6,
    "alpha": 0.2,
    "beta": 0.1,
    "level": 0.95,
    "levels": 3,
    "m": 500,
    "sanitizer_epsilon": 0.5,
}
EXPERIMENT = Experiment(
    summary="least n to learn k thresholds from one sample, against k",
    presets={
        "smoke": {
            **COMMON,
            "bits": 8,
            "concepts": {**{name: [] for name in SERIES}, "direct sum, bounded": [1, 4], "ERM": [1, 4]},
            "bounds": [1, 4, 16],
            "draws": 2,
            "least draws": 2,
            "rtol": 0.2,
        },
        "quick": {
            **COMMON,
            "concepts": {
                "pure direct sum": [1, 4, 16, 64],
                "direct sum, advanced": [8, 64, 512],
                "direct sum, optimal": [1, 8, 64, 512],
                "RecConcave, optimal": [4, 32],
                "generic": [1, 32, 1024],
                "ERM": [1, 16, 256],
                "direct sum, bounded": [1, 8, 64, 512],
            },
            "bounds": [1, 4, 16, 64, 256, 1024, 4096, 2**14, 2**16, 2**18, 2**20],
            "draws": 32,
            "least draws": 4,
            "rtol": 0.05,
        },
        "full": {
            **COMMON,
            "concepts": {
                **{name: [1, 4, 16, 64, 256, 1024, 4096] for name in SERIES},
                "direct sum, advanced": [4, 16, 64, 256, 1024, 4096],
            },
            "bounds": [1, 4, 16, 64, 256, 1024, 4096, 2**14, 2**16, 2**18, 2**20],
            "draws": 256,
            "least draws": 16,
            "rtol": 0.01,
        },
    },
    measure=measure,
    draw=draw,
    cells=("concepts", "bounds"),
)
