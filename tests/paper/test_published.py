import numpy as np
import pytest

from idfsmec.paper import DATASETS, published, published_value


@pytest.mark.parametrize(
    ("experiment", "n_methods"), [("cost", 11), ("accuracy", 1), ("ablation", 4)]
)
def test_every_method_has_a_value_for_every_data_set(experiment, n_methods):
    found = published(experiment)
    assert found.groupby("method")["data_set"].agg(set).map(lambda s: s == set(DATASETS)).all()
    assert found["method"].nunique() == n_methods
    assert found["value"].gt(0).all()
    assert found["source"].str.startswith("arXiv:2511.11651").all()


def test_accuracies_are_fractions():
    for experiment in ("accuracy", "ablation"):
        assert published(experiment)["value"].between(0.5, 1).all()


@pytest.mark.parametrize("name", ["PS-NSGA", "PSNSGA", "ps_nsga"])
def test_names_are_compared_without_case_and_punctuation(name):
    assert published_value("cost", name, "pred-d003") == 24.633


def test_what_the_paper_lacks_is_nan():
    assert np.isnan(published_value("cost", "random", "pred-d003"))
    assert np.isnan(published_value("ablation", "no correction", "modma3"))
    assert np.isnan(published_value("cost", "mRMR", None))


def test_a_study_of_as_many_channels_is_not_the_papers():
    assert np.isnan(published_value("cost", "mRMR", "a cap of 64 channels"))


def test_an_unknown_experiment_is_refused():
    with pytest.raises(ValueError, match="sensitivity"):
        published("sensitivity")
