"""Moved to idfsmec.table.files; here until all imports are."""

from idfsmec.table.files import *  # noqa: F403
