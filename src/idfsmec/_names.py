"""Moved to idfsmec.table.columns; here until all imports are."""

from idfsmec.table.columns import *  # noqa: F403
