"""Moved to idfsmec._validation; here until all imports are."""

from idfsmec._validation import *  # noqa: F403
