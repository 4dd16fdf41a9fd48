"""The store: finished units in SQLite, one transaction each, written by one process."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from idfsmec._locks import is_of_the_disk, naming_disk, take_lock
from idfsmec.errors import InputError
from idfsmec.evaluation._tuning import UnitResult
from idfsmec.evaluation._units import Outcome, Unit

FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS done (
    key TEXT PRIMARY KEY, unit TEXT NOT NULL, rows TEXT NOT NULL, rankings TEXT NOT NULL,
    notes TEXT NOT NULL, seconds TEXT NOT NULL, finished TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS failed (
    key TEXT PRIMARY KEY, unit TEXT NOT NULL, error TEXT NOT NULL, attempts INTEGER NOT NULL,
    finished TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plan (
    experiment TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, unit TEXT NOT NULL,
    PRIMARY KEY (experiment, position));
"""


class Store:
    """Results of units, kept through anything that may end a run.

    A unit is either in ``done`` with all its rows or it is not; what a killed process had in
    hand is simply not there. Failures are kept apart and never count as done.

    Parameters
    ----------
    folder : path
        Where ``store.sqlite`` lies or will lie.
    read_only : bool
        Readers may look while another process writes. There is one writer: a second one is
        refused, by a lock that ends with the process that holds it, however it ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
    ...     store.done_keys()
    set()
    """

    def __init__(self, folder: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(folder) / "store.sqlite"
        self._lock: sqlite3.Connection | None = None
        if read_only:
            if not self.path.exists():
                raise InputError(f"{folder} holds no results: there is no store.sqlite in it")
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = take_lock(
                self.path.with_suffix(".lock"),
                f"another process is writing to {self.path.parent}; wait for it to end, or choose "
                "another folder with --out",
            )
        try:
            with naming_disk(self.path):
                self._db = self._open(read_only)
        except BaseException:
            self._release()
            raise

    def _open(self, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        db = sqlite3.connect(
            f"{self.path.resolve().as_uri()}?mode={mode}",
            uri=True,
            timeout=60,
            isolation_level=None,
        )
        try:
            _check_whole(db)
            if not read_only:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=FULL")
                db.executescript(_SCHEMA)
                db.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?)", [str(FORMAT)])
            found = db.execute("SELECT value FROM meta WHERE name='format'").fetchone()
        except sqlite3.DatabaseError as error:
            db.close()
            if is_of_the_disk(error):
                raise
            raise InputError(
                f"{self.path} is not a store of results ({error}); move it away or choose "
                "another folder"
            ) from None
        if found is None or found[0] != str(FORMAT):
            db.close()
            raise InputError(
                f"{self.path} has format {found[0] if found else 'unknown'}, this version of "
                f"idfsmec writes {FORMAT}; choose another folder"
            )
        return db

    def set_plan(self, experiment: str, units: Iterable[Unit]) -> None:
        """Say which units an experiment consists of now; results of others stay in the store."""
        rows = [
            (experiment, position, unit.key, json.dumps(unit.coordinates()))
            for position, unit in enumerate(units)
        ]
        with self._transaction():
            self._db.execute("DELETE FROM plan WHERE experiment = ?", [experiment])
            self._db.executemany("INSERT INTO plan VALUES (?, ?, ?, ?)", rows)

    def done_keys(self) -> set[str]:
        """Keys of all finished units."""
        return {key for (key,) in self._db.execute("SELECT key FROM done")}

    def add(self, unit: Unit, outcome: Outcome) -> None:
        """Write what came of a unit, in one transaction."""
        name, now = json.dumps(unit.coordinates()), datetime.now(UTC).isoformat()
        with self._transaction():
            if outcome.result is None:
                self._db.execute(
                    "INSERT INTO failed VALUES (?, ?, ?, 1, ?) ON CONFLICT (key) DO UPDATE "
                    "SET error = excluded.error, finished = excluded.finished, "
                    "attempts = attempts + 1",
                    [unit.key, name, outcome.error, now],
                )
                return
            result = outcome.result
            self._db.execute(
                "INSERT OR REPLACE INTO done VALUES (?, ?, ?, ?, ?, ?, ?)",
                [unit.key, name, _pack(result.rows), _pack(result.rankings), _pack(result.notes)]
                + [_pack(result.seconds), now],
            )
            self._db.execute("DELETE FROM failed WHERE key = ?", [unit.key])

    def planned(
        self, experiment: str | None = None
    ) -> list[tuple[str, dict[str, Any], UnitResult]]:
        """Give experiment, coordinates and result of all units that are planned and done."""
        found = self._db.execute(
            "SELECT plan.experiment, plan.unit, rows, seconds, rankings, notes FROM plan "
            "JOIN done USING (key) WHERE ? IS NULL OR experiment = ? "
            "ORDER BY experiment, position",
            [experiment, experiment],
        )
        return [
            (name, json.loads(unit), UnitResult(*(json.loads(part) for part in parts)))
            for name, unit, *parts in found
        ]

    def failures(self) -> list[dict[str, Any]]:
        """Give the planned units whose last attempt failed, with the text of the traceback."""
        found = self._db.execute(
            "SELECT experiment, plan.unit, error, attempts FROM plan JOIN failed USING (key) "
            "ORDER BY experiment, position"
        )
        return [
            {"experiment": name, **json.loads(unit), "attempts": attempts, "traceback": error}
            for name, unit, error, attempts in found
        ]

    def get_meta(self, name: str) -> Any:
        """Read what :meth:`set_meta` has kept, or None."""
        found = self._db.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()
        return None if found is None else json.loads(found[0])

    def set_meta(self, name: str, value: Any) -> None:
        """Keep something that is no unit, such as the protocol."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [name, _pack(value)])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, also when the process dies in between."""
        with naming_disk(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite may have ended it already
                    self._db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file and let others write."""
        if self._lock is not None:
            # Back to a single file, which can be copied as it is; a reader may be in the way.
            with contextlib.suppress(sqlite3.OperationalError):
                self._db.execute("PRAGMA journal_mode=DELETE")
        self._db.close()
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_whole(db: sqlite3.Connection) -> None:
    """Look through all pages now, not after hours of work; milliseconds for a usual store."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"it is damaged: {' '.join(found.split())}")


def _pack(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
