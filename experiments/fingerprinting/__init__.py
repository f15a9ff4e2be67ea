"""Do fingerprinting codes trace as proved, and do they trace what a learner of many concepts gives away (MULTI §5)?

Three pictures: (a) how often pirates are traced, and innocent users accused, against the length of the code, for three codes and the
worst of six pirate strategies; (b) the attack on learners of k thresholds, points and parities as epsilon grows from private to not;
(c) that on learners of points and parities, on databases padded with junk rows up to the learners' own n and beyond, at epsilon = 1.
`attacks` explains what (b) and (c) show of learners that refuse.
"""

from experiments.fingerprinting.draw import draw
from experiments.fingerprinting.measure import measure
from experiments.runner import Experiment

COMMON = {"users": 8, "xi": 0.05, "level": 0.95}
ATTACK = {"users": {"thresholds": 6, "points": 6, "parities": 8}, "xi": 0.01, "delta": 1e-6}
PADDED = {"users": 4, "xi": 0.05, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1}
ROWS = {"points": [4, 36, 44, 536, 1784, 4096], "parities": [4, 64, 104, 128, 164, 512]}
EXPERIMENT = Experiment(
    summary="traced and falsely accused against the length of the code; the attack against epsilon and padding",
    presets={
        "smoke": {
            **COMMON,
            "users": 4,
            "shares": [1 / 4],
            "trials": 50,
            "attack": {
                **ATTACK,
                "users": {"thresholds": 3, "points": 4, "parities": 4},
                "composed": [3000.0],
                "stable": [30.0],
                "trials": 40,
                "pilot": 40,
            },
            "padded": {**PADDED, "rows": {"points": [], "parities": [164]}, "trials": 40},
        },
        "quick": {
            **COMMON,
            "shares": [2.0**-e for e in (6, 5, 4.5, 4, 3.5, 3, 2.5, 2, 1, 0)],
            "trials": 400,
            "attack": {
                **ATTACK,
                "composed": [1.0, 10.0, 100.0, *(10 ** (e / 6) for e in range(16, 33))],
                "stable": [*(10 ** (e / 8) for e in range(20)), *(10 ** (e / 2) for e in range(5, 12))],
                "trials": 200,
                "pilot": 50,
            },
            "padded": {**PADDED, "rows": ROWS, "trials": 200},
        },
        "full": {
            **COMMON,
            "users": 16,
            "shares": [2 ** (-e / 2) for e in range(16, -1, -1)],
            "trials": 10_000,
            "attack": {
                **ATTACK,
                "users": {"thresholds": 10, "points": 10, "parities": 16},
                "composed": [10 ** (e / 8) for e in range(0, 49)],
                "stable": [10 ** (e / 8) for e in range(0, 49)],
                "trials": 10_000,
                "pilot": 1000,
            },
            "padded": {
                **PADDED,
                "rows": {
                    "points": [2**e for e in range(2, 14)],
                    "parities": [4, 16, 32, 64, 80, 96, 112, 128, 144, 164, 256, 1024],
                },
                "trials": 10_000,
            },
        },
    },
    measure=measure,
    draw=draw,
    cells=("shares",),
)
