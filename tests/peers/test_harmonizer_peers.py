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
@pytest.mark.parametrize("with_covariates", [False, True])
@pytest.mark.parametrize("empirical_bayes", [False, True])
def test_equals_neurocombat(seed, with_covariates, empirical_bayes, capsys):
    rng = np.random.default_rng(seed)
    sites = np.repeat([1, 2, 3, 4], rng.integers(5, 30, 4))
    # Whole years: the peer keeps covariates in single precision.
    age, sex = rng.integers(20, 80, sites.size) + 5.0 * sites, rng.integers(0, 2, sites.size)
    X = rng.normal(size=(sites.size, 12)) * rng.uniform(0.5, 2, (5, 12))[sites]
    X += rng.normal(1, 1, (5, 12))[sites] + 0.1 * np.outer(age, rng.normal(size=12)) + sex[:, None]
    subjects = pd.DataFrame({"site": sites, "age": age, "sex": sex})
    theirs = neuroCombat(
        dat=X.T,
        covars=subjects if with_covariates else subjects[["site"]],
        batch_col="site",
        categorical_cols=["sex"] if with_covariates else None,
        continuous_cols=["age"] if with_covariates else None,
        eb=empirical_bayes,
    )["data"].T
    capsys.readouterr()
    covariates = np.column_stack([sex, age]) if with_covariates else None
    ours = SiteHarmonizer(empirical_bayes=empirical_bayes).fit_transform(
        X, sites=sites, covariates=covariates
    )
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
