"""Channels are weighed by what they cost on subjects they have not seen."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from idfsmec import IDFSMEC, IDFSMECCV, StabilitySelector, idfs_path
from idfsmec.solver.solve import clipped_error
from idfsmec.solver.sums import hash_samples, subject_folds

pytestmark = pytest.mark.filterwarnings("ignore:Missing channels are associated with the label")

N_CONTROLS, N_PATIENTS = 25, 29


def noise_cohort(n_with, seed, n_channels=12, n_features=6, per_subject=4):
    """Informative channels, and a last one of noise that few patients have."""
    rng = np.random.default_rng(seed)
    subjects = np.repeat(np.arange(N_CONTROLS + N_PATIENTS), per_subject)
    y = (subjects >= N_CONTROLS).astype(int)
    X = rng.normal(size=(54, n_channels, n_features))[subjects] * 0.7
    X += rng.normal(size=X.shape)
    strength = np.linspace(0.9, 0.2, n_channels - 1)
    X[:, :-1, 0] += 1.5 * strength * y[:, None]
    has = np.zeros(54, dtype=bool)
    has[rng.choice(N_CONTROLS, 22, replace=False)] = True
    has[N_CONTROLS + rng.choice(N_PATIENTS, n_with, replace=False)] = True
    X[~has[subjects], -1] = np.nan
    return X.reshape(len(y), -1), y, np.repeat(np.arange(n_channels), n_features), subjects


def rank_of_last(weights):
    return int((weights > weights[-1]).sum()) + 1


@pytest.mark.filterwarnings("ignore:Channels without information")
@pytest.mark.parametrize("n_with", [29, 15, 8, 4, 2, 1])
def test_a_noise_channel_that_few_patients_have_never_leads(n_with):
    for seed in range(3):
        X, y, channels, subjects = noise_cohort(n_with, seed)
        weights = IDFSMEC(channels).fit(X, y, subjects).channel_weights_
        assert rank_of_last(weights) > weights.size // 2


def test_on_the_training_samples_it_leads():
    X, y, channels, subjects = noise_cohort(2, 0)
    selector = IDFSMEC(channels, channel_loss="in-sample").fit(X, y, subjects)
    assert rank_of_last(selector.channel_weights_) == 1
    assert selector.held_out_loss_ is None


def test_the_loss_is_that_of_regressions_on_the_subjects_of_other_folds():
    X, y, channels, subjects = noise_cohort(8, 1, n_channels=3)
    X[np.random.default_rng(0).random(y.size) < 0.4, :6] = np.nan
    selector = IDFSMEC(channels, tol=1e-2).fit(X, y, subjects)
    shares = np.bincount(np.unique(subjects) >= N_CONTROLS) / 54
    member = np.unique(subjects, return_inverse=True)[1]
    columns = [np.flatnonzero(channels == channel) for channel in range(3)]
    folds = subject_folds(hash_samples(X, columns), member, 2)[:, member]
    for channel in range(3):
        own = channels == channel
        total, count = np.zeros(2), np.zeros(2)
        for repeat, fold in np.ndindex(2, 4):
            test, train = np.flatnonzero(folds[repeat] == fold), folds[repeat] != fold
            alone = IDFSMEC(tol=1e-2)
            table = alone.check_input(X[np.ix_(train, own)], y[train], subjects[train])
            fit = table.solve([1.0]).channels
            seen = test[~np.isnan(X[np.ix_(test, own)]).any(axis=1)]
            said = (
                fit.class_shares[0, 0]
                + (X[np.ix_(seen, own)] - fit.centres[0]) @ fit.coefficients[0, 0].T
            )
            for label in range(2):
                mine = y[seen] == label
                if mine.any():
                    who = subjects[seen][mine]
                    w = 1 / np.array([np.sum(who == name) for name in who])
                    mean = w @ said[mine] / w.sum()
                    variance = w @ (said[mine] - mean) ** 2 / w.sum()
                    error = clipped_error(mean, variance, np.eye(2)[label]).sum()
                    total[label] += w.sum() * error
                    count[label] += w.sum()
        assert selector.held_out_loss_[channel] == pytest.approx(total / count @ shares)


def test_a_channel_that_one_patient_has_gets_no_weight_and_is_named():
    X, y, channels, subjects = noise_cohort(1, 0)
    with pytest.warns(UserWarning, match=r"11 \(too few participants of a class have it"):
        selector = IDFSMEC(channels).fit(X, y, subjects)
    assert selector.channel_weights_[-1] == 0
    assert np.isinf(selector.held_out_loss_[-1])
    assert np.isfinite(selector.objective_[-1])
    assert sorted(selector.ranking_[-6:]) == list(range(67, 73))


@pytest.mark.filterwarnings("ignore:Channels without information")
def test_neither_order_nor_type_of_names_matters():
    X, y, channels, subjects = noise_cohort(4, 2)
    rows = np.random.default_rng(0).permutation(y.size)
    here = IDFSMEC(channels).fit(X, y, subjects)
    there = IDFSMEC(channels).fit(X[rows], y[rows], subjects[rows].astype(str))
    assert_allclose(here.channel_weights_, there.channel_weights_, rtol=1e-6)


def test_subjects_are_taken_from_an_index_named_subject():
    X, y, channels, subjects = noise_cohort(15, 0)
    given = IDFSMEC(channels).fit(X, y, subjects)
    frame = pd.DataFrame(X, index=pd.Index(subjects, name="subject")).add_prefix("x__")
    assert_array_equal(IDFSMEC(channels).fit(frame, y).scores_, given.scores_)
    assert not np.array_equal(IDFSMEC(channels).fit(X, y).scores_, given.scores_)


def test_grid_and_path_give_what_single_fits_give():
    X, y, channels, subjects = noise_cohort(15, 3)
    selector = IDFSMEC(channels)
    held_out = [np.flatnonzero(subjects % 3 == part) for part in range(3)]
    settings = [{"lam": 0.1}, {"lam": 10.0, "gamma": 1.1}]
    ranks = selector.rank_grid(X, y, settings, held_out=held_out, groups=subjects)
    for fold, test in enumerate(held_out):
        train = np.setdiff1d(np.arange(y.size), test)
        for place, setting in enumerate(settings):
            alone = IDFSMEC(channels, **setting).fit(X[train], y[train], subjects[train])
            assert_array_equal(ranks[fold, place], alone.ranking_)
    path = idfs_path(X, y, channels=channels, groups=subjects, lams=[0.1, 10.0], gammas=[1.1])
    alone = IDFSMEC(channels, lam=10.0, gamma=1.1).fit(X, y, subjects)
    assert_allclose(path.channel_weights[1, 0], alone.channel_weights_)


@pytest.mark.filterwarnings("ignore:Channels without information")
def test_halves_of_the_subjects_do_not_select_the_noise_channel():
    X, y, channels, subjects = noise_cohort(4, 0)
    stable = StabilitySelector(
        channels=channels, n_features_to_select=5, n_resamples=10, random_state=0
    ).fit(X, y, groups=subjects)
    assert stable.channel_frequencies_[-1] == 0


def test_with_one_subject_of_a_class_the_training_samples_judge():
    X, y, channels, subjects = noise_cohort(29, 0)
    some = (subjects < 10) | (subjects == 40)  # one patient
    with pytest.warns(UserWarning, match="too few participants to hold out some of each class"):
        selector = IDFSMEC(channels).fit(X[some], y[some], subjects[some])
    plain = IDFSMEC(channels, channel_loss="in-sample").fit(X[some], y[some], subjects[some])
    assert_allclose(selector.scores_, plain.scores_, rtol=1e-9)


def test_large_tables_have_one_repeat():
    X, y, channels, subjects = noise_cohort(29, 0)
    often = np.tile(X, (90, 1)), np.tile(y, 90), np.tile(subjects, 90)
    plain = IDFSMEC(channels).fit(X, y, subjects)
    large = IDFSMEC(channels).fit(often[0], often[1], often[2])
    assert_allclose(large.objective_, plain.objective_, rtol=1e-3)
    assert not np.allclose(large.held_out_loss_, plain.held_out_loss_, rtol=1e-3)


def test_lam_means_the_same_for_any_number_of_samples():
    X, y, channels, _ = noise_cohort(29, 4)
    plain = {"channels": channels, "channel_loss": "in-sample", "lam": 30.0}
    few = IDFSMEC(**plain).fit(X, y)
    many = IDFSMEC(**plain).fit(np.tile(X, (7, 1)), np.tile(y, 7))
    assert_allclose(many.scores_, few.scores_, atol=1e-5)
    paper = IDFSMEC(**plain, lam_scale="paper")
    few = paper.fit(X, y).scores_
    many = paper.fit(np.tile(X, (7, 1)), np.tile(y, 7)).scores_
    assert np.abs(many - few).max() > 1e-3


def test_both_scales_of_lam_agree_at_a_thousand_samples():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 6)), np.arange(1000) % 2
    X[:, 0] += y
    here, there = (IDFSMEC(lam=50.0, lam_scale=one).fit(X, y) for one in ("samples", "paper"))
    assert_array_equal(here.scores_, there.scores_)


@pytest.mark.parametrize(
    "selector",
    [
        IDFSMEC(),
        IDFSMECCV(lams=[0.1, 1.0], gammas=[2.0], n_features_to_select=[2, 4]),
        StabilitySelector(n_resamples=6, threshold=0.6, random_state=0),
    ],
    ids=["IDFSMEC", "IDFSMECCV", "StabilitySelector"],
)
def test_renaming_subjects_changes_nothing(selector):
    X, y, channels, subjects = noise_cohort(8, 1, n_channels=3)
    selector = clone(selector).set_params(channels=channels)
    wanted = clone(selector).fit(X, y, subjects)
    names = np.array([f"P{n}" for n in np.random.default_rng(0).permutation(subjects.max() + 1)])
    found = clone(selector).fit(X, y, names[subjects])
    assert_allclose(found.scores_, wanted.scores_, atol=1e-12)
    if isinstance(selector, IDFSMECCV):
        assert found.best_score_ == pytest.approx(wanted.best_score_, abs=1e-12)


@pytest.mark.parametrize("channels", [[0] * 8, range(8)], ids=["one channel", "eight"])
@pytest.mark.parametrize("seed", range(4))
def test_a_subject_with_a_thousand_epochs_does_not_hide_the_informative_feature(seed, channels):
    rng = np.random.default_rng(seed)
    subjects = np.append(np.zeros(1000, dtype=int), np.arange(1, 40))
    y = subjects % 2
    X = rng.normal(size=(40, 8))[subjects] + 0.5 * rng.normal(size=(subjects.size, 8))
    X[:, 3] += 2 * y
    assert IDFSMEC(channels).fit(X, y, subjects).ranking_[3] == 1
