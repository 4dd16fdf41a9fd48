"""The search fills gaps by whatever it is given, learned from training parts alone."""

import numpy as np
from sklearn.impute import SimpleImputer

from idfsmec import IDFSMECCV, ChannelImputer
from idfsmec.missing import simulate_missing
from tests.evaluation.cohorts import make_cohort


def test_a_imputer_takes_the_place_of_the_mean():
    table = simulate_missing(make_cohort(n_subjects=12, effect=2.0), 0.4, random_state=0)
    how = {"lams": [1.0], "gammas": [2.0], "n_features_to_select": [2, 6], "cv": 2}
    fits = {
        name: IDFSMECCV(imputer=imputer, **how).fit(table.X, table.y)
        for name, imputer in {
            "mean": SimpleImputer(keep_empty_features=True),
            "zero": SimpleImputer(strategy="constant", fill_value=0.0),
            "usual": None,
            "factors": ChannelImputer(),
        }.items()
    }
    scores = {name: one.cv_results_["mean_test_score"] for name, one in fits.items()}
    np.testing.assert_allclose(scores["mean"], scores["zero"])
    np.testing.assert_allclose(scores["usual"], scores["factors"])
    assert not np.allclose(scores["usual"], scores["zero"])
