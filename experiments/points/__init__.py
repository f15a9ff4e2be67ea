"""POINT's classic: how many examples does it take to learn a point function over {0, ..., 2^d - 1} privately?

A pure learner that answers with a point needs an n that grows as d; one that may answer with something else needs no more for larger
domains; nor does a proper one with a little delta (BNS §3.1). The picture shows the least n against d, by exact laws, or by trials for the
learner that draws a hash, beside lower bounds.
"""

from experiments.points.draw import draw
from experiments.points.measure import measure
from experiments.runner import Experiment

# The target's mass is a little more than alpha, so that missing it is a failure; the rest of the mass is on one other point.
COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "mass": 0.125, "level": 0.95}
EXPERIMENT = Experiment(
    summary="point functions: pure proper, pure improper and approximate learners against d, above lower bounds",
    presets={
        "smoke": {**COMMON, "bits": [8, 16], "bounds": [8, 16], "draws": 32, "trials": 200, "rtol": 0.1},
        "quick": {
            **COMMON,
            "bits": [8, 32, 128, 512, 1024],
            "bounds": [8, 16, 32, 64, 128, 256, 512, 1024],
            "draws": 256,
            "trials": 2000,
            "rtol": 0.02,
        },
        "full": {
            **COMMON,
            "bits": [8, 16, 32, 64, 128, 256, 512, 1024],
            "bounds": [8, 16, 32, 64, 128, 256, 512, 1024],
            "draws": 4096,
            "trials": 2**16,
            "rtol": 0.005,
        },
    },
    measure=measure,
    draw=draw,
    cells=("bits", "bounds"),
)
