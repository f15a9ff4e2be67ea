"""The four tables of MULTI §1.3: for every cell the measured exponents of k and of log|X|, beside the theorems'.

Each row runs the algorithm that its theorem names, on the data that its definition requires: realizable data for PAC rows and, for agnostic
rows, data with a share of the labels flipped, judged by excess error (Definitions 5, 15). `cells` says which algorithms these are, and why
a measured exponent is not the theorem's where the two differ.
"""

from experiments.runner import Experiment
from experiments.table.draw import draw
from experiments.table.measure import measure

COMMON = {
    "epsilon": 1.0,
    "delta": 1e-6,
    "alpha": 0.2,
    "beta": 0.1,
    "level": 0.95,
    "flip": 0.1,
    "fixed": {"bits": 16, "k": 16, "parity bits": 10},
}
FEW = {
    "points": [8, 31],
    "thresholds": [8, 31],
    "parities": [6, 12],
    "generic": [8, 16],
    "closed form": [64, 256, 1024],
}
EXPERIMENT = Experiment(
    summary="the tables of MULTI §1.3: measured exponents of k and of log|X| beside the theorems'",
    presets={
        "smoke": {
            **COMMON,
            "draws": 2,
            "rtol": 0.3,
            "concepts": {"pure": [2, 4], "approximate": [32, 64], "joint": [2, 8], "flat": [1, 8]},
            "bits": FEW,
        },
        "quick": {
            **COMMON,
            "draws": 16,
            "rtol": 0.06,
            "concepts": {"pure": [4, 16, 64], "approximate": [64, 256], "joint": [64, 512], "flat": [1, 32, 1024]},
            "bits": FEW,
        },
        "full": {
            **COMMON,
            "draws": 256,
            "rtol": 0.01,
            "concepts": {
                "pure": [4, 16, 64, 256],
                "approximate": [64, 256, 1024, 4096],
                "joint": [64, 256, 1024, 4096],
                "flat": [4**i for i in range(7)],
            },
            "bits": {
                "points": [8, 31, 128, 512],
                "thresholds": [8, 31, 128, 512],
                "parities": [4, 6, 8, 10, 12, 14, 16],
                "generic": [8, 16, 32, 64],
                "closed form": [64, 128, 256, 512, 1024],
            },
        },
    },
    measure=measure,
    draw=draw,
)
