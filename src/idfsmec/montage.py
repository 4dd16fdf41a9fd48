"""Moved to idfsmec.table.positions; here until all imports are."""

import sys

from idfsmec.table import positions

sys.modules[__name__] = positions
