"""Which algorithm is proved to need the fewest records, and where? How much more is proved than the worst known data require?

The pictures show regions of winners by `dpjax.choose`, with the points at which one algorithm hands over to another, and spot checks: for
some algorithms, the least n at which the exact law on adversarial data keeps beta, beside the n that `choose` states. Such a least n is a
lower estimate of n*.
"""

from experiments.map.draw import draw
from experiments.map.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1}
EXPERIMENT = Experiment(
    summary="which algorithm is proved to need the fewest records, in the planes of n, d, epsilon, k; how loose that is",
    presets={
        "smoke": {**COMMON, "columns": 6, "rows": 4, "checked": {"exponential": [8], "permute_and_flip": [16]}},
        "quick": {
            **COMMON,
            "columns": 36,
            "rows": 20,
            "checked": {
                "exponential": [8, 16, 32, 64],
                "tree_score": [8, 16, 32, 64],
                "tree_log": [64, 1024],
                "supported_tree": [16, 64, 256],
                "permute_and_flip": [8, 16, 32, 64],
                "threshold": [8, 16, 32, 64],
                "points": [8, 16, 32, 64],
            },
        },
        "full": {
            **COMMON,
            "columns": 120,
            "rows": 60,
            "checked": {
                "exponential": [4, 8, 16, 32, 64, 128, 256],
                "tree_score": [4, 8, 16, 32, 64],
                "tree_log": [64, 256, 1024, 4096],
                "supported_tree": [4, 16, 64, 256, 1024],
                "permute_and_flip": [4, 8, 16, 32, 64, 128, 256],
                "threshold": [4, 8, 16, 32, 64, 128, 256],
                "points": [4, 8, 16, 32, 64, 128, 256],
            },
        },
    },
    measure=measure,
    draw=draw,
    cells=("checked",),
)
