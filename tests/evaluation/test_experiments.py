import numpy as np
import pytest

from idfsmec.errors import InputError
from idfsmec.evaluation import Protocol, accuracy, cost
from idfsmec.features import extract_to_file
from idfsmec.missing import make_gaps
from idfsmec.recordings import simulate_cohort
from idfsmec.selection import IDFSMEC
from idfsmec.table import FeatureTable

from .cohorts import make_cohort

PROTOCOL = Protocol(rates=[0.3], n_splits=3, ks=[2, 4], svm_costs=[0.1], n_inner_splits=2)
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
    gappy = make_gaps(table, rate, random_state=0) if rate else table
    selector = IDFSMEC().fit(gappy.X, table.y)
    heaviest = selector.channel_names_[np.argsort(-selector.channel_weights_)]
    assert set(heaviest[:5]) == set(cohort.informative_channels)
    # A difference shows in features that say nearly the same; the method keeps one of them.
    first = table.X.columns[np.argsort(selector.ranking_)[:10]].intersection(
        cohort.informative_features
    )
    assert len({name.split("__")[0] for name in first}) >= 4
