"""Moved to idfsmec.table.files; here until all imports are."""

import sys

from idfsmec.table import files

sys.modules[__name__] = files
