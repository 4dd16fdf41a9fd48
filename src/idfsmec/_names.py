"""Moved to idfsmec.table.columns; here until all imports are."""

import sys

from idfsmec.table import columns

sys.modules[__name__] = columns
