"""What does it cost to protect labels alone (BNS §6), for one concept on ever larger domains, and for many concepts (MULTI §5)?

Two pictures: (a) n* against d for thresholds and for points: flat for the label-private learner, rising for the exponential mechanism,
which protects whole examples; (b) for k concepts, n* of k label-private learners against k, which rises as k (pure) or sqrt(k)
(approximate), beside the lower bounds; and the fingerprinting attack on these learners, whose databases differ in labels alone.
"""

from experiments.labels.draw import draw
from experiments.labels.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95}
ATTACK = {"users": 4, "xi": 0.01}
EXPERIMENT = Experiment(
    summary="least n that learns with private labels, against d and against the number of concepts; the attack on labels",
    presets={
        "smoke": {
            **COMMON,
            "bits": [8, 64],
            "draws": 4,
            "rtol": 0.2,
            "concepts": [1, 64, 4096],
            "bounds": [1, 64, 4096, 2**18],
            "attack": {**ATTACK, "epsilons": [1.0, 1e4], "trials": 20},
        },
        "quick": {
            **COMMON,
            "bits": [8, 64, 256, 1024],
            "draws": 16,
            "rtol": 0.04,
            "concepts": [4**i for i in range(11)],
            "bounds": [2**i for i in range(25)],
            "attack": {**ATTACK, "epsilons": [1.0, 10.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4], "trials": 60},
        },
        "full": {
            **COMMON,
            "bits": [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4095],
            "draws": 256,
            "rtol": 0.005,
            "concepts": [2**i for i in range(25)],
            "bounds": [2**i for i in range(25)],
            "attack": {**ATTACK, "users": 8, "epsilons": [10 ** (e / 4) for e in range(25)], "trials": 2000},
        },
    },
    measure=measure,
    draw=draw,
    cells=("bits", "concepts", "bounds"),
)
