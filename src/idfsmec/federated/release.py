"""Release: which sums of a site's table leave the site.

The rules, in the order in which they are applied:

1. A site has 4, 2 or 1 folds: the most with which no channel is lost.
2. A subject who holds more than 70 % of a feature's sum of squares in a cell (about the
   median of the class) is left out of the channel, and counted.
3. A channel is released if every cell of every class that the site has holds at least
   ``min_subjects`` subjects and has products of full numerical rank, so that they span no
   subject's own direction. A channel that fails in one class is suppressed as a whole.
4. If some subjects lack some of the released channels, in all or in some of their samples, only
   electrodes are released: the sums of a channel that is computed from others would, with theirs,
   leave the subjects who lack one. For the same reason equal columns and dependent channels are
   refused, also among the conditions of an electrode, where enough subjects have all of them, or
   have them in the same samples, to see it.
5. Squares of means (Q) are suppressed where 1 to ``min_subjects - 1`` subjects of a cell have
   several different samples: products less squares are the variance within these subjects.

Centring constants are computed from what is released. :mod:`ledger` sees to it that each
participant is released once.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._parallel import one_blas_thread
from idfsmec.errors import InputError
from idfsmec.federated.ledger import Ledger, Participants
from idfsmec.federated.streaming import Source, Subjects, open_source
from idfsmec.federated.summary import SiteSums, Summary, split_condition
from idfsmec.solver.sums import Sums, join_sums, name_folds
from idfsmec.table import FeatureTable
from idfsmec.table.columns import SEPARATOR, channel_codes
from idfsmec.table.positions import is_electrode, standard_name
from idfsmec.table.target import MOST_CLASSES, target_of

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Fewest subjects of a cell, and the largest share of a sum of squares that one may hold.
MIN_SUBJECTS, MAX_SHARE = 10, 0.7
_FOLDS = (4, 2, 1)
# Eigenvalues of a correlation matrix below this count as 0.
_RANK_TOLERANCE = 1e-8
# Correlations this close to 1 are those of equal columns, up to last digits of 0.001 SD.
_EQUAL = 1e-6
# Subjects in addition to the columns of two channels, for these to be tested together.
_MORE_SUBJECTS = 10
# Columns of channels follow from each other if the smallest eigenvalue falls to this share of that
# of one channel; 0.006 and more on public tables. The second holds for all channels, where
# eigenvalues of 1e-7 are usual and that of columns computed from others is 1e-16.
_JOINT_SHARE, _EXACT = 1e-4, 1e-11
_SAME = "all channels have the same participants"
#: Acquisition facts that are counted.
_FACTS = ("device", "n_channels", "line_freq", "format")


def summarise(
    table: FeatureTable | str | PathLike[str],
    *,
    min_subjects: int = MIN_SUBJECTS,
    labels: Iterable[Any] = (),
    conditions: Sequence[str] = (),
    electrodes: Iterable[str] = (),
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
    labels : iterable, optional
        Of the whole study, where the table may lack some.
    conditions : sequence of str, optional
        Conditions to release side by side, as channels of their own. By default all samples of a
        subject are taken together.
    electrodes : iterable of str, optional
        Channels that are electrodes, although their names have no known position.
    site : str
        Name of the site, to be released.
    study_key : bytes
        Secret of the study, from :func:`read_study_key`: subjects are assigned to folds by a hash
        with it.
    ledger : Ledger, optional
        What the site released before, as an open context. A release with subjects of an earlier
        one is refused. What leaves the site needs it.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        The labels are a score: sites release sums by class.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from idfsmec import FeatureTable, summarise
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> table = FeatureTable(X, ["HC", "MDD"] * 30, [f"s{i}" for i in range(60)])
    >>> summarise(table)
    Summary(1 site; participants HC: 30, MDD: 30; 2 channels, 0 suppressed)
    """
    if min_subjects < 1:
        raise InputError(f"min_subjects={min_subjects}: give 1 or more.", argument="min_subjects")
    source = open_source(table, conditions=conditions)
    settings = source.settings()
    subjects = _Subjects(source, study_key)
    _refuse_score(source.info, subjects.labels)
    channels = [str(name) for name in source.channels]
    reasons: dict[int, str] = {}
    dependence = ""
    n_folds = subjects.most_folds(min_subjects)
    if min_subjects > 1:
        subjects.leave_out_dominant(n_folds)
        sums, n_folds, reasons = _suppress(subjects, n_folds, min_subjects)
    else:
        sums = subjects.sums(subjects.folds[None] % n_folds, n_folds)
    released = [v for v in range(len(channels)) if v not in reasons]
    if min_subjects > 1:
        with one_blas_thread():
            dependence = _refuse_dependent(subjects, released, {*electrodes})
    classes = sorted({*subjects.labels, *_alike([*labels], subjects.labels)})
    site_sums = replace(
        _site_sums(subjects, sums, released, classes, min_subjects),
        settings=settings,
        site=site,
        suppressed={channels[v]: reason for v, reason in reasons.items()},
        left_out={channels[v]: n for v in released if (n := int(subjects.left_out[:, v].sum()))},
        acquisition=_acquisition(subjects, min_subjects),
        min_subjects=min_subjects,
        dependence=dependence,
    )
    if ledger is not None:
        ledger.add(site_sums.digest, min_subjects, subjects.participants())
    return Summary((site_sums,))


def _refuse_score(info: Mapping[str, Any], labels: Sequence[Any]) -> None:
    """Refuse a score: as labels its values would be released, each with its participants."""
    target = target_of(info, pd.Series(dtype=object))
    is_score = target.kind == "score"
    if is_score or (
        len(labels) > MOST_CLASSES and all(isinstance(k, int | float | np.number) for k in labels)
    ):
        name = f"the score {target.name}" if is_score else f"{len(labels)} different numbers"
        raise InputError(
            f"the labels are {name}, and sites release sums by class: its values would leave the "
            "site, and sums with a score have no rules of disclosure here. Give classes as "
            "labels, such as HC and MDD, or grades in words"
        )


def read_study_key(path: str | PathLike[str]) -> bytes:
    """Read the secret key of a study.

    All sites of a study use the same file. Anyone who has it can compute folds from names.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_study_key(f"{folder}/study.key", new_study_key())
    ...     len(read_study_key(f"{folder}/study.key"))
    32
    """
    key = Path(path).read_bytes()
    if not 16 <= len(key) <= 64:
        raise InputError(f"{path}: not a study key: it has {len(key)} bytes, not 16 to 64.")
    return key


def new_study_key() -> bytes:
    """Draw a secret key for a study."""
    return secrets.token_bytes(32)


def write_study_key(path: str | PathLike[str], key: bytes) -> None:
    """Write a key to a new file that only this user can read."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InputError(f"{file}: another process has made this key: try again.") from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(key)


class _Subjects(Subjects):
    """Subjects of a site by channel and cell; cell ``fold * n_classes + class``."""

    def __init__(self, source: Source, study_key: bytes) -> None:
        super().__init__(source, keep_means=True)
        self.mean, self.mean_square = self.means
        self.shift, self.scale = self.units
        self.folds, self.n_classes = name_folds(self.names, key=study_key), len(self.labels)
        self.have = self.counts[:, :-2] > 0
        self.left_out = np.zeros_like(self.have)

    def cells(self, n_folds: int) -> Mask:
        """The subjects of every cell, whichever channels they have, shape (J, p)."""
        own = self.folds % n_folds * self.n_classes + self.codes
        return np.asarray(own == np.arange(n_folds * self.n_classes)[:, None])

    def cell_counts(self, n_folds: int) -> NDArray[np.int64]:
        """How many subjects of every cell have each channel, shape (J, V)."""
        return self.cells(n_folds).astype(np.int64) @ self.have

    def most_folds(self, min_subjects: int) -> int:
        """Rule 1: the most folds with which no channel has too few subjects that one fold has."""
        enough = {n: (self.cell_counts(n) >= min_subjects).all(axis=0) for n in _FOLDS}
        if not enough[1].any():
            return 1
        return next(n for n in _FOLDS if not (enough[1] & ~enough[n]).any())

    def participants(self) -> Participants:
        """The mean of every column of each subject, in each class and over classes."""
        have = self.counts[:, channel_codes(self.columns)] > 0
        means = np.where(have, self.shift + self.scale * self.mean, np.nan)
        frame = pd.DataFrame(means, index=self.names, columns=list(self.source.columns))
        twice = frame[frame.index.duplicated(keep=False)]
        return Participants(pd.concat([frame, twice.groupby(level=0).mean()]))

    def leave_out_dominant(self, n_folds: int) -> None:
        """Rule 2: leave out who holds most of a feature's sum of squares."""
        cells, classes = self.cells(n_folds), self.cells(1)
        for v, own in enumerate(self.columns):
            mean, square = self.mean[:, own], self.mean_square[:, own]
            for number, cell in enumerate(cells & self.have[:, v]):
                if cell.any():
                    same_class = classes[number % self.n_classes] & self.have[:, v]
                    centre = np.median(mean[same_class], axis=0)
                    squares = np.maximum(square - 2 * centre * mean + centre**2, 0.0)[cell]
                    self.left_out[cell, v] = _dominant(squares)
        self.have &= ~self.left_out
        self.counts[:, :-2][self.left_out] = np.inf  # samples of no weight


def _dominant(squares: Array) -> Mask:
    """Subjects of a cell with more than the share of any feature, one after the other."""
    left = np.ones(len(squares), dtype=bool)
    while left.sum() > 1:
        total = squares[left].sum(axis=0)
        share = np.where(total > 0, squares / np.where(total > 0, total, 1.0), 0.0).max(axis=1)
        top = int(np.argmax(np.where(left, share, -1.0)))
        if share[top] <= MAX_SHARE:
            break
        left[top] = False
    return ~left


def _suppress(
    subjects: _Subjects, n_folds: int, min_subjects: int
) -> tuple[Sums, int, dict[int, str]]:
    """Rule 3: find channels to be suppressed, with the most folds that save all they can."""
    sums = subjects.sums(subjects.folds[None] % n_folds, n_folds)
    found = []
    for fewer in (n for n in _FOLDS if n <= n_folds):
        # Folds f and f + n_folds / 2 go together.
        merged = join_sums([replace(sums, folds=sums.folds % fewer)])
        found.append((merged, fewer, _reasons(merged, subjects.cell_counts(fewer), min_subjects)))
    return next(part for part in found if part[2].keys() == found[-1][2].keys())


def _reasons(sums: Sums, counts: NDArray[np.int64], min_subjects: int) -> dict[int, str]:
    """Channels that are suppressed, and why."""
    reasons = {}
    for block in sums.blocks:
        for row, v in enumerate(block.channels.tolist()):
            parts = zip(block.count[row], block.sum_x[row], block.sum_xx[row], strict=True)
            if counts[:, v].min() < min_subjects:
                reasons[v] = f"fewer than {min_subjects} participants of a class in a fold have it"
            elif not all(_full_rank(*cell) for cell in parts):
                reasons[v] = (
                    "its products are not of full rank (too few participants for its features, or "
                    "a feature that is constant or repeats others)"
                )
    return dict(sorted(reasons.items()))


def _full_rank(count: float, sum_x: Array, sum_xx: Array) -> bool:
    """Whether products about the mean have full numerical rank."""
    spread = sum_xx - np.outer(sum_x, sum_x) / count
    variance = np.diagonal(spread)
    if (variance <= 1e-12 * np.maximum(np.diagonal(sum_xx), 1e-300)).any():
        return False
    unit = np.sqrt(variance)
    return bool(np.linalg.eigvalsh(spread / np.outer(unit, unit))[0] > _RANK_TOLERANCE)


def _refuse_dependent(
    subjects: _Subjects, released: Sequence[int], electrodes: Collection[str]
) -> str:
    """Rule 4: refuse channels that follow from others; return what was tested."""
    samples = np.where(subjects.have, subjects.counts[:, :-2], 0.0)[:, released]
    if (samples == samples[:, :1]).all():
        return _SAME
    names = [str(subjects.source.channels[v]) for v in released]
    columns = [subjects.columns[v] for v in released]
    known = subjects.source.conditions  # anything else in brackets is a part of the name
    halves = {name: split_condition(name) for name in names}
    parts = {name: half if half[1] in known else (name, "") for name, half in halves.items()}
    channel, condition = zip(*parts.values(), strict=True)
    most = pd.DataFrame(samples.T).groupby(np.array(condition)).transform("max").to_numpy().T
    # Conditions may have different samples, but not channels within them.
    shares = samples / np.maximum(most, 1.0)
    same = bool((shares == shares[:, :1]).all())
    if not same:
        _refuse_derived(parts, electrodes)
    # A condition may be a mean or difference of others, which few participants show.
    for at in pd.Series(names).groupby(np.array(channel), sort=False).indices.values():
        _refuse_computed(subjects, [columns[i] for i in at], samples[:, at])
    if same:
        return _SAME
    n = _refuse_computed(subjects, columns, shares)
    for pair in map(list, itertools.combinations(range(len(names)), 2)):
        part = [columns[i] for i in pair]
        _refuse_joint(subjects, part, shares[:, pair], _MORE_SUBJECTS, _RANK_TOLERANCE)
    n_columns = sum(part.size for part in columns)
    _refuse_joint(subjects, columns, shares, n_columns, _EXACT)
    if n <= 2 * len(names):
        return (
            f"not tested whether columns follow from several other channels: {n} participants "
            f"have all channels, and the test needs more than {2 * len(names)}"
        )
    more = (
        f" by one feature or one channel; not tested for several features of several channels: "
        f"{n} participants have all channels, and the test needs more than {2 * n_columns}"
    )
    return f"columns do not follow from other channels{more * (n <= 2 * n_columns)}"


def _complete(samples: Array) -> list[Mask]:
    """Who has all channels; and, if these are others, who has them in the same samples."""
    have = np.asarray((samples > 0).all(axis=1))
    same = have & (samples == samples[:, :1]).all(axis=1)
    return [have] if np.array_equal(have, same) else [have, same]


def _refuse_computed(subjects: _Subjects, columns: Sequence[Indices], samples: Array) -> int:
    """Refuse columns of channels that follow from one feature; return who has all of them.

    Nothing is tested where they are at most twice as many as the channels.
    """
    of_all = np.concatenate(columns)
    for complete in _complete(samples):
        n = int(complete.sum())
        if n > 2 * len(columns) > 2:
            means = subjects.mean[np.ix_(complete, of_all)]
            means = means - means.mean(axis=0)
            length = np.linalg.norm(means, axis=0)
            unit = means / np.where(length > 0, length, 1.0)
            _refuse_following(unit, np.array(subjects.source.columns)[of_all])
    return n


def _refuse_joint(
    subjects: _Subjects, columns: Sequence[Indices], samples: Array, more: int, tolerance: float
) -> None:
    """Refuse channels that are dependent together, where so many more subjects have them."""
    of_all, part = np.concatenate(columns), np.repeat(range(len(columns)), [*map(len, columns)])
    for complete in _complete(samples):
        means = subjects.mean[np.ix_(complete, of_all)]
        varying = np.flatnonzero(np.ptp(means, axis=0) > 0) if len(means) else np.empty(0)
        if len(means) <= of_all.size + more or not varying.size:
            continue
        r: Array = np.corrcoef(means[:, varying].T).reshape(varying.size, varying.size)
        own = part[varying]
        alone = min(np.linalg.eigvalsh(r[np.ix_(own == k, own == k)])[0] for k in np.unique(own))
        values, vectors = np.linalg.eigh(r)
        if values[0] < min(tolerance, _JOINT_SHARE * alone) and alone >= _RANK_TOLERANCE:
            weights = np.abs(vectors[:, 0])
            top = of_all[varying][weights > 0.1 * weights.max()]
            names = dict.fromkeys(str(subjects.source.column_channels[j]) for j in top)
            raise InputError(
                f"A column of {' or '.join(names)} follows from those of the other"
                f"{'s' * (len(names) > 2)}, as an asymmetry: together they would reveal "
                "participants who lack one of them. Leave it out of the table that is summarised."
            )


def _refuse_derived(parts: Mapping[str, tuple[str, str]], electrodes: Collection[str]) -> None:
    """Refuse channels that are no electrodes, or one electrode twice in a condition."""
    remedy = (
        "Some participants lack some channels, in all or in some of their samples, and with a "
        "channel that is computed from others the sums would reveal their values. Leave its "
        "columns out of the table"
    )
    derived = [
        name
        for name, (channel, _) in parts.items()
        if not ({name, channel} & {*electrodes} or is_electrode(channel))
    ]
    if derived:
        raise InputError(
            f"No electrode has the name {', '.join(derived[:5])}"
            f"{f' and {len(derived) - 5} more' if len(derived) > 5 else ''}. {remedy}, or, if it "
            "is a single electrode, name it in --electrodes FILE."
        )
    seen: dict[tuple[str | None, str], str] = {}
    for name, (channel, condition) in parts.items():
        place = (standard_name(channel) or channel, condition)
        if seen.setdefault(place, name) != name:
            raise InputError(f"Channels {seen[place]} and {name} are one electrode. {remedy}.")


def _refuse_following(unit: Array, names: NDArray[np.str_]) -> None:
    """Refuse columns that follow from one feature of other channels, whatever they are called.

    Columns (n, D) have mean 0 and length 1, or 0 where they are constant.
    """
    channel, feature = np.array([name.rpartition(SEPARATOR)[::2] for name in names]).T
    for name in dict.fromkeys(feature.tolist()):
        columns = np.flatnonzero((feature == name) & unit.any(axis=0))
        if not columns.size:
            continue
        r = unit[:, columns].T @ unit
        alike, own = np.abs(r) > 1 - _EQUAL, channel[columns][:, None] == channel
        for i, j in np.argwhere(alike & ~own):
            raise InputError(
                f"Columns {str(names[columns[i]])!r} and {str(names[j])!r} are the same: the "
                "difference of their sums would reveal the few participants who lack one of the "
                "channels. Leave one of them out of the table that is summarised."
            )
        values, vectors = np.linalg.eigh(r[:, columns])
        if balanced := values[0] < _RANK_TOLERANCE:
            what, weights = f"Feature {name!r} of a channel", vectors[:, 0]
        else:
            # What the feature explains of another one, unless it is that of the same channel.
            explained = np.square((vectors / np.sqrt(values)).T @ r).sum(axis=0)
            follows = (explained > 1 - 2 * _EQUAL) & (feature != name) & ~alike.any(axis=0)
            if not follows.any():
                continue
            column = int(np.argmax(follows))
            what = f"Column {str(names[column])!r}"
            weights = np.linalg.solve(r[:, columns], r[:, column])
        top = columns[np.abs(weights) > 0.1 * np.abs(weights).max()]
        raise InputError(
            f"{what} follows from that of others, as after an average reference or a difference "
            f"of {'channels or ' * (not balanced)}conditions ({', '.join(channel[top][:5])}): "
            "together they would reveal participants who lack one. Leave its columns out of the "
            "table that is summarised."
        )


def _site_sums(
    subjects: _Subjects,
    sums: Sums,
    released: Sequence[int],
    labels: Sequence[Any],
    min_subjects: int,
) -> SiteSums:
    """Put together the sums of the released channels among the classes of the study."""
    shape = int(sums.folds.max()) + 1, len(labels)
    classes = [labels.index(label) for label in subjects.labels]
    order, cells = np.lexsort((sums.classes, sums.folds[0])), subjects.cells(shape[0])

    def by_fold_and_class(of_cells: Array) -> Array:
        wide = np.zeros((*shape, *of_cells.shape[1:]))
        wide[:, classes] = of_cells.reshape(shape[0], -1, *of_cells.shape[1:])
        return wide

    of_channels = {}
    for block in sums.blocks:
        # About the mean of the subjects that are released, not of all.
        n = np.maximum(np.rint(block.count.sum(axis=1)), 1.0)[:, None]
        mean = block.shift + block.scale * (block.sum_x.sum(axis=1) / n)
        block = block.in_units(mean, block.scale)
        sorted_sums = (part[:, order] for part in (block.count, block.sum_x, block.sum_xx))
        for v, shift, scale, *parts in zip(
            block.channels.tolist(), block.shift, block.scale, *sorted_sums, strict=True
        ):
            if v in released:
                parts.append(_mean_squares(subjects, v, cells, shift, scale, min_subjects))
                of_channels[v] = [*map(by_fold_and_class, parts), shift, scale]
    count, sum_x, sum_xx, squares, shifts, scales = (
        [of_channels[v][part] for v in released] for part in range(6)
    )
    kept, none = [j for v in released for j in subjects.columns[v]], np.zeros((*shape, 0))
    return SiteSums(
        tuple(subjects.source.columns[j] for j in kept),
        tuple(str(subjects.source.column_channels[j]) for j in kept),
        tuple(labels),
        np.rint(by_fold_and_class(sums.total[order])).astype(np.int64),
        np.rint(np.reshape(count, (-1, *shape))).astype(np.int64),
        np.concatenate([none, *sum_x], axis=-1),
        tuple(sum_xx),
        np.concatenate([none, *squares], axis=-1),
        np.concatenate([none[0, 0], *shifts]),
        np.concatenate([none[0, 0], *scales]),
    )


def _mean_squares(
    subjects: _Subjects, v: int, cells: Mask, shift: Array, scale: Array, min_subjects: int
) -> Array:
    """Rule 5: Q of a channel in units of its sums, shape (J, d); NaN where suppressed."""
    columns = subjects.columns[v]
    mean, square = subjects.mean[:, columns], subjects.mean_square[:, columns]
    several = np.any(square - mean**2 > 1e-10 * np.maximum(square, 1e-300), axis=1)
    mean = (subjects.shift[columns] + subjects.scale[columns] * mean - shift) / scale
    members = (cells & subjects.have[:, v]).astype(float)
    squares, n_several = members @ mean**2, members @ several
    if ((n_several > 0) & (n_several < min_subjects)).any():
        squares[members.any(axis=1)] = np.nan
    return squares


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


def _acquisition(subjects: _Subjects, min_subjects: int) -> list[dict[str, Any]]:
    """Count subjects by class and acquisition fact; rare values are merged into "other"."""
    labels = pd.Series(np.array(subjects.labels, dtype=object)[subjects.codes], subjects.names)
    labels = labels[~labels.index.duplicated(keep="last")]
    rows = [{"subject": name, "device": value} for name, value in subjects.rows.devices.items()]
    for recording in subjects.source.info.get("recordings") or []:
        if isinstance(recording, Mapping) and (facts := recording.get("facts")):
            rows.append({**facts, "subject": str(recording.get("subject"))})
    frame = pd.DataFrame(rows, columns=["subject", *_FACTS]).groupby("subject").first()
    frame = frame[frame.index.isin(labels.index)]
    counted = []
    for fact in frame.columns[frame.notna().any()]:
        values = frame[fact].map(lambda value: "not known" if pd.isna(value) else str(value))
        while True:
            counts = pd.crosstab(values, labels[frame.index])
            rare = counts.index[((counts > 0) & (counts < min_subjects)).any(axis=1)]
            if not len(rare) or set(rare) == {"other"} or len(counts) == 1:
                break
            values = values.mask(values.isin(rare), "other")
        if not len(rare):  # else "other" has too few as well, and the fact is left out
            counted += [
                {"fact": fact, "value": value, "label": str(label), "count": int(n)}
                for value, row in counts.iterrows()
                for label, n in row.items()
                if n
            ]
    return counted
