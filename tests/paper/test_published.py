import pytest

from idfsmec.paper import DATASETS, published


@pytest.mark.parametrize(
    ("experiment", "n_methods", "most"),
    [("cost", 11, 5000), ("accuracy", 1, 1), ("ablation", 4, 1)],
)
def test_every_method_has_a_value_for_every_data_set(experiment, n_methods, most):
    for name in DATASETS:
        values = published(experiment, name)
        assert len(values) == n_methods
        assert all(0 < value < most for value in values.values())
    assert published("cost", "pred-d003")["PS-NSGA"] == 24.633


def test_a_study_of_as_many_channels_is_not_the_papers():
    assert published("cost", "a cap of 64 channels") == {}
    assert published("cost", None) == {}
