"""Samples as the factor model takes them: standardised, with 0 in gaps; or products of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from idfsmec._columns import channel_codes, observed_channels
from idfsmec.prediction._expectation import blocks
from idfsmec.prediction.factors import Products
from idfsmec.solver import Scaling
from idfsmec.solver.scaling import FAR
from idfsmec.summaries.summary import Summary

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


def standardised(
    X: Array, columns: Sequence[Indices], scaling: Scaling, usable: Mask | bool = True
) -> tuple[Array, Mask]:
    """Values in units of ``scaling``, 0 where the channel is missing; who has which channel.

    Channels that are not usable count as missing. No value is more than 6 units away.
    """
    values, channel = np.empty_like(X), channel_codes(columns)
    observed = np.empty((len(X), len(columns)), dtype=bool)
    for block in blocks(X):
        observed[block] = observed_channels(X[block], columns) & usable
        scaled = scaling.apply(X[block])
        scaled[~observed[block][:, channel]] = 0.0
        np.clip(scaled, -FAR, FAR, out=values[block])
    return values, observed


class Changed(NamedTuple):
    """Values that learning must not see as they are, and where they were (in the flat array)."""

    places: Indices
    values: Array


def take_gaps_out(X: Array, columns: Sequence[Indices]) -> tuple[Mask, Changed]:
    """:func:`standardised` of samples that are in their units already, in their place.

    Who has which channel, and all numbers that were changed: those too far away, and what is left
    of channels that are not whole.
    """
    channel, places, values = channel_codes(columns), [], []
    observed = np.empty((len(X), len(columns)), dtype=bool)
    for block in blocks(X):
        part = X[block]
        observed[block] = observed_channels(part, columns)
        seen = observed[block][:, channel]
        changed = np.flatnonzero(np.where(seen, np.abs(part) > FAR, ~np.isnan(part)))
        places.append(changed + block.start * X.shape[1])
        values.append(part.ravel()[changed])
        np.copyto(part, 0.0, where=~seen)
        np.clip(part, -FAR, FAR, out=part)
    return observed, Changed(np.concatenate(places), np.concatenate(values))


def standardised_products(summary: Summary) -> tuple[Array, Scaling, list[Products]]:
    """Of the samples whose patterns are told: their number, their units, products in these.

    Returns
    -------
    count : ndarray of shape (n_features,)
        Samples that have each feature.
    scaling : Scaling
    products : list of Products
    """
    place = {column: at for at, column in enumerate(summary.columns)}
    owns = [np.array([place[column] for column in one.columns]) for one in summary.patterns]
    count, total, squares = np.zeros((3, len(place)))
    for one, own in zip(summary.patterns, owns, strict=True):
        count[own] += one.count.sum()
        total[own] += one.count.sum() * one.shift + one.scale * one.sum_x.sum(axis=0)
    mean = total / np.maximum(count, 1.0)
    for one, own in zip(summary.patterns, owns, strict=True):
        about = one.in_units(mean[own], one.scale).sum_xx.sum(axis=0)
        squares[own] += np.diagonal(about) * one.scale**2
    scaling = Scaling.of(mean, np.sqrt(np.maximum(squares, 0.0) / np.maximum(count, 1.0)))
    products = []
    for one, own in zip(summary.patterns, owns, strict=True):
        values = one.in_units(mean[own], scaling.unit[own]).sum_xx.sum(axis=0)
        products.append(Products(own, float(one.count.sum()), values))
    return count, scaling, products
