"""Summary: the sums that a site releases, their file, and the checks when it is read.

For every channel, class and fold, over the N subjects who have the channel, a summary holds N, the
sum S of each subject's mean of x, the sum P of each subject's mean of x x' and, per feature, the
sum Q of the squares of each subject's mean. :mod:`idfsmec.solver.sums` has the formulas.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
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
from idfsmec.table.columns import channel_columns

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Raised when files of before can no longer be read. Versions 1 to 3 could reveal single subjects.
FORMAT_VERSION = 4
#: Cells of fewer subjects are not written, whatever a site asks for.
FEWEST_SUBJECTS = 5
#: How the files end.
ENDING = ".summary"
_MOST_BYTES = 2**31  # unpacked; no study has as many
_ARRAYS = ("subjects", "count", "shift", "scale", "sum_x", "sum_xx", "sum_mean_squares")
_TEXTS = ("columns", "column_channels", "labels")
# Negative eigenvalues and differences below this share of the largest number are rounding.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class SiteSums:
    """The sums of one site, by fold (F) and class (c).

    Attributes
    ----------
    columns, column_channels : tuple of str
        The features that are released, and their channels.
    labels : tuple
        Of the classes.
    subjects : ndarray of int, shape (F, c)
        All subjects, whichever channels they have.
    count : ndarray of int, shape (V, F, c)
        N: subjects who have each channel.
    sum_x : ndarray of shape (F, c, D)
        S, after ``shift`` and ``scale``.
    sum_xx : tuple of ndarray of shape (F, c, d, d)
        P of each channel, likewise.
    sum_mean_squares : ndarray of shape (F, c, D)
        Q, likewise; NaN where it is suppressed.
    shift, scale : ndarray of shape (D,)
        What was subtracted from each feature, the mean of the released subjects, and divided by.
    settings : mapping
        How the features were computed, with their units.
    site : str
        Name of the site, if it was given.
    suppressed : mapping of str to str
        Channels that are not released, and why.
    left_out : mapping of str to int
        Subjects left out of a channel because they hold most of a sum.
    acquisition : list of dict
        ``fact``, ``value``, ``label`` and ``count`` of subjects.
    min_subjects : int
        Fewest subjects of a cell.
    """

    columns: tuple[str, ...]
    column_channels: tuple[str, ...]
    labels: tuple[Any, ...]
    subjects: Counts = field(repr=False)
    count: Counts = field(repr=False)
    sum_x: Array = field(repr=False)
    sum_xx: tuple[Array, ...] = field(repr=False)
    sum_mean_squares: Array = field(repr=False)
    shift: Array = field(repr=False)
    scale: Array = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    site: str = ""
    suppressed: Mapping[str, str] = field(default_factory=dict, repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)
    acquisition: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    min_subjects: int = 1

    @cached_property
    def _channel_columns(self) -> tuple[NDArray, list[NDArray[np.intp]]]:
        return channel_columns(list(self.column_channels), len(self.columns), None)

    @property
    def channels(self) -> list[str]:
        """Names of the released channels, in order of first appearance."""
        return self._channel_columns[0].tolist() if self.columns else []

    @property
    def channel_columns(self) -> list[NDArray[np.intp]]:
        """The columns of each released channel."""
        return self._channel_columns[1] if self.columns else []

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
        totals: dict[Any, int] = {}
        for site in self.sites:
            for label, n in zip(site.labels, site.subjects.sum(axis=0), strict=True):
                totals[label] = totals.get(label, 0) + int(n)
        subjects = ", ".join(f"{label}: {n}" for label, n in totals.items())
        channels = {channel for site in self.sites for channel in site.channels}
        suppressed = sum(len(site.suppressed) for site in self.sites)
        return (
            f"Summary({len(self.sites)} site{'s' * (len(self.sites) > 1)}; subjects {subjects}; "
            f"{len(channels)} channels, {suppressed} suppressed)"
        )

    def __add__(self, other: Summary) -> Summary:
        known = {site.digest for site in self.sites}
        if any(site.digest in known for site in other.sites):
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
        checksum = np.frombuffer(_checksum(about, arrays).encode(), dtype=np.uint8)
        text = np.frombuffer(about.encode(), dtype=np.uint8)
        contents: dict[str, Any] = {"about": text, "checksum": checksum, **arrays}
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
    about = {
        "format": "idfsmec summary",
        "format_version": FORMAT_VERSION,
        "idfsmec": __version__,
        **{name: list(getattr(site, name)) for name in _TEXTS},
        "settings": dict(site.settings),
        "site": site.site,
        "suppressed": dict(site.suppressed),
        "left_out": dict(site.left_out),
        "acquisition": [dict(row) for row in site.acquisition],
        "min_subjects": site.min_subjects,
    }
    return json.dumps(about, sort_keys=True)


def _packed(site: SiteSums) -> dict[str, NDArray]:
    """The arrays as they are written: products of each pair of features once."""
    halves = [part[(..., *np.triu_indices(part.shape[-1]))] for part in site.sum_xx]
    empty = np.zeros((*site.subjects.shape, 0))
    arrays = {name: np.asarray(getattr(site, name)) for name in _ARRAYS if name != "sum_xx"}
    return arrays | {"sum_xx": np.concatenate([empty, *halves], axis=-1)}


def _checksum(about: str, arrays: Mapping[str, NDArray]) -> str:
    """SHA-256 of the description and of every array: name, shape, little-endian bytes."""
    found = hashlib.sha256(about.encode())
    for name in _ARRAYS:
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        found.update(f"{name}{array.shape}".encode() + little.tobytes())
    return found.hexdigest()


def _read(path: Path) -> SiteSums:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                raise ValueError("too large")
        with np.load(path, allow_pickle=False) as loaded:
            text = loaded["about"].tobytes().decode()
            checksum = loaded["checksum"].tobytes().decode()
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


def _unpacked(about: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> SiteSums:
    columns, channels, labels = (tuple(about[name]) for name in _TEXTS)
    groups = channel_columns(list(channels), len(columns), None)[1] if columns else []
    sum_xx, first = [], 0
    for own in groups:
        size = own.size
        last = first + size * (size + 1) // 2
        products = np.zeros((*arrays["subjects"].shape, size, size))
        above, beside = np.triu_indices(size)
        products[..., above, beside] = arrays["sum_xx"][..., first:last]
        products[..., beside, above] = arrays["sum_xx"][..., first:last]
        sum_xx.append(products)
        first = last
    if first != arrays["sum_xx"].shape[-1]:
        raise ValueError("products of other columns")
    rest = {name: arrays[name] for name in _ARRAYS if name != "sum_xx"}
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
        **rest,
    )


def check_site(site: SiteSums, name: str) -> None:
    """Refuse sums that no subjects can have, in one line that names the file."""
    for found, problem in _problems(site):
        if found:
            raise InputError(f"{name}: an impossible summary: {problem}.")


def _problems(site: SiteSums) -> list[tuple[bool, str]]:
    folds, classes = site.subjects.shape if site.subjects.ndim == 2 else (0, 0)
    d, v = len(site.columns), len(site.channels)
    problems = [
        (len(set(site.labels)) != len(site.labels), "a label occurs twice"),
        (len(set(site.columns)) != d, "a column occurs twice"),
        (len(site.column_channels) != d, "columns without a channel"),
        (folds not in (1, 2, 4) or classes != len(site.labels), "its shape is wrong"),
        (site.count.shape != (v, folds, classes), "its counts have another shape"),
        (site.sum_x.shape != (folds, classes, d), "its sums have another shape"),
        (site.sum_mean_squares.shape != (folds, classes, d), "its squares have another shape"),
        (site.shift.shape != (d,) or site.scale.shape != (d,), "its units have another shape"),
    ]
    if any(found for found, _ in problems):
        return problems
    numbers = [site.count, site.subjects, site.sum_x, site.shift, site.scale, *site.sum_xx]
    problems += [
        (not all(np.isfinite(part).all() for part in numbers), "numbers are not finite"),
        (bool(np.isinf(site.sum_mean_squares).any()), "squares are not finite"),
        (bool((site.scale <= 0).any()), "a scale is not positive"),
        (
            not all(np.issubdtype(part.dtype, np.integer) for part in (site.count, site.subjects)),
            "counts are not whole numbers",
        ),
        (bool((site.count < 0).any() or (site.subjects < 0).any()), "counts are negative"),
        (bool((site.count > site.subjects).any()), "more subjects have a channel than there are"),
        (
            bool(((site.count > 0) & (site.count < site.min_subjects)).any()),
            f"a cell has fewer than {site.min_subjects} subjects",
        ),
    ]
    if any(found for found, _ in problems):
        return problems
    return problems + [_channel_problem(site, at) for at in range(v)]


def _channel_problem(site: SiteSums, at: int) -> tuple[bool, str]:
    """Whether the sums of a channel contradict each other."""
    name, own = site.channels[at], site.channel_columns[at]
    n, P = site.count[at].astype(float), site.sum_xx[at]
    S, Q = site.sum_x[..., own], site.sum_mean_squares[..., own]
    diagonal = np.diagonal(P, axis1=-2, axis2=-1)
    size = max(float(np.abs(P).max(initial=0.0)), 1e-300)
    if not np.allclose(P, np.swapaxes(P, -1, -2), rtol=0, atol=_ROUNDING * size):
        return True, f"the products of channel {name} are not symmetric"
    empty = n == 0
    if any(np.nan_to_num(part[empty]).any() for part in (S, P, Q)):
        return True, f"channel {name} has sums over no subject"
    with np.errstate(invalid="ignore"):
        if (Q < 0).any() or (diagonal * (1 + _ROUNDING) + _ROUNDING * size < Q).any():
            return True, f"the squares of channel {name} exceed its products"
    spread = P - S[..., :, None] * S[..., None, :] / np.maximum(n, 1)[..., None, None]
    if np.linalg.eigvalsh(spread).min(initial=0.0) < -_ROUNDING * size:
        return True, f"the products of channel {name} are not positive semidefinite"
    return False, ""


def _describe(site: SiteSums) -> str:
    """One table that says all of it."""
    labels = [str(label) for label in site.labels]
    totals = site.subjects.sum(axis=0)
    lines = [
        f"Summary of {site.site or 'a site without a name'}: sums over "
        + ", ".join(f"{n} {label}" for n, label in zip(totals, labels, strict=True))
        + f", in {site.n_folds} fold{'s' * (site.n_folds > 1)}.",
        f"A cell is a class in a fold. No cell has fewer than {site.min_subjects} subjects.",
        "Subjects in each fold: "
        + "; ".join(
            ", ".join(f"{n} {label}" for n, label in zip(row, labels, strict=True))
            for row in site.subjects
        ),
        "For each channel and cell: the number of subjects, the sum of their means, the sum of "
        "their mean products (each pair of features), the sum of their squared means.",
        "",
        f"{'channel':<12}{'features':>9}  {'subjects who have it':<28}  left out",
    ]
    for at, name in enumerate(site.channels):
        have = ", ".join(
            f"{n} {label}" for n, label in zip(site.count[at].sum(axis=0), labels, strict=True)
        )
        left = site.left_out.get(name, 0)
        lines.append(f"{name:<12}{site.channel_columns[at].size:>9}  {have:<28}  {left or ''}")
    lines += [f"{name:<12}{'':>9}  suppressed: {why}" for name, why in site.suppressed.items()]
    features = list(dict.fromkeys(column.rpartition("__")[2] for column in site.columns))
    lines += ["", "Features: " + ", ".join(features)]
    for row in site.acquisition:
        lines.append(f"Acquisition: {row['fact']} = {row['value']}: {row['count']} {row['label']}")
    if site.settings:
        settings = ", ".join(f"{key}={value!r}" for key, value in sorted(site.settings.items()))
        lines.append(f"Settings: {settings}")
    lines.append("Nothing else is in the file: no rows, no names, no dates, no epoch counts.")
    return "\n".join(lines)
