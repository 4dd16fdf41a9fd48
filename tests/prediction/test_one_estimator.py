"""One estimator of a method: selection, training and benchmark choose and keep the same."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.model_selection import StratifiedGroupKFold, cross_validate

from idfsmec.evaluation import Protocol, train_model
from idfsmec.evaluation.tasks import score_fold
from idfsmec.missing import simulate_missing
from idfsmec.prediction import IDFSMECCV, METHODS, SiteHarmonizer, TunedPipeline
from idfsmec.prediction.samples import FoldSamples, Samples, TrainingSamples
from idfsmec.selection import MRMR
from idfsmec.table import FeatureTable
from tests.cli.test_select import run
from tests.conftest import make_channels
from tests.evaluation.cohorts import make_cohort


def few_epochs():
    return make_cohort(30, 3, 6, 5, effect=0.7, seed=3)


def missing_channels():
    return simulate_missing(make_cohort(40, 2, 5, 6, effect=1.0, seed=5), 0.3, random_state=1)


def one_row_each():
    X, y, channels = make_channels(90, 5, 6, missing=0.2, seed=8)
    columns = [f"{channel}__f{place % 6}" for place, channel in enumerate(channels)]
    return FeatureTable(pd.DataFrame(X, columns=columns), y, np.arange(90))


@pytest.mark.parametrize("make", [few_epochs, missing_channels, one_row_each])
def test_search_select_train_and_benchmark_keep_the_same_features(make, tmp_path):
    table = make()
    columns = np.array(table.X.columns)

    search = IDFSMECCV().fit(table.X, table.y)
    number = search.best_params_["n_features_to_select"]
    features = columns[np.argsort(search.ranking_)][:number].tolist()
    chosen = {**search.best_params_, "C": search.best_cost_}

    trained = train_model(table, "IDFS-MEC", n_splits=2, n_repeats=1).estimator
    assert {**trained.best_params_, "C": trained.best_cost_} == chosen
    assert columns[np.argsort(trained.ranking_)][:number].tolist() == features

    samples = Samples.of("table", table)
    held_out = samples.take(np.arange(4))
    fold = FoldSamples(TrainingSamples(samples), held_out, np.arange(4))
    result = score_fold(METHODS["IDFS-MEC"].resolve(), fold, Protocol(), seed=1)
    row = next(row for row in result.rows if row["chosen"])
    assert row["k"] == number
    tuned = {"n_features_to_select": row["k"], **json.loads(row["params"])}
    assert tuned == pytest.approx(chosen)
    assert columns[result.rankings[row["order"]][:number]].tolist() == features

    table.write(tmp_path / "t.parquet")
    done = run("select", tmp_path / "t.parquet", "-o", tmp_path / "r.csv", "--tune")
    assert done.exit_code == 0, done.text
    assert int(re.search(r"n_features_to_select = (\d+)", done.text)[1]) == number
    ranking = pd.read_csv(tmp_path / "r.csv").sort_values("rank").head(number)
    assert (ranking["channel"] + "__" + ranking["feature"]).tolist() == features


def test_all_features_are_compared():
    table = make_cohort(30, 2, 6, 5)
    search = IDFSMECCV(n_features_to_select=(10, 1.0)).fit(table.X, table.y)
    assert set(search.cv_results_["param_n_features_to_select"]) == {10, 30}


def test_a_forward_search_ends_at_the_largest_number_below_all():
    table = make_cohort(30, 2, 6, 5)
    model = TunedPipeline(MRMR(), n_features_to_select=(10, 1.0))
    training = model.check_training(table.X, table.y)
    searches = model._build_selector(training, model.counts(training))
    assert model.counts(training) == [10, 30]
    assert searches.n_features_to_select == 10


def test_splitters_of_the_user_are_not_taken_for_one_another():
    """Two splitters may have the same address, one after the other."""
    table = make_cohort(24, 2, 3, 3)
    training = TunedPipeline().check_training(table.X, table.y)
    splits = [TunedPipeline(cv=StratifiedGroupKFold(k))._inner_folds(training) for k in (2, 3, 4)]
    assert [len(folds) for folds in splits] == [2, 3, 4]


def test_sites_and_covariates_arrive_by_metadata_routing():
    rng = np.random.default_rng(0)
    table = make_cohort(40, 1, 3, 3, effect=2.0)
    sites = np.repeat(["Lund", "Oslo"], 20)
    age = rng.normal(size=40)
    X = table.X + 3 * np.outer(sites == "Oslo", np.ones(9)) + np.outer(age, np.arange(9.0))
    groups = table.subjects.to_numpy()
    with config_context(enable_metadata_routing=True):
        known = {"sites": True, "covariates": True}
        model = TunedPipeline(harmonizer=SiteHarmonizer())
        model = model.set_fit_request(groups=True, **known).set_score_request(**known)
        scores = cross_validate(
            model,
            X.reset_index(drop=True),
            table.y,
            cv=StratifiedGroupKFold(4),
            params={"groups": groups, "sites": sites, "covariates": age},
            return_estimator=True,
        )
    for fitted in scores["estimator"]:
        assert_array_equal(fitted.harmonizer_.sites_, ["Lund", "Oslo"])
        # The effect of age in each feature, which harmonizing keeps.
        assert_allclose(fitted.harmonizer_.coef_[0, 5:], np.arange(5.0, 9.0), atol=1.0)
    assert np.mean(scores["test_score"]) > 0.6
    with pytest.raises(ValueError, match="covariates has 0 columns where fit had 1"):
        fitted.predict(X, sites=sites)


def test_covariates_are_those_of_the_samples_of_a_fold():
    table = make_cohort(10, 1, 3, 3)
    samples = replace(
        Samples.of("table", table), covariates=pd.DataFrame({"age": np.arange(10.0)})
    )
    assert samples.take(np.array([7, 2])).covariates["age"].tolist() == [7.0, 2.0]
