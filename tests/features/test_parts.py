"""Finished recordings on disk: the same bits back, and never half of one."""

import numpy as np
import pandas as pd
import pytest

from idfsmec.features import RecordingFeatures
from idfsmec.features._parts import (
    part_path,
    read_columns,
    read_features,
    read_notes,
    write_part,
)


@pytest.fixture
def features():
    values = np.random.default_rng(0).standard_normal((3, 4))
    values[1, 2:] = np.nan
    X = pd.DataFrame(
        values,
        columns=["Fp1__mean", "Fp1__nsi", "Ö2__mean", "Ö2__nsi"],
        index=pd.Index([0.0, 10.0, 30.0], name="start"),
    )
    return RecordingFeatures(
        X, ["Fp1", "Ö2"], {"marked bad": {"Ö2": 1}}, n_epochs=4, n_rows=3, hint="look"
    )


def test_a_part_comes_back_as_it_was(features, tmp_path):
    path = part_path(tmp_path / "new" / "folder", "fingerprint", "digest")
    write_part(path, features)
    pd.testing.assert_frame_equal(read_features(path), features.X, check_exact=True)
    assert read_columns(path) == list(features.X.columns)
    notes = read_notes(path)
    assert (notes.channels, notes.reasons) == (features.channels, features.reasons)
    assert (notes.n_epochs, notes.n_rows, notes.hint) == (4, 3, "look")
    assert list(path.parent.iterdir()) == [path]


def test_what_is_no_whole_part_is_none(features, tmp_path):
    path = tmp_path / "part.npz"
    assert read_notes(path) is None
    write_part(path, features)
    whole = path.read_bytes()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert read_notes(path) is None
    path.write_bytes(b"something else")
    assert read_notes(path) is None


def test_files_that_need_unpickling_are_not_read(tmp_path):
    path = tmp_path / "part.npz"
    np.savez(path, notes=np.array([{"a": 1}], dtype=object))
    assert read_notes(path) is None


def test_a_failed_write_leaves_nothing_behind(features, tmp_path, monkeypatch):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("idfsmec.features._parts.np.savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_part(tmp_path / "part.npz", features)
    assert list(tmp_path.iterdir()) == []


def test_content_and_options_both_name_the_part(tmp_path):
    names = {part_path(tmp_path, a, b) for a in ("x", "y") for b in ("1", "2")}
    assert len(names) == 4
