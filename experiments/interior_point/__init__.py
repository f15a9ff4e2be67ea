"""How many points does a private interior point take, on domains from 2^8 to 2^(2^20) points?

Two pictures: (a) the least n with failure <= beta on the worst of several kinds of hard data, against d, for the exponential mechanism, the
tree score, the supported tree, RecConcave, the 2^(log* d) optimiser, and TreeLog under each accountant, beside what is proved; (b) failure
against n at one d, by kind of data.
"""

from experiments.interior_point.draw import draw
from experiments.interior_point.measure import (
    AMPLIFIED,
    COMPOSITION,
    EXPONENTIAL,
    REC_CONCAVE,
    SLICING,
    SUPPORTED,
    TREE,
    measure,
)
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.1, "level": 0.95}
BEYOND = [2**14, 2**17, 2**20]  # bits; points of this length are never written down
SIZES = {
    EXPONENTIAL: [300, 350, 375, 400, 425, 450],
    REC_CONCAVE: [300, 400, 500, 600, 700, 800],
    COMPOSITION: [200, 250, 300, 350, 400, 450],
    TREE: [160, 170, 180, 190, 200, 210],
    SUPPORTED: [20, 40, 60, 80, 100, 120],
}
EXPERIMENT = Experiment(
    summary="least n for an interior point against d, TreeLog under each accountant; failure by kind of data",
    presets={
        "smoke": {
            **COMMON,
            "bits": {EXPONENTIAL: [8, 32], COMPOSITION: [32, 2**20], TREE: [8, 32], SUPPORTED: [32]},
            "planned": [8, 32, 2**20],
            "draws": 2,
            "trials": 256,
            "rtol": 0.05,
            "by family": {"bits": 32, "sizes": {COMPOSITION: [250, 400]}},
        },
        "quick": {
            **COMMON,
            "bits": {
                EXPONENTIAL: [8, 32, 128, 256, 512, 1024],
                REC_CONCAVE: [32, 256, 1024],
                AMPLIFIED: [32, 256, 1024],
                COMPOSITION: [8, 32, 256, 1024, 4096, *BEYOND],
                SLICING: [32, 1024],
                TREE: [8, 32, 128, 256, 512, 1024],
                SUPPORTED: [8, 32, 128, 512, 1024, 4096],
            },
            "planned": [8, 32, 128, 512, 1024, 4096, *BEYOND],
            "draws": 4,
            "trials": 1024,
            "rtol": 0.03,
            "by family": {"bits": 256, "sizes": SIZES},
        },
        "full": {
            **COMMON,
            "bits": {
                EXPONENTIAL: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
                REC_CONCAVE: [32, 64, 128, 256, 512, 1024, 2048, 4096],
                AMPLIFIED: [32, 64, 128, 256, 512, 1024, 2048, 4096],
                COMPOSITION: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, *BEYOND],
                SLICING: [8, 32, 128, 512, 1024, 4096],
                TREE: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
                SUPPORTED: [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096],
            },
            "planned": [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, *BEYOND],
            "draws": 64,
            "trials": 65536,
            "rtol": 0.005,
            "by family": {"bits": 256, "sizes": SIZES},
        },
    },
    measure=measure,
    draw=draw,
    cells=("bits", "planned", "by family.sizes"),
)
