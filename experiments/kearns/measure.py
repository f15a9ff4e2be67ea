"""The numbers of the picture."""

import math

from dpjax.learners import rectangles
from dpjax.optimizers import interior_point, quantiles
from dpjax.optimizers.quantiles import half_slice
from dpjax.sanitizers import cdf
from experiments.records import Row, exact
from experiments.runner import Context
from experiments.settings import Settings

KEARNS, SLICES = "Kearns, sanitized axes", "slices"
DEEPER = 4  # levels of quantiles beyond the fewest that are tried
TIES = 16  # bits that tell equal coordinates apart


def measure(settings: Settings, context: Context) -> list[Row]:
    """All rows: panels "axes" and "bits"."""
    rows = []
    for panel in ("axes", "bits"):
        for x in settings[f"over {panel}"]:
            at = {**settings, panel: x}
            rows += [exact(panel, KEARNS, x, sanitized_axes(at)), exact(panel, SLICES, x, slices(at))]
    return rows


def slices(settings: Settings) -> int:
    """What `rectangles.rectangles` asks for, with the accountant that asks for least."""
    given = {name: settings[name] for name in ("axes", "bits", "epsilon", "delta", "beta")}
    return rectangles.rectangles(**given).sample_size(alpha=settings["alpha"], beta=settings["beta"])


def sanitized_axes(settings: Settings) -> int:
    """What `rectangles.kearns` asks for at the best depth of the quantiles."""
    fewest = math.floor(math.log2(8 * settings["axes"] / settings["alpha"])) + 1
    return min(_at_depth(depth, settings) for depth in range(fewest, fewest + DEEPER))


def _at_depth(depth: int, settings: Settings) -> int:
    axes, bits, epsilon, beta = (settings[name] for name in ("axes", "bits", "epsilon", "beta"))
    # Each level of each axis's quantiles costs a solver twice: slices of neighbours differ by a replacement.
    solver = interior_point.exponential(bits=bits + TIES, epsilon=epsilon / (4 * axes * depth))
    runs, failure = 2**depth - 1, beta / (4 * axes)
    found = quantiles.recursive(
        solver=solver, bits=bits, depth=depth, m=half_slice(solver, beta=failure / runs), beta=failure
    )
    release = cdf.release(quantiles=found)
    learner = rectangles.kearns(axes=axes, bits=bits, epsilon=epsilon / 2, sanitizer=release, cuts=runs, beta=beta)
    assert learner.guarantee().covers(epsilon * (1 + 1e-9), settings["delta"])
    return learner.sample_size(alpha=settings["alpha"], beta=beta)
