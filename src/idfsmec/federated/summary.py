"""Summary: the sums that a site releases, their file and its checks; Study: sites put together.

For every channel, class and fold, over the N subjects who have the channel, a summary holds N, the
sum S of each subject's mean of x, the sum P of each subject's mean of x x' and, per feature, the
sum Q of the squares of each subject's mean. :mod:`idfsmec.solver.sums` has the formulas.

In a study a channel counts in all sites that released it. Its held-out loss comes from folds, if
every site has at least two: the number of folds is the smallest of any site, and folds of the same
number are held out together. Otherwise one site at a time is left out. One scheme holds for a
study. A channel that the scheme cannot judge, because a single site has it, gets the loss on the
training subjects times ``(n + k) / (n - k)`` for k parameters and n subjects (Akaike's final
prediction error; on one public table and its half 1.06 and 1.04 times the held-out loss), and is
named in :attr:`Study.corrected`.
"""

from __future__ import annotations

import hashlib
import json
import warnings
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import InputError
from idfsmec.metrics import describe_confounding, site_confounding
from idfsmec.missing.association import missingness_from_counts
from idfsmec.solver.scaling import site_maps
from idfsmec.solver.sums import Block, Sums, join_blocks, join_sums
from idfsmec.table.columns import SEPARATOR, channel_codes, channel_columns, join_column
from idfsmec.table.feature_table import same_info

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Raised when files of before can no longer be read. Versions 1 to 4 could reveal single subjects.
FORMAT_VERSION = 5
#: Cells of fewer subjects are not written, whatever a site asks for.
FEWEST_SUBJECTS = 5
_MOST_BYTES = 2**31  # unpacked; no study has as many
_ARRAYS = ("subjects", "count", "shift", "scale", "sum_x", "sum_xx", "sum_mean_squares")
_TEXTS = ("columns", "column_channels", "labels")
_FACTS = (
    *("settings", "site", "suppressed", "left_out", "acquisition", "min_subjects"),
    "dependence",
)
# Negative eigenvalues and differences below this share of the largest number are rounding.
_ROUNDING = 1e-8


def join_condition(channel: str, condition: str) -> str:
    """Name a channel in one condition, such as ``F3 (eyes-open)``."""
    return f"{channel} ({condition})"


def split_condition(channel: str) -> tuple[str, str]:
    """Split the name of a channel into channel and condition, which may be empty.

    >>> split_condition("F3 (eyes-open)"), split_condition("F3")
    (('F3', 'eyes-open'), ('F3', ''))
    """
    name, bracket, condition = channel.partition(" (")
    return (name, condition[:-1]) if bracket and condition.endswith(")") else (channel, "")


class Columns:
    """What follows from columns and their channels."""

    columns: tuple[str, ...]
    column_channels: tuple[Any, ...]

    @property
    def channels(self) -> list[Any]:
        """Names of the channels, in order of first appearance."""
        return list(dict.fromkeys(self.column_channels))

    @cached_property
    def channel_columns(self) -> list[NDArray[np.intp]]:
        """The columns of each channel."""
        return channel_columns(list(self.column_channels), len(self.columns), None)[1]


@dataclass(frozen=True, eq=False, repr=False)
class SiteSums(Columns):
    """The sums of one site by fold (F) and class (c), over V channels with D features in all."""

    columns: tuple[str, ...]  # the features that are released
    column_channels: tuple[str, ...]  # and their channels
    labels: tuple[Any, ...]  # of the classes
    subjects: Counts  # all subjects, whichever channels they have, (F, c)
    count: Counts  # N: subjects who have each channel, (V, F, c)
    sum_x: Array  # S, after shift and scale, (F, c, D)
    sum_xx: tuple[Array, ...]  # P of each channel, likewise, (F, c, d, d)
    sum_mean_squares: Array  # Q, likewise; NaN where it is suppressed, (F, c, D)
    shift: Array  # what was subtracted, the mean of the released subjects, (D,)
    scale: Array  # what was divided by, (D,)
    settings: Mapping[str, Any] = field(default_factory=dict)  # how features were computed
    site: str = ""
    suppressed: Mapping[str, str] = field(default_factory=dict)  # channels, and why
    left_out: Mapping[str, int] = field(default_factory=dict)  # of a channel: who hold most of it
    acquisition: Sequence[Mapping[str, Any]] = ()  # fact, value, label and count of subjects
    min_subjects: int = 1
    dependence: str = ""  # whether columns that follow from other channels were tested

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.subjects.shape[0])

    def take(self, conditions: Collection[str], features: Collection[str]) -> SiteSums:
        """Keep the sums of some conditions and features; a single condition is not named."""
        kept: list[tuple[int, str, str]] = []
        for j, (column, channel) in enumerate(
            zip(self.columns, self.column_channels, strict=True)
        ):
            (name, condition), feature = split_condition(channel), column.rpartition(SEPARATOR)[2]
            if (not conditions or condition in conditions) and (
                not features or feature in features
            ):
                name = name if len(conditions) == 1 else channel
                kept.append((j, join_column(name, feature), name))
        if not kept:
            wanted = ", ".join([*conditions, *features])
            raise InputError(f"{self.site or 'The summary'} has nothing released of {wanted}.")
        where = np.array([j for j, _, _ in kept])
        inside = [np.flatnonzero(np.isin(part, where)) for part in self.channel_columns]
        pairs = zip(self.sum_xx, inside, strict=True)
        return replace(
            self,
            columns=tuple(column for _, column, _ in kept),
            column_channels=tuple(channel for _, _, channel in kept),
            count=self.count[[part.size > 0 for part in inside]],
            sum_x=self.sum_x[..., where],
            sum_xx=tuple(P[..., part[:, None], part] for P, part in pairs if part.size),
            sum_mean_squares=self.sum_mean_squares[..., where],
            shift=self.shift[where],
            scale=self.scale[where],
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return _checksum(_header(self), _packed(self))


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """The sums that one or several sites release instead of rows.

    Made by :func:`idfsmec.summarise`; :meth:`idfsmec.IDFSMEC.fit_summaries` ranks from them. ``+``
    puts the sites of two summaries together, ``-`` takes those of one away again.

    Attributes
    ----------
    sites : tuple of SiteSums

    Examples
    --------
    >>> import pandas as pd
    >>> from idfsmec import FeatureTable, summarise
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["F3__alpha", "Cz__alpha"])
    >>> table = FeatureTable(X, ["HC", "MDD"] * 30, [f"s{i}" for i in range(60)])
    >>> summarise(table)
    Summary(1 site; participants HC: 30, MDD: 30; 2 channels, 0 suppressed)
    """

    sites: tuple[SiteSums, ...]

    def __repr__(self) -> str:
        totals: Counter[Any] = Counter()
        for site in self.sites:
            totals.update(dict(zip(site.labels, site.subjects.sum(axis=0).tolist(), strict=True)))
        subjects = ", ".join(f"{label}: {n}" for label, n in totals.items())
        channels = {channel for site in self.sites for channel in site.channels}
        suppressed = sum(len(site.suppressed) for site in self.sites)
        return (
            f"Summary({len(self.sites)} site{'s' * (len(self.sites) > 1)}; participants "
            f"{subjects}; {len(channels)} channels, {suppressed} suppressed)"
        )

    def __add__(self, other: Summary) -> Summary:
        digests = {site.digest for site in self.sites}
        if any(site.digest in digests for site in other.sites):
            raise InputError("The same release was given twice: it would count twice.")
        return Summary((*self.sites, *other.sites))

    def __sub__(self, other: Summary) -> Summary:
        gone = {site.digest for site in other.sites}
        left = tuple(site for site in self.sites if site.digest not in gone)
        if len(left) != len(self.sites) - len(other.sites):
            raise InputError("Only a summary that was added can be taken away again.")
        if not left:
            raise InputError("Nothing would be left.")
        return Summary(left)

    def take(self, *, conditions: Sequence[str] = (), features: Sequence[str] = ()) -> Summary:
        """Keep some conditions and features of what was released, by default all.

        Channels of a single condition are called as without conditions.

        Returns
        -------
        Summary
        """
        return Summary(tuple(site.take(conditions, features) for site in self.sites))

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the sums of one site to a file, NumPy's ``.npz`` without pickle.

        Returns
        -------
        Path
        """
        if len(self.sites) != 1:
            raise InputError("A summary file holds the sums of one site.")
        (site,) = self.sites
        if site.min_subjects < FEWEST_SUBJECTS:
            raise InputError(
                f"min_subjects={site.min_subjects}: sums over so few participants are not "
                f"written; give at least {FEWEST_SUBJECTS}."
            )
        arrays, header = _packed(site), _header(site)
        texts = {"about": header, "checksum": _checksum(header, arrays)}
        contents: dict[str, Any] = arrays | {
            name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()
        }
        with replacing(Path(path)) as (beside,), beside.open("wb") as file:
            np.savez_compressed(file, **contents)
        return Path(path)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Summary:
        """Read and check what :meth:`write` wrote; a damaged or impossible file is refused."""
        return cls((_read(Path(path)),))

    def describe(self) -> str:
        """Return the whole content as one table."""
        return "\n\n".join(_describe(site) for site in self.sites)


def _header(site: SiteSums) -> str:
    head = {"format": "idfsmec summary", "format_version": FORMAT_VERSION, "idfsmec": __version__}
    facts = {name: getattr(site, name) for name in (*_TEXTS, *_FACTS)}
    return json.dumps(head | facts, sort_keys=True)


def _packed(site: SiteSums) -> dict[str, NDArray[Any]]:
    """The arrays as they are written: products of each pair of features once."""
    halves = [part[(..., *np.triu_indices(part.shape[-1]))] for part in site.sum_xx]
    empty = np.zeros((*site.subjects.shape, 0))
    arrays = {name: np.asarray(getattr(site, name)) for name in _ARRAYS if name != "sum_xx"}
    return arrays | {"sum_xx": np.concatenate([empty, *halves], axis=-1)}


def _checksum(header: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the description and of every array: name, shape, little-endian bytes."""
    digest = hashlib.sha256(header.encode())
    for name in _ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name}{array.shape}".encode() + little.tobytes())
    return digest.hexdigest()


def _read(path: Path) -> SiteSums:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise ValueError("too large")
        with np.load(path, allow_pickle=False) as loaded:
            text, checksum = (loaded[name].tobytes().decode() for name in ("about", "checksum"))
            header = json.loads(text)
            version = int(header["format_version"])
            current = version == FORMAT_VERSION
            arrays = {name: loaded[name] for name in _ARRAYS} if current else {}
    except Exception as error:
        # A damaged archive raises anything, from BadZipFile to UnicodeDecodeError.
        raise InputError(f"{path}: not a readable summary of idfsmec ({error}).") from error
    if version < FORMAT_VERSION:
        raise InputError(
            f"{path}: written by an earlier idfsmec, whose summaries can reveal single "
            "participants: delete it, and have the site summarise its table again."
        )
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path}: written in format version {version} by a newer idfsmec, and this one reads "
            f"version {FORMAT_VERSION}: upgrade idfsmec."
        )
    if _checksum(text, arrays) != checksum:
        raise InputError(f"{path}: damaged or changed: its checksum does not match.")
    try:
        site = _unpacked(header, arrays)
    except Exception as error:
        raise InputError(f"{path}: the parts of the summary do not match.") from error
    _check_site(site, str(path))
    return site


def _unpacked(header: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> SiteSums:
    columns, channels, labels = (tuple(header[name]) for name in _TEXTS)
    if any(array.dtype.kind not in "iuf" for array in arrays.values()):
        raise TypeError("arrays of something else than numbers")
    halves = arrays.pop("sum_xx")
    sum_xx, first = [], 0
    for group in channel_columns(list(channels), len(columns), None)[1]:
        above, beside = np.triu_indices(group.size)
        last = first + above.size
        products = np.zeros((*arrays["subjects"].shape, group.size, group.size))
        products[..., above, beside] = halves[..., first:last]
        products[..., beside, above] = halves[..., first:last]
        sum_xx.append(products)
        first = last
    if first != halves.shape[-1]:
        raise ValueError("products of other columns")
    return SiteSums(
        columns,
        channels,
        labels,
        sum_xx=tuple(sum_xx),
        settings=dict(header["settings"]),
        site=str(header["site"]),
        suppressed={str(k): str(v) for k, v in header["suppressed"].items()},
        left_out={str(k): int(v) for k, v in header["left_out"].items()},
        acquisition=[dict(row) for row in header["acquisition"]],
        min_subjects=int(header["min_subjects"]),
        dependence=str(header["dependence"]),
        **arrays,
    )


def _check_site(site: SiteSums, name: str) -> None:
    """Refuse sums that no subjects can have, in one line that names the file."""
    for impossible, problem in _problems(site):
        if impossible:
            raise InputError(f"{name}: an impossible summary: {problem}.")


def _problems(site: SiteSums) -> Iterator[tuple[Any, str]]:
    """Conditions, of which later ones rely on earlier ones, and what is wrong if they hold."""
    folds, classes = site.subjects.shape if site.subjects.ndim == 2 else (0, 0)
    d, v, cells = len(site.columns), len(site.channels), (folds, classes)
    yield len(set(site.labels)) != len(site.labels), "a label occurs twice"
    yield len(set(site.columns)) != d, "a column occurs twice"
    yield len(site.column_channels) != d, "columns without a channel"
    yield folds not in (1, 2, 4) or classes != len(site.labels), "its shape is wrong"
    yield site.count.shape != (v, *cells), "its counts have another shape"
    yield site.sum_x.shape != (*cells, d), "its sums have another shape"
    yield site.sum_mean_squares.shape != (*cells, d), "its squares have another shape"
    yield {site.shift.shape, site.scale.shape} != {(d,)}, "its units have another shape"
    counts = (site.count, site.subjects)
    numbers = (*counts, site.sum_x, site.shift, site.scale, *site.sum_xx)
    yield not all(np.isfinite(part).all() for part in numbers), "numbers are not finite"
    yield np.isinf(site.sum_mean_squares).any(), "squares are not finite"
    yield (site.scale <= 0).any(), "a scale is not positive"
    whole = all(np.issubdtype(part.dtype, np.integer) for part in counts)
    yield not whole, "counts are not whole numbers"
    yield any((part < 0).any() for part in counts), "counts are negative"
    yield (site.count > site.subjects).any(), "more participants have a channel than there are"
    few = (site.count > 0) & (site.count < site.min_subjects)
    yield few.any(), f"a cell has fewer than {site.min_subjects} subjects"
    for at, name in enumerate(site.channels):
        n, own, P = site.count[at], site.channel_columns[at], site.sum_xx[at]
        S, Q = site.sum_x[..., own], site.sum_mean_squares[..., own]
        rounding = _ROUNDING * max(float(np.abs(P).max(initial=0.0)), 1e-300)
        symmetric = np.allclose(P, np.swapaxes(P, -1, -2), rtol=0, atol=rounding)
        yield not symmetric, f"the products of channel {name} are not symmetric"
        alone = any(np.nan_to_num(part[n == 0]).any() for part in (S, P, Q))
        yield alone, f"channel {name} has sums over no participant"
        most = np.diagonal(P, axis1=-2, axis2=-1) * (1 + _ROUNDING) + rounding
        with np.errstate(invalid="ignore"):  # NaN where Q is suppressed
            excess = (Q < 0).any() or (most < Q).any()
        yield excess, f"the squares of channel {name} exceed its products"
        spread = P - S[..., :, None] * S[..., None, :] / np.maximum(n, 1)[..., None, None]
        negative = np.linalg.eigvalsh(spread).min(initial=0.0) < -rounding
        yield negative, f"the products of channel {name} are not positive semidefinite"


def _by_class(numbers: NDArray[Any], labels: Sequence[Any]) -> str:
    """Return the number of subjects of each class, such as "30 HC, 28 MDD"."""
    return ", ".join(f"{n} {label}" for n, label in zip(numbers, labels, strict=True))


def _describe(site: SiteSums) -> str:
    """One table that says all of it."""
    lines = [
        f"Summary of {site.site or 'a site without a name'}: sums over "
        f"{_by_class(site.subjects.sum(axis=0), site.labels)}, in {site.n_folds} "
        f"fold{'s' * (site.n_folds > 1)}.",
        f"A cell is a class in a fold. No cell has fewer than {site.min_subjects} participants.",
        "Participants in each fold: "
        + "; ".join(_by_class(n, site.labels) for n in site.subjects),
        "For each channel and cell: the number of participants, the sum of their means, the sum "
        "of their mean products (each pair of features), the sum of their squared means.",
        "",
        f"{'channel':<12}{'features':>9}  {'participants who have it':<28}  left out",
    ]
    for name, own, count in zip(site.channels, site.channel_columns, site.count, strict=True):
        have, left = _by_class(count.sum(axis=0), site.labels), site.left_out.get(name, "")
        lines.append(f"{name:<12}{own.size:>9}  {have:<28}  {left}")
    lines += [f"{name:<12}{'':>9}  suppressed: {why}" for name, why in site.suppressed.items()]
    features = dict.fromkeys(column.rpartition(SEPARATOR)[2] for column in site.columns)
    lines += ["", "Features: " + ", ".join(features)]
    if site.dependence:
        lines.append(f"Columns that follow from other channels: {site.dependence}.")
    for row in site.acquisition:
        lines.append(f"Acquisition: {row['fact']} = {row['value']}: {row['count']} {row['label']}")
    if site.settings:
        settings = ", ".join(f"{key}={value!r}" for key, value in sorted(site.settings.items()))
        lines.append(f"Settings: {settings}")
    lines.append("Nothing else is in the file: no rows, no names, no dates, no epoch counts.")
    return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Study(Columns):
    """Sums over the subjects of one or several sites, V channels, D features and c classes."""

    columns: tuple[str, ...]  # the features
    column_channels: tuple[Any, ...]  # and their channels
    labels: tuple[Any, ...]  # of the classes
    sums: Sums
    have: Counts  # subjects who have each channel, (V, c)
    subjects: Counts  # all subjects, (c,)
    # For every class, by feature: the subjects who have it, the sum of their means and of the
    # squares of these, (c, 3, D)
    effects: Array
    scheme: str = "repeated folds"  # what judges channels: "folds", "sites" or, of rows, this
    sites: tuple[SiteSums, ...] = ()
    corrected: tuple[str, ...] = ()  # channels that the scheme cannot judge

    def missingness(self) -> pd.DataFrame:
        """Count who has each channel; see :func:`idfsmec.missing.missingness_association`."""
        seen = self.have > 0
        return missingness_from_counts(self.have, self.subjects, seen, self.labels, self.channels)

    def contributions(self) -> list[str]:
        """Return a line for each channel: the sites and the number of subjects that count."""
        lines = []
        for channel, have in zip(self.channels, self.have, strict=True):
            parts = [
                f"{site.site or f'site {number}'} "
                f"({_by_class(site.count[site.channels.index(channel)].sum(axis=0), site.labels)})"
                for number, site in enumerate(self.sites, 1)
                if channel in site.channels
            ]
            note = "; weighted by its corrected training loss" * (channel in self.corrected)
            total = _by_class(have, self.labels)
            lines.append(f"{channel}: {total}; {'; '.join(parts) or 'no site'}{note}")
        return lines


def study_of(
    summaries: Sequence[Summary], *, harmonize: bool = False, names: Sequence[str] | None = None
) -> Study:
    """Put summaries, called ``names`` in messages, together as if all rows were in one table."""
    if not summaries:
        raise InputError("There are no summaries to put together.")
    sites = [site for summary in summaries for site in summary.sites]
    if names is None or len(names) != len(sites):
        names = [site.site or f"summary {i}" for i, site in enumerate(sites, 1)]
    for site, name in zip(sites, names, strict=True):
        _check_site(site, name)
    _check_together(sites, names)
    labels = max((site.labels for site in sites), key=len)
    pairs = [zip(site.columns, site.column_channels, strict=True) for site in sites]
    channel_of = {column: channel for part in pairs for column, channel in part}
    rank = {channel: at for at, channel in enumerate(dict.fromkeys(channel_of.values()))}
    # The columns of a channel are side by side.
    columns = tuple(sorted(channel_of, key=lambda column: rank[channel_of[column]]))
    channels = tuple(channel_of[column] for column in columns)
    if not columns:
        raise InputError("All channels of all summaries are suppressed: nothing can be ranked.")
    counts = np.zeros((len(sites), len(labels)))
    for row, site in zip(counts, sites, strict=True):
        row[[labels.index(label) for label in site.labels]] = site.subjects.sum(axis=0)
    present = [label for label, n in zip(labels, counts.sum(axis=0), strict=True) if n]
    if len(present) < 2:
        raise InputError(
            "Selecting features needs at least 2 classes, but the summaries hold "
            + (f"only one class: {present[0]!r}." if present else "none.")
        )
    number = {column: j for j, column in enumerate(columns)}
    places = [np.array([number[c] for c in site.columns], dtype=np.intp) for site in sites]
    if harmonize:
        sites = _harmonized(sites, places, len(columns), counts)
    n_folds = min((site.n_folds for site in sites if site.channels), default=1)
    by_folds = n_folds > 1 or len(sites) == 1
    # Effects are in the units of the first site that has the column.
    units = np.stack([np.zeros(len(columns)), np.ones(len(columns))])
    for site, where in zip(reversed(sites), reversed(places), strict=True):
        units[:, where] = site.shift, site.scale
    parts = []
    for at, (site, where) in enumerate(zip(sites, places, strict=True)):
        folds = np.arange(site.n_folds) % n_folds if by_folds else np.full(site.n_folds, at)
        parts.append(_study_of_site(site, where, folds, columns, channels, units))
    study = pooled(parts, labels)
    return replace(
        study,
        scheme="folds" if by_folds else "sites",
        sites=tuple(sites),
        corrected=_not_judged(study.sums, study.channels),
    )


def pooled(parts: Sequence[Study], labels: tuple[Any, ...]) -> Study:
    """Add up studies with the same columns, among the classes of all."""
    have = np.zeros((len(parts[0].have), len(labels)), dtype=np.int64)
    subjects = np.zeros(len(labels), dtype=np.int64)
    effects = np.zeros((len(labels), 3, len(parts[0].columns)))
    sums = []
    for part in parts:
        own = np.array([labels.index(label) for label in part.labels], dtype=np.intp)
        sums.append(replace(part.sums, classes=own[part.sums.classes], n_classes=len(labels)))
        have[:, own] += part.have
        subjects[own] += part.subjects
        effects[own] += part.effects
    whole = (parts[0].columns, parts[0].column_channels, labels, join_sums(sums))
    return Study(*whole, have, subjects, effects)


def _check_together(sites: Sequence[SiteSums], names: Sequence[str]) -> None:
    """Refuse what does not belong together, and say why."""
    digests: dict[str, str] = {}
    features_of: dict[str, tuple[set[str], str]] = {}
    most = max(range(len(sites)), key=lambda at: len(sites[at].labels))
    for site, name in zip(sites, names, strict=True):
        if site.digest in digests:
            raise InputError(
                f"{name} is the same release as {digests[site.digest]}: it would count twice."
            )
        digests[site.digest] = name
        for key in sorted({*sites[0].settings, *site.settings}):
            first, other = (part.settings.get(key, "not known") for part in (sites[0], site))
            if not same_info({"": first}, {"": other}):
                raise InputError(
                    f"{name} and {names[0]} were computed with different settings: {key} is "
                    f"{other!r} in the one and {first!r} in the other."
                )
        if strange := [label for label in site.labels if label not in sites[most].labels]:
            raise InputError(
                f"{name} has the label {strange[0]!r}, and {names[most]} has "
                f"{', '.join(map(repr, sites[most].labels))}: give the labels of the whole "
                "study when summarising, or rename them."
            )
        for channel, own in zip(site.channels, site.channel_columns, strict=True):
            features = {site.columns[j].rpartition(SEPARATOR)[2] for j in own}
            before, where = features_of.setdefault(channel, (features, name))
            if differing := features ^ before:
                raise InputError(
                    f"{name} and {where} have different features of channel {channel}: "
                    f"{', '.join(sorted(differing)[:5])}."
                )


def _study_of_site(
    site: SiteSums,
    where: NDArray[np.intp],
    folds: NDArray[np.intp],
    columns: tuple[str, ...],
    column_channels: tuple[str, ...],
    units: Array,
) -> Study:
    """The sums of a site for all channels of the study, and its effects in given units."""
    shape, size, n_classes = site.subjects.shape, len(columns), len(site.labels)
    channels, groups = channel_columns(list(column_channels), size, None)
    count = np.zeros((len(groups), *shape), dtype=np.int64)
    sum_x, squares = np.zeros((*shape, size)), np.zeros((n_classes, size))
    shift, scale = np.zeros(size), np.ones(size)
    sum_x[..., where], shift[where], scale[where] = site.sum_x, site.shift, site.scale
    squares[:, where] = site.sum_mean_squares.sum(axis=0)
    blocks = []
    for v, (channel, group) in enumerate(zip(channels, groups, strict=True)):
        sum_xx = np.zeros((*shape, group.size, group.size))
        if channel in site.channels:
            at = site.channels.index(channel)
            # The columns of the channel at the site, in the order of the study.
            order = np.argsort(where[site.channel_columns[at]])
            count[v], sum_xx = site.count[at], site.sum_xx[at][..., order[:, None], order]
        sums = (count[v].astype(float), sum_x[..., group], sum_xx)
        by_cell = (part.reshape(1, -1, *part.shape[2:]) for part in sums)
        parts = (*by_cell, shift[None, group], scale[None, group])
        blocks.append(Block(np.array([v]), group[None], *parts))
    have = count.sum(axis=1)
    n, S = have[channel_codes(groups)].T, sum_x.sum(axis=0)
    rate, move = scale / units[1], (shift - units[0]) / units[1]
    moved = rate**2 * squares + 2 * rate * move * S + n * move**2
    moments = np.stack([n, rate * S + n * move, moved], axis=1)
    # Where the site suppressed the squares it does not count for the effect of a column.
    effects = np.where(np.isnan(squares)[:, None, :], 0.0, moments)
    total = site.subjects.ravel().astype(float)
    classes = np.tile(np.arange(n_classes), site.n_folds)
    repeat = np.repeat(folds, n_classes)[None]
    whole = Sums(join_blocks(blocks), classes, repeat, total, total, n_classes)
    subjects = site.subjects.sum(axis=0)
    return Study(columns, column_channels, site.labels, whole, have, subjects, effects)


def _not_judged(sums: Sums, names: Sequence[str]) -> tuple[str, ...]:
    """Channels that no split judges, although all classes have them."""
    of_class = (sums.classes == np.arange(sums.n_classes)[:, None]).astype(float)
    missing = []
    for block in sums.blocks:
        whole = (block.count @ of_class.T > 0).all(axis=1)
        judged = np.zeros((block.channels.size, sums.n_classes))
        for split in sums.splits():
            learned = (block.count @ (of_class * split.train).T > 0).all(axis=1)
            judged += learned[:, None] * (block.count @ (of_class * split.test).T)
        missing += [names[v] for v in block.channels[whole & ~(judged > 0).all(axis=1)]]
    return tuple(missing)


def _harmonized(
    sites: Sequence[SiteSums], places: Sequence[NDArray[np.intp]], n_columns: int, counts: Array
) -> list[SiteSums]:
    """Bring the sums of every site to one location and scale, as ComBat does."""
    if len(sites) < 2:
        raise InputError(
            "to harmonize sites there must be two summaries at least, one of each site",
            argument="harmonize",
        )
    if text := describe_confounding(site_confounding(counts)):
        warnings.warn(text, UserWarning, stacklevel=5)
    n, mean, squares = np.zeros((3, len(sites), n_columns))
    for row, (site, where) in enumerate(zip(sites, places, strict=True)):
        for count, own, P in zip(site.count, site.channel_columns, site.sum_xx, strict=True):
            total = max(float(count.sum()), 1.0)
            S = site.sum_x[..., own].sum(axis=(0, 1))
            deviations = np.maximum(np.diagonal(P.sum(axis=(0, 1))) - S**2 / total, 0.0)
            n[row, where[own]] = count.sum()
            mean[row, where[own]] = site.shift[own] + site.scale[own] * S / total
            squares[row, where[own]] = deviations * site.scale[own] ** 2
    slope, offset = site_maps(n, mean, squares, counts.sum(axis=1))
    return [
        replace(site, shift=rate[where] * site.shift + move[where], scale=rate[where] * site.scale)
        for site, where, rate, move in zip(sites, places, slope, offset, strict=True)
    ]
