"""PAC experiments with k concepts: `dpjax.data.pac`, re-exported beside the k-learners."""

from dpjax.data.pac import Experiment, draw, failure, trial

__all__ = ["Experiment", "draw", "failure", "trial"]
