"""Moved to idfsmec.table.checks; here until all imports are."""

from idfsmec.table.checks import *  # noqa: F403
