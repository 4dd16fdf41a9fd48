"""The paper's own experiments: its method in pieces, and on a grid."""

import pytest

from idfsmec.evaluation import Protocol, accuracy
from idfsmec.paper import ABLATIONS, ablation, as_published, sensitivity
from idfsmec.prediction import METHODS, Method
from idfsmec.selection import PSNSGA
from tests.evaluation.cohorts import Computed, make_cohort

PROTOCOL = Protocol(rates=[0.3], n_splits=3, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
HERE = {"n_jobs": 1}


def test_the_ablation_reuses_the_full_method_of_the_comparison(tmp_path):
    full = as_published(["IDFS-MEC"])
    accuracy(make_cohort(), tmp_path, methods=full, protocol=PROTOCOL, **HERE)
    computed = Computed()
    results = ablation(make_cohort(), tmp_path, protocol=PROTOCOL, progress=computed, **HERE)
    assert {unit.method.name for unit in computed.tasks()} == set(ABLATIONS) - {"IDFS-MEC"}
    assert set(results.chosen("ablation")["method"]) == set(ABLATIONS)
    assert set(results.chosen("accuracy")["method"]) == {"IDFS-MEC"}
    assert set(results.protocol["experiments"]) == {"accuracy", "ablation"}


def test_ps_nsga_as_published_searches_on_all_samples_and_in_inner_folds_as_long():
    (theirs,) = as_published(["PS-NSGA"])
    assert theirs.build().max_samples is None
    assert not theirs.inner
    mine = Method("PS-NSGA", PSNSGA(max_samples=5), "wrapper")
    assert as_published([mine]) == [mine]


def test_sensitivity_scores_the_whole_grid_and_chooses_nothing(tmp_path):
    results = sensitivity(
        make_cohort(), tmp_path, lams=[0.1, 10.0], gammas=[2.0, 5.0], protocol=PROTOCOL, **HERE
    )
    counts = results.scores.groupby(["lam", "gamma", "k"]).size()
    assert len(counts) == 2 * 2 * 2
    assert (counts == 3).all()
    assert not results.scores["chosen"].any()


def test_each_experiment_knows_its_own_rates(tmp_path):
    few = {"n_splits": 2, "ks": [2], "svm_costs": [0.1], "n_inner_splits": 2}
    results = sensitivity(make_cohort(), tmp_path, lams=[1.0], gammas=[2.0], protocol=few, **HERE)
    assert set(results.scores["rate"]) == {0.3}
    assert results.protocol["experiments"]["sensitivity"]["n_splits"] == 2


def test_ablations_are_methods_of_the_registry():
    assert [METHODS[name].family for name in ABLATIONS] == ["proposed"] + ["ablation"] * 4
    assert {one["lam"] for one in METHODS["no redundancy"].settings} == {0.0}
    assert len({one["gamma"] for one in METHODS["no channel weights"].settings}) == 1


@pytest.mark.parametrize("name", ABLATIONS[1:])
def test_an_ablation_lacks_one_part(name):
    whole, part = as_published(["IDFS-MEC"])[0].build(), METHODS[name].build()
    changed = {key for key, value in part.get_params().items() if value != whole.get_params()[key]}
    assert len(changed) == (0 if name == "no redundancy" else 1)  # that one is a setting
