"""The registry knows all methods and takes a user's own."""

import dataclasses

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest

from idfsmec.selection import METHODS, MRMR, PSNSGA, ReliefF, register_method


@pytest.fixture
def scratch():
    """Names to register in a test, gone afterwards."""
    before = dict(METHODS)
    yield
    from idfsmec.selection import _registry

    _registry._methods.clear()
    _registry._methods.update(before)


def test_knows_the_eleven_methods_of_the_paper_in_its_order():
    filters = ["ReliefF", "mRMR", "CMIM", "MRMSR", "RRCT"]
    names = [*filters, "PS-NSGA", "RFS", "FSOR", "GRMOR", "CD-LSR", "IDFS-MEC"]
    assert [name for name in METHODS if name in names] == names


def test_families_and_the_one_method_that_takes_nan():
    assert {name for name, m in METHODS.items() if m.family == "wrapper"} == {"PS-NSGA"}
    assert {name for name, m in METHODS.items() if m.accepts_nan} == {"IDFS-MEC"}


@pytest.mark.parametrize("name", METHODS)
def test_every_grid_value_can_be_set(name):
    method = METHODS[name]
    for parameter, values in method.grid.items():
        for value in values:
            assert method.build(**{parameter: value}).get_params()[parameter] == value


@pytest.mark.parametrize("name", ["ReliefF", "RFS", "CD-LSR", "IDFS-MEC"])
def test_a_built_method_ranks(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 6)), np.arange(30) % 2
    selector = METHODS[name].build(n_features_to_select=2, random_state=3).fit(X, y)
    assert sorted(selector.ranking_) == [1, 2, 3, 4, 5, 6]


def test_building_does_not_touch_the_registered_estimator():
    METHODS["PS-NSGA"].build(random_state=42, n_generations=1)
    assert METHODS["PS-NSGA"].estimator.get_params() == PSNSGA(random_state=0).get_params()


def test_a_record_cannot_be_changed_and_the_list_only_by_registering():
    with pytest.raises(dataclasses.FrozenInstanceError):
        METHODS["RFS"].label = "mine"
    with pytest.raises(TypeError):
        METHODS["mine"] = METHODS["RFS"]


@pytest.mark.usefixtures("scratch")
def test_a_user_adds_a_method():
    register_method("near", ReliefF(n_neighbors=3), family="filter", grid={"n_neighbors": [3, 5]})
    assert METHODS["near"].build(n_neighbors=5).n_neighbors == 5
    assert METHODS["near"].label == "near"
    assert not METHODS["near"].accepts_nan
    assert not METHODS["near"].depends_on_k


@pytest.mark.usefixtures("scratch")
def test_a_name_is_replaced_only_on_request():
    with pytest.raises(ValueError, match="replace=True"):
        register_method("mRMR", MRMR(), family="filter")
    register_method("mRMR", MRMR(method="MIQ"), family="filter", replace=True)
    assert METHODS["mRMR"].estimator.method == "MIQ"


def test_an_estimator_that_cannot_be_told_how_many_features_is_refused():
    with pytest.raises(ValueError, match="no parameter 'n_features_to_select'"):
        register_method("k best", SelectKBest(), family="filter")


def test_an_unknown_family_is_refused():
    with pytest.raises(ValueError, match="filter, wrapper, embedded"):
        register_method("x", MRMR(), family="magic")


@pytest.mark.parametrize("name", ["", " ", "mRMR, 10 bins"])
def test_a_name_the_command_line_cannot_take_is_refused(name):
    with pytest.raises(ValueError, match="name without commas"):
        register_method(name, MRMR(), family="filter")
