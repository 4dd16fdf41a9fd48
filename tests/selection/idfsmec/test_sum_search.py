"""Summaries choose the redundancy weight by what channels cost on people held out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from idfsmec import IDFSMEC, IDFSMECCV, FeatureTable, summarise
from idfsmec._groups import name_folds
from idfsmec.errors import InputError
from idfsmec.solver import Options, channel_weights, clipped_error, solve_channels, table_moments
from tests.summaries.test_summaries import assert_same_ranking, by_person, cohort

pytestmark = [
    pytest.mark.filterwarnings("ignore:Missing channels are associated with the label"),
    pytest.mark.filterwarnings("ignore:Channels that carry nothing"),
]


def losses(search):
    """Of every lam on every fold."""
    results = search.cv_results_
    return -np.stack([results[name] for name in results if name.startswith("split")], axis=1)


@settings(max_examples=3)
@given(st.integers(0, 2**16), st.integers(2, 5), st.sampled_from([0.0, 0.3]))
def test_any_split_of_people_into_sites_chooses_as_all_rows_in_one_table(seed, n_sites, missing):
    table = cohort(40, seed % 50, missing=missing)
    rng = np.random.default_rng(seed)
    site = {name: rng.integers(n_sites) for name in table.subjects.unique()}
    shared = [summarise(one, min_people=1) for one in by_person(table, site)]
    found = IDFSMECCV().fit_summaries(shared)
    wanted = IDFSMECCV().fit_summaries([summarise(table, min_people=1)])
    assert found.best_params_ == wanted.best_params_
    assert_allclose(losses(found), losses(wanted), rtol=0, atol=1e-9)
    assert found.best_score_ == pytest.approx(wanted.best_score_, abs=1e-9)
    assert_same_ranking(found, wanted)


def by_loops(table, lams, gamma):
    """Weighted loss of channels on each fold, from rows."""
    X, codes = table.X.to_numpy(), (table.y == "MDD").to_numpy().astype(int)
    names, fold = table.subjects.to_numpy(), name_folds(table.subjects, 4, 2)
    channels = np.array([column.split("__")[0] for column in table.X.columns])
    columns = [np.flatnonzero(channels == one) for one in dict.fromkeys(channels)]
    options = Options(lam_samples=1000.0, tol=1e-2, same_path=True)
    error = np.zeros((8, len(columns), len(lams), 2))
    count = np.zeros((8, len(columns), 1, 2))
    for at, (deal, one) in enumerate(np.ndindex(2, 4)):
        train = fold[deal] != one
        fits = solve_channels([table_moments(X[train], codes[train], 2, columns)], lams, options)
        for channel, lam, k in np.ndindex(len(columns), len(lams), 2):
            own = columns[channel]
            rows = ~train & (codes == k) & ~np.isnan(X[:, own]).any(axis=1)
            people = np.unique(names[rows])
            means = np.array([X[rows & (names == p)][:, own].mean(0) for p in people])
            said = (means - fits.centres[0, own]) @ fits.coefficients[0, lam][:, own].T
            said = said + fits.class_shares[0, channel]
            off = clipped_error(said.mean(0), said.var(0), np.eye(2)[k]).sum()
            error[at, channel, lam, k] = off * people.size
            count[at, channel, 0, k] = people.size
    shares = np.bincount(codes) / codes.size  # everybody has some channel
    whole = (error.sum(0) / count.sum(0)) @ shares
    alpha = np.stack([channel_weights(own, gamma) for own in whole.T], axis=1)
    return np.sum((error / count) @ shares * alpha, axis=1).T


def test_the_criterion_is_that_of_loops_over_rows():
    table, lams = cohort(60, seed=3, missing=0.1, per_person=2), [0.1, 1.0, 100.0]
    assert table.X.notna().any(axis=1).all()
    search = IDFSMECCV(lams=lams).fit_summaries([summarise(table, min_people=1)])
    assert_allclose(losses(search), by_loops(table, lams, 2.0), rtol=1e-6)


def test_the_default_is_left_for_a_gain_of_one_standard_error():
    for seed in range(4):
        table = cohort(40, seed, missing=0.1)
        search = IDFSMECCV().fit_summaries([summarise(table, min_people=1)])
        scores = -losses(search)
        usual, best = 3, int(scores.mean(axis=1).argmax())
        gains = scores[best] - scores[usual]
        clear = gains.mean() > gains.std(ddof=1) / np.sqrt(gains.size)
        assert search.best_index_ == (best if clear else usual)
        assert search.best_params_["lam"] == search.lams[search.best_index_]


def test_the_rest_stays_as_near_to_the_defaults_as_the_grid_allows():
    shared = [summarise(cohort(60), min_people=1)]
    grid = {"gammas": [9.0, 1.9, 1.1], "n_features_to_select": [3, 12], "lams": [0.9]}
    search = IDFSMECCV(**grid).fit_summaries(shared)
    assert search.best_params_ == {"lam": 0.9, "gamma": 1.9, "n_features_to_select": 12}
    plain = IDFSMEC(lam=0.9, gamma=1.9, n_features_to_select=12).fit_summaries(shared)
    assert_same_ranking(search, plain)
    assert search.get_feature_names_out().tolist() == plain.get_feature_names_out().tolist()
    assert np.isnan(search.best_cost_)
    assert search.classes_.tolist() == ["HC", "MDD"]


@pytest.mark.parametrize("options", [{"channel_loss": "in-sample"}, {"channel_weighting": False}])
def test_channels_that_are_weighed_otherwise_are_judged_by_the_same_loss(options):
    shared = [summarise(cohort(60), min_people=1)]
    plain, search = (IDFSMECCV(**own).fit_summaries(shared) for own in ({}, options))
    assert losses(search).shape == losses(plain).shape
    alpha = IDFSMECCV(lams=[1.0], **options).fit_summaries(shared).channel_weights_
    assert alpha.sum() == pytest.approx(1.0)
    if "channel_weighting" in options:
        assert_allclose(alpha, 1 / alpha.size)
        # Weights that follow the loss make the mean of losses smaller.
        assert (losses(search).mean(axis=1) > losses(plain).mean(axis=1)).all()


def test_people_who_are_too_few_for_folds_are_refused():
    table = cohort(4)
    own = FeatureTable(table.X, table.y, np.where(table.y == "HC", "a", "b"))
    with pytest.raises(InputError, match="Choosing lam needs folds of people of each class"):
        IDFSMECCV().fit_summaries([summarise(own, min_people=1)])


@pytest.mark.slow
def test_it_does_not_lose_against_the_default_on_planted_features():
    # Seeds that nothing was chosen by; every source of a channel is there twice.
    found = {"tuned": 0, "default": 0}
    for seed in range(200, 206):
        rng = np.random.default_rng(seed)
        y = np.arange(120) % 2
        sources = rng.normal(size=(120, 8, 3))
        sources[:, :3, :2] += 0.9 * y[:, None, None]
        X = np.concatenate([sources, sources], axis=2) + 0.3 * rng.normal(size=(120, 8, 6))
        X[rng.random((120, 8)) < 0.2] = np.nan
        columns = [f"c{v}__{j}" for v in range(8) for j in range(6)]
        frame = pd.DataFrame(X.reshape(120, -1), columns=columns)
        table = FeatureTable(frame, np.where(y, "b", "a"), [f"{seed}-{i}" for i in range(120)])
        shared = [summarise(table, min_people=1)]
        for name, own in (("tuned", IDFSMECCV()), ("default", IDFSMEC())):
            leading = np.argsort(own.fit_summaries(shared).ranking_)[:6]
            sources_met = {(j // 6, j % 6 % 3) for j in leading if j // 6 < 3 and j % 6 % 3 < 2}
            found[name] += len(sources_met)
    assert found["tuned"] >= found["default"]
