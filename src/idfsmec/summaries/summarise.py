"""summarise: from a table, or files of one, to what of it may be told."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.dataset import Dataset

from idfsmec._table_checks import warn_of_two_sites
from idfsmec._table_files import file_format
from idfsmec.errors import InputError
from idfsmec.summaries._files import ENDING
from idfsmec.summaries.between import between_channels, common_samples
from idfsmec.summaries.collect import Collector, settings_of
from idfsmec.summaries.dealing import N_FOLDS
from idfsmec.summaries.stream import channels_of, collect_dataset, collect_files
from idfsmec.summaries.summary import Summary
from idfsmec.table import FeatureTable

#: Sums over fewer people of a class are withheld.
MIN_PEOPLE = 10


def summarise(
    table: FeatureTable | str | PathLike[str],
    *,
    min_people: int = MIN_PEOPLE,
    n_folds: int = N_FOLDS,
    labels: Iterable[Any] = (),
    dask: Any = None,
    between: bool = False,
) -> Summary:
    """Sum up a table: all that :class:`idfsmec.IDFSMEC` needs of it, without a row of anybody.

    People are dealt to folds by the SHA-256 of their names, so that hospitals agree without
    asking each other, and dealt twice. Where a fold would have fewer than ``min_people`` people of
    a class, the table gets half as many folds; a channel that fewer people of some fold have goes
    into one fold whole; what even so has fewer people is withheld, and named. Where sums of both
    deals would differ by fewer people, there is one deal; where sums over samples less sums over
    people would be over fewer, people count by their samples.

    Parameters
    ----------
    table : FeatureTable, path, pyarrow.dataset.Dataset or dask.dataframe.DataFrame
        A path may be a table's, or that of a folder of Parquet files. These and datasets are read
        a few rows at a time: only sums need memory, those of every person until the end.
    min_people : int, default=10
        Sums over fewer people of a class are withheld. 1 withholds nothing.
    n_folds : {1, 2, 4}, default=4
        Folds of people, at most, which the channels are judged by.
    labels : iterable, optional
        Of the whole study, where the table may lack some.
    dask : str or distributed.Client, optional
        A Dask scheduler's address or a client, whose workers sum up the files of a path. They and
        those of a dataframe withhold nothing: ``min_people`` has to be 1.
    between : bool, default=False
        Also products between channels, by which channels samples have: what
        :meth:`idfsmec.selection.CrossChannelReranker.fit_summaries` needs. Patterns of channels
        from which anything over fewer than ``min_people`` people would follow are withheld, with
        a warning; a few samples of rare patterns are left out of all sums if that tells more. The
        table is then read whole.

    Returns
    -------
    Summary

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable, summarise
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> table = FeatureTable(X, ["HC", "MDD"] * 30, [f"s{i}" for i in range(60)])
    >>> summarise(table)
    Summary(1 tables; people HC: 30, MDD: 30; 2 channels, 2 features; 0 sums withheld)
    """
    if min_people < 1:
        raise InputError(f"min_people={min_people}: give 1 or more.", argument="min_people")
    if n_folds not in (1, 2, 4):
        raise InputError(f"n_folds={n_folds}: give 1, 2 or 4.", argument="n_folds")
    labels = tuple(labels)
    if between:
        return _with_products(_whole(table, dask), min_people, n_folds, labels)
    on_frame = hasattr(table, "to_delayed")
    if dask is not None or on_frame:
        if min_people > 1 or n_folds < N_FOLDS or tuple(labels):
            raise InputError(
                "Dask workers withhold nothing: give min_people=1, no n_folds and no labels.",
                argument="min_people",
            )
        from idfsmec.summaries.on_cluster import summarise_files, summarise_frame

        return summarise_frame(table) if on_frame else summarise_files(_path(table), dask)
    collector = collected(table)
    return collector.summary(min_people, n_folds, _alike(labels, collector.labels))


def _with_products(
    table: FeatureTable, min_people: int, n_folds: int, labels: Iterable[Any]
) -> Summary:
    """Sum up with products between channels; without rare samples, if that tells more."""
    summary = _products(table, min_people, n_folds, labels)
    kept = common_samples(table, min_people) if min_people > 1 else np.ones(len(table), dtype=bool)
    if kept.any() and not kept.all():
        fewer = _products(table.take(kept), min_people, n_folds, labels)
        if _n_told(fewer) > _n_told(summary):
            rare = (
                f"{(~kept).sum()} of {kept.size} samples that have rare patterns of channels, "
                "which are in no sum"
            )
            summary = replace(fewer, withheld=(*fewer.withheld, rare))
    if about := [one for one in summary.withheld if "patterns of channels" in one]:
        folds = "" if summary.n_folds == 1 else "; fewer folds may let more be told"
        warnings.warn(f"Withheld: {'; '.join(about)}{folds}.", UserWarning, stacklevel=3)
    return summary


def _products(
    table: FeatureTable, min_people: int, n_folds: int, labels: Iterable[Any]
) -> Summary:
    collector = collected(table)
    wanted = _alike(labels, collector.labels)
    summary, seating = collector.told(min_people, n_folds, wanted)
    patterns, withheld = between_channels(table, summary, seating)
    return replace(summary, patterns=patterns, withheld=(*summary.withheld, *withheld))


def _n_told(summary: Summary) -> float:
    return float(sum(one.count.sum() for one in summary.patterns))


def _whole(table: Any, dask: Any) -> FeatureTable:
    """Give the table in memory: patterns are chosen by all people before they are summed up."""
    if isinstance(table, FeatureTable):
        return table
    if dask is not None or not isinstance(table, str | PathLike) or Path(table).is_dir():
        raise InputError(
            "Products between channels need the whole table in memory: give a table or its file.",
            argument="between",
        )
    return FeatureTable.read(table)


def _path(table: Any) -> Path:
    if isinstance(table, FeatureTable):
        raise InputError("A table in memory needs no cluster: leave dask out.", argument="dask")
    return Path(table)


def collected(table: Any, channels: Sequence[Any] | None = None) -> Collector:
    """Sum up a table in memory, or one on the disk a few rows at a time.

    Parameters
    ----------
    table : FeatureTable, path or pyarrow.dataset.Dataset
    channels : sequence, optional
        The channel of each column; by default what their names say.
    """
    if isinstance(table, Dataset):
        return collect_dataset(table, channels)
    if not isinstance(table, FeatureTable):
        path = Path(table)
        if path.suffix.lower() == ENDING:
            raise InputError(f"{path}: is a summary, not a table: give it to fit_summaries.")
        if path.is_dir() or (path.is_file() and file_format(path) == "parquet"):
            return collect_files(path, channels)
        table = FeatureTable.read(path)
    else:
        warn_of_two_sites(table.subjects, table.sites, stacklevel=4)
    settings = settings_of(table.info)
    columns = list(table.X.columns)
    collector = Collector(columns, channels_of(columns, channels), settings)
    collector.add(table.X.to_numpy(), table.y.to_numpy(), table.subjects.to_numpy())
    return collector


def _alike(labels: Iterable[Any], known: Sequence[Any]) -> list[Any]:
    """Labels of the type of those that are there: a command line knows text alone."""
    kind = type(known[0])
    try:
        return [one if isinstance(one, kind) else kind(one) for one in labels]
    except (TypeError, ValueError):
        raise InputError(
            f"The labels of the table are such as {known[0]!r}, and those given are not.",
            argument="labels",
        ) from None
