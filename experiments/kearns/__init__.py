"""Rectangles by Kearns's learner on sanitized axes (BNS §3.5) beside rectangles by slices (CLNSS §1.3.4), under one relation.

Shows what the two utility proofs require, and the least n that trials find, against the dimension D and against d. Both learners run under
add/remove at the same total budget, and both use the exponential mechanism for interior points. Half of Kearns's epsilon goes to the
sanitizers, which release distribution functions through recursive quantiles, at the depth that is best for what is proved; the other half
goes to the noise in the counts. What is measured has the slices and the threshold of the proof, but its quantiles are only as deep as the
two cells with the target's ends need on each axis; its examples are log-uniform around the faces of a target that holds half of them.
"""

from experiments.kearns.draw import draw
from experiments.kearns.measure import measure
from experiments.runner import Experiment

COMMON = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "axes": 2, "bits": 16, "level": 0.95, "deeper": [0]}
EXPERIMENT = Experiment(
    summary="rectangles by Kearns on sanitized axes beside slices: examples asked for against D and against d",
    presets={
        "smoke": {
            **COMMON,
            "over axes": [1, 2],
            "over bits": [16],
            "measured over axes": [1],
            "measured over bits": [],
            "trials": 64,
            "rtol": 0.2,
        },
        "quick": {
            **COMMON,
            "over axes": [1, 2, 4, 8, 16, 32],
            "over bits": [8, 16, 32, 64, 128, 256, 512, 1024, 2048],
            "measured over axes": [1, 2, 3, 4],
            "measured over bits": [8, 16, 32, 64],
            "trials": 256,
            "rtol": 0.05,
        },
        "full": {
            **COMMON,
            "over axes": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64],
            "over bits": [8, 16, 32, 64, 128, 256, 512, 1024, 2048],
            "measured over axes": [1, 2, 3, 4, 6, 8],
            "measured over bits": [8, 16, 32, 64, 128, 256],
            "deeper": [0, 1],
            "trials": 4096,
            "rtol": 0.01,
        },
    },
    measure=measure,
    draw=draw,
    cells=("over axes", "over bits", "measured over axes", "measured over bits"),
)
