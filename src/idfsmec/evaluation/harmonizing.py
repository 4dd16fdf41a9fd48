"""Sites brought to one location and scale, learned from training samples alone."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from idfsmec._entanglement import entanglement, say_entanglement
from idfsmec.errors import InputError
from idfsmec.evaluation.tables import TableArrays
from idfsmec.prediction.harmonizer import SiteHarmonizer, refuse_one_site
from idfsmec.table import FeatureTable

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def learn_sites(table: TableArrays, X: Floats, rows: Codes) -> SiteHarmonizer:
    """Learn from some samples of a table, as they are in ``X``, what its sites do.

    Labels are not looked at; :func:`check_sites` has said what there is to say about them.
    """
    return SiteHarmonizer().fit(X, sites=sites_of(table)[rows])


def make_alike(sites: SiteHarmonizer | None, table: TableArrays, X: Floats, rows: Codes) -> Floats:
    """Samples with their sites alike, if known; all at once, for new sites go by all they have."""
    return X if sites is None else sites.transform(X, sites=sites_of(table)[rows])


def harmonize_whole(table: TableArrays) -> TableArrays:
    """Give a table whose sites are alike, for a ranking of all of it."""
    known = learn_sites(table, table.X, np.arange(table.y.size))
    X = known.transform(table.X, sites=table.sites)
    return replace(table, X=X, digest=f"{table.digest}/harmonized")


def check_sites(table: FeatureTable) -> None:
    """Refuse a table that cannot be harmonized, and warn where that takes out the label."""
    sites = refuse_one_site(table)
    if said := say_entanglement(entanglement(sites, table.y)):
        warnings.warn(said, UserWarning, stacklevel=2)


def was_harmonized(protocols: Mapping[str, Any]) -> bool:
    """Whether the accuracy of a folder was measured so."""
    return bool((protocols.get("accuracy") or {}).get("harmonize"))


def sites_of(table: TableArrays) -> Codes:
    """Sites of a table's samples, which must be known."""
    if table.sites is None:
        raise InputError("to harmonize sites the table needs a column 'site'")
    return table.sites
