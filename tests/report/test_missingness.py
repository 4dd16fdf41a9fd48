"""Missingness associated with the label is warned of; dead channels count nowhere."""

import dataclasses

import pytest

from idfsmec.report import summarise, write_report
from tests.report.tidy import fake_results, two_methods

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("empty_figure_files")]

GAPS = [
    {"channel": "F3", "have_x": 18, "n_x": 20, "have_y": 1, "n_y": 20, "p": 1e-6, "p_holm": 2e-6,
     "dead": False},
    {"channel": "O1", "have_x": 20, "n_x": 20, "have_y": 19, "n_y": 20, "p": 1.0, "p_holm": 1.0,
     "dead": False},
]  # fmt: skip


@pytest.fixture
def results():
    found = fake_results(two_methods(0.8, 0.7))
    return dataclasses.replace(found, tables={"t": found.tables["t"] | {"missing_by_class": GAPS}})


def test_a_warning_comes_first_and_counts_who_has_the_channel(results):
    warning = summarise(results)["warnings"][0]
    assert warning["title"] == "Missing channels are associated with the diagnosis: t"
    assert warning["text"].startswith(
        "F3 (present in 18 of 20 x and 1 of 20 y). The presence of a channel predicts the group"
    )


def test_the_table_has_only_channels_whose_missingness_is_associated(
    results, tmp_path, monkeypatch
):
    (row,) = summarise(results)["tables"][0]["missingness"]
    assert (row["channel"], row["p_holm"], row["dead"]) == ("F3", 2e-6, False)
    monkeypatch.setattr("idfsmec.evaluation.Results.read", lambda _: results)
    html = write_report(tmp_path).read_text("utf-8")
    assert "<td>18 of 20 x and 1 of 20 y</td>" in html


def test_dead_channels_are_named_and_not_counted(results):
    dead = [GAPS[0] | {"have_y": 0, "dead": True}, GAPS[1]]
    about = results.tables["t"] | {
        "missing_by_class": dead,
        "missing_by_recording": {
            "subjects": ["s1", "s2"], "channels": ["F3", "O1"], "share": [[1.0, 0.0], [1.0, 0.5]],
        },
    }  # fmt: skip
    frequency = {"F3__a": 1.0, "O1__a": 0.9}
    halves = {
        "frequency": frequency, "channel_frequency": {"F3": 1.0, "O1": 0.9}, "threshold": 0.7,
        "n_resamples": 20, "n_picked": 2, "max_false": 1, "expected_false": 0.5,
        "assumption": "unimodal", "stability": None, "chance": 0.1,
        "channel_chance": {"F3": 0.1, "O1": 0.1},
    }  # fmt: skip
    found = dataclasses.replace(results, tables={"t": about}, resampling={"t": halves})
    (table,) = summarise(found)["tables"]
    facts = dict(table["facts"])
    assert facts["channels"] == "1 (F3 dead)"
    assert facts["missing as recorded"] == "25.0\xa0%"
    assert table["findings"]["resampling"]["stable_features"] == ["a at O1"]
    assert table["findings"]["resampling"]["stable_channels"] == ["O1"]
    assert facts["missing most often"] == "O1 (25\xa0%)"
    assert facts["complete recordings"] == "1 of 2"
    assert facts["more than half missing"] == "0 of 2"


def test_tables_without_such_channels_have_neither_banner_nor_table():
    summary = summarise(fake_results(two_methods(0.8, 0.7)))
    assert summary["tables"][0]["missingness"] == []
    assert not [w for w in summary["warnings"] if w["title"].startswith("Missing")]
