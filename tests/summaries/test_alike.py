"""Hospitals made alike from their sums: the ranking of all rows after SiteHarmonizer."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from idfsmec import IDFSMEC, FeatureTable, summarise
from idfsmec.errors import InputError
from idfsmec.prediction import SiteHarmonizer

COLUMNS = [f"{channel}__{name}" for channel in ("F3", "Cz", "O1") for name in "ab"]


def make_study(seed, sizes=(12, 9, 7), missing=0.2):
    """Hospitals of uneven sizes; the first has no O1."""
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(len(sizes)), sizes)
    person = np.repeat(np.arange(place.size), 2)
    code, y = place[person], np.arange(place.size)[person] % 2
    shape = (person.size, 3, 2)
    X = rng.normal(size=shape) * rng.uniform(0.5, 2, (len(sizes), 3, 2))[code]
    X += rng.normal(0, 3, (len(sizes), 3, 2))[code]
    X[:, 1] += y[:, None]
    X[rng.random(shape[:2]) < missing] = np.nan
    X[code == 0, 2] = np.nan
    names = np.array([f"s{i}" for i in person])
    return X.reshape(person.size, -1), np.array(["HC", "MDD"])[y], names, code


def tables(X, y, names, code):
    return [
        FeatureTable(pd.DataFrame(X[own], columns=COLUMNS), y[own], names[own])
        for own in (np.flatnonzero(code == site) for site in np.unique(code))
    ]


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.2]))
@settings(max_examples=10, deadline=None)
def test_sums_give_the_ranking_of_harmonized_rows(seed, missing):
    X, y, names, code = make_study(seed, missing=missing)
    clean = SiteHarmonizer().fit_transform(X, sites=code)
    shared = [summarise(one, min_people=1) for one in tables(X, y, names, code)]
    found = IDFSMEC(tol=1e-12).fit_summaries(shared, harmonize=True)
    rows = pd.DataFrame(clean, columns=COLUMNS)[list(found.feature_names_in_)]
    expected = IDFSMEC(tol=1e-12).fit(rows, y, groups=names)
    assert_allclose(found.scores_, expected.scores_, rtol=1e-9, atol=1e-9)
    assert_allclose(found.channel_weights_, expected.channel_weights_, rtol=1e-9, atol=1e-9)


def test_summaries_themselves_stay_as_they_are():
    shared = [summarise(one, min_people=1) for one in tables(*make_study(0))]
    before = IDFSMEC().fit_summaries(shared).scores_
    IDFSMEC().fit_summaries(shared, harmonize=True)
    assert_allclose(IDFSMEC().fit_summaries(shared).scores_, before)


def test_one_summary_cannot_be_harmonized():
    (one, *_) = tables(*make_study(0))
    with pytest.raises(InputError, match="two summaries at least"):
        IDFSMEC().fit_summaries([summarise(one, min_people=1)], harmonize=True)


def test_it_warns_where_site_and_label_are_entangled():
    X, y, names, code = make_study(0)
    kept = (y == "MDD") == (code == 1)
    shared = [
        summarise(one, min_people=1, labels=["HC", "MDD"])
        for one in tables(X[kept], y[kept], names[kept], code[kept])
    ]
    with pytest.warns(UserWarning, match="confounded: 100 %"):
        IDFSMEC().fit_summaries(shared, harmonize=True)
