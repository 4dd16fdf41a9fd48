"""Summaries of hospitals brought to one location and scale, without any of their rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from idfsmec._entanglement import entanglement_of_counts, say_entanglement
from idfsmec.errors import InputError
from idfsmec.solver.sites import site_maps
from idfsmec.summaries.summary import Summary, combine

Array = NDArray[np.float64]


def harmonize_summaries(
    summaries: Sequence[Summary], names: Sequence[str] | None = None
) -> list[Summary]:
    """Bring the sums of every hospital to one location and scale, as ComBat does.

    Location and scale of a site follow from its counts, sums and squares, and what is taken out of
    its samples is a shift and a factor for each feature: of sums, other units. The outcome is that
    of :class:`idfsmec.prediction.SiteHarmonizer` on the rows, if channels are missing as a whole.

    Parameters
    ----------
    summaries : sequence of Summary
        Each of one hospital; two at least.
    names : sequence of str, optional
        What messages call them.

    Warns
    -----
    UserWarning
        Site and label are entangled: the difference of the classes is taken out with the sites'.
    """
    if len(summaries) < 2:
        raise InputError(
            "to harmonize hospitals there must be two summaries at least, one of each hospital",
            argument="harmonize",
        )
    whole = combine(list(summaries), names)
    among = whole.columns, whole.column_channels, whole.labels
    own = [one.among(*among) for one in summaries]
    by_class = np.stack([one.class_total[0].sum(axis=0) for one in own])
    if said := say_entanglement(entanglement_of_counts(by_class)):
        warnings.warn(said, UserWarning, stacklevel=4)
    count, mean, squares = (np.stack(part) for part in zip(*map(_moments, own), strict=True))
    slope, offset = site_maps(count, mean, squares, by_class.sum(axis=1))
    return [_mapped(one, *maps) for one, *maps in zip(own, slope, offset, strict=True)]


def _moments(summary: Summary) -> tuple[Array, Array, Array]:
    """Samples that have each feature, their mean, and their squares about it."""
    found = np.zeros((3, len(summary.columns)))
    for sums, own in zip(summary.sums, summary.places, strict=True):
        n = float(sums.count[0].sum())
        if n:
            total = sums.sum_x[0].sum(axis=(0, 1))
            about = np.diagonal(sums.sum_xx[0].sum(axis=(0, 1))) - total**2 / n
            found[:, own] = (
                np.full(own.size, n),
                sums.shift + sums.scale * total / n,
                np.maximum(about, 0.0) * sums.scale**2,
            )
    return found[0], found[1], found[2]


def _mapped(summary: Summary, slope: Array, offset: Array) -> Summary:
    """The sums of samples that are multiplied, then moved: in other units they are the same."""
    sums = tuple(
        replace(one, shift=slope[own] * one.shift + offset[own], scale=slope[own] * one.scale)
        for one, own in zip(summary.sums, summary.places, strict=True)
    )
    place = {column: at for at, column in enumerate(summary.columns)}
    patterns = []
    for one in summary.patterns:
        own = [place[column] for column in one.columns]
        shift, scale = slope[own] * one.shift + offset[own], slope[own] * one.scale
        patterns.append(replace(one, shift=shift, scale=scale))
    return replace(summary, sums=sums, patterns=tuple(patterns))
