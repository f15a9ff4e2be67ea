"""Privacy checked, not believed: exact laws over all neighbours, Monte-Carlo audits, broken mechanisms."""

from dpjax.core import lazy
from dpjax.verify.audit import Audit, audit, audit_samples
from dpjax.verify.broken import Specimen, specimens, stability_specimen
from dpjax.verify.check import Report, check
from dpjax.verify.exact import (
    Worst,
    delta_curve,
    histograms,
    hockey_stick,
    laplace_delta,
    laplace_deltas,
    neighbours,
    probabilities,
    records,
    sequence_neighbours,
    sequences,
    worst_pair,
)

__all__ = [
    "Audit",
    "Report",
    "Specimen",
    "Worst",
    "audit",
    "audit_samples",
    "check",
    "delta_curve",
    "histograms",
    "hockey_stick",
    "laplace_delta",
    "laplace_deltas",
    "neighbours",
    "probabilities",
    "records",
    "sequence_neighbours",
    "sequences",
    "specimens",
    "stability_specimen",
    "worst_pair",
]

__getattr__, __dir__ = lazy.modules(__name__)
