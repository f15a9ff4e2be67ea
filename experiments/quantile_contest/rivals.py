"""The contestants: `dpjax.quantiles`, which knows only what is public, and each method run by hand at the same epsilon.

Methods with slices of many points around each quantile are left out, because they need a delta and thousands of records (see experiment
`quantiles`).
"""

from collections.abc import Callable
from typing import Any

from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.answer import of_choice
from experiments.quantile_trials import Wanted, unbounded

OURS = "dpjax.quantiles"


def left_out(count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of `METHODS`, for this many quantiles: (`dpjax.quantiles` by another name, what it uses with a base measure that it cannot know)."""
    if count == 1:
        return ("permute-and-flip by scales",), ("permute-and-flip",)
    return (), ("inverse sensitivity", "inverse sensitivity by scales")


def _scales(wanted: Wanted) -> dict[str, Any]:
    return {**wanted.given, "base": "scales", "origin": wanted.origin}


METHODS: dict[str, Callable[[Wanted], Any]] = {
    OURS: lambda wanted: of_choice(None, origin=wanted.origin, **wanted.given),
    "rank exponential": lambda wanted: quantiles.rank_exponential(**wanted.given),
    "rank exponential by scales": lambda wanted: quantiles.rank_exponential(**_scales(wanted)),
    "permute-and-flip": lambda wanted: quantiles.permute_and_flip(**wanted.given),
    "permute-and-flip by scales": lambda wanted: quantiles.permute_and_flip(**_scales(wanted)),
    "joint, targets from n": lambda wanted: quantiles.joint(**wanted.given, candidates=1),
    "joint": lambda wanted: quantiles.joint(**wanted.given),
    "joint by scales": lambda wanted: quantiles.joint(**_scales(wanted)),
    "joint by places": lambda wanted: quantiles.joint(**{**_scales(wanted), "base": "places"}),
    "inverse sensitivity": lambda wanted: quantiles.inverse_sensitivity(**wanted.given),
    "inverse sensitivity by scales": lambda wanted: quantiles.inverse_sensitivity(**_scales(wanted)),
    "approximate": lambda wanted: quantiles.approximate(**wanted.given),
    "tree": lambda wanted: quantiles.tree(**wanted.given),
    "unbounded": unbounded,
}
