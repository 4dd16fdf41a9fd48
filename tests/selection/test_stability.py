"""StabilitySelector: halves of subjects, frequencies, thresholds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from idfsmec.prediction.methods import METHODS, find_methods
from idfsmec.selection import IDFSMEC, MRMR, StabilitySelector, stability
from idfsmec.selection.stability import complementary_halves, selection_stability
from idfsmec.solver.scaling import Scaling


# The checks' features are all alike informative, so that none is picked on nearly all halves.
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks([StabilitySelector(n_resamples=2, random_state=0)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def cohort():
    """30 subjects with 4 samples each; feature 2 of channel E1 tells the classes apart."""
    rng = np.random.default_rng(4)
    subjects = np.repeat(np.arange(30), 4)
    y = np.where(subjects % 2 == 1, "MDD", "HC")
    X = rng.normal(size=(30, 3, 5))[subjects] + 0.5 * rng.normal(size=(120, 3, 5))
    X[:, 0, 2] += 2.5 * (y == "MDD")
    X[rng.random((120, 3)) < 0.3] = np.nan
    columns = [f"E{v + 1}__f{j}" for v in range(3) for j in range(5)]
    return pd.DataFrame(X.reshape(120, -1), columns=columns), y, subjects


def test_a_true_difference_is_found_on_nearly_all_halves(cohort):
    X, y, subjects = cohort
    found = StabilitySelector(n_features_to_select=2, random_state=0).fit(X, y, groups=subjects)
    assert found.get_feature_names_out().tolist() == ["E1__f2"]
    assert found.frequencies_[2] > 0.95
    assert found.channel_frequencies_[0] >= found.frequencies_[:5].max()
    assert found.expected_false_ <= 1.0
    assert found.stability_.low <= found.stability_.value <= found.stability_.high


def test_stability_is_measured_between_halves_without_shared_subjects(cohort):
    X, y, subjects = cohort
    found = StabilitySelector(n_features_to_select=2, n_resamples=6, random_state=0).fit(
        X, y, groups=subjects
    )
    pairs = [selection_stability(found.selections_[i : i + 2]).value for i in (0, 2, 4)]
    assert found.stability_.value == pytest.approx(np.mean(pairs))
    assert found.stability_.n == 6


@pytest.mark.filterwarnings("ignore:Missing channels are associated")  # in one of the halves
def test_the_batch_gives_what_one_fit_per_half_gives(cohort):
    X, y, subjects = cohort
    selector = IDFSMEC(lam=0.1, gamma=1.5, n_features_to_select=4)
    found = StabilitySelector(selector, n_features_to_select=4, n_resamples=6, random_state=3).fit(
        X, y, groups=subjects
    )
    codes = (y == "MDD").astype(int)
    halves = complementary_halves(subjects, codes, 3, np.random.RandomState(3))
    alone = [
        clone(selector).fit(X.iloc[half], y[half], subjects[half]).support_ for half in halves
    ]
    assert_array_equal(found.selections_, alone)


@pytest.mark.parametrize("limit", ["_TOGETHER", "_ELEMENTS"])
def test_batches_of_halves_change_nothing_and_say_how_far_they_are(cohort, monkeypatch, limit):
    X, y, subjects = cohort
    heard = []
    whole = StabilitySelector(
        n_resamples=10, random_state=3, progress=lambda event: heard.append(event)
    )
    whole.fit(X, y, groups=subjects)
    assert [(one.done, one.total) for one in heard] == [(0, 10), (10, 10)]
    # At most three halves: of three channels, or of 15 columns in channels with 5 features.
    monkeypatch.setattr(stability, limit, {"_TOGETHER": 3, "_ELEMENTS": 3 * 15 * 5}[limit])
    parts = clone(whole).fit(X, y, groups=subjects)
    assert_array_equal(parts.selections_, whole.selections_)
    assert_array_equal(parts.ranking_, whole.ranking_)
    assert [one.done for one in heard[2:]] == [0, 3, 6, 9, 10]


def test_halves_share_no_subject_and_balance_the_classes():
    subjects = np.repeat(np.arange(21), 3)
    codes = np.repeat(np.arange(21) % 3, 3)
    halves = complementary_halves(subjects, codes, 20, np.random.RandomState(0))
    for one, other in zip(halves[::2], halves[1::2], strict=True):
        assert set(subjects[one]).isdisjoint(subjects[other])
        assert_array_equal(np.sort(np.concatenate([one, other])), np.arange(63))
        difference = np.bincount(codes[one]) - np.bincount(codes[other])
        assert np.abs(difference).max() <= 3  # one subject


def test_halves_of_an_even_number_are_halves_and_an_odd_participant_goes_to_either():
    codes = np.repeat([0, 1, 2], [6, 8, 5])
    halves = complementary_halves(np.arange(19), codes, 40, np.random.RandomState(0))
    sizes = np.array([np.bincount(codes[half]) for half in halves])
    assert (sizes[:, 0] == 3).all()
    assert (sizes[:, 1] == 4).all()
    assert set(sizes[::2, 2]) == {2, 3}
    assert 10 < (sizes[::2, 2] == 3).sum() < 30


@pytest.mark.parametrize("name", [one.name for one in find_methods()])
def test_works_around_every_method_with_missing_channels(cohort, name):
    X, y, subjects = cohort
    method = METHODS[name].build(random_state=0)
    if name == "PS-NSGA":
        method.set_params(population_size=8, n_generations=2)
    found = StabilitySelector(method, n_features_to_select=3, n_resamples=4, random_state=0)
    found.fit(X, y, groups=subjects)
    assert_array_equal(found.selections_.sum(axis=1), 3)
    assert_array_equal(np.sort(found.ranking_), np.arange(1, 16))


def test_a_selector_without_nan_sees_each_half_filled_with_its_own_means(cohort):
    X, y, subjects = cohort
    found = StabilitySelector(MRMR(), n_features_to_select=3, n_resamples=2, random_state=1)
    found.fit(X, y, groups=subjects)
    half = complementary_halves(subjects, (y == "MDD").astype(int), 1, np.random.RandomState(1))[0]
    values = X.to_numpy()[half]
    alone = MRMR(n_features_to_select=3).fit(Scaling.learn(values).imputed(values), y[half])
    assert_array_equal(found.selections_[0], alone.support_)


@pytest.mark.slow
def test_noise_alone_is_kept_no_more_often_than_the_bound_says():
    rng = np.random.default_rng(8)
    kept = []
    for seed in range(6):
        X = rng.normal(size=(40, 30))
        found = StabilitySelector(
            channels=np.repeat(np.arange(6), 5), n_resamples=20, random_state=seed
        ).fit(X, np.arange(40) % 2)
        kept.append(found.support_.sum())
    assert np.mean(kept) <= 1.0


def test_number_of_workers_does_not_matter(cohort):
    X, y, subjects = cohort
    one, two = (
        StabilitySelector(MRMR(), n_resamples=4, random_state=0, n_jobs=n).fit(X, y, subjects)
        for n in (1, 2)
    )
    assert_array_equal(one.selections_, two.selections_)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_resamples": 7}, "must be even"),
        ({"threshold": 0.4}, r"threshold.*\(0.5, 1.0\]"),
        ({"assumption": "normal"}, "unimodal"),
        ({"n_features_to_select": 14}, "Lower n_features_to_select"),
        ({"max_false": 0}, "max_false"),
    ],
)
def test_says_what_is_wrong_with_a_parameter(cohort, wrong, said):
    X, y, subjects = cohort
    wrong = {"n_resamples": 4, "random_state": 0} | wrong
    with pytest.raises(ValueError, match=said):
        StabilitySelector(MRMR(), **wrong).fit(X, y, subjects)


def test_one_subject_in_a_class_is_refused_by_name_of_the_problem(cohort):
    X, y, _ = cohort
    with pytest.raises(ValueError, match="at least 2 participants of each class"):
        StabilitySelector(random_state=0).fit(X, y, groups=(y == "MDD").astype(int))


def test_dead_channels_are_left_out_of_counts(cohort):
    X, y, subjects = cohort
    X = X.copy()
    gone = [name for name in X if name.startswith(X.columns[0].split("__")[0])]
    X.loc[y == "MDD", gone] = np.nan
    found = StabilitySelector(
        MRMR(), n_features_to_select=13, n_resamples=4, threshold=0.9, random_state=0
    ).fit(X, y, groups=subjects)
    assert found.dead_channels_.tolist() == [True, False, False]
    assert np.isnan(found.channel_frequencies_[0])
    assert not found.selections_[:, : len(gone)].any()


@pytest.mark.filterwarnings("ignore:.*got no groups")
def test_without_groups_each_sample_of_an_imputed_table_is_a_subject():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), np.arange(40) % 2
    X[rng.random((40, 4)) < 0.2] = np.nan
    known = {"n_features_to_select": 1, "channels": range(4), "random_state": 0, "n_resamples": 4}
    alone = StabilitySelector(MRMR(), max_false=9, **known).fit(X, y)
    named = StabilitySelector(MRMR(), max_false=9, **known).fit(X, y, groups=np.arange(40))
    assert_array_equal(alone.frequencies_, named.frequencies_)
