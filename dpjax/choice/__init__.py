"""Which algorithm, how much data, what epsilon: `dpjax.choose`. One file per task; see the page of this room."""

from dpjax.choice.base import Candidate, Offer, Question, UnavailableError
from dpjax.choice.choosing import TASKS, Choice, Rival, choose

__all__ = ["TASKS", "Candidate", "Choice", "Offer", "Question", "Rival", "UnavailableError", "choose"]
