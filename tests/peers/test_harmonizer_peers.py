"""SiteHarmonizer against neuroCombat, on complete data."""

import importlib

import numpy as np
import pandas as pd
import pytest
from neuroCombat import neuroCombat
from numpy.testing import assert_allclose

from idfsmec.prediction import SiteHarmonizer

pytestmark = pytest.mark.long

# The package hides its module behind a function of the same name.
PEER = importlib.import_module("neuroCombat.neuroCombat")


@pytest.fixture(autouse=True)
def _until_nothing_changes(monkeypatch):
    """The peer stops at changes of 1e-4; here both go on to the end."""
    assert PEER.it_sol.__defaults__ == (0.0001,)
    monkeypatch.setattr(PEER.it_sol, "__defaults__", (1e-12,))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("empirical_bayes", [False, True])
def test_equals_neurocombat(seed, empirical_bayes, capsys):
    rng = np.random.default_rng(seed)
    sites = np.repeat([1, 2, 3, 4], rng.integers(5, 30, 4))
    X = rng.normal(size=(sites.size, 12)) * rng.uniform(0.5, 2, (5, 12))[sites]
    X += rng.normal(1, 1, (5, 12))[sites]
    covars, how = pd.DataFrame({"site": sites}), {"batch_col": "site", "eb": empirical_bayes}
    theirs = neuroCombat(dat=X.T, covars=covars, **how)["data"].T
    capsys.readouterr()
    ours = SiteHarmonizer(empirical_bayes=empirical_bayes).fit_transform(X, sites=sites)
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
