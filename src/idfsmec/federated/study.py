"""Study: the sums of several sites put together, and what judges their channels.

A channel counts in all sites that released it. Its held-out loss comes from folds, if every site
has at least two: the number of folds is the smallest of any site, and folds of the same number
are held out together. Otherwise one site at a time is left out. One scheme holds for a study. A
channel that the scheme cannot judge, because a single site has it, gets the loss on the training
subjects times ``(n + k) / (n - k)`` for k parameters and n subjects (Akaike's final prediction
error; on one public table and its half
1.06 and 1.04 times the held-out loss), and is named in
:attr:`Study.corrected`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.federated.summary import SiteSums, Summary, check_site
from idfsmec.metrics import describe_confounding, site_confounding
from idfsmec.missing.association import missingness_from_counts
from idfsmec.solver import Split, Sums
from idfsmec.solver.sites import site_maps
from idfsmec.solver.sums import Block, join_sums
from idfsmec.table.checks import same_info
from idfsmec.table.columns import SEPARATOR, channel_columns

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
#: Subjects who have each feature, the sum of their means and of the squares of these, (D,) each.
EffectSums = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Study:
    """Sums over the subjects of one or several sites, ready to be ranked.

    Attributes
    ----------
    columns, column_channels : tuple of str
        The features and their channels.
    labels : tuple
        Of the classes.
    sums : Sums
    have : ndarray of int, shape (n_channels, n_classes)
        Subjects who have each channel.
    subjects : ndarray of int, shape (n_classes,)
    effects : list of tuple
        For every class what :func:`~idfsmec.selection.effects.effects_of_sums` takes.
    scheme : str
        What judges channels: ``"folds"``, ``"sites"`` or, of rows, ``"repeated folds"``.
    splits : list of Split, optional
        The cells that it holds out; by default the folds of the sums.
    sites : tuple of SiteSums
    corrected : tuple of str
        Channels that the scheme cannot judge.
    """

    columns: tuple[str, ...]
    column_channels: tuple[Any, ...]
    labels: tuple[Any, ...]
    sums: Sums = field(repr=False)
    have: Counts = field(repr=False)
    subjects: Counts = field(repr=False)
    effects: list[EffectSums] = field(repr=False)
    scheme: str = "repeated folds"
    splits: list[Split] | None = field(default=None, repr=False)
    sites: tuple[SiteSums, ...] = field(default=(), repr=False)
    corrected: tuple[str, ...] = ()

    @property
    def channels(self) -> list[Any]:
        """Names of the channels, in order of first appearance."""
        return list(dict.fromkeys(self.column_channels))

    @property
    def channel_columns(self) -> list[NDArray[np.intp]]:
        """The columns of each channel."""
        return channel_columns(list(self.column_channels), len(self.columns), None)[1]

    def missingness(self) -> pd.DataFrame:
        """Count who has each channel; see :func:`idfsmec.missing.missingness_association`."""
        seen = self.have > 0
        return missingness_from_counts(self.have, self.subjects, seen, self.labels, self.channels)

    def contributions(self) -> list[str]:
        """Say for each channel which sites, and how many subjects, count: one line each."""

        def count(numbers: Sequence[int], labels: Sequence[Any]) -> str:
            return ", ".join(f"{n} {label}" for n, label in zip(numbers, labels, strict=True))

        lines = []
        for channel, have in zip(self.channels, self.have, strict=True):
            parts = [
                f"{site.site or f'site {number}'} "
                f"({count(site.count[site.channels.index(channel)].sum(axis=0), site.labels)})"
                for number, site in enumerate(self.sites, 1)
                if channel in site.channels
            ]
            note = "; judged by its corrected training loss" * (channel in self.corrected)
            total = count(have, self.labels)
            lines.append(f"{channel}: {total}; {'; '.join(parts) or 'no site'}{note}")
        return lines


def study_of(
    summaries: Sequence[Summary], *, harmonize: bool = False, names: Sequence[str] | None = None
) -> Study:
    """Put summaries together, as if the subjects of all sites had been in one table.

    Parameters
    ----------
    summaries : sequence of Summary
    harmonize : bool, default=False
        Bring sites to one location and scale first, from their sums.
    names : sequence of str, optional
        What messages call the summaries, such as their files.

    Raises
    ------
    InputError
        They differ in feature settings, in the features of a channel or in labels, or one is
        there twice.
    """
    if not summaries:
        raise InputError("There are no summaries to put together.")
    sites = [site for summary in summaries for site in summary.sites]
    named = list(names or [])
    if len(named) != len(sites):
        named = [site.site or f"summary {i}" for i, site in enumerate(sites, 1)]
    for site, name in zip(sites, named, strict=True):
        check_site(site, name)
    _check_together(sites, named)
    labels = max((site.labels for site in sites), key=len)
    columns, channels = _all_columns(sites)
    if not columns:
        raise InputError("All channels of all summaries are suppressed: nothing can be ranked.")
    counts = np.stack([_among_classes(site.subjects, site, labels) for site in sites])
    subjects = counts.sum(axis=0)
    if (present := (subjects > 0).sum()) < 2:
        only = [label for label, n in zip(labels, subjects, strict=True) if n]
        raise InputError(
            "Selecting features needs at least 2 classes, but the summaries hold "
            + (f"only one class: {only[0]!r}." if present else "none.")
        )
    if harmonize:
        sites = _harmonized(sites, columns, counts, labels)
    fewest = min((site.n_folds for site in sites if site.channels), default=1)
    by_folds = fewest > 1 or len(sites) == 1
    n_folds = fewest if by_folds else 1
    parts = [_site_sums(site, columns, channels, labels, n_folds) for site in sites]
    sums = join_sums(parts)
    if not by_folds:
        cells = np.concatenate([np.full(p.classes.size, i) for i, p in enumerate(parts)])
        sums = replace(sums, folds=cells[None])
    names = list(dict.fromkeys(channels))
    have = np.zeros((len(names), len(labels)), dtype=np.int64)
    for site in sites:
        for channel, count in zip(site.channels, site.count, strict=True):
            have[names.index(channel)] += _among_classes(count, site, labels).astype(int)
    return Study(
        columns,
        channels,
        tuple(labels),
        sums,
        have,
        subjects.astype(np.int64),
        _effect_sums(sites, columns, labels),
        "folds" if by_folds else "sites",
        sums.splits(),
        tuple(sites),
        _not_judged(sums, names),
    )


def _check_together(sites: Sequence[SiteSums], names: Sequence[str]) -> None:
    """Refuse what does not belong together, and say why."""
    digests: dict[str, str] = {}
    most = max(range(len(sites)), key=lambda at: len(sites[at].labels))
    for site, name in zip(sites, names, strict=True):
        if site.digest in digests:
            raise InputError(
                f"{name} is the same release as {digests[site.digest]}: it would count twice."
            )
        digests[site.digest] = name
        for key in sorted({*sites[0].settings, *site.settings}):
            values = [one.settings.get(key, "not known") for one in (sites[0], site)]
            if not same_info({"": values[0]}, {"": values[1]}):
                raise InputError(
                    f"{name} and {names[0]} were computed with different settings: {key} is "
                    f"{values[1]!r} in the one and {values[0]!r} in the other."
                )
        if strange := [label for label in site.labels if label not in sites[most].labels]:
            raise InputError(
                f"{name} has the label {strange[0]!r}, and {names[most]} has "
                f"{', '.join(map(repr, sites[most].labels))}: give the labels of the whole "
                "study when summarising, or rename them."
            )
    known: dict[str, tuple[set[str], str]] = {}
    for site, name in zip(sites, names, strict=True):
        for channel, own in zip(site.channels, site.channel_columns, strict=True):
            features = {site.columns[j].rpartition(SEPARATOR)[2] for j in own}
            first, where = known.setdefault(channel, (features, name))
            if differing := features ^ first:
                raise InputError(
                    f"{name} and {where} have different features of channel {channel}: "
                    f"{', '.join(sorted(differing)[:5])}."
                )


def _all_columns(sites: Sequence[SiteSums]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of all sites, those of a channel side by side."""
    channel_of: dict[str, str] = {}
    for site in sites:
        for column, channel in zip(site.columns, site.column_channels, strict=True):
            channel_of.setdefault(column, channel)
    first = {channel: at for at, channel in enumerate(dict.fromkeys(channel_of.values()))}
    columns = tuple(sorted(channel_of, key=lambda column: first[channel_of[column]]))
    return columns, tuple(channel_of[column] for column in columns)


def _among_classes(counts: NDArray, site: SiteSums, labels: Sequence[Any]) -> NDArray:
    """Sum counts (F, c) over folds, among the classes of the study."""
    wide = np.zeros(len(labels))
    wide[[labels.index(label) for label in site.labels]] = counts.sum(axis=0)
    return wide


def _site_sums(
    site: SiteSums,
    columns: Sequence[str],
    channels: Sequence[str],
    labels: Sequence[Any],
    n_folds: int,
) -> Sums:
    """The sums of a site among the channels and classes of the study, in so many folds."""
    classes = np.array([labels.index(label) for label in site.labels])
    # Folds f and f + n_folds go together.
    merge = (np.arange(site.n_folds) % n_folds == np.arange(n_folds)[:, None]).astype(float)

    def cells(values: Array) -> Array:
        """Values (F, c, ...) as cells (n_folds * n_classes, ...)."""
        wide = np.zeros((n_folds, len(labels), *values.shape[2:]))
        wide[:, classes] = np.tensordot(merge, values, axes=1)
        return wide.reshape(-1, *values.shape[2:])

    names, groups = channel_columns(list(channels), len(columns), None)
    sizes = np.array([group.size for group in groups])
    blocks = []
    for d in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == d)
        b, j = which.size, n_folds * len(labels)
        count, sum_x, sum_xx = np.zeros((b, j)), np.zeros((b, j, d)), np.zeros((b, j, d, d))
        shift, scale = np.zeros((b, d)), np.ones((b, d))
        for row, v in enumerate(which):
            if names[v] not in site.channels:
                continue
            at = site.channels.index(names[v])
            mine = np.array([site.columns.index(columns[c]) for c in groups[v]])
            inside = np.searchsorted(site.channel_columns[at], mine)
            count[row] = cells(site.count[at].astype(float))
            sum_x[row] = cells(site.sum_x[..., mine])
            sum_xx[row] = cells(site.sum_xx[at][..., inside[:, None], inside])
            shift[row], scale[row] = site.shift[mine], site.scale[mine]
        where = np.stack([groups[v] for v in which])
        blocks.append(Block(which, where, count, sum_x, sum_xx, shift, scale))
    total = cells(site.subjects.astype(float))
    return Sums(
        tuple(blocks),
        np.tile(np.arange(len(labels)), n_folds),
        np.repeat(np.arange(n_folds), len(labels))[None],
        total,
        total,
        len(labels),
    )


def _places(site: SiteSums, columns: Sequence[str]) -> NDArray[np.intp]:
    """Numbers of a site's columns among those of the study."""
    number = {column: j for j, column in enumerate(columns)}
    return np.array([number[column] for column in site.columns], dtype=np.intp)


def _effect_sums(
    sites: Sequence[SiteSums], columns: Sequence[str], labels: Sequence[Any]
) -> list[EffectSums]:
    """Counts, sums and squares of subjects' means by class, in common units.

    The common units are those of the first site that has the column. Where a site suppressed the
    squares it does not count for the effect of that column.
    """
    d = len(columns)
    shift, scale, known = np.zeros(d), np.ones(d), np.zeros(d, dtype=bool)
    parts = np.zeros((len(labels), 3, d))
    for site in sites:
        where = _places(site, columns)
        first = ~known[where]
        shift[where[first]], scale[where[first]] = site.shift[first], site.scale[first]
        known[where] = True
        rate = site.scale / scale[where]
        move = (site.shift - shift[where]) / scale[where]
        S, Q = site.sum_x.sum(axis=0), site.sum_mean_squares.sum(axis=0)
        n = np.zeros(S.shape)
        for count, own in zip(site.count, site.channel_columns, strict=True):
            n[:, own] = count.sum(axis=0)[:, None]
        squares = rate**2 * Q + 2 * rate * move * S + n * move**2
        released = ~np.isnan(Q)
        for k, label in enumerate(site.labels):
            moments = np.stack([n[k], rate * S[k] + n[k] * move, squares[k]])
            parts[labels.index(label)][:, where] += np.where(released[k], moments, 0.0)
    return [(row[0], row[1], row[2]) for row in parts]


def _not_judged(sums: Sums, names: Sequence[str]) -> tuple[str, ...]:
    """Channels that no split judges, although all classes have them."""
    splits = sums.splits()
    by_class = (sums.classes == np.arange(sums.n_classes)[:, None]).astype(float)
    found = []
    for block in sums.blocks:
        whole = (block.count @ by_class.T > 0).all(axis=1)
        judged = np.zeros((block.channels.size, sums.n_classes))
        for split in splits:
            learned = (block.count @ (by_class * split.train).T > 0).all(axis=1)
            judged += learned[:, None] * (block.count @ (by_class * split.test).T)
        missing = whole & ~(judged > 0).all(axis=1)
        found += [names[v] for v in block.channels[missing]]
    return tuple(found)


def _harmonized(
    sites: Sequence[SiteSums], columns: Sequence[str], counts: Array, labels: Sequence[Any]
) -> list[SiteSums]:
    """Bring the sums of every site to one location and scale, as ComBat does."""
    if len(sites) < 2:
        raise InputError(
            "to harmonize sites there must be two summaries at least, one of each site",
            argument="harmonize",
        )
    if text := describe_confounding(site_confounding(counts)):
        warnings.warn(text, UserWarning, stacklevel=5)
    n, mean, squares = np.zeros((3, len(sites), len(columns)))
    wheres = [_places(site, columns) for site in sites]
    for row, (site, where) in enumerate(zip(sites, wheres, strict=True)):
        for at, own in enumerate(site.channel_columns):
            total = float(site.count[at].sum())
            S = site.sum_x[..., own].sum(axis=(0, 1))
            P = np.diagonal(site.sum_xx[at].sum(axis=(0, 1)))
            n[row, where[own]] = total
            mean[row, where[own]] = site.shift[own] + site.scale[own] * S / max(total, 1.0)
            about = np.maximum(P - S**2 / max(total, 1.0), 0.0)
            squares[row, where[own]] = about * site.scale[own] ** 2
    slope, offset = site_maps(n, mean, squares, counts.sum(axis=1))
    return [
        replace(
            site,
            shift=slope[row, where] * site.shift + offset[row, where],
            scale=slope[row, where] * site.scale,
        )
        for row, (site, where) in enumerate(zip(sites, wheres, strict=True))
    ]
