"""The registry: one list of methods that decides what runs, is tuned, coloured and completed."""

import json
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, accuracy, train_model
from idfsmec.prediction import (
    CLASSIFIERS,
    IMPUTERS,
    METHODS,
    Method,
    load_model,
    methods,
    register_classifier,
    register_imputer,
    register_method,
    save_model,
)
from idfsmec.prediction.folds import make_folds
from idfsmec.prediction.methods import find_methods
from idfsmec.prediction.sanity import AnovaF, ColumnOrder, ForestImportance, RandomOrder
from idfsmec.selection import CDLSR, IDFSMEC, MRMR, PSNSGA, RFS, ReliefF
from tests.evaluation.cohorts import comparable, make_cohort

PROTOCOL = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)


@pytest.fixture
def registries():
    """What a test registers is gone afterwards."""
    before = [(registry, dict(registry)) for registry in (METHODS, IMPUTERS, CLASSIFIERS)]
    yield
    for registry, entries in before:
        registry.clear()
        registry.update(entries)


def run(out, names, table=None, **changes):
    table = make_cohort() if table is None else table
    protocol = PROTOCOL.with_changes(**changes)
    return accuracy(table, out, methods=names, protocol=protocol, n_jobs=1)


class TestLookingUp:
    def test_an_unknown_method_is_refused_with_the_choices(self):
        said = r"no method 'mrmr2', did you mean 'mRMR'\? Choose from IDFS-MEC.*ANOVA F"
        with pytest.raises(InputError, match=said):
            find_methods(["mrmr2"])

    def test_a_name_given_twice_is_refused(self):
        with pytest.raises(InputError, match="'IDFS-MEC' is given twice"):
            find_methods(["IDFS-MEC", METHODS["IDFS-MEC"]])

    def test_nothing_is_refused(self):
        with pytest.raises(InputError, match="no methods to compare"):
            find_methods([])

    def test_the_default_is_all_methods_and_the_sanity_lines(self):
        found = find_methods()
        assert found[0].name == "IDFS-MEC"
        assert [one.family for one in found[-5:]] == ["sanity"] * 5
        assert "ablation" not in {one.family for one in found}

    def test_a_method_whose_package_is_missing_is_left_out_or_refused(self, registries):
        register_method("far", AnovaF(), family="filter", needs="no_such_package")
        assert "far" not in [one.name for one in find_methods()]
        with pytest.raises(InputError, match="'far' needs the package 'no_such_package'"):
            find_methods(["far"])

    def test_names_are_known_without_waiting_for_scikit_learn(self):
        code = "import sys, idfsmec.prediction.methods as m; m.find_methods(); "
        code += "print('sklearn' in sys.modules)"
        path = {"PYTHONPATH": ":".join(sys.path)}
        said = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True)
        assert said.stdout.strip() == b"False", said.stderr


class TestBuiltIn:
    def test_families_and_abilities_are_those_of_the_methods(self):
        families = {name: one.family for name, one in METHODS.items()}
        assert [name for name, one in families.items() if one == "proposed"] == ["IDFS-MEC"]
        assert [name for name, one in families.items() if one == "wrapper"] == ["PS-NSGA"]
        taking = {name for name, one in METHODS.items() if one.family != "ablation"}
        assert {name for name in taking if METHODS[name].takes_missing} == {"IDFS-MEC"}
        assert [name for name in taking if METHODS[name].depends_on_k] == ["CD-LSR"]
        assert METHODS["PS-NSGA"].needs == "pymoo"

    @pytest.mark.parametrize("name", [n for n, one in METHODS.items() if one.family != "sanity"])
    def test_a_fresh_selector_ranks_all_features(self, name):
        quick = {"n_generations": 1} if name == "PS-NSGA" else {}
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 5)), np.arange(40) % 2
        selector = METHODS[name].build(n_features_to_select=2, random_state=3, **quick).fit(X, y)
        assert sorted(selector.ranking_) == [1, 2, 3, 4, 5]
        assert selector.support_.sum() == 2

    def test_building_leaves_the_entry_as_it_is(self):
        METHODS["PS-NSGA"].build(random_state=42, n_generations=1)
        expected = PSNSGA(random_state=0, max_samples=600).get_params()
        assert METHODS["PS-NSGA"].build().get_params() == expected

    def test_nested_tuning_tries_the_whole_default_grid_of_the_proposed_method(self):
        settings = METHODS["IDFS-MEC"].settings
        assert {one["lam"] for one in settings} == {10.0**power for power in range(-3, 4)}
        assert {one["gamma"] for one in settings} == {1.1, 1.5, 2.0, 3.0, 5.0, 9.0}
        assert len(settings) == 42

    def test_cd_lsr_shares_its_products_between_k_and_ranks_as_separate_fits(self, tmp_path):
        alone = Method("CD-LSR", OnItsOwn(random_state=0), depends_on_k=True)
        together = run(tmp_path / "together", ["CD-LSR"])
        apart = run(tmp_path / "apart", [alone])
        for one, other in zip(comparable(together), comparable(apart), strict=True):
            assert_frame_equal(one, other, check_exact=True)


class OnItsOwn(CDLSR):
    """Offers no short cut for several numbers of features."""

    rank_grid = None


class Counting(AnovaF):
    """Notes how many samples of each class every fit sees."""

    seen: ClassVar[list] = []

    def fit(self, X, y):
        self.seen.append(np.bincount(y).tolist())
        return super().fit(X, y)


def test_a_method_may_rank_inner_folds_on_some_of_their_samples(tmp_path):
    Counting.seen.clear()
    results = run(tmp_path, [Method("counting", Counting(), inner_samples=10)])
    assert len(results.scores)
    assert [sum(counts) for counts in Counting.seen].count(10) >= 2
    assert all(min(counts) > 0 for counts in Counting.seen)
    assert max(sum(counts) for counts in Counting.seen) > 10


class TestRegistering:
    def test_a_users_method_is_known_by_name_and_runs(self, registries, tmp_path):
        settings = {"n_neighbors": [3, 5]}
        register_method("near", ReliefF(), family="filter", label="near ones", settings=settings)
        assert METHODS["near"].settings == ({"n_neighbors": 3}, {"n_neighbors": 5})
        results = run(tmp_path, ["near"])
        picked = {json.loads(text)["n_neighbors"] for text in results.scores["params"]}
        assert picked <= {3, 5}
        known = {"family": "filter", "label": "near ones", "classifier": "svm"}
        assert results.methods["near"] == known

    def test_a_name_is_replaced_only_if_that_is_said(self, registries):
        with pytest.raises(InputError, match=r"a method 'mRMR' already; .*overwrite=True"):
            register_method("mRMR", MRMR(), family="filter")
        register_method("mRMR", MRMR(method="MIQ"), family="filter", overwrite=True)
        assert METHODS["mRMR"].build().method == "MIQ"

    def test_replacing_an_entry_changes_what_runs_and_what_is_tuned(self, registries, tmp_path):
        before = run(tmp_path / "before", ["IDFS-MEC", "RFS"])
        register_method("IDFS-MEC", AnovaF(), family="proposed", overwrite=True)
        register_method("RFS", RFS(), family="embedded", settings=[{"gamma": 7.0}], overwrite=True)
        after = run(tmp_path / "after", ["IDFS-MEC", "RFS"])
        parameters = {name: set(own["params"]) for name, own in after.scores.groupby("method")}
        assert parameters == {"IDFS-MEC": {'{"C": 0.1}'}, "RFS": {'{"C": 0.1, "gamma": 7.0}'}}
        assert before.ranking["channel_weight"].notna().all()
        assert after.ranking["channel_weight"].isna().all()  # the new one has none

    @pytest.mark.parametrize("name", ["a,b", " "])
    def test_a_name_that_no_list_could_hold_is_refused(self, name):
        with pytest.raises(InputError, match="a name without commas"):
            Method(name, MRMR())

    def test_an_unknown_family_is_refused(self):
        with pytest.raises(InputError, match="family is 'magic'; choose from proposed, filter"):
            Method("x", MRMR(), "magic")

    def test_parameters_that_the_selector_lacks_are_refused(self):
        with pytest.raises(InputError, match="SelectKBest has no parameter 'n_features_to_select"):
            Method("k best", SelectKBest())
        with pytest.raises(InputError, match="MRMR has no parameter 'alpha'"):
            Method("x", MRMR(), settings={"alpha": [1, 2]})
        with pytest.raises(InputError, match="MRMR has no parameter 'n_trees'"):
            Method("x", MRMR(), inner={"n_trees": 5})

    def test_entries_are_read_only(self):
        with pytest.raises(AttributeError):
            METHODS["RFS"].label = "mine"

    def test_descriptions_are_json_and_tell_parameters_apart(self):
        texts = {
            json.dumps(Method("x", IDFSMEC(tol=tol)).describe(), sort_keys=True)
            for tol in (1e-6, 1e-5)
        }
        assert len(texts) == 2


class TestParts:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_users_imputer_and_classifier_run_by_name_in_any_process(
        self, registries, tmp_path, n_jobs
    ):
        register_imputer("nearest", KNNImputer(n_neighbors=3))
        register_classifier("1-NN", KNeighborsClassifier(1))
        own = Method("own", AnovaF(), imputer="nearest", classifier="1-NN")
        plain = Method("plain", AnovaF())
        results = accuracy(
            make_cohort(effect=1.0),
            tmp_path,
            methods=[own, plain],
            protocol=PROTOCOL,
            n_jobs=n_jobs,
        )
        assert len(results.failures) == 0
        assert set(results.scores.groupby("method")["params"].first()) == {"{}", '{"C": 0.1}'}
        first = results.selections.groupby("method")["ranking"].apply(list)
        assert len(first["own"]) == len(first["plain"]) == 2

    def test_an_imputer_is_told_the_channel_of_each_column(self, registries, tmp_path):
        class ChannelMean(KNNImputer):
            def __init__(self, channels=None):
                super().__init__()
                self.channels = channels

            def fit(self, X, y=None):
                assert len(self.channels) == X.shape[1]
                return super().fit(X)

        register_imputer("by channel", ChannelMean())
        results = run(tmp_path, [Method("own", AnovaF(), imputer="by channel")])
        assert len(results.failures) == 0

    def test_unknown_parts_are_refused_with_the_choices(self, tmp_path):
        with pytest.raises(InputError, match="no imputer 'magic'; choose from mean"):
            run(tmp_path, [Method("x", AnovaF(), imputer="magic")])
        with pytest.raises(InputError, match="no classifier 'magic'; choose from svm, logistic"):
            run(tmp_path, [Method("x", AnovaF(), classifier="magic")])


def test_a_method_that_depends_on_k_is_fitted_for_each_k(tmp_path):
    class Picky(AnovaF):
        def fit(self, X, y):
            super().fit(X, y)
            if self.n_features_to_select == 2:
                self.ranking_ = self.ranking_[::-1].copy()
            return self

    results = run(tmp_path, [Method("p", Picky(), depends_on_k=True)], ks=[2], tuning="grid")
    more = run(tmp_path / "4", [Method("p", Picky(), depends_on_k=True)], ks=[4], tuning="grid")
    assert results.selections["ranking"][0] != more.selections["ranking"][0][:2]


@pytest.mark.parametrize(
    "selector",
    [ColumnOrder(), RandomOrder(random_state=3), AnovaF(), ForestImportance(random_state=3)],
)
def test_sanity_lines_rank_all_features_and_repeat_themselves(selector):
    X, y = np.random.default_rng(0).normal(size=(40, 6)), np.arange(40) % 2
    first = selector.fit(X, y).ranking_
    assert sorted(first) == [1, 2, 3, 4, 5, 6]
    assert (selector.fit(X, y).ranking_ == first).all()
    assert not Method("s", selector).takes_missing


@pytest.mark.slow
def test_informed_sanity_lines_find_the_planted_features(tmp_path):
    results = run(tmp_path, ["ANOVA F", "random forest"], make_cohort(effect=3.0))
    for ranking in results.selections["ranking"]:
        assert set(ranking[:2]) == {"E1__f1", "E2__f1"}


def test_a_forest_of_trees_that_see_some_samples_ranks_like_one_that_sees_all():
    rng = np.random.default_rng(0)
    y = (np.arange(600) % 10 == 0).astype(int)  # few of one class
    X = rng.normal(size=(600, 30)) + y[:, None] * np.linspace(3.0, 0.0, 30)
    theirs = RandomForestClassifier(200, class_weight="balanced", random_state=0).fit(X, y)
    ours = ForestImportance(random_state=0, max_samples=100).fit(X, y)
    assert spearmanr(ours.scores_, theirs.feature_importances_)[0] > 0.9
    assert set(np.argsort(ours.ranking_)[:4]) <= set(range(8))


def test_huge_numbers_do_a_forest_no_harm():
    X, y = np.random.default_rng(0).normal(size=(40, 6)), np.arange(40) % 2
    X[:, 4] = np.where(y == 1, 1e300, -1e300)
    assert ForestImportance(n_estimators=20, random_state=0).fit(X, y).ranking_[4] == 1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_anova_gives_the_f_statistic(n_classes):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(50) % n_classes)
    X = rng.normal(size=(50, 7)) * 10.0 ** np.arange(-3, 4) + y[:, None] * [0, 0, 0, 0, 1, 10, 90]
    assert_allclose(AnovaF().fit(X, y).scores_, f_classif(X, y)[0])
    X[:, 2] = y  # tells all
    assert AnovaF().fit(X + 1e6, y).ranking_[2] == 1


def test_anova_puts_constant_features_last():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1] = 2.0
    assert AnovaF().fit(X, np.arange(30) % 2).ranking_[1] == 4


class OneByOne(IDFSMEC):
    """Offers no batch of settings and folds."""

    rank_grid = None


@pytest.mark.parametrize(
    "changes", [{}, pytest.param({"standardize": False}, marks=pytest.mark.slow)]
)
def test_a_batch_of_settings_and_inner_folds_ranks_as_fits_one_by_one(tmp_path, changes):
    settings = methods.settings_grid(lam=[0.01, 10.0], gamma=[1.1, 3.0])
    table = make_cohort(n_features=6, subject_spread=2.0, seed=4)
    found = []
    for kind in (IDFSMEC, OneByOne):
        method = Method("same name", kind(**changes), settings=settings)
        found.append(run(tmp_path / kind.__name__, [method], table, rates=[0.4]))
    for one, other in zip(*map(comparable, found), strict=True):
        assert_frame_equal(one, other, check_exact=True)


class TestWholeClassifiers:
    """A Pipeline of the user's own is a method as it is."""

    MINE = make_pipeline(
        SimpleImputer(), StandardScaler(), SelectKBest(k=3), LogisticRegression(C=0.1)
    )

    def test_it_takes_part_in_a_benchmark_and_is_scored_as_scikit_learn_scores_it(self, tmp_path):
        table = make_cohort()
        results = run(tmp_path, [Method("mine", self.MINE), "ANOVA F"], table, rates=[0.0])
        assert results.failures.empty
        own = results.chosen()[results.chosen()["method"] == "mine"]
        assert set(own["k"]) == {3}
        train, test = make_folds(table.y, table.subjects, n_splits=2)[1]
        model = clone(self.MINE).fit(table.X.iloc[train], table.y[train])
        values = model.decision_function(table.X.iloc[test])
        assert own["roc_auc"].iloc[1] == roc_auc_score(table.y[test] == "MDD", values)

    def test_it_says_which_columns_it_keeps(self, tmp_path):
        results = run(tmp_path, [Method("mine", self.MINE)], make_cohort(effect=3.0))
        for ranking in results.selections["ranking"]:
            assert {"E1__f1", "E2__f1"} < set(ranking)
            assert len(ranking) == 3

    def test_a_search_by_folds_of_subjects_is_given_the_subjects(self, tmp_path):
        grid = {"logisticregression__C": [0.01, 1.0]}
        search = GridSearchCV(self.MINE, grid, cv=GroupKFold(2))
        results = run(tmp_path, [Method("search", search)])
        assert results.failures.empty
        assert set(results.scores["k"]) == {3}  # what the estimator that it chose keeps

    def test_it_is_trained_and_kept_by_its_name(self, registries, tmp_path):
        register_method("mine", self.MINE)
        table = make_cohort(effect=2.0)
        model = train_model(table, "mine", n_splits=2, n_repeats=1)
        assert model.performance["metrics"]["roc_auc"]["mean"] > 0.8
        again = load_model(save_model(model, tmp_path / "mine.skops"))
        expected = clone(self.MINE).fit(table.X, table.y).predict_proba(table.X)
        assert_allclose(again.estimator.predict_proba(table.X), expected)

    def test_what_cannot_be_is_refused(self):
        with pytest.raises(InputError, match=r"a whole classifier.*with GridSearchCV"):
            Method("mine", self.MINE, settings={"k": [1, 2]})
        silent = make_pipeline(SimpleImputer(), LinearSVC())
        with pytest.raises(InputError, match=r"no predict_proba.*CalibratedClassifierCV"):
            train_model(make_cohort(), silent)
