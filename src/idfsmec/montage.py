"""Moved to idfsmec.table.positions; here until all imports are."""

from idfsmec.table.positions import *  # noqa: F403
