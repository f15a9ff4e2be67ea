"""dpjax: differentially private learning theory, runnable. Start with the README, or `dpjax.learners.thresholds`."""

from dpjax.core.multi_sample import MultiSample
from dpjax.core.points import Points
from dpjax.core.sample import Sample
from dpjax.core.status import Outcome, Status

__all__ = ["MultiSample", "Outcome", "Points", "Sample", "Status"]
