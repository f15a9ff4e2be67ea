"""PAC experiments with one concept: `dpjax.data.pac`, where learners are found."""

from dpjax.data.pac import Experiment, draw, failure, trial

__all__ = ["Experiment", "draw", "failure", "trial"]
