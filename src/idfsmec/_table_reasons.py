"""Moved to idfsmec.table; here until all imports are."""

from idfsmec.table.checks import NOT_RECORDED, cells_to_reasons
from idfsmec.table.files import reasons_path

__all__ = ["NOT_RECORDED", "cells_to_reasons", "reasons_path"]
