"""OpenDP and diffprivlib on the same columns (extra `bench`); if a package is missing, its curve is left out, and a line says so.

- OpenDP, `make_private_quantile`: report noisy max over candidates, which are the geometric grid of `quantiles.unbounded`; its own
  `map` sets the scale so that each quantile costs epsilon / q when a record is added or removed.
- diffprivlib, `tools.quantile`: the exponential mechanism between sorted data, epsilon / q each, in double precision, for replaced records.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpjax.optimizers.quantiles.unbounded import geometric_grid
from experiments.quantile_trials import Wanted

Peer = Callable[[np.ndarray, Wanted, int], np.ndarray]


def _opendp(codes: np.ndarray, wanted: Wanted, draws: int) -> np.ndarray:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance(), dp.max_divergence()
    grid = geometric_grid(bits=wanted.bits, origin=wanted.origin, base=wanted.base)

    def make(fraction: float, scale: float) -> Any:
        return dp.m.make_private_quantile(*space, candidates=grid, alpha=fraction, scale=scale)

    each = [make(f, make(f, 1.0).map(1) * wanted.number / wanted.epsilon) for f in wanted.fractions]
    assert all(one.map(1) <= wanted.epsilon / wanted.number * (1 + 1e-9) for one in each)
    return np.array([[one(codes) for one in each] for _ in range(draws)])


def _diffprivlib(codes: np.ndarray, wanted: Wanted, draws: int) -> np.ndarray:
    from diffprivlib import tools

    given = {"epsilon": wanted.epsilon, "bounds": (0.0, 2.0**wanted.bits - 1)}
    return np.array(
        [
            np.floor(np.atleast_1d(tools.quantile(codes.astype(float), wanted.fractions, random_state=i, **given)))
            for i in range(draws)
        ]
    )


PEERS: dict[str, tuple[str, Peer]] = {"OpenDP": ("opendp", _opendp), "diffprivlib": ("diffprivlib", _diffprivlib)}


def installed() -> dict[str, Peer]:
    """The peers whose package is installed."""
    found = {}
    for name, (package, peer) in PEERS.items():
        try:
            importlib.import_module(package)
        except ImportError:
            print(f"left out: {name} (install it by pip install '.[bench]')", file=sys.stderr)
        else:
            found[name] = peer
    return found


def largest_errors(codes: np.ndarray, answers: np.ndarray, fractions: Sequence[float]) -> np.ndarray:
    """For each row of answers, the largest rank error: how far k(n) is from #{x < z}, ..., #{x <= z}."""
    wanted = np.floor(np.array(fractions) * len(codes) + 0.5)
    answers = np.sort(answers, axis=1)
    below, up_to = (np.searchsorted(codes, answers, side=side) for side in ("left", "right"))
    return np.maximum(np.maximum(below - wanted, wanted - up_to), 0).max(axis=1)
