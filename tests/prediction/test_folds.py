import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idfsmec.errors import InputError
from idfsmec.prediction.folds import make_folds, most_splits


@given(
    epochs=st.lists(st.integers(1, 6), min_size=8, max_size=20),
    n_splits=st.integers(2, 4),
    seed=st.integers(0, 1000),
)
def test_subject_folds_tear_no_subject_and_hold_out_every_sample_once(epochs, n_splits, seed):
    subjects = np.repeat(np.arange(len(epochs)), epochs)
    y = subjects % 2
    folds = make_folds(y, subjects, "subject", n_splits, seed)
    held_out = np.concatenate([test for _, test in folds])
    assert sorted(held_out) == list(range(y.size))
    for train, test in folds:
        assert not set(subjects[train]) & set(subjects[test])
        assert set(y[train]) == set(y[test]) == {0, 1}


def test_subject_folds_have_their_share_of_people_however_long_recordings_are():
    epochs = np.array([1, 50] * 10)
    subjects = np.repeat(np.arange(20), epochs)
    y = np.repeat([0, 1, 1, 0] * 5, epochs)
    for _, test in make_folds(y, subjects, n_splits=5):
        people = np.unique(subjects[test])
        assert [y[subjects == one][0] for one in people].count(1) == 2
        assert people.size == 4


def test_a_subject_with_two_labels_stays_together():
    subjects = np.repeat(np.arange(12), 4)
    y = np.tile([0, 0, 1, 1], 12)
    for train, test in make_folds(y, subjects, n_splits=3):
        assert not set(subjects[train]) & set(subjects[test])


def test_sample_folds_spread_a_subject():
    subjects = np.repeat(np.arange(6), 20)
    folds = make_folds(subjects % 2, subjects, "sample", 4)
    assert all(set(subjects[train]) == set(subjects[test]) for train, test in folds)


def test_a_seed_gives_its_own_folds_and_gives_them_again():
    subjects = np.repeat(np.arange(20), 2)
    one, again, other = (
        make_folds(subjects % 2, subjects, n_splits=4, random_state=s) for s in (1, 1, 2)
    )
    assert all((a[1] == b[1]).all() for a, b in zip(one, again, strict=True))
    assert any(list(a[1]) != list(b[1]) for a, b in zip(one, other, strict=True))


def test_too_many_folds_are_refused_with_the_number_that_is_possible():
    subjects = np.repeat(np.arange(6), 5)
    assert most_splits(subjects % 2, subjects) == 3
    with pytest.raises(InputError, match="smallest class has 3 participants; give 2 to"):
        make_folds(subjects % 2, subjects, n_splits=10)


def test_one_subject_per_class_is_refused():
    with pytest.raises(InputError, match="need at least 2"):
        make_folds([0, 0, 1, 1], ["a", "a", "b", "b"], n_splits=2)


def test_an_unknown_kind_of_folds_is_refused():
    with pytest.raises(InputError, match="choose 'subject', 'sample' or 'site'"):
        make_folds([0, 1], [0, 1], "epoch", 2)


def test_site_folds_hold_out_one_site_after_the_other():
    subjects = np.repeat(np.arange(12), 3)
    y, sites = subjects % 2, np.array(["Lund", "Oslo", "Bern"])[subjects // 4]
    folds = make_folds(y, subjects, "site", n_splits=10, sites=sites)
    assert [set(sites[test]) for _, test in folds] == [{"Bern"}, {"Lund"}, {"Oslo"}]
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(y.size))


@pytest.mark.parametrize(
    ("sites", "says"),
    [
        (None, "no column 'site'"),
        (["A"] * 8, "at least 2 sites; there is A alone"),
        (["A", "A", "B", "B", "A", "A", "B", "B"], "site A has the class 0 alone"),
        (["A", "B", "A", "B", "B", "B", "B", "B"], "participant a was at site A and at another"),
    ],
)
def test_site_folds_that_judge_nothing_are_refused(sites, says):
    y, subjects = [0, 0, 1, 1] * 2, ["a", "a", "b", "b", "c", "c", "d", "d"]
    with pytest.raises(InputError, match=says):
        make_folds(y, subjects, "site", sites=sites)


def test_a_class_of_one_site_alone_is_refused():
    y, sites = [0, 1, 2, 0, 1, 0, 1], ["A", "A", "A", "B", "B", "C", "C"]
    with pytest.raises(InputError, match="class 2 was recorded at site A alone"):
        make_folds(y, np.arange(7), "site", sites=sites)
