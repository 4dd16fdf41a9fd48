"""Moved to idfsmec.table.checks; here until all imports are."""

import sys

from idfsmec.table import checks

sys.modules[__name__] = checks
