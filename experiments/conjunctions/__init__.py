"""How many examples does it take to learn a conjunction of k out of d literals privately: against k, and against d?

Compares rounds that share one failing test (GEO Claim 3.4), the same rounds under plain composition, the exponential mechanism over all
conjunctions where they can be listed (KLNRS), and the greedy set cover, which is not private. Dashed lines show what the theorems require.
The variables are 1 with probability 2^(-1/k), rounded to 8 binary digits, so that the target labels about half of all assignments 1. The
target consists of the last variables, the worst case for a greedy choice that takes the first among equals.
"""

from experiments.conjunctions.draw import draw
from experiments.conjunctions.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95}
EXPERIMENT = Experiment(
    summary="least n to learn a conjunction, against its number of literals and against the number of variables",
    presets={
        "smoke": {
            **COMMON,
            "literals": {"k": [1, 2], "bits": 16},
            "variables": {"k": 2, "bits": [8, 16]},
            "rtol": 0.2,
            "trials": 200,
            "draws": 4,
        },
        "quick": {
            **COMMON,
            "literals": {"k": [1, 2, 4, 8, 16], "bits": 64},
            "variables": {"k": 2, "bits": [16, 64, 128, 256, 1024, 4096, 16384]},
            "rtol": 0.05,
            "trials": 1000,
            "draws": 32,
        },
        "full": {
            **COMMON,
            "literals": {"k": [1, 2, 4, 8, 16, 32, 64], "bits": 64},
            "variables": {"k": 2, "bits": [2**i for i in range(4, 18)]},
            "rtol": 0.02,
            "trials": 16384,
            "draws": 256,
        },
    },
    measure=measure,
    draw=draw,
    cells=("literals.k", "variables.bits"),
)
