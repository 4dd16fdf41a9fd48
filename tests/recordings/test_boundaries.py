"""Interruptions: files that hold pieces of a recording lose the epochs across the boundaries."""

import mne
import numpy as np
import pytest

from idfsmec.features import FeatureSettings, extract_recording
from idfsmec.recordings import read_manifest, simulate_cohort
from idfsmec.recordings.recording import find_boundaries

SFREQ = 250


@pytest.fixture(scope="module")
def raw():
    cohort = simulate_cohort(1, 3, duration=60, detached=0, artifacts=False, random_state=5)
    return cohort.recordings[0].load()


def write_discontinuous(path, raw, onsets, kind=b"EDF+D"):
    """Write data records of one second that begin at these times, byte by byte."""
    width = 3 if kind.startswith(b"BDF") else 2
    marks = 40  # samples of the annotation signal in a record
    n_channels = len(raw.ch_names)
    largest = 2 ** (8 * width - 1)

    def field(value, size):
        return str(value)[:size].ljust(size).encode()

    def fields(values, size):
        return b"".join(field(value, size) for value in values)

    version = b"\xffBIOSEMI" if width == 3 else field("0", 8)
    head = version + field("X X X X", 80) + field("Startdate X X X X", 80)
    head += field("01.01.85", 8) + field("00.00.00", 8) + field(256 * (n_channels + 2), 8)
    head += kind.ljust(44) + field(len(onsets), 8) + field(1, 8) + field(n_channels + 1, 4)
    head += fields([*raw.ch_names, f"{kind[:3].decode()} Annotations"], 16)
    head += fields([""] * (n_channels + 1), 80) + fields(["uV"] * n_channels + [""], 8)
    head += fields([-3000] * n_channels + [-1], 8) + fields([3000] * n_channels + [1], 8)
    head += fields([-largest] * (n_channels + 1), 8) + fields([largest - 1] * (n_channels + 1), 8)
    head += fields([""] * (n_channels + 1), 80)
    head += fields([SFREQ] * n_channels + [marks], 8) + fields([""] * (n_channels + 1), 32)
    digits = np.round(raw.get_data() * 1e6 / 3000 * largest).astype("<i4")
    records = [head]
    for record, onset in enumerate(onsets):
        part = np.ascontiguousarray(digits[:, record * SFREQ : (record + 1) * SFREQ])
        records.append(part.view(np.uint8).reshape(-1, 4)[:, :width].tobytes())
        records.append(f"+{onset:g}\x14\x14\x00".encode().ljust(width * marks, b"\x00"))
    path.write_bytes(b"".join(records))


@pytest.mark.parametrize(("name", "kind"), [("s.edf", b"EDF+D"), ("s.bdf", b"BDF+D")])
def test_the_epoch_across_the_pause_of_a_discontinuous_file_goes(tmp_path, raw, name, kind):
    write_discontinuous(tmp_path / name, raw, [*range(25), *range(1025, 1060)], kind)
    (tmp_path / "study.csv").write_text(f"path,subject,label\n{name},s1,HC\n")
    [recording] = read_manifest(tmp_path / "study.csv")
    assert find_boundaries(recording.load()).tolist() == [25.0]
    found = extract_recording(recording)
    assert found.X.index.tolist() == [0, 10, 30, 40, 50]
    assert set(found.reasons["across an interruption"].values()) == {1}
    own = mne.io.read_raw(tmp_path / name, verbose="error")
    assert extract_recording(own).X.equals(found.X)
    assert find_boundaries(own.copy().crop(6, 40)).tolist() == [19.0]


def test_a_pause_between_two_epochs_costs_none(tmp_path, raw):
    path = tmp_path / "s.edf"
    write_discontinuous(path, raw, [*range(30), *range(90, 120)])
    assert extract_recording(mne.io.read_raw(path, verbose="error")).n_rows == 6
    write_discontinuous(path, raw, list(range(60)))
    assert find_boundaries(mne.io.read_raw(path, verbose="error")).size == 0


def test_overlapping_epochs_lose_all_that_hold_both_sides(tmp_path, raw):
    write_discontinuous(tmp_path / "s.edf", raw, [*range(25), *range(1025, 1060)])
    settings = FeatureSettings(epoch=10, overlap=5)
    found = extract_recording(mne.io.read_raw(tmp_path / "s.edf", verbose="error"), settings)
    assert sorted(set(range(0, 55, 5)) - set(found.X.index)) == [20]


def test_a_damaged_header_and_a_lost_file_are_no_boundaries(tmp_path, raw):
    path = tmp_path / "s.edf"
    write_discontinuous(path, raw, [*range(25), *range(1025, 1060)])
    read = mne.io.read_raw(path, verbose="error")
    path.write_bytes(b"0".ljust(192) + b"EDF+D" + b"x" * 500)
    assert find_boundaries(read).size == 0
    path.unlink()
    assert find_boundaries(read).size == 0


def test_pieces_put_together_by_mne_are_known(raw):
    both = mne.concatenate_raws([raw.copy().crop(0, 25 - 1 / SFREQ), raw.copy()], verbose="error")
    assert find_boundaries(both).tolist() == [25.0]
    found = extract_recording(both)
    assert 20.0 not in found.X.index
    assert found.n_rows == found.n_epochs - 1


def test_skips_of_fif_files_are_bad(tmp_path, raw):
    # What was not written while the acquisition paused; MNE reads it as zeros, annotated.
    path = tmp_path / "s_raw.fif"
    paused = raw.copy()
    paused.set_annotations(mne.Annotations([24.0], [4.0], ["BAD_ACQ_SKIP"]))
    paused.save(path, verbose="error")
    found = extract_recording(mne.io.read_raw(path, verbose="error"))
    assert found.X.index.tolist() == [0, 10, 30, 40, 50]


@pytest.mark.parametrize("word", ["boundary", "New Segment/", "EDGE boundary"])
@pytest.mark.parametrize("date", [None, 1_000_000_000])
def test_marks_of_other_programs_are_boundaries(raw, word, date):
    joined = raw.copy().set_meas_date(date)
    joined.set_annotations(mne.Annotations([0.0, 34.0], [0.0, 0.0], [word, word]))
    assert find_boundaries(joined).tolist() == [34.0]
    assert extract_recording(joined).X.index.tolist() == [0, 10, 20, 40, 50]
    assert find_boundaries(joined.copy().crop(12)).tolist() == [22.0]


def test_boundaries_of_eeglab_files_are_found(tmp_path, raw):
    joined = raw.copy()
    joined.set_annotations(mne.Annotations([34.0], [0.004], ["boundary"]))
    mne.export.export_raw(tmp_path / "s.set", joined, verbose="error")
    read = mne.io.read_raw(tmp_path / "s.set", verbose="error")
    assert find_boundaries(read) == pytest.approx([34.0], abs=0.005)
    assert 30.0 not in extract_recording(read).X.index
