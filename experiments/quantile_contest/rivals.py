"""Who takes part: `dpjax.quantiles`, which knows nothing but what is public, and each method run by hand at the same epsilon.

Methods with slices of many points around each quantile are left out: they need a delta, and thousands of records (experiment
`quantiles`).
"""

from collections.abc import Callable
from typing import Any

from dpjax.optimizers import quantiles
from dpjax.optimizers.quantiles.answer import of_choice
from experiments.quantile_trials import Wanted

OURS = "dpjax.quantiles"


def _given(wanted: Wanted) -> dict[str, Any]:
    return {"bits": wanted.bits, "fractions": wanted.fractions, "epsilon": wanted.epsilon}


def _scales(wanted: Wanted) -> dict[str, Any]:
    return {**_given(wanted), "base": "scales", "origin": wanted.origin}


def _unbounded(wanted: Wanted) -> Any:
    return quantiles.unbounded(**_given(wanted), base=wanted.base, origin=wanted.origin)


METHODS: dict[str, Callable[[Wanted], Any]] = {
    OURS: lambda wanted: of_choice(None, origin=wanted.origin, **_given(wanted)),
    "rank exponential": lambda wanted: quantiles.rank_exponential(**_given(wanted)),
    "rank exponential by scales": lambda wanted: quantiles.rank_exponential(**_scales(wanted)),
    "joint, targets from n": lambda wanted: quantiles.joint(**_given(wanted), candidates=1),
    "joint": lambda wanted: quantiles.joint(**_given(wanted)),
    "joint by scales": lambda wanted: quantiles.joint(**_scales(wanted)),
    "joint by places": lambda wanted: quantiles.joint(**{**_scales(wanted), "base": "places"}),
    "approximate": lambda wanted: quantiles.approximate(**_given(wanted)),
    "tree": lambda wanted: quantiles.tree(**_given(wanted)),
    "unbounded": _unbounded,
}
