"""How fast a store of results grows: ``python -m benchmarks.endurance.store_size FOLDER``.

Reads the store of a finished benchmark: bytes per unit by method, units per hour between the first
and the last one finished, and the size after a day of nothing but such units.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from pathlib import Path

import pandas as pd

_UNITS = """SELECT unit, finished,
length(CAST(key || unit || rows || rankings || notes || seconds AS BLOB)) FROM done"""
_ALL = """SELECT sum(pgsize) FILTER (WHERE name LIKE '%done%' OR name LIKE '%plan%'), sum(pgsize)
FROM dbstat"""


def read_units(store: Path) -> tuple[pd.DataFrame, int, int]:
    """One row per finished unit; bytes of the file that grow with units, and all bytes."""
    with contextlib.closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as db:
        found = db.execute(_UNITS).fetchall()
        growing, whole = db.execute(_ALL).fetchone()
    units = pd.DataFrame(found, columns=["unit", "finished", "bytes"])
    units["method"] = [json.loads(unit)["method"] for unit in units["unit"]]
    units["finished"] = pd.to_datetime(units["finished"])
    return units, growing, whole


def main(folder: str) -> int:
    store = Path(folder).resolve() / "store.sqlite"
    units, growing, whole = read_units(store)
    hours = (units["finished"].max() - units["finished"].min()).total_seconds() / 3600
    per_unit, per_hour = growing / len(units), (len(units) - 1) / hours
    print(units.groupby("method")["bytes"].mean().round().to_string())
    print(f"{len(units)} units in {whole / 2**10:.0f} KiB, of which {per_unit:.0f} bytes per unit")
    print(f"{per_hour:.0f} units per hour: {24 * per_hour * per_unit / 2**20:.0f} MiB in 24 hours")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
