"""How large must the quality be for a private optimiser of a quasi-concave function on {0, ..., T} to find something?

Two pictures: (a) the additive error against T of the exponential mechanism, RecConcave and the 2^{log* T} optimiser, as measured by exact
laws on the worst of three shapes, and as proved; (b) the proved error against the number of levels N, which grows as 8^N and 2^N.
"""

from experiments.quasi_concave.draw import draw
from experiments.quasi_concave.measure import AMPLIFIED, EXPONENTIAL, REC_CONCAVE, measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "alpha": 0.9, "levels": [1, 2, 3, 4]}
EXPERIMENT = Experiment(
    summary="error of quasi-concave optimisation against T: exponential mechanism, RecConcave, the 2^log* optimiser",
    presets={
        "smoke": {
            **COMMON,
            "bits": {EXPONENTIAL: [8, 32], AMPLIFIED: [32]},
            "proved": [8, 32, 64],
            "rtol": 0.1,
        },
        "quick": {
            **COMMON,
            "bits": {
                EXPONENTIAL: [8, 32, 128, 256, 512],
                REC_CONCAVE: [64, 256, 1024],
                AMPLIFIED: [32, 256, 1024, 4096],
            },
            "proved": [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
            "rtol": 0.02,
        },
        "full": {
            **COMMON,
            "bits": {
                EXPONENTIAL: [8, 16, 32, 64, 128, 256, 512, 1024],
                REC_CONCAVE: [64, 128, 256, 512, 1024, 2048, 4096],
                AMPLIFIED: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
            },
            "proved": [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
            "rtol": 0.002,
        },
    },
    measure=measure,
    draw=draw,
    cells=("bits",),
)
