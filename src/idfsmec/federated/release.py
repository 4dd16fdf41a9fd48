"""Release: which sums of a site's table leave the site.

The rules, in the order in which they are applied:

1. Columns that are equal in several channels, and channels that are the difference of two others,
   are refused: sums over nearly the same subjects would differ by few of them.
2. A site has 4, 2 or 1 folds: the most with which no channel is lost.
3. A subject who holds more than ``max_share`` of a feature's sum of squares in a cell (about the
   median of the class) is left out of the channel, and counted.
4. A channel is released if every cell of every class that the site has holds at least
   ``min_subjects`` subjects and has products of full numerical rank, so that they span no
   subject's own direction. A channel that fails in one class is suppressed as a whole.
5. Squares of means (Q) are suppressed where 1 to ``min_subjects - 1`` subjects of a cell have
   several different samples: products less squares are the variance within these subjects.

Centring constants are computed from what is released.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._files import replacing
from idfsmec.errors import InputError
from idfsmec.federated.ledger import Ledger
from idfsmec.federated.streaming import (
    Source,
    SubjectStatistics,
    open_source,
    subject_statistics,
    sum_pieces,
)
from idfsmec.federated.summary import SiteSums, Summary
from idfsmec.solver import Sums, name_folds
from idfsmec.table import FeatureTable
from idfsmec.table.columns import channel_columns

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Fewest subjects of a cell, and the largest share of a sum of squares that one may hold.
MIN_SUBJECTS, MAX_SHARE = 10, 0.8
_FOLDS = (4, 2, 1)
# Eigenvalues of a correlation matrix below this count as 0.
_RANK_TOLERANCE = 1e-8
# Correlations this close to 1 are those of equal columns.
_EQUAL = 1e-9
# Columns compared at a time.
_BLOCK = 512
#: Acquisition facts that are counted.
_FACTS = ("device", "n_channels", "line_freq", "format")


def summarise(
    table: FeatureTable | str | PathLike[str],
    *,
    min_subjects: int = MIN_SUBJECTS,
    max_share: float = MAX_SHARE,
    labels: Iterable[Any] = (),
    site: str = "",
    study_key: bytes = b"",
    ledger: Ledger | None = None,
) -> Summary:
    """Sum up a site's table, so that sites can rank together and share no rows.

    Parameters
    ----------
    table : FeatureTable, path, pyarrow.dataset.Dataset or dask.dataframe.DataFrame
        A path may be a table's, or that of a folder of Parquet files. These, datasets and
        dataframes are read twice, a few rows at a time.
    min_subjects : int, default=10
        Cells (a class in a fold) of fewer subjects are not released. 1 releases everything, for
        a table that does not leave the site.
    max_share : float, default=0.8
        A subject who holds more of a feature's sum of squares is left out of the channel.
    labels : iterable, optional
        Of the whole study, where the table may lack some.
    site : str
        Name of the site, to be released.
    study_key : bytes
        Secret of the study, from :func:`read_study_key`: subjects are assigned to folds by a hash
        with it.
    ledger : Ledger, optional
        What the site released before; a release that would reveal a few subjects by comparison
        is refused.

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
    Summary(1 site; subjects HC: 30, MDD: 30; 2 channels, 0 suppressed)
    """
    if min_subjects < 1:
        raise InputError(f"min_subjects={min_subjects}: give 1 or more.", argument="min_subjects")
    if not 0 < max_share <= 1:
        raise InputError(
            f"max_share={max_share}: give a share above 0, at most 1.", argument="max_share"
        )
    source = open_source(table)
    statistics = subject_statistics(source)
    protected = min_subjects > 1
    channel_names, columns = channel_columns(list(source.channels), len(source.columns), None)
    if protected:
        _refuse_derived([str(name) for name in channel_names])
        _refuse_equal(statistics, source, columns)
    chosen = _Cells(statistics, columns, name_folds(statistics.names, 4, 1, study_key)[0])
    n_folds = chosen.most_folds(min_subjects)
    left_out = chosen.dominant(n_folds, max_share) if protected else chosen.nothing()
    counts = statistics.counts.copy()
    counts[:, :-2][left_out] = np.inf
    folds = chosen.folds[None] % n_folds
    sums = sum_pieces(source, statistics, folds, n_folds=n_folds, counts=counts)
    reasons: dict[int, str] = {}
    while True:
        members = chosen.members(n_folds, left_out)
        reasons = _reasons(sums, members, columns, min_subjects, protected)
        if n_folds == 1:
            break
        merged, fewer = _merged(sums, n_folds), chosen.members(n_folds // 2, left_out)
        if set(_reasons(merged, fewer, columns, min_subjects, protected)) == set(reasons):
            break
        sums, n_folds = merged, n_folds // 2
    released = [v for v in range(len(columns)) if v not in reasons]
    summary = Summary(
        (
            _site_sums(
                source,
                statistics,
                sums,
                chosen.members(n_folds, left_out),
                released,
                {str(channel_names[v]): why for v, why in reasons.items()},
                left_out,
                min_subjects,
                [*labels],
                site,
            ),
        )
    )
    if ledger is not None:
        members = chosen.members(n_folds, left_out)
        ledger.check_and_add(
            study_key,
            statistics.names,
            {str(channel_names[v]): statistics.digests[:, v] for v in released},
            {str(channel_names[v]): members[v] for v in released},
            min_subjects,
        )
    return summary


def read_study_key(path: str | PathLike[str]) -> bytes:
    """Read the secret of a study, or make one at first use.

    All sites of a study use the same file. Whoever has it can compute folds from names.
    """
    file = Path(path)
    if file.exists():
        key = file.read_bytes()
        if not 16 <= len(key) <= 64:
            raise InputError(f"{file}: not a study key: it has {len(key)} bytes, not 16 to 64.")
        return key
    key = secrets.token_bytes(32)
    with replacing(file) as (beside,):
        beside.write_bytes(key)
        beside.chmod(0o600)
    return key


class _Cells:
    """Subjects of each channel by fold and class."""

    def __init__(
        self, statistics: SubjectStatistics, columns: Sequence[Indices], folds: Indices
    ) -> None:
        self.statistics, self.columns, self.folds = statistics, columns, folds
        self.have = statistics.counts[:, :-2] > 0

    def nothing(self) -> Mask:
        """Nobody is left out, shape (p, V)."""
        return np.zeros_like(self.have)

    def _cells(self, n_folds: int) -> list[tuple[int, int, Mask]]:
        """Fold, class and subjects of every cell."""
        classes = range(len(self.statistics.labels))
        return [
            (f, k, (self.folds % n_folds == f) & (self.statistics.codes == k))
            for f in range(n_folds)
            for k in classes
        ]

    def most_folds(self, min_subjects: int) -> int:
        """The most folds with which no channel has too few subjects that one fold has enough of.

        A class that the site lacks does not count.
        """

        def enough(n_folds: int) -> Mask:
            counts = np.array([self.have[own].sum(axis=0) for _, _, own in self._cells(n_folds)])
            return (counts >= min_subjects).all(axis=0)

        possible = enough(1)
        if not possible.any():
            return 1
        return next(n for n in _FOLDS if not (possible & ~enough(n)).any())

    def dominant(self, n_folds: int, max_share: float) -> Mask:
        """Subjects who hold more than their share of a feature's sum of squares, shape (p, V)."""
        statistics = self.statistics
        result = self.nothing()
        for v, own in enumerate(self.columns):
            n = statistics.counts[:, v, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                mean, square = statistics.sum_x[:, own] / n, statistics.sum_xx[:, own] / n
            for k in range(len(statistics.labels)):
                there = (statistics.codes == k) & self.have[:, v]
                if not there.any():
                    continue
                centre = np.median(mean[there], axis=0)
                about = np.maximum(square - 2 * centre * mean + centre**2, 0.0)
                for _, _, cell in self._cells(n_folds):
                    result[:, v] |= _largest(about, cell & there, max_share)
        return result

    def members(self, n_folds: int, left_out: Mask) -> list[list[tuple[int, int, Indices]]]:
        """For every channel the subjects of every cell."""
        cells = self._cells(n_folds)
        return [
            [
                (f, k, np.flatnonzero(own & self.have[:, v] & ~left_out[:, v]))
                for f, k, own in cells
            ]
            for v in range(len(self.columns))
        ]


def _largest(about: Array, cell: Mask, max_share: float) -> Mask:
    """Subjects of a cell with more than their share of any feature, one after the other."""
    out, left = np.zeros(cell.size, dtype=bool), cell.copy()
    while left.sum() > 1:
        total = about[left].sum(axis=0)
        share = np.where(total > 0, about / np.where(total > 0, total, 1.0), 0.0).max(axis=1)
        top = int(np.argmax(np.where(left, share, -1.0)))
        if share[top] <= max_share:
            break
        out[top], left[top] = True, False
    return out


def _reasons(
    sums: Sums,
    members: Sequence[Sequence[tuple[int, int, Indices]]],
    columns: Sequence[Indices],
    min_subjects: int,
    protected: bool,
) -> dict[int, str]:
    """Channels that are suppressed, and why."""
    if not protected:
        return {}
    present = np.bincount(sums.classes, sums.total, sums.n_classes) > 0
    where = {int(v): (block, row) for block in sums.blocks for row, v in enumerate(block.channels)}
    reasons = {}
    for v in range(len(columns)):
        cells = [(f, k, own) for f, k, own in members[v] if present[k]]
        if min(own.size for _, _, own in cells) < min_subjects:
            reasons[v] = f"fewer than {min_subjects} subjects of a class in a fold have it"
            continue
        block, row = where[v]
        full = all(
            _full_rank(
                block.count[row, f * sums.n_classes + k],
                block.sum_x[row, f * sums.n_classes + k],
                block.sum_xx[row, f * sums.n_classes + k],
            )
            for f, k, _ in cells
        )
        if not full:
            reasons[v] = (
                "its products are not of full rank (too few subjects for its features, or a "
                "feature that is constant or repeats others)"
            )
    return reasons


def _full_rank(count: float, sum_x: Array, sum_xx: Array) -> bool:
    """Whether products about the mean have full numerical rank."""
    spread = sum_xx - np.outer(sum_x, sum_x) / count
    variance = np.diagonal(spread)
    if (variance <= 1e-12 * np.maximum(np.diagonal(sum_xx), 1e-300)).any():
        return False
    unit = np.sqrt(variance)
    return bool(np.linalg.eigvalsh(spread / np.outer(unit, unit))[0] > _RANK_TOLERANCE)


def _merged(sums: Sums, n_folds: int) -> Sums:
    """The sums in half as many folds: f and f + n_folds / 2 go together."""
    half = n_folds // 2 * sums.n_classes

    def added(values: Array, axis: int) -> Array:
        first, second = np.split(values, [half], axis=axis)
        return first + second

    blocks = tuple(
        replace(b, **{k: added(getattr(b, k), 1) for k in ("count", "sum_x", "sum_xx")})
        for b in sums.blocks
    )
    return replace(
        sums,
        blocks=blocks,
        classes=sums.classes[:half],
        folds=sums.folds[:, :half],
        total=added(sums.total, 0),
        seen=added(sums.seen, 0),
    )


def _refuse_derived(channels: Sequence[str]) -> None:
    """Refuse channels that are computed from two others, such as asymmetries."""
    known = set(channels)
    for channel in channels:
        for dash in ("-", "_", "/"):
            first, _, second = channel.partition(dash)
            if second and {first, second} <= known:
                raise InputError(
                    f"Channel {channel} is computed from {first} and {second}: its sums less theirs "
                    "would be over the few subjects who lack one of them. Leave its columns out of "
                    "the table that is summarised."
                )


def _refuse_equal(
    statistics: SubjectStatistics, source: Source, columns: Sequence[Indices]
) -> None:
    """Refuse columns of several channels that are equal, or equal up to their units."""
    p, d = statistics.sum_x.shape
    channel = np.empty(d, dtype=np.intp)
    counts = np.empty((p, d))
    for v, own in enumerate(columns):
        channel[own] = v
        counts[:, own] = statistics.counts[:, v, None]
    there = (counts > 0).astype(float)
    means = np.where(there > 0, statistics.sum_x / np.maximum(counts, 1.0), 0.0)
    total = there.sum(axis=0)
    means = np.where(there > 0, means - means.sum(axis=0) / np.maximum(total, 1.0), 0.0)
    unit = np.abs(means).max(axis=0)
    means /= np.where(unit > 0, unit, 1.0)
    squares = means**2
    for first in range(0, d, _BLOCK):
        own = slice(first, first + _BLOCK)
        n = there[:, own].T @ there
        a, b = means[:, own].T @ there, there[:, own].T @ means
        with np.errstate(divide="ignore", invalid="ignore"):
            both = means[:, own].T @ means - a * b / n
            one = squares[:, own].T @ there - a**2 / n
            two = there[:, own].T @ squares - b**2 / n
            alike = both**2 >= (1 - _EQUAL) * one * two
        alike &= (n > 2) & (one > 1e-12) & (two > 1e-12)
        alike &= channel[own][:, None] != channel[None, :]
        if alike.any():
            i, j = np.argwhere(alike)[0]
            raise InputError(
                f"Columns {source.columns[first + i]!r} and {source.columns[j]!r} are the same: "
                "their sums would differ by the few subjects who lack one of the channels. Leave "
                "one of them out of the table that is summarised."
            )


def _site_sums(
    source: Source,
    statistics: SubjectStatistics,
    sums: Sums,
    members: Sequence[Sequence[tuple[int, int, Indices]]],
    released: Sequence[int],
    suppressed: Mapping[str, str],
    left_out: Mask,
    min_subjects: int,
    labels: list[Any],
    site: str,
) -> SiteSums:
    """Put together what is released."""
    names, groups = channel_columns(list(source.channels), len(source.columns), None)
    kept = np.concatenate([groups[v] for v in released]) if released else np.empty(0, np.intp)
    kept = np.sort(kept)
    place = np.full(len(source.columns), -1)
    place[kept] = np.arange(kept.size)
    n_folds, c = sums.classes.size // sums.n_classes, sums.n_classes
    shape = (n_folds, c)
    order = list(dict.fromkeys(source.channels[j] for j in kept))
    count = np.zeros((len(released), *shape), dtype=np.int64)
    sum_x, squares = np.zeros((*shape, kept.size)), np.zeros((*shape, kept.size))
    sum_xx: list[Array] = [np.empty(0)] * len(released)
    shift, scale = np.zeros(kept.size), np.ones(kept.size)
    where = {int(v): (block, row) for block in sums.blocks for row, v in enumerate(block.channels)}
    for v in released:
        at, own = order.index(names[v]), place[groups[v]]
        block, row = where[v]
        n = np.array([[own_.size for f, k, own_ in members[v] if f == g] for g in range(n_folds)])
        count[at] = n
        total = block.sum_x[row].sum(axis=0) / max(float(n.sum()), 1.0)
        unit = block.scale[row]
        centred = block.in_units(
            block.shift
            + block.scale * np.where(np.arange(len(block.shift))[:, None] == row, total, 0.0),
            block.scale,
        )
        shift[own], scale[own] = centred.shift[row], unit
        sum_x[..., own] = centred.sum_x[row].reshape(*shape, -1)
        sum_xx[at] = centred.sum_xx[row].reshape(*shape, own.size, own.size)
        squares[..., own] = _mean_squares(
            statistics, members[v], v, groups[v], (shift[own], scale[own]), min_subjects, shape
        )
    classes = statistics.labels
    wanted = sorted({*classes, *_alike(labels, classes)})
    own_classes = np.array([wanted.index(label) for label in classes])

    def wide(values: NDArray, axis: int) -> NDArray:
        size = list(values.shape)
        size[axis] = len(wanted)
        result = np.zeros(size, dtype=values.dtype)
        result[(slice(None),) * axis + (own_classes,)] = values
        return result

    subjects = np.rint(sums.total.reshape(shape)).astype(np.int64)
    return SiteSums(
        tuple(source.columns[j] for j in kept),
        tuple(str(source.channels[j]) for j in kept),
        tuple(wanted),
        wide(subjects, 1),
        wide(count, 2),
        wide(sum_x, 1),
        tuple(wide(part, 1) for part in sum_xx),
        wide(squares, 1),
        shift,
        scale,
        dict(source.settings),
        site,
        dict(suppressed),
        {str(names[v]): int(left_out[:, v].sum()) for v in released if left_out[:, v].any()},
        _acquisition(source.table, min_subjects),
        min_subjects,
    )


def _mean_squares(
    statistics: SubjectStatistics,
    cells: Sequence[tuple[int, int, Indices]],
    v: int,
    columns: Indices,
    units: tuple[Array, Array],
    min_subjects: int,
    shape: tuple[int, int],
) -> Array:
    """Q of a channel in units of its sums, shape (F, c, d); NaN where it is suppressed."""
    shift, scale = units
    n = np.maximum(statistics.counts[:, v, None], 1.0)
    mean = statistics.sum_x[:, columns] / n
    within = statistics.sum_xx[:, columns] / n - mean**2
    size = np.abs(statistics.sum_xx[:, columns]) / n
    several = (within > 1e-10 * np.maximum(size, 1e-300)).any(axis=1)
    mean = (statistics.shift[columns] + statistics.scale[columns] * mean - shift) / scale
    result = np.zeros((*shape, columns.size))
    suppress = any(0 < several[own].sum() < min_subjects for _, _, own in cells)
    for f, k, own in cells:
        result[f, k] = np.nan if suppress and own.size else (mean[own] ** 2).sum(axis=0)
    return result


def _alike(labels: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Labels of the type of those that are there: a command line knows text alone."""
    kind = type(known[0])
    try:
        return [label if isinstance(label, kind) else kind(label) for label in labels]
    except (TypeError, ValueError):
        raise InputError(
            f"The labels of the table are such as {known[0]!r}, and those given are not.",
            argument="labels",
        ) from None


def _acquisition(table: FeatureTable | None, min_subjects: int) -> list[dict[str, Any]]:
    """Count subjects by class and acquisition fact.

    Values of fewer than ``min_subjects`` subjects are merged into "other"; a fact is left out if
    that has too few as well.
    """
    recordings = [] if table is None else table.info.get("recordings") or []
    rows = []
    labels = {} if table is None else dict(zip(table.subjects.astype(str), table.y, strict=True))
    for recording in recordings:
        facts = recording.get("facts") if isinstance(recording, Mapping) else None
        subject = str(recording.get("subject")) if facts else ""
        if facts and subject in labels:
            rows.append({"subject": subject, "label": labels[subject], **facts})
    if not rows:
        return []
    frame = pd.DataFrame(rows).drop_duplicates("subject")
    found = []
    for fact in _FACTS:
        if fact not in frame:
            continue
        values = frame[fact].map(lambda value: "not known" if pd.isna(value) else str(value))
        while True:
            counts = pd.crosstab(values, frame["label"])
            rare = counts.index[((counts > 0) & (counts < min_subjects)).any(axis=1)]
            if not len(rare) or set(rare) == {"other"} or len(counts) == 1:
                break
            values = values.mask(values.isin(rare), "other")
        if not len(rare):
            found += [
                {"fact": fact, "value": value, "label": str(label), "count": int(n)}
                for value, row in counts.iterrows()
                for label, n in row.items()
                if n
            ]
    return found
