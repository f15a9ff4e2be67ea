"""Databases that answer all thresholds: the sanitizers of BNS, CLNSS and MULTI beside those that everybody uses, and beside none.

Two pictures: (a) the largest error that nine runs in ten stay within, against n and against d; (b) the least n for a given error, against
d, as measured and by the theorems. All run at one budget under REPLACE_ONE.
"""

from experiments.runner import Experiment
from experiments.sanitizers.draw import draw
from experiments.sanitizers.measure import measure

# Designs are the alphas for which SanThresholds is built, one program for each. Exponents are log2 n; beyond 2^24, counts have 64 bits.
COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95, "points": 255}
EXPERIMENT = Experiment(
    summary="databases that answer all thresholds: largest error against n and d, least n against d",
    presets={
        "smoke": {
            **COMMON,
            "bits": 8,
            "dense": [4, 8],
            "listed": [2],
            "wide": [8],
            "exponents": {"counts": [8, 10], "weights": [12], "points": [10, 12], "proved": [22], "printed": []},
            "quantiles": [7],
            "designs": [0.8],
            "draws": 32,
        },
        "quick": {
            **COMMON,
            "bits": 12,
            "dense": [4, 8, 12],
            "listed": [2, 3],
            "wide": [12, 32, 64],
            "exponents": {
                "counts": [6, 8, 10, 12, 14, 16],
                "weights": [10, 12, 14, 16, 18],
                "points": [9, 10, 11, 12, 13],
                "proved": [22, 23, 24, 25, 27, 30],
                "printed": [27, 30, 36, 42],
            },
            "quantiles": [7, 15],
            "designs": [0.4, 0.1],
            "draws": 64,
        },
        "full": {
            **COMMON,
            "bits": 16,
            "dense": [4, 6, 8, 10, 12, 14, 16],
            "listed": [1, 2, 3],
            "wide": [8, 16, 32, 64, 128, 256],
            "exponents": {
                "counts": [6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
                "weights": [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
                "points": [8, 9, 10, 11, 12, 13, 14, 15],
                "proved": [20, 21, 22, 23, 24, 25, 26, 27, 28, 30, 32],
                "printed": [24, 26, 28, 30, 33, 36, 39, 42, 45],
            },
            "quantiles": [3, 7, 15, 31],
            "designs": [0.8, 0.4, 0.2, 0.1],
            "draws": 1024,
        },
    },
    measure=measure,
    draw=draw,
    cells=("dense", "listed", "wide"),
)
