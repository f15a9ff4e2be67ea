"""How fast: trials per second beside the floor and beside peers, and seconds to an answer; all in one run, as ratios."""

from experiments.benchmarks.draw import draw
from experiments.benchmarks.measure import measure
from experiments.runner import Experiment

MANY = {"elimination": [256, 289, 1000], "tracing": [100, 2**16], "attack": 8}
SMALL = {"elimination": [32, 48, 40], "tracing": [8, 2048], "attack": 3}
CELLS = [[31, 2000], [64, 2000], [1024, 5000]]
EXPERIMENT = Experiment(
    summary="trials per second against the floor, NumPy, OpenDP and diffprivlib; seconds to n*",
    presets={
        "smoke": {
            "cells": [[31, 500]],
            "many": SMALL,
            "seconds": 0.2,
            "repeats": 1,
            "draws": 8,
            "trials": 100,
            "betas": [0.1],
        },
        "quick": {
            "cells": CELLS,
            "many": MANY,
            "seconds": 1.0,
            "repeats": 3,
            "draws": 32,
            "trials": 1000,
            "betas": [0.1, 1e-6],
        },
        "full": {
            "cells": CELLS,
            "many": MANY,
            "seconds": 10.0,
            "repeats": 5,
            "draws": 64,
            "trials": 10_000,
            "betas": [0.1, 1e-6],
        },
    },
    measure=measure,
    draw=draw,
)
