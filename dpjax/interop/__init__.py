"""dpjax inside other tools: OpenDP measurements (`pip install 'dpjax[opendp]'`), scikit-learn estimators (`'dpjax[sklearn]'`)."""

from dpjax.core import lazy

__all__ = ["PrivateQuantiles", "PrivateRectangle", "PrivateThreshold", "to_opendp"]

__getattr__, __dir__ = lazy.modules(
    __name__,
    PrivateQuantiles="dpjax.interop.private_quantiles:PrivateQuantiles",
    PrivateRectangle="dpjax.interop.private_rectangle:PrivateRectangle",
    PrivateThreshold="dpjax.interop.private_threshold:PrivateThreshold",
    to_opendp="dpjax.interop.measurement:to_opendp",
)
