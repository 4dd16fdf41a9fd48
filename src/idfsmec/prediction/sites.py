"""A model's harmonizer at work on tables: names of sites, and words about those never seen."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from idfsmec.errors import InputError
from idfsmec.prediction.harmonizer import SiteHarmonizer
from idfsmec.table import FeatureTable

#: Where people of a table without sites were recorded.
UNNAMED_SITE = "(not named)"


def learn_sites(table: FeatureTable) -> SiteHarmonizer:
    """Learn what the sites of a table do; there must be two at least."""
    sites = refuse_one_site(table)
    return SiteHarmonizer().fit(table.X, table.y.to_numpy(), sites=_names(sites))


def refuse_one_site(table: FeatureTable) -> pd.Series:
    """Give the sites of a table that has two or more; others cannot be harmonized."""
    if table.sites is None or table.sites.nunique() < 2:
        there = "no column 'site'" if table.sites is None else "one site alone"
        raise InputError(
            f"to harmonize sites there must be at least two, and the table has {there}; name the "
            "hospital of each recording in the manifest's column 'site', or do not harmonize",
            argument="harmonize",
        )
    return table.sites


def harmonize_sites(
    harmonizer: SiteHarmonizer | None, X: pd.DataFrame, sites: pd.Series | None
) -> pd.DataFrame:
    """Take out of samples what their sites do; without sites, all are of one never seen."""
    if harmonizer is None:
        return X
    clean = harmonizer.transform(X, sites=_names_or_none(sites, len(X)))
    return pd.DataFrame(clean, index=X.index, columns=X.columns)


def harmonize_table(table: FeatureTable) -> FeatureTable:
    """Give a table whose sites are alike, as learned from all of it: for a ranking, no test."""
    X = harmonize_sites(learn_sites(table), table.X, table.sites)
    return replace(table, X=X)


def harmonize_new(
    harmonizer: SiteHarmonizer | None, X: pd.DataFrame, sites: pd.Series | None
) -> tuple[pd.DataFrame, list[str]]:
    """Harmonize people who were not in training, and say what became of sites never seen."""
    if harmonizer is None:
        return X, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said in the notes
        clean = harmonize_sites(harmonizer, X, sites)
    notes = []
    if sites is None:
        notes.append("no sites are named: all people are taken for those of one new hospital")
    names, counts = np.unique(_names_or_none(sites, len(X)), return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        if name in harmonizer.sites_.tolist():
            continue
        where = "the new hospital" if name == UNNAMED_SITE else f"site {name}, not in training,"
        few = count < harmonizer.min_own
        notes.append(
            f"{where} is left as it is: it has {count} samples, and {harmonizer.min_own} are "
            "needed to bring it to the location and scale of the others"
            if few or harmonizer.unseen == "nothing"
            else f"{where} is brought to the location and scale of the others by its own {count} "
            "samples; if its people are all of one class, what they have in common is lost"
        )
    return clean, notes


def _names(sites: pd.Series) -> NDArray[np.str_]:
    return sites.astype(str).to_numpy(dtype=str)


def _names_or_none(sites: pd.Series | None, n_samples: int) -> NDArray[np.str_]:
    return np.full(n_samples, UNNAMED_SITE) if sites is None else _names(sites)
