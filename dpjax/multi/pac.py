"""PAC experiments with k concepts: `dpjax.data.pac`, where k-learners are found."""

from dpjax.data.pac import Experiment, draw, failure, trial

__all__ = ["Experiment", "draw", "failure", "trial"]
