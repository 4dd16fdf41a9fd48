"""Summary: the sums that a site releases, their file, and the checks when it is read.

For every channel, class and fold, over the N subjects who have the channel, a summary holds N, the
sum S of each subject's mean of x, the sum P of each subject's mean of x x' and, per feature, the
sum Q of the squares of each subject's mean. :mod:`idfsmec.solver.sums` has the formulas.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._files import replacing
from idfsmec._version import __version__
from idfsmec.errors import InputError
from idfsmec.table.columns import SEPARATOR, channel_columns

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Raised when files of before can no longer be read. Versions 1 to 3 could reveal single subjects.
FORMAT_VERSION = 4
#: Cells of fewer subjects are not written, whatever a site asks for.
FEWEST_SUBJECTS = 5
_MOST_BYTES = 2**31  # unpacked; no study has as many
_ARRAYS = ("subjects", "count", "shift", "scale", "sum_x", "sum_xx", "sum_mean_squares")
_TEXTS = ("columns", "column_channels", "labels")
_FACTS = ("settings", "site", "suppressed", "left_out", "acquisition", "min_subjects")
# Negative eigenvalues and differences below this share of the largest number are rounding.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class SiteSums:
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

    @property
    def channels(self) -> list[str]:
        """Names of the released channels, in order of first appearance."""
        return list(dict.fromkeys(self.column_channels))

    @cached_property
    def channel_columns(self) -> list[NDArray[np.intp]]:
        """The columns of each released channel."""
        return channel_columns(list(self.column_channels), len(self.columns), None)[1]

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return self.subjects.shape[0]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return _checksum(_about(self), _packed(self))


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """What one or several sites release in place of their rows.

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
    Summary(1 site; subjects HC: 30, MDD: 30; 2 channels, 0 suppressed)
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
            f"Summary({len(self.sites)} site{'s' * (len(self.sites) > 1)}; subjects {subjects}; "
            f"{len(channels)} channels, {suppressed} suppressed)"
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
                f"min_subjects={site.min_subjects}: sums over so few subjects are not written; "
                f"give at least {FEWEST_SUBJECTS}."
            )
        arrays, about = _packed(site), _about(site)
        texts = {"about": about, "checksum": _checksum(about, arrays)}
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
        """Say in one table all that is in it."""
        return "\n\n".join(_describe(site) for site in self.sites)


def _about(site: SiteSums) -> str:
    head = {"format": "idfsmec summary", "format_version": FORMAT_VERSION, "idfsmec": __version__}
    facts = {name: getattr(site, name) for name in (*_TEXTS, *_FACTS)}
    return json.dumps(head | facts, sort_keys=True)


def _packed(site: SiteSums) -> dict[str, NDArray]:
    """The arrays as they are written: products of each pair of features once."""
    halves = [part[(..., *np.triu_indices(part.shape[-1]))] for part in site.sum_xx]
    empty = np.zeros((*site.subjects.shape, 0))
    arrays = {name: np.asarray(getattr(site, name)) for name in _ARRAYS if name != "sum_xx"}
    return arrays | {"sum_xx": np.concatenate([empty, *halves], axis=-1)}


def _checksum(about: str, arrays: Mapping[str, NDArray]) -> str:
    """SHA-256 of the description and of every array: name, shape, little-endian bytes."""
    digest = hashlib.sha256(about.encode())
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
            about = json.loads(text)
            version = int(about["format_version"])
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
        raise InputError(f"{path}: damaged or changed: its checksum does not fit.")
    try:
        site = _unpacked(about, arrays)
    except Exception as error:
        raise InputError(f"{path}: a summary whose parts do not fit together.") from error
    check_site(site, str(path))
    return site


def _unpacked(about: Mapping[str, Any], arrays: dict[str, NDArray]) -> SiteSums:
    columns, channels, labels = (tuple(about[name]) for name in _TEXTS)
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
        settings=dict(about["settings"]),
        site=str(about["site"]),
        suppressed={str(k): str(v) for k, v in about["suppressed"].items()},
        left_out={str(k): int(v) for k, v in about["left_out"].items()},
        acquisition=[dict(row) for row in about["acquisition"]],
        min_subjects=int(about["min_subjects"]),
        **arrays,
    )


def check_site(site: SiteSums, name: str) -> None:
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
    yield (site.count > site.subjects).any(), "more subjects have a channel than there are"
    few = (site.count > 0) & (site.count < site.min_subjects)
    yield few.any(), f"a cell has fewer than {site.min_subjects} subjects"
    for at, name in enumerate(site.channels):
        n, own, P = site.count[at], site.channel_columns[at], site.sum_xx[at]
        S, Q = site.sum_x[..., own], site.sum_mean_squares[..., own]
        rounding = _ROUNDING * max(float(np.abs(P).max(initial=0.0)), 1e-300)
        symmetric = np.allclose(P, np.swapaxes(P, -1, -2), rtol=0, atol=rounding)
        yield not symmetric, f"the products of channel {name} are not symmetric"
        alone = any(np.nan_to_num(part[n == 0]).any() for part in (S, P, Q))
        yield alone, f"channel {name} has sums over no subject"
        most = np.diagonal(P, axis1=-2, axis2=-1) * (1 + _ROUNDING) + rounding
        with np.errstate(invalid="ignore"):  # NaN where Q is suppressed
            excess = (Q < 0).any() or (most < Q).any()
        yield excess, f"the squares of channel {name} exceed its products"
        spread = P - S[..., :, None] * S[..., None, :] / np.maximum(n, 1)[..., None, None]
        negative = np.linalg.eigvalsh(spread).min(initial=0.0) < -rounding
        yield negative, f"the products of channel {name} are not positive semidefinite"


def by_class(numbers: NDArray, labels: Sequence[Any]) -> str:
    """Say how many subjects each class has, such as "30 HC, 28 MDD"."""
    return ", ".join(f"{n} {label}" for n, label in zip(numbers, labels, strict=True))


def _describe(site: SiteSums) -> str:
    """One table that says all of it."""
    lines = [
        f"Summary of {site.site or 'a site without a name'}: sums over "
        f"{by_class(site.subjects.sum(axis=0), site.labels)}, in {site.n_folds} "
        f"fold{'s' * (site.n_folds > 1)}.",
        f"A cell is a class in a fold. No cell has fewer than {site.min_subjects} subjects.",
        "Subjects in each fold: " + "; ".join(by_class(row, site.labels) for row in site.subjects),
        "For each channel and cell: the number of subjects, the sum of their means, the sum of "
        "their mean products (each pair of features), the sum of their squared means.",
        "",
        f"{'channel':<12}{'features':>9}  {'subjects who have it':<28}  left out",
    ]
    for name, own, count in zip(site.channels, site.channel_columns, site.count, strict=True):
        have, left = by_class(count.sum(axis=0), site.labels), site.left_out.get(name, "")
        lines.append(f"{name:<12}{own.size:>9}  {have:<28}  {left}")
    lines += [f"{name:<12}{'':>9}  suppressed: {why}" for name, why in site.suppressed.items()]
    features = dict.fromkeys(column.rpartition(SEPARATOR)[2] for column in site.columns)
    lines += ["", "Features: " + ", ".join(features)]
    for row in site.acquisition:
        lines.append(f"Acquisition: {row['fact']} = {row['value']}: {row['count']} {row['label']}")
    if site.settings:
        settings = ", ".join(f"{key}={value!r}" for key, value in sorted(site.settings.items()))
        lines.append(f"Settings: {settings}")
    lines.append("Nothing else is in the file: no rows, no names, no dates, no epoch counts.")
    return "\n".join(lines)
