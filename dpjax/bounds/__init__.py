"""Sample sizes that the theorems ask for: one function a theorem, float64 on the host."""

from dpjax.bounds.learning import agnostic, pac_lower_bound, realizable
from dpjax.bounds.mechanisms import (
    choosing_mechanism,
    choosing_mechanism_privacy,
    exponential_mechanism,
    printed_equivalent,
    stability_gap,
    stability_noise,
)
from dpjax.bounds.multi import (
    empirical_to_pac,
    fingerprinting_agnostic,
    fingerprinting_delta,
    fingerprinting_thresholds,
    generic_learner,
    parity_learner,
    point_learner,
    pure_packing,
    pure_parities,
)
from dpjax.bounds.parities import (
    agnostic_parities,
    elimination_parities,
    exponential_parities,
    parity_learner_exact,
    parity_learner_failure,
    parity_learner_size,
    parity_learner_theorem,
    rank_deficiency,
)
from dpjax.bounds.points import exponential_points, learn_points
from dpjax.bounds.thresholds import (
    binary_search_thresholds,
    exponential_thresholds,
    iterated_log2,
    learn_thresholds,
    learn_thresholds_full_depth,
    log_star,
    non_private_lower_bound,
    pure_lower_bound,
    rec_concave,
    rec_concave_full_depth,
    rec_concave_lemma,
)
from dpjax.core import lazy

__all__ = [
    "agnostic",
    "agnostic_parities",
    "binary_search_thresholds",
    "choosing_mechanism",
    "choosing_mechanism_privacy",
    "elimination_parities",
    "empirical_to_pac",
    "exponential_mechanism",
    "exponential_parities",
    "exponential_points",
    "exponential_thresholds",
    "fingerprinting_agnostic",
    "fingerprinting_delta",
    "fingerprinting_thresholds",
    "generic_learner",
    "iterated_log2",
    "learn_points",
    "learn_thresholds",
    "learn_thresholds_full_depth",
    "log_star",
    "non_private_lower_bound",
    "pac_lower_bound",
    "parity_learner",
    "parity_learner_exact",
    "parity_learner_failure",
    "parity_learner_size",
    "parity_learner_theorem",
    "point_learner",
    "printed_equivalent",
    "pure_lower_bound",
    "pure_packing",
    "pure_parities",
    "rank_deficiency",
    "realizable",
    "rec_concave",
    "rec_concave_full_depth",
    "rec_concave_lemma",
    "stability_gap",
    "stability_noise",
]

__getattr__, __dir__ = lazy.modules(__name__)
