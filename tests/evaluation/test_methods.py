import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from idfsmec.errors import InputError
from idfsmec.evaluation import Contestant, Protocol, find_contestants
from idfsmec.evaluation._fold_data import TableArrays, load_fold
from idfsmec.evaluation._rank import rank_all, rank_inner, rank_timed
from idfsmec.evaluation._sanity import AnovaF, ColumnOrder, ForestImportance, RandomOrder
from idfsmec.evaluation.methods import ABLATIONS, SANITY, idfsmec_contestant
from idfsmec.selection import CDLSR, IDFSMEC, _registry, register_method

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


def test_a_registered_method_says_whether_it_depends_on_k(monkeypatch):
    monkeypatch.setitem(_registry._methods, "jointly", None)  # gone again afterwards
    register_method("jointly", AnovaF(), family="filter", depends_on_k=True, replace=True)
    depend = [one.name for one in find_contestants() if one.depends_on_k]
    assert depend == ["CD-LSR", "jointly"]


@pytest.mark.parametrize("selector", [ColumnOrder(), RandomOrder(), AnovaF(), ForestImportance()])
def test_sanity_lines_rank_all_features_and_repeat_themselves(selector, fold):
    contestant = Contestant("s", selector)
    assert not contestant.takes_gaps
    order, seconds = rank_timed(contestant, fold, {}, [5], seed=3)[5]
    again, _ = rank_timed(contestant, fold, {}, [5], seed=3)[5]
    assert sorted(order) == list(range(12))
    assert order.tolist() == again.tolist()
    assert seconds > 0


def test_informed_sanity_lines_find_the_planted_features():
    arrays = TableArrays.of("t", make_cohort(effect=3.0))
    fold = load_fold(arrays, Protocol(n_splits=3), "random", 0.3, 0, 0, False)
    for selector in (AnovaF(), ForestImportance()):
        order, _ = rank_timed(Contestant("s", selector), fold, {}, [5], seed=0)[5]
        assert set(order[:2]) == {0, 3}


def test_anova_puts_constant_features_last():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1] = 2.0
    assert AnovaF().fit(X, np.arange(30) % 2).ranking_[1] == 4


@pytest.mark.parametrize("name", ABLATIONS)
def test_inner_folds_in_one_batch_rank_as_each_on_its_own(name):
    arrays = TableArrays.of("t", make_cohort(n_features=6, subject_spread=2.0, seed=4))
    fold = load_fold(arrays, Protocol(n_splits=3), "random", 0.4, 0, 1, True)
    contestant = idfsmec_contestant(name)
    together = rank_inner(contestant, fold, [3, 24], 0)
    assert len(together) == len(fold.inner) == 3
    for part, ranked in zip(fold.inner, together, strict=True):
        alone = rank_all(contestant, part, [3, 24], 0)
        assert {key: order.tolist() for key, order in ranked.items()} == {
            key: order.tolist() for key, order in alone.items()
        }


@pytest.mark.parametrize("changes", [{"standardize": False}, {}])
def test_inner_folds_are_ranked_apart_where_a_batch_would_not_be_the_same(changes, monkeypatch):
    """Without standardising, and where an inner fold lacks a class."""

    def refuse(*args, **kwargs):
        raise AssertionError("ranked in one batch")

    monkeypatch.setattr("idfsmec.evaluation._rank.idfs_fold_paths", refuse)
    arrays = TableArrays.of("t", make_cohort(n_classes=3))
    fold = load_fold(arrays, Protocol(n_splits=3), "random", 0.3, 0, 0, True)
    if not changes:
        few = replace(fold.inner[0], y_train=np.minimum(fold.inner[0].y_train, 1))
        fold = replace(fold, inner=(few, *fold.inner[1:]))
    contestant = Contestant("c", IDFSMEC(**changes), ({"lam": 1.0, "gamma": 2.0},))
    ranked = rank_inner(contestant, fold, [2], 0)
    alone = [rank_all(contestant, part, [2], 0) for part in fold.inner]
    for one, other in zip(ranked, alone, strict=True):
        assert one[0, 2].tolist() == other[0, 2].tolist()


def test_cd_lsr_shares_its_products_between_k_and_ranks_as_separate_fits(fold):
    (contestant,) = find_contestants(["CD-LSR"])
    ks = [1, 3, 7]
    found = rank_timed(contestant, fold, {}, ks, seed=5)
    for k in ks:
        alone = CDLSR(n_features_to_select=k, random_state=5).fit(fold.filled, fold.y_train)
        assert found[k][0].tolist() == np.argsort(alone.ranking_).tolist()
        assert found[k][1] > 0


def test_nested_tuning_tries_the_whole_default_grid_of_idfs_mec():
    grid = idfsmec_contestant().grid
    assert {one["lam"] for one in grid} == {1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3}
    assert {one["gamma"] for one in grid} == {1.1, 1.5, 2.0, 3.0, 5.0, 9.0}
    assert len(grid) == 42
