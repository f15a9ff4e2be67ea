"""SetCoverLearner (GEO §3), generic over the class of hypotheses it chooses from.

`learner` builds it from a `Selection`: `dpjax.learners.conjunctions` has the selection of literals, `dpjax.learners.polygons` those of
halfplanes and triangles. See `dpjax.learners.set_cover.rounds` for the algorithm, its privacy and its utility.
"""

from dpjax.learners.set_cover.base import Rounds
from dpjax.learners.set_cover.planning import ACCOUNTANTS, Plan, learner, plan, printed
from dpjax.learners.set_cover.rounds import SetCover
from dpjax.learners.set_cover.selection import Selection

__all__ = ["ACCOUNTANTS", "Plan", "Rounds", "Selection", "SetCover", "learner", "plan", "printed"]
