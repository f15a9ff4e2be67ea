"""The history of private threshold learners in one picture: how many examples each idea asks for, and how many it needs.

The numbers range from d (the exponential mechanism), through noisy binary search (for the threshold, or for a length: d^1/2 with delta) and
polylog(d) (binary search for the power of a length), to RecConcave's 8^(log* d), the 2^(log* d) optimiser, TreeLog's log* d, and
log d of the supported tree and of supported thresholds, whose constants are the smallest. All are under replace-one; TreeLog and the
supported tree, whose proofs are for insertions and deletions, run at a quarter of epsilon (a replaced example moves their multiset by up to
4 steps).

The target is floor(2^d / 3), because all searches for a length use blocks of 2^j points, which would hit 2^(d-1) by themselves.
"""

from dpjax.core.arguments import CALIBRATIONS
from experiments.history.draw import draw
from experiments.history.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "calibration": "proved", "level": 0.95}
WIDTHS = [8, 16, 32, 64, 128, 256, 512, 1024]
EXPERIMENT = Experiment(
    summary="every threshold learner, from d to log* d and back to log d: least n against d, measured and as the analyses ask",
    presets={
        "smoke": {
            **COMMON,
            "bits": {"exponential mechanism": [8, 16], "search for a power": [8, 16], "search for a length": [8]},
            "draws": {"other": 4},
            "rtol": 0.2,
            "asked": [8, 16],
            "planned": [8],
        },
        "quick": {
            **COMMON,
            "bits": {
                "exponential mechanism": [8, 32, 128, 512, 1024],
                "binary search": [8, 32, 128, 512, 1024],
                "search for a length": [8, 32, 128, 512, 1024],
                "search for a power": [8, 32, 128, 512, 1024],
                "RecConcave, N=2": [8, 32, 128, 1024],
                "RecConcave, N=3": [64, 1024],
                "2^log* optimiser": [8, 32],
                "TreeLog, composition": [8, 64, 1024],
                "supported tree": [8, 64, 1024],
                "supported thresholds": [8, 32, 128, 512, 1024],
            },
            "draws": {"2^log* optimiser": 4, "other": 16},
            "rtol": 0.05,
            "asked": WIDTHS,
            "planned": [8, 64, 1024],
        },
        "full": {
            **COMMON,
            "bits": {
                "exponential mechanism": WIDTHS,
                "binary search": WIDTHS,
                "search for a length": WIDTHS,
                "search for a power": WIDTHS,
                "RecConcave, N=2": WIDTHS,
                "RecConcave, N=3": [64, 128, 256, 512, 1024],
                "2^log* optimiser": [8, 16, 32, 64, 128],
                "TreeLog, composition": WIDTHS,
                "supported tree": WIDTHS,
                "supported thresholds": WIDTHS,
            },
            "draws": {"2^log* optimiser": 16, "other": 128},
            "rtol": 0.01,
            "asked": WIDTHS,
            "planned": WIDTHS,
        },
    },
    measure=measure,
    draw=draw,
    words={"calibration": CALIBRATIONS},
    cells=("bits", "asked", "planned"),
)
