"""dpjax: differentially private learning theory, runnable. Start with the README, or `dpjax.learners.thresholds`."""

from dpjax.core import lazy
from dpjax.core.cache import enable_cache
from dpjax.core.loops import enable_loop_kernels
from dpjax.data.multi_sample import MultiSample
from dpjax.data.outcome import Outcome, Status
from dpjax.data.points import Points
from dpjax.data.sample import Sample
from dpjax.data.weighted import Weighted

__version__ = "0.1.0"
__all__ = [
    "MultiSample",
    "Outcome",
    "Points",
    "Sample",
    "Status",
    "Weighted",
    "check",
    "choose",
    "decode",
    "enable_cache",
    "enable_loop_kernels",
    "encode",
    "failures",
    "least_n",
    "quantiles",
]

__getattr__, __dir__ = lazy.modules(
    __name__,
    check="dpjax.verify.check:check",
    choose="dpjax.choice.choosing:choose",
    decode="dpjax.data.encoding:decode",
    encode="dpjax.data.encoding:encode",
    failures="dpjax.trials.failures:failures",
    least_n="dpjax.trials.sweep:least_n",
    quantiles="dpjax.optimizers.quantiles.answer:quantiles",
)
