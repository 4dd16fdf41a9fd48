"""The store: finished tasks in SQLite, one transaction each, written by one process."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from idfsmec._files import (
    check_readable,
    file_system,
    is_of_the_disk,
    naming_disk,
    refuse_moved,
    take_lock,
)
from idfsmec.errors import InputError

if TYPE_CHECKING:  # who reads results needs none of what computes them
    from idfsmec.evaluation.tasks import Task

FORMAT = 6
# SQLite's own limit is 512, with what it appends.
_LONGEST_PATH = 480
#: Columns of each table; the first ones are its key, two of ``plan``. All but numbers are text.
_TABLES = {
    "meta": ("name", "value"),
    "tables": ("name", "digest", "columns", "about"),
    "done": (
        *("key", "task", "rows", "seconds", "rankings", "notes", "found"),
        *("versions", "finished"),
    ),
    "failed": ("key", "task", "error", "attempts", "finished"),
    "plan": ("experiment", "position", "key", "task", "table_name", "digest"),
}


# On these the write-ahead log of SQLite, which readers on other machines do not see, fails.
_NETWORKS = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "lustre", "gpfs", "beegfs", "ceph"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs"),
)


def _create_table(name: str) -> str:
    columns = _TABLES[name]
    key = ", ".join(columns[: 2 if name == "plan" else 1])
    return f"CREATE TABLE {name} ({', '.join(columns)}, checksum, PRIMARY KEY ({key}))"


def _checksum(values: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class StoredTable:
    """A table in a store; the digest identifies its content."""

    name: str
    digest: str
    columns: tuple[str, ...] = field(repr=False)
    facts: dict[str, Any] = field(repr=False)


@dataclass
class TaskResult:
    """Result of a task: a row per k (and setting), the order of features, and timings.

    ``rankings`` holds column indices, best first, cut at the largest k; a row's ``order`` says
    which of them it is scored with. ``found`` is what tasks without scores give, and of those with
    scores ``held_out``: probabilities of subjects at the chosen setting. A task that failed has
    the text of the traceback as its ``error`` alone. ``versions`` are those of the packages that
    computed it.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    rankings: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True)
class Planned:
    """A task that is planned and done."""

    experiment: str
    task: dict[str, Any]
    table: StoredTable = field(repr=False)
    result: TaskResult = field(repr=False)


class Store(contextlib.AbstractContextManager["Store"]):
    """Results of tasks in ``store.sqlite`` of a folder, which survives interruptions of a run.

    A task is either in ``done`` with all its rows or it is not. Readers may look while another
    process writes. There is one writer: a second one is refused, by a lock that ends with the
    process that holds it, however it ends. With ``overwrite``, rows that were damaged after they
    were written are removed, to be computed again; otherwise the store is refused.
    """

    def __init__(
        self, folder: str | Path, *, read_only: bool = False, overwrite: bool = False
    ) -> None:
        self.path = Path(folder) / "store.sqlite"
        check_readable(*self.path.parent.glob("store.*"))
        if len(os.fsencode(self.path.resolve())) > _LONGEST_PATH:
            raise InputError(
                f"{str(folder)[:60]}...: the path is too long for SQLite, which takes "
                f"{_LONGEST_PATH} bytes; choose a shorter one"
            )
        if self.path.is_dir():
            raise InputError(f"{self.path} is a folder; move it away or choose another folder")
        kind = "" if read_only else file_system(self.path.parent)
        if kind in _NETWORKS:
            raise InputError(
                f"{folder} is on a network file system ({kind}), where SQLite can lose results: "
                "choose a folder of a disk of this machine, such as $TMPDIR, and copy it when the "
                "command has ended"
            )
        if read_only and not self.path.exists():
            raise InputError(
                f"{folder} holds no results: there is no store.sqlite in it; make some with "
                "`idfsmec benchmark` or idfsmec.evaluation.accuracy"
            )
        self.part: tuple[int, int] | None = None  # of the tasks of folds, which are done here
        self.parsed: Any = None  # what was read of it, until something changes
        with contextlib.ExitStack() as stack:
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                busy = (
                    f"another process is writing to {self.path.parent}; wait for it to end, or "
                    "choose another folder"
                )
                lock = take_lock(self.path.with_suffix(".lock"), busy)
                stack.callback(lock.close)
            with naming_disk(self.path):
                self._db = self._open(read_only, overwrite)
                stack.callback(self._db.close)
                self._file = self.path.stat()
            if not read_only:
                stack.callback(self._make_single_file)
            self._closing = stack.pop_all()

    def _open(self, read_only: bool, overwrite: bool) -> sqlite3.Connection:
        address = f"{self.path.resolve().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        db = sqlite3.connect(address, uri=True, timeout=60, isolation_level=None)
        try:
            db.text_factory = partial(str, encoding="utf-8", errors="replace")
            made = self._check_schema(db)
            # All pages now, not after hours of work; milliseconds for a usual store.
            (state,) = db.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(f"it is damaged: {' '.join(state.split())}")
            if not made and not read_only:
                # At once: a process killed in between must not leave a store without its format.
                first = "format", str(FORMAT)
                db.execute("BEGIN IMMEDIATE")
                for table in _TABLES:
                    db.execute(_create_table(table))
                db.execute("INSERT INTO meta VALUES (?, ?, ?)", [*first, _checksum(first)])
                db.execute("COMMIT")
            stored = db.execute("SELECT value FROM meta WHERE name='format'").fetchone()
            if stored is None or stored[0] != str(FORMAT):
                raise InputError(
                    f"{self.path} has format {stored[0] if stored else 'unknown'}, this version "
                    f"of idfsmec reads and writes {FORMAT}; compute the results again in another "
                    "folder, or read them with the version that made them"
                )
            if not read_only:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=FULL")
            self._check_rows(db, overwrite)
        except BaseException as error:
            db.close()
            # UnicodeDecodeError: SQLite quotes a damaged schema.
            damage = isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError)
            if not damage or is_of_the_disk(error):
                raise
            raise InputError(
                f"{self.path} is not a store of results ({error}); move it away or choose "
                "another folder"
            ) from None
        return db

    def _check_schema(self, db: sqlite3.Connection) -> bool:
        """Return whether there are tables; refuse what a store of this format does not have.

        A view in place of a table may never end, and a trigger may delete what is written.
        """
        db.execute("PRAGMA trusted_schema=OFF")
        made = db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        for kind, name, sql in made:
            if kind == "index" and sql is None:  # of a primary key
                continue
            if kind != "table":
                raise sqlite3.DatabaseError(f"it has the {kind} {name!r}")
            if name == "meta" and not sql.startswith("CREATE TABLE meta ("):  # nothing virtual
                raise sqlite3.DatabaseError("its table 'meta' is of another kind")
        if any(name == "meta" for _, name, _ in made):
            query = "SELECT count(*) FROM meta WHERE name='format' AND value=?"
            (is_of_this_format,) = db.execute(query, [str(FORMAT)]).fetchone()
            expected = {_create_table(name) for name in _TABLES}
            if is_of_this_format and {sql for _, _, sql in made if sql} != expected:
                raise sqlite3.DatabaseError("its tables are not those of this format")
        return bool(made)

    def _check_rows(self, db: sqlite3.Connection, overwrite: bool) -> None:
        """Refuse rows that are not as they were written, or remove them and mend the index."""
        (index,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if index != "ok" and overwrite:  # rows have checksums, their index follows from them
            db.execute("REINDEX")
        damaged = [
            (table, number)
            for table, columns in _TABLES.items()
            for number, *values, checksum in db.execute(
                f"SELECT rowid, {', '.join(columns)}, checksum FROM {table}"  # noqa: S608 - our names
            )
            if _checksum(values) != checksum
        ]
        if (damaged or index != "ok") and not overwrite:
            raise InputError(
                f"{self.path} is damaged: {len(damaged) or 'some'} of its rows are not as they "
                "were written. Give the benchmark's command again with overwrite=True, which "
                "computes them again and keeps all others",
                argument="overwrite",
            )
        for table, number in damaged:
            db.execute(f"DELETE FROM {table} WHERE rowid = ?", [number])  # noqa: S608

    def _insert(self, table: str, *values: Any) -> None:
        """Write a row with its checksum, in place of one of the same key."""
        marks = ", ".join("?" * (len(values) + 1))
        insert = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608 - our names
        self._db.execute(insert, [*values, _checksum(values)])

    def add_tables(self, tables: Collection[StoredTable], *, overwrite: bool = False) -> None:
        """Keep what the tables of a run are.

        Another table under a known name would give old results its own column names: it is
        refused, or with ``overwrite`` replaces the old one and its plans.
        """
        known = self.tables()
        tables = [table for table in tables if table != known.get(table.name)]
        changed = [t.name for t in tables if t.digest != known.get(t.name, t).digest]
        if changed and not overwrite:
            raise InputError(
                f"{self.path.parent} holds results of another table named {changed[0]!r}, with "
                "other values or columns. Give this one another name, choose another folder, or "
                "replace those results with overwrite=True",
                argument="overwrite",
            )
        if not tables:
            return
        with self._transaction():
            for name in changed:
                self._db.execute("DELETE FROM plan WHERE table_name = ?", [name])
            for table in tables:
                parts = map(_pack, (table.columns, table.facts))
                self._insert("tables", table.name, table.digest, *parts)

    def tables(self) -> dict[str, StoredTable]:
        """All tables by name."""
        rows = self._db.execute("SELECT name, digest, columns, about FROM tables")
        return {
            name: StoredTable(name, digest, tuple(json.loads(columns)), json.loads(facts))
            for name, digest, columns, facts in rows
        }

    def set_plan(self, experiment: str, tasks: Sequence[Task], *, keep: bool = False) -> None:
        """Set the tasks of an experiment; with ``keep``, those of other tables stay planned."""
        names = {task.table for task in tasks}
        planned = self._db.execute(
            "SELECT key, task, table_name, digest FROM plan WHERE experiment = ? "
            "ORDER BY position",
            [experiment],
        ).fetchall()
        rows = [row for row in planned if keep and row[2] not in names]
        rows += [
            (task.key, json.dumps(task.coordinates), task.table, task.digest) for task in tasks
        ]
        if rows == planned:
            return
        with self._transaction():
            self._db.execute("DELETE FROM plan WHERE experiment = ?", [experiment])
            for position, row in enumerate(rows):
                self._insert("plan", experiment, position, *row)

    def done_keys(self) -> set[str]:
        """Keys of all finished tasks."""
        return {key for (key,) in self._db.execute("SELECT key FROM done")}

    def add(self, task: Task, result: TaskResult) -> None:
        """Write what came of a task, in one transaction."""
        name, now = json.dumps(task.coordinates), datetime.now(UTC).isoformat()
        with self._transaction():
            if result.error is not None:
                before = self._db.execute("SELECT attempts FROM failed WHERE key = ?", [task.key])
                attempts = 1 + sum(number for (number,) in before)
                self._insert("failed", task.key, name, result.error, attempts, now)
                return
            names = ("rows", "seconds", "rankings", "notes", "found", "versions")
            parts = (_pack(getattr(result, part)) for part in names)
            self._insert("done", task.key, name, *parts, now)
            self._db.execute("DELETE FROM failed WHERE key = ?", [task.key])

    def planned(self) -> list[Planned]:
        """Return all tasks that are planned and done, in the order of their plans."""
        tables = self.tables()
        rows = self._db.execute(
            "SELECT plan.experiment, plan.task, plan.table_name, rows, seconds, rankings, notes, "
            "found, versions FROM plan JOIN done USING (key) JOIN tables "
            "ON tables.name = plan.table_name AND tables.digest = plan.digest "
            "ORDER BY experiment, position"
        )
        return [
            Planned(name, json.loads(task), tables[table], TaskResult(*map(json.loads, parts)))
            for name, task, table, *parts in rows
        ]

    def add_done(self, folder: Path) -> None:
        """Take over the finished tasks of another store, those of the same key once."""
        columns = ", ".join(_TABLES["done"])
        known = self.done_keys()
        with Store(folder, read_only=True) as other:
            rows = other._db.execute(f"SELECT {columns} FROM done")  # noqa: S608 - our names
            new = [row for row in rows if row[0] not in known]
        if new:
            with self._transaction():
                for row in new:
                    self._insert("done", *row)
                    self._db.execute("DELETE FROM failed WHERE key = ?", [row[0]])

    def versions(self) -> dict[str, Counter[str]]:
        """Count the planned tasks that each version of a package has computed."""
        counts: dict[str, Counter[str]] = {}
        query = "SELECT versions, count(*) FROM plan JOIN done USING (key) GROUP BY versions"
        for versions, number in self._db.execute(query):
            for name, version in json.loads(versions).items():
                counts.setdefault(name, Counter())[version] += number
        return counts

    def failures(self) -> list[dict[str, Any]]:
        """Give the planned tasks whose last attempt failed, with the text of the traceback."""
        rows = self._db.execute(
            "SELECT experiment, plan.task, error, attempts FROM plan JOIN failed USING (key) "
            "ORDER BY experiment, position"
        )
        return [
            {"experiment": name, **json.loads(task), "attempts": attempts, "traceback": error}
            for name, task, error, attempts in rows
        ]

    def get_meta(self, name: str) -> Any:
        """Read what :meth:`set_meta` has kept, or None."""
        row = self._db.execute("SELECT value FROM meta WHERE name = ?", [name]).fetchone()
        return None if row is None else json.loads(row[0])

    def add_meta(self, name: str, new: dict[str, Any]) -> None:
        """Add to a dictionary that earlier runs have left."""
        known = self.get_meta(name) or {}
        if _pack(together := {**known, **new}) != _pack(known):
            self.set_meta(name, together)

    def set_meta(self, name: str, value: Any) -> None:
        """Keep something that is no task, such as the protocol."""
        # When and where a run was changes no result.
        with self._transaction(changes_results=name not in ("runs", "environment")):
            self._insert("meta", name, _pack(value))

    @contextlib.contextmanager
    def _transaction(self, changes_results: bool = True) -> Iterator[None]:
        """All or nothing, also when the process dies in between."""
        if changes_results:
            self.parsed = None
        self.check_in_place()
        with naming_disk(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite may have ended it already
                    self._db.execute("ROLLBACK")
                raise

    def check_in_place(self) -> None:
        """Refuse to go on where the file was deleted or moved since it was opened."""
        refuse_moved(self.path, self._file, "tasks")

    def close(self) -> None:
        """Close the file and let others write."""
        self._closing.close()

    def _make_single_file(self) -> None:
        """Go back to a single file, which can be copied as it is; a reader may be in the way."""
        with contextlib.suppress(sqlite3.OperationalError):
            _, pages, moved = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            try:
                self._db.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.OperationalError:
                if moved < pages:
                    warnings.warn(
                        f"another program reads {self.path}, so part of the results is in "
                        f"{self.path.name}-wal still: close that program before you copy the "
                        "store, or copy both files",
                        stacklevel=2,
                    )

    def __exit__(self, *_: object) -> None:
        self.close()


def _pack(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
