"""ds005356: MEG files with EEG channels, some of them split, and the released workbook."""

import mne
import numpy as np
import openpyxl
import pytest

from idfsmec.errors import InputError
from idfsmec.recordings import find_recordings, read_ds005356

EEG = [f"EEG{number:03}" for number in (*range(1, 61), *range(64, 75))]


def meg_raw(seed):
    """Two MEG channels, 71 of EEG with positions, and a trigger; some seconds at 1000 Hz."""
    types = ["mag", "grad", *["eeg"] * len(EEG), "stim"]
    info = mne.create_info(["MEG0111", "MEG0112", *EEG, "STI101"], 1000.0, types)
    signals = 1e-5 * np.random.default_rng(seed).normal(size=(len(types), 3000))
    raw = mne.io.RawArray(signals, info, verbose="error")
    directions = np.random.default_rng(0).normal(size=(len(EEG), 3))
    places = 0.09 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    montage = mne.channels.make_dig_montage(
        dict(zip(EEG, places, strict=True)), coord_frame="head"
    )
    return raw.set_montage(montage, on_missing="ignore")


@pytest.fixture
def release(tmp_path):
    for seed, (subject, size) in enumerate(
        [("M87100058", "3MB"), ("M87100481", "2GB"), ("M87102708", "2GB")]
    ):
        folder = tmp_path / f"sub-{subject}/ses-01/meg"
        folder.mkdir(parents=True)
        path = folder / f"sub-{subject}_ses-01_task-pst_run-1_meg.fif"
        raw = meg_raw(seed)
        if size == "3MB":  # split in two, named as BIDS wants it
            raw = mne.concatenate_raws([raw, meg_raw(7), meg_raw(8)], verbose="error")
        raw.save(path, split_size=size, split_naming="bids", verbose="error")
    (tmp_path / "Code").mkdir()
    (tmp_path / "Code" / "ct_sparse_orion.fif").write_bytes(b"no recording")
    book = openpyxl.Workbook()
    rows = [["URSI", "Group", "Age", "BDI"], [58, "CTL", 24, 1], [481, "MDD", 31, 27]]
    for row in [*rows, ["as of 2020", None, None, None]]:
        book.active.append(row)
    book.save(tmp_path / "Code" / "MEG MDD IDs and Quex.xlsx")
    (tmp_path / "participants.tsv").write_text("participant_id\nsub-M87100058\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore:.*does not conform to MNE naming")
def test_eeg_channels_are_read_with_the_groups_of_the_workbook(release):
    with pytest.warns(UserWarning, match=r"1 without a group \(M87102708\)"):
        split, whole = find_recordings("ds005356", data=release)
    assert [(r.subject, r.label, r.session) for r in (split, whole)] == [
        ("M87100058", "HC", "ses-01"),
        ("M87100481", "MDD", "ses-01"),
    ]
    assert whole.details == {"age": "31", "bdi": "27"}
    assert [path.name[-17:] for path in split.files] == ["_split-01_meg.fif", "_split-02_meg.fif"]
    raw = split.load()
    assert raw.ch_names == EEG
    assert raw.n_times == 9000  # both parts
    assert np.isfinite([channel["loc"][:3] for channel in raw.info["chs"]]).all()
    assert whole.load().n_times == 3000


@pytest.mark.filterwarnings("ignore:.*without a group")
def test_a_part_that_is_not_there_is_named(release):
    split = read_ds005356(release)[0]
    split.files[1].unlink()
    with pytest.raises(InputError, match=r"split-01_meg\.fif"):
        split.load()


def test_what_is_missing_is_named(release, tmp_path_factory):
    with pytest.raises(InputError, match="no recording of ds005356"):
        read_ds005356(tmp_path_factory.mktemp("empty"))
    (release / "Code" / "MEG MDD IDs and Quex.xlsx").unlink()
    with pytest.raises(InputError, match=r"Quex\.xlsx: the workbook with the groups is missing"):
        read_ds005356(release)
