import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, accuracy, cost, imputation
from idfsmec.features import extract_to_file
from idfsmec.missing import simulate_missing
from idfsmec.prediction.methods import CLASSIFIERS, IMPUTERS, Method
from idfsmec.prediction.sanity import AnovaF
from idfsmec.recordings import simulate_cohort
from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable

from .cohorts import OURS, make_cohort

pytestmark = pytest.mark.slow

PROTOCOL = Protocol(rates=[0.3], n_splits=2, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
HERE = {"n_jobs": 1}


def test_cost_measures_seconds_for_each_number_of_channels(tmp_path):
    table = make_cohort(n_channels=6)
    results = cost(table, tmp_path, methods=["IDFS-MEC", "mRMR"], channel_counts=[2, 6])
    counts = results.scores.groupby(["method", "n_channels"])["seconds"].count()
    assert set(counts.index.unique("n_channels")) == {2, 6}
    assert (results.scores["seconds"] > 0).all()
    assert results.scores["accuracy"].isna().all()
    assert set(results.selections["table"]) == {"table"}
    small = results.selections[results.selections["n_channels"] == 2]
    assert {name[:2] for name in np.concatenate(small["ranking"].to_list())} == {"E1", "E6"}


def test_the_cost_keeps_to_the_options_that_are_given(tmp_path):
    protocol = {"rates": [0.1], "n_splits": 2, "ks": [3]}
    results = cost(
        make_cohort(), tmp_path, methods=["mRMR"], channel_counts=[4], protocol=protocol
    )
    kept = results.protocol["experiments"]["cost"]
    assert (kept["tuning"], kept["rates"], kept["n_splits"]) == ("time", [0.1], 2)
    assert set(results.scores["k"]) == {3}


def head_cohort(**options):
    """The usual cohort, with names of channels that are somewhere on the head."""
    table = make_cohort(**options)
    names = dict(zip(table.channels, ["Fz", "Cz", "Pz", "Oz"], strict=True))
    X = table.X.rename(
        columns=lambda name: names[name.split("__")[0]] + "__" + name.split("__")[1]
    )
    return FeatureTable(X, table.y, table.subjects)


def test_fillers_are_compared_on_the_same_folds(tmp_path):
    protocol = PROTOCOL.with_changes(rates=[0.0, 0.5])
    methods = [OURS, "ANOVA F", "all features"]
    results = imputation(head_cohort(), tmp_path, methods=methods, protocol=protocol, **HERE)
    assert results.failures.empty
    means = results.mean_scores("subject_roc_auc", "imputation")
    assert means.index.names == ["table", "pattern", "method", "imputer"]
    assert set(means.index.unique("method")) == {"IDFS-MEC", "ANOVA F", "all features"}
    assert list(means.index.unique("imputer")) == list(IMPUTERS)
    # Without gaps a filler has nothing to do.
    assert means[0.0].groupby("method").nunique().max() == 1
    assert means[0.5].groupby("method").nunique().min() > 1
    assert (results.selections.groupby("imputer").size() == 12).all()


def test_imputers_are_compared_for_three_methods_by_default(tmp_path):
    table, protocol = make_cohort(effect=3.0, n_channels=8), PROTOCOL.with_changes(ks=[2])
    results = imputation(table, tmp_path, imputers=["mean"], protocol=protocol, **HERE)
    assert set(results.scores["method"]) == {"IDFS-MEC", "ANOVA F", "all features"}


def test_one_classifier_serves_all_methods(tmp_path):
    how = {"methods": [OURS, "mRMR"], "protocol": PROTOCOL, **HERE}
    usual = accuracy(make_cohort(), tmp_path, **how).scores["roc_auc"].to_list()
    ridge = accuracy(make_cohort(), tmp_path, classifier="ridge", **how)
    assert ridge.failures.empty
    assert ridge.scores["roc_auc"].to_list() != usual
    with pytest.raises(InputError, match="no classifier 'magic'; choose from svm, logistic"):
        accuracy(make_cohort(), tmp_path, classifier="magic", **how)


def test_all_imputers_are_compared_by_default(tmp_path):
    results = imputation(make_cohort(), tmp_path, methods=["ANOVA F"], protocol=PROTOCOL, **HERE)
    assert set(results.scores["imputer"]) == set(IMPUTERS)


def test_one_filler_serves_all_methods(tmp_path):
    how = {"methods": [OURS, "mRMR"], "protocol": PROTOCOL, **HERE}
    near = accuracy(make_cohort(), tmp_path, imputer="neighbours", **how)
    assert set(near.scores["imputer"]) == {"neighbours"}
    mean = accuracy(make_cohort(), tmp_path, imputer="mean", **how)
    assert set(mean.scores["imputer"]) == {"mean"}
    assert near.scores["roc_auc"].to_list() != mean.scores["roc_auc"].to_list()
    with pytest.raises(InputError, match="no imputer 'magic'; choose from mean, neighbours"):
        accuracy(make_cohort(), tmp_path, imputer="magic", **how)


@pytest.mark.parametrize("classifier", list(CLASSIFIERS))
def test_every_classifier_ends_a_method(classifier, tmp_path):
    method = Method("mine", AnovaF(), classifier=classifier)
    results = accuracy(
        make_cohort(effect=2.0), tmp_path, methods=[method], protocol=PROTOCOL, **HERE
    )
    assert results.failures.empty
    assert results.chosen()["subject_roc_auc"].mean() > 0.7


def test_more_channels_than_there_are_cannot_be_measured(tmp_path):
    with pytest.raises(InputError, match="table table has 4 channels, not 9"):
        cost(make_cohort(), tmp_path, methods=["mRMR"], channel_counts=[9])


def test_planted_features_and_channels_come_first_also_with_gaps(tmp_path):
    table = make_cohort(n_subjects=30, n_channels=6, n_features=12, effect=1.5)
    protocol = PROTOCOL.with_changes(rates=[0.0, 0.5], ks=[4, 8])
    results = accuracy(table, tmp_path, methods=["IDFS-MEC"], protocol=protocol, **HERE)
    weights = results.ranking.groupby("channel")["channel_weight"].first()
    assert set(weights.nlargest(2).index) == {"E1", "E2"}
    top = results.ranking.head(4)
    planted = {("E1", "f1"), ("E2", "f1")}
    assert planted <= set(zip(top["channel"], top["feature"], strict=True))
    hits = [len({"E1__f1", "E2__f1"} & set(r[:8])) for r in results.selections["ranking"]]
    assert np.mean(hits) > 1.5


@pytest.fixture(scope="module")
def strong_cohort(tmp_path_factory):
    """Recordings whose groups differ much in one band of five channels, and their table."""
    cohort = simulate_cohort(24, 19, effect_size=3.0, duration=30, random_state=0)
    path = tmp_path_factory.mktemp("strong") / "table.parquet"
    extract_to_file(cohort.recordings, path, n_jobs=1)
    return cohort, FeatureTable.read(path)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5])
def test_what_is_planted_in_recordings_comes_first(strong_cohort, rate):
    cohort, table = strong_cohort
    gappy = simulate_missing(table, rate, random_state=0) if rate else table
    selector = IDFSMEC().fit(gappy.X, table.y)
    heaviest = selector.channel_names_[np.argsort(-selector.channel_weights_)]
    assert set(heaviest[:5]) == set(cohort.informative_channels)
    # A difference shows in features that say nearly the same; the method keeps one of them.
    first = table.X.columns[np.argsort(selector.ranking_)[:10]].intersection(
        cohort.informative_features
    )
    assert len({name.split("__")[0] for name in first}) >= 4
