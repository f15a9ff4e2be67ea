"""Speed: trials per second beside the floor and peers, seconds to an answer, grids, and how costs grow; all in one run, as ratios."""

from experiments.benchmarks.draw import draw
from experiments.benchmarks.measure import measure
from experiments.runner import Experiment

THRESHOLDS = ("erm", "exponential", "binary_search", "rec_concave")
CONTESTS = [
    *([name, [d, n]] for d, n in ((31, 2000), (64, 2000), (1024, 5000)) for name in THRESHOLDS),
    *(["supported", [d, 1000]] for d in (64, 1024)),
    *([name, [64, 2000]] for name in ("interior exponential", "interior rec_concave", "tree_log")),
    ["supported_tree", [64, 59]],
    ["supported_tree", [1024, 67]],
    ["quantiles", [31, 3, 2000]],
    *([f"quantiles {name}", [31, 3, 2000]] for name in ("permute_and_flip", "approximate", "tree", "unbounded")),
    *([f"quantiles {name}", [63, 3, 2000]] for name in ("joint", "inverse_sensitivity")),
    *(["quantiles supported", [d, 1, 2000]] for d in (64, 1024)),
    ["quantiles supported_slices", [64, 9, 20_000]],
    ["rectangles", [2, 32, 20_000]],
    ["rectangles by slices", [2, 32, 20_000]],
    ["learn_points", [657]],
    ["points exponential", [1186]],
    ["hashed", [340]],
    ["point_learner", [256, 1784]],
    ["histogram_learner", [256, 536]],
    ["histogram_learner", [1, 536]],
    ["sparse_histogram_learner", [256, 4557]],
    ["parity_learner", [64, 256, 2590]],
    ["parities exponential", [10, 53]],
    ["direct_sum", [16, 16, 2000]],
    ["generic", [16, 16, 3, 200, 4000]],
    ["distribution function", [16, 3, 150, 4000]],
    ["thresholds histogram", [8, 2003]],
    ["thresholds tree", [8, 2003]],
    ["label_private", [31, 2000]],
    ["blr", [3, 6, 403]],
    ["length_search", [31, 2000]],
    ["power_search", [31, 2000]],
    ["conjunction", [64, 2003]],
    ["convex polygon", [6, 3, 4095]],
    ["elimination", [256, 289, 1000]],
    ["tracing", [100, 2**16]],
    ["attack", [8, 737]],
    ["laplace", [1000]],
    ["exponential mechanism", [1000]],
    ["soft exponential mechanism", [1000]],
    ["soft quantile", [1000]],
    ["soft threshold", [1000]],
]
SMOKE = [
    ["rec_concave", [31, 500]],
    ["laplace", [100]],
]
FULL = {
    "contests": CONTESTS,
    "laws": [*([name, [64, 2000]] for name in THRESHOLDS), ["rec_concave", [1024, 2000]]],
    "columns": [[1, 3000], [3, 3000], [9, 3000], [3, 30_000]],
    "grids": ["exponential", "rec_concave"],
    "epsilons": 16,
    "seconds": 10.0,
    "repeats": 5,
    "draws": 64,
    "trials": 10_000,
    "betas": [0.1, 1e-6],
    "concepts": [7, 56, 448],  # from 7 on, every point is the target of some concept
    "tracing": [200, 1.0, 10],
    "scaling": {
        "n": [10**3, 10**4, 10**5, 10**6],
        "d": [16, 64, 256, 1024, 4096],
        "trials": [10**2, 10**3, 10**4, 10**5, 10**6, 10**7],
    },
}
EXPERIMENT = Experiment(
    summary="trials per second against the floor, NumPy, OpenDP and diffprivlib; seconds to an answer; grids; growth of costs",
    presets={
        "smoke": {
            "contests": SMOKE,
            "laws": [["exponential", [31, 500]]],
            "columns": [[1, 100]],
            "grids": ["exponential"],
            "epsilons": 2,
            "seconds": 0.1,
            "repeats": 1,
            "draws": 8,
            "trials": 50,
            "betas": [0.1],
            "concepts": [7, 14],
            "tracing": [20, 0.02, 20],
            # All within one bucket and one number of limbs, so that few programs are compiled.
            "scaling": {"n": [600, 1000], "d": [20, 30], "trials": [100, 1000]},
        },
        "quick": {
            **FULL,
            "seconds": 0.2,
            "repeats": 3,
            "draws": 32,
            "trials": 1000,
            "concepts": [7, 28, 112],
            "tracing": [200, 0.25, 2],
        },
        "full": FULL,
    },
    measure=measure,
    draw=draw,
    timed=True,
)
