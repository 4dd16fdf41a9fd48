import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from idfsmec.evaluation import Protocol
from idfsmec.evaluation.tasks import load_fold, score_fold
from idfsmec.metrics import score_decisions
from idfsmec.prediction.methods import IMPUTERS, Classifier, Method, find_methods, with_parts
from idfsmec.prediction.sanity import AnovaF
from idfsmec.prediction.svm import LinearSVM

from .cohorts import make_arrays, make_cohort
from .test_fold_samples import inner_folds, prepare


class SingleSVM(ClassifierMixin, BaseEstimator):
    """The SVM without deciding on many sets at once."""

    def __init__(self, C=1.0, class_weight=None):
        self.C = C
        self.class_weight = class_weight

    def fit(self, X, y):
        self.svm_ = LinearSVM(self.C, self.class_weight).fit(X, y)
        self.classes_ = self.svm_.classes_
        return self

    def decision_function(self, X):
        return self.svm_.decision_function(X)


def run(method, protocol, table=None, rate=0.3, fold=0, seed=0, imputer=None):
    (found,) = with_parts(find_methods([method]), imputer)
    arrays = make_arrays(table)
    data = load_fold(arrays, protocol, "random", rate, seed, fold)
    return score_fold(found, data, protocol, seed=0)


def test_an_outer_score_is_that_of_a_plain_scikit_learn_pipeline():
    table = make_cohort(seed=3)
    protocol = Protocol(n_splits=4, ks=[4], svm_costs=[0.1])
    fold = load_fold(make_arrays(table), protocol, "random", 0.4, 0, 2)
    pipeline = make_pipeline(
        StandardScaler(),
        SimpleImputer(),
        SelectKBest(f_classif, k=4),
        LinearSVC(C=0.1, dual=False, class_weight="balanced"),
    ).fit(fold.training.samples.X, fold.training.samples.y)
    (row,) = run("ANOVA F", protocol, table, rate=0.4, fold=2, imputer="mean").rows
    X, y = fold.held_out.X, fold.held_out.y
    assert row["balanced_accuracy"] == balanced_accuracy_score(y, pipeline.predict(X))
    assert row["roc_auc"] == pytest.approx(roc_auc_score(y, pipeline.decision_function(X)))
    assert (row["n_train"], row["n_test"], row["n_channels"]) == (72, 24, 4)


def test_nested_tuning_keeps_the_curve_over_k_and_chooses_once():
    result = run("IDFS-MEC", Protocol(n_splits=4, ks=[1, 2, 5, 50]))
    assert [row["k"] for row in result.rows] == [1, 2, 5]  # 50 is more than the 12 features
    assert sum(row["chosen"] for row in result.rows) == 1
    assert {len(ranking) for ranking in result.rankings} == {5}
    assert {"C", "lam", "gamma"} == set(json.loads(result.rows[0]["params"]))
    assert all(seconds > 0 for seconds in result.seconds)


def test_a_table_with_fewer_features_than_any_k_is_scored_with_all():
    result = run("ANOVA F", Protocol(n_splits=4, ks=[50, 100]))
    assert [(row["k"], row["chosen"]) for row in result.rows] == [(12, True)]


def test_inner_folds_choose_k_like_a_search_by_hand():
    protocol = Protocol(n_splits=4, ks=[1, 3, 6, 12], svm_costs=[0.01, 0.1, 1.0])
    table = make_cohort(seed=5, effect=1.0)
    arrays = make_arrays(table)
    data = load_fold(arrays, protocol, "random", 0.3, 0, 1)
    means = {}
    for k in protocol.ks:
        for C in protocol.svm_costs:
            scores = []
            for part in inner_folds(data):
                full, labels = prepare(part, IMPUTERS["mean"]), part.training.samples.y
                kept = SelectKBest(f_classif, k=k).fit(full.selecting, labels).get_support()
                svm = LinearSVC(C=C, dual=False, class_weight="balanced")
                svm.fit(full.train[:, kept], labels)
                values = svm.decision_function(full.test[:, kept])[:, None] * [-0.5, 0.5]
                y, people = part.held_out.y, part.held_out.subjects
                scores.append(
                    score_decisions(values, y, people, [protocol.tuned_by])[protocol.tuned_by]
                )
            means[k, C] = np.mean(scores)
    result = run("ANOVA F", protocol, table, fold=1, imputer="mean")
    (chosen,) = [row for row in result.rows if row["chosen"]]
    assert means[chosen["k"], json.loads(chosen["params"])["C"]] == pytest.approx(
        max(means.values()), abs=1e-4
    )


def test_inner_folds_may_rank_more_roughly_than_the_whole_fold():
    asked = []

    class Counting(AnovaF):
        def __init__(self, *, n_features_to_select=20, n_trees=100):
            super().__init__(n_features_to_select=n_features_to_select)
            self.n_trees = n_trees

        def _rank(self, X, y):
            asked.append((len(X), self.n_trees))
            super()._rank(X, y)

    method = Method("rough", Counting(), inner={"n_trees": 5})
    protocol = Protocol(n_splits=4, ks=[1, 2], n_inner_splits=3)
    data = load_fold(make_arrays(make_cohort()), protocol, "random", 0.3, 0, 0)
    score_fold(method, data, protocol, seed=0)
    assert [n_trees for _, n_trees in asked] == [5, 5, 5, 100]
    assert asked[-1][0] == data.training.samples.y.size
    assert method.describe() != Method("rough", Counting()).describe()


def test_tuning_maximises_what_the_protocol_says():
    table = make_cohort(seed=5, effect=1.0)
    by_loss, by_count = (
        run("ANOVA F", Protocol(n_splits=4, ks=[1, 3, 6, 12], tuned_by=criterion), table)
        for criterion in ("subject_neg_log_loss", "balanced_accuracy")
    )
    picks = [[row["params"] for row in one.rows] for one in (by_loss, by_count)]
    assert picks[0] != picks[1]


def test_oracle_and_grid_keep_every_setting():
    protocol = Protocol(n_splits=4, ks=[2, 4], tuning="oracle", svm_costs=[0.1, 1.0])
    assert len(run("IDFS-MEC", protocol).rows) == 42 * 2 * 2
    grid = run("IDFS-MEC", protocol.with_changes(tuning="grid"))
    assert len(grid.rows) == 42 * 2
    assert not any(row["chosen"] for row in grid.rows)
    settings = [json.loads(row["params"]) for row in grid.rows]
    assert {one["lam"] for one in settings} == {10.0**power for power in range(-3, 4)}


@pytest.mark.parametrize("method", ["all features", "gradient boosting"])
def test_lines_without_selection_use_all_features(method):
    (row,) = run(method, Protocol(n_splits=4)).rows
    assert row["k"] == 12
    assert row["chosen"]


def test_three_classes_are_scored():
    table = make_cohort(n_subjects=27, n_classes=3, effect=3.0)
    result = run("IDFS-MEC", Protocol(n_splits=3, ks=[2, 4]), table, rate=0.1)
    (chosen,) = [row for row in result.rows if row["chosen"]]
    assert chosen["balanced_accuracy"] > 0.5
    assert 0.5 < chosen["roc_auc"] <= 1


@pytest.mark.parametrize("imputer", ["mean", "indicators"])
@pytest.mark.parametrize("method", ["ANOVA F", "CD-LSR"])
def test_a_classifier_asked_for_many_sets_gives_what_one_asked_for_each_gives(imputer, method):
    protocol = Protocol(n_splits=4, ks=[1, 4, 7], n_inner_splits=3)
    data = load_fold(make_arrays(make_cohort()), protocol, "random", 0.4, 0, 0)
    (own,) = with_parts(find_methods([method]), imputer)
    single = replace(own, classifier=Classifier("svm", SingleSVM()))
    for one, other in zip(
        *(score_fold(each, data, protocol, seed=0).rows for each in (own, single)), strict=True
    ):
        assert one == pytest.approx(other)
