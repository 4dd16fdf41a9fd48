"""Sums that sites share instead of rows, and tables that are read a few rows at a time.

:mod:`streaming` reads a table in pieces and sums it up, :mod:`release` decides what of the sums a
site releases, :mod:`ledger` remembers the participants released, :mod:`summary` writes, reads and
checks summary files and puts the summaries of several sites together.
"""

from idfsmec.federated.ledger import Ledger
from idfsmec.federated.release import read_study_key, summarise
from idfsmec.federated.summary import SiteSums, Study, Summary

__all__ = ["Ledger", "SiteSums", "Study", "Summary", "read_study_key", "summarise"]
