"""Missingness associated with the label is found, counted by subject and tested exactly."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact, mannwhitneyu, permutation_test, spearmanr

from idfsmec import FeatureTable
from idfsmec.metrics import holm
from idfsmec.missing import missingness_association
from idfsmec.missing.association import (
    association_warning,
    missingness_by_class,
    missingness_by_score,
)


@pytest.mark.parametrize("have", [(20, 1), (25, 29), (0, 0), (3, 4), (22, 8), (24, 20)])
def test_two_classes_are_fishers_exact_test(have):
    subjects = (25, 29)
    y = np.repeat([0, 1], subjects)
    observed = np.concatenate([np.arange(n) < k for k, n in zip(have, subjects, strict=True)])
    frame = missingness_by_class(observed[:, None], y, None, ["22A"])
    table = [[k, n - k] for k, n in zip(have, subjects, strict=True)]
    assert frame["p"][0] == pytest.approx(fisher_exact(table).pvalue)
    assert frame[["have_0", "n_0", "have_1", "n_1"]].iloc[0].tolist() == [have[0], 25, have[1], 29]


def test_three_classes_are_all_tables_with_the_same_margins():
    y = np.repeat(["a", "b", "c"], [4, 5, 6])
    rng = np.random.default_rng(0)
    observed = rng.random(15) < np.array([0.9, 0.5, 0.2]).repeat([4, 5, 6])
    p = missingness_by_class(observed[:, None], y, None, ["x"])["p"][0]

    def chance(labels):
        counts = [observed[labels == one].sum() for one in "abc"]
        return np.prod([comb(n, k) for n, k in zip((4, 5, 6), counts, strict=True)])

    draws = [chance(rng.permutation(y)) for _ in range(20_000)]
    assert p == pytest.approx(np.mean(np.array(draws) <= chance(y)), abs=0.015)


def test_a_subject_has_a_channel_that_is_there_in_half_of_the_samples():
    subjects = np.repeat(np.arange(8), 4)
    y = (subjects >= 4).astype(int)
    observed = np.tile([True, True, False, False], 8)
    observed[subjects >= 4] = np.tile([True, False, False, False], 4)
    frame = missingness_by_class(observed[:, None], y, subjects, ["Cz"])
    assert frame[["have_0", "have_1"]].iloc[0].tolist() == [4, 0]
    assert frame[["share_0", "share_1"]].iloc[0].tolist() == [0.5, 0.25]
    assert not frame["dead"][0]  # some samples of both classes have it
    assert frame["p"][0] == pytest.approx(2 / 70, abs=0.008)  # 2 of the 70 labellings differ so


def test_shares_of_samples_are_tested_by_permuting_the_labels_of_participants():
    rng = np.random.default_rng(0)
    subjects, y = np.repeat(np.arange(24), 10), np.repeat(np.arange(24) % 2, 10)
    observed = rng.random((240, 2)) < np.where(y, 0.8, 0.95)[:, None]
    frame = missingness_by_class(observed, y, subjects, ["Cz", "Pz"])
    for v in range(2):
        shares = observed[:, v].reshape(24, 10).mean(axis=1)
        test = permutation_test(
            (shares[::2], shares[1::2]),
            lambda a, b: abs(a.mean() - b.mean()),
            n_resamples=20_000, alternative="greater", rng=1,
        )  # fmt: skip
        assert frame["p"][v] == pytest.approx(test.pvalue, abs=0.01)
    assert frame.equals(missingness_by_class(observed, y, subjects, ["Cz", "Pz"]))


def test_classes_of_other_sizes_count_by_their_sizes():
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1, 2], [4, 8, 16])
    shares = np.clip(rng.integers(0, 11, 28) / 10 - 0.45 * (group == 0), 0, 1)
    shares = np.round(10 * shares).astype(int)
    subjects, y = np.repeat(np.arange(28), 10), np.repeat(group, 10)
    observed = (np.tile(np.arange(10), 28) < np.repeat(shares, 10))[:, None]
    p = missingness_by_class(observed, y, subjects, ["Cz"])["p"][0]

    def between(*parts):  # sum of squares of an analysis of variance
        every = np.concatenate(parts)
        return sum(part.size * (part.mean() - every.mean()) ** 2 for part in parts)

    parts = [shares[group == k] for k in range(3)]
    options = {"n_resamples": 20_000, "alternative": "greater", "rng": 1}
    test = permutation_test(parts, between, permutation_type="independent", **options)
    assert p == pytest.approx(test.pvalue, abs=0.006)


def test_a_warning_is_for_p_below_5_percent_after_correction():
    rows = pd.DataFrame(
        {"channel": ["Cz", "Pz"], "have_A": [9, 9], "n_A": 9, "share_A": 1.0, "have_B": [1, 2],
         "n_B": 9, "share_B": [1 / 9, 2 / 9], "p": [0.01, 0.02], "p_holm": [0.0499, 0.0501],
         "dead": False}
    )  # fmt: skip
    assert "Cz: 9 of 9 A, 1 of 9 B" in association_warning(rows)
    assert "Pz" not in association_warning(rows)


def test_what_no_permutation_reaches_has_a_p_of_one_in_ten_thousand_and_one():
    subjects, y = np.repeat(np.arange(60), 4), np.repeat(np.arange(60) % 2, 4)
    observed = ((y == 0) | (np.arange(240) % 4 == 0))[:, None]
    assert missingness_by_class(observed, y, subjects, ["Cz"])["p"][0] == 1 / 10_001


def test_a_channel_that_patients_lack_in_a_third_of_their_samples_is_found():
    rng = np.random.default_rng(1)
    subjects, y = np.repeat(np.arange(60), 6), np.repeat(np.arange(60) % 2, 6)
    observed = np.ones((360, 19), dtype=bool)
    observed[:, 3] = (y == 0) | (rng.random(360) > 0.35)
    X = pd.DataFrame(np.where(observed, 0.5, np.nan), columns=[f"E{v}__a" for v in range(19)])
    text = association_warning(missingness_association(FeatureTable(X, y, subjects)))
    assert f"E3: 100 % of samples 0, {100 * observed[y == 1, 3].mean():.0f} % of samples 1" in text


def test_holm_counts_the_channels_that_somebody_lacks():
    y = np.repeat([0, 1], 10)
    observed = np.ones((20, 5), dtype=bool)
    observed[10:, 0] = False
    observed[:10, 1] = False
    observed[:3, 2] = False
    frame = missingness_by_class(observed, y, None, list("abcde"))
    assert frame["p_holm"][0] == pytest.approx(3 * frame["p"][0])
    assert frame["p_holm"][2] == pytest.approx(frame["p"][2])
    assert frame["p_holm"].tolist()[3:] == [1.0, 1.0]
    assert frame["dead"].tolist() == [True, True, False, False, False]


def test_the_warning_names_channels_and_subjects():
    X = pd.DataFrame({"Cz__a": np.ones(54), "22A__a": np.ones(54)})
    X.loc[[*range(20, 25), *range(26, 54)], "22A__a"] = np.nan
    table = FeatureTable(X, ["HC"] * 25 + ["MDD"] * 29, [f"s{i:02}" for i in range(54)])
    frame = missingness_association(table)
    assert "22A: 20 of 25 HC, 1 of 29 MDD" in association_warning(frame)
    assert association_warning(frame[frame["channel"] == "Cz"]) is None


def test_large_tables_of_several_classes_are_drawn_with_a_fixed_seed():
    y = np.repeat(["a", "b", "c"], [200, 210, 220])
    rng = np.random.default_rng(0)
    observed = np.column_stack([rng.random(630) < 0.5, (y == "a") | (rng.random(630) < 0.1)])
    frame = missingness_by_class(observed, y, None, ["even", "skewed"])
    assert frame["p"][0] > 0.05
    assert frame["p"][1] == pytest.approx(1 / 6001)
    assert frame.equals(missingness_by_class(observed, y, None, ["even", "skewed"]))


def test_channels_are_tested_against_a_score_by_ranks():
    subjects, score = np.repeat(np.arange(8), 2), np.repeat([3.0, 9, 1, 7, 12, 5, 20, 15], 2)
    observed = np.zeros((16, 5), dtype=bool)
    observed[:, 0] = True
    observed[:, 1] = score < 8  # each participant has it or not
    observed[:, 2] = (np.arange(16) % 2 == 0) | (score > 6)  # a half or all of the samples
    observed[:2, 3] = observed[0, 4] = True  # two samples and one
    frame = missingness_by_score(observed, score, subjects, list("abcde"))
    means, shares = score[::2], observed.reshape(8, 2, 5).mean(axis=1)
    expected = mannwhitneyu(means[means < 8], means[means >= 8]).pvalue
    assert frame["p"][:2].tolist() == pytest.approx([1.0, expected])
    assert frame["p"][2] == pytest.approx(spearmanr(shares[:, 2], means).pvalue)
    assert frame["have_participants"].tolist() == [8, 4, 8, 1, 1]
    assert frame["share_participants"].tolist() == pytest.approx(shares.mean(axis=0))
    assert frame["n_participants"].tolist() == [8] * 5
    assert frame["dead"].tolist() == [False, False, False, False, True]
    # Of the four channels that vary.
    assert frame["p_holm"].tolist() == pytest.approx([1.0, *holm(frame["p"][1:])])
