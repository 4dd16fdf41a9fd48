from .experiments import ABLATIONS, ablation, sensitivity
from .published import published, published_value
from .reproduction import reproduce

__all__ = [
    "ABLATIONS",
    "ablation",
    "published",
    "published_value",
    "reproduce",
    "sensitivity",
]
