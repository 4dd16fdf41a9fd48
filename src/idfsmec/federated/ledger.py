"""Ledger: the participants whom a site has released, each of them once.

Two releases with some of the same participants can be subtracted from each other, and combinations
of more releases leave single participants even where any two differ by many. So the ledger refuses
every release with a participant of an earlier one, whatever else differs. Participants are known

- by name, without ``sub-``, case and zero padding;
- by values: the mean of each column, in units of the deviation over participants, to 0.01. The
  distance between two participants is the root mean square difference over the columns that both
  releases have, or over the quartiles of each feature across channels (whatever channels are
  called), in the units of the earlier release or in each release's units (whatever a site was
  multiplied by or shifted), of all columns, of those of one condition or of the mean of
  conditions, in each class or over classes; the smallest counts.

The ledger holds these names and values. It stays at the site and is never shared.
"""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics.pairwise import nan_euclidean_distances

from idfsmec.errors import InputError
from idfsmec.federated.summary import Summary, split_condition
from idfsmec.table.columns import SEPARATOR, fold, join_columns, same_name, split_column

Array = NDArray[np.float64]

_VERSION = 4
# Seconds to wait for another process that summarises a table.
_WAIT = 600.0
#: Participants at most this far apart, in standard deviations, are the same. Over fewer columns
#: the distance says nothing.
SAME, FEWEST_COLUMNS = 0.2, 10
# Values are kept in steps of this many standard deviations, and compared up to 3 of them.
_STEP, _FAR = 0.01, 3.0
_QUANTILES = [0.0, 0.25, 0.5, 0.75, 1.0]


def default_ledger() -> Path:
    """Return the ledger of this user: a file in the folder where programs keep a user's data."""
    if sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return folder / "idfsmec" / "ledger.sqlite"


@dataclass(frozen=True)
class Participants:
    """Means of the columns (D) of each participant (n), NaN where a channel is missing."""

    means: pd.DataFrame  # participants by columns

    @property
    def names(self) -> dict[str, str]:
        """Names as they are compared, and as they are written."""
        return {same_name(fold(name).removeprefix("sub-")): name for name in self.means.index}

    def pack(self) -> bytes:
        """Round the means, as a file in memory."""
        centre, unit = _units(self.means)
        step = _STEP * unit.where(unit > 0, 1.0)
        rounded = centre + step * ((self.means - centre) / step).round()
        file = io.BytesIO()
        rounded.to_parquet(file)
        return file.getvalue()

    @classmethod
    def unpack(cls, content: bytes) -> Participants:
        """Read what :meth:`pack` wrote."""
        return cls(pd.read_parquet(io.BytesIO(content)))

    def distances(self, others: Participants) -> Array:
        """Return the distance of each participant to each of the others, (n, n of the others)."""
        found = []
        for ours, theirs in product(_views(self.means), _views(others.means)):
            shared = ours.columns.intersection(theirs.columns)
            found.append(_distances(ours[shared], theirs[shared], shared.size))
            (a, sizes_a), (b, sizes_b) = _profile(ours), _profile(theirs)
            quantiles = a.columns.intersection(b.columns)
            common = sizes_a.index.intersection(sizes_b.index)
            n_columns = min(sizes_a[common].sum(), sizes_b[common].sum())
            found.append(_distances(a[quantiles], b[quantiles], n_columns))
        return np.asarray(np.min(found, axis=0))


def _views(means: pd.DataFrame) -> list[pd.DataFrame]:
    """The means; of several conditions also those of each, and their mean, without its name."""
    channels, features = zip(*map(split_column, means.columns), strict=True)
    names, conditions = zip(*map(split_condition, channels), strict=True)
    if not any(conditions):
        return [means]
    bare = means.set_axis(join_columns(names, features), axis=1)
    each = [bare.loc[:, np.array(conditions) == name] for name in dict.fromkeys(conditions)]
    return [means, *each, bare.T.groupby(level=0).mean().T]


def _units(values: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Median of each column, and the standard deviation that follows from the quartiles."""
    low, middle, high = (values.quantile(q) for q in (0.25, 0.5, 0.75))
    return middle.fillna(0.0), ((high - low) / 1.349).fillna(0.0)


def _profile(means: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series[int]]:
    """Quantiles of each feature across channels, and the number of channels that have it."""
    by_feature = means.T.groupby([column.rpartition(SEPARATOR)[2] for column in means.columns])
    return by_feature.quantile(np.array(_QUANTILES)).T, by_feature.size()


def _distances(ours: pd.DataFrame, theirs: pd.DataFrame, n_columns: int) -> Array:
    """Root mean square differences in two kinds of units, the smaller; infinite if too few."""
    nearest = np.full((len(ours), len(theirs)), np.inf)
    if n_columns < FEWEST_COLUMNS:
        return nearest
    for units in (_units(ours), _units(theirs)):
        a, b = _in_units(ours, _units(ours)), _in_units(theirs, units)
        number = (~np.isnan(a)).astype(float) @ (~np.isnan(b)).T
        # scikit-learn scales the sum of squares to all columns.
        root = nan_euclidean_distances(a, b) / np.sqrt(a.shape[1])
        enough = number >= np.minimum(FEWEST_COLUMNS, n_columns)
        nearest = np.minimum(nearest, np.where(enough, root, np.inf))
    return nearest


def _in_units(values: pd.DataFrame, units: tuple[pd.Series[float], pd.Series[float]]) -> Array:
    """Standardised values; NaN where they are missing, or a column is constant."""
    centre, unit = units
    standard = (values.to_numpy() - centre.to_numpy()) / unit.where(unit > 0).to_numpy()
    return np.clip(standard, -_FAR, _FAR)


class Ledger:
    """What a site has released; a context that other processes wait for.

    What was added is on record when the context ends without an error, otherwise nothing changes.

    Parameters
    ----------
    path : path, optional
        The file; made at the first release. By default in the user's data folder.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tempfile import TemporaryDirectory
    >>> from idfsmec import FeatureTable, summarise
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> table = FeatureTable(X, ["HC", "MDD"] * 30, [f"s{i}" for i in range(60)])
    >>> with TemporaryDirectory() as folder, Ledger(f"{folder}/ledger.sqlite") as ledger:
    ...     summarise(table, ledger=ledger)
    Summary(1 site; participants HC: 30, MDD: 30; 2 channels, 0 suppressed)
    """

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        self.path = default_ledger() if path is None else Path(path)

    def __enter__(self) -> Self:
        try:
            self._database = self._lock()
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
        except sqlite3.DatabaseError as error:
            busy = "is locked" in str(error)
            raise InputError(
                f"{self.path}: another process has used the ledger for {_WAIT / 60:.0f} minutes."
                if busy
                else f"{self.path}: not a readable ledger ({error}). Restore it from a backup: "
                "without it a release can reveal participants of an earlier one."
            ) from error
        if version not in (0, _VERSION):
            self._database.close()
            raise InputError(f"{self.path}: written by another version of idfsmec.")
        self._is_new = version == 0
        if self._is_new:
            self._database.execute(f"PRAGMA user_version = {_VERSION}")
            self._database.execute(
                "CREATE TABLE releases "
                "(digest TEXT PRIMARY KEY, min_subjects INTEGER, participants BLOB)"
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        empty = not self._database.execute("SELECT COUNT(*) FROM releases").fetchone()[0]
        failed = kind is not None or (self._is_new and empty)
        self._database.execute("ROLLBACK" if failed else "COMMIT")
        if failed and self._is_new:
            # While it is locked: whoever waits for it looks whether it is still there.
            with suppress(OSError):
                self.path.unlink()
                self.path.parent.rmdir()
        self._database.close()

    def _lock(self) -> sqlite3.Connection:
        """Open the file, which only this user can read, when no other process uses it."""
        while True:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
            self.path.chmod(0o600)
            opened = self.path.stat()
            database = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            try:
                problem = None
                database.execute("BEGIN EXCLUSIVE")
            except sqlite3.DatabaseError as error:
                problem = error
            if self.path.exists() and os.path.samestat(opened, self.path.stat()):
                if problem is None:
                    return database
                database.close()
                raise problem
            database.close()  # who used the file was refused, and removed it

    def strike(self, summary: Summary) -> None:
        """Remove a release that was never handed out."""
        for site in summary.sites:
            struck = self._database.execute("DELETE FROM releases WHERE digest = ?", [site.digest])
            if not struck.rowcount:
                raise InputError(
                    f"{self.path}: has no such release, so that none can be replaced."
                )

    def add(self, digest: str, min_subjects: int, participants: Participants) -> None:
        """Add a release, or refuse it; the same release again changes nothing."""
        rows = self._database.execute("SELECT * FROM releases ORDER BY rowid").fetchall()
        if digest in [row[0] for row in rows]:
            return
        fewest = max((row[1] for row in rows), default=0)
        if min_subjects < fewest:
            raise InputError(
                f"{self.path}: earlier releases have cells of {fewest} participants at least, and "
                f"later ones must not have smaller ones than these: give {fewest} or more, not "
                f"{min_subjects}."
            )
        for number, row in enumerate(rows, 1):
            self._refuse_known(participants, Participants.unpack(row[2]), number)
        self._database.execute(
            "INSERT INTO releases VALUES (?, ?, ?)", [digest, min_subjects, participants.pack()]
        )

    def _refuse_known(self, new: Participants, earlier: Participants, number: int) -> None:
        """Refuse participants of an earlier release, by name or by values."""
        names = new.names
        known = [names[name] for name in names if name in earlier.names]
        rule = (
            "A participant is released once, because a second release can be subtracted from the "
            "first. Release new participants on their own, as a second summary: summaries add up."
        )
        if known:
            more = f" and {len(known) - 3} more" if len(known) > 3 else ""
            raise InputError(
                f"{self.path}: release {number} has participants of this one: "
                f"{', '.join(known[:3])}{more}. {rule} If that release was never handed out, give "
                "its file: --replaces FILE --never-sent."
            )
        distances = earlier.distances(new)
        i, j = divmod(int(np.argmin(distances)), distances.shape[1])
        if distances[i, j] <= SAME:
            raise InputError(
                f"{self.path}: participant {new.means.index[j]} has nearly the values of "
                f"{earlier.means.index[i]} in release {number} (distance {distances[i, j]:.2f} SD)"
                f", who thus has two names. If these are two participants with nearly the same "
                f"recordings, leave {new.means.index[j]} out. {rule}"
            )
