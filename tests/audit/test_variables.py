"""What is taken as a circumstance of the recording, and what is not."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from idfsmec import FeatureTable
from idfsmec.audit import recording_variables
from idfsmec.audit.variables import encode_variables, kind_of, say_variable
from idfsmec.features import extract_table
from idfsmec.recordings import read_manifest
from tests.audit.cohorts import audited
from tests.conftest import write


def with_rows(**columns):
    table = audited(6, 2)
    rows = pd.DataFrame({"recording": np.repeat([f"r{i}" for i in range(6)], 2)})
    rows = rows.assign(**{name: np.repeat(values, 2) for name, values in columns.items()})
    return FeatureTable(table.X, table.y, table.subjects, table.info, rows=rows)


def test_facts_follow_their_recordings():
    table = with_rows()
    expected = [one["facts"]["drift"] for one in table.info["recordings"]]
    assert recording_variables(table)["drift"].tolist() == expected
    half = table.take(np.arange(6, 12))
    assert recording_variables(half)["drift"].tolist() == expected[3:]
    unnamed = FeatureTable(half.X, half.y, half.subjects, half.info)  # by subject
    assert recording_variables(unnamed)["drift"].tolist() == expected[3:]


def test_age_sex_and_site_are_taken_and_scores_of_the_illness_are_not():
    ages = [20.0, 30, 40, 50, 60, 70]
    table = with_rows(age=ages, Sex=list("fmfmfm"), bdi=[1.0, 30, 2, 31, 3, 32])
    found = recording_variables(table)
    assert found["age"].tolist() == ages
    assert "Sex" in found
    assert "bdi" not in found
    assert encode_variables(table)[1]["unused"] == ["bdi"]
    assert "bdi" in recording_variables(table, also=["bdi"])


def test_sites_of_the_table_are_a_variable():
    table = audited(6, 2)
    table = FeatureTable(table.X, table.y, table.subjects, sites=pd.Series(["A", "B"] * 6))
    assert "site" in recording_variables(table)


def test_what_is_the_same_for_all_is_left_out():
    names, _ = encode_variables(audited(6))
    assert "sfreq" not in names
    assert "line_amplitude" in names


def test_a_text_has_a_column_per_level_and_an_unknown_one_says_so():
    found, _ = encode_variables(with_rows(device=["A", "B", "C", "A", "", "B"]))
    assert found["device"].columns.tolist() == ["A", "B", "C", "not known"]
    assert np.isfinite(found.to_numpy()).all()


def test_names_of_subjects_are_no_circumstance():
    many = audited(30)
    rows = pd.DataFrame({"device": np.repeat([f"x{i}" for i in range(30)], 4)})
    table = FeatureTable(many.X, many.y, many.subjects, many.info, rows=rows)
    found, about = encode_variables(table)
    assert "device" not in found
    assert about["named"] == ["device"]


def test_a_subject_under_two_labels_counts_in_each():
    table = audited(4, 4)
    y = table.y.copy()
    y[:2] = "MDD"
    found = recording_variables(FeatureTable(table.X, y, table.subjects, table.info))
    assert len(found) == 5


def test_strata_are_by_the_channels_in_the_file_where_those_of_the_eeg_are_equal():
    table = audited(4)
    for number, recording in enumerate(table.info["recordings"]):
        recording["facts"]["n_recorded"] = 20 + 2 * (number // 2)
    assert encode_variables(table)[1]["strata"] == {"n_recorded": ["20", "20", "22", "22"]}


def test_headers_that_contradict_the_study_are_counted():
    table = audited(4)
    for number, recording in enumerate(table.info["recordings"]):
        recording["facts"]["shared_name"] = number % 2
    assert encode_variables(table)[1]["headers"] == {"shared_name": ["s01", "s03"]}


def test_kinds_and_words():
    names = ("n_channels", "drift", "cap", "shared_name", "age", "site", "medication")
    kinds = ["device", "signal", "study", "study", "subject", "subject", "subject"]
    assert [kind_of(name) for name in names] == kinds
    assert say_variable("line_amplitude") == "line noise"
    assert say_variable("age") == "age"


def test_the_date_of_a_recording_is_tested_as_months_since_the_first_one(tmp_path, raws):
    lines = ["path,subject,label"]
    for number, year in enumerate((2019, 2019, 2021, 2021)):
        raw = raws["s01.edf"].copy()
        raw._data += 1e-7 * np.random.default_rng(number).normal(size=raw._data.shape)
        raw.set_meas_date(datetime(year, 3, 1 + number, tzinfo=UTC))
        ending = "edf" if number % 2 else "vhdr"
        write(raw, tmp_path / f"r{number}.{ending}")
        lines.append(f"r{number}.{ending},s{number},{'HC' if number < 2 else 'MDD'}")
    manifest = tmp_path / "study.csv"
    manifest.write_text("\n".join(lines))
    table = extract_table(read_manifest(manifest)).table
    assert recording_variables(table)["months"].tolist() == [0, 0, 24, 24]
    assert say_variable("months") == "months since the study's first recording"
    assert "2019" not in json.dumps(table.info)
    assert "2021" not in json.dumps(table.info)
