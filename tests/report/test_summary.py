import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

from idfsmec.evaluation import Results, chance_bands, selection_matrix, selection_stability
from idfsmec.report import summarise
from idfsmec.report._comparison import compare_methods
from idfsmec.report._curves import blocks, unit_scores
from tests.report.make_results import simulate
from tests.report.tidy import make_scores


def fake_results(scores, **changes):
    """Results that hold given scores on one small table, and nothing else."""
    table = {
        "channels": ["F3", "O1"], "features": ["a", "b"], "n_samples": 40, "n_subjects": 20,
        "labels": {"x": 20, "y": 20}, "share_missing": 0.1,
    }  # fmt: skip
    nothing = pd.DataFrame(columns=["experiment", "table", "pattern", "rate", "method", "ranking"])
    fields = {
        "folder": None,
        "scores": scores,
        "selections": nothing,
        "protocol": {"folds": "subject", "tuning": "nested", "metric": "balanced_accuracy"},
        "environment": {},
        "tables": {"t": table},
        "ranking": pd.DataFrame(
            columns=["table", "rank", "channel", "feature", "score", "channel_weight"]
        ),
        "convergence": {},
        "failures": pd.DataFrame(columns=["method", "traceback"]),
    }
    return Results(**(fields | changes))


def with_chance(low=0.35, high=0.65):
    band = {"chance": 0.5, "low": low, "high": high, "n": 20}
    return {
        "folds": "subject", "tuning": "nested", "metric": "balanced_accuracy",
        "chance": {"t": {"balanced_accuracy": band}},
    }  # fmt: skip


def two_methods(ours, theirs, **options):
    return make_scores({("IDFS-MEC", 0.0, 5): ours, ("mRMR", 0.0, 5): theirs}, **options)


def titles(summary):
    return [caution["title"] for caution in summary["cautions"]]


def test_a_summary_is_plain_data(results):
    text = json.dumps(summarise(results), allow_nan=False)
    assert json.loads(text)["tables"][0]["name"] == "cohort"


def test_tables_cut_to_measure_cost_are_not_tables_of_the_page(results):
    assert "cohort, 3 channels" in results.tables
    summary = summarise(results)
    assert [table["name"] for table in summary["tables"]] == ["cohort"]
    assert {row["n_channels"] for row in summary["tables"][0]["cost"]} == {3}


def test_the_headline_is_the_mean_of_what_was_chosen_at_the_lowest_rate(results):
    chosen = results.chosen()
    own = chosen[(chosen["method"] == "IDFS-MEC") & (chosen["rate"] == 0)]
    found = summarise(results)["tables"][0]["answer"]["accuracy"]
    assert found["mean"] == pytest.approx(own["balanced_accuracy"].mean())
    band = chance_bands(*(lambda t: (t.y, t.subjects))(simulate()))["balanced_accuracy"]
    assert found["chance"] == pytest.approx(band.as_dict())


def test_stability_is_nogueiras_measure_of_the_selections(results):
    found = summarise(results)["tables"][0]["answer"]["stability"]
    picks = results.selections
    picks = picks[(picks["method"] == "IDFS-MEC") & (picks["rate"] == 0)]
    picks = picks[picks["experiment"] == "accuracy"]
    columns = list(simulate().X.columns)
    matrix = selection_matrix([list(r) for r in picks["ranking"]], columns, found["k"])
    assert found["value"] == pytest.approx(selection_stability(matrix).value)


def test_above_chance_means_above_the_band():
    below = summarise(fake_results(two_methods(0.64, 0.6), protocol=with_chance()))
    above = summarise(fake_results(two_methods(0.66, 0.6), protocol=with_chance()))
    assert "not distinguishable from chance" in below["tables"][0]["answer"]["verdict"]
    assert titles(below) == ["Near chance: t"]
    assert "above chance" in above["tables"][0]["answer"]["verdict"]
    assert titles(above) == []


@pytest.mark.parametrize(
    ("change", "title"),
    [({"folds": "sample"}, "Sample-wise folds"), ({"tuning": "oracle"}, "Optimistic choice")],
)
def test_what_makes_numbers_too_good_is_warned_of(change, title):
    protocol = with_chance() | change
    found = titles(summarise(fake_results(two_methods(0.9, 0.6), protocol=protocol)))
    assert any(one.startswith(title) for one in found)


def test_failed_units_are_counted_and_the_error_named():
    failures = pd.DataFrame(
        {"method": ["mRMR"] * 2, "traceback": ["Traceback\nValueError: no"] * 2}
    )
    summary = summarise(fake_results(two_methods(0.9, 0.6), failures=failures))
    caution = next(c for c in summary["cautions"] if c["title"] == "2 units failed")
    assert "mRMR" in caution["text"]
    assert "ValueError: no" in caution["text"]


def test_a_clear_loss_is_said_in_words():
    found = compare_methods(fake_results(two_methods(0.6, 0.8)), "t")[0]
    assert found["sentences"] == [
        "IDFS-MEC has the highest mean at none of the 1 missing rates.",
        "IDFS-MEC clearly loses to mRMR at 0\xa0% missing (by 20.0 points).",
    ]


def test_a_loss_within_noise_is_said_to_be_one():
    scores = two_methods(0.70, 0.71)
    wobble = np.tile([0.1, -0.1, 0.05, -0.05], 2) * np.repeat([1, -1], 4)
    scores["balanced_accuracy"] += wobble
    sentences = compare_methods(fake_results(scores), "t")[0]["sentences"]
    assert sentences[-1].startswith("IDFS-MEC loses, within what folds vary, to mRMR at 0")


def test_a_clear_win_is_said_in_words():
    sentences = compare_methods(fake_results(two_methods(0.8, 0.6)), "t")[0]["sentences"]
    assert sentences == ["IDFS-MEC has the highest mean at every missing rate, clearly at 0\xa0%."]


def test_the_interval_of_a_difference_is_paired_by_fold():
    gap = compare_methods(fake_results(two_methods(0.8, 0.6, spread=0.3)), "t")[0]["gaps"][0]
    assert gap["difference"] == pytest.approx(0.2)
    assert (gap["low"], gap["high"]) == pytest.approx((0.2, 0.2))


def test_one_method_has_nothing_to_be_compared_with():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7})
    summary = summarise(fake_results(scores))
    assert "Only IDFS-MEC was run" in summary["tables"][0]["comparisons"][0]["sentences"][0]
    assert summary["ranks"] is None


def test_results_without_idfsmec_say_so():
    scores = make_scores({("mRMR", 0.0, 5): 0.7, ("CMIM", 0.0, 5): 0.6})
    summary = summarise(fake_results(scores))
    sentences = summary["tables"][0]["comparisons"][0]["sentences"]
    assert sentences == ["IDFS-MEC is not among the methods compared here."]
    assert summary["tables"][0]["answer"]["accuracy"] is None


def test_blocks_that_lack_a_method_are_left_out_of_ranks():
    scores = make_scores({("a", 0.0, 5): 0.7, ("b", 0.0, 5): 0.6, ("a", 0.3, 5): 0.5})
    wide = blocks(unit_scores(scores, "balanced_accuracy"))
    assert wide.shape == (1, 2)


def test_a_table_without_any_score_still_has_a_summary():
    summary = summarise(fake_results(make_scores({("x", 0.0, 5): 0.7}).iloc[:0]))
    table = summary["tables"][0]
    assert (table["comparisons"], table["ablation"], table["cost"]) == ([], None, None)
    assert table["answer"]["verdict"] == "How well they predict was not measured."


def test_accuracy_as_metric_has_the_band_of_accuracy():
    protocol = with_chance() | {"metric": "accuracy"}
    protocol["chance"]["t"]["accuracy"] = {"chance": 0.7, "low": 0.6, "high": 0.8, "n": 20}
    summary = summarise(fake_results(two_methods(0.75, 0.6), protocol=protocol))
    assert summary["tables"][0]["answer"]["accuracy"]["chance"]["chance"] == 0.7


def test_a_single_fold_has_a_mean_and_no_interval():
    scores = make_scores({("IDFS-MEC", 0.0, 5): 0.7}, n_folds=1, spread=0)
    accuracy = summarise(fake_results(scores))["tables"][0]["answer"]["accuracy"]
    assert (accuracy["mean"], accuracy["low"]) == (pytest.approx(0.7), None)


def test_summaries_do_not_change_the_results(results):
    before = results.scores.copy()
    summarise(results)
    pd.testing.assert_frame_equal(results.scores, before)
    assert dataclasses.is_dataclass(results)


def test_every_pattern_of_gaps_is_compared():
    scores = pd.concat([two_methods(0.8, 0.6), two_methods(0.6, 0.8, pattern="recording")])
    found = compare_methods(fake_results(scores), "t")
    assert [one["pattern"] for one in found] == ["random", "recording"]
    assert "every missing rate" in found[0]["sentences"][0]
    assert "clearly loses to mRMR" in found[1]["sentences"][1]


def test_the_vote_of_a_persons_samples_is_told_too(results):
    chosen = results.chosen()
    own = chosen[(chosen["method"] == "IDFS-MEC") & (chosen["rate"] == 0)]
    found = summarise(results)["tables"][0]["answer"]["accuracy"]["by_subject"]
    assert found["mean"] == pytest.approx(own["subject_balanced_accuracy"].mean())
    assert found["chance"]["n"] == 24


@pytest.mark.parametrize(
    ("stamp", "shown"),
    [
        ("2026-11-15T03:52:30.499+00:00", "2026-11-15 03:52 UTC"),
        ("2026-11-15T03:52:30", "2026-11-15 03:52 local time"),
        ("yesterday", "yesterday"),
        (None, None),
    ],
)
def test_times_are_written_as_people_do(stamp, shown):
    results = fake_results(two_methods(0.8, 0.7), environment={"start": stamp})
    assert summarise(results)["started"] == shown


def test_near_chance_the_headline_claims_nothing():
    ranking = pd.DataFrame(
        {"table": "t", "rank": [1, 2], "channel": ["F3", "O1"], "feature": "a",
         "score": [0.6, 0.4], "channel_weight": [0.6, 0.4]}
    )  # fmt: skip
    protocol = with_chance()
    near = summarise(fake_results(two_methods(0.6, 0.5), protocol=protocol, ranking=ranking))
    far = summarise(fake_results(two_methods(0.9, 0.5), protocol=protocol, ranking=ranking))
    assert "cannot be told apart reliably" in near["tables"][0]["answer"]["lead"]
    assert "tells the groups apart best is F3" in far["tables"][0]["answer"]["lead"]


def test_an_interval_that_holds_chance_is_barely_above_it():
    scores = two_methods(0.7, 0.6, spread=0.25)
    summary = summarise(fake_results(scores, protocol=with_chance()))
    assert "barely above chance" in summary["tables"][0]["answer"]["verdict"]
    assert titles(summary) == ["Barely above chance: t"]
