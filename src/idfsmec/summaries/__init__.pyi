from .alike import harmonize_summaries
from .summarise import summarise
from .summary import Summary, combine

__all__ = [
    "summarise",
    "Summary",
    "combine",
    "harmonize_summaries",
]
