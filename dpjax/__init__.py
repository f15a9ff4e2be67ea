"""dpjax: differentially private learning theory, runnable. Start with the README, or `dpjax.learners.thresholds`."""

from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample

__all__ = ["MultiSample", "Outcome", "Points", "Sample", "Status"]
