from .experiments import ABLATIONS, ablation, as_published, sensitivity
from .published import published, published_value
from .reproduction import reproduce

__all__ = [
    "ABLATIONS",
    "ablation",
    "as_published",
    "published",
    "published_value",
    "reproduce",
    "sensitivity",
]
