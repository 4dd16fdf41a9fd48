"""A model of a small cohort, fitted once."""

import pytest

from idfsmec.prediction import fit_model, save_model
from tests.evaluation.cohorts import make_cohort


@pytest.fixture(scope="session")
def cohort_table():
    return make_cohort(n_subjects=24, n_epochs=4, effect=3.0)


@pytest.fixture(scope="session")
def small_model(cohort_table):
    return fit_model(cohort_table)


@pytest.fixture
def model_file(small_model, tmp_path):
    return save_model(small_model, tmp_path / "model.skops")
