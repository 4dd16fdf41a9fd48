"""Study: the sums of several sites put together, and what judges their channels.

A channel counts in all sites that released it. Its held-out loss comes from folds, if every site
has at least two: the number of folds is the smallest of any site, and folds of the same number
are held out together. Otherwise one site at a time is left out. One scheme holds for a study. A
channel that the scheme cannot judge, because a single site has it, gets the loss on the training
subjects times ``(n + k) / (n - k)`` for k parameters and n subjects (Akaike's final prediction
error; on one public table and its half 1.06 and 1.04 times the held-out loss), and is named in
:attr:`Study.corrected`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.federated.summary import SiteSums, Summary, by_class, check_site
from idfsmec.metrics import describe_confounding, site_confounding
from idfsmec.missing.association import missingness_from_counts
from idfsmec.solver.scaling import site_maps
from idfsmec.solver.sums import Block, Sums, join_blocks, join_sums
from idfsmec.table.checks import same_info
from idfsmec.table.columns import SEPARATOR, channel_columns

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Study:
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
        lines = []
        for channel, have in zip(self.channels, self.have, strict=True):
            parts = [
                f"{site.site or f'site {number}'} "
                f"({by_class(site.count[site.channels.index(channel)].sum(axis=0), site.labels)})"
                for number, site in enumerate(self.sites, 1)
                if channel in site.channels
            ]
            note = "; judged by its corrected training loss" * (channel in self.corrected)
            total = by_class(have, self.labels)
            lines.append(f"{channel}: {total}; {'; '.join(parts) or 'no site'}{note}")
        return lines


def study_of(
    summaries: Sequence[Summary], *, harmonize: bool = False, names: Sequence[str] | None = None
) -> Study:
    """Put summaries together, as if the subjects of all sites had been in one table.

    With ``harmonize`` sites are brought to one location and scale first, from their sums.
    ``names`` are what messages call the summaries, such as their files.
    """
    if not summaries:
        raise InputError("There are no summaries to put together.")
    sites = [site for summary in summaries for site in summary.sites]
    if names is None or len(names) != len(sites):
        names = [site.site or f"summary {i}" for i, site in enumerate(sites, 1)]
    for site, name in zip(sites, names, strict=True):
        check_site(site, name)
    _check_together(sites, names)
    labels = max((site.labels for site in sites), key=len)
    columns, channels = _all_columns(sites)
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


def _all_columns(sites: Sequence[SiteSums]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of all sites, those of a channel side by side."""
    pairs = [zip(site.columns, site.column_channels, strict=True) for site in sites]
    channel_of = {column: channel for part in pairs for column, channel in part}
    first = {channel: at for at, channel in enumerate(dict.fromkeys(channel_of.values()))}
    columns = tuple(sorted(channel_of, key=lambda column: first[channel_of[column]]))
    return columns, tuple(channel_of[column] for column in columns)


def _study_of_site(
    site: SiteSums,
    where: NDArray[np.intp],
    folds: NDArray[np.intp],
    columns: tuple[str, ...],
    column_channels: tuple[str, ...],
    units: Array,
) -> Study:
    """The sums of a site for all channels of the study, and its effects in given units.

    Where the site suppressed the squares it does not count for the effect of a column.
    """
    cells, n_classes, blocks = site.subjects.size, len(site.labels), []
    channels, groups = channel_columns(list(column_channels), len(columns), None)
    have = np.zeros((len(groups), n_classes), dtype=np.int64)
    n = np.zeros((n_classes, len(site.columns)))
    for v, (channel, group) in enumerate(zip(channels, groups, strict=True)):
        d = group.size
        count, sum_x, sum_xx = np.zeros(cells), np.zeros((cells, d)), np.zeros((cells, d, d))
        shift, scale = np.zeros(d), np.ones(d)
        if channel in site.channels:
            at = site.channels.index(channel)
            # The columns of the channel at the site, in the order of the study.
            order = np.argsort(where[site.channel_columns[at]])
            own = site.channel_columns[at][order]
            count, sum_x = site.count[at].ravel().astype(float), site.sum_x[..., own]
            sum_xx = site.sum_xx[at][..., order[:, None], order]
            shift, scale = site.shift[own], site.scale[own]
            have[v] = site.count[at].sum(axis=0)
            n[:, own] = have[v][:, None]
        sums = (count, sum_x.reshape(cells, d), sum_xx.reshape(cells, d, d))
        parts = (part[None] for part in (*sums, shift, scale))
        blocks.append(Block(np.array([v]), group[None], *parts))
    rate, move = site.scale / units[1][where], (site.shift - units[0][where]) / units[1][where]
    S, Q = site.sum_x.sum(axis=0), site.sum_mean_squares.sum(axis=0)
    squares = rate**2 * Q + 2 * rate * move * S + n * move**2
    moments = np.stack([n, rate * S + n * move, squares], axis=1)
    effects = np.zeros((n_classes, 3, len(columns)))
    effects[..., where] = np.where(np.isnan(Q)[:, None, :], 0.0, moments)
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
            about = np.maximum(np.diagonal(P.sum(axis=(0, 1))) - S**2 / total, 0.0)
            n[row, where[own]] = count.sum()
            mean[row, where[own]] = site.shift[own] + site.scale[own] * S / total
            squares[row, where[own]] = about * site.scale[own] ** 2
    slope, offset = site_maps(n, mean, squares, counts.sum(axis=1))
    return [
        replace(site, shift=rate[where] * site.shift + move[where], scale=rate[where] * site.scale)
        for site, where, rate, move in zip(sites, places, slope, offset, strict=True)
    ]
