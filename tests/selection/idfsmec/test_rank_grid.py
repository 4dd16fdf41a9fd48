"""Grids: folds and settings of one batch against fits of their own."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from idfsmec import IDFSMEC
from idfsmec.selection import rank_grid
from tests.conftest import make_channels

SETTINGS = [
    {"lam": 1e-2, "gamma": 1.1},
    {"lam": 1.0},
    {"gamma": 9.0, "n_features_to_select": 3},
    {},
]


@pytest.fixture
def folds():
    return [np.arange(0, 120, 3), np.arange(1, 120, 3), np.arange(2, 120, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "options"),
    [
        (2, {}),
        (2, {"standardize": False}),
        (2, {"missing_correction": None, "channel_weighting": False}),
        (2, {"missing_indicator": False}),
        (3, {}),
    ],
)
def test_the_grid_gives_what_a_fit_per_fold_and_setting_gives(folds, n_classes, options):
    folds = folds[:2]
    X, y, channels = make_channels(n_classes=n_classes)
    selector = IDFSMEC(channels, **options)
    found = rank_grid(selector, X, y, SETTINGS, held_out=folds)
    for fold, left_out in enumerate(folds):
        kept = np.delete(np.arange(len(y)), left_out)
        for place, setting in enumerate(SETTINGS):
            alone = IDFSMEC(channels, **options, **setting).fit(X[kept], y[kept])
            assert_array_equal(found[fold, place], alone.ranking_)
    assert not hasattr(selector, "classes_")


def test_without_folds_all_samples_are_fitted(incomplete):
    X, y, channels = incomplete
    frame = pd.DataFrame(X, columns=[f"{c}__f{j}" for j, c in enumerate(channels)])
    (found,) = IDFSMEC().rank_grid(frame, y, SETTINGS)
    for ranking, setting in zip(found, SETTINGS, strict=True):
        assert_array_equal(ranking, IDFSMEC(**setting).fit(frame, y).ranking_)


def test_settings_that_share_no_channels_are_fitted_one_by_one(incomplete, folds):
    X, y, channels = incomplete
    settings = [{"lam": 0.1}, {"lam": 0.1, "missing_correction": None}]
    found = rank_grid(IDFSMEC(channels), X, y, settings, held_out=folds[:1])
    kept = np.delete(np.arange(120), folds[0])
    for ranking, setting in zip(found[0], settings, strict=True):
        alone = IDFSMEC(channels, **setting).fit(X[kept], y[kept])
        assert_array_equal(ranking, alone.ranking_)


def test_a_fold_without_one_of_the_classes_is_fitted_on_its_own():
    X, y, channels = make_channels(n_classes=3)
    folds = [np.flatnonzero(y == 2), np.arange(0, 120, 3)]
    found = rank_grid(IDFSMEC(channels), X, y, [{}], held_out=folds)
    kept = y != 2
    assert_array_equal(found[0, 0], IDFSMEC(channels).fit(X[kept], y[kept]).ranking_)


def test_wrong_settings_are_named(incomplete):
    X, y, _ = incomplete
    with pytest.raises(ValueError, match="'gamma' parameter of IDFSMEC"):
        IDFSMEC().rank_grid(X, y, [{"gamma": 0.5}])


def test_channels_that_carry_nothing_in_some_folds_are_named_once(incomplete, folds):
    X, y, channels = incomplete
    X[np.delete(np.arange(120), folds[1]), :5] = np.nan  # E1 is seen in one fold's part only
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        IDFSMEC(channels).rank_grid(X, y, SETTINGS, held_out=folds)
    assert said[0].filename == __file__
    assert [str(one.message) for one in said] == [
        "Channels without information get weight 0 and rank last: "
        "E1 (never observed, in 1 of 3 folds)."
    ]


def test_a_fold_in_which_no_channel_carries_anything_is_refused(incomplete, folds):
    X, y, channels = incomplete
    X[np.delete(np.arange(120), folds[1])] = np.nan
    with pytest.raises(ValueError, match="No channel carries information"):
        IDFSMEC(channels).rank_grid(X, y, [{}], held_out=folds)


def test_the_table_solves_and_weighs_what_the_selector_holds(incomplete):
    X, y, channels = incomplete
    fits = IDFSMEC(channels).check_input(X, y).solve([0.1, 1.0])
    selector = IDFSMEC(channels, lam=1.0, gamma=1.5).fit(X, y)
    weighing = fits.weigh(1.5, lam=1)
    assert_array_equal(weighing.scores, selector.scores_)
    assert_array_equal(weighing.ranking, selector.ranking_)
    assert_array_equal(weighing.channel_weights, selector.channel_weights_)
    assert_allclose(fits.channels.objectives[0, 1], selector.objective_)
