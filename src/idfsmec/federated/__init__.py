"""What sites share in place of rows, and tables that are read a few rows at a time.

:mod:`streaming` reads a table in pieces and sums it up, :mod:`release` decides what of the sums a
site releases, :mod:`ledger` remembers earlier releases, :mod:`summary` writes, reads and checks
summary files, :mod:`study` puts the summaries of several sites together.
"""

from idfsmec.federated.ledger import Ledger
from idfsmec.federated.release import MIN_SUBJECTS, summarise
from idfsmec.federated.streaming import SumsInPieces, stream_sums
from idfsmec.federated.study import Study, study_of
from idfsmec.federated.summary import SiteSums, Summary

__all__ = [
    "MIN_SUBJECTS",
    "Ledger",
    "SiteSums",
    "Study",
    "Summary",
    "SumsInPieces",
    "stream_sums",
    "study_of",
    "summarise",
]
