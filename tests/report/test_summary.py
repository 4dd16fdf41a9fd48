import dataclasses
import json

import pandas as pd
import pytest

from idfsmec.evaluation.statistics import chance_bands
from idfsmec.report import summarise
from tests.report.make_results import simulate
from tests.report.tidy import fake_results, make_scores, two_methods

pytestmark = pytest.mark.slow


def with_chance(low=0.35, high=0.65):
    band = {"chance": 0.5, "low": low, "high": high, "n": 20}
    return {
        "folds": "subject", "tuning": "nested", "metric": "balanced_accuracy",
        "chance": {"t": {"balanced_accuracy": band}},
    }  # fmt: skip


def titles(summary):
    return [warning["title"] for warning in summary["warnings"]]


def test_a_summary_is_plain_data(results):
    text = json.dumps(summarise(results), allow_nan=False)
    assert json.loads(text)["tables"][0]["name"] == "cohort"


def test_parts_of_a_table_timed_alone_are_rows_of_its_cost(results):
    (table,) = summarise(results)["tables"]
    assert {row["n_channels"] for row in table["cost"]} == {3}


def test_the_headline_is_the_mean_of_what_was_chosen_at_the_lowest_rate(results):
    chosen = results.chosen()
    own = chosen[(chosen["method"] == "IDFS-MEC") & (chosen["rate"] == 0)]
    found = summarise(results)["tables"][0]["findings"]["accuracy"]
    assert found["mean"] == pytest.approx(own["balanced_accuracy"].mean())
    band = chance_bands(*(lambda t: (t.y, t.subjects))(simulate()))["balanced_accuracy"]
    assert found["chance"] == pytest.approx(dataclasses.asdict(band))


def test_above_chance_means_above_the_band():
    below = summarise(fake_results(two_methods(0.64, 0.6), protocol=with_chance()))
    above = summarise(fake_results(two_methods(0.66, 0.6), protocol=with_chance()))
    assert "not above chance" in below["tables"][0]["findings"]["accuracy_text"]
    assert titles(below) == ["Not above chance: t"]
    assert "accuracy, above chance" in above["tables"][0]["findings"]["accuracy_text"]
    assert titles(above) == []


@pytest.mark.parametrize(
    ("change", "title"),
    [({"folds": "sample"}, "Sample-wise folds"), ({"tuning": "oracle"}, "Optimistic choice")],
)
def test_what_makes_numbers_too_good_is_warned_of(change, title):
    protocol = with_chance() | change
    found = titles(summarise(fake_results(two_methods(0.9, 0.6), protocol=protocol)))
    assert any(one.startswith(title) for one in found)


def test_failed_tasks_are_counted_and_the_error_named():
    failures = pd.DataFrame(
        {"method": ["mRMR"] * 2, "traceback": ["Traceback\nValueError: no"] * 2}
    )
    summary = summarise(fake_results(two_methods(0.9, 0.6), failures=failures))
    warning = next(c for c in summary["warnings"] if c["title"] == "2 tasks failed")
    assert "mRMR" in warning["text"]
    assert "ValueError: no" in warning["text"]


def test_a_table_without_any_score_still_has_a_summary():
    summary = summarise(fake_results(make_scores({("x", 0.0, 5): 0.7}).iloc[:0]))
    table = summary["tables"][0]
    assert (table["comparisons"], table["ablation"], table["cost"]) == ([], None, None)
    assert table["findings"]["accuracy_text"] == ""


def test_accuracy_as_metric_has_the_band_of_accuracy():
    protocol = with_chance() | {"metric": "accuracy"}
    protocol["chance"]["t"]["accuracy"] = {"chance": 0.7, "low": 0.6, "high": 0.8, "n": 20}
    summary = summarise(fake_results(two_methods(0.75, 0.6), protocol=protocol))
    assert summary["tables"][0]["findings"]["accuracy"]["chance"]["chance"] == 0.7


def test_a_single_fold_has_a_mean_and_no_interval():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7}, n_folds=1, spread=0)
    accuracy = summarise(fake_results(scores))["tables"][0]["findings"]["accuracy"]
    assert (accuracy["mean"], accuracy["low"]) == (pytest.approx(0.7), None)


def test_summaries_do_not_change_the_results(results):
    before = results.scores.copy()
    summarise(results)
    pd.testing.assert_frame_equal(results.scores, before)
    assert dataclasses.is_dataclass(results)


def test_the_vote_of_a_persons_samples_is_told_too(results):
    chosen = results.chosen()
    own = chosen[(chosen["method"] == "IDFS-MEC") & (chosen["rate"] == 0)]
    found = summarise(results)["tables"][0]["findings"]["accuracy"]["by_subject"]
    assert found["mean"] == pytest.approx(own["subject_balanced_accuracy"].mean())
    assert found["chance"]["n"] == 24


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-11-15T03:52:30.499+00:00", "2026-11-15 03:52 UTC"),
        (None, None),
    ],
)
def test_times_are_written_to_the_minute(stamp, shown):
    results = fake_results(two_methods(0.8, 0.7), environment={"start": stamp})
    assert summarise(results)["started"] == shown


def test_near_chance_the_headline_claims_nothing():
    ranking = pd.DataFrame(
        {"table": "t", "rank": [1, 2], "channel": ["F3", "O1"], "feature": "a",
         "score": [0.7, 0.3], "channel_weight": [0.7, 0.3], "method": "IDFS-MEC"}
    )  # fmt: skip
    protocol = with_chance()
    near = summarise(fake_results(two_methods(0.6, 0.5), protocol=protocol, ranking=ranking))
    far = summarise(fake_results(two_methods(0.9, 0.5), protocol=protocol, ranking=ranking))
    assert "Accuracy is not above chance." in near["tables"][0]["findings"]["headline"]
    assert "separates the groups best is F3" in far["tables"][0]["findings"]["headline"]
    even = ranking.assign(channel_weight=[0.52, 0.48])
    level = summarise(fake_results(two_methods(0.9, 0.5), protocol=protocol, ranking=even))
    assert level["tables"][0]["findings"]["headline"] == (
        "The features that separate the groups best: a at F3 and O1. Channel weights are nearly "
        "even."
    )


def test_a_ci_that_includes_the_chance_level_is_warned_of():
    scores = two_methods(0.7, 0.6, spread=0.25)
    summary = summarise(fake_results(scores, protocol=with_chance()))
    assert (
        "the 95 % CI includes the chance level"
        in summary["tables"][0]["findings"]["accuracy_text"]
    )
    assert titles(summary) == []
