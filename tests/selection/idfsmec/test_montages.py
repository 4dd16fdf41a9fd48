"""A model of many channels meets recordings with fewer, and blocks that are no EEG."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from idfsmec.prediction import IDFSMECClassifier
from idfsmec.recordings import simulate_cohort
from idfsmec.selection import IDFSMEC

FEATURES = ("theta", "alpha", "beta")


@pytest.fixture(scope="module")
def names():
    """Channels of a 64-channel cap, and the 10-20 channels among them."""
    montages = [
        simulate_cohort(2, n, duration=4.0, random_state=0).recordings[0].load().ch_names
        for n in (64, 19)
    ]
    standard = {"T3": "T7", "T4": "T8", "T5": "P7", "T6": "P8"}
    few = [standard.get(name, name) for name in montages[1]]
    assert set(few) <= set(montages[0])
    assert len(few) == 19
    return montages[0], few


@pytest.fixture(scope="module")
def cohort(names):
    """240 subjects under the 64-channel cap; neighbouring channels share their sources."""
    many, _ = names
    rng = np.random.default_rng(7)
    y = np.arange(240) % 2
    sources = rng.normal(size=(240, 10, len(FEATURES)))
    sources[:, :3, 1] += 1.5 * y[:, None]
    mixing = rng.dirichlet(np.full(10, 0.2), size=len(many))
    X = np.einsum("vs,nsd->nvd", mixing, sources) + 0.3 * rng.normal(size=(240, 64, 3))
    columns = [f"{channel}__{feature}" for channel in many for feature in FEATURES]
    return pd.DataFrame(X.reshape(240, -1), columns=columns), y


def of(X, channels):
    """What a recording with these channels only would give."""
    return X[[f"{channel}__{feature}" for channel in channels for feature in FEATURES]]


def test_a_model_of_64_channels_classifies_recordings_that_have_19(cohort, names):
    X, y = cohort
    model = IDFSMECClassifier().fit(X[:160], y[:160])
    with_19 = of(X[160:], names[1]).reindex(columns=X.columns)
    assert roc_auc_score(y[160:], model.decision_function(with_19)) > 0.75


@pytest.mark.parametrize("n_factors", [0, 3])
def test_only_the_channels_of_the_recording_vote(cohort, names, n_factors):
    X, y = cohort
    model = IDFSMECClassifier(n_factors=n_factors, alphas=[1.0]).fit(X[:160], y[:160])
    with_19 = of(X[160:], names[1]).reindex(columns=X.columns)
    votes = model.channel_votes(with_19)
    voting = ~np.isnan(votes).all(axis=0)
    assert set(model.channel_names_[voting]) == set(names[1])
    said = model.decision_function(with_19)
    assert_allclose(votes[:, voting].sum(axis=1) + model.intercept_, said)


def test_a_recording_with_other_columns_is_refused_until_it_is_reindexed(cohort, names):
    X, y = cohort
    model = IDFSMECClassifier(alphas=[1.0]).fit(X[:160], y[:160])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(of(X[160:], names[1]))


def test_caps_of_both_sizes_train_one_model(cohort, names):
    X, y = cohort
    small_cap = of(X[80:160], names[1])
    both = pd.concat([X[:80], small_cap])
    assert_array_equal(both.columns, X.columns)
    selector = IDFSMEC(n_features_to_select=10).fit(both, y[:160])
    assert (selector.channel_weights_ > 0).all()
    model = IDFSMECClassifier().fit(both, y[:160])
    assert roc_auc_score(y[160:], model.decision_function(X[160:])) > 0.75


def test_blocks_of_different_kinds_and_sizes_stand_side_by_side():
    """EEG, audio and a questionnaire; audio is missing for a third of the subjects."""
    rng = np.random.default_rng(3)
    y = np.arange(150) % 2
    sizes = {"EEG": 12, "audio": 6, "questionnaire": 9}
    X = pd.DataFrame(
        rng.normal(size=(150, 27)),
        columns=[f"{block}__{j}" for block, size in sizes.items() for j in range(size)],
    )
    X["audio__2"] += 1.5 * y
    X["questionnaire__0"] += 1.5 * y
    X.loc[rng.random(150) < 1 / 3, [f"audio__{j}" for j in range(6)]] = np.nan
    selector = IDFSMEC(n_features_to_select=2, lam=0.01, gamma=1.5).fit(X[:100], y[:100])
    assert selector.channel_names_.tolist() == list(sizes)
    assert set(selector.get_feature_names_out()) == {"audio__2", "questionnaire__0"}
    assert IDFSMECClassifier().fit(X[:100], y[:100]).score(X[100:], y[100:]) > 0.7
