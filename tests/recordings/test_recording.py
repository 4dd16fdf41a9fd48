import os
import pickle
from functools import partial

import mne
import pytest

from idfsmec.errors import RecordingError
from idfsmec.recordings import Recording
from idfsmec.recordings.recording import file_recording, files_of
from tests.corpus.sound import write_raw


def test_a_recording_is_frozen_and_can_be_pickled():
    recording = Recording("s", "HC", partial(int, 3), "three")
    with pytest.raises(AttributeError):
        recording.subject = "t"
    assert pickle.loads(pickle.dumps(recording)).load() == 3


def test_nothing_is_loaded_until_asked():
    loads = []
    recording = Recording("s", "HC", lambda: loads.append(1), "counter")
    assert not loads
    recording.load()
    assert loads == [1]


def test_the_fingerprint_follows_the_bytes_and_not_the_name(tmp_path):
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_bytes(b"signal")
    two.write_bytes(b"signal")
    print_of = {
        path: Recording("s", "HC", int, str(path), files=(path,)).fingerprint()
        for path in (one, two)
    }
    assert print_of[one] == print_of[two]
    two.write_bytes(b"Signal")
    assert Recording("s", "HC", int, "x", files=(two,)).fingerprint() != print_of[one]


def test_the_fingerprint_follows_bads_and_variant(tmp_path):
    file = tmp_path / "one.txt"
    file.write_bytes(b"signal")
    prints = {
        Recording("s", "HC", int, "x", files=(file,), **extra).fingerprint()
        for extra in ({}, {"bads": ("Fp1",)}, {"variant": "eyes-open"})
    }
    assert len(prints) == 3


def test_a_recording_without_files_has_no_fingerprint():
    assert Recording("s", "HC", int, "simulated").fingerprint() is None


@pytest.mark.parametrize(("real", "called"), [("edf", "bdf"), ("bdf", "edf")])
def test_a_file_under_the_other_name_is_said_to_be_what_it_is(tmp_path, make_raw, real, called):
    write_raw(make_raw(), tmp_path / f"right.{real}")
    wrong = (tmp_path / f"right.{real}").rename(tmp_path / f"wrong.{called}")
    with pytest.raises(RecordingError, match=rf"this is {real.upper()}.*Name it \.{real}"):
        file_recording(wrong, "s", "HC").load()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.usefixtures("at_most_a_minute")
@pytest.mark.parametrize("place", ["a.edf", "a.fdt", "a_raw-1.fif", "a.vmrk", "folder/x.bin"])
def test_a_pipe_is_refused_wherever_it_lies(tmp_path, make_raw, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    raw = make_raw()
    if place == "a.fdt":
        path = tmp_path / "a.set"
        mne.export.export_raw(path, raw, verbose="error")
    elif place == "a_raw-1.fif":
        path = tmp_path / "a_raw.fif"
        raw.save(path, verbose="error")
    elif place == "a.vmrk":
        path = tmp_path / "a.vhdr"
        mne.export.export_raw(path, raw, verbose="error")
        (tmp_path / place).unlink()
    elif place.startswith("folder"):
        path = tmp_path / "folder"
    os.mkfifo(tmp_path / place)
    assert tmp_path / place not in files_of(path)
    with pytest.raises(RecordingError, match="is a pipe or a device, not a file"):
        file_recording(path, "s", "HC").load()
