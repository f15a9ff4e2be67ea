"""How good are gradients through a private choice: bias and standard deviation of each estimator, against the temperature.

The exponential mechanism chooses among points v of [0, 1]; the loss of a choice is (v - target)^2, and the loss of a mixture y is that of
its mean <y, v>. The gradient of the expected loss in the scores is known exactly, because the law is. Another picture shows how far soft
draws are from the exact draws of the same noise.
"""

from experiments.relaxed.draw import draw
from experiments.relaxed.measure import measure
from experiments.runner import Experiment

COMMON = {
    "epsilon": 1.0,
    "delta": 0.01,
    "candidates": 16,
    "spread": 3.0,
    "target": 0.3,
    "values": 31,
    "fraction": 0.5,
    "level": 0.95,
}
EXPERIMENT = Experiment(
    summary="gradients through private choices: bias and standard deviation against the temperature",
    presets={
        "smoke": {**COMMON, "temperatures": [0.1, 1.0], "draws": 500},
        "quick": {**COMMON, "temperatures": [0.03, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0], "draws": 20_000},
        "full": {
            **COMMON,
            "temperatures": [0.01, 0.02, 0.03, 0.06, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0],
            "draws": 500_000,
        },
    },
    measure=measure,
    draw=draw,
    cells=("temperatures",),
)
