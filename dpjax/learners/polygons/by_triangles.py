"""Unions of polygons of k edges in all, by SetCoverLearner over triangles (GEO §5, Theorem 5.1).

A polygon of k edges is the union of k - 2 triangles (GEO uses k), so m polygons of k edges in all are the union of k - 2m triangles. They
are learned by the dual of SetCoverLearner with that many hypotheses, each an intersection of three halfplanes. A piece of triangles that
agree on the grid has a share of at least e^-L of the measure, with three times the L of halfplanes
(`dpjax.learners.polygons.by_halfplanes`).

**What is promised** depends on how triangles are drawn. On grids of 1 or 2 bits they are drawn exactly (`SelectTriangle`), and
(epsilon, delta) holds. On all other grids they are drawn by a Gibbs sampler (`GibbsTriangle`): `guarantee()` is `Guarantee.none`, the
output is what a private learner would release up to an error of the sampler that is not bounded, and `sample_size` refuses. Theorem 5.1
calls the learner efficient, but the number of triples of regions is of the order n^6.

    >>> import jax
    >>> from dpjax.concepts import polygons as concept
    >>> from dpjax.learners import polygons
    >>> target = concept.union(bits=2, parts=[[(0, 0), (1, 0), (1, 3), (0, 3)], [(3, 0), (3, 3), (3.5, 1)]])
    >>> law = concept.uniform(bits=2, target=target)
    >>> learner = polygons.union(bits=2, sides=7, polygons=2, epsilon=1.0, delta=1e-6, alpha=0.2)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 2**14 - 1, 2**14 - 1))
    >>> float(law.error(outcome.hypothesis)) < 0.2, learner.guarantee().covers(1.0, 1e-6)
    (True, True)
    >>> print(polygons.union(bits=6, sides=3, epsilon=1.0, delta=1e-6, alpha=0.2).guarantee())
    nothing is promised under ADD_OR_REMOVE_ONE
"""

from typing import Any

from dpjax.concepts.plane.lattice import MEASURES, MOST_BITS
from dpjax.core import arguments
from dpjax.learners import set_cover
from dpjax.learners.halfplanes.select import LISTED
from dpjax.learners.polygons.gibbs_triangle import GibbsTriangle
from dpjax.learners.polygons.select_triangle import SelectTriangle
from dpjax.learners.set_cover import SetCover

SWEEPS, CHAINS = 16, 4


def union(
    *,
    bits: int,
    sides: int,
    polygons: int = 1,
    measure: str = "axes",
    sweeps: int = SWEEPS,
    chains: int = CHAINS,
    calibration: str = "proved",
    **given: Any,
) -> SetCover:
    """A union of polygons with at most `sides` edges in all, over {0, ..., 2^d - 1}^2 (GEO Theorem 5.1); see the module.

    Formal guarantees: for bits <= 2, (epsilon, delta) under ADD_OR_REMOVE_ONE ("printed": what `guarantee()` says, up to (2 epsilon, delta)
    for epsilon <= 2.5 ln(e/delta)); for more bits none at all, as the sampler is approximate. Not promised: protection from floating-point
    side channels; a cryptographic generator.

    Args:
      bits: d, 1 to 64.
      sides: k, the largest number of edges of all polygons together; they need not be convex.
      polygons: m, the least number of polygons: k - 2m triangles suffice, k - 2 for a single polygon. With "printed" there are k triangles.
      measure: on halfplanes, "axes" or GEO's "box".
      sweeps, chains: of the Gibbs sampler in each round, see `GibbsTriangle`; the time is proportional to their product.
      calibration: "proved", or "printed" for the paper's constants.
      epsilon, delta, alpha, beta, accountant: as for `dpjax.learners.set_cover.learner`.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    bits = arguments.integer("bits", bits, at_least=1, at_most=MOST_BITS)
    measure = arguments.choice("measure", measure, MEASURES)
    polygons = arguments.integer("polygons", polygons, at_least=1, at_most=2**8)
    sides = arguments.integer("sides", sides, at_least=3 * polygons, at_most=2**10)
    sweeps = arguments.integer("sweeps", sweeps, at_least=1, at_most=2**12)
    chains = arguments.integer("chains", chains, at_least=1, at_most=2**8)
    printed = arguments.calibration(calibration) == "printed"
    return set_cover.learner(
        SelectTriangle(bits=bits, measure=measure)
        if bits <= LISTED
        else GibbsTriangle(bits=bits, measure=measure, sweeps=sweeps, chains=chains),
        k=sides if printed else sides - 2 * polygons,
        dual=True,
        calibration=calibration,
        **given,
    )
