"""PAC experiments with one concept: `dpjax.data.pac`, re-exported beside the learners."""

from dpjax.data.pac import Experiment, draw, failure, trial

__all__ = ["Experiment", "draw", "failure", "trial"]
