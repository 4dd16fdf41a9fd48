import json

import numpy as np
import pytest
from sklearn.base import clone

from idfsmec.errors import InputError
from idfsmec.evaluation import Contestant, Protocol, find_contestants
from idfsmec.evaluation._fold_data import TableArrays, load_fold
from idfsmec.evaluation._rank import rank_all, rank_timed
from idfsmec.evaluation._sanity import AnovaF, ColumnOrder, ForestImportance, RandomOrder
from idfsmec.evaluation.contestants import ABLATIONS, SANITY, idfsmec_contestant
from idfsmec.selection import IDFSMEC

from .cohorts import make_cohort


@pytest.fixture(scope="module")
def fold():
    return load_fold(
        TableArrays.of("t", make_cohort()), Protocol(n_splits=3), "random", 0.3, 0, 0, True
    )


def test_an_unknown_method_is_refused_with_the_choices():
    with pytest.raises(InputError, match=r"no method 'mrmr2'; choose from IDFS-MEC.*ANOVA F"):
        find_contestants(["mrmr2"])


def test_a_name_given_twice_is_refused():
    with pytest.raises(InputError, match="'IDFS-MEC' is given twice"):
        find_contestants(["IDFS-MEC", idfsmec_contestant()])


def test_the_default_is_all_methods_and_the_sanity_lines():
    names = [one.name for one in find_contestants()]
    assert names[0] == "IDFS-MEC"
    assert names[-5:] == list(SANITY)


def test_descriptions_are_json_and_tell_parameters_apart():
    texts = {
        json.dumps(Contestant("x", IDFSMEC(tol=tol)).describe(), sort_keys=True)
        for tol in (1e-6, 1e-5)
    }
    assert len(texts) == 2


def test_one_path_gives_the_orders_of_separate_fits(fold):
    for name in ABLATIONS:
        contestant = idfsmec_contestant(name, lams=[0.01, 10.0], gammas=[1.1, 3.0])
        shared = rank_all(contestant, fold, [2, 5], 0)
        for s, setting in enumerate(contestant.grid):
            selector = clone(contestant.selector).set_params(channels=fold.channel_of, **setting)
            alone = np.argsort(selector.fit(fold.gappy, fold.y_train).ranking_)
            assert shared[s, 5].tolist() == alone.tolist()


def test_no_redundancy_has_lam_0_and_no_channel_weights_has_one_gamma():
    assert {one["lam"] for one in idfsmec_contestant("no redundancy").grid} == {0.0}
    assert len({one["gamma"] for one in idfsmec_contestant("no channel weights").grid}) == 1


def test_a_contestant_that_depends_on_k_is_fitted_for_each_k(fold):
    class Picky(AnovaF):
        def fit(self, X, y):
            super().fit(X, y)
            if self.n_features_to_select == 2:
                self.ranking_ = self.ranking_[::-1].copy()
            return self

    orders = rank_all(Contestant("p", Picky(), depends_on_k=True), fold, [2, 3], 0)
    assert not np.array_equal(orders[0, 2], orders[0, 3])


@pytest.mark.parametrize("selector", [ColumnOrder(), RandomOrder(), AnovaF(), ForestImportance()])
def test_sanity_lines_rank_all_features_and_repeat_themselves(selector, fold):
    contestant = Contestant("s", selector)
    assert not contestant.takes_gaps
    order, seconds = rank_timed(contestant, fold, {}, 5, seed=3)
    again, _ = rank_timed(contestant, fold, {}, 5, seed=3)
    assert sorted(order) == list(range(12))
    assert order.tolist() == again.tolist()
    assert seconds > 0


def test_informed_sanity_lines_find_the_planted_features():
    arrays = TableArrays.of("t", make_cohort(effect=3.0))
    fold = load_fold(arrays, Protocol(n_splits=3), "random", 0.3, 0, 0, False)
    for selector in (AnovaF(), ForestImportance()):
        order, _ = rank_timed(Contestant("s", selector), fold, {}, 5, seed=0)
        assert set(order[:2]) == {0, 3}


def test_anova_puts_constant_features_last():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1] = 2.0
    assert AnovaF().fit(X, np.arange(30) % 2).ranking_[1] == 4
