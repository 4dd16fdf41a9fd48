"""Subjects unlike the training data are pointed out, ordinary ones are not."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.prediction import fit_model, predict_subjects
from idfsmec.table import FeatureTable

FEATURES = ["variance", "de_alpha", "log_ap_beta", "hoc", "mean", "ap_beta_theta_ratio"]
CHANNELS = ["F3", "Fz", "F4", "C3", "Cz", "C4", "P3", "Pz"]


def make_table(n_subjects, seed, n_epochs=3):
    """Features of signals in microvolts: heavy tails, and channels that are alike."""
    rng = np.random.default_rng(seed)
    number = np.repeat(np.arange(n_subjects), n_epochs)
    common = rng.normal(size=(n_subjects, 1, 6))[number]
    own = rng.normal(size=(n_subjects, 8, 6))[number] + rng.normal(size=(number.size, 8, 6))
    values = common + 0.4 * own
    values[:, :, 0] = 40 * np.exp(values[:, :, 0])
    values[:, :, 1] = 2.5 + 0.5 * values[:, :, 1]
    values[:, :, 2] += 3.0
    values[:, :, 3] = 250 + 40 * values[:, :, 3]
    values[:, :, 4] *= 0.1
    values[:, :, 5] = np.exp(0.3 * values[:, :, 5])
    columns = [f"{channel}__{feature}" for channel in CHANNELS for feature in FEATURES]
    X = pd.DataFrame(values.reshape(number.size, -1), columns=columns)
    return FeatureTable(X, np.where(number % 2, "MDD", "HC"), number)


@pytest.fixture(scope="module")
def model():
    return fit_model(make_table(60, 0))


def changed(table, X):
    return FeatureTable(X.reset_index(drop=True), table.y, table.subjects)


def test_about_one_in_a_hundred_ordinary_subjects_is_called_unusual(model):
    subjects = predict_subjects(model, make_table(200, 1)).subjects
    assert np.mean([subject.distance > 1 for subject in subjects]) < 0.04
    assert all(subject.predicted is not None for subject in subjects)
    assert not any("apparently in" in doubt for one in subjects for doubt in one.warnings)


def test_random_numbers_get_no_probability_unless_allowed(model):
    table = make_table(10, 2)
    noise = 1e5 * np.random.default_rng(0).normal(size=table.X.shape)
    wild = changed(table, pd.DataFrame(noise, columns=table.X.columns))
    for subject in predict_subjects(model, wild).subjects:
        assert subject.predicted is None
        assert np.isnan(subject.probability)
        assert "unlike the training data" in subject.warnings[0]
        assert "no prediction without --allow-unusual" in subject.warnings[-1]
    frame = predict_subjects(model, wild, allow_unusual=True).frame
    assert frame.filter(like="probability of").notna().to_numpy().all()
    assert frame["warnings"].str.contains("unlike the training data").all()


@pytest.mark.parametrize(
    ("exponent", "unit"),
    [(-6, "volts instead of microvolts"), (-3, "millivolts"), (6, "microvolts instead of volts")],
)
def test_channels_in_another_unit_are_named(model, exponent, unit):
    table, factor = make_table(10, 3), 10.0**exponent
    X = table.X.copy()
    for channel in ("F3", "Cz"):
        X[f"{channel}__variance"] *= factor**2
        X[f"{channel}__mean"] *= factor
        X[f"{channel}__de_alpha"] += np.log(factor)
        X[f"{channel}__log_ap_beta"] += 2 * np.log(factor)
    for subject in predict_subjects(model, changed(table, X)).subjects:
        assert subject.predicted is None
        assert any(f"F3 and Cz: apparently in {unit}" in doubt for doubt in subject.warnings)


def test_one_value_beyond_all_measure_is_found(model):
    table = make_table(10, 4)
    X = table.X.assign(Pz__hoc=1e300)
    assert not any(s.probabilities for s in predict_subjects(model, changed(table, X)).subjects)


def test_a_table_of_one_feature_has_no_factors_and_is_predicted():
    table = make_table(20, seed=0)
    table = FeatureTable(table.X[["Cz__de_alpha"]], table.y, table.subjects)
    predictions = predict_subjects(fit_model(table), table)
    assert all(subject.predicted in ("HC", "MDD") for subject in predictions.subjects)
