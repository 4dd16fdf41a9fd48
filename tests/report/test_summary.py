import dataclasses
import json

import pandas as pd
import pytest

from idfsmec.metrics import fold_interval
from idfsmec.report import summarise
from tests.report.tidy import fake_results, make_scores, two_methods

pytestmark = pytest.mark.slow


PROTOCOL = {"folds": "subject", "tuning": "nested", "metric": "balanced_accuracy"}


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
    assert found["mean"] == pytest.approx(own["subject_balanced_accuracy"].mean())
    assert found["chance"] == 0.5
    assert found["metric"] == "balanced accuracy per participant"
    assert found["auc"]["mean"] == pytest.approx(own["subject_roc_auc"].mean())


def test_above_chance_means_that_the_interval_of_the_auc_excludes_a_half():
    for mean, spread, said in (
        (0.9, 0.2, "not shown to be above"),
        (0.9, 0.02, "above"),
        (0.1, 0.02, "not"),
    ):
        results = fake_results(two_methods(mean, 0.5, spread=spread))
        accuracy = summarise(results)["tables"][0]["findings"]["accuracy"]
        auc = results.scores.query("method == 'IDFS-MEC'")["subject_roc_auc"]
        expected = fold_interval(auc, 20)
        assert (accuracy["auc"]["low"], accuracy["auc"]["high"]) == pytest.approx(
            (expected.low, expected.high)
        )
        assert accuracy["above_chance"] == ("yes" if said == "above" else "no")
        assert accuracy["above_chance"] == ("yes" if expected.low > 0.5 else "no")
        text = summarise(results)["tables"][0]["findings"]["accuracy_text"]
        assert f"to {expected.high:.2f}): {said}" in text


@pytest.mark.parametrize(
    ("change", "title"),
    [({"folds": "sample"}, "Sample-wise folds"), ({"tuning": "oracle"}, "Optimistic choice")],
)
def test_what_makes_numbers_too_good_is_warned_of(change, title):
    protocol = PROTOCOL | change
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


def test_accuracy_as_metric_is_shown_by_participant_too():
    scores = two_methods(0.75, 0.6).assign(subject_accuracy=0.7)
    summary = summarise(fake_results(scores, protocol=PROTOCOL | {"metric": "accuracy"}))
    assert summary["metric"] == "accuracy per participant"
    assert summary["tables"][0]["findings"]["accuracy"]["mean"] == pytest.approx(0.7)


def test_a_single_fold_has_a_mean_and_no_interval():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7}, n_folds=1, spread=0)
    findings = summarise(fake_results(scores))["tables"][0]["findings"]
    accuracy = findings["accuracy"]
    assert (accuracy["mean"], accuracy["low"]) == (pytest.approx(0.7), None)
    assert accuracy["above_chance"] == "unknown"
    assert "is open" in findings["accuracy_text"]


def test_summaries_do_not_change_the_results(results):
    before = results.scores.copy()
    summarise(results)
    pd.testing.assert_frame_equal(results.scores, before)
    assert dataclasses.is_dataclass(results)


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
