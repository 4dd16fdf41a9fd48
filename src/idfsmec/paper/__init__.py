"""What belongs to the paper alone: its published values and its protocol."""

from idfsmec.paper.published import published, published_value
from idfsmec.paper.reproduction import reproduce

__all__ = ["published", "published_value", "reproduce"]
