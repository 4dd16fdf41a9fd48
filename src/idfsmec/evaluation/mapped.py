"""Tables whose values lie once in memory, for this process and for its workers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from idfsmec._system import can_remove_open_files
from idfsmec._workers import shared_folder
from idfsmec.table import FeatureTable


@contextmanager
def mapped(
    tables: MutableMapping[str, FeatureTable], n_jobs: int
) -> Iterator[dict[str, FeatureTable]]:
    """Move tables into memory that processes share: workers map it, and nobody has a copy.

    Parameters
    ----------
    tables : mutable mapping of name to FeatureTable
        It is emptied, one table after the other, so that none is there twice for long.
    n_jobs : int
        Processes; tables of a single one stay where they are.

    Yields
    ------
    dict of str to FeatureTable
        The same tables, of use until the end of the ``with``.

    Examples
    --------
    >>> table = FeatureTable(pd.DataFrame({"Fz__a": [1.0, 2.0]}), ["HC", "MDD"], ["s", "t"])
    >>> with mapped({"mine": table}, 2) as moved:
    ...     moved["mine"].equals(table)
    True
    """
    if n_jobs == 1 or not can_remove_open_files():
        yield dict(tables)
        return
    with shared_folder(sum(table.X.size * 8 for table in tables.values())) as folder:
        moved = {}
        for place, name in enumerate(list(tables)):
            moved[name] = _move(tables.pop(name), folder / f"{place}.values")
        yield moved


def _move(table: FeatureTable, path: Path) -> FeatureTable:
    """The same table with its values in a file. It was checked when it was made: not again."""
    X = table.X
    with path.open("wb") as file:
        np.ascontiguousarray(X.to_numpy(dtype=np.float64)).tofile(file)
    # A process that writes to it changes pages of its own.
    values = np.memmap(path, dtype=np.float64, mode="c", shape=X.shape)
    moved = copy.copy(table)
    frame = pd.DataFrame(values, index=X.index, columns=X.columns, copy=False)
    object.__setattr__(moved, "X", frame)
    return moved
