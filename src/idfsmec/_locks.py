"""Moved to idfsmec._files; here until all imports are."""

from idfsmec._files import *  # noqa: F403
