"""Sums of a folder, or of a Dask dataframe, by the workers of a Dask cluster.

A person's samples must be summed up together, because a person counts once. So workers first look
who is in which piece; pieces that have a person in common go to one worker. What workers send
back are sums, however many rows there are, and these add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from idfsmec._cluster import ClusterRun, Lost, connected
from idfsmec._columns import split_column
from idfsmec._table_rows import part_header
from idfsmec.errors import InputError
from idfsmec.summaries.collect import Collector
from idfsmec.summaries.stream import ABOUT, clean_column, collect, parquet_files
from idfsmec.summaries.summary import Summary, combine

#: Pieces summed up by one task, unless people tie more of them together. The same for any
#: cluster, so that no last digit depends on it.
_TOGETHER = 4


def summarise_files(path: Path, dask: Any) -> Summary:
    """Sum up a folder of Parquet files that workers see under the same path.

    Parameters
    ----------
    path : Path
        As in :func:`~idfsmec.summaries.stream.collect_files`.
    dask : str or distributed.Client
        The address of a scheduler, or a client.
    """
    files = parquet_files(path.absolute())
    with connected(dask) as client:
        run = _Runs(client)
        seen = run.all(_look, [(file,) for file in files])
        labels = sorted({label for _, own in seen for label in own})
        if not labels:
            raise InputError(f"{path}: there are no samples in it.")
        groups = together([people for people, _ in seen])
        tasks = [([files[at] for at in group], files[0], labels) for group in groups]
        found = run.all(_sum_up, tasks)
    return as_one(found)


def as_one(parts: Sequence[Summary]) -> Summary:
    """Add up sums of pieces of one table."""
    return replace(combine(parts), n_tables=1)


def together(people: Sequence[Iterable[str]], size: int = _TOGETHER) -> list[list[int]]:
    """Group pieces so that nobody is in two groups, and small groups go together.

    Parameters
    ----------
    people : sequence of iterables of str
        Who is in each piece.
    size : int
        Pieces in a group, unless people tie more together.

    Examples
    --------
    >>> together([{"ann"}, {"bob"}, {"eve", "ann"}, {"joe"}], size=2)
    [[0, 2], [1, 3]]
    """
    numbers: dict[str, int] = {}
    pairs = [
        (piece, numbers.setdefault(name, len(numbers)))
        for piece, names in enumerate(people)
        for name in names
    ]
    n, pieces, names = len(people), [p for p, _ in pairs], [len(people) + who for _, who in pairs]
    links = coo_array((np.ones(len(pairs)), (pieces, names)), shape=2 * (n + len(numbers),))
    tied = connected_components(links, directed=False)[1][:n]
    groups: list[list[int]] = []
    for one in dict.fromkeys(tied.tolist()):
        own = np.flatnonzero(tied == one).tolist()
        if groups and len(groups[-1]) + len(own) <= size:
            groups[-1] += own
        else:
            groups.append(own)
    return groups


class _Runs:
    """Calls on a cluster whose answers are wanted in order, and whose refusals are raised."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def all(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Give an answer for each task."""
        found: dict[int, Any] = {}
        numbered = ((at, function, task) for at, task in enumerate(tasks))
        for (at, *_), answer in ClusterRun(self._client, _answer).outcomes(numbered):
            if isinstance(answer, Lost):
                last = answer.reason.strip().splitlines()[-1]
                raise RuntimeError(f"the Dask cluster could not sum up {tasks[at][0]}: {last}")
            if isinstance(answer, _Refused):
                raise InputError(answer.reason)
            found[at] = answer
        return [found[at] for at in range(len(tasks))]


class _Refused:
    """Why a worker could not use a file."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _answer(_: int, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """On a worker; what is wrong with a file comes back, so that nobody tries it again."""
    try:
        return function(*task)
    except (InputError, OSError) as error:
        return _Refused(
            f"{error} (said by a Dask worker: workers need the files under the same path as this "
            "machine, on a disk that all share)"
        )


def _look(file: Path) -> tuple[frozenset[str], list[Any]]:
    """Who is in a file, and which labels there are."""
    try:
        table = pq.read_table(file, columns=list(ABOUT), partitioning=None, use_threads=False)
    except Exception as error:  # a damaged file makes Arrow raise anything
        raise InputError(f"{file}: not a readable table ({error}).") from error
    people, labels = (table.column(name).unique() for name in ABOUT)
    try:
        found = (clean_column(people, ABOUT[0]), clean_column(labels, ABOUT[1]).tolist())
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    return frozenset(found[0].astype(str).tolist()), found[1]


def _sum_up(files: Sequence[Path], like: Path, labels: Sequence[Any]) -> Summary:
    """Sum up files; another one says which columns there are."""
    return collect(files, like).summary(1, labels=labels)


def summarise_frame(frame: Any) -> Summary:
    """Sum up a ``dask.dataframe``, by whatever scheduler Dask has at the moment.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
        With the columns ``subject`` and ``label``, and features. Where somebody is in several
        partitions, it is shuffled by ``subject`` first.
    """
    import dask

    columns = list(part_header(list(frame.columns))[1])
    look, sum_up, add = (dask.delayed(one) for one in (_look_at, _sum_rows, as_one))
    seen = dask.compute(*(look(part) for part in frame[list(ABOUT)].to_delayed()))
    labels = sorted({label for _, own in seen for label in own})
    if not labels:
        raise InputError("There are no samples in the dataframe.")
    if sum(len(people) for people, _ in seen) > len(frozenset().union(*(one for one, _ in seen))):
        frame = frame.shuffle(on=ABOUT[0])
        full = frame.to_delayed()
    else:
        full = [part for part, (people, _) in zip(frame.to_delayed(), seen, strict=True) if people]
    level = [sum_up(part, columns, labels) for part in full]
    while len(level) > 1:  # a tree: no worker holds the sums of more than a few pieces
        level = [add(level[at : at + _TOGETHER]) for at in range(0, len(level), _TOGETHER)]
    return dask.compute(*level)[0]


def _look_at(frame: pd.DataFrame) -> tuple[frozenset[str], list[Any]]:
    people, labels = (clean_column(pa.array(frame[name].unique()), name) for name in ABOUT)
    return frozenset(people.astype(str).tolist()), labels.tolist()


def _sum_rows(frame: pd.DataFrame, columns: list[str], labels: Sequence[Any]) -> Summary:
    collector = Collector(columns, [split_column(column)[0] for column in columns])
    if len(frame):
        people, own = (clean_column(pa.array(frame[name]), name) for name in ABOUT)
        collector.add(frame[columns].to_numpy(dtype=np.float64), own, people)
    return collector.summary(1, labels=labels)
