import shutil

import pytest

from idfsmec.errors import DuplicateRecordingsError
from idfsmec.recordings import Recording, check_duplicates, find_duplicates
from idfsmec.recordings.recording import files_of


@pytest.fixture
def record(tmp_path):
    """Write files with some content and make a recording of the first."""

    def make(subject, contents, **extra):
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
        path = tmp_path / next(iter(contents))
        return Recording(subject, "HC", int, str(path), files=files_of(path), **extra)

    return make


def test_the_same_bytes_under_another_name_are_found(record):
    one = record("1", {"a.edf": b"signal"})
    two = record("2", {"b.edf": b"Signal"})
    three = record("3", {"c.edf": b"signal"})
    assert find_duplicates([one, two, three]) == [[one, three]]
    assert find_duplicates([one, two]) == []


def test_files_that_differ_in_size_are_not_read(record, monkeypatch):
    contents = [b"x", b"xx", bytes(100_000), b""]
    recordings = [record(str(n), {f"{n}.edf": content}) for n, content in enumerate(contents)]

    def refuse(path):
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr("idfsmec.recordings.recording.hash_file", refuse)
    assert find_duplicates(recordings) == []


def test_files_that_differ_only_in_the_middle_are_different(record):
    big = bytes(100_000)
    one, two = (record(n, {f"{n}.edf": big + n.encode() + big}) for n in ("1", "2"))
    assert find_duplicates([one, two]) == []
    assert find_duplicates([one, one, two]) == [[one, one]]


def test_two_subjects_with_one_recording_are_refused_with_both_files(record):
    pair = [record("1", {"a.edf": b"signal"}), record("2", {"b.edf": b"signal"})]
    with pytest.raises(
        DuplicateRecordingsError, match=r"a\.edf \(participant 1\) and .*b\.edf \(participant 2\)"
    ):
        check_duplicates(pair)


def test_one_subject_with_one_recording_twice_counts_once(record):
    first, again = record("1", {"a.edf": b"signal"}), record("1", {"b.edf": b"signal"})
    other = record("1", {"c.edf": b"another"})
    with pytest.warns(UserWarning, match=r"left out: \S*b\.edf \(participant 1\)\."):
        assert check_duplicates([first, again, other]) == [first, other]


def test_one_line_given_twice_counts_once(record):
    recording = record("1", {"a.edf": b"signal"})
    with pytest.warns(UserWarning, match="counts once"):
        assert check_duplicates([recording, recording]) == [recording]


def test_one_path_given_twice_is_a_duplicate(record):
    with pytest.raises(DuplicateRecordingsError, match="different participants"):
        check_duplicates([record("1", {"a.edf": b"x"}), record("2", {"a.edf": b"x"})])


def test_different_recordings_pass_in_silence(record):
    pair = [record("1", {"a.edf": b"x"}), record("2", {"b.edf": b"y"})]
    assert check_duplicates(pair) == pair


def test_equal_headers_with_different_signals_are_different(record):
    one = record("1", {"a.set": b"header", "a.fdt": b"signal"})
    two = record("2", {"b.set": b"header", "b.fdt": b"SIGNAL"})
    assert find_duplicates([one, two]) == []


def test_equal_signals_under_headers_with_other_names_are_the_same(tmp_path, make_raw):
    raw = make_raw()
    raw.export(tmp_path / "a.vhdr", verbose="ERROR")
    text = (tmp_path / "a.vhdr").read_text(encoding="utf-8")
    (tmp_path / "renamed.vhdr").write_text(
        text.replace("a.eeg", "renamed.eeg").replace("a.vmrk", "renamed.vmrk"), encoding="utf-8"
    )
    for ending in (".eeg", ".vmrk"):
        shutil.copy(tmp_path / f"a{ending}", tmp_path / f"renamed{ending}")
    pair = [
        Recording(str(n), "HC", int, str(path), files=files_of(path))
        for n, path in enumerate([tmp_path / "a.vhdr", tmp_path / "renamed.vhdr"])
    ]
    assert find_duplicates(pair) == [pair]


def test_sidecars_do_not_hide_a_duplicate(record, tmp_path):
    pair = []
    for n in (1, 2):
        recording = record(str(n), {f"{n}.edf": b"signal"})
        sidecar = tmp_path / f"{n}_channels.tsv"
        sidecar.write_text(str(n))
        pair.append(Recording(str(n), "HC", int, "x", files=(*recording.files, sidecar)))
    assert find_duplicates(pair) == [pair]


def test_two_parts_of_one_file_are_two_recordings(record):
    parts = [record("1", {"a.edf": b"x"}, variant=part) for part in ("eyes-open", "eyes-closed")]
    assert find_duplicates(parts) == []


def test_recordings_without_files_are_never_duplicates():
    assert find_duplicates([Recording("1", "HC", int, "x"), Recording("2", "HC", int, "x")]) == []


def test_all_that_is_shared_is_named_at_once_with_the_right_advice(record):
    pairs = [
        record("1", {"a.edf": b"signal"}),
        record("2", {"b.edf": b"signal"}),
        record("3", {"c.edf": b"another"}),
        record("4", {"d.edf": b"another"}),
    ]
    with pytest.raises(DuplicateRecordingsError, match="give them one name") as refused:
        check_duplicates(pairs)
    for name, subject in zip("abcd", "1234", strict=True):
        assert f"{name}.edf (participant {subject})" in str(refused.value)
