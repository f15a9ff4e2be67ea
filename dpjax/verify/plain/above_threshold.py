"""A naive reference for AboveThreshold (Dwork and Roth 2014, Theorem 3.23): its law by adaptive quadrature over the threshold's noise."""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import integrate, stats


def first_above(queries: Sequence[float], threshold: float, epsilon: float, outcomes: Sequence[int]) -> np.ndarray:
    """P[query i is the first one above] for each i of `outcomes`, len(queries) being none; integrates from kink to kink of the integrand.

    >>> first_above([0.0], 0.0, 1.0, [0, 1]).round(6).tolist()
    [0.5, 0.5]
    """
    unit, law = 2 / epsilon, stats.laplace
    margins = (np.asarray(queries) - threshold) / unit
    kinks = np.unique(np.clip(np.concatenate([margins, [0.0, -40.0, 40.0, -5.0, 5.0]]), -40, 40))

    def density(z: float, i: int) -> float:
        silent = np.prod(law.cdf((z - margins[:i]) / 2))
        return float(law.pdf(z) * silent * (law.sf((z - margins[i]) / 2) if i < len(margins) else 1.0))

    pieces = [
        [integrate.quad(density, low, high, (i,), epsabs=0, epsrel=1e-10)[0] for low, high in itertools.pairwise(kinks)]
        for i in outcomes
    ]
    return np.array(pieces).sum(axis=1)
