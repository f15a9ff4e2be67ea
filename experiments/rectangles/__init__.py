"""How many examples does it take to learn an axis-aligned rectangle in D dimensions privately?

Two pictures: (a) the least n with failure <= beta against D, for one algorithm under five privacy analyses, beside what the utility proof
requires; (b) a rectangle learned in two dimensions, with the slices that its faces come from.
"""

from dpjax.learners.rectangles.planning import ACCOUNTANTS
from experiments.rectangles.draw import draw
from experiments.rectangles.measure import measure
from experiments.runner import Experiment

COMMON = {"bits": 32, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "beta": 0.1, "level": 0.95, "rtol": 0.02}
PICTURE = {"bits": 16, "epsilon": 2.0, "alpha": 0.2, "accountant": "slicing"}
EXPERIMENT = Experiment(
    summary="least n to learn a rectangle against D, by composition and by slicing; a learned rectangle",
    presets={
        "smoke": {
            **COMMON,
            "bits": 8,
            "axes": {"basic": [1], "optimal": [], "slicing_printed": [], "slicing": [2], "bounded": []},
            "formula": [1, 2, 4, 8],
            "trials": 50,
            "rtol": 0.1,
            "picture": PICTURE,
        },
        "quick": {
            **COMMON,
            "axes": {
                "basic": [2, 8, 16],
                "optimal": [2, 4, 8, 16, 32],
                "slicing_printed": [2],
                "slicing": [2, 4, 8, 16, 32],
                "bounded": [2, 4, 8, 16, 32],
            },
            "formula": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
            "trials": 100,
            "picture": PICTURE,
        },
        "full": {
            **COMMON,
            "axes": {name: [1, 2, 4, 8, 16, 32, 64, 128] for name in ACCOUNTANTS},
            "formula": [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024],
            "trials": 1000,
            "rtol": 0.005,
            "picture": PICTURE,
        },
    },
    measure=measure,
    draw=draw,
    words={"picture.accountant": (*ACCOUNTANTS, "best")},
    cells=("axes", "formula"),
)
