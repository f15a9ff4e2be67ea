"""Do fingerprinting codes trace as proved, and do they trace what a learner of many concepts gives away (MULTI §5)?

Two pictures: (a) how often pirates are traced, and innocent users accused, against the length of the code, for three
codes and the worst of six pirate strategies; (b) the attack on three learners of k thresholds as epsilon grows from private to not.
"""

from experiments.fingerprinting.draw import draw
from experiments.fingerprinting.measure import measure
from experiments.runner import Experiment

COMMON = {"users": 8, "xi": 0.05, "level": 0.95}
ATTACK = {"users": 6, "xi": 0.01, "delta": 1e-6, "bits": 8}
EXPERIMENT = Experiment(
    summary="traced and falsely accused against the length of the code; the attack against epsilon",
    presets={
        "smoke": {
            **COMMON,
            "users": 4,
            "shares": [1 / 4],
            "trials": 50,
            "attack": {**ATTACK, "users": 3, "epsilons": [1.0, 3000.0], "trials": 40, "pilot": 10},
        },
        "quick": {
            **COMMON,
            "shares": [2.0**-e for e in (6, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1, 0)],
            "trials": 400,
            "attack": {
                **ATTACK,
                "epsilons": [10 ** (e / 8) for e in range(24, 40)],
                "trials": 200,
                "pilot": 50,
            },
        },
        "full": {
            **COMMON,
            "users": 16,
            "shares": [2 ** (-e / 2) for e in range(16, -1, -1)],
            "trials": 10_000,
            "attack": {
                **ATTACK,
                "users": 10,
                "epsilons": [10 ** (e / 8) for e in range(0, 41)],
                "trials": 10_000,
                "pilot": 1000,
            },
        },
    },
    measure=measure,
    draw=draw,
)
