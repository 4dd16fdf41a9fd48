"""Many recordings into one table: unions, failures, resumption, and always the same bits."""

import gc
import json
import os
import shutil
import warnings
from dataclasses import replace

import mne
import numpy as np
import pandas as pd
import pytest

from idfsmec.errors import ExistingFileError, InputError, RecordingError, UnexpectedRecordingError
from idfsmec.features import (
    Feature,
    FeatureSettings,
    batch,
    extract_recording,
    extract_table,
    extract_to_file,
)
from idfsmec.recordings import read_manifest, simulate_cohort
from idfsmec.table import FeatureTable

pytestmark = pytest.mark.slow


@pytest.fixture
def recordings(study):
    """Recordings whose files a test may spoil."""
    return read_manifest(study)


@pytest.fixture(scope="module")
def sound(shared_study):
    """Recordings whose files stay as they are."""
    return read_manifest(shared_study)


@pytest.fixture(scope="module")
def extraction(sound):
    return extract_table(sound)


@pytest.fixture(scope="module")
def finished(sound, tmp_path_factory):
    """A folder with the parts of a finished run, to be copied."""
    folder = tmp_path_factory.mktemp("finished") / "parts"
    extract_table(sound, parts=folder)
    return folder


@pytest.fixture
def parts(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "parts")


def test_recordings_of_all_kinds_go_into_one_table(extraction):
    table = extraction.table
    assert len(table) == 4 + 3 + 2 + 3
    assert len(table.channels) == 19
    assert len(table.features) == 18
    rows = table.subjects.value_counts()
    assert rows.to_dict() == {"s01": 4, "s02": 3, "s03": 2, "s04": 3}
    assert set(table.y[table.subjects == "s02"]) == {"MDD"}


def test_what_a_reader_warns_people_of_is_a_note_and_what_programmers_is_not(sound):
    def load():
        warnings.warn("old call", DeprecationWarning, stacklevel=1)
        warnings.warn("a strange  header", RuntimeWarning, stacklevel=1)
        return sound[0].load()

    result = extract_table([replace(sound[0], load=load), *sound[1:2]])
    assert "a strange header" in result.summary()
    assert "old call" not in result.summary()


def test_a_channel_that_a_recording_lacks_is_missing_there(extraction):
    table = extraction.table
    observed = table.observed.groupby(table.subjects).all()
    assert not observed.loc["s02", ["Fz", "Pz"]].any()
    assert not observed.loc["s03", "O1"]
    assert not observed.loc["s04", ["C3", "C4"]].any()
    assert observed.loc["s01"].all()
    assert observed.to_numpy().sum() == 4 * 19 - 5


def test_the_order_of_channels_in_a_file_does_not_matter(extraction, sound):
    table = extraction.table
    alone = extract_recording(sound[3]).X
    rows = table.X.loc["s04"]
    np.testing.assert_array_equal(rows[alone.columns], alone)


def test_the_names_that_files_give_to_channels_are_kept(tmp_path, raws):
    # Two amplifiers, of which one writes the names of 1958.
    old = {"T7": "EEG T3-LE", "T8": "EEG T4-LE", "Fp1": "EEG Fp1-LE"}
    raws["s01.edf"].copy().rename_channels(old).save(tmp_path / "a_raw.fif", verbose="error")
    new = {"T7": "T3", "Fp1": "FP1."}
    raws["s04.edf"].copy().rename_channels(new).save(tmp_path / "b_raw.fif", verbose="error")
    manifest = tmp_path / "study.csv"
    manifest.write_text("path,subject,label\na_raw.fif,a,HC\nb_raw.fif,b,MDD\n")
    output = tmp_path / "table.parquet"
    extract_to_file(read_manifest(manifest), output)
    table = FeatureTable.read(output)
    assert len(table.channels) == 19
    assert {"T7", "T8", "Fp1"} <= set(table.channels)


def test_two_jobs_give_the_bits_of_one(extraction, sound):
    two = extract_table(sound, n_jobs=2)
    assert two.table.equals(extraction.table)
    assert two.table.X.to_numpy().tobytes() == extraction.table.X.to_numpy().tobytes()
    assert [o.source for o in two.outcomes] == [o.source for o in extraction.outcomes]


def test_a_users_own_feature_reaches_the_workers(sound):
    own = Feature("line_length", lambda signal: np.abs(np.diff(signal.data)).mean(axis=-1))
    settings = FeatureSettings(features=("variance", own))
    assert extract_table(sound, settings, n_jobs=2).table.features == [
        "variance",
        "line_length",
    ]


def test_a_failing_recording_is_named(recordings, study, spoil):
    spoil(study.with_name("s02_raw.fif"))
    with pytest.raises(RecordingError, match=r"s02_raw\.fif: .*on_error='skip'"):
        extract_table(recordings)


def test_a_failing_recording_stops_two_jobs_as_well(recordings, study, spoil):
    spoil(study.with_name("s01.edf"))
    with pytest.raises(InputError, match=r"s01\.edf"):
        extract_table(recordings, n_jobs=2)


def test_a_folder_that_cannot_be_written_is_no_fault_of_the_recordings(sound, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(OSError, match="file"):
        extract_table(sound, parts=blocked / "parts", on_error="skip")


def test_a_failing_recording_may_be_skipped(recordings, study, spoil):
    spoil(study.with_name("s02_raw.fif"))
    extraction = extract_table(recordings, on_error="skip")
    assert set(extraction.table.subjects) == {"s01", "s03", "s04"}
    [skipped] = extraction.skipped
    assert skipped.status == "failed"
    assert "s02_raw.fif" in extraction.summary()


def test_a_recording_that_is_too_short_is_a_failure_with_a_reason(sound):
    settings = FeatureSettings(epoch=30)
    extraction = extract_table(sound, settings, on_error="skip")
    assert [o.subject for o in extraction.skipped] == ["s03"]
    assert "less than one epoch" in extraction.skipped[0].error


def test_a_bug_in_a_feature_is_no_input_error(sound):
    def broken(signal):
        raise ZeroDivisionError("oops")

    settings = FeatureSettings(features=(Feature("broken", broken),))
    with pytest.raises(UnexpectedRecordingError, match="oops"):
        extract_table(sound, settings)


def test_nothing_left_is_refused_with_the_reasons(sound):
    settings = FeatureSettings(epoch=100)
    with pytest.raises(InputError, match=r"No recording gave an epoch.*s01\.edf"):
        extract_table(sound, settings, on_error="skip")


@pytest.mark.parametrize("newer", [False, True])
def test_parts_of_a_table_that_is_written_are_removed_and_newer_ones_stay(tmp_path, newer):
    table = tmp_path / "t.parquet"
    parts = tmp_path / ".t.parquet.parts"
    parts.mkdir()
    (parts / "a.npz").write_bytes(b"a part")
    table.write_bytes(b"a table")
    written = (parts / "a.npz").stat().st_mtime
    os.utime(table, (written, written + (-10 if newer else 10)))
    with pytest.raises(ExistingFileError):
        extract_to_file(simulate_cohort(2, 3, duration=20, random_state=0).recordings, table)
    assert parts.exists() == newer


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1e-6, "no signal .* check the unit"), (30.0, "far beyond a typical amplitude of 1e-05")],
)
def test_a_wrong_unit_is_named_with_the_amplitude(tmp_path, factor, said):
    for recording in simulate_cohort(2, 3, duration=20, random_state=0).recordings:
        raw = recording.load().load_data()
        raw.apply_function(lambda signal: factor * signal)
        raw.save(tmp_path / f"{recording.subject}_raw.fif", verbose="error")
    names = sorted(file.name for file in tmp_path.iterdir())
    lines = [f"{name},{name[:6]},{label}" for name, label in zip(names, "ABAB", strict=False)]
    (tmp_path / "study.csv").write_text("\n".join(["path,subject,label", *lines]))
    with pytest.raises(InputError, match=said):
        extract_table(read_manifest(tmp_path / "study.csv"))


def test_no_recordings_and_unknown_words_are_refused(sound):
    with pytest.raises(InputError, match="no recordings"):
        extract_table([])
    with pytest.raises(InputError, match="on_error"):
        extract_table(sound, on_error="ignore")
    with pytest.raises(InputError, match="n_jobs=0"):
        extract_table(sound, n_jobs=0)


def test_simulated_recordings_need_no_files():
    cohort = simulate_cohort(3, 3, duration=20, random_state=1)
    extraction = extract_table(cohort.recordings)
    assert len(extraction.table) + sum(o.n_epochs - o.n_rows for o in extraction.outcomes) == 6
    assert extraction.table.info["epoch"] == 10.0


def test_the_table_says_how_it_was_made(extraction):
    info = extraction.table.info
    assert info["sfreq"] == 250.0
    assert info["band_pass"] == [1.0, 45.0]
    assert info["bands"]["alpha"] == [8.0, 13.0]
    assert [one["rows"] for one in info["recordings"]] == [4, 3, 2, 3]
    assert "1005" in info["montage"]
    json.dumps(dict(info))


def test_progress_is_told_from_the_beginning_recording_by_recording(sound):
    events = []
    extract_table(sound, progress=events.append)
    assert {(event.task, event.total) for event in events} == {("features", 4)}
    assert [event.done for event in events] == [0, 1, 2, 3, 4]
    assert [event.item.subject for event in events[1:]] == ["s01", "s02", "s03", "s04"]


def test_the_summary_says_what_is_there_and_what_is_not(extraction):
    summary = extraction.summary()
    for words in (
        "4 participants",
        "HC (2 participants, 6 epochs)",
        "channels    19",
        "marked bad: 6",
    ):
        assert words in summary
    assert "not in the recording: 8" in summary


def test_what_is_finished_is_not_computed_again(recordings, study, spoil, tmp_path):
    last = study.with_name("s04.edf")
    whole = last.read_bytes()
    spoil(last)
    output = tmp_path / "table.parquet"
    with pytest.raises(InputError, match="Finished recordings are kept"):
        extract_to_file(recordings, output)
    assert not output.exists()

    last.write_bytes(whole)
    extraction = extract_to_file(recordings, output)
    assert [o.status for o in extraction.outcomes] == ["resumed", "resumed", "resumed", "done"]
    assert extraction.table.equals(extract_table(recordings).table)
    assert FeatureTable.read(output).equals(extraction.table)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "study",
        "table.parquet",
        "table.parquet.reasons.tsv.gz",
    ]


def test_changed_settings_or_bytes_are_computed_anew(recordings, study, tmp_path):
    parts = tmp_path / "parts"
    extract_table(recordings, parts=parts)

    def statuses(settings=None):
        outcomes = extract_table(recordings, settings, parts=parts).outcomes
        return [outcome.status for outcome in outcomes]

    assert statuses() == ["resumed"] * 4
    assert statuses(FeatureSettings(detect=False)) == ["done"] * 4
    shutil.copy(study.with_name("s01.edf"), study.with_name("s04.edf"))
    assert statuses() == ["resumed", "resumed", "resumed", "done"]


@pytest.mark.parametrize("damage", [lambda b: b[:0], lambda b: b[:1000], lambda b: b[:-1]])
def test_a_torn_part_is_computed_anew(sound, extraction, parts, damage):
    for part in parts.glob("*.npz"):
        part.write_bytes(damage(part.read_bytes()))
    again = extract_table(sound, parts=parts)
    assert [o.status for o in again.outcomes] == ["done"] * 4
    assert again.table.equals(extraction.table)


def test_a_part_that_needs_unpickling_is_computed_anew(sound, parts):
    for part in parts.glob("*.npz"):
        np.savez(part, notes=np.array([{"columns": []}], dtype=object))
    assert extract_table(sound[:1], parts=parts).outcomes[0].status == "done"


def test_what_is_known_of_a_finished_recording_comes_back_too(sound, extraction, parts):
    again = extract_table(sound, parts=parts)
    resumed = "\nresumed     4 of 4 recordings were finished before"
    assert again.summary().replace(resumed, "") == extraction.summary()
    assert again.table.equals(extraction.table)


def test_a_full_disk_leaves_nothing_behind(sound, tmp_path, monkeypatch):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        extract_table(sound, parts=tmp_path / "parts")
    assert list((tmp_path / "parts").iterdir()) == []


@pytest.mark.parametrize("after", [1, 4])
def test_a_folder_deleted_during_a_run_ends_it(sound, tmp_path, after):
    out = tmp_path / "out"

    def delete(event):
        if event.done == after:
            shutil.rmtree(out)

    with pytest.raises(OSError, match=r"\.t\.parquet\.parts: deleted or moved during the run"):
        extract_to_file(sound, out / "t.parquet", progress=delete)
    assert not out.exists()


def test_a_folder_holds_the_table_of_one_file_in_pieces(
    recordings, study, spoil, extraction, tmp_path, monkeypatch
):
    monkeypatch.setattr(batch, "_PIECE", 7 * 342)  # about two recordings
    last = study.with_name("s04.edf")
    whole = last.read_bytes()
    spoil(last)
    folder = tmp_path / "table"
    with pytest.raises(InputError, match="Finished recordings are kept"):
        extract_to_file(recordings, folder)
    last.write_bytes(whole)
    done = extract_to_file(recordings, folder)
    assert [outcome.status for outcome in done.outcomes] == ["resumed"] * 3 + ["done"]
    names = sorted(path.name for path in folder.glob("*.parquet"))
    assert names == ["part-00000.parquet", "part-00001.parquet"]
    assert len({tuple(FeatureTable.read(folder / name).X.columns) for name in names}) == 1
    read = FeatureTable.read(folder)
    assert done.table.equals(read)
    assert read.equals(extraction.table)
    lines = extraction.summary().splitlines()
    assert [line for line in done.summary().splitlines() if "resumed" not in line] == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study", "table"]
    with pytest.raises(InputError, match="exists already"):
        extract_to_file(recordings, folder)
    extract_to_file(recordings[:1], folder, overwrite=True)
    assert len(FeatureTable.read(folder)) == 4


@pytest.mark.parametrize("name", ["table", "table.parquet"])
def test_values_of_finished_recordings_are_not_kept(sound, tmp_path, monkeypatch, name):
    monkeypatch.setattr(batch, "_PIECE", 342)  # a recording
    write, seen = FeatureTable.write, []

    def count():
        gc.collect()
        things = gc.get_objects()
        frames = [thing for thing in things if type(thing) is pd.DataFrame]
        values = sum(frame.size > 0 for frame in frames if frame.index.name == "start")
        seen.append((values, sum(type(thing) is FeatureTable for thing in things)))

    def count_and_write(table, path):
        count()
        return write(table, path)

    monkeypatch.setattr(FeatureTable, "write", count_and_write)
    count()
    extract_to_file(sound, tmp_path / name, progress=lambda event: count())
    values, tables = np.subtract(seen, seen[0]).T
    assert len(sound) > 2
    assert values.max() <= 1
    assert tables.max() <= 2


def test_an_existing_table_is_not_replaced_unasked(sound, tmp_path):
    output = tmp_path / "table.csv"
    output.write_text("precious")
    with pytest.raises(InputError, match="overwrite=True"):
        extract_to_file(sound, output)
    assert output.read_text() == "precious"
    extract_to_file(sound, output, overwrite=True)
    assert len(FeatureTable.read(output)) == 12


@pytest.mark.parametrize(
    ("name", "message"), [("table.xlsx", "ends in"), ("", "holds a.txt"), ("a", "is a file")]
)
def test_an_output_that_cannot_be_written_is_refused_first(sound, tmp_path, name, message):
    (tmp_path / "a.txt").touch()
    (tmp_path / "a").touch()
    (tmp_path / ("a" if name == "" else "a.txt")).unlink()
    with pytest.raises(InputError, match=message):
        extract_to_file(sound, tmp_path / name)


def test_each_row_knows_its_recording_epoch_and_what_the_manifest_says(study):
    lines = study.read_text().splitlines()
    more = ["condition,age,sex,site", "EC,31,f,A", "EC,45,m,A", "EO,,f,B", "EO,52,,B"]
    study.write_text("\n".join(f"{line},{rest}" for line, rest in zip(lines, more, strict=True)))
    table = extract_table(read_manifest(study)).table
    rows = table.rows
    assert list(rows)[:5] == ["recording", "session", "condition", "epoch", "onset"]
    assert rows["recording"].unique().tolist() == ["s01", "s02_raw", "s03", "s04"]
    assert rows["epoch"].tolist() == [0, 1, 2, 3, 0, 1, 2, 0, 1, 0, 1, 2]
    assert rows["onset"].tolist() == [10.0 * epoch for epoch in rows["epoch"]]
    assert rows["condition"].tolist() == ["EC"] * 7 + ["EO"] * 5
    assert rows["age"].tolist()[:4] == [31.0] * 4
    assert rows["age"].isna().sum() == 2
    assert rows["sex"].dropna().unique().tolist() == ["f", "m"]
    assert rows["session"].isna().all()
    assert table.sites.tolist() == ["A"] * 7 + ["B"] * 5
    listed = table.info["recordings"]
    assert [one["recording"] for one in listed] == rows["recording"].unique().tolist()
    assert [one["facts"]["n_channels"] for one in listed] == [19, 17, 18, 19]


def test_epochs_that_are_left_out_leave_a_hole_in_the_numbers(raws):
    raw = raws["s01.edf"].copy()
    raw.set_annotations(mne.Annotations([12.0], [5.0], ["BAD moved"]))
    [recording] = simulate_cohort(1, 3, duration=20, random_state=0).recordings
    table = extract_table([replace(recording, load=raw.copy)]).table
    assert table.rows["epoch"].tolist() == [0, 2, 3]
    assert table.rows["onset"].tolist() == [0.0, 20.0, 30.0]


def test_recordings_of_one_name_are_told_apart():
    [one] = simulate_cohort(1, 3, duration=20, detached=0, random_state=0).recordings
    both = [one, replace(one, session="2")]
    table = extract_table(both).table
    assert table.rows["recording"].unique().tolist() == [one.subject, f"{one.subject}-2"]


def test_a_class_of_one_subject_is_named_in_the_summary(sound):
    said = extract_table([sound[0], sound[1], sound[3]]).summary()
    assert "class HC has one participant only, s01" in said


def test_a_channel_that_recordings_spell_differently_is_one(sound, raws):
    spelt = [raws["s01.edf"].copy().rename_channels({"Cz": new}) for new in ("Extra1", "eXtra01")]
    both = [
        replace(one, subject=f"s{place}", files=(), load=raw.copy)
        for place, (one, raw) in enumerate(zip(sound, spelt, strict=False))
    ]
    table = extract_table(both, FeatureSettings(detect=False, channels="all")).table
    assert "Extra1" in table.channels
    assert "eXtra01" not in table.channels
    assert table.observed.to_numpy().all()


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_in_a_kept_part_is_found_and_computed_again(sound, extraction, parts, seed):
    rng = np.random.default_rng(seed)
    for part in parts.glob("*.npz"):
        content = bytearray(part.read_bytes())
        content[int(rng.integers(200, len(content) - 1000))] ^= 1 << int(rng.integers(8))
        part.write_bytes(content)
    again = extract_table(sound, parts=parts)
    assert [outcome.status for outcome in again.outcomes] == ["done"] * 4
    assert again.table.equals(extraction.table)
    for part in parts.glob("*.npz"):
        assert f"{part} was damaged: computed again" in again.summary()
