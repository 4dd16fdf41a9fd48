"""Subjects a model has not seen: other caps, other spellings, doubts, and intervals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import InputError
from idfsmec.features import extract_table
from idfsmec.prediction import extract_subjects, fit_model, predict_subjects
from idfsmec.prediction import model as model_module
from idfsmec.prediction import subjects as subjects_module
from idfsmec.recordings import simulate_cohort
from idfsmec.table import FeatureTable, columns
from tests.conftest import write
from tests.evaluation.cohorts import make_cohort


@pytest.fixture(scope="module")
def newcomers():
    return make_cohort(n_subjects=10, n_epochs=4, effect=3.0, seed=1)


def renamed(table, names):
    columns = [
        f"{names.get(channel, channel)}__{column.rpartition('__')[2]}"
        for channel, column in zip(table.column_channels, table.X.columns, strict=True)
    ]
    return FeatureTable(table.X.set_axis(columns, axis=1), table.y, table.subjects)


def test_recordings_with_another_reference_than_the_model_s_are_warned_of(small_model, newcomers):
    model = replace(small_model, data={**small_model.data, "references": ["linked ears"]})
    recordings = [{"facts": {"reference": name}} for name in ("average", "linked ears")]
    others = FeatureTable(newcomers.X, newcomers.y, newcomers.subjects, {"recordings": recordings})
    notes = predict_subjects(model, others).notes
    assert any("1 of 2 recordings have another: average (1)" in note for note in notes)
    assert not any("reference" in note for note in predict_subjects(model, newcomers).notes)


def test_subjects_are_told_apart(small_model, newcomers):
    frame = predict_subjects(small_model, newcomers).frame
    true = newcomers.y.groupby(newcomers.subjects).first()
    assert (frame.set_index("subject")["predicted"] == true).mean() >= 0.9
    assert "probability of HC" not in frame  # one class is named, whichever is predicted
    assert ((frame["probability of MDD"] > 0.5) == (frame["predicted"] == "MDD")).all()
    assert frame["low"].isna().all()  # the model was not measured
    assert (frame["channels present"] == 1.0).all()
    assert (frame["epochs"] == 4).all()


def test_names_of_columns_are_split_once_however_many_subjects_are_predicted(monkeypatch):
    split, tables = columns.split_column, [make_cohort(n_subjects=n, effect=3.0) for n in (8, 24)]
    model, names = fit_model(tables[1]), []

    def count(name):
        names.append(name)
        return split(name)

    for module in (model_module, subjects_module):
        monkeypatch.setattr(module, "split_column", count)
    counts = []
    for table in tables:
        names.clear()
        predict_subjects(replace(model), table)
        counts.append(len(names))
    assert 0 < counts[0] == counts[1] == 2 * len(model.columns)  # of model and table


def test_the_channels_that_tell_the_groups_apart_speak_loudest(small_model, newcomers):
    subjects = predict_subjects(small_model, newcomers).subjects
    first = [next(iter(one.votes)) for one in subjects]
    assert set(first) <= {"E1", "E2"}
    ill = [one.predicted == "MDD" for one in subjects]
    assert all(one.label == "MDD" for one in subjects)
    assert (
        np.mean([next(iter(one.votes.values())) > 0 for one in subjects] == np.array(ill)) >= 0.9
    )


def test_fewer_other_and_reordered_channels_are_handled(small_model, newcomers):
    other = renamed(newcomers.select_channels(["E4", "E1", "E3"]), {"E3": "X9"})
    said = predict_subjects(small_model, other)
    assert said.subjects[0].share_present == 0.5
    assert any("does not know, ignored: X9" in note for note in said.notes)
    assert any("missing: E2 and E3" in note for note in said.notes)
    assert set(said.subjects[0].votes) == {"E1", "E4"}


def test_spellings_of_standard_names_are_matched():
    names = {"E1": "F3", "E2": "T7", "E3": "Pz", "E4": "O2"}
    spelt = {"F3": "EEG F3-LE", "T7": "T3", "Pz": "PZ.", "O2": "O2"}
    table = renamed(make_cohort(effect=3.0), names)
    model = fit_model(table)
    said = predict_subjects(model, renamed(table, spelt))
    assert "T3 is T7" in said.notes[0]
    assert said.frame.equals(predict_subjects(model, table).frame)


def test_no_common_channel_or_feature_is_refused(small_model, newcomers):
    with pytest.raises(InputError, match="no common channel: the model has E1, E2"):
        predict_subjects(small_model, renamed(newcomers, {f"E{i}": f"X{i}" for i in range(1, 5)}))
    alien = newcomers.X.set_axis([f"{name}x" for name in newcomers.X.columns], axis=1)
    with pytest.raises(InputError, match="no common feature: the model has f1, f2 and f3"):
        predict_subjects(small_model, FeatureTable(alien, newcomers.y, newcomers.subjects))


def test_whoever_has_nothing_gets_no_answer(small_model, newcomers):
    X = newcomers.X.copy()
    X.loc["s03"] = np.nan
    frame = predict_subjects(
        small_model, FeatureTable(X, newcomers.y, newcomers.subjects)
    ).frame.set_index("subject")
    assert frame.loc["s03", "epochs"] == 0
    assert "no channel" in frame.loc["s03", "warnings"]
    assert pd.isna(frame.loc["s03", "probability of MDD"])
    assert frame.index.tolist() == sorted(frame.index)
    assert frame.drop("s03")["probability of MDD"].notna().all()


def test_few_channels_are_warned_about(small_model, newcomers):
    calm = predict_subjects(small_model, newcomers).subjects
    assert sum(bool(one.warnings) for one in calm) <= 2
    little = predict_subjects(small_model, newcomers.select_channels(["E3"])).subjects[0]
    assert any("only 25% of the model's channels" in one for one in little.warnings)


def test_a_channel_that_lacks_a_feature_is_noted(small_model, newcomers):
    lacking = FeatureTable(newcomers.X.drop(columns="E2__f2"), newcomers.y, newcomers.subjects)
    said = predict_subjects(small_model, lacking)
    assert said.subjects[0].share_present == 0.75
    assert said.notes == ("missing columns, whose channels count as missing: E2__f2",)


def test_other_settings_are_noted(newcomers):
    def with_info(**info):
        return FeatureTable(newcomers.X, newcomers.y, newcomers.subjects, info)

    model = fit_model(with_info(epoch=10.0, sfreq=250.0))
    said = predict_subjects(model, with_info(epoch=4.0, sfreq=250.0))
    assert said.notes == (
        "the table's features were computed differently from the model's: "
        "epoch 4.0 instead of 10.0",
    )


@pytest.mark.slow
def test_files_get_the_features_of_the_training_data(tmp_path, raws):
    cohort = simulate_cohort(8, 19, duration=20, detached=0, random_state=0)
    model = fit_model(extract_table(cohort.recordings).table)
    files = []
    for name in ("s01.edf", "s02_raw.fif"):
        write(raws[name].copy(), tmp_path / name)
        files.append(tmp_path / name)
    table = extract_subjects(model, files)
    assert table.subjects.unique().tolist() == ["s01", "s02_raw"]
    first, second = predict_subjects(model, table).subjects
    assert first.share_present > second.share_present >= 0.8  # Fz and Pz are not there
    with pytest.raises(InputError, match="no such file"):
        extract_subjects(model, [tmp_path / "absent.edf"])


def test_recordings_need_a_table_made_here(small_model, tmp_path):
    with pytest.raises(InputError, match="does not state how its features were computed"):
        extract_subjects(small_model, [tmp_path / "s01.edf"])
