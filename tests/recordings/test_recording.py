import pickle
from functools import partial

import pytest

from idfsmec.recordings import Recording


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
