"""Differences to the proposed method: paired, corrected, and drawn as such."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.metrics import fold_interval
from idfsmec.report import plot_paired_differences, summarise
from tests.report.tidy import by_gid, fake_results, make_scores, texts

pytestmark = pytest.mark.slow

MEANS = {("IDFS-MEC", 0.0, 5): 0.80, ("IDFS-MEC", 0.3, 5): 0.70, ("mRMR", 0.0, 5): 0.70,
         ("mRMR", 0.3, 5): 0.71, ("random", 0.0, 5): 0.5, ("random", 0.3, 5): 0.5}  # fmt: skip


@pytest.fixture
def scores():
    """Small wobbles of its own for every unit, so that differences vary between folds."""
    scores = make_scores(MEANS, n_folds=5, spread=0.05)
    noise = np.random.default_rng(0).normal(scale=0.01, size=len(scores))
    return scores.assign(subject_balanced_accuracy=scores["subject_balanced_accuracy"] + noise)


def drawn(ax):
    """Dots and the ends of their bars, by method and rate."""
    dots = [line for line in ax.lines if str(line.get_gid()).startswith("difference-")]
    bars = [bar.get_segments()[0][:, 0] for bar in ax.collections]
    return {dot.get_gid().removeprefix("difference-"): (dot, *ends)
            for dot, ends in zip(dots, bars, strict=True)}  # fmt: skip


def test_they_are_paired_by_fold_with_corrected_intervals(scores):
    dot, low, high = drawn(plot_paired_differences(scores))["mRMR-0.3"]
    at = scores[scores["rate"] == 0.3].pivot_table(
        index="fold", columns="method", values="subject_balanced_accuracy"
    )
    expected = fold_interval(at["IDFS-MEC"] - at["mRMR"])
    assert (dot.get_xdata()[0], low, high) == pytest.approx(
        (expected.mean, expected.low, expected.high)
    )


def test_each_difference_is_a_dot_filled_where_it_is_significant(scores):
    ax = plot_paired_differences(scores)
    for name, (dot, low, high) in drawn(ax).items():
        filled = dot.get_markerfacecolor() == dot.get_markeredgecolor()
        assert filled == (name != "mRMR-0.3")
        assert not filled or low > 0 or high < 0
    assert [label.get_text() for label in ax.get_yticklabels()] == ["mRMR (difference)", "random"]
    assert "IDFS-MEC is better →" in texts(ax)


def test_the_frame_holds_every_interval(scores):
    wild = (scores["method"] == "mRMR") & (scores["rate"] == 0.3)
    swing = np.where(scores["fold"] % 2, 0.25, -0.25)
    score = "subject_balanced_accuracy"
    ax = plot_paired_differences(scores.assign(**{score: scores[score] + wild * swing}))
    _, low, high = drawn(ax)["mRMR-0.3"]
    assert ax.get_xlim()[0] < low < 0 < high < ax.get_xlim()[1]


def test_any_method_can_be_the_reference(scores):
    ax = plot_paired_differences(scores, reference="random")
    assert by_gid(ax, "difference-IDFS-MEC-0.3")[0].get_xdata()[0] < 0
    with pytest.raises(ValueError, match="name one with reference"):
        plot_paired_differences(scores[scores["method"] != "IDFS-MEC"])


def words_of(scores, section):
    return summarise(fake_results(scores))["tables"][0]["tested"][section][""]


@pytest.mark.parametrize("n_folds", [1, 5])
def test_where_no_difference_is_significant_the_note_says_none(scores, n_folds):
    none = "significant at 5 % after Holm's correction (none)"
    assert none not in " ".join(texts(plot_paired_differences(scores))).replace("\n", " ")
    rng = np.random.default_rng(1)
    level = make_scores(dict.fromkeys(MEANS, 0.6), n_folds=n_folds)
    level["subject_balanced_accuracy"] += rng.normal(scale=0.05, size=len(level))
    assert none in " ".join(texts(plot_paired_differences(level))).replace("\n", " ")


def test_sanity_checks_are_tested_over_all_rates_and_the_loss_has_an_interval(scores):
    text = words_of(scores, "accuracy-by-rate")
    assert text.startswith("Over all rates IDFS-MEC is higher than random (+")
    assert "From 0\xa0% to 30\xa0% missing IDFS-MEC loses 9.9 points (95 % CI 8.2 to" in text


def test_a_sanity_check_that_does_not_differ_is_named():
    means = {("IDFS-MEC", 0.0, 5): 0.60, ("random", 0.0, 5): 0.59}
    scores = make_scores(means, n_folds=4)
    scores.loc[scores["method"] == "random", "subject_balanced_accuracy"] += [
        0.1,
        -0.1,
        0.05,
        -0.05,
    ]
    text = words_of(scores, "accuracy-by-rate")
    assert "not significantly different from random (+1.0 points) at 5 %" in text


def test_numbers_of_features_are_tested_against_the_best():
    means = {("IDFS-MEC", 0.0, 5): 0.8, ("IDFS-MEC", 0.0, 40): 0.8}
    assert words_of(make_scores(means), "accuracy-by-k") == (
        "Best number of features for IDFS-MEC: 5; no difference to the others is significant at "
        "5 % after Holm's correction."
    )
    means = {("IDFS-MEC", 0.0, 5): 0.6, ("IDFS-MEC", 0.0, 40): 0.8}
    text = words_of(make_scores(means), "accuracy-by-k")
    assert text.endswith(
        "40; lower (significant at 5 % after Holm's correction): 5 (−20.0 points)."
    )


def test_every_pattern_of_missing_channels_has_its_own_tests(scores):
    both = pd.concat([scores, scores.assign(pattern="burst")], ignore_index=True)
    table = summarise(fake_results(both))["tables"][0]
    assert set(table["tested"]["accuracy-by-rate"]) == {"random", "burst"}
