"""Does any method, run by hand, find quantiles better than `dpjax.quantiles` does? On cells drawn at random, so that none is hand-picked.

One picture: for each cell (a real or simulated column, the number of its records, which quantiles, epsilon), the mean largest rank error of
`dpjax.quantiles` divided by that of the best of all others: our methods without a delta, by each base measure, and OpenDP and diffprivlib.
The best method is chosen by some runs and measured by others, because the least of many noisy means is too low.

Bounds and units are public rules (`columns.py`). Real data need `pip install '.[data]'`, the peers `pip install '.[bench]'`; what is
missing is left out, and a message says so.
"""

from experiments.quantile_contest.draw import draw
from experiments.quantile_contest.measure import measure
from experiments.runner import Experiment

COMMON = {
    "records": [60, 2000],
    "epsilons": [0.2, 5.0],
    "counts": [1, 2, 3, 5, 9],
    "base": 1.002,
    "level": 0.95,
    "times_for_one": 16,  # the factor on runs for one quantile: they are quick, and errors may be rare
}
EXPERIMENT = Experiment(
    summary="the largest rank error of dpjax.quantiles over that of the best other method, on cells drawn at random",
    presets={
        "smoke": {**COMMON, "counts": [1], "cells": [1, 7], "choosing": 8, "draws": 16},
        "quick": {**COMMON, "cells": list(range(24)), "choosing": 64, "draws": 512},
        "full": {**COMMON, "cells": list(range(400)), "choosing": 1000, "draws": 4000},
    },
    measure=measure,
    draw=draw,
    cells=("cells",),
)
