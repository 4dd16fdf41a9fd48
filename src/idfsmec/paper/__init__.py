"""What belongs to the paper alone: its values, grids, ablations, protocol, and a reproduction."""

from idfsmec.paper.experiments import ABLATIONS, ablation, sensitivity
from idfsmec.paper.published import published, published_value
from idfsmec.paper.reproduction import reproduce

__all__ = [
    "ABLATIONS",
    "ablation",
    "published",
    "published_value",
    "reproduce",
    "sensitivity",
]
