"""Convex polygons of k sides by SetCoverLearner over halfplanes (GEO §4, Theorem 4.8).

Every round draws one halfplane exactly (`dpjax.learners.halfplanes.refinement`) and deletes the examples outside it; the intersection of
all is released. Privacy and utility are those of `dpjax.learners.set_cover.rounds`: Claim 3.4 holds for weights over any measure. A piece
of halfplanes that agree has a share of at least e^-L of the measure, with L = ln(48 D^4) for the measure "axes" and ln(64 D^7) for GEO's
"box" (`dpjax.concepts.plane.lattice`), and L takes the place of ln |H|. GEO's Lemma 4.7 uses ln(128 D^8).

    >>> import jax
    >>> from dpjax.concepts import polygons as concept
    >>> from dpjax.learners import polygons
    >>> law = concept.uniform(bits=20, target=concept.regular(bits=20, sides=3))
    >>> learner = polygons.convex(bits=20, sides=3, epsilon=2.0, delta=1e-6, alpha=0.2)
    >>> outcome = learner(jax.random.key(1), law.sample(jax.random.key(0), 2**14 - 1, 2**14 - 1))
    >>> float(law.error(outcome.hypothesis)) < 0.2, learner.guarantee().covers(2.0, 1e-6)
    (True, True)
    >>> learner.sample_size(alpha=0.2, beta=0.1)
    88013
"""

from dpjax.core import arguments
from dpjax.learners import set_cover
from dpjax.learners.halfplanes import select_halfplane
from dpjax.learners.set_cover import SetCover


def convex(
    *,
    bits: int,
    sides: int,
    epsilon: float,
    delta: float,
    alpha: float,
    beta: float = 0.1,
    measure: str = "axes",
    accountant: str = "shared_test",
    calibration: str = "proved",
) -> SetCover:
    """A convex polygon of at most `sides` sides over {0, ..., 2^d - 1}^2 (GEO Theorem 4.8); see the module.

    Formal guarantees: (epsilon, delta) under ADD_OR_REMOVE_ONE ("printed": what `guarantee()` says, up to (2 epsilon, delta) for epsilon <=
    2.5 ln(e/delta)). Not promised: protection from floating-point side channels; a cryptographic generator.

    Args:
      bits: d, 1 to 64.
      sides: k, the largest number of sides.
      measure: on halfplanes, "axes" or GEO's "box".
      epsilon, delta, alpha, beta, accountant, calibration: as for `dpjax.learners.set_cover.learner`.

    Raises:
      TypeError, ValueError: an argument out of range.
    """
    return set_cover.learner(
        select_halfplane(bits=bits, measure=measure),
        k=arguments.integer("sides", sides, at_least=1, at_most=2**10),
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        beta=beta,
        accountant=accountant,
        calibration=calibration,
    )
