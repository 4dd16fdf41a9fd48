"""Moved to idfsmec.progress; here until all imports are."""

from idfsmec.progress import collect_warnings as heard
from idfsmec.progress import warning_texts as texts

__all__ = ["heard", "texts"]
