"""A naive exact reference for SelectTriangle (GEO §5): all triples of halfplanes, by fractions; and the law of the Gibbs sampler."""

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpjax.verify.plain.halfplanes import Labels, Point, halfplane_measures


def triangle_shares(points: Sequence[Point], bits: int, measure: str) -> dict[Labels, Fraction]:
    """For each way to label the points, the share of the triples of halfplanes whose intersection labels them that way.

    >>> shares = triangle_shares([(0, 0), (1, 1)], 1, "axes")
    >>> sum(shares.values()), shares[True, True]
    (Fraction(1, 1), Fraction(1, 27))
    """
    areas = halfplane_measures(points, bits, measure)
    total = sum(areas.values())
    found: dict[Labels, Fraction] = {}
    for triple in itertools.product(areas, repeat=3):
        labels = tuple(all(each) for each in zip(*triple, strict=True))
        share = areas[triple[0]] * areas[triple[1]] * areas[triple[2]] / total**3
        found[labels] = found.get(labels, Fraction(0)) + share
    return found


def gibbs_laws(labels: Any, share: Any, scores: Any, rates: Sequence[float]) -> Any:
    """P[triple of labellings] after all sweeps, and exactly: two arrays with three axes.

    There is one chain, which starts at three halfplanes drawn from the measure and draws each anew in each sweep, given the two others.

    Args:
      labels: the labels of all halfplanes, booleans of shape (halfplanes, points).
      share: each halfplane's share of the measure.
      scores: a function from labels, of shape (triangles, points), to their scores.
      rates: the rates of the sweeps.
    """
    pairs = labels[:, None] & labels[None]
    q = np.stack([scores(pairs.reshape(-1, labels.shape[1]) & one).reshape(pairs.shape[:2]) for one in labels])
    prior = share[:, None, None] * share[:, None] * share
    law = prior
    for rate in rates:
        weights = prior * np.exp(rate * (q - q.max()))
        for axis in range(3):
            # A symmetric q: the conditional law of each side is the joint law over its sum along that side.
            law = law.sum(axis=axis, keepdims=True) * (weights / weights.sum(axis=axis, keepdims=True))
    return law, weights / weights.sum()
